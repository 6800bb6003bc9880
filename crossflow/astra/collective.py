"""A collective on a network as ASTRA-sim's analytical back end sees it: phases in one dimension, chunks, and their order."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from itertools import count
from math import floor
from typing import Literal

# One dimension of a network in ASTRA-sim's analytical back end: shape, phases of collectives, messages and links.

# One dimension of a network as ASTRA-sim's analytical back end sees it: its shape, its links, and what a message pays on the way.
#
# Bandwidths are in GB/s with GB = 2^30, latencies in ns, times in whole ns: `floor(hops * latency + bytes / bandwidth)`, in the order of
# operations of astra-sim/astra-network-analytical (congestion_unaware), as a different order may round to another nanosecond.

Shape = Literal["ring", "fully_connected", "switch"]
Algorithm = Literal["ring", "direct", "halving_doubling", "in_network"]
Collective = Literal["all_reduce", "reduce_scatter", "all_gather", "all_to_all"]
GIGABYTE = 1 << 30


@dataclass(frozen=True, slots=True)
class Dimension:
    """NPUs that differ in one digit of their number, and the links among them."""

    shape: Shape
    size: int
    bandwidth: float
    """Bandwidth of one link in one direction, in GB/s of 2^30 bytes."""
    latency: float
    """Latency of one link, in ns; a message through a switch pays it twice."""
    algorithm: Algorithm

    @property
    def rate(self) -> float:
        """Bytes per ns of one link."""
        return self.bandwidth * GIGABYTE / 1_000_000_000

    @property
    def driven(self) -> float:
        """Bytes per ns that an NPU sends: over all its links if every other NPU is a receiver at once, else over one."""
        return self.rate * (self.size - 1 if self.algorithm == "direct" else 1)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Costs that an NPU adds to each message."""

    delay: int = 10
    """Delay before a message is sent and after the last one, in ns. At least 1: with 0 the simulator ends without a result."""
    memory: float = 1_000_000.0
    """Bandwidth at which received data are added up, in GB/s of 1e9 bytes (bytes per ns)."""

    def reduction(self, message: int) -> int:
        """Time to add up a message: two reads and a write, each in whole ns."""
        return 3 * floor(message / self.memory)


def hops_between(dimension: Dimension, distance: int) -> int:
    """Links on the path between two NPUs at this distance. A ring takes the shorter way; a switch counts in and out."""
    if dimension.shape == "ring":
        away = distance % dimension.size
        return min(away, dimension.size - away)
    return 2 if dimension.shape == "switch" else 1


def message_time(dimension: Dimension, message: int, hops: int) -> int:
    """Time of an uncontended message: latency of every hop, transmission once."""
    return floor(hops * dimension.latency + message / dimension.rate)


