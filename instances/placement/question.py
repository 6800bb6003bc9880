"""The question about a placement as the user writes it in YAML, with a graph of operators, the devices, and what is asked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.crossflow.fields import Bandwidth, Bounds, Bytes, Doc, Duration, Positive, Prose
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.operator_costs import columns_of, graph_costs
from crossopt.crossflow.operator_graph import OperatorGraph, edges, shared_weights, weight_values
from crossopt.crossflow.operators import Operator, blocks, operators
from crossopt.crossflow.workload import Precision, Transformer
from crossopt.instances.catalogue.registry import UnknownNameError, build_device, device
from crossopt.instances.catalogue.workload import Report, WorkloadSection, build_workload
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import why_unreadable
from crossopt.instances.files.graphs import GREATEST, FaultList, cycle_of, figure, read_json, rows_of, text_of
from crossopt.instances.files.units import exact, quoted
from crossopt.instances.files.written import FROM_QUESTION, Files, Written, short_repr
from crossopt.instances.operators.graph_file import graph_in, is_operators

# A network as a graph of operators, and the question on which device each of them runs.
#
# The problem is that of Tarnawski et al. (NeurIPS 2020). All data between devices pass through the memory of the host: an accelerator pays
# the transfer time of a node's output once if it takes it in from outside, and once if it hands it out; CPUs pay nothing.

Problem = Literal["throughput", "latency"]
Contiguity = Literal["stages", "convex", "no"]
Communication = Literal["calls", "overlapped"]


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Operators as columns, in the order of the file, and the edges between them by their rows."""

    ids: tuple[int | str, ...]
    names: tuple[str, ...]
    accelerator_time: Array
    """Milliseconds for one sample; infinite where no accelerator supports the node."""
    cpu_time: Array
    size: Array
    """Bytes on an accelerator."""
    transfer: Array
    """Milliseconds to move the output of the node between an accelerator and the host's memory."""
    backward: Mask
    colour: Ints
    """Nodes of equal number run on one device."""
    source: Ints
    target: Ints

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class PlacementQuestion:
    """On which device does each operator run, so that the busiest device is least busy, or one sample is through soonest?"""

    name: str
    graph: Graph
    accelerators: int
    cpus: int
    memory: float
    """Bytes of one accelerator, or slightly more where sizes are decimals (`_limit_of_sums`); the host's are not counted."""
    problem: Problem
    contiguity: Contiguity
    communication: Communication
    pieces: int
    """Subgraphs that one accelerator may run after each other, for latency."""
    notes: tuple[str, ...]
    """What a reader of the file should know, such as units that cannot be right."""
    document: dict[str, Any]
    samples: int | None = 1
    """Samples of a pass; None where the graph does not say its batch."""

    __repr__ = short_repr

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices: accelerators first. For latency all CPU cores are one device, and never too few."""
        cpus = ("cpu",) if self.problem == "latency" else tuple(f"cpu {number + 1}" for number in range(self.cpus))
        return (*(f"accelerator {number + 1}" for number in range(self.accelerators)), *cpus)


# A placement that comes with a graph, such as an expert's: which nodes each device holds.
#
# fpgas, cpus   lists of {nodes: [ids]}, in the format of the solutions of Tarnawski et al. (NeurIPS 2020); or
# {id: device}  the name of the device of every node, as `crossopt export --as devices` writes it
#
# A node that is not named goes where others of its colour are, so that a split of the forward pass serves for training.

_UNPLACED = -1


def read_split(path: Path, question: PlacementQuestion) -> Ints:
    """The device of every node; an InstanceError with every fault."""
    document = read_json(text_of(path), str(path))
    faults: list[Fault] = []
    rows = {str(name): row for row, name in enumerate(question.graph.ids)}
    device_of = np.full(len(rows), _UNPLACED, np.int64)
    for at, name, target in _places(document, question, faults):
        row = rows.get(name)
        if row is None:
            faults.append(Fault(1, 1, at, f"there is no node {quoted(name)} in the graph (a split of another graph?)"))
        elif device_of[row] not in {_UNPLACED, target}:
            faults.append(Fault(1, 1, at, f"node {name} is on {question.devices[device_of[row]]} already (name it once)"))
        else:
            device_of[row] = target
    _follow(question, device_of)
    left = np.flatnonzero(device_of == _UNPLACED).tolist()
    if left and not faults:
        text = (
            f"node {question.graph.ids[left[0]]} and {len(left) - 1} others have"
            if len(left) > 1
            else f"node {question.graph.ids[left[0]]} has"
        )
        faults.append(Fault(1, 1, "", f"{text} no device (name every node, or one of its colour)"))
    if faults:
        raise InstanceError(str(path), faults)
    return device_of


def _places(document: Any, question: PlacementQuestion, faults: list[Fault]) -> Iterator[tuple[str, str, int]]:  # noqa: ANN401
    """Where it stands, the node, and the device."""
    if isinstance(document, dict) and {"fpgas", "cpus"} & set(document):
        yield from _device_nodes(document, "fpgas", 0, question.accelerators, faults)
        yield from _device_nodes(document, "cpus", question.accelerators, question.cpus, faults)
    elif isinstance(document, dict):
        numbers = {name: number for number, name in enumerate(question.devices)}
        for name, device in document.items():
            if device in numbers:
                yield name, name, numbers[device]
            else:
                faults.append(
                    Fault(1, 1, name, f"there is no device {quoted(str(device))} (one of {', '.join(question.devices[:4])}, ...)")
                )
    else:
        faults.append(Fault(1, 1, "", "a split is a mapping, of ids to devices or with the lists `fpgas` and `cpus`"))


def _device_nodes(document: dict[str, Any], key: str, first: int, count: int, faults: list[Fault]) -> Iterator[tuple[str, str, int]]:
    devices = document.get(key, [])
    if not isinstance(devices, list) or not all(isinstance(device, dict) and isinstance(device.get("nodes"), list) for device in devices):
        faults.append(Fault(1, 1, key, "a list of devices is needed, each with its list `nodes`"))
        return
    used = [index for index, device in enumerate(devices) if device["nodes"]]
    if used and used[-1] >= count:
        faults.append(Fault(1, 1, key, f"{used[-1] + 1} are used, the question has {count} (--devices, --cpus)"))
        return
    for index in used:
        for node in devices[index]["nodes"]:
            yield f"{key}[{index}].nodes", str(node), first + index


def _follow(question: PlacementQuestion, device_of: Ints) -> None:
    """Put nodes without a device where their colour is."""
    colour = question.graph.colour
    where = {int(node_colour): int(device) for node_colour, device in zip(colour, device_of, strict=True) if device != _UNPLACED}
    for row in np.flatnonzero(device_of == _UNPLACED).tolist():
        device_of[row] = where.get(int(colour[row]), _UNPLACED)


# The question about a placement as the user writes it in YAML: a graph, the devices, and what is asked.


@dataclass(frozen=True, slots=True)
class NodeSection:
    """One operator."""

    time: Annotated[Duration | None, Doc("time on an accelerator for one sample; omitted if no accelerator supports it")] = None
    cpu_time: Annotated[Duration | None, Doc("time on a CPU; default: ten times the accelerator's")] = None
    size: Annotated[Bytes, Doc("memory on an accelerator")] = 0.0
    transfer: Annotated[Duration, Doc("time to move the output between an accelerator and host memory")] = 0.0
    after: Annotated[tuple[str, ...], Doc("operators whose outputs it takes")] = ()
    colour: Annotated[str | None, Doc("operators of equal colour run on one device")] = None
    backward: Annotated[bool, Doc("part of the backward pass")] = False


@dataclass(frozen=True, slots=True)
class GraphSection:
    """The operators: one of `file`, `nodes`, and `workload` with `hardware`."""

    file: Annotated[
        str | None, Doc("path of a graph in JSON, or of operators as `crossopt import` writes it (with `hardware`), relative to this file")
    ] = None
    nodes: Annotated[dict[str, NodeSection] | None, Doc("operators by name")] = None
    workload: Annotated[WorkloadSection | None, Doc("a transformer, whose operators the cost model prices")] = None
    hardware: Annotated[str | None, Doc("a device of `crossopt list hardware`")] = None
    granularity: Annotated[Literal["operator", "layer"], Doc("nodes of a generated graph: operators or layers")] = "operator"
    precision: Annotated[Literal["bf16", "fp16", "fp32"] | None, Doc("format of the values of imported operators; default: bf16")] = None
    training: Annotated[bool, Doc("forward and backward pass, or forward only")] = True
    microbatch: Annotated[Positive, Doc("samples per microbatch")] = 1
    bandwidth: Annotated[Bandwidth | None, Doc("bandwidth between an accelerator and the host; default: the device's own link")] = None
    cpu_slowdown: Annotated[float, Bounds(1.0), Doc("slowdown of an operator on a CPU")] = 10.0


@dataclass(frozen=True, slots=True)
class PlacementFile:
    """On which device does each operator of a network run?"""

    graph: Annotated[GraphSection, Doc("the graph of operators")]
    kind: Annotated[Literal["placement"], Doc("problem type")] = "placement"
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
    devices: Annotated[int | None, Bounds(0), Doc("number of accelerators; default: the graph file's")] = None
    cpus: Annotated[int | None, Bounds(0), Doc("number of CPUs besides the accelerators; default: the graph file's, or none")] = None
    memory: Annotated[Bytes | None, Doc("memory of one accelerator; default: the hardware's own, or no limit")] = None
    problem: Annotated[
        Problem,
        Doc("minimise the time of the busiest device, or the latency of one sample (any number of CPUs, and `pieces` per accelerator)"),
    ] = "throughput"
    contiguous: Annotated[
        Contiguity | None,
        Doc("contiguity: stages in the order of the data, connected subgraphs that no path leaves and re-enters, or no restriction"),
    ] = None
    transfers: Annotated[Communication | None, Doc("transfers as calls that occupy a device, or overlapped with computation")] = None
    pieces: Annotated[Positive | None, Doc("subgraphs that one accelerator runs one after another, for `latency`")] = None
    edge_unit: Annotated[Literal["ms", "s"] | None, Doc("unit of edge costs in a JSON file; default: ms")] = None


# Reader of placement graphs as JSON, in the format of the inputs of Tarnawski et al. (NeurIPS 2020); every fault at once.
#
# maxSizePerFPGA bytes of an accelerator, maxFPGAs, maxCPUs      how many there are
# nodes   id, name, supportedOnFpga, cpuLatency, fpgaLatency (ms), isBackwardNode, colorClass (equal: same device), size (bytes)
# edges   sourceId, destId, cost (ms to move the output of the source; the same on all its edges), size (bytes, for information)

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
        int(figure(document, "maxFPGAs", "", faults, integral=True)),
        int(figure(document, "maxCPUs", "", faults, integral=True)),
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
    colour: Ints


def _columns(nodes: list[Any], faults: FaultList) -> _Columns:
    given = [node if isinstance(node, dict) else {} for node in nodes]

    def column(key: str, default: float | None = None) -> Array:
        return np.array([figure(node, key, f"nodes[{row}]", faults, default=default) for row, node in enumerate(given)])

    supported = np.array([_truth(node, "supportedOnFpga", f"nodes[{row}]", faults, default=True) for row, node in enumerate(given)])
    backward = np.array([_truth(node, "isBackwardNode", f"nodes[{row}]", faults, default=False) for row, node in enumerate(given)])
    keys = [("node", str(row)) if node.get("colorClass") is None else ("class", str(node["colorClass"])) for row, node in enumerate(given)]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    colour = np.array([numbers[key] for key in keys], np.int64)
    return _Columns(
        names=tuple(str(node.get("name", node.get("id"))) for node in given),
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
    for index, edge in enumerate(edges):
        pair = [edge.get(key) if isinstance(edge, dict) else None for key in ("sourceId", "destId")]
        for key, name in zip(("sourceId", "destId"), pair, strict=True):
            if isinstance(name, bool) or not isinstance(name, int | str) or str(name) not in rows:
                faults.add(f"edges[{index}].{key}", f"there is no node {name!r} (add it, or remove the edge)")
        known = [rows.get(str(name), 0) for name in pair]
        found.append((known[0], known[1]))
    return found


def _transfers(edges: list[Any], ends: list[tuple[int, int]], count: int, ids: list[str], faults: FaultList) -> Array:
    """The cost of each node's output."""
    transfer, first = np.zeros(count), dict[int, int]()
    for index, (edge, (start, _)) in enumerate(zip(edges, ends, strict=True)):
        cost = figure(edge if isinstance(edge, dict) else {}, "cost", f"edges[{index}]", faults)
        if start in first and abs(cost - transfer[start]) > _SAME * max(cost, transfer[start]):
            text = f"the output of node {ids[start]} costs {cost!r} here and {float(transfer[start])!r} in edges[{first[start]}]"
            faults.add(f"edges[{index}].cost", f"{text} (all edges of a node carry the same output: give one cost)")
        elif start not in first:
            transfer[start], first[start] = cost, index
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


