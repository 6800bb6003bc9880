"""Technologies of the registry: published points of each generation, and usual chips that are like those that are sold."""

import csv
import re
from dataclasses import fields, replace

import pytest

from crossopt.crossflow.device import Architecture, device_from
from crossopt.crossflow.dies import die_with_links
from crossopt.crossflow.generator import compute, generate, has_edge, network, split_for_stacks
from crossopt.crossflow.technology import Parts
from crossopt.instances.catalogue.entries import ShareEntry, TechnologyEntry
from crossopt.instances.catalogue.registry import (
    build_device,
    device,
    efficiency_with,
    names,
    technology,
    technology_named,
)
from crossopt.instances.catalogue.technologies import build_technology, usual_split
from crossopt.instances.codesign.chips import used_dies
from tests.instances.catalogue.test_registry import GIB, MIB
from tests.paths import reference


def usual_chip(name: str, memory: str | None = None, network: str | None = None) -> Architecture:
    entry, logic = technology_named(name)
    return generate(build_technology(entry, name, logic, memory, network), usual_split(entry))


@pytest.mark.parametrize(
    ("name", "cores", "bundles", "teraflops", "l2", "l1", "registers"),
    [
        ("v100-class", 643, 80, 125.02, 6.0, 7.5, 20.03125),
        ("v100-class-14nm", 643, 80, 125.02, 6.0, 7.5, 20.03125),
        ("v100-class-7nm", 1433, 179, 343.57, 6.1875, 7.78125, 44.625),
        ("v100-class-1nm", 7112, 889, 2839.70, 6.34375, 8.0, 221.515625),
    ],
)
def test_the_case_study_chip_is_reproduced(
    name: str, cores: int, bundles: int, teraflops: float, l2: float, l1: float, registers: float
) -> None:
    """Published result files of arXiv:2211.03309 (repository nanocad-lab/DeepFlow)."""
    built = usual_chip(name)
    assert (built.core.cores, built.core.bundles) == (cores, bundles)
    assert built.core.peak / 1e12 == pytest.approx(teraflops, rel=5e-5)
    assert (built.l2.capacity, built.l1.capacity, built.registers.capacity) == (l2 * MIB, l1 * MIB, registers * MIB)
    assert (built.dram.stacks, built.dram.capacity) == (4, 16 * GIB)
    assert built.dram.bandwidth / GIB == pytest.approx(924.67, rel=1e-5)
    assert built.inter.bandwidth / GIB == pytest.approx(48.06, rel=1e-4)


@pytest.mark.parametrize(
    ("memory", "gigabytes", "stacks", "capacity"),
    [("hbm1", 924.7, 4, 16), ("hbm2", 1331, 4, 32), ("hbm2e-8", 1536, 3, 48), ("hbm2e-12", 2560, 3, 72), ("hbm2e-16", 3994, 3, 96)],
)
def test_generations_of_memory_give_the_published_bandwidths(memory: str, gigabytes: float, stacks: int, capacity: float) -> None:
    built = usual_chip("v100-class", memory=memory).dram
    assert (built.stacks, built.capacity) == (stacks, capacity * GIB)
    assert built.bandwidth / GIB == pytest.approx(gigabytes, rel=0.02)


@pytest.mark.parametrize("name", ["accelerator-4nm", "accelerator-4np", "accelerator-7nm"])
def test_a_stack_of_each_generation_moves_what_its_standard_says(name: str) -> None:
    """1,024 wires of 2.4, 3.2, 5.2 and 8 Gb/s, and 2,048 of 8 Gb/s, whose controller takes more of the die."""
    entry = technology(name)
    made = {memory: build_technology(entry, name, memory=memory) for memory in ("hbm2", "hbm2e", "hbm3", "hbm3e", "hbm4")}
    stacks = [generate(one, split_for_stacks(one, usual_split(entry), 1)).dram for one in made.values()]
    used = 15 / 16 if name == "accelerator-4np" else 1.0  # of HBM3E, as on B200
    assert [stack.bandwidth / 1e9 for stack in stacks] == pytest.approx([307.2, 409.6, 666, used * 1024, 2048], rel=0.03)
    assert [stack.capacity / GIB for stack in stacks] == [8, 16, 16, used * 24, 36]
    assert made["hbm4"].dram.controller_area == pytest.approx(1.6 * entry.dram.controller_area)


