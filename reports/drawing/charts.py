"""Charts of a report, each one picture with a title and a description: parts of a whole, shares of limits, columns, steps over time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10
from typing import Final

from crossopt.reports.drawing.svg import box, dot, hue, letter, line, picture, shortened, spread, width_of, words

WIDTH: Final = 720.0
_ROW: Final = 34.0
LABEL: Final = 150.0


@dataclass(frozen=True, slots=True)
class Titles:
    """What a picture is called, and what it shows in words."""

    name: str
    """As no other picture of the page."""
    title: str
    description: str


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
    total, body, x = max(used, whole), [box(0.0, 1.0, WIDTH, 42.0, "track")], 0.0
    for part in parts:
        width = WIDTH * part.value / total if total > 0.0 else 0.0
        body.append(box(x, 1.0, width, 42.0, f"{hue(part.place)} cut"))
        body += _inside(x, width, letter(part.place), f"{part.label} {part.value / used:.0%}" if used > 0.0 else part.label)
        x += width
    left = WIDTH - x
    body += [words(x + left / 2.0, 26.0, "free", "t", "middle")] if left > width_of("free") + 8.0 else []
    return picture(titles.name, titles.title, titles.description, (WIDTH, 44.0), body)


def _inside(x: float, width: float, sign: str, label: str) -> list[str]:
    whole = f"{sign}  {label}"
    text = whole if width_of(whole) + 12.0 <= width else sign if width_of(sign) + 4.0 <= width else ""
    return [words(x + width / 2.0, 26.0, text, "on", "middle")] if text else []


def bars(titles: Titles, rows: Sequence[Row], limit: float, mark: str = "") -> str:
    """Bars from zero with words at their ends, and a line at the limit."""
    end = max(width_of(f"{row.shown}   {row.note}") for row in rows) + 8.0
    label = min(max(width_of(row.label) for row in rows) + 12.0, LABEL)
    most = max(limit, *(row.value for row in rows))
    room, top = WIDTH - label - end - 8.0, 16.0 if mark else 2.0
    scale = room / most if most > 0.0 else 0.0
    body = list[str]()
    for place, row in enumerate(rows):
        y = top + place * _ROW
        body.append(words(0.0, y + 20.0, shortened(row.label, label - 8.0)))
        body.append(box(label, y + 6.0, limit * scale, 20.0, "track", 3.0))
        body.append(box(label, y + 6.0, row.value * scale, 20.0, "k1" if row.note else "k0", 3.0))
        body.append(words(label + room + 10.0, y + 20.0, row.shown, "t n"))
        body += [words(WIDTH, y + 20.0, row.note, "t b", "end")] if row.note else []
    bottom = top + len(rows) * _ROW
    body.append(line([(label + limit * scale, top), (label + limit * scale, bottom)], "mark"))
    body += [words(*kept_inside(label + limit * scale, mark), mark, "m", "middle")] if mark else []
    return picture(titles.name, titles.title, titles.description, (WIDTH, bottom + 2.0), body)


def kept_inside(x: float, text: str) -> tuple[float, float]:
    """Where a centred word stands above a line without leaving the picture."""
    half = width_of(text) / 2.0
    return min(max(x, half), WIDTH - half), 11.0


# --- columns -------------------------------------------------------------------------------------------------------------------------

_TOP, _HEIGHT, _AXIS = 22.0, 230.0, 64.0


def columns(titles: Titles, names: Sequence[str], parts: Sequence[tuple[str, Sequence[float]]], limit: float, units: "Units") -> str:
    """A stacked column for each name, in all of which the parts lie in one order, with a line at the limit.

    Parts are named once, beside the last column.
    """
    heights = [sum(values[place] for _, values in parts) for place in range(len(names))]
    most = max(limit, *heights) * 1.04
    side = max((width_of(label) for label, _ in parts), default=0.0) + 40.0
    room, scale = WIDTH - _AXIS - side, _HEIGHT / most
    step = min(room / len(names), 90.0)
    room = step * len(names)
    floor_of, ends = [_TOP + _HEIGHT] * len(names), list[float]()
    body = list(_upward(most, scale, room, units))
    for kind, (_, values) in enumerate(parts):
        for place, value in enumerate(values):
            height = value * scale
            floor_of[place] -= height
            body.append(box(_AXIS + step * (place + 0.1), floor_of[place], step * 0.8, height, f"{hue(kind)} cut"))
        ends.append(floor_of[-1] + values[-1] * scale / 2.0)
    body += _named(parts, ends, _AXIS + step * (len(names) - 0.1))
    body += _below(names, step)
    y = _TOP + _HEIGHT - limit * scale
    body.append(line([(_AXIS, y), (_AXIS + room, y)], "mark"))
    body.append(words(_AXIS + 4.0, y - 5.0, units.limit, "t b"))
    return picture(titles.name, titles.title, titles.description, (WIDTH, _TOP + _HEIGHT + 42.0), body)


@dataclass(frozen=True, slots=True)
class Units:
    """The words of an axis: what it counts, how much one of it is, and what the line at the limit is called."""

    axis: str
    one: float
    limit: str
    below: str


def _named(parts: Sequence[tuple[str, Sequence[float]]], ends: Sequence[float], x: float) -> Iterator[str]:
    """Letters and names of the parts beside the last column, with lines to what they name."""
    order = sorted(range(len(ends)), key=lambda kind: ends[kind])
    places = spread([ends[kind] for kind in order], 15.0, _TOP + 6.0, _TOP + _HEIGHT - 4.0)
    for kind, y in zip(order, places, strict=True):
        yield line([(x + 1.0, ends[kind]), (x + 14.0, y)], f"pointer {hue(kind)}-line")
        yield words(x + 18.0, y + 4.0, f"{letter(kind)}  {parts[kind][0]}")


def _below(names: Sequence[str], step: float) -> Iterator[str]:
    """Names of columns, as many as there is room for."""
    every = ceil((max(width_of(name) for name in names) + 6.0) / step)
    for place in range(0, len(names), every):
        yield words(_AXIS + step * (place + 0.5), _TOP + _HEIGHT + 17.0, names[place], "m", "middle")


def _upward(most: float, scale: float, room: float, units: Units) -> Iterator[str]:
    """Lines at round amounts."""
    yield words(0.0, 11.0, units.axis, "m")
    yield words(_AXIS, _TOP + _HEIGHT + 36.0, units.below, "m")
    for tick in round_steps(0.0, most / units.one, 5):
        y = _TOP + _HEIGHT - tick * units.one * scale
        yield line([(_AXIS, y), (_AXIS + room, y)], "grid")
        yield words(_AXIS - 8.0, y + 4.0, f"{tick:g}", "m n", "end")


def round_steps(low: float, high: float, count: int) -> list[float]:
    """About so many round numbers from low to high: 1, 2 or 5 times a power of ten apart."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * 0.999999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


