"""The eight workloads of TBD (Zhu et al., IISWC 2018) as graphs of operators, from public shapes, for a batch of any size.

ResNet-50           He et al. 2015; in `image_networks`
Inception-v3        Szegedy et al. 2015, without the auxiliary classifier
Seq2Seq             tensorflow/nmt, standard_hparams/iwslt15.json: two layers of 512 each way, vocabularies of 7,709 and 17,191 words
Transformer         Vaswani et al. 2017, base model, the same vocabulary
Faster R-CNN        Ren et al. 2015, with ResNet-101: images of 600 x 1,000, 128 regions for training
Deep Speech 2       Amodei et al. 2015, nine layers: two convolutions and seven bidirectional recurrences of 1,760; 15 s of sound
WGAN                Gulrajani et al. 2017, gan_64x64.py: ResNets of generator and critic, 64 x 64
A3C                 Mnih et al. 2016: two convolutions and a layer of 256, frames of 84 x 84
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crossopt.crossflow.operator_graph import OperatorGraph, Shape, Weights, convolution_sides, recurrent_sides
from tests.instances.layers.image_networks import Builder, bottleneck, resnet50


class Network(Builder):
    """Also kernels of two extents, branches, recurrences and attention."""

    def __init__(self, shape: Shape, name: str = "image") -> None:
        super().__init__(1, 1)
        self.tensors = {name: shape}
        self.entering = [name]
        self.here = name

    def enter(self, name: str, shape: Shape) -> str:
        self.tensors[name] = shape
        self.entering.append(name)
        self.here = name
        return name

    def kernel(
        self, name: str, out: int, high: int, wide: int, stride: tuple[int, int] = (1, 1), pad: bool = True, norm: bool = True
    ) -> str:
        """A convolution with a norm and ReLU."""
        batch, channels, *extents = self.tensors[self.here]
        edges = (high // 2, wide // 2) if pad else (0, 0)
        sizes = [
            (extent + 2 * edge - size) // step + 1 for extent, edge, size, step in zip(extents, edges, (high, wide), stride, strict=True)
        ]
        shape, weights = (batch, out, *sizes), (out, channels, high, wide)
        self.weights[f"{name}.w"] = Weights(weights)
        self.add(name, "convolution", shape, weights=(f"{name}.w",), product=convolution_sides(shape, weights, 1), window=(high, wide))
        if norm:
            self.weights[f"{name}.n"] = Weights((2, out))
            self.add(f"{name}.norm", "norm", shape, weights=(f"{name}.n",))
        return self.relu(f"{name}.relu")

    def joined(self, name: str, branches: Sequence[str]) -> str:
        shapes = [self.tensors[branch] for branch in branches]
        return self.add(name, "move", (shapes[0][0], sum(shape[1] for shape in shapes), *shapes[0][2:]), branches)

    def same_pool(self, name: str, kernel: int = 3) -> str:
        return self.add(name, "pooling", self.tensors[self.here], window=(kernel, kernel))

    def mean(self, name: str) -> str:
        batch, channels, *window = self.tensors[self.here]
        return self.add(name, "pooling", (batch, channels, 1, 1), window=tuple(window))

    def embedded(self, name: str, words: int, width: int) -> str:
        self.weights[f"{name}.w"] = Weights((words, width))
        return self.add(name, "embedding", (*self.tensors[self.here], width), weights=(f"{name}.w",))

    def recurrent(self, name: str, hidden: int, directions: int, gates: int) -> str:
        """On (time, batch, width)."""
        taken = self.tensors[self.here]
        weights, again = (directions, gates * hidden, taken[2]), (directions, gates * hidden, hidden)
        self.weights |= {f"{name}.w": Weights(weights), f"{name}.r": Weights(again), f"{name}.b": Weights((directions, 2 * gates * hidden))}
        sides = recurrent_sides(taken, weights, again, gates)
        names = (f"{name}.w", f"{name}.r", f"{name}.b")
        return self.add(name, "recurrent", (taken[0], taken[1], directions * hidden), weights=names, product=sides)

    def linear(self, name: str, out: int) -> str:
        *rows, width = self.tensors[self.here]
        count = 1
        for extent in rows:
            count *= extent
        self.weights[f"{name}.w"] = Weights((width, out))
        return self.add(name, "product", (*rows, out), weights=(f"{name}.w",), product=(count, width, out, 1))

    def normed(self, name: str) -> str:
        self.weights[f"{name}.n"] = Weights((2, self.tensors[self.here][-1]))
        return self.add(name, "norm", self.tensors[self.here], weights=(f"{name}.n",))

    def attention(self, name: str, heads: int, memory: str | None = None) -> str:
        """Scores written out, as in 2018; added to what was there."""
        before = self.here
        batch, length, width = self.tensors[before]
        keys = self.tensors[memory or before][1]
        self.normed(f"{name}.norm")
        normed = self.here
        query = self.linear(f"{name}.q", width)
        self.here = memory or normed
        key = self.linear(f"{name}.k", width)
        self.here = memory or normed
        value = self.linear(f"{name}.v", width)
        sides = (length, width // heads, keys, batch * heads)
        self.add(f"{name}.scores", "product", (batch, heads, length, keys), (query, key), product=sides)
        scores = self.add(f"{name}.softmax", "softmax", (batch, heads, length, keys))
        self.add(f"{name}.mixed", "product", (batch, length, width), (scores, value), product=(length, keys, width // heads, batch * heads))
        out = self.linear(f"{name}.out", width)
        return self.add(f"{name}.sum", "addition", (batch, length, width), (before, out))

    def feed_forward(self, name: str, inner: int) -> str:
        before, shape = self.here, self.tensors[self.here]
        self.normed(f"{name}.norm")
        self.linear(f"{name}.up", inner)
        self.relu(f"{name}.relu")
        out = self.linear(f"{name}.down", shape[-1])
        return self.add(f"{name}.sum", "addition", shape, (before, out))

    def built(self, name: str) -> OperatorGraph:
        return OperatorGraph(name, tuple(self.entering), (self.here,), self.tensors, self.weights, tuple(self.nodes))


def inception_v3(batch: int) -> OperatorGraph:
    net = Network((batch, 3, 299, 299))
    for number, (out, size, stride, pad) in enumerate(((32, 3, 2, False), (32, 3, 1, False), (64, 3, 1, True)), 1):
        net.kernel(f"stem{number}", out, size, size, (stride, stride), pad)
    net.pool("stem.pool", 3, 2)
    net.kernel("stem4", 80, 1, 1)
    net.kernel("stem5", 192, 3, 3, pad=False)
    net.pool("stem.pool2", 3, 2)
    for number, pooled in enumerate((32, 64, 64)):
        _branches(net, f"a{number}", (("64 1 1",), ("48 1 1", "64 5 5"), ("64 1 1", "96 3 3", "96 3 3"), ("mean", f"{pooled} 1 1")))
    _branches(net, "b", (("384 3 3 2",), ("64 1 1", "96 3 3", "96 3 3 2"), ("pool",)))
    for number, narrow in enumerate((128, 160, 160, 192)):
        long = (f"{narrow} 1 1", f"{narrow} 7 1", f"{narrow} 1 7", f"{narrow} 7 1", "192 1 7")
        _branches(net, f"c{number}", (("192 1 1",), (f"{narrow} 1 1", f"{narrow} 1 7", "192 7 1"), long, ("mean", "192 1 1")))
    _branches(net, "d", (("192 1 1", "320 3 3 2"), ("192 1 1", "192 1 7", "192 7 1", "192 3 3 2"), ("pool",)))
    for number in range(2):
        _last_block(net, f"e{number}")
    net.mean("mean")
    net.dense("fc", 1000)
    return net.built("inception-v3")


def _branches(net: Network, name: str, branches: Sequence[Sequence[str]]) -> None:
    before, ends = net.here, list[str]()
    for place, steps in enumerate(branches):
        net.here = before
        for number, step in enumerate(steps):
            own = f"{name}.{place}.{number}"
            if step == "mean":
                net.same_pool(own)
            elif step == "pool":
                net.pool(own, 3, 2)
            else:
                out, high, wide, *stride = map(int, step.split())
                net.kernel(own, out, high, wide, (stride[0], stride[0]) if stride else (1, 1), pad=not stride)
        ends.append(net.here)
    net.joined(name, ends)


def _last_block(net: Network, name: str) -> None:
    before = net.here
    ends = [net.kernel(f"{name}.one", 320, 1, 1)]
    for own, steps in (("three", ((384, 1),)), ("double", ((448, 1), (384, 3)))):
        net.here = before
        for number, (out, size) in enumerate(steps):
            net.kernel(f"{name}.{own}{number}", out, size, size)
        middle = net.here
        for high, wide in ((1, 3), (3, 1)):
            net.here = middle
            ends.append(net.kernel(f"{name}.{own}.{high}x{wide}", 384, high, wide))
    net.here = before
    net.same_pool(f"{name}.mean")
    ends.append(net.kernel(f"{name}.pooled", 192, 1, 1))
    net.joined(name, ends)


def seq2seq(batch: int, length: int = 25) -> OperatorGraph:
    net, units = Network((length, batch), "source"), 512
    net.embedded("source.words", 7709, units)
    net.recurrent("encoder", units // 2, 2, 4)
    memory = net.recurrent("encoder2", units, 1, 4)
    net.enter("target", (length, batch))
    net.embedded("target.words", 17191, units)
    net.recurrent("decoder", units, 1, 4)
    state = net.recurrent("decoder2", units, 1, 4)
    net.add("scores", "product", (batch, length, length), (state, memory), product=(length, units, length, batch))
    scores = net.add("softmax", "softmax", (batch, length, length))
    context = net.add("context", "product", (length, batch, units), (scores, memory), product=(length, length, units, batch))
    net.add("joined", "move", (length, batch, 2 * units), (context, state))
    net.linear("attended", units)
    net.relu("tanh")
    net.linear("words", 17191)
    net.add("loss", "softmax", net.tensors["words"])
    return net.built("seq2seq")


def transformer(tokens: int, length: int = 32) -> OperatorGraph:
    batch, width, heads, words = max(tokens // length, 1), 512, 8, 17191
    net = Network((batch, length), "source")
    net.embedded("source.words", words, width)
    for layer in range(6):
        net.attention(f"encoder{layer}", heads)
        net.feed_forward(f"encoder{layer}.feed", 2048)
    memory = net.normed("encoder.norm")
    net.enter("target", (batch, length))
    net.embedded("target.words", words, width)
    for layer in range(6):
        net.attention(f"decoder{layer}", heads)
        net.attention(f"decoder{layer}.cross", heads, memory)
        net.feed_forward(f"decoder{layer}.feed", 2048)
    net.normed("decoder.norm")
    net.linear("words", words)
    net.add("loss", "softmax", net.tensors["words"])
    return net.built("transformer")


def faster_rcnn(batch: int, regions: int = 128) -> OperatorGraph:
    net = Network((batch, 3, 600, 1000))
    net.kernel("stem", 64, 7, 7, (2, 2))
    net.pool("stem.pool", 3, 2, 1)
    for stage, (blocks, middle) in enumerate(((3, 64), (4, 128), (23, 256)), 1):
        for block in range(1, blocks + 1):
            bottleneck(net, f"{stage}.{block}", middle, 2 if block == 1 and stage > 1 else 1, block == 1)
    features = net.here
    net.kernel("rpn", 512, 3, 3, norm=False)
    proposals = net.here
    for name, out in (("rpn.scores", 18), ("rpn.boxes", 36)):
        net.here = proposals
        net.conv(name, out, 1)
    net.add("regions", "move", (batch * regions, 1024, 14, 14), (features,))
    for block in range(1, 4):
        bottleneck(net, f"4.{block}", 512, 2 if block == 1 else 1, block == 1)
    net.mean("mean")
    pooled = net.here
    net.dense("classes", 21)
    net.here = pooled
    net.dense("boxes", 84)
    return net.built("faster-rcnn")


def deep_speech_2(batch: int, frames: int = 1500) -> OperatorGraph:
    net = Network((batch, 1, 161, frames), "spectrogram")
    net.kernel("conv1", 32, 41, 11, (2, 2))
    net.kernel("conv2", 32, 21, 11, (2, 1))
    batch, channels, high, length = net.tensors[net.here]
    net.add("steps", "move", (length, batch, channels * high))
    for layer in range(7):
        net.normed(f"rnn{layer}.norm")
        net.recurrent(f"rnn{layer}", 1760, 2, 1)
        net.add(f"rnn{layer}.sum", "reduction", (length, batch, 1760))
    net.linear("letters", 29)
    net.add("loss", "softmax", net.tensors["letters"])
    return net.built("deep-speech-2")


def wgan(batch: int, width: int = 64) -> OperatorGraph:
    """Generator, and critic of what it makes."""
    net = Network((batch, 128), "noise")
    net.linear("seed", 4 * 4 * 8 * width)
    net.add("seed.image", "view", (batch, 8 * width, 4, 4))
    for number, (out, size) in enumerate(((8, 8), (4, 16), (2, 32), (1, 64))):
        _residual(net, f"generator{number}", out * width, size, "norm")
    net.conv("colours", 3, 3)
    net.add("colours.tanh", "activation", net.tensors[net.here])
    net.conv("critic", width, 3)
    for number, (out, size) in enumerate(((2, 32), (4, 16), (8, 8), (8, 4))):
        _residual(net, f"critic{number}", out * width, size, "norm")
    net.dense("score", 1)
    return net.built("wgan")


def _residual(net: Network, name: str, out: int, size: int, norm: str) -> None:
    """Two convolutions and a shortcut; sizes change by copies or means of pixels."""
    before = net.here
    batch, channels, high, _ = net.tensors[before]

    def resized(own: str) -> None:
        shape = (batch, net.tensors[net.here][1], size, size)
        net.add(own, "pooling" if size < high else "move", shape, **({"window": (2, 2)} if size < high else {}))

    net.weights[f"{name}.n1"] = Weights((2, channels))
    net.add(f"{name}.norm1", norm, net.tensors[before], weights=(f"{name}.n1",))
    net.relu(f"{name}.relu1")
    if size > high:
        resized(f"{name}.up")
    net.conv(f"{name}.conv1", out, 3)
    net.weights[f"{name}.n2"] = Weights((2, out))
    net.add(f"{name}.norm2", norm, net.tensors[net.here], weights=(f"{name}.n2",))
    net.relu(f"{name}.relu2")
    main = net.conv(f"{name}.conv2", out, 3)
    if size < high:
        resized(f"{name}.down")
        main = net.here
    net.here = before
    resized(f"{name}.resized")
    side = net.conv(f"{name}.shortcut", out, 1)
    net.add(f"{name}.sum", "addition", net.tensors[main], (main, side))


def a3c(batch: int) -> OperatorGraph:
    net = Network((batch, 4, 84, 84), "frames")
    for number, (out, size, stride) in enumerate(((16, 8, 4), (32, 4, 2)), 1):
        net.conv(f"conv{number}", out, size, stride, 0)
        net.relu(f"relu{number}")
    net.dense("hidden", 256)
    hidden = net.relu("hidden.relu")
    net.dense("policy", 6)
    net.here = hidden
    net.dense("value", 1)
    return net.built("a3c")


@dataclass(frozen=True)
class Workload:
    """A workload with the batch of its row."""

    name: str
    make: Callable[[int], OperatorGraph]
    batch: int
    unit: str = "samples"


TBD = (
    Workload("ResNet-50", resnet50, 32),
    Workload("Inception-v3", inception_v3, 32),
    Workload("Seq2Seq", seq2seq, 128),
    Workload("Transformer", transformer, 2048, "tokens"),
    Workload("Faster R-CNN", faster_rcnn, 1),
    Workload("Deep Speech 2", deep_speech_2, 4),
    Workload("WGAN", wgan, 64),
    Workload("A3C", a3c, 128),
)
