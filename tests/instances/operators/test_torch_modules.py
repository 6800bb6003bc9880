"""Modules of PyTorch as graphs, where torch is installed: the same networks as in ONNX, and modules without data."""

import importlib
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import crossopt  # noqa: E402
from crossopt.crossflow.operator_graph import OperatorGraph, graph_faults, shared_weights  # noqa: E402
from crossopt.instances.errors import RefusedError  # noqa: E402
from crossopt.instances.operators.onnx_model import read_onnx  # noqa: E402
from crossopt.instances.operators.torch_export import read_torch  # noqa: E402
from tests.instances.operators.onnx_models import model, node, transformer, value, weights  # noqa: E402

nn: Any = torch.nn
F: Any = importlib.import_module("torch.nn.functional")
pytestmark = pytest.mark.thorough


class Decoder(nn.Module):  # type: ignore[misc]
    """What `onnx_models.transformer` builds, layer by layer."""

    def __init__(self, layers: int, width: int = 64, heads: int = 4, vocabulary: int = 100) -> None:
        super().__init__()
        self.heads = heads
        self.table = nn.Embedding(vocabulary, width)
        sides = {"q": (width, width), "k": (width, width), "v": (width, width), "o": (width, width), "up": (width, 4 * width)}
        sides["down"] = (4 * width, width)
        parts = [{name: nn.Linear(*side, bias=False) for name, side in sides.items()} for _ in range(layers)]
        self.layers = nn.ModuleList(nn.ModuleDict({"norm": nn.LayerNorm(width), **own}) for own in parts)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids: Any) -> Any:  # noqa: ANN401
        values = self.table(ids)
        batch, length, width = values.shape
        for layer in self.layers:
            normed = layer["norm"](values)
            q, k, v = (layer[name](normed).view(batch, length, self.heads, -1).transpose(1, 2) for name in "qkv")
            mixed = (torch.softmax(q @ k.transpose(2, 3), -1) @ v).transpose(1, 2).reshape(batch, length, width)
            total = layer["o"](mixed) + values
            values = layer["down"](torch.erf(layer["up"](total))) + total
        return self.head(values)


def graph(module: Any, inputs: Any) -> OperatorGraph:  # noqa: ANN401
    found = crossopt.from_torch(module, inputs).graph
    assert not list(graph_faults(found))
    return found


def test_a_decoder_is_the_one_of_onnx(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(transformer(3).SerializeToString())
    ours, theirs = graph(Decoder(3), torch.zeros(2, 5, dtype=torch.int64)), read_onnx(path, {"batch": 2, "length": 5})
    assert (ours.macs, ours.parameters) == (theirs.macs, theirs.parameters)
    products = [[one.product for one in found.nodes if one.product] for found in (ours, theirs)]
    assert products[0] == products[1]
    assert [group.copies for group in ours.groups] == [3]
    assert list(shared_weights(ours).values()) == [(0, len(ours) - 1)]


def test_a_convolutional_network_is_the_one_of_onnx(tmp_path: Path) -> None:
    nodes = [
        node("Conv", ["x", "first"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"]),
        node("Relu", ["n"], ["r"]),
        node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p", "depthwise", "bias"], ["d"], group=8, dilations=[2, 2]),
        node("ConvTranspose", ["d", "up"], ["u"], strides=[2, 2]),
        node("GlobalAveragePool", ["u"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "dense", "offset"], ["y"], transB=1),
    ]
    given = [weights("first", 8, 3, 3, 3), weights("depthwise", 8, 1, 3, 3), weights("bias", 8), weights("up", 8, 6, 2, 2)]
    given += [weights(name, 8) for name in ("scale", "shift", "mean", "variance")] + [weights("dense", 5, 6), weights("offset", 5)]
    path = tmp_path / "model.onnx"
    path.write_bytes(model(nodes, [value("x", [4, 3, 32, 32])], [value("y", [4, 5])], given).SerializeToString())
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=8, dilation=2), nn.ConvTranspose2d(8, 6, 2, 2, bias=False), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(6, 5),
    ).eval()  # fmt: skip
    ours, theirs = graph(module, torch.zeros(4, 3, 32, 32)), read_onnx(path)
    assert (ours.macs, ours.parameters, ours.buffers) == (theirs.macs, theirs.parameters, theirs.buffers)
    for field in ("operator", "product", "window"):
        assert [getattr(one, field) for one in ours.nodes] == [getattr(one, field) for one in theirs.nodes]
    assert [one.name for one in ours.nodes][:3] == ["0", "1", "2.relu"]


def test_modules_of_shapes_alone_and_files_are_the_same_graph(tmp_path: Path) -> None:
    """Inputs may have data, a file holds weights that are not read, and an open axis is given another length."""
    with torch.device("meta"):
        empty = Decoder(1)
    ids = torch.zeros(2, 5, dtype=torch.int64)
    assert graph(empty, {"ids": ids}) == graph(Decoder(1), (ids,))
    batch = torch.export.Dim("batch", min=2, max=64)
    exported = torch.export.export(Decoder(1), (ids,), dynamic_shapes={"ids": {0: batch}})
    exported.example_inputs = None
    torch.export.save(exported, tmp_path / "Decoder.pt2")
    assert read_torch(tmp_path / "Decoder.pt2", {"ids.0": 8}).macs == graph(Decoder(1), ids.new_zeros(8, 5)).macs


def test_recurrent_layers_are_operators_of_their_own() -> None:
    class Recurrent(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(3, 5, 2, bidirectional=True, batch_first=True)

        def forward(self, x: Any) -> Any:  # noqa: ANN401
            return self.lstm(x)[0]

    found = graph(Recurrent(), torch.zeros(2, 7, 3))
    assert [one.product for one in found.nodes if one.operator == "recurrent"] == [(2, 8, 20, 14), (2, 15, 20, 14)]
    assert found.parameters == sum(weight.numel() for weight in Recurrent().parameters())


def test_what_torch_cannot_export_is_refused_in_a_sentence() -> None:
    class Branch(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:  # noqa: ANN401
            return x if x.sum() > 0 else -x

    with pytest.raises(
        RefusedError, match=r"^torch.export refuses the module: .* \(make torch.export.export\(module, inputs\) work first\)$"
    ):
        crossopt.from_torch(Branch(), torch.zeros(3))


def test_a_network_prints_and_saves_itself(tmp_path: Path) -> None:
    network = crossopt.from_torch(nn.Linear(6, 5), torch.zeros(2, 6), "dense")
    assert str(network).startswith("dense   1 operators\n")
    assert (network.macs, network.parameters) == (60, 35)
    assert crossopt.Network(network.graph).save(tmp_path / "dense.json").read_text(encoding="utf-8").startswith('{"graph":"operators"')
