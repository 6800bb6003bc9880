"""Integer models of a core: the marginal model in arrays and in whole numbers, and the weaker implication model."""

from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.formulation.certificate import Certificate, Leaf
from crossopt.formulation.model import ExactlyOne, Linear, Model, Program, Rows, Values, Variable
from crossopt.formulation.sharding.core import Core, fewer_times, piece_indices
from crossopt.formulation.sharding.dual import Dual, bound_of, edge_leasts, message_offsets, node_values
from crossopt.instances.sharding.problem import FORBIDDEN, offsets_of

# The integer model of a core with a variable for each strategy and each pair, in arrays.
#
#     minimise    sum c_v(s) x_vs + sum C_e(s, t) y_est
#     such that   sum over s of x_vs = 1                                     for every node v
#                 sum over t of y_est = x_us,   sum over s of y_est = x_vt   for every edge e of u and v  (its marginals)
#                 sum of use_m(s) x_vs <= limit                              at every time that is asked for
#                 x whole, 0 <= y
#
# Once x is whole, y is. Where no memory is asked for, the linear relaxation is the local polytope (Schlesinger 1976; Wainwright and Jordan
# 2008), far above what y >= x + x - 1 gives. Forbidden pairs have no variable. Memory rows come one by one, where a solution breaks them.
#
# In floating point the rows of memory are made no tighter than they are: what they take is rounded down, the limit up.

_LARGEST_COST = 1e5
"""Of a column; solvers' tolerances suit it."""
_LOOSER = 1e-12
_SHARE = 100.0
"""The limit of a memory row."""
_BROKEN = 1e-6
_FINEST = 40


