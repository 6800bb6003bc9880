"""Proofs over the plans that a stack launches: engines agree, the judge refuses others, and a saved result keeps its stack."""

import json
from dataclasses import asdict, replace
from itertools import cycle, product

import pytest

from crossopt.crossflow.plan import Plan
from crossopt.instances.codesign.question import read_question
from crossopt.instances.codesign.stacks.table import Machine
from crossopt.solvers.answer import Limits
from crossopt.solvers.checking import check
from crossopt.solvers.codesign.answer import Candidate, Designs, answer_of
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.judge import judge, verify
from tests.every import every
from tests.instances.codesign.test_stacks import plans_of
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered
from tests.stack_questions import STACK_NAMES, stack_question


@every(("stack", "free"), zip(STACK_NAMES, cycle((True, False)), strict=False))
def test_boxes_and_enumeration_agree_on_what_a_stack_launches(stack: str, free: bool) -> None:
    assert_agreement(stack, experts=not free, free=free)


@pytest.mark.slow
@every(("stack", "experts", "free"), product(STACK_NAMES, (False, True), (False, True)))
def test_boxes_and_enumeration_agree_on_every_question_about_stacks(stack: str, experts: bool, free: bool) -> None:
    assert_agreement(stack, experts=experts, free=free)


def assert_agreement(stack: str, *, experts: bool, free: bool) -> None:
    asked = stack_question(stack, experts=experts, free=free)
    first, second = answered(asked, "boxes"), answered(asked, "exhaustive")
    assert first.proved
    assert second.proved
    assert first.value == second.value


@pytest.mark.parametrize(("stack", "free", "engine"), [("torchtitan", True, "milp"), ("deepspeed", False, "cpsat")])
def test_integer_models_agree_on_what_a_stack_launches(stack: str, free: bool, engine: str) -> None:
    asked = stack_question(stack, experts=free, free=free)
    true = answered(asked, "exhaustive").value
    found = answered(asked, engine)
    assert found.bound is not None
    assert found.value is not None
    assert true is not None
    assert found.bound <= true <= found.value


@pytest.mark.parametrize(("stack", "engine"), [("megatron-core", "milp"), ("torchtitan", "boxes")])
def test_engines_agree_where_tensor_ranks_lie_on_two_nodes(stack: str, engine: str) -> None:
    """Nodes of two: of the plans that the rest of the table leaves some hide their exchange on four ranks, and none of those is left."""
    asked = stack_question(stack, host=False, node=2)
    inside, anywhere = (plans_of(replace(asked, machine=machine)) for machine in (asked.machine, Machine()))
    assert max(inside.tensor[inside.tensor_exchange == 1]) == 2
    assert max(anywhere.tensor[anywhere.tensor_exchange == 1]) == 4
    true, found = answered(asked, "exhaustive").value, answered(asked, engine)
    assert found.bound is not None
    assert found.value is not None
    assert true is not None
    assert found.bound <= true <= found.value
    assert engine == "milp" or found.value == true


def test_the_judge_refuses_a_plan_that_the_stack_does_not_launch() -> None:
    asked = stack_question("torchtitan")
    plan = Plan(data=8, zero=1, overlap="data")
    assert verify(replace(asked, stack=None), Candidate(0, plan)).value > 0.0
    with pytest.raises(ValueError, match="torchtitan: ranks without a pipeline share gradients or weights"):
        verify(asked, Candidate(0, plan))


def test_a_result_keeps_its_stack_and_an_edit_to_a_plan_outside_of_it_is_refused() -> None:
    asked = stack_question("torchtitan")
    result = answered(asked, "exhaustive")
    again = read_question(result.question)
    assert again.stack is not None
    assert again.stack.name == "torchtitan"
    assert check(FAMILY, result, INSTANCES).accepted
    strange = answer_of(asked, Candidate(0, Plan(data=8, zero=1, overlap="data")))
    assert isinstance(strange, Designs)
    with pytest.raises(ValueError, match="torchtitan"):
        judge(asked, strange)
    assert not check(FAMILY, replace(result, answer=strange), INSTANCES).accepted
    assert json.dumps(asdict(strange))


def test_searchers_find_plans_that_are_launched() -> None:
    asked = stack_question("torchtitan", experts=True)
    result = answered(asked, "random", Limits(seconds=2.0))
    assert result.value is not None
