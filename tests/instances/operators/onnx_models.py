"""Small models of ONNX, built by its helper, for tests of the import."""

from collections.abc import Sequence
from typing import Any

import pytest

onnx = pytest.importorskip("onnx")
helper, FLOAT, INT64 = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def node(kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Any:  # noqa: ANN401
    return helper.make_node(kind, list(inputs), list(outputs), name=f"{kind} {outputs[0]}", **attributes)


def value(name: str, shape: Sequence[int | str | None] | None, kind: int = FLOAT) -> Any:  # noqa: ANN401
    return helper.make_tensor_value_info(name, kind, shape)


def weights(name: str, *shape: int) -> Any:  # noqa: ANN401
    """Weights without data, as a file has them whose data lie elsewhere."""
    tensor = onnx.TensorProto(name=name, data_type=FLOAT, dims=shape, data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="nowhere.bin")
    return tensor


def whole(name: str, *numbers: int) -> Any:  # noqa: ANN401
    return helper.make_tensor(name, INT64, [len(numbers)], numbers)


def model(
    nodes: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    initializers: Sequence[Any] = (),
    opset: int = 17,
    **more: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("own", 1)], **more)


def transformer(layers: int, width: int = 64, heads: int = 4, vocabulary: int = 100) -> Any:  # noqa: ANN401
    """A decoder as exporters write it: open batch and length, reshapes to shapes that are computed, and a head that shares the table."""
    nodes = [node("Gather", ["table", "ids"], ["t0"])]
    initializers = [
        weights("table", vocabulary, width),
        whole("0", 0),
        whole("1", 1),
        whole("split", heads, width // heads),
        whole("w", width),
    ]
    for number in range(layers):
        own, before = f"l{number}", f"t{number}"
        initializers += [weights(f"{own}.{name}", width, width) for name in "qkvo"]
        initializers += [weights(f"{own}.up", width, 4 * width), weights(f"{own}.down", 4 * width, width)]
        initializers += [weights(f"{own}.scale", width), weights(f"{own}.shift", width)]
        nodes += [
            node("LayerNormalization", [before, f"{own}.scale", f"{own}.shift"], [f"{own}.n"]),
            node("Shape", [f"{own}.n"], [f"{own}.s"]),
            node("Slice", [f"{own}.s", "0", "split_at"], [f"{own}.b"]),
            node("Concat", [f"{own}.b", "split"], [f"{own}.heads"], axis=0),
            node("Concat", [f"{own}.b", "w"], [f"{own}.whole"], axis=0),
        ]
        for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
            nodes += [
                node("MatMul", [f"{own}.n", f"{own}.{name}"], [f"{own}.p{name}"]),
                node("Reshape", [f"{own}.p{name}", f"{own}.heads"], [f"{own}.r{name}"]),
                node("Transpose", [f"{own}.r{name}"], [f"{own}.t{name}"], perm=order),
            ]
        nodes += [
            node("MatMul", [f"{own}.tq", f"{own}.tk"], [f"{own}.scores"]),
            node("Softmax", [f"{own}.scores"], [f"{own}.probabilities"]),
            node("MatMul", [f"{own}.probabilities", f"{own}.tv"], [f"{own}.mixed"]),
            node("Transpose", [f"{own}.mixed"], [f"{own}.back"], perm=[0, 2, 1, 3]),
            node("Reshape", [f"{own}.back", f"{own}.whole"], [f"{own}.joined"]),
            node("MatMul", [f"{own}.joined", f"{own}.o"], [f"{own}.out"]),
            node("Add", [f"{own}.out", before], [f"{own}.sum"]),
            node("MatMul", [f"{own}.sum", f"{own}.up"], [f"{own}.wide"]),
            node("Erf", [f"{own}.wide"], [f"{own}.bent"]),
            node("MatMul", [f"{own}.bent", f"{own}.down"], [f"{own}.narrow"]),
            node("Add", [f"{own}.narrow", f"{own}.sum"], [f"t{number + 1}"]),
        ]
    nodes += [node("Transpose", ["table"], ["turned"], perm=[1, 0]), node("MatMul", [f"t{layers}", "turned"], ["logits"])]
    initializers.append(whole("split_at", 2))
    ids = value("ids", ["batch", "length"], INT64)
    return model(nodes, [ids], [value("logits", ["batch", "length", vocabulary])], initializers)
