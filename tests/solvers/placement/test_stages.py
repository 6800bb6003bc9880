"""Stages: brute force, dynamic programming along a chain, and the integer model agree; and the solver that is installed can be believed."""

from itertools import product

import numpy as np
import pytest

from crossopt.formulation.model import real, violations
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.formulation.placement.throughput import stage_of, stage_values_at, stages_model
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.answer import Limits
from crossopt.solvers.backends import backend
from crossopt.solvers.backends.answer import Spend
from crossopt.solvers.placement import intervals
from crossopt.solvers.placement.intervals import best_stages
from crossopt.solvers.placement.judge import judge
from crossopt.solvers.placement.quick import quick
from crossopt.solvers.placement.throughput import run as runs
from crossopt.solvers.placement.throughput import stages as engine
from tests.every import every
from tests.instances.placement.graphs import question, random_graph
from tests.once import once
from tests.solvers.placement.asking import answered, silent


@once
def brute_force(asked: PlacementQuestion) -> float:
    """The least value of all placements that the judge accepts, of those that differ by names of equal devices one."""
    colours = sorted(set(asked.graph.colour.tolist()))
    best = float("inf")
    for devices in product(range(len(asked.devices)), repeat=len(colours)):
        if not _named_in_order(devices, asked.accelerators):
            continue
        where = dict(zip(colours, devices, strict=True))
        verdict = judge(asked, np.array([where[colour] for colour in asked.graph.colour.tolist()]))
        best = min(best, verdict.value) if verdict.accepted else best
    return best


def _named_in_order(devices: tuple[int, ...], accelerators: int) -> bool:
    """Whether accelerators, and CPUs behind them, are taken one after the other."""
    fresh, first = 0, accelerators
    for device in devices:
        if device > (fresh if device < accelerators else first):
            return False
        fresh, first = fresh + (device == fresh < accelerators), first + (device == first)
    return True


def by_model(asked: PlacementQuestion, greatest: float) -> tuple[float | None, float | None]:
    """Value by the judge and bound by the model."""
    blocks = blocks_of(asked.graph, staged=True)
    stages = stages_model(blocks, asked.accelerators, asked.cpus, asked.memory, asked.communication == "overlapped", greatest)
    answer = backend("cpsat")(stages.model, Spend())
    if answer.values is None or answer.bound is None:
        assert answer.status == "INFEASIBLE"
        return None, None
    kinds = [bool(answer.values[variable]) for variable in stages.cpu]
    accelerators, cpus = iter(range(asked.accelerators)), iter(range(asked.accelerators, asked.accelerators + asked.cpus))
    device = [next(cpus) if kind else next(accelerators) for kind in kinds]
    stage = stage_of(stages, answer.values)
    verdict = judge(asked, np.array([device[stage[block]] for block in blocks.block_of]))
    assert verdict.violations == ()
    return verdict.value, real(answer.bound, stages.figures.quantum)


@every("seed", range(30))
def test_the_model_of_stages_finds_what_brute_force_finds(seed: int) -> None:
    random = np.random.default_rng(seed)
    graph = random_graph(seed, int(random.integers(2, 6 - 2 * (seed % 2))), training=bool(seed % 2))
    asked = question(
        graph,
        accelerators=int(random.integers(1, 3)),
        cpus=int(random.integers(0, 2)),
        memory=float(random.choice([np.inf, 0.7 * graph.size.sum(), 0.4 * graph.size.sum()])),
        communication="overlapped" if seed % 5 == 0 else "calls",
    )
    true = brute_force(asked)
    value, bound = by_model(asked, greatest=float(graph.cpu_time.sum() + graph.transfer.sum() + 1.0))
    if np.isinf(true):
        assert value is None
    else:
        assert value is not None
        assert bound is not None
        assert bound <= true
        assert bound == pytest.approx(true, rel=1e-8, abs=1e-8)
        assert value == pytest.approx(true, rel=1e-8, abs=1e-8)


def chain(seed: int, count: int) -> Blocks:
    random = np.random.default_rng(seed)
    nets = tuple((place, place + 1) for place in range(count - 1))
    times = random.integers(1, 2**20, count) * 2.0**-16
    transfer = random.integers(1, 2**20, count - 1) * 2.0**-16
    return Blocks(times, 23.0 * times, np.ones(count), nets, transfer, nets, np.arange(count))


@every("seed", range(40))
def test_a_chain_that_dynamic_programming_places_is_not_called_infeasible(seed: int) -> None:
    """CP-SAT 9.15 calls one in ten of these models infeasible, so that a solver whose word is wrong is found here.

    All figures are whole quanta, so that the least busiest time is the same to the last unit."""
    blocks = chain(seed, 12)
    true = best_stages(blocks, np.arange(12), accelerators=3, cpus=1, memory=1e9, overlapped=False)
    stages = stages_model(blocks, 3, 1, 1e9, overlapped=False, greatest=true.value)
    answer = backend("cpsat")(stages.model, Spend())
    assert answer.status == "OPTIMAL"
    assert answer.value is not None
    assert real(answer.value, stages.figures.quantum) == pytest.approx(true.value, rel=1e-9)
    kinds = [*true.cpu, *[True] * (1 - sum(true.cpu))]
    known = stage_values_at(stages, blocks, true.stage, [*kinds, *[False] * (4 - len(kinds))])
    assert violations(stages.model, known) == ()
    assert stages.model.objective_value(known) == pytest.approx(answer.value, abs=30)


@every("seed", range(30))
@pytest.mark.parametrize("overlapped", [False, True])
def test_stages_of_many_blocks_are_found_end_by_end_as_in_a_table(seed: int, overlapped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is done where a table of all intervals would not fit into memory; too little time is no stages."""
    blocks = blocks_of(random_graph(seed, 9), staged=True)
    order, memory = np.arange(len(blocks)), 0.6 * float(blocks.size.sum())
    table = best_stages(blocks, order, 2, seed % 2, memory, overlapped)
    monkeypatch.setattr(intervals, "LARGE", 0)
    by_end = best_stages(blocks, order, 2, seed % 2, memory, overlapped)
    assert by_end.value == pytest.approx(table.value, rel=1e-12)
    assert (by_end.value == float("inf")) or len(by_end.cpu) == max(by_end.stage) + 1
    assert best_stages(blocks, order, 2, seed % 2, memory, overlapped, deadline=0.0).value == float("inf")


def test_many_blocks_have_an_answer_before_their_best_stages_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal shares of the work, which claim nothing."""
    for module in (intervals, runs, engine):
        monkeypatch.setattr(module, "LARGE", 0)
    asked = question(random_graph(5, 30), 3)
    simple = quick(asked, 0.0)
    assert simple is not None
    result = answered(asked, "stages", Limits(seconds=1e-9), silent)
    assert (result.status, result.stopped, result.bound, result.answer) == ("FEASIBLE", "time limit", None, simple)
