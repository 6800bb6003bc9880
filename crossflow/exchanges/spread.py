"""Placement of a group on the levels of a network: ranks along each level, units spanned, and links between neighbours.

Ranks that lie next to each other reach over as many units as there are of them; those with c other ranks between each two over c + 1 times
as many. Where ranks that are one group up to a level do not fill its units evenly nothing is claimed: they reach over all of it. Neighbours
of which no pair is told apart on a level are no links apart there, and where the whole group does not lie evenly, any number (infinity).
"""

from collections.abc import Callable, Iterable
from math import inf

import numpy as np

from crossopt.crossflow.arrays import Mask, Real


class Spread(tuple[Real, ...]):
    """Ranks along each level, innermost first, with the units spanned and the links between neighbours."""

    reaches: tuple[Real, ...]
    gaps: tuple[Real, ...]

    def __new__(cls, counts: Iterable[Real], reaches: Iterable[Real], gaps: Iterable[Real]) -> "Spread":
        """A `Spread` from one tuple of ranks, made as tuples are, with the other two."""
        found = super().__new__(cls, counts)
        found.reaches, found.gaps = tuple(reaches), tuple(gaps)
        return found


def reaches_of(members: tuple[Real, ...]) -> tuple[Real, ...]:
    """Units of each level that a group spans; all units if its placement is unknown."""
    return members.reaches if isinstance(members, Spread) else (inf,) * len(members)


def gaps_of(members: tuple[Real, ...]) -> tuple[Real, ...]:
    """Links between neighbours of a group on each level; unknown (infinity) if only the ranks are given."""
    return members.gaps if isinstance(members, Spread) else tuple(np.where(np.greater(count, 1.0), inf, 0.0) for count in members)


def anywhere(spread: Spread) -> Spread:
    """The spread of the same ranks if any two may be neighbours."""
    return Spread(spread, spread.reaches, (np.where(np.greater(gap, 0.0), inf, 0.0) for gap in spread.gaps))


def each(change: Callable[..., Real], *spreads: Spread) -> Spread:
    """One spread with all entries of several spreads."""
    return Spread(*(map(change, *parts) for parts in zip(*((one, one.reaches, one.gaps) for one in spreads), strict=True)))


def together(one: Spread, other: Spread) -> Spread:
    """The product of two spreads: the one that spans more is laid around the other."""
    counts = (here * there for here, there in zip(one, other, strict=True))
    return Spread(counts, map(np.maximum, one.reaches, other.reaches), map(np.maximum, one.gaps, other.gaps))


def either(choice: Mask, one: Spread, other: Spread) -> Spread:
    return each(lambda here, there: np.asarray(np.where(choice, here, there), np.float64), one, other)
