"""The workloads of TBD have the totals of their papers, and the page about memory of steps the rows of the benchmark."""

from math import prod
from pathlib import Path

import pytest

from crossopt.crossflow.operator_graph import graph_faults
from crossopt.instances.files.written import Files
from crossopt.instances.memory.graph import memory_graph
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.question import read_given
from crossopt.reports.sheets.memory import sheet
from crossopt.reports.sheets.sheet import Breakdown
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.family import solve
from crossopt.solvers.memory.family import FAMILY
from tests.benchmarks.memory_of_steps import CLASSES, of_tbd, row_of
from tests.instances.layers.image_networks import alexnet
from tests.instances.layers.tbd_networks import TBD, Network, a3c, inception_v3, transformer
from tests.paths import ROOT

PAGE = ROOT / "docs/model/memory-of-steps.md"


def test_workloads_are_graphs_with_the_totals_of_their_papers() -> None:
    """Inception-v3 without biases of its classifier; A3C by hand."""
    assert not [fault for workload in TBD for fault in graph_faults(workload.make(1 if workload.name != "Transformer" else 32))]
    found = inception_v3(1)
    assert (found.macs, found.parameters) == (5_713_216_096, 23_834_568 - 1000)
    assert sum(node.operator == "convolution" for node in found.nodes) == 94
    assert a3c(1).parameters == 16 * 4 * 64 + 32 * 16 * 16 + 32 * 81 * 256 + 256 * 7
    layers = 12 * 4 * 512**2 + 6 * 4 * 512**2 + 12 * 2 * 512 * 2048  # attention, attention to the encoder, feed-forward
    norms, words = 2 * 512 * (6 * 2 + 6 * 3 + 2), 3 * 17191 * 512
    assert transformer(64).parameters == layers + norms + words


def test_classes_are_those_of_a_network_by_hand() -> None:
    """Two products of 4 x 8 values: while the gradient of the first is computed, its input and both gradients are there."""
    net = Network((4, 8), "x")
    net.linear("first", 16)
    net.relu("act")
    net.linear("second", 8)
    row = row_of("two", "4", net.built("two"), "fp32")
    assert row.parts["weights"] == row.parts["weight gradients"] == 4 * 2 * 8 * 16
    assert row.parts["optimizer"] == 2 * row.parts["weights"]
    assert row.parts["inputs"] == 4 * 4 * 8
    assert row.parts["activations"] + row.parts["gradients"] == 4 * 4 * (16 + 16 + 16 + 8)  # first, act, their gradient and second
    assert row.at == "grad second"


@pytest.mark.parametrize("batch", [1, 3])
def test_bytes_add_up(batch: int) -> None:
    graph = alexnet(batch)
    found, row = memory_graph(graph, "a100-80g", "fp32", training=True), row_of("alexnet", "", graph, "fp32")
    assert sum(row.parts.values()) - row.parts["rounding"] == found.plain_peak + found.fixed
    assert row.parts["weights"] == 4 * sum(prod(weights.shape) for weights in graph.weights.values())
    assert set(row.parts) == set(CLASSES)


def test_a_page_shows_the_classes_of_the_device() -> None:
    files = Files(Path(), {"net.json": graph_text(a3c(8))})
    text = "kind: memory\ngraph: net.json\nhardware: a100-80g\nprecision: fp32\nbudget: 1 GB\n"
    question = read_given(text, "memory", files=files)
    drawn = sheet(question, solve(FAMILY, question, "auto", Limits(10.0), unwatched))
    [section] = [one for one in drawn.sections if one.title == "Memory of the device at the peak"]
    [breakdown] = section.parts
    assert isinstance(breakdown, Breakdown)
    parts = dict(breakdown.parts)
    rounded = parts.pop("rounding to blocks of 512 B")
    assert sum(parts.values()) == question.graph.plain_peak + question.graph.fixed
    assert 0 <= rounded <= 512 * len(question.graph.names)
    assert {"weights", "weight gradients", "optimizer", "inputs", "activations"} < set(parts)


@pytest.mark.docs
def test_the_page_has_the_rows_of_the_benchmark() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [str(row) for row in of_tbd("fp32") if str(row) not in text]
    assert not missing