# --- steps over time -----------------------------------------------------------------------------------------------------------------

_PLOT, _LEFT = 190.0, 76.0


@dataclass(frozen=True, slots=True)
class Steps:
    """What was known when: (seconds, value), with a name at its end."""

    label: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class _Plane:
    """Where moments and values lie in the picture."""

    until: float
    low: float
    high: float
    room: float

    def across(self, time: float) -> float:
        return _LEFT + self.room * time / self.until

    def upward(self, value: float) -> float:
        return _TOP + _PLOT * (self.high - value) / (self.high - self.low)


def steps(titles: Titles, series: Sequence[Steps], until: float, axes: tuple[str, str]) -> str:
    """Values that hold until the next one, each series with a line of its own and its name at the end; `axes` are across and upward."""
    values = [value for one in series for _, value in one.points]
    margin = (max(values) - min(values)) * 0.06 or abs(max(values)) * 0.01 or 1.0
    side = max(width_of(one.label) for one in series) + 14.0
    plane = _Plane(until, min(values) - margin, max(values) + margin, WIDTH - _LEFT - side)
    body = [words(0.0, 11.0, axes[1], "m"), *_plane_ticks(plane)]
    body.append(words(_LEFT + plane.room / 2.0, _TOP + _PLOT + 36.0, axes[0], "m", "middle"))
    order = sorted(range(len(series)), key=lambda place: -series[place].points[-1][1])
    heights = spread([plane.upward(series[place].points[-1][1]) for place in order], 16.0, _TOP, _TOP + _PLOT)
    for place, y in zip(order, heights, strict=True):
        way = _way(plane, series[place].points)
        body.append(line(way, f"step {hue(place)}-line{' dashed' if place else ''}"))
        body.append(dot(*way[-1], 3.5, hue(place)))
        body.append(words(_LEFT + plane.room + 8.0, y + 4.0, series[place].label))
    return picture(titles.name, titles.title, titles.description, (WIDTH, _TOP + _PLOT + 42.0), body)


