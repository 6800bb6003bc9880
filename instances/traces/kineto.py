"""Kineto's traces of PyTorch as graphs: events by what they are, threads and launches, and what waits for what."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from crossopt.crossflow.traces import Graph, graph_of
from crossopt.instances.files.units import quoted
from crossopt.instances.traces.graph_file import FULL_WINDOW, Faults, Window, ends_of, nanoseconds, plain, refuse

# Events of a Kineto file by what they are: calls of threads to the device's runtime, what devices did, and what waited for what.
#
# Times are whole nanoseconds from the first event. Operators of the framework (`cpu_op`) only give names to the time between calls, and
# of annotations those of the profiler's steps are read alone.

_KNOWN_SCHEMA = 1
_SHORT, _MOST_INPUTS = 24, 1_000
_CALLS = ("cuda_runtime", "cuda_driver", "runtime", "driver", "privateuse1_runtime")
_DEVICE = {"kernel": "kernel", "gpu_memcpy": "copy", "memcpy": "copy", "gpu_memset": "copy", "memset": "copy"}
_SYNC, _OPERATOR, _MARK, _STEP = "cuda_sync", "cpu_op", "user_annotation", "ProfilerStep#"
_ELEMENT = {"float": 4, "int": 4, "bfloat16": 2, "half": 2, "double": 8, "long": 8, "byte": 1, "char": 1, "bool": 1, "float8": 1}
"""Bytes of an element, by the beginning of its name in lower case; those that begin with a longer one stand before."""


class Call(NamedTuple):
    """What a thread asked of the runtime."""

    begin: int
    end: int
    name: str
    thread: str
    correlation: int


class Operator(NamedTuple):
    """What a thread was at between its calls."""

    begin: int
    end: int
    name: str
    thread: str
    inputs: str
    """Types and shapes, where the profiler recorded them."""


class Work(NamedTuple):
    """What a device did."""

    begin: int
    end: int
    name: str
    kind: str
    stream: str
    correlation: int
    bytes: int
    group: str


class Waited(NamedTuple):
    """Which stream or event a call waited for, or let a stream wait for."""

    kind: str
    stream: str
    """That waits, or is waited for by a thread."""
    other: str
    """Of the event."""
    record: int
    """Correlation of the call that recorded the event; -1 if unknown."""


class Step(NamedTuple):
    """What the profiler marked as a step, and the thread that ended it."""

    begin: int
    end: int
    thread: str


@dataclass(slots=True)
class Events:
    """What a file holds, as far as it counts here."""

    calls: list[Call] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    waited: dict[int, Waited] = field(default_factory=dict)
    """By the correlation of the call."""
    steps: dict[int, Step] = field(default_factory=dict)
    """That the profiler marked."""
    step: Step | None = None
    """The one that is kept, whose time is all from its begin on."""
    before: int = 0
    """Work of the window that is left out, as it was launched before."""
    span: int = 0
    rank: int | None = None


def is_kineto(document: object) -> bool:
    return isinstance(document, list) or (isinstance(document, dict) and "traceEvents" in document)


def events_in(path: Path, document: Any, window: Window = FULL_WINDOW) -> Events:  # noqa: ANN401 - JSON as it is
    """The events of a document, as far as they are of the window; an InstanceError with every fault."""
    rows = document if isinstance(document, list) else document["traceEvents"]
    if not isinstance(rows, list):
        refuse(path, "traceEvents: a list is needed")
    schema = _KNOWN_SCHEMA if isinstance(document, list) else document.get("schemaVersion", _KNOWN_SCHEMA)
    if schema != _KNOWN_SCHEMA:
        refuse(path, f"schemaVersion: {quoted(str(schema))} is no version that is known ({_KNOWN_SCHEMA} is; trace with today's PyTorch)")
    reader = _Reader(Faults(path))
    for index, row in enumerate(rows):
        if isinstance(row, dict):
            reader.look(index, row)
        else:
            reader.faults.add(f"traceEvents[{index}]", "a mapping is needed")
    reader.faults.end()
    found = reader.events
    if not found.work:
        refuse(path, "no kernel, copy or fill of a device is in this trace (trace with ProfilerActivity.CUDA)")
    about = {} if isinstance(document, list) else document.get("distributedInfo")
    rank = about.get("rank") if isinstance(about, dict) else None
    found.rank = rank if type(rank) is int else None
    return _within(path, found, window) if window else found


def _within(path: Path, events: Events, window: Window) -> Events:
    """The calls that begin within the window, the work that they launch, and work without a launch that begins there."""
    begin, end = ends_of(path, window, {number: (step.begin, step.end) for number, step in events.steps.items()}, _first(events))
    calls = [call for call in events.calls if begin <= call.begin < end]
    launching, launched = {call.correlation for call in calls}, {call.correlation for call in events.calls}
    inside = [begin <= event.begin < end for event in events.work]
    inside_window = [
        event
        for event, is_inside in zip(events.work, inside, strict=True)
        if (event.correlation in launching if event.correlation in launched and event.correlation >= 0 else is_inside)
    ]
    if not inside_window:
        what = f"step {window.step}" if window.step is not None else "this window"
        refuse(path, f"nothing of a device is launched in {what} (the trace lasts {(_last(events) - _first(events)) / 1e6:,.3f} ms)")
    left = sum(inside) - sum(begin <= event.begin < end for event in inside_window)
    operators = [event for event in events.operators if begin <= event.begin < end]
    step = None if window.step is None else events.steps[window.step]
    return replace(events, calls=calls, work=inside_window, operators=operators, before=left, step=step)


def _first(events: Events) -> int:
    return min([event.begin for event in events.work] + [event.begin for event in events.calls])


def _last(events: Events) -> int:
    return max([event.end for event in events.work] + [event.end for event in events.calls])


@dataclass(slots=True)
class _Reader:
    faults: Faults
    events: Events = field(default_factory=Events)

    def look(self, index: int, row: Mapping[str, Any]) -> None:
        category = row.get("cat")
        if row.get("ph") != "X" or not isinstance(category, str):
            return
        category, given = category.lower(), row.get("args")
        args: Mapping[str, Any] = given if isinstance(given, dict) else {}
        if category in _CALLS:
            correlation = self.number(index, args, "correlation")
            self.events.calls.append(Call(*self.times(index, row), _name_of(row), _thread_of(row), correlation))
        elif category in _DEVICE:
            begin, end = self.times(index, row)
            name, stream, correlation = _name_of(row), self.stream(index, row, args), self.number(index, args, "correlation")
            is_collective = _DEVICE[category] == "kernel" and any(library in name.lower() for library in ("nccl", "rccl"))
            kind, moved = ("collective", _sent(args)) if is_collective else (_DEVICE[category], _count(args.get("bytes")))
            group = plain(str(args.get("Process Group Name", ""))) if is_collective else ""
            self.events.work.append(Work(begin, end, name, kind, stream, correlation, moved, group))
        elif category == _OPERATOR:
            begin, took = (nanoseconds(row.get(key), _ignored) for key in ("ts", "dur"))
            if took > 0:
                self.events.operators.append(Operator(begin, begin + took, _name_of(row), _thread_of(row), _inputs_of(args)))
        elif category == _MARK and str(row.get("name")).startswith(_STEP):
            self.mark(index, row)
        elif category == _SYNC:
            self.events.waited[self.number(index, args, "correlation")] = _waited(row, args)

    def mark(self, index: int, row: Mapping[str, Any]) -> None:
        """A step, which several threads may have marked."""
        number = str(row["name"]).removeprefix(_STEP)
        if number.isdecimal() and len(number) <= _SHORT:
            begin, end = self.times(index, row)
            known = self.events.steps.get(int(number), Step(begin, end, _thread_of(row)))
            self.events.steps[int(number)] = Step(min(begin, known.begin), *max((end, _thread_of(row)), known[1:]))

    def times(self, index: int, row: Mapping[str, Any]) -> tuple[int, int]:
        at = f"traceEvents[{index}]"
        begin = nanoseconds(row.get("ts"), lambda problem: self.faults.add(f"{at}.ts", problem))
        took = nanoseconds(row.get("dur"), lambda problem: self.faults.add(f"{at}.dur", problem))
        if took < 0:
            self.faults.add(f"{at}.dur", f"{quoted(str(row.get('dur')))} microseconds are below 0 (the clock went back: trace again)")
        return begin, begin + took

    def number(self, index: int, args: Mapping[str, Any], key: str) -> int:
        """An integer argument, or -1 where it is missing."""
        value = args.get(key, -1)
        if type(value) is not int:
            self.faults.add(f"traceEvents[{index}].args.{key}", f"{quoted(str(value))} is no whole number")
            return -1
        return value

    def stream(self, index: int, row: Mapping[str, Any], args: Mapping[str, Any]) -> str:
        stream = args.get("stream", row.get("tid"))
        if type(stream) is not int:
            self.faults.add(f"traceEvents[{index}].args.stream", f"{quoted(str(stream))} is no number of a stream")
        return _stream_name(args.get("device", row.get("pid")), stream)


def _inputs_of(args: Mapping[str, Any]) -> str:
    """Types and shapes of an operator's tensors (`record_shapes`): `float 64x8, float 8x4`."""
    shapes, types = args.get("Input Dims"), args.get("Input type")
    if not isinstance(shapes, list) or not isinstance(types, list) or len(shapes) != len(types):
        return ""
    tensors = [(str(kind), shape) for kind, shape in zip(types, shapes, strict=True) if isinstance(shape, list) and shape]
    if not all(type(side) is int and side >= 0 for _, shape in tensors for side in shape):
        return ""
    return plain(", ".join(f"{kind} {'x'.join(map(str, shape))}" for kind, shape in tensors))[:_MOST_INPUTS]


