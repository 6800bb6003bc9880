"""Graphs of traces: excerpts, replay against the longest path of networkx, operations that take turns, and changes of a trace."""

from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.traces import (
    EDGES,
    KINDS,
    Effect,
    Graph,
    Rescale,
    amp,
    bandwidth,
    changed,
    compress,
    cpu,
    critical_path,
    cuda_graph,
    excerpt,
    fuse,
    graph_of,
    less_latency,
    order_of,
    overlap,
    recompute,
    remove,
    replay,
    scale,
    turns_of,
    unwait,
)

# Graphs of traces run again: by hand, against the longest path of networkx, and never later for less.


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
    with pytest.raises(ValueError, match="operations depend on each other in a cycle"):
        order_of(graph)


# Changes of a trace: each by hand, and whatever may be chosen of several against bounds while some are open.


def step() -> Graph:
    """A thread launches three kernels and an all-reduce that waits for all, as it is launched behind them on another stream.

    launches end at 2, 5, 8, 11; gemm 2-12, add 12-15, grad 15-21; all-reduce after grad, 21-41; the thread waits, 41-42."""
    operations = [
        ("launch", "host", "thread", 2),
        ("python", "gap", "thread", 1),
        ("launch", "host", "thread", 2),
        ("python", "gap", "thread", 1),
        ("launch", "host", "thread", 2),
        ("python", "gap", "thread", 1),
        ("launch", "host", "thread", 2),
        ("synchronize", "wait", "thread", 1),
        ("gemm", "kernel", "stream 7", 10),
        ("add", "kernel", "stream 7", 3),
        ("grad", "kernel", "stream 7", 6),
        ("all-reduce", "collective", "stream 9", 20),
    ]
    edges = [(place, place + 1, "thread") for place in range(7)]
    edges += [(0, 8, "launch"), (2, 9, "launch"), (4, 10, "launch"), (6, 11, "launch")]
    edges += [(8, 9, "stream"), (9, 10, "stream"), (10, 11, "wait"), (11, 7, "wait")]
    return graph_of(operations, edges, moved=[0] * 11 + [1000])


def span(*effects: Effect) -> int:
    return replay(changed(step(), effects)).span


@pytest.mark.parametrize(
    ("effect", "least"),
    [
        (scale([8], Fraction(1, 3)), 36),  # ceil(10 / 3) = 4: add 6-9, grad 9-15, all-reduce 15-35
        (amp([8], [9, 10]), 32),  # 4, 2 and 3: gemm 2-6, add 6-8, grad 8-11, all-reduce 11-31
        (fuse(step(), [8, 9], Fraction(1, 2)), 36),  # 5 and 2, no launch of add: gemm 2-7, add 7-9, grad 9-15
        (remove(step(), [9]), 39),
        (unwait(step(), [7]), 41),  # until the all-reduce ends
        (cpu(step(), Fraction(1, 2)), 41),  # the first launch takes 1
        (cuda_graph(step(), [8, 9, 10]), 42),
        (bandwidth([11], Fraction(3), 8), 34),  # 8 + 12 / 3
        (less_latency([11], Fraction(1, 2), 8), 38),
        (compress([11], Fraction(1, 4), 3), 30),  # 5 + 3
        (overlap(step(), [11], [9, 10]), 42),  # the last of both
        (overlap(step(), [11], [8]), 33),  # begins as gemm ends
        (recompute(step(), [8], [10]), 52),  # gemm runs again before grad
        (Effect(), 42),
    ],
)
def test_each_change_by_hand(effect: Effect, least: int) -> None:
    assert span(effect) == least


def test_launches_in_a_row_become_one_where_no_wait_and_no_launch_of_others_lies_between() -> None:
    """Of all four launches three go with the gaps between: the all-reduce is launched at 2; of the first two one."""
    graph = changed(step(), [cuda_graph(step(), [8, 9, 10, 11])])
    assert graph.durations.tolist()[:8] == [2, 0, 0, 0, 0, 0, 0, 1]
    assert changed(step(), [cuda_graph(step(), [8, 9, 11])]).durations.tolist()[:8] == [2, 0, 0, 1, 2, 1, 2, 1]


