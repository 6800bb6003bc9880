"""The Chakra traces of all NPUs of a plan: nodes of each program, the archive that holds them, and its traces read back and counted."""

import io
import json
import re
import shutil
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import sha256
from math import floor
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.crossflow.astra.collective import Collective
from crossopt.crossflow.astra.npus import Task
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import JsonError, bytes_of, opened, read_strictly
from crossopt.instances.traces.chakra import (
    COLLECTIVE,
    COLLECTIVES,
    COMP,
    MEM_LOAD,
    MEM_STORE,
    RECEIVE,
    SCHEMAS,
    SEND,
    Attribute,
    MessageError,
    Metadata,
    Node,
    messages_in,
    metadata_in,
    node_bytes,
    node_in,
    varint,
    version_of,
    written,
)

# A folder or a .tar with the traces of all NPUs: written whole or not at all, and read one by one.
#
# NAME.<npu>.et   the trace of each NPU, from 0
# groups.json     the members of each group of collectives, by its number, as ASTRA-sim takes it (--comm-group-configuration)
# about.json      how many NPUs, what all of them do together, and the SHA-256 of each file, to hold the files to

GROUPS, ABOUT = "groups.json", "about.json"
STEP = "step_ns"
"""Of the plan that the traces are of, as it was priced, where they are of one."""
BYTES = "sha256"
"""Of groups.json, and of the traces in the order of their NPUs."""
_LARGEST = 64 << 20
_TRACE = re.compile(r"(?:.*/)?([^/]*)\.(\d{1,7})\.et")


@dataclass(frozen=True, slots=True)
class Archive:
    """What was read beside the traces."""

    path: Path
    groups: dict[int, tuple[int, ...]]
    about: dict[str, Any]
    digest: str
    """Of groups.json as it is."""

    def recorded_digest(self, npu: int | None = None) -> str:
        """The digest of a trace, or of groups.json, as about.json tells it."""
        digests, index = self.about[BYTES], 0 if npu is None else npu + 1
        return str(digests[index]) if index < len(digests) else ""


def write_traces(target: Path, name: str, traces: Iterable[bytes], groups: Mapping[int, Sequence[int]], about: Mapping[str, Any]) -> None:
    """Put all files where the path says; a folder that is there already is refused, unless it is empty."""
    temporary = Path(tempfile.mkdtemp(prefix=".crossopt-", dir=target.parent or Path()))
    try:
        inside, files = temporary / "traces", _files(name, traces, groups, about)
        if target.suffix == ".tar":
            with tarfile.open(inside, "w") as archive:
                for file, data in files:
                    entry = tarfile.TarInfo(file)
                    entry.size = len(data)
                    archive.addfile(entry, io.BytesIO(data))
        else:
            inside.mkdir()
            for file, data in files:
                (inside / file).write_bytes(data)
            if target.is_dir():
                target.rmdir()
        inside.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _files(
    name: str, traces: Iterable[bytes], groups: Mapping[int, Sequence[int]], about: Mapping[str, Any]
) -> Iterator[tuple[str, bytes]]:
    """Names and bytes; the last one tells the digests of all others."""
    digests = list[str]()
    for npu, data in enumerate(traces):
        digests.append(sha256(data).hexdigest())
        yield f"{name}.{npu}.et", data
    members = _json_of({str(number): list(own) for number, own in groups.items()})
    yield GROUPS, members
    yield ABOUT, _json_of({**about, BYTES: [sha256(members).hexdigest(), *digests]})


