"""Piper's graphs: reading them, cuts and ideals, the search against trying everything, and answers as users get them."""

import csv
import json
from dataclasses import replace
from itertools import pairwise, permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossopt.instances.errors import InstanceError, VerificationError
from crossopt.instances.kinds import kind_of_file
from crossopt.instances.question import read, read_again
from crossopt.instances.stages.piper import narrowed
from crossopt.reports.cli import main
from crossopt.solvers.answer import Baseline, Limits, SearchOutcome
from crossopt.solvers.family import certify, described
from crossopt.solvers.proofs import RecomputableBound
from crossopt.solvers.stages.piper import family, search
from crossopt.solvers.stages.piper.family import FAMILY, none_below
from crossopt.solvers.stages.piper.judge import PiperPlan, Stage, judge, judge_rows, named
from crossopt.solvers.stages.piper.search import cuts_near, ideals_of
from tests.commands import exit_code
from tests.every import every
from tests.paths import reference
from tests.solvers.stages.piper.graphs import (
    Answer,
    answered,
    best_by_trying,
    checked,
    configuration,
    document,
    node,
    random_document,
    random_question,
    written,
)

# Answers as users get them: rules of the judge, what a check says of bounds, faults in words.

PLAIN, AGAIN = "vanilla", "activation recomp"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    question = read(written(tmp_path_factory.mktemp("graph"), document()))
    return answered(question)


def test_a_bound_above_the_stages_of_a_rule_is_neither_answered_nor_accepted(result: Answer, tmp_path: Path) -> None:
    """All layers on one device, called the quickest, with the best beside it; and none at all."""
    question = read(written(tmp_path, document()))
    slow = named(question, (Stage((0, 1, 2), 1, 1, (PLAIN,) * 3),))
    better: tuple[Baseline[PiperPlan], ...] = (Baseline("a rule", None, result.answer),)
    for plan, bound in ((slow, judge(question, slow).value), (None, float("inf"))):
        found = SearchOutcome(plan, bound, RecomputableBound("a guess"), "cuts", baselines=better)
        with pytest.raises(VerificationError, match="bound: 'a rule' takes"):
            certify(FAMILY, question, found, Limits(), 0.0)
        wrong = replace(
            certify(FAMILY, question, replace(found, baselines=()), Limits(), 0.0), baselines=(replace(better[0], value=result.value),)
        )
        assert any(fault.startswith("bound: 'a rule' takes") for fault in checked(wrong).refused)


def test_the_greedy_choice_is_held_by_its_stages(tmp_path: Path) -> None:
    """Its tables and the judge of its stages agree, where memory makes it change some layers."""
    changed = 0
    for seed in range(30):
        question = random_question(tmp_path, seed, 4, 4)
        for baseline in answered(question).baselines:
            if baseline.name == "greedy choice" and baseline.answer is not None:
                assert baseline.note == ""
                changed += any(len(set(stage.configurations)) > 1 for stage in baseline.answer.stages)
    assert changed > 3


def test_the_judge_by_hand(tmp_path: Path) -> None:
    """Two replicas of layers 1 and 2, then one of layer 3; 2 bytes cross, at 100 bytes/s, and 4 microbatches make a batch."""
    question = read(written(tmp_path, document()))
    verdict = judge_rows(question, [Stage((0, 1), 2, 1, (PLAIN, AGAIN)), Stage((2,), 1, 1, (PLAIN,))])
    first, second = verdict.details.loads
    assert verdict.violations == ()
    assert (first.compute, first.transfer, first.exchange) == (1.25, 2 * 2.0 / 2 / 100, 4 * 1 * 16.0 / (2 * 4) / 100)
    assert (first.under_way, first.memory, second.under_way, second.memory) == (2, 4 * 2 + 8 + 1 * 2 + 11, 1, 12)
    assert second.total == 1.04
    assert verdict.value == pytest.approx(1.25 + 0.02 + 0.08, rel=1e-15)


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ([Stage((1,), 1, 1, (PLAIN,)), Stage((0, 2), 1, 1, (PLAIN, PLAIN))], "edges lead back to an earlier stage: 1 -> 2"),
        ([Stage((0, 1, 2), 3, 1, (PLAIN,) * 3)], "stage 1 has 3 replicas"),
        ([Stage((0, 1), 2, 1, (PLAIN,) * 2), Stage((2,), 2, 1, (PLAIN,))], "4 devices are taken of 3"),
        ([Stage((0, 1, 2), 1, 1, (PLAIN,) * 3)], "stage 1 breaks the memory of a device: 36 B of 35 B"),
    ],
)
def test_broken_rules_are_told(stages: list[Stage], said: str, tmp_path: Path) -> None:
    verdict = judge_rows(read(written(tmp_path, document(maxMemoryPerDevice=35))), stages)
    assert any(said in violation for violation in verdict.violations)


