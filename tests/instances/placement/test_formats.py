"""Placement graphs and questions about them: every fault with its place and remedy, and placements as files for other programs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossopt.instances.catalogue.registry import shipped
from crossopt.instances.errors import InstanceError
from crossopt.instances.placement.question import PlacementQuestion, read_split
from crossopt.instances.question import read, read_again
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.family import described
from crossopt.solvers.placement.family import FAMILY
from crossopt.solvers.placement.judge import judge
from tests.every import every
from tests.paths import reference
from tests.solvers.placement.asking import answered

# Reading placement graphs: every fault with its place and remedy, units that cannot be right, and the published files.


def node(name: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"id": name, "supportedOnFpga": 1, "cpuLatency": 10.0, "fpgaLatency": 1.0, "isBackwardNode": 0, "size": 8.0, **more}


def document(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    edges = [{"sourceId": 1, "destId": 2, "cost": 0.5}, {"sourceId": 1, "destId": 3, "cost": 0.5}]
    return {"maxFPGAs": 2, "maxCPUs": 1, "maxSizePerFPGA": 16.0, "nodes": [node(1), node(2), node(3)], "edges": edges, **more}


def written(path: Path, what: object) -> Path:
    target = path / "graph.json"
    target.write_text(what if isinstance(what, str) else json.dumps(what), encoding="utf-8")
    return target


REFUSED = [
    ("[1, 2]", "a placement graph is a mapping with the lists `nodes` and `edges`"),
    ('{"nodes": [', "this is not JSON"),
    ('{"nodes": NaN}', "NaN is no number"),
    (document(nodes=[]), "nodes: 0 nodes are given"),
    (document(maxFPGAs=-1), "maxFPGAs: -1 is below 0"),
    (document(maxFPGAs=1.5), "maxFPGAs: '1.5' is no whole number"),
    (document(maxFPGAs=0, maxCPUs=0), "0 accelerators and 0 CPUs are given"),
    (document(maxSizePerFPGA=None), "maxSizePerFPGA: maxSizePerFPGA is missing"),
    (document(nodes=[node(1), node(2, fpgaLatency=10**400), node(3)]), "nodes[1].fpgaLatency: '1000"),
    (document(nodes=[node(1), node(2, size=1e300), node(3)]), "is no number that can be worked with"),
    (document(nodes=[node(1), node(2, id="1"), node(3)]), "nodes[1].id: '1' is the id of nodes[0] already"),
    (document(nodes=[node(1), node(1), node(3)]), "nodes[1].id: 1 is the id of nodes[0] already"),
    (document(nodes=[node(1), node(2, fpgaLatency=-1.0), node(3)]), "nodes[1].fpgaLatency: -1.0 is below 0"),
    (document(nodes=[node(1), node(2, fpgaLatency="x"), node(3)]), "nodes[1].fpgaLatency: 'x' is no number"),
    (document(nodes=[node(1), node(2, isBackwardNode=7), node(3)]), "nodes[1].isBackwardNode: '7' is neither true nor false"),
    (document(edges=[{"sourceId": 1, "destId": 9, "cost": 1.0}]), "edges[0].destId: there is no node 9"),
    (
        document(edges=[{"sourceId": 1, "destId": 2, "cost": 1.0}, {"sourceId": 1, "destId": 3, "cost": 2.0}]),
        "edges[1].cost: the output of node 1 costs 2.0 here and 1.0 in edges[0]",
    ),
    (
        document(edges=[{"sourceId": 1, "destId": 2, "cost": 1.0}, {"sourceId": 2, "destId": 1, "cost": 1.0}]),
        "edges: the nodes 1 -> 2 -> 1 form a cycle",
    ),
]


@every(("what", "message"), REFUSED)
def test_a_wrong_graph_names_the_place_and_the_remedy(what: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(InstanceError) as raised:
        read(written(tmp_path, what))
    assert message in str(raised.value)
    assert "Traceback" not in str(raised.value)


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    wrong = document(nodes=[node(1, size=-1), node(2, cpuLatency=None), node(3)], edges=[{"sourceId": 8, "destId": 9, "cost": 1.0}])
    with pytest.raises(InstanceError) as raised:
        read(written(tmp_path, wrong))
    assert len(raised.value.faults) == 4


def test_ids_may_be_words_and_colours_may_be_missing(tmp_path: Path) -> None:
    words = document(
        nodes=[node(1, id="a", colorClass=5), node(2, id="b"), node(3, id="c", colorClass=5)],
        edges=[{"sourceId": "a", "destId": "b", "cost": 1.0}],
    )
    graph = read(written(tmp_path, words)).graph
    assert graph.ids == ("a", "b", "c")
    assert graph.colour.tolist() == [0, 1, 0]
    assert graph.transfer.tolist() == [1.0, 0.0, 0.0]


def test_settings_replace_what_the_file_says_and_the_question_can_be_asked_again(tmp_path: Path) -> None:
    asked = ("devices=5", "cpus=0", "memory=99 B", "contiguous=no", "edge_unit=s")
    question = read(written(tmp_path, document()), asked)
    assert (question.accelerators, question.cpus, question.memory) == (5, 0, 99.0)
    assert question.graph.transfer.tolist() == [500.0, 0.0, 0.0]
    again = read_again(described(FAMILY, question), "placement")
    assert described(FAMILY, again) == described(FAMILY, question)
    assert np.array_equal(again.graph.transfer, question.graph.transfer)


@pytest.mark.parametrize(("size", "said"), [(0.5e6, False), (1.5e9, True), (5e2, True)])
def test_links_of_impossible_speed_are_told(size: float, said: bool, tmp_path: Path) -> None:
    """Half a millisecond for half a megabyte is a gigabyte a second."""
    edges = [{"sourceId": 1, "destId": 2, "cost": 0.5, "size": size}]
    notes = read(written(tmp_path, document(edges=edges))).notes
    assert bool(notes) == said
    assert ("a thousand times too fast" in "".join(notes)) == (size > 1e6)


@pytest.mark.data
def test_the_published_layer_graphs_have_costs_in_seconds() -> None:
    for kind, wrong in (("layer/bert24_inference", True), ("operator/bert_l-3_inference", False)):
        path = reference(f"placement/throughput/{kind}.json")
        assert bool(read(path).notes) == wrong
        assert read(path, ("edge_unit=s",)).notes == ()


# Placements that come with a graph, and placements as files for other programs: what is written is read again as the same.


@pytest.fixture
def asked(tmp_path: Path) -> PlacementQuestion:
    nodes = [node(1, colorClass=7), node(2), node(3, colorClass=7, isBackwardNode=1)]
    return read(written(tmp_path, document(nodes=nodes)))


def split(folder: Path, what: object) -> Path:
    target = folder / "split.json"
    target.write_text(json.dumps(what), encoding="utf-8")
    return target


@pytest.mark.parametrize(
    "what",
    [
        {"fpgas": [{"nodes": [1]}, {"load": -1, "nodes": []}], "cpus": [{"nodes": [2]}]},
        {"1": "accelerator 1", "2": "cpu 1", "3": "accelerator 1"},
        {"fpgas": [{"nodes": [1, 1]}, {"nodes": []}, {"nodes": []}], "cpus": [{"nodes": [2]}]},
    ],
)
def test_a_split_places_every_node_and_its_colour(asked: PlacementQuestion, tmp_path: Path, what: object) -> None:
    assert read_split(split(tmp_path, what), asked).tolist() == [0, 2, 0]


SPLIT_REFUSED = [
    ([1], "a split is a mapping"),
    ({"fpgas": [{"nodes": [1, 9]}], "cpus": []}, "fpgas[0].nodes: there is no node '9' in the graph"),
    ({"fpgas": [{"nodes": [1]}, {"nodes": [1, 2]}]}, "fpgas[1].nodes: node 1 is on accelerator 1 already"),
    ({"fpgas": [{"nodes": []}] * 2 + [{"nodes": [1]}]}, "fpgas: 3 are used, the question has 2 (--devices, --cpus)"),
    ({"fpgas": [{"nodes": [1]}]}, "node 2 has no device"),
    ({"fpgas": [], "cpus": []}, "node 1 and 2 others have no device"),
    ({"fpgas": 3}, "fpgas: a list of devices is needed"),
    ({"1": "gpu", "2": "cpu 1"}, "there is no device 'gpu' (one of accelerator 1, accelerator 2, cpu 1"),
]


@pytest.mark.parametrize(("what", "message"), SPLIT_REFUSED)
def test_a_wrong_split_names_the_place_and_the_remedy(asked: PlacementQuestion, tmp_path: Path, what: object, message: str) -> None:
    with pytest.raises(InstanceError) as error:
        read_split(split(tmp_path, what), asked)
    assert message in str(error.value)


@pytest.mark.parametrize("form", ["devices", "split"])
def test_what_is_exported_is_read_again_as_the_same(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph, saved = written(tmp_path, document(maxSizePerFPGA=24.0)), tmp_path / "answer.json"
    assert main(["solve", str(graph), "--out", str(saved)]) == 0
    value = json.loads(saved.read_text())["value"]
    capsys.readouterr()
    assert main(["export", str(saved), "--as", form]) == 0
    text = capsys.readouterr().out
    (tmp_path / "split.json").write_text(text, encoding="utf-8")
    asked = read(graph)
    verdict = judge(asked, read_split(tmp_path / "split.json", asked))
    assert (verdict.value, verdict.violations) == (value, ())
    if form == "split":
        said = json.loads(text)
        assert said["maxLoad"] == value == max(device["load"] for device in (*said["fpgas"], *said["cpus"]))
        assert sorted(name for device in (*said["fpgas"], *said["cpus"]) for name in device["nodes"]) == [1, 2, 3]


def test_an_edited_result_is_not_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph, saved = written(tmp_path, document(maxSizePerFPGA=24.0)), tmp_path / "answer.json"
    main(["solve", str(graph), "--out", str(saved)])
    saved.write_text(saved.read_text().replace('"status": "OPTIMAL"', '"status": "FEASIBLE"'), encoding="utf-8")
    capsys.readouterr()
    assert main(["export", str(saved), "--as", "split"]) == 2
    assert "this result is not sound" in capsys.readouterr().err


EXPERTS = {
    ("bert24_inference", "bert24_inference"): 20.084,
    ("bert24_training", "bert24_training"): 49.4049,
    ("gnmt_inference", "gnmt_inference"): 46.2085,
    ("gnmt_training", "gnmt_training"): 137.154,
    ("resnet50_inference", "resnet50_inference"): 43.9183,
    ("resnet50_training", "resnet50_inference"): 112.108,
    ("inceptionv3_inference", "inceptionv3_inference"): 102.482,
    ("inceptionv3_training", "inceptionv3_inference"): 213.654,
}
"""The busiest device of the experts' splits as the authors' program prints it."""


@pytest.mark.data
@pytest.mark.parametrize(("graph", "expert"), EXPERTS)
def test_experts_splits_take_as_long_as_their_authors_say(graph: str, expert: str) -> None:
    asked = read(reference(f"placement/throughput/layer/{graph}.json"))
    verdict = judge(asked, read_split(reference(f"placement/human-experts/{expert}_expert.json"), asked))
    assert verdict.value == pytest.approx(EXPERTS[graph, expert], rel=5e-6)


# Questions about placements in YAML: operators written out, read from a file, or generated, and every fault with its place.

INLINE = """kind: placement
name: three in a row
graph:
  nodes:
    first: {time: 2 ms, transfer: 0.5 ms, size: 1 GiB}
    second: {time: 3 ms, cpu_time: 4 ms, transfer: 500 us, after: [first], colour: red}
    third: {cpu_time: 1 ms, after: [first, second]}
