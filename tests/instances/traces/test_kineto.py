"""Kineto and host traces: graphs by hand, public traces that run again as long as they took, and every fault in one sentence."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.traces import EDGES, KINDS, Graph, replay
from crossopt.instances.errors import InstanceError
from crossopt.instances.traces.any_form import imported_kineto, read_any
from crossopt.instances.traces.graph_file import Imported, Window, nanoseconds
from crossopt.instances.traces.ranks import joined
from tests.paths import reference

# Kineto traces: graphs by hand, public traces that run again as long as they took, and every fault in one sentence.

Row = dict[str, Any]
START = 1_694_128_201_429_424


def call(name: str, begin: float, took: float, correlation: int, thread: int = 1) -> Row:
    return row("cuda_runtime", name, begin, took, {"correlation": correlation}, 100, thread)


def kernel(name: str, begin: float, took: float, correlation: int, stream: int = 7, cat: str = "kernel") -> Row:
    return row(cat, name, begin, took, {"correlation": correlation, "stream": stream, "device": 0}, 0, stream)


def row(cat: str, name: str, begin: float, took: float, args: Row, process: int, thread: int) -> Row:
    return {"ph": "X", "cat": cat, "name": name, "ts": START + begin, "dur": took, "pid": process, "tid": thread, "args": args}


def put(folder: Path, *rows: Row, name: str = "x.json", **more: object) -> Path:
    (folder / name).write_text(json.dumps({"schemaVersion": 1, "traceEvents": list(rows), **more}), encoding="utf-8")
    return folder / name


def told(found: Imported) -> list[tuple[str, str, int, int]]:
    """Every operation with its kind, begin and end in us."""
    graph, again = found.trace.graph, replay(found.trace.graph)
    kinds = [KINDS[kind] for kind in graph.kinds]
    return list(zip(graph.names, kinds, (again.begins // 1000).tolist(), (again.ends // 1000).tolist(), strict=True))


def edges(found: Imported, reason: str) -> set[tuple[str, str]]:
    graph = found.trace.graph
    return {
        (graph.names[one], graph.names[two])
        for one, two, why in zip(graph.before, graph.after, graph.reasons, strict=True)
        if EDGES[why] == reason
    }


def test_launches_streams_and_a_synchronisation_by_hand(tmp_path: Path) -> None:
    """A thread launches at 0-2 and 5-7, and synchronises at 8-25. gemm runs at 3-13, 1 us behind its launch, add at 14-22, 1 us behind it.
    Of the 17 us of the wait 3 are its own, behind add. Were gemm 4 us shorter, all would end 4 us earlier."""
    rows = [
        call("cudaLaunchKernel", 0, 2, 1),
        call("cudaLaunchKernel", 5, 2, 2),
        call("cudaStreamSynchronize", 8, 17, 3),
        kernel("gemm", 3, 10, 1),
        kernel("add", 14, 8, 2),
    ]
    found = read_any(put(tmp_path, *rows))
    assert told(found) == [
        ("cudaLaunchKernel", "host", 0, 2),
        ("gap", "gap", 2, 5),
        ("cudaLaunchKernel", "host", 5, 7),
        ("gap", "gap", 7, 8),
        ("cudaStreamSynchronize", "wait", 22, 25),
        ("gemm", "kernel", 3, 13),
        ("add", "kernel", 14, 22),
        ("launch latency", "gap", 2, 3),
        ("device gap", "gap", 13, 14),
    ]
    assert found.trace.span == 25_000
    shorter = found.trace.graph.durations.copy()
    shorter[found.trace.graph.names.index("gemm")] -= 4_000
    assert replay(replace(found.trace.graph, durations=shorter)).span == 21_000


def test_gaps_are_named_by_the_operator_that_lasts_all_of_them(tmp_path: Path) -> None:
    """Gaps at 2-5, 6-8 and 9-12: the first within an operator within another, the second within the outer one, the third within none."""
    spans = [("outer", 1, 8), ("inner", 1, 5), ("next", 9, 2)]
    operators = [row("cpu_op", name, begin, took, {}, 100, 1) for name, begin, took in spans]
    calls = [call("cudaLaunchKernel", 0, 2, 1), *(call("cudaGetDevice", begin, 1, begin) for begin in (5, 8, 12))]
    found = read_any(put(tmp_path, *calls, *operators, kernel("gemm", 2, 1, 1)))
    assert [name for name in found.trace.graph.names if "gap" in name] == ["gap in inner", "gap in outer", "gap"]


def test_work_has_the_inputs_of_the_innermost_operator_that_recorded_them(tmp_path: Path) -> None:
    """Of two operators around a launch the inner one has shapes; the other launch is in an operator of which nothing fits."""
    shapes = {"Input Dims": [[64, 8], [8, 4], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "Scalar"]}
    wrong = {"Input Dims": [[-1]], "Input type": ["float"]}
    operators = [
        row("cpu_op", "aten::linear", 0, 6, {"Input Dims": [[64, 8]], "Input type": ["float"]}, 100, 1),
        row("cpu_op", "aten::mm", 1, 4, shapes, 100, 1),
        row("cpu_op", "aten::add", 8, 4, wrong, 100, 1),
    ]
    calls = [call("cudaLaunchKernel", 2, 1, 1), call("cudaLaunchKernel", 9, 1, 2)]
    graph = read_any(put(tmp_path, *calls, *operators, kernel("gemm", 4, 1, 1), kernel("add", 11, 1, 2))).trace.graph
    by_name = dict(zip(graph.names, graph.inputs, strict=True))
    assert by_name["gemm"] == "aten::mm(c10::BFloat16 64x8, c10::BFloat16 8x4)"
    assert by_name["add"] == by_name["cudaLaunchKernel"] == ""


def backward(name: str, *more: Row) -> list[Row]:
    """Thread 1 calls at 0-2 and 20-22, thread 2 at 5-7 and 12-14 within an operator of that name."""
    calls = [
        call("cudaLaunchKernel", 0, 2, 1),
        call("cudaGetDevice", 5, 2, 2, 2),
        call("cudaGetDevice", 12, 2, 3, 2),
        call("last", 20, 2, 4),
    ]
    return [*calls, *more, row("cpu_op", name, 4, 11, {}, 100, 2), kernel("gemm", 2, 1, 1)]


def test_who_calls_the_backward_pass_waits_for_the_thread_of_autograd(tmp_path: Path) -> None:
    """The gap at 2-20 is 3 us before the other thread begins, and 6 behind its end; were that thread's gap at 7-12 none, all would end 5 us
    earlier. Without the engine's name, or with a call of the other thread across an end of the gap, nothing waits."""
    name = "autograd::engine::evaluate_function: AddBackward0"
    found = read_any(put(tmp_path, *backward(name)))
    assert [one for one in told(found) if one[1] == "gap"] == [
        ("gap", "gap", 2, 5),
        ("gap", "gap", 14, 20),
        (f"gap in {name}", "gap", 7, 12),
    ]
    assert found.remarks == ("1 gap is a wait of a thread for that of autograd",)
    graph = found.trace.graph
    less = np.where(np.array(graph.names) == f"gap in {name}", 0, graph.durations)
    assert (replay(graph).span, replay(replace(graph, durations=less)).span) == (22_000, 17_000)
    assert read_any(put(tmp_path, *backward("aten::add"))).remarks == ()
    assert read_any(put(tmp_path, *backward(name, call("cudaGetDevice", 1, 3, 5, 2)))).remarks == ()


