"""Seconds of one matrix product that a library launches alone, by few constants of the device, the library and the format of its values.

    time = launch + root( best (1 + throttle best / (best + 1 ms)) , DRAM bytes / (bandwidth * stream) ) + cast * elements of the input

    best tile = waves * root( (depth + fill) * arithmetic of a tile , depth * step ) + partial sums

root(a, b) = sqrt(a^2 + b^2): what runs side by side hides most of the shorter part, and not all of it. Tiles are those of `roofline`, dealt
to the bundles in whole waves. Where the library splits the inner dimension, the parts of a tile are dealt out too, and their sums are
written and read in single precision (NVIDIA, CUTLASS: Efficient GEMM, 2023, "parallelized reductions"). Libraries that quantise the input
as they go read and write it once more (`cast`), and none of the arithmetic hides that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.roofline import TILES

_PARTS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Into how many the inner dimension may be split."""
_ALIGNED: Final = 64.0
_OUTPUT_BYTES: Final = 2.0
_SUM_BYTES: Final = 4.0
_SOON: Final = 1.0e-3
"""Seconds after which the clock has fallen by half of what it falls: between 0.3 and 4 ms public kernels are met alike."""


@dataclass(frozen=True, slots=True)
class ProductFormat:
    """How values of a product are held, and what the library does with them."""

    pace: float
    """Rate of the arithmetic over that on 16 bits."""
    input_bytes: float
    weight_bytes: float
    splits: bool = True
    """Whether the inner dimension may be split."""
    casts: bool = False
    """Whether the input comes in 16 bits and is quantised first."""


FORMATS: Final[Mapping[str, ProductFormat]] = {
    "bfloat16": ProductFormat(1.0, 2.0, 2.0),
    "float16": ProductFormat(1.0, 2.0, 2.0),
    "int8_wo": ProductFormat(1.0, 2.0, 1.0),
    "int4_wo": ProductFormat(1.0, 2.0, 0.5),
    "sq": ProductFormat(2.0, 1.0, 1.0, casts=True),
    "fp8": ProductFormat(2.0, 1.0, 1.0, casts=True),
    "fp8_block": ProductFormat(2.0, 1.0, 1.0, splits=False, casts=True),
    "nvfp4": ProductFormat(4.0, 0.5, 0.5, splits=False, casts=True),
}
"""By the words of ai-dynamo/aiconfigurator: weights only in 8 and 4 bits, both sides in whole numbers of 8 bits (`sq`), 8 bits with one
scale, with one for each block (`fp8_block`), 4 bits with scales. Block-scaled kernels take as long for 128 columns as their depth says,
however few rows there are: they do not split it."""


@dataclass(frozen=True, slots=True)
class ProductConstants:
    """What is fitted of one format on one device."""

    launch: Real
    """Seconds of a product that does nothing."""
    matrix: Real
    """Share of the matrix peak."""
    fill: Real
    """Steps of the inner dimension lost to filling and draining a tile."""
    stream: Real
    """Share of the memory's peak."""
    step: Real
    """Seconds of one step of the inner dimension, however small the tile."""
    throttle: Real = 0.0
    """Share by which products that go on for long take longer: the clock falls as the device comes to its power limit."""
    reduction: Real = 0.0
    """Seconds to start summing parts."""
    cast: Real = 0.0
    """Seconds for each element of the input that is quantised."""


@dataclass(frozen=True, slots=True)
class ProductCall:
    """C[rows, columns] = A[rows, depth] B[depth, columns]."""

    rows: Real
    columns: Real
    depth: Real
    format: ProductFormat

    @property
    def least_flops(self) -> Real:
        """FLOPs at the rate on 16 bits that are there to be computed."""
        return 2.0 * self.rows * self.columns * self.depth / self.format.pace


def product_time(call: ProductCall, constants: ProductConstants, hardware: Hardware) -> Real:
    """Seconds on a device that is built for 16 bits; calls, constants and devices may be columns of each other's shapes."""
    form, memory = call.format, hardware.dram.bandwidth * constants.stream
    best: Real = np.inf
    for (rows, columns, rate), parts in product(TILES, _PARTS if form.splits else _PARTS[:1]):
        waves = np.ceil(np.ceil(call.rows / rows) * np.ceil(call.columns / columns) * parts / hardware.bundles)
        depth = np.ceil(call.depth / parts / _ALIGNED) * _ALIGNED
        arithmetic = (depth + constants.fill) * (rows * columns * 2.0 / rate) * hardware.bundles
        arithmetic = arithmetic / (hardware.throughput * form.pace * constants.matrix)
        tile = waves * root(arithmetic, depth * constants.step)
        if parts > 1.0:
            tile = tile + constants.reduction + call.rows * call.columns * (2.0 * _SUM_BYTES * parts) / memory
        best = np.minimum(best, tile)
    best = best + constants.throttle * (best / (1.0 + _SOON / best))
    moved = call.columns * call.depth * form.weight_bytes + call.rows * call.depth * form.input_bytes
    time = constants.launch + root(best, (moved + call.rows * call.columns * _OUTPUT_BYTES) / memory)
    return time + constants.cast * call.rows * call.depth if form.casts else time


def root(one: Real, other: Real) -> Real:
    """Seconds of two parts of a kernel that run side by side."""
    return np.sqrt(one * one + other * other)
