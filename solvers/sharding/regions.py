"""One move of the large-neighbourhood search: a region, its best choice at given multipliers, and the layout it works on."""

from typing import NamedTuple

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.formulation.compiled import Seed, compiled, draw_below
from crossopt.formulation.sharding.core import Core, Timeline, in_use, timeline_of
from crossopt.solvers.sharding.messages import Arcs, arcs_of

# The best choice of a small region by dynamic programming, as far as its width allows.
#
# Nodes with at most two neighbours in the region are eliminated: what they cost at best becomes a cost of the neighbour, or a matrix
# between the two (bucket elimination; Dechter, 1999). Where none is left, a node with many neighbours is held at the strategy that it has.
# The choice found is the best of all with those nodes held, so it is never worse than the one that stands.

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

    nodes: Ints
    """Numbers in the core."""
    marks: Ints
    """Of each node of the core: its number here, or NONE."""
    starts: Ints
    """Where the values of each node stand."""
    values: Ints
    labels: Ints
    heads: Ints
    degrees: Ints
    ends: Ints
    """The node of each half."""
    following: Ints
    """The next half of the same node."""
    steps: Ints
    bases: Ints
    gone: Ints
    """Of each edge."""
    pool: Ints
    order: Ints
    """Nodes as they are eliminated."""
    records: Ints
    """Of each node the two halves that it had when it was eliminated."""
    waiting: Ints
    rest: Ints
    sizes: Ints
    """How many: nodes, edges, figures in the pool, eliminated ones; where the pool's own part starts; steps of work."""


NODES, EDGES, POOL, ORDER, OWN, WORK = range(6)


def region_of(entries: Ints, nodes: int, widest: int, most: int) -> Region:
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


def _empty(size: int) -> Ints:
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
    for index in range(region.sizes[ORDER] - 1, -1, -1):
        _relabel(region, region.order[index])


@compiled
def _drawn_to_hold(region: Region, left: int, seed: Seed) -> tuple[int, int]:
    """Of some nodes the one with most neighbours, by chance."""
    best, found = -1, NONE
    for _ in range(_TRIES):
        if left == 0:
            break
        index = draw_below(seed, left)
        node = region.rest[index]
        if region.degrees[node] == NONE:
            left -= 1
            region.rest[index] = region.rest[left]
            continue
        key = region.degrees[node] * (64 + draw_below(seed, 64))
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
        first_end, second_end = region.ends[first ^ 1], region.ends[second ^ 1]
        size = (region.starts[first_end + 1] - region.starts[first_end]) * (region.starts[second_end + 1] - region.starts[second_end])
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
        index = region.starts[other] + strategy
        region.values[index] = min(region.values[index] + least, HIGH)
    region.sizes[WORK] += width * (region.starts[other + 1] - region.starts[other])


@compiled
def _bridge(region: Region, node: int, first: int, second: int) -> None:
    """What a node with two neighbours costs at best becomes a matrix between them."""
    left, right = region.ends[first ^ 1], region.ends[second ^ 1]
    height, width = region.starts[left + 1] - region.starts[left], region.starts[right + 1] - region.starts[right]
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
    _merged(region, left, right, at, width)


@compiled
def _merged(region: Region, left: int, right: int, at: int, width: int) -> None:
    """A new matrix goes into the edge that the two nodes have, if they have one."""
    found = _between(region, left, right)
    if found == NONE:
        joined(region, left, right, at, width, int(np.int64(1)))
        return
    base, step, stride = region.bases[found >> 1], region.steps[found], region.steps[found ^ 1]
    height = region.starts[left + 1] - region.starts[left]
    for row in range(height):
        for column in range(width):
            index = at + row * width + column
            region.pool[index] = min(region.pool[index] + region.pool[base + row * step + column * stride], 2 * HIGH)
    region.bases[found >> 1] = at
    region.steps[found], region.steps[found ^ 1] = width, 1


