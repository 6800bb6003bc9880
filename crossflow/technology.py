"""What one process, memory and package generation offers, per core, bit, stack and wire; and how a generation scales to the next.

All figures are SI: square metres, watts, hertz, volts, joules and watts per bit, bytes, wires per metre of die edge. The quantities are
those of DeepFlow's hardware description (arXiv 2211.03309; repository nanocad-lab/DeepFlow).
"""

from dataclasses import dataclass, fields, replace
from math import isfinite

from crossopt.crossflow.dies import NO_LINKS, DieLinks, UpperDies
from crossopt.crossflow.hardware import UNLIMITED_TILE
from crossopt.crossflow.voltage import UNLIMITED_FREQUENCY

PARTS = ("core", "registers", "l1", "l2", "dram", "intra", "inter")
MEMORIES = ("registers", "l1", "l2", "dram")
ON_DIE = ("registers", "l1", "l2")
VALUE = 2.0
"""Bytes of a value of 16 bits."""
HOLDING = ("registers", "l1")
"""The memories that hold the tiles of each bundle of cores."""
UNLIMITED_VOLTAGE = 1.0e3
"""Volts: far above any circuit, far below where its cube would overflow."""
UNLIMITED_PORT = 1.0e30
"""Bytes per second, or per cycle: far above any port."""


@dataclass(frozen=True, slots=True)
class CoreTechnology:
    """The matrix cores of a logic process, in bundles (streaming multiprocessors)."""

    area: float
    """Square metres of one core."""
    nominal_power: float
    """Watts of one core at nominal voltage and frequency."""
    flop_per_cycle: float
    cores_per_bundle: float
    nominal_frequency: float
    nominal_voltage: float
    threshold_voltage: float
    margin_voltage: float
    """Volts that the supply stays above the threshold: below, the clock is throttled at constant voltage."""
    maximum_voltage: float = UNLIMITED_VOLTAGE
    maximum_frequency: float = UNLIMITED_FREQUENCY
    """Of the clock, whatever the supply."""
    utilisation: float = 1.0
    """Share of the peak that is usable."""
    register_traffic: float = 8.0 / 28.0
    """Register values of 16 bits moved per FLOP; by a 4 x 4 engine 2 d2 / (d1 (2 d2 - 1)) with d1 = d2 = 4 (DeepFlow)."""
    l1_traffic: float = 0.0
    """Values of 16 bits that pass L1 per FLOP of a product: operands that the tile of an instruction or a warp reads, and what fills the
    tile of its block. Where it is 0, tiles fill the registers of a bundle, as DeepFlow has it."""
    tile: float = UNLIMITED_TILE
    """Elements of the largest tile of a product that a bundle, or several that share what they read, keeps its sums of."""
    vector_share: float = 1.0 / 8.0
    """Vector FLOP/s over matrix FLOP/s: 15.7 to 125 TFLOP/s on the V100 (NVIDIA 2017)."""
    wide_share: float = 1.0
    """FLOPs per cycle on operands of 16 bits over `flop_per_cycle`; below 1 in 8-bit and 4-bit runs."""
    leakage_per_area: float = 0.0
    """Watts per square metre at nominal voltage, whatever the clock; part of the nominal power."""
    clocked_share: float = 0.0
    """Of what switches, what clocks and control draw as long as a kernel runs, whatever it computes; the rest goes with FLOPs."""
    least_fed: float = 0.0
    """Share of the peak for which L2 gives products their operands, at the least; a chip whose L2 gives less counts as one without."""
    whole_bundles: bool = False
    """Whether cores that fill no bundle are none; DeepFlow counts them."""

    def __post_init__(self) -> None:
        _check(self, may_be_zero=("leakage_per_area", "clocked_share", "whole_bundles", "l1_traffic", "least_fed"))
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
        """Watts of one core at nominal voltage and frequency beside what it leaks."""
        return self.nominal_power - self.leakage

    @property
    def energy_per_flop(self) -> float:
        """Joules at nominal voltage: what switches beside clocks and control, at the peak."""
        return (1.0 - self.clocked_share) * self.switching_power / (self.flop_per_cycle * self.nominal_frequency)


@dataclass(frozen=True, slots=True)
class SramTechnology:
    """One on-chip memory level: banks behind a crossbar with one controller per bank and bundle."""

    area_per_bit: float
    energy_per_bit: float
    static_power_per_bit: float
    bank_capacity: float
    """Bytes."""
    controller_area: float
    """Square metres of the crossbar per bank and bundle; zero where the level needs none."""
    overhead: float
    """Share of the bank area that is not cells."""
    utilisation: float = 1.0
    bank_bytes_per_cycle: float = UNLIMITED_PORT
    """Through the port of one bank, at the clock of the cores."""
    least_per_bundle: float = 0.0
    """Bytes that kernels take of this level in each bundle of cores; a level that has fewer counts as absent."""
    core_supply: bool = False
    """Whether its bits take more and less with the supply of the cores, as V^2; others, and what leaks, have one of their own."""

    def __post_init__(self) -> None:
        _check(self, may_be_zero=("static_power_per_bit", "controller_area", "overhead", "least_per_bundle", "core_supply"))
        if self.overhead >= 1:
            raise ValueError(f"overhead is {self.overhead}, a share of the area below 1 is needed")


