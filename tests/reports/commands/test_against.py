"""The option `solve --against`: what differs in two questions and their answers."""

import json
from pathlib import Path

import pytest

from crossopt.reports.cli import main
from crossopt.solvers.answer import result_in
from crossopt.solvers.codesign.answer import DesignResult, Designs, EvaluatedDesigns
from tests.commands import exit_code

Captured = pytest.CaptureFixture[str]
GOAL = ("--set", "goal={tokens: 1e11, rent: 2 USD}")


def told(capsys: Captured) -> str:
    return " ".join(capsys.readouterr().out.split())


def solved(tmp_path: Path, *settings: str) -> DesignResult:
    out = tmp_path / "alone.json"
    assert main(["solve", "tiny", *settings, "--out", str(out)]) == 0
    return result_in(json.loads(out.read_text()), Designs, EvaluatedDesigns)


def rows_of(text: str, title: str) -> dict[str, list[str]]:
    """The cells of a table by the first of each row."""
    lines = text.partition(f"  {title}\n")[2].partition("\n\n")[0].splitlines()[1:]
    return {cells[0]: cells[1:] for line in lines if (cells := [cell.strip() for cell in line.split("  ") if cell.strip()])}


def test_what_is_asked_and_what_is_answered_stand_side_by_side(tmp_path: Path, capsys: Captured) -> None:
    mine, theirs = solved(tmp_path, *GOAL, "--set", "hardware=h100-sxm"), solved(tmp_path, *GOAL)
    capsys.readouterr()
    (tmp_path / "base.yaml").write_text(Path(str(theirs.question["source"])).read_text() + "goal: {tokens: 1e11, rent: 2 USD}\n")
    assert main(["solve", "tiny", *GOAL, "--set", "hardware=h100-sxm", "--against", str(tmp_path / "base.yaml")]) == 0
    text = capsys.readouterr().out
    assert rows_of(text, "The questions") == {"hardware": ["h100-sxm", "a100-80g"]}
    answers = rows_of(text, "The answers")
    assert mine.value is not None and theirs.value is not None
    change = mine.value / theirs.value - 1.0
    assert answers["step time"][-1] == answers["cost"][-1] == answers["run"][-1] == f"{change:+.1%}"
    assert answers["device"] == ["h100-sxm", "a100-80g"]
    points = 100.0 * (mine.details.evaluation.utilisation - theirs.details.evaluation.utilisation)
    assert answers["MFU"][-1] == f"{points:+.1f} points"
    assert f"step time of A is {-change:.1%} less than of B, proved" in " ".join(text.split())
    uses = rows_of(text, "Where the steps go")
    assert set(uses) <= set(mine.details.evaluation.breakdown)
    assert text.count("none of 24 designs is below") == 2


def test_programs_get_figures_with_their_units(tmp_path: Path, capsys: Captured) -> None:
    mine, theirs = solved(tmp_path, "--set", "tensor=2"), solved(tmp_path)
    capsys.readouterr()
    assert main(["solve", "tiny", "--set", "tensor=2", "--against", "tiny", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    for side, result in (("A", mine), ("B", theirs)):
        assert {name: data[side][name] for name in ("value", "bound", "proved", "unit")} == {
            **{name: getattr(result, name) for name in ("value", "bound", "proved")},
            "unit": "s",
        }
    answers = {row["name"]: row for row in data["answers"]}
    assert answers["step time"] == {"name": "step time", "unit": "s", "A": mine.value, "B": theirs.value}
    assert {answers[name]["unit"] for name in ("memory", "energy a token")} == {"bytes", "J"}
    texts = {"precision", "recompute", "zero", "overlap", "schedule", "device"}
    assert all(isinstance(row[side], int | float) for row in data["answers"] if row["name"] not in texts for side in ("A", "B"))
    for side, result in (("A", mine), ("B", theirs)):
        assert sum(row[side] for row in data["step_seconds"]) == pytest.approx(result.value)
    assert data["questions"] == [{"key": "choices.tensor", "A": "2", "B": "[1, 2, 4]"}]


def test_a_saved_result_is_compared_as_it_stands_and_its_proof_is_the_files(tmp_path: Path, capsys: Captured) -> None:
    saved = tmp_path / "base.json"
    assert main(["solve", "tiny", "--out", str(saved)]) == 0
    capsys.readouterr()
    assert main(["solve", "tiny", "--set", "tensor=4", "--against", str(saved)]) == 0
    text = told(capsys)
    assert "as the file states; `crossopt check" in text
    assert "more than of B" in text and "more than of B, proved" not in text
    data = json.loads(saved.read_text())
    data["value"] = data["bound"] = data["value"] / 2.0
    saved.write_text(json.dumps(data))
    assert main(["solve", "tiny", "--against", str(saved)]) == 2
    assert "this result is refused" in capsys.readouterr().err


def test_equal_questions_say_so_and_infeasible_ones_have_no_table(capsys: Captured) -> None:
    assert main(["solve", "tiny", "--against", "tiny"]) == 0
    text = told(capsys)
    assert "the same step time" in text
    assert "The questions ask the same." in text
    assert main(["solve", "tiny", "--set", "budget.step_time=1 ms", "--against", "tiny"]) == 20
    text = told(capsys)
    assert "A has no design and B has a design" in text
    assert "no design keeps the limits, proved" in text
    assert "The answers" not in text


def test_several_questions_in_one_are_represented_by_the_best(capsys: Captured) -> None:
    lists = ["--set", "hardware=[a100-40g, h100-sxm]"]
    assert main(["solve", "tiny", *lists, "--against", "tiny"]) == 0
    text = told(capsys)
    assert "h100-sxm, the best of 2 kinds of devices" in text
    assert "hardware [a100-40g, h100-sxm] a100-80g" in text


def test_a_free_chip_is_compared_with_a_given_one(tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "first.json"
    options = ["--set", "compute_area=[300 mm^2, 400 mm^2]", "--set", "l2_area=[40 mm^2]"]
    assert main(["solve", "quickstart", *options, "--against", "tiny", "--out", str(out)]) == 0
    assert rows_of(capsys.readouterr().out, "The answers")["compute area"][-1] == "-"
    assert main(["check", str(out)]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pareto", "step_time,energy_per_token"], "--pareto: two answers"),
        (["--against", "two-models-one-chip"], "--against: designs of one workload are compared"),
        (["--against", "gather-two-boxes"], "a joint design is compared with a joint design"),
        (["--against", "missing.yaml"], "missing.yaml"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments: list[str], message: str, capsys: Captured) -> None:
    with_other = arguments if "--against" in arguments else ["--against", "tiny", *arguments]
    code = exit_code(["solve", "tiny", *with_other])
    assert code in {2, 3}
    assert message in capsys.readouterr().err


def test_figures_that_are_printed_alike_are_the_same(capsys: Captured) -> None:
    """A ten-millionth more speed of matrix products is noise, in the verdict and in every row; a tenth is not."""
    assert main(["solve", "tiny", "--set", "factors.efficiency.matrix=1.0000001", "--against", "tiny"]) == 0
    noise = capsys.readouterr().out
    assert "the same step time to 0.05%" in noise
    changes = {cells[-1] for title in ("The answers", "Where the steps go") for cells in rows_of(noise, title).values()}
    assert changes == {"the same"}
    assert main(["solve", "tiny", "--set", "factors.efficiency.matrix=0.9", "--against", "tiny"]) == 0
    assert "step time of A is" in capsys.readouterr().out
