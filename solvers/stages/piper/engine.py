"""The engine for stages: cuts, tables and the search; and baselines beside it, equal stages and the published greedy choice."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.instances.stages.piper import Configuration, PiperQuestion, narrowed
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound
from crossopt.solvers.stages.piper.family import (
    BY_CUTS,
    BY_SIZES,
    BY_WORK,
    LEAST_GAP,
    NO_STAGES,
    ONLY_AGAIN,
    countable,
    load_bound,
    reasons_of,
    too_large,
)
from crossopt.solvers.stages.piper.judge import PiperPlan, Stage, named
from crossopt.solvers.stages.piper.search import (
    Bundling,
    Front,
    Known,
    Late,
    Options,
    Price,
    Span,
    Tables,
    chosen_stage,
    cuts_near,
    ideals_of,
    layers_in,
    layers_of,
    network_of,
    only,
    options_of,
    ordered,
    price_of,
    search,
    seconds_of,
    tables_of,
    with_free,
)

# Baselines for stages: equal stages after PipeDream-2BW, the greedy choice of the published program, and the search with less.

# Equal stages, after PipeDream-2BW: as many layers, replicas and devices in each, and recomputation everywhere or nowhere.
#
# The layers that repeat are those with the most common name; of stages with unequal numbers the last ones have one more. What comes before
# them joins the first stage or is one of its own, what comes after them the last; of all combinations the quickest that fits counts.

_Stages = tuple[tuple[int, ...], ...]


def equal_stages(question: PiperQuestion, clock: Callable[[], None]) -> dict[str, tuple[Stage, ...] | None]:
    """The best equal stages, and the best on one device a replica; nothing for a network without layers that repeat."""
    parts = _parts(question)
    if parts is None:
        return {}
    tensors = sorted({tensor for offer in question.graph.offers for tensor in offer})
    found = {"equal stages": _best(question, parts, tensors, clock)}
    return {**found, "equal, no tensor": _best(question, parts, [1], clock)} if len(tensors) > 1 else found


def _parts(question: PiperQuestion) -> tuple[list[int], list[int], list[int]] | None:
    """Rows before the layers that repeat, these, and rows after them."""
    graph, count = question.graph, len(question.graph)
    busy = [row for row in range(count) if any(option.time for options in graph.offers[row].values() for option in options)]
    names = Counter(graph.names[row] for row in busy).most_common(1)
    if not names or names[0][1] < 2:
        return None
    order, before = ordered(graph), defaultdict[int, list[int]](list)
    for start, end in graph.edges:
        before[end].append(start)
    layers = [row for row in order if graph.names[row] == names[0][0]]
    after = set(layers)
    for row in order:
        if not after.isdisjoint(before[row]):
            after.add(row)
    later = after - set(layers)
    return [row for row in order if row not in after], layers, [row for row in order if row in later]


def _split(parts: tuple[list[int], list[int], list[int]], most: int) -> Iterator[_Stages]:
    first, layers, last = parts
    for count in range(1, min(len(layers), most) + 1):
        sizes = [len(layers) // count + (index >= count - len(layers) % count) for index in range(count)]
        ends = np.cumsum([0, *sizes]).tolist()
        stages = [tuple(layers[begin:end]) for begin, end in pairwise(ends)]
        for apart in product((False, True), repeat=2):
            found = list(stages)
            if first:
                found = [tuple(first), *found] if apart[0] else [(*first, *found[0]), *found[1:]]
            if last:
                found = [*found, tuple(last)] if apart[1] else [*found[:-1], (*found[-1], *last)]
            yield tuple(found)


def _best(
    question: PiperQuestion, parts: tuple[list[int], list[int], list[int]], tensors: Sequence[int], clock: Callable[[], None]
) -> tuple[Stage, ...] | None:
    degrees = np.array(question.degrees)
    best, value = None, float("inf")
    for rows in _split(parts, min(question.devices, question.microbatches)):
        clock()
        for tensor, recompute in product(tensors, (False, True)):
            chosen = _configurations(question, rows, tensor, recompute)
            fits = (degrees * (len(rows) * tensor) <= question.devices) & (degrees * len(rows) <= question.microbatches)
            if chosen is None or not fits.any() or not _fit(question, rows, chosen):
                continue
            times = _times(question, rows, chosen, degrees[fits])
            if times.min() < value:
                value, degree = float(times.min()), int(degrees[fits][times.argmin()])
                best = tuple(Stage(stage, degree, tensor, tuple(chosen[row].name for row in stage)) for stage in rows)
    return best


def _configurations(question: PiperQuestion, rows: _Stages, tensor: int, recompute: bool) -> dict[int, Configuration] | None:
    found = {}
    for row in (row for stage in rows for row in stage):
        offered = question.graph.offers[row].get(tensor, ())
        fitting = [option for option in offered if option.recomputes == recompute]
        if not fitting:
            return None
        found[row] = fitting[0]
    return found


def _fit(question: PiperQuestion, rows: _Stages, chosen: dict[int, Configuration]) -> bool:
    sizes = [sum(chosen[row].stashed * (len(rows) - index) + chosen[row].fixed for row in stage) for index, stage in enumerate(rows)]
    return max(sizes) <= question.memory


def _times(question: PiperQuestion, rows: _Stages, chosen: dict[int, Configuration], degrees: Ints) -> Array:
    """The busiest stage for each number of replicas."""
    stage_of = {row: number for number, stage in enumerate(rows) for row in stage}
    work, parameters = np.zeros(len(rows)), np.zeros(len(rows))
    for row, option in chosen.items():
        work[stage_of[row]] += option.time
        parameters[stage_of[row]] += option.parameters
    for (start, end), size in zip(question.graph.edges, question.graph.sizes, strict=True):
        if stage_of[start] != stage_of[end]:
            work[stage_of[start]] += 2.0 * (size + chosen[start].leaving.get(end, 0.0)) / question.bandwidth
            work[stage_of[end]] += 2.0 * (size + chosen[end].entering.get(start, 0.0)) / question.bandwidth
    share = 4.0 / (question.microbatches * question.bandwidth)
    times = (work[:, None] + (degrees - 1) * share * parameters[:, None]) / degrees
    return np.asarray(times.max(axis=0))


# The greedy choice of configurations of the published program: in each stage the quickest ones, changed until they fit the memory.


@dataclass(frozen=True, slots=True, eq=False)
class _Changes:
    """From the quickest configurations, layer by layer the change that saves most memory for the time it costs, until they fit.

    Each layer may change to the configuration that keeps least for a microbatch under way. Columns are microbatches under way.
    """

    quick: list[int]
    small: list[int]
    order: Ints
    """Layers in the order of their changes."""
    taken: Mask
    """Which changes are made."""
    under_way: Ints
    """Columns that fit then, by their microbatches."""
    work: Array
    parameters: Array


def greedy_front(layers: Sequence[Front], memory: int, most: int) -> Front:
    """Points by the microbatches that they are chosen for, as the memory that fits just these."""
    changes = _changes(layers, memory, most)
    none = np.zeros(len(changes.under_way), np.int64)
    return Front(changes.work, changes.parameters, memory - (changes.under_way - 1), none + 1, none, none)


def greedy_price(options: Options, tables: Tables) -> Price:
    """What tells a search in tables of such fronts how long stages take, with the stages."""

    def price(spans: tuple[Span, ...]) -> tuple[float, tuple[Stage, ...]]:
        stages = [_stage(options, tables.cuts[span.lower], tables.cuts[span.upper], span) for span in spans]
        return seconds_of(tables, spans), with_free(options.network, stages)

    return price


def _stage(options: Options, inner: int, outer: int, span: Span) -> Stage:
    question, layers = options.question, layers_of(options, inner, outer, span.tensor)
    changes = _changes(layers, question.memory, min(question.microbatches, question.devices))
    exchange = 4.0 * (span.data - 1) / (question.microbatches * question.bandwidth)
    times = np.where(changes.under_way >= span.under_way, changes.work + exchange * changes.parameters, np.inf)
    column = int(changes.under_way[times.argmin()]) - 1
    changed = set(changes.order[changes.taken[:, column], column].tolist())
    points = [changes.small[index] if index in changed else changes.quick[index] for index in range(len(layers))]
    numbers = [int(layer.joined[point]) for layer, point in zip(layers, points, strict=True)]
    return chosen_stage(options, layers_in(outer & ~inner), span, numbers)


def _changes(layers: Sequence[Front], memory: int, most: int) -> _Changes:
    quick = [int(layer.work.argmin()) for layer in layers]
    small = [int((layer.stashed * most + layer.memory).argmin()) for layer in layers]
    figures = [
        [(float(layer.work[row]), float(layer.parameters[row]), int(layer.memory[row]), int(layer.stashed[row])) for row in (first, second)]
        for layer, first, second in zip(layers, quick, small, strict=True)
    ]
    table = np.array(figures).reshape(-1, 2, 4)
    work, parameters, fixed, stashed = (table[:, 0, column] for column in range(4))
    least, slope = table[:, 1, 2].sum(), table[:, 1, 3].sum()
    last = most if slope == 0.0 else min(most, int((memory - least) // slope) + 1)
    under_way = np.arange(1, max(last, 0) + 1)
    saved = (fixed - table[:, 1, 2])[:, None] + (stashed - table[:, 1, 3])[:, None] * (under_way - 1)
    longer = table[:, 1, 0] - work
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(saved > 0.0, saved / longer[:, None], -1.0)
    order = np.argsort(-ratio, axis=0, kind="stable")
    need = fixed.sum() + stashed.sum() * (under_way - 1) - memory
    useful = np.take_along_axis(np.where(saved > 0.0, saved, 0.0), order, axis=0).cumsum(axis=0)
    changes = (useful < need).sum(axis=0) + (need > 0.0)
    fits = changes <= len(layers)
    taken = np.arange(len(layers))[:, None] < changes
    extra = np.where(taken, longer[order], 0.0).sum(axis=0)
    more = np.where(taken, (table[:, 1, 1] - parameters)[order], 0.0).sum(axis=0)
    return _Changes(quick, small, order, taken, under_way[fits], work.sum() + extra[fits], parameters.sum() + more[fits])


# What is done without the whole search: without one kind of parallelism or recomputation (each exact where the search is), with the
# greedy choice of configurations of the published program, and with equal stages.

_MOST_STAGES = 20_000
"""Stages up to which other choices of configurations are tried, as they need tables of their own."""


def baselines_of(options: Options, tables: Tables, clock: Callable[[], None]) -> Iterator[Baseline[PiperPlan]]:
    """Every rule's value, or why it has none; a rule that is what was asked is left out."""
    question = options.question
    if "data" not in question.without:
        alone = replace(tables, degrees=np.ones(1, np.int64))
        yield _searched("no data parallelism", options, alone, clock)
    if "tensor" not in question.without and int(tables.tensor.max(initial=1)) > 1:
        yield _searched("no tensor degrees", options, only(tables, tables.tensor == 1), clock)
    small = len(tables.start) <= _MOST_STAGES
    if "recompute" not in question.without and small:
        fewer = narrowed(question, ("recompute",))
        if not all(fewer.graph.offers):
            yield Baseline("no recomputation", None, None, ONLY_AGAIN)
        elif fewer.graph.offers != question.graph.offers:
            own = options_of(fewer, replace(options.network, graph=fewer.graph))
            yield _searched("no recomputation", own, tables_of(own, tables.cuts, Bundling(), clock), clock)
    if small:
        greedy = tables_of(options, tables.cuts, Bundling(), clock, rule=greedy_front)
        yield _found_baseline("greedy choice", options, greedy, greedy_price(options, greedy), clock)
    for name, stages in equal_stages(question, clock).items():
        yield _baseline(name, options, stages)


