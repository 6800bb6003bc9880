"""A graph of a trace as a file of its own, and files with traces unpacked where gzip packed them, never more than fits."""

import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from crossopt.crossflow.traces import EDGES, KINDS, SPAN_ENDS, Graph, graph_of, of_kinds
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import UNSEEN, opened, why_unreadable
from crossopt.instances.files.graphs import FaultList, cycle_of, read_json, text_of
from crossopt.instances.files.saved import read_as
from crossopt.instances.files.units import quoted
from crossopt.instances.files.written import Written

# What a file with a trace holds, unpacked where it is packed by gzip; never more than fits.

LARGEST = 64 << 20
"""Bytes of a trace, unpacked."""
_ANYWAY, _RATIO = 8 << 20, 100
"""Bytes that any gzip file may unpack to, and how many times its own size a larger one may: traces come to some fifteen times theirs."""
_BLOCK = 1 << 20
GZIP = b"\x1f\x8b"
_REMEDY = "name a trace"
_LONGEST_NUMBER = 40


def bytes_in(path: Path) -> bytes:
    """All that a file holds; an InstanceError in one sentence where that cannot be read, or is too much."""
    try:
        with opened(path, _REMEDY) as file:
            is_packed, size = file.read(2) == GZIP, os.fstat(file.fileno()).st_size
            file.seek(0)
            most = min(LARGEST, max(_ANYWAY, size * _RATIO)) if is_packed else LARGEST
            found = bytearray()
            with gzip.open(file) if is_packed else nullcontext(file) as stream:
                while len(found) <= most and (block := stream.read(_BLOCK)):
                    found += block
    except EOFError:
        refuse(path, "the gzip file ends too early (fetch it again)")
    except (gzip.BadGzipFile, zlib.error) as error:
        reason = str(error.args[0]).lower() if error.args else "it cannot be unpacked"  # as a text it may have the file's name instead
        refuse(path, f"the gzip file is broken: {reason} (fetch it again)")
    except OSError as error:
        refuse(path, why_unreadable(error))
    if len(found) > most:
        packing = f", from a file of {size:,} bytes" if most < LARGEST else ""
        refuse(path, f"it has more than {most >> 20} MiB{packing} (trace fewer steps)")
    if not found:
        refuse(path, f"the file is empty ({_REMEDY})")
    return bytes(found)


def json_in(path: Path, data: bytes) -> Any:  # noqa: ANN401 - whatever a file may hold
    """What a text in JSON says; numbers with a point stay texts, as the decimal digits of times count."""
    if not data.rstrip().endswith((b"}", b"]")):
        refuse(path, "the text ends too early: its last bracket is missing (fetch or write it again)")
    try:
        return json.loads(data.decode("utf-8-sig"), parse_float=str, parse_int=_integer, parse_constant=str)
    except UnicodeDecodeError as error:
        refuse(path, f"byte {error.start:,} is not UTF-8 text: {error.reason} (fetch it again)")
    except json.JSONDecodeError as error:
        refuse(path, f"this is not JSON: {error.msg.lower()} (fetch it again)", error.lineno, error.colno)
    except RecursionError:
        refuse(path, "this is nested too deeply for a trace")
    except ValueError as error:
        refuse(path, str(error))


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError(f"a number of {len(digits):,} digits is no figure to work with")
    return int(digits)


def plain(text: str) -> str:
    """A name without signs that no text shows and halves of characters, which no file may hold."""
    if text.isascii() and text.isprintable():
        return text
    return UNSEEN.sub("?", text).replace("\n", " ").replace("\t", " ").encode("utf-8", "replace").decode("utf-8")


def refuse(path: Path, message: str, line: int = 1, column: int = 1) -> NoReturn:
    raise InstanceError(str(path), [Fault(line, column, "", message)], "nothing imported")


