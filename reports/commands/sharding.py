"""The command `compare` for problems of strategies: the answer beside rules, local search, the weak model and best known values."""

import csv
import sys
from argparse import Namespace
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import chain
from math import inf
from pathlib import Path
from statistics import median_low
from typing import NamedTuple

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import opened, why_unreadable
from crossopt.instances.kinds import KINDS
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.reports.commands.console import Ending, code_of, question_of, refuse_options, seconds_of, usage
from crossopt.reports.commands.progress import collected, keep_table, progress_on, show_table
from crossopt.reports.render.terminal import Compared, compared_text
from crossopt.reports.sheets.sharding import sheet
from crossopt.reports.sheets.sheet import Bar
from crossopt.solvers.answer import Limits, Number, Watch, to_text
from crossopt.solvers.family import solve as solve_question
from crossopt.solvers.sharding.family import FAMILY

BASELINES = {"greedy": "greedy", "local": "local search", "weak": "weak model"}
"""Labels of the engines that are compared."""
_SEEDED = ("local",)
_INSTANCE, _VALUE = "instance", "best_known"


class Row(NamedTuple):
    """A row of the comparison: an engine, or the best known value."""

    name: str
    value: Number | None
    bound: Number | None
    seconds: float | None
    note: str = ""


def compared(question: ShardingQuestion, seconds: float, seeds: int, watch: Watch) -> Iterator[Row]:
    """A row for each baseline, each within the time limit in seconds; of several seeds the median by value (the lower one of two)."""
    for name in BASELINES:
        yield _middle([_row(question, name, Limits(seconds, seed=seed), watch) for seed in range(seeds if name in _SEEDED else 1)])


def _row(question: ShardingQuestion, engine: str, limits: Limits, watch: Watch) -> Row:
    result = solve_question(FAMILY, question, engine, limits, watch)
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
    """The best known value of a problem, from a table with the columns instance and best_known; an InstanceError for a wrong table.

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


_PROOF, _SEARCH = 60.0, 10.0
"""Seconds for the proof, if no limit is given, and for each baseline."""


def compare(options: Namespace) -> Ending:
    """The answer beside rules, local search, the weak model, and best known values."""
    seconds = seconds_of(options.time_limit) if options.time_limit else _PROOF
    refuse_options(options, (*KINDS["sharding"].options, "workers"), "a problem of strategies")
    if options.split:
        usage("--split: this does not apply to a problem of strategies (leave it out)")
    question: ShardingQuestion = question_of(options, KINDS["sharding"].options)
    known = known_best(options.known, question.name) if options.known else None
    with progress_on(sys.stderr, "cost") as watch:
        result = solve_question(FAMILY, question, "auto", Limits(seconds), watch)
        unit = f" in {result.question['unit']}" if result.question["unit"] else ""

        def table(listed: list[Row]) -> str:
            rows = [
                Compared(Bar(rule.name, rule.value, rule.note), rule.bound, rule.seconds) for rule in (*listed, *([known] if known else []))
            ]
            return compared_text(sheet(question, result), f"cost{unit}", rows)

        own = Row(f"crossopt ({result.engine})", result.value, result.bound, result.seconds, "; ".join(result.reasons[:1]))
        baselines = () if result.stopped == "interrupted" else compared(question, min(seconds, _SEARCH), options.seeds, watch)
        listed, complete = collected(chain([own], baselines), lambda some: keep_table(table(some)))
    complete = complete and result.stopped != "interrupted"
    show_table(table(listed), code_of(result.status, unproved=False), complete, to_text(result) if options.out else None, options.out)
    return Ending(result.status, result.proved, complete)
