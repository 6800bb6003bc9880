"""A class: who handed in what, a line for each student whatever they handed in, runs that go on, programs that are alike, and the board."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from crossopt.reports.cli import main
from crossopt.reports.commands.course import board_text, class_csv, grade_gradescope
from crossopt.solvers.grading.classes import Asking, ClassError, HandedIn, digest_of, find_class, grade_class, grade_submission, read_roster
from crossopt.solvers.grading.grade import ASSIGNMENTS, SOLUTIONS, assignment_named, refused
from crossopt.solvers.grading.marks import Grade, seed_of
from crossopt.solvers.grading.walls import missing

pytestmark = pytest.mark.course

LAYER, KNAPSACK = ASSIGNMENTS[:2]
ASKING = Asking("word", walls=missing() is None, jobs=2)
RIGHT = (SOLUTIONS / LAYER.name / "solution.py").read_text(encoding="utf-8")
walled = pytest.mark.skipif(missing() is not None, reason=f"programs cannot be walled in here: {missing()}")


def handed_in(folder: Path, student: str, program: str, name: str = LAYER.name) -> None:
    place = folder / student / name
    place.mkdir(parents=True)
    (place / "solution.py").write_text(program, encoding="utf-8")


def rows_of(path: Path) -> list[list[str]]:
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))


def test_folders_zips_and_the_roster_say_who_handed_in_what(tmp_path: Path) -> None:
    handed_in(tmp_path, "ada", RIGHT)
    handed_in(tmp_path, "ada", RIGHT, "2")
    handed_in(tmp_path, "eve", RIGHT)
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / "1.zip").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("", encoding="utf-8")
    (tmp_path / "roster.csv").write_text("name,student\nAda L,ada\nBob,bob\nGrace,grace\n", encoding="utf-8")
    found = find_class(tmp_path, None, None)
    assert found.students == ("ada", "bob", "grace")
    assert [(one.student, one.assignment.name) for one in found.handed] == [
        ("ada", LAYER.name),
        ("ada", KNAPSACK.name),
        ("bob", LAYER.name),
    ]
    assert found.strangers == ("notes.txt", "eve: not on the roster")
    assert [one.student for one in find_class(tmp_path, None, KNAPSACK).handed] == ["ada"]


def test_names_are_the_same_in_other_letters_and_whatever_parts_the_columns(tmp_path: Path) -> None:
    """An accent may be a sign of its own, as some file systems write it."""
    handed_in(tmp_path, "E\u0301mile", RIGHT)
    (tmp_path / "roster.csv").write_text("Name;Student\nDupont, E.;\u00e9mile\nGrace;GRACE\n", encoding="utf-8-sig")
    found = find_class(tmp_path, None, None)
    assert (found.students, [one.student for one in found.handed], found.strangers) == (("\u00e9mile", "GRACE"), ["\u00e9mile"], ())
    assert seed_of("word", "E\u0301mile ") == seed_of("word", "\u00e9mile") == "word/\u00e9mile"
    handed_in(tmp_path, "\u00e9mile", RIGHT)
    with pytest.raises(ClassError, match="is there twice, in other letters"):
        find_class(tmp_path, None, None)


def test_one_assignment_may_lie_in_the_folder_of_the_student(tmp_path: Path) -> None:
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "solution.py").write_text(RIGHT, encoding="utf-8")
    (tmp_path / "bob.zip").write_bytes(b"")
    handed_in(tmp_path, "eve", RIGHT, KNAPSACK.name)  # another assignment alone is none of this one
    assert [(one.student, one.path.name) for one in find_class(tmp_path, None, LAYER).handed] == [("ada", "ada"), ("bob", "bob.zip")]
    shutil.rmtree(tmp_path / "eve")
    with pytest.raises(ClassError, match="nothing is handed in here"):
        find_class(tmp_path, None, None)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "names nobody"),
        ("student\n", "names nobody"),
        ("student\na\nA\n", "A, a is there twice"),
        ("student\n\xff", "cannot be read"),
        ("student\n../x\n", "no name of a folder"),
    ],
)
def test_what_is_no_roster_is_told(text: str, word: str, tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(ClassError, match=word):
        read_roster(tmp_path / "roster.csv")


def test_a_digest_tells_what_was_changed(tmp_path: Path) -> None:
    handed_in(tmp_path, "ada", RIGHT)
    before = digest_of(tmp_path / "ada")
    assert digest_of(tmp_path / "ada") == before
    (tmp_path / "ada" / LAYER.name / "solution.py").write_text(RIGHT + "\n", encoding="utf-8")
    assert digest_of(tmp_path / "ada") != before


@walled
def test_a_broken_or_endless_submission_costs_its_own_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A right one, one that is no Python, one without an end, one that is no zip, and a student who handed in nothing."""
    folder = tmp_path / "class"
    handed_in(folder, "ada", RIGHT)
    handed_in(folder, "bob", "def layer_weights(:\n")
    handed_in(folder, "eve", "import time\n\nwhile True:\n    time.sleep(1)\n")
    (folder / "joe").mkdir()
    (folder / "joe" / f"{LAYER.name}.zip").write_bytes(b"nonsense")
    (folder / "roster.csv").write_text("student\nada\nbob\neve\njoe\n=grace\n", encoding="utf-8")
    out = tmp_path / "grades.csv"
    graded_as = ["grade", str(folder), "--out", str(out), "--seed", "a word of sixteen signs", "--jobs", "2"]
    asked = [*graded_as, "--feedback", str(tmp_path / "feedback")]
    assert main(asked) == 0
    told = capsys.readouterr()
    assert "5 students, 4 submissions" in told.out
    rows = rows_of(out)
    assert rows[0] == ["student", LAYER.name, "points", "out of", "per cent", "remarks"]
    assert [row[:5] for row in rows[1:]] == [
        ["ada", "100", "100", "100", "100"],
        ["bob", "0", "0", "100", "0"],
        ["eve", "0", "0", "100", "0"],
        ["joe", "0", "0", "100", "0"],
        ["'=grace", "", "0", "100", "0"],
    ]
    assert [row[-1] for row in rows[1:3]] == ["", f"{LAYER.name}: nothing runs: SyntaxError (line 1 of solution.py)"]
    assert f"{LAYER.name}: nothing runs: while it was loaded: stopped after" in rows[3][-1]
    assert "no zip that can be read" in rows[4][-1]
    assert "SyntaxError" in (tmp_path / "feedback" / "bob" / f"{LAYER.name}.txt").read_text(encoding="utf-8")
    assert main(asked) == 0
    assert capsys.readouterr().err == "", "what was graded is not graded again"
    assert rows_of(out) == rows


