"""Training an LSTM language model: worked by hand, against an operation-by-operation schedule, and the published case study of DeepFlow."""

import csv
from dataclasses import asdict, fields, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.bill import Bill, total
from crossopt.crossflow.device import Architecture, device_from
from crossopt.crossflow.generator import Edges, Split, generate, split_from_fractions
from crossopt.crossflow.hardware import Cluster, Efficiency, Hardware, Link, Memory, take
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.kernels.lstm import HOST_BANDWIDTH, bill, finish_times, memory, price, split_over_chain, step_flops
from crossopt.crossflow.technology import (
    CoreTechnology,
    DramTechnology,
    LinkTechnology,
    Parts,
    SramTechnology,
    Technology,
    scale_logic,
    scale_network,
)
from crossopt.crossflow.workload import Lstm
from tests.crossflow.strategies import kernel_plans
from tests.every import every
from tests.extent import examples
from tests.paths import reference

# Training an LSTM language model: worked by hand, against an operation-by-operation schedule, and by the laws of the model.

GIB, MIB = 2.0**30, 2.0**20
ENDLESS = 1.0e30
BATCH, HIDDEN, GATES, WORDS = 512, 512, 2048, 1024
SMALL = Lstm("small", layers=2, hidden=HIDDEN, vocabulary=WORDS, sequence=4, global_batch=BATCH)
PRODUCT_WEIGHTS = 2 * (2 * HIDDEN + 1) * GATES + (HIDDEN + 1) * WORDS
WEIGHTS = PRODUCT_WEIGHTS + WORDS * HIDDEN
NO_LOSSES = Efficiency(matrix=1.0, accumulation=0.0, stream=1.0, half_stream=0.0, kernel=0.0, host=0.0, step=0.0)
CLUSTER = Cluster(16, (4, 16))
PLANS = kernel_plans(SMALL, 16)

DEVICE = Hardware(
    name="device",
    throughput=1.2e14,
    vector_throughput=1.5e13,
    bundles=80.0,
    dram=Memory(16 * GIB, 9.0e11, 3.0e-11),
    l2=Memory(6 * MIB, 2.2e12, 2.0e-12),
    l1=Memory(10 * MIB, 1.4e13, 1.0e-12),
    registers=Memory(20 * MIB, 1.0e14, 1.0e-13),
    links=(Link(1.5e11, 2.0e-6, 5.0e-6, 1.0e-11), Link(1.2e10, 5.0e-6, 1.0e-5, 6.0e-11)),
    energy_per_flop=9.0e-13,
    idle_power=60.0,
)
RESOURCES = ("throughput", "vector_throughput", "dram", "l2", "l1", "registers", "link 0", "link 1")


def faster(hardware: Hardware, resource: str, factor: float | Array) -> Hardware:
    """The device with more of one resource: rate, or bandwidth and capacity of a memory, or bandwidth of a link."""
    if resource.startswith("link"):
        place = int(resource[-1])
        links = tuple(replace(link, bandwidth=link.bandwidth * factor) if at == place else link for at, link in enumerate(hardware.links))
        return replace(hardware, links=links)
    value = getattr(hardware, resource)
    if isinstance(value, Memory):
        value = replace(value, bandwidth=value.bandwidth * factor, capacity=value.capacity * factor)
    else:
        value = value * factor
    changes: dict[str, Any] = {resource: value}
    return replace(hardware, **changes)


def rates_times(hardware: Hardware, factor: float) -> Hardware:
    """Every rate of the device, at the same capacities."""
    before = hardware
    for resource in RESOURCES:
        hardware = faster(hardware, resource, factor)
    memories = ("dram", "l2", "l1", "registers")
    changes: dict[str, Any] = {name: replace(getattr(hardware, name), capacity=getattr(before, name).capacity) for name in memories}
    return replace(hardware, **changes)


def arithmetic_only(throughput: float, bandwidth: float) -> Hardware:
    """One bundle (no waves), memories and vector engine that are never in the way, and links without latency."""
    memory = Memory(ENDLESS, ENDLESS)
    return Hardware("ideal", throughput, ENDLESS, 1.0, memory, memory, memory, memory, (Link(bandwidth, 0.0),), efficiency=NO_LOSSES)


