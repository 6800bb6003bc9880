"""Results that were edited or made up are refused; what cannot be proved anew is told."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from crossopt.instances.question import read
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits
from crossopt.solvers.proofs import Steps
from crossopt.solvers.sharding import engines
from crossopt.solvers.sharding import exhaustive as every
from crossopt.solvers.sharding.judge import BY_ARCS, BY_EVERY, BY_LEAST, BY_PAIRS, BY_TREE, UNKEPT, Meaning, Strategies, weigh
from tests.instances.sharding.files import answered, checked, feasible, solved


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("value", 1, "value: the choice takes"),
        ("answer", {"strategies": [0] * 5}, "REFUSED"),
        ("answer", {"strategies": [0] * 4}, "4 strategies are given for 5 nodes"),
        ("answer", {"strategies": [10**30] * 5}, "none of the question"),
        ("details", {"peak": 10**6, "peak_time": 1, "choices": []}, "details.peak: it is"),
        ("bound", 0, "gap: "),
        ("status", "FEASIBLE", "status"),
    ],
)
def test_an_edited_result_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], field: str, value: object, said: str) -> None:
    _, target = solved(tmp_path, feasible(tmp_path))
    result = json.loads(target.read_text())
    target.write_text(json.dumps({**result, field: value}))
    assert main(["check", str(target)]) == 30
    assert said in capsys.readouterr().out


def test_an_edited_certificate_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, target = solved(tmp_path, feasible(tmp_path), "--engine", "milp")
    result = json.loads(target.read_text())
    assert result["proof"]["certificate"]["bound"] == result["value"]
    result["proof"]["certificate"]["steps"].pop()
    target.write_text(json.dumps(result))
    capsys.readouterr()
    assert main(["check", str(target)]) == 30
    assert "certificate: it does not prove" in capsys.readouterr().out


NOTHING = {
    "status": "INFEASIBLE",
    "proved": True,
    "reasons": ["no choice"],
    **dict.fromkeys(("value", "bound", "gap", "answer", "details")),
    "certificate": None,
    "trace": [],
}
"""What a result says that there is no choice."""
TOLD = {"status": "UNKNOWN", "proved": False}
"""By somebody's word."""


def forged(path: Path, change: dict[str, object]) -> None:
    """Writes a result with other words; those of its proof by their names there."""
    result = json.loads(path.read_text())
    own = {name: change[name] for name in ("by", "told", "certificate") if name in change}
    result["proof"] |= own
    path.write_text(json.dumps({**result, **{name: value for name, value in change.items() if name not in own}}))


@pytest.mark.parametrize(
    ("engine", "change", "said"),
    [
        ("milp", {"certificate": None}, "certificate: it is missing"),
        ("milp", {"certificate": None, "by": BY_EVERY}, "only the engine exhaustive looks at every choice"),
        ("greedy", {"by": "HiGHS"}, "the engine greedy asks no solver"),
        ("milp", {"proof": {"by": BY_TREE, "form": "counted"}}, "strategies come with the counts of their reductions"),
        ("milp", {"proof": {"by": "highs 1.12.0", "form": "word"}}, "a word comes with what reductions leave to prove"),
        ("milp", {"told": True}, "a word is told, and whole numbers that are kept are not"),
        ("milp", {"value": 3.5}, "value and bound are whole numbers"),
        ("milp", {"engine": "auto"}, "`auto` stands for no engine"),
        ("exhaustive", {"by": "HiGHS"}, "the engine exhaustive asks no solver"),
        ("milp", {"by": "magic"}, "nothing is proved by 'magic'"),
        ("exhaustive", {**NOTHING, "by": BY_EVERY}, "reasons: there is a choice, which costs"),
        ("exhaustive", {**NOTHING, "by": BY_ARCS}, "reasons: there is a choice, which costs"),
        ("cpsat", {**NOTHING, **TOLD, "by": "cpsat 9.14", "told": True}, "reasons: there is a choice, which costs"),
        ("cpsat", {**NOTHING, "by": "cpsat 9.14", "told": True}, "that there is none is proved by nobody's word"),
        ("milp", {**NOTHING, "by": "highs 1.12.0"}, "highs 1.12.0 counts in floating point and does not prove"),
        ("milp", {**NOTHING, "by": "cpsat 9.14"}, "the engine milp does not ask cpsat 9.14"),
        ("milp", {**NOTHING, "by": BY_TREE}, "reasons: there is a choice, which costs"),
        ("milp", {"by": "highs 1.12.0"}, "highs 1.12.0 counts in floating point and is a proof within a millionth at best"),
        ("local", {**NOTHING, "by": "highs 1.12.0"}, "the engine local asks no solver"),
    ],
)
def test_a_proof_that_was_taken_away_or_lent_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], engine: str, change: dict[str, object], said: str
) -> None:
    _, target = solved(tmp_path, feasible(tmp_path), "--engine", engine)
    forged(target, change)
    capsys.readouterr()
    assert main(["check", str(target)]) == 30
    assert said in capsys.readouterr().out


