"""The graph of a question: operators that are written out, read from a file in JSON, or generated from a model and a device."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossopt.crossflow.operators import Operator, blocks, operators
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.registry import UnknownNameError, build_device, device
from crossopt.instances.catalogue.workload import Report, WorkloadSection, build_workload
from crossopt.instances.files.careful import why_unreadable
from crossopt.instances.files.graphs import GREATEST, cycle_of, read_json, text_of
from crossopt.instances.files.units import quoted
from crossopt.instances.files.written import Files
from crossopt.instances.placement.formats import graph_of
from crossopt.instances.placement.graph import Graph
from crossopt.instances.placement.section import GraphSection, NodeSection, PlacementFile

_MILLISECONDS = 1e3
_CPU = 10.0
"""How many times longer an operator takes on a CPU where nothing is said, as in the published layer graphs."""
_WAYS = ("file", "nodes", "workload")
_GENERATED = ("hardware", "bandwidth")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A graph, and what is said of the machine; None where nothing is."""

    graph: Graph
    accelerators: int | None
    cpus: int | None
    memory: float | None
    notes: tuple[str, ...] = ()


def draw(file: PlacementFile, files: Files, report: Report) -> Drawn | None:
    """The graph that a question speaks of; None after every fault of its section was reported."""
    section = file.graph
    given = [way for way in _WAYS if getattr(section, way) is not None]
    if len(given) != 1:
        problem = f"{' and '.join(given)} are given at once" if given else "no graph is given"
        report(given[1] if given else "", f"{problem} (give exactly one of {', '.join(_WAYS)})")
        return None
    for key in _GENERATED if section.workload is None else ():
        if getattr(section, key) is not None:
            report(key, "this belongs to graphs that are generated from a workload (remove it)")
    if section.file is not None:
        try:
            return _from_file(file, section.file, files)
        except OSError as error:
            report("file", f"{why_unreadable(error)}; paths begin at the question")
            return None
    if section.nodes is not None:
        graph = _from_nodes(section.nodes, report)
        return None if graph is None else Drawn(graph, file.devices, file.cpus, file.memory)
    return _generated(file, section, files, report)


def _from_file(file: PlacementFile, name: str, files: Files) -> Drawn:
    source = str(files.path(name))
    graph, limits, notes = graph_of(read_json(files.text(name, text_of), source), source)
    asked = (file.devices, file.cpus, file.memory)
    accelerators, cpus, memory = (
        theirs if own is None else own for own, theirs in zip(asked, (limits.accelerators, limits.cpus, limits.memory), strict=True)
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
        source=np.array([one for one, _ in edges], np.int64),
        target=np.array([other for _, other in edges], np.int64),
    )


def _on_cpu(node: NodeSection) -> float:
    if node.cpu_time is not None:
        return node.cpu_time
    return _CPU * (node.time or 0.0)


def _column(figures: list[float]) -> Any:  # noqa: ANN401 - numpy's own
    return np.array(figures, np.float64)


def _generated(file: PlacementFile, section: GraphSection, files: Files, report: Report) -> Drawn | None:
    workload = section.workload
    if workload is None or section.hardware is None:
        report("hardware", "a generated graph needs a device (such as hardware: a100-80g; `crossopt list hardware` names them)")
        return None
    if section.bandwidth is not None and section.bandwidth < 1.0:
        report("bandwidth", "less than a byte a second is no bandwidth (give more)")
        return None
    model = _transformer(workload, files, report)
    if model is None:
        return None
    try:
        hardware = build_device(device(section.hardware), section.hardware, model.precision, 2)
    except (UnknownNameError, ValueError) as error:
        report("hardware", str(error))
        return None
    nodes = operators(model, hardware, section.microbatch)
    rate = section.bandwidth or float(np.asarray(hardware.links[0].bandwidth).item())
    graph = graph_of_operators(model, blocks(nodes) if section.granularity == "layer" else nodes, section, rate)
    room = float(np.asarray(hardware.dram.capacity).item()) - hardware.reserved_memory
    return Drawn(graph, file.devices, file.cpus, room if file.memory is None else file.memory)


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
    """Operators as a graph; for training with a backward pass that runs against it and hands back gradients of what came in.

    An operator has its weights on the accelerator, in training with gradients and the optimizer's state, and the activations it hands on.
    """
    rows = {node.name: row for row, node in enumerate(nodes)}
    count, training = len(nodes), section.training
    forward = [(rows[before], row) for row, node in enumerate(nodes) for before in node.after]
    edges = [*forward, *((count + other, count + one) for one, other in forward), (count - 1, 2 * count - 1)] if training else forward
    state = model.weight_bytes + (model.gradient_bytes + model.optimizer_bytes if training else 0.0)
    sizes = [node.weights * state + node.output for node in nodes]
    sent = [node.output for node in nodes]
    back = [max((nodes[rows[before]].output for before in node.after), default=0.0) for node in nodes]
    time = np.array([node.forward for node in nodes] + [node.backward for node in nodes] * training, np.float64) * _MILLISECONDS
    return Graph(
        ids=tuple(node.name for node in nodes) + tuple(f"{node.name}, backward" for node in nodes) * training,
        names=tuple(node.name for node in nodes) * (1 + training),
        accelerator_time=time,
        cpu_time=time * section.cpu_slowdown,
        size=_column(sizes + [0.0] * count * training),
        transfer=_column(sent + back * training) / rate * _MILLISECONDS,
        backward=np.arange(len(time)) >= count,
        colour=np.arange(len(time)) % count,
        source=np.array([one for one, _ in edges], np.int64),
        target=np.array([other for _, other in edges], np.int64),
    )
