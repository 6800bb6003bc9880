"""Integer models that every solver honours exactly: variables and rows, rounding to integers, linear rows, arrays, and job shops."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from math import floor, frexp, inf, isfinite, log2
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from crossopt.crossflow.arrays import Array, Ints, Mask

# A linear or integer model in arrays, for models of which Python objects would be too many.


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Linear rows: the terms of row r stand from `starts[r]` to `starts[r + 1]`."""

    lows: Array
    highs: Array
    starts: Ints
    columns: Ints
    factors: Array


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A linear or integer model: columns from 0 on whose costs add up to what is minimised, and its rows."""

    unit: float
    """What a cost of 1 stands for."""
    costs: Array
    highs: Array
    """All columns are from 0 on."""
    integral: Mask
    """Which columns are integers."""
    rows: Rows


# A choice among integers, with nothing in it but what every solver honours exactly.
#
#     variables     x_i integer, low_i <= x_i <= high_i
#     rows          Linear        low <= sum of c_i x_i <= high, asked always or only where a 0/1 variable is 1
#                   ExactlyOne    one of some 0/1 variables is 1, the others are 0
#                   Table         (x_i, x_j, ...) is one of the listed rows
#     objective     minimise or maximise the sum of c_i x_i + constant
#
# There is no tolerance: a row is kept or it is not, in Python's own integers. What a model cannot say is refused when it is built.

EXACT = 2**53
"""The largest number that a solver in floating point still tells from its neighbours."""
REACH = 2**62
"""What a row's terms may add up to at most: half of what 64 bits hold, so that a sum and its slack both fit."""

_Thing = TypeVar("_Thing")


@dataclass(frozen=True, slots=True)
class Variable:
    """An integer from low to high; 0 to 1 where it stands for a choice that is made or not."""

    name: str
    low: int = 0
    high: int = 1

    def __post_init__(self) -> None:
        _refuse(not self.name, "a variable needs a name")
        _integers(self.name, (self.low, self.high), EXACT)
        _refuse(self.low > self.high, f"{self.name}: no integer is at least {self.low} and at most {self.high}")

    @property
    def choice(self) -> bool:
        """Whether it is 0 or 1."""
        return self.low >= 0 and self.high <= 1


Values = Mapping[Variable, int]
Terms = tuple[tuple[int, Variable], ...]


@dataclass(frozen=True, slots=True)
class Linear:
    """low <= sum of coefficient * variable <= high, asked only where `given` (a 0/1 variable) is 1; None for an open side."""

    name: str
    terms: Terms
    low: int | None = None
    high: int | None = None
    given: Variable | None = None

    def __post_init__(self) -> None:
        limits = [limit for limit in (self.low, self.high) if limit is not None]
        _integers(self.name, limits, REACH)
        _refuse(not limits, f"{self.name}: a row without limits asks nothing")
        _refuse(limits[0] > limits[-1], f"{self.name}: no sum is at least {self.low} and at most {self.high}")
        _refuse(self.given is not None and not self.given.choice, f"{self.name}: only a 0/1 variable can say when a row is asked")
        _terms(self.name, self.terms)

    def violation(self, values: Values) -> int:
        """By how much the sum misses its limits."""
        if self.given is not None and not values[self.given]:
            return 0
        reached = total(self.terms, values)
        return max(0 if self.low is None else self.low - reached, 0 if self.high is None else reached - self.high, 0)


@dataclass(frozen=True, slots=True)
class ExactlyOne:
    """One of the 0/1 variables is 1. Of no variables none can be, so that such a row is never kept."""

    name: str
    variables: tuple[Variable, ...]

    def __post_init__(self) -> None:
        _once(self.name, self.variables)
        for variable in self.variables:
            _refuse(not variable.choice, f"{self.name}: {variable.name} is from {variable.low} to {variable.high}, not a 0/1 variable")

    def violation(self, values: Values) -> int:
        """How many too many or too few are 1."""
        return abs(sum(values[variable] for variable in self.variables) - 1)


