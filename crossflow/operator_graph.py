"""A network of any kind as a graph of operators with shapes: what an import writes, and what placement, layer choices and memory read.

Nodes stand in topological order. They name their activations and weights: an edge runs from the node that makes a tensor to each node that
takes it, and two nodes that name the same weights share them. Nothing here is priced (`crossflow.operator_costs` does that) and no other
tool's format is known: `instances/operators` turns ONNX and `torch.export` into these graphs.

Multiply-adds are those of matrix products and convolutions, of the whole batch. Biases, norms, activations and pooling have none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, isqrt, prod

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.crossflow.records import dataclass

Shape = tuple[int, ...]
MOST_NODES = 50_000
"""Nodes of a graph: ten times the largest networks that are exported layer by layer."""
MOST_VALUES = 2**53
"""Whole numbers below it are exact as floating-point numbers."""
_LONGEST_BLOCK = 2_000
"""Nodes of a block that is looked for."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A tensor that the network keeps between steps."""

    shape: Shape
    trained: bool = True
    """False for running means and variances, and other buffers without gradients."""


@dataclass(frozen=True, slots=True)
class Node:
    """One operator of the network, named as in `operator_costs.OPERATORS`."""

    name: str
    operator: str
    inputs: tuple[str, ...]
    """Activations that it reads, the one that is multiplied first; weights are not among them."""
    outputs: tuple[str, ...]
    weights: tuple[str, ...] = ()
    product: tuple[int, int, int, int] | None = None
    """Rows, depth, columns and count of its matrix products. Of a convolution these are output positions, values under a kernel, output
    channels of a group, and groups; of attention queries, widths of keys and values together, keys within reach, and heads."""
    window: tuple[int, ...] = ()
    """Extents of a kernel or of a pooling window."""
    source: str = ""
    """What another tool calls the operator, such as `Conv`."""

    @property
    def macs(self) -> int:
        """Multiply-adds of the whole batch, forward."""
        return prod(self.product) if self.product else 0


@dataclass(frozen=True, slots=True)
class Group:
    """A block of consecutive nodes that is repeated: copy number c of its node i is node `first + c * length + i`."""

    name: str
    first: int
    length: int
    copies: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A tensor between two nodes, by their numbers."""

    source: int
    target: int
    tensor: str


@dataclass(frozen=True, slots=True)
class OperatorGraph:
    """A network with every shape known."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: dict[str, Shape]
    """Activations and inputs by name."""
    weights: dict[str, Weights]
    nodes: tuple[Node, ...]
    groups: tuple[Group, ...] = ()
    axes: tuple[tuple[str, int], ...] = ()
    """Open axes of the network, with the lengths that they were given."""
    remarks: tuple[str, ...] = ()
    """What a reader should know of the import, such as operators that are priced by their bytes."""

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def batch(self) -> int | None:
        """Samples of a pass: the first length of all inputs, where they have the same."""
        first = {self.tensors[name][:1] for name in self.inputs}
        return next(iter(*first), None) if len(first) == 1 else None

    @property
    def macs(self) -> int:
        """Multiply-adds of a forward pass."""
        return sum(node.macs for node in self.nodes)

    @property
    def parameters(self) -> int:
        """Weights that are trained; shared ones count once."""
        return sum(prod(weights.shape) for weights in self.weights.values() if weights.trained)

    @property
    def buffers(self) -> int:
        """Values that are kept and not trained."""
        return sum(prod(weights.shape) for weights in self.weights.values() if not weights.trained)


def edges(graph: OperatorGraph) -> tuple[Edge, ...]:
    """All edges, by their targets; a tensor that a node takes twice is one edge."""
    makers = {tensor: number for number, node in enumerate(graph.nodes) for tensor in node.outputs}
    return tuple(
        Edge(makers[tensor], number, tensor)
        for number, node in enumerate(graph.nodes)
        for tensor in dict.fromkeys(node.inputs)
        if tensor in makers
    )


