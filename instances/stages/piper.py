"""A network whose layers can be split in several ways, and the question how stages, replicas and splits make a sample quickest.

The problem is that of Tarnawski, Narayanan and Phanishayee (Piper, NeurIPS 2021). A stage holds layers between two ideals of the network,
in d replicas (d divides the microbatches N of a batch) of t devices each. Every layer takes one configuration of those offered for t.

    seconds a sample   sum p / d + (sum over boundary edges 2 (bytes + sync) / d + sum 4 (d - 1) w / (d N)) / bandwidth
    memory             sum (a y + b),   y = ceil((replicas of this and of all later stages) / d) microbatches under way
    limits             sum d t <= devices,   sum d <= N
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, floor
from pathlib import Path
from typing import Annotated, Any, Literal

from crossopt.crossflow.fields import Bandwidth, Bounds, Bytes, Doc, Prose
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.graphs import FaultList, cycle_of, figure, read_json, rows_of, text_of
from crossopt.instances.files.units import quoted
from crossopt.instances.files.written import Written, short_repr

Part = Literal["data", "tensor", "recompute"]
PARTS: tuple[Part, ...] = ("data", "tensor", "recompute")
_RECOMPUTES = "recomp"


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way to run a layer on so many devices."""

    name: str
    time: float
    """Seconds a sample."""
    parameters: float
    """Bytes that replicas exchange."""
    stashed: int
    """Bytes for each microbatch under way."""
    fixed: int
    """Bytes beside them."""
    entering: Mapping[int, float]
    """Bytes beside the output itself if the edge from this row crosses a boundary."""
    leaving: Mapping[int, float]

    @property
    def recomputes(self) -> bool:
        """Whether activations are computed again, by the name that files give it."""
        return _RECOMPUTES in self.name.lower()


Offer = Mapping[int, tuple[Configuration, ...]]
"""Configurations by the number of devices that they split a layer over."""


