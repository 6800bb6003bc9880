"""The order in which work was launched, and which work of one stream waits for work of another.

A stream that is told to wait for an event begins no further work before what was launched ahead of that event. Some traces say which stream
and event a call is about. Of others it is told from times: the work waits for what ended last of all that had been launched on other
streams before the call; of a stream whose last work had not ended, for one before that, if the work began promptly behind it. One call lets
one stream wait, so that of all work that might have waited by it that has it which began soonest after what it waited for.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from crossopt.instances.traces.kineto.events import Events

ROUNDING = 1_000
"""ns by which an end may be later than that of who waited for it, as times are often told in whole microseconds."""
_PROMPT = 5_000
"""ns within which work begins that waited for an event alone."""
_LOOKED_AT = 64
"""Work of a stream, and calls before a launch, that are looked at."""


@dataclass(slots=True)
class Orders:
    """The work of each stream as it was launched, to find the last before some time."""

    events: Events
    call_of: Sequence[int]
    times: dict[str, list[int]] = field(default_factory=dict)
    works: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        launched = defaultdict[str, list[tuple[int, int, int]]](list)
        for number, work in enumerate(self.events.work):
            call = self.call_of[number]
            time = self.events.calls[call].begin if call >= 0 else work.begin
            launched[work.stream].append((time, work.begin, number))
        for stream, rows in launched.items():
            rows.sort()
            self.times[stream] = [time for time, _, _ in rows]
            self.works[stream] = [number for _, _, number in rows]

    def last_before(self, stream: str, time: int) -> int | None:
        """The work that was launched last on a stream before some time."""
        place = bisect_left(self.times.get(stream, []), time)
        return self.works[stream][place - 1] if place else None


@dataclass(slots=True)
class Crossings:
    """Which work a stream waits for at each of its work, by the calls that let it wait for an event of another stream."""

    events: Events
    orders: Orders
    told: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """By stream when the call was, and the work waited for."""
    likely: dict[int, int] = field(default_factory=dict)
    """By work that which it waits for, where the trace does not say which streams calls are about."""

    def __post_init__(self) -> None:
        record, untold = {call.correlation: call.begin for call in self.events.calls}, defaultdict[str, list[int]](list)
        for call in self.events.calls:
            if not call.name.endswith("StreamWaitEvent"):
                continue
            known = self.events.waited.get(call.correlation)
            if known is None:
                untold[call.thread].append(call.begin)
            elif (time := record.get(known.record)) is not None:
                work = self.orders.last_before(known.other, time)
                if work is not None:
                    self.told.setdefault(known.stream, []).append((call.begin, work))
        for rows in self.told.values():
            rows.sort()
        if untold:
            self._tell({thread: sorted(times) for thread, times in untold.items()})

    def _tell(self, untold: dict[str, list[int]]) -> None:
        """Each call to one work, those that began soonest after what they waited for first, of calls the last before the launch."""
        pairs, taken = list[tuple[int, int, int, int, str]](), set[tuple[str, int]]()
        for numbers in self.orders.works.values():
            since = -1
            for number in numbers:
                call = self.orders.call_of[number]
                if call < 0:
                    continue
                launch, thread = self.events.calls[call].begin, self.events.calls[call].thread
                times = untold.get(thread, [])
                last = bisect_left(times, launch)
                for time in times[max(bisect_left(times, since + 1), last - _LOOKED_AT) : last]:
                    if (other := self._ended_last(number, time)) is not None:
                        pairs.append((self.events.work[number].begin - self.events.work[other].end, launch - time, number, other, thread))
                since = launch
        for _, apart, number, other, thread in sorted(pairs):
            wait = thread, self.events.calls[self.orders.call_of[number]].begin - apart
            if number not in self.likely and wait not in taken:
                self.likely[number] = other
                taken.add(wait)

    def of(self, number: int, since: int) -> Iterator[int]:
        """Work of other streams that a work waits for, by calls between the launch before it on its stream and its own."""
        work, call = self.events.work[number], self.orders.call_of[number]
        launch = self.events.calls[call].begin if call >= 0 else since
        for time, other in self.told.get(work.stream, ()):
            if since < time < launch and self.events.work[other].end <= work.begin + ROUNDING:
                yield other
        if number in self.likely:
            yield self.likely[number]

    def _ended_last(self, number: int, time: int) -> int | None:
        """Of the work that was launched before on each other stream the one that ended last before this one began."""
        works, fitting = self.events.work, list[int]()
        for stream in self.orders.works:
            if stream != works[number].stream and (one := self._ended(stream, time, works[number].begin)) is not None:
                fitting.append(one)
        return max(fitting, key=lambda one: works[one].end, default=None)

    def _ended(self, stream: str, time: int, begin: int) -> int | None:
        """The last work that was launched on a stream before some time, or one before that behind which others began promptly."""
        last = bisect_left(self.orders.times[stream], time)
        for back, one in enumerate(reversed(self.orders.works[stream][max(last - _LOOKED_AT, 0) : last])):
            late = begin - self.events.work[one].end
            if late >= 0:
                return one if not back or late <= _PROMPT else None
        return None
