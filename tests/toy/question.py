"""A toy kind of question: which things go into a sack. It shows all that a kind brings to instances/."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import Node, read_file, read_text
from crossopt.instances.files.schema import Bounds, read_as
from crossopt.instances.files.settings import laid_over, with_setting


@dataclass(frozen=True, slots=True)
class Thing:
    """What may be taken."""

    weight: Annotated[int, Bounds(1, 1_000)]
    worth: Annotated[int, Bounds(0, 1_000)]


@dataclass(frozen=True, slots=True)
class SackFile:
    """The form of a file."""

    kind: Literal["knapsack"]
    room: Annotated[int, Bounds(0, 10_000)]
    least: Annotated[int, Bounds(0, 100)] = 0
    things: tuple[Thing, ...] = ()


@dataclass(frozen=True, slots=True)
class Sack:
    """Which things, `least` of them or more, leave the least worth behind?"""

    name: str
    file: SackFile
    document: dict[str, Any]


def read(path: Path, settings: tuple[str, ...] = ()) -> Sack:
    return _sack(read_file(path), {"source": str(path), "text": path.read_text(encoding="utf-8"), "settings": list(settings)})


def read_again(document: Mapping[str, Any], folder: Path) -> Sack:
    del folder
    held = {key: document.get(key) for key in ("source", "text", "settings")}
    if not isinstance(held["source"], str) or not isinstance(held["text"], str) or not isinstance(held["settings"], list):
        raise InstanceError("result", [Fault(1, 1, "question", "the text of the question is missing")])
    return _sack(read_text(held["text"], held["source"]), held)


def size_of(question: Sack) -> str:
    return f"{len(question.file.things)} things"


def _sack(root: Node, document: dict[str, Any]) -> Sack:
    faults, settings = list[Fault](), tuple(document["settings"])
    for setting in settings:
        root = laid_over(root, setting, document["source"])
    file = read_as(SackFile, root, faults)
    if file is None:
        raise InstanceError(document["source"], [with_setting(fault, settings) for fault in faults])
    return Sack(Path(document["source"]).stem, file, document)
