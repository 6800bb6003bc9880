"""Operators of a transformer split over a mesh of devices, their prices by the full model, and the time to lay tensors otherwise."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial, reduce
from itertools import product
from math import prod
from typing import Literal

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.collectives import (
    Members,
    Spread,
    all_gather,
    all_reduce_time,
    all_to_all,
    each,
    exchange_time,
    members_on_levels,
    together,
)
from crossopt.crossflow.edges import embedding, head
from crossopt.crossflow.hardware import Hardware, Link
from crossopt.crossflow.kernels import layer_kernels
from crossopt.crossflow.plan import Ranks
from crossopt.crossflow.roofline import Cost, Product, backward_costs, product_cost, stream_cost
from crossopt.crossflow.transformer import mean_over_kinds
from crossopt.crossflow.workload import Transformer

# How tensors lie on a mesh of devices, and the time it takes to lay them otherwise.
#
# A mesh has one or more axes; along each axis a tensor is whole on every rank, or split along one of its own axes, or partial: every rank
# has a summand of it. Axes change in the order that leaves less to move for those that follow, those that change alike together:
#
#     slice       whole   -> split          nothing moves
#     scatter     partial -> split          a reduce-scatter
#     exchange    split   -> another split  an all-to-all, axis by axis
#     sum         partial -> whole          an all-reduce
#     gather      split   -> whole          an all-gather

Piece = Literal["whole", "batch", "sequence", "feature", "partial"]
Change = Literal["none", "slice", "scatter", "exchange", "sum", "gather"]
_IN_ORDER: tuple[Change, ...] = ("slice", "scatter", "exchange", "sum", "gather")
Lay = tuple[Piece, ...]
"""For each axis of the mesh."""
Move = Callable[[float, Lay, Lay], float]
"""Seconds to convert a tensor of a size from one layout to another: `resharding` on a mesh."""


@dataclass(frozen=True, slots=True)
class MeshAxis:
    """A number of ranks and their spread over the levels of the network."""

    ranks: int
    members: Spread


def mesh_axes(sizes: Sequence[int], level_sizes: tuple[int, ...]) -> tuple[MeshAxis, ...]:
    """The axes of a mesh; ranks of the last axis are neighbours."""
    strides = [prod(sizes[index + 1 :]) for index in range(len(sizes))]
    spreads = (members_on_levels(np.array([size]), np.array([stride]), level_sizes) for size, stride in zip(sizes, strides, strict=True))
    return tuple(MeshAxis(size, each(_first, spread)) for size, spread in zip(sizes, spreads, strict=True))


def _first(part: Real) -> float:
    return float(np.ravel(part)[0])


def share(lay: Lay, axes: Sequence[MeshAxis]) -> float:
    """Share of a tensor that one device holds."""
    return 1.0 / prod(axis.ranks for piece, axis in zip(lay, axes, strict=True) if piece not in {"whole", "partial"})


def resharding(axes: Sequence[MeshAxis], links: tuple[Link, ...]) -> Move:
    """Seconds to convert a tensor from one layout to another, 0 if nothing moves. Each collective is priced once for all that need it."""

    @cache
    def change_time(change: Change, size: float, group: tuple[int, ...]) -> float:
        return _change_time(change, size, _members([axes[dimension] for dimension in group]), links)

    @cache
    def move(size: float, before: Lay, after: Lay) -> float:
        time, now = 0.0, list(before)
        for change in _IN_ORDER:
            places = tuple(dimension for dimension in range(len(axes)) if _change(before[dimension], after[dimension]) == change)
            for group in [(dimension,) for dimension in places] if change == "exchange" else [places] if places else []:
                others = [(piece, axis) for dimension, (piece, axis) in enumerate(zip(now, axes, strict=True)) if dimension not in group]
                time += change_time(change, size * share(tuple(piece for piece, _ in others), [axis for _, axis in others]), group)
            for dimension in places:
                now[dimension] = after[dimension]
        return time

    return move


def _change(before: Piece, after: Piece) -> Change:
    if before == after:
        return "none"
    if before == "whole":
        return "slice"
    if before == "partial":
        return "sum" if after == "whole" else "scatter"
    return "gather" if after == "whole" else "exchange"


def _members(group: Sequence[MeshAxis]) -> Spread:
    """Spread of all ranks of some axes together, so that collectives run level by level."""
    return reduce(together, (axis.members for axis in group))


def _change_time(change: Change, size: float, members: Members, links: tuple[Link, ...]) -> float:
    """Seconds of a collective on a tensor of this size over all these ranks."""
    if change == "slice":
        return 0.0
    if change == "exchange":
        return float(exchange_time(all_to_all(size / prod(members), members), links))
    if change == "sum":
        return float(all_reduce_time(size, members, links))
    return float(exchange_time(all_gather(size, members), links))


# Operators of a transformer, each split over a device mesh in one of several ways, with the full model's costs.
#
# Along each axis of the mesh an operator is run in one way:
#
#     whole       every rank does the same                takes its input whole   gives its output whole
#     batch       samples are split                       by samples              by samples
#     sequence    tokens of a sample are split            by tokens               by tokens
#     columns     features of the output are split        whole                   by features
#     summed      features of the input are split         by features             whole, after an all-reduce
#     scattered   features of the input are split         by features             by tokens, after a reduce-scatter
#     feature     heads or an activation's features are   by features             by features
#
# Backward, the gradient of an output comes in as the output lies, and the gradient of the input leaves as the input was taken, but for
# `columns`, whose ranks have summands of it. So Megatron-LM's layer (Shoeybi et al. 2019) is columns, feature, summed, and with sequence
# parallelism (Korthikanti et al. 2022) scattered for summed. A step is one batch; the launching of kernels is not priced.

Manner = Literal["whole", "batch", "sequence", "columns", "summed", "scattered", "feature"]
Way = tuple[Manner, ...]
"""The manner along each axis of the mesh."""

_TAKES: dict[Manner, Piece] = {
    "whole": "whole",
    "batch": "batch",
    "sequence": "sequence",
    "columns": "whole",
    "summed": "feature",
    "scattered": "feature",
    "feature": "feature",
}
_RETURNED: dict[Manner, Piece] = {**_TAKES, "columns": "partial"}
_GIVES: dict[Manner, Piece] = {**_TAKES, "columns": "feature", "summed": "whole", "scattered": "sequence"}
_BEFORE_SUMS: dict[Manner, Piece] = {**_GIVES, "summed": "partial", "scattered": "partial"}
_NEEDED_BACK: dict[Manner, Piece] = {**_GIVES, "scattered": "whole"}
_BEFORE_LOSS: dict[Manner, Piece] = {**_GIVES, "columns": "partial"}
_AFTER_LOSS: dict[Manner, Piece] = {**_GIVES, "columns": "whole"}
_OF_WEIGHTS: dict[Manner, Piece] = {**dict.fromkeys(_TAKES, "whole"), **dict.fromkeys(("columns", "summed", "scattered"), "feature")}
_OF_GRADIENTS: dict[Manner, Piece] = {**_OF_WEIGHTS, "batch": "partial", "sequence": "partial"}
_MANNERS: dict[str, tuple[Manner, ...]] = {
    "stream": ("whole", "batch", "sequence"),
    "heads": ("whole", "batch", "feature"),
    "inner": ("whole", "batch", "sequence", "feature"),
    "product": ("whole", "batch", "sequence", "columns", "summed", "scattered"),
    "table": ("whole", "batch", "sequence", "summed", "scattered"),
    "head": ("whole", "batch", "sequence", "columns"),
}
_SPLITTING: tuple[set[Manner], ...] = ({"batch", "sequence"}, {"columns", "feature"}, {"summed", "scattered"})
"""Manners that split the tokens, the output's features and the input's."""
_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Kind:
    """An operator without its position in the network."""

    name: str
    form: str
    """The manners available: keys of `_MANNERS`."""
    taken: int
    """Number of input features that can be split; likewise of output features. 0 if any split is padded."""
    given: int
    output: float
    """Output bytes of the whole batch."""
    weights: int = 0
    number: int = _UNKNOWN
    """Name of its product among `projections`."""


def kinds(model: Transformer) -> dict[str, Kind]:
    """The operators of a network by name."""
    tokens, size = model.global_batch * model.sequence, model.activation_bytes
    undivided = _ranks(model, 1.0, 1.0)
    shapes = layer_kernels.projections(model, undivided)
    narrow, wide = tokens * model.hidden * size, tokens * model.ffn * size
    groups = model.attention_groups
    names = ("queries, keys, values", "projection", "inner product", "outer product")
    ends = ((model.hidden, groups), (groups, model.hidden), (model.hidden, model.ffn), (model.ffn, model.hidden))
    products = [
        Kind(name, "product", *end, tokens * _number(shape.columns) * size, int(_number(shape.depth) * _number(shape.columns)), number)
        for number, (name, end, shape) in enumerate(zip(names, ends, shapes, strict=True))
    ]
    table = model.vocabulary * model.hidden
    found = (
        Kind("embedding", "table", 0, model.hidden, narrow, table),
        Kind("norm", "stream", model.hidden, model.hidden, narrow),
        Kind("addition", "stream", model.hidden, model.hidden, narrow),
        Kind("attention", "heads", groups, groups, tokens * model.heads * model.head_width * size),
        Kind("activation", "inner", model.ffn, model.ffn, wide),
        Kind("head", "head", model.hidden, 0, 0.0, table),
        *products,
    )
    return {kind.name: kind for kind in found}


def ways(kind: Kind, model: Transformer, axes: Sequence[MeshAxis]) -> tuple[Way, ...]:
    """Ways to split an operator: each size must be a multiple of the ranks it is split over."""
    return tuple(way for way in product(_MANNERS[kind.form], repeat=len(axes)) if _divides(kind, model, way, axes))


def _divides(kind: Kind, model: Transformer, way: Way, axes: Sequence[MeshAxis]) -> bool:
    sizes: tuple[tuple[int, set[Manner]], ...] = (
        (model.global_batch, {"batch"}),
        (model.sequence, {"sequence", "scattered"}),
        (kind.given, {"columns"}),
        (kind.taken, {"summed", "scattered", "feature"}),
    )
    return all(size % _over(way, manners, axes) == 0 for size, manners in sizes)


def _over(way: Way, manners: set[Manner], axes: Sequence[MeshAxis]) -> int:
    """Over how many ranks these manners split."""
    return prod(axis.ranks for manner, axis in zip(way, axes, strict=True) if manner in manners)


def lay(way: Way, rule: dict[Manner, Piece]) -> Lay:
    """Layout of a tensor of an operator."""
    return tuple(rule[manner] for manner in way)


@cache
def gives(way: Way) -> Lay:
    """Layout of the output."""
    return lay(way, _GIVES)


def weights_lay(way: Way) -> Lay:
    """Layout of the weights used by the operator."""
    return lay(way, _OF_WEIGHTS)


def gradients_lay(way: Way) -> Lay:
    """Layout of the weight gradients: partial sums if tokens are split."""
    return lay(way, _OF_GRADIENTS)


def operator_times(
    kind: Kind, several: Sequence[Way], model: Transformer, hardware: Hardware, axes: Sequence[MeshAxis], move: Move
) -> list[float]:
    """Seconds forward and backward of each way to split an operator, including the reduction of partial sums. What each rank does depends
    on the numbers of ranks alone, and is priced once for ways that differ in the axes."""
    alone = replace(hardware, links=hardware.links[:1])
    work = cache(partial(_work, kind, model, alone))
    return [work(*(_over(way, manners, axes) for manners in _SPLITTING)) + _sums(kind, way, model, move) for way in several]


def _work(kind: Kind, model: Transformer, hardware: Hardware, tokens: int, columns: int, depth: int) -> float:
    """Seconds of one rank's own work."""
    if kind.form == "product":
        undivided = _ranks(model, 1.0, 1.0)
        name, shape = layer_kernels.named_projections(model, undivided)[kind.number]
        mine = Product(_number(shape.rows) / tokens, _number(shape.depth) / depth, _number(shape.columns) / columns)
        size = model.activation_bytes if name in layer_kernels.WIDE else model.value_bytes
        beside = (layer_kernels.cast(name, mine, model, undivided, hardware, backward) for backward in (False, True))
        return _seconds(product_cost(mine, size, hardware), *backward_costs((mine,), size, hardware), *beside)
    ranks = _ranks(model, float(tokens), float(columns))
    if kind.name == "attention":
        return _number(mean_over_kinds(model, lambda layer_kind: _attention(layer_kind, ranks, hardware)))
    if kind.name == "embedding":
        return _seconds(embedding(model, ranks, hardware))
    if kind.name == "head":
        return _seconds(head(model, ranks, hardware))
    part = {"norm": ("norms", 0.5), "addition": ("residuals", 0.5), "activation": ("activation", 1.0)}
    name, half = part[kind.name]
    return half * _seconds(*(getattr(layer_kernels.element_wise(model, ranks, hardware, backward), name) for backward in (False, True)))


