"""One layer and microbatch: products, exchanges, passes, casts and single operators, by hand on a device of round figures."""

from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest

from crossopt.crossflow.collectives import all_gather, all_reduce_time, all_to_all, exchange_time
from crossopt.crossflow.context_exchange import Around
from crossopt.crossflow.edges import embedding, head
from crossopt.crossflow.hardware import Cluster, Efficiency, Hardware, Link, Memory
from crossopt.crossflow.kernels.layer_kernels import (
    adapters,
    attention_core,
    attention_core_backward,
    cast,
    casts,
    element_wise,
    named_projections,
    projections,
)
from crossopt.crossflow.kernels.sharded import Way, edge_time, kinds, mesh_axes, network, operator_times, resharding, ways
from crossopt.crossflow.layer import Layer, Pass, backward_pass, forward_pass, layer
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.memory import layer_activations
from crossopt.crossflow.operators import blocks, operators
from crossopt.crossflow.parameters import attention_parameters, expert_parameters, parameters, router_parameters, step_flops
from crossopt.crossflow.plan import Plan, Ranks, table
from crossopt.crossflow.recomputation import ATTENTION_NORM, EXPERT_ACTIVATION, RECOMPUTE, number_of
from crossopt.crossflow.roofline import NOTHING, Cost, Product, backward_costs, product_cost
from crossopt.crossflow.transformer import price, price_directly, ranks, sharding
from crossopt.crossflow.workload import Scaling, Transformer, kind_of_layer
from tests.crossflow.strategies import MODELS

# One layer and microbatch: its products, exchanges and passes by hand on a device of round figures.

CLUSTER = Cluster(64, (8, 64))
GPT = Transformer("gpt", 4, 1024, 16, 4096, 32000, 2048, 8, attention="unfused", biases=False, learned_positions=False)
GROUPED = replace(GPT, kv_heads=4, gated=True, ffn=3072, attention="flash")
EXPERTS = replace(GPT, experts=8, experts_per_token=2)
BLOCK = 2048 * 1024 * 2
"""Bytes of the activations between two operators: s h values."""


def group(plan: Plan) -> Ranks:
    columns = table([plan])
    return ranks(columns, lay_out(columns, CLUSTER))


def number(value: object) -> float:
    return float(np.asarray(value).item())


@pytest.mark.parametrize("model", [GPT, GROUPED, EXPERTS, replace(GPT, head_size=128)])
@pytest.mark.parametrize(
    "plan",
    [Plan(), Plan(tensor=4), Plan(tensor=2, context=2, microbatch=2), Plan(data=4, expert=4), Plan(tensor=4, sequence_parallel=True)],
)
def test_the_ranks_of_a_layer_share_two_flops_a_weight_and_token(model: Transformer, plan: Plan) -> None:
    """Products with weights do 2 FLOP for each weight of the layer (of each active expert) and token; the router's is not split."""
    one = group(plan)
    work = sum(number(product.flops) for product in projections(model, one))
    active = attention_parameters(model) + model.experts_per_token * expert_parameters(model)
    tokens = plan.microbatch * model.sequence / plan.context
    assert work == pytest.approx(2.0 * tokens * (active / plan.tensor + router_parameters(model)), rel=1e-12)


def test_more_tensor_ranks_than_key_value_heads_keep_a_copy_each() -> None:
    """16 ranks, 4 groups: one query head of width 64 and a whole key and value head on each rank, instead of a quarter."""
    queries_keys_values = projections(GROUPED, group(Plan(tensor=16)))[0]
    assert (number(queries_keys_values.depth), number(queries_keys_values.columns)) == (1024, 64 * (1 + 2))
    assert number(projections(GROUPED, group(Plan(tensor=2)))[0].columns) == 64 * (8 + 2 * 2)


def test_experts_work_on_the_tokens_of_the_fullest_of_them() -> None:
    """4,096 copies of 2,048 tokens over the 2 experts of each of 4 ranks, a quarter more on the fullest."""
    router, into, out = projections(replace(EXPERTS, capacity_factor=1.25), group(Plan(data=4, expert=4)))[2:]
    assert (number(router.rows), number(router.columns)) == (2048, 8)
    assert (number(into.rows), number(into.count), number(into.columns)) == (2048 * 2 * 1.25 / 2, 2, 4096)
    assert (number(out.depth), number(out.columns)) == (4096, 1024)
    odd = projections(replace(EXPERTS, capacity_factor=1.1), group(Plan(data=4, expert=4)))[3]
    assert number(odd.rows) == 36 * 64 > 2048 * 1.1 > 35 * 64
    together = projections(replace(EXPERTS, capacity_factor=1.25), group(Plan(data=4)))[3]
    assert (number(together.rows), number(together.count)) == (2048 * 2 / 8, 8)


def test_a_step_of_all_layers_and_the_head_does_the_models_flops(arithmetic: Hardware) -> None:
    """Forward and twice as much backward, with scores over the whole sequence; all shapes here fill their tiles."""
    model, one = replace(GPT, heads=4), group(Plan())
    passes = forward_pass(model, one, arithmetic), backward_pass(model, one, arithmetic)
    seconds = model.layers * sum(number(each.seconds()) for each in passes) + number(head(model, one, arithmetic).time)
    assert model.global_batch * seconds == pytest.approx(step_flops(model) / 100e12, rel=1e-12)


