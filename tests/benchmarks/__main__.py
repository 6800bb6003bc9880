"""Speed and memory as a table: `make bench`. Figures are of this machine; compare them with each other, not with other machines.

Everything runs on one core. Each figure is the median of several runs in a process of its own where memory is measured.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.benchmarks.cases import CASES

RUNS, MANY_RUNS = 3, 10
Row = tuple[str, str, str]


def main() -> None:
    """Print the table and write it as JSON beside it if a path is given."""
    rows = [*start_up(), *(measured(name, case) for name, case in CASES.items())]
    width = max(len(row[0]) for row in rows)
    for name, value, goal in rows:
        print(f"{name:<{width}}  {value:>24}  {goal}")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def measured(name: str, case: Callable[[], tuple[float, str, str]]) -> Row:
    """The median figure of a case; its unit and its goal."""
    results = [case() for _ in range(RUNS)]
    unit, goal = results[0][1], results[0][2]
    return name, f"{median(result[0] for result in results):,.3g} {unit}", goal


def start_up() -> list[Row]:
    """Seconds of whole commands in fresh processes; of those that solve nothing, CPU seconds, the least of many runs."""
    light = {
        "crossopt --help, CPU": (["--help"], "goal < 0.1 s"),
        "crossopt validate instances/tiny.yaml, CPU": (["validate", "instances/tiny.yaml"], "goal < 0.3 s"),
    }
    commands = {
        "crossopt solve instances/small.yaml": (["solve", "instances/small.yaml"], "goal < 1 s"),
        "crossopt solve instances/quickstart.yaml": (["solve", "instances/quickstart.yaml"], "goal < 10 s"),
    }
    return [
        *((name, f"{min(_processor_seconds(words) for _ in range(MANY_RUNS)):.3f} s", goal) for name, (words, goal) in light.items()),
        *((name, f"{median(_seconds(words) for _ in range(RUNS)):.3f} s", goal) for name, (words, goal) in commands.items()),
    ]


def _seconds(words: list[str]) -> float:
    start = perf_counter()
    subprocess.run([sys.executable, "-m", "crossopt.reports.cli", *words], check=True, capture_output=True)
    return perf_counter() - start


def _processor_seconds(words: list[str]) -> float:
    """User and system time of a command, whose threads count too."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _seconds(words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    main()
