"""Results that were edited or made up are refused; what cannot be proved anew is told."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from crossopt.instances.sharding.question import read_sharding
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits
from crossopt.solvers.sharding import engines
from crossopt.solvers.sharding import exhaustive as brute_force
from crossopt.solvers.sharding.answer import BY_ARCS, BY_EVERY, BY_TREE, UNKEPT
from crossopt.solvers.sharding.check import check
from crossopt.solvers.sharding.engines import answered
from crossopt.solvers.sharding.judge import judge
from tests.every import every
from tests.instances.sharding.files import feasible, solved


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("value", 1, "value: it is"),
        ("strategies", [0] * 5, "REFUSED"),
        ("strategies", [0] * 4, "4 strategies are given for 5 nodes"),
        ("peak", 10**6, "peak: it is"),
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
    assert result["certificate"]["bound"] == result["value"]
    result["certificate"]["steps"].pop()
    target.write_text(json.dumps(result))
    capsys.readouterr()
    assert main(["check", str(target)]) == 30
    assert "certificate: it does not prove" in capsys.readouterr().out


NOTHING = {
    "status": "INFEASIBLE",
    "proved": True,
    "reasons": ["no choice"],
    **dict.fromkeys(("value", "bound", "gap", "strategies", "peak", "peak_time", "certificate")),
}
"""What a result says that there is no choice."""


@every(
    ("engine", "change", "said"),
    [
        ("milp", {"certificate": None}, "certificate: it is missing"),
        ("milp", {"certificate": None, "proved_by": BY_EVERY}, "only the engine exhaustive looks at every choice"),
        ("greedy", {"proved_by": "HiGHS"}, "the engine greedy asks no solver"),
        ("milp", {"reductions": None}, "strategies come with the counts of their reductions"),
        ("milp", {"engine": "auto"}, "`auto` stands for no engine"),
        ("exhaustive", {"proved_by": "HiGHS"}, "the engine exhaustive asks no solver"),
        ("milp", {"proved_by": "magic"}, "nothing is proved by 'magic'"),
        ("exhaustive", {**NOTHING, "proved_by": BY_EVERY}, "reasons: there is a choice, which costs"),
        ("exhaustive", {**NOTHING, "proved_by": BY_ARCS}, "reasons: there is a choice, which costs"),
        ("cpsat", {**NOTHING, "proved_by": "cpsat 9.14"}, "reasons: there is a choice, which costs"),
        ("milp", {**NOTHING, "proved_by": "highs 1.12.0"}, "highs 1.12.0 counts in floating point and does not prove"),
        ("milp", {**NOTHING, "proved_by": "cpsat 9.14"}, "the engine milp does not ask cpsat 9.14"),
        ("milp", {**NOTHING, "proved_by": BY_TREE}, "reasons: there is a choice, which costs"),
        ("milp", {"proved_by": "highs 1.12.0"}, "highs 1.12.0 counts in floating point and is a proof within a millionth at best"),
        ("local", {**NOTHING, "proved_by": "highs 1.12.0"}, "the engine local asks no solver"),
    ],
)
def test_a_proof_that_was_taken_away_or_lent_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], engine: str, change: dict[str, object], said: str
) -> None:
    _, target = solved(tmp_path, feasible(tmp_path), "--engine", engine)
    result = json.loads(target.read_text())
    target.write_text(json.dumps({**result, **change}))
    capsys.readouterr()
    assert main(["check", str(target)]) == 30
    assert said in capsys.readouterr().out


def test_a_better_choice_refutes_a_bound_that_is_only_told(tmp_path: Path) -> None:
    question = read_sharding(feasible(tmp_path))
    best = answered(question, "milp", Limits(), lambda progress: None)
    assert best.value is not None
    cost, choice, verdict = next(
        (verdict.cost, choice, verdict)
        for choice in product(*map(range, question.problem.counts.tolist()))
        if not (verdict := judge(question.problem, choice)).violations and verdict.cost > best.value
    )
    forged = replace(
        best,
        engine="cpsat",
        value=cost,
        bound=cost,
        gap=0.0,
        strategies=choice,
        peak=verdict.peak,
        peak_time=verdict.peak_time,
        proved_by="cpsat 9.14",
        certificate=None,
        notes=(UNKEPT,),
    )
    assert f"bound: a choice costs {best.value:,}, below {cost:,}" in check(forged, tmp_path).refused


def test_other_counts_of_the_reductions_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where they do not add up at once, and where they do by carrying the reductions out anew."""
    for engine in ("milp", "exhaustive"):
        _, target = solved(tmp_path, feasible(tmp_path), "--engine", engine)
        for both, said in ((False, "what lies between before and after"), (True, "reductions: other counts follow from the file")):
            result = json.loads(target.read_text())
            result["reductions"]["before"]["entries"] += 1
            result["reductions"]["after"]["entries"] += both
            edited = tmp_path / "edited.json"
            edited.write_text(json.dumps(result))
            capsys.readouterr()
            assert main(["check", str(edited)]) == 30
            assert said in capsys.readouterr().out


def test_a_proof_too_large_to_be_kept_is_told_and_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_STORED", -1)
    result = answered(read_sharding(feasible(tmp_path)), "milp", Limits(), lambda progress: None)
    assert (result.certificate, result.notes) == (None, (UNKEPT,))
    assert not check(result, tmp_path).told
    monkeypatch.setattr(brute_force, "MOST", 0)
    report = check(result, tmp_path)
    assert report.refused == ()
    assert report.told
