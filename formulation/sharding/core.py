"""A reduced sharding problem: nodes, edges, members with memory, the times at which memory counts, and edits with the way back."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from crossopt.crossflow.arrays import Ints, Mask
from crossopt.formulation.compiled import compiled
from crossopt.instances.sharding.problem import FORBIDDEN, Problem, offsets_of

# What reductions leave of a problem: a graph without loops and repeated edges, and members whose memory its nodes carry.
#
# A reduction may merge a node into another one whose strategy decides it. The merged node's costs go into the other's, but not its memory,
# since the two are alive at different times. So memory is kept in members: a member of node v is alive from its start to its end and takes
# `usages[s]` bytes where v takes strategy s. At first every node has itself as its only member.


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """Strategies of node v stand from `offsets[v]` to `offsets[v + 1]`, the matrix of edge e from `entry_offsets[e]` on, row by row of its
    first node, and the usages of member m from `usage_offsets[m]` on, one for each strategy of its node.
    """

    constant: int
    """What every choice costs besides."""
    offsets: Ints
    costs: Ints
    firsts: Ints
    seconds: Ints
    """Of each edge, the lower node first; no pair twice."""
    entry_offsets: Ints
    entries: Ints
    member_nodes: Ints
    member_starts: Ints
    member_ends: Ints
    usage_offsets: Ints
    usages: Ints
    limit: int | None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> Ints:
        """How many strategies each node has."""
        return np.diff(self.offsets)

    @property
    def pairs(self) -> int:
        """How many entries of the matrices may be chosen."""
        return int((self.entries < FORBIDDEN).sum())


def cost_of(core: Core, chosen: Ints) -> int | None:
    """What a choice costs; None where it is forbidden."""
    costs = core.costs[core.offsets[:-1] + chosen]
    widths = core.counts[core.seconds]
    pairs = core.entries[core.entry_offsets[:-1] + chosen[core.firsts] * widths + chosen[core.seconds]]
    if np.any(costs >= FORBIDDEN) or np.any(pairs >= FORBIDDEN):
        return None
    return core.constant + int(costs.sum()) + int(pairs.sum())


def beyond(core: Core) -> int:
    """More than any choice costs, so that nothing costs less than this only where there is no choice."""
    allowed = (np.where(figures < FORBIDDEN, figures, 0) for figures in (core.costs, core.entries))
    starts = (core.offsets[:-1], core.entry_offsets[:-1])
    most = [figure for figures, at in zip(allowed, starts, strict=True) if len(at) for figure in np.maximum.reduceat(figures, at).tolist()]
    total: int = core.constant + sum(most) + 1
    return total


def unreduced(problem: Problem) -> Core:
    """The problem as it stands, but for its edges: loops go into the costs of their nodes, and matrices of the same pair are added up."""
    costs = problem.costs.copy()
    found: dict[tuple[int, int], Ints] = {}
    for edge, (first, second) in enumerate(zip(problem.firsts.tolist(), problem.seconds.tolist(), strict=True)):
        matrix = problem.matrix(edge)
        if first == second:
            own = slice(problem.offsets[first], problem.offsets[first + 1])
            costs[own] = np.minimum(costs[own] + np.diagonal(matrix), FORBIDDEN)
            continue
        pair, matrix = ((first, second), matrix) if first < second else ((second, first), matrix.T)
        before = found.get(pair)
        found[pair] = matrix if before is None else np.minimum(before + matrix, FORBIDDEN)
    pairs = np.array(list(found), np.int64).reshape(-1, 2)
    lengths = [matrix.size for matrix in found.values()]
    alive = np.flatnonzero(problem.starts < problem.ends)
    return Core(
        constant=0,
        offsets=problem.offsets,
        costs=costs,
        firsts=pairs[:, 0].copy(),
        seconds=pairs[:, 1].copy(),
        entry_offsets=offsets_of(lengths),
        entries=np.concatenate([matrix.ravel() for matrix in found.values()]) if found else np.zeros(0, np.int64),
        member_nodes=alive,
        member_starts=problem.starts[alive],
        member_ends=problem.ends[alive],
        usage_offsets=offsets_of(problem.counts[alive]),
        usages=np.concatenate([np.zeros(0, np.int64), *(problem.usages[problem.offsets[v] : problem.offsets[v + 1]] for v in alive)]),
        limit=problem.limit,
    )


# The times at which memory is counted: only those at which nothing ends before something else starts.
#
# Between two changes the members that are alive stay the same. A span that ends with a start, or starts with an end, is held by its
# neighbour: every node alive in it is alive there too. What is left are the maximal cliques of the intervals (Fulkerson and Gross, 1965),
# one row each.


class Timeline(NamedTuple):
    """Member m is alive in the rows from `lows[m]` to before `highs[m]`; row r stands for `times[r]`."""

    lows: Ints
    highs: Ints
    times: Ints


def timeline_of(core: Core) -> Timeline:
    """Rows of the members' intervals; none where there is no limit."""
    starts, ends = core.member_starts, core.member_ends
    if core.limit is None or not len(starts):
        return Timeline(np.zeros_like(starts), np.zeros_like(starts), np.zeros(0, np.int64))
    moments = np.unique(np.concatenate([starts, ends]))
    begins = np.isin(moments[:-1], starts)
    finishes = np.isin(moments[1:], ends)
    times = moments[:-1][begins & finishes]
    return Timeline(np.searchsorted(times, starts), np.searchsorted(times, ends), times)


