"""How near a chip that was chosen is to what can be built: the edge, the ports of banks, the tiles of kernels."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from crossopt.crossflow.generator import generate, perimeter_of, through_joints
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.technology import HOLDING, UNLIMITED_BANDWIDTH, Technology
from crossopt.instances.codesign.chips import split_of
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.files.units import rounded_quantity
from crossopt.solvers.codesign.answer import DesignResult, design_in, design_of, from_words

_NAMES = {"registers": "registers", "l1": "L1", "l2": "L2"}
_FULL = 0.995


def building_of(instance: Instance, result: DesignResult) -> tuple[str, ...]:
    """A sentence for each limit that the technology of a free chip states; nothing of a device that is given."""
    design = design_in(result)
    if design is None or not isinstance(instance.hardware, FreeHardware):
        return ()
    chip = design_of(instance, from_words(instance, design)).hardware
    technology = instance.hardware.technology
    return (
        *_edge(instance.hardware, chip, design["hardware"]),
        *_dies(instance, technology, chip),
        *_ports(technology, chip),
        *_tiles(technology, chip),
    )


def _edge(free: FreeHardware, chip: Hardware, chosen: dict[str, Any]) -> Iterator[str]:
    dram = free.technology.dram
    if dram.stack_edge:
        stacks = round(float(chip.dram.capacity) / dram.stack_capacity)
        places = int(float(free.edges.dram) * float(perimeter_of(chip.die_area, chip.dies)) / dram.stack_edge)
        yield f"HBM stacks: {stacks}, of {places} that lie along the die's edge{_binds(stacks, places)}"
        yield from _wires(free, chosen, stacks)


def _wires(free: FreeHardware, chosen: dict[str, Any], stacks: int) -> Iterator[str]:
    """What of the edge stacks and wires take together, and each of them."""
    made = free.technology
    split = split_of(free, {name: np.float64(value) for name, value in chosen.items() if name != "name"})  # type: ignore[misc]
    built = generate(made, split)
    inside, out = (float(net.links) / link.links_per_metre for net, link in ((built.intra, made.intra), (built.inter, made.inter)))
    taken, whole = float(built.edge), float(perimeter_of(split.die_area, split.dies))
    words = (_millimetres(length) for length in (taken, whole, stacks * made.dram.stack_edge, inside, out))
    yield "die edge: {}, of {}: stacks {}, links in the node {}, links out {}".format(*words) + _binds(taken, whole)


def _millimetres(length: float) -> str:
    return f"{length * 1e3:.1f} mm"


def _dies(instance: Instance, technology: Technology, chip: Hardware) -> Iterator[str]:
    """Of several dies, how large each is, and what the joints between them let through."""
    dies, each = round(float(chip.dies)), float(chip.die_area / chip.dies)
    if dies > 1:
        reticle = instance.budget.reticle
        limit = f", of {rounded_quantity(reticle, 'area')} that a reticle exposes{_binds(each, reticle)}" if reticle < float("inf") else ""
        yield f"dies: {dies} of {rounded_quantity(each, 'area')}{limit}"
        let = float(through_joints(technology.die_links, chip.die_area, chip.dies)) * technology.l2.utilisation
        moved, most = (rounded_quantity(amount, "bandwidth") for amount in (float(chip.l2.bandwidth), let))
        yield f"L2: {moved}, of {most} of which half may pass between dies{_binds(float(chip.l2.bandwidth), let)}"


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
