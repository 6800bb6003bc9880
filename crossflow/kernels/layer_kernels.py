"""Kernels of a transformer layer other than weight products: attention core, norms, activations, routing and casts."""

from functools import reduce
from operator import add

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.exchanges.experts import permutations
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.projections import OUTPUT, QUERIES, WIDE, named_projections
from crossopt.crossflow.ranks import Ranks, expert_split, local_groups, routed_tokens
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.roofline import NOTHING, Cost, Product, backward_costs, fused_attention_cost, product_costs, stream_cost
from crossopt.crossflow.workload import NARROW, Transformer

# What it takes to bring operands of products into 8 or 4 bits, as Transformer Engine does in training.
#
# Of each product with weights the input is cast on the way forward and the gradient of the result on the way back, once each: kernels that
# read 16 bits and write v bytes a value (`Transformer.value_bytes`), and v once more for the product that gives the weights' gradients,
# which reads its operands in the other direction: a transposed copy on Hopper, whose products of 8 bits take one layout alone, and a second
# set of blocks where scales are of blocks. Bytes a value, by what the scales are taken from (`Transformer.scaling`):
#
#     delayed       2 + 2 v     scales of earlier steps. A norm right before a product writes v in place of 2, and 2 v to transpose follow
#     tensorwise    4 + 2 v     scales of this tensor: one pass more for its largest value ("requires reading the tensor twice")
#     blocks        2 + 2 v     scales of blocks, within one pass
#     rows          6 + 2 v     scales of rows, which differ in the other direction: what was not cast is transposed and cast once more
#
# With sequence parallelism what ranks hand each other (inputs of the products that are split by columns, gradients of those split by rows)
# is cast before it is gathered, each rank its part, and transposed after it, whole: read v and write v. With scales of rows it is gathered
# as it was, and each rank casts the whole ("For rowwise recipes ... all-gather happens in high precision", pytorch/torchtitan,
# models/llama3/infra/parallelize.py, 018740b7; bytes by pytorch/ao, torchao/testing/training/roofline_utils.py, 05980129), and the backward
# product that gives the input's gradient is scaled by a kernel of its own, 4 bytes a value, since the library's has no scales of rows
# (`post_inverse_scale` of torchao/float8, addmm_float8_unwrapped, pull request 1325). Other sources: NVIDIA/TransformerEngine,
# docs/features/low_precision_training (fp8_current_scaling.rst 41f6cbf1; performance_considerations.rst 0bd7f52c, tables 1 and 2 and
# "Quantization fusions": on Hopper columnwise tensors are transposed in memory). On Blackwell a tensor with one scale serves both
# directions, so that tensorwise casts are priced v too long there. Frozen weights have no gradients, and their products need one direction.
#
# What is not cast: attention's core, the router, adapters, the head and the embedding. Weights are cast once a step (`is_first_microbatch`,
# or 8-bit weights that the optimizer writes), which with 6 bytes a weight is a few milliseconds; that is not priced. With scales of rows
# they are cast for each of their products, 4 bytes a weight more than values in all, since nothing keeps them; that is.

_BY_COLUMNS = (QUERIES, "queries", "queries up", "keys, values up", "shared inner product")
_BY_ROWS = (OUTPUT, "shared outer product")
"""How tensor parallelism splits products whose tokens it gathers and scatters; the feed-forward part joins them where there are no experts,
to which tokens come already gathered."""


def gathered_share(model: Transformer) -> float:
    """Bytes of communicated activations relative to 16 bits: cast values without row scales."""
    return 1.0 if model.scaling == "rows" else model.kept_share


