"""The messages of Chakra's schema (mlcommons/chakra, schema/protobuf/et_def.proto) as far as they are read and written: metadata, nodes and
attributes. A file is metadata and then nodes, each behind its length as a varint. Fields beyond these are skipped.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

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
KINDS = {
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
    "Attribute": {"name": (1, "string"), **{kind: (number, kind) for kind, number in KINDS.items()}},
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
            if field in KINDS:
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
    return tuple(Attribute(one.name, kind, getattr(one, kind)) for one in found.attributes if (kind := one.WhichOneof("value")))


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
    for one in attributes:
        message.attributes.add(name=one.name, **{one.kind: one.value})
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
    return b"".join(varint(len(one)) + one for one in messages)
