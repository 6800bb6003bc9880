"""The layers that a search has to place: those without any work, memory or traffic follow by themselves and are left out.

A layer is free if it takes no time, no memory and no parameters in every configuration, nothing is moved over its edges, and it offers
every number of devices that any layer offers. Wherever its predecessors end it can run at no cost, so that it only hands on their order:
each predecessor becomes one of each successor.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from crossopt.instances.stages.piper.graph import Configuration, PiperGraph
from crossopt.solvers.stages.piper.plan import Stage


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Rows of the graph in an order in which all data flow forward, and the arcs between their places."""

    graph: PiperGraph
    rows: tuple[int, ...]
    arcs: tuple[tuple[int, int], ...]
    free: tuple[int, ...]
    """Rows that are left out, in such an order too."""

    def __len__(self) -> int:
        return len(self.rows)


def network_of(graph: PiperGraph) -> Network:
    """The network without free layers; at least one layer stays."""
    before: list[set[int]] = [set() for _ in range(len(graph))]
    after: list[set[int]] = [set() for _ in range(len(graph))]
    for start, end in graph.edges:
        before[end].add(start)
        after[start].add(end)
    order = ordered(graph)
    every = {tensor for offer in graph.offers for tensor in offer}
    moved = _moved(graph)
    free = {row for row in order if row not in moved and set(graph.offers[row]) == every and all(map(_idle, _configurations(graph, row)))}
    if len(free) == len(graph):
        free.discard(order[0])
    for row in order:
        if row in free:
            for start in before[row]:
                after[start] = after[start] - {row} | after[row]
            for end in after[row]:
                before[end] = before[end] - {row} | before[row]
    rows = tuple(row for row in order if row not in free)
    place = {row: number for number, row in enumerate(rows)}
    arcs = tuple(sorted((place[start], place[row]) for row in rows for start in before[row]))
    return Network(graph, rows, arcs, tuple(row for row in order if row in free))


def with_free(network: Network, stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages with the layers that were left out: each in the last stage that holds one of its predecessors, else in the first."""
    graph = network.graph
    place = {row: number for number, stage in enumerate(stages) for row in stage.rows}
    free = {row: list[int]() for row in network.free}
    for start, end in graph.edges:
        if end in free:
            free[end].append(start)
    for row, before in free.items():
        place[row] = max((place[start] for start in before), default=0)
    return tuple(
        Stage(
            rows=(*stage.rows, *(added := tuple(row for row in network.free if place[row] == number))),
            data=stage.data,
            tensor=stage.tensor,
            configurations=(*stage.configurations, *(graph.offers[row][stage.tensor][0].name for row in added)),
        )
        for number, stage in enumerate(stages)
    )


def _configurations(graph: PiperGraph, row: int) -> list[Configuration]:
    return [one for configurations in graph.offers[row].values() for one in configurations]


def _idle(one: Configuration) -> bool:
    return not (one.time or one.parameters or one.stashed or one.fixed)


def _moved(graph: PiperGraph) -> set[int]:
    """Rows with an edge over which anything is moved in some configuration of either end."""
    found = set()
    for (start, end), size in zip(graph.edges, graph.sizes, strict=True):
        leaving = any(one.leaving.get(end) for one in _configurations(graph, start))
        entering = any(one.entering.get(start) for one in _configurations(graph, end))
        if size or leaving or entering:
            found |= {start, end}
    return found


def ordered(graph: PiperGraph) -> list[int]:
    """Rows in an order in which all data flow forward, as the file has them where that is one."""
    after: list[list[int]] = [[] for _ in range(len(graph))]
    waiting = [0] * len(graph)
    for start, end in graph.edges:
        after[start].append(end)
        waiting[end] += 1
    ready = [row for row, count in enumerate(waiting) if not count]
    order = []
    while ready:
        row = heappop(ready)
        order.append(row)
        for end in after[row]:
            waiting[end] -= 1
            if not waiting[end]:
                heappush(ready, end)
    return order
