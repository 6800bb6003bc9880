"""Host traces of PyTorch: operators that call no other, in their order, with what they read."""

import json
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.errors import InstanceError
from crossopt.instances.traces.any_form import read_any
from tests.paths import reference

TENSOR = [5, 9, 0, 4, 4, "cuda:0"]


def node(number: int, caller: int, reads: list[Any] | None = None, writes: list[Any] | None = None) -> dict[str, Any]:
    attrs = [{"name": "tid", "type": "uint64", "value": 1}]
    tensors = {"inputs": {"values": reads or []}, "outputs": {"values": writes or []}}
    return {"id": number, "name": f"op{number}", "ctrl_deps": caller, "attrs": attrs, **tensors}


def put(folder: Path, nodes: list[dict[str, Any]], schema: str = "1.1.0-chakra.0.0.4") -> Path:
    (folder / "et.json").write_text(json.dumps({"schema": schema, "nodes": nodes}), encoding="utf-8")
    return folder / "et.json"


def test_a_reader_of_a_tensor_waits_for_who_wrote_it(tmp_path: Path) -> None:
    """1 is the process, 2 calls 3 and 4; 3 writes storage 9, 4 and 5 read it, 4 within a list."""
    nodes = [node(1, 1), node(2, 1), node(3, 2, [], [TENSOR]), node(4, 2, [[TENSOR]]), node(5, 1, [TENSOR, "text", 3])]
    graph = read_any(put(tmp_path, nodes)).trace.graph
    assert graph.names == ("op3", "op4", "op5")
    assert sorted(zip(graph.before.tolist(), graph.after.tolist(), graph.reasons.tolist(), strict=True)) == [
        (0, 1, 0),
        (0, 1, 4),
        (0, 2, 4),
        (1, 2, 0),
    ]


@pytest.mark.data
def test_the_public_host_trace_has_no_times() -> None:
    found = read_any(reference("traces/pytorch_et_1.0.2.json.gz"))
    assert (int(found.trace.graph.durations.sum()), found.trace.span) == (0, 0)
    assert "263 nodes" in found.remarks[-1]


@pytest.mark.parametrize(
    ("nodes", "schema", "told"),
    [
        ([node(1, 1)], "9.9", "schema: '9.9' is not known (known: 1.0.2-chakra.0.0.4, "),
        ([node(1, 1), node(1, 1)], "1.1.0-chakra.0.0.4", "nodes[1].id: 1 is the id of nodes[0] too"),
        ([node(1, 2), node(2, 1)], "1.1.0-chakra.0.0.4", "nodes call one another: 1 -> 2 -> 1"),
        ([{"id": 1}], "1.1.0-chakra.0.0.4", "nodes[0].name: a text is needed"),
    ],
)
def test_faults_are_told(tmp_path: Path, nodes: list[dict[str, Any]], schema: str, told: str) -> None:
    with pytest.raises(InstanceError) as error:
        read_any(put(tmp_path, nodes, schema))
    assert told in str(error.value)
