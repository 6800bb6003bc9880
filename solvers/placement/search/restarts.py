"""Annealing again and again: from the placement that is known, and from equal shares of the work with ever other seeds.

Blocks that no better placement parts are made one before each round (`formulation.placement.reductions`), so that moves are fewer and
larger the better the placement that is known.
"""

from collections.abc import Iterator
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.formulation.placement.throughput import contract, machine_of
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.placement.answer import COARSE_GAP, LEAST_GAP
from crossopt.solvers.placement.judge import judge
from crossopt.solvers.placement.search.anneal import annealed
from crossopt.solvers.placement.search.minimum_cut import equal_shares

_MOVES, _MOVES_A_BLOCK = 600_000, 3_000
_ROUNDS, _FEWEST, _BLOCKS_A_ROUND = 12, 2, 16
"""So many rounds without a better placement are the end: the fewest, and one more for so many blocks, as small graphs are soon solved."""
_DOUBLED = 4
"""After so many rounds without a better placement the next ones are twice as long."""
_HEATS = (0.01, 0.03, 0.1)


def improved(question: PlacementQuestion, known: Whole, seed: int, deadline: float, least: float = 0.0) -> Iterator[Whole]:
    """Less and less busy placements; no round is begun once one is as near to `least`, below which none is, as models can tell."""
    value, since, number = judge(question, known).value, 0, 0
    base, machine = blocks_of(question.graph, staged=False), machine_of(question)
    rounds = min(_ROUNDS, _FEWEST + len(base) // _BLOCKS_A_ROUND)
    while since < rounds and monotonic() < deadline and value - least > LEAST_GAP * value:
        blocks = contract(base, machine, value * (1.0 + COARSE_GAP))
        start = _start(question, blocks, known, seed + number) if number % 2 else _on_blocks(blocks, known)
        moves, heat = min(_MOVES, _MOVES_A_BLOCK * len(blocks)) << since // _DOUBLED, _HEATS[number % len(_HEATS)]
        found = np.array(annealed(blocks, machine, start, moves, seed + number, deadline, heat), np.int64)[blocks.block_of]
        verdict = judge(question, found)
        since, number = since + 1, number + 1
        if verdict.accepted and verdict.value < value:
            known, value, since = found, verdict.value, 0
            yield known


def _start(question: PlacementQuestion, blocks: Blocks, known: Whole, seed: int) -> list[int]:
    """Equal shares of the work where they keep the memory, and else the placement that is known."""
    if question.accelerators and np.isfinite(blocks.accelerator_time).all():
        shares = equal_shares(blocks, question.accelerators, seed)
        if np.bincount(shares, blocks.size, question.accelerators).max() <= question.memory:
            return shares
    return _on_blocks(blocks, known)


def _on_blocks(blocks: Blocks, device_of: Whole) -> list[int]:
    device = np.zeros(len(blocks), np.int64)
    device[blocks.block_of] = device_of
    return [int(place) for place in device]
