"""Bars and columns, each one picture with a title and a description: parts of a whole, shares of limits, the same parts of several."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from crossopt.reports.drawing.axes import LABEL, Frame, Scale, above, limit_line, names_below, round_steps
from crossopt.reports.drawing.svg import Titles, beside, box, hue, letter, line, picture, shortened, text_line, widest, width_of

_ROW, _TALL_ROW = 34.0, 40.0
_LABEL = 1.0
"""Where names begin: a capital T reaches a little to the left of where it stands."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a whole, with its amount in words."""

    label: str
    value: float
    shown: str
    place: int
    """Which letter and colour it has: the same for the same thing in all pictures of a section."""


@dataclass(frozen=True, slots=True)
class Row:
    """A bar with words at its end; `note` is what a reader must not miss."""

    label: str
    value: float
    shown: str
    note: str = ""


def stacked(titles: Titles, parts: Sequence[Part], whole: float = 0.0) -> str:
    """One bar cut into parts, of a whole that may be more than their sum; each part has its letter where there is room, and its name
    where there is more. Shares are those of the sum, as the tables beside it tell them."""
    used = sum(part.value for part in parts)
    total, body, x = max(used, whole), [box(0.0, 1.0, titles.width, 42.0, "track")], 0.0
    for part in parts:
        width = titles.width * part.value / total if total > 0.0 else 0.0
        body.append(box(x, 1.0, width, 42.0, f"{hue(part.place)} cut", tip=f"{part.label}: {part.shown}"))
        body += _inside(x, width, letter(part.place), f"{part.label} {part.value / used:.0%}" if used > 0.0 else part.label)
        x += width
    left = titles.width - x
    body += [text_line(x + left / 2.0, 26.0, "free", "t", "middle")] if left > width_of("free") + 8.0 else []
    return picture(titles, 44.0, body)


def _inside(x: float, width: float, sign: str, label: str) -> list[str]:
    whole = f"{sign}  {label}"
    text = whole if width_of(whole) + 12.0 <= width else sign if width_of(sign) + 4.0 <= width else ""
    return [text_line(x + width / 2.0, 26.0, text, "on", "middle")] if text else []


def bars(titles: Titles, rows: Sequence[Row], limit: float, mark: str = "") -> str:
    """Bars from zero with words at their ends, or above them where there is no room beside, and a line at the limit."""
    if titles.narrow:
        return _below_text(titles, rows, limit, mark)
    end = widest(f"{row.shown}   {row.note}" for row in rows) + 8.0
    label = min(widest(row.label for row in rows) + 12.0, LABEL)
    most = max(limit, *(row.value for row in rows))
    room, top = titles.width - label - end - 8.0, 16.0 if mark else 2.0
    scale = room / most if most > 0.0 else 0.0
    body = list[str]()
    for place, row in enumerate(rows):
        y = top + place * _ROW
        body.append(text_line(_LABEL, y + 20.0, shortened(row.label, label - 8.0)))
        body.append(box(label, y + 6.0, limit * scale, 20.0, "track", 3.0))
        body.append(box(label, y + 6.0, row.value * scale, 20.0, "k1" if row.note else "k0", 3.0, f"{row.label}: {row.shown}"))
        body.append(text_line(label + room + 10.0, y + 20.0, row.shown, "t n"))
        body += [text_line(titles.width, y + 20.0, row.note, "t b", "end")] if row.note else []
    bottom = top + len(rows) * _ROW
    body += limit_line(label + limit * scale, (top, bottom), mark)
    return picture(titles, bottom + 2.0, body)


def _below_text(titles: Titles, rows: Sequence[Row], limit: float, mark: str) -> str:
    """The same in little room: each bar below its words."""
    most, top, body = max(limit, *(row.value for row in rows)), 16.0 if mark else 2.0, list[str]()
    scale = (titles.width - 2.0) / most if most > 0.0 else 0.0
    for place, row in enumerate(rows):
        y, told = top + place * _TALL_ROW, f"{row.shown}   {row.note}".rstrip()
        body.append(text_line(_LABEL, y + 14.0, shortened(row.label, titles.width - width_of(told) - 10.0)))
        body.append(text_line(titles.width, y + 14.0, told, "t b" if row.note else "t n", "end"))
        body.append(box(0.0, y + 19.0, limit * scale, 14.0, "track", 3.0))
        body.append(box(0.0, y + 19.0, row.value * scale, 14.0, "k1" if row.note else "k0", 3.0, f"{row.label}: {row.shown}"))
        body += limit_line(limit * scale, (y + 17.0, y + 35.0))
    body += [above(limit * scale, mark, width=titles.width)] if mark else []
    return picture(titles, top + len(rows) * _TALL_ROW, body)


# --- columns -------------------------------------------------------------------------------------------------------------------------

_TOP, _HEIGHT, _LEFT = 22.0, 230.0, 64.0
_BOTTOM: Final = _TOP + _HEIGHT


@dataclass(frozen=True, slots=True)
class Units:
    """The words of an axis: what it counts, how much one of it is, and what the line at the limit is called."""

    axis: str
    one: float
    limit: str
    below: str


def columns(titles: Titles, names: Sequence[str], parts: Sequence[tuple[str, Sequence[float]]], limit: float, units: Units) -> str:
    """A stacked column for each name, in all of which the parts lie in one order, with a line at the limit.

    Parts are named once, beside the last column.
    """
    most = max(limit, *(sum(values[place] for _, values in parts) for place in range(len(names)))) * 1.04
    step = min((titles.width - _LEFT - (widest(label for label, _ in parts) + 40.0)) / len(names), 90.0)
    frame = Frame(Scale(0.0, len(names), _LEFT, step * len(names)), Scale(0.0, most, _TOP, _HEIGHT, upward=True))
    body = [text_line(0.0, 11.0, units.axis, "m"), text_line(_LEFT, _BOTTOM + 36.0, units.below, "m")]
    for tick in round_steps(0.0, most / units.one, 5):
        body += frame.row(tick * units.one, f"{tick:g}")
    tops, middles = [_BOTTOM] * len(names), list[float]()
    for kind, (label, values) in enumerate(parts):
        for place, value in enumerate(values):
            height = value * (_HEIGHT / most)
            tops[place] -= height
            body.append(
                box(
                    _LEFT + step * (place + 0.1),
                    tops[place],
                    step * 0.8,
                    height,
                    f"{hue(kind)} cut",
                    tip=f"{names[place]}: {label} {value / units.one:.4g} {units.axis}",
                )
            )
        middles.append(tops[-1] + height / 2.0)
    body += _named([label for label, _ in parts], middles, _LEFT + step * (len(names) - 0.1))
    body += names_below(names, _LEFT, step, _BOTTOM)
    y = frame.y(limit)
    body.append(line([(_LEFT, y), (frame.across.end, y)], "mark"))
    body.append(text_line(_LEFT + 4.0, y - 5.0, units.limit, "t b"))
    return picture(titles, frame.height, body)


def _named(labels: Sequence[str], middles: Sequence[float], x: float) -> Iterator[str]:
    """Letters and names of the parts beside the last column, with lines to what they name."""
    for kind, y in beside(middles, 15.0, _TOP + 6.0, _BOTTOM - 4.0):
        yield line([(x + 1.0, middles[kind]), (x + 14.0, y)], f"pointer {hue(kind)}-line")
        yield text_line(x + 18.0, y + 4.0, f"{letter(kind)}  {labels[kind]}")
