"""Graphs in layers: every arc leads down, every node is there once, and crossings are few where none is needed."""

from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from crossopt.reports.drawing.graph import Graph, drawn, layers_of, ordered
from crossopt.reports.drawing.svg import Titles

TITLES = Titles("graph", "A graph", "Its nodes.")


def random_arcs(seed: int, count: int) -> list[tuple[int, int]]:
    random = np.random.default_rng(seed)
    pairs = {(int(one), int(other)) for one, other in random.integers(count, size=(2 * count, 2)) if one < other}
    return sorted(pairs)


def graph(arcs: list[tuple[int, int]], count: int) -> Graph:
    return Graph(tuple(arcs), tuple(node % 3 for node in range(count)), tuple(str(node % 3) for node in range(count)), (False,) * count)


@pytest.mark.parametrize("seed", range(8))
def test_every_arc_leads_down(seed: int) -> None:
    arcs = random_arcs(seed, 30)
    layer = layers_of(30, arcs)
    assert all(layer[start] < layer[end] for start, end in arcs)
    assert min(layer) >= 0


@pytest.mark.parametrize("seed", range(8))
def test_every_node_stands_in_its_layer_once(seed: int) -> None:
    layer = layers_of(30, random_arcs(seed, 30))
    rows = ordered(layer, random_arcs(seed, 30))
    assert sorted(node for row in rows for node in row) == list(range(30))
    assert all(layer[node] == depth for depth, row in enumerate(rows) for node in row)


def test_there_are_as_many_layers_as_nodes_on_the_longest_path() -> None:
    assert layers_of(4, [(0, 1), (1, 2), (0, 2), (3, 2)]) == [0, 1, 2, 1]


def test_two_chains_do_not_cross() -> None:
    arcs = [(0, 3), (1, 2), (2, 4), (3, 5)]
    rows = ordered(layers_of(6, arcs), arcs)
    chain = {0: 0, 3: 0, 5: 0, 1: 1, 2: 1, 4: 1}
    sides = [[chain[node] for node in row] for row in rows]
    assert all(one == other for one, other in pairwise(sides))


def test_a_circle_is_refused() -> None:
    with pytest.raises(ValueError, match="circle"):
        layers_of(3, [(0, 1), (1, 2), (2, 1)])


@pytest.mark.parametrize("count", [1, 2, 40, 150])
def test_marks_stay_in_the_picture_and_apart(count: int) -> None:
    chain = [(node, node + 1) for node in range(count - 1)]
    picture = ElementTree.fromstring(drawn(TITLES, graph(chain, count)))
    _, _, width, height = map(float, (picture.get("viewBox") or "").split())
    boxes = [tuple(float(box.get(key) or 0.0) for key in ("x", "y", "width", "height")) for box in picture.iter("rect")]
    assert len(boxes) == count
    assert all(x >= 0.0 and y >= 0.0 and x + wide <= width and y + tall <= height for x, y, wide, tall in boxes)
    assert len({(x, y) for x, y, _, _ in boxes}) == count
    assert height < 3.0 * width


def test_the_same_graph_gives_the_same_bytes() -> None:
    assert drawn(TITLES, graph(random_arcs(3, 60), 60)) == drawn(TITLES, graph(random_arcs(3, 60), 60))
