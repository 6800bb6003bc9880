"""The core of attention on one device: scores, softmax and their product with the values, fused in one kernel or each by itself."""

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.ranks import Ranks, local_groups
from crossopt.crossflow.roofline import Cost, Product, backward_costs, fused_attention_cost, product_costs, stream_cost
from crossopt.crossflow.workload import Transformer

_HEAD_ALIGNMENT = 64.0
"""Fused attention pads the head width to this many elements."""
_FUSED_SOFTMAX = 4.0
"""Score matrices of a rank, in multiples of which scale, mask and softmax are one kernel."""
_UNFUSED_KERNELS, _UNFUSEDPASSES = 5.0, 10.0
"""Kernels and passes over the scores that it takes more without that kernel: two casts, scale, mask and copy."""


def attention_core(model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    """Scores, softmax and their product with the values."""
    if model.attention == "flash":
        return fused_attention_cost(_core_flops(model, ranks), _operand_bytes(model, ranks), hardware, model.attention_rate)
    scores, values = _score_products(model, ranks)
    size = model.activation_bytes
    first, second = product_costs((scores, values), size, hardware)
    return first + second + _softmax_cost(model, ranks, hardware, passes=2.0, flops=5.0)


def attention_core_backward(model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    """Gradients of the core; fused attention computes the scores again, 2.5 times the forward FLOPs (Dao 2023)."""
    if model.attention == "flash":
        flops, size = 2.5 * _core_flops(model, ranks), 2.0 * _operand_bytes(model, ranks)
        return fused_attention_cost(flops, size, hardware, model.attention_rate)
    scores, values = _score_products(model, ranks)
    size = model.activation_bytes
    first, second = backward_costs((scores, values), size, hardware)
    return first + second + _softmax_cost(model, ranks, hardware, passes=3.0, flops=8.0)


def _core_flops(model: Transformer, ranks: Ranks) -> Real:
    """4 b s^2 a d / (t c), half of it under the causal mask, with the head width padded; in a window its reach for s."""
    padded = (np.ceil(width / _HEAD_ALIGNMENT) * _HEAD_ALIGNMENT for width in (model.score_width, model.value_width))
    return ranks.tokens(model) * (model.reach * model.heads * float(sum(padded))) / ranks.tensor


def _operand_bytes(model: Transformer, ranks: Ranks) -> Real:
    """Queries and results of the rank's tokens, keys and values."""
    heads = model.heads / ranks.tensor + local_groups(model, ranks)
    return ranks.tokens(model) * heads * (model.score_width + model.value_width) * model.activation_bytes


def _score_products(model: Transformer, ranks: Ranks) -> tuple[Product, Product]:
    """One product a head and sample: scores = Q K^T over the whole sequence, whatever the mask leaves of them, and scores times V."""
    rows, count = model.sequence / ranks.context, ranks.microbatch * model.heads / ranks.tensor
    length = float(model.sequence)
    return Product(rows, float(model.score_width), length, count), Product(rows, length, float(model.value_width), count)


def _score_count(model: Transformer, ranks: Ranks) -> Real:
    return ranks.tokens(model) * model.sequence * model.heads / ranks.tensor


def _softmax_cost(model: Transformer, ranks: Ranks, hardware: Hardware, passes: float, flops: float) -> Cost:
    """Scale, mask, softmax and dropout of all scores in one direction.

    One kernel does the first three where it can: Megatron-LM's takes score matrices in fours. Otherwise each is a kernel of its own. A
    cap, c tanh(x / c), is three kernels more, of six passes forward and seven back. Fused attention caps its scores on the way.
    """
    capped = 1.0 if model.attention_cap else 0.0
    alone = np.where(np.mod(ranks.microbatch * model.heads / ranks.tensor, _FUSED_SOFTMAX) > 0.5, 1.0, 0.0)
    size = _softmax_bytes(model, passes) + (alone * _UNFUSEDPASSES + capped * (4.0 + passes)) * model.activation_bytes
    count = _score_count(model, ranks)
    return stream_cost(count * size, flops * count, hardware, 2.0 + alone * _UNFUSED_KERNELS + 3.0 * capped)


def _softmax_bytes(model: Transformer, passes: float) -> float:
    """Bytes a score: the passes of the softmax, and two passes and a one-byte mask for dropout."""
    return model.activation_bytes * (passes + 2.0) + 1.0 if model.dropout else model.activation_bytes * passes
