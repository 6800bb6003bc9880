"""Piecewise-linear functions of an integer as rows of integers: three classic encodings of one set, {(x, y): y = floor(g(x))}.

g runs straight from point to point (x_0, y_0), ..., (x_n, y_n), all of them integers. S is the longest piece; each piece's length must
divide it, as powers of two do. Then all weights below are whole and the rows exact: nothing is lost but the floor, which is meant.

    weights             w_0 ... w_n in 0 .. S, with sum w = S, sum x_i w_i = S x, and S y <= sum y_i w_i <= S y + S - 1 (the floor);
                        only two neighbouring w may be positive:
      by segments       one 0/1 variable a piece, exactly one is 1;      w_i <= S (z_(i-1) + z_i)
      by bits           ceil(log2 n) 0/1 variables, whose values spell the piece in a Gray code (Vielma and Nemhauser 2011):
                            sum of w_i whose pieces all have bit k = 1  <=  S b_k
                            sum of w_i whose pieces all have bit k = 0  <=  S (1 - b_k)
                        Words of neighbouring pieces differ in one bit, so that a point is left in by the words of its own pieces only.
                        Where n is no power of two, the words that no piece has leave in no point at all, which sum w = S forbids.
    by filling          d_i in 0 .. length_i, x = x_0 + sum d_i; z_i = 1 only if piece i is full, and piece i + 1 is begun only if z_i = 1:
                            length_i z_i <= d_i,  d_(i+1) <= length_(i+1) z_i,  S y <= S y_0 + sum (S slope_i) d_i <= S y + S - 1
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from crossopt.formulation.model import Constraint, ExactlyOne, Linear, Terms, Variable

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
    pieces = tuple(Variable(f"{name}, piece {place}") for place in range(1, len(points)))
    rows.append(ExactlyOne(f"{name}, one piece", pieces))
    for place, weight in enumerate(weights):
        beside = pieces[max(place - 1, 0) : place + 1]
        rows.append(Linear(f"{weight.name} is of its pieces", ((1, weight), *((-scale, piece) for piece in beside)), high=0))
    return Encoding((*weights, *pieces), tuple(rows))


def by_bits(name: str, x: Variable, y: Variable, points: Points) -> Encoding:
    """y = floor(g(x)) with as many 0/1 variables as the number of pieces has bits."""
    scale = _scale(name, points)
    weights, rows = _weighted(name, x, y, points, scale)
    last = len(points) - 2
    words = [place ^ (place >> 1) for place in range(last + 1)]
    bits = tuple(Variable(f"{name}, bit {place}") for place in range(last.bit_length()))
    for place, bit in enumerate(bits):
        beside = [{words[piece] >> place & 1 for piece in (point - 1, point) if 0 <= piece <= last} for point in range(len(points))]
        ones = tuple((1, weight) for weight, seen in zip(weights, beside, strict=True) if seen == {1})
        zeros = tuple((1, weight) for weight, seen in zip(weights, beside, strict=True) if seen == {0})
        rows.append(Linear(f"{bit.name} where it is 1", (*ones, (-scale, bit)), high=0))
        rows.append(Linear(f"{bit.name} where it is 0", (*zeros, (scale, bit)), high=scale))
    return Encoding((*weights, *bits), tuple(rows))


def by_filling(name: str, x: Variable, y: Variable, points: Points) -> Encoding:
    """y = floor(g(x)) with pieces that are filled in order."""
    scale = _scale(name, points)
    lengths = [q[0] - p[0] for p, q in pairwise(points)]
    fills = tuple(Variable(f"{name}, fill {place}", 0, length) for place, length in enumerate(lengths, 1))
    full = tuple(Variable(f"{name}, full {place}") for place in range(1, len(lengths)))
    rises = [scale // length * (q[1] - p[1]) for length, (p, q) in zip(lengths, pairwise(points), strict=True)]
    rows: list[Constraint] = [Linear(f"{name}, place", (*((1, fill) for fill in fills), (-1, x)), -points[0][0], -points[0][0])]
    rows.append(_floor(name, tuple(zip(rises, fills, strict=True)), y, scale, scale * points[0][1]))
    for place, done in enumerate(full):
        rows.append(Linear(f"{done.name} means full", ((1, fills[place]), (-lengths[place], done)), low=0))
        rows.append(Linear(f"{fills[place + 1].name} is begun", ((1, fills[place + 1]), (-lengths[place + 1], done)), high=0))
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
    weights = tuple(Variable(f"{name}, weight {place}", 0, scale) for place in range(len(points)))
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
