"""Splits of chips of a technology, from what is chosen of them and the usual chip for the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from crossopt.crossflow.arrays import Array, Real
from crossopt.crossflow.device import Architecture
from crossopt.crossflow.dies import SLACK, count, die_with_links, equal_per_die, perimeter_of
from crossopt.crossflow.generator import (
    Edges,
    Split,
    dram_power_at_nominal,
    has_edge,
    sram_banks,
    sram_most_power,
    sram_static_power,
    swing,
)
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.technology import HOLDING, ON_DIE, UNLIMITED_PORT, CoreTechnology, LinkTechnology, Parts, SramTechnology, Technology
from crossopt.crossflow.voltage import highest_frequency, voltage_at

PART_OF = {"compute": "core", "registers": "registers", "l1": "l1", "l2": "l2", "hbm": "dram", "node_network": "intra", "network": "inter"}
"""The generator's name of each part that choices can name."""


class UsualChip(Protocol):
    """A technology with its usual chip, in square metres, watts and shares of both."""

    @property
    def technology(self) -> Technology: ...
    @property
    def die_area(self) -> float: ...
    @property
    def package_area(self) -> float: ...
    @property
    def power(self) -> float: ...
    @property
    def dies(self) -> float: ...
    @property
    def areas(self) -> Parts: ...
    @property
    def powers(self) -> Parts: ...
    @property
    def edges(self) -> Edges: ...


@dataclass(frozen=True, slots=True)
class TechnologyChip:
    """A technology with its usual chip, as a UsualChip of its own."""

    technology: Technology
    die_area: float
    package_area: float
    power: float
    dies: float
    areas: Parts
    powers: Parts
    edges: Edges


def split_of(usual: UsualChip, chosen: Mapping[str, Array]) -> Split:
    """The split of the chip with these choices; the rest follows from them or from the default split.

    The die is as large as its parts, what is no part and its links to other dies, or as the dies that are stacked on it, unless a larger
    one is chosen for the sake of its edge.
    Registers and L1 that hold the tiles of each bundle come with the cores. Watts that are not a choice do not limit what was chosen
    (`_watts`).
    """
    areas = _parts(usual.areas, usual.die_area, chosen, "area")
    if "compute_area" in chosen:
        more = chosen["compute_area"] / (usual.areas.core * usual.die_area)
        levels = followers(usual.technology, tuple(chosen))
        areas = replace(areas, **{level: getattr(areas, level) * more for level in levels})
    powers = replace(_parts(usual.powers, usual.power, chosen, "power"), **_watts(usual.technology, areas, chosen))
    edges = replace(usual.edges, **{part: chosen[f"{name}_edge"] for name, part in PART_OF.items() if f"{name}_edge" in chosen})
    stacks = chosen.get("hbm_stacks")
    if stacks is not None:
        areas = replace(areas, dram=stacks * usual.technology.dram.controller_area)
    dies = chosen.get("dies", usual.dies)
    lower, upper = used_dies(usual.technology, areas)
    die = np.maximum(die_with_links(usual.technology.die_links, lower, dies), np.maximum(upper, chosen.get("die_area", 0.0)))
    package = usual.package_area if stacks is None else np.inf
    if stacks is not None and "hbm_power" not in chosen:
        powers = replace(powers, dram=dram_power_at_nominal(usual.technology, stacks, edges.dram * perimeter_of(die, dies)))
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
            watts[PART_OF[name]] = link.energy_per_bit * link.nominal_frequency * count(chosen[f"{name}_area"], link.area)
    return watts


def _watts_of_ports(core: CoreTechnology, sram: SramTechnology, area: Real) -> Real:
    """Upper bound as computed of a memory level's watts with all ports busy at the cores' highest clock."""
    banks = sram_banks(sram, area, 0.0)
    clock = highest_frequency(core, core.maximum_frequency)
    return SLACK * sram_most_power(sram, banks, sram_static_power(sram, banks), clock, swing(core, sram, voltage_at(core, clock)))


def followers(technology: Technology, names: Sequence[str]) -> tuple[str, ...]:
    """Memories whose area follows the cores' because only the latter is chosen."""
    holding = (level for level in HOLDING if getattr(technology, level).least_per_bundle)
    return tuple(level for level in holding if "compute_area" in names and f"{level}_area" not in names)


def used_dies(technology: Technology, areas: Parts) -> tuple[Real, Real]:
    """Square metres of dies for parts with their share of uncore: of the lower dies, and of those stacked on them."""
    upper, lower = areas.core + areas.registers + areas.l1, areas.l2 + areas.dram + areas.intra + areas.inter
    if technology.upper_dies is not None:
        return lower / (1.0 - technology.uncore.area_share), upper / (1.0 - technology.upper_dies.area_share)
    return (upper + areas.l2 + areas.dram + areas.intra + areas.inter) / (1.0 - technology.uncore.area_share), 0.0


def placed(technology: Technology, least: Split, most: Split, built: Architecture, stacks: Real) -> Array:
    """1 where as many stacks as chosen find a place, with as many beside every die, and stacks and wires together the edge; else 0."""
    beside_dies = technology.dram.has_places and np.equal(least.dies, most.dies)
    found = np.where(beside_dies, equal_per_die(built.dram.stacks, most.dies), built.dram.stacks)
    return np.where(np.less(found, stacks) | ~has_edge(most, built.edge), 0.0, 1.0)


def _parts(shares: Parts, total: Real, chosen: Mapping[str, Array], suffix: str) -> Parts:
    """Each part's choice, or its default share of the total."""
    values = {part: chosen.get(f"{name}_{suffix}", getattr(shares, part) * total) for name, part in PART_OF.items()}
    return Parts(**values)
