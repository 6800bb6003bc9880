"""Facts about a chosen chip: limits, waves, cache rates, watts, costs, published MFU, and the operators of a layer in its memories."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from math import ceil
from operator import add
from types import MappingProxyType
from typing import Final, Literal

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.context_exchange import around_attention
from crossopt.crossflow.cost import device_price, dies_per_wafer, good_share, joined_well
from crossopt.crossflow.device import Architecture, Dram
from crossopt.crossflow.dies import perimeter_of
from crossopt.crossflow.edges import head
from crossopt.crossflow.evaluate import Design, evaluate
from crossopt.crossflow.generator import Split, cores_of, generate, wires_of
from crossopt.crossflow.hardware import Cluster, Hardware, Link, Memory, Shape
from crossopt.crossflow.kernels.layer_kernels import (
    WIDE,
    adapters,
    attention_core,
    attention_core_backward,
    element_wise,
    named_projections,
)
from crossopt.crossflow.layer import both_ways_costs
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.plan import Plan, Ranks, table
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.roofline import TILES, Cost, Product, backward_costs, product_cost
from crossopt.crossflow.technology import UNLIMITED_PORT, Activity, LinkTechnology, Technology
from crossopt.crossflow.transformer import ranks
from crossopt.crossflow.voltage import UNLIMITED_FREQUENCY
from crossopt.crossflow.workload import NARROW, Transformer, feed_forward_kinds, layer_kinds
from crossopt.instances.catalogue.chips import PART_OF, split_of
from crossopt.instances.catalogue.registry import UnknownNameError, device, technology_named
from crossopt.instances.codesign.chips import clock_of, drawn_of, made_of
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.files.units import rounded_quantity
from crossopt.solvers.codesign.answer import ChosenDesign, DesignEvaluation, candidate_in, chosen_hardware, design_of, most_stacks

# What a report shows of the operators of a layer: FLOPs, bytes that cross into each memory, and seconds, for one microbatch on one device.
#
# FLOPs and bytes are those that the model charges energy for: an operator's energy on a device where a FLOP, or a byte of one memory, costs
# a joule and nothing else does. So they are counted by the formulas that price the operator, and by no others.

Level = Literal["dram", "l2", "l1", "registers"]
MEMORIES: Final[tuple[tuple[str, Level], ...]] = (("memory", "dram"), ("L2", "l2"), ("L1", "l1"), ("registers", "registers"))
"""Levels as people call them, and as the model does, outermost first."""


@dataclass(frozen=True, slots=True)
class Work:
    """One operator in one direction."""

    name: str
    backward: bool
    seconds: float
    flops: float
    moved: tuple[float, ...]
    """Bytes that cross into each of `MEMORIES`."""


@dataclass(frozen=True, slots=True)
class Roofs:
    """The operators and what bounds them."""

    works: tuple[Work, ...]
    matrix: float
    """FLOP/s of the matrix engines."""
    vector: float
    bandwidths: tuple[float, ...]
    """Bytes a second of each of `MEMORIES`."""


def roofs_of(instance: Instance, design: ChosenDesign) -> Roofs | None:
    """Those of a checked design; None for other workloads than a transformer."""
    chosen = candidate_in(instance, design)
    if not isinstance(instance.workload, Transformer) or not isinstance(chosen.plan, Plan):
        return None
    return roofs_on(instance.workload, design_of(instance, chosen).hardware, instance.cluster, chosen.plan)


def roofs_on(model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan) -> Roofs:
    """Those of a plan on a device."""
    plans = table([plan])
    group = ranks(plans, lay_out(plans, cluster))
    still = replace(hardware, links=tuple(Link(np.inf, 0.0) for _ in hardware.links))
    energies = [_energies(model, group, device) for device in (_flops(still), *_bytes(still))]
    works = tuple(
        Work(name, back, _number(cost.time), energies[0][name, back], tuple(amounts[name, back] for amounts in energies[1:]))
        for name, back, cost in _costs(model, group, still)
    )
    return Roofs(
        works=works,
        matrix=float(hardware.throughput),
        vector=float(hardware.vector_throughput),
        bandwidths=tuple(float(getattr(hardware, level).bandwidth) for _, level in MEMORIES),
    )


def _energies(model: Transformer, group: Ranks, hardware: Hardware) -> dict[tuple[str, bool], float]:
    return {(name, back): _number(cost.energy) for name, back, cost in _costs(model, group, hardware)}


def _flops(hardware: Hardware) -> Hardware:
    """A device on which a FLOP costs a joule and nothing else does."""
    silent = {level: replace(getattr(hardware, level), energy=0.0) for _, level in MEMORIES}
    return replace(hardware, energy_per_flop=1.0, **silent)


def _bytes(hardware: Hardware) -> Iterator[Hardware]:
    """Devices on which a byte into one of the memories does."""
    silent = replace(_flops(hardware), energy_per_flop=0.0)
    for _, level in MEMORIES:
        costly = replace(getattr(silent, level), energy=1.0)
        yield replace(silent, **{level: costly})


def _costs(model: Transformer, group: Ranks, hardware: Hardware) -> Iterator[tuple[str, bool, Cost]]:
    """Every operator of a layer, and the head, which is priced in both directions together. Where the first layers are dense, their own
    operators follow; where some layers have a window, their attention does. Attention is with what puts its steps together where keys and
    values come by in a ring."""
    kinds = [kind for _, kind in feed_forward_kinds(model)]
    for kind, what, only in [(kinds[-1], "", ()), *((kind, "dense ", ("inner product", "outer product")) for kind in kinds[:-1])]:
        for name, product in named_projections(kind, group):
            if not only or name in only:
                size = model.activation_bytes if name in WIDE else model.value_bytes
                forward, backward = both_ways_costs(product, model, size, hardware)
                yield what + name, False, forward
                yield what + name, True, backward
    if model.lora_rank:
        beside = adapters(kinds[-1], group)
        yield "adapters", False, reduce(add, (product_cost(product, model.activation_bytes, hardware) for product in beside))
        yield "adapters", True, reduce(add, backward_costs(beside, model.activation_bytes, hardware))
    for number, (_, kind) in enumerate(layer_kinds(kinds[-1])):
        what = "attention in a window" if number else "attention"
        for back, core in enumerate((attention_core, attention_core_backward)):
            yield what, bool(back), around_attention(core(kind, group, hardware), kind, group, hardware, bool(back))[0]
    model = kinds[-1]
    for back in (False, True):
        side = element_wise(model, group, hardware, back)
        yield "norms", back, side.norms
        yield "additions", back, side.residuals
        yield "activation", back, side.activation
        if model.experts > 1:
            yield "routing", back, side.routing
        if model.precision in NARROW:
            yield "casts", back, side.casts
    yield "head and loss", True, head(model, group, hardware)


def _number(value: object) -> float:
    return float(np.asarray(value).reshape(-1)[0])


# Facts about a chosen chip: what is at its limits, waves of multiprocessors, cache rates, watts and costs of its parts, published MFU.

# What was chosen of a chip, and what a device offers, as a person would say it.

_DIGITS: Final = 4
"""More say nothing to a reader."""
_SHAPES: Final[Mapping[Shape, str]] = MappingProxyType(
    {"switch": "switch of", "rails": "rails of", "ring": "ring of", "fully_connected": "links between all"}
)
_NONE: Final[Mapping[str, float]] = MappingProxyType({})


def hardware_text(design: ChosenDesign, needed: Mapping[str, float] = _NONE) -> list[str]:
    """The device's name, and each choice; in place of a power what its part needs of it, where that is known."""
    hardware = design.hardware
    return [hardware.name, *(choice_text(name, value, needed.get(name)) for name, value in hardware.choices.items())]