@compiled
def _between(region: Region, left: int, right: int) -> int:
    """The half of node one whose edge leads to node two."""
    swapped = region.degrees[left] > region.degrees[right]
    node, other = (right, left) if swapped else (left, right)
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
    for side in range(2):
        half = region.records[2 * node + side]
        if half != NONE:
            base = region.bases[half >> 1] + region.labels[region.ends[half ^ 1]] * region.steps[half ^ 1]
            for strategy in range(width):
                total[strategy] += region.pool[base + strategy * region.steps[half]]
    best = region.labels[node]
    for strategy in range(width):
        if total[strategy] < total[best]:
            best = strategy
    region.labels[node] = best


# A core, and a choice that stands on it, as the search wants them: everything that a small change touches is known without a search.
#
# Beside the labels stands, for each strategy of each node, what it would pay its neighbours as they are, so that a change is priced
# by what changes.

BLOCK = 64
"""Rows of the timeline whose least slack is kept together."""


class Layout(NamedTuple):
    """What does not change. Entries of FORBIDDEN stand as `wall`, so that any sum is exact in 64 bits and still tells them."""

    offsets: Ints
    costs: Ints
    arcs: Arcs
    """Of each node by rising rank of the others."""
    ranks: Ints
    """Nodes with many neighbours come first."""
    entries: Ints
    holder_starts: Ints
    """The members of node v are `holdings[holder_starts[v] : holder_starts[v + 1]]`."""
    holdings: Ints
    timeline: Timeline
    usage_offsets: Ints
    usages: Ints
    wall: int


class Standing(NamedTuple):
    """A choice and what follows from it."""

    labels: Ints
    sums: Ints
    """What each strategy pays along the edges of its node."""
    slack: Ints
    """Of each row, to its cap."""
    tight: Ints
    """The least slack of each block of rows."""
    figures: Ints
    """The cost of the choice, without the core's constant."""