def test_work_that_begins_within_its_launch_cuts_the_call(tmp_path: Path) -> None:
    """A copy from memory that is not pinned, at 2-8 within its call at 0-10: the call waits for it, and ends 2 us after it."""
    rows = [call("cudaMemcpyAsync", 0, 10, 1), kernel("Memcpy HtoD (Pageable -> Device)", 2, 6, 1, cat="gpu_memcpy")]
    found = read_any(put(tmp_path, *rows))
    assert [one[1:] for one in told(found)] == [("host", 0, 2), ("wait", 8, 10), ("copy", 2, 8)]


def test_a_copy_that_goes_on_behind_its_call_is_waited_for_until_then(tmp_path: Path) -> None:
    """A copy at 2-103 of a call at 0-100 and a call at 101-104: the copy is 98 us until the call ends and 3 us behind it. At half the time
    the first call ends at 2 + 49, and all 49 us earlier. The same copy of pinned memory is waited for by nothing."""

    def rows(memory: str) -> list[Row]:
        copy = kernel(f"Memcpy HtoD ({memory} -> Device)", 2, 101, 1, cat="gpu_memcpy")
        return [call("cudaMemcpyAsync", 0, 100, 1), call("cudaGetDevice", 101, 3, 2), copy]

    found = read_any(put(tmp_path, *rows("Pageable")))
    assert [one[1:] for one in told(found)] == [
        ("host", 0, 2),
        ("wait", 100, 100),
        ("gap", 100, 101),
        ("host", 101, 104),
        ("copy", 2, 100),
        ("copy", 100, 103),
    ]
    assert found.remarks == ("1 copy of memory that is not pinned is two operations, the first until the call returns that waits for it",)
    assert replay(_copies_at_half(found)).span == 55_000
    pinned = read_any(put(tmp_path, *rows("Pinned")))
    assert (replay(pinned.trace.graph).span, replay(_copies_at_half(pinned)).span) == (104_000, 104_000)


