"""The architecture generator: from technology and a split of area, power and die edge to counts, clocks, capacities and bandwidths.

The formulas are those of DeepFlow (arXiv 2211.03309; repository nanocad-lab/DeepFlow); its published case study is reproduced. Every
field of a `Split` may be a float or an array over many designs; arrays broadcast against each other, and a field of the architecture has
the shape of the inputs it depends on. Only + - * / sqrt, floor, min and max are used, so that a design costs the same bits alone or
among many. Sums of areas and powers are not checked here: whether a split keeps its budgets is a limit of the design, not an error.
"""

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np

from crossopt.crossflow.arrays import Mask, Real
from crossopt.crossflow.device import Architecture, Compute, Dram, Network, Sram
from crossopt.crossflow.dies import (
    SLACK,
    Row,
    crossings_of,
    die_links_power,
    package_area_of,
    perimeter_of,
    places_of,
    room_for,
    through_joints,
)
from crossopt.crossflow.dies import count as _count
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.technology import (
    ON_DIE,
    UNLIMITED_PORT,
    CoreTechnology,
    DramTechnology,
    LinkTechnology,
    Parts,
    SramTechnology,
    Technology,
)
from crossopt.crossflow.voltage import nominal_frequency_power, operating_point, voltage_at

_LARGEST = 1.0e30
"""Square metres: far above any package."""


@dataclass(frozen=True, slots=True)
class Edges:
    """Shares of the die's perimeter for the wires to each kind of neighbour."""

    dram: Real
    intra: Real
    inter: Real


@dataclass(frozen=True, slots=True)
class Split:
    """Division of a chip's resources among its parts: square metres, watts, shares of the perimeter."""

    die_area: Real
    package_area: Real
    """Package area available to stacks; unlimited if the package is made as large as the stacks need."""
    areas: Parts
    powers: Parts
    edges: Edges
    dies: Real = 1.0
    """Number of identical dies in the package; areas and powers are totals over all dies."""

    def __post_init__(self) -> None:
        """Refuse figures that are impossible for a chip."""
        if not np.all(np.asarray(self.dies) >= 1.0):
            raise ValueError(f"dies must be at least 1, it is {self.dies}")
        totals = (("die_area", self.die_area), ("package_area", np.minimum(self.package_area, _LARGEST)))
        groups = (("areas", self.areas), ("powers", self.powers), ("edges", self.edges))
        for name, value in (*totals, *((f"{group}.{name}", value) for group, record in groups for name, value in _figures(record))):
            if not (0.0 <= value < np.inf if isinstance(value, float) else (np.isfinite(value) & np.greater_equal(value, 0.0)).all()):
                raise ValueError(f"{name} must be finite and not negative (0 for an absent part), it is {value}")


def split_from_fractions(
    die_area: Real, package_area: Real, power: Real, areas: Parts, powers: Parts, edges: Edges, dies: Real = 1.0
) -> Split:
    """A split with areas as fractions of the die and powers as fractions of the total power."""
    return Split(die_area, package_area, _times(areas, die_area), _times(powers, power), edges, dies)


def dram_power_at_nominal(technology: Technology, stacks: Real, edge: Real) -> Real:
    """Watts that run `stacks` stacks at nominal frequency: energy per bit * wires * frequency + static power of the capacity."""
    dram = technology.dram
    links = dram_links(dram, stacks, edge)
    return nominal_frequency_power(dram, dram.energy_per_bit * dram.nominal_frequency * links) + dram_static_power(dram, stacks)


