"""Where a thread waits for another: whoever calls the backward pass stands still while the thread of autograd's engine works.

Work of the engine (its operators are called `autograd::engine::...`, torch/csrc/autograd/engine.cpp) that lies whole in a gap of another
thread, with none of its calls across either end, is what that gap waits for. The gap becomes what comes before and what comes after, and
the engine's idle time before its work is no gap of its own: it begins when it is handed to.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from crossopt.instances.traces.kineto.events import Operator
from crossopt.instances.traces.kineto.threads import GAP, Piece

_ENGINE = "autograd::engine"


class Handover(NamedTuple):
    """A gap of a thread, and the pieces of another one that fill it; places among the pieces of each."""

    thread: str
    gap: int
    other: str
    first: int
    last: int


def handovers(pieces: Mapping[str, Sequence[Piece]], operators: Mapping[str, Sequence[Operator]]) -> list[Handover]:
    """All of them; of several gaps that the same work lies in the shortest."""
    found = dict[tuple[str, int], tuple[int, Handover]]()
    for other, own in pieces.items():
        engine = sorted((one.begin, one.end) for one in operators.get(other, ()) if one.name.startswith(_ENGINE))
        if not engine:
            continue
        for thread, theirs in pieces.items():
            for length, one in _filled(thread, theirs, other, own, engine) if thread != other else ():
                key = other, one.first
                found[key] = min(found.get(key, (length, one)), (length, one))
    return [one for _, one in found.values()]


def _filled(
    thread: str, theirs: Sequence[Piece], other: str, own: Sequence[Piece], engine: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, Handover]]:
    """Gaps of a thread that work of the engine fills, with their lengths."""
    calls = [place for place, piece in enumerate(own) if piece.call != GAP]
    begins, ends = [own[place].begin for place in calls], [own[place].end for place in calls]
    for gap, piece in enumerate(theirs):
        if piece.call != GAP:
            continue
        first, behind = bisect_left(begins, piece.begin), bisect_right(ends, piece.end)
        crosses = (first > 0 and ends[first - 1] > piece.begin) or (behind < len(begins) and begins[behind] < piece.end)
        if first < behind and not crosses and _is_inside(begins[first], engine):
            yield piece.end - piece.begin, Handover(thread, gap, other, calls[first], calls[behind - 1])


def _is_inside(time: int, intervals: Sequence[tuple[int, int]]) -> bool:
    """Whether the last interval that begins by then lasts until then; those of the engine do not lie in one another."""
    place = bisect_right(intervals, (time, 1 << 63))
    return place > 0 and time < intervals[place - 1][1]