def test_fused_attention_skips_the_masked_half_and_computes_scores_again_backward(arithmetic: Hardware) -> None:
    """2 s^2 a d FLOP forward, 2.5 times that backward; heads of width 80 are padded to 128."""
    fused = replace(GPT, attention="flash")
    expected = 2 * 2048**2 * 1024 / 100e12
    assert number(attention_core(fused, group(Plan()), arithmetic).time) == pytest.approx(expected)
    assert number(attention_core_backward(fused, group(Plan()), arithmetic).time) == pytest.approx(2.5 * expected)
    assert number(attention_core(fused, group(Plan(tensor=2, context=4, microbatch=3)), arithmetic).time) == pytest.approx(3 * expected / 8)
    slow = replace(fused, attention_rate=0.5)
    assert number(attention_core(slow, group(Plan()), arithmetic).time) == pytest.approx(2 * expected)
    assert number(attention_core_backward(slow, group(Plan()), arithmetic).time) == pytest.approx(2 * 2.5 * expected)
    narrow = replace(fused, hidden=1280)
    assert number(attention_core(narrow, group(Plan()), arithmetic).time) == pytest.approx(2 * expected)


def test_unfused_attention_streams_its_scores(plain: Hardware) -> None:
    """16 x 2048^2 two-byte scores: written and read by the products, read and written by the softmax; dropout does so again, with masks."""
    slow = replace(plain, dram=Memory(64e9, 1e6), throughput=1e30)
    scores, operands = 16 * 2048**2, 16 * 2 * 2048 * 64 * 2
    products = 2 * (2 * scores + operands)
    assert number(attention_core(GPT, group(Plan()), slow).time) == pytest.approx((products + 4 * scores) / 1e6)
    masked = replace(GPT, dropout=True)
    assert number(attention_core(masked, group(Plan()), slow).time) == pytest.approx((products + (8 + 1) * scores) / 1e6)


def test_a_backward_product_is_two_products(arithmetic: Hardware) -> None:
    [twice] = backward_costs((Product(512.0, 1024.0, 256.0),), 2.0, arithmetic)
    assert (number(twice.time), number(twice.kernels)) == pytest.approx((2 * 2 * 512 * 1024 * 256 / 100e12, 2))


ELEMENTS, WIDE = 2048 * 1024, 2048 * 3072
"""Values between operators, and inside a feed-forward part of width 3,072."""


@pytest.mark.parametrize(
    ("model", "plan", "forward", "backward"),
    [
        (replace(GROUPED, gated=False), Plan(), (8 + 12) * ELEMENTS + 4 * WIDE, (12 + 12) * ELEMENTS + 6 * WIDE),
        (GROUPED, Plan(), (8 + 12) * ELEMENTS + 6 * WIDE, (12 + 12) * ELEMENTS + 10 * WIDE),
        (replace(GROUPED, dropout=True), Plan(), (8 + 14) * ELEMENTS + 6 * WIDE, (12 + 14) * ELEMENTS + 10 * WIDE),
        (GROUPED, Plan(tensor=2), 20 * ELEMENTS + 6 * WIDE / 2, 24 * ELEMENTS + 10 * WIDE / 2),
        (GROUPED, Plan(tensor=2, sequence_parallel=True), 20 * ELEMENTS / 2 + 6 * WIDE / 2, 24 * ELEMENTS / 2 + 10 * WIDE / 2),
        (
            replace(GROUPED, experts=4, experts_per_token=2),
            Plan(),
            (20 + 2 * (2 + 2 * 2 + 2 * 4)) * ELEMENTS + 2 * 6 * WIDE,
            (24 + 2 * (2 + 2 * 2 + 2 * 4)) * ELEMENTS + 2 * 10 * WIDE,
        ),
    ],
    ids=["gelu", "gated", "dropout", "tensor", "sequence parallel", "experts"],
)
def test_element_wise_operators_stream_their_bytes(
    plain: Hardware, model: Transformer, plan: Plan, forward: float, backward: float
) -> None:
    """Two-byte values: 2 norms of 2 passes (3 backward), 2 residuals of 3 with masks of a byte, activations of 2 and 3 passes (gated 3
    and 5) over the width; tokens and their two copies are read and written once each way, and copies sorted by expert and back."""
    slow, one = replace(plain, dram=Memory(64e9, 1e6), throughput=1e30), group(plan)
    products = sum(number(product_cost(product, 2.0, slow).time) for product in projections(model, one))
    twice = sum(number(cost.time) for cost in backward_costs(projections(model, one), 2.0, slow))
    assert number(forward_pass(model, one, slow).work.time) - products == pytest.approx(forward / 1e6)
    assert number(backward_pass(model, one, slow).work.time) - twice == pytest.approx(backward / 1e6)


@pytest.mark.parametrize(("backward", "norm", "gate"), [(False, 18, 5), (True, 36, 9)])
def test_layers_that_are_not_compiled_pass_over_their_values_for_every_step(backward: bool, norm: int, gate: int, plain: Hardware) -> None:
    """Two norms, the gate, and queries and keys to single precision, turned and back again, 10 passes of 16 and 4 heads of 64 values."""
    slow = replace(plain, dram=Memory(64e9, 1e6), throughput=1e30)
    side = backward_pass if backward else forward_pass
    eager, compiled = (number(side(replace(GROUPED, eager=on), group(Plan()), slow).work.time) for on in (True, False))
    fused = (3, 5) if backward else (2, 3)
    passes = 2 * (norm - fused[0]) * ELEMENTS + (gate - fused[1]) * WIDE + 10 * ELEMENTS * 20 // 16
    assert eager - compiled == pytest.approx(2 * passes / 1e6, rel=1e-6)
    learned = replace(GROUPED, eager=True, learned_positions=True)
    assert number(side(learned, group(Plan()), slow).work.time) < eager


