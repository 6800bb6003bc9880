"""How sure fitted constants are, and what they leave unexplained: resampled constants, and sets for the fast and for the slow runs.

Uncertainty of a constant: the fit is repeated on models drawn with replacement inside each source (bootstrap over groups; Efron 1979,
Davison and Hinkley 1997, section 3.8), as runs of one model err alike.

Optimistic and pessimistic sets: the same loss with one side of each residual counting more (`measured.least_squares`), so that one run
in twenty is faster than the optimistic and one in twenty slower than the pessimistic prediction. Unlike two factors on the step time, a set
says of another workload which of its parts may be slow.

Both are told of rows that were not fitted to, too: with a source left out, constants that are fitted to the others may lie further off than
any resample, and fewer of its rows lie between the sets. What somebody else's runs would show is seen there alone.
"""

from collections.abc import Sequence

import numpy as np

from crossopt.crossflow.arrays import Array, Mask
from crossopt.instances.measured.runs import Measurement
from crossopt.solvers.measured.fitting import Constant, Note, Task, fitted, relative, row_weights, source_means

_RESAMPLES = 20
_SEED = 0
_PERCENTILES = (10.0, 90.0)
_OUTSIDE = 0.05
"""Share of the rows beyond the prediction of either set, each row with its weight in the fit."""
_TILTS = (0.7, 0.8, 0.85, 0.89, 0.92, 0.94, 0.955, 0.97, 0.98, 0.99)
"""Tried for the pessimistic set, and mirrored for the optimistic one."""
_BOTH = (*(1.0 - tilt for tilt in _TILTS), *_TILTS)
"""For optimistic sets, then for pessimistic ones."""


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


def intervals(points: Array, left_out: Array) -> Array:
    """The 10th and the 90th percentile of each constant over the resampled fits, or the least and the greatest of the fits without a source
    where these lie further off, one row each.

    Where the loss is flat because constants trade off, the fitted value itself need not lie between. A constant on which no row
    depends stays where it started, and its interval is empty.
    """
    low, high = np.percentile(points, _PERCENTILES, axis=0)
    return np.column_stack([np.vstack([low, left_out]).min(axis=0), np.vstack([high, left_out]).max(axis=0)])


def tilted(weights: Array, start: Array) -> list[Task]:
    """The fits of which one becomes the optimistic and one the pessimistic set."""
    return [Task(weights, tilt, start) for tilt in _BOTH]


def extremes(measurements: Sequence[Measurement], constants: tuple[Constant, ...], weights: Array, points: Array) -> tuple[int, int]:
    """The places among the fits of `tilted` of the optimistic and the pessimistic one: those beyond which nearest to a twentieth of the
    rows lie."""
    predicted, share = relative(measurements, constants, points), weights / weights.sum()
    half = len(_TILTS)
    faster, slower = share @ (predicted[:, :half] > 1.0), share @ (predicted[:, half:] < 1.0)
    return int(np.argmin(np.abs(faster - _OUTSIDE))), half + int(np.argmin(np.abs(slower - _OUTSIDE)))


def outside_left_out(
    measurements: Sequence[Measurement],
    constants: tuple[Constant, ...],
    sources: Sequence[tuple[Mask, Array]],
    places: tuple[int, int],
    note: Note,
) -> tuple[dict[str, float], dict[str, float]]:
    """The shares of `outside` for the rows of each source by sets that were fitted without it, with the tilts of the sets of all rows;
    `sources` are the rows of each and the central constants without them."""
    tasks = [Task(row_weights(measurements, ~mask), _BOTH[place], centre) for mask, centre in sources for place in places]
    sets = fitted(measurements, constants, tasks, note) if tasks else np.empty((0, len(constants)))
    faster, slower = dict[str, float](), dict[str, float]()
    for number, (mask, centre) in enumerate(sources):
        rows = [row for row, left_out in zip(measurements, mask, strict=True) if left_out]
        below, above = outside(rows, constants, np.array([centre, *sets[2 * number : 2 * number + 2]]))
        faster, slower = faster | below, slower | above
    return faster, slower


def outside(
    measurements: Sequence[Measurement], constants: tuple[Constant, ...], points: Array
) -> tuple[dict[str, float], dict[str, float]]:
    """For each source the share of its rows that are faster, and that are slower, than the predictions by all of these constants."""
    predicted = relative(measurements, constants, points)
    faster, slower = (predicted > 1.0).all(axis=1).astype(float), (predicted < 1.0).all(axis=1).astype(float)
    return source_means(measurements, faster), source_means(measurements, slower)
