"""The figures of one process, memory and package generation, per core, bit, stack and wire, and their scaling to the next.

All figures are SI: square metres, watts, hertz, volts, joules and watts per bit, bytes, wires per metre of die edge. The quantities are
those of DeepFlow's hardware description (arXiv 2211.03309; repository nanocad-lab/DeepFlow).
"""

from dataclasses import field, fields, replace
from math import isfinite
from typing import Annotated

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.dies import NO_LINKS, DieLinks, UpperDies
from crossopt.crossflow.fields import (
    Area,
    AreaPerBit,
    Bounds,
    Bytes,
    Count,
    Doc,
    Duration,
    EnergyPerBit,
    Frequency,
    Key,
    Length,
    Needed,
    NonZero,
    NotNegative,
    PerLength,
    Power,
    PowerPerArea,
    PowerPerBit,
    Ratio,
    Unit,
    Unset,
    Voltage,
)  # fmt: skip
from crossopt.crossflow.hardware import UNLIMITED_TILE
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.voltage import UNLIMITED_FREQUENCY
from crossopt.crossflow.workload import NARROW

PARTS = ("core", "registers", "l1", "l2", "dram", "intra", "inter")
MEMORIES = ("registers", "l1", "l2", "dram")
ON_DIE = ("registers", "l1", "l2")
VALUE = 2.0
"""Bytes of a 16-bit value."""
HOLDING = ("registers", "l1")
"""Memories that hold the tiles of each bundle of cores."""
FURTHER = ("fp32", *NARROW)
"""Precisions beyond 16 bits for which cores may state a rate."""
UNLIMITED_VOLTAGE = 1.0e3
"""Upper limit of volts: far above any circuit, far below overflow of its cube."""
UNLIMITED_PORT = 1.0e30
"""Upper limit of bytes per second or per cycle, far above any port."""


