"""The search against trying everything, against the published program, and where a network is too large for it."""

import csv
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path

import pytest

from crossopt.instances.question import read
from crossopt.solvers.answer import Limits
from crossopt.solvers.proofs import RecomputableBound
from crossopt.solvers.stages.piper import cuts, prove
from crossopt.solvers.stages.piper.judge import Stage, judge_rows
from crossopt.solvers.stages.piper.prove import none_below
from tests.every import every
from tests.paths import reference
from tests.solvers.stages.piper.graphs import answered, best_by_trying, checked, document, node, random_document, random_question, written


@every("seed", range(0, 44, 2))
def test_the_search_finds_what_trying_everything_finds(seed: int, tmp_path: Path) -> None:
    assert_the_search_finds_what_trying_everything_finds(seed, tmp_path)


@pytest.mark.slow
@every("seed", range(1, 44, 2))
def test_the_search_finds_what_trying_everything_finds_in_more_questions(seed: int, tmp_path: Path) -> None:
    assert_the_search_finds_what_trying_everything_finds(seed, tmp_path)


def assert_the_search_finds_what_trying_everything_finds(seed: int, tmp_path: Path) -> None:
    question = random_question(tmp_path, seed, 3 + seed % 4, 2 + seed % 5)
    best, result = best_by_trying(question), answered(question)
    assert result.status == ("INFEASIBLE" if best == float("inf") else "OPTIMAL")
    if result.value is not None and result.bound is not None:
        assert result.value == pytest.approx(best, rel=1e-12)
        assert result.bound <= best
        assert all(rival.value is None or rival.value >= best * (1.0 - 1e-12) for rival in result.rivals)
        assert none_below(question, best * (1.0 + 1e-9), str) is False
    assert checked(result).accepted and not checked(result).told


def test_enough_of_the_random_questions_have_an_answer_and_some_have_none(tmp_path: Path) -> None:
    best = [best_by_trying(random_question(tmp_path, seed, 3 + seed % 4, 2 + seed % 5)) for seed in range(0, 44, 2)]
    endless = sum(value == float("inf") for value in best)
    assert 2 <= endless <= 15


@pytest.mark.parametrize("seed", range(4))
def test_the_judge_alone_finds_the_same_optimum(seed: int, tmp_path: Path) -> None:
    """Every order of every partition of three layers, every degree, every configuration, priced by the judge and by nothing else."""
    question = random_question(tmp_path, 100 + seed, 3, 3)
    best = float("inf")
    splits = {tuple(tuple(sorted(part)) for part in parts) for rows in permutations(range(3)) for parts in _partitions(rows)}
    for parts in splits:
        for degrees in product(product(question.degrees, (1, 2)), repeat=len(parts)):
            offers = [question.graph.offers[row].get(tensor, ()) for part, (_, tensor) in zip(parts, degrees, strict=True) for row in part]
            for chosen in product(*offers):
                names = iter(one.name for one in chosen)
                stages = [
                    Stage(part, data, tensor, tuple(next(names) for _ in part)) for part, (data, tensor) in zip(parts, degrees, strict=True)
                ]
                verdict = judge_rows(question, stages)
                best = min(best, verdict.value) if not verdict.violations else best
    found = answered(question).value
    assert (found is None and best == float("inf")) or found == pytest.approx(best, rel=1e-12)


def _partitions(rows: tuple[int, ...]) -> list[tuple[tuple[int, ...], ...]]:
    return [tuple(rows[begin:end] for begin, end in zip((0, *cuts), (*cuts, len(rows)), strict=True)) for cuts in ((), (1,), (2,), (1, 2))]


