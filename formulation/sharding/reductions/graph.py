"""A core as a graph whose nodes and edges can be changed one by one."""

from dataclasses import replace

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.sharding.core import Core
from crossopt.formulation.sharding.editing import places
from crossopt.instances.sharding.problem import FORBIDDEN, offsets_of


class Graph:
    """Costs of each node, and its matrices to its neighbours with a row for each of its own strategies."""

    __slots__ = ("costs", "matrices")

    def __init__(self, core: Core) -> None:
        self.costs: list[Whole] = np.split(core.costs, core.offsets[1:-1])
        self.matrices: list[dict[int, Whole]] = [{} for _ in range(len(core))]
        bounds = core.entry_offsets.tolist()
        for edge, (first, second) in enumerate(zip(core.firsts.tolist(), core.seconds.tolist(), strict=True)):
            matrix = core.entries[bounds[edge] : bounds[edge + 1]].reshape(len(self.costs[first]), len(self.costs[second]))
            self.matrices[first][second] = matrix
            self.matrices[second][first] = matrix.T

    def add(self, first: int, second: int, matrix: Whole) -> None:
        """Adds to the costs of a pair."""
        before = self.matrices[first].get(second)
        matrix = matrix if before is None else np.minimum(before + matrix, FORBIDDEN)
        self.matrices[first][second] = matrix
        self.matrices[second][first] = matrix.T

    def drop(self, node: int) -> None:
        """Takes all edges of a node away."""
        for other in self.matrices[node]:
            del self.matrices[other][node]
        self.matrices[node] = {}

    def written(self, core: Core, left: Whole) -> Core:
        """The core of these nodes and of all edges; members are those of the core, and of nodes that are left."""
        renumbered = np.full(len(core), -1)
        renumbered[left] = np.arange(len(left))
        edges = [(first, second) for first in left.tolist() for second in self.matrices[first] if first < second]
        ends = renumbered[np.array(edges, np.int64).reshape(-1, 2)]
        matrices = [self.matrices[first][second].ravel() for first, second in edges]
        return replace(
            core,
            offsets=offsets_of(np.array([len(self.costs[node]) for node in left.tolist()], np.int64)),
            costs=np.concatenate([self.costs[node] for node in left.tolist()]),
            firsts=ends[:, 0].copy(),
            seconds=ends[:, 1].copy(),
            entry_offsets=offsets_of(np.array([matrix.size for matrix in matrices], np.int64)),
            entries=np.concatenate([np.zeros(0, np.int64), *matrices]),
            member_nodes=renumbered[core.member_nodes],
        )


def rehung(core: Core, roots: Whole, offsets: Whole, table: Whole) -> Core:
    """The core whose members hang on the roots of their nodes; node v takes the strategy `table[offsets[v] + s]` where its root takes s."""
    nodes = core.member_nodes
    at = places(offsets, nodes)
    starts = np.repeat(core.usage_offsets[:-1], np.diff(offsets)[nodes])
    return replace(
        core,
        member_nodes=roots[nodes],
        usage_offsets=offsets_of(np.diff(offsets)[nodes]),
        usages=core.usages[starts + table[at]],
    )