@dataclass(frozen=True, slots=True)
class CoreTechnology:
    """The matrix cores of a logic process, in bundles (streaming multiprocessors)."""

    area: Annotated[Area, Doc("of one core")]
    nominal_power: Annotated[Power, Doc("of one core at nominal voltage and frequency")]
    flop_per_cycle: Annotated[Count, Doc("of one core")]
    cores_per_bundle: Annotated[Count, Doc("cores of a bundle (streaming multiprocessor)")]
    nominal_frequency: Annotated[Frequency, Doc("at nominal voltage")]
    nominal_voltage: Annotated[Voltage, Doc("of the supply")]
    threshold_voltage: Annotated[Voltage, Doc("of the transistors")]
    margin_voltage: Annotated[
        Voltage, Doc("minimum of supply minus threshold voltage; below it the clock is throttled at constant voltage")
    ]
    maximum_voltage: Annotated[Voltage, Needed(), Doc("of the supply")] = UNLIMITED_VOLTAGE
    maximum_frequency: Annotated[Frequency, Unset(), Doc("at any supply; limited by the voltage alone by default")] = UNLIMITED_FREQUENCY
    utilisation: Annotated[Ratio, Needed(), Doc("share of the peak that is usable")] = 1.0
    register_traffic: Annotated[NotNegative, Doc("register values moved per FLOP")] = 8.0 / 28.0
    """For 16 bits; a 4 x 4 engine moves 2 d2 / (d1 (2 d2 - 1)) with d1 = d2 = 4 (DeepFlow)."""
    l1_traffic: Annotated[NotNegative, Doc("values through L1 per FLOP of a product; 0 if tiles fill the registers")] = 0.0
    """For 16 bits: operand reads per tile of an instruction or a warp, and fills per tile of its block."""
    tile: Annotated[
        Count, Unset(), Doc("elements of the largest product tile that a bundle accumulates; by default what L1 has room for")
    ] = UNLIMITED_TILE
    """Of a bundle, or of several that share reads."""
    vector_share: Annotated[NotNegative, Doc("FLOPs outside matrix products over `flop_per_cycle`")] = 1.0 / 8.0
    """15.7 to 125 TFLOP/s on the V100 (NVIDIA 2017)."""
    wide_share: Annotated[float, Key(None)] = 1.0
    """FLOPs per cycle on 16-bit operands over `flop_per_cycle`; below 1 in 8-bit and 4-bit runs."""
    rates: Annotated[
        dict[str, Annotated[NotNegative, NonZero()]], Doc("FLOPs per cycle over those of 16 bits, by precision, such as fp8: 2")
    ] = field(default_factory=dict, hash=False)
    leakage_per_area: Annotated[PowerPerArea, Doc("at nominal voltage, part of the nominal power")] = 0.0
    clocked_share: Annotated[Ratio, Doc("of the remaining power, drawn while any kernel runs")] = 0.0
    least_fed: Annotated[Ratio, Doc("least share of the peak for which L2 gives products their operands")] = 0.0
    """A chip with a slower L2 counts as one without."""
    whole_bundles: Annotated[bool, Doc("whether cores beyond whole bundles are unusable")] = False
    """DeepFlow counts them as usable."""

    def __post_init__(self) -> None:
        _check(self, may_be_zero=("leakage_per_area", "clocked_share", "whole_bundles", "l1_traffic", "least_fed"))
        if unknown := self.rates.keys() - FURTHER:
            raise ValueError(f"rates: {min(unknown)!r} is not a further precision (one of {', '.join(FURTHER)})")
        if self.clocked_share > 1.0:
            raise ValueError(f"clocked share is {self.clocked_share}, a share of at most 1 is needed")
        if self.maximum_frequency < self.nominal_frequency:
            raise ValueError(f"maximum frequency {self.maximum_frequency} must not be below the nominal one, {self.nominal_frequency}")
        if self.leakage >= self.nominal_power:
            raise ValueError(f"a core leaks {self.leakage} W, less than its nominal power of {self.nominal_power} W is needed")

    @property
    def leakage(self) -> float:
        """Watts that one core leaks at nominal voltage."""
        return self.leakage_per_area * self.area

    @property
    def switching_power(self) -> float:
        """Watts of one core at nominal voltage and frequency, without leakage."""
        return self.nominal_power - self.leakage

    @property
    def energy_per_flop(self) -> float:
        """Joules per FLOP at nominal voltage: switching energy without clocks and control, at the peak."""
        return (1.0 - self.clocked_share) * self.switching_power / (self.flop_per_cycle * self.nominal_frequency)


@dataclass(frozen=True, slots=True)
class SramTechnology:
    """One on-chip memory level: banks behind a crossbar with one controller per bank and bundle."""

    area_per_bit: Annotated[AreaPerBit, Doc("of the cells")]
    energy_per_bit: Annotated[EnergyPerBit, Doc("moved")]
    static_power_per_bit: Annotated[PowerPerBit, Doc("stored")]
    bank_capacity: Annotated[Bytes, Doc("of one bank")]
    controller_area: Annotated[Area, Doc("of the crossbar per bank and bundle; 0 if the level has none")]
    overhead: Annotated[Ratio, Doc("share of a bank's area outside the cells")]
    utilisation: Annotated[Ratio, Needed(), Doc("share of the peak that is usable")] = 1.0
    bank_bytes_per_cycle: Annotated[
        NotNegative, Unset(), Doc("through the port of one bank, at the cores' clock; unlimited by default")
    ] = UNLIMITED_PORT
    least_per_bundle: Annotated[Bytes, Doc("of the level per bundle of cores, needed by the tiles of kernels; the minimum of any chip")] = (
        0.0
    )
    """A level with less capacity counts as absent."""
    core_supply: Annotated[bool, Doc("whether energy per bit follows the cores' supply as V^2; for registers and L1 alone")] = False
    """Other levels, and leakage, have their own supply."""

    def __post_init__(self) -> None:
        _check(self, may_be_zero=("static_power_per_bit", "controller_area", "overhead", "least_per_bundle", "core_supply"))
        if self.overhead >= 1:
            raise ValueError(f"overhead is {self.overhead}, a share of the area below 1 is needed")


