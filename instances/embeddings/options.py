"""What may be done with each table: sharding, kernel, pieces and cache, with milliseconds and bytes of a shard on each device."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import ceil, fsum
from typing import Final, Literal

from crossopt.crossflow import embeddings
from crossopt.crossflow.records import dataclass
from crossopt.instances.embeddings.tables import Table, cache_statistics

Spread = Literal["device", "neighbours", "node", "all"]
SPREADS: Final[dict[embeddings.Sharding, Spread]] = {
    "table": "device",
    "column": "device",
    "table-column": "neighbours",
    "table-row": "node",
    "grid": "node",
    "row": "all",
    "data": "all",
}
"""Where the pieces of a table go: each to a device, to devices of one node, to all devices of a node, or to all devices."""
TIERS: Final = ("hbm", "ddr", "ssd")
FIGURES: Final = ("forward compute", "forward message", "backward compute", "backward message", "prefetch")


@dataclass(frozen=True, slots=True)
class Option:
    """A way to hold a table."""

    sharding: embeddings.Sharding
    kernel: embeddings.Kernel
    columns: int = 1
    """Pieces into which its columns are cut."""
    cache: float = 0.0
    """Share of the rows that HBM holds beside the whole table elsewhere; 0 without a cache."""


@dataclass(frozen=True, slots=True)
class PricedOption:
    """An option, and what each of its pieces takes of every device that holds it."""

    option: Option
    spread: Spread
    pieces: int
    """Pieces that are placed each on its own; 1 where all devices hold one."""
    figures: tuple[float, ...]
    """Milliseconds, in the order of FIGURES."""
    memory: tuple[int, int, int]
    """Bytes by tier; of unequal parts of rows those of the largest, which all devices keep free."""
    distinct: bool = False
    """Whether each piece needs a device, or a node, of its own."""

    @property
    def time(self) -> float:
        """Milliseconds of a piece, rounded once."""
        return fsum(self.figures)


@dataclass(frozen=True, slots=True)
class Choices:
    """What the question offers to every table."""

    sharding: tuple[embeddings.Sharding, ...]
    kernel: tuple[embeddings.Kernel, ...]
    columns: tuple[int, ...]
    cache: tuple[float, ...]
    narrowest: int
    """Columns of a piece at least."""
    sent: tuple[float, float, float, float] | None
    """Bytes of an element in messages: all-to-all forward and backward, reduce-scatter forward and backward; None for the table's."""
    optimizer: embeddings.Optimizer
    pipeline: embeddings.Pipeline
    statistics: bool
    """Whether reuse of rows prices what caches miss."""
    distinct: bool = False
    """Whether pieces of a table's columns lie on different devices, whatever the kernel."""


def options_of(table: Table, choices: Choices, group: embeddings.Group) -> Iterator[Option]:
    """All options of a table, without those that its rows, its columns or the devices rule out."""
    nodes = group.devices // group.per_node
    for sharding in choices.sharding:
        if table.sharding and sharding not in table.sharding:
            continue
        if sharding in {"row", "table-row", "grid"} and table.rows < (group.devices if sharding == "row" else group.per_node):
            continue
        cuts = {"column": choices.columns, "table-column": choices.columns, "grid": choices.columns}.get(sharding, (1,))
        for columns in cuts:
            fits = columns == 1 or (not table.dimension % columns and table.dimension // columns >= choices.narrowest)
            beside = (sharding in {"column", "table-column"} and columns == 1) or (sharding == "grid" and not 1 < columns <= nodes)
            if fits and not beside:
                for option in _kernels(table, sharding, columns, choices):
                    places = group.per_node if sharding == "table-column" else group.devices
                    if columns <= places or not _apart(option, choices):
                        yield option


def _apart(option: Option, choices: Choices) -> bool:
    """Whether each piece of the columns needs a device, or a node, of its own: TorchRec cuts columns on SSD and grids so."""
    cut = option.sharding in {"column", "table-column"}
    always = option.sharding == "grid" or (option.sharding == "column" and option.kernel == "key_value")
    return option.columns > 1 and (always or (cut and choices.distinct))


def _kernels(table: Table, sharding: embeddings.Sharding, columns: int, choices: Choices) -> Iterator[Option]:
    for kernel in choices.kernel:
        if (table.kernel and kernel not in table.kernel) or (kernel == "dense") != (sharding == "data"):
            continue
        for cache in choices.cache if kernel == "fused_uvm_caching" else (0.0,):
            yield Option(sharding, kernel, columns, cache)


@lru_cache(1 << 12)
def priced(table: Table, option: Option, choices: Choices, group: embeddings.Group) -> PricedOption:
    """Milliseconds and bytes of the pieces of an option."""
    lookups = embeddings.Lookups(table.rows, table.dimension, table.pooling, table.fraction, table.element, table.weighted, table.pooled)
    spread, columns, rows = SPREADS[option.sharding], table.dimension // option.columns, table.rows
    if option.sharding in {"row", "table-row", "grid"}:
        rows = ceil(table.rows / (group.devices if option.sharding == "row" else group.per_node))
    each = table.element
    sent = embeddings.Sent((each, each), (each, each)) if choices.sent is None else embeddings.Sent(choices.sent[:2], choices.sent[2:])
    misses = None
    if choices.statistics and table.reuse and option.kernel in embeddings.CACHED:
        misses = embeddings.Misses(*cache_statistics(table, table.pooling * table.fraction * group.batch * group.devices, option.cache))
    cost = embeddings.shard_cost(lookups, option.sharding, option.kernel, columns, group, sent, option.cache, misses)
    memory = embeddings.shard_storage(
        lookups, option.sharding, option.kernel, rows, columns, group, choices.optimizer, choices.pipeline, option.cache
    )
    stored = memory.hbm, memory.ddr, memory.ssd
    return PricedOption(option, spread, option.columns, cost.figures, stored, _apart(option, choices))


def devices_of(spread: Spread, places: Sequence[int], per_node: int, devices: int) -> Iterator[int]:
    """Devices that hold a piece, once for each piece that they hold; places are devices, or nodes."""
    for index in places:
        yield from range(index * per_node, (index + 1) * per_node) if spread == "node" else (index,)
    if spread == "all":
        yield from range(devices)
