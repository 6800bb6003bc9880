"""How near a chip that was chosen is to what can be built: the edge, the ports of banks, the tiles of kernels; and its package."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

from crossopt.crossflow.generator import perimeter_of
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.technology import HOLDING, UNLIMITED_BANDWIDTH, Technology
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.files.units import rounded_quantity
from crossopt.solvers.codesign.answer import DesignResult, design_in, design_of, from_words

_NAMES = {"registers": "registers", "l1": "L1", "l2": "L2"}
_FULL = 0.995


@dataclass(frozen=True, slots=True)
class Package:
    """What lies beside the die."""

    stacks: int
    stack: tuple[float, float]
    """Metres of a stack along the die's edge and away from it."""


def package_of(technology: Technology, stacks: float) -> Package:
    """So many stacks of the technology, each as long as the edge that it takes and of its area."""
    dram = technology.dram
    edge = dram.stack_edge or sqrt(dram.stack_area)
    return Package(round(stacks), (edge, dram.stack_area / edge))


def building_of(instance: Instance, result: DesignResult) -> tuple[str, ...]:
    """A sentence for each limit that the technology of a free chip states; nothing of a device that is given."""
    design = design_in(result)
    if design is None or not isinstance(instance.hardware, FreeHardware):
        return ()
    chip = design_of(instance, from_words(instance, design)).hardware
    return (*_edge(instance.hardware, chip), *_ports(instance.hardware.technology, chip), *_tiles(instance.hardware.technology, chip))


def _edge(free: FreeHardware, chip: Hardware) -> Iterator[str]:
    dram = free.technology.dram
    if dram.stack_edge:
        stacks = round(float(chip.dram.capacity) / dram.stack_capacity)
        places = int(float(free.edges.dram) * float(perimeter_of(chip.die_area)) / dram.stack_edge)
        yield f"HBM stacks: {stacks}, of {places} that lie along the die's edge{_binds(stacks, places)}"


def _ports(technology: Technology, chip: Hardware) -> Iterator[str]:
    for level, words in _NAMES.items():
        sram, memory = getattr(technology, level), getattr(chip, level)
        most = float(memory.capacity) / sram.bank_capacity * sram.bank_bandwidth * sram.utilisation
        if sram.bank_bandwidth < UNLIMITED_BANDWIDTH:
            moved, let = (rounded_quantity(amount, "bandwidth") for amount in (float(memory.bandwidth), most))
            yield f"{words}: {moved}, of {let} that its banks let through{_binds(float(memory.bandwidth), most)}"


def _tiles(technology: Technology, chip: Hardware) -> Iterator[str]:
    for level in HOLDING:
        least = getattr(technology, level).least_per_bundle
        if least:
            each = float(getattr(chip, level).capacity) / float(chip.bundles)
            held, needed = (rounded_quantity(size, "bytes") for size in (each, least))
            yield f"{_NAMES[level]}: {held} for each bundle of cores, whose kernels take {needed}{_binds(least, each)}"


def _binds(used: float, most: float) -> str:
    return ", binds" if used >= _FULL * most else ""
