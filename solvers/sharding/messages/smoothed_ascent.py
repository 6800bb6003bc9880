"""The climb once steps along single choices gain little: smoothed passes at falling heat, and multipliers along mean memory.

Labels that are decoded node by node take memory that no best mixture takes, and lead the multipliers away. At some heat each node weighs
its strategies instead, and what they take on average is the slope of the smoothed bound in the multipliers. Steps along it are scaled row
by row (Adam; Kingma and Ba, 2015). The heat begins at a part of what a node costs, and falls by the clock; now and then plain passes show
the bound that this has come to.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.solvers.sharding.messages.ascent import Ascent, move_to, settled
from crossopt.solvers.sharding.messages.smoothing import smoothed

_ROUNDS = 8
"""Of smoothed passes, forth and back, between plain ones."""
_COLDEST = 0.003
"""Of the first heat, what is left at the end."""
_STRIDE = 1.0
"""How far each multiplier goes in a step, as a multiple of its share of the heat of all nodes; those at zero have none."""
_HOTTEST = 0.1
"""Of a node's share of the bound, the first heat. A share of the gap would be too little where few nodes make up most of the gap."""
_KEPT, _REMEMBERED = 0.9, 0.99
"""Of the directions before, and of their squares."""
_FINEST = 1e-3
"""A share of the limit; directions below it are not scaled up."""


@dataclass(slots=True)
class Cooling:
    """The heat at first, and what steps remember."""

    heat: float
    weights: Array
    """Of each strategy."""
    direction: Array
    square: Array
    steps: int = 0


def cooling_of(ascent: Ascent) -> Cooling:
    """Ready to cool."""
    heat = _HOTTEST * (abs(ascent.best) + 1.0) / max(len(ascent.core), 1)
    rows = len(ascent.multipliers)
    return Cooling(heat, np.zeros(len(ascent.core.costs)), np.zeros(rows), np.zeros(rows))


@np.errstate(over="ignore", invalid="ignore")
def cool(ascent: Ascent, cooling: Cooling, share: Callable[[], float], going: Callable[[], bool], most: int = 1 << 30) -> None:
    """Rounds until `going` says no, ever colder with the `share` of the time that is gone."""
    for _ in range(most):
        heat = cooling.heat * _COLDEST ** share()
        for _ in range(_ROUNDS):
            if not going():
                break
            for forward in (True, False):
                ascent.gained += smoothed(ascent.network, ascent.state, cooling.weights, heat, forward)
            _step(ascent, cooling, heat)
        settled(ascent)
        if not going():
            return


def _step(ascent: Ascent, cooling: Cooling, heat: float) -> None:
    core = ascent.core
    if core.limit is None or not len(ascent.multipliers):
        return
    over = _mean_use(ascent, cooling.weights) / max(core.limit, 1) - 1.0
    cooling.steps += 1
    cooling.direction = _KEPT * cooling.direction + (1.0 - _KEPT) * over
    cooling.square = _REMEMBERED * cooling.square + (1.0 - _REMEMBERED) * over * over
    direction = cooling.direction / (1.0 - _KEPT**cooling.steps)
    length = np.sqrt(cooling.square / (1.0 - _REMEMBERED**cooling.steps)) + _FINEST
    stride = _STRIDE * heat * len(core) / max(int(np.count_nonzero(ascent.multipliers)), 1)
    move_to(ascent, np.maximum(ascent.multipliers + stride * direction / length, 0.0))


def _mean_use(ascent: Ascent, weights: Array) -> Array:
    """Memory in each row, as the weights have it on average."""
    core, timeline = ascent.core, ascent.timeline
    lengths = np.diff(core.usage_offsets)
    places = np.repeat(core.offsets[core.member_nodes] - core.usage_offsets[:-1], lengths) + np.arange(len(core.usages))
    held = np.add.reduceat(core.usages * weights[places], core.usage_offsets[:-1])
    rows = len(timeline.times) + 1
    return np.cumsum(np.bincount(timeline.lows, held, rows) - np.bincount(timeline.highs, held, rows))[:-1]
