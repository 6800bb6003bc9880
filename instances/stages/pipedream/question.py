"""The question which layers of a profile form a stage and how often each stage is replicated, from a file and options and back."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite, prod
from pathlib import Path
from typing import Any

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.quantities import Bandwidth, Bytes
from crossopt.instances.files.settings import with_settings
from crossopt.instances.files.units import quoted
from crossopt.instances.stages.pipedream.profile import Profile, profile_of, read_text

DEVICES, BANDWIDTH = (4,), 1e9
"""What is asked where nothing is said; the bandwidth is that of the public optimizer."""
MOST_DEVICES, MOST_LEVELS = 1024, 3
_GREATEST = 1e300


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a profile."""

    devices: tuple[int, ...] = DEVICES
    """Devices of a group, groups of the next level, and so on, innermost first."""
    bandwidth: tuple[Bandwidth, ...] = (BANDWIDTH,)
    """Bytes a second of one member of each level."""
    straight: bool = False
    """No stage is replicated."""
    compression: float | None = None
    """Activations travel in this share of their bytes: 2 halves them."""
    memory: Bytes | None = None
    """Bytes of one device."""
    compatible: bool = False
    """Cut and charge as the public optimizer does."""


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


def read_pipeline(path: Path, asked: Asked) -> PipelineQuestion:
    """The question about the profile in a file; an InstanceError with every fault."""
    return _question(read_text(path), str(path), asked)


def read(path: Path, settings: tuple[str, ...] = (), asked: Asked | None = None) -> PipelineQuestion:
    """The same with settings laid over what is asked."""
    return read_pipeline(path, with_settings(asked or Asked(), settings, str(path)))


def size_of(question: PipelineQuestion) -> str:
    """How large the question is, in words."""
    return f"{len(question.profile):,} nodes on {question.devices:,} devices"


def read_again(document: Mapping[str, Any], folder: Path) -> PipelineQuestion:
    """The question inside a saved result, which holds the text of its profile."""
    del folder
    text, source, asked = document.get("text"), document.get("source"), document.get("asked")
    if not isinstance(text, str) or not isinstance(source, str) or not isinstance(asked, dict):
        raise InstanceError("result", [Fault(1, 1, "question", "the text of the question is missing")])
    try:
        return _question(text, source, _asked(asked))
    except (TypeError, ValueError, OverflowError) as error:
        raise InstanceError("result", [Fault(1, 1, "question", f"the question cannot be read: {error}")]) from error


def _asked(words: Mapping[str, Any]) -> Asked:
    plain: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in words.items()}
    asked = Asked(**plain)
    if any(type(flag) is not bool for flag in (asked.straight, asked.compatible)):
        raise ValueError("straight and compatible are true or false")
    if not isinstance(asked.devices, tuple) or any(type(count) is not int for count in asked.devices):
        raise ValueError("devices are whole numbers")
    if not isinstance(asked.bandwidth, tuple):
        raise TypeError("bandwidths are a list")
    figures = (*asked.bandwidth, *(figure for figure in (asked.compression, asked.memory) if figure is not None))
    if any(type(figure) not in (int, float) for figure in figures):
        raise ValueError("bandwidth, compression and memory are numbers")
    if any(abs(figure) > _GREATEST for figure in figures):
        raise ValueError("bandwidth, compression or memory is beyond any use")
    return asked


def _question(text: str, source: str, asked: Asked) -> PipelineQuestion:
    faults = [Fault(1, 1, "", sentence) for sentence in faults_of(asked)]
    if faults:
        raise InstanceError(source, faults)
    bandwidth = asked.bandwidth * len(asked.devices) if len(asked.bandwidth) == 1 else asked.bandwidth
    compression = asked.compression if asked.compression is not None or asked.compatible else 1.0
    return PipelineQuestion(
        name=_name(source),
        profile=profile_of(text, source),
        levels=tuple(Level(*pair) for pair in zip(asked.devices, bandwidth, strict=True)),
        straight=asked.straight,
        compression=compression,
        memory=float("inf") if asked.memory is None else asked.memory,
        compatible=asked.compatible,
        document={"source": source, "asked": {**asdict(asked), "devices": [*asked.devices], "bandwidth": [*asked.bandwidth]}, "text": text},
    )


def _name(source: str) -> str:
    """The folder's name where the file has the usual one of profiles."""
    path = Path(source)
    return path.parent.name or path.stem if path.stem == "graph" else path.stem


def faults_of(asked: Asked) -> list[str]:
    """What no profile can be asked, each with the option that says so."""
    shape, levels = "x".join(map(str, asked.devices)), len(asked.devices)
    rules = (
        (
            0 < levels <= MOST_LEVELS,
            f"--devices: {levels} levels of devices are given, 1 to {MOST_LEVELS} are needed (4 or 4x8)",
        ),
        (min(asked.devices, default=1) > 0, f"--devices: {shape} devices leave a level empty (give 1 or more of each)"),
        (
            prod(asked.devices) <= MOST_DEVICES,
            f"--devices: {shape} devices are more than {MOST_DEVICES:,}, for which profiles are answered",
        ),
        (
            len(asked.bandwidth) in {1, levels},
            f"--bandwidth: {len(asked.bandwidth)} bandwidths are given for {levels} levels (one for all, or one for each: 6GB/s,1GB/s)",
        ),
        (all(0.0 < speed < 1e18 for speed in asked.bandwidth), "--bandwidth: a bandwidth must be above zero and below 1e18 bytes a second"),
        (
            asked.compression is None or (isfinite(asked.compression) and 1e-9 < asked.compression < 1e9),
            f"--compression: a compression of {quoted(str(asked.compression))} is none (1 leaves activations as they are, 2 halves them)",
        ),
        (asked.memory is None or asked.memory >= 0.0, "--memory: a memory is 0 bytes or more"),
        (
            asked.memory is None or asked.compatible or levels == 1,
            "--memory: the memory of groups of devices is not modelled (give --devices as one number, or --compatible)",
        ),
    )
    return [sentence for holds, sentence in rules if not holds]
