"""From events to a graph (the construction of Daydream, Zhu et al., USENIX ATC 2020, and of Holistic Trace Analysis):

    thread   calls of a thread follow one another, and the gaps between them are operations
    launch   work on a device begins no earlier than the call of its correlation lets it
    stream   work of a stream follows in the order of begins
    wait     a thread that synchronises ends no earlier than the last work launched before on the stream, ahead of the event or on the
             device; a stream that waits for an event begins no further work before what was launched ahead of that event

Work that begins later than all of that explains has a gap before it: `launch latency` where the launch was last, `device gap` where other
work was. A wait keeps of its time what it took after the work had ended. So an unchanged graph runs as traced but for events that
contradict the order: work of a stream that overlaps. No work begins before its launch here.

A call that copies memory that is not pinned returns once all of it is staged, with the last of it perhaps still on its way (CUDA Runtime
API, API synchronization behavior). Such a copy is two operations, cut where its call ends, and the call waits for the first.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from crossopt.crossflow.traces.graph import Graph, graph_of
from crossopt.instances.traces.kineto.crossings import ROUNDING, Crossings, Orders
from crossopt.instances.traces.kineto.events import Call, Events, Operator, Work
from crossopt.instances.traces.kineto.handover import Handover, handovers
from crossopt.instances.traces.kineto.launches import LAUNCHED_BY_NONE, launches_of
from crossopt.instances.traces.kineto.threads import GAP, Piece, names_of_gaps, pieces_of

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

    def add(self, name: str, kind: str, where: str, took: int, moved: int = 0, group: str = "") -> int:
        self.operations.append((name, kind, where, took))
        self.moved.append(moved)
        self.groups.append(group)
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
    return graph_of(building.operations, building.edges, building.moved, groups=building.groups)


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
    for number in sorted(range(len(events.calls)), key=lambda one: events.calls[one].begin):
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
        found[number] += [one for stream in streams if (one := orders.last_before(stream, before)) is not None]
    kept = {
        number: [
            one
            for one in works
            if events.work[one].end <= events.calls[number].end + ROUNDING or _is_staged(events.calls[number], events.work[one])
        ]
        for number, works in found.items()
    }
    return {number: works for number, works in kept.items() if works}


def _add_threads(building: Building, call_of: Sequence[int], waits: dict[int, list[int]]) -> None:
    """The operations of every thread, in their order, and where one waits for another."""
    pieces, operators = _pieces(building.events, call_of), defaultdict[str, list[Operator]](list)
    for operator in building.events.operators:
        operators[operator.thread].append(operator)
    handed = handovers(pieces, operators)
    filled = {(one.thread, one.gap): one for one in handed}
    preceding = {(one.other, one.first - 1) for one in handed if one.first}
    idle = {(thread, place) for thread, place in preceding - filled.keys() if pieces[thread][place].call == GAP}
    ends = dict[tuple[str, int], tuple[int, int]]()
    for thread, own in pieces.items():
        names = names_of_gaps([piece for piece in own if piece.call == GAP], operators[thread])
        last_of = {piece.call: place for place, piece in enumerate(own)}
        previous = list[int]()
        for place, piece in enumerate(own):
            waited = waits.get(piece.call, []) if last_of[piece.call] == place else []
            name = next(names) if piece.call == GAP else ""
            if (thread, place) in idle:
                continue
            parts = _parts(piece, filled.get((thread, place)), pieces)
            added = [_add_piece(building, part, thread, waited, name) for part in parts]
            building.edges += [(before, after, "thread") for before, after in pairwise([*previous, *added])]
            ends[thread, place], previous = (added[0], added[-1]), added[-1:]
    for one in handed:
        head, tail = ends[one.thread, one.gap]
        building.edges += [(head, ends[one.other, one.first][0], "wait"), (ends[one.other, one.last][1], tail, "wait")]
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
        took = max(0, piece.end - max(piece.begin, *(work[one].end for one in waited)))
    operation = building.add(call.name, "wait" if waited else "host", thread, took)
    if piece.is_head:
        building.head_of[piece.call] = operation
    building.tail_of[piece.call] = operation
    return operation


def _join_waits(building: Building, waits: dict[int, list[int]]) -> None:
    for number, works in waits.items():
        call = building.events.calls[number]
        for one in works:
            done = building.first_of[one] if _is_staged(call, building.events.work[one]) else building.place_of[one]
            building.edges.append((done, building.tail_of[number], "wait"))


def _add_work(building: Building, orders: Orders, crossings: Crossings) -> None:
    """All work first, then what each waits for, and the gap that nothing explains."""
    works = building.events.work
    by_stream = defaultdict[str, list[int]](list)
    for number in sorted(range(len(works)), key=lambda one: (works[one].begin, works[one].end)):
        _add_one(building, number, orders.call_of[number])
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


def _add_one(building: Building, number: int, call: int) -> None:
    """A work, in two operations where it is a copy that goes on behind its call."""
    one = building.events.work[number]
    took, begun, sent = one.end - one.begin, 0, 0
    if call >= 0 and _is_staged(building.events.calls[call], one):
        begun = building.events.calls[call].end - one.begin
        sent = one.bytes * begun // took
        building.first_of[number] = building.add(one.name, one.kind, one.stream, begun, sent, one.group)
    building.place_of[number] = building.add(one.name, one.kind, one.stream, took - begun, one.bytes - sent, one.group)
    if number in building.first_of:
        building.edges.append((building.first_of[number], building.place_of[number], "stream"))


def _join_work(building: Building, number: int, waited: list[tuple[int, int, str]]) -> None:
    work, place = building.events.work[number], building.first_of.get(number, building.place_of[number])
    building.edges += [(before, place, reason) for _, before, reason in waited]
    last = max(waited, default=(0, -1, ""))
    if work.begin > last[0]:
        name = LAUNCH_LATENCY if last[2] == "launch" else DEVICE_GAP
        gap = building.add(name, "gap", work.stream, work.begin - last[0])
        building.edges += [(last[1], gap, last[2])] if last[1] >= 0 else []
        building.edges.append((gap, place, "stream"))
