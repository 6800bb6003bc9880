"""AlexNet, VGG-16 and ResNet-50 as graphs of operators, from the shapes of their papers, for a batch of any size."""

from collections.abc import Sequence

from crossopt.crossflow.operator_graph import Node, OperatorGraph, Shape, Weights, convolution_sides, repeated_blocks


class Builder:
    """A graph as it grows; `here` is the tensor that comes last."""

    def __init__(self, batch: int, size: int) -> None:
        self.tensors: dict[str, Shape] = {"image": (batch, 3, size, size)}
        self.weights: dict[str, Weights] = {}
        self.nodes: list[Node] = []
        self.here = "image"

    def add(self, name: str, operator: str, shape: Shape, inputs: Sequence[str] = (), **more: object) -> str:
        self.tensors[name] = shape
        self.nodes.append(Node(name, operator, tuple(inputs) or (self.here,), (name,), **more))  # type: ignore[arg-type]
        self.here = name
        return name

    def conv(self, name: str, out: int, kernel: int, stride: int = 1, padding: int | None = None, norm: bool = False) -> str:
        batch, channels, height, width = self.tensors[self.here]
        edge = kernel // 2 if padding is None else padding
        high, wide = ((extent + 2 * edge - kernel) // stride + 1 for extent in (height, width))
        shape, weights = (batch, out, high, wide), (out, channels, kernel, kernel)
        self.weights[f"{name}.w"] = Weights(weights)
        sides = convolution_sides(shape, weights, 1)
        self.add(name, "convolution", shape, weights=(f"{name}.w",), product=sides, window=(kernel, kernel), source="Conv")
        if norm:
            self.weights[f"{name}.n"] = Weights((2, out))
            self.add(f"{name}.norm", "norm", shape, weights=(f"{name}.n",), source="BatchNormalization")
        return self.here

    def relu(self, name: str) -> str:
        return self.add(name, "activation", self.tensors[self.here], source="Relu")

    def pool(self, name: str, kernel: int, stride: int, padding: int = 0) -> str:
        batch, channels, height, width = self.tensors[self.here]
        high, wide = ((extent + 2 * padding - kernel) // stride + 1 for extent in (height, width))
        return self.add(name, "pooling", (batch, channels, high, wide), window=(kernel, kernel), source="MaxPool")

    def dense(self, name: str, out: int) -> str:
        batch, *rest = self.tensors[self.here]
        values = 1
        for extent in rest:
            values *= extent
        if len(rest) > 1:
            self.add(f"{name}.flat", "view", (batch, values), source="Flatten")
        self.weights[f"{name}.w"] = Weights((values, out))
        return self.add(name, "product", (batch, out), weights=(f"{name}.w",), product=(batch, values, out, 1), source="Gemm")

    def graph(self, name: str) -> OperatorGraph:
        groups = repeated_blocks(self.nodes, self.tensors, self.weights)
        return OperatorGraph(name, ("image",), (self.here,), self.tensors, self.weights, tuple(self.nodes), groups)


def _classifier(net: Builder, sizes: Sequence[int]) -> None:
    for number, size in enumerate(sizes, 6):
        net.dense(f"fc{number}", size)
        if number < 5 + len(sizes):
            net.relu(f"fc{number}.relu")


def alexnet(batch: int) -> OperatorGraph:
    net = Builder(batch, 224)
    for number, (out, kernel, stride, padding) in enumerate(
        ((64, 11, 4, 2), (192, 5, 1, 2), (384, 3, 1, 1), (256, 3, 1, 1), (256, 3, 1, 1)), 1
    ):
        net.conv(f"conv{number}", out, kernel, stride, padding)
        net.relu(f"relu{number}")
        if number in (1, 2, 5):
            net.pool(f"pool{number}", 3, 2)
    _classifier(net, (4096, 4096, 1000))
    return net.graph("alexnet")


def vgg16(batch: int) -> OperatorGraph:
    net = Builder(batch, 224)
    for stage, (count, out) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)), 1):
        for number in range(1, count + 1):
            net.conv(f"conv{stage}.{number}", out, 3)
            net.relu(f"relu{stage}.{number}")
        net.pool(f"pool{stage}", 2, 2)
    _classifier(net, (4096, 4096, 1000))
    return net.graph("vgg16")


def bottleneck(net: Builder, own: str, middle: int, stride: int, first: bool) -> None:
    """A residual block of three convolutions; the first of a stage has one on its shortcut."""
    before = net.here
    net.conv(f"{own}.a", middle, 1, norm=True)
    net.relu(f"{own}.a.relu")
    net.conv(f"{own}.b", middle, 3, stride, norm=True)
    net.relu(f"{own}.b.relu")
    main = net.conv(f"{own}.c", 4 * middle, 1, norm=True)
    if first:
        net.here = before
        before = net.conv(f"{own}.shortcut", 4 * middle, 1, stride, norm=True)
    net.add(f"{own}.sum", "addition", net.tensors[main], (main, before), source="Add")
    net.relu(f"{own}.relu")


def resnet50(batch: int) -> OperatorGraph:
    net = Builder(batch, 224)
    net.conv("stem", 64, 7, 2, 3, norm=True)
    net.relu("stem.relu")
    net.pool("stem.pool", 3, 2, 1)
    for stage, (blocks, middle) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512)), 1):
        for block in range(1, blocks + 1):
            bottleneck(net, f"{stage}.{block}", middle, 2 if block == 1 and stage > 1 else 1, block == 1)
    batch, channels, *window = net.tensors[net.here]
    net.add("mean", "pooling", (batch, channels, 1, 1), window=tuple(window), source="GlobalAveragePool")
    net.dense("fc", 1000)
    return net.graph("resnet50")
