"""A sheet as a page of HTML."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final, assert_never

from crossopt.reports.drawing.bars import Row, bars
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.drawing.timeline import timeline
from crossopt.reports.pages.search import search_figure
from crossopt.reports.pages.shell import (
    Page,
    ProofBox,
    figure,
    fold,
    heading,
    lead_over,
    listing,
    paragraph,
    section,
    swatch_row,
    table,
    tiles,
)
from crossopt.reports.sheets.amounts import above, short
from crossopt.reports.sheets.sheet import Bar, Bars, Folded, Part, Picture, Search, Section, Share, Sheet, Table, Timeline
from crossopt.solvers.answer import Result

_FULL: Final = 0.95
"""The share of a limit from which on it is said to bind."""
_LONG = 60
"""Letters of a row's name from which on it may break."""


def html(sheet: Sheet, data: object) -> Page:
    """The page; `data` is the result as it was read, for re-use."""
    exactly = ", ".join(f"{name} {words}" for name, words in sheet.exactly if name != "gap")
    parts: tuple[str | ProofBox, ...] = (
        heading(sheet.name, sheet.sentence),
        ProofBox(sheet.label, sheet.verdict, sheet.result.proved, answer=_answer(sheet)),
        paragraph(f"In more digits: {exactly}.", "soft") if exactly and sheet.exactly != sheet.shortly else "",
        *(
            section(one.title, *_drawn(one.parts, f"figure-{place}", one.title, sheet.result))
            for place, one in enumerate(sheet.answer_first)
        ),
        section("How this is known", *map(paragraph, _known(sheet)), paragraph(sheet.made, "soft")),
    )
    return Page(sheet.name, parts, data)


def _answer(sheet: Sheet) -> str:
    """What was chosen, what it reaches, and how far the best rival is."""
    if not sheet.shortly:
        return ""
    best, found = sheet.result.value, [one for one in sheet.result.rivals if one.value is not None]
    beside = min(found, key=lambda one: one.value or 0.0, default=None)
    figures = [*sheet.shortly, *sheet.figures]
    if beside is not None and beside.value and best is not None:
        figures.append(lead_over(beside.name, best, beside.value))
    chosen = [paragraph(words, kind) for words, kind in ((sheet.summary, "answer"), (sheet.chosen, "")) if words]
    return "\n".join([*chosen, tiles(figures)])


def _known(sheet: Sheet) -> Iterator[str]:
    yield sheet.verdict
    if sheet.result.answer is not None:
        yield f"The answer was judged anew for this page{f', {sheet.judged}' if sheet.judged else ''}."
    yield from [sheet.known] if sheet.known else []


def _section(one: Section, place: int, result: Result[Any, Any]) -> str:
    return section(one.title, *_drawn(one.parts, f"figure-{place}", one.title, result))


def _drawn(parts: tuple[Part, ...], name: str, title: str, result: Result[Any, Any]) -> Iterator[str]:
    for place, part in enumerate(parts):
        yield _part(part, Titles(f"{name}-{place}", title, ""), result)


def _part(part: Part, titles: Titles, result: Result[Any, Any]) -> str:
    match part:
        case str():
            drawn = paragraph(part)
        case tuple():
            drawn = listing(part)
        case Table():
            drawn = _table(part)
        case Bars():
            drawn = _bars(part, titles)
        case Share(label=label, used=used, words=words):
            row = Row(label, used, f"{used:.1%}", "full" if used > _FULL else "")
            told = replace(titles, description=words)
            drawn = figure(lambda width: bars(told.at(width), [row], 1.0, "the limit"), words)
        case Timeline(kinds=kinds, words=words, caption=caption):
            drawn = f"{swatch_row(kinds)}\n{figure(partial(_lanes, part, titles), f'{words} {caption}'.rstrip(), zooms=True)}"
        case Picture():
            drawn = _picture(part, titles)
        case Search(best=best, axis=axis):
            drawn = search_figure(best, axis, result)
        case Folded(title=title, text=text):
            drawn = fold(title, text)
        case _:
            assert_never(part)
    return drawn


def _table(one: Table) -> str:
    most = one.on_pages or one.most
    rows = list(zip(*(column.words[:most] for column in one.columns), strict=True))
    numbers = [place for place, column in enumerate(one.columns) if column.exact and place]
    long = any(len(row[0]) > _LONG for row in rows)
    return table([column.head for column in one.columns], rows, numbers=numbers, wide=long)


def _bars(one: Bars, titles: Titles) -> str:
    """The bars, and what is to be said of some of them; those with a fault have a mark."""
    notes = listing([f"{_marked(row)}: {row.fault or row.words}" for row in one.rows if row.fault or row.words])
    rows = [
        Row(row.label, row.amount, f"{short(row.amount, one.unit)}{' *' if row.fault else above(row.amount, one.best) if place else ''}")
        for place, row in enumerate(one.rows)
        if row.amount is not None
    ]
    if not rows:
        return notes
    words = "; ".join(f"{row.label}: {row.shown}" for row in rows) + "."
    least = min(row.value for row in rows) if one.mark is None else one.mark
    told, mark = replace(titles, description=words), "" if one.mark is None else "bound"
    drawn = figure(lambda width: bars(told.at(width), rows, least, mark))
    return f"{drawn}\n{notes}"


def _marked(row: Bar) -> str:
    return f"{row.label} *" if row.fault and row.amount is not None else row.label


def _lanes(one: Timeline, titles: Titles, width: float) -> str:
    return timeline(replace(titles, description=one.words, width=width), one.tracks, one.until, one.axis, one.mark, one.kinds)


def _picture(one: Picture, titles: Titles) -> str:
    try:
        drawn = figure(lambda width: one.draw(replace(titles, description=one.words, width=width)), one.caption, zooms=True)
    except ValueError:
        return paragraph(f"{one.words} {one.undrawn}")
    return f"{paragraph(one.words)}\n{drawn}"