def _attention(model: Transformer, ranks: Ranks, hardware: Hardware) -> Real:
    return layer_kernels.attention_core(model, ranks, hardware).time + layer_kernels.attention_core_backward(model, ranks, hardware).time


def _sums(kind: Kind, way: Way, model: Transformer, move: Move) -> float:
    """Seconds of all-reduces and reduce-scatters of the output, and of all-gathers of its gradient if it was scattered.

    The head sums the greatest logits and the exponentials of each token over the ranks that split the vocabulary.
    """

    def moved(size: float, before: dict[Manner, Piece], after: dict[Manner, Piece]) -> float:
        return move(size, lay(way, before), lay(way, after))

    time = moved(kind.output, _BEFORE_SUMS, _GIVES) + moved(kind.output, _GIVES, _NEEDED_BACK)
    return time + (2.0 * moved(4.0 * model.tokens, _BEFORE_LOSS, _AFTER_LOSS) if kind.form == "head" else 0.0)


def edge_time(size: float, before: Way, after: Way, move: Move) -> float:
    """Seconds to bring an output of this size to its consumer's layout, and the gradient back."""
    given = gives(before)
    return move(size, given, _takes(after)) + move(size, _returned(after), given)


@cache
def _takes(way: Way) -> Lay:
    return lay(way, _TAKES)


