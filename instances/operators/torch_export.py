"""Networks of PyTorch as graphs of operators: the graph inside a file of `torch.export.save`, or a module that is exported first.

Such a file is an archive. Of it only the graph is read, which is JSON: no weights, nothing that is pickled, and torch need not be there.
A module is exported with fake tensors and saved in memory with weights that are shapes alone (`device="meta"`), so both ways are one.

Operators are those of ATen before decomposition, so that a linear layer or an attention stays one. What follows from weights alone is
folded: its takers have the weights that it was made of. Views cost nothing, as in PyTorch; a reshape or `contiguous` of a tensor whose
values do not lie in order is a copy. Open axes have the lengths of the example inputs, or those that are given (`x.0=32`).
"""

import ast
import io
import json
import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import IO, Any, Final

from crossopt.crossflow.operator_graph import (
    MOST_NODES,
    Node,
    OperatorGraph,
    Shape,
    Sides,
    Weights,
    convolution_sides,
    einsum_sides,
    product_sides,
    recurrent_sides,
    repeated_blocks,
    transposed_sides,
)
from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.files.careful import opened, why_unreadable
from crossopt.instances.operators.graph_file import readable, refuse, unique_names

_LARGEST = 256 << 20
"""Bytes of the JSON of a graph: about 200,000 operators."""
_SCHEMA = 8
"""The format of the graph, by the number that it states. Others name their parts otherwise."""
_WHOLE = frozenset((4, 5, 12))
"""Types of tensors that say shapes, axes and indices: int32, int64 and bool, by their numbers in the file."""
_INLINED = frozenset(("wrap_with_set_grad_enabled", "wrap_with_autocast", "wrap", "tag_activation_checkpoint", "invoke_subgraph"))
"""Calls of subgraphs that only change how gradients or formats are handled."""

