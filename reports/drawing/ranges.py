"""Rows of marks on one axis: the middle of several figures as a mark, their range as a line through it, and their words beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final

from crossopt.reports.drawing.charts import WIDTH, Titles, round_steps
from crossopt.reports.drawing.svg import box, dot, fitted, line, picture, shortened, width_of, words

_ROW: Final = 22.0
_LABEL: Final = 190.0
_RADIUS: Final = 4.5


@dataclass(frozen=True, slots=True)
class Mark:
    """A figure and its range; infinite where it never came."""

    middle: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Row:
    """A row with up to two marks, the first a disc and the second a square; without any it is a heading."""

    label: str
    marks: tuple[Mark, ...]
    shown: str


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    left: float
    room: float
    tenfold: bool

    def across(self, value: float) -> float:
        value = log10(max(value, 10.0**self.low)) if self.tenfold else value
        return self.left + self.room * (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        if self.tenfold:
            return [10.0**power for power in range(ceil(self.low), floor(self.high) + 1)]
        return round_steps(self.low, self.high, 5)


def ranges(titles: Titles, rows: Sequence[Row], axis: str, tenfold: bool) -> str:
    """The rows on one axis from zero, or on one where each step is tenfold; what never came stands beyond its end as a cross."""
    ends = [value for row in rows for mark in row.marks for value in (mark.middle, mark.least, mark.most) if value < float("inf")]
    label = min(max((width_of(row.label) for row in rows if row.marks), default=0.0) + 14.0, _LABEL)
    shown = max((width_of(row.shown) for row in rows), default=0.0) + 26.0
    plane = _axis(ends, label, WIDTH - label - shown, tenfold)
    bottom = 20.0 + _ROW * len(rows)
    body = [words(label, 11.0, axis, "m")]
    for tick in plane.ticks():
        x = plane.across(tick)
        body += [line([(x, 18.0), (x, bottom)], "grid"), words(x, bottom + 15.0, _tick(tick, tenfold), "m n", "middle")]
    for place, row in enumerate(rows):
        y = 20.0 + _ROW * (place + 0.5)
        body.append(
            words(0.0, y + 4.0, shortened(row.label, label - 10.0)) if row.marks else words(0.0, y + 4.0, fitted(row.label, WIDTH), "t b")
        )
        for number, mark in enumerate(row.marks):
            body += _drawn(plane, mark, y, number)
        body.append(words(WIDTH - 3.0, y + 4.0, row.shown, "t n", "end"))
    return picture(titles.name, titles.title, titles.description, (WIDTH, bottom + 22.0), body)


def _axis(ends: Sequence[float], left: float, room: float, tenfold: bool) -> _Axis:
    if not tenfold:
        return _Axis(0.0, max(ends, default=0.0) * 1.02 or 1.0, left + 8.0, room - 16.0, tenfold)
    known = [value for value in ends if value > 0.0] or [1.0]
    low, high = floor(log10(min(known))), ceil(log10(max(known)))
    return _Axis(float(low), float(max(high, low + 1)), left + 8.0, room - 16.0, tenfold)


def _drawn(plane: _Axis, mark: Mark, y: float, number: int) -> Iterator[str]:
    """The range and the mark; a cross beyond the end for what never came."""
    end = plane.left + plane.room + 10.0
    x, first, last = (plane.across(value) if value < float("inf") else end for value in (mark.middle, mark.least, mark.most))
    if last > first:
        yield line([(first, y), (last, y)], f"step k{number}-line")
    if x == end:
        yield line([(x - 4.0, y - 4.0), (x + 4.0, y + 4.0)], f"step k{number}-line")
        yield line([(x - 4.0, y + 4.0), (x + 4.0, y - 4.0)], f"step k{number}-line")
    elif number:
        yield box(x - _RADIUS, y - _RADIUS, 2.0 * _RADIUS, 2.0 * _RADIUS, f"k{number} cut")
    else:
        yield dot(x, y, _RADIUS, f"k{number} cut")


def _tick(value: float, tenfold: bool) -> str:
    return f"{value:g}" if tenfold else f"{value:.6g}"
