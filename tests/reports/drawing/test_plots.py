"""Plots: marks stand where their figures say, what never came stands beyond the end, and ticks are round and few."""

import re
from xml.etree import ElementTree

import pytest

from crossopt.reports.drawing.plots import Labels, Line, Mark, Row, Series, Steps, lines, parity, ranges, scatter, steps
from tests.every import every
from tests.reports.drawing.test_svg import TITLES

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
    rows = [Row(f"{value}", (Mark(value, value, value + 2.5),), "") for value in (0.0, 5.0, 10.0)]
    picture = ranges(TITLES, rows, "%", tenfold=False)
    first, second, third = discs(picture)
    assert abs((second - first) - (third - second)) < 0.2
    ends = [float(x) for x in re.findall(r'class="step k0-line" points="[\d.]+,[\d.]+ ([\d.]+),', picture)]
    assert abs((ends[0] - first) * 2.0 - (second - first)) < 0.2


def test_an_axis_that_reaches_far_gives_small_figures_room() -> None:
    """Zero has its place, and of 124 on 600 pixels a difference of one near zero is more than twenty."""
    rows = [Row("row", (Mark(value, value, value),), "") for value in (0.0, 1.0, 3.0, 124.0)]
    picture = ranges(TITLES, rows, "%", tenfold=False)
    zero, one, three, last = discs(picture)
    assert one - zero > (last - zero) / 10.0
    assert abs((three - one) - (one - zero)) < 0.2
    assert "wider near zero" in picture
    assert [tick for tick in (0, 1, 3, 10, 30, 100) if f">{tick}</text>" not in picture] == []


def test_tenfold_steps_are_equal_and_zero_stands_at_the_low_end() -> None:
    rows = [Row("row", (Mark(value, value, value),), "") for value in (0.0, 0.1, 1.0, 10.0)]
    zero, tenth, one, ten = discs(ranges(TITLES, rows, "s", tenfold=True))
    assert zero == tenth
    assert abs((one - tenth) - (ten - one)) < 0.2


def test_what_never_came_is_a_cross_beyond_the_end_and_a_second_mark_a_square() -> None:
    rows = [Row("a", (Mark(1.0, 1.0, 1.0), Mark(2.0, 2.0, 2.0)), ""), Row("b", (Mark(NEVER, 1.0, NEVER),), "never")]
    picture = ranges(TITLES, rows, "s", tenfold=True)
    assert len(discs(picture)) == 1
    assert picture.count('<rect class="k1 cut"') == 1
    strokes = [float(x) for x in re.findall(r'class="step k0-line" points="([\d.]+),', picture)]
    assert len(strokes) == 3
    assert max(strokes) > discs(picture)[0]


def test_nothing_measured_is_still_a_picture() -> None:
    for tenfold in (False, True):
        assert ranges(TITLES, [Row("a", (Mark(NEVER, NEVER, NEVER),), "never")], "s", tenfold=tenfold).startswith("<svg")


def test_a_line_breaks_where_there_is_no_figure_and_rings_what_stands_out() -> None:
    series = [Line("a", (4.0, 2.0, None, 1.0), (False, True, False, False)), Line("b", (None,) * 4, (False,) * 4)]
    picture = lines(TITLES, ("w", "x", "y", "z"), series, ("node", "s"), (1.0, 4.0))
    assert picture.count('class="step k0-line"') == 1
    assert picture.count('class="mark"') == 1
    assert ">b<" not in picture
    heights = [float(y) for y in re.findall(r'<circle class="k0 cut" cx="[\d.]+" cy="([\d.]+)" r="4.5"', picture)]
    assert abs((heights[1] - heights[0]) - (heights[2] - heights[1])) < 0.2


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