@dataclass(frozen=True, slots=True)
class DramTechnology:
    """A generation of stacked memory beside the die."""

    stack_capacity: float
    """Bytes."""
    stack_area: float
    """Square metres of the package under one stack."""
    controller_area: float
    """Square metres of the die for the controller of one stack."""
    links_per_stack: float
    links_per_metre: float
    """Wires that leave one metre of die edge."""
    energy_per_bit: float
    """Joules per bit moved at nominal voltage."""
    static_power_per_bit: float
    """Watts per bit stored."""
    nominal_frequency: float
    """Bits per second on one wire."""
    nominal_voltage: float
    threshold_voltage: float
    margin_voltage: float
    maximum_voltage: float = UNLIMITED_VOLTAGE
    utilisation: float = 1.0
    stack_edge: float = 0.0
    """Metres of die edge along which one stack lies; zero where stacks are held by package and controllers alone."""
    least_l2: float = 0.0
    """Bytes per second of L2 over those of the stacks, all of whose bytes pass it: stacks run no faster."""

    def __post_init__(self) -> None:
        _check(self, may_be_zero=("static_power_per_bit", "stack_edge", "least_l2"))


@dataclass(frozen=True, slots=True)
class LinkTechnology:
    """The wires between devices: on a wafer or interposer, on a board, or in cables."""

    area: float
    """Square metres of the die for one wire."""
    links_per_metre: float
    energy_per_bit: float
    nominal_frequency: float
    """Bits per second on one wire."""
    nominal_voltage: float
    threshold_voltage: float
    margin_voltage: float
    degree: float
    """Neighbours that share the wires: 4 on a two-dimensional mesh, 1 on a board."""
    maximum_voltage: float = UNLIMITED_VOLTAGE
    utilisation: float = 1.0
    latency: float = 0.0
    ring_latency: float = 0.0
    adapter_energy_per_bit: float = 0.0
    """Joules per bit that adapters and cables take beside the chip: no part of the power that its wires are given."""

    def __post_init__(self) -> None:
        _check(self, may_be_zero=("latency", "ring_latency", "adapter_energy_per_bit"))

    @property
    def one_rate(self) -> bool:
        """Whether every wire runs at the rate of its standard or not at all, as what it ends at does: no more than the nominal voltage."""
        return self.maximum_voltage <= self.nominal_voltage

    @property
    def energy_of_a_byte(self) -> float:
        """Joules that a byte takes on its way, on the die and beside it."""
        return 8.0 * (self.energy_per_bit + self.adapter_energy_per_bit)


