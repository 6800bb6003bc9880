"""Several NPUs that compute, send, receive and take part in collectives, each with a list of tasks of its own, as ASTRA-sim replays traces.

An NPU runs at most one computation at a time, and at most one message that it sends or collective; it waits for any number of messages.
Of the tasks that may start it starts those with the smallest number first. A message pays the first dimension in which its two ends differ,
and no message is in the way of another. A collective starts when all members have come to it; of some of the NPUs it is a ring over them in
the order of the group, message by message, as neighbours may be differently far apart. (astra-sim/astra-sim, workload/Workload.cc and
HardwareResource.cc, congestion_unaware network.) Replays that do not wait for other NPUs are not meant: they say nothing about a plan.

With congestion, which is told for one dimension, all messages share its links, those of collectives among them, and a member of a
collective begins to send when it reaches it, even if others have not reached it yet.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import floor
from types import MappingProxyType
from typing import Literal

from crossopt.crossflow.astra.collective import (
    Call,
    Carry,
    Clock,
    Collective,
    Dimension,
    Exchange,
    Network,
    Phase,
    chunk_sizes,
    congested,
    equal_chunks,
    exchange_of,
    finish_times,
    hops_between,
    message_time,
    time_collective,
)


@dataclass(frozen=True, slots=True)
class Task:
    """One task of an NPU, with the tasks of the same NPU that it waits for."""

    number: int
    kind: Literal["compute", "send", "receive", "collective", "load", "store"]
    after: tuple[int, ...] = ()
    time: int = 0
    """Duration of a computation, in ns."""
    bytes: int = 0
    peer: int = -1
    """The NPU at the other end of a message."""
    tag: int = 0
    collective: Collective = "all_reduce"
    group: int = 0
    """Group of NPUs; 0 means all."""


@dataclass(frozen=True, slots=True)
class RemoteMemory:
    """Memory outside the NPUs: one of each NPU, one of each node, or one pool for all (ASTRA-sim, AnalyticalRemoteMemory).

    An access takes latency + floor(bytes / bandwidth) ns. Those of a node and of the pool are served one after the other, first come first
    served, latency included.
    """

    level: Literal["npu", "node", "pool"]
    latency: int
    """In ns."""
    bandwidth: float
    """Bytes per ns."""
    npus_per_node: int = 1
    capacity: int = 0
    """Bytes of one memory; 0 sets no limit. ASTRA-sim has none."""

    def time(self, size: int) -> int:
        return self.latency + floor(size / self.bandwidth)

    def memory_of(self, npu: int) -> int:
        """The number of the memory that an NPU uses."""
        return {"npu": npu, "node": npu // self.npus_per_node, "pool": 0}[self.level]


def overfull(memory: RemoteMemory, tasks: Sequence[Sequence[Task]]) -> str:
    """Which memory the stored bytes exceed, as a sentence; empty where there is none or no limit."""
    stored = Counter[int]()
    for npu, own in enumerate(tasks):
        stored[memory.memory_of(npu)] += sum(task.bytes for task in own if task.kind == "store")
    for number, size in sorted(stored.items()):
        if 0 < memory.capacity < size:
            return f"remote memory {number} holds {memory.capacity:,} bytes, and {size:,} are stored in it"
    return ""


class StuckError(ValueError):
    """Raised when tasks can never start because what they wait for never ends."""


Message = tuple[int, int, int, int]
"""From, to, tag, bytes."""


@dataclass(slots=True)
class _Npu:
    tasks: dict[int, Task]
    waits: dict[int, int] = field(default_factory=dict)
    followers: dict[int, list[int]] = field(default_factory=dict)
    ready: dict[str, list[int]] = field(default_factory=lambda: {"compute": [], "network": [], "receive": []})
    busy: dict[str, bool] = field(default_factory=lambda: {"compute": False, "network": False})
    end: int = 0
    left: int = 0


@dataclass(slots=True)
class _Replay:
    network: Network
    groups: Mapping[int, tuple[int, ...]]
    chunks: int
    ways: Mapping[Collective, Network]
    """The network, with the algorithms for collectives of all NPUs where they differ."""
    npus: list[_Npu]
    carry: Carry | None = None
    """How messages share links; None if messages do not delay each other."""
    clock: Clock = field(default_factory=Clock)
    arrived: Counter[Message] = field(default_factory=Counter)
    awaited: dict[Message, list[int]] = field(default_factory=dict)
    joined: dict[tuple[int, int], list[tuple[int, int]]] = field(default_factory=dict)
    """Members that have arrived and their tasks, by group and by number of the collective in the group."""
    issued: Counter[tuple[int, int]] = field(default_factory=Counter)
    times: dict[tuple[int, Collective, int], int] = field(default_factory=dict)
    exchanges: dict[tuple[int, int], Exchange] = field(default_factory=dict)
    """Collectives whose messages share links, by group and number."""
    memory: RemoteMemory | None = None
    served: dict[int, int] = field(default_factory=dict)
    """When each memory that serves one access at a time is free."""

    def run(self) -> list[int]:
        for number in range(len(self.npus)):
            self.start(number, 0)
        self.clock.run()
        left = [number for number, npu in enumerate(self.npus) if npu.left]
        if left:
            raise StuckError(f"deadlock: NPU {left[0]} has {self.npus[left[0]].left} tasks that can never start")
        return [npu.end for npu in self.npus]

    def plan(self, time: int, npu: int, task: int) -> None:
        self.clock.at(time, lambda: self.finish(npu, task, time))

    def finish(self, number: int, task: int, now: int) -> None:
        npu = self.npus[number]
        done = npu.tasks[task]
        lane = _lane(done)
        if lane != "receive":
            npu.busy[lane] = False
        if done.kind == "send":
            self.arrive((number, done.peer, done.tag, done.bytes), now)
        npu.end, npu.left = max(npu.end, now), npu.left - 1
        for other in npu.followers.get(task, ()):
            npu.waits[other] -= 1
            if npu.waits[other] == 0:
                heappush(npu.ready[_lane(npu.tasks[other])], other)
        self.start(number, now)

    def arrive(self, message: Message, now: int) -> None:
        waiting = self.awaited.get(message)
        if waiting:
            self.plan(now, message[1], waiting.pop(0))
        else:
            self.arrived[message] += 1

    def start(self, number: int, now: int) -> None:
        npu = self.npus[number]
        for lane in ("compute", "network"):
            if npu.ready[lane] and not npu.busy[lane]:
                npu.busy[lane] = True
                self.begin(number, npu.tasks[heappop(npu.ready[lane])], now)
        while npu.ready["receive"]:
            self.begin(number, npu.tasks[heappop(npu.ready["receive"])], now)

    def begin(self, number: int, task: Task, now: int) -> None:
        if task.kind == "compute":
            self.plan(now + task.time, number, task.number)
        elif task.kind == "send":
            self.send(number, task, now)
        elif task.kind == "receive":
            message = (task.peer, number, task.tag, task.bytes)
            if self.arrived[message]:
                self.arrived[message] -= 1
                self.plan(now, number, task.number)
            else:
                self.awaited.setdefault(message, []).append(task.number)
        elif task.kind in ("load", "store"):
            self.access(number, task, now)
        else:
            self.join(number, task, now)

    def access(self, number: int, task: Task, now: int) -> None:
        """Load from or store in remote memory, behind the accesses that came before."""
        if self.memory is None:
            raise StuckError(f"NPU {number} accesses remote memory, and there is none")
        if self.memory.level == "npu":
            self.plan(now + self.memory.time(task.bytes), number, task.number)
            return
        memory = self.memory.memory_of(number)
        self.served[memory] = max(now, self.served.get(memory, 0)) + self.memory.time(task.bytes)
        self.plan(self.served[memory], number, task.number)

    def send(self, number: int, task: Task, now: int) -> None:
        if self.carry is None or number == task.peer:
            self.plan(now + between(self.network, number, task.peer, task.bytes), number, task.number)
        else:
            self.carry(self.clock, number, task.peer, task.bytes, lambda: self.finish(number, task.number, self.clock.now))

    def join(self, number: int, task: Task, now: int) -> None:
        """Arrive at a collective; the last member to arrive starts it for all."""
        key = task.group, self.issued[task.group, number]
        self.issued[task.group, number] += 1
        if self.carry is not None:
            self.share(key, number, task, now)
            return
        members = self.joined.setdefault(key, [])
        members.append((number, task.number))
        if len(members) == len(self.groups.get(task.group, self.npus)):
            end = now + self.collective_time(task)
            for npu, other in members:
                self.plan(end, npu, other)

    def share(self, key: tuple[int, int], number: int, task: Task, now: int) -> None:
        """Start to send for a collective whose messages share links."""
        members = self.groups.get(task.group, range(len(self.npus)))
        if len(members) < 2:
            self.plan(now, number, task.number)
            return
        if key not in self.exchanges:
            self.exchanges[key] = self.exchange(members, task)
        exchange, position = self.exchanges[key], members.index(number)
        exchange.npus[position].done = lambda: self.finish(number, task.number, self.clock.now)
        exchange.start(exchange.npus[position])

    def exchange(self, members: Sequence[int], task: Task) -> Exchange:
        """The dimension's algorithm for a collective of all NPUs; a ring for a group of some."""
        carried, phases = self.carry, [Phase(0, task.collective, each) for each in chunk_sizes(task.bytes, self.chunks)]

        def carry(clock: Clock, source: int, to: int, message: int, arrive: Call) -> None:
            if carried is not None:
                carried(clock, members[source], members[to], message, arrive)

        [of_all] = self.ways.get(task.collective, self.network).dimensions
        is_whole = len(members) == len(self.npus)
        dimension = of_all if is_whole else Dimension("ring", len(members), 1.0, 0.0, "ring")
        return exchange_of(phases, dimension, self.network.endpoint, carry, self.clock, self.network.width)

    def collective_time(self, task: Task) -> int:
        key = task.group, task.collective, task.bytes
        if key not in self.times:
            group = self.groups.get(task.group)
            if group is None or sorted(group) == list(range(len(self.npus))):
                chunks = equal_chunks(task.collective, task.bytes, self.chunks, len(self.network.dimensions))
                self.times[key] = time_collective(chunks, task.collective, self.ways.get(task.collective, self.network)).time
            else:
                self.times[key] = ring_time(self.network, group, task.collective, task.bytes, self.chunks)
        return self.times[key]


