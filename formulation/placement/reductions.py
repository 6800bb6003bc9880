"""Blocks that every placement worth looking at keeps together, made one.

A placement no busier than T on k accelerators and l CPUs does no more than k T on its accelerators: the work of all blocks, less what CPUs
take off them, plus all transfers. So transfers cost no more than

    B = k T - sum p_b + R,   R = the most sum of p_b over blocks on CPUs with sum of q_b <= l T

(R from above, by filling the CPUs with the best ratio p / q, one block cut short). A net that is cut is paid by two accelerators, or by one
where a pin may be on a CPU. If that is more than B, the net is not cut, and its pins are one block. Then nets with equal pins add up, and
the next one may be too dear; until none is.
"""

from dataclasses import replace

import numpy as np

from crossopt.crossflow.arrays import Mask
from crossopt.formulation.placement.assignment import Machine
from crossopt.formulation.placement.blocks import Blocks, Pins

_GUARD = 1e-9
"""The share by which the budget is raised: many times what sums of floats can be off."""


def contract(blocks: Blocks, machine: Machine, greatest: float) -> Blocks:
    """The blocks that are left for placements no busier than `greatest`; without arcs, as data may then flow in circles."""
    while True:
        joined = _joined(blocks, _never_cut(blocks, machine, greatest))
        if len(joined) == len(blocks):
            return replace(joined, arcs=())
        blocks = joined


def _never_cut(blocks: Blocks, machine: Machine, greatest: float) -> list[Pins]:
    on_cpu: Mask = np.logical_and(blocks.cpu_time * (1.0 - _GUARD) <= greatest, machine.cpus > 0)
    budget = _budget(blocks, machine, greatest, on_cpu)
    found = []
    for pins, cost in zip(blocks.nets, blocks.transfer.tolist(), strict=True):
        may = [bool(on_cpu[pin]) for pin in pins]
        payers = 2 if not any(may) else 0 if all(may) and machine.cpus > 1 else 1
        if payers * cost > budget:
            found.append(pins)
    return found


def _budget(blocks: Blocks, machine: Machine, greatest: float, on_cpu: Mask) -> float:
    """B, and infinite where transfers are no part of the sum."""
    if machine.overlapped:
        return float("inf")
    work = np.where(np.isfinite(blocks.accelerator_time), blocks.accelerator_time, 0.0)
    relief, left = 0.0, machine.cpus * greatest
    ratio = np.where(blocks.cpu_time > 0.0, work / np.where(blocks.cpu_time > 0.0, blocks.cpu_time, 1.0), np.inf)
    for block in np.argsort(-ratio, kind="stable").tolist():
        if not on_cpu[block] or not work[block]:
            continue
        taken = 1.0 if blocks.cpu_time[block] <= left else left / float(blocks.cpu_time[block])
        relief += taken * float(work[block])
        left -= taken * float(blocks.cpu_time[block])
        if left <= 0.0:
            break
    total = machine.accelerators * greatest
    return total - float(work.sum()) + relief + _GUARD * (total + float(work.sum()))


def _joined(blocks: Blocks, groups: list[Pins]) -> Blocks:
    """The blocks with the pins of each of these nets as one."""
    parent = list(range(len(blocks)))

    def root(block: int) -> int:
        while parent[block] != block:
            parent[block] = parent[parent[block]]
            block = parent[block]
        return block

    for pins in groups:
        for pin in pins[1:]:
            parent[root(pin)] = root(pins[0])
    roots = [root(block) for block in range(len(blocks))]
    numbers = {one: place for place, one in enumerate(dict.fromkeys(roots))}
    number_of = np.array([numbers[one] for one in roots], np.int64)
    nets: dict[Pins, float] = {}
    for pins, cost in zip(blocks.nets, blocks.transfer.tolist(), strict=True):
        left = tuple(sorted({int(number_of[pin]) for pin in pins}))
        if len(left) > 1:
            nets[left] = nets.get(left, 0.0) + cost
    count = len(numbers)
    return Blocks(
        accelerator_time=np.bincount(number_of, blocks.accelerator_time, count).astype(np.float64),
        cpu_time=np.bincount(number_of, blocks.cpu_time, count).astype(np.float64),
        size=np.bincount(number_of, blocks.size, count).astype(np.float64),
        nets=tuple(nets),
        transfer=np.array(list(nets.values()), np.float64),
        arcs=(),
        block_of=number_of[blocks.block_of],
    )