ATEN_NAMES: Final[Mapping[str, str]] = {
    "convolution": "conv1d conv2d conv3d convolution _convolution cudnn_convolution mkldnn_convolution",
    "transposed convolution": "conv_transpose1d conv_transpose2d conv_transpose3d",
    "product": "linear matmul mm bmm addmm baddbmm mv addmv dot einsum _scaled_mm _int_mm _grouped_mm _weight_int8pack_mm "
    "_weight_int4pack_mm",
    "recurrent": "lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell",
    "attention": "scaled_dot_product_attention _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
    "_scaled_dot_product_cudnn_attention _scaled_dot_product_flash_attention_for_cpu",
    "norm": "batch_norm layer_norm group_norm instance_norm rms_norm native_batch_norm native_layer_norm native_group_norm "
    "cudnn_batch_norm _native_batch_norm_legit _native_batch_norm_legit_functional _native_batch_norm_legit_no_training "
    "_batch_norm_with_update _batch_norm_no_update _fused_rms_norm",
    "activation": "relu relu6 leaky_relu prelu _prelu_kernel rrelu elu selu celu gelu silu mish sigmoid hardsigmoid hardswish hardtanh "
    "hardshrink softshrink tanh log_sigmoid softplus threshold clamp clamp_min clamp_max clip exp exp2 expm1 log log2 log10 log1p sqrt "
    "rsqrt square reciprocal erf erfc erfinv sin cos tan asin acos atan sinh cosh abs neg negative sign sgn floor ceil round trunc frac "
    "pow float_power nan_to_num logit",
    "gate": "glu",
    "addition": "add sub rsub subtract eq ne lt le gt ge logical_and logical_or logical_not logical_xor bitwise_and bitwise_or "
    "bitwise_not bitwise_xor where masked_fill isnan isinf isfinite remainder fmod lerp cumsum atan2",
    "multiplication": "mul multiply div divide true_divide floor_divide maximum minimum fmax fmin addcmul addcdiv cumprod",
    "softmax": "softmax _softmax log_softmax _log_softmax _safe_softmax",
    "reduction": "sum mean amax amin max min prod any all norm linalg_vector_norm logsumexp var std var_mean std_mean argmax argmin topk "
    "sort argsort median count_nonzero",
    "pooling": "max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d "
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d "
    "_adaptive_avg_pool2d _adaptive_avg_pool3d",
    "embedding": "embedding embedding_bag",
    "move": "cat concat concatenate stack clone copy pad constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d "
    "replication_pad1d replication_pad2d replication_pad3d roll flip repeat repeat_interleave tile gather take take_along_dim index "
    "index_select _unsafe_index index_put index_copy index_add scatter scatter_add scatter_reduce select_scatter slice_scatter "
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact2d upsample_linear1d upsample_bilinear2d "
    "upsample_bicubic2d upsample_trilinear3d pixel_shuffle pixel_unshuffle channel_shuffle grid_sampler grid_sampler_2d im2col col2im "
    "tril triu one_hot rand randn randint rand_like randn_like bernoulli quantize_per_tensor dequantize",
    "view": "view _unsafe_view reshape flatten unflatten contiguous squeeze unsqueeze permute transpose t numpy_T movedim swapaxes "
    "swapdims expand expand_as broadcast_to broadcast_tensors meshgrid slice select narrow split split_with_sizes chunk unsafe_chunk "
    "unsafe_split tensor_split unbind detach alias dropout native_dropout alpha_dropout feature_dropout to _to_copy type_as lift_fresh "
    "lift_fresh_copy view_as reshape_as view_as_real view_as_complex as_strided unfold diagonal real imag conj resolve_conj",
}
ATEN_OPERATORS: Final[Mapping[str, str]] = {name: operator for operator, names in ATEN_NAMES.items() for name in names.split()}
"""What each operator of ATen is in a graph; all others are `other`."""
_FILLING = frozenset(
    [
        "arange",
        "linspace",
        "zeros",
        "ones",
        "full",
        "empty",
        "eye",
        "scalar_tensor",
        "zeros_like",
        "ones_like",
        "full_like",
        "empty_like",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_empty",
        "tril_indices",
        "triu_indices",
    ]
)
"""Operators whose result needs no data but a shape."""
_RANDOM = frozenset(("rand", "randn", "randint", "bernoulli"))
_MAY_COPY = frozenset(("reshape", "flatten", "contiguous", "reshape_as"))
_CASTS = frozenset(("to", "_to_copy", "type_as"))
_FIRST: Final[Mapping[str, tuple[str, str]]] = {
    "addmm": ("mat1", "mat2"),
    "addmv": ("mat", "vec"),
    "baddbmm": ("batch1", "batch2"),
    "mv": ("self", "vec"),
    "dot": ("self", "tensor"),
    "matmul": ("self", "other"),
    "linear": ("input", "weight"),
}
"""Names of the operands of a product, where they are not `self` and `mat2`."""


# Modules.


def export_module(module: Any, inputs: Any) -> io.BytesIO:  # noqa: ANN401 - of torch, which may be missing
    """The file of an exported module, without weights; a RefusedError where torch cannot export it.

    Inputs are a tensor, several in order, or a mapping by name. Of a module on the device `meta` those without data are taken.
    """
    torch = import_module("torch")
    shapes_alone = isinstance(module, torch.nn.Module) and {value.device.type for value in module.parameters()} == {"meta"}

    def move(value: Any) -> Any:  # noqa: ANN401
        return _without_data(torch, value) if shapes_alone else value

    by_name = {name: move(value) for name, value in inputs.items()} if isinstance(inputs, Mapping) else None
    in_order = () if by_name is not None else tuple(map(move, (inputs,) if isinstance(inputs, torch.Tensor) else inputs))
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of its own parts
        try:
            exported = torch.export.export(module, in_order, by_name)
            for values in (exported.state_dict, exported.constants):
                values |= {name: _without_data(torch, value) for name, value in values.items()}
            exported.example_inputs = None
            torch.export.save(exported, file)
        except Exception as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            remedy = "make torch.export.export(module, inputs) work first"
            raise RefusedError(f"torch.export refuses the module: {readable(lines[0])[:200]} ({remedy})") from error
    file.seek(0)
    return file


