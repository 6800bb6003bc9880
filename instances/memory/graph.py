"""Graphs of operators with times and sizes of outputs, in whole numbers, and their reading from JSON.

A node is computed from its inputs, which must be in memory while it runs, and its output stays there until it is dropped. The order of the
nodes is the order of their first computations. Sizes are whole bytes. Times are whole numbers of a decimal unit of the file's time, so that
their sums are exact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from math import ceil, isfinite, prod
from typing import Any

import numpy as np

from crossopt.crossflow.operator_costs import OPERATORS, columns_of, graph_costs
from crossopt.crossflow.operator_graph import Node, OperatorGraph, values_in
from crossopt.crossflow.workload import Precision
from crossopt.instances.catalogue.registry import build_device, device
from crossopt.instances.files.graphs import FaultList, cycle_of, read_json, rows_of
from crossopt.instances.files.units import quoted

GREATEST = 1 << 53
"""Sizes, times and their sums are below this, where floats are exact, too."""
MOST_NODES, MOST_PLACES = 20_000, 9
STORAGE_KEYS = ("in_place", "view_of")
Storage = Sequence[tuple[str, str, int, int]]
"""Keys of storage, each with where it stands, its node, and the node that it names."""
_NODE_KEYS = ("time", "bytes", "workspace", "backward", "constant")


@dataclass(frozen=True)
class HostLink:
    """The link to the memory of the host."""

    times: tuple[int, ...]
    """Of the transfer of each output in one direction."""
    overlapped: bool
    """Whether transfers run beside computations, in a queue for each direction; else one after the other with these."""
    memory: int
    """Bytes of the device. Where outputs that are still being written leave too little of them, computations wait."""


@dataclass(frozen=True)
class MemoryGraph:
    """Operators in the order of their first computations."""

    names: tuple[str, ...]
    times: tuple[int, ...]
    """In units of 10^-places of the file's time."""
    sizes: tuple[int, ...]
    """Bytes of outputs."""
    workspaces: tuple[int, ...]
    """Bytes that a node takes while it runs, beside its inputs and its output."""
    backward: tuple[bool, ...]
    inputs: tuple[tuple[int, ...], ...]
    places: int = 0
    """Decimal places of times."""
    fixed: int = 0
    """Bytes of parameters, gradients and optimizer, outside the budget."""
    in_place: tuple[int, ...] = ()
    """The input that each node may overwrite, or -1; empty where none may. A view has no bytes, and its readers read what it looks at."""
    constant: tuple[int, ...] = ()
    """Nodes whose time and bytes are those of every batch."""
    host: HostLink | None = None
    fixed_parts: tuple[tuple[str, int], ...] = ()
    """The fixed bytes by class, where operators say them."""

    @cached_property
    def shared(self) -> tuple[int, ...]:
        """Bytes that each output takes over from the input that it overwrites, if that is not used later."""
        if not self.in_place:
            return (0,) * len(self.names)
        return tuple(0 if source < 0 else min(self.sizes[source], size) for source, size in zip(self.in_place, self.sizes, strict=True))

    @property
    def total_time(self) -> int:
        return sum(self.times)

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """Nodes that read each output, in order."""
        found: list[list[int]] = [[] for _ in self.names]
        for node, inputs in enumerate(self.inputs):
            for source in inputs:
                found[source].append(node)
        return tuple(tuple(nodes) for nodes in found)

    @cached_property
    def last_uses(self) -> tuple[int, ...]:
        """The last node that reads each output; the node itself where none does."""
        return tuple(users[-1] if users else node for node, users in enumerate(self.users))

    @cached_property
    def floors(self) -> tuple[int, ...]:
        """Bytes that each node needs while it runs: inputs, output and workspace."""
        return tuple(
            self.sizes[node] + self.workspaces[node] - self.shared[node] + sum(self.sizes[source] for source in inputs)
            for node, inputs in enumerate(self.inputs)
        )

    @cached_property
    def plain_bytes(self) -> tuple[int, ...]:
        """Bytes in memory while each node runs, where nothing is repeated and each output is dropped after its last use."""
        ending: list[int] = [0] * len(self.names)
        for node, last in enumerate(self.last_uses):
            ending[last] += self.sizes[node]
        found, live = list[int](), 0
        for node, (size, workspace, ends) in enumerate(zip(self.sizes, self.workspaces, ending, strict=True)):
            live += size
            over = self.shared[node] and self.last_uses[self.in_place[node]] == node
            found.append(live + workspace - (self.shared[node] if over else 0))
            live -= ends
        return tuple(found)

    @property
    def plain_peak(self) -> int:
        return max(self.plain_bytes)

    def label(self, node: int) -> str:
        """A node in messages."""
        return f"{self.names[node]} (node {node})"


