"""Pictures: axes, bars, plots, timelines, trees, graphs and floorplans, in which words keep apart and figures stand where they belong."""

import re
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise
from math import log10, sqrt, ulp
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from crossopt.instances.codesign.space import device_at
from crossopt.reports.drawing.axes import Scale, Segment, Track, ends_of, round_steps, stairs, tenfold_steps, timeline
from crossopt.reports.drawing.bars import Part, Row, Units, bars, columns, stacked
from crossopt.reports.drawing.floorplan import Floor, Plan, chip_in, floorplan, parts_on
from crossopt.reports.drawing.graph import MOST_NODES_OF_TREE, Graph, TreeNode, drawn, layers_of, ordered, tree_svg
from crossopt.reports.drawing.plots import Labels, Line, Mark, Series, Steps, lines, parity, ranges, scatter, steps
from crossopt.reports.drawing.plots import Row as PlotRow
from crossopt.reports.drawing.svg import NARROW, Titles, fitted, letter, picture, shortened, spread, text_line, width_of
from crossopt.reports.facts.design import chip_of
from crossopt.reports.render.html import Page, figure, heading, page
from crossopt.reports.render.style import alone
from crossopt.reports.sheets.codesign.machine import floor_of
from tests.every import every
from tests.reports.look import faults_in_a_browser, looked_at
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import TINY_FREE, ask

# Words that fit and keep apart, and texts of others that cannot act.

TITLES = Titles("name", "A title", "What it shows.")
HOSTILE = '<script>alert("&")</script>'


def test_words_of_others_are_escaped() -> None:
    svg = picture(Titles("name", HOSTILE, HOSTILE), 10.0, [text_line(0.0, 0.0, HOSTILE)])
    assert "<script" not in svg
    assert ElementTree.fromstring(svg)[2].text == HOSTILE


@given(some.text(max_size=40), some.floats(0.0, 300.0))
def test_what_is_fitted_fits_and_begins_as_the_text(text: str, room: float) -> None:
    short = fitted(text, room)
    assert width_of(short) <= room or not short
    assert text.startswith(short.removesuffix("…").rstrip())


@given(some.lists(some.floats(0.0, 100.0), max_size=12), some.floats(1.0, 20.0))
def test_spread_places_keep_their_order_their_distance_and_the_ends(places: list[float], least: float) -> None:
    moved = spread(sorted(places), least, 0.0, 100.0)
    room = min(least, 100.0 / max(len(places) - 1, 1))
    assert len(moved) == len(places)
    assert all(-1e-9 <= place <= 100.0 + 1e-9 for place in moved)
    assert all(after - before >= room - 1e-6 for before, after in pairwise(moved))


def test_places_that_are_far_enough_apart_are_left_alone() -> None:
    assert spread([10.0, 30.0, 60.0], 15.0, 0.0, 100.0) == [10.0, 30.0, 60.0]


def test_letters_go_on_after_the_last() -> None:
    assert [letter(place) for place in (0, 25, 26, 51, 52)] == ["A", "Z", "AA", "AZ", "BA"]


def test_a_label_is_shortened_in_its_middle() -> None:
    text = "pipeline 2 · data 32 · microbatch 1 · interleave 2"
    short = shortened(text, width_of(text) / 2.0)
    start, _, end = short.partition("…")
    assert width_of(short) <= width_of(text) / 2.0
    assert len(start) > 5 < len(end)
    assert (text.startswith(start), text.endswith(end)) == (True, True)
    assert shortened(text, width_of(text)) == text


# Axes: round ticks inside their ends, and figures where they belong.


@given(some.floats(-1e6, 1e6), some.floats(1e-6, 1e6))
def test_ticks_are_round_inside_and_few(low: float, span: float) -> None:
    high = low + span
    ticks = round_steps(low, high, 5)
    assert len(ticks) <= 8
    near = span * 1e-6 + 4.0 * ulp(max(abs(low), abs(high)))  # far from zero, numbers lie further apart than that
    assert all(low - near <= tick <= high + near for tick in ticks)


