"""Every form bounds the optimum from below, however many rounds it had, and the loop ends at the optimum with each of them."""

import time

import pytest

from crossopt.formulation.codesign.forms import FORMS
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import combinations
from crossopt.solvers.answer import Progress
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.backends.answer import Answer
from crossopt.solvers.codesign.enumeration.exhaustive import search
from crossopt.solvers.codesign.linear.refine import LEAST_GAP, Refined, refine_among
from tests.solvers.codesign.linear.test_refine import SOLVERS, WIDE, agrees, cold, step_time_question
from tests.solvers.codesign.questions import FREE, TINY_FREE, ask

TRUE: dict[int, float | None] = {}
FAST = ("strong", "table")
EACH = pytest.mark.parametrize("form", [form if form in FAST else pytest.param(form, marks=pytest.mark.slow) for form in FORMS])


def silent(progress: Progress) -> None:
    del progress


def refined(instance: Instance, form: str, rounds: int, solver: str = "highs") -> Refined:
    """The loop from a cold start, interrupted after some rounds."""
    left = [rounds]

    def solve(model: object, spend: Spend) -> Answer:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return backend(solver)(model, spend)  # type: ignore[arg-type]

    return refine_among(instance, cold(instance), solve, FORMS[form], LEAST_GAP, time.monotonic() + 120, silent)


@EACH
@pytest.mark.parametrize("seed", [FREE[7], pytest.param(FREE[6], marks=pytest.mark.slow)])
def test_the_bound_of_every_round_is_below_the_optimum(seed: int, form: str) -> None:
    instance = step_time_question(seed)
    true = TRUE.setdefault(seed, search(instance, silent).value)
    for rounds in (1, 3, 200):
        found = refined(instance, form, rounds)
        if found.bound is not None and true is not None:
            assert found.bound <= true
        if found.stopped == "complete":
            assert agrees(found, true)
            return
    raise AssertionError("the loop did not end in 200 rounds")


@EACH
@pytest.mark.parametrize("solver", SOLVERS.values())
def test_the_loop_ends_at_the_optimum_of_a_question_of_many_chips(form: str, solver: str) -> None:
    instance = ask(TINY_FREE, *WIDE)
    true = search(instance, silent).value
    assert agrees(refined(instance, form, 200, solver), true)


GIVEN = "hardware: a100-80g"
EDGES = {
    "hardware that is given": TINY_FREE[: TINY_FREE.index("technology")]
    + GIVEN
    + "\nchoices:\n  tensor: [1, 2]\n  recompute: [none, full]\n"
}
EDGES["a part that nothing fits"] = TINY_FREE.replace("hbm_stacks: [2, 4]", "hbm_stacks: [2, 4]\n  l2_area: [2000 mm^2, 3000 mm^2]")


@EACH
@pytest.mark.parametrize("edge", EDGES)
def test_forms_of_questions_at_the_edge(edge: str, form: str) -> None:
    instance = ask(EDGES[edge])
    true = search(instance, silent).value
    assert (true is None) == (edge == "a part that nothing fits")
    assert agrees(refined(instance, form, 200), true)


def test_the_questions_are_not_all_alike() -> None:
    """Some have dozens of plans."""
    counts = [combinations(step_time_question(seed)) for seed in FREE[6:9]]
    assert max(counts) > 50
