"""What a technology's entry describes: what one core, bit, stack and wire takes, the scaling of later generations, and the usual split."""

from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from crossopt.crossflow.workload import NARROW
from crossopt.instances.catalogue.constants import check_constants
from crossopt.instances.catalogue.entries import RangeEntry, check_above_zero
from crossopt.instances.catalogue.stack_sets import Figures
from crossopt.instances.files.quantities import (
    Area,
    AreaPerBit,
    Bytes,
    Duration,
    EnergyPerBit,
    Frequency,
    Length,
    Money,
    PerLength,
    Positive,
    Power,
    PowerPerArea,
    PowerPerBit,
    PricePerArea,
    Ratio,
    Voltage,
)
from crossopt.instances.files.schema import Bounds, Doc, Prose
from crossopt.instances.files.units import quoted

FURTHER = ("fp32", *NARROW)
"""Precisions that the cores of a technology may have beside 16 bits."""


@dataclass(frozen=True, slots=True)
class CoreEntry:
    """Matrix cores of a logic process."""

    area: Annotated[Area, Doc("of one core")]
    nominal_power: Annotated[Power, Doc("of one core at nominal voltage and frequency")]
    flop_per_cycle: Annotated[Positive, Doc("of one core")]
    cores_per_bundle: Annotated[Positive, Doc("cores of a bundle (streaming multiprocessor)")]
    nominal_frequency: Annotated[Frequency, Doc("at nominal voltage")]
    nominal_voltage: Annotated[Voltage, Doc("of the supply")]
    threshold_voltage: Annotated[Voltage, Doc("of the transistors")]
    margin_voltage: Annotated[Voltage, Doc("that the supply stays above the threshold; below, the clock is throttled")]
    maximum_voltage: Annotated[Voltage, Doc("of the supply")]
    utilisation: Annotated[Ratio, Doc("share of the peak that is usable")]
    register_traffic: Annotated[float, Bounds(0.0), Doc("register values moved per FLOP")] = 8.0 / 28.0
    l1_traffic: Annotated[float, Bounds(0.0), Doc("values that pass L1 per FLOP of a product; 0 where tiles fill the registers")] = 0.0
    tile: Annotated[
        Positive | None, Doc("elements of the largest tile of a product that a bundle sums; as L1 has room where nothing is said")
    ] = None
    vector_share: Annotated[float, Bounds(0.0), Doc("FLOPs of work that is no matrix product over `flop_per_cycle`")] = 1.0 / 8.0
    rates: Annotated[Figures, Doc("FLOPs per cycle over those of 16 bits in further precisions, such as fp8: 2")] = field(
        default_factory=dict
    )
    leakage_per_area: Annotated[PowerPerArea, Doc("at nominal voltage, part of the nominal power")] = 0.0
    clocked_share: Annotated[Ratio, Doc("of the rest of that power, drawn as long as a kernel runs, whatever it computes")] = 0.0
    maximum_frequency: Annotated[Frequency | None, Doc("whatever the supply; without a limit but the voltage's where nothing is said")] = (
        None
    )
    least_fed: Annotated[Ratio, Doc("of the peak for which L2 gives products their operands; no chip's gives less")] = 0.0
    whole_bundles: Annotated[bool, Doc("whether cores that fill no bundle are none")] = False

    def __post_init__(self) -> None:
        _check_physics("CoreTechnology", {name: figure for name, figure in asdict(self).items() if name != "rates"})
        if unknown := self.rates.keys() - FURTHER:
            raise ValueError(f"rates: {quoted(min(unknown))} is no further precision (one of {', '.join(FURTHER)})")
        check_above_zero(*((f"rates.{name}", rate) for name, rate in self.rates.items()))


