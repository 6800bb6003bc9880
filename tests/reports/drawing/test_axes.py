"""Axes: round ticks inside their ends, and figures where they belong."""

from math import log10, ulp

import pytest
from hypothesis import given
from hypothesis import strategies as some

from crossopt.reports.drawing.axes import Scale, ends_of, round_steps, stairs, tenfold_steps


@given(some.floats(-1e6, 1e6), some.floats(1e-6, 1e6))
def test_ticks_are_round_inside_and_few(low: float, span: float) -> None:
    high = low + span
    ticks = round_steps(low, high, 5)
    assert len(ticks) <= 8
    near = span * 1e-6 + 4.0 * ulp(max(abs(low), abs(high)))  # far from zero, numbers lie further apart than that
    assert all(low - near <= tick <= high + near for tick in ticks)


@given(some.floats(-30.0, 30.0), some.floats(0.1, 60.0), some.sampled_from([(1.0,), (1.0, 2.0, 5.0), (1.0, 2.0, 3.0, 5.0, 7.0)]))
def test_tenfold_ticks_are_all_those_between_two_powers(low: float, span: float, factors: tuple[float, ...]) -> None:
    ticks = tenfold_steps(low, low + span, factors)
    assert ticks == sorted(set(ticks))
    assert all(low <= log10(tick) <= low + span for tick in ticks)
    assert abs(len(ticks) - span * len(factors)) <= len(factors)


def test_of_too_many_powers_of_ten_every_second_or_third_is_left() -> None:
    assert tenfold_steps(-2.0, 2.0) == [0.01, 0.1, 1.0, 10.0, 100.0]
    assert tenfold_steps(-2.0, 2.0, most=4) == [0.01, 1.0, 100.0]
    assert tenfold_steps(-2.5, 4.5, most=3) == [1.0, 1000.0]


def test_figures_stand_in_proportion_from_the_left_and_from_the_top() -> None:
    assert [Scale(0.0, 4.0, 10.0, 200.0).at(value) for value in (0.0, 1.0, 4.0)] == [10.0, 60.0, 210.0]
    assert [Scale(0.0, 4.0, 10.0, 200.0, upward=True).at(value) for value in (0.0, 1.0, 4.0)] == [210.0, 160.0, 10.0]
    assert [Scale(-1.0, 1.0, 0.0, 100.0, tenfold=True).at(value) for value in (0.1, 1.0, 10.0)] == [0.0, 50.0, 100.0]


@pytest.mark.parametrize(("values", "ends"), [((0.0, 10.0), (-1.0, 11.0)), ((5.0, 5.0), (4.0, 6.0)), ((0.0, 0.0), (-1.0, 1.0))], ids=str)
def test_ends_leave_room_beyond_the_figures(values: tuple[float, ...], ends: tuple[float, float]) -> None:
    assert ends_of(values, 0.1, 0.2) == ends


def test_stairs_go_across_before_they_go_up() -> None:
    assert stairs([(0.0, 5.0)]) == [(0.0, 5.0)]
    assert stairs([(0.0, 5.0), (2.0, 3.0)]) == [(0.0, 5.0), (2.0, 5.0), (2.0, 3.0)]


def test_figures_that_read_the_same_have_the_scale_of_one() -> None:
    """A bound one in 10^12 below the value: ticks between them would all say the same."""
    assert ends_of([100.0, 100.0 - 1e-10], 0.06, 0.01) == pytest.approx((99.0, 101.0))
    assert ends_of([100.0, 90.0], 0.1, 0.01) == pytest.approx((89.0, 101.0))
