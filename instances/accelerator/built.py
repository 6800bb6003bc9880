"""Chips of a technology for questions about graphs: a grid of their parts, as devices of the roofline, within limits of area and power.

What is not chosen is that of the technology's usual chip. Operators of a layer run one after another on the whole chip, in bf16.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Annotated, Any

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.crossflow.device import device_from
from crossopt.crossflow.fields import Area, AreaChoice, CountChoice, Doc, NonZero, Power, PowerChoice
from crossopt.crossflow.generator import generate
from crossopt.crossflow.hardware import Hardware, take
from crossopt.crossflow.operator_costs import columns_of, graph_costs
from crossopt.instances.accelerator.networks import Network
from crossopt.instances.catalogue.chips import TechnologyChip, placed, split_of
from crossopt.instances.catalogue.entries import TechnologyEntry
from crossopt.instances.catalogue.registry import constants_of, technology_named
from crossopt.instances.catalogue.technologies import build_technology, edges_of, usual_areas

MOST_POINTS = 200_000
_VALUE_BYTES = 2.0


@dataclass(frozen=True, slots=True)
class TechnologySection:
    """Chips of a technology: options of their parts, and limits."""

    name: Annotated[str, Doc("a technology of `crossopt list technologies`")]
    compute_area: Annotated[AreaChoice, Doc("of the cores")] = ()
    compute_power: Annotated[PowerChoice, Doc("of the cores")] = ()
    registers_area: Annotated[AreaChoice, Doc("of registers")] = ()
    l1_area: Annotated[AreaChoice, Doc("of L1 memories")] = ()
    l2_area: Annotated[AreaChoice, Doc("of L2")] = ()
    l2_power: Annotated[PowerChoice, Doc("of L2")] = ()
    hbm_stacks: Annotated[CountChoice, Doc("stacks of memory")] = ()
    hbm_power: Annotated[PowerChoice, Doc("of the stacks")] = ()
    die_area: Annotated[Area | None, NonZero(), Doc("greatest area of the die; default: the usual chip's")] = None
    package_area: Annotated[Area | None, NonZero(), Doc("greatest area of the package; default: the usual chip's")] = None
    power: Annotated[Power | None, NonZero(), Doc("greatest power; default: the usual chip's")] = None

    def options(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        """Choices by name, those that are made."""
        names = ("compute_area", "compute_power", "registers_area", "l1_area", "l2_area", "l2_power", "hbm_stacks", "hbm_power")
        return tuple((name, tuple(float(one) for one in getattr(self, name))) for name in names if getattr(self, name))


@dataclass(frozen=True, slots=True, eq=False)
class BuiltChips:
    """Chips of a grid that can be built within the limits."""

    options: tuple[tuple[str, tuple[float, ...]], ...]
    points: Whole
    """Places in the grid."""
    hardware: Hardware
    """Arrays over the chips."""

    def __len__(self) -> int:
        return len(self.points)

    @property
    def memory(self) -> Array:
        """Bytes of each chip for a network."""
        return np.asarray(np.maximum(self.hardware.dram.capacity - self.hardware.reserved_memory, 0.0))

    def chosen(self, chip: int) -> dict[str, float]:
        """What is chosen of a chip."""
        places = np.unravel_index(int(self.points[chip]), [len(values) for _, values in self.options]) if self.options else ()
        return {name: values[int(place)] for (name, values), place in zip(self.options, places, strict=True)}

    def find(self, chosen: Mapping[str, float]) -> int:
        """The chip with these choices; a ValueError where there is none."""
        try:
            places = [values.index(chosen[name]) for name, values in self.options]
            point = int(np.ravel_multi_index(places, [len(values) for _, values in self.options])) if places else 0
        except (KeyError, ValueError):
            point = -1
        found = np.flatnonzero(self.points == point)
        if len(chosen) != len(self.options) or not len(found):
            raise ValueError("the chip is none of the question, or breaks its limits")
        return int(found[0])

    def seconds(self, network: Network, chips: Whole) -> Array:
        """Seconds of all kinds of layers in both passes on some chips: kinds x 2 x chips."""
        graph = network.imported
        if graph is None:
            raise ValueError("chips of a technology price imported graphs only")
        hardware = take(self.hardware, chips)
        costs, shape = graph_costs(columns_of(graph), _VALUE_BYTES, hardware), (len(graph.nodes), len(chips))
        sides = [np.broadcast_to(side.time, shape) for side in (costs.forward, costs.backward)]
        return np.array([[side[list(members)].sum(axis=0) for side in sides] for members in network.nodes])


def built_chips(section: TechnologySection) -> BuiltChips:
    """All chips of a grid; a ValueError in words where none is within the limits."""
    entry, node = technology_named(section.name)
    technology, (efficiency, _) = build_technology(entry, section.name, node), constants_of(entry, section.name, None)
    options = section.options()
    count = prod(len(values) for _, values in options)
    if count > MOST_POINTS:
        raise ValueError(f"{count:,} chips are more than {MOST_POINTS:,} (give fewer options)")
    points = np.arange(count)
    places = np.unravel_index(points, [len(values) for _, values in options]) if options else ()
    chosen = {name: np.array(values, np.float64)[place] for (name, values), place in zip(options, places, strict=True)}
    own = entry.split
    usual = TechnologyChip(
        technology, own.die_area, own.package_area, own.power, float(own.dies), usual_areas(entry, technology), own.powers, edges_of(own)
    )
    split = split_of(usual, chosen)
    built = generate(technology, split)
    device = device_from(technology, built, _VALUE_BYTES, efficiency)
    room = placed(technology, split, split, built, chosen.get("hbm_stacks", built.dram.stacks))
    device = replace(
        device,
        dram=replace(device.dram, capacity=device.dram.capacity * room),
        die_area=split.die_area,
        dies=split.dies,
        power_density=built.die_power(technology.sustained) / split.die_area,
        reserved_memory=entry.reserved_memory,
    )
    hardware = _as_arrays(device, count)
    rows = np.flatnonzero(_within(section, entry, hardware))
    if not len(rows):
        raise ValueError("no chip of the technology can be built within the limits of area and power (allow more, or smaller parts)")
    return BuiltChips(options, points[rows], take(hardware, rows))


def _as_arrays(device: Hardware, count: int) -> Hardware:
    """The device with every figure that chips differ in as an array."""
    levels = {
        name: replace(level, **{part: _full(getattr(level, part), count) for part in ("capacity", "bandwidth", "energy")})
        for name in ("dram", "l2", "l1", "registers")
        for level in (getattr(device, name),)
    }
    names = ("throughput", "vector_throughput", "bundles", "energy_per_flop", "idle_power", "running_power", "power", "die_area")
    own: dict[str, Any] = {name: _full(getattr(device, name), count) for name in (*names, "package_area", "power_density", "dies")}
    return replace(device, links=(), headroom=0.0, **levels, **own)


def _full(value: object, count: int) -> Array:
    return np.array(np.broadcast_to(np.asarray(value, np.float64), count))


def _within(section: TechnologySection, entry: TechnologyEntry, hardware: Hardware) -> Mask:
    """Chips with cores and memories, within all limits."""
    memories, own = (hardware.dram, hardware.l2, hardware.l1, hardware.registers), entry.split
    needed = [hardware.throughput, hardware.bundles, *(part for memory in memories for part in (memory.capacity, memory.bandwidth))]
    found = np.asarray(np.all([np.greater(value, 0.0) for value in needed], axis=0))
    limits = {name: getattr(section, name) or getattr(own, name) for name in ("die_area", "package_area", "power")}
    limits["power_density"] = inf if entry.power_density is None else entry.power_density
    for name, limit in limits.items():
        found &= np.less_equal(getattr(hardware, name), limit)
    return np.asarray(found & np.less_equal(hardware.one_die, inf if entry.reticle is None else entry.reticle))
