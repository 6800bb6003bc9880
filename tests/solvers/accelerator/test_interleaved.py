"""Interleaved pipelines: bubbles and memory by hand, answers equal to a look at everything, refused edits, bounds of searches that end."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from crossopt.formulation.accelerator import interleaved
from crossopt.instances.accelerator.question import AcceleratorQuestion
from crossopt.instances.errors import InstanceError
from crossopt.solvers.accelerator.family import FAMILY
from crossopt.solvers.accelerator.judge import AcceleratorFigures, AcceleratorPlan
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.checking import check_answer
from crossopt.solvers.family import solve
from tests.extent import some
from tests.solvers.accelerator.drawn import drawn_interleaved, least_of_everything, question_of

FOUR: dict[str, Any] = {
    "kind": "accelerator",
    "devices": 2,
    "batch": 4,
    "memory": "65 B",
    "bandwidth": "1 GB/s",
    "clock": "1 Hz",
    "recompute": ["none"],
    "pipeline": ["1f1b", "interleaved"],
    "chips": {"tensor_cores": [1], "vector_cores": [1], "width": [1], "depth": [1], "buffer": [2], "least_share": 0},
    "layers": [
        {
            "name": "layer",
            "count": 4,
            "parameters": "10 B",
            "activations": "5 B",
            "operators": [{"name": "product", "cores": "tensor", "size": 10}],
        },
    ],
}
"""Four layers of 10 s forward and 20 s backward, which two devices share."""


def answered(question: AcceleratorQuestion) -> Result[AcceleratorPlan, AcceleratorFigures]:
    return solve(FAMILY, question, "auto", Limits(), unwatched)


def test_two_chunks_halve_the_bubble_and_store_more_microbatches() -> None:
    """(4 + 1) x 60 s for two stages of two layers; (2 x 4 + 1) x 30 s in chunks of one, of which the first device stores five."""
    result = answered(question_of(FOUR))
    assert result.value == pytest.approx(270.0)
    assert result.answer is not None
    assert result.details is not None
    plan = result.answer.plans[0]
    assert (plan.pipeline, plan.interleave, len(plan.stages), plan.data) == ("interleaved", 2, 4, 1)
    assert [load.memory for load in result.details.networks[0].stages] == [65.0, 55.0, 65.0, 55.0]
    assert result.details.networks[0].devices == 2
    less = answered(question_of(FOUR, "memory=64 B"))
    assert less.value == pytest.approx(300.0)
    assert answered(question_of(FOUR, "memory=64 B", "pipeline=interleaved")).status == "INFEASIBLE"


def test_microbatches_that_do_not_fill_all_devices_run_as_if_they_did() -> None:
    """Three microbatches on two devices take as long as four."""
    assert answered(question_of(FOUR, "batch=3", "pipeline=interleaved")).value == pytest.approx(270.0)


def test_edits_of_an_interleaved_plan_are_refused() -> None:
    question = question_of(FOUR)
    result = answered(question)
    assert result.answer is not None
    plan = result.answer.plans[0]
    for edited in (
        replace(plan, interleave=1),
        replace(plan, interleave=4),
        replace(plan, interleave=0),
        replace(plan, pipeline="1f1b"),
        replace(plan, pipeline="1f1b", interleave=1),
    ):
        answer = replace(result.answer, plans=(edited,))
        assert not check_answer(FAMILY, replace(result, answer=answer), question).accepted
    raised = replace(result, value=271.0, bound=271.0)
    assert FAMILY.prove(question, raised, unwatched).refused


@pytest.mark.parametrize("seed", some(range(300), 4))
def test_interleaved_answers_are_the_best_of_everything(seed: int) -> None:
    question = drawn_interleaved(seed)
    result = answered(question)
    assert result.proved
    assert (inf if result.value is None else result.value) == pytest.approx(least_of_everything(question), rel=1e-9)
    assert check_answer(FAMILY, result, question).accepted


def test_a_search_that_ends_early_has_a_bound_or_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages that exceed the memory are no answer, and none is no proof that there is none."""
    questions = [drawn_interleaved(seed) for seed in (96, 51)]
    optima = [answered(question) for question in questions]
    monkeypatch.setattr(interleaved, "MOST_BRANCHES", 0)
    kept, none = (answered(question) for question in questions)
    assert optima[0].value is not None
    assert kept.bound is not None
    assert kept.status == "FEASIBLE"
    assert kept.value == optima[0].value > kept.bound
    assert (optima[1].status, none.status, none.value) == ("OPTIMAL", "UNKNOWN", None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["gradients=every"], "an interleaved pipeline waits for the gradients of its first chunk alone"),
        (["interleave=[1, 2]"], "an interleaved pipeline has 2 chunks or more on each device"),
    ],
)
def test_faults_of_interleaved_pipelines(settings: list[str], message: str) -> None:
    with pytest.raises(InstanceError, match=message):
        question_of(FOUR, *settings)
