"""One submission of a class in a process of its own: `python -m crossopt.solvers.grading.classes.one`, a job on standard input, its grade
on standard output. Whatever happens to this process costs one grade."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from crossopt.solvers.grading.grade import graded
from crossopt.solvers.grading.marks import Grade, Mark
from crossopt.solvers.grading.table import assignment_named


def main() -> None:
    job = json.loads(sys.stdin.read())
    asked = assignment_named(job["assignment"])
    if asked is None:
        raise ValueError(f"there is no assignment {job['assignment']!r}")
    json.dump(asdict(graded(asked, Path(job["path"]), job["seed"], job["walls"])), sys.stdout)


def grade_in(data: dict[str, Any]) -> Grade:
    """A grade as it was written."""
    marks = tuple(Mark(one["name"], one["points"], one["out_of"], tuple(one["why"])) for one in data["marks"])
    return Grade(data["assignment"], marks, data["refused"], data["note"], data["above"], data["file"], data["fault"], data["hidden"])


if __name__ == "__main__":
    main()
