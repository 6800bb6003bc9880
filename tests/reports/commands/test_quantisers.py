"""Formats of layers written for quantisers: a recipe of Model-Optimizer, a configuration of torchao, and what they cannot say."""

import json
import sys
from dataclasses import replace
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import yaml

import crossopt
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


def two_modules(torch: Any) -> Any:  # noqa: ANN401 - of a package that may be absent
    """Modules of the names of the table."""
    module = torch.nn.Module()
    module.model = torch.nn.Module()
    module.model.up, module.model.down = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)
    module.forward = lambda values: module.model.down(module.model.up(values))
    return module


@pytest.mark.parametrize("quantised", ["fp8", "int8", "int4", "fp4"])
def test_model_optimizer_reads_the_recipe(quantised: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Loaded and applied by the package itself, 0.47 when this was written: of two modules one has both quantisers."""
    torch = pytest.importorskip("torch")
    quantization = pytest.importorskip("modelopt.torch.quantization")
    recipes = pytest.importorskip("modelopt.recipe")
    path = tmp_path / "recipe.yaml"
    path.write_text(exported(result(TABLE.format(quantised), tmp_path), "modelopt", capsys), encoding="utf-8")
    recipe, module = recipes.load_recipe(path), two_modules(torch)
    found = quantization.quantize(module, recipe.quantize.model_dump(), lambda one: one(torch.ones(2, 64)))
    enabled = {name for name, one in found.named_modules() if name.endswith("_quantizer") and one.is_enabled}
    assert enabled == {"model.up.weight_quantizer", "model.up.input_quantizer"}


@pytest.mark.parametrize("quantised", ["fp8", "int8", "fp4"])
def test_torchao_reads_the_configuration(quantised: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the package itself, 0.18 when this was written; int8 is applied, as the others need a GPU."""
    torch = pytest.importorskip("torch")
    torchao = pytest.importorskip("torchao.quantization")
    found = dict[str, Any]()
    exec(exported(result(TABLE.format(quantised), tmp_path), "torchao", capsys), found)  # noqa: S102 - what was written runs
    assert list(found["config"].fqn_to_config) == ["model.up"]
    if quantised == "int8":
        module = two_modules(torch).to(torch.bfloat16)
        torchao.quantize_(module, found["config"], filter_fn=None)
        kinds = [type(one.weight.data).__name__ for one in (module.model.up, module.model.down)]
        assert "Int8" in kinds[0] and kinds[1] == "Tensor"


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


def image_model(tmp_path: Path, named: bool = True) -> Path:
    """Three convolutions of an image and a product, with weights, as an exporter writes them."""
    onnx = pytest.importorskip("onnx")
    helper, numbers = onnx.helper, np.random.default_rng(1)

    def weights(name: str, *shape: int) -> Any:  # noqa: ANN401 - of onnx
        return onnx.numpy_helper.from_array(numbers.standard_normal(shape).astype(np.float32), name)

    nodes = [
        helper.make_node("Relu", ["x"], ["z"], name="first"),
        helper.make_node("Conv", ["z", "w1"], ["a"], name="conv.1", pads=[1] * 4),
        helper.make_node("Conv", ["a", "w2"], ["b"], name="conv.10", pads=[1] * 4),
        helper.make_node("Relu", ["b"], ["r"], name="relu"),
        helper.make_node("Conv", ["r", "w3"], ["c"], name="conv/3", pads=[1] * 4),
        helper.make_node("GlobalAveragePool", ["c"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flat"),
        helper.make_node("Gemm", ["f", "w4"], ["y"], name="head"),
    ]
    values = [weights("w1", 64, 64, 3, 3), weights("w2", 64, 64, 3, 3), weights("w3", 64, 64, 3, 3), weights("w4", 64, 64)]
    shapes = {"x": [64, 64, 56, 56], "y": [64, 64]}
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    for node in () if named else nodes:
        node.name = ""
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], values)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def onnx_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str], losses: str, budget: str, named: bool = True) -> str:
    """The answer about the model above within a budget, as a file of arguments, or what is refused."""
    path, saved = image_model(tmp_path, named), str(tmp_path / "net.json")
    (tmp_path / "losses.csv").write_text(f"layer,format,quality\n{losses}", encoding="utf-8")
    asked = ["--hardware", "h100-sxm", "--formats", "fp8,int8", "--losses", str(tmp_path / "losses.csv"), "--budget", f"quality={budget}"]
    assert main(["quantize", str(path), *asked, "--out", saved]) == 0
    capsys.readouterr()
    code = main(["export", saved, "--as", "modelopt"])
    printed = capsys.readouterr()
    return printed.err if code else printed.out


