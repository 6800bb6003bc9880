"""Timelines: names that stay apart on a telephone, and marks that no outline hides."""

from xml.etree import ElementTree

from crossopt.reports.drawing.axes import Segment, Track, timeline
from crossopt.reports.drawing.svg import NARROW
from tests.reports.drawing.test_svg import TITLES

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
