"""Generated chips: by hand, as devices that are priced, and the properties that bounds on whole regions of designs rest on."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.arrays import Array, Mask, Real
from crossopt.crossflow.device import Architecture, device_from
from crossopt.crossflow.dies import die_with_links, perimeter_of
from crossopt.crossflow.envelope import Envelope, envelope
from crossopt.crossflow.generator import Edges, Split, compute, dram_power_at_nominal, generate, port_bandwidth, split_from_fractions
from crossopt.crossflow.hardware import Efficiency, Hardware, faults
from crossopt.crossflow.technology import (
    Activity,
    CoreTechnology,
    DramTechnology,
    LinkTechnology,
    Parts,
    SramTechnology,
    Technology,
    Traffic,
    Uncore,
    at_precision,
    scale_logic,
    scale_network,
)
from crossopt.instances.catalogue.registry import names, technology
from crossopt.instances.catalogue.technologies import build_technology, usual_split
from tests.extent import examples

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


# The generator on chips computed by hand, and the properties that bounds on whole regions of designs rest on.

Record = TypeVar("Record", bound="DataclassInstance")

MM2 = 1.0e-6
GIB = 2.0**30

BASE = Technology(
    name="14 nm",
    core=CoreTechnology(
        area=0.38 * MM2,
        nominal_power=0.13,
        flop_per_cycle=128,
        cores_per_bundle=8,
        nominal_frequency=1.33e9,
        nominal_voltage=0.8,
        threshold_voltage=0.2,
        margin_voltage=0.35,
        utilisation=0.85,
    ),
    registers=SramTechnology(8.0e-8 * MM2, 2.0e-15, 9.0e-12, 16384, 0.0, 0.25),
    l1=SramTechnology(8.0e-8 * MM2, 2.0e-15, 8.0e-12, 32768, 0.004 * MM2, 0.2),
    l2=SramTechnology(6.4e-8 * MM2, 3.5e-15, 8.4e-12, 32768, 0.004 * MM2, 0.2, utilisation=0.45),
    dram=DramTechnology(
        stack_capacity=4 * GIB,
        stack_area=100 * MM2,
        controller_area=5 * MM2,
        links_per_stack=1024,
        links_per_metre=400e3,
        energy_per_bit=4.2e-12,
        static_power_per_bit=6.0e-13,
        nominal_frequency=1.38e9,
        nominal_voltage=1.2,
        threshold_voltage=0.4,
        margin_voltage=0.6,
        maximum_voltage=1.8,
    ),
    intra=LinkTechnology(2.5e-5 * MM2, 400e3, 1.0e-12, 3.0e9, 1.0, 0.25, 0.45, degree=4, utilisation=0.96, latency=5.0e-6),
    inter=LinkTechnology(0.045 * MM2, 20e3, 1.3e-11, 20.0e9, 1.2, 0.35, 0.5, degree=1, utilisation=0.96, latency=5.0e-6),
)
AREAS = Parts(core=0.3, registers=0.022, l1=0.102, l2=0.08062, dram=0.0248, intra=0.0, inter=0.1)
POWERS = Parts(core=0.3745, registers=0.0055, l1=0.0016, l2=0.000217, dram=0.16, intra=0.0, inter=0.00935)
EDGES = Edges(dram=0.5, intra=0.0, inter=0.5)
V100 = split_from_fractions(815 * MM2, 1230 * MM2, 300.0, AREAS, POWERS, EDGES)


def flat(record: "DataclassInstance", prefix: str = "") -> dict[str, Real]:
    """Every figure of an architecture or split by its dotted name."""
    figures: dict[str, Real] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        plain = isinstance(value, int | float | np.ndarray)
        figures |= {prefix + field.name: value} if plain else flat(value, f"{prefix}{field.name}.")
    return figures


def with_figures(split: Split, **figures: Real) -> Split:
    """The split with figures replaced by name: `areas_core`, `edges_dram`, `die_area`."""
    for name, value in figures.items():
        group, _, part = name.partition("_")
        figure = {name: value} if group in ("die", "package") else {group: replace(getattr(split, group), **{part: value})}
        split = replace(split, **figure)
    return split


SPEEDS: dict[str, Callable[[Architecture], Any]] = {
    "powers_core": lambda built: built.core.peak,
    "powers_registers": lambda built: built.registers.bandwidth,
    "powers_l1": lambda built: built.l1.bandwidth,
    "powers_l2": lambda built: built.l2.bandwidth,
    "powers_dram": lambda built: built.dram.bandwidth,
    "powers_intra": lambda built: built.intra.bandwidth,
    "powers_inter": lambda built: built.inter.bandwidth,
}


# Chips computed by hand -----------------------------------------------------------------------------------------------------------


def test_a_14_nm_chip_of_815_square_millimetres_has_the_figures_of_a_v100() -> None:
    """244.5 / 0.38 mm^2 = 643.4 cores; 415 / 100 = 4.15 stacks, 20.2 / 5 = 4.04 controllers; 4 * 28.548 mm / 2 * 20 = 1141.9 wires."""
    built = generate(BASE, V100)
    assert (built.core.cores, built.core.bundles) == (643, 80)
    assert (built.dram.stacks, built.dram.links, built.dram.capacity) == (4, 4096, 16 * GIB)
    assert (built.l2.banks, built.l1.banks, built.registers.banks) == (192, 240, 1282)
    assert built.inter.links == 1141
    assert built.core.peak == pytest.approx(125.02e12, rel=1e-4)
    assert built.dram.bandwidth == pytest.approx(924.7 * GIB, rel=1e-4)
    assert built.inter.bandwidth == pytest.approx(48.06 * GIB, rel=1e-3)


def test_a_count_that_fits_exactly_is_not_lost_to_rounding() -> None:
    """60 mm^2 hold 2,400,000 wires of 2.5e-5 mm^2; in square metres the quotient computes to 2399999.9999999995."""
    assert 0.1 * (600 * MM2) / BASE.intra.area < 2_400_000
    wires = generate(BASE, with_figures(V100, areas_intra=0.1 * (600 * MM2), edges_intra=1e3)).intra.links
    assert wires == 2_400_000


def test_the_power_of_an_sram_is_its_static_power_and_its_bandwidth() -> None:
    built = generate(BASE, V100).l1
    static = 8.0e-12 * 8 * built.capacity
    assert static + built.bandwidth * 8 * 2.0e-15 == pytest.approx(0.0016 * 300, rel=1e-12)


def test_banks_that_leak_more_than_the_power_given_are_absent() -> None:
    starved = generate(BASE, with_figures(V100, powers_l2=4.0e-4)).l2  # 6 MiB leak 4.2e-4 W
    assert set(flat(starved).values()) == {0.0}


def test_nothing_comes_of_nothing() -> None:
    nothing = Parts(0, 0, 0, 0, 0, 0, 0)
    built = generate(BASE, Split(0, 0, nothing, nothing, Edges(0, 0, 0)))
    assert set(flat(built).values()) == {0.0}


@pytest.mark.parametrize("figure", ["areas_core", "areas_l2", "areas_dram", "edges_dram", "areas_inter", "edges_inter"])
def test_a_part_without_room_gives_nothing_and_leaves_the_others(figure: str) -> None:
    part = figure.partition("_")[2]
    before, after = generate(BASE, V100), generate(BASE, with_figures(V100, **{figure: 0.0}))
    assert SPEEDS[f"powers_{part}"](after) == 0.0
    for other in {"registers", "dram", "inter"} - {part}:
        assert getattr(after, other) == getattr(before, other)


def test_dram_power_below_leakage_gives_capacity_without_bandwidth_and_shows_the_excess() -> None:
    built = generate(BASE, with_figures(V100, powers_dram=0.01)).dram
    assert (built.stacks, built.bandwidth) == (4, 0.0)
    assert built.power == 8 * 6.0e-13 * 16 * GIB > 0.01


def test_dram_power_beyond_the_maximum_voltage_is_not_used() -> None:
    """At 1.8 V the wires draw 1.8 * 1.4^2 / (1.2 * 0.8^2) = 4.59 times nominal and run at (1.4^2 / 1.8) / (0.8^2 / 1.2) = 2.04 times."""
    built = generate(BASE, with_figures(V100, powers_dram=1.0e4)).dram
    assert built.voltage == pytest.approx(1.8)
    assert built.frequency == pytest.approx(1.38e9 * (1.4**2 / 1.8) / (0.8**2 / 1.2))
    assert built.power == pytest.approx(4.59375 * 4.2e-12 * 4096 * 1.38e9 + 8 * 6.0e-13 * 16 * GIB)


HBM2E = replace(
    BASE,
    dram=replace(
        BASE.dram, nominal_voltage=0.9774, nominal_frequency=4.0e9, links_per_stack=2048, energy_per_bit=1.0e-12, controller_area=4.05 * MM2
    ),
)


def test_the_die_edge_bounds_the_wires_of_many_stacks() -> None:
    edge = 0.1 * perimeter_of(815 * MM2)
    power = dram_power_at_nominal(BASE, 50, edge)
    controllers = 50 * BASE.dram.controller_area
    built = generate(BASE, with_figures(V100, package_area=1.0, edges_dram=0.1, areas_dram=controllers, powers_dram=power)).dram
    assert built.stacks == 50
    assert built.links == 4567  # floor(0.1 * 4 * sqrt(815) mm * 400 / mm)
    assert power == pytest.approx(4.2e-12 * 1.38e9 * 4567 + 8 * 6.0e-13 * 200 * GIB)


# Properties -----------------------------------------------------------------------------------------------------------------------

FIGURES = ("die_area", "package_area", *(f"{group}_{field.name}" for group in ("areas", "powers") for field in fields(Parts)))
EDGE_FIGURES = tuple(f"edges_{field.name}" for field in fields(Edges))


def random_splits(count: int, seed: int) -> Split:
    """Splits over eight decades of area and power, so that every clamp, floor and empty part occurs; some figures are zero."""
    random = np.random.default_rng(seed)

    def figures(low: float, high: float) -> Array:
        return 10.0 ** random.uniform(low, high, count) * (random.random(count) > 0.05)

    wide = {name: figures(-9.0, -3.0) if "area" in name else figures(-5.0, 3.0) for name in FIGURES}
    wide["package_area"] = wide["die_area"] + figures(-5.0, -2.0)
    split = with_figures(V100, **wide, **{name: figures(-2.0, 0.0) for name in EDGE_FIGURES})
    return replace(split, dies=random.integers(1, 5, count).astype(np.float64))


def picked(record: Record, index: int) -> Record:
    """One design out of arrays, as plain floats."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    one = {name: float(value[index]) if isinstance(value, np.ndarray) else picked(value, index) for name, value in values.items()}
    return replace(record, **one)


