"""The graph of a trace: its replay, excerpts, operations that take turns, what a change does to it, and copies to be shared."""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from heapq import heappop, heappush
from itertools import pairwise
from random import Random
from typing import Final, Literal

import numpy as np

from crossopt.crossflow.arrays import Ints

# The graph of a trace: operations with dependencies, their replay, excerpts, and operations that share resources.

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
    kinds: Ints
    """Indices into KINDS."""
    places: Ints
    """Index of the thread or stream in `resources`."""
    durations: Ints
    """Nanoseconds."""
    resources: tuple[str, ...]
    before: Ints
    after: Ints
    """Each edge as the indices of two operations."""
    reasons: Ints
    """Index into EDGES of each edge."""
    bytes: Ints
    """Bytes moved or sent; 0 if unknown."""
    flops: Ints
    groups: tuple[str, ...]
    """Participants of a collective, as the trace names them; empty otherwise."""
    inputs: tuple[str, ...]
    """The operator that launched device work, with types and shapes of its inputs: `aten::mm(float 64x8, float 8x4)`; empty if unknown."""

    def __len__(self) -> int:
        return len(self.names)


def graph_of(
    operations: Sequence[tuple[str, str, str, int]],
    edges: Sequence[tuple[int, int, str]],
    moved: Sequence[int] = (),
    flops: Sequence[int] = (),
    groups: Sequence[str] = (),
    inputs: Sequence[str] = (),
) -> Graph:
    """The graph from operations (name, kind, thread or stream, nanoseconds) and edges (before, after, reason)."""
    count = len(operations)
    resources = tuple(dict.fromkeys(operation[2] for operation in operations))
    place_of = {name: index for index, name in enumerate(resources)}
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
        tuple(inputs or [""] * count),
    )


def _integers(numbers: Iterable[int]) -> Ints:
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
    """Begin and end of each operation, in nanoseconds from the first begin."""

    begins: Ints
    ends: Ints

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
    """A topological order in which the next work on its stream, or the gap before, follows work of a device, unless it waits for
    more. Otherwise threads come before devices. What stands in a row may become one: whatever waits for a part of it comes
    behind all of it. A ValueError if the graph has a cycle.
    """
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
        for follower in followers[operation]:
            waits[follower] -= 1
            if waits[follower] == 0 and along and following < 0 and places[follower] == places[operation]:
                following = follower
            elif waits[follower] == 0:
                (devices if works[follower] else threads).append(follower)
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
    """Indices of each operation and of the next on the same resource, by start time; those in `beside` run without occupying one."""
    lanes, last = graph.places.tolist(), dict[int, int]()
    for number, operation in enumerate(beside, len(graph.resources)):
        lanes[operation] = number
    for operation in _begun(graph, lanes, numbers):
        if lanes[operation] in last:
            yield last[lanes[operation]], operation
        last[lanes[operation]] = operation


