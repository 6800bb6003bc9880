"""When every operation of a graph begins and ends if all wait for what they waited for: the longest path through it.

    begin of v = max over edges (u, v) of end of u, or 0;    end of v = begin of v + duration of v

The span is the last end. Monotone: less of any duration, or an edge less, ends nothing later. That is what bounds of what-ifs rest on.
"""

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.crossflow.traces.graph import KINDS, Graph

_WORK = [KINDS.index(kind) for kind in ("kernel", "copy", "collective")]
"""Of a device."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Nanoseconds from the first begin, by operation."""

    begins: Whole
    ends: Whole

    @property
    def span(self) -> int:
        return int(self.ends.max(initial=0))


def order_of(graph: Graph) -> list[int]:
    """All operations, each behind what it waits for; a ValueError where some wait for one another."""
    waits = np.bincount(graph.after, minlength=len(graph)).tolist()
    followers = followers_of(graph)
    order = [operation for operation, count in enumerate(waits) if count == 0]
    for operation in order:
        for follower in followers[operation]:
            waits[follower] -= 1
            if waits[follower] == 0:
                order.append(follower)
    if len(order) < len(graph):
        raise ValueError("operations wait for one another")
    return order


def order_along_streams(graph: Graph) -> list[int]:
    """The same, where work of a device is followed by the next on its stream, or the gap before that, unless this waits for more; else
    threads come before devices. What stands in a row may become one: whatever waits for a part of it comes behind all of it."""
    waits, followers = np.bincount(graph.after, minlength=len(graph)).tolist(), followers_of(graph)
    works, places = np.isin(graph.kinds, _WORK).tolist(), graph.places.tolist()
    threads, devices = deque[int](), deque[int]()
    for operation in np.flatnonzero(np.equal(waits, 0)).tolist():
        (devices if works[operation] else threads).append(operation)
    order, following = list[int](), -1
    while following >= 0 or threads or devices:
        operation = following if following >= 0 else (threads or devices).popleft()
        along, following = following >= 0 or works[operation], -1
        order.append(operation)
        for one in followers[operation]:
            waits[one] -= 1
            if waits[one] == 0 and along and following < 0 and places[one] == places[operation]:
                following = one
            elif waits[one] == 0:
                (devices if works[one] else threads).append(one)
    if len(order) < len(graph):
        raise ValueError("operations wait for one another")
    return order


def followers_of(graph: Graph) -> list[list[int]]:
    """What waits for each operation."""
    by_before = np.argsort(graph.before, kind="stable")
    bounds = np.searchsorted(graph.before[by_before], np.arange(len(graph) + 1)).tolist()
    after = graph.after[by_before].tolist()
    return [after[start:end] for start, end in pairwise(bounds)]


def replay(graph: Graph, order: list[int] | None = None) -> Replayed:
    """Every operation as early as what it waits for allows."""
    durations, followers = graph.durations.tolist(), followers_of(graph)
    begins, ends = [0] * len(graph), [0] * len(graph)
    for operation in order_of(graph) if order is None else order:
        end = ends[operation] = begins[operation] + durations[operation]
        for follower in followers[operation]:
            begins[follower] = max(begins[follower], end)
    return Replayed(np.array(begins, np.int64), np.array(ends, np.int64))


def critical_path(graph: Graph, replayed: Replayed) -> list[int]:
    """Operations without slack from one that waits for nothing to the one that ends last, each beginning as the one before it ends."""
    if not len(graph):
        return []
    last_of: dict[int, int] = {}
    tight = replayed.ends[graph.before] == replayed.begins[graph.after]
    for edge in np.flatnonzero(tight)[::-1].tolist():
        last_of[int(graph.after[edge])] = int(graph.before[edge])
    path = [int(replayed.ends.argmax())]
    while path[-1] in last_of:
        path.append(last_of[path[-1]])
    return path[::-1]
