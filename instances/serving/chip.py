"""A free chip that serves: its choices and budgets, the device of a design, and a device at least as good as all of a box of designs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask, Real
from crossopt.crossflow.envelope import core_counts
from crossopt.crossflow.hardware import Hardware, take
from crossopt.instances.catalogue.chips import split_of
from crossopt.instances.catalogue.engines import OwnKernels
from crossopt.instances.catalogue.registry import technology_given
from crossopt.instances.codesign.boxes import Boxes, Grid, corners, grid, option_indices
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.question import read
from crossopt.instances.codesign.space import hardware_point
from crossopt.instances.errors import InstanceError
from crossopt.instances.files.document import node_of
from crossopt.instances.files.written import Written, graft

NODE = 8
"""Chips of a node."""


@dataclass(frozen=True, slots=True, eq=False)
class FreeChip:
    """What may be chosen of a chip; read like the chip of a joint design, of whose workload nothing is used."""

    instance: Instance
    free: FreeHardware
    space: Grid
    peaks: Mapping[str, float]
    """Formats in which it computes."""
    kernels: OwnKernels
    """None of its own: those of the device that is most like it."""

    @property
    def name(self) -> str:
        """The technology."""
        return self.free.technology.name

    @property
    def like(self) -> str:
        """The device whose kernels price it."""
        return self.kernels.like


def free_chip(written: Written, technology: str) -> FreeChip:
    """The chip of a question; an InstanceError with its first fault."""
    plain = {
        "kind": "codesign",
        "workload": {"model": "llama3-8b", "global_batch": "8", "sequence": "2048", "precision": "bf16"},
        "cluster": {"devices": str(NODE * NODE), "devices_per_node": str(NODE)},
        "technology": technology,
    }
    root, section = node_of(plain), written.root.value["chip"].node.value if isinstance(written.root.value, dict) else {}
    for key in ("budget", "choices"):
        if isinstance(section, dict) and key in section:
            root = graft(root, [key], section[key].node)
    try:
        instance = read(Written(written.source, written.text, root, (), written.files))
        entry, _, _ = technology_given(technology)
    except InstanceError as error:
        raise written.refused([written.fault("chip", fault.message) for fault in error.faults[:1]]) from error
    if not isinstance(instance, Instance) or not isinstance(instance.hardware, FreeHardware):
        raise written.refused([written.fault("chip", "no chip is open")])
    free = instance.hardware
    return FreeChip(
        instance, free, grid(instance), {"bf16": 1.0, **entry.core.rates}, OwnKernels(free.technology.name, free.like or "", {})
    )


@dataclass(frozen=True, slots=True, eq=False)
class BestChips:
    """For each box a device with every resource at its highest, and the least area."""

    hardware: Hardware
    alive: Mask
    """Whether a design of the box may be within its budgets, with area and power left for computing and for memory."""
    single: Mask
    """Boxes of one design, whose device this is."""


def best_chips(chip: FreeChip, boxes: Boxes) -> BestChips:
    """The best device of each box.

    Kernels fill bundles in waves: where bundles differ, a device has the most of them, each as fast as all together on the fewest.
    """
    found = corners(chip.instance, chip.space, boxes)
    hardware, core = found.hardware, chip.free.technology.core
    least, most = (split_of(chip.free, _values(chip.space, ends)) for ends in (boxes.low, boxes.high))
    many = np.floor(np.asarray(core_counts(core, least, most)[1]) / core.cores_per_bundle) * np.ones(len(boxes))
    single = (boxes.low == boxes.high).all(axis=1)
    many = np.where(single, hardware.bundles, np.maximum(many, hardware.bundles))
    faster: Real = np.where(single, 1.0, many / np.maximum(hardware.bundles, 1.0))
    hardware = replace(hardware, name=chip.like, bundles=many, throughput=hardware.throughput * faster, variants=(), doubts=())
    working = (np.asarray(hardware.throughput) > 0.0) & (np.asarray(hardware.dram.bandwidth) > 0.0)
    return BestChips(hardware, found.alive & working, single)


def device_of_choice(chip: FreeChip, choice: Mapping[str, float]) -> Hardware:
    """The device of a design; a ValueError where it is none of the question or breaks a budget."""
    point = hardware_point(chip.instance, dict(choice))
    places = option_indices(chip.space, point)[None, :]
    found = best_chips(chip, Boxes(places, places))
    if not found.alive[0]:
        raise ValueError("the chip cannot be built within its budgets")
    return take(found.hardware, 0)


def choice_at(chip: FreeChip, places: Ints) -> dict[str, float]:
    """The options at these places."""
    found: dict[str, Any] = {name: chip.space.options[column][int(places[column])] for column, name in enumerate(chip.space.names)}
    known = dict(chip.free.options)
    return {name: next(option for option in known[name] if option == value) for name, value in found.items()}


def _values(space: Grid, places: Ints) -> dict[str, Array]:
    return {name: values[places[:, column]] for column, (name, values) in enumerate(zip(space.names, space.options, strict=True))}
