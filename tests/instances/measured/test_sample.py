"""The sample of a file of measured runs that comes along, and what the README says of its columns."""

import csv
import re

from crossopt.instances.measured.runs import COUNTS, FLAGS, FRAMEWORKS, MORE_COUNTS, NUMBERS, REQUIRED, TEXTS, read_measured
from tests.paths import INSTANCES, ROOT

SAMPLE = INSTANCES / "measured-sample.csv"
KNOWN = {*TEXTS, *COUNTS, *MORE_COUNTS, *NUMBERS, *FLAGS}


def test_the_sample_shows_priced_rows_of_both_kinds_an_unstated_setting_and_a_rejected_row() -> None:
    found = read_measured(SAMPLE)
    assert [(row.line, row.reason.split(" (")[0]) for row in found.rejected] == [(11, "'TPU v5p' is no device of the registry")]
    assert [row.line for row in found.measurements if row.derived] == [9, 10]
    assert [(row.line, row.inferred) for row in found.measurements if row.inferred] == [(7, ("seq_parallel", "zero_fsdp"))]
    assert len(found.measurements) == 9


def test_every_row_of_the_sample_says_that_it_is_made_up() -> None:
    with SAMPLE.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["source"] for row in rows} == {"made-up example"}
    assert all(row["note"].startswith("made up") for row in rows)
    assert set(rows[0]) <= KNOWN


def test_the_documentation_lists_every_column_and_framework_and_marks_the_columns_that_must_be_there() -> None:
    page = (ROOT / "docs" / "questions" / "measured-runs.md").read_text(encoding="utf-8")
    section = page.split("## A file of measured runs")[1].split("\n## ")[0]
    table = [line.split("|") for line in section.splitlines() if re.match(r"\| \*{0,2}`", line)]
    named = [name for cells in table for name in re.findall(r"`([^`]+)`", cells[1])]
    assert sorted(named) == sorted(KNOWN)
    assert {name for cells in table for name in re.findall(r"\*\*`([^`]+)`\*\*", cells[1])} == set(REQUIRED)
    (frameworks,) = (cells[2] for cells in table if "`framework`" in cells[1])
    assert set(re.findall(r"`([^`]+)`", frameworks)) == set(FRAMEWORKS)
