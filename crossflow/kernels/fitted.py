"""Run times of single library kernels from a few fitted constants: products, fused attention, and collectives inside a node."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.roofline import TILES

# Seconds of one matrix product that a library launches alone, by few constants of the device, the library and the format of its values.
#
#     time = launch + root( best (1 + throttle best / (best + 1 ms)) , DRAM bytes / (bandwidth * stream) ) + cast * elements of the input
#
#     best tile = waves * root( (depth + fill) * arithmetic of a tile , depth * step ) + partial sums
#
# root(a, b) = sqrt(a^2 + b^2): what runs side by side hides most of the shorter part, and not all of it. Tiles are those of `roofline`,
# dealt to the bundles in whole waves. Where the library splits the inner dimension, the parts of a tile are dealt out too, and their sums
# are written and read in single precision (NVIDIA, CUTLASS: Efficient GEMM, 2023, "parallelized reductions"). Libraries that quantise the
# input as they go read and write it once more (`cast`), and none of the arithmetic hides that.

_PARTS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Options for the number of parts of the inner dimension (split-K)."""
_ALIGNED: Final = 64.0
_OUTPUT_BYTES: Final = 2.0
_SUM_BYTES: Final = 4.0
_SOON: Final = 1.0e-3
"""Seconds after which half of the clock's drop has happened; public measurements from 0.3 to 4 ms fit equally well."""


@dataclass(frozen=True, slots=True)
class ProductFormat:
    """A number format of a product, and its handling by the library."""

    pace: float
    """Arithmetic rate relative to 16 bits."""
    input_bytes: float
    weight_bytes: float
    splits: bool = True
    """Whether split-K is available."""
    casts: bool = False
    """Whether the input arrives in 16 bits and is quantised first."""
    experts_only: bool = False
    """Whether checkpoints of models with experts have those alone in this format, and attention in 16 bits."""


FORMATS: Final[Mapping[str, ProductFormat]] = {
    "bfloat16": ProductFormat(1.0, 2.0, 2.0),
    "float16": ProductFormat(1.0, 2.0, 2.0),
    "int8_wo": ProductFormat(1.0, 2.0, 1.0),
    "int4_wo": ProductFormat(1.0, 2.0, 0.5),
    "w4a16_mxfp4": ProductFormat(1.0, 2.0, 0.53125),
    "sq": ProductFormat(2.0, 1.0, 1.0, casts=True),
    "fp8": ProductFormat(2.0, 1.0, 1.0, casts=True),
    "fp8_block": ProductFormat(2.0, 1.0, 1.0, splits=False, casts=True),
    "nvfp4": ProductFormat(4.0, 0.5, 0.5, splits=False, casts=True, experts_only=True),
}
"""By the words of ai-dynamo/aiconfigurator: weights only in 8 and 4 bits, both sides in whole numbers of 8 bits (`sq`), 8 bits with one
scale, with one for each block (`fp8_block`), 4 bits with scales. Block-scaled kernels take as long for 128 columns as their depth says,
however few rows there are: they do not split it. Attention in 16 bits is that of DeepSeek-R1-FP4 (NVIDIA/Model-Optimizer, issue 150),
gpt-oss, and public MiniMax-M2.5 and Kimi-K2.5 in NVFP4."""


@dataclass(frozen=True, slots=True)
class ProductConstants:
    """Fitted constants of one format on one device."""

    launch: Real
    """Seconds of a product without work."""
    matrix: Real
    """Share of the matrix peak."""
    fill: Real
    """Steps of the inner dimension lost in filling and draining a tile."""
    stream: Real
    """Share of peak memory bandwidth."""
    step: Real
    """Seconds per step of the inner dimension, for the smallest tile."""
    throttle: Real = 0.0
    """Share by which long products slow down as the clock drops at the power limit."""
    reduction: Real = 0.0
    """Seconds to start the reduction of split-K parts."""
    cast: Real = 0.0
    """Seconds per element of the input that is quantised."""


@dataclass(frozen=True, slots=True)
class ProductCall:
    """C[rows, columns] = A[rows, depth] B[depth, columns]."""

    rows: Real
    columns: Real
    depth: Real
    format: ProductFormat

    @property
    def least_flops(self) -> Real:
        """FLOPs (in 16-bit equivalents) of a product."""
        return 2.0 * self.rows * self.columns * self.depth / self.format.pace