# One phase: a collective on one dimension. What is sent to whom, and how long it takes where nothing is in its way.
#
#     ring              one message to the next NPU a step; each waits for the one before
#     direct            a message to every other NPU at once
#     halving_doubling  log2(n) exchanges with partners at distances 1, 2, 4, .. of half, a quarter, .. of the data, and back
#     in_network        one message up to the switch, which adds up or copies at the rate of its links, and down to every NPU
#
# A phase of n NPUs takes `d + sum over steps of (message time + d) + reductions`, with d the endpoint's delay. Read in astra-sim/astra-sim,
# system/astraccl; tests hold it to the simulator's own runs.


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of a collective of one chunk on one dimension."""

    dimension: int
    """Index of the dimension, innermost first."""
    collective: Collective
    bytes: int
    """Bytes at each NPU before the phase."""

    def after(self, size: int) -> int:
        """Bytes at each NPU after the phase."""
        if self.collective == "reduce_scatter":
            return self.bytes // size
        return self.bytes * size if self.collective == "all_gather" else self.bytes


@dataclass(frozen=True, slots=True)
class Step:
    """A number of equal consecutive steps of a phase."""

    count: int
    message: int
    """Bytes."""
    hops: int
    flight: int
    """Time of one message, in ns."""
    reduction: int
    """Time to add up the data received in all these steps, in ns."""

    def time(self, delay: int) -> int:
        return self.count * (self.flight + delay) + self.reduction


def algorithm_of(phase: Phase, dimension: Dimension) -> Algorithm:
    """Halving-doubling has no all-to-all, and a switch adds up nothing in one; messages are then sent directly."""
    without = dimension.algorithm in ("halving_doubling", "in_network")
    return "direct" if phase.collective == "all_to_all" and without else dimension.algorithm


def reduces(collective: Collective) -> bool:
    return collective in ("reduce_scatter", "all_reduce")


def share_of(phase: Phase, size: int) -> int:
    """Bytes of a message of a ring or direct algorithm."""
    return phase.bytes if phase.collective == "all_gather" else phase.bytes // size


def count_of(phase: Phase, size: int, algorithm: Algorithm) -> int:
    """Number of messages that an NPU sends in a ring or direct algorithm."""
    around = size * (size - 1) // 2 if (algorithm, phase.collective) == ("ring", "all_to_all") else size - 1
    return 2 * around if phase.collective == "all_reduce" else around


def messages_of(phase: Phase, size: int, algorithm: Algorithm) -> list[int]:
    """Bytes of the messages of an NPU, in the order in which they are sent."""
    if algorithm != "halving_doubling":
        return [share_of(phase, size)] * count_of(phase, size, algorithm)
    exchanges = size.bit_length() - 1
    if phase.collective == "all_gather":
        return [phase.bytes << step for step in range(exchanges)]
    halves = [phase.bytes >> step for step in range(1, exchanges + 1)]
    if phase.collective == "reduce_scatter":
        return halves
    least = 2 * (phase.bytes >> (exchanges + 1))  # halved once more before it turns round
    return halves + [least << step for step in range(exchanges)]


def distances_of(phase: Phase, size: int, algorithm: Algorithm) -> list[int]:
    """Distance of the receiver of each message."""
    count = len(messages_of(phase, size, algorithm))
    if algorithm == "ring":
        return [1] * count
    if algorithm == "direct":
        return [1 + step % (size - 1) for step in range(count)]
    up = [1 << step for step in range(size.bit_length() - 1)]
    return {"reduce_scatter": up, "all_gather": up[::-1]}.get(phase.collective, up + up[::-1])


def reductions_of(phase: Phase, size: int, algorithm: Algorithm) -> int:
    """Number of first messages whose data are added up."""
    if not reduces(phase.collective):
        return 0
    return size.bit_length() - 2 if algorithm == "halving_doubling" else size - 1


def steps_of(phase: Phase, dimension: Dimension, endpoint: Endpoint) -> tuple[Step, ...]:
    """The steps in sequence, equal ones together. Direct messages of a round fly at once, and the farthest counts."""
    algorithm, size = algorithm_of(phase, dimension), dimension.size
    if algorithm == "in_network":
        most = max(phase.bytes, phase.after(size))
        return (Step(1, most, 2, message_time(dimension, most, 2), 0),)
    share, added = share_of(phase, size), reductions_of(phase, size, algorithm)
    if algorithm == "direct":
        rounds = count_of(phase, size, algorithm) // (size - 1)
        farthest = hops_between(dimension, size // 2)
        reduction = endpoint.reduction(share) if added else 0
        return (Step(rounds, share, farthest, message_time(dimension, share, farthest), reduction),)
    if algorithm == "ring":
        hops = hops_between(dimension, 1)
        return (
            Step(count_of(phase, size, algorithm), share, hops, message_time(dimension, share, hops), added * endpoint.reduction(share)),
        )
    messages = messages_of(phase, size, algorithm)
    return tuple(
        Step(
            1,
            message,
            hops := hops_between(dimension, distance),
            message_time(dimension, message, hops),
            endpoint.reduction(messages[index + 1]) if index < added else 0,
        )
        for index, (message, distance) in enumerate(zip(messages, distances_of(phase, size, algorithm), strict=True))
    )


def phase_time(phase: Phase, dimension: Dimension, endpoint: Endpoint) -> int:
    """Time of an uncontended phase, in ns; too long for a direct all-reduce on a ring, whose second round starts early."""
    return endpoint.delay + sum(step.time(endpoint.delay) for step in steps_of(phase, dimension, endpoint))


# Every message of a collective on one dimension, NPU by NPU: what the closed form of a phase leaves out.
#
# An NPU queues one message at first (direct: one for every other NPU) and one more for each that it receives. A queued message is ready
# after the endpoint's delay, and after the sum of what arrived where it is one of the first. A ready message lets the NPU send its next
# one; a second round of direct messages waits until the first has arrived. When everything is sent and all is ready again, the chunk is
# done. (system/astraccl/native_collectives; events of one ns happen in the order in which they were planned, those of one NPU together.)

Call = Callable[[], None]
Carry = Callable[["Clock", int, int, int, Call], None]
"""Callable that carries a message: (clock, from, to, bytes, callback on arrival)."""


@dataclass(slots=True)
class Clock:
    """Events in order of time; events of the same ns in the order of their scheduling."""

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
    """Messages that every NPU sends in a phase."""

    messages: tuple[int, ...]
    steps: tuple[int, ...]
    """Distance of each receiver. NPUs of the upper half use the opposite direction where partners exchange."""
    exchanges: bool
    window: int
    """Number of messages in flight at once."""
    added: int
    """Number of first arrivals that are added up."""
    gate: int
    """Messages that must have arrived before the second half is sent; 0 if there is no such wait."""


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
        """Receiver of the next message, or sender of the message of the same index."""
        distance = self.script.steps[self.sent]
        if self.script.exchanges:
            return self.npu ^ distance
        return (self.npu + distance if sends else self.npu - distance) % size


@dataclass(slots=True)
class _Npu:
    """An NPU of the dimension, its chunks in order, and its events of each ns."""

    number: int
    streams: list[_Stream]
    running: int = 0
    finished: int = 0
    end: int = 0
    done: Call | None = None
    """Callback for when all chunks have arrived."""
    planned: dict[int, deque[Call]] = field(default_factory=dict)


@dataclass(slots=True)
class Exchange:
    """All NPUs of a collective and their messages, on a clock that can be shared."""

    clock: Clock
    carry: Carry
    npus: list[_Npu]
    endpoint: Endpoint
    width: int
    arrived: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    """Messages (chunk, from, to, bytes) that have arrived before they are waited for."""
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
        """Send one more message, ready after the delay and after the time to add up these bytes."""
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
    """A collective whose NPUs have not started yet; `width` chunks run at once."""
    scripts = [script_of(phase, dimension) for phase in chunks]
    npus = [_Npu(number, [_Stream(number, script) for script in scripts]) for number in range(dimension.size)]
    return Exchange(clock, carry, npus, endpoint, width)


def finish_times(chunks: Sequence[Phase], dimension: Dimension, endpoint: Endpoint, carry: Carry, width: int = 1) -> list[int]:
    """Time at which each NPU has all its chunks if all start at once."""
    exchange = exchange_of(chunks, dimension, endpoint, carry, Clock(), width)
    for npu in exchange.npus:
        exchange.start(npu)
    exchange.clock.run()
    return [npu.end for npu in exchange.npus]


# How messages travel: alone, or through links that carry one message at a time.
#
# The congestion-aware back end stores and forwards: on each hop a message waits for the link, holds it for floor(bytes / rate) ns, and is
# at the other end floor(latency + bytes / rate) ns after it got the link. A ring has a link to either neighbour, a full connection one to
# every NPU, and a switch one to and one from each NPU, so that a message is sent twice.

_SWITCH = -1
"""Number of the switch among the NPUs."""


def unhindered(dimension: Dimension) -> Carry:
    """Network without contention: no message delays another."""

    def carry(clock: Clock, source: int, to: int, message: int, arrive: Call) -> None:
        clock.at(clock.now + message_time(dimension, message, hops_between(dimension, to - source)), arrive)

    return carry


@dataclass(slots=True)
class _Link:
    busy: bool = False
    waiting: deque[tuple[int, Call]] = field(default_factory=deque)


@dataclass(slots=True)
class _Links:
    dimension: Dimension
    links: dict[tuple[int, int], _Link] = field(default_factory=dict)

    def carry(self, clock: Clock, source: int, to: int, message: int, arrive: Call) -> None:
        self.hop(clock, route(self.dimension, source, to), message, arrive)

    def hop(self, clock: Clock, way: list[int], message: int, arrive: Call) -> None:
        """Send over the first link of the path, then on from its end."""
        link = self.links.setdefault((way[0], way[1]), _Link())
        further = arrive if len(way) == 2 else lambda: self.hop(clock, way[1:], message, arrive)
        if link.busy:
            link.waiting.append((message, further))
        else:
            self.take(clock, link, message, further)

    def take(self, clock: Clock, link: _Link, message: int, further: Call) -> None:
        link.busy = True
        bytes_time = message / self.dimension.rate
        clock.at(clock.now + floor(self.dimension.latency + bytes_time), further)
        clock.at(clock.now + floor(bytes_time), lambda: self.release(clock, link))

    def release(self, clock: Clock, link: _Link) -> None:
        link.busy = False
        if link.waiting:
            self.take(clock, link, *link.waiting.popleft())


def congested(dimension: Dimension) -> Carry:
    """Network with contention: messages wait for links, first come first served."""
    return _Links(dimension).carry


def route(dimension: Dimension, source: int, to: int) -> list[int]:
    """Nodes of the path, both ends included; halfway around a ring it takes the ascending direction."""
    if dimension.shape == "switch":
        return [source, _SWITCH, to]
    if dimension.shape == "fully_connected":
        return [source, to]
    size = dimension.size
    up = (to - source) % size
    step, hops = (1, up) if up <= size - up else (-1, size - up)
    return [(source + step * hop) % size for hop in range(hops + 1)]


# A collective on a multi-dimensional network: its chunks, the order of their phases, and the time of each phase.

# From a collective to chunks and their phases: in which order each chunk passes the dimensions.
#
# baseline         the whole collective on every dimension, innermost first; an all-gather outermost first
# bandwidth_aware  an all-reduce scatters inwards, reduces all on the last dimension, and gathers back
# two_way          an all-reduce scatters on all dimensions in a chunk's own order and gathers in reverse, as Themis has it

Passing = Literal["baseline", "bandwidth_aware", "two_way"]
Order = tuple[int, ...]
"""Indices of dimensions in the order in which a chunk visits them."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of the data and the order in which it visits the dimensions while it scatters, or on its only pass."""

    bytes: int
    order: Order


