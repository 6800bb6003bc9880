"""Bars: parts of a whole, shares of limits, what is done when on tracks, and the passes of a pipeline over time."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from crossopt.reports.drawing import svg
from crossopt.reports.drawing.axes import LABEL, Frame, Scale, above, limit_line, names_below, round_steps

# Bars and columns, each one picture with a title and a description: parts of a whole, shares of limits, the same parts of several.

_ROW, _TALL_ROW = 34.0, 40.0
_LABEL = 1.0
"""Where names begin: a capital T reaches a little to the left of where it stands."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a whole, with its amount in words."""

    label: str
    value: float
    shown: str
    colour: int
    """Which letter and colour it has: the same for the same thing in all pictures of a section."""


@dataclass(frozen=True, slots=True)
class Row:
    """A bar with words at its end; `note` is what a reader must not miss."""

    label: str
    value: float
    shown: str
    note: str = ""


def stacked(titles: svg.Titles, parts: Sequence[Part], capacity: float = 0.0) -> str:
    """One bar cut into parts, of a whole that may be more than their sum; each part has its letter where there is room, and its name
    where there is more. Shares are those of the sum, as the tables beside it tell them."""
    used = sum(part.value for part in parts)
    total, body, x = max(used, capacity), [svg.box(0.0, 1.0, titles.width, 42.0, "track")], 0.0
    for part in parts:
        width = titles.width * part.value / total if total > 0.0 else 0.0
        body.append(svg.box(x, 1.0, width, 42.0, f"{svg.hue(part.colour)} cut", tip=f"{part.label}: {part.shown}"))
        body += _inside(x, width, svg.letter(part.colour), f"{part.label} {part.value / used:.0%}" if used > 0.0 else part.label)
        x += width
    left = titles.width - x
    body += [svg.text_line(x + left / 2.0, 26.0, "free", "t", "middle")] if left > svg.width_of("free") + 8.0 else []
    return svg.picture(titles, 44.0, body)


def _inside(x: float, width: float, sign: str, label: str) -> list[str]:
    full = f"{sign}  {label}"
    text = full if svg.width_of(full) + 12.0 <= width else sign if svg.width_of(sign) + 4.0 <= width else ""
    return [svg.text_line(x + width / 2.0, 26.0, text, "on", "middle")] if text else []


def bars(titles: svg.Titles, rows: Sequence[Row], limit: float, mark: str = "") -> str:
    """Bars from zero with words at their ends, or above them where there is no room beside, and a line at the limit."""
    if titles.narrow:
        return _below_text(titles, rows, limit, mark)
    end = svg.widest(f"{row.shown}   {row.note}" for row in rows) + 8.0
    label = min(svg.widest(row.label for row in rows) + 12.0, LABEL)
    most = max(limit, *(row.value for row in rows))
    room, top = titles.width - label - end - 8.0, 16.0 if mark else 2.0
    scale = room / most if most > 0.0 else 0.0
    body = list[str]()
    for index, row in enumerate(rows):
        y = top + index * _ROW
        body.append(svg.text_line(_LABEL, y + 20.0, svg.shortened(row.label, label - 8.0)))
        body.append(svg.box(label, y + 6.0, limit * scale, 20.0, "track", 3.0))
        body.append(svg.box(label, y + 6.0, row.value * scale, 20.0, "k1" if row.note else "k0", 3.0, f"{row.label}: {row.shown}"))
        body.append(svg.text_line(label + room + 10.0, y + 20.0, row.shown, "t n"))
        body += [svg.text_line(titles.width, y + 20.0, row.note, "t b", "end")] if row.note else []
    bottom = top + len(rows) * _ROW
    body += limit_line(label + limit * scale, (top, bottom), mark)
    return svg.picture(titles, bottom + 2.0, body)


