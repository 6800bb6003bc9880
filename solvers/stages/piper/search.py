"""The quickest stages, exactly: where a network can be cut, tables of all stages between two cuts, and a dynamic program."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.instances.stages.piper import Configuration, PiperGraph, PiperQuestion
from crossopt.solvers.orders import every_ideal
from crossopt.solvers.stages.piper.judge import Stage, judge_rows

# Where a network can be cut into stages, and what each layer and each stage can be.

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
    index_of = {row: number for number, row in enumerate(rows)}
    arcs = tuple(sorted((index_of[start], index_of[row]) for row in rows for start in before[row]))
    return Network(graph, rows, arcs, tuple(row for row in order if row in free))


def with_free(network: Network, stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages with the layers that were left out: each in the last stage that holds one of its predecessors, else in the first."""
    graph = network.graph
    stage_of = {row: number for number, stage in enumerate(stages) for row in stage.rows}
    free = {row: list[int]() for row in network.free}
    for start, end in graph.edges:
        if end in free:
            free[end].append(start)
    for row, before in free.items():
        stage_of[row] = max((stage_of[start] for start in before), default=0)
    return tuple(
        Stage(
            rows=(*stage.rows, *(added := tuple(row for row in network.free if stage_of[row] == number))),
            data=stage.data,
            tensor=stage.tensor,
            configurations=(*stage.configurations, *(graph.offers[row][stage.tensor][0].name for row in added)),
        )
        for number, stage in enumerate(stages)
    )


def _configurations(graph: PiperGraph, row: int) -> list[Configuration]:
    return [option for configurations in graph.offers[row].values() for option in configurations]


def _idle(option: Configuration) -> bool:
    return not (option.time or option.parameters or option.stashed or option.fixed)


def _moved(graph: PiperGraph) -> set[int]:
    """Rows with an edge over which anything is moved in some configuration of either end."""
    found = set()
    for (start, end), size in zip(graph.edges, graph.sizes, strict=True):
        leaving = any(option.leaving.get(end) for option in _configurations(graph, start))
        entering = any(option.entering.get(start) for option in _configurations(graph, end))
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
"""Prefixes of an order near known stages."""


def ideals_of(count: int, arcs: Sequence[tuple[int, int]]) -> tuple[list[int], bool]:
    """Ideals by size, the empty one first, and whether these are all.

    Where there are too many, those along some orders in which all data flow forward: stages between them are stages of the network.
    """
    every = _every(count, arcs)
    if every is not None:
        return every, True
    sizes = {int(size_of_prefix) for size_of_prefix in np.linspace(1, count, min(count, _MOST_PREFIXES)).round()}
    found = {0}
    for seed in range(_ORDERS):
        mask, prefixes = 0, set[int]()
        for size, layer in enumerate(_order(count, arcs, seed), 1):
            mask |= 1 << layer
            prefixes |= {mask} if size in sizes else set()
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
    ready = [(float(when[layer]), layer) for layer in range(count) if not waiting[layer]]
    heapify(ready)
    sizes = {int(size_of_prefix) for size_of_prefix in np.linspace(1, count, min(count, _MOST_NEAR)).round()}
    found, mask = {0}, 0
    for size in range(1, count + 1):
        layer = heappop(ready)[1]
        mask |= 1 << layer
        found |= {mask} if size in sizes else set()
        for other in after[layer]:
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, (float(when[other]), other))
    for stage in range(max(stage_of)):
        found.add(sum(1 << layer for layer, number in enumerate(stage_of) if number <= stage))
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
    return sum(sum(inner & ~outer == 0 for inner in masks[:index]) for index, outer in enumerate(masks))


