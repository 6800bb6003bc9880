"""Multipliers on memory raised between passes of messages: the bound from below, and labels from which a search can start.

With mu_r >= 0 for each row r of the timeline, in units of cost for the whole limit, the relaxed costs of strategy s of v are
c_v(s) + sum over members of use(s) / limit * sum of mu over the member's rows, and the bound pays sum of mu. Every few passes mu goes along
the memory that the decoded labels use beyond the limit, by Polyak's step towards a target above the bound (Polyak, 1969), with part of the
direction before it. The length of a direction counts as at least what chance alone would leave of the last one: where directions that
contradict each other nearly cancel, a step would leave everything that was reached.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.sharding.core import Core, Timeline, cost_of, in_use, timeline_of
from crossopt.formulation.sharding.dual import Dual, message_offsets
from crossopt.instances.errors import SolverError
from crossopt.solvers.sharding.messages.passes import Network, State, network_of, passed, state_of

_PASSES = 3
"""Between two steps of the multipliers."""
_FALL, _GROW, _LARGEST = 0.9, 1.03, 8.0
"""Of the stride: where the bound falls by a ten-thousandth, where it is above all before, and at most."""
_KEPT = 0.9
"""Of the direction before."""
_NOISE = (1.0 - _KEPT) / (1.0 + _KEPT)
"""What directions at random leave of their square when they are smoothed so."""
_STILL = 1e-9
"""The square of a direction that leads nowhere: the limit is met as it stands."""
_AHEAD = 0.1
"""How far above the bound the target lies, as a share of it."""


@dataclass(slots=True)
class Ascent:
    """Messages and multipliers on their way up."""

    core: Core
    timeline: Timeline
    network: Network
    state: State
    multipliers: Array
    """Of each row, in cost for the whole limit."""
    best_multipliers: Array
    """Where the bound was highest."""
    best_messages: Array
    direction: Array
    labels: Whole
    """As they were decoded last."""
    gained: float = 0.0
    best: float = -np.inf
    last: float = 0.0
    stride: float = 1.0
    rounds: int = 0
    feasible: Whole | None = None
    """The cheapest labels that kept the memory and every pair."""
    feasible_cost: int | None = None


def ascent_of(core: Core) -> Ascent:
    """Before the first pass."""
    timeline, network = timeline_of(core), network_of(core)
    rows = np.zeros(len(timeline.times))
    state = state_of(core, network)
    return Ascent(
        core,
        timeline,
        network,
        state,
        rows.copy(),
        rows.copy(),
        state.messages.copy(),
        rows.copy(),
        np.zeros(len(core), np.int64),
        float(core.constant),
    )


@np.errstate(over="ignore", invalid="ignore")  # prices of a limit that nothing keeps grow without end
def climb(ascent: Ascent, going: Callable[[float], bool], most: int = 1 << 30) -> None:
    """Rounds of passes and a step, until `going` of the bound says no."""
    for _ in range(most):
        best = ascent.best
        bound = settled(ascent)
        fell = bound < ascent.last - 1e-4 * abs(ascent.last)
        ascent.stride = min(ascent.stride * (_FALL if fell else _GROW if bound > best else 1.0), _LARGEST)
        ascent.last = bound
        if not going(bound):
            return
        _step(ascent)


def settled(ascent: Ascent) -> float:
    """Some passes and the bound that they come to; the best one is kept with all that proves it, and labels are decoded."""
    for turn in range(_PASSES):
        ascent.gained += passed(ascent.network, ascent.state, turn % 2 == 0)
    ascent.labels = ascent.state.labels.copy()
    ascent.rounds += 1
    bound = ascent.gained - float(ascent.multipliers.sum())
    _look(ascent)
    if bound > ascent.best:
        ascent.best, ascent.best_multipliers = bound, ascent.multipliers.copy()
        ascent.best_messages = ascent.state.messages.copy()
    return bound


def _look(ascent: Ascent) -> None:
    """Keeps the decoded labels where they may be chosen."""
    core, labels = ascent.core, ascent.state.labels
    cost = cost_of(core, labels)
    if cost is None or (ascent.feasible_cost is not None and cost >= ascent.feasible_cost):
        return
    if core.limit is None or in_use(core, ascent.timeline, labels).max(initial=0) <= core.limit:
        ascent.feasible, ascent.feasible_cost = labels.copy(), cost


def _step(ascent: Ascent) -> None:
    core = ascent.core
    if core.limit is None or not len(ascent.multipliers):
        return
    over = in_use(core, ascent.timeline, ascent.state.labels) / max(core.limit, 1) - 1.0
    direction = _KEPT * ascent.direction + (1.0 - _KEPT) * over
    at_zero = ascent.multipliers <= 0.0
    direction[at_zero & (direction < 0.0)] = 0.0
    over[at_zero & (over < 0.0)] = 0.0
    ascent.direction = direction
    length = max(float(direction @ direction), _NOISE * float(over @ over))
    if length <= _STILL:
        return
    ahead = ascent.stride * _AHEAD * (abs(ascent.best) + 1.0)
    move_to(ascent, np.maximum(ascent.multipliers + ahead / length * direction, 0.0))


def move_to(ascent: Ascent, multipliers: Array) -> None:
    """Other multipliers, with the costs of all strategies at them."""
    ascent.state.potentials[:] += priced(ascent.core, ascent.timeline, multipliers - ascent.multipliers)
    ascent.multipliers = multipliers


def priced(core: Core, timeline: Timeline, multipliers: Array) -> Array:
    """What the memory of each strategy costs at these multipliers."""
    if core.limit is None:
        return np.zeros(len(core.costs))
    paid = np.concatenate([np.zeros(1), np.cumsum(multipliers)])
    rates = (paid[timeline.highs] - paid[timeline.lows]) / max(core.limit, 1)
    lengths = np.diff(core.usage_offsets)
    places = np.repeat(core.offsets[core.member_nodes] - core.usage_offsets[:-1], lengths) + np.arange(len(core.usages))
    return np.asarray(np.bincount(places, core.usages * np.repeat(rates, lengths), len(core.costs)), np.float64)


@np.errstate(over="ignore", invalid="ignore")
def proof_of(ascent: Ascent, count: Callable[[Dual], int]) -> tuple[Dual, int]:
    """All that proves the bound, and the bound in whole numbers as it is counted, at the finest scale that leaves room for it."""
    core, network = ascent.core, ascent.network
    owners = np.repeat(np.arange(len(core)), np.diff(network.arcs.starts))
    limit = float(core.limit or 1)
    sides = []
    for side, offsets in zip((owners < network.arcs.others, owners > network.arcs.others), message_offsets(core), strict=True):
        arcs = np.flatnonzero(side)[np.argsort(network.arcs.edges[side])]
        lengths = core.counts[owners[arcs]]
        places = np.repeat(network.message_offsets[arcs] - offsets[:-1], lengths) + np.arange(offsets[-1])
        sides.append(-ascent.best_messages[places])
    most = max(float(core.costs.max(initial=0)), *(float(np.abs(side).max(initial=0.0)) for side in sides), 1.0)
    scale = 1 << max(min(40, 59 - int(np.ceil(np.log2(most)))), 0)
    while scale:
        paid = np.rint(np.minimum(np.cumsum(ascent.best_multipliers) * (scale / limit), 2.0**62))
        prices = np.diff(paid, prepend=0.0).astype(np.int64)
        firsts, seconds = (np.rint(np.clip(side * scale, -(2.0**62), 2.0**62)).astype(np.int64) for side in sides)
        dual = Dual(scale, ascent.timeline.times, prices, firsts, seconds)
        try:
            return dual, count(dual)
        except ValueError:
            scale >>= 1
    raise SolverError("the costs leave no room for prices")
