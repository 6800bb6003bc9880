"""Questions about changes of a trace: every mistake in one sentence with its place."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read
from crossopt.instances.traces.graph_file import Trace, document_of
from tests.trace_steps import training_step

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
        ([{**SCALE, "times": 2}], "changes[0].times: times says nothing to 'scale' (take it away)"),
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
        ({"trace": "other.json"}, "trace: there is no such file (check the name and the folder); paths begin at the question"),
        ({"trace": None}, "trace: there is no value"),
    ],
)
def test_mistakes_of_a_question_are_told(said: dict[str, Any], told: str, tmp_path: Path) -> None:
    assert told in refused(tmp_path, said)


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