def generate(technology: Technology, split: Split) -> Architecture:
    """The architecture that a split gives; parts that do not fit are zero."""
    areas, powers, perimeter, row = split.areas, split.powers, perimeter_of(split.die_area, split.dies), row_of(split)
    core = compute(technology.core, areas.core, powers.core, split.dies)
    registers, l1, l2 = (_sram(technology, level, split, core) for level in ON_DIE)
    l2 = over_joints(technology, l2, split.dies)
    l2 = feeding(technology, limited(l2, through_joints(technology.die_links, split.die_area, split.dies)), core.peak)
    dram = paced(technology, _dram(technology.dram, split, perimeter), l2.bandwidth)
    slow = slow_clock(technology, (registers, l1, l2), dram.bandwidth, core.frequency)
    intra = network(technology.intra, areas.intra, powers.intra, split.edges.intra * perimeter)
    inter = network(technology.inter, areas.inter, powers.inter, split.edges.inter * perimeter)
    return Architecture(
        core=slowed(technology.core, core, core.cores, slow),
        registers=registers,
        l1=l1,
        l2=l2,
        dram=dram,
        intra=intra,
        inter=inter,
        uncore_idle=uncore_idle(technology, split.die_area, core.voltage),
        uncore_switched=uncore_switched(technology, split.die_area, core.voltage, core.frequency),
        uncore_slow=uncore_switched(technology, split.die_area, voltage_at(technology.core, slow), slow),
        products=core.peak,
        streamed=dram.bandwidth * technology.dram.utilisation,
        edge=edge_of(technology, dram.stacks, intra.links, inter.links),
        package_area=package_area_of(technology.dram, dram.stacks, row, row),
        crossings=crossings_of(split.dies),
        die_links_power=die_links_power(technology.die_links, split.die_area, split.dies),
    )


def uncore_idle(technology: Technology, die_area: Real, voltage: Real) -> Real:
    """Static watts of the uncore: leakage follows the supply of the cores, the rest is constant."""
    uncore, core = technology.uncore, technology.core
    leaks = uncore.area_share * core.leakage_per_area * (voltage / core.nominal_voltage)
    return uncore_steady(technology, die_area) + leaks * die_area


def uncore_steady(technology: Technology, die_area: Real) -> Real:
    """Constant watts of the uncore, for one host interface and one set of regulators; at most those of the usual chip."""
    return technology.uncore.steady_per_area * np.minimum(die_area, technology.uncore.steady_area)


def uncore_switched(technology: Technology, die_area: Real, voltage: Real, frequency: Real) -> Real:
    """Watts of the uncore that switch with supply and clock of the cores, as V^2 f."""
    core, supply = technology.core, voltage / technology.core.nominal_voltage
    return technology.uncore.power_per_area * (supply * supply * (frequency / core.nominal_frequency)) * die_area


def compute(core: CoreTechnology, area: Real, power: Real, dies: Real = 1.0) -> Compute:
    """Cores = floor(area / core area), bundles = floor(cores / cores per bundle), peak = FLOP per cycle * frequency * cores."""
    cores = cores_of(core, area, dies)
    return compute_of(core, cores, power)


def compute_of(core: CoreTechnology, cores: Real, power: Real) -> Compute:
    """This many cores, with the clock that their power allows after leakage."""
    present, count = np.minimum(cores, 1.0), np.maximum(cores, 1.0)
    leaked = core.leakage * count
    point = operating_point(core, power, core.switching_power * count, leaked, core.maximum_frequency)
    supply = point.voltage / core.nominal_voltage
    return Compute(
        cores=cores,
        bundles=np.floor(cores / core.cores_per_bundle),
        voltage=point.voltage * present,
        frequency=point.frequency * present,
        peak=core.flop_per_cycle * point.frequency * cores,
        leakage=leaked * supply * present,
        clocked=core.clocked_share * core.switching_power * (supply * supply * (point.frequency / core.nominal_frequency)) * cores,
        slow_clocked=0.0,
        slow_flops=0.0,
        area=cores * core.area,
        power=point.power * present,
    )


