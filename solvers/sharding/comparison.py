"""The proved strategies beside rules, a local search and the weak model, each in the same judge's eyes, and what others reached."""

import csv
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from instances.document import Fault, InstanceError
from instances.sharding.question import ShardingQuestion
from solvers.certify import Limits
from solvers.watching import Watch

RIVALS = ("greedy", "local", "weak")
_NAMES = {"greedy": "greedy", "local": "local search", "weak": "weak model"}
_INSTANCE, _VALUE = "instance", "best_known"


class Row(NamedTuple):
    """What one of them comes to."""

    name: str
    value: int | None
    bound: int | None
    seconds: float | None
    note: str = ""


def compared(question: ShardingQuestion, seconds: float, seed: int, watch: Watch) -> Iterator[Row]:
    """A row of each rival, each for so many seconds at most."""
    from solvers.sharding.engines import answered  # noqa: PLC0415 - reports import the rows alone

    for name in RIVALS:
        began = monotonic()
        result = answered(question, name, Limits(seconds, seed), watch)
        note = "no choice that keeps the rules" if result.value is None else ""
        yield Row(_NAMES[name], result.value, result.bound, monotonic() - began, note)


def known_best(path: Path, name: str) -> Row | None:
    """What others reached on a problem, by a table with the columns instance and best_known; an InstanceError where it is none.

    An instance is named in full or by what follows the last hyphen of the problem's name.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
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
    return None


def _refused(path: Path, line: int, message: str) -> InstanceError:
    return InstanceError(str(path), [Fault(line, 1, "", message)])
