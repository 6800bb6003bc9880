"""The graph of a trace: operations with dependencies, their replay, excerpts, and operations that share resources."""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from crossopt.crossflow.arrays import Whole

# The graph of a trace: operations on threads and streams, and which of them waits for which.
#
# All times are whole nanoseconds. An operation begins when all that it waits for have ended; nothing else delays it. The order on a thread
# or a stream is an edge like every other, so that no choice is left when a graph is run again: what is shortened then never ends anything
# later (with a choice it may: Graham 1969).

KINDS = ("host", "gap", "kernel", "copy", "collective", "wait")
"""Kinds of operations: host work, unexplained host time, device kernels, device copies, collectives, and host waits."""
EDGES = ("thread", "stream", "launch", "wait", "data")
"""Reasons for an edge: order on a thread or stream, launch, wait for a device, data."""
SPAN_ENDS = 1 << 62
"""Upper limit in nanoseconds of every sum of durations."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Operations as columns, and edges as pairs of their indices."""

    names: tuple[str, ...]
    kinds: Whole
    """Indices into KINDS."""
    places: Whole
    """Index of the thread or stream in `resources`."""
    durations: Whole
    """Nanoseconds."""
    resources: tuple[str, ...]
    before: Whole
    after: Whole
    """Each edge as the indices of two operations."""
    reasons: Whole
    """Index into EDGES of each edge."""
    bytes: Whole
    """Bytes moved or sent; 0 if unknown."""
    flops: Whole
    groups: tuple[str, ...]
    """Participants of a collective, as the trace names them; empty otherwise."""

    def __len__(self) -> int:
        return len(self.names)


def graph_of(
    operations: Sequence[tuple[str, str, str, int]],
    edges: Sequence[tuple[int, int, str]],
    moved: Sequence[int] = (),
    flops: Sequence[int] = (),
    groups: Sequence[str] = (),
) -> Graph:
    """The graph from operations (name, kind, thread or stream, nanoseconds) and edges (before, after, reason)."""
    count = len(operations)
    resources = tuple(dict.fromkeys(operation[2] for operation in operations))
    place_of = {name: place for place, name in enumerate(resources)}
    return Graph(
        tuple(operation[0] for operation in operations),
        _integers(KINDS.index(operation[1]) for operation in operations),
        _integers(place_of[operation[2]] for operation in operations),
        _integers(operation[3] for operation in operations),
        resources,
        _integers(edge[0] for edge in edges),
        _integers(edge[1] for edge in edges),
        _integers(EDGES.index(edge[2]) for edge in edges),
        _integers(moved or [0] * count),
        _integers(flops or [0] * count),
        tuple(groups or [""] * count),
    )


def _integers(numbers: Iterable[int]) -> Whole:
    return np.fromiter(numbers, np.int64)


# When every operation of a graph begins and ends if all wait for what they waited for: the longest path through it.
#
#     begin of v = max over edges (u, v) of end of u, or 0;    end of v = begin of v + duration of v
#
# The span is the last end. Monotone: less of any duration, or an edge less, ends nothing later. That is what bounds of what-ifs rest on.

_WORK = [KINDS.index(kind) for kind in ("kernel", "copy", "collective")]
"""Whether the kind runs on a device."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Start of each operation, in nanoseconds from the first."""

    begins: Whole
    ends: Whole

    @property
    def span(self) -> int:
        return int(self.ends.max(initial=0))


def order_of(graph: Graph) -> list[int]:
    """All operations in topological order; a ValueError if the graph has a cycle."""
    waits = np.bincount(graph.after, minlength=len(graph)).tolist()
    followers = followers_of(graph)
    order = [operation for operation, count in enumerate(waits) if count == 0]
    for operation in order:
        for follower in followers[operation]:
            waits[follower] -= 1
            if waits[follower] == 0:
                order.append(follower)
    if len(order) < len(graph):
        raise ValueError("operations depend on each other in a cycle")
    return order


def order_along_streams(graph: Graph) -> list[int]:
    """A topological order in which work of a device is followed by the next on its stream, where possible. What stands in a row may become
    one: whatever waits for a part of it comes behind all of it."""
    waits, followers = np.bincount(graph.after, minlength=len(graph)).tolist(), followers_of(graph)
    works, places = np.isin(graph.kinds, _WORK).tolist(), graph.places.tolist()
    threads, devices = deque[int](), deque[int]()
    for operation in np.flatnonzero(np.equal(waits, 0)).tolist():
        (devices if works[operation] else threads).append(operation)
    order, following = list[int](), -1
    while following >= 0 or threads or devices:
        operation = following if following >= 0 else (threads or devices).popleft()
        along, following = following >= 0 or works[operation], -1
        order.append(operation)
        for one in followers[operation]:
            waits[one] -= 1
            if waits[one] == 0 and along and following < 0 and places[one] == places[operation]:
                following = one
            elif waits[one] == 0:
                (devices if works[one] else threads).append(one)
    if len(order) < len(graph):
        raise ValueError("operations depend on each other in a cycle")
    return order