def priced(plan: KernelPlan, hardware: Hardware = DEVICE, model: Lstm = SMALL) -> Bill:
    return bill(model, hardware, CLUSTER if plan.devices == 16 else Cluster(plan.devices, (plan.devices,)), plan)


def seconds(plan: KernelPlan, hardware: Hardware) -> dict[str, float]:
    return {name: float(time) for name, time in priced(plan, hardware).time}


# By hand.


def test_products_of_one_device_take_their_flops_over_the_peak() -> None:
    """6 FLOPs a weight and token, and 4 copies of two embedded batches from the host."""
    flops = 6 * 4 * BATCH * (2 * 2 * HIDDEN * GATES + HIDDEN * WORDS)
    assert step_flops(SMALL) == flops
    spent = seconds(KernelPlan(), arithmetic_only(1.0e12, 1.0e9))
    assert spent["matrix products"] == pytest.approx(flops / 1.0e12, rel=1e-12)
    assert spent["host copy"] == pytest.approx(4 * 2 * 2 * BATCH * HIDDEN / HOST_BANDWIDTH, rel=1e-12)
    assert spent["exchange"] == spent["gradient reduction"] == spent["weight exchange"] == spent["waiting"] == 0.0


def test_element_wise_work_is_charged_to_dram() -> None:
    """Values a step: 13 a gate, 13 a unit and 3 a weight in each cell, 18 a word, 4 a unit embedded; 7 a weight at the end."""
    hardware = replace(arithmetic_only(ENDLESS, ENDLESS), dram=Memory(ENDLESS, 1.0e9))
    cell = 13 * BATCH * GATES + 13 * BATCH * HIDDEN + 3 * 2 * HIDDEN * GATES
    values = 4 * (2 * cell + 18 * BATCH * WORDS + 4 * BATCH * HIDDEN)
    spent = seconds(KernelPlan(), hardware)
    assert spent["point-wise"] == pytest.approx(2 * values / 1.0e9, rel=1e-12)
    assert spent["weight update"] == pytest.approx(2 * 7 * WEIGHTS / 1.0e9, rel=1e-12)


def test_replicas_add_up_their_gradients() -> None:
    """2 replicas: half of the 2-byte gradients there and back; the product work halves."""
    spent = seconds(KernelPlan(data=2), arithmetic_only(1.0e12, 1.0e9))
    assert spent["gradient reduction"] == pytest.approx(2 * WEIGHTS / 1.0e9, rel=1e-12)
    assert spent["matrix products"] == pytest.approx(step_flops(SMALL) / 2 / 1.0e12, rel=1e-12)
    assert spent["exchange"] == 0.0


# Over 2 ranks, in a step: half of all results (gates of both cells, words, embedded inputs), and half of each rank's 4 sets of its gates.
RESULTS = BATCH * (2 * GATES + WORDS + HIDDEN) / 2
GATE_EXCHANGES = 2 * 4 / 2 * BATCH * GATES / 2


def test_an_inner_split_exchanges_results_forward_and_their_gradients_backward() -> None:
    spent = seconds(KernelPlan("inner", 2), arithmetic_only(1.0e12, 1.0e9))
    assert spent["exchange"] == pytest.approx(2 * 4 * 2 * (RESULTS + GATE_EXCHANGES) / 1.0e9, rel=1e-12)
    assert spent["matrix products"] == pytest.approx(step_flops(SMALL) / 2 / 1.0e12, rel=1e-12)
    assert spent["weight exchange"] == 0.0


def test_rows_exchange_only_backward_and_gather_their_weights() -> None:
    """Half of each result's gradient, half of each rank's half of the inputs of both cells and the softmax; then half of the weights."""
    spent = seconds(KernelPlan(rows=2), arithmetic_only(1.0e12, 1.0e9))
    inputs = BATCH * (2 * 2 * HIDDEN + HIDDEN) / 2 / 2
    assert spent["exchange"] == pytest.approx(2 * 4 * (RESULTS + inputs) / 1.0e9, rel=1e-12)
    assert spent["weight exchange"] == pytest.approx(2 * WEIGHTS / 2 / 1.0e9, rel=1e-12)


