"""Operators with shapes: multiply-adds counted one by one, prices of a transformer layer, monotony, and blocks that are repeated."""

import csv
import json
from dataclasses import replace
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.hardware import Hardware, take
from crossopt.crossflow.operator_costs import OPERATORS, GraphCosts, columns_of, graph_costs, kept_tensors
from crossopt.crossflow.operator_graph import (
    Group,
    Node,
    OperatorGraph,
    Shape,
    Weights,
    convolution_sides,
    edges,
    graph_faults,
    group_of,
    product_sides,
    repeated_blocks,
    shared_weights,
    transposed_sides,
)
from crossopt.crossflow.operators import operators
from crossopt.crossflow.roofline import Product, product_cost, reloads, stream_cost
from crossopt.crossflow.workload import Transformer
from tests.conftest import GROWING, scaled
from tests.extent import examples
from tests.paths import reference


def graph_of(nodes: list[Node], tensors: dict[str, Shape], weights: dict[str, Weights] | None = None) -> OperatorGraph:
    """A graph whose only input is `x`."""
    return OperatorGraph("test", ("x",), nodes[-1].outputs, tensors, weights or {}, tuple(nodes))


def convolution(taken: Shape, made: Shape, kernel: Shape, groups: int = 1, operator: str = "convolution") -> OperatorGraph:
    sides = convolution_sides(made, kernel, groups) if operator == "convolution" else transposed_sides(taken, kernel, groups)
    node = Node("c", operator, ("y",), ("z",), ("w",), sides, kernel[2:])
    tensors = {"x": taken, "y": taken, "z": made}
    return graph_of([Node("v", "view", ("x",), ("y",)), node], tensors, {"w": Weights(kernel)})


@given(st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(1, 3), st.integers(1, 2), st.integers(1, 2))
@examples(60)
def test_multiply_adds_of_a_convolution_are_those_that_loops_carry_out(
    batch: int, inputs: int, outputs: int, groups: int, kernel: int, stride: int, dilation: int
) -> None:
    """One for each output value, input channel of its group and place of the kernel, wherever the kernel lies."""
    extent = 7
    made = (extent - dilation * (kernel - 1) - 1) // stride + 1
    places = product(range(batch), range(outputs * groups), range(made), range(made), range(inputs), range(kernel), range(kernel))
    read = [(row * stride + r * dilation, column * stride + s * dilation) for _, _, row, column, _, r, s in places]
    assert max(max(place) for place in read) < extent
    weights = (outputs * groups, inputs, kernel, kernel)
    graph = convolution((batch, inputs * groups, extent, extent), (batch, outputs * groups, made, made), weights, groups)
    assert graph.macs == len(read)
    back = (batch, outputs * groups, made, made), (batch, inputs * groups, extent, extent)
    assert convolution(*back, (outputs * groups, inputs, kernel, kernel), groups, "transposed convolution").macs == len(read)


@pytest.mark.parametrize(
    ("first", "second", "sides"),
    [
        ((4, 7, 5), (5, 3), (28, 5, 3, 1)),
        ((2, 6, 7, 5), (2, 6, 5, 9), (7, 5, 9, 12)),
        ((2, 6, 7, 5), (6, 5, 9), (7, 5, 9, 12)),
        ((5,), (5, 3), (1, 5, 3, 1)),
        ((4, 5), (5,), (4, 5, 1, 1)),
    ],
)
def test_products_of_stacks_have_the_sides_that_numpy_multiplies(first: Shape, second: Shape, sides: tuple[int, ...]) -> None:
    assert product_sides(first, second) == sides
    rows, _, columns, count = sides
    assert rows * columns * count == np.matmul(np.zeros(first), np.zeros(second)).size


