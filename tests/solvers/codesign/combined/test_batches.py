"""The batch as a choice: against every batch asked for on its own, per sample or per token, with every edit of the answer refused."""

from functools import cache
from pathlib import Path

import pytest

from crossopt.instances.codesign.instance import MultiScaleQuestion
from crossopt.instances.question import read_again
from crossopt.reports.cli import main
from crossopt.reports.shown import page_of
from crossopt.solvers.codesign.answer import DesignResult
from tests.solvers.codesign.asking import again, answered, checked
from tests.solvers.codesign.combined.test_devices import FIXED, FREE, alone, told

BATCHES = (32, 64, 128)
OPEN = f"workload.global_batch={list(BATCHES)}"
ONE = "cluster.devices=8"


def counted(text: str, *settings: str) -> MultiScaleQuestion:
    asked = read_again({"text": text, "source": "question.yaml", "settings": list(settings)}, "codesign")
    assert isinstance(asked, MultiScaleQuestion)
    return asked


@cache
def solved(text: str, *settings: str, engine: str = "auto") -> DesignResult:
    return answered(counted(text, *settings), engine)


def only(text: str, batch: int, *settings: str) -> float | None:
    """The optimum with one batch."""
    return alone(text, 8, *settings, f"workload.global_batch={batch}")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "engine", "objective"),
    [
        (FIXED, "exhaustive", ""),
        (FREE, "boxes", "cost_per_token"),
        pytest.param(FIXED, "exhaustive", "energy_per_token", marks=pytest.mark.slow),
    ],
)
def test_the_best_batch_is_that_of_the_best_answer_per_sample_or_token(text: str, engine: str, objective: str) -> None:
    result = solved(text, OPEN, ONE, *([f"objective={objective}"] if objective else []), engine=engine)
    values = [only(text, batch, f"objective={objective or 'time_per_sample'}") for batch in BATCHES]
    least = min(value for value in values if value is not None)
    assert (result.status, result.value, result.bound, result.gap) == ("OPTIMAL", least, least, 0.0)
    assert result.answer is not None
    assert (result.answer.devices, result.answer.batch) == (8, BATCHES[values.index(least)])
    assert [part.value for part in result.parts] == values
    assert checked(again(result)).refused == ()


def test_the_time_of_a_sample_is_the_step_time_over_the_batch() -> None:
    for batch in BATCHES:
        step = only(FIXED, batch)
        assert step is not None
        assert only(FIXED, batch, "objective=time_per_sample") == step / batch


def test_the_answer_says_by_what_batches_are_compared() -> None:
    words = " ".join(told(solved(FIXED, OPEN, ONE)).split())
    assert "question 3 batches, batch 128 is best, proved" in words
    assert "batches are compared by the time of a sample, as a smaller one has the shorter step; how well each of them learns" in words
    assert "The design with batch 128" in words
    asked, result = counted(FIXED, OPEN, ONE), solved(FIXED, OPEN, ONE)
    page = str(page_of("codesign", asked, result, {}))
    assert "With which batch, of 32, 64 or 128, can" in page
    assert "batches are compared by the time of a sample" in page


def test_numbers_of_devices_and_batches_are_asked_about_in_pairs() -> None:
    result = solved(FIXED, OPEN, "objective=cost_per_token", "cluster.devices=[4, 16]")
    pairs = [(devices, batch) for devices in (4, 16) for batch in BATCHES]
    values = [alone(FIXED, devices, "objective=cost_per_token", f"workload.global_batch={batch}") for devices, batch in pairs]
    assert [part.value for part in result.parts] == values
    least = min(value for value in values if value is not None)
    assert result.answer is not None
    assert (result.answer.devices, result.answer.batch) == pairs[values.index(least)]
    assert checked(result).refused == ()


def test_the_fewest_devices_that_are_done_in_time_with_any_of_the_batches() -> None:
    """A run of 512 x 512 x 128 tokens is 512 steps of the greatest batch; 4 devices are in time with that one alone."""
    tokens = 512 * 512 * 128
    seconds = {(devices, batch): alone(FIXED, devices, f"workload.global_batch={batch}") for devices in (2, 4) for batch in BATCHES}
    runs = {pair: tokens / (512 * pair[1]) * step for pair, step in seconds.items() if step is not None}
    second, first = sorted(runs[4, batch] for batch in BATCHES)[1::-1]
    assert first < second < min(runs[2, batch] for batch in BATCHES)
    goal = f"goal={{tokens: {tokens}, deadline: {(first + second) / 2!r} s}}"
    result = solved(FIXED, OPEN, "objective=devices", goal)
    assert (result.status, result.value, result.bound) == ("OPTIMAL", 4.0, 4.0)
    assert result.answer is not None
    assert runs[4, result.answer.batch] == first
    assert checked(result).refused == ()


def test_an_export_says_how_to_have_the_best_batch_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question, answers, one = (tmp_path / name for name in ("batches.yaml", "answers.json", "one.json"))
    question.write_text(FIXED, encoding="utf-8")
    settings = [part for one in (OPEN, ONE) for part in ("--set", one)]
    assert main(["solve", str(question), *settings, "--out", str(answers)]) == 0
    capsys.readouterr()
    assert main(["export", str(answers), "--as", "fsdp"]) == 3
    told = capsys.readouterr().err
    assert "on its own: crossopt solve QUESTION --set workload.global_batch=128 --out FILE)" in told
    assert main(["solve", str(question), *settings, "--set", "workload.global_batch=128", "--out", str(one)]) == 0
    assert main(["export", str(one), "--as", "megatron"]) == 0
