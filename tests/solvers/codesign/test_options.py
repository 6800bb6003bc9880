"""Options of plans: engines agree with enumeration on recomputed modules, groups that share, offloading, and rules of stacks."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import cache
from itertools import cycle, product
from math import inf
from typing import Any

import numpy as np
import pytest

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.plan import Plan, Plans, plan_at
from crossopt.crossflow.recomputation import number_of
from crossopt.instances.codesign.instance import Instance, Portfolio
from crossopt.instances.codesign.question import read_question
from crossopt.instances.codesign.space import allows, hardware_points, plan_blocks
from crossopt.instances.codesign.stack_table import Machine
from crossopt.instances.errors import InstanceError
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.checking import check
from crossopt.solvers.codesign import exhaustive
from crossopt.solvers.codesign.answer import Candidate, DesignResult, Designs, answer_of
from crossopt.solvers.codesign.boxes import search as boxes
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import reread, search
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.judge import judge, verify
from crossopt.solvers.codesign.linear.refine import LEAST_GAP
from crossopt.solvers.codesign.objective import head_values_of
from tests.every import every
from tests.instances.codesign.test_space import plans_of
from tests.instances.codesign.test_stacks import plans_of as stack_plans_of
from tests.offloading_questions import offloading_question, several_offloading, slow_link
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import again, answered, checked
from tests.solvers.codesign.questions import TINY_FREE, ask
from tests.solvers.codesign.several_questions import least_by_brute_force, random_several, several
from tests.solvers.codesign.test_objectives import timed
from tests.solvers.codesign.wide_questions import wide_text
from tests.stack_questions import STACK_NAMES, stack_question

# Recomputation of single modules: engines agree with enumeration where its modes are neither less nor more than each other.

_QUESTION = """\
kind: codesign
workload: {transformer: {layers: 8, hidden: 1024, heads: 16, ffn: 4096, vocabulary: 8192, sequence: 2048}, global_batch: 32}
cluster: {devices: 8, devices_per_node: 4, host: {memory: 64 GiB, bandwidth: 25 GB/s}}
hardware: v100-16g
choices:
  tensor: [1, 2]
  pipeline: [1, 2]
  microbatch: [2, 4, 8]
  overlap: [none, both]
