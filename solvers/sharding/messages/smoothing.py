"""A pass of messages whose leasts are smoothed: minus heat times the logarithm of the sum of exp(-cost / heat).

Passes that take leasts stop at corners where no single message can gain any more, though several together could. Smoothed leasts have no
corners, and passes come as near the best smoothed bound as they like; with less and less heat that bound nears the best one of all messages
(Savchynskyy, Schmidt, Kappes and Schnoerr, 2012, Efficient MRF energy minimization via adaptive diminishing smoothing). A smoothed least is
never above the least, so what an edge gives stays below what it has, and what a pass gains remains a bound.
"""

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.formulation.compiled import compiled
from crossopt.solvers.sharding.messages.passes import Network, State, hand_on, lowered

_FAINT = -25.0
"""Exponents below it add nothing that counts."""


@compiled
def smoothed(network: Network, state: State, weights: Array, heat: float, forward: bool) -> float:
    """One pass as `passed` makes it, but for labels; what it gained. `weights` become each node's preferences, which sum up to 1."""
    nodes = len(network.offsets) - 1
    gained = 0.0
    for turn in range(nodes):
        node = turn if forward else nodes - 1 - turn
        first, middle, last = network.arcs.starts[node], network.middles[node], network.arcs.starts[node + 1]
        before = (first, middle) if forward else (middle, last)
        after = (middle, last) if forward else (first, middle)
        own = state.potentials[network.offsets[node] : network.offsets[node + 1]]
        for arc in range(before[0], before[1]):
            _take(network, state, arc, own, heat)
        gained += lowered(own)
        share = 1.0 / max(middle - first, last - middle, 1)
        _weigh(own, share / heat, weights[network.offsets[node] : network.offsets[node + 1]])
        hand_on(network, state, after, own, share)
    return gained


@compiled
def _weigh(own: Array, rate: float, weights: Array) -> None:
    total = 0.0
    for strategy in range(len(own)):
        weights[strategy] = np.exp(-own[strategy] * rate)
        total += weights[strategy]
    for strategy in range(len(own)):
        weights[strategy] /= total


@compiled
def _take(network: Network, state: State, arc: int, own: Array, heat: float) -> None:
    """The smoothed least of the edge's matrix for each strategy of the node."""
    width = len(own)
    least, sums = state.room[:width], np.zeros(width)
    least[:] = np.inf
    back = network.arcs.reverses[arc]
    others = state.messages[network.message_offsets[back] : network.message_offsets[back + 1]]
    base = network.entry_offsets[arc]
    for other in range(len(others)):
        row, given = network.entries[base + other * width : base + (other + 1) * width], others[other]
        for strategy in range(width):
            least[strategy] = min(least[strategy], row[strategy] + given)
    for other in range(len(others)):
        row, given = network.entries[base + other * width : base + (other + 1) * width], others[other]
        for strategy in range(width):
            exponent = (least[strategy] - row[strategy] - given) / heat
            if exponent > _FAINT:
                sums[strategy] += np.exp(exponent)
    message = state.messages[network.message_offsets[arc] : network.message_offsets[arc + 1]]
    for strategy in range(width):
        taken = least[strategy] - heat * np.log(sums[strategy])
        own[strategy] += taken + message[strategy]
        message[strategy] = -taken
