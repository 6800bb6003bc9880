"""Submissions that tests hand in."""

import importlib.util
from pathlib import Path
from types import ModuleType

from crossopt.solvers.grading.grade import SOLUTIONS, graded
from crossopt.solvers.grading.marks import Assignment, Call, Case, Grade, Task, figure


def written(folder: Path, program: str, name: str = "solution.py") -> Path:
    """A folder with a program in it."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(program, encoding="utf-8")
    return folder


def loaded(program: Path) -> ModuleType:
    """A program as a module."""
    described = importlib.util.spec_from_file_location(f"{program.parent.name}_{program.stem}", program)
    assert described is not None
    assert described.loader is not None
    found = importlib.util.module_from_spec(described)
    described.loader.exec_module(found)
    return found


def reference(assignment: Assignment) -> Path:
    return SOLUTIONS / assignment.name


def asking(*functions: str, seconds: int = 5) -> Assignment:
    """An assignment that asks functions without arguments for the figure 1, one task each."""
    tasks = tuple(Task(name, 10, (Case("the case", Call(name, ()), lambda value: figure(value, 1.0)),)) for name in functions)
    return Assignment("00-walls", "Walls", lambda _seed: tasks, seconds, total=0)


def grade_of(folder: Path, program: str, *functions: str, seconds: int = 5) -> Grade:
    """The grade of a program that is asked for these functions, behind walls."""
    return graded(asking(*functions, seconds=seconds), written(folder, program), "practice", walls=True)
