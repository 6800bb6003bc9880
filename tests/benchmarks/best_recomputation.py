"""What `recompute: best` is worth on published plans: beside none, selective and full, of what the stack of each run launches.

    python -m tests.benchmarks.best_recomputation [--most N] [--mixed]

Every other setting is as launched; in the second half of the columns the microbatch is open, too. Every answer is proved.

With --mixed, what two sets in one plan would be worth beside one: each is in some of the layers of a chunk, by times and bytes of the plans
with one set, between which both are linear.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import ceil, inf
from statistics import mean

from crossopt.crossflow.recomputation import sets_that_save
from crossopt.instances.errors import InstanceError
from tests.benchmarks.published_plans import Found, priced, solved
from tests.benchmarks.published_runs import Run, launched, model, narrowed, runs

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


Prices = dict[str, tuple[float, float]]
"""Seconds and share of the memory by mode."""


def _prices(run: Run, microbatch: int) -> Prices:
    """A plan with every set that its stack launches."""
    found: Prices = {}
    for mode in sets_that_save(model(run)):
        question = launched(run)
        try:
            price = priced(run, {**question, "choices": {**question["choices"], "recompute": mode, "microbatch": microbatch}})
        except (InstanceError, ValueError):
            continue
        found[mode] = price.seconds, price.memory
    return found


def _fastest(found: Prices, layers: int, mixed: bool) -> float:
    """The least time that fits, of one set, or of two in some layers each; `full` is in any number of them beside none."""
    best = min((seconds for seconds, memory in found.values() if memory <= 1.0), default=inf)
    for (name, one), (other, two) in combinations(found.items(), 2):
        if mixed or {name, other} == {"none", "full"}:
            for count in range(layers + 1):
                seconds, memory = (figure + (last - figure) * count / layers for figure, last in zip(one, two, strict=True))
                best = min(best, seconds) if memory <= 1.0 else best
    return best


def mixed_rows() -> Iterator[tuple[str, float, float]]:
    """What two sets save of a step, with the microbatch as launched, and open."""
    for run in runs():
        layers = ceil(model(run).stack / (run.plan["pipeline"] * run.plan.get("interleave", 1)))
        saved = list[float]()
        for sizes in ((run.plan["microbatch"],), (1, 2, 4, 8, 16)):
            found = [_prices(run, size) for size in sizes]
            single, both = (min(_fastest(prices, layers, mixed) for prices in found) for mixed in (False, True))
            saved.append(1.0 - both / single if single < inf else 0.0)
        if single < inf:  # else no set fits
            yield run.title, saved[0], saved[1]


def _print_mixed(most: int | None) -> None:
    print("| run | shorter | with the microbatch open |\n|--|--|--|")
    found = list[float]()
    for title, launched_, opened in islice(mixed_rows(), most):
        print(f"| {title} | {launched_:.2%} | {opened:.2%} |", flush=True)
        found.append(opened)
    several = sum(share > 0.001 for share in found)
    print(
        f"with the microbatch open: {mean(found):.2%} in the mean, {max(found):.1%} at most, {several} of {len(found)} by more than 0.1 %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=None, help="rows")
    parser.add_argument("--mixed", action="store_true", help="two sets in one plan")
    options, shares = parser.parse_args(), list[float]()
    if options.mixed:
        _print_mixed(options.most)
        return
    most = options.most
    print("| run | launched | usual | mode | best | mode | shorter | open: usual | mode | best | mode | shorter |\n|" + "--|" * 12)
    for count, row in enumerate(rows()):
        if most is not None and count == most:
            break
        print(row, flush=True)
        shares += [share for share in (gain(row.usual_open, row.best_open),) if share is not None]
    print(f"with the microbatch open: {mean(shares):.2%} in the mean, {max(shares):.1%} at most, over {len(shares)} runs")


if __name__ == "__main__":
    main()