def product_time(call: ProductCall, constants: ProductConstants, hardware: Hardware) -> Real:
    """Seconds on a device built for 16 bits; calls, constants and devices broadcast against each other."""
    form, memory = call.format, hardware.dram.bandwidth * constants.stream
    peak, outputs = hardware.throughput * form.pace * constants.matrix, call.rows * call.columns
    axes = max(map(np.ndim, (outputs, call.depth, memory, peak, hardware.bundles, constants.fill, constants.step, constants.reduction)))
    parts = np.reshape(_PARTS if form.splits else _PARTS[:1], (-1,) + (1,) * axes)
    depth = np.ceil(call.depth / parts / _ALIGNED) * _ALIGNED
    filled, steps, sums = depth + constants.fill, depth * constants.step, outputs * (2.0 * _SUM_BYTES * parts) / memory
    best: Real = np.inf
    for rows, columns, rate in TILES:
        tiles, work = np.ceil(call.rows / rows) * np.ceil(call.columns / columns), rows * columns * 2.0 / rate
        tile = np.ceil(tiles * parts / hardware.bundles) * root(filled * work * hardware.bundles / peak, steps)
        best = np.minimum(best, tile)
    best = np.minimum.reduce(np.where(parts > 1.0, best + constants.reduction + sums, best))
    best = best + constants.throttle * (best / (1.0 + _SOON / best))
    moved = call.columns * call.depth * form.weight_bytes + call.rows * call.depth * form.input_bytes
    time = constants.launch + root(best, (moved + outputs * _OUTPUT_BYTES) / memory)
    return time + constants.cast * call.rows * call.depth if form.casts else time


def root(first: Real, second: Real) -> Real:
    """Seconds of two concurrent parts of a kernel."""
    return np.sqrt(first * first + second * second)


# Seconds of the experts of a layer that a library runs alone: tokens sorted to their experts, two grouped products, and the sums.
#
#     time = launch + root( e (r + pad) flops of a row / rate , e weights / (bandwidth * stream) ) + e expert + passes * bytes / bandwidth
#
# with e active experts on the device and r rows of each. Tiles are filled to whole ones (`pad`); copies of the tokens are quantised,
# activated and summed up (`passes` over their values). Which experts are active follows from the tokens: each takes its own at random.


@dataclass(frozen=True, slots=True)
class ExpertConstants:
    """Fitted constants of one format of experts on one device."""

    launch: Real
    """Seconds of all kernels without work."""
    matrix: Real
    """Share of the matrix peak."""
    pad: Real
    """Rows that each active expert has beyond its own."""
    stream: Real
    """Share of peak memory bandwidth at which weights are read."""
    passes: Real
    """Passes over the values of all copies of tokens, at peak memory bandwidth."""
    expert: Real
    """Seconds of an active expert."""


@dataclass(frozen=True, slots=True)
class ExpertCall:
    """Tokens that take some of the experts each, of which a device holds its share, or a part of each."""

    tokens: Real
    hidden: Real
    width: Real
    """Of an expert's part on the device."""
    chosen: Real
    ranks: Real
    """Devices that share the experts as whole ones."""
    active: Real
    """Experts that some token takes, on all of them."""
    projections: Real
    """Matrices of an expert: 3 with a gate, else 2."""
    format: ProductFormat

    @property
    def least_flops(self) -> Real:
        """FLOPs (in 16-bit equivalents) of the products."""
        return 2.0 * self.tokens * self.chosen / self.ranks * self.projections * self.hidden * self.width / self.format.pace


def expert_time(call: ExpertCall, constants: ExpertConstants, hardware: Hardware) -> Real:
    """Seconds on a device built for 16 bits."""
    own, copies = call.active / call.ranks, call.tokens * call.chosen / call.ranks
    values = call.projections * call.hidden * call.width
    arithmetic = (copies + own * constants.pad) * values * 2.0 / (hardware.throughput * call.format.pace * constants.matrix)
    weights = own * values * call.format.weight_bytes / (hardware.dram.bandwidth * constants.stream)
    moved = copies * (2.0 * call.hidden + call.projections * call.width) * _OUTPUT_BYTES / hardware.dram.bandwidth
    return constants.launch + root(arithmetic, weights) + own * constants.expert + constants.passes * moved


# Seconds of fused attention that a library launches alone: of a whole prompt (context), and of one more token of many sequences
# (generation).
#
# Context is arithmetic. A block of 128 or 64 queries of one head is a unit, which bundles take one after the other:
#
#     unit = keys in the mean * queries * root( 4 head size / rate , softmax ) + unit's own seconds
#     time = launch + root( all units / bundles , longest unit ) + prepare * bytes of queries, keys, values and results / bandwidth
#
# Scores and their softmax run side by side with the products (Dao et al. 2022; Shah et al. 2024, section 3). Queries beyond a window are
# masked, one block of keys at each end of it, on the vector units.
#
# Generation reads keys and values. Each sequence and head of keys is a unit; where they are fewer than the bundles, keys are split, and the
# results put together by one more kernel (Dao, "Flash-Decoding", 2023):
#
#     time = launch + root( bytes / (bandwidth * stream) , keys of a part * serial , units * unit's seconds / bundles ) + reduction if split
#
# root(a, b) = sqrt(a^2 + b^2), as in `product_kernel`.

