"""One table of operators, and their prices on a device by the roofline: convolutions, products, attention, and what moves bytes only.

Bytes of an operator are what it reads and writes in DRAM. Forward it reads inputs and weights and writes outputs; backward it reads the
gradients of its outputs and what it kept, and writes the gradients of its inputs. A convolution is an implicit matrix product (Chetlur et
al. 2014, cuDNN, arXiv 1410.0759): rows are output positions, depth the values under a kernel, and windows that overlap are read from
DRAM once. Its two gradients are the two gradient products. Convolutions with fewer than 8 output channels a group, depthwise ones above
all, fill no tile of a matrix engine and run on the vector engine. Operators of a transformer layer cost as much here as they do in
`crossflow.kernels.layer_kernels`. Dilation and padding change shapes and no price.

All figures are columns over nodes; hardware may hold arrays over devices, which then stand along the second axis.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Final, Literal

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Real
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.operator_graph import Node, OperatorGraph, values_in, weight_values
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.roofline import Cost, Distinct, Product, fused_attention_cost, product_cost, stream_cost

PricedAs = Literal["product", "convolution", "attention", "stream", "lookup", "view"]
Keeps = Literal["nothing", "inputs", "outputs", "everything"]


@dataclass(frozen=True, slots=True)
class OperatorType:
    """How operators of one name are priced, and what of them is kept for the backward pass."""

    priced: PricedAs
    """`product`: matrix products; `convolution`: implicit ones; `stream`: bytes and vector arithmetic; `lookup`: rows of a table; `view`:
    nothing moves."""
    keeps: Keeps
    flops: float = 0.0
    """Of vector arithmetic forward, for each value of the output."""
    backward_flops: float = 0.0
    windowed: bool = False
    """Whether arithmetic is counted for each value of the window."""
    about: str = ""


OPERATORS: Final[dict[str, OperatorType]] = {
    "convolution": OperatorType("convolution", "inputs", about="convolution, also grouped, depthwise, dilated, in 1 to 3 dimensions"),
    "transposed convolution": OperatorType("convolution", "inputs", about="convolution from outputs to inputs, as decoders use it"),
    "product": OperatorType("product", "inputs", about="matrix product of activations with weights or with other activations"),
    "recurrent": OperatorType("product", "everything", about="LSTM, GRU or plain recurrence: one product for each time step"),
    "attention": OperatorType("attention", "everything", about="fused attention, which never writes its scores"),
    "norm": OperatorType("stream", "inputs", 8.0, 8.0, about="norm of a batch, layer, group, or by root mean squares"),
    "activation": OperatorType("stream", "inputs", 8.0, 8.0, about="function of single values: ReLU, GELU, sigmoid, clipping"),
    "gate": OperatorType("stream", "inputs", 8.0, 8.0, about="activation of one input times another one (SwiGLU)"),
    "addition": OperatorType("stream", "nothing", 2.0, 2.0, about="sum or difference of tensors, or of a tensor and weights"),
    "multiplication": OperatorType("stream", "inputs", 2.0, 4.0, about="product or quotient of values, one by one"),
    "softmax": OperatorType("stream", "outputs", 5.0, 8.0, about="softmax or its logarithm"),
    "reduction": OperatorType("stream", "nothing", 1.0, 1.0, about="sum, mean or maximum along axes, and arg max"),
    "pooling": OperatorType("stream", "inputs", 1.0, 1.0, windowed=True, about="maximum or mean of windows, or of all positions"),
    "local norm": OperatorType("stream", "inputs", 16.0, 24.0, about="local response normalisation across channels"),
    "embedding": OperatorType("lookup", "inputs", about="rows of a table by their numbers"),
    "move": OperatorType("stream", "nothing", about="concatenation, transposition, slices, padding, resizing, casts"),
    "view": OperatorType("view", "nothing", about="reshape, flatten, identity, dropout at inference: no bytes move"),
    "other": OperatorType("stream", "inputs", about="anything unknown, by the bytes that it reads and writes"),
}
"""Operators by the names that graphs use."""
_LEAST = 1e-12
"""Share of different values of an operand, where a tensor is empty."""
_NARROW = 8
"""Output channels of a group below which a convolution runs on the vector engine."""
_HEAD_ALIGNMENT = 64.0
"""Fused attention pads the widths of keys and of values to this many elements, as in `layer_kernels`."""
_ATTENTION_BACKWARD = 2.5
"""Forward FLOPs of the backward pass, which computes scores again (Dao 2023)."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Nodes of a graph as columns of figures, each n x 1."""

    types: tuple[OperatorType, ...]
    inputs: Array
    """Values of activations that are read."""
    outputs: Array
    weights: Array
    kept: Array
    """Values kept until the backward pass, of this node alone; a tensor that several keep is counted by `kept_values` once."""
    window: Array
    product: Product
    """1 x 1 x 1 where there is none."""
    distinct: Distinct
    """Share of the entries of the first operand, the second and the result that are different values in DRAM."""
    has_product: Mask
    flows_back: Mask
    """Whether some input is an activation, whose gradient is computed."""

    def of(self, priced: PricedAs) -> Mask:
        return np.array([[kind.priced == priced] for kind in self.types])

    def at(self, rows: Sequence[int]) -> "Columns":
        """Some nodes."""
        own, chosen = self.product, list(rows)
        first, second, result = (_rows(share, chosen) for share in self.distinct)
        figures = ("inputs", "outputs", "weights", "kept", "window", "has_product", "flows_back")
        return replace(
            self,
            types=tuple(self.types[row] for row in chosen),
            product=Product(*(_rows(side, chosen) for side in (own.rows, own.depth, own.columns, own.count))),
            distinct=(first, second, result),
            **{name: getattr(self, name)[chosen] for name in figures},
        )


