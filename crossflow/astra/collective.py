"""A collective on a multi-dimensional network: its chunks, the order of their phases, and the time of each phase."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from itertools import count
from typing import Literal

from crossopt.crossflow.astra.phases import (
    Collective,
    Dimension,
    Endpoint,
    Phase,
    Shape,
    algorithm_of,
    congested,
    finish_times,
    phase_time,
    unhindered,
)

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
    """Equal chunks of size // chunks bytes; a remainder becomes one more chunk."""
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
        way: list[tuple[int, Collective]] = [(place, collective) for place in order]
    elif passing == "bandwidth_aware":
        inner = order[:-1]
        way = [(place, "reduce_scatter") for place in inner]
        way += [(order[-1], "all_reduce")]
        way += [(place, "all_gather") for place in reversed(inner)]
    else:
        way = [(place, "reduce_scatter") for place in order]
        way += [(place, "all_gather") for place in reversed(order)]
    phases, size = list[Phase](), chunk.bytes
    for place, kind in way:
        phases.append(Phase(place, kind, size))
        size = phases[-1].after(dimensions[place].size)
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
    place: int
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
    place: list[int] = field(default_factory=list)
    events: list[tuple[int, int, int]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    turn: "count[int]" = field(default_factory=count)

    def now_at(self, chunk: int) -> Operation:
        return self.jobs[chunk][self.place[chunk]]

    def queue(self, chunk: int) -> _Queue:
        operation = self.now_at(chunk)
        return self.queues.setdefault((operation.phase.dimension, operation.queue), _Queue())

    def remaining(self, chunk: int) -> int:
        """Number of phases after the chunk's current one."""
        return len(self.jobs[chunk]) - self.place[chunk] - 1

    def join(self, chunk: int) -> None:
        """Queue an operation by the policy, which looks only at phases of chunks that scatter or gather."""
        waiting, policy = self.queue(chunk).waiting, self.policy
        place = len(waiting)
        if policy != "fifo" and self.now_at(chunk).phase.collective in ("reduce_scatter", "all_gather"):
            if policy == "fewest_phases_first":
                place = _first([self.remaining(other) >= self.remaining(chunk) for other in waiting])
            elif self.remaining(chunk) != 1:  # a chunk with one phase to go waits at the end, read as it is
                place = _first([self.now_at(other).largest >= self.now_at(chunk).largest for other in waiting])
        waiting.insert(place, chunk)

    def start(self, queue: _Queue, now: int) -> None:
        while queue.waiting and queue.running < self.width:
            chunk = queue.waiting.pop(0)
            queue.running += 1
            end = now + self.now_at(chunk).duration
            self.runs.append(Run(chunk, self.place[chunk], now, end))
            heappush(self.events, (end, next(self.turn), chunk))

    def run(self) -> list[Run]:
        for chunk in range(len(self.jobs)):
            self.join(chunk)
            self.start(self.queue(chunk), 0)
        while self.events:
            now, _, chunk = heappop(self.events)
            left = self.queue(chunk)
            left.running -= 1
            self.place[chunk] += 1
            if self.place[chunk] == len(self.jobs[chunk]):
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
    return _Shop(jobs, width, policy, place=[0] * len(jobs)).run()


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


def share_of(collective: Collective, shape: Shape, size: int, members: int) -> Fraction:
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
    for place in reversed(places) if collective == "all_gather" else places:
        count = members[place]
        if collective == "all_gather":
            found[place], left = left * (count - 1), left * count
        elif collective == "all_to_all":
            found[place] = left * (count - 1) / count
        else:
            ways = 2 if collective == "all_reduce" else 1
            found[place], left = ways * left * (count - 1) / count, left / count
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
    def npus(self) -> int:
        count = 1
        for dimension in self.dimensions:
            count *= dimension.size
        return count

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
    chunks: Sequence[Chunk],
    collective: Collective,
    network: Network,
    passing: Passing = "bandwidth_aware",
    policy: Policy = "fifo",
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
    """Bytes scheduled on each dimension so far, and the last chunk's order, which breaks ties."""

    dimensions: Sequence[Dimension]
    bandwidths: Sequence[float]
    gathers: bool
    load: list[float] = field(default_factory=list)
    order: list[int] = field(default_factory=list)

    def ratio(self, place: int) -> float:
        return self.bandwidths[place] / self.bandwidths[0]

    def share(self, place: int) -> float:
        """Bytes that a dimension moves for each byte of a chunk."""
        size = self.dimensions[place].size
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
        for place in self.order[:-1][::-1] if self.gathers else ():
            size //= self.dimensions[place].size
        return size

    def add(self, size: int) -> None:
        """A chunk that visits the dimensions in natural order."""
        for place in self.order:
            self.load[place] += size / _MIB * self.share(place) / self.ratio(place)
            size = size * self.dimensions[place].size if self.gathers else size // self.dimensions[place].size


def themis_chunks(
    collective: Collective,
    size: int,
    chunks: int,
    dimensions: Sequence[Dimension],
    bandwidths: Sequence[float],
    *,
    flexible: bool = False,
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
        links, flexible = [one.bandwidth for one in dimensions], setting.scheduling == "themis_flexible"
        parts = themis_chunks(collective, size, chunks, dimensions, links, flexible=flexible)
    time = time_collective(parts, collective, network, setting.passing, setting.policy).time
    return time, time