def shared_weights(graph: OperatorGraph) -> dict[str, tuple[int, ...]]:
    """Nodes that share weights, by the name of these."""
    takers = dict[str, list[int]]()
    for number, node in enumerate(graph.nodes):
        for name in dict.fromkeys(node.weights):
            takers.setdefault(name, []).append(number)
    return {name: tuple(numbers) for name, numbers in takers.items() if len(numbers) > 1}


def values_in(names: Sequence[str], shapes: Mapping[str, Shape]) -> int:
    """Values of the named tensors together."""
    return sum(prod(shapes[name]) for name in names)


def weight_values(graph: OperatorGraph, node: Node) -> int:
    """Values of the weights that a node reads."""
    return sum(prod(graph.weights[name].shape) for name in node.weights)


def graph_faults(graph: OperatorGraph) -> Iterator[tuple[str, str]]:
    """What no graph may have: the path in a file, and the sentence."""
    if not 0 < len(graph) <= MOST_NODES:
        yield "nodes", f"{len(graph):,} operators are given, 1 to {MOST_NODES:,} are needed"
        return
    yield from (("inputs", f"the input {name!r} has no shape (add it to tensors)") for name in graph.inputs if name not in graph.tensors)
    made, names = set(graph.inputs), set[str]()
    makers = {tensor for node in graph.nodes for tensor in node.outputs}
    for number, node in enumerate(graph.nodes):
        at = f"nodes[{number}]"
        if node.name in names:
            yield f"{at}.name", f"{node.name!r} is the name of an operator before it (give each its own)"
        names.add(node.name)
        for tensor in node.inputs:
            if tensor not in made:
                later = "an operator behind it (list operators in topological order)" if tensor in makers else "no operator"
                yield f"{at}.inputs", f"{tensor!r} is made by {later}"
        yield from ((f"{at}.outputs", f"{tensor!r} is made twice (give each its own name)") for tensor in node.outputs if tensor in made)
        made |= set(node.outputs)
        yield from _node_faults(graph, node, at)
    for name, shape in (*graph.tensors.items(), *((name, weights.shape) for name, weights in graph.weights.items())):
        if any(extent < 0 for extent in shape):
            yield f"tensors.{name}", "extents are whole numbers from 0 on"
        elif prod(shape) >= MOST_VALUES:
            yield f"tensors.{name}", "it has 2^53 values or more (give the shape of one step)"


def _node_faults(graph: OperatorGraph, node: Node, at: str) -> Iterator[tuple[str, str]]:
    for tensor in node.outputs:
        if tensor not in graph.tensors:
            yield f"{at}.outputs", f"{tensor!r} has no shape (add it to tensors)"
    for name in node.weights:
        if name not in graph.weights:
            yield f"{at}.weights", f"there are no weights {name!r} (add them to weights)"
    if node.product is not None and not 1 <= min(node.product) <= max(node.product) < MOST_VALUES:
        yield f"{at}.product", "rows, depth, columns and count are whole numbers from 1 on and below 2^53"
    if prod(node.window) >= MOST_VALUES:
        yield f"{at}.window", "it has 2^53 values or more"


# Rows, depth, columns and count of products, from the shapes that exchange formats state.

Sides = tuple[int, int, int, int]


def convolution_sides(output: Shape, kernel: Shape, groups: int) -> Sides:
    """Of a convolution with outputs [batch, channels, ...] and weights [channels out, channels in of a group, ...]."""
    return output[0] * prod(output[2:]), prod(kernel[1:]), kernel[0] // groups, groups


def transposed_sides(taken: Shape, kernel: Shape, groups: int) -> Sides:
    """Of a transposed convolution with inputs [batch, channels, ...] and weights [channels in, channels out of a group, ...]."""
    return taken[0] * prod(taken[2:]), kernel[0] // groups, prod(kernel[1:]), groups


