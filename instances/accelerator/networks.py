"""Networks as graphs of layers, each a graph of operators: of the layers of a file, the shape of a transformer, or an import."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, prod
from typing import Final, Protocol

import numpy as np

from crossopt.crossflow.accelerator import (
    BACKWARD_CYCLES,
    BYTES,
    FORWARD_CYCLES,
    Chips,
    Cores,
    OperatorGraph,
    Work,
    network_cycles,
    operator_cycles,
)
from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.crossflow.operator_costs import OPERATORS
from crossopt.crossflow.operator_graph import Node, Weights, values_in
from crossopt.crossflow.operator_graph import OperatorGraph as ImportedGraph

MOST_IDEALS: Final = 1_500


@dataclass(frozen=True, slots=True)
class Stored:
    """Bytes, of which tensor parallelism shares a part."""

    split: float = 0.0
    whole: float = 0.0

    def on_device(self, tensor: int, samples: int = 1) -> float:
        """Whole bytes on a device of a stage."""
        return float(ceil(samples * (self.split / tensor + self.whole)))


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of a layer for one sample."""

    name: str
    cores: Cores
    size: int
    cycles: int = 1
    backward: int = 2
    """Products on the way back, or cycles for an element."""
    split: bool = True
    moved: Stored = Stored()
    """Inputs and outputs of a sample."""
    weights: float = 0.0
    """Bytes for a microbatch of any size, split as the operator."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What turns bytes into cycles: bandwidths of the network and of the memory beside a chip, and the clock."""

    network: float
    memory: float
    clock: float
    granularity: int


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """A layer: its operators, and what is stored."""

    name: str
    operators: tuple[Operator, ...]
    graph: OperatorGraph
    parameters: Stored
    activations: Stored
    """Of a sample."""
    output: float
    """Bytes of a sample."""

    def work(self, backward: bool, tensor: int, samples: int, rates: Rates) -> list[Work]:
        """What each operator does on a device, in the order of the graph of a pass."""
        found = list[Work]()
        for operator in self.operators[::-1] if backward else self.operators:
            if operator.cores == "network":
                cycles = network_cycles(float(operator.size * samples), tensor, rates.network, rates.clock)
                found.append(Work("network", ceil(cycles)))
                continue
            shared = tensor if operator.split else 1
            size, vector = -(-operator.size * samples // shared), operator.cores == "vector"
            products = operator.backward if backward and not vector else 1
            moved = operator.moved.on_device(shared, samples) + ceil(operator.weights / shared)
            per_element = (operator.backward if backward else operator.cycles) if vector else 1
            found.append(Work(operator.cores, size * products, per_element, moved * products))
        return found

    def cycles(self, backward: bool, tensor: int, samples: int, chips: Chips, rates: Rates) -> tuple[Array, Array, Array]:
        """Whole cycles of all operators of a pass on one core and on all, by operator and chip, and of all its memory traffic by chip."""
        found = [operator_cycles(work, chips, rates.memory / rates.clock) for work in self.work(backward, tensor, samples, rates)]
        step = float(rates.granularity)
        one, every, moving = (np.array([columns[side] for columns in found]) for side in (0, 1, 2))
        return np.ceil(one / step) * step, np.ceil(every / step) * step, np.ceil(moving.sum(axis=0) / step) * step

    def pass_graph(self, backward: bool) -> OperatorGraph:
        """The graph of a pass."""
        return self.graph.reversed() if backward else self.graph


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Layers by kind, and the graph of those that occur."""

    name: str
    kinds: tuple[Layer, ...]
    names: tuple[str, ...]
    """Of all layers, in topological order."""
    kind_of: tuple[int, ...]
    before: tuple[tuple[int, ...], ...]
    imported: ImportedGraph | None = None
    nodes: tuple[tuple[int, ...], ...] = ()
    """Of an imported graph: nodes of the first layer of each kind."""
    reduced: tuple[float, ...] = ()
    """Of the graph of a transformer's layers: bytes that each kind sums among the devices of a stage, in each pass."""

    def __len__(self) -> int:
        return len(self.names)


def _merged(layers: Sequence[Layer], details: Sequence[object]) -> tuple[tuple[Layer, ...], tuple[int, ...]]:
    """Layers by kind, each once, and the kind of every layer; names do not count, details do."""
    rows, found = dict[tuple[object, ...], int](), list[Layer]()
    kind_of = list[int]()
    for layer, detail in zip(layers, details, strict=True):
        operators = tuple(replace(operator, name="") for operator in layer.operators)
        key = (operators, layer.graph.before, layer.parameters, layer.activations, layer.output, detail)
        if key not in rows:
            rows[key] = len(found)
            found.append(layer)
        kind_of.append(rows[key])
    return tuple(found), tuple(kind_of)


def chain_of(name: str, parts: Sequence[tuple[Layer, int]]) -> Network:
    """A network of layers in a row."""
    kinds = [row for row, (_, count) in enumerate(parts) for _ in range(count)]
    names = [layer.name if count == 1 else f"{layer.name}#{number}" for layer, count in parts for number in range(count)]
    before = tuple((index - 1,) if index else () for index in range(len(kinds)))
    return Network(name, tuple(layer for layer, _ in parts), tuple(names), tuple(kinds), before)


@dataclass(frozen=True, slots=True, eq=False)
class Ideals:
    """Sets of layers that hold everything before their layers, from none to all: members, and which is inside which."""

    members: Mask
    within: Mask

    def kinds(self, network: Network) -> Ints:
        """Layers of each kind in each ideal."""
        own = np.zeros((len(network), len(network.kinds)), np.int64)
        own[np.arange(len(network)), list(network.kind_of)] = 1
        return np.asarray(self.members.astype(np.int64) @ own)

    def passing(self, network: Network) -> list[float]:
        """Bytes of a sample that leave each ideal, each output once."""
        users: list[list[int]] = [[] for _ in network.names]
        for layer, earlier in enumerate(network.before):
            for item in earlier:
                users[item].append(layer)
        sizes = [float(ceil(network.kinds[kind].output)) for kind in network.kind_of]
        return [
            sum(sizes[layer] for layer in np.flatnonzero(inside) if any(not inside[user] for user in users[layer]))
            for inside in self.members
        ]


def ideals_of(network: Network) -> Ideals | None:
    """All ideals, smaller ones first; None if there are too many."""
    count = len(network)
    needed = [sum(1 << item for item in earlier) for earlier in network.before]
    found, front = {0: None}, [0]
    while front:
        larger = dict[int, None]()
        for ideal in front:
            for layer in range(count):
                if not ideal >> layer & 1 and not needed[layer] & ~ideal:
                    larger[ideal | 1 << layer] = None
        found |= larger
        front = list(larger)
        if len(found) > max(MOST_IDEALS, count + 1):
            return None
    members = np.array([[ideal >> layer & 1 for layer in range(count)] for ideal in found], bool)
    outside = members.astype(np.int64) @ (~members).astype(np.int64).T
    return Ideals(members, (outside == 0) & ~np.eye(len(members), dtype=bool))


class Shape(Protocol):
    """What a transformer's layers follow from."""

    @property
    def layers(self) -> int: ...
    @property
    def hidden(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def kv_heads(self) -> int: ...
    @property
    def ffn(self) -> int: ...
    @property
    def vocabulary(self) -> int: ...
    @property
    def sequence(self) -> int: ...
    @property
    def gated(self) -> bool: ...
    @property
    def experts(self) -> int: ...
    @property
    def experts_per_token(self) -> int: ...


class _Builder:
    """Operators of a layer as they are added."""

    def __init__(self) -> None:
        self.operators = list[Operator]()
        self.before = list[tuple[int, ...]]()

    def add(self, name: str, size: int, *after: int, split: bool = True, functions: str) -> int:
        """Add a vector operator behind others, with the cycles of its functions."""
        names = functions.split("+")
        cycles, backward = sum(FORWARD_CYCLES[name] for name in names), sum(BACKWARD_CYCLES.get(name, 1) for name in names)
        moved = float(BYTES * size * (max(len(after), 1) + 1))
        own = Stored(split=moved) if split else Stored(whole=moved)
        return self._added(Operator(name, "vector", size, cycles, backward, split, own), after)

    def summed(self, size: int, *after: int) -> int:
        """Add an all-reduce of so many bytes."""
        return self._added(Operator("all-reduce", "network", size), after)

    def product(self, name: str, cores: Cores, sides: tuple[int, int, int], *after: int, whole: str, weights: int) -> int:
        """Add a product of rows x inner with weights of inner x columns; `whole` is the side that tensor parallelism does not split."""
        rows, inner, columns = sides
        parts = {"input": float(BYTES * rows * inner), "output": float(BYTES * rows * columns)}
        moved = Stored(whole=parts.pop(whole), split=sum(parts.values()))
        return self._added(Operator(name, cores, rows * inner * columns, moved=moved, weights=float(BYTES * weights)), after)

    def attended(self, name: str, cores: Cores, sides: tuple[int, int, int], *after: int) -> int:
        """Add the products of all heads: of tokens x width with its like to tokens x tokens, or of those with tokens x width."""
        tokens, width, heads = sides
        moved = Stored(split=float(BYTES * heads * (2 * tokens * width + tokens * tokens)))
        return self._added(Operator(name, cores, heads * tokens * tokens * width, moved=moved), after)

    def _added(self, operator: Operator, after: tuple[int, ...]) -> int:
        self.operators.append(operator)
        self.before.append(after)
        return len(self.operators) - 1

    def graph(self) -> OperatorGraph:
        return OperatorGraph(
            tuple(operator.name for operator in self.operators), tuple(operator.cores for operator in self.operators), tuple(self.before)
        )


def transformer_network(name: str, shape: Shape, rotary: bool) -> Network:
    """The layers of a transformer with unfused attention: embedding, decoder layers alike, and head with loss."""
    tokens, hidden, vocabulary = shape.sequence, shape.hidden, shape.vocabulary
    elements, output = tokens * hidden, float(BYTES * tokens * hidden)
    start, end = _Builder(), _Builder()
    start.add("gather", elements, split=False, functions="add")
    normed = _norm(end, elements, rotary)
    logits = end.product("head", "tensor", (tokens, hidden, vocabulary), normed, whole="input", weights=hidden * vocabulary)
    end.add("logsoftmax", tokens * vocabulary, logits, functions="logsoftmax")
    table = Stored(split=float(BYTES * vocabulary * hidden))
    embedding = Layer("embedding", tuple(start.operators), start.graph(), table, Stored(whole=output), output)
    head = Layer(
        "head", tuple(end.operators), end.graph(), table, Stored(float(2 * BYTES * tokens * vocabulary), output), float(BYTES * tokens)
    )
    return chain_of(name, [(embedding, 1), (_decoder(shape, rotary), shape.layers), (head, 1)])


def _norm(builder: _Builder, elements: int, root_mean_square: bool, *after: int) -> int:
    """A norm: of root mean squares in three operators, else one."""
    if not root_mean_square:
        return builder.add("norm", elements, *after, split=False, functions="norm")
    mean = builder.add("pow+mean+add", elements, *after, split=False, functions="pow+mean+add")
    scaled = builder.add("mul", elements, mean, split=False, functions="mul")
    return builder.add("mul", elements, scaled, split=False, functions="mul")


def _decoder(shape: Shape, rotary: bool) -> Layer:
    """A layer: norm, attention, norm and feed-forward part, with an all-reduce behind either part."""
    tokens, hidden, builder = shape.sequence, shape.hidden, _Builder()
    elements, narrow = tokens * hidden, hidden * (shape.kv_heads or shape.heads) // shape.heads
    scores, summed = tokens * tokens * shape.heads, BYTES * elements
    normed = _norm(builder, elements, rotary)
    query = builder.product("query", "tensor", (tokens, hidden, hidden), normed, whole="input", weights=hidden * hidden)
    key, value = (
        builder.product(name, "tensor", (tokens, hidden, narrow), normed, whole="input", weights=hidden * narrow)
        for name in ("key", "value")
    )
    if rotary:
        query, key = _rotated(builder, elements, query), _rotated(builder, tokens * narrow, key)
    product = builder.attended("scores", "both", (tokens, hidden // shape.heads, shape.heads), query, key)
    masked = builder.add("mask", scores, product, functions="add")
    softmax = builder.add("softmax", scores, masked, functions="softmax")
    dropped = builder.add("dropout", scores, softmax, functions="dropout")
    context = builder.attended("context", "tensor", (tokens, hidden // shape.heads, shape.heads), dropped, value)
    projected = builder.product("projection", "both", (tokens, hidden, hidden), context, whole="output", weights=hidden * hidden)
    attended = builder.summed(summed, projected)
    normed = _norm(builder, elements, rotary, attended)
    width = shape.ffn * shape.experts_per_token
    sides, matrix = (tokens * shape.experts_per_token, hidden, shape.ffn), hidden * shape.ffn * shape.experts
    up = builder.product("up", "tensor" if shape.gated else "both", sides, normed, whole="input", weights=matrix)
    if shape.gated:
        gate = builder.product("gate", "both", sides, normed, whole="input", weights=matrix)
        up = builder.add("mul", tokens * width, up, gate, functions="mul")
    sides = (sides[0], shape.ffn, hidden)
    down = builder.product("down", "tensor" if rotary else "both", sides, up, whole="output", weights=matrix)
    reduced = builder.summed(summed, down)
    builder.add("add", elements, reduced, split=False, functions="add")
    matrices = hidden * (2 * hidden + 2 * narrow) + (3 if shape.gated else 2) * hidden * shape.ffn * shape.experts
    parameters = Stored(float(BYTES * matrices), float(BYTES * 2 * hidden))
    activations = Stored(float(24 * elements + 5 * scores), float(10 * elements))
    return Layer("layer", tuple(builder.operators), builder.graph(), parameters, activations, float(summed))


def _rotated(builder: _Builder, elements: int, projected: int) -> int:
    """Rotary positions: one half of the elements is swapped and negated, and both are scaled and added."""
    scaled = builder.add("mul", elements, projected, functions="mul")
    half = builder.add("div", 1, projected, functions="div")
    other = builder.add("div", 1, projected, functions="div")
    negated = builder.add("neg", elements // 2, other, functions="neg")
    swapped = builder.add("mul", elements, half, negated, functions="mul")
    return builder.add("add", elements, scaled, swapped, functions="add")


class _Nodes:
    """Nodes of a graph as they are added, each with one output of its name."""

    def __init__(self, tokens: int) -> None:
        self.tensors: dict[str, tuple[int, ...]] = {"tokens": (tokens,)}
        self.weights, self.nodes = dict[str, Weights](), list[Node]()

    def add(self, name: str, operator: str, shape: tuple[int, ...], *inputs: str, weights: tuple[int, ...] = (), source: str = "") -> str:
        """Add a node."""
        self.weights |= {name: Weights(weights)} if weights else {}
        self.tensors[name] = shape
        self.nodes.append(Node(name, operator, inputs, (name,), (name,) if weights else (), source=source))
        return name

    def product(self, name: str, sides: tuple[int, int, int, int], shape: tuple[int, ...], *inputs: str, trained: bool = True) -> str:
        """Add products: of rows x depth with depth x columns of weights, or attention."""
        rows, depth, columns, count = sides
        operator, weights = ("product", (count, depth, columns)) if trained else ("attention", ())
        self.add(name, operator, shape, *inputs, weights=weights)
        self.nodes[-1] = replace(self.nodes[-1], product=(rows, depth, columns, count))
        return name


def shape_graph_network(name: str, shape: Shape, rotary: bool) -> Network:
    """The layers of a transformer with fused attention as a graph of nodes, of which the roofline prices one decoder layer for all."""
    tokens, hidden, vocabulary, net = shape.sequence, shape.hidden, shape.vocabulary, _Nodes(shape.sequence)
    entering = net.add("embedding", "embedding", (tokens, hidden), "tokens", weights=(vocabulary, hidden))
    ends = [1]
    leaving = _decoder_nodes(net, shape, rotary, entering)
    ends.append(len(net.nodes))
    normed = net.add("final norm", "norm", (tokens, hidden), leaving, weights=(2, hidden))
    net.product("head", (tokens, hidden, vocabulary, 1), (tokens, vocabulary), normed)
    net.add("loss", "softmax", (tokens, vocabulary), "head")
    ends.append(len(net.nodes))
    graph = ImportedGraph(name, ("tokens",), ("loss",), net.tensors, net.weights, tuple(net.nodes))
    members = tuple(tuple(range(start, end)) for start, end in pairwise([0, *ends]))
    kept = _kept(graph)
    kinds = [
        replace(_layer(graph, rows, kept, (output,)), name=own)
        for rows, output, own in zip(members, (entering, leaving, "loss"), ("embedding", "layer", "head"), strict=True)
    ]
    found = chain_of(name, [(kinds[0], 1), (kinds[1], shape.layers), (kinds[2], 1)])
    return replace(found, imported=graph, nodes=members, reduced=(0.0, float(2 * BYTES * tokens * hidden), 0.0))


def _decoder_nodes(net: _Nodes, shape: Shape, rotary: bool, entering: str) -> str:
    """Nodes of a decoder layer; the name of its output."""
    tokens, hidden, heads, active = shape.sequence, shape.hidden, shape.heads, shape.experts_per_token
    full, narrow = (tokens, hidden), hidden * (shape.kv_heads or heads) // heads
    normed = net.add("norm", "norm", full, entering, weights=(2, hidden))
    sides = {"query": hidden, "key": narrow, "value": narrow}
    made = [net.product(own, (tokens, hidden, width, 1), (tokens, width), normed) for own, width in sides.items()]
    if rotary:
        made[:2] = [net.add(f"rotary {own}", "multiplication", net.tensors[own], own) for own in made[:2]]
    mixed = net.product("attention", (tokens, 2 * hidden // heads, tokens, heads), full, *made, trained=False)
    projected = net.product("projection", (tokens, hidden, hidden, 1), full, mixed)
    between = net.add("sum", "addition", full, entering, projected)
    normed = net.add("second norm", "norm", full, between, weights=(2, hidden))
    rows, wide = -(-tokens * active // shape.experts), (tokens * active, shape.ffn)
    if shape.experts > 1:
        net.product("router", (tokens, hidden, shape.experts, 1), (tokens, shape.experts), normed)
    up = net.product("up", (rows, hidden, shape.ffn, shape.experts), wide, normed)
    if shape.gated:
        gate = net.product("gate", (rows, hidden, shape.ffn, shape.experts), wide, normed)
        up = net.add("gated", "multiplication", wide, up, net.add("activation", "activation", wide, gate))
    else:
        up = net.add("activation", "activation", wide, up)
    down = net.product("down", (rows, shape.ffn, hidden, shape.experts), (tokens * active, hidden), up)
    return net.add("second sum", "addition", full, between, down)


def topological(names: Sequence[str], before: Sequence[Sequence[int]], refuse: Callable[[str], None]) -> list[int]:
    """An order in which each comes after those before it; `refuse` is told of a cycle."""
    order, done = list[int](), set[int]()
    while len(order) < len(names):
        ready = [row for row in range(len(names)) if row not in done and done.issuperset(before[row])]
        if not ready:
            left = next(row for row in range(len(names)) if row not in done)
            refuse(names[left])
            return []
        order += ready
        done.update(ready)
    return order


# Graphs of operators that `crossopt import` wrote. A layer is a product with what follows it alone: norms, activations, and whatever
# else has one input that nothing else takes.

_USUAL = {"softmax": "softmax", "norm": "norm", "addition": "add", "multiplication": "mul", "activation": "relu", "reduction": "add"}
"""Functions of operators whose name in another tool is none of the table."""
_NARROW = 8
"""Output channels of a group below which a convolution runs on vector cores."""


def network_in(graph: ImportedGraph, name: str) -> Network:
    """The network of an imported graph; its batch is one sample."""
    groups = _groups(graph)
    layer_of = {number: row for row, members in enumerate(groups) for number in members}
    makers = {tensor: number for number, node in enumerate(graph.nodes) for tensor in node.outputs}
    users: dict[str, set[int]] = {}
    for number, node in enumerate(graph.nodes):
        for tensor in node.inputs:
            users.setdefault(tensor, set()).add(layer_of[number])
    kept, layers, before = _kept(graph), list[Layer](), list[tuple[int, ...]]()
    for row, members in enumerate(groups):
        nodes = [graph.nodes[number] for number in members]
        sources = {layer_of[makers[tensor]] for node in nodes for tensor in node.inputs if tensor in makers}
        before.append(tuple(sorted(sources - {row})))
        outputs = tuple(tensor for node in nodes for tensor in node.outputs if users.get(tensor, set()) - {row})
        layers.append(_layer(graph, members, kept, outputs))
    kinds, kind_of = _merged(layers, [tuple(_shapes(graph, graph.nodes[number]) for number in members) for members in groups])
    firsts = tuple(tuple(groups[kind_of.index(kind)]) for kind in range(len(kinds)))
    return Network(name, kinds, tuple(layer.name for layer in layers), kind_of, tuple(before), graph, firsts)


def _layer(graph: ImportedGraph, members: Sequence[int], kept: Sequence[Sequence[str]], outputs: tuple[str, ...]) -> Layer:
    """The layer of some nodes, which run one after another."""
    nodes = [graph.nodes[number] for number in members]
    weights = {weight for node in nodes for weight in node.weights}
    operators = tuple(_operator(graph, node) for node in nodes)
    chain = tuple((index - 1,) if index else () for index in range(len(operators)))
    return Layer(
        nodes[0].name,
        operators,
        OperatorGraph(tuple(operator.name for operator in operators), tuple(operator.cores for operator in operators), chain),
        Stored(float(BYTES * sum(prod(graph.weights[weight].shape) for weight in weights if graph.weights[weight].trained))),
        Stored(float(BYTES * sum(values_in((tensor,), graph.tensors) for number in members for tensor in kept[number]))),
        float(BYTES * values_in(outputs, graph.tensors)),
    )


def _shapes(graph: ImportedGraph, node: Node) -> tuple[object, ...]:
    """What the price of a node depends on."""
    shapes = tuple(tuple(graph.tensors[tensor] for tensor in side) for side in (node.inputs, node.outputs))
    flows_back = not set(graph.inputs).issuperset(node.inputs)
    return node.operator, node.product, node.window, shapes, tuple(graph.weights[weight].shape for weight in node.weights), flows_back


def _groups(graph: ImportedGraph) -> list[list[int]]:
    """Nodes of each layer, in topological order: vector operators join the only node that they follow."""
    makers = {tensor: number for number, node in enumerate(graph.nodes) for tensor in node.outputs}
    users: dict[int, set[int]] = {}
    for number, node in enumerate(graph.nodes):
        for tensor in node.inputs:
            if tensor in makers:
                users.setdefault(makers[tensor], set()).add(number)
    groups, group_of = list[list[int]](), dict[int, int]()
    for number, node in enumerate(graph.nodes):
        sources = {makers[tensor] for tensor in node.inputs if tensor in makers}
        alone = len(sources) == 1 and users[next(iter(sources))] == {number} and node.product is None
        if alone:
            group_of[number] = group_of[next(iter(sources))]
            groups[group_of[number]].append(number)
        else:
            group_of[number] = len(groups)
            groups.append([number])
    return groups


def _kept(graph: ImportedGraph) -> list[list[str]]:
    """Tensors that each node is the first to keep until the backward pass; a view keeps what it looks at."""
    origin, seen, found = dict[str, str](), set[str](), list[list[str]]()
    for node in graph.nodes:
        kind = OPERATORS.get(node.operator, OPERATORS["other"])
        if kind.priced == "view" and node.inputs:
            origin |= {tensor: origin.get(node.inputs[0], node.inputs[0]) for tensor in node.outputs}
        every = {"nothing": (), "inputs": node.inputs, "outputs": node.outputs, "everything": node.inputs + node.outputs}[kind.keeps]
        new = [item for item in dict.fromkeys(origin.get(tensor, tensor) for tensor in every) if item not in seen]
        seen.update(new)
        found.append(new)
    return found


def _operator(graph: ImportedGraph, node: Node) -> Operator:
    """The operator of a node."""
    kind = OPERATORS.get(node.operator, OPERATORS["other"])
    narrow = node.product is not None and node.product[3] > 1 and node.product[2] < _NARROW and kind.priced == "convolution"
    flows_back = not set(graph.inputs).issuperset(node.inputs)
    if kind.priced == "view":
        return Operator(node.name, "vector", 0, 1, 1)
    moved = Stored(split=float(BYTES * values_in((*node.inputs, *node.outputs), graph.tensors)))
    weights = float(BYTES * sum(prod(graph.weights[weight].shape) for weight in node.weights))
    if node.product is not None and not narrow:
        cores: Cores = "both" if kind.priced == "attention" else "tensor"
        return Operator(node.name, cores, node.macs, 1, 2 if flows_back or cores == "both" else 1, moved=moved, weights=weights)
    if narrow:
        return Operator(node.name, "vector", node.macs, 1, 2 if flows_back else 1, moved=moved, weights=weights)
    function = node.source.lower() if node.source.lower() in FORWARD_CYCLES else _USUAL.get(node.operator, "add")
    size = values_in(node.outputs, graph.tensors) * (prod(node.window) if kind.windowed and node.window else 1)
    cycles = FORWARD_CYCLES[function], BACKWARD_CYCLES.get(function, 1)
    return Operator(node.name, "vector", size, *cycles, moved=moved, weights=weights)
