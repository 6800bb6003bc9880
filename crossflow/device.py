"""The parts of a chip, and the device built from them, which the cost model evaluates."""

from functools import reduce

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.hardware import Efficiency, Hardware, Link, Memory, headroom_of
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.technology import VALUE, Activity, SramTechnology, Technology


@dataclass(frozen=True, slots=True)
class Compute:
    cores: Real
    bundles: Real
    voltage: Real
    frequency: Real
    peak: Real
    """FLOP/s of the chip at full utilisation."""
    leakage: Real
    """Watts drawn at any clock."""
    clocked: Real
    """Watts of clocks and control while a kernel runs; the rest of the power is spent on FLOPs at the peak."""
    slow_clocked: Real
    """Watts of clocks and control at the lowest clock at which on-die memories pass on what the stacks deliver."""
    slow_flops: Real
    """Watts of FLOPs at the peak of that clock."""
    area: Real
    power: Real


@dataclass(frozen=True, slots=True)
class Sram:
    banks: Real
    capacity: Real
    """Capacity of the chip in bytes."""
    bandwidth: Real
    """Bytes per second of the chip at full utilisation."""
    energy: Real
    """Joules per byte moved, including the joints between dies that it passes."""
    static: Real
    """Watts that keep the banks alive, part of the power."""
    area: Real
    power: Real


@dataclass(frozen=True, slots=True)
class Dram:
    stacks: Real
    links: Real
    voltage: Real
    frequency: Real
    capacity: Real
    """Bytes."""
    bandwidth: Real
    """Bytes per second at full utilisation."""
    energy: Real
    """Joules per byte moved at nominal voltage."""
    area: Real
    """Square metres of the die for the controllers."""
    static: Real
    """Watts that keep the stacks alive, part of the power."""
    power: Real
    """Watts used; above the budget if static power alone exceeds it."""


@dataclass(frozen=True, slots=True)
class Network:
    links: Real
    voltage: Real
    frequency: Real
    bandwidth: Real
    """Bytes per second to one neighbour, after utilisation."""
    area: Real
    power: Real


@dataclass(frozen=True, slots=True)
class Architecture:
    """The architecture built from a split; voltage and frequency of an absent part are zero. Areas and powers are what is used, not what
    was given."""

    core: Compute
    registers: Sram
    l1: Sram
    l2: Sram
    dram: Dram
    intra: Network
    inter: Network
    uncore_idle: Real
    """Constant watts of the uncore."""
    uncore_switched: Real
    """Watts that the uncore draws in addition while a kernel runs."""
    uncore_slow: Real
    """Static power at the lowest clock that keeps up with the memory stacks."""
    products: Real
    """FLOP/s by which bytes of products are counted: the peak, or the least peak of several chips."""
    streamed: Real
    """Bytes per second by which bytes of streams are counted: the stacks' bandwidth, or the least of several chips."""
    edge: Real
    """Metres of die edge used by stacks and external wires; zero if stacks use none."""
    package_area: Real
    """Square metres of the package: of the interposer, the box around dies and stacks."""
    crossings: Real = 0.0
    """Mean number of joints between dies that a byte of L2 crosses."""
    die_links_power: Real = 0.0
    """Watts of all links between dies at full activity."""

    @property
    def area(self) -> Real:
        """Square metres of the die occupied by the parts."""
        return self.core.area + self.registers.area + self.l1.area + self.l2.area + self.dram.area + self.intra.area + self.inter.area

    @property
    def idle_power(self) -> Real:
        """Watts drawn at all times: leakage, memory retention, and the constant part of the uncore."""
        memories = self.registers.static + self.l1.static + self.l2.static + self.dram.static
        return self.uncore_idle + self.core.leakage + memories

    @property
    def running_power(self) -> Real:
        """Watts above idle while any kernel runs: clocks and control of cores and uncore."""
        return self.uncore_switched + self.core.clocked

    def power(self, sustained: tuple[Activity, ...]) -> Real:
        """Watts that parts and uncore draw in the kernels that draw most. What a board bears for good is limited, not the sum of what
        every part draws at its peak: cores and memory are not busy at once. It rises with the power of every part.

        Each watt is counted once: idle power, running power, and of every part what its FLOPs and bytes take, by how busy it is. A board
        bears streams that it slows its cores down for, as they wait for the memory (power caps as in Choi et al. 2014). Where a step would
        draw more on average, the board holds it to this (`hardware.within_power`)."""
        return reduce(np.maximum, [self._on_die(busy) + self.drawn("dram", busy) for busy in sustained])

    def die_power(self, sustained: tuple[Activity, ...]) -> Real:
        """The part of that power dissipated through the die: all but that of stacks, their wires and controllers."""
        return reduce(np.maximum, [self._on_die(busy) for busy in sustained])

    def drawn(self, part: str, busy: Activity) -> Real:
        """Watts of one part in kernels that keep it this busy. Increases with its power and with its constant draw."""
        return self.by_itself(part, busy) + self.moved(part, busy)

    def by_itself(self, part: str, busy: Activity) -> Real:
        """The part's watts that are not for bytes moved at another part's rate."""
        made: Compute | Sram | Dram | Network = getattr(self, part)
        share: float = getattr(busy, part)
        if isinstance(made, Compute) and busy.streams:
            return made.leakage + made.slow_clocked + share * made.slow_flops
        if busy.paced and (isinstance(made, Sram) or (isinstance(made, Dram) and not busy.streams)):
            return made.static
        anyway = made.leakage + made.clocked if isinstance(made, Compute) else made.static if isinstance(made, Sram | Dram) else 0.0
        return (1.0 - share) * anyway + share * made.power

    def moved(self, part: str, busy: Activity) -> Real:
        """Watts of a memory for bytes moved at another part's rate."""
        made: Compute | Sram | Dram | Network = getattr(self, part)
        if isinstance(made, Sram) and busy.streams:
            share: float = getattr(busy, part)
            return share * made.energy * self.streamed
        if isinstance(made, Sram | Dram) and busy.per_flop is not None:
            values: float = getattr(busy.per_flop, part)
            return busy.core * values * VALUE * made.energy * self.products
        return 0.0

    def joints(self, busy: Activity) -> Real:
        """Watts of the links between dies beyond those counted with the bytes of L2."""
        return 0.0 if busy.paced else busy.l2 * self.die_links_power

    def beside(self, busy: Activity) -> Real:
        """Watts of the uncore."""
        return self.uncore_idle + (self.uncore_slow if busy.streams else self.uncore_switched)

    def _on_die(self, busy: Activity) -> Real:
        on_chip = self.drawn("core", busy) + self.drawn("registers", busy) + self.drawn("l1", busy) + self.drawn("l2", busy)
        links = self.drawn("intra", busy) + self.drawn("inter", busy) + self.joints(busy)
        return on_chip + links + self.beside(busy)