"""
_MODES = ("elements", "selective", "selective-elements", "full")
_OF_EXPERTS = ("expert-activation", "up-projections", "norms+up-projections", "feed-forward-norm+expert-activation", "elements", "full")
_EXPERTS = (
    "{layers: 8, hidden: 1024, heads: 16, head_size: 64, ffn: 4096, vocabulary: 8192, sequence: 2048, gated: true, experts: 8, "
    "experts_per_token: 2, expert_ffn: 1024, shared_experts: 1, dense_layers: 1, "
    "query_rank: 512, kv_rank: 256, rope_size: 32, value_size: 64, biases: false}"
)
_DENSE = 12
"""Seeds of dense networks; further ones are of experts and latents."""


@cache
def drawn(seed: int) -> Instance:
    """A question like no other about modes of which memory allows some, mostly without that of none."""
    random = np.random.default_rng([seed, 7])
    experts = seed >= _DENSE
    modes = [mode for mode in (_OF_EXPERTS if experts else _MODES) if random.random() < 0.6] or ["elements"]
    modes += ["none"] * (random.random() < 0.3)
    offload = str(random.choice(["none", "[none, activations]", "[activations, all]"]))
    layers = str(random.choice(["0", "[1, 2]", "[0, 1, 3]"]))
    return ask(
        _QUESTION,
        f"recompute_layers={layers}",
        f"recompute=[{', '.join(modes)}]",
        f"offload={offload}",
        f"workload.attention={random.choice(['flash', 'unfused'])}",
        "workload.precision=fp16",
        *(
            (f"workload.transformer={_EXPERTS}", "expert=[1, 2]")
            if experts
            else (f"workload.transformer.gated={random.choice(['true', 'false'])}",)
        ),
        f"workload.transformer.hidden={random.choice([1024, 2048, 4096])}",
    )


@pytest.mark.thorough
@pytest.mark.parametrize("seeds", [(0, _DENSE), pytest.param(range(_DENSE + 8), marks=pytest.mark.slow)], ids=str)
def test_every_engine_says_what_enumeration_says(seeds: Sequence[int]) -> None:
    for seed in seeds:
        assert_agreement(seed)


def assert_agreement(seed: int) -> None:
    true = answered(drawn(seed), "exhaustive")
    for engine in ("auto", "boxes", "milp", "cpsat"):
        found = answered(drawn(seed), engine)
        assert found.proved
        assert (found.value is None) == (true.value is None)
        if true.value is not None:
            assert found.value is not None
            assert true.value <= found.value <= true.value * (1.0 + LEAST_GAP * (engine in ("cpsat", "milp")))


@pytest.mark.slow
def test_drawn_questions_have_optima_of_several_modes() -> None:
    answers = [answered(drawn(seed), "exhaustive").answer for seed in range(_DENSE + 8)]
    for some in (answers[:_DENSE], answers[_DENSE:]):
        assert len({answer.design.plan.recompute for answer in some if answer is not None}) > 2


@pytest.mark.parametrize("engine", ["exhaustive", "boxes"])
def test_elements_make_room_where_scores_are_fused_and_cost_least(engine: str) -> None:
    """405B on 16,384 H100 as it was trained (Llama team 2024, table 4): over the memory without recomputation, under it with that of
    elements, of which fused attention is none."""
    asked = ask(
        "kind: codesign\nworkload: {model: llama3-405b, global_batch: 2048}\ncluster: {devices: 16384}\nhardware: h100-sxm\n"
        "choices: {tensor: 8, pipeline: 16, interleave: 8, sequence_parallel: true, zero: 1, overlap: both,"
        " recompute: [none, elements, selective, full]}\n"
    )
    result = answered(asked, engine)
    design = result.answer.design
    assert design is not None
    assert design.plan.recompute == "elements"
    assert checked(result, cross_check=True).accepted


# Groups of ranks that share (HSDP): engines agree with enumeration, and no option deletes a plan.

_GROUPS_QUESTION = """\
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
_GROUPS_EXPERTS = "workload.transformer.experts=4"


def question(*settings: str) -> Instance:
    return ask(_GROUPS_QUESTION, "workload.precision=fp16", *settings)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "settings", [(), ("overlap=[none, both]",), (_GROUPS_EXPERTS, "expert=[1, 2, 4]"), ("objective=energy_per_token",), ("shard=[4]",)]
)
def test_groups_every_engine_says_what_enumeration_says(settings: tuple[str, ...]) -> None:
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


# Where plans offload to the host, recomputation may make a step faster: proofs hold there, and say what enumeration says.


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
    contradicted = answered(question, engine)  # the search for a proof looks at all plans, and finds one below the bound
    assert (contradicted.proved, contradicted.settled, contradicted.bound) == (False, False, None)
    assert any(re.search(r"a bound of .* was reported, but there is a design of", note) for note in contradicted.notes)
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


# Proofs over the plans that a stack launches: engines agree, the judge refuses others, and a saved result keeps its stack.


@every(("stack", "free"), zip(STACK_NAMES, cycle((True, False)), strict=False))
def test_boxes_and_enumeration_agree_on_what_a_stack_launches(stack: str, free: bool) -> None:
    stacks_assert_agreement(stack, experts=not free, free=free)


@pytest.mark.slow
@every(("stack", "experts", "free"), product(STACK_NAMES, (False, True), (False, True)))
def test_boxes_and_enumeration_agree_on_every_question_about_stacks(stack: str, experts: bool, free: bool) -> None:
    stacks_assert_agreement(stack, experts=experts, free=free)


def stacks_assert_agreement(stack: str, *, experts: bool, free: bool) -> None:
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
    inside, anywhere = (stack_plans_of(replace(asked, machine=machine)) for machine in (asked.machine, Machine()))
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
    with pytest.raises(ValueError, match="torchtitan: without pipeline parallelism, data parallelism is ZeRO-2, ZeRO-3"):
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


