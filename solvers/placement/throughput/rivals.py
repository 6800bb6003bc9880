"""What is done without a proof: everything on one device, equal shares of the work, and the cheapest of a few orders."""

from collections.abc import Callable

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.answer import Rival
from crossopt.solvers.placement.answer import Placement, rival
from crossopt.solvers.placement.intervals import Staged, best_stages

Rule = Callable[[PlacementQuestion, Blocks], Whole | None]


def one_device(question: PlacementQuestion, blocks: Blocks) -> Whole | None:
    """Everything on the first accelerator."""
    del blocks
    return np.zeros(len(question.graph), np.int64) if question.accelerators else None


def equal_stages(question: PlacementQuestion, blocks: Blocks) -> Whole | None:
    """Along the order of the graph as many blocks to a stage as make its work an equal share."""
    if not question.accelerators or not np.isfinite(blocks.accelerator_time).all():
        return None
    total = float(blocks.accelerator_time.sum())
    middle = np.cumsum(blocks.accelerator_time) - blocks.accelerator_time / 2.0
    stage = np.minimum((middle / max(total, 1e-300) * question.accelerators).astype(np.int64), question.accelerators - 1)
    return np.asarray(np.maximum.accumulate(stage)[blocks.block_of])


def one_order(question: PlacementQuestion, blocks: Blocks) -> Whole | None:
    """The best stages along the topological order that the graph comes in."""
    overlapped = question.communication == "overlapped"
    found = best_stages(blocks, np.arange(len(blocks)), question.accelerators, question.cpus, question.memory, overlapped)
    return None if found.value == float("inf") else on_devices(question, blocks, found)


def on_devices(question: PlacementQuestion, blocks: Blocks, found: Staged) -> Whole:
    """Stages on devices of their kinds, in their order."""
    accelerators, cpus = iter(range(question.accelerators)), iter(range(question.accelerators, len(question.devices)))
    device = np.array([next(cpus) if kind else next(accelerators) for kind in found.cpu], np.int64)
    return np.asarray(device[np.array(found.stage)[blocks.block_of]])


RULES: dict[str, Rule] = {"one device": one_device, "equal stages": equal_stages, "one order": one_order}


def rivals_of(question: PlacementQuestion) -> tuple[Rival[Placement], ...]:
    """Every rule's placement."""
    blocks = blocks_of(question.graph, staged=True)
    return tuple(rival(question, name, rule(question, blocks)) for name, rule in RULES.items())
