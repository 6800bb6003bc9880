"""Assignment 1: weights, FLOPs, bytes and memory of a transformer layer, judged by the formulas of `crossflow`."""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from crossopt.crossflow.memory import layer_activations, layer_weights
from crossopt.crossflow.parameters import layer_parameters, step_flops
from crossopt.crossflow.recomputation import number_of
from crossopt.crossflow.roofline import Product
from crossopt.crossflow.sharding import Sharding, share_out
from crossopt.crossflow.workload import Transformer
from crossopt.solvers.grading.assignments.layer_slips import ACTIVATIONS, FLOPS, SECONDS, STATE, TRAFFIC, WEIGHTS, Formulas
from crossopt.solvers.grading.handouts import public
from crossopt.solvers.grading.marks import Assignment, Case, Slip, Task, Verdict, figure, given_first
from crossopt.solvers.grading.walls.running import Call

Shape = dict[str, Any]

_CASES = 4
_WEIGHT, _GRADIENT, _OPTIMIZER = 2.0, 4.0, 12.0


def tasks(seed: str) -> tuple[Task, ...]:
    """The public case, and four shapes of each kind: with and without gated feed-forward parts and shared keys and values."""
    random, handed = Random(f"{seed}/01"), public("01-transformer-layer")
    shapes = [_shape(random, gated, grouped) for gated in (False, True) for grouped in (False, True)]
    given, sides, device = handed["shape"], tuple(handed["product"].values()), tuple(handed["device"].values())
    flops = [(given, *handed["step_flops"].values()), *((shape, random.choice((64, 192, 512))) for shape in shapes)]
    products = [_sides(random) for _ in range(_CASES)]
    timed = [_device(random, place) for place in range(_CASES)]
    kept = [(given, *handed["layer_activations"].values()), *(_kept(random, shape, place) for place, shape in enumerate(shapes))]
    states = [(given, *handed["state_bytes"].values()), *(_state(random, shape, zero) for zero, shape in enumerate(shapes))]
    return (
        _task("weights of a layer", 9, "layer_weights", [(one,) for one in (given, *shapes)], _weights, WEIGHTS),
        _task("FLOPs of a training step", 12, "step_flops", flops, _flops, FLOPS),
        _task("bytes of a matrix product", 6, "product_bytes", [sides, *products], _product_bytes, TRAFFIC),
        _task("seconds of a matrix product", 9, "product_seconds", [(*sides, *device), *timed], product_seconds, SECONDS),
        _task("activations that a layer keeps", 12, "layer_activations", kept, _activations, ACTIVATIONS),
        _task("bytes of the training state", 12, "state_bytes", states, _bytes, STATE),
    )


def _task(name: str, points: int, function: str, given: Sequence[tuple[Any, ...]], right: Callable[..., float], mistakes: Formulas) -> Task:
    """A task whose cases are judged by a formula of the same arguments, and by those that likely mistakes make of it."""

    def judge(arguments: tuple[Any, ...]) -> Callable[[Any], Verdict]:
        slips = [Slip(words, formula(*arguments)) for words, formula in mistakes.items()]
        return partial(figure, right=right(*arguments), slips=slips)

    return Task(f"{name}: {function}", points, given_first(Case(_words(one), Call(function, one), judge(one)) for one in given))


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


def _words(arguments: tuple[Any, ...]) -> str:
    """What is asked, by its shape or its product."""
    if isinstance(shape := arguments[0], dict):
        return f"{'SwiGLU' if shape['gated'] else 'GELU'}, {shape['heads']} heads with {shape['kv_heads']} of keys and values"
    rows, depth, columns = arguments[:3]
    return f"{rows} x {depth} by {depth} x {columns}"


def _sides(random: Random) -> tuple[int, int, int]:
    """Rows, depth and columns, no two of them alike."""
    return tuple(random.sample((256, 512, 1024, 2048, 4096, 8192, 16384), 3))  # type: ignore[return-value]


def _device(random: Random, place: int) -> tuple[int, int, int, float, float]:
    """A product and a device; products of one row in every second case, which no device computes at its peak, and large ones else."""
    rows, depth, columns = random.sample((1024, 2048, 4096, 8192, 16384), 3)
    return 1 if place % 2 else rows, depth, columns, random.choice((312e12, 989e12)), random.choice((2.0e12, 3.35e12))


def _kept(random: Random, shape: Shape, place: int) -> tuple[Shape, int, int, bool]:
    """One that recomputes, and one of which a device has less than a head of keys and values; never a single sequence on all that count."""
    tensor = 2 * shape["kv_heads"] if place == 3 else random.choice((2, 4, 8))
    return shape, random.choice((2, 4, 8)), tensor, place == 2


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
