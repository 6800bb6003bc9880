"""Constants of the model fitted to measured step times, many sets of them at once.

    residual of a row = log(predicted / measured)

Sources count alike whatever their number of rows (weights fall with the 0.6th power of it), and rows far off pull with bounded force.
The formulas run once on constants that are not known (`measured.recorded`); all sets share the calls of what depends on them, which cost
nearly the same for one set of constants as for hundreds.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from crossopt.crossflow.arrays import Array, Mask
from crossopt.crossflow.plan import table
from crossopt.crossflow.transformer import step_times
from crossopt.instances.measured.runs import Measurement, device_for
from crossopt.solvers.measured.accuracy import priced_together
from crossopt.solvers.measured.least_squares import MIDDLE, Problem, fit_together
from crossopt.solvers.measured.recorded import Program, Tape, program

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
    names = tuple(constant.name for constant in constants)
    values = {name: np.ascontiguousarray(points[:, place]) for place, name in enumerate(names)}
    quotients = np.empty((len(measurements), len(points)))
    for rows, seconds in _programs(tuple(measurements), names):
        quotients[rows] = seconds(values)
    quotients /= np.array([row.seconds for row in measurements])[:, None]
    return quotients


@lru_cache(maxsize=2)
def _programs(measurements: tuple[Measurement, ...], names: tuple[str, ...]) -> tuple[tuple[list[int], Program], ...]:
    """The step times of rows that are priced together, as programs that take constants: a fit asks for the same rows hundreds of times."""
    return tuple((rows, _program([measurements[row] for row in rows], names)) for rows in priced_together(measurements))


def _program(rows: Sequence[Measurement], names: tuple[str, ...]) -> Program:
    tape, hardware, run = Tape(), device_for(rows[0]), rows[0]
    unknown: dict[str, Any] = {name: tape.constant(name) for name in names}
    device = replace(hardware, efficiency=replace(hardware.efficiency, **unknown))
    return program(step_times(run.workload, device, run.cluster, table([row.plan for row in rows])))


def row_weights(measurements: Sequence[Measurement], kept: Mask) -> Array:
    """(rows of the source)^-0.6 for the rows that are kept, 0 for the others."""
    count = Counter(row.source for row, keep in zip(measurements, kept, strict=True) if keep)
    return np.array([count[row.source] ** -_SOURCE_POWER if keep else 0.0 for row, keep in zip(measurements, kept, strict=True)])


def source_means(measurements: Sequence[Measurement], values: Array) -> dict[str, float]:
    """The mean of one value a row over the rows of each source."""
    sources = np.array([row.source for row in measurements])
    return {str(source): float(values[sources == source].mean()) for source in dict.fromkeys(sources)}
