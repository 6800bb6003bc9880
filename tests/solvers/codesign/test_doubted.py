"""What a sceptic tried on saved joint designs: ways that claim bounds, whole numbers with points, fronts without ends or questions."""

import json
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.codesign.instance import Portfolio
from crossopt.instances.question import read_again
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, result_in, to_text, unwatched
from crossopt.solvers.checking import check_answer
from crossopt.solvers.codesign.answer import Designs, Priced
from crossopt.solvers.codesign.combined import engines, workloads
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.family import solve
from tests.samples import DESIGNS
from tests.solvers.codesign.questions import TINY_FREE, ask


def refused(data: dict[str, Any], question: Any) -> tuple[str, ...]:  # noqa: ANN401 - of either form
    return check_answer(FAMILY, result_in(data, Designs, Priced), question).refused


@pytest.mark.parametrize("engine", ["greedy", "boxes"])
def test_a_way_tells_no_bound_above_the_one_that_is_told(engine: str) -> None:
    instance = ask(TINY_FREE)
    data = json.loads(to_text(solve(FAMILY, instance, engine, Limits(), unwatched)))
    assert refused(data, instance) == ()
    data["trace"] = [[0.01, data["value"], 1.01 * data["value"]]]
    assert "the trace does not close in on the value" in refused(data, instance)


@pytest.mark.parametrize("name", ["tensor", "pipeline", "microbatch", "zero"])
def test_whole_numbers_of_a_plan_have_no_point(name: str) -> None:
    instance = ask(TINY_FREE)
    data = json.loads(to_text(solve(FAMILY, instance, "exhaustive", Limits(), unwatched)))
    plan = data["answer"]["designs"][0]["plan"]
    plan[name] = float(plan[name])
    assert any("without a point" in fault for fault in refused(data, instance))


def portfolio() -> Portfolio:
    found: Portfolio = read_again({"source": "q.yaml", "text": DESIGNS, "settings": [], "workload": None}, "codesign")
    return found


def test_a_search_for_regrets_that_is_stopped_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optima alone are told with an answer or the proof that there is none, and with nothing less."""
    found = engines.FINDERS["boxes"]

    def stopped(*arguments: Any) -> Any:  # noqa: ANN401
        return engines.replace(found(*arguments), answer=None, value=None, bound=0.0, stopped="time limit", trace=())

    monkeypatch.setitem(engines.FINDERS, "boxes", stopped)
    result = solve(FAMILY, portfolio(), "boxes", Limits(), unwatched)
    assert (result.status, result.parts) == ("UNKNOWN", ())
    assert check_answer(FAMILY, result, portfolio()).accepted


def test_trees_of_several_workloads_are_believed_where_bounds_are_monotone(monkeypatch: pytest.MonkeyPatch) -> None:
    result = solve(FAMILY, portfolio(), "boxes", Limits(), unwatched)
    assert check_answer(FAMILY, result, portfolio()).accepted

    def broken(part: object) -> None:
        raise workloads.RefusedError("bounds are broken")

    monkeypatch.setattr(workloads, "refuse_broken_bounds", broken)
    assert "bounds are broken" in check_answer(FAMILY, result, portfolio()).refused


def front(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    question, target = tmp_path / "q.yaml", tmp_path / "front.json"
    question.write_text(TINY_FREE.replace("[100 W, 400 W]", "[60 W, 400 W]").replace("[2, 4]", "4"), encoding="utf-8")
    assert main(["solve", str(question), "--pareto", "step_time,power", "--out", str(target)]) == 0
    return target, json.loads(target.read_text(encoding="utf-8"))


@pytest.mark.thorough
def test_a_front_says_how_near_its_ends_are_and_needs_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, data = front(tmp_path)
    for point in data["points"]:
        point["result"]["gap_asked"] = 0.999
    target.write_text(json.dumps(data), encoding="utf-8")
    main(["check", str(target)])
    assert "by more than 99.90%" in capsys.readouterr().out
    for question in ({}, {"settings": 5}, {"settings": []}):
        data["points"][0]["result"]["question"] = question
        target.write_text(json.dumps(data), encoding="utf-8")
        assert (main(["check", str(target)]), main(["report", str(target)])) == (3, 3)
    assert "internal error" not in capsys.readouterr().err