def _thread_of(row: Mapping[str, Any]) -> str:
    return f"thread {_short(row.get('pid'))}:{_short(row.get('tid'))}"


def _ignored(message: str) -> None:
    """Operators only give names: one whose times are wrong gives none."""
    del message


def _stream_name(device: object, stream: object) -> str:
    return f"device {_short(device)} stream {_short(stream)}"


def _short(number: object) -> str:
    """A number as a text; of what is none no more than a few signs."""
    return str(number) if type(number) is int else plain(str(number))[:_SHORT]


def _name_of(row: Mapping[str, Any]) -> str:
    return plain(str(row.get("name", "")))


def _waited(row: Mapping[str, Any], args: Mapping[str, Any]) -> Waited:
    device = args.get("device", row.get("pid"))
    record = args.get("wait_on_cuda_event_record_corr_id", -1)
    return Waited(
        str(args.get("cuda_sync_kind", row.get("name"))).lower(),
        _stream_name(device, args.get("stream")),
        _stream_name(device, args.get("wait_on_stream")),
        record if type(record) is int else -1,
    )


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 62 else 0


def _sent(args: Mapping[str, Any]) -> int:
    """Bytes that go into a collective, where the trace has elements and their type."""
    kind = str(args.get("dtype", "")).lower()
    width = next((size for name, size in sorted(_ELEMENT.items(), key=lambda pair: -len(pair[0])) if kind.startswith(name)), 0)
    return _count(_count(args.get("In msg nelems")) * width)