LOSSES = "conv.1,fp8,0.1\nconv.10,fp8,0.9\nconv/3,fp8,0.1\n"


def test_an_onnx_model_is_quantised_by_names_of_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Patterns end with the name, so that conv.1 is not conv.10 as well."""
    arguments = json.loads(onnx_arguments(tmp_path, capsys, LOSSES, "0.2"))
    expected = {"quantize_mode": "fp8", "high_precision_dtype": "bf16", "nodes_to_quantize": [r"conv\.1$", "conv/3$"]}
    assert arguments == expected
    assert "every layer keeps its format" in onnx_arguments(tmp_path, capsys, LOSSES, "0.05")
    mixed = onnx_arguments(tmp_path, capsys, "conv.1,fp8,0.1\nconv/3,int8,0.1\n", "0.2")
    assert "Model-Optimizer quantises nodes of ONNX in fp8 or int8 alone, here are fp8, int8" in mixed


@pytest.mark.parametrize("named", [True, False])
def test_model_optimizer_takes_the_arguments_of_an_onnx_model(tmp_path: Path, capsys: pytest.CaptureFixture[str], named: bool) -> None:
    """Applied by the package itself, also to a copy with names of a model without: the chosen convolutions alone read quantised values."""
    quantization = pytest.importorskip("modelopt.onnx.quantization")
    onnx = pytest.importorskip("onnx")
    losses = LOSSES if named else "a,fp8,0.1\nb,fp8,0.9\nc,fp8,0.1\n"
    arguments = json.loads(onnx_arguments(tmp_path, capsys, losses, "0.2", named))
    model = tmp_path / "net.onnx"
    if not named:
        assert main(["import", str(model), "--named", str(tmp_path / "named.onnx")]) == 0
        model = tmp_path / "named.onnx"
    quantization.quantize(str(model), output_path=str(tmp_path / "out.onnx"), calibration_eps=["cpu"], **arguments)
    found = onnx.load(tmp_path / "out.onnx").graph
    made = {name: node.op_type for node in found.node for name in node.output}
    quantised = {node.name for node in found.node if node.op_type == "Conv" and made.get(node.input[1]) == "DequantizeLinear"}
    assert quantised == ({"conv.1", "conv/3"} if named else {"a", "c"})


CONVOLUTIONS = [
    (3, 64, 1, 7),
    (64, 64, 1, 3),
    (16, 64, 1, 3),
    (24, 24, 1, 7),
    (64, 8, 1, 1),
    (32, 32, 32, 3),
    (32, 32, 2, 1),
    (12, 12, 1, 3),
]
"""Channels in and out, groups, kernel."""


def convolutions(tmp_path: Path) -> Path:
    """One behind the other, without names that an exporter would give."""
    onnx = pytest.importorskip("onnx")
    helper, numbers, nodes, values, here, last = onnx.helper, np.random.default_rng(1), [], [], "x", 3
    for number, (taken, made, groups, kernel) in enumerate(CONVOLUTIONS):
        for name, out, own, of, edge in (("to", taken, last, 1, 1), ("conv", made, taken, groups, kernel)):
            weights = numbers.standard_normal((out, own // of, edge, edge)).astype(np.float32)
            values.append(onnx.numpy_helper.from_array(weights, f"{name}{number}.w"))
            inputs, shape = [here, f"{name}{number}.w"], {"kernel_shape": [edge, edge], "pads": [edge // 2] * 4, "group": of}
            nodes.append(helper.make_node("Conv", inputs, [f"{name}{number}"], name=f"{name}{number}", **shape))
            here, last = f"{name}{number}", out
    nodes += [helper.make_node("GlobalAveragePool", [here], ["p"], name="pool"), helper.make_node("Flatten", ["p"], ["f"], name="flat")]
    nodes.append(helper.make_node("Gemm", ["f", "head.w"], ["y"], name="head"))
    values.append(onnx.numpy_helper.from_array(numbers.standard_normal((last, 8)).astype(np.float32), "head.w"))
    ends = [helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", [4, 3, 16, 16]), ("y", [4, 8]))]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], values)
    path = tmp_path / "convolutions.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), path)
    return path


@pytest.mark.parametrize("mode", ["fp8", "int8"])
def test_nodes_that_model_optimizer_leaves_as_they_are_are_left_out(mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, saved = convolutions(tmp_path), str(tmp_path / "net.json")
    chosen = ["--hardware", "h100-sxm", "--formats", mode, "--minimize", "size"]
    assert main(["quantize", str(path), *chosen, "--out", saved]) == 0
    capsys.readouterr()
    assert main(["export", saved, "--as", "modelopt"]) == 0
    printed = capsys.readouterr()
    named = {pattern.removesuffix("$") for pattern in json.loads(printed.out)["nodes_to_quantize"]}
    assert " ".join(printed.err.split()).startswith("left out as Model-Optimizer leaves them as they are: ")
    assert {"conv1"} <= named and "head" not in named and ("conv0" in named) is (mode == "int8")
    if find_spec("modelopt") is None:
        return  # the package itself says the same, 0.47 when this was written
    onnx, surgeon = pytest.importorskip("onnx"), pytest.importorskip("onnx_graphsurgeon")
    rules = pytest.importorskip("modelopt.onnx.quantization.graph_utils")
    left = rules.find_nodes_from_convs_to_exclude(surgeon.import_onnx(onnx.load(path)), mode)
    every = {node.name for node in onnx.load(path).graph.node if node.op_type == "Conv"}
    assert named == every - set(left)


def test_splits_are_written_with_their_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a product whose weights are far larger than what it takes and makes; a quantiser gets the format alone."""
    tensors = {"x": (8, 64), "flat": (8, 8192), "y": (8, 8192)}
    weights = {"up.weight": Weights((64, 8192)), "down.weight": Weights((8192, 8192))}
    nodes = (
        Node("up", "product", ("x",), ("flat",), ("up.weight",), (8, 64, 8192, 1), (), "aten.linear"),
        Node("down", "product", ("flat",), ("y",), ("down.weight",), (8, 8192, 8192, 1), (), "aten.linear"),
    )
    (tmp_path / "graph.json").write_text(graph_text(OperatorGraph("net", ("x",), ("y",), tensors, weights, nodes)), encoding="utf-8")
    question = "kind: layers\nobjective: size\ngraph: graph.json\nhardware: h100-sxm\nformats: [fp8]\ncluster: {devices: 2}\n"
    saved = result(f"{question}splits: [batch, features]\n", tmp_path)
    assert json.loads(exported(saved, "strategies", capsys)) == {
        name: {"format": "fp8", "split": "features", "group": 2} for name in ("up", "down")
    }
    assert "up.weight_quantizer" in exported(saved, "modelopt", capsys)


