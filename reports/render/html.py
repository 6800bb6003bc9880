"""A sheet as a page of HTML."""

from typing import assert_never

from crossopt.reports.drawing.bars import Row, bars
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.pages.shell import Page, figure, heading, listing, paragraph, proof_box, section, table, tiles
from crossopt.reports.sheet import Bars, Prose, Section, Sheet, Table


def html(sheet: Sheet, data: object) -> Page:
    """The page; `data` is the result as it was read, for re-use."""
    head = (
        heading(sheet.name, sheet.sentence),
        proof_box(sheet.label, sheet.verdict, sheet.proved),
        tiles(sheet.figures) if sheet.figures else "",
    )
    sections = tuple(_drawn(one, place) for place, one in enumerate(sheet.sections))
    told = "The answer was judged anew for this page. `crossopt check` says how far its bound is proved anew."
    known = section("How this is known", paragraph(sheet.verdict), paragraph(told), paragraph(sheet.made, "soft"))
    return Page(sheet.name, (*head, *sections, known), data)


def _drawn(one: Section, place: int) -> str:
    match one:
        case Prose(title=title, lines=lines):
            return section(title, listing(lines))
        case Table(title=title, heads=heads, rows=rows, numbers=numbers):
            return section(title, table(heads, rows, numbers=numbers))
        case Bars(title=title, rows=rows, mark=mark):
            words = "; ".join(f"{label}: {shown}" for label, _, shown in rows) + "."
            drawn = [Row(label, amount, shown) for label, amount, shown in rows]
            least = min(amount for _, amount, _ in rows) if mark is None else mark
            return section(title, figure(bars(Titles(f"bars-{place}", title, words), drawn, least, "" if mark is None else "bound")))
        case _:
            assert_never(one)
