"""Whether what the model lacks can be learned: regressors fitted to its errors, and its errors where one setting alone is doubled.

The error of a run is log(predicted / measured). Each regressor sees the settings of runs and the predicted time, and predicts the error of
runs that it did not see, which is then taken off the predicted time:

    ridge       squares and products of the logarithms, least squares with a penalty (Hoerl, Kennard 1970)
    nearest     the mean of the twenty runs with the nearest logarithms, by the inverse of their distance
    trees       eighty trees of three questions each, one on what those before leave (Friedman 2001)
    own fit     the constants of the model itself, fitted to runs of this source alone

*Rows left out* are every fifth: others of the same layer are seen. *Layers left out* are all runs of a fifth of the layers, a layer being
what one rank computes for one microbatch: hidden size, heads, tensor ranks, samples. What a regressor learns from rows and not from layers
is a table of measured layers, which says nothing of a layer that nobody measured.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import log
from statistics import fmean
from typing import TypeAlias

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.instances.measured.runs import Measured, Measurement
from crossopt.solvers.measured.accuracy import PricedRun, choices, predictions, ranking
from crossopt.solvers.measured.calibrate import CONSTANTS, enough
from crossopt.solvers.measured.fitting import Task, fitted, relative, row_weights
from tests.benchmarks.rival_tables import section, share, table_head, table_row

_FOLDS, _PENALTY, _NEAREST, _NEAR = 5, 100.0, 20, 1e-3
_TREES, _RATE, _DEPTH, _FEWEST = 80, 0.1, 3, 5
_FEWEST_RUNS = 40
_MOVED = 0.03
"""Errors that differ by less are alike: repeated runs differ by as much."""

Learner: TypeAlias = Callable[[Array, Array, Array], Array]
"""Features and errors of runs that are seen, and features of others: the errors of those."""
Tree: TypeAlias = "float | tuple[int, float, Tree, Tree]"


def layer_of(row: Measurement) -> tuple[int, int, int, int]:
    """What one rank computes for one microbatch."""
    return row.workload.hidden, row.workload.heads, row.plan.tensor, row.plan.microbatch


def features(rows: Sequence[Measurement], seconds: Array) -> Array:
    """Logarithms of what a run is, less their mean, over their spread."""
    found = np.log2([[*_settings(row), time] for row, time in zip(rows, seconds, strict=True)])
    spread = found.std(axis=0)
    return np.asarray((found - found.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))


def _settings(row: Measurement) -> tuple[float, ...]:
    model, plan = row.workload, row.plan
    passes = model.global_batch / (plan.data * plan.microbatch)
    return model.hidden, model.heads, model.layers, model.sequence, plan.tensor, plan.pipeline, plan.data, plan.microbatch, passes


# --- regressors ----------------------------------------------------------------------------------------------------------------------


def ridge(seen: Array, errors: Array, asked: Array) -> Array:
    """By squares and products."""
    known, wanted = (_squares(each) for each in (seen, asked))
    weights = np.linalg.solve(known.T @ known + _PENALTY * np.eye(known.shape[1]), known.T @ errors)
    return np.asarray(wanted @ weights)


def nearest(seen: Array, errors: Array, asked: Array) -> Array:
    """By the runs that are most alike."""
    distances = ((asked[:, None] - seen[None]) ** 2).sum(axis=-1)
    places = np.argsort(distances, axis=1, kind="stable")[:, :_NEAREST]
    weights = 1.0 / (np.take_along_axis(distances, places, axis=1) + _NEAR)
    return np.asarray((errors[places] * weights).sum(axis=1) / weights.sum(axis=1))


def trees(seen: Array, errors: Array, asked: Array) -> Array:
    """By many small trees."""
    left, found = errors.copy(), np.zeros(len(asked))
    for _ in range(_TREES):
        tree = _grown(seen, left, _DEPTH)
        left -= _RATE * _asked(tree, seen)
        found += _RATE * _asked(tree, asked)
    return found


LEARNERS: dict[str, Learner] = {"ridge": ridge, "nearest": nearest, "trees": trees}


def _squares(values: Array) -> Array:
    first, second = np.triu_indices(values.shape[1])
    return np.column_stack([np.ones(len(values)), values, values[:, first] * values[:, second]])


def _grown(values: Array, errors: Array, depth: int) -> Tree:
    """A question at a time, the one that takes most off the squares."""
    count, below = len(errors), np.arange(1, len(errors))[:, None]
    if depth == 0 or count < 2 * _FEWEST:
        return float(errors.mean())
    order = np.argsort(values, axis=0, kind="stable")
    ranked, sums = np.take_along_axis(values, order, axis=0), np.cumsum(errors[order], axis=0)
    gains = sums[:-1] ** 2 / below + (sums[-1] - sums[:-1]) ** 2 / (count - below) - sums[-1] ** 2 / count
    cuts = (ranked[1:] > ranked[:-1]) & (below >= _FEWEST) & (count - below >= _FEWEST)
    place, column = np.unravel_index(int(np.argmax(np.where(cuts, gains, 0.0))), gains.shape)
    if not cuts[place, column]:
        return float(errors.mean())
    limit = float(ranked[place, column] + ranked[place + 1, column]) / 2.0
    low = values[:, column] < limit
    return int(column), limit, _grown(values[low], errors[low], depth - 1), _grown(values[~low], errors[~low], depth - 1)


def _asked(tree: Tree, values: Array) -> Array:
    if not isinstance(tree, tuple):
        return np.full(len(values), tree)
    column, limit, low, high = tree
    return np.where(values[:, column] < limit, _asked(low, values), _asked(high, values))


# --- what is left out ----------------------------------------------------------------------------------------------------------------


def folds_of_layers(rows: Sequence[Measurement]) -> Ints:
    """A fifth of the layers each."""
    numbers = {layer: number % _FOLDS for number, layer in enumerate(sorted({layer_of(row) for row in rows}))}
    return np.array([numbers[layer_of(row)] for row in rows])


def folds_of_rows(rows: Sequence[Measurement]) -> Ints:
    """Every fifth row each."""
    return np.arange(len(rows)) % _FOLDS


def corrected(rows: Sequence[Measurement], seconds: Array, folds: Ints, learner: Learner) -> Array:
    """Predicted seconds less what a regressor expects of their error that saw no run of their fold."""
    known, times = features(rows, seconds), np.array([row.seconds for row in rows])
    errors, found = np.log(seconds / times), np.empty(len(rows))
    for fold in np.unique(folds):
        asked = folds == fold
        found[asked] = seconds[asked] * np.exp(-learner(known[~asked], errors[~asked], known[asked]))
    return found


def fitted_apart(rows: Sequence[Measurement], folds: Sequence[Ints]) -> list[Array]:
    """Seconds by constants of the model fitted to these rows alone, each run by those that saw no run of its fold."""
    masks = [each == fold for each in folds for fold in np.unique(each)]
    points = fitted(rows, CONSTANTS, [Task(row_weights(rows, ~mask)) for mask in masks])
    seconds = relative(rows, CONSTANTS, points) * np.array([[row.seconds] for row in rows])
    return [_own(seconds, masks[at : at + _FOLDS], at) for at in range(0, len(masks), _FOLDS)]


def _own(seconds: Array, masks: Sequence[Mask], first: int) -> Array:
    return np.sum([np.where(mask, seconds[:, first + place], 0.0) for place, mask in enumerate(masks)], axis=0)


def learner_table(measured: Measured) -> Iterator[str]:
    """For each large source and regressor the errors that stay, with rows and with layers left out, and how plans are then ranked."""
    titles = ("regressor", "rows", "layers", "rows left out", "layers left out", "tau", "mean regret", "largest regret")
    yield from table_head("source", *titles)
    for name, rows in _large(measured):
        seconds = predictions(rows)[:, 0]
        count, layers = f"{len(rows):,}", f"{len({layer_of(row) for row in rows})}"
        folds = folds_of_rows(rows), folds_of_layers(rows)
        yield table_row(name, "none", count, layers, *[share(_error(rows, seconds))] * 2, *_ranks(rows, seconds))
        for label, learner in LEARNERS.items():
            yield _learned(name, label, count, layers, rows, [corrected(rows, seconds, each, learner) for each in folds])
        if enough(int(len(rows) * (1.0 - 1.0 / _FOLDS)), CONSTANTS):
            yield _learned(name, "own fit", count, layers, rows, fitted_apart(rows, folds))


def _large(measured: Measured) -> Iterator[tuple[str, list[Measurement]]]:
    rows = [row for row in measured.measurements if row.gpu.startswith("a100")]
    for name in dict.fromkeys(map(section, rows)):
        own = [row for row in rows if section(row) == name]
        if len(own) >= _FEWEST_RUNS:
            yield name, own


def _learned(name: str, label: str, count: str, layers: str, rows: Sequence[Measurement], found: Sequence[Array]) -> str:
    seen, unseen = found
    return table_row(name, label, count, layers, share(_error(rows, seen)), share(_error(rows, unseen)), *_ranks(rows, unseen))


def _error(rows: Sequence[Measurement], seconds: Array) -> float:
    return fmean(abs(float(time) / row.seconds - 1.0) for row, time in zip(rows, seconds, strict=True))


def _ranks(rows: Sequence[Measurement], seconds: Array) -> tuple[str, str, str]:
    rounded = seconds.astype(np.float32).astype(np.float64)
    found = ranking(choices(PricedRun(row, float(time)) for row, time in zip(rows, rounded, strict=True)))
    return ("-", "-", "-") if found is None else (f"{found.tau:.2f}", share(found.mean_regret), share(found.largest_regret))


# --- one setting doubled -------------------------------------------------------------------------------------------------------------

_TOLD = ("hidden size", "layers", "batch", "tensor", "pipeline", "data", "microbatch")
_CHANGES: dict[str, dict[str, float]] = {
    "hidden size": {"hidden size": 2},
    "microbatch": {"microbatch": 2},
    "tensor ranks, half the data ranks": {"tensor": 2, "data": 0.5},
    "tensor ranks, half the stages": {"tensor": 2, "pipeline": 0.5},
    "stages, half the data ranks": {"pipeline": 2, "data": 0.5},
    "data ranks and batch": {"data": 2, "batch": 2},
    "batch": {"batch": 2},
    "layers": {"layers": 2},
}


@dataclass(frozen=True, slots=True)
class Change:
    """How the error moves, in logarithms, in the mean over each layer where a setting is doubled."""

    pairs: int
    layers: tuple[float, ...]

    def count(self, sign: float) -> int:
        return sum(moved * sign > _MOVED for moved in self.layers)


def change(rows: Sequence[Measurement], seconds: Array, factors: dict[str, float]) -> Change:
    """Of all pairs of runs that differ by these factors alone."""
    errors = {_told(row): (log(float(time) / row.seconds), layer_of(row)) for row, time in zip(rows, seconds, strict=True)}
    moved: dict[Hashable, list[float]] = {}
    for settings, (error, layer) in errors.items():
        other = tuple(value * factors.get(name, 1) for name, value in zip(_TOLD, settings, strict=True))
        if other in errors:
            moved.setdefault(layer, []).append(errors[other][0] - error)
    return Change(sum(map(len, moved.values())), tuple(fmean(each) for each in moved.values()))


def _told(row: Measurement) -> tuple[float, ...]:
    plan, model = row.plan, row.workload
    return model.hidden, model.layers, model.global_batch, plan.tensor, plan.pipeline, plan.data, plan.microbatch


def change_table(measured: Measured) -> Iterator[str]:
    """Of the source with most runs: in how many layers the error rises and falls where one setting is doubled."""
    name, rows = max(_large(measured), key=lambda found: len(found[1]))
    seconds = predictions(rows)[:, 0]
    yield from table_head("source", "doubled", "pairs of runs", "layers", "error rises", "alike", "falls", "in the mean")
    for label, factors in _CHANGES.items():
        found = change(rows, seconds, factors)
        up, down, count = found.count(1.0), found.count(-1.0), len(found.layers)
        if count:
            yield table_row(
                name,
                label,
                f"{found.pairs}",
                f"{count}",
                f"{up}",
                f"{count - up - down}",
                f"{down}",
                f"{100.0 * fmean(found.layers):+.1f} %",
            )