def test_columns_gather_both_ways_and_turn_their_weights() -> None:
    """Results forward, gradients of the products' results backward; then half of each rank's half of the products' weights."""
    spent = seconds(KernelPlan(columns=2), arithmetic_only(1.0e12, 1.0e9))
    gradients = RESULTS - BATCH * HIDDEN / 2
    assert spent["exchange"] == pytest.approx(2 * 4 * (RESULTS + gradients + 2 * GATE_EXCHANGES) / 1.0e9, rel=1e-12)
    assert spent["weight exchange"] == pytest.approx(2 * PRODUCT_WEIGHTS / 2 / 2 / 1.0e9, rel=1e-12)


def test_a_chain_of_two_waits_for_its_first_input_and_last_output() -> None:
    """Cell on one device, cell and softmax on the other; forward (steps - 1) times the slower, and back."""
    hardware = arithmetic_only(1.0e12, ENDLESS)
    cell, softmax = 2 * BATCH * 2 * HIDDEN * GATES / 1e12, 2 * BATCH * HIDDEN * WORDS / 1e12
    copy = 2 * 2 * BATCH * HIDDEN / HOST_BANDWIDTH
    forward = (cell + copy) + (cell + softmax) + 3 * (cell + max(copy, softmax))
    backward = 2 * (2 * cell + softmax + 3 * (cell + softmax))
    assert priced(KernelPlan(layers=2), hardware).step_time == pytest.approx(forward + backward, rel=1e-12)
    busy = (step_flops(SMALL) / 1e12 + 4 * copy) / 2
    assert seconds(KernelPlan(layers=2), hardware)["waiting"] == pytest.approx(forward + backward - busy, rel=1e-9)


def test_memory_of_one_device_is_that_of_the_whole_model() -> None:
    kept = 4 * (2 * 5.5 * BATCH * GATES + 3 * BATCH * WORDS + BATCH + BATCH * HIDDEN)
    sizes = dict(memory(SMALL, KernelPlan()))
    assert (sizes["weights"], sizes["gradients"], sizes["activations"]) == (2 * WEIGHTS, 2 * WEIGHTS, 2 * kept)
    assert sizes["transposed weights"] == sizes["optimizer"] == sizes["exchange buffer"] == 0


def test_columns_hold_the_weights_of_their_products_twice() -> None:
    sizes = dict(memory(SMALL, KernelPlan(rows=2, columns=2)))
    assert sizes["weights"] == 2 * WEIGHTS / 2
    assert sizes["transposed weights"] == 2 * PRODUCT_WEIGHTS / 2
    assert sizes["gradients"] == 2 * WEIGHTS / 4
    assert sizes["exchange buffer"] == 2 * BATCH * GATES / 2


def test_the_fullest_device_of_a_chain_is_counted() -> None:
    """Of 4 devices one with a cell: it has more weights and activations than the embedding or the softmax."""
    sizes = dict(memory(SMALL, KernelPlan(layers=4)))
    assert sizes["weights"] == 2 * (2 * HIDDEN + 1) * GATES
    assert sizes["activations"] == 2 * 4 * 5.5 * BATCH * GATES


@pytest.mark.parametrize(("layers", "cells"), [(1, [5]), (2, [2, 3]), (3, [0, 5, 0]), (4, [0, 2, 3, 0]), (7, [0, 1, 1, 1, 1, 1, 0])])
def test_every_layer_is_on_one_device_of_the_chain(layers: int, cells: list[int]) -> None:
    held = split_over_chain(replace(SMALL, layers=5), KernelPlan(layers=layers))
    assert [part.cells for part in held] == cells
    assert [part.embedding for part in held] == [place == 0 for place in range(layers)]
    assert [part.softmax for part in held] == [place == layers - 1 for place in range(layers)]


# The schedule.


@given(st.lists(st.lists(st.floats(0.0, 8.0), min_size=1, max_size=3), min_size=1, max_size=5), st.floats(0.0, 8.0), st.integers(1, 6))
def test_the_chain_ends_when_its_operations_do_one_by_one(devices: list[list[float]], transfer: float, steps: int) -> None:
    """Each operation starts when its device is free and its input is there; each link carries one message at a time, in order."""
    free, link = [0.0] * len(devices), [0.0] * len(devices)
    for _ in range(steps):
        arrival = 0.0
        for place, operations in enumerate(devices):
            time = max(free[place], arrival)
            for operation in operations:
                time += operation
            free[place] = time
            link[place] = max(time, link[place]) + transfer
            arrival = link[place]
    ends = finish_times([sum(operations) for operations in devices], transfer, steps)
    assert ends == pytest.approx(free, rel=1e-12, abs=1e-12)