@dataclass(frozen=True, slots=True)
class DramTechnology:
    """A generation of stacked memory beside the die, or on it."""

    stack_capacity: Annotated[Bytes, Doc("of one stack")]
    stack_area: Annotated[Area, Doc("of the package under one stack")]
    controller_area: Annotated[Area, Doc("of the die for one stack")]
    links_per_stack: Annotated[Count, Doc("wires of one stack")]
    links_per_metre: Annotated[PerLength, Doc("wires per length of die edge")]
    energy_per_bit: Annotated[EnergyPerBit, Doc("moved, at nominal voltage")]
    static_power_per_bit: Annotated[PowerPerBit, Doc("stored")]
    nominal_frequency: Annotated[Frequency, Doc("bits a second on one wire")]
    nominal_voltage: Annotated[Voltage, Doc("of the wires")]
    threshold_voltage: Annotated[Voltage, Doc("of their drivers")]
    margin_voltage: Annotated[Voltage, Doc("above the threshold")]
    maximum_voltage: Annotated[Voltage, Unset(), Doc("of the wires; by default the nominal one, with the standard's rate")] = (
        UNLIMITED_VOLTAGE
    )
    utilisation: Annotated[Ratio, Needed(), Doc("share of the peak that is usable")] = 1.0
    stack_edge: Annotated[Length, Doc("of die edge per stack; 0 if the edge does not limit stacks")] = 0.0
    least_l2: Annotated[NotNegative, Doc("L2 bandwidth over stack bandwidth; stacks run no faster than that")] = 0.0
    """All bytes of the stacks pass through L2."""
    on_dies: Annotated[
        bool, Doc("whether stacks lie on the dies, with wires over their area, and take no edge and no room beside them")
    ] = False

    def __post_init__(self) -> None:
        _check(self, may_be_zero=("static_power_per_bit", "stack_edge", "least_l2", "on_dies"))

    @property
    def has_places(self) -> bool:
        """Whether the size of the dies limits the stacks."""
        return self.on_dies or self.stack_edge > 0.0


@dataclass(frozen=True, slots=True)
class LinkTechnology:
    """The wires between devices: on a wafer or interposer, on a board, or in cables."""

    area: Annotated[Area, Doc("of the die for one wire")]
    links_per_metre: Annotated[PerLength, Doc("wires per length of die edge")]
    energy_per_bit: Annotated[EnergyPerBit, Doc("sent, at nominal voltage")]
    nominal_frequency: Annotated[Frequency, Doc("bits a second on one wire")]
    nominal_voltage: Annotated[Voltage, Doc("of the wires")]
    threshold_voltage: Annotated[Voltage, Doc("of their drivers")]
    margin_voltage: Annotated[Voltage, Doc("above the threshold")]
    degree: Annotated[Count, Doc("neighbours that share the wires: 4 on a mesh, 1 on a board")]
    maximum_voltage: Annotated[Voltage, Needed(), Doc("of the wires")] = UNLIMITED_VOLTAGE
    utilisation: Annotated[Ratio, Needed(), Doc("share of the peak that is usable")] = 1.0
    latency: Annotated[Duration, Needed(), Doc("per step of a collective")] = 0.0
    ring_latency: Annotated[Duration, Doc("per step of a ring over all sharing ranks, if longer than `latency`")] = 0.0
    adapter_energy_per_bit: Annotated[EnergyPerBit, Doc("sent, by adapters and cables outside the chip, not part of its power")] = 0.0

    def __post_init__(self) -> None:
        _check(self, may_be_zero=("latency", "ring_latency", "adapter_energy_per_bit"))

    @property
    def one_rate(self) -> bool:
        """Whether every wire runs at its standard's rate or not at all; the supply is then at most nominal."""
        return self.maximum_voltage <= self.nominal_voltage

    @property
    def energy_of_a_byte(self) -> float:
        """Joules per byte on the path, on and off the die."""
        return 8.0 * (self.energy_per_bit + self.adapter_energy_per_bit)


