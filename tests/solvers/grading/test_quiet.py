"""What a grade by a hidden word gives away: nothing that one could hand in again by."""

import json
from pathlib import Path

import pytest

from crossopt.reports.commands.course import grade_gradescope
from crossopt.solvers.grading.grade import graded, is_hidden
from crossopt.solvers.grading.marks import Assignment, Call, Case, Task, figure
from crossopt.solvers.grading.walls import missing
from tests.solvers.grading.programs import written

pytestmark = pytest.mark.course

walled = pytest.mark.skipif(missing() is not None, reason=f"programs cannot be walled in here: {missing()}")
SECRET = 173.25
CARRIED = """import json, os
class Carried(Exception):
    pass
def near(x):
    return 2 * x
def text(x):
    return f"x is {x}"
def raised(x):
    raise ValueError(f"x is {x}")
def kind(x):
    raise type(f"x_is_{x}".replace(".", "_"), (Exception,), {})
def forge(fd, x):
    try:
        os.write(fd, json.dumps({"error": f"stopped after {x} s"}).encode() + b"\\n")
    except OSError:
        pass
def written(x):
    [forge(fd, x) for fd in range(3, 256)]
    os._exit(0)
def numbered(x):
    said = json.dumps({"error": f"ValueError (line {int(x * 100)} of solution.py)"}).encode() + b"\\n"
    for fd in range(3, 256):
        try:
            os.write(fd, said)
        except OSError:
            pass
    os._exit(0)
"""


def asked(*functions: str) -> Assignment:
    tasks = tuple(Task(name, 10, (Case("the case", Call(name, (SECRET,)), lambda value: figure(value, SECRET)),)) for name in functions)
    return Assignment("01-carried", "Carried", lambda _: tasks, 5, total=0)


@walled
def test_hidden_arguments_are_not_carried_out_and_practice_tells_all(tmp_path: Path) -> None:
    functions = ("near", "text", "raised", "kind", "written", "absent", "numbered")
    folder = written(tmp_path / "in", CARRIED)
    hidden, practice = (graded(asked(*functions), folder, seed, walls=True) for seed in ("hush/ada", "practice/ada"))
    assert [mark.why[0] for mark in hidden.marks][:4] == [
        "every case: not right",
        "every case: not right",
        "every case: ValueError (line 9 of solution.py)",
        "every case: an error of its own kind (line 11 of solution.py)",
    ]
    assert hidden.marks[6].why == ("every case: ValueError",), "a line that the program does not have says something else"
    assert hidden.marks[5].why == ("every case: AttributeError: there is no function absent in solution.py",)
    told = grade_gradescope(hidden)
    assert "173" not in told
    assert "the figure is 2 times the right one" in practice.marks[0].why[0]
    assert "x is 173.25" in practice.marks[2].why[0]


@walled
def test_gradescope_shows_marks_of_hidden_cases_when_grades_are_published(tmp_path: Path) -> None:
    folder = written(tmp_path / "in", CARRIED)
    hidden, practice, refused = (
        json.loads(grade_gradescope(graded(asked("near"), place, seed, walls=True)))
        for place, seed in ((folder, "hush"), (folder, "practice"), (tmp_path / "none", "hush"))
    )
    assert hidden["visibility"] == "after_published"
    assert [test["visibility"] for test in hidden["tests"]] == ["after_published"]
    assert "crossopt grade 1 FOLDER" in hidden["output"]
    for open_one in (practice, refused):
        assert "visibility" not in open_one
        assert all("visibility" not in test for test in open_one["tests"])


def test_cases_are_hidden_but_for_the_word_of_practice() -> None:
    assert [is_hidden(seed) for seed in ("practice", "practice/ada", "practices", "hush/practice", "")] == [False, False, True, True, True]