@dataclass(frozen=True, slots=True)
class SramEntry:
    """One on-chip memory level."""

    area_per_bit: Annotated[AreaPerBit, Doc("of the cells")]
    energy_per_bit: Annotated[EnergyPerBit, Doc("moved")]
    static_power_per_bit: Annotated[PowerPerBit, Doc("stored")]
    bank_capacity: Annotated[Bytes, Doc("of one bank")]
    controller_area: Annotated[Area, Doc("of the crossbar per bank and bundle; 0 where the level needs none")]
    overhead: Annotated[Ratio, Doc("share of a bank's area that is not cells")]
    utilisation: Annotated[Ratio, Doc("share of the peak that is usable")]
    bank_bytes_per_cycle: Annotated[
        float | None, Bounds(0.0), Doc("through the port of one bank, at the clock of the cores; without a limit where nothing is said")
    ] = None
    least_per_bundle: Annotated[Bytes, Doc("of the level, that the tiles of kernels take in each bundle of cores; no chip has less")] = 0.0
    core_supply: Annotated[
        bool, Doc("whether its bits take more and less with the supply of the cores, as V^2; registers and L1 alone")
    ] = False

    def __post_init__(self) -> None:
        _check_physics("SramTechnology", asdict(self))


@dataclass(frozen=True, slots=True)
class DramEntry:
    """A generation of stacked memory."""

    stack_capacity: Annotated[Bytes, Doc("of one stack")]
    stack_area: Annotated[Area, Doc("of the package under one stack")]
    controller_area: Annotated[Area, Doc("of the die for one stack")]
    links_per_stack: Annotated[Positive, Doc("wires of one stack")]
    links_per_metre: Annotated[PerLength, Doc("wires that leave a length of die edge")]
    energy_per_bit: Annotated[EnergyPerBit, Doc("moved, at nominal voltage")]
    static_power_per_bit: Annotated[PowerPerBit, Doc("stored")]
    nominal_frequency: Annotated[Frequency, Doc("bits a second on one wire")]
    nominal_voltage: Annotated[Voltage, Doc("of the wires")]
    threshold_voltage: Annotated[Voltage, Doc("of their drivers")]
    margin_voltage: Annotated[Voltage, Doc("above the threshold")]
    utilisation: Annotated[Ratio, Doc("share of the peak that is usable")]
    maximum_voltage: Annotated[Voltage | None, Doc("of the wires; the nominal one, with the rate of the standard, if not told")] = None
    stack_edge: Annotated[Length, Doc("of the die's edge along which one stack lies; 0 where no edge limits them")] = 0.0
    least_l2: Annotated[float, Bounds(0.0), Doc("bytes a second of L2 over those of the stacks, which run no faster than that")] = 0.0

    def __post_init__(self) -> None:
        _check_physics("DramTechnology", asdict(self))


@dataclass(frozen=True, slots=True)
class WireEntry:
    """Wires between devices."""

    area: Annotated[Area, Doc("of the die for one wire")]
    links_per_metre: Annotated[PerLength, Doc("wires that leave a length of die edge")]
    energy_per_bit: Annotated[EnergyPerBit, Doc("sent, at nominal voltage")]
    nominal_frequency: Annotated[Frequency, Doc("bits a second on one wire")]
    nominal_voltage: Annotated[Voltage, Doc("of the wires")]
    threshold_voltage: Annotated[Voltage, Doc("of their drivers")]
    margin_voltage: Annotated[Voltage, Doc("above the threshold")]
    maximum_voltage: Annotated[Voltage, Doc("of the wires")]
    degree: Annotated[Positive, Doc("neighbours that share the wires: 4 on a mesh, 1 on a board")]
    utilisation: Annotated[Ratio, Doc("share of the peak that is usable")]
    latency: Annotated[Duration, Doc("per step of a collective")]
    ring_latency: Annotated[Duration, Doc("per step of a ring over all ranks that share, if longer than `latency`")] = 0.0
    adapter_energy_per_bit: Annotated[EnergyPerBit, Doc("sent, of adapters and cables beside the chip, no part of its power")] = 0.0

    def __post_init__(self) -> None:
        _check_physics("LinkTechnology", asdict(self))