def _way(plane: _Plane, points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The corners of the steps, on to the end of the picture."""
    way = [(plane.across(points[0][0]), plane.upward(points[0][1]))]
    for (_, before), (time, after) in pairwise(points):
        way += [(plane.across(time), plane.upward(before)), (plane.across(time), plane.upward(after))]
    return [*way, (_LEFT + plane.room, plane.upward(points[-1][1]))]


def _plane_ticks(plane: _Plane) -> Iterator[str]:
    for tick in round_steps(plane.low, plane.high, 4):
        y = plane.upward(tick)
        yield line([(_LEFT, y), (_LEFT + plane.room, y)], "grid")
        yield words(_LEFT - 8.0, y + 4.0, f"{tick:.7g}", "m n", "end")
    for tick in round_steps(0.0, plane.until, 6):
        yield words(plane.across(tick), _TOP + _PLOT + 18.0, f"{tick:g}", "m n", "middle")


# --- points --------------------------------------------------------------------------------------------------------------------------

_TALL: Final = 300.0


def points(titles: Titles, pairs: Sequence[tuple[float, float]], axes: tuple[str, str]) -> str:
    """Points of a front, numbered from 1 where there is room, and the corner lines beyond which designs are worse than one of them."""
    right, top = [_ends([pair[side] for pair in pairs]) for side in (0, 1)]
    room = WIDTH - _LEFT - 24.0
    places = [(_LEFT + room * (x - right[0]) / (right[1] - right[0]), _TOP + _TALL * (top[1] - y) / (top[1] - top[0])) for x, y in pairs]
    body = [words(0.0, 11.0, axes[1], "m"), words(_LEFT + room / 2.0, _TOP + _TALL + 36.0, axes[0], "m", "middle")]
    for tick in round_steps(*top, 5):
        y = _TOP + _TALL * (top[1] - tick) / (top[1] - top[0])
        body += [line([(_LEFT, y), (_LEFT + room, y)], "grid"), words(_LEFT - 8.0, y + 4.0, f"{tick:.6g}", "m n", "end")]
    for tick in round_steps(*right, 6):
        x = _LEFT + room * (tick - right[0]) / (right[1] - right[0])
        body += [line([(x, _TOP), (x, _TOP + _TALL)], "grid"), words(x, _TOP + _TALL + 18.0, f"{tick:.6g}", "m n", "middle")]
    corners = [places[0]]
    for (_, before), (x, y) in pairwise(places):
        corners += [(x, before), (x, y)]
    body.append(line(corners, "step k0-line dashed"))
    return picture(titles.name, titles.title, titles.description, (WIDTH, _TOP + _TALL + 42.0), [*body, *_numbered(places)])


def _ends(values: Sequence[float]) -> tuple[float, float]:
    margin = (max(values) - min(values)) * 0.06 or abs(max(values)) * 0.05 or 1.0
    return min(values) - margin, max(values) + margin


def _numbered(places: Sequence[tuple[float, float]]) -> Iterator[str]:
    """Marks with numbers, small ones without where they would lie on the last one with a number."""
    last: tuple[float, float] | None = None
    for number, (x, y) in enumerate(places, 1):
        if last and abs(x - last[0]) < 20.0 and abs(y - last[1]) < 20.0:
            yield dot(x, y, 4.0, "k0 cut")
            continue
        yield dot(x, y, 10.0, "k0 cut")
        yield words(x, y + 4.0, str(number), "on", "middle")
        last = (x, y)
