"""Distributed matrix products, mesh links and kernels alone: worked by hand, against the public DeepFlow code, and by their laws."""

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.bill import total
from crossopt.crossflow.hardware import Cluster, Efficiency, Hardware, Link, Memory
from crossopt.crossflow.kernels.distributed_product import LinkLoads, Mesh, bill, grid, link_loads, placement, price
from crossopt.crossflow.kernels.fitted import (
    FORMATS,
    AttentionFormat,
    CollectiveCall,
    CollectiveConstants,
    ContextCall,
    ContextConstants,
    GenerationCall,
    GenerationConstants,
    ProductCall,
    ProductConstants,
    collective_time,
    context_time,
    generation_time,
    product_time,
)
from crossopt.crossflow.kernels.kernel_plan import KernelPlan, broken_rules
from crossopt.crossflow.workload import Gemm, Lstm
from crossopt.instances.catalogue.registry import build_device, device
from tests.crossflow.strategies import kernel_plans
from tests.paths import reference

# One distributed matrix product: worked by hand, against the public DeepFlow code's own results, and by its laws.

RUNS = "crossflow/deepflow_runs.csv"
GIB, MIB = 2.0**30, 2.0**20
ENDLESS = 1.0e30

PRODUCT = Gemm("product", rows=512, depth=512, columns=1024)
NO_LOSSES = Efficiency(matrix=1.0, accumulation=0.0, stream=1.0, half_stream=0.0, kernel=0.0, host=0.0, step=0.0)


def arithmetic_only(throughput: float, bandwidth: float) -> Hardware:
    """One bundle (no waves) whose memories are never in the way."""
    memory = Memory(ENDLESS, ENDLESS)
    links = (Link(bandwidth, latency=1.0e-6, setup=1.0e-5, energy=2.0e-12),)
    return Hardware("ideal", throughput, ENDLESS, 1.0, memory, memory, memory, memory, links, energy_per_flop=1.0e-12, efficiency=NO_LOSSES)


def times(plan: KernelPlan) -> dict[str, float]:
    one = bill(PRODUCT, arithmetic_only(1.0e12, 1.0e9), Cluster(plan.devices, (plan.devices,)), plan)
    return {name: float(seconds) for name, seconds in one.time}


def test_rows_need_no_exchange() -> None:
    spent = times(KernelPlan(rows=2))
    assert spent["matrix products"] == pytest.approx(2 * 256 * 512 * 1024 / 1e12)
    assert spent["exchange"] == 0.0


def test_columns_gather_the_rows_of_the_result() -> None:
    """4 columns: 3/4 of 256 x 1024 two-byte values in 3 steps after one start."""
    spent = times(KernelPlan(rows=2, columns=4))
    assert spent["matrix products"] == pytest.approx(2 * 256 * 512 * 256 / 1e12)
    assert spent["exchange"] == pytest.approx(1.0e-5 + 3 * 1.0e-6 + 0.75 * 2 * 256 * 1024 / 1e9)


def test_an_inner_split_scatters_the_sum_of_the_whole_result() -> None:
    spent = times(KernelPlan("inner", 4))
    assert spent["matrix products"] == pytest.approx(2 * 512 * 128 * 1024 / 1e12)
    assert spent["exchange"] == pytest.approx(1.0e-5 + 3 * 1.0e-6 + 0.75 * 2 * 512 * 1024 / 1e9)


def test_memory_is_that_of_the_parts() -> None:
    sizes = dict(bill(PRODUCT, arithmetic_only(1e12, 1e9), Cluster(8, (8,)), KernelPlan(rows=2, columns=4)).memory)
    assert sizes == {"input": 2 * 256 * 512, "weights": 2 * 512 * 256, "result": 2 * 256 * 1024}


def test_energy_is_that_of_all_devices() -> None:
    """8 devices do the FLOPs once between them, send 3/4 of 256 x 1024 values each, and idle at 5 W."""
    hardware = replace(arithmetic_only(1.0e12, 1.0e9), idle_power=5.0)
    one = bill(PRODUCT, hardware, Cluster(8, (8,)), KernelPlan(rows=2, columns=4))
    sent = 8 * 0.75 * 2 * 256 * 1024 * 2.0e-12
    assert one.energy == pytest.approx(2 * 512 * 512 * 1024 * 1e-12 + sent + 8 * 5.0 * one.step_time, rel=1e-12)


