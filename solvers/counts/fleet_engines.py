"""Engines for fleets: the branch and bound over counts, the integer program of slices, and rules to compare with."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, inf, isinf
from time import monotonic

from crossopt.formulation.certificate import Leaf, packed
from crossopt.formulation.fleet import prices_of, scaled, slice_model, worth_of
from crossopt.instances.counts.fleet import FleetQuestion
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.backends.answer import Event
from crossopt.solvers.backends.wall import LateError, SolverProcess, version
from crossopt.solvers.backends.whole import trace
from crossopt.solvers.counts.fleet import BY_PRICES, BY_TREE, Fleet, judge
from crossopt.solvers.counts.fleet_tree import Searched, Shares, search, spared
from crossopt.solvers.proofs import Integers, UnverifiedBound

Found = SearchOutcome[Fleet]
_PATIENCE = 600.0
"""Seconds of a search where nobody gives a limit."""
_FEW = 4
"""Classes that a reason names."""


def auto(question: FleetQuestion, limits: Limits, watch: Watch) -> Found:
    """The branch and bound over counts, or the integer program where classes are cut in slices."""
    return tree(question, limits, watch) if question.file.slices is None else slices(question, limits, watch)


def tree(question: FleetQuestion, limits: Limits, watch: Watch) -> Found:
    """Branch and bound over counts of devices, for any split of classes."""
    if question.file.slices is not None:
        raise RefusedError("classes are cut in slices, which the tree does not do (take the engine slices)")
    if not limits.seconds:
        return SearchOutcome(None, engine="tree", stopped="time limit")
    form, began, trail = scaled(question), monotonic(), list[tuple[float, float | None, float | None]]()

    def hear(news: tuple[int, int | None, tuple[int, ...], Shares]) -> None:
        value, bound, counts, shares = news
        least = None if bound is None else question.cost(min(bound, value))
        trail.append((monotonic() - began, question.cost(value), least))
        watch(Progress("tree", question.cost(value), least, answer=lambda: fleet_of(question, counts, shares)))

    name = f"highs {version('highspy')}"
    process, deadline = SolverProcess("highs", name), began + (_PATIENCE if isinf(limits.seconds) else limits.seconds)
    try:
        found: Searched = process.ask(search, form, limits.gap, deadline, until=deadline, hear=hear)
    except LateError:
        return SearchOutcome(None, engine="tree", stopped="time limit")
    finally:
        process.close()
    proof = Integers(BY_PRICES, found.certificate.scale, packed(found.certificate))
    if found.bound is None:
        [leaf] = found.certificate.steps
        reasons = (_clash(question, leaf),) if isinstance(leaf, Leaf) else ()
        return SearchOutcome(None, inf, proof, "tree", reasons=reasons, solver=name)
    answer = None if found.value is None else fleet_of(question, found.counts, found.shares)
    bound = found.bound if found.value is None else min(found.bound, found.value)
    return SearchOutcome(
        answer,
        question.cost(bound),
        proof,
        "tree",
        found.stopped,
        baselines=baselines_of(question),
        trace=tuple((at, value, None if least is None else min(least, question.cost(bound))) for at, value, least in trail),
        value=None if found.value is None else question.cost(found.value),
        solver=name,
    )


def fleet_of(question: FleetQuestion, counts: Sequence[int], shares: Shares) -> Fleet:
    """A fleet with its shares in words."""
    devices = {kind: number for kind, number in zip(question.kinds, counts, strict=True) if number}
    by_class: dict[str, dict[str, str]] = {name: {} for name in question.classes}
    for (place, kind), share in sorted(shares.items()):
        by_class[question.classes[place]][question.kinds[kind]] = str(share)
    return Fleet(devices, by_class)


def _clash(question: FleetQuestion, leaf: Leaf) -> str:
    """Which classes ask for more than all available devices serve, by the prices that prove it."""
    form = scaled(question)
    prices = prices_of(form, leaf)
    asked = sum(price * load for price, load in zip(prices, form.loads, strict=True))
    served = sum(worth * most for worth, most in zip(worth_of(form, prices), question.most, strict=True))
    names = [name for name, price in zip(question.classes, prices, strict=True) if price]
    several = ", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more classes" if len(names) > _FEW else "")
    percent = ceil(Fraction(served, asked) * 1_000) / 10
    return f"available: all devices together serve less than {percent:g} % of the requests of {several}"


# Classes in slices: an integer program, and a tree about it.


def slices(question: FleetQuestion, limits: Limits, watch: Watch) -> Found:
    """HiGHS on slices and devices, and a tree of our own that proves the bound."""
    if question.file.slices is None:
        raise RefusedError("classes may be split in any way, which no whole slices do (take the engine tree, or state slices)")
    if not limits.seconds:
        return SearchOutcome(None, engine="slices", stopped="time limit")
    deadline = monotonic() + (_PATIENCE if isinf(limits.seconds) else limits.seconds)
    inner, outer = slice_model(question, inner=True), slice_model(question, inner=False)

    def see(event: Event) -> bool:
        value, bound = (None if units is None else question.cost(units) for units in (event.value, event.bound))
        watch(Progress("integer program", value, bound))
        return False

    spend = Spend((deadline - monotonic()) / 2.0, limits.gap, limits.workers, limits.seed, watch=see)
    solved = backend("highs")(inner.model, spend)
    goal = None if solved.value is None else solved.value - spared(limits.gap, solved.value)
    proved = trace(outer.model, goal, max(deadline - monotonic(), 1.0))
    proof = Integers(BY_TREE, proved.certificate.scale, packed(proved.certificate))
    if proved.bound is None:
        reasons = _reasons_of_slices(question, limits, watch)
        return SearchOutcome(None, inf, proof, "slices", reasons=reasons, solver=solved.solver)
    if solved.values is None or solved.value is None:
        stopped = "interrupted" if solved.stopped == "interrupted" else "time limit"
        unknown = SearchOutcome[Fleet](None, engine="slices", stopped=stopped, solver=solved.solver)
        return unknown if solved.status != "INFEASIBLE" else replace(unknown, bound=inf, proof=UnverifiedBound("highs"), stopped="complete")
    counts = [solved.values[variable] for variable in inner.devices]
    shares = {key: Fraction(solved.values[one], question.file.slices) for key, one in inner.slices.items() if solved.values[one]}
    bound = question.cost(min(proved.bound, solved.value))
    ended = "complete" if proved.bound >= (goal or 0) or solved.stopped not in {"interrupted", "time limit"} else solved.stopped
    baselines = baselines_of(question)
    return SearchOutcome(fleet_of(question, counts, shares), bound, proof, "slices", ended, baselines=baselines, solver=solved.solver)


def _reasons_of_slices(question: FleetQuestion, limits: Limits, watch: Watch) -> tuple[str, ...]:
    """What clashes with any split, or that only other splits would do."""
    any_split = replace(question, file=replace(question.file, slices=None))
    found = tree(any_split, limits, watch)
    return found.reasons or (f"slices: other splits serve all requests, {question.file.slices} equal parts of each class do not",)


# Rules to compare with.


def cheapest(question: FleetQuestion, limits: Limits, watch: Watch) -> Found:
    """Requests on the kind that serves them cheapest, as far as there are devices; counts are rounded up, and nothing is proved."""
    del limits, watch
    answer = cheapest_of(question)
    return SearchOutcome(None if answer is None or judge(question, answer).violations else answer, engine="cheapest")


def cheapest_of(question: FleetQuestion) -> Fleet | None:
    """Requests on the kind that serves them cheapest, then on the next where it has no devices left; None where requests are left."""
    room = [None if limit is None else Fraction(limit) for limit in question.limits]
    left, busy, shares = [Fraction(1)] * len(question.classes), [Fraction(0)] * len(question.kinds), dict[tuple[int, int], Fraction]()
    pairs = [(place, kind) for place, rates in enumerate(question.rates) for kind, rate in enumerate(rates) if rate]
    for place, kind in sorted(pairs, key=lambda pair: _cost(question, *pair) / _cost(question, pair[0], _cheapest_kind(question, pair[0]))):
        each, free = question.loads[place] / question.rates[place][kind], room[kind]
        share = left[place] if free is None else min(left[place], (free - busy[kind]) / each)
        if share:
            shares[place, kind], left[place], busy[kind] = share, left[place] - share, busy[kind] + share * each
    return None if any(left) else fleet_of(question, [ceil(one) for one in busy], shares)


def _cheapest_kind(question: FleetQuestion, place: int) -> int:
    return min((kind for kind, rate in enumerate(question.rates[place]) if rate), key=lambda kind: _cost(question, place, kind))


def _cost(question: FleetQuestion, place: int, kind: int) -> Fraction:
    """Of the requests of a class on one kind."""
    return question.prices[kind] / question.rates[place][kind]


def _whole_classes(question: FleetQuestion, chosen: Sequence[int]) -> Fleet:
    """Every class on one kind, with as many devices as they keep busy."""
    busy = [Fraction(0)] * len(question.kinds)
    for place, kind in enumerate(chosen):
        busy[kind] += question.loads[place] / question.rates[place][kind]
    return fleet_of(question, [ceil(one) for one in busy], {(place, kind): Fraction(1) for place, kind in enumerate(chosen)})


def baselines_of(question: FleetQuestion) -> tuple[Baseline[Fleet], ...]:
    """The best single kind, the kinds that serve requests cheapest, and the cheapest kind with devices of its own for each class."""
    classes = range(len(question.classes))
    alone = [_whole_classes(question, [kind] * len(classes)) for kind in range(len(question.kinds)) if _serves_all(question, kind)]
    found = list[Baseline[Fleet]]()
    judged = [(bool(verdict.violations), verdict.value, one) for one in alone for verdict in [judge(question, one)]]
    if judged:
        _, _, best = min(judged, key=lambda entry: entry[:2])
        found.append(Baseline(f"{next(iter(best.devices))} alone", None, best))
    answer = cheapest_of(question)
    found += [Baseline("cheapest kinds first", None, answer)] if answer is not None else []
    chosen = [_cheapest_kind(question, place) for place in classes]
    counts = [0] * len(question.kinds)
    for place, kind in enumerate(chosen):
        counts[kind] += ceil(question.loads[place] / question.rates[place][kind])
    apart = fleet_of(question, counts, {(place, kind): Fraction(1) for place, kind in enumerate(chosen)})
    return (*found, Baseline("devices of its own for each class", None, apart))


def _serves_all(question: FleetQuestion, kind: int) -> bool:
    return all(rates[kind] for rates in question.rates)
