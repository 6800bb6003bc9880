"""Pipelines as users get them: what a check says of them, and faults in words."""

from pathlib import Path

import pytest

from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, SearchOutcome
from crossopt.solvers.family import certify
from crossopt.solvers.proofs import UnverifiedBound
from crossopt.solvers.stages.pipedream.baselines import baselines_of
from crossopt.solvers.stages.pipedream.family import FAMILY
from crossopt.solvers.stages.pipedream.judge import judge
from crossopt.solvers.stages.pipedream.prove import every_plan
from tests.solvers.stages.pipedream.profiles import CHAIN, answered, asked_of, checked, random_profile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "chain.txt"
    target.write_text(CHAIN, encoding="utf-8")
    return target


def test_a_small_profile_is_proved_anew_and_a_large_one_too() -> None:
    assert not checked(answered(asked_of(CHAIN, ("devices=[2, 2]", "bandwidth=[2e9 B/s, 1e9 B/s]")))).told
    assert not checked(answered(asked_of(random_profile(1, 14)))).told


def test_a_bound_above_a_plan_is_refused_on_a_small_profile() -> None:
    """The second best of all plans, better than every rule's, called the best: the check looks at all plans."""
    question = asked_of(random_profile(3, 6), ("devices=3",))
    every = {verdict.value: plan for plan in every_plan(question) if not (verdict := judge(question, plan)).violations}
    value = sorted(every)[1]
    found = SearchOutcome(every[value], value, UnverifiedBound("a guess"), "cuts", rivals=baselines_of(question))
    refused = checked(certify(FAMILY, question, found, Limits(), 0.0)).refused
    assert len(refused) == 1
    assert refused[0].startswith("bound: an answer takes")


def test_a_straight_pipeline_on_more_devices_than_stages_is_told_as_such() -> None:
    result = answered(asked_of(CHAIN, ("devices=4", "straight=true", "compatible=true")))
    assert result.status == "INFEASIBLE"
    assert "needs as many stages (--compatible uses all), and the profile cannot be cut into so many" in result.reasons[0]
    assert checked(result).accepted


def test_no_memory_is_enough_is_proved_too(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = path.with_suffix(".json")
    assert main(["solve", str(path), "--memory", "1MB", "--out", str(target)]) == 20
    assert "every plan has a stage that keeps more than the memory" in capsys.readouterr().out
    assert main(["check", str(target)]) == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 0, "certificate: no plan is below"),
        (["--devices", "2x2", "--bandwidth", "6GB/s,1e9"], 0, "slowest stage"),
        (["--devices", "2", "--straight", "--compression", "2"], 0, "stage 2 x 1"),
        (["--compatible"], 0, "no plan with the cuts and charges of the public optimizer is below"),
        (["--devices", "x"], 2, "is no count"),
        (["--devices", "0"], 2, "--devices: '0' is too small (at least 1)"),
        (["--bandwidth", "0"], 2, "--bandwidth: a bandwidth must be above zero"),
        (["--bandwidth", "0", "--compression", "0"], 2, "bytes a second; --compression: a compression of '0.0' is none"),
        (["--bandwidth", "fast"], 2, "--bandwidth: 'fast' does not begin with a number, a bandwidth is needed (for example '900 GB/s')"),
        (["--compression", "-1"], 2, "--compression: a compression of '-1.0' is none"),
        (["--memory", "much"], 2, "--memory: 'much' does not begin with a number, a size in bytes is needed"),
        (["--cpus", "2"], 2, "--cpus: this says nothing of a question about stages of a profile (leave it out)"),
        (["--engine", "milp"], 2, "the engine 'milp' answers no question of kind pipedream"),
        (["--set", "tensor=8"], 3, "tensor: unknown key (the known keys are file, "),
        (["--set", "devices=2x2", "--set", "bandwidth=[6 GB/s, 1 GB/s]"], 0, "slowest stage"),
        (["--set", "bandwidth=6"], 3, "'6' has no unit, a bandwidth is needed (for example '900 GB/s') [from --set bandwidth=6]"),
        (["--set", "straight=true", "--devices", "2"], 0, "stage 2 x 1"),
    ],
)
def test_the_command_answers_and_refuses_in_words(
    words: list[str], code: int, said: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        ended = main(["solve", str(path), *words])
    except SystemExit as stop:
        ended = int(stop.code or 0)
    captured = capsys.readouterr()
    assert ended == code
    assert said in " ".join((captured.out + captured.err).split())


def test_faults_of_the_file_are_told_with_their_lines(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text(CHAIN + "oops\n\tnode1 -- node7\n", encoding="utf-8")
    assert main(["solve", str(path)]) == 3
    said = capsys.readouterr().err
    assert f"{path}:8:1" in said
    assert "2 faults, nothing solved" in said


def test_a_folder_is_no_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "folder.txt").mkdir()
    assert main(["solve", str(tmp_path / "folder.txt")]) == 3
    assert "this is a directory" in capsys.readouterr().err
    assert main(["solve", str(tmp_path / "nothing.txt")]) == 3