def _searched(name: str, options: Options, tables: Tables, clock: Callable[[], None]) -> Baseline[PiperPlan]:
    return _found_baseline(name, options, tables, price_of(options, tables.cuts), clock)


def _found_baseline(name: str, options: Options, tables: Tables, price: Price, clock: Callable[[], None]) -> Baseline[PiperPlan]:
    known = Known()
    search(known, tables, 0.0, price, clock)
    return _baseline(name, options, known.stages)


def _baseline(name: str, options: Options, stages: tuple[Stage, ...] | None) -> Baseline[PiperPlan]:
    return Baseline(name, None, None, NO_STAGES) if stages is None else Baseline(name, None, named(options.question, stages))


# The engine for stages: cuts of the network, tables of all stages between them, the search, and what rules beside it would do.

_FIRST = ((20, 16), (60, 128))
"""Cuts between which first answers are found where there are more, and the points of their fronts."""
_ROUNDS = 12
"""Orders without a better answer after which no more are tried."""
_SOME_POINTS = 256
"""Of fronts between some of too many cuts, which bound nothing."""
_EVERY = 0.5
"""Seconds after which progress is shown again without news."""
_NEAR = 1e-3
"""How near to its bound a first answer is."""


@dataclass(slots=True)
class _Clock:
    """Time and news: `tick` ends the work at the deadline, and shows how far it is."""

    limits: Limits
    watch: Watch
    began: float
    known: Known
    label: str = "stages"
    answer: Callable[[], PiperPlan | None] | None = None
    """What is known, for who keeps answers on the way."""
    trace: list[tuple[float, float | None, float | None]] = field(default_factory=list)
    shown: float = 0.0

    def tick(self) -> None:
        now = monotonic() - self.began
        self.note(now)
        if now > self.limits.seconds:
            raise Late

    def note(self, now: float) -> None:
        """Keep and show what is known, where it is news."""
        best = None if self.known.stages is None else self.known.value
        bound = self.known.bound if self.known.bound < float("inf") else None
        news = not self.trace or self.trace[-1][1:] != (best, bound)
        if news:
            self.trace.append((now, best, bound))
        if news or now - self.shown > _EVERY:
            self.shown = now
            self.watch(Progress(self.label, best, bound, self.answer))