# Laws.


@every("plan", PLANS)
def test_the_breakdown_adds_up_to_the_step_time(plan: KernelPlan) -> None:
    one = priced(plan)
    assert total(one.time) == pytest.approx(float(one.step_time), rel=1e-12)
    assert all(time >= 0.0 for _, time in one.time)
    assert dict(one.time)["waiting"] == 0.0 or plan.layers > 1


def fleet() -> Hardware:
    """Devices that differ in every field, with arrays of one length everywhere."""
    spread = np.array([1.0, 1.37, 0.61, 2.9, 7.3])
    device = DEVICE
    for power, resource in enumerate(RESOURCES):
        device = faster(device, resource, np.roll(spread, power))
    numbers = {f.name: getattr(device, f.name) * spread for f in fields(device) if f.name in ("energy_per_flop", "idle_power")}
    return replace(device, **numbers, bundles=np.array([80.0, 108.0, 7.0, 132.0, 1.0]))


def test_a_device_costs_the_same_bits_alone_or_among_many() -> None:
    devices = fleet()
    prices = price(SMALL, devices, CLUSTER, PLANS)
    for column in range(5):
        alone = price(SMALL, take(devices, column), CLUSTER, PLANS)
        assert np.array_equal(prices.step_time[:, column], alone.step_time[:, 0])
        assert np.array_equal(prices.energy[:, column], alone.energy[:, 0])
        assert np.array_equal(prices.memory, alone.memory)


def test_a_table_has_the_prices_of_the_single_plans() -> None:
    prices = price(SMALL, DEVICE, CLUSTER, PLANS)
    for row, plan in enumerate(PLANS):
        one = priced(plan)
        assert (prices.step_time[row, 0], prices.energy[row, 0], prices.memory[row, 0]) == (one.step_time, one.energy, total(one.memory))


@examples(60)
@given(st.sampled_from(PLANS), *2 * [st.sampled_from(RESOURCES)], st.sampled_from((1.01, 1.5, 4.0)), st.floats(0.1, 10.0))
def test_more_of_a_resource_is_never_slower(plan: KernelPlan, other: str, resource: str, factor: float, start: float) -> None:
    device = faster(DEVICE, other, start)
    before, after = priced(plan, device), priced(plan, faster(device, resource, factor))
    assert after.step_time <= before.step_time * (1 + 1e-9)


@every("plan", PLANS)
def test_shorter_latencies_and_launches_are_never_slower(plan: KernelPlan) -> None:
    slow = priced(plan).step_time
    links = tuple(replace(link, latency=link.latency / 2, setup=link.setup / 2) for link in DEVICE.links)
    assert priced(plan, replace(DEVICE, links=links)).step_time <= slow
    for field in ("kernel", "host", "half_stream", "step", "accumulation"):
        efficiency = replace(DEVICE.efficiency, **{field: getattr(DEVICE.efficiency, field) / 2})
        assert priced(plan, replace(DEVICE, efficiency=efficiency)).step_time <= slow


@every("plan", PLANS)
def test_twice_the_rates_are_half_the_time(plan: KernelPlan) -> None:
    """Without latencies and launches every second is work over a rate; only the host's copies have a rate of their own."""
    links = tuple(replace(link, latency=0.0, setup=0.0) for link in DEVICE.links)
    device = replace(DEVICE, links=links, efficiency=NO_LOSSES)
    before, after = dict(priced(plan, device).time), dict(priced(plan, rates_times(device, 2.0)).time)
    for name in before.keys() - {"host copy", "waiting"}:
        assert after[name] == before[name] / 2.0, name
    assert after["host copy"] == before["host copy"]


def test_twice_the_rates_are_half_the_time_of_a_chain_with_slow_links() -> None:
    """Where the host's copies do not bind, the waiting halves too: the softmax device sets the pace."""
    device = rates_times(replace(DEVICE, links=tuple(replace(k, latency=0.0, setup=0.0) for k in DEVICE.links), efficiency=NO_LOSSES), 1e-6)
    before, after = (float(priced(KernelPlan(layers=4, data=4), one).step_time) for one in (device, rates_times(device, 2.0)))
    assert after == pytest.approx(before / 2.0, rel=1e-5)


