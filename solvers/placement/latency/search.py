"""The best pieces along one order of its blocks if everything ran one after another."""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import exp
from random import Random

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.formulation.placement.blocks import Blocks
from crossopt.solvers.placement.heuristics import interval_costs, orders
from crossopt.solvers.placement.latency.flow import CPU, Flow, replayed, timed
from crossopt.solvers.placement.latency.paths import LARGEST

# The best pieces along one order of the blocks if everything ran one after another, by dynamic programming.
#
# In an order b_1, ..., b_n in which all data flow forward a piece is an interval, and so is a stretch that runs on CPUs:
#
#     piece(i, j)    transfers + times of the blocks from i up to j, infinite where they do not fit the memory
#     cpu(i, j)      the longest chain of data through them in CPU times (cores are not counted)
#     after[a, j]    the least time in which the first j blocks are done in a pieces, a piece at the end
#                    = min over i of  min(after[a - 1, i], rest[a - 1, i]) + piece(i, j)
#     rest[a, j]     the same with CPUs at the end = min over i of after[a, i] + cpu(i, j)
#
# It is exact for chains. In other graphs what need not wait does not, so that the replay of such pieces takes no longer.


@dataclass(frozen=True, slots=True, eq=False)
class Serial:
    """Pieces along an order."""

    value: float
    piece: list[int]
    """Of each block, numbered in the order in which they run; -1 on CPUs."""


def best_pieces(blocks: Blocks, order: Ints, pieces: int, memory: float) -> Serial:
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


def chains(blocks: Blocks, order: Ints) -> Array:
    """The longest chain of CPU times in every interval; infinite for j < i."""
    count = len(blocks)
    position = np.empty(count, np.int64)
    position[order] = np.arange(count)
    before: list[list[int]] = [[] for _ in range(count)]
    for source, target in blocks.arcs:
        before[position[target]].append(int(position[source]))
    ends = np.zeros((count + 1, count))
    """When the block at a place is done, for each place that the interval starts at."""
    longest = np.full((count + 1, count + 1), np.inf)
    longest[0, 0] = 0.0
    for here in range(count):
        column = np.zeros(here + 1)
        for source in before[here]:
            np.maximum(column[: source + 1], ends[: source + 1, source], out=column[: source + 1])
        column += blocks.cpu_time[order[here]]
        ends[: here + 1, here] = column
        longest[: here + 1, here + 1] = np.maximum(longest[: here + 1, here], column)
        longest[here + 1, here + 1] = 0.0
    return longest


def _traced(after: Array, rest: Array, origin: Ints, order: Ints) -> Serial:
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


# Better pieces than those along one order: orders near that of the best pieces, and blocks that change places.
#
# Orders   the blocks as they are done now, each place moved by a random step, brought in line with the data again; the best pieces along it
#          (`serial`) are never worse than those that made it, if steps are none: pieces stay intervals of some order
# Moves    a block goes to a CPU, to an idle piece or to a piece that it shares data with, alone or with all before or after it in its own
#          piece; a worse placement is taken with a chance that falls (annealing)
#
# Both are judged by the replay, in which what need not wait does not.

_ORDERS = 24
_LARGE = 1500
"""Blocks from which tables over all intervals take too long for more than one order."""
_MOST_PIECES = 64
"""That are looked for along an order."""
_STEPS = (0.5, 2.0, 8.0, 32.0)
"""Places by which a block moves in an order, as the spread of a normal distribution."""
_HOT, _COLD = 0.02, 1e-4
"""Share of the value by which a worse placement is taken one time in e, at first and in the end."""

Late = Callable[[], bool]


def along(flow: Flow, order: Ints) -> tuple[float, list[int]]:
    """The best of pieces along an order that the accelerators can run, by its replay."""
    found = (float("inf"), [CPU] * len(flow.blocks))
    if len(order) > LARGEST:
        return found
    shares = {(flow.slots, 1.0), (flow.slots, 1.0 / max(flow.pieces, 1)), (flow.accelerators, 1.0)}
    for pieces, share in sorted(shares, reverse=True):
        slot_of = packed(flow, best_pieces(flow.blocks, order, min(pieces, len(flow.blocks), _MOST_PIECES), flow.memory * share))
        if slot_of is not None:
            found = min(found, (replayed(flow, slot_of), slot_of))
    return found


def packed(flow: Flow, serial: Serial) -> list[int] | None:
    """The slots of pieces, the largest first on the first accelerator that still has room; None where some piece finds none."""
    if flow.pieces == 1:
        return serial.piece
    sizes = np.bincount(np.array(serial.piece) + 1, flow.blocks.size)[1:]
    room, on = [flow.memory] * flow.accelerators, [list[int]() for _ in range(flow.accelerators)]
    for piece in np.argsort(-sizes, kind="stable").tolist():
        fitting = [number for number, pieces in enumerate(on) if len(pieces) < flow.pieces and room[number] >= sizes[piece]]
        if not fitting:
            return None
        on[fitting[0]].append(piece)
        room[fitting[0]] = flow.memory - float(sizes[on[fitting[0]]].sum())
    slot = {piece: number * flow.pieces + index for number, pieces in enumerate(on) for index, piece in enumerate(sorted(pieces))}
    return [CPU if piece == CPU else slot[piece] for piece in serial.piece]


