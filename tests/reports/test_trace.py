"""Traces over time: every event inside the time that the judge or the model tells, and the last one at its end."""

import json
from pathlib import Path
from typing import Any

import pytest

from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.question import read_instance
from crossopt.reports.cli import main
from tests.instances.placement.test_formats import document, written
from tests.paths import INSTANCES, ROOT

GALLERY = ROOT / "reports/gallery"


def traced(path: Path, folder: Path) -> list[dict[str, Any]]:
    assert main(["export", str(path), "--as", "perfetto", "--out", str(folder / "trace.json")]) == 0
    events = json.loads((folder / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    named = {event["tid"] for event in events if event["ph"] == "M" and event["name"] == "thread_name"}
    assert {event["tid"] for event in events if event["ph"] == "X"} <= named
    return [event for event in events if event["ph"] == "X"]


def end(events: list[dict[str, Any]]) -> float:
    return max(float(event["ts"] + event["dur"]) for event in events)


def test_a_step_has_every_pass_and_ends_when_it_is_over(tmp_path: Path) -> None:
    """A microbatch is a forward pass on the only stage: all samples by those that the plan takes at once."""
    path = GALLERY / "quickstart.json"
    saved, events = json.loads(path.read_text(encoding="utf-8")), traced(path, tmp_path)
    assert end(events) == pytest.approx(saved["value"] * 1e6, rel=1e-9)
    model, plan = read_instance(INSTANCES / "quickstart.yaml").workload, saved["answer"]["designs"][0]["plan"]
    assert isinstance(model, Transformer)
    assert plan["pipeline"] == 1
    passes = range(1, model.global_batch // (plan["microbatch"] * plan["data"]) + 1)
    assert sorted(event["name"] for event in events if event["cat"] == "forward") == sorted(f"forward {number}" for number in passes)


@pytest.mark.parametrize("pieces", ["1", "2"])
def test_one_sample_ends_with_its_last_piece_or_operator(pieces: str, tmp_path: Path) -> None:
    graph, saved = written(tmp_path, document(maxSizePerFPGA=24.0)), tmp_path / "answer.json"
    main(["solve", str(graph), "--problem", "latency", "--pieces", pieces, "--out", str(saved)])
    answer = json.loads(saved.read_text(encoding="utf-8"))
    events = traced(saved, tmp_path)
    assert end(events) == pytest.approx(answer["value"] * 1e3)
    on_cpu = sum(device == "cpu" for device in answer["answer"]["devices"].values())
    assert sum(event["cat"] == "cpu" for event in events) == on_cpu


def test_what_has_no_time_is_refused_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["export", str(GALLERY / "joint-vs-single-layer.json"), "--as", "perfetto"])
    assert "--as perfetto: what is about studies is not written so" in capsys.readouterr().err


def test_a_graph_of_a_trace_is_drawn_as_it_runs_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A call of 2.5 us, then a kernel of 10 behind a gap of 1, which is not drawn."""
    operations = [
        {"name": "launch", "kind": "host", "on": "thread 1", "ns": 2500},
        {"name": "gap", "kind": "gap", "on": "stream 7", "ns": 1000},
        {"name": "gemm", "kind": "kernel", "on": "stream 7", "ns": 10000, "flops": 64},
    ]
    graph = tmp_path / "graph.json"
    graph.write_text(json.dumps({"trace": 1, "operations": operations, "edges": [[0, 1, "launch"], [1, 2, "stream"]]}), encoding="utf-8")
    drawn = [(event["name"], event["tid"], event["ts"], event["dur"], event["args"]) for event in traced(graph, tmp_path)]
    assert drawn == [("launch", 0, 0.0, 2.5, {}), ("gemm", 1, 3.5, 10.0, {"flops": "64"})]
    with pytest.raises(SystemExit):
        main(["export", str(graph)])
    assert "is a graph of a trace (take --as perfetto or anonymous or drawn or pytorch)" in capsys.readouterr().err