@dataclass(frozen=True, slots=True)
class UncoreEntry:
    """What a chip has beside its parts: host interface, schedulers, on-chip network, clocks, pads, test, spare units."""

    area_share: Annotated[Ratio, Doc("of the die")] = 0.0
    power_per_area: Annotated[PowerPerArea, Doc("of the die, that follows voltage and clock of the cores, at nominal both")] = 0.0
    steady_per_area: Annotated[PowerPerArea, Doc("of the die up to the usual one's area, that follows neither voltage nor clock")] = 0.0
    spare_bundles: Annotated[
        Ratio, Doc("bundles of cores that lie in it beside those in use, over these; a die with as many defect is good")
    ] = 0.0

    def __post_init__(self) -> None:
        _check_physics("Uncore", asdict(self))


@dataclass(frozen=True, slots=True)
class DieLinksEntry:
    """Wires between the dies of a package, which stand in a row."""

    links_per_metre: Annotated[PerLength, Doc("wires through a length of the sides that face each other")]
    nominal_frequency: Annotated[Frequency, Doc("bits a second on one wire, both ways together")]
    energy_per_bit: Annotated[EnergyPerBit, Doc("sent over one joint")]
    depth: Annotated[Length, Doc("of each die that the circuits take behind such a side")]

    def __post_init__(self) -> None:
        _check_physics("DieLinks", asdict(self))
        check_above_zero(("links_per_metre", self.links_per_metre), ("nominal_frequency", self.nominal_frequency))


@dataclass(frozen=True, slots=True)
class UpperDiesEntry:
    """Dies of cores, registers and L1 on those of all other parts, whose area `die_area` then is."""

    area_share: Annotated[Ratio, Doc("of the upper dies that is no part")] = 0.0

    def __post_init__(self) -> None:
        _check_physics("UpperDies", asdict(self))


@dataclass(frozen=True, slots=True)
class PartsEntry:
    """One figure for each part of the chip."""

    compute: Annotated[Ratio, Doc("the cores")]
    registers: Annotated[Ratio, Doc("the registers")]
    l1: Annotated[Ratio, Doc("the L1 memories")]
    l2: Annotated[Ratio, Doc("the L2 memory")]
    hbm: Annotated[Ratio, Doc("controllers of the memory stacks")]
    node_network: Annotated[Ratio, Doc("links inside a node")]
    network: Annotated[Ratio, Doc("links between nodes")]


@dataclass(frozen=True, slots=True)
class TrafficEntry:
    """What products move: values of 16 bits for a FLOP."""

    registers: Annotated[float, Bounds(0.0), Doc("through the registers")]
    l1: Annotated[float, Bounds(0.0), Doc("through L1")]
    l2: Annotated[float, Bounds(0.0), Doc("through L2")]
    hbm: Annotated[float, Bounds(0.0), Doc("to and from the memory stacks")]


@dataclass(frozen=True, slots=True)
class ActivityEntry:
    """How busy some kernels keep each part: shares of what it draws at its peak above what it draws anyway, or of what sets the pace."""

    compute: Annotated[Ratio, Doc("the cores")] = 1.0
    registers: Annotated[Ratio, Doc("the registers")] = 1.0
    l1: Annotated[Ratio, Doc("the L1 memories")] = 1.0
    l2: Annotated[Ratio, Doc("the L2 memory")] = 1.0
    hbm: Annotated[Ratio, Doc("the memory stacks")] = 1.0
    node_network: Annotated[Ratio, Doc("links inside a node")] = 1.0
    network: Annotated[Ratio, Doc("links between nodes")] = 1.0
    per_flop: Annotated[
        TrafficEntry | None, Doc("what memories move for a FLOP in products, whose cores set the pace, whatever they could move")
    ] = None
    streams: Annotated[
        bool, Doc("whether the stacks set the pace, with memories on the die and the clock no faster than these deliver")
    ] = False

    def __post_init__(self) -> None:
        if self.streams and self.per_flop is not None:
            raise ValueError("per_flop and streams are both given (give one: a kernel has the pace of its cores or of its memory)")


