"""Blocks one after another, so that few nets are open at a time: what a dynamic program over placements needs to know.

A net is open from its first block up to its last. What is placed so far matters to the rest only by the loads and by which devices have a
pin of which open net: one word of bits for each accelerator, and one for all CPUs together, as they pay for nothing. A device pays for a
net once it has a pin of it and another device has one:

    put b on i    for each net e of b, open on some devices and not on i:  i pays c_e, and so does who was alone with it till now
                  i does p_b (an accelerator) or q_b (a CPU)

Accelerators are equal, so that a state is the same whatever they are called.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.placement.blocks import Blocks, Figures, Pins

_STARTS = 48
"""Blocks that an order is begun with, the narrowest order being taken."""
_BASE = 3.0
"""By how much an open net multiplies the states, about."""


@dataclass(frozen=True, slots=True)
class Step:
    """One block that is placed next, its nets by cost and bit, and the bits of nets that it is the last of."""

    block: int
    nets: tuple[tuple[int, int], ...]
    closed: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """All steps, and how many bits there are."""

    steps: tuple[Step, ...]
    width: int


def swept(blocks: Blocks, figures: Figures) -> tuple[Sweep, Sweep]:
    """The steps along the narrowest of some orders, there and back: as many nets are open, but not as many states are possible."""
    nets_of: list[list[int]] = [[] for _ in range(len(blocks))]
    for net, pins in enumerate(blocks.nets):
        for pin in pins:
            nets_of[pin].append(net)
    starts = np.unique(np.linspace(0, len(blocks) - 1, min(_STARTS, len(blocks))).astype(int)).tolist()
    order = min((_order(blocks.nets, nets_of, start) for start in starts), key=lambda found: found[0])[1]
    return _sweep(blocks.nets, nets_of, order, figures), _sweep(blocks.nets, nets_of, order[::-1], figures)


def _order(nets: Sequence[Pins], nets_of: list[list[int]], start: int) -> tuple[float, list[int]]:
    """From a block on always the one that leaves fewest nets open, with what the order may cost."""
    left, done, order = [len(pins) for pins in nets], [False] * len(nets_of), list[int]()
    near, following, opened, cost = {start}, iter(range(len(nets_of))), 0, 0.0

    def score(block: int) -> tuple[int, int, int]:
        fresh = sum(left[net] == len(nets[net]) for net in nets_of[block])
        return fresh - sum(left[net] == 1 for net in nets_of[block]), fresh - len(nets_of[block]), block

    while len(order) < len(nets_of):
        block = min(near, key=score) if near else next(one for one in following if not done[one])
        opened += score(block)[0]
        order.append(block)
        done[block] = True
        near.discard(block)
        for net in nets_of[block]:
            left[net] -= 1
            near |= {pin for pin in nets[net] if not done[pin]}
        cost += _BASE ** min(opened, 60)
    return cost, order


def _sweep(nets: Sequence[Pins], nets_of: list[list[int]], order: list[int], figures: Figures) -> Sweep:
    left, bit, free, width = [len(pins) for pins in nets], dict[int, int](), list[int](), 0
    steps = []
    for block in order:
        closed = 0
        for net in nets_of[block]:
            if net not in bit:
                width += not free
                bit[net] = free.pop() if free else width - 1
            left[net] -= 1
        for net in nets_of[block]:
            if not left[net]:
                closed |= 1 << bit[net]
                free.append(bit[net])
        steps.append(Step(block, tuple((figures.transfer[net], bit[net]) for net in nets_of[block]), closed))
    return Sweep(tuple(steps), width)


def put(held: Whole, device: int, step: Step, accelerators: int) -> tuple[Whole, Whole]:
    """What each accelerator pays once the block is on the device, and which nets devices hold then. A row for each device."""
    paid, bits = np.zeros((accelerators, held.shape[1]), np.int64), 0
    for cost, bit in step.nets:
        here = (held >> bit) & 1
        count = here.sum(axis=0)
        fresh = (here[device] == 0) & (count > 0)
        if device < accelerators:
            paid[device] += cost * fresh
        paid += here[:accelerators] * (cost * (fresh & (count == 1)))
        bits |= 1 << bit
    after = held & ~step.closed
    after[device] |= bits & ~step.closed
    return paid, after


def devices_for(block: int, figures: Figures, accelerators: int, cpus: int, most: int) -> Iterator[int]:
    """Accelerators, and CPUs as one, that may take the block."""
    if figures.supported[block]:
        yield from range(accelerators)
    if cpus and figures.cpu[block] <= most:
        yield accelerators
