"""Pictures: words that fit, parts that add up, and the same bytes for the same figures."""

import re
from itertools import pairwise
from math import ulp
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as some

from crossopt.reports.drawing.charts import Part, Row, Steps, Titles, Units, bars, columns, round_steps, stacked, steps
from crossopt.reports.drawing.svg import fitted, letter, picture, shortened, spread, width_of, words

TITLES = Titles("name", "A title", "What it shows.")
HOSTILE = '<script>alert("&")</script>'


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


def test_words_of_others_are_escaped() -> None:
    svg = picture("name", HOSTILE, HOSTILE, (10.0, 10.0), [words(0.0, 0.0, HOSTILE)])
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


@given(some.floats(-1e6, 1e6), some.floats(1e-6, 1e6))
def test_ticks_are_round_inside_and_few(low: float, span: float) -> None:
    high = low + span
    ticks = round_steps(low, high, 5)
    assert len(ticks) <= 8
    near = span * 1e-6 + 4.0 * ulp(max(abs(low), abs(high)))  # far from zero, numbers lie further apart than that
    assert all(low - near <= tick <= high + near for tick in ticks)


def test_letters_go_on_after_the_last() -> None:
    assert [letter(place) for place in (0, 25, 26, 51, 52)] == ["A", "Z", "AA", "AZ", "BA"]


def test_figures_have_one_decimal_place_at_the_most() -> None:
    assert not re.search(r"\d\.\d\d", stacked(TITLES, [Part("a", 1.0, "1", 0), Part("b", 2.0, "2", 1)]).replace("33%", ""))


def test_a_label_is_shortened_in_its_middle() -> None:
    text = "pipeline 2 · data 32 · microbatch 1 · interleave 2"
    short = shortened(text, width_of(text) / 2.0)
    start, _, end = short.partition("…")
    assert width_of(short) <= width_of(text) / 2.0
    assert len(start) > 5 < len(end)
    assert (text.startswith(start), text.endswith(end)) == (True, True)
    assert shortened(text, width_of(text)) == text
