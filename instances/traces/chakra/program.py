"""What an NPU does in a step, written as a Chakra trace that ASTRA-sim runs.

Computations and collectives follow one another in the order of the program, so that each waits for the one before. A message is sent behind
what gives it, and nothing waits until it has left; it is received as soon as it comes, and what needs it waits for it. Numbers ascend in
that order, as the simulator starts what may start by number. A message's tag is its own among those of its sender and receiver. Sizes of
all-gathers are what each NPU brings, of all other collectives the whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from crossopt.crossflow.astra.phases import Collective
from crossopt.instances.traces.chakra.messages import (
    COLLECTIVE,
    COLLECTIVES,
    COMP,
    RECEIVE,
    SEND,
    Attribute,
    Metadata,
    Node,
    node_bytes,
    varint,
    written,
)

VERSION = "0.0.4"
"""Of the metadata, as ASTRA-sim's own samples say it."""


@dataclass(frozen=True, slots=True)
class Compute:
    """Work of a device."""

    name: str
    micros: int
    flops: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective of the group that has this role for the NPU."""

    name: str
    kind: Collective
    bytes: int
    group: str
    is_beside: bool = False
    """Whether it begins with the work before it, not behind it; what follows waits for both."""


@dataclass(frozen=True, slots=True)
class Send:
    """A message to the NPU that has this role."""

    name: str
    bytes: int
    to: str
    tag: int


@dataclass(frozen=True, slots=True)
class Receive:
    """The other end of a message."""

    name: str
    bytes: int
    source: str
    tag: int


Item = Compute | Exchange | Send | Receive
ROLES = {"source": "comm_src", "to": "comm_dst"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A node without what differs from NPU to NPU, and which role of which kind that is."""

    node: bytes
    role: tuple[str, str] | None
    """`group`, `source` or `to`, and the role."""


def pieces_of(program: Sequence[Item]) -> tuple[Piece, ...]:
    """The nodes of a program, which all NPUs share that have it."""
    return tuple(Piece(node_bytes(node), role) for node, role in _nodes(program))


def _nodes(program: Sequence[Item]) -> Iterator[tuple[Node, tuple[str, str] | None]]:
    last, needed, before = 0, list[int](), tuple[int, ...]()
    for number, item in enumerate(program, 1):
        if isinstance(item, Receive):
            yield Node(number, item.name, RECEIVE, attributes=_message(item.bytes, item.tag)), ("source", item.source)
            needed.append(number)
            continue
        deps = tuple(sorted({*needed, *([last] if last else [])}))
        if isinstance(item, Send):
            yield Node(number, item.name, SEND, data_deps=deps, attributes=_message(item.bytes, item.tag)), ("to", item.to)
            continue
        if isinstance(item, Compute):
            more = (Attribute("num_ops", "int64", item.flops), Attribute("tensor_size", "uint64", item.bytes))
            host = Attribute("is_cpu_op", "bool", value=False)
            yield Node(number, item.name, COMP, data_deps=deps, duration_micros=item.micros, attributes=(host, *more)), None
        else:
            deps = before if item.is_beside else deps
            kind = Attribute("comm_type", "int64", COLLECTIVES.index(item.kind))
            size, host = Attribute("comm_size", "int64", item.bytes), Attribute("is_cpu_op", "bool", value=False)
            yield Node(number, item.name, COLLECTIVE, data_deps=deps, attributes=(host, kind, size)), ("group", item.group)
            if item.is_beside:
                needed.append(number)
                continue
        last, needed, before = number, [], deps


def _message(size: int, tag: int) -> tuple[Attribute, ...]:
    host = Attribute("is_cpu_op", "bool", value=False)
    return host, Attribute("comm_size", "int64", size), Attribute("comm_tag", "int32", tag)


Lengths = tuple[tuple[tuple[str, str] | None, int], ...]


@dataclass(slots=True)
class Writer:
    """Bytes of traces, put together from the pieces that NPUs share."""

    pieces: tuple[Piece, ...]
    head: bytes = field(default_factory=lambda: written(Metadata(VERSION), ()))
    fronts: dict[Lengths, list[bytes]] = field(default_factory=dict)
    """By the lengths of what differs, each node with its own length before it."""

    def trace_of(self, npu: int, peers: Mapping[str, int], groups: Mapping[str, int]) -> bytes:
        """The trace of an NPU whose peers and groups these are by their roles."""
        own = _own_bytes(npu, peers, groups)
        key = tuple((role, len(value)) for role, value in own.items())
        if key not in self.fronts:
            self.fronts[key] = [varint(len(one.node) + len(own[one.role])) + one.node for one in self.pieces]
        parts = [self.head]
        for front, piece in zip(self.fronts[key], self.pieces, strict=True):
            parts += (front, own[piece.role])
        return b"".join(parts)


def _own_bytes(npu: int, peers: Mapping[str, int], groups: Mapping[str, int]) -> dict[tuple[str, str] | None, bytes]:
    """What differs from NPU to NPU, as attributes behind all others."""
    found: dict[tuple[str, str] | None, bytes] = {None: b""}
    for role, group in groups.items():
        found["group", role] = _attributes(Attribute("pg_name", "string", str(group)))
    for role, peer in peers.items():
        for way, ends in (("source", (peer, npu)), ("to", (npu, peer))):
            found[way, role] = _attributes(*(Attribute(name, "int32", end) for name, end in zip(ROLES.values(), ends, strict=True)))
    return found


def _attributes(*attributes: Attribute) -> bytes:
    """Bytes that add attributes to the node that stands before them."""
    return node_bytes(Node(attributes=attributes))
