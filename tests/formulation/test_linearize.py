"""Linear models: products and functions made linear, segments, rounding, and models held to what they state."""

from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, pairwise, product
from math import asinh, atanh, ceil, exp, floor, log, log2, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossopt.formulation.model import (
    ExactlyOne,
    Linear,
    Model,
    Table,
    Variable,
    ceiled,
    floored,
    lifted,
    linearize,
    quantum_for,
    real,
    violations,
)
from crossopt.formulation.piecewise import (
    Points,
    by_bits,
    chord_error,
    chord_pieces,
    crossing,
    integer_pieces,
    tangent_error,
    tangent_pieces,
)
from tests.every import every
from tests.formulation.models import every_point, kept_by_hand, models, searched, solutions

# The rewrite to linear rows: the same solutions, and a relaxation that is as tight as promised.


def named(model: Model, values: list[dict[Variable, int]]) -> set[tuple[int, ...]]:
    """Solutions as tuples, in the order of the model's variables."""
    return {tuple(point[variable] for variable in model.variables) for point in values}


@given(model=models())
def test_the_solutions_are_the_same_ones(model: Model) -> None:
    """Read off on the variables of the first model, neither more nor fewer."""
    linear = linearize(model)
    assert all(isinstance(row, ExactlyOne) or (isinstance(row, Linear) and row.given is None) for row in linear.constraints)
    found = [{variable: values[variable] for variable in model.variables} for values in searched(linear)]
    assert named(model, found) == named(model, solutions(model))
    assert len(found) == len(solutions(model))  # no row of a table stands twice for one solution


@given(model=models())
def test_a_lifted_solution_is_a_solution(model: Model) -> None:
    for values in solutions(model):
        assert violations(linearize(model), lifted(model, values)) == ()


def test_the_big_m_is_the_smallest_that_works() -> None:
    """3x - 2y with x in 0..5 and y in 0..7 is from -14 to 15: 11 above the 4 that is asked, 7 below the -7."""
    x, y, g = Variable("x", 0, 5), Variable("y", 0, 7), Variable("g")
    model = Model((x, y, g), (Linear("row", ((3, x), (-2, y)), -7, 4, given=g),))
    assert linearize(model).constraints == (
        Linear("row, at most", ((3, x), (-2, y), (11, g)), high=15),
        Linear("row, at least", ((3, x), (-2, y), (-7, g)), low=-14),
    )


def test_a_condition_that_is_part_of_its_row_counts_as_one_there() -> None:
    """x + 5 g <= 6 if g: at g = 0 x may be 4, which 6 allows anyway, so that M is 0."""
    x, g = Variable("x", 0, 4), Variable("g")
    model = Model((x, g), (Linear("row", ((1, x), (5, g)), high=6, given=g),))
    assert linearize(model).constraints == (Linear("row, at most", ((1, x), (5, g)), high=6),)


def test_a_side_that_the_ranges_keep_is_left_out() -> None:
    x, g = Variable("x", 0, 4), Variable("g")
    assert linearize(Model((x, g), (Linear("row", ((1, x),), 0, 9, given=g),))).constraints == ()


def test_a_table_becomes_marginals() -> None:
    """Rows that no range allows and rows that stand twice are left out."""
    a, x = Variable("a"), Variable("x", 2, 6)
    model = Model((a, x), (Table("cost", (a, x), ((0, 3), (1, 5), (0, 3), (1, 7), (0, 6))),))
    one, two, three = (Variable(f"cost, row {place}") for place in (1, 2, 3))
    assert linearize(model).constraints == (
        ExactlyOne("cost, one row", (one, two, three)),
        Linear("cost, a", ((1, two), (-1, a)), 0, 0),
        Linear("cost, x", ((3, one), (5, two), (6, three), (-1, x)), 0, 0),
    )


