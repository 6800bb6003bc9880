"""Where a network can be cut into stages: its ideals, sets of layers that hold every predecessor of theirs, as masks of bits."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from crossopt.solvers.orders import every_ideal

MOST_IDEALS = 2_500
MOST_PAIRS = 250_000
_ORDERS = 6
_MOST_PREFIXES = 250
"""Of one order, where not all cuts are taken."""
_MOST_NEAR = 100
"""The same of an order near known stages."""


def ideals_of(count: int, arcs: Sequence[tuple[int, int]]) -> tuple[list[int], bool]:
    """Ideals by size, the empty one first, and whether these are all.

    Where there are too many, those along some orders in which all data flow forward: stages between them are stages of the network.
    """
    every = _every(count, arcs)
    if every is not None:
        return every, True
    kept = {int(place) for place in np.linspace(1, count, min(count, _MOST_PREFIXES)).round()}
    found = {0}
    for seed in range(_ORDERS):
        mask, prefixes = 0, set[int]()
        for size, place in enumerate(_order(count, arcs, seed), 1):
            mask |= 1 << place
            prefixes |= {mask} if size in kept else set()
        more = _by_size(found | prefixes)
        if seed and _pairs_at_most(more) > MOST_PAIRS // 4:
            break
        found |= prefixes
    return _by_size(found), False


def cuts_near(arcs: Sequence[tuple[int, int]], stage_of: Sequence[int], seed: int) -> list[int]:
    """Cuts along an order that stays near known stages, and the cuts of these: layers may change with those of stages nearby."""
    count = len(stage_of)
    after: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for start, end in arcs:
        after[start].append(end)
        waiting[end] += 1
    random = np.random.default_rng(seed)
    when = np.array(stage_of) + random.random(count) * float(random.choice([1.0, 2.0, 4.0]))
    ready = [(float(when[place]), place) for place in range(count) if not waiting[place]]
    heapify(ready)
    kept = {int(place) for place in np.linspace(1, count, min(count, _MOST_NEAR)).round()}
    found, mask = {0}, 0
    for size in range(1, count + 1):
        place = heappop(ready)[1]
        mask |= 1 << place
        found |= {mask} if size in kept else set()
        for other in after[place]:
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, (float(when[other]), other))
    for stage in range(max(stage_of)):
        found.add(sum(1 << place for place, number in enumerate(stage_of) if number <= stage))
    return _by_size(found)


def _by_size(masks: set[int]) -> list[int]:
    return sorted(masks, key=lambda mask: (mask.bit_count(), mask))


def _every(count: int, arcs: Sequence[tuple[int, int]]) -> list[int] | None:
    """All ideals; None where they or the pairs of them are too many."""
    if count * (count + 1) // 2 > MOST_PAIRS:
        return None
    before = [0] * count
    for start, end in arcs:
        before[end] |= 1 << start
    found = every_ideal(before, MOST_IDEALS)
    return found if found and _pairs_at_most(found) <= MOST_PAIRS else None


def _pairs_at_most(masks: Sequence[int]) -> int:
    """Pairs of which one is within the other."""
    return sum(sum(inner & ~outer == 0 for inner in masks[:place]) for place, outer in enumerate(masks))


def _order(count: int, arcs: Sequence[tuple[int, int]], seed: int) -> list[int]:
    """As the layers are numbered (seed 0), the newest that is ready first (1), the oldest (2), then by chance."""
    after: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for start, end in arcs:
        after[start].append(end)
        waiting[end] += 1
    random, order = np.random.default_rng(seed), list[int]()
    ready = [place for place in range(count) if not waiting[place]]
    while ready and seed:
        place = ready.pop({1: -1, 2: 0}.get(seed, int(random.integers(len(ready)))))
        order.append(place)
        for other in after[place]:
            waiting[other] -= 1
            ready += [] if waiting[other] else [other]
    return order if seed else list(range(count))
