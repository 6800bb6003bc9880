"""Caveats of a design: each is a function in one list, and every medium shows all that apply."""

import re
from dataclasses import replace
from html import unescape

import pytest

from crossopt.instances.codesign.question import read_instance
from crossopt.reports import shown
from crossopt.reports.render.html import html, page
from crossopt.reports.render.tables import digest
from crossopt.reports.render.terminal import terminal
from crossopt.reports.sheets.codesign import caveats
from crossopt.reports.sheets.codesign.caveats import CAVEATS, Context, Note, caveats_of, caveats_section
from crossopt.reports.sheets.codesign.several import sheet
from crossopt.reports.sheets.sheet import Picture, Section, Table, names
from tests.paths import INSTANCES
from tests.reports.answers import answered, design_of, evaluation_of

QUESTIONS = {"bought": (), "stack": ("stack=megatron-core",), "energy": ("objective=energy_per_token",)}


def plain(text: str) -> str:
    """Words without tags and breaks."""
    return " ".join(
        unescape(re.sub(r"<[^>]*>", " ", text)).replace("\N{NO-BREAK SPACE}", " ").replace("\N{NON-BREAKING HYPHEN}", "-").split()
    )


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_medium_shows_every_caveat_that_applies(name: str) -> None:
    question = read_instance(INSTANCES / "tiny.yaml", QUESTIONS[name])
    result = answered(question)
    notes = list(caveats_of(Context(question, design_of(result), evaluation_of(result), result)))
    assert {"priced by", "measured runs"} <= {note.label for note in notes}
    drawn = sheet(question, result)
    for text in (terminal(drawn), page(html(drawn, {}))):
        told = plain(text).replace("mm²", "mm^2").replace("` ", "`").replace(" `", "`")
        for note in notes:  # wrapped lines and marks apart
            assert " ".join(note.text.split()).replace("` ", "`").replace(" `", "`").replace("`", "") in told.replace("`", "")

    [table] = [table for table in digest(drawn).tables if table.title == "Caveats"]  # which CSV, Markdown and LaTeX write
    assert list(table.rows) == [(note.label, note.text) for note in notes]


def test_a_caveat_that_is_added_to_the_list_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    question = read_instance(INSTANCES / "tiny.yaml")
    result = answered(question)
    monkeypatch.setattr(caveats, "CAVEATS", (*CAVEATS, lambda context: Note("new", f"{context.question.name} has a new caveat")))
    assert "tiny has a new caveat" in plain(terminal(sheet(question, result)))
    assert "tiny has a new caveat" in plain(page(html(sheet(question, result), {})))


def test_what_several_designs_share_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    question = read_instance(INSTANCES / "tiny.yaml")
    result = answered(question)
    one = Context(question, design_of(result), evaluation_of(result), result)
    other = replace(one, question=replace(question, name="another"))
    own = (lambda context: Note("shared", "the same"), lambda context: Note("own", context.question.name))
    monkeypatch.setattr(caveats, "CAVEATS", own)
    [table] = caveats_section([("first", one), ("second", other)]).parts
    assert isinstance(table, Table)
    assert [column.texts for column in table.columns] == [("shared", "own, first", "own, second"), ("the same", "tiny", "another")]


def broken(titles: object) -> str:
    raise RuntimeError("no ink")


def test_a_part_that_cannot_be_drawn_costs_nothing_else() -> None:
    question = read_instance(INSTANCES / "tiny.yaml")
    result = answered(question)
    uneven = Table((names("a", ("1", "2")), names("b", ("1",))))
    parts = (Section("Broken", (Picture(broken, "", ""), uneven)), Section("Whole", ("A sentence.",)))
    drawn = replace(sheet(question, result), sections=parts)
    for text in (terminal(drawn), page(html(drawn, {}))):
        assert "could not be drawn" in plain(text)
        assert "A sentence." in text
    assert "no ink" in page(html(drawn, {}))


def test_a_sheet_that_cannot_be_made_costs_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    question = read_instance(INSTANCES / "tiny.yaml")
    result = answered(question)
    monkeypatch.delenv("CROSSOPT_DEBUG", raising=False)
    monkeypatch.setattr(caveats, "CAVEATS", (broken,))
    text = plain(shown.text_of("codesign", question, result))
    assert "the sheet of this kind could not be drawn (RuntimeError: no ink); the plain sheet is shown instead" in text
    assert f"{result.value:.7g} s" in text
    monkeypatch.setenv("CROSSOPT_DEBUG", "1")
    with pytest.raises(RuntimeError, match="no ink"):
        shown.text_of("codesign", question, result)


def test_a_free_chip_without_nodes_is_a_caveat_unless_the_question_says_so() -> None:
    found = []
    for setting in ("cluster={devices: 8}", "cluster={devices: 8, devices_per_node: 1}", "cluster={devices: 1}"):
        question = read_instance(INSTANCES / "quickstart.yaml", (setting,))
        found.append(caveats.no_nodes(Context(question, None, None)))  # type: ignore[arg-type]
    assert [note is not None for note in found] == [True, False, False]
