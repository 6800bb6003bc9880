"""Power of chips: what products and streams draw, the average over a step, and the voltage-frequency law."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.device import Architecture, device_from
from crossopt.crossflow.evaluate import Design, evaluate
from crossopt.crossflow.generator import Edges, Split, generate
from crossopt.crossflow.hardware import Cluster, Efficiency, Hardware, at_power, faults
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.roofline import Cost, Product, fused_attention_cost, product_cost, stream_cost
from crossopt.crossflow.technology import MEMORIES, Activity, Parts, Technology, Traffic, at_precision
from crossopt.crossflow.transformer import price, step_times
from crossopt.crossflow.voltage import efficient_power, nominal_frequency_power, operating_point
from crossopt.crossflow.workload import Gemm
from crossopt.instances.catalogue.registry import build_device, device, names, technology
from crossopt.instances.catalogue.technologies import build_technology, usual_split
from tests.crossflow.strategies import MODELS, plans
from tests.extent import examples

# What large products and streams draw of a chip, counted by hand on the usual chip of 7 nm.

ENTRY = technology("accelerator-7nm")
PRODUCTS, STREAMS = build_technology(ENTRY, "accelerator-7nm").sustained


def chip(memory: str = "hbm2e", package_area: float = 1700e-6, **powers: float) -> tuple[Technology, Architecture]:
    """The usual chip with stacks of some generation, and other powers."""
    made, split = build_technology(ENTRY, "accelerator-7nm", memory=memory), usual_split(ENTRY)
    return made, generate(made, replace(_with(split, powers), package_area=package_area))


def _with(split: Split, powers: dict[str, float]) -> Split:
    return replace(split, powers=replace(split.powers, **powers))


def test_products_move_what_their_flops_take_whatever_memories_could() -> None:
    """440 cores do 512 FLOPs a cycle of 1.41 GHz, 0.82 of them 260 TFLOP/s: through L2 1 / 171 value, 2 pJ a bit, 49 W."""
    _, built = chip()
    rate = 0.82 * 440 * 512 * 1.41e9
    watts = {"registers": (0.2857, 30e-15), "l1": (0.0215, 250e-15), "l2": (0.00586, 2e-12), "dram": (0.00037, 5e-12)}
    for level, (values, joules) in watts.items():
        assert built.moved(level, PRODUCTS) == pytest.approx(rate * 2 * values * 8 * joules, rel=1e-9), level
        assert built.drawn(level, PRODUCTS) == getattr(built, level).static + built.moved(level, PRODUCTS), level
    assert built.moved("l2", PRODUCTS) == pytest.approx(48.8, abs=0.1)
    assert chip(l2=180.0)[1].drawn("l2", PRODUCTS) == built.drawn("l2", PRODUCTS)


def test_an_l2_that_carries_less_than_products_ask_for_saves_them_no_power() -> None:
    """Else a starved L2 would hold back the cores in place of a lower clock, and buy more of them: 36 bytes of 64 a cycle draw as much."""
    made, split = build_technology(ENTRY, "accelerator-7nm"), usual_split(ENTRY)
    fast, slow = (generate(replace(made, l2=replace(made.l2, bank_bytes_per_cycle=each)), split) for each in (64.0, 36.0))
    assert slow.l2.bandwidth < 0.6 * fast.l2.bandwidth
    assert slow.power((PRODUCTS,)) == fast.power((PRODUCTS,))


def test_streams_run_at_the_clock_that_lets_through_what_stacks_deliver() -> None:
    """2,048 GB/s through 80 banks of 64 bytes, seven tenths of the cycles: 571 MHz, for which the lowest supply, 0.65 V, is enough. Of 39 W
    of uncore (0.65 / 0.8)^2 x 571 / 1,410 is left."""
    made, built = chip(dram=90.0)
    assert built.dram.bandwidth == pytest.approx(2048e9)
    clock = 2048e9 / (80 * 64 * 0.7)
    share = (0.65 / 0.8) ** 2 * clock / 1.41e9
    assert clock == pytest.approx(571e6, rel=1e-3)
    assert built.beside(STREAMS) - built.uncore_idle == pytest.approx(0.0475e6 * 815e-6 * share)
    switched = share * 440 * (0.4005 - 0.06)
    assert built.drawn("core", STREAMS) - built.core.leakage == pytest.approx(switched * (0.516 + 0.125 * 0.484))
    assert built.drawn("l2", STREAMS) == pytest.approx(built.l2.static + 2048e9 * 8 * 2e-12)
    assert built.drawn("dram", STREAMS) == built.dram.power
    assert made.sustained == (PRODUCTS, STREAMS)


def test_faster_stacks_cost_products_nothing_and_need_a_higher_clock_in_streams() -> None:
    """Four stacks of HBM3E deliver what L2 lets through, nearly twice what five of HBM2E do, for 3.75 in place of 5 pJ a bit: at 1,410 /
    1.3125 MHz, for which the overdrive d with d^2 / (d + 0.25) = 0.762 x 0.378 is 0.449 and the supply 0.699 V. A package of 1,500 mm^2
    holds two of them a side."""
    slow, fast = chip(dram=200.0)[1], chip("hbm3e", 1500e-6, dram=200.0, l2=150.0)[1]
    more = 80 * 64 * 0.7 * 1.41e9 / 1.3125 / 2048e9
    assert fast.dram.bandwidth == pytest.approx(more * slow.dram.bandwidth)
    assert fast.moved("dram", PRODUCTS) == pytest.approx(0.75 * slow.moved("dram", PRODUCTS))
    assert fast.core.slow_clocked == pytest.approx(slow.core.slow_clocked * more * (0.699 / 0.65) ** 2, rel=2e-3)
    assert fast.power((PRODUCTS,)) < slow.power((PRODUCTS,)) + 2.0


def test_stacks_run_no_faster_than_l2_lets_through_and_draw_what_that_clock_takes() -> None:
    """4,096 wires at 7.52 of 8 Gb/s: overdrive d with d^2 / (d + 0.4) = 0.940 x 0.449 is 0.673, supply 1.073 V of 1.104, where 3.75 pJ a
    bit are 3.54. Under a wider L2 they run at their rate, and where nothing is said of L2 too."""
    made, built = chip("hbm3e", 1500e-6, dram=200.0, l2=150.0)
    through = 80 * 64 * 0.7 * 1.41e9 / 1.3125
    assert (built.dram.links, built.dram.bandwidth) == (4096, pytest.approx(through))
    assert built.dram.frequency == pytest.approx(8 * through / 4096)
    assert built.dram.voltage == pytest.approx(1.0729, abs=1e-4)
    assert built.dram.power == pytest.approx(built.dram.static + 8 * through * 3.75e-12 * (1.0729 / 1.104) ** 2, rel=1e-3)
    split = replace(_with(usual_split(ENTRY), {"dram": 200.0, "l2": 150.0}), package_area=1500e-6)
    free = replace(made, dram=replace(made.dram, least_l2=0.0))
    wide = replace(made, l2=replace(made.l2, bank_bytes_per_cycle=96.0))
    for other in (generate(free, split), generate(wide, _with(split, {"l2": 200.0}))):
        assert other.dram.bandwidth == pytest.approx(4096 * 1e9)
        assert other.dram.power > built.dram.power


def test_narrow_products_draw_what_wide_ones_do() -> None:
    """Twice the FLOPs on operands of half as many bytes."""
    made = build_technology(ENTRY, "accelerator-7nm")
    narrow = at_precision(made, 2.0, 1.0)
    wide, eight = (generate(one, usual_split(ENTRY)) for one in (made, narrow))
    for level in MEMORIES:
        assert eight.moved(level, narrow.sustained[0]) == pytest.approx(wide.moved(level, made.sustained[0]))
    assert narrow.sustained[1] == STREAMS
    assert np.isclose(eight.power(narrow.sustained), wide.power(made.sustained))


def test_a_kernel_has_the_pace_of_its_cores_or_of_its_memory() -> None:
    with pytest.raises(ValueError, match="either the cores or the memory set the rate of a kernel"):
        Activity(per_flop=Traffic(l2=0.1), streams=True)
    with pytest.raises(ValueError, match="not below 0"):
        Traffic(l1=-0.1)


# No step of any chip draws more on average than the power that the chip is rated by, whatever it is made of and whatever it trains.

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


# The voltage-frequency law: hand-computed points, the clamps, and monotone and reproducible to the last bit.


@dataclass(frozen=True)
class Circuit:
    nominal_frequency: float = 1.0e9
    nominal_voltage: float = 1.0
    threshold_voltage: float = 0.25
    margin_voltage: float = 0.25
    maximum_voltage: float = 1000.0


PLAIN = Circuit()
CAPPED = Circuit(maximum_voltage=1.25)
CIRCUITS = [
    PLAIN,
    CAPPED,
    Circuit(1.33e9, 0.8, 0.2, 0.35),
    Circuit(1.33e9, 0.42515280000000016, 0.2, 0.35),
    Circuit(4.0e9, 0.9774, 0.4, 0.6, 1.8),
    Circuit(2.0e10, 1.2, 0.35, 0.5),
    Circuit(1.0e9, 0.9, 0.3, 1e-6, 1.5),
]


def test_nominal_power_gives_the_nominal_point() -> None:
    point = operating_point(PLAIN, 3.0, 3.0)
    assert point.voltage == pytest.approx(1.0, rel=1e-15)
    assert point.frequency == pytest.approx(1.0e9, rel=1e-15)


def test_a_point_above_nominal_by_hand() -> None:
    """At 1.25 V: power 1.25 * 1^2 / (1 * 0.75^2) = 20/9 and frequency (1^2 / 1.25) / (0.75^2 / 1) = 64/45 of nominal."""
    point = operating_point(PLAIN, 20 / 9 * 7.0, 7.0)
    assert point.voltage == pytest.approx(1.25, rel=1e-14)
    assert point.frequency == pytest.approx(64 / 45 * 1.0e9, rel=1e-14)


def test_below_the_lowest_voltage_the_clock_is_throttled_in_proportion_to_power() -> None:
    """At 0.5 V: power 0.5 * 0.25^2 / 0.75^2 = 1/18 and frequency (0.25^2 / 0.5) / 0.75^2 = 2/9 of nominal."""
    for share in (1.0, 0.5, 0.125, 0.0):
        point = operating_point(PLAIN, share / 18, 1.0)
        assert point.voltage == pytest.approx(0.5)
        assert point.frequency == pytest.approx(share * 2 / 9 * 1.0e9, rel=1e-12)


def test_what_leaks_is_drawn_in_proportion_to_the_voltage_and_the_clock_has_what_it_leaves() -> None:
    """At 1.25 V the points above; 0.4 W that leak at 1 V are 0.5 W there, and 0.2 W at the lowest voltage, which leave no clock alone."""
    point = operating_point(PLAIN, 20 / 9 * 7.0 + 0.5, 7.0, 0.4)
    assert (point.voltage, point.frequency) == (pytest.approx(1.25, rel=1e-14), pytest.approx(64 / 45 * 1.0e9, rel=1e-14))
    for share, power in ((1.0, 1 / 18 + 0.2), (0.5, 0.5 / 18 + 0.2), (0.0, 0.2), (0.0, 0.1)):
        point = operating_point(PLAIN, power, 1.0, 0.4)
        assert point.voltage == pytest.approx(0.5)
        assert point.frequency == pytest.approx(share * 2 / 9 * 1.0e9, rel=1e-12, abs=1e-3)


def test_throttling_is_the_rule_that_deepflow_states_for_links() -> None:
    """f(V) (V / lowest V)^2 with the unclamped V: at 0.375 V the power is 0.375 * 0.125^2 / 0.75^2 of nominal."""
    voltage = 0.375
    power = voltage * (voltage - 0.25) ** 2 / 0.75**2
    stated = 1.0e9 * ((voltage - 0.25) ** 2 / voltage) / 0.75**2 * (voltage / 0.5) ** 2
    assert operating_point(PLAIN, power, 1.0).frequency == pytest.approx(stated, rel=1e-12)


def test_power_beyond_the_maximum_voltage_is_left_unused() -> None:
    for power in (20 / 9, 3.0, 1e12, 1e300):
        point = operating_point(CAPPED, power, 1.0)
        assert point.power == pytest.approx(20 / 9)
        assert point.voltage == pytest.approx(1.25)
        assert point.frequency == pytest.approx(64 / 45 * 1.0e9)


def test_power_beyond_the_fastest_clock_is_left_unused() -> None:
    """64/45 of the nominal clock take 1.25 V, as above; where the lowest voltage is too fast already, that is what runs."""
    for power in (20 / 9, 3.0, 1e300):
        point = operating_point(PLAIN, power, 1.0, fastest=64 / 45 * 1.0e9)
        assert (point.voltage, point.power) == (pytest.approx(1.25), pytest.approx(20 / 9))
        assert point.frequency == pytest.approx(64 / 45 * 1.0e9)
    assert operating_point(PLAIN, 3.0, 1.0, fastest=1.0e8).frequency == pytest.approx(2 / 9 * 1.0e9)
    assert efficient_power(PLAIN, 1.0, 10.0, 1.0e9) == pytest.approx(1.0 + 10.0)


@given(st.sampled_from(CIRCUITS), st.floats(0.0, 1e6), st.floats(1e-3, 1e3), st.sampled_from([0.0, 0.2, 2.0]))
def test_the_power_drawn_at_the_point_is_the_power_used(circuit: Circuit, power: float, nominal_power: float, leaks: float) -> None:
    """Power is frequency times voltage squared and leakage times voltage, in every regime but where leakage alone is more."""
    point = operating_point(circuit, power, nominal_power, nominal_power * leaks)
    volts = point.voltage / circuit.nominal_voltage
    drawn = nominal_power * ((point.frequency / circuit.nominal_frequency) * volts**2 + leaks * volts)
    assert drawn == pytest.approx(point.power, rel=1e-11) if point.frequency > 0.0 else drawn >= point.power * (1 - 1e-11)
    assert point.power <= power


@pytest.mark.parametrize("circuit", CIRCUITS)
def test_nominal_frequency_costs_nominal_power_or_more(circuit: Circuit) -> None:
    point = operating_point(circuit, nominal_frequency_power(circuit, 5.0), 5.0)
    assert point.frequency == pytest.approx(circuit.nominal_frequency, rel=1e-12)


def neighbours(random: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Powers over fourteen decades, each with one that is larger by between one unit in the last place and a factor of ten."""
    powers = 10.0 ** random.uniform(-8.0, 6.0, count)
    steps = 10.0 ** random.uniform(-16.0, 0.95, count)
    return powers, np.maximum(np.nextafter(powers, np.inf), powers * (1.0 + steps))


