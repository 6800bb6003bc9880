"""Directed graphs in layers, and trees of exploration with one line a node."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from crossopt.reports.drawing import svg

# A directed graph drawn in layers: every arc leads down, and groups of nodes have colours and numbers.
#
# Layers are those of the longest path; nodes with no fewer arcs out than in stand as low as they can, so that arcs are short. Inside a
# layer nodes stand in the order of the mean place of their neighbours above and below (barycentres; Sugiyama, Tagawa and Toda 1981). A
# graph that is deeper than wide is cut into strips side by side.

MOST: Final = 400
"""Nodes that can be told apart in one picture."""
_ROW: Final = 24.0
_CELL: Final = 30.0
_LEAST_STRIP: Final = 12
_GAP: Final = 26.0
_SWEEPS: Final = 6

Arcs = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes by their number, the arcs between them, and the group of each node."""

    arcs: Arcs
    groups: tuple[int, ...]
    labels: tuple[str, ...]
    """Of each node: what stands in it where there is room."""
    round: tuple[bool, ...]
    """Nodes that are drawn as circles, all others as squares."""
    tips: tuple[str, ...] = ()
    """Of each node: what it says to who points at it."""


def layers_of(count: int, arcs: Arcs) -> list[int]:
    """The layer of every node, from 0; a ValueError where arcs lead in a circle."""
    after, waits = [list[int]() for _ in range(count)], [0] * count
    for start, end in arcs:
        after[start].append(end)
        waits[end] += 1
    taken = waits.copy()
    layer, ready = [0] * count, [node for node in range(count) if not waits[node]]
    for node in ready:
        for end in after[node]:
            layer[end] = max(layer[end], layer[node] + 1)
            waits[end] -= 1
            if not waits[end]:
                ready.append(end)
    if len(ready) < count:
        raise ValueError("the arcs of this graph lead in a circle")
    for node in reversed(ready):
        if after[node] and len(after[node]) >= taken[node]:
            layer[node] = min(layer[end] for end in after[node]) - 1
    return layer


def drawn(titles: svg.Titles, graph: Graph) -> str:
    """The picture."""
    layer = layers_of(len(graph.groups), graph.arcs)
    rows = ordered(layer, graph.arcs)
    look = _style(graph)
    strips = _strips(rows, look.cell, titles.width)
    cell = min(look.cell, (titles.width - _GAP * (len(strips) - 1)) / sum(_width(strip) for strip in strips))
    step, half = look.step, min(cell / 2.0 - look.margin, look.half)
    positions = _positions(strips, cell, step, titles.width)
    height = max(len(strip) for strip in strips) * step + 8.0
    body = [*_arcs(graph, layer, positions, look.bow), *_nodes(graph, positions, half)]
    return svg.picture(titles, height, body)


@dataclass(frozen=True, slots=True)
class _Style:
    """Room for a node and its layer, and how far arcs swing out around what stands between."""

    cell: float
    step: float
    margin: float
    half: float
    bow: float


def _style(graph: Graph) -> _Style:
    """Small marks for numbers; where labels are words, wide boxes with room between them."""
    label = max(svg.width_of(text, 10.0) for text in graph.labels)
    if label <= _CELL - 8.0:
        return _Style(_CELL, _ROW, 1.5, 11.0, 11.0)
    half = label / 1.8 + 6.0
    return _Style(2.0 * half + 12.0, 2.0 * _ROW, 6.0, half, (half + 8.0) / 0.75)


def ordered(layer: Sequence[int], arcs: Arcs) -> list[list[int]]:
    """The nodes of each layer from left to right."""
    rows = [list[int]() for _ in range(max(layer, default=-1) + 1)]
    for node, depth in enumerate(layer):
        rows[depth].append(node)
    above, below = [list[int]() for _ in layer], [list[int]() for _ in layer]
    for start, end in arcs:
        above[end].append(start)
        below[start].append(end)
    where = {node: _share(index, len(row)) for row in rows for index, node in enumerate(row)}
    for sweep in range(_SWEEPS):
        near, way = (below, range(len(rows) - 1, -1, -1)) if sweep % 2 else (above, range(len(rows)))
        for depth in way:
            wanted = {
                node: sum(where[peer] for peer in near[node]) / len(near[node]) if near[node] else where[node] for node in rows[depth]
            }
            rows[depth].sort(key=lambda node: (wanted[node], where[node]))
            where.update({node: _share(index, len(rows[depth])) for index, node in enumerate(rows[depth])})
    return rows


def _share(index: int, count: int) -> float:
    return (index + 0.5) / count


def _width(strip: Sequence[Sequence[int]]) -> int:
    return max(len(row) for row in strip)


def _strips(rows: list[list[int]], cell: float, width: float) -> list[list[list[int]]]:
    """The layers cut into the most strips of equal height that stand side by side with room for every node."""
    best = [rows]
    for count in range(2, len(rows) + 1):
        step = ceil(len(rows) / count)
        strips = [rows[start : start + step] for start in range(0, len(rows), step)]
        room = sum(_width(strip) for strip in strips) * cell + _GAP * (len(strips) - 1)
        if room > width or step < max(2 * count, _LEAST_STRIP):
            break
        best = strips
    return best


