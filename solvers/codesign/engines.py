"""How many designs are nearer to the best one than the model is to measured runs, where engines prove without a look at all of them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

import numpy as np

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.plan_groups import members
from crossopt.instances.codesign.space import combinations, hardware_points
from crossopt.instances.codesign.stacks.known import close_call_error
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.codesign.answer import Candidate, Designs, answer_of, candidate_in
from crossopt.solvers.codesign.baselines.megatron import expert_design, expert_point, on_chip
from crossopt.solvers.codesign.baselines.recipes import (
    Practice,
    fsdp_design,
    pipedream_design,
    practice_of,
    recipes_baselines,
    recipes_design,
)
from crossopt.solvers.codesign.baselines.searchers import (
    SAMPLERS,
    Searcher,
    alternating,
    bayesian,
    black_box,
    descent,
    genetic,
    gradient,
    searched,
    uniform,
    with_plan,
)
from crossopt.solvers.codesign.boxes import search as by_boxes
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import CACHED, Survey
from crossopt.solvers.codesign.claims import UNREPEATED, enumerated, exact, reasons_of, relaxed, too_many
from crossopt.solvers.codesign.claims import by_boxes as cut_in_boxes
from crossopt.solvers.codesign.exhaustive import conflicts_of, search
from crossopt.solvers.codesign.explain.conflict import nearest_infeasible, nearest_infeasible_by_search, reference_text
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.objective import joined, rows_of, values_of
from crossopt.solvers.proofs import Exact, Relaxation, Tree

if TYPE_CHECKING:
    from crossopt.crossflow.exchanges.rare import Groups

_HEADS: Final = 1024
"""Groups whose members are priced together."""
_SECONDS: Final = 5.0
"""For counting, at the most."""


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
    for at in range(0, len(order), _HEADS):
        if not (complete := monotonic() < stop):
            break
        found += int((values_of(instance, survey.chip, members(instance, rows_of(heads, order[at : at + _HEADS]))) <= most).sum())
    return (_text(max(found - 1, 0), error, complete),)


def _text(others: int, error: float, complete: bool) -> str:
    near = f"within the model's mean error, {error:.1%}"
    texts = {0: f"no other design {near}", 1: f"one other design {near}"}
    many = f"{others:,} others {near}"
    return f"too close to call: {texts.get(others, many) if complete else f'at least {many}'}"


# Engines about one workload on one number of devices: each finds a design in its own way, and most prove a bound.

Engine = Callable[[Instance, Limits, Watch], SearchOutcome[Designs]]
Narrow = Callable[[Instance, float], Instance | None]
"""Makes a question narrower before the deadline; None where it cannot."""
Rule = Callable[[Instance, float], Candidate | None]
"""Chooses a design without searching, before the deadline."""

_PRACTICE, _NEARLY_ALL, _ENOUGH = 0.5, 0.9, 2.0
"""Shares of the time that the recipes may take before a search that begins with their design, and seconds up to which they may take the
larger one: where time is short their design is worth more than a beginning of the search."""
_PROVING, _PROVING_SHARE = 10.0, 3.0
"""Seconds, and times what the answer took, for a proof of it in whole numbers, or for the nearest design where there is none."""
ENUMERABLE = 20_000_000
"""Combinations of choices up to which `auto` prices every design, and so can say how many are near the best."""


def exhaustive(instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """Price every design; the least value is the answer and its own bound."""
    found = search(instance, watch, monotonic() + limits.seconds)
    complete = found.stopped == "complete"
    unrepeated = complete and too_many((instance,)) > 0
    reasons = () if unrepeated else conflicts_of(instance, found)
    seen = f"{found.space.feasible:,} of the designs that were priced keep every limit"
    return SearchOutcome(
        answer=answer_of(instance, found.best),
        bound=_least(found.value) if complete else None,
        proof=UNREPEATED if unrepeated else enumerated(found.space, reasons) if complete else None,
        engine="exhaustive",
        stopped=found.stopped,
        reasons=reasons_of(reasons),
        notes=nearest_infeasible(instance, reasons) if complete else (seen,),
        baselines=_baselines(instance, found.best, found.stopped, None),
        trace=found.trace,
        value=found.value,
    )


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


def auto(instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """`exhaustive` where every design can be priced in about a second, else `boxes`; with what is sold beside a chip."""
    few, began = hardware_points(instance) * combinations(instance) <= ENUMERABLE, monotonic()
    found = (exhaustive if few else boxes)(instance, limits, watch)
    comparison = reference_text(instance, found.value, began + limits.seconds) if found.stopped == "complete" else ()
    return replace(found, notes=(*found.notes, *comparison))


def by_rule(name: str, rule: Rule, instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """What a rule of thumb alone chooses: a design without a bound, and none where it breaks a limit of which the rule knows nothing."""
    del watch
    try:
        chosen = rule(instance, monotonic() + limits.seconds)
    except TimeoutError:
        return SearchOutcome(None, engine=name, stopped="time limit")
    broken = verify(instance, chosen).violations if chosen else ()
    notes = (f"what the rule chooses breaks a limit: {'; '.join(broken)}",) if broken else ()
    return SearchOutcome(None if broken else answer_of(instance, chosen), engine=name, notes=notes)


def hardware_only(instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """The best hardware for the plan of the best recipe: what co-design is worth over choosing the chip alone."""
    return _restricted(instance, "hardware-only", _with_best_recipe, limits, watch)


def plan_only(instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """The best plan on the chip of the best recipe: what co-design is worth over choosing the plan alone."""
    return _restricted(instance, "plan-only", _with_usual_hardware, limits, watch)


RULES: dict[str, Rule] = {"recipes": recipes_design, "expert": expert_design, "fsdp": fsdp_design, "pipedream-flush": pipedream_design}
SEARCHERS: dict[str, Searcher] = {
    "descent": descent,
    "genetic": genetic,
    "gradient": gradient,
    "random": uniform,
    **{name: partial(black_box, name) for name in SAMPLERS},
    "bayesian": bayesian,
}
ENGINES: dict[str, Engine] = {
    "auto": auto,
    "boxes": boxes,
    "cpsat": cpsat,
    "exhaustive": exhaustive,
    **{name: partial(by_rule, name, rule) for name, rule in RULES.items()},
    **{name: partial(searched, name, searcher) for name, searcher in SEARCHERS.items()},
    "alternating": partial(alternating, auto),
    "hardware-only": hardware_only,
    "milp": milp,
    "plan-only": plan_only,
}


def _least(value: float | None) -> float:
    """The least value of all designs, infinite where there is none."""
    return float("inf") if value is None else value


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
    verdict = verify(instance, found.design) if found.design else None
    if verdict is None or verdict.violations:
        return found, None
    watch(Progress(f"begins with the design by {found.name}", verdict.value, None, partial(answer_of, instance, found.design)))
    return found, found.design


def _notes(instance: Instance, value: float | None, stopped: str, survey: Survey, began: float, limits: Limits) -> tuple[str, ...]:
    """How many designs are too close to call, or by how much the nearest one misses a limit where there is none."""
    if stopped != "complete":
        return ()
    end, now = began + limits.seconds, monotonic()
    if value is None:
        return nearest_infeasible_by_search(instance, min(end, now + _PROVING + _PROVING_SHARE * (now - began)))
    return close_calls(instance, survey, value, end)


def _baselines(instance: Instance, best: Candidate | None, stopped: str, practice: Practice | None) -> tuple[Baseline[Designs], ...]:
    """The choices of practice, beside an answer whose search was complete."""
    return recipes_baselines(instance, practice) if best is not None and stopped == "complete" else ()


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


def _restricted(instance: Instance, name: str, narrow: Narrow, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """The optimum of a narrower question, which bounds and counts nothing in the whole one; no answer where the rule has none."""
    began = monotonic()
    try:
        narrowed = narrow(instance, began + limits.seconds)
    except TimeoutError:
        narrowed = None
    started = monotonic() - began
    left = replace(limits, seconds=limits.seconds - started)
    found = ENGINES["expert"](instance, left, watch) if narrowed is None else auto(narrowed, left, watch)
    chosen = candidate_in(instance, found.answer.design) if found.answer else None
    trace = tuple((started + seconds, value, None) for seconds, value, _ in found.trace)
    return SearchOutcome(answer_of(instance, chosen), engine=name, stopped=found.stopped, trace=trace)


def _with_best_recipe(instance: Instance, deadline: float) -> Instance | None:
    """The question with no plan but that of the best recipe."""
    chosen = recipes_design(instance, deadline)
    return None if chosen is None else with_plan(instance, chosen.plan)


def _with_usual_hardware(instance: Instance, deadline: float) -> Instance | None:
    """The question with no hardware but that of the best recipe, or the rule's where no recipe has a plan on its own."""
    chosen = recipes_design(instance, deadline)
    point = expert_point(instance) if chosen is None else chosen.point
    return None if point is None else on_chip(instance, point)
