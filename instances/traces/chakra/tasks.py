"""Nodes of a Chakra trace as tasks of an NPU, as the simulator takes them: control and data edges both, times from nodes."""

from dataclasses import dataclass
from math import floor
from typing import get_args

from crossopt.crossflow.astra.npus import Task
from crossopt.crossflow.astra.phases import Collective
from crossopt.instances.traces.chakra.messages import COLLECTIVE, COLLECTIVES, COMP, RECEIVE, SEND, Node

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
        flops, moved = _whole(node, "num_ops"), _whole(node, "tensor_size")
        return floor(flops / min(self.memory * (flops / moved), self.peak) * 1e9) if flops and moved else 0


def task_of(node: Node, roofline: Roofline | None = None) -> Task:
    """The task; a NodeError in words for one that nobody could run."""
    after = tuple(dict.fromkeys((*node.ctrl_deps, *node.data_deps)))
    if node.type == COMP:
        return Task(node.id, "compute", after, roofline.time(node) if roofline else node.duration_micros * _MICRO or 1)
    size = _whole(node, "comm_size")
    if node.type == SEND:
        return Task(node.id, "send", after, 0, size, _whole(node, "comm_dst"), _whole(node, "comm_tag"))
    if node.type == RECEIVE:
        return Task(node.id, "receive", after, 0, size, _whole(node, "comm_src"), _whole(node, "comm_tag"))
    if node.type != COLLECTIVE:
        raise NodeError(f"node {node.id}: type {node.type} is none that is run (4 to 7 are)")
    kind = _whole(node, "comm_type")
    name = next((one for one in KNOWN if kind < len(COLLECTIVES) and one == COLLECTIVES[kind]), None)
    if name is None:
        raise NodeError(f"node {node.id}: comm_type {kind} is no collective that is run (0, 2, 6 and 7 are)")
    return Task(node.id, "collective", after, 0, size, collective=name, group=_group(node))


def _whole(node: Node, name: str) -> int:
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