def _positions(strips: Sequence[Sequence[Sequence[int]]], cell: float, step: float, width: float) -> dict[int, tuple[float, float]]:
    """Where each node stands."""
    positions, left = dict[int, tuple[float, float]](), 0.0
    spare = width - sum(_width(strip) for strip in strips) * cell
    gap = spare / len(strips)
    for strip in strips:
        room = _width(strip) * cell
        for depth, row in enumerate(strip):
            start = left + gap / 2.0 + (room - len(row) * cell) / 2.0
            positions.update({node: (start + (number + 0.5) * cell, depth * step + step / 2.0 + 4.0) for number, node in enumerate(row)})
        left += room + gap
    return positions


def _arcs(graph: Graph, layer: Sequence[int], positions: dict[int, tuple[float, float]], clear: float) -> Iterator[str]:
    """Arcs inside a group thin, those between groups strong and above them."""
    inner = [(start, end) for start, end in graph.arcs if graph.groups[start] == graph.groups[end]]
    outer = [(start, end) for start, end in graph.arcs if graph.groups[start] != graph.groups[end]]
    for kind, arcs in (("arc", inner), ("arc moved", outer)):
        for start, end in arcs:
            bow = 0.0 if layer[end] - layer[start] == 1 else clear + min(2.0 * (layer[end] - layer[start]), 16.0)
            yield svg.curve(positions[start], positions[end], kind, bow)


def _nodes(graph: Graph, positions: dict[int, tuple[float, float]], half: float) -> Iterator[str]:
    tall = min(half, 9.0)
    for node, group in enumerate(graph.groups):
        x, y = positions[node]
        corner = tall if graph.round[node] else 3.0
        yield svg.box(x - half, y - tall, 2.0 * half, 2.0 * tall, f"{svg.hue(group)} cut", corner, graph.tips[node] if graph.tips else "")
        if svg.width_of(graph.labels[node], 10.0) <= 2.0 * half:
            yield svg.text_line(x, y + 3.6, graph.labels[node], "on", "middle", 10.0)


# A tree of exploration as a picture: one line a node, below its parent, with what was found there and what became of it.
#
# Lines below each other keep words apart however deep and wide the tree is. Of a large tree the nodes nearest to the root are drawn, all
# children of a node or none; for those that are left out a line says how many they are and what became of them.

MOST_NODES_OF_TREE: Final = 80
"""Nodes that are drawn, beside one line for each node whose children are not."""
_INDENT: Final = 22.0
_DEEPEST: Final = 160.0
_SLIGHT: Final = 4.0
"""How far children are moved in at the least, so that long labels of deep trees find room."""
_MARK: Final = 16.0
_TREE_GAP: Final = 14.0
_DETAIL: Final = 0.36
_STATUS: Final = 0.3


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node: the number of its parent, which comes before it, what was chosen here, what was found, and what became of it."""

    parent: int | None
    label: str
    detail: str
    status: str


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the picture: a node, or those below a node that are left out."""

    depth: int
    label: str
    detail: str
    status: str
    above: int | None
    """The line of the parent."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where things stand: how far children are moved in, and where details and statuses begin and end."""

    indent: float
    detail: float
    status: float
    end: float
    width: float


def tree_svg(nodes: Sequence[TreeNode], title: str, description: str, name: str = "tree", width: float = svg.WIDTH) -> str:
    """The picture; `name` is as no other picture of the page has it. A ValueError without a node, and where one comes before its parent."""
    if not nodes:
        raise ValueError("a tree has at least one node")
    lines = _lines(nodes)
    statuses = list(dict.fromkeys(node.status for node in nodes))
    legend, top = _legend(nodes, statuses, width)
    columns = _columns(lines, width)
    body = [*legend, *_branches(lines, columns, top)]
    for row, node_line in enumerate(lines):
        body += _tree_row(node_line, columns, top + row * _ROW, statuses)
    return svg.picture(svg.Titles(name, title, description, width), top + len(lines) * _ROW + 2.0, body)


# --- which nodes ---------------------------------------------------------------------------------------------------------------------


def _lines(nodes: Sequence[TreeNode]) -> list[_Line]:
    """Parents above their children, children in their order."""
    children = _children(nodes)
    opened, lines = _opened(children), list[_Line]()
    waiting: list[tuple[int, int, int | None]] = [(root, 0, None) for root in reversed(children[-1])]
    while waiting:
        number, depth, above = waiting.pop()
        node, here = nodes[number], len(lines)
        lines.append(_Line(depth, node.label, node.detail, node.status, above))
        if number in opened:
            waiting += [(child, depth + 1, here) for child in reversed(children[number])]
        elif children[number]:
            lines.append(_left_out(nodes, _below(number, children), depth + 1, here))
    return lines


