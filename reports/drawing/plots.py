"""Plots: figures as marks and lines on axes. All stand on pages and have their colours, but for `scatter`, which is a file of its own."""

import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise
from math import ceil, floor, inf, log10
from typing import Final

from crossopt.crossflow.records import dataclass
from crossopt.reports.drawing import svg
from crossopt.reports.drawing.axes import Frame, Point, Scale, ends_of, names_below, round_steps, stairs, tenfold_steps, upright

_LEFT, _TOP, _TALL = 76.0, 22.0, 300.0
"""Where the frames of all but lines and ranges begin, and how high those of pairs are."""
_LOW: Final = 190.0
"""The height of steps over time."""

# --- steps over time -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Steps:
    """What was known when: (seconds, value), with a name at its end."""

    label: str
    points: tuple[Point, ...]


def steps(titles: svg.Titles, series: Sequence[Steps], until: float, axes: tuple[str, str]) -> str:
    """Values that hold until the next one, each series with a line of its own and its name at the end; `axes` are across and upward."""
    ends = ends_of([value for curve in series for _, value in curve.points], 0.06, 0.01)
    named = [svg.shortened(curve.label, titles.width / 3.0) for curve in series]
    side = svg.widest(named) + 14.0
    frame = Frame(Scale(0.0, until, _LEFT, titles.width - _LEFT - side), Scale(*ends, _TOP, _LOW, upward=True))
    upward, across = frame.named(axes)
    body = [upward]
    for tick in round_steps(*ends, 4):
        body += frame.row(tick, f"{tick:.7g}")
    body += [frame.column(tick, f"{tick:g}")[1] for tick in round_steps(0.0, until, _ticks(titles))]
    body.append(across)
    ways = [[*stairs([frame.at(point) for point in curve.points]), (frame.across.end, frame.y(curve.points[-1][1]))] for curve in series]
    order = sorted(range(len(series)), key=lambda index: -series[index].points[-1][1])
    for index, y in zip(order, svg.spread([ways[index][-1][1] for index in order], 16.0, _TOP, frame.upward.end), strict=True):
        body.append(svg.line(ways[index], f"step {svg.hue(index)}-line{' dashed' if index else ''}"))
        value = series[index].points[-1][1]
        body.append(svg.dot(*ways[index][-1], 3.5, svg.hue(index), f"{series[index].label}: {value:.7g}"))
        body.append(svg.text_line(frame.across.end + 8.0, y + 4.0, named[index]))
    return svg.picture(titles, frame.height, body)


# --- pairs of figures ----------------------------------------------------------------------------------------------------------------


def points(titles: svg.Titles, pairs: Sequence[Point], axes: tuple[str, str]) -> str:
    """Points of a front, numbered from 1 where there is room, and the corner lines beyond which designs are worse than one of them."""
    right, top = (ends_of([pair[side] for pair in pairs], 0.06, 0.05) for side in (0, 1))
    frame = Frame(Scale(*right, _LEFT, titles.width - _LEFT - 24.0), Scale(*top, _TOP, _TALL, upward=True))
    body = frame.named(axes)
    for tick in round_steps(*top, 5):
        body += frame.row(tick, f"{tick:.6g}")
    for tick in round_steps(*right, _ticks(titles)):
        body += frame.column(tick, f"{tick:.6g}")
    places = [frame.at(pair) for pair in pairs]
    body.append(svg.line(stairs(places), "step k0-line dashed"))
    tips = [f"{number}: {axes[0]} {first:.6g}, {axes[1]} {second:.6g}" for number, (first, second) in enumerate(pairs, 1)]
    return svg.picture(titles, frame.height, [*body, *_numbered(places, tips)])


def _ticks(titles: svg.Titles) -> int:
    """About how many stand across."""
    return 3 if titles.narrow else 6