def in_use(core: Core, timeline: Timeline, chosen: Ints) -> Ints:
    """Memory in each row."""
    widths = np.diff(core.usage_offsets)
    sizes = core.usages[core.usage_offsets[:-1] + chosen[core.member_nodes]] if len(widths) else np.zeros(0, np.int64)
    changes = np.zeros(len(timeline.times) + 1, np.int64)
    np.add.at(changes, timeline.lows, sizes)
    np.add.at(changes, timeline.highs, -sizes)
    return np.cumsum(changes)[:-1]


# Smaller cores and the way back from them: strategies, edges and nodes that are left out.

Back = Callable[[Ints], Ints]


def no_moves() -> Ints:
    """Nothing was done."""
    return np.zeros((0, 0), np.int64)


class NothingAllowedError(Exception):
    """A node of a core has no strategy left that may be chosen."""

    def __init__(self, node: int) -> None:
        super().__init__(f"node {node} has no strategy that the others allow")
        self.node = node
        self.moves = no_moves()
        """What was done before it was seen, as in `Reduced`."""


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """A smaller core whose optimum is that of the larger one."""

    core: Core
    back: Back
    """From strategies of the smaller core's nodes to those of the larger core's nodes, at the same cost and with no more memory."""
    nodes: Ints
    """Which node of the larger core each node of the smaller one was; -1 where it was none."""
    moves: Ints = field(default_factory=no_moves)
    """What was done, a row for each single move in the order in which they hold one by one, in numbers of the larger core; what stands in a
    row is said by who made it."""


def unchanged(core: Core) -> Reduced:
    """The core itself."""
    return Reduced(core, np.array, np.arange(len(core)))


def piece_indices(offsets: Ints, pieces: Ints) -> Ints:
    """All places of these pieces, one after another."""
    lengths = np.diff(offsets)[pieces]
    within = np.arange(int(lengths.sum())) - np.repeat(offsets_of(lengths)[:-1], lengths)
    return np.asarray(np.repeat(offsets[:-1][pieces], lengths) + within)


def with_strategies(core: Core, keep: Mask) -> Reduced:
    """The core where only these strategies are left; a NothingAllowedError where a node has none."""
    if keep.all():
        return unchanged(core)
    counts = np.add.reduceat(keep, core.offsets[:-1], dtype=np.int64)
    if not counts.all():
        raise NothingAllowedError(int(np.argmin(counts)))
    offsets = offsets_of(counts)
    smaller = replace(
        core,
        offsets=offsets,
        costs=core.costs[keep],
        entry_offsets=offsets_of(counts[core.firsts] * counts[core.seconds]),
        entries=_remaining_entries(core.offsets, keep, core.firsts, core.seconds, core.entry_offsets, core.entries),
        usage_offsets=offsets_of(counts[core.member_nodes]),
        usages=core.usages[keep[piece_indices(core.offsets, core.member_nodes)]],
    )
    table = np.flatnonzero(keep) - np.repeat(core.offsets[:-1], counts)
    return Reduced(smaller, partial(_from_table, offsets[:-1], table), np.arange(len(core)), named(core, np.flatnonzero(~keep)))


def named(core: Core, strategies: Ints) -> Ints:
    """The node and the number of each of these strategies, a row each."""
    nodes = np.searchsorted(core.offsets, strategies, side="right") - 1
    return np.stack([nodes, strategies - core.offsets[nodes]], axis=1)


