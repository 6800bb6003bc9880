"""Chunks wait for dimensions: each dimension is a machine that works on few chunks at once, and a chunk needs it twice where it comes back.

The order of events is the simulator's: a chunk that ends a phase joins the queue of its next dimension, then the dimension that it left
starts its next chunk, then the dimension that it joined. All chunks join their first dimension at time 0. (system/Sys.cc, SchedulerUnit)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Literal

from crossopt.crossflow.astra.phase import Phase

Policy = Literal["fifo", "smallest_first", "fewest_phases_first"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One phase of a chunk, and how long it takes."""

    phase: Phase
    duration: int
    largest: int
    """Bytes at an NPU before or behind the phase, whichever are more."""
    queue: int = 0
    """Of the dimension's queues."""


@dataclass(frozen=True, slots=True)
class Run:
    """When an operation ran."""

    chunk: int
    place: int
    """Which of the chunk's phases."""
    start: int
    end: int


@dataclass(slots=True)
class _Queue:
    running: int = 0
    waiting: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Shop:
    """The state of the machines."""

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
        """Phases after the one that the chunk is at."""
        return len(self.jobs[chunk]) - self.place[chunk] - 1

    def join(self, chunk: int) -> None:
        """Wait in the order of the policy, which looks only at phases of chunks that scatter or gather."""
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
    """The place of the first that is marked, or behind all."""
    return marks.index(True) if True in marks else len(marks)


def run_shop(jobs: Sequence[Sequence[Operation]], width: int = 1, policy: Policy = "fifo") -> list[Run]:
    """When each operation of each chunk runs, where `width` chunks run at once in a queue."""
    return _Shop(jobs, width, policy, place=[0] * len(jobs)).run()