def test_recomputed_elements_are_two_norms_and_the_activation(plain: Hardware) -> None:
    """Two passes over what goes into each product after a norm, two over the width of GELU and three over a gated one."""
    slow = replace(plain, dram=Memory(64e9, 1e6))
    for model, passes, norms in (
        (GPT, 2, 2),
        (GROUPED, 3, 2),
        (replace(GPT, norms=4), 2, 2),
        (replace(GPT, norms=1, parallel_blocks=True), 2, 1),
    ):
        modules, elements = forward_pass(model, group(Plan(tensor=2)), slow).modules, number_of("elements")
        again = sum((cost for some, cost in modules if some & elements), NOTHING)
        tokens = 2.0 * 2048
        assert number(again.time) == pytest.approx(tokens * (norms * 2 * model.hidden + passes * model.ffn / 2) / 1e6)
        assert again.kernels == norms + 1


def exchanges(model: Transformer, plan: Plan, hardware: Hardware) -> tuple[float, float, float]:
    """Seconds of the tensor, context and expert exchanges of a forward pass."""
    forward = forward_pass(model, group(plan), hardware)
    return number(forward.tensor), number(forward.context.hidden), number(forward.expert)


def test_tensor_parallelism_costs_two_all_reduces_a_pass(plain: Hardware) -> None:
    """2 (n - 1)/n of s h values each at 100 GB/s; a gather and a scatter with sequence parallelism move as much."""
    expected = 2 * 2 * 7 / 8 * BLOCK / 100e9
    assert exchanges(GPT, Plan(tensor=8), plain) == pytest.approx((expected, 0, 0))
    assert exchanges(GPT, Plan(tensor=8, sequence_parallel=True), plain) == pytest.approx((expected, 0, 0))
    assert number(backward_pass(GPT, group(Plan(tensor=8)), plain).tensor) == pytest.approx(expected)


def test_context_parallelism_passes_keys_and_values_around(plain: Hardware) -> None:
    """Three steps of a quarter of the sequence's 2 x 4 key-value heads of width 64; backward the gradients as well."""
    expected = 3 * (2048 / 4) * 2 * 4 * 64 * 2 / 100e9
    assert exchanges(GROUPED, Plan(context=4), plain) == pytest.approx((0, expected, 0))
    assert number(backward_pass(GROUPED, group(Plan(context=4)), plain).context.hidden) == pytest.approx(2 * expected)


def test_expert_parallelism_costs_two_all_to_alls_a_pass(plain: Hardware) -> None:
    """Each sends 3/4 of two copies of its tokens there and back; with sequence parallelism only its own part of them."""
    expected = 2 * 3 / 4 * 2 * BLOCK / 100e9
    assert exchanges(EXPERTS, Plan(data=4, expert=4), plain) == pytest.approx((0, 0, expected))
    split = exchanges(EXPERTS, Plan(tensor=2, data=4, expert=4, sequence_parallel=True), plain)
    assert split[2] == pytest.approx(expected / 2)


def test_a_group_beyond_the_node_uses_the_slower_link(plain: Hardware) -> None:
    """Sixteen ranks on nodes of eight: 7/8 of the block inside, half of an eighth outside at 10 GB/s."""
    expected = 2 * 2 * (7 / 8 * BLOCK / 100e9 + 1 / 2 * BLOCK / 8 / 10e9)
    assert exchanges(GPT, Plan(tensor=16), plain)[0] == pytest.approx(expected)


def test_energy_of_the_exchanges_counts_the_bytes_each_rank_sends(plain: Hardware) -> None:
    wired = replace(plain, links=(replace(plain.links[0], energy=2.0), plain.links[1]))
    assert number(forward_pass(GPT, group(Plan(tensor=8)), wired).energy) == pytest.approx(2 * 2 * 7 / 8 * BLOCK * 2)
    ring = 3 * (2048 / 4) * 2 * 16 * 64 * 2
    assert number(backward_pass(GPT, group(Plan(context=4)), wired).energy) == pytest.approx(2 * ring * 2)


FORWARD = Pass(
    Cost(10.0, 100.0, 7.0),
    Cost(4.0, 40.0, 3.0),
    2.0,
    Around(5.0, 0.0, 0.0),
    3.0,
    1000.0,
    modules=((ATTENTION_NORM, Cost(1.0, 10.0, 1.0)), (EXPERT_ACTIVATION, Cost(2.0, 20.0, 1.0))),
)
BACKWARD = Pass(Cost(20.0, 200.0, 14.0), Cost(8.0, 80.0, 6.0), 2.0, Around(6.0, 0.0, 0.0), 3.0, 2000.0)
"""Forward the ring of 5 s exceeds the core of 4 s, backward it hides."""


def test_a_pass_hides_the_ring_behind_the_core_only() -> None:
    assert (FORWARD.seconds(), FORWARD.exchanges()) == (10 + 5, 2 + 3)
    assert (BACKWARD.seconds(), BACKWARD.exchanges()) == (20 + 8, 2 + 3)


REPEATED: tuple[tuple[str, float, float], ...] = (
    ("none", 0.0, 0.0),
    ("elements", 3.0, 30.0),
    ("selective", 5.0, 40.0),
    ("selective-elements", 8.0, 70.0),
    ("full", 20.0, 100.0 + 40.0 + 1000.0),
)
"""Seconds and joules."""


@pytest.mark.parametrize(("mode", "again", "energy"), REPEATED)
def test_recomputation_repeats_elements_the_core_or_all_with_its_exchanges(plain: Hardware, mode: str, again: float, energy: float) -> None:
    priced = layer(FORWARD, BACKWARD, number_of(mode), plain)
    assert (priced.forward, priced.backward, priced.recompute) == (20.0, 33.0 + again, again)
    assert priced.energy == 100 + 40 + 1000 + 200 + 80 + 2000 + energy
    assert (priced.arithmetic, priced.tensor, priced.context, priced.expert, priced.launch) == (42.0, 4.0, 1.0, 6.0, 0.0)


