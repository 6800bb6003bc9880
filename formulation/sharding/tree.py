"""Branch-and-bound proofs in whole numbers, and the record of every step that `solvers/standalone.py` replays."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crossopt.crossflow.arrays import Ints, Mask
from crossopt.formulation.sharding.core import Back, Core, NothingAllowedError, Reduced, needed_times, with_strategies
from crossopt.formulation.sharding.dual import Dual, bound_of, fixed, message_offsets
from crossopt.formulation.sharding.reductions import ContradictionError, reduced
from crossopt.instances.sharding.problem import FORBIDDEN

# A proof in whole numbers that no choice costs less than a value: duals that fix, and branches where they do not suffice.
#
# A step is a dual or a branch. A dual that bounds the core by the value closes it; otherwise all that it lets nothing better take is left
# out (formulation.sharding.fixing), the core is reduced again, and the next step is about what is left. It is closed where nothing is. A
# branch parts the strategies of a node in two; the steps that follow are first about the core with the one part, and then about that with
# the other. The steps need not be trusted: every bound that closes a node is recomputed.

DEEPEST = 200
"""Branches within each other that a proof may have."""


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """The strategies of a node that the first part has."""

    node: int
    first: Ints


Step = Dual | Branch


def closes(core: Core, value: int, steps: Iterator[Step], depth: int = 0) -> bool:
    """Whether the steps prove that no choice of the core costs less than the value; a ValueError where they are none of this core."""
    open_core: Core | None = core
    while open_core is not None:
        step = next(steps, None)
        if step is None:
            return False
        if isinstance(step, Branch):
            if depth == DEEPEST:
                raise ValueError("the branches are too deep")
            parts = branched(open_core, step)
            return all(part is None or closes(part, value, steps, depth + 1) for part in parts)
        open_core = after(open_core, step, value)
    return True


def after(core: Core, dual: Dual, value: int) -> Core | None:
    """What a dual leaves of a core that may cost less than the value; None where that is nothing."""
    left = left_by(core, dual, value)
    return None if left is None else left.core


class Left(NamedTuple):
    """What is left of a core, the way back, and which of its times those that are left were; None where they are the same, or unknown."""

    core: Core
    back: Back
    times: Ints | None


def left_by(core: Core, dual: Dual, value: int) -> Left | None:
    """The same with the way back."""
    times: Ints | None = None

    def see(name: str, before: Core, _: object) -> None:
        nonlocal times
        times = renumbered(times, name, before)

    if bound_of(core, dual) >= value:
        return None
    try:
        cut = fixed(core, dual, max(value, dual.below))
        rest = reduced(cut.core, seen=see)
    except (NothingAllowedError, ContradictionError):
        return None
    return Left(rest.core, composed(cut.back, rest.back), times)


def renumbered(times: Ints | None, name: str, before: Core) -> Ints | None:
    """The first numbers of the times after a reduction of this name."""
    if name != "times that fit" or before.limit is None or not len(before.member_nodes):
        return times
    needed = needed_times(before, before.limit)
    return needed if times is None else times[needed]


def composed(back: Back, last: Back) -> Back:
    """The way back through both, the last one first."""
    return lambda chosen: back(last(chosen))


def branched(core: Core, branch: Branch) -> tuple[Core | None, Core | None]:
    """The core with the one part of a node's strategies, and with the other; None where nothing is left."""
    first, second = (None if part is None else part.core for part in parted(core, branch))
    return first, second


def parted(core: Core, branch: Branch) -> list[Left | None]:
    """The same with the ways back."""
    if not 0 <= branch.node < len(core):
        raise ValueError(f"there is no node {branch.node} to branch at")
    own = slice(int(core.offsets[branch.node]), int(core.offsets[branch.node + 1]))
    chosen = np.isin(np.arange(own.stop - own.start), branch.first)
    return [_part(core, own, part) for part in (chosen, ~chosen)]


def _part(core: Core, own: slice, part: Mask) -> Left | None:
    keep = np.ones(len(core.costs), np.bool_)
    keep[own] = part
    try:
        some = with_strategies(core, keep)
        rest = reduced(some.core)
    except (NothingAllowedError, ContradictionError):
        return None
    return Left(rest.core, composed(some.back, rest.back), None)


# Every single move of reductions and of a proof's steps, in the first numbers of a problem: what `solvers/standalone.py` carries out.

Recorded = list[Any]
"""The name of a step, and what belongs to it, as JSON."""


class Over(NamedTuple):
    """A time at which the least that all take is above the limit."""

    time: int


Chooser = Callable[[Core], Step | Over | None]
"""The next step for a core; None if unknown."""
_NO_NODE = -1
_STRATEGIES = ("what nothing allows", "needless strategies")
_NODES = {"edges that come apart": "apart", "determined nodes": "into", "nodes of low degree": "out"}


