"""Searches for placements: never worse than their start, the same for the same seed, and beside what others do with the same graph."""

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import inf, isinf
from pathlib import Path
from random import Random
from time import monotonic

import numpy as np
import pytest

from crossopt.crossflow.arrays import Ints
from crossopt.formulation.model import violations
from crossopt.formulation.placement.blocks import blocks_of
from crossopt.formulation.placement.throughput import (
    Machine,
    assignment_model,
    contract,
    device_of_blocks,
    greatest_of,
    machine_of,
    values_at,
)
from crossopt.instances.errors import RefusedError, VerificationError
from crossopt.instances.placement.question import Communication, Contiguity, PlacementQuestion
from crossopt.instances.question import read
from crossopt.reports.cli import main
from crossopt.reports.commands import placement as by_placement
from crossopt.solvers.answer import Baseline, Limits, SearchOutcome, unwatched
from crossopt.solvers.checking import trace_holds
from crossopt.solvers.family import certify
from crossopt.solvers.placement import engines, heuristics
from crossopt.solvers.placement.annealing import annealed
from crossopt.solvers.placement.answer import COARSE_GAP, ended, judge_placement
from crossopt.solvers.placement.bounds.along import least_busiest
from crossopt.solvers.placement.bounds.ideals import best_by_ideals
from crossopt.solvers.placement.comparison import _SEEDED_THROUGHPUT, SEARCHES, compared_throughput, local_search
from crossopt.solvers.placement.family import FAMILY, Answer
from crossopt.solvers.placement.heuristics import by_rank, by_work, equal_shares, improved, rearranged, staged_start
from crossopt.solvers.placement.judge import judge
from crossopt.solvers.placement.run import Run
from crossopt.solvers.proofs import UnverifiedBound
from tests.benchmarks.placements import held_to
from tests.every import every
from tests.instances.placement.graphs import graph, question, random_graph
from tests.instances.placement.test_formats import document, node, written
from tests.instances.placement.test_formats import written as graph_in
from tests.paths import reference
from tests.solvers.placement.asking import answered, checked
from tests.solvers.placement.test_answers import brute_force

# Any blocks on any device, and convex devices: the portfolio finds what brute force finds, and its bound holds.


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


@pytest.mark.parametrize("devices", [(2, 0), (1, 1), (2, 1)])
@pytest.mark.parametrize("communication", ["calls", "overlapped"])
def test_exchanges_between_all_devices_end_at_the_optimum(devices: tuple[int, int], communication: Communication) -> None:
    """Two or three devices are one neighbourhood: from all blocks on one of them, values fall to what brute force finds."""
    for seed in range(2):
        of = random_graph(seed, 6, training=seed % 2 == 1)
        asked = question(of, *devices, contiguity="no", communication=communication)
        start = np.full(len(of), sum(devices) - 1, np.int64)
        verdicts = [judge(asked, start), *(judge(asked, found) for found in rearranged(asked, start, seed, inf))]
        values = [verdict.value for verdict in verdicts]
        assert all(verdict.accepted for verdict in verdicts)
        assert values == sorted(set(values), reverse=True)
        assert values[-1] == pytest.approx(brute_force(asked), rel=1e-6)


def test_exchanges_keep_the_memory_of_every_device() -> None:
    """What four devices with little memory exchange keeps it, step by step."""
    of = random_graph(5, 24)
    of = replace(of, size=np.ones(len(of)))
    asked = question(of, 4, memory=8.0, contiguity="no")
    start = np.arange(len(of)) // 6
    start = np.array([start[np.flatnonzero(of.colour == colour)[0]] for colour in of.colour], np.int64)
    steps = [start, *rearranged(asked, start, 1, inf)]
    assert all(judge(asked, found).accepted for found in steps)
    assert judge(asked, steps[-1]).value < 0.95 * judge(asked, start).value


