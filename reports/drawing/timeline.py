"""What is done when, on tracks below each other: loads of devices, schedules, stages."""

from collections.abc import Iterator, Sequence
from typing import Final

from crossopt.crossflow.records import dataclass
from crossopt.reports.drawing.axes import LABEL, limit_line, round_steps, upright
from crossopt.reports.drawing.svg import OUTLINED, SIZE, Titles, box, hue, letter, picture, shortened, text_line, widest, width_of

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
    place: int
    lane: int = 0
    lanes: int = 1
    low: bool = False
    """Half as high as its lane, so that it is told from others by more than its colour where a letter has no room."""


@dataclass(frozen=True, slots=True)
class Track:
    """What one device or stage does, with words at its end."""

    label: str
    segments: tuple[Segment, ...]
    shown: str


def timeline(titles: Titles, tracks: Sequence[Track], until: float, axis: str, mark: str = "", kinds: Sequence[str] = ()) -> str:
    """Tracks below each other on one axis of time, with a line at its end; `kinds` are what segments say that they are. Names stand above
    their tracks where there is no room beside."""
    label, high = min(widest(track.label for track in tracks) + 12.0, LABEL), _TRACK
    if above := titles.narrow and label > titles.width / 4.0:
        label, high = _EDGE, _TRACK + _NAMED
    room = titles.width - label - (2.0 * _EDGE if above else widest(track.shown for track in tracks) + 18.0)
    scale, top = (room / until if until > 0.0 else 0.0), 18.0
    bottom = top + len(tracks) * high
    body = list[str]()
    for tick in round_steps(0.0, until, 3 if titles.narrow else 6):
        x, told = label + tick * scale, f"{tick:g}"
        body += upright(x, (top, bottom), told if x + width_of(told) / 2.0 <= titles.width else "", 15.0)
    body.append(text_line(label + room / 2.0, bottom + 32.0, axis, "m", "middle"))
    for number, track in enumerate(tracks):
        y = top + number * high
        body += _words_above(track, y, titles) if above else _words_beside(track, y, label, label + room)
        for one in track.segments:
            lasts = f"{one.end - one.start:.5g} {axis.partition(' ')[0]} from {one.start:.5g}"
            body += _segment(one, label, y + high - _TRACK + 4.0, scale, f"{track.label}, {kinds[one.place]}: {lasts}" if kinds else "")
    body += limit_line(label + until * scale, (top, bottom), mark, titles.width)
    return picture(titles, bottom + 38.0, body)


def _words_beside(track: Track, y: float, label: float, end: float) -> Iterator[str]:
    yield text_line(0.0, y + 19.0, shortened(track.label, label - 8.0))
    yield text_line(end + 12.0, y + 19.0, track.shown, "t n")


def _words_above(track: Track, y: float, titles: Titles) -> Iterator[str]:
    right = titles.width - 3.0 * _EDGE
    yield text_line(0.0, y + 15.0, shortened(track.label, right - width_of(track.shown) - 10.0))
    yield text_line(right, y + 15.0, track.shown, "t n", "end")


def _segment(one: Segment, left: float, top: float, scale: float, tip: str) -> Iterator[str]:
    width, lane = (one.end - one.start) * scale, 22.0 / one.lanes
    height = lane / 2.0 if one.low else lane
    y = top + one.lane * lane + (lane - height) / 2.0
    kind = f"{hue(one.place)} cut" if width >= OUTLINED else hue(one.place)
    yield box(left + one.start * scale, y, max(width, _SEEN) if width > 0.0 else 0.0, height, kind, tip=tip)
    size = SIZE if height > _LETTER else _SMALL
    if width >= width_of(letter(one.place), size) + 6.0 and height >= _SMALL:
        yield text_line(left + one.start * scale + width / 2.0, y + height / 2.0 + size / 3.0, letter(one.place), "on", "middle", size)
