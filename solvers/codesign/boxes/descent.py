"""The way down from a box of hardware points to one of them, by the better half of every box, and the design to which it leads.

The best plans for the best chip there could be are seldom those for the best chip there is, so that the plans that decide the way are
chosen again every few boxes.
"""

from collections.abc import Callable
from itertools import count
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.instances.codesign.boxes import Boxes, Grid, corners, tightened
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import AnyPlans
from crossopt.solvers.codesign.boxes.cuts import sides_of, single, told
from crossopt.solvers.codesign.boxes.incumbent import Incumbent, improved
from crossopt.solvers.codesign.pricing import rows_of, values_of

DIVING = 1024
"""Plans that decide the way, those with the least bounds in a box."""
AGAIN = 3
"""After so many boxes they are chosen again."""
BACK = 8
"""Times that a way which leads nowhere is left for the other half of the last box that was cut."""


def found_from(
    instance: Instance, space: Grid, box: Boxes, plans: AnyPlans, value: float = float("inf"), deadline: float = float("inf")
) -> Incumbent | None:
    """The design to which the way down from a box leads, with steps that lower its value; None where there is no way to one below a
    value, or no time for it."""
    places = dive(instance, space, box, plans, value, deadline)
    return None if places is None else improved(instance, space, plans, places, deadline)


def dive(
    instance: Instance, space: Grid, box: Boxes, plans: AnyPlans, value: float = float("inf"), deadline: float = float("inf")
) -> Whole | None:
    """A chip that keeps the budgets: the better half of every box, from this one down to one point. None where no chip does, where
    the bounds of the boxes on the way are not below a value, or where the time is over before."""
    level, others, back = count(), list[Boxes](), 0
    while monotonic() < deadline:
        if next(level) % AGAIN == 0 or single(box):
            bounds = values_of(instance, corners(instance, space, box), plans)[:, 0]
            if not bounds.min() < value:
                if back == BACK or not others:
                    return None
                box, level, back = tightened(instance, space, others.pop()), count(), back + 1
                continue
            chosen: AnyPlans = rows_of(plans, np.argsort(bounds, kind="stable")[:DIVING])
        if single(box):
            return np.asarray(box.low[0])
        better, other = halves(box, least_of(instance, space, chosen))
        others.append(other)
        box = tightened(instance, space, better)
    return None


def halves(box: Boxes, least: Callable[[Boxes], Array]) -> tuple[Boxes, Boxes]:
    """The halves of a box that is cut in the middle of the choice that tells most, the one with the lesser bound first; the upper one if
    both are equal."""
    choices = np.flatnonzero(box.low[0] < box.high[0])
    sides = sides_of(box, choices, (box.low[0, choices] + box.high[0, choices]) // 2)
    bounds = least(sides).reshape(2, -1)
    if not np.isfinite(bounds).any():
        return sides.at(len(choices)), sides.at(0)
    best = int(np.argmax(told(bounds)))
    upper = last_least(bounds[:, best])
    return sides.at(best + len(choices) * upper), sides.at(best + len(choices) * (1 - upper))


def least_of(instance: Instance, space: Grid, plans: AnyPlans) -> Callable[[Boxes], Array]:
    """The least bound of the plans on each of some boxes."""
    return lambda boxes: values_of(instance, corners(instance, space, boxes), plans).min(axis=0)


def last_least(values: Array) -> int:
    """The last of the least."""
    return len(values) - 1 - int(np.argmin(values[::-1]))
