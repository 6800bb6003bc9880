"""The passes of a pipeline over time: one row a stage, forward passes in its upper lane and backward passes in its lower one.

What is done is told by lane and height as well as by colour: arithmetic fills its lane, recomputation is half as high, communication a
third. Of long steps the beginning and the end are drawn, at one scale, with a gap between them.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from crossopt.reports.drawing.axes import above, limit_line, round_steps
from crossopt.reports.drawing.svg import WIDTH, Titles, boxes, hue, line, picture, width_of, words

_LABEL: Final = 78.0
_ROW: Final = 34.0
_LANE: Final = 13.0
_TOP: Final = 20.0
_GAP: Final = 34.0
_STAGES: Final = 10
"""Stages that are drawn; of more the first and the last ones."""
_LONGEST: Final = 26.0
"""Slots of the slowest stage that are drawn as one piece."""
_ENDS: Final = 24.0
"""Slots at each end of a longer step in which the pipeline is seen to fill or to drain, at the most."""
_STEADY: Final = 3.0
"""Slots beside those."""


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
    one: float

    @property
    def scale(self) -> float:
        """Pixels a second."""
        return self.room / sum(end - start for start, end in self.pieces)

    @property
    def room(self) -> float:
        return WIDTH - _LABEL - 8.0 - _GAP * (len(self.pieces) - 1)


def pieces_of(total: float, slot: float, ends: tuple[float, float], after: float) -> tuple[tuple[float, float], ...]:
    """What is drawn of a step: all of it, or its beginning and its end; `slot` is the slowest stage's time of a microbatch, `ends` are the
    seconds in which the pipeline fills and drains, and `after` those of what follows."""
    first, last = (min(end, _ENDS * slot) + _STEADY * slot for end in ends)
    if total - after <= _LONGEST * slot or first + last + after >= total:
        return ((0.0, total),)
    return (0.0, first), (total - after - last, total)


def draw_stages(count: int) -> list[int]:
    """Which stages are drawn."""
    return list(range(count)) if count <= _STAGES else [*range(_STAGES // 2), *range(count - _STAGES // 2, count)]


def passes_over_time(titles: Titles, blocks: Sequence[Block], stages: int, axis: Axis, gap: str) -> str:
    """The picture; `gap` says what is left out between two pieces."""
    rows = {stage: place + (place >= _STAGES // 2 and stages > _STAGES) for place, stage in enumerate(draw_stages(stages))}
    bottom = _TOP + (max(rows.values()) + 1) * _ROW
    body = list[str]()
    left = _LABEL
    for number, (start, end) in enumerate(axis.pieces):
        width = (end - start) * axis.scale
        body += _ticks(start, end, left, axis, bottom)
        body += _piece(blocks, rows, (start, end), left, axis)
        if number + 1 < len(axis.pieces):
            body += _gap_mark(left + width, bottom, gap)
        left += width + _GAP
    body += _names(rows, stages)
    body += limit_line(WIDTH - 8.0, (_TOP, bottom))
    body.append(words(_LABEL + (WIDTH - _LABEL) / 2.0, bottom + 32.0, axis.unit, "m", "middle"))
    return picture(titles, bottom + 38.0, body)


def _names(rows: dict[int, int], stages: int) -> Iterator[str]:
    for stage, row in rows.items():
        yield words(0.0, _TOP + row * _ROW + _ROW / 2.0 + 4.0, f"stage {stage + 1}")
    if stages > _STAGES:
        between = f"… {stages - _STAGES:,} more"
        yield words(0.0, _TOP + _STAGES // 2 * _ROW + _ROW / 2.0 + 4.0, between, "m")


def _ticks(start: float, end: float, left: float, axis: Axis, bottom: float) -> Iterator[str]:
    count = max(2, round(6 * (end - start) * axis.scale / axis.room))
    last = -WIDTH
    for tick in round_steps(start / axis.one, end / axis.one, count):
        x, text = left + (tick * axis.one - start) * axis.scale, f"{tick:.6g}"
        yield line([(x, _TOP), (x, bottom)], "grid")
        half = width_of(text) / 2.0
        if x - half > last + 6.0 and left - 12.0 <= x - half and x + half <= WIDTH:
            yield words(x, bottom + 15.0, text, "m n", "middle")
            last = x + half


def _gap_mark(x: float, bottom: float, gap: str) -> Iterator[str]:
    """Two broken lines, and between them in words what is left out."""
    for side in (x + 5.0, x + _GAP - 5.0):
        yield from limit_line(side, (_TOP, bottom))
    middle = x + _GAP / 2.0
    yield above(middle, gap, 12.0)
    yield words(middle, (_TOP + bottom) / 2.0 + 4.0, "…", "t", "middle")


def _piece(blocks: Sequence[Block], rows: dict[int, int], piece: tuple[float, float], left: float, axis: Axis) -> Iterator[str]:
    """Blocks of one kind are one shape, so that a page stays small."""
    shapes, labels = defaultdict[int, list[tuple[float, float, float, float]]](list), list[str]()
    start, end = piece
    for one in blocks:
        if one.stage not in rows or one.end <= start or one.start >= end:
            continue
        x = left + (max(one.start, start) - start) * axis.scale
        width = (min(one.end, end) - max(one.start, start)) * axis.scale
        whole = _LANE if one.lane < 2 else 2.0 * _LANE + 1.0
        height = whole * one.height
        y = _TOP + rows[one.stage] * _ROW + 3.0 + (one.lane % 2) * (_LANE + 1.0) + (whole - height) / 2.0
        shapes[one.kind].append((x, y, width, height))
        if one.label and width_of(one.label, 9.0) + 3.0 <= width:
            labels.append(words(x + width / 2.0, y + height / 2.0 + 3.4, one.label, "on", "middle", 9.0))
    for kind in sorted(shapes):
        yield boxes(shapes[kind], f"{hue(kind)} cut fine")
    yield from labels
