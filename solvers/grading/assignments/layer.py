"""Assignment 1: weights, FLOPs, bytes and memory of a transformer layer, judged by the formulas of `crossflow`.

What likely mistakes make of the figures of assignment 1: its formulas in plain arithmetic, each with one thing left out or wrong.

A test holds each formula without a mistake to that of `crossflow`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from crossopt.crossflow.memory import layer_activations, layer_weights
from crossopt.crossflow.parameters import layer_parameters, step_flops
from crossopt.crossflow.recomputation import number_of
from crossopt.crossflow.roofline import Product
from crossopt.crossflow.sharding import Sharding, share_out
from crossopt.crossflow.workload import Transformer
from crossopt.solvers.grading.marks import Assignment, Case, Slip, Task, Verdict, figure, given_first, public
from crossopt.solvers.grading.running import Call

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


_CASES = 4
_WEIGHT, _GRADIENT, _OPTIMIZER = 2.0, 4.0, 12.0


def tasks(seed: str) -> tuple[Task, ...]:
    """The public case, and four shapes of each kind: with and without gated feed-forward parts and shared keys and values."""
    random, handed = Random(f"{seed}/01"), public("01-transformer-layer")
    shapes = [_shape(random, gated, grouped) for gated in (False, True) for grouped in (False, True)]
    given, sides, device = handed["shape"], tuple(handed["product"].values()), tuple(handed["device"].values())
    flops = [(given, *handed["step_flops"].values()), *((shape, random.choice((64, 192, 512))) for shape in shapes)]
    products = [_sides(random) for _ in range(_CASES)]
    timed = [_device(random, index) for index in range(_CASES)]
    layers = [(given, *handed["layer_activations"].values()), *(_layer_case(random, shape, index) for index, shape in enumerate(shapes))]
    states = [(given, *handed["state_bytes"].values()), *(_state(random, shape, zero) for zero, shape in enumerate(shapes))]
    return (
        _task("weights of a layer", 9, "layer_weights", [(shape,) for shape in (given, *shapes)], _weights, WEIGHTS),
        _task("FLOPs of a training step", 12, "step_flops", flops, _flops, FLOPS),
        _task("bytes of a matrix product", 6, "product_bytes", [sides, *products], _product_bytes, TRAFFIC),
        _task("seconds of a matrix product", 9, "product_seconds", [(*sides, *device), *timed], product_seconds, SECONDS),
        _task("activations that a layer keeps", 12, "layer_activations", layers, _activations, ACTIVATIONS),
        _task("bytes of the training state", 12, "state_bytes", states, _bytes, STATE),
    )


def _task(name: str, points: int, function: str, given: Sequence[tuple[Any, ...]], right: Callable[..., float], mistakes: Formulas) -> Task:
    """A task whose cases are judged by a formula of the same arguments, and by those that likely mistakes make of it."""

    def judge(arguments: tuple[Any, ...]) -> Callable[[Any], Verdict]:
        slips = [Slip(mistake, formula(*arguments)) for mistake, formula in mistakes.items()]
        return partial(figure, right=right(*arguments), slips=slips)

    return Task(f"{name}: {function}", points, given_first(Case(_text(shape), Call(function, shape), judge(shape)) for shape in given))


def _shape(random: Random, gated: bool, grouped: bool) -> Shape:
    heads = random.choice((16, 32, 64))
    hidden = heads * random.choice((64, 96, 128))
    return {
        "layers": random.randrange(12, 97, 4),
        "hidden": hidden,
        "heads": heads,
        "kv_heads": heads // 8 if grouped else heads,
        "ffn": hidden * 4 if not gated else hidden * random.choice((5, 7)) // 2,
        "vocabulary": random.randrange(32_000, 131_073, 128),
        "sequence": random.choice((1024, 2048, 4096, 8192)),
        "gated": gated,
    }


def _text(arguments: tuple[Any, ...]) -> str:
    """What is asked, by its shape or its product."""
    if isinstance(shape := arguments[0], dict):
        return f"{'SwiGLU' if shape['gated'] else 'GELU'}, {shape['heads']} heads with {shape['kv_heads']} of keys and values"
    rows, depth, columns = arguments[:3]
    return f"{rows} x {depth} by {depth} x {columns}"


def _sides(random: Random) -> tuple[int, int, int]:
    """Rows, depth and columns, no two of them alike."""
    return tuple(random.sample((256, 512, 1024, 2048, 4096, 8192, 16384), 3))  # type: ignore[return-value]


def _device(random: Random, index: int) -> tuple[int, int, int, float, float]:
    """A product and a device; products of one row in every second case, which no device computes at its peak, and large ones else."""
    rows, depth, columns = random.sample((1024, 2048, 4096, 8192, 16384), 3)
    return 1 if index % 2 else rows, depth, columns, random.choice((312e12, 989e12)), random.choice((2.0e12, 3.35e12))


def _layer_case(random: Random, shape: Shape, index: int) -> tuple[Shape, int, int, bool]:
    """One that recomputes, and one of which a device has less than a head of keys and values; never a single sequence on all that count."""
    tensor = 2 * shape["kv_heads"] if index == 3 else random.choice((2, 4, 8))
    return shape, random.choice((2, 4, 8)), tensor, index == 2


def _state(random: Random, shape: Shape, zero: int) -> tuple[Shape, int, int, int]:
    """No device has less than a head of keys and values, as one might hold that it then owns the weights of a whole one."""
    return shape, random.choice([tensor for tensor in (2, 4, 8) if tensor <= shape["kv_heads"]]), random.choice((4, 8, 16)), zero


def _model(shape: Shape, sequences: int = 1) -> Transformer:
    return Transformer("course", global_batch=sequences, tied=True, learned_positions=False, biases=False, **shape)


def _weights(shape: Shape) -> float:
    return float(layer_parameters(_model(shape)))


def _flops(shape: Shape, sequences: int) -> float:
    return float(step_flops(_model(shape, sequences)))


def _product_bytes(rows: int, depth: int, columns: int) -> float:
    """Each operand is read once and the result written once, two bytes a value."""
    return 2.0 * (rows * depth + depth * columns + rows * columns)


def product_seconds(rows: int, depth: int, columns: int, peak: float, bandwidth: float) -> float:
    """The roofline (Williams, Waterman, Patterson 2009)."""
    return max(float(Product(rows, depth, columns).flops) / peak, _product_bytes(rows, depth, columns) / bandwidth)


def _activations(shape: Shape, microbatch: int, tensor: int, recompute: bool) -> float:
    return float(layer_activations(_model(shape), _sharding(tensor, 1, 0, microbatch), number_of("full" if recompute else "none")))


def _bytes(shape: Shape, tensor: int, data: int, zero: int) -> float:
    split = _sharding(tensor, data, zero, 1)
    owned = layer_weights(_model(shape), split)
    return float(sum(size * share_out(split, owned, stage) for size, stage in ((_WEIGHT, 3), (_GRADIENT, 2), (_OPTIMIZER, 1))))


def _sharding(tensor: int, data: int, zero: int, microbatch: int) -> Sharding:
    """Sequence parallelism wherever there is tensor parallelism."""
    return Sharding(
        tensor=tensor,
        context=1,
        pipeline=1,
        data=data,
        expert=1,
        microbatch=microbatch,
        interleave=1,
        sequence_parallel=1,
        recompute=0,
        zero=zero,
        offload=0,
        microbatches=1,
    )


LAYER = Assignment("01-transformer-layer", "Count a transformer layer", tasks)