def _copies_at_half(found: Imported) -> Graph:
    graph = found.trace.graph
    copied = np.array(["Pageable" in name or "Pinned" in name for name in graph.names])
    return replace(graph, durations=np.where(copied, graph.durations // 2, graph.durations))


def test_a_stream_waits_for_an_event_of_another(tmp_path: Path) -> None:
    """Both streams' work is launched early; that of stream 20 waits for the first of stream 7 alone, as the event is recorded before the
    second is launched."""
    waited = {"cuda_sync_kind": "Stream Wait Event", "stream": 20, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 2}
    waited |= {"correlation": 4, "device": 0}
    rows = [
        call("cudaLaunchKernel", 0, 1, 1),
        call("cudaEventRecord", 1, 1, 2),
        call("cudaLaunchKernel", 2, 1, 3),
        call("cudaStreamWaitEvent", 3, 1, 4),
        call("cudaLaunchKernel", 4, 1, 5),
        kernel("first", 1, 19, 1),
        kernel("second", 20, 30, 3),
        kernel("other", 20, 5, 5, stream=20),
        row("cuda_sync", "Stream Wait Event", 3, 1, waited, 0, 20),
    ]
    found = read_any(put(tmp_path, *rows))
    assert edges(found, "wait") == {("first", "other")}
    assert found.trace.span == replay(found.trace.graph).span == 50_000
    assert edges(read_any(put(tmp_path, *rows[:-1])), "wait") == {("first", "other")}  # the last that was launched had not ended
    late = [*rows[:-2], kernel("other", 30, 5, 5, stream=20)]
    assert edges(read_any(put(tmp_path, *late)), "wait") == set()  # nor does it begin where something ends
    untold = read_any(put(tmp_path, *rows[:6], rows[7]))
    assert edges(untold, "wait") == {("first", "other")}
    assert untold.remarks == ("1 wait across streams inferred from times, as the trace names no event",)


def test_what_contradicts_the_order_is_told(tmp_path: Path) -> None:
    """Two kernels of one stream that overlap by 5 us run one after the other, and end 5 us later than traced."""
    rows = [call("cudaLaunchKernel", 0, 1, 1), call("cudaLaunchKernel", 1, 1, 2), kernel("a", 1, 10, 1), kernel("b", 6, 10, 2)]
    found = read_any(put(tmp_path, *rows))
    assert (found.trace.span, replay(found.trace.graph).span) == (16_000, 21_000)
    assert "1 operation begins before the one before it on its stream ends, at most by 5.0 us on stream 7, at 0.006 ms" in found.remarks[0]


@pytest.mark.parametrize(
    ("value", "ns"),
    [
        (1_694_128_201_429_424, 1_694_128_201_429_424_000),
        ("1694128201429424.123", 1_694_128_201_429_424_123),
        ("0.0019", 1),
        ("-0.5", -500),
        ("5.25", 5_250),
    ],
)
def test_times_are_read_digit_by_digit(value: object, ns: int) -> None:
    assert nanoseconds(value, pytest.fail) == ns


@pytest.mark.data
@pytest.mark.parametrize("name", ["simple_add", "event_sync", "event_sync_multi_stream", "dlrm_rank2"])
def test_public_traces_run_again_as_long_as_they_took(name: str) -> None:
    """And hold what was counted: work by stream, spans and busy time of the device, collectives. Of a copy that goes on behind its call
    only the first part is launched. At half the time of the 39.08 ms of copies in simple_add, half of it is saved but for 4.5 us."""
    found = read_any(reference(f"traces/{name}.json.gz"))
    expected = json.loads(reference("traces/expected.json").read_text(encoding="utf-8"))[f"{name}.json.gz"]
    graph, again = found.trace.graph, replay(found.trace.graph)
    assert again.span == found.trace.span
    work = np.isin(graph.kinds, [KINDS.index(kind) for kind in ("kernel", "copy", "collective")])
    begins, ends = again.begins[work], again.ends[work]
    assert (int(ends.max()) - int(begins.min())) / 1000 == expected["device_span_us"]
    assert int(graph.durations[work].sum()) / 1000 == expected["device_sum_us"]
    launched = work & np.isin(np.arange(len(graph)), graph.after[graph.reasons == EDGES.index("launch")])
    streams = {resource: int((graph.places[launched] == place).sum()) for place, resource in enumerate(graph.resources)}
    assert {name.removeprefix("stream "): count for name, count in streams.items() if count} == expected["streams"]
    assert int((graph.kinds == KINDS.index("collective")).sum()) == expected["nccl_kernels"]
    if name == "simple_add":
        assert found.trace.span - replay(_copies_at_half(found)).span == 19_535_500


@pytest.mark.data
@pytest.mark.slow
def test_a_large_public_trace_runs_again_as_long_as_it_took() -> None:
    found = read_any(reference("traces/resnet_2080ti.json.gz"))
    assert len(found.trace.graph) > 60_000
    assert replay(found.trace.graph).span == found.trace.span
    assert found.trace.span - replay(_copies_at_half(found)).span == 314_880_000


@pytest.mark.data
def test_latencies_of_simple_add_are_those_that_others_found() -> None:
    """Of Holistic Trace Analysis: the launch of event 1051 takes 27 us from the call's begin to the kernel's, and the kernel 1067 is 7 us
    behind 1051."""
    path = reference("traces/simple_add.json.gz")
    expected = json.loads(reference("traces/expected.json").read_text(encoding="utf-8"))["simple_add.json.gz"]["critical_path"]
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    first, second = events[expected["launch_edge_us"]["kernel_event_index"]], events[expected["kernel_kernel_edge_us"]["to"]]
    graph = read_any(path).trace.graph
    places = {(name, int(took)): place for place, (name, took) in enumerate(zip(graph.names, graph.durations.tolist(), strict=True))}
    one, two = (places[event["name"], event["dur"] * 1000] for event in (first, second))
    again = replay(graph)
    edges = zip(graph.before.tolist(), graph.after.tolist(), graph.reasons.tolist(), strict=True)
    launch = next(before for before, after, why in edges if (after, EDGES[why]) == (one, "launch"))
    assert again.begins[one] - again.begins[launch] == expected["launch_edge_us"]["weight"] * 1000
    assert again.begins[two] - again.ends[one] == expected["kernel_kernel_edge_us"]["weight"] * 1000


def rank(folder: Path, number: int, took: float, name: str = "ncclKernel_AllReduce(x)") -> Path:
    rows = [call("cudaLaunchKernel", 0, 1, 1), kernel(name, 2, took, 1), call("cudaDeviceSynchronize", 1, took + 2, 2)]
    return put(folder, *rows, name=f"{number}.json", distributedInfo={"rank": number})


def test_of_several_ranks_collectives_take_what_the_fastest_takes(tmp_path: Path) -> None:
    """10 us on rank 0 and 4 on rank 3: 6 of the 10 are waiting for rank 3, and rank 0 runs as long as before."""
    paths = [rank(tmp_path, 0, 10), rank(tmp_path, 3, 4)]
    traces = [read_any(path) for path in paths]
    found = joined(paths, traces, None)
    assert ("ncclKernel_AllReduce(x)", "collective", 8, 12) in told(found)
    assert ("waiting for rank 3", "gap", 2, 8) in told(found)
    assert found.remarks[-1].endswith("the others wait mostly for rank 3 (use --rank 3)")
    assert replay(found.trace.graph).span == found.trace.span
    assert joined(paths, traces, 3).trace.source == "3.json, rank 3, of 2 ranks, which wait for it most"


def test_ranks_that_differ_are_refused(tmp_path: Path) -> None:
    paths = [rank(tmp_path, 0, 10), rank(tmp_path, 1, 10, "ncclKernel_AllGather(x)")]
    traces = [read_any(path) for path in paths]
    with pytest.raises(InstanceError, match="the ranks differ: collective 1 is 'ncclKernel_AllGather' here, 'ncclKernel_AllReduce' in"):
        joined(paths, traces, None)
    with pytest.raises(InstanceError, match=r"there is no rank 7: the traces are of ranks 0, 1 \(name one that is there"):
        joined(paths, traces, 7)
    with pytest.raises(InstanceError, match=r"there is no rank 7: this trace is of rank 1 \("):
        joined(paths[1:], traces[1:], 7)


LAUNCHED = [call("cudaLaunchKernel", 0, 2, 1), kernel("gemm", 3, 10, 1)]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"dur": -1}, "traceEvents[1].dur: '-1' microseconds are below 0"),
        ({"dur": None}, "traceEvents[1].dur: a number of microseconds is needed"),
        ({"ts": "soon"}, "traceEvents[1].ts: 'soon' is no number of microseconds"),
        ({"ts": 1 << 60}, "microseconds are more than a trace can have"),
        ({"args": {"correlation": "x", "stream": 7}}, "traceEvents[1].args.correlation: 'x' is no whole number"),
        ({"args": {"correlation": 1, "stream": "x"}}, "traceEvents[1].args.stream: 'x' is no number of a stream"),
        ({"cat": "cpu_op"}, "no kernel, copy or fill of a device is in this trace"),
    ],
)
def test_every_fault_is_told_with_its_event(tmp_path: Path, change: Row, told: str) -> None:
    with pytest.raises(InstanceError) as error:
        read_any(put(tmp_path, LAUNCHED[0], {**LAUNCHED[1], **change}))
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (json.dumps({"traceEvents": LAUNCHED})[:-20], "the text ends too early: its last bracket is missing"),
        ('{"traceEvents": [1]}', "traceEvents[0]: a mapping is needed"),
        ('{"traceEvents": {}}', "traceEvents: a list is needed"),
        ('{"traceEvents": [], "schemaVersion": 9}', "schemaVersion: '9' is no version that is known"),
        ('{"traceEvents": [{"ts": 1 2}]}', "this is not JSON"),
        ('{"hello": 1}', "this is neither a trace nor a network that is known"),
        (
            "# A heading\n\nwith text behind it",
            "this is neither a trace nor a network that is known (name Kineto JSON (traceEvents), Chakra (.et, or",
        ),
        ("\x03\x48\x01\x20 ~", "this is neither a trace nor a network that is known"),
        ("[" * 100_000 + "]" * 100_000, "this is nested too deeply"),
    ],
)
def test_texts_that_are_no_trace_are_told(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(InstanceError) as error:
        read_any(tmp_path / "x.json")
    assert told in str(error.value)


def steps(*marks: tuple[int, float, float]) -> list[Row]:
    """Two steps of a thread, of which the second launches while the first one's work still runs."""
    launches = [call("cudaLaunchKernel", 0, 2, 1), call("cudaLaunchKernel", 10, 2, 2), call("cudaLaunchKernel", 14, 2, 3)]
    work = [kernel("early", 3, 9, 1), kernel("first", 12, 4, 2), kernel("second", 17, 5, 3), kernel("alone", 25, 1, -1)]
    return [*launches, *work, *(row("user_annotation", f"ProfilerStep#{one}", begin, took, {}, 100, 1) for one, begin, took in marks)]


def test_a_step_is_what_its_calls_launch_whenever_that_runs(tmp_path: Path) -> None:
    """Work of the step before, which runs into it, and work that nobody launched behind it are no part of it. It is marked at 9-17, its
    first launch is at 10, and the last of its work ends at 22."""
    path = put(tmp_path, *steps((7, 0, 9), (8, 9, 8), (8, 9.5, 4)))
    found = read_any(path, Window(step=8))
    assert [one for one in told(found) if one[1] == "kernel"] == [("first", "kernel", 3, 7), ("second", "kernel", 8, 13)]
    assert [one for one in told(found) if one[0] == "gap"] == [("gap", "gap", 0, 1), ("gap", "gap", 3, 5), ("gap", "gap", 7, 8)]
    assert (found.trace.source, found.trace.span) == ("x.json, step 8", 13_000)
    assert replay(found.trace.graph).span == 13_000
    assert found.remarks[0] == "the profiler marked 0.008 ms as the step; what it launched ends 0.005 ms later"
    assert not any("left out" in one for one in found.remarks)
    longer = read_any(put(tmp_path, *steps((8, 9, 20))), Window(step=8))
    assert (longer.trace.span, replay(longer.trace.graph).span) == (20_000, 20_000)
    assert not any("the profiler marked" in one for one in longer.remarks)
    late = read_any(path, Window(begin=3_000, end=26_000))
    assert [one[0] for one in told(late) if one[1] == "kernel"] == ["first", "second", "alone"]
    assert late.remarks[0] == "1 operation that begins in the window and was launched before it: left out"
    assert read_any(path, Window(end=10_000)).trace.span == 12_000


@pytest.mark.data
@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        (Window(step=5), "there is no step 5 that the profiler marked (ProfilerStep#5; those of this trace are 7 to 8)"),
        (Window(begin=30_000), "nothing of a device is launched in this window (the trace lasts 0.026 ms)"),
        (Window(step=8), "nothing of a device is launched in step 8"),
    ],
)
def test_a_window_without_work_is_refused(window: Window, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InstanceError) as raised:
        read_any(put(tmp_path, *steps((7, 0, 9), (8, 3, 4))), window)
    assert sentence in str(raised.value)
    with pytest.raises(InstanceError, match="this trace has none: call its step\\(\\) after each iteration"):
        read_any(put(tmp_path, *steps(), name="unmarked.json"), Window(step=5))
    with pytest.raises(InstanceError, match="Chakra in JSON has no steps and no times to cut at"):
        read_any(reference("traces/chakra_small.json"), window)


