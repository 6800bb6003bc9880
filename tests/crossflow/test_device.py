"""From a generated chip to the device that is priced: what each resource is worth after utilisation and in bytes."""

from dataclasses import replace

import pytest

from crossopt.crossflow.device import Architecture, device_from
from crossopt.crossflow.generator import generate
from crossopt.crossflow.hardware import Efficiency, Hardware, faults
from crossopt.crossflow.technology import Technology, Uncore, at_precision
from crossopt.instances.catalogue.registry import technology
from crossopt.instances.catalogue.technologies import build_technology, usual_split

ENTRY = technology("v100-class")
EFFICIENCY = Efficiency(matrix=0.5)


@pytest.fixture(scope="module")
def v100() -> Technology:
    """The technology with a share of use for every part, each a different one."""
    built = build_technology(ENTRY, "v100-class")
    return replace(
        built,
        core=replace(built.core, utilisation=0.9, clocked_share=0.3, leakage_per_area=0.06e6),
        uncore=Uncore(area_share=0.2, power_per_area=0.1e6, steady_per_area=0.04e6),
        l2=replace(built.l2, utilisation=0.5),
        l1=replace(built.l1, utilisation=0.6),
        registers=replace(built.registers, utilisation=0.7),
        dram=replace(built.dram, utilisation=0.8),
    )


@pytest.fixture(scope="module")
def built(v100: Technology) -> Architecture:
    return generate(v100, usual_split(ENTRY))


@pytest.fixture(scope="module")
def chip(v100: Technology, built: Architecture) -> Hardware:
    return device_from(v100, built, 2.0, EFFICIENCY)


def test_rates_are_what_the_parts_sustain(chip: Hardware, built: Architecture) -> None:
    assert chip.throughput == built.core.peak * 0.9
    assert chip.vector_throughput == chip.throughput / 8
    assert chip.bundles == built.core.bundles
    assert chip.dram.bandwidth == built.dram.bandwidth * 0.8
    assert chip.l2.bandwidth == built.l2.bandwidth * 0.5
    assert chip.l1.bandwidth == built.l1.bandwidth * 0.6
    assert chip.registers.bandwidth == built.registers.bandwidth * 0.7
    capacities = [part.capacity for part in (chip.dram, chip.l2, chip.l1, chip.registers)]
    assert capacities == [part.capacity for part in (built.dram, built.l2, built.l1, built.registers)]


def test_narrow_operands_double_the_rate_at_the_same_power(v100: Technology, built: Architecture, chip: Hardware) -> None:
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


def test_links_keep_the_generators_bandwidth_and_the_technologys_latency(chip: Hardware, v100: Technology, built: Architecture) -> None:
    """The generator's link bandwidth is after utilisation already."""
    assert [link.bandwidth for link in chip.links] == [built.intra.bandwidth, built.inter.bandwidth]
    assert [link.latency for link in chip.links] == [v100.intra.latency, v100.inter.latency]


def test_energies_are_joules_a_byte(chip: Hardware, v100: Technology) -> None:
    parts = ((chip.dram, v100.dram), (chip.l2, v100.l2), (chip.l1, v100.l1), (chip.registers, v100.registers))
    assert [part.energy for part, _ in parts] == [8 * made.energy_per_bit for _, made in parts]
    assert [link.energy for link in chip.links] == [8 * v100.intra.energy_per_bit, 8 * v100.inter.energy_per_bit]
    assert v100.inter.adapter_energy_per_bit == 0.0  # of the authors' case study


def test_arithmetic_at_full_rate_draws_the_power_of_the_cores(chip: Hardware, built: Architecture) -> None:
    """Energy a FLOP times FLOP/s is what leakage, and clocks and control leave of the power of the cores, at whatever voltage it buys."""
    switched = built.core.power - built.core.leakage
    assert chip.energy_per_flop * built.core.peak == pytest.approx(0.7 * switched, rel=1e-9)
    assert built.core.clocked == pytest.approx(0.3 * switched, rel=1e-9)


def test_registers_feed_a_four_by_four_engine(chip: Hardware) -> None:
    """2 x 4 / (4 x 7) values of two bytes a FLOP."""
    assert chip.register_traffic == pytest.approx(2 * 8 / 28)


def test_size_and_power_are_the_chips(chip: Hardware, built: Architecture, v100: Technology) -> None:
    power = built.power(v100.sustained)
    assert (chip.die_area, chip.package_area, chip.power) == (built.area, built.package_area, power)
    leaks = built.core.leakage + 8 * sum(
        part.static_power_per_bit * made.capacity
        for part, made in ((v100.registers, built.registers), (v100.l1, built.l1), (v100.l2, built.l2), (v100.dram, built.dram))
    )
    assert chip.idle_power == pytest.approx(leaks + built.uncore_idle, rel=1e-12)
    assert chip.running_power == built.uncore_switched + built.core.clocked
    assert chip.headroom == pytest.approx(power - chip.idle_power, rel=1e-11)
    assert chip.headroom < power - chip.idle_power
    assert chip.efficiency is EFFICIENCY


def test_a_part_without_area_is_named_as_the_fault(v100: Technology) -> None:
    """The generator yields zero for what does not fit; only pricing needs every part."""
    split = usual_split(ENTRY)
    bare = generate(v100, replace(split, areas=replace(split.areas, l2=0.0)))
    found = faults(device_from(v100, bare, 2.0, EFFICIENCY))
    assert [sentence.split(" is ")[0] for sentence in found if sentence.startswith("l2")] == ["l2.capacity", "l2.bandwidth"]
