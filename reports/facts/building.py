"""How near a chip that was chosen is to what can be built: the edge, the ports of banks, the tiles of kernels; and its package."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.device import Compute
from crossopt.crossflow.dies import (
    CLEARANCE,
    equal_per_die,
    package_area_of,
    perimeter_of,
    places_of,
    sides_of,
    sides_of_stack,
    through_joints,
)
from crossopt.crossflow.generator import Split, generate, port_bandwidth, row_of
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.technology import HOLDING, UNLIMITED_PORT, Activity, Technology
from crossopt.crossflow.voltage import UNLIMITED_FREQUENCY
from crossopt.instances.catalogue.chips import split_of, used_dies
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.files.units import rounded_quantity
from crossopt.reports.facts.chip import FULL, bill_of, bill_text, bundles_text, by_clock, links_text, slowed_stacks
from crossopt.solvers.codesign.answer import ChosenDesign, DesignResult, chosen_hardware

_NAMES = {"registers": "registers", "l1": "L1", "l2": "L2"}
_EASED = 1.1
_FIELD = 858e-6
_INTERPOSERS = ((2016, 1200e-6), (2020, 1700e-6), (2021, 2500e-6), (2024, 2830e-6), (2026, 4720e-6))
"""Square metres of the largest interposers by year: 1.5 and 2 fields of a scanner (AnandTech, 2020-08-25; TSMC and Broadcom, March 2020), 3
(CoWoS-S5; WikiChip, 2021), 3.3 and 5.5 (CoWoS-L; TrendForce 2026)."""


@dataclass(frozen=True, slots=True)
class Built:
    """What a technology lets a chip have of something, and what the chip has of it."""

    sentence: str
    full: bool = False
    eased: Technology | None = None
    """The technology that lets it have a tenth more, where that is a figure of its own and all of it is used."""


@dataclass(frozen=True, slots=True)
class Package:
    """What lies beside the die, or on it."""

    stacks: int
    stack: tuple[float, float]
    """Metres of a stack along the die's edge and away from it."""
    dies: int
    die: tuple[float, float]
    """Metres of one die across the row that they make, and along it."""
    rim: float
    """Metres that are free between all this and the rim of the interposer."""
    boxed: bool
    """Whether the box around all this is the package area, and not dies and stacks alone."""
    bundles: int
    """Of cores on each die; none where they lie on dies of their own above."""
    on_dies: bool = False
    """Whether the stacks lie on the dies."""


def package_of(technology: Technology, split: Split, stacks: float, bundles: float) -> Package:
    """So many stacks of the technology, each as long as the edge that it takes and of its area, beside the dies of a split or on them."""
    dram, dies = technology.dram, round(float(split.dies))
    across, along = (float(side) for side in sides_of(dram, stacks, row_of(split)))
    return Package(
        stacks=round(stacks),
        stack=sides_of_stack(dram),
        dies=dies,
        die=(across, along),
        rim=CLEARANCE,
        boxed=dram.stack_edge > 0.0 and not dram.on_dies,
        bundles=0 if technology.upper_dies else round(bundles / dies),
        on_dies=dram.on_dies,
    )


def clock_text(instance: Instance | None, design: ChosenDesign) -> tuple[str, ...]:
    """At what clock and supply the cores of a free chip run; nothing of a device that is given."""
    if instance is None or not isinstance(free := instance.hardware, FreeHardware):
        return ()
    core = generate(free.technology, split_of(free, _chosen(design.hardware.choices))).core
    return (f"cores {float(np.max(core.frequency)) / 1e9:.2f} GHz at {float(np.max(core.voltage)):.2f} V",)


def reticle_text(instance: Instance) -> str:
    """That some of what the question allows of the die is larger than a reticle exposes, and so on no chip; nothing where none is."""
    free, reticle = instance.hardware, instance.budget.reticle
    if not isinstance(free, FreeHardware) or not reticle < float("inf"):
        return ""
    options, dies = dict(free.options), max(dict(free.options).get("dies", (free.dies,)))
    areas, most = options.get("die_area", ()), dies * reticle
    room = f"{f'{dies:g} x ' if dies > 1 else ''}{rounded_quantity(reticle, 'area')} that a reticle exposes: no chip has them"
    if over := [area for area in areas if area > most]:
        return f"{len(over)} of {len(areas)} options of die_area, from {rounded_quantity(min(over), 'area')} on, are larger than {room}"
    budget = instance.budget.die_area
    larger = f"the budget of {rounded_quantity(budget, 'area')} for the die allows more than {room.partition(': ')[0]}, which holds"
    return larger if most < budget < float("inf") else ""


