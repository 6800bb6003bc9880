"""A roofline: FLOP/s that operators reach over the FLOPs they do for each byte, under the roofs of the memories and of the engines.

Both axes are logarithmic (Williams, Waterman and Patterson 2009). An operator stands at the bytes that it moves from the outermost memory;
where it comes nearer to the roof of another level, a hollow mark at that level's bytes is joined to it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot, log10
from typing import Final

from crossopt.reports.drawing.axes import Frame, Scale, tenfold_steps
from crossopt.reports.drawing.svg import Titles, box, dot, hue, letter, line, picture, spot, text_line, width_of

_LEFT: Final = 76.0
_TOP: Final = 58.0
_TALL: Final = 370.0
_BESIDE_FRAME: Final = 12.0
_LITTLE: Final = 400.0
_HALF: Final = 4.0
_LETTER: Final = 11.0
_NEAR: Final = 9.0
_SPACE: Final = 14.0
_FAR: Final = (13.0, 20.0, 28.0, 38.0, 50.0, 64.0, 80.0, 98.0)
"""How far from its mark a letter may stand."""

Room = tuple[float, float, float, float]
"""Left, top, width and height."""
_PARTS: Final = 120
_STEP: Final = 8.0
"""Between places of a frame where letters may stand that nothing nearer has room for."""
_ROW: Final = 3
"""Letters that follow each other from which on their ends are told."""


@dataclass(frozen=True, slots=True)
class Mark:
    """An operator: what is reached, at how many FLOPs a byte of the outermost memory, and of the level that it uses most."""

    colour: int
    square: bool
    rate: float
    intensity: float
    nearest: float
    tip: str = ""
    """What it says to who points at it."""


@dataclass(frozen=True, slots=True)
class Roof:
    """A memory's bytes a second or an engine's FLOPs a second, with what it is called."""

    label: str
    amount: float
    short: str = ""
    """Where there is little room."""

    def name_in(self, frame: Frame) -> str:
        return self.short if self.short and frame.across.room < _LITTLE else self.label


def roofline(titles: Titles, marks: Sequence[Mark], memories: Sequence[Roof], engines: Sequence[Roof]) -> str:
    """The picture; the first engine is the fastest one."""
    frame = _frame(marks, engines, titles.width - _LEFT - _BESIDE_FRAME)
    body = [*_grid(frame), *_roofs(frame, memories, engines[0].amount)]
    taken = [*_ways(frame, memories, engines[0].amount), *_spots(frame, marks)]
    fastest = max(roof.amount for roof in memories)
    for engine in engines:
        x, y = frame.at((engine.amount / fastest, engine.amount))
        body.append(line([(x, y), (frame.across.end, y)], "roof"))
        room = _label_position(frame, y, width_of(engine.name_in(frame)), taken)
        taken += [room, (_LEFT, y - 1.0, frame.across.room, 2.0)]
        body.append(text_line(room[0] + room[2], room[1] + 12.0, engine.name_in(frame), "m", "end"))
    body += _marks(frame, marks)
    body += _letters(frame, marks, taken)
    body += frame.named(("FLOPs for each byte", "FLOP/s"))
    return picture(titles, frame.height, body)


def _spots(frame: Frame, marks: Sequence[Mark]) -> Iterator[Room]:
    """Where marks stand, and the lines that join them to hollow ones."""
    for mark in marks:
        (x, y), other = frame.at((mark.intensity, mark.rate)), frame.x(mark.nearest)
        yield x - _HALF, y - _HALF, 2.0 * _HALF, 2.0 * _HALF
        yield min(x, other) - 3.0, y - 1.0, abs(x - other) + 3.0, 2.0


def _ways(frame: Frame, memories: Sequence[Roof], peak: float) -> Iterator[Room]:
    """Where the slopes of the memories run, and the lines from their names."""
    for _, x, (end, bottom) in _names(frame, memories, peak):
        for number in range(_PARTS):
            share = (number + 0.5) / _PARTS
            yield x + (end - x) * share - 2.0, 34.0 + (bottom - 34.0) * share - 1.0, 4.0, 2.0
    for roof in memories:
        for number in range(_PARTS):
            power = frame.across.low + (number + 0.5) / _PARTS * (frame.across.high - frame.across.low)
            rate = 10.0**power * roof.amount
            if rate <= peak:
                yield frame.x(10.0**power) - 3.0, frame.y(rate) - 2.0, 6.0, 4.0


def _label_position(frame: Frame, y: float, width: float, taken: Sequence[Room]) -> Room:
    """A free place for words above or below a level line, as far right as can be."""
    lefts = [frame.across.end - width - 24.0 * number for number in range(int((frame.across.room - width) / 24.0))]
    rooms = [(left, top, width, 15.0) for left in lefts for top in (y - 18.0, y + 3.0)]
    return next(
        (room for room in rooms if not any(_meet(room, other) for other in taken)), (frame.across.end - width, y - 18.0, width, 15.0)
    )


def _frame(marks: Sequence[Mark], engines: Sequence[Roof], room: float) -> Frame:
    places = [intensity for mark in marks for intensity in (mark.intensity, mark.nearest)]
    rates = [mark.rate for mark in marks]
    return Frame(
        Scale(log10(min(places)) - 0.3, log10(max(places)) + 0.8, _LEFT, room, tenfold=True),
        Scale(log10(min(rates)) - 0.25, log10(engines[0].amount) + 0.12, _TOP, _TALL, upward=True, tenfold=True),
    )


def _grid(frame: Frame) -> Iterator[str]:
    for tick in tenfold_steps(frame.upward.low, frame.upward.high):
        yield from frame.row(tick, f"1e{round(log10(tick))}")
    for tick in tenfold_steps(frame.across.low, frame.across.high):
        fits = width_of(f"{tick:g}") / 2.0 <= frame.across.end + _BESIDE_FRAME - frame.x(tick)
        yield from frame.column(tick, f"{tick:g}" if fits else "")


def _roofs(frame: Frame, memories: Sequence[Roof], peak: float) -> Iterator[str]:
    """The slopes of the memories up to the fastest engine, with their names in a row above."""
    least, most = 10.0**frame.across.low, 10.0**frame.across.high
    for roof in memories:
        low, high = max(least, 10.0**frame.upward.low / roof.amount), min(peak / roof.amount, most)
        if low < high:
            yield line([frame.at((low, low * roof.amount)), frame.at((high, high * roof.amount))], "roof")
    for label, x, end in _names(frame, memories, peak):
        yield text_line(x, 30.0, label, "m", "middle")
        yield line([(x, 34.0), end], "pointer quiet")


def _names(frame: Frame, memories: Sequence[Roof], peak: float) -> list[tuple[str, float, tuple[float, float]]]:
    """What stands above each memory's roof, where, and to which end of the roof its line leads."""
    ordered = sorted(memories, key=lambda roof: -roof.amount)
    most = 10.0**frame.across.high
    tops = [min(max(frame.x(min(peak / roof.amount, most)), _LEFT), frame.across.end) for roof in ordered]
    places = _apart(tops, [width_of(roof.name_in(frame)) / 2.0 for roof in ordered], frame.across.end + _BESIDE_FRAME)
    ends = [(top, max(frame.y(min(peak, most * roof.amount)), _TOP)) for roof, top in zip(ordered, tops, strict=True)]
    return [(roof.name_in(frame), x, end) for roof, x, end in zip(ordered, places, ends, strict=True)]


