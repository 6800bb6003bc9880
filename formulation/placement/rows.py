"""What the models of throughput have in common: which device a block is on, which nets a device cuts, and how busy it is.

Data      device i of some, block b with times p_b (accelerator) and q_b (CPU) and size s_b, net e with pins and cost c_e
Choices   x[b, i] = 1 if block b is on device i;  cut[e, i] = 1 if device i has a pin of e and another pin is elsewhere;  T the busiest time
Rows      cut      cut[e, i] >= x[b, i] - x[b', i]    for pins b, b' that follow each other, round all pins of the net: where some pins are
                                                       on i and others are not, some pin on i is followed by one that is not
          load     sum p_b x[b, i] + sum c_e cut[e, i] <= T            on an accelerator (overlapped: either sum <= T)
                   sum q_b x[b, i] <= T                                on a CPU
          memory   sum s_b x[b, i] <= M                                on an accelerator
          support  x[b, i] = 0 where accelerator i cannot run b
Objective least T

Times are floored (`formulation.rounding`), after sums of floats were lowered by more than they can be off: T is then no more than any
placement's true value. Sizes that are whole numbers are exact; others are floored and the memory is ceiled, so that a placement of the
model may exceed it by the little that was rounded off, which the judge sees.
"""

from dataclasses import dataclass
from math import gcd

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.formulation.placement.blocks import Blocks
from crossopt.formulation.rounding import ceiled, floored, quantum_for

_GUARD = 1e-12
"""The share by which sums of times and sizes are lowered: many times what rounding can have added to a sum of 100,000 figures."""
_SIZES, _FINER = 1 << 20, 4
"""Quanta of the memory where sizes are no whole numbers; binary digits by which whole ones may be finer than the busiest time."""
_EXACT = 2.0**53


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """The costs of a question in whole quanta."""

    accelerator: list[int]
    cpu: list[int]
    size: list[int]
    transfer: list[int]
    memory: int
    quantum: float
    """Milliseconds."""
    supported: list[bool]


def figures_of(blocks: Blocks, memory: float, greatest: float, steps: int) -> Figures:
    """The costs, with quanta of which a busiest time of no more than `greatest` has up to so many.

    A block that is slower than that on one kind of device cannot be there, by more than its sums may be off.
    """
    quantum = quantum_for(max(greatest, np.finfo(float).tiny), steps)
    fits = (blocks.accelerator_time * (1.0 - _GUARD) <= greatest) & (blocks.size * (1.0 - _GUARD) <= memory)
    accelerator = np.where(fits, blocks.accelerator_time, 0.0)
    sizes, capacity = _sizes(np.where(fits, blocks.size, 0.0), min(memory, float(blocks.size.sum())), steps << _FINER)
    return Figures(
        accelerator=_down(accelerator, quantum),
        cpu=_down(np.minimum(blocks.cpu_time, 2.0 * greatest), quantum),
        size=sizes,
        transfer=_down(np.minimum(blocks.transfer, 2.0 * greatest), quantum),
        memory=capacity,
        quantum=quantum,
        supported=fits.tolist(),
    )


def _sizes(sizes: Array, memory: float, most: int) -> tuple[list[int], int]:
    """Sizes and memory: as they are, over their greatest common divisor, where they are whole and at most so many; else in quanta."""
    total = float(sizes.sum())
    if total < _EXACT and (sizes == np.floor(sizes)).all():
        whole = [int(size) for size in sizes.tolist()]
        divisor = max(gcd(*whole), 1)
        if total / divisor <= most:
            return [size // divisor for size in whole], int(memory) // divisor
    quantum = quantum_for(max(float(sizes.max(initial=0.0)), memory, 1.0), _SIZES)
    return _down(sizes, quantum), int(ceiled([memory], quantum)[0])


def _down(values: Array, quantum: float) -> list[int]:
    return [int(value) for value in floored(values * (1.0 - _GUARD), quantum).tolist()]
