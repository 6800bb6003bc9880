"""Engines for fleets: the branch and bound over counts, the integer program of slices, and rules to compare with."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf, isinf
from time import monotonic

from crossopt.formulation.certificate import packed
from crossopt.formulation.fleet import SliceModel, scaled, slice_model
from crossopt.formulation.model import violations
from crossopt.instances.counts.fleet import FleetQuestion
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch, unwatched
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.backends.answer import Answer, Event
from crossopt.solvers.backends.wall import LateError, SolverProcess, version
from crossopt.solvers.backends.whole import trace
from crossopt.solvers.counts.fleet import BY_PRICES, BY_TREE, Fleet, judge, reason_of, slices_reason
from crossopt.solvers.counts.fleet_tree import Searched, Shares, search, spared
from crossopt.solvers.counts.rules import cheapest_of, fleet_of, ranked, rules_of_fleet, whole_classes
from crossopt.solvers.proofs import Integers

Found = SearchOutcome[Fleet]
_PATIENCE = 600.0
"""Seconds of a search where nobody gives a limit."""
_SEARCHING = 0.95
"""Part of a limit in which the tree grows."""


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
    latest = list[Fleet]()

    def hear(news: tuple[int, int | None, tuple[int, ...], Shares]) -> None:
        value, bound, counts, shares = news
        least = None if bound is None else question.cost(min(bound, value))
        trail.append((monotonic() - began, question.cost(value), least))
        latest[:] = [fleet_of(question, counts, shares)]
        watch(Progress("tree", question.cost(value), least, answer=lambda: latest[0]))

    name = f"highs {version('highspy')}"
    process, seconds = SolverProcess("highs", name), _PATIENCE if isinf(limits.seconds) else limits.seconds
    try:  # the tree comes back a little after the search has ended
        found: Searched = process.ask(search, form, limits.gap, began + seconds * _SEARCHING, until=began + seconds, hear=hear)
    except LateError:  # the tree is lost, what was heard on the way is not
        return SearchOutcome(latest[0] if latest else None, engine="tree", stopped="time limit", solver=name)
    finally:
        process.close()
    proof = Integers(BY_PRICES, found.certificate.scale, packed(found.certificate))
    if found.bound is None:
        return SearchOutcome(None, inf, proof, "tree", reasons=(reason_of(question, found.certificate.steps[0]),), solver=name)
    answer = None if found.value is None else fleet_of(question, found.counts, found.shares)
    bound = found.bound if found.value is None else min(found.bound, found.value)
    return SearchOutcome(
        answer,
        question.cost(bound),
        proof,
        "tree",
        found.stopped,
        baselines=rules_of_fleet(question),
        trace=tuple((at, value, None if least is None else min(least, question.cost(bound))) for at, value, least in trail),
        value=None if found.value is None else question.cost(found.value),
        solver=name,
    )


# Classes in slices: an integer program, and a tree about it.


def slices(question: FleetQuestion, limits: Limits, watch: Watch) -> Found:
    """HiGHS on slices and devices; the bound is that of any split where it meets the value, else that of a tree about the model."""
    parts = question.file.slices
    if parts is None:
        raise RefusedError("classes may be split in any way, which no whole slices do (take the engine tree, or state slices)")
    if not limits.seconds:
        return SearchOutcome(None, engine="slices", stopped="time limit")
    seconds = _PATIENCE if isinf(limits.seconds) else limits.seconds
    deadline, any_split = monotonic() + seconds * _SEARCHING, replace(question, file=replace(question.file, slices=None))
    loose = tree(any_split, replace(limits, seconds=seconds * _LOOSE), unwatched)
    if loose.bound == inf:
        return replace(loose, engine="slices")
    baselines = rules_of_fleet(question)
    try:
        solved, answer, outer = _best_in_slices(question, baselines, limits, deadline, watch)
    except ValueError as error:
        raise RefusedError(f"{error} (ask for any split, without slices)") from error
    value = None if answer is None else _units(question, answer)
    goal = None if value is None else value - spared(limits.gap, value)
    bound, proof = loose.bound, loose.proof
    if goal is None or bound is None or bound < question.cost(goal):
        proved = trace(outer.model, goal, max(deadline - monotonic(), 1.0))
        if proved.bound is None or bound is None or question.cost(proved.bound) > bound:
            bound = inf if proved.bound is None else question.cost(proved.bound)
            proof = Integers(BY_TREE, proved.certificate.scale, packed(proved.certificate))
    if bound == inf:
        return SearchOutcome(None, inf, proof, "slices", reasons=(slices_reason(question),), solver=solved.solver)
    ended = "complete" if goal is not None and bound >= question.cost(goal) else _ENDINGS.get(solved.stopped, "time limit")
    if answer is None or value is None:
        return SearchOutcome(None, engine="slices", stopped=ended, solver=solved.solver)
    bound = min(bound, question.cost(value))
    return SearchOutcome(answer, bound, proof, "slices", ended, baselines=baselines, solver=solved.solver)


def _best_in_slices(
    question: FleetQuestion, baselines: Sequence[Baseline[Fleet]], limits: Limits, deadline: float, watch: Watch
) -> tuple[Answer, Fleet | None, SliceModel]:
    """How HiGHS ended, the cheapest fleet of it and the baselines, and the model of all fleets. Where loads are rounded up in the first
    model, so that fleets without any room are none of its solutions, those of the second are tried as well."""
    inner, outer = (slice_model(question, inner=side) for side in (True, False))
    fleets = [fleet for item in baselines if (fleet := item.answer) is not None]
    for model in (inner, outer) if inner.model.constraints != outer.model.constraints else (inner,):
        solved = _solved_slices(question, model, replace(limits, seconds=max(deadline - monotonic(), 0.0) * _SOLVING), watch)
        if solved.values is not None:
            counts = [solved.values[variable] for variable in model.devices]
            parts = question.file.slices or 1
            shares = {key: Fraction(solved.values[item], parts) for key, item in model.slices.items() if solved.values[item]}
            fleets.append(fleet_of(question, counts, shares))
    fits = [fleet for fleet in fleets if not judge(question, fleet).violations]
    return solved, min(fits, key=lambda fleet: _units(question, fleet), default=None), outer


def _units(question: FleetQuestion, fleet: Fleet) -> int:
    """What a fleet costs, in units."""
    return sum(price * fleet.devices.get(kind, 0) for kind, price in zip(question.kinds, question.prices, strict=True))


_LOOSE, _SOLVING = 0.25, 0.6
"""Parts of a limit for the bound of any split, and of what is left for HiGHS."""
_ENDINGS = {"interrupted": "interrupted", "complete": "complete"}


def _solved_slices(question: FleetQuestion, inner: SliceModel, limits: Limits, watch: Watch) -> Answer:
    """What HiGHS finds, from the cheapest kind for each whole class on."""
    chosen = [ranked(question, index)[0] for index in range(len(question.classes))]
    start = whole_classes(question, chosen)
    known = {variable: start.devices.get(kind, 0) for variable, kind in zip(inner.devices, question.kinds, strict=True)}
    known |= {variable: int(chosen[index] == kind) * variable.high for (index, kind), variable in inner.slices.items()}
    keeps = not violations(inner.model, known)

    def see(event: Event) -> bool:
        value, bound = (None if units is None else question.cost(units) for units in (event.value, event.bound))
        watch(Progress("integer program", value, bound))
        return False

    spend = Spend(limits.seconds, limits.gap, limits.workers, limits.seed, hint=known if keeps else None, watch=see)
    return backend("highs")(inner.model, spend)


# Rules to compare with.


def cheapest(question: FleetQuestion, limits: Limits, watch: Watch) -> Found:
    """Requests on the kind that serves them cheapest, as far as there are devices; counts are rounded up, and nothing is proved."""
    del limits, watch
    answer = cheapest_of(question)
    return SearchOutcome(None if answer is None or judge(question, answer).violations else answer, engine="cheapest")