def program_of(core: Core) -> Program:
    """The model without rows for memory: nodes first, then marginals of first nodes edge by edge, then of second ones."""
    strategies, allowed = len(core.costs), np.flatnonzero(core.entries < FORBIDDEN)
    entries = core.entries[allowed]
    first_offsets, second_offsets = message_offsets(core)
    edges = np.repeat(np.arange(len(core.firsts)), np.diff(core.entry_offsets))[allowed]
    widths = core.counts[core.seconds][edges]
    within = allowed - core.entry_offsets[edges]
    first_rows, second_rows = len(core), len(core) + int(first_offsets[-1])
    columns = strategies + np.arange(len(allowed))
    ones, all_rows = np.ones(len(allowed)), second_rows + int(second_offsets[-1])
    first_places, second_places = piece_indices(core.offsets, core.firsts), piece_indices(core.offsets, core.seconds)
    parts = (
        (np.repeat(np.arange(len(core)), core.counts), np.arange(strategies), np.ones(strategies)),
        (first_rows + first_offsets[edges] + within // widths, columns, ones),
        (second_rows + second_offsets[edges] + within % widths, columns, ones),
        (first_rows + np.arange(len(first_places)), first_places, -np.ones(len(first_places))),
        (second_rows + np.arange(len(second_places)), second_places, -np.ones(len(second_places))),
    )
    row, column, factor = (np.concatenate([part[column_index] for part in parts]) for column_index in range(3))
    order = np.argsort(row, kind="stable")
    right = np.concatenate([np.ones(len(core)), np.zeros(all_rows - len(core))])
    starts = offsets_of(np.bincount(row, minlength=all_rows).astype(np.int64))
    costs = np.concatenate([np.where(core.costs < FORBIDDEN, core.costs, 0), entries]).astype(float)
    unit = unit_of(costs)
    return Program(
        unit=unit,
        costs=costs / unit,
        highs=np.concatenate([(core.costs < FORBIDDEN).astype(float), np.ones(len(allowed))]),
        integral=np.arange(len(costs)) < strategies,
        rows=Rows(right, right.copy(), starts, column[order], factor[order]),
    )


def unit_of(costs: Array) -> float:
    """What a cost of 1 should stand for, so that solvers' tolerances suit the largest."""
    return max(1.0, float(costs.max(initial=0.0)) / _LARGEST_COST)


def memory_rows(core: Core, times: Ints) -> Rows:
    """The limit at each of these times, in hundredths of it; what a member takes at least is taken from both sides."""
    limit = core.limit or 0
    columns, factors, highs = [], [], []
    for time in times.tolist():
        alive = np.flatnonzero((core.member_starts <= time) & (time < core.member_ends))
        taken, at = core.usages[piece_indices(core.usage_offsets, alive)], piece_indices(core.offsets, core.member_nodes[alive])
        lengths = np.diff(core.usage_offsets)[alive]
        least = np.minimum.reduceat(taken, offsets_of(lengths)[:-1]) if len(alive) else lengths
        column, where = np.unique(at, return_inverse=True)
        figures = np.zeros(len(column), np.int64)
        np.add.at(figures, where, taken - np.repeat(least, lengths))
        some = figures > 0
        columns.append(column[some])
        factors.append(figures[some] / max(limit, 1) * _SHARE * (1.0 - _LOOSER))
        highs.append((limit - int(least.sum())) / max(limit, 1) * _SHARE + _SHARE * _LOOSER)
    none = np.zeros(0)
    starts = offsets_of(np.array([len(column) for column in columns], np.int64))
    return Rows(
        lows=np.full(len(highs), -np.inf),
        highs=np.array(highs),
        starts=starts,
        columns=np.concatenate([none.astype(np.int64), *columns]),
        factors=np.concatenate([none, *factors]),
    )


def cover_row(core: Core, chosen: Ints, time: int) -> Rows:
    """That not all members alive at a time take as much as in a choice that breaks the limit there: exact in whole numbers."""
    alive = np.flatnonzero((core.member_starts <= time) & (time < core.member_ends))
    nodes = np.unique(core.member_nodes[alive])
    taken = np.zeros(len(core.costs), np.int64)
    np.add.at(taken, piece_indices(core.offsets, core.member_nodes[alive]), core.usages[piece_indices(core.usage_offsets, alive)])
    chosen_taken = taken[core.offsets[:-1] + chosen]
    columns = piece_indices(core.offsets, nodes)
    columns = columns[taken[columns] >= np.repeat(chosen_taken[nodes], core.counts[nodes])]
    starts = offsets_of(np.array([len(columns)], np.int64))
    return Rows(np.array([-np.inf]), np.array([len(nodes) - 1.0]), starts, columns, np.ones(len(columns)))


def chosen_memory(core: Core, chosen: Ints) -> tuple[Ints, Ints]:
    """Times at which a choice breaks the limit, those far above it first, and by how many bytes."""
    if core.limit is None or not len(core.member_nodes):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    times, changes = _changes(core)
    taken = core.usages[core.usage_offsets[:-1] + chosen[core.member_nodes]]
    np.add.at(changes, np.searchsorted(times, core.member_starts), taken)
    np.add.at(changes, np.searchsorted(times, core.member_ends), -taken)
    over = np.cumsum(changes)[:-1] - core.limit
    order = np.argsort(-over, kind="stable")
    order = order[over[order] > 0]
    return times[order], over[order]


def fractional_memory(core: Core, shares: Array) -> tuple[Ints, Array]:
    """Times at which a relaxed choice breaks the limit, the largest excess first, and the excess as a share of the limit, in floating
    point. Each strategy counts with its share."""
    if core.limit is None or not len(core.member_nodes):
        return np.zeros(0, np.int64), np.zeros(0)
    times, none = _changes(core)
    changes = none.astype(float)
    taken = np.add.reduceat(core.usages * shares[piece_indices(core.offsets, core.member_nodes)], core.usage_offsets[:-1])
    np.add.at(changes, np.searchsorted(times, core.member_starts), taken)
    np.add.at(changes, np.searchsorted(times, core.member_ends), -taken)
    over = np.cumsum(changes)[:-1] / max(core.limit, 1) - 1.0
    order = np.argsort(-over, kind="stable")
    order = order[over[order] > _BROKEN]
    return times[order], over[order]


def _changes(core: Core) -> tuple[Ints, Ints]:
    """The starts of members, and no change of memory at each of them and after."""
    times = np.unique(core.member_starts)
    return times, np.zeros(len(times) + 1, np.int64)


def dual_of(core: Core, unit: float, row_duals: Array, times: Ints, time_duals: Array) -> Dual:
    """The dual that a solver's row duals amount to, in the finest scale that 64 bits hold; `bound_of` says what it proves."""
    first_offsets, second_offsets = message_offsets(core)
    marginals = row_duals[len(core) :] * unit
    to_firsts, to_seconds = marginals[: first_offsets[-1]], marginals[first_offsets[-1] :]
    prices = np.maximum(-time_duals, 0.0) * unit * _SHARE / max(core.limit or 0, 1)
    order = np.argsort(times)
    for power in range(_FINEST, -1, -1):
        scale = 1 << power
        if max(np.abs(figures).max(initial=0.0) * scale for figures in (to_firsts, to_seconds, prices)) >= 2.0**60:
            continue
        rounded = [np.rint(figures * scale).astype(np.int64) for figures in (prices[order], to_firsts, to_seconds)]
        dual = Dual(scale, times[order], *rounded)
        try:
            bound_of(core, dual)
        except ValueError:
            continue
        return dual
    return Dual(1, times[:0], times[:0], np.zeros(first_offsets[-1], np.int64), np.zeros(second_offsets[-1], np.int64))


# The weak model of a core, to compare with: a variable for each pair that costs something, held up by its two strategies.
#
#     minimise    sum c_v(s) x_vs + sum C_e(s, t) y_est
#     such that   sum over s of x_vs = 1,   y_est >= x_us + x_vt - 1,   x_us + x_vt <= 1 where (s, t) is forbidden
#
# Its relaxation may halve every x between two strategies and pay for no pair, which is why its bound says little.


def weak_program_of(core: Core) -> Program:
    """The model without rows for memory: nodes first, then pairs."""
    pairs = np.flatnonzero(core.entries > 0)
    costs = core.entries[pairs]
    paid = costs < FORBIDDEN
    edges = np.repeat(np.arange(len(core.firsts)), np.diff(core.entry_offsets))[pairs]
    widths = core.counts[core.seconds][edges]
    within = pairs - core.entry_offsets[edges]
    strategies, nodes = len(core.costs), len(core)
    ends = (core.offsets[core.firsts[edges]] + within // widths, core.offsets[core.seconds[edges]] + within % widths)
    rows = nodes + np.arange(len(pairs))
    row = np.concatenate([np.repeat(np.arange(nodes), core.counts), rows, rows, rows[paid]])
    column = np.concatenate([np.arange(strategies), *ends, strategies + np.arange(int(paid.sum()))])
    factor = np.concatenate([np.ones(strategies + 2 * len(pairs)), -np.ones(int(paid.sum()))])
    order = np.argsort(row, kind="stable")
    figures = np.concatenate([np.where(core.costs < FORBIDDEN, core.costs, 0), costs[paid]]).astype(float)
    unit = unit_of(figures)
    return Program(
        unit=unit,
        costs=figures / unit,
        highs=np.concatenate([(core.costs < FORBIDDEN).astype(float), np.ones(int(paid.sum()))]),
        integral=np.arange(len(figures)) < strategies,
        rows=Rows(
            lows=np.concatenate([np.ones(nodes), np.full(len(pairs), -np.inf)]),
            highs=np.ones(nodes + len(pairs)),
            starts=offsets_of(np.bincount(row, minlength=nodes + len(pairs)).astype(np.int64)),
            columns=column[order],
            factors=factor[order],
        ),
    )


# The marginal model of a small core in whole numbers, for solvers that need no floating point.
#
# The same rows as in `formulation.sharding.marginal`, with those of memory at every time at which the limit may be broken.


@dataclass(frozen=True, slots=True)
class Choice:
    """A model, and the variable of each strategy of each node; a strategy that is forbidden has none."""

    model: Model
    of: tuple[tuple[Variable | None, ...], ...]
    times: tuple[int, ...] = ()
    """Of its last rows, those of memory."""


def choice_of(core: Core) -> Choice:
    """The model of a core."""
    of = tuple(
        tuple(Variable(f"node {v} takes {s}") if cost < FORBIDDEN else None for s, cost in enumerate(core.costs[a:b].tolist()))
        for v, (a, b) in enumerate(zip(core.offsets.tolist(), core.offsets[1:].tolist(), strict=False))
    )
    rows: list[ExactlyOne | Linear] = [ExactlyOne(f"node {v}", tuple(x for x in own if x)) for v, own in enumerate(of)]
    costs = [
        (cost, x)
        for own, a in zip(of, core.offsets.tolist(), strict=False)
        for s, x in enumerate(own)
        if x and (cost := int(core.costs[a + s]))
    ]
    pairs: list[Variable] = []
    for edge in range(len(core.firsts)):
        pairs += _edge(core, edge, of, rows, costs)
    memory = _memory(core, of)
    every = (*(x for own in of for x in own if x), *pairs)
    return Choice(Model(every, (*rows, *memory.values()), tuple(costs), core.constant), of, tuple(memory))


def leaf_of_dual(core: Core, choice: Choice, dual: Dual) -> Certificate:
    """The multipliers of the rows of a model that a dual of its core amounts to, as a tree of one leaf.

    A message is the multiplier of a marginal; the least of an edge is added to those of its first node, and a node has its own least.
    """
    leasts, nodes = edge_leasts(core, dual).tolist(), np.minimum.reduceat(node_values(core, dual), core.offsets[:-1]).tolist()
    to_firsts, to_seconds = (
        np.split(messages, at[1:-1]) for messages, at in zip((dual.to_firsts, dual.to_seconds), message_offsets(core), strict=True)
    )
    marginals = list[int]()
    for edge, (u, v) in enumerate(zip(core.firsts.tolist(), core.seconds.tolist(), strict=True)):
        nodes[u] += leasts[edge]
        marginals += [message + leasts[edge] for x, message in zip(choice.of[u], to_firsts[edge].tolist(), strict=True) if x]
        marginals += [message for x, message in zip(choice.of[v], to_seconds[edge].tolist(), strict=True) if x]
    prices = dict(zip(dual.times.tolist(), dual.prices.tolist(), strict=True))
    multipliers = [*nodes, *marginals, *(-prices.get(time, 0) for time in choice.times)]
    rows = tuple(row for row, times in enumerate(multipliers) if times)
    return Certificate(dual.scale, (Leaf(rows, tuple(multipliers[row] for row in rows)),))


def chosen_in(choice: Choice, values: Values) -> Ints:
    """The strategies that the values take."""
    taken = ([s for s, x in enumerate(own) if x and values[x]] for own in choice.of)
    return np.array([own[0] for own in taken], np.int64)


def _edge(
    core: Core, edge: int, of: tuple[tuple[Variable | None, ...], ...], rows: list[ExactlyOne | Linear], costs: list[tuple[int, Variable]]
) -> list[Variable]:
    """Pairs of an edge, with their marginals and costs."""
    first, second = int(core.firsts[edge]), int(core.seconds[edge])
    matrix = core.entries[core.entry_offsets[edge] : core.entry_offsets[edge + 1]].reshape(len(of[first]), len(of[second]))
    pairs = {
        (s, t): Variable(f"edge {edge} takes {s} {t}")
        for s, t in np.argwhere(matrix < FORBIDDEN).tolist()
        if of[first][s] and of[second][t]
    }
    costs += [(cost, pair) for strategies, pair in pairs.items() if (cost := int(matrix[strategies]))]
    for side, node in enumerate((first, second)):
        for strategy, x in enumerate(of[node]):
            if x:
                terms = [(1, pair) for strategies, pair in pairs.items() if strategies[side] == strategy]
                rows.append(Linear(f"edge {edge} at {strategy} of node {node}", (*terms, (-1, x)), 0, 0))
    return list(pairs.values())


def _memory(core: Core, of: tuple[tuple[Variable | None, ...], ...]) -> dict[int, Linear]:
    smaller = fewer_times(core).core
    found = dict[int, Linear]()
    for time in np.unique(smaller.member_starts).tolist():
        terms: dict[Variable, int] = {}
        for member in np.flatnonzero((smaller.member_starts <= time) & (time < smaller.member_ends)).tolist():
            taken = smaller.usages[smaller.usage_offsets[member] : smaller.usage_offsets[member + 1]].tolist()
            for x, use in zip(of[smaller.member_nodes[member]], taken, strict=True):
                if x and use:
                    terms[x] = terms.get(x, 0) + use
        if terms:
            found[time] = Linear(f"memory at {time}", tuple((use, x) for x, use in terms.items()), None, core.limit)
    return found