@pytest.mark.parametrize(
    "stages",
    [
        [Stage((0, 1), 1, 1, (PLAIN,) * 2)],
        [Stage((0, 1, 2), 1, 2, (PLAIN,) * 3)],
        [Stage((0, 1, 2), 1, 1, ("other",) * 3)],
        [Stage((0, 1, 2, 2), 1, 1, (PLAIN,) * 4)],
        [Stage((0, 1, 2), 0, 1, (PLAIN,) * 3)],
        [Stage((0, 1, 2), 1, 1, (PLAIN,) * 3), Stage((), 1, 1, ())],
    ],
)
def test_what_are_no_stages_of_the_graph_is_refused(stages: list[Stage], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"stage|offers"):
        judge_rows(read(written(tmp_path, document())), stages)


def test_a_bound_that_is_too_high_is_not_proved_anew(result: Answer, tmp_path: Path) -> None:
    question = read(written(tmp_path, document()))
    assert result.value is not None
    assert result.bound is not None
    assert none_below(question, result.bound, str)
    assert none_below(question, result.value * (1.0 + 1e-9), str) is False
    assert none_below(question, float("inf"), str) is False


@every(
    ("words", "code", "said"),
    [
        ([], 0, "certificate: no plan is below"),
        (["--without", "data,recompute"], 0, "data, recompute"),
        (["--memory", "11B"], 20, "node '1' needs 12 bytes of a device, which has 11"),
        (["--memory", "12B", "--devices", "2"], 20, "36 bytes in all do not fit 2 devices of 12"),
        (["--memory", "25B", "--devices", "1"], 20, "36 bytes in all do not fit 1 devices"),
        (
            ["--memory", "nonsense"],
            2,
            "--memory: 'nonsense' does not begin with a number, a size in bytes is needed (for example '80 GiB')",
        ),
        (["--bandwidth", "nonsense"], 2, "--bandwidth: 'nonsense' does not begin with a number, a bandwidth is needed"),
        (["--without", "everything"], 2, "--without: 'everything' is unknown (one of data, tensor, recompute)"),
        (["--engine", "milp"], 2, "the engine 'milp' answers no question of kind piper"),
        (["--set", "tensor=8"], 3, "tensor: unknown key (the known keys are file, "),
        (["--cpus", "1"], 2, "--cpus: this does not apply to a question about stages with replicas and splits"),
        (["--devices", "50000"], 2, "--devices: '50000' is too large (at most 16384)"),
        (["--microbatches", "0", "--devices", "0"], 2, "--devices: '0' is too small (at least 1); --microbatches: '0' is too small"),
        (["--time-limit", "0s"], 10, "no plan found (time limit after"),
        (["--gap", "90%", "--strict"], 0, "stage 1"),
    ],
)
def test_the_command_answers_and_refuses_in_words(
    words: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, document())
    ended = exit_code(["solve", str(path), "--verbose", *words])
    captured = capsys.readouterr()
    assert said in captured.out + captured.err
    assert ended == code


def test_the_command_writes_what_check_accepts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = written(tmp_path, document()), tmp_path / "answer.json"
    assert main(["validate", str(path)]) == 0
    assert main(["solve", str(path), "--out", str(target)]) == 0
    assert main(["check", str(target)]) == 0
    assert "the bound was proved anew" in capsys.readouterr().out
    target.write_text(target.read_text().replace('"vanilla"', '"activation recomp"', 1))
    assert main(["check", str(target)]) == 30