def chunk_sizes(size: int, chunks: int) -> list[int]:
    """Equal chunks of size // chunks bytes, as many as hold everything. These are more than `chunks` if the size does not divide."""
    each = size // chunks
    return [each] * -(-size // each)


def natural_order(collective: Collective, dimensions: int) -> Order:
    """The natural order: innermost first, and outermost first for an all-gather."""
    return tuple(range(dimensions))[:: -1 if collective == "all_gather" else 1]


def equal_chunks(collective: Collective, size: int, chunks: int, dimensions: int) -> list[Chunk]:
    """All chunks, each in the natural order of dimensions."""
    return [Chunk(each, natural_order(collective, dimensions)) for each in chunk_sizes(size, chunks)]


def phases_of(chunk: Chunk, collective: Collective, dimensions: Sequence[Dimension], passing: Passing) -> list[Phase]:
    """The phases of a chunk in sequence; each starts with the bytes that the previous phase left."""
    order = chunk.order
    if collective != "all_reduce" or passing == "baseline":
        way: list[tuple[int, Collective]] = [(level, collective) for level in order]
    elif passing == "bandwidth_aware":
        inner = order[:-1]
        way = [(level, "reduce_scatter") for level in inner]
        way += [(order[-1], "all_reduce")]
        way += [(level, "all_gather") for level in reversed(inner)]
    else:
        way = [(level, "reduce_scatter") for level in order]
        way += [(level, "all_gather") for level in reversed(order)]
    phases, size = list[Phase](), chunk.bytes
    for level, kind in way:
        phases.append(Phase(level, kind, size))
        size = phases[-1].after(dimensions[level].size)
    return phases


# Chunks wait for dimensions: each dimension is a machine that works on few chunks at once, and a chunk needs it twice where it comes back.
#
# The order of events is the simulator's: a chunk that ends a phase joins the queue of its next dimension, then the dimension that it left
# starts its next chunk, then the dimension that it joined. All chunks join their first dimension at time 0. (system/Sys.cc, SchedulerUnit)

Policy = Literal["fifo", "smallest_first", "fewest_phases_first"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One phase of a chunk and its duration."""

    phase: Phase
    duration: int
    largest: int
    """Bytes at an NPU before or after the phase, whichever are more."""
    queue: int = 0
    """Index of the dimension's queue."""


@dataclass(frozen=True, slots=True)
class Run:
    """The start and end of an operation."""

    chunk: int
    phase: int
    """Index of the phase within its chunk."""
    start: int
    end: int


@dataclass(slots=True)
class _Queue:
    running: int = 0
    waiting: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Shop:
    """State of the simulated queues."""

    jobs: Sequence[Sequence[Operation]]
    width: int
    policy: Policy
    queues: dict[tuple[int, int], _Queue] = field(default_factory=dict)
    phase_of: list[int] = field(default_factory=list)
    events: list[tuple[int, int, int]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    turn: "count[int]" = field(default_factory=count)

    def now_at(self, chunk: int) -> Operation:
        return self.jobs[chunk][self.phase_of[chunk]]

    def queue(self, chunk: int) -> _Queue:
        operation = self.now_at(chunk)
        return self.queues.setdefault((operation.phase.dimension, operation.queue), _Queue())

    def remaining(self, chunk: int) -> int:
        """Number of phases after the chunk's current one."""
        return len(self.jobs[chunk]) - self.phase_of[chunk] - 1

    def join(self, chunk: int) -> None:
        """Queue an operation by the policy, which looks only at phases of chunks that scatter or gather."""
        waiting, policy = self.queue(chunk).waiting, self.policy
        position = len(waiting)
        if policy != "fifo" and self.now_at(chunk).phase.collective in ("reduce_scatter", "all_gather"):
            if policy == "fewest_phases_first":
                position = _first([self.remaining(other) >= self.remaining(chunk) for other in waiting])
            elif self.remaining(chunk) != 1:  # a chunk with one phase to go waits at the end, read as it is
                position = _first([self.now_at(other).largest >= self.now_at(chunk).largest for other in waiting])
        waiting.insert(position, chunk)

    def start(self, queue: _Queue, now: int) -> None:
        while queue.waiting and queue.running < self.width:
            chunk = queue.waiting.pop(0)
            queue.running += 1
            end = now + self.now_at(chunk).duration
            self.runs.append(Run(chunk, self.phase_of[chunk], now, end))
            heappush(self.events, (end, next(self.turn), chunk))

    def run(self) -> list[Run]:
        for chunk in range(len(self.jobs)):
            self.join(chunk)
            self.start(self.queue(chunk), 0)
        while self.events:
            now, _, chunk = heappop(self.events)
            left = self.queue(chunk)
            left.running -= 1
            self.phase_of[chunk] += 1
            if self.phase_of[chunk] == len(self.jobs[chunk]):
                self.start(left, now)
                continue
            self.join(chunk)
            self.start(left, now)
            self.start(self.queue(chunk), now)
        return self.runs


def _first(marks: list[bool]) -> int:
    """Index of the first true entry, or the length if there is none."""
    return marks.index(True) if True in marks else len(marks)


def run_shop(jobs: Sequence[Sequence[Operation]], width: int = 1, policy: Policy = "fifo") -> list[Run]:
    """Start and end of each operation of each chunk, with `width` chunks at once in each queue."""
    return _Shop(jobs, width, policy, phase_of=[0] * len(jobs)).run()


# Bytes that an NPU sends on each dimension for a collective, and its time where chunks keep every dimension busy.
#
# With n_i members of the group along dimension i, innermost first, and s bytes at each NPU:
#
#     all_reduce      2 s (n - 1) / n, then s / n goes on to the next dimension
#     reduce_scatter  half of that
#     all_gather      s (n - 1) outermost first, then s n goes on inwards
#     all_to_all      s (n - 1) / n on each, s unchanged
#
#     time = max over i of  bytes_i / (share_i bandwidth_i)
#
#     share_i     of a dimension of d where n_i are fewer, as only links among them carry it: (n_i - 1) / (d - 1) where all are joined, and
#                 1/2 of a ring's neighbours, which pass back and forth on what would go around; 1 of a switch, or where the group is all
#
#     all to all  on a ring bytes pass the links of others: all n floor(n^2 / 4) / n s for each NPU's links, n / 4 for each byte of large
#                 rings, and of a part of one the middle link floor(n^2 / 4) / n s either way; so (n - 1) / floor(n^2 / 4) of the above
#
# The form of LIBRA (William Won et al., ISPASS 2024, arXiv 2109.11762), where each share is 1: perfect pipelining, no latency. Below any
# schedule of chunks in the natural order.


def fluid_bytes(collective: Collective, size: float, members: Sequence[int]) -> tuple[float, ...]:
    """Bytes on each dimension, exact before one rounding; none if the group has one member."""
    return tuple(map(float, _exact(collective, size, members)))


def fluid_loads(collective: Collective, size: float, members: Sequence[int], shares: Sequence[Fraction]) -> tuple[float, ...]:
    """Bytes that would take as long at the total bandwidth, exact before one rounding."""
    return tuple(float(moved / share) for moved, share in zip(_exact(collective, size, members), shares, strict=True))


def share_of_chunk(collective: Collective, shape: Shape, size: int, members: int) -> Fraction:
    """Share of an NPU's bandwidth on a dimension that a group of this size can use."""
    if shape == "switch" or members == 1:
        return Fraction(1)
    if shape == "fully_connected":
        return Fraction(members - 1, size - 1)
    passed = Fraction(members - 1, members * members // 4) if collective == "all_to_all" else Fraction(1)
    return passed if members == size else passed / 2


def _exact(collective: Collective, size: float, members: Sequence[int]) -> list[Fraction]:
    left, found = Fraction(size), [Fraction(0)] * len(members)
    places = range(len(members))
    for level in reversed(places) if collective == "all_gather" else places:
        count = members[level]
        if collective == "all_gather":
            found[level], left = left * (count - 1), left * count
        elif collective == "all_to_all":
            found[level] = left * (count - 1) / count
        else:
            ways = 2 if collective == "all_reduce" else 1
            found[level], left = ways * left * (count - 1) / count, left / count
    return found


# A whole collective on a network of dimensions: its time in ns, when each phase of each chunk ran, and what each phase is made of.


@dataclass(frozen=True, slots=True)
class Network:
    """A network: its dimensions, innermost first, and the memory bandwidth that each NPU adds up with."""

    dimensions: tuple[Dimension, ...]
    endpoint: Endpoint
    active_chunks: int = 1
    """Chunks in flight on a dimension. More than one is unphysical where links are not simulated one by one."""
    queues: int = 1
    """Number of queues among which the active chunks of a dimension are distributed."""

    @property
    def width(self) -> int:
        """Chunks that run at once in one queue."""
        return -(-self.active_chunks // self.queues)


@dataclass(frozen=True, slots=True)
class Timed:
    """The time of a collective, with the operations that explain it."""

    time: int
    """Time until the last chunk ends, in ns."""
    jobs: tuple[tuple[Operation, ...], ...]
    runs: tuple[Run, ...]


def operation_time(phase: Phase, network: Network) -> int:
    """Time of one phase alone, in ns. A second round of direct messages may start early, so these are simulated one by one."""
    dimension = network.dimensions[phase.dimension]
    early = phase.collective == "all_reduce" and algorithm_of(phase, dimension) == "direct" and dimension.shape == "ring"
    if early:
        return max(finish_times([phase], dimension, network.endpoint, unhindered(dimension)))
    return phase_time(phase, dimension, network.endpoint)


def jobs_of(chunks: Sequence[Chunk], collective: Collective, network: Network, passing: Passing) -> list[list[Operation]]:
    """The operations of each chunk; the queues of a dimension take turns."""
    known, turns, jobs = dict[Phase, int](), [0] * len(network.dimensions), list[list[Operation]]()
    for chunk in chunks:
        jobs.append([])
        for phase in phases_of(chunk, collective, network.dimensions, passing):
            if phase not in known:
                known[phase] = operation_time(phase, network)
            largest = max(phase.bytes, phase.after(network.dimensions[phase.dimension].size))
            jobs[-1].append(Operation(phase, known[phase], largest, turns[phase.dimension] % network.queues))
            turns[phase.dimension] += 1
    return jobs


def time_collective(
    chunks: Sequence[Chunk], collective: Collective, network: Network, passing: Passing = "bandwidth_aware", policy: Policy = "fifo"
) -> Timed:
    """Congestion-unaware time: each phase as if alone, in a flow shop of dimensions."""
    jobs = jobs_of(chunks, collective, network, passing)
    runs = run_shop(jobs, network.width, policy)
    return Timed(max(run.end for run in runs), tuple(map(tuple, jobs)), tuple(runs))


def congested_times(sizes: Sequence[int], collective: Collective, network: Network) -> list[int]:
    """Congestion-aware time at each NPU of one dimension: every message waits for its links."""
    (dimension,) = network.dimensions
    phases = [Phase(0, collective, size) for size in sizes]
    return finish_times(phases, dimension, network.endpoint, congested(dimension), network.width)


# Themis: a greedy order of the dimensions for each chunk, by which all dimensions get about equal loads.
#
# Saeed Rashidi et al., ISCA 2022 (arXiv 2110.04478), as the simulator has it (read in system/scheduling). The loads begin at zero. Each
# chunk scatters over the dimensions from the least to the most loaded, unless the loads differ by less than a sixteenth of a chunk: then in
# the natural order. Loads are counted in MiB over bandwidths relative to the innermost, in the simulator's order of operations, as another
# order may round a load to the other side. `flexible` chunks are as large as closes the gap between the loads, and at least one chunk.

_MIB = 1_048_576


@dataclass(slots=True)
class _Loads:
    """Load scheduled on each dimension so far, and the last chunk's order, which breaks ties.

    Loads are in MiB over the bandwidth relative to the innermost dimension's.
    """

    dimensions: Sequence[Dimension]
    bandwidths: Sequence[float]
    gathers: bool
    load: list[float] = field(default_factory=list)
    order: list[int] = field(default_factory=list)

    def ratio(self, level: int) -> float:
        return self.bandwidths[level] / self.bandwidths[0]

    def share(self, level: int) -> float:
        """Bytes that a dimension moves for each byte that it is given."""
        size = self.dimensions[level].size
        return float(size - 1) if self.gathers else float(size - 1) / size

    def sort(self) -> None:
        self.order.sort(key=self.load.__getitem__)
        if self.gathers:
            self.order.reverse()

    def closing(self) -> int:
        """Chunk bytes that raise the least loaded dimension to the load of the most loaded one."""
        gap = abs(self.load[self.order[-1]] - self.load[self.order[0]])
        least = self.order[-1 if self.gathers else 0]
        size = int(gap * self.ratio(least) / self.share(least) * _MIB)
        for level in self.order[:-1][::-1] if self.gathers else ():
            size //= self.dimensions[level].size
        return size

    def add(self, size: int) -> None:
        """Add the loads of a chunk that visits the dimensions in the current order."""
        for level in self.order:
            self.load[level] += size / _MIB * self.share(level) / self.ratio(level)
            size = size * self.dimensions[level].size if self.gathers else size // self.dimensions[level].size


def themis_chunks(
    collective: Collective, size: int, chunks: int, dimensions: Sequence[Dimension], bandwidths: Sequence[float], *, flexible: bool = False
) -> list[Chunk]:
    """Chunks with the orders that Themis chooses at these bandwidths; an all-to-all keeps its order."""
    if collective == "all_to_all":
        return equal_chunks(collective, size, chunks, len(dimensions))
    count, usual = len(dimensions), size // chunks
    loads = _Loads(dimensions, bandwidths, collective == "all_gather", [0.0] * count, list(range(count)))
    found = list[Chunk]()
    while size > 0:
        loads.sort()
        closing = loads.closing()
        if even := closing < (usual if flexible else usual // 16):
            loads.order = sorted(loads.order, reverse=loads.gathers)
        wanted = closing if flexible and not even else usual
        each = min(size, wanted)
        found.append(Chunk(each, tuple(loads.order)))
        loads.add(each if flexible and even else wanted)
        size -= each
    return found


# What the simulator says of a collective in one number, by its settings: how chunks pass, who orders them, who is served first.

Scheduling = Literal["natural", "themis", "themis_flexible"]


@dataclass(frozen=True, slots=True)
class Setting:
    """Settings of the simulator's system file."""

    passing: Passing = "bandwidth_aware"
    """`collective-optimization`: baseline or localBWAware."""
    scheduling: Scheduling = "natural"
    """Scheduling between dimensions. Themis counts with the bandwidth of one link, as the simulator does."""
    policy: Policy = "fifo"
    """Scheduling within a dimension."""
    congestion: bool = False
    """Whether links are simulated one by one, which needs a network of one dimension."""


SETTINGS: Mapping[str, Setting] = {
    "baseline": Setting("baseline"),
    "localBWAware": Setting(),
    "Themis": Setting("two_way", "themis"),
    "Themis flex": Setting("two_way", "themis_flexible"),
    "congestion": Setting(congestion=True),
}
"""The algorithms that are usually compared."""


def npu_times(collective: Collective, size: int, chunks: int, network: Network, setting: Setting) -> tuple[int, int]:
    """Time of the slowest and of the fastest NPU, in ns."""
    dimensions = network.dimensions
    if setting.congestion:
        times = congested_times(chunk_sizes(size, chunks), collective, network)
        return max(times), min(times)
    if setting.scheduling == "natural":
        parts = equal_chunks(collective, size, chunks, len(dimensions))
    else:
        links, flexible = [dimension.bandwidth for dimension in dimensions], setting.scheduling == "themis_flexible"
        parts = themis_chunks(collective, size, chunks, dimensions, links, flexible=flexible)
    time = time_collective(parts, collective, network, setting.passing, setting.policy).time
    return time, time