@pytest.mark.parametrize(
    ("plan", "mode", "left"),
    [
        (Plan(tensor=4), "full", 1 / 2),
        (Plan(tensor=4, sequence_parallel=True), "full", 3 / 4),
        (Plan(tensor=4), "dense-part", 0.0),
        (Plan(tensor=4, sequence_parallel=True), "dense-part", 1 / 4),
    ],
)
def test_what_stops_early_goes_without_the_last_product_and_the_sum_behind_it(
    arithmetic: Hardware, plan: Plan, mode: str, left: float
) -> None:
    """Of two exchanges a pass, or a gather before each part and a scatter behind it, the last one; nothing where dropout keeps a mask."""

    def again(model: Transformer, hardware: Hardware) -> float:
        one = group(plan)
        return number(layer(forward_pass(model, one, hardware), backward_pass(model, one, hardware), number_of(mode), hardware).recompute)

    quiet = replace(arithmetic, links=(Link(1e30, 0.0), Link(1e30, 0.0)))
    product = 2 * 2048 * 3072 / 4 * 1024 / 100e12
    early = replace(GROUPED, stops_early=True)
    assert again(early, quiet) == pytest.approx(again(GROUPED, quiet) - product, rel=1e-9)
    sent = number(forward_pass(GROUPED, group(plan), arithmetic).tensor)
    assert again(early, arithmetic) - again(early, quiet) == pytest.approx(left * sent)
    assert again(replace(early, dropout=True), arithmetic) == again(replace(GROUPED, dropout=True), arithmetic)


@pytest.mark.parametrize(
    ("model", "columns"), [(GROUPED, 256 + 1024 + 3072), (GPT, 1024 + 1024), (replace(GROUPED, gated=False), 256 + 1024)]
)
def test_every_other_product_is_keys_projection_and_one_of_two_inner_ones(model: Transformer, columns: int, arithmetic: Hardware) -> None:
    """Of q, k, v, o, w1, w3, w2 the second, the fourth and the sixth; with sequence parallelism what goes into them is gathered again."""

    def again(plan: Plan, hardware: Hardware) -> float:
        one = group(plan)
        passes = forward_pass(model, one, hardware), backward_pass(model, one, hardware)
        return number(layer(*passes, number_of("second-products"), hardware).recompute)

    split = Plan(tensor=4, sequence_parallel=True)
    expected, sent = 2 * 2048 * 1024 * columns / 100e12, number(forward_pass(model, group(split), arithmetic).tensor)
    assert again(Plan(), arithmetic) == pytest.approx(expected)
    assert again(Plan(tensor=4), arithmetic) == pytest.approx(expected / 4)
    assert again(split, arithmetic) == pytest.approx(expected / 4 + sent / 2)


@pytest.mark.parametrize(("mode", "kernels"), [("none", 20), ("elements", 22), ("selective", 23), ("full", 30)])
def test_a_layer_is_never_faster_than_its_launches(plain: Hardware, mode: str, kernels: int) -> None:
    """Ten kernels forward, twenty and the repeated ones backward, at 10 s each; exchanges of 5 s follow each pass."""
    slow = replace(plain, efficiency=replace(plain.efficiency, host=10.0))
    priced = layer(FORWARD, BACKWARD, number_of(mode), slow)
    repeated = 5.0 if mode == "full" else 0.0
    assert (priced.forward, priced.backward) == (100.0 + 5.0, 10.0 * kernels + 5.0 + repeated)
    again = {"none": 0.0, "elements": 3.0, "selective": 5.0, "full": 15.0}[mode]
    assert priced.launch == (100 - 15) + (10 * kernels - 28 - again)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("mode", RECOMPUTE)
def test_what_a_layer_spends_adds_up_to_its_two_passes(a100: Hardware, model: Transformer, mode: str) -> None:
    one = group(Plan(tensor=2, context=2, data=4, microbatch=2))
    priced = layer(forward_pass(model, one, a100), backward_pass(model, one, a100), number_of(mode), a100)
    spent = {field.name: number(getattr(priced, field.name)) for field in fields(Layer)}
    uses = ("arithmetic", "recompute", "tensor", "context", "expert", "launch")
    assert sum(spent[use] for use in uses) == pytest.approx(spent["forward"] + spent["backward"], rel=1e-12)


def test_the_embedding_moves_its_rows_and_sums_the_split_vocabulary(plain: Hardware) -> None:
    """Rows read and written forward, gradients read and rows read and written backward, at 1 TB/s; one all-reduce."""
    moved = 5 * BLOCK / 1e12
    assert number(embedding(GPT, group(Plan()), plain).time) == pytest.approx(moved)
    assert number(embedding(GPT, group(Plan(tensor=8)), plain).time) == pytest.approx(moved + 2 * 7 / 8 * BLOCK / 100e9)


def test_a_fused_loss_passes_five_times_over_logits_of_two_bytes(plain: Hardware) -> None:
    """In place of the passes over single precision: 2,048 tokens by 32,000 words on a memory of 1 MB/s."""
    slow, one = replace(plain, dram=Memory(64e9, 1e6), throughput=1e30), group(Plan())
    unfused, fused = (number(head(replace(GPT, logit_bytes=size), one, slow).time) for size in (4.0, 2.0))
    assert unfused - fused == pytest.approx(2048 * 32000 * (4 * slow.efficiency.loss_passes - 5 * 2) / 1e6)