def _without_data(torch: Any, tensor: Any) -> Any:  # noqa: ANN401
    """A tensor without data in the place of one, which stays a parameter if it is one; anything else as it is."""
    if not isinstance(tensor, torch.Tensor):
        return tensor
    empty = torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")
    return torch.nn.Parameter(empty, requires_grad=tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else empty


def graph_of_module(module: Any, inputs: Any, name: str | None = None) -> OperatorGraph:  # noqa: ANN401
    """The graph of a module at these inputs."""
    return _graph_in(export_module(module, inputs), Path(name or type(module).__name__), {})


# Files.


def read_torch(path: Path, axes: Mapping[str, int] | None = None) -> OperatorGraph:
    """The graph of a file of `torch.export.save`; an InstanceError in a sentence for each fault."""
    try:
        with opened(path, "name a file of torch.export.save") as file:
            return _graph_in(file, path, axes or {})
    except OSError as error:
        refuse(path, why_unreadable(error))


def _graph_in(file: IO[bytes], path: Path, axes: Mapping[str, int]) -> OperatorGraph:
    document = _document(file, path)
    try:
        return _Import(document, path, axes).graph()
    except (InstanceError, RefusedError):
        raise
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, RecursionError) as error:
        refuse(path, f"the graph inside cannot be read: {type(error).__name__} {readable(str(error))[:100]} (export and save it again)")


def _document(file: IO[bytes], path: Path) -> dict[str, Any]:
    """The JSON of the graph in an archive."""
    try:
        with zipfile.ZipFile(file) as archive:
            graphs = [info for info in archive.infolist() if re.search(r"(^|/)models/[^/]+\.json$", info.filename)]
            graphs += [info for info in archive.infolist() if Path(info.filename).name == "serialized_exported_program.json"]
            if not graphs:
                refuse(
                    path, "the archive holds no exported graph (write it by torch.export.save(torch.export.export(module, inputs), file))"
                )
            if len(graphs) > 1:
                refuse(path, f"the archive holds {len(graphs)} graphs (save each one by itself)")
            if graphs[0].file_size > _LARGEST:
                refuse(path, f"its graph has more than {_LARGEST >> 20} MiB (export a part of the network)")
            with archive.open(graphs[0]) as member:
                text = member.read(_LARGEST + 1)
        document = json.loads(text)
        major = document["schema_version"]["major"]
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, InstanceError):
            raise
        refuse(path, "this is no file of torch.export.save, or one that was cut off (save or fetch it again)")
    if major != _SCHEMA:
        refuse(
            path, f"the graph is of schema {str(major)[:20]}, and schema {_SCHEMA} is read (export it with a torch that writes this one)"
        )
    return dict(document)


