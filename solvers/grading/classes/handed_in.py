"""Who handed in what: FOLDER/STUDENT/ASSIGNMENT as nbgrader lays out `submitted`, or FOLDER/STUDENT for one assignment, and a roster.

A submission is a folder or a .zip. The roster is a CSV file (by commas, semicolons or tabs) whose first column, or the one called `student`
or `id`, names the folders, whatever the case and coding of their letters; it may lie in the folder as `roster.csv`. Layout: nbgrader's
documentation, "The philosophy and the approach" (read in November 2026).
"""

import csv
import hashlib
import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from crossopt.instances.files.careful import opened, why_unreadable
from crossopt.solvers.grading.marks import Assignment, same_name
from crossopt.solvers.grading.table import assignment_named

ROSTER = "roster.csv"
_COLUMNS = ("student", "id", "sid")
_DELIMITERS = ",;\t"
"""Between columns; of the first line the most frequent one."""
_MOST_BYTES, _MOST_FILES = 8 << 20, 500


class ClassError(ValueError):
    """A folder or a roster that is none; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class HandedIn:
    """One submission."""

    student: str
    assignment: Assignment
    path: Path


@dataclass(frozen=True, slots=True)
class Class:
    """Students in the order of the roster, else by name, what they handed in, and what of the folder is of nobody or nothing."""

    students: tuple[str, ...]
    handed: tuple[HandedIn, ...]
    strangers: tuple[str, ...]


def find_class(folder: Path, roster: Path | None, only: Assignment | None) -> Class:
    """Look through a folder."""
    entries = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".") and path.name != ROSTER]
    by_name = {path.stem if path.suffix == ".zip" else path.name: path for path in entries if path.is_dir() or path.suffix == ".zip"}
    strangers = [path.name for path in entries if path not in by_name.values()]
    named = read_roster(roster or folder / ROSTER) if roster or (folder / ROSTER).is_file() else None
    handed = [one for student, path in by_name.items() for one in _of(student, path, only)]
    students = tuple(by_name) if named is None else named
    known = {same_name(student): student for student in students}
    strangers += [f"{student}: not on the roster" for student in by_name if same_name(student) not in known]
    handed = [replace(one, student=known[same_name(one.student)]) for one in handed if same_name(one.student) in known]
    if twice := [name for name, count in Counter(map(same_name, by_name)).items() if count > 1]:
        raise ClassError(f"{folder}: {', '.join(twice)} is there twice, in other letters (one folder or .zip for each student)")
    if not handed:
        raise ClassError(
            f"{folder}: nothing is handed in here (FOLDER/STUDENT/ASSIGNMENT is meant, such as {folder.name}/ada/02-knapsack/solution.py; "
            "with --assignment 2 also FOLDER/STUDENT)"
        )
    bare = {known[same] for student in by_name if (same := same_name(student)) in known} - {one.student for one in handed}
    return Class(students, tuple(handed), (*strangers, *(f"{student}: no folder of an assignment" for student in sorted(bare))))


def _of(student: str, path: Path, only: Assignment | None) -> list[HandedIn]:
    """Submissions of a student by the names of their folders; all of it where one assignment is asked for and none is called so."""
    found: dict[str, HandedIn] = {}
    others = False
    for part in sorted(path.iterdir()) if path.is_dir() else ():
        name = part.stem if part.suffix == ".zip" else part.name
        assignment = assignment_named(name) if part.is_dir() or part.suffix == ".zip" else None
        others = others or assignment is not None
        if assignment and only in (None, assignment):
            found.setdefault(assignment.name, HandedIn(student, assignment, part))
    if only and not others and (path.suffix == ".zip" or any(path.iterdir())):
        return [HandedIn(student, only, path)]
    return list(found.values())


def read_roster(path: Path) -> tuple[str, ...]:
    """The students of a roster, each once."""
    try:
        with opened(path, "name a CSV file") as file:
            lines = file.read().decode("utf-8-sig").splitlines()
        rows = list(csv.reader(lines, delimiter=max(_DELIMITERS, key=lines[0].count) if lines else ","))
    except OSError as error:
        raise ClassError(f"{path}: {why_unreadable(error)}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ClassError(f"{path}: this roster cannot be read: {error} (a CSV file with a column `student` is meant)") from error
    if len(rows) < 2:
        raise ClassError(f"{path}: this roster names nobody (a line of names of columns, then a line for each student)")
    heads = [head.strip().casefold() for head in rows[0]]
    column = next((heads.index(name) for name in _COLUMNS if name in heads), 0)
    names = [row[column].strip() for row in rows[1:] if len(row) > column and row[column].strip()]
    if strange := [name for name in names if Path(name).name != name or not name.isprintable() or name.startswith(".")]:
        raise ClassError(f"{path}: {strange[0]!r} can be no name of a folder (letters, digits, blanks, - and _ can)")
    counts = Counter(map(same_name, names))
    if twice := sorted({name for name in names if counts[same_name(name)] > 1}):
        raise ClassError(f"{path}: {', '.join(twice)} is there twice")
    return tuple(names)


def digest_of(path: Path) -> str:
    """What tells a submission from one that was changed."""
    seen = hashlib.sha256()
    for number, file in enumerate(_files(path)):
        size = file.lstat().st_size
        seen.update(f"{file.relative_to(path.parent).as_posix()}\0{size}\0".encode(errors="surrogateescape"))
        if number < _MOST_FILES and size <= _MOST_BYTES and not file.is_symlink():
            seen.update(file.read_bytes())
    return seen.hexdigest()[:32]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = [Path(here) / name for here, _, names in os.walk(path) for name in names]
    return sorted(file for file in found if file.is_file() or file.is_symlink())