def followers_of(graph: Graph) -> list[list[int]]:
    """Successors of each operation."""
    by_before = np.argsort(graph.before, kind="stable")
    bounds = np.searchsorted(graph.before[by_before], np.arange(len(graph) + 1)).tolist()
    after = graph.after[by_before].tolist()
    return [after[start:end] for start, end in pairwise(bounds)]


def replay(graph: Graph, order: list[int] | None = None) -> Replayed:
    """Earliest start of every operation."""
    durations, followers = graph.durations.tolist(), followers_of(graph)
    begins, ends = [0] * len(graph), [0] * len(graph)
    for operation in order_of(graph) if order is None else order:
        end = ends[operation] = begins[operation] + durations[operation]
        for follower in followers[operation]:
            begins[follower] = max(begins[follower], end)
    return Replayed(np.array(begins, np.int64), np.array(ends, np.int64))


def critical_path(graph: Graph, replayed: Replayed) -> list[int]:
    """A critical path: operations without slack from a source to the operation that ends last."""
    if not len(graph):
        return []
    last_of: dict[int, int] = {}
    tight = replayed.ends[graph.before] == replayed.begins[graph.after]
    for edge in np.flatnonzero(tight)[::-1].tolist():
        last_of[int(graph.after[edge])] = int(graph.before[edge])
    path = [int(replayed.ends.argmax())]
    while path[-1] in last_of:
        path.append(last_of[path[-1]])
    return path[::-1]


# Operations of which no start is known take turns: one at a time on each thread, stream, device or network.
#
# Whenever operations have ended, each resource that is free begins with the smallest number among those that wait for nothing more, as
# ASTRA-sim issues the nodes of a trace (astra-sim/astra-sim, workload/Workload.cc and HardwareResource.cc: one operation of the host, one
# computation and one message or collective at a time; any number of messages is awaited beside). The order that comes of it is kept as
# edges, each from an operation to one that began behind it, so that none closes a cycle and no choice is left when the graph is run again.

RULE = (
    "no start times were traced: operations of one thread, stream, device or network run in turn, the ready one "
    "with the smallest number first"
)
"""Assumptions of the replay."""
APART = "no collective waits for a kernel, nor a kernel for a collective, so the effect of faster links on kernels is not captured"
"""Limitation of a trace with kernels and collectives that are not connected."""


def are_apart(graph: Graph) -> bool:
    """Whether there are kernels and collectives, and no edge from the one kind to the other."""
    kernels, collectives = (graph.kinds == KINDS.index(kind) for kind in ("kernel", "collective"))
    between = (kernels[graph.before] & collectives[graph.after]) | (collectives[graph.before] & kernels[graph.after])
    return bool(kernels.any() and collectives.any() and not between.any())


def turns_of(graph: Graph, numbers: Sequence[int], beside: Collection[int] = ()) -> Iterator[tuple[int, int]]:
    """Indices of each operation and of the next on the same resource, by start time; those in `beside` are skipped."""
    lanes, last = graph.places.tolist(), dict[int, int]()
    for number, place in enumerate(beside, len(graph.resources)):
        lanes[place] = number
    for place in _begun(graph, lanes, numbers):
        if lanes[place] in last:
            yield last[lanes[place]], place
        last[lanes[place]] = place


def _begun(graph: Graph, lanes: Sequence[int], numbers: Sequence[int]) -> Iterator[int]:
    """All operations by start time, one at a time per lane; those on a cycle are left out."""
    durations, followers = graph.durations.tolist(), followers_of(graph)
    waits = np.bincount(graph.after, minlength=len(graph)).tolist()
    ready = [place for place, count in enumerate(waits) if count == 0]
    waiting, running = defaultdict[int, list[tuple[int, int]]](list), list[tuple[int, int]]()
    busy, changed, now = set[int](), set[int](), 0
    while True:
        for place in ready:
            heappush(waiting[lanes[place]], (numbers[place], place))
            changed.add(lanes[place])
        for lane in changed - busy:
            if waiting[lane]:
                _, place = heappop(waiting[lane])
                yield place
                busy.add(lane)
                heappush(running, (now + durations[place], place))
        if not running:
            return
        ready, changed, now = [], set(), running[0][0]
        while running and running[0][0] == now:
            _, ended = heappop(running)
            busy.remove(lanes[ended])
            changed.add(lanes[ended])
            for follower in followers[ended]:
                waits[follower] -= 1
                ready += [follower] if waits[follower] == 0 else []


# Some operations of a graph as a graph of their own, each as often as asked, with the time of all alike shared out.
#
# Of the n operations of a class those that are kept are spread evenly: every n / x-th. They come in an order of the trace, those of a
# thread or stream one after another, and each waits for the last kept one of each other that it waited for, through whatever was in
# between. The first i of x copies take floor(i S / n) ns together, where all n take S, so that all x take the mean to a ns.


def excerpt(graph: Graph, classes: Sequence[tuple[Sequence[int], int]]) -> Graph:
    """The class graph: a graph of this many operations of each class."""
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
    """Edges to each kept operation from the last kept operation of each thread or stream that it depended on."""
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
