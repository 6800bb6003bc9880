"""ONNX models as graphs of operators: shapes by ONNX's own inference, constants folded as far as shapes need them, no weights read.

A tensor is constant if it follows from initializers alone. The constant that an operator takes is its weights, and stands for the
initializer behind reshapes, transpositions and casts, so that a table that is an embedding and, transposed, a head counts once. Whole
numbers that say shapes, axes and indices are no weights, nor are single numbers without an axis.

Open axes have names (`batch`) or are called by their input and place (`input.0`); each needs a length. What inference leaves open, such as
a reshape to a computed shape, is inferred operator by operator, with small constants computed by ONNX's reference implementation.

An axis of fixed length may get another one. Reshapes to fixed sizes then follow it: the axis that changed lies behind equally many values
before and after a reshape, which says what axis of the sizes changes with it.
"""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnx.checker
import onnx.inliner
import onnx.reference
from google.protobuf.message import DecodeError
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from crossopt.crossflow import operator_graph
from crossopt.instances.files.careful import bytes_of, why_unreadable
from crossopt.instances.files.graphs import cycle_of
from crossopt.instances.operators.graph_file import ONNX_OPERATORS, readable, refuse, unique_names

_LARGEST = (1 << 31) - 1
"""Bytes of a protobuf, by its own format."""
_WITHOUT_INPUTS = 4
"""Version of the format from which on weights need not be inputs."""
_SMALL = 1_024
"""Values of a tensor that may say a shape."""
_REMEDY = "leave fixed axes out of --set, or export the model with open axes"

