"""Tables of a comparison: what is concluded stands before the runs that it is concluded from."""

import csv
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from crossopt.reports.cli import main
from crossopt.reports.render.runs import runs_csv
from crossopt.reports.render.tables import digest
from crossopt.reports.sheets.amounts import bound_amount
from crossopt.reports.sheets.study import course_text, ends_of, study_sheet
from crossopt.solvers.study.figures import NEVER, Spread
from crossopt.solvers.sweeps.listed import Axis
from tests.paths import ROOT
from tests.solvers.study.runs import LOST, RUN, planned, searched, study_of

GALLERY = ROOT / "reports" / "gallery"


def test_conclusions_come_before_the_runs() -> None:
    at, axes = (("one",), ("two",)), (Axis("questions", "questions", ("one", "two")),)
    seeds = [searched(value, seed) for seed, value in enumerate((110.0, 104.0, 130.0))]
    tables = digest(study_sheet(study_of(RUN, *seeds, replace(RUN, question=1), at=at, axes=axes))).tables
    assert [table.title.partition(" ")[0] for table in tables if table.rows] == [
        "Engines",
        "Engines",
        "Above",
        "Ranges",
        "Seconds",
        "Along",
        "Runs",
    ]
    _, _, above, ranges, _, _, runs = (table for table in tables if table.rows)
    assert [f"{share:.6g}" for share in above.rows[0][-2:]] == ["0", "10"]
    assert [f"{share:.6g}" for share in ranges.rows[0][-2:]] == ["4", "30"]
    assert [row[2] for row in runs.rows] == [0, 0, 1, 2, 0]


def test_courses_stand_in_a_table_with_the_axis_once() -> None:
    axis = Axis("devices", "cluster.devices", ("8", "16"))
    sheet = study_sheet(study_of(planned("a", 5.0, 0), planned("b", 3.0, 1), at=(("8",), ("16",)), axes=(axis,)))
    tables = digest(sheet).tables
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
        return course_text(study_of(planned("a", first, 0), planned("a", second, 1), at=(("8",), ("16",)), axes=(axis,)), (0, 1))[0]

    assert told(5.0, 6.0) == told(5.0, 5.0) == "no step makes it less"
    assert told(5.0, 4.9) == "from 8 on no step gains 10 %"
    assert told(5.0, 4.0) == "the last step still gains 10 %"


def test_ranges_with_one_end_are_one_figure_and_an_end_without_a_design_says_so() -> None:
    assert [ends_of(Spread(0.1, 0.0, most)) for most in (0.0, 0.5, NEVER)] == ["0.00%", "0.00% to 50.00%", "0.00% to no design"]


def test_runs_are_tidy_rows() -> None:
    """Each run is one row with what tells it from others, and each axis a column; several studies go below each other."""
    axis = Axis("devices", "cluster.devices", ("8", "16"))
    along = study_of(planned("a", 5.0, 0), planned("b", 0.1 + 0.2, 1), at=(("8",), ("16",)), axes=(axis,))
    seeds = study_of(RUN, *(searched(value, seed) for seed, value in enumerate((110.0, 104.0))), LOST)
    rows = list(csv.DictReader(StringIO(runs_csv([along, seeds]))))
    assert len(rows) == len(along.runs) + len(seeds.runs)
    assert [row["devices"] for row in rows] == ["8", "16", "", "", "", ""]
    assert rows[1]["value"] == "0.30000000000000004"
    told = [(row["engine"], row["seed"], row["value"], row["best_bound"], row["proved"]) for row in rows[2:]]
    assert told == [
        ("boxes", "0", "100.0", "100.0", "yes"),
        *((("random", seed, f"{value}.0", "100.0", "no")) for seed, value in (("0", 110), ("1", 104))),
        ("random", "0", "", "100.0", "no"),
    ]
    assert [row["above_best_bound"][:4] for row in rows[2:]] == ["0.0", "0.10", "0.04", ""]
    assert [row["seconds_to_1_percent"] for row in rows[2:]] == ["2.0", "", "", ""]


def test_an_axis_has_a_column_of_its_own_and_no_cell_is_a_formula() -> None:
    axis = Axis("engine", "cluster.devices", ("=1+1",))
    row = next(csv.DictReader(StringIO(runs_csv([study_of(planned("a", 5.0, 0), at=(("=1+1",),), axes=(axis,))]))))
    assert (row["axis engine"], row["engine"]) == ("'=1+1", "boxes")


def test_the_command_writes_runs_of_comparisons_and_of_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "runs.csv"
    assert main(["report", str(GALLERY / "joint-vs-single-layer.json"), "--as", "runs", "--out", str(target)]) == 0
    assert capsys.readouterr().out.startswith(f"{target}: the runs on ")
    rows = list(csv.DictReader(target.read_text(encoding="utf-8").splitlines()))
    assert len({(row["question"], row["engine"], row["seed"]) for row in rows}) == len(rows) > 40
    with pytest.raises(SystemExit):
        main(["report", str(GALLERY / "quickstart.json"), "--as", "runs"])
    assert "holds no runs of `crossopt compare` (take --as csv)" in capsys.readouterr().err
