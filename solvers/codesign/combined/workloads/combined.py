"""One figure of several workloads, and the plans of each that may still make it small.

    weighted sum    ((w_1 v_1) + w_2 v_2) + ...
    worst regret    max(0, v_1 / v*_1 - 1, v_2 / v*_2 - 1, ...),  v*_k the least v_k on any chip

Both never fall when a value grows, operation by operation, so that bounds of the values make a bound of the figure as computed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Array, Real
from crossopt.instances.codesign.boxes import Boxes, Corners, Grid, corners
from crossopt.instances.codesign.instance import FreeHardware, Instance, Portfolio
from crossopt.instances.errors import ModelError
from crossopt.solvers.codesign.boxes.branch import Rows
from crossopt.solvers.codesign.objective import NO_FINITE_VALUE


@dataclass(frozen=True, slots=True)
class Joint:
    """Workloads with what makes one figure of their values."""

    parts: tuple[Instance, ...]
    combine: str
    scales: tuple[float, ...]
    """Weights, or the optima of each workload alone."""


def joint(portfolio: Portfolio, optima: Sequence[float | None]) -> Joint:
    """The question with the optima of each workload alone, which the worst regret needs; None where a workload has no design.

    Such a workload has no value on any chip, and its scale plays no part."""
    if portfolio.combine == "weighted_sum":
        return Joint(portfolio.parts, portfolio.combine, portfolio.weights)
    for part, optimum in zip(portfolio.parts, optima, strict=True):
        if optimum == 0.0:
            raise ModelError(f"the optimum of {part.name} alone is 0, so that nothing can be divided by it (use combine: weighted_sum)")
    return Joint(portfolio.parts, portfolio.combine, tuple(1.0 if optimum is None else optimum for optimum in optima))


def combined(asked: Joint, values: Sequence[Real]) -> Array:
    """The figure of these values, one for each workload; infinite where a workload has none."""
    with np.errstate(over="ignore"):
        if asked.combine == "weighted_sum":
            found = np.asarray(asked.scales[0] * values[0])
            for scale, value in zip(asked.scales[1:], values[1:], strict=True):
                found = found + scale * value
        else:
            found = np.zeros(())
            for scale, value in zip(asked.scales, values, strict=True):
                found = np.maximum(found, value / scale - 1.0)
    finite = np.logical_and.reduce(np.broadcast_arrays(*(np.isfinite(value) for value in values)))
    if not np.isfinite(found[finite]).all():
        raise ModelError(NO_FINITE_VALUE)
    return np.asarray(found)


def in_place(asked: Joint, minima: Sequence[float], place: int, values: Array) -> Array:
    """The figure of the least values with others in the place of one workload's."""
    return combined(asked, [values if number == place else np.float64(least) for number, least in enumerate(minima)])


def chips_of(asked: Joint, space: Grid, boxes: Boxes) -> tuple[Corners, ...]:
    """The best device of each box, as each workload finds it: a given device computes in the precision of the workload."""
    first = corners(asked.parts[0], space, boxes)
    if isinstance(asked.parts[0].hardware, FreeHardware):
        return (first,) * len(asked.parts)
    return (first, *(corners(part, space, boxes) for part in asked.parts[1:]))


def minima_of(lists: Sequence[Rows]) -> list[float]:
    """The least bound of each workload; infinite where none of its plans is left."""
    return [float(rows.bounds[0]) if len(rows) else float("inf") for rows in lists]


def below(asked: Joint, lists: Sequence[Rows], value: float) -> tuple[Rows, ...]:
    """The plans with which the figure may be below a value; none of any workload where it cannot."""
    minima = minima_of(lists)
    counts = [int(np.count_nonzero(in_place(asked, minima, place, rows.bounds) < value)) for place, rows in enumerate(lists)]
    return tuple(rows.part(slice(count if all(counts) else 0)) for rows, count in zip(lists, counts, strict=True))
