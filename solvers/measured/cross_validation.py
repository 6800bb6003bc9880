"""What a stranger may expect: the error on rows of constants that were fitted without them, nor any row like them."""

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from crossopt.crossflow.arrays import Array, Mask
from crossopt.instances.measured.runs import Measurement
from crossopt.solvers.measured.accuracy import distinct
from crossopt.solvers.measured.fitting import Constant, Note, Task, fitted, relative, row_weights, source_means, unnoted

FoldOf = Callable[[Measurement], Hashable]
"""Rows with equal folds are left out together."""


def by_source(row: Measurement) -> Hashable:
    """Who measured it."""
    return row.source


def by_model(row: Measurement) -> Hashable:
    """The hidden size: models of one family with more or fewer layers are too much alike to be strangers to each other."""
    return row.workload.hidden


def cross_validate(
    measurements: Sequence[Measurement], constants: tuple[Constant, ...], fold_of: FoldOf, note: Note = unnoted
) -> dict[str, float]:
    """Mean absolute relative error by source, each row predicted by constants that were fitted to the rows of all other folds.

    A source of which a row cannot be left out, because too few remain without its fold, has no figure.
    """
    left_out = folds(measurements, constants, fold_of)
    points = fitted(measurements, constants, without(measurements, left_out), note) if left_out else np.empty((0, len(constants)))
    return left_out_errors(measurements, constants, left_out, points)


def folds(measurements: Sequence[Measurement], constants: tuple[Constant, ...], fold_of: FoldOf) -> list[Mask]:
    """The rows of each fold without which enough rows remain to fit the constants."""
    labels = [fold_of(row) for row in measurements]
    masks = [np.array([other == label for other in labels]) for label in dict.fromkeys(labels)]
    return [
        mask
        for mask in masks
        if enough(distinct([row for row, left_out in zip(measurements, mask, strict=True) if not left_out]), constants)
    ]


def enough(rows: int, constants: tuple[Constant, ...]) -> bool:
    """Whether so many distinct rows can tell the constants: two for each at the least."""
    return rows >= 2 * len(constants)


def without(measurements: Sequence[Measurement], left_out: Sequence[Mask]) -> list[Task]:
    """For each fold, the fit to all other rows, from the usual start: a warm one would know the rows that are left out."""
    return [Task(row_weights(measurements, ~mask)) for mask in left_out]


def left_out_errors(
    measurements: Sequence[Measurement], constants: tuple[Constant, ...], left_out: Sequence[Mask], points: Array
) -> dict[str, float]:
    """The errors of each fold's rows by the constants that never saw them, by source."""
    if not left_out:
        return {}
    predicted, off = relative(measurements, constants, points), np.full(len(measurements), np.nan)
    for column, mask in zip(predicted.T, left_out, strict=True):
        off[mask] = np.abs(column[mask] - 1.0)
    return {source: error for source, error in source_means(measurements, off).items() if np.isfinite(error)}