@pytest.mark.parametrize("technology", [BASE, HBM2E], ids=["HBM", "HBM2e"])
def test_a_design_has_the_same_bits_alone_and_among_many(technology: Technology) -> None:
    splits = random_splits(1000, seed=1)
    together = flat(generate(technology, splits))
    for index in range(1000):
        alone = flat(generate(technology, picked(splits, index)))
        assert {name: float(np.asarray(value)[index]).hex() for name, value in together.items()} == {
            k: float(v).hex() for k, v in alone.items()
        }


def test_arrays_broadcast_against_each_other() -> None:
    grid = with_figures(V100, areas_core=np.linspace(0, 3e-4, 5)[:, None], powers_core=np.linspace(0, 200, 7))
    built = generate(BASE, grid)
    assert np.shape(built.core.peak) == np.shape(built.power(BASE.sustained)) == (5, 7)
    assert np.asarray(built.core.peak)[3, 4] == generate(BASE, with_figures(V100, areas_core=2.25e-4, powers_core=200 / 6 * 4)).core.peak


def test_use_stays_within_what_was_given() -> None:
    """Areas may exceed by the slack of the counts; DRAM power may exceed only by leakage."""
    splits = random_splits(20_000, seed=2)
    built = generate(BASE, splits)
    for field in fields(Parts):
        part, area, power = (getattr(record, field.name) for record in (built, splits.areas, splits.powers))
        assert np.all(part.area <= area * (1 + 1e-9))
        leakage = 8 * 6.0e-13 * part.capacity if field.name == "dram" else 0.0
        assert np.all(part.power <= np.maximum(power, leakage))
    assert np.all(built.package_area <= np.maximum(splits.package_area, splits.die_area) * (1 + 1e-9))


