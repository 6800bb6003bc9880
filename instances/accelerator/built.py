"""Chips of a technology for questions about graphs: a grid of their parts, as devices of the roofline, within limits of area and power.

What is not chosen is that of the technology's usual chip. Operators of a layer run one after another on the whole chip, in bf16.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from math import inf, prod
from typing import Annotated, Any

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.crossflow.device import device_from
from crossopt.crossflow.envelope import envelope
from crossopt.crossflow.fields import Area, AreaChoice, CountChoice, Doc, NonZero, Power, PowerChoice
from crossopt.crossflow.hardware import Efficiency, Hardware, is_within, take
from crossopt.crossflow.operator_costs import Columns, columns_of, graph_costs
from crossopt.crossflow.operator_graph import values_in
from crossopt.instances.accelerator.networks import Network
from crossopt.instances.catalogue.chips import TechnologyChip, placed, split_of
from crossopt.instances.catalogue.entries import TechnologyEntry
from crossopt.instances.catalogue.registry import constants_of, technology_named
from crossopt.instances.catalogue.technologies import build_technology, edges_of, usual_areas

MOST_POINTS, MOST_SAMPLE = 10**15, 4_000
_VALUE_BYTES = 2.0


@dataclass(frozen=True, slots=True)
class TechnologySection:
    """Chips of a technology: options of their parts, and limits."""

    name: Annotated[str, Doc("a technology of `crossopt list technologies`")]
    compute_area: Annotated[AreaChoice, Doc("of the cores")] = ()
    compute_power: Annotated[PowerChoice, Doc("of the cores")] = ()
    registers_area: Annotated[AreaChoice, Doc("of registers")] = ()
    l1_area: Annotated[AreaChoice, Doc("of L1 memories")] = ()
    l2_area: Annotated[AreaChoice, Doc("of L2")] = ()
    l2_power: Annotated[PowerChoice, Doc("of L2")] = ()
    hbm_stacks: Annotated[CountChoice, Doc("stacks of memory")] = ()
    hbm_power: Annotated[PowerChoice, Doc("of the stacks")] = ()
    die_area: Annotated[Area | None, NonZero(), Doc("greatest area of the die; default: the usual chip's")] = None
    package_area: Annotated[Area | None, NonZero(), Doc("greatest area of the package; default: the usual chip's")] = None
    power: Annotated[Power | None, NonZero(), Doc("greatest power; default: the usual chip's")] = None

    def options(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        """Choices by name, those that are made."""
        names = ("compute_area", "compute_power", "registers_area", "l1_area", "l2_area", "l2_power", "hbm_stacks", "hbm_power")
        return tuple((name, tuple(float(item) for item in getattr(self, name))) for name in names if getattr(self, name))


@dataclass(frozen=True, slots=True)
class Rated:
    """The best chips of boxes of a grid: more of anything, of less area and power, than each chip of its box; a chip is its own box."""

    hardware: Hardware
    fits: Mask
    """Whether some chip of the box may be within the limits."""

    @property
    def memory(self) -> Array:
        """Bytes of each chip for a network."""
        return np.asarray(np.maximum(self.hardware.dram.capacity - self.hardware.reserved_memory, 0.0))

    def at(self, rows: Ints) -> "Rated":
        """Some of them."""
        return Rated(take(self.hardware, rows), self.fits[rows])

    def seconds(self, network: Network, tensor: int = 1, bandwidth: float = inf) -> Array:
        """Seconds of all kinds of layers in both passes: kinds x 2 x chips.

        Tensor parallelism shares the columns of products and the values of other operators. Outputs are gathered, and on the way back the
        gradients of the inputs of products are summed and scattered. Layers of transformers sum outputs in place of both, in each pass.
        """
        columns, members, moved = _priced(network, tensor)
        costs, shape = graph_costs(columns, _VALUE_BYTES, self.hardware), (len(columns.types), len(self.fits))
        sides = [np.broadcast_to(side.time, shape) for side in (costs.forward, costs.backward)]
        found = np.array([[side[list(rows)].sum(axis=0) for side in sides] for rows in members])
        return np.asarray(found + ((tensor - 1) / tensor * moved / bandwidth)[:, :, None])


@lru_cache(maxsize=64)
def _priced(network: Network, tensor: int) -> tuple[Columns, tuple[tuple[int, ...], ...], Array]:
    """Columns of the nodes of all kinds of layers, rows of each kind, and bytes that tensor parallelism moves in both passes."""
    graph = network.imported
    if graph is None:
        raise ValueError("chips of a technology price imported graphs only")
    nodes = [node for members in network.nodes for node in members]
    starts = accumulate((len(members) for members in network.nodes), initial=0)
    rows = tuple(tuple(range(start, start + len(members))) for start, members in zip(starts, network.nodes, strict=False))
    if network.reduced:
        moved = np.array([[2.0 * size, 2.0 * size] for size in network.reduced])
    else:
        moved = np.array([[_gathered(network, kind), _scattered(network, members)] for kind, members in enumerate(network.nodes)])
    return _shared(columns_of(graph).at(nodes), tensor), rows, moved


def _shared(columns: Columns, tensor: int) -> Columns:
    """What a device of a stage does of each node."""
    if tensor == 1:
        return columns
    product, narrow = columns.product, columns.of("attention") | (np.asarray(columns.product.count) > 1.0)
    own = replace(
        product,
        columns=np.where(narrow, product.columns, np.ceil(product.columns / tensor)),
        count=np.where(narrow, np.ceil(product.count / tensor), product.count),
    )
    whole = columns.has_product & ~narrow
    return replace(
        columns,
        inputs=np.where(whole, columns.inputs, columns.inputs / tensor),
        outputs=columns.outputs / tensor,
        weights=columns.weights / tensor,
        kept=columns.kept / tensor,
        product=own,
    )


def _gathered(network: Network, kind: int) -> float:
    """Bytes that leave a layer."""
    return network.kinds[kind].output


def _scattered(network: Network, members: Sequence[int]) -> float:
    """Bytes of the gradients that leave a layer on the way back, where it has a product and they do."""
    graph = network.imported
    if graph is None:
        return 0.0
    node = graph.nodes[members[0]]
    inner = node.product is not None and not set(graph.inputs).issuperset(node.inputs)
    return _VALUE_BYTES * values_in(node.inputs, graph.tensors) if inner else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class BuiltChips:
    """Chips of a grid; a box of them is a row of lowest and one of highest places in ascending options."""

    options: tuple[tuple[str, tuple[float, ...]], ...]
    section: TechnologySection
    entry: TechnologyEntry
    usual: TechnologyChip
    efficiency: Efficiency

    def __len__(self) -> int:
        return prod(self.sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of options."""
        return tuple(len(values) for _, values in self.options)

    def chosen(self, places: Sequence[int]) -> dict[str, float]:
        """What is chosen of a chip."""
        return {name: values[int(index)] for (name, values), index in zip(self.options, places, strict=True)}

    def find(self, chosen: Mapping[str, float]) -> Rated:
        """The chip with these choices; a ValueError where there is none within the limits."""
        try:
            places = np.array([[values.index(chosen[name]) for name, values in self.options]], np.int64)
        except (KeyError, ValueError):
            places = np.zeros((0, 0), np.int64)
        if len(places) and len(chosen) == len(self.options) and (found := self.rated(places, places)).fits[0]:
            return found
        raise ValueError("the chip is none of the question, or breaks its limits")

    def every(self, most: int = MOST_SAMPLE) -> Ints:
        """Places of all chips, or of a coarser grid of no more than so many."""
        steps = [np.arange(size) for size in self.sizes]
        while prod(map(len, steps)) > most:
            longest = max(range(len(steps)), key=lambda row: len(steps[row]))
            steps[longest] = steps[longest][::2]
        return np.stack([column.ravel() for column in np.meshgrid(*steps, indexing="ij")], axis=1) if steps else np.zeros((1, 0), np.int64)

    def rated(self, low: Ints, high: Ints) -> Rated:
        """The best chips of boxes."""
        technology = self.usual.technology
        values = [np.array(values, np.float64) for _, values in self.options]
        ends = [{name: column[row] for (name, _), column, row in zip(self.options, values, side.T, strict=True)} for side in (low, high)]
        least, most = (split_of(self.usual, end) for end in ends)
        best = envelope(technology, least, most)
        device = device_from(technology, best.best, _VALUE_BYTES, self.efficiency)
        room = placed(technology, least, most, best.best, ends[0].get("hbm_stacks", best.least_stacks))
        device = replace(
            device,
            dram=replace(device.dram, capacity=device.dram.capacity * room),
            die_area=least.die_area,
            dies=least.dies,
            power_density=best.best.die_power(technology.sustained) / most.die_area,
            reserved_memory=self.entry.reserved_memory,
            open_bundles=best.open_bundles,
        )
        hardware = _as_arrays(device, len(low))
        return Rated(hardware, _within(self.section, self.entry, hardware))


