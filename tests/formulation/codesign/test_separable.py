"""Bounds with a term for each part: nowhere above what they stand for, equal to it at the given chip, never silent where they fail."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.arrays import Array
from crossopt.formulation.codesign.tangent import Capacity, Separable, bound_of, table_of

U, V, W = np.array([1.0, 2.0, 5.0]), np.array([3.0, 1.0]), np.array([0.5, 4.0, 2.0])
POINT = {"u": 1, "v": 0, "w": 2}


def tables(u: Array = U, v: Array = V, w: Array = W) -> tuple[Any, Any, Any]:
    return table_of("u", u, POINT), table_of("v", v, POINT), table_of("w", w, POINT)


def said(bound: Separable, u: int, v: int, w: int) -> float:
    """What the bound says of one chip."""
    chosen = {"u": u, "v": v, "w": w}
    return float(np.asarray(bound.constant + sum(table[..., chosen[part]] for part, table in bound.terms.items())).reshape(-1)[0])


FORMULAS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda u, v, w: 2.0 * u + v * 3.0 + w + 1.0,
    "reciprocals": lambda u, v, w: 6.0 / u + np.sqrt(v) + np.ceil(w / 3.0),
    "product": lambda u, v, w: u * v + w,
    "quotient": lambda u, v, w: u / v + w,
    "maximum": lambda u, v, w: np.maximum(u + v, 2.0 * w),
    "minimum": lambda u, v, w: np.minimum(u + v, v + w),
    "window": lambda u, v, w: np.maximum(u + v, 0.25 * (u + v) + w),
    "sum of a product and a choice": lambda u, v, w: np.where(np.array(True), u / v, w) + np.where(np.array(False), u, w),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_bound_is_nowhere_above_and_meets_the_figure_at_the_given_chip(name: str) -> None:
    formula = FORMULAS[name]
    bound = bound_of(formula(*tables()), POINT)
    for u, v, w in product(range(3), range(2), range(3)):
        true = float(formula(U[u], V[v], W[w]))
        assert said(bound, u, v, w) <= true + 1e-12 * abs(true)
        if (u, v, w) == (1, 0, 2) and name != "minimum":
            assert said(bound, u, v, w) == pytest.approx(true, rel=1e-12)


def test_a_product_by_hand() -> None:
    """u = 1, 2 and w = 1, 4 meet at u = 2, w = 1: beta = (1, 1 + 2 log 4), alpha = min over w of u w - beta; then beta is lifted.

    alpha = (min(0, 4 - 3.77), min(1, 8 - 3.77)) = (0, 1), beta = (min(1 - 0, 2 - 1), min(4 - 0, 8 - 1)) = (1, 4).
    """
    point = {"u": 1, "w": 0}
    found = table_of("u", np.array([1.0, 2.0]), point) * table_of("w", np.array([1.0, 4.0]), point)
    assert found.terms["u"] == pytest.approx([0.0, 1.0])
    assert found.terms["w"] == pytest.approx([1.0, 4.0])


FIGURES = st.lists(st.floats(0.01, 100.0), min_size=1, max_size=6).map(np.array)


@given(FIGURES, FIGURES, FIGURES, st.data())
def test_a_capacity_that_is_shared_keeps_its_formula_below(sizes: Array, sharers: Array, rates: Array, data: st.DataObject) -> None:
    """Bytes that fall with the room of each sharer, over the bandwidth of a third part."""
    point = {name: data.draw(st.integers(0, len(row) - 1)) for name, row in (("u", sizes), ("v", sharers), ("w", rates))}

    def formula(size: Any, count: Any, rate: Any) -> Any:  # noqa: ANN401
        room = 0.5 * size / count
        return (3.0 + 2.0 / np.sqrt(room) + 1.0 / np.minimum(4.0, room)) / rate

    shared = Capacity(table_of("u", sizes, point))
    bound = bound_of(formula(shared, table_of("v", sharers, point), table_of("w", rates, point)), point)
    for u, v, w in product(range(len(sizes)), range(len(sharers)), range(len(rates))):
        true = float(formula(sizes[u], sharers[v], rates[w]))
        assert said(bound, u, v, w) <= true * (1 + 1e-9)
        if (u, v, w) == tuple(point.values()):
            assert said(bound, u, v, w) == pytest.approx(true, rel=1e-9)


def test_a_column_of_chips_gives_each_row_its_own() -> None:
    point = {"u": np.array([[0], [2]]), "v": np.array([[1], [0]])}
    bound = table_of("u", U, point) * table_of("v", V, point)
    assert bound.here()[:, 0] == pytest.approx([1.0 * 1.0, 5.0 * 3.0])


@pytest.mark.parametrize(
    "formula",
    [
        lambda u, v, w: -1.0 * (u + v),
        lambda u, v, w: np.sqrt(u + v),
        lambda u, v, w: (u + v) * (v + w),
        lambda u, v, w: 1.0 / (u + v),
        lambda u, v, w: (u + v) * u,
        lambda u, v, w: Capacity(u) * v,
        lambda u, v, w: np.broadcast_to(u + v, (3,)),
    ],
)
def test_what_would_not_stay_a_lower_bound_is_refused(formula: Callable[[Any, Any, Any], Any]) -> None:
    with pytest.raises(TypeError, match="lower bound"):
        formula(*tables())


@pytest.mark.parametrize("after", [lambda x: x, lambda x: np.maximum(x, 0.0), lambda x: np.where(np.array(True), x + 1.0, 0.0)])
def test_a_difference_of_bounds_is_no_number_and_stays_none(after: Callable[[Any], Any]) -> None:
    u, v, w = tables()
    bound = bound_of(after((u + v) - (v + w)), POINT)
    assert np.isnan(bound.here()).all()
