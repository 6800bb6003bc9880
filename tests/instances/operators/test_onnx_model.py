"""Models of ONNX as graphs: counts of published networks, open axes, computed shapes, shared weights, and what is refused in a sentence."""

import json
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pytest

from crossopt.crossflow.operator_graph import OperatorGraph, graph_faults, shared_weights
from crossopt.instances.errors import InstanceError
from crossopt.instances.operators.graph_file import graph_in, graph_text
from crossopt.instances.operators.onnx_model import named_copy, read_onnx
from tests.instances.operators.onnx_models import INT64, helper, model, node, onnx, transformer, value, weights, whole
from tests.paths import reference

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"


def imported(made: Any, tmp_path: Path, **axes: int) -> OperatorGraph:  # noqa: ANN401
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    graph = read_onnx(path, axes)
    assert not list(graph_faults(graph))
    return graph


def refused(made: Any, tmp_path: Path, **axes: int) -> list[str]:  # noqa: ANN401
    path = tmp_path / "model.onnx"
    path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    with pytest.raises(InstanceError) as error:
        read_onnx(path, axes)
    assert str(error.value).endswith("nothing imported")
    return [fault.message for fault in error.value.faults]


@pytest.mark.data
@pytest.mark.parametrize("name", sorted(path.name for path in LIGHT.glob("light_*.onnx")))
def test_published_networks_have_their_counts(name: str) -> None:
    expected = json.loads(reference("layers/onnx_light_expected.json").read_text(encoding="utf-8"))["files"][name]
    graph = read_onnx(LIGHT / name)
    assert (graph.macs, graph.parameters, graph.buffers) == (expected["macs"], expected["parameters"], expected["buffers"])
    convolutions = [one for one in graph.nodes if one.operator == "convolution" and one.product]
    assert len(convolutions) == expected["convolutions"]
    assert sum(one.macs for one in convolutions) == expected["macs_convolutions"]
    assert sum(one.product[3] > 1 for one in convolutions if one.product) == expected["convolutions_grouped"]
    assert len(graph) == expected["nodes"] - expected["nodes_constant"] - expected["operators"].get("Unsqueeze", 0) - (
        name == "light_inception_v1.onnx"
    )
    assert (graph.inputs, graph.tensors[graph.inputs[0]]) == ((expected["input"][0],), tuple(expected["input"][1]))


@pytest.mark.parametrize("name", sorted(path.name for path in LIGHT.glob("light_*.onnx")))
def test_a_longer_batch_multiplies_the_work_and_no_weights(name: str) -> None:
    """The first axis of every activation, also behind reshapes to fixed sizes."""
    one = read_onnx(LIGHT / name)
    many = read_onnx(LIGHT / name, {"batch": 32})
    assert (many.macs, many.parameters, len(many)) == (32 * one.macs, one.parameters, len(one))
    assert many.tensors == {tensor: (32 * shape[0], *shape[1:]) for tensor, shape in one.tensors.items()}
    assert many.axes == ((f"{one.inputs[0]}.0", 32),)
    follow = sum(node.source == "Reshape" for node in one.nodes)
    assert [remark.split()[0] for remark in many.remarks] == [str(follow)] * (follow > 0)


def pinned(*shapes: tuple[int, ...]) -> Any:  # noqa: ANN401
    """A product of 1 x 4 x 8 values with weights, and reshapes to fixed sizes one after the other."""
    names = ["x", "q", *(f"r{number}" for number in range(len(shapes)))]
    nodes = [node("MatMul", ["x", "w"], ["q"])]
    nodes += [node("Reshape", [names[place + 1], f"s{place}"], [names[place + 2]]) for place in range(len(shapes))]
    sizes = [whole(f"s{place}", *shape) for place, shape in enumerate(shapes)]
    return model(nodes, [value("x", [1, 4, 8])], [value(names[-1], None)], [weights("w", 8, 8), *sizes])


