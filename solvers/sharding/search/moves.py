"""One move of the search: a region, its best choice at some price of memory, and whether that may stand."""

from typing import NamedTuple

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.compiled import compiled
from crossopt.solvers.sharding.search.elimination import EDGES, NODES, NONE, Region, joined
from crossopt.solvers.sharding.search.layout import Layout, Standing, least_slack
from crossopt.solvers.sharding.search.xorshift import Seed, drawn

_CROWD = 20
"""Neighbours beyond which some are drawn."""


class Events(NamedTuple):
    """Where the memory of a move changes."""

    rows: Whole
    changes: Whole
    filled: Whole
    """How many."""


def events_of(layout: Layout, most: int) -> Events:
    """Room for the changes of `most` nodes."""
    held = np.sort(np.diff(layout.holder_starts))[-most:].sum()
    return Events(np.zeros(2 * held + 2, np.int64), np.zeros(2 * held + 2, np.int64), np.zeros(1, np.int64))


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
        crowded = around > _CROWD and drawn(seed, 4) > 0
        offset = drawn(seed, around)
        for turn in range(min(around, _CROWD) if crowded else around):
            place = drawn(seed, around) if crowded else (offset + turn) % around
            other = layout.arcs.others[low + place]
            if region.marks[other] == NONE and count < size:
                region.marks[other] = count
                region.nodes[count] = other
                count += 1
    return count


@compiled
def opened(layout: Layout, standing: Standing, region: Region, prices: Whole, rate: int, arcs: Whole) -> int:
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
            priced = (prices[low + strategy] * rate) >> 2
            region.values[at + strategy] = layout.costs[low + strategy] + standing.sums[low + strategy] + priced
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
    """An edge whose other node is in the region as well: nobody pays it beside the labels that stand."""
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
def difference(layout: Layout, standing: Standing, region: Region, arcs: Whole, inner: int) -> int:
    """How much more the region's labels cost than those that stand."""
    more = 0
    for here in range(region.sizes[NODES]):
        node = region.nodes[here]
        old, new = layout.offsets[node] + standing.labels[node], layout.offsets[node] + region.labels[here]
        if old != new:
            more += layout.costs[new] - layout.costs[old] + standing.sums[new] - standing.sums[old]
    for place in range(inner):
        arc = arcs[place]
        one, two = layout.arcs.others[layout.arcs.reverses[arc]], layout.arcs.others[arc]
        new_one, new_two = region.labels[region.marks[one]], region.labels[region.marks[two]]
        old_one, old_two = standing.labels[one], standing.labels[two]
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
        for place in range(layout.holder_starts[node], layout.holder_starts[node + 1]):
            member = layout.holdings[place]
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
