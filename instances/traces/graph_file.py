"""A graph of a trace as a file of its own, which `import` writes, and which may be written by hand:

    {"trace": 1,
     "source": "rank 2 of 8",                                                    what it was made of, in words
     "span": 11350000,                                                           nanoseconds as traced, where they are known
     "assumed": "operations of one stream take turns",                           what its order rests on beside what was traced, in words
     "operations": [{"name": "gemm", "kind": "kernel", "on": "stream 7", "ns": 12000, "bytes": 0, "flops": 0, "group": ""}, ...],
     "edges": [[0, 1, "launch"], ...]}                                           places of two operations, and why the second waits

`bytes`, `flops` and `group` may be left out. All faults are told at once; a cycle with the names of its operations.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossopt.crossflow.traces.graph import EDGES, KINDS, SPAN_ENDS, Graph, graph_of
from crossopt.crossflow.traces.transforms import of_kinds
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import opened
from crossopt.instances.files.graphs import FaultList, cycle_of, read_json, text_of
from crossopt.instances.files.saved import read_as
from crossopt.instances.files.units import quoted
from crossopt.instances.files.written import Written
from crossopt.instances.traces.packed import GZIP

IMPORTED = "`crossopt import TRACE --out FILE` makes one"
"""What leads to a graph."""
LEAST = "no span was traced: edges alone say what waits for what, so that all times are the least that these allow"
"""What is told of a graph that says neither a span nor what it assumes."""
_KEYS = ("name", "kind", "on", "ns", "bytes", "flops", "group")
_NEEDED = _KEYS[:4]
_MOST_FAULTS, _FEW = 1_000, 8


@dataclass(frozen=True, slots=True)
class Trace:
    """A graph, where it is from, its span as traced, 0 where nothing is known, and what its order rests on beside what was traced."""

    graph: Graph
    source: str = ""
    span: int = 0
    assumed: str = ""

    @property
    def order(self) -> str:
        """What is to be said of times that were not measured; nothing where the span was traced."""
        return self.assumed or ("" if self.span else LEAST)


def is_graph(path: Path) -> bool:
    """Whether a file is one of these, sound or not."""
    return path.suffix.lower() == ".json" and read_as(path, lambda data: isinstance(data, dict) and {"trace", "operations"} <= data.keys())


def read_trace(path: Path) -> Trace:
    """The trace in a file; an InstanceError with all that is wrong."""
    return trace_in(text_of(path), str(path))


def trace_in(text: str, source: str) -> Trace:
    """The same of a text."""
    document, faults = read_json(text, source), FaultList(source)
    if not isinstance(document, dict) or document.get("trace") != 1:
        faults.add("trace", f"this is no graph of a trace ({IMPORTED})")
        faults.end()
    for key in document.keys() - {"trace", "source", "span", "assumed", "operations", "edges"}:
        faults.add(key, f"{quoted(key)} says nothing here (known: source, span, assumed, operations, edges)")
    operations, edges = (document.get(key, []) for key in ("operations", "edges"))
    about, span, assumed = document.get("source", ""), document.get("span", 0), document.get("assumed", "")
    for key, fine, wanted in (
        ("operations", isinstance(operations, list), "a list"),
        ("edges", isinstance(edges, list), "a list"),
        ("source", isinstance(about, str), "a text"),
        ("assumed", isinstance(assumed, str), "a text"),
        ("span", _is_whole(span), "a whole number of nanoseconds"),
    ):
        if not fine:
            faults.add(key, f"{wanted} is needed")
    faults.end()
    for place, operation in enumerate(operations):
        _look_at_operation(operation, f"operations[{place}]", faults)
    for place, edge in enumerate(edges):
        _look_at_edge(edge, len(operations), f"edges[{place}]", faults)
    faults.end()
    if sum(operation["ns"] for operation in operations) >= SPAN_ENDS:
        faults.add("operations", f"all together take more than {SPAN_ENDS // 10**9} s (give shorter ones)")
        faults.end()
    graph = graph_of(
        [(operation["name"], operation["kind"], operation["on"], operation["ns"]) for operation in operations],
        [(before, after, reason) for before, after, reason in edges],
        *([operation.get(key, default) for operation in operations] for key, default in (("bytes", 0), ("flops", 0), ("group", ""))),
    )
    refuse_cycle(graph, source)
    return Trace(graph, about, span, assumed)


def refuse_cycle(graph: Graph, source: str) -> None:
    """An InstanceError with the operations of a cycle, where there is one."""
    cycle = cycle_of(list(zip(graph.before.tolist(), graph.after.tolist(), strict=True)), len(graph))
    if not cycle:
        return
    few = cycle[:_FEW]
    told = " -> ".join(f"{place} {quoted(graph.names[place])}" for place in few)
    rest = "" if len(few) == len(cycle) else f" -> ... ({len(cycle)} operations)"
    faults = FaultList(source)
    faults.add("edges", f"operations wait for one another: {told}{rest} -> {few[0]} (take one of these edges out)")
    faults.end()


def document_of(trace: Trace) -> dict[str, Any]:
    """What a file says of a trace; read again it is the same."""
    graph = trace.graph
    columns = (graph.bytes.tolist(), graph.flops.tolist(), graph.groups)
    plain = zip(graph.names, graph.kinds.tolist(), graph.places.tolist(), graph.durations.tolist(), strict=True)
    operations = [
        {"name": name, "kind": KINDS[kind], "on": graph.resources[place], "ns": took}
        | {key: value for key, value in zip(_KEYS[4:], more, strict=True) if value}
        for (name, kind, place, took), more in zip(plain, zip(*columns, strict=True), strict=True)
    ]
    edges = zip(graph.before.tolist(), graph.after.tolist(), graph.reasons.tolist(), strict=True)
    return {
        "trace": 1,
        "source": trace.source,
        "span": trace.span,
        **({"assumed": trace.assumed} if trace.assumed else {}),
        "operations": operations,
        "edges": [[before, after, EDGES[reason]] for before, after, reason in edges],
    }


def _is_whole(value: object) -> bool:
    return type(value) is int and 0 <= value < SPAN_ENDS


def _look_at_operation(given: object, at: str, faults: FaultList) -> None:
    if len(faults.found) >= _MOST_FAULTS:
        return
    if not isinstance(given, Mapping):
        faults.add(at, f"a mapping with {', '.join(_NEEDED)} is needed")
        return
    for key, message in _wrong_in(given):
        faults.add(f"{at}.{key}", message)


def _wrong_in(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys of an operation, and what is wrong with each."""
    yield from ((key, f"{key} is missing") for key in _NEEDED if key not in given)
    for key, value in given.items():
        if key not in _KEYS:
            yield key, f"{quoted(str(key))} says nothing of an operation (known: {', '.join(_KEYS)})"
        elif key in ("name", "on", "group"):
            if not isinstance(value, str):
                yield key, f"{quoted(str(value))} is no text"
        elif key == "kind":
            if value not in KINDS:
                yield key, f"{quoted(str(value))} is no kind of operation (give {', '.join(KINDS)})"
        elif not _is_whole(value):
            yield key, f"{quoted(str(value))} is no whole number of zero and more below 2^62"


