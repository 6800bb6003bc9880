"""Time and energy of one operator on one device: a hierarchical roofline (Williams, Waterman, Patterson 2009; Ardalani et al. 2022).

    time = max( arithmetic, DRAM bytes / bandwidth, L2 bytes / bandwidth, L1 bytes / bandwidth, register bytes / bandwidth ) + kernel gap

Every quantity falls or stays when a resource grows, and only + * / max min sqrt are used on resources, so that the computed time is
monotone as well. The one exception is `bundles` at fixed throughput: matrix tiles are dealt to the bundles in whole waves.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Real
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.records import dataclass

TILES = ((256.0, 128.0, 1.0), (128.0, 128.0, 0.97), (128.0, 64.0, 0.88), (64.0, 64.0, 0.76))
"""Output tiles offered by a matrix library: rows, columns, share of the best tile's rate (smaller tiles re-use operands less)."""

_DEPTH_ALIGNMENT = 32.0
"""The matrix engine pads the inner dimension to a multiple of this number."""
_FEW = 16
"""Products that are priced sooner than equal ones among them are found."""
_MANY = 32
"""Number of devices from which looking for equal memories pays off."""
LINE = 64.0
"""Values of 16 bits in a cache line."""
_CROSSING = ((64.0, 4.0 / 7.0), (32.0, 6.0 / 7.0), (16.0, 1.0), (8.0, 4.0 / 3.0), (4.0, 5.0 / 3.0), (2.0, 2.0))
"""Loss if a side is not a multiple of this number of values. Pieces of 64 values lie in one cache line each where rows are whole lines; of
rows that are multiples of 32, 16 or 8 values 1/2, 3/4 and 7/8 of the pieces lie in two, the last of which counts 1. Rows of fewer than 8
values, 16 bytes, are loaded in halves, quarters and eighths of what one instruction may: a third more each, an estimate. GPT-2 with 50,257
tokens took 25 % longer a step than with 50,304 (A. Karpathy 2023, nanoGPT), some 0.9 of its head's products."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds, joules and kernels of work on one device; costs can be added."""

    time: Real
    energy: Real
    kernels: Real = 1.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.time + other.time, self.energy + other.energy, self.kernels + other.kernels)

    def times(self, count: Real) -> "Cost":
        return Cost(self.time * count, self.energy * count, self.kernels * count)


