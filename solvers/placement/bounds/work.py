"""The least busiest time by the work alone: what all devices together can do, whatever is sent between them.

In a time T the k accelerators do work of k T, and the l CPUs take over what saves the most work for l T of their own time (a fractional
knapsack: blocks by p / q, the last in part). Below the least T at which both reach the work of all no placement can be. It is linear in the
graph, so that graphs of any size have a bound, and `check` computes it again.
"""

from math import fsum, inf

import numpy as np

from crossopt.instances.placement.question import PlacementQuestion

PROOF_BY_WORK = "the work of all operators, shared by all devices"
_GUARD = 1.0 - 1e-12
"""By which the bound is lowered: many times what sums of floats can be off."""


def least_by_work(question: PlacementQuestion) -> float:
    """The bound in milliseconds; infinite where no device can do anything."""
    from crossopt.formulation.placement.blocks import blocks_of  # noqa: PLC0415 - few results are proved so, and pages need no model

    blocks = blocks_of(question.graph, staged=False)
    work = np.where(np.isfinite(blocks.accelerator_time), blocks.accelerator_time, 0.0)
    left, spent = fsum(work.tolist()), 0.0
    if question.cpus:
        left -= fsum(work[blocks.cpu_time == 0.0].tolist())
        some = np.flatnonzero(blocks.cpu_time > 0.0)
        rates = work[some] / blocks.cpu_time[some]
        for index in np.argsort(-rates, kind="stable").tolist():
            block = some[index]
            taken, time = float(work[block]), float(blocks.cpu_time[block])
            if left - taken <= question.accelerators * (spent + time) / question.cpus:
                rate = float(rates[index])
                return max((left + rate * spent) / (question.accelerators + rate * question.cpus), 0.0) * _GUARD
            left, spent = left - taken, spent + time
    return max(left / question.accelerators, 0.0) * _GUARD if question.accelerators else inf if left > 0.0 else 0.0