def test_weights_that_quantisers_do_not_find_in_a_module_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`torch.nn.MultiheadAttention` passes its weights to a function; each matrix of a recurrence has a quantiser; a head may share the
    weight of an embedding."""
    side, product = (4096, 4096), (4096, 4096, 4096, 1)
    nodes = (
        Node("attention", "product", ("x",), ("a",), ("attention.in_proj_weight",), product, (), "aten.linear"),
        Node("attention 2", "product", ("a",), ("b",), ("attention.out_proj.weight",), product, (), "aten.linear"),
        Node("rnn", "recurrent", ("b",), ("c",), ("rnn.weight_ih_l0",), product, (), "aten.lstm"),
        Node("head", "product", ("c",), ("d",), ("embedding.weight",), product, (), "aten.linear"),
        Node("linear", "product", ("d",), ("e",), ("other.weight",), product, (), "aten.linear"),
    )
    weights = {name: Weights(side) for node in nodes for name in node.weights}
    graph = OperatorGraph("net", ("x",), ("e",), dict.fromkeys("xabcde", side), weights, nodes)
    (tmp_path / "graph.json").write_text(graph_text(graph), encoding="utf-8")
    question = "kind: layers\nobjective: time\ngraph: graph.json\nhardware: h100-sxm\nformats: [fp8]\n"
    saved = result(question, tmp_path)
    capsys.readouterr()
    assert main(["export", saved, "--as", "modelopt"]) == 0
    printed = capsys.readouterr()
    named = [entry["quantizer_name"] for entry in yaml.safe_load(printed.out)["quantize"]["quant_cfg"]]
    assert named == ["*", "rnn.*_weight_quantizer", "rnn.*_input_quantizer", "head.weight_quantizer", "head.input_quantizer"]
    said = " ".join(printed.err.split())
    assert "left out as quantisers leave them as they are: attention, with weights of no linear layer or convolution and 1 more" in said
    few = result(question + "fixed: {rnn: bf16, head: bf16}\n", tmp_path)
    assert "attention has weights of no linear layer or convolution, and nothing else" in refusal(few, "modelopt", capsys)


def test_model_optimizer_finds_all_quantisers_of_a_recipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Applied by the package itself to a module with a recurrence, attention of its own, and an encoder of PyTorch."""
    quantization, recipes = pytest.importorskip("modelopt.torch.quantization"), pytest.importorskip("modelopt.recipe")
    torch = pytest.importorskip("torch")
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.encoder, self.up = torch.nn.GRU(64, 64, 2, batch_first=True), encoder, torch.nn.ConvTranspose1d(64, 64, 2)

        def forward(self, x: Any) -> Any:  # noqa: ANN401 - of torch
            return self.up(self.encoder(self.rnn(x)[0]).transpose(1, 2))

    network, saved = Network(), str(tmp_path / "net.json")
    crossopt.from_torch(network, torch.zeros(4, 32, 64)).save(str(tmp_path / "graph.json"))
    asked = ["--hardware", "h100-sxm", "--formats", "fp8", "--minimize", "size", "--out", saved]
    assert main(["quantize", str(tmp_path / "graph.json"), *asked]) == 0
    (tmp_path / "recipe.yaml").write_text(exported(saved, "modelopt", capsys), encoding="utf-8")
    recipe = recipes.load_recipe(tmp_path / "recipe.yaml").quantize.model_dump()
    quantised = quantization.quantize(network, recipe, lambda one: one(torch.randn(2, 32, 64)))
    on = {name for name, part in quantised.named_modules() if name.endswith("_quantizer") and part.is_enabled}
    patterns = {entry["quantizer_name"] for entry in recipe["quant_cfg"]} - {"*"}
    assert all(any(fnmatch(name, pattern) for name in on) for pattern in patterns)
    assert {name.split(".")[0] for name in on} == {"rnn", "encoder", "up"} and not any("self_attn" in name for name in on)


