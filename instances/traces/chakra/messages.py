"""The messages of Chakra's schema (mlcommons/chakra, schema/protobuf/et_def.proto): metadata, nodes, attributes.

A file is metadata and then nodes, each with its length before it. Defaults of proto3 are left out when written and filled in when read;
what the schema does not know is kept as it is and written at the end, so that a file of today's schema is written as it was read.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from crossopt.instances.traces.chakra.wire import (
    BYTES,
    EIGHT,
    FOUR,
    VARINT,
    WireError,
    bytes_field,
    fields_in,
    framed,
    number_field,
    packed,
    signed,
    span_at,
    varint,
    varints_in,
)

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
KINDS = (
    ("double", 3),
    ("float", 5),
    ("int32", 7),
    ("int64", 9),
    ("uint32", 11),
    ("uint64", 13),
    ("sint32", 15),
    ("sint64", 17),
    ("fixed32", 19),
    ("fixed64", 21),
    ("sfixed32", 23),
    ("sfixed64", 25),
    ("bool", 27),
    ("string", 29),
    ("bytes", 31),
)
"""What the value of an attribute may be, and its field; a list of them has the number behind it."""
FIELD = dict(KINDS)
_NAME = {number: name for name, number in KINDS}
_STRUCT = {"double": "<d", "float": "<f", "fixed32": "<I", "fixed64": "<Q", "sfixed32": "<i", "sfixed64": "<q"}
_BITS = 64
Scalar = int | float | str | bytes | bool
Value = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """A name and a value of a kind, or several of that kind."""

    name: str
    kind: str
    value: Value
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Tensors:
    """Texts with lists of values, shapes and types, as the tracer wrote them."""

    values: str = ""
    shapes: str = ""
    types: str = ""


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
    inputs: Tensors | None = None
    outputs: Tensors | None = None
    attributes: tuple[Attribute, ...] = ()
    unknown: bytes = b""

    def get(self, name: str) -> Value | None:
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
    unknown: bytes = b""


def messages_in(data: bytes) -> Iterator[tuple[int, int]]:
    """Where each message of a file begins and ends."""
    at = 0
    while at < len(data):
        at, end = span_at(data, at, len(data), "a message")
        yield at, end
        at = end


def node_in(data: bytes, at: int, end: int) -> Node:
    """The node between two places."""
    deps: dict[int, list[int]] = {4: [], 5: []}
    plain: dict[int, int] = {}
    name, tensors, attributes, unknown = "", dict[int, Tensors](), list[Attribute](), list[bytes]()
    for number, kind, start, stop in fields_in(data, at, end):
        if number == 10 and kind == BYTES:
            attributes.append(_known_attribute(data[start:stop], start))
        elif number in (1, 3, 6, 7) and kind == VARINT:
            plain[number] = start
        elif number in deps and kind == BYTES:
            deps[number] += varints_in(data, start, stop)
        elif number in deps and kind == VARINT:
            deps[number].append(start)
        elif number == 2 and kind == BYTES:
            name = _text(data, start, stop)
        elif number in (8, 9) and kind == BYTES:
            tensors[number] = _tensors_in(data, start, stop)
        else:
            unknown.append(_raw(data, number, kind, start, stop))
    return Node(
        plain.get(1, 0),
        name,
        plain.get(3, 0),
        tuple(deps[4]),
        tuple(deps[5]),
        plain.get(6, 0),
        plain.get(7, 0),
        tensors.get(8),
        tensors.get(9),
        tuple(attributes),
        b"".join(unknown),
    )


def metadata_in(data: bytes, at: int, end: int) -> Metadata:
    version, attributes, unknown = "", list[Attribute](), list[bytes]()
    for number, kind, start, stop in fields_in(data, at, end):
        if (number, kind) == (1, BYTES):
            version = _text(data, start, stop)
        elif (number, kind) == (2, BYTES):
            attributes.append(attribute_in(data, start, stop))
        else:
            unknown.append(_raw(data, number, kind, start, stop))
    return Metadata(version, tuple(attributes), b"".join(unknown))


def _known_attribute(data: bytes, at: int) -> Attribute:
    """An attribute, as most nodes have the same as others; where it is wrong it is told where it stands in the file."""
    try:
        return _attribute_of(data)
    except WireError as error:
        raise WireError(error.message, at + error.at) from error


@lru_cache(1 << 14)
def _attribute_of(data: bytes) -> Attribute:
    return attribute_in(data, 0, len(data))


def attribute_in(data: bytes, at: int, end: int) -> Attribute:
    """An attribute; one without a value is told, as nothing can be made of it."""
    name, doc = "", ""
    found: tuple[str, Value] | None = None
    for number, kind, start, stop in fields_in(data, at, end):
        if number == 1 and kind == BYTES:
            name = _text(data, start, stop)
        elif number == 2 and kind == BYTES:
            doc = _text(data, start, stop)
        elif number in _NAME:
            found = _NAME[number], _scalar(_NAME[number], data, kind, start, stop)
        elif number - 1 in _NAME and kind == BYTES:
            found = _NAME[number - 1], _listed(_NAME[number - 1], data, start, stop)
        else:
            raise WireError(f"an attribute has the field {number}, which the schema has not", at)
    if found is None:
        raise WireError(f"the attribute {name!r} has no value", at)
    return Attribute(name, *found, doc)


def _tensors_in(data: bytes, at: int, end: int) -> Tensors:
    texts = {1: "", 2: "", 3: ""}
    for number, kind, start, stop in fields_in(data, at, end):
        if number not in texts or kind != BYTES:
            raise WireError(f"inputs or outputs have the field {number}, which the schema has not", at)
        texts[number] = _text(data, start, stop)
    return Tensors(*texts.values())


def _text(data: bytes, start: int, stop: int) -> str:
    try:
        return data[start:stop].decode("utf-8")
    except UnicodeDecodeError as error:
        raise WireError(f"a name or text is not UTF-8: {error.reason}", start) from error


def _scalar(name: str, data: bytes, kind: int, start: int, stop: int) -> Scalar:
    """The value of a field of this kind."""
    wanted = BYTES if name in ("string", "bytes") else (EIGHT if name.endswith("64") or name == "double" else FOUR)
    if name not in _STRUCT and name not in ("string", "bytes"):
        wanted = VARINT
    if kind != wanted:
        raise WireError(f"an attribute of kind {name} is written as something else", start if kind != VARINT else stop)
    if kind == VARINT:
        return _whole(name, start)
    if kind == BYTES:
        return _text(data, start, stop) if name == "string" else data[start:stop]
    number: int | float = struct.unpack_from(_STRUCT[name], data, start)[0]
    return number


def _whole(name: str, number: int) -> int | bool:
    if name == "bool":
        return bool(number)
    if name.startswith("sint"):
        return (number >> 1) ^ -(number & 1)
    return signed(number) if name.startswith("int") else number


def _listed(name: str, data: bytes, at: int, end: int) -> tuple[Scalar, ...]:
    """Values of one kind, packed or one by one."""
    found = list[Scalar]()
    for number, kind, start, stop in fields_in(data, at, end):
        if number != 1:
            raise WireError(f"a list has the field {number}, which the schema has not", at)
        if kind == BYTES and name not in ("string", "bytes"):
            if name in _STRUCT:
                found += [one for (one,) in struct.iter_unpack(_STRUCT[name], _even(data[start:stop], _STRUCT[name], start))]
            else:
                found += [_whole(name, one) for one in varints_in(data, start, stop)]
        else:
            found.append(_scalar(name, data, kind, start, stop))
    return tuple(found)


def _even(data: bytes, form: str, at: int) -> bytes:
    if len(data) % struct.calcsize(form):
        raise WireError("a list of numbers ends within one", at)
    return data


def _raw(data: bytes, number: int, kind: int, start: int, stop: int) -> bytes:
    """A field that the schema does not know, as it was."""
    tag = varint(number << 3 | kind)
    if kind == VARINT:
        return tag + varint(start)
    return tag + (framed(data[start:stop]) if kind == BYTES else data[start:stop])


def written(metadata: Metadata, nodes: Iterable[Node]) -> bytes:
    """The bytes of a file."""
    return framed(metadata_bytes(metadata)) + b"".join(framed(node_bytes(node)) for node in nodes)


def metadata_bytes(metadata: Metadata) -> bytes:
    version = bytes_field(1, metadata.version.encode()) if metadata.version else b""
    return version + b"".join(bytes_field(2, attribute_bytes(one)) for one in metadata.attributes) + metadata.unknown


def node_bytes(node: Node) -> bytes:
    parts = [number_field(1, node.id) if node.id else b"", bytes_field(2, node.name.encode()) if node.name else b""]
    parts += [number_field(3, node.type)] if node.type else []
    parts += [bytes_field(number, packed(deps)) for number, deps in ((4, node.ctrl_deps), (5, node.data_deps)) if deps]
    parts += [number_field(number, value) for number, value in ((6, node.start_micros), (7, node.duration_micros)) if value]
    parts += [bytes_field(number, _tensors_bytes(one)) for number, one in ((8, node.inputs), (9, node.outputs)) if one is not None]
    parts += [bytes_field(10, attribute_bytes(one)) for one in node.attributes]
    return b"".join(parts) + node.unknown


def attribute_bytes(attribute: Attribute) -> bytes:
    """With its value even where that is the default, as only one of the fields is there."""
    parts = [bytes_field(number, text.encode()) for number, text in ((1, attribute.name), (2, attribute.doc)) if text]
    number, value = FIELD[attribute.kind], attribute.value
    if isinstance(value, tuple):
        parts.append(bytes_field(number + 1, _list_bytes(attribute.kind, value)))
    else:
        parts.append(_scalar_bytes(attribute.kind, number, value))
    return b"".join(parts)


def _tensors_bytes(tensors: Tensors) -> bytes:
    texts = enumerate((tensors.values, tensors.shapes, tensors.types), 1)
    return b"".join(bytes_field(number, text.encode()) for number, text in texts if text)


def _scalar_bytes(kind: str, number: int, value: Scalar) -> bytes:
    if isinstance(value, str | bytes):
        return bytes_field(number, value.encode() if isinstance(value, str) else value)
    if kind in _STRUCT:
        wide = EIGHT if struct.calcsize(_STRUCT[kind]) == 8 else FOUR
        return varint(number << 3 | wide) + struct.pack(_STRUCT[kind], value)
    return number_field(number, _unsigned(kind, int(value)))


def _unsigned(kind: str, value: int) -> int:
    return (value << 1) ^ (value >> (_BITS - 1)) if kind.startswith("sint") else value


def _list_bytes(kind: str, values: tuple[Scalar, ...]) -> bytes:
    if kind in ("string", "bytes"):
        return b"".join(_scalar_bytes(kind, 1, value) for value in values)
    if not values:
        return b""
    if kind in _STRUCT:
        return bytes_field(1, b"".join(struct.pack(_STRUCT[kind], value) for value in values))
    return bytes_field(1, packed(_unsigned(kind, int(value)) for value in values))