def device_from(technology: Technology, built: Architecture, value_bytes: float, efficiency: Efficiency) -> Hardware:
    """The device with these resources.

    What it draws is counted once: idle power whatever runs, running power as long as kernels run, and joules for FLOPs and bytes. A core's
    energy per FLOP at voltage V is that of `CoreTechnology` times (V / nominal voltage)^2; at the peak all FLOPs take what idle and running
    power leave of the cores' power, and no memory or link takes more for its bytes than static power leaves of its own, but for stacks and
    links below their nominal voltage, whose bytes are counted as if they were at it.
    """
    core, power = technology.core, built.power(technology.sustained)
    raised = built.core.voltage / core.nominal_voltage
    return Hardware(
        name=technology.name,
        throughput=built.core.peak * core.utilisation,
        vector_throughput=built.core.peak * core.utilisation * core.vector_share,
        bundles=built.core.bundles,
        dram=Memory(built.dram.capacity, built.dram.bandwidth * technology.dram.utilisation, built.dram.energy),
        l2=_on_chip(technology.l2, built.l2),
        l1=_on_chip(technology.l1, built.l1),
        registers=_on_chip(technology.registers, built.registers),
        links=(
            Link(
                built.intra.bandwidth,
                technology.intra.latency,
                energy=technology.intra.energy_of_a_byte,
                ring_latency=technology.intra.ring_latency,
            ),
            Link(
                built.inter.bandwidth,
                technology.inter.latency,
                energy=technology.inter.energy_of_a_byte,
                ring_latency=technology.inter.ring_latency,
            ),
        ),
        register_traffic=value_bytes * core.register_traffic,
        l1_traffic=value_bytes * core.l1_traffic,
        tile=core.tile,
        wide_share=core.wide_share,
        energy_per_flop=core.energy_per_flop * (raised * raised),
        idle_power=built.idle_power,
        running_power=built.running_power,
        power=power,
        headroom=headroom_of(power, built.idle_power),
        die_area=built.area,
        package_area=built.package_area,
        efficiency=efficiency,
    )


def _on_chip(sram: SramTechnology, built: Sram) -> Memory:
    return Memory(built.capacity, built.bandwidth * sram.utilisation, built.energy)