def _json_of(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def archive_at(path: Path) -> Archive:
    """The files beside the traces; an InstanceError in one sentence where they are not as written."""
    data = dict(files_in(path, (GROUPS, ABOUT)))
    found = {name: _json(path, name, content) for name, content in data.items()}
    if not found and path.is_dir():
        refuse(path, "this is a directory (name a result, or a folder that `crossopt export --as chakra` wrote)")
    for name in (GROUPS, ABOUT):
        if name not in found:
            where = "folder" if path.is_dir() else "archive"
            refuse(path, f"there is no {name} in this {where} (name a result, or what `export --as chakra` writes)")
    try:
        groups = {int(number): tuple(map(int, members)) for number, members in found[GROUPS].items()}
    except (AttributeError, TypeError, ValueError):
        refuse(path, f"{GROUPS}: a list of NPUs by the number of each group is needed")
    sums = found[ABOUT].get("sums") if isinstance(found[ABOUT], dict) else None
    if not isinstance(sums, dict) or any(type(value) is not int for value in sums.values()):
        refuse(path, f"{ABOUT}: the sums of all traces are needed, each a whole number")
    if not isinstance(found[ABOUT].get(BYTES), list):
        refuse(path, f"{ABOUT}: the {BYTES} of each file is missing (write the traces anew)")
    return Archive(path, groups, found[ABOUT], sha256(data[GROUPS]).hexdigest())


def traces_in(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each trace with the number of its NPU."""
    for name, data in files_in(path, None):
        matched = _TRACE.fullmatch(name)
        if matched:
            yield int(matched[2]), data


def files_in(path: Path, names: tuple[str, ...] | None) -> Iterator[tuple[str, bytes]]:
    """Files of these names, or all traces, one after the other."""
    if path.is_dir():
        for inner in sorted(path.iterdir()):
            if inner.name in names if names is not None else _TRACE.fullmatch(inner.name):
                yield inner.name, _bytes(inner)
        return
    try:
        with opened(path, "name a folder or a .tar with traces") as file, tarfile.open(fileobj=file, mode="r:") as archive:
            for entry in archive:
                wanted = entry.name in names if names is not None else _TRACE.fullmatch(entry.name)
                if wanted and entry.isfile():
                    if entry.size > _LARGEST:
                        refuse(path, f"{entry.name} has more than {_LARGEST >> 20} MiB")
                    stream = archive.extractfile(entry)
                    yield entry.name, stream.read() if stream else b""
    except (tarfile.TarError, EOFError, ValueError) as error:
        refuse(path, f"this .tar cannot be read: {str(error).lower()} (write it anew)")


def _bytes(path: Path) -> bytes:
    data = bytes_of(path, _LARGEST, "name traces")
    if data is None:
        refuse(path, f"the file has more than {_LARGEST >> 20} MiB")
    return data


def _json(path: Path, name: str, data: bytes) -> Any:  # noqa: ANN401 - JSON as it is
    try:
        return read_strictly(data.decode("utf-8"))
    except (JsonError, UnicodeDecodeError) as error:
        refuse(path, f"{name}: {error} (write the traces anew)")


def refuse(path: Path, message: str) -> NoReturn:
    raise InstanceError(str(path), [Fault(1, 1, "", message)], "nothing read")


# What an NPU does in a step, written as a Chakra trace that ASTRA-sim runs.
#
# Computations and collectives follow one another in the order of the program, so that each waits for the one before. A message is sent
# behind what gives it, and nothing waits until it has left; it is received as soon as it comes, and what needs it waits for it. Numbers
# ascend in that order, as the simulator starts what may start by number. A message's tag is its own among those of its sender and receiver.
# Sizes of all-gathers are what each NPU brings, of all other collectives the whole.

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


@dataclass(frozen=True, slots=True)
class Access:
    """A load from memory outside the NPU, or a store to it. It begins with the work before it, and what follows waits for both."""

    name: str
    kind: Literal["load", "store"]
    bytes: int


Item = Compute | Exchange | Send | Receive | Access
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
        if isinstance(item, Access):
            size, host = Attribute("tensor_size", "uint64", item.bytes), Attribute("is_cpu_op", "bool", value=False)
            yield Node(number, item.name, MEM_LOAD if item.kind == "load" else MEM_STORE, data_deps=before, attributes=(host, size)), None
            needed.append(number)
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
            self.fronts[key] = [varint(len(piece.node) + len(own[piece.role])) + piece.node for piece in self.pieces]
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


# Nodes of a Chakra trace as tasks of an NPU, as the simulator takes them: control and data edges both, times from nodes.

_MICRO = 1_000
KNOWN: tuple[Collective, ...] = get_args(Collective)


class NodeError(ValueError):
    """A node that the simulator cannot run, with what to write."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """By which the simulator may price computations, from their FLOPs and bytes."""

    peak: float
    """FLOP/s."""
    memory: float
    """Bytes a second."""

    def time(self, node: Node) -> int:
        """floor(1e9 FLOPs / min(peak, memory FLOPs / bytes)) ns; nothing where there are no bytes."""
        flops, moved = _integer(node, "num_ops"), _integer(node, "tensor_size")
        return floor(flops / min(self.memory * (flops / moved), self.peak) * 1e9) if flops and moved else 0


def task_of(node: Node, roofline: Roofline | None = None) -> Task:
    """The task of a node; a NodeError in words for one that cannot be run."""
    after = tuple(dict.fromkeys((*node.ctrl_deps, *node.data_deps)))
    if node.type in (MEM_LOAD, MEM_STORE):
        return Task(node.id, "load" if node.type == MEM_LOAD else "store", after, 0, _integer(node, "tensor_size"))
    if node.type == COMP:
        return Task(node.id, "compute", after, roofline.time(node) if roofline else node.duration_micros * _MICRO or 1)
    size = _integer(node, "comm_size")
    if node.type == SEND:
        return Task(node.id, "send", after, 0, size, _integer(node, "comm_dst"), _integer(node, "comm_tag"))
    if node.type == RECEIVE:
        return Task(node.id, "receive", after, 0, size, _integer(node, "comm_src"), _integer(node, "comm_tag"))
    if node.type != COLLECTIVE:
        raise NodeError(f"node {node.id}: type {node.type} is none that is run (2 to 7 are)")
    kind = _integer(node, "comm_type")
    name = next((name_known for name_known in KNOWN if kind < len(COLLECTIVES) and name_known == COLLECTIVES[kind]), None)
    if name is None:
        raise NodeError(f"node {node.id}: comm_type {kind} is no collective that is run (0, 2, 6 and 7 are)")
    return Task(node.id, "collective", after, 0, size, collective=name, group=_group(node))


def _integer(node: Node, name: str) -> int:
    value = node.get(name)
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise NodeError(f"node {node.id}: {name} is missing" if value is None else f"node {node.id}: {name} is {value!r}")
    return value


def _group(node: Node) -> int:
    """The number in `pg_name`; all NPUs where there is none."""
    name = node.get("pg_name")
    if name is None:
        return 0
    if not isinstance(name, str) or not name.isdecimal() or int(name) == 0:
        raise NodeError(f"node {node.id}: pg_name is {name!r}, a group's number from 1 on is needed (the simulator ends on 0)")
    return int(name)


# Traces of all NPUs read back and counted: every number used once and behind what it waits for, every message sent once and received once,
# every collective issued by all members of its group in the same order, all of it work of devices, and the sums that `about.json` tells.
# What nothing counts, such as names and which earlier node one waits for, is held to the digests of the files.

_CACHED = 1 << 14
"""Nodes of which it is remembered what they are, as many are the same."""


@dataclass(slots=True)
class Sums:
    """What all NPUs do together."""

    npus: int = 0
    nodes: int = 0
    micros: int = 0
    flops: int = 0
    moved: int = 0
    """Bytes of computations."""
    messages: int = 0
    message_bytes: int = 0
    collectives: int = 0
    collective_bytes: int = 0
    """At each member, as the traces say them."""
    accesses: int = 0
    access_bytes: int = 0
    """Of memory outside the NPUs."""

    def by_name(self) -> dict[str, int]:
        """Accesses where there are any."""
        return {item.name: getattr(self, item.name) for item in fields(self) if self.accesses or not item.name.startswith("access")}


@dataclass(frozen=True, slots=True)
class _Node:
    """A node as far as it is counted."""

    task: Task
    flops: int
    moved: int


@dataclass(slots=True)
class Recount:
    """What was read so far."""

    archive: Archive
    sums: Sums = field(default_factory=Sums)
    known: dict[bytes, _Node] = field(default_factory=dict)
    ends: tuple[list[Ints], list[Ints]] = field(default_factory=lambda: ([], []))
    """Messages sent and received: from, to, tag, bytes."""
    orders: dict[int, tuple[int, tuple[tuple[str, int], ...]]] = field(default_factory=dict)
    """By group one of its members, and what it issues."""
    joined: Counter[int] = field(default_factory=Counter)
    others: list[int] = field(default_factory=list)
    """NPUs whose traces are not the bytes that were written."""

    def add(self, npu: int, data: bytes) -> None:
        """A ValueError in words where a trace cannot be run."""
        self.others += [npu] if sha256(data).hexdigest() != self.archive.recorded_digest(npu) else []
        issued = dict[int, list[tuple[str, int]]]()
        sent, received, seen = list[tuple[int, ...]](), list[tuple[int, ...]](), set[int]()
        messages = messages_in(data)
        version = version_of(metadata_in(next(messages, b"")))
        if version not in SCHEMAS:
            raise NodeError(f"the schema {version!r} is not known")
        for message in messages:
            node = self.node(message)
            task = node.task
            if task.number in seen:
                raise NodeError(f"node {task.number}: the id is given twice")
            if not seen.issuperset(task.after):
                raise NodeError(f"node {task.number}: it waits for a node that does not stand before it")
            seen.add(task.number)
            if task.kind == "send":
                sent.append((npu, task.peer, task.tag, task.bytes))
            elif task.kind == "receive":
                received.append((task.peer, npu, task.tag, task.bytes))
            elif task.kind == "collective":
                issued.setdefault(task.group, []).append((task.collective, task.bytes))
            self.count(node)
        for rows, rows_of_npu in zip(self.ends, (sent, received), strict=True):
            rows.append(np.array(rows_of_npu, np.int64).reshape(-1, 4))
        self.sums.npus += 1
        for group, order in issued.items():
            self.join(npu, group, tuple(order))

    def node(self, data: bytes) -> _Node:
        found = self.known.get(data)
        if found is None:
            node = node_in(data)
            if node.get("is_cpu_op") is not False:
                raise NodeError(f"node {node.id}: is_cpu_op is not false, so that the simulator treats it as work of the host")
            found = _Node(task_of(node), _amount(node, "num_ops"), _amount(node, "tensor_size"))
            if len(self.known) >= _CACHED:
                self.known.clear()  # later NPUs have more in common with their neighbours than with the first ones
            self.known[data] = found
        return found

    def count(self, node: _Node) -> None:
        sums, task = self.sums, node.task
        sums.nodes += 1
        sums.flops += node.flops
        if task.kind in ("load", "store"):
            sums.accesses += 1
            sums.access_bytes += task.bytes
            return
        sums.moved += node.moved
        if task.kind == "compute":
            sums.micros += task.time // 1000
        elif task.kind == "send":
            sums.messages += 1
            sums.message_bytes += task.bytes
        elif task.kind == "collective":
            sums.collectives += 1
            sums.collective_bytes += task.bytes

    def join(self, npu: int, group: int, order: tuple[tuple[str, int], ...]) -> None:
        if npu not in self.archive.groups.get(group, ()):
            raise NodeError(f"it exchanges in group {group}, of which it is no member")
        first, known = self.orders.setdefault(group, (npu, order))
        if known != order:
            raise NodeError(f"in group {group} it does not issue the collectives of NPU {first} in the same order")
        self.joined[group] += 1

    def faults(self) -> Iterator[str]:
        """What does not hold of all traces together."""
        for group, members in self.archive.groups.items():
            if 0 < self.joined[group] < len(members):
                yield f"group {group}: {self.joined[group]} of {len(members)} members issue its collectives"
        sent, received = (_sorted(np.concatenate([*rows, np.zeros((0, 4), np.int64)])) for rows in self.ends)
        if len(sent) != len(received):
            yield f"{len(sent):,} messages are sent and {len(received):,} received"
        elif (unlike := np.flatnonzero((sent != received).any(axis=1))).size:
            sending, receiving = sent[unlike[0]].tolist(), received[unlike[0]].tolist()
            yield f"no NPU receives the message {_message_text(min(sending, receiving))} as it is sent"
        yield from (f"NPU {npu}: the bytes of its trace are not those that were written, by about.json" for npu in self.others[:_FEW])
        if self.archive.digest != self.archive.recorded_digest():
            yield "groups.json: its bytes are not those that were written, by about.json"
        found, stated = self.sums.by_name(), self.archive.about["sums"]
        if found.keys() != stated.keys():
            yield f"about.json tells other sums than {', '.join(found)}"
        else:
            yield from (
                f"{name}: {value:,} in the traces, {stated[name]:,} by about.json" for name, value in found.items() if value != stated[name]
            )


def _amount(node: Node, name: str) -> int:
    value = node.get(name)
    return value if type(value) is int and value >= 0 else 0


def _sorted(rows: Ints) -> Ints:
    return rows[np.lexsort(rows.T[::-1])]


def _message_text(row: list[int]) -> str:
    return f"from {row[0]} to {row[1]} with tag {row[2]} of {row[3]:,} bytes"


def recounted(archive: Archive) -> tuple[Sums, list[str]]:
    """The sums of all traces, and what is wrong, in sentences."""
    recount, wrong, npus = Recount(archive), list[str](), set[int]()
    for npu, data in traces_in(archive.path):
        if npu in npus:
            wrong.append(f"NPU {npu} has two traces")
        try:
            recount.add(npu, data)
        except (MessageError, NodeError) as error:
            wrong.append(f"NPU {npu}: {error}")
        npus.add(npu)
        if len(wrong) > _FEW:
            return recount.sums, wrong
    if not npus:
        refuse(archive.path, "there is no trace NAME.<npu>.et in it")
    missing = set(range(max(npus) + 1)) - npus
    wrong += [f"the trace of NPU {min(missing)} is missing"] if missing else []
    return recount.sums, wrong or list(recount.faults())


_FEW = 8


def about(sums: Sums, more: dict[str, Any]) -> dict[str, Any]:
    """What stands in about.json."""
    return {**more, "sums": sums.by_name()}
