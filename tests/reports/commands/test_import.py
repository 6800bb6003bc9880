"""The command `import`: what it prints and writes, and what it refuses."""

import json
from pathlib import Path

import pytest

from crossopt.instances.traces.graph_file import read_trace
from crossopt.reports.cli import main
from tests.instances.traces.test_kineto import LAUNCHED, call, kernel, put, rank


def test_what_was_read_is_told_and_the_graph_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the 13 us kernels work 10, from 3 on, behind a call of 2 and 1 us of launch latency."""
    trace, out = put(tmp_path, *LAUNCHED), tmp_path / "graph.json"
    assert main(["import", str(trace), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    for line in (
        "x.json   Kineto",
        "  operations     3: 1 call · 1 gap · 1 kernel",
        "  on             1 thread · 1 stream",
        "  span           13.000 us traced, 13.000 us replayed (0.00% off)",
        "  busy           stream 7   76.9%    10.000 us of 1 operation",
        "  longest work   100.0%    10.000 us       1 x  gemm",
        "  critical path  3 operations: kernels 10.000 us · calls 2.000 us · launch latency 1.000 us",
    ):
        assert line in printed
    told = "gaps, 7.7% of the critical path, are kept as long as traced, so that this holds by construction where nothing overlaps"
    assert f"(0.00% off); {told} busy" in " ".join(printed.split())
    assert read_trace(out).span == 13_000
    assert main(["import", str(out)]) == 0
    assert "x.json   graph of a trace" in capsys.readouterr().out


def test_a_graph_that_is_off_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [call("cudaLaunchKernel", 0, 1, 1), call("cudaLaunchKernel", 1, 1, 2), kernel("a", 1, 10, 1), kernel("b", 6, 10, 2)]
    assert main(["import", str(put(tmp_path, *rows))]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "16.000 us traced, 21.000 us replayed (31.25% off): the graph does not explain the trace, see what is told below" in printed
    assert "put behind it" in printed


def test_ranks_and_places_are_refused_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(rank(tmp_path, 0, 10)), str(rank(tmp_path, 1, 4))]
    assert main(["import", *paths, "--rank", "1"]) == 0
    assert "1.json, rank 1, of 2 ranks" in capsys.readouterr().out
    assert main(["import", *paths, "--rank", "2"]) == 3
    told = "there is no rank 2: the traces are of ranks 0, 1 (name one that is there, or leave --rank out)\n1 fault, nothing imported"
    assert told in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["import", paths[0], "--out", paths[0]])
    assert json.loads(Path(paths[0]).read_text(encoding="utf-8"))["schemaVersion"] == 1
    assert main(["import", str(tmp_path / "none.json")]) == 3
    assert "none.json: no such file or directory" in capsys.readouterr().err