def kernel_text(instance: Instance | None, design: ChosenDesign) -> tuple[str, ...]:
    """What a free chip draws in each of the kernels that it is rated by."""
    if instance is None or not isinstance(free := instance.hardware, FreeHardware):
        return ()
    built = generate(free.technology, split_of(free, _chosen(design.hardware.choices)))
    watts = [f"{float(np.max(built.power((busy,)))):.0f} W in {_kernel(busy)}" for busy in free.technology.sustained]
    return (f"drawn: {', '.join(watts)}",)


def _kernel(busy: Activity) -> str:
    if busy.streams:
        return "streams, with cores at the lowest clock that keeps up with the memory"
    return "large products" if busy.per_flop else "all parts as busy as they may be"


def building_of(instance: Instance, result: DesignResult) -> tuple[Built, ...]:
    """A sentence for each limit that the technology of a free chip states; nothing of a device that is given."""
    if result.answer is None or not isinstance(instance.hardware, FreeHardware):
        return ()
    design = result.answer.design
    free, chip = instance.hardware, chosen_hardware(instance, design)
    technology = free.technology
    return (
        *map(Built, kernel_text(instance, design)),
        *_clock(technology, generate(technology, _split(free, design.hardware.choices)).core),
        *_edge(free, chip, design.hardware.choices),
        *_dies(instance, technology, chip, split_of(free, _chosen(design.hardware.choices))),
        *_ports(instance, design, technology, chip, generate(technology, _split(free, design.hardware.choices)).core),
        *_tiles(technology, chip),
        *([Built(waves)] if (waves := bundles_text(instance, design)) else []),
        *([Built(f"price: {bill_text(bill)}")] if (bill := bill_of(instance, design)) else []),
    )


def _clock(technology: Technology, core: Compute) -> Iterator[Built]:
    """The clock, where the technology has a highest one."""
    clock, most = float(core.frequency), technology.core.maximum_frequency
    if most < UNLIMITED_FREQUENCY:
        faster = replace(technology, core=replace(technology.core, maximum_frequency=_EASED * most))
        text = f"clock: {clock / 1e9:.2f} GHz at {float(core.voltage):.2f} V, of {most / 1e9:.2f} GHz at the most"
        yield _built(text, clock, most, faster)


def _edge(free: FreeHardware, chip: Hardware, chosen: dict[str, Any]) -> Iterator[Built]:
    dram = free.technology.dram
    if dram.has_places:
        stacks = round(float(chip.dram.capacity) / dram.stack_capacity)
        split = _split(free, chosen)
        places = round(float(equal_per_die(places_of(dram, row_of(split)), split.dies)))
        beside = "the die" if split.dies == 1.0 else f"the row of {split.dies:g} dies, {places / split.dies:g} a die"
        lying = f"lie on {beside}" if dram.on_dies else f"lie along two sides of {beside}"
        yield _built(f"HBM stacks: {stacks}, of {places} that {lying}", stacks, places)
        if not dram.on_dies:
            yield _interposer(free.technology, split, stacks)
        yield from _wires(free, chosen, stacks)
    yield from _rate(free, chosen)
    yield from _slowed(free, chosen)


def _interposer(technology: Technology, split: Split, stacks: int) -> Built:
    """How large the box around dies and stacks is, and who makes such interposers."""
    area = float(package_area_of(technology.dram, float(stacks), row_of(split), row_of(split)))
    made = next((f"{year} made up to {rounded_quantity(most, 'area')}" for year, most in _INTERPOSERS if area <= most), "none yet so large")
    return Built(
        f"package: {rounded_quantity(area, 'area')} around dies and stacks, {area / _FIELD:.3g} fields of a scanner; CoWoS: {made}"
    )


def _rate(free: FreeHardware, chosen: Mapping[str, Any]) -> Iterator[Built]:
    """That stacks run as fast as their standard lets them, where more power for them was open."""
    dram = generate(free.technology, split_of(free, _chosen(chosen))).dram
    highest = free.technology.dram.nominal_frequency
    if "hbm_power" in chosen and float(np.max(dram.frequency)) >= highest * (1.0 - 1e-9):
        watts = float(np.max(dram.power))
        yield Built(f"HBM: {highest / 1e9:.3g} Gb/s a wire, the nominal rate: more than {watts:.0f} W for it buys nothing", full=True)


def _slowed(free: FreeHardware, chosen: Mapping[str, Any]) -> Iterator[Built]:
    """That stacks run slower than they might, as L2 lets no more through, and what a technology gives that asks less of L2."""
    made, split = free.technology, split_of(free, _chosen(chosen))
    if stacks := slowed_stacks(made, split):
        rates = "{:.3g} Gb/s a wire, of {:.3g}".format(*(float(np.max(stack.frequency)) / 1e9 for stack in stacks))
        rated = (float(np.max(stack.bandwidth)) * made.dram.utilisation for stack in stacks)
        moved, could = (rounded_quantity(amount, "bandwidth") for amount in rated)
        reason = f"L2 gives {made.dram.least_l2:g} times what stacks deliver (least_l2)"
        eased = replace(made, dram=replace(made.dram, least_l2=made.dram.least_l2 / _EASED))
        yield Built(f"HBM: {rates}, {moved} of {could}: {reason}", full=True, eased=eased)


