"""Any blocks on any device, and convex devices: the portfolio finds what brute force finds, and its bound holds."""

from dataclasses import replace
from functools import cache
from math import isinf

import numpy as np
import pytest

from crossopt.formulation.model import violations
from crossopt.formulation.placement.blocks import blocks_of
from crossopt.formulation.placement.latency import greatest_of
from crossopt.formulation.placement.throughput import assignment_model, contract, device_of_blocks, machine_of, values_at
from crossopt.instances.errors import RefusedError
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.answer import Limits
from crossopt.solvers.placement.answer import COARSE_GAP
from tests.instances.placement.graphs import question, random_graph
from tests.solvers.placement.asking import answered, silent
from tests.solvers.placement.test_stages import brute_force


@cache
def asked_at_random(seed: int) -> PlacementQuestion:
    random = np.random.default_rng(seed)
    graph = random_graph(seed, int(random.integers(2, 7 - 2 * (seed % 2))), training=bool(seed % 2))
    return question(
        graph,
        accelerators=int(random.integers(1, 4 - seed % 2)),
        cpus=int(random.integers(0, 2)),
        memory=float(random.choice([np.inf, 0.7 * graph.size.sum(), 0.4 * graph.size.sum()])),
        contiguity="convex" if seed % 3 == 0 else "no",
        communication="overlapped" if seed % 5 == 0 else "calls",
    )


@pytest.mark.thorough
@pytest.mark.parametrize("seeds", [range(10, 40, 6), range(11, 40, 6)])
def test_the_portfolio_finds_what_brute_force_finds(seeds: range) -> None:
    for seed in seeds:
        asked = asked_at_random(seed)
        true, found = brute_force(asked), answered(asked, "auto", Limits(), silent)
        if isinf(true):
            assert (found.status, found.value) == ("INFEASIBLE", None), seed
            assert found.reasons, seed
        else:
            assert found.proved, seed
            assert found.value is not None, seed
            assert found.bound is not None, seed
            assert found.bound <= true <= found.value, seed
            assert found.value - found.bound <= COARSE_GAP * found.value, seed


def test_the_random_questions_are_of_all_kinds() -> None:
    asked = [asked_at_random(seed) for seed in range(10, 40)]
    assert {one.contiguity for one in asked} == {"convex", "no"}
    values = [brute_force(one) for one in asked]
    assert 1 <= sum(map(isinf, values)) <= 12
    staged = [brute_force(replace(one, contiguity="stages")) for one in asked]
    assert sum(free < stages for free, stages in zip(values, staged, strict=True)) >= 3


def test_every_known_placement_is_a_solution_of_the_model() -> None:
    for seed in range(12):
        asked = replace(asked_at_random(seed), memory=float("inf"))
        blocks = blocks_of(asked.graph, staged=asked.contiguity == "convex")
        model = assignment_model(blocks, machine_of(asked), greatest_of(blocks))
        whole = values_at(model, blocks, machine_of(asked), [0] * len(blocks))
        assert violations(model.model, whole) == (), seed
        assert device_of_blocks(model, whole) == [0] * len(blocks), seed


def test_engines_answer_their_kind_of_contiguity_only() -> None:
    asked = asked_at_random(1)
    with pytest.raises(RefusedError, match="does not answer --contiguous no"):
        answered(asked, "stages", Limits(), silent)


def with_dear_transfers(seed: int) -> PlacementQuestion:
    asked = asked_at_random(seed)
    transfer = asked.graph.transfer * (5.0 if seed % 4 else 0.5)
    return replace(
        asked, contiguity="no", cpus=asked.cpus if seed % 2 else 0, accelerators=2, graph=replace(asked.graph, transfer=transfer)
    )


def test_blocks_made_one_are_together_in_some_best_placement() -> None:
    """Every placement no busier than the limit keeps them together, so that the least one is still there; some have such blocks."""
    fewer = []
    for seed in range(10, 40):
        asked = with_dear_transfers(seed)
        true = brute_force(asked)
        if isinf(true):
            continue
        blocks = blocks_of(asked.graph, staged=False)
        left = contract(blocks, machine_of(asked), true)
        whole = replace(asked, graph=replace(asked.graph, colour=left.block_of))
        assert brute_force(whole) == true, seed
        fewer.append(len(left) < len(blocks))
    assert 3 <= sum(fewer) < len(fewer)
