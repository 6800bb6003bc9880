"""Sweeps and comparisons as tidy tables: one row a run, with every axis, value, bound and setting, and every digit, as data frames take it.

The bytes for a sweep do not depend on workers or their order.
"""

import csv
import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from math import inf
from pathlib import Path
from typing import Any, Final

from crossopt.instances.files.dataclass_json import to_plain
from crossopt.reports.render.paper import harmless
from crossopt.reports.sheets.amounts import with_unit
from crossopt.solvers.study.figures import above, bound_of, near_after
from crossopt.solvers.study.records import Study
from crossopt.solvers.sweeps.listed import Listed, Point, Row
from crossopt.solvers.sweeps.store import all_kept, failure_of, result_of
from crossopt.solvers.sweeps.worker import REFUSED

Value = str | float | int | None
_FIRST: Final = ("question", "subject")
_REST: Final = (
    *("kind", "engine", "seed", "time_limit", "status", "stopped", "value", "unit", "bound", "gap", "proved", "proved_by", "answered_by"),
    "note",
)
_LAST: Final = ("share_of_peak", "versions")
_EVALUATED: Final = ("step_time", "energy", "average_power", "power", "die_area", "cost", "memory")
"""What the full model says of a design, under the names that the formulas of studies have for it, in SI units."""
_LONGEST: Final = 300
"""Signs of an answer's list that stands in a cell."""


@dataclass(frozen=True, slots=True)
class Cells:
    """The columns by their names, and what each row holds."""

    heads: tuple[str, ...]
    rows: tuple[Mapping[str, Value], ...]
    faults: tuple[str, ...] = ()
    """Files that were not used, and why."""


def cells_of(folder: Path, listed: Listed, seconds: bool = False) -> Cells:
    """The whole table."""
    saved, known, faults = all_kept(folder), dict[str, dict[str, Value]](), dict[str, None]()
    rows, answers = list[dict[str, Value]](), dict[str, None]()
    axes = axis_columns(listed)
    for row in listed.rows:
        point = listed.points[row.question]
        if row.key not in known:
            found = result_of(saved.get(row.key, ()), row, point)
            faults |= dict.fromkeys(found.faults)
            known[row.key] = _missing(folder, row) if found.data is None else _of_result(found.data, point.kind, seconds)
        cells = known[row.key]
        answers |= dict.fromkeys(name for name in cells if name.partition(".")[0] in _ANSWERS and "." in name)
        rows.append({**_of_point(row, point, axes), **cells})
    last = (*_LAST, *(("seconds",) if seconds else ()))
    return Cells((*_FIRST, *axes, *_REST, "devices", "plan", *sorted(answers, key=_by_kind), *last), tuple(rows), tuple(faults))


_ANSWERS: Final = ("chip", "plan", "design", "answer")
"""Of columns that not every row has."""


def _by_kind(name: str) -> int:
    """Chips before plans, and these before what both cost; each in the order of results."""
    return _ANSWERS.index(name.partition(".")[0])


def axis_columns(listed: Listed) -> list[str]:
    """The columns of the axes."""
    return [_column(axis.name, {*_FIRST, *_REST, *_LAST, "devices", "plan", "seconds"}) for axis in listed.axes]


def _column(axis: str, taken: Container[str]) -> str:
    return f"axis {axis}" if axis in taken else axis


def _of_point(row: Row, point: Point, axes: list[str]) -> dict[str, Value]:
    at = dict(zip(axes, point.at, strict=False))
    run: dict[str, Value] = {"kind": point.kind, "engine": row.engine, "seed": row.seed, "time_limit": row.seconds}
    return {"question": point.name, "subject": point.subject, **at, **run}


def _missing(folder: Path, row: Row) -> dict[str, Value]:
    failure = failure_of(folder, row.key)
    if failure is None:
        return {"status": "NOT ASKED"}
    return {"status": "REFUSED" if failure.code == REFUSED else "FAILED", "note": failure.reason}


def _of_result(data: dict[str, Any], kind: str, seconds: bool) -> dict[str, Value]:
    proof = data["proof"] or {}
    cells: dict[str, Value] = {
        **{name: data[name] for name in ("status", "stopped", "value", "bound", "gap")},
        "unit": data["question"].get("unit", ""),
        "objective": data["question"].get("objective", ""),  # names axes of pictures; no column
        "proved": "yes" if data["proved"] else "no",
        "proved_by": proof.get("by", ""),
        "answered_by": data["engine"],
        "note": "; ".join([*data["reasons"], *data["notes"]]),
        "versions": " ".join(f"{name} {version}" for name, version in data["versions"].items()),
    }
    answer = dict(_of_designs(data) if kind == "codesign" else _of_answer(data["answer"])) if data["answer"] else {}
    return {**cells, **answer, **({"seconds": data["seconds"]} if seconds else {})}


