"""The command `report`: one page that stands on its own, the same bytes for the same result, and one sentence where there is no page."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.catalogue.registry import technology
from crossopt.instances.codesign.question import read_question
from crossopt.reports.cli import main
from crossopt.reports.commands.report import page_of
from crossopt.reports.facts.design import chip_of, stages_of
from crossopt.reports.facts.question import text_of_question
from crossopt.reports.render.html import text_html
from crossopt.solvers.answer import result_in
from crossopt.solvers.codesign.answer import Designs, EvaluatedDesigns
from tests.paths import INSTANCES, ROOT
from tests.reports.answers import design_of, evaluation_of, saved
from tests.reports.look import embedded, faults_in_a_browser, looked_at
from tests.solvers.codesign.questions import GEMM, LSTM
from tests.work import calls_in

GALLERY = ROOT / "reports/gallery"
LARGEST = 500_000
CLASH = "budget.die_area=100 mm^2"


def solved(folder: Path, question: Path | str, *options: str) -> Path:
    """The file of a result."""
    asked = question
    if isinstance(question, str):
        asked = folder / "question.yaml"
        asked.write_text(question, encoding="utf-8")
    target = folder / "answer.json"
    main(["solve", str(asked), "--out", str(target), *options])
    return target


@cache
def quickstart() -> str:
    """The page of the shipped result."""
    return page_of(GALLERY / "quickstart.json")


def stored() -> dict[str, Any]:
    data: dict[str, Any] = json.loads((GALLERY / "quickstart.json").read_text(encoding="utf-8"))
    return data


def written(folder: Path, data: object) -> Path:
    path = folder / "edited.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_a_page_says_all_that_is_asked_of_it() -> None:
    page = quickstart()
    seen = looked_at(page)
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert titles == [
        *("The design", "Estimates", "Where the step goes", "Limits", "Baselines", "Designs nearly as good", "Caveats"),
        *("Combinations of settings", "Notes", "One step over time", "Roofline", "How the network is used"),
        *("The chip from above", "Die area", "Power", "Options of designs within 5 %", "How the search closed in"),
        *("Assumptions", "The question", "How this is known"),
    ]
    assert f"{len(technology('accelerator-7nm').sources)} lines, of which" in page
    assert all(text_html(words) in page for words in technology("accelerator-7nm").sources.values())
    assert len(seen.pictures) == 13
    assert "script" not in seen.tags
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page
    assert len(page.encode("utf-8")) < LARGEST


def test_the_result_in_a_page_is_the_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = embedded(quickstart())
    assert data == stored()
    assert main(["check", str(written(tmp_path, data))]) == 0
    assert "accepted" in capsys.readouterr().out


QUESTIONS = {
    "given device": (INSTANCES / "tiny.yaml", ()),
    "boxes": (INSTANCES / "quickstart.yaml", ("--engine", "boxes")),
    "no proof": (INSTANCES / "small.yaml", ("--engine", "recipes")),
    "lstm": (LSTM, ()),
    "gemm": (GEMM, ()),
    "other objective": (INSTANCES / "tiny.yaml", ("--set", "objective=energy_per_token")),
    "no design": (INSTANCES / "quickstart.yaml", ("--set", CLASH)),
    "no design by boxes": (INSTANCES / "quickstart.yaml", ("--set", CLASH, "--engine", "boxes")),
    "one design": (INSTANCES / "tiny.yaml", tuple(f"--set={one}" for one in ("tensor=4", "pipeline=1", "microbatch=2", "recompute=none"))),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_kind_of_answer_has_its_page(name: str, tmp_path: Path) -> None:
    question, options = QUESTIONS[name]
    result = solved(tmp_path, question, *options)
    page = page_of(result)
    assert page == page_of(result)
    looked_at(page)
    assert embedded(page) == json.loads(result.read_text(encoding="utf-8"))
    proved = json.loads(result.read_text(encoding="utf-8"))["proved"]
    assert (">not proved<" in page) == (not proved)


def test_words_of_a_question_cannot_act(tmp_path: Path) -> None:
    name = '<script>alert("x")</script><img src=y onerror=z>'
    text = (INSTANCES / "tiny.yaml").read_text(encoding="utf-8").replace("gpt3-125m", "gpt3-125m", 1)
    path = tmp_path / "question.yaml"
    path.write_text(f"{text}description: '{name}'\n" if "description" not in text else text, encoding="utf-8")
    result = solved(tmp_path, path)
    data = json.loads(result.read_text(encoding="utf-8"))
    data["versions"]["solver"] = f"</pre>{name}"
    page = page_of(written(tmp_path, data))
    assert not looked_at(page).tags & {"script", "img"}
    assert embedded(page) == data


@pytest.mark.browser
def test_a_page_lays_out_without_overlaps(tmp_path: Path) -> None:
    page = quickstart()
    assert faults_in_a_browser(page, tmp_path, 500) == []


# --- what the model adds -------------------------------------------------------------------------------------------------------------


def test_areas_powers_and_bytes_add_up_to_the_evaluation() -> None:
    result = result_in(stored(), Designs, EvaluatedDesigns)
    design, evaluation = design_of(result), evaluation_of(result)
    question = read_question(result.question)
    chip, stages = chip_of(question, design), stages_of(question, design)
    assert sum(area for _, area in chip.areas) == pytest.approx(evaluation.die_area, rel=1e-12)
    assert chip.watts is not None
    assert chip.watts.kinds[0].total == pytest.approx(evaluation.power, rel=1e-12)
    fullest = max(stages, key=lambda stage: sum(size for _, size in stage))
    assert dict(fullest) == pytest.approx(evaluation.memory)
    assert len(stages) == design.plan.pipeline


def test_a_die_that_is_larger_than_its_parts_says_so(tmp_path: Path) -> None:
    settings = ("choices.die_area=815 mm^2", "compute_area=460 mm^2", "compute_power=140 W", "l2_area=50 mm^2", "hbm_stacks=4")
    result = solved(tmp_path, INSTANCES / "quickstart.yaml", *(f"--set={one}" for one in settings))
    found = saved(result)
    areas = chip_of(read_question(found.question), design_of(found)).areas
    assert dict(areas)["filler"] > 0.0
    assert sum(area for _, area in areas) == pytest.approx(evaluation_of(found).die_area, rel=1e-12)


def test_the_question_in_words_names_what_is_given_and_what_is_open() -> None:
    asked = text_of_question(read_question(stored()["question"]))
    assert (
        asked.sentence
        == "Which chip of accelerator-7nm and which plan train gpt3-13b on 64 devices with the least time for a training step?"
    )
    assert dict(asked.terms)["devices"] == "64, in groups of 8"
    assert [name for name, _ in asked.open][:2] == ["compute_area", "l2_area"]


# --- what is refused -----------------------------------------------------------------------------------------------------------------


def test_the_page_is_written_beside_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(GALLERY / "quickstart.json")]) == 0
    assert "quickstart.html" in capsys.readouterr().out
    page = (tmp_path / "quickstart.html").read_text(encoding="utf-8")
    assert page == quickstart()
    assert main(["report", str(GALLERY / "quickstart.json"), "--out", "-"]) == 0
    assert capsys.readouterr().out == page


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ('{"a": 1}', "not a result of format"),
        ("[1, 2]", "not a result of format"),
        ('{"format": 1, "name": "x"}', "this is not a result of format 3 (solve the question again"),
        ('{"format": 1, "instance": {}, "design": null}', "this is not a result of format 3 (solve the question again"),
        ('{"format": 3, "name": "x"}', "this key is"),
        ('{"format": 3, "kind": "codesign", "name": "x"}', "this key is"),
        ('{"kind": "chess"}', "chess"),
        ('{"format": 0}', "not a result of format"),
        ('{"format": 4}', "another version wrote this file: its format is 4"),
        ('{"kind": "placement", "format": 4, "question": {}}', "another version wrote this file: its format is 4"),
        ('{"kind": "placement", "format": 1, "instance": {}}', "this is not a result of format 3 (solve the question again"),
    ],
)
def test_what_is_no_result_is_refused_in_a_sentence(text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = tmp_path / "foreign.json", tmp_path / "page.html"
    path.write_text(text, encoding="utf-8")
    assert main(["report", str(path), "--out", str(target)]) == 3
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said
    assert said.splitlines()[1:] == ["1 fault, nothing read"]
    assert not target.exists()


def test_a_page_in_place_of_its_result_is_no_json_and_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("all.html").write_text("<html></html>", encoding="utf-8")
    assert main(["report", "all.html"]) == 3
    assert "all.html:1:1: this is a web page, not a result" in capsys.readouterr().err
    assert main(["solve", "tiny", "--out", "answer.html"]) == 0
    before = Path("answer.html").read_bytes()
    with pytest.raises(SystemExit):
        main(["report", "answer.html"])
    assert "--out answer.html: this file is read, and would be written over (name another file)" in capsys.readouterr().err
    assert Path("answer.html").read_bytes() == before


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "none.json"), "--out", str(tmp_path / "page.html")]) == 3
    assert "none.json" in capsys.readouterr().err


def test_the_result_is_not_overwritten(tmp_path: Path) -> None:
    path = written(tmp_path, stored())
    with pytest.raises(SystemExit) as end:
        main(["report", str(path), "--out", str(path)])
    assert end.value.code == 2
    assert json.loads(path.read_text(encoding="utf-8")) == stored()


@pytest.mark.slow
def test_the_largest_question_that_comes_along_is_drawn_at_once(tmp_path: Path) -> None:
    result = solved(tmp_path, INSTANCES / "gpt3-175b-pathfinding-large.yaml", "--gap", "10%")
    pages: list[str] = []
    assert calls_in(lambda: pages.append(page_of(result))) < 1_500_000, "630 thousand, half a second, when this was written"
    assert len(pages[0].encode("utf-8")) < LARGEST


def forged(folder: Path) -> Path:
    """A result whose tree of cuts proves nothing, which only going down the tree again shows."""
    data = json.loads((GALLERY / "gpt3-175b-pathfinding-large.json").read_text(encoding="utf-8"))
    tree = data["proof"]["tree"]
    tree |= {"cuts": [None], "boxes": 1, "promising": [0]}
    data["proof"]["by"] = f"monotone branch and bound: 1 box of {tree['designs']:,} designs"
    return written(folder, data)


def test_a_proof_that_is_not_carried_out_is_drawn_as_what_the_file_says(tmp_path: Path) -> None:
    page = page_of(forged(tmp_path))
    box = page[(start := page.index('<div class="proof')) : page.index("In more digits", start)]
    assert '<span class="badge stated">proved optimal</span>' in box
    assert box.startswith('<div class="proof stated">')
    assert "The proof was not repeated here; run <code>crossopt check FILE</code> to verify this file." in box
    assert page.index(box) < page.index("<h2>")


def test_the_page_of_a_plan_begins_with_the_line_that_plan_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "plan.json"
    run = ("llama3-8b", "--gpus", "64xh100", "--tokens", "1T", "--deadline")
    for deadline, found in (("60d", r"[\d.]+ days on 64 h100-sxm, [\d,]+ USD"), ("9d", ".*times the deadline, proved.*")):
        main(["plan", *run, deadline, "--rent", "2.5", "--out", str(target)])
        printed = " ".join(capsys.readouterr().out.split("\n\n")[0].split()).removeprefix("llama3-8b-64xh100-sxm ")
        assert re.fullmatch(found, printed)
        page = page_of(target)
        assert page.index(f'<p class="answer">{printed} <span class="badge') < page.index("<dt>plan</dt>")
        assert "(9 of 10 runs, failures aside)" in page
        assert "meant to hold 9 of 10 runs like those that were measured" in page
        assert ('warn">deadline missed; proved optimal' in page, 'stated">proved optimal' in page) == (deadline == "9d", deadline == "60d")


@pytest.mark.parametrize(
    ("form", "first"),
    [
        ("text", "No proof was repeated here: verdicts are what the files state; `crossopt check FILE` repeats them."),
        ("markdown", "No proof was repeated here: verdicts are what the files state; `crossopt check FILE` repeats them."),
        ("latex", "% No proof was repeated here: verdicts are what the files state; `crossopt check FILE` repeats them."),
        ("csv", "result,table,row,column,value"),
    ],
)
def test_tables_say_first_that_no_proof_was_carried_out(form: str, first: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(forged(tmp_path)), "--as", form, "--out", "-"]) == 0
    told = capsys.readouterr().out
    assert told.splitlines()[0] == first
    assert told.count("not re-verified") == 1


def test_a_page_with_its_proof_carried_out_anew_says_so_and_refuses_what_a_check_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = page_of(GALLERY / "quickstart.json", check=True)
    assert '<div class="proof"><p><span class="badge good">proved optimal, checked here</span>' in page
    assert "The proof was repeated for this page." in page
    target = tmp_path / "page.html"
    assert main(["report", str(forged(tmp_path)), "--check", "--out", str(target)]) == 30
    assert "plans are not bounded by" in capsys.readouterr().err
    assert not target.exists()


def test_a_word_of_a_solver_stays_one_where_its_page_is_checked(tmp_path: Path) -> None:
    target = tmp_path / "told.json"
    assert main(["solve", "quickstart", "--engine", "milp", "--form", "log", "--out", str(target)]) == 0
    page = page_of(target, check=True)
    assert re.search('<div class="proof open"><p><span class="badge warn">[^<]*, solver-reported</span>', page)
    assert "The proof was not repeated here" in page


ENDED = {"run.md": "No proof", "run.csv": "result,table", "run.tex": "%", "run.html": "<!DOCTYPE", "run": "<!DOCTYPE"}


@pytest.mark.parametrize("name", ENDED)
def test_the_ending_of_the_file_says_what_is_written(name: str, tmp_path: Path) -> None:
    assert main(["report", str(GALLERY / "quickstart.json"), "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(ENDED[name])