def _wires(free: FreeHardware, chosen: dict[str, Any], stacks: int) -> Iterator[Built]:
    """What of the edge stacks and wires take together, and each of them."""
    made = free.technology
    split = _split(free, chosen)
    built = generate(made, split)
    inside, out = (float(net.links) / link.links_per_metre for net, link in ((built.intra, made.intra), (built.inter, made.inter)))
    taken, perimeter = float(built.edge), float(perimeter_of(split.die_area, split.dies))
    beside = 0.0 if made.dram.on_dies else stacks * made.dram.stack_edge
    lengths = (f"{length * 1e3:.1f} mm" for length in (taken, perimeter, beside, inside, out))
    yield _built("die edge: {}, of {}: stacks {}, links in the node {}, links out {}".format(*lengths), taken, perimeter)
    yield from (Built(text, full) for text, full in links_text(made, split, tuple(chosen)))


def _split(free: FreeHardware, chosen: dict[str, Any]) -> Split:
    return split_of(free, {name: np.float64(value) for name, value in chosen.items()})  # type: ignore[misc]


def _chosen(hardware: Mapping[str, Any]) -> dict[str, Array]:
    return {name: np.array([value], np.float64) for name, value in hardware.items()}


def _dies(instance: Instance, technology: Technology, chip: Hardware, split: Split) -> Iterator[Built]:
    """How large dies are that lie on others, how large each die is, and what the joints between several let through."""
    dies, each = round(float(chip.dies)), float(chip.die_area / chip.dies)
    if technology.upper_dies is not None:
        upper, lower = (float(np.max(area)) for area in (used_dies(technology, split.areas)[1], chip.die_area))
        taken, room = (rounded_quantity(area, "area") for area in (upper, lower))
        yield _built(f"dies of cores, registers and L1: {taken} on {room} of the others", upper, lower)
    reticle = instance.budget.reticle
    limit = f", of {rounded_quantity(reticle, 'area')} that a reticle exposes" if reticle < float("inf") else ""
    yield _built(f"{f'dies: {dies} of' if dies > 1 else 'die:'} {rounded_quantity(each, 'area')}{limit}", each, reticle)
    if dies > 1:
        let = float(through_joints(technology.die_links, chip.die_area, chip.dies)) * technology.l2.utilisation
        moved, most = (rounded_quantity(amount, "bandwidth") for amount in (float(chip.l2.bandwidth), let))
        links = replace(technology.die_links, links_per_metre=_EASED * technology.die_links.links_per_metre)
        sentence = f"links between dies: of {most} that cores take from L2 half may pass; it moves {moved}"
        yield _built(sentence, float(chip.l2.bandwidth), let, replace(technology, die_links=links))


def _ports(instance: Instance, design: ChosenDesign, technology: Technology, chip: Hardware, core: Compute) -> Iterator[Built]:
    for level, name in _NAMES.items():
        sram, memory = getattr(technology, level), getattr(chip, level)
        most = float(memory.capacity) / sram.bank_capacity * float(port_bandwidth(sram, core.frequency)) * sram.utilisation
        if sram.bank_bytes_per_cycle < UNLIMITED_PORT:
            moved, let = (rounded_quantity(amount, "bandwidth") for amount in (float(memory.bandwidth), most))
            clocked = by_clock(instance, design, memory, float(chip.bundles), chip.dram if level == "l2" else None)
            wider = replace(technology, **{level: replace(sram, bank_bytes_per_cycle=_EASED * sram.bank_bytes_per_cycle)})
            sentence = f"{name}: {moved}, of {let} that its banks let through; {clocked}"
            yield _built(sentence, float(memory.bandwidth), most, wider)
    if least := technology.core.least_fed:
        looser = replace(technology, core=replace(technology.core, least_fed=least / _EASED))
        fed = float(chip.l2.bandwidth) / (technology.l2_per_flop * float(chip.throughput))
        name = f"L2: feeds {fed:.0%} of the peak in large products, of {least:.0%} at the least"
        yield Built(name, least >= FULL * fed, looser if fed <= _EASED * least else None)  # a clock between may not be listed


def _tiles(technology: Technology, chip: Hardware) -> Iterator[Built]:
    for level in HOLDING:
        least = getattr(technology, level).least_per_bundle
        if least:
            each = float(getattr(chip, level).capacity) / float(chip.bundles)
            capacity, needed = (rounded_quantity(size, "bytes") for size in (each, least))
            yield _built(f"{_NAMES[level]}: {capacity} for each bundle of cores, whose kernels take {needed}", least, each)


def _built(text: str, used: float, most: float, eased: Technology | None = None) -> Built:
    full = used >= FULL * most
    return Built(text, full, eased if full else None)