def built_chips(section: TechnologySection) -> BuiltChips:
    """The chips of a grid; a ValueError in words where none is within the limits."""
    entry, node = technology_named(section.name)
    technology, (efficiency, _) = build_technology(entry, section.name, node), constants_of(entry, section.name, None)
    options = tuple((name, tuple(sorted(values))) for name, values in section.options())
    if prod(len(values) for _, values in options) > MOST_POINTS:
        raise ValueError(f"there are more than {MOST_POINTS:.0e} chips (give fewer options)")
    own = entry.split
    usual = TechnologyChip(
        technology, own.die_area, own.package_area, own.power, float(own.dies), usual_areas(entry, technology), own.powers, edges_of(own)
    )
    built = BuiltChips(options, section, entry, usual, efficiency)
    places = built.every()
    if len(places) == len(built) and not built.rated(places, places).fits.any():
        raise ValueError("no chip of the technology can be built within the limits of area and power (allow more, or smaller parts)")
    return built


def _as_arrays(device: Hardware, count: int) -> Hardware:
    """The device with every figure that chips differ in as an array."""
    levels = {
        name: replace(level, **{part: _full(getattr(level, part), count) for part in ("capacity", "bandwidth", "energy")})
        for name in ("dram", "l2", "l1", "registers")
        for level in (getattr(device, name),)
    }
    names = (
        "throughput",
        "vector_throughput",
        "bundles",
        "energy_per_flop",
        "idle_power",
        "running_power",
        "power",
        "die_area",
        "open_bundles",
    )
    own: dict[str, Any] = {name: _full(getattr(device, name), count) for name in (*names, "package_area", "power_density", "dies")}
    return replace(device, links=(), headroom=0.0, **levels, **own)


def _full(value: object, count: int) -> Array:
    return np.array(np.broadcast_to(np.asarray(value, np.float64), count))


def _within(section: TechnologySection, entry: TechnologyEntry, hardware: Hardware) -> Mask:
    """Chips with cores and memories, within all limits."""
    memories, own = (hardware.dram, hardware.l2, hardware.l1, hardware.registers), entry.split
    needed = [hardware.throughput, hardware.bundles, *(part for memory in memories for part in (memory.capacity, memory.bandwidth))]
    found = np.asarray(np.all([np.greater(value, 0.0) for value in needed], axis=0))
    limits = {name: getattr(section, name) or getattr(own, name) for name in ("die_area", "package_area", "power")}
    limits["power_density"] = inf if entry.power_density is None else entry.power_density
    for name, limit in limits.items():
        found &= is_within(getattr(hardware, name), limit)
    return np.asarray(found & is_within(hardware.one_die, inf if entry.reticle is None else entry.reticle))