def _apart(tops: Sequence[float], halves: Sequence[float], end: float) -> list[float]:
    """Middles of words of these half widths, near their ends, in one row without touching."""
    places, left = list[float](), 48.0
    for top, half in zip(tops, halves, strict=True):
        places.append(max(top, left + half))
        left = places[-1] + half + _SPACE
    right = end
    for number in range(len(places) - 1, -1, -1):
        places[number] = min(places[number], right - halves[number])
        right = places[number] - halves[number] - _SPACE
    return places


def _marks(frame: Frame, marks: Sequence[Mark]) -> Iterator[str]:
    for mark in marks:
        x, y = frame.at((mark.intensity, mark.rate))
        if mark.nearest != mark.intensity:
            other = frame.x(mark.nearest)
            yield line([(other, y), (x, y)], "pointer quiet")
            yield dot(other, y, 3.0, "hollow")
    for mark in marks:
        (x, y), colour = frame.at((mark.intensity, mark.rate)), f"{hue(int(mark.square))} cut"
        yield spot(x, y, _HALF, colour, mark.square, mark.tip)


def _letters(frame: Frame, marks: Sequence[Mark], taken: list[Room]) -> Iterator[str]:
    """Letters beside their marks, those of marks on each other together, at the first place near that nothing else has; with a line where
    that is not next to it."""
    ways = ((1.0, 0.0), (0.0, -1.0), (0.0, 1.0), (-1.0, 0.0), (0.75, -0.75), (-0.75, -0.75), (0.75, 0.75), (-0.75, 0.75))
    labels = list[Room]()
    for (x, y), text in _together(frame, marks):
        half = width_of(text, _LETTER) / 2.0 + 1.0
        steps = [(far * across + half * (across > 0.0) - half * (across < 0.0), far * upward) for far in _FAR for across, upward in ways]
        around = [(x + across - half, y + upward - 6.5, 2.0 * half, 13.0) for across, upward in steps]
        room = _first_clear(frame, (x, y), around, taken, labels)
        taken.append(room)
        labels.append(room)
        middle = (room[0] + half, room[1] + 6.5)
        if abs(middle[1] - y) > 16.0 or abs(middle[0] - x) > half + 16.0:
            yield line([(x, y), middle], "pointer quiet")
            yield box(*room, "ground")
        yield text_line(middle[0], middle[1] + 4.0, text, "t", "middle", _LETTER)


