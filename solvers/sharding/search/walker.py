"""A walker made ready: laid out, priced, with room to work."""

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.sharding.core import Core
from crossopt.solvers.sharding.messages.ascent import priced
from crossopt.solvers.sharding.search.elimination import region_of
from crossopt.solvers.sharding.search.layout import Layout, layout_of, standing_of
from crossopt.solvers.sharding.search.moves import events_of
from crossopt.solvers.sharding.search.walk import BEST, SIZES, Walker
from crossopt.solvers.sharding.search.xorshift import seed_of


def price_whole(core: Core, layout: Layout, multipliers: Array) -> Whole:
    """What the memory of each strategy costs, in whole numbers below the wall."""
    prices = np.rint(np.minimum(priced(core, layout.timeline, multipliers), layout.wall >> 4))
    return np.asarray(prices.astype(np.int64))


def walker_of(core: Core, labels: Whole, multipliers: Array, number: int) -> Walker:
    """A walker that stands at these labels; `number` seeds its draws."""
    layout = layout_of(core)
    most = int(min(SIZES[-1], len(core)))
    region = region_of(layout.entries, len(core), int(core.counts.max(initial=1)), most)
    arcs, gains = np.zeros(len(region.bases), np.int64), np.zeros((len(SIZES), 2))
    standing = standing_of(core, layout, labels)
    room = (region, events_of(layout, most), arcs, price_whole(core, layout, multipliers))
    return Walker(layout, standing, *room, labels.copy(), np.zeros(4, np.int64), gains, seed_of(number))._replace(
        counts=np.array([standing.figures[0], 0, 0, 0], np.int64)
    )


def placed(core: Core, walker: Walker, labels: Whole, multipliers: Array) -> Walker:
    """The walker at other labels, which are its best, and other multipliers."""
    standing = standing_of(core, walker.layout, labels)
    counts = np.zeros_like(walker.counts)
    counts[BEST] = standing.figures[0]
    return walker._replace(standing=standing, best=labels.copy(), counts=counts, prices=price_whole(core, walker.layout, multipliers))
