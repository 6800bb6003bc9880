"""Copies of traces: what is hidden, what is kept to the last figure, and how near drawn ones are."""

import json
from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from crossopt.crossflow.traces import KINDS, Graph, anonymous, figures_of, graph_of, random_like, replay
from crossopt.instances.traces.graph_file import trace_in
from tests.solvers.traces.drawn import random_trace
from tests.trace_steps import training_step


def statistics(graph: Graph) -> Counter[tuple[str, str, str]]:
    """Operations, ns, bytes and FLOPs of each kind on each thread or stream."""
    found = Counter[tuple[str, str, str]]()
    columns = (graph.kinds.tolist(), graph.places.tolist(), graph.durations.tolist(), graph.bytes.tolist(), graph.flops.tolist())
    for kind, place, *figures in zip(*columns, strict=True):
        for name, figure in zip(("operations", "ns", "bytes", "flops"), (1, *figures), strict=True):
            found[KINDS[kind], graph.resources[place], name] += figure
    return found


def test_names_become_numbers_and_times_and_structure_stay() -> None:
    graph = replace(training_step(4), inputs=("aten::mm(float 64x8, float 8x4)",) * len(training_step(4)))
    hidden, key = anonymous(graph)
    assert set(hidden.names) <= key.keys()
    assert tuple(key[name] for name in hidden.names) == graph.names
    assert tuple(key[name] for name in hidden.resources) == graph.resources
    assert not any(hidden.inputs)
    assert all(np.array_equal(getattr(hidden, name), getattr(graph, name)) for name in ("durations", "before", "after", "bytes", "flops"))
    secret = {name for name in (*graph.names, *graph.resources) if not name.startswith(("thread", "stream"))}
    assert secret.isdisjoint(hidden.names), "no name is left"


def test_products_are_still_products_for_changes_of_precision() -> None:
    hidden, key = anonymous(training_step(2))
    assert {key[name] for name in hidden.names if "gemm" in name} == {name for name in training_step(2).names if "gemm" in name}


def test_a_group_and_a_gap_of_every_trace() -> None:
    rows = [("ncclAllReduce", "collective", "device 0 stream 20", 5), ("device gap", "gap", "device 0 stream 20", 3)]
    hidden, key = anonymous(graph_of(rows, [(0, 1, "stream")], groups=["tensor ranks of team 4", ""]))
    assert hidden.names == ("collective 1", "device gap")
    assert (hidden.groups, key["group 1"]) == (("group 1", ""), "tensor ranks of team 4")


@pytest.mark.parametrize("seed", range(5))
def test_a_drawn_trace_has_the_statistics_of_the_original_and_nearly_its_span(seed: int) -> None:
    graph = training_step(6)
    drawn = random_like(graph, seed)
    assert statistics(drawn.graph) == statistics(graph)
    assert not np.array_equal(drawn.graph.durations, graph.durations)
    for now, before, told in zip(figures_of(drawn.graph), figures_of(graph), (drawn.span, drawn.busy), strict=True):
        assert abs(now / before - 1.0) <= 0.05
        assert told == now / before - 1.0
    assert random_like(graph, seed).graph.names == drawn.graph.names, "the same seed draws the same trace"


@pytest.mark.parametrize("seed", range(12))
def test_any_graph_is_drawn_within_the_share_asked_for(seed: int) -> None:
    """As many phases as operations are the original."""
    graph = trace_in(json.dumps(random_trace(Random(seed), 9)), "drawn").graph
    assert random_like(graph, seed, 0.0).span == 0.0
    assert abs(random_like(graph, seed).span) <= 0.05
    assert statistics(random_like(graph, seed).graph) == statistics(graph)


def test_the_busy_time_is_the_union_of_all_streams() -> None:
    rows = [("a", "kernel", "s", 10), ("b", "copy", "t", 4), ("wait", "gap", "t", 9), ("c", "collective", "t", 5)]
    graph = graph_of(rows, [(1, 2, "stream"), (2, 3, "stream")])
    assert (replay(graph).span, figures_of(graph)) == (18, (18, 15))  # 0 to 10 on one, 13 to 18 on the other
    assert figures_of(graph_of([("call", "host", "x", 3)], [])) == (3, 0)