@pytest.mark.parametrize("fastest", [1.1, 1e21])
@pytest.mark.parametrize("leaks", [0.0, 0.3])
@pytest.mark.parametrize("circuit", CIRCUITS)
def test_more_power_never_lowers_voltage_or_frequency_in_the_last_bit(circuit: Circuit, leaks: float, fastest: float) -> None:
    fastest *= circuit.nominal_frequency
    low, high = (operating_point(circuit, powers, 1.0, leaks, fastest) for powers in neighbours(np.random.default_rng(1), 100_000))
    assert np.all(high.frequency >= low.frequency)
    assert np.all(high.voltage >= low.voltage)


@pytest.mark.parametrize("leaks", [0.0, 0.3])
@pytest.mark.parametrize("circuit", CIRCUITS)
def test_frequency_is_monotone_across_the_clamps(circuit: Circuit, leaks: float) -> None:
    """The law changes its form at the lowest and at the highest voltage: walk over each seam float by float."""
    nominal = (circuit.nominal_voltage - circuit.threshold_voltage) ** 2 * circuit.nominal_voltage
    for voltage in (circuit.threshold_voltage + circuit.margin_voltage, circuit.maximum_voltage):
        seam = voltage * (voltage - circuit.threshold_voltage) ** 2 / nominal + leaks * voltage / circuit.nominal_voltage
        powers = seam + np.arange(-5000, 5000) * np.spacing(seam)
        assert np.all(np.diff(operating_point(circuit, powers, 1.0, leaks).frequency) >= 0.0)


@given(st.sampled_from(CIRCUITS), st.lists(st.floats(0.0, 1e9), min_size=1, max_size=9))
def test_floats_and_arrays_give_the_same_bits(circuit: Circuit, powers: list[float]) -> None:
    together = operating_point(circuit, np.array(powers), 2.5, 0.5)
    for index, power in enumerate(powers):
        alone = operating_point(circuit, power, 2.5, 0.5)
        for name in ("voltage", "frequency", "power"):
            assert getattr(alone, name) == getattr(together, name)[index]
