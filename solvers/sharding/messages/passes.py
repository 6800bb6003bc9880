"""Sequential message passing on a core whose memory is priced (Kolmogorov's SRMP, 2015: TRW-S of 2006 where edges hold two nodes).

Along edge (u, v) messages a_u(s) and a_v(t) move cost between the edge and its nodes:

    sum of c_v(x_v) + C_uv(x_u, x_v)  =  sum of [c_v - the a_v of its edges](x_v) + [C_uv + a_u + a_v](x_u, x_v)

whatever they are, so the sum of the least entries of each node and each edge is below every choice. A pass visits the nodes in order. A
node first takes what its edges to earlier nodes can give; its least entry is then gained; it hands shares of the rest to its later edges.
Forbidden entries stand as infinity in matrices and never reach a message: each strategy must have an allowed partner along each edge.
"""

from typing import NamedTuple

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.compiled import compiled
from crossopt.formulation.sharding.core import Core
from crossopt.instances.sharding.problem import FORBIDDEN, offsets_of
from crossopt.solvers.sharding.messages.arcs import Arcs, arcs_of


class Network(NamedTuple):
    """Arcs with matrices of their own: row t of an arc's matrix holds the costs of its node's strategies beside strategy t of the other."""

    arcs: Arcs
    offsets: Whole
    middles: Whole
    """The first arc of each node that leads to a later one."""
    entry_offsets: Whole
    entries: Array
    message_offsets: Whole


class State(NamedTuple):
    """What passes change."""

    messages: Array
    """For each arc one figure for each strategy of its node."""
    potentials: Array
    """What is left of each strategy's cost."""
    labels: Whole
    room: Array


def network_of(core: Core) -> Network:
    """The arcs by the number of their other nodes."""
    arcs = arcs_of(core, np.arange(len(core)))
    owners = np.repeat(np.arange(len(core)), np.diff(arcs.starts))
    counts = core.counts
    middles = arcs.starts[:-1] + np.bincount(owners[arcs.others < owners], minlength=len(core))
    sizes = counts[owners] * counts[arcs.others]
    entry_offsets = offsets_of(sizes)
    entries = np.empty(entry_offsets[-1], np.float64)
    places = np.empty(2 * len(core.firsts), np.int64)
    places[arcs.edges + np.where(owners < arcs.others, 0, len(core.firsts))] = np.arange(len(owners))
    laid_out(core.entry_offsets, core.entries, counts[core.firsts], counts[core.seconds], places, entry_offsets, entries)
    return Network(arcs, core.offsets, middles, entry_offsets, entries, offsets_of(counts[owners]))


@compiled
def laid_out(offsets: Whole, entries: Whole, heights: Whole, widths: Whole, places: Whole, targets: Whole, out: Array) -> None:
    """Each matrix for both of its nodes."""
    edges = len(heights)
    for edge in range(edges):
        own, mirrored = targets[places[edge]], targets[places[edge + edges]]
        height, width = heights[edge], widths[edge]
        for first in range(height):
            for second in range(width):
                cost = entries[offsets[edge] + first * width + second]
                real = np.inf if cost >= FORBIDDEN else float(cost)
                out[own + second * height + first] = real
                out[mirrored + first * width + second] = real


def state_of(core: Core, network: Network) -> State:
    """No message passed yet."""
    widest = int(core.counts.max(initial=1))
    costs = np.where(core.costs >= FORBIDDEN, np.inf, core.costs.astype(np.float64))
    return State(np.zeros(network.message_offsets[-1]), costs, np.zeros(len(core), np.int64), np.empty(widest))


@compiled
def passed(network: Network, state: State, forward: bool) -> float:
    """One pass; what it gained. Labels are decoded on the way: each node takes its best strategy given the nodes before it."""
    nodes = len(network.offsets) - 1
    gained = 0.0
    for turn in range(nodes):
        node = turn if forward else nodes - 1 - turn
        first, middle, last = network.arcs.starts[node], network.middles[node], network.arcs.starts[node + 1]
        before = (first, middle) if forward else (middle, last)
        after = (middle, last) if forward else (first, middle)
        own = state.potentials[network.offsets[node] : network.offsets[node + 1]]
        for arc in range(before[0], before[1]):
            _take(network, state, arc, own)
        _decode(network, state, node, before, own)
        gained += lowered(own)
        hand_on(network, state, after, own, 1.0 / max(middle - first, last - middle, 1))
    return gained


@compiled
def lowered(own: Array) -> float:
    """The least of a node, which every strategy of it gives away."""
    least: float = own.min()
    for strategy in range(len(own)):
        own[strategy] -= least
    return least


@compiled
def hand_on(network: Network, state: State, after: tuple[int, int], own: Array, share: float) -> None:
    """A share of what a node has to each of its arcs from the first to before the last of `after`; it keeps the rest."""
    for arc in range(after[0], after[1]):
        start = network.message_offsets[arc]
        for strategy in range(len(own)):
            state.messages[start + strategy] += share * own[strategy]
    rest = 1.0 - share * (after[1] - after[0])
    for strategy in range(len(own)):
        own[strategy] = max(rest, 0.0) * own[strategy]


@compiled
def _take(network: Network, state: State, arc: int, own: Array) -> None:
    """All that an edge can give to a node: the least of its matrix for each strategy of the node."""
    width = len(own)
    least = state.room[:width]
    least[:] = np.inf
    back = network.arcs.reverses[arc]
    others = state.messages[network.message_offsets[back] : network.message_offsets[back + 1]]
    base = network.entry_offsets[arc]
    for other in range(len(others)):
        row = network.entries[base + other * width : base + (other + 1) * width]
        given = others[other]
        for strategy in range(width):
            cost = row[strategy] + given
            least[strategy] = cost if cost < least[strategy] else least[strategy]
    message = state.messages[network.message_offsets[arc] : network.message_offsets[arc + 1]]
    for strategy in range(width):
        own[strategy] += least[strategy] + message[strategy]
        message[strategy] = -least[strategy]


@compiled
def _decode(network: Network, state: State, node: int, before: tuple[int, int], own: Array) -> None:
    width = len(own)
    total = state.room[:width]
    total[:] = own
    for arc in range(before[0], before[1]):
        start = network.entry_offsets[arc] + state.labels[network.arcs.others[arc]] * width
        message = state.messages[network.message_offsets[arc] : network.message_offsets[arc + 1]]
        for strategy in range(width):
            total[strategy] += network.entries[start + strategy] + message[strategy]
    best = 0
    for strategy in range(width):
        if total[strategy] < total[best]:
            best = strategy
    state.labels[node] = best