def slow_clock(technology: Technology, levels: tuple[Sram, Sram, Sram], delivered: Real, frequency: Real) -> Real:
    """The lowest clock at which the ports of registers, L1 and L2 pass on what the stacks deliver; at most the cores' own."""
    slowest: Real = 0.0
    for level, built in zip(ON_DIE, levels, strict=True):
        sram: SramTechnology = getattr(technology, level)
        if sram.bank_bytes_per_cycle < UNLIMITED_PORT:
            width = np.maximum(built.banks, 1.0) * (sram.bank_bytes_per_cycle * sram.utilisation)
            slowest = np.maximum(slowest, delivered * technology.dram.utilisation / width)
    return np.minimum(slowest, frequency)


def slowed(core: CoreTechnology, built: Compute, cores: Real, clock: Real) -> Compute:
    """The cores with the watts that `cores` of them switch at a lower clock."""
    supply = voltage_at(core, clock) / core.nominal_voltage
    switched = core.switching_power * (supply * supply * (clock / core.nominal_frequency)) * cores
    return replace(built, slow_clocked=core.clocked_share * switched, slow_flops=(1.0 - core.clocked_share) * switched)


def cores_of(core: CoreTechnology, area: Real, dies: Real = 1.0) -> Real:
    """Number of cores on this area. Several dies hold an equal number of whole bundles each.
    A single die holds only whole bundles if `core.whole_bundles`; otherwise cores of a partial bundle count too.
    """
    count = _count(area, core.area)
    shared = dies * np.floor(np.floor(count / core.cores_per_bundle) / dies) * core.cores_per_bundle
    return np.where(np.greater(dies, 1.0) | core.whole_bundles, shared, count)[()]


def sram_banks(sram: SramTechnology, area: Real, bundles: Real) -> Real:
    """Banks = floor(area / (cells / (1 - overhead) + bundles * controller))."""
    return _count(area, bank_area(sram, bundles))


def sram_static_power(sram: SramTechnology, banks: Real) -> Real:
    """Static watts that keep the banks alive."""
    return 8.0 * sram.static_power_per_bit * (banks * sram.bank_capacity)


def swing(core: CoreTechnology, sram: SramTechnology, voltage: Real) -> Real:
    """Energy of a bit at this core supply relative to the nominal supply: V^2 if the level shares the supply, else 1."""
    supply = np.where(np.greater(voltage, 0.0), voltage, core.nominal_voltage)[()] / core.nominal_voltage
    return supply * supply if sram.core_supply else 1.0


def sram_of(sram: SramTechnology, banks: Real, bundles: Real, power: Real, static: Real, clock: Real, swing: Real = 1.0) -> Sram:
    """The level with this many banks; `static` watts of its power are not available for moving bytes.

    Bandwidth = min(power left / energy per byte, banks * bytes of a port in a cycle * clock); power beyond that is left unused. Banks that
    the power cannot keep alive count as absent, and so do those that do not hold the tiles of their bundles.
    """
    dynamic = power - static
    holds = banks * sram.bank_capacity >= bundles * sram.least_per_bundle
    present = np.where((banks > 0.0) & (dynamic > 0.0) & holds, 1.0, 0.0)[()]
    bandwidth = sram_moves(sram, banks, dynamic, clock, swing)
    return Sram(
        banks=banks * present,
        capacity=banks * sram.bank_capacity * present,
        bandwidth=bandwidth * present,
        energy=8.0 * sram.energy_per_bit * swing * present,
        static=static * present,
        area=banks * bank_area(sram, bundles) * present,
        power=np.minimum(power, sram_most_power(sram, banks, static, clock, swing)) * present,
    )


def sram_moves(sram: SramTechnology, banks: Real, dynamic: Real, clock: Real, swing: Real = 1.0) -> Real:
    """Bytes per second that banks move with this power in addition to their static power."""
    return np.minimum(np.maximum(dynamic, 0.0) / (8.0 * sram.energy_per_bit * swing), banks * port_bandwidth(sram, clock))


def sram_most_power(sram: SramTechnology, banks: Real, static: Real, clock: Real, swing: Real = 1.0) -> Real:
    """Watts of banks with all ports busy."""
    return static + 8.0 * sram.energy_per_bit * swing * (banks * port_bandwidth(sram, clock))


