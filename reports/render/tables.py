"""A sheet as figures and tables, for papers and spreadsheets."""

from crossopt.reports.sheets.sheet import Bars, Section, Sheet, Table
from crossopt.reports.tables.digest import Digest
from crossopt.reports.tables.digest import Table as Figures


def digest(sheet: Sheet) -> Digest:
    """What a result says in a few figures."""
    result = sheet.result
    return Digest(
        name=sheet.name,
        asks=sheet.asks,
        unit=sheet.unit,
        value=result.value,
        bound=result.bound,
        gap=result.gap,
        verdict=sheet.label,
        prover=result.proved_by if result.bound is not None or result.settled else "",
        engine=result.engine,
        seconds=result.seconds,
        design=sheet.summary,
        figures=sheet.figures,
        tables=tuple(_figures(one, part) for one in sheet.sections for part in one.parts if isinstance(part, Table | Bars)),
    )


def _figures(section: Section, part: Table | Bars) -> Figures:
    if isinstance(part, Table):
        heads = tuple(column.exact_head or column.head for column in part.columns)
        return Figures(section.title, heads, tuple(zip(*(column.exact or column.words for column in part.columns), strict=True)))
    rows = tuple((row.label, row.amount, _above(row.amount, part.best), row.fault or row.words) for row in part.rows)
    return Figures(section.title, ("answer", f"value in {part.unit}".removesuffix(" in "), "above the best in %", "note"), rows)


def _above(value: float | None, best: float | None) -> float | None:
    return None if value is None or not best else 100.0 * (value / best - 1.0)
