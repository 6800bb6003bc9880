"""The rewrite to linear rows: the same solutions, and a relaxation that is as tight as promised."""

import pytest
from hypothesis import given

from crossopt.formulation.model import ExactlyOne, Linear, Model, Table, Variable, lifted, linearize, linearize_weakly, project, violations
from tests.formulation.models import models, searched, solutions

FORMS = pytest.mark.parametrize("form", [linearize, linearize_weakly])


def named(model: Model, values: list[dict[Variable, int]]) -> set[tuple[int, ...]]:
    """Solutions as tuples, in the order of the model's variables."""
    return {tuple(point[variable] for variable in model.variables) for point in values}


@FORMS
@given(model=models())
def test_the_solutions_are_the_same_ones(form: type, model: Model) -> None:
    """Read off on the variables of the first model, neither more nor fewer."""
    linear = form(model)
    assert all(isinstance(row, ExactlyOne) or (isinstance(row, Linear) and row.given is None) for row in linear.constraints)
    found = [dict(project(model, values)) for values in searched(linear)]
    assert named(model, found) == named(model, solutions(model))
    assert len(found) == len(solutions(model))  # no row of a table stands twice for one solution


@FORMS
@given(model=models())
def test_a_lifted_solution_is_a_solution(form: type, model: Model) -> None:
    for values in solutions(model):
        assert violations(form(model), lifted(model, values)) == ()


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


def test_the_strong_form_bounds_better_than_the_weak_one() -> None:
    """Two tables share a choice, and their costs add up to 10 either way. Without integrality the strong form still says 10.

    The weak one takes half of each row and is bound by half of the dear rows only: 4.5 + 4.5.
    """
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
    assert relaxed(linearize_weakly(model)) == pytest.approx(9)
