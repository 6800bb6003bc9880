"""Networks of today and networks of which a part is trained: counts of weights and FLOPs, memory and work by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow import roofline
from crossopt.crossflow.edges import head
from crossopt.crossflow.hardware import Cluster, Hardware, Memory
from crossopt.crossflow.kernels.layer_kernels import attention_core, element_wise, named_projections, projections
from crossopt.crossflow.layer import forward_pass
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.memory import dense_share, layer_activations, layer_weights, peak_memory, stage_memory, stage_weights
from crossopt.crossflow.parameters import (
    active_parameters,
    adapter_parameters,
    attention_parameters,
    embedding_parameters,
    layer_parameters,
    parameters,
    prediction_parameters,
    repeated_flops,
    score_flops,
    step_flops,
    trained_parameters,
)
from crossopt.crossflow.plan import Plan, Ranks, broken_rules, table
from crossopt.crossflow.recomputation import LAYER, RECOMPUTE, number_of
from crossopt.crossflow.replica_exchange import data_exchange
from crossopt.crossflow.transformer import mean_layers, price, ranks, sharding
from crossopt.crossflow.workload import Transformer, feed_forward_kinds, kind_of_layer, layer_kinds

# Networks of today: experts of their own width, latents, windows, parallel blocks; weights, work and memory by hand.

CLUSTER = Cluster(64, (8, 64))
DENSE = Transformer(
    "dense", 4, 1024, 16, 4096, 32000, 2048, 8, gated=True, tied=False, learned_positions=False, biases=False
)  # fmt: skip
LATENT = replace(DENSE, head_size=64, query_rank=512, kv_rank=256, rope_size=32, value_size=128)
EXPERTS = replace(DENSE, experts=8, experts_per_token=2, expert_ffn=512, shared_experts=1, dense_layers=1)
WINDOWS = replace(DENSE, window=512, global_layers=1)


def group(plan: Plan) -> Ranks:
    columns = table([plan])
    return ranks(columns, lay_out(columns, CLUSTER))


def number(value: object) -> float:
    return float(np.asarray(value).item())


# --- weights --------------------------------------------------------------------------------------------------------------------------


def test_latent_attention_has_a_way_down_and_a_way_up() -> None:
    """h 1024, 16 heads of 64 + 32, values of 128: down to 512 and to 256 + 32, up to 16 x 96 and to 16 x (64 + 128), two norms, output."""
    down, up = 1024 * (512 + 256 + 32), 512 * 16 * 96 + 256 * 16 * (64 + 128)
    assert attention_parameters(LATENT) == down + up + (512 + 256) + 16 * 128 * 1024
    direct = replace(LATENT, query_rank=0)
    assert attention_parameters(direct) == 1024 * (256 + 32) + 1024 * 16 * 96 + 256 * 16 * 192 + 256 + 16 * 128 * 1024


def test_experts_have_their_own_width_beside_dense_layers_and_shared_ones() -> None:
    """One layer of width 4,096 and three of 8 + 1 experts of 512, of which a token takes 2 + 1."""
    attention, norms, router, expert = 4 * 1024**2, 2 * 1024, 8 * 1024, 3 * 1024 * 512
    outside = 2 * 32000 * 1024 + 1024
    first, further = attention + norms + 3 * 1024 * 4096, attention + norms + router + 9 * expert
    assert parameters(EXPERTS) == first + 3 * further + outside
    assert active_parameters(EXPERTS) == parameters(EXPERTS) - 3 * 6 * expert


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({"qk_norm": True}, 2 * 64),
        ({"norms": 4}, 2 * 1024),
        ({"norms": 1}, -1024),
        ({"sinks": True}, 16),
        ({"biases": ("queries-keys-values",)}, 3 * 1024),
        ({"biases": ("projection", "norms")}, 1024 + 2 * 1024),
        ({"biases": ("feed-forward",)}, 2 * 4096 + 1024),
        ({"biases": True}, 3 * 1024 + 1024 + 2 * 4096 + 1024 + 2 * 1024),
        ({"biases": ("router", "head")}, 0),
        ({"window": 128, "attention_cap": True, "logit_cap": True, "parallel_blocks": True, "prediction_layers": 1}, 0),
    ],
)
def test_small_parts_of_a_layer_have_their_weights(change: dict[str, Any], more: int) -> None:
    assert layer_parameters(replace(DENSE, **change)) == layer_parameters(DENSE) + more


def test_biases_of_router_and_head_are_counted_where_they_are() -> None:
    assert parameters(replace(DENSE, biases=("head",))) == parameters(DENSE) + 32000
    assert parameters(replace(EXPERTS, biases=("router",))) == parameters(EXPERTS) + 3 * 8


def test_layers_that_predict_further_tokens_are_no_part_of_the_size() -> None:
    """Each is a layer, 2 h^2 and three norms beside the network, which has its size without them."""
    further = replace(EXPERTS, prediction_layers=1)
    assert parameters(further) == parameters(EXPERTS)
    assert prediction_parameters(further) == 2 * 1024**2 + 3 * 1024
    expert = kind_of_layer(further, 4)
    products = layer_parameters(expert) - 2 * 1024 - 6 * 3 * 1024 * 512  # no norms, and of the experts those of the token
    more = products + 2 * 2048 * 1024 + 2 * 1024**2 + 32000 * 1024
    assert step_flops(further) - step_flops(EXPERTS) == 6.0 * EXPERTS.tokens * more


# --- kinds of layers ------------------------------------------------------------------------------------------------------------------


def test_layers_are_of_the_kinds_that_the_model_says() -> None:
    assert layer_kinds(DENSE) == ((4, DENSE),)
    assert [count for count, _ in layer_kinds(EXPERTS)] == [1, 3]
    assert [(count, kind.reach) for count, kind in layer_kinds(WINDOWS)] == [(1, 2048), (3, 512 * 1.75)]
    both = replace(EXPERTS, window=512, global_layers=2)
    assert [(count, kind.reach, kind.experts) for count, kind in layer_kinds(both)] == [
        (0.5, 2048, 1),
        (0.5, 512 * 1.75, 1),
        (1.5, 2048, 8),
        (1.5, 512 * 1.75, 8),
    ]
    assert [kind_of_layer(WINDOWS, place).reach for place in (1, 2, 3, 4)] == [512 * 1.75] * 3 + [2048]
    assert [kind_of_layer(EXPERTS, place).experts for place in (1, 2, 3, 4)] == [1, 8, 8, 8]
    assert all(layer_kinds(kind) == ((kind.stack, kind),) for model in (EXPERTS, WINDOWS, both) for _, kind in layer_kinds(model))


def test_the_mean_layer_has_each_kind_with_its_share(a100: Hardware) -> None:
    one = group(Plan(tensor=2))
    modes = [number_of(word) for word in RECOMPUTE]
    for place, mean in enumerate(mean_layers(WINDOWS, one, a100, modes)):
        far, near = (mean_layers(kind, one, a100, modes)[place] for _, kind in layer_kinds(WINDOWS))
        assert number(mean.backward) == pytest.approx((number(far.backward) + 3 * number(near.backward)) / 4, rel=1e-12)
        assert number(mean.energy) == pytest.approx((number(far.energy) + 3 * number(near.energy)) / 4, rel=1e-12)
        assert number(near.energy) < number(mean.energy) < number(far.energy)


# --- work -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LATENT, replace(LATENT, query_rank=0), EXPERTS, replace(EXPERTS, experts_per_token=3, shared_experts=2)])
@pytest.mark.parametrize("plan", [Plan(), Plan(tensor=4), Plan(tensor=4, sequence_parallel=True), Plan(tensor=2, context=2, microbatch=2)])
def test_products_of_all_ranks_do_the_flops_of_the_weights(model: Transformer, plan: Plan) -> None:
    """Two for each weight and token, but that each tensor rank goes down to the latents and asks the router for itself."""
    model = layer_kinds(model)[-1][1]
    one, tokens = group(plan), plan.microbatch * 2048 / plan.context
    for name, product in named_projections(model, one):
        weights = number(product.depth) * number(product.columns) * number(product.count)
        rows = tokens / (plan.tensor if plan.sequence_parallel and name.endswith("down") else 1)
        chosen = model.experts_per_token / model.experts if name in {"inner product", "outer product"} else 1.0
        assert number(product.flops) == pytest.approx(2.0 * rows * weights * chosen, rel=1e-12)
    whole = sum(number(product.depth) * number(product.columns) * number(product.count) for product in projections(model, group(Plan())))
    small = (model.query_rank + model.kv_rank if model.latent else 0) + 2 * model.hidden
    assert whole == layer_parameters(model) - small


@pytest.mark.parametrize(
    "model",
    [
        replace(LATENT, heads=4, head_size=256, kv_rank=768, rope_size=256, value_size=256),
        replace(LATENT, heads=4, head_size=256, kv_rank=768, rope_size=256, value_size=256, query_rank=0, prediction_layers=1),
        replace(EXPERTS, heads=4, experts=128, experts_per_token=16, shared_experts=2, prediction_layers=2),
        replace(DENSE, heads=4, lora_rank=256),
        replace(LATENT, heads=4, head_size=256, kv_rank=768, rope_size=256, value_size=256, lora_rank=256),
        replace(EXPERTS, heads=4, experts=128, experts_per_token=16, lora_rank=256, prediction_layers=1),
    ],
)
def test_a_step_of_all_layers_and_the_head_does_the_models_flops(
    model: Transformer, arithmetic: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With scores over the whole sequence, and 4 FLOPs a frozen weight and token; shapes fill tiles, experts have equal tokens."""
    monkeypatch.setattr(roofline, "_across", lambda product, rows: product.rows / rows)
    model, one = replace(model, attention="unfused"), group(Plan())
    [none, *_] = mean_layers(model, one, arithmetic)
    seconds = model.stack * (number(none.forward) + number(none.backward)) + number(head(model, one, arithmetic).time)
    assert model.global_batch * seconds == pytest.approx(step_flops(model) / 100e12, rel=1e-12)


