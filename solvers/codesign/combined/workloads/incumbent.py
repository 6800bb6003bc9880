"""Good designs for several workloads: down into the best boxes, then from chip to chip, each with the best plan of every workload there.

The best plans for the best chip there could be are seldom those for the best chip there is. The way down therefore looks at all plans
again every few boxes, and the search goes down again from a box that it has come to, with the plans that are left there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan
from crossopt.instances.codesign.boxes import Boxes, Grid, tightened
from crossopt.instances.codesign.space import AnyPlans
from crossopt.solvers.codesign.answer import candidate
from crossopt.solvers.codesign.boxes.cuts import single
from crossopt.solvers.codesign.boxes.descent import AGAIN, DIVING, halves
from crossopt.solvers.codesign.boxes.incumbent import best_plans, chip_moves
from crossopt.solvers.codesign.combined.workloads.combined import chips_of
from crossopt.solvers.codesign.objective import Joint, combined
from crossopt.solvers.codesign.pricing import rows_of, values_of

_PLANS = 16
"""Plans of each workload for which a chip is sought."""
_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Incumbent:
    """A design by its hardware places and the plan of each workload; the value is infinite, and there are no plans, where there is none."""

    value: float
    places: Whole
    plans: tuple[Plan | KernelPlan, ...]


def no_design(space: Grid) -> Incumbent:
    """None found yet."""
    return Incumbent(float("inf"), np.zeros(len(space.sizes), np.int64), ())


def found_from(asked: Joint, space: Grid, box: Boxes, plans: Sequence[AnyPlans], value: float, deadline: float) -> Incumbent:
    """A design to which the way down from a box leads, with steps that lower its value; none where a box on the way has a bound that is
    not below a value, and none after the deadline."""
    found = _dive(asked, space, box, plans, value, deadline) if all(map(len, plans)) else None
    return no_design(space) if found is None else improved(asked, space, found[1], found[0], deadline)


def _dive(
    asked: Joint, space: Grid, box: Boxes, plans: Sequence[AnyPlans], value: float, deadline: float
) -> tuple[Whole, list[AnyPlans]] | None:
    """A chip that keeps the budgets, with plans that are good near it: the better half of every box, down to one point. None where no
    chip does."""
    pools, bounds = _pools(asked, space, box, plans)
    while all(map(len, pools)) and float(combined(asked, [some[0] for some in bounds])) < value:
        if single(box):
            return box.low[0], pools
        if monotonic() >= deadline:
            break
        for _ in range(AGAIN):
            if not single(box):
                box = tightened(asked.parts[0], space, halves(box, least_of(asked, space, pools))[0])
        pools, bounds = _pools(asked, space, box, plans)
    return None


def _pools(asked: Joint, space: Grid, box: Boxes, plans: Sequence[AnyPlans]) -> tuple[list[AnyPlans], list[Array]]:
    """The plans with the least bounds on a box, and these, ascending."""
    bounds = [table[:, 0] for table in _tables(asked, space, box, plans)]
    rows = [np.argsort(some, kind="stable")[: min(DIVING, int(np.isfinite(some).sum()))] for some in bounds]
    pools = [rows_of(table, some) for table, some in zip(plans, rows, strict=True)]
    return pools, [one[some] for one, some in zip(bounds, rows, strict=True)]


def _tables(asked: Joint, space: Grid, boxes: Boxes, plans: Sequence[AnyPlans]) -> list[Array]:
    """The bounds of the plans of each workload (rows) on some boxes (columns)."""
    chips = chips_of(asked, space, boxes)
    return [values_of(part, *pair) for part, pair in zip(asked.parts, zip(chips, plans, strict=True), strict=True)]


def least_of(asked: Joint, space: Grid, plans: Sequence[AnyPlans]) -> Callable[[Boxes], Array]:
    """The figure of the least bounds of these plans on each of some boxes."""

    return lambda boxes: combined(asked, [table.min(axis=0) for table in _tables(asked, space, boxes, plans)])


def improved(asked: Joint, space: Grid, pools: Sequence[AnyPlans], places: Whole, deadline: float) -> Incumbent:
    """The design to which steps from chip to chip lead, each with the best plans there; no step that does not lower the value."""
    best, few = _on_chip(asked, space, pools, places)
    for _ in range(_ROUNDS):
        moves = chip_moves(space, best.places)
        if not len(moves) or monotonic() >= deadline:
            break
        values = least_of(asked, space, few)(Boxes(moves, moves))
        if not values.min() < best.value:
            break
        best, few = _on_chip(asked, space, pools, moves[int(np.argmin(values))])
    return best


def _on_chip(asked: Joint, space: Grid, pools: Sequence[AnyPlans], places: Whole) -> tuple[Incumbent, list[AnyPlans]]:
    """The best plans on one chip, and for each workload the few best ones."""
    found = [best_plans(part, space, pool, places, _PLANS) for part, pool in zip(asked.parts, pools, strict=True)]
    value = float(combined(asked, [values[0] for _, values in found]))
    chosen = tuple(candidate(pool, int(rows[0]), 0).plan for pool, (rows, _) in zip(pools, found, strict=True))
    few = [rows_of(pool, rows) for pool, (rows, _) in zip(pools, found, strict=True)]
    return Incumbent(value, places, chosen if value < float("inf") else ()), few
