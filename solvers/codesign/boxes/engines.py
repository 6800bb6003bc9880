"""Engines that prove a bound without a look at every design, by boxes or by integer models, and how many designs are near the best one."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from crossopt.crossflow.plan import CONCESSIONS
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.known_errors import close_call_error
from crossopt.instances.codesign.space import combinations, hardware_points
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch, unwatched
from crossopt.solvers.codesign.answer import Candidate, Designs, answer_of, candidate_in
from crossopt.solvers.codesign.boxes import search as by_boxes
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import CACHED, Survey, growing
from crossopt.solvers.codesign.claims import by_boxes as cut_in_boxes
from crossopt.solvers.codesign.claims import exact, relaxed
from crossopt.solvers.codesign.explain.conflict import nearest_infeasible_by_search
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.megatron import on_chip
from crossopt.solvers.codesign.objective import joined, near_members, rows_of
from crossopt.solvers.codesign.recipes import Practice, practice_of, recipes_baselines
from crossopt.solvers.proofs import Exact, Relaxation, Tree

if TYPE_CHECKING:
    from crossopt.crossflow.rare_exchanges import Groups

_SECONDS: Final = 5.0
"""For counting, at the most."""
_PRACTICE, _NEARLY_ALL, _ENOUGH = 0.5, 0.9, 2.0
"""Shares of the time that the recipes may take before a search that begins with their design, and seconds up to which they may take the
larger one: where time is short their design is worth more than a beginning of the search."""
_MANY: Final = 3 * 10**10
"""Combinations of settings from which on moves are tried before a proof, which then takes many times as long."""
_MOVING, _MOVING_SHARE = 3.0, 0.2
"""Seconds for moves, and their share of the time, at the most."""
_MOVES: Final = tuple(
    frozenset({*CONCESSIONS, *names.split()})
    for names in (
        "microbatch interleave sequence_parallel tensor_exchange expert_exchange schedule zero",
        "tensor context pipeline data expert expert_tensor microbatch",
        "interleave zero shard first_stage_layers last_stage_layers placement",
        "tensor context pipeline data expert microbatch interleave",
    )
)
"""Settings that change together in a move; the last move takes longest, and is tried where none of the others leads on."""
_PROVING, _PROVING_SHARE = 10.0, 3.0
"""Seconds, and times what the answer took, for a proof of it in whole numbers, or for the nearest design where there is none."""


def close_calls(instance: Instance, survey: Survey, value: float | None, deadline: float) -> tuple[str, ...]:
    """The count in a sentence, of a device that is measured; nothing where that is not known, or where groups are too many.

    Devices are measured as they are, so that there is but one, and a group whose bound is farther away has no member that is near."""
    error = close_call_error(instance)
    if error is None or value is None or not survey.complete or survey.fit > CACHED:
        return ()
    bounds = survey.every()
    bounds = bounds[survey.of_interest(bounds)]
    most, found, stop = value * (1.0 + error), 0, min(deadline, monotonic() + _SECONDS)
    order = np.argsort(bounds, kind="stable")[: int((bounds <= most).sum())]
    heads, complete = joined(survey.fitting), True
    for rows in growing(order):
        if not (complete := monotonic() < stop):
            break
        found += int((near_members(instance, survey.chip, rows_of(heads, rows), most)[1] <= most).sum())
    return (_text(max(found - 1, 0), error, complete),)


def _text(others: int, error: float, complete: bool) -> str:
    near = f"within the model's mean error, {error:.1%}"
    texts = {0: f"no other design {near}", 1: f"one other design {near}"}
    many = f"{others:,} others {near}"
    return f"too close to call: {texts.get(others, many) if complete else f'at least {many}'}"


def boxes(instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """Branch and bound over boxes of hardware points, with the tree of its cuts as the certificate; the recipes' design is there before."""
    began = monotonic()
    practice, known = _practice(instance, limits, watch)
    spent = monotonic() - began
    found = by_boxes.search(instance, watch, Spend(began + limits.seconds, limits.gap), known)
    points = hardware_points(instance)
    notes = _notes(instance, found.value, found.stopped, found.survey, began, limits)
    tree = Tree(found.plans * points, points, (found.plans,), (found.groups,), (found.promising,), len(found.cuts), found.cuts)
    return SearchOutcome(
        answer=answer_of(instance, found.best),
        bound=found.bound,
        proof=None if found.bound is None else cut_in_boxes(tree),
        engine="boxes",
        stopped=found.stopped,
        notes=notes,
        baselines=_baselines(instance, found.best, found.stopped, practice),
        trace=tuple((spent + seconds, value, bound) for seconds, value, bound in found.trace),
        value=found.value,
    )


