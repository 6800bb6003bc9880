"""The graph of a trace: operations on threads and streams, and which of them waits for which.

All times are whole nanoseconds. An operation begins when all that it waits for have ended; nothing else delays it. The order on a thread or
a stream is an edge like every other, so that no choice is left when a graph is run again: what is shortened then never ends anything later
(with a choice it may: Graham 1969).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Whole

KINDS = ("host", "gap", "kernel", "copy", "collective", "wait")
"""What an operation is: work of a thread, time of a thread of which nothing is known, work of a device, bytes that a device moves, what
several devices do together, and a thread that waits for a device."""
EDGES = ("thread", "stream", "launch", "wait", "data")
"""Why an operation waits: for the one before it on its thread or stream, for its launch, for a device, or for what it reads."""
SPAN_ENDS = 1 << 62
"""Nanoseconds that no sum of durations may reach."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Operations as columns, and edges as pairs of their places."""

    names: tuple[str, ...]
    kinds: Whole
    """Places in KINDS."""
    places: Whole
    """Of the thread or stream, in `resources`."""
    durations: Whole
    """Nanoseconds."""
    resources: tuple[str, ...]
    before: Whole
    after: Whole
    """Each edge, as the places of two operations."""
    reasons: Whole
    """Of each edge, places in EDGES."""
    bytes: Whole
    """Moved or sent; 0 where nothing is known."""
    flops: Whole
    groups: tuple[str, ...]
    """Who takes part in a collective, as the trace names it; empty elsewhere."""

    def __len__(self) -> int:
        return len(self.names)


def graph_of(
    operations: Sequence[tuple[str, str, str, int]],
    edges: Sequence[tuple[int, int, str]],
    moved: Sequence[int] = (),
    flops: Sequence[int] = (),
    groups: Sequence[str] = (),
) -> Graph:
    """The graph of operations (name, kind, thread or stream, nanoseconds), and of edges (before, after, reason)."""
    count = len(operations)
    resources = tuple(dict.fromkeys(operation[2] for operation in operations))
    place_of = {name: place for place, name in enumerate(resources)}
    return Graph(
        tuple(operation[0] for operation in operations),
        _whole(KINDS.index(operation[1]) for operation in operations),
        _whole(place_of[operation[2]] for operation in operations),
        _whole(operation[3] for operation in operations),
        resources,
        _whole(edge[0] for edge in edges),
        _whole(edge[1] for edge in edges),
        _whole(EDGES.index(edge[2]) for edge in edges),
        _whole(moved or [0] * count),
        _whole(flops or [0] * count),
        tuple(groups or [""] * count),
    )


def _whole(numbers: Iterable[int]) -> Whole:
    return np.fromiter(numbers, np.int64)
