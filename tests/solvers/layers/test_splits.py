"""Splits over devices as questions: equality with a look at every choice, monotony, ties, rules above the bound, published directions."""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random

import pytest

from crossopt.crossflow.operator_graph import Node, OperatorGraph, Shape, Weights
from crossopt.instances.layers.question import LayersQuestion
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.family import solve
from crossopt.solvers.layers.family import FAMILY
from crossopt.solvers.layers.judge import LayerChoices, LayerTotals, best_of_all, every_choice, judge, prove
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


@pytest.mark.parametrize("seed", range(40))
def test_answers_are_the_best_of_all_choices(tmp_path: Path, seed: int) -> None:
    graph, devices, more = drawn(seed)
    question = asked(tmp_path, graph, devices, more)
    if seed % 2:
        question = budgeted(question, 0.3)
    if every_choice(question.problem) > 5_000:
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
            int(share * memory * 10.0 ** question.problem.places[place]) if name == "memory" else None
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


Network = Callable[[int], OperatorGraph]


@pytest.mark.parametrize(("network", "batch"), [(alexnet, 2048), (vgg16, 512), (resnet50, 512)])
def test_convolutions_split_the_batch_and_wide_products_their_features(tmp_path: Path, network: Network, batch: int) -> None:
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


def test_megatron_is_a_point_of_the_space(tmp_path: Path) -> None:
    """A product by columns, its activation and a product by rows: one gather and one reduce-scatter each way, nothing between them."""
    width, rows = 1024, 64
    tensors: dict[str, Shape] = {
        name: (rows, extent) for name, extent in (("x", width), ("a", width), ("b", 4 * width), ("g", 4 * width), ("c", width))
    }
    weights = {"a.w": Weights((width, width)), "b.w": Weights((width, 4 * width)), "c.w": Weights((4 * width, width))}
    nodes = (
        Node("a", "product", ("x",), ("a",), ("a.w",), (rows, width, width, 1)),
        Node("b", "product", ("a",), ("b",), ("b.w",), (rows, width, 4 * width, 1)),
        Node("g", "activation", ("b",), ("g",)),
        Node("c", "product", ("g",), ("c",), ("c.w",), (rows, 4 * width, width, 1)),
    )
    graph = OperatorGraph("feed-forward", ("x",), ("c",), tensors, weights, nodes)
    question = asked(tmp_path, graph, 4, "training: true\n")
    problem = question.problem
    plan = {"b": "features 4", "g": "features 4", "c": "inputs 4"}
    for link in problem.links:
        first, second = problem.layers[link.first], problem.layers[link.second]
        if first in plan:
            row, column = problem.strategies[link.first].index(plan[first]), problem.strategies[link.second].index(plan[second])
            assert not link.uses[row, column].any()
    found = solved(question)
    answer = LayerChoices(("batch", "features 4", "features 4", "inputs 4"))
    assert found.value is not None and judge(question, answer).value >= found.value
