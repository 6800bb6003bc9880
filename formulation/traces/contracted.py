"""A graph without the operations that no change touches: what is left takes exactly as long, whatever is chosen.

Longest paths add and take the greatest, so that an operation v that never changes may go:

    begin of v          a path u -> v -> w becomes an edge u -> w of  delay(u, v) + d_v + delay(v, w), the greatest of several
    where v may begin   w begins no earlier than  release(v) + d_v + delay(v, w)
    what follows v      the span is no less than the end of u + delay(u, v) + d_v + tail(v)

Before that, of several operations of one thread or stream for which v waits the last is enough: the others end no later than it begins.

An operation goes as long as the graph has no more edges without it, the one with the fewest paths through it first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush


@dataclass(slots=True)
class Contracted:
    """Operations that are left, by their places, and the edges between them that no change touches."""

    durations: list[int]
    before: list[dict[int, int]]
    """Of each operation those that it waits for, and the delay after their ends."""
    after: list[dict[int, int]]
    releases: list[int]
    """No operation begins before this."""
    tails: list[int]
    """What follows the end of an operation at the least; -1 for one that is gone."""
    span: int = 0
    """No choice takes less: of paths that hold nothing that changes."""
    left: list[int] = field(default_factory=list)


def contracted(durations: Sequence[int], edges: Iterable[tuple[int, int]], kept: Sequence[bool]) -> Contracted:
    """The graph without whatever of the others may go."""
    count = len(durations)
    graph = Contracted(list(durations), [{} for _ in range(count)], [{} for _ in range(count)], [0] * count, [0] * count)
    for one, other in edges:
        graph.before[other][one] = graph.after[one][other] = 0
    waiting = [(_paths(graph, place), place) for place in range(count) if not kept[place]]
    heapify(waiting)
    while waiting:
        paths, place = heappop(waiting)
        if graph.tails[place] < 0:
            continue
        now = _paths(graph, place)
        if now > paths:
            heappush(waiting, (now, place))
        elif now <= len(graph.before[place]) + len(graph.after[place]):
            around = {*graph.before[place], *graph.after[place]}
            _take_out(graph, place)
            for one in around:
                if not kept[one]:
                    heappush(waiting, (_paths(graph, one), one))
    graph.left = [place for place in range(count) if graph.tails[place] >= 0]
    return graph


def without_implied(edges: Sequence[tuple[int, int]], chains: Iterable[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """The edges without those that others imply; `chains` are edges among them, from each operation of a thread or stream to the next."""
    following, preceding = dict[int, int](), dict[int, int]()
    for one, other in chains:
        if one not in following and other not in preceding:
            following[one], preceding[other] = other, one
    chain, position = list(range(count)), [0] * count
    for place in range(count):
        if place not in preceding:
            while (after := following.get(place)) is not None:
                chain[after], position[after] = chain[place], position[place] + 1
                place = after  # noqa: PLW2901 - down the chain
    last = dict[tuple[int, int], int]()
    for one, other in edges:
        key = other, chain[one]
        last[key] = max(last.get(key, 0), position[one])
    return [(one, other) for one, other in edges if last[other, chain[one]] == position[one]]


def _paths(graph: Contracted, place: int) -> int:
    return len(graph.before[place]) * len(graph.after[place])


def _take_out(graph: Contracted, place: int) -> None:
    took, tail, release = graph.durations[place], graph.tails[place], graph.releases[place]
    before, after = graph.before[place], graph.after[place]
    graph.span = max(graph.span, release + took + tail)
    for one, delay in before.items():
        graph.tails[one] = max(graph.tails[one], delay + took + tail)
        del graph.after[one][place]
    for other, delay in after.items():
        graph.releases[other] = max(graph.releases[other], release + took + delay)
        del graph.before[other][place]
    for one, first in before.items():
        for other, second in after.items():
            delay = max(first + took + second, graph.after[one].get(other, 0))
            graph.after[one][other] = graph.before[other][one] = delay
    graph.before[place], graph.after[place], graph.tails[place] = {}, {}, -1
