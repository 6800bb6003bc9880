"""One sheet in three forms: lines of 80 columns, a page, and tables with every digit."""

import csv
import json
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from crossopt.reports.cli import main
from crossopt.reports.commands.report import page_of, tables_on
from crossopt.reports.drawing.axes import Segment, Track
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.render.html import html, page
from crossopt.reports.render.tables import digest
from crossopt.reports.render.terminal import terminal
from crossopt.reports.sheets.amounts import digits, digits_below, listed, share_of, short, short_below
from crossopt.reports.sheets.sheet import Bar, Bars, Column, Part, Picture, Section, Sheet, Table, Timeline, answer_sheet, names
from crossopt.solvers.answer import Result
from crossopt.solvers.proofs import UnverifiedBound
from tests.paths import INSTANCES
from tests.reports.look import looked_at


def result(value: float = 2.0, bound: float = 2.0) -> Result[object, object]:
    question = {"name": "a question", "unit": "s"}
    return Result(
        kind="toy",
        question=question,
        engine="hand",
        status="OPTIMAL",
        stopped="complete",
        value=value,
        bound=bound,
        gap=0.0,
        gap_asked=0.0,
        proved=True,
        proof=UnverifiedBound("somebody"),
        answer=None,
        details=None,
        reasons=(),
        notes=(),
        baselines=(),
        parts=(),
        trace=(),
        seconds=1.0,
        seed=0,
        versions={},
    )


def sheet(*parts: Part) -> Sheet:
    return answer_sheet(result(), "answer", "What is asked?", sections=(Section("A section", parts),))


def lines_of(*parts: Part) -> list[str]:
    """What stands on the terminal below the section's title."""
    text = terminal(sheet(*parts)).split("  A section\n")[1].split("\n\n  certificate")[0]
    return text.splitlines()


def test_figures_stand_first_and_the_certificate_last() -> None:
    lines = terminal(sheet("A sentence.")).splitlines()
    assert lines[0] == "a question   optimal, solver-reported, in 1 s by hand"
    assert lines[2:5] == ["  value               2 s", "  lower bound         2 s", "  gap                 0.00%"]
    assert lines[-1] == "  certificate: no answer is below 2 s, by somebody."


def test_long_words_stand_below_the_rows_where_there_is_no_room_beside() -> None:
    columns = (names("name", ["first", "second"]), names("runs", ["word " * 30, "few"]), Column("figure", ("1", "22"), (1.0, 22.0)))
    lines = lines_of(Table(columns))
    assert lines[0].split() == ["name", "figure"]
    assert [line.split() for line in lines if line.startswith(("    first", "    second"))] == [["first", "1"], ["second", "22"]]
    assert sum(line.count("word") for line in lines) == 30
    assert max(map(len, lines)) <= 80


def test_columns_without_room_go_on_in_a_further_table() -> None:
    numbers = [Column(f"head{place}", (f"{place}" * 12,), (float(place),)) for place in range(1, 9)]
    lines = lines_of(Table((names("", ["a row of many figures"]), *numbers)))
    assert max(map(len, lines)) <= 80
    assert all(f"{place}" * 12 in " ".join(lines) for place in range(1, 9))
    assert sum("head" in line for line in lines) == 2


def test_tracks_that_look_alike_are_told_together() -> None:
    tracks = tuple(Track(f"stage {number}", (Segment(0.0, 6.0, 0), Segment(6.0, 12.0, 1)), "12 ms") for number in (1, 2, 3))
    lines = lines_of(Timeline(("work", "rest"), (*tracks, Track("stage 4", (Segment(0.0, 6.0, 0),), "6 ms")), 12.0, "ms", "end", "Four."))
    assert lines[0] == "    █ work  ▒ rest"
    assert lines[1] == f"    stages 1 to 3  |{'█' * 12}{'▒' * 12}|  12 ms"
    assert lines[2] == f"    stage 4        |{'█' * 12}{' ' * 12}|  6 ms"
    assert lines[3] == "    Four."
    named = tuple(Track(name, (Segment(0.0, 12.0, 0),), "12 ms") for name in ("unchanged", "afterwards"))
    assert [line.split()[0] for line in lines_of(Timeline(("work",), named, 12.0, "ms", "end", ""))[1:]] == ["unchanged", "afterwards"]


