"""Axes of pictures, written once for all, and tracks below each other that show what is done when."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil, floor, inf, log10
from typing import Final

from crossopt.crossflow.records import dataclass
from crossopt.reports.drawing import svg

# Axes of pictures, written once for all: where figures stand, round ticks with their lines and words, and marks at limits.

LABEL: Final = 190.0
"""Room for labels at the left of rows, at the most."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Scale:
    """Figures between two ends in so many pixels from the left or, upward, from the top; of a tenfold one the ends are powers of ten."""

    low: float
    high: float
    start: float
    room: float
    upward: bool = False
    tenfold: bool = False
    plus: float = 0.0
    """Added to figures of a tenfold scale, so that zero has a place on it, and small ones more room than large ones."""

    @property
    def end(self) -> float:
        return self.start + self.room

    def at(self, value: float) -> float:
        """Where a figure stands; where steps are tenfold, a positive one."""
        value = log10(value + self.plus) if self.tenfold else value
        part = self.high - value if self.upward else value - self.low
        return self.start + self.room * part / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Frame:
    """A scale across and one upward, with room for words at the left of it and below."""

    across: Scale
    upward: Scale

    def x(self, value: float) -> float:
        return self.across.at(value)

    def y(self, value: float) -> float:
        return self.upward.at(value)

    def at(self, pair: Point) -> Point:
        return self.x(pair[0]), self.y(pair[1])

    def row(self, value: float, text: str) -> list[str]:
        """A level line at a figure with words at its left."""
        y = self.y(value)
        return [
            svg.line([(self.across.start, y), (self.across.end, y)], "grid"),
            svg.text_line(self.across.start - 8.0, y + 4.0, text, "m n", "end"),
        ]

    def column(self, value: float, text: str) -> list[str]:
        """An upright line at a figure with words below."""
        return upright(self.x(value), (self.upward.start, self.upward.end), text, 18.0)

    def named(self, axes: tuple[str, str]) -> list[str]:
        """What the axes count, across and upward."""
        middle = self.across.start + self.across.room / 2.0
        return [svg.text_line(2.0, 11.0, axes[1], "m"), svg.text_line(middle, self.upward.end + 36.0, axes[0], "m", "middle")]

    @property
    def height(self) -> float:
        """Of a picture with words below."""
        return self.upward.end + 42.0


def ends_of(values: Sequence[float], share: float, alone: float) -> tuple[float, float]:
    """The ends of a scale with a share of its length beyond the figures, and of the greatest figure where all read the same: ticks have
    six digits or more, and closer ones would say the same and lie on each other."""
    length, greatest = max(values) - min(values), abs(max(values))
    margin = (length * share if length > 5e-5 * greatest else 0.0) or greatest * alone or 1.0
    return min(values) - margin, max(values) + margin


# --- ticks ---------------------------------------------------------------------------------------------------------------------------


