"""For every option of every choice the least value of a design that has it: which options occur near the optimum, in one pass.

An option occurs within 1 % of the best value if the least value of a design with that option is within 1 % of it. The leasts need no
second pass when the best value falls, and no more memory than one number an option.
"""

from collections.abc import Iterator
from dataclasses import field
from functools import partial
from math import isfinite
from time import monotonic
from typing import Any

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.crossflow.hardware import Hardware, is_within, take
from crossopt.crossflow.plan import Plans, code
from crossopt.crossflow.records import dataclass
from crossopt.instances.codesign.boxes import chips_at
from crossopt.instances.codesign.instance import FreeHardware, Instance, Options, under_each
from crossopt.instances.codesign.plan_groups import broken_everywhere, why_no_chip
from crossopt.instances.codesign.space import AnyPlans, Devices, blocks_with_shares, devices, hardware_points, plan_values
from crossopt.instances.errors import ModelError
from crossopt.solvers.answer import Progress, Watch
from crossopt.solvers.codesign.answer import Candidate, answer_of, candidate
from crossopt.solvers.codesign.objective import NO_FINITE_VALUE, host_memory_of, hosted, memory_of, rows_of, times_and_values, values_of
from crossopt.solvers.proofs import Conflict, Occurring, Space


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


def see(leasts: Leasts, found: Array, plans: AnyPlans, points: Ints, reach: float) -> None:
    """Take the values of plans (rows) on points (columns) in, as far as they are up to `reach`."""
    by_plan, by_point = found.min(axis=1), found.min(axis=0)
    rows, columns = np.flatnonzero(by_plan <= reach), np.flatnonzero(by_point <= reach)
    for name, options in leasts.plan:
        np.minimum.at(leasts.values[name], setting_indices(plans, rows, name, options), by_plan[rows])
    sizes = [len(options) for _, options in leasts.hardware]
    places = np.unravel_index(points[columns], sizes) if sizes else ()
    for (name, _), index in zip(leasts.hardware, places, strict=True):
        if name in leasts.values:
            np.minimum.at(leasts.values[name], index, by_point[columns])


def occurring(leasts: Leasts, limit: float) -> tuple[Occurring, ...]:
    """The options that occur among designs of at most this value, choice by choice."""
    return tuple(_occurring(name, options, leasts.values[name], limit) for name, options in _open(leasts))


def _open(leasts: Leasts) -> Iterator[tuple[str, tuple[Any, ...]]]:
    return ((name, options) for name, options in (*leasts.hardware, *leasts.plan) if name in leasts.values)


def _occurring(name: str, options: tuple[Any, ...], values: Array, limit: float) -> Occurring:
    occurring = [int(index) for index in np.flatnonzero(values <= limit)]
    return Occurring(name, len(options), [options[index] for index in occurring], tuple(float(values[index]) for index in occurring))


def setting_indices(plans: AnyPlans, rows: Ints, name: str, options: tuple[Any, ...]) -> Ints:
    """Where in the options of a choice some plans are."""
    if not isinstance(plans, Plans):
        return np.array([options.index(getattr(plans[int(row)], name)) for row in rows], np.int64)
    codes = np.array([code(name, option) for option in options], np.int64)
    order = np.argsort(codes, kind="stable")
    places: Ints = order[np.searchsorted(codes[order], getattr(plans, name)[rows])]
    return places


# The oracle: prices every design of the question, a block at a time, and counts what it sees.
#
# Memory stays flat: plans come in blocks, hardware points in blocks, and of the prices only the best and those near it are kept.
# A plan that fits no device of a block and a device that breaks a budget are counted but not priced. Of equal designs the first one wins.

PRICES = 1 << 22
"""Designs priced together: 32 MiB an array."""
_POINTS = 1 << 14
"""Hardware points generated together."""
_FIRST = 64
"""The share of a block that the first one is."""
_NEAR = 1.05
"""Relative distance from the best up to which values are counted, or further if the model's error is larger."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the enumeration saw."""

    best: Candidate | None
    value: float | None
    space: Space
    conflicts: tuple[Conflict, ...]
    trace: tuple[tuple[float, float | None, float | None], ...]
    stopped: str


