"""Rivals: rules, recipes, schools, chips of practice and alternating halves keep every limit and never beat the optimum."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from math import floor
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.technology import Technology
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.registry import ladder
from crossopt.instances.codesign import space
from crossopt.instances.codesign.boxes import grid
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import combinations, device_at, hardware_choice, hardware_point, hardware_points
from crossopt.instances.errors import RefusedError
from crossopt.reports.sheets.codesign.design import baseline_label, baseline_text
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.codesign import recipes, searchers
from crossopt.solvers.codesign.answer import candidate_in
from crossopt.solvers.codesign.boxes import engines
from crossopt.solvers.codesign.engines import auto
from crossopt.solvers.codesign.exhaustive import search
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.megatron import expert_design, expert_point, on_chip, usual_chips, with_plan
from crossopt.solvers.codesign.recipes import (
    RECIPES,
    Practice,
    fsdp_design,
    own_recipe,
    pipedream_design,
    practice_of,
    recipes_baselines,
    recipes_design,
    simplest_design,
)
from tests.every import every
from tests.extent import some
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import GEMM, LSTM, TINY_FREE, ask, random_question
from tests.solvers.codesign.several_questions import TWO, several

# The expert rule: it chooses what a practitioner would, it keeps every limit, and it never beats the optimum.

SMALL = {
    name: path for name, path in ladder().items() if name in {"tiny", "small", "quickstart", "mixtral-8x7b-64xh100", "deepflow-lstm-64"}
}


@pytest.mark.parametrize("path", SMALL.values(), ids=SMALL)
def test_the_rule_never_beats_the_optimum(path: Path) -> None:
    instance = read_instance(path)
    optimum, chosen = search(instance, unwatched).value, expert_design(instance)
    assert optimum is not None
    assert chosen is not None
    assert verify(instance, chosen).value >= optimum


@pytest.mark.thorough
@every("seed", range(20))
def test_the_rule_keeps_every_limit_or_gives_no_design(seed: int) -> None:
    instance = random_question(seed)
    found, chosen = search(instance, unwatched), expert_design(instance)
    if chosen is None:
        return
    verdict = verify(instance, chosen)
    assert verdict.accepted
    assert found.value is not None
    assert verdict.value >= found.value


@pytest.mark.thorough
def test_there_are_random_questions_of_both_kinds() -> None:
    """The test above would say nothing if the rule never found a design."""
    chosen = [expert_design(random_question(seed)) for seed in range(40)]
    assert sum(design is None for design in chosen) >= 5
    assert sum(design is not None for design in chosen) >= 15


def planned(instance: Instance) -> Plan:
    chosen = expert_design(instance)
    assert chosen is not None
    assert isinstance(chosen.plan, Plan)
    return chosen.plan


def test_a_model_that_one_device_holds_is_only_spread_over_data() -> None:
    """Tensor and pipeline parallelism cost exchange and bubbles, and only pay for memory (Narayanan et al. 2021, takeaway 1)."""
    assert planned(read_instance(INSTANCES / "tiny.yaml")) == Plan(data=8, microbatch=2)


def test_a_model_that_a_node_cannot_hold_is_split_over_the_node_first_and_then_over_stages() -> None:
    """GPT-3 175B on 64 A100 of 85.9 GB in nodes of eight, by hand.

    Tensor parallelism takes the node. A weight costs 2 + 4 bytes and its optimizer state 12, shared by the replicas (ZeRO 1). Two stages
    leave four replicas: 175e9 / 16 x (6 + 12 / 4) = 98 GB do not fit. Four stages leave two: 175e9 / 32 x (6 + 12 / 2) = 66 GB do, with
    4.3 GB reserved and 9.7 GB of activations under selective recomputation.
    """
    question = read_instance(
        INSTANCES / "gpt3-175b-1024xa100.yaml",
        ("cluster.devices=64", "workload.global_batch=64", "zero=[0, 1]", "interleave=1", "overlap=none", "microbatch=[1, 2]"),
    )
    plan = planned(question)
    assert (plan.tensor, plan.sequence_parallel, plan.zero) == (8, True, 1)
    assert (plan.pipeline, plan.data) == (4, 2)
    assert plan.recompute == "selective"


def test_more_devices_become_replicas_and_never_more_stages() -> None:
    """Once the model fits, the rule adds replicas; with more of them to share the optimizer's state, fewer stages are needed."""
    settings = ("zero=[0, 1]", "interleave=1", "overlap=none", "microbatch=1")
    small, large = (
        planned(
            read_instance(INSTANCES / "gpt3-175b-1024xa100.yaml", (*settings, f"cluster.devices={devices}", "workload.global_batch=256"))
        )
        for devices in (256, 512)
    )
    assert large.tensor == small.tensor == 8
    assert large.pipeline <= small.pipeline
    assert large.data >= 2 * small.data