def _first_clear(frame: Frame, mark: tuple[float, float], around: Sequence[Room], taken: Sequence[Room], labels: Sequence[Room]) -> Room:
    """The first place that nothing else has and to which a line crosses no letters, the first that nothing else has, or the first."""
    free = list[Room]()
    for room in around:
        if _inside(frame, room) and not any(_meet(room, other) for other in taken):
            if not any(_meet(step, label) for step in _between(mark, room) for label in labels):
                return room
            free.append(room)
    return free[0] if free else _nearest(frame, mark, around[0], taken)


def _nearest(frame: Frame, mark: tuple[float, float], first: Room, taken: Sequence[Room]) -> Room:
    """The free place of the whole frame that is nearest to a mark; where there is none, the first one, inside."""
    _, _, width, height = first
    lefts = [_LEFT + _STEP * number for number in range(int((frame.across.room - width) / _STEP) + 1)]
    tops = [_TOP + _STEP * number for number in range(int((_TALL - height) / _STEP) + 1)]
    rooms = [(left, top, width, height) for left in lefts for top in tops]
    rooms.sort(key=lambda room: hypot(room[0] + width / 2.0 - mark[0], room[1] + height / 2.0 - mark[1]))
    return next((room for room in rooms if not any(_meet(room, other) for other in taken)), _moved_inside(frame, first))


def _moved_inside(frame: Frame, room: Room) -> Room:
    x, y, width, height = room
    return max(min(x, frame.across.end - width), _LEFT), y, width, height


def _between(mark: tuple[float, float], room: Room) -> Iterator[Room]:
    """Places on the way from a mark to the middle of its letters, outside of both."""
    (x, y), (left, top, width, height) = mark, room
    across, upward = left + width / 2.0 - x, top + height / 2.0 - y
    for number in range(2, 8):
        yield x + across * number / 10.0 - 1.0, y + upward * number / 10.0 - 1.0, 2.0, 2.0


def _together(frame: Frame, marks: Sequence[Mark]) -> list[tuple[tuple[float, float], str]]:
    """Marks that lie on each other, as one place with the letters of all of them."""
    groups = list[tuple[tuple[float, float], list[str]]]()
    for mark in marks:
        x, y = frame.at((mark.intensity, mark.rate))
        near = [group for group in groups if abs(group[0][0] - x) < _NEAR and abs(group[0][1] - y) < _NEAR]
        if near:
            near[0][1].append(letter(mark.colour))
        else:
            groups.append(((x, y), [letter(mark.colour)]))
    return [(centre, " ".join(_in_short(names))) for centre, names in groups]


def _in_short(names: Sequence[str]) -> Iterator[str]:
    """Letters, three and more in a row by their ends: A-D F."""
    runs = list[list[str]]()
    for name in names:
        if runs and len(name) == len(runs[-1][-1]) == 1 and ord(name) == ord(runs[-1][-1]) + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    for run in runs:
        yield from [f"{run[0]}-{run[-1]}"] if len(run) >= _ROW else run


def _inside(frame: Frame, room: Room) -> bool:
    x, y, width, height = room
    return x >= _LEFT and x + width <= frame.across.end and y >= _TOP and y + height <= _TOP + _TALL


def _meet(first: Room, second: Room) -> bool:
    (left, top, width, height), (x, y, across, upward) = first, second
    return left < x + across and x < left + width and top < y + upward and y < top + height