@pytest.mark.parametrize(
    ("window", "seen"), [(512, 512 * 2048 - 512**2 / 2), (2047, 2048**2 / 2 - 0.5), (2048, 2048**2 / 2), (4096, 2048**2 / 2)]
)
def test_a_window_leaves_the_pairs_that_its_mask_leaves(arithmetic: Hardware, window: int, seen: float) -> None:
    """Of the s^2 / 2 pairs under the mask those at most W apart: W s - W^2 / 2; 4 FLOP a pair, head and element."""
    model = replace(DENSE, window=window)
    assert number(attention_core(model, group(Plan()), arithmetic).time) == pytest.approx(4 * seen * 1024 / 100e12, rel=1e-12)
    assert score_flops(model) == pytest.approx(6.0 * model.tokens * 4 * (2 * seen / 2048) * 2 * 1024, rel=1e-12)


def test_latents_are_attended_by_heads_of_unequal_width(arithmetic: Hardware) -> None:
    """Scores over 64 + 32 elements, padded to 128, values over 128."""
    assert number(attention_core(LATENT, group(Plan()), arithmetic).time) == pytest.approx(2048**2 * 16 * (128 + 128) / 100e12, rel=1e-12)


def test_parallel_blocks_are_summed_once(plain: Hardware) -> None:
    for plan in (Plan(tensor=8), Plan(tensor=8, sequence_parallel=True)):
        twice, once = (forward_pass(model, group(plan), plain) for model in (DENSE, replace(DENSE, parallel_blocks=True)))
        assert number(twice.tensor) == 2 * number(once.tensor) > 0