def test_an_answer_without_stages_is_proved_anew(tmp_path: Path) -> None:
    """Each of two layers fits a device, and with the microbatches under way of two stages they do not."""
    nodes = [node(name, TMPCs={"1": [node(0)["TMPCs"]["1"][0]]}) for name in (1, 2)]
    edges = [{"sourceId": 1, "destId": 2, "communicationCost": 2.0}]
    question = read(written(tmp_path, document(nodes=nodes, edges=edges, maxMemoryPerDevice=15.0)))
    found = answered(question)
    assert (found.status, found.proved_by.startswith("a dynamic program")) == ("INFEASIBLE", True)
    assert checked(found).accepted


def test_configurations_tell_the_family(tmp_path: Path) -> None:
    late = json.dumps({"padding": "x" * (1 << 21), **document()})
    assert kind_of_file(written(tmp_path, late)) == "piper"
    assert kind_of_file(written(tmp_path, {"nodes": [{"id": 1, "name": '"TMPCs"'}], "edges": []})) == "placement"


def test_a_network_without_any_work_is_answered(tmp_path: Path) -> None:
    idle = {"timePerSample": 0.0, "parameterSize": 0.0, "memoryUsageA": 0.0, "memoryUsageB": 0.0}
    nodes = [node(name, TMPCs={"1": [{**node(0)["TMPCs"]["1"][0], **idle}]}) for name in (1, 2, 3)]
    found = answered(read(written(tmp_path, document(nodes=nodes, edges=[]))))
    assert (found.status, found.value) == ("OPTIMAL", 0.0)
    assert checked(found).accepted


# The search against trying everything, against the published program, and where a network is too large for it.


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
        assert all(baseline.value is None or baseline.value >= best * (1.0 - 1e-12) for baseline in result.baselines)
        assert none_below(question, best * (1.0 + 1e-9), str) is False
    assert checked(result).accepted and not checked(result).unverified


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
    monkeypatch.setattr(search, "MOST_POINTS", 4)
    result = answered(question)
    assert result.value is None or result.value >= best * (1.0 - 1e-12)
    assert result.bound is None or result.bound <= best
    assert result.status != "INFEASIBLE" or best == float("inf")
    assert checked(result).accepted
    assert not checked(result).unverified  # the second program leaves nothing out, bundled or not


def test_a_bound_that_takes_too_long_to_prove_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = random_question(tmp_path, 3, 5, 4)
    monkeypatch.setattr(family, "MOST_STEPS", 10)
    result = answered(question)
    assert result.unverified
    assert not result.proved
    assert checked(result).accepted
    assert checked(result).unverified
    forged = replace(result, proof=RecomputableBound(result.proved_by), proved=True, status="OPTIMAL")
    assert "a bound without a repeatable proof must not be called proved" in checked(forged).refused[0]


