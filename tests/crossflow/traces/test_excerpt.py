"""Some operations of a graph: each waits for the last kept one of each stream that it waited for."""

from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.traces.graph import EDGES, excerpt, replay
from tests.crossflow.traces.test_transforms import step


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