# The graph of a question: operators that are written out, read from a file in JSON, or generated from a model and a device.

_MILLISECONDS = 1e3
_CPU = 10.0
"""How many times longer an operator takes on a CPU where nothing is said, as in the published layer graphs."""
_WAYS = ("file", "nodes", "workload")
_PRICED = ("hardware", "bandwidth", "precision")
"""Keys of graphs that the cost model prices."""
_VALUE_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0}
_STATE_BYTES = {"bf16": 16.0, "fp16": 16.0, "fp32": 12.0}
"""Bytes of gradient and optimizer state for a trained weight: a 4-byte gradient and Adam's two moments, and in 16 bits a master weight."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A graph, and what is said of the machine; None where nothing is."""

    graph: Graph
    accelerators: int | None
    cpus: int | None
    memory: float | None
    notes: tuple[str, ...] = ()
    samples: int | None = 1


def draw(file: PlacementFile, files: Files, report: Report) -> Drawn | None:
    """The graph that a question speaks of; None after every fault of its section was reported."""
    section = file.graph
    given = [way for way in _WAYS if getattr(section, way) is not None]
    if len(given) != 1:
        problem = f"{' and '.join(given)} are given at once" if given else "no graph is given"
        report(given[1] if given else "", f"{problem} (give exactly one of {', '.join(_WAYS)})")
        return None
    try:
        text = None if section.file is None else files.text(section.file, text_of)
    except OSError as error:
        report("file", why_unreadable(error, FROM_QUESTION))
        return None
    imported = text is not None and is_operators(text)
    for key in _PRICED if section.workload is None and not imported else ():
        if getattr(section, key) is not None:
            report(key, "this belongs to graphs that are priced: of a workload, or imported (remove it)")
    if section.file is not None and text is not None:
        source = str(files.path(section.file))
        return _imported(file, section, graph_in(text, source), report) if imported else _from_file(file, read_json(text, source), source)
    if section.nodes is not None:
        graph = _from_nodes(section.nodes, report)
        return None if graph is None else Drawn(graph, file.devices, file.cpus, file.memory)
    return _generated(file, section, files, report)


