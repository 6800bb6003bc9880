"""A graph of operators as a file: JSON that `crossopt import` writes of a network and questions name."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from crossopt.crossflow.operator_graph import OperatorGraph, graph_faults
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import OPERATORS, UNSEEN, reading_as, why_unreadable
from crossopt.instances.files.dataclass_json import from_file, to_file
from crossopt.instances.files.graphs import FaultList, read_json, text_of

HEAD: Final[Mapping[str, str | int]] = {"graph": "operators", "format": 1}
"""How such a file begins."""
_REMEDY = "`crossopt import model.onnx --out graph.json` writes one"
_REFUSAL = f"this is no graph of operators ({_REMEDY})"
_LARGEST = 64 << 20
"""Bytes that are read back."""

ONNX_NAMES: Final[Mapping[str, str]] = {
    "convolution": "Conv ConvInteger QLinearConv FusedConv DeformConv",
    "transposed convolution": "ConvTranspose",
    "product": "MatMul Gemm MatMulInteger QLinearMatMul FusedMatMul Einsum MatMulNBits",
    "recurrent": "LSTM GRU RNN",
    "attention": "Attention MultiHeadAttention GroupQueryAttention",
    "norm": "BatchNormalization LayerNormalization GroupNormalization InstanceNormalization RMSNormalization LpNormalization "
    "MeanVarianceNormalization SimplifiedLayerNormalization SkipLayerNormalization SkipSimplifiedLayerNormalization",
    "local norm": "LRN",
    "activation": "Relu LeakyRelu PRelu Elu Selu Celu ThresholdedRelu Sigmoid HardSigmoid Tanh Softplus Softsign Gelu FastGelu Mish "
    "HardSwish Swish Clip Exp Log Sqrt Erf Sin Cos Reciprocal Pow Abs Neg Floor Ceil Round Sign QuickGelu Tan Atan Shrink BiasGelu",
    "addition": "Add Sub Sum Equal Greater GreaterOrEqual Less LessOrEqual And Or Not Xor Where CumSum Mod IsNaN",
    "multiplication": "Mul Div Max Min Mean",
    "softmax": "Softmax LogSoftmax Hardmax",
    "reduction": "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare "
    "ArgMax ArgMin TopK",
    "pooling": "MaxPool AveragePool LpPool GlobalAveragePool GlobalMaxPool GlobalLpPool",
    "move": "Concat Transpose Slice Split Pad Resize Upsample Expand Tile Gather GatherElements GatherND ScatterElements ScatterND "
    "DepthToSpace SpaceToDepth Cast CastLike QuantizeLinear DequantizeLinear DynamicQuantizeLinear Trilu OneHot RotaryEmbedding "
    "ReverseSequence Range ConstantOfShape RandomNormalLike GridSample Compress",
    "view": "Reshape Flatten Squeeze Unsqueeze Identity Dropout",
}
ONNX_OPERATORS: Final[Mapping[str, str]] = {name: operator for operator, names in ONNX_NAMES.items() for name in names.split()}
"""What each operator of ONNX and of the domain com.microsoft is in a graph; all others are `other`."""


def is_operators(text: str) -> bool:
    """Whether a text begins as such a file does."""
    return "".join(text[:40].split()).startswith(f'{{"graph":"{HEAD["graph"]}"')


def graph_text(graph: OperatorGraph) -> str:
    """The file of a graph; a ValueError where it would be too large to be read."""
    text = json.dumps(to_file(HEAD, graph), separators=(",", ":"), allow_nan=False) + "\n"
    if len(text) > _LARGEST:
        raise ValueError(f"the graph has more than {_LARGEST >> 20} MiB, which nothing reads (import a part of the network)")
    return text


def graph_in(text: str, source: str) -> OperatorGraph:
    """The graph in a text; an InstanceError with every fault."""
    document: Any = read_json(text, source)
    faults = FaultList(source)
    try:
        graph = from_file(OperatorGraph, document, HEAD, _REFUSAL)
    except ValueError as error:
        faults.add("", str(error))
        faults.end()
        raise
    for path, message in graph_faults(graph):
        faults.add(path, message)
    faults.end()
    return graph


def read_graph(path: Path) -> OperatorGraph:
    """The graph in a file; an InstanceError in one sentence where it cannot be read."""
    try:
        text = text_of(path)
    except OSError as error:
        raise InstanceError(str(path), [Fault(1, 1, "", why_unreadable(error))]) from error
    with reading_as(path.name, text, OPERATORS.what, _REMEDY):
        return graph_in(text, str(path))


def refuse(path: Path, *messages: str) -> NoReturn:
    """Refuse to import a file, in one sentence for each fault."""
    raise InstanceError(str(path), [Fault(1, 1, "", message) for message in messages], "nothing imported")


def readable(name: str) -> str:
    """A name of another tool without characters that no text shows."""
    return UNSEEN.sub("?", name).replace("\n", " ").replace("\t", " ").encode("utf-8", "replace").decode("utf-8")


def unique_names(names: list[str]) -> list[str]:
    """The names, each repeated one with a number behind it."""
    taken, seen = set(names), Counter[str]()
    found = []
    for name in names:
        seen[name] += 1
        other = name
        while seen[name] > 1 and other in taken:
            other = f"{name} {seen[name]}"
            seen[name] += other in taken
        taken.add(other)
        found.append(other)
    return found
