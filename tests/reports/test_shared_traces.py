"""Copies of traces by `export`: files without names with their key, drawn ones, and scripts of PyTorch operations that run."""

import json
from pathlib import Path

import pytest

from crossopt.crossflow.traces import graph_of
from crossopt.instances.errors import RefusedError
from crossopt.instances.traces.graph_file import Trace, document_of, read_trace
from crossopt.reports.cli import main
from crossopt.reports.launching.command import script_of
from tests.paths import INSTANCES
from tests.trace_steps import training_step

SHAPES = "aten::addmm(float 8, float 16x32, float 32x8)"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(document_of(Trace(training_step(3), "our secret model", 12_000_000))), encoding="utf-8")
    return path


def test_a_copy_without_names_is_a_graph_and_the_key_is_apart(graph: Path, tmp_path: Path) -> None:
    out, key = tmp_path / "shared.json", tmp_path / "key.json"
    assert main(["export", str(graph), "--as", "anonymous", "--out", str(out), "--key", str(key)]) == 0
    text, names = out.read_text(encoding="utf-8"), json.loads(key.read_text(encoding="utf-8"))
    assert not any(name in text for name in ("secret", "ncclAllReduce", "attention", "python"))
    shared, original = read_trace(out), read_trace(graph)
    assert tuple(names[name] for name in shared.graph.names) == original.graph.names
    assert shared.span == original.span


def test_a_drawn_copy_says_how_near_it_is(graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "drawn.json"
    assert main(["export", str(graph), "--as", "drawn", "--seed", "3", "--out", str(out)]) == 0
    assert "phase of a trace (seed 3): span" in capsys.readouterr().err
    drawn = read_trace(out)
    assert (len(drawn.graph), drawn.graph.flops.sum()) == (len(training_step(3)), training_step(3).flops.sum())
    assert "secret" not in out.read_text(encoding="utf-8")


def test_the_key_is_not_written_over_the_trace(graph: Path) -> None:
    with pytest.raises(SystemExit):
        main(["export", str(graph), "--as", "anonymous", "--out", "-", "--key", str(graph)])


def mixed() -> Trace:
    """A kernel of each basis, a copy and a collective."""
    rows = [("by shapes", "kernel"), ("by flops", "kernel"), ("by bytes", "kernel"), ("by time", "kernel"), ("to the device", "copy")]
    rows += [("ncclAllReduce", "collective"), ('by "shapes" again', "kernel"), ("call", "host")]
    operations = [(name, kind, "stream 7", 1_000) for name, kind in rows]
    edges = [(place, place + 1, "stream") for place in range(len(rows) - 1)]
    inputs = [SHAPES, "", "", "", "", "", "aten::copy_(c10::BFloat16 4x4, c10::BFloat16 4x4)", ""]
    return Trace(graph_of(operations, edges, [0, 0, 4096, 0, 800, 400, 0, 0], [0, 2 * 16**3, 0, 0, 0, 0, 0, 0], (), inputs), "by hand")


def test_a_script_has_each_kernel_once_and_runs_in_the_order_of_the_replay() -> None:
    found: dict[str, object] = {}
    text = script_of(mixed())
    body = text.partition("import argparse")[2].partition("OPERATORS =")[0].partition("SOURCE")[2]
    exec(compile(f"SOURCE{body}", "script", "exec"), found)  # noqa: S102 - what export wrote, without the imports
    kernels = found["KERNELS"]
    assert isinstance(kernels, list)
    assert [kernel["name"] for kernel in kernels] == [name for name in mixed().graph.names if name != "call"]
    assert found["SEQUENCE"] == list(range(7))
    compile(script_of(Trace(training_step(2))), "script", "exec")
    repeated: dict[str, object] = {}
    steps = script_of(Trace(training_step(2))).partition("SEQUENCE = ")[2].partition("\n")[0]
    exec(f"runs = {steps}", repeated)  # noqa: S102
    runs = repeated["runs"]
    assert isinstance(runs, list)
    assert len(runs) == sum(1 for kind in training_step(2).kinds if kind in (2, 3, 4)) > len(set(runs))


def test_a_script_runs_as_pytorch_operations(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    found: dict[str, object] = {"__name__": "script"}
    exec(compile(script_of(mixed()), "script", "exec"), found)  # noqa: S102 - what export wrote
    monkeypatch.setattr("sys.argv", ["script", "--device", "cpu", "--repeat", "1", "--largest-side", "32"])
    run = found["main"]
    assert callable(run)
    run()
    rows = capsys.readouterr().out.splitlines()
    assert [row[48:58].strip() for row in rows[1:8]] == ["shapes", "FLOPs", "bytes", "time", "bytes", "bytes", "shapes"]
    assert rows[8].startswith("all 7 runs: 7.0 us traced")


def test_a_benchmark_becomes_a_script(tmp_path: Path) -> None:
    saved, script = tmp_path / "third.json", tmp_path / "third.py"
    assert main(["solve", str(INSTANCES / "traces/a-third-of-a-step.yaml"), "--out", str(saved)]) == 0
    assert main(["export", str(saved), "--as", "pytorch", "--out", str(script)]) == 0
    text = script.read_text(encoding="utf-8")
    assert text.count('"name": "mlp_gemm"') == 1
    compile(text, "script", "exec")


def test_a_graph_without_device_work_has_no_script() -> None:
    with pytest.raises(RefusedError, match="no kernel, copy or collective is in this graph"):
        script_of(Trace(graph_of([("call", "host", "thread 1", 3)], [])))