@dataclass(frozen=True, slots=True)
class Uncore:
    """The uncore of a chip: host interface, schedulers, on-chip network, clocks, pads, test, spare units."""

    area_share: Annotated[Ratio, Doc("of the die")] = 0.0
    power_per_area: Annotated[PowerPerArea, Doc("of the die, following voltage and clock of the cores, at nominal values")] = 0.0
    """Watts that switch at full activity."""
    steady_per_area: Annotated[PowerPerArea, Doc("of the die, up to the usual die's area, constant in voltage and clock")] = 0.0
    steady_area: Annotated[float, Key(None)] = float("inf")
    """Square metres of the usual die; larger or more dies have no more constant watts."""
    spare_bundles: Annotated[
        Ratio, Doc("spare bundles of cores over those in use; a die with at most as many defective bundles is good")
    ] = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.spare_bundles * (1.0 - self.area_share) <= self.area_share:
            raise ValueError(f"spare bundles take {self.spare_bundles:g} of the others' area, more than the uncore of {self.area_share:g}")
        if not (0.0 <= self.area_share < 1.0 and all(0.0 <= each < float("inf") for each in (self.power_per_area, self.steady_per_area))):
            raise ValueError(f"a share of the die below 1 and finite powers per area are needed, not {self}")


@dataclass(frozen=True, slots=True)
class Traffic:
    """16-bit values per FLOP of large products that pass through each memory."""

    registers: Annotated[NotNegative, Needed(), Doc("through the registers")] = 0.0
    l1: Annotated[NotNegative, Needed(), Doc("through L1")] = 0.0
    l2: Annotated[NotNegative, Needed(), Doc("through L2")] = 0.0
    dram: Annotated[NotNegative, Key("hbm"), Needed(), Doc("to and from the memory stacks")] = 0.0

    def __post_init__(self) -> None:
        if any(not 0.0 <= getattr(self, field.name) < float("inf") for field in fields(self)):
            raise ValueError(f"finite figures not below 0 are needed, not {self}")


@dataclass(frozen=True, slots=True)
class Parts:
    """One figure for each part of a chip: its die area, its power, or a share of either, as files state it."""

    core: Annotated[Real, Key("compute"), Unit("ratio"), Bounds(0.0, 1.0), Doc("the cores")]
    registers: Annotated[Real, Unit("ratio"), Bounds(0.0, 1.0), Doc("the registers")]
    l1: Annotated[Real, Unit("ratio"), Bounds(0.0, 1.0), Doc("the L1 memories")]
    l2: Annotated[Real, Unit("ratio"), Bounds(0.0, 1.0), Doc("the L2 memory")]
    dram: Annotated[Real, Key("hbm"), Unit("ratio"), Bounds(0.0, 1.0), Doc("controllers of the memory stacks")]
    """Areas: the memory controllers on the die. Powers: controllers, wires and stacks together."""
    intra: Annotated[Real, Key("node_network"), Unit("ratio"), Bounds(0.0, 1.0), Doc("links inside a node")]
    inter: Annotated[Real, Key("network"), Unit("ratio"), Bounds(0.0, 1.0), Doc("links between nodes")]


