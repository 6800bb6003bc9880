"""The integer model: what it refuses, and what it says of values."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from crossopt.formulation.model import ExactlyOne, Linear, Model, Table, Variable, violations
from tests.every import every
from tests.formulation.models import every_point, kept_by_hand, models

A, B = Variable("a"), Variable("b")
X, Y = Variable("x", -2, 5), Variable("y", 0, 9)


def test_a_linear_row_is_off_by_what_its_sum_misses() -> None:
    row = Linear("power", ((2, X), (3, Y)), 4, 10)
    assert [row.violation({X: x, Y: y}) for x, y in ((0, 0), (-2, 1), (2, 0), (5, 0), (5, 2))] == [4, 5, 0, 0, 6]


def test_a_conditional_row_is_asked_only_where_its_condition_is_one() -> None:
    row = Linear("memory", ((1, Y),), high=3, given=A)
    assert [row.violation({Y: 8, A: asked}) for asked in (0, 1)] == [0, 5]


def test_exactly_one_counts_what_is_too_many_or_missing() -> None:
    row = ExactlyOne("degree", (A, B))
    assert [row.violation({A: a, B: b}) for a, b in ((0, 0), (0, 1), (1, 0), (1, 1))] == [1, 0, 0, 1]
    assert ExactlyOne("nothing", ()).violation({}) == 1


def test_a_table_counts_the_columns_that_the_nearest_row_would_change() -> None:
    row = Table("cost", (A, X, Y), ((0, 1, 2), (1, 1, 7)))
    assert [row.violation({A: a, X: x, Y: y}) for a, x, y in ((0, 1, 2), (0, 1, 7), (0, 0, 0), (1, 2, 3))] == [0, 1, 2, 2]
    assert Table("none", (A, X), ()).violation({A: 0, X: 0}) == 2


def test_violations_name_the_rows_and_the_numbers() -> None:
    model = Model((A, B, X, Y), (Linear("power", ((2, X),), high=3), ExactlyOne("degree", (A, B)), Table("cost", (X, Y), ((1, 1),))))
    assert violations(model, {A: 1, B: 1, X: 5, Y: 0}) == (
        "power: 10 where at most 3 is asked, off by 7",
        "degree: 2 are chosen where one is asked",
        "cost: x = 5, y = 0 is none of 1 rows, off in 2",
    )
    assert violations(model, {A: 1, B: 0, X: 1, Y: 1}) == ()


def test_values_outside_their_range_or_missing_are_violations() -> None:
    model = Model((A, X), ())
    assert violations(model, {A: 2, X: 0}) == ("a = 2 is not from 0 to 1",)
    assert violations(model, {A: 1}) == ("x has no value",)
    assert violations(model, {A: 1, X: 0.5}) == ("x = 0.5 is not an integer",)  # type: ignore[dict-item]


def test_the_objective_counts_its_constant() -> None:
    model = Model((X, Y), (), ((2, X), (-1, Y)), 7)
    assert model.objective_value({X: 3, Y: 4}) == 9
    assert (model.domain_bound(), replace(model, minimise=False).domain_bound()) == (-6, 17)


@given(models())
def test_the_model_accepts_a_point_exactly_if_every_row_does(model: Model) -> None:
    for values in every_point(model):
        broken = [row.name for row in model.constraints if not kept_by_hand(row, values)]
        assert [sentence.split(":")[0] for sentence in violations(model, values)] == broken


@given(models())
def test_no_point_is_better_than_the_ranges_allow(model: Model) -> None:
    values = [model.objective_value(point) for point in every_point(model)]
    assert model.domain_bound() == (min if model.minimise else max)(values)


@every(
    ("build", "sentence"),
    [
        (lambda: Variable("", 0, 1), "a variable needs a name"),
        (lambda: Variable("x", 3, 2), "x: no integer is at least 3 and at most 2"),
        (lambda: Variable("x", 0, 2**54), "beyond 9007199254740992"),
        (lambda: Variable("x", 0, 1.5), "1.5 is a float, a Python integer is needed"),  # type: ignore[arg-type]
        (lambda: Linear("row", ((np.int64(3), X),), 0), "is a int64, a Python integer is needed"),  # type: ignore[arg-type]
        (lambda: Linear("row", ((1, X),)), "row: a row without limits asks nothing"),
        (lambda: Linear("row", ((1, X),), 5, 4), "row: no sum is at least 5 and at most 4"),
        (lambda: Linear("row", ((1, X), (2, X)), 0), "row: names x twice"),
        (lambda: Linear("row", ((1, X),), 0, given=Y), "row: only a 0/1 variable can say when a row is asked"),
        (lambda: Linear("row", ((2**54, X),), 0), "beyond 9007199254740992, where numbers are no longer exact"),
        (
            lambda: Linear("row", ((2**52, Variable("z", 0, 2**11)),), 0),
            "row: its terms may add up to 9.22e\\+18, beyond what 64 bits hold",
        ),
        (lambda: ExactlyOne("row", (A, X)), "row: x is from -2 to 5, not a 0/1 variable"),
        (lambda: ExactlyOne("row", (A, A)), "row: names a twice"),
        (lambda: Table("row", (), ()), "row: a table needs a variable"),
        (lambda: Table("row", (A, X), ((1,),)), r"row: the row \(1,\) has 1 values for 2 variables"),
        (lambda: Model((A, Variable("a", 0, 3)), ()), "two variables are called 'a'"),
        (lambda: Model((A, B), (ExactlyOne("r", (A,)), ExactlyOne("r", (B,)))), "two rows are called 'r'"),
        (lambda: Model((A,), (ExactlyOne("r", (A, B)),)), "r: b is not a variable of the model"),
        (lambda: Model((X,), (Linear("r", ((1, X),), 0, given=A),)), "r: a is not a variable of the model"),
        (lambda: Model((A,), (), ((1, B),)), "objective: b is not a variable of the model"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(build: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        build()  # type: ignore[operator]