@dataclass(frozen=True, slots=True)
class ShareEntry:
    """The split that a chip has where nothing else is chosen: shares of the die area, of the power, and of the die edge."""

    die_area: Annotated[Area, Doc("of the usual chip, all its dies together")]
    package_area: Annotated[Area, Doc("of the largest interposer")]
    power: Annotated[Power, Doc("of all its parts")]
    areas: Annotated[PartsEntry, Doc("shares of the die area")]
    powers: Annotated[PartsEntry, Doc("shares of the power")]
    hbm_edge: Annotated[Ratio, Doc("share of the die's edge for stacks")]
    node_network_edge: Annotated[Ratio, Doc("for links inside a node")]
    network_edge: Annotated[Ratio, Doc("for links between nodes")]
    dies: Annotated[Positive, Doc("of the usual chip")] = 1

    def __post_init__(self) -> None:
        check_above_zero(("die_area", self.die_area), ("package_area", self.package_area), ("power", self.power))


@dataclass(frozen=True, slots=True)
class GenerationEntry:
    """What another generation of stacked memory changes, as factors of energy and voltage and as figures for the rest."""

    stack_capacity: Annotated[Bytes, Doc("of one stack")]
    stack_area: Annotated[Area, Doc("of the package under it")]
    links_per_stack: Annotated[Positive, Doc("wires of one stack")]
    nominal_frequency: Annotated[Frequency, Doc("bits a second on one wire")]
    energy_factor: Annotated[float, Bounds(0.0), Doc("by which the energy of a bit differs")]
    voltage_factor: Annotated[float, Bounds(0.0), Doc("by which the nominal voltage differs")]
    controller_factor: Annotated[float, Bounds(0.0), Doc("by which the area of a stack's controller differs")] = 1.0
    stack_edge: Annotated[Length | None, Doc("of the die's edge along which one stack lies, where it differs")] = None


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """By what factors parts at a logic node differ from those that are described."""

    voltage: Annotated[float, Bounds(0.0), Doc("of the cores, nominal and maximum, at the same frequencies")] = 1.0
    core_area: Annotated[float, Bounds(0.0), Doc("of a core")] = 1.0
    core_power: Annotated[float, Bounds(0.0), Doc("of a core, at the same frequency")] = 1.0
    sram_area: Annotated[float, Bounds(0.0), Doc("of cells and crossbars")] = 1.0
    sram_energy: Annotated[float, Bounds(0.0), Doc("of a bit moved")] = 1.0
    controller_area: Annotated[float, Bounds(0.0), Doc("of the controllers of stacked memory")] = 1.0
    highest_clock: Annotated[float, Bounds(0.0), Doc("of the highest clock of the cores")] = 1.0

    def __post_init__(self) -> None:
        _check_physics("Node", asdict(self))


@dataclass(frozen=True, slots=True)
class PricesEntry:
    """What chips of a technology cost where a question gives no prices: what making them takes, without anybody's margin."""

    wafers: Annotated[dict[str, Money], Doc("of a processed wafer, by logic node")]
    stacks: Annotated[dict[str, Money], Doc("of a memory stack, by generation")]
    defects_per_square_metre: Annotated[float, Bounds(0.0), Doc("of the wafer")]
    package: Annotated[Money, Doc("substrate, test and assembly, with the device's share of board and host")]
    interposer: Annotated[PricePerArea, Doc("of the package, of joining dies and stacks there")] = 0.0
    bonding_loss: Annotated[
        float, Bounds(0.0, 0.5), Doc("share of dies and stacks that fails when they are joined, and costs all that is joined")
    ] = 0.0
    lane: Annotated[Money, Doc("port, optics, cables and switches for one wire of the links between nodes")] = 0.0