@every("plan", PLANS)
def test_no_plan_beats_the_arithmetic(plan: KernelPlan) -> None:
    """Forward alone is a third of the FLOPs; all of them over all devices bound the step."""
    one, peak = priced(plan), DEVICE.throughput * DEVICE.efficiency.matrix
    assert one.step_time >= one.flops / (16 * peak)
    assert dict(one.time)["matrix products"] >= one.flops / (16 * peak)


@every("plan", PLANS)
def test_energy_is_at_least_idling_and_arithmetic(plan: KernelPlan) -> None:
    one = priced(plan)
    assert one.energy > 16 * DEVICE.idle_power * one.step_time + one.flops * DEVICE.energy_per_flop


def test_energy_of_exchanges_is_paid_by_every_device() -> None:
    """2 replicas of a chain of 2: gradients there and back by halves, and activations over one boundary in 4 steps each way."""
    hardware = arithmetic_only(1.0e12, 1.0e9)
    hardware = replace(hardware, links=(replace(hardware.links[0], energy=3.0e-9),), idle_power=7.0)
    one = priced(KernelPlan(data=2, layers=2), hardware)
    gradients, messages = 2 * 2 * WEIGHTS, 2 * 2 * 4 * 2 * BATCH / 2 * HIDDEN
    assert one.energy == pytest.approx(3.0e-9 * (gradients + messages) + 4 * 7.0 * one.step_time, rel=1e-12)


def test_launching_many_small_kernels_sets_the_pace() -> None:
    """6 kernels a cell forward and 7 backward, 5 and 6 for the softmax, 1 and 1 for the embedding, at 1 ms each."""
    slow = replace(DEVICE, efficiency=replace(NO_LOSSES, host=1.0e-3))
    times = dict(priced(KernelPlan(), replace(slow, links=slow.links[:1])).time)
    spent = total(tuple(item for item in times.items() if item[0] in ("matrix products", "point-wise", "exchange", "host copy", "launch")))
    assert spent == pytest.approx(4 * (2 * (6 + 7) + 5 + 6 + 1 + 1) * 1.0e-3, rel=1e-12)


# The generator against the published case study of DeepFlow (repository nanocad-lab/DeepFlow): every row of the authors' result files.

MM2 = 1.0e-6
CASE_STUDY_GIB = 2.0**30