# Several sets of constants: the slowest counts, and every limit holds under each; against every design by hand, and engine by engine.

WORST = "objective=worst_step_time"
SETS = ("factors.core.nominal_power=1.3", "factors.dram.energy_per_bit=1.5", "factors.network.utilisation=0.5")
WRITTEN = "sets=[{core: {nominal_power: 1.3}}, {dram: {energy_per_bit: 1.5}}, {network: {utilisation: 0.5}}]"


def value_of(instance: Instance, chosen: Candidate) -> float:
    """Of one design under one set, infinite where it cannot be built or breaks a limit."""
    try:
        verdict = verify(instance, chosen)
    except ValueError:
        return inf
    return verdict.value if verdict.accepted else inf


@pytest.mark.thorough
@pytest.mark.parametrize("budget", ["budget.power=400 W", pytest.param("budget.power=300 W", marks=pytest.mark.slow)])
def test_the_best_design_is_the_one_whose_slowest_set_is_fastest_among_those_that_keep_every_limit_under_all(budget: str) -> None:
    settings = (WORST, budget, "pipeline=1", "recompute=none", "compute_area=[200 mm^2, 400 mm^2]", "hbm_stacks=4")
    instance, sets = ask(TINY_FREE, *settings, WRITTEN), [ask(TINY_FREE, *settings, *one) for one in ((), *((one,) for one in SETS))]
    plans = [plan_at(block, row) for block in plan_blocks(instance) if isinstance(block, Plans) for row in range(len(block))]
    designs = [Candidate(point, plan) for point in range(hardware_points(instance)) for plan in plans]
    values = [[value_of(one, design) for one in sets] for design in designs]
    best = min(max(row) for row in values)
    assert any(row[0] < best < inf for row in values) or best == inf
    for engine in ("exhaustive", "boxes"):
        result = answered(instance, engine)
        assert (result.value, result.bound) == ((best, best) if best < inf else (None, None))
        assert checked(result).accepted
        if best < inf:
            assert any(
                max(row) == best and result.answer.design.plan.tensor == design.plan.tensor
                for row, design in zip(values, designs, strict=True)
            )  # type: ignore[union-attr]


def test_a_limit_that_only_another_set_breaks_is_told() -> None:
    """Without the other set 330 W are enough; at eight times the energy no stack is left within them."""
    usual = answered(ask(TINY_FREE, WORST, "budget.power=330 W"), "exhaustive")
    result = answered(ask(TINY_FREE, WORST, "budget.power=330 W", "sets=[{dram: {energy_per_bit: 8}}]"), "exhaustive")
    assert usual.value is not None
    assert result.status == "INFEASIBLE"
    assert "with dram.energy_per_bit x 8" in " ".join(result.reasons)
    assert checked(result).accepted


SOME = (46, 70, 87)
"""Questions that have a design, and a worse one under all sets."""


@pytest.mark.thorough
@pytest.mark.parametrize("seeds", [SOME, pytest.param(range(200), marks=pytest.mark.slow)], ids=["some", "more"])
def test_boxes_and_enumeration_agree_under_several_sets(seeds: Iterable[int]) -> None:
    """And no set makes an answer better."""
    found = [assert_they_agree(seed) for seed in seeds if "base: accelerator-7nm" in wide_text(seed, 5, 3)]
    assert found.count(True) >= 3


def assert_they_agree(seed: int) -> bool:
    instance = timed(ask(wide_text(seed, choices=5, options=3), WORST, WRITTEN), 1.5)
    one, other = search(instance, unwatched, Spend()), exhaustive.search(instance, unwatched)
    alone = exhaustive.search(replace(instance, others=()), unwatched)
    assert one.value == other.value
    if one.best is not None:
        assert verify(instance, one.best).value == one.value
        assert reread(instance, one.cuts, one.value or 0.0).faults == ()
        assert alone.value is not None
        assert (one.value or 0.0) >= alone.value
    return one.value is not None and alone.value is not None and one.value > alone.value