def _numbered(places: Sequence[Point], tips: Sequence[str]) -> Iterator[str]:
    """Marks with numbers, small ones without where they would lie on the last one with a number."""
    last: Point | None = None
    for number, ((x, y), tip) in enumerate(zip(places, tips, strict=True), 1):
        if last and abs(x - last[0]) < 20.0 and abs(y - last[1]) < 20.0:
            yield svg.dot(x, y, 4.0, "k0 cut", tip)
            continue
        yield svg.dot(x, y, 10.0, "k0 cut", tip)
        yield svg.text_line(x, y + 4.0, str(number), "on", "middle")
        last = (x, y)


def parity(titles: svg.Titles, pairs: Sequence[Point], answer: tuple[float, float, str], axes: tuple[str, str]) -> str:
    """Two figures of the same things against each other, with the line on which they are equal: pairs as hollow marks and one of them
    as a full one with its name; `axes` are across and upward."""
    ends = ends_of([value for pair in (*pairs, answer[:2]) for value in pair], 0.05, 0.05)
    frame = Frame(Scale(*ends, _LEFT, titles.width - _LEFT - 12.0), Scale(*ends, _TOP, _TALL, upward=True))
    body = frame.named(axes)
    for tick in round_steps(*ends, _ticks(titles)):
        body += [*frame.row(tick, f"{tick:.6g}"), *frame.column(tick, f"{tick:.6g}")]
    body.append(svg.line([frame.at((end, end)) for end in ends], "mark"))
    body += [svg.dot(*frame.at(pair), 3.0, "hollow") for pair in pairs]
    (x, y), wide = frame.at(answer[:2]), svg.widest(answer[2:])
    body.append(svg.dot(x, y, 5.0, "k1 cut"))
    side = x + 10.0 if x + 14.0 + wide < titles.width else x - 10.0 - wide
    body.append(svg.text_line(side, min(y + 20.0, frame.upward.end - 4.0), answer[2], "t"))
    return svg.picture(titles, frame.height, body)


# --- lines over named places ---------------------------------------------------------------------------------------------------------

_AXIS, _UNDER, _HIGH = 64.0, 24.0, 230.0
"""Where the frame of lines begins, from the left and from the top, and how high it is."""
_RING: Final = 9.0
_SCALED: Final = re.compile(r"[-+]?\.?\d")
"""How the name of a place begins that is a quantity."""


@dataclass(frozen=True, slots=True)
class Line:
    """Positive figures over named places, None where there is none, and whether each place stands out."""

    label: str
    values: tuple[float | None, ...]
    rings: tuple[bool, ...]


def lines(titles: svg.Titles, names: Sequence[str], series: Sequence[Line], axes: tuple[str, str], ends: Point) -> str:
    """A line for each, with a shape and a name of its own, and rings round places that stand out, on an axis between two ends where equal
    steps are equal factors; `axes` are across and upward. Places that are no quantities, such as devices, have marks without a line."""
    named = [svg.shortened(curve.label, titles.width / 3.0) for curve in series]
    room = titles.width - _AXIS - (svg.widest(named) + 26.0)
    step, low, high = room / len(names), log10(ends[0] * 0.94), log10(ends[1] * 1.06)
    frame = Frame(Scale(0.0, len(names), _AXIS, room), Scale(low, high, _UNDER, _HIGH, upward=True, tenfold=True))
    few = ceil(high) - floor(low) < 4
    body = frame.named(axes)
    factors = (1.0, 2.0, 3.0, 5.0, 7.0) if high - low < log10(20.0) else (1.0, 2.0, 5.0) if few else (1.0,)
    ticks = tenfold_steps(low, high, factors)
    for tick in ticks if len(ticks) > 1 else round_steps(10.0**low, 10.0**high, 4):
        body += frame.row(tick, f"{tick:.6g}")
    body += names_below(names, _AXIS, step, frame.upward.end)
    for index, curve in enumerate(series):
        ways = [None if value is None else (_AXIS + step * (at + 0.5), frame.y(value)) for at, value in enumerate(curve.values)]
        tips = ["" if value is None else f"{curve.label}, {name}: {value:.4g}" for name, value in zip(names, curve.values, strict=True)]
        body += _curve(index, ways, curve.rings, tips, joined=all(map(_SCALED.match, names)))
    found = [[value for value in curve.values if value is not None] for curve in series]
    ended = [(index, frame.y(values[-1])) for index, values in enumerate(found) if values]
    for number, y in svg.beside([y for _, y in ended], 16.0, _UNDER, frame.upward.end):
        index = ended[number][0]
        body += [_shape(index, frame.across.end + 8.0, y), svg.text_line(frame.across.end + 18.0, y + 4.0, named[index])]
    return svg.picture(titles, frame.height, body)