def _from_table(starts: Ints, table: Ints, chosen: Ints) -> Ints:
    return np.asarray(table[starts + chosen])


@compiled
def _remaining_entries(offsets: Ints, keep: Mask, firsts: Ints, seconds: Ints, entry_offsets: Ints, entries: Ints) -> Ints:
    found = np.empty(len(entries), np.int64)
    size = 0
    for edge in range(len(firsts)):
        first, second, at = firsts[edge], seconds[edge], entry_offsets[edge]
        for row in range(offsets[first], offsets[first + 1]):
            for column in range(offsets[second], offsets[second + 1]):
                if keep[row] and keep[column]:
                    found[size] = entries[at]
                    size += 1
                at += 1
    return found[:size].copy()


def with_edges(core: Core, keep: Mask) -> Core:
    """The core where only these edges are left."""
    if keep.all():
        return core
    left = np.flatnonzero(keep)
    return replace(
        core,
        firsts=core.firsts[left],
        seconds=core.seconds[left],
        entry_offsets=offsets_of(np.diff(core.entry_offsets)[left]),
        entries=core.entries[piece_indices(core.entry_offsets, left)],
    )


def with_members(core: Core, members: Ints) -> Core:
    """The core where only these members are left, in this order."""
    return replace(
        core,
        member_nodes=core.member_nodes[members],
        member_starts=core.member_starts[members],
        member_ends=core.member_ends[members],
        usage_offsets=offsets_of(np.diff(core.usage_offsets)[members]),
        usages=core.usages[piece_indices(core.usage_offsets, members)],
    )


def raised(costs: Ints, at: Ints, by: Ints) -> Ints:
    """Costs with more added to some; what is forbidden stays so."""
    found = costs.copy()
    np.add.at(found, at, by)
    found[(costs >= FORBIDDEN) | (found >= FORBIDDEN)] = FORBIDDEN
    return found


def incident(core: Core) -> tuple[Ints, Ints]:
    """The edges of each node: those of node v stand from the v-th place on. Twice the edge, plus 1 where v is its second node."""
    ends = np.concatenate([core.firsts, core.seconds])
    edges = np.arange(len(core.firsts))
    order = np.argsort(ends, kind="stable")
    return offsets_of(np.bincount(ends, minlength=len(core)).astype(np.int64)), np.concatenate([2 * edges, 2 * edges + 1])[order]


# What memory needs to be known of: members whose memory is a matter of choice, and times at which the limit may be broken.
#
# fixed_apart    what nodes with one strategy and without edges cost goes into the constant, what members take that take the same whatever
#                is chosen goes together into one last node of one strategy
# fewer_times    only times that are left count, and are numbered from 0: memory rises at starts only; a time is not needed where the
#                worst choice keeps the limit, nor where all that is alive is alive at a time beside it too, at which no less is fixed


def fix_apart(core: Core) -> Reduced:
    """With what cannot be chosen in one place; a NothingAllowedError where a node's only strategy is forbidden."""
    core = replace(with_members(core, np.zeros(0, np.int64)), limit=None) if core.limit is None else _merged(core)
    alone = core.counts == 1
    alone[core.firsts] = alone[core.seconds] = False
    nodes = np.flatnonzero(alone)
    fixed = _fixed_members(core)
    starts, ends, taken = _pieces(core, np.flatnonzero(fixed))
    costs = core.costs[core.offsets[nodes]]
    if np.any(costs >= FORBIDDEN):
        raise NothingAllowedError(int(nodes[np.argmax(costs)]))
    own = core.member_nodes[fixed]
    if len(own) == len(starts) and (not len(nodes) if not len(own) else len(nodes) == 1 and np.all(own == len(core) - 1) and not costs[0]):
        return unchanged(core)
    left = np.flatnonzero(~alone)
    renumbered = np.cumsum(~alone) - 1
    core = with_members(core, np.flatnonzero(~fixed))
    base = np.zeros(1 if len(starts) or not len(left) else 0, np.int64)
    smaller = replace(
        core,
        constant=core.constant + int(costs.sum()),
        offsets=offsets_of(np.concatenate([core.counts[left], base + 1])),
        costs=np.concatenate([core.costs[piece_indices(core.offsets, left)], base]),
        firsts=renumbered[core.firsts],
        seconds=renumbered[core.seconds],
        member_nodes=np.concatenate([renumbered[core.member_nodes], np.full(len(starts), len(left))]),
        member_starts=np.concatenate([core.member_starts, starts]),
        member_ends=np.concatenate([core.member_ends, ends]),
        usage_offsets=offsets_of(np.concatenate([np.diff(core.usage_offsets), np.ones(len(starts), np.int64)])),
        usages=np.concatenate([core.usages, taken]),
    )
    return Reduced(smaller, partial(_spread, len(alone), left), np.concatenate([left, base - 1]))