def test_norms_and_caps_stream_their_bytes(plain: Hardware) -> None:
    """Two-byte values, two passes forward: 4 norms of h; queries and keys of 16 + 16 heads of 64; latents of 512 + 256."""
    slow, one = replace(plain, dram=Memory(64e9, 1e6), throughput=1e30), group(Plan())
    bytes_of = {
        "four": (replace(DENSE, norms=4), 4 * 2048 * 1024 * 4),
        "heads": (replace(DENSE, qk_norm=True), 2 * 2048 * 1024 * 4 + 2048 * 32 * 64 * 4),
        "latents": (LATENT, 2 * 2048 * 1024 * 4 + 2048 * (512 + 256) * 4),
    }
    for model, size in bytes_of.values():
        assert number(element_wise(model, one, slow, backward=False).norms.time) == pytest.approx(size / 1e6)
    unfused = replace(DENSE, attention="unfused")
    capped = number(attention_core(replace(unfused, attention_cap=True), one, slow).time)
    assert capped - number(attention_core(unfused, one, slow).time) == pytest.approx(6 * 2 * 16 * 2048**2 / 1e6)
    logits = number(head(replace(DENSE, logit_cap=True), one, slow).time) - number(head(DENSE, one, slow).time)
    assert logits == pytest.approx(5 * 4 * 2048 * 32000 / 1e6)


# --- memory ---------------------------------------------------------------------------------------------------------------------------


