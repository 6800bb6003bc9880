"""The graph of a trace that a question names, and the operations in it that patterns of names mean."""

import re
from collections.abc import Sequence
from pathlib import Path

from crossopt.crossflow.traces.graph import Graph
from crossopt.crossflow.traces.transforms import of_kinds
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import opened
from crossopt.instances.files.graphs import text_of
from crossopt.instances.files.written import Written
from crossopt.instances.traces.graph_file import IMPORTED, Trace, trace_in
from crossopt.instances.traces.packed import GZIP


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