def test_the_head_pads_the_vocabulary_and_passes_over_its_logits(arithmetic: Hardware) -> None:
    """A vocabulary of 1,000 on two ranks is 512 words each; twenty passes over single-precision logits; two sums of a number a token."""
    model, one = replace(GPT, vocabulary=1000), group(Plan(tensor=2))
    product = 3 * 2 * 2048 * 1024 * 512 / 100e12
    exchanged = (2 * 4 * 2048 + BLOCK) / 100e9
    assert number(head(model, one, arithmetic).time) == pytest.approx(product + exchanged)
    slow = replace(arithmetic, throughput=1e30, dram=Memory(1e15, 1e6), links=(Link(1e30, 0.0), Link(1e30, 0.0)))
    operands = 3 * 2 * (2048 * 1024 + 1024 * 512 + 2048 * 512)
    assert number(head(model, one, slow).time) == pytest.approx((operands + 20 * 4 * 2048 * 512) / 1e6)


@pytest.mark.parametrize("model", [GPT, GROUPED, EXPERTS, replace(GPT, lora_rank=16)])
@pytest.mark.parametrize("mode", ["none", "selective"])
def test_gradients_of_weights_that_are_put_off_are_one_product_for_each_matrix(model: Transformer, mode: str, arithmetic: Hardware) -> None:
    """A^T dC: with depth and rows changed for each other, of all that are trained; the rest of the backward pass is what it was."""
    ranks_of = group(Plan())
    whole = layer(forward_pass(model, ranks_of, arithmetic), backward_pass(model, ranks_of, arithmetic), number_of(mode), arithmetic)
    trained = adapters(model, ranks_of) if model.lora_rank else projections(model, ranks_of)
    late = [product_cost(Product(one.depth, one.rows, one.columns, one.count, one.launches), 2.0, arithmetic) for one in trained]
    assert number(whole.weights) == pytest.approx(sum(number(cost.time) for cost in late))
    assert number(whole.inputs) + number(whole.weights) == pytest.approx(number(whole.backward))


def test_kernels_are_launched_for_each_part_of_a_backward_pass(arithmetic: Hardware) -> None:
    """Where the host is the slower one, both parts wait for it: together as long as in one part."""
    slow = replace(arithmetic, efficiency=replace(arithmetic.efficiency, host=1.0))
    back = backward_pass(GPT, group(Plan()), slow)
    found = layer(forward_pass(GPT, group(Plan()), slow), back, 0, slow)
    assert number(found.weights) == 4.0  # four matrices
    assert number(found.inputs) + 4.0 == number(found.backward) == number(back.kernels())


# Casts to 8 and 4 bits, by hand: bytes of each tensor that a product takes, and what stays at 16 bits.

CASTS_WIDE = Transformer("gpt", 4, 1024, 16, 4096, 32000, 2048, 8, biases=False, learned_positions=False)
EIGHT = replace(CASTS_WIDE, precision="fp8")
CASTS_EXPERTS = replace(EIGHT, experts=8, experts_per_token=2)
LATENT = replace(EIGHT, head_size=64, kv_rank=512, query_rank=768, rope_size=32, value_size=64)
VALUES = 2048 * 1024
"""Of the activations between two operators: s h."""


def moved(model: Transformer, plan: Plan, hardware: Hardware) -> tuple[float, float]:
    """Values of s h that casts of a layer read and write forward and backward, in bytes, on a device of one byte a second."""
    slow = replace(hardware, dram=replace(hardware.dram, bandwidth=1.0), vector_throughput=1e30)
    forward, backward = (number(casts(model, group(plan), slow, side).time) / VALUES for side in (False, True))
    return forward, backward


WEIGHTS = 12.0 * EIGHT.hidden / EIGHT.sequence
"""Of a layer, in values of s h."""


@pytest.mark.parametrize(
    ("scaling", "forward", "backward"),
    [
        ("tensorwise", 6 * (1 + 1 + 1 + 4), 6 * (3 + 1 + 4 + 1)),
        ("blocks", 4 * (1 + 1 + 1 + 4), 4 * (3 + 1 + 4 + 1)),
        ("delayed", 1 + 4 + 1 + 4 * 4, 4 * (3 + 1 + 4 + 1)),
        ("rows", 8 * (1 + 1 + 1 + 4) + 3 * WEIGHTS, 8 * (3 + 1 + 4 + 1) + 7 * WEIGHTS + 4 * (1 + 1 + 1 + 4)),
    ],
)
def test_every_input_and_every_gradient_is_cast_once(plain: Hardware, scaling: Scaling, forward: float, backward: float) -> None:
    """Inputs are h wide but for the last, 4 h; gradients are 3 h, h, 4 h and h wide. Under `delayed` two norms cast. By `rows` weights are
    cast for each of their products, and the gradients of inputs are scaled."""
    assert moved(replace(EIGHT, scaling=scaling), Plan(), plain) == pytest.approx((forward, backward))


def test_ranks_cast_their_part_before_it_is_gathered_and_transpose_the_whole_after(plain: Hardware) -> None:
    """With four ranks: 5/4 + 2 bytes for what is gathered, 6 for a quarter of what is split by features."""
    gathered = 5 / 4 + 2
    plan = Plan(tensor=4, sequence_parallel=True)
    assert moved(EIGHT, plan, plain) == pytest.approx(
        (gathered + 6 / 4 + gathered + 6 * 4 / 4, 6 * 3 / 4 + gathered + 6 * 4 / 4 + gathered)
    )


def test_with_scales_of_rows_ranks_gather_16_bits_and_cast_the_whole(plain: Hardware) -> None:
    """Of 17 values of s h 12 are split by features among four ranks, and so are the weights and 5 of 7 scaled gradients."""
    rows, plan = replace(EIGHT, scaling="rows"), Plan(tensor=4, sequence_parallel=True)
    forward, backward = moved(rows, plan, plain)
    assert forward == pytest.approx(8 * (1 + 1 / 4 + 1 + 4 / 4) + 3 * WEIGHTS / 4)
    assert backward == pytest.approx(8 * (3 / 4 + 1 + 4 / 4 + 1) + 7 * WEIGHTS / 4 + 4 * (1 + 1 / 4 + 1 + 4 / 4))
    for direction in (forward_pass, backward_pass):
        assert number(direction(rows, group(plan), plain).tensor) == number(direction(CASTS_WIDE, group(plan), plain).tensor)