def from_zero(events: Events) -> Events:
    """The events with times from the first begin or that of the step. Streams leave out the device where there is one, threads the
    process."""
    step = events.step
    first, last = (_first(events), _last(events)) if step is None else (step.begin, max(_last(events), step.end))
    streams = {event.stream for event in events.work}
    shorter = _shorter(streams | {name for event in events.waited.values() for name in (event.stream, event.other)}, streams)
    called = {event.thread for event in events.calls} | ({step.thread} if step else set())
    threads, named = _shorter(called, called), [event for event in events.operators if event.thread in called]
    return replace(
        events,
        calls=[event._replace(begin=event.begin - first, end=event.end - first, thread=threads[event.thread]) for event in events.calls],
        work=[event._replace(begin=event.begin - first, end=event.end - first, stream=shorter[event.stream]) for event in events.work],
        operators=[event._replace(begin=event.begin - first, end=event.end - first, thread=threads[event.thread]) for event in named],
        waited={key: event._replace(stream=shorter[event.stream], other=shorter[event.other]) for key, event in events.waited.items()},
        step=None if step is None else Step(0, step.end - first, threads[step.thread]),
        span=last - first,
    )


def _shorter(names: set[str], meant: set[str]) -> dict[str, str]:
    """Each name without the device or process before it, where all that are meant have the same."""
    heads = {_head(name) for name in meant}
    return {name: f"{_kind(name)} {_tail(name)}" if len(heads) == 1 and _head(name) in heads else name for name in names}


def _kind(name: str) -> str:
    return "stream" if name.startswith("device") else "thread"


def _head(name: str) -> str:
    return name.rpartition(" stream ")[0] or name.rpartition(":")[0]


