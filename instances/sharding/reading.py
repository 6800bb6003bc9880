"""Reader of problems as JSON, plain or gzipped, in the format of the contest; every fault at once.

{"problem": {"name": text, "usage_limit": whole number, or absent: no limit,
             "nodes": {"intervals": [[start, end], ...], "costs": [[...], ...], "usages": [[...], ...]},
             "edges": {"nodes": [[first, second], ...], "costs": [[row by row], ...]}}}

Costs of 10^18 and more say that a choice is forbidden.
"""

import gzip
import hashlib
import json
import os
import re
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import opened
from crossopt.instances.files.graphs import FaultList
from crossopt.instances.files.units import quoted
from crossopt.instances.sharding.problem import FORBIDDEN, GREATEST_SUM, Problem, greatest_sum, offsets_of

# --- values of a large JSON text, one by one ------------------------------------------------------------------------------------------


_SPACE = re.compile(r"[ \t\r\n]*")
_OPENING = re.compile(r"\[")
_DECODER = json.JSONDecoder()

Reader = Callable[["Text"], None]


class TextError(ValueError):
    """What is wrong, and at which character."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class Text:
    """A text and how far it was read."""

    __slots__ = ("position", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def ahead(self) -> str:
        """The next character that is no space; empty at the end."""
        found = _SPACE.match(self.text, self.position)
        self.position = found.end() if found else self.position
        return self.text[self.position : self.position + 1]

    def take(self, characters: str) -> str:
        """One of these characters, or a TextError."""
        character = self.ahead()
        if not character or character not in characters:
            what = f"{character!r} stands" if character else "the text ends"
            raise TextError(f"{what} where {' or '.join(repr(sign) for sign in characters)} is needed", self.position)
        self.position += 1
        return character

    def value(self) -> object:
        """The next value as plain data."""
        self.ahead()
        try:
            found, self.position = _DECODER.raw_decode(self.text, self.position)
        except json.JSONDecodeError as error:
            raise TextError(error.msg.lower(), error.pos) from error
        except (RecursionError, ValueError) as error:
            raise TextError(str(error)[:80], self.position) from error
        return found


def members(text: Text) -> Iterator[str]:
    """The keys of an object. The caller reads the value of each before it takes the next."""
    text.take("{")
    if text.ahead() == "}":
        text.take("}")
        return
    while True:
        if text.ahead() != '"':
            raise TextError("a key is needed", text.position)
        key = str(text.value())
        text.take(":")
        yield key
        if text.take(",}") == "}":
            return


def items(text: Text) -> Iterator[int]:
    """The indices of a list. The caller reads the value of each before it takes the next."""
    text.take("[")
    if text.ahead() == "]":
        text.take("]")
        return
    index = 0
    while True:
        yield index
        index += 1
        if text.take(",]") == "]":
            return


# --- lines of values ------------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Lines:
    """Positions of values in a text by their paths; elements of long lists lie in arrays, eight bytes each."""

    text: str
    values: dict[str, int] = field(default_factory=dict)
    elements: dict[str, "array[int]"] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    """Of the lines, once a fault asks for them."""

    def fault(self, path: str, message: str) -> Fault:
        """At the value of this path, or at the innermost one around it that the text has."""
        return self.fault_at(self._position(path), path, message)

    def fault_at(self, position: int, path: str, message: str) -> Fault:
        """At a character of the text."""
        self.starts = self.starts or [0, *(found.end() for found in re.finditer("\n", self.text))]
        line = bisect_right(self.starts, position)
        return Fault(line, position - self.starts[line - 1] + 1, path, message)

    def _position(self, path: str) -> int:
        listed, _, index = path.removesuffix("]").rpartition("[")
        if index.isdecimal() and listed in self.values and listed not in self.elements:  # its rows were read at once
            self.elements[listed] = array("q", (found.start() for found in _OPENING.finditer(self.text, self.values[listed] + 1)))
        if listed in self.elements and index.isdecimal():
            return self.elements[listed][int(index)]
        while path and path not in self.values:
            path = path.rpartition(".")[0]
        return self.values.get(path or "problem", 0)


FORBIDDEN_FROM = 10**18
_LARGEST = 512 << 20
"""Bytes of a text: five times the largest problem that was published, and some ten seconds of reading."""
_ROWS = 1 << 20
"""Nodes or edges; the largest problem published has 55 thousand."""
_UNPACKED, _RATIO = 64 << 20, 200
"""Bytes that any gzip file may unpack to, and how many times its own size a larger one may."""
_DECODED = 1 << 20
"""Characters of rows that are decoded at once: their figures take many times as much until they are in an array."""
_BLOCK = 1 << 20
"""Bytes read at once: a reader asked for more sets them aside, however small the file."""
_LONGEST_NAME = 80
_GZIP = b"\x1f\x8b"
_NONE = np.zeros(0, np.int64)


class Source(NamedTuple):
    """A problem and the file it came from."""

    problem: Problem
    path: Path
    digest: str
    """SHA-256 of the text, unpacked."""


def read_problem(path: Path) -> Source:
    """The problem in a file; an InstanceError with every fault."""
    packed = _text_of(path)
    digest = hashlib.sha256(packed).hexdigest()
    try:
        text = packed.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(path, f"this is no text in UTF-8: {error.reason}") from error
    del packed
    return Source(problem_in(text, path), path, digest)


def problem_in(document: str, path: Path, placed: Callable[[str, str], Fault] | None = None) -> Problem:
    """The problem in a text; an InstanceError with every fault, of this file, in the text or as it is `placed` by its path."""
    text, lines = Text(document), Lines(document)
    faults = FaultList(str(path), placed=placed or lines.fault)
    raw = _Raw(faults, lines)
    try:
        _read_document(text, raw)
    except TextError as error:
        raise InstanceError(str(path), [lines.fault_at(error.position, "", f"this is no JSON of a problem: {error}")]) from error
    return _problem_of(raw, path, faults)


def _text_of(path: Path) -> bytearray:
    """What a file holds, unpacked; texts of problems are packed to a fiftieth, and one of a thousand times its file is none of them."""
    try:
        with opened(path, "give a problem in JSON, plain or gzipped") as file:
            packed, size = file.read(2) == _GZIP, os.fstat(file.fileno()).st_size
            file.seek(0)
            most = min(_LARGEST, max(_UNPACKED, size * _RATIO)) if packed else _LARGEST
            with gzip.open(file) if packed else nullcontext(file) as stream:
                found = bytearray()
                while len(found) <= most and (block := stream.read(_BLOCK)):
                    found += block
    except EOFError as error:
        raise _refused(path, "the gzip file ends too early (fetch it again)") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        reason = str(error.args[0]).lower() if error.args else "it cannot be unpacked"  # as a text it may have the file's name instead
        raise _refused(path, f"the gzip file is broken: {reason} (fetch it again)") from error
    if len(found) > most:
        packing = f", from a file of {size:,} bytes" if most < _LARGEST else ""
        raise _refused(path, f"the text has more than {most >> 20:,} MiB{packing} (give a smaller problem)")
    return found


def _refused(path: Path, message: str) -> InstanceError:
    return InstanceError(str(path), [Fault(1, 1, "", message)])


@dataclass(slots=True)
class _Raw:
    """Rows as they stand in the file."""

    faults: FaultList
    lines: Lines
    name: str = ""
    limit: int | None = None
    lists: dict[str, list[Ints]] = field(default_factory=dict)


def _read_document(text: Text, raw: _Raw) -> None:
    found = _read_members(text, raw, "", {"problem": _read_body})
    text.ahead()
    if text.position < len(text.text):
        raise TextError("something stands after the end", text.position)
    if "problem" not in found:
        raw.faults.add("problem", "problem is missing")
        raw.faults.end()


def _read_body(text: Text, raw: _Raw) -> None:
    def rows(path: str) -> Callable[[Text, _Raw], None]:
        return lambda text, raw: _read_rows(text, raw, path)

    def nodes(text: Text, raw: _Raw) -> None:
        _read_members(text, raw, "nodes.", {key: rows(f"nodes.{key}") for key in ("intervals", "costs", "usages")})

    def edges(text: Text, raw: _Raw) -> None:
        _read_members(text, raw, "edges.", {key: rows(f"edges.{key}") for key in ("nodes", "costs")})

    _read_members(text, raw, "", {"name": _read_name, "nodes": nodes, "edges": edges, "usage_limit": _read_limit})


def _read_members(text: Text, raw: _Raw, at: str, readers: dict[str, Callable[[Text, _Raw], None]]) -> set[str]:
    """Reads the members of an object that are known, skips the others; says which there were."""
    found: set[str] = set()
    for key in members(text):
        if key in found:
            raw.faults.add(f"{at}{key}", "it stands there twice")
        found.add(key)
        text.ahead()
        raw.lines.values[f"{at}{key}"] = text.position
        reader = readers.get(key)
        if reader:
            reader(text, raw)
        else:
            if any(part in key.lower() for part in ("limit", "memory")):
                raw.faults.add(f"{at}{key}", "this limit is unknown (usage_limit is the limit of memory)")
            text.value()
    return found


def _read_name(text: Text, raw: _Raw) -> None:
    name = str(text.value())
    raw.name = "".join(letter if letter.isprintable() else "?" for letter in name)[:_LONGEST_NAME]


def _read_limit(text: Text, raw: _Raw) -> None:
    value = text.value()
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < GREATEST_SUM:
        raw.faults.add("usage_limit", f"{quoted(str(value))} is no limit (give a whole number from 0 to 2^60, or leave it out)")
        return
    raw.limit = value


def _rows_at_once(text: Text) -> list[Ints] | None:
    """The rows of a list of lists of whole numbers from 0 on, decoded block by block; None where it is another, or written otherwise."""
    at, last, blocks, lengths = text.position + 1, text.text.find("]]", text.position), list[Ints](), list[int]()
    while at <= last:
        end = text.text.find("],", min(at + _DECODED, last), last)
        end = last if end < 0 else end
        try:
            rows = json.loads(f"[{text.text[at : end + 1]}]")
            figures = list(chain.from_iterable(rows))
            if set(map(type, rows)) != {list} or not set(map(type, figures)) <= {int}:
                return None
            blocks.append(np.array(figures, np.int64))
        except (TypeError, ValueError, OverflowError, RecursionError):
            return None
        lengths += map(len, rows)
        at = end + 2
    if not blocks or len(lengths) > _ROWS or min(block.min(initial=0) for block in blocks) < 0:
        return None
    text.position = last + 2
    figures_of_all = np.concatenate(blocks)
    return [figures_of_all[start:end] for start, end in pairwise(offsets_of(lengths).tolist())]


def _read_rows(text: Text, raw: _Raw, path: str) -> None:
    at_once = _rows_at_once(text)
    if at_once is not None:
        raw.lists[path] = at_once
        return
    found: list[Ints] = []
    starts = array("q")
    raw.lists[path], raw.lines.elements[path] = found, starts
    for index in items(text):
        if index == _ROWS:
            raise TextError(f"{path} has more than {_ROWS:,} rows", text.position)
        text.ahead()
        starts.append(text.position)
        row = text.value()
        found.append(_row(row, f"{path}[{index}]", raw.faults))


def _row(row: object, path: str, faults: FaultList) -> Ints:
    """A list of whole numbers from 0 on."""
    if not isinstance(row, list) or not set(map(type, row)) <= {int}:
        faults.add(path, f"{quoted(str(row)[:60])} is no list of whole numbers")
        return _NONE
    try:
        figures = np.array(row, np.int64)
    except OverflowError:
        faults.add(path, "a figure is beyond 64 bits (a cost of 10^18 says: forbidden)")
        return _NONE
    if len(figures) and figures.min() < 0:
        faults.add(path, f"{figures.min()} is below 0 (give 0 or more)")
        return _NONE
    return figures


def _problem_of(raw: _Raw, path: Path, faults: FaultList) -> Problem:
    for key in ("nodes.intervals", "nodes.costs", "nodes.usages", "edges.nodes", "edges.costs"):
        if key not in raw.lists:
            faults.add(key, f"{key} is missing")
    faults.end()
    _node_faults(raw, faults)
    faults.end()
    costs, usages = raw.lists["nodes.costs"], raw.lists["nodes.usages"]
    counts = np.array([len(row) for row in costs], np.int64)
    _edge_faults(raw, counts, faults)
    faults.end()
    intervals = np.array(raw.lists["nodes.intervals"], np.int64).reshape(-1, 2)
    ends = np.array(raw.lists["edges.nodes"], np.int64).reshape(-1, 2)
    matrices = raw.lists["edges.costs"]
    _refuse_sums([row[row < FORBIDDEN_FROM] for row in (*costs, *matrices)], "nodes.costs and edges.costs", faults)
    _refuse_sums(usages, "nodes.usages", faults)
    faults.end()
    return Problem(
        name=raw.name or path.name.removesuffix(".gz").removesuffix(".json"),
        offsets=offsets_of(counts),
        costs=_allowed(_joined(costs)),
        usages=_joined(usages),
        starts=intervals[:, 0].copy(),
        ends=intervals[:, 1].copy(),
        firsts=ends[:, 0].copy(),
        seconds=ends[:, 1].copy(),
        entry_offsets=offsets_of([len(row) for row in matrices]),
        entries=_allowed(_joined(matrices)),
        limit=raw.limit,
    )


def _node_faults(raw: _Raw, faults: FaultList) -> None:
    intervals, costs, usages = (raw.lists[f"nodes.{key}"] for key in ("intervals", "costs", "usages"))
    if not costs:
        faults.add("nodes.costs", "there is no node (give at least one)")
    if not len(intervals) == len(costs) == len(usages):
        counts = f"{len(intervals):,} intervals, {len(costs):,} costs and {len(usages):,} usages"
        faults.add("nodes", f"{counts} are given (each node needs one of each)")
        return
    for node, (interval, cost, usage) in enumerate(zip(intervals, costs, usages, strict=True)):
        if len(interval) != 2 or interval[0] > interval[1]:
            faults.add(f"nodes.intervals[{node}]", f"{interval.tolist()} is no interval (give [start, end] with start <= end)")
        if not len(cost):
            faults.add(f"nodes.costs[{node}]", "the node has no strategy (give at least one)")
        if len(cost) != len(usage):
            faults.add(f"nodes.usages[{node}]", f"{len(usage)} usages are given for {len(cost)} strategies")


def _edge_faults(raw: _Raw, counts: Ints, faults: FaultList) -> None:
    pairs, matrices = raw.lists["edges.nodes"], raw.lists["edges.costs"]
    if len(pairs) != len(matrices):
        faults.add("edges", f"{len(pairs):,} pairs of nodes and {len(matrices):,} costs are given (each edge needs both)")
        return
    if all(len(pair) == 2 for pair in pairs):
        ends = np.array(pairs, np.int64).reshape(-1, 2)
        if ends.max(initial=-1) < len(counts) and np.array_equal(counts[ends].prod(axis=1), [len(matrix) for matrix in matrices]):
            return
    for edge, (pair, matrix) in enumerate(zip(pairs, matrices, strict=True)):
        if len(pair) != 2:
            faults.add(f"edges.nodes[{edge}]", f"{pair.tolist()} is no pair of nodes")
        elif pair.max() >= len(counts):
            faults.add(f"edges.nodes[{edge}]", f"there is no node {pair.max()} (the last one is {len(counts) - 1})")
        elif len(matrix) != counts[pair[0]] * counts[pair[1]]:
            needed = f"{counts[pair[0]]} x {counts[pair[1]]} = {counts[pair[0]] * counts[pair[1]]}"
            faults.add(f"edges.costs[{edge}]", f"{len(matrix)} costs are given where the strategies of its nodes need {needed}")


def _refuse_sums(rows: list[Ints], path: str, faults: FaultList) -> None:
    """Sums must be exact in 64 bits whatever is chosen."""
    most = greatest_sum(rows)
    if most >= GREATEST_SUM:
        faults.add(path, f"the greatest figures add up to {most:.3g} (give a coarser unit: sums up to 2^60 can be worked with)")


def _allowed(costs: Ints) -> Ints:
    costs[costs >= FORBIDDEN_FROM] = FORBIDDEN
    return costs


def _joined(rows: list[Ints]) -> Ints:
    return np.concatenate(rows) if rows else _NONE.copy()
