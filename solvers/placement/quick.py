"""A placement by the simplest of rules, in time that grows no faster than the graph: for who has to answer at once."""

from collections.abc import Iterator

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.placement.answer import Placement, judge_placement, placement_of


def quick(question: PlacementQuestion, deadline: float) -> Placement | None:
    """Equal shares of work, equal shares of memory, or all on one device: the first that keeps every rule."""
    del deadline
    if question.problem == "latency":
        return placement_of(question, np.full(len(question.graph), question.accelerators, np.int64), _no_pieces(question))
    for device_of in _tried(question):
        placement = placement_of(question, device_of)
        if not judge_placement(question, placement).violations:
            return placement
    return None


def _tried(question: PlacementQuestion) -> Iterator[Whole]:
    yield from equal_shares(question, blocks_of(question.graph, staged=True))
    if question.cpus:
        yield np.full(len(question.graph), question.accelerators, np.int64)


def equal_shares(question: PlacementQuestion, blocks: Blocks) -> Iterator[Whole]:
    """Stages with equal shares of work, then of memory."""
    if question.accelerators and np.isfinite(blocks.accelerator_time).all():
        yield _shares(blocks, blocks.accelerator_time, question.accelerators)
        yield _shares(blocks, blocks.size, question.accelerators)


def _shares(blocks: Blocks, column: Array, count: int) -> Whole:
    """The stage of every node: along the order of the blocks, with equal shares of this."""
    middle = np.cumsum(column) - column / 2.0
    stage = np.minimum((middle / max(float(column.sum()), 1e-300) * count).astype(np.int64), count - 1)
    return np.asarray(np.maximum.accumulate(stage)[blocks.block_of])


def _no_pieces(question: PlacementQuestion) -> Whole | None:
    return None if question.pieces == 1 else np.zeros(len(question.graph), np.int64)