@dataclass(frozen=True, slots=True)
class Table:
    """The variables together equal one of the rows. A table without rows is never kept."""

    name: str
    variables: tuple[Variable, ...]
    rows: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        _refuse(not self.variables, f"{self.name}: a table needs a variable")
        _once(self.name, self.variables)
        width = len(self.variables)
        for row in self.rows:
            if len(row) != width:
                raise ValueError(f"{self.name}: the row {row} has {len(row)} values for {width} variables")
        _integers(self.name, chain.from_iterable(self.rows), EXACT)

    def violation(self, values: Values) -> int:
        """How many of the variables would have to change to meet the nearest row."""
        given = tuple(values[variable] for variable in self.variables)
        if given in self.rows:
            return 0
        return min((sum(a != b for a, b in zip(row, given, strict=True)) for row in self.rows), default=len(given))


Constraint = Linear | ExactlyOne | Table


@dataclass(frozen=True, slots=True)
class Model:
    """Variables, rows and an objective; of an empty objective every solution is the best."""

    variables: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]
    objective: Terms = ()
    constant: int = 0
    minimise: bool = True

    def __post_init__(self) -> None:
        _unique("variable", [variable.name for variable in self.variables])
        _unique("row", [constraint.name for constraint in self.constraints])
        known = set(self.variables)
        for constraint in self.constraints:
            _known(constraint.name, variables_of(constraint), known)
        _terms("objective", self.objective)
        _integers("objective", (self.constant,), EXACT)
        _known("objective", [variable for _, variable in self.objective], known)

    @property
    def sign(self) -> int:
        """1 where less is better, -1 where more is."""
        return 1 if self.minimise else -1

    def objective_value(self, values: Values) -> int:
        """What the objective is at these values."""
        return total(self.objective, values) + self.constant

    def domain_bound(self) -> int:
        """What no values reach better than, by the ranges of the variables alone."""
        least, most = reach(self.objective)
        return (least if self.minimise else most) + self.constant


def total(terms: Terms, values: Values) -> int:
    """The sum of coefficient * value."""
    return sum(coefficient * values[variable] for coefficient, variable in terms)


def reach(terms: Terms) -> tuple[int, int]:
    """The least and the most that a sum can be, by the ranges of its variables."""
    least = sum(c * (v.low if c > 0 else v.high) for c, v in terms)
    return least, sum(c * (v.high if c > 0 else v.low) for c, v in terms)


def variables_of(constraint: Constraint) -> tuple[Variable, ...]:
    """Every variable that a row names."""
    if isinstance(constraint, Linear):
        condition = () if constraint.given is None else (constraint.given,)
        return (*(variable for _, variable in constraint.terms), *condition)
    return constraint.variables


def violations(model: Model, values: Values) -> tuple[str, ...]:
    """A sentence for each range and row that the values break; none for a solution."""
    outside = tuple(chain.from_iterable(_outside(variable, values) for variable in model.variables))
    if outside:
        return outside
    return tuple(_sentence(row, values) for row in model.constraints if row.violation(values))


def _outside(variable: Variable, values: Values) -> tuple[str, ...]:
    if variable not in values:
        return (f"{variable.name} has no value",)
    value = values[variable]
    if not isinstance(value, int):
        return (f"{variable.name} = {value} is not an integer",)
    if not variable.low <= value <= variable.high:
        return (f"{variable.name} = {value} is not from {variable.low} to {variable.high}",)
    return ()


def _sentence(constraint: Constraint, values: Values) -> str:
    missing = constraint.violation(values)
    if isinstance(constraint, Linear):
        reached = total(constraint.terms, values)
        below = constraint.low is not None and reached < constraint.low
        limit = f"least {constraint.low}" if below else f"most {constraint.high}"
        return f"{constraint.name}: {reached} where at {limit} is asked, off by {missing}"
    if isinstance(constraint, ExactlyOne):
        return f"{constraint.name}: {sum(values[variable] for variable in constraint.variables)} are chosen where one is asked"
    given = ", ".join(f"{variable.name} = {values[variable]}" for variable in constraint.variables)
    return f"{constraint.name}: {given} is none of {len(constraint.rows)} rows, off in {missing}"


