"""From a generated architecture to the device that the cost model prices."""

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.generator import Architecture
from crossopt.crossflow.hardware import Efficiency, Hardware, Link, Memory
from crossopt.crossflow.technology import CoreTechnology, SramTechnology, Technology


def device_from(
    technology: Technology, built: Architecture, value_bytes: float, shares: tuple[float, float], efficiency: Efficiency
) -> Hardware:
    """The device with these resources; what it draws when idle, and beyond that while a kernel runs, are shares of its power budget, and
    what cores leak is drawn while a kernel runs.

    A core's energy per FLOP at voltage V is switching power / (FLOP per cycle * nominal frequency) * (V / nominal voltage)^2.
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
                energy=8.0 * technology.intra.energy_per_bit,
                ring_latency=technology.intra.ring_latency,
            ),
            Link(
                built.inter.bandwidth,
                technology.inter.latency,
                energy=8.0 * technology.inter.energy_per_bit,
                ring_latency=technology.inter.ring_latency,
            ),
        ),
        register_traffic=value_bytes * core.register_traffic,
        l1_traffic=value_bytes * core.l1_traffic,
        tile=core.tile,
        wide_share=core.wide_share,
        energy_per_flop=_energy_per_flop(core) * (built.core.voltage / core.nominal_voltage) ** 2,
        idle_power=shares[0] * power,
        running_power=shares[1] * power + built.core.leakage,
        power=power,
        die_area=built.area,
        package_area=built.package_area,
        efficiency=efficiency,
    )


def _energy_per_flop(core: CoreTechnology) -> float:
    return core.switching_power / (core.flop_per_cycle * core.nominal_frequency)


def _l2(technology: Technology, built: Architecture) -> Memory:
    """Each byte is moved once in its bank, and once more for each joint between dies that it passes."""
    energy_per_bit = technology.l2.energy_per_bit + built.crossings * technology.die_links.energy_per_bit
    return _memory(built.l2.capacity, built.l2.bandwidth * technology.l2.utilisation, energy_per_bit)


def _on_chip(sram: SramTechnology, capacity: Real, bandwidth: Real) -> Memory:
    return _memory(capacity, bandwidth * sram.utilisation, sram.energy_per_bit)


def _memory(capacity: Real, bandwidth: Real, energy_per_bit: Real) -> Memory:
    return Memory(capacity, bandwidth, 8.0 * energy_per_bit)