def _tail(name: str) -> str:
    return name.rpartition(" stream ")[2] if " stream " in name else name.rpartition(":")[2]


# Which call launched which work, and work that begins before its launch.
#
# Clocks of devices and of the host differ by some microseconds, so that traces hold work that begins before the call that launched it. It
# is moved to where that call begins, as long as before. Only there is an order of the whole trace that nothing contradicts.

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
    work = [event._replace(begin=event.begin + by, end=event.end + by) for event, by in zip(events.work, late, strict=True)]
    return replace(events, work=work), Early(sum(by > 0 for by in late), max(late, default=0))


def is_twice(events: Events) -> bool:
    """Whether each call and each work of the trace is in it again."""
    return _again(events.work) and (not events.calls or _again(events.calls))


def _again(rows: Sequence[tuple[object, ...]]) -> bool:
    return 2 * len(set(rows)) <= len(rows)


# From events to a graph (the construction of Daydream, Zhu et al., USENIX ATC 2020, and of Holistic Trace Analysis):
#
#     thread   calls of a thread follow one another, and the gaps between them are operations
#     launch   work on a device begins no earlier than the call of its correlation lets it
#     stream   work of a stream follows in the order of begins
#     wait     a thread that synchronises ends no earlier than the last work launched before on the stream, ahead of the event or on the
#              device; a stream that waits for an event begins no further work before what was launched ahead of that event
#
# Work that begins later than all of that explains has a gap before it: `launch latency` where the launch was last, `device gap` where other
# work was. A wait keeps of its time what it took after the work had ended. So an unchanged graph runs as traced but for events that
# contradict the order: work of a stream that overlaps. No work begins before its launch here.
#
# A call that copies memory that is not pinned returns once all of it is staged, with the last of it perhaps still on its way (CUDA Runtime
# API, API synchronization behavior). Such a copy is two operations, cut where its call ends, and the call waits for the first.

# --- pieces of a thread's time --------------------------------------------------------------------------------------------------------


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
    order, open_operators, next_one = sorted(operators, key=lambda operator: (operator.begin, -operator.end)), list[Operator](), 0
    for gap in gaps:
        while next_one < len(order) and order[next_one].begin <= gap.begin:
            while open_operators and open_operators[-1].end <= order[next_one].begin:
                open_operators.pop()
            open_operators.append(order[next_one])
            next_one += 1
        inside = next((operator for operator in reversed(open_operators) if operator.end >= gap.end), None)
        yield f"gap in {inside.name}" if inside else "gap"


# --- threads that wait for others -----------------------------------------------------------------------------------------------------


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
        engine = sorted((handover.begin, handover.end) for handover in operators.get(other, ()) if handover.name.startswith(_ENGINE))
        if not engine:
            continue
        for thread, theirs in pieces.items():
            for length, handover in _filled(thread, theirs, other, own, engine) if thread != other else ():
                key = other, handover.first
                found[key] = min(found.get(key, (length, handover)), (length, handover))
    return [handover for _, handover in found.values()]


def _filled(
    thread: str, theirs: Sequence[Piece], other: str, own: Sequence[Piece], engine: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, Handover]]:
    """Gaps of a thread that work of the engine fills, with their lengths."""
    calls = [index for index, piece in enumerate(own) if piece.call != GAP]
    begins, ends = [own[index].begin for index in calls], [own[index].end for index in calls]
    for gap, piece in enumerate(theirs):
        if piece.call != GAP:
            continue
        first, behind = bisect_left(begins, piece.begin), bisect_right(ends, piece.end)
        crosses = (first > 0 and ends[first - 1] > piece.begin) or (behind < len(begins) and begins[behind] < piece.end)
        if first < behind and not crosses and _is_inside(begins[first], engine):
            yield piece.end - piece.begin, Handover(thread, gap, other, calls[first], calls[behind - 1])


def _is_inside(time: int, intervals: Sequence[tuple[int, int]]) -> bool:
    """Whether the last interval that begins by then lasts until then; those of the engine do not lie in one another."""
    index = bisect_right(intervals, (time, 1 << 63))
    return index > 0 and time < intervals[index - 1][1]


# --- order of launches, and streams that wait for others ------------------------------------------------------------------------------


ROUNDING = 1_000
"""ns by which an end may be later than that of who waited for it, as times are often told in whole microseconds."""
_PROMPT = 5_000
"""ns within which work begins that waited for an event alone."""
_LOOKED_AT = 64
"""Most work items of a stream, and calls before a launch, that are searched."""


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
        index = bisect_left(self.times.get(stream, []), time)
        return self.works[stream][index - 1] if index else None


