"""Groups of ranks that share (HSDP): engines agree with enumeration, and no option deletes a plan."""

import pytest

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import allows
from crossopt.solvers.codesign.linear.refine import LEAST_GAP
from tests.instances.codesign.test_space import plans_of
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.questions import ask

_QUESTION = """\
kind: codesign
workload: {transformer: {layers: 8, hidden: 2048, heads: 16, ffn: 8192, vocabulary: 8192, sequence: 1024}, global_batch: 32}
cluster: {devices: 16, devices_per_node: 4, cluster: {bandwidth: 5 GB/s}}
hardware: v100-16g
choices:
  tensor: [1, 2]
  context: [1, 2]
  pipeline: [1, 2]
  microbatch: [1, 2]
  zero: [0, 1, 2, 3]
  shard: [4, 0, 2]
  recompute: [none, full]
"""
_EXPERTS = "workload.transformer.experts=4"


def question(*settings: str) -> Instance:
    return ask(_QUESTION, "workload.precision=fp16", *settings)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "settings", [(), ("overlap=[none, both]",), (_EXPERTS, "expert=[1, 2, 4]"), ("objective=energy_per_token",), ("shard=[4]",)]
)
def test_every_engine_says_what_enumeration_says(settings: tuple[str, ...]) -> None:
    asked = question(*settings)
    true = answered(asked, "exhaustive")
    assert true.value is not None
    for engine in ("auto", "boxes", *(("milp", "cpsat") if asked.objective == "step_time" else ())):
        found = answered(asked, engine)
        assert found.proved
        assert found.value is not None
        assert true.value <= found.value <= true.value * (1.0 + LEAST_GAP * (engine in ("cpsat", "milp")))


def test_plans_that_share_nothing_are_there_once_whatever_the_groups() -> None:
    """And groups of all ranks are all of them."""
    plans, alone = plans_of(question()), plans_of(question("shard=0"))
    assert len(plans) == len(set(plans))
    assert {plan for plan in plans if plan.zero == 0} == {plan for plan in alone if plan.zero == 0}
    assert set(alone) <= set(plans)
    assert {plan for plan in plans_of(question("shard=[4]")) if plan.zero == 0} == {plan for plan in alone if plan.zero == 0}
    assert set(plans_of(question("shard=[64]"))) == set(alone)
    assert all(allows(question(), plan) is None for plan in plans)


@pytest.mark.parametrize("engine", ["exhaustive", "boxes"])
def test_slow_links_between_nodes_are_spared_by_groups_of_a_node(engine: str) -> None:
    """Shared weights of two bytes are gathered in the node, forward and backward, and only gradients of two bytes leave it."""
    narrow = ("tensor=1", "context=1", "pipeline=1", "zero=3", "workload.gradient_bytes=2")
    result = answered(question(*narrow), engine)
    design = result.answer.design
    assert design is not None
    assert design.plan.shard == 4
    assert checked(result, cross_check=True).accepted
