"""Arc consistency: a strategy that is forbidden, or that some edge forbids whatever its other node does, is left out (Waltz 1975)."""

from dataclasses import replace

import numpy as np

from crossopt.crossflow.arrays import Mask, Whole
from crossopt.formulation.compiled import compiled
from crossopt.formulation.sharding.core import Core
from crossopt.formulation.sharding.editing import NothingAllowedError, Reduced, incident, named, with_strategies
from crossopt.instances.sharding.problem import FORBIDDEN


def consistent(core: Core) -> Reduced:
    """Without the strategies that nothing allows; a NothingAllowedError where a node keeps none. Moves are nodes and their strategies."""
    starts, edges = incident(core)
    keep, lost = _supported(core.offsets, core.costs, core.firsts, core.seconds, core.entry_offsets, core.entries, starts, edges)
    try:
        return replace(with_strategies(core, keep), moves=named(core, lost))
    except NothingAllowedError as error:
        error.moves = named(core, lost)
        raise


@compiled
def _supported(
    offsets: Whole, costs: Whole, firsts: Whole, seconds: Whole, entry_offsets: Whole, entries: Whole, starts: Whole, edges: Whole
) -> tuple[Mask, Whole]:
    """Which strategies are left, and the others in the order in which they were lost."""
    keep = costs < FORBIDDEN
    never = np.flatnonzero(~keep)
    order, gone = np.empty(len(costs), np.int64), len(never)
    order[:gone] = never
    stack, queued = np.arange(len(firsts)), np.ones(len(firsts), np.bool_)
    size = len(firsts)
    while size:
        size -= 1
        edge = stack[size]
        queued[edge] = False
        first, second, at = firsts[edge], seconds[edge], entry_offsets[edge]
        columns = offsets[second + 1] - offsets[second]
        rows = offsets[first + 1] - offsets[first]
        for side in range(2):
            node, other = (first, second) if side == 0 else (second, first)
            own, others = (rows, columns) if side == 0 else (columns, rows)
            step, jump = (columns, 1) if side == 0 else (1, columns)
            lost, left = False, 0
            for strategy in range(own):
                if not keep[offsets[node] + strategy]:
                    continue
                supported = False
                for against in range(others):
                    if keep[offsets[other] + against] and entries[at + strategy * step + against * jump] < FORBIDDEN:
                        supported = True
                        break
                if supported:
                    left += 1
                else:
                    keep[offsets[node] + strategy] = False
                    order[gone] = offsets[node] + strategy
                    gone += 1
                    lost = True
            if not left:
                return keep, order[:gone].copy()  # the node where all goes wrong, before all others follow
            if lost:
                for place in range(starts[node], starts[node + 1]):
                    again = edges[place] // 2
                    if not queued[again]:
                        queued[again] = True
                        stack[size] = again
                        size += 1
    return keep, order[:gone].copy()
