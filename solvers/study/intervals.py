"""Figures that are known between two ends, and arithmetic on them that never narrows (Moore 1966): ends are sums,
products and quotients in whole numbers, rounded outward where they have to be rounded.

A question that is proved has an optimum whose ends are its bound and its value; so whatever is derived of it holds of the optimum itself,
and of a question that is not proved no more is claimed than its ends allow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf, isfinite, log, nextafter, sqrt
from typing import Literal

from crossopt.instances.studies.arithmetic import Call, Comparison, Figure, Formula, Name, Operation

Verdict = Literal["held", "failed", "open"]


@dataclass(frozen=True, slots=True)
class Ends:
    """The least and the greatest that a figure can be."""

    least: float
    most: float


def exactly(value: float) -> Ends:
    """A figure that is known."""
    return Ends(value, value)


Looked = Callable[[str], Ends | None]
"""What a name stands for; None where it says nothing."""
Elsewhere = Callable[[Call], Ends | None]
"""The same of a formula at another place."""


def figure_of(formula: Formula, named: Looked, elsewhere: Elsewhere) -> Ends | None:
    """Between which ends a formula lies; None where a part of it says nothing or has no value."""
    match formula:
        case Figure(value):
            return exactly(value)
        case Name(text):
            return named(text)
        case Operation(sign, left, right):
            one, other = figure_of(left, named, elsewhere), figure_of(right, named, elsewhere)
            return None if one is None or other is None else _whole(_OPERATIONS[sign], one, other)
        case Call(function, _, _) if function in {"at", "before"}:
            return elsewhere(formula)
        case Call(function, given, _):
            found = [figure_of(one, named, elsewhere) for one in given]
            known = [one for one in found if one is not None]
            return _whole(_FUNCTIONS[function], *known) if len(known) == len(found) else None


def verdict_of(claim: Comparison, named: Looked, elsewhere: Elsewhere) -> Verdict | None:
    """Whether a comparison holds for all figures between the ends, for none, or for some; None where it says nothing."""
    one, other = figure_of(claim.left, named, elsewhere), figure_of(claim.right, named, elsewhere)
    if one is None or other is None:
        return None
    less, more = (one, other) if claim.sign[0] == "<" else (other, one)
    if less.most < more.least or (claim.sign[1:] and less.most <= more.least):
        return "held"
    return "failed" if less.least > more.most or (not claim.sign[1:] and less.least >= more.most) else "open"


def _whole(operation: Callable[..., Ends | None], *given: Ends) -> Ends | None:
    """The result where it is one, of numbers that a computer has."""
    try:
        found = operation(*given)
    except (OverflowError, ValueError):
        return None
    return found if found and isfinite(found.least) and isfinite(found.most) else None


def _nearest(exact: Fraction) -> Ends:
    """The numbers that a computer has on both sides; twice the same where it is one."""
    near = float(exact)
    told = Fraction(near)
    return Ends(near if told <= exact else nextafter(near, -inf), near if told >= exact else nextafter(near, inf))


def _between(*corners: Fraction) -> Ends:
    return Ends(_nearest(min(corners)).least, _nearest(max(corners)).most)


def _exact(one: Ends) -> tuple[Fraction, Fraction]:
    return Fraction(one.least), Fraction(one.most)


def _sum(one: Ends, other: Ends) -> Ends:
    return _between(*(left + right for left, right in zip(_exact(one), _exact(other), strict=True)))


def _difference(one: Ends, other: Ends) -> Ends:
    return _between(Fraction(one.least) - Fraction(other.most), Fraction(one.most) - Fraction(other.least))


def _product(one: Ends, other: Ends) -> Ends:
    return _between(*(left * right for left in _exact(one) for right in _exact(other)))


def _quotient(one: Ends, other: Ends) -> Ends | None:
    if other.least <= 0.0 <= other.most:
        return None
    return _between(*(left / right for left in _exact(one) for right in _exact(other)))


def _wider(*ends: float) -> Ends:
    """Two steps outward: what a library rounds by less than one of them."""
    least, most = min(ends), max(ends)
    return Ends(nextafter(nextafter(least, -inf), -inf), nextafter(nextafter(most, inf), inf))


def _power(one: Ends, other: Ends) -> Ends | None:
    """Of positive figures."""
    if one.least <= 0.0:
        return None
    return _wider(*(left**right for left in (one.least, one.most) for right in (other.least, other.most)))


def _abs(one: Ends) -> Ends:
    ends = (abs(one.least), abs(one.most))
    return Ends(0.0 if one.least <= 0.0 <= one.most else min(ends), max(ends))


def _rising(function: Callable[[float], float]) -> Callable[[Ends], Ends]:
    """A function that rises."""
    return lambda one: _wider(function(one.least), function(one.most))


_OPERATIONS = {"+": _sum, "-": _difference, "*": _product, "/": _quotient, "**": _power}
_FUNCTIONS: dict[str, Callable[..., Ends | None]] = {
    "abs": _abs,
    "sqrt": _rising(sqrt),
    "log": _rising(log),
    "exp": _rising(exp),
    "min": lambda *given: Ends(min(one.least for one in given), min(one.most for one in given)),
    "max": lambda *given: Ends(max(one.least for one in given), max(one.most for one in given)),
}
