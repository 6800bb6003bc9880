"""Answers as users get them: rules of the judge, what a check says of bounds, faults in words."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crossopt.instances.errors import VerificationError
from crossopt.instances.kinds import kind_asked
from crossopt.instances.question import read
from crossopt.reports.cli import main
from crossopt.solvers.answer import Baseline, Limits, SearchOutcome
from crossopt.solvers.family import certify
from crossopt.solvers.proofs import RecomputableBound
from crossopt.solvers.stages.piper.family import FAMILY
from crossopt.solvers.stages.piper.judge import PiperPlan, Stage, judge, judge_rows, named
from crossopt.solvers.stages.piper.prove import none_below
from tests.every import every
from tests.solvers.stages.piper.graphs import Answer, answered, checked, document, node, random_question, written

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
        found = SearchOutcome(plan, bound, RecomputableBound("a guess"), "cuts", rivals=better)
        with pytest.raises(VerificationError, match="bound: 'a rule' takes"):
            certify(FAMILY, question, found, Limits(), 0.0)
        wrong = replace(
            certify(FAMILY, question, replace(found, rivals=()), Limits(), 0.0), rivals=(replace(better[0], value=result.value),)
        )
        assert any(fault.startswith("bound: 'a rule' takes") for fault in checked(wrong).refused)


def test_the_greedy_choice_is_held_by_its_stages(tmp_path: Path) -> None:
    """Its tables and the judge of its stages agree, where memory makes it change some layers."""
    changed = 0
    for seed in range(30):
        question = random_question(tmp_path, seed, 4, 4)
        for rival in answered(question).rivals:
            if rival.name == "greedy choice" and rival.answer is not None:
                assert rival.note == ""
                changed += any(len(set(stage.configurations)) > 1 for stage in rival.answer.stages)
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
        (["--cpus", "1"], 2, "--cpus: this says nothing of a question about stages with replicas and splits"),
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
    try:
        ended = main(["solve", str(path), *words])
    except SystemExit as stop:
        ended = int(stop.code or 0)
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
    assert kind_asked(written(tmp_path, late)) == "piper"
    assert kind_asked(written(tmp_path, {"nodes": [{"id": 1, "name": '"TMPCs"'}], "edges": []})) == "placement"


def test_a_network_without_any_work_is_answered(tmp_path: Path) -> None:
    idle = {"timePerSample": 0.0, "parameterSize": 0.0, "memoryUsageA": 0.0, "memoryUsageB": 0.0}
    nodes = [node(name, TMPCs={"1": [{**node(0)["TMPCs"]["1"][0], **idle}]}) for name in (1, 2, 3)]
    found = answered(read(written(tmp_path, document(nodes=nodes, edges=[]))))
    assert (found.status, found.value) == ("OPTIMAL", 0.0)
    assert checked(found).accepted
