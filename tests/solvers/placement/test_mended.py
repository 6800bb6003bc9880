"""What once went wrong: sums in another order, searches that lost what they had, answers that nobody could check."""

from collections.abc import Iterator
from dataclasses import replace
from math import isinf
from pathlib import Path

import numpy as np
import pytest

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.placement.blocks import blocks_of
from crossopt.formulation.placement.latency import greatest_of
from crossopt.instances.errors import VerificationError
from crossopt.instances.placement.graph import Contiguity, PlacementQuestion
from crossopt.instances.question import read
from crossopt.reports.cli import main
from crossopt.solvers.answer import Baseline, Limits, SearchOutcome
from crossopt.solvers.checking import trace_holds
from crossopt.solvers.family import certify
from crossopt.solvers.placement.answer import COARSE_GAP, ended, judge_placement
from crossopt.solvers.placement.bounds.blocks import least_busiest
from crossopt.solvers.placement.family import FAMILY, Answer
from crossopt.solvers.placement.heuristics import staged_start
from crossopt.solvers.placement.throughput import portfolio, stages
from crossopt.solvers.proofs import UnverifiedBound
from tests.instances.placement.graphs import graph, question, random_graph
from tests.instances.placement.test_formats import document, node, written
from tests.solvers.placement.asking import answered, checked, silent
from tests.solvers.placement.test_stages import brute_force


@pytest.mark.parametrize("contiguity", ["stages", "convex", "no"])
@pytest.mark.parametrize("cpus", [0, 1])
def test_one_block_that_rules_is_no_trouble_where_sums_are_rounded(contiguity: Contiguity, cpus: int) -> None:
    """A difference of running sums is 8.884999999999998, and a block of 8.885 must still fit."""
    asked = question(graph([0.795, 8.885, 6.13], [], [0.0] * 3), 2, cpus, contiguity=contiguity)
    found = answered(asked, "auto", Limits(), silent)
    assert (found.value, found.proved) == (8.885, True)


@pytest.mark.parametrize("seeds", [range(0, 30, 4), range(1, 30, 4)])
def test_times_with_decimals_are_answered_as_brute_force_answers(seeds: range) -> None:
    for seed in seeds:
        found, true = answered(asked := with_decimals(seed), "auto", Limits(), silent), brute_force(asked)
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

    def stopped(question: object, known: Whole, *others: object) -> Iterator[Whole]:
        yield known
        raise KeyboardInterrupt

    monkeypatch.setattr(portfolio, "improved", stopped)
    found = answered(asked, "auto", Limits(), silent)
    assert (found.stopped, found.status) == ("interrupted", "FEASIBLE")
    assert found.value == value_of(asked, found)


@pytest.mark.parametrize("contiguity", ["stages", "no"])
def test_a_stop_before_the_models_leaves_the_stages_that_are_known(contiguity: Contiguity, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*anything: object) -> float:
        raise KeyboardInterrupt

    for engine in (stages, portfolio):
        monkeypatch.setattr(engine, "least_busiest", stopped)
    asked = question(random_graph(5, 20), 3, contiguity=contiguity)
    found = answered(asked, "auto", Limits(), silent)
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
    found = answered(asked, "auto", Limits(), silent)
    assert found.status == "INFEASIBLE"
    assert "10 bytes; 12 bytes each would do" in found.reasons[0]
    assert answered(replace(asked, memory=12.0), "auto", Limits(), silent).value is not None


def value_of(asked: PlacementQuestion, found: Answer) -> float | None:
    return None if found.answer is None else judge_placement(asked, found.answer).value


def found_in(folder: Path, **more: object) -> Answer:
    return answered(read(written(folder, document(maxSizePerFPGA=24.0, **more))), "auto", Limits(), silent)


def test_a_claim_that_there_is_none_is_told_and_never_plainly_accepted(tmp_path: Path) -> None:
    found = found_in(tmp_path)
    forged = replace(found, status="INFEASIBLE", value=None, bound=None, gap=None, answer=None, details=None, trace=(), reasons=("no",))
    told = replace(forged, status="UNKNOWN", proved=False, rivals=(), proof=UnverifiedBound("somebody"))
    assert any("bound: a placement takes" in line for line in checked(told).refused)
    assert "that there is none is proved by nobody's word" in checked(replace(told, status="INFEASIBLE", proved=True)).refused
    counted = found_in(tmp_path, nodes=[node(1, size=99.0), node(2), node(3)], maxCPUs=0)
    assert (checked(counted).accepted, checked(counted).told) == (True, False)
    assert not checked(replace(counted, reasons=("another",))).accepted


def test_a_rule_below_the_bound_is_refused(tmp_path: Path) -> None:
    found = found_in(tmp_path)
    lower = (Baseline("a rule", 0.01, found.answer), *found.rivals)
    assert any("bound: 'a rule'" in line for line in checked(replace(found, rivals=lower)).refused)


def test_a_bound_that_only_sums_in_another_order_put_above_a_value_is_that_value() -> None:
    """And none that is further above: that is an error of the engine."""
    asked = question(graph([0.795, 8.885, 6.13], [], [0.0] * 3), 2, contiguity="no")
    found = answered(asked, "auto", Limits(), silent)
    assert found.value is not None
    above = SearchOutcome(found.answer, found.value * (1.0 + 1e-13), UnverifiedBound("floats"), "portfolio")
    assert certify(FAMILY, asked, above, Limits(), 0.0).bound == found.value
    with pytest.raises(VerificationError, match="below the bound"):
        certify(FAMILY, asked, replace(above, bound=found.value * (1.0 + 1e-11)), Limits(), 0.0)


def test_the_trace_ends_at_the_value_and_no_bound_of_it_is_above() -> None:
    """A solver tells whole quanta, which may be below the placement's value, and hints above one that is known."""
    asked = question(graph([0.795, 8.885, 6.13], [], [0.0] * 3), 2, contiguity="no")
    placement = answered(asked, "auto", Limits(), silent).answer
    told = ((0.1, None, None), (0.2, 9.0, 8.0), (0.3, 9.5, 7.0), (0.4, 8.8, 9.0))
    found = ended(asked, "portfolio", SearchOutcome(placement, 8.885, trace=told), (), 0.0)
    assert [step[1:] for step in found.trace] == [(None, None), (9.0, 8.0), (9.0, 8.0), (8.885, 8.885)]
    late = ended(asked, "portfolio", SearchOutcome(placement, 8.0, trace=told[:2]), (), 0.0)
    assert late.trace[-1][1:] == (8.885, 8.0)
    assert ended(asked, "portfolio", SearchOutcome(None, trace=told), (), 0.0).trace[-1][1:] == (None, 9.0)


def test_a_trace_tells_no_bound_above_a_later_one() -> None:
    """What bounds a part of a box may be below what bounds the box, in the last place: on one chip 11.716728770454166 of ...168."""
    asked = question(graph([0.795, 8.885, 6.13], [], [0.0] * 3), 2, contiguity="no")
    answer = answered(asked, "auto", Limits(), silent)
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
