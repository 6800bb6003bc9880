"""What a device with a certain block must do: never above the truth, equal to trying every set, and enough where one block rules."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.formulation.placement.latency import greatest_of
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits
from crossopt.solvers.backends.answer import Spend
from crossopt.solvers.placement.bounds.blocks import PROOF, least_busiest
from crossopt.solvers.placement.heuristics import staged_start
from crossopt.solvers.placement.throughput.stages import least_stage
from tests.every import every
from tests.instances.placement.graphs import graph, question, random_graph
from tests.paths import reference
from tests.solvers.placement.asking import answered, silent
from tests.solvers.placement.test_portfolio import asked_at_random
from tests.solvers.placement.test_stages import brute_force


def by_every_set(blocks: Blocks) -> float:
    """The greatest over blocks of the least over all sets with the block."""
    least = np.full(len(blocks), np.inf)
    for size in range(1, len(blocks) + 1):
        for chosen in combinations(range(len(blocks)), size):
            inside = set(chosen)
            cut = sum(
                cost for pins, cost in zip(blocks.nets, blocks.transfer.tolist(), strict=True) if inside & {*pins} and {*pins} - inside
            )
            load = cut + sum(float(blocks.accelerator_time[block]) for block in chosen)
            least[list(chosen)] = np.minimum(least[list(chosen)], load)
    return float(least.max())


@every("seed", range(30))
def test_minimum_cuts_find_what_every_set_shows(seed: int) -> None:
    asked = question(random_graph(seed, 8, training=bool(seed % 2)), 3, contiguity="no")
    blocks = blocks_of(asked.graph, staged=False)
    true = by_every_set(blocks)
    assert true * (1.0 - 1e-9) <= least_busiest(asked, blocks, greatest_of(blocks)).bound <= true


@every("seed", range(40))
def test_no_placement_is_below_it(seed: int) -> None:
    asked = asked_at_random(seed)
    scaled = replace(asked, graph=replace(asked.graph, transfer=asked.graph.transfer * 4.0))
    for one in (asked, scaled):
        staged = one.contiguity != "no"
        blocks = blocks_of(one.graph, staged)
        assert least_busiest(one, blocks, greatest_of(blocks)).bound <= brute_force(one)


@every("seed", range(60))
def test_no_stages_are_below_what_one_stage_must_do(seed: int) -> None:
    asked = replace(asked_at_random(seed), contiguity="stages")
    asked = replace(asked, graph=replace(asked.graph, transfer=asked.graph.transfer * 4.0))
    blocks = blocks_of(asked.graph, staged=True)
    start = staged_start(asked, blocks)
    if start.value == float("inf"):
        return
    least = least_busiest(asked, blocks, start.value * (1.0 + 1e-9)).bound
    told = least_stage(asked, blocks, start, start.value * (1.0 + 1e-9), least, Spend())
    assert least <= brute_force(asked)
    assert told is None or least < told[0] <= brute_force(asked)


def test_one_stage_says_more_than_minimum_cuts_in_some_of_them() -> None:
    gained = 0
    for seed in range(60):
        asked = replace(asked_at_random(seed), contiguity="stages")
        asked = replace(asked, graph=replace(asked.graph, transfer=asked.graph.transfer * 4.0))
        blocks = blocks_of(asked.graph, staged=True)
        start = staged_start(asked, blocks)
        if start.value < float("inf"):
            least = least_busiest(asked, blocks, start.value * (1.0 + 1e-9)).bound
            gained += least_stage(asked, blocks, start, start.value * (1.0 + 1e-9), least, Spend()) is not None
    assert gained >= 2


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "devices"),
    [("bert_l-3_inference", 16), pytest.param("bert_l-6_training", 32, marks=pytest.mark.slow), ("resnet50_inference", 16)],
)
def test_many_devices_leave_one_stage_to_rule(name: str, devices: int) -> None:
    asked = read(reference(f"placement/throughput/operator/{name}.json"), (f"devices={devices}",))
    assert answered(asked, "auto", Limits(), silent).settled


def test_a_block_that_no_accelerator_runs_takes_its_time_on_a_cpu() -> None:
    asked = question(graph([1.0, float("inf"), 1.0], [(0, 1), (1, 2)], [0.5] * 3, cpu=[10.0, 7.0, 10.0]), 2, 1, contiguity="no")
    assert least_busiest(asked, blocks_of(asked.graph, staged=False), 100.0).bound == pytest.approx(7.0, rel=1e-9)


def test_one_large_block_is_a_proof_without_a_solver() -> None:
    """The second block cannot leave what it is joined to for less than it costs to take it along."""
    chain = graph([1.0, 9.0, 1.0, 1.0], [(0, 1), (1, 2), (2, 3)], [0.25, 3.0, 0.25, 0.0])
    asked = question(chain, 4, contiguity="no")
    found = answered(asked, "auto", Limits(), silent)
    assert (found.value, found.status, found.proved_by) == (10.5, "OPTIMAL", PROOF)
    staged = answered(replace(asked, contiguity="stages"), "auto", Limits(), silent)
    assert (staged.value, staged.proved_by) == (10.5, PROOF)


@pytest.mark.data
@pytest.mark.parametrize("name", ["bert_l-3_inference", pytest.param("bert_l-3_training", marks=pytest.mark.slow)])
def test_published_graphs_of_operators_are_proved_so(name: str) -> None:
    asked = read(reference(f"placement/throughput/operator/{name}.json"), ("contiguous=no",))
    found = answered(asked, "auto", Limits(), silent)
    assert (found.status, found.proved_by) == ("OPTIMAL", PROOF)