def test_a_run_goes_on_where_it_was_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that was cut short, another word and another submission are graded anew."""
    for student in ("ada", "bob", "eve"):
        handed_in(tmp_path / "class", student, RIGHT)
    handed = find_class(tmp_path / "class", None, None).handed
    asked: list[str] = []

    def grade(one: HandedIn, _: Asking) -> Grade:
        asked.append(one.student)
        if one.student == "eve" and asked.count("eve") == 1:
            raise KeyboardInterrupt
        return refused(LAYER, "not looked at")

    monkeypatch.setattr("crossopt.solvers.grading.classes.grade_submission", grade)
    journal, alone = tmp_path / "grades.csv.journal", Asking("word", True, 1)
    with pytest.raises(KeyboardInterrupt):
        grade_class(handed, alone, journal, lambda *_: None)
    assert asked == ["ada", "bob", "eve"]
    with journal.open("a", encoding="utf-8") as lines:
        lines.write('{"key": "cut sho')
    found = grade_class(handed, alone, journal, lambda *_: None)
    assert asked == ["ada", "bob", "eve", "eve"]
    assert [one.handed.student for one in found] == ["ada", "bob", "eve"]
    grade_class(handed, Asking("other", True, 1), journal, lambda *_: None)
    assert len(asked) == 7


def test_a_grader_that_ends_without_a_grade_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handed_in(tmp_path, "ada", RIGHT)
    (one,) = find_class(tmp_path, None, None).handed
    monkeypatch.setattr("crossopt.solvers.grading.classes.sys.executable", shutil.which("false"))
    grade = grade_submission(one, ASKING)
    assert (grade.points, grade.refused) == (0, "the grader ended without a grade (exit code 1)")
    monkeypatch.setattr("crossopt.solvers.grading.classes._seconds", lambda _: 0)
    assert grade_submission(one, ASKING).refused == "grading took longer than 0 s"


def test_the_board_names_the_nearest_first_and_equal_ones_share_a_place() -> None:
    text = board_text("Board", {"ada": 0.02, "bob": 0.0, "a|b": 0.02})
    assert text.splitlines()[4:] == ["| 1 | bob | 0.00% |", "| 2 | ada | 2.00% |", "| 2 | a/b | 2.00% |"]
    grade = Grade(ASSIGNMENTS[7].name, (), above=0.01234)
    assert json.loads(grade_gradescope(grade))["leaderboard"] == [{"name": "% above the proved bound", "value": 1.23, "order": "asc"}]


def test_a_table_of_grades_has_a_line_for_everyone() -> None:
    grades = {"ada": {LAYER.name: refused(LAYER, "why")}}
    rows = list(csv.reader(io.StringIO(class_csv(("ada", "bob"), grades))))
    assert rows == [
        ["student", LAYER.name, "points", "out of", "per cent", "remarks"],
        ["ada", "0", "0", "100", "0", f"{LAYER.name}: why"],
        ["bob", "", "0", "100", "0", ""],
    ]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["{none}"], "there is no such folder of a class"),
        (["{here}"], "--out grades.csv"),
        (["{here}", "--out", "{here}/grades.csv", "--jobs", "0"], "one at a time at least"),
        (["{here}", "--out", "{here}/grades.csv", "--unconfined"], "nothing is handed in here"),
        (["{here}", "--out", "{here}/grades.csv", "--unconfined", "--assignment", "99"], "there is no assignment '99'"),
        (["1", "{here}", "--similar", "{here}/pairs.csv"], "--similar: this is about a class"),
    ],
)
def test_what_is_asked_wrongly_is_told(arguments: list[str], word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["grade", *(one.format(here=tmp_path, none=tmp_path / "none") for one in arguments)])
    assert word in capsys.readouterr().err


def test_every_assignment_is_found_by_the_name_of_its_folder() -> None:
    assert all(assignment_named(one.name) is one for one in ASSIGNMENTS)