_ALIASES = frozenset(
    {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Transpose", "Cast", "CastLike", "DequantizeLinear", "QuantizeLinear"}
)
"""Operators on a constant whose result is the same weights."""
_MATRICES = frozenset({"MatMul", "Gemm", "MatMulInteger", "QLinearMatMul"})
_STATISTICS: Final[Mapping[str, tuple[int, ...]]] = {"BatchNormalization": (3, 4)}
"""Inputs that are kept and not trained."""
_GATES: Final[Mapping[str, int]] = {"LSTM": 4, "GRU": 3, "RNN": 1}
_WHOLE = frozenset({TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.STRING})
"""Types of tensors that say shapes, axes and indices."""


def read_onnx(path: Path, axes: Mapping[str, int] | None = None) -> operator_graph.OperatorGraph:
    """The graph of a model; an InstanceError in a sentence for each fault."""
    model = _loaded(path)
    bound, changed = _bind(model.graph, dict(axes or {}), path)
    _shed(model.graph)
    _sort(model.graph, path)
    network = _rebound(model, changed, path) if changed else _inferred(model, path)
    nodes, weights, remarks = _nodes_of(network, path)
    if network.followed:
        count = len(network.followed)
        remarks = (*remarks, f"{count} reshape{'s' * (count > 1)} to fixed sizes follow{'s' * (count == 1)} the axes that were set")
    entering = [value.name for value in _inputs(model.graph)]
    shapes = {readable(name): shape for name, shape in network.shapes.items()}
    tensors = {name: shapes[name] for node in nodes for name in (*node.inputs, *node.outputs)}
    tensors |= {readable(name): network.shapes[name] for name in entering}
    return operator_graph.OperatorGraph(
        name=path.stem,
        inputs=tuple(map(readable, entering)),
        outputs=tuple(name for name in (readable(value.name) for value in model.graph.output) if name in tensors),
        tensors=tensors,
        weights=weights,
        nodes=nodes,
        groups=operator_graph.repeated_blocks(nodes, tensors, weights),
        axes=bound,
        remarks=remarks,
    )


def named_copy(path: Path, graph: operator_graph.OperatorGraph, target: Path) -> bytes:
    """A copy of the model whose operators have the names of its graph, for tools that find operators by name. What is older than version 4
    of the format gets that one, in which weights need not be inputs; an InstanceError where the copy would not find its external data."""
    model = _loaded(path)
    names = {tensor: node.name for node in graph.nodes for tensor in node.outputs}
    for node in model.graph.node:
        own = next((names[tensor] for tensor in map(readable, node.output) if tensor in names), "")
        node.name = own or node.name
    model.ir_version = max(model.ir_version, _WITHOUT_INPUTS)
    outside = any(tensor.data_location == TensorProto.EXTERNAL for tensor in model.graph.initializer)
    if outside and target.resolve().parent != path.resolve().parent:
        refuse(path, f"its weights lie in other files beside it, where a copy must lie, too (write {target.name} to the same folder)")
    return bytes(model.SerializeToString())


def _loaded(path: Path) -> ModelProto:
    """The model, without external data."""
    try:
        data = bytes_of(path, _LARGEST, "name a model of ONNX")
    except OSError as error:
        refuse(path, why_unreadable(error))
    if data is None:
        refuse(path, "a protobuf has at most 2 GiB (save the model with external data: onnx.save_model(..., save_as_external_data=True))")
    if not data:
        refuse(path, "the file is empty (export the model again)")
    try:
        model = onnx.load_model_from_string(data)
    except DecodeError:
        refuse(path, "this is no model of ONNX, or one that was cut off (export or fetch it again)")
    if strange := [name for name in _names(model) if isinstance(name, bytes)]:
        refuse(path, f"the name {readable(str(strange[0]))} is not UTF-8 (export or fetch the model again)")
    if not model.graph.node:
        refuse(path, "the model has no operators (is this a model of ONNX? export it again)")
    known = onnx.defs.onnx_opset_version()
    newest = max((opset.version for opset in model.opset_import if opset.domain in ("", "ai.onnx")), default=1)
    if newest > known:
        remedy = f"export with opset_version={known}, or `pip install -U onnx`"
        refuse(path, f"the model is of opset {newest}, and onnx {onnx.__version__} knows opsets up to {known} ({remedy})")
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    count, most = len(model.graph.node), operator_graph.MOST_NODES * 4
    if count > most:
        refuse(path, f"the model has {count:,} operators, more than the {most:,} that are imported (export a part)")
    if message := _broken(model.graph):
        refuse(path, f"{message} (export the model again)")
    return model


def _broken(graph: GraphProto) -> str:
    """A tensor that is made twice, or weights of a negative length."""
    weights = [tensor.name for tensor in graph.initializer]
    made = [*{*weights, *(item.name for item in graph.input)}, *(name for node in graph.node for name in node.output if name)]
    twice = next((name for names in (weights, made) for name, count in Counter(names).items() if count > 1), None)
    negative = next((tensor.name for tensor in graph.initializer if any(extent < 0 for extent in tensor.dims)), None)
    if twice is not None:
        return readable(f"the tensor {twice!r} is made, or given, twice")
    return "" if negative is None else readable(f"the weights {negative!r} have a negative length")


def _names(model: ModelProto) -> Iterator[str | bytes]:
    """All names in a model; one that is broken is read as bytes."""
    graph = model.graph
    yield from (opset.domain for opset in model.opset_import)
    yield from (item.name for items in (graph.initializer, graph.input, graph.value_info, graph.output) for item in items)
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output, *(attribute.name for attribute in node.attribute))


def _inputs(graph: GraphProto) -> list[ValueInfoProto]:
    """Inputs that are no weights."""
    given = {item.name for item in graph.initializer} | {item.values.name for item in graph.sparse_initializer}
    return [item for item in graph.input if item.name not in given]


def _bind(graph: GraphProto, axes: dict[str, int], path: Path) -> tuple[tuple[tuple[str, int], ...], dict[tuple[str, int], int]]:
    """Give every open axis its length; return which, and by input and axis the fixed lengths that changed."""
    bound, left = dict[str, int](), dict[str, str]()
    changed = dict[tuple[str, int], int]()
    axes = _with_batch(graph, axes)
    for value in _inputs(graph):
        for axis, extent in enumerate(value.type.tensor_type.shape.dim):
            name, fixed = f"{value.name}.{axis}", extent.dim_value > 0
            key = name if name in axes or not extent.dim_param else extent.dim_param
            if key in axes:
                if fixed and axes[key] != extent.dim_value:
                    changed[value.name, axis] = extent.dim_value
                bound[key] = extent.dim_value = axes[key]
            elif not fixed:
                left.setdefault(key, f"the axis {key!r} of input {value.name!r} is open (give its length, such as --set {key}=1)")
    strange = [name for name in axes if name not in bound]
    faults = [*left.values(), *(f"there is no axis {name!r} (open axes: {', '.join([*bound, *left]) or 'none'})" for name in strange)]
    if faults:
        refuse(path, *(readable(fault) for fault in faults))
    for value in (*graph.value_info, *graph.output):
        for extent in value.type.tensor_type.shape.dim:
            if extent.dim_param in bound:
                extent.dim_value = bound[extent.dim_param]
        if changed or not _is_known(value.type):
            value.type.tensor_type.ClearField("shape")
    return tuple((readable(name), length) for name, length in bound.items()), changed