def _terms(name: str, terms: Terms) -> None:
    """Refuses terms that name a variable twice or that 64 bits might not hold."""
    _integers(name, (coefficient for coefficient, _ in terms), EXACT)
    _once(name, [variable for _, variable in terms])
    largest = sum(abs(c) * max(abs(v.low), abs(v.high)) for c, v in terms)
    _refuse(largest > REACH, f"{name}: its terms may add up to {largest:.3g}, beyond what 64 bits hold; use a coarser quantum")


def _integers(name: str, numbers: Iterable[int], largest: int) -> None:
    for number in numbers:
        if not isinstance(number, int):
            raise ValueError(f"{name}: {number!r} is a {type(number).__name__}, a Python integer is needed")
        if abs(number) > largest:
            raise ValueError(f"{name}: {number} is beyond {largest}, where numbers are no longer exact; use a coarser quantum")


def _once(name: str, variables: Sequence[Variable]) -> None:
    if len(set(variables)) < len(variables):
        raise ValueError(f"{name}: names {_repeated(variables).name} twice")


def _unique(kind: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"two {kind}s are called {_repeated(names)!r}")


def _repeated(things: Sequence[_Thing]) -> _Thing:
    return next(thing for index, thing in enumerate(things) if thing in things[:index])


def _known(name: str, variables: Sequence[Variable], known: set[Variable]) -> None:
    for variable in variables:
        if variable not in known:
            raise ValueError(f"{name}: {variable.name} is not a variable of the model")


def _refuse(wrong: bool, sentence: str) -> None:
    if wrong:
        raise ValueError(sentence)


# Reals become integers here, and in one direction: costs and usage are floored, capacities are ceiled.
#
#     integer cost = floor(cost / quantum),  integer usage = floor(usage / quantum),  integer capacity = ceil(capacity / quantum)
#
# Then each real solution is an integer solution, as floor(u1) + floor(u2) + ... <= u1 + u2 + ... <= capacity <= ceil(capacity), and costs
# no more than in reality. So the integer optimum times the quantum never exceeds the real optimum: it is a valid lower bound of the real
# problem. It lies below by less than one quantum for each cost that is added.
#
# A quantum is a power of two. Dividing by it is then exact in floating point, and so is the way back: no rounding but the one that is
# meant.


def quantum_for(largest: float, steps: int) -> float:
    """The finest power of two of which `largest` is at most `steps`."""
    if not (isfinite(largest) and largest > 0 and steps >= 1):
        raise ValueError(f"no quantum for values up to {largest} in {steps} steps: a positive number and at least one step are needed")
    quantum = 2.0 ** floor(log2(largest / steps))
    return quantum if largest <= steps * quantum else 2 * quantum


def floored(reals: ArrayLike, quantum: float) -> Ints:
    """Costs or usage in whole quanta, rounded down; `.tolist()` gives the Python integers that a model asks for."""
    values = np.asarray(reals, dtype=np.float64)
    quanta = np.floor(_scaled(values, quantum))
    return (quanta - (quanta * quantum > values)).astype(np.int64)  # a tiny negative value may have been scaled to zero


def ceiled(reals: ArrayLike, quantum: float) -> Ints:
    """Capacities in whole quanta, rounded up."""
    return -floored(-np.asarray(reals, dtype=np.float64), quantum)


def real(quanta: int, quantum: float) -> float:
    """The real number that a bound in quanta stands for, and never one above it."""
    _power_of_two(quantum)
    exact = Fraction(quanta) * Fraction(quantum)
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else float(np.nextafter(nearest, -inf))


def _scaled(values: Array, quantum: float) -> Array:
    _power_of_two(quantum)
    with np.errstate(over="ignore", under="ignore"):
        scaled = values / quantum
    if not np.all(np.abs(scaled) <= EXACT):
        raise ValueError("a value is not finite or has more than 2**53 quanta; use a coarser quantum")
    return scaled


def _power_of_two(quantum: float) -> None:
    if not (isfinite(quantum) and quantum > 0 and frexp(quantum)[0] == 0.5):
        raise ValueError(f"the quantum {quantum} is not a power of two; `quantum_for` finds one")


