"""The proved strategies beside rules, a local search and the weak model, each in the same judge's eyes, and what others reached."""

import csv
from collections.abc import Iterator
from io import TextIOWrapper
from math import inf
from pathlib import Path
from statistics import median_low
from typing import NamedTuple

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import opened, why_unreadable
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.solvers.answer import Limits, Number, Watch
from crossopt.solvers.family import solve
from crossopt.solvers.sharding.family import FAMILY

BASELINES = {"greedy": "greedy", "local": "local search", "weak": "weak model"}
"""Engines, and what they are called."""
_SEEDED = ("local",)
_INSTANCE, _VALUE = "instance", "best_known"


class Row(NamedTuple):
    """What one of them comes to."""

    name: str
    value: Number | None
    bound: Number | None
    seconds: float | None
    note: str = ""


def compared(question: ShardingQuestion, seconds: float, seeds: int, watch: Watch) -> Iterator[Row]:
    """A row of each baseline, each for so many seconds at most; of seeds the one in the middle by value, the better of two."""
    for name in BASELINES:
        yield _middle([_row(question, name, Limits(seconds, seed=seed), watch) for seed in range(seeds if name in _SEEDED else 1)])


def _row(question: ShardingQuestion, engine: str, limits: Limits, watch: Watch) -> Row:
    result = solve(FAMILY, question, engine, limits, watch)
    if result.stopped == "interrupted":
        raise KeyboardInterrupt
    note = "" if result.value is not None else "no choice keeps the rules" if result.proved else "no choice found"
    return Row(BASELINES[engine], result.value, result.bound, result.seconds, note)


def _middle(runs: list[Row]) -> Row:
    values = [inf if run.value is None else run.value for run in runs]
    row = runs[values.index(median_low(values))]
    if len(runs) == 1:
        return row
    least, most = ("none" if value == inf else f"{value:,}" for value in (min(values), max(values)))
    return row._replace(note=f"{len(runs)} seeds: {least} to {most}")


def known_best(path: Path, name: str) -> Row | None:
    """What others reached on a problem, by a table with the columns instance and best_known; an InstanceError where it is none.

    An instance is named in full or by what follows the last hyphen of the problem's name.
    """
    try:
        with opened(path, "name a table in CSV") as packed, TextIOWrapper(packed, "utf-8", newline="") as file:
            table = csv.DictReader(file)
            missing = [column for column in (_INSTANCE, _VALUE) if column not in (table.fieldnames or ())]
            if missing:
                raise _refused(path, 1, f"the column {missing[0]} is missing (instance and best_known are needed)")
            for line, row in enumerate(table, 2):
                if row[_INSTANCE] in {name, name.rpartition("-")[2]}:
                    text = (row[_VALUE] or "").strip()
                    if not text.isdecimal():
                        raise _refused(path, line, f"{text[:40]!r} is no cost (give a whole number)")
                    return Row("best known", int(text), None, None)
    except (UnicodeDecodeError, csv.Error) as error:
        raise _refused(path, 1, f"this is no table in CSV: {error}") from error
    except OSError as error:
        raise _refused(path, 1, why_unreadable(error)) from error
    return None


def _refused(path: Path, line: int, message: str) -> InstanceError:
    return InstanceError(str(path), [Fault(line, 1, "", message)])
