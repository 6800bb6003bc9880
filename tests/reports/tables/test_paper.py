"""Tables for papers: the same figures in each form, words of others that can do nothing, and bounds that no rounding raises."""

import csv
import re
import shutil
import subprocess
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from crossopt.reports.commands.report import runs_on, tables_on
from crossopt.reports.render.paper import COLUMN, FORMATS, GAP, LINE, escape_signs, paper, width
from crossopt.reports.render.tables import Digest, Table
from crossopt.reports.sheets.sheet import Bound
from tests.paths import ROOT

HOSTILE = r'\input{x} & 50% of $5_a^b ~#{} <b> "q" | `c` *d* é 中 · mm^2'


def digest(name: str = "a question", rows: int = 2, words: str = "a design") -> Digest:
    table = Table(
        "Where it goes", ("use", "seconds", "bound"), tuple((f"{words} {row}", 1.0 / 3.0, Bound(2.0 / 3.0)) for row in range(rows))
    )
    gap = 1.0 - (2.0 / 3.0) / 0.7
    return Digest(name, "step time", "s", 0.7, 2.0 / 3.0, gap, "not proved", "a solver", "boxes", 1.5, words, (("x", "y"),), (table,))


def specials(latex: str) -> list[str]:
    """Signs of a cell that LaTeX would take for commands of its own."""
    known = (
        r"\\(?:[{}$&#_%]|text(?:backslash|asciicircum|asciitilde|less|greater|bar)\{\}|[`'^~\"cvr]\{[A-Za-z]\}|(?:ldots|[a-zA-Z]{1,2})\{\})"
    )
    left = re.sub(rf"{known}|\$\^[23]\$|\$\\(?:cdot|times|mu|leq|geq|rightarrow)\$", "", latex)
    return re.findall(r"[\\{}$&#^_%<>|\"]|[^\x20-\x7e]", left)


def test_a_bound_that_is_the_value_reads_as_it_does_and_others_are_below() -> None:
    table = Table("Runs", ("run", "value", "bound"), (("met", 7.06064466, Bound(7.06064466)), ("open", 7.06064466, Bound(7.06064465))))
    text = paper("latex", [replace(digest(), tables=(table,))], ["a.json"])
    assert r"met & 7.061 & 7.061 \\" in text
    assert r"open & 7.061 & 7.060 \\" in text or r"open & 7.061 & 7.06 \\" in text


@pytest.mark.process
@pytest.mark.parametrize(("columns", "rules"), [("onecolumn", ""), ("twocolumn", r"\usepackage{booktabs}")])
def test_every_table_is_typeset_in_one_column_and_in_two(columns: str, rules: str, tmp_path: Path) -> None:
    program = shutil.which("pdflatex")
    if program is None:
        pytest.skip("there is no pdflatex on this machine")
    text = tables_on(
        "latex", [ROOT / f"reports/gallery/{name}.json" for name in ("joint-vs-single-layer", "quickstart", "gather-two-boxes")]
    )
    lines = [rf"\documentclass[{columns}]{{article}}", rules, r"\begin{document}", text, r"\end{document}"]
    (tmp_path / "paper.tex").write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run([program, "-interaction=batchmode", "-halt-on-error", "paper"], cwd=tmp_path, check=False, timeout=60)
    log = (tmp_path / "paper.log").read_text(encoding="latin-1")
    assert done.returncode == 0, log
    assert not re.findall("Overfull|too large|multiply defined", log)


def test_a_study_begins_with_one_table_that_fits_a_column_and_names_it_once() -> None:
    text = tables_on("latex", [ROOT / "reports/gallery/joint-vs-single-layer.json"])
    captions = re.findall(r"\\begin\{(table\*?)\}.*\n\\caption\{(.*)\}\\label\{tab:joint-vs-single-layer-", text)
    assert list(dict.fromkeys(words.partition(" ")[0] for _, words in captions)) == ["Chip", "Engines", "Above", "Ranges", "Seconds"]
    assert captions[0][0] == "table"
    assert text.count("Chip and plan together") == 1
    assert "% Runs: left out, as a paper has no room for " in text


def test_columns_that_tell_nothing_are_left_out() -> None:
    table = Table("Runs", ("run", "value", "bound", "note"), (("a", 1.0, None, ""), ("b", 2.0, None, "")))
    assert r"run & value \\" in paper("latex", [replace(digest(), tables=(table,))], ["a.json"])


@given(some.text(max_size=60))
def test_words_print_as_they_are_and_do_nothing(text: str) -> None:
    assert specials(escape_signs("".join(sign if sign.isprintable() else " " for sign in text))) == []