def overlaid(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        merged[key] = overlaid(merged[key], value) if isinstance(value, dict) and key in merged else value
    return merged


@cache
def author_inputs() -> dict[str, Any]:
    inputs: dict[str, Any] = yaml.safe_load(reference("crossflow/author_inputs.yaml").read_text())
    return inputs


def inputs_of(sweep: str, level: str) -> dict[str, Any]:
    inputs = author_inputs()
    recipe = inputs["sweeps"][sweep]
    return overlaid(overlaid(inputs["base"], recipe["override"]), inputs[recipe["levels"]][level])


def voltages(given: dict[str, Any]) -> dict[str, float]:
    return {f"{kind}_voltage": float(given[f"{kind}_voltage"]) for kind in ("nominal", "threshold", "margin")}


def sram(given: dict[str, Any]) -> SramTechnology:
    return SramTechnology(
        area_per_bit=given["area_per_bit"] * MM2,
        energy_per_bit=given["dynamic_energy_per_bit"],
        static_power_per_bit=given["static_power_per_bit"],
        bank_capacity=given["bank_capacity"],
        controller_area=given["controller_area_per_link"] * MM2,
        overhead=given["overhead"],
        utilisation=given["util"],
    )


def link(given: dict[str, Any], degree: int) -> LinkTechnology:
    return LinkTechnology(
        area=given["nominal_area_per_link"] * MM2,
        links_per_metre=given["num_links_per_mm"] * 1e3,
        energy_per_bit=given["nominal_energy_per_link"],
        nominal_frequency=given["nominal_frequency"],
        utilisation=given["util"],
        latency=given["latency"],
        degree=degree,
        **voltages(given),
    )


def technology_of(inputs: dict[str, Any]) -> Technology:
    core, dram = inputs["core"], inputs["dram"]
    return Technology(
        name="",
        core=CoreTechnology(
            area=core["operating_area_per_mcu"] * MM2,
            nominal_power=core["nominal_power_per_mcu"],
            flop_per_cycle=core["nominal_flop_rate_per_mcu"],
            cores_per_bundle=core["num_mcu_per_bundle"],
            nominal_frequency=core["nominal_frequency"],
            utilisation=core["util"],
            **voltages(core),
        ),
        registers=sram(inputs["sram_reg"]),
        l1=sram(inputs["sram_l1"]),
        l2=sram(inputs["sram_l2"]),
        dram=DramTechnology(
            stack_capacity=dram["stack_capacity"],
            stack_area=dram["area_per_stack"] * MM2,
            controller_area=dram["mem_ctrl_area"] * MM2,
            links_per_stack=dram["num_links_per_stack"],
            links_per_metre=dram["num_links_per_mm"] * 1e3,
            energy_per_bit=dram["dynamic_energy_per_bit"],
            static_power_per_bit=dram["static_power_per_bit"],
            nominal_frequency=dram["nominal_frequency"],
            maximum_voltage=dram["max_voltage"],
            **voltages(dram),
        ),
        intra=link(inputs["network"]["intra"], degree=4),
        inter=link(inputs["network"]["inter"], degree=1),
    )


def parts(given: dict[str, float], dram: str) -> Parts:
    return Parts(given["core"], given["reg"], given["l1"], given["l2"], given[dram], given["intra"], given["inter"])


def split_of(inputs: dict[str, Any]) -> Split:
    area, power = inputs["area"], inputs["power"]
    edges = Edges(**inputs["perimeter"]["fraction"])
    fractions = parts(area["fraction"], "dram_ctrl"), parts(power["fraction"], "dram")
    return split_from_fractions(area["die_mm2"] * MM2, area["package_mm2"] * MM2, power["tdp_w"], *fractions, edges)


@cache
def architecture_of(sweep: str, level: str) -> Architecture:
    inputs = inputs_of(sweep, level)
    return generate(technology_of(inputs), split_of(inputs))


def case_study() -> list[tuple[str, str, dict[str, str]]]:
    """Every published row with its sweep and level, also under the further names that gave the same row."""
    with reference("crossflow/author_casestudy.csv").open() as file:
        rows = list(csv.DictReader(file))
    points = [(f"{row['sweep']}:{row['level']};{row['same_as']}".strip(";").split(";"), row) for row in rows]
    return [(*point.split(":"), row) for names, row in points for point in names]  # type: ignore[misc]


def printed_half_unit(gigabytes: float) -> float:
    """Half of the last digit that the authors printed: one decimal, of GB/s or, from 1024 GB/s on, of TB/s."""
    return 0.05 * (1024 if gigabytes >= 1024 else 1)


def assert_same_figures(one: Technology, other: Technology) -> None:
    for part in ("core", "registers", "l1", "l2", "dram", "intra", "inter"):
        figures, others = ({**asdict(getattr(technology, part)), "rates": 0.0} for technology in (one, other))
        assert figures == pytest.approx(others, rel=1e-12), part


@pytest.mark.data
def test_counts_and_capacities_of_the_case_study_are_exact() -> None:
    checked = 0
    for sweep, level, row in case_study():
        built = architecture_of(sweep, level)
        assert (built.core.cores, built.core.bundles) == (float(row["num_mcu"]), float(row["num_bundles"]))
        assert (built.dram.stacks, built.dram.capacity) == (float(row["dram_stacks"]), float(row["dram_GB"]) * CASE_STUDY_GIB)
        for level_name, part in (("l2", built.l2), ("l1", built.l1), ("l0", built.registers)):
            assert part.capacity == float(row[f"{level_name}_MB"]) * 2**20
        checked += 1
    assert checked >= 1344


@pytest.mark.data
def test_peak_and_operating_point_of_the_case_study_are_reproduced() -> None:
    for sweep, level, row in case_study():
        core = architecture_of(sweep, level).core
        assert core.peak == pytest.approx(float(row["peak_tflops"]) * 1e12, rel=5e-8)
        assert core.frequency == pytest.approx(float(row["core_GHz"]) * 1e9, abs=0.0051e9)
        assert core.voltage == pytest.approx(float(row["core_V"]), abs=0.0051)


@pytest.mark.data
def test_bandwidths_of_the_case_study_agree_to_the_last_printed_digit() -> None:
    for sweep, level, row in case_study():
        built = architecture_of(sweep, level)
        bandwidths = {
            "dram_GBps": built.dram.bandwidth,
            "l2_bw": built.l2.bandwidth,
            "l1_bw": built.l1.bandwidth,
            "l0_bw": built.registers.bandwidth,
            "intra_GBps": built.intra.bandwidth,
            "inter_GBps": built.inter.bandwidth,
        }
        for column, bandwidth in bandwidths.items():
            computed = float(bandwidth) / CASE_STUDY_GIB
            assert computed == pytest.approx(float(row[column]), abs=printed_half_unit(computed) * (1 + 1e-9)), (sweep, level, column)


@pytest.mark.data
def test_no_core_or_dram_of_the_case_study_is_throttled() -> None:
    """There the authors' rule f(V / lowest V)^2 differs from the linear one here; as no published chip is there, one rule is enough."""
    for sweep, level, _ in case_study():
        technology, built = technology_of(inputs_of(sweep, level)), architecture_of(sweep, level)
        for circuit, voltage in ((technology.core, built.core.voltage), (technology.dram, built.dram.voltage)):
            assert voltage > circuit.threshold_voltage + circuit.margin_voltage


@pytest.mark.data
@pytest.mark.parametrize("step", range(7))
def test_logic_steps_give_the_published_nodes(step: int) -> None:
    level = ("14", "10", "7", "5", "3", "2", "1")[step]
    scaled = scale_logic(technology_of(inputs_of("v100-energy_per_flop", "14")), step)
    assert_same_figures(scaled, technology_of(inputs_of("v100-energy_per_flop", level)))


@pytest.mark.data
@every("step", range(19))
def test_network_steps_give_the_published_links(step: int) -> None:
    scaled = scale_network(technology_of(inputs_of("energy_per_xbit", "1")), step)
    assert_same_figures(scaled, technology_of(inputs_of("energy_per_xbit", str(step + 1))))


# The trends of DeepFlow's published case study (arXiv 2211.03309): an LSTM language model on 64 generated devices, 34 plans each.
#
# Times are not compared: the published ones charge element-wise work to registers and divide link bandwidths. The trends must hold.

MODEL = Lstm("language model", layers=2, hidden=19968, vocabulary=800_000, sequence=20, global_batch=4096)
LSTM_CASE_STUDY_CLUSTER = Cluster(64, (64,))
LSTM_CASE_STUDY_PLANS = kernel_plans(MODEL, 64, layers=(1,))
NODES = ("14", "10", "7", "5", "3", "2", "1")
NETWORK = tuple(str(step) for step in range(1, 20))
DRAM = ("HBM1", "HBM2", "HBM2e-8", "HBM2e-12", "HBM2e-16")
LOGIC_SWEEPS = ("v100-energy_per_flop", "energy_per_flop_inter_bw_384GB", "energy_per_flop_inter_bw_1395GB", "siif-energy_per_flop")
EFFICIENCY = Efficiency(matrix=1.0, accumulation=0.0, stream=1.0, half_stream=0.0, kernel=9.0e-6, host=0.0, step=0.0)


def device_of(sweep: str, level: str) -> Hardware:
    """A generated device with the one kind of link that it has."""
    technology = technology_of(inputs_of(sweep, level))
    device = device_from(technology, architecture_of(sweep, level), MODEL.value_bytes, EFFICIENCY)
    return replace(device, links=tuple(link for link in device.links if link.bandwidth > 0.0))


@cache
def step_times(sweep: str, levels: tuple[str, ...]) -> Array:
    """Seconds of each plan (rows) at each level (columns)."""
    return np.hstack([price(MODEL, device_of(sweep, level), LSTM_CASE_STUDY_CLUSTER, LSTM_CASE_STUDY_PLANS).step_time for level in levels])


def best(sweep: str, levels: tuple[str, ...]) -> Array:
    times: Array = step_times(sweep, levels).min(axis=0)
    return times


def peak(sweep: str, level: str) -> float:
    return float(device_of(sweep, level).throughput)


@pytest.mark.data
def test_logic_alone_saturates() -> None:
    """22.7 times the peak, but far less than half of that in speed, the less the slower the network, and little after 5 nm."""
    gain = peak(LOGIC_SWEEPS[0], "1") / peak(LOGIC_SWEEPS[0], "14")
    slow, middle, fast = (best(sweep, NODES) for sweep in LOGIC_SWEEPS[:3])
    assert gain > 20.0
    assert slow[0] / slow[-1] < middle[0] / middle[-1] < fast[0] / fast[-1] < gain / 3
    assert slow[0] / slow[-1] < 3.0
    assert slow[3] / slow[-1] < 1.3 < slow[0] / slow[3]


@pytest.mark.data
@pytest.mark.parametrize("sweep", LOGIC_SWEEPS)
def test_a_better_node_is_never_slower(sweep: str) -> None:
    """The published 7 nm is slower than 10 nm at 384 GB/s and on the wafer, although every resource is larger there."""
    assert np.all(np.diff(best(sweep, NODES)) <= 0.0)


@pytest.mark.data
def test_the_best_strategy_changes_with_the_network() -> None:
    winners = step_times("energy_per_xbit", NETWORK).argmin(axis=0)
    assert LSTM_CASE_STUDY_PLANS[winners[0]] != LSTM_CASE_STUDY_PLANS[winners[-1]]
    assert (
        LSTM_CASE_STUDY_PLANS[winners[0]].data > LSTM_CASE_STUDY_PLANS[winners[-1]].data
    )  # faster links favour cutting products over copying weights


@pytest.mark.data
def test_the_best_strategy_changes_with_logic() -> None:
    assert len(set(step_times(LOGIC_SWEEPS[0], NODES).argmin(axis=0))) > 1


@pytest.mark.data
def test_the_network_saturates() -> None:
    """Each step is worth less than the one before; 1000 times the bandwidth is worth no more than twice the speed."""
    times = best("energy_per_xbit", NETWORK)
    gains = -np.diff(times)
    assert np.all(gains >= 0.0)
    assert times[0] / times[-1] < 2.0
    assert times[5] - times[-1] < 0.1 * (times[0] - times[5])


@pytest.mark.data
def test_faster_dram_helps_until_l2_binds() -> None:
    """HBM2e-16 has 4.3 times the bandwidth of HBM1, but usable L2 (968 GiB/s) is hardly faster than HBM1: without that limit HBM pays."""
    times = best("energy_per_membit", DRAM)
    assert np.all(np.diff(times) <= 0.0)
    assert times[-1] < times[0]
    first, last = (device_of("energy_per_membit", level) for level in (DRAM[0], DRAM[-1]))
    wide = [replace(device, l2=replace(device.l2, bandwidth=8.0 * device.l2.bandwidth)) for device in (first, last)]
    slow, fast = (price(MODEL, device, LSTM_CASE_STUDY_CLUSTER, LSTM_CASE_STUDY_PLANS).step_time.min() for device in wide)
    assert slow - fast > 10.0 * (times[0] - times[-1])


@pytest.mark.data
def test_strategy_matters_as_much_as_technology() -> None:
    for sweep in LOGIC_SWEEPS:
        times = step_times(sweep, NODES)
        assert np.all(times.max(axis=0) > 1.8 * times.min(axis=0)), sweep


@pytest.mark.data
def test_gradients_of_unsplit_weights_cost_the_most_to_replicate() -> None:
    """64 replicas reduce all weights: at 48 GB/s that is the largest part that is no arithmetic, and a 4-way inner split quarters it."""
    device = device_of(LOGIC_SWEEPS[0], "14")
    whole = dict(bill(MODEL, device, LSTM_CASE_STUDY_CLUSTER, KernelPlan(data=64)).time)["gradient reduction"]
    quarter = dict(bill(MODEL, device, LSTM_CASE_STUDY_CLUSTER, KernelPlan("inner", 4, data=16)).time)["gradient reduction"]
    assert quarter == pytest.approx(whole / 4, rel=0.1)


@pytest.mark.data
def test_memory_of_weights_and_activations_is_the_published_one() -> None:
    """For cuts by rows and columns; an inner split here keeps its share of the results, the published one all of them."""
    published = {
        KernelPlan("rows-columns", int(row["kp1"]), int(row["kp2"]), int(row["dp"])): float(row["mem_per_shard_GB"])
        for _, _, row in case_study()
        if row["kp_type"] == "RC"
    }
    assert len(published) == 28
    for plan, gigabytes in published.items():
        sizes = dict(memory(MODEL, plan))
        assert (sizes["weights"] + sizes["activations"]) / CASE_STUDY_GIB == pytest.approx(gigabytes, abs=0.0501), plan
