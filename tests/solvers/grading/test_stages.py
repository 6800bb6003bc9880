"""Assignment 3: the judge's table against all cuts, and what wrong cuts and wrong models earn."""

from itertools import combinations
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.solvers.grading.assignments.stages import STAGES, Chain, judge_bound, judge_fewest, judge_model, judge_stages, least, slowest
from crossopt.solvers.grading.handed_model import MOST_VARIABLES
from crossopt.solvers.grading.marks import wrong

pytestmark = pytest.mark.course

EXAMPLE: Chain = ([4, 1, 1, 4], [1, 3, 1, 0])


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=7), st.data())
def test_the_table_finds_the_best_of_all_cuts(layers: list[tuple[int, int]], data: st.DataObject) -> None:
    times, messages = [time for time, _ in layers], [*(message for _, message in layers[:-1]), 0]
    stages = data.draw(st.integers(1, len(times)))
    every = [[0, *cuts] for cuts in combinations(range(1, len(times)), stages - 1)]
    assert least(times, messages, stages)[-1] == min(slowest(times, messages, starts) for starts in every)


def test_the_example_of_the_readme() -> None:
    assert slowest(*EXAMPLE, [0, 2]) == 8
    assert slowest(*EXAMPLE, [0, 1]) == 7
    assert min(least(*EXAMPLE, 2)) == 7


@pytest.mark.parametrize(
    ("handed", "share", "word"),
    [
        ([0, 1], 1.0, ""),
        ([0, 2], 0.4, "takes 8 us, 7 us can be had"),
        ([0, 1, 2], 0.0, "3 stages are made of 2"),
        ([1], 0.0, "rising from 0"),
        ([0, 4], 0.0, "rising from 0"),
        ([0, 1, 1], 0.0, "rising from 0"),
        ([], 0.0, "rising from 0"),
        ({"starts": [0, 1], "time": 1}, 0.0, "rising from 0"),
    ],
)
def test_cuts_are_priced_anew(handed: object, share: float, word: str) -> None:
    verdict = judge_stages(handed, EXAMPLE, 2, 7)
    assert verdict.share == share
    assert word in verdict.why


def test_stages_within_a_limit() -> None:
    assert judge_fewest([0, 1], EXAMPLE, 7, 2).share == 1.0
    assert judge_fewest([0, 2], EXAMPLE, 7, 2).why == "the busiest stage takes 8 us of 7 us, 1 too many"
    assert judge_fewest([0, 1, 2], EXAMPLE, 9, 2) == wrong("3 stages where 2 do")
    below = judge_fewest([0, 1, 3], EXAMPLE, 7, 2)
    assert (below.share, below.mistakes) == (0.4, ("a stage that takes exactly the limit is left out (it is allowed)",))


@pytest.mark.parametrize(
    ("handed", "share", "word"),
    [
        (5, 1.0, ""),
        (6, 1.0, ""),
        (5.0, 1.0, ""),
        (7, 0.0, "7 us is no bound: without messages a busiest stage of 6 us can be had"),
        (4, 0.4, "4 us is a bound, but 5 us is one without any search"),
        (-5, 0.0, "-5 us is a bound"),
        (True, 0.0, "where a figure is meant"),
        (None, 0.0, "where a figure is meant"),
    ],
)
def test_every_bound_that_holds_for_all_messages_is_as_good(handed: object, share: float, word: str) -> None:
    """Of layers of 3 us on two stages: an equal share is 4.5, whole layers need 6."""
    verdict = judge_bound(handed, [3, 3, 3], 2)
    assert verdict.share == share
    assert word in verdict.why


def test_a_bound_that_nobody_would_find_by_mistake_is_wrong() -> None:
    assert judge_bound(9_995, [10_000], 1) == wrong("9995 us is a bound, but 10000 us is one without any search")


@given(st.lists(st.integers(1, 30), min_size=1, max_size=7), st.data())
def test_what_the_handout_asks_is_a_bound(times: list[int], data: st.DataObject) -> None:
    stages = data.draw(st.integers(1, len(times)))
    assert judge_bound(max(*times, -(-sum(times) // stages)), times, stages).share == 1.0
    assert judge_bound(min(least(times, [0] * len(times), stages)), times, stages).share == 1.0


def handed(objective: int, on: dict[str, int]) -> dict[str, object]:
    """A model with a single solution."""
    variables = {name: [value, value] for name, value in on.items()} | {"busiest": [objective, objective]}
    return {"variables": variables, "minimise": {"busiest": 1}, "rows": []}


def on(*stages: int) -> dict[str, int]:
    return {f"layer {layer} on {stage}": int(stage == given) for layer, given in enumerate(stages) for stage in (0, 1)}


def test_models_are_solved_and_their_stages_priced_anew() -> None:
    assert judge_model(handed(7, on(0, 1, 1, 1)), EXAMPLE, 2, 7, ()).share == 1.0
    faked = judge_model(handed(1, on(0, 1, 1, 1)), EXAMPLE, 2, 7, ())
    assert (faked.share, faked.why) == (0.4, "the objective says 1, but the busiest stage takes 7 us")
    assert judge_model(handed(7, on(1, 0, 0, 0)), EXAMPLE, 2, 7, ()).why.startswith("the stages of the best solution go back")
    assert judge_model(handed(7, on(0, 1, 1)), EXAMPLE, 2, 7, ()).why.startswith("layer 3 is on 0 stages")
    assert judge_model(handed(7, on(0, 1, 1, 1) | {"layer 0 on 1": 1}), EXAMPLE, 2, 7, ()).why.startswith("layer 0 is on 2 stages")


def test_a_list_of_all_cuts_is_no_model_of_every_question() -> None:
    """Of one it has more variables than a model may have."""
    asked = [case.call.arguments for case in STAGES.tasks("hidden/ada")[2].cases]
    assert max(sum(comb(len(times) - 1, cuts) for cuts in range(stages)) for times, _, stages in asked) > MOST_VARIABLES