def _with_batch(graph: GraphProto, axes: dict[str, int]) -> dict[str, int]:
    """Lengths of axes; `batch` is the first axis of all inputs where these have one length and none of that name."""
    extents = {value.name: value.type.tensor_type.shape.dim[:1] for value in _inputs(graph)}
    leading = {extent.dim_value for first in extents.values() for extent in first}
    if "batch" not in axes or len(leading) != 1 or 0 in leading or not all(extents.values()):
        return axes
    return {name: length for name, length in axes.items() if name != "batch"} | {f"{name}.0": axes["batch"] for name in extents}


def _is_known(kind: TypeProto) -> bool:
    tensor = kind.tensor_type
    return tensor.HasField("shape") and all(extent.HasField("dim_value") for extent in tensor.shape.dim)


def _shed(graph: GraphProto) -> None:
    """Drop the data of large tensors, which only take time: shapes are all that is needed."""
    constants = [attr.t for node in graph.node if node.op_type == "Constant" for attr in node.attribute if attr.name == "value"]
    for tensor in (*graph.initializer, *constants):
        if prod(tensor.dims) > _SMALL:
            for kind in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data", "external_data"):
                tensor.ClearField(kind)


def _sort(graph: GraphProto, path: Path) -> None:
    """Bring the nodes into topological order."""
    makers = {name: number for number, node in enumerate(graph.node) for name in node.output if name}
    arcs = [(makers[name], number) for number, node in enumerate(graph.node) for name in node.input if name in makers]
    if all(source < target for source, target in arcs):
        return
    circle = cycle_of(arcs, len(graph.node))
    if circle:
        names = ", ".join(readable(graph.node[number].name or graph.node[number].output[0]) for number in circle[:4])
        refuse(path, f"the operators {names} wait for each other in a circle (export the model again)")
    waits, after = [0] * len(graph.node), dict[int, list[int]]()
    for source, target in arcs:
        waits[target] += 1
        after.setdefault(source, []).append(target)
    ready = [number for number, count in enumerate(waits) if not count]
    for number in ready:  # grows as it goes
        for target in after.get(number, ()):
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    ordered = [graph.node[number] for number in ready]
    copies = [NodeProto.FromString(node.SerializeToString()) for node in ordered]
    del graph.node[:]
    graph.node.extend(copies)


# Shapes: of the whole model by ONNX, and operator by operator where that leaves some open.


@dataclass(slots=True)
class _Network:
    """A model with the shapes and types of its tensors."""

    model: ModelProto
    shapes: dict[str, operator_graph.Shape]
    kinds: dict[str, int]
    """Element types."""
    roots: dict[str, str] = field(default_factory=dict)
    """Of each constant the one that it is another view of."""
    values: dict[str, Any] = field(default_factory=dict)
    """Small constants."""
    before: dict[str, operator_graph.Shape] = field(default_factory=dict)
    """Shapes with the lengths of the file, where fixed axes have others."""
    stated: set[str] = field(default_factory=set)
    """Constants that no shape enters; of these the fixed sizes of reshapes."""
    followed: list[str] = field(default_factory=list)
    """Results of reshapes to fixed sizes that have other sizes for that reason."""


