"""The three encodings of a piecewise-linear function say one thing: y is the floor of g(x)."""

from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil, floor, log, log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossopt.formulation.model import Model, Variable
from crossopt.formulation.piecewise import RECIPROCAL, Points, by_bits, by_filling, by_segments, whole_pieces
from tests.every import every
from tests.formulation.models import searched

ENCODINGS = pytest.mark.parametrize("encoding", [by_segments, by_bits, by_filling])


def floor_of(points: Points, x: int) -> int:
    """By interpolation in exact fractions."""
    for (left, low), (right, high) in pairwise(points):
        if left <= x <= right:
            return floor(low + Fraction((high - low) * (x - left), right - left))
    raise ValueError(x)


@st.composite
def some_points(draw: st.DrawFn) -> tuple[tuple[int, int], ...]:
    """One to five pieces of lengths 1 and 2, or of 1 to 3 where there is only one; up and down, from anywhere."""
    lengths = draw(st.lists(st.sampled_from([1, 2]), min_size=1, max_size=5))
    places = accumulate([draw(st.integers(-3, 3)), *lengths])
    return tuple((place, draw(st.integers(-6, 6))) for place in places)


@ENCODINGS
@settings(max_examples=15)
@given(points=some_points())
def test_the_rows_allow_the_floor_of_the_function_and_nothing_else(encoding: type, points: Points) -> None:
    """Every x of the range has its y, and no x outside is possible, though the variable could take it."""
    x = Variable("x", points[0][0] - 1, points[-1][0] + 1)
    y = Variable("y", -7, 7)
    added = encoding("g", x, y, points)
    model = Model((x, y, *added.variables), added.constraints)
    found = {(values[x], values[y]) for values in searched(model)}
    assert found == {(at, floor_of(points, at)) for at in range(points[0][0], points[-1][0] + 1)}


@every("pieces", range(1, 18))
def test_the_encodings_need_as_many_choices_as_they_say(pieces: int) -> None:
    points = [(place, place * place) for place in range(pieces + 1)]
    x, y = Variable("x", 0, pieces), Variable("y", 0, pieces**2)
    choices = {
        encoding: sum(v.name.startswith(("g, piece", "g, bit", "g, full")) for v in encoding("g", x, y, points).variables)
        for encoding in (by_segments, by_bits, by_filling)
    }
    assert choices == {by_segments: pieces, by_bits: ceil(log2(pieces)), by_filling: pieces - 1}


def test_whole_pieces_of_a_reciprocal_divide_the_longest_and_are_as_long_as_the_error_allows() -> None:
    """1e6 / x from 8 to 1000 at 1 %: no piece is off by more, and each one twice as long would be, or would leave the range."""

    def error(p: int, q: int) -> float:
        return RECIPROCAL.chord_error(log(q / p))

    points = whole_pieces(lambda x: 10**6 // x, 8, 1000, lambda p, q: error(p, q) <= 0.01)
    lengths = [q[0] - p[0] for p, q in pairwise(points)]
    assert (points[0], points[-1]) == ((8, 125000), (1000, 1000))
    assert all(max(lengths) % length == 0 for length in lengths)
    assert all(length == 1 or error(p[0], q[0]) <= 0.01 for length, (p, q) in zip(lengths, pairwise(points), strict=True))
    assert all(p[0] + 2 * length > 1000 or error(p[0], p[0] + 2 * length) > 0.01 for length, p in zip(lengths, points, strict=False))


def test_lengths_that_do_not_divide_the_longest_are_refused() -> None:
    with pytest.raises(ValueError, match="g: a piece of length 2 does not divide the longest, 3; `whole_pieces` makes lengths that do"):
        by_bits("g", Variable("x", 0, 5), Variable("y", 0, 9), [(0, 0), (2, 1), (5, 2)])
    with pytest.raises(ValueError, match="at least two points with ascending places"):
        by_segments("g", Variable("x", 0, 5), Variable("y", 0, 9), [(0, 0)])
