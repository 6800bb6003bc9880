"""The refinement loop: an integer model that only under-estimates, and the full model that says where.

    solve the relaxation         its optimum bounds every design that is still below the best one known
    price its design             by the full model: perhaps a better design
    tighten it there             tangents of all plans at that chip; where these are met already, a row for that chip and those below it

until the relaxation has no design that is better by more than the gap asked. What `boxes` and `codesign.screen` rule out goes before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.crossflow.plan import Plans, rows_of
from crossopt.crossflow.workload import Transformer
from crossopt.formulation.codesign import choices
from crossopt.formulation.codesign.choices import known
from crossopt.formulation.codesign.forms import Form
from crossopt.formulation.codesign.tangent import tangents_at
from crossopt.formulation.model import Values, real
from crossopt.instances.codesign.boxes import Boxes, Corners, corners
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import AnyPlans
from crossopt.instances.errors import INVALID, ContradictionError, RefusedError
from crossopt.solvers.answer import Progress, Watch
from crossopt.solvers.backends import Backend
from crossopt.solvers.backends.answer import Answer, Event, Spend
from crossopt.solvers.codesign.answer import Candidate, answer_of
from crossopt.solvers.codesign.boxes.branch import Incumbent, candidate_of, improved
from crossopt.solvers.codesign.boxes.search import Survey, Survivors, survivors
from crossopt.solvers.codesign.objective import memory_of, values_of

_BLOCK = 64
"""Plans whose tangents are computed together."""
_PRICED_BLOCK = 1024
"""Plans that are priced together, few enough for small memory and frequent deadline checks."""
_SCREENS = 8
"""How often plans are priced before the integer model is written."""
_TOGETHER = 64
"""Plans up to which each round gives all of them a tangent."""

ALONE = Spend()
"""One thread, and the first seed: the same answer every time."""
LEAST_GAP = 1.0e-4
"""The gap asked of the loop, unless more is asked: some twenty times what a row may lose by rounding each of its terms to quanta."""


def require_transformer(instance: Instance, engine: str) -> None:
    """Only step times of transformers have tangents."""
    limited = instance.budget.step_time < inf or bool(instance.ceilings)
    if not isinstance(instance.workload, Transformer) or instance.objective != "step_time" or limited:
        raise RefusedError(f"the {engine} engine answers step_time questions of transformers without a limit on that time; use boxes")


@dataclass(frozen=True, slots=True)
class Refined:
    """What the loop found."""

    best: Candidate | None
    value: float | None
    bound: float | None
    """No design is below this; infinite where there is none, None where there was no time to say."""
    solver: str
    rounds: int
    tangents: int
    plans: int
    """Plans that the integer model chooses among."""
    trace: tuple[tuple[float, float | None, float | None], ...]
    stopped: str
    survey: Survey
    notes: tuple[str, ...] = ()
    """That the solver did not end by itself."""
    problem: choices.Codesign | None = None
    """The integer model as it was solved last."""
    least: int | None = None
    """Its optimum in quanta, or what the solver proved of it; None where it has no solution."""


@dataclass(slots=True)
class _Loop:
    """Where the loop stands."""

    instance: Instance
    left: Survivors
    best: Incumbent
    bound: float
    gap: float
    began: float
    deadline: float
    watch: Watch
    base: Spend
    """Threads and seed of the solver."""
    within: float | None
    """Designs up to this share above the best one stay in the model; None where none that is as good as it need stay."""
    solver: str = ""
    rounds: int = 0
    tangents: int = 0
    plans: int = 0
    stopped: str = "complete"
    notes: tuple[str, ...] = ()
    trace: list[tuple[float, float | None, float | None]] = field(default_factory=list)
    problem: choices.Codesign | None = None
    least: int | None = None

    @property
    def enough(self) -> float:
        """The bound at which the best design is proved to the gap asked."""
        return self.best.value * (1.0 - 0.999 * self.gap)

    @property
    def below(self) -> float:
        """What a design must be below to be in the model."""
        return self.enough if self.within is None else float(np.nextafter(self.best.value * (1.0 + self.within), inf))

    @property
    def open(self) -> bool:
        """Whether the model has anything left to say."""
        return self.plans > 0 and (self.bound < self.enough or (self.within is not None and not self.rounds))

    @property
    def value(self) -> float | None:
        return self.best.value if self.best.value < inf else None

    @property
    def known(self) -> float | None:
        """No design is below this."""
        bound = min(self.bound, self.best.value)
        return bound if bound < inf and self.left.surveyed else None

    def show(self) -> None:
        label = f"round {self.rounds}, {self.plans:,} plan{'s' * (self.plans != 1)}, {self.tangents:,} tangent{'s' * (self.tangents != 1)}"
        self.watch(Progress(label, self.value, self.known, partial(answer_of, self.instance, candidate_of(self.left.space, self.best))))

    def note(self) -> None:
        """Keep and show what is known."""
        self.trace.append(self.event())
        self.show()

    def event(self) -> tuple[float, float | None, float | None]:
        """What is known now."""
        return monotonic() - self.began, self.value, self.known


def refine(
    instance: Instance,
    backend: Backend,
    form: Form,
    gap: float,
    seconds: float,
    watch: Watch,
    base: Spend = ALONE,
    within: float | None = None,
    known: Candidate | None = None,
) -> Refined:
    """Solve, price, tighten, until no design is better than the best one by more than the gap; `known` is one that was there before."""
    began = monotonic()
    left = survivors(instance, began + seconds, within, known)
    offset = monotonic() - began
    found = refine_among(instance, left, backend, form, gap, began + seconds, watch, base, within)
    return replace(found, trace=tuple((offset + at, value, bound) for at, value, bound in found.trace))


def refine_among(
    instance: Instance,
    left: Survivors,
    backend: Backend,
    form: Form,
    gap: float,
    deadline: float,
    watch: Watch,
    base: Spend = ALONE,
    within: float | None = None,
) -> Refined:
    """Refine the model for the remaining plans, until a deadline of the monotonic clock.

    With `within` the model keeps the designs up to that share above the best one, so that its optimum is the bound; without, it is left
    with designs that are better by more than the gap, and has no solution in the end.
    """
    loop = _Loop(instance, left, left.start, left.least, gap, monotonic(), deadline, watch, base, within)
    try:
        loop.note()
        if not left.complete:
            raise TimeoutError
        if len(left.plans):
            _refine(loop, backend, form)
        else:
            loop.bound = inf  # no design is below the initial one
    except KeyboardInterrupt:
        loop.stopped = "interrupted"
    except TimeoutError:
        loop.stopped = "time limit"
    loop.trace.append(loop.event())
    return _refined(loop)


def _refine(loop: _Loop, backend: Backend, form: Form) -> None:
    chip = _chip(loop)
    problem = _first(loop, chip, form)
    while loop.open:
        loop.problem = problem
        answer = backend(problem.model(), _spend(loop))
        loop.solver, loop.rounds, loop.least = answer.solver, loop.rounds + 1, answer.bound
        loop.bound = max(loop.bound, _bound(loop, problem, answer))
        _refuse_contradicted(loop)
        loop.note()
        if answer.values is None or answer.stopped != "complete":
            loop.stopped = "complete" if answer.status == "INFEASIBLE" else answer.stopped
            loop.notes = (answer.note,) if answer.note else ()
            return
        if loop.open:
            problem = _tightened(loop, problem, form, answer.values)


def _chip(loop: _Loop) -> choices.Chip:
    try:
        return choices.chip_of(loop.instance, loop.left.space, loop.left.root.box)
    except ValueError as error:
        raise RefusedError(str(error)) from error


def _first(loop: _Loop, chip: choices.Chip, form: Form) -> choices.Codesign:
    """The plans that may be better, with tangents at the best design known. Without a design any is welcome, and none has a tangent."""
    plans, roots = _transformer_plans(loop.left.plans), loop.left.bounds
    needs = memory_of(loop.instance.workload, plans) + chip.best.reserved_memory
    if loop.best.plan is None:
        loop.plans = len(plans)
        return form.begin(choices.codesign(chip, plans, needs, roots, 2.0 * float(roots.max(initial=1.0))), loop.instance, loop.left.space)
    found = _screened(loop, chip, plans, needs)
    remaining, roots = found.remaining, np.maximum(roots[found.remaining], found.bounds)
    loop.plans, loop.bound = len(remaining), max(loop.bound, min(float(roots.min(initial=inf)), loop.below))
    loop.note()
    problem = choices.codesign(found.chip, rows_of(plans, remaining), needs[remaining], roots, loop.below)
    for tangents in found.tangents:
        problem = known(problem, choices.Tangents(np.arange(len(remaining)), tangents.constants, tangents.slopes))
    if not len(remaining):
        return problem
    problem = form.begin(problem, loop.instance, loop.left.space)
    if not len(problem.tangents):
        return problem
    first = int(np.argmin(roots))
    point = {name: int(np.ravel(places)[first]) for name, places in found.point.items()}
    return form.tighten(problem, np.array([first]), point)


@dataclass(frozen=True, slots=True)
class _Screened:
    """What prices on the budgets leave: plans and literals, the plans' tangents, list by list, and their bounds."""

    remaining: Ints
    chip: choices.Chip
    tangents: list[choices.Tangents]
    bounds: Array
    point: choices.Point
    """Where the next tangent of each plan would be taken."""


