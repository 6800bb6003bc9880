"""From a file and settings to a `PiperQuestion`, and the same again from a saved result."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import floor
from pathlib import Path
from typing import Any, Literal, get_args

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.graphs import read_json
from crossopt.instances.files.quantities import Bandwidth, Bytes
from crossopt.instances.files.settings import with_settings
from crossopt.instances.stages.piper.graph import PARTS, Part, PiperGraph, PiperQuestion, narrowed
from crossopt.instances.stages.piper.reader import piper_graph_of

TimeUnit = Literal["s", "ms"]
MOST_DEVICES, MOST_MICROBATCHES = 1 << 14, 1 << 20
_MOST_MEMORY = 1 << 52
_SECONDS: dict[TimeUnit, float] = {"s": 1.0, "ms": 1e-3}


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a graph; None leaves it to the file."""

    devices: int | None = None
    memory: Bytes | None = None
    bandwidth: Bandwidth | None = None
    microbatches: int | None = None
    without: tuple[Part, ...] = ()
    time_unit: TimeUnit = "s"


def read_piper(path: Path, asked: Asked) -> PiperQuestion:
    """The question about the graph in a file; an InstanceError with every fault."""
    text, document = read_json(path)
    return _question(document, str(path), asked, text)


def read(path: Path, settings: tuple[str, ...] = (), asked: Asked | None = None) -> PiperQuestion:
    """The same with settings laid over what is asked."""
    return read_piper(path, with_settings(asked or Asked(), settings, str(path)))


def size_of(question: PiperQuestion) -> str:
    """How large the question is, in words."""
    return f"{len(question.graph):,} layers for {question.devices:,} devices and {question.microbatches:,} microbatches"


def read_again(document: Mapping[str, Any], folder: Path) -> PiperQuestion:
    """The question inside a saved result, which holds the text of its graph."""
    del folder
    text, source, asked = document.get("text"), document.get("source"), document.get("asked")
    if not isinstance(text, str) or not isinstance(source, str) or not isinstance(asked, dict):
        raise InstanceError("result", [Fault(1, 1, "question", "the text of the question is missing")])
    try:
        return _question(json.loads(text), source, _asked(asked), text)
    except (TypeError, ValueError) as error:
        raise InstanceError("result", [Fault(1, 1, "question", f"the question cannot be read: {error}")]) from error


def parts_of(words: str) -> tuple[Part, ...]:
    """The parts that are named, in the order of `PARTS`; a ValueError in words where one is unknown."""
    named = [word.strip() for word in words.split(",")]
    unknown = [word for word in named if word not in PARTS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is none of {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in named)


def _asked(words: Mapping[str, Any]) -> Asked:
    without = words.get("without")
    asked = Asked(**{**words, "without": parts_of(",".join(without)) if without else ()})
    if asked.time_unit not in get_args(TimeUnit):
        raise ValueError(f"{asked.time_unit!r} is none of {', '.join(get_args(TimeUnit))}")
    if any(type(count) is not int or count < 0 for count in (asked.devices, asked.microbatches) if count is not None):
        raise ValueError("devices and microbatches are whole numbers, 0 or more")
    if any(type(size) not in (int, float) or not size >= 0 for size in (asked.memory, asked.bandwidth) if size is not None):
        raise ValueError("memory and bandwidth are numbers, 0 or more")
    return asked


def faults_of(asked: Asked) -> list[str]:
    """What no graph can be asked, each with the option that says so."""
    devices, microbatches = (1 if count is None else count for count in (asked.devices, asked.microbatches))
    rules = _rules(devices, 1.0 if asked.bandwidth is None else asked.bandwidth, microbatches)
    return [f"{option}: {words}" for option, _, words, holds in rules if not holds]


def _rules(devices: int, bandwidth: float, microbatches: int) -> tuple[tuple[str, str, str, bool], ...]:
    """The option, the key of the file, what is wrong and whether it is not."""
    most_devices, most = MOST_DEVICES, MOST_MICROBATCHES
    return (
        ("--devices", "maxDevices", f"{devices} devices are given, 1 to {most_devices:,} are needed", 1 <= devices <= most_devices),
        ("--bandwidth", "bandwidth", f"{bandwidth} bytes/s are given, 1 to 1e15 are needed", 1.0 <= bandwidth <= 1e15),
        ("--microbatches", "mbsInBatch", f"{microbatches} microbatches are given, 1 to {most:,} are needed", 1 <= microbatches <= most),
    )


def _question(document: Any, source: str, asked: Asked, text: str) -> PiperQuestion:  # noqa: ANN401
    graph, machine, notes = piper_graph_of(document, source, _SECONDS[asked.time_unit])
    devices = machine.devices if asked.devices is None else asked.devices
    memory = machine.memory if asked.memory is None else asked.memory
    bandwidth = machine.bandwidth if asked.bandwidth is None else asked.bandwidth
    microbatches = machine.microbatches if asked.microbatches is None else asked.microbatches
    rules = _rules(devices, bandwidth, microbatches)
    faults = [Fault(1, 1, path, f"{words} ({option})") for option, path, words, holds in rules if not holds]
    if faults:
        raise InstanceError(source, faults)
    question = PiperQuestion(
        name=Path(source).stem,
        graph=graph,
        devices=devices,
        memory=floor(min(memory, _MOST_MEMORY)),
        bandwidth=bandwidth,
        microbatches=microbatches,
        without=(),
        notes=notes,
        document={"source": source, "asked": {**asdict(asked), "without": list(asked.without)}, "text": text},
    )
    question = narrowed(question, asked.without)
    _refuse_nothing(question.graph, source, asked.without)
    return question


def _refuse_nothing(graph: PiperGraph, source: str, without: tuple[Part, ...]) -> None:
    """Layers that no configuration is left for."""
    faults = [
        Fault(1, 1, f"nodes[{row}].TMPCs", f"no configuration is left without {' and '.join(without)} (leave a part of --without away)")
        for row, offer in enumerate(graph.offers)
        if not offer
    ]
    if faults:
        raise InstanceError(source, faults)
