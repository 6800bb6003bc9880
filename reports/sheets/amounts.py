"""Values and bounds as text: exact, and rounded. Lower bounds are never rounded up."""

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

from crossopt.instances.files.units import dimension_named, rounded_quantity
from crossopt.solvers.answer import Number

_DIGITS = 7
_SECONDS = {"s": 1, "ms": 10**3, "ns": 10**9}
"""Units of time by how many of them a second has."""
REGRET = "of the optimum"
"""The unit of a regret."""
_DIMENSIONS = {"s": "time", "m^2": "area", "W": "power"}
_OF_AMOUNTS = {**_DIMENSIONS, "B": "bytes"}
_SHOWN = 4
"""Digits of a quantity: more say nothing to a reader."""
_BLINK = 0.001
"""Seconds that count as zero."""
_COUNTABLE = 10**10
_SUITED = ((9, "s"), (6, "ms"), (3, "us"))
_FEW = 6
"""Most names that are listed."""
_LONG = 10**7
"""Integers from which on digits are rounded."""


def digits(value: Number, unit: str) -> str:
    """With seven digits; whole numbers with all, and whole ns in the unit that suits them: 3,274,001 ns is 3.274001 ms. Areas are in mm^2,
    and regrets, shares of the optimum, in percent."""
    if unit == REGRET:
        return f"{value:.5%}"
    if unit == "m^2":
        return rounded_quantity(value, "area", _DIGITS)
    if unit == "ns" and isinstance(value, int):
        return _nanoseconds(value)
    return f"{value:,} {unit}".rstrip() if isinstance(value, int) else f"{value:.{_DIGITS}g} {unit}".rstrip()


def _nanoseconds(value: int) -> str:
    power, name = next(((power, name) for power, name in _SUITED if abs(value) >= 10**power), (0, "ns"))
    integer, part = divmod(abs(value), 10**power)
    behind = f".{part:0{power}d}".rstrip("0") if part else ""
    return f"{'-' * (value < 0)}{integer:,}{behind} {name}"


def digits_below(bound: Number, value: Number | None, unit: str) -> str:
    """A bound with its unit and all its digits, rounded down; written as the value is where both are equal."""
    if bound == value or isinstance(bound, int):
        return digits(bound, unit)
    if unit == REGRET:
        return f"{lowered(100.0 * bound, _DIGITS)}%"
    if unit == "m^2":
        return bound_amount(bound, unit)
    return f"{lowered(bound, _DIGITS)} {unit}".rstrip()


def short(value: Number, unit: str) -> str:
    """A time in the unit that suits it, other figures with five digits."""
    if unit in _SECONDS:
        return rounded_quantity(value / _SECONDS[unit], "time", 5)
    if unit in _DIMENSIONS:
        return rounded_quantity(value, _DIMENSIONS[unit], 5)
    if unit == REGRET:
        return f"{value:.3%}"
    return _integer_text(value, unit) if isinstance(value, int) else f"{value:.5g} {unit}".rstrip()


def short_below(bound: Number, value: Number | None, unit: str) -> str:
    """A bound in the unit that suits it, rounded down; written as the value is where both are equal."""
    if bound == value:
        return short(bound, unit)
    if unit in _SECONDS:
        return bound_amount(bound / _SECONDS[unit], "s")
    if unit in _DIMENSIONS:
        return bound_amount(bound, unit)
    if unit == REGRET:
        return f"{lowered(100.0 * bound)}%"
    return _integer_text(bound, unit) if isinstance(bound, int) else f"{lowered(bound)} {unit}".rstrip()


def _integer_text(figure: int, unit: str) -> str:
    """With commas; large ones with five digits, towards nothing, as bounds must be."""
    if abs(figure) < _LONG:
        return f"{figure:,} {unit}".rstrip()
    places = len(str(abs(figure))) - 1
    return f"{figure // 10 ** (places - 4) / 10**4:.4f}e{places} {unit}".rstrip()


def above(value: Number, best: Number | None) -> str:
    """How far it is above the best, for the end of a sentence."""
    return f", {value / best - 1.0:.1%} above".replace("-0.0%", "0.0%") if best else ""