def milp(instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """A refined integer model, solved by HiGHS."""
    return _by_refinement(instance, "milp", "highs", limits, watch)


def cpsat(instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """A refined integer model, solved by CP-SAT of OR-Tools."""
    return _by_refinement(instance, "cpsat", "cpsat", limits, watch)


def _practice(instance: Instance, limits: Limits, watch: Watch) -> tuple[Practice | None, Candidate | None]:
    """What practice would choose, and its design where that keeps every limit: an answer before all plans are listed. Nothing where the
    recipes take too much of the time, or where the start is cold."""
    if limits.start == "cold":
        return None, None
    try:
        seconds = max(_PRACTICE * limits.seconds, min(_NEARLY_ALL * limits.seconds, _ENOUGH))
        found = practice_of(instance, monotonic() + seconds)
    except TimeoutError:
        return None, None
    if found.design is None or (verdict := verify(instance, found.design)).violations:
        return found, None
    watch(Progress(f"begins with the design by {found.name}", verdict.value, None, partial(answer_of, instance, found.design)))
    return found, _moved(instance, found.design, limits, watch)


def _moved(instance: Instance, known: Candidate, limits: Limits, watch: Watch) -> Candidate:
    """The design to which moves of some settings at a time lead, on the same device, where plans are so many that to bound all
    takes seconds: each move is the best of all plans that share the other settings. They end where none is better, or with their share of
    the time."""
    if combinations(instance) < _MANY:
        return known
    best, move, end = known, 0, monotonic() + min(_MOVING_SHARE * limits.seconds, _MOVING)
    while move < len(_MOVES) and monotonic() < end:
        options = {name: values if name in _MOVES[move] else _as_in(best, name, values) for name, values in instance.plan_options}
        near = on_chip(replace(instance, plan_options=tuple(options.items())), best.point)
        found = by_boxes.search(near, unwatched, Spend(end), Candidate(0, best.plan), counted=False)
        if found.best is None or found.best.plan == best.plan:
            move += 1
            continue
        best, move = Candidate(best.point, found.best.plan), 0
        watch(Progress("moves from that design", found.value, None, partial(answer_of, instance, best)))
    return best


def _as_in(design: Candidate, name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The option of a setting that a design has; all where it has what another option comes to there."""
    own = getattr(design.plan, name)
    return (own,) if own in values else values


def _notes(instance: Instance, value: float | None, stopped: str, survey: Survey, began: float, limits: Limits) -> tuple[str, ...]:
    """How many designs are too close to call, or by how much the nearest one misses a limit where there is none."""
    if stopped != "complete":
        return ()
    end, now = began + limits.seconds, monotonic()
    if value is None:
        return nearest_infeasible_by_search(instance, min(end, now + _PROVING + _PROVING_SHARE * (now - began)))
    return close_calls(instance, survey, value, end)


def _by_refinement(instance: Instance, engine: str, solver: str, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """The refinement loop with a solver. Costs are rounded to quanta, so that a smaller gap than `LEAST_GAP` cannot be asked for."""
    from crossopt.formulation.codesign.forms import FORMS  # noqa: PLC0415 - checking a result loads no model
    from crossopt.solvers import backends  # noqa: PLC0415
    from crossopt.solvers.codesign.linear.certify import certify  # noqa: PLC0415
    from crossopt.solvers.codesign.linear.refine import LEAST_GAP, refine, require_transformer  # noqa: PLC0415

    if instance.sites is not None:
        return _with_exchanges(instance, instance.sites, partial(_by_refinement, engine=engine, solver=solver, limits=limits), watch)
    require_transformer(instance, engine)
    base, began = backends.Spend(workers=limits.workers, seed=limits.seed), monotonic()
    near = max(limits.gap, LEAST_GAP)
    practice, known = _practice(instance, limits, watch)
    begun = monotonic() - began
    found = refine(instance, backends.backend(solver), FORMS[limits.form], near, limits.seconds - begun, watch, base, known=known)
    relaxation = Relaxation(found.solver, found.rounds, found.tangents, limits.form, found.plans)
    spent = monotonic() - began
    left = min(limits.seconds - spent, _PROVING + _PROVING_SHARE * spent)
    notes = _notes(instance, found.value, found.stopped, found.survey, began, limits)
    certified = certify(instance, found, limits.form, left, watch)
    return SearchOutcome(
        answer=answer_of(instance, found.best),
        bound=found.bound if certified is None else certified[0],
        proof=None if found.bound is None else relaxed(relaxation) if certified is None else exact(relaxation, certified[1]),
        engine=engine,
        stopped=found.stopped,
        notes=(*found.notes, *notes),
        baselines=_baselines(instance, found.best, found.stopped, practice),
        trace=tuple((begun + seconds, value, bound) for seconds, value, bound in found.trace),
        value=found.value,
        coarse=LEAST_GAP,
        solver=found.solver,
    )


def _with_exchanges(
    instance: Instance, sites: "Groups", ask: Callable[..., SearchOutcome[Designs]], watch: Watch
) -> SearchOutcome[Designs]:
    """The least mean step, or the least cost of a run, by the least step: neither falls when the step grows, so that the figure of a bound
    is a bound. What proves the bound of the step is about another question, so that the bound is the solver's word here."""
    if instance.ceilings or instance.objective not in ("mean_step_time", "run_cost"):
        raise RefusedError("integer models answer questions with sites about the mean step or the run, without limits on them; use boxes")

    def mean(step: float | None) -> float | None:
        if step is None or step == float("inf"):
            return step
        return float(sites.least(step)) if instance.goal is None or instance.objective == "mean_step_time" else instance.goal.money(step)

    def tell(progress: Progress) -> None:
        watch(replace(progress, best=mean(progress.best), bound=mean(progress.bound)))

    found = ask(replace(instance, objective="step_time", sites=None), watch=tell)
    proof = relaxed(found.proof.relaxation) if isinstance(found.proof, Exact) else found.proof
    return replace(
        found,
        bound=mean(found.bound),
        proof=proof,
        baselines=_baselines(instance, candidate_in(instance, found.answer.design) if found.answer else None, found.stopped, None),
        notes=(),
        trace=tuple((seconds, mean(value), mean(bound)) for seconds, value, bound in found.trace),
        value=mean(found.value),
    )


def _baselines(instance: Instance, best: Candidate | None, stopped: str, practice: Practice | None) -> tuple[Baseline[Designs], ...]:
    """The choices of practice, beside an answer whose search was complete."""
    return recipes_baselines(instance, practice) if best is not None and stopped == "complete" else ()