# Clocks that differ: work before its launch is moved there and told, whatever the shift; and files with all events twice.


def test_work_before_its_launch_is_moved_there(tmp_path: Path) -> None:
    """A launch at 5-9 and one within it at 5-8, whose kernels are at 3-6 and 4-7: 2 and 1 us early. Both begin at 5 then, the
    second behind the first on its stream, at 8."""
    rows = [call("outer", 5, 4, 1), call("inner", 5, 3, 2), kernel("a", 3, 3, 1), kernel("b", 4, 3, 2)]
    found = read_any(put(tmp_path, *rows))
    assert [(name, begin, end) for name, kind, begin, end in told(found) if kind == "kernel"] == [("a", 0, 3), ("b", 3, 6)]
    assert found.remarks[-1] == "2 operations begin up to 2.0 us before the launch (the clocks differ): moved there"
    alone = read_any(put(tmp_path, *rows[:3]))
    assert alone.remarks == ("1 operation begins 2.0 us before the launch (the clocks differ): moved there",)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(-9, 9), st.sampled_from([7, 7, 20])), min_size=1, max_size=8))
def test_no_shift_of_device_times_ends_in_an_error(launches: list[tuple[int, int, int, int]]) -> None:
    """Calls that lie within one another or behind one another, each with work before, in or behind it, and a thread that waits for all."""
    rows, begin = list[Row](), 0
    for number, (later, took, shift, stream) in enumerate(launches):
        begin += later
        rows += [call("launch", begin, took, number), kernel("work", begin + shift, 1 + took, number, stream)]
        rows.append(call("cudaDeviceSynchronize", begin + took, took, 100 + number))
    found = imported_kineto(Path("x.json"), {"traceEvents": rows})
    early = [-shift for _, _, shift, _ in launches if shift < 0]
    moved = [one for one in found.remarks if "before the launch" in one]
    assert len(moved) == bool(early)
    assert all(one.startswith(f"{len(early)} operation") and f" {max(early)}.0 us" in one for one in moved)
    assert replay(found.trace.graph).span > 0


