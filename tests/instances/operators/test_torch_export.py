"""Exported networks of PyTorch as graphs: files without torch, and modules where torch is installed, against the same networks in ONNX."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from crossopt.crossflow.operator_graph import OperatorGraph, graph_faults, shared_weights
from crossopt.instances.errors import InstanceError
from crossopt.instances.operators.graph_file import graph_in, graph_text
from crossopt.instances.operators.torch_export import read_torch

FLOAT, INT64 = 7, 5
Extent = int | str


def extent(given: Extent) -> dict[str, Any]:
    """A length, or an expression of lengths with the one of the example behind it: `s0:4`."""
    if isinstance(given, int):
        return {"as_int": given}
    text, _, hint = given.rpartition(":")
    text = text if "(" in text else f"Symbol('{text}', positive=True, integer=True)"
    return {"as_expr": {"expr_str": text, "hint": {"as_int": int(hint)}}}


def tensor(*sizes: Extent, kind: int = FLOAT, strides: tuple[int, ...] | None = None) -> dict[str, Any]:
    strides = strides or tuple(1 for _ in sizes)
    return {"sizes": [extent(size) for size in sizes], "strides": [{"as_int": stride} for stride in strides], "dtype": kind}


def call(target: str, made: str | list[str], module: str = "", **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
    """A call: names of tensors as they are, lists of them, and other values with their kind, such as `{"as_int": 2}`."""
    outputs = [{"as_tensor": {"name": made}}] if isinstance(made, str) else [{"as_tensors": [{"name": name} for name in made]}]
    inputs = []
    for name, given in arguments.items():
        wrapped = {"as_tensor": {"name": given}} if isinstance(given, str) else given
        inputs.append({"name": name, "arg": {"as_tensors": [{"name": one} for one in wrapped]} if isinstance(wrapped, list) else wrapped})
    stack = f"L__self__,,own.Net;L__self__{module},{module},own.Part" if module else "L__self__,,own.Net"
    name = made if isinstance(made, str) else f"{made[0]}_all"
    return {"target": f"torch.ops.{target}", "name": name, "inputs": inputs, "outputs": outputs, "metadata": {"nn_module_stack": stack}}


def program(
    nodes: list[dict[str, Any]],
    tensors: Mapping[str, dict[str, Any]],
    inputs: tuple[str, ...] = ("x",),
    parameters: Mapping[str, str] | None = None,
    buffers: Mapping[str, str] | None = None,
    **more: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """The JSON of an export, with weights by the tensors that stand for them."""
    specs: list[dict[str, Any]] = []
    for kind, named in (("parameter", parameters or {}), ("buffer", buffers or {})):
        specs += [{kind: {"arg": {"name": name}, f"{kind}_name": own}} for name, own in named.items()]
    specs += [{"user_input": {"arg": {"as_tensor": {"name": name}}}} for name in inputs]
    outputs = [nodes[-1]["outputs"][0]]
    graph = {"inputs": [{"as_tensor": {"name": name}} for name in inputs], "outputs": outputs, "nodes": nodes, "tensor_values": tensors}
    module = {"graph": graph, "signature": {"input_specs": specs}}
    return {"graph_module": module, "schema_version": {"major": 8, "minor": 20}, "range_constraints": {}, **more}


def saved(document: object, tmp_path: Path, member: str = "net/models/model.json") -> Path:
    path = tmp_path / "net.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, document if isinstance(document, str) else json.dumps(document))
        archive.writestr("net/data/weights/weight_0", b"no pickle, and never read")
    return path


def imported(document: object, tmp_path: Path, **axes: int) -> OperatorGraph:
    graph = read_torch(saved(document, tmp_path), axes)
    assert not list(graph_faults(graph))
    assert graph_in(graph_text(graph), "graph") == graph
    return graph


def refused(document: object, tmp_path: Path, **axes: int) -> list[str]:
    with pytest.raises(InstanceError) as error:
        read_torch(saved(document, tmp_path), axes)
    assert str(error.value).endswith("nothing imported")
    return [fault.message for fault in error.value.faults]


def linear() -> dict[str, Any]:
    """A linear layer of a batch that is open."""
    tensors = {"x": tensor("s0:4", 6), "w": tensor(5, 6), "y": tensor("s0:4", 5)}
    nodes = [call("aten.linear.default", "y", "part", input="x", weight="w")]
    return program(nodes, tensors, parameters={"w": "part.weight"}, range_constraints={"s0": {"min_val": 2, "max_val": 64}})


def test_open_axes_have_the_lengths_of_the_example_or_those_that_are_given(tmp_path: Path) -> None:
    usual, given = imported(linear(), tmp_path), imported(linear(), tmp_path, **{"x.0": 32})
    assert (usual.axes, usual.macs, usual.parameters) == ((("x.0", 4),), 4 * 6 * 5, 30)
    assert (given.axes, given.macs, given.tensors["y"]) == ((("x.0", 32),), 32 * 6 * 5, (32, 5))
    assert (usual.nodes[0].name, usual.nodes[0].weights, usual.name) == ("part", ("part.weight",), "net")
    assert refused(linear(), tmp_path, **{"x.0": 1, "z": 3}) == [
        "--set x.0=1: the export allows lengths from 2 to 64 (export with a wider range)",
        "there is no open axis 'z' (open axes: x.0; export with dynamic_shapes to open an axis)",
    ]


def test_extents_that_are_computed_from_open_axes(tmp_path: Path) -> None:
    half = "FloorDiv(Add(Mul(Integer(3), Symbol('s0')), Integer(-1)), Integer(2)):5"
    tensors = {"x": tensor("s0:4"), "y": tensor("s0:4"), "z": tensor(half)}
    nodes = [call("aten.relu.default", "y", self="x"), call("aten.slice.Tensor", "z", self="y")]
    assert imported(program(nodes, tensors), tmp_path, **{"x.0": 9}).tensors["z"] == (13,)
    tensors["z"] = tensor("Symbol('u0', integer=True):0")
    assert refused(program(nodes, tensors), tmp_path)[0].startswith("the extent Symbol('u0', integer=True) depends on data")
    tensors["z"] = tensor("__import__('os'):0")
    assert refused(program(nodes, tensors), tmp_path)[0].startswith("the extent __import__('os') depends on data")


def test_axes_of_one_length_are_given_one_length(tmp_path: Path) -> None:
    tensors = {name: tensor("s0:4") for name in "xyz"}
    document = program([call("aten.add.Tensor", "z", self="x", other="y")], tensors, ("x", "y"))
    assert imported(document, tmp_path, **{"y.0": 8}).axes == (("x.0", 8),)
    assert refused(document, tmp_path, **{"x.0": 8, "y.0": 9}) == ["--set y.0=9: this axis is as long as x.0 (give both the same length)"]


def test_what_follows_from_weights_is_folded_into_their_takers(tmp_path: Path) -> None:
    """A product with two weights that are joined takes both; what is filled by a number takes none, and a mask of integers neither."""
    tensors = {name: tensor(4, 4) for name in "xuvy"} | {"joined": tensor(4, 8), "z": tensor(4, 8), "ones": tensor(4, 8)}
    nodes = [
        call("aten.cat.default", "joined", tensors=["u", "v"], dim={"as_int": 1}),
        call("aten.mm.default", "z", self="x", mat2="joined"),
        call("aten.ones_like.default", "ones", self="z"),
        call("aten.add_.Tensor", "sum", self="z", other="ones"),
        call("aten.mul.Tensor", "end", self="sum", other="count"),
    ]
    tensors |= {"sum": tensor(4, 8), "end": tensor(4, 8), "count": tensor(8, kind=INT64)}
    document = program(nodes, tensors, parameters={"u": "u", "v": "v"}, buffers={"count": "count"})
    graph = imported(document, tmp_path)
    assert [(node.operator, node.weights) for node in graph.nodes] == [("product", ("u", "v")), ("addition", ()), ("multiplication", ())]
    assert (graph.parameters, graph.buffers, graph.nodes[0].product) == (32, 0, (4, 4, 8, 1))


def test_subgraphs_without_gradients_are_opened(tmp_path: Path) -> None:
    inner = {
        "inputs": [{"as_tensor": {"name": "a"}}],
        "outputs": [{"as_tensor": {"name": "b"}}],
        "nodes": [call("aten.sin.default", "b", self="a")],
        "tensor_values": {"a": tensor(3), "b": tensor(3)},
    }
    graph = {"as_graph": {"name": "inner", "graph": inner}}
    opened = call("higher_order.wrap_with_set_grad_enabled", ["b"], on={"as_bool": False}, graph=graph, a="x")
    nodes = [opened, call("aten.cos.default", "y", self="b")]
    found = imported(program(nodes, {"x": tensor(3), "b": tensor(3), "y": tensor(3)}), tmp_path)
    assert [(node.source, node.inputs, node.outputs) for node in found.nodes] == [
        ("aten.sin", ("x",), ("b_all.b",)),
        ("aten.cos", ("b_all.b",), ("y",)),
    ]


def test_views_are_free_and_reshapes_out_of_order_copy(tmp_path: Path) -> None:
    tensors = {"x": tensor(2, 3, strides=(3, 1)), "t": tensor(3, 2, strides=(1, 3)), "y": tensor(6, strides=(1,)), "z": tensor(6)}
    turned = call("aten.permute.default", "t", self="x", dims={"as_ints": [1, 0]})
    nodes = [turned, call("aten.reshape.default", "y", self="t"), call("aten.view.default", "z", self="y")]
    assert [node.operator for node in imported(program(nodes, tensors), tmp_path).nodes] == ["view", "move", "view"]
    nodes[0] = call("aten.to.dtype", "t", self="x")
    tensors["t"] = tensor(2, 3, kind=6, strides=(3, 1))
    assert [node.operator for node in imported(program(nodes, tensors), tmp_path).nodes] == ["move", "view", "view"]


def test_unknown_operators_are_priced_by_bytes_and_named(tmp_path: Path) -> None:
    graph = imported(program([call("mine.wavelet.default", "y", self="x")], {"x": tensor(3), "y": tensor(3)}), tmp_path)
    assert (graph.nodes[0].operator, graph.nodes[0].source) == ("other", "mine.wavelet")
    assert graph.remarks == ("priced by their bytes, as nothing else is known of them: 1 mine.wavelet",)


def test_files_that_are_no_export_are_refused_in_a_sentence(tmp_path: Path) -> None:
    cut = ["this is no file of torch.export.save, or one that was cut off (save or fetch it again)"]
    for text in ("{", "[" * 100_000, "[]", '{"schema_version": 8}'):
        assert refused(text, tmp_path) == cut
    assert refused({**linear(), "schema_version": {"major": 7}}, tmp_path)[0].startswith("the graph is of schema 7, and schema 8 is read")
    assert refused({"schema_version": {"major": 8}}, tmp_path)[0].startswith("the graph inside cannot be read: KeyError 'graph_module'")
    broken = linear()
    del broken["graph_module"]["graph"]["tensor_values"]["y"]["sizes"]
    assert refused(broken, tmp_path)[0].startswith("the graph inside cannot be read: KeyError 'sizes'")
    path = saved(linear(), tmp_path, "net/data/aotinductor/model.so")
    with pytest.raises(InstanceError, match="the archive holds no exported graph"):
        read_torch(path)
    whole = path.read_bytes()
    for data in (whole[: len(whole) // 2], b"", b"PK\x03\x04" * 20):
        path.write_bytes(data)
        with pytest.raises(InstanceError, match=r"this is no file of torch\.export\.save"):
            read_torch(path)
    with pytest.raises(InstanceError, match="there is no such file"):
        read_torch(tmp_path / "none.pt2")


def test_shared_weights_count_once(tmp_path: Path) -> None:
    tensors = {"x": tensor(7, kind=INT64), "w": tensor(10, 4), "e": tensor(7, 4), "y": tensor(7, 10)}
    nodes = [
        call("aten.embedding.default", "e", "table", weight="w", indices="x"),
        call("aten.linear.default", "y", "head", input="e", weight="w"),
    ]
    graph = imported(program(nodes, tensors, parameters={"w": "head.weight"}), tmp_path)
    assert (graph.parameters, graph.macs, shared_weights(graph)) == (40, 7 * 40, {"head.weight": (0, 1)})
    assert [(node.operator, node.inputs) for node in graph.nodes] == [("embedding", ("x",)), ("product", ("e",))]
