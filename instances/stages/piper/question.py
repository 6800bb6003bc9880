"""The form of a question about a graph with configurations of its layers (`kind: piper`), of which the graph's own file says the rest."""

from dataclasses import dataclass
from math import floor
from pathlib import Path
from typing import Annotated, Literal

from crossopt.crossflow.fields import Bandwidth, Bounds, Bytes, Doc, Prose
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.graphs import read_json, text_of
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.written import Written
from crossopt.instances.stages.piper.graph import PARTS, Part, PiperGraph, PiperQuestion, narrowed
from crossopt.instances.stages.piper.reader import Machine, piper_graph_of

MOST_DEVICES, MOST_MICROBATCHES = 1 << 14, 1 << 20
_MOST_MEMORY = 1 << 52
_SECONDS = {"s": 1.0, "ms": 1e-3}


@dataclass(frozen=True, slots=True)
class PiperFile:
    """Which stages, replicas, splits and configurations make the busiest stage least busy?"""

    file: Annotated[str, Doc("a graph in the format of Piper's inputs, relative to this file, which says what is not said here")]
    kind: Annotated[Literal["piper"], Doc("the kind of question")] = "piper"
    name: Annotated[str | None, Doc("of the question; the file's where nothing is said")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
    devices: Annotated[int | None, Bounds(1, MOST_DEVICES), Doc("all of one kind; as the graph's file says where nothing is said")] = None
    memory: Annotated[Bytes | None, Doc("of one device")] = None
    bandwidth: Annotated[Bandwidth | None, Bounds(1.0, 1e15), Doc("from a device to others")] = None
    microbatches: Annotated[int | None, Bounds(1, MOST_MICROBATCHES), Doc("in a batch")] = None
    without: Annotated[tuple[Part, ...], Doc("parts that are not used")] = ()
    time_unit: Annotated[Literal["s", "ms"], Doc("of the times in the graph's file")] = "s"


def read(written: Written) -> PiperQuestion:
    """The question; an InstanceError with every fault."""
    faults: list[Fault] = []
    file = read_as(PiperFile, written.root, faults)
    if file is None:
        raise written.refused(faults)
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
    return [Fault(1, 1, path, words) for path, words, holds in rules if not holds]


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
