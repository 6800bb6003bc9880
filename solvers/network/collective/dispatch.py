"""Sequences of chunks by a rule: whenever a dimension is free, the waiting chunk with the least key is next."""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from math import inf

from crossopt.crossflow.astra.flow_shop import Operation

Key = Callable[[int, int], float]
"""Of a chunk and the place of its phase."""
Jobs = Sequence[Sequence[Operation]]


def dispatched(jobs: Jobs, dimensions: int, key: Key, most: float = inf) -> tuple[float, tuple[tuple[int, ...], ...]]:
    """When all is done, and who follows whom on each dimension; infinite where that is not below the most."""
    waiting: list[list[tuple[float, int]]] = [[] for _ in range(dimensions)]
    busy, place = [False] * dimensions, [0] * len(jobs)
    found: list[list[int]] = [[] for _ in range(dimensions)]
    events, end = list[tuple[int, int]](), 0

    def join(chunk: int) -> None:
        heappush(waiting[jobs[chunk][place[chunk]].phase.dimension], (key(chunk, place[chunk]), chunk))

    def start(dimension: int, now: int) -> None:
        if not busy[dimension] and waiting[dimension]:
            _, chunk = heappop(waiting[dimension])
            busy[dimension] = True
            found[dimension].append(chunk)
            heappush(events, (now + jobs[chunk][place[chunk]].duration, chunk))

    for chunk in range(len(jobs)):
        join(chunk)
    for dimension in range(dimensions):
        heapify(waiting[dimension])
        start(dimension, 0)
    while events:
        end = events[0][0]
        if end >= most:
            return inf, ()
        while events and events[0][0] == end:
            _, chunk = heappop(events)
            busy[jobs[chunk][place[chunk]].phase.dimension] = False
            place[chunk] += 1
            if place[chunk] < len(jobs[chunk]):
                join(chunk)
        for dimension in range(dimensions):
            start(dimension, end)
    return end, tuple(map(tuple, found))


def finished(jobs: Jobs, sequences: Sequence[Sequence[int]]) -> int:
    """When all is done in given sequences, each operation as early as may be."""
    place, came = [0] * len(jobs), [0] * len(jobs)
    free, served = [0] * len(sequences), [0] * len(sequences)
    left = sum(map(len, sequences))
    while left:
        for dimension, sequence in enumerate(sequences):
            while served[dimension] < len(sequence):
                chunk = sequence[served[dimension]]
                operation = jobs[chunk][place[chunk]]
                if operation.phase.dimension != dimension:
                    break
                came[chunk] = free[dimension] = max(free[dimension], came[chunk]) + operation.duration
                place[chunk] += 1
                served[dimension] += 1
                left -= 1
    return max(free)


def rules_of(jobs: Jobs) -> list[Key]:
    """Simple rules: by what is left of a chunk, how long a phase is, how far out it is, and the first come."""
    tails = [[sum(one.duration for one in job[place:]) for place in range(len(job) + 1)] for job in jobs]
    middle = (len(jobs[0]) - 1) / 2.0
    return [
        lambda chunk, place: -float(place),
        lambda chunk, place: float(place),
        lambda chunk, place: float(tails[chunk][place]),
        lambda chunk, place: -float(tails[chunk][place]),
        lambda chunk, place: -float(tails[chunk][place + 1]),
        lambda chunk, place: float(jobs[chunk][place].duration),
        lambda chunk, place: -float(jobs[chunk][place].duration),
        lambda chunk, place: abs(place - middle),
        lambda chunk, place: -abs(place - middle),
        lambda chunk, place: float(chunk),
        lambda chunk, place: place + (len(jobs[0]) if place in (0, len(jobs[0]) - 1) else 0.0),
    ]