def test_the_rule_takes_the_most_memory_and_then_the_most_compute_that_the_budget_holds() -> None:
    instance = ask(TINY_FREE, "budget.power=400 W", "budget.package_area=1500 mm^2")
    point = expert_point(instance)
    assert point is not None
    assert hardware_choice(instance, point)["hbm_stacks"] == 4
    within = [other for other in range(hardware_points(instance)) if _within(instance, other)]
    best = max((device_at(instance, other) for other in within), key=lambda device: (device.dram.capacity, device.throughput))
    assert device_at(instance, point).throughput == best.throughput


def _within(instance: Instance, point: int) -> bool:
    try:
        device = device_at(instance, point)
    except ValueError:
        return False
    budget = instance.budget
    return bool(device.die_area <= budget.die_area and device.package_area <= budget.package_area and device.power <= budget.power)


def test_a_device_over_its_budget_is_never_taken() -> None:
    instance = read_instance(INSTANCES / "tiny.yaml", ("budget.power=100 W",))
    assert isinstance(instance.hardware, Hardware)
    assert expert_point(instance) is None
    assert expert_design(instance) is None


@pytest.mark.parametrize("text", [LSTM, GEMM])
def test_kernels_are_spread_over_data_first(text: str) -> None:
    instance = ask(text)
    chosen = expert_design(instance)
    assert chosen is not None
    assert verify(instance, chosen).accepted
    assert chosen.plan.data == max(plan.data for plans in space.plan_blocks(instance) for plan in plans)  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", [0, 6, 9, 22, 44])
