"""Reader of Piper's graphs as JSON, in the format of its published inputs; every fault at once.

maxMemoryPerDevice bytes, maxDevices, bandwidth bytes/s, mbsInBatch (or maxBatchSize)     microbatches in a batch
nodes   id, name, TMPCs: by the number of devices a list of configurations
        id, timePerSample, parameterSize, memoryUsageA (a microbatch), memoryUsageB bytes, syncTimeFw, syncTimeBw: {node: bytes}
edges   sourceId, destId, communicationCost bytes

A neighbour in syncTimeFw or syncTimeBw names the edge to it; it does not matter in which of the two it stands, as it comes before the node
or after it, never both. A part of a byte of memory takes a byte, so that sums of memory are exact.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

from crossopt.instances.files.graphs import FaultList, cycle_of, figure, rows_of
from crossopt.instances.files.units import quoted
from crossopt.instances.stages.piper.graph import Configuration, Offer, PiperGraph

_MOST_NODES = 10_000
_GREATEST = 1e15
"""Figures beyond it are no times and no sizes."""
_GREATEST_MEMORY = 1 << 52
"""Bytes that all layers take together at the most, so that sums are exact."""
_LIKELY_RATES = (5.0e7, 5.0e12)
"""Bytes of parameters that are worked through in a second, at the least and at the most."""
_figure = partial(figure, greatest=_GREATEST)


@dataclass(frozen=True, slots=True)
class Machine:
    """What the file says of the machine and the batch."""

    devices: int
    memory: float
    bandwidth: float
    microbatches: int


def piper_graph_of(document: Any, source: str, seconds: float) -> tuple[PiperGraph, Machine, tuple[str, ...]]:  # noqa: ANN401
    """The graph, the machine and what should be known of the file, whose times are in units of so many seconds."""
    faults = FaultList(source)
    if not isinstance(document, dict) or not isinstance(document.get("nodes"), list) or not isinstance(document.get("edges"), list):
        faults.add("", "a Piper graph is a mapping with the lists `nodes` and `edges`")
        faults.end()
    nodes, edges = document["nodes"], document["edges"]
    if not 0 < len(nodes) <= _MOST_NODES:
        faults.add("nodes", f"{len(nodes)} nodes are given, 1 to {_MOST_NODES:,} are needed")
        faults.end()
    batch = "mbsInBatch" if "mbsInBatch" in document else "maxBatchSize" if "maxBatchSize" in document else "mbsInBatch"
    machine = Machine(
        int(_figure(document, "maxDevices", "", faults, whole=True)),
        _figure(document, "maxMemoryPerDevice", "", faults),
        _figure(document, "bandwidth", "", faults),
        int(_figure(document, batch, "", faults, whole=True)),
    )
    rows = rows_of(nodes, faults)
    ends = _ends(edges, rows, faults)
    sizes = tuple(_figure(_mapping(edge), "communicationCost", f"edges[{place}]", faults) for place, edge in enumerate(edges))
    offers = _offers([_mapping(node) for node in nodes], rows, ends, seconds, faults)
    _refuse_cycles(list(rows), ends, faults)
    _refuse_memory(offers, faults)
    faults.end()
    ids = tuple(node["id"] for node in nodes)
    graph = PiperGraph(ids, tuple(str(node.get("name", node["id"])) for node in nodes), offers, tuple(ends), sizes)
    return graph, machine, (*_rate_notes(graph, seconds), *_byte_notes(nodes))


def _mapping(what: Any) -> Mapping[str, Any]:  # noqa: ANN401
    return what if isinstance(what, dict) else {}


def _ends(edges: list[Any], rows: Mapping[str, int], faults: FaultList) -> list[tuple[int, int]]:
    found, seen = [], dict[tuple[int, int], int]()
    for place, edge in enumerate(edges):
        pair = []
        for key in ("sourceId", "destId"):
            name = _mapping(edge).get(key)
            if isinstance(name, bool) or not isinstance(name, int | str) or str(name) not in rows:
                faults.add(f"edges[{place}].{key}", f"there is no node {name!r} (add it, or remove the edge)")
                name = None
            pair.append(-1 if name is None else rows[str(name)])
        known = (pair[0], pair[1])
        if min(known) >= 0 and seen.setdefault(known, place) != place:
            faults.add(f"edges[{place}]", f"this edge is edges[{seen[known]}] again (add up their bytes)")
        found.append(known)
    return found


def _offers(
    nodes: list[Mapping[str, Any]], rows: Mapping[str, int], ends: list[tuple[int, int]], seconds: float, faults: FaultList
) -> tuple[Offer, ...]:
    before, after = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
    for start, end in ends:
        before[end].add(start)
        after[start].add(end)
    found = []
    for row, node in enumerate(nodes):
        offer, given = {}, node.get("TMPCs")
        if not isinstance(given, dict) or not given:
            faults.add(f"nodes[{row}].TMPCs", "a mapping is needed from numbers of devices to lists of configurations")
            given = {}
        for word, listed in given.items():
            path = f"nodes[{row}].TMPCs.{word}"
            if not (word.isascii() and word.isdecimal() and word[0] != "0" and len(word) <= 9):
                faults.add(path, f"{quoted(word)} is no number of devices (write 1 or more)")
            elif not isinstance(listed, list) or not listed:
                faults.add(path, "a list of configurations is needed")
            else:
                neighbours = (rows, before[row], after[row])
                offer[int(word)] = tuple(
                    _configuration(_mapping(one), f"{path}[{place}]", neighbours, seconds, faults) for place, one in enumerate(listed)
                )
                _refuse_twins(offer[int(word)], path, faults)
        found.append(dict(sorted(offer.items())))
    return tuple(found)


def _configuration(
    given: Mapping[str, Any], path: str, neighbours: tuple[Mapping[str, int], set[int], set[int]], seconds: float, faults: FaultList
) -> Configuration:
    rows, before, after = neighbours
    name, sync = given.get("id"), dict[int, float]()
    if not isinstance(name, str) or not name:
        faults.add(f"{path}.id", 'a name is needed, such as "vanilla"')
    for key in ("syncTimeFw", "syncTimeBw"):
        table = given.get(key, {})
        if not isinstance(table, dict):
            faults.add(f"{path}.{key}", "a mapping is needed from nodes to bytes")
            continue
        for word in table:
            row = rows.get(word, -1)
            if row not in before and row not in after:
                faults.add(f"{path}.{key}", f"no edge joins this node and {quoted(word)} (remove the entry, or add the edge)")
            elif row in sync:
                faults.add(f"{path}.{key}", f"{quoted(word)} has an entry in syncTimeFw already (keep one of them)")
            sync[row] = _figure(table, word, f"{path}.{key}", faults)
    return Configuration(
        name=str(name),
        time=_figure(given, "timePerSample", path, faults) * seconds,
        parameters=_figure(given, "parameterSize", path, faults),
        stashed=ceil(_figure(given, "memoryUsageA", path, faults)),
        fixed=ceil(_figure(given, "memoryUsageB", path, faults)),
        entering={row: size for row, size in sync.items() if row in before},
        leaving={row: size for row, size in sync.items() if row in after},
    )


def _refuse_twins(configurations: tuple[Configuration, ...], path: str, faults: FaultList) -> None:
    names = [one.name for one in configurations]
    for place, name in enumerate(names):
        if names.index(name) != place:
            faults.add(f"{path}[{place}].id", f"{quoted(name)} is a configuration of this list already (give each its own name)")


def _refuse_cycles(ids: list[str], ends: list[tuple[int, int]], faults: FaultList) -> None:
    cycle = cycle_of([pair for pair in ends if min(pair) >= 0], len(ids))
    if cycle:
        named = [ids[row] for row in (*cycle, cycle[0])]
        shown = " -> ".join(named if len(named) <= 8 else [*named[:6], "...", named[-1]])
        faults.add("edges", f"the nodes {shown} form a cycle (a network without cycles is needed)")


def _refuse_memory(offers: tuple[Offer, ...], faults: FaultList) -> None:
    most = sum(max((one.stashed + one.fixed for options in offer.values() for one in options), default=0) for offer in offers)
    if most > _GREATEST_MEMORY:
        faults.add(
            "nodes", f"all layers together take {most:.3g} bytes, and sums are exact up to {_GREATEST_MEMORY:.3g} (give smaller ones)"
        )


def _rate_notes(graph: PiperGraph, seconds: float) -> tuple[str, ...]:
    """A word on units: parameters and times give the speed of a device."""
    first = [offer[min(offer)][0] for offer in graph.offers]
    time, size = sum(one.time for one in first), sum(one.parameters for one in first)
    if not time or not size or _LIKELY_RATES[0] <= size / time <= _LIKELY_RATES[1]:
        return ()
    other = 1e-3 if seconds == 1.0 else 1e3
    likely = _LIKELY_RATES[0] <= size / (time * other) <= _LIKELY_RATES[1]
    unit, wrong = ("ms", "milliseconds stood for seconds") if seconds == 1.0 else ("s", "seconds stood for milliseconds")
    guess = f", as if {wrong} (--time-unit {unit} reads them so)" if likely else ""
    return (f"one sample takes {time:.4g} s for {size / 1e9:.4g} GB of parameters on one device{guess}",)


def _byte_notes(nodes: list[Any]) -> tuple[str, ...]:
    keys = ("memoryUsageA", "memoryUsageB")
    parts = any(one[key] != ceil(one[key]) for node in nodes for listed in node["TMPCs"].values() for one in listed for key in keys)
    return ("memory figures with parts of a byte are rounded up",) if parts else ()
