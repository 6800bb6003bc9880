"""A scatter plot as SVG text: two positive quantities on logarithmic axes with the diagonal and a band around it.

The text depends on the points only, so that a picture that has not changed gives the same bytes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import Final

_SIDE: Final = 520.0
_LEFT, _TOP, _BOTTOM, _ROW = 70.0, 40.0, 50.0, 18.0
_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6a00", "#555555")
"""Told apart by most colour-blind readers (Okabe and Ito 2008); the last is for all further series."""
_LONGEST: Final = 70
_MARGIN: Final = 1.15


@dataclass(frozen=True, slots=True)
class Series:
    """Points (x, y) of one kind, as full or as hollow circles."""

    label: str
    hollow: bool
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Labels:
    """The words of a plot: its title, what it shows for those who cannot see it, and its axes."""

    title: str
    description: str
    across: str
    upward: str


@dataclass(frozen=True, slots=True)
class _Scale:
    """One logarithmic scale for both axes."""

    low: float
    high: float

    def share(self, value: float) -> float:
        return (log10(value) - self.low) / (self.high - self.low)

    def across(self, value: float) -> float:
        return _LEFT + _SIDE * self.share(value)

    def upward(self, value: float) -> float:
        return _TOP + _SIDE * (1.0 - self.share(value))


def scatter(series: Sequence[Series], labels: Labels, band: float) -> str:
    """The plot, with a band of the share `band` on both sides of the diagonal."""
    scale = _scale([value for one in series for point in one.points for value in point])
    width, height = _LEFT + _SIDE + 20.0, _TOP + _SIDE + _BOTTOM + _ROW * (len(series) + 1)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img"'
            ' aria-labelledby="title description" font-family="sans-serif" font-size="12">',
            f'<title id="title">{escape(labels.title)}</title>',
            f'<desc id="description">{escape(labels.description)}</desc>',
            f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>',
            _text(_LEFT, _TOP - 16.0, labels.title, "start", size=14),
            *_frame(scale, band),
            _text(_LEFT + _SIDE / 2.0, _TOP + _SIDE + 38.0, labels.across, "middle"),
            f'<g transform="rotate(-90 18 {_TOP + _SIDE / 2.0:g})">{_text(18.0, _TOP + _SIDE / 2.0, labels.upward, "middle")}</g>',
            *(_circles(one, place, scale) for place, one in enumerate(series)),
            *_legend(series),
            "</svg>\n",
        ]
    )


def _scale(values: Sequence[float]) -> _Scale:
    if not values:
        return _Scale(0.0, 1.0)
    return _Scale(log10(min(values) / _MARGIN), log10(max(values) * _MARGIN))


def _frame(scale: _Scale, band: float) -> Iterator[str]:
    """The band, the diagonal, the axes and their ticks."""
    low, high = 10.0**scale.low, 10.0**scale.high
    corners = (
        (low, low * (1.0 + band)),
        (high / (1.0 + band), high),
        (high, high),
        (high, high * (1.0 - band)),
        (low / (1.0 - band), low),
        (low, low),
    )
    yield f'<polygon fill="#e8eef4" points="{" ".join(f"{scale.across(x):.1f},{scale.upward(y):.1f}" for x, y in corners)}"/>'
    yield f'<path d="M{_LEFT:g} {_TOP + _SIDE:g}L{_LEFT + _SIDE:g} {_TOP:g}" stroke="#888"/>'
    yield f'<rect x="{_LEFT:g}" y="{_TOP:g}" width="{_SIDE:g}" height="{_SIDE:g}" fill="none" stroke="#333"/>'
    for tick in _ticks(scale):
        x, y = scale.across(tick), scale.upward(tick)
        yield f'<path d="M{x:.1f} {_TOP + _SIDE:g}v5M{_LEFT:g} {y:.1f}h-5" stroke="#333"/>'
        yield _text(x, _TOP + _SIDE + 18.0, f"{tick:g}", "middle")
        yield _text(_LEFT - 8.0, y + 4.0, f"{tick:g}", "end")


def _ticks(scale: _Scale) -> list[float]:
    """Powers of ten; with 2 and 5 times them where there are few."""
    powers = range(floor(scale.low), ceil(scale.high) + 1)
    factors = (1.0,) if scale.high - scale.low > 3.0 else (1.0, 2.0, 5.0)
    ticks = [factor * 10.0**power for power in powers for factor in factors]
    return [tick for tick in ticks if scale.low <= log10(tick) <= scale.high]


def _circles(one: Series, place: int, scale: _Scale) -> str:
    circles = "".join(f'<circle cx="{scale.across(x):.1f}" cy="{scale.upward(y):.1f}" r="3"/>' for x, y in one.points)
    return f"<g {_look(one, place)}>{circles}</g>"


def _look(one: Series, place: int) -> str:
    colour = _COLOURS[min(place, len(_COLOURS) - 1)]
    return f'fill="none" stroke="{colour}"' if one.hollow else f'fill="{colour}" fill-opacity="0.6"'


def _legend(series: Sequence[Series]) -> Iterator[str]:
    for place, one in enumerate(series):
        y = _TOP + _SIDE + _BOTTOM + _ROW * (place + 0.5)
        yield f'<circle cx="{_LEFT + 6.0:g}" cy="{y - 4.0:g}" r="4" {_look(one, place)}/>'
        yield _text(_LEFT + 18.0, y, one.label if len(one.label) <= _LONGEST else f"{one.label[: _LONGEST - 3]}...", "start")


def _text(x: float, y: float, text: str, anchor: str, size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#222">{escape(text)}</text>'
