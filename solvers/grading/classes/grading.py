"""All submissions of a class, some at a time, each in a process of its own; every grade is written down at once, so that a run that was
ended goes on where it was."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

from crossopt.solvers.answer import versions
from crossopt.solvers.grading.classes.handed_in import HandedIn, digest_of
from crossopt.solvers.grading.classes.one import grade_in
from crossopt.solvers.grading.grade import refused
from crossopt.solvers.grading.marks import Assignment, Grade, seed_of

_JUDGING, _MOST_TASKS = 120, 8
"""Seconds for what the grader computes, beside those of the submission in so many tasks."""


@dataclass(frozen=True, slots=True)
class Graded:
    """A submission and its grade."""

    handed: HandedIn
    grade: Grade


@dataclass(frozen=True, slots=True)
class Asking:
    """How submissions are graded: the word that cases are drawn from, whether walls stand, how many at a time."""

    word: str
    walls: bool
    jobs: int


def grade_class(handed: Sequence[HandedIn], asking: Asking, journal: Path, told: Callable[[int, int, Graded], None]) -> tuple[Graded, ...]:
    """Grades in the order of the submissions. `told` hears of each as it is there: how many there are, of how many, and it."""
    keys = [_key(one, asking) for one in handed]
    known = dict(_read(journal))
    found = {key: Graded(one, known[key]) for one, key in zip(handed, keys, strict=True) if key in known}
    lock = Lock()
    with journal.open("a", encoding="utf-8") as lines, ThreadPoolExecutor(asking.jobs) as pool:
        left = {pool.submit(grade_one, one, asking): (one, key) for one, key in zip(handed, keys, strict=True) if key not in found}
        try:
            for done in as_completed(left):
                one, key = left[done]
                found[key] = Graded(one, done.result())
                with lock:
                    lines.write(json.dumps({"key": key, "grade": asdict(found[key].grade)}) + "\n")
                    lines.flush()
                told(len(found), len(handed), found[key])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return tuple(found[key] for key in keys)


def grade_one(one: HandedIn, asking: Asking) -> Grade:
    """The grade of a submission; of one whose grader ended, or took too long, nothing but the reason."""
    seed = seed_of(asking.word, one.student)
    job = {"assignment": one.assignment.name, "path": str(one.path.absolute()), "seed": seed, "walls": asking.walls}
    seconds = _seconds(one.assignment)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "crossopt.solvers.grading.classes.one"],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return grade_in(json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return refused(one.assignment, f"grading took longer than {seconds} s")
    except (ValueError, KeyError, TypeError):
        last = done.stderr.strip().rpartition("\n")[2]
        return refused(one.assignment, f"the grader ended without a grade (exit code {done.returncode}{f', {last}' if last else ''})")


def _seconds(assignment: Assignment) -> int:
    """Those of its tasks and of its loading, and of judging them."""
    return assignment.seconds * _MOST_TASKS + _JUDGING


def _key(one: HandedIn, asking: Asking) -> str:
    """By which a grade is found again: whoever hands in something else, or is graded by another word or version, is graded anew."""
    word = hashlib.sha256(f"crossopt course/{asking.word}".encode()).hexdigest()[:16]
    return json.dumps([one.student, one.assignment.name, digest_of(one.path), word, asking.walls, versions()["crossopt"]])


def _read(journal: Path) -> Iterator[tuple[str, Grade]]:
    """What was written down, but for a line that was cut short."""
    for line in journal.read_text(encoding="utf-8").splitlines() if journal.is_file() else ():
        try:
            said = json.loads(line)
            yield said["key"], grade_in(said["grade"])
        except (ValueError, KeyError, TypeError):
            continue