def test_a_file_with_all_events_twice_is_refused(tmp_path: Path) -> None:
    rows = [call("cudaLaunchKernel", 0, 1, 1), kernel("a", 1, 10, 1)]
    with pytest.raises(InstanceError, match="each of its events is in it twice"):
        read_any(put(tmp_path, *rows, *rows))
    assert read_any(put(tmp_path, *rows, rows[1])).remarks  # work alone: told as what overlaps


# Host traces of PyTorch: operators that call no other, in their order, with what they read.

TENSOR = [5, 9, 0, 4, 4, "cuda:0"]


def node(number: int, caller: int, reads: list[Any] | None = None, writes: list[Any] | None = None) -> dict[str, Any]:
    attrs = [{"name": "tid", "type": "uint64", "value": 1}]
    tensors = {"inputs": {"values": reads or []}, "outputs": {"values": writes or []}}
    return {"id": number, "name": f"op{number}", "ctrl_deps": caller, "attrs": attrs, **tensors}


def host_put(folder: Path, nodes: list[dict[str, Any]], schema: str = "1.1.0-chakra.0.0.4") -> Path:
    (folder / "et.json").write_text(json.dumps({"schema": schema, "nodes": nodes}), encoding="utf-8")
    return folder / "et.json"


def test_a_reader_of_a_tensor_waits_for_who_wrote_it(tmp_path: Path) -> None:
    """1 is the process, 2 calls 3 and 4; 3 writes storage 9, 4 and 5 read it, 4 within a list."""
    nodes = [node(1, 1), node(2, 1), node(3, 2, [], [TENSOR]), node(4, 2, [[TENSOR]]), node(5, 1, [TENSOR, "text", 3])]
    graph = read_any(host_put(tmp_path, nodes)).trace.graph
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
        read_any(host_put(tmp_path, nodes, schema))
    assert told in str(error.value)