def test_no_product_ends_before_its_kernel_is_launched() -> None:
    slow = replace(arithmetic_only(1.0e18, 1.0e9), efficiency=replace(NO_LOSSES, host=6.0e-6))
    one = bill(PRODUCT, slow, Cluster(1, (1,)), KernelPlan())
    assert one.step_time == 6.0e-6
    assert total(one.time) == pytest.approx(6.0e-6, rel=1e-12)


def test_a_table_has_the_prices_of_the_single_plans() -> None:
    hardware, cluster, plans = arithmetic_only(1.0e12, 1.0e9), Cluster(8, (8,)), kernel_plans(PRODUCT, 8)
    prices = price(PRODUCT, hardware, cluster, plans)
    assert len(plans) == 4 + 1  # 1 x 8, 2 x 4, 4 x 2 and 8 x 1 rows and columns, and 8 inner parts
    for row, plan in enumerate(plans):
        one = bill(PRODUCT, hardware, cluster, plan)
        assert (prices.step_time[row, 0], prices.energy[row, 0], prices.memory[row, 0]) == (one.step_time, one.energy, total(one.memory))


def reference_device(name: str) -> Hardware:
    """The devices of the reference runs, with its launch of 9 us and share of the peak, and without losses that it does not know.

    A 4 (V100) or 8 wide matrix engine moves 2 d2 / (d1 (2 d2 - 1)) values a FLOP, d2 = 4.
    """
    share = {"v100": 0.85, "a100_80GB": 0.75, "H100_SXM5_80GB": 0.75}[name]
    efficiency = replace(NO_LOSSES, matrix=share, kernel=9.0e-6)
    peak, bundles, dram, l2, l1, registers, values = {
        "v100": (125.02e12, 80.0, 924.7, (6.0, 968.0), (7.5, 27.3), (20.03, 93.7), 8 / 28),
        "a100_80GB": (311.9e12, 108.0, 1986.0, (40.0, 7050.0), (20.25, 18.0), (27.0, 122.0), 8 / 56),
        "H100_SXM5_80GB": (1070.5e12, 132.0, 3440.0, (50.0, 8138.0), (29.39, 21.87), (33.0, 244.0), 8 / 56),
    }[name]
    return Hardware(
        name,
        peak,
        peak / 8,
        bundles,
        Memory(80 * GIB, dram * GIB),
        Memory(l2[0] * MIB, l2[1] * GIB),
        Memory(l1[0] * MIB, l1[1] * 1024 * GIB),
        Memory(registers[0] * MIB, registers[1] * 1024 * GIB),
        (Link(48.06 * GIB, 5.0e-6),),
        register_traffic=2.0 * values,
        efficiency=efficiency,
    )


def reference_runs(name: str) -> list[tuple[Gemm, float]]:
    """Single-device products of the reference and their seconds."""
    with reference(RUNS).open() as file:
        rows = [row for row in csv.DictReader(file) if row["mode"] == "GEMM" and row["hw"] == name and row["rc"] == "0"]
    single = [row for row in rows if row["dp"] == row["kp1"] == row["kp2"] == "1"]
    sizes = [{part[0]: int(part[2:]) for part in row["model"].split()} for row in single]
    return [
        (Gemm("reference", size["M"], size["K"], size["N"]), float(row["predicted_time_s"]))
        for size, row in zip(sizes, single, strict=True)
    ]


def seconds_alone(gemm: Gemm, hardware: Hardware) -> float:
    return float(bill(gemm, hardware, Cluster(1, (1,)), KernelPlan()).step_time)


def is_compute_bound(gemm: Gemm) -> bool:
    return min(gemm.rows, gemm.depth, gemm.columns) >= 1024