def layout_of(core: Core) -> Layout:
    """The core laid out."""
    degrees = np.bincount(core.firsts, minlength=len(core)) + np.bincount(core.seconds, minlength=len(core))
    ranks = np.empty(len(core), np.int64)
    ranks[np.argsort(-degrees, kind="stable")] = np.arange(len(core))
    wall = int((1 << 60) // (2 * (int(degrees.max(initial=0)) + 2)))
    timeline = timeline_of(core)
    order = np.argsort(core.member_nodes, kind="stable")
    return Layout(
        offsets=core.offsets,
        costs=np.minimum(core.costs, wall),
        arcs=arcs_of(core, ranks),
        ranks=ranks,
        entries=np.minimum(core.entries, wall),
        holder_starts=np.searchsorted(core.member_nodes[order], np.arange(len(core) + 1)),
        holdings=order,
        timeline=timeline,
        usage_offsets=core.usage_offsets,
        usages=core.usages,
        wall=wall,
    )


def standing_of(core: Core, layout: Layout, labels: Ints) -> Standing:
    """The choice laid out. Rows in which more than the limit is in use have no slack: there nothing may be added."""
    used = in_use(core, layout.timeline, labels)
    slack = np.maximum((used.max(initial=0) if core.limit is None else core.limit) - used, 0)
    sums = np.zeros(len(core.costs), np.int64)
    figures = np.zeros(1, np.int64)
    tight = np.zeros((len(slack) + BLOCK - 1) // BLOCK, np.int64)
    standing = Standing(labels.copy(), sums, slack, tight, figures)
    _fill(layout, standing)
    return standing


@compiled
def _fill(layout: Layout, standing: Standing) -> None:
    total = 0
    for node in range(len(standing.labels)):
        start, label = layout.offsets[node], standing.labels[node]
        for arc in range(layout.arcs.starts[node], layout.arcs.starts[node + 1]):
            base = layout.arcs.bases[arc] + standing.labels[layout.arcs.others[arc]] * layout.arcs.strides[arc]
            for strategy in range(layout.offsets[node + 1] - start):
                standing.sums[start + strategy] += layout.entries[base + strategy * layout.arcs.steps[arc]]
            if layout.ranks[layout.arcs.others[arc]] < layout.ranks[node]:
                total += layout.entries[base + label * layout.arcs.steps[arc]]
        total += layout.costs[start + label]
    standing.figures[0] = total
    for block in range(len(standing.tight)):
        standing.tight[block] = standing.slack[block * BLOCK : (block + 1) * BLOCK].min()


@compiled
def moved(layout: Layout, standing: Standing, node: int, label: int) -> None:
    """Gives a node another strategy: what its neighbours pay, and the memory of its members."""
    before = standing.labels[node]
    standing.labels[node] = label
    arcs = layout.arcs
    for arc in range(arcs.starts[node], arcs.starts[node + 1]):
        other = arcs.others[arc]
        start, stride = layout.offsets[other], arcs.strides[arc]
        new, old = arcs.bases[arc] + label * arcs.steps[arc], arcs.bases[arc] + before * arcs.steps[arc]
        for strategy in range(layout.offsets[other + 1] - start):
            standing.sums[start + strategy] += layout.entries[new + strategy * stride] - layout.entries[old + strategy * stride]
    for index in range(layout.holder_starts[node], layout.holder_starts[node + 1]):
        member = layout.holdings[index]
        usage = layout.usage_offsets[member]
        more = layout.usages[usage + label] - layout.usages[usage + before]
        if more != 0:
            _reserve(standing, layout.timeline.lows[member], layout.timeline.highs[member], more)


@compiled
def _reserve(standing: Standing, low: int, high: int, more: int) -> None:
    for row in range(low, high):
        standing.slack[row] -= more
    if low < high:
        for block in range(low // BLOCK, (high - 1) // BLOCK + 1):
            standing.tight[block] = standing.slack[block * BLOCK : (block + 1) * BLOCK].min()


@compiled
def least_slack(standing: Standing, low: int, high: int) -> int:
    """Over the rows from `low` to before `high`."""
    least = 1 << 62
    row = low
    while row < high:
        if row % BLOCK == 0 and row + BLOCK <= high:
            least = min(least, standing.tight[row // BLOCK])
            row += BLOCK
        else:
            least = min(least, standing.slack[row])
            row += 1
    return least


# One move of the search: a region, its best choice at some price of memory, and whether that may stand.

_CROWD = 20
"""Neighbours beyond which some are drawn."""


class Events(NamedTuple):
    """Where the memory of a move changes."""

    rows: Ints
    changes: Ints
    filled: Ints
    """How many."""


def events_of(layout: Layout, most: int) -> Events:
    """Room for the changes of `most` nodes."""
    count = np.sort(np.diff(layout.holder_starts))[-most:].sum()
    return Events(np.zeros(2 * count + 2, np.int64), np.zeros(2 * count + 2, np.int64), np.zeros(1, np.int64))


@compiled
def gathered(layout: Layout, region: Region, seed: Seed, start: int, size: int, first: int) -> int:
    """Nodes around a node, breadth first and by chance; `first` of them are there already. Says how many there are."""
    if region.marks[start] != NONE:
        return first
    count, at = first + 1, first
    region.nodes[first] = start
    region.marks[start] = first
    while at < count < size:
        node = region.nodes[at]
        at += 1
        low = layout.arcs.starts[node]
        around = layout.arcs.starts[node + 1] - low
        if around == 0:
            continue
        crowded = around > _CROWD and draw_below(seed, 4) > 0
        offset = draw_below(seed, around)
        for turn in range(min(around, _CROWD) if crowded else around):
            index = draw_below(seed, around) if crowded else (offset + turn) % around
            other = layout.arcs.others[low + index]
            if region.marks[other] == NONE and count < size:
                region.marks[other] = count
                region.nodes[count] = other
                count += 1
    return count


@compiled
def opened(layout: Layout, standing: Standing, region: Region, prices: Ints, rate: int, arcs: Ints) -> int:
    """Lays the region out: its edges, and what each strategy costs beside the labels around. Nodes that find no room are left out."""
    count = region.sizes[NODES]
    region.sizes[EDGES] = 0
    most = (len(region.bases) * 2) // 3
    for here in range(count):
        node = region.nodes[here]
        region.heads[here], region.degrees[here] = NONE, 0
        region.labels[here] = standing.labels[node]
        low, at = layout.offsets[node], region.starts[here]
        width = layout.offsets[node + 1] - low
        region.starts[here + 1] = at + width
        for strategy in range(width):
            memory_price = (prices[low + strategy] * rate) >> 2
            region.values[at + strategy] = layout.costs[low + strategy] + standing.sums[low + strategy] + memory_price
    for here in range(count):
        node = region.nodes[here]
        rank = layout.ranks[node]
        for arc in range(layout.arcs.starts[node], layout.arcs.starts[node + 1]):
            other = layout.arcs.others[arc]
            if layout.ranks[other] > rank or region.sizes[EDGES] >= most:
                break
            if region.marks[other] != NONE:
                arcs[region.sizes[EDGES]] = arc
                _inside(layout, standing, region, here, arc)
    return int(region.sizes[EDGES])


@compiled
def _inside(layout: Layout, standing: Standing, region: Region, here: int, arc: int) -> None:
    """An edge inside the region: its cost is not among those of fixed labels."""
    there = region.marks[layout.arcs.others[arc]]
    base, step, stride = layout.arcs.bases[arc], layout.arcs.steps[arc], layout.arcs.strides[arc]
    at = base + region.labels[there] * stride
    for strategy in range(region.starts[here + 1] - region.starts[here]):
        region.values[region.starts[here] + strategy] -= layout.entries[at + strategy * step]
    at = base + region.labels[here] * step
    for strategy in range(region.starts[there + 1] - region.starts[there]):
        region.values[region.starts[there] + strategy] -= layout.entries[at + strategy * stride]
    joined(region, here, there, base, step, stride)


@compiled
def closed(region: Region) -> None:
    """Takes the marks off."""
    for here in range(region.sizes[NODES]):
        region.marks[region.nodes[here]] = NONE


@compiled
def difference(layout: Layout, standing: Standing, region: Region, arcs: Ints, inner: int) -> int:
    """How much more the region's labels cost than those that stand."""
    more = 0
    for here in range(region.sizes[NODES]):
        node = region.nodes[here]
        old, new = layout.offsets[node] + standing.labels[node], layout.offsets[node] + region.labels[here]
        if old != new:
            more += layout.costs[new] - layout.costs[old] + standing.sums[new] - standing.sums[old]
    for index in range(inner):
        arc = arcs[index]
        left, right = layout.arcs.others[layout.arcs.reverses[arc]], layout.arcs.others[arc]
        new_one, new_two = region.labels[region.marks[left]], region.labels[region.marks[right]]
        old_one, old_two = standing.labels[left], standing.labels[right]
        if new_one != old_one and new_two != old_two:
            base, step, stride = layout.arcs.bases[arc], layout.arcs.steps[arc], layout.arcs.strides[arc]
            old, new = base + old_one * step, base + new_one * step
            more += layout.entries[new + new_two * stride] - layout.entries[new + old_two * stride]
            more += layout.entries[old + old_two * stride] - layout.entries[old + new_two * stride]
    return more


@compiled
def changes_of(layout: Layout, standing: Standing, region: Region, events: Events) -> None:
    """Where the memory of the changed nodes' members changes."""
    count = 0
    for here in range(region.sizes[NODES]):
        node, label = region.nodes[here], region.labels[here]
        if label == standing.labels[node]:
            continue
        for index in range(layout.holder_starts[node], layout.holder_starts[node + 1]):
            member = layout.holdings[index]
            usage = layout.usage_offsets[member]
            more = layout.usages[usage + label] - layout.usages[usage + standing.labels[node]]
            if more != 0:
                events.rows[count], events.rows[count + 1] = layout.timeline.lows[member], layout.timeline.highs[member]
                events.changes[count], events.changes[count + 1] = more, -more
                count += 2
    events.filled[0] = count


@compiled
def fits(standing: Standing, events: Events) -> bool:
    """Whether the rows in which more would be in use have the slack."""
    count = events.filled[0]
    order = np.argsort(events.rows[:count])
    more = 0
    for turn in range(count - 1):
        more += events.changes[order[turn]]
        low, high = events.rows[order[turn]], events.rows[order[turn + 1]]
        if more > 0 and low < high and least_slack(standing, low, high) < more:
            return False
    return True
