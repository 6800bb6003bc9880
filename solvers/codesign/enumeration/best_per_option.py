"""For every option of every choice the least value of a design that has it: which options occur near the optimum, in one pass.

An option occurs within 1 % of the best value if the least value of a design with that option is within 1 % of it. The leasts need no
second pass when the best value falls, and no more memory than one number an option.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.crossflow.plan import Plans, code
from crossopt.instances.codesign.instance import FreeHardware, Instance, Options
from crossopt.instances.codesign.space import AnyPlans, plan_values
from crossopt.solvers.proofs import Occurring


@dataclass(frozen=True, slots=True)
class Leasts:
    """The choices with more than one option, and the least value so far for each option."""

    hardware: Options
    """All hardware choices: the number of a point counts them all."""
    plan: Options
    values: dict[str, Array]


def leasts_of(instance: Instance) -> Leasts:
    """Nothing seen yet."""
    hardware = instance.hardware.options if isinstance(instance.hardware, FreeHardware) else ()
    plan = tuple((name, options) for name, options in plan_values(instance) if len(options) > 1)
    open_ones = (*((name, options) for name, options in hardware if len(options) > 1), *plan)
    return Leasts(hardware, plan, {name: np.full(len(options), np.inf) for name, options in open_ones})


def see(leasts: Leasts, found: Array, plans: AnyPlans, points: Whole, reach: float) -> None:
    """Take the values of plans (rows) on points (columns) in, as far as they are up to `reach`."""
    by_plan, by_point = found.min(axis=1), found.min(axis=0)
    rows, columns = np.flatnonzero(by_plan <= reach), np.flatnonzero(by_point <= reach)
    for name, options in leasts.plan:
        np.minimum.at(leasts.values[name], option_places(plans, rows, name, options), by_plan[rows])
    sizes = [len(options) for _, options in leasts.hardware]
    places = np.unravel_index(points[columns], sizes) if sizes else ()
    for (name, _), place in zip(leasts.hardware, places, strict=True):
        if name in leasts.values:
            np.minimum.at(leasts.values[name], place, by_point[columns])


def occurring(leasts: Leasts, limit: float) -> tuple[Occurring, ...]:
    """The options that occur among designs of at most this value, choice by choice."""
    return tuple(_occurring(name, options, leasts.values[name], limit) for name, options in _open(leasts))


def _open(leasts: Leasts) -> Iterator[tuple[str, tuple[Any, ...]]]:
    return ((name, options) for name, options in (*leasts.hardware, *leasts.plan) if name in leasts.values)


def _occurring(name: str, options: tuple[Any, ...], values: Array, limit: float) -> Occurring:
    kept = [int(place) for place in np.flatnonzero(values <= limit)]
    return Occurring(name, len(options), [options[place] for place in kept], tuple(float(values[place]) for place in kept))


def option_places(plans: AnyPlans, rows: Whole, name: str, options: tuple[Any, ...]) -> Whole:
    """Where in the options of a choice some plans are."""
    if not isinstance(plans, Plans):
        return np.array([options.index(getattr(plans[int(row)], name)) for row in rows], np.int64)
    codes = np.array([code(name, option) for option in options], np.int64)
    order = np.argsort(codes, kind="stable")
    places: Whole = order[np.searchsorted(codes[order], getattr(plans, name)[rows])]
    return places