@pytest.mark.data
@pytest.mark.parametrize("name", ["a100_80GB", "H100_SXM5_80GB"])
def test_compute_bound_products_agree_with_the_reference_but_for_waves(name: str) -> None:
    """The reference has no waves of tiles, so the comparison is with one bundle; its V100 products are bound by L2 instead."""
    runs = [(gemm, seconds) for gemm, seconds in reference_runs(name) if is_compute_bound(gemm)]
    assert len(runs) >= 4
    for gemm, seconds in runs:
        assert seconds_alone(gemm, replace(reference_device(name), bundles=1.0)) == pytest.approx(seconds, rel=0.02), gemm


@pytest.mark.data
def test_waves_cost_little_on_large_products() -> None:
    """From 8192^3 FLOPs on the last wave of the 108 or 132 bundles is a small part, and the reference is met within 6 %."""
    for name in ("a100_80GB", "H100_SXM5_80GB"):
        runs = [(gemm, seconds) for gemm, seconds in reference_runs(name) if is_compute_bound(gemm)]
        for gemm, seconds in runs:
            if gemm.rows * gemm.depth * gemm.columns >= 8192**3:
                assert seconds * 0.99 <= seconds_alone(gemm, reference_device(name)) <= seconds * 1.06, gemm


# Loads of mesh links: worked by hand, against a hop-by-hop walk, and against the public code's own factors.

DERATES = "crossflow/derates.csv"
NAMES = ("kp1", "kp2", "dp", "lp")
NOTHING = frozenset[str]()
CHAINS = frozenset({"lp"})