def test_frozen_weights_need_one_direction_alone(plain: Hardware) -> None:
    assert moved(replace(EIGHT, lora_rank=8), Plan(), plain) == pytest.approx((5 * (1 + 1 + 1 + 4), 5 * (3 + 1 + 4 + 1)))


@pytest.mark.parametrize("model", [EIGHT, CASTS_EXPERTS, LATENT])
@pytest.mark.parametrize("precision", ["fp8", "fp4"])
@pytest.mark.parametrize("plan", [Plan(), Plan(tensor=4), Plan(tensor=4, sequence_parallel=True)])
@pytest.mark.parametrize("backward", [False, True])
def test_one_more_pass_is_never_shorter_and_none_is_free(
    plain: Hardware, model: Transformer, precision: str, plan: Plan, backward: bool
) -> None:
    each = [
        number(casts(replace(model, precision=precision, scaling=scaling), group(plan), plain, backward).time)
        for scaling in ("delayed", "blocks", "tensorwise")
    ]
    assert 0.0 < each[0] <= each[1] < each[2]


@pytest.mark.parametrize("precision", ["bf16", "fp16", "fp32"])
def test_from_16_bits_on_nothing_is_cast(plain: Hardware, precision: str) -> None:
    model = replace(CASTS_WIDE, precision=precision)
    assert number(casts(model, group(Plan()), plain, backward=False).time) == 0.0
    one, other = (forward_pass(replace(model, scaling=scaling), group(Plan()), plain) for scaling in ("delayed", "tensorwise"))
    assert number(one.work.time) == number(other.work.time)


def test_the_router_stays_at_16_bits(plain: Hardware) -> None:
    one = group(Plan())
    (router,) = [product for name, product in named_projections(CASTS_EXPERTS, one) if name == "router"]
    assert number(cast("router", router, CASTS_EXPERTS, one, plain, backward=False).time) == 0.0
    fast = replace(plain, wide_share=0.5)
    fewer = replace(CASTS_EXPERTS, precision="bf16")
    without = [number(forward_pass(model, one, replace(fast, wide_share=0.25)).work.time) for model in (CASTS_EXPERTS, fewer)]
    beside = [number(forward_pass(model, one, fast).work.time) for model in (CASTS_EXPERTS, fewer)]
    assert without[0] > beside[0]
    assert without[0] - beside[0] == pytest.approx(number(product_cost(router, 2.0, replace(plain, wide_share=0.25)).time) / 2.0, rel=1e-6)


def test_products_of_8_bits_reach_a_share_of_the_rate_of_16(plain: Hardware) -> None:
    product = Product(4096.0, 4096.0, 4096.0)
    half = replace(plain, efficiency=replace(plain.efficiency, eight_bit=0.5), dram=replace(plain.dram, bandwidth=1e30))
    whole = replace(half, efficiency=replace(plain.efficiency, eight_bit=1.0))
    times = [[number(product_cost(product, size, hardware).time) for size in (1.0, 2.0)] for hardware in (half, whole)]
    assert times[0] == pytest.approx([2.0 * times[1][0], times[1][1]])


def test_products_of_one_input_add_up_its_gradients(plain: Hardware) -> None:
    """Three of queries, keys and values, and two where a gate is: read, and among tensor ranks the sums written, before they are scattered;
    alone the norm behind reads one of each anyway."""
    slow = replace(plain, dram=replace(plain.dram, bandwidth=1.0), vector_throughput=1e30)
    for gated, alone, among in ((True, 3, 7), (False, 2, 4)):
        for plan, passes in ((Plan(), alone), (Plan(tensor=4, sequence_parallel=True), among)):
            one, other = (replace(CASTS_WIDE, gated=gated, apart=apart) for apart in (True, False))
            more = [number(element_wise(model, group(plan), slow, backward=True).total().time) for model in (one, other)]
            assert (more[0] - more[1]) / VALUES == pytest.approx(2 * passes, rel=1e-6)
            assert number(forward_pass(one, group(plan), plain).work.time) == number(forward_pass(other, group(plan), plain).work.time)


def test_ranks_gather_casts_and_scatter_sums(plain: Hardware) -> None:
    """Without latencies a layer's exchange of two halves takes three quarters of that of 16 bits, both ways; a sum all of it."""
    split, whole = (group(Plan(tensor=4, sequence_parallel=split)) for split in (True, False))
    for one, share in ((split, 0.75), (whole, 1.0)):
        for direction in (forward_pass, backward_pass):
            narrow, wide = (direction(model, one, plain) for model in (EIGHT, CASTS_WIDE))
            assert number(narrow.tensor) == pytest.approx(share * number(wide.tensor))
            assert number(narrow.energy) == pytest.approx(share * number(wide.energy))


def test_products_keep_casts_and_attention_keeps_its_results() -> None:
    """Of 16 bits a layer keeps 24 s h without scores: a byte less of both norms' results and of the activation's, 4 h wide, and one more of
    what attention gives."""
    kept = [
        number(layer_activations(model, sharding(model, table([Plan()])), np.float64(0.0)))
        for model in (CASTS_WIDE, EIGHT, replace(EIGHT, keeps_casts=False))
    ]
    assert kept[2] == kept[0]
    assert (kept[0] - kept[1]) / VALUES == pytest.approx(1 + 1 + 4 - 1)


