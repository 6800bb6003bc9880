"""The least busiest time by the work alone: what all devices together can do, whatever is sent between them.

In a time T the k accelerators do work of k T, and the l CPUs are busy for l T. With p_i and q_i for a block on either, and any price r of a
second of CPUs in work of accelerators,

    T (k + r l)  >=  sum over i of min(p_i, r q_i)

is a bound (Lagrangian of the fractional knapsack in which CPUs take over what saves the most work for their time). The best price is that
of the last block that they take over. All terms are positive, so that rounding is a share of the sum. It is linear in the graph, so that
graphs of any size have a bound, and `check` computes it again.
"""

from math import fsum, inf, isfinite

import numpy as np

from crossopt.crossflow.arrays import Array, Mask
from crossopt.instances.placement.question import PlacementQuestion

PROOF_BY_WORK = "the work of all operators, shared by all devices"
_GUARD = 1.0 - 1e-12
"""By which the bound is lowered: many times what sums of floats can be off."""


def least_by_work(question: PlacementQuestion) -> float:
    """The bound in milliseconds; infinite where no device can do anything."""
    from crossopt.formulation.placement.blocks import blocks_of  # noqa: PLC0415 - few results are proved so, and pages need no model

    blocks, (accelerators, cpus) = blocks_of(question.graph, staged=False), (question.accelerators, question.cpus)
    on_accelerator = blocks.accelerator_time if accelerators else np.full(len(blocks.accelerator_time), inf)
    on_cpu = blocks.cpu_time if cpus else np.full(len(blocks.cpu_time), inf)
    either = np.isfinite(on_accelerator) & np.isfinite(on_cpu)
    if np.isinf(np.minimum(on_accelerator, on_cpu)).any():
        return inf
    bounds = [0.0]
    if accelerators:
        bounds.append(fsum(on_accelerator[np.isinf(on_cpu)].tolist()) / accelerators)
    if cpus:
        bounds.append(fsum(on_cpu[np.isinf(on_accelerator)].tolist()) / cpus)
    if accelerators and cpus and (price := _price(on_accelerator, on_cpu, either, accelerators / cpus)):
        bounds.append(fsum(np.minimum(on_accelerator, price * on_cpu).tolist()) / (accelerators + price * cpus))
    return max(bounds) * _GUARD


def _price(on_accelerator: Array, on_cpu: Array, either: Mask, devices: float) -> float:
    """Work of accelerators that a second of a CPU is worth, near the best one; 0 where there is none. Any price gives a bound."""
    movable = np.flatnonzero(either & (on_accelerator > 0.0) & (on_cpu > 0.0))
    prices = on_accelerator[movable] / on_cpu[movable]
    order = np.argsort(-prices, kind="stable")
    taken, time = np.cumsum(on_accelerator[movable][order]), np.cumsum(on_cpu[movable][order])
    stays, spent = on_accelerator[np.isfinite(on_accelerator) & (on_cpu > 0.0)].sum(), on_cpu[np.isinf(on_accelerator)].sum()
    enough = np.flatnonzero(stays - taken <= devices * (spent + time))
    price = float(prices[order[enough[0]]]) if len(enough) else 0.0
    return price if isfinite(price) else 0.0
