"""Devices and technologies in files of the user's, named in a question by their path: `hardware: ./my-chip.yaml`.

Such a file is read as the registry reads its own, and put into the tree of the question where its name stood; after that the question is
one that describes its hardware in place.
"""

from pathlib import Path
from typing import Any, Final

from crossopt.crossflow.fields import Given
from crossopt.instances.catalogue.entries import DeviceEntry, TechnologyEntry
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import Node, Scalar, node_of, read_text, text_of
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.settings import graft
from crossopt.instances.files.written import Files

_ENDINGS: Final = (".yaml", ".yml")
_PLACES: Final[tuple[tuple[tuple[str, ...], type[Any]], ...]] = (
    (("hardware",), Given[DeviceEntry]),
    (("technology",), TechnologyEntry),
    (("technology", "base"), TechnologyEntry),
)


def with_own_files(root: Node, files: Files) -> Node:
    """The question with the user's files in it; an InstanceError with every fault of a file."""
    for path, kind in _PLACES:
        name = _name_at(root, path)
        if name is not None and is_path(name):
            place = path if path != ("technology",) else ("technology", "base")
            entry, source = read_text(files.text(name, text_of), str(files.path(name))), str(files.path(name))
            faults: list[Fault] = []
            known = read_as(kind, entry, faults)
            if known is None:
                raise InstanceError(source, faults)
            own = known.get("name") if isinstance(known, Given) else known.name
            root = graft(graft(root, place, entry), (*place, "name"), node_of(own or Path(name).stem))
    return root


def is_path(name: str) -> bool:
    """Whether a name means a file rather than an entry of the registry."""
    return "/" in name or name.endswith(_ENDINGS)


def _name_at(node: Node, path: tuple[str, ...]) -> str | None:
    """The text at a path; nothing where there is none."""
    for key in path:
        entry = node.value.get(key) if isinstance(node.value, dict) else None
        if entry is None:
            return None
        node = entry.node
    return node.value.text if isinstance(node.value, Scalar) else None
