"""Enumeration of the choices that reductions leave, if these are few: costs, forbidden pairs and memory in integers."""

from math import prod
from typing import NamedTuple

import numpy as np

from crossopt.crossflow.arrays import Ints, Mask
from crossopt.formulation.sharding.core import Core, Timeline, timeline_of
from crossopt.instances.errors import RefusedError
from crossopt.instances.sharding.problem import FORBIDDEN
from crossopt.solvers.sharding.judge import BY_EVERY
from crossopt.solvers.sharding.run import Run

MOST = 10_000
"""Most choices that are enumerated."""
_AT_ONCE = 1 << 22
"""Figures that are held."""


class Best(NamedTuple):
    """The cheapest choice that may be made."""

    cost: int
    chosen: Ints


def exhaustive(run: Run) -> None:
    """Offers the best choice, which proves itself."""
    run.tick()
    count = choices_in(run.core)
    if count > MOST:
        raise RefusedError(f"exhaustive is for {MOST:,} choices at most, and reductions leave more (take --engine milp or search)")
    best = best_of_all(run.core)
    if best is not None:
        run.offer(best.chosen)
    run.bound_told(FORBIDDEN if best is None else best.cost, BY_EVERY)


def choices_in(core: Core) -> int:
    """How many there are, whether they may be made or not."""
    return prod(core.counts.tolist())


def best_of_all(core: Core) -> Best | None:
    """The best of every choice; None where none is allowed and keeps the limit. Of a core with few of them."""
    counts, timeline = core.counts, timeline_of(core)
    strides = np.cumprod([1, *counts.tolist()], dtype=np.int64)[:-1]
    width = max(len(core), len(core.firsts), len(core.member_nodes), len(timeline.times), 1)
    step = max(_AT_ONCE // width, 1)
    best: Best | None = None
    for start in range(0, choices_in(core), step):
        numbers = np.arange(start, min(start + step, choices_in(core)))
        chosen = numbers[:, None] // strides % counts
        costs = _costs(core, chosen)
        costs[_peaks(core, timeline, chosen) > (FORBIDDEN if core.limit is None else core.limit)] = FORBIDDEN
        index = int(costs.argmin())
        if costs[index] < FORBIDDEN and (best is None or core.constant + int(costs[index]) < best.cost):
            best = Best(core.constant + int(costs[index]), chosen[index].copy())
    return best


def _costs(core: Core, chosen: Ints) -> Ints:
    """Of each choice, a row, without the constant; FORBIDDEN where anything in it is."""
    nodes = core.costs[core.offsets[:-1] + chosen]
    pairs = core.entries[core.entry_offsets[:-1] + chosen[:, core.firsts] * core.counts[core.seconds] + chosen[:, core.seconds]]
    forbidden: Mask = np.any(nodes >= FORBIDDEN, axis=1) | np.any(pairs >= FORBIDDEN, axis=1)
    allowed = (np.where(figures < FORBIDDEN, figures, 0).sum(axis=1) for figures in (nodes, pairs))
    return np.where(forbidden, FORBIDDEN, sum(allowed, np.zeros(len(chosen), np.int64)))


def _peaks(core: Core, timeline: Timeline, chosen: Ints) -> Ints:
    """The most memory in use in any row of the timeline, for each choice."""
    sizes = core.usages[core.usage_offsets[:-1] + chosen[:, core.member_nodes]]
    changes = np.zeros((len(chosen), len(timeline.times) + 1), np.int64)
    every = np.arange(len(chosen))[:, None]
    np.add.at(changes, (every, timeline.lows), sizes)
    np.add.at(changes, (every, timeline.highs), -sizes)
    return np.asarray(np.cumsum(changes, axis=1)[:, :-1].max(axis=1, initial=0))
