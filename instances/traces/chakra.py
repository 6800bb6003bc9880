"""Chakra execution traces (github.com/mlcommons/chakra), in protobuf and in JSON, as nodes and as graphs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from crossopt.crossflow.traces import APART, EDGES, KINDS, RULE, SPAN_ENDS, Graph, are_apart, graph_of, replay, turns_of
from crossopt.instances.files.units import quoted
from crossopt.instances.traces.graph_file import Faults, Imported, Trace, count_text, plain, refuse, refuse_cycle

# The messages of Chakra's schema (mlcommons/chakra, schema/protobuf/et_def.proto) as far as they are read and written: metadata, nodes and
# attributes. A file is metadata and then nodes, each behind its length as a varint. Fields beyond these are skipped.

METADATA, MEM_LOAD, MEM_STORE, COMP, SEND, RECEIVE, COLLECTIVE = range(1, 8)
"""Types of nodes; 0 is none."""
COLLECTIVES = (
    "all_reduce",
    "reduce",
    "all_gather",
    "gather",
    "scatter",
    "broadcast",
    "all_to_all",
    "reduce_scatter",
    "reduce_scatter_block",
    "barrier",
)
VALUE_KINDS = {
    "double": 3,
    "float": 5,
    "int32": 7,
    "int64": 9,
    "uint32": 11,
    "uint64": 13,
    "sint32": 15,
    "sint64": 17,
    "fixed32": 19,
    "fixed64": 21,
    "sfixed32": 23,
    "sfixed64": 25,
    "bool": 27,
    "string": 29,
    "bytes": 31,
}
"""Types of an attribute's value and their fields, which form a oneof; lists of them are not read."""
_FIELDS = {
    "Attribute": {"name": (1, "string"), **{kind: (number, kind) for kind, number in VALUE_KINDS.items()}},
    "Metadata": {"version": (1, "string"), "attributes": (2, "Attribute")},
    "Node": {
        "id": (1, "uint64"),
        "name": (2, "string"),
        "type": (3, "uint64"),  # an enumeration, read so that unknown numbers come through
        "ctrl_deps": (4, "uint64"),
        "data_deps": (5, "uint64"),
        "start_micros": (6, "uint64"),
        "duration_micros": (7, "uint64"),
        "attributes": (10, "Attribute"),
    },
}
_REPEATED = ("ctrl_deps", "data_deps", "attributes")
_LONGEST = 10
"""Bytes of a varint."""
Scalar = int | float | str | bytes | bool