@dataclass(slots=True)
class _Tally:
    """Counts so far."""

    leasts: Leasts
    reach: float = _NEAR
    found: tuple[Candidate | None, float] = None, float("inf")
    """The best design with its value, which an interrupt cannot part."""
    feasible: int = 0
    plans: int = 0
    unbuilt: int = 0
    near: list[tuple[Array, Ints]] = field(default_factory=list)
    limits: dict[str, tuple[int, float]] = field(default_factory=dict)
    """How many designs keep each limit, and the least share of it that a design needs."""
    trace: list[tuple[float, float | None, float | None]] = field(default_factory=list)

    @property
    def best(self) -> Candidate | None:
        return self.found[0]

    @property
    def value(self) -> float:
        return self.found[1]

    def see_limit(self, name: str, count: int, least: float) -> None:
        before, share = self.limits.get(name, (0, float("inf")))
        self.limits[name] = before + count, min(share, least)

    def see_values(self, found: Array) -> None:
        """Keep the different values within reach of the best, each with how often it occurs."""
        close = found[found <= self.value * self.reach]
        different, count = np.unique(close, return_counts=True)
        merged = [(old[old <= self.value * self.reach], times[old <= self.value * self.reach]) for old, times in self.near]
        self.near = [*merged, (different, count)]
        if len(self.near) > 8:
            self.near = [_merge(self.near)]

    def within(self, factor: float) -> int:
        return sum(int(times[old <= self.value * factor].sum()) for old, times in self.near)


def search(instance: Instance, watch: Watch, deadline: float = float("inf")) -> Found:
    """Price every design; stops early at the deadline (of the monotonic clock) or on an interrupt, and then says so."""
    tally, stopped = _Tally(leasts_of(instance), reach=max(_NEAR, 1.0 + (error_of(instance) or 0.0))), "complete"
    try:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # `_see` refuses what comes of it
            _evaluate_all(instance, watch, deadline, tally)
    except KeyboardInterrupt:
        stopped = "interrupted"
    except TimeoutError:
        stopped = "time limit"
    return _found(instance, tally, stopped)


def conflicts_of(instance: Instance, found: Found) -> tuple[Conflict, ...]:
    """Why there is no design: rules that no plan keeps, chips that cannot be built, limits that no design keeps."""
    if found.stopped != "complete" or found.space.feasible:
        return ()
    if not found.space.plans:
        return tuple(Conflict(f"rule: {sentence}", 0, None) for sentence in broken_everywhere(instance))
    if found.space.unbuilt == found.space.hardware_points:
        return (Conflict(f"chip: {why_no_chip(instance) or 'each one lacks cores, a memory or links'}", 0, None),)
    return found.conflicts


def error_of(instance: Instance) -> float | None:
    """The model's mean error on measured runs, where it says something about the objective: energies and chip prices were not measured."""
    if not isinstance(instance.hardware, Hardware) or not instance.measures_time:
        return None
    return instance.hardware.error


def _evaluate_all(instance: Instance, watch: Watch, deadline: float, tally: _Tally) -> None:
    """Take every design into the tally; a TimeoutError at the deadline."""
    start, points, designs, behind = monotonic(), hardware_points(instance), 0, 0.0
    for plans, share in blocks_with_shares(instance):
        _refuse_after(deadline)
        first = tally.plans == 0
        tally.plans += len(plans)
        seen = 0
        for block in _device_blocks(instance, len(plans)):
            _refuse_after(deadline)
            tally.unbuilt += block.unbuilt if first else 0
            if _price_block(instance, plans, block, tally):
                tally.trace.append((monotonic() - start, tally.value, None))
            seen += len(block.points) + block.unbuilt
            designs += len(plans) * (len(block.points) + block.unbuilt)
            done = behind + (share - behind) * seen / points
            answer = partial(answer_of, instance, tally.best)
            watch(Progress(f"{done:.0%}  {designs:,} designs", tally.value if tally.best else None, answer=answer))
        behind = share
    if behind < 1.0:
        watch(Progress(f"100%  {designs:,} designs", tally.value if tally.best else None, answer=partial(answer_of, instance, tally.best)))


def _refuse_after(deadline: float) -> None:
    if monotonic() >= deadline:
        raise TimeoutError


def _found(instance: Instance, tally: _Tally, stopped: str) -> Found:
    points, error = hardware_points(instance), error_of(instance)
    space = Space(
        designs=tally.plans * points,
        feasible=tally.feasible,
        ties=tally.within(1.0),
        within_1_percent=tally.within(1.01),
        within_5_percent=tally.within(_NEAR),
        unbuilt=tally.unbuilt,
        hardware_points=points,
        plans=tally.plans,
        error=error,
        within_error=None if error is None else tally.within(1.0 + error),
        near=occurring(tally.leasts, tally.value * _NEAR) if tally.best else (),
    )
    conflicts = tuple(Conflict(name, count, share if isfinite(share) else None) for name, (count, share) in tally.limits.items())
    return Found(tally.best, tally.value if tally.best else None, space, conflicts, tuple(tally.trace), stopped)


