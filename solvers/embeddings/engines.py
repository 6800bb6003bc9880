"""Engines for embedding tables: prices with local search, a search of all plans, and every plan of small questions."""

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, product, takewhile
from math import comb, inf, isfinite, isinf, nextafter
from random import Random
from time import monotonic
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.formulation.embeddings import Way, Whole, milliseconds, places_of, plan_model, search, whole
from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch, unwatched
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.backends.answer import Event
from crossopt.solvers.embeddings.annealing import balance_phases, height_of
from crossopt.solvers.embeddings.baselines import baselines, plan_of
from crossopt.solvers.embeddings.judge import (
    BY_COUNTS,
    BY_PHASES,
    BY_PRICES,
    BY_SEARCH,
    MOST_NODES,
    EmbeddingPlan,
    TablePlan,
    fewest_reason,
    judge,
    least_units,
    reasons_of,
)
from crossopt.solvers.embeddings.local import Plan, improve, slowest, start_from
from crossopt.solvers.embeddings.prices import (
    Flat,
    Priced,
    Regions,
    Relaxed,
    best_bound,
    best_prices,
    by_regions,
    cheap_small_pieces,
    cheapest,
    flat,
    in_small_pieces,
    lacking_by_relaxation,
    lacking_prices,
    relaxed,
    scaled_prices,
    sharpened,
)
from crossopt.solvers.proofs import PhaseLeaf, PricedCounts, PricedPhases, PricedTiers, UnverifiedBound

Found = SearchOutcome[EmbeddingPlan]
_PATIENCE: Final = 60.0
"""Seconds where no limit is given."""
_SMALL_TABLES, _SMALL_DEVICES, _FIRST_NODES, _MOST_NODES = 12, 8, 2_000, 200_000
_MOST_SEARCHED, _MOST_PLACES = 64, 256
"""Tables or devices up to which all plans are searched for the fewest devices, and places of a table."""
_SEARCHES: Final = ((_FIRST_NODES, 0.1), (MOST_NODES, 0.75))
"""Nodes of searches of all plans for a number of devices, at first and again, and of the time left for each."""
_LEAST_TURN: Final = 1.0
"""Seconds of a local search for a number of devices at least."""
_COMPARING, _LEAST_COMPARING = 5.0, 0.3
"""Seconds of baselines at most, and where they are asked at all."""
_LATEST: Final = 0.88
"""Of the time, after which there are no baselines: what is cut off at the end of the time loses its bound."""
_CLOSE: Final = 1e-9
_SHARES: Final = (1.0, 0.98, 0.95, 0.9, 0.8)
"""Of memory that starts of the local search fill."""
_MOST_PLANS: Final = 50_000
_RELAXING, _LEAST_RELAXING, _JUDGING = 0.2, 2.0, 10.0
"""Of the time that is left for a relaxation, its seconds at least, and how much longer than judging a plan nothing is judged again."""
_FILLED, _TIGHT = 0.98, 0.1
"""Of memory that small pieces by prices fill, and of the time for these where memory is short."""
_ABOVE: Final = 1.03
"""Of the bound, how far above it plans are looked for where none is known."""
_LARGE: Final = 1_000_000
"""Tables times devices of questions that have time for a single start, and for no baselines unless they are asked for."""
_MANY: Final = 4
"""Tables on a device from which on small pieces are the better start."""
_MOST_CELLS: Final = 4_000
"""Tables times devices of integer models."""