def _begun(graph: Graph, lanes: Sequence[int], numbers: Sequence[int]) -> Iterator[int]:
    """All operations by start time, one at a time per lane; those on a cycle are left out."""
    durations, followers = graph.durations.tolist(), followers_of(graph)
    waits = np.bincount(graph.after, minlength=len(graph)).tolist()
    ready = [operation for operation, count in enumerate(waits) if count == 0]
    waiting, running = defaultdict[int, list[tuple[int, int]]](list), list[tuple[int, int]]()
    busy, changed, now = set[int](), set[int](), 0
    while True:
        for operation in ready:
            heappush(waiting[lanes[operation]], (numbers[operation], operation))
            changed.add(lanes[operation])
        for lane in changed - busy:
            if waiting[lane]:
                _, operation = heappop(waiting[lane])
                yield operation
                busy.add(lane)
                heappush(running, (now + durations[operation], operation))
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
        total = sum(int(graph.durations[operation]) for operation in places)
        ends = [total * number // len(places) for number in range(count + 1)]
        chosen = [places[len(places) * number // count] for number in range(count)]
        took |= {operation: end - start for operation, (start, end) in zip(chosen, pairwise(ends), strict=True)}
    order = order_of(graph)
    places = [operation for operation in order if operation in took]
    number = {operation: index for index, operation in enumerate(places)}
    operations = [(graph.names[index], KINDS[graph.kinds[index]], graph.resources[graph.places[index]], took[index]) for index in places]
    moved, flops = ([int(column[operation]) for operation in places] for column in (graph.bytes, graph.flops))
    groups, inputs = ([column[operation] for operation in places] for column in (graph.groups, graph.inputs))
    return graph_of(operations, _waits(graph, order, number), moved, flops, groups, inputs)


def _waits(graph: Graph, order: Sequence[int], number: dict[int, int]) -> list[tuple[int, int, str]]:
    """Edges to each kept operation from the last kept operation of each thread or stream that it depended on."""
    before = dict[int, list[int]]()
    for source, target in zip(graph.before.tolist(), graph.after.tolist(), strict=True):
        before.setdefault(target, []).append(source)
    seen, edges, latest = dict[int, dict[int, int]](), list[tuple[int, int, str]](), dict[int, int]()
    for operation in order:
        last = dict[int, int]()
        for source in before.get(operation, []):
            for resource, origin in seen[source].items():
                last[resource] = max(last.get(resource, -1), origin)
        if operation in number:
            own = int(graph.places[operation])
            last |= {own: latest[own]} if own in latest else {}
            edges += [(origin, number[operation], "stream" if resource == own else "data") for resource, origin in sorted(last.items())]
            last[own] = latest[own] = number[operation]
        seen[operation] = last
    return edges


# Effects of a change on the graph of a trace: new durations, removed edges, and copies of operations.
#
# Every change is read off the graph as traced. Several act one after another in their order: where two touch one operation, the second
# takes what the first left of it, and every copy follows its original. Times are whole nanoseconds, rounded up, so that nothing is promised
# that a change does not give:
#
#     a time of d becomes  ceil(g min(d, l)) + ceil(f max(d - l, 0)) + m      latency l and its factor g, factor f of the rest, m more
#
# which never falls where d grows. A change that shortens has f, g <= 1, no m, no copy and no new edge: with it nothing ends later, whatever
# else is changed (replay.py). Edges are new only from earlier to later operations of one order of the traced graph, in which parts of what
# becomes one stand in a row (`order_along_streams`): none closes a cycle.
# The changes are those of Daydream (Zhu, Phanishayee, Pekhimenko, USENIX ATC 2020) as far as a trace alone holds what they need.

Transform = Literal[
    "scale", "amp", "fuse", "remove", "unwait", "cpu", "cuda-graph", "bandwidth", "latency", "compress", "overlap", "recompute"
]
ASSUMPTIONS: Mapping[Transform, str] = {
    "scale": "these operations take `factor` of their time; everything else is unchanged",
    "amp": (
        "kernels of matrix products take a third and other kernels half of their time, as in Daydream; copies and host work are unchanged"
    ),
    "fuse": (
        "consecutive kernels on a stream become one that takes `factor` of their summed time; kernels separated by other work are not fused"
    ),
    "remove": "these operations, and launches of nothing else, take no time; their successors depend on their predecessors",
    "unwait": "these calls are removed with their waits; data read after them are assumed not to be needed yet",
    "cpu": "host threads take `factor` of their time, unexplained gaps included; devices are unchanged",
    "cuda-graph": (
        "consecutive launches become one and work between them is removed; waits, blocking copies, memory calls and long gaps are kept"
    ),
    "bandwidth": "a collective is `latency` followed by a transfer, which is faster by `times`; waiting counts as transfer",
    "latency": "the first `latency` of a collective takes `factor` of its time; the transfer is unchanged",
    "compress": "a collective moves `factor` of its bytes in the same share of its time; `overhead` is added to each for packing",
    "overlap": "gradients become ready in proportion to bytes sent: a collective waits for its part, its launch, and earlier collectives",
    "recompute": "these kernels run again, launched in time, before the next operation on their stream that `before` names",
}
"""Assumptions of each transform."""
PRODUCTS = ("*gemm*", "*matmul*", "*conv*", "*cutlass*", "*xmma*", "*cudnn*", "*wgrad*", "*dgrad*", "*flash*")
"""Names of kernels that count as matrix products by default."""
MEMORY = ("alloc", "free")
"""Parts of names of calls that allocate or free memory."""
LONGEST_GAP = 1_000_000
"""Longest unexplained host time, in ns, that can be part of a captured graph; longer gaps are, for example, data loading."""


@dataclass(frozen=True, slots=True)
class Rescale:
    """New durations of operations."""

    factor: Fraction = Fraction(1)
    latency: int = 0
    of_latency: Fraction = Fraction(1)
    more: int = 0

    @property
    def shortens(self) -> bool:
        return self.factor <= 1 and self.of_latency <= 1 and not self.more

    def __call__(self, took: int) -> int:
        """Nanoseconds, rounded up."""
        first = min(took, self.latency)
        return _part(first, self.of_latency) + _part(took - first, self.factor) + self.more


def _part(took: int, factor: Fraction) -> int:
    """ceil(factor took)."""
    return -(-took * factor.numerator // factor.denominator)


NOTHING = Rescale(Fraction(0))


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of one change."""

    rescaled: tuple[tuple[tuple[int, ...], Rescale], ...] = ()
    """Operations by index, each at most once, and their new durations."""
    dropped: frozenset[int] = frozenset()
    """Indices of removed edges."""
    copies: tuple[int, ...] = ()
    """Originals of operations that run once more."""
    added: tuple[tuple[int, int], ...] = ()
    """New edges between indices; a copy is -1 minus its index among the copies."""
    fused: tuple[tuple[int, ...], ...] = ()
    """Consecutive operations that become one: successors of a part wait for the last, and the first waits for predecessors of all parts."""

    @property
    def shortens(self) -> bool:
        """Whether no operation can end later because of the change, whatever else is changed."""
        return not self.copies and not self.added and not self.fused and all(rescale.shortens for _, rescale in self.rescaled)

    @property
    def touches(self) -> bool:
        return bool(self.dropped or self.copies or self.added or self.fused or any(places for places, _ in self.rescaled))


def changed(graph: Graph, effects: Sequence[Effect]) -> Graph:
    """The graph after changes, applied in order."""
    durations, originals = graph.durations.tolist(), list(range(len(graph)))
    added, dropped = list[tuple[int, int]](), set[int]()
    for effect in effects:
        first = len(durations)
        durations += [durations[original] for original in effect.copies]
        originals += effect.copies
        for places, rescale in effect.rescaled:
            touched = set(places)
            for index, original in enumerate(originals):
                if original in touched:
                    durations[index] = rescale(durations[index])
        added += [(_node_number(source, first), _node_number(target, first)) for source, target in effect.added]
        dropped |= effect.dropped
    edges = zip(graph.before.tolist(), graph.after.tolist(), strict=True)
    present = [*(edge for index, edge in enumerate(edges) if index not in dropped), *added]
    for effect in effects:
        parts = ends_of_parts(effect)
        more = [edge for joined in present for edge in joined_ends(parts, joined, len(graph))] if parts else []
        present, added = present + more, added + more
    return _built(graph, durations, originals, added, dropped)


def ends_of_parts(effect: Effect) -> dict[int, tuple[int, int]]:
    """For each part of a merged operation, the first and the last part."""
    return {part: (chain[0], chain[-1]) for chain in effect.fused for part in chain}


def joined_ends(parts: Mapping[int, tuple[int, int]], edge: tuple[int, int], count: int) -> Iterator[tuple[int, int]]:
    """The edge that another one brings with it at merged operations: from the last part of one to the first part of the next.

    There is none inside a merged operation, none equal to the edge itself, and none for copies (indices from `count` on).
    """
    before, after = (parts.get(end, (end, end)) for end in edge)
    joined = before[1], after[0]
    if before != after and joined != edge and max(edge) < count:
        yield joined


def _node_number(end: int, first: int) -> int:
    return end if end >= 0 else first - 1 - end


def _built(graph: Graph, durations: Sequence[int], originals: Sequence[int], added: Sequence[tuple[int, int]], dropped: set[int]) -> Graph:
    remaining = np.ones(len(graph.before), bool)
    remaining[list(dropped)] = False
    more = np.array(added, np.int64).reshape(-1, 2)
    return replace(
        graph,
        names=tuple(graph.names[original] for original in originals),
        groups=tuple(graph.groups[original] for original in originals),
        inputs=tuple(graph.inputs[original] for original in originals),
        durations=np.array(durations, np.int64),
        kinds=graph.kinds[originals],
        places=graph.places[originals],
        bytes=graph.bytes[originals],
        flops=graph.flops[originals],
        before=np.concatenate([graph.before[remaining], more[:, 0]]),
        after=np.concatenate([graph.after[remaining], more[:, 1]]),
        reasons=np.concatenate([graph.reasons[remaining], np.full(len(more), EDGES.index("data"), np.int64)]),
    )


# --- the changes ---------------------------------------------------------------------------------------------------------------------


def scale(places: Sequence[int], factor: Fraction) -> Effect:
    """These operations at this factor of their time."""
    return Effect(((tuple(places), Rescale(factor)),))


def amp(products: Sequence[int], others: Sequence[int]) -> Effect:
    """Half precision: a third for products, half for other kernels (Daydream, section 5)."""
    return Effect(((tuple(products), Rescale(Fraction(1, 3))), (tuple(others), Rescale(Fraction(1, 2)))))


def fuse(graph: Graph, places: Sequence[int], factor: Fraction) -> Effect:
    """Fusion of consecutive kernels on a stream, as far as none depends on anything that depends on an earlier one."""
    chains = _rows_of(graph, set(places))
    followers = {part for chain in chains for part in chain[1:]}
    dropped = frozenset(launch.edge for launch in _launches(graph) if launch.work in followers)
    gone = _launches_of(graph, followers) | {gap for gap, work in _gaps(graph).items() if work in followers}
    fused = {part for chain in chains for part in chain} - gone
    rescaled = [(tuple(sorted(gone)), NOTHING)]
    rescaled += [(tuple(sorted(fused)), Rescale(factor))] if factor != 1 else []
    return Effect(tuple(rescaled) if fused else (), dropped, fused=tuple(chains))


def _rows_of(graph: Graph, wanted: set[int]) -> list[tuple[int, ...]]:
    """Runs of kernels, each next after the previous one on its stream, with the gaps between them.

    Between two of them in the order lie only gaps that precede the second alone.
    """
    ends = zip(graph.before.tolist(), graph.after.tolist(), graph.reasons.tolist(), strict=True)
    streamed = {(source, target) for source, target, reason in ends if reason == EDGES.index("stream")}
    gap_before, followers, rows, between = _gaps(graph), followers_of(graph), list[list[int]](), list[int]()
    for kernel in order_along_streams(graph):
        if kernel in wanted:
            is_next = (
                rows
                and (rows[-1][-1], kernel) in streamed
                and all(gap_before.get(source) == kernel and set(followers[source]) == {kernel} for source in between)
            )
            if is_next:
                rows[-1] += [*between, kernel]
            else:
                rows.append([kernel])
            between = []
        else:
            between.append(kernel)
    return [tuple(row) for row in rows if len(row) > 1]


def remove(graph: Graph, places: Sequence[int]) -> Effect:
    """Operations, and launches of nothing else, that take no time."""
    gone = set(places)
    gaps = {gap for gap, work in _gaps(graph).items() if work in gone}
    return Effect(((tuple(sorted(gone | gaps | _launches_of(graph, gone))), NOTHING),))


def unwait(graph: Graph, places: Sequence[int]) -> Effect:
    """Removed synchronisation calls: the thread continues while the device work runs."""
    waits = (graph.reasons == EDGES.index("wait")) & np.isin(graph.after, places)
    return Effect(((tuple(places), NOTHING),), frozenset(np.flatnonzero(waits).tolist()))


def cpu(graph: Graph, factor: Fraction) -> Effect:
    """Faster host threads."""
    threads = {int(graph.places[operation]) for operation in of_kinds(graph, ("host", "wait"))}
    return scale([operation for operation in of_kinds(graph, ("host", "gap")) if int(graph.places[operation]) in threads], factor)


def cuda_graph(graph: Graph, places: Sequence[int], longest_gap: int = LONGEST_GAP) -> Effect:
    """Consecutive launches merged into one; nothing between the first and the last may be impossible in a captured graph."""
    wanted, launched = set(places), dict[int, set[int]]()
    for launch in _launches(graph):
        launched.setdefault(launch.call, set()).add(launch.work)
    found, lines = list[int](), dict[int, list[int]]()
    for operation in order_along_streams(graph):
        lines.setdefault(int(graph.places[operation]), []).append(operation)
    for line in lines.values():
        open_, since = False, list[int]()
        for operation, following in pairwise([*line, -1]):
            if not launched.get(operation, wanted) <= wanted or _breaks(graph, operation, following, launched, longest_gap):
                open_, since = False, []
            elif operation in launched:
                found += [*since, operation] if open_ else []
                open_, since = True, []
            else:
                since.append(operation)
    return Effect(((tuple(sorted(found)), NOTHING),) if found else ())


def _breaks(graph: Graph, operation: int, following: int, launched: Mapping[int, set[int]], longest_gap: int) -> bool:
    """Whether a captured graph cannot contain this: a wait, taking or freeing memory, a long unexplained time, or a blocking copy.

    A copy blocks if the rest of its call follows it (the call sees it begin), or if its memory is not pinned.
    """
    kind, name = KINDS[int(graph.kinds[operation])], graph.names[operation].casefold()
    if kind == "gap":
        return name == "gap" and int(graph.durations[operation]) > longest_gap
    copies = [work for work in launched.get(operation, ()) if KINDS[int(graph.kinds[work])] == "copy"]
    rest = following >= 0 and following not in launched and graph.names[following] == graph.names[operation]
    blocks = rest or any("pageable" in graph.names[work].casefold() for work in copies)
    return kind == "wait" or any(part in name for part in MEMORY) or (bool(copies) and blocks)


def bandwidth(places: Sequence[int], times: Fraction, latency: int) -> Effect:
    """Transfers at this multiple of the bandwidth."""
    return Effect(((tuple(places), Rescale(1 / times, latency)),))


def less_latency(places: Sequence[int], factor: Fraction, latency: int) -> Effect:
    """Collectives with this factor on their latency."""
    return Effect(((tuple(places), Rescale(Fraction(1), latency, factor)),))


def compress(places: Sequence[int], factor: Fraction, overhead: int) -> Effect:
    """Fewer bytes, and additional time for packing."""
    return Effect(((tuple(places), Rescale(factor, more=overhead)),))


def overlap(graph: Graph, places: Sequence[int], gradients: Sequence[int]) -> Effect:
    """Collectives that wait only for their part of the gradients, their launch and the previous collective on their stream.

    Only those that wait for some gradient as traced. Of k gradients a collective waits for the ceil(k times the share of bytes that is
    sent when it ends)-th, or for the last one before it in the order of the trace."""
    order = order_along_streams(graph)
    rank = {operation: number for number, operation in enumerate(order)}
    behind = _behind(graph, order, set(gradients))
    sent, ready = [operation for operation in order if operation in behind.intersection(places)], sorted(gradients, key=rank.__getitem__)
    sizes = graph.bytes[sent].tolist()
    sizes = sizes if all(sizes) else [1] * len(sent)
    dropped, added = _freed(graph, set(sent))
    so_far = 0
    for operation, size in zip(sent, sizes, strict=True):
        so_far += size
        part = ready[: -(-len(ready) * so_far // sum(sizes))]
        added.append((next(gradient for gradient in reversed(part) if rank[gradient] < rank[operation]), operation))
    return Effect((), frozenset(dropped), (), tuple(added))


def _behind(graph: Graph, order: Sequence[int], first: set[int]) -> set[int]:
    """Operations that depend on these, directly or not, without the order of a thread."""
    waits = graph.reasons != EDGES.index("thread")
    followers, found = followers_of(replace(graph, before=graph.before[waits], after=graph.after[waits])), set[int]()
    for operation in order:
        if operation in found or operation in first:
            found.update(followers[operation])
    return found


def _freed(graph: Graph, moved: set[int]) -> tuple[set[int], list[tuple[int, int]]]:
    """Edges removed so that collectives wait only for launches and earlier collectives on their stream, and edges that replace them."""
    collectives = moved | set(of_kinds(graph, ("collective",)))
    launches = {launch.edge for launch in _launches(graph)}
    arriving = {int(graph.after[edge]) for edge in launches} & _gaps(graph).keys()
    stream, edges = EDGES.index("stream"), list(zip(graph.before.tolist(), graph.after.tolist(), graph.reasons.tolist(), strict=True))
    streamed = dict[int, list[int]]()
    for source, target, reason in edges:
        if reason == stream:
            streamed.setdefault(target, []).append(source)
    dropped, added = set[int](), list[tuple[int, int]]()
    for edge, (source, target, reason) in enumerate(edges):
        stays = edge in launches or (reason == stream and (source in collectives or source in arriving))
        if target in moved and not stays:
            dropped.add(edge)
    for collective in sorted(moved):
        seen, waiting = {collective}, [source for source in streamed.get(collective, []) if source not in collectives]
        while waiting:
            source = waiting.pop()
            if source in collectives:
                added.append((source, collective))
            elif source not in seen:
                waiting += streamed.get(source, [])
            seen.add(source)
    return dropped, list(dict.fromkeys(added))


def recompute(graph: Graph, places: Sequence[int], before: Sequence[int]) -> Effect:
    """Kernels that run again, in order, before the next operation of their stream that is in `before`."""
    ends, again = set(before), set(places)
    lines = dict[int, list[int]]()
    for operation in order_along_streams(graph):
        lines.setdefault(int(graph.places[operation]), []).append(operation)
    copies, added = list[int](), list[tuple[int, int]]()
    for line in lines.values():
        waiting = list[int]()
        for last, operation in pairwise([-1, *line]):
            if operation in ends and waiting:
                chain = [last, *(-1 - len(copies) - number for number in range(len(waiting))), operation]
                added += pairwise(chain)
                copies, waiting = [*copies, *waiting], []
            if operation in again:
                waiting.append(operation)
    return Effect((), frozenset(), tuple(copies), tuple(added))


def of_kinds(graph: Graph, kinds: Sequence[str]) -> list[int]:
    """Indices of operations of these kinds."""
    return np.flatnonzero(np.isin(graph.kinds, [KINDS.index(kind) for kind in kinds])).tolist()


@dataclass(frozen=True, slots=True)
class _Launch:
    """Edges from a call to the work that it launches, or to the gap before that work."""

    edge: int
    call: int
    work: int


def _launches(graph: Graph) -> Iterator[_Launch]:
    gaps = _gaps(graph)
    for edge in np.flatnonzero(graph.reasons == EDGES.index("launch")).tolist():
        after = int(graph.after[edge])
        yield _Launch(edge, int(graph.before[edge]), gaps.get(after, after))


def _gaps(graph: Graph) -> dict[int, int]:
    """Gaps on streams and the work that follows each: launch latency, or unexplained time."""
    gap, stream = KINDS.index("gap"), EDGES.index("stream")
    edges = np.flatnonzero((graph.reasons == stream) & (graph.kinds[graph.before] == gap) & (graph.kinds[graph.after] != gap))
    return dict(zip(graph.before[edges].tolist(), graph.after[edges].tolist(), strict=True))


def _launches_of(graph: Graph, works: set[int]) -> set[int]:
    """Calls that launch some of these operations and nothing else."""
    launched = list(_launches(graph))
    others = {launch.call for launch in launched if launch.work not in works}
    return {launch.call for launch in launched if launch.work in works} - others


# Copies of a graph that may be shared: without names and shapes, and drawn anew with the same statistics.

_ANY_NAME: Final = frozenset(_WORK) | {KINDS.index("gap")}
"""Kinds of which operations of different names exchange places."""
_KEPT_NAMES: Final = ("launch latency", "device gap")
"""What is on every trace, and says nothing about a program."""


# Without names: each name, thread, stream and group becomes a number. Times, bytes, FLOPs and dependencies stay.


def anonymous(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """The graph with pseudonyms in place of names, and the name that each of them stands for."""
    key, numbers = dict[str, str](), Counter[str]()

    def pseudonyms(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        found = dict[tuple[str, str], str]()
        for what, name in pairs:
            if (what, name) not in found:
                numbers[what] += 1
                found[what, name] = f"{what} {numbers[what]}"
                key[found[what, name]] = name
        return found

    kinds = [_class_of(name, KINDS[kind]) for name, kind in zip(graph.names, graph.kinds.tolist(), strict=True)]
    pairs = list(zip(kinds, graph.names, strict=True))
    names = pseudonyms(pair for pair in pairs if pair[1] not in _KEPT_NAMES)
    resources = pseudonyms(("thread" if name.startswith("thread") else "stream", name) for name in graph.resources)
    groups = pseudonyms(("group", name) for name in graph.groups if name)
    hidden = replace(
        graph,
        names=tuple(names.get(pair, pair[1]) for pair in pairs),
        resources=tuple(resources.values()),
        groups=tuple(groups.get(("group", name), "") for name in graph.groups),
        inputs=("",) * len(graph),
    )
    return hidden, key


def _class_of(name: str, kind: str) -> str:
    """The kind of an operation; of kernels also whether it is a product, which changes of precision ask for."""
    return "gemm" if kind == "kernel" and any(fnmatchcase(name, pattern) for pattern in PRODUCTS) else kind


# Drawn anew: within each phase, an equal part of the replayed span, operations that are alike exchange what they are.
#
# Work of one kind on one stream (and of one group) exchanges name, time, bytes and FLOPs; gaps of one thread or stream name and time, and
# calls of one name their times. So each phase keeps its number of operations, and the times, bytes and FLOPs of every kind and stream, to
# the last one; what waits for what stays, and the span changes. Fewer and longer phases leave less of the original: the longest ones are
# taken whose span, and whose time with any device busy, are near enough. One operation to a phase is the original itself.


@dataclass(frozen=True, slots=True)
class Drawn:
    """A drawn graph, its number of phases, and its span and busy time over those of the original, less 1."""

    graph: Graph
    phases: int
    span: float
    busy: float


def random_like(graph: Graph, seed: int, nearness: float = 0.05) -> Drawn:
    """A graph with the statistics of this one whose span and busy time differ by no more than a share."""
    begins = replay(graph).begins
    span, busy = figures_of(graph)
    phases = 1
    while True:
        random = Random(f"{seed} {phases}")
        order = np.argsort(begins, kind="stable")
        phase = np.minimum(begins * phases // max(span, 1), phases - 1) if phases < len(graph) else np.argsort(order)
        found = _exchanged(graph, phase, random)
        changes = tuple(now / before - 1.0 if before else 0.0 for now, before in zip(figures_of(found), (span, busy), strict=True))
        if max(map(abs, changes)) <= nearness or phases >= len(graph):
            return Drawn(found, min(phases, len(graph)), *changes)
        phases *= 2


def figures_of(graph: Graph) -> tuple[int, int]:
    """Nanoseconds of the replayed span, and those in which any device works."""
    again, works = replay(graph), np.isin(graph.kinds, _WORK)
    order = np.argsort(again.begins[works], kind="stable")
    begins, ends = again.begins[works][order], np.maximum.accumulate(again.ends[works][order])
    if not len(begins):
        return again.span, 0
    covered = ends - np.maximum(begins, np.concatenate([begins[:1], ends[:-1]]))
    return again.span, int(np.maximum(covered, 0).sum())


def _exchanged(graph: Graph, phase: Ints, random: Random) -> Graph:
    """Operations that are alike in one phase, in a random order."""
    alike = defaultdict[tuple[object, ...], list[int]](list)
    for operation, (kind, resource) in enumerate(zip(graph.kinds.tolist(), graph.places.tolist(), strict=True)):
        own = graph.groups[operation] if kind in _ANY_NAME else graph.names[operation]
        alike[int(phase[operation]), kind, resource, own].append(operation)
    source = list(range(len(graph)))
    for operations in alike.values():
        for operation, other in zip(operations, random.sample(operations, len(operations)), strict=True):
            source[operation] = other
    return replace(
        graph,
        names=_taken(graph.names, source),
        inputs=_taken(graph.inputs, source),
        durations=graph.durations[source],
        bytes=graph.bytes[source],
        flops=graph.flops[source],
    )


def _taken(column: Sequence[str], source: Sequence[int]) -> tuple[str, ...]:
    return tuple(column[operation] for operation in source)
