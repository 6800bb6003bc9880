"""Formats of layers written for quantisers: a recipe of Model-Optimizer, a configuration of torchao, and what they cannot say."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from crossopt.crossflow.operator_graph import Node, OperatorGraph, Weights
from crossopt.instances.operators.graph_file import graph_text
from crossopt.reports.cli import main

TABLE = """
kind: layers
objective: quality
budgets: {{size: 30 B}}
layers:
  model.up: {{strategies: {{bf16: {{size: 20 B}}, {0}: {{quality: 1, size: 10 B}}}}}}
  model.down: {{strategies: {{bf16: {{size: 20 B}}, {0}: {{quality: 2, size: 10 B}}}}}}
"""


def result(question: str, tmp_path: Path) -> str:
    (tmp_path / "net.yaml").write_text(question, encoding="utf-8")
    out = tmp_path / "net.json"
    assert main(["solve", str(tmp_path / "net.yaml"), "--out", str(out)]) == 0
    return str(out)


def exported(saved: str, form: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["export", saved, "--as", form]) == 0
    return capsys.readouterr().out


def refusal(saved: str, form: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["export", saved, "--as", form]) != 0
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("quantised", "weight", "taken"),
    [
        ("fp8", {"num_bits": "e4m3", "axis": None}, {"num_bits": "e4m3", "axis": None}),
        ("int8", {"num_bits": 8, "axis": 0}, {"num_bits": 8, "axis": None}),
        ("fp4", *[{"num_bits": "e2m1", "block_sizes": {-1: 16, "type": "dynamic", "scale_bits": "e4m3"}}] * 2),
    ],
)
def test_a_recipe_turns_all_off_and_quantises_what_was_chosen(
    quantised: str, weight: dict[str, Any], taken: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = yaml.safe_load(exported(result(TABLE.format(quantised), tmp_path), "modelopt", capsys))
    assert (recipe["metadata"]["recipe_type"], recipe["quantize"]["algorithm"]) == ("ptq", "max")
    assert recipe["quantize"]["quant_cfg"] == [
        {"quantizer_name": "*", "enable": False},
        {"quantizer_name": "model.up.weight_quantizer", "cfg": weight},
        {"quantizer_name": "model.up.input_quantizer", "cfg": taken},
    ]


def test_a_configuration_of_torchao_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With a package in its place that keeps what it is given."""
    torchao: Any = ModuleType("torchao.quantization")
    torchao.FqnToConfig, torchao.Float8DynamicActivationFloat8WeightConfig = dict, lambda: "fp8 of both"
    monkeypatch.setitem(sys.modules, "torchao", ModuleType("torchao"))
    monkeypatch.setitem(sys.modules, "torchao.quantization", torchao)
    found = dict[str, Any]()
    exec(exported(result(TABLE.format("fp8"), tmp_path), "torchao", capsys), found)  # noqa: S102 - what was written runs
    assert found["config"] == {"model.up": "fp8 of both"}


def test_strategies_that_a_quantiser_lacks_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = result(TABLE.format("int4"), tmp_path)
    assert "model.up has the strategy int4, and --as torchao writes fp8, int8, fp4 (take --as strategies)" in refusal(
        saved, "torchao", capsys
    )
    saved = result(TABLE.format("split"), tmp_path)
    assert "model.up has the strategy split, and --as modelopt writes fp8, int8, int4, fp4" in refusal(saved, "modelopt", capsys)


def network(source: str, tmp_path: Path, kind: str = "product") -> str:
    """Two products with a norm in between, of which the second is called twice."""
    side = (4096, 4096)
    product = (4096, 4096, 4096, 1)
    nodes = (
        Node("first", kind, ("x",), ("a",), ("first.weight",), product, source=source),
        Node("norm", "norm", ("a",), ("b",), ("norm.weight",), source="aten.layer_norm"),
        Node("second", "product", ("b",), ("c",), ("second.weight",), product, source="aten.linear"),
        Node("second 2", "product", ("c",), ("d",), ("second.weight",), product, source="aten.linear"),
    )
    weights = {"first.weight": Weights(side), "norm.weight": Weights((4096,)), "second.weight": Weights(side)}
    graph = OperatorGraph("net", ("x",), ("d",), dict.fromkeys("xabcd", side), weights, nodes)
    (tmp_path / "graph.json").write_text(graph_text(graph), encoding="utf-8")
    return "kind: layers\nobjective: time\ngraph: graph.json\nhardware: h100-sxm\nformats: [fp8]\n"


def test_modules_of_a_graph_are_named_and_its_other_operators_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = network("aten.linear", tmp_path)
    recipe = yaml.safe_load(exported(result(question, tmp_path), "modelopt", capsys))
    named = [entry["quantizer_name"] for entry in recipe["quantize"]["quant_cfg"]]
    assert named == ["*", *(f"{module}.{part}_quantizer" for module in ("first", "second") for part in ("weight", "input"))]
    recipe = yaml.safe_load(exported(result(question + "fixed: {second: bf16}\n", tmp_path), "modelopt", capsys))
    named = [entry["quantizer_name"] for entry in recipe["quantize"]["quant_cfg"]]
    assert named == ["*", "first.weight_quantizer", "first.input_quantizer"], "both calls of a module are in one format"


def test_networks_of_onnx_and_convolutions_are_refused_where_names_or_layers_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = result(network("MatMul", tmp_path), tmp_path)
    assert "its layers have the names of ONNX, and --as modelopt needs those of modules" in refusal(saved, "modelopt", capsys)
    saved = result(network("aten.conv2d", tmp_path, "convolution"), tmp_path)
    assert "first is no linear layer, which is all that torchao quantises so (take --as modelopt)" in refusal(saved, "torchao", capsys)


def test_splits_are_written_with_their_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a product whose weights are far larger than what it takes and makes; a quantiser gets the format alone."""
    tensors = {"x": (8, 64), "flat": (8, 8192), "y": (8, 8192)}
    weights = {"up.w": Weights((64, 8192)), "down.w": Weights((8192, 8192))}
    nodes = (
        Node("up", "product", ("x",), ("flat",), ("up.w",), (8, 64, 8192, 1), (), "aten.linear"),
        Node("down", "product", ("flat",), ("y",), ("down.w",), (8, 8192, 8192, 1), (), "aten.linear"),
    )
    (tmp_path / "graph.json").write_text(graph_text(OperatorGraph("net", ("x",), ("y",), tensors, weights, nodes)), encoding="utf-8")
    question = "kind: layers\nobjective: size\ngraph: graph.json\nhardware: h100-sxm\nformats: [fp8]\ncluster: {devices: 2}\n"
    saved = result(f"{question}splits: [batch, features]\n", tmp_path)
    assert json.loads(exported(saved, "strategies", capsys)) == {
        name: {"format": "fp8", "split": "features", "group": 2} for name in ("up", "down")
    }
    assert "up.weight_quantizer" in exported(saved, "modelopt", capsys)
