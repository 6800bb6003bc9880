"""Host traces of PyTorch (ExecutionTraceObserver): which operator called which, with which tensors, and no times.

Operators that call no other are the operations, in the order of their ids on each thread; who reads a tensor waits for who wrote it
last. The values hold Python texts of programs: they are looked at for tensors and never run. Fields by pytorch/pytorch,
torch/csrc/profiler/standalone/execution_trace_observer.cpp.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crossopt.crossflow.traces.graph import graph_of
from crossopt.instances.files.units import quoted
from crossopt.instances.traces.graph_file import Trace, refuse_cycle
from crossopt.instances.traces.imported import Imported
from crossopt.instances.traces.packed import Faults, plain, refuse

SCHEMAS = ("1.0.2-chakra.0.0.4", "1.0.3-chakra.0.0.4", "1.1.0-chakra.0.0.4", "1.1.1-chakra.0.0.4", "1.1.1-chakra.1.0.0")
_TENSOR = 6
"""Figures of a tensor: its id, the id, offset, elements and bytes an element of its storage, and the device."""


def is_host_trace(document: object) -> bool:
    return isinstance(document, dict) and isinstance(document.get("nodes"), list) and "schema" in document


def imported_host(path: Path, document: Mapping[str, Any]) -> Imported:
    """The trace; an InstanceError with every fault."""
    if document["schema"] not in SCHEMAS:
        refuse(path, f"schema: {quoted(str(document['schema']))} is not known (known: {', '.join(SCHEMAS)})")
    nodes, faults = document["nodes"], Faults(path)
    for place, node in enumerate(nodes):
        _look_at(node, f"nodes[{place}]", faults)
    faults.end()
    places = dict[int, int]()
    for place, node in enumerate(nodes):
        if node["id"] in places:
            faults.add(f"nodes[{place}].id", f"{node['id']} is the id of nodes[{places[node['id']]}] too (give each its own)")
        places.setdefault(node["id"], place)
    faults.end()
    _refuse_circle(path, {node["id"]: node["ctrl_deps"] for node in nodes})
    parents = {node["ctrl_deps"] for node in nodes if node["ctrl_deps"] != node["id"]}
    leaves = sorted((node for node in nodes if node["id"] not in parents), key=lambda node: node["id"])
    operations = [(plain(node["name"]), "host", f"thread {_tid_of(node)}", 0) for node in leaves]
    graph = graph_of(operations, [*_orders(operations), *_reads(leaves)])
    refuse_cycle(graph, str(path))
    dangling = sum(node["ctrl_deps"] not in places for node in nodes)
    remarks = ["a host trace has no times: every operation takes 0 ns (`crossopt import` a trace of Kineto for these)"]
    remarks += [f"{dangling} callers have ids that no node has: left out"] if dangling else []
    remarks.append(f"{len(nodes):,} nodes, of which {len(leaves):,} call no other")
    return Imported(Trace(graph, path.name), f"PyTorch host trace, schema {document['schema']}", tuple(remarks))


def _look_at(node: object, at: str, faults: Faults) -> None:
    if not isinstance(node, dict):
        faults.add(at, "a mapping is needed")
        return
    for key, kind, wanted in (("id", int, "a whole number"), ("name", str, "a text"), ("ctrl_deps", int, "the id of the caller")):
        if type(node.get(key)) is not kind:
            faults.add(f"{at}.{key}", f"{wanted} is needed")


def _refuse_circle(path: Path, caller: Mapping[int, int]) -> None:
    """Callers that call one another; the node of the process names itself."""
    done = set[int]()
    for start in caller:
        walk, seen, now = list[int](), dict[int, int](), start
        while now in caller and now not in done and now not in seen and caller[now] != now:
            seen[now] = len(walk)
            walk.append(now)
            now = caller[now]
        if now in seen:
            told = " -> ".join(map(str, [*walk[seen[now] :][:8], now]))
            refuse(path, f"nodes call one another: {told} (record the trace anew)")
        done.update(walk)


def _tid_of(node: Mapping[str, Any]) -> int:
    attributes = node.get("attrs")
    rows = attributes if isinstance(attributes, list) else []
    return next((one["value"] for one in rows if isinstance(one, dict) and one.get("name") == "tid" and type(one.get("value")) is int), 0)


def _orders(operations: list[tuple[str, str, str, int]]) -> Iterator[tuple[int, int, str]]:
    last = dict[str, int]()
    for place, operation in enumerate(operations):
        if operation[2] in last:
            yield last[operation[2]], place, "thread"
        last[operation[2]] = place


def _reads(leaves: list[dict[str, Any]]) -> Iterator[tuple[int, int, str]]:
    """From the last operation that wrote a storage to each that reads it."""
    writer = dict[int, int]()
    for place, node in enumerate(leaves):
        read = {writer[storage] for storage in _storages(node.get("inputs")) if storage in writer}
        yield from ((one, place, "data") for one in sorted(read))
        for storage in _storages(node.get("outputs")):
            writer[storage] = place


def _storages(given: object) -> Iterator[int]:
    """Ids of the storages of all tensors among values, in lists too."""
    waiting = [given.get("values")] if isinstance(given, dict) else []
    while waiting:
        value = waiting.pop()
        if not isinstance(value, list):
            continue
        if len(value) == _TENSOR and all(type(one) is int for one in value[:5]) and isinstance(value[5], str):
            yield value[1]
        else:
            waiting += value