_BLOCKS: Final = ((128.0, 1.0), (64.0, 0.8))
"""Queries of a unit of work, and the share of the rate that smaller units reach."""
_KEYS: Final = 128.0
"""Keys of a block."""
_PART: Final = 512.0
"""Least number of keys in a part of split keys."""
_WAVES: Final = 2.0
"""Most parts per bundle."""
_HEAD: Final = 64.0
_VALUE_BYTES: Final = 2.0
SHARED_HEADS: Final = 32
"""Heads that kernels of TensorRT-LLM let share what is read of keys and values; with more, each head reads for itself. Its times for 48, 64
and 96 heads rise with every head, those up to 32 do not (systems/data of ai-dynamo/aiconfigurator)."""


@dataclass(frozen=True, slots=True)
class AttentionFormat:
    """A number format of attention, and its handling by the library."""

    cache_bytes: float
    """Bytes per stored key or value element."""
    eight_bits: bool
    """Whether scores are computed in 8 bits, with heads padded to a power of two."""
    packs: bool = False
    """Whether heads that share keys become rows where a sequence has one token (flash_api.cpp of Dao-AILab/flash-attention: the groups of
    queries are swapped with the sequence)."""
    alone: bool = False
    """Generation: whether each head reads keys and values by itself."""
    splits: bool = True
    """Generation: whether keys may be split."""

    @property
    def pace(self) -> float:
        """Arithmetic rate relative to 16 bits."""
        return 2.0 if self.eight_bits else 1.0


@dataclass(frozen=True, slots=True)
class ContextConstants:
    """Fitted constants of context attention in one format on one device."""

    launch: Real
    matrix: Real
    """Share of the matrix peak."""
    unit: Real
    """Seconds of overhead per unit of work."""
    softmax: Real
    """Seconds per score on one bundle."""
    prepare: Real
    """Passes over queries, keys, values and results outside the main loop, at peak memory bandwidth."""
    mask: Real = 0.0
    """Additional blocks of scores at the ends of a window."""


@dataclass(frozen=True, slots=True)
class ContextCall:
    """Causal attention over `tokens` of each sequence; a window of 0 keys means no window."""

    heads: Real
    kv_heads: Real
    head_size: Real
    window: Real
    batch: Real
    tokens: Real
    format: AttentionFormat

    @property
    def least_flops(self) -> Real:
        """Lower bound of FLOPs (in 16-bit equivalents): the pairs left by mask and window."""
        reach = _reach(self.window, self.tokens)
        pairs = reach * self.tokens - reach * reach / 2.0
        return 4.0 * self.batch * self.heads * self.head_size * pairs / self.format.pace


def context_time(call: ContextCall, constants: ContextConstants, hardware: Hardware) -> Real:
    """Seconds on a device built for 16 bits."""
    form = call.format
    single = (call.tokens == 1.0) & form.packs
    heads, rows = np.where(single, call.kv_heads, call.heads), np.where(single, call.heads / call.kv_heads, call.tokens)
    size = _power_of_two(call.head_size) if form.eight_bits else call.head_size
    reach = _reach(call.window, call.tokens)
    masked = constants.mask * (_KEYS * constants.softmax) * (reach < call.tokens)
    best: Real = np.inf
    for block, share in _BLOCKS:
        blocks = np.ceil(rows / block)
        longest = np.where(single, block, np.minimum(reach + block, blocks * block))
        keys = longest - (longest - block) * longest / (2.0 * blocks * block)
        score = root(4.0 * size * hardware.bundles / (hardware.throughput * form.pace * constants.matrix * share), constants.softmax)
        own = constants.unit + block * masked
        units = call.batch * heads * blocks * (keys * block * score + own) / hardware.bundles
        best = np.minimum(best, root(units, longest * block * score + own))
    moved = 2.0 * call.heads * _VALUE_BYTES + 2.0 * call.kv_heads * (_VALUE_BYTES + form.cache_bytes)
    return constants.launch + best + constants.prepare * call.batch * call.tokens * call.head_size * moved / hardware.dram.bandwidth


