"""Models that say nothing of the question and pass for its answer: a program that computes the best plan itself and hands in that alone."""

from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any

import pytest

from crossopt.solvers.grading import handed_model
from crossopt.solvers.grading.assignments import chips, knapsack, stages
from crossopt.solvers.grading.grade import SOLUTIONS
from crossopt.solvers.grading.handed_model import Plan, saying, solved
from crossopt.solvers.grading.marks import FULL, Assignment, Case
from tests.solvers.grading.programs import loaded

pytestmark = pytest.mark.course

Handed = dict[str, Any]
Cheat = Callable[[Handed], Handed]
ASSIGNMENTS = (knapsack.KNAPSACK, stages.STAGES, chips.CHIPS)
MODELS = {"model", "model_with_needs", "weak_model", "strong_model"}
each = pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda one: one.name)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine solves what is handed in too, only later."""
    monkeypatch.setattr(handed_model, "_SECONDS", 3600.0)


def reference(assignment: Assignment) -> ModuleType:
    return loaded(SOLUTIONS / assignment.name / "solution.py")


def asked(assignment: Assignment) -> list[Case]:
    """The cases of a seed that ask for a model, and more of the public ones."""
    return [case for task in assignment.tasks("honest") for case in task.cases if case.call.function in MODELS]


def pinned(model: Handed) -> Handed:
    """Every variable at its best value and a constant to minimise, without a row."""
    values, best = solved(model)
    return {
        "variables": {name: [value, value] for name, value in values.items()} | {"best": [best, best]},
        "minimise": {"best": 1},
        "rows": [],
    }


def pinned_in_part(model: Handed) -> Handed:
    """The rows of the question are there, and the answer too."""
    values, _ = solved(model)
    return model | {"variables": {name: [value, value] for name, value in values.items()}}


def pinned_by_rows(model: Handed) -> Handed:
    values, _ = solved(model)
    return model | {"rows": [*model["rows"], *({"terms": {name: 1}, "equals": value} for name, value in values.items())]}


@each
@pytest.mark.parametrize("cheat", [pinned, pinned_in_part, pinned_by_rows])
def test_a_model_that_holds_the_best_plan_alone_earns_nothing(assignment: Assignment, cheat: Cheat) -> None:
    solution, earned = reference(assignment), []
    for case in asked(assignment):
        verdict = case.judge(cheat(getattr(solution, case.call.function)(*case.call.arguments)))
        assert verdict.share == 0.0 or nothing_else_fits(case)
        earned.append(verdict.why)
    assert any("the model leaves out what is allowed: " in why for why in earned)


def nothing_else_fits(case: Case) -> bool:
    """Whether memory is so small that the empty set is the only plan."""
    return case.call.function == "model" and case.call.arguments[2] == 0


@each
def test_the_best_plan_with_everything_else_allowed_earns_nothing(assignment: Assignment) -> None:
    """The objective asks for the best plan, and no row says which plans there are.

    Whichever of several best plans HiGHS finds, factors of one digit are proved to the last unit."""
    solution = reference(assignment)
    for case in asked(assignment):
        model = getattr(solution, case.call.function)(*case.call.arguments)
        values, _ = solved(model)
        wanted = {name: -1 if value else 1 for name, value in values.items()}
        verdict = case.judge({"variables": model["variables"], "minimise": wanted, "rows": []})
        assert verdict.share == 0.0
        assert any(word in verdict.why for word in ("the model holds what is not allowed: ", "the objective says"))


@each
def test_a_model_without_its_first_row_loses_points(assignment: Assignment) -> None:
    """But where the row asks nothing."""
    solution = reference(assignment)
    for case in asked(assignment):
        model = getattr(solution, case.call.function)(*case.call.arguments)
        first = model["rows"][0]
        verdict = case.judge(model | {"rows": model["rows"][1:]})
        slack = "at_most" in first and sum(first["terms"].values()) <= first["at_most"]
        assert verdict.share < 1.0 or slack, case.name


def test_a_need_that_is_left_out_is_seen_where_the_best_set_keeps_it() -> None:
    items: knapsack.Items = ([3, 3, 3], [9, 8, 1], 6)
    needs = [[2, 1]]
    plans = knapsack.draw_plans(Random("needs"), items, needs)
    model = reference(knapsack.KNAPSACK).model(*items)
    assert knapsack.judge_model(model, items, 17, needs, ()).share == 1.0
    verdict = knapsack.judge_model(model, items, 17, needs, plans)
    assert verdict.share == 0.0
    assert verdict.why == "the model holds what is not allowed: to keep [2], 3 of 6 MiB, sparing 1 us (2 is kept without 1)"


def test_a_plan_with_another_price_costs_half() -> None:
    model = {
        "variables": {"x": [0, 1], "more": [0, 1]},
        "maximise": {"x": 3, "more": 1},
        "rows": [{"terms": {"x": 1, "more": 1}, "at_most": 1}],
    }
    plans = (Plan({"x": 1}, 3, "x"), Plan({"x": 0}, 0, "no x"))
    verdict = saying(FULL, model, plans)
    assert (verdict.share, verdict.why) == (0.4, "the objective says 1 where 0 is right: no x")


def test_variables_that_a_model_leaves_out_are_0() -> None:
    model = {"variables": {"x": [0, 1]}, "minimise": {"x": 1}, "rows": []}
    assert saying(FULL, model, (Plan({"x": 1, "y": 0}, 1, "x"), Plan({"y": 1}, None, "y"))) == FULL
    assert saying(FULL, model, (Plan({"y": 1}, 1, "y"),)).why == "the model leaves out what is allowed: y"


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["a", "b", "c", "d", "e", "f", "g"])
def test_references_hold_every_plan_of_other_words(seed: str) -> None:
    for assignment in ASSIGNMENTS:
        solution = reference(assignment)
        for task in assignment.tasks(seed):
            for case in task.cases:
                if case.call.function in MODELS:
                    assert case.judge(getattr(solution, case.call.function)(*case.call.arguments)).share == 1.0
