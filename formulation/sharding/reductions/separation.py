"""Edges that come apart: where C(s, t) = f(s) + h(t) for all s and t, f and h go into the costs of the nodes, and the edge is left out.

Edges without costs come apart, and edges of a node that has one strategy.
"""

from dataclasses import replace

import numpy as np

from crossopt.crossflow.arrays import Mask, Whole
from crossopt.formulation.compiled import compiled
from crossopt.formulation.sharding.core import Core
from crossopt.formulation.sharding.dual import message_offsets
from crossopt.formulation.sharding.editing import Reduced, places, raised, unchanged, with_edges
from crossopt.instances.sharding.problem import FORBIDDEN


def separate(core: Core) -> Reduced:
    """Without the edges that come apart. f(s) is the least of row s, so that no cost becomes less than 0 where none was. Moves are the two
    nodes of such an edge."""
    if not len(core.firsts):
        return unchanged(core)
    first_offsets, second_offsets = message_offsets(core)
    apart, to_firsts, to_seconds = _parts(
        core.counts, core.firsts, core.seconds, core.entry_offsets, core.entries, first_offsets, second_offsets
    )
    if not apart.any():
        return unchanged(core)
    which = np.flatnonzero(apart)
    costs = raised(core.costs, places(core.offsets, core.firsts[which]), to_firsts[places(first_offsets, which)])
    costs = raised(costs, places(core.offsets, core.seconds[which]), to_seconds[places(second_offsets, which)])
    moves = np.stack([core.firsts[which], core.seconds[which]], axis=1)
    return replace(unchanged(core), core=with_edges(replace(core, costs=costs), ~apart), moves=moves)


@compiled
def _parts(
    counts: Whole,
    firsts: Whole,
    seconds: Whole,
    entry_offsets: Whole,
    entries: Whole,
    first_offsets: Whole,
    second_offsets: Whole,
) -> tuple[Mask, Whole, Whole]:
    apart = np.ones(len(firsts), np.bool_)
    to_firsts, to_seconds = np.zeros(first_offsets[-1], np.int64), np.zeros(second_offsets[-1], np.int64)
    for edge in range(len(firsts)):
        rows, columns, at = counts[firsts[edge]], counts[seconds[edge]], entry_offsets[edge]
        for row in range(rows):
            least = FORBIDDEN
            for column in range(columns):
                entry = entries[at + row * columns + column]
                if entry >= FORBIDDEN:
                    apart[edge] = False
                    break
                least = min(least, entry)
            to_firsts[first_offsets[edge] + row] = least
            for column in range(columns):
                rest = entries[at + row * columns + column] - least
                if row == 0:
                    to_seconds[second_offsets[edge] + column] = rest
                elif rest != to_seconds[second_offsets[edge] + column]:
                    apart[edge] = False
                    break
            if not apart[edge]:
                break
    return apart, to_firsts, to_seconds
