"""Constants of the model fitted to measured step times, many sets of them at once.

    residual of a row = log(predicted / measured)

Sources count alike whatever their number of rows (weights fall with the 0.6th power of it), and rows far off pull with bounded force.
All sets share the calls of the model, which cost nearly the same for one set of constants as for hundreds.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crossopt.crossflow.arrays import Array, Mask
from crossopt.crossflow.hardware import Hardware
from crossopt.instances.measured.runs import Measurement, device_for
from crossopt.solvers.measured.accuracy import predictions
from crossopt.solvers.measured.least_squares import MIDDLE, Problem, fit_together

_WIDTH = 0.05
"""Relative errors beyond this count in proportion, not squared: the noise between repeated runs is about 3 %."""
_SOURCE_POWER = 0.6


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of the model that is fitted, and the range that physics and data sheets leave it."""

    name: str
    low: float
    start: float
    high: float


@dataclass(frozen=True, slots=True)
class Task:
    """One set of constants to fit: what each row counts, which side of it counts more, and where the search starts."""

    weights: Array
    tilt: float = MIDDLE
    """Above a half, predictions that are too short count more than those that are too long."""
    start: Array | None = None
    """Values of the constants; their own starts where nothing is said."""


Note = Callable[[str], None]
"""Takes a line that says how far the work is."""


def unnoted(line: str) -> None:
    """Drops it."""
    del line


def fitted(measurements: Sequence[Measurement], constants: tuple[Constant, ...], tasks: Sequence[Task], note: Note = unnoted) -> Array:
    """The constants of each task, one row each."""
    low, high = (np.log([getattr(constant, side) for constant in constants]) for side in ("low", "high"))
    usual = np.array([constant.start for constant in constants])

    def residuals(points: Array) -> Array:
        return np.log(relative(measurements, constants, np.exp(points)))

    def watch(number: int, searches: int) -> None:
        note(f"fit of {len(tasks)} sets of constants, round {number}: {searches} still move")

    problems = [Problem(np.log(usual if task.start is None else task.start), task.weights, task.tilt) for task in tasks]
    return np.exp([found.point for found in fit_together(residuals, problems, low, high, _WIDTH, watch=watch)])


def at_bound(constants: tuple[Constant, ...], point: Array) -> tuple[str, ...]:
    """The constants that ended on a bound: a finding about the data."""
    return tuple(c.name for c, value in zip(constants, point, strict=True) if value <= c.low * 1.001 or value >= c.high * 0.999)


def relative(measurements: Sequence[Measurement], constants: tuple[Constant, ...], points: Array) -> Array:
    """Predicted over measured time: rows against points."""

    def device(row: Measurement) -> Hardware:
        hardware = device_for(row)
        values = {constant.name: points[:, place].copy() for place, constant in enumerate(constants)}
        spread = np.full(len(points), float(hardware.throughput))
        return replace(hardware, throughput=spread, efficiency=replace(hardware.efficiency, **values))

    measured = np.array([row.seconds for row in measurements])
    quotient: Array = predictions(measurements, device) / measured[:, None]
    return quotient


def row_weights(measurements: Sequence[Measurement], kept: Mask) -> Array:
    """(rows of the source)^-0.6 for the rows that are kept, 0 for the others."""
    count = Counter(row.source for row, keep in zip(measurements, kept, strict=True) if keep)
    return np.array([count[row.source] ** -_SOURCE_POWER if keep else 0.0 for row, keep in zip(measurements, kept, strict=True)])


def source_means(measurements: Sequence[Measurement], values: Array) -> dict[str, float]:
    """The mean of one value a row over the rows of each source."""
    sources = np.array([row.source for row in measurements])
    return {str(source): float(values[sources == source].mean()) for source in dict.fromkeys(sources)}
