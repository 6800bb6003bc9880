"""A tree of exploration as a picture: one line a node, below its parent, with what was found there and what became of it.

Lines below each other keep words apart however deep and wide the tree is. Of a large tree the nodes nearest to the root are drawn, all
children of a node or none; for those that are left out a line says how many they are and what became of them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from crossopt.reports.drawing.svg import WIDTH, Titles, box, fitted, hue, letter, line, picture, shortened, text_line, widest, width_of

MOST: Final = 80
"""Nodes that are drawn, beside one line for each node whose children are not."""
_ROW: Final = 24.0
_INDENT: Final = 22.0
_DEEPEST: Final = 160.0
_SLIGHT: Final = 4.0
"""How far children are moved in at the least, so that long labels of deep trees find room."""
_MARK: Final = 16.0
_GAP: Final = 14.0
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


def tree_svg(nodes: Sequence[TreeNode], title: str, description: str, name: str = "tree", width: float = WIDTH) -> str:
    """The picture; `name` is as no other picture of the page has it. A ValueError without a node, and where one comes before its parent."""
    if not nodes:
        raise ValueError("a tree has at least one node")
    lines = _lines(nodes)
    statuses = list(dict.fromkeys(node.status for node in nodes))
    legend, top = _legend(nodes, statuses, width)
    columns = _columns(lines, width)
    body = [*legend, *_branches(lines, columns, top)]
    for place, one in enumerate(lines):
        body += _drawn(one, columns, top + place * _ROW, statuses)
    return picture(Titles(name, title, description, width), top + len(lines) * _ROW + 2.0, body)


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
        if children[number] and count + len(children[number]) <= MOST:
            opened.add(number)
            near += children[number]
            count += len(children[number])
    return opened


def _below(number: int, children: Sequence[Sequence[int]]) -> list[int]:
    found = list(children[number])
    for one in found:
        found += children[one]
    return found


def _left_out(nodes: Sequence[TreeNode], numbers: Sequence[int], depth: int, above: int) -> _Line:
    counts = Counter(nodes[number].status for number in numbers).most_common()
    ends = ", ".join(f"{count:,} {status}" for status, count in counts)
    return _Line(depth, f"{len(numbers):,} more node{'s' * (len(numbers) != 1)}: {ends}", "", "", above)


# --- how they are drawn --------------------------------------------------------------------------------------------------------------


def _columns(lines: Sequence[_Line], width: float) -> _Columns:
    """Close to each other where labels are short; long ones leave room for the other columns."""
    indent = min(_INDENT, _DEEPEST / max(1.0, *(float(one.depth) for one in lines)))
    status = min(widest(one.status for one in lines) + 1.0, width * _STATUS)
    detail = min(widest(one.detail for one in lines) + 1.0, width * _DETAIL)
    last = width - status - _GAP - detail
    rooms = [(last + (0.0 if one.detail else detail + _GAP) - _GAP - _MARK - 6.0 - width_of(one.label), one) for one in lines if one.status]
    indent = max(_SLIGHT, min([indent, *(room / one.depth for room, one in rooms if one.depth)]))
    ends = max(one.depth * indent + _MARK + 6.0 + width_of(one.label) * bool(one.status) for one in lines)
    start = min(ends + 2.0 * _GAP, last)
    return _Columns(indent, start, start + detail + _GAP, start + detail + _GAP + status, width)


def _legend(nodes: Sequence[TreeNode], statuses: Sequence[str], room: float) -> tuple[list[str], float]:
    """The letters of the statuses with how many nodes have each, in as many rows as they need, and where the tree begins."""
    counts, body, x, y = Counter(node.status for node in nodes), list[str](), 0.0, 4.0
    for place, status in enumerate(statuses):
        text = fitted(f"{status} ({counts[status]:,})", room - _MARK - 6.0)
        width = _MARK + 6.0 + width_of(text)
        if x and x + width > room:
            x, y = 0.0, y + _ROW
        body += [*_mark(x, y, place), text_line(x + _MARK + 6.0, y + 12.5, text, "m")]
        x += width + _GAP
    return body, y + _ROW + 6.0


def _branches(lines: Sequence[_Line], columns: _Columns, top: float) -> Iterator[str]:
    """From each parent down to its last child, and across to each of them."""
    middle = _ROW / 2.0
    for place, one in enumerate(lines):
        if one.above is not None:
            x, y = (one.depth - 1) * columns.indent + _MARK / 2.0, top + place * _ROW + middle
            start = top + one.above * _ROW + middle + _MARK / 2.0
            yield line([(x, start), (x, y), (one.depth * columns.indent, y)], "branch")


def _drawn(one: _Line, columns: _Columns, top: float, statuses: Sequence[str]) -> Iterator[str]:
    x, y = one.depth * columns.indent, top + _ROW / 2.0 + 4.5
    if not one.status:
        yield text_line(x + 4.0, y, fitted(one.label, columns.width - x - 4.0), "m")
        return
    yield from _mark(
        x, top + (_ROW - _MARK) / 2.0, statuses.index(one.status), " · ".join(part for part in (one.label, one.detail, one.status) if part)
    )
    start = x + _MARK + 6.0
    yield text_line(start, y, shortened(one.label, (columns.detail if one.detail else columns.status) - _GAP - start))
    yield text_line(columns.detail, y, fitted(one.detail, columns.status - _GAP - columns.detail), "m n")
    yield text_line(columns.status, y, fitted(one.status, columns.end - columns.status), "m")


def _mark(x: float, y: float, place: int, tip: str = "") -> Iterator[str]:
    """The letter of a status on its colour."""
    yield box(x, y, _MARK, _MARK, hue(place), 4.0, tip)
    yield text_line(x + _MARK / 2.0, y + 12.0, letter(place), "on", "middle", 11.0)