def share_of(gap: float | None) -> str:
    """A share that does not look like none where there is one."""
    figure = gap or 0.0
    return f"{figure:.2%}" if not figure or figure >= 5e-5 else f"{figure:.1e}"


def several(number: int, what: str) -> str:
    """A number of things."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def listed(names: Sequence[str]) -> str:
    """Names in a row; of many the first ones, and how many others there are."""
    if len(names) <= _FEW:
        return ", ".join(names)
    return f"{', '.join(names[: _FEW - 1])} and {len(names) - _FEW + 1:,} more"


def seconds_of(seconds: float) -> str:
    """How long it took, as a person would say it."""
    if 0.0 < seconds < _BLINK:
        return "under 1 ms"
    return f"{seconds:.2g} s" if seconds < 10.0 else f"{count_of(round(seconds))} s"


def amount(value: float | None, unit: str) -> str:
    """A value of an objective."""
    if value is None:
        return "none"
    return shown(value, _OF_AMOUNTS[unit]) if unit in _OF_AMOUNTS else f"{value:.5g} {unit}".rstrip()


def bound_amount(bound: float, unit: str) -> str:
    """A bound in the unit that `amount` shows such a value in, with six digits, and never more than it is."""
    named = amount(bound, unit).rpartition(" ")[2] if unit else ""
    size = dimension_named(_OF_AMOUNTS[unit]).units[named] if unit in _OF_AMOUNTS else Fraction(1)
    scaled = Fraction(bound) / size
    with localcontext(prec=60, rounding=ROUND_FLOOR):
        number = Decimal(scaled.numerator) / Decimal(scaled.denominator)
        unit_digit = Decimal(1).scaleb(number.adjusted() - 5) if bound else Decimal(1)
        return f"{float(number.quantize(unit_digit)):.6g} {named}".rstrip()


def time_of(seconds: float) -> str:
    """A time with four digits."""
    return shown(seconds, "time")


def tokens_of(tokens: float) -> str:
    """A number of tokens as people say it, such as 15T."""
    size, letter = next((pair for pair in ((1e12, "T"), (1e9, "B"), (1e6, "M")) if tokens >= pair[0]), (1.0, ""))
    return f"{tokens / size:.4g}{letter}"


DAY = 86400.0
_YEAR = 365.25 * DAY
_YEARS_FROM = 1e4
"""Days from which on a time is shown in years."""
_SPANS = (("year", _YEAR, _YEARS_FROM * DAY), ("day", DAY, DAY), ("hour", 3600.0, 3600.0), ("minute", 60.0, 120.0))
"""Units of the length of a run, each with the seconds from which on it is used."""


def days_of(seconds: float) -> str:
    """The length of a run in days; in years, hours, minutes or seconds where that has fewer digits."""
    for unit, size, least in _SPANS:
        if seconds >= least:
            number = f"{seconds / size:,.4g}"
            return f"{number} {unit}{'s' * (number != '1')}"
    return time_of(seconds)


def days_between(low: float, high: float) -> str:
    """Two lengths of a run, the unit once where it is the same."""
    (least, unit), (most, other) = days_of(low).split(" ", 1), days_of(high).split(" ", 1)
    return f"{least}{'' if unit == other else f' {unit}'} to {most} {other}"


def shown(value: float, dimension: str) -> str:
    """A quantity with four digits: more say nothing to a reader."""
    return rounded_quantity(value, dimension, _SHOWN)


def lowered(bound: float, digits: int = 6) -> str:
    """A bound with so many digits, and never more than it is."""
    exact = Decimal(bound)
    unit_digit = Decimal(1).scaleb(exact.adjusted() + 1 - digits) if bound else Decimal(1)
    return f"{float(exact.quantize(unit_digit, ROUND_FLOOR)):.{digits}g}"


def count_of(number: int) -> str:
    """With commas; beyond a billion only how large it is."""
    return f"{number:,}" if number < _COUNTABLE else f"{number:.2g}".replace("e+", "e")


def with_unit(head: str, unit: str) -> str:
    """The head of a column of figures with their unit, where it says more than the head."""
    return f"{head} in {unit}" if unit and unit != head else head
