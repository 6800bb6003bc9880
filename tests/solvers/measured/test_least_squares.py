"""Robust least squares: known minima, bounds, outliers that do not pull, expectiles, and many problems at once."""

import numpy as np
import pytest

from crossopt.crossflow.arrays import Array
from crossopt.solvers.measured.fitting import Problem, fit, fit_together

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


# --- tilts ----------------------------------------------------------------------------------------------------------------------------


def location(values: Array, tilt: float, width: float = 100.0) -> float:
    """The number that fits the values best."""

    def residuals(points: Array) -> Array:
        return points[:, 0] - values[:, None]

    low, high = np.array([-1000.0]), np.array([1000.0])
    return float(fit(residuals, np.array([2.0]), low, high, np.ones(len(values)), width, most_rounds=200, tilt=tilt).point[0])


@pytest.mark.parametrize(
    ("values", "tilt", "expectile"),
    [
        ((0.0, 1.0), 0.8, 0.8),  # 0.8 (1 - m) = 0.2 m
        ((0.0, 1.0), 0.2, 0.2),
        ((0.0, 1.0, 5.0), 0.9, 4.6 / 1.1),  # 0.9 (5 - m) = 0.1 (m + m - 1)
        ((0.0, 1.0, 5.0), 0.5, 2.0),  # the mean
    ],
)
def test_a_tilted_minimum_is_the_expectile(values: tuple[float, ...], tilt: float, expectile: float) -> None:
    assert location(np.array(values), tilt) == pytest.approx(expectile, abs=2e-3)


def test_far_values_pull_a_tilted_fit_with_bounded_force() -> None:
    """Beyond a width of 1 the one value above pulls with 0.6 x 1, however far it is, and the three at zero with 0.4 m each: m = 0.5."""
    near, far = (location(np.array([0.0, 0.0, 0.0, *above]), 0.6, 1.0) for above in ((2.0,), (500.0,)))
    assert near == pytest.approx(far, abs=2e-3)
    assert far == pytest.approx(0.5, abs=2e-3)


def test_no_tilt_is_the_plain_robust_sum_to_the_last_bit() -> None:
    """Both sides times one: the loss of the fit is the sum of Huber's function as it stands in the books."""
    found = fit(decay, START, LOW, np.array([1.5, 5.0]), EVEN, width=0.05, tilt=0.5)
    usual = fit(decay, START, LOW, np.array([1.5, 5.0]), EVEN, width=0.05)
    assert (tuple(found.point), found.loss, found.rounds) == (tuple(usual.point), usual.loss, usual.rounds)
    residual = np.abs(decay(found.point[None, :])[:, 0])
    assert found.loss == float(np.sum(np.where(residual <= 0.05, residual * residual / 2.0, 0.05 * (residual - 0.025))))


def test_a_tilt_and_the_opposite_one_of_the_mirrored_residuals_are_the_same() -> None:
    values = np.array([0.0, 1.0, 5.0, 7.0])
    assert location(values, 0.9) == pytest.approx(-location(-values, 0.1), abs=2e-3)


def test_problems_together_are_the_same_problems_one_by_one() -> None:
    """Some end sooner than others, and rows of no weight count as little as if they were not there."""
    random = np.random.default_rng(3)
    problems = [Problem(random.uniform(LOW, HIGH), random.integers(0, 3, 40).astype(float), tilt) for tilt in (0.5, 0.1, 0.5, 0.9)]
    told: list[tuple[int, int]] = []
    together = fit_together(noisy_decay, problems, LOW, HIGH, 0.1, watch=lambda number, going: told.append((number, going)))
    for problem, found in zip(problems, together, strict=True):
        alone = fit(noisy_decay, problem.start, LOW, HIGH, problem.weights, 0.1, tilt=problem.tilt)
        assert (tuple(found.point), found.loss, found.rounds) == (tuple(alone.point), alone.loss, alone.rounds)
    assert [number for number, _ in told] == list(range(1, len(told) + 1))
    assert told[0][1] == 4
    assert len({found.rounds for found in together}) > 1


def noisy_decay(points: Array) -> Array:
    return decay(points) + 0.3 * np.random.default_rng(5).standard_normal(40)[:, None]