def test_hostile_words_are_escaped() -> None:
    latex = escape_signs(HOSTILE)
    assert specials(latex) == []
    assert latex.startswith(r"\textbackslash{}input\{x\} \& 50\% of \$5\_a")
    assert r"\'{e} [U+4E2D] $\cdot$ mm$^2$" in latex


def test_every_row_of_a_tabular_has_as_many_cells_as_columns() -> None:
    text = paper("latex", [digest(words=HOSTILE), digest("another & one")], ["a.json", "b.json"])
    tabulars = re.findall(r"(?s)\\begin\{tabular\}\{((?:[lr]|p\{[\d.]+\\linewidth\})+)\}(.*?)\\end\{tabular\}", text)
    assert len(tabulars) == len(re.findall(r"\\begin\{table\*?\}", text)) == len(re.findall(r"\\end\{table\*?\}", text)) == 4
    for kinds, body in tabulars:
        columns = len(re.findall(r"[lr]|p\{[^}]*\}", kinds))
        rows = [row for row in body.strip().splitlines() if not row.endswith("rule")]
        assert all(row.endswith((r" \\", r" \tabularnewline")) for row in rows)
        assert all(len(re.findall(r"(?<!\\)&", row)) == columns - 1 for row in rows)
        assert re.findall(r"\\(\w+rule)", body) == ["toprule", "midrule", "bottomrule"]
    labels = re.findall(r"\\label\{(tab:[a-z0-9-]+)\}", text)
    assert len(set(labels)) == len(tabulars)
    assert r"\providecommand{\toprule}{\hline}" in text


ENGINES = ("boxes", "megatron", "pipedream-flush", "hardware-only", "plan-only", "descent", "genetic", "gradient", "random", "alternating")


def widths(latex: str) -> list[tuple[float, float]]:
    """Points that each tabular takes by its longest cells, in letters of Computer Modern, and those that its place has."""
    found = []
    whole = r"(?s)\\begin\{(table\*?)\}.*?\\begin\{tabular\}\{((?:[lr]|p\{[\d.]+\\linewidth\})+)\}(.*?)\\end\{tabular\}"
    for place, kinds, body in re.findall(whole, latex):
        rows = [
            re.sub(r" (\\\\|\\tabularnewline)$", "", row).split(" & ") for row in body.strip("\n").splitlines() if not row.endswith("rule")
        ]
        columns = zip(re.findall(r"[lr]|p\{[\d.]+", kinds.replace(r"\linewidth", "")), zip(*rows, strict=True), strict=True)
        line = LINE if place == "table*" else COLUMN
        taken = (line * float(kind[2:]) if kind[0] == "p" else max(map(width, cells)) for kind, cells in columns)
        found.append((sum(GAP + points for points in taken), line))
    return found


@pytest.mark.parametrize("name", ["a question", "a question of which there is much to be said, and of its chips"])
def test_tables_with_many_engines_fit_the_sheet_and_lose_nothing(name: str) -> None:
    figures = tuple(map(float, range(100, 110)))
    table = Table("Above the best bound in %", ("question", "unit", "best", *ENGINES), ((name, "s", 1.23456, *figures),))
    latex = paper("latex", [replace(digest(), tables=(table,))], ["a.json"])
    own = "".join(part for part in re.split(r"\n\n", latex) if "Above the best bound" in part)
    assert all(taken <= line for taken, line in widths(own))
    assert own.count(r"\begin{tabular}") > 1
    assert own.count(name) >= own.count(r"\begin{tabular}")
    assert all(own.count(f" {engine} ") == 1 for engine in ENGINES if "-" not in engine)
    assert own.count(" pipedream- ") == own.count(" hardware- ") == 1
    assert all(own.count(f" {figure} ") == 1 for figure in range(100, 110))


def test_a_row_is_told_by_all_its_words_on_every_sheet() -> None:
    rows = (("the first question of many", "pipedream-flush", "0", 1.23456, 1.23456, "s", "not proved", "a note", 0.123456),)
    runs = Table(
        "Runs", ("question", "engine", "seed", "value", "bound", "unit", "proof of the value", "what else there is", "seconds"), rows
    )
    own = paper("latex", [replace(digest(), tables=(runs,))], ["a.json"]).partition("Runs (1 of")[2]
    assert own.count("the first question of many & pipedream-flush & 0 & ") == own.count(r"\begin{tabular}") > 1


def test_long_tables_are_cut_into_sheets() -> None:
    text = paper("latex", [digest(rows=75)], ["a.json"])
    assert [f"({number} of 2)" in text for number in (1, 2)] == [True] * 2
    assert text.count("a design") == 76
    assert "Where it goes: left out, as a paper has no room for 81 rows; --as csv has them." in paper(
        "latex", [digest(rows=81)], ["a.json"]
    )