@dataclass(frozen=True, slots=True)
class TechnologyEntry:
    """A technology: what one core, bit, stack and wire takes, the scaling of later generations, and the usual split of a chip."""

    core: Annotated[CoreEntry, Doc("matrix cores")]
    registers: Annotated[SramEntry, Doc("registers")]
    l1: Annotated[SramEntry, Doc("L1 memories")]
    l2: Annotated[SramEntry, Doc("L2 memory")]
    dram: Annotated[DramEntry, Doc("stacked memory")]
    node_network: Annotated[WireEntry, Doc("wires inside a node")]
    network: Annotated[WireEntry, Doc("wires between nodes")]
    split: Annotated[ShareEntry, Doc("what a chip's parts take where nothing is chosen")]
    logic_nodes: Annotated[
        dict[str, Annotated[int, Bounds(0)] | NodeEntry],
        Doc("names of logic nodes, and how many steps of the case study's scaling each is on, or its own factors"),
    ]
    network_steps: Annotated[dict[str, Annotated[int, Bounds(0)]], Doc("names of network generations, and their scaling steps")]
    memories: Annotated[dict[str, GenerationEntry], Doc("generations of stacked memory")]
    reserved_memory: Annotated[Bytes, Doc("that framework, runtime and fragmentation take")]
    uncore: Annotated[UncoreEntry, Doc("what a chip has beside its parts")] = field(default_factory=UncoreEntry)
    sustained: Annotated[
        dict[str, ActivityEntry],
        Doc("names of the kernels that draw most, and how busy each part is in them; without any every part is counted at its peak"),
    ] = field(default_factory=dict)
    power_density: Annotated[PowerPerArea | None, Doc("that its usual cooling takes away from a die")] = None
    reticle: Annotated[Area | None, Doc("of the largest die that can be exposed; without a limit where nothing is said")] = None
    die_links: Annotated[DieLinksEntry | None, Doc("wires between dies; a package holds one die where nothing is said")] = None
    upper_dies: Annotated[
        UpperDiesEntry | None, Doc("dies of cores, registers and L1 that are stacked on the others; one kind of die holds all else")
    ] = None
    name: Annotated[str | None, Doc("what results call it; the name of its file where nothing is said")] = None
    sources: Annotated[dict[str, str], Prose(), Doc("where each figure is from")] = field(default_factory=dict)
    efficiency: Annotated[Figures, Doc("constants of the model that differ from their defaults")] = field(default_factory=dict)
    constants: Annotated[str | None, Doc("instead of them: the device of `crossopt list hardware` whose fitted constants these are")] = None
    prices: Annotated[PricesEntry | None, Doc("of chips, where a question gives none")] = None
    ranges: Annotated[
        dict[str, RangeEntry], Doc("of figures by section and name, such as `core.area`; a fifth either way where nothing is said")
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.ranges:
            section, _, figure = name.partition(".")
            if not isinstance(getattr(self if section == "technology" else getattr(self, section, None), figure, None), float):
                raise ValueError(f"ranges.{name}: there is no such figure (write section.figure, as in core.area)")
        check_constants("efficiency", self.efficiency)
        if self.efficiency and self.constants is not None:
            raise ValueError("efficiency and constants are both given (give one of them: constants fitted together stay together)")
        if self.upper_dies is not None and self.prices is not None:
            raise ValueError("prices know of one kind of die, and there are two (leave out `prices`, or `upper_dies`)")
        if self.split.dies > 1 and self.die_links is None:
            raise ValueError(f"split.dies is {self.split.dies}, but no links join them (add `die_links`)")


def _check_physics(record: str, figures: dict[str, Any]) -> None:
    """Refuse what crossflow's record of this name refuses."""
    from crossopt.crossflow import technology  # noqa: PLC0415 - most questions name a device, and need none of it

    getattr(technology, record)(**given_figures(figures))


def given_figures(figures: dict[str, Any]) -> dict[str, Any]:
    """Those that an entry has; crossflow's records have defaults for the others."""
    return {name: value for name, value in figures.items() if value is not None}
