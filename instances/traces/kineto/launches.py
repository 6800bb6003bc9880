"""Which call launched which work, and work that begins before its launch.

Clocks of devices and of the host differ by some microseconds, so that traces hold work that begins before the call that launched it. It
is moved to where that call begins, as long as before. Only there is an order of the whole trace that nothing contradicts.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from crossopt.instances.traces.kineto.events import Events

LAUNCHED_BY_NONE = -1


@dataclass(frozen=True, slots=True)
class Early:
    """How much work of the trace began before its launch, and at most by how many ns."""

    count: int = 0
    most: int = 0


def launches_of(events: Events) -> list[int]:
    """The call that launched each work, LAUNCHED_BY_NONE where there is none. Several calls of one correlation are of several processes:
    the last before the work is taken."""
    calls = defaultdict[int, list[int]](list)
    for number, call in enumerate(events.calls):
        if call.correlation >= 0:
            calls[call.correlation].append(number)
    found = list[int]()
    for work in events.work:
        known = calls.get(work.correlation, [])
        before = [number for number in known if events.calls[number].begin <= work.begin]
        if before:
            found.append(max(before, key=lambda number: events.calls[number].begin))
        else:
            found.append(min(known, key=lambda number: events.calls[number].begin, default=LAUNCHED_BY_NONE))
    return found


def behind_launches(events: Events) -> tuple[Events, Early]:
    """The events with no work before its launch."""
    late = [
        0 if call == LAUNCHED_BY_NONE else max(0, events.calls[call].begin - work.begin)
        for work, call in zip(events.work, launches_of(events), strict=True)
    ]
    work = [one._replace(begin=one.begin + by, end=one.end + by) for one, by in zip(events.work, late, strict=True)]
    return replace(events, work=work), Early(sum(by > 0 for by in late), max(late, default=0))


def is_twice(events: Events) -> bool:
    """Whether each call and each work of the trace is in it again."""
    return _again(events.work) and (not events.calls or _again(events.calls))


def _again(rows: Sequence[tuple[object, ...]]) -> bool:
    return 2 * len(set(rows)) <= len(rows)
