"""Curves as straight pieces, with the worst relative error stated.

Of a positive convex function f on [a, b]:

    tangent at p     t(x) = f(p) + f'(p) (x - p) <= f(x)       the largest of some tangents is a lower bound of f, without a 0/1 variable
    chord on [p, q]  c(x) = f(p) + (f(q) - f(p)) (x - p) / (q - p) >= f(x) between p and q

Of a concave function the tangents are upper bounds and the chords lower ones. A line over a positive convex function rises, then falls:
so the largest tangent is worst where two neighbours cross, or at an end. In closed form, with s the step between neighbours:

    f = 1/x        s = log(q / p)   chord  sinh(s/2)^2            tangents  tanh(s/2)^2                 cross at  log(1 + tanh(s/2))
    f = exp(-x)    s = q - p        chord  k e^(1/k - 1) - 1      tangents  1 - m e^(1 - m)             cross at  1 - m
                                    k = (1 - e^-s) / s            m = s / (e^s - 1)

"Cross at" is counted from p in the same measure as s. Each form follows from setting a derivative to zero. The errors depend on s alone, so
that equal steps share the error evenly, and no choice of points does with fewer of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, exp, expm1, inf, isfinite, log, log1p, sinh, tanh

import numpy as np
from numpy.typing import ArrayLike

from crossopt.crossflow.arrays import Array

Measured = Callable[[float], float]
"""Something about two neighbouring points, by the step between them."""

_HALVINGS = 100
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, slots=True)
class Curve:
    """A positive convex function above some place, its slope, and the error of its pieces by their step."""

    name: str
    above: float
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    step: Callable[[float, float], float]
    """From a point to a later one."""
    onward: Callable[[float, Array], Array]
    """The points that lie some steps after a point."""
    chord_error: Measured
    tangent_error: Measured
    crossing: Measured


@dataclass(frozen=True, slots=True)
class Pieces:
    """Points of a function, and the worst relative error of what is drawn through them."""

    points: Array
    values: Array
    error: float


@dataclass(frozen=True, slots=True)
class Lines:
    """Straight lines: slope * x + intercept."""

    slopes: Array
    intercepts: Array


def _decay_chord(step: float) -> float:
    share = -expm1(-step) / step
    return share * exp(1 / share - 1) - 1 if 1 / share < _LARGEST_EXPONENT else inf


def _decay_share(step: float) -> float:
    return step * exp(-step) / -expm1(-step)


RECIPROCAL = Curve(
    name="1/x",
    above=0.0,
    value=lambda x: 1 / x,
    slope=lambda x: -1 / x**2,
    step=lambda p, q: log(q / p),
    onward=lambda p, steps: p * np.exp(steps),
    chord_error=lambda s: sinh(s / 2) ** 2,
    tangent_error=lambda s: tanh(s / 2) ** 2,
    crossing=lambda s: log1p(tanh(s / 2)),
)
DECAY = Curve(
    name="exp(-x)",
    above=-_LARGEST_EXPONENT,
    value=lambda x: np.exp(-x),
    slope=lambda x: -np.exp(-x),
    step=lambda p, q: q - p,
    onward=lambda p, steps: p + steps,
    chord_error=_decay_chord,
    tangent_error=lambda s: 1 - _decay_share(s) * exp(1 - _decay_share(s)),
    crossing=lambda s: 1 - _decay_share(s),
)


def chord_pieces(curve: Curve, low: float, high: float, error: float) -> Pieces:
    """The fewest points, from low to high, whose chords are nowhere more than `error` above the curve."""
    count, step = _even_steps(curve, low, high, error, curve.chord_error)
    points = curve.onward(low, step * np.arange(count + 1, dtype=np.float64))
    points[0], points[-1] = low, high
    return Pieces(points, curve.value(points), curve.chord_error(step))


def tangent_pieces(curve: Curve, low: float, high: float, error: float) -> Pieces:
    """The fewest points whose tangents are, from low to high, nowhere more than `error` below the curve.

    They lie inside: each is the largest tangent from one crossing to the next, and low and high lie where one more tangent would cross.
    """
    count, step = _even_steps(curve, low, high, error, curve.tangent_error)
    before = step - curve.crossing(step)
    points = curve.onward(low, before + step * np.arange(count, dtype=np.float64))
    return Pieces(points, curve.value(points), curve.tangent_error(step))


def tangents(curve: Curve, points: Array) -> Lines:
    """The tangents at some points."""
    slopes = curve.slope(points)
    return Lines(slopes, curve.value(points) - slopes * points)


def chords(pieces: Pieces) -> Lines:
    """The lines through neighbouring points."""
    slopes = np.diff(pieces.values) / np.diff(pieces.points)
    return Lines(slopes, pieces.values[:-1] - slopes * pieces.points[:-1])


def largest(lines: Lines, x: Array) -> Array:
    """The largest of the lines at each x: what rows `y >= line` leave to y. A convex function is above its tangents."""
    return np.asarray((np.multiply.outer(x, lines.slopes) + lines.intercepts).max(axis=-1))


def sample_pieces(x: ArrayLike, y: ArrayLike, error: float) -> Pieces:
    """Few samples of a monotone positive function whose chords are nowhere more than `error` away from it, between the samples as well.

    Between two neighbouring samples a monotone function has only values between theirs, and so has a chord over them. The error there is
    at most max(largest chord / least sample - 1, 1 - least chord / largest sample). Points are taken greedily, each as far as it goes.
    """
    places, heights = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    _check_samples(places, heights)
    chosen, worst = [0], 0.0
    while chosen[-1] < len(places) - 1:
        end, reached = _furthest(places, heights, chosen[-1], error)
        chosen.append(end)
        worst = max(worst, reached)
    return Pieces(places[chosen], heights[chosen], worst)


def _furthest(places: Array, heights: Array, start: int, error: float) -> tuple[int, float]:
    """The last sample to which a chord from the start may go, and its error."""
    end, reached = start, 0.0
    for candidate in range(start + 1, len(places)):
        found = _sampled_error(places[start : candidate + 1], heights[start : candidate + 1])
        if found > error:
            break
        end, reached = candidate, found
    if end == start:
        raise ValueError(
            f"between {places[start]} and {places[start + 1]} the samples differ by more than {error:.2%}; more of them are needed"
        )
    return end, reached


def _sampled_error(places: Array, heights: Array) -> float:
    chord = np.interp(places, places[[0, -1]], heights[[0, -1]])
    least, most = np.minimum(heights[1:], heights[:-1]), np.maximum(heights[1:], heights[:-1])
    below, above = np.minimum(chord[1:], chord[:-1]), np.maximum(chord[1:], chord[:-1])
    return float(max((above / least - 1).max(), (1 - below / most).max()))


def _check_samples(places: Array, heights: Array) -> None:
    steps = np.diff(heights)
    if places.ndim != 1 or places.shape != heights.shape or len(places) < 2:
        raise ValueError(f"samples of shapes {places.shape} and {heights.shape}: two equally long lists of at least two are needed")
    if not (np.all(np.isfinite(places)) and np.all(np.diff(places) > 0)):
        raise ValueError("the samples must have ascending, finite places")
    if not (np.all(np.isfinite(heights)) and heights.min() > 0 and (np.all(steps >= 0) or np.all(steps <= 0))):
        raise ValueError("the samples must be positive and finite, and nowhere rise and elsewhere fall")


def _even_steps(curve: Curve, low: float, high: float, error: float, error_of: Measured) -> tuple[int, float]:
    """The fewest equal steps from low to high that are each within the error, and their length."""
    if not (curve.above < low < high and isfinite(high) and curve.value(np.array([high]))[0] > 0):
        raise ValueError(f"from {low} to {high}: an ascending range is needed in which {curve.name} is positive and finite")
    if not error > 0:
        raise ValueError(f"an error of {error}: a positive share is needed")
    width = curve.step(low, high)
    count = ceil(width / _longest(error_of, width, error))
    return count, width / count


def _longest(error_of: Measured, width: float, error: float) -> float:
    """The longest step up to the width whose error is as asked: halving, since errors grow with the step."""
    if error_of(width) <= error:
        return width
    within, beyond = 0.0, width
    for _ in range(_HALVINGS):
        middle = (within + beyond) / 2
        within, beyond = (middle, beyond) if error_of(middle) <= error else (within, middle)
    return within
