"""What a shard of an embedding table costs: milliseconds and bytes on each device that holds one, by the formulas of TorchRec's planner.

With W devices, l of them in a node, d columns of a shard, e bytes of an element, o bytes of an element that is sent, and K bytes a
millisecond of the kernel:

    in   = pooling * share of samples * batch          out = min(1, pooling) * share * batch, or `in` where looked-up rows are kept apart
    look = in W max(d, 32) e                            read = ceil(8 in W), twice where lookups are weighted
    forward compute = (read + look + out W d o) * penalty / K            backward compute = 2 or, weighted, 3.1 times that

Rows shared by W devices (`row`) or by those of a node (`table-row`, `grid`) have their own lookups, and a reduce-scatter in place of the
all-to-all. Milliseconds and bytes a millisecond are TorchRec's units; every figure falls, or stays, as a bandwidth rises.
"""

from collections.abc import Sequence
from math import ceil, floor
from typing import Final, Literal

from crossopt.crossflow.records import dataclass

Sharding = Literal["table", "row", "column", "table-row", "table-column", "grid", "data"]
Kernel = Literal[
    "fused",
    "fused_triton",
    "fused_uvm",
    "fused_uvm_caching",
    "key_value",
    "dense",
    "quant",
    "quant_uvm",
    "quant_uvm_caching",
    "ssd_virtual_table",
    "dram_virtual_table",
    "dram_ssd_virtual_table",
]
Pipeline = Literal["none", "train_sparse_dist", "train_prefetch_sparse_dist"]
Optimizer = Literal["none", "sgd", "rowwise_adagrad", "adam"]
INDEX: Final = 8
"""Bytes of an index."""
CACHED: Final = frozenset(("fused_uvm_caching", "quant_uvm_caching", "key_value"))
"""Kernels that hold a share of a table in HBM."""
_PREFETCHED: Final = frozenset(("fused_uvm_caching", "quant_uvm_caching"))
FULL_BLOCK, HALF_BLOCK, NARROWEST_LOOKUP = 128, 64, 32
_HALF_PENALTY, _NARROW_PENALTY = 1.15, 1.75
_BACKWARD, _WEIGHTED, _COPY, _ELEMENTWISE = 2, 1.1, 2.455, 9.22
_UNIFIED: Final = 10
"""By which unified memory is slower than its link."""


@dataclass(frozen=True, slots=True)
class Bandwidths:
    """Bytes a millisecond."""

    hbm: float
    host: float
    """Between HBM and the host's memory."""
    ssd: float
    intra: float
    """Between devices of a node."""
    inter: float
    """Between nodes."""


@dataclass(frozen=True, slots=True)
class Group:
    """Devices that hold all tables, and the samples of each."""

    devices: int
    per_node: int
    batch: int
    bandwidths: Bandwidths
    training: bool = True
    prefetching: bool = False
    """Whether cached rows are fetched one batch ahead, so that kernels find them in HBM."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Bytes of an element in messages, forward and backward."""

    all_to_all: tuple[float, float]
    reduce_scatter: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Lookups:
    """A table as its shards see it."""

    rows: int
    dimension: int
    pooling: float
    poolings: float
    """Share of the samples that have the feature, or features a sample."""
    element: float
    """Bytes."""
    weighted: bool = False
    pooled: bool = True


@dataclass(frozen=True, slots=True)
class Misses:
    """Statistics of a cache."""

    rate: float
    unique: float
    """Different rows that all devices look up in a step."""


@dataclass(frozen=True, slots=True)
class ShardCost:
    """Milliseconds of a step on each device that holds such a shard."""

    forward_compute: float
    forward_message: float
    backward_compute: float
    backward_message: float
    prefetch: float = 0.0
    input_message: float = 0.0
    """Of the indices; the planner leaves it out of its total, and so does this."""

    @property
    def figures(self) -> tuple[float, ...]:
        """Figures whose sum is the cost of a shard."""
        return self.forward_compute, self.forward_message, self.backward_compute, self.backward_message, self.prefetch


