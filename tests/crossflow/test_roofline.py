"""One operator on one device: traffic against a search over tiles, waves and limits by hand, and what bounds rest on."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow import roofline
from crossopt.crossflow.arrays import Array
from crossopt.crossflow.hardware import Efficiency, Hardware, Memory
from crossopt.crossflow.roofline import (
    NOTHING,
    Cost,
    Product,
    fused_attention_cost,
    product_cost,
    product_costs,
    reloads,
    stream_cost,
    tiled_time,
)
from crossopt.instances.catalogue.registry import build_device, device
from tests.conftest import scaled
from tests.extent import examples
from tests.paths import reference

SIDES = st.integers(1, 20_000)
PRODUCTS = st.builds(lambda rows, depth, columns: Product(float(rows), float(depth), float(columns)), SIDES, SIDES, SIDES)
ROOMS = st.floats(1.0, 1e9)


def least_by_search(product: Product, room: float) -> float:
    """The least traffic over a fine grid of tiles of the operand that stays, for each of the three operands."""
    rows, depth, columns = (float(side) for side in (product.rows, product.depth, product.columns))
    first, second, result = rows * depth, depth * columns, rows * columns
    patterns = (
        (columns, rows, lambda n, m: first * columns / n + second * rows / m + result),
        (columns, depth, lambda n, k: first * columns / n + second + result * (2.0 * depth / k - 1.0)),
        (rows, depth, lambda m, k: first + second * rows / m + result * (2.0 * depth / k - 1.0)),
    )
    return min(float(traffic(*_tiles(width, height, room)).min()) for width, height, traffic in patterns)


def _tiles(width: float, height: float, room: float) -> tuple[Array, Array]:
    """Widths from the narrowest sensible to the widest, each as high as the room lets it be."""
    widths = np.geomspace(min(width, room / height), width, 20_001)
    return widths, np.minimum(height, room / widths)


@pytest.mark.parametrize("different", [1, 5, 100, 200])
def test_memories_of_equal_size_have_the_traffic_of_each(different: int) -> None:
    rooms = np.random.default_rng(different).choice(np.geomspace(1e2, 1e8, different), 200)
    products = Product(np.array([[100.0], [3000.0]]), 512.0, np.array([[77.0], [4096.0]]))
    together = reloads(products, rooms)
    assert together.shape == (2, 200)  # type: ignore[union-attr]
    assert np.array_equal(together, np.hstack([reloads(products, rooms[[place]]) for place in range(200)]))
    assert reloads(Product(100.0, 512.0, 77.0), rooms).tolist() == [reloads(Product(100.0, 512.0, 77.0), float(room)) for room in rooms]  # type: ignore[union-attr]


@examples(200)
@given(PRODUCTS, ROOMS)
def test_traffic_is_the_least_over_all_tiles(product: Product, room: float) -> None:
    """The closed form is an optimum over real tile sides, so a fine grid comes close to it and never below."""
    found = float(reloads(product, room))
    searched = least_by_search(product, room)
    assert found <= searched * (1.0 + 1e-9)
    assert found == pytest.approx(searched, rel=1e-4)


@given(PRODUCTS, ROOMS)
def test_traffic_is_never_less_than_every_operand_once(product: Product, room: float) -> None:
    rows, depth, columns = product.rows, product.depth, product.columns
    once = rows * depth + depth * columns + rows * columns
    assert float(reloads(product, room)) >= once * (1.0 - 1e-12)
    smallest = min(rows * depth, depth * columns, rows * columns)
    if room >= smallest:
        assert float(reloads(product, room)) == pytest.approx(once, rel=1e-12)


@examples(200)
@given(PRODUCTS, ROOMS, st.floats(1.0, 2.0) | st.just(1.0 + 2.0**-50))
def test_more_room_never_means_more_traffic(product: Product, room: float, factor: float) -> None:
    """As computed, without tolerance, even when the room grows by the last few bits only."""
    assert reloads(product, room * factor) <= reloads(product, room)


def test_traffic_of_square_tiles_by_hand() -> None:
    """A tile of 10 x 10 of the 100 x 100 result: both operands of 100 x 100 are read ten times."""
    assert reloads(Product(100.0, 100.0, 100.0), 100.0) == 2 * 10 * 10_000 + 10_000


def test_partial_sums_are_read_back_once_less_than_written() -> None:
    """A room for 270 of the 300 rows of B: A and B cross once, C is written 300/270 times and read back one time less."""
    assert reloads(Product(10_000.0, 300.0, 100.0), 27_000.0) == pytest.approx(3e6 + 3e4 + 1e6 * (2 * 300 / 270 - 1))


@pytest.mark.parametrize(
    ("rows", "columns", "work"),
    [
        (512.0, 512.0, 2 * 4 * 256 * 128 * 2),
        (512.0, 640.0, 5 * 4 * 128 * 128 * 2 / 0.97),
        (64.0, 64.0, 1 * 4 * 64 * 64 * 2 / 0.76),
        (65.0, 256.0, 1 * 4 * 128 * 64 * 2 / 0.88),
    ],
)
def test_tiles_are_dealt_to_bundles_in_whole_waves(plain: Hardware, rows: float, columns: float, work: float) -> None:
    """Four bundles: 8 tiles of 256 x 128 are two waves; 10 would be three, but 20 of 128 x 128 are five shorter ones;
    one small tile keeps all four busy as long as one."""
    four = replace(plain, bundles=4.0)
    assert tiled_time(Product(rows, 32.0, columns), four) == pytest.approx(work * 32 / 100e12)


def test_the_tiles_of_a_batch_share_the_waves(plain: Hardware) -> None:
    """Six products of one tile each on four bundles take two waves, not six."""
    four = replace(plain, bundles=4.0)
    assert tiled_time(Product(64.0, 32.0, 64.0, 6.0), four) == 2 * tiled_time(Product(64.0, 32.0, 64.0), four)


@examples(200)
@given(PRODUCTS, st.integers(1, 64), st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_no_number_of_bundles_is_faster_than_an_open_one(product: Product, count: int, least: int, seed: int) -> None:
    """Whole waves need not fall when bundles grow; the bound for "at least so many" holds for each, compared without tolerance."""
    product = replace(product, count=float(count))
    hardware = build_device(device("a100-80g"), "a100-80g", "bf16", 2)
    bundles = least + np.random.default_rng(seed).integers(0, 1000, 50).astype(np.float64)
    bundles[0] = least
    bound = tiled_time(product, replace(hardware, bundles=float(least), open_bundles=1.0))
    assert np.all(tiled_time(product, replace(hardware, bundles=bundles)) >= bound)


def test_an_open_number_of_bundles_needs_a_place_for_each_tile_and_bundle_by_hand(plain: Hardware) -> None:
    """Five tiles of one size only: five places on at least four bundles, eight on four, nine on at least nine."""
    five = Product(5.0 * 256.0, 32.0, 128.0)

    def places(bundles: float, open_bundles: float, monkeypatch: pytest.MonkeyPatch) -> float:
        monkeypatch.setattr(roofline, "TILES", ((256.0, 128.0, 1.0),))
        seconds = tiled_time(five, replace(plain, bundles=bundles, open_bundles=open_bundles))
        return float(seconds * 100e12 / (256.0 * 128.0 * 2.0 * 32.0))

    with pytest.MonkeyPatch.context() as patch:
        assert [places(4.0, 1.0, patch), places(4.0, 0.0, patch), places(9.0, 1.0, patch)] == pytest.approx([5.0, 8.0, 9.0])


def test_arithmetic_is_affine_in_the_padded_depth(plain: Hardware) -> None:
    """(depth + accumulation) steps, the depth in whole multiples of 32."""
    lossy = replace(plain, efficiency=replace(plain.efficiency, accumulation=192.0, matrix=0.5))
    unit = 256 * 128 * 2 / (100e12 * 0.5)
    for depth, steps in ((1.0, 32 + 192), (32.0, 32 + 192), (33.0, 64 + 192), (4096.0, 4096 + 192)):
        assert tiled_time(Product(256.0, depth, 128.0), lossy) == pytest.approx(unit * steps)


def test_rows_that_cross_cache_lines_cost_by_how_many_pieces_do_so(plain: Hardware) -> None:
    """Both sides are 512 or 1024 less nothing, 32, 16, 8, 4, 2 or 1, which fill as many tiles; at 0.5 multiples of 8 take twice as long."""
    lossy = replace(plain, bundles=1.0, efficiency=replace(plain.efficiency, unaligned=0.5))
    full = Product(256.0, 512.0, 1024.0)
    wanted = {0.0: 1.0, 32.0: 1 + 4 / 7, 16.0: 1 + 6 / 7, 8.0: 2.0, 4.0: 2 + 1 / 3, 2.0: 2 + 2 / 3, 1.0: 3.0}
    for less, factor in wanted.items():
        for one in (replace(full, columns=1024.0 - less), replace(full, depth=512.0 - less % 32.0, columns=1024.0 - less)):
            assert tiled_time(one, lossy) == pytest.approx(factor * tiled_time(full, plain))
    sides = 1024.0 - np.array([*wanted])[:, None]
    together = tiled_time(Product(256.0, 512.0, sides), lossy)
    assert together.ravel().tolist() == [tiled_time(Product(256.0, 512.0, float(side)), lossy) for side in sides.ravel()]


def test_each_resource_can_set_the_pace_of_a_product(plain: Hardware) -> None:
    """1024^3 with two-byte values: 2^31 FLOP, and 6 MiB through each memory, as the operands fit everywhere but in the registers."""
    roomy = Memory(1e12, 1e15)
    wide = replace(plain, dram=roomy, l2=roomy, l1=roomy, registers=roomy)
    product, size = Product(1024.0, 1024.0, 1024.0), 3 * 2 * 2.0**20
    assert product_cost(product, 2.0, wide).time == 2.0**31 / 100e12
    for level in ("dram", "l2", "l1"):
        slow = replace(wide, **{level: Memory(1e12, 1e9)})  # type: ignore[arg-type]
        assert product_cost(product, 2.0, slow).time == pytest.approx(size / 1e9)
    slow = replace(wide, registers=Memory(1e12, 1e9), register_traffic=0.5)
    assert product_cost(product, 2.0, slow).time == pytest.approx(2.0**31 * 0.5 / 1e9)


def test_a_tile_fills_the_resident_share_of_one_bundles_memory(plain: Hardware) -> None:
    """L1 of 160 kB on 4 bundles: 40 kB each, of which half or 10,000 values stay; 400 x 400 is 16 such tiles of the result."""
    device = replace(plain, bundles=4.0, l1=Memory(160e3, 1e15), l2=Memory(1e12, 1e6), efficiency=replace(plain.efficiency, resident=0.5))
    assert product_cost(Product(400.0, 400.0, 400.0), 2.0, device).time == pytest.approx(2 * (2 * 4 * 160_000 + 160_000) / 1e6)


def test_a_tile_is_no_larger_than_the_one_whose_sums_are_kept(plain: Hardware) -> None:
    """As above, but of 40 x 40 values at the most: 400 x 400 is 100 such tiles."""
    memories = {"l1": Memory(160e3, 1e15), "l2": Memory(1e12, 1e6)}
    device = replace(plain, bundles=4.0, tile=1600.0, efficiency=replace(plain.efficiency, resident=0.5), **memories)  # type: ignore[arg-type]
    assert product_cost(Product(400.0, 400.0, 400.0), 2.0, device).time == pytest.approx(2 * (2 * 10 * 160_000 + 160_000) / 1e6)


def test_l1_and_registers_must_feed_the_arithmetic_while_it_runs(plain: Hardware) -> None:
    """Where half of the peak is reached, a level that feeds half of it is still too slow by half: the arithmetic waits only for itself."""
    roomy, product = Memory(1e12, 1e15), Product(1024.0, 1024.0, 1024.0)
    wide = replace(plain, dram=roomy, l2=roomy, l1=roomy, registers=roomy, efficiency=replace(plain.efficiency, matrix=0.5))
    whole, half = Memory(1e12, 100e12 * 0.03), Memory(1e12, 50e12 * 0.03)
    assert product_cost(product, 2.0, replace(wide, l1_traffic=0.03, l1=whole)).time == pytest.approx(2.0**31 / 50e12)
    assert product_cost(product, 2.0, replace(wide, l1_traffic=0.03, l1=half)).time == pytest.approx(2.0**31 / 25e12)
    fed = replace(wide, l1_traffic=0.03, register_traffic=0.03)
    assert product_cost(product, 2.0, replace(fed, registers=half)).time == pytest.approx(2.0**31 / 25e12)
    assert product_cost(product, 2.0, replace(wide, register_traffic=0.03, registers=half)).time == pytest.approx(2.0**31 / 50e12)


def test_attention_moves_what_its_tiles_read_through_l1(plain: Hardware) -> None:
    device = replace(plain, l1_traffic=0.25, l1=Memory(1e12, 1e12), efficiency=replace(plain.efficiency, attention=0.5))
    assert fused_attention_cost(1e12, 1.0, device).time == pytest.approx(0.25 / 0.5)


def test_each_product_of_a_batch_moves_operands_of_its_own(plain: Hardware) -> None:
    """Folding the batch into the rows would read the second operand once only."""
    slow = replace(plain, dram=Memory(64e9, 1e6))
    assert product_cost(Product(64.0, 64.0, 64.0, 12.0), 2.0, slow).time == pytest.approx(12 * 3 * 4096 * 2 / 1e6)


def test_a_stream_pays_for_its_bytes_its_start_and_its_kernels(plain: Hardware) -> None:
    lossy = replace(plain, efficiency=replace(plain.efficiency, stream=0.8, half_stream=4e6, kernel=3e-6))
    assert stream_cost(1e9, 0.0, lossy, 2.0).time == pytest.approx((1e9 + 2 * 4e6) / 0.8e12 + 2 * 3e-6)
    assert stream_cost(0.0, 0.0, lossy).time == 3e-6
    assert stream_cost(1.0, 1e12, plain).time == 1e12 / 10e12


def test_fused_attention_computes_at_its_own_rate(plain: Hardware) -> None:
    half = replace(plain, efficiency=replace(plain.efficiency, attention=0.5))
    assert fused_attention_cost(1e12, 1.0, half).time == 1e12 / 50e12
    assert fused_attention_cost(1.0, 1e9, half).time == 1e9 / 1e12


def test_energy_counts_every_flop_and_every_byte_of_every_level(plain: Hardware) -> None:
    device = replace(
        plain,
        energy_per_flop=2.0,
        register_traffic=0.5,
        dram=replace(plain.dram, energy=3.0),
        l2=replace(plain.l2, energy=5.0),
        l1=replace(plain.l1, energy=7.0),
        registers=replace(plain.registers, energy=11.0),
    )
    assert stream_cost(100.0, 10.0, device).energy == 10 * 2 + 100 * (3 + 5 + 7 + 11)
    assert fused_attention_cost(10.0, 100.0, device).energy == 10 * 2 + 100 * (3 + 5 + 7) + 5 * 11
    assert product_cost(Product(4.0, 4.0, 4.0), 1.0, device).energy == 128 * 2 + 48 * (3 + 5 + 7) + 64 * 11


def test_costs_add_up() -> None:
    assert Cost(1.0, 2.0, 3.0) + Cost(10.0, 20.0) + NOTHING == Cost(11.0, 22.0, 4.0)
    assert Cost(1.0, 2.0, 3.0).times(2.0) == Cost(2.0, 4.0, 6.0)


@given(PRODUCTS, st.sampled_from(["throughput", "dram.bandwidth", "l2.capacity", "l1.capacity", "registers.capacity"]))
def test_many_devices_at_once_give_the_digits_of_each_alone(product: Product, resource: str) -> None:
    lossy = Hardware(
        "lossy",
        3e14,
        2e13,
        108.0,
        Memory(8e10, 2e12),
        Memory(4e7, 5e12),
        Memory(2e7, 2e13),
        Memory(2.7e7, 1.2e14),
        (),
        efficiency=Efficiency(),
    )
    factors = np.array([0.3, 1.0, 1.7])
    together = product_cost(product, 2.0, scaled(lossy, resource, factors))
    for place, factor in enumerate(factors.tolist()):
        alone = product_cost(product, 2.0, scaled(lossy, resource, factor))
        assert np.broadcast_to(together.time, 3)[place] == alone.time
        assert np.broadcast_to(together.energy, 3)[place] == alone.energy


def test_products_together_cost_what_each_costs_alone(plain: Hardware) -> None:
    """In columns over many plans with equal ones among them, on many devices, and as plain numbers; to the last bit."""
    random = np.random.default_rng(0)
    sides = random.choice([1.0, 77.0, 128.0, 3000.0], (3, 3, 40, 1))
    devices = scaled(plain, "throughput", random.uniform(0.5, 2.0, 50))
    columns = [Product(*side, count) for side, count in zip(sides, (1.0, sides[0, 0], 4.0), strict=True)]
    numbers = [Product(*side[:, 0, 0].tolist()) for side in sides]
    for products, shape in ((columns, (40, 50)), (numbers, (50,))):
        for product, cost in zip(products, product_costs(products, 2.0, devices), strict=True):
            alone = product_cost(product, 2.0, devices)
            assert cost.kernels == alone.kernels
            for found, expected in ((cost.time, alone.time), (cost.energy, alone.energy)):
                assert np.array_equal(np.broadcast_to(found, shape), np.broadcast_to(expected, shape))


def test_attention_and_head_of_an_eight_bit_run_stay_at_sixteen_bits(plain: Hardware) -> None:
    """At half the rate on 16 bits, a product of 16-bit operands and attention take twice as long, an 8-bit product does not."""
    halved, product = replace(plain, wide_share=0.5), Product(1024.0, 1024.0, 1024.0)
    assert product_cost(product, 2.0, halved).time == 2.0 * product_cost(product, 2.0, plain).time
    assert product_cost(product, 1.0, halved).time == product_cost(product, 1.0, plain).time
    assert fused_attention_cost(1e12, 0.0, halved).time == 2.0 * fused_attention_cost(1e12, 0.0, plain).time


def test_products_of_experts_have_a_last_tile_that_is_half_full_in_the_mean(plain: Hardware) -> None:
    """Of 64 experts with 512 tokens each: 4 1/2 tiles of 128 x 128 in place of 4, of which 10 go side by side, and at least one of few
    tokens; gradients of weights add the same tokens up."""
    device = replace(plain, bundles=1)
    for rows, tiles in ((512.0, 4.5), (500.0, 500 / 128 + 0.5), (10.0, 1.0)):
        monotone = [tiled_time(Product(rows + more, 512.0, 1280.0, 64.0, by_chance=1.0), device) for more in (0.0, 1.0, 100.0)]
        assert sorted(map(float, monotone)) == [float(one) for one in monotone]
        most = 64 * tiles * 10 * 128 * 128 * 2 * 512 / 0.97 / (device.throughput * device.efficiency.matrix)
        assert float(monotone[0]) <= most * (1 + 1e-12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(roofline, "TILES", ((128.0, 128.0, 1.0),))
        chance, equal = (tiled_time(Product(512.0, 512.0, 1280.0, 64.0, by_chance=one), device) for one in (1.0, 0.0))
        assert float(chance) == pytest.approx(float(equal) * 4.5 / 4)
        few = tiled_time(Product(10.0, 512.0, 1280.0, 64.0, by_chance=1.0), device)
        assert float(few) == pytest.approx(float(equal) / 4)


def test_experts_launched_one_by_one_take_as_long_as_their_launches(plain: Hardware) -> None:
    """256 of 5 us, where their products are shorter; a product alone launches once, and the host's time for the call is as it was."""
    device = replace(plain, efficiency=replace(plain.efficiency, launch=5e-6, kernel=1e-6))
    for rows in (1.0, 1e6):
        whole, apart = (product_cost(Product(rows, 512.0, 512.0, 256.0, one), 2.0, device) for one in (1.0, 256.0))
        assert float(apart.time) == max(float(whole.time), 256 * 5e-6)
        assert (apart.kernels, apart.energy) == (1.0, whole.energy)
    columns = np.full((2, 1), 10.0)
    [one] = product_costs([Product(columns, 512.0 * columns / 10, columns * 50, columns, columns, columns / 10)], 2.0, device)
    assert np.asarray(one.time).ravel() == pytest.approx(
        [float(product_cost(Product(10.0, 512.0, 500.0, 10.0, 10.0, 1.0), 2.0, device).time)] * 2
    )