def kept(model: Transformer, plan: Plan = Plan()) -> float:  # noqa: B008 - frozen
    return number(layer_activations(model, sharding(model, table([plan])), number_of("none")))


def test_a_layer_keeps_what_its_parts_take_in() -> None:
    """2,048 tokens of two bytes: inputs of norms and products; queries, keys, values, results; inner values of the experts."""
    usual = kept(DENSE)
    assert kept(replace(DENSE, norms=4)) - usual == 2 * 2 * 2048 * 1024
    assert kept(replace(DENSE, norms=1, parallel_blocks=True)) - usual == -2 * 2 * 2048 * 1024
    assert kept(replace(DENSE, qk_norm=True)) - usual == 2 * 2048 * 64 * 32
    latents, heads = 2 * (512 + 256), 16 * 2 * (96 + 128)
    assert kept(LATENT) - usual == 2 * 2048 * (latents + heads - 16 * 4 * 64)
    expert = kind_of_layer(EXPERTS, 2)
    inner, sorted_tokens = (2 + 1) * 512 * 3 - 4096 * 3, 2 * 2 * 1024
    assert kept(expert) - usual == 2 * 2048 * (inner + sorted_tokens)
    assert kept(EXPERTS) == max(kept(expert), usual)


def test_every_tensor_rank_has_the_way_down_to_the_latents() -> None:
    found = number(layer_weights(LATENT, sharding(LATENT, table([Plan(tensor=4)]))).shared)
    copied = 1024 * (512 + 256 + 32) + 512 + 256 + 2 * 1024
    assert found == (layer_parameters(LATENT) - copied) / 4 + copied


def test_dense_layers_are_on_the_stages_that_come_first() -> None:
    """Eleven layers on four stages are 3, 3, 3, 2: of five dense ones three and two."""
    model = replace(EXPERTS, layers=11, dense_layers=5)
    columns = sharding(model, table([Plan(pipeline=4)]))
    held = [number(dense_share(model, columns, stage)) for stage in range(4)]
    assert held == pytest.approx([1.0, 2 / 3, 0.0, 0.0])
    assert sum(number(dense_share(model, sharding(model, table([Plan(pipeline=11)])), stage)) for stage in range(11)) == 5


def test_a_stage_that_holds_the_embedding_alone_has_no_dense_layers() -> None:
    """Eleven layers on thirteen stages leave the first one the embedding alone; its share of dense layers was no number, nor its memory."""
    model = replace(EXPERTS, layers=11, dense_layers=5)
    columns = sharding(model, table([Plan(pipeline=13)]))
    assert [number(dense_share(model, columns, stage)) for stage in range(4)] == [0.0, 1.0, 1.0, 1.0]
    assert np.isfinite(peak_memory(model, columns)).all()


# --- rules ----------------------------------------------------------------------------------------------------------------------------


def test_tensor_ranks_divide_every_width_that_there_is() -> None:
    assert EXPERTS.widths == (4096, 512)
    assert replace(EXPERTS, dense_layers=0).widths == (512,)
    broken = broken_rules(replace(EXPERTS, expert_ffn=12), Plan(tensor=8), 8)
    assert broken == ("tensor divides the feed-forward width 4096 and 12",)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"expert_ffn": 8}, "expert_ffn is given for a network without experts: give experts, or leave it out"),
        ({"experts": 4, "dense_layers": 4}, "dense_layers 4 leaves none of 4 layers for experts: give fewer, or leave experts out"),
        ({"global_layers": 2}, "global_layers is 2: give a window, and at most the 4 layers"),
        ({"window": 8, "global_layers": 5}, "global_layers is 5: give a window, and at most the 4 layers"),
        ({"rope_size": 8}, "rope_size applies to latent attention alone: give kv_rank, or leave it out"),
        ({"kv_rank": 8}, "latent attention has no default head_size: give the width of a query without its positions"),
        ({"kv_rank": 8, "head_size": 8, "kv_heads": 4}, "kv_heads 4 has no effect in latent attention: leave it out"),
        (
            {"kv_rank": 8, "head_size": 8, "qk_norm": True},
            "latent attention has neither qk_norm nor biases of queries, keys and values: leave them out",
        ),
        ({"parallel_blocks": True, "norms": 4}, "norms is 4: parallel blocks have 1 or 2"),
        ({"norms": 0}, "norms is 0, at least 1 is needed"),
        ({"window": -1}, "window is -1, at least 0 is needed (0 is the default)"),
        ({"shared_experts": -1}, "shared_experts is -1, at least 0 is needed"),
    ],
)
def test_figures_that_do_not_go_together_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as caught:
        replace(DENSE, **change)
    assert str(caught.value) == said