devices: 2
cpus: 1
memory: 1 GiB
"""


def test_operators_are_written_out(tmp_path: Path) -> None:
    (tmp_path / "question.yaml").write_text(INLINE, encoding="utf-8")
    question = read(tmp_path / "question.yaml")
    graph = question.graph
    assert (question.name, question.accelerators, question.cpus, question.memory) == ("three in a row", 2, 1, 2.0**30)
    assert graph.ids == ("first", "second", "third")
    assert graph.accelerator_time.tolist() == [2.0, 3.0, float("inf")]
    assert graph.cpu_time.tolist() == [20.0, 4.0, 1.0]
    assert graph.transfer.tolist() == [0.5, 0.5, 0.0]
    assert sorted(zip(graph.source.tolist(), graph.target.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 2)]
    result = answered(question, "auto", Limits(), unwatched)
    assert result.value == 4.0  # the second takes 3 ms, one input and one output of 0.5 ms; with the third on the CPU it would be 5 ms
    assert result.answer is not None
    assert result.answer.devices == {"first": "accelerator 1", "second": "accelerator 2", "third": "cpu 1"}


def test_a_graph_may_lie_in_a_file_and_results_stand_without_it(tmp_path: Path) -> None:
    graph = written(tmp_path, document(maxSizePerFPGA=24.0))
    (tmp_path / "question.yaml").write_text(
        "kind: placement\ngraph: {file: graph.json}\ncontiguous: convex\ndevices: 3\n", encoding="utf-8"
    )
    question = read(tmp_path / "question.yaml")
    assert (question.accelerators, question.cpus, question.memory, question.contiguity) == (3, 1, 24.0, "convex")
    graph.unlink()
    again = read_again(json.loads(json.dumps(described(FAMILY, question))), "placement")
    assert described(FAMILY, again) == described(FAMILY, question)
    assert np.array_equal(again.graph.accelerator_time, question.graph.accelerator_time)


def test_the_command_line_and_settings_go_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "question.yaml").write_text(INLINE, encoding="utf-8")
    question = read(tmp_path / "question.yaml", ("contiguous=no", "cpus=0", "devices=5", "graph.nodes.third.time=1 ms"))
    assert (question.accelerators, question.cpus, question.contiguity) == (5, 0, "no")
    assert question.graph.accelerator_time.tolist() == [2.0, 3.0, 1.0]
    assert described(FAMILY, read_again(described(FAMILY, question), "placement")) == described(FAMILY, question)


GENERATED = "kind: placement\ndevices: 2\ngraph: {hardware: a100-80g, workload: {model: gpt3-13b, global_batch: 8}}\n"
WRITTEN_REFUSED = [
    ("kind: placement\ndevices: 2\n", "graph: this key is missing"),
    ("kind: placement\ngraph: {}\ndevices: 2\n", "2:8: graph: no graph is given (give exactly one of file, nodes, workload)"),
    (INLINE.replace("devices: 2\n", ""), "devices: this key is missing, the number of accelerators is needed (or --devices)"),
    (INLINE.replace("cpus: 1", "cpus: 2000"), "2 accelerators and 2000 CPUs are given, 1 to 1024"),
    (INLINE.replace("after: [first]", "after: [frist]"), "graph.nodes.second.after: there is no node 'frist' (add it, or remove it here)"),
    (INLINE.replace("size: 1 GiB", "after: [third]"), "graph.nodes: the nodes first -> second -> third -> first form a cycle"),
    (INLINE.replace("cpu_time: 1 ms, ", ""), "graph.nodes.third: neither time nor cpu_time is given"),
    (INLINE.replace("2 ms", "2 GB"), "graph.nodes.first.time: "),
    (INLINE.replace("2 ms", "-2 ms"), "graph.nodes.first.time: "),
    (INLINE.replace("1 GiB}", "1e30 GiB}"), "graph.nodes.first: a figure is beyond 1e+18"),
    (INLINE.replace("graph:", "graph:\n  hardware: a100-80g"), "graph.hardware: this belongs to graphs that are priced"),
    (GENERATED.replace("hardware: a100-80g, ", ""), "graph.hardware: a device prices the operators"),
    (GENERATED.replace("a100-80g", "x100"), "graph.hardware: "),
    (GENERATED.replace("a100-80g", "a100-80g, bandwidth: 1e-320 GB/s"), "graph.bandwidth: less than a byte a second is no bandwidth"),
    (GENERATED.replace(", global_batch: 8", ""), "graph.workload.global_batch: "),
    (GENERATED.replace("model: gpt3-13b, global_batch: 8", "gemm: {rows: 8, depth: 8, columns: 8}"), "from transformers only"),
]  # fmt: skip


@every(("text", "message"), WRITTEN_REFUSED)
def test_a_wrong_question_names_the_place_and_the_remedy(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "question.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InstanceError) as error:
        read(tmp_path / "question.yaml")
    assert message in str(error.value)


def test_units_that_are_known_are_not_asked_for(tmp_path: Path) -> None:
    (tmp_path / "question.yaml").write_text(INLINE, encoding="utf-8")
    with pytest.raises(InstanceError, match="its figures have units"):
        read(tmp_path / "question.yaml", ("edge_unit=s",))


def test_a_missing_graph_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "question.yaml").write_text("kind: placement\ngraph: {file: gone.json}\n", encoding="utf-8")
    assert main(["solve", str(tmp_path / "question.yaml")]) == 3
    assert "2:15: graph.file: there is no such file" in capsys.readouterr().err


def test_the_shipped_question_is_proved_on_layers_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, saved = "gpt3-13b-on-8", tmp_path / "answer.json"
    assert name in shipped()
    assert main(["validate", name]) == 0
    assert "804 nodes with " in capsys.readouterr().out
    assert main(["solve", name, "--set", "graph.granularity=layer", "--out", str(saved)]) == 0
    result = json.loads(saved.read_text())
    assert result["status"] == "OPTIMAL"
    assert len(result["answer"]["devices"]) == 84
    assert main(["check", str(saved)]) == 0


def test_an_inference_graph_has_no_backward_pass_and_less_to_hold(tmp_path: Path) -> None:
    text = "kind: placement\ndevices: 2\ngraph: {hardware: h100-sxm, training: false, workload: {model: gpt3-1.3b, global_batch: 8}}\n"
    (tmp_path / "question.yaml").write_text(text, encoding="utf-8")
    forward = read(tmp_path / "question.yaml")
    both = read(tmp_path / "question.yaml", ("graph.training=true",))
    assert len(both.graph) == 2 * len(forward.graph)
    assert not forward.graph.backward.any()
    assert forward.graph.size.sum() < both.graph.size.sum()
    assert np.array_equal(both.graph.accelerator_time[: len(forward.graph)], forward.graph.accelerator_time)
