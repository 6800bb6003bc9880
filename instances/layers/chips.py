"""Chips of a technology for a question about formats and splits: a grid of their parts, and figures of all operators on all of them.

A chip is a point of the grid: areas and watts of its cores, areas of L2 and links, stacks of memory; what is not named is as in the
technology's usual chip. Each format that needs circuits of its own (`format_area`) is built into the cores or left out, so that chips with
and without it are compared. Chips that cannot be built, or break a limit of area or power, are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf, prod
from typing import Any

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.crossflow.device import device_from
from crossopt.crossflow.generator import Split as AreaSplit
from crossopt.crossflow.generator import generate
from crossopt.crossflow.hardware import Efficiency, Hardware, Memory, is_within, take
from crossopt.crossflow.operator_costs import Columns, columns_of, graph_costs
from crossopt.crossflow.operator_graph import Node
from crossopt.crossflow.operator_splits import Split
from crossopt.crossflow.roofline import NOTHING
from crossopt.crossflow.technology import Technology, at_precision
from crossopt.instances.catalogue.chips import TechnologyChip, placed, split_of
from crossopt.instances.catalogue.entries import TechnologyEntry
from crossopt.instances.catalogue.formats import BITS, Device, Format
from crossopt.instances.catalogue.registry import constants_of, setups_of, technology_named
from crossopt.instances.catalogue.technologies import build_technology, edges_of, usual_areas
from crossopt.instances.layers.network import GraphRequest, Pricing, format_problem, has_operands, is_view, narrow_saving, offered_formats
from crossopt.instances.layers.problem import Figures
from crossopt.instances.layers.splits import Parallel, SplitPricing, SplitProblem, split_problem

Options = tuple[tuple[str, tuple[float, ...]], ...]
_LINKS = ("node_network", "network")
"""Links of a chip, by their names in files."""


@dataclass(frozen=True, slots=True)
class ChipGrid:
    """What may be chosen of a chip, and its limits in square metres and watts."""

    technology: str
    options: Options
    die_area: float | None
    package_area: float | None
    power: float | None
    rates: Mapping[str, float]
    """FLOP/s of formats over that of 16 bits, beside or in place of the technology's."""
    format_area: Mapping[str, float]
    """Share by which cores grow that compute in a format."""


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Chips that compute in the same formats."""

    formats: dict[str, Hardware]
    """Arrays over the chips."""
    points: Ints
    """Places of the chips in the grid."""


@dataclass(frozen=True, slots=True, eq=False)
class Chips:
    """All chips of a question, numbered through its families."""

    grid: ChipGrid
    families: tuple[Family, ...]
    request: GraphRequest
    """The network; its device is that of the first chip."""
    objective: str
    budgets: Figures
    parallel: Parallel | None = None
    """Devices over which operators are split, all of the same chip."""

    def __len__(self) -> int:
        return sum(len(family.points) for family in self.families)

    def find(self, chip: int) -> tuple[Family, int]:
        """The family of a chip and its row there; a ValueError where there is none of this number."""
        row = chip
        for family in self.families if chip >= 0 else ():
            if row < len(family.points):
                return family, row
            row -= len(family.points)
        raise ValueError(f"there is no chip number {chip:,} (chips are numbered from 0 to {len(self) - 1:,})")

    def asked(self, chip: int) -> SplitProblem:
        """The question about formats and splits on one chip, with rules to compare with."""
        family, row = self.find(chip)
        found = {dtype: take(hardware, row) for dtype, hardware in family.formats.items()}
        request = replace(self.request, device=replace(self.request.device, formats=found))
        if self.parallel is None:
            return SplitProblem(format_problem(request, self.objective, self.budgets), {}, ())
        return split_problem(request, self.parallel, self.objective, self.budgets)

    def described(self, chip: int) -> dict[str, float]:
        """What is chosen of a chip, and its area, power, peak and bandwidth."""
        family, row = self.find(chip)
        indices = np.unravel_index(int(family.points[row]), [len(values) for _, values in self.grid.options])
        made = take(family.formats[self.request.device.base], row)
        found = {name: float(values[int(index)]) for (name, values), index in zip(self.grid.options, indices, strict=True)}
        chosen = {dtype: float(dtype in family.formats) for dtype in self.grid.format_area}
        return (
            found
            | {f"computes_{dtype}": here for dtype, here in chosen.items()}
            | {
                "die_area": float(made.die_area),
                "power": float(made.power),
                "throughput": float(made.throughput),
                "bandwidth": float(made.dram.bandwidth),
            }
            | {f"{name}_bandwidth": float(link.bandwidth) for name, link in zip(_LINKS, made.links, strict=False)}
        )


def chips_of(
    grid: ChipGrid, request: GraphRequest, objective: str, budgets: Figures, formats: Sequence[Format], parallel: Parallel | None = None
) -> Chips:
    """All chips of a grid; a ValueError in words where the technology lacks a format, or no chip is within the limits."""
    entry, node = technology_named(grid.technology)
    base = request.device.base
    rates = {"bf16": 1.0, "fp16": 1.0, **entry.core.rates, **grid.rates}
    for dtype in dict.fromkeys((base, *formats)):
        if dtype not in rates:
            has = ", ".join(rates)
            raise ValueError(
                f"{grid.technology} does not compute in {dtype} (it has {has}; state its rate over 16 bits: `rates: {{{dtype}: 2}}`)"
            )
    plain, (efficiency, _) = build_technology(entry, grid.technology, node), constants_of(entry, grid.technology, None)
    points = np.arange(prod(len(values) for _, values in grid.options))
    fixed = [dtype for dtype in dict.fromkeys((base, *formats)) if dtype == base or dtype not in grid.format_area]
    optional = [dtype for dtype in formats if dtype != base and dtype in grid.format_area]
    families = list[Family]()
    for built in (subset for count in range(len(optional) + 1) for subset in combinations(optional, count)):
        grown = 1.0 + sum(grid.format_area[dtype] for dtype in (base, *built) if dtype in grid.format_area)
        technology = replace(plain, core=replace(plain.core, area=plain.core.area * grown))
        own: dict[str, float] = {dtype: rates[dtype] for dtype in (*fixed, *built)}
        families.append(_family(grid, entry, technology, efficiency, own, points, len(parallel.levels) if parallel else 0))
    families = [family for family in families if len(family.points)]
    if not families:
        raise ValueError("no chip of the grid can be built within the limits of area and power (allow more, or smaller parts)")
    first = Device(grid.technology, base, {dtype: take(hardware, 0) for dtype, hardware in families[-1].formats.items()}, tuple(rates))
    return Chips(grid, tuple(families), replace(request, device=first), objective, budgets, parallel)


def _family(
    grid: ChipGrid,
    entry: TechnologyEntry,
    technology: Technology,
    efficiency: Efficiency,
    rates: Mapping[str, float],
    points: Ints,
    levels: int,
) -> Family:
    """The chips of all points whose cores compute in these formats, with links of so many levels of a network."""
    split = entry.split
    usual = TechnologyChip(
        technology,
        split.die_area,
        split.package_area,
        split.power,
        float(split.dies),
        usual_areas(entry, technology),
        split.powers,
        edges_of(split),
    )
    indices = np.unravel_index(points, [len(values) for _, values in grid.options])
    chosen = {name: np.array(values, np.float64)[index] for (name, values), index in zip(grid.options, indices, strict=True)}
    found = dict[str, Hardware]()
    for dtype, rate in rates.items():
        made = replace(usual, technology=at_precision(technology, rate, BITS[dtype] / 8.0))
        device = _devices(made, split_of(made, chosen), chosen, efficiency, len(points), entry.reserved_memory)
        joined = zip(device.links[:levels], setups_of(entry, None), strict=False)
        links = tuple(replace(link, setup=setup, bandwidth=_full(link.bandwidth, len(points))) for link, setup in joined)
        found[dtype] = replace(device, links=links)
    limits = {
        "die_area": split.die_area if grid.die_area is None else grid.die_area,
        "package_area": split.package_area if grid.package_area is None else grid.package_area,
        "power": split.power if grid.power is None else grid.power,
        "power_density": inf if entry.power_density is None else entry.power_density,
    }
    within = np.ones(len(points), bool)
    for hardware in found.values():
        within &= _is_built(hardware)
        for name, limit in limits.items():
            within &= is_within(getattr(hardware, name), limit)
        within &= is_within(hardware.one_die, inf if entry.reticle is None else entry.reticle)
    rows = np.flatnonzero(within)
    return Family({dtype: take(hardware, rows) for dtype, hardware in found.items()}, points[rows])


def _devices(
    usual: TechnologyChip, split: AreaSplit, chosen: Mapping[str, Array], efficiency: Efficiency, count: int, reserved: float
) -> Hardware:
    """The devices of a split, every figure of which is an array."""
    technology = usual.technology
    built = generate(technology, split)
    device = device_from(technology, built, 2.0, efficiency)
    room = placed(technology, split, split, built, chosen.get("hbm_stacks", built.dram.stacks))
    device = replace(
        device,
        dram=replace(device.dram, capacity=device.dram.capacity * room),
        die_area=split.die_area,
        dies=split.dies,
        power_density=built.die_power(technology.sustained) / split.die_area,
        reserved_memory=reserved,
    )
    names = ("throughput", "vector_throughput", "bundles", "energy_per_flop", "idle_power", "running_power", "power", "die_area")
    own: dict[str, Any] = {name: _full(getattr(device, name), count) for name in (*names, "package_area", "power_density", "dies")}
    own |= {name: _full_memory(getattr(device, name), count) for name in ("dram", "l2", "l1", "registers")}
    return replace(device, headroom=0.0, **own)


def _full_memory(level: Memory, count: int) -> Memory:
    return Memory(_full(level.capacity, count), _full(level.bandwidth, count), _full(level.energy, count))


def _full(value: object, count: int) -> Array:
    return np.array(np.broadcast_to(np.asarray(value, np.float64), count))


def _is_built(hardware: Hardware) -> Mask:
    """Chips with cores, all memories, and the links that they need."""
    memories = (hardware.dram, hardware.l2, hardware.l1, hardware.registers)
    needed = [hardware.throughput, hardware.bundles, *(part for memory in memories for part in (memory.capacity, memory.bandwidth))]
    needed += [link.bandwidth for link in hardware.links]
    return np.asarray(np.all([np.greater(value, 0.0) for value in needed], axis=0))


# Bounds of all chips at once.

_NETWORKS, _STEPS = 64, 8
"""Networks that are priced one by one, and steps of bandwidth in a factor of two where there are more."""
_WHOLE = Split("whole", 1)
"""The split of a question without splits."""
_SAFE = 1e-9
"""Share by which sums of floats are taken off, far above their rounding."""


def screened(chips: Chips, prices: Figures) -> Array:
    """For each chip a bound of the objective within the budgets, in SI units: every operator takes its cheapest format at prices of the
    budgets, and nothing is converted. Infinite where a budget alone is below what all operators need."""
    return np.concatenate([_screened(chips, family, prices) for family in chips.families])


def in_base(chips: Chips) -> Array:
    """The objective on each chip with every operator in the base format, split by the batch where it can be, and nothing between operators;
    infinity where it is neither time nor energy."""
    base = chips.request.device.base
    if chips.objective not in ("time", "energy"):
        return np.full(len(chips), inf)
    found = list[Array]()
    for family in chips.families:
        own = dict[str, Array]()
        for figures in _ways(chips, replace(family, formats={base: family.formats[base]})):
            for node in figures.nodes if figures.split.kind in ("whole", "batch") else ():
                own[node.name] = np.asarray(figures.of(node, base)[chips.objective])
        found.append(sum(own.values(), np.zeros(len(family.points))))
    return np.concatenate(found)


def _screened(chips: Chips, family: Family, prices: Figures) -> Array:
    count, names = len(family.points), tuple(chips.budgets)
    rows = {node.name: row for row, node in enumerate(node for node in chips.request.graph.nodes if not is_view(node))}
    cheapest = np.full((len(rows), 1 + len(names), count), inf)
    """Of each operator: objective and prices together, and each budget's figure alone."""
    for figures in _ways(chips, family):
        for node in figures.nodes:
            for dtype in figures.offered[node.name]:
                own = figures.of(node, dtype)
                weighed = sum((own[name] * prices.get(name, 0.0) for name in names), own[chips.objective])
                for column, value in enumerate((weighed, *(own[name] for name in names))):
                    np.minimum(cheapest[rows[node.name], column], value, out=cheapest[rows[node.name], column])
    total, least = np.zeros(count), np.zeros((len(names), count))
    for row in cheapest:
        total, least = total + row[0], least + row[1:]
    credit = sum(prices.get(name, 0.0) * limit for name, limit in chips.budgets.items())
    bounds = total - credit - _SAFE * (total + credit)
    bounds = np.where(np.isfinite(bounds), np.maximum(bounds, 0.0), 0.0)  # of prices that are beyond any number nothing follows
    for name, found in zip(names, least, strict=True):
        bounds = np.where(found * (1.0 - _SAFE) > chips.budgets[name], inf, bounds)
    return bounds