def _spread(size: int, left: Ints, chosen: Ints) -> Ints:
    found = np.zeros(size, np.int64)
    found[left] = chosen[: len(left)]
    return found


def _fixed_members(core: Core) -> Mask:
    if not len(core.member_nodes):
        return np.zeros(0, np.bool_)
    starts = core.usage_offsets[:-1]
    return np.asarray(np.maximum.reduceat(core.usages, starts) == np.minimum.reduceat(core.usages, starts))


def _pieces(core: Core, members: Ints) -> tuple[Ints, Ints, Ints]:
    """Spans of time over which these members take the same, other than nothing: starts, ends, bytes."""
    taken = core.usages[core.usage_offsets[:-1][members]]
    times = np.unique(np.concatenate([core.member_starts[members], core.member_ends[members]]))
    changes = np.zeros(len(times) + 1, np.int64)
    np.add.at(changes, np.searchsorted(times, core.member_starts[members]), taken)
    np.add.at(changes, np.searchsorted(times, core.member_ends[members]), -taken)
    changed = np.flatnonzero(changes[:-1])
    if not len(changed):
        return times[:0], times[:0], times[:0]
    level = np.cumsum(changes[changed])[:-1]
    some = level > 0
    return times[changed][:-1][some], times[changed][1:][some], level[some]


def _merged(core: Core) -> Core:
    """The members of a node that are alive at the same times as one."""
    if not len(core.member_nodes):
        return core
    keys = np.stack([core.member_nodes, core.member_starts, core.member_ends])
    order = np.lexsort(keys[::-1])
    new = np.ones(len(order), np.bool_)
    new[1:] = np.any(np.diff(keys[:, order], axis=1) != 0, axis=0)
    if new.all():
        return core
    first = order[new]
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(new) - 1
    offsets = offsets_of(np.diff(core.usage_offsets)[first])
    usages = np.zeros(int(offsets[-1]), np.int64)
    np.add.at(usages, piece_indices(offsets, group), core.usages)
    return replace(with_members(core, first), usage_offsets=offsets, usages=usages)


def fewer_times(core: Core) -> Reduced:
    """With the times only at which the limit may be broken, numbered from 0, and the members that are alive at one of them."""
    if not len(core.member_nodes):
        return unchanged(core)
    if core.limit is None:
        return unchanged(with_members(core, np.zeros(0, np.int64)))
    points = needed_times(core, core.limit)
    starts, ends = np.searchsorted(points, core.member_starts), np.searchsorted(points, core.member_ends)
    alive = np.flatnonzero(starts < ends)
    if len(alive) == len(starts) and np.array_equal(starts, core.member_starts) and np.array_equal(ends, core.member_ends):
        return unchanged(core)
    return replace(unchanged(core), core=with_members(replace(core, member_starts=starts, member_ends=ends), alive))


def needed_times(core: Core, limit: int) -> Ints:
    """The times that `fewer_times` leaves."""
    fixed = _fixed_members(core)
    most = np.maximum.reduceat(core.usages, core.usage_offsets[:-1])
    points = np.unique(core.member_starts)
    points = points[_in_use(core, most, points) > limit]
    base = _in_use(core, np.where(fixed, most, 0), points)
    ends = np.searchsorted(np.sort(core.member_ends[~fixed]), points, side="right")
    within_next = np.zeros(len(points), np.bool_)
    within_next[:-1] = (ends[:-1] == ends[1:]) & (base[:-1] <= base[1:])
    points, base = points[~within_next], base[~within_next]
    begun = np.searchsorted(np.sort(core.member_starts[~fixed]), points, side="right")
    within_last = np.zeros(len(points), np.bool_)
    within_last[1:] = (begun[1:] == begun[:-1]) & (base[1:] <= base[:-1])
    return points[~within_last]


def _in_use(core: Core, taken: Ints, points: Ints) -> Ints:
    """What is in use at each of these times where each member takes so much."""
    changes = np.zeros(len(points) + 1, np.int64)
    np.add.at(changes, np.searchsorted(points, core.member_starts), taken)
    np.add.at(changes, np.searchsorted(points, core.member_ends), -taken)
    return np.cumsum(changes)[:-1]