def _order(count: int, arcs: Sequence[tuple[int, int]], seed: int) -> list[int]:
    """As the layers are numbered (seed 0), the newest that is ready first (1), the oldest (2), then by chance."""
    after: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for start, end in arcs:
        after[start].append(end)
        waiting[end] += 1
    random, order = np.random.default_rng(seed), list[int]()
    ready = [layer for layer in range(count) if not waiting[layer]]
    while ready and seed:
        layer = ready.pop({1: -1, 2: 0}.get(seed, int(random.integers(len(ready)))))
        order.append(layer)
        for other in after[layer]:
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
    memory: Ints
    stashed: Ints
    origin: Ints
    joined: Ints
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
    rows = np.flatnonzero(least <= memory)
    if size > 1 or len(rows) < len(work):
        rows = _undominated(work, parameters, least, stashed, rows) if size > 1 else rows
        work, parameters, least, stashed = work[rows], parameters[rows], least[rows], stashed[rows]
    found = Front(work, parameters, least, stashed, rows // size, rows % size, front.bundled)
    most = MOST_POINTS if bundling.most is None else bundling.most
    return _bundled(found, bundling.relaxed, most) if len(found) > most else found


def _undominated(work: Array, parameters: Array, memory: Ints, stashed: Ints, rows: Ints) -> Ints:
    """Rows, among those kept, that no other one beats: first among equal parameters and memory, then, of not too many, among all."""
    order = rows[np.lexsort((stashed[rows], work[rows], memory[rows], parameters[rows]))]
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


def taken_from(front: Front, rows: Ints) -> Front:
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
    starts: Ints
    """Of edges, by the place of the layer in the network."""
    ends: Ints
    tensors: tuple[int, ...]
    plain: Mapping[int, tuple[Front | None, ...]]
    """By tensor degree what each layer can be; None where it does not offer that degree."""
    shared: Mapping[int, tuple[Array, Array]]
    """Seconds of each edge as it enters a stage and as it leaves one, whatever is chosen."""
    special: Mapping[int, tuple[tuple[int, bool, Array], ...]]
    """Edges that take longer with some configurations: their number, whether they leave, and the seconds by configuration."""


def options_of(question: PiperQuestion, network: Network) -> Options:
    """Everything about single layers and edges."""
    index_of = {row: number for number, row in enumerate(network.rows)}
    edges = zip(network.graph.edges, network.graph.sizes, strict=True)
    edges_between = [(start, end, size) for (start, end), size in edges if start in index_of and end in index_of]
    tensors = tuple(sorted({tensor for row in network.rows for tensor in network.graph.offers[row]}))
    layers = range(len(network))
    return Options(
        question=question,
        network=network,
        starts=np.array([index_of[start] for start, _, _ in edges_between], np.int64),
        ends=np.array([index_of[end] for _, end, _ in edges_between], np.int64),
        tensors=tensors,
        plain={tensor: tuple(_front(question, network, number, tensor, None) for number in layers) for tensor in tensors},
        shared={tensor: _shared(question, network, tensor, edges_between) for tensor in tensors},
        special={tensor: _special(question, network, tensor, edges_between) for tensor in tensors},
    )


def front_of(options: Options, layer: int, tensor: int, extra: Array | None) -> Front:
    """What a layer can be with seconds beside its work, by configuration; `joined` tells the configuration."""
    found = options.plain[tensor][layer] if extra is None else _front(options.question, options.network, layer, tensor, extra)
    if found is None:
        raise ValueError(f"layer {layer} is offered on no {tensor} devices")
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
    into, out_of = options.shared[tensor]
    return float(into[entering].sum() + out_of[leaving].sum())


def _front(question: PiperQuestion, network: Network, layer: int, tensor: int, extra: Array | None) -> Front | None:
    configurations = network.graph.offers[network.rows[layer]].get(tensor)
    if configurations is None:
        return None
    time = np.array([option.time for option in configurations])
    stashed = np.array([option.stashed for option in configurations], np.int64)
    memory = stashed + np.array([option.fixed for option in configurations], np.int64)
    none = np.zeros(len(configurations), np.int64)
    parameters = np.array([option.parameters for option in configurations])
    every = Front(time if extra is None else time + extra, parameters, memory, stashed, none, none)
    return joined(nothing(), every, question.memory, Bundling())


def _sync(network: Network, tensor: int, row: int, other: int, leaving: bool) -> Array:
    """Bytes of an edge beside the output, by the configuration at one end."""
    offered = network.graph.offers[row].get(tensor, ())
    return np.array([(option.leaving if leaving else option.entering).get(other, 0.0) for option in offered])


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


# The quickest stages, exactly: tables of all stages between two cuts, a dynamic program over cuts, and layers chosen for spans.

# Every stage between two cuts of a network, as figures: how long it takes, and for how many microbatches under way it fits.
#
# seconds(d) = (work + moved + 4 (d - 1) w / (N bandwidth)) / d        work, w from a point of the stage's front (`fronts`)
# under way  = 1 + floor((memory - m) / a)                             the most microbatches that the point fits


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Stages as rows, points of a stage next to each other, stages of one pair of cuts too."""

    cuts: tuple[int, ...]
    lower: Ints
    """The cut before each stage, by its number."""
    upper: Ints
    tensor: Ints
    start: Ints
    """The first point of each stage."""
    work: Array
    """Of each point, with what is moved."""
    exchanged: Array
    """Seconds that a replica more takes to exchange parameters."""
    under_way: Ints
    degrees: Ints
    devices: int
    replicas: int
    """At the most, of all stages together."""
    bundled: bool
    """Whether a front had too many points."""

    def seconds(self, degree: int) -> Array:
        """The time of each point."""
        return np.asarray((self.work + (degree - 1) * self.exchanged) / degree)

    def reach(self, limit: float) -> Ints:
        """For each stage and degree, how many microbatches may be under way within the limit; 0 where none."""
        found = np.empty((len(self.start), len(self.degrees)), np.int64)
        for column, degree in enumerate(self.degrees.tolist()):
            microbatches = np.where(self.seconds(degree) <= limit, self.under_way, 0)
            found[:, column] = np.maximum.reduceat(microbatches, self.start) if len(microbatches) else 0
        return found

    def following(self, limit: float) -> float:
        """The least time of any point above a limit; infinite where there is none."""
        least = float("inf")
        for degree in self.degrees.tolist():
            times = self.seconds(degree)
            least = min(least, float(times[times > limit].min(initial=np.inf)))
        return least


Rule = Callable[[Sequence[Front], int, int], Front]
"""From the configurations of each layer of a stage, the memory and the most microbatches under way to what the stage can be."""


def tables_of(options: Options, cuts: Sequence[int], bundling: Bundling, clock: Callable[[], None], rule: Rule | None = None) -> Tables:
    """The tables of all stages between two cuts; `clock` is asked now and then. A rule chooses in place of all that can be chosen."""
    question = options.question
    most = min(question.microbatches, question.devices)
    members = np.array([[bool(cut >> layer & 1) for layer in range(len(options.network))] for cut in cuts])
    stages: list[tuple[int, int, int, Front]] = []
    for lower, inner in enumerate(cuts):
        known = {inner: dict.fromkeys(options.tensors, nothing())}
        for upper in range(lower + 1, len(cuts)):
            outer = cuts[upper]
            if inner & ~outer:
                continue
            clock()
            fronts = _extended(options, known, inner, outer, bundling)
            known[outer] = fronts
            for tensor, front in fronts.items():
                found = _chosen(options, tensor, (inner, outer), front, bundling, rule)
                seconds = moved(options, tensor, members[lower], members[upper])
                if len(found):
                    stages.append((lower, upper, tensor, _limited(found, question.memory, most, seconds)))
    return _tables(options, tuple(cuts), stages, most)


def _extended(options: Options, known: dict[int, dict[int, Front]], inner: int, outer: int, bundling: Bundling) -> dict[int, Front]:
    """Fronts of a stage by tensor degree, from those of the largest stage within it."""
    nearest = next(cut for cut in reversed(known) if cut & ~outer == 0)
    fronts = known[nearest]
    for layer in layers_in(outer & ~nearest):
        offered = {tensor: options.plain[tensor][layer] for tensor in fronts}
        steps = {
            tensor: joined(fronts[tensor], new, options.question.memory, bundling) for tensor, new in offered.items() if new is not None
        }
        fronts = {tensor: front for tensor, front in steps.items() if len(front)}
    return fronts


def _chosen(options: Options, tensor: int, cut: tuple[int, int], front: Front, bundling: Bundling, rule: Rule | None) -> Front:
    """The front of a stage where traffic depends on configurations, or where a rule chooses; else as it is."""
    extra = dear(options, tensor, *cut)
    if not extra and rule is None:
        return front
    layers = [front_of(options, layer, tensor, extra.get(layer)) for layer in layers_in(cut[1] & ~cut[0])]
    if rule is not None:
        question = options.question
        return rule(layers, question.memory, min(question.microbatches, question.devices))
    found = nothing()
    for layer in layers:
        found = joined(found, layer, options.question.memory, bundling)
    return found


def _limited(front: Front, memory: int, most: int, seconds: float) -> Front:
    """The points of a stage by what a search needs of them: work with transfers, parameters, microbatches under way (in `stashed`)."""
    room = memory - front.memory
    under_way = 1 + np.where(front.stashed > 0, room // np.maximum(front.stashed, 1), most)
    under_way = np.minimum(under_way, most)
    order = np.lexsort((-under_way, front.work, front.parameters))
    best = np.maximum.accumulate(under_way[order])
    rows = order[np.concatenate([[True], under_way[order][1:] > best[:-1]])] if np.ptp(front.parameters) == 0.0 else order
    return taken_from(replace(front, work=front.work + seconds, stashed=under_way), rows)


def _tables(options: Options, cuts: tuple[int, ...], stages: list[tuple[int, int, int, Front]], most: int) -> Tables:
    question = options.question
    fronts = [front for _, _, _, front in stages]
    share = 4.0 / (question.microbatches * question.bandwidth)
    lower, upper, tensor = (np.array([stage[column] for stage in stages], np.int64) for column in range(3))
    return Tables(
        cuts=cuts,
        lower=lower,
        upper=upper,
        tensor=tensor,
        start=np.cumsum([0, *map(len, fronts)])[:-1].astype(np.int64),
        work=np.concatenate([np.zeros(0), *(front.work for front in fronts)]),
        exchanged=np.concatenate([np.zeros(0), *(front.parameters for front in fronts)]) * share,
        under_way=np.concatenate([np.zeros(0, np.int64), *(front.stashed for front in fronts)]),
        degrees=np.array(question.degrees, np.int64),
        devices=question.devices,
        replicas=most,
        bundled=any(front.bundled for front in fronts),
    )


def layers_in(mask: int) -> list[int]:
    """The layers in a mask."""
    return [layer for layer in range(mask.bit_length()) if mask >> layer & 1]


def only(tables: Tables, chosen: Mask) -> Tables:
    """The tables with these stages alone."""
    sizes = np.diff([*tables.start, len(tables.work)])
    points = np.repeat(chosen, sizes)
    return replace(
        tables,
        lower=tables.lower[chosen],
        upper=tables.upper[chosen],
        tensor=tables.tensor[chosen],
        start=(np.cumsum(sizes[chosen]) - sizes[chosen]).astype(np.int64),
        work=tables.work[points],
        exchanged=tables.exchanged[points],
        under_way=tables.under_way[points],
    )


# The quickest stages, exactly: a dynamic program over cuts answers whether stages within a time exist, and the time is searched.
#
# With a time limit T the last stage is laid first. What counts of the stages laid is where they begin, their replicas s and their devices:
#
#     least[cut, s]       fewest devices of stages from the cut to the end with s replicas in all
#     least[I', s + d]  = min over stages I' to I with t, d  of  least[I, s] + d t,    where s + d <= d * reach
#     reach               the most microbatches under way with which some choice of configurations fits the memory and takes at most T
#
# A state that another one beats in replicas and devices is dropped, and one from which even stages with one microbatch under way need too
# many devices to the front. The optimum is the time of some point: where T fails, the next time of any point is a bound.

_NONE = 1 << 30
_SURE = 1.0 - 1e-11
"""Sums of times are lowered by more than rounding can have raised them (10,000 of them) before anything is called impossible."""


@dataclass(frozen=True, slots=True)
class Span:
    """One stage: the cuts around it, its degrees and the microbatches under way."""

    lower: int
    upper: int
    data: int
    tensor: int
    under_way: int


@dataclass(frozen=True, slots=True, eq=False)
class _Moves:
    """Stages that may be of use within a limit, by the cut at their end, the last cut first."""

    lower: Ints
    upper: Ints
    data: Ints
    cost: Ints
    reach: Ints
    before: Ints
    """The fewest devices from the front to each cut."""


def within(tables: Tables, limit: float, clock: Callable[[], None]) -> tuple[Span, ...] | None:
    """Stages, first to last, that take no longer than the limit on the fewest devices; None where there are none."""
    moves = _moves(tables, limit)
    if moves is None:
        return None
    least = np.full((len(tables.cuts), tables.replicas + 1), _NONE, np.int64)
    least[-1, 0] = 0
    current = -1
    for number, upper in enumerate(moves.upper.tolist()):
        if upper != current:
            clock()
            current, row = upper, least[upper]
            _drop_beaten(row, tables.devices - moves.before[upper])
            ends = np.flatnonzero(row < _NONE)
            first, last = (int(ends[0]), int(ends[-1])) if len(ends) else (1, 0)
        data = int(moves.data[number])
        stop = min(last, data * (int(moves.reach[number]) - 1), tables.replicas - data) + 1
        if first < stop:
            target = least[moves.lower[number], first + data : stop + data]
            np.minimum(target, row[first:stop] + moves.cost[number], out=target)
    _drop_beaten(least[0], float(tables.devices))
    return None if least[0].min() >= _NONE else _traced(tables, moves, least)


def _drop_beaten(row: Ints, most: float) -> None:
    """Keep what needs fewer devices than anything with fewer replicas, and no more than there are."""
    better = np.minimum.accumulate(row)[:-1]
    row[1:][row[1:] >= better] = _NONE
    row[row > most] = _NONE


def _moves(tables: Tables, limit: float) -> _Moves | None:
    """Stages that fit between the fewest devices before and after them; None where the devices do not suffice."""
    reach = tables.reach(limit)
    cost = tables.tensor[:, None] * tables.degrees
    usable = (reach > 0) & (cost <= tables.devices)
    cheapest = np.where(usable, cost, _NONE).min(axis=1, initial=_NONE)
    before, after = _fewest(tables, cheapest)
    if before[-1] > tables.devices:
        return None
    usable &= before[tables.lower][:, None] + cost + after[tables.upper][:, None] <= tables.devices
    same = np.ones(len(tables.lower), bool)
    for back in range(1, len(np.unique(tables.tensor))):  # fewer devices a replica do as well where they reach as far
        same = same[1:] & (tables.lower[back:] == tables.lower[:-back]) & (tables.upper[back:] == tables.upper[:-back])
        usable[back:] &= ~(same[:, None] & (reach[:-back] >= reach[back:]))
    stage, degree = np.nonzero(usable)
    order = np.argsort(-tables.upper[stage], kind="stable")
    stage, degree = stage[order], degree[order]
    return _Moves(tables.lower[stage], tables.upper[stage], tables.degrees[degree], cost[stage, degree], reach[stage, degree], before)


def _fewest(tables: Tables, cheapest: Ints) -> tuple[Ints, Ints]:
    """The fewest devices from the front to each cut, and from each cut to the end, with one microbatch under way everywhere."""
    count = len(tables.cuts)
    before, after = np.full(count, _NONE), np.full(count, _NONE)
    before[0] = after[-1] = 0
    by_upper = np.argsort(tables.upper, kind="stable")
    ends = np.searchsorted(tables.upper[by_upper], np.arange(count + 1))
    for cut in range(1, count):
        rows = by_upper[ends[cut] : ends[cut + 1]]
        before[cut] = (before[tables.lower[rows]] + cheapest[rows]).min(initial=_NONE)
    begins = np.searchsorted(tables.lower, np.arange(count + 1))
    for cut in range(count - 2, -1, -1):
        begin, stop = begins[cut], begins[cut + 1]
        after[cut] = (after[tables.upper[begin:stop]] + cheapest[begin:stop]).min(initial=_NONE)
    return before, after


def _traced(tables: Tables, moves: _Moves, least: Ints) -> tuple[Span, ...]:
    """The stages behind the fewest devices, from the front on."""
    cut, spans = 0, list[Span]()
    replicas = int(least[0].argmin())
    while cut != len(tables.cuts) - 1:
        rows = np.flatnonzero(moves.lower == cut)
        left = replicas - moves.data[rows]
        fits = (left >= 0) & (left <= moves.data[rows] * (moves.reach[rows] - 1))
        rows, left = rows[fits], left[fits]
        chosen = int(np.flatnonzero(least[moves.upper[rows], left] + moves.cost[rows] == least[cut, replicas])[0])
        row, data = int(rows[chosen]), int(moves.data[rows[chosen]])
        spans.append(Span(cut, int(moves.upper[row]), data, int(moves.cost[row]) // data, -(-replicas // data)))
        cut, replicas = int(moves.upper[row]), int(left[chosen])
    return tuple(spans)


@dataclass(slots=True)
class Known:
    """What is known so far; it stays right when a search is stopped."""

    stages: tuple[Stage, ...] | None = None
    value: float = float("inf")
    bound: float = 0.0
    """No stages are quicker; infinite where there are none."""


Price = Callable[[tuple[Span, ...]], tuple[float, tuple[Stage, ...] | None]]
"""How long stages truly take, and the stages layer by layer."""


def search(known: Known, tables: Tables, gap: float, price: Price, clock: Callable[[], None]) -> None:
    """Find the quickest stages between the cuts, or as near to the bound as the gap says, from what is known.

    It ends early where bundled fronts promise the tables more than can be had.
    """
    bound = max(known.bound, tables.following(-1.0))
    while known.value == float("inf") or bound < known.value * min(1.0 - gap, _SURE):
        limit = _middle(bound, known.value)
        found = within(tables, limit, clock)
        if found is None and limit == float("inf"):
            known.bound = float("inf")
            return
        if found is None:
            bound = max(bound, tables.following(limit))
            known.bound = bound * _SURE
            continue
        value, stages = price(found)
        if value >= known.value:
            return
        known.value, known.stages = value, stages
    known.bound = max(known.bound, min(bound, known.value) * _SURE)


def seconds_of(tables: Tables, spans: tuple[Span, ...]) -> float:
    """The time of stages by the tables alone."""
    times = []
    for span in spans:
        row = int(((tables.lower == span.lower) & (tables.upper == span.upper) & (tables.tensor == span.tensor)).argmax())
        stop = int(tables.start[row + 1]) if row + 1 < len(tables.start) else len(tables.work)
        points = slice(int(tables.start[row]), stop)
        times.append(float(tables.seconds(span.data)[points][tables.under_way[points] >= span.under_way].min()))
    return max(times)


def _middle(bound: float, value: float) -> float:
    """Between bound and value, nearer to the bound while they are far apart."""
    if value > 2.0 * bound > 0.0 and value != float("inf"):
        return float((bound * value) ** 0.5)
    return (bound + value) / 2.0


# From spans between cuts to stages of layers: in each stage the quickest configurations that fit, layer by layer.

_BUNDLING = Bundling(most=2_048)


def stages_of(options: Options, cuts: Sequence[int], spans: Sequence[Span]) -> tuple[Stage, ...] | None:
    """Stages with all layers of the graph; None where no configurations of a stage were found that fit."""
    stages = []
    for span in spans:
        stage = _stage(options, cuts[span.lower], cuts[span.upper], span)
        if stage is None:
            return None
        stages.append(stage)
    return with_free(options.network, stages)


def price_of(options: Options, cuts: Sequence[int]) -> Price:
    """What tells a search how long stages truly take: the judge."""

    def price(spans: tuple[Span, ...]) -> tuple[float, tuple[Stage, ...] | None]:
        stages = stages_of(options, cuts, spans)
        return (float("inf"), None) if stages is None else (judge_rows(options.question, stages).value, stages)

    return price


def _stage(options: Options, inner: int, outer: int, span: Span) -> Stage | None:
    question, places = options.question, layers_in(outer & ~inner)
    exchange = 4.0 * (span.data - 1) / (question.microbatches * question.bandwidth)
    layers = layers_of(options, inner, outer, span.tensor)
    steps, front = list[tuple[Front, Front]](), nothing()
    for layer in layers:
        flat = _flat(layer, exchange, span.under_way)
        front = joined(front, flat, question.memory, _BUNDLING)
        steps.append((front, flat))
    if not len(front):
        return None
    point, chosen = int(front.work.argmin()), list[int]()
    for front, flat in reversed(steps):
        chosen.append(int(flat.joined[front.joined[point]]))
        point = int(front.origin[point])
    return chosen_stage(options, places, span, chosen[::-1])


def layers_of(options: Options, inner: int, outer: int, tensor: int) -> list[Front]:
    """What each layer between two cuts can be."""
    extra = dear(options, tensor, inner, outer)
    return [front_of(options, layer, tensor, extra.get(layer)) for layer in layers_in(outer & ~inner)]


def chosen_stage(options: Options, places: Sequence[int], span: Span, numbers: Sequence[int]) -> Stage:
    """The stage of these layers in the configurations of these numbers."""
    rows = [options.network.rows[layer] for layer in places]
    offered = [options.network.graph.offers[row][span.tensor] for row in rows]
    return Stage(tuple(rows), span.data, span.tensor, tuple(options[number].name for options, number in zip(offered, numbers, strict=True)))


def _flat(layer: Front, exchange: float, under_way: int) -> Front:
    """A layer's points for one number of replicas and of microbatches under way: time and memory alone."""
    none: Array = np.zeros(len(layer))
    memory = layer.memory + layer.stashed * (under_way - 1)
    return Front(layer.work + exchange * layer.parameters, none, memory, none.astype(np.int64), layer.origin, layer.joined)
