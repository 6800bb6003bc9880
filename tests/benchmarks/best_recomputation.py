"""What `recompute: best` is worth on published plans: beside none, selective and full, of what the stack of each run launches.

    python -m tests.benchmarks.best_recomputation [--most N]

Every other setting is as launched; in the second half of the columns the microbatch is open, too. Every answer is proved.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean

from tests.benchmarks.published_plans import Found, solved
from tests.benchmarks.published_runs import Run, narrowed, runs

USUAL = ["none", "selective", "full"]


@dataclass(frozen=True)
class Row:
    """A run with the fastest step by the usual modes and by every set, with the microbatch as launched and open."""

    run: Run
    usual: Found
    best: Found
    usual_open: Found
    best_open: Found

    def __str__(self) -> str:
        cells = [self.run.title, str(self.run.plan["recompute"])]
        for usual, best in ((self.usual, self.best), (self.usual_open, self.best_open)):
            cells += [_seconds(usual), _mode(usual), _seconds(best), _mode(best), _gain(usual, best)]
        return f"| {' | '.join(cells)} |"


def rows() -> Iterator[Row]:
    """A row for each run."""
    for run in runs():
        found = [_found(run, names, modes) for names in (("recompute",), ("recompute", "microbatch")) for modes in (USUAL, "best")]
        yield Row(run, *found)


def gain(usual: Found, best: Found) -> float | None:
    """By how much the step is shorter; None where one of them has no plan."""
    return None if usual.seconds is None or best.seconds is None else 1.0 - best.seconds / usual.seconds


def _found(run: Run, names: tuple[str, ...], modes: list[str] | str) -> Found:
    question = narrowed(run, names)
    return solved(run, {**question, "choices": {**question["choices"], "recompute": modes}})


def _seconds(found: Found) -> str:
    return "does not fit" if found.seconds is None else f"{found.seconds:.4g} s"


def _mode(found: Found) -> str:
    return "" if found.plan is None else str(found.plan["recompute"])


def _gain(usual: Found, best: Found) -> str:
    share = gain(usual, best)
    return ("fits" if best.plan else "") if share is None else f"{share:.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=None, help="rows")
    most, shares = parser.parse_args().most, list[float]()
    print("| run | launched | usual | mode | best | mode | shorter | open: usual | mode | best | mode | shorter |\n|" + "--|" * 12)
    for count, row in enumerate(rows()):
        if most is not None and count == most:
            break
        print(row, flush=True)
        shares += [share for share in (gain(row.usual_open, row.best_open),) if share is not None]
    print(f"with the microbatch open: {mean(shares):.2%} in the mean, {max(shares):.1%} at most, over {len(shares)} runs")


if __name__ == "__main__":
    main()