def test_a_window_as_wide_as_the_sequence_is_none(a100: Hardware) -> None:
    """To the last digit."""
    columns = table([Plan(tensor=2, data=32), Plan(context=4, data=16, recompute="selective")])
    for model in (replace(DENSE, global_batch=64), replace(LATENT, global_batch=64)):
        plain, wide = (price(one, a100, CLUSTER, columns) for one in (model, replace(model, window=2048, global_layers=2)))
        assert np.array_equal(plain.step_time, wide.step_time)
        assert np.array_equal(plain.memory, wide.memory)


def test_dense_layers_stay_whole_where_experts_of_others_are_spread(plain: Hardware) -> None:
    """They neither send tokens away nor leave weights out."""
    dense = feed_forward_kinds(EXPERTS)[0][1]
    spread, together = (forward_pass(dense, group(plan), plain) for plan in (Plan(data=4, expert=4), Plan(data=4)))
    assert spread == together
    assert number(spread.expert) == 0.0
    for expert in (1, 4):
        held = stage_weights(EXPERTS, sharding(EXPERTS, table([Plan(data=4, expert=expert)])), 0.0)
        assert number(held.routed) == pytest.approx(3 * 8 * 3 * 1024 * 512 / expert)
    whole = [number(stage_weights(EXPERTS, sharding(EXPERTS, table([Plan(data=4, expert=one)])), 0.0).shared) for one in (1, 4)]
    assert whole[0] == whole[1]


def test_a_stage_that_holds_the_head_alone_has_a_size(recwarn: pytest.WarningsRecorder) -> None:
    """Of eleven layers on twelve stages the last one has none, of which no share is dense."""
    model = replace(EXPERTS, layers=11)
    split = sharding(model, table([Plan(pipeline=12)]))
    assert number(dense_share(model, split, 11.0)) == 0.0
    assert number(stage_memory(model, split, 11).total()) > 0.0
    assert not recwarn.list


# Counts of weights and of FLOPs: published networks, closed forms, and what each option of a network adds.

GPT2 = Transformer("gpt2", 12, 768, 12, 3072, 50257, 1024, 1)
LLAMA = Transformer("llama", 32, 4096, 32, 11008, 32000, 4096, 1, gated=True, tied=False, learned_positions=False, biases=False)
LLAMA3 = replace(LLAMA, kv_heads=8, ffn=14336, vocabulary=128256)


@pytest.mark.parametrize(
    ("published", "model"),
    [
        (124_439_808, GPT2),
        (1_557_611_200, replace(GPT2, layers=48, hidden=1600, heads=25, ffn=6400)),
        (6_738_415_616, LLAMA),
        (8_030_261_248, LLAMA3),
        (70_553_706_496, replace(LLAMA3, layers=80, hidden=8192, heads=64, ffn=28672)),
        (405_853_388_800, replace(LLAMA3, layers=126, hidden=16384, heads=128, ffn=53248)),
        (46_702_792_704, replace(LLAMA3, vocabulary=32000, experts=8, experts_per_token=2)),
    ],
)
def test_published_checkpoints_are_counted_to_the_last_weight(published: int, model: Transformer) -> None:
    """GPT-2 small and XL, Llama 2 7B, Llama 3 8B, 70B and 405B, Mixtral 8x7B, as their checkpoints hold."""
    assert parameters(model) == published


GPTS = st.builds(
    lambda layers, heads, width, words, sequence, batch: Transformer(
        "gpt", layers, heads * width, heads, 4 * heads * width, words, sequence, batch
    ),
    st.integers(1, 128),
    st.integers(1, 160),
    st.integers(1, 160),
    st.integers(1, 300_000),
    st.integers(1, 8192),
    st.integers(1, 4096),
)


@given(GPTS)
def test_a_gpt_has_the_published_closed_form_of_weights(model: Transformer) -> None:
    """12 L h^2 (1 + 13 / (12 h) + (V + s) / (12 L h)) (Narayanan et al. 2021, eq. 2), and the final norm that it leaves out."""
    layers, hidden = model.layers, model.hidden
    assert parameters(model) == 12 * layers * hidden**2 + 13 * layers * hidden + (model.vocabulary + model.sequence) * hidden + 2 * hidden