def test_exchanges_of_operators_without_weights_leave_rows_of_memory_empty() -> None:
    of = random_graph(0, 6)
    asked = question(replace(of, size=np.zeros(len(of))), 2, memory=8.0, contiguity="no")
    start = np.ones(len(of), np.int64)
    steps = [start, *rearranged(asked, start, 0, inf)]
    assert judge(asked, steps[-1]).value == pytest.approx(brute_force(asked), rel=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("seeds", [range(10, 40, 6), range(11, 40, 6)])
def test_the_portfolio_finds_what_brute_force_finds(seeds: range) -> None:
    for seed in seeds:
        asked = asked_at_random(seed)
        true, found = brute_force(asked), answered(asked, "auto", Limits(), unwatched)
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
        answered(asked, "stages", Limits(), unwatched)


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


# Annealing keeps its sums right, its memory, and never ends above its start.


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


# Annealing from several starts: never worse, within memory, the same for the same seed, and better than one start on published graphs.


def last(found: Iterator[Ints], known: Ints) -> Ints:
    """The best of them."""
    return deque([known, *found], maxlen=1)[0]


@pytest.mark.parametrize("seed", range(8))
def test_rounds_only_improve_and_keep_every_rule(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heuristics, "_MOVES_A_BLOCK", (100,))
    graph = random_graph(seed, 16, training=bool(seed % 2))
    asked = question(graph, 3, seed % 2, float(graph.size.sum()) * 0.7, "no", "overlapped" if seed % 3 == 0 else "calls")
    blocks = blocks_of(graph, staged=False)
    known = (np.arange(len(blocks)) % 3)[blocks.block_of]
    assert judge(asked, known).accepted
    found = last(improved(asked, known, seed, float("inf")), known)
    assert judge(asked, found).accepted
    assert judge(asked, found).value <= judge(asked, known).value
    assert np.array_equal(found, last(improved(asked, known, seed, float("inf")), known))


def test_rounds_in_threads_only_improve_and_are_repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heuristics, "_MOVES_A_BLOCK", (100,))
    graph = random_graph(3, 16)
    asked = question(graph, 3, 1, float(graph.size.sum()) * 0.7, "no")
    known = (np.arange(len(blocks_of(graph, staged=False))) % 3)[blocks_of(graph, staged=False).block_of]
    values = [judge(asked, found).value for found in improved(asked, known, 0, float("inf"), workers=3)]
    assert values == sorted(values, reverse=True)
    assert values[0] < judge(asked, known).value
    assert values == [judge(asked, found).value for found in improved(asked, known, 0, float("inf"), workers=3)]


@pytest.mark.parametrize("contiguity", ["stages", "no"])
def test_more_workers_prove_the_same(contiguity: Contiguity) -> None:
    asked = question(random_graph(5, 9), 2, 1, contiguity=contiguity)
    alone, together = (answered(asked, "auto", Limits(workers=workers), unwatched) for workers in (1, 3))
    assert (together.value, together.bound, together.proof) == (alone.value, alone.bound, alone.proof)


def test_what_is_known_is_kept_where_time_is_up_and_where_shares_break_the_memory() -> None:
    graph = replace(random_graph(2, 12), size=np.full(12, 1.0))
    asked = question(graph, 2, 1, 1.0, "no")
    known = np.array([0, 1] + [2] * 10)
    assert list(improved(asked, known, 0, 0.0)) == []
    assert judge(asked, last(improved(asked, known, 0, float("inf")), known)).accepted


@pytest.mark.data
def test_starts_from_equal_shares_leave_the_valley_of_the_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a graph of operators one block at a time leads nowhere from the best stages (29.58 ms, the optimum is 28.33 ms)."""
    monkeypatch.setattr(heuristics, "_MOVES_A_BLOCK", (1_000,))
    monkeypatch.setattr(heuristics, "_ROUNDS", 8)
    asked = read(reference("placement/throughput/operator/bert_l-6_inference.json"), ("contiguous=no",))
    from crossopt.solvers.placement.engines import staged_devices

    stages = staged_devices(asked, float("inf"))
    assert stages is not None
    assert judge(asked, last(improved(asked, stages, 0, float("inf")), stages)).value < 28.8 < judge(asked, stages).value


@pytest.mark.parametrize("seed", range(4))
def test_levels_join_only_what_all_placements_have_on_one_device(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no more work or memory than may be joined; the coarsest level has as few blocks as that leaves."""
    monkeypatch.setattr(heuristics, "_COARSEST", (16,))
    asked, random = question(random_graph(seed, 60), 3, contiguity="no"), np.random.default_rng(seed)
    blocks = blocks_of(asked.graph, staged=False)
    known = [random.integers(0, 2, len(blocks))[blocks.block_of] for _ in range(seed % 3)]
    most, memory = float(blocks.accelerator_time.sum()) / 4.0, float(blocks.size.sum()) / 4.0
    levels = heuristics._levels(blocks, known, most, memory, Random(seed))
    assert len(levels) > 1
    for level in levels[1:]:
        assert (level.accelerator_time.max(), level.size.max()) <= (most * (1.0 + 1e-9), memory * (1.0 + 1e-9))
        for block in range(len(level)):
            assert all(len(set(device_of[level.block_of == block].tolist())) == 1 for device_of in known)