@dataclass(slots=True)
class Crossings:
    """Which work a stream waits for at each of its work, by the calls that let it wait for an event of another stream."""

    events: Events
    orders: Orders
    recorded: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
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
                    self.recorded.setdefault(known.stream, []).append((call.begin, work))
        for rows in self.recorded.values():
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
        for time, other in self.recorded.get(work.stream, ()):
            if since < time < launch and self.events.work[other].end <= work.begin + ROUNDING:
                yield other
        if number in self.likely:
            yield self.likely[number]

    def _ended_last(self, number: int, time: int) -> int | None:
        """Of the work that was launched before on each other stream the one that ended last before this one began."""
        works, fitting = self.events.work, list[int]()
        for stream in self.orders.works:
            if stream != works[number].stream and (candidate := self._ended(stream, time, works[number].begin)) is not None:
                fitting.append(candidate)
        return max(fitting, key=lambda candidate: works[candidate].end, default=None)

    def _ended(self, stream: str, time: int, begin: int) -> int | None:
        """The last work that was launched on a stream before some time, or one before that behind which others began promptly."""
        last = bisect_left(self.orders.times[stream], time)
        for back, candidate in enumerate(reversed(self.orders.works[stream][max(last - _LOOKED_AT, 0) : last])):
            late = begin - self.events.work[candidate].end
            if late >= 0:
                return candidate if not back or late <= _PROMPT else None
        return None


_BLOCKS = ("StreamSynchronize", "EventSynchronize", "DeviceSynchronize", "CtxSynchronize")
LAUNCH_LATENCY, DEVICE_GAP = "launch latency", "device gap"


@dataclass(slots=True)
class Building:
    """A graph while it grows, and what has to be said of it."""

    events: Events
    operations: list[tuple[str, str, str, int]] = field(default_factory=list)
    edges: list[tuple[int, int, str]] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    head_of: dict[int, int] = field(default_factory=dict)
    """By call the operation at whose end its work may begin."""
    tail_of: dict[int, int] = field(default_factory=dict)
    """By call the operation that ends it, with the time at which that began."""
    place_of: dict[int, int] = field(default_factory=dict)
    """By work the operation at whose end it is done."""
    first_of: dict[int, int] = field(default_factory=dict)
    """By a copy that goes on behind its call the operation that the call waits for."""
    inferred: int = 0
    handed: int = 0
    """How often a thread waits for that of autograd."""
    unlaunched: int = 0
    overlapping: list[tuple[int, int]] = field(default_factory=list)
    """Work of a stream that begins before the work before it ends: ns, and which."""

    def add(self, name: str, kind: str, where: str, took: int, moved: int = 0, group: str = "", inputs: str = "") -> int:
        self.operations.append((name, kind, where, took))
        self.moved.append(moved)
        self.groups.append(group)
        self.inputs.append(inputs)
        return len(self.operations) - 1


def building_of(events: Events) -> Building:
    """The graph of the events of one process."""
    building = Building(events)
    call_of = launches_of(events)
    building.unlaunched = call_of.count(LAUNCHED_BY_NONE)
    orders = Orders(events, call_of)
    waits = _waits(events, orders)
    _add_threads(building, call_of, waits)
    crossings = Crossings(events, orders)
    building.inferred = len(crossings.likely)
    _add_work(building, orders, crossings)
    _join_waits(building, waits)
    return building


def graph_in(building: Building) -> Graph:
    return graph_of(building.operations, building.edges, building.moved, (), building.groups, building.inputs)


def _is_blocking_copy(call: Call, work: Work) -> bool:
    """Whether a call returns only when its copy is done: one that is not asynchronous, or of memory that is not pinned."""
    blocks = "emcpy" in call.name and ("Async" not in call.name or "Pageable" in work.name)
    return blocks and work.kind == "copy" and work.begin < call.end


def _is_staged(call: Call, work: Work) -> bool:
    """Whether a call returns while the last of its copy is still on its way, as all of it is staged."""
    is_own = "emcpy" in call.name and 0 <= call.correlation == work.correlation
    return is_own and work.kind == "copy" and "Pageable" in work.name and work.begin < call.end < work.end


