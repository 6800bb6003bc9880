"""Imported graphs of operators in placement questions: their prices are those of the cost model, and their best placement is proved."""

from itertools import product
from math import inf
from pathlib import Path

import numpy as np
import pytest

import crossopt
from crossopt.crossflow.operator_costs import columns_of, graph_costs
from crossopt.instances.catalogue.registry import build_device, device
from crossopt.instances.errors import InstanceError
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.instances.question import read
from crossopt.solvers.placement.answer import Placement, judge_placement
from tests.instances.layers.test_network import small

H100 = build_device(device("h100-sxm"), "h100-sxm", "bf16", 2)
IMAGE = 64 * 256 * 14 * 14


def asked(folder: Path, section: str = "", more: str = "", blocks: int = 1) -> PlacementQuestion:
    (folder / "graph.json").write_text(graph_text(small(blocks)), encoding="utf-8")
    path = folder / "question.yaml"
    path.write_text(f"kind: placement\ngraph: {{file: graph.json, hardware: h100-sxm{section}}}\ndevices: 2\n{more}", encoding="utf-8")
    found: PlacementQuestion = read(path)
    return found


def test_operators_cost_what_the_cost_model_says(tmp_path: Path) -> None:
    graph = asked(tmp_path, ", training: false, bandwidth: 50 GB/s").graph
    costs = graph_costs(columns_of(small()), 2.0, H100)
    assert graph.names == ("a0", "r0", "c0", "s0", "flat", "head")
    assert graph.accelerator_time == pytest.approx(np.ravel(costs.forward.time) * 1e3)
    assert graph.cpu_time == pytest.approx(10.0 * graph.accelerator_time)
    assert graph.transfer[:5] == pytest.approx([2.0 * IMAGE / 50e9 * 1e3] * 5)
    convolution, head = 2 * (256 * 256 * 9 + IMAGE), 2 * (256 * 196 * 1000 + 64 * 1000)
    assert graph.size.tolist() == [convolution, 2 * IMAGE, convolution, 2 * IMAGE, 0, head]
    assert set(zip(graph.source.tolist(), graph.target.tolist(), strict=True)) == {(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)}


def test_training_has_a_backward_pass_and_the_state_of_the_optimizer(tmp_path: Path) -> None:
    once, both = asked(tmp_path, ", training: false").graph, asked(tmp_path, ", training: true").graph
    costs = graph_costs(columns_of(small()), 2.0, H100)
    assert both.accelerator_time[6:] == pytest.approx(np.ravel(costs.backward.time) * 1e3)
    assert both.size[5] - once.size[5] == 16 * 256 * 196 * 1000
    assert both.colour[:6].tolist() == both.colour[6:].tolist()
    assert both.backward.tolist() == [False] * 6 + [True] * 6
    edges = set(zip(both.source.tolist(), both.target.tolist(), strict=True))
    assert {(5, 11), (11, 10), (7, 6)} <= edges
    assert asked(tmp_path, ", training: false, precision: fp32").graph.size[5] == 2 * once.size[5]


def test_a_view_is_where_the_operator_is_whose_output_it_shows(tmp_path: Path) -> None:
    graph = asked(tmp_path, blocks=2).graph
    assert graph.colour[8] == graph.colour[7]
    assert len(set(graph.colour[:10].tolist())) == 9


@pytest.mark.parametrize("training", ["true", "false"])
def test_the_best_placement_is_that_of_all_placements(tmp_path: Path, training: str) -> None:
    question = asked(tmp_path, f", training: {training}, bandwidth: 400 GB/s", "contiguous: no\n")
    answer = crossopt.solve(tmp_path / "question.yaml")
    assert answer.proved
    assert crossopt.check(answer).accepted
    values = list[float]()
    for devices in product((0, 1), repeat=5):
        colours = question.graph.colour.tolist()
        placed = Placement({str(one): question.devices[devices[colour]] for one, colour in zip(question.graph.ids, colours, strict=True)})
        verdict = judge_placement(question, placed)
        values.append(inf if verdict.value is None else float(verdict.value))
    assert answer.value == pytest.approx(min(values), rel=1e-9)


def test_what_is_wrong_names_the_key(tmp_path: Path) -> None:
    for section, said in (
        (", precision: fp8", "graph.precision: 'fp8' is unknown"),
        (", bandwidth: 0.5 B/s", "graph.bandwidth: less than a byte"),
    ):
        with pytest.raises(InstanceError, match=said):
            asked(tmp_path, section)
    path = tmp_path / "question.yaml"
    for graph, said in (
        ("{file: graph.json}", "graph.hardware: a device prices the operators"),
        ("{file: graph.json, hardware: h1000}", "graph.hardware: 'h1000' is no known device"),
        ("{nodes: {a: {time: 1 ms}}, precision: bf16}", "graph.precision: this belongs to graphs that are priced"),
        ("{file: nowhere.json, hardware: h100-sxm}", "graph.file: .* paths begin at the question"),
        (
            "{workload: {model: gpt3-13b, global_batch: 8}, hardware: h100-sxm, precision: bf16}",
            "graph.precision: the workload has a precision of its own",
        ),
    ):
        path.write_text(f"kind: placement\ngraph: {graph}\ndevices: 2\n", encoding="utf-8")
        with pytest.raises(InstanceError, match=said):
            read(path)
