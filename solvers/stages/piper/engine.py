"""The engine for stages: cuts of the network, tables of all stages between them, the search, and what rules beside it would do."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import monotonic

import numpy as np

from crossopt.instances.stages.piper import PiperQuestion
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound
from crossopt.solvers.stages.piper.baselines import baselines_of
from crossopt.solvers.stages.piper.cuts import Bundling, Late, Options, cuts_near, ideals_of, network_of, options_of
from crossopt.solvers.stages.piper.judge import PiperPlan, named
from crossopt.solvers.stages.piper.prove import BY_CUTS, BY_SIZES, BY_WORK, LEAST_GAP, countable, load_bound, too_large
from crossopt.solvers.stages.piper.search import Known, Tables, price_of, search, seconds_of, tables_of

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
    words: str = "stages"
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
            self.watch(Progress(self.words, best, bound, self.answer))


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
    stopped, rivals = "complete", list[Baseline[PiperPlan]]()
    try:
        _search_all(work, clock)
    except Late:
        stopped = "time limit"
    except KeyboardInterrupt:
        stopped = "interrupted"
    seconds = monotonic() - began
    clock.note(seconds)
    clock.words = "rules to compare with"
    with suppress(Late, KeyboardInterrupt):
        if stopped == "complete" and clock.known.stages is not None and work.tables is not None:
            rivals.extend(baselines_of(work.options, work.tables, clock.tick))  # what came before a stop stays
    return replace(_found(work, clock.known), stopped=stopped, rivals=tuple(rivals), trace=tuple(clock.trace), seconds=seconds)


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
    place = {row: number for number, row in enumerate(options.network.rows)}
    failed = seed = 0
    while known.stages is not None and failed < _ROUNDS:
        stage_of = [0] * len(place)
        for number, stage in enumerate(known.stages):
            for row in stage.rows:
                if row in place:
                    stage_of[place[row]] = number
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
    reasons = ("no stages keep the memory and the number of devices (more of --memory or --devices)",)
    told = RecomputableBound(BY_CUTS) if shown else UnverifiedBound(f"{BY_CUTS}, choices bundled" if tables.bundled else BY_CUTS)
    proof = RecomputableBound(BY_WORK) if known.bound <= load_bound(question) else told
    return SearchOutcome(plan, bound, proof, "cuts", reasons=reasons if bound == float("inf") else (), notes=question.notes)
