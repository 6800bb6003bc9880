"""Some operations of a graph as a graph of their own, each as often as asked, with the time of all alike shared out.

Of the n operations of a class those that are kept are spread evenly: every n / x-th. They come in an order of the trace, those of a
thread or stream one after another, and each waits for the last kept one of each other that it waited for, through whatever was in between.
The first i of x copies take floor(i S / n) ns together, where all n take S, so that all x take the mean to a ns.
"""

from collections.abc import Sequence
from itertools import pairwise

from crossopt.crossflow.traces.graph import KINDS, Graph, graph_of
from crossopt.crossflow.traces.replay import order_of


def excerpt(graph: Graph, classes: Sequence[tuple[Sequence[int], int]]) -> Graph:
    """The graph of so many operations of each class."""
    took = dict[int, int]()
    for places, count in classes:
        whole = sum(int(graph.durations[place]) for place in places)
        ends = [whole * number // len(places) for number in range(count + 1)]
        kept = [places[len(places) * number // count] for number in range(count)]
        took |= {place: end - start for place, (start, end) in zip(kept, pairwise(ends), strict=True)}
    order = order_of(graph)
    places = [place for place in order if place in took]
    number = {place: one for one, place in enumerate(places)}
    operations = [(graph.names[one], KINDS[graph.kinds[one]], graph.resources[graph.places[one]], took[one]) for one in places]
    moved, flops = ([int(column[place]) for place in places] for column in (graph.bytes, graph.flops))
    return graph_of(operations, _waits(graph, order, number), moved, flops, [graph.groups[place] for place in places])


def _waits(graph: Graph, order: Sequence[int], number: dict[int, int]) -> list[tuple[int, int, str]]:
    """Edges to each kept operation from the last kept one of each thread or stream that it waited for."""
    before = dict[int, list[int]]()
    for one, other in zip(graph.before.tolist(), graph.after.tolist(), strict=True):
        before.setdefault(other, []).append(one)
    seen, edges, latest = dict[int, dict[int, int]](), list[tuple[int, int, str]](), dict[int, int]()
    for place in order:
        last = dict[int, int]()
        for one in before.get(place, []):
            for resource, kept in seen[one].items():
                last[resource] = max(last.get(resource, -1), kept)
        if place in number:
            own = int(graph.places[place])
            last |= {own: latest[own]} if own in latest else {}
            edges += [(kept, number[place], "stream" if resource == own else "data") for resource, kept in sorted(last.items())]
            last[own] = latest[own] = number[place]
        seen[place] = last
    return edges