def test_bars_tell_how_far_and_why_not() -> None:
    rows = (
        Bar("this answer", 2.0),
        Bar("a rule", 3.0, "by hand"),
        Bar("broken", 1.0, fault="it breaks a limit"),
        Bar("none", None, fault="lost"),
    )
    part = Bars(rows, "s", 2.0, 2.0)
    text = " ".join(" ".join(lines_of(part)).split())
    assert "3 s, 50.0% above by hand" in text
    assert "1 s but it breaks a limit" in text
    assert "none: none, lost" in text
    drawn = page(html(sheet(part), {}))
    assert all(words in drawn for words in ("a rule: by hand", "broken *: it breaks a limit", "none: lost", "3 s, 50.0% above"))
    [table] = digest(sheet(part)).tables
    assert table.rows[1:3] == (("a rule", 3.0, 50.0, "by hand"), ("broken", 1.0, -50.0, "it breaks a limit"))


def test_a_picture_that_cannot_be_drawn_is_told_in_words() -> None:
    def drawn(titles: Titles) -> str:
        raise ValueError(titles.title)

    text = page(html(sheet(Picture(drawn, "Many arcs.", "", "They lead in a circle.")), {}))
    assert "Many arcs. They lead in a circle." in text
    assert lines_of(Picture(drawn, "Many arcs.", "", "")) == ["    Many arcs."]


def test_a_reader_sees_the_first_rows_and_a_spreadsheet_all() -> None:
    part = Table((names("name", ["first", "second"]), Column("figure", ("0.3", "0.7"), (1 / 3, 2 / 3), "figure in s")), most=1)
    assert "second" not in "".join(lines_of(part))
    assert "second" not in page(html(sheet(part), {}))
    [table] = digest(sheet(part)).tables
    assert (table.heads, table.rows) == (("name", "figure in s"), (("first", 1 / 3), ("second", 2 / 3)))


def test_whole_nanoseconds_keep_every_digit_in_the_unit_that_suits_them() -> None:
    told = [digits(value, "ns") for value in (0, 999, 1_000, -177_500, 3_274_001, 1_397_440_619)]
    assert told == ["0 ns", "999 ns", "1 us", "-177.5 us", "3.274001 ms", "1.397440619 s"]
    assert listed("abcdef") == "a, b, c, d, e, f"
    assert listed("abcdefg") == "a, b, c, d, e and 2 more"


@pytest.mark.parametrize("unit", ["s", "ms", "ns", ""])
def test_no_bound_is_told_above_what_it_is(unit: str) -> None:
    for bound in (0.123456789, 1.99999999, 5e-7, 123456.789):
        assert float(digits_below(bound, None, unit).partition(" ")[0]) <= bound
    assert short_below(1.99999999, 2.0, "s") == "1.99999 s"
    assert short_below(2.0, 2.0, "s") == short(2.0, "s") == "2 s"
    assert (short(123_456_789, ""), short_below(123_456_789, None, "")) == ("1.2345e8", "1.2345e8")
    assert (share_of(0.0), share_of(1e-7), share_of(0.25)) == ("0.00%", "1.0e-07", "25.00%")


@pytest.mark.parametrize("name", ["stages/gpt3-96-layers", "stages/gpt2-two-versions"])
def test_spreadsheets_have_every_digit_and_pages_every_stage(name: str, tmp_path: Path) -> None:
    target = tmp_path / "answer.json"
    assert main(["solve", str(INSTANCES / f"{name}.yaml"), "--out", str(target)]) == 0
    data = json.loads(target.read_text(encoding="utf-8"))
    values = {line["value"] for line in csv.DictReader(StringIO(tables_on("csv", [target])))}
    page_text = page_of(target)
    looked_at(page_text)
    assert len(re.findall(r'<th scope="row">stage \d+</th>', page_text)) == len(data["details"]["loads"])
    for load in data["details"]["loads"]:
        assert {repr(float(load[key])) for key in ("compute", "transfer", "total", "memory")} <= values
    assert {repr(baseline["value"]) for baseline in data["baselines"] if baseline["value"] is not None} <= values


@pytest.mark.process
def test_a_placement_is_shown_without_a_module_of_chips() -> None:
    """What all kinds share imports no kind."""
    loading = "import sys; from crossopt.reports.cli import main; main(sys.argv[1:])"
    listing = f"{loading}; print([name for name in sys.modules if '.codesign' in name])"
    command = [sys.executable, "-c", listing, "solve", "gpt3-13b-on-8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.splitlines()[-1] == "[]"
