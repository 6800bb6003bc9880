"""Events of a Kineto file by what they are: calls of threads to the device's runtime, what devices did, and what waited for what.

Times are whole nanoseconds from the first event. Operators of the framework (`cpu_op`) only give names to the time between calls, and
of annotations those of the profiler's steps are read alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from crossopt.instances.files.units import quoted
from crossopt.instances.traces.packed import Faults, nanoseconds, plain, refuse
from crossopt.instances.traces.window import WHOLE, Window, ends_of

_KNOWN_SCHEMA = 1
_SHORT = 24
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
    """Correlation of the call that recorded the event; -1 where nobody knows."""


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


def events_in(path: Path, document: Any, window: Window = WHOLE) -> Events:  # noqa: ANN401 - JSON as it is
    """The events of a document, as far as they are of the window; an InstanceError with every fault."""
    rows = document if isinstance(document, list) else document["traceEvents"]
    if not isinstance(rows, list):
        refuse(path, "traceEvents: a list is needed")
    schema = _KNOWN_SCHEMA if isinstance(document, list) else document.get("schemaVersion", _KNOWN_SCHEMA)
    if schema != _KNOWN_SCHEMA:
        refuse(path, f"schemaVersion: {quoted(str(schema))} is no version that is known ({_KNOWN_SCHEMA} is; trace with today's PyTorch)")
    reader = _Reader(Faults(path))
    for place, row in enumerate(rows):
        if isinstance(row, dict):
            reader.look(place, row)
        else:
            reader.faults.add(f"traceEvents[{place}]", "a mapping is needed")
    reader.faults.end()
    found = reader.events
    if not found.work:
        refuse(path, "no kernel, copy or fill of a device is in this trace (trace with ProfilerActivity.CUDA)")
    about = {} if isinstance(document, list) else document.get("distributedInfo")
    rank = about.get("rank") if isinstance(about, dict) else None
    found.rank = rank if type(rank) is int else None
    return _within(path, found, window) if window else found


def _within(path: Path, events: Events, window: Window) -> Events:
    """The calls that begin within the window and the work that they launch, and of work that nobody launches what begins there."""
    begin, end = ends_of(path, window, {number: (step.begin, step.end) for number, step in events.steps.items()}, _first(events))
    calls = [call for call in events.calls if begin <= call.begin < end]
    launching, launched = {call.correlation for call in calls}, {call.correlation for call in events.calls}
    inside = [begin <= one.begin < end for one in events.work]
    kept = [
        one
        for one, is_inside in zip(events.work, inside, strict=True)
        if (one.correlation in launching if one.correlation in launched and one.correlation >= 0 else is_inside)
    ]
    if not kept:
        what = f"step {window.step}" if window.step is not None else "this window"
        refuse(path, f"nothing of a device is launched in {what} (the trace lasts {(_last(events) - _first(events)) / 1e6:,.3f} ms)")
    left = sum(inside) - sum(begin <= one.begin < end for one in kept)
    operators = [one for one in events.operators if begin <= one.begin < end]
    step = None if window.step is None else events.steps[window.step]
    return replace(events, calls=calls, work=kept, operators=operators, before=left, step=step)


def _first(events: Events) -> int:
    return min([one.begin for one in events.work] + [one.begin for one in events.calls])


def _last(events: Events) -> int:
    return max([one.end for one in events.work] + [one.end for one in events.calls])


@dataclass(slots=True)
class _Reader:
    faults: Faults
    events: Events = field(default_factory=Events)

    def look(self, place: int, row: Mapping[str, Any]) -> None:
        category = row.get("cat")
        if row.get("ph") != "X" or not isinstance(category, str):
            return
        category, given = category.lower(), row.get("args")
        args: Mapping[str, Any] = given if isinstance(given, dict) else {}
        if category in _CALLS:
            correlation = self.number(place, args, "correlation")
            self.events.calls.append(Call(*self.times(place, row), _name_of(row), _thread_of(row), correlation))
        elif category in _DEVICE:
            begin, end = self.times(place, row)
            name, stream, correlation = _name_of(row), self.stream(place, row, args), self.number(place, args, "correlation")
            is_collective = _DEVICE[category] == "kernel" and any(one in name.lower() for one in ("nccl", "rccl"))
            kind, moved = ("collective", _sent(args)) if is_collective else (_DEVICE[category], _count(args.get("bytes")))
            group = plain(str(args.get("Process Group Name", ""))) if is_collective else ""
            self.events.work.append(Work(begin, end, name, kind, stream, correlation, moved, group))
        elif category == _OPERATOR:
            begin, took = (nanoseconds(row.get(key), _ignored) for key in ("ts", "dur"))
            if took > 0:
                self.events.operators.append(Operator(begin, begin + took, _name_of(row), _thread_of(row)))
        elif category == _MARK and str(row.get("name")).startswith(_STEP):
            self.mark(place, row)
        elif category == _SYNC:
            self.events.waited[self.number(place, args, "correlation")] = _waited(row, args)

    def mark(self, place: int, row: Mapping[str, Any]) -> None:
        """A step, which several threads may have marked."""
        number = str(row["name"]).removeprefix(_STEP)
        if number.isdecimal() and len(number) <= _SHORT:
            begin, end = self.times(place, row)
            known = self.events.steps.get(int(number), Step(begin, end, _thread_of(row)))
            self.events.steps[int(number)] = Step(min(begin, known.begin), *max((end, _thread_of(row)), known[1:]))

    def times(self, place: int, row: Mapping[str, Any]) -> tuple[int, int]:
        at = f"traceEvents[{place}]"
        begin = nanoseconds(row.get("ts"), lambda told: self.faults.add(f"{at}.ts", told))
        took = nanoseconds(row.get("dur"), lambda told: self.faults.add(f"{at}.dur", told))
        if took < 0:
            self.faults.add(f"{at}.dur", f"{quoted(str(row.get('dur')))} microseconds are below 0 (the clock went back: trace again)")
        return begin, begin + took

    def number(self, place: int, args: Mapping[str, Any], key: str) -> int:
        """A whole number, or -1 where none is told."""
        value = args.get(key, -1)
        if type(value) is not int:
            self.faults.add(f"traceEvents[{place}].args.{key}", f"{quoted(str(value))} is no whole number")
            return -1
        return value

    def stream(self, place: int, row: Mapping[str, Any], args: Mapping[str, Any]) -> str:
        stream = args.get("stream", row.get("tid"))
        if type(stream) is not int:
            self.faults.add(f"traceEvents[{place}].args.stream", f"{quoted(str(stream))} is no number of a stream")
        return _stream_name(args.get("device", row.get("pid")), stream)


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
    width = next((size for name, size in sorted(_ELEMENT.items(), key=lambda one: -len(one[0])) if kind.startswith(name)), 0)
    return _count(_count(args.get("In msg nelems")) * width)


def from_zero(events: Events) -> Events:
    """The same with times from the first begin or that of the step, streams without the device where there is one, and threads without the
    process."""
    step = events.step
    first, last = (_first(events), _last(events)) if step is None else (step.begin, max(_last(events), step.end))
    streams = {one.stream for one in events.work}
    shorter = _shorter(streams | {name for one in events.waited.values() for name in (one.stream, one.other)}, streams)
    called = {one.thread for one in events.calls} | ({step.thread} if step else set())
    threads, named = _shorter(called, called), [one for one in events.operators if one.thread in called]
    return replace(
        events,
        calls=[one._replace(begin=one.begin - first, end=one.end - first, thread=threads[one.thread]) for one in events.calls],
        work=[one._replace(begin=one.begin - first, end=one.end - first, stream=shorter[one.stream]) for one in events.work],
        operators=[one._replace(begin=one.begin - first, end=one.end - first, thread=threads[one.thread]) for one in named],
        waited={key: one._replace(stream=shorter[one.stream], other=shorter[one.other]) for key, one in events.waited.items()},
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
