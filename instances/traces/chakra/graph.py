"""From the nodes of a Chakra trace to a graph.

Nodes wait for what they read (`data_deps`). Control edges of PyTorch say which call is inside which, not what comes first; they count where
there are no others. What refers to ids that are not in the file is left out, and told, as public traces do that. Where nodes say when they
began, those of one thread or stream follow in that order, and a gap is put before what began later than all that it waits for. Where none
does, they take turns (crossflow/traces/graph.py): one at a time on each thread, stream, device and network. What the host does for a
collective is work of its thread.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from crossopt.crossflow.traces.graph import APART, EDGES, KINDS, RULE, SPAN_ENDS, Graph, are_apart, graph_of, replay, turns_of
from crossopt.instances.traces.chakra.messages import COLLECTIVE, COMP, MEM_LOAD, MEM_STORE, RECEIVE, SEND, Node
from crossopt.instances.traces.chakra.reading import ChakraTrace, version_of
from crossopt.instances.traces.graph_file import Imported, Trace, counted, refuse_cycle
from crossopt.instances.traces.packed import plain, refuse

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
    place_of = {node.id: place for place, node in enumerate(nodes)}
    is_timed = any(node.start_micros for node in nodes)
    uses_control = not any(node.data_deps for node in nodes)
    edges, dangling = list[tuple[int, int, str]](), 0
    for place, node in enumerate(nodes):
        for one in node.ctrl_deps if uses_control else node.data_deps:
            if one in place_of:
                edges.append((place_of[one], place, "data"))
            else:
                dangling += 1
    control = 0 if uses_control else sum(one not in place_of for node in nodes for one in node.ctrl_deps)
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
    beside = [place for place, node in enumerate(nodes) if node.type == RECEIVE and not node.get("is_cpu_op")]
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
        for place, took, last in gaps:
            edges += [(last, len(operations), "data")] if last >= 0 else []
            edges.append((len(operations), place, "data"))
            operations.append(("gap", "gap", rows[place].where, took))
        moved, flops, groups = moved + [0] * len(gaps), flops + [0] * len(gaps), groups + [""] * len(gaps)
    return graph_of(operations, edges, moved, flops, groups)


def _orders(rows: list[_Row]) -> list[tuple[int, int, str]]:
    """What follows what on each thread and stream."""
    by_place = defaultdict[str, list[int]](list)
    for place in sorted(range(len(rows)), key=lambda one: (rows[one].begin, rows[one].begin + rows[one].took, one)):
        by_place[rows[place].where].append(place)
    return [
        (one, other, "thread" if rows[one].kind == "host" else "stream") for places in by_place.values() for one, other in pairwise(places)
    ]


def _gaps(rows: list[_Row], edges: list[tuple[int, int, str]]) -> list[tuple[int, int, int]]:
    """Of each operation that began later than all that it waits for: its place, by how much, and what ended last (-1 for nothing)."""
    zero = min(row.begin for row in rows)
    last = [(zero, -1)] * len(rows)
    for one, other, _ in edges:
        last[other] = max(last[other], (rows[one].begin + rows[one].took, one))
    return [(place, row.begin - last[place][0], last[place][1]) for place, row in enumerate(rows) if row.begin > last[place][0]]


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
        remarks.append(f"{counted(dangling, 'edge names an id', 'edges name ids')} that no node has: left out")
    if control:
        remarks.append(
            f"{counted(control, 'control edge names an id', 'control edges name ids')} that no node has; control edges are not used"
        )
    without = sum(not node.duration_micros for node in nodes if node.type >= MEM_LOAD)
    if without:
        remarks.append(f"{counted(without, 'node has', 'nodes have')} no duration: 0 ns each")
    collectives = [node for node in nodes if node.type == COLLECTIVE and not node.get("is_cpu_op")]
    known, total = sum(node.get("comm_size") is not None for node in collectives), len(collectives)
    if known < total:
        remarks.append(f"{total - known} of {counted(total, 'collective', 'collectives')} say no bytes")
    return remarks