@given(GPTS)
def test_a_step_has_the_published_flops_without_and_with_recomputation(model: Transformer) -> None:
    """72 B s L h^2 (1 + s / (6 h) + V / (12 L h)); 96 and V / (16 L h) with a second forward pass of the layers (Narayanan et al. 2021)."""
    layers, hidden, words, length = model.layers, model.hidden, model.vocabulary, model.sequence
    scale = model.global_batch * length * layers * float(hidden) ** 2
    assert step_flops(model) == pytest.approx(72 * scale * (1 + length / (6 * hidden) + words / (12 * layers * hidden)), rel=1e-12)
    again = (step_flops(model) - 6.0 * model.tokens * hidden * words) / 3.0
    recomputed = 96 * scale * (1 + length / (6 * hidden) + words / (16 * layers * hidden))
    assert step_flops(model) + again == pytest.approx(recomputed, rel=1e-12)
    assert step_flops(model) + repeated_flops(model, number_of("full")) == pytest.approx(recomputed, rel=1e-12)


def test_recomputed_modules_repeat_their_products_alone() -> None:
    """A mixture whose first layer is dense, on latents: what each module repeats is a part of the forward pass, and all of them a layer's
    products but the projections that lead to latents, the output's, and none of what is no product."""
    model = Transformer(
        "mixed", 3, 64, 4, 256, 100, 16, 2, head_size=8, kv_rank=16, query_rank=24, rope_size=8, value_size=8, gated=True,
        experts=8, experts_per_token=2, expert_ffn=32, shared_experts=1, dense_layers=1, biases=False,
    )  # fmt: skip
    tokens = 2.0 * model.tokens
    part = {word: repeated_flops(model, number_of(word)) / tokens for word in ("selective", "dense-part", "shared-experts", "experts")}
    assert part["selective"] == 3 * 16 * 4 * (16 + 8)
    assert part["dense-part"] == 3 * 64 * 256
    assert part["shared-experts"] == 2 * 3 * 64 * 32
    assert part["experts"] == 2 * (3 * 3 * 64 * 32 + 64 * 8)
    assert repeated_flops(model, number_of("up-projections")) == tokens * 3 * (24 * 4 * 16 + 16 * 4 * (8 + 8))
    assert repeated_flops(model, number_of("elements")) == repeated_flops(model, 0) == 0.0
    whole = repeated_flops(model, number_of("full"))
    assert whole == pytest.approx((step_flops(model) - 6.0 * model.tokens * 64 * 100) / 3.0, rel=1e-12)
    assert repeated_flops(model, number_of("full"), 0.5) == whole / 2.0


def test_what_stops_early_repeats_no_last_product_but_where_experts_are_chosen() -> None:
    early, spared = replace(LLAMA, stops_early=True), 2.0 * LLAMA.tokens * 32 * 4096 * 11008
    for word in ("full", "dense-part"):
        assert repeated_flops(early, number_of(word)) == repeated_flops(LLAMA, number_of(word)) - spared
    routed = replace(LLAMA, experts=8, experts_per_token=2)
    assert repeated_flops(replace(routed, stops_early=True), number_of("full")) == repeated_flops(routed, number_of("full"))


def test_every_other_product_is_keys_projection_and_one_of_two_inner_ones() -> None:
    model = replace(LLAMA3, stops_early=True)
    assert repeated_flops(model, number_of("second-products")) == 2.0 * model.tokens * 32 * 4096 * (1024 + 4096 + 14336)
    assert repeated_flops(replace(GPT2), number_of("second-products")) == 2.0 * GPT2.tokens * 12 * 768 * (768 + 768)


def test_six_flops_a_weight_and_token_are_a_lower_bound_for_a_dense_network() -> None:
    """Every weight of a product is used once forward and twice backward; embedding, norms and attention scores stand aside."""
    products = parameters(LLAMA3) - LLAMA3.vocabulary * LLAMA3.hidden - (2 * LLAMA3.layers + 1) * LLAMA3.hidden
    scores = 12.0 * LLAMA3.tokens * LLAMA3.layers * LLAMA3.sequence * LLAMA3.hidden
    assert step_flops(LLAMA3) == 6.0 * LLAMA3.tokens * products + scores


