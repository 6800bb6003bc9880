"""A sheet as a page of HTML."""

from dataclasses import replace
from functools import partial
from typing import Final, assert_never

from crossopt.reports.drawing.bars import Part as Cut
from crossopt.reports.drawing.bars import Row, bars, stacked
from crossopt.reports.drawing.plots import Steps, steps
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.drawing.timeline import timeline
from crossopt.reports.render.page import (
    Page,
    ProofBox,
    figure,
    fold,
    folded,
    heading,
    lead_over,
    listing,
    paragraph,
    parts_table,
    section,
    swatch_row,
    table,
    tiles,
)
from crossopt.reports.sheets.amounts import above, seconds_of, short, shown
from crossopt.reports.sheets.sheet import (
    FULL,
    Bar,
    Bars,
    Breakdown,
    Folded,
    Limit,
    Limits,
    Part,
    Picture,
    Search,
    Section,
    Sheet,
    Table,
    Timeline,
)

_AMOUNTS: Final = {"bytes": "memory", "money": "price"}
"""What a column of amounts is called, where not by their dimension."""
_LONG = 60
"""Letters of a row's name from which on it may break."""


def html(sheet: Sheet, data: object) -> Page:
    """The page; `data` is the result as it was read, for re-use."""
    exactly = ", ".join(f"{name} {words}" for name, words in sheet.exactly if name != "gap")
    parts: tuple[str | ProofBox, ...] = (
        heading(sheet.name, sheet.sentence),
        ProofBox(sheet.label, sheet.verdict, sheet.proved, answer=_answer(sheet), drawn=_sketch(sheet.sketch)),
        paragraph(f"In more digits: {exactly}.", "soft") if exactly and sheet.exactly != sheet.shortly else "",
        *(drawn_section(one, place) for place, one in enumerate(sheet.answer_first)),
        section("How this is known", *map(paragraph, sheet.known), paragraph(sheet.made, "soft") if sheet.made else ""),
    )
    return Page(sheet.name, parts, data)


def drawn_section(one: Section, place: int = 0) -> str:
    """A section as a page has it; pictures are named by its place."""
    drawn = (_part(part, Titles(f"figure-{place}-{number}", one.title, "")) for number, part in enumerate(one.parts))
    return section(one.title, *drawn)


def _answer(sheet: Sheet) -> str:
    """What was chosen, what it reaches, and how far the best baseline is."""
    figures = [*sheet.shortly, *sheet.figures]
    if not figures:
        return ""
    if sheet.beside and sheet.value is not None and (nearest := min(sheet.beside, key=lambda one: one[1]))[1]:
        figures.append(lead_over(nearest[0], sheet.value, nearest[1]))
    chosen = [paragraph(words, kind) for words, kind in ((sheet.summary, "answer"), (sheet.chosen, "")) if words]
    return "\n".join([*chosen, tiles(figures)])


def _sketch(one: Picture | None) -> str:
    return "" if one is None else _part(one, Titles("sketch", one.title, ""))


def _part(part: Part, titles: Titles) -> str:
    """What fails to be drawn costs nothing else."""
    try:
        return _drawn_part(part, titles)
    except Exception as error:  # noqa: BLE001 - whatever a drawing does, the rest of the page has to be there
        return paragraph(f"This could not be drawn: {type(error).__name__}: {error}", "soft")


def _drawn_part(part: Part, titles: Titles) -> str:
    match part:
        case str():
            drawn = paragraph(part)
        case tuple():
            drawn = listing(part)
        case Table():
            drawn = _table(part)
        case Bars():
            drawn = _bars(part, titles)
        case Limits():
            drawn = _limits(part, titles)
        case Breakdown():
            drawn = _breakdown(part, titles)
        case Timeline(kinds=kinds, words=words, caption=caption):
            drawn = f"{swatch_row(kinds)}\n{figure(partial(_lanes, part, titles), f'{words} {caption}'.rstrip(), zooms=True)}"
        case Picture():
            drawn = _picture(part, titles)
        case Search():
            drawn = _search(part, titles)
        case Folded(title=title, text=text):
            drawn = fold(title, text)
        case _:
            assert_never(part)
    return drawn


