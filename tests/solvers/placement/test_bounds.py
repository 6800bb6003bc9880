"""Bounds and proofs of throughput: never above the truth, as enumeration finds them, and counted again by a second program."""

from dataclasses import replace
from functools import cache
from itertools import combinations, product
from math import fsum, inf, isinf
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossopt.formulation.placement.blocks import Blocks, Figures, blocks_of, figures_of
from crossopt.formulation.placement.throughput import Machine, contract, greatest_of, machine_of
from crossopt.formulation.vipr import vipr_certificate
from crossopt.instances.errors import SolverError
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits, SearchOutcome, unwatched
from crossopt.solvers.backends.answer import Spend
from crossopt.solvers.checking import check_answer
from crossopt.solvers.family import certify
from crossopt.solvers.orders import every_ideal
from crossopt.solvers.placement import engines
from crossopt.solvers.placement.annealing import annealed
from crossopt.solvers.placement.answer import placement_of
from crossopt.solvers.placement.bounds import along as along_bound
from crossopt.solvers.placement.bounds import along as blocks_bound
from crossopt.solvers.placement.bounds import along as sweep
from crossopt.solvers.placement.bounds import ideals, set_partitioning
from crossopt.solvers.placement.bounds import prices as counting
from crossopt.solvers.placement.bounds import set_partitioning as columns
from crossopt.solvers.placement.bounds.along import MOST_REPEATED, along, least_busiest, put, swept
from crossopt.solvers.placement.bounds.along import PROOF_BY_BLOCK as BLOCKS_PROOF
from crossopt.solvers.placement.bounds.ideals import best_by_ideals
from crossopt.solvers.placement.bounds.prices import (
    BEYOND,
    least_busiest_of,
    least_loads,
    narrowed,
    set_of,
    walk_along,
    walk_of_cpu,
)
from crossopt.solvers.placement.bounds.set_partitioning import PROOF as SET_PARTITIONING_PROOF
from crossopt.solvers.placement.bounds.set_partitioning import multiplier_bounds
from crossopt.solvers.placement.certificates import branched, integer_proof, recomputed_bound, tree_within
from crossopt.solvers.placement.engines import least_stage
from crossopt.solvers.placement.family import FAMILY, Answer, _better_stages
from crossopt.solvers.placement.heuristics import staged_start
from crossopt.solvers.placement.judge import judge
from crossopt.solvers.placement.run import Run
from crossopt.solvers.proofs import Branched, MultiplierBound, OnPath, Proof, Surrounded, Swept, UnverifiedBound
from crossopt.solvers.vipr import check
from tests.every import every
from tests.extent import examples
from tests.instances.placement.graphs import graph, question, random_graph
from tests.instances.placement.samples import sample_at_random, tried
from tests.instances.placement.test_formats import document, node, written
from tests.paths import reference
from tests.solvers.placement.asking import answered, checked
from tests.solvers.placement.test_answers import brute_force, by_model
from tests.solvers.placement.test_searches import asked_at_random

# Trees about the integer model of placements within a limit: what they show holds, whatever they are.

CROWDED = question(graph([1.0] * 3, [(0, 1), (1, 2)], [0.1] * 3, sizes=[6.0] * 3), 2, 0, 10.0, "no")
"""Three blocks of 6 bytes on two devices of 10 bytes."""


def truth(asked: PlacementQuestion) -> float:
    return tried(asked) if asked.problem == "latency" else brute_force(asked)


def question_of(seed: int) -> PlacementQuestion:
    """Any blocks anywhere, convex devices, or one sample."""
    return sample_at_random(seed, nodes=4, places=1 + seed % 2) if seed % 3 == 2 else asked_at_random(seed)


