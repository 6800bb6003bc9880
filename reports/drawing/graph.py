"""A directed graph drawn in layers: every arc leads down, and groups of nodes have colours and numbers.

Layers are those of the longest path; nodes with no fewer arcs out than in stand as low as they can, so that arcs are short. Inside a
layer nodes stand in the order of the mean place of their neighbours above and below (barycentres; Sugiyama, Tagawa and Toda 1981). A graph
that is deeper than wide is cut into strips side by side.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from crossopt.reports.drawing.svg import Titles, box, curve, hue, picture, text_line, width_of

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


def drawn(titles: Titles, graph: Graph) -> str:
    """The picture."""
    layer = layers_of(len(graph.groups), graph.arcs)
    rows = ordered(layer, graph.arcs)
    look = _look(graph)
    strips = _strips(rows, look.cell, titles.width)
    cell = min(look.cell, (titles.width - _GAP * (len(strips) - 1)) / sum(_width(strip) for strip in strips))
    step, half = look.step, min(cell / 2.0 - look.margin, look.half)
    place = _places(strips, cell, step, titles.width)
    height = max(len(strip) for strip in strips) * step + 8.0
    body = [*_arcs(graph, layer, place, look.bow), *_nodes(graph, place, half)]
    return picture(titles, height, body)


@dataclass(frozen=True, slots=True)
class _Look:
    """Room for a node and its layer, and how far arcs swing out around what stands between."""

    cell: float
    step: float
    margin: float
    half: float
    bow: float


def _look(graph: Graph) -> _Look:
    """Small marks for numbers; where labels are words, wide boxes with room between them."""
    label = max(width_of(text, 10.0) for text in graph.labels)
    if label <= _CELL - 8.0:
        return _Look(_CELL, _ROW, 1.5, 11.0, 11.0)
    half = label / 1.8 + 6.0
    return _Look(2.0 * half + 12.0, 2.0 * _ROW, 6.0, half, (half + 8.0) / 0.75)


def ordered(layer: Sequence[int], arcs: Arcs) -> list[list[int]]:
    """The nodes of each layer from left to right."""
    rows = [list[int]() for _ in range(max(layer, default=-1) + 1)]
    for node, depth in enumerate(layer):
        rows[depth].append(node)
    above, below = [list[int]() for _ in layer], [list[int]() for _ in layer]
    for start, end in arcs:
        above[end].append(start)
        below[start].append(end)
    where = {node: _share(place, len(row)) for row in rows for place, node in enumerate(row)}
    for sweep in range(_SWEEPS):
        near, way = (below, range(len(rows) - 1, -1, -1)) if sweep % 2 else (above, range(len(rows)))
        for depth in way:
            wanted = {node: sum(where[one] for one in near[node]) / len(near[node]) if near[node] else where[node] for node in rows[depth]}
            rows[depth].sort(key=lambda node: (wanted[node], where[node]))
            where.update({node: _share(place, len(rows[depth])) for place, node in enumerate(rows[depth])})
    return rows


def _share(place: int, count: int) -> float:
    return (place + 0.5) / count


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


def _places(strips: Sequence[Sequence[Sequence[int]]], cell: float, step: float, width: float) -> dict[int, tuple[float, float]]:
    """Where each node stands."""
    place, left = dict[int, tuple[float, float]](), 0.0
    spare = width - sum(_width(strip) for strip in strips) * cell
    gap = spare / len(strips)
    for strip in strips:
        room = _width(strip) * cell
        for depth, row in enumerate(strip):
            start = left + gap / 2.0 + (room - len(row) * cell) / 2.0
            place.update({node: (start + (number + 0.5) * cell, depth * step + step / 2.0 + 4.0) for number, node in enumerate(row)})
        left += room + gap
    return place


def _arcs(graph: Graph, layer: Sequence[int], place: dict[int, tuple[float, float]], clear: float) -> Iterator[str]:
    """Arcs inside a group thin, those between groups strong and above them."""
    inner = [(start, end) for start, end in graph.arcs if graph.groups[start] == graph.groups[end]]
    outer = [(start, end) for start, end in graph.arcs if graph.groups[start] != graph.groups[end]]
    for kind, arcs in (("arc", inner), ("arc moved", outer)):
        for start, end in arcs:
            bow = 0.0 if layer[end] - layer[start] == 1 else clear + min(2.0 * (layer[end] - layer[start]), 16.0)
            yield curve(place[start], place[end], kind, bow)


def _nodes(graph: Graph, place: dict[int, tuple[float, float]], half: float) -> Iterator[str]:
    tall = min(half, 9.0)
    for node, group in enumerate(graph.groups):
        x, y = place[node]
        corner = tall if graph.round[node] else 3.0
        yield box(x - half, y - tall, 2.0 * half, 2.0 * tall, f"{hue(group)} cut", corner, graph.tips[node] if graph.tips else "")
        if width_of(graph.labels[node], 10.0) <= 2.0 * half:
            yield text_line(x, y + 3.6, graph.labels[node], "on", "middle", 10.0)
