"""Chips of a question with free hardware: from choices to devices. Separate because most questions name a device."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from crossopt.crossflow.arrays import Array, Real, Whole
from crossopt.crossflow.cost import Made
from crossopt.crossflow.device import Architecture, device_from
from crossopt.crossflow.dies import SLACK, count, die_with_links, equal_per_die, package_area_of, perimeter_of
from crossopt.crossflow.envelope import core_counts
from crossopt.crossflow.generator import (
    Split,
    dram_power_at_nominal,
    generate,
    has_edge,
    row_of,
    sram_banks,
    sram_most_power,
    sram_static_power,
    swing,
    wires_of,
)
from crossopt.crossflow.hardware import Hardware, Link
from crossopt.crossflow.technology import HOLDING, ON_DIE, UNLIMITED_PORT, CoreTechnology, LinkTechnology, Parts, SramTechnology, Technology
from crossopt.crossflow.voltage import highest_frequency, voltage_at
from crossopt.instances.codesign.instance import FreeHardware, Join, Options

PART_OF = {"compute": "core", "registers": "registers", "l1": "l1", "l2": "l2", "hbm": "dram", "node_network": "intra", "network": "inter"}
"""The generator's name of each part that choices can name."""


def generated(free: FreeHardware, points: Whole) -> tuple[Hardware, Made]:
    """The devices of the points and their composition. Budgets are not considered, so that a larger one never removes a design."""
    chosen = _chosen(free.options, points)
    split = split_of(free, chosen)
    built = generate(free.technology, split)
    made = made_of(free, split, split, built.dram.stacks)
    return device_of(free, built, split, split, chosen.get("hbm_stacks", built.dram.stacks)), made


def made_of(free: FreeHardware, least: Split, most: Split, stacks: Real) -> Made:
    """Lower bound of the composition of chips between two splits (upper bound for spares); for equal splits the chip itself.

    Beside the bundles, their spares and the cells of L2, which have spare rows and columns, a die is at least what its parts leave beside
    the smallest ones, since the uncore grows with the parts by more than the spares do, and what the smallest die leaves beside the
    largest ones.
    """
    technology = free.technology
    share, low, high = technology.uncore.spare_bundles, _bundled(least), _bundled(most)
    few, many = (np.floor(cores / technology.core.cores_per_bundle) for cores in core_counts(technology.core, least, most))
    fewer, more = ((1.0 + share) * each + _repaired(technology, split) for each, split in ((low, least), (high, most)))
    rest = np.maximum(least.die_area - more, sum(used_dies(technology, least.areas)) - fewer)
    return Made(
        die_area=least.die_area,
        stacks=stacks,
        rest=np.maximum(rest, 0.0),
        bundle=np.maximum(low / np.maximum(many, 1.0), technology.core.cores_per_bundle * technology.core.area),
        needed=np.minimum(np.maximum(few, 1.0), many) if share else 0.0,
        spare=np.floor(share * many),
        wires=wires_of(
            technology.inter, least.areas.inter, least.edges.inter * perimeter_of(least.die_area, least.dies), least.powers.inter
        ),
        dies=most.dies,
        package_area=package_area_of(technology.dram, stacks, row_of(least), row_of(most)),
    )


def _bundled(split: Split) -> Real:
    return split.areas.core + split.areas.registers + split.areas.l1


def _repaired(technology: Technology, split: Split) -> Real:
    """Square metres of L2 cells, which are repairable."""
    return (1.0 - technology.l2.overhead) * split.areas.l2


def split_of(free: FreeHardware, chosen: dict[str, Array]) -> Split:
    """The split of the chip with these choices; the rest follows from them or from the default split.

    The die is as large as its parts, what is no part and its links to other dies, or as the dies that are stacked on it, unless a larger
    one is chosen for the sake of its edge.
    Registers and L1 that hold the tiles of each bundle come with the cores. Watts that are not a choice do not limit what was chosen
    (`_watts`).
    """
    areas = _parts(free.areas, free.die_area, chosen, "area")
    if "compute_area" in chosen:
        more = chosen["compute_area"] / (free.areas.core * free.die_area)
        levels = followers(free.technology, tuple(chosen))
        areas = replace(areas, **{level: getattr(areas, level) * more for level in levels})
    powers = replace(_parts(free.powers, free.power, chosen, "power"), **_watts(free.technology, areas, chosen))
    edges = replace(free.edges, **{part: chosen[f"{name}_edge"] for name, part in PART_OF.items() if f"{name}_edge" in chosen})
    stacks = chosen.get("hbm_stacks")
    if stacks is not None:
        areas = replace(areas, dram=stacks * free.technology.dram.controller_area)
    dies = chosen.get("dies", free.dies)
    lower, upper = used_dies(free.technology, areas)
    die = np.maximum(die_with_links(free.technology.die_links, lower, dies), np.maximum(upper, chosen.get("die_area", 0.0)))
    package = free.package_area if stacks is None else np.inf
    if stacks is not None and "hbm_power" not in chosen:
        powers = replace(powers, dram=dram_power_at_nominal(free.technology, stacks, edges.dram * perimeter_of(die, dies)))
    return Split(die, package, areas, powers, edges, dies)


def fed_by_ports(technology: Technology) -> tuple[str, ...]:
    """On-die memories limited by their ports alone, whatever their power."""
    return tuple(level for level in ON_DIE if getattr(technology, level).bank_bytes_per_cycle < UNLIMITED_PORT)


