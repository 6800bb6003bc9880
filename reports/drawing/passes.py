"""The passes of a pipeline over time: one row a stage, forward passes in its upper lane and backward passes in its lower one.

What is done is told by lane and height as well as by colour: arithmetic fills its lane, recomputation is half as high, communication a
third. Of long steps the beginning and the end are drawn, at one scale, with a gap between them.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from crossopt.reports.drawing.axes import above, limit_line, round_steps
from crossopt.reports.drawing.svg import WIDTH, Titles, boxes, hue, line, picture, text_line, width_of

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
_UNSEEN, _THIN = 0.25, 2.0
"""Pixels between blocks that nobody sees, and up to which a block is too thin to be told from the next one."""
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
    one: float
    width: float = WIDTH

    @property
    def scale(self) -> float:
        """Pixels a second."""
        return self.room / sum(end - start for start, end in self.pieces)

    @property
    def room(self) -> float:
        return self.width - _LABEL - 8.0 - _GAP * (len(self.pieces) - 1)


def pieces_of(total: float, slot: float, ends: tuple[float, float], after: float, width: float = WIDTH) -> tuple[tuple[float, float], ...]:
    """What is drawn of a step: all of it, or its beginning and its end, of which a narrow picture has less; `slot` is the slowest stage's
    time of a microbatch, `ends` are the seconds in which the pipeline fills and drains, and `after` those of what follows."""
    share = width / WIDTH
    first, last = (min(end, share * _ENDS * slot) + _STEADY * slot for end in ends)
    if total - after <= share * _LONGEST * slot or first + last + after >= total:
        return ((0.0, total),)
    return (0.0, first), (total - after - last, total)


def _joined(shapes: list[tuple[float, float, float, float]], one: tuple[float, float, float, float]) -> None:
    """Add a block, or make the last one longer by it where nobody sees a gap between them."""
    if shapes:
        x, y, width, height = shapes[-1]
        if (y, height) == (one[1], one[3]) and 0.0 <= one[0] - x - width < _UNSEEN and one[2] < _THIN:
            shapes[-1] = (x, y, one[0] + one[2] - x, height)
            return
    shapes.append(one)


def draw_stages(count: int) -> list[int]:
    """Which stages are drawn."""
    return list(range(count)) if count <= _STAGES else [*range(_STAGES // 2), *range(count - _STAGES // 2, count)]


def passes_over_time(titles: Titles, drawn: tuple[Sequence[Block], Tips], stages: int, axis: Axis, gap: str) -> str:
    """The picture of blocks, which say their tips; `gap` says what is left out between two pieces."""
    axis = replace(axis, width=titles.width)
    rows = {stage: place + (place >= _STAGES // 2 and stages > _STAGES) for place, stage in enumerate(draw_stages(stages))}
    bottom = _TOP + (max(rows.values()) + 1) * _ROW
    body = list[str]()
    left = _LABEL
    for number, (start, end) in enumerate(axis.pieces):
        width = (end - start) * axis.scale
        body += _ticks(start, end, left, axis, bottom)
        body += _piece(drawn, rows, (start, end), left, axis)
        if number + 1 < len(axis.pieces):
            body += _gap_mark(left + width, bottom, gap)
        left += width + _GAP
    body += _names(rows, stages)
    body += limit_line(titles.width - 8.0, (_TOP, bottom))
    body.append(text_line(_LABEL + (titles.width - _LABEL) / 2.0, bottom + 32.0, axis.unit, "m", "middle"))
    return picture(titles, bottom + 38.0, body)


def _names(rows: dict[int, int], stages: int) -> Iterator[str]:
    for stage, row in rows.items():
        yield text_line(0.0, _TOP + row * _ROW + _ROW / 2.0 + 4.0, f"stage {stage + 1}")
    if stages > _STAGES:
        between = f"… {stages - _STAGES:,} more"
        yield text_line(0.0, _TOP + _STAGES // 2 * _ROW + _ROW / 2.0 + 4.0, between, "m")


def _ticks(start: float, end: float, left: float, axis: Axis, bottom: float) -> Iterator[str]:
    count = max(2, round(axis.width / 120.0 * (end - start) * axis.scale / axis.room))
    last = -axis.width
    for tick in round_steps(start / axis.one, end / axis.one, count):
        x, text = left + (tick * axis.one - start) * axis.scale, f"{tick:.6g}"
        yield line([(x, _TOP), (x, bottom)], "grid")
        half = width_of(text) / 2.0
        if x - half > last + 6.0 and left - 12.0 <= x - half and x + half <= axis.width:
            yield text_line(x, bottom + 15.0, text, "m n", "middle")
            last = x + half


def _gap_mark(x: float, bottom: float, gap: str) -> Iterator[str]:
    """Two broken lines, and between them in words what is left out."""
    for side in (x + 5.0, x + _GAP - 5.0):
        yield from limit_line(side, (_TOP, bottom))
    middle = x + _GAP / 2.0
    yield above(middle, gap, 12.0)
    yield text_line(middle, (_TOP + bottom) / 2.0 + 4.0, "…", "t", "middle")


def _piece(drawn: tuple[Sequence[Block], Tips], rows: dict[int, int], piece: tuple[float, float], left: float, axis: Axis) -> Iterator[str]:
    """Blocks of one kind on one stage are one shape, so that a page stays small."""
    shapes, labels = defaultdict[tuple[int, int], list[tuple[float, float, float, float]]](list), list[str]()
    (blocks, tips), (start, end) = drawn, piece
    for one in blocks:
        if one.stage not in rows or one.end <= start or one.start >= end:
            continue
        x = left + (max(one.start, start) - start) * axis.scale
        width = (min(one.end, end) - max(one.start, start)) * axis.scale
        whole = _LANE if one.lane < 2 else 2.0 * _LANE + 1.0
        height = whole * one.height
        y = _TOP + rows[one.stage] * _ROW + 3.0 + (one.lane % 2) * (_LANE + 1.0) + (whole - height) / 2.0
        _joined(shapes[one.kind, one.stage], (x, y, width, height))
        if one.label and width_of(one.label, 9.0) + 3.0 <= width:
            labels.append(text_line(x + width / 2.0, y + height / 2.0 + 3.4, one.label, "on", "middle", 9.0))
    for kind, stage in shapes:  # what follows the passes comes last, and lies above them
        for thin, looks in ((False, f"{hue(kind)} cut fine"), (True, hue(kind))):
            if some := [shape for shape in shapes[kind, stage] if (shape[2] < _THIN) == thin]:
                yield boxes(some, looks, tips.get((stage, kind), ""))
    yield from labels