def test_that_nothing_fits_is_counted_and_not_told() -> None:
    found = answered(CROWDED, "auto", Limits(), unwatched)
    assert (found.status, found.proved) == ("INFEASIBLE", True)
    assert isinstance(found.proof, Branched)
    report = check_answer(FAMILY, found, CROWDED)
    assert (report.refused, report.unverified) == ((), False)
    tree = integer_proof(CROWDED, found)
    assert tree is not None
    certificate = vipr_certificate(tree)
    assert (check(certificate.text).infeasible, tree.shown(certificate.bound)) == (True, inf)
    for less in (replace(found.proof, steps=()), replace(found.proof, limit=0.5 * found.proof.limit), replace(found.proof, scale=0)):
        assert not check_answer(FAMILY, replace(found, proof=less), CROWDED).accepted


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 40), st.sampled_from([0.6, 1.0, 1.5]), st.sampled_from([0.5, 1.0, inf]))
def test_a_tree_shows_no_more_than_the_best_placement(seed: int, share: float, claim: float) -> None:
    asked = question_of(seed)
    true = truth(asked)
    limit = (true if 0.0 < true < inf else 1.0) * share
    found = branched(asked, limit, claim * limit, monotonic() - 15.0, 5.0)
    assert found is not None
    bound, proof = found
    assert bound <= true
    assert (recomputed_bound(asked, proof) or 0.0) >= bound
    assert (recomputed_bound(asked, proof) or 0.0) <= true
    tree = tree_within(asked, proof)
    certificate = vipr_certificate(tree)
    checked = check(certificate.text)
    assert (checked.low, checked.infeasible) == (certificate.bound, certificate.bound is None)
    assert tree.shown(certificate.bound) == recomputed_bound(asked, proof)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 12), st.data())
def test_no_edit_of_a_tree_shows_more_than_the_best_placement(seed: int, data: st.DataObject) -> None:
    asked = question_of(seed)
    true = truth(asked)
    found = branched(asked, (true if 0.0 < true < inf else 1.0) * 1.2, inf, monotonic() - 15.0, 5.0)
    assert found is not None
    proof, steps = found[1], [[int(word) for word in line.split(" ")] for line in found[1].steps]
    for _ in range(data.draw(st.integers(1, 4))):
        step = data.draw(st.sampled_from(steps)) if steps else []
        if step:
            step[data.draw(st.integers(0, len(step) - 1))] = data.draw(st.sampled_from([-1, 0, 1, 2, 10**6, -(10**6), 10**30]))
    limit, scale = proof.limit * data.draw(st.sampled_from([1.0, 0.5, 3.0])), data.draw(st.sampled_from([proof.scale, 1, 0, -1]))
    edited = Branched("", limit, scale, tuple(" ".join(map(str, step)) for step in steps[data.draw(st.integers(0, 1)) :]))
    assert (recomputed_bound(asked, edited) or 0.0) <= true


def test_a_tree_about_another_question_or_without_a_limit_shows_nothing_wrong() -> None:
    found = answered(CROWDED, "auto", Limits(), unwatched)
    assert isinstance(found.proof, Branched)
    roomy = replace(CROWDED, memory=12.0)
    assert (recomputed_bound(roomy, found.proof) or 0.0) <= brute_force(roomy)
    for limit in (0.0, -1.0, inf, float("nan")):
        assert recomputed_bound(CROWDED, replace(found.proof, limit=limit)) is None


# The dynamic program over ideals: equal to brute force and to the integer model, its bound never above the judge, and carried out anew.


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


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_it_finds_what_brute_force_finds_where_units_have_no_work(start: int) -> None:
    """What is left out runs beside the rest without any cost, and limits below the optimum leave nothing."""
    left_out = 0
    for seed in range(start, start + 20):
        asked, random = staged_at_random(seed, 5), np.random.default_rng(seed)
        rows = random.random(len(asked.graph)) < 0.6
        rows |= np.isin(asked.graph.colour, asked.graph.colour[rows])
        made = asked.graph
        made = replace(made, accelerator_time=np.where(rows, 0.0, made.accelerator_time), cpu_time=np.where(rows, 0.0, made.cpu_time))
        asked = replace(asked, graph=replace(made, transfer=made.transfer * (random.random(len(made)) < 0.7)))
        true, best, counted = brute_force(asked), best_by_ideals(asked), ideals._count_ideals(asked)
        assert best is not None
        assert counted is not None
        left_out += len(counted.idle)
        if isinf(true):
            assert (best.bound, best.device_of) == (inf, None)
            continue
        assert best.device_of is not None
        verdict = judge(asked, best.device_of)
        assert verdict.violations == ()
        assert (best.bound, verdict.value) == (pytest.approx(true, rel=1e-12), pytest.approx(true, rel=1e-12))
        assert best.bound <= true
        below = best_by_ideals(asked, true * 0.999)
        assert true == 0.0 or (below is not None and (below.bound, below.device_of) == (true * 0.999, None))
    assert left_out > 5


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


