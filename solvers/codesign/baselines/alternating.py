"""Alternating: the best plan for a chip, the best chip for that plan, and so on until nothing changes; then again from another chip.

Block coordinate descent over the two halves of a design, each half solved to its optimum by an engine that proves it. That is what two
teams do who take turns, and the strongest simple rival of choosing both together: given the time, it never ends above the best plan on the
best recipe's chip, nor above the best chip for that recipe's plan. Where it ends, neither half alone can be improved, and both together
perhaps can.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from time import monotonic

import numpy as np

from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan
from crossopt.instances.codesign.boxes import Boxes, corners, grid, point_number, tightened, whole
from crossopt.instances.codesign.instance import Instance
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Watch, unwatched
from crossopt.solvers.codesign.answer import Candidate, Designs, answer_of, candidate_in
from crossopt.solvers.codesign.baselines.megatron import expert_point, on_chip
from crossopt.solvers.codesign.baselines.recipes import recipes_design
from crossopt.solvers.codesign.boxes.branch import incumbent_of

Half = Callable[[Instance, Limits, Watch], SearchOutcome[Designs]]
"""An engine that finds the best plan of a question with one chip, and the best chip of one with one plan."""
Step = tuple[float, Candidate]
"""A design with its value."""
_PATIENCE = 12
"""Starts since the last better design after which the search ends."""
_DRAWS, _ROUNDS = 1024, 64
"""Chips that are drawn together, most of which break a budget, and so often in vain before none is drawn any more."""


def alternating(half: Half, instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """The best design at which turns end, from the best recipe's chip and from its plan first; without a bound.

    The recipe's design is there before, so that no limit ends it above that."""
    began = monotonic()
    best: Candidate | None = None
    value, stopped, left, starts = np.inf, "complete", _PATIENCE, 0
    trace: list[tuple[float, float | None, float | None]] = []
    try:
        if (recipe := recipes_design(instance, began + limits.seconds)) is not None:
            value = incumbent_of(instance, grid(instance), recipe).value
            if value < np.inf:  # else it breaks a limit of times or of objectives
                best = recipe
                trace.append((monotonic() - began, value, None))
        for starts, turns in enumerate(_descents(half, instance, limits, began, recipe), 1):
            left -= 1
            for cost, design in turns:
                if cost < value:
                    best, value, left = design, cost, _PATIENCE
                    trace.append((monotonic() - began, value, None))
                words = f"start {starts:,}, {_PATIENCE - left} since the last better design"
                watch(Progress(words, value if best else None, answer=partial(answer_of, instance, best)))
            if left <= 0:
                break
    except TimeoutError:
        stopped = "time limit"
    except KeyboardInterrupt:
        stopped = "interrupted"
    notes = (f"turns were taken from {starts:,} {'start' if starts == 1 else 'starts'}",)
    return SearchOutcome(
        answer_of(instance, best), engine="alternating", stopped=stopped, notes=notes, trace=tuple(trace), value=value if best else None
    )


def with_plan(instance: Instance, plan: Plan | KernelPlan) -> Instance:
    """The question with no plan but one."""
    return replace(instance, plan_options=tuple((name, (getattr(plan, name),)) for name, _ in instance.plan_options))


def _descents(half: Half, instance: Instance, limits: Limits, began: float, recipe: Candidate | None) -> Iterator[Iterator[Step]]:
    """Turns from the best recipe's chip, from its plan, and from chips drawn at random; a TimeoutError where the time is over."""
    ask = partial(_ask, half, instance, limits, began)
    usual = expert_point(instance) if recipe is None else recipe.point
    if usual is not None:
        yield _turns(ask, instance, usual)
    if recipe is not None and (first := ask(with_plan(instance, recipe.plan))) is not None:
        yield _turns(ask, instance, first[1].point)
    for point in _drawn(instance, np.random.default_rng(limits.seed), began + limits.seconds):
        yield _turns(ask, instance, point)


def _turns(ask: Callable[[Instance], Step | None], instance: Instance, point: int) -> Iterator[Step]:
    """A plan for the chip, a chip for the plan, and so on, as long as each is better than the last."""
    value = np.inf
    narrowed = on_chip(instance, point)
    while (found := ask(narrowed)) is not None and found[0] < value:
        yield found
        value, plan = found[0], found[1].plan
        found = ask(with_plan(instance, plan))
        if found is None or not found[0] < value:
            return
        yield found
        value, narrowed = found[0], on_chip(instance, found[1].point)


def _ask(half: Half, instance: Instance, limits: Limits, began: float, narrowed: Instance) -> Step | None:
    """The best design of a narrower question, in words of the whole one; none where no plan fits the chip or no chip the plan."""
    left = limits.seconds - (monotonic() - began)
    if left <= 0.0:
        raise TimeoutError
    found = half(narrowed, replace(limits, seconds=left), unwatched)
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    if found.answer is None or found.value is None:
        return None
    return float(found.value), candidate_in(instance, found.answer.design)


def _drawn(instance: Instance, random: np.random.Generator, deadline: float) -> Iterator[int]:
    """Chips that keep the budgets, each equally likely, without end but where they are too rare; none where there is but one."""
    space = grid(instance)
    box, vain = tightened(instance, space, whole(space)), 0
    while space.points > 1 and vain < _ROUNDS:
        places = random.integers(box.low[0], box.high[0] + 1, size=(_DRAWS, len(space.sizes)))
        kept = np.flatnonzero(corners(instance, space, Boxes(places, places)).alive)
        vain = 0 if len(kept) else vain + 1
        yield from (point_number(space, places[row]) for row in kept)
        if monotonic() >= deadline:
            raise TimeoutError
