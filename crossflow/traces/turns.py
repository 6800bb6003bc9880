"""Operations of which no start is known take turns: one at a time on each thread, stream, device or network.

Whenever operations have ended, each resource that is free begins with the smallest number among those that wait for nothing more, as
ASTRA-sim issues the nodes of a trace (astra-sim/astra-sim, workload/Workload.cc and HardwareResource.cc: one operation of the host, one
computation and one message or collective at a time; any number of messages is awaited beside). The order that comes of it is kept as edges,
each from an operation to one that began behind it, so that none closes a cycle and no choice is left when the graph is run again.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from heapq import heappop, heappush

import numpy as np

from crossopt.crossflow.traces.graph import KINDS, Graph
from crossopt.crossflow.traces.replay import followers_of

RULE = (
    "no start was traced: operations of one thread, stream, device or network take turns, of those that wait for nothing more the one "
    "with the smallest number first"
)
"""What is assumed, in words."""
APART = "no collective waits for a kernel, nor a kernel for a collective, so that what links would change is not told by it"
"""What a trace leaves out that is of two kinds with nothing between them."""


def are_apart(graph: Graph) -> bool:
    """Whether there are kernels and collectives, and no edge from the one kind to the other."""
    kernels, collectives = (graph.kinds == KINDS.index(kind) for kind in ("kernel", "collective"))
    between = (kernels[graph.before] & collectives[graph.after]) | (collectives[graph.before] & kernels[graph.after])
    return bool(kernels.any() and collectives.any() and not between.any())


def turns_of(graph: Graph, numbers: Sequence[int], beside: Collection[int] = ()) -> Iterator[tuple[int, int]]:
    """Places of each operation and of the next one on the same resource, in the order in which they begin; those `beside` take no turn."""
    lanes, last = graph.places.tolist(), dict[int, int]()
    for number, place in enumerate(beside, len(graph.resources)):
        lanes[place] = number
    for place in _begun(graph, lanes, numbers):
        if lanes[place] in last:
            yield last[lanes[place]], place
        last[lanes[place]] = place


def _begun(graph: Graph, lanes: Sequence[int], numbers: Sequence[int]) -> Iterator[int]:
    """All operations in the order in which they begin, one at a time on each lane; those of a cycle never do."""
    durations, followers = graph.durations.tolist(), followers_of(graph)
    waits = np.bincount(graph.after, minlength=len(graph)).tolist()
    ready = [place for place, count in enumerate(waits) if count == 0]
    waiting, running = defaultdict[int, list[tuple[int, int]]](list), list[tuple[int, int]]()
    busy, changed, now = set[int](), set[int](), 0
    while True:
        for place in ready:
            heappush(waiting[lanes[place]], (numbers[place], place))
            changed.add(lanes[place])
        for lane in changed - busy:
            if waiting[lane]:
                _, place = heappop(waiting[lane])
                yield place
                busy.add(lane)
                heappush(running, (now + durations[place], place))
        if not running:
            return
        ready, changed, now = [], set(), running[0][0]
        while running and running[0][0] == now:
            _, ended = heappop(running)
            busy.remove(lanes[ended])
            changed.add(lanes[ended])
            for follower in followers[ended]:
                waits[follower] -= 1
                ready += [follower] if waits[follower] == 0 else []
