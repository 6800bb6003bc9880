"""What likely mistakes make of the figures of assignment 1: its formulas in plain arithmetic, each with one thing left out or wrong.

A test holds each formula without a mistake to that of `crossflow`.
"""

from collections.abc import Callable, Mapping
from typing import Any

Shape = dict[str, Any]
Formulas = Mapping[str, Callable[..., float]]
"""A mistake in a sentence, and the formula that makes it."""


def weights(shape: Shape, *, norms: float = 2, grouped: bool = True, matrices: int = 0, output: bool = True, head: float = 1.0) -> float:
    """W = h d (2 a + 2 g) + m h f + 2 h, with m = 3 matrices of a gated feed-forward part and 2 of another."""
    hidden, width = shape["hidden"], head * shape["hidden"] / shape["heads"]
    heads, shared = shape["heads"], shape["kv_heads"] if grouped else shape["heads"]
    attention = hidden * width * ((2 if output else 1) * heads + 2 * shared)
    return float(attention + (matrices or (3 if shape["gated"] else 2)) * hidden * shape["ffn"] + norms * hidden)


def flops(
    shape: Shape,
    sequences: int,
    *,
    passes: float = 3,
    head: float = 1,
    scores: float = 4,
    each: float = 2,
    grouped: bool = True,
    matrices: int = 0,
    output: bool = True,
) -> float:
    """passes * tokens * (L (2 W + 4 s h) + 2 h V), W without norms."""
    layer = each * weights(shape, norms=0, grouped=grouped, matrices=matrices, output=output)
    layer += scores * each / 2 * shape["sequence"] * shape["hidden"]
    network = shape["layers"] * layer + head * each * shape["hidden"] * shape["vocabulary"]
    return float(passes * sequences * shape["sequence"] * network)


def traffic(rows: int, depth: int, columns: int, *, value: float = 2, left: float = 1, right: float = 1, result: float = 1) -> float:
    """2 (m k + k n + m n)."""
    return value * (left * rows * depth + right * depth * columns + result * rows * columns)


def activations(
    shape: Shape,
    microbatch: int,
    tensor: int,
    recompute: bool,
    *,
    norms: float = 4,
    inner: int = 0,
    statistics: float = 4,
    value: float = 2,
    whole_head: bool = True,
    split: bool = True,
) -> float:
    """tokens (2 (4 h / t + d (2 a / t + 2 max(g / t, 1)) + m f / t) + 4 a / t)."""
    hidden, width = shape["hidden"], shape["hidden"] // shape["heads"]
    tokens, parts = microbatch * shape["sequence"], tensor if split else 1
    if recompute:
        return float(value * tokens * hidden / parts)
    heads, shared = shape["heads"] / tensor, shape["kv_heads"] / tensor
    shared = max(shared, 1.0) if whole_head else shared
    ffn = (inner or (3 if shape["gated"] else 2)) * shape["ffn"] / tensor
    return float(tokens * (value * (norms * hidden / parts + width * (2 * heads + 2 * shared) + ffn) + statistics * heads))


def state(
    shape: Shape,
    tensor: int,
    data: int,
    zero: int,
    *,
    sizes: tuple[float, float, float] = (2, 4, 12),
    stages: tuple[int, int, int] = (3, 2, 1),
    split_norms: bool = False,
    norms: int = 2,
    grouped: bool = True,
    matrices: int = 0,
) -> float:
    """Bytes of weights, gradients and optimizer, each shared by the replicas from its stage of ZeRO on."""
    split = weights(shape, norms=0, grouped=grouped, matrices=matrices) / tensor
    owned = split + norms * shape["hidden"] / (tensor if split_norms else 1)
    return float(sum(size * owned / (data if zero >= stage else 1) for size, stage in zip(sizes, stages, strict=True)))


def seconds(
    rows: int, depth: int, columns: int, peak: float, bandwidth: float, *, each: float = 2, value: float = 2, result: float = 1
) -> tuple[float, float]:
    """Of arithmetic, and of memory."""
    return each * rows * depth * columns / peak, traffic(rows, depth, columns, value=value, result=result) / bandwidth


_GROUPED = "there are as many heads of keys and values as of queries (`kv_heads` says how many there are)"
_GATED = "a gated feed-forward part has two matrices (SwiGLU has three)"
_PLAIN = "a feed-forward part that is not gated has three matrices (GELU has two)"