def _waits(events: Events, orders: Orders) -> dict[int, list[int]]:
    """By call the work that its thread waits for; only what had ended by the end of the call, or is a copy of its own that is staged."""
    found = defaultdict[int, list[int]](list)
    for number, call_number in enumerate(orders.call_of):
        if call_number >= 0 and _is_blocking_copy(events.calls[call_number], events.work[number]):
            found[call_number].append(number)
    last_stream: dict[str, str] = {}
    launched = {call: events.work[number].stream for number, call in enumerate(orders.call_of)}
    record = {call.correlation: call.begin for call in events.calls}
    for number in sorted(range(len(events.calls)), key=lambda index: events.calls[index].begin):
        call = events.calls[number]
        last_stream[call.thread] = launched.get(number, last_stream.get(call.thread, ""))
        if not call.name.endswith(_BLOCKS):
            continue
        known, before = events.waited.get(call.correlation), call.begin
        if "Device" in call.name or "Ctx" in call.name:
            streams = list(orders.works)
        elif known is None:
            streams = [last_stream[call.thread]]
        elif known.kind.startswith("event"):
            streams, before = ([known.other], record[known.record]) if known.record in record else ([], 0)
        else:
            streams = [known.stream]
        found[number] += [work for stream in streams if (work := orders.last_before(stream, before)) is not None]
    ended = {
        number: [
            work
            for work in works
            if events.work[work].end <= events.calls[number].end + ROUNDING or _is_staged(events.calls[number], events.work[work])
        ]
        for number, works in found.items()
    }
    return {number: works for number, works in ended.items() if works}


def _add_threads(building: Building, call_of: Sequence[int], waits: dict[int, list[int]]) -> None:
    """The operations of every thread, in their order, and where one waits for another."""
    pieces, operators = _pieces(building.events, call_of), defaultdict[str, list[Operator]](list)
    for operator in building.events.operators:
        operators[operator.thread].append(operator)
    handed = handovers(pieces, operators)
    filled = {(handover.thread, handover.gap): handover for handover in handed}
    preceding = {(handover.other, handover.first - 1) for handover in handed if handover.first}
    idle = {(thread, index) for thread, index in preceding - filled.keys() if pieces[thread][index].call == GAP}
    ends = dict[tuple[str, int], tuple[int, int]]()
    for thread, own in pieces.items():
        names = names_of_gaps([piece for piece in own if piece.call == GAP], operators[thread])
        last_of = {piece.call: index for index, piece in enumerate(own)}
        previous = list[int]()
        for index, piece in enumerate(own):
            waited = waits.get(piece.call, []) if last_of[piece.call] == index else []
            name = next(names) if piece.call == GAP else ""
            if (thread, index) in idle:
                continue
            parts = _parts(piece, filled.get((thread, index)), pieces)
            added = [_add_piece(building, part, thread, waited, name) for part in parts]
            building.edges += [(before, after, "thread") for before, after in pairwise([*previous, *added])]
            ends[thread, index], previous = (added[0], added[-1]), added[-1:]
    for handover in handed:
        head, tail = ends[handover.thread, handover.gap]
        building.edges += [(head, ends[handover.other, handover.first][0], "wait"), (ends[handover.other, handover.last][1], tail, "wait")]
    building.handed = len(handed)


def _pieces(events: Events, call_of: Sequence[int]) -> dict[str, list[Piece]]:
    """The time of every thread, calls cut where their work begins; of the one that ended the step until then."""
    cuts, by_thread = dict[int, int](), defaultdict[str, list[int]](list)
    for number, call_number in enumerate(call_of):
        if call_number >= 0:
            call, begin = events.calls[call_number], events.work[number].begin
            if begin < call.end:
                cuts[call_number] = min(cuts.get(call_number, begin), begin)
    for number, call in enumerate(events.calls):
        by_thread[call.thread].append(number)
    found = defaultdict(list, {thread: list(pieces_of(events.calls, numbers, cuts)) for thread, numbers in by_thread.items()})
    if events.step is not None:
        own = found[events.step.thread]
        done = own[-1].end if own else 0
        own += [Piece(done, events.step.end, GAP, is_head=False)] if done < events.step.end else []
    return found


def _parts(piece: Piece, handed: Handover | None, pieces: dict[str, list[Piece]]) -> list[Piece]:
    """A piece, or of a gap that another thread's work fills what comes before that and behind it."""
    if handed is None:
        return [piece]
    other = pieces[handed.other]
    return [piece._replace(end=other[handed.first].begin), piece._replace(begin=other[handed.last].end)]