@dataclass(slots=True)
class _Work:
    """What has been built when the work ends."""

    options: Options
    tables: Tables | None = None
    every: bool = False
    """Whether the tables hold all cuts."""


def cuts(question: PiperQuestion, limits: Limits, watch: Watch) -> SearchOutcome[PiperPlan]:
    """The quickest stages, with their proof."""
    began = monotonic()
    if reasons := too_large(question):
        return SearchOutcome(None, float("inf"), RecomputableBound(BY_SIZES), "cuts", reasons=reasons, notes=question.notes)
    clock = _Clock(limits, watch, began, Known(bound=load_bound(question)))
    clock.answer = lambda: named(question, clock.known.stages) if clock.known.stages else None
    work = _Work(options_of(question, network_of(question.graph)))
    stopped, baselines = "complete", list[Baseline[PiperPlan]]()
    try:
        _search_all(work, clock)
    except Late:
        stopped = "time limit"
    except KeyboardInterrupt:
        stopped = "interrupted"
    seconds = monotonic() - began
    clock.note(seconds)
    clock.label = "rules to compare with"
    with suppress(Late, KeyboardInterrupt):
        if stopped == "complete" and clock.known.stages is not None and work.tables is not None:
            baselines.extend(baselines_of(work.options, work.tables, clock.tick))  # what came before a stop stays
    return replace(_found(work, clock.known), stopped=stopped, baselines=tuple(baselines), trace=tuple(clock.trace), seconds=seconds)


