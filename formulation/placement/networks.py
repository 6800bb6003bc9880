"""Two questions about directed graphs that networkx answers; it is named here only."""

from collections.abc import Iterable
from typing import TypeAlias

import networkx as nx

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
    for place, group in enumerate(nx.topological_sort(groups)):
        for node in groups.nodes[group]["members"]:
            numbers[node] = place
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
