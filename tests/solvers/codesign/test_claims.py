"""Claims that were made up: a solver's word against a feasible question, proofs of other engines, counts that cannot be."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.codesign.instance import Instance
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, Progress, to_text
from crossopt.solvers.codesign import claims
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.claims import by_boxes, enumerated, relaxed
from crossopt.solvers.proofs import Boxes, Enumerated, Proof, Relaxation, Space, Tree, UnverifiedBound
from tests.every import every
from tests.once import once
from tests.solvers.codesign.asking import WHOLE, answered, checked
from tests.solvers.codesign.combined.test_devices import FIXED
from tests.solvers.codesign.questions import TINY_FREE, ask

NOTHING: dict[str, Any] = {
    **dict.fromkeys(("value", "bound", "gap", "answer", "details")),
    **dict.fromkeys(("rivals", "trace"), ()),
    "status": "INFEASIBLE",
    "proved": True,
}
SOLVED = Relaxation("highs 1.12.0", 3, 10, "strong", 4)
MANY = Space(10**15, 7, 1, 1, 1, 0, 10**12, 1000)
CUT = Tree(10, 2, (5,), (1,), (1,), 1, (None,))
IMPOSSIBLE = "budget.power=1 W"


@once
def solved(instance: Instance, engine: str) -> DesignResult:
    return answered(instance, engine)


def without_design(instance: Instance, engine: str) -> DesignResult:
    """A result that says on a solver's word that there is no design."""
    relaxation = replace(SOLVED, solver="cpsat 9.14" if engine == "cpsat" else SOLVED.solver)
    return replace(solved(instance, "boxes"), engine=engine, proof=relaxed(relaxation), **{**NOTHING, "status": "UNKNOWN", "proved": False})


def written(folder: Path, result: DesignResult) -> Path:
    path = folder / "answer.json"
    path.write_text(to_text(result), encoding="utf-8")
    return path


@pytest.mark.parametrize("engine", ["milp", "cpsat"])
def test_that_there_is_no_design_is_refuted_by_a_design(engine: str) -> None:
    report = checked(without_design(ask(TINY_FREE), engine))
    assert any(reason.startswith("there is a design of") for reason in report.refused)