@pytest.mark.parametrize(
    ("axis", "fixed", "shapes"),
    [
        ("batch", [(1, 4, 2, 4), (1, 32)], [(3, 4, 2, 4), (3, 32)]),
        ("batch", [(1, 4, 2, 4), (1, -1)], [(3, 4, 2, 4), (3, 32)]),
        ("x.0", [(2, 2, 8), (4, 8)], [(6, 2, 8), (12, 8)]),
        ("x.1", [(1, 4, 2, 4), (4, 8)], [(1, 3, 2, 4), (3, 8)]),
    ],
)
def test_reshapes_to_fixed_sizes_follow_the_axis_that_is_set(
    tmp_path: Path, axis: str, fixed: list[tuple[int, ...]], shapes: list[tuple[int, ...]]
) -> None:
    graph = imported(pinned(*fixed), tmp_path, **{axis: 3})
    assert [graph.tensors[f"r{number}"] for number in range(2)] == shapes


def test_a_reshape_that_mixes_the_axis_with_others_is_refused(tmp_path: Path) -> None:
    made = pinned((1, 2, 16))
    [told] = refused(made, tmp_path, **{"x.1": 6})
    assert told.startswith(
        "the operator Reshape r0 takes and gives 1 x 6 x 8 and 1 x 2 x 16, which have other numbers of values (leave fixed"
    )


def test_lengths_that_do_not_fit_the_weights_are_refused(tmp_path: Path) -> None:
    nodes = [node("Flatten", ["x"], ["f"]), node("Gemm", ["f", "w"], ["y"])]
    made = model(nodes, [value("x", [1, 3, 4])], [value("y", [1, 5])], [weights("w", 12, 5)])
    assert imported(made, tmp_path, batch=7).nodes[1].product == (7, 12, 5, 1)
    [told] = refused(made, tmp_path, **{"x.2": 5})
    assert told.startswith(
        "the operator Gemm y takes 1 x 15, 12 x 5, which do not fit each other (leave fixed axes out of --set, or export"
    )


def test_a_decoder_with_open_axes_and_computed_shapes(tmp_path: Path) -> None:
    """Two layers: 12 w^2 weights and as many multiply-adds a token, those of attention, and the head on the table that it shares."""
    graph = imported(transformer(2), tmp_path, batch=3, length=5)
    attention = 2 * 2 * 3 * 5 * 5 * 64
    assert graph.macs == 2 * 12 * 64 * 64 * 15 + attention + 15 * 64 * 100
    assert graph.parameters == 2 * (12 * 64 * 64 + 2 * 64) + 100 * 64
    assert shared_weights(graph) == {"table": (0, len(graph) - 1)}
    assert [(one.length, one.copies) for one in graph.groups] == [(21, 2)]
    assert graph.axes == (("batch", 3), ("length", 5))
    assert graph_in(graph_text(graph), "graph") == graph