def _watts(technology: Technology, areas: Parts, chosen: Mapping[str, Array]) -> dict[str, Real]:
    """Watts of parts whose power follows from their area: ports of memories at the highest clock, and lanes at their standard's rate. What
    is not drawn costs nothing, as limits count what kernels draw."""
    memories = (level for level in fed_by_ports(technology) if f"{level}_power" not in chosen)
    watts = {level: _watts_of_ports(technology.core, getattr(technology, level), getattr(areas, level)) for level in memories}
    for name in ("node_network", "network"):
        link: LinkTechnology = getattr(technology, PART_OF[name])
        if link.one_rate and f"{name}_area" in chosen and f"{name}_power" not in chosen:
            watts[PART_OF[name]] = _watts_of_lanes(link, chosen[f"{name}_area"])
    return watts


def _watts_of_ports(core: CoreTechnology, sram: SramTechnology, area: Real) -> Real:
    """Upper bound as computed of a memory level's watts with all ports busy at the cores' highest clock."""
    banks = sram_banks(sram, area, 0.0)
    clock = highest_frequency(core, core.maximum_frequency)
    return SLACK * sram_most_power(sram, banks, sram_static_power(sram, banks), clock, swing(core, sram, voltage_at(core, clock)))


def _watts_of_lanes(link: LinkTechnology, area: Real) -> Real:
    """Watts of as many wires as fit the area, at their standard's rate."""
    return link.energy_per_bit * link.nominal_frequency * count(area, link.area)


def followers(technology: Technology, names: Sequence[str]) -> tuple[str, ...]:
    """Memories whose area follows the cores' because only the latter is chosen."""
    holding = (level for level in HOLDING if getattr(technology, level).least_per_bundle)
    return tuple(level for level in holding if "compute_area" in names and f"{level}_area" not in names)


def device_of(free: FreeHardware, built: Architecture, least: Split, most: Split, stacks: Real) -> Hardware:
    """The device of an architecture with the links of each network level, on the least area and the most dies of two splits.
    Its memory has no capacity if fewer stacks than chosen find a place, with as many beside every die.
    The same holds if stacks and wires together exceed the edge.
    """
    device = device_from(free.technology, built, 2.0, free.efficiency)
    made = tuple(replace(link, setup=setup) for link, setup in zip(device.links, free.setups, strict=True))
    levels = zip(free.levels, free.overrides, free.joins, strict=True)
    links = tuple(given or joined(made[("intra", "inter").index(level)], join) for level, given, join in levels)
    beside_dies = free.technology.dram.stack_edge and np.equal(least.dies, most.dies)
    found = np.where(beside_dies, equal_per_die(built.dram.stacks, most.dies), built.dram.stacks)
    placed = np.where(np.less(found, stacks) | ~has_edge(most, built.edge), 0.0, 1.0)
    return replace(
        device,
        links=links,
        dram=replace(device.dram, capacity=device.dram.capacity * placed),
        die_area=least.die_area,
        dies=most.dies,
        power_density=built.die_power(free.technology.sustained) / most.die_area,
        reserved_memory=free.reserved_memory,
        host=free.host,
        variants=free.variants,
    )


def joined(link: Link, join: Join) -> Link:
    """The level's share of the wires of such links, by its topology."""
    return replace(link, bandwidth=link.bandwidth * join.share, shape=join.shape, size=join.units)


def drawn_of(free: FreeHardware, chosen: Mapping[str, float]) -> dict[str, float]:
    """Upper bound of the watts drawn by the parts of one chip whose power is chosen, by choice.
    It is below the chosen power where the highest clock, the wires or the ports take no more.
    """
    powers = {f"{name}_power": part for name, part in PART_OF.items() if f"{name}_power" in chosen}
    if not powers:
        return {}
    built = generate(free.technology, split_of(free, {name: np.array([value], np.float64) for name, value in chosen.items()}))
    return {name: float(np.max(getattr(built, part).power)) for name, part in powers.items()}


def clock_of(free: FreeHardware, chosen: Mapping[str, float]) -> float:
    """Clock of the cores of one chip, in hertz."""
    split = split_of(free, {name: np.array([value], np.float64) for name, value in chosen.items()})
    return float(np.max(generate(free.technology, split).core.frequency))


def used_dies(technology: Technology, areas: Parts) -> tuple[Real, Real]:
    """Square metres of dies for parts with their share of uncore: of the lower dies, and of those stacked on them."""
    upper, lower = areas.core + areas.registers + areas.l1, areas.l2 + areas.dram + areas.intra + areas.inter
    if technology.upper_dies is not None:
        return lower / (1.0 - technology.uncore.area_share), upper / (1.0 - technology.upper_dies.area_share)
    return (upper + areas.l2 + areas.dram + areas.intra + areas.inter) / (1.0 - technology.uncore.area_share), 0.0


def _chosen(options: Options, points: Whole) -> dict[str, Array]:
    places = np.unravel_index(points, [len(values) for _, values in options]) if options else ()
    return {name: np.array(values, np.float64)[index] for (name, values), index in zip(options, places, strict=True)}


def _parts(shares: Parts, total: Real, chosen: dict[str, Array], suffix: str) -> Parts:
    """Each part's choice, or its default share of the total."""
    values = {part: chosen.get(f"{name}_{suffix}", getattr(shares, part) * total) for name, part in PART_OF.items()}
    return Parts(**values)
