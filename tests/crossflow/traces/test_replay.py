"""Graphs of traces run again: by hand, against the longest path of networkx, and never later for less."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.traces.graph import Graph, critical_path, graph_of, order_of, replay


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Edges from smaller to larger numbers, operations then shuffled."""
    count = draw(st.integers(0, 12))
    numbers = draw(st.permutations(range(count)))
    operations = [(f"op{place}", "kernel", "stream 7", draw(st.integers(0, 50))) for place in range(count)]
    pairs = [(one, two) for one in range(count) for two in range(one + 1, count)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    reasons = draw(st.lists(st.sampled_from(("stream", "data")), min_size=len(edges), max_size=len(edges)))
    return graph_of(operations, [(numbers[one], numbers[two], reason) for (one, two), reason in zip(edges, reasons, strict=True)])


def test_a_kernel_begins_when_it_is_launched_and_its_stream_is_free() -> None:
    """Launches at 0-2 and 2-4 us; kernels of 10 and 3 us on one stream end at 12 and 15; a thread that waits goes on at 15, to 16 us."""
    operations = [
        ("launch", "host", "thread 1", 2_000),
        ("launch", "host", "thread 1", 2_000),
        ("synchronize", "wait", "thread 1", 1_000),
        ("gemm", "kernel", "stream 7", 10_000),
        ("add", "kernel", "stream 7", 3_000),
    ]
    edges = [(0, 1, "thread"), (1, 2, "thread"), (0, 3, "launch"), (1, 4, "launch"), (3, 4, "stream"), (4, 2, "wait")]
    graph = graph_of(operations, edges)
    found = replay(graph)
    assert found.begins.tolist() == [0, 2_000, 15_000, 2_000, 12_000]
    assert found.span == 16_000
    assert critical_path(graph, found) == [0, 3, 4, 2]


@given(graphs())
def test_the_span_is_the_longest_path(graph: Graph) -> None:
    """Of networkx, over edges that take as long as the operation before them, and an edge to the end."""
    oracle = nx.DiGraph([(place, "end", {"weight": int(took)}) for place, took in enumerate(graph.durations)])
    oracle.add_weighted_edges_from(
        (int(one), int(two), int(graph.durations[one])) for one, two in zip(graph.before, graph.after, strict=True)
    )
    found = replay(graph)
    assert found.span == nx.dag_longest_path_length(oracle)
    path = critical_path(graph, found)
    assert found.span == int(graph.durations[path].sum())


@given(graphs(), st.data())
def test_less_work_and_fewer_edges_end_nothing_later(graph: Graph, data: st.DataObject) -> None:
    """What bounds of what-ifs rest on."""
    less = np.array([data.draw(st.integers(0, int(took))) for took in graph.durations], np.int64)
    kept = np.array([data.draw(st.booleans()) for _ in graph.before], bool)
    smaller = replace(graph, durations=less, before=graph.before[kept], after=graph.after[kept], reasons=graph.reasons[kept])
    assert (replay(smaller).ends <= replay(graph).ends).all()


def test_what_waits_for_itself_is_never_run() -> None:
    """0 -> 1 -> 2 -> 1: a file's reader names the cycle, 1 and 2; here there is no order."""
    operations = [(name, "host", "thread 1", 1) for name in "abcd"]
    graph = graph_of(operations, [(0, 1, "thread"), (1, 2, "thread"), (2, 1, "data"), (2, 3, "thread")])
    with pytest.raises(ValueError, match="operations wait for one another"):
        order_of(graph)
