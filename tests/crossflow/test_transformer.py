"""The price of transformer plans: tables against formulas, items against totals, monotone resources, published step times."""

import csv
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossopt.crossflow.device import device_from
from crossopt.crossflow.evaluate import Design, evaluate
from crossopt.crossflow.generator import generate
from crossopt.crossflow.hardware import UNLIMITED_POWER, Cluster, Efficiency, Hardware, Link, Memory, Shape, take
from crossopt.crossflow.parameters import score_flops, step_flops
from crossopt.crossflow.plan import Plan, plan_at, table
from crossopt.crossflow.plan_rules import broken_rules
from crossopt.crossflow.transformer import price, price_directly
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.registry import build_device, device, names, technology
from crossopt.instances.catalogue.technologies import build_technology, usual_split
from tests.conftest import FACTORS, GROWING, SHRINKING, scaled
from tests.crossflow.strategies import MODELS, plans
from tests.paths import reference

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
