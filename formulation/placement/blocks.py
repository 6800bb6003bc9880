"""A placement graph as blocks that stay together and nets that join them.

Blocks    colours; where data must flow in stages also whole cycles of colours, since no order of devices could part them
Nets      the output of a node joins the blocks of the node and of all who take it; an accelerator pays for a net that has a pin on it and
          a pin elsewhere, whichever way the data flow. Nets with equal pins are one, with their costs added; a net inside a block is none
Arcs      between which blocks data flow forward (see `solvers.placement.judge`, which works node by node and shares nothing with this)
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.placement.networks import number_along
from crossopt.instances.placement.graph import Graph

Pins = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Columns over the blocks, and the nets and arcs between them."""

    accelerator_time: Array
    """Infinite where no accelerator can run all of it."""
    cpu_time: Array
    size: Array
    nets: tuple[Pins, ...]
    transfer: Array
    """Of each net."""
    arcs: tuple[tuple[int, int], ...]
    block_of: Whole
    """For each row of the graph."""

    def __len__(self) -> int:
        return len(self.size)


def blocks_of(graph: Graph, staged: bool) -> Blocks:
    """The blocks of a graph, in an order in which all arcs lead forward if `staged`."""
    colours, arcs_of_colours = int(graph.colour.max()) + 1, _flow(graph)
    number = number_along(colours, arcs_of_colours) if staged else list(range(colours))
    block_of = np.array([number[int(colour)] for colour in graph.colour], np.int64)
    count = int(block_of.max()) + 1
    nets = _nets(graph, block_of)
    arcs = {(number[one], number[other]) for one, other in arcs_of_colours if number[one] != number[other]}
    return Blocks(
        accelerator_time=_sums(block_of, graph.accelerator_time, count),
        cpu_time=_sums(block_of, graph.cpu_time, count),
        size=_sums(block_of, graph.size, count),
        nets=tuple(nets),
        transfer=np.array(list(nets.values()), np.float64),
        arcs=tuple(sorted(arcs)),
        block_of=block_of,
    )


def _sums(block_of: Whole, column: Array, count: int) -> Array:
    return np.bincount(block_of, column, count).astype(np.float64)


def _flow(graph: Graph) -> set[tuple[int, int]]:
    """The arcs between colours: forward edges, and edges between backward nodes turned round where one is of a colour without forward
    nodes."""
    arcs = set()
    colours, backward = graph.colour.tolist(), graph.backward.tolist()
    ahead = {colour for colour, back in zip(colours, backward, strict=True) if not back}
    for start, end in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        one, other = colours[start], colours[end]
        if one == other or backward[start] != backward[end]:
            continue
        if not backward[start]:
            arcs.add((one, other))
        elif one not in ahead or other not in ahead:
            arcs.add((other, one))
    return arcs


def _nets(graph: Graph, block_of: Whole) -> dict[Pins, float]:
    """Pins and costs of the nets that join several blocks and cost anything."""
    pins: dict[int, set[int]] = defaultdict(set)
    for start, end in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        pins[start] |= {int(block_of[start]), int(block_of[end])}
    nets: dict[Pins, float] = defaultdict(float)
    for row, joined in sorted(pins.items()):
        if len(joined) > 1 and graph.transfer[row] > 0.0:
            nets[tuple(sorted(joined))] += float(graph.transfer[row])
    return dict(nets)
