"""The oracle for several workloads: on every chip the least value of each, then the least figure of them all.

Memory stays flat: chips come in blocks, and for each block of chips the plans of each workload in blocks. Of equal chips the first one
wins, and on it of equal plans the first one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.instances.codesign.boxes import Corners, chips_at, corners_in, within
from crossopt.instances.codesign.instance import Instance, under_each
from crossopt.instances.codesign.space import AnyPlans, as_arrays, combinations, devices, hardware_points, plan_blocks
from crossopt.solvers.answer import Progress, Watch
from crossopt.solvers.codesign.answer import Candidate, candidate
from crossopt.solvers.codesign.boxes.search import Trace
from crossopt.solvers.codesign.enumeration.exhaustive import PRICES
from crossopt.solvers.codesign.objective import Joint, combined
from crossopt.solvers.codesign.pricing import values_of
from crossopt.solvers.codesign.rivals.megatron import until
from crossopt.solvers.proofs import JointSpace

_POINTS = 1 << 14
"""Chips whose least values are kept together."""
_KEPT = 1 << 18
"""Combinations of plan choices of which the plans are kept for the next block of chips; those of more are made again."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the enumeration saw."""

    best: tuple[Candidate, ...]
    """A design for each workload, all on one chip; none where there is none."""
    value: float | None
    space: JointSpace
    trace: Trace
    stopped: str


@dataclass(slots=True)
class _Tally:
    """Counts so far."""

    served: list[int]
    """Chips on which each workload has a plan."""
    found: tuple[int, float] = 0, float("inf")
    """The best chip with its value, which an interrupt cannot part."""
    unbuilt: int = 0
    serving: int = 0
    trace: list[tuple[float, float | None, float | None]] = field(default_factory=list)

    @property
    def point(self) -> int:
        return self.found[0]

    @property
    def value(self) -> float:
        return self.found[1]


def search(asked: Joint, watch: Watch, deadline: float = float("inf")) -> Found:
    """Price every plan of every workload on every chip; stops early at the deadline or on an interrupt, and then says so."""
    began, points, stopped = monotonic(), hardware_points(asked.parts[0]), "complete"
    tally = _Tally([0] * len(asked.parts))
    plans = [_plans(part) for part in asked.parts]
    try:
        for start in range(0, points, _POINTS):
            stop = min(start + _POINTS, points)
            if _look(asked, plans, start, stop, tally, deadline):
                tally.trace.append((monotonic() - began, tally.value, None))
            watch(Progress(f"{stop / points:.0%}  {stop:,} chips", tally.value if tally.value < float("inf") else None))
    except KeyboardInterrupt:
        stopped = "interrupted"
    except TimeoutError:
        stopped = "time limit"
    best = tuple(map(_best_plan, asked.parts, plans, [tally.point] * len(plans))) if tally.value < float("inf") else ()
    counts = tuple(sum(len(block) for block in _blocks(part, kept)) for part, kept in zip(asked.parts, plans, strict=True))
    space = JointSpace(prod(counts) * points, points, tally.unbuilt, counts, tuple(tally.served), tally.serving)
    return Found(best, tally.value if best else None, space, tuple(tally.trace), stopped)


def _plans(instance: Instance) -> list[AnyPlans] | None:
    """The blocks of plans if they are few, which are then made once."""
    return list(plan_blocks(instance)) if combinations(instance) <= _KEPT else None


def _blocks(instance: Instance, kept: list[AnyPlans] | None) -> Iterable[AnyPlans]:
    return plan_blocks(instance) if kept is None else kept


def _chips(instance: Instance, start: int, stop: int) -> tuple[Corners, Whole]:
    """The chips of these points that can be built, whether they keep the budgets, under each set of constants, and their numbers."""
    block = devices(instance, start, stop)
    hardware = as_arrays(block.hardware, len(block.points))
    others = tuple((other, chips_at(other, block.points)) for _, other in under_each(instance))
    return Corners(hardware, np.broadcast_to(within(instance, hardware), block.points.shape), others), block.points


def _look(asked: Joint, plans: list[list[AnyPlans] | None], start: int, stop: int, tally: _Tally, deadline: float) -> bool:
    """Take a block of chips into the tally; whether one of them is better than all before."""
    minima = []
    for part, kept in zip(asked.parts, plans, strict=True):
        chips, points = _chips(part, start, stop)
        least = np.full(len(points), np.inf)
        for block in until(deadline, _blocks(part, kept)):
            least = np.minimum(least, _least(part, chips, block, deadline))
        minima.append(least)
    found = combined(asked, minima)
    tally.unbuilt += stop - start - len(points)
    tally.served = [count + int(np.isfinite(least).sum()) for count, least in zip(tally.served, minima, strict=True)]
    tally.serving += int(np.isfinite(found).sum())
    if not len(points) or not found.min() < tally.value:
        return False
    place = int(np.argmin(found))
    tally.found = int(points[place]), float(found[place])
    return True


def _least(instance: Instance, chips: Corners, plans: AnyPlans, deadline: float) -> Array:
    """The least value that any of the plans has on each chip."""
    count = len(chips.alive)
    step = max(1, PRICES // max(len(plans), 1))
    least = np.full(count, np.inf)
    for start in until(deadline, range(0, count if len(plans) else 0, step)):
        some = np.arange(start, min(start + step, count))
        least[some] = values_of(instance, corners_in(chips, some), plans).min(axis=0)
    return least


def _best_plan(instance: Instance, kept: list[AnyPlans] | None, point: int) -> Candidate:
    """The first plan with the least value on one chip."""
    chips, _ = _chips(instance, point, point + 1)
    best: tuple[float, Candidate] | None = None
    for block in _blocks(instance, kept):
        values = values_of(instance, chips, block)[:, 0]
        row = int(np.argmin(values)) if len(values) else 0
        if len(values) and (best is None or values[row] < best[0]):
            best = float(values[row]), candidate(block, row, point)
    if best is None:
        raise ArithmeticError("a chip that serves every workload serves one of them with no plan")
    return best[1]
