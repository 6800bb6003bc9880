"""Traces of all NPUs read back and counted: every number used once and behind what it waits for, every message sent once and received once,
every collective issued by all members of its group in the same order, all of it work of devices, and the sums that `about.json` tells. What
nothing counts, such as names and which earlier node one waits for, is held to the digests of the files.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Any

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.crossflow.astra.npus import Task
from crossopt.instances.traces.chakra.messages import MessageError, Node, messages_in, metadata_in, node_in
from crossopt.instances.traces.chakra.reading import SCHEMAS, version_of
from crossopt.instances.traces.chakra.tasks import NodeError, task_of
from crossopt.instances.traces.chakra.written import Archive, refuse, traces_in

_KEPT = 1 << 14
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

    def words(self) -> dict[str, int]:
        return {one.name: getattr(self, one.name) for one in fields(self)}


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
    ends: tuple[list[Whole], list[Whole]] = field(default_factory=lambda: ([], []))
    """Messages sent and received: from, to, tag, bytes."""
    orders: dict[int, tuple[int, tuple[tuple[str, int], ...]]] = field(default_factory=dict)
    """By group one of its members, and what it issues."""
    joined: Counter[int] = field(default_factory=Counter)
    others: list[int] = field(default_factory=list)
    """NPUs whose traces are not the bytes that were written."""

    def add(self, npu: int, data: bytes) -> None:
        """A ValueError in words where a trace cannot be run."""
        self.others += [npu] if sha256(data).hexdigest() != self.archive.told(npu) else []
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
        for rows, held in zip(self.ends, (sent, received), strict=True):
            rows.append(np.array(held, np.int64).reshape(-1, 4))
        self.sums.npus += 1
        for group, order in issued.items():
            self.join(npu, group, tuple(order))

    def node(self, data: bytes) -> _Node:
        found = self.known.get(data)
        if found is None:
            node = node_in(data)
            if node.get("is_cpu_op") is not False:
                raise NodeError(f"node {node.id}: is_cpu_op is not said to be false, so that the simulator takes it for work of the host")
            found = _Node(task_of(node), _whole(node, "num_ops"), _whole(node, "tensor_size"))
            if len(self.known) >= _KEPT:
                self.known.clear()  # later NPUs have more in common with their neighbours than with the first ones
            self.known[data] = found
        return found

    def count(self, node: _Node) -> None:
        sums, task = self.sums, node.task
        sums.nodes += 1
        sums.flops += node.flops
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
            one, other = sent[unlike[0]].tolist(), received[unlike[0]].tolist()
            yield f"no NPU receives the message {_told(min(one, other))} as it is sent"
        yield from (f"NPU {npu}: the bytes of its trace are not those that were written, by about.json" for npu in self.others[:_FEW])
        if self.archive.digest != self.archive.told():
            yield "groups.json: its bytes are not those that were written, by about.json"
        found, told = self.sums.words(), self.archive.about["sums"]
        if found.keys() != told.keys():
            yield f"about.json tells other sums than {', '.join(found)}"
        else:
            yield from (
                f"{name}: {value:,} in the traces, {told[name]:,} by about.json" for name, value in found.items() if value != told[name]
            )


def _whole(node: Node, name: str) -> int:
    value = node.get(name)
    return value if type(value) is int and value >= 0 else 0


def _sorted(rows: Whole) -> Whole:
    return rows[np.lexsort(rows.T[::-1])]


def _told(row: list[int]) -> str:
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
    return {**more, "sums": sums.words()}