@pytest.mark.parametrize("seed", range(12))
def test_bundled_choices_keep_the_bound_below_and_the_value_above(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = random_question(tmp_path, seed, 6, 4)
    best = best_by_trying(question)
    monkeypatch.setattr(cuts, "MOST_POINTS", 4)
    result = answered(question)
    assert result.value is None or result.value >= best * (1.0 - 1e-12)
    assert result.bound is None or result.bound <= best
    assert result.status != "INFEASIBLE" or best == float("inf")
    assert checked(result).accepted
    assert not checked(result).told  # the second program leaves nothing out, bundled or not


def test_a_bound_that_takes_too_long_to_prove_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = random_question(tmp_path, 3, 5, 4)
    monkeypatch.setattr(prove, "MOST_STEPS", 10)
    result = answered(question)
    assert result.told
    assert not result.proved
    assert checked(result).accepted
    assert checked(result).told
    forged = replace(result, proof=RecomputableBound(result.proved_by), proved=True, status="OPTIMAL")
    assert "nothing that is only told is called proved" in checked(forged).refused[0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_some_of_many_cuts_give_stages_and_an_honest_bound(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = random_question(tmp_path, seed, 6, 4)
    best = best_by_trying(question)
    monkeypatch.setattr(cuts, "MOST_IDEALS", 3)
    result = answered(question)
    assert result.status != "INFEASIBLE" or best == float("inf")
    assert result.value is None or result.value >= best * (1.0 - 1e-12)
    assert result.bound is None or result.bound <= best
    assert checked(result).accepted


PUBLISHED = [8, *(pytest.param(devices, marks=pytest.mark.slow) for devices in (32, 64, 128, 256, 512))]


@pytest.mark.data
@pytest.mark.parametrize("devices", PUBLISHED)
def test_bert_is_no_slower_than_by_the_published_program(devices: int) -> None:
    with reference("placement/reference.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["input"] == f"piper/bert32a100 M=8GiB N=1920 k={devices}"]
    told = {row["algorithm"]: float(row["objective"]) for row in rows} or {"piper-DP": 0.00256113}
    asked = (f"devices={devices}", "memory=8 GiB", "bandwidth=25 GiB/s", "microbatches=1920")
    result = answered(read(reference("placement/piper/bert32a100.json"), asked))
    assert result.status == "OPTIMAL"
    assert result.value == pytest.approx(told["piper-DP"], rel=1e-6)
    assert result.value is not None and result.value <= told["piper-DP"] * (1.0 + 1e-6)
    equal = next(rival.value for rival in result.rivals if rival.name == "equal stages")
    assert equal is not None and result.value < equal <= told.get("equi(2BW-like)", equal) * (1.0 + 1e-6)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("devices", [2, 8, 64])
def test_gnmt_is_proved(devices: int) -> None:
    path = reference("placement/piper/gnmt.json")
    result = answered(read(path, (f"devices={devices}", "memory=2.5 GiB", "bandwidth=25 GiB/s", "time_unit=ms")))
    assert result.status == "OPTIMAL"
    assert checked(result).accepted


def test_layers_without_work_multiply_no_cuts(tmp_path: Path) -> None:
    """Twenty idle layers beside a chain of three have a million ideals."""
    idle = [node(name, time=0.0) for name in range(10, 30)]
    for one in idle:
        one["TMPCs"]["1"] = [{**one["TMPCs"]["1"][0], "parameterSize": 0.0, "memoryUsageA": 0.0, "memoryUsageB": 0.0}]
    plain, wide = document(), document(nodes=[*document()["nodes"], *idle])
    wide["edges"] = [*wide["edges"], *({"sourceId": name, "destId": 3, "communicationCost": 0.0} for name in range(10, 30))]
    one, other = (answered(read(written(tmp_path, what))) for what in (plain, wide))
    assert one.value == other.value
    assert other.status == "OPTIMAL"
    assert sum(len(stage.nodes) for stage in other.answer.stages) == 23


def test_a_time_limit_of_nothing_gives_no_stages_and_no_traceback(tmp_path: Path) -> None:
    result = answered(random_question(tmp_path, 3, 6, 5), Limits(seconds=0.0))
    assert (result.status, result.stopped, result.value) == ("UNKNOWN", "time limit", None)


def test_a_gap_that_is_asked_ends_the_search(tmp_path: Path) -> None:
    question = read(written(tmp_path, random_document(2, 6, 6)), ("memory=1e6 B",))
    near = answered(question, Limits(gap=0.5))
    assert near.proved
    assert near.gap is not None and near.gap <= 0.5
    assert checked(near).accepted


def test_a_layer_without_work_stays_where_its_edges_carry_what_configurations_add(tmp_path: Path) -> None:
    """Layer 2 does nothing, but layer 3 takes in 50 bytes from it if they are apart; between 1 and 2 the cut is free."""
    idle, last = node(2, time=0.0), node(3)
    idle["TMPCs"]["1"] = [{**idle["TMPCs"]["1"][0], "parameterSize": 0.0, "memoryUsageA": 0.0, "memoryUsageB": 0.0}]
    for one in last["TMPCs"]["1"]:
        one["syncTimeFw"] = {"2": 50.0}
    edges = [{"sourceId": name, "destId": name + 1, "communicationCost": 0.0} for name in (1, 2)]
    question = read(written(tmp_path, document(nodes=[node(1), idle, last], edges=edges, maxDevices=2)))
    result = answered(question)
    assert result.value == best_by_trying(question) == 1.0
    assert [stage.nodes for stage in result.answer.stages] == [("1",), ("2", "3")]
