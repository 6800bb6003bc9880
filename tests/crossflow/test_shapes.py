"""Networks of today: experts of their own width, latents, windows, parallel blocks; weights, work and memory by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from crossopt.crossflow import roofline
from crossopt.crossflow.edges import head
from crossopt.crossflow.hardware import Cluster, Hardware, Memory
from crossopt.crossflow.kernels.layer_kernels import attention_core, element_wise
from crossopt.crossflow.layer import forward_pass
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.memory import dense_share, layer_activations, layer_weights, peak_memory, stage_memory, stage_weights
from crossopt.crossflow.parameters import (
    active_parameters,
    attention_parameters,
    layer_parameters,
    multiplied_parameters,
    parameters,
    prediction_parameters,
    score_flops,
    step_flops,
)
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.plan_rules import broken_rules
from crossopt.crossflow.projections import named_projections, projections
from crossopt.crossflow.ranks import Ranks
from crossopt.crossflow.recomputation import RECOMPUTE, number_of
from crossopt.crossflow.transformer import mean_layers, price, ranks, sharding
from crossopt.crossflow.workload import Transformer, feed_forward_kinds, kind_of_layer, layer_kinds

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
    assert multiplied_parameters(EXPERTS) == active_parameters(EXPERTS) - 32000 * 1024
    assert multiplied_parameters(replace(EXPERTS, tied=True)) == active_parameters(EXPERTS) - 32000 * 1024


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
    ],
)
def test_a_step_of_all_layers_and_the_head_does_the_models_flops(
    model: Transformer, arithmetic: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of plain networks, with scores over the whole sequence; all shapes here fill their tiles, and each expert has as many tokens."""
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
        ({"rope_size": 8}, "rope_size belongs to latent attention: give kv_rank, or leave it out"),
        ({"kv_rank": 8}, "latent attention has no usual head_size: give the width of a query without its positions"),
        ({"kv_rank": 8, "head_size": 8, "kv_heads": 4}, "kv_heads 4 means nothing in latent attention: leave it out"),
        (
            {"kv_rank": 8, "head_size": 8, "qk_norm": True},
            "latent attention has neither qk_norm nor biases of queries, keys and values: leave them out",
        ),
        ({"parallel_blocks": True, "norms": 4}, "norms is 4: parallel blocks have 1 or 2"),
        ({"norms": 0}, "norms is 0, at least 1 is needed"),
        ({"window": -1}, "window is -1, at least 0 is needed (0 means the usual)"),
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
