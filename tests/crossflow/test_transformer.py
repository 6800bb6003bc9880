"""The price of transformer plans: tables against formulas, totals, limits, published step times, and blocks of any size."""

import ast
import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf, nan
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossopt.crossflow.arrays import distinct, power
from crossopt.crossflow.cost import Prices
from crossopt.crossflow.device import device_from
from crossopt.crossflow.evaluate import Design, Limit, evaluate
from crossopt.crossflow.generator import generate
from crossopt.crossflow.hardware import (
    UNLIMITED_POWER,
    Budget,
    Cluster,
    Doubt,
    Efficiency,
    Hardware,
    Link,
    Memory,
    Shape,
    faults,
    take,
    variants_of,
)
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.parameters import score_flops, step_flops
from crossopt.crossflow.plan import Plan, broken_rules, plan_at, table
from crossopt.crossflow.transformer import price, price_directly
from crossopt.crossflow.workload import Gemm, Transformer
from crossopt.instances.catalogue.registry import build_device, device, names, technology
from crossopt.instances.catalogue.technologies import build_technology, usual_split
from tests.conftest import FACTORS, GROWING, SHRINKING, scaled
from tests.crossflow.strategies import MODELS, plans
from tests.paths import ROOT, reference

# The price of transformer plans: tables against formulas, items against totals, monotone resources, published step times.

CLUSTERS = (Cluster(48, (8, 48)), Cluster(48, (4, 12, 48)), Cluster(48, (48,)))
HOST = Memory(256.0 * 2**30, 25e9, 2e-10)
RATES = (*GROWING, "host.bandwidth")


def device_on(cluster: Cluster, name: str = "a100-80g") -> Hardware:
    """A device of the registry with as many network levels as the cluster; a middle level has links between those of the others."""
    built = built_device(name) if name in names("hardware") else usual_chip(name)
    node, outer = built.links
    middle = replace(outer, bandwidth=outer.bandwidth * 2.0)
    return replace(built, host=HOST, links={1: (outer,), 2: (node, outer), 3: (node, middle, outer)}[len(cluster.level_sizes)])


def built_device(name: str) -> Hardware:
    """At 16 bits, of whichever form it computes in."""
    entry = device(name)
    return build_device(entry, name, "fp16" if "fp16" in entry.peak else "bf16", 2)


def usual_chip(name: str) -> Hardware:
    """What a technology makes of its usual split; its outer links join the node as well where the split has no inner ones."""
    entry = technology(name)
    made_of = build_technology(entry, name)
    built = device_from(made_of, generate(made_of, usual_split(entry)), 2.0, Efficiency())
    node, outer = built.links
    return replace(built, links=(node if float(node.bandwidth) > 0.0 else outer, outer))


def many(hardware: Hardware, count: int) -> Hardware:
    """An array of devices, each a little different."""
    random = np.random.default_rng(7)
    grown = scaled(hardware, "throughput", random.uniform(0.5, 2.0, count))
    grown = scaled(grown, "dram.bandwidth", random.uniform(0.5, 2.0, count))
    grown = scaled(grown, "l2.capacity", random.uniform(0.5, 2.0, count))
    return scaled(grown, "links.bandwidth", random.uniform(0.5, 2.0, count))


@pytest.mark.parametrize("cluster", CLUSTERS, ids=str)
@settings(max_examples=1)
@given(data=st.data())
def test_tables_give_the_same_digits_as_the_formulas_and_as_one_design_alone(cluster: Cluster, data: st.DataObject) -> None:
    """What is computed once and gathered must be what the formulas say, for every plan on every device, to the last bit."""
    assert_same_digits(cluster, data)


def test_tables_tell_the_gradient_traffic_of_more_chunks_apart() -> None:
    """It is accumulated in m + (p - 1) / v passes."""
    model, cluster = replace(MODELS[0], gradient_traffic=18.0), CLUSTERS[0]
    columns = table([Plan(pipeline=2, microbatch=1, interleave=chunks) for chunks in (1, 2)])
    found, directly = (work_out(model, device_on(cluster), cluster, columns) for work_out in (price, price_directly))
    assert np.array_equal(found.step_time, directly.step_time)


@pytest.mark.slow
@pytest.mark.parametrize("cluster", CLUSTERS, ids=str)
@settings(max_examples=10)
@given(data=st.data())
def test_tables_give_the_same_digits_for_more_plans(cluster: Cluster, data: st.DataObject) -> None:
    assert_same_digits(cluster, data)


