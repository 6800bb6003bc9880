"""A sheet for the terminal, 80 to 120 columns, and several answers to one question beside each other."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING, Final, assert_never

from crossopt.crossflow.records import dataclass
from crossopt.reports.render.width import eighths, sheet_width, wrapped
from crossopt.reports.sheets.amounts import above, digits, digits_below, shown
from crossopt.reports.sheets.sheet import (
    Bar,
    Bars,
    Breakdown,
    Column,
    Folded,
    Limits,
    Pairs,
    Part,
    Picture,
    Search,
    Section,
    Sheet,
    Table,
    Timeline,
    names,
)
from crossopt.solvers.answer import Number

if TYPE_CHECKING:
    from crossopt.reports.drawing.axes import Track

# A sheet for the terminal: 80 to 120 columns, figures first, the certificate last. What only a page can show is left out.

_BAR: Final = 24
_FILLS: Final = "█▒░▓"
"""Of bars, by the kind of work."""
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Fills if there are more kinds."""
_LABEL: Final = 22
_NAME: Final = 20
"""Of the column of figures' names, which many commands share."""
_LONG: Final = 24
"""Letters from which on a column may be told below its rows, where there is no room for it."""
_NARROW: Final = 14
_GAP: Final = 2
_MARGIN: Final = 2
_FRAME, _MARKED, _SHORT = 4, 13, 6
"""Of the frame of a limit's bar, of what stands behind it, and of the shortest one."""
_SHORT_ANSWER, _USUAL_WIDTH = 15, 80
"""Lines of a short answer, and the columns for which they are meant; narrower ones have more."""
_DOUBTS: Final = ("note", "caveat")
_SPARE: Final = (*_DOUBTS[::-1], "rent", "tokens", "binds", "baselines", "assumed")
"""Doubts, of which the first one stays, and all rows that may be left to the long answer, those that matter least first."""
_MORE: Final = ("--verbose`", "--verbose", "`text`")
"""What the row of next steps says where there is a long answer: of a command, and of a Python object."""
_TIE: Final = "\N{NO-BREAK SPACE}"


def terminal(sheet: Sheet) -> str:
    """The whole text."""
    figures = (*sheet.exactly, *(pair for pair in sheet.figures if sheet.exactly))
    wide = max([_NAME, *(len(name) + _GAP for name, _ in figures)])
    lines = [line for name, text in figures for line in _hung(f"  {name:<{wide}}", text)]
    return text_of(f"{sheet.name}   {sheet.headline}", lines, sheet.all_sections, closing_of(sheet))


def brief(headline: str, rows: Pairs, sections: Sequence[Section] = ()) -> str:
    """An answer in a few rows, with tables below them; what matters least is left to the long answer where it would be long otherwise."""
    wide = max((len(name) for name, _ in rows if len(name) <= _NAME), default=0)
    shown = [(name, _hung(f"  {name:<{wide}}{' ' * _GAP}", text)) for name, text in rows]
    most = _SHORT_ANSWER * _USUAL_WIDTH // min(sheet_width(), _USUAL_WIDTH) - 1
    most -= len(wrap(headline, sheet_width(), subsequent_indent="    ", break_on_hyphens=False))
    first = next((row for label in reversed(_DOUBTS) for row in shown if row[0] == label), None)
    more = next((sign for sign in _MORE if rows and sign in rows[-1][1]), "")
    spare = [row for label in _SPARE for row in reversed(shown) if row[0] == label and row is not first] if more else []
    if sum(len(row[1]) for row in shown) > most and spare:
        text = rows[-1][1].replace(more, f"{more} ({len(spare)} more rows)", 1)
        shown[-1] = (rows[-1][0], _hung(f"  {rows[-1][0]:<{wide}}{' ' * _GAP}", text))
        room = most - sum(len(row[1]) for row in shown if row not in spare)
        for row in reversed(spare):  # those that matter most first, and then what still fits
            if len(row[1]) <= room:
                spare.remove(row)
                room -= len(row[1])
        shown = [row for row in shown if row not in spare]
        text = rows[-1][1].replace(more, f"{more} ({len(spare)} more row{'s' * (len(spare) > 1)})", 1)
        shown[-1] = (rows[-1][0], _hung(f"  {rows[-1][0]:<{wide}}{' ' * _GAP}", text))
    return text_of(headline, [line for row in shown for line in row[1]], sections, "")