def _from_file(file: PlacementFile, document: Any, source: str) -> Drawn:  # noqa: ANN401 - JSON
    graph, limits, notes = graph_of(document, source)
    given = (file.devices, file.cpus, file.memory)
    accelerators, cpus, memory = (
        theirs if own is None else own for own, theirs in zip(given, (limits.accelerators, limits.cpus, limits.memory), strict=True)
    )
    return Drawn(graph, int(accelerators), int(cpus), memory, notes)


def _from_nodes(nodes: Mapping[str, NodeSection], report: Report) -> Graph | None:
    rows = {name: row for row, name in enumerate(nodes)}
    edges: list[tuple[int, int]] = []
    faulty = not nodes
    if not nodes:
        report("nodes", "there is no node (write at least one)")
    for name, node in nodes.items():
        for before in node.after:
            if before not in rows:
                report(f"nodes.{name}.after", f"there is no node {quoted(before)} (add it, or remove it here)")
                faulty = True
            else:
                edges.append((rows[before], rows[name]))
        if max(node.time or 0.0, node.cpu_time or 0.0, node.size, node.transfer) > GREATEST:
            report(f"nodes.{name}", f"a figure is beyond {GREATEST:.0e} (give what a device can have)")
            faulty = True
        if node.time is None and node.cpu_time is None:
            report(f"nodes.{name}", "neither time nor cpu_time is given, so that no device runs it (give one of them)")
            faulty = True
    cycle = cycle_of(edges, len(rows))
    if cycle:
        names = list(rows)
        shown = " -> ".join(names[row] for row in (*cycle, cycle[0]))
        report("nodes", f"the nodes {shown} form a cycle (a network without cycles is needed)")
    if faulty or cycle:
        return None
    colours = [("node", name) if node.colour is None else ("colour", node.colour) for name, node in nodes.items()]
    numbers = {colour: number for number, colour in enumerate(dict.fromkeys(colours))}
    return Graph(
        ids=tuple(rows),
        names=tuple(rows),
        accelerator_time=_column([float("inf") if node.time is None else node.time * _MILLISECONDS for node in nodes.values()]),
        cpu_time=_column([_on_cpu(node) * _MILLISECONDS for node in nodes.values()]),
        size=_column([node.size for node in nodes.values()]),
        transfer=_column([node.transfer * _MILLISECONDS for node in nodes.values()]),
        backward=np.array([node.backward for node in nodes.values()], np.bool_),
        colour=np.array([numbers[colour] for colour in colours], np.int64),
        source=np.array([source for source, _ in edges], np.int64),
        target=np.array([other for _, other in edges], np.int64),
    )