def _screened(loop: _Loop, chip: choices.Chip, plans: Plans, needs: Array) -> _Screened:
    """Plans that prices do not rule out, with tangents at the best design known, then each at its own cheapest chip."""
    seen = _Screened(np.arange(len(plans)), chip, [], np.full(len(plans), -inf), chip.point(loop.best.places))
    for _ in range(_SCREENS if chip.parts else 0):  # of hardware that is given the bound on the best chip is the price
        starts = range(0, len(seen.remaining), _PRICED_BLOCK)
        seen = _joined(
            [_looked_at(loop, seen, plans, needs, np.arange(len(seen.remaining))[start : start + _PRICED_BLOCK]) for start in starts]
        )
        if not len(seen.remaining):
            break
    return seen


def _looked_at(loop: _Loop, seen: _Screened, plans: Plans, needs: Array, rows: Ints) -> tuple[_Screened, choices.Masks]:
    """Some of the plans after one more tangent of each, those that are left, and the literals that these may have."""
    remaining = seen.remaining[rows]
    point = {name: literal[rows] if isinstance(literal, np.ndarray) else literal for name, literal in seen.point.items()}
    several = [*(tangents.rows(rows) for tangents in seen.tangents), _tangents(loop, seen.chip, plans, remaining, point)]
    loop.tangents += len(remaining)
    found = choices.screening_bounds(seen.chip, several, needs[remaining], loop.below)
    bounds = np.maximum(seen.bounds[rows], found.bounds)
    left = np.flatnonzero(bounds < loop.below)
    cheapest = {name: places[left, None] for name, places in found.places.items()}
    return _Screened(remaining[left], seen.chip, [tangents.rows(left) for tangents in several], bounds[left], cheapest), found.literals