def _below_text(titles: svg.Titles, rows: Sequence[Row], limit: float, mark: str) -> str:
    """Bars from zero for a narrow picture, each below its label and value, with a line at the limit."""
    most, top, body = max(limit, *(row.value for row in rows)), 16.0 if mark else 2.0, list[str]()
    scale = (titles.width - 2.0) / most if most > 0.0 else 0.0
    for index, row in enumerate(rows):
        y, shown = top + index * _TALL_ROW, f"{row.shown}   {row.note}".rstrip()
        body.append(svg.text_line(_LABEL, y + 14.0, svg.shortened(row.label, titles.width - svg.width_of(shown) - 10.0)))
        body.append(svg.text_line(titles.width, y + 14.0, shown, "t b" if row.note else "t n", "end"))
        body.append(svg.box(0.0, y + 19.0, limit * scale, 14.0, "track", 3.0))
        body.append(svg.box(0.0, y + 19.0, row.value * scale, 14.0, "k1" if row.note else "k0", 3.0, f"{row.label}: {row.shown}"))
        body += limit_line(limit * scale, (y + 17.0, y + 35.0))
    body += [above(limit * scale, mark, width=titles.width)] if mark else []
    return svg.picture(titles, top + len(rows) * _TALL_ROW, body)


# --- columns -------------------------------------------------------------------------------------------------------------------------

_TOP, _HEIGHT, _LEFT = 22.0, 230.0, 64.0
_BOTTOM: Final = _TOP + _HEIGHT


@dataclass(frozen=True, slots=True)
class Units:
    """The words of an axis: what it counts, how much one of it is, and what the line at the limit is called."""

    axis: str
    unit: float
    limit: str
    below: str


def columns(titles: svg.Titles, names: Sequence[str], parts: Sequence[tuple[str, Sequence[float]]], limit: float, units: Units) -> str:
    """A stacked column for each name, in all of which the parts lie in one order, with a line at the limit.

    Parts are named once, beside the last column.
    """
    most = max(limit, *(sum(values[column] for _, values in parts) for column in range(len(names)))) * 1.04
    step = min((titles.width - _LEFT - (svg.widest(label for label, _ in parts) + 40.0)) / len(names), 90.0)
    frame = Frame(Scale(0.0, len(names), _LEFT, step * len(names)), Scale(0.0, most, _TOP, _HEIGHT, upward=True))
    body = [svg.text_line(0.0, 11.0, units.axis, "m"), svg.text_line(_LEFT, _BOTTOM + 36.0, units.below, "m")]
    for tick in round_steps(0.0, most / units.unit, 5):
        body += frame.row(tick * units.unit, f"{tick:g}")
    tops, middles = [_BOTTOM] * len(names), list[float]()
    for kind, (label, values) in enumerate(parts):
        for column, value in enumerate(values):
            height = value * (_HEIGHT / most)
            tops[column] -= height
            body.append(
                svg.box(
                    _LEFT + step * (column + 0.1),
                    tops[column],
                    step * 0.8,
                    height,
                    f"{svg.hue(kind)} cut",
                    tip=f"{names[column]}: {label} {value / units.unit:.4g} {units.axis}",
                )
            )
        middles.append(tops[-1] + height / 2.0)
    body += _named([label for label, _ in parts], middles, _LEFT + step * (len(names) - 0.1))
    body += names_below(names, _LEFT, step, _BOTTOM)
    y = frame.y(limit)
    body.append(svg.line([(_LEFT, y), (frame.across.end, y)], "mark"))
    body.append(svg.text_line(_LEFT + 4.0, y - 5.0, units.limit, "t b"))
    return svg.picture(titles, frame.height, body)


def _named(labels: Sequence[str], middles: Sequence[float], x: float) -> Iterator[str]:
    """Letters and names of the parts beside the last column, with lines to what they name."""
    for kind, y in svg.beside(middles, 15.0, _TOP + 6.0, _BOTTOM - 4.0):
        yield svg.line([(x + 1.0, middles[kind]), (x + 14.0, y)], f"pointer {svg.hue(kind)}-line")
        yield svg.text_line(x + 18.0, y + 4.0, f"{svg.letter(kind)}  {labels[kind]}")