@dataclass(frozen=True, slots=True)
class GenerationConstants:
    """Fitted constants of generation attention in one format on one device."""

    launch: Real
    stream: Real
    """Share of peak memory bandwidth."""
    unit: Real
    """Seconds of a unit with no keys."""
    serial: Real
    """Seconds per key in a part."""
    group: Real = 0.0
    """Seconds of a unit per 64 values of each head that shares its keys."""
    reduction: Real = 0.0
    """Seconds to combine parts."""
    cache: Real = np.inf
    """Bytes per second at which heads that read by themselves find data that another head has read."""


@dataclass(frozen=True, slots=True)
class GenerationCall:
    """One token per sequence that attends to `keys`, itself included; a window of 0 keys means no window."""

    heads: Real
    kv_heads: Real
    head_size: Real
    window: Real
    batch: Real
    keys: Real
    format: AttentionFormat


def generation_time(call: GenerationCall, constants: GenerationConstants, hardware: Hardware) -> Real:
    """Seconds on a device built for 16 bits."""
    form, group = call.format, call.heads / call.kv_heads
    reach = _reach(call.window, call.keys)
    cache = 2.0 * call.batch * reach * call.head_size * form.cache_bytes
    queries = 2.0 * call.batch * call.heads * call.head_size * _VALUE_BYTES
    read = (cache * call.kv_heads + queries) / (hardware.dram.bandwidth * constants.stream)
    unit = constants.unit if form.alone else constants.unit + constants.group * (group * call.head_size / _HEAD)
    if form.alone:
        read = read + np.where(group > 1.0, cache * call.heads / constants.cache, 0.0)
    units = call.batch * (call.heads if form.alone else call.kv_heads)
    parts = np.minimum(np.floor(_WAVES * hardware.bundles / units), np.ceil(call.keys / _PART)) if form.splits else 1.0
    parts = np.maximum(parts, 1.0)
    serial = np.minimum(reach, call.keys / parts) * constants.serial
    time = constants.launch + root(root(read, serial), units * unit / hardware.bundles)
    return time + np.where(np.greater(parts, 1.0), constants.reduction, 0.0)


def _reach(window: Real, keys: Real) -> Real:
    """Number of keys left by a window."""
    return np.where(np.greater(window, 0.0), np.minimum(window, keys), keys)


def _power_of_two(size: Real) -> Real:
    """The smallest power of two that is at least this large."""
    share, exponent = np.frexp(size)
    return np.asarray(np.ldexp(1.0, exponent - (share == 0.5)), np.float64)


# Seconds of a collective inside one node that a library launches alone: two protocols, one for small messages and one for large ones.
#
#     time = start + steps * step + bytes on the wire / (link's bandwidth * rate * share of n ranks)          below the switch, and above it
#
# with n - 1 steps and (n - 1) / n of the message on the wire, twice both for an all-reduce (Thakur, Rabenseifner, Gropp 2005). Each
# protocol has a start and a rate of its own: those for small messages wait less and send flags with the data (LL, LL128 and Simple of
# NVIDIA/nccl, src/graph/tuning.cc). Two ranks do not keep all links busy: the share of n ranks is 1 - pairing / n.

OPERATIONS: Final = {"all_gather": 1.0, "reduce_scatter": 1.0, "alltoall": 1.0, "all_reduce": 2.0}
"""Number of times that each operation sends its share of the message."""


@dataclass(frozen=True, slots=True)
class CollectiveConstants:
    """Fitted constants of one collective of a library on one device."""

    step: Real
    """Seconds per step."""
    start: Real
    """Fixed seconds of a small message."""
    rate: Real
    """Share of the link's bandwidth for small messages."""
    large_start: Real
    large_rate: Real
    """Fixed seconds of a large message."""
    pairing: Real
    """Share of bandwidth lost with two ranks, twice."""
    switch: Real
    """Bytes from which a message counts as large."""


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """One collective on `size` bytes, as nccl-tests counts them: for an all-gather, the gathered size."""

    ranks: Real
    size: Real
    sends: float
    """Passes around the ring, as in OPERATIONS."""


def collective_time(call: CollectiveCall, constants: CollectiveConstants, hardware: Hardware) -> Real:
    """Seconds over the device's innermost links."""
    steps = call.sends * (call.ranks - 1.0)
    wire = steps / call.ranks * call.size / (hardware.links[0].bandwidth * (1.0 - constants.pairing / call.ranks))
    small, large = constants.start + wire / constants.rate, constants.large_start + wire / constants.large_rate
    return steps * constants.step + np.where(np.less(call.size, constants.switch), small, large)