def test_the_power_of_a_chip_is_what_its_busiest_kernels_draw() -> None:
    """All parts at once where nothing is said; else the most of products with memory at half and of streams without cores. What keeps
    memories alive is drawn whatever they do."""
    built = generate(BASE, V100)
    parts = {field.name: getattr(built, field.name).power for field in fields(Parts)}
    assert built.power(BASE.sustained) == pytest.approx(sum(parts.values()), rel=1e-15)
    assert built.die_power(BASE.sustained) == pytest.approx(sum(parts.values()) - parts["dram"], rel=1e-15)
    products, streams, alive = Activity(dram=0.5), Activity(core=0.0), 8 * 6.0e-13 * built.dram.capacity
    assert (
        built.power((products, streams)) == built.power((products,)) == pytest.approx(sum(parts.values()) - 0.5 * (parts["dram"] - alive))
    )
    assert built.power((streams,)) == pytest.approx(sum(parts.values()) - parts["core"])
    assert built.die_power((streams, products)) == built.die_power(BASE.sustained)


def test_what_is_steady_is_no_more_than_of_the_usual_chip() -> None:
    """40 W of 815 mm^2: 20 W on half of it, and as many on twice as much."""
    made = replace(BASE, uncore=Uncore(steady_per_area=40.0 / (815 * MM2), steady_area=815 * MM2))
    watts = [generate(made, replace(V100, die_area=share * 815 * MM2)).uncore_idle for share in (0.5, 1.0, 2.0)]
    assert watts == pytest.approx([20.0, 40.0, 40.0])


@pytest.mark.parametrize(("core_power", "clock"), [(0.5, 0.2), (1.0, 1.0), (2.0, 1.6)])
def test_the_uncore_switches_and_leaks_with_the_cores_and_draws_the_rest_steadily(core_power: float, clock: float) -> None:
    """Of 815 mm^2 0.1 W/mm^2 switch at nominal voltage and clock and 0.04 do always; a fifth of them leaks as the cores, 0.05 W/mm^2."""
    uncore = Uncore(area_share=0.2, power_per_area=0.1 / MM2, steady_per_area=0.04 / MM2)
    made = replace(BASE, core=replace(BASE.core, leakage_per_area=0.05 / MM2), uncore=uncore)
    nominal = BASE.core.nominal_power * np.floor(0.3 * 815 / 0.38)
    built = generate(made, replace(V100, powers=replace(V100.powers, core=core_power * nominal)))
    supply, rate = built.core.voltage / 0.8, built.core.frequency / 1.33e9
    assert (rate < 1.0, rate > 1.0) == (clock < 1.0, clock > 1.0)
    assert built.uncore_idle + built.uncore_switched == pytest.approx(815 * (0.1 * supply**2 * rate + 0.2 * 0.05 * supply + 0.04))
    if clock == 1.0:
        assert built.uncore_idle + built.uncore_switched == pytest.approx(815 * (0.1 + 0.01 + 0.04))


def test_every_figure_is_finite_and_none_is_negative() -> None:
    for value in flat(generate(BASE, random_splits(20_000, seed=3))).values():
        assert np.all(np.isfinite(value) & (value >= 0.0))


@pytest.mark.parametrize("figure", SPEEDS)
def test_more_power_is_never_slower_not_even_in_the_last_bit(figure: str) -> None:
    splits = random_splits(20_000, seed=4)
    group, _, part = figure.partition("_")
    less = getattr(getattr(splits, group), part)
    factors = np.random.default_rng(5).choice([1 + 2.0**-52, 1 + 1e-12, 1.01, 3.0], less.shape)
    slower, faster = (SPEEDS[figure](generate(BASE, with_figures(splits, **{figure: power}))) for power in (less, less * factors))
    assert np.all(faster >= slower)
    assert np.any(faster > slower)


