"""Resampled constants and the sets for fast and slow runs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from crossopt.crossflow.arrays import Array
from crossopt.solvers.measured import calibrate
from crossopt.solvers.measured.calibrate import extremes, intervals, outside, resample, tilted
from crossopt.solvers.measured.fitting import fitted, relative, row_weights
from tests.solvers.measured.measured_rows import CONSTANTS, TRUTH, timed

ROWS = timed(("one", "other"))
WEIGHTS = row_weights(ROWS, np.ones(len(ROWS), bool))


def times_of(weights: Array) -> dict[int, float]:
    """How often each model counts; all its rows alike."""
    factors = weights / WEIGHTS
    found = {
        row.line: {round(float(other), 12) for mate, other in zip(ROWS, factors, strict=True) if mate.line == row.line} for row in ROWS
    }
    assert all(len(values) == 1 for values in found.values())
    return {line: values.pop() for line, values in found.items()}


def test_models_are_resampled_whole_and_each_source_keeps_their_number() -> None:
    tasks = resample(ROWS, WEIGHTS, TRUTH)
    assert len(tasks) == 20
    for task in tasks:
        times = times_of(task.weights)
        assert times[0] + times[2] == 2.0, "the two models of the first source"
        assert times[1] + times[3] == 2.0
    assert len({tuple(times_of(task.weights).values()) for task in tasks}) > 4
    again = resample(ROWS, WEIGHTS, TRUTH)
    assert all(np.array_equal(one.weights, other.weights) for one, other in zip(tasks, again, strict=True))


def test_an_interval_goes_from_the_tenth_to_the_ninetieth_percentile() -> None:
    """Of 0, 1, ..., 10 these are 1 and 9; further where a fit without a source lies further off."""
    points = np.column_stack([np.arange(11.0), 7.0 * np.ones(11)])
    assert intervals(points, np.empty((0, 2))).tolist() == [[1.0, 9.0], [7.0, 7.0]]
    assert intervals(points, np.array([[12.0, 7.0], [5.0, 6.0]])).tolist() == [[1.0, 12.0], [6.0, 7.0]]


def test_of_the_tilted_fits_those_with_a_twentieth_of_the_rows_beyond_them_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty rows of weight 1: fit number n of either half has n rows beyond it, so that the second is the one."""
    half = len(tilted(np.ones(20), TRUTH)) // 2
    beyond = np.arange(20)[:, None] < np.arange(half)[None, :]
    predicted = np.hstack([np.where(beyond, 1.1, 0.9), np.where(beyond, 0.9, 1.1)])
    monkeypatch.setattr(calibrate, "relative", lambda *_: predicted)
    points = np.arange(2.0 * half)[:, None]
    assert extremes([], CONSTANTS, np.ones(20), points) == (1, half + 1)


def test_rows_are_outside_where_all_predictions_are_on_one_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first source half the rows are faster than both predictions, of the other all are slower; the rest lies between."""

    def made(*_: Any) -> Array:  # noqa: ANN401
        first = np.array([row.source == "one" for row in ROWS])
        low = np.where(first, np.where([row.line == 0 for row in ROWS], 1.1, 0.9), 0.8)
        return np.column_stack([low, np.where(first, 1.2, 0.9)])

    monkeypatch.setattr(calibrate, "relative", made)
    below, above = outside(ROWS, CONSTANTS, np.empty((2, 3)))
    assert below == {"one": 0.5, "other": 0.0}
    assert above == {"one": 0.0, "other": 1.0}


def test_a_larger_tilt_predicts_longer_times() -> None:
    """Noise of up to 20 % on the times: the shares of rows slower than predicted fall from fit to fit."""
    noise = np.random.default_rng(7).uniform(0.8, 1.2, len(ROWS))
    noisy = [replace(row, seconds=row.seconds * float(factor)) for row, factor in zip(ROWS, noise, strict=True)]
    predicted = relative(noisy, CONSTANTS, fitted(noisy, CONSTANTS, tilted(WEIGHTS, TRUTH)))
    slower = (predicted < 1.0).mean(axis=0)
    assert slower[0] > 0.55
    assert slower[-1] < 0.15
    means = predicted.mean(axis=0)
    half = len(means) // 2
    assert (np.diff(means[half:]) > 0.0).all()
    assert (np.diff(means[:half]) < 0.0).all()
    assert means[half] > means[0]