def _look_at_edge(given: object, count: int, at: str, faults: FaultList) -> None:
    if len(faults.found) >= _MOST_FAULTS:
        return
    if not isinstance(given, list) or len(given) != 3 or given[2] not in EDGES:
        faults.add(at, f"[before, after, reason] is needed, reason one of {', '.join(EDGES)}")
        return
    for end in given[:2]:
        if type(end) is not int or not 0 <= end < count:
            faults.add(at, f"{quoted(str(end))} is no operation (there are {count}, counted from 0)")
    if given[0] == given[1]:
        faults.add(at, "an operation cannot wait for itself (take this edge out)")


# A trace read from a file of any form, with what had to be said of it.


@dataclass(frozen=True, slots=True)
class Imported:
    """A trace and what is told of how it was read."""

    trace: Trace
    form: str
    remarks: tuple[str, ...] = ()
    rank: int | None = None
    """As the file says it."""
    sends: int = 0
    receives: int = 0
    """Messages between two ranks, which the graph has among its collectives."""


def count_text(number: int, one: str, several: str) -> str:
    """A count with its word, such as `1 gap` and `2 gaps`."""
    return f"{number:,} {one if number == 1 else several}"


# The graph of a trace that a question names, and the operations in it that patterns of names mean.


def trace_of(written: Written, key: str, name: str) -> Trace:
    """The trace in a file; an InstanceError at the key that names it where it cannot be read, in the file where that is wrong."""
    with written.reading(key):
        text = written.files.text(name, _text_of)
    trace = trace_in(text, name)
    if not len(trace.graph):
        raise written.refused([written.fault(key, "this trace holds no operation (import one that does)")])
    return trace


def _text_of(path: Path) -> str:
    """The text of a graph; an InstanceError that names `import` where a file is packed, as traces of other tools are."""
    with opened(path, "name a graph of a trace") as file:
        is_packed = file.read(len(GZIP)) == GZIP
    if is_packed:
        raise InstanceError(str(path), [Fault(1, 1, "", f"this is packed by gzip, and no graph of a trace ({IMPORTED})")])
    return text_of(path)


def meant(graph: Graph, patterns: Sequence[str], kinds: Sequence[str]) -> list[int]:
    """Operations of these kinds whose whole name is one of the patterns, by their places."""
    expressions = [".*".join(map(re.escape, pattern.split("*"))) for pattern in patterns]
    matching = re.compile("|".join(expressions) or r"(?!)", re.DOTALL).fullmatch
    known = {name: matching(name) is not None for name in set(graph.names)}
    return [place for place in of_kinds(graph, kinds) if known[graph.names[place]]]
