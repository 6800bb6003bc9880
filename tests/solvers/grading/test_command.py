"""`grade` and `course` as they are typed."""

import json
import sys
from pathlib import Path

import pytest

from crossopt.reports.cli import main
from crossopt.solvers.grading.grade import ASSIGNMENTS, SOLUTIONS
from crossopt.solvers.grading.marks import HANDOUTS
from crossopt.solvers.grading.walls import missing
from tests.solvers.grading.programs import written

pytestmark = pytest.mark.course

FIRST = SOLUTIONS / ASSIGNMENTS[0].name
walled = pytest.mark.skipif(missing() is not None, reason=f"programs cannot be walled in here: {missing()}")


@walled
def test_a_released_starter_with_one_hole_filled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the handout to a grade, and the same in the form of Gradescope."""
    assert main(["course", "release", str(tmp_path / "hand-out")]) == 0
    assert f"{len(ASSIGNMENTS)} assignments, without solutions" in capsys.readouterr().out
    folder = tmp_path / "hand-out" / ASSIGNMENTS[0].name
    starter = (folder / "starter.py").read_text(encoding="utf-8")
    hole = '    raise NotImplementedError("product_bytes is still a hole")'
    assert hole in starter
    (folder / "solution.py").write_text(starter.replace(hole, "    return 2 * (rows * depth + depth * columns + rows * columns)"))
    assert main(["grade", "1", str(folder)]) == 0
    assert capsys.readouterr().out.startswith("01-transformer-layer   6 of 100 points\n")
    assert main(["grade", "1", str(folder), "--format", "gradescope", "--out", str(tmp_path / "results.json")]) == 0
    assert capsys.readouterr().out == (tmp_path / "results.json").read_text(encoding="utf-8")
    told = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert told["score"] == sum(test["score"] for test in told["tests"]) == 6
    assert sum(test["max_score"] for test in told["tests"]) == 100


def test_what_is_released_holds_no_solution(tmp_path: Path) -> None:
    main(["course", "release", str(tmp_path / "hand-out")])
    names = {path.name for path in (tmp_path / "hand-out").rglob("*")}
    assert "starter.py" in names
    assert not names & {"solution.py", "solutions", "__pycache__"}


def test_a_release_spares_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for target, word in ((tmp_path, "there already"), (tmp_path / "none" / "x", "make it first")):
        with pytest.raises(SystemExit):
            main(["course", "release", str(target)])
        assert word in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["course", "release"])


def test_a_submission_that_cannot_be_taken_is_graded_with_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.zip").write_bytes(b"nonsense")
    assert main(["grade", "1", str(tmp_path / "a.zip"), "--unconfined", "--format", "json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["points"] == 0
    assert told["refused"].startswith("a.zip is no zip that can be read")


@pytest.mark.parametrize("arguments", [("99", "."), ("1", "nothing-there")], ids=" ".join)
def test_what_is_not_there_is_told(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["grade", *arguments])
    assert "there is no" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_told_before_anything_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["grade", "1", str(FIRST), "--out", str(tmp_path / "none" / "results.json")])
    told = capsys.readouterr()
    assert (told.out, "make it first" in told.err) == ("", True)


def test_without_walls_a_grade_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path / "in", "")
    assert main(["grade", "1", str(folder), "--unconfined"]) == 0
    assert "no walls stood around the submission" in capsys.readouterr().out
    for name, answer, words in (("exposed", True, "virtual environment"), ("missing", "walls need Linux", "--unconfined")):
        monkeypatch.setattr(f"crossopt.reports.commands.course.{name}", lambda *_, answer=answer: answer)
        with pytest.raises(SystemExit):
            main(["grade", "1", str(folder)])
        assert words in capsys.readouterr().err


def test_where_no_program_can_be_run_it_is_told_and_the_handouts_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, whose Python has no limits."""
    monkeypatch.setitem(sys.modules, "resource", None)
    for further in ([], ["--unconfined"]):
        with pytest.raises(SystemExit):
            main(["grade", "1", str(FIRST), *further])
        assert "programs are graded on Linux and macOS" in capsys.readouterr().err
    assert main(["course", "list"]) == main(["course", "release", str(tmp_path / "out")]) == 0


@walled
def test_the_seed_of_the_variable_draws_other_cases(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CROSSOPT_COURSE_SEED", "hidden")
    drawn = []
    monkeypatch.setattr("crossopt.reports.commands.course.graded", lambda *arguments: drawn.append(arguments[2]) or _stop())
    for further in ([], ["--seed", "given"]):
        with pytest.raises(KeyboardInterrupt):
            _raised(["grade", "1", str(FIRST), *further])
    assert drawn == ["hidden", "given"]


def _stop() -> None:
    raise KeyboardInterrupt


def _raised(arguments: list[str]) -> None:
    if main(arguments) == 10:
        raise KeyboardInterrupt


def test_the_list_names_the_lab_and_takes_no_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["course", "list"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) == len(ASSIGNMENTS) + 1
    assert told[-1].startswith("phaze-lab ")
    assert (HANDOUTS / "phaze-lab" / "README.md").is_file()
    for arguments, words in (
        (("list", "x"), "course list x: this takes no folder"),
        (("question", "x"), "course question x: this takes no folder"),
        (("question", "--seed", " "), "--seed: this is empty"),
    ):
        with pytest.raises(SystemExit):
            main(["course", *arguments])
        assert words in capsys.readouterr().err


def test_an_empty_seed_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["grade", "1", str(FIRST), "--unconfined", "--seed", ""])
    assert "--seed: this is empty (name a word, or leave --seed out)" in capsys.readouterr().err