@dataclass(frozen=True, slots=True, eq=False)
class PiperGraph:
    """Layers in the order of the file, and the edges between them by their rows."""

    ids: tuple[int | str, ...]
    names: tuple[str, ...]
    offers: tuple[Offer, ...]
    edges: tuple[tuple[int, int], ...]
    sizes: tuple[float, ...]
    """Bytes of each edge, one way; gradients take as many back."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class PiperQuestion:
    """Which stages, replicas, splits and configurations make the busiest stage least busy?"""

    name: str
    graph: PiperGraph
    devices: int
    memory: int
    """Bytes of one device."""
    bandwidth: float
    """Bytes a second from a device to others."""
    microbatches: int
    without: tuple[Part, ...]
    """Kinds of parallelism, or recomputation, that are not used."""
    notes: tuple[str, ...]
    document: dict[str, Any]

    __repr__ = short_repr

    @property
    def degrees(self) -> tuple[int, ...]:
        """How many replicas a stage may have."""
        most = 1 if "data" in self.without else min(self.microbatches, self.devices)
        return tuple(degree for degree in range(1, most + 1) if self.microbatches % degree == 0)


def narrowed(question: PiperQuestion, without: tuple[Part, ...]) -> PiperQuestion:
    """The question without these parts too: configurations that use them are offered no more."""
    left_out = tuple(part for part in PARTS if part in {*question.without, *without})
    offers = tuple(_narrowed(offer, left_out) for offer in question.graph.offers)
    return replace(question, graph=replace(question.graph, offers=offers), without=left_out)


def _narrowed(offer: Offer, without: tuple[Part, ...]) -> Offer:
    found = {}
    for tensor, configurations in offer.items():
        allowed = tuple(option for option in configurations if not ("recompute" in without and option.recomputes))
        if allowed and not ("tensor" in without and tensor > 1):
            found[tensor] = allowed
    return found


# Reader of Piper's graphs as JSON, in the format of its published inputs; every fault at once.
#
# maxMemoryPerDevice bytes, maxDevices, bandwidth bytes/s, mbsInBatch (or maxBatchSize)     microbatches in a batch
# nodes   id, name, TMPCs: by the number of devices a list of configurations
#         id, timePerSample, parameterSize, memoryUsageA (a microbatch), memoryUsageB bytes, syncTimeFw, syncTimeBw: {node: bytes}
# edges   sourceId, destId, communicationCost bytes
#
# A neighbour in syncTimeFw or syncTimeBw names the edge to it; it does not matter in which of the two it stands, as it comes before the
# node or after it, never both. A part of a byte of memory takes a byte, so that sums of memory are exact.

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
        int(_figure(document, "maxDevices", "", faults, integral=True)),
        _figure(document, "maxMemoryPerDevice", "", faults),
        _figure(document, "bandwidth", "", faults),
        int(_figure(document, batch, "", faults, integral=True)),
    )
    rows = rows_of(nodes, faults)
    ends = _ends(edges, rows, faults)
    sizes = tuple(_figure(_mapping(edge), "communicationCost", f"edges[{index}]", faults) for index, edge in enumerate(edges))
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
    for index, edge in enumerate(edges):
        pair = []
        for key in ("sourceId", "destId"):
            name = _mapping(edge).get(key)
            if isinstance(name, bool) or not isinstance(name, int | str) or str(name) not in rows:
                faults.add(f"edges[{index}].{key}", f"there is no node {name!r} (add it, or remove the edge)")
                name = None
            pair.append(-1 if name is None else rows[str(name)])
        known = (pair[0], pair[1])
        if min(known) >= 0 and seen.setdefault(known, index) != index:
            faults.add(f"edges[{index}]", f"this edge is edges[{seen[known]}] again (add up their bytes)")
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
        for key, listed in given.items():
            path = f"nodes[{row}].TMPCs.{key}"
            if not (key.isascii() and key.isdecimal() and key[0] != "0" and len(key) <= 9):
                faults.add(path, f"{quoted(key)} is no number of devices (write 1 or more)")
            elif not isinstance(listed, list) or not listed:
                faults.add(path, "a list of configurations is needed")
            else:
                neighbours = (rows, before[row], after[row])
                offer[int(key)] = tuple(
                    _configuration(_mapping(option), f"{path}[{index}]", neighbours, seconds, faults) for index, option in enumerate(listed)
                )
                _refuse_duplicates(offer[int(key)], path, faults)
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
        for neighbour in table:
            row = rows.get(neighbour, -1)
            if row not in before and row not in after:
                faults.add(f"{path}.{key}", f"no edge joins this node and {quoted(neighbour)} (remove the entry, or add the edge)")
            elif row in sync:
                faults.add(f"{path}.{key}", f"{quoted(neighbour)} has an entry in syncTimeFw already (keep one of them)")
            sync[row] = _figure(table, neighbour, f"{path}.{key}", faults)
    return Configuration(
        name=str(name),
        time=_figure(given, "timePerSample", path, faults) * seconds,
        parameters=_figure(given, "parameterSize", path, faults),
        stashed=ceil(_figure(given, "memoryUsageA", path, faults)),
        fixed=ceil(_figure(given, "memoryUsageB", path, faults)),
        entering={row: size for row, size in sync.items() if row in before},
        leaving={row: size for row, size in sync.items() if row in after},
    )


def _refuse_duplicates(configurations: tuple[Configuration, ...], path: str, faults: FaultList) -> None:
    names = [option.name for option in configurations]
    for index, name in enumerate(names):
        if names.index(name) != index:
            faults.add(f"{path}[{index}].id", f"{quoted(name)} is a configuration of this list already (give each its own name)")


def _refuse_cycles(ids: list[str], ends: list[tuple[int, int]], faults: FaultList) -> None:
    cycle = cycle_of([pair for pair in ends if min(pair) >= 0], len(ids))
    if cycle:
        named = [ids[row] for row in (*cycle, cycle[0])]
        shown = " -> ".join(named if len(named) <= 8 else [*named[:6], "...", named[-1]])
        faults.add("edges", f"the nodes {shown} form a cycle (a network without cycles is needed)")


def _refuse_memory(offers: tuple[Offer, ...], faults: FaultList) -> None:
    most = sum(max((option.stashed + option.fixed for options in offer.values() for option in options), default=0) for offer in offers)
    if most > _GREATEST_MEMORY:
        faults.add(
            "nodes", f"all layers together take {most:.3g} bytes, and sums are exact up to {_GREATEST_MEMORY:.3g} (give smaller ones)"
        )


def _rate_notes(graph: PiperGraph, seconds: float) -> tuple[str, ...]:
    """A word on units: parameters and times give the speed of a device."""
    first = [offer[min(offer)][0] for offer in graph.offers]
    time, size = sum(option.time for option in first), sum(option.parameters for option in first)
    if not time or not size or _LIKELY_RATES[0] <= size / time <= _LIKELY_RATES[1]:
        return ()
    other = 1e-3 if seconds == 1.0 else 1e3
    likely = _LIKELY_RATES[0] <= size / (time * other) <= _LIKELY_RATES[1]
    unit, wrong = ("ms", "milliseconds stood for seconds") if seconds == 1.0 else ("s", "seconds stood for milliseconds")
    guess = f", as if {wrong} (--time-unit {unit} reads them so)" if likely else ""
    return (f"one sample takes {time:.4g} s for {size / 1e9:.4g} GB of parameters on one device{guess}",)


def _byte_notes(nodes: list[Any]) -> tuple[str, ...]:
    keys = ("memoryUsageA", "memoryUsageB")
    parts = any(row[key] != ceil(row[key]) for node in nodes for listed in node["TMPCs"].values() for row in listed for key in keys)
    return ("memory figures with parts of a byte are rounded up",) if parts else ()


# The form of a question about a graph with configurations of its layers (`kind: piper`), of which the graph's own file says the rest.

MOST_DEVICES, MOST_MICROBATCHES = 1 << 14, 1 << 20
_MOST_MEMORY = 1 << 52
_SECONDS = {"s": 1.0, "ms": 1e-3}


@dataclass(frozen=True, slots=True)
class PiperFile:
    """Which stages, replicas, splits and configurations make the busiest stage least busy?"""

    file: Annotated[str, Doc("path of a graph in Piper's format, relative to this file, which provides the defaults")]
    kind: Annotated[Literal["piper"], Doc("problem type")] = "piper"
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
    devices: Annotated[int | None, Bounds(1, MOST_DEVICES), Doc("number of devices of one kind; default: the graph file's")] = None
    memory: Annotated[Bytes | None, Doc("memory of one device")] = None
    bandwidth: Annotated[Bandwidth | None, Bounds(1.0, 1e15), Doc("bandwidth from one device to the others")] = None
    microbatches: Annotated[int | None, Bounds(1, MOST_MICROBATCHES), Doc("number of microbatches per batch")] = None
    without: Annotated[tuple[Part, ...], Doc("kinds of parallelism, or recomputation, to exclude")] = ()
    time_unit: Annotated[Literal["s", "ms"], Doc("unit of the times in the graph's file")] = "s"


def read(written: Written) -> PiperQuestion:
    """The question; an InstanceError with every fault."""
    file = written.read_as(PiperFile)
    source = str(written.files.path(file.file))
    with written.reading("file"):
        text = written.files.text(file.file, text_of)
    graph, given, notes = piper_graph_of(read_json(text, source), source, _SECONDS[file.time_unit])
    machine = Machine(
        given.devices if file.devices is None else file.devices,
        given.memory if file.memory is None else file.memory,
        given.bandwidth if file.bandwidth is None else file.bandwidth,
        given.microbatches if file.microbatches is None else file.microbatches,
    )
    if faults := _faults(machine):
        raise InstanceError(source, faults)
    question = PiperQuestion(
        name=file.name or Path(written.source).stem,
        graph=graph,
        devices=machine.devices,
        memory=floor(min(machine.memory, _MOST_MEMORY)),
        bandwidth=machine.bandwidth,
        microbatches=machine.microbatches,
        without=(),
        notes=notes,
        document=written.document,
    )
    question = narrowed(question, tuple(part for part in PARTS if part in file.without))
    _refuse_nothing(question.graph, source, question.without)
    return question


def _faults(machine: Machine) -> list[Fault]:
    """Figures of a graph's own file that no question can have, each with the option that replaces it."""
    devices, bandwidth, microbatches = machine.devices, machine.bandwidth, machine.microbatches
    rules = (
        ("maxDevices", f"{devices} devices are given, 1 to {MOST_DEVICES:,} are needed (--devices)", 1 <= devices <= MOST_DEVICES),
        ("bandwidth", f"{bandwidth} bytes/s are given, 1 to 1e15 are needed (--bandwidth)", 1.0 <= bandwidth <= 1e15),
        (
            "mbsInBatch",
            f"{microbatches} microbatches are given, 1 to {MOST_MICROBATCHES:,} are needed (--microbatches)",
            1 <= microbatches <= MOST_MICROBATCHES,
        ),
    )
    return [Fault(1, 1, path, message) for path, message, holds in rules if not holds]


def _refuse_nothing(graph: PiperGraph, source: str, without: tuple[Part, ...]) -> None:
    """Layers that no configuration is left for."""
    faults = [
        Fault(1, 1, f"nodes[{row}].TMPCs", f"no configuration is left without {' and '.join(without)} (leave a part of `without` away)")
        for row, offer in enumerate(graph.offers)
        if not offer
    ]
    if faults:
        raise InstanceError(source, faults)


def size_of(question: PiperQuestion) -> str:
    """How large the question is, in words."""
    return f"{len(question.graph):,} layers for {question.devices:,} devices and {question.microbatches:,} microbatches"
