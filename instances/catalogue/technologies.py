"""Conversion of a technology's entry for crossflow; separate because most questions name a device instead."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from crossopt.crossflow.cost import Prices
from crossopt.crossflow.dies import NO_LINKS
from crossopt.crossflow.generator import Edges, Split, cores_of, split_from_fractions, sram_banks
from crossopt.crossflow.technology import (
    HOLDING,
    UNLIMITED_VOLTAGE,
    Activity,
    DramTechnology,
    Node,
    Parts,
    Technology,
    at_node,
    at_precision,
    scale_logic,
    scale_network,
)
from crossopt.crossflow.workload import VALUE_BYTES, Precision
from crossopt.instances.catalogue.entries import ShareEntry, TechnologyEntry
from crossopt.instances.files.units import quoted

T = TypeVar("T")


def build_technology(
    entry: TechnologyEntry,
    name: str,
    logic: str | None = None,
    memory: str | None = None,
    network: str | None = None,
    precision: Precision = "bf16",
) -> Technology:
    """The technology with its parts at these generations; None keeps the generation of the entry."""
    rates = {"bf16": 1.0, "fp16": 1.0, **entry.core.rates}
    base = Technology(
        name=", ".join([name, *_later(logic, entry.logic_nodes), *_later(memory, entry.memories)]),
        core=entry.core,
        registers=entry.registers,
        l1=entry.l1,
        l2=entry.l2,
        dram=_dram(entry, memory),
        intra=entry.node_network,
        inter=entry.network,
        uncore=replace(entry.uncore, steady_area=entry.split.die_area),
        sustained=tuple(entry.sustained.values()) or (Activity(),),
        die_links=entry.die_links or NO_LINKS,
        upper_dies=entry.upper_dies,
    )
    network_steps = _generation("network generation", network, entry.network_steps) if network else 0
    made = scale_network(_at_node(base, _generation("logic node", logic, entry.logic_nodes) if logic else 0), network_steps)
    if precision not in rates:
        raise ValueError(f"{name} does not compute in {precision} (one of {', '.join(rates)})")
    return at_precision(made, rates[precision], VALUE_BYTES[precision])


def in_package(entry: TechnologyEntry, package: str | None) -> TechnologyEntry:
    """The technology with another package; None keeps the usual one."""
    if package is None:
        return entry
    other = _generation("package", package, entry.packages)
    prices = entry.prices and replace(entry.prices, interposer=other.interposer, bonding_loss=other.bonding_loss)
    return replace(
        entry,
        die_links=other.die_links,
        dram=replace(
            entry.dram,
            links_per_metre=other.stack_links_per_metre,
            links_per_stack=entry.dram.links_per_stack * other.stack_links_factor,
            energy_per_bit=entry.dram.energy_per_bit * other.stack_energy_factor,
            on_dies=other.stacks_on_dies,
        ),
        memories={
            name: replace(memory, links_per_stack=memory.links_per_stack * other.stack_links_factor)
            for name, memory in entry.memories.items()
        },
        split=replace(entry.split, package_area=other.package_area),
        power_density=other.power_density,
        prices=prices,
        sources={**entry.sources, "package": f"{package}: {other.source}"},
    )


def with_node_links(entry: TechnologyEntry, links: str | None) -> TechnologyEntry:
    """The technology with other links inside a node; None keeps the usual ones."""
    if links is None:
        return entry
    other = _generation("kind of links", links, entry.node_links)
    names = ("energy_per_bit", "links_per_metre", "area", "nominal_frequency", "latency")
    stated = {name: value for name in names if (value := getattr(other, name)) is not None}
    return replace(
        entry, node_network=replace(entry.node_network, **stated), sources={**entry.sources, "node_network": f"{links}: {other.source}"}
    )


def _later(generation: str | None, known: Mapping[str, Any]) -> list[str]:
    """The generation if it differs from the entry's, which is listed first."""
    return [generation] if generation is not None and generation != next(iter(known), generation) else []


