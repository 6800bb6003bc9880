"""Reduced costs: what cannot be part of a choice below a known value is left out.

With the parts of the bound of a dual (formulation.sharding.dual), each choice pays the bound and besides, at every node and every edge,
what its part is above the least there. So strategy s of node v is left out where

    bound + [c'_v(s) - least of v] + sum over edges of [least of row s - least of the edge] >= value

and pair (s, t) of an edge where its own part and those of s and t together reach the value. All in whole numbers. What is left holds every
choice that costs less than the value, and perhaps none.
"""

from dataclasses import replace

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.compiled import compiled
from crossopt.formulation.sharding.core import Core
from crossopt.formulation.sharding.dual import Dual, bound_of, edge_leasts, message_offsets, node_values
from crossopt.formulation.sharding.editing import Reduced, places, unchanged, with_strategies
from crossopt.instances.sharding.problem import FORBIDDEN

_ROOM = 1 << 60


def fixed(core: Core, dual: Dual, below: int) -> Reduced:
    """The core without what no choice that costs less than this can take; a NothingAllowedError where a node keeps nothing."""
    slack = _slack(core, dual, below)
    if slack is None:
        return unchanged(core)
    nodes = node_values(core, dual)
    least = np.minimum.reduceat(nodes, core.offsets[:-1])
    gaps = np.where(nodes < FORBIDDEN, np.minimum(nodes - np.repeat(least, core.counts), _ROOM), FORBIDDEN)
    first_offsets, second_offsets = message_offsets(core)
    edges = edge_leasts(core, dual)
    rows, columns, entries = _entry_gaps(
        core.counts,
        core.firsts,
        core.seconds,
        core.entry_offsets,
        core.entries,
        dual.scale,
        first_offsets,
        second_offsets,
        dual.to_firsts,
        dual.to_seconds,
        edges,
    )
    total = gaps.copy()
    _pile(total, places(core.offsets, core.firsts), rows)
    _pile(total, places(core.offsets, core.seconds), columns)
    pruned = _pruned(
        core.counts,
        core.offsets,
        core.firsts,
        core.seconds,
        core.entry_offsets,
        core.entries,
        first_offsets,
        second_offsets,
        rows,
        columns,
        entries,
        total,
        slack,
    )
    return with_strategies(replace(core, entries=pruned), total < slack)


def _slack(core: Core, dual: Dual, below: int) -> int | None:
    """By how much the parts of a choice may be above their least, in units of the dual; None where that is out of all range."""
    bound = bound_of(core, dual)
    if bound >= FORBIDDEN:
        return 0
    nodes = np.minimum.reduceat(node_values(core, dual), core.offsets[:-1])
    paid = 0 if core.limit is None else core.limit * sum(dual.prices.tolist())
    scaled = sum(nodes.tolist()) + sum(edge_leasts(core, dual).tolist()) - paid
    slack: int = (below - core.constant) * dual.scale - scaled
    return max(slack, 0) if slack < _ROOM else None


@compiled
def _pile(total: Whole, at: Whole, more: Whole) -> None:
    for place in range(len(at)):
        total[at[place]] = min(total[at[place]] + more[place], FORBIDDEN)


@compiled
def _entry_gaps(
    counts: Whole,
    firsts: Whole,
    seconds: Whole,
    entry_offsets: Whole,
    entries: Whole,
    scale: int,
    first_offsets: Whole,
    second_offsets: Whole,
    to_firsts: Whole,
    to_seconds: Whole,
    leasts: Whole,
) -> tuple[Whole, Whole, Whole]:
    """How far the least of each row, the least of each column and each entry are above the least of their edge."""
    rows, columns = np.full(len(to_firsts), FORBIDDEN), np.full(len(to_seconds), FORBIDDEN)
    gaps = np.full(len(entries), FORBIDDEN)
    for edge in range(len(firsts)):
        at = entry_offsets[edge]
        for row in range(counts[firsts[edge]]):
            for column in range(counts[seconds[edge]]):
                if entries[at] < FORBIDDEN:
                    one, two = first_offsets[edge] + row, second_offsets[edge] + column
                    gap = min(scale * entries[at] - to_firsts[one] - to_seconds[two] - leasts[edge], FORBIDDEN)
                    gaps[at] = gap
                    rows[one], columns[two] = min(rows[one], gap), min(columns[two], gap)
                at += 1
    return rows, columns, gaps


@compiled
def _pruned(
    counts: Whole,
    offsets: Whole,
    firsts: Whole,
    seconds: Whole,
    entry_offsets: Whole,
    entries: Whole,
    first_offsets: Whole,
    second_offsets: Whole,
    rows: Whole,
    columns: Whole,
    gaps: Whole,
    total: Whole,
    slack: int,
) -> Whole:
    """Entries, those forbidden that reach the slack with all else that their two strategies pay."""
    found = entries.copy()
    for edge in range(len(firsts)):
        at = entry_offsets[edge]
        for row in range(counts[firsts[edge]]):
            one = total[offsets[firsts[edge]] + row] - rows[first_offsets[edge] + row]
            for column in range(counts[seconds[edge]]):
                if entries[at] < FORBIDDEN:
                    two = total[offsets[seconds[edge]] + column] - columns[second_offsets[edge] + column]
                    if one >= slack or two >= slack or one + two + gaps[at] >= slack:
                        found[at] = FORBIDDEN
                at += 1
    return found
