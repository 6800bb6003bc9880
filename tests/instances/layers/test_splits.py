"""Splits of operators over devices: figures against graphs of the shares, collectives by hand, published directions, and refusals."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossopt.crossflow.collectives import all_gather, all_reduce_time, exchange_energy, exchange_time, send
from crossopt.crossflow.operator_costs import columns_of, graph_costs
from crossopt.crossflow.operator_graph import Node, OperatorGraph, Shape, Weights
from crossopt.instances.catalogue.registry import build_device, device
from crossopt.instances.errors import InstanceError
from crossopt.instances.layers.question import LayersQuestion
from crossopt.instances.layers.splits import BUCKET, best_group, parts_of, usual_groups
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.question import read
from tests.instances.layers.image_networks import alexnet, resnet50, vgg16

H100 = build_device(device("h100-sxm"), "h100-sxm", "bf16", 2)
LINKS = H100.links[:1]


def tiny(batch: int = 8, channels: tuple[int, int] = (64, 128), height: int = 16, features: tuple[int, int] = (0, 256)) -> OperatorGraph:
    """A convolution of 3 x 3 and a product, which may take fewer values than the convolution makes."""
    first, second = channels
    depth = features[0] or second * height * 16
    tensors: dict[str, Shape] = {
        "x": (batch, first, height, 16),
        "c": (batch, second, height, 16),
        "flat": (batch, depth),
        "f": (batch, features[1]),
    }
    weights = {"c.w": Weights((second, first, 3, 3)), "f.w": Weights((depth, features[1]))}
    nodes = (
        Node("c", "convolution", ("x",), ("c",), ("c.w",), (batch * height * 16, first * 9, second, 1), (3, 3), "Conv"),
        Node("flat", "view", ("c",), ("flat",)),
        Node("f", "product", ("flat",), ("f",), ("f.w",), (batch, depth, features[1], 1), (), "Gemm"),
    )
    return OperatorGraph("tiny", ("x",), ("f",), tensors, weights, nodes)


def asked(
    tmp_path: Path, graph: OperatorGraph, devices: int = 2, more: str = "training: true\n", objective: str = "time"
) -> LayersQuestion:
    (tmp_path / "graph.json").write_text(graph_text(graph), encoding="utf-8")
    path = tmp_path / "question.yaml"
    text = f"kind: layers\nobjective: {objective}\ngraph: graph.json\nhardware: h100-sxm\ncluster: {{devices: {devices}}}\n{more}"
    path.write_text(text, encoding="utf-8")
    found: LayersQuestion = read(path)
    return found


def figures(question: LayersQuestion, layer: str, strategy: str) -> dict[str, float]:
    problem = question.problem
    row = problem.layers.index(layer)
    uses = problem.uses[row][problem.strategies[row].index(strategy)]
    return {name: problem.amount(place, int(uses[place])) for place, name in enumerate(problem.figures)}


def between(question: LayersQuestion, first: str, second: str) -> dict[str, float]:
    """Figures of the only link."""
    problem = question.problem
    (link,) = problem.links
    rows = [problem.strategies[layer].index(name) for layer, name in ((link.first, first), (link.second, second))]
    return {name: problem.amount(place, int(link.uses[rows[0], rows[1], place])) for place, name in enumerate(problem.figures)}


def number(value: Any) -> float:  # noqa: ANN401 - a figure of a cost
    return float(np.asarray(value).item())


def alone(graph: OperatorGraph, row: int, figure: str = "time") -> float:
    """Forward and backward of one operator of a graph on one device, the convolution without a gradient of the image."""
    costs = graph_costs(columns_of(graph), 2.0, H100)
    return sum(float(np.ravel(getattr(side, figure))[row]) for side in (costs.forward, costs.backward))


def pair() -> tuple[Any, ...]:
    return (np.array([[2.0]]),)


def summed(size: float) -> float:
    """An all-reduce of two devices, of a share of a bucket of 25 MiB."""
    return number(all_reduce_time(max(size, BUCKET), pair(), LINKS)) * size / max(size, BUCKET)


def gathered(size: float) -> float:
    return number(exchange_time(all_gather(size, pair()), LINKS))


CONV_WEIGHTS, FC_WEIGHTS = 64 * 128 * 9, 128 * 256 * 256
MIDDLE = 8 * 128 * 256 * 2.0
"""Bytes of what the convolution writes."""


def test_one_convolution_and_one_product_on_two_devices(tmp_path: Path) -> None:
    """Each device has the price of a graph with its share, and of the collectives that follow from it."""
    question = asked(tmp_path, tiny())
    assert question.problem.strategies == (
        ("whole", "batch", "features 2", "inputs 2", "space 2"),
        ("whole", "batch", "features 2", "inputs 2"),
    )
    half = tiny(batch=4)
    out = MIDDLE / 2  # bytes of half of what the convolution writes
    halo = number(exchange_time(send(8 * 64 * 2 * 16 * 2.0, pair()), LINKS))
    expected = {
        ("c", "whole"): alone(tiny(), 0),
        ("c", "batch"): alone(half, 0) + summed(2.0 * CONV_WEIGHTS),
        ("c", "features 2"): alone(tiny(channels=(64, 64)), 0),
        ("c", "inputs 2"): alone(tiny(channels=(32, 128)), 0) + 2 * gathered(2 * out),
        ("c", "space 2"): alone(tiny(height=8), 0) + summed(2.0 * CONV_WEIGHTS) + 2 * halo,
        ("f", "whole"): alone(tiny(), 2),
        ("f", "batch"): alone(half, 2) + summed(2.0 * FC_WEIGHTS),
        ("f", "features 2"): alone(tiny(features=(0, 128)), 2),
        ("f", "inputs 2"): alone(tiny(features=(16384, 256)), 2) + 2 * gathered(8 * 256 * 2.0),
    }
    for (layer, strategy), seconds in expected.items():
        assert figures(question, layer, strategy)["time"] == pytest.approx(seconds, rel=1e-9), (layer, strategy)
    for strategy, part in (("whole", 1.0), ("batch", 1.0), ("features 2", 0.5), ("inputs 2", 0.5)):
        assert figures(question, "f", strategy)["size"] == 2.0 * FC_WEIGHTS * part


def test_links_are_collectives_there_and_back(tmp_path: Path) -> None:
    question = asked(tmp_path, tiny())
    share = MIDDLE / 2
    gather, exchange = gathered(MIDDLE), number(exchange_time(all_gather(share, pair()), LINKS))  # half of a half goes to the other one
    expected = {
        ("batch", "batch"): 0.0,
        ("features 2", "inputs 2"): 0.0,
        ("whole", "whole"): 0.0,
        ("batch", "features 2"): 2 * gather,  # the gradient is a partial sum of each device
        ("features 2", "features 2"): 2 * gather,
        ("whole", "features 2"): 2 * gather,  # nothing forward, an all-reduce backward
        ("whole", "batch"): gather,  # nothing forward, and all devices need the gradient
        ("batch", "whole"): gather,  # and each device has the gradient
        ("batch", "inputs 2"): 2 * exchange,
        ("space 2", "batch"): 2 * exchange,
    }
    for (first, second), seconds in expected.items():
        assert between(question, first, second)["time"] == pytest.approx(seconds, rel=1e-9), (first, second)
    assert between(question, "batch", "features 2")["memory"] == MIDDLE / 2  # the copy that is kept for the backward pass
    joules = 2 * 2 * number(exchange_energy(all_gather(MIDDLE, pair()), LINKS))  # both ways, of both devices
    assert between(question, "batch", "features 2")["energy"] == pytest.approx(joules, rel=1e-9)


def test_energy_is_that_of_all_devices_and_memory_that_of_one(tmp_path: Path) -> None:
    question = asked(tmp_path, tiny(), more="")
    assert figures(question, "f", "whole")["energy"] == pytest.approx(
        2 * float(np.ravel(graph_costs(columns_of(tiny()), 2.0, H100).forward.energy)[2])
    )
    trained = asked(tmp_path, tiny())
    bytes_of_weight = 2.0 + 2.0 + 12.0  # the weight, its gradient, and Adam with a master copy
    assert figures(trained, "c", "batch")["memory"] == bytes_of_weight * CONV_WEIGHTS + MIDDLE / 2
    assert figures(trained, "c", "whole")["memory"] == bytes_of_weight * CONV_WEIGHTS + MIDDLE
    assert figures(trained, "c", "features 2")["memory"] == bytes_of_weight / 2 * CONV_WEIGHTS + MIDDLE / 2
    plain = asked(tmp_path, tiny(), more="training: true\noptimizer_bytes: 0.5\n")
    assert figures(plain, "c", "batch")["memory"] == 4.5 * CONV_WEIGHTS + MIDDLE / 2
    wide = asked(tmp_path, tiny(), more="training: true\nbase: fp32\n")
    assert figures(wide, "c", "batch")["memory"] == (4.0 + 4.0 + 8.0) * CONV_WEIGHTS + MIDDLE


def test_a_stated_share_of_the_exchange_of_gradients_is_hidden(tmp_path: Path) -> None:
    """All of an all-reduce, and no relayout; what it needs of energy stays."""
    half = asked(tmp_path, tiny(), more="training: true\nhidden_gradients: 50%\n")
    none = asked(tmp_path, tiny(), more="training: true\n")
    saved = figures(none, "f", "batch")["time"] - figures(half, "f", "batch")["time"]
    assert saved == pytest.approx(summed(2.0 * FC_WEIGHTS) / 2, rel=1e-9)
    assert figures(half, "f", "batch")["energy"] == figures(none, "f", "batch")["energy"]
    assert figures(half, "f", "inputs 2") == figures(none, "f", "inputs 2")
    assert between(half, "batch", "features 2") == between(none, "batch", "features 2")
    with pytest.raises(InstanceError, match="hidden_gradients"):
        asked(tmp_path, tiny(), more="training: true\nhidden_gradients: 1.5\n")


def test_the_exchange_of_a_full_bucket_hides_behind_what_still_runs_backward(tmp_path: Path) -> None:
    """The product runs backward first and fills a bucket, which is exchanged while the convolution runs; that of the latter is left."""
    graph = tiny(batch=64, features=(0, 512))
    question = asked(tmp_path, graph, 2, "training: true\nhidden_gradients: 30%\n")
    assert question.pricing is not None
    size = 128 * 256 * 512 * 2.0
    assert size > BUCKET > CONV_WEIGHTS * 2.0
    every, left = question.pricing.gradients_over_time({"c": "batch", "f": "batch"})
    first, last = summed(size), summed(CONV_WEIGHTS * 2.0)
    assert every == pytest.approx(first + last, rel=1e-12)
    half = graph_costs(columns_of(tiny(batch=32, features=(0, 512))), 2.0, H100)
    behind = float(np.ravel(half.backward.time)[0])
    assert left == pytest.approx(max(first - behind, 0.0) + last, rel=1e-6)
    assert 0.0 < behind < first, "a part of it hides"
    whole = question.pricing.gradients_over_time({"c": "batch", "f": "whole"})
    assert whole == pytest.approx((last, last), rel=1e-12)


def test_formats_and_splits_are_chosen_together(tmp_path: Path) -> None:
    question = asked(tmp_path, tiny(), more="formats: [fp8]\nsplits: [batch, features]\n")
    assert question.problem.strategies[0] == tuple(
        f"{one} {split}" for one in ("bf16", "fp8") for split in ("whole", "batch", "features 2")
    )
    plain = asked(tmp_path, tiny(), more="splits: [batch, features]\n")
    assert figures(question, "f", "bf16 features 2") == figures(plain, "f", "features 2")
    assert parts_of("fp8 features 2") == {"format": "fp8", "split": "features", "group": 2}
    assert (parts_of("batch"), parts_of("fp8")) == ({"split": "batch"}, {"format": "fp8"})


def test_depthwise_convolutions_keep_their_channels(tmp_path: Path) -> None:
    """A share of the groups takes the same share of the channels, so that nothing is gathered in front of it."""
    tensors: dict[str, Shape] = {"x": (8, 3, 16, 16), "a": (8, 32, 16, 16), "b": (8, 32, 16, 16)}
    weights = {"a.w": Weights((32, 3, 3, 3)), "b.w": Weights((32, 1, 3, 3))}
    nodes = (
        Node("a", "convolution", ("x",), ("a",), ("a.w",), (8 * 256, 27, 32, 1), (3, 3)),
        Node("b", "convolution", ("a",), ("b",), ("b.w",), (8 * 256, 9, 1, 32), (3, 3)),
    )
    question = asked(tmp_path, OperatorGraph("thin", ("x",), ("b",), tensors, weights, nodes))
    assert between(question, "features 2", "features 2")["time"] == 0.0
    assert "inputs 2" not in question.problem.strategies[1]


def test_a_table_that_an_embedding_and_products_share_counts_once(tmp_path: Path) -> None:
    """Devices that have the same share of it add up its gradients before they exchange it; else all exchange the whole of it."""
    tensors: dict[str, Shape] = {"x": (8, 16), **dict.fromkeys("abcd", (8, 16, 1024))}
    weights = {"w": Weights((1024, 1024))}
    embedding = Node("a", "embedding", ("x",), ("a",), ("w",))
    products = [Node(two, "product", (one,), (two,), ("w",), (128, 1024, 1024, 1)) for one, two in ("ab", "bc")]
    question = asked(tmp_path, OperatorGraph("shared", ("x",), ("c",), tensors, weights, (embedding, *products)), 4)
    problem = question.problem
    assert problem.ties == (tuple(problem.layers.index(name) for name in "bc"),)
    assert all(figures(question, name, split)["size"] == 0.0 for name in "abc" for split in ("batch", "features 4"))
    table = problem.links[-1]  # beside the relayouts
    assert [problem.layers[end] for end in (table.first, table.second)] == ["a", "b"]

    def shared(first: str, second: str) -> tuple[float, float]:
        rows = [problem.strategies[end].index(name) for end, name in ((table.first, first), (table.second, second))]
        time, size = (int(table.uses[rows[0], rows[1], problem.figures.index(name)]) for name in ("time", "size"))
        return problem.amount(0, time), problem.amount(problem.figures.index("size"), size)

    size = 1024 * 1024 * 2.0
    bucket = number(all_reduce_time(BUCKET, (np.array([[4.0]]),), LINKS)) * size / BUCKET
    halves = number(all_reduce_time(BUCKET, (np.array([[2.0]]),), LINKS)) * size / 2 / BUCKET
    expected = {
        ("whole", "whole"): (0.0, size),
        ("batch", "batch"): (bucket, size),
        ("whole", "batch"): (bucket, size),
        ("features 4", "inputs 4"): (0.0, size / 4),
        ("features 2", "inputs 2"): (halves, size / 2),
        ("features 4", "features 4"): (bucket, size / 2),  # columns and rows
        ("batch", "features 4"): (bucket, size),
    }
    for ways, (time, stored) in expected.items():
        assert shared(*ways)[0] == pytest.approx(time, rel=1e-9, abs=1e-15), ways
        assert shared(*ways)[1] == stored, ways
    memory = problem.figures.index("memory")
    rows = [problem.strategies[end].index("batch") for end in (table.first, table.second)]
    assert problem.amount(memory, int(table.uses[rows[0], rows[1], memory])) == 8.0 * size


def test_of_many_divisors_groups_are_parts_of_nodes_or_whole_nodes() -> None:
    assert usual_groups(64, 8) == (2, 4, 8, 16, 32, 64)
    assert usual_groups(960, 8) == (2, 4, 8, 16, 24, 32, 40, 48, 64, 80, 96, 120, 160, 192, 240, 320, 480, 960)


def test_the_closed_form_of_node_groups() -> None:
    """a / g + b g is least at sqrt(a / b), and the number of groups is sqrt(N minibatch / output features) (Das et al. 2016)."""
    inputs, outputs, batch, devices = 4096, 4096, 256, 64
    found = best_group(inputs * outputs, batch * inputs, devices)
    assert devices / found == pytest.approx((devices * batch / outputs) ** 0.5)
    a, b = 2.0 * inputs * outputs, 2.0 * batch * inputs / devices
    assert a / found + b * found <= min(a / one + b * one for one in (1, 2, 4, 8, 16, 32, 64))
    assert (best_group(10, 10**9, 8), best_group(10**9, 1, 8)) == (1.0, 8.0)


@pytest.mark.parametrize(
    ("network", "parameters", "macs"), [(alexnet, 61090496, 714188480), (vgg16, 138344128, 15470264320), (resnet50, 25556032, 4089184256)]
)
def test_image_networks_are_the_published_ones(network: Any, parameters: int, macs: int) -> None:  # noqa: ANN401
    """Biases are left out."""
    graph = network(2)
    assert (graph.parameters, graph.macs // 2) == (parameters, macs)


@pytest.mark.parametrize(
    ("devices", "batch", "more", "told"),
    [
        (3, 8, "", "a batch of 8 has no equal parts for 3 devices"),
        (12, 24, "", "12 devices are no whole number of nodes of 8"),
        (8, 8, "groups: [3]\n", "8 devices do not divide into groups of 3 (take a divisor of 8)"),
        (7, 7, "splits: [features]\ngroups: [7]\n", ""),
        (
            14,
            14,
            "cluster: {devices: 14, devices_per_node: 14}\ngroups: [7]\n",
            "no operator has features or inputs or space in 7 equal parts",
        ),
        (55440, 55440, "", "50 sizes of groups are too many to choose among (name up to 20 under groups)"),
        (1, 8, "", "operators are split over 2 to 65,536 devices, not 1"),
        (8, 8, "splits: [pipeline]\n", "pipeline"),
    ],
)
def test_what_cannot_be_split_is_refused_in_a_sentence(tmp_path: Path, devices: int, batch: int, more: str, told: str) -> None:
    graph = tiny(batch=batch, channels=(64, 128))
    if not told:  # nothing has seven parts, and the whole operator is left
        assert asked(tmp_path, graph, devices, more).problem.strategies == (("whole",), ("whole",))
        return
    with pytest.raises(InstanceError) as error:
        if "cluster" in more:
            (tmp_path / "graph.json").write_text(graph_text(graph), encoding="utf-8")
            path = tmp_path / "question.yaml"
            path.write_text(f"kind: layers\nobjective: time\ngraph: graph.json\nhardware: h100-sxm\n{more}", encoding="utf-8")
            read(path)
        else:
            asked(tmp_path, graph, devices, more)
    assert told in str(error.value)


def test_splits_need_a_graph_and_a_cluster(tmp_path: Path) -> None:
    path = tmp_path / "table.yaml"
    path.write_text("kind: layers\nobjective: time\nlayers: {a: {strategies: {x: {time: 1 s}}}}\ncluster: {devices: 8}\n", encoding="utf-8")
    with pytest.raises(InstanceError, match="where a graph is given"):
        read(path)
    (tmp_path / "graph.json").write_text(graph_text(tiny()), encoding="utf-8")
    path.write_text("kind: layers\nobjective: time\ngraph: graph.json\nhardware: h100-sxm\ngroups: [2]\n", encoding="utf-8")
    with pytest.raises(InstanceError, match="where cluster"):
        read(path)