def _rows(figures: Real, rows: list[int]) -> Real:
    return figures[rows] if isinstance(figures, np.ndarray) else figures


def columns_of(graph: OperatorGraph) -> Columns:
    """The figures of all nodes."""
    nodes, tensors, entering = graph.nodes, graph.tensors, set(graph.inputs)
    types = tuple(OPERATORS.get(node.operator, OPERATORS["other"]) for node in nodes)
    sides = np.array([node.product or (1, 1, 1, 1) for node in nodes], np.float64).reshape(-1, 4)
    rows, depth, columns, count = (sides[:, [index]] for index in range(4))
    inputs, outputs = (_column([values_in(names, tensors) for names in sides]) for sides in _ends(nodes))
    first = _column([values_in(node.inputs[:1], tensors) for node in nodes])
    implicit = np.array([[kind.priced == "convolution"] for kind in types])
    return Columns(
        types=types,
        inputs=inputs,
        outputs=outputs,
        weights=_column([weight_values(graph, node) for node in nodes]),
        kept=_column([values_in(_saved_tensors(node, kind), tensors) for node, kind in zip(nodes, types, strict=True)]),
        window=_column([prod(node.window) for node in nodes]),
        product=Product(rows, depth, columns, count),
        distinct=(
            np.where(implicit, np.clip(first / (rows * depth * count), _LEAST, 1.0), 1.0),
            1.0,
            np.where(implicit, np.clip(outputs / (rows * columns * count), _LEAST, 1.0), 1.0),
        ),
        has_product=np.array([[node.product is not None] for node in nodes]),
        flows_back=np.array([[not entering.issuperset(node.inputs)] for node in nodes]),
    )