# Several workloads on one chip ------------------------------------------------------------------------------------------------------

PAIR = """\
kind: codesign
workloads:
  - {model: gpt3-125m, global_batch: 16, name: a}
  - {model: gpt3-350m, global_batch: 16, weight: 3, name: b}
cluster: {devices: 4}
technology: accelerator-7nm
choices: {compute_area: [300 mm^2, 400 mm^2], hbm_stacks: [2, 5], tensor: [1, 2]}
objective: worst_step_time
"""
REGRET = ("combine=worst_regret", "workloads.1.weight=null")
ON_A100 = ("technology=null", "hardware=a100-80g", "choices={tensor: [1, 2]}", "sets=[{efficiency: {matrix: 0.5}}]")
FP8 = ("technology=accelerator-4nm", "workloads.1.precision=fp8", "budget={power: 900 W}")


def assert_every_engine_agrees(portfolio: Portfolio, expected: float) -> None:
    for engine in ("boxes", "exhaustive"):
        result = answered(portfolio, engine)
        assert (inf if result.value is None else result.value) == expected
        assert result.proved
        assert checked(again(result)).accepted


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(ON_A100, id="device"),
        pytest.param(("sets=[{dram: {energy_per_bit: 1.9}}]", "budget.power=370 W"), id="limit"),
        pytest.param((WRITTEN,), marks=pytest.mark.slow, id="weighted"),
        pytest.param((WRITTEN, *REGRET), marks=pytest.mark.slow, id="regret"),
        pytest.param((WRITTEN, *FP8), marks=pytest.mark.slow, id="precisions"),
    ],
)
def test_workloads_on_one_chip_are_each_held_to_every_set(settings: tuple[str, ...]) -> None:
    portfolio = several(PAIR, *settings)
    expected = least_by_brute_force(portfolio)
    assert expected < inf
    assert_every_engine_agrees(portfolio, expected)
    alone = answered(several(PAIR, *(one for one in settings if not one.startswith("sets"))), "exhaustive").value
    assert alone is not None
    assert alone < expected or REGRET[0] in settings


def test_a_chip_that_breaks_its_limit_under_another_set_serves_no_workload() -> None:
    portfolio = several(PAIR, "sets=[{dram: {energy_per_bit: 8}}]", "budget.power=330 W")
    assert least_by_brute_force(portfolio) == inf
    assert_every_engine_agrees(portfolio, inf)


@pytest.mark.slow
@every("seed", range(60))
def test_random_questions_with_workloads_and_sets_are_answered_as_brute_force_answers_them(seed: int) -> None:
    drawn = random_several(seed)
    free = "technology: " in drawn.document["text"]
    portfolio = several(drawn.document["text"], WORST, WRITTEN if free else "sets=[{efficiency: {matrix: 0.5}}, {dram: {bandwidth: 0.7}}]")
    assert_every_engine_agrees(portfolio, least_by_brute_force(portfolio))


# What is written --------------------------------------------------------------------------------------------------------------------


def test_ranges_are_every_constant_at_both_ends() -> None:
    instance = ask((INSTANCES / "quickstart.yaml").read_text(encoding="utf-8"), WORST, "sets=ranges")
    named = [one.name for one in instance.others]
    assert "core.area x 0.8" in named
    assert "dram.energy_per_bit x 1.1" in named
    assert not [name for name in named if name.startswith(("efficiency", "technology"))]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("sets=ranges",), "sets: several sets of constants are for the worst of them (write objective: worst_step_time"),
        ((WORST, "sets=[{core: {aera: 2}}]"), "sets.core.aera: this is no figure that can be multiplied (did you mean 'area'?)"),
    ],
)
def test_sets_that_mean_nothing_are_told(settings: tuple[str, ...], words: str) -> None:
    with pytest.raises(InstanceError) as refused:
        ask(TINY_FREE, *settings)
    assert words in str(refused.value)