def kernel_bandwidth(kernel: Kernel, rates: Bandwidths, cached: float = 0.2, prefetching: bool = False) -> float:
    """Bytes a millisecond at which a kernel reads and writes rows."""
    match kernel:
        case "fused" | "fused_triton" | "quant":
            return rates.hbm
        case "dense":
            return 0.5 * rates.hbm
        case "fused_uvm" | "quant_uvm":
            return rates.host / _UNIFIED
        case "fused_uvm_caching" | "quant_uvm_caching":
            return rates.hbm if prefetching else (cached * rates.hbm + (1.0 - cached) * rates.host) / _UNIFIED
        case "key_value":
            return rates.ssd
        case _:
            return rates.host


def shard_cost(
    table: Lookups,
    sharding: Sharding,
    kernel: Kernel,
    columns: int,
    group: Group,
    sent: Sent,
    cached: float = 0.2,
    misses: Misses | None = None,
) -> ShardCost:
    """Cost of a shard with so many columns."""
    rates, devices = group.bandwidths, group.devices
    speed = kernel_bandwidth(kernel, rates, cached, group.prefetching)
    looked = table.pooling * table.poolings * group.batch
    given = min(1.0, table.pooling) * table.poolings * group.batch if table.pooled else looked
    message = group.bandwidths.intra if devices <= group.per_node else group.bandwidths.inter
    if sharding == "data":
        forward = _forward(ceil(looked * INDEX), looked * columns * table.element, given * columns * table.element, table, speed)
        update = _all_reduce(table, columns, group) + _ELEMENTWISE * (table.rows * columns * table.element) / speed
        return _whole(table, group, forward, (0.0, 0.0), update)
    indices, parts, copy = ceil(looked * devices * INDEX), 1, 0.0
    if sharding == "row":
        parts, out = devices, given * devices if table.pooled else given
        each = sent.reduce_scatter if table.pooled else sent.all_to_all
        forward = _forward(ceil(looked * INDEX), looked * columns * table.element, out * columns * each[0], table, speed)
        messages = out * columns * each[0] / message, out * columns * each[1] / message
        copy = _COPY * (out * columns * each[1]) / speed
    elif sharding in {"table-row", "grid"}:
        parts = local = group.per_node
        out, each = given * devices if table.pooled else given * devices / local, sent.reduce_scatter
        read, look = ceil(looked * devices / local * INDEX), looked * devices / local * columns * table.element
        forward = _forward(read, look, out * columns * each[0], table, speed)
        across = given * devices / local * columns / rates.inter if devices > local else 0.0
        there = out * columns * each[0] / rates.intra + across * sent.all_to_all[0]
        messages = there, out * columns * each[1] / rates.intra + across * sent.all_to_all[1]
        copy = _COPY * (out * columns * each[1]) / speed
    else:
        look = looked * devices * max(columns, NARROWEST_LOOKUP) * table.element
        penalty = 1.0 if columns >= FULL_BLOCK else _HALF_PENALTY if columns >= HALF_BLOCK else _NARROW_PENALTY
        forward = _forward(indices, look, given * devices * columns * sent.all_to_all[0], table, speed, penalty)
        messages = given * devices * columns * sent.all_to_all[0] / message, given * devices * columns * sent.all_to_all[1] / message
    fetched = misses.rate * misses.unique * columns * table.element if misses and kernel in _PREFETCHED else 0.0
    return _whole(table, group, forward, messages, copy, fetched / rates.host / parts, indices / message)


def _forward(read: float, look: float, write: float, table: Lookups, speed: float, penalty: float = 1.0) -> float:
    return (read * (2 if table.weighted else 1) + look + write) * penalty / speed