# Linearization, for solvers that support only linear rows. Each function takes a model and returns a model.
#
#     table             one 0/1 variable a row, t_r; exactly one of them is 1; for each column k with variable x_k
#                           sum over r of row_r[k] * t_r = x_k
#                       Where x_k is a 0/1 choice this says that the rows with that choice carry just its share (marginals), also in the
#                       relaxation that a MILP solver bounds with: no fraction of a row can be had without the same fraction of its choices.
#     row if g = 1      sum <= high becomes  sum + M g <= high + M  with  M = (most that the sum can be with g = 0) - high,
#                       sum >= low  becomes  sum - M g >= low - M   with  M = low - (least that the sum can be with g = 0),
#                       the smallest M that leaves the row without effect at g = 0.
#
# The solutions, read off on the variables of the first model, are the same ones.

Choices = tuple[tuple[Variable, tuple[int, ...]], ...]
"""A 0/1 variable for each row of a table."""


def linearize(model: Model) -> Model:
    """The model in Linear and ExactlyOne rows only, none of them conditional."""
    return _without_conditions(_without_tables(model))


def lifted(model: Model, values: Values) -> Values:
    """Values of the first model's variables with those that its linear form adds: for hints. None of a row is 1 where no row is met."""
    added = {literal: int(row == tuple(values[v] for v in table.variables)) for table in _tables(model) for literal, row in literals(table)}
    return {**values, **added}


def literals(table: Table) -> Choices:
    """A 0/1 variable for each different row that the ranges of the columns allow."""
    different = dict.fromkeys(table.rows)
    possible = (row for row in different if all(v.low <= value <= v.high for v, value in zip(table.variables, row, strict=True)))
    return tuple((Variable(f"{table.name}, row {number}"), row) for number, row in enumerate(possible, 1))


def _tables(model: Model) -> Iterator[Table]:
    return (constraint for constraint in model.constraints if isinstance(constraint, Table))


def _without_tables(model: Model) -> Model:
    """The model with every table replaced by one 0/1 variable per row, and their marginals."""
    added: list[Variable] = []
    rows: list[Constraint] = []
    for constraint in model.constraints:
        if not isinstance(constraint, Table):
            rows.append(constraint)
            continue
        choices = literals(constraint)
        added += [literal for literal, _ in choices]
        rows.append(ExactlyOne(f"{constraint.name}, one row", tuple(literal for literal, _ in choices)))
        rows += _marginals(constraint, choices)
    return replace(model, variables=(*model.variables, *added), constraints=tuple(rows))


def _marginals(table: Table, choices: Choices) -> Iterator[Constraint]:
    """For each column: the sum of value * row variable is the column's variable."""
    for column, variable in enumerate(table.variables):
        shares = tuple((row[column], literal) for literal, row in choices if row[column])
        yield Linear(f"{table.name}, {variable.name}", (*shares, (-1, variable)), 0, 0)


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


# A job shop whose jobs are alike: each goes one of several ways over the machines, which may be visited more than once.
#
#     choose for each job a way, and starts of its operations, so that an operation begins when the one before it has ended, and no machine
#     works on two at once; the end of the last one is to be least
#
# This is what a solver of schedules takes as it is (`solvers.backends.cpsat`): intervals that do not overlap.

Way = tuple[tuple[int, int], ...]
"""Machines and durations, one after another."""


@dataclass(frozen=True, slots=True)
class Shop:
    """What is asked."""

    jobs: int
    ways: tuple[Way, ...]
    """Each visits every machine equally often."""
    least: int
    """No schedule ends before this."""
    most: int
    """One that ends at this is known; better ones are looked for."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What a solver found; no ways and starts where nothing is better than what is known."""

    bound: int
    """No schedule ends before this, as the solver says."""
    ways: tuple[int, ...] = ()
    """Of each job."""
    starts: tuple[tuple[int, ...], ...] = ()
    """Of the operations of each job, in the order of its way."""

    def sequences(self, shop: Shop) -> tuple[tuple[int, ...], ...]:
        """The jobs of each machine by their starts."""
        visits = [
            (start, job, machine)
            for job, (way, starts) in enumerate(zip(self.ways, self.starts, strict=True))
            for start, (machine, _) in zip(starts, shop.ways[way], strict=True)
        ]
        machines = 1 + max(machine for machine, _ in shop.ways[0])
        return tuple(tuple(job for _, job, at in sorted(visits) if at == machine) for machine in range(machines))