def _limits(one: Limits, titles: Titles) -> str:
    rows = [Row(row.label, row.share, f"{row.share:.1%}", row.mark) for row in one.rows]
    lines = [
        (row.label, shown(row.used, row.dimension), shown(row.available, row.dimension), _slack(row), row.mark or "no") for row in one.rows
    ]
    told = replace(titles, description=f"{'; '.join(f'{row.label} {row.shown} {row.note}'.rstrip() for row in rows)}.")
    drawn = figure(lambda width: bars(told.at(width), rows, 1.0, "the limit"), f"A limit is full where {FULL:.0%} or more of it are used.")
    return f"{drawn}\n{table(('limit', 'used', 'of', 'slack', 'full'), lines, numbers=(1, 2, 3))}"


def _slack(one: Limit) -> str:
    """What is left of a limit, in the unit of the limit."""
    number, _, unit = shown(one.available, one.dimension).partition(" ")
    return f"{(1.0 - one.share) * float(number.replace(',', '')):.4g} {unit}"


def _breakdown(one: Breakdown, titles: Titles) -> str:
    parts = [Cut(label, amount, shown(amount, one.dimension), place) for place, label, amount in one.present]
    listed, total = ", ".join(f"{part.label} {part.shown}" for part in parts), shown(one.total, one.dimension)
    title = one.brief.rstrip(":").capitalize() or titles.title
    told = replace(titles, title=title, description=f"A bar of {total}, cut into {listed}.")
    drawn = figure(lambda width: stacked(told.at(width), parts, one.whole), one.caption)
    return f"{drawn}\n{parts_table((one.head, _AMOUNTS.get(one.dimension, one.dimension)), parts)}"


def _search(one: Search, titles: Titles) -> str:
    """The best answer and the bound over time; words alone where all was known at one moment, which leaves nothing to draw."""
    result = one.result
    found = tuple((at, value) for at, value, _ in result.trace if value is not None)
    bound = tuple((at, value) for at, _, value in result.trace if value is not None)
    until = max([result.seconds, *(at for at, _, _ in result.trace)])
    bound += ((until, result.bound),) if result.bound is not None and (not bound or bound[-1][1] != result.bound) else ()
    series = [Steps(label, way) for label, way in ((one.best, found), ("lower bound", bound)) if way]
    if not result.trace or not series:
        return ""
    gap = "" if result.gap is None else f" and leaves a gap of {result.gap:.2%}"
    words = f"The engine {result.engine} ends after {seconds_of(result.seconds)}{gap}."
    told = replace(titles, title=f"{one.best.capitalize()} and bound over time", description=words)
    if len({at for way in series for at, _ in way.points}) < 2:
        return paragraph(words)
    return figure(lambda width: steps(told.at(width), series, until or 1.0, ("seconds", one.axis)), words)


def _table(one: Table) -> str:
    if not (most := one.on_pages or one.most):
        return ""
    rows = list(zip(*(column.words[:most] for column in one.columns), strict=True))
    numbers = [place for place, column in enumerate(one.columns) if column.exact and place]
    long = any(len(row[0]) > _LONG for row in rows)
    drawn = table([column.head for column in one.columns], rows, one.caption, numbers, wide=long)
    return folded(one.fold, drawn) if one.fold else drawn


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
    words = paragraph(one.words) if one.words else ""
    told = replace(titles, title=one.title or titles.title, description=one.described or one.words)
    try:
        drawn = figure(lambda width: one.draw(replace(told, width=width)), one.caption, zooms=one.zooms)
    except ValueError:
        return paragraph(f"{one.words} {one.undrawn}")
    keys = swatch_row(one.keys, {place for place, key in enumerate(one.keys) if key}) if one.keys else ""
    return "\n".join(part for part in (words, keys, drawn) if part)