MEASURED = "kernels/gemm_small.csv"


@pytest.mark.data
@pytest.mark.parametrize(("name", "gpu", "error"), [("a100-80g", "A100", 0.25), ("h100-sxm", "H100", 0.15), ("b200", "B200", 0.16)])
def test_large_products_follow_measured_kernels_which_no_size_of_l2_hastens(name: str, gpu: str, error: float) -> None:
    """Of ai-dynamo/aiconfigurator, in 16 bits and alone, so without a gap to the next kernel. Kernels lose nothing where their operands are
    many times the L2, and the model, too, prices them within a hundredth the same with a sixteenth of it."""
    built = build_device(device(name), name, "bf16", 2)
    alone = replace(built, efficiency=replace(built.efficiency, kernel=0.0))
    small = replace(alone, l2=replace(alone.l2, capacity=alone.l2.capacity / 16.0))
    with reference(MEASURED).open() as file:
        rows = [row for row in csv.DictReader(file) if row["gpu"] == gpu and row["dtype"] == "bfloat16" and int(row["m"]) >= 128]
    m, n, k, seconds = (np.array([float(row[name]) for row in rows]) for name in ("m", "n", "k", "time_us"))
    products, seconds = Product(m[:, None], k[:, None], n[:, None]), seconds * 1e-6
    priced, with_less = (np.asarray(product_cost(products, 2.0, hardware).time)[:, 0] for hardware in (alone, small))
    large, held = products.flops[:, 0] >= 1e10, 2.0 * (m * n + n * k + m * k) / built.l2.capacity
    assert np.mean(np.abs(priced / seconds - 1.0)[large]) < error
    drawn = 2.0 * np.asarray(reloads(products, alone.efficiency.resident / 2.0 * alone.l1.capacity / alone.bundles))[:, 0] / seconds
    assert np.max(drawn[large]) < 1.05 * built.l2.bandwidth, "no kernel draws more than the L2 gives"
    assert np.mean((with_less / priced)[large]) < 1.01
    rate, wide = products.flops[:, 0] / seconds / built.throughput, np.minimum(np.minimum(m, n), k) >= 1024
    assert np.mean(rate[large & wide & (held > 3.0)]) > 0.98 * np.mean(rate[large & wide & (held > 1.0) & (held <= 3.0)])