def auto(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> Found:
    """The bound by prices and a local search; of small questions also the search of all plans."""
    return _solved(question, limits, watch, "auto", searching=True)


def local(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> Found:
    """The bound by prices and a local search alone."""
    return _solved(question, limits, watch, "local", searching=False)


@dataclass(slots=True)
class _Course:
    """The best plan so far, and what is known of the bound."""

    question: EmbeddingsQuestion
    watch: Watch
    began: float
    priced: Priced
    plan: EmbeddingPlan | None = None
    value: float = inf
    trace: list[tuple[float, float | None, float | None]] = field(default_factory=list)
    pending: Plan | None = None
    """The best plan of a local search, as long as it is not judged."""
    judged: tuple[float, float] = (0.0, 0.0)
    """When the last plan was judged, and how long it took."""
    regions: Regions | None = None
    """Of the slowest of each phase, where they bound better than prices alone."""

    @property
    def bound(self) -> float:
        return max(self.priced.bound or 0.0, 0.0 if self.regions is None else self.regions.bound)

    @property
    def proof(self) -> PricedTiers | PricedPhases:
        """The proof of the bound."""
        return _phases_of(self.regions) if self.regions is not None and self.regions.bound == self.bound else _proof_of(self.priced)

    def offer(self, plan: EmbeddingPlan) -> None:
        """Keep a plan that the judge accepts if it is better."""
        began = monotonic()
        verdict = judge(self.question, plan)
        self.judged = monotonic(), monotonic() - began
        if verdict.accepted and verdict.value < self.value:
            self.plan, self.value = plan, float(verdict.value)
            self.trace.append((monotonic() - self.began, self.value, self.bound))
            self.report()

    def report(self) -> None:
        """Report the best plan, and the bound with its proof."""
        plan, proof = self.plan, self.proof
        self.watch(Progress("local search", self.value, min(self.bound, self.value), answer=lambda: plan, proof=lambda: proof))

    def seen(self, plan: Plan) -> None:
        """Judge a plan that fits, or keep it for later if judging takes long."""
        if not plan.overfull:
            self.pending = plan
            if monotonic() > self.judged[0] + _JUDGING * self.judged[1]:
                self.settle()

    def settle(self) -> None:
        """Judge the last plan that was seen."""
        if self.pending is not None:
            self.offer(plan_of(self.question, self.pending.held()))
            self.pending = None


def _solved(question: EmbeddingsQuestion, limits: Limits, watch: Watch, name: str, *, searching: bool) -> Found:
    if not limits.seconds:
        return SearchOutcome(None, engine=name, stopped="time limit")
    if question.file.objective == "fewest_devices":
        return _fewest(question, limits, watch, name)
    began, form = monotonic(), whole(question)
    deadline = began + (_PATIENCE if isinf(limits.seconds) else 0.85 * limits.seconds)
    ways = flat(form)
    if proof := _without_plan(form, ways):
        return SearchOutcome(None, inf, proof, name, reasons=reasons_of(question, form))
    priced = best_bound(ways)
    course = _Course(question, watch, began, priced)
    small = searching and len(form.types) <= _SMALL_TABLES and form.devices <= _SMALL_DEVICES
    patience = 0.1 if small else inf if isfinite(limits.seconds) else 1.0 + 0.01 * len(form.types)
    within = max(limits.gap, _CLOSE)
    halted = False
    try:
        _local_search(course, ways, within, patience, deadline, limits.seed, small=small)
    except KeyboardInterrupt:  # the plan so far has its bound
        if course.plan is None:
            raise
        halted = True
    lacking = lacking_by_relaxation(ways, _LEAST_RELAXING) if course.plan is None and not small else None
    bound, target, shown = course.bound, course.bound * (1.0 + within), course.proof
    if small and not halted and not course.value <= target and (nodes := _searched(course, form, priced, deadline)):
        shown, bound = PricedTiers(BY_SEARCH, None, _figures(priced), nodes=nodes), course.value
    if course.plan is None and (bound == inf or lacking is not None):
        shown = shown if lacking is None else PricedTiers(BY_PRICES, None, lacking)
        return SearchOutcome(None, inf, shown, name, reasons=reasons_of(question, form))
    ended = bound >= course.value or course.value <= target or isinf(limits.seconds)
    if course.plan is None:
        return SearchOutcome(None, engine=name, stopped="time limit", notes=("no plan was found that fits; none is proved impossible",))
    stopped, found_at = "complete" if ended and not halted else "interrupted" if halted else "time limit", monotonic() - began
    left = min(0.1 * limits.seconds, _COMPARING, _LATEST * limits.seconds - found_at)
    compared = left >= _LEAST_COMPARING and name == "auto" and not halted and len(form.types) * form.devices <= _LARGE
    beside = tuple[Baseline[EmbeddingPlan], ...]()
    try:
        beside = baselines(question, left) if compared else ()
    except KeyboardInterrupt:  # the answer is complete without them
        stopped = "interrupted"
    return SearchOutcome(
        course.plan,
        min(bound, course.value),
        shown,
        name,
        stopped,
        baselines=beside,
        notes=("baselines are left out for so many tables and devices",) if len(form.types) * form.devices > _LARGE else (),
        trace=tuple(course.trace),
        seconds=found_at,
    )


def _fewest(question: EmbeddingsQuestion, limits: Limits, watch: Watch, name: str) -> Found:
    """The fewest devices with a plan, and for each smaller number a proof that there is none. Numbers without either are taken up again,
    from the smallest on, as long as there is time."""
    began, excluded, counts = monotonic(), dict[int, PricedTiers](), question.counts
    best: EmbeddingPlan | None = None
    deadline = began + (_PATIENCE if isinf(limits.seconds) else 0.85 * limits.seconds)
    for turn in count():
        undecided = [number for number in counts if number not in excluded]
        for left, devices in zip(range(len(undecided), 0, -1), undecided, strict=True):
            proof, bound = _counted(question, excluded)
            known = None if best is None else partial(replace, best)
            watch(Progress(f"{devices:,} devices", None if best is None else best.devices, bound, known, partial(replace, proof)))
            until = deadline if not turn else monotonic() + (deadline - monotonic()) / left
            plan, shown = _on_devices(question.on(devices), question.within, until, limits.seed, turn)
            if plan is not None:
                best, counts = replace(plan, devices=devices), tuple(number for number in counts if number < devices)
            if shown is not None:
                excluded[devices] = shown
            if plan is not None or monotonic() >= deadline:
                break
        if all(number in excluded for number in counts) or monotonic() >= deadline:
            break
    proof, bound = _counted(question, excluded)
    if best is None and bound == inf:
        return SearchOutcome(None, inf, proof, name, reasons=(fewest_reason(question),))
    if best is None:
        return SearchOutcome(None, engine=name, stopped="time limit", notes=("no plan was found that fits; none is proved impossible",))
    return SearchOutcome(best, bound, proof, name, "complete" if bound == best.devices else "time limit", seconds=monotonic() - began)


def _counted(question: EmbeddingsQuestion, excluded: dict[int, PricedTiers]) -> tuple[PricedCounts, float]:
    """The proofs of all numbers of devices before the first that is not excluded, and this one."""
    tiers = tuple(excluded[number] for number in takewhile(excluded.__contains__, question.counts))
    return PricedCounts(BY_COUNTS, tiers), (*question.counts, inf)[len(tiers)]


def _on_devices(
    question: EmbeddingsQuestion, within: float | None, deadline: float, seed: int, turn: int
) -> tuple[EmbeddingPlan | None, PricedTiers | None]:
    """A plan within memory and time, or a proof that there is none; neither where time ends first. Later turns search more."""
    form = whole(question)
    ways = flat(form)
    if proof := _without_plan(form, ways):
        return None, proof
    priced, beyond = best_bound(ways), inf if within is None else nextafter(within, inf)
    if _bound_of(priced) >= beyond:
        return None, _proof_of(priced)
    course, shown = _Course(question, unwatched, monotonic(), priced), None
    small = len(form.types) <= _SMALL_TABLES and form.devices <= _SMALL_DEVICES
    if turn < len(_SEARCHES) and (small or _searchable(form)):
        shown = _search_of_all(course, form, beyond, deadline, *_SEARCHES[turn])
    if shown is None and course.value >= beyond:
        most = min(deadline, monotonic() + max((deadline - monotonic()) / 4, _LEAST_TURN))
        gap = inf if within is None else within / max(_bound_of(priced), 1e-300) - 1.0
        _local_search(course, ways, gap, 0.1 if small else inf, most, seed + turn, small=small)
    if shown is not None or course.value < beyond:
        return course.plan, shown
    relaxing = min(_LEAST_RELAXING * (turn + 1), deadline - monotonic()) if turn else _LEAST_RELAXING
    if not small and relaxing > 0.0 and (lacking := lacking_by_relaxation(ways, relaxing)) is not None:
        return None, PricedTiers(BY_PRICES, None, lacking)
    closer = course.priced if within is None or relaxing <= 0.0 else sharpened(ways, course.priced, beyond, relaxing)
    return None, _proof_of(closer) if _bound_of(closer) >= beyond else None


def _searchable(form: Whole) -> bool:
    """Whether the next table of a search has few places."""
    if max(len(form.types), form.devices) > _MOST_SEARCHED:
        return False
    places = (sum(comb(form.devices + (0 if way.distinct else way.pieces - 1), way.pieces) for way in ways) for ways in form.ways)
    return max(places) <= _MOST_PLACES


def _search_of_all(course: _Course, form: Whole, beyond: float, deadline: float, nodes: int, share: float) -> PricedTiers | None:
    """A proof by a search of all plans that there is none below this time; the first plan of the search goes to the course."""
    now, below = monotonic(), None if isinf(beyond) else least_units(beyond)
    until = now + share * (deadline - now)
    found = search(form, scaled_prices(course.priced.prices), below, nodes, lambda own: own.best is not None or monotonic() >= until)
    if found.best is not None:
        course.offer(plan_of(course.question, found.best))
    closed = found.complete and found.best is None
    return PricedTiers(BY_SEARCH, None, _figures(course.priced), nodes=max(found.nodes, 1)) if closed else None


def _refuse_counts(question: EmbeddingsQuestion, name: str) -> None:
    if question.file.objective == "fewest_devices":
        raise RefusedError(f"the engine {name} answers questions about times (take the engine auto for the fewest devices)")


def _local_search(course: _Course, ways: Flat, within: float, patience: float, deadline: float, seed: int, *, small: bool) -> None:
    """Local search from several starts, a sharper bound, and a search again from the best with more patience while there is time."""
    priced, random, best, step = course.priced, Random(seed), None, ways.form.step
    began = monotonic()
    loose = None if small or not (step or priced.prices.any()) else relaxed(ways, None, _RELAXING * (deadline - monotonic()), priced.prices)
    if loose is not None:
        course.priced = max(course.priced, loose.priced, key=lambda found: found.bound or 0.0)
    near = _by_targets(course, ways, loose, within, (patience, began, deadline), random) if step and not small else None
    starts = _starts(ways, priced) if course.plan is None or near is not None else []
    if loose is not None and not step:
        starts, priced = [*loose.ways, *starts][: len(starts) + 1], loose.priced
    for start in starts:
        target = course.bound * (1.0 + within)
        share = min(deadline, monotonic() + max(deadline - monotonic(), 0.0) / (2 * len(starts) if step else len(starts) + 1))
        plan = start_from(ways.form, start, max(course.bound, 1e-12))
        plan = improve(plan, target, share, min(patience, 2.0), random, course.seen, priced.prices)
        best = plan if best is None or slowest(plan) < slowest(best) else best
        course.settle()
        if course.value <= target or monotonic() >= deadline:
            break
    if step and best is not None:
        other = best, best.loads.mean(axis=0)
        best, least = other if near is None else min(near, other, key=lambda own: height_of(own[0]))
        balance_phases(best, least, course.bound * (1.0 + within), deadline, patience, random, course.seen)
        course.settle()
    if course.plan is not None and not small and course.regions is None and course.value > course.bound * (1.0 + within):
        course.priced = sharpened(ways, course.priced, course.value, max(_RELAXING * (deadline - monotonic()), _LEAST_RELAXING))
        course.report()
    if best is not None and not step and course.value > course.bound * (1.0 + within):
        improve(best, course.bound * (1.0 + within), deadline, patience, random, course.seen, priced.prices)
        course.settle()


def _by_targets(
    course: _Course, ways: Flat, loose: Relaxed | None, within: float, times: tuple[float, float, float], random: Random
) -> tuple[Plan, Array] | None:
    """Plans with the least sum of the slowest of each phase, from small pieces; where the relaxation is not known in time, by prices. The
    best one with its targets, and time left, where it is not and memory is short, so that other starts may be better."""
    patience, began, deadline = times
    if loose is not None:
        cut = by_regions(ways, loose, min(course.value, course.bound * _ABOVE), _RELAXING * (deadline - monotonic()))
        if cut is not None and cut.bound > course.bound:
            course.regions, loose = cut, cut.loose
    most = deadline - (0.0 if loose is None else 1.5 * (monotonic() - began))
    small = None if loose is None else in_small_pieces(ways, loose, _RELAXING * (deadline - monotonic()))
    pieces, slowest = cheap_small_pieces(ways, course.priced.prices, _FILLED)
    begun = [pieces if small is None else small.ways[0]]
    if loose is not None:
        begun, slowest = begun if len(ways.form.types) >= _MANY * ways.form.devices else [loose.ways[0], *begun], loose.slowest
    plans = [start_from(ways.form, own, max(course.bound, 1e-12)) for own in begun]
    for plan in plans:
        course.seen(plan)
        course.settle()
    if tight := loose is None and (course.plan is None or bool(course.priced.prices.any())):
        most = monotonic() + _TIGHT * (most - monotonic())
    for left in range(len(plans) + 1 if len(plans) > 1 else 1, 0, -1):
        share = monotonic() + max(most - monotonic(), 0.0) / left
        plan = plans.pop(0) if left > 1 else min(plans, key=height_of)
        plans.append(balance_phases(plan, slowest, course.bound * (1.0 + within), share, patience, random, course.seen))
        course.settle()
    return (min(plans, key=height_of), slowest) if tight else None


def _proof_of(priced: Priced) -> PricedTiers:
    return PricedTiers(BY_PRICES, priced.limit, _figures(priced), priced.weights)


def _phases_of(regions: Regions) -> PricedPhases:
    return PricedPhases(BY_PHASES, regions.cuts, tuple(PhaseLeaf(_figures(own), own.weights, own.floors) for own in regions.leaves))


def _bound_of(priced: Priced) -> float:
    return priced.bound or 0.0


def _figures(priced: Priced) -> tuple[float, float, float]:
    hbm, ddr, ssd = (float(price) for price in priced.prices)
    return hbm, ddr, ssd


def _without_plan(form: Whole, ways: Flat) -> PricedTiers | None:
    """A proof that there is no plan: a table that fits nowhere, or too little memory in all; None where neither shows it."""
    if any(not own for own in form.ways):
        return PricedTiers(BY_PRICES, None, (0.0, 0.0, 0.0))
    prices = lacking_prices(ways)
    return None if prices is None else PricedTiers(BY_PRICES, None, prices)


def _starts(ways: Flat, priced: Priced) -> list[list[Way]]:
    """Ways of tables to begin with: the cheapest that fill shares of all memory, of those that leave room for what all devices hold, then
    of all."""
    form, found = ways.form, list[list[Way]]()
    every = np.ones(len(ways.ways), bool) if priced.limit is None else ways.largest <= priced.limit
    scale, seen = _bound_of(priced), set[bytes]()
    beside = float(ways.counts @ ways.everywhere[cheapest(ways, priced.prices, every)])
    below = every & (ways.largest + beside - ways.everywhere <= scale)
    for share in _SHARES:
        for allowed in (below, every):
            if not np.all(np.logical_or.reduceat(allowed, ways.starts[:-1])):
                continue
            chosen = cheapest(ways, best_prices(ways, allowed, share), allowed)
            if chosen.tobytes() not in seen:
                seen.add(chosen.tobytes())
                found.append([ways.ways[chosen[kind]] for kind in form.types])
    return found[:1] if len(form.types) * form.devices > _LARGE else found


def _searched(course: _Course, form: Whole, priced: Priced, deadline: float) -> int:
    """The best plan of all, kept in the course, and the nodes of the search that proves it or that there is none; 0 if it took too long."""
    prices, most = scaled_prices(priced.prices), _FIRST_NODES
    below = None if course.plan is None else least_units(course.value)
    while monotonic() < deadline and most <= _MOST_NODES:
        course.watch(Progress(f"search of all plans, {most:,} nodes", None if course.plan is None else course.value))
        found = search(form, prices, below, most)
        if found.best is not None:
            course.offer(plan_of(course.question, found.best))
            below = least_units(course.value)
        if found.complete:
            return max(search(form, prices, below, most).nodes, 1)
        most *= 10
    return 0


def search_all(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> Found:
    """The search of all plans, from the bound by prices on."""
    if not limits.seconds:
        return SearchOutcome(None, engine="search", stopped="time limit")
    if question.file.objective == "fewest_devices":
        return _fewest(question, limits, watch, "search")
    form = whole(question)
    ways = flat(form)
    if proof := _without_plan(form, ways):
        return SearchOutcome(None, inf, proof, "search", reasons=reasons_of(question, form))
    priced = best_bound(ways)
    course = _Course(question, watch, monotonic(), priced)
    nodes = _searched(course, form, priced, monotonic() + min(limits.seconds, _PATIENCE))
    if not nodes:
        return SearchOutcome(course.plan, engine="search", stopped="time limit")
    proof = PricedTiers(BY_SEARCH, None, _figures(priced), nodes=nodes)
    if course.plan is None:
        return SearchOutcome(None, inf, proof, "search", reasons=reasons_of(question, form))
    return SearchOutcome(course.plan, course.value, proof, "search")


def cpsat(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> Found:
    """The integer model by CP-SAT."""
    return _by_solver(question, limits, watch, "cpsat")


def highs(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> Found:
    """The integer model by HiGHS."""
    return _by_solver(question, limits, watch, "highs")


def _by_solver(question: EmbeddingsQuestion, limits: Limits, watch: Watch, name: str) -> Found:
    """The integer model of all plans no slower than one of a short local search; its bound is the solver's word."""
    _refuse_counts(question, name)
    if not limits.seconds:
        return SearchOutcome(None, engine=name, stopped="time limit")
    began, form = monotonic(), whole(question)
    ways = flat(form)
    if proof := _without_plan(form, ways):
        return SearchOutcome(None, inf, proof, name, reasons=reasons_of(question, form))
    if len(form.types) * form.devices > _MOST_CELLS:
        raise RefusedError(f"{len(form.types):,} tables on {form.devices:,} devices are too many for {name} (take the engine auto)")
    seconds = _PATIENCE if isinf(limits.seconds) else limits.seconds
    priced = best_bound(ways)
    course = _Course(question, watch, began, priced)
    _local_search(course, ways, _CLOSE, 0.2, began + 0.2 * seconds, limits.seed, small=True)
    slowest_of_all = sum(max(milliseconds(way.largest) for way in form.ways[kind]) for kind in form.types)
    posed = plan_model(form, min(course.value, slowest_of_all))

    def see(event: Event) -> bool:
        value, bound = (None if found is None else found * posed.quantum for found in (event.value, event.bound))
        watch(Progress(name, value, bound))
        return False

    left = max(seconds - (monotonic() - began), 0.5)
    found = backend(name)(posed.model, Spend(left, limits.gap, limits.workers, limits.seed, watch=see))
    if found.values is not None:
        course.offer(plan_of(question, posed.held(form, found.values)))
    if found.bound is None and course.plan is None:
        return SearchOutcome(None, inf, UnverifiedBound(found.solver), name, reasons=reasons_of(question, form), solver=found.solver)
    bound = course.value if found.bound is None else max(found.bound * posed.quantum, course.bound)
    if course.plan is None:
        return SearchOutcome(None, engine=name, stopped="time limit", solver=found.solver)
    stopped = "complete" if found.stopped == "complete" else "time limit"
    return SearchOutcome(course.plan, min(bound, course.value), UnverifiedBound(found.solver), name, stopped, solver=found.solver)


def exhaustive(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> Found:
    """Every plan of a small question, judged one by one: to compare with, without a bound of its own."""
    del watch
    _refuse_counts(question, "exhaustive")
    began = monotonic()
    if not limits.seconds:
        return SearchOutcome(None, engine="exhaustive", stopped="time limit")
    group = question.group
    plans = [
        [TablePlan(option.option, places) for option in options for places in places_of(option, group.devices, group.per_node)]
        for options in (question.options[kind] for kind in question.types)
    ]
    count = 1
    for own in plans:
        count *= len(own)
    if count > _MOST_PLANS:
        raise RefusedError(f"there are {count:,} plans, more than the {_MOST_PLANS:,} that are looked at (take the engine auto)")
    best: tuple[float, EmbeddingPlan | None] = (inf, None)
    stopped = "complete"
    for held in product(*plans):
        if monotonic() - began > limits.seconds:
            stopped = "time limit"
            break
        verdict = judge(question, EmbeddingPlan(held))
        if verdict.accepted and verdict.value < best[0]:
            best = float(verdict.value), EmbeddingPlan(held)
    return SearchOutcome(best[1], engine="exhaustive", stopped=stopped)