@pytest.mark.parametrize("model", [EIGHT, CASTS_EXPERTS, LATENT, replace(CASTS_EXPERTS, precision="fp4", scaling="blocks")])
def test_tables_say_the_same_and_no_better_device_is_slower(plain: Hardware, model: Transformer) -> None:
    """To the last bit, whichever resource grows."""
    plans = table([Plan(data=8), Plan(tensor=4, sequence_parallel=True, data=2), Plan(tensor=2, data=4, tensor_exchange="hidden")])
    device = replace(plain, efficiency=Efficiency(), wide_share=0.5)
    found, directly = price(model, device, CLUSTER, plans), price_directly(model, device, CLUSTER, plans)
    assert np.array_equal(found.step_time, directly.step_time)
    assert np.array_equal(found.memory, directly.memory)
    for better in (
        replace(device, throughput=1.1 * device.throughput),
        replace(device, vector_throughput=1.1 * device.vector_throughput),
        replace(device, dram=replace(device.dram, bandwidth=1.1 * device.dram.bandwidth)),
    ):
        assert np.all(price(model, better, CLUSTER, plans).step_time <= found.step_time)


# A network as operators: together they take as long, weigh as much and compute as a layer and a model do elsewhere.

OPERATORS_MODELS = {
    "gelu": Transformer("gelu", layers=3, hidden=1536, heads=12, ffn=6144, vocabulary=32000, sequence=1024, global_batch=8),
    "gated": Transformer(
        "gated", layers=2, hidden=1024, heads=16, kv_heads=4, ffn=2816, vocabulary=32000, sequence=512, global_batch=8, gated=True,
        biases=False, tied=False, learned_positions=False, dropout=True,
    ),
    "experts": Transformer(
        "experts", layers=2, hidden=1024, heads=16, ffn=2816, vocabulary=32000, sequence=512, global_batch=8, experts=8,
        experts_per_token=2, capacity_factor=1.25, attention="unfused",
    ),
    "latents": Transformer(
        "latents", layers=3, hidden=1024, heads=16, head_size=64, ffn=2816, vocabulary=32000, sequence=512, global_batch=8, gated=True,
        biases=False, tied=False, learned_positions=False, experts=8, experts_per_token=2, expert_ffn=704, shared_experts=2,
        dense_layers=1, query_rank=256, kv_rank=128, rope_size=32, value_size=64,
    ),
    "windows": Transformer(
        "windows", layers=4, hidden=1024, heads=16, kv_heads=4, ffn=2816, vocabulary=32000, sequence=512, global_batch=8, gated=True,
        tied=False, learned_positions=False, window=128, global_layers=2, qk_norm=True, norms=4, sinks=True,
        biases=("queries-keys-values", "projection", "feed-forward", "head"),
    ),
}  # fmt: skip


def alone(microbatch: int) -> Ranks:
    one, members = np.float64(1.0), (np.float64(1.0),) * 2
    return Ranks(one, one, one, np.float64(microbatch), np.float64(0.0), members, members, members)


@pytest.mark.parametrize("name", OPERATORS_MODELS)
def test_the_operators_of_a_layer_take_as_long_as_the_layer(name: str, a100: Hardware) -> None:
    model = OPERATORS_MODELS[name]
    nodes = [node for node in operators(model, a100, 2) if node.name.startswith("layer 2:")]
    second = kind_of_layer(model, 2)
    forward, backward = forward_pass(second, alone(2), a100), backward_pass(second, alone(2), a100)
    assert sum(node.forward for node in nodes) == pytest.approx(float(forward.seconds()), rel=1e-12)
    assert sum(node.backward for node in nodes) == pytest.approx(float(backward.seconds()), rel=1e-12)
    assert (float(forward.exchanges()), float(backward.exchanges())) == (0.0, 0.0)


@pytest.mark.parametrize("name", OPERATORS_MODELS)
def test_the_ends_take_as_long_as_the_model_says(name: str, a100: Hardware) -> None:
    model = OPERATORS_MODELS[name]
    nodes = operators(model, a100, 2)
    for node, cost in ((nodes[0], embedding(model, alone(2), a100)), (nodes[-1], head(model, alone(2), a100))):
        assert node.forward + node.backward == pytest.approx(float(cost.time), rel=1e-12)
        assert node.backward > node.forward > 0.0


@pytest.mark.parametrize("name", OPERATORS_MODELS)
def test_every_weight_belongs_to_an_operator(name: str, a100: Hardware) -> None:
    """A tied head has a copy of the embedding's table, as on the last stage of a pipeline."""
    model = replace(OPERATORS_MODELS[name], tied=False)
    assert sum(node.weights for node in operators(model, a100, 1)) == parameters(model)
    tied = operators(replace(model, tied=True), a100, 1)
    assert sum(node.weights for node in tied) == parameters(model)


def test_a_layer_adds_what_came_in_to_what_comes_out(a100: Hardware) -> None:
    nodes = {node.name: node for node in operators(OPERATORS_MODELS["gelu"], a100, 1)}
    assert nodes["layer 1: norm 1"].after == ("embedding",)
    assert nodes["layer 1: addition 1"].after == ("layer 1: projection", "embedding")
    assert nodes["layer 2: addition 2"].after == ("layer 2: outer product", "layer 2: addition 1")
    assert nodes["head"].after == ("layer 3: addition 2",)
    assert nodes["layer 1: norm 1"].output == 1024 * 1536 * 2.0
    assert nodes["layer 1: queries, keys, values"].output == 3 * 1024 * 1536 * 2.0


