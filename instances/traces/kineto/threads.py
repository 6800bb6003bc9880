"""A thread's time in pieces that follow one another: its calls, and gaps of which nothing is known between them.

A call within a call takes its time from the outer one. A call is cut where its work on the device begins, so that the work waits for the
part before, of no time where a call within it begins at once; what is left of the call follows on the thread. Synchronising calls and
copies that block are pieces that wait.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from crossopt.instances.traces.kineto.events import Call, Operator

GAP = -1


class Piece(NamedTuple):
    """A part of a thread's time, and the call that it is of; GAP where it is of none."""

    begin: int
    end: int
    call: int
    is_head: bool
    """Whether work on the device may begin at its end, of the pieces of a call the last such one."""


def pieces_of(calls: Sequence[Call], numbers: Sequence[int], cuts: Mapping[int, int]) -> Iterator[Piece]:
    """The pieces of the calls of one thread, from time 0 on; `cuts` are the times at which work begins within a call."""
    order = sorted(numbers, key=lambda number: (calls[number].begin, -calls[number].end))
    open_calls, now = list[tuple[int, int]](), 0
    for number in order:
        call = calls[number]
        while open_calls and open_calls[-1][1] <= call.begin:
            outer, end = open_calls.pop()
            yield from _cut(outer, now, end, cuts)
            now = max(now, end)
        begin, end = call.begin, call.end
        if open_calls:
            end = min(end, open_calls[-1][1])
            outer = open_calls[-1][0]
            yield from _cut(outer, now, begin, cuts) if begin > now or (outer in cuts and begin == calls[outer].begin) else ()
        elif begin > now:
            yield Piece(now, begin, GAP, is_head=False)
        now = max(now, begin)
        open_calls.append((number, end))
    while open_calls:
        outer, end = open_calls.pop()
        yield from _cut(outer, now, end, cuts)
        now = max(now, end)


def _cut(call: int, begin: int, end: int, cuts: Mapping[int, int]) -> Iterator[Piece]:
    """A stretch of a call, in two where its work begins within."""
    at = cuts.get(call)
    if at is not None and begin <= at < end:
        yield Piece(begin, at, call, is_head=True)
        yield Piece(at, end, call, is_head=False)
    else:
        yield Piece(begin, end, call, is_head=at is None or end <= at)


def names_of_gaps(gaps: Sequence[Piece], operators: Sequence[Operator]) -> Iterator[str]:
    """`gap in OPERATOR` for the innermost operator that lasts all of a gap, and `gap` where there is none."""
    order, open_operators, next_one = sorted(operators, key=lambda one: (one.begin, -one.end)), list[Operator](), 0
    for gap in gaps:
        while next_one < len(order) and order[next_one].begin <= gap.begin:
            while open_operators and open_operators[-1].end <= order[next_one].begin:
                open_operators.pop()
            open_operators.append(order[next_one])
            next_one += 1
        inside = next((one for one in reversed(open_operators) if one.end >= gap.end), None)
        yield f"gap in {inside.name}" if inside else "gap"