def _on_cpu(node: NodeSection) -> float:
    if node.cpu_time is not None:
        return node.cpu_time
    return _CPU * (node.time or 0.0)


def _column(figures: list[float]) -> Any:  # noqa: ANN401 - numpy's own
    return np.array(figures, np.float64)


def _generated(file: PlacementFile, section: GraphSection, files: Files, report: Report) -> Drawn | None:
    if section.precision is not None:
        report("precision", "the workload has a precision of its own (remove this)")
        return None
    model = None if section.workload is None else _transformer(section.workload, files, report)
    hardware = None if model is None else _device(section, model.precision, report)
    if model is None or hardware is None:
        return None
    nodes = operators(model, hardware, section.microbatch)
    graph = graph_of_operators(model, blocks(nodes) if section.granularity == "layer" else nodes, section, _rate(section, hardware))
    room = _room(hardware) if file.memory is None else file.memory
    return Drawn(graph, file.devices, file.cpus, room, samples=section.microbatch)


def _imported(file: PlacementFile, section: GraphSection, graph: OperatorGraph, report: Report) -> Drawn | None:
    """A graph of operators, priced on the device."""
    hardware = _device(section, section.precision or "bf16", report)
    if hardware is None:
        return None
    priced = graph_of_imported(graph, hardware, section, _rate(section, hardware))
    notes = [*graph.remarks, _SHARED] if shared_weights(graph) else graph.remarks
    room = _room(hardware) if file.memory is None else file.memory
    return Drawn(priced, file.devices, file.cpus, room, tuple(notes), graph.batch)


