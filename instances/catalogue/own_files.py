"""Devices and technologies in files of the user's, named in a question by their path: `hardware: ./my-chip.yaml`.

Such a file is read as the registry reads its own. Its text goes into the question as a setting, so that a saved result stands without
the file; after that the question is one that describes its hardware in place.
"""

import json
from pathlib import Path
from typing import Any, Final

from crossopt.instances.catalogue.entries import DeviceEntry, TechnologyEntry
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import Entry, Node, Scalar, read_file
from crossopt.instances.files.schema import read_as

_ENDINGS: Final = (".yaml", ".yml")


def inlined_files(root: Node, folder: Path) -> tuple[str, ...]:
    """Settings that put the user's files into the question, paths relative to `folder`; an InstanceError with every fault of a file."""
    technology = _below(root, "technology")
    base = technology if technology is None or isinstance(technology.value, Scalar) else _below(technology, "base")
    settings: tuple[str, ...] = ()
    for key, node, kind in (("hardware", _below(root, "hardware"), DeviceEntry), ("technology.base", base, TechnologyEntry)):
        if node is not None and isinstance(node.value, Scalar) and is_path(node.value.text):
            settings += _inlined(key, folder / node.value.text, kind)
    return settings


def is_path(name: str) -> bool:
    """Whether a name means a file rather than an entry of the registry."""
    return "/" in name or name.endswith(_ENDINGS)


def _inlined(key: str, path: Path, kind: type[Any]) -> tuple[str, ...]:
    faults: list[Fault] = []
    entry = read_as(kind, read_file(path), faults)
    if entry is None:
        raise InstanceError(str(path), faults)
    text = path.read_text(encoding="utf-8")
    return f"{key}={text}", f"{key}.name={json.dumps(entry.name or path.stem)}"


def _below(node: Node, key: str) -> Node | None:
    match node.value:
        case {**entries} if key in entries:
            entry = entries[key]
            return entry.node if isinstance(entry, Entry) else None
        case _:
            return None
