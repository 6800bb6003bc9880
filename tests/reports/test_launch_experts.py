"""Settings of training stacks for networks with experts, latents, windows and sinks."""

from dataclasses import replace
from typing import Any

import pytest

from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.stack_rules import STACKS, broken_rows
from crossopt.instances.codesign.stack_table import Machine
from crossopt.reports.launching.launch import EXPORTS, launch, launch_text
from crossopt.reports.launching.megatron import remarks
from crossopt.solvers.codesign.answer import Candidate
from tests.solvers.codesign.questions import ask

MODEL = Transformer("m", layers=96, hidden=12288, heads=96, ffn=49152, vocabulary=51200, sequence=2048, global_batch=1536)

HIDDEN: dict[str, Any] = {"expert_exchange": "hidden"}


def settings(name: str, plan: Plan, model: Transformer) -> dict[str, str | None]:
    return {setting.name: setting.value for setting in EXPORTS[name].settings(model, plan)}


def network(model: str) -> Transformer:
    text = f"kind: codesign\nworkload: {{model: {model}, global_batch: 64}}\ncluster: {{devices: 32}}\nhardware: h100-sxm\n"
    asked = ask(text).workload
    assert isinstance(asked, Transformer)
    return asked


@pytest.mark.parametrize(
    ("word", "modules"),
    [
        ("up-projections", "mla_up_proj"),
        ("norms+expert-activation", "layernorm moe_act"),
        ("norms+expert-activation+up-projections+selective", "core_attn layernorm moe_act mla_up_proj"),
        ("shared-experts", "shared_experts"),
        ("experts+norms+dense-part", "layernorm mlp moe"),
    ],
)
def test_megatron_computes_modules_again(word: str, modules: str) -> None:
    """As recipes for DeepSeek-V3 have it; of others layernorm is the norm before experts alone, since that before attention is one with a
    product."""
    plan = Plan(pipeline=4, data=8, expert=8, zero=1, recompute=word)
    found = launch("megatron", network("deepseek-v3"), plan)
    assert (found.plan, found.instead) == (plan, ())
    assert f"--recompute-granularity selective \\\n  --recompute-modules {modules} \\\n" in found.text
    other = replace(plan, recompute="feed-forward-norm+expert-activation")
    again = launch("megatron", network("qwen3-235b-a22b"), other)
    assert (again.plan, again.instead) == (other, ())
    assert "--recompute-modules layernorm moe_act" in again.text
    elsewhere = launch("megatron", network("qwen3-235b-a22b"), replace(plan, recompute="norms+expert-activation"))
    assert elsewhere.plan == other
    assert any("the norm before attention" in sentence for sentence in elsewhere.instead)


def test_megatron_hides_the_exchange_of_experts() -> None:
    plan = Plan(pipeline=4, data=8, expert=8, interleave=4, zero=1, overlap="pipeline", expert_exchange="hidden")
    found = launch("megatron", network("qwen3-235b-a22b"), plan)
    assert (found.plan, found.instead) == (plan, ())
    assert "--overlap-moe-expert-parallel-comm" in found.text
    alone = Plan(data=32, expert=8, zero=3, overlap="data", expert_exchange="hidden")
    elsewhere = launch("torchtitan", network("qwen3-235b-a22b"), alone)
    assert elsewhere.plan == replace(alone, expert_exchange="exposed")
    assert any("the expert all-to-all is exposed" in sentence for sentence in elsewhere.instead)


def test_tensor_ranks_beside_latents_exchange_unhidden() -> None:
    """--tp-comm-overlap turns itself off there (megatron/core/extensions/transformer_engine.py)."""
    plan = Plan(tensor=2, pipeline=8, data=4, expert=8, expert_tensor=1, sequence_parallel=True, zero=1, tensor_exchange="hidden")
    found = launch("megatron", network("deepseek-v3"), plan)
    assert found.plan == replace(plan, tensor_exchange="exposed")
    assert any("TP communication is exposed with latent attention (MLA)" in sentence for sentence in found.instead)
    assert "--tp-comm-overlap" not in found.text
    other = replace(plan, pipeline=2, data=16)
    assert launch("megatron", network("qwen3-235b-a22b"), other).plan == other


def test_folded_experts_are_launched_and_read_back() -> None:
    """Mixtral on eight tensor ranks, with an expert on each of eight ranks or on a pair of them."""
    model = network("mixtral-8x7b")
    for plan in (
        Plan(tensor=8, data=2, expert=8, expert_tensor=1, sequence_parallel=True, zero=1, overlap="data"),
        Plan(tensor=4, data=4, expert=4, expert_tensor=2, sequence_parallel=True, zero=1, overlap="data"),
        Plan(tensor=2, context=2, data=4, expert=8, expert_tensor=2, sequence_parallel=True),
        Plan(tensor=4, data=4, expert=4, sequence_parallel=True),
    ):
        found = launch("megatron", model, plan)
        assert f"--expert-tensor-parallel-size {plan.expert_tensor or plan.tensor}" in found.text
        assert (found.plan, found.instead) == (plan, ())
    plan = Plan(tensor=8, data=2, expert=8, expert_tensor=1, sequence_parallel=True, zero=3, overlap="data")
    found = launch("torchtitan", model, plan)
    assert "--parallelism.expert_tensor_parallel_degree 1" in found.text
    assert (found.plan, found.instead) == (plan, ())


