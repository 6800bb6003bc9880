"""Plans of rules beside the best: groups of devices without a stage."""

import pytest

from instances.pipeline.question import Asked, read_pipeline
from solvers.certify import Limits
from solvers.pipeline.engine import answered
from solvers.pipeline.judge import judge
from solvers.pipeline.rivals import rules
from solvers.watching import Progress
from tests.paths import reference
from tests.pipeline.profiles import asked_of


def silent(progress: Progress) -> None:
    del progress


@pytest.mark.parametrize(("name", "shape"), [("vgg16", (8, 16)), ("gnmt", (8, 16)), ("gnmt", (4, 4, 8))])
def test_rules_leave_groups_out_that_have_no_stage(name: str, shape: tuple[int, ...]) -> None:
    question = read_pipeline(reference(f"placement/pipedream/{name}/graph.txt"), Asked(devices=shape))
    equal = rules(question)["equal stages"]
    verdict = judge(question, equal)
    assert verdict.violations == ()
    assert [stage.group for stage in equal] == sorted(stage.group for stage in equal)
    assert len(equal) < question.devices


def test_one_node_on_groups_of_devices_is_one_stage() -> None:
    node = "node1 -- Layer -- forward_compute_time=5, backward_compute_time=0, activation_size=0, parameter_size=0\n"
    result = answered(asked_of(node, Asked(devices=(1, 2))), Limits(), silent)
    assert result.value == pytest.approx(2.5e-3, rel=1e-12)
    assert [rival.value for rival in result.rivals] == pytest.approx([5e-3, 2.5e-3, 5e-3], rel=1e-12)