def _room() -> int:
    """Of the columns of a table."""
    return sheet_width() - _MARGIN


def closing_of(sheet: Sheet) -> str:
    """The certificate, as the last line tells it."""
    return f"{sheet.closing}: {sheet.verdict[:1].lower()}{sheet.verdict[1:]}" if sheet.closing else sheet.verdict


def text_of(headline: str, figures: Sequence[str], sections: Sequence[Section], closing: str) -> str:
    """Lines below each other, as every answer has them."""
    lines = wrap(headline, sheet_width(), subsequent_indent="    ", break_on_hyphens=False)
    lines += ["", *figures] if figures else []
    for section in sections:
        inside = [line for part in section.parts for line in _lines(part)]
        lines += ["", f"  {section.title}", *inside] if inside else []
    return "\n".join([*lines, *(["", *_wrapped(closing, "  ")] if closing else [])]) + "\n"


def _lines(part: Part) -> list[str]:
    """What fails to be drawn costs nothing else."""
    try:
        return list(_part(part))
    except Exception as error:  # noqa: BLE001 - whatever a drawing does, the answer has to be printed
        return _wrapped(f"this could not be drawn: {type(error).__name__}: {error}")


def _part(part: Part) -> Iterator[str]:
    match part:
        case str():
            yield from _wrapped(part)
        case tuple():
            for line in part:
                yield from _wrapped(line)
        case Table():
            yield from _table(part)
        case Bars():
            yield from _bars(part)
        case Limits():
            yield from _limits(part)
        case Breakdown():
            yield from _breakdown(part)
        case Timeline():
            yield from _timeline(part)
        case Picture(description=text):
            yield from _wrapped(text)
        case Search() | Folded():
            pass
        case _:
            assert_never(part)


