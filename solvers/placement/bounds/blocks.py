"""What a device must do that holds a certain block: a bound on the busiest device that needs no solver.

Whoever holds block b on an accelerator holds some set S of blocks with b in it, does their work and pays for the nets that S cuts:

    T >= least over S with b in S of  sum of p over S + sum of c over the nets with a pin in S and a pin outside

which is a minimum cut between b and a sink that every block b' leads to with capacity p_b'; a net becomes two nodes joined by its cost,
into which all its pins lead and out of which all its pins are reached (Lawler 1973). On a CPU it is q_b at least. All capacities are whole
quanta, rounded down, so that the cut is exact and no placement is below it.

Where data must flow in stages, S is what lies between two cuts of the network, which costs more; a small integer model of that one stage
says how much. It is asked for blocks of the stage that is busiest in what is known, where work alone would leave the devices idle.
"""

from collections.abc import Iterator
from dataclasses import replace
from time import monotonic

import numpy as np

from crossopt.formulation.placement.blocks import Blocks
from crossopt.formulation.placement.networks import Edge, least_cut, network_of
from crossopt.formulation.placement.rows import Figures, figures_of
from crossopt.formulation.placement.stages import one_stage_model
from crossopt.formulation.rounding import real
from crossopt.instances.errors import SolverError
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.backends import backend
from crossopt.solvers.backends.answer import Spend
from crossopt.solvers.placement.answer import LEAST_GAP
from crossopt.solvers.placement.intervals import Staged

PROOF = "the least that a device with one of the blocks must do, by minimum cuts"


_STEPS, _CUTS = 1 << 40, 40
_ASKED, _SHARE = 4, 0.1
"""Blocks of the busiest stage that are asked for, and the share of the time that is left which each may take."""


def least_busiest(question: PlacementQuestion, blocks: Blocks, greatest: float, deadline: float = float("inf")) -> float:
    """The greatest of these bounds, in milliseconds, for placements no busier than `greatest`.

    Blocks whose own work and nets are less than it are not looked at, nor more than some blocks, nor any after the deadline. Where
    transfers run behind the work, they count for nothing here.
    """
    figures, cpus = figures_of(blocks, question.memory, greatest, _STEPS), question.cpus
    if question.communication == "overlapped":
        figures = replace(figures, transfer=[0] * len(figures.transfer))
    most = _alone(blocks, figures)
    alone = zip(figures.accelerator, figures.cpu, figures.supported, strict=True)
    best = max((min(work, cpu) if cpus else work for work, cpu, runs in alone if runs), default=0)
    network, asked = None, 0
    for block in sorted(range(len(blocks)), key=lambda one: -most[one]):
        if asked == _CUTS or monotonic() >= deadline:
            break
        if min(most[block], figures.cpu[block] if cpus and figures.supported[block] else most[block]) <= best:
            continue
        if not figures.supported[block]:
            best = max(best, figures.cpu[block] if cpus else 0)
            continue
        if most[block] > figures.accelerator[block]:
            network = network_of(_edges(blocks, figures)) if network is None else network
            on_accelerator, asked = least_cut(network, block, len(blocks)), asked + 1
        else:
            on_accelerator = most[block]
        best = max(best, min(on_accelerator, figures.cpu[block]) if cpus else on_accelerator)
    return real(best, figures.quantum)


def least_stage(
    question: PlacementQuestion, blocks: Blocks, start: Staged, greatest: float, least: float, spend: Spend
) -> tuple[float, str]:
    """The bound that one stage gives, and what proves it; `least` where it gives no more than that, or where work decides."""
    accelerator = np.where(np.isfinite(blocks.accelerator_time), blocks.accelerator_time, 0.0)
    if float(accelerator.sum()) > least * (question.accelerators + question.cpus):
        return least, PROOF
    overlapped, proof = question.communication == "overlapped", PROOF
    figures = figures_of(blocks, question.memory, greatest, _STEPS)
    alone = _alone(blocks, figures)
    for block in sorted(_busiest(blocks, start), key=lambda one: -alone[one])[:_ASKED]:
        model, quantum = one_stage_model(blocks, question.memory, overlapped, greatest, block)
        answer = backend("cpsat")(model, replace(spend, seconds=_SHARE * spend.seconds))
        if answer.status == "INFEASIBLE" and not question.cpus:
            raise SolverError(f"{answer.solver} broke its word: it calls a stage impossible that is known")
        bound = float("inf") if answer.status == "INFEASIBLE" else 0.0 if answer.bound is None else real(answer.bound, quantum)
        bound = min(bound, real(figures.cpu[block], figures.quantum)) if question.cpus else bound
        if bound > least:
            least, proof = bound, f"the least stage with one of the blocks, by {answer.solver} in whole quanta of {quantum:.1e} ms"
        if least >= greatest * (1.0 - LEAST_GAP):
            break
    return least, proof


def _busiest(blocks: Blocks, start: Staged) -> list[int]:
    """The blocks of the stage that is busiest."""
    stage, work = np.array(start.stage), np.where(np.isfinite(blocks.accelerator_time), blocks.accelerator_time, 0.0)
    load = np.where(start.cpu, np.bincount(stage, blocks.cpu_time, len(start.cpu)), np.bincount(stage, work, len(start.cpu)))
    for pins, cost in zip(blocks.nets, blocks.transfer.tolist(), strict=True):
        touched = {int(stage[pin]) for pin in pins}
        load[list(touched)] += cost * (len(touched) > 1)
    return [int(block) for block in np.flatnonzero(stage == int(load.argmax()))]


def _alone(blocks: Blocks, figures: Figures) -> list[int]:
    """What a device does that holds this block and no other; what it does at the most, where no accelerator can."""
    alone = [work if runs else max(work, cpu) for work, cpu, runs in zip(figures.accelerator, figures.cpu, figures.supported, strict=True)]
    for pins, cost in zip(blocks.nets, figures.transfer, strict=True):
        for pin in pins:
            alone[pin] += cost
    return alone


def _edges(blocks: Blocks, figures: Figures) -> Iterator[Edge]:
    """Blocks as they are numbered, then the sink, then two nodes for each net."""
    sink = len(blocks)
    for block, work in enumerate(figures.accelerator):
        yield block, sink, work
    for number, (pins, cost) in enumerate(zip(blocks.nets, figures.transfer, strict=True)):
        entry = sink + 1 + 2 * number
        yield entry, entry + 1, cost
        for pin in pins:
            yield pin, entry, None
            yield entry + 1, pin, None
