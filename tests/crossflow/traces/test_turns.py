"""Turns of operations without starts: by hand, and never two at once on one resource."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.traces.graph import Graph, graph_of, replay, turns_of


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
