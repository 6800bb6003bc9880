"""Annealing keeps its sums right, its memory, and never ends above its start."""

from dataclasses import replace

import numpy as np

from crossopt.formulation.placement.blocks import blocks_of
from crossopt.formulation.placement.throughput import machine_of
from crossopt.solvers.placement.heuristics import annealed
from crossopt.solvers.placement.judge import judge
from tests.every import every
from tests.instances.placement.graphs import question, random_graph


@every("seed", range(16))
def test_what_annealing_finds_is_no_busier_in_the_judges_eyes_and_keeps_the_memory(seed: int) -> None:
    random = np.random.default_rng(seed)
    graph = replace(
        random_graph(seed, 30, training=bool(seed % 2)), accelerator_time=random.integers(1, 64, 60)[: 30 * (1 + seed % 2)] / 4.0
    )
    asked = question(
        graph,
        accelerators=3,
        cpus=seed % 2,
        memory=float(graph.size.sum()) * 0.8,
        contiguity="no",
        communication="overlapped" if seed % 3 == 0 else "calls",
    )
    blocks = blocks_of(graph, staged=False)
    half = [0 if block < len(blocks) // 2 else 1 for block in range(len(blocks))]
    before = judge(asked, np.array(half)[blocks.block_of])
    found = annealed(blocks, machine_of(asked), half, 4000, seed, float("inf"))
    after = judge(asked, np.array(found)[blocks.block_of])
    assert after.value <= before.value * (1.0 + 1e-12)
    assert not before.accepted or after.accepted
    assert found == annealed(blocks, machine_of(asked), half, 4000, seed, float("inf"))


def test_two_equal_halves_are_found_from_one_full_device() -> None:
    graph = random_graph(3, 20)
    asked = question(replace(graph, transfer=graph.transfer * 0.0), 2, contiguity="no")
    blocks = blocks_of(asked.graph, staged=False)
    found = annealed(blocks, machine_of(asked), [0] * len(blocks), 20000, 0, float("inf"))
    total = float(graph.accelerator_time.sum())
    assert judge(asked, np.array(found)[blocks.block_of]).value < 0.53 * total
