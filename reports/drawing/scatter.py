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
"""Told apart by most colour-blind readers (Okabe and Ito 2008; olive and grey for their yellow and black)."""
_SHAPES: Final = (
    "",
    "M{west:.1f} {north:.1f}H{east:.1f}V{south:.1f}H{west:.1f}Z",
    "M{x:.1f} {north:.1f}L{east:.1f} {south:.1f}H{west:.1f}Z",
    "M{x:.1f} {north:.1f}L{east:.1f} {y:.1f}L{x:.1f} {south:.1f}L{west:.1f} {y:.1f}Z",
)
"""Circle, square, triangle and diamond: each for as many series as there are colours; from the 33rd series on they come again."""
_MOST_TICKS: Final = 8
_LONGEST: Final = 70
_MARGIN: Final = 1.15


@dataclass(frozen=True, slots=True)
class Series:
    """Points (x, y) of one kind, as full or as hollow marks."""

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
            *(_marks(one, place, scale) for place, one in enumerate(series)),
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
    """Powers of ten, or of a hundred and so on where there are too many; with 2 and 5 times them where there are few."""
    first, last = ceil(scale.low), floor(scale.high)
    stride = max(1, ceil((last - first + 1) / _MOST_TICKS))
    powers = range(first - 1, last + 1) if stride == 1 else range(-(-first // stride) * stride, last + 1, stride)
    factors = (1.0,) if scale.high - scale.low > 3.0 else (1.0, 2.0, 5.0)
    ticks = [factor * 10.0**power for power in powers for factor in factors]
    return [tick for tick in ticks if scale.low <= log10(tick) <= scale.high]


def _marks(one: Series, place: int, scale: _Scale) -> str:
    return f"<g {_look(one, place)}>{''.join(_mark(place, scale.across(x), scale.upward(y), 3.0) for x, y in one.points)}</g>"


def _mark(place: int, x: float, y: float, size: float) -> str:
    shape = _SHAPES[place // len(_COLOURS) % len(_SHAPES)]
    if not shape:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:g}"/>'
    return f'<path d="{shape.format(x=x, y=y, west=x - size, east=x + size, north=y - size, south=y + size)}"/>'


def _look(one: Series, place: int) -> str:
    colour = _COLOURS[place % len(_COLOURS)]
    return f'fill="none" stroke="{colour}"' if one.hollow else f'fill="{colour}" fill-opacity="0.6"'


def _legend(series: Sequence[Series]) -> Iterator[str]:
    for place, one in enumerate(series):
        y = _TOP + _SIDE + _BOTTOM + _ROW * (place + 0.5)
        yield f"<g {_look(one, place)}>{_mark(place, _LEFT + 6.0, y - 4.0, 4.0)}</g>"
        yield _text(_LEFT + 18.0, y, one.label if len(one.label) <= _LONGEST else f"{one.label[: _LONGEST - 3]}...", "start")


def _text(x: float, y: float, text: str, anchor: str, size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#222">{escape(text)}</text>'
