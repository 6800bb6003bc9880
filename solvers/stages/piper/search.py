"""The quickest stages, exactly: tables of all stages between two cuts, a dynamic program over cuts, and layers chosen for spans."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.solvers.stages.piper.cuts import Bundling, Front, Options, dear, front_of, joined, moved, nothing, taken_from, with_free
from crossopt.solvers.stages.piper.judge import Stage, judge_rows

# Every stage between two cuts of a network, as figures: how long it takes, and for how many microbatches under way it fits.
#
# seconds(d) = (work + moved + 4 (d - 1) w / (N bandwidth)) / d        work, w from a point of the stage's front (`fronts`)
# under way  = 1 + floor((memory - m) / a)                             the most microbatches that the point fits


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Stages as rows, points of a stage next to each other, stages of one pair of cuts too."""

    cuts: tuple[int, ...]
    lower: Whole
    """The cut before each stage, by its number."""
    upper: Whole
    tensor: Whole
    start: Whole
    """The first point of each stage."""
    work: Array
    """Of each point, with what is moved."""
    exchanged: Array
    """Seconds that a replica more takes to exchange parameters."""
    under_way: Whole
    degrees: Whole
    devices: int
    replicas: int
    """At the most, of all stages together."""
    bundled: bool
    """Whether a front had too many points."""

    def seconds(self, degree: int) -> Array:
        """The time of each point."""
        return np.asarray((self.work + (degree - 1) * self.exchanged) / degree)

    def reach(self, limit: float) -> Whole:
        """For each stage and degree, how many microbatches may be under way within the limit; 0 where none."""
        found = np.empty((len(self.start), len(self.degrees)), np.int64)
        for column, degree in enumerate(self.degrees.tolist()):
            kept = np.where(self.seconds(degree) <= limit, self.under_way, 0)
            found[:, column] = np.maximum.reduceat(kept, self.start) if len(kept) else 0
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
    members = np.array([[bool(cut >> place & 1) for place in range(len(options.network))] for cut in cuts])
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
    for place in places_in(outer & ~nearest):
        offered = {tensor: options.plain[tensor][place] for tensor in fronts}
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
    layers = [front_of(options, place, tensor, extra.get(place)) for place in places_in(cut[1] & ~cut[0])]
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
    kept = order[np.concatenate([[True], under_way[order][1:] > best[:-1]])] if np.ptp(front.parameters) == 0.0 else order
    return taken_from(replace(front, work=front.work + seconds, stashed=under_way), kept)


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


def places_in(mask: int) -> list[int]:
    """The layers in a mask."""
    return [place for place in range(mask.bit_length()) if mask >> place & 1]


def only(tables: Tables, kept: Mask) -> Tables:
    """The tables with these stages alone."""
    sizes = np.diff([*tables.start, len(tables.work)])
    points = np.repeat(kept, sizes)
    return replace(
        tables,
        lower=tables.lower[kept],
        upper=tables.upper[kept],
        tensor=tables.tensor[kept],
        start=(np.cumsum(sizes[kept]) - sizes[kept]).astype(np.int64),
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

    lower: Whole
    upper: Whole
    data: Whole
    cost: Whole
    reach: Whole
    before: Whole
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


def _drop_beaten(row: Whole, most: float) -> None:
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


def _fewest(tables: Tables, cheapest: Whole) -> tuple[Whole, Whole]:
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


def _traced(tables: Tables, moves: _Moves, least: Whole) -> tuple[Span, ...]:
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
    question, places = options.question, places_in(outer & ~inner)
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
    return [front_of(options, place, tensor, extra.get(place)) for place in places_in(outer & ~inner)]


def chosen_stage(options: Options, places: Sequence[int], span: Span, numbers: Sequence[int]) -> Stage:
    """The stage of these layers in the configurations of these numbers."""
    rows = [options.network.rows[place] for place in places]
    offered = [options.network.graph.offers[row][span.tensor] for row in rows]
    return Stage(tuple(rows), span.data, span.tensor, tuple(one[number].name for one, number in zip(offered, numbers, strict=True)))


def _flat(layer: Front, exchange: float, under_way: int) -> Front:
    """A layer's points for one number of replicas and of microbatches under way: time and memory alone."""
    none: Array = np.zeros(len(layer))
    memory = layer.memory + layer.stashed * (under_way - 1)
    return Front(layer.work + exchange * layer.parameters, none, memory, none.astype(np.int64), layer.origin, layer.joined)
