"""A choice among integers, with nothing in it but what every solver honours exactly.

    variables     x_i integer, low_i <= x_i <= high_i
    rows          Linear        low <= sum of c_i x_i <= high, asked always or only where a 0/1 variable is 1
                  ExactlyOne    one of some 0/1 variables is 1, the others are 0
                  Table         (x_i, x_j, ...) is one of the listed rows
    objective     minimise or maximise the sum of c_i x_i + constant

There is no tolerance: a row is kept or it is not, in Python's own integers. What a model cannot say is refused when it is built.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

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
    return next(thing for place, thing in enumerate(things) if thing in things[:place])


def _known(name: str, variables: Sequence[Variable], known: set[Variable]) -> None:
    for variable in variables:
        if variable not in known:
            raise ValueError(f"{name}: {variable.name} is not a variable of the model")


def _refuse(wrong: bool, sentence: str) -> None:
    if wrong:
        raise ValueError(sentence)