@given(st.integers(0, 3000), st.integers(1, 3000), st.floats(1e-3, 1e3))
def test_more_core_area_is_never_slower_at_fixed_power_but_for_rounding(cores: int, more: int, power: float) -> None:
    """cores * f(power / cores) grows with the cores, and is constant where all are throttled: there only up to rounding."""
    small, large = (
        generate(BASE, with_figures(V100, areas_core=number * BASE.core.area, powers_core=power)).core.peak
        for number in (cores, cores + more)
    )
    assert large >= small * (1 - 1e-14)


def test_more_cores_that_leak_may_be_slower_at_fixed_power_and_stand_still_where_leakage_takes_it_all() -> None:
    """Cores that leak 0.05 W at 0.8 V leak 0.034375 W at the lowest voltage, of 0.55 V: 10 W keep 290 of them supplied."""
    leaking = replace(BASE.core, leakage_per_area=0.05 / BASE.core.area)
    peaks = [compute(leaking, cores * leaking.area, 10.0).peak for cores in (50, 100, 200, 290, 291)]
    assert peaks[0] < peaks[1] > peaks[2] > peaks[3] > peaks[4] == 0.0
    left = (10.0 - 290 * 0.034375) / (0.08 * (0.55 / 0.8) ** 2)
    assert peaks[3] == pytest.approx(128 * 1.33e9 * left, rel=1e-9)


@pytest.mark.parametrize("figure", ["areas_intra", "areas_inter", "areas_dram", "edges_dram", "edges_inter"])
def test_more_room_for_wires_is_never_slower_at_fixed_power_but_for_rounding_and_leakage(figure: str) -> None:
    """More stacks leak more, so for DRAM the room grows by wires only (the edge) or is compared at equal power after leakage."""
    splits = random_splits(20_000, seed=6)
    group, _, part = figure.partition("_")
    room = getattr(getattr(splits, group), part)
    before, after = (getattr(generate(BASE, with_figures(splits, **{figure: size})), part) for size in (room, room * 1.5))
    leaking = 8 * 6.0e-13 * (after.capacity - before.capacity) > 0 if figure == "areas_dram" else np.zeros(room.shape, bool)
    assert np.all((after.bandwidth >= before.bandwidth * (1 - 1e-14)) | leaking)
    assert np.any(after.bandwidth > before.bandwidth)


def test_more_sram_costs_bandwidth_only_through_its_leakage() -> None:
    areas = np.linspace(5e-5, 1e-4, 400)
    built = generate(BASE, with_figures(V100, areas_l2=areas)).l2
    assert np.all(np.diff(built.capacity) >= 0)
    lost = np.diff(built.bandwidth) * 8 * 3.5e-15
    assert lost == pytest.approx(-8 * 8.4e-12 * np.diff(built.capacity), rel=1e-9, abs=1e-15)


# Refusals -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1e-6, float("nan"), float("inf"), np.array([1.0, -1.0])])
@pytest.mark.parametrize("figure", ["die_area", "areas_l1", "powers_dram", "edges_inter"])
def test_a_split_refuses_figures_that_no_chip_has(figure: str, value: Real) -> None:
    with pytest.raises(ValueError, match=f"{figure.replace('areas_', 'areas.').replace('s_', 's.')} must be finite and not negative"):
        with_figures(V100, **{figure: value})


# From a generated chip to the device that is priced: what each resource is worth after utilisation and in bytes.

ENTRY = technology("v100-class")
EFFICIENCY = Efficiency(matrix=0.5)


@pytest.fixture(scope="module")
def v100() -> Technology:
    """The technology with a share of use for every part, each a different one."""
    device_built = build_technology(ENTRY, "v100-class")
    return replace(
        device_built,
        core=replace(device_built.core, utilisation=0.9, clocked_share=0.3, leakage_per_area=0.06e6),
        uncore=Uncore(area_share=0.2, power_per_area=0.1e6, steady_per_area=0.04e6),
        l2=replace(device_built.l2, utilisation=0.5),
        l1=replace(device_built.l1, utilisation=0.6),
        registers=replace(device_built.registers, utilisation=0.7),
        dram=replace(device_built.dram, utilisation=0.8),
    )


@pytest.fixture(scope="module")
def device_built(v100: Technology) -> Architecture:
    return generate(v100, usual_split(ENTRY))


@pytest.fixture(scope="module")
def chip(v100: Technology, device_built: Architecture) -> Hardware:
    return device_from(v100, device_built, 2.0, EFFICIENCY)


def test_rates_are_what_the_parts_sustain(chip: Hardware, device_built: Architecture) -> None:
    assert chip.throughput == device_built.core.peak * 0.9
    assert chip.vector_throughput == chip.throughput / 8
    assert chip.bundles == device_built.core.bundles
    assert chip.dram.bandwidth == device_built.dram.bandwidth * 0.8
    assert chip.l2.bandwidth == device_built.l2.bandwidth * 0.5
    assert chip.l1.bandwidth == device_built.l1.bandwidth * 0.6
    assert chip.registers.bandwidth == device_built.registers.bandwidth * 0.7
    capacities = [part.capacity for part in (chip.dram, chip.l2, chip.l1, chip.registers)]
    assert capacities == [part.capacity for part in (device_built.dram, device_built.l2, device_built.l1, device_built.registers)]