def _joined(blocks: Sequence[tuple[_Screened, choices.Masks]]) -> _Screened:
    """The plans of all blocks, without the literals that none of them may have; each has its cheapest ones left."""
    chip, parts = blocks[0][0].chip, [block for block, _ in blocks]
    masks = {part.name: np.logical_or.reduce([literals[part.name] for _, literals in blocks]) for part in chip.parts}
    columns = choices.columns_of(chip, masks)
    remaining, bounds = (np.concatenate([getattr(block, name) for block in parts]) for name in ("remaining", "bounds"))
    several = [choices.join_tangents(same).columns(columns) for same in zip(*(block.tangents for block in parts), strict=True)]
    cheapest = {name: np.concatenate([np.asarray(block.point[name]) for block in parts]) for name in masks}
    point = {name: (np.cumsum(mask) - 1)[cheapest[name]] for name, mask in masks.items()}
    return _Screened(remaining, choices.restricted(chip, masks), several, bounds, point)


def _tightened(loop: _Loop, problem: choices.Codesign, form: Form, values: Values) -> choices.Codesign:
    """The problem with what the full model says of a solution that the relaxation likes too much."""
    (point, plan), chip = problem.decoded(values), problem.chip
    places = chip.places(point)
    here = corners(loop.instance, loop.left.space, Boxes(places[None], places[None]))
    prices = values_of(loop.instance, here, problem.plans)[:, 0]
    if prices.min() < loop.best.value:
        known_one = loop.best.plan is not None
        loop.best = improved(loop.instance, loop.left.space, problem.plans, places)
        _refuse_contradicted(loop)
        if not known_one:
            return _first(loop, chip, form)
        problem = choices.with_cutoff(problem, loop.below)
    if not np.isfinite(prices[plan]):
        return choices.without(problem, point, plan if here.alive[0] else None)
    which = np.arange(len(problem.plans)) if len(problem.plans) <= _TOGETHER else np.array([plan])
    more = _tangents(loop, chip, problem.plans, which, point)
    row = int(np.flatnonzero(which == plan)[0])
    loop.tangents += len(which)
    if more.at(chip, point)[row] >= problem.quantum * (values[problem.time] + len(chip.parts) + 2):
        before = len(problem.rows)
        problem = form.tighten(known(problem, more), np.array([len(problem.tangents) + row]), point)
        if any(row.violation(values) for row in problem.rows[before:]):
            return problem
    best = values_of(loop.instance, Corners(choices.compose(chip, point), np.ones(1, bool)), rows_of(problem.plans, which[[row]]))
    problem = choices.with_monotone_row(problem, plan, float(best[0, 0]), choices.no_more(chip, point))
    return choices.with_monotone_row(problem, plan, float(prices[plan]), choices.only(chip, point))