@dataclass(frozen=True, slots=True)
class Activity:
    """Activity of each part in some kernels, as a share of its peak draw above its constant draw.

    Where something sets the pace, memories move what that asks of them, whatever they could: in products what the FLOPs of `core` take
    (`per_flop`), in streams the shares of what the stacks deliver, at the lowest clock that lets it through (`streams`).
    """

    core: Annotated[Ratio, Key("compute"), Doc("the cores")] = 1.0
    registers: Annotated[Ratio, Doc("the registers")] = 1.0
    l1: Annotated[Ratio, Doc("the L1 memories")] = 1.0
    l2: Annotated[Ratio, Doc("the L2 memory")] = 1.0
    dram: Annotated[Ratio, Key("hbm"), Doc("the memory stacks")] = 1.0
    intra: Annotated[Ratio, Key("node_network"), Doc("links inside a node")] = 1.0
    inter: Annotated[Ratio, Key("network"), Doc("links between nodes")] = 1.0
    per_flop: Annotated[Traffic | None, Doc("values moved per FLOP in products, whose rate the cores set")] = None
    streams: Annotated[bool, Doc("whether the stacks set the rate of on-die memories and of the clock")] = False

    def __post_init__(self) -> None:
        if any(not 0.0 <= getattr(self, name) <= 1.0 for name in PARTS):
            raise ValueError(f"shares between 0 and 1 are needed, not {self}")
        if self.streams and self.per_flop is not None:
            raise ValueError("per_flop and streams are both given (give one: either the cores or the memory set the rate of a kernel)")

    def at_width(self, value_bytes: float) -> "Activity":
        """The activity with operands of this many bytes."""
        if self.per_flop is None:
            return self
        return replace(self, per_flop=Traffic(*(getattr(self.per_flop, name) * (value_bytes / VALUE) for name in MEMORIES)))

    @property
    def paced(self) -> bool:
        """Whether memories move data at the rate of cores or stacks."""
        return self.streams or self.per_flop is not None


@dataclass(frozen=True, slots=True)
class Technology:
    """A complete technology: all parts from which a chip can be built."""

    name: str
    core: CoreTechnology
    registers: SramTechnology
    l1: SramTechnology
    l2: SramTechnology
    dram: DramTechnology
    intra: LinkTechnology
    """Links inside a package group: a wafer or an interposer."""
    inter: LinkTechnology
    """Links between package groups."""
    uncore: Uncore = Uncore()
    sustained: tuple[Activity, ...] = (Activity(),)
    """Candidates for the most demanding kernels, all of which a board must sustain. By default, all parts at their peaks."""
    die_links: DieLinks = NO_LINKS
    upper_dies: UpperDies | None = None
    """Without stacked dies, one kind of die holds all parts."""

    def __post_init__(self) -> None:
        if self.l2.core_supply:
            raise ValueError("core_supply is given for L2, which has its own supply (give it for registers and L1 alone)")
        if not self.sustained:
            raise ValueError("sustained is empty; at least one activity is needed")

    @property
    def l2_per_flop(self) -> float:
        """Bytes of L2 traffic per FLOP of large products; 0 if no kernels of the technology state it."""
        return VALUE * max((busy.per_flop.l2 for busy in self.sustained if busy.per_flop), default=0.0)


@dataclass(frozen=True, slots=True)
class Node:
    """Factors by which parts at a logic node differ from those of a technology."""

    voltage: Annotated[NotNegative, Doc("of the cores, nominal and maximum, at the same frequencies")] = 1.0
    core_area: Annotated[NotNegative, Doc("of a core")] = 1.0
    core_power: Annotated[NotNegative, Doc("of a core, at the same frequency")] = 1.0
    sram_area: Annotated[NotNegative, Doc("of cells and crossbars")] = 1.0
    sram_energy: Annotated[NotNegative, Doc("of a bit moved")] = 1.0
    controller_area: Annotated[NotNegative, Doc("of the controllers of stacked memory")] = 1.0
    """These circuits are mostly analog."""
    highest_clock: Annotated[NotNegative, Doc("of the highest clock of the cores")] = 1.0
    """At any supply."""

    def __post_init__(self) -> None:
        if any(not 0.0 < getattr(self, field.name) < float("inf") for field in fields(self)):
            raise ValueError(f"finite factors above 0 are needed, not {self}")


def at_node(technology: Technology, node: Node) -> Technology:
    """The technology at another logic node. Nominal frequencies, threshold voltages, leakage of an area of cores and of a bit, wires and
    what is no part stay, and so do lower dies with all that they hold."""
    core, dram, stacked = technology.core, technology.dram, technology.upper_dies is not None
    return replace(
        technology,
        core=replace(
            core,
            nominal_voltage=core.nominal_voltage * node.voltage,
            maximum_voltage=max(core.maximum_voltage * node.voltage, core.threshold_voltage + core.margin_voltage),
            area=core.area * node.core_area,
            nominal_power=core.nominal_power * node.core_power,
            maximum_frequency=core.maximum_frequency * node.highest_clock,
        ),
        registers=_scaled_sram(technology.registers, node),
        l1=_scaled_sram(technology.l1, node),
        l2=technology.l2 if stacked else _scaled_sram(technology.l2, node),
        dram=dram if stacked else replace(dram, controller_area=dram.controller_area * node.controller_area),
    )


