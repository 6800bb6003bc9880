"""What the stage must do that holds a certain block, where data must flow in stages: a bound by a small integer model.

There a set of blocks is what lies between two cuts of the network, which costs more than a set of any shape (`bounds.blocks`). Blocks of
the stage that is busiest in what is known are asked for, where work alone would leave the devices idle.
"""

from dataclasses import replace

import numpy as np

from crossopt.formulation.model import real
from crossopt.formulation.placement.blocks import Blocks, figures_of
from crossopt.formulation.placement.throughput import one_stage_model
from crossopt.instances.errors import SolverError
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.backends import backend
from crossopt.solvers.backends.answer import Spend
from crossopt.solvers.placement.answer import LEAST_GAP
from crossopt.solvers.placement.bounds.blocks import alone
from crossopt.solvers.placement.intervals import Staged

_STEPS = 1 << 40
_ASKED, _SHARE = 4, 0.1
"""Blocks of the busiest stage that are asked for, and the share of the time that is left which each may take."""


def least_stage(
    question: PlacementQuestion, blocks: Blocks, start: Staged, greatest: float, least: float, spend: Spend
) -> tuple[float, str] | None:
    """The bound that one stage gives, and who says so; None where it gives no more than `least`, or where work decides."""
    accelerator = np.where(np.isfinite(blocks.accelerator_time), blocks.accelerator_time, 0.0)
    if float(accelerator.sum()) > least * (question.accelerators + question.cpus):
        return None
    overlapped, word = question.communication == "overlapped", ""
    figures = figures_of(blocks, question.memory, greatest, _STEPS)
    most = alone(blocks, figures)
    for block in sorted(_busiest(blocks, start), key=lambda one: -most[one])[:_ASKED]:
        model, quantum = one_stage_model(blocks, question.memory, overlapped, greatest, block)
        answer = backend("cpsat")(model, replace(spend, seconds=_SHARE * spend.seconds))
        if answer.status == "INFEASIBLE" and not question.cpus:
            raise SolverError(f"{answer.solver} broke its word: it calls a stage impossible that is known")
        bound = float("inf") if answer.status == "INFEASIBLE" else 0.0 if answer.bound is None else real(answer.bound, quantum)
        bound = min(bound, real(figures.cpu[block], figures.quantum)) if question.cpus else bound
        if bound > least:
            least, word = bound, f"the least stage with one of the blocks, by {answer.solver} in whole quanta of {quantum:.1e} ms"
        if least >= greatest * (1.0 - LEAST_GAP):
            break
    return (least, word) if word else None


def _busiest(blocks: Blocks, start: Staged) -> list[int]:
    """The blocks of the stage that is busiest."""
    stage, work = np.array(start.stage), np.where(np.isfinite(blocks.accelerator_time), blocks.accelerator_time, 0.0)
    load = np.where(start.cpu, np.bincount(stage, blocks.cpu_time, len(start.cpu)), np.bincount(stage, work, len(start.cpu)))
    for pins, cost in zip(blocks.nets, blocks.transfer.tolist(), strict=True):
        touched = {int(stage[pin]) for pin in pins}
        load[list(touched)] += cost * (len(touched) > 1)
    return [int(block) for block in np.flatnonzero(stage == int(load.argmax()))]
