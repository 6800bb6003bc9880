"""The whole model as one function: its limits, its totals, and what it refuses."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest

from crossopt.crossflow.cost import Prices
from crossopt.crossflow.evaluate import Design, Limit, evaluate
from crossopt.crossflow.hardware import Budget, Cluster, Doubt, Hardware, Link, faults, variants_of
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.parameters import step_flops
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Gemm, Transformer
from tests.conftest import scaled

PLAN = Plan(tensor=4, data=16)


@pytest.fixture
def design(a100: Hardware, cluster: Cluster) -> Design:
    return Design(a100, cluster, PLAN)


def on(design: Design, hardware: Hardware) -> Design:
    return replace(design, hardware=hardware)


@pytest.mark.parametrize(
    ("used", "available", "share", "kept"),
    [(3.0, 4.0, 0.75, True), (4.0, 4.0, 1.0, True), (5.0, 4.0, 1.25, False), (0.0, 0.0, 0.0, True), (1.0, 0.0, inf, False)],
)
def test_a_limit_is_kept_up_to_the_last_unit(used: float, available: float, share: float, kept: bool) -> None:
    limit = Limit("memory", used, available, "bytes")
    assert (limit.share, limit.kept) == (share, kept)


def test_memory_is_always_limited_and_the_rest_where_there_is_a_budget(design: Design, small_model: Transformer) -> None:
    assert [limit.name for limit in evaluate(small_model, design).limits] == ["memory"]
    budget = Budget(die_area=1e-3, package_area=1e-2, power=500.0)
    found = evaluate(small_model, design, budget).limits
    assert [(limit.name, limit.available, limit.unit) for limit in found[1:]] == [
        ("die area", 1e-3, "area"),
        ("package area", 1e-2, "area"),
        ("power", 500.0, "power"),
    ]


def test_the_reserve_counts_against_the_memory(design: Design, small_model: Transformer) -> None:
    memory = evaluate(small_model, design).limits[0]
    assert memory.available == design.hardware.dram.capacity
    larger = replace(design.hardware, reserved_memory=design.hardware.reserved_memory + 2.0**30)
    assert evaluate(small_model, on(design, larger)).limits[0].used == memory.used + 2.0**30


def test_a_design_is_feasible_up_to_its_memory_and_binds_from_95_percent(design: Design, small_model: Transformer) -> None:
    used = evaluate(small_model, design).limits[0].used
    for room, feasible, binding in ((used, True, ("memory",)), (used * (1 - 1e-9), False, ("memory",)), (used / 0.94, True, ())):
        found = evaluate(small_model, on(design, replace(design.hardware, dram=replace(design.hardware.dram, capacity=room))))
        assert (found.feasible, found.binding) == (feasible, binding)


def test_totals_follow_from_time_and_energy(design: Design, small_model: Transformer) -> None:
    found = evaluate(small_model, design)
    assert found.flops == step_flops(small_model)
    assert found.utilisation == pytest.approx(found.flops / (found.step_time * 64 * design.hardware.throughput))
    assert found.average_power * 64 * found.step_time == pytest.approx(found.energy)
    assert found.tokens_per_second == 192 * 1024 / found.step_time
    assert (found.power, found.die_area) == (design.hardware.power, design.hardware.die_area)


def test_a_step_has_a_cost_only_where_there_are_prices(design: Design, small_model: Transformer) -> None:
    assert evaluate(small_model, design).cost is None
    priced = on(design, replace(design.hardware, price=10_000.0))
    found = evaluate(small_model, priced, prices=Prices(electricity=1e-8, lifetime=1e8))
    assert found.cost == pytest.approx(64 * 10_000 / 1e8 * found.step_time + found.energy * 1e-8)


def test_a_plan_that_breaks_rules_is_refused_with_all_of_them(design: Design, small_model: Transformer) -> None:
    broken = replace(design, plan=Plan(tensor=5, zero=1))
    with pytest.raises(ValueError, match=r"not a plan for small: .*64 devices; tensor divides the 12 heads.*ZeRO needs"):
        evaluate(small_model, broken)


def test_a_plan_of_another_kind_is_refused(design: Design, small_model: Transformer, cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="a KernelPlan cannot spread a Transformer"):
        evaluate(small_model, replace(design, plan=KernelPlan(rows=8, data=8)))
    with pytest.raises(ValueError, match="a Plan cannot spread a Gemm"):
        evaluate(Gemm("product", 64, 64, 64), design)


NEEDED = (
    "throughput",
    "vector_throughput",
    "bundles",
    *(f"{memory}.{field}" for memory in ("dram", "l2", "l1", "registers") for field in ("capacity", "bandwidth")),
)


@pytest.mark.parametrize("resource", NEEDED)
@pytest.mark.parametrize("factor", [0.0, -1.0, inf, nan])
def test_a_device_without_a_resource_is_refused_with_its_name(
    design: Design, small_model: Transformer, resource: str, factor: float
) -> None:
    with pytest.raises(ValueError, match=rf"a100-80g: {resource} is \S+, a finite number above 0 is needed$"):
        evaluate(small_model, on(design, scaled(design.hardware, resource, factor)))


@pytest.mark.parametrize("bandwidth", [0.0, inf, nan])
def test_a_dead_link_is_refused_with_its_level(design: Design, small_model: Transformer, bandwidth: float) -> None:
    links = (design.hardware.links[0], replace(design.hardware.links[1], bandwidth=bandwidth))
    with pytest.raises(ValueError, match=rf"links\[1\].bandwidth is {bandwidth}, a finite number above 0 is needed"):
        evaluate(small_model, on(design, replace(design.hardware, links=links)))


@pytest.mark.parametrize("value", [-1.0, inf, nan])
def test_delays_energies_and_powers_may_be_zero_but_not_below(plain: Hardware, value: float) -> None:
    assert faults(plain) == ()
    assert faults(replace(plain, idle_power=value)) == (f"idle_power is {value}, a finite number not below 0 is needed",)
    assert faults(scaled(plain, "energy_per_flop", 1.0)) == ()
    assert len(faults(replace(plain, dram=replace(plain.dram, energy=value)))) == 1
    for link in (Link(1e9, value), Link(1e9, 0.0, value), Link(1e9, 0.0, 0.0, value)):
        assert len(faults(replace(plain, links=(link,)))) == 1


def test_every_fault_is_named_and_one_bad_device_of_many_is_one(plain: Hardware) -> None:
    several = scaled(scaled(plain, "bundles", 0.0), "l2.bandwidth", np.array([1.0, 0.0, 1.0]))
    assert [sentence.split(" is ")[0] for sentence in faults(several)] == ["bundles", "l2.bandwidth"]


def test_every_level_of_the_network_needs_a_link(design: Design, small_model: Transformer) -> None:
    with pytest.raises(ValueError, match="links for 1 of the 2 network levels are given"):
        evaluate(small_model, on(design, replace(design.hardware, links=design.hardware.links[:1])))


# --- other sets of constants ----------------------------------------------------------------------------------------------------------


def test_the_likely_range_goes_from_the_fastest_to_the_slowest_set_of_constants(plain: Hardware) -> None:
    """4096^3 * 2 FLOP at 100 TFLOP/s take 1.374 ms; sets of which one reaches half of the peak and one takes 0.5 ms more a step."""
    gemm, alone = Gemm("gemm", rows=4096, depth=4096, columns=4096), Cluster(1, (1,))
    device = replace(plain, links=plain.links[:1])
    half, later = replace(device.efficiency, matrix=0.5), replace(device.efficiency, step=0.5e-3)
    time = 2 * 4096**3 / 100e12
    for variants, low, high in (
        ((), time, time),
        ((half,), time, 2 * time),
        ((later, half), time, 2 * time),
        ((half, later), time, 2 * time),
    ):
        found = evaluate(gemm, Design(replace(device, variants=variants), alone, KernelPlan()))
        assert found.step_time == pytest.approx(time)
        assert found.likely == pytest.approx((low, high)), variants
    slow = replace(device, efficiency=half, variants=(device.efficiency,))
    assert evaluate(gemm, Design(slow, alone, KernelPlan())).likely == pytest.approx((time, 2 * time))


def test_a_variant_is_the_same_device_under_other_constants(design: Design, small_model: Transformer) -> None:
    """The step times of the range are those of the variants evaluated on their own."""
    device = design.hardware
    assert len(device.variants) == 2
    times = [evaluate(small_model, on(design, other)).step_time for other in variants_of(device)]
    found = evaluate(small_model, design)
    assert found.likely == (min(*times, found.step_time), max(*times, found.step_time))
    for other, constants in zip(variants_of(device), device.variants, strict=True):
        assert other == replace(device, efficiency=constants, variants=())


def test_what_is_in_doubt_of_l2_and_links_varies_with_the_constants(design: Design, small_model: Transformer) -> None:
    """Whether sets are priced one by one or together; a slower L2 and slower links make no step shorter."""
    device, places = design.hardware, len(design.hardware.links)
    fast, slow = Doubt(1.5, (1.2,) * places, (0.5,) * places), Doubt(0.05, (0.8,) * places, (1.5,) * places)
    doubted = replace(device, doubts=(fast, slow))
    alone, found = evaluate(small_model, design), evaluate(small_model, on(design, doubted))
    times = [evaluate(small_model, on(design, other)).step_time for other in variants_of(doubted)]
    assert found.step_time == alone.step_time
    assert found.likely == (min(*times, found.step_time), max(*times, found.step_time))
    assert found.likely[0] <= alone.likely[0] < alone.likely[1] < found.likely[1]
    slowest = variants_of(doubted)[1]
    assert slowest.l2.bandwidth == 0.05 * device.l2.bandwidth
    assert [link.bandwidth for link in slowest.links] == [0.8 * link.bandwidth for link in device.links]
    assert [link.ring_latency for link in slowest.links] == [1.5 * link.ring_latency for link in device.links]
