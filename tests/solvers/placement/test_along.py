"""Bounds along the blocks: never above the truth, equal to it where cells are fine, and proofs of published graphs."""

from dataclasses import replace
from functools import cache
from math import isinf

import numpy as np
import pytest

from crossopt.formulation.placement.blocks import Blocks, blocks_of, figures_of
from crossopt.formulation.placement.latency import greatest_of
from crossopt.formulation.placement.throughput import Machine, machine_of
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.instances.question import read
from crossopt.solvers.placement.bounds import along as sweep
from crossopt.solvers.placement.bounds.along import along, put, swept
from crossopt.solvers.placement.heuristics import annealed
from crossopt.solvers.placement.judge import judge
from tests.instances.placement.graphs import graph, question, random_graph
from tests.paths import reference
from tests.solvers.placement.test_portfolio import asked_at_random
from tests.solvers.placement.test_stages import brute_force

FOREVER = float("inf")


def bounds(blocks: Blocks, machine: Machine, limit: float, least: float, deadline: float) -> list[float]:
    """Better and better bounds."""
    return [found.bound for found in along(blocks, machine, limit, least, deadline)]


@cache
def asked_for(seed: int) -> PlacementQuestion:
    """Any blocks on any device, with transfers of all sizes, some blocks that no accelerator runs, and no memory that binds."""
    random = np.random.default_rng(500 + seed)
    asked = asked_at_random(seed)
    count, cpus = len(asked.graph), int(random.integers(0, 3)) if asked.cpus else 0
    times = np.where(random.random(count) < 0.1 * (cpus > 0), np.inf, asked.graph.accelerator_time)
    scaled = replace(asked.graph, transfer=asked.graph.transfer * float(random.choice([0.1, 1.0, 4.0])), accelerator_time=times)
    scaled = replace(scaled, cpu_time=scaled.cpu_time * float(random.choice([0.05, 0.3, 1.0])))
    return replace(asked, graph=scaled, cpus=cpus, memory=float("inf"), contiguity="no", communication="calls")


@cache
def truth_of(seed: int) -> float:
    """The best value of that question, by brute force."""
    return brute_force(asked_for(seed))


