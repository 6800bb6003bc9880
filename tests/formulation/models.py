"""Small models that tests draw or build, and the slow, obvious way to solve one."""

from collections.abc import Iterator
from itertools import product

from hypothesis import strategies as st

from crossopt.formulation.model import Constraint, ExactlyOne, Linear, Model, Table, Values, Variable, reach


def kept_by_hand(constraint: Constraint, values: Values) -> bool:
    """Whether a row is kept, said in other words than the model's own."""
    match constraint:
        case Linear(terms=terms, low=low, high=high, given=given):
            total = sum(c * values[v] for c, v in terms)
            asked = given is None or values[given] == 1
            return not asked or ((low is None or total >= low) and (high is None or total <= high))
        case ExactlyOne(variables=variables):
            return [values[v] for v in variables].count(1) == 1
        case Table(variables=variables, rows=rows):
            return any(all(values[v] == value for v, value in zip(variables, row, strict=True)) for row in rows)


def every_point(model: Model) -> Iterator[dict[Variable, int]]:
    """All values within the ranges."""
    for point in product(*(range(variable.low, variable.high + 1) for variable in model.variables)):
        yield dict(zip(model.variables, point, strict=True))


def solutions(model: Model) -> list[dict[Variable, int]]:
    """All values within the ranges that keep every row."""
    return [values for values in every_point(model) if all(kept_by_hand(row, values) for row in model.constraints)]


def optimum(model: Model) -> int | None:
    """The best value; None where there is no solution."""
    values = [sum(c * point[v] for c, v in model.objective) + model.constant for point in solutions(model)]
    return (min if model.minimise else max)(values, default=None)


def searched(model: Model) -> Iterator[dict[Variable, int]]:
    """The solutions of a model of plain linear rows, depth first, cut where a row cannot be kept any more."""
    yield from _deeper(model, {}, 0)


def _deeper(model: Model, values: dict[Variable, int], depth: int) -> Iterator[dict[Variable, int]]:
    if not all(_possible(row, values) for row in model.constraints):
        return
    if depth == len(model.variables):
        yield dict(values)
        return
    variable = model.variables[depth]
    for value in range(variable.low, variable.high + 1):
        yield from _deeper(model, {**values, variable: value}, depth + 1)


def _possible(row: Constraint, values: Values) -> bool:
    if isinstance(row, ExactlyOne):
        row = Linear(row.name, tuple((1, v) for v in row.variables), 1, 1)
    assert isinstance(row, Linear)
    fixed = sum(c * values[v] for c, v in row.terms if v in values)
    least, most = reach(tuple((c, v) for c, v in row.terms if v not in values))
    return (row.high is None or fixed + least <= row.high) and (row.low is None or fixed + most >= row.low)


@st.composite
def models(draw: st.DrawFn, largest: int = 9) -> Model:
    """Two to four integers of a few values, some of them choices, and up to four rows of any kind; often with no solution."""
    choices = [Variable(f"choice {place}") for place in range(draw(st.integers(1, 2)))]
    numbers = [
        Variable(f"number {place}", low := draw(st.integers(-3, 2)), low + draw(st.integers(0, 4)))
        for place in range(draw(st.integers(1, 2)))
    ]
    variables = [*choices, *numbers]
    coefficient = st.integers(-largest, largest)
    rows = [draw(_row(f"row {place}", variables, choices, coefficient)) for place in range(draw(st.integers(0, 4)))]
    cost = tuple((draw(coefficient), variable) for variable in variables)
    return Model(tuple(variables), tuple(rows), cost, draw(coefficient), draw(st.booleans()))


@st.composite
def _row(draw: st.DrawFn, name: str, variables: list[Variable], choices: list[Variable], coefficient: st.SearchStrategy[int]) -> Constraint:
    kind = draw(st.sampled_from(["linear", "linear", "one", "table"]))
    if kind == "one":
        return ExactlyOne(name, tuple(draw(st.lists(st.sampled_from(choices), max_size=2, unique=True))))
    columns = draw(st.lists(st.sampled_from(variables), min_size=1, max_size=3, unique=True))
    if kind == "table":
        row = st.tuples(*(st.integers(v.low - 1, v.high) for v in columns))
        return Table(name, tuple(columns), tuple(draw(st.lists(row, max_size=5))))
    terms = tuple((draw(coefficient), variable) for variable in columns)
    least, most = reach(terms)
    low, high = sorted((draw(st.integers(least - 1, most + 1)), draw(st.integers(least - 1, most + 1))))
    sides = draw(st.sampled_from([(low, high), (low, None), (None, high), (low, low)]))
    return Linear(name, terms, *sides, given=draw(st.sampled_from([None, *choices])))