def _of_designs(data: dict[str, Any]) -> Iterator[tuple[str, Value]]:
    """The chip, and the plan setting by setting where there is one workload."""
    designs = data["answer"]["designs"]
    yield "devices", data["answer"]["devices"]
    yield "plan", " | ".join(design["plan_label"] for design in designs)
    yield from ((f"chip.{name}", _cell(value)) for design in designs[:1] for name, value in design["hardware"].items())
    if len(designs) == 1:
        yield from ((f"plan.{name}", _cell(value)) for name, value in designs[0]["plan"].items())
        evaluation = data["details"]["shares"][0]["evaluation"]
        figures = {**evaluation, "memory": sum(evaluation["memory"].values())}
        yield from ((f"design.{name}", figures[name]) for name in _EVALUATED)
        yield "share_of_peak", figures["utilisation"]


def _of_answer(answer: dict[str, Any]) -> Iterator[tuple[str, Value]]:
    """Of other kinds what finds room."""
    for name, value in answer.items():
        cell = _cell(value)
        if not isinstance(cell, str) or len(cell) <= _LONGEST:
            yield f"answer.{name}", cell


def _cell(value: object) -> Value:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str | float | int | None) else json.dumps(value)


# --- of comparisons ----------------------------------------------------------------------------------------------------------------------

_OF_STUDIES: Final = ("study", *_FIRST)
_OF_RUNS: Final = (
    *("engine", "answered_by", "seed", "objective", "unit", "status", "stopped", "value", "bound", "best_bound", "above_best_bound"),
    *("proved", "proved_by", "seconds", "seconds_to_1_percent", "note"),
)
_UNITS: Final = {"_area": "m^2", "_power": "W", ".power": "W", ".step_time": "s", ".energy": "J", ".cost": "USD", ".memory": "bytes"}
"""Of settings of chips and of figures of designs, by how their names end."""


def runs_csv(studies: Sequence[Study]) -> str:
    """All runs of these comparisons below each other. An axis that one of them lacks and results that were not found stay empty."""
    axes = dict.fromkeys(_column(axis.name, {*_OF_STUDIES, *_OF_RUNS}) for study in studies for axis in study.plan.axes)
    rows = tuple(row for study in studies for row in _of_study(study))
    settings = dict.fromkeys(name for row in rows for name in row if name.startswith(("chip.", "plan.")))
    return csv_of(Cells((*_OF_STUDIES, *axes, *_OF_RUNS, *sorted(settings, key=_by_kind)), rows))


def _of_study(study: Study) -> Iterator[dict[str, Value]]:
    axes = [_column(axis.name, {*_OF_STUDIES, *_OF_RUNS}) for axis in study.plan.axes]
    for run in study.runs:
        question, bound = study.questions[run.question], bound_of(study, run.question)
        design = (("chip", to_plain(run.design.hardware)), ("plan", to_plain(run.design.plan))) if run.design else ()
        yield {
            "study": study.plan.title,
            **{name: getattr(question, name) for name in (*_FIRST[1:], "objective", "unit")},
            **dict(zip(axes, question.at, strict=False)),
            **{name: getattr(run, name) for name in _OF_RUNS if hasattr(run, name)},
            "question": question.name,
            "best_bound": bound,
            "above_best_bound": None if bound is None or run.value is None else above(run, bound),
            "proved": "yes" if run.proved else "no",
            "seconds_to_1_percent": None if bound is None else near_after(run, bound),
            **{f"{part}.{name}": _cell(value) for part, settings in design for name, value in settings.items()},
        }


def _with_unit(name: str) -> str:
    """The heads of figures with the unit that they are in; axes have the names of their study."""
    unit = next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), "") if name.startswith(("chip.", "design.")) else ""
    return with_unit(name, "s" if name == "time_limit" else unit)


# --- as text -----------------------------------------------------------------------------------------------------------------------------


def csv_of(cells: Cells) -> str:
    """Comma-separated, with every digit, and units in the heads of figures."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([harmless(_with_unit(head)) for head in cells.heads])
    writer.writerows([_written(row.get(head)) for head in cells.heads] for row in cells.rows)
    return out.getvalue()


def _written(cell: Value) -> str:
    return "" if cell is None or cell == inf else harmless(cell) if isinstance(cell, str) else repr(cell)


def markdown_of(cells: Cells) -> str:
    """With bars between the columns."""
    lines = [_barred(cells.heads), _barred(["---"] * len(cells.heads))]
    return "\n".join([*lines, *(_barred([_short(row.get(head)) for head in cells.heads]) for row in cells.rows)]) + "\n"


def _barred(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _short(cell: Value) -> str:
    return "" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def write_parquet(cells: Cells, target: Path) -> None:
    """Columns of numbers where all their cells are, else of text; an ImportError where pyarrow is not there."""
    import pyarrow  # noqa: PLC0415 - few have it, and who has not reads CSV
    import pyarrow.parquet  # noqa: PLC0415

    columns = {}
    for head in cells.heads:
        column = [row.get(head) for row in cells.rows]
        numbers = all(cell is None or not isinstance(cell, str) for cell in column)
        floats = any(isinstance(cell, float) for cell in column)
        number: type[float] | type[int] = float if floats else int
        columns[head] = [None if cell is None else number(cell) if numbers else str(cell) for cell in column]
    pyarrow.parquet.write_table(pyarrow.table(columns), target)