def test_no_placement_is_below_it_whatever_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor however wide cells are: most states become one where they are half or a quarter of the limit."""
    for seed in range(0, 24, 2):
        monkeypatch.setattr(sweep, "_COARSEST", seed // 2 % 6)
        asked = asked_for(seed)
        true, blocks = truth_of(seed), blocks_of(asked.graph, staged=False)
        assert not isinf(true), seed
        for share in (0.5, 1.0 + 1e-9, (0.999, 1.3, 4.0)[seed % 3]) if true else ():
            found = bounds(blocks, machine_of(asked), share * true, 0.0, FOREVER)
            assert all(bound <= min(share, 1.0 + 1e-12) * true for bound in found), (seed, share)
            assert found == sorted(found), (seed, share)


@pytest.mark.slow
def test_limits_below_the_truth_are_refuted_and_the_truth_is_reached() -> None:
    """With one CPU at the most nothing is lost but what cells lose."""
    asked = [(truth_of(seed), one) for seed in range(30) if (one := asked_for(seed)).cpus < 2]
    values = [(true, one, blocks_of(one.graph, staged=False)) for true, one in asked if true]
    refuted = [max(bounds(blocks, machine_of(one), 0.99 * true, 0.0, FOREVER), default=0.0) == 0.99 * true for true, one, blocks in values]
    reached = [max(bounds(blocks, machine_of(one), 1.01 * true, 0.0, FOREVER), default=0.0) >= 0.99 * true for true, one, blocks in values]
    assert len(values) > 15
    assert all(refuted)
    assert all(reached)


def test_what_is_left_in_the_end_is_the_best_placement() -> None:
    """However much is above it at first; memory does not bind in these questions."""
    for seed in range(0, 40, 4):
        asked, true = asked_for(seed), truth_of(seed)
        blocks = blocks_of(asked.graph, staged=False)
        if not true:
            continue
        *_, last = along(blocks, machine_of(asked), 1.2 * true, 0.0, FOREVER)
        verdicts = [judge(asked, placement) for placement in last.placements]
        assert all(verdict.accepted for verdict in verdicts), seed
        if asked.cpus < 2 and 0.0 < last.bound < 1.2 * true:
            assert min(verdict.value for verdict in verdicts) == pytest.approx(true, rel=1e-6), seed


def test_several_cpus_are_looked_at_as_one() -> None:
    """Two blocks of 6 ms on two CPUs of 10 ms each are 6 ms of one device of twice the speed, at least."""
    asked = question(
        graph([float("inf")] * 3 + [1.0], [(0, 1), (1, 2), (2, 3)], [0.1] * 4, cpu=[6.0, 6.0, 6.0, 50.0]), 1, 2, contiguity="no"
    )
    assert brute_force(asked) == pytest.approx(12.0)
    found = bounds(blocks_of(asked.graph, staged=False), machine_of(asked), 13.0, 0.0, FOREVER)
    assert max(found) == pytest.approx(9.0, rel=1e-6)


def test_memory_can_only_raise_what_is_above_it() -> None:
    for seed in range(12):
        asked = replace(asked_at_random(seed), contiguity="no", communication="calls")
        true = brute_force(asked)
        if 0.0 < true < float("inf"):
            assert all(
                bound <= true * (1.0 + 1e-12)
                for bound in bounds(blocks_of(asked.graph, False), machine_of(asked), true * 1.1, 0.0, FOREVER)
            ), seed


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_graphs_of_many_blocks_are_not_bounded_above_what_annealing_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "_COARSEST", 2)
    asked = question(random_graph(seed, 18, training=bool(seed % 2)), 2 + seed % 2, 1, contiguity="no")
    blocks, machine = blocks_of(asked.graph, staged=False), machine_of(asked)
    found = annealed(blocks, machine, [0] * len(blocks), 60_000, seed, float("inf"))
    value = judge(asked, np.array(found)[blocks.block_of]).value
    assert max(bounds(blocks, machine, value * 1.0001, 0.0, FOREVER)) <= value


def test_each_net_is_paid_by_those_who_have_a_pin_of_it_and_not_all() -> None:
    asked = question(random_graph(7, 12, training=True), 3, 1, contiguity="no")
    blocks = blocks_of(asked.graph, staged=False)
    figures = figures_of(blocks, asked.memory, greatest_of(blocks), 1 << 30)
    random = np.random.default_rng(0)
    for course in swept(blocks, figures) * 10:
        assert sorted(step.block for step in course.steps) == list(range(len(blocks)))
        device = random.integers(0, 4, len(blocks))
        held, paid = np.zeros((4, 1), np.int64), np.zeros((3, 1), np.int64)
        for step in course.steps:
            now, held = put(held, int(device[step.block]), step, 3)
            paid += now
        touched = [{int(device[pin]) for pin in pins} for pins in blocks.nets]
        true = [
            sum(cost for where, cost in zip(touched, figures.transfer, strict=True) if one in where and len(where) > 1) for one in range(3)
        ]
        assert paid[:, 0].tolist() == true
        assert not held.any()


def test_wide_graphs_and_questions_without_accelerators_are_left_alone() -> None:
    ring = [(one, other) for one in range(24) for other in range(one + 1, 24)]
    wide = question(graph([1.0] * 24, ring, [0.1] * 24), 3, contiguity="no")
    cpus = question(graph([1.0, 2.0], [(0, 1)], [0.1] * 2), 0, 2, contiguity="no")
    hidden = question(graph([1.0, 2.0], [(0, 1)], [0.1] * 2), 2, contiguity="no", communication="overlapped")
    for asked in (cpus, hidden):
        assert bounds(blocks_of(asked.graph, staged=False), machine_of(asked), 100.0, 0.0, FOREVER) == []
    assert all(bound <= 24.0 for bound in bounds(blocks_of(wide.graph, staged=False), machine_of(wide), 30.0, 0.0, FOREVER))
    assert bounds(blocks_of(wide.graph, staged=False), machine_of(wide), 30.0, 0.0, 0.0) == []


@pytest.mark.data
def test_a_published_graph_of_operators_is_proved_without_a_cpu() -> None:
    """The optimum is 28.332 ms, which the integer model takes minutes to prove."""
    asked = read(reference("placement/throughput/operator/bert_l-6_inference.json"), ("contiguous=no", "cpus=0"))
    found = bounds(blocks_of(asked.graph, staged=False), machine_of(asked), 28.33, 0.0, FOREVER)
    assert found[-1] == 28.33


@pytest.mark.parametrize("cpu", [1e-30, 1e-9, 1e9])
def test_cores_out_of_all_proportion_do_no_harm(cpu: float) -> None:
    """Energies count in whole numbers, which must not overflow."""
    asked = question(random_graph(11, 6), 2, 1, contiguity="no")
    asked = replace(asked, graph=replace(asked.graph, cpu_time=np.where(np.arange(6) % 2, 1.0, cpu) * asked.graph.accelerator_time))
    true, blocks = brute_force(asked), blocks_of(asked.graph, staged=False)
    assert max(bounds(blocks, machine_of(asked), 0.99 * true, 0.0, FOREVER)) == 0.99 * true
    assert all(bound <= true * (1.0 + 1e-12) for bound in bounds(blocks, machine_of(asked), 1.1 * true, 0.0, FOREVER))


@pytest.mark.data
@pytest.mark.slow
def test_what_a_round_kept_apart_proves_a_published_graph_of_training() -> None:
    """The best placement known is busy for 71.64226 ms; cells of one width alone leave states below 71.5 ms."""
    asked = read(reference("placement/throughput/operator/bert_l-6_training.json"), ("contiguous=no",))
    limit = 71.64226 * (1.0 - 5e-5)
    assert bounds(blocks_of(asked.graph, staged=False), machine_of(asked), limit, 0.0, FOREVER)[-1] == limit