def test_experts_and_precision_are_said() -> None:
    model = Transformer(
        "m",
        layers=8,
        hidden=64,
        heads=4,
        ffn=64,
        vocabulary=64,
        sequence=64,
        global_batch=8,
        experts=8,
        experts_per_token=2,
        precision="fp8",
    )
    found = settings("megatron", Plan(data=8, expert=4), model)
    assert found["--num-experts"] == "8"
    assert found["--moe-router-topk"] == "2"
    assert found["--expert-model-parallel-size"] == "4"
    assert found["--fp8-format"] == "hybrid"
    assert "--bf16" in found
    assert "--cross-entropy-fusion-impl" not in found
    assert settings("megatron", Plan(data=8), replace(model, logit_bytes=2.0))["--cross-entropy-fusion-impl"] == "te"
    cautions = [" ".join(remarks(replace(model, logit_bytes=size), Plan(tensor=2, data=4))) for size in (2.0, 4.0)]
    assert ["is refused by Megatron-Core 0.18.1" in said for said in cautions] == [True, False]


def test_gpt_oss_has_its_own_activation_and_what_grouped_products_with_biases_need() -> None:
    """TEGroupedMLP refuses bias_dropout_fusion beside biases (megatron/core/transformer/moe/experts.py); public launch scripts for GPT-OSS
    have these arguments."""
    plan = Plan(data=8, expert=8, zero=1)
    found = settings("megatron", plan, network("gpt-oss-120b"))
    assert {"--quick-geglu", "--moe-grouped-gemm", "--no-bias-dropout-fusion"} < found.keys()
    assert (found["--glu-linear-offset"], found["--activation-func-clamp-value"]) == ("1.0", "7.0")
    assert "--swiglu" not in found
    assert not any("activation" in words for words in remarks(network("gpt-oss-120b"), plan))
    others = settings("megatron", plan, network("qwen3-235b-a22b"))
    assert "--swiglu" in others
    assert not {"--no-bias-dropout-fusion", "--quick-geglu"} & others.keys()


def test_what_balances_routers_is_told() -> None:
    """DeepSeek-V3 does so by biases of its router, others by a loss whose coefficient is 0 where nothing is said."""
    plan = Plan(data=8, expert=8, zero=1)
    told = {name: " ".join(remarks(network(name), plan)) for name in ("deepseek-v3", "gpt-oss-120b", "qwen3-235b-a22b", "llama3-8b")}
    by_loss = [name for name, words in told.items() if "--moe-aux-loss-coeff is 0" in words]
    by_bias = [name for name, words in told.items() if "--moe-router-enable-expert-bias" in words]
    assert (by_loss, by_bias) == (["gpt-oss-120b", "qwen3-235b-a22b"], ["deepseek-v3"])


def test_the_fused_loss_comes_with_its_history() -> None:
    plan = Plan(data=8, zero=1)
    usual, fused = (remarks(replace(network("llama3-8b"), logit_bytes=size), plan) for size in (4.0, 2.0))
    [words] = [words for words in fused if words not in usual]
    assert all(part in words for part in ("issue 1750", "up to 2.5", "pull request 3193", "0.18.1", "pull request 5115"))


def test_shapes_of_latents_windows_and_experts_are_said() -> None:
    latent = {"kv_rank": 512, "query_rank": 1536, "rope_size": 64, "value_size": 128, "head_size": 128}
    shapes = {"layers": 6, "hidden": 1024, "heads": 8, "ffn": 2048, "vocabulary": 64, "sequence": 64, "global_batch": 8}
    mixed = {"experts": 8, "experts_per_token": 2, "expert_ffn": 256, "shared_experts": 2, "dense_layers": 1, "prediction_layers": 1}
    found = settings("megatron", Plan(data=8), Transformer("m", **shapes, **latent, **mixed, biases=False))  # type: ignore[arg-type]
    assert found["--kv-lora-rank"] == "512"
    assert found["--moe-ffn-hidden-size"] == "256"
    assert found["--moe-shared-expert-intermediate-size"] == "512"
    assert found["--moe-layer-freq"] == "[0]*1+[1]*5"
    assert found["--mtp-num-layers"] == "1"
    assert {"--multi-latent-attention", "--disable-bias-linear"} < found.keys()
    near = Transformer("m", **shapes, window=16, global_layers=2)  # type: ignore[arg-type]
    assert settings("megatron", Plan(data=8), near)["--window-attn-skip-freq"] == "[1,1,0,1,1,0]"