def _curve(index: int, ways: Sequence[Point | None], rings: Sequence[bool], tips: Sequence[str], *, joined: bool) -> Iterator[str]:
    """The line where it is whole and joins quantities, and its marks."""
    for before, after in pairwise(ways) if joined else ():
        if before is not None and after is not None:
            yield svg.line([before, after], f"step {svg.hue(index)}-line{' dashed' if index % 2 else ''}")
    for way, ring, tip in zip(ways, rings, tips, strict=True):
        if way is not None:
            yield _shape(index, *way)
            yield svg.dot(*way, _RING, "mark" if ring else "none", tip)


def _shape(index: int, x: float, y: float) -> str:
    """Disc, square, triangle and diamond in turn."""
    kind = f"{svg.hue(index)} cut"
    match index % 4:
        case 0:
            return svg.dot(x, y, 4.5, kind)
        case 1:
            return svg.spot(x, y, 4.0, kind, square=True)
        case 2:
            return svg.line([(x, y - 5.5), (x + 5.5, y + 4.0), (x - 5.5, y + 4.0)], kind)
        case _:
            return svg.line([(x, y - 6.0), (x + 6.0, y), (x, y + 6.0), (x - 6.0, y)], kind)


# --- ranges --------------------------------------------------------------------------------------------------------------------------

_ROW, _TALL_ROW, _INSIDE = 22.0, 38.0, 18.0
_LABEL: Final = 190.0
_FAR: Final = 20.0
"""Figures up to which one from nothing is told on an axis of equal steps."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The middle of several figures and their range; infinite where it never came."""

    middle: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Row:
    """A row with up to two marks, the first a disc and the second a square; without any it is a heading."""

    label: str
    marks: tuple[Mark, ...]
    shown: str


def ranges(titles: svg.Titles, rows: Sequence[Row], axis: str, tenfold: bool) -> str:
    """Rows of marks with lines through them as wide as their ranges, and words beside them, on one axis from zero or one where each step
    is tenfold; what never came stands beyond its end as a cross. An axis from zero that reaches far is wider near zero."""
    ends = [value for row in rows for mark in row.marks for value in (mark.middle, mark.least, mark.most) if value < inf]
    label = 0.0 if titles.narrow else min(svg.widest(row.label for row in rows if row.marks) + 14.0, _LABEL)
    side, high = (0.0, _TALL_ROW) if titles.narrow else (svg.widest(row.shown for row in rows) + 26.0, _ROW)
    scale = _scale(ends, label + _INSIDE, titles.width - label - side - _INSIDE - 24.0, tenfold)
    bottom = 20.0 + high * len(rows)
    body = [svg.text_line(label, 11.0, f"{axis}, wider near zero" if scale.plus else axis, "m")]
    for tick in _steps(scale, titles):
        body += upright(scale.at(tick), (18.0, bottom), f"{tick:.6g}", 15.0)
    for index, row in enumerate(rows):
        y = 20.0 + high * (index + 0.5)
        named = (y - 6.0, titles.width - svg.width_of(row.shown) - 10.0) if titles.narrow else (y + 4.0, label - 10.0)
        text, kind = (svg.shortened(row.label, named[1]), "t") if row.marks else (svg.fitted(row.label, titles.width), "t b")
        body.append(svg.text_line(0.0, named[0], text, kind))
        for number, mark in enumerate(row.marks):
            body += _ranged(scale, mark, y + (high - _ROW) / 2.0, number, f"{row.label}: {row.shown}")
        body.append(svg.text_line(titles.width - 3.0, named[0], row.shown, "t n", "end"))
    return svg.picture(titles, bottom + 22.0, body)


