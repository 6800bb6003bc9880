"""A first choice that keeps memory: multipliers rise wherever too much is in use until regions, each at its best, fit."""

from collections.abc import Callable

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.sharding.core import Core, cost_of, in_use
from crossopt.solvers.sharding.search.layout import standing_of
from crossopt.solvers.sharding.search.walk import SIZES, Walker, pull
from crossopt.solvers.sharding.search.walker import price_whole

RISE = 1.3
_SOFT = 60
"""Rounds in which memory may move from time to time before none may be added where the limit is broken."""

_MOVES = 4
"""Before the clock is looked at."""


@np.errstate(over="ignore", invalid="ignore")
def fitted(core: Core, walker: Walker, multipliers: Array, going: Callable[[], bool], rise: float = RISE) -> Whole | None:
    """Labels that may be chosen, or None where time ended before; the walker says from where, and what it has room for."""
    multipliers, labels = multipliers.copy(), walker.standing.labels.copy()
    rounds = 0
    while going():
        used = in_use(core, walker.layout.timeline, labels)
        over = used > (used.max(initial=0) if core.limit is None else core.limit)
        if not over.any() and cost_of(core, labels) is not None:
            return labels
        some = multipliers[multipliers > 0.0]
        least = some.mean() / 8.0 if len(some) else abs(float(walker.standing.figures[0])) / max(len(used), 1) + 1.0
        multipliers[over] = np.maximum(multipliers[over] * rise, least)
        prices = price_whole(core, walker.layout, multipliers)
        walker = walker._replace(standing=standing_of(core, walker.layout, labels), prices=prices)
        size = int(SIZES[-1] if rounds % 2 == 0 else SIZES[-2])
        moves = 1 + 2 * len(core) // size
        while moves > 0 and going():
            pull(walker, min(moves, _MOVES), size, rounds >= _SOFT)
            moves -= _MOVES
        labels = walker.standing.labels
        rounds += 1
    return None