@pytest.mark.parametrize("contiguity", ["convex", "no"])
def test_what_is_found_on_any_devices_is_no_busier_than_the_best_stages(contiguity: Contiguity, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any search behind the stages."""
    for name in ("improved", "_bounds"):
        monkeypatch.setattr(engines, name, lambda *asked: iter(()))
    for seed in range(6):
        asked = question(random_graph(seed, 12), 3, seed % 2)
        best = best_by_ideals(asked)
        assert best is not None
        run = Run(replace(asked, contiguity=contiguity))
        engines._start(run, blocks_of(asked.graph, staged=contiguity == "convex"), Limits(), unwatched, monotonic())
        assert run.value <= best.bound * (1.0 + 1e-9)


@pytest.mark.data
def test_many_layers_on_six_devices_are_found_by_levels() -> None:
    """The best stages take 147.48 ms, and single blocks lead nowhere from there; the optimum is above 129.97 ms."""
    asked = read(reference("placement/throughput/operator/bert_l-12_inference.json"), ("contiguous=no",))
    shares = np.array([0] * len(asked.graph))
    assert next(value for found in improved(asked, shares, 0, float("inf")) if (value := judge(asked, found).value) < 131.0) > 129.97


# What once went wrong: sums in another order, searches that lost what they had, answers that nobody could check.


@pytest.mark.parametrize("contiguity", ["stages", "convex", "no"])
@pytest.mark.parametrize("cpus", [0, 1])
def test_one_block_that_rules_is_no_trouble_where_sums_are_rounded(contiguity: Contiguity, cpus: int) -> None:
    """A difference of running sums is 8.884999999999998, and a block of 8.885 must still fit."""
    asked = question(graph([0.795, 8.885, 6.13], [], [0.0] * 3), 2, cpus, contiguity=contiguity)
    found = answered(asked, "auto", Limits(), unwatched)
    assert (found.value, found.proved) == (8.885, True)


@pytest.mark.parametrize("seeds", [range(0, 30, 4), range(1, 30, 4)])
def test_times_with_decimals_are_answered_as_brute_force_answers(seeds: range) -> None:
    for seed in seeds:
        found, true = answered(asked := with_decimals(seed), "auto", Limits(), unwatched), brute_force(asked)
        assert not isinf(true), seed
        assert found.value is not None, seed
        assert found.bound is not None, seed
        assert found.proved, seed
        assert found.bound <= true <= found.value <= true * (1.0 + 2.0 * COARSE_GAP), seed


def with_decimals(seed: int) -> PlacementQuestion:
    """Every contiguity with and without a CPU and overlap within thirty seeds."""
    random = np.random.default_rng(seed)
    base = random_graph(seed, 5, training=False)
    return question(
        replace(base, accelerator_time=random.integers(0, 10_000, 5) / 1000.0, transfer=random.integers(0, 3_000, 5) / 1000.0),
        accelerators=int(random.integers(1, 4)),
        cpus=seed % 2,
        contiguity=("stages", "convex", "no")[seed % 3],  # type: ignore[arg-type]
        communication="overlapped" if seed % 5 == 0 else "calls",
    )


def test_a_stopped_annealing_leaves_the_best_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = question(random_graph(5, 20), 3, contiguity="no")

    def stopped(question: object, known: Ints, *others: object) -> Iterator[Ints]:
        yield known
        raise KeyboardInterrupt

    monkeypatch.setattr(engines, "improved", stopped)
    found = answered(asked, "auto", Limits(), unwatched)
    assert (found.stopped, found.status) == ("interrupted", "FEASIBLE")
    assert found.value == value_of(asked, found)


@pytest.mark.parametrize("contiguity", ["stages", "no"])
def test_a_stop_before_the_models_leaves_the_stages_that_are_known(contiguity: Contiguity, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*anything: object) -> float:
        raise KeyboardInterrupt

    for engine in (engines, engines):
        monkeypatch.setattr(engine, "least_busiest", stopped)
    asked = question(random_graph(5, 20), 3, contiguity=contiguity)
    found = answered(asked, "auto", Limits(), unwatched)
    assert found.stopped == "interrupted"
    assert found.value == value_of(asked, found)


def test_starts_and_bounds_look_at_the_clock() -> None:
    asked = question(random_graph(1, 30), 3)
    blocks = blocks_of(asked.graph, staged=True)
    assert staged_start(asked, blocks, 0.0).value >= staged_start(asked, blocks).value
    assert least_busiest(asked, blocks, greatest_of(blocks), 0.0).bound <= least_busiest(asked, blocks, greatest_of(blocks)).bound


@pytest.mark.parametrize("contiguity", ["stages", "no"])
def test_too_little_memory_says_how_much_would_do(contiguity: Contiguity) -> None:
    asked = question(graph([1.0] * 3, [(0, 1), (1, 2)], [0.1] * 3, sizes=[6.0] * 3), 2, 0, 10.0, contiguity)
    found = answered(asked, "auto", Limits(), unwatched)
    assert found.status == "INFEASIBLE"
    assert "10 bytes; 12 bytes each would do" in found.reasons[0]
    assert answered(replace(asked, memory=12.0), "auto", Limits(), unwatched).value is not None


def value_of(asked: PlacementQuestion, found: Answer) -> float | None:
    return None if found.answer is None else judge_placement(asked, found.answer).value


def found_in(folder: Path, **more: object) -> Answer:
    return answered(read(written(folder, document(maxSizePerFPGA=24.0, **more))), "auto", Limits(), unwatched)


def test_a_claim_that_there_is_none_is_told_and_never_plainly_accepted(tmp_path: Path) -> None:
    found = found_in(tmp_path)
    forged = replace(found, status="INFEASIBLE", value=None, bound=None, gap=None, answer=None, details=None, trace=(), reasons=("no",))
    told = replace(forged, status="UNKNOWN", proved=False, baselines=(), proof=UnverifiedBound("somebody"))
    assert any("bound: a placement takes" in line for line in checked(told).refused)
    assert "infeasibility that is solver-reported is not proved" in checked(replace(told, status="INFEASIBLE", proved=True)).refused
    counted = found_in(tmp_path, nodes=[node(1, size=99.0), node(2), node(3)], maxCPUs=0)
    assert (checked(counted).accepted, checked(counted).unverified) == (True, False)
    assert not checked(replace(counted, reasons=("another",))).accepted


def test_a_rule_below_the_bound_is_refused(tmp_path: Path) -> None:
    found = found_in(tmp_path)
    lower = (Baseline("a rule", 0.01, found.answer), *found.baselines)
    assert any("bound: 'a rule'" in line for line in checked(replace(found, baselines=lower)).refused)


def test_a_bound_that_only_sums_in_another_order_put_above_a_value_is_that_value() -> None:
    """And none that is further above: that is an error of the engine."""
    asked = question(graph([0.795, 8.885, 6.13], [], [0.0] * 3), 2, contiguity="no")
    found = answered(asked, "auto", Limits(), unwatched)
    assert found.value is not None
    above = SearchOutcome(found.answer, found.value * (1.0 + 1e-13), UnverifiedBound("floats"), "portfolio")
    assert certify(FAMILY, asked, above, Limits(), 0.0).bound == found.value
    with pytest.raises(VerificationError, match="below the bound"):
        certify(FAMILY, asked, replace(above, bound=found.value * (1.0 + 1e-11)), Limits(), 0.0)


def test_the_trace_ends_at_the_value_and_no_bound_of_it_is_above() -> None:
    """A solver tells whole quanta, which may be below the placement's value, and hints above one that is known."""
    asked = question(graph([0.795, 8.885, 6.13], [], [0.0] * 3), 2, contiguity="no")
    placement = answered(asked, "auto", Limits(), unwatched).answer
    told = ((0.1, None, None), (0.2, 9.0, 8.0), (0.3, 9.5, 7.0), (0.4, 8.8, 9.0))
    found = ended(asked, "portfolio", SearchOutcome(placement, 8.885, trace=told), (), 0.0)
    assert [step[1:] for step in found.trace] == [(None, None), (9.0, 8.0), (9.0, 8.0), (8.885, 8.885)]
    late = ended(asked, "portfolio", SearchOutcome(placement, 8.0, trace=told[:2]), (), 0.0)
    assert late.trace[-1][1:] == (8.885, 8.0)
    assert ended(asked, "portfolio", SearchOutcome(None, trace=told), (), 0.0).trace[-1][1:] == (None, 9.0)


def test_a_trace_tells_no_bound_above_a_later_one() -> None:
    """What bounds a part of a box may be below what bounds the box, in the last place: on one chip 11.716728770454166 of ...168."""
    asked = question(graph([0.795, 8.885, 6.13], [], [0.0] * 3), 2, contiguity="no")
    answer = answered(asked, "auto", Limits(), unwatched)
    above = float(np.nextafter(8.0, 9.0))
    told = ((0.1, 9.5, 7.0), (0.2, 9.0, above), (0.3, 9.0, None), (0.4, 8.885, 8.0))
    found = SearchOutcome(answer.answer, 8.5, UnverifiedBound("nobody"), "portfolio", trace=told)
    result = certify(FAMILY, asked, found, Limits(), 1.0)
    assert [bound for _, _, bound in result.trace] == [7.0, 8.0, None, 8.0]
    assert trace_holds(result.trace, result.value, result.bound)
    assert not trace_holds(told, result.value, result.bound)


@pytest.mark.parametrize("command", ["evaluate", "explain"])
def test_commands_for_designs_say_so(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "gpt3-13b-on-8"]) == 2
    assert "does not answer questions about operators" in capsys.readouterr().err


