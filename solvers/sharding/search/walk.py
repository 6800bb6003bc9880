"""Large neighbourhoods one after the other, within hard memory (Shaw, 1998; record-to-record travel: Dueck, 1993).

A move takes a region of the graph, holds all around it, finds the best choice of the region with memory at its multipliers times a rate
that is drawn, and lets it stand where memory is kept and the cost stays within a share of the best one found. Sizes of regions that gain
more for the work are drawn more often.
"""

from typing import NamedTuple

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.compiled import compiled
from crossopt.solvers.sharding.search.elimination import NODES, WORK, Region, best_choice
from crossopt.solvers.sharding.search.layout import Layout, Standing, moved
from crossopt.solvers.sharding.search.moves import Events, changes_of, closed, difference, fits, gathered, opened
from crossopt.solvers.sharding.search.xorshift import Seed, drawn

SIZES = np.array([6, 20, 80, 400, 2000], np.int64)
RATES = np.array([0, 1, 3, 4, 6], np.int64)
"""In quarters of the multipliers."""
ONE = 4
BEST, TRIED, STOOD, BETTER = range(4)


class Walker(NamedTuple):
    """Who searches: where it stands, its best choice, and room to work."""

    layout: Layout
    standing: Standing
    region: Region
    events: Events
    arcs: Whole
    prices: Whole
    """What the memory of each strategy costs at the multipliers."""
    best: Whole
    counts: Whole
    """The cost of the best choice; moves tried, those that stand, those that found a new best."""
    gains: Array
    """What each size gained lately, and the work that it took."""
    seed: Seed


@compiled
def walked(walker: Walker, moves: int, work: int, share: float) -> None:
    """Some moves, until `work` is done; the cost may rise to (1 + share) times the best."""
    region = walker.region
    region.sizes[WORK] = 0
    for _ in range(moves):
        before, cost = region.sizes[WORK], walker.standing.figures[0]
        size = _drawn_size(walker)
        _move(walker, SIZES[size], share)
        walker.gains[size, 0] = 0.999 * walker.gains[size, 0] + max(cost - walker.standing.figures[0], 0)
        walker.gains[size, 1] = 0.999 * walker.gains[size, 1] + (region.sizes[WORK] - before)
        if region.sizes[WORK] >= work:
            break


@compiled
def _drawn_size(walker: Walker) -> int:
    """By what a size gained for its work; each now and then."""
    kinds = len(SIZES)
    total = 0.0
    for size in range(kinds):
        total += walker.gains[size, 0] / (walker.gains[size, 1] + 1.0)
    if total <= 0.0 or drawn(walker.seed, 4) == 0:
        return _fair(walker.seed, kinds)
    left = total * drawn(walker.seed, 1 << 30) / (1 << 30)
    for size in range(kinds):
        left -= walker.gains[size, 0] / (walker.gains[size, 1] + 1.0)
        if left < 0.0:
            return size
    return kinds - 1


@compiled
def _fair(seed: Seed, kinds: int) -> int:
    """Small ones twice as often as the next."""
    size = 0
    while size < kinds - 1 and drawn(seed, 2) == 0:
        size += 1
    return size


@compiled
def _move(walker: Walker, size: int, share: float) -> None:
    layout, standing, region = walker.layout, walker.standing, walker.region
    nodes = len(standing.labels)
    size = min(size, nodes, len(region.labels))
    apart = size >= 12 and drawn(walker.seed, 4) == 0
    count = gathered(layout, region, walker.seed, drawn(walker.seed, nodes), size // 2 if apart else size, 0)
    if apart:
        count = gathered(layout, region, walker.seed, drawn(walker.seed, nodes), size, count)
    region.sizes[NODES] = count
    rate = RATES[drawn(walker.seed, len(RATES))]
    inner = opened(layout, standing, region, walker.prices, rate, walker.arcs)
    best_choice(region, walker.seed)
    region.sizes[WORK] += 64 * count
    more = difference(layout, standing, region, walker.arcs, inner)
    walker.counts[TRIED] += 1
    if standing.figures[0] + more <= walker.counts[BEST] + share * abs(walker.counts[BEST]):
        changes_of(layout, standing, region, walker.events)
        if walker.events.filled[0] == 0 or fits(standing, walker.events):
            _stand(walker, more)
    closed(region)


@compiled
def _stand(walker: Walker, more: int) -> None:
    standing, region = walker.standing, walker.region
    for here in range(region.sizes[NODES]):
        if region.labels[here] != standing.labels[region.nodes[here]]:
            moved(walker.layout, standing, region.nodes[here], region.labels[here])
    standing.figures[0] += more
    walker.counts[STOOD] += 1
    if standing.figures[0] < walker.counts[BEST]:
        walker.counts[BEST] = standing.figures[0]
        walker.counts[BETTER] += 1
        walker.best[:] = standing.labels


@compiled
def pull(walker: Walker, moves: int, size: int, hard: bool) -> None:
    """Regions at the multipliers whatever they cost; where memory is `hard`, only those that keep it."""
    standing, region = walker.standing, walker.region
    for _ in range(moves):
        start = drawn(walker.seed, len(standing.labels))
        region.sizes[NODES] = gathered(walker.layout, region, walker.seed, start, min(size, len(region.labels)), 0)
        inner = opened(walker.layout, standing, region, walker.prices, ONE, walker.arcs)
        best_choice(region, walker.seed)
        more = difference(walker.layout, standing, region, walker.arcs, inner)
        changes_of(walker.layout, standing, region, walker.events)
        if not hard or walker.events.filled[0] == 0 or fits(standing, walker.events):
            _stand(walker, more)
        closed(region)