PUBLISHED = {
    "layer/bert24_training": 28,
    "layer/gnmt_inference": 100,
    "layer/gnmt_training": 100,
    "layer/inceptionv3_training": 36_596,
    "layer/resnet50_training": 242,
    "operator/resnet50_inference": 241,
}


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
        true, found = brute_force(asked), answered(asked, "auto", Limits(), unwatched)
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
    found = answered(asked, "auto", Limits(), unwatched)
    report = checked(found)
    assert (report.accepted, report.unverified) == (True, False)
    assert f"the bound was proved anew by {best_proof(asked)}" in report.checked
    by_solver = checked(replace(found, status="FEASIBLE", proved=False, proof=UnverifiedBound("CP-SAT")))
    assert (by_solver.accepted, by_solver.unverified) == (True, False)
    alone = placement_of(asked, np.zeros(len(asked.graph), np.int64))
    worse = certify(FAMILY, asked, SearchOutcome(alone, found.value, UnverifiedBound("a lie"), "stages"), Limits(), 0.0)
    assert worse.value is not None
    assert checked(worse).accepted
    lie = certify(FAMILY, asked, SearchOutcome(alone, worse.value, UnverifiedBound("a lie"), "stages"), Limits(), 0.0)
    assert any("a placement takes" in reason for reason in checked(lie).refused)
    best = best_by_ideals(asked)
    assert best is not None
    exact = replace(found, proof=UnverifiedBound("CP-SAT"))
    assert exact.bound is not None
    assert _better_stages(asked, exact, best) == ()
    above = replace(exact, bound=float(np.nextafter(value_of_best(asked), np.inf)))
    assert len(_better_stages(asked, above, best)) == 1
    assert _better_stages(asked, replace(exact, bound=value_of_best(asked)), best) == ()


def value_of_best(asked: PlacementQuestion) -> float:
    best = best_by_ideals(asked)
    assert best is not None
    assert best.device_of is not None
    return judge(asked, best.device_of).value


def best_proof(asked: PlacementQuestion) -> str:
    best = best_by_ideals(asked)
    assert best is not None
    return best.proof


# What a device with a certain block must do: never above the truth, equal to trying every set, and enough where one block rules.


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
    assert answered(asked, "auto", Limits(), unwatched).settled


def test_a_block_that_no_accelerator_runs_takes_its_time_on_a_cpu() -> None:
    asked = question(graph([1.0, float("inf"), 1.0], [(0, 1), (1, 2)], [0.5] * 3, cpu=[10.0, 7.0, 10.0]), 2, 1, contiguity="no")
    assert least_busiest(asked, blocks_of(asked.graph, staged=False), 100.0).bound == pytest.approx(7.0, rel=1e-9)


def test_one_large_block_is_a_proof_without_a_solver() -> None:
    """The second block cannot leave what it is joined to for less than it costs to take it along."""
    chain = graph([1.0, 9.0, 1.0, 1.0], [(0, 1), (1, 2), (2, 3)], [0.25, 3.0, 0.25, 0.0])
    asked = question(chain, 4, contiguity="no")
    found = answered(asked, "auto", Limits(), unwatched)
    assert (found.value, found.status, found.proved_by) == (10.5, "OPTIMAL", BLOCKS_PROOF)
    staged = answered(replace(asked, contiguity="stages"), "auto", Limits(), unwatched)
    assert (staged.value, staged.proved_by) == (10.5, BLOCKS_PROOF)