def test_megatron_is_told_the_environment_of_hidden_exchanges() -> None:
    """One connection holds the exchange of experts back."""
    network = replace(MODEL, experts=8, experts_per_token=2, window=128, sinks=True)
    usual = Plan(context=2, data=4, expert=2, zero=1, overlap="data")
    hidden, alone = replace(usual, expert_exchange="hidden"), replace(usual, context=1, data=8, expert_exchange="hidden")
    ring, held, free = (" ".join(remarks(network, plan)) for plan in (usual, hidden, alone))
    assert ["CUDA_DEVICE_MAX_CONNECTIONS=1 less" in said for said in (ring, held, free)] == [False, True, False]
    assert ["large CUDA_DEVICE_MAX_CONNECTIONS" in said for said in (ring, held, free)] == [False, False, True]


def test_modules_that_a_network_lacks_are_never_printed() -> None:
    """Megatron refuses mla_up_proj without latents and moe_act without experts."""
    plan = Plan(data=8, zero=1, overlap="data")
    plain = launch("megatron", network("llama3-8b"), plan)
    for word in ("up-projections", "expert-activation", "expert-activation+up-projections", "experts", "shared-experts"):
        assert launch("megatron", network("llama3-8b"), replace(plan, recompute=word)) == plain
    word = "feed-forward-norm+expert-activation+up-projections"
    dense = launch("megatron", network("llama3-8b"), replace(plan, recompute="dense-part"))
    assert "--recompute-modules mlp \\\n" in dense.text
    assert (dense.plan.recompute, dense.instead) == ("dense-part", ())
    some = launch("megatron", network("mixtral-8x7b"), replace(plan, expert=8, recompute=word))
    assert "--recompute-modules layernorm moe_act \\\n" in some.text
    assert (some.plan.recompute, some.instead) == ("feed-forward-norm+expert-activation", ())


def test_sinks_and_windows_over_context_ranks_go_by_all_to_all() -> None:
    """The flag is printed, and read back as the same plan."""
    plan = Plan(tensor=2, context=2, data=4, sequence_parallel=True, zero=1, overlap="data")
    found = launch("megatron", network("gpt-oss-120b"), plan)
    assert (found.plan, found.instead) == (plan, ())
    assert "--cp-comm-type a2a \\\n" in found.text
    for model, other in (("gpt-oss-120b", replace(plan, context=1, data=8)), ("qwen3-235b-a22b", plan)):
        assert "cp-comm-type" not in "".join((launch("megatron", network(model), other).text, *remarks(network(model), other)))


@pytest.mark.parametrize(("tensor", "context", "launched"), [(2, 4, True), (1, 8, True), (4, 4, False), (1, 16, False), (8, 1, True)])
def test_ranks_of_an_all_to_all_divide_the_heads(tensor: int, context: int, launched: bool) -> None:
    """GPT-OSS has 64 heads with keys and values of 8."""
    plan = Plan(tensor=tensor, context=context, data=2, sequence_parallel=tensor > 1)
    rows = broken_rows(STACKS["megatron-core"], network("gpt-oss-120b"), plan, Machine())
    assert [row.sentence.startswith("attention sinks and sliding windows with context parallelism") for row in rows] == [True] * (
        not launched
    )


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        (
            "megatron",
            Plan(pipeline=8, data=32, expert=8, interleave=2, last_stage_layers=1, zero=1, overlap="both", expert_exchange="hidden"),
        ),
        (
            "megatron",
            Plan(tensor=2, context=2, data=64, expert=8, expert_tensor=1, sequence_parallel=True, zero=1, expert_exchange="hidden"),
        ),
        ("torchtitan", Plan(pipeline=4, data=64, expert=8, interleave=4, zero=1, overlap="both", **HIDDEN)),
        ("deepspeed", Plan(data=256, zero=3, overlap="data", recompute="elements")),
        ("fsdp", Plan(data=256, zero=3, overlap="data", recompute="elements", shard=8)),
    ],
)
def test_comments_fit_a_hundred_columns_and_leave_what_is_read_back(name: str, plan: Plan) -> None:
    """Of a title as long as this one, of plans with much to say, and where another one is launched."""
    asked = ask("kind: codesign\nworkload: {model: gpt-oss-120b, global_batch: 512}\ncluster: {devices: 256}\nhardware: h100-sxm\n")
    assert isinstance(asked.workload, Transformer)
    text = launch_text(name, replace(asked, name="a name of many words " * 6), Candidate(0, plan))
    assert max(len(line) for line in text.splitlines() if line.startswith("#")) <= 100
    parsed, settings_alone = EXPORTS[name].parsed, launch(name, asked.workload, plan).text
    assert settings_alone in text
    assert name not in {"megatron", "torchtitan"} or parsed(text) == parsed(settings_alone)