_SHARED = "weights that several operators share are counted at each of them"


def _device(section: GraphSection, precision: Precision, report: Report) -> Hardware | None:
    """The device that prices the graph; None after what is wrong with it was reported."""
    if section.hardware is None:
        report("hardware", "a device prices the operators (such as hardware: a100-80g; `crossopt list hardware` names them)")
        return None
    if section.bandwidth is not None and section.bandwidth < 1.0:
        report("bandwidth", "less than a byte a second is no bandwidth (give more)")
        return None
    try:
        return build_device(device(section.hardware), section.hardware, precision, 2)
    except (UnknownNameError, ValueError) as error:
        report("hardware", str(error))
        return None


def _rate(section: GraphSection, hardware: Hardware) -> float:
    """Bytes a second between an accelerator and its host."""
    return section.bandwidth or float(np.asarray(hardware.links[0].bandwidth).item())


def _room(hardware: Hardware) -> float:
    return float(np.asarray(hardware.dram.capacity).item()) - hardware.reserved_memory


def _transformer(workload: WorkloadSection, files: Files, report: Report) -> Transformer | None:
    """The network, if it is one of which a graph is generated."""
    model = build_workload(workload, files, lambda path, message: report(f"workload.{path}".strip("."), message))
    if model is not None and not isinstance(model, Transformer):
        report("workload", "graphs are generated from transformers only (give model or transformer)")
        return None
    if model is not None and not model.all_trained:
        report(
            f"workload.{'lora_rank' if model.lora_rank else 'frozen_layers'}",
            "graphs are generated of networks whose weights are all trained (remove it)",
        )
        return None
    return model


def graph_of_operators(model: Transformer, nodes: tuple[Operator, ...], section: GraphSection, rate: float) -> Graph:
    """Operators of a transformer as a graph.

    An operator has its weights on the accelerator, in training with gradients and the optimizer's state, and the activations it hands on.
    """
    rows = {node.name: row for row, node in enumerate(nodes)}
    links = [(rows[before], row) for row, node in enumerate(nodes) for before in node.after]
    state = model.weight_bytes + (model.gradient_bytes + model.optimizer_bytes if section.training else 0.0)
    passes = [node.forward for node in nodes], [node.backward for node in nodes]
    sizes, outputs = [node.weights * state + node.output for node in nodes], [node.output for node in nodes]
    return _both_passes(tuple(rows), passes, sizes, outputs, links, range(len(nodes)), section, rate)


