"""Splits over devices as questions: equality with a look at every choice, monotony, ties, rules above the bound, published directions."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import inf
from pathlib import Path
from random import Random

import pytest

from crossopt.crossflow.operator_costs import OPERATORS
from crossopt.crossflow.operator_graph import Group, Node, OperatorGraph, Shape, Sides, Weights
from crossopt.crossflow.relayouts import Network
from crossopt.instances.catalogue.registry import build_device, device
from crossopt.instances.errors import RefusedError
from crossopt.instances.layers.problem import Written, problem_of
from crossopt.instances.layers.question import LayersQuestion
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.family import solve
from crossopt.solvers.layers.family import FAMILY
from crossopt.solvers.layers.judge import LayerChoices, LayerTotals, best_of_all, every_choice, judge, prove
from tests.extent import some
from tests.instances.layers.image_networks import alexnet, resnet50, vgg16

Answered = Result[LayerChoices, LayerTotals]


def asked(tmp_path: Path, graph: OperatorGraph, devices: int, more: str = "") -> LayersQuestion:
    (tmp_path / "graph.json").write_text(graph_text(graph), encoding="utf-8")
    text = f"kind: layers\ngraph: graph.json\nhardware: h100-sxm\ncluster: {{devices: {devices}}}\n{more}"
    path = tmp_path / "question.yaml"
    path.write_text(text if "objective" in more else f"{text}objective: time\n", encoding="utf-8")
    found: LayersQuestion = read(path)
    return found


def solved(question: LayersQuestion) -> Answered:
    return solve(FAMILY, question, "auto", Limits(), unwatched)


def drawn(seed: int) -> tuple[OperatorGraph, int, str]:
    """Up to five operators on a chain with at most one addition, on 2 to 6 devices, with a budget or without."""
    random = Random(seed)
    batch, devices = random.choice((12, 24)), random.choice((2, 3, 4, 6))
    channels, height = random.choice((12, 24, 512)), random.choice((2, 12))
    shape: Shape = (batch, channels, height, height)
    tensors: dict[str, Shape] = {"x": (batch, 3, height, height)}
    weights, nodes, here, last = dict[str, Weights](), list[Node](), "x", 3
    for number in range(random.randint(1, 4)):
        name = f"n{number}"
        operator = random.choice(("convolution", "convolution", "activation", "norm")) if number else "convolution"
        tensors[name] = shape
        if operator == "convolution":
            weights[f"{name}.w"] = Weights((channels, last, 3, 3))
            sides = (batch * height * height, 9 * last, channels, 1)
            nodes.append(Node(name, operator, (here,), (name,), (f"{name}.w",), sides, (3, 3), "Conv"))
        elif number > 1 and operator == "norm":
            nodes.append(Node(name, "addition", (here, "n0"), (name,)))
        else:
            nodes.append(Node(name, operator, (here,), (name,), (), None, (), "BatchNormalization"))
        here, last = name, channels
    if random.random() < 0.5:
        depth, out = channels * height * height, random.choice((24, 1000))
        tensors |= {"flat": (batch, depth), "end": (batch, out)}
        weights["end.w"] = Weights((depth, out))
        nodes += [Node("flat", "view", (here,), ("flat",)), Node("end", "product", ("flat",), ("end",), ("end.w",), (batch, depth, out, 1))]
        here = "end"
    training = random.random() < 0.7
    more = f"training: {str(training).lower()}\nobjective: {random.choice(('time', 'time', 'energy'))}\n"
    return OperatorGraph(f"drawn {seed}", ("x",), (here,), tensors, weights, tuple(nodes)), devices, more


def budgeted(question: LayersQuestion, share: float) -> LayersQuestion:
    """With a budget for memory between the least and the most."""
    problem = question.problem
    place = problem.figures.index("memory")
    tables = [table[:, place] for table in problem.uses]
    least, most = sum(int(table.min()) for table in tables), sum(int(table.max()) for table in tables)
    limits = tuple(least + int(share * (most - least)) if one == place else None for one in range(len(problem.figures)))
    amount = problem.amount(place, limits[place] or 0)
    return replace(question, problem=replace(problem, limits=limits), budgets={"memory": amount})


@pytest.mark.parametrize("seed", some(range(40), 8))
def test_answers_are_the_best_of_all_choices(tmp_path: Path, seed: int) -> None:
    graph, devices, more = drawn(seed)
    question = asked(tmp_path, graph, devices, more)
    if seed % 2:
        question = budgeted(question, 0.3)
    if every_choice(question) > 5_000:
        question = asked(tmp_path, graph, devices, f"{more}groups: [{devices}]\n")
    found, (value, _) = solved(question), best_of_all(question)
    assert (found.proved, found.value) == (True, value)
    assert not prove(question, found, unwatched).refused
    for baseline in found.baselines:
        verdict = judge(question, baseline.answer) if baseline.answer else None
        assert verdict is None or not verdict.accepted or verdict.value >= value


def test_more_memory_and_more_splits_cost_no_more(tmp_path: Path) -> None:
    question = asked(tmp_path, alexnet(2048), 8, "training: true\n")
    free = solved(question)
    assert free.details is not None
    memory = free.details.totals["memory"]
    values = list[float]()
    for share in (0.8, 0.9, 0.94, 0.96, 0.98, 1.0):
        limits = tuple(
            int(share * memory * 10.0 ** question.problem.decimals[place]) if name == "memory" else None
            for place, name in enumerate(question.problem.figures)
        )
        within = replace(question, problem=replace(question.problem, limits=limits), budgets={"memory": share * memory})
        found = solved(within)
        assert not prove(within, found, unwatched).refused
        values.append(inf if found.value is None else found.value)
    assert values == sorted(values, reverse=True)
    assert len(set(values)) > 2
    fewer = [
        solved(asked(tmp_path, alexnet(2048), 8, f"training: true\nsplits: [{kinds}]\n")).value for kinds in ("batch", "batch, features")
    ]
    assert fewer[0] > fewer[1] >= values[-1]  # type: ignore[operator]


def test_a_budget_below_the_least_says_the_least(tmp_path: Path) -> None:
    found = solved(asked(tmp_path, alexnet(256), 8, "training: true\nbudgets: {size: 1 MB}\n"))
    assert found.status == "INFEASIBLE"
    assert found.reasons[0].startswith("size is at least ")


Builder = Callable[[int], OperatorGraph]


@pytest.mark.parametrize(("network", "batch"), [(alexnet, 2048), (vgg16, 512), (resnet50, 512)])
def test_convolutions_split_the_batch_and_wide_products_their_features(tmp_path: Path, network: Builder, batch: int) -> None:
    """What MLSL and 15-PF published: groups of one device for convolutions; for large products groups of several, up to all."""
    graph = network(batch)
    question = asked(tmp_path, graph, 8, "training: true\nsplits: [batch, features]\n")
    found = solved(question)
    assert found.proved and found.answer is not None
    chosen = dict(zip(question.problem.layers, found.answer.strategies, strict=True))
    for node in graph.nodes:
        if node.operator == "convolution":
            assert chosen[node.name] == "batch", node.name
    if network is resnet50:
        assert set(chosen.values()) == {"batch"}
    else:
        assert chosen["fc6"].startswith("features")
    values = {one.name: one.value for one in found.baselines}
    for name in ("data parallel", "features over all devices", "MLSL's closed form", "FlexFlow's Markov chain"):
        assert values[name] is not None and found.bound is not None and values[name] >= found.bound


def test_ties_by_type_cost_no_less_and_their_worth_is_said(tmp_path: Path) -> None:
    question = asked(tmp_path, alexnet(2048), 8, "training: true\n")
    tied = asked(tmp_path, alexnet(2048), 8, "training: true\ntie: operators\n")
    free, together = solved(question), solved(tied)
    assert free.value is not None and together.value is not None and together.proved
    assert free.value < together.value
    by_type = next(one for one in free.baselines if one.name == "one strategy for each type of operator")
    assert by_type.value == together.value
    gain = f"{1.0 - free.value / together.value:.2%}"
    assert together.notes == (f"without ties time is {free.value:.6g} s, and at least {free.bound:.6g} s: it falls by {gain}",)
    convolutions = {s for name, s in zip(tied.problem.layers, together.answer.strategies, strict=True) if name.startswith("conv")}  # type: ignore[union-attr]
    assert len(convolutions) == 1


def test_blocks_may_be_tied_with_all_their_operators(tmp_path: Path) -> None:
    """Copies of a block take the same strategies at each place, so that they are chosen for one block alone."""
    blocks = 3
    tensors: dict[str, Shape] = {"x": (8, 512)}
    weights, nodes, here = dict[str, Weights](), list[Node](), "x"
    for number in range(blocks):
        for kind, columns in (("up", 4096), ("gelu", 4096), ("down", 512)):
            name = f"{kind}{number}"
            rows = tensors[here][1]
            tensors[name] = (8, columns)
            if kind != "gelu":
                weights[f"{name}.w"] = Weights((rows, columns))
            sides = None if kind == "gelu" else (8, rows, columns, 1)
            own = (f"{name}.w",) if sides else ()
            nodes.append(Node(name, "product" if sides else "activation", (here,), (name,), own, sides))
            here = name
    groups = (Group("block 1", 0, 3, blocks),)
    graph = OperatorGraph("blocks", ("x",), (here,), tensors, weights, tuple(nodes), groups)
    free, tied = (asked(tmp_path, graph, 2, f"training: true\ntie: {tie}\n") for tie in ("none", "blocks"))
    found, together = solved(free), solved(tied)
    assert together.answer is not None and found.value is not None and together.value is not None
    chosen = dict(zip(tied.problem.layers, together.answer.strategies, strict=True))
    assert all(chosen[f"{kind}0"] == chosen[f"{kind}{number}"] for kind in ("up", "gelu", "down") for number in range(blocks))
    alike = [LayerChoices(one * blocks) for one in product(*tied.problem.strategies[:3])]
    assert found.value <= together.value == min(judge(tied, one).value for one in alike)
    assert together.notes and together.notes[0].startswith("without ties time is ")


def block(width: int = 1024, rows: int = 256, heads: int = 8, batch: int = 8, fused: bool = False) -> OperatorGraph:
    """Norm, queries, keys and values, attention, projection and addition, as an export of PyTorch writes them."""
    flat, by_head = (batch, rows, width), (batch, heads, rows, width // heads)
    tensors: dict[str, Shape] = {"x": flat}
    weights, nodes = dict[str, Weights](), list[Node]()

    def add(name: str, operator: str, shape: Shape, inputs: tuple[str, ...], source: str = "", sides: Sides | None = None) -> str:
        tensors[name] = shape
        if operator == "product":
            weights[f"{name}.w"] = Weights((width, shape[-1]))
        own = (f"{name}.w",) if operator == "product" else ()
        nodes.append(Node(name, operator, inputs, (name,), own, sides, (), source))
        return name

    def linear(name: str, source: str, out: int = width) -> str:
        return add(name, "product", (batch, rows, out), (source,), "aten.linear.default", (batch * rows, width, out, 1))

    first = linear("first", "x")
    norm = add("norm", "norm", flat, (first,), "aten.layer_norm.default")
    if fused:
        together = linear("qkv", norm, 3 * width)
        parts = [add(f"{one} part", "view", flat, (together,), "aten.slice.Tensor") for one in "qkv"]
    else:
        parts = [linear(one, norm) for one in "qkv"]
    turned = tuple(add(f"{one} heads", "view", by_head, (one,), "aten.transpose.int") for one in parts)
    mixed = add(
        "attention", "attention", by_head, turned, "aten.scaled_dot_product_attention", (rows, 2 * width // heads, rows, batch * heads)
    )
    joined = add("joined", "move", flat, (mixed,), "aten.reshape.default")
    add("sum", "addition", flat, (linear("out", joined), first), "aten.add.Tensor")
    return OperatorGraph("block", ("x",), ("sum",), tensors, weights, tuple(nodes))


@pytest.mark.parametrize("fused", [False, True])
def test_megatron_with_sequence_parallelism_is_a_point_of_the_space(tmp_path: Path, fused: bool) -> None:
    """One gather in front of queries, keys and values, whether one product or three, and nothing until the sums of the projection."""
    question = asked(tmp_path, block(fused=fused), 4, "training: true\n")
    problem = question.problem
    features = ("q", "k", "v", "qkv", "attention", "joined")
    plan = dict.fromkeys(features, "features 4") | {"out": "inputs 4", "copy of norm": "gathered 4"}
    chosen = [plan.get(name, "batch") for name in problem.layers]
    rows = [own.index(one) for own, one in zip(problem.strategies, chosen, strict=True)]
    links = sum(int(link.uses[rows[link.first], rows[link.second], 0]) for link in problem.links)
    network = Network(4, (4,), build_device(device("h100-sxm"), "h100-sxm", "bf16", 1).links)
    once = network.gather(8 * 256 * 1024 * 2.0, 4)[0]
    assert problem.amount(0, links) == pytest.approx(2 * once, rel=1e-9)  # gathered, and the gradient reduced and scattered
    found = solved(question)
    assert found.proved and found.value is not None
    assert judge(question, LayerChoices(tuple(chosen))).value >= found.value


def test_a_common_copy_is_in_the_format_that_its_operators_take(tmp_path: Path) -> None:
    question = asked(tmp_path, block(), 2, "formats: [fp8]\nfixed: {q: fp8, k: fp8, v: fp8}\n")
    place = question.problem.layers.index("copy of norm")
    assert "fp8 gathered 2" in question.problem.strategies[place]
    found = solved(question)
    assert found.proved and not prove(question, found, unwatched).refused


def test_choices_without_number_are_refused_by_their_order(tmp_path: Path) -> None:
    """A number of 5,000 digits is not printed."""
    layers = {f"layer {number}": {f"s{one}": {"time": 1.0} for one in range(10)} for number in range(5_000)}
    problem = problem_of(Written(layers, [], "time", {}))
    with pytest.raises(RefusedError, match=r"more than 10\^4999 choices|more than 10\^5000 choices"):
        solve(FAMILY, LayersQuestion("many", problem, {}, {}), "exhaustive", Limits(), unwatched)


def written_by_hand(seed: int) -> OperatorGraph:
    """Operators of any type on tensors of any rank, empty ones among them, as no export writes them."""
    random = Random(seed)

    def shape() -> Shape:
        return tuple(random.choice((8, 8, 16, 4, 3, 1, 0)) for _ in range(random.choice((0, 1, 2, 3, 4, 4, 4, 5))))

    tensors: dict[str, Shape] = {"x": (8, *shape())}
    weights, nodes, made = dict[str, Weights](), list[Node](), ["x"]
    for number in range(random.randint(1, 5)):
        name, inputs = f"n{number}", tuple(random.choice(made) for _ in range(random.choice((0, 1, 1, 1, 2))))
        outputs = tuple(f"{name} {one}" for one in range(random.choice((0, 1, 1, 1, 2))))
        tensors |= {one: tensors[inputs[0]] if inputs and random.random() < 0.6 else shape() for one in outputs}
        own = (f"{name}.w",) if random.random() < 0.5 else ()
        weights |= dict.fromkeys(own, Weights(shape()))
        sides = (random.choice((8, 64)), random.choice((1, 24)), random.choice((8, 64)), random.choice((1, 8, 16)))
        source = random.choice(("", "aten.reshape.default", "Concat", "BatchNormalization"))
        window = tuple(random.choice((1, 3)) for _ in range(random.choice((0, 1, 2))))
        nodes.append(Node(name, random.choice(list(OPERATORS)), inputs, outputs, own, random.choice((None, sides)), window, source))
        made += outputs
    return OperatorGraph("by hand", ("x",), nodes[-1].outputs, tensors, weights, tuple(nodes))


@pytest.mark.parametrize("seed", some(range(60), 10))
def test_graphs_of_any_operators_and_shapes_are_answered(tmp_path: Path, seed: int) -> None:
    question = asked(tmp_path, written_by_hand(seed), 4, f"training: {'true' if seed % 2 else 'false'}\n")
    found = solved(question)
    assert found.proved
    assert not prove(question, found, unwatched).refused