def test_shapes_that_onnx_leaves_open_are_inferred_operator_by_operator(tmp_path: Path) -> None:
    """The length of the last axis is divided, which its inference of whole models does not carry on."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "1"], ["last"], axis=0),
        node("Div", ["last", "2"], ["half"]),
        node("Concat", ["-1", "2", "half"], ["to"], axis=0),
        node("Reshape", ["x", "to"], ["y"]),
        node("Relu", ["y"], ["z"]),
    ]
    given = [whole("1", 1), whole("2", 2), whole("-1", -1)]
    graph = imported(model(nodes, [value("x", ["n", "m"])], [value("z", None)], given), tmp_path, n=6, m=10)
    assert graph.tensors["z"] == (6, 2, 5)
    assert [one.operator for one in graph.nodes] == ["view", "activation"]


def test_kinds_of_products(tmp_path: Path) -> None:
    nodes = [
        node("ConvTranspose", ["x", "up"], ["y"], strides=[2, 2], group=2),
        node("Flatten", ["y"], ["flat"]),
        node("Gemm", ["flat", "dense", "bias"], ["g"], transB=1),
        node("Einsum", ["g", "square"], ["e"], equation="nk,kj->nj"),
    ]
    given = [weights("up", 4, 3, 2, 2), weights("dense", 7, 6 * 16 * 16), weights("bias", 7), weights("square", 7, 9)]
    graph = imported(model(nodes, [value("x", [1, 4, 8, 8])], [value("e", [1, 9])], given), tmp_path)
    assert [one.product for one in graph.nodes] == [(64, 2, 12, 2), None, (1, 1536, 7, 1), (1, 7, 9, 1)]
    lstm = node("LSTM", ["x", "w", "r"], ["", "h"], hidden_size=5)
    made = model([lstm], [value("x", [7, 2, 3])], [value("h", [1, 2, 5])], [weights("w", 1, 20, 3), weights("r", 1, 20, 5)])
    assert imported(made, tmp_path).nodes[0].product == (2, 8, 20, 7)


def test_local_functions_are_opened(tmp_path: Path) -> None:
    body = [helper.make_node("MatMul", ["a", "b"], ["m"]), helper.make_node("Relu", ["m"], ["c"])]
    function = helper.make_function("own", "Dense", ["a", "b"], ["c"], body, [helper.make_opsetid("", 17)])
    use = helper.make_node("Dense", ["x", "w"], ["y"], domain="own")
    made = model([use], [value("x", [2, 3])], [value("y", [2, 4])], [weights("w", 3, 4)], functions=[function])
    assert [one.operator for one in imported(made, tmp_path).nodes] == ["product", "activation"]


def test_unknown_operators_are_priced_by_bytes_and_named(tmp_path: Path) -> None:
    use = helper.make_node("Wavelet", ["x"], ["y"], domain="own")
    made = model([use, node("Relu", ["y"], ["z"])], [value("x", [2, 3])], [value("z", [2, 3])])
    made.graph.value_info.append(value("y", [2, 3]))
    graph = imported(made, tmp_path)
    assert (graph.nodes[0].operator, graph.nodes[0].source) == ("other", "own.Wavelet")
    assert graph.remarks == ("priced by their bytes, as nothing else is known of them: 1 own.Wavelet",)
    del made.graph.value_info[:]
    [told] = refused(made, tmp_path)
    assert told.startswith("the shape of 'y' at the operator Wavelet of own is not known: it depends on data, or is not stated (save")


def test_what_depends_on_data_is_refused(tmp_path: Path) -> None:
    made = model([node("NonZero", ["x"], ["y"])], [value("x", [2, 3])], [value("y", None, INT64)])
    [told] = refused(made, tmp_path)
    assert told.startswith("the shape of 'y' at the operator NonZero is not known")


def test_open_axes_need_lengths(tmp_path: Path) -> None:
    relu = node("Relu", ["x"], ["y"])
    made = model([relu], [value("x", ["batch", None, 3])], [value("y", None)])
    assert refused(made, tmp_path, bach=1) == [
        "the axis 'batch' of input 'x' is open (give its length, such as --set batch=1)",
        "the axis 'x.1' of input 'x' is open (give its length, such as --set x.1=1)",
        "there is no axis 'bach' (open axes: batch, x.1)",
    ]
    assert imported(made, tmp_path, **{"batch": 4, "x.1": 2}).tensors["y"] == (4, 2, 3)


def test_files_that_are_no_model_are_refused_in_a_sentence(tmp_path: Path) -> None:
    whole_model = transformer(1).SerializeToString()
    cut = "this is no model of ONNX, or one that was cut off (export or fetch it again)"
    assert refused(whole_model[: len(whole_model) // 2], tmp_path) == [cut]
    assert refused(b"\x00\xff" * 50, tmp_path) == [cut]
    assert refused(b"", tmp_path) == ["the file is empty (export the model again)"]
    with pytest.raises(InstanceError, match="there is no such file"):
        read_onnx(tmp_path / "none.onnx")
    with pytest.raises(InstanceError, match="this is a directory"):
        read_onnx(tmp_path)


def test_broken_names_and_attributes_are_refused_in_a_sentence(tmp_path: Path) -> None:
    whole_model = (LIGHT / "light_squeezenet.onnx").read_bytes()
    for name in (b"MaxPool", b"kernel_shape", b"Concat"):
        broken = whole_model.replace(name, name[:1] + b"\xff" + name[2:])
        assert ["is not UTF-8" in message for message in refused(broken, tmp_path)] == [True]
    unknown = whole_model.replace(b"kernel_shape", b"kernel_shap]")
    assert all("is not known" in message or "cannot be inferred" in message for message in refused(unknown, tmp_path))


def test_weights_of_no_type_count_by_their_shape(tmp_path: Path) -> None:
    made = model([node("MatMul", ["x", "w"], ["y"])], [value("x", [1, 2])], [value("y", None)], [whole("w", 1, 2)])
    made.graph.initializer[0].data_type = 0
    graph = imported(made, tmp_path)
    assert (graph.parameters, graph.tensors["y"]) == (2, (1,))


def test_an_opset_that_is_too_new_is_refused_with_both_remedies(tmp_path: Path) -> None:
    made = model([node("Relu", ["x"], ["y"])], [value("x", [1])], [value("y", [1])], opset=999)
    [told] = refused(made, tmp_path)
    known = onnx.defs.onnx_opset_version()
    assert told.startswith(f"the model is of opset 999, and onnx {onnx.__version__} knows opsets up to {known} (export with opset_version=")


def test_tensors_that_repeat_or_do_not_fit_are_refused(tmp_path: Path) -> None:
    """ONNX's own inference passes over them where the model states shapes."""
    x, y, again = [value("x", [1, 4])], [value("y", [1, 4])], "(export the model again)"
    two = [node("MatMul", ["x", "w"], ["y"]), node("MatMul", ["x", "v"], ["y"])]
    square, other = weights("w", 4, 4), weights("v", 4, 4)
    assert refused(model(two, x, y, [square, other]), tmp_path) == [f"the tensor 'y' is made, or given, twice {again}"]
    assert refused(model(two[:1], x, y, [square, square]), tmp_path) == [f"the tensor 'w' is made, or given, twice {again}"]
    assert refused(model(two[:1], x, y, [weights("w", -4, 4)]), tmp_path) == [f"the weights 'w' have a negative length {again}"]
    wrong = refused(model(two[:1], x, y, [weights("w", 5, 4)]), tmp_path)
    assert wrong == [f"the operator MatMul y takes 1 x 4 and 5 x 4, which do not fit each other {again}"]
    image, made = [value("x", [1, 3, 8, 8])], [value("y", [1, 4, 8, 8])]
    kernel = model([node("Conv", ["x", "w"], ["y"], group=1)], image, made, [weights("w", 4, 2, 1, 1)])
    assert refused(kernel, tmp_path) == [f"the operator Conv y takes 1 x 3 x 8 x 8 and 4 x 2 x 1 x 1, which do not fit each other {again}"]