def _lane(task: Task) -> str:
    return {"compute": "compute", "receive": "receive"}.get(task.kind, "network")


def between(network: Network, source: int, target: int, message: int) -> int:
    """Time of a message between two NPUs, in ns: that of the first dimension in which they differ."""
    for dimension in network.dimensions:
        a, b = source % dimension.size, target % dimension.size
        if a != b:
            return message_time(dimension, message, hops_between(dimension, b - a))
        source, target = source // dimension.size, target // dimension.size
    return 0


def ring_time(network: Network, members: Sequence[int], collective: Collective, size: int, chunks: int) -> int:
    """A collective of some NPUs, run as a ring."""
    if len(members) < 2:
        return 0
    ring = Dimension("ring", len(members), 1.0, 0.0, "ring")

    def carry(clock: Clock, source: int, to: int, message: int, arrive: Call) -> None:
        clock.at(clock.now + between(network, members[source], members[to], message), arrive)

    phases = [Phase(0, collective, each) for each in chunk_sizes(size, chunks)]
    return max(finish_times(phases, ring, network.endpoint, carry, network.width))


def replay_npus(
    tasks: Sequence[Sequence[Task]],
    groups: Mapping[int, tuple[int, ...]],
    network: Network,
    chunks: int = 1,
    ways: Mapping[Collective, Network] = MappingProxyType({}),
    *,
    congestion: bool = False,
    memory: RemoteMemory | None = None,
) -> list[int]:
    """Time at which each NPU ends, in ns; raises StuckError if some never end. With congestion, of a network of one dimension, messages
    wait for the links that others hold."""
    carry = congested(network.dimensions[0]) if congestion else None
    npus = list[_Npu]()
    for own in tasks:
        npu = _Npu({task.number: task for task in own}, left=len(own))
        for task in own:
            npu.waits[task.number] = len(task.after)
            for before in task.after:
                npu.followers.setdefault(before, []).append(task.number)
            if not task.after:
                heappush(npu.ready[_lane(task)], task.number)
        npus.append(npu)
    return _Replay(network, groups, chunks, ways, npus, carry, memory=memory).run()