def test_only_the_experts_of_a_token_cost_flops_but_all_hold_weights() -> None:
    model = Transformer("experts", 1, 8, 2, 16, 10, 4, 1, experts=4, experts_per_token=2, biases=False)
    attention, norms, router, expert = 4 * 8 * 8, 2 * 8, 8 * 4, 2 * 8 * 16
    assert layer_parameters(model) == attention + norms + router + 4 * expert
    assert step_flops(model) == 6 * 4 * (attention + 2 * 4 * 8 + router + 2 * expert + 8 * 10)


def test_grouped_queries_and_a_head_size_of_its_own_change_the_projections() -> None:
    """h d (2 a + 2 a_kv) with h 8, d 3, a 4, a_kv 2."""
    model = Transformer("grouped", 1, 8, 4, 16, 10, 4, 1, kv_heads=2, head_size=3, biases=False)
    assert layer_parameters(model) == 8 * 3 * (2 * 4 + 2 * 2) + 2 * 8 + 2 * 8 * 16


@pytest.mark.parametrize(("field", "value"), [("layers", 0), ("experts", 0), ("kv_heads", -8), ("head_size", -1), ("kv_heads", 5)])
def test_an_impossible_shape_is_refused_with_the_field(field: str, value: int) -> None:
    changes: dict[str, int] = {field: value}
    with pytest.raises(ValueError, match=f"{field} .*{value}"):
        replace(GPT2, **changes)  # type: ignore[arg-type]


# Networks of which a part is trained: adapters, and the layers after frozen ones.

ADAPTED = replace(DENSE, lora_rank=16)


def test_adapters_alone_have_gradients_and_optimizer_state() -> None:
    """Four matrices of 1,024 by 1,024 and three of 1,024 by 4,096 a layer, beside each rank 16."""
    adapters = 16 * (4 * 2 * 1024 + 3 * (1024 + 4096))
    assert adapter_parameters(ADAPTED) == adapters
    assert trained_parameters(ADAPTED) == 4 * adapters
    plan = Plan(tensor=2, pipeline=2)
    usual, adapted = (stage_memory(model, sharding(model, table([plan])), 0.0) for model in (DENSE, ADAPTED))
    held = 2 * 16 * (7 * 1024 + (4 * 1024 + 3 * 4096) / 2)
    assert number(adapted.gradients) == 4.0 * held
    assert number(adapted.optimizer) == 12.0 * held
    assert number(adapted.weights) == number(usual.weights) + 2.0 * held
    experts = replace(EXPERTS, lora_rank=16, shared_experts=2)
    assert adapter_parameters(kind_of_layer(experts, 2)) == 16 * (8 * 1024 + 8 * 3 * (1024 + 512) + 3 * (1024 + 2 * 512))


def test_adapters_of_a_published_size_are_met() -> None:
    """Rank 16 beside all matrices of Llama 2 70B: 16 (16,384 + 2 x 9,216 + 16,384 + 3 x 36,864) in each of 80 layers, 207 million."""
    llama = replace(DENSE, layers=80, hidden=8192, heads=64, kv_heads=8, ffn=28672, lora_rank=16)
    assert trained_parameters(llama) == 80 * 16 * (16384 + 2 * 9216 + 16384 + 3 * 36864) == 207_093_760


def test_what_is_frozen_is_neither_summed_nor_published(plain: Hardware) -> None:
    """Of 16 replicas only adapters are exchanged; under ZeRO-3 weights are gathered all the same."""
    for zero in (0, 1, 2, 3):
        plans = table([Plan(data=16, zero=zero)])
        usual, adapted = (data_exchange(m, sharding(m, plans), lay_out(plans, CLUSTER), plain) for m in (DENSE, ADAPTED))
        share = trained_parameters(ADAPTED) / parameters(DENSE)
        assert number(adapted.optimizer) == pytest.approx(share * number(usual.optimizer), rel=1e-12)
        if zero < 2:
            assert number(adapted.synchronize) == pytest.approx(share * number(usual.synchronize), rel=1e-12)
            assert number(adapted.publish) == pytest.approx(share * number(usual.publish), rel=1e-12)
        else:
            assert number(adapted.synchronize) == 0.0
            assert number(adapted.gather_forward) >= number(usual.gather_forward)
            assert number(adapted.gather_backward) < number(usual.gather_backward)


FROZEN = replace(DENSE, tied=False, frozen_layers=3)
"""Three of four layers."""