def test_answers_that_no_stack_launches_are_not_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "answer.json"
    assert main(["solve", str(written(tmp_path, document(maxSizePerFPGA=24.0))), "--out", str(target)]) == 0
    with pytest.raises(SystemExit) as stop:
        main(["export", str(target), "--as", "megatron"])
    assert stop.value.code == 2
    assert "take --as devices or split" in capsys.readouterr().err


# What others do with the same graph: lists by hand, equal shares, searches that keep their seeds.

CHAIN = [(0, 1), (1, 2), (2, 3)]


def machine(accelerators: int, cpus: int = 0, memory: float = float("inf")) -> Machine:
    return Machine(accelerators, cpus, memory, overlapped=False, convex=False)


def test_most_work_first_to_the_device_with_least() -> None:
    blocks = blocks_of(graph([5.0, 4.0, 3.0, 3.0], CHAIN, [0.0] * 4), staged=False)
    assert by_work(blocks, machine(2)) == [0, 1, 1, 0]


def test_a_list_keeps_memory_or_finds_nothing() -> None:
    blocks = blocks_of(graph([5.0, 4.0, 3.0], [], [0.0] * 3, sizes=[2.0, 2.0, 2.0]), staged=False)
    assert by_work(blocks, machine(2, memory=4.0)) == [0, 1, 1]
    assert by_work(blocks, machine(2, memory=3.0)) is None
    assert by_rank(blocks, machine(2, memory=3.0)) is None
    assert by_work(blocks, machine(1, cpus=1, memory=2.0)) == [0, 1, 1]