def _scale(ends: Sequence[float], left: float, room: float, tenfold: bool) -> Scale:
    if not tenfold:
        most = max(ends, default=0.0) * 1.02
        return Scale(0.0, log10(1.0 + most), left, room, tenfold=True, plus=1.0) if most > _FAR else Scale(0.0, most or 1.0, left, room)
    known = [value for value in ends if value > 0.0] or [1.0]
    low, high = floor(log10(min(known))), ceil(log10(max(known)))
    return Scale(low, max(high, low + 1), left, room, tenfold=True)


def _steps(scale: Scale, titles: svg.Titles) -> list[float]:
    """Ticks; where there is a place for zero, it and a third and all of each power of ten."""
    if scale.plus:
        return [0.0, *tenfold_steps(0.0, scale.high, (1.0, 3.0))]
    return tenfold_steps(scale.low, scale.high, most=6) if scale.tenfold else round_steps(scale.low, scale.high, 3 if titles.narrow else 5)


def _ranged(scale: Scale, mark: Mark, y: float, number: int, tip: str) -> Iterator[str]:
    """The range and the mark; a cross beyond the end for what never came."""
    end, least = scale.end + 10.0, 10.0**scale.low - scale.plus if scale.tenfold else scale.low
    x, first, last = (scale.at(max(value, least)) if value < inf else end for value in (mark.middle, mark.least, mark.most))
    if last > first:
        yield svg.line([(first, y), (last, y)], f"step k{number}-line")
    if x == end:
        yield svg.line([(x - 4.0, y - 4.0), (x + 4.0, y + 4.0)], f"step k{number}-line")
        yield svg.line([(x - 4.0, y + 4.0), (x + 4.0, y - 4.0)], f"step k{number}-line")
    else:
        yield svg.spot(x, y, 4.5, f"k{number} cut", square=number > 0, tip=tip)


# --- a scatter plot of its own -------------------------------------------------------------------------------------------------------

_SIDE: Final = 520.0
_WEST, _NORTH, _BELOW, _ENTRY = 70.0, 40.0, 50.0, 18.0
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
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Labels:
    """The words of a plot: its title, what it shows for those who cannot see it, and its axes."""

    title: str
    description: str
    across: str
    upward: str


def scatter(series: Sequence[Series], labels: Labels, band: float) -> str:
    """Two positive figures against each other on axes where equal steps are equal factors, with a band of the share `band` on both sides of
    the diagonal; a file of its own, with its colours in it."""
    frame = _square([value for points in series for point in points.points for value in point])
    width, height = _WEST + _SIDE + 20.0, _NORTH + _SIDE + _BELOW + _ENTRY * (len(series) + 1)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img"'
            ' aria-labelledby="title description" font-family="sans-serif" font-size="12">',
            f'<title id="title">{escape(labels.title)}</title>',
            f'<desc id="description">{escape(labels.description)}</desc>',
            f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>',
            _text(_WEST, _NORTH - 16.0, labels.title, "start", size=14),
            *_grid(frame, band),
            _text(_WEST + _SIDE / 2.0, _NORTH + _SIDE + 38.0, labels.across, "middle"),
            f'<g transform="rotate(-90 18 {_NORTH + _SIDE / 2.0:g})">{_text(18.0, _NORTH + _SIDE / 2.0, labels.upward, "middle")}</g>',
            *(_marks(points, index, frame) for index, points in enumerate(series)),
            *_legend(series),
            "</svg>\n",
        ]
    )


def _square(values: Sequence[float]) -> Frame:
    """One scale across and upward."""
    low, high = (log10(min(values) / _MARGIN), log10(max(values) * _MARGIN)) if values else (0.0, 1.0)
    return Frame(Scale(low, high, _WEST, _SIDE, tenfold=True), Scale(low, high, _NORTH, _SIDE, upward=True, tenfold=True))