def test_arguments_state_the_lengths_of_open_axes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else Model-Optimizer takes a length of 1 for each, and leaves products of one row as they are. In fp8 it also leaves transposed
    convolutions."""
    nodes = (
        Node("up", "transposed convolution", ("x",), ("a",), ("w",), (64 * 1024, 64, 64 * 4, 1), (2, 2), "ConvTranspose"),
        Node("conv", "convolution", ("a",), ("y",), ("v",), (64 * 4096, 64 * 9, 64, 1), (3, 3), "Conv"),
    )
    tensors = {"x": (64, 64, 32, 32), "a": (64, 64, 64, 64), "y": (64, 64, 64, 64), "scale": ()}
    weights = {"w": Weights((64, 64, 2, 2)), "v": Weights((64, 64, 3, 3))}
    graph = OperatorGraph("net", ("x", "scale"), ("y",), tensors, weights, nodes)
    for mode, taken in (("fp8", [r"conv$"]), ("int8", [r"up$", r"conv$"])):
        for axes in ((), (("batch", 64),)):
            (tmp_path / "graph.json").write_text(graph_text(replace(graph, axes=axes)), encoding="utf-8")
            question = f"kind: layers\nobjective: size\ngraph: graph.json\nhardware: h100-sxm\nformats: [{mode}]\n"
            arguments = json.loads(exported(result(question, tmp_path), "modelopt", capsys))
            assert arguments["nodes_to_quantize"] == taken
            assert arguments.get("calibration_shapes") == ("x:64x64x32x32" if axes else None)
