"""The form of a question about a chain of layers (`kind: chain`), and what is asked of it, from a file and back from a saved result."""

from dataclasses import dataclass
from math import ceil, fsum
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.fields import Bandwidth, Bounds, Bytes, Choice, Doc, Duration, Positive, Prose
from crossopt.instances.files.graphs import text_of
from crossopt.instances.files.units import quoted
from crossopt.instances.files.written import Written, short_repr
from crossopt.instances.stages.pipedream import Profile, profile_of

Schedule = Literal["flush", "two-versions"]
Recompute = Literal["none", "full"]
MOST_LAYERS, MOST_DEVICES, MOST_MICROBATCHES = 2_048, 1 << 22, 1 << 24
_MOST_BYTES = float(1 << 52)
"""Sums of whole bytes up to twice this are exact."""


@dataclass(frozen=True, slots=True)
class WidthSection:
    """A layer spread over so many devices: what one of them does for one microbatch, and keeps."""

    forward: Annotated[Duration, Doc("forward pass of one microbatch")]
    backward: Annotated[Duration, Doc("backward pass of one microbatch, without recomputation")]
    parameters: Annotated[Bytes, Doc("parameters on one device")]
    activations: Annotated[Bytes, Doc("activations stored for one microbatch until its backward pass")]


@dataclass(frozen=True, slots=True)
class LayerSection:
    """A layer, or several alike in a row."""

    output: Annotated[Bytes, Doc("size of the output of one microbatch")]
    widths: Annotated[dict[str, WidthSection], Doc("costs by number of devices")]
    name: Annotated[str, Doc("name of the layer")] = "layer"
    count: Annotated[Positive, Doc("number of consecutive identical layers")] = 1


@dataclass(frozen=True, slots=True)
class FixedSection:
    """A plan to compare with: as many layers to a stage as makes them even."""

    stages: Annotated[Positive, Doc("number of stages")]
    data: Annotated[Positive, Doc("replicas of each stage")] = 1
    width: Annotated[Positive, Doc("devices of each replica")] = 1


@dataclass(frozen=True, slots=True)
class ChainFile:
    """A question about a chain of layers."""

    kind: Annotated[Literal["chain"], Doc("problem type")]
    devices: Annotated[int, Bounds(1, MOST_DEVICES), Doc("number of identical devices")]
    memory: Annotated[Bytes, Doc("memory of one device")]
    bandwidth: Annotated[Bandwidth, Doc("bandwidth between any two devices")]
    microbatches: Annotated[int, Bounds(1, MOST_MICROBATCHES), Doc("number of microbatches per batch")]
    layers: Annotated[tuple[LayerSection, ...], Doc("layers in order")] = ()
    profile: Annotated[str | None, Doc("path of a profile that is a chain, instead of `layers`")] = None
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
    schedule: Annotated[Schedule, Doc("flush: the pipeline drains after each batch; two-versions: it never drains (PipeDream-2BW)")] = (
        "flush"
    )
    recompute: Annotated[tuple[Recompute, ...], Choice(), Doc("recomputation options of a stage")] = ("none", "full")
    microbatch: Annotated[tuple[int, ...], Bounds(1), Choice(), Doc("numbers of microbatches processed as one, for `two-versions`")] = (1,)
    overhead: Annotated[Duration, Doc("part of each layer's times that does not grow with the microbatch")] = 0.0
    copies: Annotated[int, Bounds(1, 100), Doc("copies of the parameters on a device: 2 with versions or gradients, 3 with Adam")] = 2
    divisible: Annotated[bool, Doc("whether replicas must divide devices and microbatches")] = False
    fixed: Annotated[FixedSection | None, Doc("plan for comparison")] = None


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

    __repr__ = short_repr


def read(written: Written) -> ChainQuestion:
    """The question; an InstanceError with every fault."""
    file = written.read_as(ChainFile)
    found = _faults(file)
    if not found:
        names, entering, widths = _layers(file) if file.profile is None else _layers_of(_profile(written, file.profile))
        found = _faults_together(file, names, entering, widths)
    written.refuse(found)
    return ChainQuestion(file.name or Path(written.source).stem, names, entering, widths, file, written.document)


def size_of(question: ChainQuestion) -> str:
    """How large the question is, in words."""
    layers, widths = len(question.layers), len(question.widths)
    return f"{layers:,} layers of {widths} width{'s' * (widths != 1)} on {question.file.devices:,} devices"


def _profile(written: Written, name: str) -> Profile:
    with written.reading("profile"):
        return profile_of(written.files.text(name, text_of), name)


