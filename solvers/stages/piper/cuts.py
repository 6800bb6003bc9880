"""Where a network can be cut into stages, and what each layer and each stage can be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.instances.stages.piper import Configuration, PiperGraph, PiperQuestion
from crossopt.solvers.orders import every_ideal
from crossopt.solvers.stages.piper.judge import Stage

# The layers that a search has to place: those without any work, memory or traffic follow by themselves and are left out.
#
# A layer is free if it takes no time, no memory and no parameters in every configuration, nothing is moved over its edges, and it offers
# every number of devices that any layer offers. Wherever its predecessors end it can run at no cost, so that it only hands on their order:
# each predecessor becomes one of each successor.


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


# Where a network can be cut into stages: its ideals, sets of layers that hold every predecessor of theirs, as masks of bits.

MOST_IDEALS = 2_500
MOST_PAIRS = 250_000
_ORDERS = 6
_MOST_PREFIXES = 250
"""Of one order, where not all cuts are taken."""
_MOST_NEAR = 100
"""The same of an order near known stages."""


def ideals_of(count: int, arcs: Sequence[tuple[int, int]]) -> tuple[list[int], bool]:
    """Ideals by size, the empty one first, and whether these are all.

    Where there are too many, those along some orders in which all data flow forward: stages between them are stages of the network.
    """
    every = _every(count, arcs)
    if every is not None:
        return every, True
    kept = {int(place) for place in np.linspace(1, count, min(count, _MOST_PREFIXES)).round()}
    found = {0}
    for seed in range(_ORDERS):
        mask, prefixes = 0, set[int]()
        for size, place in enumerate(_order(count, arcs, seed), 1):
            mask |= 1 << place
            prefixes |= {mask} if size in kept else set()
        more = _by_size(found | prefixes)
        if seed and _pairs_at_most(more) > MOST_PAIRS // 4:
            break
        found |= prefixes
    return _by_size(found), False


def cuts_near(arcs: Sequence[tuple[int, int]], stage_of: Sequence[int], seed: int) -> list[int]:
    """Cuts along an order that stays near known stages, and the cuts of these: layers may change with those of stages nearby."""
    count = len(stage_of)
    after: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for start, end in arcs:
        after[start].append(end)
        waiting[end] += 1
    random = np.random.default_rng(seed)
    when = np.array(stage_of) + random.random(count) * float(random.choice([1.0, 2.0, 4.0]))
    ready = [(float(when[place]), place) for place in range(count) if not waiting[place]]
    heapify(ready)
    kept = {int(place) for place in np.linspace(1, count, min(count, _MOST_NEAR)).round()}
    found, mask = {0}, 0
    for size in range(1, count + 1):
        place = heappop(ready)[1]
        mask |= 1 << place
        found |= {mask} if size in kept else set()
        for other in after[place]:
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, (float(when[other]), other))
    for stage in range(max(stage_of)):
        found.add(sum(1 << place for place, number in enumerate(stage_of) if number <= stage))
    return _by_size(found)


def _by_size(masks: set[int]) -> list[int]:
    return sorted(masks, key=lambda mask: (mask.bit_count(), mask))


def _every(count: int, arcs: Sequence[tuple[int, int]]) -> list[int] | None:
    """All ideals; None where they or the pairs of them are too many."""
    if count * (count + 1) // 2 > MOST_PAIRS:
        return None
    before = [0] * count
    for start, end in arcs:
        before[end] |= 1 << start
    found = every_ideal(before, MOST_IDEALS)
    return found if found and _pairs_at_most(found) <= MOST_PAIRS else None


def _pairs_at_most(masks: Sequence[int]) -> int:
    """Pairs of which one is within the other."""
    return sum(sum(inner & ~outer == 0 for inner in masks[:place]) for place, outer in enumerate(masks))


def _order(count: int, arcs: Sequence[tuple[int, int]], seed: int) -> list[int]:
    """As the layers are numbered (seed 0), the newest that is ready first (1), the oldest (2), then by chance."""
    after: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for start, end in arcs:
        after[start].append(end)
        waiting[end] += 1
    random, order = np.random.default_rng(seed), list[int]()
    ready = [place for place in range(count) if not waiting[place]]
    while ready and seed:
        place = ready.pop({1: -1, 2: 0}.get(seed, int(random.integers(len(ready)))))
        order.append(place)
        for other in after[place]:
            waiting[other] -= 1
            ready += [] if waiting[other] else [other]
    return order if seed else list(range(count))


# What a stage can be: for each choice of configurations its work and memory, without choices that another one beats in everything.
#
# A point is work at one replica, parameters w, memory at one microbatch under way (m = a + b) and memory a of each further one. A point
# that is not below another in any of the four is never needed, for any number of replicas and of microbatches. Layers join one after
# another; memory is whole bytes and exact. Where too many points are left they are bundled: relaxed, a bundle is as good in each of the
# four as its best member, which bounds what any choice can do; otherwise it is one of its members, which can be had.

MOST_POINTS = 1_500
_PAIRWISE = 768
"""Points up to which each is held against each."""


class Late(Exception):  # noqa: N818 - no error: what is known by then is the answer
    """The time that was given is over."""


@dataclass(frozen=True, slots=True, eq=False)
class Front:
    """Points as columns, with where each came from: its place in the front before and the configuration that joined."""

    work: Array
    parameters: Array
    memory: Whole
    stashed: Whole
    origin: Whole
    joined: Whole
    bundled: bool = False

    def __len__(self) -> int:
        return len(self.work)


@dataclass(frozen=True, slots=True)
class Bundling:
    """What is done with a front of too many points."""

    relaxed: bool = False
    """Whether a bundle is as good as its members together, or is one of them."""
    most: int | None = None
    """Points that stay as they are; None for MOST_POINTS."""


def nothing() -> Front:
    """The front of no layers."""
    zero, none = np.zeros(1), np.zeros(1, np.int64)
    return Front(zero, zero, none, none, none, none)


def joined(front: Front, options: Front, memory: int, bundling: Bundling) -> Front:
    """The front with one more layer, without what does not fit the memory even with one microbatch under way."""
    size = len(options)
    work = (front.work[:, None] + options.work).ravel()
    parameters = (front.parameters[:, None] + options.parameters).ravel()
    least = (front.memory[:, None] + options.memory).ravel()
    stashed = (front.stashed[:, None] + options.stashed).ravel()
    kept = np.flatnonzero(least <= memory)
    if size > 1 or len(kept) < len(work):
        kept = _undominated(work, parameters, least, stashed, kept) if size > 1 else kept
        work, parameters, least, stashed = work[kept], parameters[kept], least[kept], stashed[kept]
    found = Front(work, parameters, least, stashed, kept // size, kept % size, front.bundled)
    most = MOST_POINTS if bundling.most is None else bundling.most
    return _bundled(found, bundling.relaxed, most) if len(found) > most else found


def _undominated(work: Array, parameters: Array, memory: Whole, stashed: Whole, kept: Whole) -> Whole:
    """Rows, among those kept, that no other one beats: first among equal parameters and memory, then, of not too many, among all."""
    order = kept[np.lexsort((stashed[kept], work[kept], memory[kept], parameters[kept]))]
    if len(order) < 2:
        return np.asarray(order)
    fresh = np.concatenate([[True], (np.diff(parameters[order]) != 0) | (np.diff(memory[order]) != 0)])
    group = np.cumsum(fresh)
    rank = np.unique(stashed[order], return_inverse=True)[1].astype(np.int64) - group * len(order)
    best = np.minimum.accumulate(rank)
    order = order[fresh | np.concatenate([[True], rank[1:] < best[:-1]])]
    if not 2 < len(order) <= _PAIRWISE:
        return np.asarray(order)
    beaten = np.ones((len(order), len(order)), bool)
    for column in (parameters, memory, work, stashed):
        beaten &= column[order][:, None] <= column[order]
    beaten &= ~np.tri(len(order), dtype=bool) | ~beaten.T  # of equals the first one stays
    np.fill_diagonal(beaten, False)
    return np.asarray(order[~beaten.any(axis=0)])


def _bundled(front: Front, relaxed: bool, most: int) -> Front:
    """About half as many bundles as points may be, of points that are near in memory."""
    order = np.lexsort((front.work, front.memory, front.stashed))
    starts = np.unique(np.linspace(0, len(order), most // 2, endpoint=False).astype(np.int64))
    if relaxed:
        columns = (front.work, front.parameters, front.memory, front.stashed)
        work, parameters, memory, stashed = (np.minimum.reduceat(column[order], starts) for column in columns)
        first = order[starts]
        return Front(work, parameters, memory, stashed, front.origin[first], front.joined[first], bundled=True)
    bundle = np.repeat(np.arange(len(starts)), np.diff([*starts, len(order)]))
    quickest = order[np.lexsort((front.work[order], bundle))[starts]]
    taken = np.unique(np.concatenate([quickest, order[:1], [front.memory.argmin(), front.work.argmin()]]))
    return replace(taken_from(front, taken), bundled=True)


def taken_from(front: Front, rows: Whole) -> Front:
    """These points alone."""
    return Front(
        front.work[rows],
        front.parameters[rows],
        front.memory[rows],
        front.stashed[rows],
        front.origin[rows],
        front.joined[rows],
        front.bundled,
    )


# What each layer can be, as fronts of one layer, and what crosses each edge: at the least, and beside that where configurations differ.


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """A question as a search takes it."""

    question: PiperQuestion
    network: Network
    starts: Whole
    """Of edges, by the place of the layer in the network."""
    ends: Whole
    tensors: tuple[int, ...]
    plain: Mapping[int, tuple[Front | None, ...]]
    """By tensor degree what each layer can be; None where it does not offer that degree."""
    shared: Mapping[int, tuple[Array, Array]]
    """Seconds of each edge as it enters a stage and as it leaves one, whatever is chosen."""
    special: Mapping[int, tuple[tuple[int, bool, Array], ...]]
    """Edges that take longer with some configurations: their number, whether they leave, and the seconds by configuration."""


def options_of(question: PiperQuestion, network: Network) -> Options:
    """Everything about single layers and edges."""
    place = {row: number for number, row in enumerate(network.rows)}
    edges = zip(network.graph.edges, network.graph.sizes, strict=True)
    kept = [(start, end, size) for (start, end), size in edges if start in place and end in place]
    tensors = tuple(sorted({tensor for row in network.rows for tensor in network.graph.offers[row]}))
    layers = range(len(network))
    return Options(
        question=question,
        network=network,
        starts=np.array([place[start] for start, _, _ in kept], np.int64),
        ends=np.array([place[end] for _, end, _ in kept], np.int64),
        tensors=tensors,
        plain={tensor: tuple(_front(question, network, number, tensor, None) for number in layers) for tensor in tensors},
        shared={tensor: _shared(question, network, tensor, kept) for tensor in tensors},
        special={tensor: _special(question, network, tensor, kept) for tensor in tensors},
    )


def front_of(options: Options, place: int, tensor: int, extra: Array | None) -> Front:
    """What a layer can be with seconds beside its work, by configuration; `joined` tells the configuration."""
    found = options.plain[tensor][place] if extra is None else _front(options.question, options.network, place, tensor, extra)
    if found is None:
        raise ValueError(f"layer {place} is offered on no {tensor} devices")
    return found


def dear(options: Options, tensor: int, inner: int, outer: int) -> dict[int, Array]:
    """Seconds beside the shared ones in the stage between two cuts, for each layer where they depend on its configuration."""
    found: dict[int, Array] = {}
    for number, out, extra in options.special[tensor]:
        start, end = int(options.starts[number]), int(options.ends[number])
        inside, other = (start, end) if out else (end, start)
        crosses = not outer >> other & 1 if out else bool(inner >> other & 1)
        if crosses and outer >> inside & 1 and not inner >> inside & 1:
            found[inside] = found.get(inside, 0.0) + extra
    return found


def moved(options: Options, tensor: int, inner: Mask, outer: Mask) -> float:
    """Seconds of the edges that cross the boundary of the stage between two cuts, at the least."""
    starts, ends = options.starts, options.ends
    entering = inner[starts] & outer[ends] & ~inner[ends]
    leaving = outer[starts] & ~inner[starts] & ~outer[ends]
    one, other = options.shared[tensor]
    return float(one[entering].sum() + other[leaving].sum())


def _front(question: PiperQuestion, network: Network, place: int, tensor: int, extra: Array | None) -> Front | None:
    configurations = network.graph.offers[network.rows[place]].get(tensor)
    if configurations is None:
        return None
    time = np.array([one.time for one in configurations])
    stashed = np.array([one.stashed for one in configurations], np.int64)
    memory = stashed + np.array([one.fixed for one in configurations], np.int64)
    none = np.zeros(len(configurations), np.int64)
    parameters = np.array([one.parameters for one in configurations])
    every = Front(time if extra is None else time + extra, parameters, memory, stashed, none, none)
    return joined(nothing(), every, question.memory, Bundling())


def _sync(network: Network, tensor: int, row: int, other: int, leaving: bool) -> Array:
    """Bytes of an edge beside the output, by the configuration at one end."""
    offered = network.graph.offers[row].get(tensor, ())
    return np.array([(one.leaving if leaving else one.entering).get(other, 0.0) for one in offered])


def _shared(question: PiperQuestion, network: Network, tensor: int, edges: list[tuple[int, int, float]]) -> tuple[Array, Array]:
    seconds = 2.0 / question.bandwidth
    entering = [size + min(_sync(network, tensor, end, start, False), default=0.0) for start, end, size in edges]
    leaving = [size + min(_sync(network, tensor, start, end, True), default=0.0) for start, end, size in edges]
    return np.array(entering, np.float64) * seconds, np.array(leaving, np.float64) * seconds


def _special(
    question: PiperQuestion, network: Network, tensor: int, edges: list[tuple[int, int, float]]
) -> tuple[tuple[int, bool, Array], ...]:
    found = []
    for number, (start, end, _) in enumerate(edges):
        for row, other, leaving in ((end, start, False), (start, end, True)):
            sync = _sync(network, tensor, row, other, leaving)
            if len(sync) and sync.max() > sync.min():
                found.append((number, leaving, (sync - sync.min()) * (2.0 / question.bandwidth)))
    return tuple(found)
