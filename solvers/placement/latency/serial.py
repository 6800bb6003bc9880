"""The best pieces along one order of the blocks if everything ran one after another, by dynamic programming.

In an order b_1, ..., b_n in which all data flow forward a piece is an interval, and so is a stretch that runs on CPUs:

    piece(i, j)    transfers + times of the blocks from i up to j, infinite where they do not fit the memory
    cpu(i, j)      the longest chain of data through them in CPU times (cores are not counted)
    after[a, j]    the least time in which the first j blocks are done in a pieces, a piece at the end
                   = min over i of  min(after[a - 1, i], rest[a - 1, i]) + piece(i, j)
    rest[a, j]     the same with CPUs at the end = min over i of after[a, i] + cpu(i, j)

It is exact for chains. In other graphs what need not wait does not, so that the replay of such pieces takes no longer.
"""

from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.placement.blocks import Blocks
from crossopt.solvers.placement.intervals import interval_costs


@dataclass(frozen=True, slots=True, eq=False)
class Serial:
    """Pieces along an order."""

    value: float
    piece: list[int]
    """Of each block, numbered in the order in which they run; -1 on CPUs."""


def best_pieces(blocks: Blocks, order: Whole, pieces: int, memory: float) -> Serial:
    """The least time along an order in at most so many pieces, one after another."""
    count = len(blocks)
    on_accelerator, _ = interval_costs(blocks, order, memory, overlapped=False)
    np.fill_diagonal(on_accelerator, np.inf)
    on_cpu = chains(blocks, order)
    after, rest = np.full((pieces + 1, count + 1), np.inf), np.full((pieces + 1, count + 1), np.inf)
    origin = np.zeros((2, pieces + 1, count + 1), np.int64)
    after[0, 0] = 0.0
    ends = np.arange(count + 1)
    for a in range(pieces + 1):
        if a:
            table = np.minimum(after[a - 1], rest[a - 1])[:, None] + on_accelerator
            origin[0, a] = table.argmin(axis=0)
            after[a] = table[origin[0, a], ends]
        table = after[a][:, None] + on_cpu
        origin[1, a] = table.argmin(axis=0)
        rest[a] = table[origin[1, a], ends]
    return _traced(after, rest, origin, order)


def chains(blocks: Blocks, order: Whole) -> Array:
    """The longest chain of CPU times in every interval; infinite for j < i."""
    count = len(blocks)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    before: list[list[int]] = [[] for _ in range(count)]
    for one, other in blocks.arcs:
        before[place[other]].append(int(place[one]))
    ends = np.zeros((count + 1, count))
    """When the block at a place is done, for each place that the interval starts at."""
    longest = np.full((count + 1, count + 1), np.inf)
    longest[0, 0] = 0.0
    for here in range(count):
        column = np.zeros(here + 1)
        for one in before[here]:
            np.maximum(column[: one + 1], ends[: one + 1, one], out=column[: one + 1])
        column += blocks.cpu_time[order[here]]
        ends[: here + 1, here] = column
        longest[: here + 1, here + 1] = np.maximum(longest[: here + 1, here], column)
        longest[here + 1, here + 1] = 0.0
    return longest


def _traced(after: Array, rest: Array, origin: Whole, order: Whole) -> Serial:
    end = len(order)
    piece = [-1] * end
    value = min(float(after[:, end].min()), float(rest[:, end].min()))
    kind = int(value < float(after[:, end].min()))
    a = int((rest if kind else after)[:, end].argmin())
    while end or a:
        start = int(origin[kind, a, end])
        if kind:
            kind = 0
        else:
            for block in order[start:end]:
                piece[int(block)] = a - 1
            a -= 1
            kind = int(rest[a, start] < after[a, start])
        end = start
    return Serial(value, piece)
