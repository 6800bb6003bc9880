"""The command `import`: what it prints and writes, and what it refuses."""

import json
from pathlib import Path

import pytest

from crossopt.instances.traces.chakra import COMP, Metadata, Node, written
from crossopt.instances.traces.graph_file import read_trace
from crossopt.reports.cli import main
from tests.instances.traces.test_kineto import LAUNCHED, call, kernel, put, rank, steps


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
    told = "gaps, 7.7% of the critical path, keep their traced length, so that this holds by construction without overlap"
    assert f"(0.00% off); {told} busy" in " ".join(printed.split())
    assert read_trace(out).span == 13_000
    assert main(["import", str(out)]) == 0
    assert "x.json   graph of a trace" in capsys.readouterr().out


def test_a_graph_that_is_off_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [call("cudaLaunchKernel", 0, 1, 1), call("cudaLaunchKernel", 1, 1, 2), kernel("a", 1, 10, 1), kernel("b", 6, 10, 2)]
    assert main(["import", str(put(tmp_path, *rows))]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "16.000 us traced, 21.000 us replayed (31.25% off): the graph does not explain the trace, see the remarks below" in printed
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
    assert "none.json:1:1: there is no such file" in capsys.readouterr().err


def test_a_step_and_all_its_work_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = str(put(tmp_path, *steps((8, 9, 8)))), tmp_path / "graph.json"
    assert main(["import", path, "--step", "8", "--kernels", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "x.json, step 8   Kineto" in printed
    assert "longest work" not in printed
    kernels = "  kernel             1      5.000 us   55.6%      5.000 us      5.000 us  second\n"
    assert kernels in printed
    assert "  all                2      9.000 us" in printed
    assert read_trace(out).span == 13_000  # from where it is marked to begin, 1 us ahead of its first launch
    assert main(["import", path, "--from", "2.5us", "--to", "0.011 ms"]) == 0
    assert "1 operation that begins in the window" in " ".join(capsys.readouterr().out.split())
    for wrong, sentence in (
        (["--from", "5us", "--to", "5us"], "--to: the window ends before it begins (give a later time than --from)"),
        (["--step", "8", "--to", "5us"], "--step: a step begins and ends where it was marked (leave --from and --to out)"),
    ):
        assert main(["import", path, *wrong]) == 2
        assert capsys.readouterr().err == f"{sentence}\n"
    for wrong, sentence in ((["--from", "0.3ns"], "is no whole number of ns"), (["--step", "x"], "'x' is no number of a step")):
        with pytest.raises(SystemExit):
            main(["import", path, *wrong])
        assert sentence in capsys.readouterr().err


def test_a_trace_without_starts_says_what_its_order_rests_on_wherever_its_time_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two kernels of 6 and 4 us that wait for nothing take 10 on one device; a graph that says nothing of turns has a least span."""
    kernels = [Node(number, "gemm", COMP, duration_micros=took) for number, took in ((1, 6), (2, 4))]
    trace, graph, asked, saved = (tmp_path / name for name in ("x.et", "graph.json", "asked.yaml", "saved.json"))
    trace.write_bytes(written(Metadata("0.0.4"), kernels))
    asked.write_text("{kind: what-if, trace: graph.json, changes: [{name: half, transform: scale, pattern: gemm, factor: 0.5}]}")
    assert main(["import", str(trace), "--out", str(graph)]) == 0
    told = capsys.readouterr().out
    for arguments in (["solve", str(asked), "--out", str(saved)], ["check", str(saved)]):
        assert main(arguments) == 0
        told += capsys.readouterr().out
    assert " ".join(told.split()).count("no start times were traced: operations of one thread, stream, device or network run in turn") == 3
    assert "10.000 us replayed, none traced" in told
    assert "unchanged 10 us saved 50.0%" in " ".join(told.split())
    graph.write_text(json.dumps({**json.loads(graph.read_text()), "assumed": ""}))
    assert main(["solve", str(asked)]) == 0
    assert "all times are the least that these allow" in " ".join(capsys.readouterr().out.split())


def test_a_network_is_told_and_written_and_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = pytest.importorskip("tests.instances.operators.onnx_models")
    path, out = tmp_path / "decoder.onnx", tmp_path / "graph.json"
    path.write_bytes(models.transformer(2).SerializeToString())
    assert main(["import", str(path), "--set", "batch=3", "--set", "length=5", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    for line in (
        "decoder.onnx   44 operators",
        "  inputs         ids 3 x 5",
        "  axes           batch 3 · length 5",
        "  multiply-adds  1,589,760 forward, 3,179,520 FLOPs",
        "  parameters     104,960",
        "  repeated       21 operators 2 times",
        "  shared         table by 2 operators",
    ):
        assert line in printed
    assert main(["import", str(out)]) == 0
    assert capsys.readouterr().out == printed.replace(str(path), str(out))
    assert main(["import", str(out), "--named", str(tmp_path / "named.onnx")]) == 2
    assert "--named is for models of ONNX (leave it out)" in capsys.readouterr().err
    assert main(["import", str(path), "--set", "batch=3", "--set", "length=5", "--named", str(tmp_path / "named.onnx")]) == 0
    assert (tmp_path / "named.onnx").is_file()
    with pytest.raises(SystemExit):
        main(["import", str(path), "--set", "batch=3", "--set", "length=5", "--named", str(path)])
    assert "this file is read, and would be written over (name another file)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--set", "batch=0"], "--set batch=0: a length of an axis is needed, from 1 to 1,000,000,000 (such as batch=32)"),
        (["--set", "batch=1", "--set", "batch=2"], "--set batch=2: the axis batch is given twice (keep one)"),
        (["--rank", "1"], "--rank is for traces (leave it out for a network)"),
        ([], "the axis 'batch' of input 'ids' is open (give its length, such as --set batch=1)"),
    ],
)
def test_a_network_that_is_not_to_be_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], told: str
) -> None:
    models = pytest.importorskip("tests.instances.operators.onnx_models")
    path = tmp_path / "decoder.onnx"
    path.write_bytes(models.transformer(1).SerializeToString())
    assert main(["import", str(path), *more]) in {2, 3}
    assert told in capsys.readouterr().err


def test_a_broken_graph_is_refused_with_its_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "graph.json"
    out.write_text('{"graph": "operators", "format": 1}', encoding="utf-8")
    assert main(["import", str(out)]) == 3
    assert "this key is missing" in capsys.readouterr().err
    assert main(["solve", str(out)]) == 3
    assert (
        "this is a graph of operators, not a question (`crossopt place FILE --devices 4xh100` places its operators"
        in capsys.readouterr().err
    )


def test_operators_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "operators"]) == 0
    assert "transposed convolution  convolution from outputs to inputs, as decoders use it; ONNX: ConvTranspose" in capsys.readouterr().out