def round_steps(low: float, high: float, count: int) -> list[float]:
    """About so many round numbers from low to high: 1, 2 or 5 times a power of ten apart."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * 0.999999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def tenfold_steps(low: float, high: float, factors: Sequence[float] = (1.0,), most: float = inf) -> list[float]:
    """These multiples of powers of ten between two powers; every second, third and so on alone where that many powers are too many."""
    first, last = ceil(low), floor(high)
    stride = max(1, ceil((last - first + 1) / most))
    powers = range(first - 1, last + 1) if stride == 1 else range(-(-first // stride) * stride, last + 1, stride)
    steps = [float(f"{factor * 10.0**power:.6g}") for power in powers for factor in factors]
    return [step for step in steps if low <= log10(step) <= high]


# --- lines and words -----------------------------------------------------------------------------------------------------------------


def upright(x: float, ends: tuple[float, float], text: str, below: float) -> list[str]:
    """An upright line between two heights with words so far below it."""
    return [svg.line([(x, ends[0]), (x, ends[1])], "grid"), svg.text_line(x, ends[1] + below, text, "m n", "middle")]


def limit_line(x: float, ends: tuple[float, float], text: str = "", width: float = svg.WIDTH) -> list[str]:
    """An upright line at a limit, with words above it if there are any, inside a picture of this width."""
    return [svg.line([(x, ends[0]), (x, ends[1])], "mark"), *([above(x, text, width=width)] if text else [])]


def above(x: float, text: str, y: float = 11.0, width: float = svg.WIDTH) -> str:
    """Words in the middle above a place, but inside the picture."""
    half = svg.width_of(text) / 2.0
    return svg.text_line(min(max(x, half), width - half), y, text, "m", "middle")


def names_below(names: Sequence[str], left: float, step: float, bottom: float) -> Iterator[str]:
    """Names of columns of one width, as many as there is room for."""
    every = ceil((svg.widest(names) + 6.0) / step)
    for column in range(0, len(names), every):
        yield svg.text_line(left + step * (column + 0.5), bottom + 17.0, names[column], "m", "middle")


def stairs(places: Sequence[Point]) -> list[Point]:
    """The corners of a line that goes across from each place until the next one, and there up or down."""
    corners = [places[0]]
    for (_, before), (x, y) in pairwise(places):
        corners += [(x, before), (x, y)]
    return corners


# What is done when, on tracks below each other: loads of devices, schedules, stages.

_TRACK: Final = 30.0
_NAMED: Final = 18.0
"""How much higher a track is whose name stands above it."""
_EDGE: Final = 6.0
"""Left and right of tracks that are as wide as their picture: half of the figures below stands there."""
_SEEN: Final = 1.0
"""Pixels that even the shortest mark is wide."""
_LETTER, _SMALL = 12.0, 9.0
"""Heights up to which a letter is small, and how small."""


@dataclass(frozen=True, slots=True)
class Segment:
    """From when to when something is done, and what: its letter and colour. Several lanes of a track lie above each other."""

    start: float
    end: float
    colour: int
    lane: int = 0
    lanes: int = 1
    low: bool = False
    """Half as high as its lane, to be distinct by more than its colour if a letter has no room."""


@dataclass(frozen=True, slots=True)
class Track:
    """What one device or stage does, with words at its end."""

    label: str
    segments: tuple[Segment, ...]
    shown: str


def timeline(titles: svg.Titles, tracks: Sequence[Track], until: float, axis: str, mark: str = "", kinds: Sequence[str] = ()) -> str:
    """Tracks below each other on one axis of time, with a line at its end; `kinds` are what segments say that they are. Names stand above
    their tracks where there is no room beside."""
    label, high = min(svg.widest(track.label for track in tracks) + 12.0, LABEL), _TRACK
    if above := titles.narrow and label > titles.width / 4.0:
        label, high = _EDGE, _TRACK + _NAMED
    room = titles.width - label - (2.0 * _EDGE if above else svg.widest(track.shown for track in tracks) + 18.0)
    scale, top = (room / until if until > 0.0 else 0.0), 18.0
    bottom = top + len(tracks) * high
    body = list[str]()
    for tick in round_steps(0.0, until, 3 if titles.narrow else 6):
        x, label_of_tick = label + tick * scale, f"{tick:g}"
        body += upright(x, (top, bottom), label_of_tick if x + svg.width_of(label_of_tick) / 2.0 <= titles.width else "", 15.0)
    body.append(svg.text_line(label + room / 2.0, bottom + 32.0, axis, "m", "middle"))
    for number, track in enumerate(tracks):
        y = top + number * high
        body += _label_above(track, y, titles) if above else _label_beside(track, y, label, label + room)
        for span in track.segments:
            lasts = f"{span.end - span.start:.5g} {axis.partition(' ')[0]} from {span.start:.5g}"
            body += _segment(span, label, y + high - _TRACK + 4.0, scale, f"{track.label}, {kinds[span.colour]}: {lasts}" if kinds else "")
    body += limit_line(label + until * scale, (top, bottom), mark, titles.width)
    return svg.picture(titles, bottom + 38.0, body)


def _label_beside(track: Track, y: float, label: float, end: float) -> Iterator[str]:
    yield svg.text_line(0.0, y + 19.0, svg.shortened(track.label, label - 8.0))
    yield svg.text_line(end + 12.0, y + 19.0, track.shown, "t n")


def _label_above(track: Track, y: float, titles: svg.Titles) -> Iterator[str]:
    right = titles.width - 3.0 * _EDGE
    yield svg.text_line(0.0, y + 15.0, svg.shortened(track.label, right - svg.width_of(track.shown) - 10.0))
    yield svg.text_line(right, y + 15.0, track.shown, "t n", "end")


def _segment(span: Segment, left: float, top: float, scale: float, tip: str) -> Iterator[str]:
    width, lane = (span.end - span.start) * scale, 22.0 / span.lanes
    height = lane / 2.0 if span.low else lane
    y = top + span.lane * lane + (lane - height) / 2.0
    kind = f"{svg.hue(span.colour)} cut" if width >= svg.OUTLINED else svg.hue(span.colour)
    yield svg.box(left + span.start * scale, y, max(width, _SEEN) if width > 0.0 else 0.0, height, kind, tip=tip)
    size = svg.SIZE if height > _LETTER else _SMALL
    if width >= svg.width_of(svg.letter(span.colour), size) + 6.0 and height >= _SMALL:
        yield svg.text_line(
            left + span.start * scale + width / 2.0, y + height / 2.0 + size / 3.0, svg.letter(span.colour), "on", "middle", size
        )
