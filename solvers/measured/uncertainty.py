"""How sure fitted constants are, and what they leave unexplained: resampled constants, and sets for the fast and for the slow runs.

Uncertainty of a constant: the fit is repeated on models drawn with replacement inside each source (bootstrap over groups; Efron 1979,
Davison and Hinkley 1997, section 3.8), as runs of one model err alike.

Optimistic and pessimistic sets: the same loss with one side of each residual counting more (`measured.least_squares`), so that one run
in twenty is faster than the optimistic and one in twenty slower than the pessimistic prediction. Unlike two factors on the step time, a set
says of another workload which of its parts may be slow.
"""

from collections.abc import Sequence

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.instances.measured.runs import Measurement
from crossopt.solvers.measured.fitting import Constant, Task, relative, source_means

_RESAMPLES = 20
_SEED = 0
_PERCENTILES = (10.0, 90.0)
_OUTSIDE = 0.05
"""Share of the rows beyond the prediction of either set, each row with its weight in the fit."""
_TILTS = (0.7, 0.8, 0.85, 0.89, 0.92, 0.94, 0.955, 0.97, 0.98, 0.99)
"""Tried for the pessimistic set, and mirrored for the optimistic one."""


def resample(measurements: Sequence[Measurement], weights: Array, start: Array) -> list[Task]:
    """The fits to resampled models: each source keeps its number of models, some of which count several times and others not at all."""
    random = np.random.default_rng(_SEED)
    models = [(row.source, row.workload.hidden, row.workload.layers) for row in measurements]
    tasks = []
    for _ in range(_RESAMPLES):
        times: dict[tuple[str, int, int], int] = {}
        for source in dict.fromkeys(source for source, _, _ in models):
            mine = sorted({model for model in models if model[0] == source})
            times |= dict(zip(mine, random.multinomial(len(mine), np.full(len(mine), 1.0 / len(mine))).tolist(), strict=True))
        tasks.append(Task(weights * np.array([times[model] for model in models]), start=start))
    return tasks


def intervals(points: Array) -> Array:
    """The 10th and the 90th percentile of each constant over the resampled fits, one row each.

    Where the loss is flat because constants trade off, the fitted value itself need not lie between. A constant on which no row
    depends stays where it started, and its interval is empty.
    """
    bounds: Array = np.percentile(points, _PERCENTILES, axis=0).T
    return bounds


def tilted(weights: Array, start: Array) -> list[Task]:
    """The fits of which one becomes the optimistic and one the pessimistic set."""
    return [Task(weights, tilt, start) for tilt in (*(1.0 - tilt for tilt in _TILTS), *_TILTS)]


def extremes(measurements: Sequence[Measurement], constants: tuple[Constant, ...], weights: Array, points: Array) -> tuple[Array, Array]:
    """Of the fits of `tilted`, the optimistic and the pessimistic one: those beyond which nearest to a twentieth of the rows lie."""
    predicted, share = relative(measurements, constants, points), weights / weights.sum()
    half = len(_TILTS)
    faster, slower = share @ (predicted[:, :half] > 1.0), share @ (predicted[:, half:] < 1.0)
    return points[np.argmin(np.abs(faster - _OUTSIDE))], points[half + np.argmin(np.abs(slower - _OUTSIDE))]


def outside(
    measurements: Sequence[Measurement], constants: tuple[Constant, ...], points: Array
) -> tuple[dict[str, float], dict[str, float]]:
    """For each source the share of its rows that are faster, and that are slower, than the predictions by all of these constants."""
    predicted = relative(measurements, constants, points)
    faster, slower = (predicted > 1.0).all(axis=1).astype(float), (predicted < 1.0).all(axis=1).astype(float)
    return source_means(measurements, faster), source_means(measurements, slower)
