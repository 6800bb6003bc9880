"""Plans of rules beside the best: groups of devices without a stage, and bounds that such a plan is below."""

from dataclasses import replace

import pytest

from crossopt.instances.errors import VerificationError
from crossopt.instances.question import read
from crossopt.instances.stages.pipedream.question import PipelineQuestion
from crossopt.solvers.answer import Limits, Progress
from crossopt.solvers.stages.pipedream.answer import Found, certified
from crossopt.solvers.stages.pipedream.check import check
from crossopt.solvers.stages.pipedream.engine import answered
from crossopt.solvers.stages.pipedream.judge import judge
from crossopt.solvers.stages.pipedream.plan import Stage
from crossopt.solvers.stages.pipedream.rivals import rivals_of, rules
from tests.paths import reference
from tests.solvers.stages.pipedream.profiles import asked_of, random_profile


def silent(progress: Progress) -> None:
    del progress


@pytest.mark.parametrize(("name", "shape"), [("vgg16", (8, 16)), ("gnmt", (8, 16)), ("gnmt", (4, 4, 8))])
def test_rules_leave_groups_out_that_have_no_stage(name: str, shape: tuple[int, ...]) -> None:
    question = read(reference(f"placement/pipedream/{name}/graph.txt"), (f"devices={list(shape)}",))
    equal = rules(question)["equal stages"]
    verdict = judge(question, equal)
    assert verdict.violations == ()
    assert [stage.group for stage in equal] == sorted(stage.group for stage in equal)
    assert len(equal) < question.devices


def test_one_node_on_groups_of_devices_is_one_stage() -> None:
    node = "node1 -- Layer -- forward_compute_time=5, backward_compute_time=0, activation_size=0, parameter_size=0\n"
    result = answered(asked_of(node, ("devices=[1, 2]",)), Limits(), silent)
    assert result.value == pytest.approx(2.5e-3, rel=1e-12)
    assert [rival.value for rival in result.rivals] == pytest.approx([5e-3, 2.5e-3, 5e-3], rel=1e-12)


@pytest.fixture
def beaten() -> tuple[PipelineQuestion, tuple[Stage, ...], float]:
    """A plan of a profile too large to look at all plans, with a value that a rule's plan is below."""
    question = asked_of(random_profile(1, 14))
    stages = rules(question)["one device"]
    return question, stages, judge(question, stages).value


def test_a_bound_above_the_plan_of_a_rule_is_never_answered(beaten: tuple[PipelineQuestion, tuple[Stage, ...], float]) -> None:
    question, stages, value = beaten
    with pytest.raises(VerificationError, match="bound: the plan of 'data parallel' takes"):
        certified(question, Found(stages, value, "a guess"), 0.0, lambda: 0.0, rivals_of(question))
    with pytest.raises(VerificationError, match="the result says that there is no plan"):
        certified(question, Found((), float("inf"), "a guess"), 0.0, lambda: 0.0, rivals_of(question))


def test_nor_is_it_accepted_in_a_result(beaten: tuple[PipelineQuestion, tuple[Stage, ...], float]) -> None:
    question, stages, value = beaten
    wrong = replace(certified(question, Found(stages, value, "a guess"), 0.0, lambda: 0.0, ()), rivals=rivals_of(question))
    assert any(fault.startswith("bound: the plan of 'equal stages' takes") for fault in check(wrong).refused)
    none = replace(certified(question, Found((), float("inf"), "a guess"), 0.0, lambda: 0.0, ()), rivals=rivals_of(question))
    assert any("the result says that there is no plan" in fault for fault in check(none).refused)
