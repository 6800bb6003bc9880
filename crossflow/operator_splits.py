"""Ways to split one operator of a graph over N devices: which it allows, its share on one device, and what its inputs and output need.

    whole         every device computes all of it
    batch         each device computes its part of the batch
    features g    groups of g devices, which have a part of the batch each; every device has a share of the weights by output features
    inputs g      the same by input features, so that devices of a group have partial sums of the output, which are reduced and scattered
    space g       groups of g devices, each with a share of the height; neighbours send each other the rows under both windows

An operator with weights that is split by features needs its input whole in each group, and its gradient is a partial sum there.
Functions of single values or channels, grouped convolutions, and heads of attention keep the features that they get. Inputs without the
batch lie whole on each device.

What the batch, features and height of a tensor are follows from the graph: the batch is the first axis of the first input; the features
of a convolution are channels, of a product with weights and of an embedding the last axis, of attention heads. Views keep them: where
queries, keys and values are cut out of one tensor, each device has the weights of the same heads of all three.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.operator_costs import OPERATORS, Columns
from crossopt.crossflow.operator_graph import Node, OperatorGraph, Shape
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.relayouts import Layout
from crossopt.crossflow.roofline import Product

SplitKind = Literal["batch", "features", "inputs", "space"]
_BY_VALUE: Final = frozenset(("activation", "gate", "addition", "multiplication"))
_JOINS: Final = frozenset(("concat", "cat", "concatenate"))
"""Names of concatenations in exchange formats, which leave the height as it is."""
_MATRICES: Final = frozenset(("product", "convolution", "transposed convolution"))
_TURNS: Final = frozenset(("transpose", "permute", "reshape", "contiguous", "clone", "view", "flatten"))
"""Names of moves that write the same values in another order, so that features stay together."""
_RUNS: Final = frozenset(("cumsum", "cumprod"))
"""Names of running sums, which no axis but that of the batch is known to leave alone."""
_BY_ROWS: Final = frozenset(("convolution", "transposed convolution", "recurrent"))
"""Operators whose products have the batch among their rows."""


@dataclass(frozen=True, slots=True)
class Split:
    """One way to split an operator."""

    kind: Literal["whole", "batch", "features", "inputs", "space"]
    group: int

    def __str__(self) -> str:
        return self.kind if self.kind in ("whole", "batch") else f"{self.kind} {self.group}"


@dataclass(frozen=True, slots=True)
class Axes:
    """Extents of a tensor along which operators may be split; 0 where it has none that is known."""

    batch: bool
    features: int = 0
    height: int = 0


class SplitGraph:
    """A graph with the axes of all tensors, on so many devices."""

    def __init__(self, graph: OperatorGraph, devices: int) -> None:
        self.graph, self.devices = graph, devices
        first = graph.tensors[graph.inputs[0]] if graph.inputs else ()
        self.batch = max(first[0], 1) if first else 1
        self.axes = {name: self._entering(graph.tensors[name]) for name in graph.inputs if name in graph.tensors}
        for node in graph.nodes:
            for name in node.outputs:
                self.axes[name] = self._made(node, graph.tensors[name])

    def _entering(self, shape: Shape) -> Axes:
        return Axes(bool(shape) and shape[0] == self.batch, 0, shape[2] if len(shape) >= 4 else 0)

    def _made(self, node: Node, shape: Shape) -> Axes:
        """The axes of an output."""
        inputs = self.carried(node)
        rows = shape[:1] if node.operator == "reduction" else shape
        batch = any(axes.batch for axes in inputs) and (node.operator == "view" or any(extent % self.batch == 0 for extent in rows))
        height = shape[2] if len(shape) >= 4 and any(axes.height for axes in inputs) else 0
        if node.operator == "view" and self.graph.tensors.get(node.inputs[0] if node.inputs else "") != shape:
            height = 0
        return Axes(batch, self._features(node, shape), height)

    def _features(self, node: Node, shape: Shape) -> int:
        """Features of an output: channels, the last axis, heads of attention, or those of the inputs that have some."""
        known = {axes.features for axes in self.carried(node)} - {0}
        if node.operator in ("convolution", "transposed convolution"):
            return shape[1] if len(shape) > 1 else 0
        if node.operator == "embedding" or self._is_matrix(node):
            return shape[-1] if shape else 0
        if node.operator in ("product", "attention", "softmax"):
            return shape[1] if len(shape) == 4 and known else 0
        lost = node.operator in ("recurrent", "other") or (node.operator == "move" and not _is_turn(node))
        if lost or len(known) != 1 or (node.operator == "reduction" and not known & set(shape[1:])):
            return 0
        return known.pop()

    def carried(self, node: Node) -> list[Axes]:
        """Axes of the inputs that carry the batch, or of all where none does."""
        every = [self.axes.get(name, Axes(batch=False)) for name in node.inputs]
        return [axes for axes in every if axes.batch] or every

    def splits(self, node: Node, kinds: Sequence[SplitKind], groups: Sequence[int]) -> tuple[Split, ...]:
        """All ways that the operator allows, one on every device first."""
        found = [Split("whole", self.devices)]
        if not node.outputs:
            return tuple(found)
        inside = [group for group in groups if group > 1 and self._in_batch(node, self.devices // group)]
        if "batch" in kinds and self._in_batch(node, self.devices):
            found.append(Split("batch", 1))
        if "features" in kinds:
            found += [Split("features", group) for group in inside if self._in_features(node, group)]
        if "inputs" in kinds and self._is_matrix(node) and node.product is not None and node.product[3] == 1:
            depth = self._depth(node)
            found += [Split("inputs", group) for group in inside if depth % group == 0]
        if "space" in kinds:
            found += [Split("space", group) for group in inside if self._in_space(node, group)]
        return tuple(found)

    def _is_matrix(self, node: Node) -> bool:
        """Whether an operator multiplies one activation with weights of its own."""
        return node.operator in _MATRICES and bool(node.weights) and node.product is not None and len(self.carried(node)) == 1

    def _in_batch(self, node: Node, parts: int) -> bool:
        """Whether the batch of its output may be cut into so many parts."""
        if parts == 1:
            return True
        if self.batch % parts or node.operator == "other" or not all(self.axes[name].batch for name in node.outputs):
            return False
        return node.product is None or self.batch_side(node, parts) is not None

    def batch_side(self, node: Node, parts: int) -> int | None:
        """The side of its product that carries the batch: rows or count."""
        rows, _, _, count = node.product or (1, 1, 1, 1)
        side = 0 if node.operator in _BY_ROWS or (self._is_matrix(node) and count == 1) else 3
        extent = count if side else rows
        return side if extent % self.batch == 0 and extent % parts == 0 else None

    def _depth(self, node: Node) -> int:
        """Input features in equal parts of which the depth of a product is cut."""
        shape, known = self.graph.tensors[node.inputs[0]], self.carried(node)[0].features
        depth = (*shape, 1, 1)[1] if node.operator != "product" else (node.product or (1, 1))[1]
        return int(np.gcd(depth, known)) if known else depth

    def _in_features(self, node: Node, group: int) -> bool:
        outputs = [self.axes[name].features for name in node.outputs]
        if not all(extent and extent % group == 0 for extent in outputs):
            return False
        if node.operator == "embedding":
            return True
        if self._is_matrix(node) and node.product is not None:
            count = node.product[3]
            return node.product[2] % group == 0 if count == 1 else count % group == 0 and self.keeps_features(node)
        if len(outputs) > 1:
            return False
        if node.operator in ("product", "attention", "softmax"):
            return self._by_heads(node, group)
        by_channel = (node.operator == "norm" and "batch" in node.source.lower()) or node.operator == "pooling"
        return _is_by_value(node) or by_channel or _is_turn(node)

    def _by_heads(self, node: Node, group: int) -> bool:
        """Whether heads, the second axis of four, may be shared, of attention or its products."""
        names = [*(name for name in node.inputs if self.axes[name].batch), *node.outputs]
        heads = [self.graph.tensors[name][1] if len(self.graph.tensors[name]) == 4 else 0 for name in names]
        count = (node.product or (1, 1, 1, self.batch * group))[3]
        known = all(self.axes[name].features for name in names)
        return known and all(own and own % group == 0 for own in heads) and count % (self.batch * group) == 0

    def keeps_features(self, node: Node) -> bool:
        """Whether an operator that is split by features takes those of its own share alone."""
        if self._is_matrix(node):
            extent, count = self.carried(node)[0].features, node.product[3] if node.product else 1
            return count > 1 and node.operator == "convolution" and extent > 0 and extent % count == 0
        return node.operator != "embedding"

    def _in_space(self, node: Node, group: int) -> bool:
        every = [self.axes.get(name, Axes(batch=False)) for name in (*node.inputs, *node.outputs)]
        if not all(axes.batch and axes.height and axes.height % group == 0 for axes in every):
            return False
        heights = {axes.height for axes in every}
        windowed = node.operator == "convolution" or (node.operator == "pooling" and bool(node.window))
        if windowed:
            return len(node.inputs) == len(node.outputs) == 1 and self.overlap(node) <= every[0].height // group
        joins = node.operator == "move" and _name(node) in _JOINS
        by_place = _is_by_value(node) or joins or node.operator == "local norm"
        return len(heights) == 1 and (by_place or (node.operator == "norm" and "batch" in node.source.lower()))

    def overlap(self, node: Node) -> int:
        """Rows that lie under windows of two neighbouring parts of the height."""
        if not node.window:
            return 0
        before, after = self.graph.tensors[node.inputs[0]][2], self.graph.tensors[node.outputs[0]][2]
        return max(node.window[0] - -(-before // after), 0)

    # Layouts.

    def output(self, node: Node, split: Split) -> Layout:
        """How the output of an operator lies."""
        match split.kind:
            case "whole":
                return Layout(self.devices)
            case "batch":
                return Layout()
            case "inputs":
                return self.scattered(node, split.group)
            case kind:
                return Layout(split.group, kind)

    def scattered(self, node: Node, group: int) -> Layout:
        """Where partial sums go: by the batch where all devices can have a part, else by features, else to all devices of the group."""
        if self._in_batch(node, self.devices):
            return Layout()
        features = self.axes[node.outputs[0]].features
        return Layout(group, "features") if features and features % group == 0 else Layout(group)

    def needed(self, node: Node, tensor: str, split: Split) -> tuple[Layout, bool]:
        """How an operator needs an input, and whether its gradient is a partial sum on the devices of each group."""
        if split.kind == "whole":
            return Layout(self.devices), False
        if not self.axes.get(tensor, Axes(batch=False)).batch:
            return Layout(self.devices), True
        if split.kind == "batch":
            return Layout(), False
        if split.kind == "features" and not (self.keeps_features(node) and self.axes[tensor].features):
            return Layout(split.group), True
        return Layout(split.group, "space" if split.kind == "space" else "features"), False

    def weight_replicas(self, split: Split) -> tuple[int, int]:
        """Devices that add up the gradient of one share of the weights, and how far apart they are."""
        if split.kind == "whole":
            return 1, 1
        return (self.devices // split.group, split.group) if split.kind in ("features", "inputs") else (self.devices, 1)

    def weight_share(self, split: Split) -> float:
        """Share of the weights on one device."""
        return 1.0 / split.group if split.kind in ("features", "inputs") else 1.0


def _name(node: Node) -> str:
    """What an exchange format calls an operator."""
    return node.source.lower().removeprefix("aten.").partition(".")[0]


def _is_turn(node: Node) -> bool:
    return node.operator == "move" and _name(node) in _TURNS


def _is_by_value(node: Node) -> bool:
    return node.operator in _BY_VALUE and _name(node) not in _RUNS


@dataclass(frozen=True, slots=True)
class _Shares:
    """Parts into which the figures of one operator are cut."""

    inputs: int
    outputs: int
    weights: int
    sides: tuple[int, int, int, int]


def shared_columns(columns: Columns, split_graph: SplitGraph, chosen: Sequence[Split | None]) -> Columns:
    """The share of each operator that one device computes, by its split; all of it where there is none."""
    rows = [
        _shares(split_graph, node, split) if split is not None else _Shares(1, 1, 1, (1, 1, 1, 1))
        for node, split in zip(split_graph.graph.nodes, chosen, strict=True)
    ]
    inputs, outputs, weights = (_column(getattr(row, name) for row in rows) for name in ("inputs", "outputs", "weights"))
    sides = [_column(row.sides[side] for row in rows) for side in range(4)]
    product = columns.product
    return Columns(
        types=columns.types,
        inputs=columns.inputs / inputs,
        outputs=columns.outputs / outputs,
        weights=columns.weights / weights,
        kept=columns.kept / np.where([[kind.keeps == "outputs"] for kind in columns.types], outputs, inputs),
        window=columns.window,
        product=Product(product.rows / sides[0], product.depth / sides[1], product.columns / sides[2], product.count / sides[3]),
        distinct=columns.distinct,
        has_product=columns.has_product,
        flows_back=columns.flows_back,
    )


def _column(figures: Iterator[int]) -> Array:
    return np.array(list(figures), np.float64).reshape(-1, 1)


def _shares(split_graph: SplitGraph, node: Node, split: Split) -> _Shares:
    if split.kind == "whole":
        return _Shares(1, 1, 1, (1, 1, 1, 1))
    parts, group = split_graph.devices // split.group, split.group
    sides = [1, 1, 1, 1]
    if node.product is not None:
        sides[split_graph.batch_side(node, parts) or 0] *= parts
    match split.kind:
        case "batch":
            return _Shares(parts, parts, 1, (sides[0], sides[1], sides[2], sides[3]))
        case "inputs":
            return _Shares(parts * group, parts, group, (sides[0], group, 1, sides[3]))
        case "space":
            sides[0] *= group
            return _Shares(parts * group, parts * group, 1, (sides[0], 1, 1, sides[3]))
    keeps = split_graph.keeps_features(node)
    if node.product is not None:
        sides[3 if keeps else 2] *= group
    own = OPERATORS.get(node.operator, OPERATORS["other"])
    taken = parts * group if keeps and own.priced != "lookup" else parts
    return _Shares(taken, parts * group, group, (sides[0], sides[1], sides[2], sides[3]))
