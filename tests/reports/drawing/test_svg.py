"""Words that fit and keep apart, and texts of others that cannot act."""

from itertools import pairwise
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as some

from crossopt.reports.drawing.svg import Titles, fitted, letter, picture, shortened, spread, text_line, width_of

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