NOTHING = Cost(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Product:
    """`count` independent matrix products C[rows, columns] = A[rows, depth] B[depth, columns], each with its own operands."""

    rows: Real
    depth: Real
    columns: Real
    count: Real = 1.0
    launches: Real = 1.0
    """Launches per call: several if the products of a batch are launched one by one on several streams."""
    by_chance: Real = 0.0
    """1 if each product has its own number of rows, with mean `rows`."""

    @property
    def flops(self) -> Real:
        return 2.0 * self.count * self.rows * self.depth * self.columns


Distinct: TypeAlias = tuple[Real, Real, Real]
"""Shares of the entries of A, B and C that are different values in DRAM: below 1 where the windows of a convolution overlap."""


def product_cost(product: Product, value_bytes: float, hardware: Hardware, distinct: Distinct | None = None) -> Cost:
    """Cost of a (batched) matrix product with operands in DRAM, all of whose entries are different values unless `distinct` says so.

    Tiles of the L1 are no larger than those whose sums the registers keep. Where the kernel's own traffic through L1 is known, L1 and
    registers must feed the arithmetic while it runs: their rate counts for as much as the peak does, `efficiency.matrix`.
    """
    efficiency = hardware.efficiency
    elements = value_bytes * product.count
    share = efficiency.resident / value_bytes
    dram = elements * _dram_reloads(product, share * hardware.l2.capacity, distinct)
    l2 = elements * reloads(product, np.minimum(share * hardware.l1.capacity / hardware.bundles, hardware.tile))
    if hardware.l1_traffic:
        l1, fed = product.flops * hardware.l1_traffic, efficiency.matrix
    else:
        l1, fed = elements * reloads(product, share * hardware.registers.capacity / hardware.bundles), 1.0
    registers = product.flops * hardware.register_traffic
    rate = hardware.wide_share if value_bytes > 1.0 else efficiency.eight_bit if value_bytes == 1.0 else 1.0
    cost = _roofline(tiled_time(product, hardware) / rate, product.flops, (dram, l2, l1, registers), 1.0, hardware, fed)
    if np.ndim(product.launches) == 0 and product.launches == 1.0:
        return cost
    return Cost(np.maximum(cost.time, product.launches * efficiency.launch), cost.energy, cost.kernels)


def product_costs(products: Sequence[Product], value_bytes: float, hardware: Hardware) -> list[Cost]:
    """Costs of several products, each as in `product_cost`; of products in columns over many plans, equal ones are evaluated once."""
    uneven = any(isinstance(product.by_chance, np.ndarray) or product.by_chance for product in products)
    names = ("rows", "depth", "columns", "count", *(("launches", "by_chance") if uneven else ()))
    sides = [[getattr(product, name) for name in names] for product in products]
    counts = [max((len(side) for side in each if isinstance(side, np.ndarray) and side.ndim == 2), default=0) for each in sides]
    if 0 in counts or not _in_numbers(hardware):
        return [product_cost(product, value_bytes, hardware) for product in products]
    spans = list(pairwise([0, *accumulate(counts)]))
    table = np.empty((spans[-1][1], len(names)))
    for (start, stop), each in zip(spans, sides, strict=True):
        for column, side in enumerate(each):
            table[start:stop, column : column + 1] = side
    different, row = _different(table)
    cost = product_cost(Product(*(different[:, column : column + 1] for column in range(len(names)))), value_bytes, hardware)
    rows = [row[start:stop] for start, stop in spans]
    return [Cost(np.take(cost.time, some, axis=0), np.take(cost.energy, some, axis=0), cost.kernels) for some in rows]


def backward_costs(products: Sequence[Product], value_bytes: float, hardware: Hardware) -> list[Cost]:
    """For each product the cost of its two gradient products: dA = dC B^T and dB = A^T dC."""
    return [by_input + by_weights for by_input, by_weights in gradient_costs(products, value_bytes, hardware)]


def gradient_costs(products: Sequence[Product], value_bytes: float, hardware: Hardware) -> list[tuple[Cost, Cost]]:
    """Costs of the two gradient products separately: of the input's gradient, and of the weights'."""
    costs = product_costs([side for product in products for side in gradients_of(product)], value_bytes, hardware)
    return list(zip(costs[::2], costs[1::2], strict=True))


def gradients_of(product: Product) -> tuple[Product, Product]:
    """The products that give the gradient of the input and of the weights."""
    return _by_input(product), Product(product.depth, product.rows, product.columns, product.count, product.launches)


def _by_input(product: Product) -> Product:
    return Product(product.rows, product.columns, product.depth, product.count, product.launches, product.by_chance)


def _in_numbers(hardware: Hardware) -> bool:
    """Whether the hardware's figures are numbers; `formulation.codesign.separable` uses symbolic ones, whose rows cannot be selected."""
    levels = (hardware.dram, hardware.l2, hardware.l1, hardware.registers)
    figures = (hardware.throughput, hardware.bundles, *(figure for level in levels for figure in (level.capacity, level.bandwidth)))
    return all(isinstance(figure, int | float | np.ndarray) for figure in figures)


def _different(shapes: Array) -> tuple[Array, Ints]:
    """The distinct rows, and for each row its number among them."""
    if len(shapes) < _FEW:
        return shapes, np.arange(len(shapes))
    order = np.lexsort(shapes.T)
    new = np.ones(len(order), bool)
    new[1:] = (shapes[order[1:]] != shapes[order[:-1]]).any(axis=1)
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(new) - 1
    return shapes[order[new]], number


def stream_cost(size: Real, flops: Real, hardware: Hardware, kernels: Real = 1.0) -> Cost:
    """Cost of an element-wise operator, reduction or gather that moves `size` bytes between DRAM and the vector engine."""
    arithmetic = flops / hardware.vector_throughput
    return _roofline(arithmetic, flops, (size, size, size, size), kernels, hardware)


def fused_attention_cost(flops: Real, size: Real, hardware: Hardware, rate: float = 1.0) -> Cost:
    """Cost of attention that never writes its scores to memory: arithmetic at the rate of fused kernels, or this share of it.
    Operands and results take `size` bytes.
    """
    arithmetic = flops / (hardware.throughput * hardware.wide_share * hardware.efficiency.attention * rate)
    moved = (size, size, np.maximum(size, flops * hardware.l1_traffic), flops * hardware.register_traffic)
    return _roofline(arithmetic, flops, moved, 1.0, hardware, hardware.efficiency.attention if hardware.l1_traffic else 1.0)


def _roofline(
    arithmetic: Real, flops: Real, moved: tuple[Real, Real, Real, Real], kernels: Real, hardware: Hardware, fed: Real = 1.0
) -> Cost:
    efficiency = hardware.efficiency
    dram, l2, l1, registers = moved
    # Below one byte the fixed cost of a stream shrinks with it, so that moving nothing costs nothing.
    streamed = (dram + kernels * efficiency.half_stream * np.minimum(dram, 1.0)) / (hardware.dram.bandwidth * efficiency.stream)
    time = np.maximum(np.maximum(arithmetic, streamed), l2 / hardware.l2.bandwidth)
    time = np.maximum(np.maximum(time, l1 / (hardware.l1.bandwidth * fed)), registers / (hardware.registers.bandwidth * fed))
    energy = flops * hardware.energy_per_flop + dram * hardware.dram.energy + l2 * hardware.l2.energy
    energy = energy + l1 * hardware.l1.energy + registers * hardware.registers.energy + hardware.running_power * time
    return Cost(time + kernels * efficiency.kernel, energy, kernels)


def tiled_time(product: Product, hardware: Hardware) -> Real:
    """Seconds of the arithmetic with the best tile: whole tiles, assigned to the bundles in whole waves.

        waves * bundles * tile rows * tile columns * 2 (depth + accumulation) / (throughput * efficiency * tile's rate)

    times 1 + (1 / unaligned - 1) crossing where rows of the operands are not aligned to cache lines: any size runs on matrix engines since
    cuBLAS 11, best in multiples of 128 bytes and worst in odd ones (NVIDIA, Matrix Multiplication Background, 2023, 2.2).
    Waves are ceil(tiles / bundles) for the product as a whole: the tiles of a batch share the waves. Where rows are by chance each product
    of the batch has rows / tile rows + 1/2 tiles across in the mean, since the last one is half full, and at least one.
    """
    efficiency = hardware.efficiency
    depth = np.ceil(product.depth / _DEPTH_ALIGNMENT) * _DEPTH_ALIGNMENT + efficiency.accumulation
    best: Real = np.inf
    for rows, columns, rate in TILES:
        tiles = _across(product, rows) * np.ceil(product.columns / columns) * product.count
        work = _tile_slots(tiles, hardware) * (rows * columns * 2.0 / rate)
        best = np.minimum(best, work)
    lost = 1.0 + (1.0 / efficiency.unaligned - 1.0) * _crossing(product)
    return best * depth / (hardware.throughput * efficiency.matrix) * lost


def _crossing(product: Product) -> Real:
    """Loss from operand rows that cross cache lines, relative to that of sides that are multiples of 8 values, but not of 16.
    The side with most crossings counts; multiples of 64 have none.
    """
    found: Real = 0.0
    for values, share in _CROSSING:
        found = np.where((np.mod(product.depth, values) > 0.5) | (np.mod(product.columns, values) > 0.5), share, found)
    return found


def _across(product: Product, rows: float) -> Real:
    """Number of tiles of this many rows along the rows of a product."""
    tiles = np.ceil(product.rows / rows)
    if np.ndim(product.by_chance) == 0 and product.by_chance == 0.0:
        return tiles
    return np.where(np.greater(product.by_chance, 0.5), np.maximum(product.rows / rows + 0.5, 1.0), tiles)


def _tile_slots(tiles: Real, hardware: Hardware) -> Real:
    """Tile slots in whole waves, ceil(tiles / bundles) bundles; the fewest possible if the number is open, at least `bundles`."""
    slots = np.ceil(tiles / hardware.bundles) * hardware.bundles
    if np.ndim(hardware.open_bundles) == 0 and hardware.open_bundles == 0.0:
        return slots
    return np.where(hardware.open_bundles > 0.0, np.maximum(tiles, hardware.bundles), slots)


def reloads(product: Product, room: Real) -> Real:
    """Elements moved into a memory that holds `room` elements of the resident tile, for one product of the batch.

    Many devices share few sizes of a memory; each size is looked at once.
    """
    if not isinstance(room, np.ndarray) or room.size < _MANY:
        return _reloads(product, room)
    rooms, index = np.unique(room, return_inverse=True)
    return np.take(_reloads(product, rooms), index, axis=-1) if 2 * rooms.size < room.size else _reloads(product, room)


def _reloads(product: Product, room: Real) -> Real:
    """The least over the three choices of the operand that stays resident:
        C stays:  A N/n + B M/m + C        B stays:  A N/n + B + C (2K/k - 1)        A stays:  A + B M/m + C (2K/k - 1)
    with real-valued tile sides, m n <= room and likewise for the others. Partial sums are read back as often as they are written, less one.
    """
    rows, depth, columns = product.rows, product.depth, product.columns
    work = rows * depth * columns
    output_stays = _tile_reloads(work, work, columns, rows, room) + rows * columns
    weight_stays = _tile_reloads(work, 2.0 * work, columns, depth, room) + (depth - rows) * columns
    input_stays = _tile_reloads(work, 2.0 * work, rows, depth, room) + (depth - columns) * rows
    return np.minimum(np.minimum(output_stays, weight_stays), input_stays)


def _dram_reloads(product: Product, room: Real, distinct: Distinct | None) -> Real:
    """As `reloads`, with entries that are equal values read and written once by each tile; the same bits where all differ."""
    plain = reloads(product, room)
    if distinct is None:
        return plain
    first, second, result = distinct
    rows, depth, columns = product.rows, product.depth, product.columns
    work = rows * depth * columns
    a, b, c = first * (rows * depth), second * (depth * columns), result * (rows * columns)
    output_stays = _tile_reloads(first * work, second * work, columns, rows, room) + c
    weight_stays = _tile_reloads(first * work, 2.0 * result * work, columns, depth, room) + (b - c)
    input_stays = _tile_reloads(second * work, 2.0 * result * work, rows, depth, room) + (a - c)
    least = np.minimum(np.minimum(output_stays, weight_stays), input_stays)
    return np.where(np.equal(first, 1.0) & np.equal(second, 1.0) & np.equal(result, 1.0), plain, least)


def _tile_reloads(first: Real, second: Real, width: Real, height: Real, room: Real) -> Real:
    """min first / x + second / y over 0 < x <= width, 0 < y <= height, x y <= room.

    The least of three feasible tiles, one of which is the optimum: the unclipped one x = sqrt(room first / second), and the two clipped
    to one full side. Each value falls with `room` operation by operation, so the computed minimum does too.
    """
    x, y = np.sqrt(room * first / second), np.sqrt(room * second / first)
    unclipped = first / np.minimum(width, x) + second / np.minimum(height, y)
    full_width = first / width + second / np.minimum(height, room / width)
    full_height = second / height + first / np.minimum(width, room / height)
    return np.minimum(np.minimum(unclipped, full_width), full_height)
