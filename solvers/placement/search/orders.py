"""Placements to start from: stages along many orders of the blocks."""

from collections.abc import Iterator
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.placement.blocks import Blocks
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.placement.intervals import LARGE, Staged, best_stages

_ORDERS = 24


def staged_start(question: PlacementQuestion, blocks: Blocks, deadline: float = float("inf")) -> Staged:
    """The best stages along some orders in which all data flow forward; along one at the least, unless there are many blocks."""
    found = Staged(float("inf"), [0] * len(blocks), [])
    for order in orders(blocks, 1 if len(blocks) > LARGE else _ORDERS):
        overlapped = question.communication == "overlapped"
        one = best_stages(blocks, order, question.accelerators, question.cpus, question.memory, overlapped, deadline)
        found = one if one.value < found.value else found
        if monotonic() >= deadline:
            break
    return found


def orders(blocks: Blocks, count: int, seed: int = 0) -> Iterator[Whole]:
    """Orders of the blocks along the arcs: as they are numbered, depth first and breadth first, then with random choices."""
    before = np.zeros(len(blocks), np.int64)
    after: list[list[int]] = [[] for _ in range(len(blocks))]
    for one, other in blocks.arcs:
        before[other] += 1
        after[one].append(other)
    yield np.arange(len(blocks))
    for number in range(count - 1):
        yield _order(before.tolist(), after, np.random.default_rng(number + (seed << 32)), depth=number % 3)


def _order(before: list[int], after: list[list[int]], random: np.random.Generator, depth: int) -> Whole:
    """The newest block that is free next (0), the oldest (1), or any (2); blocks that become free together in a random order."""
    free, order = [block for block, count in enumerate(before) if not count], []
    random.shuffle(free)
    while free:
        block = free.pop({0: -1, 1: 0, 2: int(random.integers(len(free)))}[depth])
        order.append(block)
        ready = []
        for other in after[block]:
            before[other] -= 1
            if not before[other]:
                ready.append(other)
        random.shuffle(ready)
        free += ready
    return np.array(order, np.int64)
