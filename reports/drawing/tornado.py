"""A tornado: for each thing that may differ how far a figure moves to either side, the one that moves it most on top."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from crossopt.reports.drawing.axes import round_steps, upright
from crossopt.reports.drawing.svg import Titles, box, line, picture, shortened, spot, widest, words

_ROW, _TALL_ROW, _TOP = 30.0, 42.0, 34.0
_NAMES: Final = 170.0


@dataclass(frozen=True, slots=True)
class Tip:
    """Where a figure ends on one side, in words too; None where it ends nowhere."""

    value: float | None
    shown: str
    square: bool
    """A tip with a square has another answer, one with a circle the same."""


@dataclass(frozen=True, slots=True)
class Swing:
    """One thing with its two tips, as they are listed."""

    label: str
    tips: tuple[Tip, Tip]


def tornado(titles: Titles, swings: Sequence[Swing], centre: float, axis: str) -> str:
    """Bars around the centre with a mark at each tip, and words beside them. A tip that is nowhere is told at the end of the row."""
    known = [tip.value for swing in swings for tip in swing.tips if tip.value is not None]
    low, high = min([centre, *known]), max([centre, *known])
    label = 0.0 if titles.narrow else min(widest(swing.label for swing in swings) + 12.0, _NAMES)
    row = _TALL_ROW if titles.narrow else _ROW
    room = [widest(tip.shown for swing in swings for tip in swing.tips) + 14.0] * 2
    left, right = label + room[0], titles.width - room[1]
    scale = (right - left) / (high - low) if high > low else 0.0
    bottom = _TOP + row * len(swings)
    body = [words(0.0 if titles.narrow else left, 11.0, axis, "m")]
    for tick in round_steps(low, high, 2 if titles.narrow else 4) if high > low else ():
        body += upright(left + (tick - low) * scale, (_TOP - 4.0, bottom), f"{tick:g}", 15.0)
    for place, swing in enumerate(swings):
        y, room_of_name = _TOP + row * place, titles.width if titles.narrow else label - 8.0
        body.append(words(0.0, y + (9.0 if titles.narrow else 19.0), shortened(swing.label, room_of_name)))
        body += _row(swing, centre, y + row - _ROW, lambda value: left + (value - low) * scale)
    at = left + (centre - low) * scale
    body += [line([(at, _TOP - 6.0), (at, bottom)], "mark"), words(at, _TOP - 10.0, "as stated", "t b", "middle")]
    return picture(titles, bottom + 22.0, body)


def _row(swing: Swing, centre: float, y: float, at: Callable[[float], float]) -> Iterator[str]:
    there = [(at(tip.value), tip.square) for tip in swing.tips if tip.value is not None]
    ends = [at(centre), *(x for x, _ in there)]
    yield box(min(ends), y + 7.0, max(ends) - min(ends), 16.0, "k0", 2.0, f"{swing.label}: {swing.tips[0].shown}, {swing.tips[1].shown}")
    for x, square in there:
        yield spot(x, y + 15.0, 4.5, "k1", square)
    lower, upper = sorted(swing.tips, key=lambda tip: float("inf") if tip.value is None else tip.value)
    yield words(min(ends) - 8.0, y + 19.0, lower.shown, "t n", "end")
    yield words(max(ends) + 8.0, y + 19.0, upper.shown, "t n")