def _ends(nodes: Sequence[Node]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    return [node.inputs for node in nodes], [node.outputs for node in nodes]


def _column(figures: Sequence[int]) -> Array:
    return np.array(figures, np.float64).reshape(-1, 1)


def _saved_tensors(node: Node, kind: OperatorType) -> tuple[str, ...]:
    """Tensors of a node that its backward pass needs."""
    return {"nothing": (), "inputs": node.inputs, "outputs": node.outputs, "everything": node.inputs + node.outputs}[kind.keeps]


def kept_tensors(graph: OperatorGraph) -> tuple[str, ...]:
    """Activations that are kept from the forward to the backward pass, each once; a view keeps what it looks at."""
    stored = dict[str, None]()
    origin = dict[str, str]()
    for node in graph.nodes:
        kind = OPERATORS.get(node.operator, OPERATORS["other"])
        if kind.priced == "view" and node.inputs:
            origin |= {tensor: origin.get(node.inputs[0], node.inputs[0]) for tensor in node.outputs}
        stored |= dict.fromkeys(origin.get(tensor, tensor) for tensor in _saved_tensors(node, kind))
    return tuple(stored)


@dataclass(frozen=True, slots=True)
class GraphCosts:
    """Costs of every node, n x devices."""

    forward: Cost
    backward: Cost


def graph_costs(columns: Columns, value_bytes: float, hardware: Hardware) -> GraphCosts:
    """Seconds and joules of each node in both directions, with values of this many bytes and the device's peak in their format."""
    products, attention, narrow = _products(columns), columns.of("attention"), _narrow(columns)
    forward = _where(products, _product_forward(columns, value_bytes, hardware), _streams(columns, value_bytes, hardware, backward=False))
    backward = _where(products, _product_backward(columns, value_bytes, hardware), _streams(columns, value_bytes, hardware, backward=True))
    fused = (_attention(columns, value_bytes, hardware, back) for back in (False, True))
    forward, backward = (_where(attention, core, rest) for core, rest in zip(fused, (forward, backward), strict=True))
    direct = _direct(columns, value_bytes, hardware)
    forward = _where(narrow, direct, forward)
    backward = _where(narrow, direct.times(np.where(columns.flows_back, 2.0, 1.0)), backward)
    still = columns.of("view")
    nothing = Cost(0.0, 0.0, 0.0)
    return GraphCosts(_where(still, nothing, forward), _where(still, nothing, backward))


def _where(mask: Mask, left: Cost, right: Cost) -> Cost:
    return Cost(*(np.where(mask, a, b) for a, b in ((left.time, right.time), (left.energy, right.energy), (left.kernels, right.kernels))))


def _narrow(columns: Columns) -> Mask:
    few = (columns.product.columns < _NARROW) & (np.asarray(columns.product.count) > 1.0)
    return np.asarray(columns.of("convolution") & columns.has_product & few)


def _products(columns: Columns) -> Mask:
    return (columns.of("product") | columns.of("convolution")) & columns.has_product


def _product_forward(columns: Columns, value_bytes: float, hardware: Hardware) -> Cost:
    return product_cost(columns.product, value_bytes, hardware, columns.distinct)


def _product_backward(columns: Columns, value_bytes: float, hardware: Hardware) -> Cost:
    """The gradients of the first operand, where it is an activation, and of the second one."""
    base, (first, second, result) = columns.product, columns.distinct
    of_input = product_cost(Product(base.rows, base.columns, base.depth, base.count), value_bytes, hardware, (result, second, first))
    of_weights = product_cost(Product(base.depth, base.rows, base.columns, base.count), value_bytes, hardware, (first, result, second))
    return of_input.times(np.where(columns.flows_back, 1.0, 0.0)) + of_weights


def _direct(columns: Columns, value_bytes: float, hardware: Hardware) -> Cost:
    """A convolution on the vector engine: two FLOPs a multiply-add, inputs, weights and outputs moved once."""
    moved = columns.inputs + columns.weights + columns.outputs
    return stream_cost(value_bytes * moved, columns.product.flops, hardware)


def _attention(columns: Columns, value_bytes: float, hardware: Hardware, backward: bool) -> Cost:
    product = columns.product
    padded = 2.0 * np.ceil(product.depth / 2.0 / _HEAD_ALIGNMENT) * _HEAD_ALIGNMENT
    flops, size = 2.0 * product.rows * padded * product.columns * product.count, value_bytes * (columns.inputs + columns.outputs)
    if backward:
        flops, size = _ATTENTION_BACKWARD * flops, 2.0 * size
    return fused_attention_cost(flops, size, hardware)


def _streams(columns: Columns, value_bytes: float, hardware: Hardware, backward: bool) -> Cost:
    """By bytes: inputs and outputs forward, gradients and what was kept backward; a lookup reads as much as it writes, and adds its
    gradients to rows that it reads and writes. Weights of norms are too few to count; unknown operators read their weights, too."""
    unknown = np.array([[kind is OPERATORS["other"]] for kind in columns.types])
    moved = columns.inputs + columns.outputs + (columns.kept if backward else 0.0) + np.where(unknown, columns.weights, 0.0)
    moved = np.where(columns.of("lookup"), (3.0 if backward else 2.0) * columns.outputs, moved)
    each = np.array([kind.backward_flops if backward else kind.flops for kind in columns.types], np.float64).reshape(-1, 1)
    windowed = np.array([[kind.windowed] for kind in columns.types])
    flops = each * columns.outputs * np.where(windowed, columns.window, 1.0)
    return stream_cost(value_bytes * moved, flops, hardware)


# Forward passes with merged operators, at several batches. A batch norm behind a convolution or product is merged into its weights, since
# at inference it is a factor and a shift of each channel (Jacob et al. 2018, arXiv 1712.05877). An activation that alone takes the output
# of an operator runs in that operator's kernel. Both then read and write nothing. With b times the batch, products with weights have b
# times the rows, others b times the count.

Merging = Literal["none", "norms", "activations"]
_WITH_CHANNELS = frozenset(("convolution", "transposed convolution", "product"))


@dataclass(frozen=True, slots=True)
class Pass:
    """Seconds of a forward pass, and bytes of the weights with the largest operator's inputs and outputs, by batch."""

    time: Array
    memory: Array


def merged_nodes(graph: OperatorGraph, merging: Merging) -> frozenset[int]:
    """Numbers of the operators that run within another one: no norms or activations, norms, or both."""
    makers = {tensor: node for node in graph.nodes for tensor in node.outputs}
    takers = Counter(tensor for node in graph.nodes for tensor in node.inputs) + Counter(graph.outputs)
    found = set[int]()
    for number, node in enumerate(graph.nodes):
        taken = node.inputs[0] if len(node.inputs) == 1 else ""
        if taken in makers and takers[taken] == 1 and _merges(node, makers[taken], merging):
            found.add(number)
    return frozenset(found)


def _merges(node: Node, maker: Node, merging: Merging) -> bool:
    if node.operator == "norm" and "batch" in node.source.lower():
        return merging != "none" and maker.operator in _WITH_CHANNELS
    return merging == "activations" and node.operator == "activation" and OPERATORS.get(maker.operator, OPERATORS["other"]).priced != "view"


def batch_of(graph: OperatorGraph) -> int | None:
    """The first extent of all inputs; None where these have none in common."""
    extents = {graph.tensors[name][0] if graph.tensors[name] else 0 for name in graph.inputs}
    return next(iter(extents)) or None if len(extents) == 1 else None


def at_batches(columns: Columns, factors: Sequence[float]) -> Columns:
    """Nodes with so many times their batch, all nodes for each factor."""
    rows = len(columns.types)
    found, scale = columns.at(list(range(rows)) * len(factors)), np.repeat(np.array(factors, np.float64), rows)[:, None]
    weighted, product = found.weights > 0.0, found.product
    scaled = replace(product, rows=product.rows * np.where(weighted, scale, 1.0), count=product.count * np.where(weighted, 1.0, scale))
    return replace(found, product=scaled, inputs=found.inputs * scale, outputs=found.outputs * scale, kept=found.kept * scale)


def passes(graph: OperatorGraph, merging: Merging, factors: Sequence[float], value_bytes: float, hardware: Hardware) -> Pass:
    """Passes of a graph with so many times its batch, all values in one format, on a device in that format."""
    merged = merged_nodes(graph, merging)
    columns = at_batches(columns_of(graph).at([number for number in range(len(graph)) if number not in merged]), factors)
    time, moved, weights = (
        np.broadcast_to(np.asarray(figure, np.float64), (len(columns.types), 1)).reshape(len(factors), -1)
        for figure in (graph_costs(columns, value_bytes, hardware).forward.time, columns.inputs + columns.outputs, columns.weights)
    )
    return Pass(time.sum(axis=1), value_bytes * (weights.sum(axis=1) + moved.max(axis=1)))
