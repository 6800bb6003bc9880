"""Message passing on a core whose memory is priced, and the ascent of its multipliers, plain and smoothed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.formulation.compiled import compiled
from crossopt.formulation.sharding.core import Core, Timeline, cost_of, in_use, timeline_of
from crossopt.formulation.sharding.dual import Dual, message_offsets
from crossopt.instances.errors import SolverError
from crossopt.instances.sharding.problem import FORBIDDEN, offsets_of

# Every edge twice, once for each of its nodes, as compiled loops want it.


class Arcs(NamedTuple):
    """The arcs of node v stand from `starts[v]` to `starts[v + 1]`. The cost of strategy s of v with t of the other node is the entry
    `bases + s * steps + t * strides`.
    """

    starts: Ints
    others: Ints
    edges: Ints
    bases: Ints
    steps: Ints
    strides: Ints
    reverses: Ints
    """The reverse arc of the edge."""


def arcs_of(core: Core, keys: Ints) -> Arcs:
    """The arcs of each node by rising keys of the other nodes."""
    edges, counts = len(core.firsts), core.counts
    owners = np.concatenate([core.firsts, core.seconds])
    others = np.concatenate([core.seconds, core.firsts])
    widths = counts[core.seconds]
    ones = np.ones(edges, np.int64)
    order = np.lexsort((keys[others], owners))
    places = np.empty(2 * edges, np.int64)
    places[order] = np.arange(2 * edges)
    return Arcs(
        starts=np.searchsorted(owners[order], np.arange(len(core) + 1)),
        others=others[order],
        edges=order % max(edges, 1),
        bases=core.entry_offsets[:-1][order % max(edges, 1)],
        steps=np.concatenate([widths, ones])[order],
        strides=np.concatenate([ones, widths])[order],
        reverses=places[(order + edges) % max(2 * edges, 1)],
    )


# Sequential message passing on a core whose memory is priced (Kolmogorov's SRMP, 2015: TRW-S of 2006 where edges hold two nodes).
#
# Along edge (u, v) messages a_u(s) and a_v(t) move cost between the edge and its nodes:
#
#     sum of c_v(x_v) + C_uv(x_u, x_v)  =  sum of [c_v - the a_v of its edges](x_v) + [C_uv + a_u + a_v](x_u, x_v)
#
# whatever they are, so the sum of the least entries of each node and each edge is below every choice. A pass visits the nodes in order. A
# node first takes what its edges to earlier nodes can give; its least entry is then gained; it hands shares of the rest to its later edges.
# Forbidden entries stand as infinity in matrices and never reach a message: each strategy must have an allowed partner along each edge.


class Network(NamedTuple):
    """Arcs with matrices of their own: row t of an arc's matrix holds the costs of its node's strategies beside strategy t of the other."""

    arcs: Arcs
    offsets: Ints
    middles: Ints
    """The first arc of each node that leads to a later one."""
    entry_offsets: Ints
    entries: Array
    message_offsets: Ints


class State(NamedTuple):
    """What passes change."""

    messages: Array
    """For each arc one figure for each strategy of its node."""
    potentials: Array
    """What is left of each strategy's cost."""
    labels: Ints
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
def laid_out(offsets: Ints, entries: Ints, heights: Ints, widths: Ints, places: Ints, targets: Ints, out: Array) -> None:
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


# A pass of messages whose leasts are smoothed: minus heat times the logarithm of the sum of exp(-cost / heat).
#
# Passes that take leasts stop at corners where no single message can gain any more, though several together could. Smoothed leasts have no
# corners, and passes come as near the best smoothed bound as they like; with less and less heat that bound nears the best one of all
# messages (Savchynskyy, Schmidt, Kappes and Schnoerr, 2012, Efficient MRF energy minimization via adaptive diminishing smoothing). A
# smoothed least is never above the least, so what an edge gives stays below what it has, and what a pass gains remains a bound.

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
            _take_smoothed(network, state, arc, own, heat)
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
def _take_smoothed(network: Network, state: State, arc: int, own: Array, heat: float) -> None:
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


# Multipliers on memory raised between passes of messages: the bound from below, and labels from which a search can start.
#
# With mu_r >= 0 for each row r of the timeline, in units of cost for the whole limit, the relaxed costs of strategy s of v are c_v(s) + sum
# over members of use(s) / limit * sum of mu over the member's rows, and the bound pays sum of mu. Every few passes mu goes along the memory
# that the decoded labels use beyond the limit, by Polyak's step towards a target above the bound (Polyak, 1969), with part of the direction
# before it. The length of a direction counts as at least what chance alone would leave of the last one: where directions that contradict
# each other nearly cancel, a step would leave everything that was reached.

_PASSES = 3
"""Between two steps of the multipliers."""
_FALL, _GROW, _LARGEST = 0.9, 1.03, 8.0
"""Of the stride: where the bound falls by a ten-thousandth, where it is above all before, and at most."""
_MOMENTUM = 0.9
"""Of the direction before."""
_NOISE = (1.0 - _MOMENTUM) / (1.0 + _MOMENTUM)
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
    labels: Ints
    """As they were decoded last."""
    gained: float = 0.0
    best: float = -np.inf
    last: float = 0.0
    stride: float = 1.0
    rounds: int = 0
    feasible: Ints | None = None
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
    direction = _MOMENTUM * ascent.direction + (1.0 - _MOMENTUM) * over
    at_zero = ascent.multipliers <= 0.0
    direction[at_zero & (direction < 0.0)] = 0.0
    over[at_zero & (over < 0.0)] = 0.0
    ascent.direction = direction
    length = max(float(np.square(direction).sum()), _NOISE * float(np.square(over).sum()))
    if length <= _STILL:
        return
    ahead = ascent.stride * _AHEAD * (abs(ascent.best) + 1.0)
    move_to(ascent, np.maximum(ascent.multipliers + ahead / length * direction, 0.0))


