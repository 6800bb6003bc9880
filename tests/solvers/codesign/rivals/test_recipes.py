"""The published recipes: they choose what is published, none is worse than the expert rule, and none beats the optimum."""

from dataclasses import replace
from pathlib import Path

import pytest

from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.registry import ladder
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.reports.sheets.codesign.design import baseline_label, baseline_text
from crossopt.solvers.answer import Limits
from crossopt.solvers.codesign.baselines import recipes
from crossopt.solvers.codesign.baselines.megatron import expert_design, expert_point
from crossopt.solvers.codesign.baselines.recipes import RECIPES, own_recipe, practice_of, recipes_baselines, recipes_design, simplest_design
from crossopt.solvers.codesign.exhaustive import search
from crossopt.solvers.codesign.judge import verify
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import GEMM, LSTM, TINY_FREE, ask, random_question
from tests.solvers.codesign.several_questions import TWO, several

SMALL = {
    name: path for name, path in ladder().items() if name in {"tiny", "small", "quickstart", "mixtral-8x7b-64xh100", "deepflow-lstm-64"}
}
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


def silent(progress: object) -> None:
    del progress


def planned(instance: Instance) -> Plan:
    chosen = recipes_design(instance)
    assert chosen is not None
    assert isinstance(chosen.plan, Plan)
    return chosen.plan


@pytest.mark.parametrize("path", SMALL.values(), ids=SMALL)
def test_the_best_recipe_is_between_the_expert_and_the_optimum(path: Path) -> None:
    instance = read_instance(path)
    optimum, chosen, usual = search(instance, silent).value, recipes_design(instance), expert_design(instance)
    assert optimum is not None
    assert chosen is not None
    assert usual is not None
    assert optimum <= verify(instance, chosen).value <= verify(instance, usual).value


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 100), marks=pytest.mark.slow)], ids=str)
def test_the_best_recipe_keeps_every_limit_and_is_there_where_the_expert_has_a_design(seeds: range) -> None:
    for seed in seeds:
        assert_a_fair_rival(seed)


def assert_a_fair_rival(seed: int) -> None:
    instance = random_question(seed)
    chosen, usual = recipes_design(instance), expert_design(instance)
    if chosen is None:
        assert usual is None
        return
    verdict, found = verify(instance, chosen), search(instance, silent)
    assert verdict.accepted
    assert found.value is not None
    assert found.value <= verdict.value
    assert usual is None or verdict.value <= verify(instance, usual).value


def test_llama_405b_on_1024_h100_is_trained_as_nvidia_does() -> None:
    """Megatron-Bridge, performance recipe for 1,024 H100: tensor 8, pipeline 8, context 2, microbatch 1; 126 layers in 8 x 8 chunks, as
    embedding and head count as one layer each."""
    assert planned(read_instance(INSTANCES / "llama3-405b-1024xh100.yaml")) == Plan(
        tensor=8, context=2, pipeline=8, data=8, microbatch=1, interleave=8, sequence_parallel=True, zero=1, overlap="both"
    )


def test_llama_70b_on_h100_has_the_width_and_context_of_nvidia() -> None:
    """And two stages, as few as fit, where NVIDIA has four (512 devices, 79.1 GiB of which 77.9 are needed)."""
    plan = planned(read_instance(INSTANCES / "llama3-70b-512xh100.yaml"))
    assert (plan.tensor, plan.context, plan.pipeline, plan.interleave, plan.microbatch) == (4, 2, 2, 5, 1)


@pytest.mark.thorough
def test_long_samples_are_spread_over_ranks() -> None:
    """131,072 tokens: no rank has more than 16,384 of them, nor fewer than 4,096; the expert rule spreads none."""
    instance = ask(LONG)
    plan, usual = planned(instance), expert_design(instance)
    assert 4096 <= 131072 / plan.context <= 16384
    assert usual is not None
    assert usual.plan.context == 1  # type: ignore[union-attr]


def test_stages_that_cannot_be_even_are_uneven() -> None:
    """1,536 devices on a batch of 512 need a factor 3 beside the replicas, and 80 layers have none in common with it."""
    instance = read_instance(INSTANCES / "llama3-70b-512xh100.yaml", ("cluster.devices=1536",))
    plan, usual, chosen = planned(instance), expert_design(instance), recipes_design(instance)
    assert plan.pipeline % 3 == 0
    assert plan.interleave == 1
    assert usual is not None
    assert chosen is not None
    assert verify(instance, chosen).value <= verify(instance, usual).value


def test_a_question_without_what_a_recipe_wants_has_the_nearest() -> None:
    """Without context parallelism and sharding the recipes are plans of the question all the same."""
    plan = planned(ask(LONG, "choices.context=1", "choices.zero=0", "choices.overlap=none"))
    assert (plan.context, plan.zero, plan.overlap) == (1, 0, "none")


def test_layers_that_predict_further_tokens_are_dealt_out_like_others() -> None:
    """Five layers, one that predicts, embedding and head are eight chunks of one; with five alone no chunks would be even."""
    instance = ask(PREDICTING)
    plan = planned(instance)
    assert (plan.pipeline, plan.interleave, plan.overlap) == (4, 2, "both")
    assert practice_of(instance).name == "Megatron-Bridge"


def test_transfers_are_hidden_where_the_stack_can_and_the_recipe_is_there_where_it_cannot() -> None:
    """Megatron-Core hides what stages hand on with several chunks only."""
    instance = ask(PREDICTING, "choices.interleave=1", "stack=megatron-core")
    plan = planned(instance)
    assert (plan.pipeline, plan.interleave, plan.overlap) == (4, 1, "data")
    assert practice_of(instance).name == "Megatron-Bridge"


def test_settings_that_are_asked_to_the_letter_stay_so() -> None:
    """No plan of tensor degree 1 is one of the question where sequence parallelism is true to the letter."""
    instance = read_instance(INSTANCES / "small.yaml", ("sequence_parallel=true", "only=[sequence_parallel]"))
    assert planned(instance).sequence_parallel


def test_what_stands_beside_an_answer_names_the_recipe() -> None:
    (rival,) = recipes_baselines(read_instance(INSTANCES / "tiny.yaml"))
    assert rival.name == "recipes"
    assert rival.note in {*(recipe.name for recipe in RECIPES), "Megatron-LM"}


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
    best, nvidia = answered(read_instance(INSTANCES / "small.yaml"), "boxes").rivals
    assert (best.name, best.note, nvidia.name, nvidia.note) == ("recipes", "FSDP", "nvidia", "Megatron-Bridge")
    assert best.value is not None
    assert nvidia.value is not None
    assert best.value < nvidia.value


def test_where_no_plan_fits_that_is_told() -> None:
    instance = read_instance(INSTANCES / "tiny.yaml", ("budget.power=100 W",))
    assert expert_point(instance) is None
    (rival,) = recipes_baselines(instance)
    assert (rival.answer, rival.note) == (None, "no plan of the question fits the device the rule chooses")


@pytest.mark.parametrize("text", [LSTM, GEMM])
def test_kernels_have_the_plan_of_the_expert(text: str) -> None:
    instance = ask(text)
    assert recipes_design(instance) == expert_design(instance)


def test_the_engine_claims_no_proof_and_keeps_the_time_limit() -> None:
    result = answered(ask(TINY_FREE), "recipes")
    assert (result.status, result.proved, result.bound, result.rivals) == ("FEASIBLE", False, None, ())
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
    fastest = search(ask(TINY_FREE), silent).value
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
