"""Assignment 2: the judges against all subsets, and what wrong sets and wrong models earn."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.solvers.grading.assignments.knapsack import Items, fractional, judge_model, judge_set, most, most_with_needs
from crossopt.solvers.grading.handed_model import read_model

pytestmark = pytest.mark.course

EXAMPLE: Items = ([30, 20, 20], [42, 26, 26], 40)
ITEMS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=6)


@given(ITEMS, st.integers(0, 30))
def test_the_table_finds_the_best_of_all_subsets_and_the_relaxation_is_no_less(pairs: list[tuple[int, int]], capacity: int) -> None:
    sizes, values = [size for size, _ in pairs], [value for _, value in pairs]
    subsets = product((0, 1), repeat=len(pairs))
    best = max(int(np.dot(values, kept)) for kept in subsets if np.dot(sizes, kept) <= capacity)
    assert most(sizes, values, capacity) == most_with_needs(sizes, values, capacity, []) == best
    assert best <= fractional(sizes, values, capacity) + 1e-9


def test_the_example_of_the_readme() -> None:
    assert most(*EXAMPLE) == 52
    assert fractional(*EXAMPLE) == pytest.approx(55.0)


@pytest.mark.parametrize(
    ("chosen", "share", "word"),
    [
        ([1, 2], 1.0, ""),
        ([0, 1], 0.0, "takes 50 MiB of 40 MiB, 10 too many"),
        ([0], 0.0, "10 fewer than by the best set"),
        ([1, 1], 0.0, "different places are meant"),
        ([3], 0.0, "different places"),
        ([-1], 0.0, "different places"),
        ([True], 0.0, "different places"),
        ("12", 0.0, "different places"),
        ({"chosen": [1, 2], "value": 999}, 0.0, "different places"),
    ],
)
def test_sets_are_weighed_anew(chosen: object, share: float, word: str) -> None:
    verdict = judge_set(chosen, EXAMPLE, 52, [])
    assert verdict.share == share
    assert word in verdict.why


def test_the_best_ratios_first_and_memory_that_is_not_filled_have_names() -> None:
    assert judge_set([0], EXAMPLE, 52, []).mistakes == ("the best ratios are taken first, which is not the best set",)
    twice = judge_set([1, 1], EXAMPLE, 52, [])
    assert (twice.share, twice.mistakes[0].startswith("an activation is kept twice")) == (0.0, True)


def test_a_set_that_leaves_the_last_mebibyte_free_is_nearly_right() -> None:
    """Of memory for two middle ones it keeps the small one and a large one, which is what there is for a mebibyte less."""
    items: Items = ([1, 3, 3, 4], [1, 30, 30, 39], 7)
    assert (most(*items), most(*items[:2], 6)) == (69, 60)
    verdict = judge_set([1, 2], ([1, 3, 3, 4], [1, 29, 29, 39], 7), 68, [])
    assert (verdict.share, verdict.mistakes) == (0.4, ("a set that fills the memory exactly is left out",))


def handed(objective: list[int], sizes: list[int], capacity: int) -> dict[str, object]:
    names = [f"keep {place}" for place in range(len(sizes))]
    rows = [{"terms": dict(zip(names, sizes, strict=True)), "at_most": capacity}]
    return {"variables": {name: [0, 1] for name in names}, "maximise": dict(zip(names, objective, strict=True)), "rows": rows}


def test_models_are_solved_and_their_solutions_weighed_anew() -> None:
    sizes, values, capacity = EXAMPLE
    assert judge_model(handed(values, sizes, capacity), EXAMPLE, 52, [], ()).share == 1.0
    too_many = judge_model(handed(values, sizes, 100), EXAMPLE, 52, [], ())
    assert (too_many.share, too_many.why) == (0.0, "what is kept takes 70 MiB of 40 MiB, 30 too many")
    faked = judge_model(handed([value * 1000 for value in values], sizes, capacity), EXAMPLE, 52, [], ())
    assert faked.share == 0.4
    assert "the objective says 52000, but what is kept spares 52 us" in faked.why
    needing = judge_model(handed(values, sizes, capacity), EXAMPLE, 42, [[1, 0]], ())
    assert needing.why == "1 is kept without 0, which it needs"


@pytest.mark.parametrize(
    ("model", "word"),
    [
        (None, "a model is a dictionary"),
        ({"variables": {}, "rows": [], "maximise": {}}, "1 to 2000 names"),
        ({"variables": {"x": [0, 1]}, "rows": []}, "one of `maximise` and `minimise`"),
        ({"variables": {"x": [0, 1]}, "rows": [], "maximise": {"y": 1}}, "'y' is not among the variables"),
        ({"variables": {"x": [0, 1]}, "rows": [], "maximise": {"x": 0.5}}, "factor of 'x' is a whole number"),
        ({"variables": {"x": [1, 0]}, "rows": [], "maximise": {"x": 1}}, "no integer is at least 1"),
        ({"variables": {"x": [0, 2**60]}, "rows": [], "maximise": {"x": 1}}, "no longer exact"),
        ({"variables": {"x": [0, 1]}, "rows": [{"terms": {"x": 1}}], "maximise": {"x": 1}}, "row 0: `terms` and one of"),
        ({"variables": {"x": [0, 1]}, "rows": [{"terms": {"x": 1}, "equals": "1"}], "maximise": {"x": 1}}, "equals is a whole number"),
    ],
)
def test_what_is_no_model_is_told(model: object, word: str) -> None:
    with pytest.raises(ValueError, match=word.replace("(", r"\(")):
        read_model(model)


def test_a_model_without_a_solution_or_without_the_variables_earns_nothing() -> None:
    none = {"variables": {"x": [0, 1]}, "maximise": {}, "rows": [{"terms": {"x": 1}, "at_least": 2}]}
    assert judge_model(none, EXAMPLE, 52, [], ()).why == "the model has no solution"
    other = {"variables": {"x": [0, 1]}, "maximise": {}, "rows": []}
    assert judge_model(other, EXAMPLE, 52, [], ()).why == "there is no variable 'keep 0' from 0 to 1 in the model"
