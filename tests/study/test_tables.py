"""Tables of a comparison: what is concluded stands before the runs that it is concluded from."""

from reports.study import course_words, ends_of
from reports.study_digest import of_study
from reports.text import bound_amount
from solvers.study.figures import NEVER, Spread
from solvers.study.records import Axis
from tests.study.runs import RUN, planned, searched, study_of


def test_conclusions_come_before_the_runs() -> None:
    tables = of_study(study_of(RUN, *(searched(value, seed) for seed, value in enumerate((110.0, 104.0, 130.0))))).tables
    assert [table.title.partition(" ")[0] for table in tables if table.rows] == ["Engines", "Above", "Ranges", "Runs"]
    _, above, ranges, runs = (table for table in tables if table.rows)
    assert [f"{share:.6g}" for share in above.rows[0][-2:]] == ["0", "10"]
    assert [f"{share:.6g}" for share in ranges.rows[0][-2:]] == ["4", "30"]
    assert [row[2] for row in runs.rows] == ["0", "0", "1", "2"]


def test_courses_stand_in_a_table_with_the_axis_once() -> None:
    axis = Axis("devices", "cluster.devices", ("8", "16"))
    tables = of_study(study_of(planned("a", 5.0, 0), planned("b", 3.0, 1), at=(("8",), ("16",)), axes=(axis,))).tables
    course = next(table for table in tables if table.title.startswith("Along"))
    assert (course.heads, course.rows) == (("", "8", "16"), (("devices", 5.0, 3.0),))
    assert [row[0] for row in tables[-1].rows] == ["8", "16"]


def test_bounds_in_units_are_never_rounded_up() -> None:
    assert bound_amount(8.156789e-4, "m^2") == "815.678 mm^2"
    assert bound_amount(0.1999999999, "s") == "199.999 ms"
    assert bound_amount(3.0, "J/token") == "3 J/token"


def test_levels_are_told_only_where_values_fall() -> None:
    axis = Axis("devices", "cluster.devices", ("8", "16"))

    def told(first: float, second: float) -> str:
        return course_words(study_of(planned("a", first, 0), planned("a", second, 1), at=(("8",), ("16",)), axes=(axis,)), (0, 1))[0]

    assert told(5.0, 6.0) == told(5.0, 5.0) == "no step makes it less"
    assert told(5.0, 4.9) == "from 8 on no step gains 10 %"
    assert told(5.0, 4.0) == "the last step still gains 10 %"


def test_ranges_with_one_end_are_one_figure_and_an_end_without_a_design_says_so() -> None:
    assert [ends_of(Spread(0.1, 0.0, most)) for most in (0.0, 0.5, NEVER)] == ["0.00%", "0.00% to 50.00%", "0.00% to no design"]
