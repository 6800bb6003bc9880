"""The integer model of all placements that are no busier, or no later, than a limit, whatever is asked of them."""

import numpy as np

from crossopt.formulation.model import Model
from crossopt.formulation.placement.assignment import assignment_model, machine_of
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.formulation.placement.latency import latency_model
from crossopt.formulation.placement.reductions import contract
from crossopt.formulation.placement.stages import stages_model
from crossopt.instances.placement.graph import PlacementQuestion


def model_within(question: PlacementQuestion, limit: float) -> tuple[Model, float]:
    """The model with its quantum in milliseconds: each such placement is a solution, which costs no more than it."""
    if question.problem == "latency":
        latency = latency_model(question, 0.0, limit)
        return latency.model, latency.figures.quantum
    blocks, machine = blocks_of(question.graph, staged=question.contiguity != "no"), machine_of(question)
    if question.contiguity == "stages":
        stages = stages_model(blocks, machine.accelerators, machine.cpus, machine.memory, machine.overlapped, limit)
        return stages.model, stages.figures.quantum
    assignment = assignment_model(blocks if machine.convex else contract(blocks, machine, limit), machine, limit)
    return assignment.model, assignment.figures.quantum


def greatest_of(blocks: Blocks) -> float:
    """No device of a placement that keeps the rules is busier than this."""
    finite = np.where(np.isfinite(blocks.accelerator_time), blocks.accelerator_time, 0.0)
    return float(np.maximum(finite, blocks.cpu_time).sum() + blocks.transfer.sum()) * (1.0 + 1e-9) + 1e-9