SHAPES = st.sampled_from(get_args(Shape))


def shaped(links: tuple[Link, ...], cluster: Cluster, shapes: Sequence[Shape]) -> tuple[Link, ...]:
    """The links with these shapes, joining as many units as the levels do."""
    units = [outer // inner for inner, outer in pairwise((1, *cluster.level_sizes))]
    named = zip(links, units, shapes, strict=False)
    return tuple(replace(link, shape=shape, size=1 if shape == "switch" else size) for link, size, shape in named)


def assert_same_digits(cluster: Cluster, data: st.DataObject) -> None:
    usual = many(device_on(cluster), 3)
    for model in MODELS:
        hardware = replace(usual, links=shaped(usual.links, cluster, data.draw(st.lists(SHAPES, min_size=3, max_size=3))))
        drawn = data.draw(st.lists(plans(model, cluster.devices), min_size=8, max_size=12))
        columns = table(drawn)
        by_tables, directly = price(model, hardware, cluster, columns), price_directly(model, hardware, cluster, columns)
        assert np.array_equal(by_tables.step_time, directly.step_time)
        assert np.array_equal(by_tables.energy, directly.energy)
        assert np.array_equal(by_tables.memory, directly.memory)
        assert [plan_at(columns, row) for row in range(len(drawn))] == drawn
        for row, plan in enumerate(drawn[:4]):
            alone = evaluate(model, Design(take(hardware, 1), cluster, plan))
            assert alone.step_time == by_tables.step_time[row, 1]
            assert alone.energy == by_tables.energy[row, 1]
            assert alone.limits[0].used == by_tables.memory[row, 0] + hardware.reserved_memory


def test_a_plan_has_its_own_price_beside_those_of_every_other_kind() -> None:
    """What no other plan of a block needs to know of: copies of stages, split passes, groups, hidden exchanges, layers computed again."""
    usual = Plan(tensor=2, pipeline=2, data=12, zero=1, sequence_parallel=True)
    changes: tuple[dict[str, Any], ...] = (
        *({}, {"schedule": "zero-bubble"}, {"schedule": "dualpipe"}, {"schedule": "zero-bubble-v", "interleave": 2}),
        *({"shard": 4}, {"zero": 3}, {"tensor_exchange": "hidden"}, {"recompute": "full-2"}, {"offload": "optimizer"}, {"overlap": "both"}),
        *({"first_stage_layers": 5}, {"placement": "pipeline-tensor-context-data"}, {"context": 2, "data": 6}),
    )
    drawn, hardware = [replace(usual, **change) for change in changes], device_on(CLUSTERS[0])
    assert not [plan for plan in drawn if broken_rules(MODELS[0], plan, 48)]
    together = price(MODELS[0], hardware, CLUSTERS[0], table(drawn))
    for row, plan in enumerate(drawn):
        alone = price(MODELS[0], hardware, CLUSTERS[0], table([plan]))
        for name in ("step_time", "energy", "memory"):
            assert getattr(alone, name)[0, 0] == getattr(together, name)[row, 0], (plan, name)


@settings(max_examples=5)
@given(data=st.data())
def test_the_breakdown_adds_up_to_the_step_time(data: st.DataObject) -> None:
    cluster = CLUSTERS[0]
    for model in MODELS:
        plan = data.draw(plans(model, cluster.devices))
        evaluation = evaluate(model, Design(device_on(cluster), cluster, plan))
        assert sum(seconds for _, seconds in evaluation.breakdown) == pytest.approx(evaluation.step_time, rel=1e-12)
        assert all(seconds >= -1e-12 * evaluation.step_time for _, seconds in evaluation.breakdown)
        assert sum(size for _, size in evaluation.memory) == pytest.approx(evaluation.limits[0].used, rel=1e-12)


def each_alone(hardware: Hardware, resources: tuple[str, ...]) -> Hardware:
    """Devices in a row for each resource, on which it alone grows by the factors."""
    for place, resource in enumerate(resources):
        factors = np.ones((len(resources), len(FACTORS)))
        factors[place] = FACTORS
        hardware = scaled(hardware, resource, factors.ravel())
    return hardware


DEVICES = pytest.mark.parametrize("name", [*names("hardware"), *names("technologies")])


@DEVICES
@settings(max_examples=1)
@given(data=st.data())
def test_more_of_a_resource_is_never_slower(name: str, data: st.DataObject) -> None:
    """The bounds of every engine rest on this; it holds as computed, without any tolerance."""
    assert_more_is_never_slower(name, data)


@pytest.mark.slow
@DEVICES
@given(data=st.data())
def test_more_of_a_resource_is_never_slower_on_more_plans(name: str, data: st.DataObject) -> None:
    assert_more_is_never_slower(name, data)


def test_a_part_of_the_layers_computed_again_takes_that_part_of_the_time() -> None:
    """Of 12 layers on one stage, and of three on each of four stages in one chunk or two."""
    model, cluster = replace(MODELS[0], layers=12, global_batch=48), CLUSTERS[0]
    hardware = device_on(cluster)
    cases = (
        (Plan(tensor=2, data=24), {1: 1 / 12, 3: 3 / 12, 12: 1.0, 20: 1.0}),
        (Plan(pipeline=4, data=12), {1: 1 / 3, 2: 2 / 3}),
        (Plan(pipeline=4, data=12, interleave=2), {1: 2 / 3}),
    )
    for plan, shares in cases:
        words = ("none", "full", *(f"full-{layers}" for layers in shares))
        prices = price(model, hardware, cluster, table([replace(plan, recompute=word) for word in words]))
        for found in (prices.step_time[:, 0], prices.energy[:, 0]):
            none, full, *partly = found.tolist()
            assert partly == pytest.approx([none + share * (full - none) for share in shares.values()], rel=1e-9)


def assert_more_is_never_slower(name: str, data: st.DataObject) -> None:
    cluster = CLUSTERS[data.draw(st.integers(0, 2))]
    resources = (*RATES, *SHRINKING)
    hardware = each_alone(device_on(cluster, name), resources)
    for model in MODELS:
        columns = table(data.draw(st.lists(plans(model, cluster.devices), min_size=4, max_size=8)))
        times = price(model, hardware, cluster, columns).step_time.reshape(-1, len(resources), len(FACTORS))
        for place, resource in enumerate(resources):
            change = np.diff(times[:, place], axis=1) * (-1.0 if resource in SHRINKING else 1.0)
            assert (change <= 0.0).all(), resource


@settings(max_examples=5)
@given(data=st.data())
def test_a_step_is_never_faster_than_its_arithmetic_at_peak(data: st.DataObject) -> None:
    """Fused attention skips the half of the scores that the causal mask hides, so the useful FLOPs are counted without it here."""
    cluster = CLUSTERS[0]
    hardware = device_on(cluster)
    for model in MODELS:
        columns = table(data.draw(st.lists(plans(model, cluster.devices), min_size=4, max_size=8)))
        least = (step_flops(model) - 0.5 * score_flops(model)) / (cluster.devices * float(hardware.throughput))
        assert (price(model, hardware, cluster, columns).step_time > least).all()


@given(data=st.data())
def test_twice_the_speed_of_everything_halves_the_step(data: st.DataObject) -> None:
    """With nothing that costs a fixed time, and all the power that it takes, time is inversely proportional to speed."""
    model, cluster = MODELS[data.draw(st.integers(0, len(MODELS) - 1))], CLUSTERS[0]
    free = replace(device_on(cluster).efficiency, kernel=0.0, host=0.0, launch=0.0, routing=0.0, step=0.0)
    slow = replace(device_on(cluster), efficiency=free, headroom=UNLIMITED_POWER)
    for delay in SHRINKING:
        slow = scaled(slow, delay, 0.0)
    fast = slow
    for rate in RATES:
        fast = fast if rate.endswith(("capacity", "share")) else scaled(fast, rate, 2.0)
    columns = table([data.draw(plans(model, cluster.devices))])
    assert price(model, slow, cluster, columns).step_time[0, 0] == 2.0 * price(model, fast, cluster, columns).step_time[0, 0]


@pytest.mark.data
def test_published_megatron_step_times_are_met_within_fifteen_percent_unfitted() -> None:
    """Korthikanti et al. 2022, table 5: 22B to 1T parameters on 8 to 512 A100, with full and with selective recomputation."""
    with reference("measured/training-extra.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["source"].startswith("Korthikanti")]
    assert len(rows) == 8
    hardware = replace(build_device(device("a100-80g"), "a100-80g", "fp16", 2), efficiency=Efficiency())
    for row in rows:
        model, cluster, plan = _megatron(row)
        predicted = evaluate(model, Design(hardware, cluster, plan)).step_time
        assert abs(predicted / float(row["time_per_iter_s"]) - 1.0) < 0.15, row["model"]


def _megatron(row: dict[str, str]) -> tuple[Transformer, Cluster, Plan]:
    number = {
        name: int(row[name])
        for name in ("layers", "hidden", "heads", "ffn", "vocab", "seq", "gbs", "gpus", "tp", "pp", "mbs", "interleave")
    }
    model = Transformer(
        row["model"],
        number["layers"],
        number["hidden"],
        number["heads"],
        number["ffn"],
        number["vocab"],
        number["seq"],
        number["gbs"],
        attention="unfused",
        dropout=True,
        precision="fp16",
    )
    full = row["recompute"] == "full"
    plan = Plan(
        tensor=number["tp"],
        pipeline=number["pp"],
        microbatch=number["mbs"],
        interleave=number["interleave"],
        sequence_parallel=not full,
        recompute="full" if full else "selective",
    )
    return model, Cluster(number["gpus"], (8, number["gpus"])), plan


# The whole model as one function: its limits, its totals, and what it refuses.

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
    assert (limit.share, limit.satisfied) == (share, kept)


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
    with pytest.raises(ValueError, match="zip"):
        variants_of(replace(doubted, variants=device.variants[:1]))


# No formula looks at its block: what it gives for one plan on one chip never follows from the plans and chips beside it.
#
# Formulas take numbers and arrays alike, entry by entry. One that asks an array for a figure of the whole of it (`any`, `size`, `max`, a
# sum) may let entries depend on each other, if only in the last bit: each such place is listed with the reason why it does not.

_OF_ARRAYS = frozenset(("any", "all", "size", "ndim", "shape", "max", "min", "sum", "mean", "prod", "cumsum", "dot", "matmul", "einsum"))
"""What numpy and its arrays tell of a whole array. Sums and products of matrices also round differently by length and layout."""
_NO_ARRAYS = frozenset(("link", "links[level]", "call"))
"""What has a size or a shape of its own."""
_LENGTHS = frozenset(f"len({name})" for name in ("plans", "heads", "rows", "columns", "hardware", "chips.alive"))
"""Lengths of blocks, on which a branch may depend."""
_ROOMS = ("crossflow", "crossflow/kernels")
_FILES = ("solvers/codesign/objective.py",)
_OF_GRAPHS = ("traces.py", "operator_graph.py")
"""Files that compute with operations of a trace or a graph, and with no plans or chips."""

_UNUSED = "where the mask holds nowhere, `np.where` takes the other side everywhere"
_NOTHING = "where it holds nowhere, what is added is exactly zero"
_SETTLED = "what is settled stays as it is while others go on"
_EQUAL_INPUTS = "equal inputs are computed once; each entry follows from its own"
_REFUSED = "figures that are no numbers are refused, whichever"
_BY_QUESTION = "a number or an array by what the question opens, not by how many"
_LARGEST = "the largest number that keeps the power is one number, however it is found"
_ONE = "of a single design, or one operator"
_NUMBER = "how much there is to do in one operator, a number"
_OPERATORS = "over the operators of one network, a row for each batch"
ALLOWED: dict[str, str] = {
    "accelerator.py: operator_cycles: work.size": _NUMBER,
    "accelerator.py: traffic: work.size": _NUMBER,
    "arrays.py: _codes: column.max(initial=0)": _EQUAL_INPUTS,
    "arrays.py: _codes: column.shape": _EQUAL_INPUTS,
    "arrays.py: distinct: columns[0].shape": _EQUAL_INPUTS,
    "arrays.py: distinct: key.max(initial=0)": _EQUAL_INPUTS,
    "arrays.py: distinct: number.max(initial=-1)": _EQUAL_INPUTS,
    "arrays.py: power: np.ndim(base)": "a number for numbers",
    "arrays.py: power: np.ndim(exponent)": "a number for numbers",
    "bill.py: step_items: np.ndim(needed.busy)": _ONE,
    "cost.py: enough_of: np.max(spare)": "terms beyond the spare bundles of a die add zero",
    "cost.py: good_share: np.any(made.needed)": _UNUSED,
    "dies.py: _counts_between: np.max(np.minimum(apart, _LOOKED_AT))": "further numbers of dies are none between",
    "dies.py: room_for: np.any(low < high)": _SETTLED,
    "generator.py: __post_init__: (np.isfinite(value) & np.greater_equal(value, 0.0)).all()": _REFUSED,
    "generator.py: __post_init__: np.all(np.asarray(self.dies) >= 1.0)": _REFUSED,
    "hardware.py: _usable: np.all(np.isfinite(value) & (np.greater(value, 0.0) if needed else np.greater_equal(value, 0.0)))": _REFUSED,
    "hardware.py: devices_in: value.size": "how many devices there are",
    "layout.py: lay_out: np.any(plans.expert_tensor)": _UNUSED,
    "memory.py: _device_memory: np.any(both)": _NOTHING,
    "memory.py: _layer_activations: np.any(np.greater_equal(sharding.recompute, PARTLY))": _UNUSED,
    "memory.py: device_trained: np.any(both)": _NOTHING,
    "memory.py: _common: np.any(sharding.recompute)": "where nothing is recomputed, what is kept is all of it",
    "memory.py: fullest_stage: total.shape": _ONE,
    "memory.py: host_memory: np.any(sharding.offload)": _NOTHING,
    "memory.py: kept_activations: np.any(np.greater_equal(sharding.recompute, PARTLY))": _UNUSED,
    "transformer.py: host_traffic: np.any(sharding.offload)": _NOTHING,
    "operator_costs.py: passes: moved.max(axis=1)": _OPERATORS,
    "operator_costs.py: passes: time.sum(axis=1)": _OPERATORS,
    "operator_costs.py: passes: weights.sum(axis=1)": _OPERATORS,
    "pipeline.py: _split_passes: np.any(is_both_ways(terms.schedule))": _UNUSED,
    "pipeline.py: _split_passes: np.any(is_v(terms.schedule))": _UNUSED,
    "pipeline.py: _waits: np.any(share)": _NOTHING,
    "pipeline.py: bubble: np.any(terms.schedule)": _UNUSED,
    "pipeline.py: edges: np.any(is_both_ways(terms.schedule))": _UNUSED,
    "pipeline.py: exposed_exchange: np.any(terms.schedule)": _UNUSED,
    "pipeline.py: layers_by_stage: np.any(is_both_ways(terms.schedule))": _UNUSED,
    "pipeline.py: slots: np.any(terms.schedule)": _UNUSED,
    "pipeline.py: unheld_time: np.any(terms.schedule)": _UNUSED,
    "pipeline.py: full_backward: np.any(terms.schedule)": _UNUSED,
    "plan.py: _end_conditions: even.all()": "what is even needs no other rule",
    "roofline.py: _across: np.ndim(product.by_chance)": _UNUSED,
    "roofline.py: _different: (shapes[order[1:]] != shapes[order[:-1]]).any(axis=1)": _EQUAL_INPUTS,
    "roofline.py: _different: np.cumsum(new)": _EQUAL_INPUTS,
    "relayouts.py: _missing: overlap.min()": _ONE,
    "roofline.py: _tile_slots: np.ndim(hardware.open_bundles)": _UNUSED,
    "roofline.py: product_cost: np.ndim(product.launches)": "launches are a number where the network has no experts",
    "roofline.py: product_costs: side.ndim": _EQUAL_INPUTS,
    "roofline.py: reloads: room.size": _EQUAL_INPUTS,
    "roofline.py: reloads: rooms.size": _EQUAL_INPUTS,
    "sharding.py: candidates: np.any(both)": "the further stage is the last one again",
    "sharding.py: on_device: np.any(sharding.offload)": _UNUSED,
    "sharding.py: sharing: np.any(is_both_ways(self.schedule))": "times one",
    "transformer.py: _gather: np.ndim(value)": _BY_QUESTION,
    "transformer.py: _paired: np.any(both_ways)": _UNUSED,
    "transformer.py: _paired: np.any(plans.expert_exchange)": _UNUSED,
    "transformer.py: _recomputed: np.any(plans.recompute >= PARTLY)": _UNUSED,
    "transformer.py: parts: (plans.schedule == BOTH_WAYS).any()": "columns that no plan of the block reads are left out",
    "transformer.py: parts: plans.expert_exchange.any()": "columns that no plan of the block reads are left out",
    "transformer.py: parts: plans.schedule.any()": "columns that no plan of the block reads are left out",
    "transformer.py: price: found.step_time.shape": "the size of a block to fill",
    "voltage.py: _drive: (above := np.greater(_power_factor(drive, threshold, leak), dynamic)).any()": _LARGEST,
    "voltage.py: _drive: (below := np.less_equal(_power_factor(np.nextafter(drive, np.inf), threshold, leak), dynamic)).any()": _LARGEST,
    "voltage.py: _newton: (step < drive * _SETTLED).any()": "a start, from which `_drive` finds the same number",
    "kernels/distributed_product.py: _busiest: across.max()": _ONE,
    "kernels/distributed_product.py: _busiest: along_x.max()": _ONE,
    "kernels/distributed_product.py: _busiest: along_y.max()": _ONE,
    "kernels/distributed_product.py: _cover: change.cumsum(axis=-1)": _ONE,
    "kernels/distributed_product.py: _flows: sites.shape": _ONE,
    "kernels/distributed_product.py: link_loads: np.any(start[0] != end[0])": _ONE,
    "context_exchange.py: around_attention: np.any(ranks.context > 1.0)": _NOTHING,
    "kernels/layer_kernels.py: different: np.shape(units)": _EQUAL_INPUTS,
    "kernels/fitted.py: product_time: np.ndim": "the axes behind that of the parts of the depth",
    "kernels/layer_kernels.py: to_experts: np.any(ranks.expert_tensor)": _NOTHING,
    "hiding.py: products_time: np.any(ranks.hides)": _UNUSED,
    "replica_exchange.py: _across_energy: np.any(sharding.shard)": _NOTHING,
    "replica_exchange.py: _across_time: np.any(sharding.shard)": _NOTHING,
    "replica_exchange.py: _copies: np.any(both)": _UNUSED,
    "replica_exchange.py: _gather_time: np.any(weights.routed)": _NOTHING,
    "replica_exchange.py: _reduce_time: np.any(weights.routed)": _NOTHING,
    "replica_exchange.py: _sent_energy: np.any(weights.routed)": _NOTHING,
    "replica_exchange.py: data_exchange: np.any(scattered)": _NOTHING,
    "replica_exchange.py: data_exchange: np.any(sharded)": _NOTHING,
    "replica_exchange.py: taken: figure.ndim": _BY_QUESTION,
    "objective.py: _distinct_memory: len(plans)": _EQUAL_INPUTS,
    "objective.py: _values_where_they_fit: chips.alive.any()": "rows and columns without a value are left out",
    "objective.py: _values_where_they_fit: fits.any(axis=1)": "rows and columns without a value are left out",
    "objective.py: _values_where_they_fit: len(chips.alive)": "rows and columns without a value are left out",
    "objective.py: _values_where_they_fit: len(columns)": "rows and columns without a value are left out",
    "objective.py: _values_where_they_fit: len(plans)": "rows and columns without a value are left out",
    "objective.py: _values_where_they_fit: len(rows)": "rows and columns without a value are left out",
    "objective.py: _values_where_they_fit: np.isfinite(figures).all()": "rows and columns without a value are left out",
    "objective.py: _deciding_memory_of: fitting()[rows].all(axis=1)": "whether the device fits, of each plan on its own",
    "objective.py: _deciding_memory_of: fitting().any(axis=1)": "whether the device fits, of each plan on its own",
    "objective.py: deciding_memory_of: len(heads)": "the least over modes, for each plan its own",
    "objective.py: _deciding_memory_of: np.asarray(peak_memory(model, replace(sharding(model, some), recompute=ways))).sum(axis=0)": (
        "which mode is tried first; what fits is the same whichever it is"
    ),
    "objective.py: host_memory_of: plans.offload.any()": _NOTHING,
    "objective.py: near_members: len(heads)": "no plans have no members",
    "objective.py: least_memory_of: _memory_by_recomputation(instance, model, thrifty).min(axis=1)": (
        "the least over modes, for each plan its own"
    ),
    "objective.py: least_memory_of: len(heads)": "the least over modes, for each plan its own",
    "objective.py: memory_of: len(plans)": "no plans have no memory",
    "objective.py: combined: np.isfinite(found[finite]).all()": _REFUSED,
    "objective.py: values: prices.step_time.shape": "the shape to fill",
    "transformer.py: spent: len(plans)": "whether the costs are kept",
}
POWERS = {"accelerator.py", "dies.py", "hardware.py", "plan.py", "technology.py", "voltage.py", "kernels/lstm.py"}
"""Where `**` is of constants, or of one device or technology, which are numbers for everybody; everywhere else `arrays.power` is."""


def test_formulas_ask_nothing_of_a_whole_block_but_where_it_changes_no_entry() -> None:
    found = {name for path in _files() for name in _asked(path)}
    assert found == {*ALLOWED}


def test_powers_are_taken_by_the_routine_that_gives_numbers_and_arrays_the_same_bits() -> None:
    found = {_name(path) for path in _files() for node in ast.walk(_tree(path)) if isinstance(node, ast.BinOp) and _differs(node.op)}
    assert found == POWERS


def _files() -> list[Path]:
    paths = [path for room in _ROOMS for path in sorted((ROOT / room).glob("*.py")) if path.name not in _OF_GRAPHS]
    return [*paths, *(ROOT / name for name in _FILES)]


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _name(path: Path) -> str:
    return path.name if path.parent.name in ("crossflow", "codesign") else f"{path.parent.name}/{path.name}"


def _differs(operator: ast.operator) -> bool:
    """What has other bits for numbers than for arrays, or by the layout of a matrix."""
    return isinstance(operator, ast.Pow | ast.MatMult)


def _asked(path: Path) -> Iterator[str]:
    """Each thing that a function asks of a whole array, and what it branches on by a length."""
    for function in ast.walk(_tree(path)):
        if isinstance(function, ast.FunctionDef):
            inner = {
                node for child in ast.walk(function) if isinstance(child, ast.FunctionDef) and child != function for node in ast.walk(child)
            }
            own = [node for node in ast.walk(function) if node not in inner]
            calls = {node.func: node for node in own if isinstance(node, ast.Call)}
            for node in own:
                if isinstance(node, ast.Attribute) and node.attr in _OF_ARRAYS and ast.unparse(node.value) not in _NO_ARRAYS:
                    yield f"{_name(path)}: {function.name}: {ast.unparse(calls.get(node, node))}"
                if isinstance(node, ast.If | ast.IfExp | ast.While):
                    for part in ast.walk(node.test):
                        if ast.unparse(part) in _LENGTHS:
                            yield f"{_name(path)}: {function.name}: {ast.unparse(part)}"


# Finding equal rows: against the plain way, for small and for huge numbers.

SMALL, HUGE = st.integers(0, 3), st.integers(0, 2**40)


@given(st.lists(st.tuples(SMALL, SMALL, HUGE | SMALL), max_size=40))
def test_rows_have_the_same_number_exactly_where_they_are_equal(rows: list[tuple[int, int, int]]) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    first, number = distinct(*columns)
    assert [rows[place] for place in first[number]] == rows
    assert len(first) == len(set(rows))


@given(st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=40))
def test_of_equal_rows_the_first_one_is_named(rows: list[tuple[int, int]]) -> None:
    first, _ = distinct(*np.array(rows, np.int64).T)
    assert sorted(first) == sorted({row: place for place, row in reversed(list(enumerate(rows)))}.values())


@pytest.mark.parametrize("columns", [3, 40])
def test_many_columns_do_not_overflow_the_number_of_a_combination(columns: int) -> None:
    """Forty columns of a thousand values each have 1000^40 possible combinations, of which few occur."""
    random = np.random.default_rng(3)
    rows = random.integers(0, 1000, (50, columns))[random.integers(0, 50, 200)]
    first, number = distinct(*rows.T)
    assert np.array_equal(rows[first][number], rows)
    assert len(first) == len({tuple(row) for row in rows.tolist()})


def test_no_rows_have_no_combinations() -> None:
    first, number = distinct(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert len(first) == len(number) == 0


@given(st.lists(st.tuples(st.floats(0.1, 3.0), st.sampled_from([-2.7, -2.0, -1.0, 0.5, 2.0, 3.0])), min_size=1, max_size=40))
def test_a_power_has_the_same_bits_as_a_number_alone_and_in_an_array(pairs: list[tuple[float, float]]) -> None:
    base, exponent = np.array(pairs).T
    found = power(base, exponent)
    assert np.allclose(found, base**exponent, rtol=1e-15, atol=0.0)
    for place, (one, other) in enumerate(pairs):
        alike = power(one, other), power(np.float64(one), other), power(base[[place]], other)[0], power(base, other)[place]
        assert {*alike, power(one, exponent)[place], power(base[:, None], exponent)[place, place]} == {found[place]}