def port_bandwidth(sram: SramTechnology, clock: Real) -> Real:
    """Bytes per second through the port of one bank at the cores' clock; unlimited if the technology does not state it."""
    return sram.bank_bytes_per_cycle * clock if sram.bank_bytes_per_cycle < UNLIMITED_PORT else UNLIMITED_PORT


def bank_area(sram: SramTechnology, bundles: Real) -> Real:
    """Square metres of a bank with its controllers, one per bundle."""
    return 8.0 * sram.area_per_bit * sram.bank_capacity / (1.0 - sram.overhead) + bundles * sram.controller_area


def _sram(technology: Technology, level: str, split: Split, core: Compute) -> Sram:
    sram: SramTechnology = getattr(technology, level)
    banks = sram_banks(sram, getattr(split.areas, level), core.bundles)
    alive, power = sram_static_power(sram, banks), getattr(split.powers, level)
    return sram_of(sram, banks, core.bundles, power, alive, core.frequency, swing(technology.core, sram, core.voltage))


def _dram(dram: DramTechnology, split: Split, perimeter: Real) -> Dram:
    stacks = dram_stacks(dram, split)
    return dram_of(dram, stacks, split.edges.dram * perimeter, split.powers.dram, dram_static_power(dram, stacks))


def row_of(split: Split) -> Row:
    """The row of dies of a split."""
    return Row(split.die_area, split.dies)


def dram_stacks(dram: DramTechnology, split: Split) -> Real:
    """Number of stacks, limited by package room, controllers, and places along the two sides of the row of dies, or on them.
    Links to the host, in the node and out of it have the ends of the row, and what stacks leave of the sides.
    """
    room = room_for(dram, split.package_area, row_of(split), row_of(split))
    return np.minimum(np.minimum(room, _count(split.areas.dram, dram.controller_area)), places_of(dram, row_of(split)))


def dram_of(dram: DramTechnology, stacks: Real, edge: Real, power: Real, static: Real) -> Dram:
    """This many stacks: wires limited by die edge, clock by the power left after `static`, which keeps the stacks alive."""
    links = dram_links(dram, stacks, edge)
    present = np.minimum(links, 1.0)
    nominal_power = dram.energy_per_bit * dram.nominal_frequency * np.maximum(links, 1.0)
    point = operating_point(dram, np.maximum(power - static, 0.0), nominal_power)
    return Dram(
        stacks=stacks,
        links=links,
        voltage=point.voltage * present,
        frequency=point.frequency * present,
        capacity=stacks * dram.stack_capacity,
        bandwidth=links * point.frequency / 8.0,
        energy=8.0 * dram.energy_per_bit * present,
        area=stacks * dram.controller_area,
        static=static,
        power=np.maximum(static, np.minimum(static + point.power * present, power)),
    )


def network(link: LinkTechnology, area: Real, power: Real, edge: Real) -> Network:
    """Wires by die area, die edge and power; bandwidth to a neighbour = wires * frequency * utilisation / (8 * degree)."""
    links = wires_of(link, area, edge, power)
    present = np.minimum(links, 1.0)
    point = operating_point(link, power, link.energy_per_bit * link.nominal_frequency * np.maximum(links, 1.0))
    return Network(
        links=links,
        voltage=point.voltage * present,
        frequency=point.frequency * present,
        bandwidth=links * point.frequency * link.utilisation / (8.0 * link.degree),
        area=links * link.area,
        power=point.power * present,
    )


def wires_of(link: LinkTechnology, area: Real, edge: Real, power: Real) -> Real:
    """Wires = min(floor(area / area of a wire), floor(edge * wires per metre)); at most what the power runs if all have one rate."""
    wires = np.minimum(_count(area, link.area), _count(edge * link.links_per_metre, 1.0))
    return np.minimum(wires, _count(power, link.energy_per_bit * link.nominal_frequency)) if link.one_rate else wires


