"""Casts to 8 and 4 bits, by hand: bytes of each tensor that a product takes, and what stays at 16 bits."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.crossflow.hardware import Cluster, Efficiency, Hardware
from crossopt.crossflow.kernels.layer_kernels import cast, casts, element_wise
from crossopt.crossflow.layer import backward_pass, forward_pass
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.memory import layer_activations
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.projections import named_projections
from crossopt.crossflow.ranks import Ranks
from crossopt.crossflow.roofline import Product, product_cost
from crossopt.crossflow.transformer import price, price_directly, ranks, sharding
from crossopt.crossflow.workload import Scaling, Transformer

CLUSTER = Cluster(64, (8, 64))
WIDE = Transformer("gpt", 4, 1024, 16, 4096, 32000, 2048, 8, biases=False, learned_positions=False)
EIGHT = replace(WIDE, precision="fp8")
EXPERTS = replace(EIGHT, experts=8, experts_per_token=2)
LATENT = replace(EIGHT, head_size=64, kv_rank=512, query_rank=768, rope_size=32, value_size=64)
VALUES = 2048 * 1024
"""Of the activations between two operators: s h."""


def group(plan: Plan) -> Ranks:
    columns = table([plan])
    return ranks(columns, lay_out(columns, CLUSTER))


def number(value: object) -> float:
    return float(np.asarray(value).item())


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
        assert number(direction(rows, group(plan), plain).tensor) == number(direction(WIDE, group(plan), plain).tensor)


def test_frozen_weights_need_one_direction_alone(plain: Hardware) -> None:
    assert moved(replace(EIGHT, lora_rank=8), Plan(), plain) == pytest.approx((5 * (1 + 1 + 1 + 4), 5 * (3 + 1 + 4 + 1)))


@pytest.mark.parametrize("model", [EIGHT, EXPERTS, LATENT])
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
    model = replace(WIDE, precision=precision)
    assert number(casts(model, group(Plan()), plain, backward=False).time) == 0.0
    one, other = (forward_pass(replace(model, scaling=scaling), group(Plan()), plain) for scaling in ("delayed", "tensorwise"))
    assert number(one.work.time) == number(other.work.time)


def test_the_router_stays_at_16_bits(plain: Hardware) -> None:
    one = group(Plan())
    (router,) = [product for name, product in named_projections(EXPERTS, one) if name == "router"]
    assert number(cast("router", router, EXPERTS, one, plain, backward=False).time) == 0.0
    fast = replace(plain, wide_share=0.5)
    fewer = replace(EXPERTS, precision="bf16")
    without = [number(forward_pass(model, one, replace(fast, wide_share=0.25)).work.time) for model in (EXPERTS, fewer)]
    beside = [number(forward_pass(model, one, fast).work.time) for model in (EXPERTS, fewer)]
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
            one, other = (replace(WIDE, gated=gated, apart=apart) for apart in (True, False))
            more = [number(element_wise(model, group(plan), slow, backward=True).total().time) for model in (one, other)]
            assert (more[0] - more[1]) / VALUES == pytest.approx(2 * passes, rel=1e-6)
            assert number(forward_pass(one, group(plan), plain).work.time) == number(forward_pass(other, group(plan), plain).work.time)


def test_ranks_gather_casts_and_scatter_sums(plain: Hardware) -> None:
    """Without latencies a layer's exchange of two halves takes three quarters of that of 16 bits, both ways; a sum all of it."""
    split, whole = (group(Plan(tensor=4, sequence_parallel=split)) for split in (True, False))
    for one, share in ((split, 0.75), (whole, 1.0)):
        for direction in (forward_pass, backward_pass):
            narrow, wide = (direction(model, one, plain) for model in (EIGHT, WIDE))
            assert number(narrow.tensor) == pytest.approx(share * number(wide.tensor))
            assert number(narrow.energy) == pytest.approx(share * number(wide.energy))


def test_products_keep_casts_and_attention_keeps_its_results() -> None:
    """Of 16 bits a layer keeps 24 s h without scores: a byte less of both norms' results and of the activation's, 4 h wide, and one more of
    what attention gives."""
    kept = [
        number(layer_activations(model, sharding(model, table([Plan()])), np.float64(0.0)))
        for model in (WIDE, EIGHT, replace(EIGHT, keeps_casts=False))
    ]
    assert kept[2] == kept[0]
    assert (kept[0] - kept[1]) / VALUES == pytest.approx(1 + 1 + 4 - 1)


@pytest.mark.parametrize("model", [EIGHT, EXPERTS, LATENT, replace(EXPERTS, precision="fp4", scaling="blocks")])
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
