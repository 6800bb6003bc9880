"""Where plans offload to the host, recomputation may make a step faster: proofs hold there, and say what enumeration says."""

from functools import cache
from typing import Any

import pytest

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.recomputation import number_of
from crossopt.instances.errors import SolverError
from crossopt.solvers.answer import Limits
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.boxes import search as boxes
from crossopt.solvers.codesign.linear.refine import LEAST_GAP
from crossopt.solvers.codesign.pricing import head_values_of
from tests.every import every
from tests.offloading_questions import offloading_question, several_offloading, slow_link
from tests.solvers.codesign.asking import answered, checked


@cache
def fastest() -> DesignResult:
    return answered(slow_link(), "exhaustive")


def test_with_a_slow_link_the_fastest_plan_computes_again_what_it_would_have_to_move() -> None:
    kept = answered(slow_link("recompute=none"), "exhaustive")
    design = fastest().answer.design
    assert design is not None
    assert design.plan.recompute == "full"
    assert kept.value is not None
    assert fastest().value is not None
    assert fastest().value < 0.98 * kept.value


@pytest.mark.parametrize("engine", ["auto", "boxes", "cpsat", "milp"])
def test_every_proof_finds_that_plan(engine: str) -> None:
    result = answered(slow_link(), engine)
    assert result.proved
    assert result.value is not None
    assert fastest().value is not None
    assert fastest().value <= result.value <= fastest().value * (1.0 + LEAST_GAP * (engine in ("cpsat", "milp")))
    assert checked(result, cross_check=True).accepted


@pytest.mark.parametrize("engine", [pytest.param("cpsat", marks=pytest.mark.slow), "milp"])
def test_a_cross_check_does_not_believe_the_groups_that_solver_and_boxes_share(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of which the fastest plan's are taken for slow: both leave it out, and what they then agree on is refused. Of a batch whose
    fastest plan no recipe knows."""
    question = slow_link("workload.global_batch=64")

    def without_full(instance: Any, chips: Any, heads: Any) -> Array:  # noqa: ANN401
        found = head_values_of(instance, chips, heads)
        found[heads.recompute == number_of("full")] = 1.0
        return found

    monkeypatch.setattr(boxes, "head_values_of", without_full)
    with pytest.raises(SolverError, match=r"a bound of .* was told, and there is a design of"):
        answered(question, engine)  # who looks for a proof of it looks at all plans
    claim, best = answered(question, engine, Limits(form="log")), answered(question, "exhaustive")
    assert claim.settled
    assert claim.value is not None
    assert best.value is not None
    assert claim.value > 1.01 * best.value
    refused = checked(claim, cross_check=True).refused
    assert any(reason.startswith("the cross-check is no proof") for reason in refused)


def assert_boxes_say_what_enumeration_says(seed: int) -> None:
    instance = offloading_question(seed)
    true, found = (answered(instance, name) for name in ("exhaustive", "boxes"))
    assert found.proved
    assert found.value == found.bound == true.value
    assert checked(found).refused == ()


def assert_boxes_say_so_of_several(seed: int) -> None:
    portfolio = several_offloading(seed)
    true, found = (answered(portfolio, name) for name in ("exhaustive", "boxes"))
    assert found.proved
    assert found.value == found.bound == true.value
    assert checked(found).refused == ()


@pytest.mark.slow
@every("seed", range(24))
def test_boxes_say_what_enumeration_says_of_drawn_questions(seed: int) -> None:
    assert_boxes_say_what_enumeration_says(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_boxes_say_what_enumeration_says_of_several_workloads(seed: int) -> None:
    assert_boxes_say_so_of_several(seed)


@pytest.mark.slow
def test_boxes_say_what_enumeration_says_of_many_drawn_questions() -> None:
    for seed in range(36, 400):
        assert_boxes_say_what_enumeration_says(seed)
    for seed in range(8, 80):
        assert_boxes_say_so_of_several(seed)


def test_the_drawn_questions_are_of_both_kinds() -> None:
    options = [dict(offloading_question(seed).plan_options)["offload"] for seed in range(36)]
    forced = [all("activations" in word or word == "all" for word in words) for words in options]
    assert 12 < sum(forced) < 30
