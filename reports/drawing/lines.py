"""Courses of a figure over named places: a line for each, with a shape and a name of its own, and rings round places that stand out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10
from typing import Final

from crossopt.reports.drawing.charts import WIDTH, Titles
from crossopt.reports.drawing.svg import box, dot, hue, line, picture, spread, width_of, words

_LEFT: Final = 64.0
_TOP: Final = 24.0
_HEIGHT: Final = 230.0
_RING: Final = 9.0


@dataclass(frozen=True, slots=True)
class Course:
    """Positive figures, None where there is none, and whether each place stands out."""

    label: str
    values: tuple[float | None, ...]
    rings: tuple[bool, ...]


def courses(titles: Titles, names: Sequence[str], lines: Sequence[Course], axes: tuple[str, str], ends: tuple[float, float]) -> str:
    """The courses over the names, on an axis between two ends where equal steps are equal factors; `axes` are across and upward."""
    side = max((width_of(one.label) for one in lines), default=0.0) + 26.0
    room = WIDTH - _LEFT - side
    step = room / len(names)
    low, high = log10(ends[0] * 0.94), log10(ends[1] * 1.06)

    def upward(value: float) -> float:
        return _TOP + _HEIGHT * (high - log10(value)) / (high - low)

    body = [words(0.0, 11.0, axes[1], "m"), words(_LEFT + room / 2.0, _TOP + _HEIGHT + 36.0, axes[0], "m", "middle")]
    for tick in _ticks(10.0**low, 10.0**high):
        y = upward(tick)
        body += [line([(_LEFT, y), (_LEFT + room, y)], "grid"), words(_LEFT - 8.0, y + 4.0, f"{tick:g}", "m n", "end")]
    body += _below(names, step)
    for place, one in enumerate(lines):
        ways = [(_LEFT + step * (at + 0.5), upward(value)) if value is not None else None for at, value in enumerate(one.values)]
        body += _course(place, ways, one.rings)
    body += _labels(lines, upward, _LEFT + room)
    return picture(titles.name, titles.title, titles.description, (WIDTH, _TOP + _HEIGHT + 42.0), body)


def _course(place: int, ways: Sequence[tuple[float, float] | None], rings: Sequence[bool]) -> Iterator[str]:
    """The line where it is whole, and its marks."""
    for before, after in pairwise(ways):
        if before is not None and after is not None:
            yield line([before, after], f"step {hue(place)}-line{' dashed' if place % 2 else ''}")
    for way, ring in zip(ways, rings, strict=True):
        if way is not None:
            yield _shape(place, *way)
            if ring:
                yield dot(*way, _RING, "mark")


def _shape(place: int, x: float, y: float) -> str:
    """Disc, square, triangle and diamond in turn."""
    kind = f"{hue(place)} cut"
    match place % 4:
        case 0:
            return dot(x, y, 4.5, kind)
        case 1:
            return box(x - 4.0, y - 4.0, 8.0, 8.0, kind)
        case 2:
            return line([(x, y - 5.5), (x + 5.5, y + 4.0), (x - 5.5, y + 4.0)], kind)
        case _:
            return line([(x, y - 6.0), (x + 6.0, y), (x, y + 6.0), (x - 6.0, y)], kind)


def _labels(lines: Sequence[Course], upward: Callable[[float], float], x: float) -> Iterator[str]:
    """Each course's shape and name beside its last figure."""
    known = [(place, upward(value)) for place, one in enumerate(lines) if (value := _last(one)) is not None]
    ordered = sorted(known, key=lambda pair: pair[1])
    for (place, _), y in zip(ordered, spread([y for _, y in ordered], 16.0, _TOP, _TOP + _HEIGHT), strict=True):
        yield _shape(place, x + 8.0, y)
        yield words(x + 18.0, y + 4.0, lines[place].label)


def _last(one: Course) -> float | None:
    return next((value for value in reversed(one.values) if value is not None), None)


def _below(names: Sequence[str], step: float) -> Iterator[str]:
    """Names of places, as many as there is room for."""
    every = ceil((max(width_of(name) for name in names) + 6.0) / step)
    for place in range(0, len(names), every):
        yield words(_LEFT + step * (place + 0.5), _TOP + _HEIGHT + 17.0, names[place], "m", "middle")


def _ticks(low: float, high: float) -> list[float]:
    """Round figures: the fewer powers of ten there are, the more of those between them."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    factors = (1.0, 2.0, 3.0, 5.0, 7.0) if high < 20.0 * low else (1.0, 2.0, 5.0) if len(powers) <= 4 else (1.0,)
    return [float(f"{factor * 10.0**power:.6g}") for power in powers for factor in factors if low <= factor * 10.0**power <= high]