def _add_piece(building: Building, piece: Piece, thread: str, waited: Sequence[int], gap: str) -> int:
    took = piece.end - piece.begin
    if piece.call == GAP:
        return building.add(gap, "gap", thread, took)
    call, work = building.events.calls[piece.call], building.events.work
    if waited:
        took = max(0, piece.end - max(piece.begin, *(work[waited_work].end for waited_work in waited)))
    operation = building.add(call.name, "wait" if waited else "host", thread, took)
    if piece.is_head:
        building.head_of[piece.call] = operation
    building.tail_of[piece.call] = operation
    return operation


def _join_waits(building: Building, waits: dict[int, list[int]]) -> None:
    for number, works in waits.items():
        call = building.events.calls[number]
        for work in works:
            done = building.first_of[work] if _is_staged(call, building.events.work[work]) else building.place_of[work]
            building.edges.append((done, building.tail_of[number], "wait"))


def _add_work(building: Building, orders: Orders, crossings: Crossings) -> None:
    """All work first, then what each waits for, and the gap that nothing explains."""
    works, inputs = building.events.work, _inputs_of_calls(building.events)
    by_stream = defaultdict[str, list[int]](list)
    for number in sorted(range(len(works)), key=lambda index: (works[index].begin, works[index].end)):
        call = orders.call_of[number]
        _add_one(building, number, call, inputs.get(call, ""))
        by_stream[works[number].stream].append(number)
    for numbers in by_stream.values():
        since, previous = -1, -1
        for number in numbers:
            waited = [(works[other].end, building.place_of[other], "wait") for other in crossings.of(number, since)]
            call = orders.call_of[number]
            if call >= 0:
                head = building.head_of[call]
                waited.append((min(building.events.calls[call].end, works[number].begin), head, "launch"))
                since = building.events.calls[call].begin
            if previous >= 0:
                waited.append((works[previous].end, building.place_of[previous], "stream"))
                if works[previous].end > works[number].begin + ROUNDING:
                    building.overlapping.append((works[previous].end - works[number].begin, number))
            _join_work(building, number, waited)
            previous = number


def _inputs_of_calls(events: Events) -> dict[int, str]:
    """By call the innermost operator around its begin of which the inputs are known."""
    found, by_thread = dict[int, str](), defaultdict[str, list[tuple[int, int, int]]](list)
    for index, operator in enumerate(events.operators):
        if operator.inputs:
            by_thread[operator.thread].append((operator.begin, -operator.end, index))
    for number, call in enumerate(events.calls):
        by_thread[call.thread].append((call.begin, 0, -1 - number))
    for rows in by_thread.values():
        around = list[Operator]()
        for begin, _, index in sorted(rows):
            while around and around[-1].end < begin:
                around.pop()
            if index >= 0:
                around.append(events.operators[index])
            elif around:
                found[-1 - index] = f"{around[-1].name}({around[-1].inputs})"
    return found


def _add_one(building: Building, number: int, call: int, inputs: str) -> None:
    """A work, in two operations where it is a copy that goes on behind its call."""
    work = building.events.work[number]
    took, begun, sent = work.end - work.begin, 0, 0
    if call >= 0 and _is_staged(building.events.calls[call], work):
        begun = building.events.calls[call].end - work.begin
        sent = work.bytes * begun // took
        building.first_of[number] = building.add(work.name, work.kind, work.stream, begun, sent, work.group, inputs)
    building.place_of[number] = building.add(work.name, work.kind, work.stream, took - begun, work.bytes - sent, work.group, inputs)
    if number in building.first_of:
        building.edges.append((building.first_of[number], building.place_of[number], "stream"))


def _join_work(building: Building, number: int, waited: list[tuple[int, int, str]]) -> None:
    work, operation = building.events.work[number], building.first_of.get(number, building.place_of[number])
    building.edges += [(before, operation, reason) for _, before, reason in waited]
    last = max(waited, default=(0, -1, ""))
    if work.begin > last[0]:
        name = LAUNCH_LATENCY if last[2] == "launch" else DEVICE_GAP
        gap = building.add(name, "gap", work.stream, work.begin - last[0])
        building.edges += [(last[1], gap, last[2])] if last[1] >= 0 else []
        building.edges.append((gap, operation, "stream"))