@pytest.mark.data
def test_published_networks_have_their_multiply_adds_and_weights() -> None:
    found = dict[str, tuple[int, int]]()
    with reference("layers/cnn_layers.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            c, k, r, s, p, q, groups = (int(row[name]) for name in ("C", "K", "R", "S", "P", "Q", "groups"))
            kernel = (k, c // groups, r, s)
            graph = convolution((1, c, int(row["in_h"]), int(row["in_w"])), (1, k, p, q), kernel, groups)
            assert (graph.macs, graph.parameters) == (int(row["macs"]), int(row["weights"])), row["name"]
            macs, weights = found.get(row["net"], (0, 0))
            found[row["net"]] = macs + graph.macs, weights + graph.parameters + int(row["bias"]) + int(row["norm"])
    expected = json.loads(reference("layers/cnn_expected.json").read_text(encoding="utf-8"))
    assert found == {name: (one["macs"], one["parameters"]) for name, one in expected.items()}


MODEL = Transformer(
    "grouped", layers=1, hidden=1024, heads=16, kv_heads=4, ffn=2816, vocabulary=32000, sequence=512, global_batch=8, gated=True,
    biases=False, tied=False, learned_positions=False,
)  # fmt: skip


def layer_graph(model: Transformer, batch: int) -> OperatorGraph:
    """A layer of a transformer as an import would write it, with causal attention."""
    tokens, hidden, inner, keys = batch * model.sequence, model.hidden, model.ffn, 4 * model.head_width
    wide = (batch, model.sequence, hidden)
    tensors = dict.fromkeys(("x", "n1", "a", "p", "s1", "n2", "o", "s2", "e"), wide)
    tensors |= {"x": (batch, model.sequence), "qkv": (batch, model.sequence, hidden + 2 * keys)}
    tensors |= {"i": (batch, model.sequence, 2 * inner), "g": (batch, model.sequence, inner)}
    weights = {"qkv": (hidden, hidden + 2 * keys), "p": (hidden, hidden), "i": (hidden, 2 * inner), "o": (inner, hidden)}
    head = (model.sequence, 2 * model.head_width, model.sequence // 2, batch * model.heads)
    nodes = [
        Node("embedding", "embedding", ("x",), ("e",), ("table",)),
        Node("norm 1", "norm", ("e",), ("n1",)),
        Node("queries, keys, values", "product", ("n1",), ("qkv",), ("qkv",), (tokens, *weights["qkv"], 1)),
        Node("attention", "attention", ("qkv",), ("a",), (), head),
        Node("projection", "product", ("a",), ("p",), ("p",), (tokens, *weights["p"], 1)),
        Node("addition 1", "addition", ("p", "e"), ("s1",)),
        Node("norm 2", "norm", ("s1",), ("n2",)),
        Node("inner product", "product", ("n2",), ("i",), ("i",), (tokens, *weights["i"], 1)),
        Node("activation", "gate", ("i",), ("g",)),
        Node("outer product", "product", ("g",), ("o",), ("o",), (tokens, *weights["o"], 1)),
        Node("addition 2", "addition", ("o", "s1"), ("s2",)),
    ]
    table = {"table": Weights((model.vocabulary, hidden))}
    return graph_of(nodes, tensors, {name: Weights(shape) for name, shape in weights.items()} | table)


def test_operators_cost_what_those_of_a_transformer_layer_cost(a100: Hardware) -> None:
    graph = layer_graph(MODEL, 2)
    assert not list(graph_faults(graph))
    costs = graph_costs(columns_of(graph), 2.0, a100)
    times = (np.ravel(side.time).tolist() for side in (costs.forward, costs.backward))
    seconds = {node.name: both for node, *both in zip(graph.nodes, *times, strict=True)}
    first, *layer = operators(MODEL, a100, 2)[:-1]
    assert sum(seconds["embedding"]) == pytest.approx(first.forward + first.backward, rel=1e-12)  # which splits it by its passes
    for node in layer:
        assert seconds[node.name.removeprefix("layer 1: ")] == pytest.approx([node.forward, node.backward], rel=1e-12), node.name


def test_a_convolution_of_one_place_costs_what_its_matrix_product_costs(a100: Hardware) -> None:
    graph = convolution((8, 256, 14, 14), (8, 1024, 14, 14), (1024, 256, 1, 1))
    costs = graph_costs(columns_of(graph), 2.0, a100)
    same = Product(8.0 * 196, 256.0, 1024.0)
    assert np.ravel(costs.forward.time)[1] == np.ravel(product_cost(same, 2.0, a100).time)[0]
    gradients = (Product(same.rows, same.columns, same.depth), Product(same.depth, same.rows, same.columns))
    assert np.ravel(costs.backward.time)[1] == sum(float(np.ravel(product_cost(one, 2.0, a100).time)[0]) for one in gradients)


def test_windows_that_overlap_are_read_from_memory_once(a100: Hardware) -> None:
    """With a cache that holds all, DRAM moves each value once, and so the energy of a memory that alone takes any."""
    graph = convolution((1, 64, 56, 56), (1, 64, 56, 56), (64, 64, 3, 3))
    device = replace(a100, l2=replace(a100.l2, capacity=1e30, energy=0.0), running_power=0.0, energy_per_flop=0.0)
    device = replace(device, l1=replace(device.l1, energy=0.0), registers=replace(device.registers, energy=0.0))
    device = replace(device, dram=replace(device.dram, energy=1.0))
    moved = np.ravel(graph_costs(columns_of(graph), 2.0, device).forward.energy)[1]
    assert moved == pytest.approx(2.0 * (2 * 64 * 56 * 56 + 64 * 64 * 9), rel=1e-12)


def test_depthwise_convolutions_run_on_the_vector_engine(a100: Hardware) -> None:
    graph = convolution((8, 512, 14, 14), (8, 512, 14, 14), (512, 1, 3, 3), 512)
    values = 2 * 8 * 512 * 196
    expected = stream_cost(2.0 * (values + 512 * 9), 2.0 * 9 * values / 2, a100)
    assert np.ravel(graph_costs(columns_of(graph), 2.0, a100).forward.time)[1] == pytest.approx(float(expected.time), rel=1e-12)


def test_a_product_of_values_that_all_differ_moves_the_same_bytes_to_the_bit(a100: Hardware) -> None:
    one = Product(np.array([[100.0], [3000.0]]), 512.0, np.array([[77.0], [4096.0]]))
    assert np.array_equal(product_cost(one, 2.0, a100, (1.0, 1.0, 1.0)).time, product_cost(one, 2.0, a100).time)
    assert float(np.min(reloads(one, 1e30))) >= 100.0 * 512


EVERY = (
    layer_graph(MODEL, 1),
    convolution((1, 32, 9, 9), (1, 64, 9, 9), (64, 32, 3, 3)),
    convolution((1, 8, 9, 9), (1, 8, 9, 9), (8, 1, 3, 3), 8),
)


@pytest.mark.parametrize("resource", [name for name in GROWING if not name.startswith("links")])
@given(factor=st.floats(1.0, 3.0))
@examples(12)
def test_more_of_a_resource_makes_no_operator_slower(a100: Hardware, resource: str, factor: float) -> None:
    for graph in EVERY:
        columns = columns_of(graph)
        less, more = (graph_costs(columns, 2.0, device) for device in (a100, scaled(a100, resource, factor)))
        assert np.all(np.asarray(more.forward.time) <= less.forward.time)
        assert np.all(np.asarray(more.backward.time) <= less.backward.time)


def test_many_devices_at_once_cost_what_each_costs(a100: Hardware) -> None:
    factors = np.array([0.5, 1.0, 1.7])
    devices = replace(a100, throughput=a100.throughput * factors, l2=replace(a100.l2, capacity=a100.l2.capacity * factors))
    for graph in EVERY:
        columns = columns_of(graph)
        together = graph_costs(columns, 1.0, devices)
        for place in range(3):
            alone = graph_costs(columns, 1.0, take(devices, place))
            for ours, theirs in zip(times(together), times(alone), strict=True):
                assert np.array_equal(np.broadcast_to(ours, (len(graph), 3))[:, place], np.ravel(theirs))


def times(costs: GraphCosts) -> list[object]:
    return [np.asarray(costs.forward.time), np.asarray(costs.backward.time), np.asarray(costs.forward.energy)]


def test_a_tensor_that_two_operators_keep_is_kept_once_and_a_view_keeps_its_origin() -> None:
    shape = (4, 8)
    nodes = [
        Node("v", "view", ("x",), ("y",)),
        Node("r", "activation", ("y",), ("z",)),
        Node("m", "multiplication", ("x", "z"), ("u",)),
        Node("s", "softmax", ("u",), ("p",)),
        Node("a", "addition", ("p", "z"), ("q",)),
    ]
    assert kept_tensors(graph_of(nodes, dict.fromkeys("xyzupq", shape))) == ("x", "z", "p")


def test_edges_run_from_the_maker_of_a_tensor_to_each_taker() -> None:
    graph = layer_graph(MODEL, 1)
    found = {(graph.nodes[one.source].name, graph.nodes[one.target].name) for one in edges(graph)}
    assert ("embedding", "addition 1") in found
    assert ("addition 1", "addition 2") in found
    assert len(found) == 12


def chain(lengths: list[int], tied: bool = False) -> OperatorGraph:
    """Products of these widths one behind another."""
    tensors: dict[str, Shape] = {"x": (2, lengths[0])}
    weights, nodes = dict[str, Weights](), list[Node]()
    for number, (one, other) in enumerate(pairwise(lengths)):
        name = f"w{one}x{other}" if tied else f"w{number}"
        tensors[f"t{number}"], weights[name] = (2, other), Weights((one, other))
        taken = f"t{number - 1}" if number else "x"
        nodes.append(Node(f"n{number}", "product", (taken,), (f"t{number}",), (name,), (2, one, other, 1)))
    return graph_of(nodes, tensors, weights)


def test_repeated_blocks_are_found_with_their_copies() -> None:
    graph = chain([8, 4, 6, 4, 6, 4, 6, 3, 5, 3, 5, 9])
    groups = repeated_blocks(graph.nodes, graph.tensors, graph.weights)
    assert groups == (Group("block 1", 1, 2, 2),)
    with_groups = replace(graph, groups=groups)
    assert group_of(with_groups)[4] == ("block 1", 1, 1)


def test_nodes_that_name_the_same_weights_share_them() -> None:
    graph = chain([4, 6, 4, 6, 4], tied=True)
    assert shared_weights(graph) == {"w4x6": (0, 2), "w6x4": (1, 3)}
    assert graph.parameters == 48


def test_faults_of_a_graph_are_told_with_their_place() -> None:
    nodes = [
        Node("a", "view", ("later",), ("y",)),
        Node("a", "view", ("nowhere",), ("y",), ("none",), (0, 1, 1, 1)),
        Node("b", "view", ("y",), ("later",), window=(2**30, 2**30)),
    ]
    told = dict(graph_faults(graph_of(nodes, {"x": (2, 2**52), "y": (-1,)})))
    assert told == {
        "nodes[0].inputs": "'later' is made by an operator behind it (list operators in topological order)",
        "nodes[1].name": "'a' is the name of an operator before it (give each its own)",
        "nodes[1].inputs": "'nowhere' is made by no operator",
        "nodes[1].outputs": "'y' is made twice (give each its own name)",
        "nodes[1].weights": "there are no weights 'none' (add them to weights)",
        "nodes[1].product": "rows, depth, columns and count are whole numbers from 1 on and below 2^53",
        "nodes[2].window": "it has 2^53 values or more",
        "nodes[2].outputs": "'later' has no shape (add it to tensors)",
        "tensors.x": "it has 2^53 values or more (give the shape of one step)",
        "tensors.y": "extents are whole numbers from 0 on",
    }


def test_every_operator_of_the_table_says_what_it_is() -> None:
    assert all(one.about for one in OPERATORS.values())
    assert prod(()) == 1  # a window that nothing says has one value