def casts(model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> Cost:
    """Cost of all casts of a layer in one direction; zero from 16 bits on."""
    if model.precision not in NARROW:
        return NOTHING
    return reduce(add, (cast(name, one, model, ranks, hardware, backward) for name, one in named_projections(model, ranks)))


def cast(name: str, product: Product, model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> Cost:
    """Cost of the cast for one product: of its input, or in the backward pass of its result's gradient."""
    if model.precision not in NARROW or name in WIDE:
        return NOTHING
    values = product.rows * (product.columns if backward else product.depth) * product.count
    if model.scaling == "rows":
        return _by_rows(model, product, values, hardware, backward)
    parts = ranks.norm_split() if _is_gathered(name, model, backward) else 1.0
    size, kernels = _fused_with_norm(model, parts) if _is_normed(name, model, backward) else _alone(model, parts)
    return stream_cost(size * values, 2.0 * values, hardware, kernels)


def _by_rows(model: Transformer, product: Product, values: Real, hardware: Hardware, backward: bool) -> Cost:
    """Cost of casts in both directions, including scales of input gradients and the repeated casts of weights."""
    wide, narrow = model.activation_bytes, model.value_bytes
    if model.lora_rank:
        return stream_cost((wide + narrow) * values, 2.0 * values, hardware)
    weights, inputs = product.depth * product.columns * product.count, product.rows * product.depth * product.count
    cast = stream_cost((3.0 * wide + 2.0 * narrow) * values, 2.0 * values, hardware, 2.0)
    again = stream_cost(((3.0 if backward else 1.0) * wide + narrow) * weights, 2.0 * weights, hardware, 2.0 if backward else 1.0)
    return cast + again + (stream_cost(2.0 * wide * inputs, inputs, hardware) if backward else NOTHING)


def _alone(model: Transformer, parts: Real) -> tuple[Real, Real]:
    """Bytes per value of the whole tensor, and kernels, if each rank casts one of this many parts."""
    passes, narrow = (2.0 if model.scaling == "tensorwise" else 1.0), model.value_bytes
    read = passes * model.activation_bytes
    if model.lora_rank:
        return (read + narrow) / parts, passes
    split = np.greater(parts, 1.5)
    size = np.where(split, (read + narrow) / parts + 2.0 * narrow, read + 2.0 * narrow)
    return size, np.where(split, passes + 1.0, passes)


def _fused_with_norm(model: Transformer, parts: Real) -> tuple[Real, Real]:
    """Transposition of the norm's cast output, less what the norm no longer writes."""
    narrow = model.value_bytes
    if model.lora_rank:
        return 0.0, 0.0
    return np.maximum(2.0 * narrow - (model.activation_bytes - narrow) / parts, 0.0), 1.0


def _is_gathered(name: str, model: Transformer, backward: bool) -> bool:
    """Whether tensor and sequence parallel ranks each hold a part of the cast tensor."""
    dense = ("outer product" if backward else "inner product") if model.experts == 1 else ""
    return name == dense or name in (_BY_ROWS if backward else _BY_COLUMNS)


def _is_normed(name: str, model: Transformer, backward: bool) -> bool:
    """Whether the norm before the product casts its output, for which scales must be known beforehand."""
    normed = name == QUERIES or (name == "inner product" and model.experts == 1)
    return model.scaling == "delayed" and normed and not backward


# What a layer does beside its products: norms, residual additions, activations, the routing of tokens and casts, each a stream.

PASSES = ((2.0, 2.0, 3.0), (3.0, 3.0, 5.0))
"""Passes over the values by a norm, GELU and SwiGLU, forward and backward."""
_EAGER = ((18.0, 2.0, 5.0), (36.0, 3.0, 9.0))
"""The same in 16 bits where each step is a kernel and norms go by single precision (RMSNorm of torchtitan's and Meta's Llama): to it 3,
square 4, mean 2, times the root 4, back 3, times the scale 2; backward 6 for the scale, 3, 12 for both factors, 12 for the square and the
sum of both ways, 3. A gate is bent (2) and multiplied (3); backward two products (6) and the bend (3)."""
_EAGER_KERNELS = ((6.0, 1.0, 2.0), (13.0, 1.0, 3.0))
_ROTATION, _ROTATION_KERNELS = 10.0, 3.0
"""Passes over queries and keys in one direction: to single precision 3, rotation 4, back 3."""


def passes_of(model: Transformer, backward: bool) -> tuple[float, float, float]:
    """FLOPs per value of a norm, GELU and SwiGLU."""
    return (_EAGER if model.eager else PASSES)[backward]


def _kernels(model: Transformer, backward: bool) -> tuple[float, float, float]:
    return _EAGER_KERNELS[backward] if model.eager else (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class ElementWise:
    """Cost of a layer beside its products: norms, two residual additions, activation, routing, and casts."""

    norms: Cost
    residuals: Cost
    activation: Cost
    routing: Cost
    casts: Cost
    sums: Cost = NOTHING
    """Cost of summing the gradients of one input over the products that take it."""

    def total(self) -> Cost:
        return self.norms + self.residuals + self.activation + self.routing + self.casts + self.sums


def element_wise(model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> ElementWise:
    """Cost of norms, two residual additions (with dropout), the activation, and for experts the sorting of tokens."""
    size, mask = model.activation_bytes, 1.0 if model.dropout else 0.0
    elements = ranks.tokens(model) / ranks.norm_split() * model.hidden
    return ElementWise(
        norms=_norms(model, ranks, hardware, backward),
        residuals=stream_cost(2.0 * (3.0 * size + mask) * elements, 4.0 * elements, hardware, 2.0),
        activation=reduce(add, activations(model, ranks, hardware, backward)[::-1]),
        routing=permutations(model, ranks, hardware),
        casts=casts(model, ranks, hardware, backward),
        sums=_sums(model, ranks, hardware) if backward and model.apart else NOTHING,
    )


def _sums(model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    """Cost of summing three gradients (attention) and two (gated feed-forward): each is read and the sum is written. What tensor ranks
    scatter is summed whole and by kernels of its own; else     the norm before does it, which reads one of them anyway and writes nothing
    more (wq, wk, wv, w1 and w3 are linear layers of their own     in torchtitan/models/llama3/model/model.py, 018740b7, and PyTorch's
    compiler fuses sums with what follows)."""
    taken, made = (5.0, 2.0) if model.gated else (3.0, 1.0)
    whole = ranks.tokens(model) * model.hidden * model.activation_bytes
    alone = np.greater(ranks.tensor, 1.5)
    passes = np.where(alone, taken + made, taken - made)
    return stream_cost(passes * whole, (taken - made) * whole / model.activation_bytes, hardware, np.where(alone, made, 0.0))


def _norms(model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> Cost:
    """Cost of the norms: of width hidden, and of queries and keys or of the latents."""
    wide = wide_norms(model, ranks, hardware, backward, float(model.norms))
    wide = wide + narrow_norms(model, ranks, hardware, backward) if model.latent or model.qk_norm else wide
    return wide + _rotations(model, ranks, hardware) if model.eager and not model.learned_positions else wide


def _rotations(model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    turned = ranks.tokens(model) * (model.heads / ranks.tensor + local_groups(model, ranks)) * float(model.head_width)
    return stream_cost(_ROTATION * model.activation_bytes * turned, 6.0 * turned, hardware, 2.0 * _ROTATION_KERNELS)


def narrow_norms(model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> Cost:
    size, passes = model.activation_bytes, passes_of(model, backward)[0]
    if model.latent:
        narrow = ranks.tokens(model) / ranks.norm_split() * float(model.query_rank + model.kv_rank)
        return stream_cost(passes * size * narrow, 8.0 * narrow, hardware, 2.0 if model.query_rank else 1.0)
    if model.qk_norm:
        narrow = ranks.tokens(model) * (model.heads / ranks.tensor + local_groups(model, ranks)) * float(model.head_width)
        return stream_cost(passes * size * narrow, 8.0 * narrow, hardware, 2.0)
    return NOTHING


def wide_norms(model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool, count: float) -> Cost:
    elements, passes = ranks.tokens(model) / ranks.norm_split() * model.hidden, passes_of(model, backward)[0]
    kernels = count * _kernels(model, backward)[0]
    return stream_cost(count * passes * model.activation_bytes * elements, 8.0 * count * elements, hardware, kernels)


def activations(model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> tuple[Cost, Cost]:
    """Cost of the activation over dense parts or shared experts, and over the rank's experts."""
    size, inner = model.activation_bytes, routed_tokens(model, ranks) * model.expert_width / expert_split(model, ranks)
    passes, kernels = (of(model, backward)[1 + model.gated] for of in (passes_of, _kernels))
    cost = stream_cost(passes * size * inner, 8.0 * inner, hardware, kernels)
    if model.experts == 1:
        return cost, NOTHING
    if not model.shared_experts:
        return NOTHING, cost
    inner = ranks.tokens(model) * (model.shared_experts * model.expert_width) / ranks.tensor
    return stream_cost(passes * size * inner, 8.0 * inner, hardware, kernels), cost


# The core of attention on one device: scores, softmax and their product with the values, fused in one kernel or each by itself.

_HEAD_ALIGNMENT = 64.0
"""Fused attention pads the head width to this many elements."""
_FUSED_SOFTMAX = 4.0
"""Number of score matrices of a rank must be a multiple of this for the fused scale, mask and softmax kernel."""
_UNFUSED_KERNELS, _UNFUSEDPASSES = 5.0, 10.0
"""Additional kernels and passes over the scores without that kernel: two casts, scale, mask and copy."""


def attention_core(model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    """Scores, softmax, and the product of the scores with the values."""
    if model.attention == "flash":
        return fused_attention_cost(_core_flops(model, ranks), _operand_bytes(model, ranks), hardware, model.attention_rate)
    scores, values = _score_products(model, ranks)
    size = model.activation_bytes
    first, second = product_costs((scores, values), size, hardware)
    return first + second + _softmax_cost(model, ranks, hardware, passes=2.0, flops=5.0)


def attention_core_backward(model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    """Gradients of attention's core; fused attention recomputes the scores, at 2.5 times the forward FLOPs (Dao 2023)."""
    if model.attention == "flash":
        flops, size = 2.5 * _core_flops(model, ranks), 2.0 * _operand_bytes(model, ranks)
        return fused_attention_cost(flops, size, hardware, model.attention_rate)
    scores, values = _score_products(model, ranks)
    size = model.activation_bytes
    first, second = backward_costs((scores, values), size, hardware)
    return first + second + _softmax_cost(model, ranks, hardware, passes=3.0, flops=8.0)


def _core_flops(model: Transformer, ranks: Ranks) -> Real:
    """FLOPs 4 b s^2 a d / (t c), halved by the causal mask, with padded head width; in a window its mean reach replaces s."""
    padded = (np.ceil(width / _HEAD_ALIGNMENT) * _HEAD_ALIGNMENT for width in (model.score_width, model.value_width))
    return ranks.tokens(model) * (model.reach * model.heads * float(sum(padded))) / ranks.tensor


def _operand_bytes(model: Transformer, ranks: Ranks) -> Real:
    """Bytes of queries and results of the rank's tokens, keys and values."""
    heads = model.heads / ranks.tensor + local_groups(model, ranks)
    return ranks.tokens(model) * heads * (model.score_width + model.value_width) * model.activation_bytes


def _score_products(model: Transformer, ranks: Ranks) -> tuple[Product, Product]:
    """One product per head and sample: scores = Q K^T over the whole sequence regardless of the mask, and scores times V."""
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
    """Bytes per score: the passes of the softmax, and two passes and a one-byte mask for dropout."""
    return model.activation_bytes * (passes + 2.0) + 1.0 if model.dropout else model.activation_bytes * passes