@pytest.mark.data
@pytest.mark.parametrize("name", ["bert_l-3_inference", pytest.param("bert_l-3_training", marks=pytest.mark.slow)])
def test_published_graphs_of_operators_are_proved_so(name: str) -> None:
    asked = read(reference(f"placement/throughput/operator/{name}.json"), ("contiguous=no",))
    found = answered(asked, "auto", Limits(), unwatched)
    assert (found.status, found.proved_by) == ("OPTIMAL", BLOCKS_PROOF)


# Bounds along the blocks: never above the truth, equal to it where cells are fine, and proofs of published graphs.

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


# What a result of throughput holds of its proof is counted again: honest ones are no word, and none shows more than the best placement.

RING = question(graph([3.0] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)], [1.0] * 4), 2, contiguity="no")
"""Four blocks of 3 ms in a ring, each joined to the next by 1 ms: the best placement is busy for 8 ms."""


def proofs_of(asked: PlacementQuestion, limit: float) -> list[tuple[float, Proof]]:
    """The last bound of each engine, and what shows it."""
    blocks, machine = blocks_of(asked.graph, asked.contiguity != "no"), machine_of(asked)
    held = least_busiest(asked, blocks, limit)
    found: list[tuple[float, Proof]] = [(held.bound, Surrounded(blocks_bound.PROOF_BY_BLOCK, limit, held.block))]
    found += [
        (one.bound, MultiplierBound(set_partitioning.PROOF, limit, tuple(one.prices.tolist())))
        for one in [*multiplier_bounds(blocks, machine, limit, 0.0, inf)][-1:]
    ]
    return found + [(one.bound, Swept(along_bound.PROOF_ALONG, limit, one.states)) for one in [*along(blocks, machine, limit, 0.0)][-1:]]


def result_of(asked: PlacementQuestion, bound: float, proof: Proof) -> Answer:
    """The best placement with this bound and this proof."""
    best = answered(asked, "auto", Limits(), unwatched)
    return certify(FAMILY, asked, SearchOutcome(best.answer, bound, proof, "portfolio", baselines=best.baselines), Limits(), 0.0)


@pytest.mark.parametrize("seeds", [range(0, 24, 8), pytest.param(range(4, 24, 8), marks=pytest.mark.slow)], ids=str)
def test_what_engines_found_is_shown_again_to_the_last_bit(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_partitioning, "_PATIENCE", 3)
    for seed in seeds:
        asked, true = asked_for(seed), truth_of(seed)
        for share in (0.7, 1.0, 1.4) if true else ():
            for bound, proof in proofs_of(asked, share * true):
                assert recomputed_bound(asked, proof) == bound, (seed, share, proof)
                assert (recomputed_bound(asked, proof, 0.5 * bound) or 0.0) >= 0.5 * bound
    assert {type(proof) for _, proof in proofs_of(RING, 9.0)} == {Surrounded, MultiplierBound, Swept}


def test_an_honest_result_is_accepted_and_not_told() -> None:
    for bound, proof in proofs_of(RING, 8.0):
        report = check_answer(FAMILY, result_of(RING, bound, proof), RING)
        assert (report.refused, report.unverified) == ((), False)
        assert report.checked[-1].startswith("the bound was proved anew by ")


@pytest.mark.parametrize("change", [0.001, 0.4, 3.9])
def test_a_bound_above_what_its_proof_shows_is_refused(change: float) -> None:
    """Four blocks of 3 ms on three devices: 8 ms are the best, and what is shown is less."""
    asked = replace(RING, accelerators=3)
    shown = [(bound, proof) for bound, proof in proofs_of(asked, 7.5) if bound < 7.5]
    assert shown
    for bound, proof in shown:
        report = check_answer(FAMILY, result_of(asked, min(bound + change, 8.0), proof), asked)
        assert any(line.startswith("proof: ") for line in report.refused)