WEIGHTS: Formulas = {
    "the two norms are left out": lambda shape: weights(shape, norms=0),
    "there is one norm where there are two": lambda shape: weights(shape, norms=1),
    "norms have a bias besides their scale": lambda shape: weights(shape, norms=4),
    _GROUPED: lambda shape: weights(shape, grouped=False),
    _GATED: lambda shape: weights(shape, matrices=2),
    _PLAIN: lambda shape: weights(shape, matrices=3),
    "the output projection is left out": lambda shape: weights(shape, output=False),
}
FLOPS: Formulas = {
    "the backward pass is left out (it takes twice its forward pass)": lambda *given: flops(*given, passes=1),
    "the backward pass is counted once (it takes twice its forward pass)": lambda *given: flops(*given, passes=2),
    "a forward pass is computed again, which nobody asked for": lambda *given: flops(*given, passes=4),
    "the head of the network is left out": lambda *given: flops(*given, head=0),
    "the embedding is counted as a product (it is a table)": lambda *given: flops(*given, head=2),
    "half of the scores are counted (all s x s of them are)": lambda *given: flops(*given, scores=2),
    "scores and their product with the values are left out": lambda *given: flops(*given, scores=0),
    "a product of a row and a column is counted as m k n FLOPs (a multiplication and an addition are two)": lambda *given: flops(
        *given, each=1
    ),
    _GROUPED: lambda *given: flops(*given, grouped=False),
    _GATED: lambda *given: flops(*given, matrices=2),
    _PLAIN: lambda *given: flops(*given, matrices=3),
    "the output projection is left out": lambda *given: flops(*given, output=False),
}
TRAFFIC: Formulas = {
    "a value has four bytes (bf16 has two)": lambda *given: traffic(*given, value=4),
    "values are counted, not their bytes": lambda *given: traffic(*given, value=1),
    "the result is not written": lambda *given: traffic(*given, result=0),
    "the result is read before it is written": lambda *given: traffic(*given, result=2),
    "the first operand is not read": lambda *given: traffic(*given, left=0),
    "the second operand is not read": lambda *given: traffic(*given, right=0),
}
SECONDS: Formulas = {
    "arithmetic and memory are added up (they overlap)": lambda *given: sum(seconds(*given)),
    "the shorter of arithmetic and memory is taken": lambda *given: min(seconds(*given)),
    "arithmetic alone is counted": lambda *given: seconds(*given)[0],
    "memory alone is counted": lambda *given: seconds(*given)[1],
    "a multiplication and an addition are counted as one FLOP": lambda *given: max(seconds(*given, each=1)),
    "a value has four bytes (bf16 has two)": lambda *given: max(seconds(*given, value=4)),
    "values are counted, not their bytes": lambda *given: max(seconds(*given, value=1)),
    "the result is not written": lambda *given: max(seconds(*given, result=0)),
}
ACTIVATIONS: Formulas = {
    "each norm is counted by one tensor (what goes in and what comes out are two)": lambda *given: activations(*given, norms=2),
    "four more bytes for each token and head are left out": lambda *given: activations(*given, statistics=0),
    "the whole head of keys and of values that a device keeps is split": lambda *given: activations(*given, whole_head=False),
    "inside the gated part two tensors are kept (both halves and their product are three)": lambda *given: activations(*given, inner=2),
    "inside the part that is not gated three tensors are kept (before and after GELU are two)": lambda *given: activations(*given, inner=3),
    "values are counted, not their bytes": lambda *given: activations(*given, value=1),
    "sequence parallelism is left out: what is h wide is not split": lambda *given: activations(*given, split=False),
    "what recomputation drops is still kept": lambda shape, microbatch, tensor, _: activations(shape, microbatch, tensor, False),
    "only the input is kept, also without recomputation": lambda shape, microbatch, tensor, _: activations(shape, microbatch, tensor, True),
    "one sequence is counted, not those of a microbatch": lambda shape, _, tensor, recompute: activations(shape, 1, tensor, recompute),
}
STATE: Formulas = {
    "gradients have two bytes (they have four)": lambda *given: state(*given, sizes=(2, 2, 12)),
    "the optimizer has eight bytes (it keeps the single-precision weight, too)": lambda *given: state(*given, sizes=(2, 4, 8)),
    "weights have four bytes (they have two)": lambda *given: state(*given, sizes=(4, 4, 12)),
    "the norms are split by tensor parallelism (they are copied)": lambda *given: state(*given, split_norms=True),
    "the two norms are left out": lambda *given: state(*given, norms=0),
    "ZeRO shares all from its first stage on": lambda *given: state(*given, stages=(1, 1, 1)),
    "the stages of ZeRO begin with the weights (the optimizer's state comes first)": lambda *given: state(*given, stages=(1, 2, 3)),
    "each stage of ZeRO is taken for the one before": lambda *given: state(*given, stages=(4, 3, 2)),
    "each stage of ZeRO shares one part alone": lambda shape, tensor, data, zero: state(
        shape, tensor, data, zero, stages=(3 if zero == 3 else 4, 2 if zero == 2 else 4, 1 if zero == 1 else 4)
    ),
    _GROUPED: lambda *given: state(*given, grouped=False),
    _GATED: lambda *given: state(*given, matrices=2),
    _PLAIN: lambda *given: state(*given, matrices=3),
}
