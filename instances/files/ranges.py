"""Ranges of options: from one number to another by equal steps, in a count of values, or by a factor.

Exact numbers until the caller rounds each once, so that errors cannot add up: every step is the float that the user would have written.
"""

from collections.abc import Iterator, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from itertools import accumulate, islice, repeat, takewhile
from math import lcm
from typing import Final

MOST_VALUES: Final = 100_000


def expand(start: Fraction, end: Fraction, ways: Mapping[str, Fraction], whole: bool) -> list[Fraction]:
    """The options of a range; a ValueError with the remedy where there are none or too many."""
    if not ways and whole:
        ways = {"step": Fraction(1)}
    if start > end:
        raise ValueError("the range is empty: 'from' is above 'to' (exchange them)")
    if len(ways) != 1:
        raise ValueError("a range needs exactly one of 'step', 'count' and 'factor'")
    [(way, amount)] = ways.items()
    counted = amount if way == "count" else (end - start) / amount + 1 if way == "step" and amount > 0 else 0
    options = list(islice(WAYS[way](start, end, amount), MOST_VALUES + 1)) if counted < MOST_VALUES + 1 else []
    if counted >= MOST_VALUES + 1 or len(options) > MOST_VALUES:
        raise ValueError(f"the range has more than {MOST_VALUES:,} values (choose a larger '{way}')")
    if whole and any(option.denominator != 1 for option in options):
        raise ValueError(f"this '{way}' gives numbers that are not whole (choose another, or list the values)")
    return options


def _stepped(start: Fraction, end: Fraction, step: Fraction) -> Iterator[Fraction]:
    if step <= 0:
        raise ValueError("'step' must be above zero")
    return _even(start, step, int((end - start) / step) + 1)


def _counted(start: Fraction, end: Fraction, count: Fraction) -> Iterator[Fraction]:
    if count == 1 and start != end:
        raise ValueError("a 'count' of 1 cannot hold both ends (give 2 or more, or a single value)")
    return _even(start, (end - start) / (count - 1 or 1), int(count))


def _even(start: Fraction, step: Fraction, number: int) -> Iterator[Fraction]:
    """So many equal steps, in whole numbers of one denominator: a sum of fractions takes several times as long."""
    unit = lcm(start.denominator, step.denominator)
    first, each = int(start * unit), int(step * unit)
    return (Fraction(first + index * each, unit) for index in range(number))


def _multiplied(start: Fraction, end: Fraction, factor: Fraction) -> Iterator[Fraction]:
    """start * factor^k; powers are kept to 50 digits: exact for any sensible factor, and small for a senseless one."""
    if start <= 0 or factor <= 1:
        raise ValueError("'factor' needs to be above 1, and 'from' above zero")
    digits = Context(prec=50)
    grow, limit = (digits.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)) for ratio in (factor, end / start))
    powers = accumulate(repeat(grow), digits.multiply, initial=Decimal(1))
    return (start * Fraction(power) for power in takewhile(lambda power: power <= limit, powers))


WAYS: Final = {"step": _stepped, "count": _counted, "factor": _multiplied}