def test_proofs_of_another_question_or_of_none_show_nothing() -> None:
    wrong: list[Proof] = [
        *(MultiplierBound("", 8.0, prices) for prices in ((), (1,), (1,) * 5, (-1, 5, 5, 5), (1 << 40,) * 4, (10**400, 1, 1, 1))),
        *(MultiplierBound("", limit, (1, 1, 1, 1)) for limit in (0.0, -1.0, inf, float("nan"))),
        *(Surrounded("", limit, 0) for limit in (-1.0, inf, float("nan"))),
        *(Surrounded("", 8.0, block) for block in (-1, 4, 10**400)),
        *(Swept("", limit, 100) for limit in (0.0, -1.0, inf, float("nan"))),
        *(Swept("", 8.0, states) for states in (-1, MOST_REPEATED + 1, 10**400)),
        OnPath("", "cpu", 0),
        UnverifiedBound(""),
    ]
    assert [proof for proof in wrong if recomputed_bound(RING, proof) is not None] == []
    sample = replace(RING, problem="latency")
    assert [proof for _, proof in proofs_of(RING, 8.0) if recomputed_bound(sample, proof) is not None] == []
    hidden = replace(RING, communication="overlapped")
    assert [proof for _, proof in proofs_of(RING, 8.0) if (recomputed_bound(hidden, proof) or 0.0) > brute_force(hidden)] == []


def test_a_proof_does_not_show_that_there_is_none() -> None:
    for _, proof in proofs_of(RING, 8.0):
        none = replace(
            result_of(RING, 8.0, UnverifiedBound("nobody")),
            value=None,
            bound=None,
            gap=None,
            answer=None,
            details=None,
            baselines=(),
            trace=(),
        )
        report = check_answer(FAMILY, replace(none, status="INFEASIBLE", proved=True, proof=proof, reasons=("no",)), RING)
        assert any(line.startswith("proof: ") for line in report.refused)


@examples(60)
@given(st.integers(0, 29), st.floats(-3.0, 3.0), st.integers(0, 1 << 30), st.sampled_from([1, 3, 100, 1 << 14]))
def test_no_prices_and_no_limit_show_more_than_the_best_placement(seed: int, power: float, draw: int, most: int) -> None:
    asked, true = asked_for(seed), truth_of(seed)
    limit = (true or 1.0) * 2.0**power
    left = contract(blocks_of(asked.graph, staged=False), machine_of(asked), limit)
    prices = np.random.default_rng(draw).integers(0, most, len(left))
    assert (recomputed_bound(asked, MultiplierBound("", limit, tuple(prices.tolist()))) or 0.0) <= true


@examples(50)
@given(st.integers(0, 39), st.floats(-3.0, 3.0), st.integers(0, 9), st.integers(0, 2_000))
def test_no_block_and_no_rounds_show_more_than_the_best_placement(seed: int, power: float, block: int, states: int) -> None:
    """Of any contiguity, with memory that binds and transfers that hide."""
    asked = asked_at_random(seed)
    true = brute_force(asked)
    limit = (1.0 if true in {0.0, inf} else true) * 2.0**power
    for proof in (Surrounded("", limit, block), Swept("", limit, states)):
        assert (recomputed_bound(asked, proof) or 0.0) <= true


@pytest.mark.slow
@examples(60)
@given(st.integers(0, 23), st.floats(-1.0, 1.0), st.sampled_from([0, 10, 100, 5_000]))
def test_rounds_that_end_early_show_less_and_never_too_much(seed: int, power: float, states: int) -> None:
    asked, true = asked_for(seed), truth_of(seed)
    limit = (true or 1.0) * 2.0**power
    assert recomputed_bound(asked, Swept("", limit, 0)) in (None, limit)
    few, all_of_them = (recomputed_bound(asked, Swept("", limit, most)) or 0.0 for most in (states, MOST_REPEATED))
    assert few <= all_of_them <= true


def test_what_anybody_can_show_again_is_taken_before_a_higher_word_within_the_gap() -> None:
    run = Run(RING, np.array([0, 0, 1, 1]), 8.0, near=1e-3)
    run.raise_bound(7.9, Surrounded("cut", 8.0, 0))
    run.raise_bound(8.0, UnverifiedBound("somebody"))
    assert (run.found().bound, run.found().proof) == (8.0, UnverifiedBound("somebody"))
    run.raise_bound(7.995, MultiplierBound("prices", 8.0, (1,)))
    assert (run.found().bound, run.found().proof) == (7.995, MultiplierBound("prices", 8.0, (1,)))


