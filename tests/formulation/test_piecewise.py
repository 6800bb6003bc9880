"""Curves as pieces: on the right side, within the stated error, and with as few pieces as that allows."""

from math import asinh, atanh, e, exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.formulation.piecewise import DECAY, RECIPROCAL, Curve, chord_pieces, chords, largest, sample_pieces, tangent_pieces, tangents

CURVES = pytest.mark.parametrize("curve", [RECIPROCAL, DECAY], ids=lambda curve: curve.name)
ERRORS = st.floats(1e-5, 0.3)
LOWS, WIDTHS = st.floats(0.05, 3.0), st.floats(0.01, 8.0)
FLOATING = 1e-12
"""Rounding of the curve's own value in floating point: far below any error that is asked for."""


def dense(low: float, high: float) -> np.ndarray:
    return np.linspace(low, high, 4001)


@CURVES
@given(low=LOWS, width=WIDTHS, error=ERRORS)
def test_chords_are_above_and_as_near_as_stated(curve: Curve, low: float, width: float, error: float) -> None:
    pieces = chord_pieces(curve, low, low + width, error)
    x = dense(low, low + width)
    relative = np.interp(x, pieces.points, pieces.values) / curve.value(x) - 1
    assert pieces.error <= error
    assert relative.min() >= -FLOATING
    assert relative.max() <= pieces.error + FLOATING


@CURVES
@given(low=LOWS, width=WIDTHS, error=ERRORS)
def test_tangents_are_below_and_as_near_as_stated(curve: Curve, low: float, width: float, error: float) -> None:
    pieces = tangent_pieces(curve, low, low + width, error)
    x = dense(low, low + width)
    short = 1 - largest(tangents(curve, pieces.points), x) / curve.value(x)
    assert pieces.error <= error
    assert short.min() >= -FLOATING
    assert short.max() <= pieces.error + FLOATING


@CURVES
@given(step=st.floats(0.05, 3.0))
def test_the_stated_errors_are_reached(curve: Curve, step: float) -> None:
    """Not only bounds: some point between two neighbours is as far off as the closed form says."""
    high = float(curve.onward(1.0, np.array([step]))[0])
    x = np.linspace(1.0, high, 50001)
    chord = np.interp(x, [1.0, high], curve.value(np.array([1.0, high]))) / curve.value(x) - 1
    assert chord.max() == pytest.approx(curve.chord_error(step), rel=1e-6)
    short = 1 - largest(tangents(curve, np.array([1.0, high])), x) / curve.value(x)
    assert short.max() == pytest.approx(curve.tangent_error(step), rel=1e-3)
    crossing = float(curve.onward(1.0, np.array([curve.crossing(step)]))[0])
    assert abs(x[short.argmax()] - crossing) <= x[1] - x[0]


def test_errors_by_hand() -> None:
    """1/x from 1 to 4: the chord at 2.5 is 0.625 against 0.4. Its tangents at 1 and 4 cross at 1.6, where they are 0.4 against 0.625."""
    assert RECIPROCAL.chord_error(log(4)) == pytest.approx(0.625 / 0.4 - 1)
    assert RECIPROCAL.tangent_error(log(4)) == pytest.approx(1 - 0.4 / 0.625)
    assert DECAY.chord_error(1) == pytest.approx((1 - 1 / e) * exp(1 / (1 - 1 / e) - 1) - 1)


@given(low=LOWS, width=WIDTHS, error=ERRORS)
def test_the_fewest_pieces_of_a_reciprocal_are_known_in_closed_form(low: float, width: float, error: float) -> None:
    """The step at which sinh(s/2)^2 or tanh(s/2)^2 is the error; a count on the very edge may go either way."""
    steps = log((low + width) / low)
    for count, step in (
        (len(chord_pieces(RECIPROCAL, low, low + width, error).points) - 1, 2 * asinh(sqrt(error))),
        (len(tangent_pieces(RECIPROCAL, low, low + width, error).points), 2 * atanh(sqrt(error))),
    ):
        assert count - 1 - FLOATING <= steps / step <= count + FLOATING


@CURVES
def test_one_tangent_less_is_too_few(curve: Curve) -> None:
    """Of any three tangents, spread as well as may be, some point of the range is further off than the error that four keep."""
    pieces = tangent_pieces(curve, 1.0, 5.0, tangent_error_of(curve, 4))
    x = dense(1.0, 5.0)
    assert len(pieces.points) == 4
    generator = np.random.default_rng(0)
    for points in np.sort(generator.uniform(1.0, 5.0, (500, 3))):
        assert (1 - largest(tangents(curve, points), x) / curve.value(x)).max() > pieces.error


def tangent_error_of(curve: Curve, count: int) -> float:
    """The error of that many even steps from 1 to 5, and a little room for the last bit."""
    return curve.tangent_error(curve.step(1.0, 5.0) / count) * (1 + FLOATING)


def test_chords_as_lines_run_through_their_points() -> None:
    pieces = chord_pieces(RECIPROCAL, 1.0, 4.0, 0.1)
    lines = chords(pieces)
    for place in range(len(lines.slopes)):
        ends = lines.slopes[place] * pieces.points[place : place + 2] + lines.intercepts[place]
        assert ends == pytest.approx(pieces.values[place : place + 2])


@pytest.mark.parametrize(
    ("low", "high", "error"), [(0.0, 1.0, 0.1), (-1.0, 1.0, 0.1), (2.0, 1.0, 0.1), (1.0, 2.0, 0.0), (1.0, float("inf"), 0.1)]
)
def test_ranges_without_a_curve_are_refused(low: float, high: float, error: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        chord_pieces(RECIPROCAL, low, high, error)


@given(st.floats(0.3, 3.0), st.floats(0.04, 0.3), st.booleans())
def test_samples_of_a_monotone_function_bound_it_between_them_too(power: float, error: float, rising: bool) -> None:
    """x^power and x^-power, of which only samples are shown; the error is measured where none was."""
    signed = power if rising else -power
    x = np.geomspace(1.0, 10.0, 601)
    pieces = sample_pieces(x, x**signed, error)
    between = np.geomspace(1.0, 10.0, 20011)
    relative = np.interp(between, pieces.points, pieces.values) / between**signed - 1
    assert pieces.error <= error
    assert np.abs(relative).max() <= pieces.error
    assert len(pieces.points) < 200


def test_a_step_between_two_samples_is_not_drawn_over() -> None:
    """Who knows only samples cannot know where the function jumps."""
    with pytest.raises(ValueError, match=r"between 2\.0 and 3\.0 the samples differ by more than 10\.00%"):
        sample_pieces([1, 2, 3, 4], [5.0, 5.0, 7.0, 7.0], 0.1)


@pytest.mark.parametrize(
    ("x", "y", "sentence"),
    [([1.0], [1.0], "at least two"), ([1, 1], [2, 3], "ascending"), ([1, 2, 3], [1, 2, 1], "nowhere rise"), ([1, 2], [0, 1], "positive")],
)
def test_samples_that_are_no_monotone_function_are_refused(x: list[float], y: list[float], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        sample_pieces(x, y, 0.1)
