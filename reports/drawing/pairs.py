"""Two positive figures of the same things against each other, where equal steps are equal factors, with a band around equality."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log10
from typing import Final

from crossopt.reports.drawing.axes import Frame, Scale, tenfold_steps
from crossopt.reports.drawing.svg import Titles, hue, line, picture, spot

_LEFT, _TOP, _TALL = 64.0, 22.0, 320.0
_MARGIN: Final = 1.15


@dataclass(frozen=True, slots=True)
class Pair:
    """Across and upward, of which group it is, whether its mark is a square, and what it says."""

    across: float
    upward: float
    place: int
    square: bool
    tip: str


def pairs_drawn(titles: Titles, pairs: Sequence[Pair], band: float, axes: tuple[str, str]) -> str:
    """The picture; `band` is a share of the figure across, and `axes` are across and upward."""
    values = [value for pair in pairs for value in (pair.across, pair.upward)]
    low, high = log10(min(values) / _MARGIN), log10(max(values) * _MARGIN)
    room = titles.width - _LEFT - 12.0
    frame = Frame(Scale(low, high, _LEFT, room, tenfold=True), Scale(low, high, _TOP, _TALL, upward=True, tenfold=True))
    factors = (1.0,) if high - low > 2.0 else (1.0, 2.0, 5.0)
    body = frame.named(axes)
    for tick in tenfold_steps(low, high, factors, 8):
        body += [*frame.row(tick, f"{tick:g}"), *frame.column(tick, f"{tick:g}")]
    ends = (10.0**low, 10.0**high)
    body += [line([frame.at((end, end)) for end in ends], "mark"), *_band(frame, ends, band)]
    for pair in pairs:
        body.append(spot(*frame.at((pair.across, pair.upward)), 3.5, f"{hue(pair.place)} cut fine", pair.square, pair.tip))
    return picture(titles, frame.height, body)


def _band(frame: Frame, ends: tuple[float, float], band: float) -> Iterator[str]:
    """The lines on which one figure is so much more or less than the other, as far as the frame goes."""
    low, high = ends
    yield line([frame.at((low, low * (1.0 + band))), frame.at((high / (1.0 + band), high))], "branch")
    yield line([frame.at((low / (1.0 - band), low)), frame.at((high, high * (1.0 - band)))], "branch")
