"""What a sweep of budgets could gain by starting each question at its neighbour's design: `python -m tests.benchmarks.reuse` prints it.

A design of a smaller budget keeps a larger one, and so may be the one that the search of the larger starts from. Each question is proved
three times: as `boxes` does it, from its smaller neighbour's design, and from its own optimum, which no neighbour can better. Seconds are
of this process, not of the clock, so that others on the machine count less.
"""

import sys
from math import inf
from pathlib import Path
from statistics import median
from time import process_time

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.kinds import question_path
from crossopt.solvers.answer import unwatched
from crossopt.solvers.codesign.answer import Candidate
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import search

SWEPT = (
    ("quickstart", "budget.power", ("250 W", "300 W", "350 W", "400 W")),
    ("gpt3-175b-pathfinding-7nm", "budget.power", ("300 W", "350 W", "400 W", "450 W")),
    ("gpt3-175b-pathfinding-large", "budget.power", ("300 W", "400 W", "500 W", "600 W")),
    ("gpt3-175b-pathfinding-large", "budget.die_area", ("500 mm^2", "600 mm^2", "700 mm^2", "815 mm^2")),
)
_TIMES = 3


def main() -> None:
    """Print the seconds of each question, proved from three starts."""
    sys.stdout.write(f"{'question':<52}{'alone':>9}{'neighbour':>11}{'own':>9}\n")
    sums = [0.0, 0.0, 0.0]
    for name, key, values in SWEPT:
        before: Candidate | None = None
        for value in values:
            instance = read_instance(question_path(Path(name)), (f"{key}={value}",))
            first, found = _timed(instance, None)
            starts = (None, before, found)
            seconds = [first, *(_timed(instance, start)[0] if start else first for start in starts[1:])]
            sums = [one + more for one, more in zip(sums, seconds, strict=True)]
            sys.stdout.write(f"{f'{name}, {value}':<52}{seconds[0]:>9.3f}{seconds[1]:>11.3f}{seconds[2]:>9.3f}\n")
            before = found
    sys.stdout.write(f"{'all':<52}{sums[0]:>9.3f}{sums[1]:>11.3f}{sums[2]:>9.3f}\n")


def _timed(instance: Instance, known: Candidate | None) -> tuple[float, Candidate | None]:
    """Seconds to a proof from this start, the median of a few, and the optimum."""
    seconds, best = list[float](), None
    for _ in range(_TIMES):
        began = process_time()
        best = search(instance, unwatched, Spend(inf, 0.0), known).best
        seconds.append(process_time() - began)
    return median(seconds), best


if __name__ == "__main__":
    main()
