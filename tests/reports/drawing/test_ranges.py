"""Rows of marks and courses: marks stand where their figures say, and what never came stands beyond the end."""

import re

from crossopt.reports.drawing.charts import Titles
from crossopt.reports.drawing.lines import Course, courses
from crossopt.reports.drawing.ranges import Mark, Row, ranges

NEVER = float("inf")
TITLES = Titles("name", "title", "description")


def discs(picture: str) -> list[float]:
    """Where full circles stand from left to right."""
    return [float(x) for x in re.findall(r'<circle class="k\d cut" cx="([\d.]+)"', picture)]


def test_marks_stand_in_proportion_and_ranges_reach_their_ends() -> None:
    rows = [Row(f"{value}", (Mark(value, value, value + 5.0),), "") for value in (0.0, 10.0, 20.0)]
    picture = ranges(TITLES, rows, "%", tenfold=False)
    first, second, third = discs(picture)
    assert abs((second - first) - (third - second)) < 0.2
    ends = [float(x) for x in re.findall(r'class="step k0-line" points="[\d.]+,[\d.]+ ([\d.]+),', picture)]
    assert abs((ends[0] - first) * 2.0 - (second - first)) < 0.2


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


def test_a_course_breaks_where_there_is_no_figure_and_rings_what_stands_out() -> None:
    lines = [Course("a", (4.0, 2.0, None, 1.0), (False, True, False, False)), Course("b", (None,) * 4, (False,) * 4)]
    picture = courses(TITLES, ("w", "x", "y", "z"), lines, ("node", "s"), (1.0, 4.0))
    assert picture.count('class="step k0-line"') == 1
    assert picture.count('class="mark"') == 1
    assert ">b<" not in picture
    heights = [float(y) for y in re.findall(r'<circle class="k0 cut" cx="[\d.]+" cy="([\d.]+)" r="4.5"', picture)]
    assert abs((heights[1] - heights[0]) - (heights[2] - heights[1])) < 0.2
