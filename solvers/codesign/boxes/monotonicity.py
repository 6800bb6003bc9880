"""A look, before anything is proved by boxes, at whether their bounds hold on this very question.

A box is bounded by the best chip that it could hold, which holds because time never rises when a resource grows. Tests hold every
registered technology to that; nobody tested one of the user's. Points are drawn at random in boxes drawn at random, and priced as their
boxes are bounded, with a few plans, with and without limits. A value below a bound says that the bounds prove nothing here. That none
is found proves nothing either; but a model that is not monotone in a choice is found by a few points.

Likewise a group of plans is bounded by its head, the plan with the least of each concession: drawn plans are held against the heads of
their groups, on drawn chips and on the best ones of drawn boxes. What is proved in the end, `check` proves anew with all plans.
"""

from dataclasses import replace

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.crossflow.hardware import Budget, Hardware
from crossopt.crossflow.plan import CONCESSIONS, Plans, plan_at
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.asked_before import remembered
from crossopt.instances.codesign.boxes import Boxes, Grid, corners, grid
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.plans.groups import concessions_of
from crossopt.instances.codesign.settings import codes_of, with_settings
from crossopt.instances.codesign.space import AnyPlans, draw_plans, plan_blocks
from crossopt.instances.errors import RefusedError
from crossopt.solvers.codesign.pricing import joined, rows_of, values_of

_BOXES = 64
_PLANS = 6
_DRAWN = 1024
_MEMBERS = 96
_CHIPS = 4


@remembered
def refuse_broken_bounds(instance: Instance) -> None:
    """A RefusedError that names a choice, where a design is found below the bound of a box or of a group of plans that holds it."""
    drawn = _drawn(instance)
    for name in (instance.objective, *(name for name, _ in instance.ceilings)):
        _refuse_broken_bounds_of(replace(instance, objective=name), drawn)


def _refuse_broken_bounds_of(instance: Instance, drawn: AnyPlans) -> None:
    """The same for one of the figures that are bounded."""
    space, random = grid(instance), np.random.default_rng(0)
    _refuse_faster_members(instance, space, _spread_out(drawn, _MEMBERS), np.random.default_rng(1))
    if isinstance(instance.hardware, Hardware) or not instance.hardware.options:
        return
    ends = [np.sort(random.integers(size, size=(2, _BOXES)), axis=0) for size in space.sizes]
    low, high = (np.stack([pair[end] for pair in ends], axis=1) for end in (0, 1))
    points = random.integers(low, high + 1)
    plans = _spread_out(drawn, _PLANS)
    for asked in (instance, _without_limits(instance)):
        below = _below(asked, space, plans, low, high, points)
        if below.any():
            box = int(np.argmax(below))
            raise RefusedError(_words(asked, _guilty(asked, space, plans, low[box], high[box], points[box])))


def _refuse_faster_members(instance: Instance, space: Grid, drawn: AnyPlans, random: np.random.Generator) -> None:
    """Drawn plans beside the heads of their groups, without limits, which may not hide a plan."""
    if not isinstance(drawn, Plans) or not len(drawn):
        return
    names = concessions_of(instance)
    ends = [np.sort(random.integers(size, size=(2, _CHIPS)), axis=0) for size in space.sizes]
    low, high = (np.array([pair[end] for pair in ends], np.int64).reshape(len(ends), _CHIPS).T for end in (0, 1))
    asked = _without_limits(instance)
    chips = corners(asked, space, Boxes(np.concatenate([low, low]), np.concatenate([low, high])))
    heads = with_settings(drawn, {name: CONCESSIONS[name](codes_of(instance, name)) for name in names})
    bounds, values = np.split(values_of(asked, chips, joined([heads, drawn])), 2)
    faster = (bounds > values).any(axis=1)
    if faster.any():
        plan, what = plan_at(drawn, int(np.argmax(faster))), instance.objective.replace("_", " ")
        told = ", ".join(f"{name} {getattr(plan, name)}" for name in names)
        raise RefusedError(f"bounds prove nothing here: {told} has less {what} than the least of each; use --engine exhaustive")


def _drawn(instance: Instance) -> AnyPlans:
    """Plans drawn once for all looks: to draw them takes as long as to price them."""
    if isinstance(instance.workload, Transformer):
        return draw_plans(instance, np.random.default_rng(0), _DRAWN)
    return next((block for block in plan_blocks(instance) if len(block)), ())


def _spread_out(plans: AnyPlans, most: int) -> AnyPlans:
    """So many of them at equal distances, as they are sorted by their settings; all if there are no more."""
    return rows_of(plans, np.arange(most) * len(plans) // most if len(plans) > most else np.arange(len(plans)))


def _without_limits(instance: Instance) -> Instance:
    """The question with room for every plan on every chip and in its host, so that no limit hides a value."""
    host = instance.hardware.host and replace(instance.hardware.host, capacity=float("inf"))
    return replace(instance, budget=Budget(), ceilings=(), hardware=replace(instance.hardware, host=host, reserved_memory=-float("inf")))


def _below(instance: Instance, space: Grid, plans: AnyPlans, low: Whole, high: Whole, points: Whole) -> Array:
    """In which boxes the point is below the bound with some plan."""
    every = Boxes(np.concatenate([low, points]), np.concatenate([high, points]))
    bounds, values = np.split(values_of(instance, corners(instance, space, every), plans), 2, axis=1)
    return np.asarray((values < bounds).any(axis=0))


def _guilty(instance: Instance, space: Grid, plans: AnyPlans, low: Whole, high: Whole, point: Whole) -> tuple[str, ...]:
    """The choices that break the bound alone, the others being at the point; all that are open in the box if it takes several."""
    count = len(space.sizes)
    points, diagonal = np.repeat(point[None], count, axis=0), np.eye(count, dtype=bool)
    alone = _below(instance, space, plans, np.where(diagonal, low, points), np.where(diagonal, high, points), points)
    broken = alone if alone.any() else low < high
    return tuple(name for name, holds in zip(space.names, broken, strict=True) if holds)


def _words(instance: Instance, choices: tuple[str, ...]) -> str:
    free = instance.hardware
    technology = free.technology.name if isinstance(free, FreeHardware) else free.name
    what, where = instance.objective.replace("_", " "), ", ".join(choices)
    return f"bounds prove nothing here: the model's {what} rises with {where} on the technology {technology}; use --engine exhaustive"
