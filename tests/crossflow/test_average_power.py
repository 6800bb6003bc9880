"""No step of any chip draws more on average than the power that the chip is rated by, whatever it is made of and whatever it trains."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crossopt.crossflow.device import Architecture, device_from
from crossopt.crossflow.evaluate import Design, evaluate
from crossopt.crossflow.generator import Edges, Split, generate
from crossopt.crossflow.hardware import Cluster, Efficiency, Hardware, at_power, faults
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.roofline import Cost, Product, fused_attention_cost, product_cost, stream_cost
from crossopt.crossflow.technology import Activity, Parts, Technology
from crossopt.crossflow.transformer import price, step_times
from crossopt.crossflow.workload import Gemm
from crossopt.instances.catalogue.registry import build_device, device, names, technology
from crossopt.instances.catalogue.technologies import build_technology, usual_split
from tests.crossflow.strategies import MODELS, plans
from tests.extent import examples

CLUSTER = Cluster(48, (8, 48))
NO_LOSSES = Efficiency(
    **dict.fromkeys(("matrix", "unaligned", "attention", "stream"), 1.0),
    **dict.fromkeys(("accumulation", "half_stream", "kernel", "host", "launch", "routing", "step"), 0.0),
)
"""All parts may be busy at once, and nothing is lost between."""
CONSTANTS = (Efficiency(), NO_LOSSES, replace(NO_LOSSES, resident=0.01))
Case = tuple[Technology, Architecture, Hardware]
TECHNOLOGIES = tuple((name, node) for name in names("technologies") for node in technology(name).logic_nodes)


def split_at(base: Split, factors: list[float]) -> Split:
    """The usual split with each of its areas, powers and edges times a factor."""
    areas = Parts(*(value * factor for value, factor in zip(_values(base.areas), factors[:7], strict=True)))
    powers = Parts(*(value * factor for value, factor in zip(_values(base.powers), factors[7:14], strict=True)))
    edges = Edges(*(value * factor for value, factor in zip(_values(base.edges), factors[14:], strict=True)))
    return replace(base, areas=areas, powers=powers, edges=edges)


def _values(record: Parts | Edges) -> list[float]:
    return [float(getattr(record, name)) for name in record.__dataclass_fields__]


@st.composite
def chips(draw: st.DrawFn) -> Case:
    """Of any technology and node, with parts of a fifth to five times their usual size and power, rated by kernels of its own."""
    name, node = draw(st.sampled_from(TECHNOLOGIES))
    entry = technology(name)
    made = build_technology(entry, name, node)
    shares = st.floats(0.0, 1.0)
    if draw(st.booleans()):
        made = replace(made, sustained=(Activity(*draw(st.lists(shares, min_size=7, max_size=7))),))
    made = replace(made, core=replace(made.core, clocked_share=draw(st.sampled_from([0.0, made.core.clocked_share, 1.0]))))
    factors = draw(st.lists(st.floats(-1.0, 1.0).map(lambda power: 5.0**power), min_size=17, max_size=17))
    built = generate(made, split_at(usual_split(entry), factors))
    chip = device_from(made, built, 2.0, draw(st.sampled_from(CONSTANTS)))
    node_link, outer = chip.links
    chip = replace(chip, links=(node_link if float(node_link.bandwidth) > 0.0 else outer, outer))
    assume(not faults(chip))
    return made, built, chip


@examples(40)
@given(chips(), st.data())
def test_no_step_draws_more_on_average_than_the_power_of_the_chip(case: Case, data: st.DataObject) -> None:
    """Without any tolerance, on generated chips and on those that are sold."""
    draws_no_more(case, data)


@pytest.mark.slow
@examples(1000)
@given(chips(), st.data())
def test_no_step_of_a_thousand_chips_draws_more_than_that(case: Case, data: st.DataObject) -> None:
    draws_no_more(case, data)


def draws_no_more(case: Case, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(names("hardware")))
    sold = replace(
        build_device(device(name), name, "bf16" if "bf16" in device(name).peak else "fp16", 2),
        efficiency=data.draw(st.sampled_from(CONSTANTS)),
    )
    model = data.draw(st.sampled_from(MODELS))
    columns = table(data.draw(st.lists(plans(model, CLUSTER.devices), min_size=1, max_size=4)))
    for hardware in (case[2], sold):
        prices = price(model, hardware, CLUSTER, columns)
        assert np.all(prices.energy / prices.step_time / CLUSTER.devices <= hardware.power)


@given(chips(), st.sampled_from([64, 1000, 8192, 65536]), st.sampled_from([64, 1000, 8192, 65536]), st.sampled_from(["inner", "outer"]))
def test_no_product_draws_more_on_average_than_the_power_of_the_chip(case: Case, rows: int, depth: int, split: str) -> None:
    plan = KernelPlan(rows=4, split="inner") if split == "inner" else KernelPlan(rows=2, columns=2)
    found = evaluate(Gemm("product", rows, depth, 4096), Design(case[2], Cluster(4, (4, 4)), plan))
    assert found.average_power <= float(case[2].power)


@given(chips(), st.floats(3.0, 17.0), st.lists(st.floats(0.0, 5.0), min_size=3, max_size=3))
def test_no_kernel_draws_more_than_all_parts_at_their_peaks(case: Case, size: float, sides: list[float]) -> None:
    """Each watt is counted once: what a kernel takes beside idle and running power is, part by part, what the part may draw. Bytes of
    stacks take what they take at nominal voltage, so that stacks below it are left out."""
    made, built, chip = case
    assume(float(built.dram.voltage) >= made.dram.nominal_voltage * (1.0 - 1e-9))
    most = float(built.power((Activity(intra=0.0, inter=0.0),)))
    amount = 10.0**size
    rows, depth, columns = (np.ceil(10.0**side) for side in sides)
    attention = fused_attention_cost(amount, amount / 50.0, chip)
    kernels = (product_cost(Product(rows, depth, columns), 2.0, chip), attention, stream_cost(amount, amount, chip))
    for cost in kernels:
        assert _watts(cost, chip) <= most * (1.0 + 1e-9)


def _watts(cost: Cost, chip: Hardware) -> float:
    return float(cost.energy) / float(cost.time) + float(chip.idle_power)


def test_a_chip_that_would_draw_more_takes_longer_and_says_so() -> None:
    """Rated by kernels that do nothing, and losing nothing."""
    entry = technology("accelerator-7nm")
    made = replace(build_technology(entry, "accelerator-7nm"), sustained=(Activity(*[0.0] * 7),))
    chip = device_from(made, generate(made, usual_split(entry)), 2.0, NO_LOSSES)
    model, plan = MODELS[0], Plan(data=48, microbatch=4)
    held = evaluate(model, Design(chip, CLUSTER, plan))
    free = evaluate(model, Design(replace(chip, headroom=1e30), CLUSTER, plan))
    assert free.average_power > 1.05 * float(chip.power)
    assert held.average_power == pytest.approx(float(chip.power), rel=1e-9)
    assert held.average_power <= float(chip.power)
    assert dict(held.breakdown)["power limit"] == pytest.approx(held.step_time - free.step_time)
    assert held.energy - free.energy == pytest.approx(float(chip.idle_power) * CLUSTER.devices * (held.step_time - free.step_time))
    assert float(np.ravel(step_times(model, chip, CLUSTER, table([plan])))[0]) == held.step_time


def test_a_device_held_to_an_eighth_of_its_watts_above_idle_runs_at_half_the_clock() -> None:
    """f V^2 with V as f: an eighth is half cubed; memory and links go on as before, and what an operation takes is a quarter."""
    usual = build_device(device("h100-sxm"), "h100-sxm", "bf16", 2)
    held = at_power(usual, usual.idle_power + (usual.power - usual.idle_power) / 8.0)
    assert held.throughput == pytest.approx(usual.throughput / 2)
    assert held.l2.bandwidth == pytest.approx(usual.l2.bandwidth / 2)
    assert (held.dram, held.links) == (usual.dram, usual.links)
    assert (held.energy_per_flop, held.running_power) == pytest.approx((usual.energy_per_flop / 4, usual.running_power / 8))
    assert held.headroom == pytest.approx((usual.power - usual.idle_power) / 8.0)
