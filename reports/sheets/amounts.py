"""Values and bounds in words: exactly, and as people say them. No bound is told above what it is."""

from collections.abc import Sequence

from crossopt.instances.files.units import rounded_quantity
from crossopt.reports.texts.design import bound_amount, lowered
from crossopt.solvers.answer import Number

_DIGITS = 7
_SECONDS = {"s": 1, "ms": 10**3, "ns": 10**9}
"""Units of time by how many of them a second has."""
_SUITED = ((9, "s"), (6, "ms"), (3, "us"))
_FEW = 6
"""Names that are told."""
_LONG = 10**7
"""Whole numbers from which on not every digit is told."""


def digits(value: Number, unit: str) -> str:
    """With seven digits; whole numbers with all, and whole ns in the unit that suits them: 3,274,001 ns is 3.274001 ms."""
    if unit == "ns" and isinstance(value, int):
        return _nanoseconds(value)
    return f"{value:,} {unit}".rstrip() if isinstance(value, int) else f"{value:.{_DIGITS}g} {unit}".rstrip()


def _nanoseconds(value: int) -> str:
    power, name = next(((power, name) for power, name in _SUITED if abs(value) >= 10**power), (0, "ns"))
    whole, part = divmod(abs(value), 10**power)
    behind = f".{part:0{power}d}".rstrip("0") if part else ""
    return f"{'-' * (value < 0)}{whole:,}{behind} {name}"


def digits_below(bound: Number, value: Number | None, unit: str) -> str:
    """The same of a bound."""
    if bound == value or isinstance(bound, int):
        return digits(bound, unit)
    return f"{lowered(bound, _DIGITS)} {unit}".rstrip()


def short(value: Number, unit: str) -> str:
    """A time in the unit that suits it, other figures with five digits."""
    if unit in _SECONDS:
        return rounded_quantity(value / _SECONDS[unit], "time", 5)
    return _counted(value, unit) if isinstance(value, int) else f"{value:.5g} {unit}".rstrip()


def short_below(bound: Number, value: Number | None, unit: str) -> str:
    """The same of a bound."""
    if bound == value:
        return short(bound, unit)
    if unit in _SECONDS:
        return bound_amount(bound / _SECONDS[unit], "s")
    return _counted(bound, unit) if isinstance(bound, int) else f"{lowered(bound)} {unit}".rstrip()


def _counted(figure: int, unit: str) -> str:
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
