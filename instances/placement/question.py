"""From what is written, a graph in JSON with settings or a question in YAML, to a `PlacementQuestion`."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from crossopt.instances.errors import Fault
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.written import Written
from crossopt.instances.placement.drawn import Drawn, draw
from crossopt.instances.placement.graph import Graph, PlacementQuestion
from crossopt.instances.placement.section import PlacementFile

MOST_DEVICES = 1024
_SURELY = 1.0 - 1e-12
"""Sums of sizes are lowered by more than rounding can have raised them before anything is called impossible."""
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
    faults: list[Fault] = []
    file = read_as(PlacementFile, written.root, faults)
    if file is None:
        raise written.refused(faults)
    drawn = draw(file, written.files, lambda path, message: faults.append(written.fault(f"graph.{path}".rstrip("."), message)))
    faults += [written.fault(path, message) for path, message in _faults(file, drawn)]
    if faults or drawn is None:
        raise written.refused(faults)
    in_seconds = file.edge_unit == "s"
    return PlacementQuestion(
        name=file.name or Path(written.source).stem,
        graph=replace(drawn.graph, transfer=drawn.graph.transfer * 1e3) if in_seconds else drawn.graph,
        accelerators=drawn.accelerators or 0,
        cpus=_cpus(file, drawn),
        memory=float("inf") if drawn.memory is None else drawn.memory,
        problem=file.problem,
        contiguity=file.contiguous or "stages",
        communication=file.transfers or "calls",
        pieces=file.pieces or 1,
        notes=() if in_seconds else drawn.notes,
        document=written.document,
    )


def _cpus(file: PlacementFile, drawn: Drawn) -> int:
    return 1 if file.problem == "latency" else drawn.cpus or 0


def _faults(file: PlacementFile, drawn: Drawn | None) -> list[tuple[str, str]]:
    """What no single value shows, by its path."""
    found = [
        (key, f"this says nothing about {file.problem}: {why} (leave it out)")
        for key, why in _USELESS[file.problem].items()
        if getattr(file, key) is not None
    ]
    if file.edge_unit is not None and file.graph.file is None:
        found.append(("edge_unit", "its figures have units, or come from the cost model (leave this out, which is for graphs in JSON)"))
    if drawn is None:
        return found
    if drawn.accelerators is None:
        return [*found, ("devices", "this key is missing, the number of accelerators is needed (or --devices)")]
    cpus = _cpus(file, drawn)
    if not 1 <= drawn.accelerators + cpus <= MOST_DEVICES:
        words = (
            f"{drawn.accelerators} accelerators and {cpus} CPU{'s' * (cpus != 1)} are given, 1 to {MOST_DEVICES} devices in all are needed"
        )
        found.append((next((key for key in ("devices", "cpus") if getattr(file, key) is not None), "graph.file"), words))
    return found


def size_of(question: PlacementQuestion) -> str:
    """How large a question is."""
    graph = question.graph
    counts = ((len(graph), "node"), (len(graph.source), "edge"), (question.accelerators, "accelerator"), (question.cpus, "CPU"))
    nodes, edges, accelerators, cpus = (f"{number:,} {word}{'' if number == 1 else 's'}" for number, word in counts)
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
        words = f"{total:,.0f} bytes in all do not fit {question.accelerators} accelerators of {question.memory:,.0f}"
        return (f"{words}; at least {total / question.accelerators:,.0f} bytes each would be needed",)
    return ()


def class_sizes(graph: Graph) -> dict[int, float]:
    """Bytes of the nodes of each colour."""
    return dict(enumerate(np.bincount(graph.colour, graph.size).tolist()))
