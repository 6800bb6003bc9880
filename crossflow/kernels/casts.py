"""What it takes to bring operands of products into 8 or 4 bits, as Transformer Engine does in training.

Of each product with weights the input is cast on the way forward and the gradient of the result on the way back, once each: kernels that
read 16 bits and write v bytes a value (`Transformer.value_bytes`), and v once more for the product that gives the weights' gradients, which
reads its operands in the other direction: a transposed copy on Hopper, whose products of 8 bits take one layout alone, and a second set of
blocks where scales are of blocks. Bytes a value, by what the scales are taken from (`Transformer.scaling`):

    delayed       2 + 2 v     scales of earlier steps. A norm right before a product writes v in place of 2, and 2 v to transpose follow
    tensorwise    4 + 2 v     scales of this tensor: one pass more for its largest value ("requires reading the tensor twice")
    blocks        2 + 2 v     scales of blocks, within one pass
    rows          6 + 2 v     scales of rows, which differ in the other direction: what was not cast is transposed and cast once more

With sequence parallelism what ranks hand each other (inputs of the products that are split by columns, gradients of those split by rows) is
cast before it is gathered, each rank its part, and transposed after it, whole: read v and write v. With scales of rows it is gathered as it
was, and each rank casts the whole ("For rowwise recipes ... all-gather happens in high precision", pytorch/torchtitan,
models/llama3/infra/parallelize.py, 018740b7; bytes by pytorch/ao, torchao/testing/training/roofline_utils.py, 05980129), and the backward
product that gives the input's gradient is scaled by a kernel of its own, 4 bytes a value, since the library's has no scales of rows
(`post_inverse_scale` of torchao/float8, addmm_float8_unwrapped, pull request 1325). Other sources: NVIDIA/TransformerEngine,
docs/features/low_precision_training (fp8_current_scaling.rst 41f6cbf1; performance_considerations.rst 0bd7f52c, tables 1 and 2 and
"Quantization fusions": on Hopper columnwise tensors are transposed in memory). On Blackwell a tensor with one scale serves both
directions, so that tensorwise casts are priced v too long there. Frozen weights have no gradients, and their products need one direction.

What is not cast: attention's core, the router, adapters, the head and the embedding. Weights are cast once a step (`is_first_microbatch`,
or 8-bit weights that the optimizer writes), which with 6 bytes a weight is a few milliseconds; that is not priced. With scales of rows they
are cast for each of their products, 4 bytes a weight more than values in all, since nothing keeps them; that is.
"""

from functools import reduce
from operator import add

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.projections import OUTPUT, QUERIES, WIDE, named_projections
from crossopt.crossflow.ranks import Ranks
from crossopt.crossflow.roofline import NOTHING, Cost, Product, stream_cost
from crossopt.crossflow.workload import NARROW, Transformer

_BY_COLUMNS = (QUERIES, "queries", "queries up", "keys, values up", "shared inner product")
_BY_ROWS = (OUTPUT, "shared outer product")
"""How tensor parallelism splits products whose tokens it gathers and scatters; the feed-forward part joins them where there are no experts,
to which tokens come already gathered."""


def gathered_share(model: Transformer) -> float:
    """Of the bytes of an activation what tensor ranks hand each other of inputs: what was cast, but with scales of rows."""
    return 1.0 if model.scaling == "rows" else model.kept_share


def casts(model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> Cost:
    """All of a layer in one direction; nothing from 16 bits on."""
    if model.precision not in NARROW:
        return NOTHING
    return reduce(add, (cast(name, one, model, ranks, hardware, backward) for name, one in named_projections(model, ranks)))


def cast(name: str, product: Product, model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> Cost:
    """That of one product of a layer: of its input, or backward of the gradient of its result."""
    if model.precision not in NARROW or name in WIDE:
        return NOTHING
    values = product.rows * (product.columns if backward else product.depth) * product.count
    if model.scaling == "rows":
        return _by_rows(model, product, values, hardware, backward)
    parts = ranks.norm_split() if _is_gathered(name, model, backward) else 1.0
    size, kernels = _fused_with_norm(model, parts) if _is_normed(name, model, backward) else _alone(model, parts)
    return stream_cost(size * values, 2.0 * values, hardware, kernels)


def _by_rows(model: Transformer, product: Product, values: Real, hardware: Hardware, backward: bool) -> Cost:
    """In both directions, with what scales the gradient of the input, and the weights, anew for each of their products."""
    wide, narrow = model.activation_bytes, model.value_bytes
    if model.lora_rank:
        return stream_cost((wide + narrow) * values, 2.0 * values, hardware)
    weights, inputs = product.depth * product.columns * product.count, product.rows * product.depth * product.count
    cast = stream_cost((3.0 * wide + 2.0 * narrow) * values, 2.0 * values, hardware, 2.0)
    again = stream_cost(((3.0 if backward else 1.0) * wide + narrow) * weights, 2.0 * weights, hardware, 2.0 if backward else 1.0)
    return cast + again + (stream_cost(2.0 * wide * inputs, inputs, hardware) if backward else NOTHING)


def _alone(model: Transformer, parts: Real) -> tuple[Real, Real]:
    """Bytes a value of the whole tensor and kernels, where each rank casts one of so many parts."""
    passes, narrow = (2.0 if model.scaling == "tensorwise" else 1.0), model.value_bytes
    read = passes * model.activation_bytes
    if model.lora_rank:
        return (read + narrow) / parts, passes
    split = np.greater(parts, 1.5)
    size = np.where(split, (read + narrow) / parts + 2.0 * narrow, read + 2.0 * narrow)
    return size, np.where(split, passes + 1.0, passes)


def _fused_with_norm(model: Transformer, parts: Real) -> tuple[Real, Real]:
    """To transpose what the norm has cast, less what it no longer writes."""
    narrow = model.value_bytes
    if model.lora_rank:
        return 0.0, 0.0
    return np.maximum(2.0 * narrow - (model.activation_bytes - narrow) / parts, 0.0), 1.0


def _is_gathered(name: str, model: Transformer, backward: bool) -> bool:
    """Whether ranks of tensor and sequence parallelism hold a part each of what is cast."""
    dense = ("outer product" if backward else "inner product") if model.experts == 1 else ""
    return name == dense or name in (_BY_ROWS if backward else _BY_COLUMNS)


def _is_normed(name: str, model: Transformer, backward: bool) -> bool:
    """Whether the norm before the product casts its input: scales must be known before."""
    normed = name == QUERIES or (name == "inner product" and model.experts == 1)
    return model.scaling == "delayed" and normed and not backward
