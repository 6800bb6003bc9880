"""The dynamic program over ideals: equal to brute force and to the integer model, its bound never above the judge, and carried out anew."""

from dataclasses import replace
from math import inf, isinf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossopt.formulation.placement.blocks import blocks_of
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits, SearchOutcome
from crossopt.solvers.family import certify
from crossopt.solvers.orders import every_ideal
from crossopt.solvers.placement.answer import placement_of
from crossopt.solvers.placement.bounds.ideals import best_by_ideals
from crossopt.solvers.placement.family import FAMILY
from crossopt.solvers.placement.heuristics import staged_start
from crossopt.solvers.placement.judge import judge
from crossopt.solvers.proofs import UnverifiedBound
from tests.every import every
from tests.instances.placement.graphs import graph, question, random_graph
from tests.instances.placement.test_formats import document, node, written
from tests.paths import reference
from tests.solvers.placement.asking import answered, checked, silent
from tests.solvers.placement.test_stages import brute_force, by_model


def staged_at_random(seed: int, largest: int = 6) -> PlacementQuestion:
    """Calls and overlapped, training, memory, CPUs, nodes that no accelerator runs, and figures that no double holds exactly."""
    random = np.random.default_rng(seed)
    made = random_graph(seed, int(random.integers(2, largest + 1 - 2 * (seed % 2))), training=bool(seed % 2))
    factor = float(random.choice([1.0, 1.0 / 3.0, 1e-9, 1e12]))
    if seed % 6 == 0:
        made.accelerator_time[int(random.integers(len(made)))] = inf
    made = replace(made, accelerator_time=made.accelerator_time * factor, cpu_time=made.cpu_time * factor, transfer=made.transfer * factor)
    made = replace(made, size=made.size * float(random.choice([1.0, 0.1])))
    return question(
        made,
        accelerators=int(random.integers(1, 4 - seed % 2)),
        cpus=int(random.integers(0, 3 - seed % 2)),
        memory=float(random.choice([inf, 0.7 * made.size.sum(), 0.4 * made.size.sum()])),
        communication="overlapped" if seed % 5 < 2 else "calls",
    )


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_it_finds_what_brute_force_finds(start: int) -> None:
    for seed in range(start, start + 20):
        asked = staged_at_random(seed, 5)
        true, best = brute_force(asked), best_by_ideals(asked)
        assert best is not None
        if isinf(true):
            assert (best.bound, best.device_of) == (inf, None)
            continue
        assert best.device_of is not None
        verdict = judge(asked, best.device_of)
        assert verdict.violations == ()
        assert best.bound <= true
        assert best.bound == pytest.approx(true, rel=1e-12)
        assert verdict.value == pytest.approx(true, rel=1e-12)
        limited = best_by_ideals(asked, true)
        assert limited is not None
        assert limited.bound == min(best.bound, true)


def test_the_random_questions_are_of_all_kinds() -> None:
    asked = [staged_at_random(seed, 5) for seed in range(60)]
    values = [brute_force(one) for one in asked]
    assert 3 <= sum(map(isinf, values)) <= 40
    assert {one.communication for one in asked} == {"calls", "overlapped"}
    assert {one.cpus for one in asked} == {0, 1, 2}
    assert any(one.graph.backward.any() and not isinf(value) for one, value in zip(asked, values, strict=True))


@every("seed", range(0, 40, 2))
def test_it_agrees_with_the_integer_model(seed: int) -> None:
    asked = staged_at_random(seed, 14)
    factor = 1.0 / max(float(asked.graph.transfer.max()), 1e-300)
    asked = replace(asked, graph=replace(asked.graph, transfer=asked.graph.transfer * factor, cpu_time=asked.graph.cpu_time * factor))
    asked = replace(asked, graph=replace(asked.graph, accelerator_time=asked.graph.accelerator_time * factor))
    best = best_by_ideals(asked)
    value, bound = by_model(asked, float(asked.graph.cpu_time.sum() + asked.graph.transfer.sum() + 1.0))
    assert best is not None
    if value is None or bound is None:
        assert best.device_of is None
        return
    assert best.bound <= value
    assert bound <= best.bound * (1.0 + 1e-12)
    assert best.bound == pytest.approx(bound, rel=1e-7, abs=1e-9)


