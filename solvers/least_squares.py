"""Robust least squares within bounds: Levenberg-Marquardt steps with Huber weights, on few parameters and many residuals.

    minimise  sum over rows of  weight * huber(residual),   huber(r) = r^2 / 2 up to a width d, then d (|r| - d / 2)

Residuals are asked for many points at once, so that a whole Jacobian costs one call (Marquardt 1963; Huber 1964).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crossflow.arrays import Array

Residuals = Callable[[Array], Array]
"""Takes points (one a row), gives residuals (one column a point)."""

_STEP = 1.0e-3
_DAMPING = (0.1, 1.0, 10.0, 100.0, 1000.0)
_ENOUGH = 1.0e-4


@dataclass(frozen=True, slots=True)
class Fit:
    """Where the search ended."""

    point: Array
    loss: float
    rounds: int


def fit(residuals: Residuals, start: Array, low: Array, high: Array, weights: Array, width: float, most_rounds: int = 30) -> Fit:
    """A local minimum of the robust sum within the bounds, from `start`; ends when a round gains less than a part in 10,000."""
    point, damping = np.clip(start, low, high), 1.0e-2
    loss = _loss(residuals(point[None, :])[:, 0], weights, width)
    for done in range(most_rounds):
        signs = np.where(point + _STEP <= high, 1.0, -1.0)
        around = residuals(np.vstack([point, point + _STEP * np.diag(signs)]))
        here, jacobian = around[:, 0], (around[:, 1:] - around[:, :1]) / _STEP * signs
        candidates = np.array([_step(point, jacobian, here, weights, width, damping * factor, low, high) for factor in _DAMPING])
        losses = [_loss(column, weights, width) for column in residuals(candidates).T]
        best = int(np.argmin(losses))
        if losses[best] >= loss:
            return Fit(point, loss, done)
        gained, point, loss, damping = 1.0 - losses[best] / loss, candidates[best], losses[best], damping * _DAMPING[best]
        if gained < _ENOUGH:
            return Fit(point, loss, done + 1)
    return Fit(point, loss, most_rounds)


def _step(point: Array, jacobian: Array, here: Array, weights: Array, width: float, damping: float, low: Array, high: Array) -> Array:
    """The damped Gauss-Newton step of the reweighted problem, clipped to the bounds; parameters at a bound that pull outwards stay."""
    steep = weights * np.where(np.abs(here) <= width, 1.0, width / np.maximum(np.abs(here), width))
    slope, curve = jacobian.T @ (steep * here), jacobian.T @ (jacobian * steep[:, None])
    free = ~(((point <= low) & (slope > 0.0)) | ((point >= high) & (slope < 0.0)))
    moved = point.copy()
    inner = curve[np.ix_(free, free)] + damping * np.diag(np.diag(curve)[free] + 1.0e-12)
    moved[free] -= np.linalg.solve(inner, slope[free])
    return np.clip(moved, low, high)


def _loss(residual: Array, weights: Array, width: float) -> float:
    size = np.abs(residual)
    return float(np.sum(weights * np.where(size <= width, size * size / 2.0, width * (size - width / 2.0))))
