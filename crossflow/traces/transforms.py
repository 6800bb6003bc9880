"""Effects of a change on the graph of a trace: new durations, removed edges, and copies of operations.

Every change is read off the graph as traced. Several act one after another in their order: where two touch one operation, the second takes
what the first left of it, and every copy follows its original. Times are whole nanoseconds, rounded up, so that nothing is promised that
a change does not give:

    a time of d becomes  ceil(g min(d, l)) + ceil(f max(d - l, 0)) + m      latency l and its factor g, factor f of the rest, m more

which never falls where d grows. A change that shortens has f, g <= 1, no m, no copy and no new edge: with it nothing ends later, whatever
else is changed (replay.py). Edges are new only from earlier to later operations of one order of the traced graph, in which parts of what
becomes one stand in a row (`order_along_streams`): none closes a cycle.
The changes are those of Daydream (Zhu, Phanishayee, Pekhimenko, USENIX ATC 2020) as far as a trace alone holds what they need.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Literal

import numpy as np

from crossopt.crossflow.traces.graph import EDGES, KINDS, Graph, followers_of, order_along_streams

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
            for place, original in enumerate(originals):
                if original in touched:
                    durations[place] = rescale(durations[place])
        added += [(_node_number(one, first), _node_number(other, first)) for one, other in effect.added]
        dropped |= effect.dropped
    edges = zip(graph.before.tolist(), graph.after.tolist(), strict=True)
    held = [*(edge for place, edge in enumerate(edges) if place not in dropped), *added]
    for effect in effects:
        parts = ends_of_parts(effect)
        more = [edge for one in held for edge in joined_ends(parts, one, len(graph))] if parts else []
        held, added = held + more, added + more
    return _built(graph, durations, originals, added, dropped)


def ends_of_parts(effect: Effect) -> dict[int, tuple[int, int]]:
    """For each part of a merged operation, the first and the last part."""
    return {part: (chain[0], chain[-1]) for chain in effect.fused for part in chain}


def joined_ends(parts: Mapping[int, tuple[int, int]], edge: tuple[int, int], count: int) -> Iterator[tuple[int, int]]:
    """The edge that replaces one at merged operations."""
    before, after = (parts.get(end, (end, end)) for end in edge)
    joined = before[1], after[0]
    if before != after and joined != edge and max(edge) < count:
        yield joined


def _node_number(end: int, first: int) -> int:
    return end if end >= 0 else first - 1 - end


def _built(graph: Graph, durations: Sequence[int], originals: Sequence[int], added: Sequence[tuple[int, int]], dropped: set[int]) -> Graph:
    kept = np.ones(len(graph.before), bool)
    kept[list(dropped)] = False
    more = np.array(added, np.int64).reshape(-1, 2)
    return replace(
        graph,
        names=tuple(graph.names[original] for original in originals),
        groups=tuple(graph.groups[original] for original in originals),
        durations=np.array(durations, np.int64),
        kinds=graph.kinds[originals],
        places=graph.places[originals],
        bytes=graph.bytes[originals],
        flops=graph.flops[originals],
        before=np.concatenate([graph.before[kept], more[:, 0]]),
        after=np.concatenate([graph.after[kept], more[:, 1]]),
        reasons=np.concatenate([graph.reasons[kept], np.full(len(more), EDGES.index("data"), np.int64)]),
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
    """Runs of kernels, each following the previous one on its stream, with only gaps of the same stream between them."""
    ends = zip(graph.before.tolist(), graph.after.tolist(), graph.reasons.tolist(), strict=True)
    streamed = {(one, other) for one, other, reason in ends if reason == EDGES.index("stream")}
    gap_before, followers, rows, between = _gaps(graph), followers_of(graph), list[list[int]](), list[int]()
    for place in order_along_streams(graph):
        if place in wanted:
            is_next = (
                rows
                and (rows[-1][-1], place) in streamed
                and all(gap_before.get(one) == place and set(followers[one]) == {place} for one in between)
            )
            if is_next:
                rows[-1] += [*between, place]
            else:
                rows.append([place])
            between = []
        else:
            between.append(place)
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
    threads = {int(graph.places[place]) for place in of_kinds(graph, ("host", "wait"))}
    return scale([place for place in of_kinds(graph, ("host", "gap")) if int(graph.places[place]) in threads], factor)


def cuda_graph(graph: Graph, places: Sequence[int], longest_gap: int = LONGEST_GAP) -> Effect:
    """Consecutive launches merged into one; nothing between the first and the last may be impossible in a captured graph."""
    wanted, launched = set(places), dict[int, set[int]]()
    for launch in _launches(graph):
        launched.setdefault(launch.call, set()).add(launch.work)
    found, lines = list[int](), dict[int, list[int]]()
    for place in order_along_streams(graph):
        lines.setdefault(int(graph.places[place]), []).append(place)
    for line in lines.values():
        open_, since = False, list[int]()
        for place, following in pairwise([*line, -1]):
            if not launched.get(place, wanted) <= wanted or _breaks(graph, place, following, launched, longest_gap):
                open_, since = False, []
            elif place in launched:
                found += [*since, place] if open_ else []
                open_, since = True, []
            else:
                since.append(place)
    return Effect(((tuple(sorted(found)), NOTHING),) if found else ())


def _breaks(graph: Graph, place: int, following: int, launched: Mapping[int, set[int]], longest_gap: int) -> bool:
    """Whether a captured graph cannot contain this: a wait, an allocation, a long unexplained time, or a blocking copy."""
    kind, name = KINDS[int(graph.kinds[place])], graph.names[place].casefold()
    if kind == "gap":
        return name == "gap" and int(graph.durations[place]) > longest_gap
    copies = [work for work in launched.get(place, ()) if KINDS[int(graph.kinds[work])] == "copy"]
    rest = following >= 0 and following not in launched and graph.names[following] == graph.names[place]
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
    rank = {place: number for number, place in enumerate(order)}
    behind = _behind(graph, order, set(gradients))
    sent, ready = [place for place in order if place in behind.intersection(places)], sorted(gradients, key=rank.__getitem__)
    sizes = graph.bytes[sent].tolist()
    sizes = sizes if all(sizes) else [1] * len(sent)
    dropped, added = _freed(graph, set(sent))
    so_far = 0
    for place, size in zip(sent, sizes, strict=True):
        so_far += size
        part = ready[: -(-len(ready) * so_far // sum(sizes))]
        added.append((next(gradient for gradient in reversed(part) if rank[gradient] < rank[place]), place))
    return Effect((), frozenset(dropped), (), tuple(added))


def _behind(graph: Graph, order: Sequence[int], first: set[int]) -> set[int]:
    """Successors of these operations, without the order of a thread."""
    waits = graph.reasons != EDGES.index("thread")
    followers, found = followers_of(replace(graph, before=graph.before[waits], after=graph.after[waits])), set[int]()
    for place in order:
        if place in found or place in first:
            found.update(followers[place])
    return found


def _freed(graph: Graph, moved: set[int]) -> tuple[set[int], list[tuple[int, int]]]:
    """Edges removed so that collectives wait only for launches and earlier collectives on their stream, and edges that replace them."""
    collectives = moved | set(of_kinds(graph, ("collective",)))
    launches = {launch.edge for launch in _launches(graph)}
    arriving = {int(graph.after[edge]) for edge in launches} & _gaps(graph).keys()
    stream, edges = EDGES.index("stream"), list(zip(graph.before.tolist(), graph.after.tolist(), graph.reasons.tolist(), strict=True))
    streamed = dict[int, list[int]]()
    for one, other, reason in edges:
        if reason == stream:
            streamed.setdefault(other, []).append(one)
    dropped, added = set[int](), list[tuple[int, int]]()
    for edge, (one, other, reason) in enumerate(edges):
        kept = edge in launches or (reason == stream and (one in collectives or one in arriving))
        if other in moved and not kept:
            dropped.add(edge)
    for place in sorted(moved):
        seen, waiting = {place}, [one for one in streamed.get(place, []) if one not in collectives]
        while waiting:
            one = waiting.pop()
            if one in collectives:
                added.append((one, place))
            elif one not in seen:
                waiting += streamed.get(one, [])
            seen.add(one)
    return dropped, list(dict.fromkeys(added))


def recompute(graph: Graph, places: Sequence[int], before: Sequence[int]) -> Effect:
    """Kernels that run again, in order, before the next operation of their stream with the given name."""
    ends, again = set(before), set(places)
    lines = dict[int, list[int]]()
    for place in order_along_streams(graph):
        lines.setdefault(int(graph.places[place]), []).append(place)
    copies, added = list[int](), list[tuple[int, int]]()
    for line in lines.values():
        waiting = list[int]()
        for last, place in pairwise([-1, *line]):
            if place in ends and waiting:
                chain = [last, *(-1 - len(copies) - number for number in range(len(waiting))), place]
                added += pairwise(chain)
                copies, waiting = [*copies, *waiting], []
            if place in again:
                waiting.append(place)
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
