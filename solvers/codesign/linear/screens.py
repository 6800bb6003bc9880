"""Prices of plans on the budgets, as a proof keeps them: one line a plan, in few digits, and written in one way only."""

from collections.abc import Sequence
from dataclasses import dataclass

from crossopt.formulation.certificate import numbers_in


@dataclass(frozen=True, slots=True)
class Screen:
    """Of each plan the chips at which it has a tangent, a price for each budget and a share for each tangent."""

    points: tuple[tuple[tuple[int, ...], ...], ...]
    """Of each chip the place of the literal of each part, among those that are left."""
    prices: tuple[tuple[float, ...], ...]
    shares: tuple[tuple[float, ...], ...]


def lines_of(screen: Screen) -> tuple[str, ...]:
    """A line for each plan: chips between commas, prices and shares, between semicolons."""
    return tuple(
        "; ".join((", ".join(" ".join(map(str, point)) for point in points), _reals(prices), _reals(shares)))
        for points, prices, shares in zip(screen.points, screen.prices, screen.shares, strict=True)
    )


def screen_in(lines: Sequence[str]) -> Screen:
    """The screen of such lines; a ValueError where one is none."""
    points, prices, shares = [], [], []
    for line in lines:
        words = line.split("; ")
        if len(words) != 3:
            raise ValueError(f"{line[:40]!r} has no chips, prices and shares")
        points.append(tuple(numbers_in(point) for point in words[0].split(", ")))
        prices.append(_reals_in(words[1]))
        shares.append(_reals_in(words[2]))
    return Screen(tuple(points), tuple(prices), tuple(shares))


def _reals(figures: Sequence[float]) -> str:
    return " ".join(repr(figure) for figure in figures)


def _reals_in(text: str) -> tuple[float, ...]:
    found = tuple(float(word) for word in text.split(" ")) if text else ()
    if _reals(found) != text:
        raise ValueError(f"{text[:40]!r} is no line of figures")
    return found
