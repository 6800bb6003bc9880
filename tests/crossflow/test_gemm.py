"""One distributed matrix product: worked by hand, against the public DeepFlow code's own results, and by its laws."""

import csv
from dataclasses import replace

import pytest

from crossopt.crossflow.bill import total
from crossopt.crossflow.hardware import Cluster, Efficiency, Hardware, Link, Memory
from crossopt.crossflow.kernels.distributed_product import bill, price
from crossopt.crossflow.kernels.kernel_plan import KernelPlan, kernel_plans
from crossopt.crossflow.workload import Gemm
from tests.paths import reference

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
