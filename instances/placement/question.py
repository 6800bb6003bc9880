"""From a file and what is asked of it to a `PlacementQuestion`, and the same again from a saved result."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import Node, read_file, read_text
from crossopt.instances.files.graphs import read_json
from crossopt.instances.files.settings import laid_over, with_setting
from crossopt.instances.placement.formats import graph_of
from crossopt.instances.placement.graph import Communication, Contiguity, Graph, PlacementQuestion, Problem
from crossopt.instances.placement.section import PlacementFile
from crossopt.instances.placement.written import written

TransferUnit = Literal["ms", "s"]
MOST_DEVICES = 1024
_SURELY = 1.0 - 1e-12
"""Sums of sizes are lowered by more than rounding can have raised them before anything is called impossible."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a graph on the command line; None leaves it to the file, and then to what is usual."""

    problem: Problem | None = None
    contiguity: Contiguity | None = None
    communication: Communication | None = None
    accelerators: int | None = None
    cpus: int | None = None
    memory: float | None = None
    pieces: int | None = None
    transfer_unit: TransferUnit | None = None
    settings: tuple[str, ...] = ()
    """Values laid over a question in YAML; a graph in JSON takes none."""


_WORDS = {"problem": Problem, "contiguity": Contiguity, "communication": Communication, "transfer_unit": TransferUnit}


def read_placement(path: Path, asked: Asked) -> PlacementQuestion:
    """The question in a file, a graph in JSON or a question in YAML; an InstanceError with every fault."""
    if path.suffix.lower() == ".json":
        text, document = read_json(path)
        return _question(_of_json(document, str(path)), str(path), asked, text)
    root = read_file(path)
    return _question(_of_yaml(root, str(path), asked, None), str(path), asked, path.read_text(encoding="utf-8"))


def read(path: Path, settings: tuple[str, ...] = ()) -> PlacementQuestion:
    """The question in a file with values laid over it; an InstanceError with every fault."""
    if settings and path.suffix.lower() == ".json":
        raise InstanceError(str(path), [Fault(1, 1, "", f"--set {settings[0]}: settings are for questions in YAML")])
    return read_placement(path, Asked(settings=settings))


def read_again(document: Mapping[str, Any], folder: Path) -> PlacementQuestion:
    """The question inside a saved result, which holds all that it needs."""
    del folder
    question, asked = placement_again(document), document["asked"]
    if question.problem == "latency" and asked.get("cpus") is not None:
        raise InstanceError("result", [Fault(1, 1, "question.asked.cpus", "cores are not counted for one sample")])
    return question


def size_of(question: PlacementQuestion) -> str:
    """How large a question is."""
    graph = question.graph
    counts = ((len(graph), "node"), (len(graph.source), "edge"), (question.accelerators, "accelerator"), (question.cpus, "CPU"))
    nodes, edges, accelerators, cpus = (f"{number:,} {word}{'' if number == 1 else 's'}" for number, word in counts)
    return f"{nodes} with {edges} on {accelerators} and {cpus}"


def placement_again(document: Mapping[str, Any]) -> PlacementQuestion:
    """The question inside a saved result."""
    text, source, words, graph = (document.get(key) for key in ("text", "source", "asked", "graph"))
    if not isinstance(text, str) or not isinstance(source, str) or not isinstance(words, dict) or not isinstance(graph, str | None):
        raise InstanceError("result", [Fault(1, 1, "instance", "the text of the question is missing")])
    try:
        asked = _asked(words)
        json_form = Path(source).suffix.lower() == ".json"
        said = _of_json(json.loads(text), source) if json_form else _of_yaml(read_text(text, source), source, asked, graph)
        return _question(said, source, asked, text)
    except (TypeError, ValueError) as error:
        raise InstanceError("result", [Fault(1, 1, "instance", f"the question cannot be read: {error}")]) from error