class Faults:
    """The faults of a trace, raised together; of very many only the first ones."""

    def __init__(self, path: Path) -> None:
        self.path, self.found = path, list[Fault]()

    def add(self, at: str, message: str) -> None:
        if len(self.found) < _MOST:
            self.found.append(Fault(1, 1, at, message))

    def end(self) -> None:
        if self.found:
            raise InstanceError(str(self.path), self.found, "nothing imported")


_MOST = 1_000


def nanoseconds(value: object, of: Callable[[str], None]) -> int:
    """Whole ns of microseconds that are written as a whole number or in decimals, digit by digit; what is below a ns is cut off. Says `of`
    what is wrong with anything else."""
    if type(value) is int:
        found = value * 1000
    elif isinstance(value, str):
        integer, _, part = value.partition(".")
        if not (integer.removeprefix("-").isdecimal() and (part + "0").isdecimal() and len(value) <= _LONGEST_NUMBER):
            of(f"{quoted(value)} is no number of microseconds")
            return 0
        size = int(integer.removeprefix("-")) * 1000 + int((part + "000")[:3])
        found = -size if integer.startswith("-") else size
    else:
        of("a number of microseconds is needed" if value is None else f"{quoted(str(value))} is no number of microseconds")
        return 0
    if abs(found) >= 1 << 62:
        of(f"{quoted(str(value))} microseconds are more than a trace can have")
        return 0
    return found


# Which part of a trace is kept: a window of time, or one step that the profiler marked.
#
# Of a thread the calls are kept that begin within it, and of a device the work that these launch, whenever it runs: so a step's kernels
# stay together although they run behind their launches, as far as nothing of the steps before and behind them does. A step lasts from where
# it was marked to begin, and no less than was marked: threads have gaps ahead of their first calls and behind their last ones.


@dataclass(frozen=True, slots=True)
class Window:
    """Nanoseconds from the first event between two optional ends, the second excluded; or a step by its number."""

    begin: int | None = None
    end: int | None = None
    step: int | None = None

    def __bool__(self) -> bool:
        return self != Window()


FULL_WINDOW = Window()


def ends_of(path: Path, window: Window, steps: Mapping[int, tuple[int, int]], first: int) -> tuple[int, float]:
    """When the window begins and ends, on the clock of the trace, whose first event was then; an InstanceError where it is none."""
    if window.step is not None:
        if window.step not in steps:
            there = f"those of this trace are {_numbers(steps)}" if steps else "this trace has none: call its step() after each iteration"
            refuse(path, f"there is no step {window.step} that the profiler marked (ProfilerStep#{window.step}; {there})")
        return steps[window.step]
    return first + (window.begin or 0), float("inf") if window.end is None else first + window.end


def _numbers(steps: Mapping[int, tuple[int, int]]) -> str:
    found = sorted(steps)
    return f"{found[0]} to {found[-1]}" if len(found) > 1 and found[-1] - found[0] == len(found) - 1 else ", ".join(map(str, found))


# A graph of a trace as a file of its own, which `import` writes, and which may be written by hand:
#
#     {"trace": 1,
#      "source": "rank 2 of 8",                                                    what it was made of, in words
#      "span": 11350000,                                                           nanoseconds as traced, where they are known
#      "assumed": "operations of one stream take turns",                           what its order rests on beside what was traced, in words
#      "operations": [{"name": "gemm", "kind": "kernel", "on": "stream 7", "ns": 12000, "bytes": 0, "flops": 0, "group": ""}, ...],
#      "edges": [[0, 1, "launch"], ...]}                                           places of two operations, and why the second waits
#
# `bytes`, `flops`, `group` and `inputs` may be left out. All faults are reported together; a cycle by the names of its operations.