def graph_of_imported(graph: OperatorGraph, hardware: Hardware, section: GraphSection, rate: float) -> Graph:
    """Imported operators as a graph, priced on a device. A view moves nothing, and is where the operator is whose output it shows."""
    precision = section.precision or "bf16"
    columns, each = columns_of(graph), _VALUE_BYTES[precision]
    costs = graph_costs(columns, each, hardware)
    outputs = (columns.outputs[:, 0] * each).tolist()
    links, colours = [(edge.source, edge.target) for edge in edges(graph)], list[int]()
    makers = {tensor: row for row, node in enumerate(graph.nodes) for tensor in node.outputs}
    sizes = list[float]()
    for row, (node, view) in enumerate(zip(graph.nodes, columns.of("view")[:, 0].tolist(), strict=True)):
        maker = makers.get(node.inputs[0]) if view and node.inputs else None
        colours.append(row if maker is None else colours[maker])
        trained = sum(prod(graph.weights[name].shape) for name in dict.fromkeys(node.weights) if graph.weights[name].trained)
        state = trained * _STATE_BYTES[precision] if section.training else 0.0
        sizes.append(weight_values(graph, node) * each + state + (0.0 if view else outputs[row]))
    passes = [np.ravel(side.time).tolist() for side in (costs.forward, costs.backward)]
    names = tuple(node.name for node in graph.nodes)
    numbers = {colour: number for number, colour in enumerate(dict.fromkeys(colours))}
    classes = [numbers[colour] for colour in colours]
    return _both_passes(names, (passes[0], passes[1]), sizes, outputs, list(dict.fromkeys(links)), classes, section, rate)


def _both_passes(
    names: tuple[str, ...],
    passes: tuple[list[float], list[float]],
    sizes: list[float],
    outputs: list[float],
    links: list[tuple[int, int]],
    colours: Sequence[int],
    section: GraphSection,
    rate: float,
) -> Graph:
    """The graph of these operators, with seconds of both passes; in training with a backward pass that runs against the forward one and
    hands back gradients of what came in."""
    count, training, back = len(names), section.training, [0.0] * len(names)
    for source, target in links:
        back[target] = max(back[target], outputs[source])
    ends = sorted(set(range(count)) - {source for source, _ in links})
    turned = [*((count + end, count + start) for start, end in links), *((end, count + end) for end in ends)] if training else []
    time = np.array(passes[0] + passes[1] * training, np.float64) * _MILLISECONDS
    return Graph(
        ids=names + tuple(f"{name}, backward" for name in names) * training,
        names=names * (1 + training),
        accelerator_time=time,
        cpu_time=time * section.cpu_slowdown,
        size=_column(sizes + [0.0] * count * training),
        transfer=_column(outputs + back * training) / rate * _MILLISECONDS,
        backward=np.arange(len(time)) >= count,
        colour=np.array([*colours] * (1 + training), np.int64),
        source=np.array([start for start, _ in [*links, *turned]], np.int64),
        target=np.array([end for _, end in [*links, *turned]], np.int64),
    )


# From what is written, a graph in JSON with settings or a question in YAML, to a `PlacementQuestion`.

MOST_DEVICES = 1024
_SURELY = 1.0 - 1e-12
"""Sums of sizes are lowered by more than rounding can have raised them before anything is called impossible."""
_SLIGHTLY = Fraction(1, 10**9)
"""More of a memory than rounding can change, and too little to be seen."""
_USELESS = {
    "throughput": {"pieces": "a pipeline runs all of a device at a time"},
    "latency": {
        "contiguous": "no piece waits for itself, which is all that is asked of its shape",
        "transfers": "a piece takes in, computes and hands out, one after another",
        "cpus": "cores are not counted for one sample",
    },
}
"""Keys that say nothing about a problem, and why."""