@pytest.mark.parametrize(
    ("memory", "sides"), [("hbm2", (7.75, 11.87)), ("hbm2e", (10, 11)), ("hbm3", (11, 11)), ("hbm4", (12.775, 10.975))]
)
def test_stacks_take_the_footprints_that_their_sources_say(memory: str, sides: tuple[float, float]) -> None:
    for name in ("accelerator-4nm", "accelerator-4np", "accelerator-7nm"):
        assert technology(name).memories[memory].stack_area == pytest.approx(sides[0] * sides[1] * 1e-6, rel=0.005)
    assert technology("accelerator-4nm").dram.stack_area == technology("accelerator-4nm").memories["hbm3"].stack_area


def test_generations_of_the_network_give_the_published_bandwidths() -> None:
    published = [48.1, 96.1, 192.2, 384.5, 769, 1395.8, 1996, 2791, 3829, 5170, 6888, 9077, 11856, 15375, 19824, 25441, 32527, 41464, 52729]
    built = [usual_chip("v100-class", network=step).inter.bandwidth / GIB for step in technology("v100-class").network_steps]
    assert built == pytest.approx(published, rel=2e-3)


def published_points() -> list[tuple[str, str, dict[str, str]]]:
    with reference("crossflow/author_casestudy.csv").open() as file:
        rows = {(row["sweep"], row["level"]): row for row in csv.DictReader(file)}
    return [(sweep, level, row) for (sweep, level), row in rows.items()]


def on_a_wafer(entry: TechnologyEntry) -> ShareEntry:
    """The case study's second package: a smaller die whose wires to its neighbours run in the wafer."""

    def moved(parts: Parts) -> Parts:
        return replace(parts, intra=parts.inter, inter=0.0)

    split = entry.split
    smaller = replace(split, die_area=600e-6, package_area=1000e-6, areas=moved(split.areas), powers=moved(split.powers))
    return replace(smaller, node_network_edge=split.network_edge, network_edge=0.0)


@pytest.mark.data
def test_every_published_point_of_the_case_study_follows_from_the_entry() -> None:
    """All sweeps: logic nodes on three networks and on a wafer, memories, networks. No voltage limit of the entry may bind there."""
    entry, checked = technology("v100-class"), 0
    fixed_network = {"energy_per_flop_inter_bw_384GB": "step-4", "energy_per_flop_inter_bw_1395GB": "step-6"}
    for sweep, level, row in published_points():
        logic = f"{level}nm" if "energy_per_flop" in sweep else None
        memory = level.lower() if sweep == "energy_per_membit" else None
        network = f"step-{level}" if sweep == "energy_per_xbit" else fixed_network.get(sweep)
        wafer = "siif" in sweep or "159GB" in sweep
        chip = replace(entry, split=on_a_wafer(entry)) if wafer else entry
        built = generate(build_technology(chip, "", logic, memory, network), usual_split(chip))
        assert (built.core.cores, built.core.bundles) == (float(row["num_mcu"]), float(row["num_bundles"])), (sweep, level)
        assert built.core.peak == pytest.approx(float(row["peak_tflops"]) * 1e12, rel=5e-8)
        assert built.dram.capacity == float(row["dram_GB"]) * GIB
        assert built.l2.capacity == float(row["l2_MB"]) * MIB
        for column, bandwidth in (("dram_GBps", built.dram), ("intra_GBps", built.intra), ("inter_GBps", built.inter)):
            assert bandwidth.bandwidth / GIB == pytest.approx(float(row[column]), rel=0.02, abs=0.05), (sweep, level, column)
        checked += 1
    assert checked >= 40


def test_an_unknown_generation_is_refused_with_those_there_are() -> None:
    entry = technology("v100-class")
    with pytest.raises(
        ValueError, match=re.escape("'4nm' is no logic node of this technology (one of 14nm, 10nm, 7nm, 5nm, 3nm, 2nm, 1nm)")
    ):
        build_technology(entry, "x", logic="4nm")
    with pytest.raises(ValueError, match="'hbm4' is no memory generation of this technology"):
        build_technology(entry, "x", memory="hbm4")
    with pytest.raises(ValueError, match="'step-20' is no network generation of this technology"):
        build_technology(entry, "x", network="step-20")


@pytest.mark.parametrize("name", names("technologies"))
def test_the_usual_split_keeps_within_its_budgets(name: str) -> None:
    entry = technology(name)
    split = usual_split(entry)
    assert 0.5 * entry.split.die_area < sum(getattr(split.areas, field.name) for field in fields(Parts)) <= entry.split.die_area
    made = build_technology(entry, name)
    assert 0.5 * entry.split.power < generate(made, split).power(made.sustained) <= entry.split.power
    assert split.edges.dram + split.edges.intra + split.edges.inter <= 1