@pytest.mark.parametrize(
    ("kind", "name", "took", "stays"),
    [
        ("gap", "gap in aten::mm", 2_000_000, False),
        ("gap", "gap", 1_000_000, False),
        ("gap", "gap", 1_000_001, True),
        ("host", "cudaEventRecord", 5, False),
        ("host", "cudaMallocAsync", 5, True),
        ("host", "cudaFree", 5, True),
        ("wait", "cudaStreamSynchronize", 5, True),
        ("host", "cudaMemcpyAsync", 5, False),
        ("copy", "Memcpy HtoD (Pageable -> Device)", 5, True),
    ],
)
def test_a_graph_of_launches_holds_neither_waits_nor_memory_nor_data_loading(kind: str, name: str, took: int, *, stays: bool) -> None:
    """Two launches of 2 ns with something between: with it in the graph both go but for the first launch, else nothing does.

    A copy of pageable memory is launched by the call between, and so is no end of a row if the memory is pinned."""
    call = ("cudaMemcpyAsync", "host", "thread", took) if kind == "copy" else (name, kind, "thread", took)
    operations = [("launch", "host", "thread", 2), call, ("launch", "host", "thread", 2), ("a", "kernel", "s", 9), ("b", "kernel", "s", 9)]
    edges = [(0, 1, "thread"), (1, 2, "thread"), (0, 3, "launch"), (3, 4, "stream"), (2, 4, "launch")]
    copied = [(name if kind == "copy" else "Memcpy HtoD (Pinned -> Device)", "copy", "t", 7)] if "cpy" in call[0] else []
    graph = graph_of([*operations, *copied], edges + [(1, 5, "launch")] * len(copied))
    effect = cuda_graph(graph, [3, 4, 5])
    assert changed(graph, [effect]).durations.tolist()[:3] == ([2, took, 2] if stays else [2, 0, 0])


def test_a_copy_whose_call_goes_on_ends_a_graph_of_launches() -> None:
    """cudaMemcpy in two parts, as its copy begins within it: neither is taken into a graph, with kernels launched on both sides."""
    thread = [("launch", 2), ("cudaMemcpy", 5), ("cudaMemcpy", 40), ("launch", 2), ("launch", 2)]
    operations = [(name, "host", "thread", took) for name, took in thread]
    operations += [("a", "kernel", "s", 9), ("Memcpy DtoH", "copy", "s", 7), ("b", "kernel", "s", 9), ("c", "kernel", "s", 9)]
    edges = [(place, place + 1, "thread") for place in range(4)] + [(0, 5, "launch"), (1, 6, "launch"), (3, 7, "launch"), (4, 8, "launch")]
    graph = graph_of(operations, edges)
    assert changed(graph, [cuda_graph(graph, [5, 6, 7, 8])]).durations.tolist()[:5] == [2, 5, 40, 2, 0]


def summed() -> Graph:
    """Four gradients of 100 in a row; an all-reduce of 200 waits for the second, an update of 50 for all. Launched before: 0-1."""
    operations = [("launch", "host", "thread", 1), *((f"grad{place}", "kernel", "stream 7", 100) for place in range(4))]
    operations += [("all-reduce", "collective", "stream 9", 200), ("update", "kernel", "stream 7", 50)]
    edges = [(0, place, "launch") for place in range(1, 7)] + [(1, 2, "stream"), (2, 3, "stream"), (3, 4, "stream"), (4, 6, "stream")]
    return graph_of(operations, [*edges, (2, 5, "wait"), (5, 6, "wait")])