@dataclass(frozen=True, slots=True)
class Uncore:
    """What a chip has beside the parts that can be chosen: host interface, schedulers, on-chip network, clocks, pads, test, spare units."""

    area_share: float = 0.0
    """Of the die."""
    power_per_area: float = 0.0
    """Watts per square metre of the die that switch with the cores' voltage and clock, at full activity and nominal both."""
    steady_per_area: float = 0.0
    """Watts per square metre of the die that follow neither,"""
    steady_area: float = float("inf")
    """of dies up to that size: larger ones and more of them have no more of it."""
    spare_bundles: float = 0.0
    """Bundles of cores that are made beside those in use, over these; their area is part of this one."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.spare_bundles * (1.0 - self.area_share) <= self.area_share:
            raise ValueError(f"spare bundles take {self.spare_bundles:g} of the others' area, more than the uncore of {self.area_share:g}")
        if not (0.0 <= self.area_share < 1.0 and all(0.0 <= each < float("inf") for each in (self.power_per_area, self.steady_per_area))):
            raise ValueError(f"a share of the die below 1 and finite powers per area are needed, not {self}")


@dataclass(frozen=True, slots=True)
class Traffic:
    """Values of 16 bits that pass each memory for a FLOP of large products."""

    registers: float = 0.0
    l1: float = 0.0
    l2: float = 0.0
    dram: float = 0.0

    def __post_init__(self) -> None:
        if any(not 0.0 <= getattr(self, field.name) < float("inf") for field in fields(self)):
            raise ValueError(f"finite figures not below 0 are needed, not {self}")


@dataclass(frozen=True, slots=True)
class Activity:
    """How busy some kernels keep each part, as shares of what it draws at its peak above what it draws anyway.

    Where something sets the pace, memories move what that asks of them, whatever they could: in products what the FLOPs of `core` take
    (`per_flop`), in streams the shares of what the stacks deliver, at the lowest clock that lets it through (`streams`).
    """

    core: float = 1.0
    registers: float = 1.0
    l1: float = 1.0
    l2: float = 1.0
    dram: float = 1.0
    intra: float = 1.0
    inter: float = 1.0
    per_flop: Traffic | None = None
    streams: bool = False

    def __post_init__(self) -> None:
        if any(not 0.0 <= getattr(self, name) <= 1.0 for name in PARTS):
            raise ValueError(f"shares between 0 and 1 are needed, not {self}")
        if self.streams and self.per_flop is not None:
            raise ValueError("per_flop and streams are both given (one thing sets the pace of a kernel)")

    def at_width(self, value_bytes: float) -> "Activity":
        """The kernels on operands of so many bytes."""
        if self.per_flop is None:
            return self
        return replace(self, per_flop=Traffic(*(getattr(self.per_flop, name) * (value_bytes / VALUE) for name in MEMORIES)))

    @property
    def paced(self) -> bool:
        """Whether memories move what cores or stacks ask of them."""
        return self.streams or self.per_flop is not None


@dataclass(frozen=True, slots=True)
class Technology:
    """Everything a chip can be made of."""

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
    """The kernels that may draw most of all; a board bears any of them for good. Without any, all parts at their peaks at once."""
    die_links: DieLinks = NO_LINKS
    upper_dies: UpperDies | None = None
    """Where there are none, one kind of die holds all parts."""

    def __post_init__(self) -> None:
        if self.l2.core_supply:
            raise ValueError("core_supply is given for L2, which lies beside the cores (give it for registers and L1 alone)")
        if not self.sustained:
            raise ValueError("sustained is empty, one activity at least is needed")

    @property
    def l2_per_flop(self) -> float:
        """Bytes that large products take of L2 for a FLOP; none where no kernels of the technology say so."""
        return VALUE * max((busy.per_flop.l2 for busy in self.sustained if busy.per_flop), default=0.0)


@dataclass(frozen=True, slots=True)
class Node:
    """By what factors parts at a logic node differ from those that a technology describes."""

    voltage: float = 1.0
    """Of the cores, nominal and maximum, at the same frequencies."""
    core_area: float = 1.0
    core_power: float = 1.0
    sram_area: float = 1.0
    """Of cells and of the crossbar."""
    sram_energy: float = 1.0
    controller_area: float = 1.0
    """Of the controllers of stacked memory, which are mostly analog."""
    highest_clock: float = 1.0
    """Of the cores, whatever the supply."""

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
    """The technology whose matrix engines do `rate` times the FLOPs of 16 bits a cycle on operands of so many bytes, at the same power, as
    bought devices do. Vector engines stay, and so does the rate on 16 bits where operands are narrower."""
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
    """The technology `steps` logic generations on (14, 10, 7, 5, 3, 2, 1 nm are steps 0 to 6 from 14 nm).

    Each step: core voltage x 0.9; core, SRAM cell and SRAM controller area x 0.67; core power and SRAM energy x 0.54; DRAM controller
    area x 0.9 (case study of arXiv 2211.03309). The highest core voltage stays, as the case study has none.
    """
    area, energy = 0.67**steps, 0.54**steps
    made = at_node(technology, Node(0.9**steps, area, energy, area, energy, 0.9**steps))
    return replace(made, core=replace(made.core, maximum_voltage=technology.core.maximum_voltage))


def scale_network(technology: Technology, steps: int) -> Technology:
    """The technology with links between package groups `steps` generations on: wire area x 0.75, energy x 0.5 a step (same source)."""
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
    for field in fields(part):
        value = getattr(part, field.name)
        if not isfinite(value) or value < 0 or (value == 0 and field.name not in may_be_zero):
            raise ValueError(f"{field.name} is {value}, a finite positive number is needed")
    if part.utilisation > 1:
        raise ValueError(f"utilisation is {part.utilisation}, a share of at most 1 is needed")
    if not isinstance(part, SramTechnology):
        _check_voltages(part)


def _check_voltages(part: CoreTechnology | DramTechnology | LinkTechnology) -> None:
    """Refuse voltages out of the order threshold < nominal <= maximum and threshold + margin <= maximum <= `UNLIMITED_VOLTAGE`."""
    lowest = part.threshold_voltage + part.margin_voltage
    if not part.threshold_voltage < part.nominal_voltage <= part.maximum_voltage:
        raise ValueError(
            f"nominal voltage {part.nominal_voltage} must lie above the threshold {part.threshold_voltage} and within the maximum"
        )
    if not lowest <= part.maximum_voltage <= UNLIMITED_VOLTAGE:
        raise ValueError(
            f"maximum voltage {part.maximum_voltage} must lie between threshold plus margin ({lowest}) and {UNLIMITED_VOLTAGE}"
        )
