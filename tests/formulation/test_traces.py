"""Many variants of a trace at once: each as it is alone, and bounds below every choice that they leave open."""

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.traces import Effect, Graph, Rescale, changed, order_of, replay
from crossopt.formulation.traces.whatif import OPEN, variants_of, without_implied
from tests.crossflow.test_traces import graphs


@st.composite
def effects(draw: st.DrawFn, graph: Graph) -> Effect:
    """Any times, edges less, copies between two operations, edges more along the order of the graph."""
    order, edges = order_of(graph), len(graph.before)
    some = st.lists(st.sampled_from(order), unique=True) if order else st.just([])
    part = st.fractions(0, 2, max_denominator=7)
    rescale = Rescale(draw(part), draw(st.integers(0, 20)), draw(part), draw(st.sampled_from((0, 0, 5))))
    dropped = frozenset(draw(st.lists(st.integers(0, edges - 1), unique=True))) if edges else frozenset()
    copies, added = list[int](), list[tuple[int, int]]()
    if len(order) > 1 and draw(st.booleans()):
        one, other = sorted(draw(st.lists(st.integers(0, len(order) - 1), min_size=2, max_size=2, unique=True)))
        added = [(order[one], order[other])]
        if draw(st.booleans()):
            copies, added = [draw(st.sampled_from(order))], [(order[one], -1), (-1, order[other])]
    return Effect(((tuple(draw(some)), rescale),), dropped, tuple(copies), tuple(added))


@given(st.data())
def test_variants_take_as_long_as_alone_and_bounds_are_below_what_they_leave_open(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    chosen = [data.draw(effects(graph)) for _ in range(data.draw(st.integers(1, 3)))]
    asked = variants_of(graph, chosen)
    states = np.array(list(product(range(3), repeat=len(chosen))), np.int64)
    spans = {tuple(state): int(span) for state, span in zip(states.tolist(), asked.spans(states), strict=True)}
    for state, span in spans.items():
        if OPEN not in state:
            after = changed(graph, [effect for effect, said in zip(chosen, state, strict=True) if said])
            assert span == replay(after).span
        else:
            place = state.index(OPEN)
            assert span <= min(spans[(*state[:place], said, *state[place + 1 :])] for said in (0, 1))


@given(st.data())
def test_an_open_change_that_only_shortens_is_as_good_as_one_that_is_in(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    places = data.draw(st.lists(st.integers(0, len(graph) - 1), unique=True)) if len(graph) else []
    effect = Effect(((tuple(places), Rescale(Fraction(1, 3))),), frozenset(range(len(graph.before) // 2)))
    assert effect.shortens
    least, one, _ = variants_of(graph, [effect]).spans(np.array([[2], [1], [0]]))
    assert least == one


def test_of_a_stream_the_last_operation_that_another_waits_for_is_enough() -> None:
    """0, 1 and 2 are of one stream; 3 waits for 0 and 1, and 4 for 1 and 3, neither of which implies the other."""
    edges = [(0, 1), (1, 2), (0, 3), (1, 3), (1, 4), (3, 4)]
    assert without_implied(edges, edges[:2], 5) == [(0, 1), (1, 2), (1, 3), (1, 4), (3, 4)]
    assert without_implied(edges, edges[:1], 5) == [(0, 1), (1, 2), (1, 3), (1, 4), (3, 4)]
    assert without_implied(edges, [], 5) == edges
