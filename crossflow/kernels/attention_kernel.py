"""Seconds of fused attention that a library launches alone: of a whole prompt (context), and of one more token of many sequences
(generation).

Context is arithmetic. A block of 128 or 64 queries of one head is a unit, which bundles take one after the other:

    unit = keys in the mean * queries * root( 4 head size / rate , softmax ) + unit's own seconds
    time = launch + root( all units / bundles , longest unit ) + prepare * bytes of queries, keys, values and results / bandwidth

Scores and their softmax run side by side with the products (Dao et al. 2022; Shah et al. 2024, section 3). Queries beyond a window are
masked, one block of keys at each end of it, on the vector units.

Generation reads keys and values. Each sequence and head of keys is a unit; where they are fewer than the bundles, keys are split, and the
results put together by one more kernel (Dao, "Flash-Decoding", 2023):

    time = launch + root( bytes / (bandwidth * stream) , keys of a part * serial , units * unit's seconds / bundles ) + reduction if split

root(a, b) = sqrt(a^2 + b^2), as in `product_kernel`.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.product_kernel import root

_BLOCKS: Final = ((128.0, 1.0), (64.0, 0.8))
"""Queries of a unit, and the share of the rate that smaller ones reach."""
_KEYS: Final = 128.0
"""Keys of a block."""
_PART: Final = 512.0
"""Keys of a part at the least where keys are split."""
_WAVES: Final = 2.0
"""Parts for each bundle at the most."""
_HEAD: Final = 64.0
_VALUE_BYTES: Final = 2.0
SHARED_HEADS: Final = 32
"""Heads that kernels of TensorRT-LLM let share what is read of keys and values; with more, each head reads for itself. Its times for 48, 64
and 96 heads rise with every head, those up to 32 do not (systems/data of ai-dynamo/aiconfigurator)."""


@dataclass(frozen=True, slots=True)
class AttentionFormat:
    """How values of attention are held, and what the library does."""

    cache_bytes: float
    """Of one key or value that is kept."""
    eight_bits: bool
    """Whether scores are computed in 8 bits, whose heads are filled up to a power of two."""
    packs: bool = False
    """Whether heads that share keys become rows where a sequence has one token (flash_api.cpp of Dao-AILab/flash-attention: the groups of
    queries are swapped with the sequence)."""
    alone: bool = False
    """Of generation: whether each head reads for itself."""
    splits: bool = True
    """Of generation: whether keys may be split."""

    @property
    def pace(self) -> float:
        """Rate over that on 16 bits."""
        return 2.0 if self.eight_bits else 1.0


@dataclass(frozen=True, slots=True)
class ContextConstants:
    """What is fitted of context attention in one format on one device."""

    launch: Real
    matrix: Real
    """Share of the matrix peak."""
    unit: Real
    """Seconds that each unit loses on its bundle."""
    softmax: Real
    """Seconds of one score on one bundle."""
    prepare: Real
    """Passes over queries, keys, values and results before and after, at the memory's peak."""
    mask: Real = 0.0
    """Blocks of scores that the ends of a window cost beside."""


@dataclass(frozen=True, slots=True)
class ContextCall:
    """Causal attention over `tokens` of each sequence; a window of 0 keys is none."""

    heads: Real
    kv_heads: Real
    head_size: Real
    window: Real
    batch: Real
    tokens: Real
    format: AttentionFormat

    @property
    def least_flops(self) -> Real:
        """FLOPs at the rate on 16 bits below which no kernel comes: those of the pairs that are left by mask and window."""
        reach = _reach(self.window, self.tokens)
        pairs = reach * self.tokens - reach * reach / 2.0
        return 4.0 * self.batch * self.heads * self.head_size * pairs / self.format.pace


def context_time(call: ContextCall, constants: ContextConstants, hardware: Hardware) -> Real:
    """Seconds on a device that is built for 16 bits."""
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
    """What is fitted of generation attention in one format on one device."""

    launch: Real
    stream: Real
    """Share of the memory's peak."""
    unit: Real
    """Seconds of a unit, however few keys it has."""
    serial: Real
    """Seconds of one key in a part."""
    group: Real = 0.0
    """Seconds of a unit for each 64 values of each head that shares its keys."""
    reduction: Real = 0.0
    """Seconds to put parts together."""
    cache: Real = np.inf
    """Bytes a second at which heads that read for themselves find again what another has read."""


@dataclass(frozen=True, slots=True)
class GenerationCall:
    """One token a sequence that attends to `keys`, its own among them; a window of 0 keys is none."""

    heads: Real
    kv_heads: Real
    head_size: Real
    window: Real
    batch: Real
    keys: Real
    format: AttentionFormat


def generation_time(call: GenerationCall, constants: GenerationConstants, hardware: Hardware) -> Real:
    """Seconds on a device that is built for 16 bits."""
    form, group = call.format, call.heads / call.kv_heads
    reach = _reach(call.window, call.keys)
    kept = 2.0 * call.batch * reach * call.head_size * form.cache_bytes
    queries = 2.0 * call.batch * call.heads * call.head_size * _VALUE_BYTES
    read = (kept * call.kv_heads + queries) / (hardware.dram.bandwidth * constants.stream)
    unit = constants.unit if form.alone else constants.unit + constants.group * (group * call.head_size / _HEAD)
    if form.alone:
        read = read + np.where(group > 1.0, kept * call.heads / constants.cache, 0.0)
    units = call.batch * (call.heads if form.alone else call.kv_heads)
    parts = np.minimum(np.floor(_WAVES * hardware.bundles / units), np.ceil(call.keys / _PART)) if form.splits else 1.0
    parts = np.maximum(parts, 1.0)
    serial = np.minimum(reach, call.keys / parts) * constants.serial
    time = constants.launch + root(root(read, serial), units * unit / hardware.bundles)
    return time + np.where(np.greater(parts, 1.0), constants.reduction, 0.0)


def _reach(window: Real, keys: Real) -> Real:
    """Keys that a window leaves of so many."""
    return np.where(np.greater(window, 0.0), np.minimum(window, keys), keys)


def _power_of_two(size: Real) -> Real:
    """The least one that is not smaller."""
    share, exponent = np.frexp(size)
    return np.asarray(np.ldexp(1.0, exponent - (share == 0.5)), np.float64)