def test_circles_are_refused_and_other_orders_are_sorted(tmp_path: Path) -> None:
    x, z = [value("x", [2])], [value("z", [2])]
    nodes = [node("Relu", ["y"], ["z"]), node("Abs", ["x"], ["y"])]
    assert [one.source for one in imported(model(nodes, x, z), tmp_path).nodes] == ["Abs", "Relu"]
    nodes = [node("Add", ["x", "z"], ["y"]), node("Relu", ["y"], ["z"])]
    assert refused(model(nodes, x, z), tmp_path) == ["the operators Add y, Relu z wait for each other in a circle (export the model again)"]


def test_five_thousand_operators_are_imported(tmp_path: Path) -> None:
    graph = imported(transformer(200), tmp_path, batch=1, length=16)
    assert len(graph) == 2 + 200 * 21
    assert prod(graph.tensors["logits"]) == 1600


def test_names_that_repeat_get_numbers_and_invisible_signs_go(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="same"), helper.make_node("Relu", ["a"], ["b\x1b"], name="same")]
    graph = imported(model(nodes, [value("x", [2])], [value("b\x1b", [2])]), tmp_path)
    assert [one.name for one in graph.nodes] == ["same", "same 2"]
    assert graph.nodes[1].outputs == ("b?",)


def test_a_copy_has_the_names_of_the_graph_and_is_the_same_network(tmp_path: Path) -> None:
    made = transformer(2)
    for number, own in enumerate(made.graph.node):
        own.name = "" if number % 2 else "same"
    made.ir_version = 3
    graph, path = imported(made, tmp_path, batch=2, length=8), tmp_path / "model.onnx"
    assert "products and convolutions have no name of their own in the model" in graph.remarks[-1]
    copy = onnx.load_model_from_string(named_copy(path, graph, tmp_path / "named.onnx"))
    assert {node.name for node in graph.nodes} <= {own.name for own in copy.graph.node}
    assert copy.ir_version == 4
    again = imported(copy, tmp_path, batch=2, length=8)
    assert not again.remarks
    assert again == replace(graph, remarks=())
    with pytest.raises(InstanceError, match="its weights lie in other files beside it"):
        named_copy(path, graph, tmp_path.parent / "named.onnx")