def design_text(design: ChosenDesign, needed: Mapping[str, float] = _NONE) -> str:
    """What is chosen, on one line."""
    return "; ".join([*hardware_text(design, needed)[1:], design.plan_label])


def choice_name(name: str) -> str:
    """What is chosen, without how much of it."""
    return name.replace("_", " ").replace("l1", "L1").replace("l2", "L2").replace("hbm", "HBM")


def choice_text(name: str, value: float, needed: float | None = None) -> str:
    """One choice of hardware; of a power up to how much the part may draw, and where that is not known what it is given."""
    if name in {"hbm_stacks", "dies"}:
        return f"{value:g} HBM stacks" if name == "hbm_stacks" else f"{value:g} die{'s' * (value != 1)}"
    part, _, kind = name.rpartition("_")
    name_of_part = part.replace("_", " ")
    if kind == "edge":
        return f"{name_of_part} {value:.3g} of the edge"
    if kind == "power":
        return f"{name_of_part} given {_shown(value, kind)}" if needed is None else f"{name_of_part} up to {_shown(needed, kind)}"
    return f"{name_of_part} {_shown(value, kind)}"


def chip_text(evaluation: DesignEvaluation, beside_l2: str = "", shapes: Sequence[str] = ()) -> str:
    """What one device offers, with what is known beside of its L2 and the shapes of its network."""
    offered = {resource.name: _shown(resource.value, resource.unit) for resource in evaluation.device}
    speeds = [text for name, text in offered.items() if name.startswith("link")]
    named = [f"{shape} at {speed}" for shape, speed in zip(shapes, speeds, strict=True)] if shapes else speeds
    links = f"{'network' if shapes else 'links'} {', '.join(named)}"
    memory = f"{offered['memory']} at {offered['memory bandwidth']}"
    l2 = f"L2 {offered['L2']} at {offered['L2 bandwidth']}{f' ({beside_l2})' if beside_l2 else ''}"
    return " · ".join([offered["matrix peak"], memory, l2, links])


