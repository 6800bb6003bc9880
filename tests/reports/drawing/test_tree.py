"""Trees: every node once, below its parent and joined to it; of large ones the nodes near the root, and how many are left out."""

import re
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as some

from crossopt.reports.drawing.graph import MOST_NODES_OF_TREE, TreeNode, tree_svg
from crossopt.reports.render.html import Page, figure, heading, page
from crossopt.reports.render.style import alone
from tests.reports.look import faults_in_a_browser, looked_at

SMALL = (
    TreeNode(None, "all designs", "bound 4.81 s", "branched"),
    TreeNode(0, "tensor up to 4", "bound 4.85 s", "branched"),
    TreeNode(0, "tensor from 8", "bound 5.02 s", "cut off"),
    TreeNode(1, "pipeline 1", "no design", "infeasible"),
    TreeNode(1, "pipeline 2", "bound 4.89 s", "best design"),
)


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter("text")]


def heights(svg: str) -> dict[str, float]:
    return {node.text or "": float(node.get("y") or 0.0) for node in ElementTree.fromstring(svg).iter("text")}


def test_children_stand_below_their_parent_and_further_in() -> None:
    svg = tree_svg(SMALL, "Branch and bound", "Five nodes.")
    y = heights(svg)
    assert y["all designs"] < y["tensor up to 4"] < y["pipeline 1"] < y["pipeline 2"] < y["tensor from 8"]
    x = {node.text: float(node.get("x") or 0.0) for node in ElementTree.fromstring(svg).iter("text")}
    assert x["all designs"] < x["tensor up to 4"] == x["tensor from 8"] < x["pipeline 1"] == x["pipeline 2"]
    assert x["bound 4.81 s"] == x["no design"]


def test_every_child_is_joined_to_its_parent() -> None:
    lines = [node.get("points") or "" for node in ElementTree.fromstring(tree_svg(SMALL, "A tree", "Of five.")).iter("polyline")]
    assert len(lines) == 4
    marks = {(float(box.get("x") or 0.0), float(box.get("y") or 0.0)) for box in _boxes(SMALL)}
    for points in lines:
        (start, top), _, (end, bottom) = (tuple(map(float, point.split(","))) for point in points.split())
        assert (start - 8.0, top - 16.0) in marks
        assert (end, bottom - 8.0) in marks


def _boxes(nodes: tuple[TreeNode, ...]) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(tree_svg(nodes, "A tree", "Of some.")).iter("rect"))


def test_each_status_is_said_in_words_and_counted() -> None:
    found = texts(tree_svg(SMALL, "A tree", "Of five."))
    assert {"branched (2)", "cut off (1)", "infeasible (1)", "best design (1)"} <= set(found)
    assert found.count("branched") == 2


def test_of_a_large_tree_the_top_is_drawn_and_the_rest_is_counted() -> None:
    nodes = [TreeNode(None, "node 0", "", "branched")]
    nodes += [TreeNode((number - 1) // 2, f"node {number}", "", "cut off" if number > 500 else "branched") for number in range(1, 1001)]
    found = texts(tree_svg(nodes, "A large tree", "Of 1,001 nodes."))
    drawn = [text for text in found if re.fullmatch(r"node \d+", text)]
    left = sum(int(text.split()[0]) for text in found if " more node" in text)
    assert len(drawn) <= MOST_NODES_OF_TREE
    assert len(drawn) + left == 1001
    assert {f"node {number}" for number in range(31)} <= set(drawn)
    assert any(re.fullmatch(r"\d+ more nodes: \d+ cut off, \d+ branched", text) for text in found)


def test_a_node_with_too_many_children_shows_none_of_them() -> None:
    nodes = [
        TreeNode(None, "root", "", "branched"),
        *(TreeNode(0, f"child {number}", "", "cut off") for number in range(MOST_NODES_OF_TREE)),
    ]
    assert texts(tree_svg(nodes, "A wide tree", "Of many."))[-1] == f"{MOST_NODES_OF_TREE} more nodes: {MOST_NODES_OF_TREE} cut off"


def test_a_parent_comes_first_and_there_is_a_root() -> None:
    with pytest.raises(ValueError, match="at least one node"):
        tree_svg([], "A tree", "Of none.")
    with pytest.raises(ValueError, match="node 0 of the tree names 1 as its parent"):
        tree_svg([TreeNode(1, "a", "", "x"), TreeNode(None, "b", "", "x")], "A tree", "Of two.")


@given(some.lists(some.tuples(some.integers(0, 10**6), some.text(max_size=60), some.sampled_from("abc")), min_size=1, max_size=200))
def test_any_tree_can_be_drawn_and_loses_no_node(rows: list[tuple[int, str, str]]) -> None:
    nodes = [TreeNode(seed % place if place else None, f"n{place}", "detail", status) for place, (seed, _, status) in enumerate(rows)]
    found = texts(tree_svg(nodes, "A tree", "Of any shape."))
    left = sum(int(text.split()[0]) for text in found if " more node" in text)
    assert sum(bool(re.fullmatch(r"n\d+", text)) for text in found) + left == len(nodes)


def test_words_of_others_are_escaped() -> None:
    svg = tree_svg([TreeNode(None, "<script>", "&", '"')], "<b>", "</svg>")
    assert "<script" not in svg
    assert "<script>" in texts(svg)


def test_a_file_of_its_own_names_its_colours_and_nothing_from_outside() -> None:
    text = alone(tree_svg(SMALL, "Branch and bound", "Five nodes."))
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in text
    assert "url(" not in text
    kinds = {kind for node in root.iter() for kind in (node.get("class") or "").split()} - {"n"}
    assert all(f".{kind}{{" in text for kind in kinds)


def _of_width(nodes: list[TreeNode], name: str, width: float) -> str:
    return tree_svg(nodes, f"Tree {name}", "Nodes.", name, width)


@pytest.mark.browser
@pytest.mark.parametrize("width", [500, pytest.param(1200, marks=pytest.mark.slow)])
def test_nothing_overlaps_in_a_browser(tmp_path: Path, width: int) -> None:
    chain = [TreeNode(place - 1 if place else None, f"layer {place} of a rather deep tree", f"bound {place}", "cut off by the best design")
             for place in range(30)]  # fmt: skip
    wide = "a very long choice of many words that does not fit into its place"
    long = [TreeNode(None if place == 0 else 0, wide, "bound 1,234,567.890 s or more", f"{wide} {place}") for place in range(3)]
    trees = [partial(_of_width, nodes, name) for name, nodes in (("a", SMALL), ("b", chain), ("c", long))]
    text = page(Page("trees", (heading("Trees", "Of nodes."), *map(figure, trees)), {}))
    looked_at(text)
    assert faults_in_a_browser(text, tmp_path, width) == []


def test_labels_are_whole_where_smaller_steps_inwards_or_an_empty_column_make_room() -> None:
    label, deep = "not compute area 640 mm^2, compute power 220 W", 14
    nodes = [TreeNode(None, "all designs", "4.8607 s", "branched")]
    for depth in range(deep):
        nodes.append(TreeNode(2 * depth, f"{label} {depth}", "", "nothing below 4.89274 s"))
        nodes.append(TreeNode(2 * depth, f"{label} {depth}", "4.8607 s", "branched"))
    assert "…" not in tree_svg(nodes, "A tree", "Of deep branches.")
