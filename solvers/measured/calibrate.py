"""Fits the efficiency constants of a kind of device to measured step times, and says what a stranger may expect of them.

The constants are few, physical and bounded. Link figures are not fitted: they come from benchmarks of collectives. A figure that ends on
its bound is a finding about the data, and is said.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.instances.catalogue.registry import device
from crossopt.instances.measured.runs import Measured, Measurement
from crossopt.solvers.measured.accuracy import distinct
from crossopt.solvers.measured.cross_validation import by_model, by_source, enough, folds, left_out_errors, without
from crossopt.solvers.measured.fitting import Constant, Note, Task, at_bound, fitted, relative, row_weights, source_means, unnoted
from crossopt.solvers.measured.provenance import kind_of
from crossopt.solvers.measured.uncertainty import extremes, intervals, outside, outside_left_out, resample, tilted

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
    optimistic: dict[str, float]
    """Constants by which one row in twenty is faster than predicted."""
    pessimistic: dict[str, float]
    """Constants by which one row in twenty is slower than predicted."""
    at_bound: tuple[str, ...]
    """Constants of the central set that ended on a bound."""
    rows: dict[str, int]
    """Rows by source."""
    error: float
    """Mean absolute relative error of the rows fitted to, each with its weight in the fit."""
    errors: dict[str, float]
    """The same by source; inside a source all rows weigh alike."""
    left_out: dict[str, float]
    """The same for each source by constants fitted without it; empty with a single source."""
    left_out_by_model: dict[str, float]
    """The same, each row by constants fitted without all rows of its model's hidden size."""
    below: dict[str, float]
    """Share of each source's rows that are faster than the range of the three predictions."""
    above: dict[str, float]
    """Share of the rows that are slower than it."""
    left_out_below: dict[str, float]
    """`below` of each source by constants fitted without it; empty with a single source."""
    left_out_above: dict[str, float]
    uncertainty: dict[str, tuple[float, float]]
    """10th and 90th percentile of each constant over resampled fits, and further where fits without a source lie further off."""


def calibrate(measurements: Sequence[Measurement], constants: tuple[Constant, ...] = CONSTANTS, note: Note = unnoted) -> Calibration:
    """Constants for rows that all come from one kind of device."""
    rows = distinct(measurements)
    if not enough(rows, constants):
        counted = f"{rows} distinct row{' is' if rows == 1 else 's are'}"
        raise ValueError(f"{counted} too few to fit {len(constants)} constants (at least {2 * len(constants)} are needed)")
    weights = row_weights(measurements, np.ones(len(measurements), bool))
    sources, models = folds(measurements, constants, by_source), folds(measurements, constants, by_model)
    points = fitted(measurements, constants, [Task(weights), *without(measurements, [*sources, *models])], note)
    centre = np.array([_rounded(value) for value in points[0]])
    resamples, tilts = resample(measurements, weights, centre), tilted(weights, centre)
    around = fitted(measurements, constants, [*resamples, *tilts], note)
    places = extremes(measurements, constants, weights, around[len(resamples) :])
    fast, slow = around[[len(resamples) + place for place in places]]
    strangers = points[1 : 1 + len(sources)]
    off = np.abs(relative(measurements, constants, centre[None, :])[:, 0] - 1.0)
    below, above = outside(measurements, constants, np.array([centre, fast, slow]))
    unseen = outside_left_out(measurements, constants, [*zip(sources, strangers, strict=True)], places, note)
    return Calibration(
        constants=_named(constants, centre),
        optimistic=_named(constants, fast),
        pessimistic=_named(constants, slow),
        at_bound=at_bound(constants, points[0]),
        rows=dict(Counter(row.source for row in measurements)),
        error=float(np.average(off, weights=weights)),
        errors=source_means(measurements, off),
        left_out=left_out_errors(measurements, constants, sources, strangers),
        left_out_by_model=left_out_errors(measurements, constants, models, points[1 + len(sources) :]),
        below=below,
        above=above,
        left_out_below=unseen[0],
        left_out_above=unseen[1],
        uncertainty={
            constant.name: (_rounded(low), _rounded(high))
            for constant, (low, high) in zip(constants, intervals(around[: len(resamples)], strangers), strict=True)
        },
    )


def of_kind(measured: Measured, gpu: str, name: str) -> Measured:
    """The rows of the file `name` of all devices of one kind: an A100 of 40 GB and one of 80 GB differ in their memory only.

    A ValueError where none can be priced, or the registry has no such device.
    """
    device(gpu)
    kind = kind_of(gpu)
    found = Measured(
        measurements=tuple(row for row in measured.measurements if kind_of(row.gpu) == kind),
        rejected=tuple(row for row in measured.rejected if kind_of(row.gpu) == kind),
    )
    if not found.measurements:
        others = Counter(row.gpu for row in measured.measurements)
        listed = ", ".join(f"{count:,} of {other}" for other, count in others.most_common()) or "none of any device"
        refused = f", and {len(found.rejected):,} of {kind} that cannot be" if found.rejected else ""
        raise ValueError(f"{name} has no row of {gpu} or another {kind} that can be priced ({listed}{refused}; see `crossopt accuracy`)")
    return found


def used_rows(name: str, rows: Measured) -> str:
    """One line on the rows of one kind of device that a fit uses, and on those that it cannot."""
    used, once, rejected = len(rows.measurements), distinct(rows.measurements), len(rows.rejected)
    reasons = "; ".join(f"{count:,}: {reason}" for reason, count in Counter(row.reason for row in rows.rejected).most_common())
    told = f" ({reasons})" if reasons else ""
    return f"{name}: {used:,} row{'' if used == 1 else 's'} of this kind to fit, {once:,} distinct; {rejected:,} rejected{told}"


def _named(constants: tuple[Constant, ...], point: Array) -> dict[str, float]:
    return {constant.name: _rounded(value) for constant, value in zip(constants, point, strict=True)}


def _rounded(value: float) -> float:
    """Four digits, as the registry has them."""
    return float(f"{value:.4g}")


_BY_SOURCE: Final = ("errors", "left_out", "left_out_by_model", "below", "above", "left_out_below", "left_out_above")


def registry_text(calibration: Calibration, data: str) -> str:
    """The sections of a device's registry file, as YAML."""
    lines = [f"efficiency: # fitted by `crossopt calibrate` to {data}", *_constants(calibration.constants)]
    lines += ["optimistic: # one run in twenty was faster", *_constants(calibration.optimistic)]
    lines += ["pessimistic: # one run in twenty was slower", *_constants(calibration.pessimistic)]
    lines += ["calibration:", f"  rows: {_flow(calibration.rows)}", f"  error: {calibration.error:.4f}"]
    lines += [f"  {name}: {_flow(getattr(calibration, name))}" for name in _BY_SOURCE]
    lines += [f"  at_bound: [{', '.join(calibration.at_bound)}]", "  uncertainty:"]
    lines += [f"    {name}: [{low:g}, {high:g}]" for name, (low, high) in calibration.uncertainty.items()]
    return "\n".join(lines) + "\n"


def _constants(values: Mapping[str, float]) -> list[str]:
    return [f"  {name}: {value:g}" for name, value in values.items()]


def _flow(figures: Mapping[str, float]) -> str:
    return (
        "{" + ", ".join(f'"{name}": {value if isinstance(value, int) else format(value, ".4f")}' for name, value in figures.items()) + "}"
    )