def _wrapped(text: str, indent: str = "    ") -> list[str]:
    return wrap(text, sheet_width(), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _hung(label: str, text: str) -> list[str]:
    """Words behind a label; items between points stay on one line each where that takes no more lines."""
    tied = re.sub(r"(?<!·) (?!·)", _TIE, text) if " · " in text else text
    lines, loose = (
        wrap(t, sheet_width(), initial_indent=label, subsequent_indent=" " * len(label), break_on_hyphens=False) for t in (tied, text)
    )
    if len(loose) < len(lines) or max(map(len, text.split(" · "))) > sheet_width() - len(label) - 2:
        lines = loose
    return [line.replace(_TIE, " ") for line in lines] or [label.rstrip()]


# --- bars ----------------------------------------------------------------------------------------------------------------------------


def _bar(label: str, wide: int, share: float, room: int, text: str) -> str:
    """A share as a framed bar of so many columns, or without one where there is no room."""
    framed = f"|{'█' * round(room * share):<{room}}|  " if room >= _SHORT else ""
    return f"    {label[:wide]:<{wide}}  {framed}{text}".rstrip()


def _limits(limits: Limits) -> Iterator[str]:
    """How much of each limit is used, with a bar where there is room."""
    rows = [(row, shown(row.used, row.dimension), shown(row.available, row.dimension)) for row in limits.rows]
    label, used, there = (
        max(map(len, column)) for column in zip(*((row.label, used_text, limit_text) for row, used_text, limit_text in rows), strict=True)
    )
    for row, used_text, limit_text in rows:
        line = f"    {row.label:<{label}}  {used_text:>{used}} of {limit_text:<{there}}  {row.share:6.1%}"
        room = min(_BAR, sheet_width() - len(line) - _FRAME - _MARKED)
        framed = f"  |{eighths(min(row.share, 1.0), room):<{room}}|" if room >= _SHORT else ""
        yield f"{line}{framed}  {row.mark}".rstrip()


def _breakdown(breakdown: Breakdown) -> Iterator[str]:
    """The parts with their shares, or all of them in a sentence."""
    parts = [(label, shown(amount, breakdown.dimension), amount / (breakdown.total or 1.0)) for _, label, amount in breakdown.present]
    if breakdown.brief:
        yield from _wrapped(f"{breakdown.brief} {', '.join(f'{label} {text}' for label, text, _ in parts)}")
        yield from _wrapped(breakdown.caption)
        return
    wide, long = max(len(label) for label, _, _ in parts), max(len(text) for _, text, _ in parts)
    room = min(_BAR, sheet_width() - wide - long - 14)  # what margins, gaps and percentages leave
    for label, text, share in parts:
        yield f"    {label:<{wide}}  {text:>{long}}  {share:6.1%}  {eighths(share, max(room, 0))}".rstrip()
    yield from _wrapped(breakdown.caption)


def _bars(bars: Bars) -> Iterator[str]:
    most = max((row.amount for row in bars.rows if row.amount is not None), default=0.0) or 1.0
    wide = min(max(len(row.label) for row in bars.rows), _LABEL)
    amounts = [digits(row.amount, bars.unit) + _far(row, bars, index) for index, row in enumerate(bars.rows) if row.amount is not None]
    room = min(_BAR, sheet_width() - wide - max(map(len, amounts), default=0) - 10)  # what margins, gaps and the frame leave
    for index, row in enumerate(bars.rows):
        if row.amount is None:
            yield from _wrapped(f"{row.label}: none, {row.fault}")
            continue
        yield _bar(row.label, wide, row.amount / most, room, f"{digits(row.amount, bars.unit)}{_far(row, bars, index)}")
        yield from _bar_lines(row, wide)


def _far(row: Bar, bars: Bars, index: int) -> str:
    """How far an amount is above the best, of all but the first."""
    return above(row.amount, bars.best) if index and not row.fault and row.amount is not None else ""


def _bar_lines(row: Bar, wide: int) -> list[str]:
    text = f"but {row.fault}" if row.fault else row.detail
    return _wrapped(text, " " * (wide + 7)) if text else []


def _timeline(timeline: Timeline) -> Iterator[str]:
    """A bar for each track, those in a row that look alike as one."""
    fills = _FILLS if len(timeline.kinds) <= len(_FILLS) else _LETTERS
    yield from _wrapped("  ".join(f"{fill} {kind}" for fill, kind in zip(fills, timeline.kinds, strict=False)))
    found = [(track.label, _filled(track, timeline.until, fills), track.shown) for track in timeline.tracks]
    groups = [list(group) for _, group in groupby(found, key=lambda row: (_numbered(row[0]), row[1:]))]
    labels = [_together([label for label, _, _ in group]) for group in groups]
    wide = max(map(len, labels))
    for label, group in zip(labels, groups, strict=True):
        _, bar, shown = group[0]
        yield f"    {label:<{wide}}  |{bar:<{_BAR}}|  {shown}".rstrip()
    yield from _wrapped(timeline.description)


def _numbered(label: str) -> str:
    """What stands before the number of a label; all of one without."""
    stem, _, number = label.rpartition(" ")
    return stem if stem and number[:1].isdecimal() else label


def _together(labels: Sequence[str]) -> str:
    """The first and the last, and the word that both begin with once."""
    (stem, _, first), (_, _, last) = labels[0].partition(" "), labels[-1].partition(" ")
    return labels[0] if len(labels) == 1 else f"{stem}s {first} to {last}"


def _filled(track: "Track", until: float, fills: str) -> str:
    """What is done in each part of the time, the upper lane where several do something."""
    scale, cells = (_BAR / until if until else 0.0), [" "] * _BAR
    for part in sorted(track.segments, key=lambda segment: -segment.lane):
        for cell in range(round(part.start * scale), round(part.end * scale)):
            cells[min(cell, _BAR - 1)] = fills[part.colour % len(fills)]
    return "".join(cells)


# --- tables --------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Cells:
    """A column with the letters that it takes; its first cell is its head."""

    texts: tuple[str, ...]
    number: bool
    width: int

    def lines(self, row: int) -> list[str]:
        """A cell in as many lines as it needs."""
        lines = wrap(self.texts[row], self.width, break_on_hyphens=False) or [""]
        return [f"{line:>{self.width}}" if self.number else f"{line:<{self.width}}" for line in lines]


def _table(table: Table) -> Iterator[str]:
    """Columns beside each other; long words that have no room there stand below their rows."""
    if not table.most:
        return
    columns = [_cells(column, table.most) for column in table.columns]
    if not any(column.head for column in table.columns):
        yield from _pairs(*table.columns)
        return
    below = list[_Cells]()
    while _taken(columns) > _room() and (long := [column for column in columns[1:] if not column.number and column.width > _LONG]):
        widest = max(long, key=lambda column: column.width)
        left = widest.width - (_taken(columns) - _room())
        if left >= _LONG and widest.width <= 2 * left:  # which two lines of it hold
            columns[columns.index(widest)] = replace(widest, width=left)
            break
        below.append(widest)
        columns.remove(widest)
    yield from _grid(columns, below)
    yield from _wrapped(table.caption)


def _pairs(names: Column, texts: Column) -> Iterator[str]:
    """Words behind names, over as many lines as they need; below them where a terminal has no room beside."""
    wide = min(max(map(len, names.texts)) + _GAP, sheet_width() // 2)
    for name, text in zip(names.texts, texts.texts, strict=True):
        yield from _hung(f"    {name:<{wide}}", text)


def _cells(column: Column, most: int) -> _Cells:
    texts = column.texts[:most]
    return _Cells((column.head, *texts), bool(column.exact), max([*map(len, texts), *map(len, column.head.split())], default=0))


def _taken(columns: Sequence[_Cells]) -> int:
    return sum(column.width + _GAP for column in columns) - _GAP


def _grid(columns: Sequence[_Cells], below: Sequence[_Cells]) -> Iterator[str]:
    """The rows; names are broken, and columns go on in a further table, where there is no room for all."""
    first, count = columns[0], len(columns)
    width = max(first.width + min(_room() - _taken(columns), 0), min(first.width, _NARROW))
    first = replace(first, width=width)
    while count > 2 and _taken([first, *columns[1:count]]) > _room():
        count -= 1
    shown = [first, *columns[1:count]]
    margin = " " * (4 if _taken(shown) + 4 <= sheet_width() else 2)
    for row in range(len(first.texts)):
        cells = [column.lines(row) for column in shown]
        high = max(map(len, cells))
        if row or any(column.texts[0] for column in shown):
            for line in range(high):
                parts = (
                    _line(cell, line - (0 if row else high - len(cell)), column.width) for cell, column in zip(cells, shown, strict=True)
                )
                yield f"{margin}{(' ' * _GAP).join(parts)}".rstrip()
        for column in below if row else ():
            yield from _wrapped(column.texts[row], f"{margin}    ")
    if count < len(columns):
        yield ""
        yield from _grid([columns[0], *columns[count:]], ())


def _line(cell: Sequence[str], line: int, width: int) -> str:
    """A line of a cell; heads stand low, all others high."""
    return cell[line] if 0 <= line < len(cell) else " " * width


# Several answers to one question beside each other, over the best bound.


@dataclass(frozen=True, slots=True)
class Compared:
    """An answer or a baseline; without a bound or seconds if unknown."""

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
        names("", ("; ".join(text for text in (row.bar.fault, row.bar.detail) if text) for row in rows)),
    )
    table = Table(tuple(column for column in columns if any(column.texts)))
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
