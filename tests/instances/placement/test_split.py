"""Placements that come with a graph, and placements as files for other programs: what is written is read again as the same."""

import json
from pathlib import Path

import pytest

from crossopt.instances.errors import InstanceError
from crossopt.instances.placement.question import PlacementQuestion, read_split
from crossopt.instances.question import read
from crossopt.reports.cli import main
from crossopt.solvers.placement.judge import judge
from tests.instances.placement.test_formats import document, node, written
from tests.paths import reference


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


REFUSED = [
    ([1], "a split is a mapping"),
    ({"fpgas": [{"nodes": [1, 9]}], "cpus": []}, "fpgas[0].nodes: there is no node '9' in the graph"),
    ({"fpgas": [{"nodes": [1]}, {"nodes": [1, 2]}]}, "fpgas[1].nodes: node 1 is on accelerator 1 already"),
    ({"fpgas": [{"nodes": []}] * 2 + [{"nodes": [1]}]}, "fpgas: 3 are used, the question has 2 (--devices, --cpus)"),
    ({"fpgas": [{"nodes": [1]}]}, "node 2 has no device"),
    ({"fpgas": [], "cpus": []}, "node 1 and 2 others have no device"),
    ({"fpgas": 3}, "fpgas: a list of devices is needed"),
    ({"1": "gpu", "2": "cpu 1"}, "there is no device 'gpu' (one of accelerator 1, accelerator 2, cpu 1"),
]


@pytest.mark.parametrize(("what", "message"), REFUSED)
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
