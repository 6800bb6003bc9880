"""Bounds on latency: below the best of all placements, and no weaker for looking beside the path."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits
from crossopt.solvers.placement.latency.paths import LARGEST, between, least_pieces, least_time, sharper, weighed, whole_of
from tests.every import every
from tests.instances.placement.graphs import graph
from tests.instances.placement.samples import latency_question, sample_at_random, tried
from tests.paths import reference
from tests.solvers.placement.asking import answered, silent


def bounds(asked: PlacementQuestion, paths: int = 9) -> list[tuple[float, float]]:
    """Of so many paths, plain and with what pieces take beside it."""
    whole, found = whole_of(asked), []
    for path in [*weighed(whole).values(), [0]][:paths]:
        beside = between(whole, path)
        pieces, size = least_pieces(whole, path, beside)
        sharp, _ = sharper(whole, beside, pieces, size, lambda: False)
        found.append((least_time(whole, path, pieces, size), least_time(whole, path, sharp, size)))
    return found


def test_a_chain_under_memory_is_bounded_by_its_optimum() -> None:
    """Two of three nodes fit an accelerator: 7 ms of work, and one output of 0.5 ms moved out and in."""
    asked = latency_question(graph([1, 2, 4], [(0, 1), (1, 2)], [0.5, 0.5, 0.5], np.array([8.0] * 3)), 2, memory=16.0)
    assert bounds(asked)[0] == (8.0, 8.0)
    assert tried(asked) == 8.0
    assert bounds(latency_question(asked.graph, 1, memory=16.0))[0] == (6.5 + 10.0, 16.5)


def test_a_graph_too_long_for_tables_has_its_critical_path_for_a_bound() -> None:
    nodes = LARGEST + 1
    long = graph([1.0] * nodes, [(row, row + 1) for row in range(nodes - 1)], [0.0] * nodes, np.array([8.0] * nodes))
    found = answered(latency_question(long, 1, memory=8.0 * nodes), "auto", Limits(seconds=20.0), silent)
    assert (found.value, found.bound) == (float(nodes), float(nodes))


def test_pieces_without_number_are_not_counted() -> None:
    nodes = 80
    long = graph([1.0] * nodes, [(row, row + 1) for row in range(nodes - 1)], [0.125] * nodes, np.array([8.0] * nodes))
    few, many = (bounds(latency_question(long, devices, memory=8.0), paths=1)[0][0] for devices in (63, 64))
    assert few == 63 * 1.0 + 17 * 10.0 + 62 * 0.25
    assert many == 80 * 1.0 + 79 * 0.25  # as if there were 80


def test_a_branch_beside_the_path_is_cut_or_held() -> None:
    """a -> (b, c) -> d: along a, b, d a piece that ends after b holds c, or hands out a's output for it."""
    diamond = graph([1, 5, 1, 1], [(0, 1), (0, 2), (1, 3), (2, 3)], [2.0, 0.25, 8.0, 1.0], np.array([8.0] * 4))
    asked = latency_question(diamond, 2, memory=24.0)
    plain, sharp = bounds(asked)[0]
    assert (plain, sharp) == (7.0 + 0.5, tried(asked))
    assert sharp > plain


def test_nodes_of_one_colour_are_in_one_piece() -> None:
    """The first and the last of a chain share a colour, and no memory holds all three: one of them or both are left to CPUs."""
    work = graph([1, 1, 1], [(0, 1), (1, 2)], [0.125] * 3, np.array([8.0] * 3), colour=[0, 1, 0])
    asked = latency_question(work, 2, memory=16.0)
    assert bounds(asked)[0][0] == tried(asked) == 10.0 + 1.25 + 10.0
    several = replace(asked, pieces=2)
    assert bounds(several)[0][0] <= tried(several) == 3.0 + 0.5


def test_a_node_of_the_colour_of_another_fills_the_same_memory() -> None:
    """A weight beside the path shares the colour of its first node: the three nodes no longer fit with it."""
    work = graph([1, 1, 1, 0], [(0, 1), (1, 2), (3, 2)], [0.125, 0.125, 0.125, 0], np.array([8.0, 8, 8, 8]), colour=[0, 1, 2, 0])
    asked = latency_question(work, 2, memory=24.0)
    assert bounds(asked)[0][1] == tried(asked) == 3.0 + 0.25


def test_several_pieces_of_an_accelerator_fill_one_memory() -> None:
    """Four nodes of 8 bytes in a chain, and room for two: the pieces could be four, but 8 ms or more are left to CPUs."""
    work = graph([0.5, 0.5, 0.5, 0.5], [(0, 1), (1, 2), (2, 3)], [0.125] * 4, np.array([8.0] * 4))
    asked = latency_question(work, 1, 4, memory=16.0)
    plain, _ = bounds(asked)[0]
    assert 8.0 < plain <= tried(asked) == 11.125


@every("seed", range(40))
def test_bounds_are_below_the_best_of_all_placements(seed: int) -> None:
    asked = sample_at_random(100 + seed, nodes=6 - seed % 3, places=1 + seed % 3)
    true = tried(asked)
    for plain, sharp in bounds(asked):
        assert plain <= sharp <= true


def test_bounds_are_often_the_best_of_all_placements_and_looking_beside_helps() -> None:
    asked = [sample_at_random(100 + seed, nodes=6 - seed % 3, places=1 + seed % 3) for seed in range(60)]
    both = [(max(plain for plain, _ in pairs), max(sharp for _, sharp in pairs)) for pairs in map(bounds, asked)]
    assert sum(sharp > plain for plain, sharp in both) >= 6
    assert sum(sharp >= tried(one) * (1.0 - 1e-9) for one, (_, sharp) in zip(asked, both, strict=True)) >= 20


@pytest.mark.data
@pytest.mark.parametrize(("name", "value"), [("gnmt", 225.647890625), ("resnet50", 1156.88128125)])
def test_published_graphs_are_proved(name: str, value: float) -> None:
    asked = read(reference(f"placement/latency/layer/{name}_inference.json"), ("problem=latency",))
    found = answered(asked, "auto", Limits(seconds=20.0), silent)
    assert (found.status, found.value) == ("OPTIMAL", value)


@pytest.mark.data
@pytest.mark.parametrize(("name", "least"), [("layer/inceptionv3", 1152.0), ("operator/bert_l-3", 404.0)])
def test_published_graphs_are_bounded_far_above_their_critical_path(name: str, least: float) -> None:
    """The critical path says 195 and 48 ms."""
    asked = read(reference(f"placement/latency/{name}_inference.json"), ("problem=latency",))
    assert max(sharp for _, sharp in bounds(asked, paths=1)) >= least
