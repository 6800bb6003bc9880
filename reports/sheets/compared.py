"""Several answers to one question beside each other, over the best bound."""

from collections.abc import Mapping, Sequence

from crossopt.crossflow.records import dataclass
from crossopt.reports.render.terminal import closing_of, text_of
from crossopt.reports.render.width import wrapped
from crossopt.reports.sheets.amounts import digits, digits_below
from crossopt.reports.sheets.sheet import Bar, Column, Section, Sheet, Table, names
from crossopt.solvers.answer import Number


@dataclass(frozen=True, slots=True)
class Compared:
    """An answer, or what a rule comes to; without a bound or seconds where nobody tells them."""

    bar: Bar
    bound: Number | None = None
    seconds: float | None = None


def compared_text(best: Sheet, asks: str, rows: Sequence[Compared]) -> str:
    """The rows; `best` is the sheet of the answer with the best bound, and `asks` says what is compared."""
    bound = best.bound
    columns = (
        names("", (row.bar.label for row in rows)),
        Column("value", tuple("none" if row.bar.amount is None else digits(row.bar.amount, "") for row in rows), (bound,)),
        Column("above bound", tuple(_above(row.bar, bound) for row in rows), (bound,)),
        Column("own bound", tuple("" if row.bound is None else digits_below(row.bound, row.bar.amount, "") for row in rows), (bound,)),
        Column("seconds", tuple("" if row.seconds is None else f"{row.seconds:.2f}" for row in rows), (0.0,)),
        names("", ("; ".join(word for word in (row.bar.fault, row.bar.words) if word) for row in rows)),
    )
    table = Table(tuple(column for column in columns if any(column.words)))
    sections = (Section("Side by side", (table,)), best.sections[-1])
    return text_of(f"{best.name}: {asks}", (), sections, closing_of(best))


def _above(bar: Bar, bound: Number | None) -> str:
    return "" if bar.amount is None or not bound or bar.fault else f"{bar.amount / bound - 1.0:,.2%}"


def refused_text(refused: Mapping[tuple[str, str], str]) -> str:
    """Which engines do not answer which questions, by both their names, and why, each reason once."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for (engine, question), why in refused.items():
        reasons.setdefault((engine, why), []).append(question)
    lines = [
        line
        for (engine, why), names in reasons.items()
        for line in wrapped(f"  {engine} does not answer ", f"{', '.join(names)}: {why} (leave it out, or ask others)")
    ]
    return "".join(f"{line}\n" for line in lines)
