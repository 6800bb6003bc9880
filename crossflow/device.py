"""What a chip is made of, and the device that it makes, which the cost model prices."""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.hardware import Efficiency, Hardware, Link, Memory, headroom_of
from crossopt.crossflow.technology import Activity, SramTechnology, Technology


@dataclass(frozen=True, slots=True)
class Compute:
    cores: Real
    bundles: Real
    voltage: Real
    frequency: Real
    peak: Real
    """FLOP/s of the chip before utilisation."""
    leakage: Real
    """Watts of the power that are drawn whatever the clock."""
    clocked: Real
    """Watts of clocks and control, as long as a kernel runs; what is left of the power goes with FLOPs at the peak."""
    area: Real
    power: Real


@dataclass(frozen=True, slots=True)
class Sram:
    banks: Real
    capacity: Real
    """Bytes of the chip."""
    bandwidth: Real
    """Bytes per second of the chip before utilisation."""
    static: Real
    """Watts of the power that keep the banks alive."""
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
    """Bytes per second before utilisation."""
    area: Real
    """Square metres of the die, for the controllers."""
    static: Real
    """Watts of the power that keep the stacks alive."""
    power: Real
    """Watts used; above the budget where static power alone exceeds it."""


@dataclass(frozen=True, slots=True)
class Network:
    links: Real
    voltage: Real
    frequency: Real
    bandwidth: Real
    """Bytes per second to one neighbour after utilisation."""
    area: Real
    power: Real


@dataclass(frozen=True, slots=True)
class Architecture:
    """What a split yields; voltages and frequencies of an absent part are zero. Areas and powers are what is used, not what was given."""

    core: Compute
    registers: Sram
    l1: Sram
    l2: Sram
    dram: Dram
    intra: Network
    inter: Network
    uncore_idle: Real
    """Watts of what is no part, whatever runs."""
    uncore_switched: Real
    """Watts of it beyond, as long as a kernel runs."""
    edge: Real
    """Metres of the die's edge that stacks and wires to other devices take; zero where stacks take none."""
    package_area: Real
    """Square metres of the package: of the interposer, the box around dies and stacks."""
    crossings: Real = 0.0
    """Joints between dies that a byte of L2 passes on its way, in the mean."""
    die_links_power: Real = 0.0
    """Watts of all links between dies, at full activity."""

    @property
    def area(self) -> Real:
        """Square metres of the die that the parts occupy."""
        return self.core.area + self.registers.area + self.l1.area + self.l2.area + self.dram.area + self.intra.area + self.inter.area

    @property
    def uncore_power(self) -> Real:
        """Watts of what is no part, as long as a kernel runs."""
        return self.uncore_idle + self.uncore_switched

    @property
    def idle_power(self) -> Real:
        """Watts drawn whatever runs: what leaks, what keeps memories alive, and what of the uncore is steady."""
        memories = self.registers.static + self.l1.static + self.l2.static + self.dram.static
        return self.uncore_idle + self.core.leakage + memories

    @property
    def running_power(self) -> Real:
        """Watts above idle as long as a kernel runs, whatever it computes: clocks and control of cores and uncore."""
        return self.uncore_switched + self.core.clocked

    def power(self, sustained: tuple[Activity, ...]) -> Real:
        """Watts that parts and uncore draw in those kernels that draw most. What a board bears for good is limited, not the sum of what
        every part draws at its peak: cores and memory are not busy at once. It rises with the power of every part.

        Each watt is counted once: idle power, running power, and of every part what its FLOPs and bytes take at their peak, by how busy
        it is. Where a step would draw more on average, the board holds it to this (`hardware.within_power`)."""
        return reduce(np.maximum, [self._on_die(busy) + self.drawn("dram", busy) for busy in sustained])

    def die_power(self, sustained: tuple[Activity, ...]) -> Real:
        """The same of what leaves through the die: all but what stacks, their wires and controllers draw."""
        return reduce(np.maximum, [self._on_die(busy) for busy in sustained])

    def drawn(self, part: str, busy: Activity) -> Real:
        """Watts of one of the parts in kernels that keep it so busy. It rises with its power, and with each figure that is drawn anyway."""
        made: Compute | Sram | Dram | Network = getattr(self, part)
        share: float = getattr(busy, part)
        anyway = made.leakage + made.clocked if isinstance(made, Compute) else made.static if isinstance(made, Sram | Dram) else 0.0
        return (1.0 - share) * anyway + share * made.power

    def _on_die(self, busy: Activity) -> Real:
        on_chip = self.drawn("core", busy) + self.drawn("registers", busy) + self.drawn("l1", busy) + self.drawn("l2", busy)
        links = self.drawn("intra", busy) + self.drawn("inter", busy) + busy.l2 * self.die_links_power
        return on_chip + links + self.uncore_power


def device_from(technology: Technology, built: Architecture, value_bytes: float, efficiency: Efficiency) -> Hardware:
    """The device with these resources.

    What it draws is counted once: idle power whatever runs, running power as long as kernels run, and joules for FLOPs and bytes. A core's
    energy per FLOP at voltage V is that of `CoreTechnology` times (V / nominal voltage)^2; at the peak all FLOPs take what idle and running
    power leave of the cores' power, and no memory or link takes more for its bytes than static power leaves of its own, but for stacks and
    links below their nominal voltage, whose bytes are counted as if they were at it.
    """
    core, power = technology.core, built.power(technology.sustained)
    return Hardware(
        name=technology.name,
        throughput=built.core.peak * core.utilisation,
        vector_throughput=built.core.peak * core.utilisation * core.vector_share,
        bundles=built.core.bundles,
        dram=_memory(built.dram.capacity, built.dram.bandwidth * technology.dram.utilisation, technology.dram.energy_per_bit),
        l2=_l2(technology, built),
        l1=_on_chip(technology.l1, built.l1.capacity, built.l1.bandwidth),
        registers=_on_chip(technology.registers, built.registers.capacity, built.registers.bandwidth),
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
        energy_per_flop=core.energy_per_flop * (built.core.voltage / core.nominal_voltage) ** 2,
        idle_power=built.idle_power,
        running_power=built.running_power,
        power=power,
        headroom=headroom_of(power, built.idle_power),
        die_area=built.area,
        package_area=built.package_area,
        efficiency=efficiency,
    )


def _l2(technology: Technology, built: Architecture) -> Memory:
    """Each byte is moved once in its bank, and once more for each joint between dies that it passes."""
    energy_per_bit = technology.l2.energy_per_bit + built.crossings * technology.die_links.energy_per_bit
    return _memory(built.l2.capacity, built.l2.bandwidth * technology.l2.utilisation, energy_per_bit)


def _on_chip(sram: SramTechnology, capacity: Real, bandwidth: Real) -> Memory:
    return _memory(capacity, bandwidth * sram.utilisation, sram.energy_per_bit)


def _memory(capacity: Real, bandwidth: Real, energy_per_bit: Real) -> Memory:
    return Memory(capacity, bandwidth, 8.0 * energy_per_bit)