def test_narrow_operands_double_the_rate_at_the_same_power(v100: Technology, device_built: Architecture, chip: Hardware) -> None:
    """One byte a value instead of two: half the energy and half the register bytes of a FLOP; vectors and 16 bits stay as they are."""
    made = at_precision(v100, 2.0, 1.0)
    narrow = device_from(made, generate(made, usual_split(ENTRY)), 2.0, EFFICIENCY)
    assert narrow.throughput == 2 * chip.throughput
    assert narrow.throughput * narrow.wide_share == chip.throughput * chip.wide_share
    assert narrow.vector_throughput == chip.vector_throughput
    assert narrow.energy_per_flop == chip.energy_per_flop / 2
    assert narrow.register_traffic == chip.register_traffic / 2
    assert (narrow.power, narrow.die_area, narrow.l2) == (chip.power, chip.die_area, chip.l2)
    assert at_precision(v100, 1.0 / 16.0, 4.0).core.wide_share == 1.0, "operands of 32 bits are wider than 16"


def test_links_keep_the_generators_bandwidth_and_the_technologys_latency(
    chip: Hardware, v100: Technology, device_built: Architecture
) -> None:
    """The generator's link bandwidth is after utilisation already."""
    assert [link.bandwidth for link in chip.links] == [device_built.intra.bandwidth, device_built.inter.bandwidth]
    assert [link.latency for link in chip.links] == [v100.intra.latency, v100.inter.latency]


def test_energies_are_joules_a_byte(chip: Hardware, v100: Technology) -> None:
    parts = ((chip.dram, v100.dram), (chip.l2, v100.l2), (chip.l1, v100.l1), (chip.registers, v100.registers))
    assert [part.energy for part, _ in parts] == [8 * made.energy_per_bit for _, made in parts]
    assert [link.energy for link in chip.links] == [8 * v100.intra.energy_per_bit, 8 * v100.inter.energy_per_bit]
    assert v100.inter.adapter_energy_per_bit == 0.0  # of the authors' case study


def test_arithmetic_at_full_rate_draws_the_power_of_the_cores(chip: Hardware, device_built: Architecture) -> None:
    """Energy a FLOP times FLOP/s is what leakage, and clocks and control leave of the power of the cores, at whatever voltage it buys."""
    switched = device_built.core.power - device_built.core.leakage
    assert chip.energy_per_flop * device_built.core.peak == pytest.approx(0.7 * switched, rel=1e-9)
    assert device_built.core.clocked == pytest.approx(0.3 * switched, rel=1e-9)


def test_registers_feed_a_four_by_four_engine(chip: Hardware) -> None:
    """2 x 4 / (4 x 7) values of two bytes a FLOP."""
    assert chip.register_traffic == pytest.approx(2 * 8 / 28)


def test_size_and_power_are_the_chips(chip: Hardware, device_built: Architecture, v100: Technology) -> None:
    power = device_built.power(v100.sustained)
    assert (chip.die_area, chip.package_area, chip.power) == (device_built.area, device_built.package_area, power)
    leaks = device_built.core.leakage + 8 * sum(
        part.static_power_per_bit * made.capacity
        for part, made in (
            (v100.registers, device_built.registers),
            (v100.l1, device_built.l1),
            (v100.l2, device_built.l2),
            (v100.dram, device_built.dram),
        )
    )
    assert chip.idle_power == pytest.approx(leaks + device_built.uncore_idle, rel=1e-12)
    assert chip.running_power == device_built.uncore_switched + device_built.core.clocked
    assert chip.headroom == pytest.approx(power - chip.idle_power, rel=1e-11)
    assert chip.headroom < power - chip.idle_power
    assert chip.efficiency is EFFICIENCY


def test_a_part_without_area_is_named_as_the_fault(v100: Technology) -> None:
    """The generator yields zero for what does not fit; only pricing needs every part."""
    split = usual_split(ENTRY)
    bare = generate(v100, replace(split, areas=replace(split.areas, l2=0.0)))
    found = faults(device_from(v100, bare, 2.0, EFFICIENCY))
    assert [sentence.split(" is ")[0] for sentence in found if sentence.startswith("l2")] == ["l2.capacity", "l2.bandwidth"]


# Technologies refuse what cannot be built, and scale by the published steps.

CORE = CoreTechnology(
    area=4.0e-7,
    nominal_power=0.1,
    flop_per_cycle=128,
    cores_per_bundle=8,
    nominal_frequency=1.0e9,
    nominal_voltage=0.8,
    threshold_voltage=0.2,
    margin_voltage=0.35,
)
SRAM = SramTechnology(1.0e-13, 2.0e-15, 8.0e-12, 32768, 4.0e-9, 0.2)
DRAM = DramTechnology(2.0**32, 1.0e-4, 5.0e-6, 1024, 4.0e5, 4.0e-12, 6.0e-13, 1.4e9, 1.2, 0.4, 0.6, maximum_voltage=1.8)
LINK = LinkTechnology(4.0e-8, 2.0e4, 1.0e-11, 2.0e10, 1.2, 0.35, 0.5, degree=1)
TECHNOLOGY = Technology("first", CORE, SRAM, SRAM, SRAM, DRAM, LINK, LINK)


def test_two_logic_steps_scale_voltage_area_and_power_and_leave_the_rest() -> None:
    scaled = scale_logic(TECHNOLOGY, 2)
    assert scaled.core.nominal_voltage == pytest.approx(0.8 * 0.81)
    assert scaled.core.area == pytest.approx(4.0e-7 * 0.4489)
    assert scaled.core.nominal_power == pytest.approx(0.1 * 0.2916)
    assert scaled.l1.energy_per_bit == pytest.approx(2.0e-15 * 0.2916)
    assert scaled.l2.controller_area == pytest.approx(4.0e-9 * 0.4489)
    assert scaled.dram == replace(DRAM, controller_area=scaled.dram.controller_area)
    assert scaled.dram.controller_area == pytest.approx(5.0e-6 * 0.81)
    assert (scaled.intra, scaled.inter) == (LINK, LINK)