def product_sides(first: Shape, second: Shape) -> Sides:
    """Of a matrix product of stacks, as numpy multiplies them; a second operand that is one matrix serves all rows of the first."""
    columns = second[-1] if len(second) > 1 else 1
    if len(second) <= 2:
        return prod(first[:-1]), first[-1], columns, 1
    stacks = np.broadcast_shapes(first[:-2], second[:-2])
    return (first[-2] if len(first) > 1 else 1), first[-1], columns, prod(stacks)


def recurrent_sides(taken: Shape, weights: Shape, again: Shape, gates: int) -> Sides:
    """Of each time step and direction one product of inputs and state with all gates."""
    time, batch, width = taken
    directions, hidden = weights[0], again[-1]
    return batch, width + hidden, gates * hidden, time * directions


def einsum_sides(equation: str, operands: Sequence[Shape]) -> Sides:
    """Of two operands: letters of both and the result are counted, of both alone depth, of one and the result its rows or columns."""
    left, arrow, result = equation.replace(" ", "").partition("->")
    if not arrow:  # the letters that occur once, in their order
        result = "".join(sorted(letter for letter in left if letter.isalpha() and left.count(letter) == 1))
    first, second = left.split(",")
    if "." in equation or len(operands) != 2 or not result:
        raise ValueError("such equations have no sides")
    extents = dict(zip(first, operands[0], strict=True)) | dict(zip(second, operands[1], strict=True))

    def sides(letters: Iterator[str]) -> int:
        return prod(extents[letter] for letter in dict.fromkeys(letters))

    return (
        sides(letter for letter in first if letter not in second),
        sides(letter for letter in first if letter in second and letter not in result),
        sides(letter for letter in second if letter not in first),
        sides(letter for letter in first if letter in second and letter in result),
    )


# Folding (Kosaian, Phanishayee et al. 2021, ICML, "Boosting the Throughput and Accelerator Utilization of Specialized CNN Inference Beyond
# Increasing Batch Size"): f samples are stacked along the channels of one. Inputs and outputs have f times the channels, all layers between
# them sqrt(f) times, so that multiply-adds of a sample stay about the same, with f times fewer rows. They are rounded up, to multiples of
# 8 where they were such: other widths would leave parts of a matrix engine's tiles empty.

_FOLDED = frozenset(("convolution", "transposed convolution", "product"))
_UNFOLDED = frozenset(("attention", "recurrent", "embedding"))


def folded(graph: OperatorGraph, fold: int) -> OperatorGraph:
    """The network that takes so many samples as one; a ValueError says which of its operators does not allow it."""
    inside = _before_weights(graph)
    wider: dict[str, Fraction] = dict.fromkeys(graph.inputs, Fraction(fold))
    nodes, weights = list[Node](), dict[str, Weights]()
    for node in graph.nodes:
        taken = _taken_width(graph, node, wider)
        made, product = taken, node.product
        if product is not None:
            if not node.weights or node.operator not in _FOLDED or product[3] != 1:
                raise ValueError(f"{node.name!r} is no convolution of one group and no product with weights")
            rows, depth, columns, count = product
            most = _root_above(columns, fold) if inside.intersection(node.outputs) else fold * columns
            made, product = Fraction(most, columns), (rows, ceil(depth * taken), most, count)
        elif node.operator in _UNFOLDED:
            raise ValueError(f"{node.name!r} is no convolution of one group and no product with weights")
        wider |= dict.fromkeys(node.outputs, made)
        for name in node.weights:
            values = prod(graph.weights[name].shape) * made * (taken if product else 1)
            weights[name] = Weights((ceil(values),), graph.weights[name].trained)
        nodes.append(replace(node, product=product))
    tensors = {name: _widened(shape, wider.get(name, Fraction(1))) for name, shape in graph.tensors.items()}
    return replace(graph, tensors=tensors, weights=weights, nodes=tuple(nodes))


