"""A core, and a choice that stands on it, as the search wants them: everything that a small change touches is known without a search.

Beside the labels stands, for each strategy of each node, what it would pay its neighbours as they are, so that a change is priced
by what changes.
"""

from typing import NamedTuple

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.compiled import compiled
from crossopt.formulation.sharding.core import Core, Timeline, in_use, timeline_of
from crossopt.solvers.sharding.messages.arcs import Arcs, arcs_of

BLOCK = 64
"""Rows of the timeline whose least slack is kept together."""


class Layout(NamedTuple):
    """What does not change. Entries of FORBIDDEN stand as `wall`, so that any sum is exact in 64 bits and still tells them."""

    offsets: Whole
    costs: Whole
    arcs: Arcs
    """Of each node by rising rank of the others."""
    ranks: Whole
    """Nodes with many neighbours come first."""
    entries: Whole
    holder_starts: Whole
    """The members of node v are `holdings[holder_starts[v] : holder_starts[v + 1]]`."""
    holdings: Whole
    timeline: Timeline
    usage_offsets: Whole
    usages: Whole
    wall: int


class Standing(NamedTuple):
    """A choice and what follows from it."""

    labels: Whole
    sums: Whole
    """What each strategy pays along the edges of its node."""
    slack: Whole
    """Of each row, to its cap."""
    tight: Whole
    """The least slack of each block of rows."""
    figures: Whole
    """The cost of the choice, without the core's constant."""


def layout_of(core: Core, timeline: Timeline | None = None) -> Layout:
    """The core laid out."""
    degrees = np.bincount(core.firsts, minlength=len(core)) + np.bincount(core.seconds, minlength=len(core))
    ranks = np.empty(len(core), np.int64)
    ranks[np.argsort(-degrees, kind="stable")] = np.arange(len(core))
    wall = int((1 << 60) // (2 * (int(degrees.max(initial=0)) + 2)))
    timeline = timeline_of(core) if timeline is None else timeline
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


def standing_of(core: Core, layout: Layout, labels: Whole) -> Standing:
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
    for place in range(layout.holder_starts[node], layout.holder_starts[node + 1]):
        member = layout.holdings[place]
        usage = layout.usage_offsets[member]
        more = layout.usages[usage + label] - layout.usages[usage + before]
        if more != 0:
            _held(standing, layout.timeline.lows[member], layout.timeline.highs[member], more)


@compiled
def _held(standing: Standing, low: int, high: int, more: int) -> None:
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
