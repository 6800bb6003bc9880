"""Piecewise-linear functions: curves as straight pieces with a stated worst error, and their integer encodings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, exp, expm1, inf, isfinite, log, log1p, sinh, tanh

import numpy as np
from numpy.typing import ArrayLike

from crossopt.crossflow.arrays import Array
from crossopt.formulation.model import Constraint, ExactlyOne, Linear, Terms, Variable

# Curves as straight pieces, with the worst relative error stated.
#
# Of a positive convex function f on [a, b]:
#
#     tangent at p     t(x) = f(p) + f'(p) (x - p) <= f(x)       the largest of some tangents is a lower bound of f, without a 0/1 variable
#     chord on [p, q]  c(x) = f(p) + (f(q) - f(p)) (x - p) / (q - p) >= f(x) between p and q
#
# Of a concave function the tangents are upper bounds and the chords lower ones. A line over a positive convex function rises, then falls:
# so the largest tangent is worst where two neighbours cross, or at an end. In closed form, with s the step between neighbours:
#
#     f = 1/x        s = log(q / p)   chord  sinh(s/2)^2            tangents  tanh(s/2)^2                 cross at  log(1 + tanh(s/2))
#     f = exp(-x)    s = q - p        chord  k e^(1/k - 1) - 1      tangents  1 - m e^(1 - m)             cross at  1 - m
#                                     k = (1 - e^-s) / s            m = s / (e^s - 1)
#
# "Cross at" is counted from p in the same measure as s. Each form follows from setting a derivative to zero. The errors depend on s alone,
# so that equal steps share the error evenly, and no choice of points does with fewer of them.

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


# Piecewise-linear functions of an integer as rows of integers: three classic encodings of one set, {(x, y): y = floor(g(x))}.
#
# g runs straight from point to point (x_0, y_0), ..., (x_n, y_n), all of them integers. S is the longest piece; each piece's length must
# divide it, as powers of two do. Then all weights below are whole and the rows exact: nothing is lost but the floor, which is meant.
#
#     weights             w_0 ... w_n in 0 .. S, with sum w = S, sum x_i w_i = S x, and S y <= sum y_i w_i <= S y + S - 1 (the floor);
#                         only two neighbouring w may be positive:
#       by segments       one 0/1 variable a piece, exactly one is 1;      w_i <= S (z_(i-1) + z_i)
#       by bits           ceil(log2 n) 0/1 variables, whose values spell the piece in a Gray code (Vielma and Nemhauser 2011):
#                             sum of w_i whose pieces all have bit k = 1  <=  S b_k
#                             sum of w_i whose pieces all have bit k = 0  <=  S (1 - b_k)
#                         Words of neighbouring pieces differ in one bit, so that a point is left in by the words of its own pieces only.
#                         Where n is no power of two, the words that no piece has leave in no point at all, which sum w = S forbids.
#     by filling          d_i in 0 .. length_i, x = x_0 + sum d_i; z_i = 1 only if piece i is full, and piece i + 1 is begun only if z_i =
#                             1: length_i z_i <= d_i,  d_(i+1) <= length_(i+1) z_i,  S y <= S y_0 + sum (S slope_i) d_i <= S y + S - 1

Points = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Encoding:
    """What an encoding adds to a model: rows over x, y and some variables of its own."""

    variables: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]


def by_segments(name: str, x: Variable, y: Variable, points: Points) -> Encoding:
    """y = floor(g(x)) with one 0/1 variable a piece."""
    scale = _scale(name, points)
    weights, rows = _weighted(name, x, y, points, scale)
    pieces = tuple(Variable(f"{name}, piece {piece_index}") for piece_index in range(1, len(points)))
    rows.append(ExactlyOne(f"{name}, one piece", pieces))
    for piece_index, weight in enumerate(weights):
        beside = pieces[max(piece_index - 1, 0) : piece_index + 1]
        rows.append(Linear(f"{weight.name} is of its pieces", ((1, weight), *((-scale, piece) for piece in beside)), high=0))
    return Encoding((*weights, *pieces), tuple(rows))


def by_bits(name: str, x: Variable, y: Variable, points: Points) -> Encoding:
    """y = floor(g(x)) with as many 0/1 variables as the number of pieces has bits."""
    scale = _scale(name, points)
    weights, rows = _weighted(name, x, y, points, scale)
    last = len(points) - 2
    codes = [index ^ (index >> 1) for index in range(last + 1)]
    bits = tuple(Variable(f"{name}, bit {index}") for index in range(last.bit_length()))
    for index, bit in enumerate(bits):
        beside = [{codes[piece] >> index & 1 for piece in (point - 1, point) if 0 <= piece <= last} for point in range(len(points))]
        ones = tuple((1, weight) for weight, seen in zip(weights, beside, strict=True) if seen == {1})
        zeros = tuple((1, weight) for weight, seen in zip(weights, beside, strict=True) if seen == {0})
        rows.append(Linear(f"{bit.name} where it is 1", (*ones, (-scale, bit)), high=0))
        rows.append(Linear(f"{bit.name} where it is 0", (*zeros, (scale, bit)), high=scale))
    return Encoding((*weights, *bits), tuple(rows))


def by_filling(name: str, x: Variable, y: Variable, points: Points) -> Encoding:
    """y = floor(g(x)) with pieces that are filled in order."""
    scale = _scale(name, points)
    lengths = [q[0] - p[0] for p, q in pairwise(points)]
    fills = tuple(Variable(f"{name}, fill {index}", 0, length) for index, length in enumerate(lengths, 1))
    full = tuple(Variable(f"{name}, full {index}") for index in range(1, len(lengths)))
    rises = [scale // length * (q[1] - p[1]) for length, (p, q) in zip(lengths, pairwise(points), strict=True)]
    rows: list[Constraint] = [Linear(f"{name}, place", (*((1, fill) for fill in fills), (-1, x)), -points[0][0], -points[0][0])]
    rows.append(_floor(name, tuple(zip(rises, fills, strict=True)), y, scale, scale * points[0][1]))
    for index, done in enumerate(full):
        rows.append(Linear(f"{done.name} means full", ((1, fills[index]), (-lengths[index], done)), low=0))
        rows.append(Linear(f"{fills[index + 1].name} is begun", ((1, fills[index + 1]), (-lengths[index + 1], done)), high=0))
    return Encoding((*fills, *full), tuple(rows))


def whole_pieces(value: Callable[[int], int], low: int, high: int, good: Callable[[int, int], bool]) -> tuple[tuple[int, int], ...]:
    """Points from low to high at distances that are powers of two, doubled while `good(p, q)` says that the piece from p to q will do."""
    points = [(low, value(low))]
    while points[-1][0] < high:
        start = points[-1][0]
        length = 1
        while start + 2 * length <= high and good(start, start + 2 * length):
            length *= 2
        points.append((start + length, value(start + length)))
    return tuple(points)


def _weighted(name: str, x: Variable, y: Variable, points: Points, scale: int) -> tuple[tuple[Variable, ...], list[Constraint]]:
    """The weights of the points, and the rows that hold whichever two are positive."""
    weights = tuple(Variable(f"{name}, weight {index}", 0, scale) for index in range(len(points)))
    shares: Terms = tuple((1, weight) for weight in weights)
    places = tuple((at, weight) for (at, _), weight in zip(points, weights, strict=True))
    heights = tuple((height, weight) for (_, height), weight in zip(points, weights, strict=True))
    return weights, [
        Linear(f"{name}, weights", shares, scale, scale),
        Linear(f"{name}, place", (*places, (-scale, x)), 0, 0),
        _floor(name, heights, y, scale, 0),
    ]


def _floor(name: str, terms: Terms, y: Variable, scale: int, start: int) -> Linear:
    """scale * y <= start + terms <= scale * y + scale - 1."""
    return Linear(f"{name}, height", (*terms, (-scale, y)), -start, scale - 1 - start)


def _scale(name: str, points: Points) -> int:
    """The longest piece, if each other one divides it."""
    lengths = [q[0] - p[0] for p, q in pairwise(points)]
    if not lengths or min(lengths) < 1:
        raise ValueError(f"{name}: at least two points with ascending places are needed")
    scale = max(lengths)
    odd = [length for length in lengths if scale % length]
    if odd:
        raise ValueError(f"{name}: a piece of length {odd[0]} does not divide the longest, {scale}; `whole_pieces` makes lengths that do")
    return scale
