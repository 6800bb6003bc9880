"""What reductions leave of a problem: a graph without loops and repeated edges, and members whose memory its nodes carry.

A reduction may merge a node into another one whose strategy decides it. The merged node's costs go into the other's, but not its memory,
since the two are alive at different times. So memory is kept in members: a member of node v is alive from its start to its end and takes
`usages[s]` bytes where v takes strategy s. At first every node has itself as its only member.
"""

from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.instances.sharding.problem import FORBIDDEN, Problem, offsets_of


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """Strategies of node v stand from `offsets[v]` to `offsets[v + 1]`, the matrix of edge e from `entry_offsets[e]` on, row by row of its
    first node, and the usages of member m from `usage_offsets[m]` on, one for each strategy of its node.
    """

    constant: int
    """What every choice costs besides."""
    offsets: Whole
    costs: Whole
    firsts: Whole
    seconds: Whole
    """Of each edge, the lower node first; no pair twice."""
    entry_offsets: Whole
    entries: Whole
    member_nodes: Whole
    member_starts: Whole
    member_ends: Whole
    usage_offsets: Whole
    usages: Whole
    limit: int | None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> Whole:
        """How many strategies each node has."""
        return np.diff(self.offsets)

    @property
    def pairs(self) -> int:
        """How many entries of the matrices may be chosen."""
        return int((self.entries < FORBIDDEN).sum())


def cost_of(core: Core, chosen: Whole) -> int | None:
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
    found: dict[tuple[int, int], Whole] = {}
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
