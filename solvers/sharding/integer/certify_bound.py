"""A proof for which nobody needs to believe a solver: duals of the relaxation at every node of a small tree.

Once the best choice is known, or none seems to be allowed, the duals fix most strategies. What is left is branched at the node where the
relaxation mixes strategies of the most different memory, until whole numbers close every branch (formulation.sharding.tree), or until it
takes too long. So that there are duals where the limit cannot be kept, what is above it has a price here instead of being forbidden.
"""

from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.formulation.sharding.core import Core, places
from crossopt.formulation.sharding.dual import Dual
from crossopt.formulation.sharding.tree import DEEPEST, Branch, Step, after, branched
from crossopt.instances.errors import SolverError
from crossopt.solvers.sharding.integer.relaxation import modelled, relaxation
from crossopt.solvers.sharding.run import Run

_MOST_NODES = 400
_SHARE, _LEAST = 1.0, 5.0
"""Of the seconds that the answer took so far, and at least so many."""
_PRICE = 1e7
_WHOLE = 1e-6
_PROGRESS = 0.8
"""A dual that leaves more than this share of the strategies calls for a branch."""


class _GivenUpError(Exception):
    """It takes too long, the branches are too deep, or a solver has no duals."""


def close(run: Run) -> None:
    """Proves that nothing is better than the best choice of a run, or that there is none, where that is quick; else leaves it as it is."""
    if run.dual is None:
        return
    run.words = "proof in whole numbers"
    spent = monotonic() - run.began
    closing = _Closing(run, run.aim, monotonic() + min(run.left, max(_LEAST, _SHARE * spent)))
    try:
        closing.steps.append(run.dual)
        closing.close(after(run.core, run.dual, run.aim), 0)
    except (_GivenUpError, SolverError, MemoryError, KeyboardInterrupt):
        return
    run.closed(tuple(closing.steps))


class _Closing:
    """The steps so far."""

    __slots__ = ("deadline", "nodes", "run", "steps", "value")

    def __init__(self, run: Run, value: int, deadline: float) -> None:
        self.run, self.value, self.deadline = run, value, deadline
        self.steps: list[Step] = []
        self.nodes = 0

    def close(self, core: Core | None, depth: int) -> None:
        """Adds the steps that close a core."""
        while core is not None:
            self.nodes += 1
            dual, shares = self._relaxed(core)
            self.steps.append(dual)
            smaller = after(core, dual, self.value)
            if smaller is not None and len(smaller.costs) > _PROGRESS * len(core.costs) and len(shares) == len(core.costs):
                if depth == DEEPEST:
                    raise _GivenUpError
                self.steps.pop()
                branch = _branch(core, shares)
                self.steps.append(branch)
                for part in branched(core, branch):
                    self.close(part, depth + 1)
                return
            core = smaller

    def _relaxed(self, core: Core) -> tuple[Dual, Array]:
        if self.nodes > _MOST_NODES or self._late():
            raise _GivenUpError
        best: list[Dual] = []

        def keep(dual: Dual) -> bool:
            best[:] = [dual]
            return after(core, dual, self.value) is None

        found = relaxation(modelled(core, self.run.limits, price=_PRICE), self.deadline - monotonic(), self._late, keep)
        if isinstance(found, str):
            raise _GivenUpError
        return best[0], found

    def _late(self) -> bool:
        self.run.show()
        return monotonic() > self.deadline


def _branch(core: Core, shares: Array) -> Branch:
    """At the mixed node whose mixture spreads the memory of its largest member most, with its largest share on the one side.

    Memory is where mixtures gain most: half of a node here and half there just fill the limit. Of nodes without memory, the most mixed one.
    """
    taken = np.zeros(len(core.costs))
    np.maximum.at(taken, places(core.offsets, core.member_nodes), core.usages)
    mean = np.repeat(np.add.reduceat(taken * shares, core.offsets[:-1]), core.counts)
    spread = np.add.reduceat(np.abs(taken - mean) * shares, core.offsets[:-1])
    apart = np.add.reduceat(np.minimum(shares, 1.0 - shares), core.offsets[:-1])
    mixed = (core.counts > 1) & (apart > _WHOLE)
    order = np.lexsort((-apart, -spread, ~mixed, core.counts < 2))
    node = int(order[0])
    largest = int(shares[core.offsets[node] : core.offsets[node + 1]].argmax())
    return Branch(node, np.array([largest]))
