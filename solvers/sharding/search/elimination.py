"""The best choice of a small region by dynamic programming, as far as its width allows.

Nodes with at most two neighbours in the region are eliminated: what they cost at best becomes a cost of the neighbour, or a matrix between
the two (bucket elimination; Dechter, 1999). Where none is left, a node with many neighbours is held at the strategy that it has. The choice
found is the best of all with those nodes held, so it is never worse than the one that stands.
"""

from typing import NamedTuple

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.compiled import compiled
from crossopt.solvers.sharding.search.xorshift import Seed, drawn

_WORK = 1 << 22
"""Steps that eliminating one node may take."""
_TRIES = 6
"""Nodes among which that to be held is drawn."""
NONE = -1
HIGH = 1 << 60
"""Values are cut back to it, and matrices to its double: three of them add up within 64 bits. What may be chosen is below."""


class Region(NamedTuple):
    """A graph of few nodes that is taken apart. Edge e has the halves 2e and 2e + 1; the cost of s and t of its two nodes is the figure
    `bases[e] + s * steps[2e] + t * steps[2e + 1]` of `pool`, where the matrices of the whole core stand before those made here.
    """

    nodes: Whole
    """Numbers in the core."""
    marks: Whole
    """Of each node of the core: its number here, or NONE."""
    starts: Whole
    """Where the values of each node stand."""
    values: Whole
    labels: Whole
    heads: Whole
    degrees: Whole
    ends: Whole
    """The node of each half."""
    following: Whole
    """The next half of the same node."""
    steps: Whole
    bases: Whole
    gone: Whole
    """Of each edge."""
    pool: Whole
    order: Whole
    """Nodes as they are eliminated."""
    records: Whole
    """Of each node the two halves that it had when it was eliminated."""
    waiting: Whole
    rest: Whole
    sizes: Whole
    """How many: nodes, edges, figures in the pool, eliminated ones; where the pool's own part starts; steps of work."""


NODES, EDGES, POOL, ORDER, OWN, WORK = range(6)


def region_of(entries: Whole, nodes: int, widest: int, most: int) -> Region:
    """Room for regions of up to `most` nodes."""
    edges = 6 * most + 64
    own = max(1 << 21, 4 * widest * widest)
    pool = np.concatenate([entries, np.zeros(own, np.int64)])
    marks = np.full(nodes, NONE, np.int64)
    sizes = np.array([0, 0, len(entries), 0, len(entries), 0])
    return Region(
        *(_empty(most + 1), marks, _empty(most + 1), _empty(most * widest + 1), _empty(most), _empty(most), _empty(most)),
        *(_empty(2 * edges), _empty(2 * edges), _empty(2 * edges), _empty(edges), _empty(edges), pool, _empty(most), _empty(2 * most)),
        *(_empty(8 * edges), _empty(most), sizes),
    )


def _empty(size: int) -> Whole:
    return np.zeros(size, np.int64)


@compiled
def joined(region: Region, first: int, second: int, base: int, first_step: int, second_step: int) -> None:
    """Adds an edge."""
    edge = region.sizes[EDGES]
    region.sizes[EDGES] += 1
    region.bases[edge] = base
    region.gone[edge] = 0
    for half, node, step in ((2 * edge, first, first_step), (2 * edge + 1, second, second_step)):
        region.ends[half], region.steps[half] = node, step
        region.following[half] = region.heads[node]
        region.heads[node] = half
        region.degrees[node] += 1


