"""The form of a question about a chain of layers (`kind: chain`), and what is asked of it, from a file and back from a saved result."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, fsum
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from crossflow.arrays import Array
from instances.document import Fault, InstanceError, Node, fault_at, read_file, read_text
from instances.quantities import Bandwidth, Bytes, Duration, Positive
from instances.schema import Bounds, Choice, Doc, read_as
from instances.units import quoted

Schedule = Literal["flush", "two-versions"]
Recompute = Literal["none", "full"]
MOST_LAYERS, MOST_DEVICES, MOST_MICROBATCHES = 2_048, 1 << 22, 1 << 24
_MOST_BYTES = float(1 << 52)
"""Sums of whole bytes up to twice this are exact."""


@dataclass(frozen=True, slots=True)
class WidthSection:
    """A layer spread over so many devices: what one of them does for one microbatch, and keeps."""

    forward: Duration
    backward: Duration
    parameters: Bytes
    activations: Annotated[Bytes, Doc("kept of one microbatch until its backward pass")]


@dataclass(frozen=True, slots=True)
class LayerSection:
    """A layer, or several alike in a row."""

    output: Annotated[Bytes, Doc("what it hands on for one microbatch")]
    widths: Annotated[dict[str, WidthSection], Doc("by number of devices")]
    name: str = "layer"
    count: Positive = 1


@dataclass(frozen=True, slots=True)
class FixedSection:
    """A plan to compare with: as many layers to a stage as makes them even."""

    stages: Positive
    data: Positive = 1
    width: Positive = 1


@dataclass(frozen=True, slots=True)
class ChainFile:
    """A question about a chain of layers."""

    kind: Literal["chain"]
    devices: Annotated[int, Bounds(1, MOST_DEVICES)]
    memory: Annotated[Bytes, Doc("of one device")]
    bandwidth: Annotated[Bandwidth, Doc("from any device to any other")]
    microbatches: Annotated[int, Bounds(1, MOST_MICROBATCHES), Doc("of a batch")]
    layers: tuple[LayerSection, ...]
    name: str | None = None
    description: str | None = None
    schedule: Annotated[Schedule, Doc("flush: the pipeline runs empty after a batch; two-versions: it never does (PipeDream-2BW)")] = (
        "flush"
    )
    recompute: Annotated[tuple[Recompute, ...], Choice()] = ("none", "full")
    microbatch: Annotated[tuple[int, ...], Bounds(1), Choice(), Doc("so many of the microbatches as one, for two-versions")] = (1,)
    overhead: Annotated[Duration, Doc("of each layer's times: what does not grow with the microbatch")] = 0.0
    copies: Annotated[int, Bounds(1, 100), Doc("of the parameters on a device: 2 for versions or gradients, 3 with Adam")] = 2
    divisible: Annotated[bool, Doc("replicas divide devices and microbatches")] = False
    fixed: FixedSection | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Width:
    """All layers at one width, as columns."""

    devices: int
    forward: Array
    backward: Array
    parameters: Array
    activations: Array


@dataclass(frozen=True, slots=True)
class ChainQuestion:
    """Which stages, replicas, width and recomputation make a batch quickest?"""

    name: str
    layers: tuple[str, ...]
    entering: Array
    """Bytes that enter each layer, and 0 behind the last."""
    widths: tuple[Width, ...]
    file: ChainFile
    document: dict[str, Any]


def read_chain(path: Path) -> ChainQuestion:
    """The question in a file; an InstanceError with every fault."""
    return _question(read_file(path), str(path), path.read_text(encoding="utf-8"))


def chain_again(document: Mapping[str, Any]) -> ChainQuestion:
    """The question inside a saved result."""
    text, source = document.get("text"), document.get("source")
    if not isinstance(text, str) or not isinstance(source, str):
        raise InstanceError("result", [Fault(1, 1, "instance", "the text of the question is missing")])
    return _question(read_text(text, source), source, text)


def _question(root: Node, source: str, text: str) -> ChainQuestion:
    faults = list[Fault]()
    file = read_as(ChainFile, root, faults)
    if file is not None:
        faults += [fault_at(root, path, message) for path, message in _faults(file)]
    if faults or file is None:
        raise InstanceError(source, faults)
    sections = [section for section in file.layers for _ in range(section.count)]
    return ChainQuestion(
        name=file.name or Path(source).stem,
        layers=tuple(section.name for section in sections),
        entering=np.array([0.0, *(float(ceil(section.output)) for section in sections[:-1]), 0.0]),
        widths=tuple(_width(sections, word) for word in sorted(file.layers[0].widths, key=int)),
        file=file,
        document={"source": source, "text": text},
    )


def _width(sections: list[LayerSection], word: str) -> Width:
    figures = [section.widths[word] for section in sections]
    return Width(
        int(word),
        np.array([figure.forward for figure in figures]),
        np.array([figure.backward for figure in figures]),
        np.array([float(ceil(figure.parameters)) for figure in figures]),
        np.array([float(ceil(figure.activations)) for figure in figures]),
    )


def _faults(file: ChainFile) -> list[tuple[str, str]]:
    """What no single value shows."""
    count = sum(section.count for section in file.layers)
    if not 1 <= count <= MOST_LAYERS:
        return [("layers", f"{count:,} layers are given, 1 to {MOST_LAYERS:,} are needed")]
    found = [fault for place, section in enumerate(file.layers) for fault in _width_faults(file, place, section)]
    if file.bandwidth == 0.0:
        found.append(("bandwidth", "zero is no bandwidth (give one above 0)"))
    if file.schedule == "flush" and file.microbatch != (1,):
        found.append(("microbatch", "microbatches are merged under `schedule: two-versions` only (remove this, or name that schedule)"))
    if file.schedule == "two-versions" and any(file.microbatches % size for size in file.microbatch):
        found.append(("microbatch", f"each must divide the {file.microbatches:,} microbatches of a batch"))
    if file.fixed is not None and str(file.fixed.width) not in file.layers[0].widths:
        found.append(("fixed.width", f"the layers have no width {file.fixed.width} (one of {', '.join(file.layers[0].widths)})"))
    if file.fixed is not None and file.fixed.stages > count:
        found.append(("fixed.stages", f"{file.fixed.stages:,} stages are more than the {count:,} layers (give fewer)"))
    return found + (_too_much(file, count) if not found else [])


def _width_faults(file: ChainFile, place: int, section: LayerSection) -> list[tuple[str, str]]:
    """Widths that are no numbers, or others than those of the first layer."""
    path, first = f"layers[{place}].widths", set(file.layers[0].widths)
    wrong = [word for word in section.widths if not word.isdecimal() or not 1 <= int(word) <= MOST_DEVICES or str(int(word)) != word]
    if wrong or not section.widths:
        word = quoted(wrong[0]) if wrong else "nothing"
        return [(path, f"{word} is no width (write a number of devices, such as '1: {{forward: 2 ms, ...}}')")]
    if set(section.widths) != first:
        return [(path, f"the widths {', '.join(section.widths)} are not those of the first layer, {', '.join(file.layers[0].widths)}")]
    return []


def _too_much(file: ChainFile, count: int) -> list[tuple[str, str]]:
    """Figures whose sums are not exact, or of which a time cannot be told."""
    most = max(file.microbatch)
    kept = [
        section.count * (file.copies * width.parameters + count * most * (width.activations + section.output))
        for section in file.layers
        for width in section.widths.values()
    ]
    found = [("layers", f"{fsum(kept):.3g} bytes in all are more than can be counted")] if fsum(kept) > _MOST_BYTES else []
    times = [width.forward + width.backward for section in file.layers for width in section.widths.values()]
    if max(times) + file.overhead > 1e9 or file.bandwidth < 1.0:
        found.append(("layers", "a layer takes more than 1e9 s, or a byte more than a second (mend the figures)"))
    return found