def test_frozen_layers_and_the_embedding_have_no_gradients_nor_optimizer_state() -> None:
    """Nor do they keep activations; weights are the same."""
    whole = replace(FROZEN, frozen_layers=None)
    own = layer_parameters(DENSE)
    assert parameters(FROZEN) == parameters(whole)
    assert trained_parameters(FROZEN) == parameters(whole) - 3 * own - embedding_parameters(whole)
    usual, frozen = (stage_memory(model, sharding(model, table([Plan()])), 0.0) for model in (whole, FROZEN))
    assert number(frozen.weights) == number(usual.weights)
    assert number(frozen.gradients) == 4.0 * trained_parameters(FROZEN)
    assert number(frozen.optimizer) == 12.0 * trained_parameters(FROZEN)
    kept = layer_activations(whole, sharding(whole, table([Plan()])), 0)
    assert number(usual.activations) - number(frozen.activations) == pytest.approx(3 * number(kept))


def test_the_embedding_alone_is_frozen_on_any_stage() -> None:
    whole, frozen = replace(FROZEN, frozen_layers=None), replace(FROZEN, frozen_layers=0)
    for stage in range(2):
        one, other = (stage_memory(model, sharding(model, table([Plan(pipeline=2)])), float(stage)) for model in (whole, frozen))
        assert number(one.gradients - other.gradients) == 4.0 * embedding_parameters(whole) * (stage == 0)
        assert number(one.activations) == number(other.activations)
    assert step_flops(frozen) == step_flops(whole)


def test_frozen_layers_go_forward_alone(arithmetic: Hardware, monkeypatch: pytest.MonkeyPatch) -> None:
    """2 FLOPs a weight and token in them, 6 in the others; recomputation in proportion."""
    monkeypatch.setattr(roofline, "_across", lambda product, rows: product.rows / rows)
    model, one = replace(FROZEN, heads=4, attention="unfused"), group(Plan())
    whole = replace(model, frozen_layers=None)
    [mean], [full] = (mean_layers(network, one, arithmetic, [LAYER]) for network in (model, whole))
    assert number(mean.forward) == number(full.forward)
    assert number(mean.backward) == pytest.approx(number(full.backward) / 4)
    assert number(mean.recompute) == pytest.approx(number(full.recompute) / 4)
    [mean] = mean_layers(model, one, arithmetic)
    seconds = model.stack * (number(mean.forward) + number(mean.backward)) + number(head(model, one, arithmetic).time)
    assert model.global_batch * seconds == pytest.approx(step_flops(model) / 100e12, rel=1e-12)
    assert step_flops(model) == pytest.approx(step_flops(whole) - 3 / 4 * 2 / 3 * (step_flops(whole) - 6.0 * whole.tokens * 1024 * 32000))
    assert score_flops(model) == pytest.approx(score_flops(whole) / 2)


def test_gradients_of_frozen_layers_are_not_exchanged(plain: Hardware) -> None:
    """Under ZeRO-3 their weights are gathered forward alone."""
    for zero in (0, 1, 2, 3):
        plans = table([Plan(data=16, zero=zero)])
        whole = replace(FROZEN, frozen_layers=None)
        usual, frozen = (data_exchange(m, sharding(m, plans), lay_out(plans, CLUSTER), plain) for m in (whole, FROZEN))
        share = trained_parameters(FROZEN) / parameters(whole)
        assert number(frozen.optimizer) == pytest.approx(share * number(usual.optimizer), rel=1e-12)
        assert number(frozen.gather_forward) == number(usual.gather_forward)
        assert number(frozen.gather_backward) == pytest.approx(number(usual.gather_backward) / 4)
        if zero < 2:
            assert number(frozen.synchronize) == pytest.approx(share * number(usual.synchronize), rel=1e-12)
            assert number(frozen.publish) == pytest.approx(share * number(usual.publish), rel=1e-12)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"frozen_layers": 4}, "from 0 to 3 are needed"),
        ({"tied": True}, "needs a separate head"),
        ({"lora_rank": 8}, "has no effect beside lora_rank"),
        ({"prediction_layers": 1}, "excludes prediction_layers"),
    ],
)
def test_what_is_not_held_beside_frozen_layers_is_told(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        replace(FROZEN, **change)


def test_frozen_layers_are_on_one_stage() -> None:
    told = "frozen layers exclude pipeline parallelism"
    assert told in broken_rules(FROZEN, Plan(pipeline=2), 2)
    assert told not in broken_rules(replace(FROZEN, frozen_layers=0), Plan(pipeline=2), 2)
    assert "frozen layers offload nothing" in broken_rules(FROZEN, Plan(offload="all"), 1)