@compiled
def best_choice(region: Region, seed: Seed) -> None:
    """The labels of the best choice; the edges are used up."""
    count = region.sizes[NODES]
    waiting = 0
    region.sizes[ORDER] = 0
    region.sizes[POOL] = region.sizes[OWN]
    for node in range(count):
        region.rest[node] = node
        if region.degrees[node] <= 2:
            region.waiting[waiting] = node
            waiting += 1
    left = count
    while True:
        while waiting > 0:
            waiting -= 1
            node = region.waiting[waiting]
            if 0 <= region.degrees[node] <= 2:
                waiting = _eliminated(region, node, waiting)
        while left > 0 and region.degrees[region.rest[left - 1]] == NONE:
            left -= 1
        if left == 0:
            break
        left, node = _drawn_to_hold(region, left, seed)
        if node != NONE:
            waiting = _hold(region, node, waiting)
    for place in range(region.sizes[ORDER] - 1, -1, -1):
        _relabel(region, region.order[place])


@compiled
def _drawn_to_hold(region: Region, left: int, seed: Seed) -> tuple[int, int]:
    """Of some nodes the one with most neighbours, by chance."""
    best, found = -1, NONE
    for _ in range(_TRIES):
        if left == 0:
            break
        place = drawn(seed, left)
        node = region.rest[place]
        if region.degrees[node] == NONE:
            left -= 1
            region.rest[place] = region.rest[left]
            continue
        key = region.degrees[node] * (64 + drawn(seed, 64))
        if key > best:
            best, found = key, node
    return left, found


@compiled
def _live(region: Region, node: int) -> tuple[int, int]:
    """The first two halves of a node whose edges are not gone; those that are gone are taken off the list."""
    found, second, before = NONE, NONE, NONE
    half = region.heads[node]
    while half != NONE:
        after = region.following[half]
        if region.gone[half >> 1]:
            if before == NONE:
                region.heads[node] = after
            else:
                region.following[before] = after
        else:
            before = half
            if found == NONE:
                found = half
            else:
                second = half
                break
        half = after
    return found, second


@compiled
def _lost(region: Region, node: int, waiting: int) -> int:
    """A node has one neighbour less."""
    region.degrees[node] -= 1
    if region.degrees[node] <= 2:
        region.waiting[waiting] = node
        return waiting + 1
    return waiting


@compiled
def _hold(region: Region, node: int, waiting: int) -> int:
    """Its neighbours pay what its strategy makes them pay."""
    label = region.labels[node]
    half = region.heads[node]
    while half != NONE:
        if not region.gone[half >> 1]:
            other = region.ends[half ^ 1]
            base, step = region.bases[half >> 1] + label * region.steps[half], region.steps[half ^ 1]
            start = region.starts[other]
            for strategy in range(region.starts[other + 1] - start):
                region.values[start + strategy] = min(region.values[start + strategy] + region.pool[base + strategy * step], HIGH)
            region.gone[half >> 1] = 1
            waiting = _lost(region, other, waiting)
        half = region.following[half]
    region.degrees[node] = NONE
    return waiting


@compiled
def _eliminated(region: Region, node: int, waiting: int) -> int:
    first, second = NONE, NONE
    if region.degrees[node] > 0:
        first, second = _live(region, node)
    width = region.starts[node + 1] - region.starts[node]
    if second != NONE:
        one, two = region.ends[first ^ 1], region.ends[second ^ 1]
        size = (region.starts[one + 1] - region.starts[one]) * (region.starts[two + 1] - region.starts[two])
        full = region.sizes[POOL] + 2 * size + width * width > len(region.pool)
        if size * width > _WORK or full or region.sizes[EDGES] + 1 >= len(region.bases):
            return waiting
        _bridge(region, node, first, second)
    elif first != NONE:
        _hand_over(region, node, first)
    for half in (first, second):
        if half != NONE:
            region.gone[half >> 1] = 1
            waiting = _lost(region, region.ends[half ^ 1], waiting)
    region.degrees[node] = NONE
    region.records[2 * node], region.records[2 * node + 1] = first, second
    region.order[region.sizes[ORDER]] = node
    region.sizes[ORDER] += 1
    return waiting


