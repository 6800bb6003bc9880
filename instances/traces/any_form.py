"""A trace in any of the forms that are known, found out from what a file holds."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from crossopt.crossflow.traces import SPAN_ENDS, graph_of
from crossopt.instances.files.careful import LOOKED_AT, TRACE, is_result, refusal
from crossopt.instances.files.units import quoted
from crossopt.instances.traces import kineto
from crossopt.instances.traces.chakra import chakra_in, chakra_json_in, imported_chakra, is_chakra
from crossopt.instances.traces.graph_file import (
    FULL_WINDOW,
    Faults,
    Imported,
    Trace,
    Window,
    bytes_in,
    count_text,
    json_in,
    plain,
    refuse,
    refuse_cycle,
    trace_in,
)

# --- host traces of PyTorch -----------------------------------------------------------------------------------------------------------


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
    for index, node in enumerate(nodes):
        _refuse_faults(node, f"nodes[{index}]", faults)
    faults.end()
    places = dict[int, int]()
    for index, node in enumerate(nodes):
        if node["id"] in places:
            faults.add(f"nodes[{index}].id", f"{node['id']} is the id of nodes[{places[node['id']]}] too (give each its own)")
        places.setdefault(node["id"], index)
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


def _refuse_faults(node: object, at: str, faults: Faults) -> None:
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
            cycle = " -> ".join(map(str, [*walk[seen[now] :][:8], now]))
            refuse(path, f"nodes call one another: {cycle} (record the trace anew)")
        done.update(walk)


def _tid_of(node: Mapping[str, Any]) -> int:
    attributes = node.get("attrs")
    rows = attributes if isinstance(attributes, list) else []
    return next((row["value"] for row in rows if isinstance(row, dict) and row.get("name") == "tid" and type(row.get("value")) is int), 0)


def _orders(operations: list[tuple[str, str, str, int]]) -> Iterator[tuple[int, int, str]]:
    last = dict[str, int]()
    for index, operation in enumerate(operations):
        if operation[2] in last:
            yield last[operation[2]], index, "thread"
        last[operation[2]] = index


def _reads(leaves: list[dict[str, Any]]) -> Iterator[tuple[int, int, str]]:
    """From the last operation that wrote a storage to each that reads it."""
    writer = dict[int, int]()
    for index, node in enumerate(leaves):
        read = {writer[storage] for storage in _storages(node.get("inputs")) if storage in writer}
        yield from ((earlier, index, "data") for earlier in sorted(read))
        for storage in _storages(node.get("outputs")):
            writer[storage] = index


def _storages(given: object) -> Iterator[int]:
    """Ids of the storages of all tensors among values, in lists too."""
    waiting = [given.get("values")] if isinstance(given, dict) else []
    while waiting:
        value = waiting.pop()
        if not isinstance(value, list):
            continue
        if len(value) == _TENSOR and all(type(item) is int for item in value[:5]) and isinstance(value[5], str):
            yield value[1]
        else:
            waiting += value


# --- Kineto files ---------------------------------------------------------------------------------------------------------------------


KINETO = "Kineto"


def imported_kineto(path: Path, document: Any, window: Window = FULL_WINDOW) -> Imported:  # noqa: ANN401 - JSON as it is
    """The trace, or what of it is in the window; an InstanceError with every fault."""
    given = kineto.events_in(path, document, window)
    if kineto.is_twice(given):
        refuse(path, "each of its events is in it twice, so that all would count twice (take one of the files that it was joined from)")
    events, early = kineto.behind_launches(given)
    events = kineto.from_zero(events)
    building = kineto.building_of(events)
    if sum(operation[3] for operation in building.operations) >= SPAN_ENDS:
        refuse(path, f"its times sum to more than {SPAN_ENDS // 10**9} s (trace fewer steps)")
    graph = kineto.graph_in(building)
    refuse_cycle(graph, str(path))
    source = path.name if events.rank is None else f"{path.name}, rank {events.rank}"
    source += "" if window.step is None else f", step {window.step}"
    return Imported(Trace(graph, source, events.span), KINETO, tuple(_remarks(building, early)), events.rank)


def _remarks(building: kineto.Building, moved: kineto.Early) -> list[str]:
    remarks, works, left = list[str](), building.events.work, building.events.before
    step, span = building.events.step, building.events.span
    if step is not None and span > step.end:
        marked, later = step.end / 1e6, (span - step.end) / 1e6
        remarks.append(f"the profiler marked {marked:,.3f} ms as the step; what it launched ends {later:,.3f} ms later")
    if left:
        begins = count_text(left, "operation that begins", "operations that begin")
        remarks.append(f"{begins} in the window and {'was' if left == 1 else 'were'} launched before it: left out")
    if building.overlapping:
        longest, number = max(building.overlapping)
        work = works[number]
        begin = count_text(len(building.overlapping), "operation begins", "operations begin")
        remarks.append(
            f"{begin} before the one before it on its stream ends, at most by "
            f"{longest / 1000:,.1f} us on {work.stream}, at {work.begin / 1e6:,.3f} ms: put behind it"
        )
    if moved.count:
        begin = count_text(moved.count, "operation begins", "operations begin")
        before = f"{moved.most / 1000:,.1f} us before the launch"
        remarks.append(f"{begin} {'' if moved.count == 1 else 'up to '}{before} (the clocks differ): moved there")
    if building.unlaunched:
        remarks.append(f"{count_text(building.unlaunched, 'operation has', 'operations have')} no launch in the trace")
    if building.first_of:
        cut = count_text(len(building.first_of), "copy of memory that is not pinned is", "copies of memory that is not pinned are")
        remarks.append(f"{cut} two operations, the first until the call returns that waits for it")
    if building.inferred:
        remarks.append(f"{count_text(building.inferred, 'wait', 'waits')} across streams inferred from times, as the trace names no event")
    if building.handed:
        remarks.append(f"{count_text(building.handed, 'gap is a wait', 'gaps are waits')} of a thread for that of autograd")
    gaps = [operation[3] for operation in building.operations if operation[:2] == (kineto.DEVICE_GAP, "gap")]
    if gaps:
        remarks.append(
            f"{count_text(len(gaps), 'gap', 'gaps')} on streams that neither a launch nor other work explains, "
            f"{sum(gaps) / 1e6:,.3f} ms in all, {max(gaps) / 1e6:,.3f} ms the longest: kept as they are"
        )
    return remarks


_FORMS = (
    "Kineto JSON (traceEvents), Chakra (.et, or workload_graph in JSON), a PyTorch host trace (schema and nodes), "
    "a model of ONNX or a graph of operators"
)


def read_any(path: Path, window: Window = FULL_WINDOW) -> Imported:
    """The trace in a file, or what of it is in the window; an InstanceError with every fault."""
    found = _read(path, window)
    if window and found.form != KINETO:
        refuse(path, f"{found.form} has no steps and no times to cut at (cut a trace of PyTorch's profiler, or take all of this one)")
    return found


def _read(path: Path, window: Window) -> Imported:
    data = bytes_in(path)
    is_named = ".et" in path.suffixes
    if is_named or not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        if not (is_named or is_chakra(data)):
            _refuse_unknown(path, data)
        return imported_chakra(path, chakra_in(path, data), "Chakra")
    document = json_in(path, data)
    if kineto.is_kineto(document):
        return imported_kineto(path, document, window)
    if is_host_trace(document):
        return imported_host(path, document)
    if isinstance(document, dict) and "workload_graph" in document:
        return imported_chakra(path, chakra_json_in(path, document), "Chakra in JSON")
    if isinstance(document, dict) and "trace" in document and not is_result(data):
        return Imported(trace_in(data.decode("utf-8-sig"), str(path)), "graph of a trace")
    return _refuse_unknown(path, data)


def _refuse_unknown(path: Path, data: bytes) -> NoReturn:
    refuse(
        path,
        refusal(path.name, data[:LOOKED_AT], TRACE.what, f"name {_FORMS}")
        or f"this is neither a trace nor a network that is known (name {_FORMS})",
    )