@pytest.mark.parametrize("name", names("technologies"))
def test_every_generation_of_a_technology_gives_a_chip(name: str) -> None:
    """And a later logic node never a slower one, a later network never a slower link."""
    entry = technology(name)
    peaks = [generate(build_technology(entry, name, logic=node), usual_split(entry)).core.peak for node in entry.logic_nodes]
    links = [generate(build_technology(entry, name, network=step), usual_split(entry)).inter.bandwidth for step in entry.network_steps]
    assert peaks[0] > 0 and peaks == sorted(peaks)
    assert links[0] > 0 and links == sorted(links)
    for memory in entry.memories:
        assert generate(build_technology(entry, name, memory=memory), usual_split(entry)).dram.bandwidth > 0


def test_the_first_generations_are_the_entry_itself() -> None:
    for name in names("technologies"):
        entry = technology(name)
        first = (next(iter(entry.logic_nodes)), next(iter(entry.memories)), next(iter(entry.network_steps)))
        assert build_technology(entry, name, *first) == build_technology(entry, name)


def test_memory_of_the_modern_accelerator_stops_shrinking_where_its_logic_goes_on() -> None:
    at = {node: build_technology(technology("accelerator-7nm"), "x", node) for node in ("7nm", "5nm", "3nm", "2nm")}
    assert [round(made.l2.area_per_bit / at["7nm"].l2.area_per_bit, 2) for made in at.values()] == [1.0, 0.78, 0.78, 0.65]
    assert [round(made.core.area / at["7nm"].core.area, 2) for made in at.values()] == [1.0, 0.6, 0.4, 0.35]
    assert [round(made.core.nominal_power / at["7nm"].core.nominal_power, 2) for made in at.values()] == [1.0, 0.7, 0.48, 0.35]
    assert len({made.uncore for made in at.values()}) == len({made.core.nominal_frequency for made in at.values()}) == 1


@pytest.mark.parametrize(
    ("name", "sold"),
    [("accelerator-7nm", "a100-80g"), ("accelerator-4nm", "h100-sxm"), ("accelerator-4np", "b200"), ("tensor-7nm", "tpu-v4")],
)
def test_the_usual_chip_of_a_node_is_like_the_one_that_is_sold(name: str, sold: str) -> None:
    entry, like = technology(name), build_device(device(sold), sold, "bf16", 2)
    built = build_technology(entry, name)
    chip = device_from(built, generate(built, usual_split(entry)), 2.0, efficiency_with(entry.efficiency))
    assert chip.throughput == pytest.approx(like.throughput, rel=0.05)
    assert chip.bundles == pytest.approx(like.bundles, rel=0.05)
    for level in ("dram", "l2", "l1"):
        ours, theirs = getattr(chip, level), getattr(like, level)
        assert ours.capacity == pytest.approx(theirs.capacity, rel=0.1), level
        assert ours.bandwidth == pytest.approx(theirs.bandwidth, rel=0.1), level
    assert [link.bandwidth for link in chip.links] == pytest.approx([link.bandwidth for link in like.links], rel=0.1)
    assert {link.energy for link in like.links} - {link.energy for link in chip.links} <= {0.0}  # which nobody tells of TPU v4
    assert chip.register_traffic * chip.throughput <= chip.registers.bandwidth
    assert chip.l1_traffic * chip.throughput <= chip.l1.bandwidth
    assert chip.registers.capacity == pytest.approx(like.registers.capacity, rel=0.1)
    assert chip.power == pytest.approx(like.power, rel=0.1)
    made = generate(built, usual_split(entry))
    lower, _ = used_dies(built, Parts(**{part.name: getattr(made, part.name).area for part in fields(Parts)}))
    die = die_with_links(built.die_links, lower, float(entry.split.dies))
    assert die <= entry.split.die_area <= entry.split.dies * entry.reticle
    assert die == pytest.approx(like.die_area, rel=0.1)
    assert chip.package_area == pytest.approx(like.package_area, rel=0.1)
    assert chip.power <= entry.split.power
    for precision in ("fp8", "fp4"):
        assert (precision in entry.core.rates) == (precision in device(sold).peak)
        if precision in entry.core.rates:
            narrow, theirs = build_technology(entry, name, precision=precision), build_device(device(sold), sold, precision, 2)
            assert generate(narrow, usual_split(entry)).core.peak == pytest.approx(theirs.throughput, rel=0.05)
            assert narrow.core.wide_share == pytest.approx(theirs.wide_share, rel=0.01)


