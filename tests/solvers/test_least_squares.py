"""Robust least squares: known minima, bounds, and outliers that do not pull."""

import numpy as np
import pytest

from crossflow.arrays import Array
from solvers.least_squares import fit

TIMES = np.linspace(0.0, 3.0, 40)


def decay(points: Array) -> Array:
    """a exp(-b t) less the curve with a = 2, b = 0.7."""
    return points[:, 0] * np.exp(-points[:, 1] * TIMES[:, None]) - (2.0 * np.exp(-0.7 * TIMES))[:, None]


LOW, HIGH, START, EVEN = np.array([0.1, 0.01]), np.array([10.0, 5.0]), np.array([1.0, 2.0]), np.ones(40)


def test_an_exact_curve_is_found() -> None:
    found = fit(decay, START, LOW, HIGH, EVEN, width=1.0)
    assert found.point == pytest.approx([2.0, 0.7], rel=1e-3)


def test_a_minimum_outside_the_bounds_ends_on_the_bound() -> None:
    found = fit(decay, START, LOW, np.array([1.5, 5.0]), EVEN, width=1.0)
    assert found.point[0] == 1.5
    grid = np.linspace(0.01, 5.0, 2000)
    best = grid[np.argmin((decay(np.column_stack([np.full(2000, 1.5), grid])) ** 2).sum(axis=0))]
    assert found.point[1] == pytest.approx(best, abs=5e-3)


def test_outliers_beyond_the_width_hardly_pull() -> None:
    """Two rows off by 100 move a plain mean by 5, a robust one by less than the width."""
    values = np.concatenate([np.zeros(38), np.full(2, 100.0)])

    def from_mean(points: Array) -> Array:
        return points[:, 0] - values[:, None]

    found = fit(from_mean, np.array([5.0]), np.array([-200.0]), np.array([200.0]), EVEN, width=0.1)
    assert abs(found.point[0]) < 0.1


def test_a_start_at_the_minimum_stays() -> None:
    found = fit(decay, np.array([2.0, 0.7]), LOW, HIGH, EVEN, width=1.0)
    assert found.loss == 0.0
    assert tuple(found.point) == (2.0, 0.7)
