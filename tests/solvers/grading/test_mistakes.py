"""Points separate right from wrong: what likely mistakes, copied public values and another student's answers earn."""

from functools import cache
from typing import Any

import pytest

from crossopt.solvers.grading.grade import ASSIGNMENTS, SOLUTIONS, mark_of
from crossopt.solvers.grading.marks import (
    FULL,
    HANDOUTS,
    NEARLY,
    WHOLE,
    Assignment,
    Case,
    Task,
    Verdict,
    figure,
    nearly,
    same,
    seed_of,
    wrong,
)
from crossopt.solvers.grading.marks import Slip as Likely
from crossopt.solvers.grading.running import Call, Returned
from tests.solvers.grading.mistakes import Mistake, answering, marks, mistakes_of, solution_of, tasks_of, with_mistake

pytestmark = pytest.mark.course

PROGRAMS = [one for one in ASSIGNMENTS if one.judge is None]
EVERY = [
    pytest.param(one, mistake, id=f"{one.name[:2]} {mistake.name}", marks=[pytest.mark.slow] if place % 3 else [])
    for one in PROGRAMS
    for place, mistake in enumerate(mistakes_of(one))
]
"""Each third of them in fast tests."""
each = pytest.mark.parametrize("assignment", PROGRAMS, ids=lambda one: one.name)
STUDENTS = tuple(seed_of("practice", student) for student in ("Ada Lovelace", "2026-117"))


@cache
def earned(assignment: Assignment, mistake: Mistake, seed: str) -> tuple[float, str]:
    found = marks(assignment, seed, answering(with_mistake(assignment, mistake)))
    return sum(mark.points for mark in found), " | ".join(why for mark in found for why in mark.why)


@pytest.mark.parametrize(("assignment", "mistake"), EVERY)
@pytest.mark.parametrize("seed", ["practice", *(pytest.param(f"hidden/{name}", marks=pytest.mark.slow) for name in ("ada", "7"))])
def test_a_mistake_earns_what_is_stated_and_is_told(assignment: Assignment, mistake: Mistake, seed: str) -> None:
    points, told = earned(assignment, mistake, seed)
    assert mistake.least <= points <= mistake.most
    assert mistake.told in told


@each
def test_no_mistake_of_the_list_keeps_more_than_three_fifths(assignment: Assignment) -> None:
    """Ten at least are known, and none is stated twice."""
    known = mistakes_of(assignment)
    assert len(known) >= 10
    assert len({one.name for one in known}) == len(known)
    assert all(0 <= one.least <= one.most <= 60 for one in known)


def test_the_best_ratios_first_are_no_knapsack() -> None:
    greedy = next(one for one in mistakes_of(ASSIGNMENTS[1]) if one.name == "the best ratios first")
    assert greedy.most <= 50


@each
def test_the_solution_earns_everything_for_every_student(assignment: Assignment) -> None:
    answers = answering(solution_of(assignment))
    for student in STUDENTS:
        found = marks(assignment, student, answers)
        assert (sum(mark.points for mark in found), [mark.why for mark in found if mark.why]) == (100, [])


@each
def test_public_values_and_answers_of_another_earn_a_tenth_at_most(assignment: Assignment) -> None:
    """Both are right answers to other questions: of the handout, and to the same case of another student."""
    solve = answering(solution_of(assignment))
    mine, other = (tasks_of(assignment, student) for student in STUDENTS)
    public: dict[str, Any] = {}
    theirs: dict[int, Any] = {}
    for task, copied in zip(mine, other, strict=True):
        public |= {task.cases[0].call.function: solve(task.cases[0].call)}
        theirs |= {id(case.call): solve(theirs_too.call) for case, theirs_too in zip(task.cases, copied.cases, strict=True)}
    answered = {repr(case.call): theirs[id(case.call)] for task in mine for case in task.cases}

    def from_the_handout(call: Call) -> Any:  # noqa: ANN401 - plain data
        return public[call.function]

    for answers in (from_the_handout, lambda call: answered[repr(call)]):
        assert sum(mark.points for mark in marks(assignment, STUDENTS[0], answers)) <= 10


@pytest.mark.parametrize(
    "assignment",
    [pytest.param(one, marks=[pytest.mark.slow] if one.name[:2] in {"02", "03", "04", "07"} else [], id=one.name) for one in PROGRAMS],
)
def test_a_list_without_its_last_entry_earns_nothing_by_luck(assignment: Assignment) -> None:
    solve = answering(solution_of(assignment))
    functions: set[str] = set()

    def cut(call: Call) -> Any:  # noqa: ANN401 - plain data
        value = solve(call)
        if not isinstance(value, list) or not value:
            return value
        functions.add(call.function)
        return value[:-1]

    found = marks(assignment, "practice", cut)
    asked = {task.cases[0].call.function: mark for task, mark in zip(tasks_of(assignment, "practice"), found, strict=False)}
    assert all(mark.points < mark.out_of for function, mark in asked.items() if function in functions)