@given(some.floats(-30.0, 30.0), some.floats(0.1, 60.0), some.sampled_from([(1.0,), (1.0, 2.0, 5.0), (1.0, 2.0, 3.0, 5.0, 7.0)]))
def test_tenfold_ticks_are_all_those_between_two_powers(low: float, span: float, factors: tuple[float, ...]) -> None:
    ticks = tenfold_steps(low, low + span, factors)
    assert ticks == sorted(set(ticks))
    assert all(low <= log10(tick) <= low + span for tick in ticks)
    assert abs(len(ticks) - span * len(factors)) <= len(factors)


def test_of_too_many_powers_of_ten_every_second_or_third_is_left() -> None:
    assert tenfold_steps(-2.0, 2.0) == [0.01, 0.1, 1.0, 10.0, 100.0]
    assert tenfold_steps(-2.0, 2.0, most=4) == [0.01, 1.0, 100.0]
    assert tenfold_steps(-2.5, 4.5, most=3) == [1.0, 1000.0]


def test_figures_stand_in_proportion_from_the_left_and_from_the_top() -> None:
    assert [Scale(0.0, 4.0, 10.0, 200.0).at(value) for value in (0.0, 1.0, 4.0)] == [10.0, 60.0, 210.0]
    assert [Scale(0.0, 4.0, 10.0, 200.0, upward=True).at(value) for value in (0.0, 1.0, 4.0)] == [210.0, 160.0, 10.0]
    assert [Scale(-1.0, 1.0, 0.0, 100.0, tenfold=True).at(value) for value in (0.1, 1.0, 10.0)] == [0.0, 50.0, 100.0]


@pytest.mark.parametrize(("values", "ends"), [((0.0, 10.0), (-1.0, 11.0)), ((5.0, 5.0), (4.0, 6.0)), ((0.0, 0.0), (-1.0, 1.0))], ids=str)
def test_ends_leave_room_beyond_the_figures(values: tuple[float, ...], ends: tuple[float, float]) -> None:
    assert ends_of(values, 0.1, 0.2) == ends


def test_stairs_go_across_before_they_go_up() -> None:
    assert stairs([(0.0, 5.0)]) == [(0.0, 5.0)]
    assert stairs([(0.0, 5.0), (2.0, 3.0)]) == [(0.0, 5.0), (2.0, 5.0), (2.0, 3.0)]


def test_figures_that_read_the_same_have_the_scale_of_one() -> None:
    """A bound one in 10^12 below the value: ticks between them would all say the same."""
    assert ends_of([100.0, 100.0 - 1e-10], 0.06, 0.01) == pytest.approx((99.0, 101.0))
    assert ends_of([100.0, 90.0], 0.1, 0.01) == pytest.approx((89.0, 101.0))


# Bars and columns: parts that add up, and the same bytes for the same figures.


def widths(svg: str, kind: str) -> list[float]:
    boxes = ElementTree.fromstring(svg).iter("rect")
    return [float(box.get("width") or 0.0) for box in boxes if kind in (box.get("class") or "").split()]


def test_the_widths_of_parts_are_their_shares() -> None:
    svg = stacked(TITLES, [Part("a", 3.0, "3 s", 0), Part("b", 1.0, "1 s", 1)])
    assert widths(svg, "cut") == [540.0, 180.0]
    assert widths(stacked(TITLES, [Part("a", 3.0, "3 s", 0)], 12.0), "cut") == [180.0]
    assert "free" in stacked(TITLES, [Part("a", 3.0, "3 s", 0)], 12.0)
    assert "a 75%" in stacked(TITLES, [Part("a", 3.0, "3 s", 0), Part("b", 1.0, "1 s", 1)], 5.0)


def test_bars_are_as_long_as_their_values() -> None:
    svg = bars(TITLES, [Row("one", 1.0, "1"), Row("half", 0.5, "0.5", "note")], 1.0, "the limit")
    one, half = widths(svg, "k0")[0], widths(svg, "k1")[0]
    assert half == pytest.approx(one / 2.0, abs=0.1)
    assert one == pytest.approx(widths(svg, "track")[0], abs=0.1)


