"""The form of a question about a profile (`kind: pipedream`): which layers form a stage, and how often is each stage replicated?"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

from crossopt.crossflow.fields import Bandwidth, Bounds, Bytes, Doc, Prose
from crossopt.instances.errors import Fault
from crossopt.instances.files.document import Node, Scalar
from crossopt.instances.files.graphs import text_of
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.written import Written
from crossopt.instances.stages.pipedream.profile import Profile, profile_of

MOST_DEVICES, MOST_LEVELS = 1024, 3


@dataclass(frozen=True, slots=True)
class PipedreamFile:
    """Which layers of a profile form a stage, and how often is each stage replicated?"""

    file: Annotated[str, Doc("a profile as PipeDream writes them, relative to this file")]
    kind: Annotated[Literal["pipedream"], Doc("the kind of question")] = "pipedream"
    name: Annotated[str | None, Doc("of the question; the file's where nothing is said")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
    devices: Annotated[tuple[int, ...], Bounds(1), Doc("4, or [4, 8] or 4x8: eight groups of four")] = (4,)
    bandwidth: Annotated[tuple[Bandwidth, ...], Doc("of one member of each level, innermost first, or one for all")] = (1e9,)
    straight: Annotated[bool, Doc("replicate no stage")] = False
    compression: Annotated[float | None, Doc("activations travel in this share of their bytes: 2 halves them")] = None
    memory: Annotated[Bytes | None, Doc("of one device; no limit where nothing is said")] = None
    compatible: Annotated[bool, Doc("cut and charge as the public optimizer does")] = False


@dataclass(frozen=True, slots=True)
class Level:
    """Members that are joined by one kind of link."""

    members: int
    bandwidth: float


@dataclass(frozen=True, slots=True)
class PipelineQuestion:
    """Which stages keep the slowest one as short as possible?"""

    name: str
    profile: Profile
    levels: tuple[Level, ...]
    """Innermost first."""
    straight: bool
    compression: float | None
    """None where transfers are not counted."""
    memory: float
    compatible: bool
    document: dict[str, Any]

    @property
    def devices(self) -> int:
        return prod(level.members for level in self.levels)


def read(written: Written) -> PipelineQuestion:
    """The question; an InstanceError with every fault."""
    faults: list[Fault] = []
    file = read_as(PipedreamFile, _levelled(written.root), faults)
    if file is not None:
        faults += [written.fault(path, message) for path, message in _faults(file)]
    if file is None or faults:
        raise written.refused(faults)
    with written.reading("file"):
        profile = profile_of(written.files.text(file.file, text_of), str(written.files.path(file.file)))
    bandwidth = file.bandwidth * len(file.devices) if len(file.bandwidth) == 1 else file.bandwidth
    return PipelineQuestion(
        name=file.name or _name(written.source),
        profile=profile,
        levels=tuple(Level(*pair) for pair in zip(file.devices, bandwidth, strict=True)),
        straight=file.straight,
        compression=file.compression if file.compression is not None or file.compatible else 1.0,
        memory=float("inf") if file.memory is None else file.memory,
        compatible=file.compatible,
        document=written.document,
    )


def _levelled(root: Node) -> Node:
    """The tree with `devices: 4x8` as the list that this is short for."""
    entries = root.value
    entry = entries.get("devices") if isinstance(entries, dict) else None
    if not isinstance(entries, dict) or entry is None or not isinstance(entry.node.value, Scalar) or "x" not in entry.node.value.text:
        return root
    parts = tuple(replace(entry.node, value=Scalar(part.strip(), quoted=False)) for part in entry.node.value.text.split("x"))
    return replace(root, value={**entries, "devices": replace(entry, node=replace(entry.node, value=parts))})


def _name(source: str) -> str:
    """The folder's name where the file has the usual one of profiles."""
    path = Path(source)
    return path.parent.name or path.stem if path.stem == "graph" else path.stem


def _faults(file: PipedreamFile) -> Iterator[tuple[str, str]]:
    """What no single value shows, by its path."""
    shape, levels, given = "x".join(map(str, file.devices)), len(file.devices), len(file.bandwidth)
    if not 0 < levels <= MOST_LEVELS:
        yield "devices", f"{levels} levels of devices are given, 1 to {MOST_LEVELS} are needed (4 or 4x8)"
    if prod(file.devices) > MOST_DEVICES:
        yield "devices", f"{shape} devices are more than {MOST_DEVICES:,}, for which profiles are answered"
    if given not in {1, levels}:
        yield "bandwidth", f"{given} bandwidths are given for {levels} levels (one for all, or one for each: 6GB/s,1GB/s)"
    if not all(0.0 < speed < 1e18 for speed in file.bandwidth):
        yield "bandwidth", "a bandwidth must be above zero and below 1e18 bytes a second"
    if file.compression is not None and not 1e-9 < file.compression < 1e9:
        yield "compression", f"a compression of '{file.compression}' is none (1 leaves activations as they are, 2 halves them)"
    if file.memory is not None and not file.compatible and levels > 1:
        yield "memory", "the memory of groups of devices is not modelled (give devices as one number, or `compatible`)"


def size_of(question: PipelineQuestion) -> str:
    """How large the question is, in words."""
    return f"{len(question.profile):,} nodes on {question.devices:,} devices"
