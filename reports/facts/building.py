"""How near a chip that was chosen is to what can be built: the edge, the ports of banks, the tiles of kernels; and its package."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from crossopt.crossflow.cost import device_price, dies_per_wafer, good_share
from crossopt.crossflow.generator import generate, perimeter_of
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.technology import HOLDING, UNLIMITED_BANDWIDTH, Technology
from crossopt.instances.codesign.chips import made_of, split_of
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
    free, chip = instance.hardware, design_of(instance, from_words(instance, design)).hardware
    return (*_edge(free, chip), *_ports(free.technology, chip), *_tiles(free.technology, chip), *price_of(instance, design))


def price_of(instance: Instance, design: Mapping[str, Any]) -> Iterator[str]:
    """What one chip costs, part by part, where it follows from a wafer."""
    prices, free = instance.prices, instance.hardware
    if prices is None or prices.wafer is None or not isinstance(free, FreeHardware):
        return
    split = split_of(free, {name: np.array([value], np.float64) for name, value in design["hardware"].items() if name != "name"})
    made = made_of(free, split, split, generate(free.technology, split).dram.stacks)
    good, dies = float(np.max(good_share(prices, made))), float(np.max(dies_per_wafer(made.die_area, prices.wafer_diameter)))
    stacks, wires = (float(np.max(count)) for count in (made.stacks, made.wires))
    parts = (("die", prices.wafer / (dies * good)), ("stacks", stacks * prices.stack), ("package and host", prices.package))
    listed = ", ".join(f"{name} {value:,.0f}" for name, value in (*parts, ("ports", wires * prices.lane)) if value)
    total = float(np.max(device_price(prices, made)))
    yield f"price: {total:,.0f} USD a device ({listed}); {good:.0%} of {dies:.0f} dies on a wafer are good"


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
