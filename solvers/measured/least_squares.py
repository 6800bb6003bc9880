"""Robust least squares within bounds: Levenberg-Marquardt steps with Huber weights, on few parameters and many residuals.

    minimise  sum over rows of  weight * side * huber(residual),   huber(r) = r^2 / 2 up to a width d, then d (|r| - d / 2)

`side` is twice the tilt for residuals below zero and twice (1 - tilt) for the others: 1 for both at a tilt of a half, and asymmetric
least squares elsewhere, whose minimum is an expectile instead of a mean (Newey and Powell 1987). Residuals are asked for many points at
once, so that a whole Jacobian costs one call (Marquardt 1963; Huber 1964), and so do the Jacobians of many problems that differ in
their weights, tilts and starts only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crossopt.crossflow.arrays import Array

Residuals = Callable[[Array], Array]
"""Takes points (one a row), gives residuals (one column a point)."""
RoundWatch = Callable[[int, int], None]
"""Told before each round: its number from 1, and how many searches are still going on."""

MIDDLE = 0.5
"""The tilt at which both sides count alike."""
_STEP = 1.0e-3
_DAMPING = (0.1, 1.0, 10.0, 100.0, 1000.0)
_ENOUGH = 1.0e-4


@dataclass(frozen=True, slots=True)
class Problem:
    """Where one search starts, and what each residual counts; rows of no weight are left out."""

    start: Array
    weights: Array
    tilt: float = MIDDLE


@dataclass(frozen=True, slots=True)
class Fit:
    """Where the search ended."""

    point: Array
    loss: float
    rounds: int


@dataclass(frozen=True, slots=True)
class _Search:
    """A search on its way."""

    problem: Problem
    point: Array
    loss: float = float("inf")
    rounds: int = 0
    damping: float = 1.0e-2
    ended: bool = False


def unwatched(number: int, searches: int) -> None:
    """Tells no one."""
    del number, searches


def fit(
    residuals: Residuals,
    start: Array,
    low: Array,
    high: Array,
    weights: Array,
    width: float,
    most_rounds: int = 30,
    tilt: float = MIDDLE,
) -> Fit:
    """A local minimum of the robust sum within the bounds, from `start`; ends when a round gains less than a part in 10,000."""
    [found] = fit_together(residuals, [Problem(start, weights, tilt)], low, high, width, most_rounds)
    return found


def fit_together(
    residuals: Residuals,
    problems: Sequence[Problem],
    low: Array,
    high: Array,
    width: float,
    most_rounds: int = 30,
    watch: RoundWatch = unwatched,
) -> list[Fit]:
    """As `fit` for each problem on its own; all searches take their rounds together, so that each asks for residuals in the same calls."""
    searches = [_Search(problem, np.clip(problem.start, low, high)) for problem in problems]
    for number in range(1, most_rounds + 1):
        if not (going := [place for place, search in enumerate(searches) if not search.ended]):
            break
        watch(number, len(going))
        for place, search in zip(going, _round(residuals, [searches[place] for place in going], low, high, width), strict=True):
            searches[place] = search
    return [Fit(search.point, search.loss, search.rounds) for search in searches]


def _round(residuals: Residuals, searches: Sequence[_Search], low: Array, high: Array, width: float) -> list[_Search]:
    """One step of each search: the Jacobian, a few dampings, and the best of them."""
    parameters = len(low)
    signs = [np.where(search.point + _STEP <= high, 1.0, -1.0) for search in searches]
    near = [np.vstack([search.point, search.point + _STEP * np.diag(sign)]) for search, sign in zip(searches, signs, strict=True)]
    columns = np.split(residuals(np.vstack(near)), np.arange(1, len(searches)) * (parameters + 1), axis=1)
    here = [around[:, 0] for around in columns]
    jacobians = [(around[:, 1:] - around[:, :1]) / _STEP * sign for around, sign in zip(columns, signs, strict=True)]
    candidates = [
        np.array([_step(search, jacobian, now, width, search.damping * factor, low, high) for factor in _DAMPING])
        for search, jacobian, now in zip(searches, jacobians, here, strict=True)
    ]
    tried = np.split(residuals(np.vstack(candidates)), np.arange(1, len(searches)) * len(_DAMPING), axis=1)
    return [
        _moved(search, _loss(now, search.problem, width), points, [_loss(column, search.problem, width) for column in found.T])
        for search, now, points, found in zip(searches, here, candidates, tried, strict=True)
    ]


def _moved(search: _Search, loss: float, candidates: Array, losses: Sequence[float]) -> _Search:
    """The search at the best of the candidates, and ended where that gains little; where it gains nothing, ended where it was."""
    best = int(np.argmin(losses))
    if losses[best] >= loss:
        return replace(search, loss=loss, ended=True)
    gained = 1.0 - losses[best] / loss
    return replace(
        search,
        point=candidates[best],
        loss=losses[best],
        rounds=search.rounds + 1,
        damping=search.damping * _DAMPING[best],
        ended=gained < _ENOUGH,
    )


def _step(search: _Search, jacobian: Array, here: Array, width: float, damping: float, low: Array, high: Array) -> Array:
    """The damped Gauss-Newton step of the reweighted problem, clipped to the bounds; parameters at a bound that pull outwards stay."""
    point, weights = search.point, _sided(here, search.problem)
    steep = weights * np.where(np.abs(here) <= width, 1.0, width / np.maximum(np.abs(here), width))
    slope, curve = jacobian.T @ (steep * here), jacobian.T @ (jacobian * steep[:, None])
    free = ~(((point <= low) & (slope > 0.0)) | ((point >= high) & (slope < 0.0)))
    moved = point.copy()
    inner = curve[np.ix_(free, free)] + damping * np.diag(np.diag(curve)[free] + 1.0e-12)
    moved[free] -= np.linalg.solve(inner, slope[free])
    return np.clip(moved, low, high)


def _loss(residual: Array, problem: Problem, width: float) -> float:
    size = np.abs(residual)
    return float(np.sum(_sided(residual, problem) * np.where(size <= width, size * size / 2.0, width * (size - width / 2.0))))


def _sided(residual: Array, problem: Problem) -> Array:
    """The weight of each row with that of the side of zero on which its residual lies."""
    return problem.weights * np.where(residual < 0.0, 2.0 * problem.tilt, 2.0 * (1.0 - problem.tilt))