def test_columns_stack_to_their_sums() -> None:
    units = Units("GiB", 1.0, "capacity", "stage")
    root = ElementTree.fromstring(columns(TITLES, ["1", "2"], [("a", [1.0, 2.0]), ("b", [3.0, 1.0])], 8.0, units))
    heights = [float(box.get("height") or 0.0) for box in root.iter("rect")]
    assert heights[0] + heights[2] == pytest.approx((heights[1] + heights[3]) * 4.0 / 3.0, rel=0.01)


def test_figures_have_one_decimal_place_at_the_most() -> None:
    assert not re.search(r"\d\.\d\d", stacked(TITLES, [Part("a", 1.0, "1", 0), Part("b", 2.0, "2", 1)]).replace("33%", ""))


# A chip from above: every part by its area, and nothing on anything else.

MM2 = 1e-6
PARTS = tuple(
    Part(name, area * MM2, f"{area} mm^2", place)
    for place, (name, area) in enumerate(
        {
            "compute": 400.0,
            "registers": 40.0,
            "L2": 80.0,
            "HBM": 40.0,
            "node network": 24.0,
            "network": 8.0,
            "filler": 46.0,
            "L1": 20.0,
        }.items()
    )
)
DIE = (sqrt(658 * MM2 * 26 / 33), sqrt(658 * MM2 * 33 / 26))
ON_DIE = Plan("HBM", ("node network", "network"), "L2", "links between dies", ("compute", "registers", "L1"), 7)
FLOOR = Floor(PARTS, ON_DIE, "filler", 5, (0.0105, 0.0105), DIE, 0.0005)


def rectangles(floor: Floor) -> list[tuple[str, float, float, float, float]]:
    """Class and sides of all that is drawn but the legend, in pixels; the package first."""
    found = ElementTree.fromstring(floorplan(TITLES, floor)).iter("rect")
    rows = [(one.get("class", ""), *(float(one.get(side, "0")) for side in ("x", "y", "width", "height"))) for one in found]
    return [row for row in rows if row[1] < 440.0]