def move_to(ascent: Ascent, multipliers: Array) -> None:
    """Other multipliers, with the costs of all strategies at them."""
    ascent.state.potentials[:] += memory_costs(ascent.core, ascent.timeline, multipliers - ascent.multipliers)
    ascent.multipliers = multipliers


def start_at(ascent: Ascent, dual: Dual) -> None:
    """Multipliers by the prices of a dual, each at the first row that is not before its time."""
    rows = ascent.timeline.times
    if len(rows):
        multipliers = np.zeros(len(rows))
        scale = float(ascent.core.limit or 1) / dual.scale
        np.add.at(multipliers, np.minimum(np.searchsorted(rows, dual.times), len(rows) - 1), dual.prices * scale)
        move_to(ascent, multipliers)
        ascent.best_multipliers = multipliers.copy()


def memory_costs(core: Core, timeline: Timeline, multipliers: Array) -> Array:
    """What the memory of each strategy costs at these multipliers."""
    found = np.zeros(len(core.costs))
    if core.limit is not None:
        paid = np.concatenate([np.zeros(1), np.cumsum(multipliers)])
        rates = (paid[timeline.highs] - paid[timeline.lows]) / max(core.limit, 1)
        _charge(core.offsets, core.member_nodes, core.usage_offsets, core.usages, rates, found)
    return found


@compiled
def _charge(offsets: Ints, nodes: Ints, usage_offsets: Ints, usages: Ints, rates: Array, out: Array) -> None:
    """Adds the memory of each member to the costs of its node's strategies."""
    for member in range(len(nodes)):
        if rates[member] != 0.0:
            start, usage = offsets[nodes[member]], usage_offsets[member]
            for strategy in range(usage_offsets[member + 1] - usage):
                out[start + strategy] += usages[usage + strategy] * rates[member]


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


# The climb once steps along single choices gain little: smoothed passes at falling heat, and multipliers along mean memory.
#
# Labels that are decoded node by node take memory that no best mixture takes, and lead the multipliers away. At some heat each node weighs
# its strategies instead, and what they take on average is the slope of the smoothed bound in the multipliers. Steps along it are scaled row
# by row (Adam; Kingma and Ba, 2015). The heat begins at a part of what a node costs, and falls by the clock; now and then plain passes show
# the bound that this has come to.

_ROUNDS = 8
"""Of smoothed passes, forth and back, between plain ones."""
_COLDEST = 0.003
"""Of the first heat, what is left at the end."""
_STRIDE = 1.0
"""How far each multiplier goes in a step, as a multiple of its share of the heat of all nodes; those at zero have none."""
_HOTTEST = 0.1
"""Of a node's share of the bound, the first heat. A share of the gap would be too little where few nodes make up most of the gap."""
_SMOOTHED_MOMENTUM, _REMEMBERED = 0.9, 0.99
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
            _smoothed_step(ascent, cooling, heat)
        settled(ascent)
        if not going():
            return


def _smoothed_step(ascent: Ascent, cooling: Cooling, heat: float) -> None:
    core = ascent.core
    if core.limit is None or not len(ascent.multipliers):
        return
    over = _mean_use(ascent, cooling.weights) / max(core.limit, 1) - 1.0
    cooling.steps += 1
    cooling.direction = _SMOOTHED_MOMENTUM * cooling.direction + (1.0 - _SMOOTHED_MOMENTUM) * over
    cooling.square = _REMEMBERED * cooling.square + (1.0 - _REMEMBERED) * over * over
    direction = cooling.direction / (1.0 - _SMOOTHED_MOMENTUM**cooling.steps)
    length = np.sqrt(cooling.square / (1.0 - _REMEMBERED**cooling.steps)) + _FINEST
    stride = _STRIDE * heat * len(core) / max(int(np.count_nonzero(ascent.multipliers)), 1)
    move_to(ascent, np.maximum(ascent.multipliers + stride * direction / length, 0.0))


def _mean_use(ascent: Ascent, weights: Array) -> Array:
    """Memory in each row, as the weights have it on average."""
    core, timeline = ascent.core, ascent.timeline
    changes = np.zeros(len(timeline.times) + 1)
    _spread(core.offsets, core.member_nodes, core.usage_offsets, core.usages, weights, timeline.lows, timeline.highs, changes)
    return np.cumsum(changes)[:-1]


@compiled
def _spread(offsets: Ints, nodes: Ints, usage_offsets: Ints, usages: Ints, weights: Array, lows: Ints, highs: Ints, changes: Array) -> None:
    """Adds the mean memory of each member where it begins to be alive, and takes it away where it ends."""
    for member in range(len(nodes)):
        start, usage, mean = offsets[nodes[member]], usage_offsets[member], 0.0
        for strategy in range(usage_offsets[member + 1] - usage):
            mean += usages[usage + strategy] * weights[start + strategy]
        changes[lows[member]] += mean
        changes[highs[member]] -= mean
