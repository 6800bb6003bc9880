"""The best stages along one order of the blocks, by dynamic programming: exact for chains, and for other graphs a placement to start from.

In an order b_1, ..., b_n in which all data flow forward a stage is an interval. An accelerator pays for the nets with a pin in it (all but
those whose pins avoid it) less the nets with all pins in it. Both are sums over corners of a table, O(n^2) for all intervals:

    inside[i, j]    nets whose first pin is at i or later and whose last pin is before j
    avoid[i, j]     nets with two pins that follow each other, one before i and the next at j or later, or no pin before or none after
    least[a, c, j]  = min over i of  max(least[a - 1, c, i], accelerator(i, j)),  max(least[a, c - 1, i], cpu(i, j))
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.placement.blocks import Blocks

LARGE = 3000
"""Blocks from which tables over all intervals take too much time and memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Staged:
    """Stages along an order."""

    value: float
    stage: list[int]
    """Of each block."""
    cpu: list[bool]
    """Of each stage."""


def best_stages(
    blocks: Blocks, order: Whole, accelerators: int, cpus: int, memory: float, overlapped: bool, deadline: float = float("inf")
) -> Staged:
    """The least busiest time of stages along an order; infinite where no stages keep the limits, or where the time was too short.

    Of many blocks the costs of intervals are made end by end, as a table of all would not fit into memory.
    """
    if len(blocks) > LARGE:
        return _best_of_many(blocks, order, (accelerators, cpus), memory, overlapped, deadline)
    on_accelerator, on_cpu = interval_costs(blocks, order, memory, overlapped)
    count = len(blocks)
    least = np.full((accelerators + 1, cpus + 1, count + 1), np.inf)
    least[0, 0, 0] = 0.0
    origin = np.zeros((accelerators + 1, cpus + 1, count + 1, 2), np.int64)
    for a in range(accelerators + 1):
        for c in range(cpus + 1):
            for kind, before, costs in ((0, (a - 1, c), on_accelerator), (1, (a, c - 1), on_cpu)):
                if min(before) < 0:
                    continue
                table = np.maximum(least[before][:, None], costs)
                start = table.argmin(axis=0)
                found = table[start, np.arange(count + 1)]
                better = found < least[a, c]
                least[a, c, better] = found[better]
                origin[a, c, better, 0], origin[a, c, better, 1] = start[better], kind
    return _traced(least, origin, order, accelerators, cpus)


def _best_of_many(blocks: Blocks, order: Whole, devices: tuple[int, int], memory: float, overlapped: bool, deadline: float) -> Staged:
    count, (accelerators, cpus) = len(blocks), devices
    least = np.full((accelerators + 1, cpus + 1, count + 1), np.inf)
    least[0, 0, 0] = 0.0
    origin = np.zeros((accelerators + 1, cpus + 1, count + 1, 2), np.int64)
    for end, costs in enumerate(_by_end(blocks, order, memory, overlapped)):
        if monotonic() >= deadline:
            return Staged(inf, [0] * count, [])
        for kind, cost in enumerate(costs):
            before = least[: accelerators + 1 - (not kind), : cpus + 1 - kind, : end + 1]
            table = np.maximum(before, cost)
            start = table.argmin(axis=2)
            found = np.take_along_axis(table, start[:, :, None], 2)[:, :, 0]
            here, came = least[1 - kind :, kind:, end], origin[1 - kind :, kind:, end]
            better = found < here
            here[better] = found[better]
            came[better, 0], came[better, 1] = start[better], kind
    return _traced(least, origin, order, accelerators, cpus)


