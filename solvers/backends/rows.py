"""Linear rows as files and floating point take them: one side each, under short names, in numbers that they hold exactly."""

from collections.abc import Iterator

from crossopt.formulation.model import EXACT, ExactlyOne, Linear, Model, Terms, reach

DIGITS = 10**12
"""PuLP writes files with twelve digits; a larger number would lose its last ones."""
Row = tuple[str, Terms, int, int]
"""Name, terms, PuLP's sense (-1 at most, 0 equal, 1 at least) and limit."""


def rows_of(linear: Model) -> Iterator[Row]:
    """One-sided and equal rows, with short names: `r7` for the eighth row of the model, `r7_low` and `r7_high` where it has two sides."""
    for place, row in enumerate(linear.constraints):
        name = f"r{place}"
        if isinstance(row, ExactlyOne):
            yield name, tuple((1, variable) for variable in row.variables), 0, 1
            continue
        if not isinstance(row, Linear) or row.given is not None:
            raise TypeError(f"{row.name}: not a plain linear row; `linearize` makes it one")
        exact(row.name, row.terms)
        if row.low is not None and row.low == row.high:
            yield name, row.terms, 0, row.low
            continue
        if row.low is not None:
            yield f"{name}_low", row.terms, 1, row.low
        if row.high is not None:
            yield f"{name}_high", row.terms, -1, row.high


def printable(linear: Model) -> None:
    """Refuses a model with numbers of more digits than PuLP writes to files."""
    limits = [limit for row in linear.constraints if isinstance(row, Linear) for limit in (row.low, row.high) if limit is not None]
    factors = [c for row in linear.constraints if isinstance(row, Linear) for c, _ in row.terms] + [c for c, _ in linear.objective]
    ranges = [end for variable in linear.variables for end in (variable.low, variable.high)]
    largest = max(map(abs, (*limits, *factors, *ranges, linear.constant)))
    if largest > DIGITS:
        raise ValueError(f"the number {largest} has more digits than the file keeps; use a coarser quantum")


def exact(name: str, terms: Terms) -> None:
    """Refuses a sum that floating point could not hold to the unit."""
    least, most = reach(terms)
    if max(-least, most) > EXACT:
        raise ValueError(f"{name}: its terms may add up to more than 2**53, too much for floating point; take cpsat or a coarser quantum")
