"""The same choice in linear rows only, for solvers that know nothing else. Each function takes a model and gives a model.

    table, strong     one 0/1 variable a row, t_r; exactly one of them is 1; for each column k with variable x_k
                          sum over r of row_r[k] * t_r = x_k
                      Where x_k is a 0/1 choice this says that the rows with that choice carry just its share (marginals), also in the
                      relaxation that a MILP solver bounds with: no fraction of a row can be had without the same fraction of its choices.
    table, weak       exactly one t_r is 1, and t_r = 1 implies x_k = row_r[k]. The same integers, but a far larger relaxation: shown so
                      that the difference can be measured.
    row if g = 1      sum <= high becomes  sum + M g <= high + M  with  M = (most that the sum can be with g = 0) - high,
                      sum >= low  becomes  sum - M g >= low - M   with  M = low - (least that the sum can be with g = 0),
                      the smallest M that leaves the row without effect at g = 0.

The solutions, read off on the variables of the first model, are the same ones.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from crossopt.formulation.model import Constraint, ExactlyOne, Linear, Model, Table, Terms, Values, Variable, reach

Choices = tuple[tuple[Variable, tuple[int, ...]], ...]
"""A 0/1 variable for each row of a table."""


def linearize(model: Model) -> Model:
    """The model with strong tables, in Linear and ExactlyOne rows only, none of them conditional."""
    return _without_conditions(_with_tables(model, _marginals))


def linearize_weakly(model: Model) -> Model:
    """The model with each table row as implications: right as well, and the foil of the strong form."""
    return _without_conditions(_with_tables(model, _implications))


def lifted(model: Model, values: Values) -> Values:
    """Values of the first model's variables with those that its linear form adds: for hints. None of a row is 1 where no row is met."""
    added = {literal: int(row == tuple(values[v] for v in table.variables)) for table in _tables(model) for literal, row in literals(table)}
    return {**values, **added}


def project(model: Model, values: Values) -> Values:
    """The part of the values that belongs to the first model."""
    return {variable: values[variable] for variable in model.variables}


def literals(table: Table) -> Choices:
    """A 0/1 variable for each different row that the ranges of the columns allow."""
    different = dict.fromkeys(table.rows)
    possible = (row for row in different if all(v.low <= value <= v.high for v, value in zip(table.variables, row, strict=True)))
    return tuple((Variable(f"{table.name}, row {place}"), row) for place, row in enumerate(possible, 1))


def _tables(model: Model) -> Iterator[Table]:
    return (constraint for constraint in model.constraints if isinstance(constraint, Table))


def _with_tables(model: Model, form: Callable[[Table, Choices], Iterator[Constraint]]) -> Model:
    """The model with every table replaced by one 0/1 variable a row and what the form says about them."""
    added: list[Variable] = []
    rows: list[Constraint] = []
    for constraint in model.constraints:
        if not isinstance(constraint, Table):
            rows.append(constraint)
            continue
        choices = literals(constraint)
        added += [literal for literal, _ in choices]
        rows.append(ExactlyOne(f"{constraint.name}, one row", tuple(literal for literal, _ in choices)))
        rows += form(constraint, choices)
    return replace(model, variables=(*model.variables, *added), constraints=tuple(rows))


def _marginals(table: Table, choices: Choices) -> Iterator[Constraint]:
    """For each column: the sum of value * row variable is the column's variable."""
    for column, variable in enumerate(table.variables):
        shares = tuple((row[column], literal) for literal, row in choices if row[column])
        yield Linear(f"{table.name}, {variable.name}", (*shares, (-1, variable)), 0, 0)


def _implications(table: Table, choices: Choices) -> Iterator[Constraint]:
    """For each row variable and column: if it is 1, the column's variable has the row's value."""
    for literal, row in choices:
        for variable, value in zip(table.variables, row, strict=True):
            yield Linear(f"{literal.name}, {variable.name}", ((1, variable),), value, value, given=literal)


def _without_conditions(model: Model) -> Model:
    rows: list[Constraint] = []
    for constraint in model.constraints:
        if isinstance(constraint, Linear) and constraint.given is not None:
            rows += _unconditional(constraint, constraint.given)
        else:
            rows.append(constraint)
    return replace(model, constraints=tuple(rows))


def _unconditional(row: Linear, given: Variable) -> Iterator[Linear]:
    """The row's two sides with the smallest M; a side that the ranges keep anyway is left out."""
    others = tuple(term for term in row.terms if term[1] != given)
    at_one = sum(coefficient for coefficient, variable in row.terms if variable == given)
    least, most = reach(others)
    if row.high is not None and most + at_one > row.high:
        slack = max(most - row.high, 0)
        yield Linear(f"{row.name}, at most", _also(others, at_one + slack, given), high=row.high + slack)
    if row.low is not None and least + at_one < row.low:
        slack = max(row.low - least, 0)
        yield Linear(f"{row.name}, at least", _also(others, at_one - slack, given), low=row.low - slack)


def _also(terms: Terms, coefficient: int, variable: Variable) -> Terms:
    return (*terms, (coefficient, variable)) if coefficient else terms
