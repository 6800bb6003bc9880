"""Every assignment as it is handed out: the reference earns all points, a starter none, and its handout gives nothing away."""

from pathlib import Path

import pytest

from crossopt.solvers.grading.grade import ASSIGNMENTS, SOLUTIONS, assignment_named, graded
from crossopt.solvers.grading.marks import HANDOUTS, PARTS, Assignment
from crossopt.solvers.grading.walls import missing
from tests.solvers.grading.mistakes import tasks_of
from tests.solvers.grading.programs import grade_of, reference, written

pytestmark = pytest.mark.course

walled = pytest.mark.skipif(missing() is not None, reason=f"programs cannot be walled in here: {missing()}")
PROGRAMS = [one for one in ASSIGNMENTS if one.judge is None]


def called(assignment: Assignment) -> str:
    return assignment.name


each = pytest.mark.parametrize("assignment", PROGRAMS, ids=called)


@walled
@each
@pytest.mark.parametrize("seed", ["practice", pytest.param("another", marks=pytest.mark.slow)])
def test_the_reference_earns_every_point(assignment: Assignment, seed: str) -> None:
    grade = graded(assignment, reference(assignment), seed, walls=True)
    assert [mark for mark in grade.marks if mark.why] == []
    assert grade.points == grade.out_of == 100


@walled
@pytest.mark.parametrize("assignment", [*PROGRAMS[:2], *(pytest.param(one, marks=pytest.mark.slow) for one in PROGRAMS[2:])], ids=called)
def test_a_starter_earns_nothing_and_says_which_holes_are_left(assignment: Assignment, tmp_path: Path) -> None:
    starter = (HANDOUTS / assignment.name / "starter.py").read_text(encoding="utf-8")
    grade = graded(assignment, written(tmp_path / "in", starter), "practice", walls=True)
    assert grade.points == 0
    assert all("still a hole" in mark.why[0] for mark in grade.marks[:-1])


@walled
def test_the_same_submission_gets_the_same_grade(tmp_path: Path) -> None:
    """Also where the order of a set decides."""
    program = "def one():\n    return next(iter({'a', 'b', 'c', 'd'})) in 'ab' and 1.0\n"
    assert len({grade_of(tmp_path / "in", program, "one") for _ in range(3)}) == 1


@each
def test_another_seed_asks_other_cases_of_the_same_tasks(assignment: Assignment) -> None:
    one, other = assignment.tasks("one"), assignment.tasks("other")
    assert [(task.name, task.points, len(task.cases)) for task in one] == [(task.name, task.points, len(task.cases)) for task in other]
    for task, changed in zip(one, other, strict=True):
        for case, another in zip(task.cases, changed.cases, strict=True):
            assert case.public == another.public == (case.call == another.call), case.name


@each
def test_each_assignment_is_there_by_name_and_number_with_its_handout(assignment: Assignment) -> None:
    assert assignment_named(assignment.name) is assignment_named(assignment.name[:2].lstrip("0")) is assignment
    readme = (HANDOUTS / assignment.name / "README.md").read_text(encoding="utf-8")
    for task in tasks_of(assignment, "practice"):
        for case in task.cases:
            assert f"`{case.call.function}(" in readme
        assert f" {task.points} |" in readme


def test_each_folder_is_an_assignment() -> None:
    names = [one.name for one in ASSIGNMENTS]
    assert all(sum(task.points for task in tasks_of(one, "practice")) == PARTS for one in ASSIGNMENTS)
    assert sorted(path.name for path in HANDOUTS.iterdir() if path.name[0].isdigit()) == names
    assert sorted(path.name for path in SOLUTIONS.iterdir() if path.is_dir() and path.name[0].isdigit()) == names
    assert all(name in (HANDOUTS / "README.md").read_text(encoding="utf-8") for name in names)