Tables = dict[tuple[str, str], Array]
"""Seconds or joules of all operators on all chips, by figure and format."""


def _ways(chips: Chips, family: Family) -> "Iterator[_Figures]":
    """Figures of operators on all chips of a family, split after split, whole operators first."""
    device = replace(chips.request.device, formats={dtype: take(hardware, 0) for dtype, hardware in family.formats.items()})
    request = replace(chips.request, device=device)
    columns, nodes = columns_of(request.graph), tuple(node for node in request.graph.nodes if not is_view(node))
    if chips.parallel is None:
        pricing = Pricing(request)
        yield _Figures(pricing, family, _tables(request, columns, family), nodes, offered_formats(request, pricing))
        return
    split_pricing = SplitPricing(request, chips.parallel)
    classes, number = _networks(split_pricing, family)
    offered = offered_formats(request, split_pricing.plain)
    for split in split_pricing.every_split:
        tables = _tables(request, split_pricing.shared(split), family)
        own = tuple(node for node in nodes if split in split_pricing.splits[node.name])
        yield _Figures(split_pricing.plain, family, tables, own, offered, split, classes, number)


@dataclass(frozen=True, slots=True, eq=False)
class _Figures:
    """Figures of operators on all chips of a family, in one split."""

    pricing: Pricing
    family: Family
    tables: Tables
    nodes: tuple[Node, ...]
    """Operators that have the split."""
    offered: Mapping[str, Sequence[str]]
    """Formats of each operator."""
    split: Split = _WHOLE
    networks: tuple[SplitPricing, ...] = ()
    """Prices of what is sent, by number of the network; none where nothing is split."""
    network_of: Ints | None = None
    """The number of each chip's network."""

    def of(self, node: Node, dtype: str) -> dict[str, Array | float]:
        """Figures of an operator in a format: of time and energy arrays over the chips."""
        base, operands, row = self.pricing.base, has_operands(node), self.pricing.rows[node.name]
        first = self.networks[0] if self.networks else None
        share = 1.0 if first is None else first.graph.output(node, self.split).share(first.devices)
        found: dict[str, Array | float] = dict(
            self.pricing.figures(node, dtype) if first is None else first.stored(node, dtype, self.split)
        )
        plain = operands or dtype == base
        less = NOTHING if plain else narrow_saving(self.pricing.request, node, dtype, self.family.formats[base], share)
        for place, (figure, saved) in enumerate((("time", less.time), ("energy", less.energy))):
            own = np.maximum(self.tables[figure, dtype if operands else base][row] - saved, 0.0)
            if first is not None and self.network_of is not None:
                sent = np.array([network.sent(node, self.split)[place] for network in self.networks])[self.network_of]
                own = (own if figure == "time" else own * first.devices) + sent
            found[figure] = own
        return found