def blocks_of(graph: MemoryGraph, block: int) -> MemoryGraph:
    """The graph with sizes and workspaces rounded up to whole blocks of an allocator."""
    sizes, workspaces = (tuple(-(-size // block) * block for size in bytes_) for bytes_ in (graph.sizes, graph.workspaces))
    return replace(graph, sizes=sizes, workspaces=workspaces)


def at_batch(graph: MemoryGraph, batch: int, at: int) -> MemoryGraph:
    """The graph for another batch than that of its figures: times and bytes grow with the batch, rounded up, but for constant nodes."""
    constant = set(graph.constant)

    def scaled(figures: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(figure if node in constant else -(-figure * batch // at) for node, figure in enumerate(figures))

    return replace(graph, times=scaled(graph.times), sizes=scaled(graph.sizes), workspaces=scaled(graph.workspaces))


def graph_of(
    names: Sequence[str],
    times: Sequence[float | int],
    sizes: Sequence[int],
    workspaces: Sequence[int],
    backward: Sequence[bool],
    arcs: Sequence[tuple[int, int]],
    fixed: int,
    faults: FaultList,
    storage: Storage = (),
) -> MemoryGraph | None:
    """The graph of such nodes and arcs; None where there are faults."""
    if not names:
        faults.add("nodes", "a graph needs a node")
    if len(names) > MOST_NODES:
        faults.add("nodes", f"{len(names):,} nodes are more than {MOST_NODES:,} (merge some)")
    backwards = [(source, target) for source, target in arcs if source >= target]
    if backwards:
        if cycle := cycle_of(arcs, len(names)):
            faults.add(
                "edges", f"the nodes {' -> '.join(quoted(names[node]) for node in (*cycle[:6], cycle[0]))} are a cycle (remove an edge)"
            )
        else:
            source, target = (quoted(names[node]) for node in backwards[0])
            faults.add("edges", f"{target} reads {source}, which comes after it (list nodes in the order in which they run)")
    decimals = [Decimal(repr(time)) for time in times]
    places = max((-min(int(decimal.normalize().as_tuple().exponent), 0) for decimal in decimals), default=0)
    if places > MOST_PLACES:
        faults.add("nodes", f"times have up to {places} decimal places, of which {MOST_PLACES} are read (give them in a smaller unit)")
    whole = [int(decimal.scaleb(places)) for decimal in decimals]
    for what, figures in (("times", whole), ("bytes", sizes), ("workspaces", workspaces)):
        if sum(figures) >= GREATEST:
            faults.add("nodes", f"the {what} add up to 2^53 or more, where sums are no longer exact (give them in a larger unit)")
    inputs: list[set[int]] = [set() for _ in names]
    for reads, reader in arcs:
        inputs[reader].add(reads)
    _check_storage(names, inputs, storage, faults)
    if faults.found:
        return None
    ordered = tuple(tuple(sorted(sources)) for sources in inputs)
    graph = MemoryGraph(tuple(names), tuple(whole), tuple(sizes), tuple(workspaces), tuple(backward), ordered, places, fixed)
    return with_storage(graph, {key: {node: named for _, own, node, named in storage if own == key} for key in STORAGE_KEYS})


def _check_storage(names: Sequence[str], inputs: Sequence[set[int]], storage: Storage, faults: FaultList) -> None:
    for path, key, node, named in storage:
        if named not in inputs[node]:
            faults.add(f"{path}.{key}", f"{quoted(names[node])} does not read {quoted(names[named])} (name one of its inputs)")
    if len({node for _, _, node, _ in storage}) < len(storage):
        faults.add("nodes", "a node is a view, or writes in place (leave out in_place or view_of)")


def with_storage(graph: MemoryGraph, storage: Mapping[str, Mapping[int, int]]) -> MemoryGraph:
    """The graph with outputs that share storage: views without bytes, whose readers read what they look at, and nodes in place."""
    views, in_place = storage["view_of"], storage["in_place"]
    base = list(range(len(graph.names)))
    for node in sorted(views):
        base[node] = base[views[node]]
    inputs = tuple(tuple(sorted({*sources, *(base[source] for source in sources)})) for sources in graph.inputs)
    sizes = tuple(0 if node in views else size for node, size in enumerate(graph.sizes))
    places = tuple(base[in_place[node]] if node in in_place else -1 for node in range(len(base)))
    return replace(graph, sizes=sizes, inputs=inputs, in_place=places if in_place else ())


def graph_in(text: str, source: str) -> MemoryGraph:
    """The graph in a JSON text with `nodes` and `edges`; an InstanceError with every fault."""
    document, faults = read_json(text, source), FaultList(source)
    nodes, edges = (document.get(key) if isinstance(document, dict) else None for key in ("nodes", "edges"))
    if not isinstance(nodes, list) or not isinstance(edges, list):
        faults.add("", 'this is no graph with nodes and edges (such as {"nodes": [{"id": 0, "time": 5, "bytes": 8}], "edges": []})')
        faults.end()
        return _unreachable()
    rows = rows_of(nodes, faults)
    faults.end()
    order = (
        sorted(range(len(nodes)), key=lambda row: nodes[row]["id"]) if all(type(node["id"]) is int for node in nodes) else range(len(nodes))
    )
    places = {row: index for index, row in enumerate(order)}
    listed = [nodes[row] for row in order]
    figures = {key: [_figure(node, key, row, faults) for row, node in zip(order, listed, strict=True)] for key in _NODE_KEYS}
    arcs = list[tuple[int, int]]()
    for index, edge in enumerate(edges):
        ends = [rows.get(str(end)) for end in edge] if isinstance(edge, list) and len(edge) == 2 else []
        if len(ends) != 2:
            faults.add(f"edges[{index}]", "an edge is a pair of ids: the node that is read, and the one that reads it")
        elif None in ends:
            missing = edge[ends.index(None)]
            faults.add(f"edges[{index}]", f"there is no node {quoted(str(missing)[:40])} (an edge joins two nodes of the graph)")
        else:
            arcs.append((places[ends[0] or 0], places[ends[1] or 0]))
    fixed, storage = _figure(document, "fixed_bytes", None, faults), list[tuple[str, str, int, int]]()
    for row, node in enumerate(nodes):
        for key in (key for key in STORAGE_KEYS if node.get(key) is not None):
            if (named := rows.get(str(node[key]))) is None:
                faults.add(f"nodes[{row}].{key}", f"there is no node {quoted(str(node[key])[:40])} (name a node of the graph)")
            else:
                storage.append((f"nodes[{row}]", key, places[row], places[named]))
    faults.end()
    names = [str(node.get("name", node["id"])) for node in listed]
    sizes, workspaces = ([int(figure) for figure in figures[key]] for key in ("bytes", "workspace"))
    backward = [bool(flag) for flag in figures["backward"]]
    graph = graph_of(names, figures["time"], sizes, workspaces, backward, arcs, int(fixed), faults, storage)
    faults.end()
    return replace(graph or _unreachable(), constant=tuple(node for node, flag in enumerate(figures["constant"]) if flag))


def _unreachable() -> MemoryGraph:
    raise AssertionError


def _figure(node: dict[str, Any], key: str, row: int | None, faults: FaultList) -> float | int:
    """A number from 0 on of a node, or of the file; whole but for times."""
    path = key if row is None else f"nodes[{row}].{key}"
    value = node.get(key, None if key in {"time", "bytes"} else 0)
    if isinstance(value, bool):
        value = int(value) if key in {"backward", "constant"} else None
    if not isinstance(value, int | float) or (isinstance(value, float) and not isfinite(value)):
        faults.add(path, f"a number is needed, not {str(value)[:40]}" if key in node else "it is missing (a number from 0 on)")
    elif value < 0:
        faults.add(path, f"{str(value)[:40]} is below 0")
    elif value >= GREATEST:
        faults.add(path, f"{str(value)[:40]} is 2^53 or more, where numbers are no longer exact (give it in a larger unit)")
    elif key != "time" and value != int(value):
        faults.add(path, f"{value} is no whole number of bytes")
    else:
        return value
    return 0


# A graph of operators on a device: forward nodes, backward twins, times by the roofline, bytes by shapes.
#
# Activations have the bytes of the precision. A view has none: its readers read what it looks at. The twin of an operator needs
# the gradients that its users send back, and what its type keeps for the backward pass (`crossflow.operator_costs`); its output is the
# gradient of the operator's inputs. Times are whole nanoseconds. Inputs of the network, weights, their gradients and the optimizer are
# outside the budget.

_PLACES = 9
"""Times are nanoseconds."""
_ADAM = {4: 8, 2: 12}
"""Bytes a weight of two moments, and of a master copy for 16-bit weights, by the bytes of a weight."""


def memory_graph(graph: OperatorGraph, hardware: str, precision: Precision, training: bool) -> MemoryGraph:
    """The memory graph of one step; a ValueError where the device has no peak in that precision."""
    entry = device(hardware)
    if precision not in entry.peak:
        raise ValueError(f"{hardware} has no peak in {precision} (it has {', '.join(entry.peak)})")
    width = 4 if precision == "fp32" else 2
    costs = graph_costs(columns_of(graph), float(width), build_device(entry, hardware, precision, 2))
    forward, backward = (_nanoseconds(side.time) for side in (costs.forward, costs.backward))
    nodes = [(row, node) for row, node in enumerate(graph.nodes) if not _is_view(node)]
    origin = _origins(graph)
    makers = {tensor: index for index, (_, node) in enumerate(nodes) for tensor in node.outputs}
    reads = [sorted({makers[one] for name in node.inputs if (one := origin.get(name, name)) in makers}) for _, node in nodes]
    sizes = [width * values_in(node.outputs, graph.tensors) for _, node in nodes]
    names, times, inputs = [node.name for _, node in nodes], [forward[row] for row, _ in nodes], [tuple(read) for read in reads]
    if training:
        users: list[list[int]] = [[] for _ in nodes]
        for index, sources in enumerate(reads):
            for source in sources:
                users[source].append(index)
        twins = dict[int, int]()
        for index in reversed(range(len(nodes))):
            row, node = nodes[index]
            kept = {makers[one] for name in _kept(node) if (one := origin.get(name, name)) in makers}
            twins[index] = len(names)
            inputs.append(tuple(sorted(kept | {twins[user] for user in users[index]} | ({index} if not users[index] else set()))))
            names.append(f"grad {node.name}")
            times.append(backward[row])
            sizes.append(sum(sizes[source] for source in reads[index]))
    weights = width * sum(prod(item.shape) for item in graph.weights.values())
    trained = graph.parameters if training else 0
    entering = width * values_in(graph.inputs, graph.tensors)
    parts = (("weights", weights), ("weight gradients", width * trained), ("optimizer", _ADAM[width] * trained), ("inputs", entering))
    count = len(names)
    backwards = tuple(index >= len(nodes) for index in range(count))
    return MemoryGraph(
        tuple(names),
        tuple(times),
        tuple(sizes),
        (0,) * count,
        backwards,
        tuple(inputs),
        _PLACES,
        sum(bytes_ for _, bytes_ in parts),
        fixed_parts=tuple(part for part in parts if part[1]),
    )


def _nanoseconds(seconds: object) -> list[int]:
    return [ceil(figure * 1e9) for figure in np.ravel(np.asarray(seconds, np.float64)).tolist()]


def _is_view(node: Node) -> bool:
    return OPERATORS.get(node.operator, OPERATORS["other"]).priced == "view" and bool(node.inputs)


def _origins(graph: OperatorGraph) -> dict[str, str]:
    """What each output of a view looks at."""
    found = dict[str, str]()
    for node in graph.nodes:
        if _is_view(node):
            found |= {tensor: found.get(node.inputs[0], node.inputs[0]) for tensor in node.outputs}
    return found


def _kept(node: Node) -> tuple[str, ...]:
    """Tensors that the backward twin reads."""
    keeps = OPERATORS.get(node.operator, OPERATORS["other"]).keeps
    return {"nothing": (), "inputs": node.inputs, "outputs": node.outputs, "everything": node.inputs + node.outputs}[keeps]