def _search_all(work: _Work, clock: _Clock) -> None:
    """A first answer between some cuts, then the best one between all, and the bound of it."""
    options, known = work.options, clock.known
    cuts, work.every = ideals_of(len(options.network), options.network.arcs)
    for count, points in _FIRST:
        if len(cuts) > count:
            few = tables_of(options, _chain(cuts, count), Bundling(most=points), clock.tick)
            _search_some(known, few, max(clock.limits.gap, _NEAR), options, clock)
    work.tables = tables = tables_of(options, cuts, Bundling(most=None if work.every else _SOME_POINTS), clock.tick)
    if work.every and not tables.bundled:
        search(known, tables, clock.limits.gap, price_of(options, tables.cuts), clock.tick)
        return
    _search_some(known, tables, clock.limits.gap, options, clock)
    if not work.every:
        _improve(known, options, clock)
    else:
        hoped = Known(bound=known.bound)
        relaxed = tables_of(options, cuts, Bundling(relaxed=True), clock.tick)
        search(hoped, relaxed, LEAST_GAP, lambda spans: (seconds_of(relaxed, spans), ()), clock.tick)
        known.bound = hoped.bound if known.stages is None else max(known.bound, min(hoped.bound, known.value))


def _search_some(known: Known, tables: Tables, gap: float, options: Options, clock: _Clock) -> None:
    """Better stages between cuts that need not be all, or with fronts that are bundled: the bound is not one for the question."""
    own = replace(known)
    try:
        search(own, tables, gap, price_of(options, tables.cuts), clock.tick)
    finally:
        known.value, known.stages = own.value, own.stages