def first_pieces(flow: Flow, late: Late) -> tuple[float, list[int]]:
    """The best pieces along some orders; without accelerators, and at the least, all on CPUs."""
    everywhere = [CPU] * len(flow.blocks)
    found = (replayed(flow, everywhere), everywhere)
    for order in orders(flow.blocks, (1 if len(flow.blocks) > _LARGE else _ORDERS) if flow.slots else 0):
        found = min(found, along(flow, order))
        if late():
            break
    return found


def near_orders(flow: Flow, slot_of: list[int], rounds: int, seed: int, late: Late) -> tuple[float, list[int]]:
    """The best pieces along orders near that of these."""
    random = np.random.default_rng(seed)
    best = (replayed(flow, slot_of), slot_of)
    for number in range(rounds if flow.slots and len(slot_of) <= LARGEST else 0):
        if late():
            break
        keys = np.empty(len(slot_of))
        keys[as_done(flow, best[1])] = np.arange(len(slot_of))
        found = along(flow, in_line(flow.blocks, keys + random.normal(0.0, _STEPS[number % len(_STEPS)], len(slot_of))))
        if found[0] <= best[0]:
            best = found
    return best


def as_done(flow: Flow, slot_of: list[int]) -> Ints:
    """An order of the blocks in which they may run, every piece in one go."""
    ends = timed(flow, [slot_of[block] for block in flow.blocks.block_of.tolist()])[1]
    own = [flow.slots + block if slot == CPU else slot for block, slot in enumerate(slot_of)]
    keys = [(max(ends[row] for row in rows), own[block]) for block, rows in enumerate(flow.rows)]
    ranks = {key: index for index, key in enumerate(sorted(set(keys)))}
    return in_line(flow.blocks, np.array([float(ranks[key]) for key in keys]))


def in_line(blocks: Blocks, keys: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Ints:
    """The order along the data in which the block with the least key of those that are free comes next."""
    waiting, after = [0] * len(blocks), [list[int]() for _ in range(len(blocks))]
    for source, target in blocks.arcs:
        waiting[target] += 1
        after[source].append(target)
    free = [(float(keys[block]), block) for block, count in enumerate(waiting) if not count]
    heapify(free)
    order = []
    while free:
        block = heappop(free)[1]
        order.append(block)
        for target in after[block]:
            waiting[target] -= 1
            if not waiting[target]:
                heappush(free, (float(keys[target]), target))
    return np.array(order, np.int64)


def annealed(flow: Flow, start: list[int], moves: int, seed: int, late: Late) -> tuple[float, list[int]]:
    """The best placement that so many moves come by; the start, if none is better."""
    random, around = Random(seed), _around(flow.blocks)
    here = (replayed(flow, start), list(start))
    best = here
    for move in range(moves if flow.slots else 0):
        if late():
            break
        block = random.randrange(len(start))
        goal = _goal(flow, here[1], block, around, random)
        group = _group(here[1], block, around, random)
        if goal == here[1][block] or not fits(flow, here[1], group, goal):
            continue
        slot_of = list(here[1])
        for member in group:
            slot_of[member] = goal
        value = replayed(flow, slot_of)
        heat = _HOT * (_COLD / _HOT) ** (move / moves) * best[0]
        if value <= here[0] or (heat > 0.0 and random.random() < exp((here[0] - value) / heat)):
            here = (value, slot_of)
            best = min(best, here)
    return best


_Around = tuple[list[list[int]], list[list[int]]]


def _around(blocks: Blocks) -> _Around:
    """The blocks right before and right after each block."""
    before, after = [list[int]() for _ in range(len(blocks))], [list[int]() for _ in range(len(blocks))]
    for source, target in blocks.arcs:
        before[target].append(source)
        after[source].append(target)
    return before, after


def _goal(flow: Flow, slot_of: list[int], block: int, around: _Around, random: Random) -> int:
    near = around[0][block] + around[1][block]
    kind = random.random()
    if near and kind < 0.7:
        return slot_of[random.choice(near)]
    return CPU if kind < 0.85 else random.randrange(flow.slots)


def _group(slot_of: list[int], block: int, around: _Around, random: Random) -> list[int]:
    """The block, perhaps with all blocks of its piece that come before it or after it."""
    side = random.randrange(3)
    if side == 2 or slot_of[block] == CPU:
        return [block]
    group, stack = {block}, [block]
    while stack:
        for other in around[side][stack.pop()]:
            if slot_of[other] == slot_of[block] and other not in group:
                group.add(other)
                stack.append(other)
    return sorted(group)


def fits(flow: Flow, slot_of: list[int], group: list[int], goal: int) -> bool:
    if goal == CPU:
        return True
    if any(flow.blocks.accelerator_time[block] == float("inf") for block in group):
        return False
    accelerator, moved = goal // flow.pieces, set(group)
    there = [b for b, slot in enumerate(slot_of) if slot != CPU and slot // flow.pieces == accelerator and b not in moved]
    return float(flow.blocks.size[there + group].sum()) <= flow.memory
