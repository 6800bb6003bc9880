"""Piecewise-linear functions: 1/x as straight pieces with a stated worst error, and their integer encoding."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, isfinite, log, log1p, sinh, tanh

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.formulation.model import Constraint, Linear, Terms, Variable

# The curve 1/x on [a, b] as straight pieces, with the worst relative error stated.
#
#     tangent at p     t(x) = 1/p - (x - p) / p^2 <= 1/x         the largest of some tangents is a lower bound, without a 0/1 variable
#     chord on [p, q]  c(x) = 1/p + (1/q - 1/p) (x - p) / (q - p) >= 1/x between p and q
#
# A line over a positive convex function rises, then falls: the largest tangent is worst where two neighbours cross, or at an end. With
# s = log(q / p), the step between neighbours, setting a derivative to zero gives
#
#     chord error  sinh(s/2)^2            tangent error  tanh(s/2)^2                 tangents cross at  log(1 + tanh(s/2))  from p
#
# The errors depend on s alone, so that equal steps share the error evenly, and no choice of points does with fewer of them.

_HALVINGS = 100


@dataclass(frozen=True, slots=True)
class Pieces:
    """Points of the curve, and the worst relative error of the lines through them."""

    points: Array
    values: Array
    error: float


def chord_error(step: float) -> float:
    """Relative error of a chord between two points whose logarithms differ by `step`."""
    return sinh(step / 2) ** 2


def tangent_error(step: float) -> float:
    """Relative error of the larger one of two tangents at points whose logarithms differ by `step`."""
    return tanh(step / 2) ** 2


def crossing(step: float) -> float:
    """Where these tangents cross, as the difference of logarithms from the first point."""
    return log1p(tanh(step / 2))


def chord_pieces(low: float, high: float, error: float) -> Pieces:
    """The fewest points, from low to high, whose chords are nowhere more than `error` above 1/x."""
    count, step = _even_steps(low, high, error, chord_error)
    points = low * np.exp(step * np.arange(count + 1, dtype=np.float64))
    points[0], points[-1] = low, high
    return Pieces(points, 1 / points, chord_error(step))


def tangent_pieces(low: float, high: float, error: float) -> Pieces:
    """The fewest points whose tangents are, from low to high, nowhere more than `error` below 1/x.

    They lie inside: each is the largest tangent from one crossing to the next, and low and high lie where one more tangent would cross.
    """
    count, step = _even_steps(low, high, error, tangent_error)
    points = low * np.exp(step - crossing(step) + step * np.arange(count, dtype=np.float64))
    return Pieces(points, 1 / points, tangent_error(step))


def _even_steps(low: float, high: float, error: float, error_of: Callable[[float], float]) -> tuple[int, float]:
    """The fewest equal steps from low to high that are each within the error, and their length."""
    if not (0.0 < low < high and isfinite(high) and 1 / high > 0):
        raise ValueError(f"from {low} to {high}: an ascending range is needed in which 1/x is positive and finite")
    if not error > 0:
        raise ValueError(f"an error of {error}: a positive share is needed")
    width = log(high / low)
    count = ceil(width / _longest(error_of, width, error))
    return count, width / count


def _longest(error_of: Callable[[float], float], width: float, error: float) -> float:
    """The longest step up to the width within the error, by bisection, since errors grow with the step."""
    if error_of(width) <= error:
        return width
    within, beyond = 0.0, width
    for _ in range(_HALVINGS):
        middle = (within + beyond) / 2
        within, beyond = (middle, beyond) if error_of(middle) <= error else (within, middle)
    return within


# A piecewise-linear function of an integer as rows of integers: {(x, y): y = floor(g(x))}, with logarithmically many 0/1 variables.
#
# g runs straight from point to point (x_0, y_0), ..., (x_n, y_n), all of them integers. S is the longest piece; each piece's length must
# divide it, as powers of two do. Then all weights are integers and the rows exact, except for the floor, which is intended.
#
#     weights   w_0 ... w_n in 0 .. S, with sum w = S, sum x_i w_i = S x, and S y <= sum y_i w_i <= S y + S - 1 (the floor);
#               only two neighbouring w may be positive
#     bits      ceil(log2 n) 0/1 variables, whose values spell the piece in a Gray code (Vielma and Nemhauser 2011):
#                   sum of w_i whose pieces all have bit k = 1  <=  S b_k
#                   sum of w_i whose pieces all have bit k = 0  <=  S (1 - b_k)
#               Codes of neighbouring pieces differ in one bit, so that a point is allowed by the codes of its own pieces only.
#               If n is no power of two, codes without a piece allow no point, which sum w = S forbids.

Points = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Encoding:
    """What an encoding adds to a model: rows over x, y and some variables of its own."""

    variables: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]


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


def integer_pieces(value: Callable[[int], int], low: int, high: int, good: Callable[[int, int], bool]) -> tuple[tuple[int, int], ...]:
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
        raise ValueError(f"{name}: a piece of length {odd[0]} does not divide the longest, {scale}; `integer_pieces` makes lengths that do")
    return scale