def test_rounds_of_too_many_states_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only they say enough, and repeating them would take more than a check may."""
    monkeypatch.setattr(engines, "_SHORTEST_PRICING", inf)
    chain = graph([5.0, 4.0, 3.0, 3.0, 3.0], [(0, 1), (1, 2), (2, 3), (3, 4)], [0.1] * 5)
    asked = question(chain, 2, contiguity="no")
    assert isinstance(answered(asked, "auto", Limits(), unwatched).proof, Swept)
    monkeypatch.setattr(engines, "MOST_REPEATED", -1)
    assert isinstance(answered(asked, "auto", Limits(), unwatched).proof, UnverifiedBound)


@pytest.mark.data
@pytest.mark.slow
def test_a_published_graph_is_proved_anew_by_prices() -> None:
    asked = read(reference("placement/throughput/layer/bert24_inference.json"), ("contiguous=no",))
    found = answered(asked, "auto", Limits(60.0), unwatched)
    report = checked(found)
    assert (report.refused, report.unverified) == ((), False)
    assert isinstance(found.proof, MultiplierBound)
    cheaper = replace(found.proof, prices=(0, *found.proof.prices[1:]))
    assert not checked(replace(found, proof=replace(cheaper, prices=cheaper.prices[1:]))).accepted
    assert not checked(replace(found, proof=replace(found.proof, limit=0.99 * found.proof.limit))).accepted


def with_decimals(seed: int) -> PlacementQuestion:
    """Blocks of several nodes, whose sums are rounded otherwise by the judge than one after the other; memory that one of them fills."""
    random = np.random.default_rng(seed)
    count, colours = 9, 3
    colour = [*range(colours), *random.integers(0, colours, count - colours).tolist()]
    times, sizes, transfer = (random.integers(1, 1000, count) / 1000.0 for _ in range(3))
    of = graph(times, [(row, row + 1) for row in range(count - 1)], transfer * (seed % 2), sizes, colour=colour, cpu=times * 1.1)
    full = max(fsum(sizes[np.array(colour) == one].tolist()) for one in range(colours))
    return question(of, 1 + seed % 3, seed % 4 == 0, full if seed % 3 else inf, contiguity="no")


@pytest.mark.slow
@examples(120)
@given(st.integers(0, 199), st.integers(-4, 4))
def test_limits_and_memory_that_are_met_to_the_last_digit_show_nothing_too_much(seed: int, digits: int) -> None:
    asked = with_decimals(seed)
    true = brute_force(asked)
    limit = (1.0 if true == inf else true) * (1.0 + digits * 2.0**-52)
    left = contract(blocks_of(asked.graph, staged=False), machine_of(asked), limit)
    proofs = [
        *(Surrounded("", limit, block) for block in range(3)),
        Swept("", limit, 10_000),
        MultiplierBound("", limit, (1000,) * len(left)),
    ]
    assert [proof for proof in proofs if (recomputed_bound(asked, proof) or 0.0) > true] == []


# Bounds by prices: least loads and bounds as enumeration finds them, never above the truth, and better than sums of work.


def set_partitioning_bounds(blocks: Blocks, machine: Machine, limit: float) -> list[float]:
    """Better and better bounds."""
    return [found.bound for found in multiplier_bounds(blocks, machine, limit, 0.0, FOREVER)]


def load_of(blocks: Blocks, figures: Figures, inside: tuple[bool, ...]) -> int:
    """What an accelerator does that holds these blocks."""
    own = sum(work for work, here in zip(figures.accelerator, inside, strict=True) if here)
    return own + sum(
        cost for pins, cost in zip(blocks.nets, figures.transfer, strict=True) if 0 < sum(inside[pin] for pin in pins) < len(pins)
    )


@pytest.mark.parametrize("compiles", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_least_loads_and_the_bound_are_what_enumeration_finds(seed: int, compiles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "COMPILES", compiles)
    asked = asked_for(seed)
    blocks = blocks_of(asked.graph, staged=False)
    figures = figures_of(blocks, asked.memory, greatest_of(blocks), 1 << 20)
    prices = np.random.default_rng(seed).integers(0, 9, len(blocks))
    limit, total = sum(figures.accelerator) // 2 + sum(figures.transfer) // 3, int(prices.sum())
    loads, work = [BEYOND] * (total + 1), [BEYOND] * (total + 1)
    for inside in product((False, True), repeat=len(blocks)):
        worth = sum(int(price) for price, here in zip(prices, inside, strict=True) if here)
        if all(runs or not here for runs, here in zip(figures.supported, inside, strict=True)):
            load = load_of(blocks, figures, inside)
            loads[worth] = min(loads[worth], load if load <= limit else BEYOND)
        own = sum(cpu for cpu, here in zip(figures.cpu, inside, strict=True) if here)
        work[worth] = min(work[worth], own if own <= limit else BEYOND)
    for order in swept(blocks, figures):
        walk = walk_along(order, figures)
        assert walk is not None
        found, chosen = least_loads(walk, prices, limit)
        assert found.tolist() == loads
        for worth in np.flatnonzero(found < BEYOND).tolist():
            inside = set_of(walk, prices, chosen, worth)
            assert (int(prices[inside].sum()), load_of(blocks, figures, tuple(inside.tolist()))) == (worth, loads[worth])
    cpu = walk_of_cpu(figures)
    on_cpu, taken = least_loads(cpu, prices, limit)
    assert on_cpu.tolist() == work
    for worth in np.flatnonzero(on_cpu < BEYOND).tolist():
        assert int(np.array(figures.cpu)[set_of(cpu, prices, taken, worth)].sum()) == work[worth]
    for accelerators, cpus in ((1, 0), (2, 1), (3, 2)):
        least = least_busiest_of(found, on_cpu, accelerators, cpus)
        every = sorted({0, *loads, *work})
        assert least == next(
            busiest
            for busiest in every
            if accelerators * max(worth for worth, load in enumerate(loads) if load <= busiest)
            + cpus * max(worth for worth, own in enumerate(work) if own <= busiest)
            >= total
            or busiest == BEYOND
        )


@pytest.mark.slow
def test_set_partitioning_no_placement_is_below_it_whatever_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_MOST", 1 << 12)
    monkeypatch.setattr(columns, "_PATIENCE", 12)
    for seed in range(30):
        asked = asked_for(seed)
        true, blocks = truth_of(seed), blocks_of(asked.graph, staged=False)
        for share in (0.5, 1.0 + 1e-9, (0.999, 1.3, 4.0)[seed % 3]):
            found = set_partitioning_bounds(blocks, machine_of(asked), share * true)
            assert all(bound <= min(share, 1.0 + 1e-12) * true for bound in found), (seed, share)
            assert found == sorted(found), (seed, share)


def test_wide_graphs_are_narrowed_by_their_cheapest_nets() -> None:
    """Along the order the four nets are open together; the two that cost least for each step at which they are open are left out."""
    blocks = blocks_of(graph([1.0] * 8, [(0, 4), (1, 5), (2, 6), (3, 7)], [4.0, 1.0, 3.0, 2.0]), staged=False)
    found = narrowed(blocks, list(range(8)), 2)
    assert dict(zip(found.nets, found.transfer.tolist(), strict=True)) == {(0, 4): 4.0, (2, 6): 3.0}
    again = narrowed(blocks, list(range(8)), 4)
    assert (again.nets, again.transfer.tolist()) == (blocks.nets, blocks.transfer.tolist())


@every("seed", range(30))
def test_no_placement_is_below_the_bound_of_a_narrowed_graph(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asked_for(seed)
    true, blocks, machine = truth_of(seed), blocks_of(asked.graph, staged=False), machine_of(asked)
    monkeypatch.setattr(columns, "_PATIENCE", 4)
    monkeypatch.setattr(columns, "_REFINED", 2)  # prices become finer on the way
    monkeypatch.setattr(counting, "_MOST", 1 << 12)
    whole = max(set_partitioning_bounds(blocks, machine, 1.3 * true), default=0.0)
    monkeypatch.setattr(counting, "_STATES", 4)
    monkeypatch.setattr(counting, "_OPEN", (2, 1, 0))
    found = list(multiplier_bounds(blocks, machine, 1.3 * true, 0.0, FOREVER))
    assert whole == 0.0 or found
    for step in found:
        assert step.bound <= true * (1.0 + 1e-12)
        ready = counting.priceable(blocks, machine, 1.3 * true)
        assert ready is not None
        assert counting.bound_by(ready, step.prices) == step.bound


def test_set_partitioning_memory_can_only_raise_what_is_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_PATIENCE", 4)
    monkeypatch.setattr(counting, "_MOST", 1 << 12)
    for asked in map(asked_at_random, range(15)):
        true = brute_force(asked)
        if asked.contiguity == "no" and 0.0 < true < FOREVER:
            found = set_partitioning_bounds(blocks_of(asked.graph, staged=False), machine_of(asked), true * 1.1)
            assert all(bound <= true * (1.0 + 1e-12) for bound in found)


def test_what_a_set_must_transfer_counts() -> None:
    """Four blocks of 3 ms in a ring, each joined to the next by 1 ms: whoever holds two of them pays for two nets."""
    asked = question(graph([3.0] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)], [1.0] * 4), 2, contiguity="no")
    blocks = blocks_of(asked.graph, staged=False)
    assert brute_force(asked) == pytest.approx(8.0)
    assert max(set_partitioning_bounds(blocks, machine_of(asked), 9.0)) == pytest.approx(8.0, rel=1e-6)


def test_wide_graphs_and_hidden_transfers_are_left_alone() -> None:
    ring = [(one, other) for one in range(24) for other in range(one + 1, 24)]
    wide = question(graph([1.0] * 24, ring, [0.1] * 24), 3, contiguity="no")
    hidden = question(graph([1.0, 2.0], [(0, 1)], [0.1] * 2), 2, contiguity="no", communication="overlapped")
    cpus = question(graph([1.0, 2.0], [(0, 1)], [0.1] * 2), 0, 2, contiguity="no")
    for asked in (wide, hidden, cpus):
        assert list(multiplier_bounds(blocks_of(asked.graph, staged=False), machine_of(asked), 100.0, 0.0, 0.0)) == []


@pytest.mark.data
def test_a_published_graph_is_bounded_above_what_its_relaxation_says() -> None:
    """HiGHS has 33.064 ms after 150 s on this graph of six accelerators; prices in proportion to the work say more at once."""
    asked = read(reference("placement/throughput/layer/resnet50_inference.json"), ("contiguous=no",))
    assert 33.064 < next(multiplier_bounds(blocks_of(asked.graph, staged=False), machine_of(asked), 33.38, 0.0, FOREVER)).bound < 33.38


def test_a_solver_that_fails_leaves_the_bounds_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise SolverError("highs failed")

    monkeypatch.setattr(columns, "Session", failing)
    asked = question(graph([3.0] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)], [1.0] * 4), 2, contiguity="no")
    assert len(list(multiplier_bounds(blocks_of(asked.graph, staged=False), machine_of(asked), 9.0, 0.0, FOREVER))) == 1


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("operator/bert_l-3_inference", 21.9072),
        pytest.param("operator/bert_l-6_training", 71.6386, marks=pytest.mark.slow),
        pytest.param("layer/bert24_inference", 17.7138, marks=pytest.mark.slow),
        ("layer/gnmt_inference", 31.6857),
    ],
)
def test_published_graphs_are_proved_at_once(name: str, limit: float) -> None:
    """Within 1e-4 of the best placements known; integer models take up to minutes."""
    asked = read(reference(f"placement/throughput/{name}.json"), ("contiguous=no",))
    assert max(set_partitioning_bounds(blocks_of(asked.graph, staged=False), machine_of(asked), limit)) == limit


@pytest.mark.data
@pytest.mark.slow
def test_the_answer_says_what_proved_it() -> None:
    asked = read(reference("placement/throughput/layer/bert24_inference.json"), ("contiguous=no",))
    found = answered(asked, "auto", Limits(60.0), unwatched)
    assert (found.proved, found.proved_by) == (True, SET_PARTITIONING_PROOF)