def at_precision(technology: Technology, rate: float, value_bytes: float) -> Technology:
    """The technology with `rate` times the FLOPs of 16 bits per cycle on operands of this many bytes, at the same power. Vector engines
    stay, and so does the rate on 16 bits where operands are narrower."""
    core = technology.core
    made = replace(
        core,
        flop_per_cycle=core.flop_per_cycle * rate,
        register_traffic=core.register_traffic * (value_bytes / 2.0),
        l1_traffic=core.l1_traffic * (value_bytes / 2.0),
        vector_share=core.vector_share / rate,
        wide_share=1.0 / rate if value_bytes < 2.0 else 1.0,
    )
    return replace(technology, core=made, sustained=tuple(busy.at_width(value_bytes) for busy in technology.sustained))


def scale_logic(technology: Technology, steps: int) -> Technology:
    """The technology `steps` logic generations later (14, 10, 7, 5, 3, 2, 1 nm are steps 0 to 6 from 14 nm).

    Each step: core voltage x 0.9; core, SRAM cell and SRAM controller area x 0.67; core power and SRAM energy x 0.54; DRAM controller
    area x 0.9 (case study of arXiv 2211.03309). The highest core voltage stays, as the case study has none.
    """
    area, energy = 0.67**steps, 0.54**steps
    made = at_node(technology, Node(0.9**steps, area, energy, area, energy, 0.9**steps))
    return replace(made, core=replace(made.core, maximum_voltage=technology.core.maximum_voltage))


def scale_network(technology: Technology, steps: int) -> Technology:
    """The technology with links between package groups `steps` generations later: wire area x 0.75, energy x 0.5 per step (same source)."""
    link = technology.inter
    return replace(technology, inter=replace(link, area=link.area * 0.75**steps, energy_per_bit=link.energy_per_bit * 0.5**steps))


def _scaled_sram(sram: SramTechnology, node: Node) -> SramTechnology:
    return replace(
        sram,
        area_per_bit=sram.area_per_bit * node.sram_area,
        controller_area=sram.controller_area * node.sram_area,
        energy_per_bit=sram.energy_per_bit * node.sram_energy,
    )


def _check(part: CoreTechnology | SramTechnology | DramTechnology | LinkTechnology, may_be_zero: tuple[str, ...] = ()) -> None:
    """Refuse figures with which no circuit can be built or clocked."""
    figures = ((item.name, getattr(part, item.name)) for item in fields(part) if item.name != "rates")
    for name, value in figures:
        if not isfinite(value) or value < 0 or (value == 0 and name not in may_be_zero):
            raise ValueError(f"{name} is {value}, a finite positive number is needed")
    if part.utilisation > 1:
        raise ValueError(f"utilisation is {part.utilisation}, a share of at most 1 is needed")
    if not isinstance(part, SramTechnology):
        _check_voltages(part)


def _check_voltages(part: CoreTechnology | DramTechnology | LinkTechnology) -> None:
    """Refuse voltages that violate threshold < nominal <= maximum and threshold + margin <= maximum <= `UNLIMITED_VOLTAGE`."""
    lowest = part.threshold_voltage + part.margin_voltage
    if not part.threshold_voltage < part.nominal_voltage <= part.maximum_voltage:
        raise ValueError(
            f"nominal voltage {part.nominal_voltage} must lie above the threshold {part.threshold_voltage} and within the maximum"
        )
    if not lowest <= part.maximum_voltage <= UNLIMITED_VOLTAGE:
        raise ValueError(
            f"maximum voltage {part.maximum_voltage} must lie between threshold plus margin ({lowest}) and {UNLIMITED_VOLTAGE}"
        )
