"""Every edge twice, once for each of its nodes, as compiled loops want it."""

from typing import NamedTuple

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.sharding.core import Core


class Arcs(NamedTuple):
    """The arcs of node v stand from `starts[v]` to `starts[v + 1]`. The cost of strategy s of v with t of the other node is the entry
    `bases + s * steps + t * strides`.
    """

    starts: Whole
    others: Whole
    edges: Whole
    bases: Whole
    steps: Whole
    strides: Whole
    reverses: Whole
    """The same edge as an arc of the other node."""


def arcs_of(core: Core, keys: Whole) -> Arcs:
    """The arcs of each node by rising keys of the other nodes."""
    edges, counts = len(core.firsts), core.counts
    owners = np.concatenate([core.firsts, core.seconds])
    others = np.concatenate([core.seconds, core.firsts])
    widths = counts[core.seconds]
    ones = np.ones(edges, np.int64)
    order = np.lexsort((keys[others], owners))
    places = np.empty(2 * edges, np.int64)
    places[order] = np.arange(2 * edges)
    return Arcs(
        starts=np.searchsorted(owners[order], np.arange(len(core) + 1)),
        others=others[order],
        edges=order % max(edges, 1),
        bases=core.entry_offsets[:-1][order % max(edges, 1)],
        steps=np.concatenate([widths, ones])[order],
        strides=np.concatenate([ones, widths])[order],
        reverses=places[(order + edges) % max(2 * edges, 1)],
    )