@pytest.mark.parametrize("dies", [1, 2])
def test_stacks_on_dies_are_outlines_that_lie_on_their_die_apart(dies: int) -> None:
    floor = replace(FLOOR, stacks=4 * dies, dies=dies, on_dies=True)
    (_, left, top, width, height), *rest = rectangles(floor)
    stacks = [row for row in rest if row[0] == "roof"]
    assert len(stacks) == 4 * dies
    high = height / dies
    assert sorted(int((y - top) // high) for _, _, y, _, _ in stacks) == sorted(4 * list(range(dies)))
    assert all(x >= left and x + wide <= left + width for _, x, _, wide, _ in stacks)
    for first, second in combinations(stacks, 2):
        assert any(first[at] + first[at + 2] <= second[at] or second[at] + second[at + 2] <= first[at] for at in (1, 2))


@pytest.mark.parametrize("dies", [1, 2])
def test_parts_and_stacks_have_their_areas_on_one_scale(dies: int) -> None:
    die = (DIE[0] / sqrt(dies), DIE[1] / sqrt(dies))
    floor = replace(FLOOR, stacks=dies * (4 - dies), dies=dies, die=die)
    drawn = rectangles(floor)
    pixels = {part.label: 0.0 for part in PARTS}
    names = {"ground": "filler", **{f"k{part.colour} cut": part.label for part in PARTS}}
    for kind, _, _, width, height in drawn:
        if kind in names:
            pixels[names[kind]] += width * height
    scale = pixels["compute"] / 460.0  # with the registers and the L1 of each bundle
    assert {name: pixels[name] / scale for name in ("L2", "filler")} == pytest.approx({"L2": 80.0, "filler": 46.0}, rel=0.02)
    stacks = [width * height for kind, _, _, width, height in drawn if kind == "hollow"]
    assert len(stacks) == dies * (4 - dies)
    assert stacks[0] / scale == pytest.approx(100.0, rel=0.02)  # 10 mm by 10 mm, and half a millimetre between two


@pytest.mark.parametrize("bundles", [1, 7, 115, 132])
def test_each_bundle_has_its_registers_and_its_l1_to_scale(bundles: int) -> None:
    """In its own tile, all of one area, above and below L2: square millimetres as the parts have them."""
    areas = {part.label: part.value for part in PARTS}
    found = {one.name: one for one in parts_on(replace(ON_DIE, bundles=bundles), areas, (0.0, 0.0, *DIE))}
    for name in ("registers", "L1"):
        sizes = [width * height for _, _, width, height in found[name].blocks]
        assert len(sizes) == bundles
        assert sizes == pytest.approx([areas[name] / bundles] * bundles)
    cores = found["compute"].blocks
    assert sum(width * height for _, _, width, height in cores) == pytest.approx(460.0 * MM2)
    for x, y, width, height in (*found["registers"].blocks, *found["L1"].blocks):
        assert any(
            left <= x + 1e-9 and top <= y + 1e-9 and x + width <= left + wide + 1e-9 and y + height <= top + high + 1e-9
            for left, top, wide, high in cores
        )
    if bundles > 1:
        whole = sum(width * height for name, one in found.items() if not one.tiled for _, _, width, height in one.blocks)
        assert whole == pytest.approx(DIE[0] * DIE[1])


def lying(dies: int) -> list[dict[str, tuple[tuple[float, float, float, float], ...]]]:
    """Where parts of each die lie, one below the other, with 12 mm^2 of links between them on each."""
    areas, (across, along) = {part.label: part.value for part in PARTS} | {"links between dies": 12.0 * MM2, "filler": 34.0 * MM2}, DIE
    found = [parts_on(ON_DIE, areas, (0.0, number * along, across, along), (number > 0, number < dies - 1)) for number in range(dies)]
    return [{one.name: one.blocks for one in parts} for parts in found]


def test_the_second_of_two_dies_is_the_first_one_turned_with_links_between_them_where_they_meet() -> None:
    """And with all wires to other devices away from there."""
    (across, along), (first, second) = DIE, lying(2)
    for name, blocks in first.items():
        turned = {(across - x - width, 2.0 * along - y - height, width, height) for x, y, width, height in blocks}
        assert sorted(second[name]) == [pytest.approx(block, abs=1e-12) for block in sorted(turned)], name
    [(_, top, wide, high)], [(_, other, _, _)] = first["links between dies"], second["links between dies"]
    assert top + high == pytest.approx(along) == pytest.approx(other)
    assert wide * high == pytest.approx(12.0 * MM2)
    for name in ("node network", "network"):
        assert [block[1] for block in first[name]] == [pytest.approx(0.0)]


@pytest.mark.parametrize("dies", [2, 3, 4])
def test_each_die_of_a_row_has_every_part_on_its_area_alone(dies: int) -> None:
    areas = {part.label: part.value for part in PARTS} | {"links between dies": 12.0 * MM2, "filler": 34.0 * MM2}
    for number, parts in enumerate(lying(dies)):
        plain = {name: blocks for name, blocks in parts.items() if name not in ("compute", "registers", "L1")}
        for name, blocks in plain.items():
            assert sum(width * height for _, _, width, height in blocks) == pytest.approx(areas[name]), name
        for (x, y, wide, high), (to, down, broad, tall) in combinations([one for blocks in plain.values() for one in blocks], 2):
            assert min(x + wide, to + broad) - max(x, to) <= 1e-9 or min(y + high, down + tall) - max(y, down) <= 1e-9
        assert all(
            number * DIE[1] - 1e-9 <= y and y + high <= (number + 1) * DIE[1] + 1e-9 for one in plain.values() for _, y, _, high in one
        )


def test_nothing_lies_on_anything_else_and_all_lies_on_the_package() -> None:
    (_, left, top, wide, high), *every = rectangles(FLOOR)
    rest = [row for row in every if not row[0].removeprefix("k").isdigit()]  # but for the ground of a label
    for _, x, y, width, height in rest:
        assert left <= x
        assert top <= y
        assert x + width <= left + wide + 0.1
        assert y + height <= top + high + 0.1
    for (_, x, y, width, height), (_, to, down, broad, tall) in combinations(rest, 2):
        assert min(x + width, to + broad) - max(x, to) <= 0.2 or min(y + height, down + tall) - max(y, down) <= 0.2


def test_the_same_chip_is_drawn_by_the_same_bytes() -> None:
    assert floorplan(TITLES, FLOOR) == floorplan(TITLES, FLOOR)


@pytest.mark.parametrize("chosen", [("hbm_stacks=6",), ("hbm_stacks=4",), ("dies=2", "hbm_stacks=6")])
def test_the_box_that_is_drawn_is_the_package_that_is_limited_and_paid(chosen: tuple[str, ...]) -> None:
    budget = "budget={die_area: 2500 mm^2, package_area: 6000 mm^2, power: 2000 W, reticle: 2000 mm^2}"
    asked = ask(TINY_FREE, budget, "tensor=1", "pipeline=1", "compute_area=460 mm^2", "compute_power=180 W", *chosen)
    result = answered(asked)
    design = result.answer.design
    assert design is not None
    floor = floor_of(chip_of(asked, design))
    assert floor is not None
    wide, high = chip_in(floor, (400.0, 400.0)).package
    assert wide * high == pytest.approx(device_at(asked, 0).package_area)


# Graphs in layers: every arc leads down, every node is there once, and crossings are few where none is needed.

GRAPH_TITLES = Titles("graph", "A graph", "Its nodes.")


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
    picture = ElementTree.fromstring(drawn(GRAPH_TITLES, graph(chain, count)))
    _, _, width, height = map(float, (picture.get("viewBox") or "").split())
    boxes = [tuple(float(box.get(key) or 0.0) for key in ("x", "y", "width", "height")) for box in picture.iter("rect")]
    assert len(boxes) == count
    assert all(x >= 0.0 and y >= 0.0 and x + wide <= width and y + tall <= height for x, y, wide, tall in boxes)
    assert len({(x, y) for x, y, _, _ in boxes}) == count
    assert height < 3.0 * width


def test_the_same_graph_gives_the_same_bytes() -> None:
    assert drawn(GRAPH_TITLES, graph(random_arcs(3, 60), 60)) == drawn(GRAPH_TITLES, graph(random_arcs(3, 60), 60))


# Plots: marks stand where their figures say, what never came stands beyond the end, and ticks are round and few.

NEVER = float("inf")
LABELS = Labels("title <1>", "words & signs", "across", "upward")


def test_steps_hold_their_value_until_the_next_one() -> None:
    svg = steps(TITLES, [Steps("best", ((0.0, 3.0), (1.0, 2.0)))], 2.0, ("seconds", "value"))
    way = next(node.get("points") or "" for node in ElementTree.fromstring(svg).iter("polyline") if "step" in (node.get("class") or ""))
    points = [tuple(map(float, point.split(","))) for point in way.split()]
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert points[0][1] == points[1][1] < points[2][1] == points[3][1]


@pytest.mark.parametrize("values", [(0.0, 0.0), (5.0, 5.0), (1e-9, 1e9)], ids=str)
def test_a_value_that_stands_still_and_one_that_leaps_can_be_drawn(values: tuple[float, float]) -> None:
    points = tuple((float(at), value) for at, value in enumerate(values))
    ElementTree.fromstring(steps(TITLES, [Steps("best", points)], 1.0, ("seconds", "value")))


def discs(picture: str) -> list[float]:
    """Where full circles stand from left to right."""
    return [float(x) for x in re.findall(r'<circle class="k\d cut" cx="([\d.]+)"', picture)]


def test_marks_stand_in_proportion_and_ranges_reach_their_ends() -> None:
    rows = [PlotRow(f"{value}", (Mark(value, value, value + 2.5),), "") for value in (0.0, 5.0, 10.0)]
    picture = ranges(TITLES, rows, "%", tenfold=False)
    first, second, third = discs(picture)
    assert abs((second - first) - (third - second)) < 0.2
    ends = [float(x) for x in re.findall(r'class="step k0-line" points="[\d.]+,[\d.]+ ([\d.]+),', picture)]
    assert abs((ends[0] - first) * 2.0 - (second - first)) < 0.2


def test_an_axis_that_reaches_far_gives_small_figures_room() -> None:
    """Zero has its place, and of 124 on 600 pixels a difference of one near zero is more than twenty."""
    rows = [PlotRow("row", (Mark(value, value, value),), "") for value in (0.0, 1.0, 3.0, 124.0)]
    picture = ranges(TITLES, rows, "%", tenfold=False)
    zero, one, three, last = discs(picture)
    assert one - zero > (last - zero) / 10.0
    assert abs((three - one) - (one - zero)) < 0.2
    assert "wider near zero" in picture
    assert [tick for tick in (0, 1, 3, 10, 30, 100) if f">{tick}</text>" not in picture] == []


def test_tenfold_steps_are_equal_and_zero_stands_at_the_low_end() -> None:
    rows = [PlotRow("row", (Mark(value, value, value),), "") for value in (0.0, 0.1, 1.0, 10.0)]
    zero, tenth, one, ten = discs(ranges(TITLES, rows, "s", tenfold=True))
    assert zero == tenth
    assert abs((one - tenth) - (ten - one)) < 0.2


def test_what_never_came_is_a_cross_beyond_the_end_and_a_second_mark_a_square() -> None:
    rows = [PlotRow("a", (Mark(1.0, 1.0, 1.0), Mark(2.0, 2.0, 2.0)), ""), PlotRow("b", (Mark(NEVER, 1.0, NEVER),), "never")]
    picture = ranges(TITLES, rows, "s", tenfold=True)
    assert len(discs(picture)) == 1
    assert picture.count('<rect class="k1 cut"') == 1
    strokes = [float(x) for x in re.findall(r'class="step k0-line" points="([\d.]+),', picture)]
    assert len(strokes) == 3
    assert max(strokes) > discs(picture)[0]


def test_nothing_measured_is_still_a_picture() -> None:
    for tenfold in (False, True):
        assert ranges(TITLES, [PlotRow("a", (Mark(NEVER, NEVER, NEVER),), "never")], "s", tenfold=tenfold).startswith("<svg")


def test_a_line_breaks_where_there_is_no_figure_and_rings_what_stands_out() -> None:
    series = [Line("a", (4.0, 2.0, None, 1.0), (False, True, False, False)), Line("b", (None,) * 4, (False,) * 4)]
    picture = lines(TITLES, ("14nm", "10nm", "7nm", "5nm"), series, ("node", "s"), (1.0, 4.0))
    assert picture.count('class="step k0-line"') == 1
    assert picture.count('class="mark"') == 1
    assert ">b<" not in picture
    heights = [float(y) for y in re.findall(r'<circle class="k0 cut" cx="[\d.]+" cy="([\d.]+)" r="4.5"', picture)]
    assert abs((heights[1] - heights[0]) - (heights[2] - heights[1])) < 0.2


def test_no_line_joins_devices_which_nothing_lies_between() -> None:
    series = [Line("a", (4.0, 2.0, 1.0), (False, False, False))]
    for names, joints in ((("a100-80g", "h100-sxm", "b200"), 0), (("250 mm^2", "400 mm^2", "800 mm^2"), 2)):
        picture = lines(TITLES, names, series, ("hardware", "s"), (1.0, 4.0))
        assert picture.count('class="step k0-line"') == joints
        assert len(re.findall('<circle class="k0 cut"', picture)) == 4, "three marks, and one beside the name"


def test_pairs_of_equal_figures_lie_on_the_line_and_the_name_of_one_inside_the_picture() -> None:
    picture = parity(TITLES, [(1.0, 1.0), (2.0, 2.0), (2.0, 1.0)], (3.0, 3.0, "this design, far to the right"), ("model", "truth"))
    root = ElementTree.fromstring(picture)
    marks = [(float(mark.get("cx") or 0.0), float(mark.get("cy") or 0.0)) for mark in root.iter("circle")]
    (left, low), (right, high) = (map(float, point.split(",")) for point in re.findall(r'"mark" points="(\S+) (\S+)"', picture)[0])
    beyond = [abs((y - low) / (high - low) - (x - left) / (right - left)) for x, y in marks]
    assert [one < 0.01 for one in beyond] == [True, True, False, True]
    name = next(text for text in root.iter("text") if text.text == "this design, far to the right")
    assert float(name.get("x") or 0.0) < marks[-1][0]


def test_a_point_on_the_diagonal_is_as_far_to_the_right_as_up() -> None:
    picture = scatter([Series("x", hollow=False, points=((1.0, 1.0), (100.0, 100.0)))], LABELS, 0.1)
    circles = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="3"/>', picture)
    assert len(circles) == 2
    assert {round(float(x) - 70.0 + float(y) - 40.0, 1) for x, y in circles} == {520.0}


def test_as_many_series_as_a_file_may_have_look_different() -> None:
    picture = scatter([Series(f"source {number}", hollow=False, points=((1.0, 2.0),)) for number in range(32)], LABELS, 0.1)
    signs = re.findall(r'<g fill="(#\w+)" fill-opacity="0.6"><(?:circle|path d="M[^A-Z]*([A-Z])[^A-Z]*([A-Z]))', picture)
    assert len(signs) == 64, "a mark and a sign in the legend for each"
    assert len(set(signs)) == 32
    assert signs[:32] == signs[32:]


@every("decades", range(4, 40))
def test_there_are_never_too_many_ticks(decades: int) -> None:
    picture = scatter([Series("x", hollow=True, points=((10.0**-3, 10.0 ** (decades - 3)),))], LABELS, 0.1)
    assert 3 <= len(re.findall(r'text-anchor="end"[^>]*>([^<]+)<', picture)) <= 8


def test_a_picture_of_nothing_is_still_one() -> None:
    assert ElementTree.fromstring(scatter([], LABELS, 0.1)).tag.endswith("svg")


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (1.0, 10.0, ["1", "2", "5", "10"]),
        (0.01, 1000.0, ["0.01", "0.1", "1", "10", "100", "1000"]),
        (1e-6, 1e6, ["1e-06", "0.0001", "0.01", "1", "100", "10000", "1e+06"]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, ticks: list[str]) -> None:
    picture = scatter([Series("x", hollow=True, points=((low, high),))], LABELS, 0.1)
    assert re.findall(r'text-anchor="end"[^>]*>([^<]+)<', picture) == ticks


# Timelines: names that stay apart on a telephone, and marks that no outline hides.

TRACKS = [Track(f"accelerator {number}", (Segment(0.0, 50.0, 0), Segment(50.0, 50.2, 1)), "50.2 ms") for number in range(1, 12)]


def test_names_are_whole_on_every_screen() -> None:
    for titles in (TITLES, TITLES.at(NARROW)):
        root = ElementTree.fromstring(timeline(titles, TRACKS, 60.0, "ms"))
        assert {track.label for track in TRACKS} <= {text.text for text in root.iter("text")}


def test_marks_too_narrow_for_an_outline_have_none_and_are_seen() -> None:
    """0.2 of 60 ms is about a pixel of 340."""
    marks = list(ElementTree.fromstring(timeline(TITLES.at(NARROW), TRACKS, 60.0, "ms")).iter("rect"))
    wide, thin = marks[:2]
    assert (wide.get("class"), thin.get("class")) == ("k0 cut", "k1")
    assert float(thin.get("width") or 0.0) >= 1.0


# Trees: every node once, below its parent and joined to it; of large ones the nodes near the root, and how many are left out.

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


def test_words_of_others_in_a_tree_are_escaped() -> None:
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