def _at_node(technology: Technology, node: int | Node) -> Technology:
    return scale_logic(technology, node) if isinstance(node, int) else at_node(technology, node)


def usual_split(entry: TechnologyEntry) -> Split:
    """Default areas, powers and edges of the parts of a chip of this technology."""
    split = entry.split
    return split_from_fractions(
        split.die_area, split.package_area, split.power, split.areas, split.powers, edges_of(split), float(split.dies)
    )


def usual_areas(entry: TechnologyEntry, technology: Technology) -> Parts:
    """Default shares of the die. At another node cores and the memories that hold their tiles take the same share together, with as many
    bytes for each core: SRAM shrinks less than logic."""
    parts = entry.split.areas
    shrunk = technology.core.area / entry.core.area
    holding = [level for level in HOLDING if getattr(technology, level).least_per_bundle]
    each = {level: getattr(technology, level).area_per_bit / getattr(entry, level).area_per_bit / shrunk for level in holding}
    if all(factor == 1.0 for factor in each.values()):
        return parts
    beside = {level: getattr(parts, level) / parts.core * factor for level, factor in each.items()}
    core = (parts.core + sum(getattr(parts, level) for level in holding)) / (1.0 + sum(beside.values()))
    return replace(parts, core=core, **{level: core * ratio for level, ratio in beside.items()})


def reference_l2_banks(entry: TechnologyEntry) -> float:
    """Banks of L2 per core in the chip on the market."""
    made, split = build_technology(entry, ""), usual_split(entry)
    cores = float(cores_of(made.core, split.areas.core, split.dies))
    return float(sram_banks(made.l2, split.areas.l2, cores // made.core.cores_per_bundle)) / cores


def usual_prices(entry: TechnologyEntry, logic: str | None, memory: str | None) -> Prices | None:
    """Default prices of chips of these generations, or else of the first; None if the entry states none."""
    if (given := entry.prices) is None:
        return None
    wafer = given.wafers.get(logic or next(iter(entry.logic_nodes), ""))
    stack = given.stacks.get(memory or next(iter(entry.memories), ""))
    if wafer is None or stack is None:
        return None
    beside = {name: getattr(given, name) for name in ("package", "interposer", "bonding_loss", "lane")}
    return Prices(0.0, 0.0, wafer=wafer, defect_density=given.defects_per_square_metre, stack=stack, **beside)


def edges_of(split: ShareEntry) -> Edges:
    """Shares of die edge by crossflow's names."""
    return Edges(split.hbm_edge, split.node_network_edge, split.network_edge)


def _generation(what: str, name: str, table: Mapping[str, T]) -> T:
    if name not in table:
        raise ValueError(f"{quoted(name)} is no {what} of this technology (one of {', '.join(table) or 'none'})")
    return table[name]


def _dram(entry: TechnologyEntry, memory: str | None) -> DramTechnology:
    """The stacked memory, of another generation if one is named: energy and nominal voltage by factors, the rest by absolute figures.

    It runs at its nominal rate at the most, whatever its power, unless the entry names a higher voltage, as the case study does."""
    dram = entry.dram
    if memory is not None:
        other = _generation("memory generation", memory, entry.memories)
        dram = replace(
            dram,
            stack_capacity=other.stack_capacity,
            stack_area=other.stack_area,
            stack_edge=dram.stack_edge if other.stack_edge is None else other.stack_edge,
            controller_area=dram.controller_area * other.controller_factor,
            links_per_stack=other.links_per_stack,
            nominal_frequency=other.nominal_frequency,
            energy_per_bit=dram.energy_per_bit * other.energy_factor,
            nominal_voltage=dram.nominal_voltage * other.voltage_factor,
        )
    if entry.dram.maximum_voltage < UNLIMITED_VOLTAGE:
        return dram
    return replace(dram, maximum_voltage=max(dram.nominal_voltage, dram.threshold_voltage + dram.margin_voltage))