class Recorder:
    """Moves so far, and which first numbers the nodes, strategies and times of the core have that is left."""

    __slots__ = ("labels", "nodes", "steps", "times")

    def __init__(self, core: Core) -> None:
        self.nodes: list[int] = list(range(len(core)))
        self.labels: list[Ints] = [np.arange(count) for count in core.counts.tolist()]
        self.times: Ints | None = None
        """None as long as they are the first ones."""
        self.steps: list[Recorded] = []

    def fork(self) -> "Recorder":
        """A recorder of the same nodes, labels and times without steps."""
        other: Recorder = object.__new__(Recorder)
        other.nodes, other.labels, other.times, other.steps = list(self.nodes), list(self.labels), self.times, []
        return other

    def without(self, moves: Ints) -> None:
        """Forgets the strategies that the rows of these moves begin with."""
        for v in np.unique(moves[:, 0]).tolist() if len(moves) else ():
            self.labels[v] = np.delete(self.labels[v], moves[moves[:, 0] == v, 1])

    def reduce(self, core: Core) -> Core | None:
        """The core after all reductions, each of their moves kept; None where nothing is left."""
        try:
            return reduced(core, seen=self._see).core
        except ContradictionError:
            return None

    def close(self, core: Core, value: int, choose: Chooser) -> None:
        """Keeps the steps that close a core at this value, and what is reduced between them; a ValueError where they do not."""
        left: Core | None = core
        while left is not None:
            step = choose(left)
            if step is None:
                raise ValueError("its steps leave something open")
            if isinstance(step, Over):
                self.steps.append(forbidding_price(step.time if self.times is None else int(self.times[step.time])))
                return
            if isinstance(step, Branch):
                self._branch(left, step, value, choose)
                return
            left = self._after(left, step, value)

    def _after(self, core: Core, dual: Dual, value: int) -> Core | None:
        self.steps.append(self._dual(core, dual))
        if bound_of(core, dual) >= value:
            return None
        try:
            done = fixed(core, dual, max(value, dual.below))
        except NothingAllowedError:
            return None
        self.without(done.moves)
        return self.reduce(done.core)

    def _branch(self, core: Core, branch: Branch, value: int, choose: Chooser) -> None:
        labels = self.labels[branch.node]
        first = np.isin(np.arange(len(labels)), branch.first)
        recorded: Recorded = ["branch", self.nodes[branch.node], labels[first].tolist()]
        self.steps.append(recorded)
        for part in (first, ~first):
            recorder = self.fork()
            recorded.append(recorder.steps)
            if part.any():
                keep = np.ones(len(core.costs), np.bool_)
                keep[core.offsets[branch.node] : core.offsets[branch.node + 1]] = part
                smaller = with_strategies(core, keep)
                recorder.without(smaller.moves)
                left = recorder.reduce(smaller.core)
                if left is not None:
                    recorder.close(left, value, choose)

    def _see(self, name: str, before: Core, done: Reduced | NothingAllowedError) -> None:
        """Keeps the moves of one reduction."""
        if name in _STRATEGIES:
            self.steps += [_dropped(self.nodes[v], self.labels[v], others) for v, *others in done.moves.tolist()]
        elif name in _NODES:
            numbers = ([self.nodes[v] for v in move] for move in done.moves.tolist())
            self.steps += [[_NODES[name], *row] for row in numbers if _NO_NODE not in row]  # what is fixed apart is no node of the problem
        elif name == "times that fit" and before.limit is not None:
            self.steps.append(["moments"])
        if isinstance(done, NothingAllowedError):
            self.steps += [] if name == _STRATEGIES[0] else [["dual", 1, [], []]]  # the least of some node or edge is a forbidden cost
            return
        if name in _STRATEGIES:
            self.without(done.moves)
        self.times = renumbered(self.times, name, before)
        remaining = done.nodes.tolist()
        self.labels = [self.labels[v] if v >= 0 else np.zeros(1, np.int64) for v in remaining]
        self.nodes = [self.nodes[v] if v >= 0 else _NO_NODE for v in remaining]

    def _dual(self, core: Core, dual: Dual) -> Recorded:
        """A dual without what is 0."""
        times = dual.times if self.times is None else self.times[dual.times]
        prices = [[time, price] for time, price in zip(times.tolist(), dual.prices.tolist(), strict=True) if price]
        messages = []
        to_firsts, to_seconds = (
            np.split(own, at[1:-1]) for own, at in zip((dual.to_firsts, dual.to_seconds), message_offsets(core), strict=True)
        )
        for edge, (u, v) in enumerate(zip(core.firsts.tolist(), core.seconds.tolist(), strict=True)):
            if to_firsts[edge].any() or to_seconds[edge].any():
                messages.append([self.nodes[u], self.nodes[v], to_firsts[edge].tolist(), to_seconds[edge].tolist()])
        return ["dual", dual.scale, prices, messages, *([dual.below] if dual.below else [])]


def forbidding_price(time: int) -> Recorded:
    """A price for memory at one time at which all takes too much: one byte costs more than all choices differ by."""
    return ["dual", 1, [[time, FORBIDDEN]], []]


def _dropped(node: int, labels: Ints, others: list[int]) -> Recorded:
    """A strategy that goes, and where there is one, the other that makes it needless."""
    return ["needless", node, *(int(labels[s]) for s in others)]