def _grid(frame: Frame, band: float) -> Iterator[str]:
    """The band, the diagonal, the axes and their ticks, of which there are more where there are few powers of ten."""
    low, high = 10.0**frame.across.low, 10.0**frame.across.high
    ends = ((low, low * (1.0 + band)), (high / (1.0 + band), high), (high, high), (high, high * (1.0 - band)), (low / (1.0 - band), low))
    corners = (frame.at(end) for end in (*ends, (low, low)))
    yield f'<polygon fill="#e8eef4" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in corners)}"/>'
    yield f'<path d="M{_WEST:g} {_NORTH + _SIDE:g}L{_WEST + _SIDE:g} {_NORTH:g}" stroke="#888"/>'
    yield f'<rect x="{_WEST:g}" y="{_NORTH:g}" width="{_SIDE:g}" height="{_SIDE:g}" fill="none" stroke="#333"/>'
    factors = (1.0,) if frame.across.high - frame.across.low > 3.0 else (1.0, 2.0, 5.0)
    for tick in tenfold_steps(frame.across.low, frame.across.high, factors, _MOST_TICKS):
        x, y = frame.at((tick, tick))
        yield f'<path d="M{x:.1f} {_NORTH + _SIDE:g}v5M{_WEST:g} {y:.1f}h-5" stroke="#333"/>'
        yield _text(x, _NORTH + _SIDE + 18.0, f"{tick:g}", "middle")
        yield _text(_WEST - 8.0, y + 4.0, f"{tick:g}", "end")


def _marks(points: Series, index: int, frame: Frame) -> str:
    return f"<g {_look(points, index)}>{''.join(_mark(index, *frame.at(point), 3.0) for point in points.points)}</g>"


def _mark(index: int, x: float, y: float, size: float) -> str:
    shape = _SHAPES[index // len(_COLOURS) % len(_SHAPES)]
    if not shape:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:g}"/>'
    return f'<path d="{shape.format(x=x, y=y, west=x - size, east=x + size, north=y - size, south=y + size)}"/>'


def _look(points: Series, index: int) -> str:
    colour = _COLOURS[index % len(_COLOURS)]
    return f'fill="none" stroke="{colour}"' if points.hollow else f'fill="{colour}" fill-opacity="0.6"'


def _legend(series: Sequence[Series]) -> Iterator[str]:
    for index, points in enumerate(series):
        y = _NORTH + _SIDE + _BELOW + _ENTRY * (index + 0.5)
        yield f"<g {_look(points, index)}>{_mark(index, _WEST + 6.0, y - 4.0, 4.0)}</g>"
        yield _text(_WEST + 18.0, y, points.label if len(points.label) <= _LONGEST else f"{points.label[: _LONGEST - 3]}...", "start")