def _inferred(model: ModelProto, path: Path) -> _Network:
    """The model with all shapes; refused where they depend on data."""
    try:
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        refuse(path, f"shapes cannot be inferred: {readable(str(error).strip().splitlines()[-1])[:200]} (export the model again)")
    graph = model.graph
    network = _Network(model, {}, {})
    for value in (*graph.input, *graph.value_info, *graph.output):
        _note(network, value.name, value.type)
    for tensor in graph.initializer:
        network.shapes[tensor.name], network.kinds[tensor.name] = tuple(tensor.dims), tensor.data_type
    for node in graph.node:
        _refuse_changed(network, node, path)
    read = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    if any(name not in network.shapes for node in graph.node for name in node.output if name in read and name):
        _infer_one_by_one(network)
    return network


def _rebound(model: ModelProto, changed: Mapping[tuple[str, int], int], path: Path) -> _Network:
    """The model with all shapes where axes of fixed length have another one; reshapes to fixed sizes follow."""
    usual = ModelProto.FromString(model.SerializeToString())
    for value in usual.graph.input:
        for axis, extent in enumerate(value.type.tensor_type.shape.dim):
            extent.dim_value = changed.get((value.name, axis), extent.dim_value)
    usual_network = _inferred(usual, path)
    network = _Network(model, {}, dict(usual_network.kinds), before=usual_network.shapes)
    for given in _inputs(model.graph):
        _note(network, given.name, given.type)
    for tensor in model.graph.initializer:
        network.shapes[tensor.name] = tuple(tensor.dims)
    network.stated |= {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type not in {"Shape", "Size"} and _is_constant(node, network.stated):
            network.stated |= set(node.output)
    _infer_one_by_one(network)
    for node in model.graph.node:
        _refuse_changed(network, node, path)
        taken = [name for name in node.input if name]
        lost = any(name in network.before and name not in network.shapes for name in node.output)
        if lost and all(name in network.shapes for name in taken):
            sizes = ", ".join(" x ".join(map(str, network.shapes[name])) for name in taken)
            refuse(path, readable(f"the operator {node.name or node.output[0]} takes {sizes}, which do not fit each other ({_REMEDY})"))
    return network


def _follow(network: _Network, node: NodeProto) -> None:
    """Give the result of a reshape to fixed sizes those that follow from the axes that changed before it."""
    known = node.input and all(name in network.before for name in (node.input[0], *node.output))
    if node.op_type not in {"Reshape", "Resize"} or not known or not network.stated.issuperset(filter(None, node.input[1:])):
        return
    result, source = node.output[0], node.input[0]
    sizes = _followed(network.before[source], network.shapes.get(source, ()), network.before[result])
    if sizes is not None and sizes != network.shapes.get(result):
        network.shapes[result] = sizes
        network.followed.append(result)


def _followed(old: operator_graph.Shape, new: operator_graph.Shape, result: operator_graph.Shape) -> operator_graph.Shape | None:
    """Sizes that a tensor is reshaped to, once lengths of it changed; None where they cannot be told."""
    found = list(result)
    for axis in (axis for axis in range(len(old)) if new[axis] != old[axis]):
        behind = [index for index in range(len(result)) if prod(result[:index]) == prod(old[:axis]) and result[index] % old[axis] == 0]
        if not behind:
            return None
        index = axis if axis in behind else behind[0]
        found[index] = found[index] // old[axis] * new[axis]
    return tuple(found)


def _refuse_changed(network: _Network, node: NodeProto, path: Path) -> None:
    """Refuse a reshape to a fixed shape that has other values than come in, which no inference minds."""
    before, after = (network.shapes.get(names[0]) if names else None for names in (node.input, node.output))
    if node.op_type == "Reshape" and before is not None and after is not None and prod(before) != prod(after):
        sizes = " and ".join(" x ".join(map(str, shape)) for shape in (before, after))
        refuse(
            path,
            readable(f"the operator {node.name or node.output[0]} takes and gives {sizes}, which have other numbers of values ({_REMEDY})"),
        )


def _note(network: _Network, name: str, kind: TypeProto) -> None:
    if kind.HasField("tensor_type"):
        network.kinds[name] = kind.tensor_type.elem_type
        if _is_known(kind):
            network.shapes[name] = tuple(extent.dim_value for extent in kind.tensor_type.shape.dim)


def _made(node: NodeProto) -> list[str]:
    return [name for name in node.output if name]


def _infer_one_by_one(network: _Network) -> None:
    """Infer each operator by itself from what is known of its inputs, computing constants that are small."""
    model = network.model
    versions = {opset.domain: opset.version for opset in model.opset_import}
    for tensor in model.graph.initializer:
        if prod(tensor.dims) <= _SMALL and not tensor.external_data:
            try:
                network.values[tensor.name] = onnx.numpy_helper.to_array(tensor)
            except (TypeError, ValueError, KeyError):  # of no type, or with other data than its shape needs
                continue
    for node in model.graph.node:
        if not all(name in network.shapes for name in _made(node)) and all(name in network.kinds for name in node.input if name):
            _infer(network, node, versions)
            _follow(network, node)
        _compute(network, node, versions)


def _infer(network: _Network, node: NodeProto, versions: dict[str, int]) -> None:
    """Note the shapes of the outputs of a node, as far as they follow from its inputs."""
    values = network.values
    try:
        schema = onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
        known = {name: onnx.numpy_helper.from_array(values[name], name) for name in node.input if name in values}
        types = {name: _type_of(network, name) for name in node.input if name}
        found = onnx.shape_inference.infer_node_outputs(schema, node, types, known, opset_imports=list(network.model.opset_import))
    except (onnx.defs.SchemaError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError, RuntimeError, KeyError, ValueError):
        return  # an operator of which ONNX knows nothing, or with attributes that it has not
    for name, kind in found.items():
        _note(network, name, kind)


def _type_of(network: _Network, name: str) -> TypeProto:
    return onnx.helper.make_tensor_type_proto(network.kinds[name], network.shapes.get(name))


def _compute(network: _Network, node: NodeProto, versions: dict[str, int]) -> None:
    """The values of a node of small constants, where these are few, too."""
    values, shapes, taken = network.values, network.shapes, [name for name in node.input if name]
    if node.op_type == "Shape" and node.input[0] in shapes:
        first, last = _number(node, "start", 0), _number(node, "end", None)
        values[node.output[0]] = np.array(shapes[node.input[0]][first:last], np.int64)
    elif node.op_type == "Size" and node.input[0] in shapes:
        values[node.output[0]] = np.array(prod(shapes[node.input[0]]), np.int64)
    elif all(name in values for name in taken) and all(prod(shapes.get(name, (_SMALL + 1,))) <= _SMALL for name in _made(node)):
        if any(attribute.type == AttributeProto.GRAPH for attribute in node.attribute):
            return
        try:
            found = onnx.reference.ReferenceEvaluator(node, opsets=versions).run(None, {name: values[name] for name in taken})
        except Exception:  # noqa: BLE001 - whatever the reference implementation lacks, the value is not known then
            return
        values |= {name: np.asarray(value) for name, value in zip(node.output, found, strict=False) if name}
    for name in _made(node):
        if name in values and name not in shapes:
            shapes[name], network.kinds[name] = values[name].shape, onnx.helper.np_dtype_to_tensor_dtype(values[name].dtype)


def _number(node: NodeProto, name: str, usual: Any) -> Any:  # noqa: ANN401 - a number, or what stands for none
    return next((attribute.i for attribute in node.attribute if attribute.name == name), usual)


def _numbers(node: NodeProto, name: str) -> tuple[int, ...]:
    return next((tuple(attribute.ints) for attribute in node.attribute if attribute.name == name), ())


# Nodes of the graph: what depends on the inputs, with the weights that it takes.


def _nodes_of(network: _Network, path: Path) -> tuple[tuple[operator_graph.Node, ...], dict[str, operator_graph.Weights], tuple[str, ...]]:
    graph, roots = network.model.graph, network.roots
    roots |= {tensor.name: tensor.name for tensor in graph.initializer}
    active = list[NodeProto]()
    for node in graph.node:
        if _is_constant(node, roots):
            first = node.input[0] if node.input and node.op_type in _ALIASES else ""
            roots |= {name: roots.get(first, name) for name in _made(node)}
        else:
            active.append(node)
    needed = {name for node in active for name in node.input} | {value.name for value in graph.output}
    names = unique_names([readable(node.name or node.output[0]) for node in active])
    nodes, weights, unknown = list[operator_graph.Node](), dict[str, operator_graph.Weights](), dict[str, int]()
    for node, name in zip(active, names, strict=True):
        outputs = [name_made for name_made in _made(node) if name_made in needed] or _made(node)[:1]
        _refuse_open(network, node, outputs, path)
        found = _node(network, node, name, outputs, weights)
        nodes.append(found)
        if _is_misfit(network, node, found.operator):
            sizes = " and ".join(" x ".join(map(str, network.shapes[tensor])) for tensor in (node.input[0], _second(node)))
            refuse(path, f"the operator {name} takes {sizes}, which do not fit each other (export the model again)")
        if found.operator == "other":
            unknown[found.source] = unknown.get(found.source, 0) + 1
    listed = ", ".join(f"{count} {name}" for name, count in unknown.items())
    remarks: tuple[str, ...] = (f"priced by their bytes, as nothing else is known of them: {listed}",) if unknown else ()
    if unnamed := sum(found.product is not None and found.name != node.name for node, found in zip(active, nodes, strict=True)):
        which = (
            f"{unnamed:,} products and convolutions have no name of their own in the model"
            if unnamed > 1
            else "a product or convolution has no name of its own in the model"
        )
        remarks += (f"{which}: --named FILE writes a copy with the names of this graph, by which quantisers find them",)
    if not nodes:
        refuse(path, "no operator depends on an input (export the model without folding its inputs away)")
    return tuple(nodes), weights, remarks


def _is_constant(node: NodeProto, roots: Container[str]) -> bool:
    """Whether a node follows from weights and shapes alone."""
    random = node.op_type.startswith("Random") or node.op_type in {"Bernoulli", "Multinomial"}
    subgraph = any(attribute.type == AttributeProto.GRAPH for attribute in node.attribute)
    return node.op_type in {"Shape", "Size"} or (not random and not subgraph and all(name in roots for name in node.input if name))


def _refuse_open(network: _Network, node: NodeProto, outputs: Sequence[str], path: Path) -> None:
    for name in (*(tensor for tensor in node.input if tensor and tensor not in network.roots), *outputs):
        if name not in network.shapes:
            by = f"{node.op_type} of {node.domain}" if node.domain else node.op_type
            remedy = "save the model with value_info of that tensor, or export it with fixed sizes"
            refuse(
                path, readable(f"the shape of {name!r} at the operator {by} is not known: it depends on data, or is not stated ({remedy})")
            )


def _node(
    network: _Network, node: NodeProto, name: str, outputs: Sequence[str], weights: dict[str, operator_graph.Weights]
) -> operator_graph.Node:
    """One node, with its weights noted."""
    roots, shapes = network.roots, network.shapes
    operator = ONNX_OPERATORS.get(node.op_type, "other") if node.domain in {"", "ai.onnx", "com.microsoft"} else "other"
    inputs = [tensor for tensor in node.input if tensor and tensor not in roots]
    if node.op_type == "Gather" and node.input[0] in roots and network.kinds.get(node.input[0]) not in _WHOLE:
        operator = "embedding"
    taken = list[str]()
    for index, tensor in enumerate(node.input):
        if tensor in roots and tensor in shapes and shapes[tensor] and network.kinds.get(tensor) not in _WHOLE:
            root = readable(roots[tensor])
            shape = shapes.get(roots[tensor], shapes[tensor])
            trained = index not in _STATISTICS.get(node.op_type, ()) and not _is_scale(node, index)
            weights.setdefault(root, operator_graph.Weights(shape, trained))
            taken.append(root)
    kernel, sides = _kernel(network, node), None
    try:
        sides = _sides(network, node, operator, outputs)
    except (IndexError, ValueError, KeyError):
        operator = "other"
    return operator_graph.Node(
        name=name,
        operator=operator,
        inputs=tuple(readable(tensor) for tensor in inputs),
        outputs=tuple(readable(tensor) for tensor in outputs),
        weights=tuple(dict.fromkeys(taken)),
        product=sides if sides is not None and min(sides) > 0 else None,
        window=kernel if operator in {"convolution", "transposed convolution", "pooling"} else (),
        source=f"{node.domain}.{node.op_type}" if operator == "other" and node.domain else node.op_type,
    )


def _is_scale(node: NodeProto, index: int) -> bool:
    """Whether an input is a scale or zero point of a quantised tensor."""
    return (node.op_type.startswith("QLinear") and index in {1, 2, 4, 5, 6, 7}) or (node.op_type in {"QuantizeLinear", "DequantizeLinear"})


def _kernel(network: _Network, node: NodeProto) -> tuple[int, ...]:
    """Extents of a kernel or window."""
    if node.op_type.startswith("Global"):
        return network.shapes[node.input[0]][2:]
    stated = _numbers(node, "kernel_shape")
    if stated or ONNX_OPERATORS.get(node.op_type) not in {"convolution", "transposed convolution"}:
        return stated
    return network.shapes[_second(node)][2:]


def _second(node: NodeProto) -> str:
    """The weights of a convolution, or the second operand of a product."""
    return str(node.input[3] if node.op_type.startswith("QLinear") else node.input[1])


def _sides(network: _Network, node: NodeProto, operator: str, outputs: Sequence[str]) -> operator_graph.Sides | None:
    """Rows, depth, columns and count of the matrix products of a node; None where it has none."""
    shapes = network.shapes
    match operator:
        case "convolution":
            found = operator_graph.convolution_sides(shapes[outputs[0]], shapes[_second(node)], _number(node, "group", 1))
        case "transposed convolution":
            found = operator_graph.transposed_sides(shapes[node.input[0]], shapes[_second(node)], _number(node, "group", 1))
        case "recurrent":
            taken, weights, again = (shapes[name] for name in node.input[:3])
            found = operator_graph.recurrent_sides(taken, weights, again, _GATES[node.op_type])
        case "attention":
            found = _attention_sides(network, node)
        case "product":
            found = _product_sides(network, node)
        case _:
            return None
    return found


def _operands(network: _Network, node: NodeProto) -> tuple[operator_graph.Shape, operator_graph.Shape]:
    """Both operands of a product of matrices, transposed as it takes them."""
    first, second = network.shapes[node.input[0]], network.shapes[_second(node)]
    first = (*first[:-2], first[-1], first[-2]) if _number(node, "transA", 0) else first
    second = (*second[:-2], second[-1], second[-2]) if _number(node, "transB", 0) else second
    return first, second


def _is_misfit(network: _Network, node: NodeProto, operator: str) -> bool:
    """Whether features or channels of an operator's input are not those of its weights, which ONNX's inference passes over."""
    is_product = operator == "product" and node.op_type in _MATRICES
    if not is_product and operator not in {"convolution", "transposed convolution"}:
        return False
    if any(len(network.shapes.get(name, ())) < 2 - is_product for name in (node.input[0], _second(node))):
        return False
    if is_product:
        first, second = _operands(network, node)
        return first[-1] != second[max(len(second) - 2, 0)]
    taken, kernel = network.shapes[node.input[0]][1], network.shapes[_second(node)]
    return taken != (kernel[1] * int(_number(node, "group", 1)) if operator == "convolution" else kernel[0])


def _product_sides(network: _Network, node: NodeProto) -> operator_graph.Sides:
    shapes = network.shapes
    if node.op_type == "Einsum":
        return operator_graph.einsum_sides(
            next(attr.s.decode() for attr in node.attribute if attr.name == "equation"), [shapes[tensor] for tensor in node.input]
        )
    if node.op_type == "MatMulNBits":
        return prod(shapes[node.input[0]][:-1]), _number(node, "K", 0), _number(node, "N", 0), 1
    return operator_graph.product_sides(*_operands(network, node))


def _attention_sides(network: _Network, node: NodeProto) -> operator_graph.Sides:
    """Of heads that are an axis of their own, or a number among the attributes; under a causal mask keys within reach are half."""
    queries, keys, values = (network.shapes[name] for name in node.input[:3])
    heads = queries[1] if len(queries) == 4 else _number(node, "q_num_heads", _number(node, "num_heads", 0))
    own = keys[1] if len(keys) == 4 else _number(node, "kv_num_heads", heads)
    length, wide = (keys[2], keys[3] + values[3]) if len(keys) == 4 else (keys[1], (keys[2] + values[2]) // own)
    reach = -(-length // 2) if _number(node, "is_causal", _number(node, "unidirectional", 0)) else length
    return queries[-2], wide, reach, queries[0] * heads
