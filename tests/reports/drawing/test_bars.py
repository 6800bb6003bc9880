"""Bars and columns: parts that add up, and the same bytes for the same figures."""

import re
from xml.etree import ElementTree

import pytest

from crossopt.reports.drawing.bars import Part, Row, Units, bars, columns, stacked
from tests.reports.drawing.test_svg import TITLES


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
