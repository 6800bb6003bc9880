"""Questions about traces and files with graphs of them: every mistake in one sentence with its place."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from crossopt.crossflow.traces import Graph
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read
from crossopt.instances.traces.graph_file import Trace, document_of, trace_in
from tests.crossflow.test_traces import graphs
from tests.trace_steps import few_kernels, training_step

# Questions about changes of a trace: every mistake in one sentence with its place.

TRACE = document_of(Trace(training_step(1)))
SCALE = {"name": "one", "transform": "scale", "pattern": "*gemm*", "factor": 0.5}
OTHER = {**SCALE, "name": "two", "factor": 0.9}


def refused(folder: Path, said: dict[str, Any], graph: object = TRACE) -> str:
    path = folder / "q.yaml"
    data = graph if isinstance(graph, bytes) else (graph if isinstance(graph, str) else json.dumps(graph)).encode()
    (folder / "trace.json").write_bytes(data)
    document = {"kind": "what-if", "trace": "trace.json", "changes": [SCALE, OTHER], **said}
    path.write_text(json.dumps(document), encoding="utf-8")  # JSON is YAML
    with pytest.raises(InstanceError) as error:
        read(path, ())
    return str(error.value)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([], "changes: 0 changes are given, 1 to 30 are needed"),
        ([SCALE, SCALE], "changes[1].name: there are two changes 'one' (give each a name of its own)"),
        ([{**SCALE, "transform": "scael"}], "changes[0].transform: 'scael' is unknown (did you mean 'scale'?)"),
        (
            [{**SCALE, "pattern": "*gemmm*"}],
            "no operation that 'scale' looks among is called '*gemmm*' (the trace holds collective, gap, host",
        ),
        ([{**SCALE, "kinds": ["copy"]}], "no operation that 'scale' looks among is called '*gemm*'"),
        ([{"name": "x", "transform": "scale"}], "changes[0].pattern: 'scale' needs a pattern (add it)"),
        ([{**SCALE, "times": 2}], "changes[0].times: times does not apply to 'scale' (take it away)"),
        ([{**SCALE, "factor": 0.12345678}], "more than six digits behind the point is too fine"),
        ([{**SCALE, "factor": -1}], "changes[0].factor: '-1' is negative"),
        ([{**SCALE, "days": -1}], "changes[0].days: '-1' is too small (at least 0)"),
        ([{**SCALE, "memory": "-1 GiB"}], "changes[0].memory: '-1 GiB' is negative, a size in bytes of zero or more is needed"),
        ([{**SCALE, "requires": ["one"]}], "changes[0].requires[0]: 'one' requires itself (take it out)"),
        ([{**SCALE, "excludes": ["one"]}], "changes[0].excludes[0]: 'one' excludes itself (take it out)"),
        ([SCALE, {**OTHER, "requires": ["oen"]}], "changes[1].requires[0]: there is no change 'oen' (did you mean 'one'?)"),
        (
            [{**SCALE, "requires": ["two"]}, {**OTHER, "requires": ["one"]}],
            "changes require one another: 'one' -> 'two' -> 'one' (make them one change)",
        ),
        (
            [{**SCALE, "requires": ["two"]}, {**OTHER, "excludes": ["one"]}],
            "changes[0]: 'one' can never be made: it needs both 'two' and 'one', which exclude each other",
        ),
        ([{"name": "x", "transform": "cuda-graph", "pattern": "qkv_gemm"}], "changes[0]: it changes nothing in this trace"),
        ([{"name": "x", "transform": "overlap", "gradients": "nothing"}], "changes[0].gradients: no operation that 'overlap' looks among"),
        ([{"name": "x", "transform": "bandwidth", "times": 2, "latency": "2 h"}], "changes[0].latency: a collective takes no hour"),
        ([{**SCALE, "factor": 1000, "name": f"n{place}"} for place in range(5)], "changes: all together may take more than"),
    ],
)
def test_mistakes_of_changes_are_told(changes: list[dict[str, Any]], told: str, tmp_path: Path) -> None:
    assert told in refused(tmp_path, {"changes": changes})


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"objective": "days"}, "objective: the least days is none at all without a target"),
        ({"target": "0 s"}, "target: this is no time to meet"),
        ({"budgets": {"money": "3 USD"}}, "budgets.money: no change costs money"),
        ({"trace": "other.json"}, "trace: there is no such file (check the name and the folder: paths begin at the question)"),
        ({"trace": None}, "trace: there is no value"),
    ],
)
def test_mistakes_of_a_question_are_told(said: dict[str, Any], told: str, tmp_path: Path) -> None:
    assert told in refused(tmp_path, said)


def test_a_change_may_free_as_much_memory_as_it_takes(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(json.dumps(TRACE), encoding="utf-8")
    change = {**SCALE, "memory": "1 GiB", "frees": "1 GiB"}
    document = {"kind": "what-if", "trace": "trace.json", "changes": [change], "budgets": {"memory": "1 B"}}
    (tmp_path / "q.yaml").write_text(json.dumps(document), encoding="utf-8")
    assert read(tmp_path / "q.yaml", ()).file.budgets.memory == 1  # type: ignore[attr-defined]


PACKED = gzip.compress(b"{}", mtime=0)  # the same bytes in every process, as names of tests are made of them


@pytest.mark.parametrize(
    ("graph", "told"),
    [
        ({"trace": 1, "operations": [], "edges": []}, "trace: this trace holds no operation"),
        (
            {**TRACE, "operations": [{**operation, "ns": 0} for operation in TRACE["operations"]]},
            "trace: its operations take no time, so that no change saves any (import a trace with times)",
        ),
        ({"nodes": {}}, "trace.json:1:1: trace: this is no graph of a trace"),
        ("{", "trace.json"),
        (PACKED, "trace.json:1:1: this is packed by gzip, and no graph of a trace (`crossopt import TRACE --out FILE` makes"),
    ],
)
def test_a_trace_that_is_none_is_told(graph: object, told: str, tmp_path: Path) -> None:
    assert told in refused(tmp_path, {}, graph)


@pytest.mark.parametrize("text", ["[]", "3", '{"nodes": {}, "span": -1}'])
def test_json_of_something_else_has_that_one_fault(text: str) -> None:
    """Whatever it holds is not judged as if it were a trace."""
    with pytest.raises(InstanceError, match="this is no graph of a trace") as raised:
        trace_in(text, "x.json")
    assert len(raised.value.faults) == 1


# Questions about benchmarks: kernels are operations that are alike, and every mistake is told in one sentence with its place.


def asked(folder: Path, said: dict[str, Any], trace: dict[str, Any]) -> Any:  # noqa: ANN401 - a question
    (folder / "trace.json").write_text(json.dumps(trace), encoding="utf-8")
    path = folder / "q.yaml"
    path.write_text(json.dumps({"kind": "benchmark", "trace": "trace.json", **said}), encoding="utf-8")  # JSON is YAML
    return read(path, ())


def test_operations_that_are_alike_are_one_kernel_those_with_most_time_first(tmp_path: Path) -> None:
    question = asked(tmp_path, {}, document_of(Trace(few_kernels((("add", 5, 3), ("gemm", 30, 2))))))
    assert [(one.name, one.operations, one.time) for one in question.kernels] == [("gemm", (3, 4), 61), ("add", (0, 1, 2), 16)]
    assert dict(zip(question.totals, question.sums, strict=True)) == {"time": 77, "kernel time": 77, "runs": 5, "bytes": 700}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"share": 0}, "share: a benchmark that stands for nothing is none (give more than 0)"),
        ({"share": 1.5}, "share: '1.5' is too large (at most 1)"),
        ({"deviation": -0.1}, "deviation: '-0.1' is negative"),
        (
            {"totals": ["copy time"]},
            "totals[0]: the trace says nothing of 'copy time' (it has time, kernel time, collective time, runs, bytes",
        ),
        ({"totals": ["tiem"]}, "totals[0]: 'tiem' is unknown (did you mean 'time'?)"),
        ({"kinds": ["copy"]}, "trace: it holds no operation of the kinds copy (it holds collective, gap, host, kernel, wait)"),
        ({"kernels": 3}, "kernels: the fewest kernels are asked for already"),
        ({"trace": "other.json"}, "trace: there is no such file (check the name and the folder: paths begin at the question)"),
    ],
)
def test_every_mistake_is_told(said: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(InstanceError) as error:
        asked(tmp_path, said, document_of(Trace(training_step(1))))
    assert told in str(error.value)


# Files with graphs of traces: read as written, and every mistake in one sentence with its place.

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
        ({"trace": 2}, "trace: this is no graph of a trace (`crossopt import TRACE --out FILE` makes one)"),
        ({"ops": []}, "ops: 'ops' is unknown here (known: source, span, assumed, operations, edges)"),
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
        ({"operations": [{"name": "a", "kind": "host", "on": "t", "ns": True}], "edges": []}, "operations[0].ns: 'True' is no"),
    ],
)
def test_every_mistake_in_a_graph_file_is_told(change: dict[str, Any], told: str) -> None:
    with pytest.raises(InstanceError) as error:
        trace_in(json.dumps({**PLAIN, **change}), "x.json")
    assert f"x.json:1:1: {told}" in str(error.value)
