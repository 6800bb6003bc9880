"""Plans of rules beside the best: groups of devices without a stage, and bounds that such a plan is below."""

from dataclasses import replace

import pytest

from crossopt.instances.errors import VerificationError
from crossopt.instances.question import read
from crossopt.instances.stages.pipedream import PipelineQuestion
from crossopt.solvers.answer import Limits, SearchOutcome
from crossopt.solvers.family import certify
from crossopt.solvers.proofs import UnverifiedBound
from crossopt.solvers.stages.pipedream.baselines import baselines_of, rules
from crossopt.solvers.stages.pipedream.family import FAMILY
from crossopt.solvers.stages.pipedream.judge import PipedreamPlan, judge
from tests.paths import reference
from tests.solvers.stages.pipedream.profiles import CHAIN, answered, asked_of, checked, random_profile


@pytest.mark.data
@pytest.mark.parametrize(("name", "shape"), [("vgg16", (8, 16)), ("gnmt", (8, 16)), ("gnmt", (4, 4, 8))])
def test_rules_leave_groups_out_that_have_no_stage(name: str, shape: tuple[int, ...]) -> None:
    question = read(reference(f"placement/pipedream/{name}/graph.txt"), (f"devices={list(shape)}",))
    equal = rules(question)["equal stages"]
    verdict, stages = judge(question, equal), equal.stages
    assert verdict.violations == ()
    assert [stage.group for stage in stages] == sorted(stage.group for stage in stages)
    assert len(stages) < question.devices


def test_one_node_on_groups_of_devices_is_one_stage() -> None:
    node = "node1 -- Layer -- forward_compute_time=5, backward_compute_time=0, activation_size=0, parameter_size=0\n"
    result = answered(asked_of(node, ("devices=[1, 2]",)))
    assert result.value == pytest.approx(2.5e-3, rel=1e-12)
    assert [rival.value for rival in result.rivals] == pytest.approx([5e-3, 2.5e-3, 5e-3], rel=1e-12)


@pytest.fixture
def beaten() -> tuple[PipelineQuestion, list[SearchOutcome[PipedreamPlan]]]:
    """A plan of a profile too large to look at all plans, said to be the best, with a value that a rule's plan is below; and none."""
    question = asked_of(random_profile(1, 14))
    plan, rivals = rules(question)["one device"], baselines_of(question)
    found = SearchOutcome(plan, judge(question, plan).value, UnverifiedBound("a guess"), "cuts", rivals=rivals)
    return question, [found, SearchOutcome(None, float("inf"), UnverifiedBound("a guess"), "cuts", rivals=rivals)]


def test_a_bound_above_the_plan_of_a_rule_is_neither_answered_nor_accepted(
    beaten: tuple[PipelineQuestion, list[SearchOutcome[PipedreamPlan]]],
) -> None:
    question, both = beaten
    rivals = answered(question).rivals
    for found, said in zip(both, ("'data parallel' takes", "says that nothing is possible"), strict=True):
        with pytest.raises(VerificationError, match=said):
            certify(FAMILY, question, found, Limits(), 0.0)
        wrong = replace(certify(FAMILY, question, replace(found, rivals=()), Limits(), 0.0), rivals=rivals)
        assert any(said in fault for fault in checked(wrong).refused)


def test_the_plans_of_rules_are_those_of_the_question() -> None:
    """Two of them in each other's place, each with its true value."""
    result = answered(asked_of(CHAIN))
    one, other, *rest = result.rivals
    swapped = (replace(other, name=one.name), replace(one, name=other.name), *rest)
    assert checked(replace(result, rivals=swapped)).refused == ("rivals: the rules give other plans",)
    assert checked(replace(result, rivals=())).refused == ("rivals: the rules give other plans",)
