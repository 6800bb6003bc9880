"""A sheet as a page of HTML: its frame, sections, tables, tiles and figures, with every word of a result escaped."""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from html import escape
from pathlib import Path
from typing import Any, Final, assert_never

from crossopt.reports.drawing.axes import timeline
from crossopt.reports.drawing.bars import Part, Row, bars, stacked
from crossopt.reports.drawing.bars import Part as Cut
from crossopt.reports.drawing.plots import Steps, steps
from crossopt.reports.drawing.svg import HUES, NARROW, WIDTH, Titles, letter
from crossopt.reports.render.style import style
from crossopt.reports.sheets.amounts import above, seconds_of, short, shown
from crossopt.reports.sheets.sheet import (
    ALL_OF_IT,
    FULL,
    Bar,
    Bars,
    Breakdown,
    Folded,
    Limit,
    Limits,
    Pairs,
    Picture,
    Search,
    Section,
    Sheet,
    Table,
    Timeline,
)
from crossopt.reports.sheets.sheet import Part as SheetPart

# The frame of a page and what fills it: sections, tables, tiles and figures as HTML text, with every word of a result escaped.

TIE: Final = "\N{NO-BREAK SPACE}"
_HYPHEN: Final = "\N{NON-BREAKING HYPHEN}"
LARGEST: Final = 490_000
"""Bytes of a page with its result; one that has no room is named by its digest."""
_LONGEST: Final = 20_000
_MANY: Final = 6
"""Columns beyond which a table is set small, and its figures may stand in two lines."""
_NARROW: Final = 4
"""Columns that a narrow screen has room for; a table of more says that it scrolls there."""
_FOLDED: Final = 60
"""Rows beyond which a table is shown when it is asked for: what stands below it would be screens away."""
_TILES: Final = 5
"""Figures in a line at the most; more are shared out evenly over several."""
_AMOUNT: Final = re.compile(r"([\d.,e+-]+) ([A-Za-z/]+)")
"""A cell that is a number with its unit and nothing else, which no line breaks."""
_FIGURE: Final = re.compile(r"\S{1,12}( \S{1,9})?")
"""One figure with its unit."""
_HEADING: Final = re.compile('<section id="([^"]*)">\n<h2>(.*?)</h2>')
_SEVERAL: Final = 3
"""Sections from which on a page has a list of its contents."""
_ITEM: Final = 28
"""Letters of an item that has room on a line of a telephone."""
_COMMAND: Final = re.compile("`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class ProofBox:
    """The box that says what is proved."""

    label: str
    text: str
    proved: bool
    note: str = ""
    """Who carried the proof out, if anybody did for this page."""
    rows: Pairs = ()
    """The short answer, as a terminal has it; the sentence of the proof stands further down then."""
    drawn: str = ""
    """A picture of the answer, which stands beside it where there is room."""
    lead: str = ""
    """The answer in a line, above its rows."""
    stated: bool = False
    """Whether the proof is taken from a file, and was not repeated for this page."""
    missed: bool = False
    """Whether the answer misses its deadline, so that a proof of it is no success."""

    def __str__(self) -> str:
        done = ("stated", "proof stated") if self.stated else ("good", "proof")
        mood, box = ("warn", "proof open") if self.missed or not self.proved else done
        verdict_html = verdict_rows(self.rows) if self.rows else paragraph(self.text)
        note = f"\n{paragraph(self.note, 'soft')}" if self.note else ""
        lead = f'<p class="answer">{text_html(self.lead)} ' if self.lead else "<p>"
        badge = f'<span class="badge {mood}">{text_html(self.label)}</span></p>'
        verdict = f'<div class="{box}">{lead}{badge}\n{verdict_html}{note}</div>'
        kind = "first drawn" if self.drawn else "first"
        return f'<div class="{kind}">\n{verdict}\n{self.drawn}\n</div>' if self.rows else verdict


PageSection = str | ProofBox


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says: its name, and its sections in their order."""

    name: str
    sections: tuple[PageSection, ...]
    result: Any
    """Plain data for other programs."""


def page(content: Page) -> str:
    """The whole file about one result."""
    sections = _with_contents([str(part) for part in content.sections if part])
    rest = frame(content.name, sections)
    return frame(content.name, (*sections, embedded(content.result, room=LARGEST - len(rest.encode("utf-8")))))


def _with_contents(parts: Sequence[str]) -> list[str]:
    """The parts of a page with a list of contents after the first screen, where there are several sections below it."""
    first = next((index for index, part in enumerate(parts) if part.startswith("<section")), len(parts))
    found = _HEADING.findall("\n".join(parts[first:]))
    items = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in found)
    nav = [f'<nav class="contents" aria-label="Contents"><ul>{items}</ul></nav>'] if len(found) >= _SEVERAL else []
    return [*parts[:first], *nav, *parts[first:]]


def frame(name: str, parts: Sequence[PageSection], own: str = "") -> str:
    """A file with these parts, and with a script of its own beside that of all pages."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy(own)}">',
            f"<title>{escape(name)} · crossopt report</title>",
            f"<style>{style()}</style>",
            "</head>",
            "<body>",
            "<main>",
            *(str(part) for part in parts if part),
            "</main>",
            *([f"<script>{own}</script>"] if own else []),
            f"<script>{script()}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def text_html(text: str) -> str:
    """Words of a result as HTML, with squares as people write them, names and amounts that no line breaks, and commands as such."""
    shown = escape(text.replace(" mm^2", f"{TIE}mm²").replace("m^2", "m²").replace("ZeRO-", f"ZeRO{_HYPHEN}"))
    return _COMMAND.sub(r"<code>\1</code>", shown)


def section(title: str, *parts: str) -> str:
    """A heading with what stands below it; nothing where nothing does."""
    inside = [part for part in parts if part]
    name = "at-" + re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return "\n".join([f'<section id="{name}">\n<h2>{text_html(title)}</h2>', *inside, "</section>"]) if inside else ""


def heading(name: str, sentence: str) -> str:
    """The title with the question below it."""
    return f'<h1>{text_html(name)}</h1>\n<p class="lead">{text_html(sentence)}</p>'


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain words."""
    return f"<p{_class(kind)}>{text_html(text)}</p>"


def listing(items: Sequence[str]) -> str:
    """A list of sentences; nothing where there are none."""
    return f"<ul>{''.join(f'<li>{text_html(item)}</li>' for item in items)}</ul>" if items else ""


def swatch_row(labels: Sequence[str], used: Container[int] | None = None) -> str:
    """Letters and colours of a picture with what they stand for, of those that are drawn where not all are."""
    keys = (
        f'<span class="key">{swatch(index)} {text_html(label)}</span>'
        for index, label in enumerate(labels)
        if used is None or index in used
    )
    return f'<p class="keys">{" ".join(keys)}</p>'


def figure(draw: Callable[[float], str], caption: str = "", zooms: bool = False) -> str:
    """A picture of any width with a line below it, drawn once for wide screens and once for narrow ones, on which it would be too small
    to read; one that zooms has more to see than fits at once."""
    below = f"\n<figcaption>{text_html(caption)}</figcaption>" if caption else ""
    kind = ' class="zooms"' if zooms else ""
    screens = (("wide", WIDTH), ("narrow", NARROW))
    pictures = "\n".join(f'<div class="for-{screen}">\n{draw(width)}\n</div>' for screen, width in screens)
    return f"<figure{kind}>\n{pictures}{below}\n</figure>"


def tiles(facts: Sequence[tuple[str, str]]) -> str:
    """The figures that a reader looks for first."""
    inside = "".join(
        f'<div class="tile"><b{_sized(value)}>{text_html(value)}</b><span>{text_html(label)}</span></div>' for label, value in facts
    )
    lines = -(-len(facts) // _TILES)
    return f'<div class="tiles of{-(-len(facts) // max(lines, 1))}">{inside}</div>'


def _sized(value: str) -> str:
    """Headline type is for one figure with its unit; ranges, shares of a whole and words are set smaller."""
    return "" if _FIGURE.fullmatch(value) else ' class="long"'


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", numbers: Sequence[int] = (), wide: bool = False) -> str:
    """A table of plain words; `numbers` are the columns that stand to the right. The first column names its row. A wide one is set small,
    with names that may break, and so is one of many columns, whose figures may break too."""
    right = set(numbers)
    cells = [[text_html(_tied(cell) if column in right else cell) for column, cell in enumerate(row)] for row in rows]
    many = len(heads) > _MANY
    kind = f"table{' wide' if wide or many else ''}{' many' if many else ' slides' if wide or len(heads) > _NARROW else ''}"
    return _table([text_html(head) for head in heads], cells, caption, numbers, kind)


def _tied(cell: str) -> str:
    found = _AMOUNT.fullmatch(cell)
    return f"{found[1]}{TIE}{found[2]}" if found else cell


def link_table(heads: Sequence[str], rows: Sequence[tuple[tuple[str, str], Sequence[str]]], numbers: Sequence[int] = ()) -> str:
    """A table of plain words whose first column links to places of this page, such as "#name"."""
    cells = [[f'<a href="{target}">{text_html(name)}</a>', *(text_html(cell) for cell in row)] for (name, target), row in rows]
    return _table([text_html(head) for head in heads], cells, "", numbers, "table wide slides")


def parts_table(heads: Sequence[str], parts: Sequence[Part], caption: str = "") -> str:
    """The parts of a whole with their letters and colours, as a stacked bar has them, and their shares."""
    total = sum(part.value for part in parts)
    rows = [[f"{swatch(part.colour)} {text_html(part.label)}", text_html(part.shown), _share(part.value, total)] for part in parts]
    return _table([text_html(head) for head in (*heads, "share")], rows, caption, (1, 2), "table parts")


def swatch(index: int) -> str:
    """The letter of a part on its colour."""
    return f'<span class="swatch b{index % HUES}">{letter(index)}</span>'


def fold(title: str, text: str) -> str:
    """Long text that is shown when it is asked for, its beginning where it is very long."""
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n... {len(text) - _LONGEST:,} more characters"
    return f"<details>\n<summary>{text_html(title)}</summary>\n<pre>{escape(shown)}</pre>\n</details>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str, numbers: Sequence[int], kind_of_table: str = "table") -> str:
    right = set(numbers)

    def kind(column: int) -> str:
        return ' class="n"' if column in right else ""

    head = "".join(f'<th scope="col"{kind(column)}>{cell}</th>' for column, cell in enumerate(heads))
    lines = [
        "<tr>"
        + "".join(f'<th scope="row">{cell}</th>' if not column else f"<td{kind(column)}>{cell}</td>" for column, cell in enumerate(row))
        + "</tr>"
        for row in rows
    ]
    named = f"<caption><span>{text_html(caption)}</span></caption>" if caption else ""
    top = f"<thead><tr>{head}</tr></thead>" if any(heads) else ""
    body = "\n".join([f'<div class="{kind_of_table}"><table>{named}{top}<tbody>', *lines, "</tbody></table></div>"])
    return folded(f"All {len(rows):,} rows", body) if len(rows) > _FOLDED else body


def folded(title: str, content: str) -> str:
    """Drawings or tables that would be long to scroll past, shown when they are asked for."""
    return f'<details class="drawn-out">\n<summary>{text_html(title)}</summary>\n{content}\n</details>'


def _share(value: float, total: float) -> str:
    return f"{value / total:.1%}" if total > 0.0 else "-"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def embedded(result: object, name: str = "result", room: int = LARGEST) -> str:
    """The result for re-use: its text as JSON, which `crossopt check` takes back; only its digest where there is no room for it."""
    text = json.dumps(result, separators=(",", ":"), allow_nan=False)
    inside = escape(text, quote=False)
    if len(inside) > room:
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
        text_left_out = f"The result is too large to be embedded ({len(text):,} characters as compact JSON, SHA-256 {digest})."
        return f'<footer id="{name}-left-out">{text_html(text_left_out)}</footer>'
    return (
        "<details>\n<summary>The result as JSON (save it as a file, and <code>crossopt check FILE</code> verifies it)</summary>\n"
        f'<pre id="{name}">{inside}</pre>\n</details>'
    )


@cache
def script() -> str:
    """The script without its comments."""
    lines = (line.strip() for line in Path(__file__).with_name("page.js").read_text(encoding="utf-8").splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def policy(own: str = "") -> str:
    """What a browser may do with a page: run the script with this digest, and one of its own where it has one, and use the style sheet
    inside it (Content Security Policy, level 3). Words of a result cannot act, were they ever let through."""
    digests = " ".join(f"'sha256-{_digest(text)}'" for text in (script(), own) if text)
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {digests}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


# A sheet as a page of HTML.

_AMOUNTS: Final = {"bytes": "memory", "money": "price"}
"""What a column of amounts is called, where not by their dimension."""
_LONG = 60
"""Letters of a row's name from which on it may break."""


def html(sheet: Sheet, data: object) -> Page:
    """The page; `data` is the result as it was read, for re-use."""
    exactly = ", ".join(f"{name} {text}" for name, text in sheet.exactly if name != "gap")
    rows, figures = sheet.brief(), (*sheet.shortly, *sheet.figures)
    parts: tuple[str | ProofBox, ...] = (
        heading(sheet.name, sheet.sentence),
        ProofBox(
            sheet.label,
            sheet.verdict,
            sheet.proved,
            rows=_on_a_page(rows) if rows else (),
            drawn="" if sheet.sketch is None else _part(sheet.sketch, Titles("sketch", sheet.sketch.title, "")),
            lead=sheet.lead,
            missed=sheet.missed,
        ),
        paragraph(sheet.summary, "answer") if sheet.summary and not rows else "",
        tiles(figures) if figures and not rows else "",
        paragraph(f"In more digits: {exactly}.", "soft") if exactly and sheet.exactly != sheet.shortly else "",
        *(section_html(part, number) for number, part in enumerate(sheet.answer_first)),
        section("How this is known", *map(paragraph, sheet.known), paragraph(sheet.made, "soft") if sheet.made else ""),
    )
    return Page(sheet.name, parts, data)


def section_html(content: Section, ordinal: int = 0) -> str:
    """A section as a page has it; pictures are named by its place."""
    bodies = (_part(part, Titles(f"figure-{ordinal}-{number}", content.title, "")) for number, part in enumerate(content.parts))
    return section(content.title, *bodies)


def verdict_rows(rows: Pairs) -> str:
    """The rows of the short answer, each named."""
    inside = "".join(f"<div><dt>{text_html(name)}</dt><dd>{text_html(_unbroken(text))}</dd></div>\n" for name, text in rows)
    return f'<dl class="verdict">\n{inside}</dl>'


def _unbroken(text: str) -> str:
    """Short items between points, none of which a line breaks."""
    return re.sub("(?<!·) (?!·)", TIE, text) if "·" in text and max(map(len, text.split(" · "))) <= _ITEM else text


def _on_a_page(rows: Pairs) -> Pairs:
    """The rows without options of the command line that say nothing on a page, which has all tables and its result."""
    *others, (name, following) = rows
    steps = [re.sub("--out FILE for `(.*)", r"`crossopt \1 of this result, which is at the end", step) for step in following.split("; ")]
    return (*others, (name, "; ".join(step for step in steps if not step.startswith("--verbose"))))


def _part(part: SheetPart, titles: Titles) -> str:
    """What fails to be drawn costs nothing else."""
    try:
        return _drawn_part(part, titles)
    except Exception as error:  # noqa: BLE001 - whatever a drawing does, the rest of the page has to be there
        return paragraph(f"This could not be drawn: {type(error).__name__}: {error}", "soft")


def _drawn_part(part: SheetPart, titles: Titles) -> str:
    match part:
        case str():
            body = paragraph(part)
        case tuple():
            body = listing(part)
        case Table():
            body = _html_table(part)
        case Bars():
            body = _bars(part, titles)
        case Limits():
            body = _limits(part, titles)
        case Breakdown():
            body = _breakdown(part, titles)
        case Timeline(kinds=kinds, description=description, caption=caption):
            body = f"{swatch_row(kinds)}\n{figure(partial(_lanes, part, titles), f'{description} {caption}'.rstrip(), zooms=True)}"
        case Picture():
            body = _picture(part, titles)
        case Search():
            body = _search(part, titles)
        case Folded(title=title, text=text):
            body = fold(title, text)
        case _:
            assert_never(part)
    return body


_FULL_TEXT: Final = (
    f"A limit is nearly full from {FULL:.0%} on and full from {ALL_OF_IT:.1%} on. Sizes of parts come in steps: the next size "
    "may exceed a limit that has slack. `crossopt explain` says which limits bind."
)


def _limits(limits: Limits, titles: Titles) -> str:
    rows = [Row(row.label, row.share, f"{row.share:.1%}", row.mark) for row in limits.rows]
    lines = [
        (row.label, shown(row.used, row.dimension), shown(row.available, row.dimension), _slack(row), row.mark or "no")
        for row in limits.rows
    ]
    named = replace(titles, description=f"{'; '.join(f'{row.label} {row.shown} {row.note}'.rstrip() for row in rows)}.")
    body = figure(lambda width: bars(named.at(width), rows, 1.0, "the limit"), _FULL_TEXT)
    return f"{body}\n{table(('limit', 'used', 'of', 'slack', 'full'), lines, numbers=(1, 2, 3))}"


def _slack(limit: Limit) -> str:
    """What is left of a limit, in the unit of the limit."""
    number, _, unit = shown(limit.available, limit.dimension).partition(" ")
    return f"{(1.0 - limit.share) * float(number.replace(',', '')):.4g} {unit}"


def _breakdown(breakdown: Breakdown, titles: Titles) -> str:
    parts = [Cut(label, amount, shown(amount, breakdown.dimension), colour) for colour, label, amount in breakdown.present]
    listed, total = ", ".join(f"{part.label} {part.shown}" for part in parts), shown(breakdown.total, breakdown.dimension)
    title = breakdown.brief.rstrip(":").capitalize() or titles.title
    described = replace(titles, title=title, description=f"A bar of {total}, cut into {listed}.")
    picture = figure(lambda width: stacked(described.at(width), parts, breakdown.capacity), breakdown.caption)
    return f"{picture}\n{parts_table((breakdown.head, _AMOUNTS.get(breakdown.dimension, breakdown.dimension)), parts)}"


def _search(search: Search, titles: Titles) -> str:
    """The best answer and the bound over time; words alone where all was known at one moment, which leaves nothing to draw."""
    result = search.result
    found = tuple((at, value) for at, value, _ in result.trace if value is not None)
    bound = tuple((at, value) for at, _, value in result.trace if value is not None)
    until = max([result.seconds, *(at for at, _, _ in result.trace)])
    bound += ((until, result.bound),) if result.bound is not None and (not bound or bound[-1][1] != result.bound) else ()
    series = [Steps(label, way) for label, way in ((search.best, found), ("lower bound", bound)) if way]
    if not result.trace or not series:
        return ""
    gap = "" if result.gap is None else f" and leaves a gap of {result.gap:.2%}"
    sentence = f"The engine {result.engine} ends after {seconds_of(result.seconds)}{gap}."
    described = replace(titles, title=f"{search.best.capitalize()} and bound over time", description=sentence)
    if len({at for way in series for at, _ in way.points}) < 2:
        return paragraph(sentence)
    return figure(lambda width: steps(described.at(width), series, until or 1.0, ("seconds", search.axis)), sentence)


def _html_table(part: Table) -> str:
    if not (most := part.on_pages or part.most):
        return ""
    rows = list(zip(*(column.texts[:most] for column in part.columns), strict=True))
    numbers = [index for index, column in enumerate(part.columns) if column.exact and index]
    long = any(len(row[0]) > _LONG for row in rows)
    body = table([column.head for column in part.columns], rows, part.caption, numbers, wide=long)
    return folded(part.fold, body) if part.fold else body


def _bars(bar: Bars, titles: Titles) -> str:
    """The bars, and what is to be said of some of them; those with a fault have a mark."""
    notes = listing([f"{_marked(row)}: {row.fault or row.detail}" for row in bar.rows if row.fault or row.detail])
    rows = [
        Row(row.label, row.amount, f"{short(row.amount, bar.unit)}{' *' if row.fault else above(row.amount, bar.best) if index else ''}")
        for index, row in enumerate(bar.rows)
        if row.amount is not None
    ]
    if not rows:
        return notes
    text = "; ".join(f"{row.label}: {row.shown}" for row in rows) + "."
    least = min(row.value for row in rows) if bar.mark is None else bar.mark
    named, mark = replace(titles, description=text), "" if bar.mark is None else "bound"
    body = figure(lambda width: bars(named.at(width), rows, least, mark))
    return f"{body}\n{notes}"


def _marked(row: Bar) -> str:
    return f"{row.label} *" if row.fault and row.amount is not None else row.label


def _lanes(lanes: Timeline, titles: Titles, width: float) -> str:
    return timeline(
        replace(titles, description=lanes.description, width=width), lanes.tracks, lanes.until, lanes.axis, lanes.mark, lanes.kinds
    )


def _picture(picture: Picture, titles: Titles) -> str:
    description = paragraph(picture.description) if picture.description else ""
    described = replace(titles, title=picture.title or titles.title, description=picture.described or picture.description)
    try:
        body = figure(lambda width: picture.draw(replace(described, width=width)), picture.caption, zooms=picture.zooms)
    except ValueError:
        return paragraph(f"{picture.description} {picture.undrawn}")
    keys = swatch_row(picture.keys, {index for index, key in enumerate(picture.keys) if key}) if picture.keys else ""
    return "\n".join(part for part in (description, keys, body) if part)