def _device_blocks(instance: Instance, plans: int) -> Iterator[Devices]:
    """Hardware points in blocks as large as their prices may be; none where there is no plan to price on them.

    The first blocks are small, so that a short time limit still gives a design.
    """
    total = hardware_points(instance) if plans else 0
    most = max(1, min(_POINTS, PRICES // max(plans, 1)))
    start, step = 0, max(1, most // _FIRST)
    while start < total:
        yield devices(instance, start, min(start + step, total))
        start, step = start + step, min(2 * step, most)


def _price_block(instance: Instance, plans: AnyPlans, block: Devices, tally: _Tally) -> bool:
    """Price the designs of a block that keep their limits; whether one of them is better than all before."""
    if not len(block.points):
        return False
    hardware, count = block.hardware, len(block.points)
    needed = memory_of(instance.workload, plans) + hardware.reserved_memory
    capacity = np.broadcast_to(np.asarray(hardware.dram.capacity, np.float64), (count,))
    affordable = _affordable(instance, hardware, count, len(plans), tally)
    fits = needed[:, None] <= capacity[None, :]
    tally.see_limit("memory", int(fits.sum()), float(needed.min() / capacity.max()))
    fits &= _hosted(instance, plans, count, tally)[:, None]
    rows, columns = np.flatnonzero((fits & affordable).any(axis=1)), np.flatnonzero(affordable)
    if not len(rows) or not len(columns):
        return False
    feasible = fits[np.ix_(rows, columns)]
    fewer = hardware if count == len(columns) else take(hardware, columns)
    times, found, limited = times_and_values(instance, fewer, rows_of(plans, rows))
    limit = instance.budget.step_time
    if limit < float("inf"):
        tally.see_limit("step time", int((feasible & (times <= limit)).sum()), float(times[feasible].min(initial=np.inf)) / limit)
        feasible &= times <= limit
    for name, figures, most in limited:
        under = feasible & (figures <= most)
        tally.see_limit(name.replace("_", " "), int(under.sum()), float(figures[feasible].min(initial=np.inf)) / most)
        feasible = under
    for name, other in under_each(instance) if feasible.any() else ():
        values = values_of(other, chips_at(other, block.points[columns]), rows_of(plans, rows))
        feasible, found = feasible & np.isfinite(values), np.maximum(found, values)
        tally.see_limit(f"all of them with {name}", int(feasible.sum()), float("inf"))
    if not feasible.any():
        return False
    tally.feasible += int(feasible.sum())
    return _see(np.where(feasible, found, np.inf), plans, rows, block.points[columns], tally)


def _hosted(instance: Instance, plans: AnyPlans, count: int, tally: _Tally) -> Mask:
    """Which plans keep no more in the host's memory than there is."""
    fits, host = hosted(instance, plans), instance.hardware.host
    if host is not None:
        least = float(host_memory_of(instance.workload, plans).min())
        tally.see_limit("host memory", int(fits.sum()) * count, least / float(host.capacity))
    return fits


def _see(found: Array, plans: AnyPlans, rows: Ints, points: Ints, tally: _Tally) -> bool:
    """Take the block's values into the tally; of equal designs the first one counted is kept."""
    index = int(np.argmin(found))
    row, column = divmod(index, found.shape[1])
    least = float(found[row, column])
    if not isfinite(least):
        raise ModelError(NO_FINITE_VALUE)
    improved = least < tally.value
    if improved:
        tally.found = candidate(plans, int(rows[row]), int(points[column])), least
    tally.see_values(found)
    see(tally.leasts, found, rows_of(plans, rows), points, tally.value * _NEAR)
    return improved


def _affordable(instance: Instance, hardware: Hardware, count: int, plans: int, tally: _Tally) -> Mask:
    """Which devices keep the budgets of area, power and heat."""
    budget, affordable = instance.budget, np.ones(count, bool)
    areas = (("die area", hardware.die_area, budget.die_area), ("package area", hardware.package_area, budget.package_area))
    reticle = ("reticle", hardware.one_die, budget.one_die)
    powers = (("power", hardware.power, budget.power), ("power density", hardware.power_density, budget.power_density))
    for name, need, available in (*areas, reticle, *powers):
        if available == float("inf"):
            continue
        within = np.broadcast_to(is_within(need, available), (count,))
        tally.see_limit(name, int(within.sum()) * plans, float(np.min(need) / available))
        affordable &= within
    return affordable


def _merge(parts: list[tuple[Array, Ints]]) -> tuple[Array, Ints]:
    """One list of different values and how often each occurs."""
    together, times = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    different, index = np.unique(together, return_inverse=True)
    return different, np.bincount(index, weights=times, minlength=len(different)).astype(np.int64)