def test_network_steps_scale_only_the_links_between_groups() -> None:
    scaled = scale_network(TECHNOLOGY, 2)
    assert scaled == replace(TECHNOLOGY, inter=replace(LINK, area=4.0e-8 * 0.5625, energy_per_bit=1.0e-11 * 0.25))


def test_no_step_changes_nothing() -> None:
    assert scale_logic(TECHNOLOGY, 0) == TECHNOLOGY == scale_network(TECHNOLOGY, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"area": 0.0}, "area is 0.0, a finite positive number is needed"),
        ({"nominal_power": float("nan")}, "nominal_power is nan"),
        ({"utilisation": 1.2}, "utilisation is 1.2, a share of at most 1"),
        ({"nominal_voltage": 0.2}, "must lie above the threshold"),
        ({"maximum_voltage": 0.5}, "within the maximum"),
        ({"margin_voltage": 0.9, "maximum_voltage": 1.0}, "must lie between threshold plus margin"),
    ],
)
def test_a_technology_refuses_circuits_that_cannot_be_clocked(change: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(CORE, **change)


def test_an_sram_needs_room_for_its_cells() -> None:
    with pytest.raises(ValueError, match=r"overhead is 1\.0"):
        replace(SRAM, overhead=1.0)


# The envelope of two splits: no architecture between them surpasses it, not even in the last bit, whatever the technology.

TECHNOLOGIES = tuple(
    (name, logic, memory, network)
    for name in names("technologies")
    for entry in (technology(name),)
    for logic in list(entry.logic_nodes)[:: len(entry.logic_nodes) // 2]
    for memory in list(entry.memories)[:: len(entry.memories) // 2]
    for network in list(entry.network_steps)[:: len(entry.network_steps) // 2]
)
INSIDE = 40
"""Architectures looked at between two splits."""


@dataclass(frozen=True, slots=True)
class Case:
    """Two splits, some between them, and what both make."""

    least: Split
    most: Split
    inside: Architecture
    best: Envelope


def figures(split: Split) -> Array:
    """Die, package, areas, powers and edges as one column each."""
    groups = (split.areas, split.powers, split.edges)
    return np.array(
        [split.die_area, split.package_area, *(getattr(group, field.name) for group in groups for field in fields(group))], np.float64
    )


def split_of_figures(values: Array) -> Split:
    return Split(values[0], values[1], Parts(*values[2:9]), Parts(*values[9:16]), Edges(*values[16:19]))


def random_case(seed: int, one: bool = False) -> Case:
    """A technology, and splits about its usual one: near or far from each other, with absent parts, one core, no package room.

    The die is at least as large as its parts, or larger; the package is fixed, as large as the die, or grows with whole stacks.
    """
    random = np.random.default_rng(seed)
    made = _technology(seed)
    usual = figures(usual_split(technology(TECHNOLOGIES[seed % len(TECHNOLOGIES)][0])))
    usual = np.maximum(usual, np.where(np.arange(19) < 9, 1e-6, 0.1))
    factor = random.choice([1.0001, 1.1, 3.0, 30.0])
    ends = usual[:, None] * factor ** random.uniform(-1.0, 1.0, (19, 2))
    ends[random.random((19, 2)) < random.choice([0.0, 0.05])] = 0.0
    if random.random() < 0.2:
        ends[2] = made.core.area * random.integers(0, 2 * made.core.cores_per_bundle, 2)
    low, high = np.minimum(*ends.T), np.maximum(*ends.T)
    high = np.where(random.random(19) < random.choice([0.0, 0.5, 0.9, 1.0]), low, high)
    high = low if one else high
    share = random.choice([0.0, 1.0, random.random()], (19, INSIDE)) * (random.random((19, INSIDE)) < 0.8)
    inside = np.minimum(np.maximum(low[:, None] + share * (high - low)[:, None], low[:, None]), high[:, None])
    stacks, larger, package = _stacks(random, one), random.random() < 0.3, float(usual[1]) * random.choice([0.5, 1.0, 2.0])
    dies = _dies(random, one) if made.die_links.links_per_metre else (1.0, 1.0, 1.0)
    columns = zip((low, high, inside), stacks, dies, strict=True)
    splits = [_completed(made, replace(split_of_figures(values), dies=some), count, larger, package) for values, count, some in columns]
    best = envelope(made, splits[0], splits[1])
    return Case(splits[0], splits[1], generate(made, splits[2]), best)


def _technology(seed: int) -> Technology:
    """Of two in three the cores leak half of their nominal power, of one in two clocks and control take most of the rest, of two in
    three banks have narrow ports, so that these and not the watts say what they move, and of one in five stacks lie on the dies."""
    name, logic, memory, network = TECHNOLOGIES[seed % len(TECHNOLOGIES)]
    made, turn = build_technology(technology(name), name, logic, memory, network), seed // len(TECHNOLOGIES)
    leaks = 0.5 * made.core.nominal_power / made.core.area if turn % 3 else made.core.leakage_per_area
    made = replace(made, core=replace(made.core, leakage_per_area=leaks, clocked_share=0.9 if turn % 2 else made.core.clocked_share))
    made = replace(made, dram=replace(made.dram, on_dies=seed % 5 == 0))
    return _with_ports(made, (None, 8.0, 0.5)[turn // 2 % 3])


def _with_ports(made: Technology, width: float | None) -> Technology:
    """The technology whose banks move so many bytes a cycle, or as many as they do; of narrow ones L2 must give the less."""
    if width is None:
        return made
    narrow = {level: replace(getattr(made, level), bank_bytes_per_cycle=width) for level in LEVELS}
    fed = 0.5 * made.core.least_fed * min(width / made.l2.bank_bytes_per_cycle, 1.0)
    return replace(made, core=replace(made.core, least_fed=fed), **narrow)


def _stacks(random: np.random.Generator, one: bool) -> tuple[Any, Any, Any]:
    """The least, the most and some numbers of stacks between; None where they follow from areas."""
    if random.random() < 0.4:
        return None, None, None
    low = int(random.integers(0, 5))
    high = low if one else low + int(random.integers(0, 5))
    return float(low), float(high), random.integers(low, high + 1, INSIDE).astype(np.float64)


def _dies(random: np.random.Generator, one: bool) -> tuple[Any, Any, Any]:
    """The least, the most and some numbers of dies between."""
    low = int(random.integers(1, 4))
    high = low if one else low + int(random.integers(0, 4))
    return float(low), float(high), random.integers(low, high + 1, INSIDE).astype(np.float64)


def _completed(made: Technology, split: Split, stacks: Any, larger: bool, package: float) -> Split:  # noqa: ANN401
    """The split whose die holds its parts, and whose package holds the stacks, as questions make them."""
    areas = split.areas if stacks is None else replace(split.areas, dram=stacks * made.dram.controller_area)
    parts = areas.core + areas.registers + areas.l1 + areas.l2 + areas.dram + areas.intra + areas.inter
    die = np.maximum(die_with_links(made.die_links, parts, split.dies), split.die_area if larger else 0.0)
    if stacks is None:
        return replace(split, areas=areas, die_area=die, package_area=package)
    power = dram_power_at_nominal(made, stacks, split.edges.dram * perimeter_of(die, split.dies)) if larger else split.powers.dram
    powers = replace(split.powers, dram=power)
    return replace(split, areas=areas, powers=powers, die_area=die, package_area=np.inf)


Figure = Callable[[Architecture], Any]
LEVELS = ("registers", "l1", "l2")


def _cores(built: Architecture) -> Mask:
    return np.asarray(built.core.bundles) > 0.0


def _fed(built: Architecture) -> Mask:
    """Which of them have stacks that deliver something, through an L2."""
    return _cores(built) & _present("l2")(built)


def _present(part: str) -> Callable[[Architecture], Mask]:
    return lambda built: np.asarray(getattr(built, part).bandwidth) > 0.0


MORE: dict[str, Figure] = {
    "FLOP/s": lambda built: built.core.peak,
    **{f"capacity of {level}": lambda built, level=level: getattr(built, level).capacity for level in (*LEVELS, "dram")},
    **{
        f"bandwidth of {level}": lambda built, level=level: getattr(built, level).bandwidth for level in (*LEVELS, "dram", "intra", "inter")
    },
    **{f"wires of {level}": lambda built, level=level: getattr(built, level).links for level in ("dram", "intra", "inter")},
    "stacks": lambda built: built.dram.stacks,
}
"""Figures that the envelope has at their highest."""
LESS: dict[str, tuple[Figure, Callable[[Architecture], Mask]]] = {
    "bundles": (lambda built: built.core.bundles, _cores),
    "voltage of the cores": (lambda built: built.core.voltage, _cores),
    "leakage of the cores": (lambda built: built.core.leakage, _cores),
    "area of the cores": (lambda built: built.core.area, _cores),
    "power of the cores": (lambda built: built.core.power, _cores),
    **{f"power of {level}": (lambda built, level=level: getattr(built, level).power, _present(level)) for level in LEVELS},
    **{f"power of {level}": (lambda built, level=level: getattr(built, level).power, _cores) for level in ("intra", "inter")},
    "power of dram": (lambda built: built.dram.power, _fed),
    "clocks and control of the cores": (lambda built: built.core.clocked, _cores),
    **{
        f"what {level} draws anyway": (lambda built, level=level: getattr(built, level).static, _present(level))
        for level in (*LEVELS, "dram")
    },
    "what the uncore draws anyway": (lambda built: built.uncore_idle, _cores),
    "clocks of the uncore": (lambda built: built.uncore_switched, _cores),
    "clocks of the uncore in streams": (lambda built: built.uncore_slow, _fed),
    "clocks and control of the cores in streams": (lambda built: built.core.slow_clocked, _fed),
    "FLOPs at the clock of streams": (lambda built: built.core.slow_flops, _fed),
    "FLOP/s of products": (lambda built: built.products, _cores),
    "bytes of streams": (lambda built: built.streamed, _fed),
    "area of dram": (lambda built: built.dram.area, _cores),
    "area of the package": (lambda built: built.package_area, _cores),
    "edge": (lambda built: built.edge, _cores),
    "power of the uncore": (lambda built: built.uncore_idle + built.uncore_switched, _cores),
    "power of links between dies": (lambda built: built.die_links_power, _cores),
    "joints that a byte passes": (lambda built: built.crossings, _cores),
}
"""Figures that it has at their lowest, and on which chips: one without the part uses nothing for it, but cannot compute."""

SEEDS = st.integers(0, 2**32 - 1)


@examples(150)
@given(SEEDS)
def test_no_architecture_between_two_splits_surpasses_their_envelope(seed: int) -> None:
    """Chips without a bundle of cores do not count: they have more room for memory, but compute nothing."""
    case = random_case(seed)
    inside, best = case.inside, case.best.best
    for name, more in MORE.items():
        assert np.all(np.asarray(more(best)) >= np.where(_cores(inside), more(inside), 0.0)), name
    for name, (less, counted) in LESS.items():
        used = np.where(counted(inside), less(inside), np.inf)
        assert np.all(np.asarray(less(best)) <= used), name
    for level in ("registers", "l1"):  # what a tile of one bundle may fill
        with np.errstate(divide="ignore", invalid="ignore"):
            room, most = (np.asarray(getattr(built, level).capacity) / built.core.bundles for built in (inside, best))
        assert np.all(most >= np.where(_cores(inside), room, 0.0)) or not _cores(inside).any(), level
    assert np.all(case.best.least_stacks <= np.asarray(inside.dram.stacks))


@examples(150)
@given(SEEDS)
def test_the_power_of_a_chip_that_works_is_never_below_that_of_the_envelope(seed: int) -> None:
    case = random_case(seed)
    works = np.ones(INSIDE, bool)
    for part in (*LEVELS, "dram"):
        works &= _present(part)(case.inside)
    paced = (Activity(core=0.9, per_flop=Traffic(0.3, 0.02, 0.006, 0.001)), Activity(core=0.1, l1=0.5, streams=True))
    for kernels in ((Activity(dram=0.5, inter=0.25), Activity(core=0.25, l1=0.0)), *((kernel,) for kernel in paced)):
        for power in (built_power(kernels), built_die_power(kernels)):
            used = np.where(works & _cores(case.inside), power(case.inside), np.inf)
            assert np.all(np.asarray(power(case.best.best)) <= used)


def built_power(kernels: tuple[Activity, ...]) -> Figure:
    return lambda built: built.power(kernels)


def built_die_power(kernels: tuple[Activity, ...]) -> Figure:
    return lambda built: built.die_power(kernels)


@examples(150)
@given(SEEDS)
def test_no_chip_that_works_draws_less_when_idle_or_running_or_more_above_idle(seed: int) -> None:
    case, made = random_case(seed), _technology(seed)
    works = np.asarray(_cores(case.inside)) & np.ones(INSIDE, bool)
    for part in (*LEVELS, "dram"):
        works &= _present(part)(case.inside)
    for power in (lambda built: built.idle_power, lambda built: built.running_power):
        assert np.all(np.asarray(power(case.best.best)) <= np.where(works, power(case.inside), np.inf))
    above = case.inside.power(made.sustained) - case.inside.idle_power
    assert np.all(np.asarray(case.best.headroom) >= np.where(works, above, -np.inf))


@examples(100)
@given(SEEDS)
def test_the_envelope_of_equal_splits_is_the_very_architecture(seed: int) -> None:
    case = random_case(seed, one=True)
    own = flat(generate(_technology(seed), case.least))
    for found in (case.best, envelope(_technology(seed), case.least, case.least)):
        for name, figure in flat(found.best).items():
            assert np.asarray(figure).tobytes() == np.asarray(own[name], np.float64).tobytes(), name
    alone = generate(_technology(seed), case.least)
    assert case.best.headroom == alone.power(_technology(seed).sustained) - alone.idle_power
    assert not np.any(case.best.open_bundles)


def test_the_random_cases_hold_working_chips_and_degenerate_ones() -> None:
    """Otherwise the properties above would say little."""
    cases = [random_case(seed) for seed in range(300)]
    working = [np.mean(_present("dram")(case.inside) & _cores(case.inside) & _present("l2")(case.inside)) for case in cases]
    assert 0.3 < float(np.mean(working)) < 0.97
    assert any(np.any(np.asarray(case.inside.core.bundles) == 0.0) for case in cases)
    assert any(np.any(np.asarray(case.inside.dram.stacks) == 0.0) for case in cases)
    assert any(case.best.open_bundles == 1.0 for case in cases)
    assert any(case.best.open_bundles == 0.0 for case in cases)
    limited = [(case, _by_ports(seed, case)) for seed, case in enumerate(cases)]
    assert 0.2 < float(np.mean([some for _, some in limited])) < 0.8
    clocks = [np.broadcast_to(case.inside.core.frequency, (INSIDE,))[some] for case, some in limited if some.any()]
    assert sum(np.ptp(some) > 0.0 for some in clocks) > 20


def _by_ports(seed: int, case: Case) -> Mask:
    """On which chips ports, and not watts, say what the L2 moves."""
    made, inside = _technology(seed).l2, case.inside
    full = inside.l2.banks * port_bandwidth(made, inside.core.frequency)
    return np.broadcast_to((inside.l2.bandwidth >= 0.999 * full) & (inside.l2.bandwidth > 0.0) & _cores(inside), (INSIDE,))


@pytest.mark.parametrize(
    ("least", "most", "bundles", "open_bundles"), [(0, 3, 0, 0), (0, 4, 1, 0), (4, 7, 1, 0), (4, 8, 1, 1), (9, 40, 2, 1)]
)
def test_bundles_are_open_where_the_cores_make_several_numbers_of_them(least: int, most: int, bundles: int, open_bundles: int) -> None:
    """Four cores of a square millimetre make a bundle; a chip without any is none, so one is the least that counts."""
    made = build_technology(technology("accelerator-7nm"), "accelerator-7nm")
    usual = usual_split(technology("accelerator-7nm"))
    ends = [replace(usual, areas=replace(usual.areas, core=cores * made.core.area)) for cores in (least, most)]
    found = envelope(made, *ends)
    assert (found.best.core.bundles, found.open_bundles) == (bundles, open_bundles)
