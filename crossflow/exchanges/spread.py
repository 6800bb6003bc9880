"""How a group lies on the levels of a network: how many ranks it has along each, and over how many units of the level it reaches.

Ranks that lie next to each other reach over as many units as there are of them; those with c other ranks between each two over c + 1 times
as many. A group that no pair of which a level tells apart reaches over one unit there. Where a group does not fill the units of a level
evenly nothing is claimed (infinity): it may reach over all of it.
"""

from collections.abc import Callable, Iterable
from math import inf

import numpy as np

from crossopt.crossflow.arrays import Mask, Real


class Spread(tuple[Real, ...]):
    """Ranks along each level, innermost first, with the units that they reach over."""

    reaches: tuple[Real, ...]

    def __new__(cls, counts: Iterable[Real], reaches: Iterable[Real] = ()) -> "Spread":
        """Of one tuple of numbers, as tuples are made, and another beside it."""
        found = super().__new__(cls, counts)
        found.reaches = tuple(reaches)
        return found


def reaches_of(members: tuple[Real, ...]) -> tuple[Real, ...]:
    """Units of each level that a group reaches over; where only ranks are known it may be all, where there are several."""
    return members.reaches if isinstance(members, Spread) else tuple(np.where(np.greater(count, 1.0), inf, 1.0) for count in members)


def each(change: Callable[..., Real], *spreads: Spread) -> Spread:
    """The same made of all numbers of some spreads."""
    return Spread(map(change, *spreads), map(change, *(one.reaches for one in spreads)))


def together(one: Spread, other: Spread) -> Spread:
    """The ranks of both: those of the one that reaches farther lie around those of the other."""
    counts = (here * there for here, there in zip(one, other, strict=True))
    return Spread(counts, map(np.maximum, one.reaches, other.reaches))


def either(choice: Mask, one: Spread, other: Spread) -> Spread:
    return each(lambda here, there: np.asarray(np.where(choice, here, there), np.float64), one, other)
