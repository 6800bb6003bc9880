"""Nodes of a Chakra trace, from protobuf or from JSON; an InstanceError with every fault.

JSON has the keys of the C++ feeder and the converters (Id, Name, NodeType, ctrlDeps, runtime) or those of the schema (id, name, type,
ctrl_deps, duration_micros), and each attribute as a key of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossopt.instances.files.units import quoted
from crossopt.instances.traces.chakra.messages import COLLECTIVE, Attribute, MessageError, Metadata, Node, messages_in, metadata_in, node_in
from crossopt.instances.traces.packed import Faults, refuse

SCHEMAS = (
    "0.0.4",
    "1.0.1",
    "1.0.2-chakra.0.0.4",
    "1.0.3-chakra.0.0.4",
    "1.1.0-chakra.0.0.4",
    "1.1.1-chakra.0.0.4",
    "1.1.1-chakra.1.0.0",
)
"""Versions that have today's fields: of the metadata, or of the PyTorch trace that was converted."""
MOST = (1 << 64) - 1
_KEYS = {
    "id": ("Id", "id"),
    "name": ("Name", "name"),
    "type": ("NodeType", "type"),
    "ctrl": ("ctrlDeps", "ctrl_deps", "CtrlDeps"),
    "data": ("data_deps", "dataDeps", "DataDeps"),
    "start": ("start_time_micros", "startTime", "start"),
    "duration": ("runtime", "duration_micros", "duration"),
}
_TAKEN = {key for keys in _KEYS.values() for key in keys}


@dataclass(frozen=True, slots=True)
class ChakraTrace:
    """What one file holds."""

    metadata: Metadata
    nodes: tuple[Node, ...]


def chakra_in(path: Path, data: bytes) -> ChakraTrace:
    """The nodes of a file in protobuf."""
    try:
        messages = messages_in(data)
        metadata = metadata_in(next(messages))
        nodes = tuple(map(node_in, messages))
    except MessageError as error:
        refuse(path, f"this is no Chakra trace that can be read: {error} (fetch it again, or convert it anew)")
    _look_at_version(path, version_of(metadata))
    faults = Faults(path)
    _look_at(nodes, faults)
    faults.end()
    return ChakraTrace(metadata, nodes)


def is_chakra(data: bytes) -> bool:
    """Whether bytes begin with metadata, as protobuf says them and with something that is known; sound behind that or not."""
    try:
        first = next(messages_in(data))
        found = metadata_in(first)
    except (MessageError, StopIteration):
        return False
    return bool(found.version or found.attributes or not first)


def version_of(metadata: Metadata) -> str:
    """What a file says; empty where it says nothing."""
    return metadata.version or next((str(one.value) for one in metadata.attributes if one.name == "schema"), "")


def _look_at_version(path: Path, version: str) -> None:
    if version and version not in SCHEMAS:
        refuse(path, f"the schema {quoted(version)} is not known (known: {', '.join(SCHEMAS)}; convert the trace anew with today's Chakra)")


def chakra_json_in(path: Path, document: Mapping[str, Any]) -> ChakraTrace:
    """The nodes of a file in JSON."""
    rows, faults = document["workload_graph"], Faults(path)
    if not isinstance(rows, list):
        refuse(path, "workload_graph: a list is needed")
    version = document.get("version", document.get("schema", ""))
    _look_at_version(path, str(version))
    nodes = list[Node]()
    for place, row in enumerate(rows):
        if isinstance(row, dict):
            nodes.append(_node_of(row, f"workload_graph[{place}]", faults))
        else:
            faults.add(f"workload_graph[{place}]", "a mapping is needed")
    faults.end()
    _look_at(tuple(nodes), faults)
    faults.end()
    return ChakraTrace(Metadata(str(version)), tuple(nodes))


def _node_of(row: Mapping[str, Any], at: str, faults: Faults) -> Node:
    found: dict[str, tuple[str, object]] = {
        name: next(((key, row[key]) for key in keys if key in row), (keys[0], None)) for name, keys in _KEYS.items()
    }
    numbers = {name: _number(found[name], at, faults, is_needed=name in ("id", "type")) for name in ("id", "type", "start", "duration")}
    deps = {name: _numbers(found[name], at, faults) for name in ("ctrl", "data")}
    attributes = [one for key, value in row.items() if key not in _TAKEN and (one := _attribute_of(key, value)) is not None]
    name = str(found["name"][1] or "")
    return Node(
        numbers["id"],
        name,
        numbers["type"],
        deps["ctrl"],
        deps["data"],
        numbers["start"],
        numbers["duration"],
        attributes=tuple(attributes),
    )


def _number(given: tuple[str, object], at: str, faults: Faults, is_needed: bool) -> int:
    key, value = given
    if value is None and not is_needed:
        return 0
    if type(value) is not int or not 0 <= value <= MOST:
        told = f"{key} is missing" if value is None else f"{quoted(str(value))} is no whole number of zero and more below 2^64"
        faults.add(f"{at}.{key}", told)
        return 0
    return value


def _numbers(given: tuple[str, object], at: str, faults: Faults) -> tuple[int, ...]:
    key, value = given
    if value is None:
        return ()
    if not isinstance(value, list) or any(type(one) is not int or not 0 <= one <= MOST for one in value):
        faults.add(f"{at}.{key}", "a list of ids is needed")
        return ()
    return tuple(value)


def _attribute_of(key: str, value: object) -> Attribute | None:
    kind = {bool: "bool", int: "int64", str: "string"}.get(type(value))
    return Attribute(key, kind, value) if kind else None  # type: ignore[arg-type]


def _look_at(nodes: tuple[Node, ...], faults: Faults) -> None:
    """Ids that are given twice, types that nobody knows, times that cannot be."""
    places = dict[int, int]()
    for place, node in enumerate(nodes):
        at = f"node {node.id}"
        if node.id in places:
            faults.add(at, f"the id is given twice, to the nodes at places {places[node.id]} and {place} (give each its own)")
        places.setdefault(node.id, place)
        if node.type > COLLECTIVE:
            faults.add(at, f"{node.type} is no type of a node (1 to {COLLECTIVE} are)")
        if node.duration_micros >> 52 or node.start_micros >> 52:
            faults.add(at, "its time is beyond any trace, or below 0 (convert it anew)")
