"""The command line of the course: `grade ASSIGNMENT SUBMISSION`, `course list`, `course release TARGET` and `course question`."""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from crossopt.instances.files.saved import naming, write_whole
from crossopt.reports.commands.console import check_target, usage
from crossopt.reports.texts.course import FORMATS
from crossopt.solvers.grading.assignments.expert import question
from crossopt.solvers.grading.grade import graded
from crossopt.solvers.grading.handouts import HANDOUTS
from crossopt.solvers.grading.marks import Assignment, seed_of
from crossopt.solvers.grading.table import ASSIGNMENTS, LAB, SOLUTIONS, assignment_named
from crossopt.solvers.grading.walls.walls import exposed, missing

_GRADED, _REFUSED = 0, 3
_SEED = "CROSSOPT_COURSE_SEED"
_PRACTICE = "practice"


def grade(options: argparse.Namespace) -> int:
    """Grade one submission, print and write; 3 where it could not be looked at."""
    asked = _assignment(options.assignment)
    submission = options.submission
    if not submission.exists():
        usage(f"{submission}: there is no such submission (name a folder or a .zip)")
    check_target(options.out)
    walls = asked.judge is None and not options.unconfined
    if walls and (reason := missing()):
        usage(f"{reason}, so that a submission could harm it (grade on Linux 5.13 or newer, or in a machine to throw away: --unconfined)")
    if walls and exposed(HANDOUTS):
        usage("the answers lie where a submission can read them (install crossopt into a virtual environment, as README says)")
    found = graded(asked, submission, _seed(options), walls)
    text = FORMATS[options.format](found)
    try:
        if options.out and str(options.out) != "-":
            write_whole(options.out, text)
    finally:
        sys.stdout.write(text)
    return _REFUSED if found.refused else _GRADED


def course(options: argparse.Namespace) -> int:
    """List the assignments, or write what students get."""
    if options.action != "release" and options.target is not None:
        usage(f"course {options.action} {options.target}: this takes no folder (leave {options.target} out)")
    if options.action == "list":
        width = max(len(one.name) for one in ASSIGNMENTS)
        sys.stdout.writelines(f"{one.name:<{width}}  {one.title}\n" for one in ASSIGNMENTS)
        sys.stdout.write(f"{LAB:<{width}}  a lab, of which nothing is graded: see its README in what `course release` writes\n")
        return _GRADED
    if options.action == "question":
        sys.stdout.write(question(_seed(options)))
        return _GRADED
    if options.target is None:
        usage("course release: name a folder to write the handouts to, such as hand-out")
    target = options.target
    if target.exists():
        usage(f"{target}: this is there already (name a new folder)")
    if not target.absolute().parent.is_dir():
        usage(f"{target}: there is no folder {target.parent} (make it first)")
    _release(target)
    sys.stdout.write(f"{target}: {len(ASSIGNMENTS)} assignments, without solutions\n")
    return _GRADED


def _seed(options: argparse.Namespace) -> str:
    if options.seed is not None and not options.seed.strip():
        usage("--seed: this is empty (name a word, or leave --seed out)")
    if options.student is not None and not options.student.strip():
        usage("--student: this is empty (name a student, or leave --student out)")
    return seed_of(options.seed or os.environ.get(_SEED) or _PRACTICE, options.student)


def _release(target: Path) -> None:
    """Write the whole folder or nothing."""
    with naming(target), tempfile.TemporaryDirectory(prefix=".crossopt-", dir=target.absolute().parent) as place:
        tree = Path(place) / "tree"
        shutil.copytree(HANDOUTS, tree, ignore=shutil.ignore_patterns(SOLUTIONS.name, "__pycache__", ".pytest_cache"))
        tree.rename(target)


def _assignment(name: str) -> Assignment:
    found = assignment_named(name)
    if found is None:
        usage(f"there is no assignment {name!r} (one of {', '.join(one.name for one in ASSIGNMENTS)})")
    return found
