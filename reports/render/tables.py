"""A sheet as figures and tables, for papers and spreadsheets."""

from typing import Any

from crossopt.reports.sheet import Bars, Prose, Section, Sheet, Table
from crossopt.reports.tables.digest import Digest
from crossopt.reports.tables.digest import Table as Figures
from crossopt.solvers.answer import Result


def digest(sheet: Sheet, result: Result[Any, Any], asks: str) -> Digest:
    """What a result says in a few figures; `asks` is what is minimised."""
    return Digest(
        name=sheet.name,
        asks=asks,
        unit=str(result.question["unit"]),
        value=result.value,
        bound=result.bound,
        gap=result.gap,
        verdict=sheet.label,
        prover=result.proved_by,
        engine=result.engine,
        seconds=result.seconds,
        design="",
        figures=(),
        tables=tuple(_table(one) for one in sheet.sections if not isinstance(one, Prose)),
    )


def _table(one: Section) -> Figures:
    if isinstance(one, Bars):
        return Figures(one.title, ("", "value"), tuple((label, amount) for label, amount, _ in one.rows))
    return Figures(one.title, one.heads, one.rows) if isinstance(one, Table) else Figures(one.title, (), ())