def _whole(
    table: Lookups, group: Group, forward: float, messages: tuple[float, float], after: float, prefetch: float = 0.0, indices: float = 0.0
) -> ShardCost:
    """All figures, with what follows the backward message; of inference no backward ones."""
    if not group.training:
        return ShardCost(forward, messages[0], 0.0, 0.0, prefetch, indices)
    backward = forward * _BACKWARD + (forward * _WEIGHTED if table.weighted else 0.0)
    return ShardCost(forward, messages[0], backward, messages[1] + after, prefetch, indices)


def _all_reduce(table: Lookups, columns: int, group: Group) -> float:
    nodes = min(group.devices / group.per_node, 2)
    time = table.rows * columns * table.element * (2 * nodes - 1) / nodes / (group.bandwidths.inter * group.per_node)
    return time * 2 if group.devices > 2 * group.per_node else time


# Bytes of a shard.


@dataclass(frozen=True, slots=True)
class Storage:
    """Bytes on each device that holds such a shard."""

    hbm: int
    ddr: int = 0
    ssd: int = 0


def row_shards(rows: int, parts: int) -> tuple[int, ...]:
    """Rows of each part: equal blocks, of which the last ones are smaller or empty."""
    block = ceil(rows / parts)
    return tuple(min(block, max(rows - block * part, 0)) for part in range(parts))


def state_bytes(
    stored: int, shape: Sequence[int], shard: Sequence[int], optimizer: Optimizer, cached: float | None, copied: bool = False
) -> int:
    """Bytes of a shard's weights, of the optimizer's state, and of the cache's where a share is cached; `copied` where it is the whole."""
    size, whole = 1, 1
    for edge, full in zip(shard, shape, strict=True):
        size, whole = size * edge, whole * full
    weights = stored if copied else ceil(stored * size / whole)
    factor = {"none": 0.0, "sgd": 0.0, "adam": 2.0, "rowwise_adagrad": 1.0 / shape[-1]}[optimizer]
    return weights + ceil(weights * factor) + (0 if cached is None else ceil(shard[0] * (4 + cached * 16)))


def buffer_bytes(pipeline: Pipeline, received: int, given: int, cached: bool, at_peak: bool = False, passes: int | None = None) -> int:
    """Bytes of HBM for indices and looked-up rows; `at_peak` where the embedding runs when memory is fullest."""
    if pipeline == "none":
        return received + given
    held = 2 * received
    if pipeline == "train_prefetch_sparse_dist":
        held = 3 * received + (floor((1 + 6 / passes) * received) if cached and passes else 0)
    return held + (given if at_peak else 0)


def shard_storage(
    table: Lookups,
    sharding: Sharding,
    kernel: Kernel,
    rows: int,
    columns: int,
    group: Group,
    optimizer: Optimizer = "rowwise_adagrad",
    pipeline: Pipeline = "none",
    cached: float = 0.2,
) -> Storage:
    """Bytes of a shard of so many rows and columns, by tier."""
    whole = ceil(table.rows * table.dimension * table.element)
    shape, shard, copied = (table.rows, table.dimension), (rows, columns), sharding == "data"
    looked = table.pooling * table.poolings * group.batch
    given = min(1.0, table.pooling) * table.poolings * group.batch if table.pooled else looked
    times, parts = group.devices, 1
    if sharding == "data":
        times = 1
    elif sharding == "row":
        parts = group.devices
    elif sharding in {"table-row", "grid"}:
        parts = group.per_node
    empty = not rows * columns
    received = 0 if empty else ceil(looked / parts * times * INDEX)
    out = given if table.pooled else given / parts
    buffers = buffer_bytes(pipeline, received, 0 if empty else ceil(out * times * columns * table.element), kernel in CACHED)
    full = state_bytes(whole, shape, shard, optimizer, None, copied)
    if kernel == "key_value":
        return Storage(buffers, 0, full)
    if kernel in CACHED:
        return Storage(state_bytes(round(whole * cached), shape, shard, optimizer, cached, copied) + buffers, full)
    if kernel in {"fused_uvm", "quant_uvm"}:
        return Storage(buffers, full)
    return Storage(full + buffers)