def _before_weights(graph: OperatorGraph) -> set[str]:
    """Tensors behind which there is another product with weights."""
    found = set[str]()
    for node in reversed(graph.nodes):
        if node.product is not None or found.intersection(node.outputs):
            found.update(node.inputs)
    return found


def _taken_width(graph: OperatorGraph, node: Node, wider: Mapping[str, Fraction]) -> Fraction:
    """How many times its channels a node takes: where inputs were rounded apart, the mean over their values."""
    if not node.inputs:
        return Fraction(1)
    sizes = [prod(graph.tensors[name]) for name in node.inputs]
    return sum((wider[name] * size for name, size in zip(node.inputs, sizes, strict=True)), Fraction(0)) / (sum(sizes) or 1)


def _root_above(columns: int, fold: int) -> int:
    """The least multiple of 8 that is not below columns sqrt(fold), or the least whole number where the columns are no such multiple."""
    step = 8 if columns % 8 == 0 else 1
    return step * (isqrt((columns // step) ** 2 * fold - 1) + 1)


def _widened(shape: Shape, wider: Fraction) -> Shape:
    """The same batch with so many times the values."""
    return (shape[0], ceil(prod(shape[1:]) * wider)) if shape else shape


# Blocks that are repeated, such as the layers of a transformer or the residual blocks of one stage of a ResNet.


def repeated_blocks(nodes: Sequence[Node], tensors: Mapping[str, Shape], weights: Mapping[str, Weights]) -> tuple[Group, ...]:
    """Blocks of at least two nodes that follow each other two times or more, with equal operators, shapes and wiring.

    For each length p, runs of nodes that equal the node p places on are repetitions. Of overlapping ones the one that covers most nodes is
    taken, of equal ones the shortest block; they are named in their order.
    """
    marks = _signatures(nodes, tensors, weights)
    found = list[tuple[int, int, int]]()
    for length in range(2, min(len(nodes) // 2, _LONGEST_BLOCK) + 1):
        equal = np.concatenate([[False], marks[:-length] == marks[length:], [False]])
        turns = np.flatnonzero(np.diff(equal.astype(np.int8)))
        starts, runs = turns[::2], turns[1::2] - turns[::2]
        for start, run in zip(starts[runs >= length].tolist(), runs[runs >= length].tolist(), strict=True):
            found.append((-length * (run // length + 1), length, start))
    taken, chosen = np.zeros(len(nodes), bool), list[tuple[int, int, int]]()
    for covered, length, start in sorted(found):
        if not taken[start : start - covered].any():
            taken[start : start - covered] = True
            chosen.append((start, length, -covered // length))
    return tuple(Group(f"block {number}", *block) for number, block in enumerate(sorted(chosen), 1))


def _signatures(nodes: Sequence[Node], tensors: Mapping[str, Shape], weights: Mapping[str, Weights]) -> Ints:
    """A number for each node, equal where operators, shapes, and the distances to their inputs' makers are."""
    makers = {tensor: number for number, node in enumerate(nodes) for tensor in node.outputs}
    known = dict[object, int]()
    marks = []
    for number, node in enumerate(nodes):
        back = tuple(number - makers[tensor] if tensor in makers else None for tensor in node.inputs)
        shapes = tuple(tensors[tensor] for tensor in (*node.inputs, *node.outputs))
        weight_shapes = tuple(weights[name].shape for name in node.weights)
        marks.append(known.setdefault((node.operator, node.source, node.product, node.window, back, shapes, weight_shapes), len(known)))
    return np.array(marks, np.int64)


def group_of(graph: OperatorGraph) -> dict[int, tuple[str, int, int]]:
    """Of each node in a repeated block: the block's name, the copy, and the place in it."""
    return {
        group.first + index: (group.name, index // group.length, index % group.length)
        for group in graph.groups
        for index in range(group.length * group.copies)
    }