def test_what_waits_for_a_part_waits_for_the_whole_fused_kernel() -> None:
    """1 + 400 + 200 + 50, where the all-reduce begins as the whole ends; as traced it is hidden. At nine tenths 611. An all-reduce
    that overlap lets wait for the first gradient waits for the whole as well, whichever is said first, and for none of the last two."""
    graph = summed()
    whole, tenth = (fuse(graph, [1, 2, 3, 4], factor) for factor in (Fraction(1), Fraction(9, 10)))
    freed = overlap(graph, [5], [1])
    assert freed.added == ((1, 5),)
    assert [replay(changed(graph, some)).span for some in ([], [whole], [tenth], [freed])] == [451, 651, 611, 451]
    assert [replay(changed(graph, both)).span for both in ([freed, tenth], [tenth, freed])] == [611, 611]
    assert replay(changed(graph, [fuse(graph, [3, 4], Fraction(1))])).span == 451


def test_nothing_is_fused_across_work_that_needs_its_first_part() -> None:
    """An exchange of what the first gives, which the second waits for; a thread that waits for the first before it launches the second."""
    a, b, launch = ("a", "kernel", "s", 100), ("b", "kernel", "s", 100), ("launch", "host", "thread", 1)
    for between, reason in ((("reduce", "collective", "t", 200), "wait"), (("synchronize", "wait", "thread", 1), "launch")):
        graph = graph_of([launch, a, between, b], [(0, 1, "launch"), (1, 3, "stream"), (1, 2, "wait"), (2, 3, reason)])
        assert not fuse(graph, [1, 3], Fraction(1, 2)).touches


def test_a_fused_kernel_begins_when_all_is_there_that_its_parts_wait_for() -> None:
    """An exchange, 1-201, then half of 200; the first part did not wait for it. A gap of the device between the parts goes."""
    work = [("launch", "host", "thread", 1), ("reduce", "collective", "t", 200), ("a", "kernel", "s", 100), ("b", "kernel", "s", 100)]
    edges = [(0, 1, "launch"), (0, 2, "launch"), (2, 3, "stream"), (1, 3, "wait"), (2, 4, "stream"), (4, 3, "stream")]
    graph = graph_of([*work, ("gap", "gap", "s", 150)], edges)
    assert replay(graph).span == 351
    after = replay(changed(graph, [fuse(graph, [2, 3], Fraction(1, 2))]))
    assert (int(after.begins[2]), after.span) == (201, 301)


def test_a_thread_that_does_not_wait_launches_ahead() -> None:
    """Twice a launch of 10, a kernel of 100, a wait that takes 1 behind it, and 50 of the thread: 2 x 161. Without the waits the second is
    launched at 70, and runs from 110 to 210. A wait that takes no time leaves its thread waiting: 2 x 160."""
    one = [("launch", "host", "thread", 10), ("k", "kernel", "s", 100), ("synchronize", "wait", "thread", 1), ("gap", "gap", "thread", 50)]
    edges = [(first + before, first + after, why) for first in (0, 4) for before, after, why in _OF_ONE]
    graph = graph_of(one * 2, [*edges, (3, 4, "thread"), (1, 5, "stream")])
    effects = ([], [unwait(graph, [2, 6])], [remove(graph, [2, 6])])
    assert [replay(changed(graph, some)).span for some in effects] == [322, 210, 320]


_OF_ONE = ((0, 1, "launch"), (1, 2, "wait"), (0, 2, "thread"), (2, 3, "thread"))


def test_gaps_before_work_on_streams_belong_to_its_launch() -> None:
    """A launch of add that arrives through a gap of 4 ns, 5-9: with add fused or removed neither is left; threads alone work faster."""
    whole = step()
    operations = [
        (name, KINDS[kind], whole.resources[place], took)
        for name, kind, place, took in zip(whole.names, whole.kinds, whole.places, whole.durations.tolist(), strict=True)
    ]
    edges = [(int(one), int(two), EDGES[why]) for one, two, why in zip(whole.before, whole.after, whole.reasons, strict=True)]
    edges = [edge for edge in edges if edge != (2, 9, "launch")] + [(2, 12, "launch"), (12, 9, "stream")]
    graph = graph_of([*operations, ("launch latency", "gap", "stream 7", 4)], edges)
    for effect in (fuse(graph, [8, 9], Fraction(1)), remove(graph, [9])):
        after = changed(graph, [effect])
        assert [int(after.durations[place]) for place in (2, 12)] == [0, 0]
    fused = changed(graph, [fuse(graph, [8, 9], Fraction(1))])
    held = set(zip(fused.before.tolist(), fused.after.tolist(), strict=True))
    assert held == {edge[:2] for edge in edges if edge != (2, 12, "launch")} | {(12, 8)}
    assert int(changed(graph, [cpu(graph, Fraction(1, 2))]).durations[12]) == 4
    assert changed(graph, [cuda_graph(graph, [8, 9])]).durations.tolist()[:4] == [2, 0, 0, 1]