# The passes of a pipeline over time: one row a stage, forward passes in its upper lane and backward passes in its lower one.
#
# What is done is told by lane and height as well as by colour: arithmetic fills its lane, recomputation is half as high, communication a
# third. Of long steps the beginning and the end are drawn, at one scale, with a gap between them.

_PASSES_LABEL: Final = 78.0
_PASSES_ROW: Final = 34.0
_LANE: Final = 13.0
_PASSES_TOP: Final = 20.0
_GAP: Final = 34.0
_STAGES: Final = 10
"""Stages that are drawn; of more the first and the last ones."""
_LONGEST: Final = 26.0
"""Slots of the slowest stage that are drawn as one piece."""
_ENDS: Final = 24.0
"""Slots at each end of a longer step in which the pipeline is seen to fill or to drain, at the most."""
_UNSEEN, _THIN = 0.25, 2.0
"""Pixels of an invisible gap between blocks, and the width up to which a block merges with the next one."""
_STEADY: Final = 3.0
"""Slots beside those."""
Tips = Mapping[tuple[int, int], str]
"""What blocks say to who points at them, by stage and kind."""


@dataclass(frozen=True, slots=True)
class Block:
    """Something that a stage does, in seconds from the beginning of the step."""

    stage: int
    lane: int
    """0 is above, 1 below, 2 both."""
    kind: int
    height: float
    """Share of its lane."""
    start: float
    end: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """What is drawn of the time: pieces from and to a second, and the names and size of a unit of the axis."""

    pieces: tuple[tuple[float, float], ...]
    unit: str
    unit_size: float
    width: float = svg.WIDTH

    @property
    def scale(self) -> float:
        """Pixels a second."""
        return self.room / sum(end - start for start, end in self.pieces)

    @property
    def room(self) -> float:
        return self.width - _PASSES_LABEL - 8.0 - _GAP * (len(self.pieces) - 1)


def pieces_of(
    total: float, slot: float, ends: tuple[float, float], after: float, width: float = svg.WIDTH
) -> tuple[tuple[float, float], ...]:
    """What is drawn of a step: all of it, or its beginning and its end, of which a narrow picture has less; `slot` is the slowest stage's
    time of a microbatch, `ends` are the seconds in which the pipeline fills and drains, and `after` those of what follows."""
    share = width / svg.WIDTH
    first, last = (min(end, share * _ENDS * slot) + _STEADY * slot for end in ends)
    if total - after <= share * _LONGEST * slot or first + last + after >= total:
        return ((0.0, total),)
    return (0.0, first), (total - after - last, total)


def _joined(shapes: list[tuple[float, float, float, float]], block: tuple[float, float, float, float]) -> None:
    """Add a block, or extend the last one by it where the gap between them is too small to see."""
    if shapes:
        x, y, width, height = shapes[-1]
        if (y, height) == (block[1], block[3]) and 0.0 <= block[0] - x - width < _UNSEEN and block[2] < _THIN:
            shapes[-1] = (x, y, block[0] + block[2] - x, height)
            return
    shapes.append(block)