def test_the_size_of_the_blocks_does_not_change_the_rule(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is widest in a node is asked of all plans, not of those that happen to be looked at together."""
    instance = random_question(seed)
    usual = expert_design(instance)
    monkeypatch.setattr(space, "_FEW", 0)
    monkeypatch.setattr(space, "_COMBINATIONS", max(1, combinations(instance) // 7))
    assert expert_design(instance) == usual


@pytest.mark.parametrize("name", ["expert", "plan-only", "hardware-only"])
def test_rivals_claim_no_proof_and_lie_between_the_rule_and_the_optimum(name: str) -> None:
    instance = ask(TINY_FREE)
    result, optimum, chosen = answered(instance, name), search(instance, unwatched).value, expert_design(instance)
    assert (result.status, result.proved, result.bound, result.gap, result.baselines) == ("FEASIBLE", False, None, None, ())
    assert result.value is not None
    assert optimum is not None
    assert chosen is not None
    assert optimum <= result.value <= verify(instance, chosen).value


@pytest.mark.parametrize("name", ["expert", "plan-only", "hardware-only"])
def test_rivals_keep_the_time_limit(name: str) -> None:
    """A million chips take longer to rank than no time at all."""
    wide = ask(TINY_FREE, "compute_area={from: 200 mm^2, to: 400 mm^2, count: 1000}", "compute_power={from: 100 W, to: 300 W, count: 1000}")
    result = answered(wide, name, Limits(seconds=0.0))
    assert (result.status, result.stopped, result.value) == ("UNKNOWN", "time limit", None)


def test_many_options_do_not_lead_the_rule_over_the_budget() -> None:
    """Among 500 options the greatest one that keeps the budgets is taken, not one of the same stretch of options that breaks them."""
    options = ("compute_area={from: 200 mm^2, to: 500 mm^2, count: 500}", "compute_power={from: 60 W, to: 300 W, count: 500}")
    wide = ask(TINY_FREE, *options, "budget.power=258 W")
    point = expert_point(wide)
    assert point is not None
    assert _within(wide, point)
    choice = hardware_choice(wide, point)
    powers = dict(wide.hardware.options)["compute_power"]  # type: ignore[union-attr]
    assert not _within(wide, space.hardware_point(wide, {**choice, "compute_power": powers[powers.index(choice["compute_power"]) + 1]}))


def test_a_design_of_the_rule_that_takes_too_long_is_none() -> None:
    """The rule knows of memory and of the chip's budgets, but of no limit on the step time."""
    usual = answered(ask(TINY_FREE, "objective=power"), "expert")
    limit = f"budget.step_time={usual.details.evaluation.step_time * (1.0 - 2.0**-40)!r} s"
    for engine in ("expert", "plan-only", "hardware-only"):
        result = answered(ask(TINY_FREE, "objective=power", limit), engine)
        assert result.answer is None or result.details.evaluation.feasible
    late = answered(ask(TINY_FREE, "objective=power", limit), "expert")
    assert (late.status, late.answer) == ("UNKNOWN", None)
    assert late.notes[0].startswith("what the rule chooses breaks a limit: step time: ")
    several_late = answered(several(TWO, "objective=power", "budget.step_time=1 ms"), "expert")
    assert (several_late.status, several_late.answer) == ("UNKNOWN", None)


# Alternating halves: no half of where it ends can be improved, it is never above either half alone, and both together may be better.


def ended(instance: Instance, seconds: float = float("inf")) -> float | None:
    return answered(instance, "alternating", Limits(seconds)).value


@pytest.mark.parametrize("seeds", [some(range(3, 6), 1), pytest.param(range(6, 30), marks=pytest.mark.slow)], ids=["some", "more"])
def test_where_it_ends_neither_half_can_be_improved(seeds: Sequence[int]) -> None:
    for seed in seeds:
        assert_that_neither_half_can_be_improved(random_question(seed))


def assert_that_neither_half_can_be_improved(instance: Instance) -> None:
    result, optimum = answered(instance, "alternating"), answered(instance).value
    assert (result.proved, result.bound) == (False, None)
    if optimum is None:
        assert (result.value, result.status) == (None, "UNKNOWN")
    if result.answer is not None:
        design = result.answer.design
        assert optimum is not None
        assert result.value is not None
        assert result.value >= optimum
        end = candidate_in(instance, design)
        assert answered(on_chip(instance, end.point)).value == result.value
        assert answered(with_plan(instance, end.plan)).value == result.value


@pytest.mark.thorough
@pytest.mark.parametrize("text", [TINY_FREE, LSTM, GEMM])
def test_it_is_never_above_the_best_of_either_half(text: str) -> None:
    instance = ask(text)
    value = ended(instance)
    assert value is not None
    halves = [answered(instance, name).value for name in ("plan-only", "hardware-only")]
    assert all(half is None or value <= half for half in halves)


def test_on_one_chip_the_first_turn_finds_the_best_plan() -> None:
    instance = ask(TINY_FREE, "compute_area=200 mm^2", "compute_power=100 W", "hbm_stacks=4")
    result = answered(instance, "alternating")
    assert result.value == answered(instance).value
    assert result.notes == ("turns were taken from 2 starts",)


def test_turns_never_rise_and_each_is_better_than_the_last() -> None:
    instance = ask(TINY_FREE)
    starts = searchers._descents(auto, instance, Limits(), 0.0, recipes_design(instance))
    for turns in islice(starts, 3):
        values = [value for value, _ in turns]
        assert values == sorted(values, reverse=True)
        assert len(set(values)) == len(values)


def test_the_time_limit_and_an_interrupt_keep_what_there_is() -> None:
    instance = read_instance(INSTANCES / "gpt3-175b-pathfinding-large.yaml")
    assert answered(instance, "alternating", Limits(0.2)).stopped == "time limit"

    def interrupt(progress: object) -> None:
        raise KeyboardInterrupt

    result = answered(ask(TINY_FREE), "alternating", Limits(), interrupt)
    assert (result.stopped, result.status) == ("interrupted", "FEASIBLE")


def test_the_design_of_the_best_recipe_is_there_before_the_first_turn() -> None:
    def too_late(*asked: object) -> NoReturn:
        raise TimeoutError

    instance = ask(TINY_FREE)
    found = searchers.alternating(too_late, instance, Limits(), unwatched)
    assert (found.value, found.stopped) == (answered(instance, "recipes").value, "time limit")


def test_drawn_chips_keep_the_budgets_and_depend_on_the_seed_alone() -> None:
    instance = ask(TINY_FREE, "budget.power=400 W")
    first, second = (list(islice(searchers._random_chips(instance, np.random.default_rng(1), float("inf")), 20)) for _ in range(2))
    assert first == second
    halves = [answered(on_chip(instance, point)) for point in set(first)]
    assert all(half.value is not None or "memory" in " ".join(half.reasons) for half in halves)


def test_the_black_boxes_say_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    ask_for = partial(answered, ask(TINY_FREE), "tpe", Limits(), unwatched)
    with pytest.raises(RefusedError, match=r"not installed: pip install '.\[baselines\]'"):
        ask_for()


# The published recipes: they choose what is published, none is worse than the expert rule, and none beats the optimum.

LONG = """
kind: codesign
workload: {model: llama3-8b, global_batch: 64, sequence: 131072, precision: bf16}
cluster: {devices: 256, devices_per_node: 8}
hardware: h100-sxm
choices: all
objective: step_time
"""


PREDICTING = """
kind: codesign
workload:
  transformer: {layers: 5, hidden: 8192, heads: 64, ffn: 28672, vocabulary: 1000, sequence: 4096, prediction_layers: 1}
  global_batch: 32
  precision: bf16
cluster: {devices: 8, devices_per_node: 2}
hardware: a100-40g
choices: {tensor: 1, context: 1, pipeline: 4, interleave: [1, 2], zero: 1, recompute: none, overlap: [none, data, pipeline, both]}
objective: step_time
"""


PUBLISHED = """
kind: codesign
stack: megatron-core
workload: {model: qwen3-235b-a22b, global_batch: 2048, gradient_bytes: 2, capacity_factor: 1}
cluster: {devices: 512}
hardware: h100-sxm
choices: {tensor: [1, 2], pipeline: [1, 8], expert: [1, 32], expert_tensor: [0, 1], interleave: [1, 4], sequence_parallel: [false, true],
  recompute: [none, full, feed-forward-norm+expert-activation], zero: [1, 3], overlap: [data, both], expert_exchange: [exposed, hidden]}
"""


def recipes_planned(instance: Instance) -> Plan:
    chosen = recipes_design(instance)
    assert chosen is not None
    assert isinstance(chosen.plan, Plan)
    return chosen.plan


@pytest.mark.parametrize("path", SMALL.values(), ids=SMALL)
def test_the_best_recipe_is_between_the_expert_and_the_optimum(path: Path) -> None:
    instance = read_instance(path)
    optimum, chosen, usual = search(instance, unwatched).value, recipes_design(instance), expert_design(instance)
    assert optimum is not None
    assert chosen is not None
    assert usual is not None
    assert optimum <= verify(instance, chosen).value <= verify(instance, usual).value


@pytest.mark.parametrize("seeds", [some(range(12), 5), pytest.param(range(12, 100), marks=pytest.mark.slow)], ids=str)
def test_the_best_recipe_keeps_every_limit_and_is_there_where_the_expert_has_a_design(seeds: range) -> None:
    for seed in seeds:
        assert_a_fair_rival(seed)


def assert_a_fair_rival(seed: int) -> None:
    instance = random_question(seed)
    chosen, usual = recipes_design(instance), expert_design(instance)
    if chosen is None:
        assert usual is None
        return
    verdict, found = verify(instance, chosen), search(instance, unwatched)
    assert verdict.accepted
    assert found.value is not None
    assert found.value <= verdict.value
    assert usual is None or verdict.value <= verify(instance, usual).value


def test_llama_405b_on_1024_h100_is_trained_as_nvidia_does() -> None:
    """Megatron-Bridge, performance recipe for 1,024 H100: tensor 8, pipeline 8, context 2, microbatch 1; 126 layers in 8 x 8 chunks, as
    embedding and head count as one layer each."""
    assert recipes_planned(read_instance(INSTANCES / "llama3-405b-1024xh100.yaml")) == Plan(
        tensor=8, context=2, pipeline=8, data=8, microbatch=1, interleave=8, sequence_parallel=True, zero=1, overlap="both"
    )


def test_llama_70b_on_h100_has_the_width_and_context_of_nvidia() -> None:
    """And two stages, as few as fit, where NVIDIA has four (512 devices, 79.1 GiB of which 77.9 are needed)."""
    plan = recipes_planned(read_instance(INSTANCES / "llama3-70b-512xh100.yaml"))
    assert (plan.tensor, plan.context, plan.pipeline, plan.interleave, plan.microbatch) == (4, 2, 2, 5, 1)


@pytest.mark.thorough
def test_long_samples_are_spread_over_ranks() -> None:
    """131,072 tokens: no rank has more than 16,384 of them, nor fewer than 4,096; the expert rule spreads none."""
    instance = ask(LONG)
    plan, usual = recipes_planned(instance), expert_design(instance)
    assert 4096 <= 131072 / plan.context <= 16384
    assert usual is not None
    assert usual.plan.context == 1  # type: ignore[union-attr]


def test_stages_that_cannot_be_even_are_uneven() -> None:
    """1,536 devices on a batch of 512 need a factor 3 beside the replicas, and 80 layers have none in common with it."""
    instance = read_instance(INSTANCES / "llama3-70b-512xh100.yaml", ("cluster.devices=1536",))
    plan, usual, chosen = recipes_planned(instance), expert_design(instance), recipes_design(instance)
    assert plan.pipeline % 3 == 0
    assert plan.interleave == 1
    assert usual is not None
    assert chosen is not None
    assert verify(instance, chosen).value <= verify(instance, usual).value


def test_a_question_without_what_a_recipe_wants_has_the_nearest() -> None:
    """Without context parallelism and sharding the recipes are plans of the question all the same."""
    plan = recipes_planned(ask(LONG, "choices.context=1", "choices.zero=0", "choices.overlap=none"))
    assert (plan.context, plan.zero, plan.overlap) == (1, 0, "none")


def test_layers_that_predict_further_tokens_are_dealt_out_like_others() -> None:
    """Five layers, one that predicts, embedding and head are eight chunks of one; with five alone no chunks would be even."""
    instance = ask(PREDICTING)
    plan = recipes_planned(instance)
    assert (plan.pipeline, plan.interleave, plan.overlap) == (4, 2, "both")
    assert practice_of(instance).name == "Megatron-Bridge"


def test_transfers_are_hidden_where_the_stack_can_and_the_recipe_is_there_where_it_cannot() -> None:
    """Megatron-Core hides what stages hand on with several chunks only."""
    instance = ask(PREDICTING, "choices.interleave=1", "stack=megatron-core")
    plan = recipes_planned(instance)
    assert (plan.pipeline, plan.interleave, plan.overlap) == (4, 1, "data")
    assert practice_of(instance).name == "Megatron-Bridge"


def test_settings_that_are_asked_to_the_letter_stay_so() -> None:
    """No plan of tensor degree 1 is one of the question where sequence parallelism is true to the letter."""
    instance = read_instance(INSTANCES / "small.yaml", ("sequence_parallel=true", "only=[sequence_parallel]"))
    assert recipes_planned(instance).sequence_parallel


def test_what_stands_beside_an_answer_names_the_recipe() -> None:
    (baseline,) = recipes_baselines(read_instance(INSTANCES / "tiny.yaml"))
    assert baseline.name == "recipes"
    assert baseline.note in {*(recipe.name for recipe in RECIPES), "Megatron-LM"}


def test_a_network_of_which_nvidia_publishes_a_plan_has_that_very_plan_beside_it() -> None:
    """Qwen3 235B on H100: its degrees on twice the devices; not on another device, and not of a question without its settings."""
    asked = ask(PUBLISHED)
    practice = practice_of(asked)
    assert recipes_baselines(asked)[-1].note == practice.by == "Megatron-Bridge's own for qwen3-235b-a22b"
    assert practice.nvidia is not None
    plan = practice.nvidia.plan
    assert isinstance(plan, Plan)
    assert (plan.tensor, plan.pipeline, plan.data, plan.expert, plan.expert_tensor, plan.interleave) == (2, 8, 32, 32, 1, 4)
    assert (plan.recompute, plan.expert_exchange, plan.zero) == ("feed-forward-norm+expert-activation", "hidden", 1)
    assert own_recipe(ask(PUBLISHED, "hardware=a100-80g")) == own_recipe(ask(PUBLISHED, "choices.expert=8")) == ()


def test_that_plan_is_found_by_the_shapes_of_the_network() -> None:
    asked = ask(PUBLISHED)
    assert isinstance(asked.workload, Transformer)
    other = replace(asked, workload=replace(asked.workload, name="config"))
    assert own_recipe(other) == own_recipe(asked) != ()
    assert practice_of(other).by == "Megatron-Bridge's own for qwen3-235b-a22b"


def test_deepseek_v3_has_the_stages_of_nvidias_layout() -> None:
    """Seven layers on the first of eight stages, and on the last six and the one that predicts."""
    options = dict(own_recipe(ask(PUBLISHED.replace("qwen3-235b-a22b", "deepseek-v3").split("choices:")[0] + "choices: {rest: all}")))
    assert (options["expert"], options["first_stage_layers"], options["last_stage_layers"]) == ((64,), (-1,), (-1,))


def test_nvidias_own_plan_that_does_not_fit_is_told_with_the_facts_of_its_run() -> None:
    """Llama 3.1 405B as on 1,024 H100, on half of them: with gradients of four bytes it does not fit, with two it does."""
    head = PUBLISHED.partition("choices:")[0].replace("qwen3-235b-a22b", "llama3-405b").replace("2048", "512, sequence: 8192")
    question = head.replace(", gradient_bytes: 2, capacity_factor: 1", "") + (
        "choices: {tensor: 8, context: [1, 2], pipeline: 8, interleave: [1, 8], sequence_parallel: true, recompute: [none, full], zero: 1, "
        "overlap: both, tensor_exchange: [exposed, hidden]}"
    )
    best, *_, own = recipes_baselines(ask(question))
    assert best.answer is not None
    assert (own.name, own.value, own.answer) == ("nvidia-own", None, None)
    assert own.note.startswith("tensor 8 · context 2 · pipeline 8 · data 4 · microbatch 1 · interleave 8 · ")
    assert "needs 104.7% of the memory here; with workload.gradient_bytes: 2, as NVIDIA ran it, it takes " in own.note
    assert baseline_text(own) == own.note
    assert baseline_label(own) == "NVIDIA's own plan"
    assert all(one.name != "nvidia-own" for one in recipes_baselines(ask(question, "workload.gradient_bytes=2")))


def test_nvidias_recipe_stands_beside_a_better_one() -> None:
    best, nvidia = answered(read_instance(INSTANCES / "small.yaml"), "boxes").baselines
    assert (best.name, best.note, nvidia.name, nvidia.note) == ("recipes", "FSDP", "nvidia", "Megatron-Bridge")
    assert best.value is not None
    assert nvidia.value is not None
    assert best.value < nvidia.value


def test_where_no_plan_fits_that_is_told() -> None:
    instance = read_instance(INSTANCES / "tiny.yaml", ("budget.power=100 W",))
    assert expert_point(instance) is None
    (baseline,) = recipes_baselines(instance)
    assert (baseline.answer, baseline.note) == (None, "no plan of the question fits the device the rule chooses")


@pytest.mark.parametrize("text", [LSTM, GEMM])
def test_kernels_have_the_plan_of_the_expert(text: str) -> None:
    instance = ask(text)
    assert recipes_design(instance) == expert_design(instance)


def test_the_engine_claims_no_proof_and_keeps_the_time_limit() -> None:
    result = answered(ask(TINY_FREE), "recipes")
    assert (result.status, result.proved, result.bound, result.baselines) == ("FEASIBLE", False, None, ())
    late = answered(ask(TINY_FREE), "recipes", Limits(seconds=0.0))
    assert (late.status, late.stopped, late.value) == ("UNKNOWN", "time limit", None)


def test_several_workloads_have_a_recipe_each() -> None:
    best, worse, usual = (answered(several(TWO), engine) for engine in ("exhaustive", "recipes", "expert"))
    assert best.value is not None
    assert worse.value is not None
    assert usual.value is not None
    assert best.value <= worse.value <= usual.value


def test_the_recipes_mind_a_limit_on_the_step_time() -> None:
    """Unlike the expert rule they are priced before one is chosen, and one within it comes before a better one over it."""
    fastest = search(ask(TINY_FREE), unwatched).value
    assert fastest is not None
    for share in (1.0, 1.1, 1.5, 3.0):
        instance = ask(TINY_FREE, "objective=power", f"budget.step_time={share * fastest!r} s")
        chosen, usual = recipes_design(instance), expert_design(instance)
        assert chosen is not None
        assert usual is not None
        assert verify(instance, chosen).accepted or not verify(instance, usual).accepted


def test_who_has_no_time_takes_the_expert_of_small_questions_and_the_recipes_of_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = read_instance(SMALL["mixtral-8x7b-64xh100"])
    expert, best = expert_design(instance), recipes_design(instance)
    assert expert != best
    assert simplest_design(instance) == expert
    monkeypatch.setattr(recipes, "_WALKED", 0)
    assert simplest_design(instance) == recipes_design(instance) != expert


# Rules of other schools: what they choose keeps to the school, keeps every limit and never beats the optimum.

A100 = INSTANCES / "gpt3-175b-1024xa100.yaml"


@pytest.mark.parametrize("seed", range(10))
def test_the_rules_keep_every_limit_or_give_no_design(seed: int) -> None:
    instance = random_question(seed)
    optimum, point = search(instance, unwatched).value, expert_point(instance)
    for chosen in (fsdp_design(instance), pipedream_design(instance)):
        if chosen is not None:
            verdict = verify(instance, chosen)
            assert verdict.accepted
            assert optimum is not None
            assert verdict.value >= optimum
            assert chosen.point == point


@pytest.mark.thorough
def test_both_rules_find_designs_for_some_of_these_questions() -> None:
    for rule in (fsdp_design, pipedream_design):
        assert 3 <= sum(rule(random_question(seed)) is not None for seed in range(20)) < 20


def test_what_is_sharded_recomputes_as_little_and_then_computes_as_much_together_as_fits() -> None:
    """Seven billion parameters on eight devices of 80 GiB: priced one by one, the rule's is the first in its order that fits."""
    settings = ("workload.model=llama2-7b", "cluster.devices=8", "workload.global_batch=64", "microbatch=[1, 2, 4, 8]")
    instance = read_instance(A100, (*settings, "sequence_parallel=false", "overlap=data"))
    chosen = fsdp_design(instance)
    assert chosen is not None
    assert isinstance(chosen.plan, Plan)
    order = [
        Plan(data=8, zero=3, overlap="data", recompute=recompute, microbatch=microbatch)  # type: ignore[arg-type]
        for recompute in ("none", "selective", "full")
        for microbatch in (8, 4, 2, 1)
    ]
    fitting = [plan for plan in order if verify(instance, type(chosen)(0, plan)).accepted]
    assert 0 < len(fitting) < len(order)
    assert chosen.plan == fitting[0]


def test_tensor_parallelism_comes_only_where_sharding_alone_does_not_fit_and_stays_in_the_node() -> None:
    """1,024 replicas do not divide a batch of 1,536, so two devices share a replica."""
    chosen = fsdp_design(read_instance(A100))
    assert chosen is not None
    assert isinstance(chosen.plan, Plan)
    assert (chosen.plan.tensor, chosen.plan.pipeline, chosen.plan.data, chosen.plan.zero) == (2, 1, 512, 3)


def test_without_sharding_among_the_choices_there_is_no_such_design() -> None:
    assert fsdp_design(read_instance(A100, ("zero=[0, 1, 2]",))) is None


def test_the_planner_takes_the_best_width_and_depth_and_recomputes_only_where_needed() -> None:
    small = ("workload.model=gpt3-13b", "cluster.devices=64", "microbatch=[1, 2, 4]")
    instance = read_instance(A100, (*small, "workload.global_batch=256", "overlap=none"))
    chosen = pipedream_design(instance)
    assert chosen is not None
    values: dict[tuple[int, int, str], float] = {}
    plans = [
        Plan(pipeline=depth, data=64 // depth, microbatch=microbatch, recompute=recompute)  # type: ignore[arg-type]
        for depth in (1, 2, 4, 8, 16, 32)
        for microbatch in (1, 2, 4)
        for recompute in ("none", "full")
    ]
    for plan in plans:
        verdict = verify(instance, type(chosen)(0, plan))
        if verdict.accepted:
            shape = (plan.data, plan.pipeline, plan.recompute)
            values[shape] = min(values.get(shape, float("inf")), verdict.value)
    needed = [value for (width, depth, again), value in values.items() if again == "none" or (width, depth, "none") not in values]
    assert verify(instance, chosen).value == min(needed)


def test_layers_of_an_lstm_are_stages_and_a_product_has_none() -> None:
    chosen = pipedream_design(ask(LSTM, "layers=divisors"))
    assert chosen is not None
    assert isinstance(chosen.plan, KernelPlan)
    assert chosen.plan.rows == chosen.plan.columns == 1
    assert pipedream_design(ask(GEMM)) is None
    assert fsdp_design(ask(LSTM)) is None


@pytest.mark.parametrize("name", ["fsdp", "pipedream-flush"])
def test_the_rules_keep_the_time_limit_and_claim_no_proof(name: str) -> None:
    instance = read_instance(A100)
    late, done = (answered(instance, name, Limits(seconds)) for seconds in (0.0, float("inf")))
    assert (late.status, late.stopped) == ("UNKNOWN", "time limit")
    assert (done.status, done.proved, done.bound) == ("FEASIBLE", False, None)


# The chips of practice: the chip that is sold, scaled to nodes, watts and dies as an architect would.

SCALED = """\
kind: codesign
workload: {model: llama3-8b, global_batch: 64, sequence: 2048, precision: bf16}
cluster: {devices: 16, devices_per_node: 8}
technology: {base: accelerator-4nm, logic: 3nm}
budget: {die_area: 814 mm^2, package_area: 5000 mm^2, power: 700 W}
choices:
  compute_area: {from: 50 mm^2, to: 1000 mm^2, step: 10 mm^2}
  compute_power: {from: 20 W, to: 700 W, step: 10 W}
  l2_area: {from: 10 mm^2, to: 300 mm^2, step: 10 mm^2}
  hbm_stacks: [1, 2, 3, 4, 5, 6, 8, 10, 12]
  tensor: [1, 2, 4]
  pipeline: 1
  microbatch: [1, 2]
  recompute: [none, full]
objective: step_time
"""
TWO_DIES = ("dies=[1, 2]", "budget.die_area=1600 mm^2", "budget.power=1400 W")


@cache
def chips_of(*settings: str) -> tuple[Instance, tuple[tuple[int, dict[str, float], Hardware], ...]]:
    """A question, and each chip that practice would take with its number, what is chosen of it and its device."""
    instance = ask(SCALED, *settings)
    points = [point for group in usual_chips(instance) for point in group]
    return instance, tuple((point, hardware_choice(instance, point), device_at(instance, point)) for point in points)


@pytest.mark.parametrize("settings", [(), ("budget.power=300 W",), TWO_DIES])
def test_no_chip_leaves_watts_that_would_give_it_a_faster_clock(settings: tuple[str, ...]) -> None:
    """Of two dies some L2 does not feed a faster clock, so that such a chip is none."""
    instance, chips = chips_of(*settings)
    powers = grid(instance).options[grid(instance).names.index("compute_power")]
    starved = 0
    assert len(chips) >= 5
    for _, choice, device in chips[::4]:
        assert device.power <= instance.budget.power
        more = powers[powers > choice["compute_power"]][:1]
        for power in more:
            point = hardware_point(instance, {**choice, "compute_power": float(power)})
            try:
                faster = device_at(instance, point)
            except ValueError:
                starved += 1
                continue
            assert faster.power > instance.budget.power or faster.throughput == device.throughput
    assert bool(starved) == (settings == TWO_DIES)


@pytest.mark.parametrize("settings", [(), ("budget.power=300 W",), TWO_DIES])
def test_each_core_has_as_much_l2_as_in_the_chip_that_is_sold(settings: tuple[str, ...]) -> None:
    """At 3 nm, where the usual shares of the die give it a third less, and with a controller in each bank for every bundle, of which there
    are twice as many; as nearly as options 10 mm^2 apart let it."""
    sold, (instance, chips) = ask(SCALED, "technology=accelerator-4nm").hardware, chips_of(*settings)
    assert isinstance(sold, FreeHardware)
    assert isinstance(instance.hardware, FreeHardware)
    old, new = sold.technology, instance.hardware.technology

    def bank(made: Technology, bundles: float) -> float:
        return 8 * 512 * 1024 * made.l2.area_per_bit / 0.8 + bundles * made.l2.controller_area

    each = floor(sold.areas.l2 * sold.die_area / bank(old, 132)) / 528
    for _, choice, chip in chips:
        wanted = each * 4 * chip.bundles * bank(new, float(chip.bundles))
        assert choice["l2_area"] == pytest.approx(wanted, abs=12e-6)


def test_what_two_dies_hold_is_used() -> None:
    """For twice the area and the watts nearly twice the peak, on both; a chip of one die stands beside it. (At 3 nm what two dies ask of L2
    is more than goes from one to the other.)"""
    seven = "technology=accelerator-7nm"
    (_, one), (_, two) = chips_of(seven), chips_of(seven, *TWO_DIES)
    small, large = (max(chips, key=lambda chip: chip[2].throughput) for chips in (one, two))
    assert large[1]["dies"] == 2.0
    assert large[2].throughput > 1.8 * small[2].throughput
    assert {choice["dies"] for _, choice, _ in two} == {1.0, 2.0}


@pytest.mark.parametrize(("limit", "seconds"), [(60.0, 30.0), (3.0, 2.0), (1.0, 0.9)])
def test_recipes_take_half_of_a_long_limit_and_most_of_a_short_one(monkeypatch: pytest.MonkeyPatch, limit: float, seconds: float) -> None:
    given = list[float]()

    def late(instance: Instance, deadline: float) -> Practice:
        given.append(deadline)
        raise TimeoutError

    monkeypatch.setattr(engines, "monotonic", lambda: 0.0)
    monkeypatch.setattr(engines, "practice_of", late)
    assert engines._practice(read_instance("instances/tiny.yaml"), Limits(limit), unwatched) == (None, None)
    assert given == [seconds]
