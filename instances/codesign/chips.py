"""Chips of a question with free hardware: from choices to devices. Separate because most questions name a device."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Real
from crossopt.crossflow.cost import Made
from crossopt.crossflow.device import Architecture, device_from
from crossopt.crossflow.dies import package_area_of, perimeter_of
from crossopt.crossflow.envelope import core_counts
from crossopt.crossflow.generator import Split, generate, row_of, wires_of
from crossopt.crossflow.hardware import Hardware, Link
from crossopt.crossflow.technology import Technology
from crossopt.instances.catalogue.chips import PART_OF, placed, split_of, used_dies
from crossopt.instances.codesign.instance import FreeHardware, Join, Options


def generated(free: FreeHardware, points: Ints) -> tuple[Hardware, Made]:
    """The devices of the points and their composition. Budgets are not considered, so that a larger one never removes a design."""
    chosen = _chosen(free.options, points)
    split = split_of(free, chosen)
    built = generate(free.technology, split)
    made = made_of(free, split, split, built.dram.stacks)
    return device_of(free, built, split, split, chosen.get("hbm_stacks", built.dram.stacks)), made


def made_of(free: FreeHardware, least: Split, most: Split, stacks: Real) -> Made:
    """Lower bound of the composition of chips between two splits (upper bound for spares); for equal splits the chip itself.

    Beside the bundles, their spares and the cells of L2, which have spare rows and columns, a die is at least what its parts leave beside
    the smallest ones, since the uncore grows with the parts by more than the spares do, and what the smallest die leaves beside the
    largest ones.
    """
    technology = free.technology
    share, low, high = technology.uncore.spare_bundles, _bundled(least), _bundled(most)
    few, many = (np.floor(cores / technology.core.cores_per_bundle) for cores in core_counts(technology.core, least, most))
    fewer, more = ((1.0 + share) * each + _repaired(technology, split) for each, split in ((low, least), (high, most)))
    rest = np.maximum(least.die_area - more, sum(used_dies(technology, least.areas)) - fewer)
    return Made(
        die_area=least.die_area,
        stacks=stacks,
        rest=np.maximum(rest, 0.0),
        bundle=np.maximum(low / np.maximum(many, 1.0), technology.core.cores_per_bundle * technology.core.area),
        needed=np.minimum(np.maximum(few, 1.0), many) if share else 0.0,
        spare=np.floor(share * many),
        wires=wires_of(
            technology.inter, least.areas.inter, least.edges.inter * perimeter_of(least.die_area, least.dies), least.powers.inter
        ),
        dies=most.dies,
        package_area=package_area_of(technology.dram, stacks, row_of(least), row_of(most)),
    )


def _bundled(split: Split) -> Real:
    return split.areas.core + split.areas.registers + split.areas.l1


def _repaired(technology: Technology, split: Split) -> Real:
    """Square metres of L2 cells, which are repairable."""
    return (1.0 - technology.l2.overhead) * split.areas.l2


def device_of(free: FreeHardware, built: Architecture, least: Split, most: Split, stacks: Real) -> Hardware:
    """The device of an architecture with the links of each network level, on the least area and the most dies of two splits.
    Its memory has no capacity if fewer stacks than chosen find a place, with as many beside every die.
    The same holds if stacks and wires together exceed the edge.
    """
    device = device_from(free.technology, built, 2.0, free.efficiency)
    made = tuple(replace(link, setup=setup) for link, setup in zip(device.links, free.setups, strict=True))
    levels = zip(free.levels, free.overrides, free.joins, strict=True)
    links = tuple(given or joined(made[("intra", "inter").index(level)], join) for level, given, join in levels)
    return replace(
        device,
        links=links,
        dram=replace(device.dram, capacity=device.dram.capacity * placed(free.technology, least, most, built, stacks)),
        die_area=least.die_area,
        dies=most.dies,
        power_density=built.die_power(free.technology.sustained) / most.die_area,
        reserved_memory=free.reserved_memory,
        host=free.host,
        variants=free.variants,
    )


def joined(link: Link, join: Join) -> Link:
    """The level's share of the wires of such links, by its topology."""
    return replace(link, bandwidth=link.bandwidth * join.share, shape=join.shape, size=join.units, reduces=join.reduces)


def drawn_of(free: FreeHardware, chosen: Mapping[str, float]) -> dict[str, float]:
    """Upper bound of the watts drawn by the parts of one chip whose power is chosen, by choice.
    It is below the chosen power where the highest clock, the wires or the ports take no more.
    """
    powers = {f"{name}_power": part for name, part in PART_OF.items() if f"{name}_power" in chosen}
    if not powers:
        return {}
    built = generate(free.technology, split_of(free, {name: np.array([value], np.float64) for name, value in chosen.items()}))
    return {name: float(np.max(getattr(built, part).power)) for name, part in powers.items()}


def clock_of(free: FreeHardware, chosen: Mapping[str, float]) -> float:
    """Clock of the cores of one chip, in hertz."""
    split = split_of(free, {name: np.array([value], np.float64) for name, value in chosen.items()})
    return float(np.max(generate(free.technology, split).core.frequency))


def _chosen(options: Options, points: Ints) -> dict[str, Array]:
    places = np.unravel_index(points, [len(values) for _, values in options]) if options else ()
    return {name: np.array(values, np.float64)[index] for (name, values), index in zip(options, places, strict=True)}
