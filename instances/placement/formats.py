"""Reader of placement graphs as JSON, in the format of the inputs of Tarnawski et al. (NeurIPS 2020); every fault at once.

maxSizePerFPGA bytes of an accelerator, maxFPGAs, maxCPUs      how many there are
nodes   id, name, supportedOnFpga, cpuLatency, fpgaLatency (ms), isBackwardNode, colorClass (equal: same device), size (bytes)
edges   sourceId, destId, cost (ms to move the output of the source; the same on all its edges), size (bytes, for information)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.instances.files.graphs import GREATEST, FaultList, cycle_of, figure, rows_of
from crossopt.instances.files.units import quoted
from crossopt.instances.placement.graph import Graph

_MOST_NODES = 100_000
_SAME = 1e-6
"""Costs of the edges of one node differ by no more, in relation to the largest."""
_LIKELY_RATES = (2.0e8, 2.0e12)
"""Bytes a second of a link between an accelerator and its host, at the least and at the most."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the file says of the machine."""

    accelerators: int
    cpus: int
    memory: float


def graph_of(document: Any, source: str) -> tuple[Graph, Limits, tuple[str, ...]]:  # noqa: ANN401 - whatever a file may hold
    """The graph, the machine and what should be known of the file; an InstanceError with every fault."""
    faults = FaultList(source)
    if not isinstance(document, dict) or not isinstance(document.get("nodes"), list) or not isinstance(document.get("edges"), list):
        faults.add("", "a placement graph is a mapping with the lists `nodes` and `edges`")
        faults.end()
    nodes, edges = document["nodes"], document["edges"]
    if not 0 < len(nodes) <= _MOST_NODES:
        faults.add("nodes", f"{len(nodes)} nodes are given, 1 to {_MOST_NODES:,} are needed")
        faults.end()
    limits = Limits(
        int(figure(document, "maxFPGAs", "", faults, whole=True)),
        int(figure(document, "maxCPUs", "", faults, whole=True)),
        figure(document, "maxSizePerFPGA", "", faults),
    )
    rows = rows_of(nodes, faults)
    columns = _columns(nodes, faults)
    ends = _ends(edges, rows, faults)
    transfer = _transfers(edges, ends, len(nodes), [str(node.get("id")) if isinstance(node, dict) else "?" for node in nodes], faults)
    faults.end()
    source_rows, target_rows = (np.array([pair[side] for pair in ends], np.int64) for side in (0, 1))
    graph = Graph(
        ids=tuple(node["id"] for node in nodes),
        names=columns.names,
        accelerator_time=columns.accelerator,
        cpu_time=columns.cpu,
        size=columns.size,
        transfer=transfer,
        backward=columns.backward,
        colour=columns.colour,
        source=source_rows,
        target=target_rows,
    )
    _refuse_cycles(graph, faults)
    faults.end()
    return graph, limits, _notes(edges)


@dataclass(frozen=True, slots=True)
class _Columns:
    names: tuple[str, ...]
    accelerator: Array
    cpu: Array
    size: Array
    backward: Mask
    colour: Whole


def _columns(nodes: list[Any], faults: FaultList) -> _Columns:
    kept = [node if isinstance(node, dict) else {} for node in nodes]

    def column(key: str, default: float | None = None) -> Array:
        return np.array([figure(node, key, f"nodes[{row}]", faults, default=default) for row, node in enumerate(kept)])

    supported = np.array([_truth(node, "supportedOnFpga", f"nodes[{row}]", faults, default=True) for row, node in enumerate(kept)])
    backward = np.array([_truth(node, "isBackwardNode", f"nodes[{row}]", faults, default=False) for row, node in enumerate(kept)])
    words = [("node", str(row)) if node.get("colorClass") is None else ("class", str(node["colorClass"])) for row, node in enumerate(kept)]
    numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
    colour = np.array([numbers[word] for word in words], np.int64)
    return _Columns(
        names=tuple(str(node.get("name", node.get("id"))) for node in kept),
        accelerator=np.where(supported, column("fpgaLatency"), np.inf),
        cpu=column("cpuLatency"),
        size=column("size", 0.0),
        backward=backward,
        colour=colour,
    )


def _truth(node: Mapping[str, Any], key: str, at: str, faults: FaultList, default: bool) -> bool:
    value = node.get(key, default)
    if value not in (0, 1):
        faults.add(f"{at}.{key}", f"{quoted(str(value))} is neither true nor false")
        return default
    return bool(value)


def _ends(edges: list[Any], rows: Mapping[str, int], faults: FaultList) -> list[tuple[int, int]]:
    """Rows of source and target of every edge."""
    found = []
    for place, edge in enumerate(edges):
        pair = [edge.get(key) if isinstance(edge, dict) else None for key in ("sourceId", "destId")]
        for key, name in zip(("sourceId", "destId"), pair, strict=True):
            if isinstance(name, bool) or not isinstance(name, int | str) or str(name) not in rows:
                faults.add(f"edges[{place}].{key}", f"there is no node {name!r} (add it, or remove the edge)")
        known = [rows.get(str(name), 0) for name in pair]
        found.append((known[0], known[1]))
    return found


def _transfers(edges: list[Any], ends: list[tuple[int, int]], count: int, ids: list[str], faults: FaultList) -> Array:
    """The cost of each node's output."""
    transfer, first = np.zeros(count), dict[int, int]()
    for place, (edge, (start, _)) in enumerate(zip(edges, ends, strict=True)):
        cost = figure(edge if isinstance(edge, dict) else {}, "cost", f"edges[{place}]", faults)
        if start in first and abs(cost - transfer[start]) > _SAME * max(cost, transfer[start]):
            words = f"the output of node {ids[start]} costs {cost!r} here and {float(transfer[start])!r} in edges[{first[start]}]"
            faults.add(f"edges[{place}].cost", f"{words} (all edges of a node carry the same output: give one cost)")
        elif start not in first:
            transfer[start], first[start] = cost, place
    return transfer


def _refuse_cycles(graph: Graph, faults: FaultList) -> None:
    cycle = cycle_of(list(zip(graph.source.tolist(), graph.target.tolist(), strict=True)), len(graph))
    if cycle:
        named = [str(graph.ids[row]) for row in (*cycle, cycle[0])]
        shown = " -> ".join(named if len(named) <= 8 else [*named[:6], "...", named[-1]])
        faults.add("edges", f"the nodes {shown} form a cycle (a network without cycles is needed)")


def _notes(edges: list[Any]) -> tuple[str, ...]:
    """A word on units: sizes and costs of edges give the speed of the link."""
    rates = [edge["size"] / edge["cost"] * 1e3 for edge in edges if _has_rate(edge)]
    if not rates:
        return ()
    rate = float(np.median(rates))
    if _LIKELY_RATES[0] <= rate <= _LIKELY_RATES[1]:
        return ()
    guess = ": a thousand times too fast, as if seconds stood for milliseconds (--edge-unit s reads them so)"
    likely = _LIKELY_RATES[0] <= rate / 1e3 <= _LIKELY_RATES[1]
    return (f"edges move {rate / 1e9:,.3g} GB/s by their sizes and costs{guess if likely else ', which no link does'}",)


def _has_rate(edge: Any) -> bool:  # noqa: ANN401
    figures = [edge.get(key) for key in ("size", "cost")]
    return all(isinstance(figure, int | float) and not isinstance(figure, bool) and 0 < figure <= GREATEST for figure in figures)