def test_only_collectives_behind_gradients_are_freed_and_keep_launch_and_stream_order() -> None:
    """Launched at 2 and 32; embed 2-5, the all-to-all behind it 5-15; grad 15-21, more 21-41, a copy behind the all-to-all 41-44, then the
    all-reduce, 44-64. Freed it waits for grad (21), its launch (32) and the all-to-all (15), neither for more nor for the copy: 32-52."""
    operations = [
        ("launch", "host", "thread", 2),
        ("launch", "host", "thread", 30),
        ("embed", "kernel", "stream 7", 3),
        ("all-to-all", "collective", "stream 9", 10),
        ("grad", "kernel", "stream 7", 6),
        ("more", "kernel", "stream 7", 20),
        ("copy", "copy", "stream 9", 3),
        ("all-reduce", "collective", "stream 9", 20),
    ]
    edges = [(0, 1, "thread"), (0, 2, "launch"), (0, 3, "launch"), (2, 3, "wait"), (3, 4, "wait"), (4, 5, "stream"), (1, 7, "launch")]
    edges += [(0, 6, "launch")]
    graph = graph_of(operations, [*edges, (2, 4, "stream"), (5, 6, "wait"), (3, 6, "stream"), (6, 7, "stream")])
    assert replay(graph).begins.tolist()[3:] == [5, 15, 21, 41, 44]
    effect = overlap(graph, [3, 7], [4])
    freed = replay(changed(graph, [effect]))
    assert freed.begins.tolist()[3:] == [5, 15, 21, 41, 32]
    assert set(effect.added) == {(3, 7), (4, 7)}
    assert not overlap(graph, [3], [4]).touches
    late = replace(graph, durations=np.where(np.arange(8) == 3, 100, graph.durations))
    assert replay(changed(late, [effect])).begins[7] == 111  # grad, 105-111, is later than the all-to-all, which ends at 105


def test_changes_act_one_after_another_and_copies_follow_their_originals() -> None:
    """ceil(ceil(10 / 3) / 2) = 2; both runs of gemm take that."""
    third, half = scale([8], Fraction(1, 3)), scale([8], Fraction(1, 2))
    graph = changed(step(), [third, recompute(step(), [8], [10]), half])
    assert [int(graph.durations[place]) for place, name in enumerate(graph.names) if name == "gemm"] == [2, 2]
    assert Rescale(Fraction(1, 3))(10) == 4
    assert [third.shortens, compress([11], Fraction(1), 1).shortens, recompute(step(), [8], [10]).shortens] == [True, False, False]


def test_identity_and_endless_bandwidth() -> None:
    """Of endless bandwidth nothing but the latency is left."""
    assert span(scale(range(12), Fraction(1))) == 42
    assert span(bandwidth([11], Fraction(10**6), 0)) == 23
    assert np.array_equal(changed(step(), []).durations, step().durations)


# Some operations of a graph: each waits for the last kept one of each stream that it waited for.