def test_ranks_leave_a_chain_on_one_device_and_part_what_can_run_at_once() -> None:
    """One sample of a chain is through soonest on one device; two branches are worth two devices while sending is cheap."""
    assert by_rank(blocks_of(graph([1.0] * 4, CHAIN, [0.5] * 4), staged=True), machine(2)) == [0, 0, 0, 0]
    fork = [(0, 1), (0, 2), (1, 3), (2, 3)]
    cheap, dear = (blocks_of(graph([1.0, 4.0, 4.0, 1.0], fork, [cost] * 4), staged=True) for cost in (0.5, 5.0))
    assert len({*by_rank(cheap, machine(2))[1:3]}) == 2  # type: ignore[index]
    assert by_rank(dear, machine(2)) == [0, 0, 0, 0]


def test_two_cliques_are_cut_at_the_bridge() -> None:
    cliques = [(one + shift, other + shift) for shift in (0, 5) for one in range(5) for other in range(one + 1, 5)]
    blocks = blocks_of(graph([1.0] * 10, [*cliques, (4, 5)], [1.0] * 10), staged=False)
    for seed in range(5):
        device = equal_shares(blocks, 2, seed)
        assert len(set(device[:5])) == len(set(device[5:])) == 1
        assert device[0] != device[5]


def test_shares_of_many_small_blocks_are_equal() -> None:
    for seed in range(8):
        random = np.random.default_rng(seed)
        edges = [(row, row + int(step)) for row in range(80) for step in random.integers(1, 8, 2)]
        blocks = blocks_of(graph(random.integers(1, 5, 90) * 1.0, edges, random.random(90)), staged=False)
        work = np.bincount(equal_shares(blocks, 5, seed), blocks.accelerator_time, 5)
        assert work.max() <= 1.15 * work.sum() / 5, seed


