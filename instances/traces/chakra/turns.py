"""Turns of operations that say no start: one at a time on each thread, device, stream and network, of several the lowest number.

So ASTRA-sim runs a trace (its HardwareResource: of each NPU one operation of the host, one of the device and one message or collective at a
time; receives wait beside them). The turns become edges, so that a changed graph keeps their order and no choice is left.
"""

from collections import defaultdict
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import pairwise

Edge = tuple[int, int]


def turns(where: Sequence[str], took: Sequence[int], numbers: Sequence[int], edges: Sequence[Edge]) -> list[Edge]:
    """Each operation and the next one at its place; an empty place is that of operations beside all others. What waits for itself never
    begins, and has no turn."""
    waits, followers = [0] * len(where), defaultdict[int, list[int]](list)
    for one, other in edges:
        waits[other] += 1
        followers[one].append(other)
    ready, busy = defaultdict[str, list[Edge]](list), set[str]()
    began, running = defaultdict[str, list[int]](list), list[Edge]()

    def begin(place: str, now: int) -> None:
        """What may begin there."""
        while ready[place] and (not place or place not in busy):
            _, operation = heappop(ready[place])
            busy.add(place)
            began[place].append(operation)
            heappush(running, (now + took[operation], operation))

    def arrive(operation: int) -> str:
        heappush(ready[where[operation]], (numbers[operation], operation))
        return where[operation]

    for place in dict.fromkeys([arrive(operation) for operation, count in enumerate(waits) if not count]):
        begin(place, 0)
    while running:
        now, touched = running[0][0], dict[str, None]()
        while running and running[0][0] == now:
            _, ended = heappop(running)
            busy.discard(where[ended])
            touched[where[ended]] = None
            for follower in followers[ended]:
                waits[follower] -= 1
                if not waits[follower]:
                    touched[arrive(follower)] = None
        for place in touched:
            begin(place, now)
    return [pair for place, operations in began.items() if place for pair in pairwise(operations)]