def draw_stages(count: int) -> list[int]:
    """Which stages are drawn."""
    return list(range(count)) if count <= _STAGES else [*range(_STAGES // 2), *range(count - _STAGES // 2, count)]


def passes_over_time(titles: svg.Titles, marks: tuple[Sequence[Block], Tips], stages: int, axis: Axis, gap: str) -> str:
    """The picture of blocks, which say their tips; `gap` says what is left out between two pieces."""
    axis = replace(axis, width=titles.width)
    rows = {stage: index + (index >= _STAGES // 2 and stages > _STAGES) for index, stage in enumerate(draw_stages(stages))}
    bottom = _PASSES_TOP + (max(rows.values()) + 1) * _PASSES_ROW
    body = list[str]()
    left = _PASSES_LABEL
    for number, (start, end) in enumerate(axis.pieces):
        width = (end - start) * axis.scale
        body += _ticks(start, end, left, axis, bottom)
        body += _piece(marks, rows, (start, end), left, axis)
        if number + 1 < len(axis.pieces):
            body += _gap_mark(left + width, bottom, gap)
        left += width + _GAP
    body += _names(rows, stages)
    body += limit_line(titles.width - 8.0, (_PASSES_TOP, bottom))
    body.append(svg.text_line(_PASSES_LABEL + (titles.width - _PASSES_LABEL) / 2.0, bottom + 32.0, axis.unit, "m", "middle"))
    return svg.picture(titles, bottom + 38.0, body)


def _names(rows: dict[int, int], stages: int) -> Iterator[str]:
    for stage, row in rows.items():
        yield svg.text_line(0.0, _PASSES_TOP + row * _PASSES_ROW + _PASSES_ROW / 2.0 + 4.0, f"stage {stage + 1}")
    if stages > _STAGES:
        between = f"… {stages - _STAGES:,} more"
        yield svg.text_line(0.0, _PASSES_TOP + _STAGES // 2 * _PASSES_ROW + _PASSES_ROW / 2.0 + 4.0, between, "m")


def _ticks(start: float, end: float, left: float, axis: Axis, bottom: float) -> Iterator[str]:
    count = max(2, round(axis.width / 120.0 * (end - start) * axis.scale / axis.room))
    last = -axis.width
    for tick in round_steps(start / axis.unit_size, end / axis.unit_size, count):
        x, text = left + (tick * axis.unit_size - start) * axis.scale, f"{tick:.6g}"
        yield svg.line([(x, _PASSES_TOP), (x, bottom)], "grid")
        half = svg.width_of(text) / 2.0
        if x - half > last + 6.0 and left - 12.0 <= x - half and x + half <= axis.width:
            yield svg.text_line(x, bottom + 15.0, text, "m n", "middle")
            last = x + half


def _gap_mark(x: float, bottom: float, gap: str) -> Iterator[str]:
    """Two broken lines, and between them in words what is left out."""
    for side in (x + 5.0, x + _GAP - 5.0):
        yield from limit_line(side, (_PASSES_TOP, bottom))
    middle = x + _GAP / 2.0
    yield above(middle, gap, 12.0)
    yield svg.text_line(middle, (_PASSES_TOP + bottom) / 2.0 + 4.0, "…", "t", "middle")


def _piece(marks: tuple[Sequence[Block], Tips], rows: dict[int, int], piece: tuple[float, float], left: float, axis: Axis) -> Iterator[str]:
    """Blocks of one kind on one stage are one shape, so that a page stays small."""
    shapes, labels = defaultdict[tuple[int, int], list[tuple[float, float, float, float]]](list), list[str]()
    (blocks, tips), (start, end) = marks, piece
    for block in blocks:
        if block.stage not in rows or block.end <= start or block.start >= end:
            continue
        x = left + (max(block.start, start) - start) * axis.scale
        width = (min(block.end, end) - max(block.start, start)) * axis.scale
        lane_height = _LANE if block.lane < 2 else 2.0 * _LANE + 1.0
        height = lane_height * block.height
        y = _PASSES_TOP + rows[block.stage] * _PASSES_ROW + 3.0 + (block.lane % 2) * (_LANE + 1.0) + (lane_height - height) / 2.0
        _joined(shapes[block.kind, block.stage], (x, y, width, height))
        if block.label and svg.width_of(block.label, 9.0) + 3.0 <= width:
            labels.append(svg.text_line(x + width / 2.0, y + height / 2.0 + 3.4, block.label, "on", "middle", 9.0))
    for kind, stage in shapes:  # what follows the passes comes last, and lies above them
        for thin, looks in ((False, f"{svg.hue(kind)} cut fine"), (True, svg.hue(kind))):
            if some := [shape for shape in shapes[kind, stage] if (shape[2] < _THIN) == thin]:
                yield svg.boxes(some, looks, tips.get((stage, kind), ""))
    yield from labels
