"""A placement graph as blocks that stay together and nets that join them, and the rows that all models of throughput share."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

import networkx as nx
import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.formulation.model import ceiled, floored, quantum_for
from crossopt.instances.placement.question import Graph

# Two questions about directed graphs that networkx answers; it is named here only.

Network: TypeAlias = "nx.DiGraph[int]"
Edge = tuple[int, int, int | None]
"""From a node, to a node, and what may flow; None is without limit."""


def number_along(count: int, arcs: Iterable[tuple[int, int]]) -> list[int]:
    """A number for each node, the same for nodes of one cycle, and else such that every arc leads to a greater one."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(arcs)
    groups = nx.condensation(graph)
    numbers = [0] * count
    for position, group in enumerate(nx.topological_sort(groups)):
        for node in groups.nodes[group]["members"]:
            numbers[node] = position
    return numbers


def network_of(edges: Iterable[Edge]) -> Network:
    """A network to ask for several cuts."""
    network: Network = nx.DiGraph()
    for start, end, capacity in edges:
        if capacity is None:
            network.add_edge(start, end)
        else:
            network.add_edge(start, end, capacity=capacity)
    return network


def least_cut(network: Network, source: int, sink: int) -> int:
    """What the cheapest edges cost without which nothing flows from the source to the sink; exact, as capacities are whole."""
    return int(nx.minimum_cut_value(network, source, sink))


# A placement graph as blocks that stay together and nets that join them.
#
# Blocks    colours; where data must flow in stages also whole cycles of colours, since no order of devices could part them
# Nets      the output of a node joins the blocks of the node and of all who take it; an accelerator pays for a net that has a pin on it and
#           a pin elsewhere, whichever way the data flow. Nets with equal pins are one, with their costs added; a net inside a block is none
# Arcs      between which blocks data flow forward (see `solvers.placement.judge`, which works node by node and shares nothing with this)

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
    block_of: Ints
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
    arcs = {(number[source], number[target]) for source, target in arcs_of_colours if number[source] != number[target]}
    return Blocks(
        accelerator_time=_sums(block_of, graph.accelerator_time, count),
        cpu_time=_sums(block_of, graph.cpu_time, count),
        size=_sums(block_of, graph.size, count),
        nets=tuple(nets),
        transfer=np.array(list(nets.values()), np.float64),
        arcs=tuple(sorted(arcs)),
        block_of=block_of,
    )


def _sums(block_of: Ints, column: Array, count: int) -> Array:
    return np.bincount(block_of, column, count).astype(np.float64)


def _flow(graph: Graph) -> set[tuple[int, int]]:
    """The arcs between colours: forward edges, and edges between backward nodes turned round where one is of a colour without forward
    nodes."""
    arcs = set()
    colours, backward = graph.colour.tolist(), graph.backward.tolist()
    ahead = {colour for colour, back in zip(colours, backward, strict=True) if not back}
    for start, end in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        first, second = colours[start], colours[end]
        if first == second or backward[start] != backward[end]:
            continue
        if not backward[start]:
            arcs.add((first, second))
        elif first not in ahead or second not in ahead:
            arcs.add((second, first))
    return arcs


def _nets(graph: Graph, block_of: Ints) -> dict[Pins, float]:
    """Pins and costs of the nets that join several blocks and cost anything."""
    pins: dict[int, set[int]] = defaultdict(set)
    for start, end in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        pins[start] |= {int(block_of[start]), int(block_of[end])}
    nets: dict[Pins, float] = defaultdict(float)
    for row, joined in sorted(pins.items()):
        if len(joined) > 1 and graph.transfer[row] > 0.0:
            nets[tuple(sorted(joined))] += float(graph.transfer[row])
    return dict(nets)


# What the models of throughput have in common: which device a block is on, which nets a device cuts, and how busy it is.
#
# Data      device i of some, block b with times p_b (accelerator) and q_b (CPU) and size s_b, net e with pins and cost c_e
# Choices   x[b, i] = 1 if block b is on device i;  cut[e, i] = 1 if device i has a pin of e and another pin is elsewhere;  T the busiest
#           time
# Rows      cut      cut[e, i] >= x[b, i] - x[b', i]    for pins b, b' that follow each other, round all pins of the net: where some pins
#                                                        are on i and others are not, some pin on i is followed by one that is not
#           load     sum p_b x[b, i] + sum c_e cut[e, i] <= T            on an accelerator (overlapped: either sum <= T)
#                    sum q_b x[b, i] <= T                                on a CPU
#           memory   sum s_b x[b, i] <= M                                on an accelerator
#           support  x[b, i] = 0 where accelerator i cannot run b
# Objective least T
#
# Times are floored (`formulation.rounding`), after sums of floats were lowered by more than they can be off: T is then no more than any
# placement's true value. Sizes that are whole numbers are exact; others are floored and the memory is ceiled, so that a placement of the
# model may exceed it by the little that was rounded off, which the judge sees.

_GUARD = 1e-12
"""The share by which sums of times and sizes are lowered: many times what rounding can have added to a sum of 100,000 figures."""
_SIZES, _FINER = 1 << 20, 4
"""Quanta of the memory where sizes are no whole numbers; binary digits by which whole ones may be finer than the busiest time."""
_EXACT = 2.0**53


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """The costs of a question in whole quanta."""

    accelerator: list[int]
    cpu: list[int]
    size: list[int]
    transfer: list[int]
    memory: int
    quantum: float
    """Milliseconds."""
    supported: list[bool]


def figures_of(blocks: Blocks, memory: float, greatest: float, steps: int) -> Figures:
    """The costs, with quanta of which a busiest time of no more than `greatest` has up to so many.

    A block that is slower than that on one kind of device cannot be there, by more than its sums may be off.
    """
    quantum = quantum_for(max(greatest, np.finfo(float).tiny), steps)
    fits = (blocks.accelerator_time * (1.0 - _GUARD) <= greatest) & (blocks.size * (1.0 - _GUARD) <= memory)
    accelerator = np.where(fits, blocks.accelerator_time, 0.0)
    sizes, capacity = _sizes(np.where(fits, blocks.size, 0.0), min(memory, float(blocks.size.sum())), steps << _FINER)
    return Figures(
        accelerator=_down(accelerator, quantum),
        cpu=_down(np.minimum(blocks.cpu_time, 2.0 * greatest), quantum),
        size=sizes,
        transfer=_down(np.minimum(blocks.transfer, 2.0 * greatest), quantum),
        memory=capacity,
        quantum=quantum,
        supported=fits.tolist(),
    )


def _sizes(sizes: Array, memory: float, most: int) -> tuple[list[int], int]:
    """Sizes and memory: as they are, over their greatest common divisor, where they are whole and at most so many; else in quanta."""
    total = float(sizes.sum())
    if total < _EXACT and (sizes == np.floor(sizes)).all():
        integers = [int(size) for size in sizes.tolist()]
        divisor = max(gcd(*integers), 1)
        if total / divisor <= most:
            return [size // divisor for size in integers], int(memory) // divisor
    quantum = quantum_for(max(float(sizes.max(initial=0.0)), memory, 1.0), _SIZES)
    return _down(sizes, quantum), int(ceiled([memory], quantum)[0])


def _down(values: Array, quantum: float) -> list[int]:
    return [int(value) for value in floored(values * (1.0 - _GUARD), quantum).tolist()]