def read(written: Written) -> PlacementQuestion:
    """The question; an InstanceError with every fault."""
    file, faults = written.read_as(PlacementFile), list[Fault]()
    built = draw(file, written.files, lambda path, message: faults.append(written.fault(f"graph.{path}".rstrip("."), message)))
    faults += [written.fault(path, message) for path, message in _faults(file, built)]
    if faults or built is None:
        raise written.refused(faults)
    in_seconds = file.edge_unit == "s"
    return PlacementQuestion(
        name=file.name or Path(written.source).stem,
        graph=replace(built.graph, transfer=built.graph.transfer * 1e3) if in_seconds else built.graph,
        accelerators=built.accelerators or 0,
        cpus=_cpus(file, built),
        memory=float("inf") if built.memory is None else _limit_of_sums(built.memory, built.graph.size),
        problem=file.problem,
        contiguity=file.contiguous or "stages",
        communication=file.transfers or "calls",
        pieces=file.pieces or 1,
        notes=() if in_seconds else built.notes,
        document=written.document,
        samples=built.samples,
    )


def _limit_of_sums(memory: float, sizes: Array) -> float:
    """A float between the sums of these decimals that are within the memory and those that are not, so that sums as computed, in whatever
    order, are on the same side as exact ones; the memory where sizes are whole bytes, or have too many digits for that."""
    places = max((-int(Decimal(repr(size)).normalize().as_tuple().exponent) for size in sizes.tolist()), default=0)
    unit, off = Fraction(1, 10 ** max(places, 0)), Fraction(float(sizes.sum())) * len(sizes) / 2**52
    within = exact(memory) // unit * unit
    return float(within + min(within * _SLIGHTLY, unit / 4)) if places > 0 and off < min(within * _SLIGHTLY, unit / 4) else memory


def _cpus(file: PlacementFile, built: Drawn) -> int:
    return 1 if file.problem == "latency" else built.cpus or 0


def _faults(file: PlacementFile, built: Drawn | None) -> list[tuple[str, str]]:
    """What no single value shows, by its path."""
    found = [
        (key, f"this does not apply to {file.problem}: {why} (leave it out)")
        for key, why in _USELESS[file.problem].items()
        if getattr(file, key) is not None
    ]
    if file.edge_unit is not None and file.graph.file is None:
        found.append(("edge_unit", "its figures have units, or come from the cost model (leave this out, which is for graphs in JSON)"))
    if built is None:
        return found
    if built.accelerators is None:
        return [*found, ("devices", "this key is missing, the number of accelerators is needed (or --devices)")]
    cpus = _cpus(file, built)
    if not 1 <= built.accelerators + cpus <= MOST_DEVICES:
        text = (
            f"{built.accelerators} accelerators and {cpus} CPU{'s' * (cpus != 1)} are given, 1 to {MOST_DEVICES} devices in all are needed"
        )
        found.append((next((key for key in ("devices", "cpus") if getattr(file, key) is not None), "graph.file"), text))
    return found


def size_of(question: PlacementQuestion) -> str:
    """How large a question is."""
    graph = question.graph
    counts = ((len(graph), "node"), (len(graph.source), "edge"), (question.accelerators, "accelerator"), (question.cpus, "CPU"))
    nodes, edges, accelerators, cpus = (f"{number:,} {noun}{'' if number == 1 else 's'}" for number, noun in counts)
    return f"{nodes} with {edges} on {accelerators} and {cpus}"


def too_large(question: PlacementQuestion) -> tuple[str, ...]:
    """Why no placement can keep the memory, whatever the order of the nodes; nothing where that is not plain."""
    graph = question.graph
    if question.cpus:
        return ()
    unplaced = [row for row in range(len(graph)) if np.isinf(graph.accelerator_time[row])]
    if unplaced:
        return (f"no accelerator runs node {graph.ids[unplaced[0]]}, and there is no CPU (--cpus 1)",)
    sizes = class_sizes(graph)
    largest = max(sizes, key=lambda colour: sizes[colour])
    if sizes[largest] * _SURELY > question.memory:
        rows = [str(graph.ids[row]) for row in np.flatnonzero(graph.colour == largest)[:4]]
        named = f"node {rows[0]} needs" if len(rows) == 1 else f"nodes {', '.join(rows)} together need"
        return (f"{named} {sizes[largest]:,.0f} bytes on one accelerator of {question.memory:,.0f}",)
    total = float(graph.size.sum())
    if total * _SURELY > question.memory * question.accelerators:
        text = f"{total:,.0f} bytes in all do not fit {question.accelerators} accelerators of {question.memory:,.0f}"
        return (f"{text}; at least {total / question.accelerators:,.0f} bytes each would be needed",)
    return ()


def class_sizes(graph: Graph) -> dict[int, float]:
    """Bytes of the nodes of each colour."""
    return dict(enumerate(np.bincount(graph.colour, graph.size).tolist()))
