"""Answers as users get them: rules of the judge, results that cannot be edited, faults in words."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.errors import VerificationError
from crossopt.instances.kinds import family_of
from crossopt.instances.stages.piper.question import Asked, read_piper
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, text_of
from crossopt.solvers.stages.piper.answer import Found, PiperResult, RivalStages, certified, from_json
from crossopt.solvers.stages.piper.check import check, proved_again
from crossopt.solvers.stages.piper.engine import answered
from crossopt.solvers.stages.piper.judge import Stage, judge
from tests.every import every
from tests.solvers.stages.piper.graphs import document, node, written
from tests.test_start_up import SLOW, loaded

PLAIN, AGAIN = "vanilla", "activation recomp"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> PiperResult:
    question = read_piper(written(tmp_path_factory.mktemp("graph"), document()), Asked())
    return answered(question, Limits(), lambda progress: None)


def test_a_bound_above_the_stages_of_a_rule_is_neither_answered_nor_accepted(result: PiperResult, tmp_path: Path) -> None:
    question = read_piper(written(tmp_path, document()), Asked())
    better = (RivalStages("a rule", (result.bound or 0.0) * 0.5),)
    with pytest.raises(VerificationError, match="bound: the plan of 'a rule' takes"):
        certified(question, Limits(), Found(None, float("inf"), "a guess"), better)
    assert any(fault.startswith("bound: the plan of 'a rule' takes") for fault in check(replace(result, rivals=better)).refused)


def test_the_judge_by_hand(tmp_path: Path) -> None:
    """Two replicas of layers 1 and 2, then one of layer 3; 2 bytes cross, at 100 bytes/s, and 4 microbatches make a batch."""
    question = read_piper(written(tmp_path, document()), Asked())
    verdict = judge(question, [Stage((0, 1), 2, 1, (PLAIN, AGAIN)), Stage((2,), 1, 1, (PLAIN,))])
    first, second = verdict.loads
    assert verdict.accepted
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
    verdict = judge(read_piper(written(tmp_path, document(maxMemoryPerDevice=35)), Asked()), stages)
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
        judge(read_piper(written(tmp_path, document()), Asked()), stages)


FREE = {"seconds", "seed", "versions", "trace", "rivals", "proved_by", "gap_asked", "notes"}


def leaves(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # noqa: ANN401
    if isinstance(data, dict | list) and data:
        inner = data.items() if isinstance(data, dict) else enumerate(data)
        return [leaf for key, value in inner for leaf in leaves(value, (*path, key))]
    return [path]


def test_every_single_edit_is_refused(result: PiperResult) -> None:
    data = json.loads(text_of(result))
    paths = [path for path in leaves(data) if path[0] not in FREE and path[:2] != ("instance", "asked")]
    assert len(paths) > 35
    assert check(from_json(data)).accepted
    for path in paths:
        copy = json.loads(text_of(result))
        place = copy
        for step in path[:-1]:
            place = place[step]
        old = place[path[-1]]
        for new in ("x", 123.5, None, not old):
            if new == old and type(new) is type(old):
                continue
            place[path[-1]] = new
            try:
                accepted = check(from_json(copy)).accepted
            except ValueError:
                continue
            assert not accepted, (path, old, new)


def test_a_bound_that_is_too_high_is_not_proved_anew(result: PiperResult, tmp_path: Path) -> None:
    question = read_piper(written(tmp_path, document()), Asked())
    assert result.value is not None
    assert result.bound is not None
    assert proved_again(question, result.bound)
    assert not proved_again(question, result.value * (1.0 + 1e-9))
    assert not proved_again(question, None)


@every(
    ("words", "code", "said"),
    [
        ([], 0, "certificate: no stages take less than"),
        (["--without", "data,recompute"], 0, "without data, recompute"),
        (["--memory", "11B"], 20, "node '1' needs 12 bytes of a device, which has 11"),
        (["--memory", "12B", "--devices", "2"], 20, "36 bytes in all do not fit 2 devices of 12"),
        (["--memory", "25B", "--devices", "1"], 20, "36 bytes in all do not fit 1 devices"),
        (["--memory", "nonsense"], 2, "'nonsense' is no size"),
        (["--bandwidth", "nonsense"], 2, "'nonsense' is no bandwidth"),
        (["--without", "everything"], 2, "'everything' is none of data, tensor, recompute"),
        (["--engine", "milp"], 2, "finds no stages with replicas"),
        (["--set", "tensor=8"], 2, "settings are for questions in YAML"),
        (["--cpus", "1"], 2, "--cpus: this says nothing of a graph with configurations"),
        (["--devices", "50000"], 2, "--devices: 50000 devices are given, 1 to 16,384 are needed"),
        (["--microbatches", "0", "--devices", "0"], 2, "are needed; --microbatches: 0 microbatches are given"),
        (["--time-limit", "0s"], 10, "no stages found (time limit)"),
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
    question = read_piper(written(tmp_path, document(nodes=nodes, edges=edges, maxMemoryPerDevice=15.0)), Asked())
    found = answered(question, Limits(), lambda progress: None)
    assert (found.status, found.proved_by.startswith("a dynamic program")) == ("INFEASIBLE", True)
    assert check(found).accepted


def test_configurations_tell_the_family(tmp_path: Path) -> None:
    late = json.dumps({"padding": "x" * (1 << 21), **document()})
    assert family_of(written(tmp_path, late)) == "piper"
    assert family_of(written(tmp_path, {"nodes": [{"id": 1, "name": '"TMPCs"'}], "edges": []})) == "placement"


def test_a_network_without_any_work_is_answered(tmp_path: Path) -> None:
    idle = {"timePerSample": 0.0, "parameterSize": 0.0, "memoryUsageA": 0.0, "memoryUsageB": 0.0}
    nodes = [node(name, TMPCs={"1": [{**node(0)["TMPCs"]["1"][0], **idle}]}) for name in (1, 2, 3)]
    found = answered(read_piper(written(tmp_path, document(nodes=nodes, edges=[])), Asked()), Limits(), lambda progress: None)
    assert (found.status, found.value) == ("OPTIMAL", 0.0)
    assert check(found).accepted


def test_checking_stages_loads_neither_models_nor_solvers(tmp_path: Path) -> None:
    target = tmp_path / "answer.json"
    assert main(["solve", str(written(tmp_path, document())), "--out", str(target)]) == 0
    assert loaded("check", str(target)).isdisjoint({*SLOW, "formulation"})
