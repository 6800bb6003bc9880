"""Smaller cores and the way back from them: strategies, edges and nodes that are left out."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from crossopt.crossflow.arrays import Mask, Whole
from crossopt.formulation.compiled import compiled
from crossopt.formulation.sharding.core import Core
from crossopt.instances.sharding.problem import FORBIDDEN, offsets_of

Back = Callable[[Whole], Whole]


def no_moves() -> Whole:
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
    nodes: Whole
    """Which node of the larger core each node of the smaller one was; -1 where it was none."""
    moves: Whole = field(default_factory=no_moves)
    """What was done, a row for each single move in the order in which they hold one by one, in numbers of the larger core; what stands in a
    row is said by who made it."""


def unchanged(core: Core) -> Reduced:
    """The core itself."""
    return Reduced(core, np.array, np.arange(len(core)))


def places(offsets: Whole, pieces: Whole) -> Whole:
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
        entries=_kept_entries(core.offsets, keep, core.firsts, core.seconds, core.entry_offsets, core.entries),
        usage_offsets=offsets_of(counts[core.member_nodes]),
        usages=core.usages[keep[places(core.offsets, core.member_nodes)]],
    )
    table = np.flatnonzero(keep) - np.repeat(core.offsets[:-1], counts)
    return Reduced(smaller, partial(_from_table, offsets[:-1], table), np.arange(len(core)), named(core, np.flatnonzero(~keep)))


def named(core: Core, strategies: Whole) -> Whole:
    """The node and the number of each of these strategies, a row each."""
    nodes = np.searchsorted(core.offsets, strategies, side="right") - 1
    return np.stack([nodes, strategies - core.offsets[nodes]], axis=1)


def _from_table(starts: Whole, table: Whole, chosen: Whole) -> Whole:
    return np.asarray(table[starts + chosen])


@compiled
def _kept_entries(offsets: Whole, keep: Mask, firsts: Whole, seconds: Whole, entry_offsets: Whole, entries: Whole) -> Whole:
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
        entries=core.entries[places(core.entry_offsets, left)],
    )


def with_members(core: Core, members: Whole) -> Core:
    """The core where only these members are left, in this order."""
    return replace(
        core,
        member_nodes=core.member_nodes[members],
        member_starts=core.member_starts[members],
        member_ends=core.member_ends[members],
        usage_offsets=offsets_of(np.diff(core.usage_offsets)[members]),
        usages=core.usages[places(core.usage_offsets, members)],
    )


def raised(costs: Whole, at: Whole, by: Whole) -> Whole:
    """Costs with more added to some; what is forbidden stays so."""
    found = costs.copy()
    np.add.at(found, at, by)
    found[(costs >= FORBIDDEN) | (found >= FORBIDDEN)] = FORBIDDEN
    return found


def incident(core: Core) -> tuple[Whole, Whole]:
    """The edges of each node: those of node v stand from the v-th place on. Twice the edge, plus 1 where v is its second node."""
    ends = np.concatenate([core.firsts, core.seconds])
    edges = np.arange(len(core.firsts))
    order = np.argsort(ends, kind="stable")
    return offsets_of(np.bincount(ends, minlength=len(core)).astype(np.int64)), np.concatenate([2 * edges, 2 * edges + 1])[order]
