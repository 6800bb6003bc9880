"""Claims that were made up: a solver's word against a feasible question, blocks of other engines, counts that cannot be."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.codesign.instance import Instance
from crossopt.reports.cli import main
from crossopt.reports.commands.files import text_of
from crossopt.solvers.answer import Limits, Progress
from crossopt.solvers.codesign import blocks
from crossopt.solvers.codesign.check import check
from crossopt.solvers.codesign.engines import ENGINES, relaxation_proof, tree_proof
from crossopt.solvers.codesign.result import Relaxation, Result, Space, Tree
from tests.every import every
from tests.once import once
from tests.solvers.codesign.combined.test_devices import FIXED
from tests.solvers.codesign.questions import TINY_FREE, ask

NOTHING: dict[str, Any] = {
    **dict.fromkeys(("value", "bound", "gap", "design", "evaluation", "space", "tree"), None),
    **dict.fromkeys(("checks", "rivals", "trace", "conflicts"), ()),
    "status": "INFEASIBLE",
    "proved": True,
}
SOLVED = Relaxation("highs 1.12.0", 3, 10, "strong", 4)
MANY = Space(10**15, 7, 1, 1, 1, 0, 10**12, 1000)
IMPOSSIBLE = "budget.power=1 W"


def silent(progress: Progress) -> None:
    del progress


@once
def solved(instance: Instance, engine: str) -> Result:
    return ENGINES[engine](instance, Limits(), silent)


def without_design(instance: Instance, engine: str) -> Result:
    """A result that says on a solver's word that there is no design."""
    relaxation = replace(SOLVED, solver="cpsat 9.14" if engine == "cpsat" else SOLVED.solver)
    return replace(solved(instance, "boxes"), engine=engine, relaxation=relaxation, proved_by=relaxation_proof(relaxation), **NOTHING)


def written(folder: Path, result: Result) -> Path:
    path = folder / "answer.json"
    path.write_text(text_of(result), encoding="utf-8")
    return path


@pytest.mark.parametrize("engine", ["milp", "cpsat"])
def test_that_there_is_no_design_is_refuted_by_a_design(engine: str) -> None:
    report = check(without_design(ask(TINY_FREE), engine), silent)
    assert any(reason.startswith("there is a design of") for reason in report.refused)


