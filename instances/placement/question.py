"""From a file and settings to a `PlacementQuestion`, and the same again from a saved result."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from instances.document import Fault, InstanceError
from instances.placement.fiddle import graph_of, read_json
from instances.placement.graph import Communication, Contiguity, Graph, PlacementQuestion, Problem

TransferUnit = Literal["ms", "s"]
MOST_DEVICES = 1024
_SURELY = 1.0 - 1e-12
"""Sums of sizes are lowered by more than rounding can have raised them before anything is called impossible."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a graph; None leaves it to the file."""

    problem: Problem = "throughput"
    contiguity: Contiguity = "stages"
    communication: Communication = "calls"
    accelerators: int | None = None
    cpus: int | None = None
    memory: float | None = None
    pieces: int = 1
    transfer_unit: TransferUnit = "ms"


def read_placement(path: Path, asked: Asked) -> PlacementQuestion:
    """The question about the graph in a file; an InstanceError with every fault."""
    text, document = read_json(path)
    return _question(document, str(path), asked, text)


def placement_again(document: Mapping[str, Any]) -> PlacementQuestion:
    """The question inside a saved result."""
    text, source, asked = document.get("text"), document.get("source"), document.get("asked")
    if not isinstance(text, str) or not isinstance(source, str) or not isinstance(asked, dict):
        raise InstanceError("result", [Fault(1, 1, "instance", "the text of the question is missing")])
    try:
        return _question(json.loads(text), source, _asked(asked), text)
    except (TypeError, ValueError) as error:
        raise InstanceError("result", [Fault(1, 1, "instance", f"the question cannot be read: {error}")]) from error


def _asked(words: Mapping[str, Any]) -> Asked:
    asked = Asked(**words)
    known = ((asked.problem, Problem), (asked.contiguity, Contiguity), (asked.communication, Communication))
    for word, words_known in (*known, (asked.transfer_unit, TransferUnit)):
        if word not in get_args(words_known):
            raise ValueError(f"{word!r} is none of {', '.join(get_args(words_known))}")
    counts = (asked.accelerators, asked.cpus, asked.pieces)
    if not asked.pieces or any(type(count) is not int or count < 0 for count in (0 if count is None else count for count in counts)):
        raise ValueError("devices and pieces are whole numbers, and there is a piece at least")
    if asked.memory is not None and (type(asked.memory) not in (int, float) or asked.memory < 0):
        raise ValueError("a memory is a number of bytes, 0 or more")
    return asked


def _question(document: Any, source: str, asked: Asked, text: str) -> PlacementQuestion:  # noqa: ANN401
    graph, limits, notes = graph_of(document, source)
    accelerators = limits.accelerators if asked.accelerators is None else asked.accelerators
    cpus = 1 if asked.problem == "latency" else limits.cpus if asked.cpus is None else asked.cpus
    if not 1 <= accelerators + cpus <= MOST_DEVICES:
        words = f"{accelerators} accelerators and {cpus} CPUs are given, 1 to {MOST_DEVICES} devices are needed"
        raise InstanceError(source, [Fault(1, 1, "maxFPGAs", f"{words} (--devices, --cpus)")])
    if asked.transfer_unit == "s":
        graph, notes = replace(graph, transfer=graph.transfer * 1e3), ()
    return PlacementQuestion(
        name=Path(source).stem,
        graph=graph,
        accelerators=accelerators,
        cpus=cpus,
        memory=limits.memory if asked.memory is None else asked.memory,
        problem=asked.problem,
        contiguity=asked.contiguity,
        communication=asked.communication,
        pieces=asked.pieces,
        notes=notes,
        document={"source": source, "asked": asdict(asked), "text": text},
    )


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
