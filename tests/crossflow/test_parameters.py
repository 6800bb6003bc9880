"""Counts of weights and of FLOPs: published networks, closed forms, and what each option of a network adds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.parameters import layer_parameters, parameters, repeated_flops, step_flops
from crossopt.crossflow.recomputation import number_of
from crossopt.crossflow.workload import Transformer

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