def test_by_hand() -> None:
    """The first and the third of four launches, one behind the other, take half of 8 ns; gemm and add the 10 and 3 that they took; the
    all-reduce waited for add, through grad, and for the fourth launch, before which the third is left: 2-12, 12-15, 15-35."""
    graph = excerpt(step(), [((0, 2, 4, 6), 2), ((8,), 1), ((9,), 1), ((11,), 1)])
    place = {name: number for number, name in enumerate(graph.names)}
    edges = {(int(one), int(other)): EDGES[why] for one, other, why in zip(graph.before, graph.after, graph.reasons, strict=True)}
    assert edges[place["gemm"], place["add"]] == "stream"
    assert edges[place["add"], place["all-reduce"]] == edges[place["launch"], place["all-reduce"]] == "data"
    assert [took for took, name in zip(graph.durations.tolist(), graph.names, strict=True) if name == "launch"] == [2, 2]
    assert (len(graph), replay(graph).span) == (5, 35)


@given(st.sets(st.integers(0, 11)))
def test_less_of_a_graph_ends_no_later_and_all_of_it_as_it_did(kept: set[int]) -> None:
    whole = replay(step()).span
    assert replay(excerpt(step(), [((place,), 1) for place in kept])).span <= whole
    assert replay(excerpt(step(), [((place,), 1) for place in range(12)])).span == whole


def test_copies_share_the_time_of_all_alike_to_the_ns() -> None:
    """Three of the seven gaps and launches, of 2, 1, 2, 1, 2, 1 and 2 ns, take 3/7 of 11: 4."""
    graph = excerpt(step(), [(tuple(range(7)), 3)])
    assert graph.durations.tolist() == [1, 2, 1]


# Turns of operations without starts: by hand, and never two at once on one resource.


def with_turns(graph: Graph, turns: list[tuple[int, int]]) -> Graph:
    more = np.array(turns, np.int64).reshape(-1, 2)
    columns = {"before": more[:, 0], "after": more[:, 1], "reasons": np.zeros(len(more), np.int64)}
    return replace(graph, **{key: np.concatenate([getattr(graph, key), column]) for key, column in columns.items()})


def test_the_smallest_number_that_waits_for_nothing_is_next() -> None:
    """At 0 kernel 2 begins, as 1 waits for it; at 10 kernels 1 and 4 may, and 1 is less; 3 goes on beside, behind 5 or not."""
    operations = [("1", "kernel", "device", 5), ("2", "kernel", "device", 10), ("4", "kernel", "device", 1)]
    operations += [("3", "collective", "network", 30), ("5", "collective", "network", 7)]
    graph = graph_of(operations, [(1, 0, "data"), (1, 3, "data")])
    turns = list(turns_of(graph, [1, 2, 4, 3, 5]))
    assert sorted(turns) == [(0, 2), (1, 0), (4, 3)]
    assert replay(with_turns(graph, turns)).ends.tolist() == [15, 10, 16, 40, 7]
    assert sorted(turns_of(graph, [1, 2, 4, 3, 5], beside=[4])) == [(0, 2), (1, 0)]


@given(st.data())
def test_resources_do_one_thing_at_a_time_and_none_waits_for_nothing(data: st.DataObject) -> None:
    """No two overlap, no cycle is closed, and an operation begins as its resource is free or as the last that it waits for ends."""
    count = data.draw(st.integers(1, 9))
    rows = [("", "kernel", f"stream {data.draw(st.integers(0, 2))}", data.draw(st.integers(0, 4))) for _ in range(count)]
    ranks = data.draw(st.permutations(range(count)))
    pairs = data.draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=12))
    edges = [(ranks[one], ranks[other], "data") for one, other in pairs if one < other]
    graph = graph_of(rows, edges)
    turns = list(turns_of(graph, data.draw(st.permutations(range(count)))))
    again = replay(with_turns(graph, turns))
    assert len(turns) == count - len({row[2] for row in rows})
    busy = [(again.begins[one], again.ends[one], int(graph.places[one])) for one in range(count)]
    for number, (begin, end, place) in enumerate(busy):
        others = [row for other, row in enumerate(busy) if other != number and row[2] == place]
        assert all(other[1] <= begin or other[0] >= end for other in others)
        waits = [busy[one][1] for one, other, _ in edges if other == number] + [other[1] for other in others if other[1] <= begin]
        assert begin == max(waits, default=0)