def _children(nodes: Sequence[TreeNode]) -> list[list[int]]:
    """Of each node, and of none in the last place: those are the roots."""
    children = [list[int]() for _ in range(len(nodes) + 1)]
    for number, node in enumerate(nodes):
        if node.parent is not None and not 0 <= node.parent < number:
            raise ValueError(f"node {number} of the tree names {node.parent} as its parent, which does not come before it")
        children[-1 if node.parent is None else node.parent].append(number)
    return children


def _opened(children: Sequence[Sequence[int]]) -> set[int]:
    """The nodes whose children are drawn, those near the root first."""
    opened, near, count = set[int](), list(children[-1]), len(children[-1])
    for number in near:
        if children[number] and count + len(children[number]) <= MOST_NODES_OF_TREE:
            opened.add(number)
            near += children[number]
            count += len(children[number])
    return opened


def _below(number: int, children: Sequence[Sequence[int]]) -> list[int]:
    found = list(children[number])
    for descendant in found:
        found += children[descendant]
    return found


def _left_out(nodes: Sequence[TreeNode], numbers: Sequence[int], depth: int, above: int) -> _Line:
    counts = Counter(nodes[number].status for number in numbers).most_common()
    ends = ", ".join(f"{count:,} {status}" for status, count in counts)
    return _Line(depth, f"{len(numbers):,} more node{'s' * (len(numbers) != 1)}: {ends}", "", "", above)


# --- how they are drawn --------------------------------------------------------------------------------------------------------------


def _columns(lines: Sequence[_Line], width: float) -> _Columns:
    """Close to each other where labels are short; long ones leave room for the other columns."""
    indent = min(_INDENT, _DEEPEST / max(1.0, *(float(row.depth) for row in lines)))
    status = min(svg.widest(row.status for row in lines) + 1.0, width * _STATUS)
    detail = min(svg.widest(row.detail for row in lines) + 1.0, width * _DETAIL)
    last = width - status - _TREE_GAP - detail
    rooms = [
        (last + (0.0 if row.detail else detail + _TREE_GAP) - _TREE_GAP - _MARK - 6.0 - svg.width_of(row.label), row)
        for row in lines
        if row.status
    ]
    indent = max(_SLIGHT, min([indent, *(room / row.depth for room, row in rooms if row.depth)]))
    ends = max(row.depth * indent + _MARK + 6.0 + svg.width_of(row.label) * bool(row.status) for row in lines)
    start = min(ends + 2.0 * _TREE_GAP, last)
    return _Columns(indent, start, start + detail + _TREE_GAP, start + detail + _TREE_GAP + status, width)


def _legend(nodes: Sequence[TreeNode], statuses: Sequence[str], room: float) -> tuple[list[str], float]:
    """The letters of the statuses with how many nodes have each, in as many rows as they need, and where the tree begins."""
    counts, body, x, y = Counter(node.status for node in nodes), list[str](), 0.0, 4.0
    for index, status in enumerate(statuses):
        text = svg.fitted(f"{status} ({counts[status]:,})", room - _MARK - 6.0)
        width = _MARK + 6.0 + svg.width_of(text)
        if x and x + width > room:
            x, y = 0.0, y + _ROW
        body += [*_mark(x, y, index), svg.text_line(x + _MARK + 6.0, y + 12.5, text, "m")]
        x += width + _TREE_GAP
    return body, y + _ROW + 6.0


def _branches(lines: Sequence[_Line], columns: _Columns, top: float) -> Iterator[str]:
    """From each parent down to its last child, and across to each of them."""
    middle = _ROW / 2.0
    for row, node_line in enumerate(lines):
        if node_line.above is not None:
            x, y = (node_line.depth - 1) * columns.indent + _MARK / 2.0, top + row * _ROW + middle
            start = top + node_line.above * _ROW + middle + _MARK / 2.0
            yield svg.line([(x, start), (x, y), (node_line.depth * columns.indent, y)], "branch")


def _tree_row(node_line: _Line, columns: _Columns, top: float, statuses: Sequence[str]) -> Iterator[str]:
    x, y = node_line.depth * columns.indent, top + _ROW / 2.0 + 4.5
    if not node_line.status:
        yield svg.text_line(x + 4.0, y, svg.fitted(node_line.label, columns.width - x - 4.0), "m")
        return
    yield from _mark(
        x,
        top + (_ROW - _MARK) / 2.0,
        statuses.index(node_line.status),
        " · ".join(part for part in (node_line.label, node_line.detail, node_line.status) if part),
    )
    start = x + _MARK + 6.0
    yield svg.text_line(
        start, y, svg.shortened(node_line.label, (columns.detail if node_line.detail else columns.status) - _TREE_GAP - start)
    )
    yield svg.text_line(columns.detail, y, svg.fitted(node_line.detail, columns.status - _TREE_GAP - columns.detail), "m n")
    yield svg.text_line(columns.status, y, svg.fitted(node_line.status, columns.end - columns.status), "m")


def _mark(x: float, y: float, colour: int, tip: str = "") -> Iterator[str]:
    """The letter of a status on its colour."""
    yield svg.box(x, y, _MARK, _MARK, svg.hue(colour), 4.0, tip)
    yield svg.text_line(x + _MARK / 2.0, y + 12.0, svg.letter(colour), "on", "middle", 11.0)
