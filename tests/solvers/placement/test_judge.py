"""The judge by hand: loads, transfers once a device, memory, colours, and both kinds of contiguity."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.solvers.placement.judge import judge, loads_of
from tests.instances.placement.graphs import graph, question

DIAMOND = graph(np.array([1.0, 2.0, 4.0, 8.0]), [(0, 1), (0, 2), (1, 3), (2, 3)], np.array([0.5, 0.25, 0.125, 9.0]), np.full(4, 10.0))


def test_a_device_pays_once_for_what_it_takes_in_and_once_for_what_it_hands_out() -> None:
    """Node 0 is read by two nodes of the second device: one transfer out, one in. The output of node 3 goes nowhere."""
    loads = loads_of(question(DIAMOND, 2), np.array([0, 1, 1, 1]))
    assert [(load.compute, load.transfer, load.total, load.memory) for load in loads] == [(1.0, 0.5, 1.5, 10.0), (14.0, 0.5, 14.5, 30.0)]


def test_a_cpu_pays_for_no_transfer_and_has_no_limit() -> None:
    loads = loads_of(question(DIAMOND, 1, cpus=1, memory=20.0), np.array([1, 0, 1, 0]))
    assert [(load.compute, load.transfer, load.memory) for load in loads] == [(10.0, 0.5 + 0.25 * 0 + 0.125, 20.0), (50.0, 0.0, 0.0)]


def test_overlapped_transfers_count_where_they_take_longer() -> None:
    asked = question(DIAMOND, 2, communication="overlapped")
    assert judge(asked, np.array([0, 1, 1, 1])).value == 14.0
    slow = replace(asked, graph=replace(DIAMOND, transfer=DIAMOND.transfer * 100.0))
    assert judge(slow, np.array([0, 1, 1, 1])).value == 50.0


@pytest.mark.parametrize(
    ("places", "contiguity", "word"),
    [
        ([0, 1, 0, 1], "stages", ""),
        ([0, 1, 1, 0], "stages", "circle"),
        ([0, 1, 1, 0], "convex", "leave it and come back"),
        ([0, 1, 1, 0], "no", ""),
    ],
)
def test_both_kinds_of_contiguity(places: list[int], contiguity: str, word: str) -> None:
    violations = judge(question(DIAMOND, 2, contiguity=contiguity), np.array(places)).violations  # type: ignore[arg-type]
    assert (word in " ".join(violations)) if word else not violations


def test_convex_devices_may_form_a_circle() -> None:
    """Edges a -> b and c -> d: {a, d} and {b, c} are each convex, and data flow both ways."""
    two = graph(np.ones(4), [(0, 1), (2, 3)], np.zeros(4))
    places = np.array([0, 1, 1, 0])
    assert judge(question(two, 2, contiguity="convex"), places).violations == ()
    assert judge(question(two, 2, contiguity="stages"), places).violations != ()


def test_memory_colours_and_support_are_held() -> None:
    coloured = replace(DIAMOND, colour=np.array([0, 1, 0, 2]), accelerator_time=np.array([1.0, np.inf, 4.0, 8.0]))
    words = " ".join(judge(question(coloured, 1, cpus=1, memory=15.0, contiguity="no"), np.array([0, 0, 1, 0])).violations)
    assert "node 1 on an accelerator that cannot run it" in words
    assert "30 bytes of 15" in words
    assert "nodes 0, 2 belong on one device" in words


def test_backward_nodes_follow_their_colour_and_orphans_have_a_twin() -> None:
    """Forward 0 -> 1, backward 3 -> 2 with an orphan 4 between them: its twin lies between 0 and 1."""
    training = graph(
        np.ones(5), [(0, 1), (1, 3), (3, 4), (4, 2)], np.zeros(5), backward=[False, False, True, True, True], colour=[0, 1, 0, 1, 2]
    )
    assert judge(question(training, 2), np.array([0, 1, 0, 1, 1])).violations == ()
    assert judge(question(training, 3), np.array([0, 1, 0, 1, 2])).violations == ()
    outside = graph(
        np.ones(5), [(0, 1), (1, 3), (3, 4), (4, 2)], np.zeros(5), backward=[False, False, True, True, True], colour=[0, 0, 0, 0, 2]
    )
    assert judge(question(outside, 2), np.array([0, 0, 0, 0, 1])).violations != ()


def test_a_placement_of_other_nodes_or_devices_is_refused() -> None:
    for places in ([0, 0, 0], [0, 0, 0, 2], [0, 0, 0, -1]):
        with pytest.raises(ValueError, match="names one of the 2 devices"):
            judge(question(DIAMOND, 2), np.array(places))