Layout = tuple[Mesh, tuple[tuple[str, int], ...]]


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Powers of two dealt to the four dimensions, in any order, on a mesh that they fill."""
    side, groups = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    dealt = Counter(draw(st.lists(st.sampled_from(NAMES), min_size=2 * side + groups, max_size=2 * side + groups)))
    return Mesh(2**side, 2**groups), tuple((name, 2 ** dealt[name]) for name in draw(st.permutations(NAMES)))


# By hand.


def test_a_single_device_loads_no_link() -> None:
    assert link_loads(Mesh(1), (("dp", 1), ("lp", 1))) == LinkLoads(0, 0, NOTHING)


def test_a_ring_of_four_has_a_link_of_its_own_on_every_side_of_the_square() -> None:
    assert link_loads(Mesh(2), (("dp", 4),)) == LinkLoads(1, 0, NOTHING)


def test_the_way_back_of_a_long_ring_is_its_second_load() -> None:
    """On 4 x 4 the ring runs up and down the columns and home along the first row, over a link that it already used."""
    assert link_loads(Mesh(4), (("dp", 16),)) == LinkLoads(2, 0, NOTHING)
    assert link_loads(Mesh(8), (("dp", 64),)) == LinkLoads(2, 0, NOTHING)


def test_a_chain_does_not_come_back() -> None:
    assert link_loads(Mesh(4), (("lp", 16),), CHAINS) == LinkLoads(1, 0, NOTHING)
    assert link_loads(Mesh(1, 4), (("lp", 4),), CHAINS) == LinkLoads(0, 1, CHAINS)


def test_two_dimensions_share_links() -> None:
    assert link_loads(Mesh(8), (("kp2", 2), ("dp", 32))) == LinkLoads(4, 0, NOTHING)
    assert link_loads(Mesh(8), (("dp", 32), ("kp2", 2))) == LinkLoads(4, 0, NOTHING)


def test_a_ring_of_groups_comes_home_over_the_cross_link_of_the_first() -> None:
    assert link_loads(Mesh(1, 2), (("dp", 2),)) == LinkLoads(0, 1, frozenset({"dp"}))
    assert link_loads(Mesh(1, 4), (("dp", 4),)) == LinkLoads(0, 2, frozenset({"dp"}))


def test_devices_of_a_row_share_its_cross_link() -> None:
    """Two 2 x 2 groups, each a ring of its own: a row's two devices send over its one cross link, the left one along the ring's link."""
    assert link_loads(Mesh(2, 2), (("kp1", 4), ("dp", 2))) == LinkLoads(2, 2, frozenset({"dp"}))


def test_the_first_dimension_runs_up_and_down_the_columns() -> None:
    group, x, y = placement(Mesh(2, 2), (8,))
    assert group.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert x.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    assert y.tolist() == [0, 1, 1, 0, 0, 1, 1, 0]


def test_the_second_dimension_runs_along_the_rows_and_back() -> None:
    _, x, y = placement(Mesh(4), (2, 8))
    assert x.tolist() == [[0, 1, 2, 3, 3, 2, 1, 0]] * 2
    assert y.tolist() == [[0, 0, 0, 0, 2, 2, 2, 2], [1, 1, 1, 1, 3, 3, 3, 3]]


# Against the rule, walked hop by hop.


def flows(sites: np.ndarray, sizes: tuple[tuple[str, int], ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for rank in np.ndindex(sites.shape[1:]):
        for axis, (name, size) in enumerate(sizes):
            if rank[axis] < (size if size > 2 and name not in CHAINS else size - 1):
                following = (*rank[:axis], (rank[axis] + 1) % size, *rank[axis + 1 :])
                yield tuple(sites[(slice(None), *rank)].tolist()), tuple(sites[(slice(None), *following)].tolist())


def hops(side: int, start: tuple[int, ...], end: tuple[int, ...]) -> Iterator[tuple[str, int, int, int]]:
    """Ports that a flow leaves by: (kind, group, x, y)."""
    (group, x, y), (far_group, far_x, far_y) = (start, end) if start[:2] <= end[:2] else (end, start)
    turn = far_x if group == far_group else side - 1
    yield from (("x", group, place, y) for place in range(x, turn))
    yield from (("y", start[0], turn, place) for place in range(y, far_y, 1 if far_y > y else -1))
    if group != far_group:
        yield "cross", group, 0, far_y
        yield from (("x", far_group, place, far_y) for place in range(far_x))


@given(layouts())
def test_loads_equal_those_of_a_walk_hop_by_hop(layout: Layout) -> None:
    mesh, sizes = layout
    routes = flows(placement(mesh, [size for _, size in sizes]), sizes)
    ports = Counter(port for start, end in routes for port in hops(mesh.side, start, end))
    inside = max((load for port, load in ports.items() if port[0] != "cross"), default=0)
    across = max((load for port, load in ports.items() if port[0] == "cross"), default=0)
    loads = link_loads(mesh, sizes, CHAINS)
    assert (loads.inside, loads.across) == (inside, across)


# Whatever the layout.


@given(layouts())
def test_every_device_is_placed_once(layout: Layout) -> None:
    mesh, sizes = layout
    group, x, y = placement(mesh, [size for _, size in sizes]).reshape(3, -1)
    assert sorted((group * mesh.side + y) * mesh.side + x) == list(range(mesh.devices))
    assert max(x.max(), y.max()) < mesh.side


@given(layouts())
def test_devices_that_talk_load_a_link_and_only_groups_that_talk_load_a_cross_link(layout: Layout) -> None:
    mesh, sizes = layout
    loads = link_loads(mesh, sizes, CHAINS)
    assert (loads.inside + loads.across > 0) == (mesh.devices > 1)
    assert (loads.across > 0) == (mesh.groups > 1) == bool(loads.crossing)


@given(layouts())
def test_a_chain_never_loads_links_more_than_a_ring(layout: Layout) -> None:
    chain, ring = link_loads(*layout, CHAINS), link_loads(*layout)
    assert chain.inside <= ring.inside
    assert chain.across <= ring.across
    assert chain.crossing == ring.crossing


@given(layouts(), st.permutations(NAMES))
def test_only_the_sizes_and_their_order_count_not_the_names(layout: Layout, names: list[str]) -> None:
    """So dimensions of one size may swap their places, and with them whether they cross."""
    mesh, sizes = layout
    renamed = dict(zip(NAMES, names, strict=True))
    loads = link_loads(mesh, sizes)
    expected = LinkLoads(loads.inside, loads.across, frozenset(renamed[name] for name in loads.crossing))
    assert link_loads(mesh, [(renamed[name], size) for name, size in sizes]) == expected


@given(layouts(), st.integers(0, 4))
def test_a_dimension_of_one_member_may_stand_anywhere(layout: Layout, place: int) -> None:
    mesh, sizes = layout
    assert link_loads(mesh, (*sizes[:place], ("idle", 1), *sizes[place:]), CHAINS) == link_loads(mesh, sizes, CHAINS)


# Input that has no answer.


@pytest.mark.parametrize(
    ("mesh", "sizes", "chains", "message"),
    [
        (Mesh(2), (("dp", 2), ("lp", 3)), NOTHING, "dimensions 2 x 3 hold 6 devices, but the mesh has 4"),
        (Mesh(2), (("dp", -2), ("lp", -2)), NOTHING, "at least 1 member, not -2 x -2"),
        (Mesh(2), (("dp", 2), ("dp", 2)), NOTHING, "each dimension once, and at least one, not 'dp, dp'"),
        (Mesh(1), (), NOTHING, "at least one, not ''"),
        (Mesh(2), (("dp", 4),), CHAINS, "chains 'lp' are not among the dimensions 'dp'"),
        (Mesh(6), (("dp", 4), ("lp", 9)), NOTHING, "dimensions 4 fill no whole blocks of 1 x 6 x 6 devices"),
        (Mesh(6), (("dp", 9), ("lp", 4)), NOTHING, "dimensions 9 fill no whole blocks of 1 x 6 x 6 devices"),
        (Mesh(12), (("dp", 4), ("kp1", 9), ("lp", 4)), NOTHING, "dimensions 4 x 9 fill no whole blocks of 1 x 12 x 12 devices"),
        (Mesh(2, 9), (("dp", 6), ("lp", 6)), NOTHING, "dimensions 6 fill no whole blocks of 9 x 2 x 2 devices"),
    ],
)
def test_a_layout_that_does_not_fit_is_refused(
    mesh: Mesh, sizes: tuple[tuple[str, int], ...], chains: frozenset[str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        link_loads(mesh, sizes, chains)


@pytest.mark.parametrize(("side", "groups"), [(0, 1), (1, 0)])
def test_a_mesh_has_devices(side: int, groups: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Mesh(side, groups)


# Golden data.


@pytest.mark.data
def test_loads_equal_the_factors_of_the_public_code() -> None:
    """Factors computed with nanocad-lab/DeepFlow: layouts of 64 devices on four shapes of machine."""
    with reference(DERATES).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 400
    for row in rows:
        sizes = [(name, int(row[name])) for name in row["order(y-first)"].split(">")]
        expected = LinkLoads(
            int(row["intra_derate"]), int(row["inter_derate"]), frozenset(name for name in NAMES if row[f"cross_{name}"] == "1")
        )
        assert link_loads(Mesh(int(row["wafer_dim"]), int(row["num_wafer"])), sizes, CHAINS) == expected, row


# Kernel plans: which are plans, under which one name, and how they lie on the network.

MODEL = Lstm("language model", layers=2, hidden=19968, vocabulary=800_000, sequence=20, global_batch=4096)
GEMM = Gemm("product", rows=96, depth=64, columns=48)


def test_the_published_study_of_64_devices_has_34_designs() -> None:
    """28 cuts by rows and columns and 7 by the inner dimension (arXiv 2211.03309), of which the two undivided ones are one design."""
    plans = kernel_plans(MODEL, 64, layers=(1,))
    assert len(plans) == len(set(plans)) == 34
    assert sum(plan.split == "inner" for plan in plans) == 6


def test_plans_are_those_combinations_that_break_no_rule() -> None:
    degrees = range(1, 13)
    every = {
        KernelPlan(split, rows, columns, data, layers)
        for split in ("rows-columns", "inner")
        for rows in degrees
        for columns in degrees
        for data in degrees
        for layers in degrees
        if rows * columns * data * layers == 12
    }
    assert set(kernel_plans(MODEL, 12)) == {plan for plan in every if not broken_rules(MODEL, plan, 12)}


def test_only_the_degrees_that_are_allowed_are_used() -> None:
    plans = kernel_plans(MODEL, 16, rows=(1, 4), columns=(1, 2), layers=(1, 2))
    assert {plan.rows for plan in plans} == {1, 4}
    assert {plan.columns for plan in plans} == {1, 2}
    assert kernel_plans(MODEL, 16, splits=("inner",), rows=(4,), data=(4,), layers=(1,)) == (KernelPlan("inner", 4, 1, 4),)


@pytest.mark.parametrize(
    ("plan", "devices", "sentence"),
    [
        (KernelPlan(rows=2), 4, "rows x columns x data x layers is the 4 devices"),
        (KernelPlan("inner", 2, 2), 4, "an inner split has no columns"),
        (KernelPlan("inner", data=4), 4, "an inner split is over at least 2 rows; an undivided product is called rows-columns"),
        (KernelPlan(rows=0), 0, "rows, columns, data and layers are at least 1"),
        (KernelPlan("sideways"), 1, "the split is one of rows-columns, inner"),  # type: ignore[arg-type]
        (KernelPlan(data=3), 3, "data divides the global batch 4096"),
        (KernelPlan(rows=8, data=1024), 8192, "data x rows divides the global batch 4096"),
        (KernelPlan("inner", 5), 5, "rows divides the cell's input width 39936"),
        (KernelPlan(columns=5), 5, "columns divides the width of the gates 79872"),
        (KernelPlan(layers=5), 5, "each of the 3 devices of the chain that hold cells has one of the 2 layers"),
    ],
)
def test_a_broken_rule_is_named_alone(plan: KernelPlan, devices: int, sentence: str) -> None:
    assert broken_rules(MODEL, plan, devices) == (sentence,)


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (KernelPlan(rows=5), "rows divides the 96 rows"),
        (KernelPlan(columns=5), "columns divides the 48 columns"),
        (KernelPlan("inner", 5), "rows divides the inner dimension 64"),
        (KernelPlan(data=5), "one product has rows and columns to split, but neither data nor layers"),
    ],
)
def test_a_single_product_is_split_by_its_own_dimensions(plan: KernelPlan, sentence: str) -> None:
    assert broken_rules(GEMM, plan, 5) == (sentence,)


@pytest.mark.parametrize(("layers", "holders"), [(1, 1), (2, 2), (3, 1), (4, 2)])
def test_the_ends_of_a_long_chain_hold_no_cells(layers: int, holders: int) -> None:
    assert KernelPlan(layers=layers).cell_devices == holders


def test_a_plan_reads_as_words() -> None:
    assert str(KernelPlan()) == "undivided"
    assert str(KernelPlan("inner", 4, data=16)) == "inner 4 · data 16"
    assert str(KernelPlan(rows=2, columns=4, data=8, layers=2)) == "rows 2 · columns 4 · data 8 · layers 2"


def test_columns_lie_innermost_then_rows_layers_and_data() -> None:
    """16 devices in nodes of 8: columns 2, rows 2 and layers 2 fill a node, data crosses it."""
    cut = grid(KernelPlan(rows=2, columns=2, data=2, layers=2), Cluster(16, (2, 8, 16)))
    assert cut.column_members == (2.0, 1.0, 1.0)
    assert cut.row_members == cut.layer_members == (1.0, 2.0, 1.0)
    assert cut.data_members == (1.0, 1.0, 2.0)


# Kernels that run alone: hand-computed times, the same digits in columns as one by one, and more of a resource never slower.

H100 = build_device(device("h100-sxm"), "h100-sxm", "bf16", 1)
KERNELS_ALONE_PRODUCT = ProductConstants(2.4e-6, 0.88, 72.0, 0.88, 1.0e-10, 0.3, 2.8e-6, 2.2e-12)
CONTEXT = ContextConstants(1.3e-5, 0.6, 3.0e-6, 5.0e-11, 1.7, 2.4)
GENERATION = GenerationConstants(8.0e-6, 0.8, 1.0e-6, 9.0e-9, 4.0e-8, 4.0e-6, 5.0e12)
COLLECTIVE = CollectiveConstants(9.0e-7, 5.0e-6, 0.4, 2.0e-5, 0.97, 0.6, 4194304.0)
PLAIN = AttentionFormat(2.0, eight_bits=False)
NARROW = AttentionFormat(1.0, eight_bits=True, alone=True)
PACKED = AttentionFormat(2.0, eight_bits=False, packs=True, splits=False)

SIDES = st.sampled_from([1.0, 17.0, 64.0, 128.0, 1000.0, 4096.0, 28672.0])
HEADS = st.sampled_from([(8.0, 8.0), (32.0, 8.0), (64.0, 1.0)])
SIZES = st.sampled_from([64.0, 128.0, 192.0, 256.0])
WINDOWS = st.sampled_from([0.0, 128.0, 4096.0])
FORMS = st.sampled_from([PLAIN, NARROW, PACKED])
PRODUCTS = st.builds(ProductCall, SIDES, SIDES, SIDES, st.sampled_from(sorted(FORMATS)).map(lambda name: FORMATS[name]))
CONTEXTS = st.builds(lambda heads, *rest: ContextCall(*heads, *rest), HEADS, SIZES, WINDOWS, SIDES, SIDES, FORMS)
GENERATIONS = st.builds(lambda heads, *rest: GenerationCall(*heads, *rest), HEADS, SIZES, WINDOWS, SIDES, SIDES, FORMS)
COLLECTIVES = st.builds(
    CollectiveCall, st.sampled_from([2.0, 4.0, 8.0]), SIDES.map(lambda side: side * 4096.0), st.sampled_from([1.0, 2.0])
)


def time_of(call: Any, hardware: Hardware = H100) -> Any:  # noqa: ANN401 - any call and its seconds
    match call:
        case ProductCall():
            return product_time(call, KERNELS_ALONE_PRODUCT, hardware)
        case ContextCall():
            return context_time(call, CONTEXT, hardware)
        case GenerationCall():
            return generation_time(call, GENERATION, hardware)
        case _:
            return collective_time(call, COLLECTIVE, hardware)


# --- by hand -------------------------------------------------------------------------------------------------------------------------


def test_a_product_of_one_tile_is_counted_by_hand() -> None:
    """A tile of 64 x 64 at 0.76 of the rate on one of 100 bundles, beside 24,576 bytes from memory; parts would wait for their sum."""
    hardware = replace(H100, throughput=100.0e12, bundles=100.0, dram=replace(H100.dram, bandwidth=1.0e12))
    constants = ProductConstants(1.0e-6, 1.0, 64.0, 0.5, 1.0e-9, reduction=1.0)
    arithmetic, steps = 128 * 64 * 64 * 2 / 0.76 / 1.0e12, 64 * 1.0e-9
    tile, memory = (arithmetic**2 + steps**2) ** 0.5, 3 * 64 * 64 * 2 / 0.5e12
    call = ProductCall(64.0, 64.0, 64.0, FORMATS["bfloat16"])
    assert product_time(call, constants, hardware) == pytest.approx(1.0e-6 + (tile**2 + memory**2) ** 0.5)


def test_products_that_go_on_for_long_are_throttled() -> None:
    """Hardly within microseconds, and by 0.3 after a second."""
    short, long = (ProductCall(side, side, side, FORMATS["bfloat16"]) for side in (256.0, 65536.0))
    free = replace(KERNELS_ALONE_PRODUCT, throttle=0.0)
    assert product_time(short, KERNELS_ALONE_PRODUCT, H100) == pytest.approx(product_time(short, free, H100), rel=2e-3)
    assert product_time(long, KERNELS_ALONE_PRODUCT, H100) == pytest.approx(1.3 * product_time(long, free, H100), rel=2e-3)


def test_a_cast_is_paid_for_each_element_of_the_input() -> None:
    call = ProductCall(4096.0, 4096.0, 1024.0, FORMATS["fp8"])
    free = product_time(call, replace(KERNELS_ALONE_PRODUCT, cast=0.0), H100)
    assert product_time(call, KERNELS_ALONE_PRODUCT, H100) == pytest.approx(free + 2.2e-12 * 4096 * 1024)
    wide = ProductCall(4096.0, 4096.0, 1024.0, FORMATS["bfloat16"])
    assert product_time(wide, KERNELS_ALONE_PRODUCT, H100) == product_time(wide, replace(KERNELS_ALONE_PRODUCT, cast=0.0), H100)


def test_kernels_that_do_not_split_wait_for_the_whole_depth() -> None:
    """65,536 steps of 1 ns in one tile, and a few of its 32 parts where the depth is split."""
    slow = replace(KERNELS_ALONE_PRODUCT, step=1.0e-9)
    whole, parted = (product_time(ProductCall(1.0, 128.0, 65536.0, FORMATS[name]), slow, H100) for name in ("fp8_block", "fp8"))
    assert whole > 65.0e-6
    assert parted < 20.0e-6


def test_a_context_of_one_block_is_counted_by_hand() -> None:
    """64 queries and keys in one block of 64, whose mean is its only one, at 0.8 of the rate, beside softmax; then the passes."""
    constants = ContextConstants(1.0e-6, 1.0, 2.0e-6, 3.0e-11, 0.0)
    hardware = replace(H100, throughput=100.0e12, bundles=100.0)
    score = ((4 * 128 / 0.8e12) ** 2 + 3.0e-11**2) ** 0.5
    unit = 64 * 64 * score + 2.0e-6
    call = ContextCall(1.0, 1.0, 128.0, 0.0, 1.0, 64.0, PLAIN)
    assert context_time(call, constants, hardware) == pytest.approx(1.0e-6 + unit * (1.0 + 0.01**2) ** 0.5)


def test_generation_reads_keys_and_values_once_for_heads_that_share_them() -> None:
    """32 sequences of 4,096 keys and 8 heads of 128 are 536 MB; 4 or 8 queries to each hardly change that."""
    constants = replace(GENERATION, launch=0.0, unit=1.0e-12, group=0.0, serial=1.0e-12)
    few, many = (generation_time(GenerationCall(heads, 8.0, 128.0, 0.0, 32.0, 4096.0, PLAIN), constants, H100) for heads in (32.0, 64.0))
    assert few == pytest.approx(2 * 2 * 32 * 4096 * 8 * 128 / (0.8 * 3.35e12), rel=0.01)
    assert many == pytest.approx(few, rel=0.01)


def test_a_window_bounds_what_generation_reads() -> None:
    call = GenerationCall(32.0, 8.0, 128.0, 128.0, 256.0, 1.0e5, PLAIN)
    assert generation_time(call, GENERATION, H100) < 0.1 * generation_time(replace(call, window=0.0), GENERATION, H100)


def test_a_collective_is_counted_by_hand_on_both_sides_of_the_switch() -> None:
    """An all-reduce of four ranks: six steps and 3/2 of the message; two ranks lose 0.6 / 4 of the links."""
    bandwidth = H100.links[0].bandwidth * (1.0 - 0.15)
    small, large = (collective_time(CollectiveCall(4.0, size, 2.0), COLLECTIVE, H100) for size in (1.0e6, 1.0e8))
    assert small == pytest.approx(5.0e-6 + 6 * 9.0e-7 + 1.5e6 / (bandwidth * 0.4))
    assert large == pytest.approx(2.0e-5 + 6 * 9.0e-7 + 1.5e8 / (bandwidth * 0.97))


# --- what all keep -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [PRODUCTS, CONTEXTS, GENERATIONS, COLLECTIVES])
def test_columns_have_the_digits_of_single_calls(calls: st.SearchStrategy[Any]) -> None:
    @given(st.lists(calls, min_size=2, max_size=6))
    def hold(drawn: list[Any]) -> None:
        same = [call for call in drawn if getattr(call, "format", None) == getattr(drawn[0], "format", None)]
        names = [name for name in type(same[0]).__slots__ if isinstance(getattr(same[0], name), float)]
        columns = replace(same[0], **{name: np.array([getattr(call, name) for call in same])[:, None] for name in names})
        together = np.broadcast_to(time_of(columns), (len(same), 1))[:, 0]
        assert together.tolist() == [float(time_of(call)) for call in same]

    hold()


@pytest.mark.parametrize("calls", [PRODUCTS, CONTEXTS, GENERATIONS, COLLECTIVES])
def test_more_of_a_resource_is_never_slower(calls: st.SearchStrategy[Any]) -> None:
    @given(calls, st.sampled_from([1.0000001, 1.3, 7.0]))
    def hold(call: Any, factor: float) -> None:  # noqa: ANN401 - any call
        faster = replace(H100, throughput=H100.throughput * factor)
        wider = replace(H100, dram=replace(H100.dram, bandwidth=H100.dram.bandwidth * factor))
        joined = replace(H100, links=(replace(H100.links[0], bandwidth=H100.links[0].bandwidth * factor),))
        assert max(time_of(call, one) for one in (faster, wider, joined)) <= time_of(call)

    hold()
