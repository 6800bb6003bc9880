"""One strategy for each node: costs of nodes, costs of pairs along edges, and memory over time.

The problem is that of the contest on intra-operator parallelism at ASPLOS and EuroSys 2025 (Moffitt and Fegade). With x_v the strategy of
node v:

    minimise    sum c_v(x_v) + sum C_uv(x_u, x_v)
    such that   sum of use_v(x_v) over the nodes with start_v <= t < end_v is at most the limit, at every time t

All figures are whole. Costs of FORBIDDEN say that a strategy, or a pair, may not be chosen. Everything lies in flat arrays: Python objects
for each strategy would take a hundred bytes where eight do.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.crossflow.records import dataclass

FORBIDDEN = 1 << 61
"""The cost of what may not be chosen. Two of them still add up within 64 bits; sums are cut back to it."""
GREATEST_SUM = 1 << 60
"""Costs that may be chosen add up to less than this, whatever is chosen: a sum of such costs is exact and never looks forbidden."""


def offsets_of(lengths: Sequence[int] | Ints) -> Ints:
    """Where pieces of these lengths begin, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Strategies of node v stand from `offsets[v]` to `offsets[v + 1]`; the matrix of edge e stands, row by row of its first node, from
    `entry_offsets[e]` to `entry_offsets[e + 1]`.
    """

    name: str
    offsets: Ints
    costs: Ints
    usages: Ints
    """Bytes at each time of the node's interval."""
    starts: Ints
    ends: Ints
    """The first time at which the node takes no memory any more."""
    firsts: Ints
    seconds: Ints
    """The two nodes of each edge. A pair may occur several times, and both ends may be the same node."""
    entry_offsets: Ints
    entries: Ints
    limit: int | None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> Ints:
        """How many strategies each node has."""
        return np.diff(self.offsets)

    def matrix(self, edge: int) -> Ints:
        """Costs of an edge by the strategies of its first and its second node."""
        first, second = self.firsts[edge], self.seconds[edge]
        shape = (self.offsets[first + 1] - self.offsets[first], self.offsets[second + 1] - self.offsets[second])
        return self.entries[self.entry_offsets[edge] : self.entry_offsets[edge + 1]].reshape(shape)


def greatest_sum(rows: Iterable[Ints]) -> int:
    """The most that one figure of each row may add up to, where 64 bits may not suffice."""
    return sum(int(row.max()) for row in rows if len(row))
