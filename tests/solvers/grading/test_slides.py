"""The decks of the course: ten slides each with notes, answers of the solutions below calls, and figures that commands print."""

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crossopt.reports.cli import main
from crossopt.solvers.grading.grade import ASSIGNMENTS, SOLUTIONS
from crossopt.solvers.grading.marks import HANDOUTS, Assignment
from tests.solvers.grading.mistakes import solution_of
from tests.test_readmes import Shown, lines_of, shown

pytestmark = pytest.mark.course

each = pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda one: one.name)
CALL = re.compile(r"^>>> (.+)\n((?:(?!>>>|```).+\n)*)", re.MULTILINE)
NOTES = re.compile(r"<!--(.*?)-->\s*$", re.DOTALL)


def deck_of(assignment: Assignment) -> Path:
    return SOLUTIONS / assignment.name / "slides.md"


def slides_of(assignment: Assignment) -> list[str]:
    return deck_of(assignment).read_text(encoding="utf-8").split("\n---\n")


@each
def test_a_deck_has_ten_slides_to_see_and_notes_to_say(assignment: Assignment) -> None:
    """Each has a title, fits a screen, and says in its notes what to say; some ask the class, and the notes have the answer."""
    slides = slides_of(assignment)
    assert len(slides) == 10
    for slide in slides:
        seen = NOTES.sub("", slide).strip()
        assert seen.startswith("# ")
        assert len(seen.splitlines()) <= 20
        notes = NOTES.search(slide)
        assert notes is not None
        assert len(notes[1].split()) >= 15
    asked = [slide for slide in slides if "*Ask:*" in slide]
    assert len(asked) >= 3
    assert all("Answer:" in slide for slide in asked)
    assert any("by hand" in slide.strip().splitlines()[0].lower() for slide in slides)


def calls_in(assignment: Assignment) -> Iterator[tuple[str, str]]:
    """Calls in the deck, one after the other, with what is said to come of them."""
    return ((call, said.strip()) for call, said in CALL.findall(deck_of(assignment).read_text(encoding="utf-8")))


@each
def test_what_stands_below_a_call_is_what_the_solution_returns(assignment: Assignment) -> None:
    names: dict[str, Any] = {"__name__": "solution", "__file__": str(SOLUTIONS / assignment.name / "solution.py")}
    exec(compile(solution_of(assignment), "solution.py", "exec"), names)  # noqa: S102 - the project's own program
    wrong = {}
    for call, said in calls_in(assignment):
        if not said:
            exec(call, names)  # noqa: S102 - a name that later calls use
        elif (returned := eval(call, names)) != ast.literal_eval(said):  # noqa: S307 - the project's own deck
            wrong[call] = returned
    assert wrong == {}


def commands_of(assignment: Assignment) -> list[Shown]:
    return [item for item in shown(deck_of(assignment)) if isinstance(item, Shown)]


@pytest.mark.slow
@each
def test_commands_of_a_deck_print_the_lines_below_them(
    assignment: Assignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a copy of the handout's folder, as the lecturer runs them."""
    folder = tmp_path / assignment.name
    shutil.copytree(HANDOUTS / assignment.name, folder)
    monkeypatch.chdir(folder)
    wrong = {}
    for command in commands_of(assignment):
        assert main(list(command.words)) == command.code
        printed = capsys.readouterr()
        if unseen := lines_of("\n".join(command.lines)) - lines_of(printed.out + printed.err):
            wrong[command.text] = unseen
    assert wrong == {}


def test_most_decks_show_what_the_tool_prints() -> None:
    assert sum(bool(commands_of(one)) for one in ASSIGNMENTS) >= 8