def test_the_bound_of_all_work_claims_nothing_of_a_layer_that_no_device_takes(tmp_path: Path) -> None:
    question = random_question(tmp_path, 1, 4, 2)
    assert family.load_bound(question) > 0.0
    assert family.load_bound(replace(question, graph=replace(question.graph, offers=({}, *question.graph.offers[1:])))) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_some_of_many_cuts_give_stages_and_an_honest_bound(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = random_question(tmp_path, seed, 6, 4)
    best = best_by_trying(question)
    monkeypatch.setattr(search, "MOST_IDEALS", 3)
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
    equal = next(baseline.value for baseline in result.baselines if baseline.name == "equal stages")
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


# Cuts of networks: all of them where they are few, and ideals always.


def arcs_of(seed: int, count: int) -> list[tuple[int, int]]:
    random = np.random.default_rng(seed)
    return [(one, other) for one in range(count) for other in range(one + 1, count) if random.random() < 0.3]


def is_ideal(mask: int, arcs: list[tuple[int, int]]) -> bool:
    return all(mask >> start & 1 for start, end in arcs if mask >> end & 1)


@pytest.mark.parametrize("seed", range(8))
def test_all_cuts_are_found(seed: int) -> None:
    arcs = arcs_of(seed, 7)
    found, every = ideals_of(7, arcs)
    assert every
    assert sorted(found) == [mask for mask in range(1 << 7) if is_ideal(mask, arcs)]
    assert all(one.bit_count() <= other.bit_count() for one, other in pairwise(found))


@pytest.mark.parametrize("seed", range(8))
def test_some_of_many_cuts_are_cuts_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    arcs = arcs_of(seed, 9)
    monkeypatch.setattr(search, "MOST_IDEALS", 8)
    found, every = ideals_of(9, arcs)
    assert not every
    assert (found[0], found[-1]) == (0, (1 << 9) - 1)
    assert all(is_ideal(mask, arcs) for mask in found)
    stage_of = [0, 0, 0, 1, 1, 1, 2, 2, 2]
    near = cuts_near(arcs, stage_of, seed)
    assert all(is_ideal(mask, arcs) for mask in near)
    assert {0, 0b111, 0b111111, (1 << 9) - 1} <= set(near)


def test_a_chain_too_long_for_all_cuts_keeps_some() -> None:
    count = 2000
    found, every = ideals_of(count, [(place, place + 1) for place in range(count - 1)])
    assert not every
    assert len(found) <= 600
    assert found[-1].bit_count() == count


# Reading Piper's graphs: every fault with its place and remedy, units that cannot be right, and the published files.


def with_configuration(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    return document(nodes=[node(1), node(2, TMPCs={"1": [{**configuration("vanilla", 1.0), **more}]}), node(3)])


AT = "nodes[1].TMPCs.1[0]"
REFUSED = [
    ('{"nodes": [', "this is not JSON"),
    (document(nodes=[]), "nodes: 0 nodes are given"),
    (document(maxDevices=-1), "maxDevices: -1 is below 0"),
    (document(maxDevices=1.5), "maxDevices: '1.5' is no whole number"),
    (document(maxDevices=0), "maxDevices: 0 devices are given, 1 to 16,384 are needed (--devices)"),
    (document(bandwidth=0), "bandwidth: 0.0 bytes/s are given"),
    (document(mbsInBatch=0), "mbsInBatch: 0 microbatches are given"),
    (document(mbsInBatch=None), "mbsInBatch: mbsInBatch is missing"),
    (document(maxMemoryPerDevice=None), "maxMemoryPerDevice: maxMemoryPerDevice is missing"),
    (document(nodes=[node(1), node("1"), node(3)]), "nodes[1].id: '1' is the id of nodes[0] already"),
    (document(nodes=[node(1), node(2, TMPCs={}), node(3)]), "nodes[1].TMPCs: a mapping is needed"),
    (document(nodes=[node(1), node(2, TMPCs={"0": []}), node(3)]), "nodes[1].TMPCs.0: '0' is no number of devices"),
    (document(nodes=[node(1), node(2, TMPCs={"x": []}), node(3)]), "nodes[1].TMPCs.x: 'x' is no number of devices"),
    (document(nodes=[node(1), node(2, TMPCs={"1": []}), node(3)]), "nodes[1].TMPCs.1: a list of configurations is needed"),
    (document(nodes=[node(1), node(2, TMPCs={"1": [5]}), node(3)]), f"{AT}.id: a name is needed"),
    (document(nodes=[node(1), node(2, TMPCs={"1": [configuration("a", 1.0)] * 2}), node(3)]), "TMPCs.1[1].id: 'a' is a configuration"),
    (with_configuration(timePerSample=None), f"{AT}.timePerSample: timePerSample is missing"),
    (with_configuration(timePerSample=-1.0), f"{AT}.timePerSample: -1.0 is below 0"),
    (with_configuration(parameterSize="x"), f"{AT}.parameterSize: 'x' is no number"),
    (with_configuration(memoryUsageA=1e300), f"{AT}.memoryUsageA: '1e+300' is no number that can be worked with"),
    (with_configuration(syncTimeFw=3), f"{AT}.syncTimeFw: a mapping is needed"),
    (with_configuration(syncTimeFw={"9": 1.0}), f"{AT}.syncTimeFw: no edge joins this node and '9'"),
    (with_configuration(syncTimeFw={"1": 1.0}, syncTimeBw={"1": 1.0}), f"{AT}.syncTimeBw: '1' has an entry in syncTimeFw already"),
    (document(edges=[{"sourceId": 1, "destId": 9, "communicationCost": 1.0}]), "edges[0].destId: there is no node 9"),
    (document(edges=[{"sourceId": 1, "destId": 2}]), "edges[0].communicationCost: communicationCost is missing"),
    (document(edges=[{"sourceId": 1, "destId": 2, "communicationCost": 1.0}] * 2), "edges[1]: this edge is edges[0] again"),
    (
        document(edges=[{"sourceId": one, "destId": 3 - one, "communicationCost": 1.0} for one in (1, 2)]),
        "edges: the nodes 1 -> 2 -> 1 form a cycle",
    ),
]


@every(("what", "message"), REFUSED)
def test_a_wrong_graph_names_the_place_and_the_remedy(what: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(InstanceError) as raised:
        read(written(tmp_path, what))
    assert message in str(raised.value)


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    wrong = with_configuration(timePerSample=-1.0, memoryUsageB=None)
    wrong["edges"] = [{"sourceId": 8, "destId": 9, "communicationCost": 1.0}]
    with pytest.raises(InstanceError) as raised:
        read(written(tmp_path, wrong))
    assert len(raised.value.faults) == 4


def test_a_question_in_yaml_names_a_graph_and_says_what_the_graph_does_not(tmp_path: Path) -> None:
    graph, path = written(tmp_path, document()), tmp_path / "question.yaml"
    path.write_text(f"kind: piper\nfile: {graph.name}\ndevices: 7\nwithout: tensor\n", encoding="utf-8")
    question = read(path)
    assert (question.name, question.devices, question.without) == ("question", 7, ("tensor",))
    graph.write_text("[1, 2]", encoding="utf-8")
    assert read_again(question.document, "piper").graph.offers == question.graph.offers
    with pytest.raises(InstanceError, match="a Piper graph is a mapping with the lists `nodes` and `edges`"):
        read(path)


def test_layers_that_nothing_is_left_for_are_named(tmp_path: Path) -> None:
    wide = node(2, TMPCs={"2": [configuration("vanilla", 1.0)]})
    with pytest.raises(InstanceError, match=r"nodes\[1\].TMPCs: no configuration is left without tensor"):
        read(written(tmp_path, document(nodes=[node(1), wide, node(3)])), ("without=tensor",))


def test_it_does_not_matter_in_which_of_the_two_an_edge_stands(tmp_path: Path) -> None:
    one, other = (
        read(written(tmp_path, with_configuration(syncTimeFw=first, syncTimeBw=second))).graph.offers[1][1][0]
        for first, second in (({"1": 5.0}, {"3": 7.0}), ({"3": 7.0}, {"1": 5.0}))
    )
    assert dict(one.entering) == dict(other.entering) == {0: 5.0}
    assert dict(one.leaving) == dict(other.leaving) == {2: 7.0}


def test_a_part_of_a_byte_takes_a_byte_and_is_told(tmp_path: Path) -> None:
    question = read(written(tmp_path, with_configuration(memoryUsageA=3.25)))
    assert question.graph.offers[1][1][0].stashed == 4
    assert any("rounded up" in note for note in question.notes)


def test_settings_replace_what_the_file_says_and_the_question_can_be_asked_again(tmp_path: Path) -> None:
    asked = ("devices=5", "memory=99.5 B", "bandwidth=7 B/s", "microbatches=12", "without=[data, recompute]", "time_unit=ms")
    question = read(written(tmp_path, document()), asked)
    assert (question.devices, question.memory, question.bandwidth, question.degrees) == (5, 99, 7.0, (1,))
    assert [[one.name for one in offer[1]] for offer in question.graph.offers] == [["vanilla"]] * 3
    assert question.graph.offers[0][1][0].time == 1e-3
    again = read_again(json.loads(json.dumps(described(FAMILY, question))), "piper")
    assert described(FAMILY, again) == described(FAMILY, question)
    assert again.graph.offers == question.graph.offers


def test_degrees_divide_the_microbatches_and_are_no_more_than_devices(tmp_path: Path) -> None:
    question = read(written(tmp_path, document()), ("devices=7", "microbatches=12"))
    assert question.degrees == (1, 2, 3, 4, 6)
    assert narrowed(question, ("data",)).degrees == (1,)


@pytest.mark.data
def test_the_published_files_are_in_seconds_and_in_milliseconds() -> None:
    for name, unit, wrong in (("bert32a100", "s", False), ("bert32a100", "ms", True), ("gnmt", "s", True), ("gnmt", "ms", False)):
        question = read(reference(f"placement/piper/{name}.json"), (f"time_unit={unit}",))  # type: ignore[arg-type]
        other = "ms" if unit == "s" else "s"
        assert any(f"--time-unit {other} reads them so" in note for note in question.notes) == wrong
