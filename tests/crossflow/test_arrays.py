"""Finding equal rows: against the plain way, for small and for huge numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.arrays import distinct, power

SMALL, HUGE = st.integers(0, 3), st.integers(0, 2**40)


@given(st.lists(st.tuples(SMALL, SMALL, HUGE | SMALL), max_size=40))
def test_rows_have_the_same_number_exactly_where_they_are_equal(rows: list[tuple[int, int, int]]) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    first, number = distinct(*columns)
    assert [rows[place] for place in first[number]] == rows
    assert len(first) == len(set(rows))


@given(st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=40))
def test_of_equal_rows_the_first_one_is_named(rows: list[tuple[int, int]]) -> None:
    first, _ = distinct(*np.array(rows, np.int64).T)
    assert sorted(first) == sorted({row: place for place, row in reversed(list(enumerate(rows)))}.values())


@pytest.mark.parametrize("columns", [3, 40])
def test_many_columns_do_not_overflow_the_number_of_a_combination(columns: int) -> None:
    """Forty columns of a thousand values each have 1000^40 possible combinations, of which few occur."""
    random = np.random.default_rng(3)
    rows = random.integers(0, 1000, (50, columns))[random.integers(0, 50, 200)]
    first, number = distinct(*rows.T)
    assert np.array_equal(rows[first][number], rows)
    assert len(first) == len({tuple(row) for row in rows.tolist()})


def test_no_rows_have_no_combinations() -> None:
    first, number = distinct(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert len(first) == len(number) == 0


@given(st.lists(st.tuples(st.floats(0.1, 3.0), st.sampled_from([-2.7, -2.0, -1.0, 0.5, 2.0, 3.0])), min_size=1, max_size=40))
def test_a_power_has_the_same_bits_as_a_number_alone_and_in_an_array(pairs: list[tuple[float, float]]) -> None:
    base, exponent = np.array(pairs).T
    found = power(base, exponent)
    assert np.allclose(found, base**exponent, rtol=1e-15, atol=0.0)
    for place, (one, other) in enumerate(pairs):
        alike = power(one, other), power(np.float64(one), other), power(base[[place]], other)[0], power(base, other)[place]
        assert {*alike, power(one, exponent)[place], power(base[:, None], exponent)[place, place]} == {found[place]}
