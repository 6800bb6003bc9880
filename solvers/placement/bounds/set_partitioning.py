"""A bound on the busiest device by prices of the blocks: what sets one device can hold, not how devices share them (set partitioning).

Let each block have a price u_b >= 0. From the most that the sets of one accelerator are worth within a load of T, alpha(T), and those of a
CPU, beta(T), it follows that k alpha(T) + l beta(T) >= sum of u, if there is a placement no busier than T. The least such T is the bound,
for whichever prices: they are whole numbers, and `solvers.placement.bounds.prices` finds alpha for all T at once, exactly.

Good prices come from the dual of the linear program that covers all blocks by few sets: of the sets found so far, and near the best prices
known (the box step method, Marsten, Hogan and Blankenship 1975). What HiGHS says of it are proposals. Prices in proportion to the work come
first. Memory is not looked at, which can only lower the bound.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.formulation.model import Program, Rows
from crossopt.formulation.placement.blocks import Blocks
from crossopt.formulation.placement.throughput import Machine
from crossopt.instances.errors import SolverError
from crossopt.solvers.backends.arrays import Session, SolveMonitor
from crossopt.solvers.placement.bounds.prices import (
    Choices,
    Priceable,
    choices_for,
    in_time,
    least_busiest_of,
    least_loads,
    priceable,
    set_of,
)

PROOF = "prices of the blocks, and the sets that a device can hold"
_SHARE, _WIDEST, _WIDER, _NARROWER, _NARROWEST = 0.03, 0.3, 1.3, 0.6, 1e-4
"""The share by which prices may leave the best ones: at first, at most, times as much after a better bound, after several that are none,
and at least."""
_FAILED, _PATIENCE = 8, 100
"""So many prices without a better bound are the sign to stay nearer, and to end."""
_AHEAD, _NEARER, _NEAREST = 0.004, 0.8, 1e-4
"""By which share the load that sets may have is above the bound, and times as much where sets say no more."""
_LEVELS = (0.0, 0.001, 0.004)
"""Sets within this relative distance of the best are considered too."""
_COARSEST, _FEWEST, _FINER, _REFINED = 64, 2_048, 4, 24
"""The sum of prices for each block at first, the least sum, and times as much after so many prices without a better bound."""
_AGE, _KEPT = 8, 400
"""Sets that so often did not matter are dropped, once there are more than so many."""


@dataclass(slots=True, eq=False)
class Master:
    """Sets of accelerators and CPUs, a row for each, and how often each did not matter."""

    sets: Mask
    of_cpu: Mask
    age: Ints


@dataclass(slots=True, eq=False)
class Course:
    """Where the prices stand."""

    ready: Priceable
    best_prices: Array
    master: Master
    rooms: tuple[Choices, Choices]
    """Where the dynamic programs of accelerators and CPUs write."""
    total: int
    """Of all prices, but for rounding: from coarse to fine."""
    best: int = 0
    share: float = _SHARE
    ahead: float = _AHEAD
    failed: int = 0
    stale: int = 0
    """Prices since the last ones that narrowed or widened nothing, and since those that said more."""


@dataclass(frozen=True, slots=True, eq=False)
class ByPrices:
    """A bound in milliseconds, and the whole prices that show it to anybody."""

    bound: float
    prices: Ints


def multiplier_bounds(blocks: Blocks, machine: Machine, limit: float, least: float, deadline: float) -> Iterator[ByPrices]:
    """Better and better bounds up to the limit, in milliseconds."""
    ready = priceable(blocks, machine, limit)
    if ready is None:
        return
    work = np.where(ready.figures.supported, np.array(ready.figures.accelerator, np.float64), 0.0)
    if not work.sum():
        return
    none = Master(np.zeros((0, len(work)), bool), np.zeros(0, bool), np.zeros(0, np.int64))
    most = ready.total + len(work)
    rooms = (choices_for(ready.walk, most), choices_for(ready.cpu, most))
    course = Course(ready, work / work.sum(), none, rooms, min(max(_COARSEST * len(work), _FEWEST), ready.total))
    prices: Array | None = course.best_prices
    while prices is not None and course.stale < _PATIENCE and monotonic() < deadline:
        quanta = np.rint(prices * (course.total / prices.sum())).astype(np.int64)
        found = in_time(ready, _bound_at(course, prices, quanta))
        if found > least:
            least = found
            yield ByPrices(least, quanta)
        if least >= limit:
            return
        if course.stale >= _REFINED and course.total < ready.total:
            course.total, prices = min(_FINER * course.total, ready.total), course.best_prices
            course.stale, course.failed, course.share, course.ahead = 0, 0, _SHARE, max(course.ahead, _AHEAD / 4)
        else:
            prices = _proposed(course, deadline)


def _bound_at(course: Course, prices: Array, quanta: Ints) -> int:
    """The bound of these prices; the sets that are worth most by them are kept."""
    machine, walk, limit = course.ready.machine, course.ready.walk, course.ready.limit
    loads, chosen = least_loads(walk, quanta, limit, course.rooms[0])
    work, taken = least_loads(course.ready.cpu, quanta, limit, course.rooms[1])
    bound = least_busiest_of(loads, work, machine.accelerators, machine.cpus)
    course.failed, course.stale = course.failed + 1, course.stale + 1
    if bound > course.best:
        near = bound <= course.best * (1.0 + 0.05 * course.ahead)
        course.best, course.best_prices, course.failed, course.stale = bound, prices, course.failed if near else 0, 0
        course.share = min(course.share * _WIDER, _WIDEST)
    elif course.failed >= _FAILED:
        course.share, course.failed = max(course.share * _NARROWER, _NARROWEST), 0
    within = min(int(course.best * (1.0 + course.ahead)), limit)
    worth = int(np.flatnonzero(loads <= within)[-1])
    levels = {int(np.flatnonzero(loads[: int(worth * (1.0 - level)) + 1] <= within)[-1]) for level in _LEVELS}
    _keep(course.master, [set_of(walk, quanta, chosen, level) for level in sorted(levels)], of_cpu=False)
    if machine.cpus:
        _keep(course.master, [set_of(course.ready.cpu, quanta, taken, int(np.flatnonzero(work <= within)[-1]))], of_cpu=True)
    return bound


def _keep(master: Master, sets: list[Mask], of_cpu: bool) -> None:
    master.sets = np.concatenate([master.sets, sets])
    master.of_cpu = np.concatenate([master.of_cpu, np.full(len(sets), of_cpu)])
    master.age = np.concatenate([master.age, np.zeros(len(sets), np.int64)])


def _proposed(course: Course, deadline: float) -> Array | None:
    """The prices near the best ones by which the sets kept are worth least beside all blocks; None where HiGHS has none.

    least k alpha + l beta - sum of u  with  alpha >= u(S) for sets of accelerators, beta >= u(S) for sets of CPUs
    """
    master, machine = course.master, course.ready.machine
    slack = 1e-4 / len(course.best_prices)
    low = np.maximum(course.best_prices * (1.0 - course.share) - slack, 0.0)
    high = course.best_prices * (1.0 + course.share) + slack
    terms = np.concatenate([master.sets, ~master.of_cpu[:, None], master.of_cpu[:, None]], axis=1)
    row, column = np.nonzero(terms)
    factors = np.where(column < len(low), 1.0, -1.0)
    rows = Rows(
        lows=np.full(len(terms), -np.inf),
        highs=-(master.sets.astype(np.float64) @ low),
        starts=np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(terms)))]).astype(np.int64),
        columns=column.astype(np.int64),
        factors=factors,
    )
    costs = np.concatenate([np.full(len(low), -1.0), [float(machine.accelerators), float(machine.cpus)]])
    highs = np.concatenate([high - low, [np.inf, np.inf]])
    program = Program(1.0, costs, highs, np.zeros(len(costs), bool), rows)
    try:
        relaxed = Session(program, 1, 0).relaxed(max(deadline - monotonic(), 0.0), SolveMonitor(lambda: False))
    except SolverError:  # bounds so far hold, and others follow
        return None
    if relaxed.ending != "solved":
        return None
    prices = low + np.clip(relaxed.columns[: len(low)], 0.0, high - low)
    _forget(master, prices, relaxed.columns[len(low) :])
    if relaxed.value - low.sum() > -5e-5:
        course.ahead, course.share = max(course.ahead * _NEARER, _NEAREST), min(2.0 * course.share, _WIDEST)
    return prices


def _forget(master: Master, prices: Array, worth: Array) -> None:
    """Count how often sets did not matter, and drop those that seldom do."""
    idle = master.sets.astype(np.float64) @ prices < np.where(master.of_cpu, worth[1], worth[0]) - 1e-7
    master.age = np.where(idle, master.age + 1, 0)
    if len(master.age) > _KEPT:
        keep = master.age <= _AGE
        master.sets, master.of_cpu, master.age = master.sets[keep], master.of_cpu[keep], master.age[keep]