@cache
def _returned(way: Way) -> Lay:
    return lay(way, _RETURNED)


def update_time(kind: Kind, part: float, model: Transformer, hardware: Hardware) -> float:
    """Seconds of the optimizer on the local weights: reads gradients twice, reads and writes the state, writes the weights."""
    size = part * kind.weights * (2.0 * model.gradient_bytes + model.weight_bytes + 2.0 * model.optimizer_bytes)
    return _seconds(stream_cost(size, 0.0, hardware))


def network(model: Transformer) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The operators in order: name, kind, and the operators whose outputs they take."""
    yield "embedding", "embedding", ()
    before = "embedding"
    for number in range(1, model.layers + 1):
        source = before
        for step, kind in _LAYER:
            name = f"layer {number}: {step}"
            also = {"addition 1": (source,), "addition 2": (f"layer {number}: addition 1",)}.get(step, ())
            yield name, kind, (before, *also)
            before = name
    yield "head", "head", (before,)


_LAYER = (
    ("norm 1", "norm"),
    ("queries, keys, values", "queries, keys, values"),
    ("attention", "attention"),
    ("projection", "projection"),
    ("addition 1", "addition"),
    ("norm 2", "norm"),
    ("inner product", "inner product"),
    ("activation", "activation"),
    ("outer product", "outer product"),
    ("addition 2", "addition"),
)


def _ranks(model: Transformer, tokens: float, tensor: float) -> Ranks:
    """Ranks that split tokens and features this often without communication."""
    alone = (np.float64(1.0),)
    return Ranks(
        np.float64(tensor), np.float64(1.0), np.float64(1.0), np.float64(model.global_batch / tokens), np.float64(0.0), alone, alone, alone
    )


def _seconds(*costs: Cost) -> float:
    return sum(_number(cost.time) for cost in costs)


def _number(value: object) -> float:
    return float(np.asarray(value).item())