@pytest.mark.parametrize("form", FORMATS)
def test_bounds_are_never_rounded_up(form: str) -> None:
    text = paper(form, [digest()], ["a.json"])
    told = [float(found) for found in re.findall(r"0\.666\d*", text)]
    assert len(told) == 3
    assert all(bound <= 2.0 / 3.0 for bound in told)
    assert (max(told) == 2.0 / 3.0) == (form == "csv")


@pytest.mark.parametrize("form", FORMATS)
def test_every_form_has_every_figure(form: str) -> None:
    text = paper(form, [digest("first"), digest("second", words="=1+1")], ["a.json", "b.json"])
    for word in ("first", "second", "boxes", "not proved", "a solver", "step time", "0.7", "0.333"):
        assert word in text
    assert text == paper(form, [digest("first"), digest("second", words="=1+1")], ["a.json", "b.json"])
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_csv_is_one_table_with_every_digit_and_no_formula() -> None:
    lines = list(csv.DictReader(StringIO(paper("csv", [digest(words='=cmd|"x", y')], ["a.json"]))))
    assert {tuple(line) for line in lines} == {("result", "table", "row", "column", "value")}
    figures = {(line["table"], line["row"], line["column"]): line["value"] for line in lines}
    assert float(figures["Results", "", "bound"]) == 2.0 / 3.0
    assert figures["Answers and proofs", "", "answer"] == '\'=cmd|"x", y'
    assert not any(value.startswith(("=", "+", "@")) for line in lines for value in line.values())


def test_markdown_and_text_stay_in_their_columns() -> None:
    markdown = paper("markdown", [digest(words=HOSTILE)], ["a.json"])
    for block in markdown.split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1
    text = paper("text", [digest("\x1b[31mred")], ["a.json"])
    assert "\x1b" not in text


def test_results_of_one_question_are_told_apart() -> None:
    same = paper("csv", [digest("q"), digest("q"), digest("r")], ["a.json", "b.json", "c.json"])
    names = {line["result"] for line in csv.DictReader(StringIO(same))}
    assert names == {"q (a.json)", "q (b.json)", "r"}
    twice = paper("csv", [digest("q"), digest("q")], ["a.json", "a.json"])
    assert {line["result"] for line in csv.DictReader(StringIO(twice))} == {"q (a.json) 1", "q (a.json) 2"}


def test_quotes_open_and_close() -> None:
    assert escape_signs('a "quoted" word and "more') == "a ``quoted'' word and ``more"


@pytest.mark.parametrize(
    ("form", "value", "below"), [("latex", "0.6667", "0.6666"), *((form, "0.666667", "0.666666") for form in ("markdown", "text"))]
)
def test_equal_figures_look_equal_and_other_bounds_are_lowered(form: str, value: str, below: str) -> None:
    proved = replace(digest(), value=2.0 / 3.0, bound=2.0 / 3.0, gap=0.0, tables=())
    open_ = replace(proved, bound=2.0 / 3.0 - 1e-9)
    for one, wanted in ((proved, [value, value]), (open_, [value, below])):
        row = next(line for line in paper(form, [one], ["a.json"]).splitlines() if "boxes" in line and value in line)
        assert re.findall(r"0\.666\d+", row) == wanted
    assert (proved.value_words, proved.bound_words) == ("0.666667 s", "0.666667 s")
    assert open_.bound_words == "0.666666 s"


def test_runs_have_their_designs_setting_by_setting_with_units() -> None:
    rows = list(csv.DictReader(StringIO(runs_on([ROOT / "reports/gallery/joint-vs-single-layer.json"]))))
    best = next(row for row in rows if row["engine"] == "boxes")
    assert (best["chip.compute_area in m^2"], best["chip.compute_power in W"], best["plan.data"]) == ("0.00044", "240.0", "64")
    settings = [name.partition(".")[0] for name in rows[0] if "." in name]
    assert settings == sorted(settings), "chips before plans"


def test_limits_are_figures_with_their_unit_in_the_head_for_programs_and_words_for_readers() -> None:
    result = ROOT / "reports/gallery/quickstart.json"
    rows = [row for row in csv.DictReader(StringIO(tables_on("csv", [result]))) if row["table"] == "Limits"]
    figures = {(row["row"], row["column"]): float(row["value"]) for row in rows}
    assert figures["power", "available in W"] == 400.0
    assert figures["die area", "available in m^2"] == pytest.approx(815e-6)
    for limit in ("power", "die area"):
        used, available = (
            next(figures[key] for key in figures if key[0] == limit and key[1].startswith(f"{head} in ")) for head in ("used", "available")
        )
        assert figures[limit, "share in %"] == pytest.approx(100.0 * used / available)
    assert re.search(r"^\| die area \| [\d.]+ mm.{0,2}2 \| 815 mm", tables_on("markdown", [result]), flags=re.MULTILINE)