class MessageError(ValueError):
    """Bytes that are no message."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A name and a value of a kind."""

    name: str
    kind: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class Node:
    """What was done, after which others, and what is known of it."""

    id: int = 0
    name: str = ""
    type: int = 0
    ctrl_deps: tuple[int, ...] = ()
    data_deps: tuple[int, ...] = ()
    start_micros: int = 0
    duration_micros: int = 0
    attributes: tuple[Attribute, ...] = ()

    def get(self, name: str) -> Scalar | None:
        """The value of an attribute; None where there is none."""
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute.value
        return None


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a file says of itself."""

    version: str = ""
    attributes: tuple[Attribute, ...] = ()


@cache
def _classes() -> dict[str, Any]:
    """The classes of protobuf for the messages, in a pool of their own so that other schemas of Chakra can be loaded beside them."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto  # noqa: PLC0415 - only Chakra files need it
    from google.protobuf.descriptor_pool import DescriptorPool  # noqa: PLC0415
    from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415

    file = FileDescriptorProto(name="chakra", syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            label = FieldDescriptorProto.LABEL_REPEATED if field in _REPEATED else FieldDescriptorProto.LABEL_OPTIONAL
            declared = message.field.add(name=field, number=number, label=label)
            if kind in _FIELDS:
                declared.type_name = f".{kind}"
            else:
                declared.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
            if field in VALUE_KINDS:
                declared.oneof_index = 0
    file.message_type[0].oneof_decl.add(name="value")
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {name: GetMessageClass(pool.FindMessageTypeByName(name)) for name in _FIELDS}


def messages_in(data: bytes) -> Iterator[bytes]:
    """Each message of a file; a MessageError with the byte at which a length is damaged or more than what is left."""
    at, size = 0, len(data)
    while at < size:
        begin, length = at, 0
        for at in range(begin, min(begin + _LONGEST, size)):
            length |= (data[at] & 0x7F) << 7 * (at - begin)
            if data[at] < 0x80:
                break
        else:
            raise MessageError(f"byte {begin:,}: the length of a message is damaged")
        start, at = at + 1, at + 1 + length
        if at > size:
            raise MessageError(f"byte {begin:,}: a message of {length:,} bytes does not fit into the {size - start:,} that are left")
        yield data[start:at]


def node_in(data: bytes) -> Node:
    """The node that a message holds."""
    found = _parsed("Node", data)
    return Node(
        found.id,
        found.name,
        found.type,
        tuple(found.ctrl_deps),
        tuple(found.data_deps),
        found.start_micros,
        found.duration_micros,
        _attributes(found),
    )


def metadata_in(data: bytes) -> Metadata:
    found = _parsed("Metadata", data)
    return Metadata(found.version, _attributes(found))


def _parsed(name: str, data: bytes) -> Any:  # noqa: ANN401 - a class of protobuf, made at run time
    from google.protobuf.message import DecodeError  # noqa: PLC0415

    try:
        return _classes()[name].FromString(data)
    except DecodeError as error:
        raise MessageError(f"a message of {len(data):,} bytes is damaged") from error


def _attributes(found: Any) -> tuple[Attribute, ...]:  # noqa: ANN401
    """All that have a value of a known kind."""
    return tuple(Attribute(attr.name, kind, getattr(attr, kind)) for attr in found.attributes if (kind := attr.WhichOneof("value")))


def metadata_bytes(metadata: Metadata) -> bytes:
    message = _classes()["Metadata"](version=metadata.version)
    return _bytes_with(message, metadata.attributes)


def node_bytes(node: Node) -> bytes:
    message = _classes()["Node"](
        id=node.id,
        name=node.name,
        type=node.type,
        ctrl_deps=node.ctrl_deps,
        data_deps=node.data_deps,
        start_micros=node.start_micros,
        duration_micros=node.duration_micros,
    )
    return _bytes_with(message, node.attributes)


def _bytes_with(message: Any, attributes: Iterable[Attribute]) -> bytes:  # noqa: ANN401
    for attribute in attributes:
        message.attributes.add(name=attribute.name, **{attribute.kind: attribute.value})
    data: bytes = message.SerializeToString(deterministic=True)
    return data


def varint(number: int) -> bytes:
    """A length as it stands before a message."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*found, number))


def written(metadata: Metadata, nodes: Iterable[Node]) -> bytes:
    """The bytes of a file."""
    messages = (metadata_bytes(metadata), *map(node_bytes, nodes))
    return b"".join(varint(len(message)) + message for message in messages)


# Nodes of a Chakra trace, from protobuf or from JSON; an InstanceError with every fault.
#
# JSON has the keys of the C++ feeder and the converters (Id, Name, NodeType, ctrlDeps, runtime) or those of the schema (id, name, type,
# ctrl_deps, duration_micros), and each attribute as a key of its own.

SCHEMAS = ("0.0.4", "1.0.1", "1.0.2-chakra.0.0.4", "1.0.3-chakra.0.0.4", "1.1.0-chakra.0.0.4", "1.1.1-chakra.0.0.4", "1.1.1-chakra.1.0.0")
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
    _check_version(path, version_of(metadata))
    faults = Faults(path)
    _check_nodes(nodes, faults)
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
    return metadata.version or next((str(attribute.value) for attribute in metadata.attributes if attribute.name == "schema"), "")


def _check_version(path: Path, version: str) -> None:
    if version and version not in SCHEMAS:
        refuse(path, f"the schema {quoted(version)} is not known (known: {', '.join(SCHEMAS)}; convert the trace anew with today's Chakra)")


def chakra_json_in(path: Path, document: Mapping[str, Any]) -> ChakraTrace:
    """The nodes of a file in JSON."""
    rows, faults = document["workload_graph"], Faults(path)
    if not isinstance(rows, list):
        refuse(path, "workload_graph: a list is needed")
    version = document.get("version", document.get("schema", ""))
    _check_version(path, str(version))
    nodes = list[Node]()
    for index, row in enumerate(rows):
        if isinstance(row, dict):
            nodes.append(_node_of(row, f"workload_graph[{index}]", faults))
        else:
            faults.add(f"workload_graph[{index}]", "a mapping is needed")
    faults.end()
    _check_nodes(tuple(nodes), faults)
    faults.end()
    return ChakraTrace(Metadata(str(version)), tuple(nodes))


def _node_of(row: Mapping[str, Any], at: str, faults: Faults) -> Node:
    found: dict[str, tuple[str, object]] = {
        name: next(((key, row[key]) for key in keys if key in row), (keys[0], None)) for name, keys in _KEYS.items()
    }
    numbers = {name: _number(found[name], at, faults, is_needed=name in ("id", "type")) for name in ("id", "type", "start", "duration")}
    deps = {name: _numbers(found[name], at, faults) for name in ("ctrl", "data")}
    attributes = [attribute for key, value in row.items() if key not in _TAKEN and (attribute := _attribute_of(key, value)) is not None]
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
        problem = f"{key} is missing" if value is None else f"{quoted(str(value))} is no whole number of zero and more below 2^64"
        faults.add(f"{at}.{key}", problem)
        return 0
    return value


def _numbers(given: tuple[str, object], at: str, faults: Faults) -> tuple[int, ...]:
    key, value = given
    if value is None:
        return ()
    if not isinstance(value, list) or any(type(number) is not int or not 0 <= number <= MOST for number in value):
        faults.add(f"{at}.{key}", "a list of ids is needed")
        return ()
    return tuple(value)


def _attribute_of(key: str, value: object) -> Attribute | None:
    kind = {bool: "bool", int: "int64", str: "string"}.get(type(value))
    return Attribute(key, kind, value) if kind else None  # type: ignore[arg-type]


def _check_nodes(nodes: tuple[Node, ...], faults: Faults) -> None:
    """Report ids that are given twice, unknown types, and times out of range."""
    places = dict[int, int]()
    for index, node in enumerate(nodes):
        at = f"node {node.id}"
        if node.id in places:
            faults.add(at, f"the id is given twice, to the nodes at places {places[node.id]} and {index} (give each its own)")
        places.setdefault(node.id, index)
        if node.type > COLLECTIVE:
            faults.add(at, f"{node.type} is no type of a node (1 to {COLLECTIVE} are)")
        if node.duration_micros >> 52 or node.start_micros >> 52:
            faults.add(at, "its time is beyond any trace, or below 0 (convert it anew)")


# From the nodes of a Chakra trace to a graph.
#
# Nodes wait for what they read (`data_deps`). Control edges of PyTorch say which call is inside which, not what comes first; they count
# where there are no others. What refers to ids that are not in the file is left out, and told, as public traces do that. Where nodes say
# when they began, those of one thread or stream follow in that order, and a gap is put before what began later than all that it waits for.
# Where none does, they take turns (crossflow/traces.py): one at a time on each thread, stream, device and network. What the host does
# for a collective is work of its thread.

_KIND = {COMP: "kernel", MEM_LOAD: "copy", MEM_STORE: "copy", SEND: "collective", RECEIVE: "collective", COLLECTIVE: "collective"}
_MICRO = 1_000


@dataclass(slots=True)
class _Row:
    """A node as an operation."""

    name: str
    kind: str
    where: str
    took: int
    begin: int


def imported_chakra(path: Path, found: ChakraTrace, form: str) -> Imported:
    """The trace of one rank."""
    nodes = found.nodes
    if not nodes:
        refuse(path, "there is no node in this trace (trace a step)")
    place_of = {node.id: index for index, node in enumerate(nodes)}
    is_timed = any(node.start_micros for node in nodes)
    uses_control = not any(node.data_deps for node in nodes)
    edges, dangling = list[tuple[int, int, str]](), 0
    for index, node in enumerate(nodes):
        for before in node.ctrl_deps if uses_control else node.data_deps:
            if before in place_of:
                edges.append((place_of[before], index, "data"))
            else:
                dangling += 1
    control = 0 if uses_control else sum(before not in place_of for node in nodes for before in node.ctrl_deps)
    rows = [_row_of(node) for node in nodes]
    if sum(row.took for row in rows) + max(row.begin for row in rows) >= SPAN_ENDS:
        refuse(path, f"its times sum to more than {SPAN_ENDS // 10**9} s (convert it anew)")
    graph = _graph(nodes, rows, edges, is_timed)
    refuse_cycle(graph, str(path))
    remarks = _remarks(found, uses_control, dangling, control)
    span = max(row.begin + row.took for row in rows) - min(row.begin for row in rows) if is_timed else 0
    assumed = "" if is_timed else f"{RULE}; {APART}" if are_apart(graph) else RULE
    if not is_timed:
        remarks.append(f"without turns its edges allow a span of {replay(graph).span:,} ns")
        graph = _in_turn(graph, nodes)
    sends, receives = (sum(node.type == kind and not node.get("is_cpu_op") for node in nodes) for kind in (SEND, RECEIVE))
    return Imported(Trace(graph, path.name, span, assumed), form, tuple(remarks), sends=sends, receives=receives)


def _in_turn(graph: Graph, nodes: tuple[Node, ...]) -> Graph:
    """With the order of each thread, stream, device and network as edges; receives are awaited beside all else."""
    beside = [index for index, node in enumerate(nodes) if node.type == RECEIVE and not node.get("is_cpu_op")]
    edges = np.array(list(turns_of(graph, [node.id for node in nodes], beside)), np.int64).reshape(-1, 2)
    is_host = graph.kinds[edges[:, 0]] == KINDS.index("host")
    return replace(
        graph,
        before=np.concatenate([graph.before, edges[:, 0]]),
        after=np.concatenate([graph.after, edges[:, 1]]),
        reasons=np.concatenate([graph.reasons, np.where(is_host, EDGES.index("thread"), EDGES.index("stream"))]),
    )


def _row_of(node: Node) -> _Row:
    kind = "host" if node.get("is_cpu_op") else _KIND.get(node.type, "host")
    if kind == "host":
        thread = node.get("tid")
        where = f"thread {thread}" if isinstance(thread, int) else "host"
    elif isinstance(stream := node.get("stream"), int):
        where = f"stream {stream}"
    else:
        where = "network" if kind == "collective" else "device"
    return _Row(plain(node.name), kind, where, node.duration_micros * _MICRO, node.start_micros * _MICRO)


def _graph(nodes: tuple[Node, ...], rows: list[_Row], edges: list[tuple[int, int, str]], is_timed: bool) -> Graph:
    moved = [_size(node, "comm_size") or _size(node, "tensor_size") for node in nodes]
    flops = [_size(node, "num_ops") for node in nodes]
    groups = [plain(str(node.get("pg_name") or "")) if node.type == COLLECTIVE else "" for node in nodes]
    operations = [(row.name, row.kind, row.where, row.took) for row in rows]
    if is_timed:
        edges = edges + _orders(rows)
        gaps = _gaps(rows, edges)
        for operation, took, last in gaps:
            edges += [(last, len(operations), "data")] if last >= 0 else []
            edges.append((len(operations), operation, "data"))
            operations.append(("gap", "gap", rows[operation].where, took))
        moved, flops, groups = moved + [0] * len(gaps), flops + [0] * len(gaps), groups + [""] * len(gaps)
    return graph_of(operations, edges, moved, flops, groups)


def _orders(rows: list[_Row]) -> list[tuple[int, int, str]]:
    """What follows what on each thread and stream."""
    by_place = defaultdict[str, list[int]](list)
    for row in sorted(range(len(rows)), key=lambda row: (rows[row].begin, rows[row].begin + rows[row].took, row)):
        by_place[rows[row].where].append(row)
    return [
        (first, second, "thread" if rows[first].kind == "host" else "stream")
        for places in by_place.values()
        for first, second in pairwise(places)
    ]


def _gaps(rows: list[_Row], edges: list[tuple[int, int, str]]) -> list[tuple[int, int, int]]:
    """Of each operation that began later than all that it waits for: its place, by how much, and what ended last (-1 for nothing)."""
    zero = min(row.begin for row in rows)
    last = [(zero, -1)] * len(rows)
    for before, after, _ in edges:
        last[after] = max(last[after], (rows[before].begin + rows[before].took, before))
    return [(index, row.begin - last[index][0], last[index][1]) for index, row in enumerate(rows) if row.begin > last[index][0]]


def _size(node: Node, name: str) -> int:
    value = node.get(name)
    return value if type(value) is int and 0 <= value < SPAN_ENDS else 0


def _remarks(found: ChakraTrace, uses_control: bool, dangling: int, control: int) -> list[str]:
    nodes, remarks = found.nodes, list[str]()
    if not version_of(found.metadata):
        remarks.append("the file says no version of its schema: read by today's")
    if uses_control and any(node.ctrl_deps for node in nodes):
        remarks.append("there are no data edges: control edges say what waits for what")
    if dangling:
        remarks.append(f"{count_text(dangling, 'edge names an id', 'edges name ids')} that no node has: left out")
    if control:
        remarks.append(
            f"{count_text(control, 'control edge names an id', 'control edges name ids')} that no node has; control edges are not used"
        )
    without = sum(not node.duration_micros for node in nodes if node.type >= MEM_LOAD)
    if without:
        remarks.append(f"{count_text(without, 'node has', 'nodes have')} no duration: 0 ns each")
    collectives = [node for node in nodes if node.type == COLLECTIVE and not node.get("is_cpu_op")]
    known, total = sum(node.get("comm_size") is not None for node in collectives), len(collectives)
    if known < total:
        remarks.append(f"{total - known} of {count_text(total, 'collective', 'collectives')} say no bytes")
    return remarks