def _layers(file: ChainFile) -> tuple[tuple[str, ...], Array, tuple[Width, ...]]:
    """Names, bytes that enter, and columns of the layers that a file lists."""
    sections = [section for section in file.layers for _ in range(section.count)]
    entering = np.array([0.0, *(float(ceil(section.output)) for section in sections[:-1]), 0.0])
    widths = tuple(_width(sections, key) for key in sorted(file.layers[0].widths, key=int))
    return tuple(section.name for section in sections), entering, widths


def _layers_of(profile: Profile) -> tuple[tuple[str, ...], Array, tuple[Width, ...]]:
    """Names, bytes that enter, and columns of the layers of a profile. What enters a layer is all that it and later layers take from
    earlier ones."""
    last = np.arange(len(profile))
    for start, end in profile.edges:
        last[start] = max(last[start], end)
    entering = np.array([fsum(profile.activation[:cut][last[:cut] >= cut]) for cut in range(len(profile) + 1)])
    return profile.ids, entering, (Width(1, profile.forward, profile.backward, profile.parameters, profile.activation),)


def _width(sections: list[LayerSection], key: str) -> Width:
    figures = [section.widths[key] for section in sections]
    return Width(
        int(key),
        np.array([figure.forward for figure in figures]),
        np.array([figure.backward for figure in figures]),
        np.array([float(ceil(figure.parameters)) for figure in figures]),
        np.array([float(ceil(figure.activations)) for figure in figures]),
    )


def _faults(file: ChainFile) -> list[tuple[str, str]]:
    """What no single value shows."""
    count = sum(section.count for section in file.layers)
    if (file.profile is None) == (not file.layers):
        return [("layers", "layers or a profile are needed, and not both")]
    if file.profile is None and not 1 <= count <= MOST_LAYERS:
        return [("layers", f"{count:,} layers are given, 1 to {MOST_LAYERS:,} are needed")]
    found = [fault for index, section in enumerate(file.layers) for fault in _width_faults(file, index, section)]
    if file.bandwidth < 1.0:
        found.append(("bandwidth", "less than a byte a second is no bandwidth (give more)"))
    if file.schedule == "flush" and file.microbatch != (1,):
        found.append(("microbatch", "microbatches are merged under `schedule: two-versions` only (remove this, or name that schedule)"))
    if file.schedule == "two-versions" and any(file.microbatches % size for size in file.microbatch):
        found.append(("microbatch", f"each must divide the {file.microbatches:,} microbatches of a batch"))
    return found


def _width_faults(file: ChainFile, index: int, section: LayerSection) -> list[tuple[str, str]]:
    """Widths that are no numbers, or others than those of the first layer."""
    path, first = f"layers[{index}].widths", set(file.layers[0].widths)
    wrong = [key for key in section.widths if not key.isdecimal() or not 1 <= int(key) <= MOST_DEVICES or str(int(key)) != key]
    if wrong or not section.widths:
        example = quoted(wrong[0]) if wrong else "nothing"
        return [(path, f"{example} is no width (write a number of devices, such as '1: {{forward: 2 ms, ...}}')")]
    if set(section.widths) != first:
        return [(path, f"the widths {', '.join(section.widths)} are not those of the first layer, {', '.join(file.layers[0].widths)}")]
    return []


def _faults_together(file: ChainFile, names: tuple[str, ...], entering: Array, widths: tuple[Width, ...]) -> list[tuple[str, str]]:
    """Faults that only all layers together show: inexact sums, times that cannot be computed, and a plan that the layers do not offer."""
    count, most, path = len(names), max(file.microbatch), "layers" if file.profile is None else "profile"
    if count > MOST_LAYERS:
        return [(path, f"{count:,} layers are given, 1 to {MOST_LAYERS:,} are needed")]
    with np.errstate(over="ignore"):  # as long as it is not too much, every sum of whole bytes is exact
        stored = max(
            float(file.copies * width.parameters.sum() + count * most * (width.activations.sum() + entering.sum())) for width in widths
        )
        longest = max(float((width.forward + width.backward).max()) for width in widths) + file.overhead
    found = [(path, f"{stored:.3g} bytes in all are more than can be counted")] if stored > _MOST_BYTES else []
    if longest > 1e9:
        found.append((path, "a layer takes more than 1e9 s (mend the figures)"))
    known = [width.devices for width in widths]
    if file.fixed is not None and file.fixed.width not in known:
        found.append(("fixed.width", f"the layers have no width {file.fixed.width} (one of {', '.join(map(str, known))})"))
    if file.fixed is not None and file.fixed.stages > count:
        found.append(("fixed.stages", f"{file.fixed.stages:,} stages are more than the {count:,} layers (give fewer)"))
    return found