def _text(x: float, y: float, text: str, anchor: str, size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#222">{escape(text)}</text>'


# Two positive figures of the same things against each other, where equal steps are equal factors, with a band around equality.

_PAIRS_LEFT, _PAIRS_TOP, _PAIRS_TALL = 64.0, 22.0, 320.0


@dataclass(frozen=True, slots=True)
class Pair:
    """Across and upward, of which group it is, whether its mark is a square, and what it says."""

    across: float
    upward: float
    colour: int
    square: bool
    tip: str


def parity_plot(titles: svg.Titles, pairs: Sequence[Pair], band: float, axes: tuple[str, str]) -> str:
    """The picture; `band` is a share of the figure across, and `axes` are across and upward."""
    values = [value for pair in pairs for value in (pair.across, pair.upward)]
    low, high = log10(min(values) / _MARGIN), log10(max(values) * _MARGIN)
    room = titles.width - _PAIRS_LEFT - 12.0
    frame = Frame(Scale(low, high, _PAIRS_LEFT, room, tenfold=True), Scale(low, high, _PAIRS_TOP, _PAIRS_TALL, upward=True, tenfold=True))
    factors = (1.0,) if high - low > 2.0 else (1.0, 2.0, 5.0)
    body = frame.named(axes)
    for tick in tenfold_steps(low, high, factors, 8):
        body += [*frame.row(tick, f"{tick:g}"), *frame.column(tick, f"{tick:g}")]
    ends = (10.0**low, 10.0**high)
    body += [svg.line([frame.at((end, end)) for end in ends], "mark"), *_band(frame, ends, band)]
    for pair in pairs:
        body.append(svg.spot(*frame.at((pair.across, pair.upward)), 3.5, f"{svg.hue(pair.colour)} cut fine", pair.square, pair.tip))
    return svg.picture(titles, frame.height, body)


def _band(frame: Frame, ends: tuple[float, float], band: float) -> Iterator[str]:
    """The lines on which one figure is so much more or less than the other, as far as the frame goes."""
    low, high = ends
    yield svg.line([frame.at((low, low * (1.0 + band))), frame.at((high / (1.0 + band), high))], "branch")
    yield svg.line([frame.at((low / (1.0 - band), low)), frame.at((high, high * (1.0 - band)))], "branch")


# A tornado: for each thing that may differ how far a figure moves to either side, the one that moves it most on top.

_TORNADO_ROW, _TORNADO_TALL_ROW, _TORNADO_TOP = 30.0, 42.0, 34.0
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


def tornado(titles: svg.Titles, swings: Sequence[Swing], centre: float, axis: str) -> str:
    """Bars around the centre with a mark at each tip, and words beside them. A tip that is nowhere is told at the end of the row."""
    known = [tip.value for swing in swings for tip in swing.tips if tip.value is not None]
    low, high = min([centre, *known]), max([centre, *known])
    label = 0.0 if titles.narrow else min(svg.widest(swing.label for swing in swings) + 12.0, _NAMES)
    row = _TORNADO_TALL_ROW if titles.narrow else _TORNADO_ROW
    room = [svg.widest(tip.shown for swing in swings for tip in swing.tips) + 14.0] * 2
    left, right = label + room[0], titles.width - room[1]
    scale = (right - left) / (high - low) if high > low else 0.0
    bottom = _TORNADO_TOP + row * len(swings)
    body = [svg.text_line(0.0 if titles.narrow else left, 11.0, axis, "m")]
    for tick in round_steps(low, high, 2 if titles.narrow else 4) if high > low else ():
        body += upright(left + (tick - low) * scale, (_TORNADO_TOP - 4.0, bottom), f"{tick:g}", 15.0)
    for index, swing in enumerate(swings):
        y, room_of_name = _TORNADO_TOP + row * index, titles.width if titles.narrow else label - 8.0
        body.append(svg.text_line(0.0, y + (9.0 if titles.narrow else 19.0), svg.shortened(swing.label, room_of_name)))
        body += _row(swing, centre, y + row - _TORNADO_ROW, lambda value: left + (value - low) * scale)
    at = left + (centre - low) * scale
    body += [
        svg.line([(at, _TORNADO_TOP - 6.0), (at, bottom)], "mark"),
        svg.text_line(at, _TORNADO_TOP - 10.0, "as stated", "t b", "middle"),
    ]
    return svg.picture(titles, bottom + 22.0, body)


def _row(swing: Swing, centre: float, y: float, at: Callable[[float], float]) -> Iterator[str]:
    there = [(at(tip.value), tip.square) for tip in swing.tips if tip.value is not None]
    ends = [at(centre), *(x for x, _ in there)]
    yield svg.box(
        min(ends), y + 7.0, max(ends) - min(ends), 16.0, "k0", 2.0, f"{swing.label}: {swing.tips[0].shown}, {swing.tips[1].shown}"
    )
    for x, square in there:
        yield svg.spot(x, y + 15.0, 4.5, "k1", square)
    lower, upper = sorted(swing.tips, key=lambda tip: float("inf") if tip.value is None else tip.value)
    yield svg.text_line(min(ends) - 8.0, y + 19.0, lower.shown, "t n", "end")
    yield svg.text_line(max(ends) + 8.0, y + 19.0, upper.shown, "t n")