def _shown(value: float, dimension: str) -> str:
    return rounded_quantity(value, dimension, _DIGITS)


def shapes_of(instance: Instance) -> tuple[str, ...]:
    """The shapes of a question's network in words; none where all levels are switches."""
    own = instance.hardware
    shapes = tuple(link.shape for link in own.links) if isinstance(own, Hardware) else tuple(join.shape for join in own.joins)
    return shape_text(shapes, instance.cluster.level_sizes)


def shape_text(shapes: tuple[Shape, ...], sizes: tuple[int, ...]) -> tuple[str, ...]:
    """Such as `ring of 4`, innermost first."""
    units = (outer // inner for inner, outer in pairwise((1, *sizes)))
    named = tuple(f"{_SHAPES[shape]} {count:,}" for shape, count in zip(shapes, units, strict=True))
    return () if all(shape == "switch" for shape in shapes) else named


# What of a chosen chip is at its most: limits that are full, the clock, places for stacks, the edge for links, and L2 beside its stacks.
#
# None of it is worth anything for sure: what a little more of each would buy, `explain` finds by asking again.

FULL: Final = 0.995
"""Share of a limit of the chip from which more of it could not be had; sheets call a limit full from 0.95 on."""
_SLOW: Final = 0.95
"""Of their rate: stacks above it are as good as at it."""
_LARGEST: Final = 1.0e6
_LEVELS: Final = (("node_network", "links in the node"), ("network", "links out of it"))


def binding_limits_text(instance: Instance | None, design: ChosenDesign, full: Sequence[str] = ()) -> str:
    """All that is at its most, limits first; nothing of a device that is given."""
    if instance is None or not isinstance(free := instance.hardware, FreeHardware):
        return ""
    chosen = {name: np.array([value], np.float64) for name, value in design.hardware.choices.items()}
    split = split_of(free, chosen)
    built = generate(free.technology, split)
    all_full = " and ".join([part for part in (", ".join(full[:-1]), *full[-1:]) if part])
    parts = [all_full]
    parts += [*_clock(free.technology, built), stacks_text(instance, design)]
    parts += [text for text, all_used in links_text(free.technology, split, tuple(chosen)) if all_used]
    return "; ".join([part for part in (*parts, *_slowed(free.technology, split)) if part])


def stacks_text(instance: Instance | None, design: ChosenDesign) -> str:
    """That a chip has all the stacks that lie along the largest die of its question; nothing where more might."""
    hardware = design.hardware.choices
    if instance is None or not isinstance(free := instance.hardware, FreeHardware) or "hbm_stacks" not in hardware:
        return ""
    dies, stacks = hardware.get("dies", free.dies), hardware["hbm_stacks"]
    beside = "the largest die" if dies == 1.0 else f"{dies:g} of the largest dies"
    return f"{stacks:g} HBM stacks, all that lie along two sides of {beside} there may be" if stacks >= most_stacks(instance, dies) else ""


def links_text(made: Technology, split: Split, chosen: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Of the links whose area was chosen how many there are, what share of the edge they may have, and whether that is all it holds."""
    edge = perimeter_of(split.die_area, split.dies)
    for name, name_of_links in _LEVELS:
        part = PART_OF[name]
        link: LinkTechnology = getattr(made, part)
        area, power, share = (getattr(record, part) for record in (split.areas, split.powers, split.edges))
        links, more = (float(np.max(wires_of(link, area, length, power))) for length in (share * edge, _LARGEST))
        if f"{name}_area" in chosen and links:
            all_used = links < more
            beyond = f", all that {float(np.max(share)):.0%} of the edge hold, of {more:.0f} by their area and power" if all_used else ""
            yield f"{name_of_links}: {links:.0f} wires{beyond}", all_used


def slowed_stacks(made: Technology, split: Split) -> tuple[Dram, Dram] | None:
    """The stacks as they run beside their L2 and as they might; nothing where it lets all through."""
    unslowed = replace(made, dram=replace(made.dram, least_l2=0.0))
    runs, might = (generate(technology, split).dram for technology in (made, unslowed))
    slower = made.dram.least_l2 and float(np.max(runs.bandwidth)) < float(np.max(might.bandwidth)) * (1.0 - 1e-9)
    return (runs, might) if slower else None


def _clock(made: Technology, built: Architecture) -> Iterator[str]:
    clock, most = float(np.max(built.core.frequency)), made.core.maximum_frequency
    if most < UNLIMITED_FREQUENCY and clock >= FULL * most:
        yield f"the highest clock of the technology, {most / 1e9:.2f} GHz"


def _slowed(made: Technology, split: Split) -> Iterator[str]:
    """A sentence if L2 limits the memory stacks to a low share of their rate."""
    if stacks := slowed_stacks(made, split):
        share = float(np.max(stacks[0].bandwidth)) / float(np.max(stacks[1].bandwidth))
        if share < _SLOW:
            yield f"L2, beside which stacks run at {share:.0%} of their rate"


# What one multiprocessor more or less would change, and why: tiles of a product are dealt to multiprocessors in whole waves.
#
# The design's step is priced once more with as many cores, registers and L1 as one more, or one fewer, brings with it at the same clock.
# The waves are those of tiles of 256 x 128 results, ceil(tiles / multiprocessors), of the largest product of a layer in which they differ.


def bundles_text(instance: Instance, design: ChosenDesign) -> str:
    """A sentence about the chip of a transformer's plan; nothing of a device that is given."""
    there = design_of(instance, candidate_in(instance, design))
    count = round(float(there.hardware.bundles))
    if not isinstance(instance.hardware, FreeHardware) or not isinstance(instance.workload, Transformer) or count < 2:
        return ""
    now = evaluate(instance.workload, there).step_time
    changed = [f"one {what} {_step(instance, there, by) / now - 1.0:+.2%}" for what, by in (("more", 1.0), ("fewer", -1.0))]
    return f"multiprocessors: {count}; at the same clock {', '.join(changed)} of the step{_waves(instance, there, count)}"


def _step(instance: Instance, there: Design, by: float) -> float:
    return float(evaluate(instance.workload, replace(there, hardware=_with(there.hardware, by))).step_time)


def _with(chip: Hardware, by: float) -> Hardware:
    """The chip with so many multiprocessors more, each with its cores, registers and L1."""
    share = 1.0 + by / chip.bundles
    return replace(
        chip,
        bundles=chip.bundles + by,
        throughput=chip.throughput * share,
        vector_throughput=chip.vector_throughput * share,
        registers=_times(chip.registers, share),
        l1=_times(chip.l1, share),
    )


def _times(memory: Memory, share: Real) -> Memory:
    return replace(memory, capacity=memory.capacity * share, bandwidth=memory.bandwidth * share)


def _waves(instance: Instance, there: Design, count: int) -> str:
    """How tiles fall on one fewer, so many, and one more: of the largest product whose waves differ between them."""
    if not isinstance(instance.workload, Transformer) or not isinstance(there.plan, Plan):
        return ""
    plans = table([there.plan])
    named = named_projections(instance.workload, ranks(plans, lay_out(plans, instance.cluster)))
    dealt = [(name, _tiles(product)) for name, product in sorted(named, key=lambda pair: -_chip_number(pair[1].flops))]
    near = (count - 1, count, count + 1)
    for name, tiles in dealt:
        waves = [ceil(tiles / some) for some in near]
        if len(set(waves)) > 1:
            listed = ", ".join(f"{number:,} of {some}" for number, some in zip(waves, near, strict=True))
            return f"; {tiles:,} tiles of the {name} take whole waves, {listed}"
    return "; no product takes more waves, or fewer, with either"


def _tiles(product: Product) -> int:
    rows, columns, _ = TILES[0]
    return ceil(_chip_number(product.rows) / rows) * ceil(_chip_number(product.columns) / columns) * round(_chip_number(product.count))


def _chip_number(figure: Real) -> float:
    """Of one plan."""
    return float(np.max(figure))


# How fast L1 and L2 are by a chip's own clock and beside its memory, and what an estimated L2 holds back.
#
#     bytes a clock and SM = bandwidth / clock / bundles of cores,   L2 against memory = bandwidth of L2 / bandwidth of DRAM
#
# What L2 holds back is the design's step priced once more with an L2 that nothing waits for.

_WORTH: Final = 0.01
"""Of a step: less says nothing, as the model is off by more."""
_MANY: Final = 100.0
_NO_PRODUCTS: Final = ("attention", "attention in a window", "norms", "additions", "activation", "routing", "casts", "head and loss")
_L2: Final = [level for _, level in MEMORIES].index("l2")


def beside_l2(instance: Instance, design: ChosenDesign) -> str:
    """The L2 of a design by its clock, where the chip was chosen, and beside its memory."""
    hardware = chosen_hardware(instance, design)
    return by_clock(instance, design, hardware.l2, float(hardware.bundles), hardware.dram)


def by_clock(instance: Instance, design: ChosenDesign, level: Memory, bundles: float, dram: Memory | None = None) -> str:
    """Bytes a clock and SM, a bundle of cores, where the chip was chosen; and how many times the memory's bandwidth, where it is given."""
    parts = []
    if isinstance(free := instance.hardware, FreeHardware):
        clock = clock_of(free, design.hardware.choices)
        each = float(level.bandwidth) / clock / bundles
        parts.append(f"{each:,.0f} B a clock and SM" if each >= _MANY else f"{each:.3g} B a clock and SM")
    if dram is not None:
        times = float(level.bandwidth) / float(dram.bandwidth)
        parts.append(f"{times:.3g} x memory{', which waits for it' if times < 1.0 else ''}")
        if isinstance(free, FreeHardware) and (fed := fed_share(free, level, peak_of(instance, design))):
            parts.append(f"feeds {fed:.0%} of the peak")
    return ", ".join(parts)


def fed_share(free: FreeHardware, l2: Memory, peak: float) -> float:
    """Times the peak of which L2 gives large products their operands; none where the technology does not say what these are."""
    needed = free.technology.l2_per_flop * peak
    return float(l2.bandwidth) / needed if needed else 0.0


def peak_of(instance: Instance, design: ChosenDesign) -> float:
    """FLOP/s of a design's device."""
    return float(chosen_hardware(instance, design).throughput)


def l2_limit_text(instance: Instance, design: ChosenDesign) -> str:
    """That the bandwidth of L2 is an estimate and the step waits for it, with what products get of the peak through it, and what the step
    would take if nothing waited for it; nothing where no source says that it is one, or hardly anything waits."""
    if not _estimated(instance):
        return ""
    design_there = design_of(instance, candidate_in(instance, design))
    hardware = design_there.hardware
    faster = replace(hardware, l2=replace(hardware.l2, bandwidth=UNLIMITED_PORT))
    now, then = (evaluate(instance.workload, replace(design_there, hardware=device)).step_time for device in (hardware, faster))
    if now - then < _WORTH * now:
        return ""
    moved, without = rounded_quantity(float(hardware.l2.bandwidth), "bandwidth", 4), rounded_quantity(then, "time", 4)
    share = _share_of_products(roofs_of(instance, design))
    through = f": through it products get {share:.0%} of the peak at the most" if share else ""
    return f"its {moved} are an estimate, and limit{through}; with an L2 that nothing waits for this design takes {without}"


def _share_of_products(roofs: Roofs | None) -> float:
    """What products have of the peak if they wait for L2 alone."""
    works = [] if roofs is None else [work for work in roofs.works if work.name.removeprefix("dense ") not in _NO_PRODUCTS]
    moved = sum(work.moved[_L2] for work in works)
    return 0.0 if roofs is None or not moved else sum(work.flops for work in works) / (moved / roofs.bandwidths[_L2] * roofs.matrix)


def _estimated(instance: Instance) -> bool:
    """Whether the sources of the registry call the bandwidth of this L2 an estimate; own figures have none there."""
    free = isinstance(instance.hardware, FreeHardware)
    name = instance.hardware.technology.name if isinstance(instance.hardware, FreeHardware) else instance.hardware.name
    try:
        if free:
            return technology_named(name.partition(", ")[0])[0].sources.get("l2.bank_bytes_per_cycle", "").startswith("estimate")
        entry = device(name)
    except UnknownNameError:
        return False
    sources = entry.sources if "l2" in entry.sources or not entry.like else device(entry.like).sources
    return sources.get("l2.bandwidth", "").startswith("estimate")


# What the parts of a chosen chip draw, and up to how much each of them may.
#
# *Drawn* is what a part takes in the kernels by which a board is rated, of which each kind keeps it busy in its own way; all parts together
# are what the limit on power counts. *Up to* is what a part takes with all of it at work: the least power that the design has to be given,
# and less than was chosen for it where the highest clock, the wires or the ports take no more. Not all parts are so busy at once.

Amounts = tuple[tuple[str, float], ...]
PARTS = (
    ("compute", "core"),
    ("registers", "registers"),
    ("L1", "l1"),
    ("L2", "l2"),
    ("HBM", "dram"),
    ("node network", "intra"),
    ("network", "inter"),
)
"""The parts of a chip as questions name them, and as the generator does."""
SPARE = "spare multiprocessors"
"""Those that are made beside the ones in use, so that a die with as many defect is good: of the uncore's area, and of what that leaks."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """What every part draws in one kind of kernels."""

    name: str
    watts: Amounts

    @property
    def total(self) -> float:
        return sum(watts for _, watts in self.watts)


@dataclass(frozen=True, slots=True)
class Watts:
    """Of one chip."""

    kinds: tuple[Kernels, ...]
    """Those that draw most first."""
    most: Amounts
    """Up to how much each part may draw."""
    limit: float
    """Of all parts together; infinite where nothing is said."""


def watts_of(instance: Instance | None, design: ChosenDesign) -> Watts | None:
    """Of the chip of a design; nothing of a device that is given."""
    if instance is None or not isinstance(free := instance.hardware, FreeHardware):
        return None
    chosen = {name: np.array([value], np.float64) for name, value in design.hardware.choices.items()}
    split, sustained = split_of(free, chosen), free.technology.sustained
    built = generate(free.technology, split)
    leaks = spare_leakage(split, free.technology, float(np.max(built.core.voltage)))
    kinds = [Kernels(_name(busy, alone=len(sustained) == 1), _watts_of_parts(built, free.technology, busy, leaks)) for busy in sustained]
    most = tuple((name, float(np.max(getattr(built, part).power))) for name, part in PARTS)
    return Watts(tuple(sorted(kinds, key=lambda kernels: -kernels.total)), most, instance.budget.power)


def needed_powers(instance: Instance | None, design: ChosenDesign) -> dict[str, float]:
    """Up to how many watts parts draw whose power was chosen, by the choice; nothing of a device that is given."""
    if instance is None or not isinstance(free := instance.hardware, FreeHardware):
        return {}
    return drawn_of(free, design.hardware.choices)


def _name(busy: Activity, *, alone: bool) -> str:
    return "the kernels that draw most" if alone else "streams" if busy.streams else "large products"


def _watts_of_parts(built: Architecture, technology: Technology, busy: Activity, spare: float) -> Amounts:
    """Bytes of L2 that pass from die to die are counted with the links that they take, beside what they take in their banks."""
    watts_of_parts = {name: float(np.max(built.drawn(part, busy))) for name, part in PARTS}
    passing = float(np.max(built.moved("l2", busy))) * _between(built, technology)
    uncore, links = (float(np.max(watts)) for watts in (built.beside(busy), built.joints(busy)))
    parts = (*(watts_of_parts | {"L2": watts_of_parts["L2"] - passing}).items(),)
    return (*parts, ("uncore", uncore - spare), (SPARE, spare), ("links between dies", links + passing))


def _between(built: Architecture, technology: Technology) -> float:
    """Of what a bit of L2 takes the share that it takes between dies."""
    between = float(np.max(built.crossings)) * technology.die_links.energy_per_bit
    return between / (technology.l2.energy_per_bit + between)


def spare_area(split: Split, technology: Technology) -> float:
    """Square metres of the multiprocessors that are made and not used, whole ones, with their registers and L1; none where these have dies
    of their own above."""
    core = technology.core
    used = float(np.max(cores_of(core, split.areas.core, split.dies))) // core.cores_per_bundle
    if technology.upper_dies is not None or not used:
        return 0.0
    bundled = split.areas.core + split.areas.registers + split.areas.l1
    return technology.uncore.spare_bundles * used // 1.0 / used * float(np.max(bundled))


def spare_leakage(split: Split, technology: Technology, voltage: float) -> float:
    """Watts that they leak, of what the uncore does by its area."""
    core = technology.core
    return spare_area(split, technology) * core.leakage_per_area * (voltage / core.nominal_voltage)


# What a device costs, part by part, where its price follows from a wafer: the bill that a cost of a step is written off from.


@dataclass(frozen=True, slots=True)
class DeviceBill:
    """Dollars of one device."""

    parts: tuple[tuple[str, float], ...]
    """By name, none of them zero; they add up to the total."""
    total: float
    good: float
    """Share of the dies on a wafer."""
    dies: float
    """On a wafer."""


def bill_of(instance: Instance, design: ChosenDesign) -> DeviceBill | None:
    """The bill of a chip that was chosen; none where the question asks for no cost, or gives the price of the whole device."""
    prices, free = instance.prices, instance.hardware
    if prices is None or prices.wafer is None or prices.device is not None or not isinstance(free, FreeHardware):
        return None
    split = split_of(free, {name: np.array([value], np.float64) for name, value in design.hardware.choices.items()})
    made = made_of(free, split, split, generate(free.technology, split).dram.stacks)
    good, dies = float(np.max(good_share(prices, made))), float(np.max(dies_per_wafer(made.die_area / made.dies, prices.wafer_diameter)))
    stacks, wires, several = (float(np.max(count)) for count in (made.stacks, made.wires, made.dies))
    joined = (
        ("dies" if several > 1 else "die", several * prices.wafer / (dies * good)),
        ("HBM stacks", stacks * prices.stack),
        ("interposer", float(np.max(made.package_area)) * prices.interposer),
    )
    lost = sum(value for _, value in joined) * (1.0 / float(np.max(joined_well(prices, made))) - 1.0)
    beside = (("lost when joined", lost), ("package and host", prices.package), ("ports", wires * prices.lane))
    total = float(np.max(device_price(prices, made)))
    return DeviceBill(tuple(item for item in (*joined, *beside) if item[1]), total, good, dies)


def bill_text(bill: DeviceBill) -> str:
    """All of it in a sentence."""
    listed = ", ".join(f"{name} {value:,.0f}" for name, value in bill.parts)
    return f"{bill.total:,.0f} USD a device ({listed}); {yield_text(bill)}"


def yield_text(bill: DeviceBill) -> str:
    """What of a wafer is good."""
    return f"{bill.good:.0%} of {bill.dies:.0f} dies on a wafer are good"


# The largest shares of the peak that were published for a class of devices in 16 bits, by their number: what an answer above should be
# read with.
#
# A100    68.0 %   on up to 128     Llama 2 7B, foundation-model-stack/fms-fsdp
#         65.3 %   on up to 256     GPT 175B with attention and feed-forward parts side by side and windows, MegaScale (Jiang et al. 2024,
#                                   arXiv 2402.15627, tables 2 and 3), whose Megatron-LM has 53.0 % there
#         56.3 %   on more          GPT 1T on 512, Korthikanti et al. 2022 (arXiv 2205.05198), table 5
# H100    62.5 %   on up to 128     Llama 3.1 8B on 8, NVIDIA DGX Cloud benchmarking recipes, April 2025
#         55.5 %   on more          Llama 3.1 405B on 512, the same
# GB200   47.6 %   on any           Grok-1 on 512, the same of May 2025

_RECIPES: Final = "NVIDIA DGX Cloud benchmarking recipes, 2025"
SHARES: Final = {
    "A100": (
        (128, 0.680, "Llama 2 7B, IBM fms-fsdp"),
        (256, 0.653, "GPT 175B with parallel blocks and windows, MegaScale, Jiang et al. 2024, Tables 2 and 3"),
        (10**9, 0.563, "GPT 1T, Korthikanti et al. 2022, Table 5"),
    ),
    "H100": ((128, 0.625, f"Llama 3.1 8B, {_RECIPES}"), (10**9, 0.555, f"Llama 3.1 405B, {_RECIPES}")),
    "GB200": ((10**9, 0.476, f"Grok-1, {_RECIPES}"),),
}
"""Up to so many devices of a class the largest share, and whose."""
_CLASSES: Final = {"a100-40g": "A100", "a100-80g": "A100", "h100-sxm": "H100", "h200": "H100", "b200": "GB200", "gb200-nvl72": "GB200"}
_WIDE: Final = ("bf16", "fp16")


def published(devices: int, of: str = "A100") -> tuple[float, str]:
    """The largest share for so many devices of a class, and whose it is."""
    return next((share, source) for most, share, source in SHARES[of] if devices <= most)


def exceeded(instance: Instance, utilisation: float) -> tuple[float, str, str] | None:
    """The largest share published for as many devices of a class, whose it is, and the class, where an answer in 16 bits claims more."""
    own = instance.hardware
    device = own.like if isinstance(own, FreeHardware) else own.name
    if device not in _CLASSES or instance.workload.precision not in _WIDE:
        return None
    share, source = published(instance.cluster.devices, _CLASSES[device])
    return (share, source, _CLASSES[device]) if utilisation > share else None


def above_text(instance: Instance, utilisation: float) -> str:
    """That an answer claims more than was ever published; nothing where it does not."""
    if (best := exceeded(instance, utilisation)) is None:
        return ""
    share, source, kind = best
    return f"MFU {utilisation:.1%} exceeds the best published for as many {kind}, {share:.1%} ({source})"