def _networks(pricing: SplitPricing, family: Family) -> tuple[tuple[SplitPricing, ...], Ints]:
    """Prices of what is sent for each network that chips have, and the number of each chip's network. Of very many networks those that are
    nearly alike are one, of the highest bandwidth."""
    links = family.formats[pricing.base].links
    bandwidths = np.stack([np.asarray(link.bandwidth, np.float64) for link in links], axis=-1)
    if len(np.unique(bandwidths, axis=0)) > _NETWORKS:
        bandwidths = np.maximum(np.exp2(np.ceil(np.log2(bandwidths) * _STEPS) / _STEPS), bandwidths)
    unique, number = np.unique(bandwidths, axis=0, return_inverse=True)
    made = (tuple(replace(link, bandwidth=float(own)) for link, own in zip(links, row, strict=True)) for row in unique)
    return tuple(pricing.with_links(row) for row in made), np.asarray(number).reshape(-1)


def _tables(request: GraphRequest, columns: Columns, family: Family) -> Tables:
    shape, found = (len(request.graph.nodes), len(family.points)), Tables()
    for dtype, hardware in family.formats.items():
        costs = graph_costs(columns, BITS[dtype] / 8.0, hardware)
        for figure in ("time", "energy"):
            forward, backward = (np.broadcast_to(getattr(side, figure), shape) for side in (costs.forward, costs.backward))
            found[figure, dtype] = forward + backward if request.training else forward
    return found
