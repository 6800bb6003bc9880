"""Rounding in one direction: the integer problem is never dearer and never tighter than the real one."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.formulation.model import ceiled, floored, quantum_for, real, rounding_loss

QUANTA = st.integers(-40, 10).map(lambda exponent: 2.0**exponent)
REALS = st.floats(-1e3, 1e3)


@given(REALS, QUANTA)
def test_floor_and_ceiling_are_exact(value: float, quantum: float) -> None:
    """In exact arithmetic, so that no rounding of the division can hide."""
    below, above = (Fraction(int(rounded)) * Fraction(quantum) for rounded in (floored(value, quantum), ceiled(value, quantum)))
    assert below <= Fraction(value) < below + Fraction(quantum)
    assert above - Fraction(quantum) < Fraction(value) <= above


@given(
    st.lists(st.tuples(*[st.floats(0, 100)] * 3, *[st.floats(0, 10)] * 3), min_size=1, max_size=4),
    st.floats(0, 30),
    st.sampled_from([0.5, 0.125, 4.0]),
)
def test_the_integer_optimum_never_exceeds_the_real_one(items: list[tuple[float, ...]], capacity: float, quantum: float) -> None:
    """Each item is done in one of three ways, with a cost and a usage each, all usage within a capacity."""
    costs, usage = np.array([item[:3] for item in items]), np.array([item[3:] for item in items])

    def best(cost: list[list[Fraction]], use: list[list[Fraction]], limit: Fraction) -> Fraction | None:
        ways = product(range(3), repeat=len(cost))
        fits = (way for way in ways if sum(row[k] for row, k in zip(use, way, strict=True)) <= limit)
        return min((sum((row[k] for row, k in zip(cost, way, strict=True)), Fraction(0)) for way in fits), default=None)

    def exact(rows: np.ndarray) -> list[list[Fraction]]:
        return [[Fraction(value) for value in row] for row in rows.tolist()]

    truth = best(exact(costs), exact(usage), Fraction(capacity))
    whole = best(exact(floored(costs, quantum)), exact(floored(usage, quantum)), Fraction(int(ceiled(capacity, quantum))))
    if truth is not None:
        assert whole is not None
        assert Fraction(real(int(whole), quantum)) <= truth


@given(QUANTA, st.lists(st.floats(0, 1000), min_size=1, max_size=9))
def test_the_loss_is_less_than_a_quantum_a_cost(quantum: float, costs: list[float]) -> None:
    whole = int(floored(costs, quantum).sum())
    assert Fraction(real(whole, quantum)) > sum(map(Fraction, costs)) - Fraction(rounding_loss(len(costs), quantum))


@given(st.integers(2**53, 2**62), QUANTA)
def test_a_bound_too_long_for_floating_point_is_rounded_down(quanta: int, quantum: float) -> None:
    assert Fraction(real(quanta, quantum)) <= quanta * Fraction(quantum)


@given(st.floats(1e-9, 1e9), st.integers(1, 10**6))
def test_the_quantum_is_the_finest_power_of_two(largest: float, steps: int) -> None:
    quantum = quantum_for(largest, steps)
    assert quantum / 2 * steps < largest <= quantum * steps


def test_tiny_values_are_rounded_away_from_zero_where_they_must() -> None:
    """5e-324 / 4 is 0 in floating point."""
    assert [int(ceiled(5e-324, 4.0)), int(floored(-5e-324, 4.0)), int(floored(5e-324, 4.0)), int(ceiled(-5e-324, 4.0))] == [1, -1, 0, 0]


def test_lists_are_what_a_model_takes() -> None:
    assert floored([[0.3, 1.9], [2.0, -0.1]], 0.5).tolist() == [[0, 3], [4, -1]]


@pytest.mark.parametrize("quantum", [0.0, -1.0, 0.1, 3.0, float("inf"), float("nan")])
def test_a_quantum_that_is_no_power_of_two_is_refused(quantum: float) -> None:
    with pytest.raises(ValueError, match="is not a power of two"):
        floored(1.0, quantum)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1e300])
def test_values_that_no_integer_holds_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="use a coarser quantum"):
        floored([1.0, value], 2.0**-10)
