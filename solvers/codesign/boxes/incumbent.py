"""A good design to start from: alternating between the best plan for a chip and the best chip for a few plans."""

from dataclasses import dataclass
from itertools import permutations, product
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan, table
from crossopt.instances.codesign.boxes import Boxes, Grid, corners, places_of, point_number, whole
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import AnyPlans
from crossopt.solvers.codesign.answer import Candidate, candidate
from crossopt.solvers.codesign.pricing import rows_of, values_of

_PLANS = 16
"""Plans for which a chip is sought."""
_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Incumbent:
    """A design by its hardware places and its plan; the value is infinite, and the plan None, where there is none."""

    value: float
    places: Whole
    plan: Plan | KernelPlan | None


def candidate_of(space: Grid, best: Incumbent) -> Candidate | None:
    """The design by the number of its hardware point."""
    return None if best.plan is None else Candidate(point_number(space, best.places), best.plan)


def incumbent_of(instance: Instance, space: Grid, known: Candidate | None) -> Incumbent:
    """A design that is known already, by its value; none where it keeps not every limit."""
    if known is None:
        return Incumbent(float("inf"), whole(space).low[0], None)
    places = places_of(space, known.point)
    plans: AnyPlans = table([known.plan]) if isinstance(known.plan, Plan) else (known.plan,)
    return at_row(float(best_plans(instance, space, plans, places, 1)[1][0]), places, plans, 0)


def at_row(value: float, places: Whole, plans: AnyPlans, row: int) -> Incumbent:
    """The design with the plan in one row."""
    return Incumbent(value, places, candidate(plans, row, 0).plan if value < float("inf") else None)


def best_plans(instance: Instance, space: Grid, plans: AnyPlans, places: Whole, count: int) -> tuple[Whole, Array]:
    """The rows of the plans with the least values on one chip, and those values, ascending; infinite where a plan does not fit."""
    found = values_of(instance, corners(instance, space, Boxes(places[None], places[None])), plans)[:, 0]
    rows = np.argsort(found, kind="stable")[:count]
    return rows, found[rows]


def improved(instance: Instance, space: Grid, plans: AnyPlans, start: Whole, deadline: float = float("inf")) -> Incumbent:
    """The design to which alternating steps lead from a chip before the deadline; no step is taken that does not lower the value."""
    places = start
    rows, found = best_plans(instance, space, plans, places, _PLANS)
    best = at_row(float(found[0]), places, plans, int(rows[0]))
    for _ in range(_ROUNDS):
        moves = chip_moves(space, best.places)
        if not len(moves) or monotonic() >= deadline:
            return best
        chosen = rows_of(plans, rows)
        table = values_of(instance, corners(instance, space, Boxes(moves, moves)), chosen)
        row, column = np.unravel_index(int(np.argmin(table)), table.shape)
        if not table[row, column] < best.value:
            return best
        best = at_row(float(table[row, column]), moves[column], plans, int(rows[row]))
        rows, found = best_plans(instance, space, plans, best.places, _PLANS)
        if found[0] < best.value:
            best = at_row(float(found[0]), best.places, plans, int(rows[0]))
    return best


def chip_moves(space: Grid, places: Whole) -> Whole:
    """The chips around one: one choice at another option, or one choice up with another one down."""
    ways = [_ways(size, int(place)) for size, place in zip(space.sizes, places, strict=True)]
    single = [((choice, to),) for choice, (down, up) in enumerate(ways) for to in (*down, *up)]
    pairs = (
        ((one, higher), (other, lower))
        for one, other in permutations(range(len(ways)), 2)
        for higher, lower in product(ways[one][1], ways[other][0])
    )
    found = np.repeat(places[None], len(moves := [*single, *pairs]), axis=0)
    for row, move in zip(found, moves, strict=True):
        for choice, to in move:
            row[choice] = to
    return found


def _ways(size: int, place: int) -> tuple[list[int], list[int]]:
    """Options 1, 2, 4, 8, ... places below and above."""
    steps = [1 << power for power in range(size.bit_length())]
    return [place - step for step in steps if place >= step], [place + step for step in steps if place + step < size]