@pytest.mark.slow
@each
@pytest.mark.parametrize("word", ["hush/1", "hush/2", "hush/3", "hush/4"])
def test_no_draw_lets_a_mistake_pass(assignment: Assignment, word: str) -> None:
    assert [one.name for one in mistakes_of(assignment) if earned(assignment, one, word)[0] > 60] == []


@each
@pytest.mark.parametrize("word", ["practice", *(pytest.param(f"some word/{number}", marks=pytest.mark.slow) for number in range(24))])
def test_every_mistake_in_a_figure_that_has_a_name_shows_in_a_hidden_case(assignment: Assignment, word: str) -> None:
    for task in tasks_of(assignment, word):
        judges = [getattr(case.judge, "keywords", {}) for case in task.cases if not case.public]
        named = [(slip.mistake, same(slip.figure, judge["right"])) for judge in judges for slip in judge.get("slips", ())]
        assert {name for name, _ in named} == {name for name, unseen in named if not unseen}


def test_a_task_is_right_nearly_right_by_one_mistake_or_wrong() -> None:
    """Two mistakes, or one without a name, leave nothing."""
    slips = (Likely("half", 50.0), Likely("twice", 200.0), Likely("ten times", 1000.0, share=0.0), Likely("no mistake", 100.0))
    assert figure(100.0 * (1.0 + 1e-10), 100.0, slips).share == 1.0
    assert figure(50.0, 100.0, slips) == nearly("half", "the figure is 0.5 times the right one")
    assert figure(99.9, 100.0, slips) == wrong("the figure is 0.999 times the right one")
    assert figure(1000.0, 100.0, slips) == wrong("the figure is 10 times the right one", "ten times")
    assert (NEARLY, WHOLE) == (0.4, 40)
    assert nearly("half").share == Verdict(0.4).share


@pytest.mark.parametrize(
    ("hidden", "public", "points"),
    [
        ((FULL, FULL), FULL, 10),
        ((FULL, FULL), wrong("far off"), 10),
        ((FULL, nearly("one")), FULL, 4),
        ((nearly("one", "a"), nearly("other", "b", "one")), FULL, 4),
        ((nearly("one"), nearly("other")), FULL, 0),
        ((nearly("one"), wrong("far off")), FULL, 0),
        ((wrong("far off", "one"), FULL), FULL, 0),
    ],
)
def test_hidden_cases_are_right_together_or_wrong_by_one_mistake(hidden: tuple[Verdict, ...], public: Verdict, points: int) -> None:
    cases = [Case(f"case {place}", Call("f", ()), lambda _, verdict=verdict: verdict) for place, verdict in enumerate(hidden)]
    task = Task("task", 10, (Case("given", Call("f", ()), lambda _: public, public=True), *cases))
    mark = mark_of(task, (Returned(1),) * len(task.cases))
    assert mark.points == points
    assert bool(mark.why) == any(verdict.share < 1.0 for verdict in (*hidden, public))
    assert public.share == 1.0 or mark.why == ("given (public, no points): far off",)


@each
def test_the_notes_list_the_same_mistakes(assignment: Assignment) -> None:
    notes = (SOLUTIONS / assignment.name / "notes.md").read_text(encoding="utf-8").partition("\n## Likely mistakes\n")[2]
    lines = [f"| {one.name} | {one.least} to {one.most} | {one.told or 'it depends on the case'} |" for one in mistakes_of(assignment)]
    assert [line for line in notes.splitlines() if " to " in line and line.endswith(" |") and line in lines] == lines


@pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda one: one.name)
def test_the_notes_say_how_a_written_page_is_marked(assignment: Assignment) -> None:
    """Five things, 0 to 2 marks each: ten in all, as the notes say."""
    notes = (SOLUTIONS / assignment.name / "notes.md").read_text(encoding="utf-8").partition("\n## Written part\n")[2].partition("\n## ")[0]
    rows = [line for line in notes.splitlines() if line.startswith("| ") and line.count("|") == 5 and not line.startswith("| |")]
    assert len(rows) == 5 and {"| claim ", "| evidence ", "| limits "} <= {row[: row.index("|", 1)] for row in rows}


@pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda one: one.name)
def test_the_notes_answer_each_question_of_the_handout(assignment: Assignment) -> None:
    handout = (HANDOUTS / assignment.name / "README.md").read_text(encoding="utf-8").partition("## Questions to think about")[2]
    answers = (
        (SOLUTIONS / assignment.name / "notes.md").read_text(encoding="utf-8").partition("## Answers")[2].partition("## Written part")[0]
    )
    asked, answered = (sum(line.startswith("- ") for line in text.splitlines()) for text in (handout, answers))
    assert asked == answered >= 3
