"""Files with graphs of traces: read as written, and every mistake in one sentence with its place."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from crossopt.crossflow.traces import Graph
from crossopt.instances.errors import InstanceError
from crossopt.instances.traces.graph_file import Trace, document_of, trace_in
from tests.crossflow.test_traces import graphs

PLAIN = {
    "trace": 1,
    "operations": [{"name": "a", "kind": "host", "on": "t", "ns": 1}, {"name": "b", "kind": "kernel", "on": "s", "ns": 2}],
    "edges": [[0, 1, "launch"]],
}


@given(graphs())
def test_what_is_written_is_read_again(graph: Graph) -> None:
    again = trace_in(json.dumps(document_of(Trace(graph, "a test", 7))), "x.json")
    assert (again.source, again.span, again.graph.names, again.graph.resources) == ("a test", 7, graph.names, graph.resources)
    for column in ("kinds", "places", "durations", "before", "after", "reasons", "bytes", "flops"):
        assert np.array_equal(getattr(again.graph, column), getattr(graph, column))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"trace": 2},
            "trace: this is no graph of a trace (`crossopt import TRACE --out FILE` makes one)",
        ),
        ({"ops": []}, "ops: 'ops' says nothing here (known: source, span, assumed, operations, edges)"),
        ({"edges": {}}, "edges: a list is needed"),
        ({"span": -1}, "span: a whole number of nanoseconds is needed"),
        ({"edges": [[0, 2, "launch"]]}, "edges[0]: '2' is no operation (there are 2, counted from 0)"),
        ({"edges": [[0, 1, "later"]]}, "edges[0]: [before, after, reason] is needed, reason one of thread, stream, launch, wait, data"),
        ({"edges": [[1, 1, "data"]]}, "edges[0]: an operation cannot wait for itself (take this edge out)"),
        (
            {"edges": [[0, 1, "launch"], [1, 0, "wait"]]},
            "edges: operations depend on each other in a cycle: 0 'a' -> 1 'b' -> 0 (take one of these edges out)",
        ),
        ({"operations": [{"name": "a", "kind": "host", "on": "t"}], "edges": []}, "operations[0].ns: ns is missing"),
        (
            {"operations": [{"name": "a", "kind": "cpu", "on": "t", "ns": 1}], "edges": []},
            "operations[0].kind: 'cpu' is no kind of operation (give host, gap, kernel, copy, collective, wait)",
        ),
        (
            {"operations": [{"name": "a", "kind": "host", "on": "t", "ns": 1.5}], "edges": []},
            "operations[0].ns: '1.5' is no whole number of zero and more below 2^62",
        ),
        (
            {"operations": [{"name": "a", "kind": "host", "on": "t", "ns": True}], "edges": []},
            "operations[0].ns: 'True' is no",
        ),
    ],
)
def test_every_mistake_is_told(change: dict[str, Any], told: str) -> None:
    with pytest.raises(InstanceError) as error:
        trace_in(json.dumps({**PLAIN, **change}), "x.json")
    assert f"x.json:1:1: {told}" in str(error.value)
