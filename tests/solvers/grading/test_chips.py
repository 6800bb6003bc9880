"""Assignment 4: its judges, and what wrong models, weak models and wrong prices earn."""

import importlib.util
from random import Random
from types import ModuleType

import pytest

from crossopt.solvers.grading.assignments.chips import (
    CHIPS,
    WEAK,
    Chips,
    ask_with,
    cheapest,
    judge_prices,
    judge_strong,
    judge_weak,
    strong_model,
    weak_bound,
)
from crossopt.solvers.grading.grade import SOLUTIONS
from crossopt.solvers.grading.handed_model import MOST_VARIABLES, relaxation

pytestmark = pytest.mark.course

COSTS, OPENING = [[1, 5], [4, 1], [5, 2]], [3, 3]


@pytest.fixture(scope="module")
def example() -> Chips:
    return ask_with(COSTS, OPENING, Random("example"))


@pytest.fixture(scope="module")
def solution() -> ModuleType:
    described = importlib.util.spec_from_file_location("chips_solution", SOLUTIONS / CHIPS.name / "solution.py")
    assert described is not None
    assert described.loader is not None
    found = importlib.util.module_from_spec(described)
    described.loader.exec_module(found)
    return found


def test_the_example_of_the_readme(example: Chips) -> None:
    assert (example.best, example.weak) == (10, pytest.approx(7.0))
    assert example.strong == pytest.approx(10.0)
    assert judge_prices([4, 3, 3], example).share == 1.0


def test_the_closed_form_is_the_relaxation_of_the_weak_model(solution: ModuleType) -> None:
    """Which says in full what the formula says in a line."""
    for task in CHIPS.tasks("a seed")[:1]:
        for case in task.cases:
            assert relaxation(solution.weak_model(*case.call.arguments)) == pytest.approx(weak_bound(*case.call.arguments), rel=1e-9)


def test_the_weak_relaxation_is_well_below_the_strong_one() -> None:
    """Otherwise the assignment would show nothing."""
    for case in CHIPS.tasks("a seed")[0].cases:
        costs, opening = case.call.arguments
        strong = relaxation(strong_model(costs, opening))
        assert weak_bound(costs, opening) < 0.9 * strong
        assert strong <= cheapest(costs, opening) * (1.0 + 1e-9)


def test_a_weak_model_is_no_strong_one_and_a_strong_one_is_nearly_a_weak_one(example: Chips, solution: ModuleType) -> None:
    weak = judge_strong(solution.weak_model(COSTS, OPENING), example)
    assert (weak.share, weak.why, weak.mistakes) == (0.0, "its relaxation is 7, between 7 (weak) and 10 (strong)", (WEAK,))
    strong = judge_weak(solution.strong_model(COSTS, OPENING), example)
    assert (strong.share, strong.why) == (0.4, "its relaxation is 10, that of one row for each chip is 7")


def test_an_objective_that_is_not_the_cost_earns_nothing(example: Chips, solution: ModuleType) -> None:
    model = solution.strong_model(COSTS, OPENING)
    faked = model | {"minimise": dict.fromkeys(model["minimise"], 0)}
    verdict = judge_strong(faked, example)
    assert verdict.share == 0.0
    assert verdict.why.startswith("the objective says 0, but what is built and run costs")


def test_a_model_that_forgets_to_build_earns_nothing(example: Chips, solution: ModuleType) -> None:
    model = solution.strong_model(COSTS, OPENING)
    forgetful = model | {"rows": model["rows"][: len(COSTS)]}
    verdict = judge_strong(forgetful, example)
    assert (verdict.share, "which is not built" in verdict.why) == (0.0, True)


@pytest.mark.parametrize(
    ("prices", "word"),
    [
        ([5, 3, 3], "would pay 4 for chip 0, which costs 3"),
        ([4, 3], "3 whole numbers"),
        ([4.0, 3, 3], "3 whole numbers"),
        (None, "3 whole"),
    ],
)
def test_prices_that_prove_nothing(prices: object, word: str, example: Chips) -> None:
    verdict = judge_prices(prices, example)
    assert verdict.share == 0.0
    assert word in verdict.why


def test_low_prices_prove_less(example: Chips) -> None:
    verdict = judge_prices([3, 3, 3], example)
    assert (verdict.share, verdict.why) == (0.4, "the prices prove 9, where 10 can be proved")
    least = judge_prices([1, 1, 2], example)
    assert (least.share, least.mistakes) == (0.0, ("each price is the least cost of its network, so that no network pays for any chip",))


def test_a_list_of_all_sets_of_chips_is_no_model_of_every_question() -> None:
    """Of one it has more variables than a model may have."""
    asked = [case.call.arguments for case in CHIPS.tasks("hidden/ada")[1].cases]
    assert max(2 ** len(opening) - 1 for _, opening in asked) > MOST_VARIABLES