@pytest.mark.parametrize("seed", range(3))
def test_nobody_beats_the_proof_and_every_value_is_the_judges(seed: int) -> None:
    asked = question(random_graph(seed, 8), 2, 1, contiguity="no")
    proved = answered(asked, "auto", Limits(), unwatched)
    rows = list(compared_throughput(asked, 0.2, 2, {"mine": np.zeros(8, np.int64)}))
    assert {"one device", "split mine", *SEARCHES} <= {row.name for row in rows}
    assert all(row.value is None or row.note or row.value >= (proved.bound or 0.0) for row in rows)


def test_searches_are_no_worse_than_the_rules_that_they_begin_at() -> None:
    """Stages along many orders keep the order of the data and are no busier than along one; descents than equal stages."""
    for seed in range(2):
        staged = question(random_graph(seed, 9), 2, contiguity="stages")
        rows = {row.name: row for row in compared_throughput(staged, 0.2, 1, {}, ("many orders", "local search", "annealing"))}
        least = answered(staged, "auto", Limits(), unwatched).value
        assert not rows["many orders"].note
        assert least is not None
        assert least * (1.0 - 1e-9) <= rows["many orders"].value <= rows["one order"].value
        assert max(rows[name].value for name in ("local search", "annealing")) <= rows["equal stages"].value


def test_a_figure_below_a_bound_stands_in_brackets_and_one_that_is_rounded_does_not() -> None:
    assert [held_to(17.78991, figure) for figure in ("17.7776", "17.7899", "18.0259", "none", "")] == [
        "(17.7776)",
        "17.7899",
        "18.0259",
        "none",
        "",
    ]


@pytest.mark.thorough
def test_seeds_are_kept_and_tell() -> None:
    asked = question(random_graph(3, 40), 3, contiguity="no")
    runs = [local_search(asked, seed, float("inf")) for seed in (0, 0, 1)]
    values = [judge(asked, run).value for run in runs if run is not None]
    assert values[0] == values[1] != values[2]
    assert set(_SEEDED_THROUGHPUT) < set(SEARCHES)


@pytest.mark.data
def test_the_table_names_what_is_broken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(by_placement, "_SEARCH", 0.2)
    graph_file = str(reference("placement/throughput/layer/bert24_training.json"))
    split = str(reference("placement/human-experts/bert24_training_expert.json"))
    assert main(["compare", graph_file, "--split", split, "--seeds", "1"]) == 0
    text = capsys.readouterr().out
    assert "bert24_training_expert  49.40491" in text
    assert "data flow in a circle" in text


@pytest.mark.parametrize("kind", ["placement", "chain"])
def test_a_comparison_is_kept_as_an_answer_with_its_rivals_that_is_checked_and_drawn(kind: str, tmp_path: Path) -> None:
    asked = str(graph_in(tmp_path, document())) if kind == "placement" else "gpt3-96-layers"
    kept = tmp_path / "kept.json"
    assert main(["compare", asked, "--time-limit", "1s", "--out", str(kept)]) == 0
    saved = json.loads(kept.read_text(encoding="utf-8"))
    assert len(saved["baselines"]) >= 3
    assert all(baseline["value"] is None or baseline["value"] >= saved["bound"] for baseline in saved["baselines"])
    assert main(["check", str(kept)]) == 0
    assert main(["report", str(kept), "--out", str(tmp_path / "page.html")]) == 0