def _asked(words: Mapping[str, Any]) -> Asked:
    asked = Asked(**words)
    for name, known in _WORDS.items():
        word = getattr(asked, name)
        if word is not None and word not in get_args(known):
            raise ValueError(f"{word!r} is none of {', '.join(get_args(known))}")
    counts = [count for count in (asked.accelerators, asked.cpus, asked.pieces) if count is not None]
    if any(type(count) is not int or count < 0 for count in counts) or asked.pieces == 0:
        raise ValueError("devices are whole numbers, 0 or more, and there is a piece at least")
    if asked.memory is not None and (type(asked.memory) not in (int, float) or not asked.memory >= 0):
        raise ValueError("a memory is a number of bytes, 0 or more")
    settings: Any = asked.settings
    if not isinstance(settings, list | tuple) or not all(isinstance(setting, str) for setting in settings):
        raise ValueError("settings are a list of texts")
    return replace(asked, settings=tuple(settings))


@dataclass(frozen=True, slots=True)
class _Said:
    """What the file says."""

    graph: Graph
    accelerators: int
    cpus: int
    memory: float
    notes: tuple[str, ...]
    file: PlacementFile | None = None
    graph_text: str | None = None


def _of_json(document: Any, source: str) -> _Said:  # noqa: ANN401
    graph, limits, notes = graph_of(document, source)
    return _Said(graph, limits.accelerators, limits.cpus, limits.memory, notes)


def _of_yaml(root: Node, source: str, asked: Asked, graph_text: str | None) -> _Said:
    for setting in asked.settings:
        root = laid_over(root, setting, source)
    try:
        found = written(root, source, graph_text)
    except InstanceError as error:
        raise InstanceError(error.source, [with_setting(fault, asked.settings) for fault in error.faults]) from error
    if found.accelerators is None and asked.accelerators is None:
        raise InstanceError(source, [Fault(1, 1, "devices", "this key is missing, the number of accelerators is needed (or --devices)")])
    memory = float("inf") if found.memory is None else found.memory
    return _Said(found.graph, found.accelerators or 0, found.cpus or 0, memory, found.notes, found.file, found.text)


def faults_of(asked: Asked) -> list[str]:
    """What no graph can be asked, each with the option that says so."""
    counts = (("--devices", asked.accelerators), ("--cpus", asked.cpus))
    words = f"1 to {MOST_DEVICES} devices in all are needed"
    faults = [f"{option}: {count} are too many, {words}" for option, count in counts if count is not None and count > MOST_DEVICES]
    if asked.accelerators == asked.cpus == 0:
        faults.append(f"--devices, --cpus: there is none of either, {words}")
    return faults


def _question(said: _Said, source: str, asked: Asked, text: str) -> PlacementQuestion:
    accelerators = said.accelerators if asked.accelerators is None else asked.accelerators
    file = said.file
    problem: Problem = asked.problem or (file and file.problem) or "throughput"
    cpus = 1 if problem == "latency" else said.cpus if asked.cpus is None else asked.cpus
    if not 1 <= accelerators + cpus <= MOST_DEVICES:
        words = f"{accelerators} accelerators and {cpus} CPU{'s' * (cpus != 1)} are given, 1 to {MOST_DEVICES} devices in all are needed"
        raise InstanceError(source, [Fault(1, 1, "maxFPGAs" if said.file is None else "devices", f"{words} (--devices, --cpus)")])
    graph, notes = said.graph, said.notes
    if asked.transfer_unit is not None and file is not None and said.graph_text is None:
        words = "its figures have units, or come from the cost model (leave out --edge-unit, which is for graphs in JSON)"
        raise InstanceError(source, [Fault(1, 1, "graph", words)])
    if asked.transfer_unit == "s":
        graph, notes = replace(graph, transfer=graph.transfer * 1e3), ()
    return PlacementQuestion(
        name=(file and file.name) or Path(source).stem,
        graph=graph,
        accelerators=accelerators,
        cpus=cpus,
        memory=said.memory if asked.memory is None else asked.memory,
        problem=problem,
        contiguity=asked.contiguity or (file and file.contiguous) or "stages",
        communication=asked.communication or (file and file.transfers) or "calls",
        pieces=asked.pieces or (file and file.pieces) or 1,
        notes=notes,
        document={"source": source, "asked": {**asdict(asked), "settings": list(asked.settings)}, "text": text, "graph": said.graph_text},
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