def test_no_stages_within_a_limit_is_what_it_says() -> None:
    chain = graph([1.0, 2.0, 4.0], [(0, 1), (1, 2)], [0.25, 0.5, 0.0])
    asked = question(chain, 2)
    best, none = best_by_ideals(asked), best_by_ideals(asked, 4.25)
    assert best is not None
    assert none is not None
    assert (best.bound, none.bound, none.device_of) == (4.5, 4.25, None)
    assert best.proof == "dynamic programming over 4 ideals"


def test_too_many_ideals_are_refused_and_time_ends_it() -> None:
    apart = question(graph(np.ones(40), [], np.zeros(40)), 2)
    assert best_by_ideals(apart) is None
    chain = question(graph(np.ones(40), [(one, one + 1) for one in range(39)], np.zeros(40)), 2)
    assert best_by_ideals(chain, deadline=0.0) is None


def test_ideals_are_all_closed_sets() -> None:
    before = [0, 0, 0b1, 0b11, 0b100]
    closed = [mask for mask in range(32) if all(not mask >> place & 1 or not needed & ~mask for place, needed in enumerate(before))]
    assert every_ideal(before, 100) == sorted(closed, key=lambda mask: (mask.bit_count(), mask))
    assert every_ideal(before, len(closed)) is not None
    assert every_ideal(before, len(closed) - 1) is None
    assert every_ideal([], 1) == [0]


PUBLISHED = {"layer/bert24_training": 39, "layer/resnet50_training": 242, "operator/resnet50_inference": 241}


@pytest.mark.data
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_graphs_with_few_ideals_are_proved(name: str) -> None:
    asked = read(reference(f"placement/throughput/{name}.json"))
    start = staged_start(asked, blocks_of(asked.graph, staged=True))
    best = best_by_ideals(asked, start.value * (1.0 + 1e-9))
    assert best is not None
    assert best.device_of is not None
    verdict = judge(asked, best.device_of)
    assert (verdict.violations, best.ideals) == ((), PUBLISHED[name])
    assert best.bound <= verdict.value <= best.bound * (1.0 + 1e-10)


@pytest.mark.parametrize("start", range(0, 100, 20))
def test_the_engine_and_the_check_agree_with_brute_force(start: int) -> None:
    proved = set()
    for seed in range(start, start + 20):
        asked = staged_at_random(seed, 4)
        true, found = brute_force(asked), answered(asked, "auto", Limits(), silent)
        assert found.proved
        assert (found.value is None) == isinf(true)
        assert found.value is None or found.value == pytest.approx(true, rel=1e-7)
        assert found.bound is None or found.bound <= true
        proved.add(found.proved_by.split(" over ")[0])
    assert "dynamic programming" in proved


def document_of_chain() -> dict[str, Any]:
    rows = [node(row, fpgaLatency=float(row + 1)) for row in range(5)]
    edges = [{"sourceId": row, "destId": row + 1, "cost": 0.5} for row in range(4)]
    return document(nodes=rows, edges=edges, maxSizePerFPGA=100.0)


def test_a_saved_proof_is_carried_out_anew_and_one_that_claims_too_much_is_refused(tmp_path: Path) -> None:
    asked = read(written(tmp_path, document_of_chain()))
    found = answered(asked, "auto", Limits(), silent)
    report = checked(found)
    assert (report.accepted, report.told) == (True, False)
    assert f"the bound was proved anew by {best_proof(asked)}" in report.checked
    by_solver = checked(replace(found, status="FEASIBLE", proved=False, proof=UnverifiedBound("CP-SAT")))
    assert (by_solver.accepted, by_solver.told) == (True, False)
    alone = placement_of(asked, np.zeros(len(asked.graph), np.int64))
    worse = certify(FAMILY, asked, SearchOutcome(alone, found.value, UnverifiedBound("a lie"), "stages"), Limits(), 0.0)
    assert worse.value is not None
    assert checked(worse).accepted
    lie = certify(FAMILY, asked, SearchOutcome(alone, worse.value, UnverifiedBound("a lie"), "stages"), Limits(), 0.0)
    assert any("a placement takes" in reason for reason in checked(lie).refused)


def best_proof(asked: PlacementQuestion) -> str:
    best = best_by_ideals(asked)
    assert best is not None
    return best.proof