def edge_of(technology: Technology, stacks: Real, intra: Real, inter: Real) -> Real:
    """Metres of die edge used by this many stacks side by side and this many wires."""
    dram = technology.dram
    if not dram.has_places:
        return 0.0 * stacks
    wires = intra / technology.intra.links_per_metre + inter / technology.inter.links_per_metre
    return stacks * (0.0 if dram.on_dies else dram.stack_edge) + wires


def has_edge(split: Split, edge: Real) -> Mask:
    """Whether the dies have this much edge, with the same slack of one part in 1e9 as counts."""
    return np.less_equal(edge, perimeter_of(split.die_area, split.dies) * SLACK)


def let_through(technology: Technology, l2_bandwidth: Real) -> Real:
    """Bytes per second up to which stacks run beside this L2, by the ratio of L2 to stacks that chips are built with."""
    dram = technology.dram
    return l2_bandwidth * (technology.l2.utilisation / (dram.least_l2 * dram.utilisation)) if dram.least_l2 else np.inf


def paced(technology: Technology, stacks: Dram, l2_bandwidth: Real) -> Dram:
    """Stacks throttled to what L2 passes on: slower ones run at the lowest supply for their clock and draw less."""
    dram = technology.dram
    if not dram.least_l2:
        return stacks
    bandwidth = np.minimum(stacks.bandwidth, let_through(technology, l2_bandwidth))
    slowed, frequency = bandwidth < stacks.bandwidth, 8.0 * bandwidth / np.maximum(stacks.links, 1.0)
    voltage = np.minimum(voltage_at(dram, frequency), stacks.voltage)
    supply = voltage / dram.nominal_voltage
    watts = stacks.static + dram.energy_per_bit * (supply * supply) * (stacks.links * frequency)
    return replace(
        stacks,
        bandwidth=bandwidth,
        frequency=np.where(slowed, frequency, stacks.frequency)[()],
        voltage=np.where(slowed, voltage, stacks.voltage)[()],
        power=np.where(slowed, np.minimum(stacks.power, watts), stacks.power)[()],
    )


def dram_links(dram: DramTechnology, stacks: Real, edge: Real) -> Real:
    """Wires = min(floor(edge * wires per metre), wires per stack * stacks); the edge limits none of stacks on the dies."""
    return (
        dram.links_per_stack * stacks
        if dram.on_dies
        else np.minimum(_count(edge * dram.links_per_metre, 1.0), dram.links_per_stack * stacks)
    )


def dram_static_power(dram: DramTechnology, stacks: Real) -> Real:
    return 8.0 * dram.static_power_per_bit * (stacks * dram.stack_capacity)


def over_joints(technology: Technology, memory: Sram, dies: Real) -> Sram:
    """L2 with energy per byte of one access and of every joint between dies that the byte crosses."""
    energy_per_bit = technology.l2.energy_per_bit + crossings_of(dies) * technology.die_links.energy_per_bit
    return replace(memory, energy=8.0 * energy_per_bit * np.minimum(memory.banks, 1.0))


def limited(memory: Sram, bandwidth: Real) -> Sram:
    """The level with at most this bandwidth."""
    return replace(memory, bandwidth=np.minimum(memory.bandwidth, bandwidth))


def feeding(technology: Technology, memory: Sram, peak: Real) -> Sram:
    """L2, counted as absent if it gives products fewer operands than chips are built with."""
    needed = technology.core.least_fed * technology.l2_per_flop
    if not needed:
        return memory
    fed = np.where(memory.bandwidth * technology.l2.utilisation >= needed * (technology.core.utilisation * peak), 1.0, 0.0)[()]
    return Sram(*(getattr(memory, field.name) * fed for field in fields(memory)))


def _times(parts: Parts, total: Real) -> Parts:
    return Parts(*(value * total for _, value in _figures(parts)))


def _figures(record: Parts | Edges) -> Iterator[tuple[str, Real]]:
    return ((field.name, getattr(record, field.name)) for field in fields(record))