def test_layers_as_nodes_have_all_that_their_operators_have(a100: Hardware) -> None:
    whole = operators(OPERATORS_MODELS["experts"], a100, 4)
    nodes = blocks(whole)
    assert [node.name for node in nodes] == ["embedding", "layer 1", "layer 2", "head"]
    assert [node.after for node in nodes] == [(), ("embedding",), ("layer 1",), ("layer 2",)]
    for what in ("forward", "backward", "weights"):
        assert sum(getattr(node, what) for node in nodes) == pytest.approx(sum(getattr(node, what) for node in whole), rel=1e-12)
    assert nodes[1].output == next(node.output for node in whole if node.name == "layer 1: addition 2")


def test_layers_of_a_kind_are_where_the_model_has_them(a100: Hardware) -> None:
    """The first layer dense, all others with experts; every second layer attends to all."""
    names = {node.name for node in operators(OPERATORS_MODELS["latents"], a100, 1)}
    assert [f"layer {number}: router" in names for number in (1, 2, 3)] == [False, True, True]
    long = replace(OPERATORS_MODELS["windows"], sequence=8192)
    cores = {node.name: node.forward for node in operators(long, a100, 1) if node.name.endswith(": attention")}
    near, far = cores["layer 1: attention"], cores["layer 2: attention"]
    assert list(cores.values()) == [near, far, near, far]
    assert near < far


def test_parallel_blocks_both_begin_at_the_layers_input(a100: Hardware) -> None:
    model = replace(OPERATORS_MODELS["gelu"], parallel_blocks=True, norms=1)
    nodes = {node.name: node for node in operators(model, a100, 1)}
    assert nodes["layer 1: norm 2"].after == ("embedding",)
    assert nodes["layer 1: addition 2"].after == ("layer 1: outer product", "layer 1: addition 1")


# Operators split over a mesh: by hand, and against the full model's own layer.

MODEL = Transformer(
    name="small", layers=2, hidden=2048, heads=16, ffn=8192, vocabulary=50257, sequence=1024, global_batch=8, kv_heads=8, gated=True
)


def test_axes_lie_on_the_levels_of_the_network() -> None:
    outer, inner = mesh_axes((4, 8), (8, 32))
    assert (outer.members, inner.members) == ((1.0, 4.0), (8.0, 1.0))


def test_what_moves_is_what_a_collective_moves(a100: Hardware) -> None:
    axes, links, size = mesh_axes((4, 8), (8, 32)), a100.links, 1e8
    move = partial(resharding(axes, links), size)
    assert move(before=("whole", "whole"), after=("batch", "feature")) == 0.0
    assert move(before=("batch", "sequence"), after=("batch", "sequence")) == 0.0
    assert move(before=("batch", "sequence"), after=("batch", "whole")) == exchange_time(all_gather(size / 4, (8.0, 1.0)), links)
    assert move(before=("batch", "partial"), after=("batch", "whole")) == all_reduce_time(size / 4, (8.0, 1.0), links)
    assert move(before=("whole", "sequence"), after=("whole", "feature")) == exchange_time(all_to_all(size / 8, (8.0, 1.0)), links)
    assert move(before=("partial", "partial"), after=("whole", "whole")) == all_reduce_time(size, (8.0, 4.0), links)
    # the slice comes first, so that an eighth is gathered
    assert move(before=("batch", "whole"), after=("whole", "feature")) == exchange_time(all_gather(size / 8, (1.0, 4.0)), links)


@pytest.mark.parametrize("scattered", [False, True])
def test_megatrons_layer_costs_what_the_full_model_says(a100: Hardware, scattered: bool) -> None:
    """Four operators with weights split by columns and by rows are the tensor-parallel layer of `crossflow.layer`."""
    axes, found = mesh_axes((8,), (8, 8)), kinds(MODEL)
    reduced, narrow = ("scattered", "sequence") if scattered else ("summed", "whole")
    way: dict[str, Way] = {
        "norm": (narrow,),
        "addition": (narrow,),
        "queries, keys, values": ("columns",),
        "attention": ("feature",),
        "projection": (reduced,),
        "inner product": ("columns",),
        "activation": ("feature",),
        "outer product": (reduced,),
    }
    steps = [(name, kind, before) for name, kind, before in network(MODEL) if name.startswith("layer 2:")]
    kind_of = {name: kind for name, kind, _ in network(MODEL)}
    move = resharding(axes, a100.links)
    time = sum(operator_times(found[kind], (way[kind],), MODEL, a100, axes, move)[0] for _, kind, _ in steps)
    for _, kind, before in steps:
        for one in before:
            time += edge_time(found[kind_of[one]].output, way[kind_of[one]], way[kind], move)
    one_rank = (np.float64(1.0), np.float64(1.0))
    eight = tuple(np.float64(count) for count in axes[0].members)
    ranks = Ranks(np.float64(8), np.float64(1), np.float64(1), np.float64(8), np.float64(scattered), eight, one_rank, one_rank)
    sides = forward_pass(MODEL, ranks, a100), backward_pass(MODEL, ranks, a100)
    whole = sum(float(side.seconds() + side.exchanges()) for side in sides)
    assert time == pytest.approx(whole, rel=1e-9)


def test_sizes_are_multiples_of_their_ranks() -> None:
    found, axes = kinds(MODEL), mesh_axes((3, 16), (48,))
    assert all("batch" not in way for way in ways(found["norm"], MODEL, axes))
    assert ("whole", "feature") not in ways(found["attention"], MODEL, axes)  # eight groups of heads
    assert ("whole", "columns") in ways(found["head"], MODEL, axes)  # the vocabulary is padded


def test_a_rank_alone_works_as_long_as_all_without_a_mesh(a100: Hardware) -> None:
    axes = mesh_axes((1,), (1, 1))
    for kind in kinds(replace(MODEL, global_batch=1)).values():
        times = operator_times(kind, ways(kind, MODEL, axes), MODEL, a100, axes, resharding(axes, a100.links))
        assert len({*times}) == 1, kind.name
