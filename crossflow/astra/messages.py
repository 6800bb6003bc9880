"""Every message of a collective on one dimension, NPU by NPU: what the closed form of a phase leaves out.

An NPU queues one message at first (direct: one for every other NPU) and one more for each that it receives. A queued message is ready
after the endpoint's delay, and after the sum of what arrived where it is one of the first. A ready message lets the NPU send its next one;
a second round of direct messages waits until the first has arrived. When everything is sent and all is ready again, the chunk is done.
(system/astraccl/native_collectives; events of one ns happen in the order in which they were planned, those of one NPU together.)
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from crossopt.crossflow.astra.dimension import Dimension, Endpoint
from crossopt.crossflow.astra.phase import Phase, algorithm_of, distances_of, messages_of, reductions_of

Call = Callable[[], None]
Carry = Callable[["Clock", int, int, int, Call], None]
"""(clock, from, to, bytes, what happens on arrival): a way to carry messages."""


@dataclass(slots=True)
class Clock:
    """What happens when; of one ns, what was planned first."""

    now: int = 0
    plans: list[tuple[int, int, Call]] = field(default_factory=list)
    turn: "count[int]" = field(default_factory=count)

    def at(self, time: int, call: Call) -> None:
        heappush(self.plans, (time, next(self.turn), call))

    def run(self) -> None:
        while self.plans:
            self.now, _, call = heappop(self.plans)
            call()


@dataclass(frozen=True, slots=True)
class Script:
    """What every NPU sends in a phase."""

    messages: tuple[int, ...]
    steps: tuple[int, ...]
    """How many places away each receiver is; NPUs of the other half look the other way where partners exchange."""
    exchanges: bool
    window: int
    """Messages in flight at once."""
    added: int
    """Of those that arrive first."""
    gate: int
    """Messages that must have arrived before the second half is sent; 0 where nothing waits."""


def script_of(phase: Phase, dimension: Dimension) -> Script:
    algorithm, size = algorithm_of(phase, dimension), dimension.size
    messages = messages_of(phase, size, algorithm)
    gate = size - 1 if algorithm == "direct" and phase.collective == "all_reduce" else 0
    return Script(
        tuple(messages),
        tuple(distances_of(phase, size, algorithm)),
        algorithm == "halving_doubling",
        size - 1 if algorithm == "direct" else 1,
        reductions_of(phase, size, algorithm),
        gate,
    )


@dataclass(slots=True)
class _Stream:
    """One chunk at one NPU."""

    npu: int
    script: Script
    queued: int = 0
    free: int = 0
    sent: int = 0
    received: int = 0

    def partner(self, size: int, sends: bool) -> int:
        """To whom the next message goes, or from whom the one of the same place comes."""
        distance = self.script.steps[self.sent]
        if self.script.exchanges:
            return self.npu ^ distance
        return (self.npu + distance if sends else self.npu - distance) % size


@dataclass(slots=True)
class _Npu:
    """A place of the dimension, its chunks in their order, and its own events of each ns."""

    number: int
    streams: list[_Stream]
    running: int = 0
    finished: int = 0
    end: int = 0
    done: Call | None = None
    """What follows when all its chunks are there."""
    planned: dict[int, deque[Call]] = field(default_factory=dict)


@dataclass(slots=True)
class Exchange:
    """All NPUs of a collective and the messages among them, on a clock that others may share."""

    clock: Clock
    carry: Carry
    npus: list[_Npu]
    endpoint: Endpoint
    width: int
    arrived: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    """Messages by (chunk, from, to, bytes) that nobody waits for yet."""
    awaited: dict[tuple[int, int, int, int], deque[Call]] = field(default_factory=dict)

    def plan(self, npu: _Npu, delay: int, call: Call) -> None:
        time = self.clock.now + delay
        if time in npu.planned:
            npu.planned[time].append(call)
            return
        npu.planned[time] = deque([call])
        self.clock.at(time, lambda: self.happen(npu, time))

    def happen(self, npu: _Npu, time: int) -> None:
        calls = npu.planned[time]
        while calls:
            calls.popleft()()
        del npu.planned[time]

    def start(self, npu: _Npu) -> None:
        while npu.running < self.width and npu.finished + npu.running < len(npu.streams):
            chunk = npu.finished + npu.running
            npu.running += 1
            for _ in range(npu.streams[chunk].script.window):
                self.queue(npu, chunk, 0)

    def queue(self, npu: _Npu, chunk: int, added: int) -> None:
        """One more message, ready after the delay and, where so many bytes are added up, after that."""
        stream = npu.streams[chunk]
        stream.queued += 1
        ready = lambda: self.ready(npu, chunk)  # noqa: E731 - a name for what follows
        self.plan(npu, self.endpoint.delay, (lambda: self.plan(npu, self.endpoint.reduction(added), ready)) if added else ready)

    def ready(self, npu: _Npu, chunk: int) -> None:
        stream = npu.streams[chunk]
        script, stream.free = stream.script, stream.free + 1
        tries = 1
        if script.gate and stream.sent >= script.gate:
            if stream.received < script.gate:
                return
            tries = script.window
        for _ in range(tries):
            if stream.queued and stream.free and stream.sent < len(script.messages):
                self.send(npu, chunk)
        if stream.sent == len(script.messages) and stream.free == script.window:
            npu.running, npu.finished, npu.end = npu.running - 1, npu.finished + 1, self.clock.now
            self.start(npu)
            if npu.done is not None and npu.finished == len(npu.streams):
                npu.done()

    def send(self, npu: _Npu, chunk: int) -> None:
        stream, size = npu.streams[chunk], len(self.npus)
        message = stream.script.messages[stream.sent]
        to, source = stream.partner(size, sends=True), stream.partner(size, sends=False)
        stream.sent, stream.queued, stream.free = stream.sent + 1, stream.queued - 1, stream.free - 1
        key = (chunk, npu.number, to, message)
        self.carry(self.clock, npu.number, to, message, lambda: self.arrive(key))
        awaited = (chunk, source, npu.number, message)
        receive = lambda: self.receive(npu, chunk)  # noqa: E731 - a name for what follows
        if self.arrived.get(awaited, 0):
            self.arrived[awaited] -= 1
            self.clock.at(self.clock.now, receive)
        else:
            self.awaited.setdefault(awaited, deque()).append(receive)

    def arrive(self, key: tuple[int, int, int, int]) -> None:
        if self.awaited.get(key):
            self.awaited[key].popleft()()
        else:
            self.arrived[key] = self.arrived.get(key, 0) + 1

    def receive(self, npu: _Npu, chunk: int) -> None:
        stream = npu.streams[chunk]
        script, stream.received = stream.script, stream.received + 1
        adds = stream.received <= script.added
        self.queue(npu, chunk, script.messages[stream.received if script.exchanges else 0] if adds else 0)


def exchange_of(chunks: Sequence[Phase], dimension: Dimension, endpoint: Endpoint, carry: Carry, clock: Clock, width: int = 1) -> Exchange:
    """A collective whose NPUs are still to start; of its chunks `width` run at once."""
    scripts = [script_of(phase, dimension) for phase in chunks]
    npus = [_Npu(number, [_Stream(number, script) for script in scripts]) for number in range(dimension.size)]
    return Exchange(clock, carry, npus, endpoint, width)


def finish_times(chunks: Sequence[Phase], dimension: Dimension, endpoint: Endpoint, carry: Carry, width: int = 1) -> list[int]:
    """When each NPU has all its chunks, where all start at once."""
    exchange = exchange_of(chunks, dimension, endpoint, carry, Clock(), width)
    for npu in exchange.npus:
        exchange.start(npu)
    exchange.clock.run()
    return [npu.end for npu in exchange.npus]