@pytest.mark.parametrize("engine", ["milp", "cpsat"])
def test_that_there_is_no_design_is_proved_anew_or_told(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where boxes come to an end it is proved; where they have no time it is the solver's word, in the last line too."""
    claim = without_design(ask(TINY_FREE, IMPOSSIBLE), engine)
    monkeypatch.setattr("crossopt.solvers.codesign.check._LOOK", float("inf"))
    report = check(claim, silent)
    assert report.refused == ()
    assert not report.told
    monkeypatch.setattr("crossopt.solvers.codesign.check._LOOK", -1.0)
    report = check(claim, silent)
    assert (report.refused, report.told) == ((), True)
    assert main(["check", str(written(tmp_path, claim))]) == 0
    assert capsys.readouterr().out.endswith("accepted, but for the bound, which is told and not proved anew\n")
    assert main(["report", str(written(tmp_path, claim)), "--out", "-"]) == 0
    page = capsys.readouterr().out
    assert "told: no design" in page
    assert "by the word of" in page
    assert "proved: no design" not in page


def test_what_a_solver_tells_is_not_called_proved_on_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = solved(ask(TINY_FREE), "milp")
    assert result.proved
    assert main(["report", str(written(tmp_path, result)), "--out", "-"]) == 0
    page = capsys.readouterr().out
    assert "as told" in page
    assert "proved optimal" not in page
    assert "proved within" not in page


@every(
    ("engine", "change", "said"),
    [
        ("boxes", {"space": MANY}, "space: the engine boxes does not count all designs"),
        ("milp", {"space": MANY}, "space: the engine milp does not count all designs"),
        ("expert", {"space": MANY}, "space: the engine expert does not count all designs"),
        ("exhaustive", {"tree": Tree(10, 2, 5, 1, 1, 1, (None,))}, "tree: the engine exhaustive cuts no boxes"),
        ("expert", {"tree": Tree(10, 2, 5, 1, 1, 1, (None,))}, "tree: the engine expert cuts no boxes"),
        ("boxes", {"relaxation": SOLVED}, "relaxation: the engine boxes solves none"),
        ("local", {"relaxation": SOLVED}, "relaxation: the engine local solves none"),
        ("boxes", {"tree": None}, "a proof by boxes needs the tree of its cuts"),
        ("exhaustive", {"space": None}, "a proof by enumeration needs its counts"),
        ("milp", {"relaxation": None}, "a bound by a solver needs the relaxation that it solved"),
        ("milp", {"proved_by": "enumeration"}, "proved_by: it is "),
        ("boxes", {"proved_by": "enumeration"}, "proved_by: it is "),
        ("exhaustive", {"proved_by": "boxes"}, "proved_by: it is "),
        ("milp", {"relaxation": replace(SOLVED, solver="cpsat 9.14")}, "engine: milp does not solve by cpsat 9.14"),
        ("milp", {"relaxation": replace(SOLVED, plans=10**15)}, "relaxation: such numbers cannot be"),
    ],
)
def test_blocks_of_others_are_neither_accepted_nor_drawn(
    engine: str, change: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = replace(solved(ask(TINY_FREE), engine), **change)
    assert any(reason.startswith(said) for reason in check(forged, silent).refused)
    assert main(["report", str(written(tmp_path, forged)), "--out", str(tmp_path / "page.html")]) == 30
    assert "verification failed" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


@every("field", ["designs", "hardware_points", "plans", "boxes"])
@every("engine", ["exhaustive", "boxes"])
def test_counts_are_counted_anew_before_they_are_drawn(engine: str, field: str, tmp_path: Path) -> None:
    """Also where the words of the proof were made to fit."""
    result = solved(ask(TINY_FREE), engine)
    block = result.space or result.tree
    if block is None or not hasattr(block, field):
        return
    changed: dict[str, Any] = {field: getattr(block, field) + 1}
    more = replace(block, **changed)
    words = tree_proof(more) if isinstance(more, Tree) else f"exhaustive enumeration of {more.designs:,} designs"
    changed = {"tree" if isinstance(more, Tree) else "space": more}
    forged = replace(result, proved_by=words, **changed)
    assert not check(forged, silent).accepted
    assert main(["report", str(written(tmp_path, forged)), "--out", str(tmp_path / "page.html")]) == 30


def test_the_counts_of_an_unproved_enumeration_are_possible_ones() -> None:
    def impatient(progress: Progress) -> None:
        raise KeyboardInterrupt

    instance = ask(TINY_FREE)
    cut_short = ENGINES["exhaustive"](instance, Limits(), impatient)
    assert not cut_short.proved
    assert check(cut_short, silent).accepted
    assert not check(replace(cut_short, space=MANY), silent).accepted
    assert cut_short.space is not None
    assert not check(replace(cut_short, space=replace(cut_short.space, feasible=cut_short.space.designs + 1)), silent).accepted


def test_plans_are_counted_only_where_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = ask(TINY_FREE)
    result = solved(instance, "exhaustive")
    assert result.space is not None
    assert blocks.plans_of(instance) == result.space.plans
    monkeypatch.setattr(blocks, "_FEW", 0)
    assert blocks.plans_of(instance) is None
    assert blocks.block_faults(result, instance) == []


def test_answers_for_several_numbers_of_devices_say_what_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question, target = tmp_path / "question.yaml", tmp_path / "answer.json"
    question.write_text(FIXED, encoding="utf-8")
    for engine, last in (("milp", "accepted, but for the bound, which is told and not proved anew"), ("boxes", "accepted")):
        assert main(["solve", str(question), "--engine", engine, "--out", str(target)]) == 0
        capsys.readouterr()
        assert main(["check", str(target)]) == 0
        assert capsys.readouterr().out.endswith(f"{target}: {last}\n")
        assert main(["report", str(target), "--out", "-"]) == 0
        assert ("as told" in capsys.readouterr().out) == (engine == "milp")


def test_a_forged_answer_for_one_number_of_devices_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question, target = tmp_path / "question.yaml", tmp_path / "answer.json"
    question.write_text(FIXED, encoding="utf-8")
    assert main(["solve", str(question), "--engine", "boxes", "--out", str(target)]) == 0
    data = json.loads(target.read_text(encoding="utf-8"))
    data["answers"][0]["tree"] = None
    target.write_text(json.dumps(data), encoding="utf-8")
    for command in (["check", str(target)], ["report", str(target), "--out", str(tmp_path / "page.html")]):
        assert main(command) == 30
        written = capsys.readouterr()
        assert "a proof by boxes needs the tree of its cuts" in written.out + written.err
