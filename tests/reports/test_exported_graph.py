"""`crossopt export RESULT --as graph`: what a benchmark runs, and a trace with its changes."""

from pathlib import Path

import pytest

from crossopt.crossflow.traces import replay
from crossopt.instances.traces.graph_file import read_trace
from crossopt.reports.cli import main


@pytest.mark.parametrize(("question", "count", "took"), [("a-third-of-a-step", 44, 3_002_000), ("two-weeks-of-work", 406, 3_274_000)])
def test_a_graph_is_written_that_takes_as_long_as_the_result_says(question: str, count: int, took: int, tmp_path: Path) -> None:
    """Kernels and collectives of the benchmark wait for each other one after another, so that they take what they have together."""
    result, graph = tmp_path / "result.json", tmp_path / "graph.json"
    assert main(["solve", question, "--out", str(result)]) == 0
    assert main(["export", str(result), "--as", "graph", "--out", str(graph)]) == 0
    trace = read_trace(graph)
    assert (len(trace.graph), replay(trace.graph).span) == (count, took)
    result.write_text(result.read_text().replace('"OPTIMAL"', '"FEASIBLE"'), encoding="utf-8")
    assert main(["export", str(result), "--as", "graph"]) != 0