@dataclass(slots=True)
class _Import:
    """A graph on its way from the JSON of torch."""

    document: dict[str, Any]
    path: Path
    axes: Mapping[str, int]
    tensors: dict[str, Shape] = field(default_factory=dict)
    """Shapes of all tensors of the network, of subgraphs under the names of their calls."""
    orders: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Strides of the same."""
    kinds: dict[str, int] = field(default_factory=dict)
    roots: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of each constant the weights that it is made of."""
    weights: dict[str, Weights] = field(default_factory=dict)
    """All weights by their names in the module."""
    symbols: dict[str, int] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)

    def graph(self) -> OperatorGraph:
        """The whole graph."""
        inner = self.document["graph_module"]
        graph, entering = inner["graph"], list[str]()
        specs = inner["signature"]["input_specs"]
        for spec in specs:
            if "user_input" in spec:
                entering += _names(spec["user_input"]["arg"])
        bound = self._bind(graph, entering)
        names = {tensor: readable(tensor) for tensor in graph["tensor_values"]}
        self._note(graph, names)
        for spec in specs:
            self._note_weights(spec)
        self._walk(graph, names)
        if not self.nodes:
            refuse(self.path, "no operator depends on an input (export the module with inputs that it uses)")
        nodes = self._renamed()
        named = [name for node in nodes for name in (*node.inputs, *node.outputs)]
        tensors = {name: self.tensors[name] for name in (*named, *(names[name] for name in entering))}
        weights = {name: self.weights[name] for node in nodes for name in node.weights}
        listed = ", ".join(f"{count} {name}" for name, count in self.unknown.items())
        leaving = [names[tensor] for output in graph["outputs"] for tensor in _names(output) if tensor in names]
        return OperatorGraph(
            name=readable(self.path.stem),
            inputs=tuple(names[name] for name in entering),
            outputs=tuple(dict.fromkeys(name for name in leaving if name in tensors)),
            tensors=tensors,
            weights=weights,
            nodes=nodes,
            groups=repeated_blocks(nodes, tensors, weights),
            axes=bound,
            remarks=(f"priced by their bytes, as nothing else is known of them: {listed}",) if listed else (),
        )

    def _renamed(self) -> tuple[Node, ...]:
        """Nodes with names that differ."""
        names = unique_names([node.name for node in self.nodes])
        return tuple(
            Node(name, node.operator, node.inputs, node.outputs, node.weights, node.product, node.window, node.source)
            for node, name in zip(self.nodes, names, strict=True)
        )

    # Axes and shapes.

    def _bind(self, graph: Mapping[str, Any], entering: Sequence[str]) -> tuple[tuple[str, int], ...]:
        """Give every open axis of the inputs its length, and return which."""
        first, bound, faults = dict[str, str](), dict[str, int](), list[str]()
        given = dict(self.axes)
        for tensor in entering:
            for axis, extent in enumerate(graph["tensor_values"][tensor]["sizes"]):
                symbol = re.fullmatch(r"Symbol\('(\w+)'.*\)", extent["as_expr"]["expr_str"]) if "as_expr" in extent else None
                if symbol is None:
                    continue
                key, name = f"{tensor}.{axis}", symbol[1]
                length = given.pop(key, None)
                if length is not None and self.symbols.get(name, length) != length and first[name] in self.axes:
                    faults.append(f"--set {key}={length}: this axis is as long as {first[name]} (give both the same length)")
                if name not in first:
                    first[name] = key
                    self.symbols[name] = bound[key] = extent["as_expr"]["hint"]["as_int"]
                if length is not None:
                    self.symbols[name] = bound[first[name]] = length
                    faults += self._out_of_range(key, name, length)
        open_axes = ", ".join(first.values()) or "none"
        remedy = "export with dynamic_shapes to open an axis"
        faults += [f"there is no open axis {name!r} (open axes: {open_axes}; {remedy})" for name in given]
        if faults:
            refuse(self.path, *map(readable, faults))
        return tuple((readable(key), length) for key, length in bound.items())

    def _out_of_range(self, key: str, symbol: str, length: int) -> Iterator[str]:
        stated = self.document.get("range_constraints", {}).get(symbol, {})
        least, most = stated.get("min_val"), stated.get("max_val")
        if (least is not None and length < least) or (most is not None and length > most):
            yield f"--set {key}={length}: the export allows lengths from {least or 0} to {most or 'any'} (export with a wider range)"

    def _extent(self, extent: Mapping[str, Any]) -> int:
        if "as_int" in extent:
            return int(extent["as_int"])
        text = extent["as_expr"]["expr_str"]
        try:
            return _computed(ast.parse(text, mode="eval").body, self.symbols)
        except (KeyError, SyntaxError, ZeroDivisionError, TypeError, OverflowError) as error:
            remedy = "export with inputs of fixed sizes, or without the operator"
            refuse(
                self.path, f"the extent {readable(str(text))[:80]} depends on data, or is of a form that is not known: {error} ({remedy})"
            )

    def _note(self, graph: Mapping[str, Any], names: Mapping[str, str]) -> None:
        """Note the shapes of the tensors of a graph that are new."""
        for tensor, name in names.items():
            if name not in self.tensors:
                stated = graph["tensor_values"][tensor]
                self.tensors[name] = tuple(map(self._extent, stated["sizes"]))
                self.orders[name] = tuple(map(self._extent, stated["strides"]))
                self.kinds[name] = int(stated["dtype"])

    def _note_weights(self, spec: Mapping[str, Any]) -> None:
        for kind, key in (("parameter", "parameter_name"), ("buffer", "buffer_name"), ("tensor_constant", "tensor_constant_name")):
            if kind in spec:
                tensor, name = readable(spec[kind]["arg"]["name"]), readable(spec[kind][key])
                counts = self.kinds[tensor] not in _WHOLE and bool(self.tensors[tensor])
                self.roots[tensor] = (name,) if counts else ()
                self.weights[name] = Weights(self.tensors[tensor], kind == "parameter")

    # Operators.

    def _walk(self, graph: Mapping[str, Any], names: dict[str, str], prefix: str = "") -> None:
        """Note the operators of a graph whose tensors go by these names in the whole network."""
        for call in graph["nodes"]:
            kind = call["target"].removeprefix("torch.ops.").removeprefix("_torch_ops.")
            subgraphs = [argument["arg"]["as_graph"] for argument in call["inputs"] if "as_graph" in argument["arg"]]
            if kind.startswith("higher_order.") and len(subgraphs) == 1 and kind.split(".")[1] in _INLINED:
                self._open(call, subgraphs[0]["graph"], names, f"{prefix}{call['name']}.")
                continue
            outputs = [names[name] for output in call["outputs"] for name in _names(output) if name in names]
            if outputs:
                self._note_call(_Call(kind, call, names, outputs, self.tensors))
            if len(self.nodes) > MOST_NODES:
                refuse(self.path, f"the network has more than {MOST_NODES:,} operators (export a part)")

    def _open(self, call: Mapping[str, Any], graph: Mapping[str, Any], names: dict[str, str], prefix: str) -> None:
        """Walk a subgraph in the place of its call."""
        own = {tensor: readable(f"{prefix}{tensor}") for tensor in graph["tensor_values"]}
        entering = [next(iter(_names(entry)), None) for entry in graph["inputs"]]
        given = [next(iter(_names(argument["arg"])), None) for argument in call["inputs"]][len(call["inputs"]) - len(entering) :]
        own |= {inner: names[outer] for inner, outer in zip(entering, given, strict=True) if inner is not None and outer is not None}
        self._note(graph, own)
        self._walk(graph, own, prefix)
        inner = [name for output in graph["outputs"] for name in _names(output)]
        outer = [name for output in call["outputs"] for name in _names(output)]
        names |= {name: own[source] for name, source in zip(outer, inner, strict=True)}

    def _note_call(self, call: "_Call") -> None:
        """Note an operator, or the constants that it makes."""
        taken = call.tensor_names()
        active = [name for name in taken if name not in self.roots]
        if call.base in _FILLING or (not active and call.base not in _RANDOM):
            made_of = () if call.base in _FILLING else tuple(dict.fromkeys(root for name in taken for root in self.roots[name]))
            self.roots |= dict.fromkeys(call.outputs, made_of)
            return
        weights = tuple(dict.fromkeys(root for name in taken if name in self.roots for root in self.roots[name]))
        operator = self._operator(call)
        if operator == "recurrent" and "params" in call.arguments:
            if self._note_recurrent(call, active):
                return
            operator = "other"
        try:
            sides, window = _sides(call, operator), _window(call, operator)
        except (KeyError, IndexError, ValueError, TypeError):
            operator, sides, window = "other", None, ()
        if operator == "other":
            self.unknown[call.kind_name] += 1
        first = [name for name in map(call.name_of, call.operands) if name in active]
        self.nodes.append(
            Node(
                name=call.title(weights),
                operator=operator,
                inputs=tuple(dict.fromkeys((*first, *active))),
                outputs=tuple(call.outputs),
                weights=weights,
                product=sides if sides is not None and min(sides) > 0 else None,
                window=window,
                source=call.kind_name,
            )
        )

    def _operator(self, call: "_Call") -> str:
        """What an operator is in a graph."""
        if call.space != "aten":
            return "other"
        operator = ATEN_OPERATORS.get(call.base, "other")
        source = call.first()
        match call.base:
            case "convolution" | "_convolution" if call.flag("transposed"):
                return "transposed convolution"
            case "max" | "min" if call.overload == "other":
                return "multiplication"
            case "index" | "index_select" if source in self.roots and self.kinds.get(source) not in _WHOLE:
                return "embedding"
        copied = call.base in _MAY_COPY and not _in_order(self.tensors[source], self.orders[source])
        cast = call.base in _CASTS and self.kinds[source] != self.kinds[call.outputs[0]]
        return "move" if copied or cast else operator

    def _note_recurrent(self, call: "_Call", active: Sequence[str]) -> bool:
        """Note one operator for each layer of a recurrent network; False where it is of another form."""
        parameters, layers = call.list_of("params"), call.number("num_layers", 1)
        directions = 2 if call.flag("bidirectional") else 1
        each = len(parameters) // (layers * directions)
        taken = self.tensors.get(call.name_of("input"), ())
        if call.overload != "input" or each not in {2, 4} or len(taken) not in {2, 3}:
            return False
        time, batch = (taken[0], 1) if len(taken) == 2 else (taken[1], taken[0]) if call.flag("batch_first") else taken[:2]
        inputs = tuple(active)
        for layer in range(layers):
            own = parameters[layer * directions * each : (layer + 1) * directions * each]
            wide, again = (self.tensors[name] for name in own[:2])
            last = layer == layers - 1
            between = f"{call.outputs[0]}.layer{layer}"
            if not last:
                self.tensors[between] = (*taken[:-1], again[-1] * directions)
            weights = tuple(dict.fromkeys(root for name in own for root in self.roots.get(name, ())))
            sides = recurrent_sides((time, batch, wide[-1]), (directions,), again, wide[0] // again[-1])
            outputs = tuple(call.outputs) if last else (between,)
            self.nodes.append(Node(call.title(weights), "recurrent", inputs, outputs, weights, sides, (), call.kind_name))
            inputs = (between,)
        return True


class _Call:
    """A call of an operator, with its arguments by name."""

    def __init__(
        self, kind: str, call: Mapping[str, Any], names: Mapping[str, str], outputs: Sequence[str], tensors: Mapping[str, Shape]
    ) -> None:
        self.space, base, self.overload = (*kind.split("."), "", "")[:3]
        self.base = base[:-1] if base.endswith("_") and not base.endswith("__") else base
        self.base = self.base.removesuffix("_copy") if self.base not in {"_to_copy", "lift_fresh_copy", "index_copy"} else self.base
        self.kind_name = readable(f"{self.space}.{self.base}")
        self.arguments = {argument["name"] or str(index): argument["arg"] for index, argument in enumerate(call["inputs"])}
        self.names, self.outputs, self.tensors = names, outputs, tensors
        stack = str(call.get("metadata", {}).get("nn_module_stack", "")).split(";")[-1].split(",")
        self.module = re.sub(r"@\d+", "", readable(stack[1])) if len(stack) > 2 and not stack[1].startswith("_empty_nn") else ""
        self.is_of_torch = len(stack) > 2 and stack[2].startswith("torch.nn.modules.")

    def tensor_names(self) -> list[str]:
        """All tensors that it takes, each once."""
        return list(dict.fromkeys(self.names[name] for argument in self.arguments.values() for name in _names(argument)))

    def list_of(self, argument: str) -> list[str]:
        return [self.names[name] for name in _names(self.arguments.get(argument, {}))]

    def name_of(self, argument: str) -> str:
        """The tensor of an argument, empty where there is none."""
        return next(iter(self.list_of(argument)), "")

    def first(self) -> str:
        return next(iter(self.tensor_names()), "")

    def shape(self, argument: str) -> Shape:
        return self.tensors[self.name_of(argument)]

    @property
    def result(self) -> Shape:
        return self.tensors[self.outputs[0]]

    @property
    def operands(self) -> tuple[str, str]:
        return _FIRST.get(self.base, ("self", "mat2"))

    def flag(self, argument: str) -> bool:
        return bool(self.arguments.get(argument, {}).get("as_bool", False))

    def number(self, argument: str, usual: int) -> int:
        return int(self.arguments.get(argument, {}).get("as_int", usual))

    def title(self, weights: Sequence[str]) -> str:
        """The module whose weights it takes, or the module and the operator."""
        own = weights and (self.is_of_torch or any(name.rpartition(".")[0] == self.module for name in weights))
        if self.module and own:
            return self.module
        return f"{self.module}.{self.base}" if self.module else self.base


def _names(argument: Any) -> list[str]:  # noqa: ANN401 - JSON
    """Names of the tensors in an argument or output, at any depth, without those of subgraphs."""
    if isinstance(argument, list):
        return [name for item in argument for name in _names(item)]
    if not isinstance(argument, dict):
        return []
    if isinstance(argument.get("name"), str) and set(argument) == {"name"}:
        return [argument["name"]]
    kinds = ("as_tensor", "as_tensors", "as_optional_tensor", "as_optional_tensors", "as_nested_tensors")
    return [name for kind in kinds if kind in argument for name in _names(argument[kind])]


def _in_order(shape: Shape, strides: Sequence[int]) -> bool:
    """Whether values lie in memory in the order of their indices."""
    wide = [(extent, stride) for extent, stride in zip(shape, strides, strict=True) if extent != 1]
    return not wide or (wide[-1][1] == 1 and all(stride == extent * after for (_, stride), (extent, after) in pairwise(wide)))


def _sides(call: _Call, operator: str) -> Sides | None:
    """Rows, depth, columns and count of the matrix products of a call; None where it has none."""
    match operator:
        case "convolution":
            return convolution_sides(call.result, call.shape("weight"), call.number("groups", 1))
        case "transposed convolution":
            return transposed_sides(call.shape("input"), call.shape("weight"), call.number("groups", 1))
        case "attention":
            queries, keys, values = (call.shape(name) for name in ("query", "key", "value"))
            reach = -(-keys[-2] // 2) if call.flag("is_causal") else keys[-2]
            return queries[-2], keys[-1] + values[-1], reach, prod(queries[:-2])
        case "recurrent":
            taken, hidden, own = call.shape("input"), call.shape("w_hh"), call.shape("w_ih")
            return recurrent_sides((1, prod(taken[:-1]), taken[-1]), (1,), hidden, own[0] // hidden[-1])
        case "product":
            return _product(call)
    return None


def _product(call: _Call) -> Sides:
    first, second = call.operands
    match call.base:
        case "einsum":
            return einsum_sides(call.arguments["equation"]["as_string"], [call.tensors[name] for name in call.list_of("tensors")])
        case "matmul" | "bmm" | "baddbmm" | "mv" | "addmv" | "dot":
            return product_sides(call.shape(first), call.shape(second))
        case "_grouped_mm" if len(call.shape(second)) == 3 and len(call.shape(first)) == 2:
            groups = call.shape(second)[0]  # of which each takes its share of the rows
            return -(-call.result[0] // groups), call.shape(first)[-1], call.result[-1], groups
    return prod(call.result[:-1]), call.shape(first)[-1], call.result[-1], 1


def _window(call: _Call, operator: str) -> tuple[int, ...]:
    """Extents of a kernel or window."""
    if operator in {"convolution", "transposed convolution"}:
        return call.shape("weight")[2:]
    if operator != "pooling":
        return ()
    axes = int(call.base.removesuffix("_with_indices")[-2:-1])
    if "adaptive" in call.base:
        taken = call.tensors[call.first()][-axes:]
        return tuple(-(-before // max(after, 1)) for before, after in zip(taken, call.result[-axes:], strict=True))
    stated = tuple(call.arguments["kernel_size"]["as_ints"])
    return stated * axes if len(stated) == 1 else stated


_FUNCTIONS: Final[Mapping[str, Callable[..., int]]] = {
    "Integer": int,
    "Add": lambda *terms: sum(terms),
    "Mul": lambda *factors: prod(factors),
    "Pow": lambda base, power: base ** min(power, 8),
    "PowByNatural": lambda base, power: base ** min(power, 8),
    "FloorDiv": lambda a, b: a // b,
    "CleanDiv": lambda a, b: a // b,
    "CeilDiv": lambda a, b: -(-a // b),
    "Mod": lambda a, b: a % b,
    "PythonMod": lambda a, b: a % b,
    "Max": max,
    "Min": min,
}


def _computed(tree: ast.AST, symbols: Mapping[str, int]) -> int:
    """An expression of lengths as sympy writes it, such as Mul(Integer(7), Symbol('s0', integer=True)); a KeyError for other ones."""
    match tree:
        case ast.Constant(value=int(number)):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_computed(inner, symbols)
        case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str(name))]):
            return symbols[name]
        case ast.Call(func=ast.Name(id=name), args=list(given)):
            return _FUNCTIONS[name](*(_computed(argument, symbols) for argument in given))
    raise KeyError(type(tree).__name__)