def test_a_better_choice_refutes_a_bound_that_is_only_told(tmp_path: Path) -> None:
    question = read(feasible(tmp_path))
    best = answered(question, "milp", Limits(), lambda progress: None)
    assert best.value is not None
    cost, choice, verdict = next(
        (verdict.cost, choice, verdict)
        for choice in product(*map(range, question.problem.counts.tolist()))
        if not (verdict := weigh(question.problem, choice)).violations and verdict.cost > best.value
    )
    assert isinstance(best.proof, Steps)
    worse = replace(
        best,
        engine="cpsat",
        status="FEASIBLE",
        proved=False,
        value=cost,
        bound=cost,
        gap=0.0,
        answer=Strategies(choice),
        details=Meaning(verdict.peak, verdict.peak_time, ()),
        proof=replace(best.proof, by="cpsat 9.14", told=True, certificate=None),
        notes=(UNKEPT,),
        trace=(),
    )
    assert checked(worse, tmp_path).refused == (f"bound: a choice costs {best.value:,}, below {cost:,}",)


@pytest.mark.parametrize("by", [BY_LEAST, BY_PAIRS, BY_ARCS])
def test_what_shows_that_there_is_no_choice_shows_no_bound(by: str, tmp_path: Path) -> None:
    """The best rival called the optimum, beside an honest certificate of less."""
    best = answered(read(feasible(tmp_path)), "milp", Limits(), lambda progress: None)
    assert isinstance(best.proof, Steps)
    lie = replace(best, proof=replace(best.proof, by=by))
    assert f"proved_by: {by} shows that there is no choice, and no bound" in checked(lie, tmp_path).refused


def test_other_counts_of_the_reductions_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where they do not add up at once, and where they do by carrying the reductions out anew, whichever two of them are edited."""
    unsummed, other = "what lies between before and after", "reductions: other counts follow from the file"
    for engine in ("milp", "exhaustive"):
        _, target = solved(tmp_path, feasible(tmp_path), "--engine", engine)
        for before, after, taken, said in ((1, 0, 0, unsummed), (1, 1, 0, other), (0, 1, 1, other)):
            result = json.loads(target.read_text())
            reductions = result["proof"]["reductions"]
            reductions["before"]["entries"] += before
            reductions["after"]["entries"] += after
            reductions["steps"][0]["taken"]["entries"] -= taken
            edited = tmp_path / "edited.json"
            edited.write_text(json.dumps(result))
            capsys.readouterr()
            assert main(["check", str(edited)]) == 30
            assert said in capsys.readouterr().out


def test_a_proof_too_large_to_be_kept_is_told_and_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_STORED", -1)
    result = answered(read(feasible(tmp_path)), "milp", Limits(), lambda progress: None)
    assert isinstance(result.proof, Steps)
    assert (result.proof.certificate, result.proof.told, result.notes) == (None, True, (UNKEPT,))
    assert not checked(result, tmp_path).told
    monkeypatch.setattr(every, "MOST", 0)
    report = checked(result, tmp_path)
    assert report.refused == ()
    assert report.told
