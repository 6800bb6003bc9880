"""Fits the efficiency constants of a kind of device to measured step times, and says what a stranger may expect of them.

The constants are few, physical and bounded; sources count alike whatever their number of rows (weights fall with the 0.6th power of it),
and rows far off pull with bounded force. Link figures are not fitted: they come from benchmarks of collectives. A figure that ends on
its bound is a finding about the data, and is said.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crossflow.arrays import Array
from crossflow.hardware import Hardware
from instances.measured import Measurement, device_for
from solvers.accuracy import predictions
from solvers.least_squares import fit

_WIDTH = 0.05
"""Relative errors beyond this count in proportion, not squared: the noise between repeated runs is about 3 %."""
_SOURCE_POWER = 0.6
_SPREAD = (10.0, 90.0)
"""Percentiles of measured over predicted time that make the optimistic and the pessimistic variant."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of the model that is fitted, and the range that physics and data sheets leave it."""

    name: str
    low: float
    start: float
    high: float


CONSTANTS = (
    Constant("matrix", 0.5, 0.75, 0.95),
    Constant("unaligned", 0.5, 0.8, 1.0),
    Constant("attention", 0.1, 0.4, 0.8),
    Constant("accumulation", 16.0, 128.0, 512.0),
    Constant("stream", 0.5, 0.85, 0.95),
    Constant("half_stream", 1.0e5, 4.0e6, 3.0e7),
    Constant("kernel", 1.0e-6, 6.0e-6, 3.0e-5),
    Constant("host", 5.0e-6, 6.0e-5, 1.5e-4),
    Constant("step", 1.0e-3, 1.0e-2, 0.1),
    Constant("loss_passes", 6.0, 15.0, 40.0),
)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Fitted constants with their provenance."""

    constants: dict[str, float]
    at_bound: tuple[str, ...]
    rows: dict[str, int]
    """Rows by source."""
    errors: dict[str, float]
    """Mean absolute relative error by source, of the rows fitted to."""
    left_out: dict[str, float]
    """The same for each source by constants fitted without it; empty with a single source."""
    optimistic: float
    """Measured over predicted time, 10th percentile with sources counting alike."""
    pessimistic: float
    """90th percentile."""


def calibrate(measurements: Sequence[Measurement], constants: tuple[Constant, ...] = CONSTANTS) -> Calibration:
    """Constants for rows that all come from one kind of device."""
    if len(measurements) < 2 * len(constants):
        raise ValueError(
            f"{len(measurements)} rows are too few to fit {len(constants)} constants (at least {2 * len(constants)} are needed)"
        )
    point = _fitted(measurements, constants)
    sources = Counter(row.source for row in measurements)
    ratio = 1.0 / _relative(measurements, constants, point)
    low, high = _percentiles(ratio, _weights(measurements))
    return Calibration(
        constants={constant.name: float(f"{value:.4g}") for constant, value in zip(constants, point, strict=True)},
        at_bound=tuple(c.name for c, value in zip(constants, point, strict=True) if value <= c.low * 1.001 or value >= c.high * 0.999),
        rows=dict(sources),
        errors=_errors(measurements, constants, point),
        left_out=_left_out(measurements, constants) if len(sources) > 1 else {},
        optimistic=low,
        pessimistic=high,
    )


def _left_out(measurements: Sequence[Measurement], constants: tuple[Constant, ...]) -> dict[str, float]:
    """Error on each source by constants that never saw it."""
    errors = {}
    for source in dict.fromkeys(row.source for row in measurements):
        others = [row for row in measurements if row.source != source]
        if len(others) >= 2 * len(constants):
            errors.update(_errors([row for row in measurements if row.source == source], constants, _fitted(others, constants)))
    return errors


def _fitted(measurements: Sequence[Measurement], constants: tuple[Constant, ...]) -> Array:
    low, high = (np.log([getattr(constant, side) for constant in constants]) for side in ("low", "high"))
    start = np.log([constant.start for constant in constants])

    def residuals(points: Array) -> Array:
        return np.log(_all_relative(measurements, constants, np.exp(points)))

    return np.exp(fit(residuals, start, low, high, _weights(measurements), _WIDTH).point)


def _relative(measurements: Sequence[Measurement], constants: tuple[Constant, ...], point: Array) -> Array:
    return _all_relative(measurements, constants, point[None, :])[:, 0]


def _all_relative(measurements: Sequence[Measurement], constants: tuple[Constant, ...], points: Array) -> Array:
    """Predicted over measured time: rows against points."""

    def device(row: Measurement) -> Hardware:
        hardware = device_for(row)
        values = {constant.name: points[:, place].copy() for place, constant in enumerate(constants)}
        spread = np.full(len(points), float(hardware.throughput))
        return replace(hardware, throughput=spread, efficiency=replace(hardware.efficiency, **values))

    measured = np.array([row.seconds for row in measurements])
    relative: Array = predictions(measurements, device) / measured[:, None]
    return relative


def _errors(measurements: Sequence[Measurement], constants: tuple[Constant, ...], point: Array) -> dict[str, float]:
    off = np.abs(_relative(measurements, constants, point) - 1.0)
    sources = np.array([row.source for row in measurements])
    return {str(source): float(off[sources == source].mean()) for source in dict.fromkeys(sources)}


def _weights(measurements: Sequence[Measurement]) -> Array:
    count = Counter(row.source for row in measurements)
    return np.array([count[row.source] ** -_SOURCE_POWER for row in measurements])


def _percentiles(values: Array, weights: Array) -> tuple[float, float]:
    order = np.argsort(values)
    share = np.cumsum(weights[order]) / weights.sum() * 100.0
    low, high = (float(values[order][np.searchsorted(share, percentile)]) for percentile in _SPREAD)
    return low, high


def registry_text(calibration: Calibration, data: str) -> str:
    """The two sections of a device's registry file, as YAML."""
    lines = [f"efficiency: # fitted by `crossopt calibrate` to {data}"]
    lines += [f"  {name}: {value:g}" for name, value in calibration.constants.items()]
    lines += ["calibration:", f"  rows: {_flow(calibration.rows)}", f"  errors: {_flow(calibration.errors)}"]
    lines += [f"  left_out: {_flow(calibration.left_out)}", f"  at_bound: [{', '.join(calibration.at_bound)}]"]
    lines += [f"  optimistic: {calibration.optimistic:.3f}", f"  pessimistic: {calibration.pessimistic:.3f}"]
    return "\n".join(lines) + "\n"


def _flow(figures: Mapping[str, float]) -> str:
    return (
        "{" + ", ".join(f'"{name}": {value if isinstance(value, int) else format(value, ".4f")}' for name, value in figures.items()) + "}"
    )