def _tangents(loop: _Loop, chip: choices.Chip, plans: Plans, which: Ints, point: choices.Point) -> choices.Tangents:
    """Tangents at one chip, unless the time is up."""
    workload, found = loop.instance.workload, []
    if not isinstance(workload, Transformer):
        raise TypeError("only plans of transformers have tangents")
    for start in range(0, len(which), _BLOCK):
        if monotonic() >= loop.deadline:
            raise TimeoutError
        rows = slice(start, start + _BLOCK)
        own = {name: literal[rows] if isinstance(literal, np.ndarray) else literal for name, literal in point.items()}
        found.append(tangents_at(workload, loop.instance.cluster, chip, plans, which[rows], own))
    return choices.join_tangents(found)


def _transformer_plans(plans: AnyPlans) -> Plans:
    if not isinstance(plans, Plans):
        raise TypeError("only plans of transformers have tangents")
    return plans


def _refuse_contradicted(loop: _Loop) -> None:
    """A ContradictionError if the incumbent is below the solver's bound."""
    if loop.best.value < loop.bound:
        reason = f"its bound on the step time is {loop.bound:.6g} s, and there is a design of {loop.best.value:.6g} s"
        raise ContradictionError(f"{loop.solver or 'the screen'} {INVALID}: {reason}")


def _bound(loop: _Loop, problem: choices.Codesign, answer: Answer) -> float:
    """What the answer proves: nothing is below its bound, or where there is no solution nothing is below the value asked for."""
    if answer.bound is None:
        return loop.below
    return min(real(answer.bound, problem.quantum), loop.below)


def _spend(loop: _Loop) -> Spend:
    def watch(event: Event) -> bool:
        del event
        loop.show()
        return False

    return replace(loop.base, seconds=max(loop.deadline - monotonic(), 0.0), watch=watch)


def _refined(loop: _Loop) -> Refined:
    best = loop.best
    return Refined(
        best=candidate_of(loop.left.space, best),
        value=loop.value,
        bound=min(loop.bound, best.value) if loop.left.surveyed else None,
        solver=loop.solver,
        rounds=loop.rounds,
        tangents=loop.tangents,
        plans=loop.plans,
        trace=tuple(loop.trace),
        stopped=loop.stopped,
        survey=loop.left.survey,
        notes=loop.notes,
        problem=loop.problem,
        least=loop.least,
    )
