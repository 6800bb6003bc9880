"""Drawn questions with files beside them: graphs of operators on chips, on fleets and in memory, and lists of tables."""

import csv
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from crossopt.crossflow.operator_graph import Node, OperatorGraph, Shape, Weights, repeated_blocks
from crossopt.instances.counts.fleet import FleetQuestion
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.question import read
from tests.solvers.counts.drawn import best_fleet, fleet_in
from tests.solvers.counts.test_networks import BUILT, by_hand
from tests.solvers.counts.test_networks import drawn as drawn_networks
from tests.solvers.embeddings.drawn import drawn_text


@cache
def folder() -> TemporaryDirectory[str]:
    """Where the file of the last question stays whose document keeps no text, so that its options can be counted."""
    return TemporaryDirectory()


def read_beside(asks: dict[str, Any]) -> Any:  # noqa: ANN401 - of any kind
    """The question in the folder where its graph lies."""
    path = Path(folder().name) / "question.yaml"
    path.write_text(yaml.safe_dump(asks, sort_keys=False), encoding="utf-8")
    return read(path, ())


def small_network(random: Random, batch: int = 0, most: int = 3) -> OperatorGraph:
    """A few convolutions, activations and sums over one shape, and perhaps a product behind them."""
    wide, channels = batch or random.choice((1, 8, 64)), random.choice((16, 64, 256))
    shape: Shape = (wide, channels, 7, 7)
    tensors, weights, nodes, before = {"x": shape}, dict[str, Weights](), list[Node](), ["x"]
    for place in range(random.randint(1, most)):
        name, operator = f"n{place}", random.choice(("convolution", "convolution", "activation", "addition"))
        inputs = tuple(dict.fromkeys((before[-1], random.choice(before)))) if operator == "addition" else (before[-1],)
        tensors[name] = shape
        if operator == "convolution":
            weights[f"{name}.w"] = Weights((channels, channels, 3, 3))
            nodes.append(Node(name, operator, inputs, (name,), (f"{name}.w",), (wide * 49, channels * 9, channels, 1), (3, 3)))
        else:
            nodes.append(Node(name, operator, inputs, (name,)))
        before.append(name)
    tensors |= {"flat": (wide, channels * 49), "out": (wide, 10)}
    weights["head.w"] = Weights((channels * 49, 10))
    nodes.append(Node("flat", "view", (before[-1],), ("flat",)))
    nodes.append(Node("head", "product", ("flat",), ("out",), ("head.w",), (wide, channels * 49, 10, 1)))
    return OperatorGraph("drawn", ("x",), ("out",), tensors, weights, tuple(nodes), repeated_blocks(nodes, tensors, weights))


def _with_graph(random: Random, asks: dict[str, Any], most: int = 3) -> Any:  # noqa: ANN401 - of any kind
    (Path(folder().name) / "graph.json").write_text(graph_text(small_network(random, random.choice((1, 1, 8)), most)), encoding="utf-8")
    return read_beside({**asks, "graph": "graph.json"})


def graph_on_chips(seed: int) -> Any:  # noqa: ANN401
    """A small network on a few chips of the template, alone or beside another one."""
    random = Random(f"graph on chips {seed}")
    asks: dict[str, Any] = {"kind": "accelerator", "devices": random.randint(1, 3), "batch": random.choice((2, 4))}
    asks |= {"memory": random.choice(("80 GiB", "20 MB", "5 MB")), "bandwidth": random.choice(("1 GB/s", "100 GB/s"))}
    asks["chips"] = {"tensor_cores": [1, 2], "vector_cores": 1, "width": [4, 16], "depth": 8, "buffer": 2, "least_share": 0}
    asks |= {"passes": "forward"} if random.random() < 0.4 else {}
    if random.random() < 0.6:
        return _with_graph(random, asks)
    (Path(folder().name) / "other.json").write_text(graph_text(small_network(random, 1)), encoding="utf-8")
    (Path(folder().name) / "graph.json").write_text(graph_text(small_network(random, 1)), encoding="utf-8")
    return read_beside({**asks, "networks": {"first": {"graph": "graph.json"}, "second": {"graph": "other.json"}}})


def memory_of_a_graph(seed: int) -> Any:  # noqa: ANN401
    """What a pass of a small network keeps on a device, within a share of its peak."""
    random = Random(f"memory of a graph {seed}")
    asks: dict[str, Any] = {"kind": "memory", "hardware": random.choice(("a100-80g", "h100-sxm", "b200"))}
    asks |= {"training": random.random() < 0.7, "budget_share": random.choice((0.75, 0.9, 0.95, 0.99, 1))}
    asks |= {"precision": random.choice(("bf16", "fp16", "fp32"))} if random.random() < 0.7 else {}
    asks |= {"repetitions": random.choice((0, 2))} if random.random() < 0.3 else {}
    return _with_graph(random, asks, 7)


def networks_on_fleets(seed: int) -> Any:  # noqa: ANN401
    """Two networks on up to three kinds of devices, by their graphs, in any formats; a kind may have a name of its own."""
    document, random = drawn_networks(seed), Random(f"networks on fleets {seed}")
    for network in document["networks"].values():  # type: ignore[attr-defined]
        if random.random() < 0.4:
            network["formats"] = ["bf16", *random.sample(("fp32", "tf32", "fp4", "int16", "int4"), 2)]
    small = document["networks"]["small"]  # type: ignore[index]
    if random.random() < 0.4 and any(batch % 4 == 0 for batch in small["batches"]):
        small["folds"] = random.choice(([1, 4], [4]))
    if random.random() < 0.4:
        document["devices"] = {f"my {kind}": {**own, "hardware": kind} for kind, own in document["devices"].items()}  # type: ignore[attr-defined]
    for name, build in BUILT.items():
        if not (Path(folder().name) / f"{name}.json").exists():
            (Path(folder().name) / f"{name}.json").write_text(graph_text(build(1)), encoding="utf-8")
    return read_beside({"kind": "fleet", **document})


def best_of_networks(question: FleetQuestion) -> float:
    """The least of all fleets, with rates of graphs of each batch."""
    document = yaml.safe_load((Path(folder().name) / "question.yaml").read_text(encoding="utf-8"))
    devices, rates = document["devices"], by_hand(document)
    for kind in devices:
        devices[kind]["rates"] = {name: rate for (name, on), rate in rates.items() if on == kind}
        price = question.peaks[kind] / 1e12 or 1.0  # a kind that computes in none of the formats has no rates, and is not taken
        devices[kind] |= {"price": price} if document["objective"] == "utilisation" else {}
    return best_fleet(fleet_in({"classes": document["classes"], "devices": {kind: devices[kind] for kind in question.kinds}}))


def tables_of_a_file(seed: int) -> Any:  # noqa: ANN401
    """Tables in a list of their own, or drawn by the question."""
    random, asks = Random(f"tables of a file {seed}"), yaml.safe_load(drawn_text(seed))
    with (Path(folder().name) / "tables.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.DictWriter(file, ("name", "rows", "dimension", "pooling"), extrasaction="ignore")
        rows.writeheader()
        rows.writerows(asks["tables"])
    asks["tables"] = {"file": "tables.csv"}
    if random.random() < 0.3:
        asks["tables"] = {"count": random.randint(1, 2), "seed": random.randrange(1000)}
        asks["cluster"] |= {"hbm": "40 GB", "ddr": "400 GB"}
    return read_beside(asks)