def test_the_usual_stacked_chip_is_like_an_mi300x() -> None:
    """304 compute units on eight dies of 115 mm^2, on four of 370 mm^2 (AMD 2023); of the 17 TB/s of its cache 11.9 were measured."""
    name, like = "accelerator-5nm-stacked", build_device(device("mi300x"), "mi300x", "bf16", 2)
    entry = technology(name)
    made, built = build_technology(entry, name), usual_chip(name)
    lower, upper = used_dies(made, Parts(**{part.name: getattr(built, part.name).area for part in fields(Parts)}))
    assert die_with_links(made.die_links, lower, 4.0) == pytest.approx(4 * 370e-6, rel=0.01)
    assert upper == pytest.approx(8 * 115e-6, rel=0.01)
    side = (370 * 1.5) ** 0.5  # across the row, each die with a stack on both sides
    assert built.package_area == pytest.approx((side + 2 * 11 + 1) * (4 * 370 / side + 1) * 1e-6)
    assert (built.core.peak, built.core.bundles) == (pytest.approx(like.throughput, rel=0.01), like.bundles)
    assert (built.dram.capacity, built.dram.bandwidth) == (like.dram.capacity, pytest.approx(like.dram.bandwidth, rel=0.01))
    assert (built.l2.capacity, built.l2.bandwidth) == (like.l2.capacity, pytest.approx(11.9e12, rel=0.01))
    assert built.l1.capacity == pytest.approx(304 * 96 * 1024, rel=0.01)
    assert built.registers.capacity == pytest.approx(304 * 512 * 1024, rel=0.01)
    assert made.core.register_traffic * 2 * built.core.peak <= built.registers.bandwidth
    assert built.intra.bandwidth == pytest.approx(like.links[0].bandwidth, rel=0.01)
    assert has_edge(usual_split(entry), built.edge)
    assert like.power * 0.95 < built.power(made.sustained) <= like.power
    assert generate(build_technology(entry, name, precision="fp8"), usual_split(entry)).core.peak == pytest.approx(2614.9e12, rel=0.01)


@pytest.mark.parametrize(
    ("name", "highest"),
    [
        ("accelerator-7nm", 1.41e9),
        ("accelerator-4nm", 1.98e9),
        ("accelerator-4np", 1.965e9),
        ("accelerator-5nm-stacked", 2.1e9),
        ("tensor-7nm", 1.05e9),
    ],
)
def test_cores_run_no_faster_than_those_that_are_sold_however_much_power_they_have(name: str, highest: float) -> None:
    """At any node, from 5 nm on those of 2022; and a later one bears a lower voltage, as it needs one."""
    for logic in technology(name).logic_nodes:
        later = name == "accelerator-7nm" and logic != "7nm"
        core = build_technology(technology(name), name, logic).core
        runs = compute(core, 100 * core.area, 1e5)
        assert runs.frequency == pytest.approx(1.98e9 if later else highest, rel=4e-3 if later else 1e-6)
        assert runs.voltage < core.maximum_voltage
        assert core.maximum_voltage / core.nominal_voltage == pytest.approx(1.1 / 0.8)


@pytest.mark.parametrize("name", [name for name in names("technologies") if name != "v100-class"])
def test_lanes_run_no_faster_than_their_standard_however_much_power_they_have(name: str) -> None:
    for network_step in technology(name).network_steps:
        made = build_technology(technology(name), name, network=network_step)
        for link in (made.intra, made.inter):
            lanes = network(link, 10 * link.area, 1e4, 1.0)
            assert lanes.frequency == pytest.approx(link.nominal_frequency)
            assert lanes.power == pytest.approx(10 * link.energy_per_bit * link.nominal_frequency)


@pytest.mark.parametrize("name", [name for name in names("technologies") if name != "v100-class"])
def test_stacks_run_no_faster_than_their_standard_however_much_power_they_have(name: str) -> None:
    """Of every generation; and they draw no more then than what the nominal rate takes."""
    entry = technology(name)
    for memory in (None, *entry.memories):
        made = build_technology(entry, name, memory=memory)
        made = replace(made, dram=replace(made.dram, least_l2=0.0))  # beside an L2 that lets all of it through
        usual = split_for_stacks(made, usual_split(entry), 2)
        powers = [replace(usual.powers, dram=watts) for watts in (usual.powers.dram, 1e4)]
        nominal, more = (generate(made, replace(usual, powers=each)).dram for each in powers)
        assert more.frequency == pytest.approx(made.dram.nominal_frequency, rel=1e-12)
        assert more.voltage == pytest.approx(made.dram.nominal_voltage, rel=1e-12)
        assert (more.bandwidth, more.power) == (pytest.approx(nominal.bandwidth, rel=1e-12), pytest.approx(nominal.power, rel=1e-12))
