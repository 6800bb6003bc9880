"""A sheet as figures and tables, for papers and spreadsheets: what a result says in a few figures, whatever it is about."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from crossopt.reports.sheets.amounts import lowered, shown
from crossopt.reports.sheets.sheet import Amount, Bars, Bound, Breakdown, Cell, Limits, Part, Sheet
from crossopt.reports.sheets.sheet import Table as Columns

DIGITS = 6


@dataclass(frozen=True, slots=True)
class Table:
    """Figures with their heads, which name the units."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def written(cell: Cell) -> str:
    """A cell in six digits."""
    match cell:
        case None:
            return "-"
        case Bound():
            return lowered(cell.value)
        case Amount(text=text) | (str() as text):
            return "".join(sign if sign.isprintable() else " " for sign in text)
    return f"{cell:.6g}"


def row_written(row: Sequence[Cell], figure: Callable[[float], str], digits: int) -> list[str]:
    """A row's cells; a bound that is the value beside it reads as that does, and any other is rounded down."""
    values = {cell for cell in row if isinstance(cell, int | float)}

    def of(cell: Cell) -> str:
        match cell:
            case Bound():
                return figure(cell.value) if cell.value in values else lowered(cell.value, digits)
            case float() | int():
                return figure(cell)
        return written(cell)

    return [of(cell) for cell in row]


def six_digits(value: float) -> str:
    """A figure as tables of readers have it."""
    return f"{value:.{DIGITS}g}"


def is_number(table: Table, column: int) -> bool:
    """Whether a column holds figures alone."""
    return all(not isinstance(row[column], str | Amount) for row in table.rows)


def titled(name: str, table: Table) -> str:
    """The title of a table of the result with this name."""
    return f"{name}: {table.title[0].lower()}{table.title[1:]}" if name else table.title


@dataclass(frozen=True, slots=True)
class Digest:
    """One result."""

    name: str
    asks: str
    """What is minimised."""
    unit: str
    value: float | None
    bound: float | None
    gap: float | None
    verdict: str
    prover: str
    """The prover of the bound; empty without a proof."""
    engine: str
    seconds: float
    design: str
    figures: tuple[tuple[str, str], ...]
    """Others that a reader looks for."""
    tables: tuple[Table, ...]
    """Where time goes, limits, baselines and what else there is, in SI units where nothing else is said."""
    about: tuple[str, ...] = ()
    """Workload and cluster, if there is one of each; values are compared only if these are equal."""
    single: bool = False
    """Whether this is the result of one question, even if it has neither unit nor value."""

    @property
    def is_answer(self) -> bool:
        """Whether this has one value or proves that there is none, unlike studies and fronts."""
        return self.single or bool(self.unit) or self.value is not None or self.bound is not None

    @property
    def value_words(self) -> str:
        return ("none" if self.is_answer else "-") if self.value is None else _with_unit(f"{self.value:.6g}", self.unit)

    @property
    def bound_words(self) -> str:
        """As the value where it is that, else never above the bound itself."""
        if self.bound is None:
            return "none" if self.is_answer else "-"
        return self.value_words if self.bound == self.value else _with_unit(lowered(self.bound), self.unit)

    @property
    def gap_words(self) -> str:
        return "-" if self.gap is None else f"{self.gap:.2%}"


SAID, PROVED_HERE = "not re-verified", "checked here"
"""Labels of verdicts stated by a file, without and with verification."""


def with_text(verdict: str, remark: str) -> str:
    """A verdict with what is to be said of it."""
    return f"{verdict}, {remark}"


def digest(sheet: Sheet) -> Digest:
    """What a result says in a few figures."""
    return Digest(
        name=sheet.name,
        asks=sheet.asks,
        single=sheet.single,
        unit=sheet.unit,
        value=sheet.value,
        bound=sheet.bound,
        gap=sheet.gap,
        verdict=sheet.label,
        prover=sheet.prover,
        engine=sheet.engine,
        seconds=sheet.seconds,
        design=sheet.summary,
        figures=sheet.figures,
        tables=tuple(found for section in sheet.sections for part in section.parts for found in _tables(section.title, part)),
        about=sheet.about,
    )


def _tables(title: str, part: Part) -> Iterator[Table]:
    """The figures of a part, those of a given one being words."""
    match part:
        case Columns(columns=columns) if any(column.head or column.exact_head for column in columns):
            found = [pair for column in columns for pair in column.in_spreadsheets]
            yield Table(title, tuple(head for head, _ in found), tuple(zip(*(cells for _, cells in found), strict=True)))
        case Bars(rows=bars, unit=unit, best=best):
            heads = ("answer", f"value in {unit}".removesuffix(" in "), "above the best in %", "note")
            yield Table(title, heads, tuple((row.label, row.amount, _above(row.amount, best), row.fault or row.detail) for row in bars))
        case Limits(rows=limits):
            used = ((row, _amount(row.used, row.dimension), _amount(row.available, row.dimension)) for row in limits)
            share = tuple((row.label, taken, most, 100.0 * row.share if row.available else None) for row, taken, most in used)
            yield Table(title, ("limit", "used", "available", "share in %"), share)
        case Breakdown(head=head, brief="") as breakdown:
            unit, total = _UNITS.get(breakdown.dimension, breakdown.dimension), breakdown.total
            rows = tuple((label, amount, 100.0 * amount / total) for _, label, amount in breakdown.present)
            yield Table(title, (head, unit, "share in %"), (*rows, ("in all", total, 100.0)))
        case _:
            pass


def _amount(value: float, dimension: str) -> Amount:
    return Amount(shown(value, dimension), value, _UNITS.get(dimension, dimension))


_UNITS = {"time": "seconds", "power": "W", "area": "m^2", "money": "USD"}
"""Of the figures of breakdowns and limits, by their dimension."""


def _above(value: float | None, best: float | None) -> float | None:
    return None if value is None or not best else 100.0 * (value / best - 1.0)


def _with_unit(number: str, unit: str) -> str:
    return f"{number} {unit}".rstrip()