IMPORTED = "`crossopt import TRACE --out FILE` makes one"
"""What leads to a graph."""
LEAST = "no span was traced: edges alone say what waits for what, so that all times are the least that these allow"
"""The remark about a graph that states neither a span nor assumptions."""
_KEYS = ("name", "kind", "on", "ns", "bytes", "flops", "group", "inputs")
_NEEDED = _KEYS[:4]
_OPTIONAL: dict[str, int | str] = {"bytes": 0, "flops": 0, "group": "", "inputs": ""}
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
    """The trace in the text of a file; an InstanceError with all that is wrong."""
    document, faults = read_json(text, source), FaultList(source)
    if not isinstance(document, dict) or document.get("trace") != 1:
        faults.add("trace", f"this is no graph of a trace ({IMPORTED})")
        faults.end()
    for key in document.keys() - {"trace", "source", "span", "assumed", "operations", "edges"}:
        faults.add(key, f"{quoted(key)} is unknown here (known: source, span, assumed, operations, edges)")
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
    for index, operation in enumerate(operations):
        _check_operation(operation, f"operations[{index}]", faults)
    for index, edge in enumerate(edges):
        _check_edge(edge, len(operations), f"edges[{index}]", faults)
    faults.end()
    if sum(operation["ns"] for operation in operations) >= SPAN_ENDS:
        faults.add("operations", f"all together take more than {SPAN_ENDS // 10**9} s (give shorter ones)")
        faults.end()
    graph = graph_of(
        [(operation["name"], operation["kind"], operation["on"], operation["ns"]) for operation in operations],
        [(before, after, reason) for before, after, reason in edges],
        *([operation.get(key, default) for operation in operations] for key, default in _OPTIONAL.items()),
    )
    refuse_cycle(graph, source)
    return Trace(graph, about, span, assumed)


def refuse_cycle(graph: Graph, source: str) -> None:
    """An InstanceError with the operations of a cycle, where there is one."""
    cycle = cycle_of(list(zip(graph.before.tolist(), graph.after.tolist(), strict=True)), len(graph))
    if not cycle:
        return
    few = cycle[:_FEW]
    listed = " -> ".join(f"{operation} {quoted(graph.names[operation])}" for operation in few)
    rest = "" if len(few) == len(cycle) else f" -> ... ({len(cycle)} operations)"
    faults = FaultList(source)
    faults.add("edges", f"operations depend on each other in a cycle: {listed}{rest} -> {few[0]} (take one of these edges out)")
    faults.end()


def document_of(trace: Trace) -> dict[str, Any]:
    """What a file says of a trace; read again it is the same."""
    graph = trace.graph
    columns = (graph.bytes.tolist(), graph.flops.tolist(), graph.groups, graph.inputs)
    plain = zip(graph.names, graph.kinds.tolist(), graph.places.tolist(), graph.durations.tolist(), strict=True)
    operations = [
        {"name": name, "kind": KINDS[kind], "on": graph.resources[resource], "ns": took}
        | {key: value for key, value in zip(_KEYS[4:], more, strict=True) if value}
        for (name, kind, resource, took), more in zip(plain, zip(*columns, strict=True), strict=True)
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


def _check_operation(given: object, at: str, faults: FaultList) -> None:
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
        elif key in ("name", "on", "group", "inputs"):
            if not isinstance(value, str):
                yield key, f"{quoted(str(value))} is no text"
        elif key == "kind":
            if value not in KINDS:
                yield key, f"{quoted(str(value))} is no kind of operation (give {', '.join(KINDS)})"
        elif not _is_whole(value):
            yield key, f"{quoted(str(value))} is no whole number of zero and more below 2^62"


def _check_edge(given: object, count: int, at: str, faults: FaultList) -> None:
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
    """A trace with its form, its rank, and remarks on how it was read."""

    trace: Trace
    form: str
    remarks: tuple[str, ...] = ()
    rank: int | None = None
    """As the file says it."""
    sends: int = 0
    receives: int = 0
    """Messages between two ranks, which the graph has among its collectives."""


def count_text(number: int, singular: str, plural: str) -> str:
    """A count with its word, such as `1 gap` and `2 gaps`."""
    return f"{number:,} {singular if number == 1 else plural}"


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
    return [operation for operation in of_kinds(graph, kinds) if known[graph.names[operation]]]
