"""Reference solutions with one mistake each, as `solutions/*/mistakes.yaml` names them, and the points that they earn."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from crossopt.solvers.grading.grade import SOLUTIONS, mark_of, together
from crossopt.solvers.grading.marks import Assignment, Mark, Task
from crossopt.solvers.grading.running import Call, Returned

Answering = Callable[[Call], Any]


@dataclass(frozen=True, slots=True)
class Mistake:
    """What becomes of a passage of the solution, the points that are left, and a part of what is told."""

    name: str
    passage: str
    change: str
    least: float
    most: float
    told: str


def mistakes_of(assignment: Assignment) -> list[Mistake]:
    listed = yaml.safe_load((SOLUTIONS / assignment.name / "mistakes.yaml").read_text(encoding="utf-8"))
    return [Mistake(one["name"], one.get("passage", ""), one["change"], *one["points"], one.get("told", "")) for one in listed]


def solution_of(assignment: Assignment) -> str:
    return (SOLUTIONS / assignment.name / "solution.py").read_text(encoding="utf-8")


def with_mistake(assignment: Assignment, mistake: Mistake) -> str:
    """The program; the passage must be there."""
    text = solution_of(assignment)
    assert mistake.passage in text, mistake
    return text.replace(mistake.passage, mistake.change) if mistake.passage else f"{text}\n{mistake.change}"


def answering(program: str) -> Answering:
    """What the functions of a program return."""
    names: dict[str, Any] = {"__name__": "solution"}
    exec(compile(program, "solution.py", "exec"), names)  # noqa: S102 - the tests' own programs
    return lambda call: names[call.function](*json.loads(json.dumps(call.arguments)))


@cache  # a program is called with copies, so that nobody changes a task
def tasks_of(assignment: Assignment, seed: str) -> tuple[Task, ...]:
    return tuple(assignment.tasks(seed))


def marks(assignment: Assignment, seed: str, answers: Answering) -> tuple[Mark, ...]:
    """As the grader gives them, without a process for each task."""
    return together(
        tuple(mark_of(task, tuple(_returned(answers, case.call) for case in task.cases)) for task in tasks_of(assignment, seed)),
        assignment.total,
    )


def _returned(answers: Answering, call: Call) -> Returned:
    try:
        return Returned(json.loads(json.dumps(answers(call))))
    except Exception as error:  # noqa: BLE001 - a wrong program may raise whatever it likes
        return Returned(failure=str(error) or type(error).__name__)
