"""Saved comparisons as tidy rows: CSV with one run a row, a column for each axis, and every digit, as data frames take it."""

import csv
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Final

from crossopt.instances.files.dataclass_json import to_plain
from crossopt.reports.render.paper import harmless
from crossopt.solvers.study.figures import NEVER, above, bound_of, near_after
from crossopt.solvers.study.records import Run, Study

Value = str | float | None
_UNITS: Final = {"_area": "m^2", "_power": "W"}
"""Of settings of chips, by how their names end."""

_FIRST: Final = ("study", "question", "subject")
_REST: Final = (
    *("engine", "answered_by", "seed", "objective", "unit", "status", "stopped", "value", "bound", "best_bound", "above_best_bound"),
    *("proved", "proved_by", "seconds", "seconds_to_1_percent", "note"),
)


def runs_csv(studies: Sequence[Study]) -> str:
    """All runs of these comparisons below each other; an axis that one of them lacks stays empty there, as does what nobody found."""
    axes = dict.fromkeys(axis.name for study in studies for axis in study.plan.axes)
    settings = sorted(dict.fromkeys(name for study in studies for run in study.runs for name in _design(run)), key=_chips_first)
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*_FIRST, *(_column(axis) for axis in axes), *_REST, *map(_with_unit, settings)])
    for study in studies:
        writer.writerows([_written(cell) for cell in row] for row in _rows(study, tuple(axes), settings))
    return out.getvalue()


def _column(axis: str) -> str:
    return f"axis {axis}" if axis in {*_FIRST, *_REST} else harmless(axis)


def _rows(study: Study, axes: Sequence[str], settings: Sequence[str]) -> Iterator[tuple[Value, ...]]:
    names = [axis.name for axis in study.plan.axes]
    for run in study.runs:
        question, bound = study.questions[run.question], bound_of(study, run.question)
        at = dict(zip(names, question.at, strict=False))
        share = None if bound is None or run.value is None else above(run, bound)
        after = None if bound is None else near_after(run, bound)
        yield (
            *(study.plan.title, question.name, question.subject, *(at.get(axis) for axis in axes)),
            *(run.engine, run.answered_by, str(run.seed), question.objective, question.unit, run.status, run.stopped),
            *(run.value, run.bound, bound, share, "yes" if run.proved else "no", run.proved_by, run.seconds, after, run.note),
            *map(_design(run).get, settings),
        )


def _design(run: Run) -> dict[str, Value]:
    """Every setting of the design by its name: `chip.compute_area`, `plan.tensor`."""
    if run.design is None:
        return {}
    parts = (("chip", to_plain(run.design.hardware)), ("plan", to_plain(run.design.plan)))
    return {f"{part}.{name}": _setting(value) for part, found in parts for name, value in found.items()}


def _setting(value: object) -> Value:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str | float | int | None) else str(value)


def _chips_first(name: str) -> int:
    return name.startswith("plan.")


def _with_unit(name: str) -> str:
    """The heads of figures with the unit that they are in."""
    unit = next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), "")
    return f"{name} in {unit}" if unit else name


def _written(cell: Value) -> str:
    if cell is None or cell == NEVER:
        return ""
    return harmless(cell) if isinstance(cell, str) else repr(cell)