def _improve(known: Known, options: Options, clock: _Clock) -> None:
    """Better stages along orders near those that are known, until some orders in a row give none."""
    index_of = {row: number for number, row in enumerate(options.network.rows)}
    failed = seed = 0
    while known.stages is not None and failed < _ROUNDS:
        stage_of = [0] * len(index_of)
        for number, stage in enumerate(known.stages):
            for row in stage.rows:
                if row in index_of:
                    stage_of[index_of[row]] = number
        value, seed = known.value, seed + 1
        cuts = cuts_near(options.network.arcs, stage_of, clock.limits.seed + seed)
        _search_some(known, tables_of(options, cuts, Bundling(most=_SOME_POINTS), clock.tick), clock.limits.gap, options, clock)
        failed = 0 if known.value < value * (1.0 - _NEAR) else failed + 1


def _chain(cuts: list[int], count: int) -> list[int]:
    """Some cuts of which each holds the one before, from no layers to all."""
    chain = cuts[:1]
    for cut in cuts:
        if chain[-1] & ~cut == 0 and cut != chain[-1]:
            chain.append(cut)
    return [*chain[: -1 : -(-len(chain) // count)], chain[-1]]


def _found(work: _Work, known: Known) -> SearchOutcome[PiperPlan]:
    tables, question, stages = work.tables, work.options.question, known.stages
    plan, bound = named(question, stages) if stages else None, known.bound if stages or known.bound == float("inf") else None
    if tables is None or not work.every:
        few = () if tables is None else (f"{len(tables.cuts):,} of more cuts were searched",)
        return SearchOutcome(plan, bound, RecomputableBound(BY_WORK), "cuts", notes=(*question.notes, *few))
    shown = not tables.bundled and countable(question, np.diff([*tables.start, len(tables.work)]))
    by_cuts = RecomputableBound(BY_CUTS) if shown else UnverifiedBound(f"{BY_CUTS}, choices bundled" if tables.bundled else BY_CUTS)
    proof = RecomputableBound(BY_WORK) if known.bound <= load_bound(question) else by_cuts
    return SearchOutcome(plan, bound, proof, "cuts", reasons=reasons_of(question) if bound == float("inf") else (), notes=question.notes)