@compiled
def _hand_over(region: Region, node: int, half: int) -> None:
    """What a node with one neighbour costs at best becomes a cost of the neighbour."""
    other = region.ends[half ^ 1]
    base, step, stride = region.bases[half >> 1], region.steps[half], region.steps[half ^ 1]
    start, width = region.starts[node], region.starts[node + 1] - region.starts[node]
    own = region.values[start : start + width]
    for strategy in range(region.starts[other + 1] - region.starts[other]):
        least = 1 << 62
        at = base + strategy * stride
        for mine in range(width):
            least = min(least, own[mine] + region.pool[at + mine * step])
        place = region.starts[other] + strategy
        region.values[place] = min(region.values[place] + least, HIGH)
    region.sizes[WORK] += width * (region.starts[other + 1] - region.starts[other])


@compiled
def _bridge(region: Region, node: int, first: int, second: int) -> None:
    """What a node with two neighbours costs at best becomes a matrix between them."""
    one, two = region.ends[first ^ 1], region.ends[second ^ 1]
    height, width = region.starts[one + 1] - region.starts[one], region.starts[two + 1] - region.starts[two]
    own = region.values[region.starts[node] : region.starts[node + 1]]
    at = region.sizes[POOL]
    region.sizes[POOL] += height * width
    out = region.pool[at : at + height * width]
    out[:] = 2 * HIGH
    room = region.pool[region.sizes[POOL] : region.sizes[POOL] + len(own) * width]
    base, step, stride = region.bases[second >> 1], region.steps[second], region.steps[second ^ 1]
    for mine in range(len(own)):
        for column in range(width):
            room[mine * width + column] = region.pool[base + mine * step + column * stride]
    base, step, stride = region.bases[first >> 1], region.steps[first], region.steps[first ^ 1]
    for row in range(height):
        line = out[row * width : (row + 1) * width]
        for mine in range(len(own)):
            given = own[mine] + region.pool[base + mine * step + row * stride]
            others = room[mine * width : (mine + 1) * width]
            for column in range(width):
                line[column] = min(line[column], given + others[column])
    region.sizes[WORK] += len(own) * height * width
    _merged(region, one, two, at, width)


@compiled
def _merged(region: Region, one: int, two: int, at: int, width: int) -> None:
    """A new matrix goes into the edge that the two nodes have, if they have one."""
    found = _between(region, one, two)
    if found == NONE:
        joined(region, one, two, at, width, 1)
        return
    base, step, stride = region.bases[found >> 1], region.steps[found], region.steps[found ^ 1]
    height = region.starts[one + 1] - region.starts[one]
    for row in range(height):
        for column in range(width):
            place = at + row * width + column
            region.pool[place] = min(region.pool[place] + region.pool[base + row * step + column * stride], 2 * HIGH)
    region.bases[found >> 1] = at
    region.steps[found], region.steps[found ^ 1] = width, 1


@compiled
def _between(region: Region, one: int, two: int) -> int:
    """The half of node one whose edge leads to node two."""
    swapped = region.degrees[one] > region.degrees[two]
    node, other = (two, one) if swapped else (one, two)
    half = region.heads[node]
    while half != NONE:
        if region.ends[half ^ 1] == other and not region.gone[half >> 1]:
            return int(half ^ 1 if swapped else half)
        half = region.following[half]
    return NONE


@compiled
def _relabel(region: Region, node: int) -> None:
    """The best strategy of an eliminated node, given those of its neighbours; the one that it had if it is as good."""
    start, width = region.starts[node], region.starts[node + 1] - region.starts[node]
    total = region.values[start : start + width]
    for place in range(2):
        half = region.records[2 * node + place]
        if half != NONE:
            base = region.bases[half >> 1] + region.labels[region.ends[half ^ 1]] * region.steps[half ^ 1]
            for strategy in range(width):
                total[strategy] += region.pool[base + strategy * region.steps[half]]
    best = region.labels[node]
    for strategy in range(width):
        if total[strategy] < total[best]:
            best = strategy
    region.labels[node] = best