def _by_end(blocks: Blocks, order: Whole, memory: float, overlapped: bool) -> Iterator[tuple[Array, Array]]:
    """For every place from 0 on, what the intervals from all places up to that one cost on an accelerator and on a CPU."""
    count, place = len(blocks), np.empty(len(blocks), np.int64)
    place[order] = np.arange(count)
    at: list[list[tuple[int, int, bool, float]]] = [[] for _ in range(count)]
    for pins, cost in zip(blocks.nets, blocks.transfer.tolist(), strict=True):
        places = sorted(int(place[pin]) for pin in pins)
        for before, here in zip((-1, *places), places, strict=False):
            at[here].append((before, places[0], here == places[-1], cost))
    sums = [_running(column[order]) for column in (blocks.accelerator_time, blocks.cpu_time, blocks.size)]
    transfer = np.zeros(count + 1)
    for end in range(count + 1):
        for before, first, last, cost in at[end - 1] if end else ():
            transfer[before + 1 : end] += cost
            if last:
                transfer[: first + 1] -= cost
        compute, on_cpu, size = (_up_to(running, end) for running in sums)
        crossing = np.maximum(transfer[: end + 1], 0.0)
        total = np.maximum(compute, crossing) if overlapped else compute + crossing
        yield np.where(size > memory, np.inf, total), on_cpu


def _running(column: Array) -> tuple[Array, Whole]:
    """Sums from the first on, of what is finite, and how much is not."""
    endless = np.isinf(column)
    return np.concatenate([[0.0], np.cumsum(np.where(endless, 0.0, column))]), np.concatenate([[0], np.cumsum(endless)])


def _up_to(running: tuple[Array, Whole], end: int) -> Array:
    """Sums of the intervals from every place up to this one; infinite where a figure in it is."""
    sums, count = running[0][: end + 1], running[1][: end + 1]
    return np.where(count[-1] > count, np.inf, np.maximum(sums[-1] - sums, 0.0))


def interval_costs(blocks: Blocks, order: Whole, memory: float, overlapped: bool) -> tuple[Array, Array]:
    """Milliseconds of the blocks from place i up to j on an accelerator and on a CPU; infinite for j < i and where they do not fit."""
    count = len(blocks)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    compute, on_cpu, size = (_between(column[order]) for column in (blocks.accelerator_time, blocks.cpu_time, blocks.size))
    transfer = _crossing(blocks, place)
    total = np.maximum(compute, transfer) if overlapped else compute + transfer
    empty = np.tri(count + 1, k=-1, dtype=bool)
    return np.where(empty | (size > memory), np.inf, total), np.where(empty, np.inf, on_cpu)


def _between(column: Array) -> Array:
    """Sums over all intervals; infinite where a figure in it is."""
    sums, count = _running(column)
    return np.where(count[None, :] > count[:, None], np.inf, np.maximum(sums[None, :] - sums[:, None], 0.0))


def _crossing(blocks: Blocks, place: Whole) -> Array:
    """Transfer time of every interval: all nets, less those that avoid it and those inside it."""
    count = len(place)
    inside, avoid = np.zeros((count + 2, count + 2)), np.zeros((count + 2, count + 2))
    for pins, cost in zip(blocks.nets, blocks.transfer.tolist(), strict=True):
        places = sorted(int(place[pin]) for pin in pins)
        inside[places[0], places[-1] + 1] += cost
        for left, right in zip((-1, *places), (*places, count), strict=True):
            avoid[left + 1, right] += cost
    kept_inside = inside[::-1].cumsum(axis=0)[::-1].cumsum(axis=1)
    kept_avoid = avoid.cumsum(axis=0)[:, ::-1].cumsum(axis=1)[:, ::-1]
    crossing = float(blocks.transfer.sum()) - kept_avoid - kept_inside
    return np.asarray(np.maximum(crossing[: count + 1, : count + 1], 0.0))


def _traced(least: Array, origin: Whole, order: Whole, accelerators: int, cpus: int) -> Staged:
    count = len(order)
    a, c = np.unravel_index(int(least[:, :, count].argmin()), (accelerators + 1, cpus + 1))
    value, end = float(least[a, c, count]), count
    stage, cpu = [0] * count, []
    if value == float("inf"):
        return Staged(value, stage, [])
    parts = []
    while end:
        start, kind = (int(figure) for figure in origin[a, c, end])
        parts.append((start, end, bool(kind)))
        end, a, c = start, a - (not kind), c - kind
    for number, (start, stop, kind) in enumerate(reversed(parts)):
        cpu.append(kind)
        for block in order[start:stop]:
            stage[int(block)] = number
    return Staged(value, stage, cpu)