@pytest.mark.parametrize("engine", ["milp", "cpsat"])
def test_that_there_is_no_design_is_proved_anew_or_told(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where boxes come to an end it is proved; where they have no time it is the solver's word, in the last line too."""
    claim = without_design(ask(TINY_FREE, IMPOSSIBLE), engine)
    monkeypatch.setattr("crossopt.solvers.codesign.prove._LOOK", float("inf"))
    report = checked(claim)
    assert report.refused == ()
    assert not report.told
    monkeypatch.setattr("crossopt.solvers.codesign.prove._LOOK", -1.0)
    report = checked(claim)
    assert (report.refused, report.told) == ((), True)
    assert main(["check", str(written(tmp_path, claim))]) == 0
    assert capsys.readouterr().out.endswith("accepted, but for the bound, which is told and not proved anew\n")
    assert main(["report", str(written(tmp_path, claim)), "--out", "-"]) == 0
    page = capsys.readouterr().out
    assert "told: no design" in page
    assert "by the word of" in page
    assert "proved: no design" not in page


def test_what_a_solver_tells_is_not_called_proved_on_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = answered(ask(TINY_FREE), "milp", Limits(form="log"))
    assert (result.proved, result.settled, result.told, result.status) == (False, True, True, "FEASIBLE")
    assert main(["report", str(written(tmp_path, result)), "--out", "-"]) == 0
    page = capsys.readouterr().out
    assert "as told" in page
    assert "proved optimal" not in page
    assert "proved within" not in page


Change = Callable[[Any], Proof | None]


@every(
    ("engine", "change", "said"),
    [
        *((engine, lambda _: enumerated(MANY, ()), f"proof: the engine {engine} proves nothing so") for engine in ("boxes", "expert")),
        *((engine, lambda _: by_boxes(CUT), f"proof: the engine {engine} proves nothing so") for engine in ("exhaustive", "milp")),
        *((engine, lambda _: relaxed(SOLVED), f"proof: the engine {engine} proves nothing so") for engine in ("boxes",)),
        *((engine, lambda _: UnverifiedBound("hand"), f"proof: the engine {engine} proves nothing so") for engine in ("boxes", "milp")),
        *((engine, lambda _: None, "a proof is told with what it proves, and only then") for engine in ("exhaustive", "milp")),
        *((engine, lambda proof: replace(proof, by="hand"), "proof: it is ") for engine in ("boxes", "exhaustive", "milp")),
        ("milp", lambda _: relaxed(replace(SOLVED, solver="cpsat 9.14")), "engine: milp does not solve by cpsat 9.14"),
        ("milp", lambda _: relaxed(replace(SOLVED, form="sealed by the court")), "relaxation: there is no form 'sealed by the court'"),
        ("milp", lambda _: relaxed(replace(SOLVED, plans=10**15)), "relaxation: such numbers cannot be"),
    ],
)
def test_proofs_of_others_are_neither_accepted_nor_drawn(
    engine: str, change: Change, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = solved(ask(TINY_FREE), engine)
    forged = replace(result, proof=change(result.proof))
    assert any(reason.startswith(said) for reason in checked(forged).refused)
    assert main(["report", str(written(tmp_path, forged)), "--out", str(tmp_path / "page.html")]) == 30
    assert "verification failed" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("field", ["designs", "hardware_points", "plans", "boxes"])
@pytest.mark.parametrize("engine", ["exhaustive", "boxes"])
def test_counts_are_counted_anew_before_they_are_drawn(engine: str, field: str, tmp_path: Path) -> None:
    """Also where the words of the proof were made to fit."""
    result = solved(ask(TINY_FREE), engine)
    proof = result.proof
    assert isinstance(proof, Enumerated | Boxes)
    block = proof.space if isinstance(proof, Enumerated) else proof.tree
    if not hasattr(block, field):
        return
    said = getattr(block, field)
    changed: dict[str, Any] = {field: tuple(one + 1 for one in said) if isinstance(said, tuple) else said + 1}
    more = replace(block, **changed)
    forged = replace(result, proof=by_boxes(more) if isinstance(more, Tree) else enumerated(more, ()))
    assert not checked(forged).accepted
    assert main(["report", str(written(tmp_path, forged)), "--out", str(tmp_path / "page.html")]) == 30


def test_an_unproved_enumeration_counts_nothing_that_could_be_false() -> None:
    def impatient(progress: Progress) -> None:
        raise KeyboardInterrupt

    instance = ask(TINY_FREE)
    cut_short = answered(instance, "exhaustive", WHOLE, impatient)
    assert (cut_short.proved, cut_short.proof) == (False, None)
    assert [note.partition(" ")[2] for note in cut_short.notes] == ["of the designs that were priced keep every limit"]
    assert checked(cut_short).accepted
    whole = solved(instance, "exhaustive").proof
    for proof in (enumerated(MANY, ()), whole):
        assert not checked(replace(cut_short, proof=proof)).accepted


def test_plans_are_counted_only_where_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = ask(TINY_FREE)
    result = solved(instance, "exhaustive")
    assert isinstance(result.proof, Enumerated)
    assert claims.plans_of(instance) == result.proof.space.plans
    monkeypatch.setattr(claims, "_FEW", 0)
    assert claims.plans_of(instance) is None
    assert claims.faults_of(instance, result) == []


@pytest.mark.slow
def test_answers_for_several_numbers_of_devices_say_what_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question, target = tmp_path / "question.yaml", tmp_path / "answer.json"
    question.write_text(FIXED, encoding="utf-8")
    told = "accepted, but for the bound, which is told and not proved anew"
    for words, last in (("milp --form log", told), ("milp", "accepted"), ("boxes", "accepted")):
        assert main(["solve", str(question), "--engine", *words.split(), "--out", str(target)]) == 0
        capsys.readouterr()
        assert main(["check", str(target)]) == 0
        assert capsys.readouterr().out.endswith(f"{target}: {last}\n")
        assert main(["report", str(target), "--out", "-"]) == 0
        assert ("as told" in capsys.readouterr().out) == (last == told)


def test_a_forged_answer_for_one_number_of_devices_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question, target = tmp_path / "question.yaml", tmp_path / "answer.json"
    question.write_text(FIXED, encoding="utf-8")
    assert main(["solve", str(question), "--engine", "boxes", "--out", str(target)]) == 0
    data = json.loads(target.read_text(encoding="utf-8"))
    data["parts"][0]["proof"] = None
    target.write_text(json.dumps(data), encoding="utf-8")
    for command in (["check", str(target)], ["report", str(target), "--out", str(tmp_path / "page.html")]):
        assert main(command) == 30
        written = capsys.readouterr()
        assert "a proof is told with what it proves, and only then" in written.out + written.err