def test_the_linear_relaxation_of_tables_that_share_a_choice_is_tight() -> None:
    """Two tables share a choice, and their costs add up to 10 either way, without integrality as well."""
    highspy = pytest.importorskip("highspy")
    a, x, y = Variable("a"), Variable("x", 0, 9), Variable("y", 0, 9)
    model = Model((a, x, y), (Table("one", (a, x), ((0, 1), (1, 9))), Table("two", (a, y), ((0, 9), (1, 1)))), ((1, x), (1, y)))

    def relaxed(linear: Model) -> float:
        solver = highspy.Highs()
        solver.silent()
        columns = {v: solver.addVariable(v.low, v.high) for v in linear.variables}
        for row in linear.constraints:
            terms = row.terms if isinstance(row, Linear) else tuple((1, v) for v in row.variables)
            low, high = (row.low, row.high) if isinstance(row, Linear) else (1, 1)
            total = sum(c * columns[v] for c, v in terms)
            solver.addConstr(total >= (-highspy.kHighsInf if low is None else low))
            solver.addConstr(total <= (highspy.kHighsInf if high is None else high))
        solver.minimize(sum(c * columns[v] for c, v in linear.objective))
        return float(solver.getObjectiveValue())

    assert relaxed(linearize(model)) == pytest.approx(10)


# The integer model: what it refuses, and what it says of values.

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


# Curves as pieces: on the right side, within the stated error, and with as few pieces as that allows.

ERRORS = st.floats(1e-5, 0.3)
LOWS, WIDTHS = st.floats(0.05, 3.0), st.floats(0.01, 8.0)
FLOATING = 1e-12
"""Rounding of the curve's own value in floating point: far below any error that is asked for."""


def dense(low: float, high: float) -> np.ndarray:
    return np.linspace(low, high, 4001)


def largest_tangent(points: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The largest of the tangents of 1/x at some points, at each x."""
    return np.asarray((2 / points - np.multiply.outer(x, 1 / points**2)).max(axis=-1))


@given(low=LOWS, width=WIDTHS, error=ERRORS)
def test_chords_are_above_and_as_near_as_stated(low: float, width: float, error: float) -> None:
    pieces = chord_pieces(low, low + width, error)
    x = dense(low, low + width)
    relative = np.interp(x, pieces.points, pieces.values) * x - 1
    assert pieces.error <= error
    assert relative.min() >= -FLOATING
    assert relative.max() <= pieces.error + FLOATING


@given(low=LOWS, width=WIDTHS, error=ERRORS)
def test_tangents_are_below_and_as_near_as_stated(low: float, width: float, error: float) -> None:
    pieces = tangent_pieces(low, low + width, error)
    x = dense(low, low + width)
    short = 1 - largest_tangent(pieces.points, x) * x
    assert pieces.error <= error
    assert short.min() >= -FLOATING
    assert short.max() <= pieces.error + FLOATING


@given(step=st.floats(0.05, 3.0))
def test_the_stated_errors_are_reached(step: float) -> None:
    """Not only bounds: some point between two neighbours is as far off as the closed form says."""
    high = exp(step)
    x = np.linspace(1.0, high, 50001)
    chord = np.interp(x, [1.0, high], [1.0, 1.0 / high]) * x - 1
    assert chord.max() == pytest.approx(chord_error(step), rel=1e-6)
    short = 1 - largest_tangent(np.array([1.0, high]), x) * x
    assert short.max() == pytest.approx(tangent_error(step), rel=1e-3)
    assert abs(x[short.argmax()] - exp(crossing(step))) <= x[1] - x[0]


def test_errors_by_hand() -> None:
    """1/x from 1 to 4: the chord at 2.5 is 0.625 against 0.4. Its tangents at 1 and 4 cross at 1.6, where they are 0.4 against 0.625."""
    assert chord_error(log(4)) == pytest.approx(0.625 / 0.4 - 1)
    assert tangent_error(log(4)) == pytest.approx(1 - 0.4 / 0.625)


@given(low=LOWS, width=WIDTHS, error=ERRORS)
def test_the_fewest_pieces_of_a_reciprocal_are_known_in_closed_form(low: float, width: float, error: float) -> None:
    """The step at which sinh(s/2)^2 or tanh(s/2)^2 is the error; a count on the very edge may go either way."""
    steps = log((low + width) / low)
    for count, step in (
        (len(chord_pieces(low, low + width, error).points) - 1, 2 * asinh(sqrt(error))),
        (len(tangent_pieces(low, low + width, error).points), 2 * atanh(sqrt(error))),
    ):
        assert count - 1 - FLOATING <= steps / step <= count + FLOATING


def test_one_tangent_less_is_too_few() -> None:
    """Of any three tangents, spread as well as may be, some point of the range is further off than the error that four keep."""
    pieces = tangent_pieces(1.0, 5.0, tangent_error_of(4))
    x = dense(1.0, 5.0)
    assert len(pieces.points) == 4
    generator = np.random.default_rng(0)
    for points in np.sort(generator.uniform(1.0, 5.0, (500, 3))):
        assert (1 - largest_tangent(points, x) * x).max() > pieces.error


def tangent_error_of(count: int) -> float:
    """The error of that many even steps from 1 to 5, and a little room for the last bit."""
    return tangent_error(log(5.0) / count) * (1 + FLOATING)


@pytest.mark.parametrize(
    ("low", "high", "error"), [(0.0, 1.0, 0.1), (-1.0, 1.0, 0.1), (2.0, 1.0, 0.1), (1.0, 2.0, 0.0), (1.0, float("inf"), 0.1)]
)
def test_ranges_without_a_curve_are_refused(low: float, high: float, error: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        chord_pieces(low, high, error)


# Rounding in one direction: the integer problem is never dearer and never tighter than the real one.

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


# The encoding of a piecewise-linear function: y is the floor of g(x).


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


@settings(max_examples=15)
@given(points=some_points())
def test_the_rows_allow_the_floor_of_the_function_and_nothing_else(points: Points) -> None:
    """Every x of the range has its y, and no x outside is possible, though the variable could take it."""
    x = Variable("x", points[0][0] - 1, points[-1][0] + 1)
    y = Variable("y", -7, 7)
    added = by_bits("g", x, y, points)
    model = Model((x, y, *added.variables), added.constraints)
    found = {(values[x], values[y]) for values in searched(model)}
    assert found == {(at, floor_of(points, at)) for at in range(points[0][0], points[-1][0] + 1)}


@every("pieces", range(1, 18))
def test_the_encoding_needs_as_many_choices_as_pieces_have_bits(pieces: int) -> None:
    points = [(place, place * place) for place in range(pieces + 1)]
    added = by_bits("g", Variable("x", 0, pieces), Variable("y", 0, pieces**2), points)
    assert sum(v.name.startswith("g, bit") for v in added.variables) == ceil(log2(pieces))


def test_whole_pieces_of_a_reciprocal_divide_the_longest_and_are_as_long_as_the_error_allows() -> None:
    """1e6 / x from 8 to 1000 at 1 %: no piece is off by more, and each one twice as long would be, or would leave the range."""

    def error(p: int, q: int) -> float:
        return chord_error(log(q / p))

    points = integer_pieces(lambda x: 10**6 // x, 8, 1000, lambda p, q: error(p, q) <= 0.01)
    lengths = [q[0] - p[0] for p, q in pairwise(points)]
    assert (points[0], points[-1]) == ((8, 125000), (1000, 1000))
    assert all(max(lengths) % length == 0 for length in lengths)
    assert all(length == 1 or error(p[0], q[0]) <= 0.01 for length, (p, q) in zip(lengths, pairwise(points), strict=True))
    assert all(p[0] + 2 * length > 1000 or error(p[0], p[0] + 2 * length) > 0.01 for length, p in zip(lengths, points, strict=False))


def test_lengths_that_do_not_divide_the_longest_are_refused() -> None:
    with pytest.raises(ValueError, match="g: a piece of length 2 does not divide the longest, 3; `integer_pieces` makes lengths that do"):
        by_bits("g", Variable("x", 0, 5), Variable("y", 0, 9), [(0, 0), (2, 1), (5, 2)])
    with pytest.raises(ValueError, match="at least two points with ascending places"):
        by_bits("g", Variable("x", 0, 5), Variable("y", 0, 9), [(0, 0)])
