"""A graph of operators on a device as a problem of one number format for each operator, priced by the roofline.

Activations lie in memory in the base format. An operator with matrix products (a product, convolution or recurrence) takes a format for its
operands: its arithmetic runs at the device's peak in that format. A norm, activation, pooling or move of one input writes its output in the
base format or in a narrower one that an operator behind it takes. All others stay in the base format, attention among them.

Between two operators nothing is converted where the format in memory is the one that is taken. Else a kernel reads the tensor and writes it
in the taken format. A narrow tensor that somebody needs in the base format is written in both.

    size      bytes of the weights in the operator's format; those that operators share count once
    memory    the same, and in training gradients, optimizer, and what is kept from the forward to the backward pass, in the format in
              which it lies
    bops      multiply-adds times the bits of both operands
    quality   what the user says of layer and format; where quality counts, formats of which nothing is said are not offered

Operators with operands that share weights take one strategy. Where an operator in the base format shares them too (an embedding with its
head), they are stored in both formats if these differ.

`splits` offers each format with several ways to split the operator over devices.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.operator_costs import OPERATORS, GraphCosts, columns_of, graph_costs, kept_tensors
from crossopt.crossflow.operator_graph import Node, OperatorGraph, group_of, values_in
from crossopt.crossflow.roofline import Cost, stream_cost
from crossopt.instances.catalogue.formats import BITS, Device, Format
from crossopt.instances.layers.problem import Figures, Pairs, Written, ties_by

Tying = Literal["none", "blocks", "operators"]
_WITH_OPERANDS = frozenset(("product", "convolution", "transposed convolution", "recurrent"))
_FUSING = frozenset(("norm", "activation", "pooling", "move", "gate", "local norm"))
"""Operators that write their output in the format that is taken next."""
_FULL = 32.0
_NAMED = 3
"""Layers that a sentence names."""


@dataclass(frozen=True, slots=True)
class GraphRequest:
    """What is asked of a graph on a device."""

    graph: OperatorGraph
    device: Device
    training: bool
    quality: Mapping[str, Mapping[str, float]] | None
    """Loss by operator and format; None where quality does not count."""
    fixed: Mapping[str, Format]
    tie: Tying
    state_bytes: float = 0.0
    """Bytes of gradient and optimizer for each trained weight, which training keeps."""
    exposed_gradients: float = 1.0
    """Share of the exchange of gradients between devices that does not hide behind the backward pass."""


def usual_state_bytes(base: Format, optimizer_bytes: float | None) -> float:
    """Of a gradient in the base format, and of Adam: two moments, and for 16-bit weights a master copy, in fp32 each."""
    adam = 8.0 if BITS[base] >= _FULL else 12.0
    return BITS[base] / 8.0 + (adam if optimizer_bytes is None else optimizer_bytes)


def format_problem(request: GraphRequest, objective: str, budgets: Figures) -> Written:
    """Layers and links of all operators that move anything."""
    pricing = Pricing(request)
    nodes = [node for node in request.graph.nodes if not is_view(node)]
    offered = offered_formats(request, pricing)
    layers = {node.name: {dtype: pricing.figures(node, dtype) for dtype in offered[node.name]} for node in nodes}
    links = list[tuple[str, str, Pairs]]()
    for node in nodes:
        for tensor in dict.fromkeys(pricing.origin.get(name, name) for name in node.inputs):
            maker = pricing.maker.get(tensor)
            if maker is None:
                entering = {
                    dtype: pricing.conversion(tensor, request.device.base, pricing.taken(node, dtype)) for dtype in offered[node.name]
                }
                layers[node.name] = {dtype: added(own, entering[dtype]) for dtype, own in layers[node.name].items()}
                continue
            pairs = {
                (dtype, next_dtype): pricing.conversion(tensor, pricing.written(maker, dtype), pricing.taken(node, next_dtype))
                for dtype in offered[maker.name]
                for next_dtype in offered[node.name]
            }
            if any(any(figures.values()) for figures in pairs.values()):
                links.append((maker.name, node.name, pairs))
    return Written(layers, links, objective, budgets, (*pricing.sharing, *_ties(request, offered)))


def seconds_at_peak(request: GraphRequest) -> dict[str, dict[str, float]]:
    """Seconds of the multiply-adds of each operator at the device's peak, by format; training has them three times."""
    passes = 6.0 if request.training else 2.0
    peaks = {dtype: float(hardware.throughput) for dtype, hardware in request.device.formats.items()}
    return {node.name: {dtype: passes * node.macs / peak for dtype, peak in peaks.items()} for node in request.graph.nodes if node.macs}


def is_view(node: Node) -> bool:
    return OPERATORS.get(node.operator, OPERATORS["other"]).priced == "view"


def has_operands(node: Node) -> bool:
    return node.operator in _WITH_OPERANDS and node.product is not None


def offered_formats(request: GraphRequest, pricing: "Pricing") -> dict[str, tuple[str, ...]]:
    """Formats of every operator, the base first."""
    base, formats = request.device.base, tuple(request.device.formats)
    found = operand_formats(request)
    for node in request.graph.nodes:
        if node.name in found or is_view(node):
            continue
        after = [taker for tensor in node.outputs for taker in pricing.takers.get(tensor, ()) if has_operands(taker)]
        wanted = {dtype for taker in after for dtype in found[taker.name] if BITS[dtype] < BITS[base]}
        fuses = node.operator in _FUSING and len(node.outputs) == 1
        found[node.name] = (base, *(dtype for dtype in formats if dtype in wanted)) if fuses else (base,)
    return found


def operand_formats(request: GraphRequest) -> dict[str, tuple[str, ...]]:
    """Formats of operators with operands; of those that share weights what all have, and a ValueError where that is nothing."""
    base, formats = request.device.base, tuple(request.device.formats)
    found, changed = dict[str, tuple[str, ...]](), True
    for node in (node for node in request.graph.nodes if has_operands(node)):
        known = (
            formats
            if request.quality is None
            else tuple(dtype for dtype in formats if dtype == base or dtype in request.quality.get(node.name, {}))
        )
        found[node.name] = (request.fixed[node.name],) if node.name in request.fixed else known
    while changed:
        changed = False
        for names in sharing_operators(request.graph):
            common = tuple(dtype for dtype in found[names[0]] if all(dtype in found[name] for name in names))
            if not common:
                raise ValueError(f"{names[0]} and {names[-1]} share weights and have no format in common (offer or fix the same)")
            changed = changed or any(len(found[name]) > len(common) for name in names)
            found |= dict.fromkeys(names, common)
    return found


def unused_losses(request: GraphRequest) -> Iterator[str]:
    """Sentences on losses of quality that no choice can have: each reason with the layers and formats that it concerns."""
    offered, device_name = operand_formats(request), request.device.name
    has, nodes = request.device.known, {node.name: node for node in request.graph.nodes}
    found = dict[str, list[str]]()
    for layer, losses in (request.quality or {}).items():
        for dtype in losses:
            if layer in offered and dtype in offered[layer]:
                continue
            if not has_operands(nodes[layer]):
                reason = f"{nodes[layer].operator} stays in {request.device.base}"
            elif dtype not in request.device.formats:
                reason = f"{dtype} is not among formats" if dtype in has else f"{device_name} has no peak in {dtype}"
            else:
                reason = "the layer is fixed" if layer in request.fixed else "layers that share its weights do not have the format"
            found.setdefault(reason, []).append(f"{layer} in {dtype}")
    for reason, cases in found.items():
        more = f" and {len(cases) - _NAMED:,} more" if len(cases) > _NAMED else ""
        yield f"losses that are not used, as {reason}: {', '.join(cases[:_NAMED])}{more}"


def _holders(graph: OperatorGraph) -> dict[tuple[str, bool], list[str]]:
    """Operators that take weights, by the name of these and whether they take them as operands."""
    found = dict[tuple[str, bool], list[str]]()
    for node in graph.nodes:
        for name in () if is_view(node) else dict.fromkeys(node.weights):
            found.setdefault((name, has_operands(node)), []).append(node.name)
    return found


def sharing_operators(graph: OperatorGraph) -> tuple[tuple[str, ...], ...]:
    """Operators with operands that share weights, which take one strategy."""
    return tuple(dict.fromkeys(tuple(names) for (_, operands), names in _holders(graph).items() if operands and len(names) > 1))


def _ties(request: GraphRequest, offered: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Operators that are alike: of the same place in repeated blocks, or of the same type."""
    positions = group_of(request.graph)
    groups = dict[str, object]()
    for number, node in enumerate(request.graph.nodes):
        if request.tie == "none" or len(offered.get(node.name, ())) < 2 or node.name in request.fixed:
            continue
        if request.tie == "operators":
            groups[node.name] = node.operator, tuple(offered[node.name])
        elif number in positions:
            block, _, position = positions[number]
            groups[node.name] = block, position, tuple(offered[node.name])
    return ties_by(groups)


def added(first: Figures, second: Figures) -> Figures:
    return {name: first.get(name, 0.0) + second.get(name, 0.0) for name in dict.fromkeys((*first, *second))}


class Pricing:
    """Figures of operators and conversions, each priced once."""

    def __init__(self, request: GraphRequest) -> None:
        graph = request.graph
        self.request, self.base = request, request.device.base
        self.rows = {node.name: row for row, node in enumerate(graph.nodes)}
        self.origin = dict[str, str]()
        for node in graph.nodes:
            if is_view(node) and node.inputs:
                self.origin |= dict.fromkeys(node.outputs, self.origin.get(node.inputs[0], node.inputs[0]))
        self.maker = {tensor: node for node in graph.nodes if not is_view(node) for tensor in node.outputs}
        self.takers = dict[str, list[Node]]()
        for node in graph.nodes:
            for tensor in () if is_view(node) else node.inputs:
                self.takers.setdefault(self.origin.get(tensor, tensor), []).append(node)
        columns = columns_of(graph)
        self.times, self.energies = dict[str, Array](), dict[str, Array]()
        for dtype, hardware in request.device.formats.items():
            costs = graph_costs(columns, BITS[dtype] / 8.0, hardware)
            self.times[dtype], self.energies[dtype] = (total_cost(costs, request.training, figure) for figure in ("time", "energy"))
        self.saved_tensors = set(kept_tensors(graph)) if request.training else set[str]()
        self.casts = dict[tuple[str, float], tuple[float, float]]()
        self.weights = {name: weights.shape for name, weights in graph.weights.items()}
        self.holders, self.sharing = _holders(graph), sharing_operators(graph)
        self.owner = {name: nodes[0] for (name, _), nodes in reversed(self.holders.items())}
        """The operator that counts gradient and optimizer of weights."""

    def figures(self, node: Node, dtype: str) -> Figures:
        """Of an operator whose operands, or whose output, are in a format."""
        row, base = self.rows[node.name], self.base
        operands = has_operands(node)
        priced = dtype if operands else base
        time, energy = float(self.times[priced][row]), float(self.energies[priced][row])
        if not operands and dtype != base:  # what it writes is narrower, of all that it reads and writes
            time, energy = self.narrower(node, dtype, time, energy)
        size = values_in(self._stored_weights(node, priced), self.weights) * BITS[priced] / 8.0
        saved = sum(prod(self.request.graph.tensors[name]) for name in node.outputs if name in self.saved_tensors)
        found = {
            "time": time,
            "energy": energy,
            "size": size,
            "memory": size + saved * BITS[base if operands else dtype] / 8.0 + self._state(node),
            "bops": node.macs * (BITS[dtype] ** 2 if operands else BITS[base] ** 2),
        }
        if self.request.quality is not None:
            found["quality"] = self.request.quality.get(node.name, {}).get(dtype, 0.0) if operands else 0.0
        return found

    def _state(self, node: Node) -> float:
        """Bytes of gradients and optimizer of the weights that count here."""
        weights = self.request.graph.weights
        own = [name for name in dict.fromkeys(node.weights) if weights[name].trained and self.owner.get(name) == node.name]
        return values_in(own, self.weights) * self.request.state_bytes if self.request.training else 0.0

    def _stored_weights(self, node: Node, dtype: str) -> list[str]:
        """Weights of an operator in a format, except those that an operator before it stores in the same one."""
        operands = has_operands(node)
        in_base = dtype == self.base or {dtype, self.base} <= {"fp32", "tf32"}
        first = (name for name in dict.fromkeys(node.weights) if self.holders[name, operands][0] == node.name)
        return [name for name in first if not (operands and in_base and (name, False) in self.holders)]

    def narrower(self, node: Node, dtype: str, time: float, energy: float, share: float = 1.0) -> tuple[float, float]:
        """An operator that moves a share of its bytes, with the output in a narrower format: by the share of bytes that it saves."""
        less = narrow_saving(self.request, node, dtype, self.request.device.formats[self.base], share)
        return max(time - float(np.asarray(less.time).item()), 0.0), max(energy - float(np.asarray(less.energy).item()), 0.0)

    def written(self, node: Node, dtype: str) -> str:
        """The format in which the output of an operator lies in memory."""
        return self.base if has_operands(node) else dtype

    def taken(self, node: Node, dtype: str) -> str:
        """The format in which an operator needs its input."""
        return dtype if has_operands(node) else self.base

    def conversion(self, tensor: str, lies: str, needed: str, share: float = 1.0) -> Figures:
        """Seconds and joules between the format in which a share of a tensor lies and the one in which it is needed."""
        if lies == needed or (lies == self.base and BITS[needed] >= BITS[lies]):
            return {"time": 0.0, "energy": 0.0}
        bits = 0.0
        if lies != self.base:  # written in the base format, too
            bits += BITS[self.base]
        if needed != self.base:
            bits += BITS[self.base] + BITS[needed]
        bits *= share
        if (tensor, bits) not in self.casts:
            size = prod(self.request.graph.tensors[tensor]) * bits / 8.0 * (2.0 if self.request.training else 1.0)
            cost = stream_cost(size, 0.0, self.request.device.formats[self.base])
            self.casts[tensor, bits] = float(np.asarray(cost.time).item()), float(np.asarray(cost.energy).item())
        return dict(zip(("time", "energy"), self.casts[tensor, bits], strict=True))


def narrow_saving(request: GraphRequest, node: Node, dtype: str, hardware: Hardware, share: float = 1.0) -> Cost:
    """What an operator saves that writes a share of its output in a narrower format than the base."""
    tensors, base = request.graph.tensors, request.device.base
    values = share * sum(prod(tensors[name]) for name in (*node.inputs, *node.outputs))
    saved = share * sum(prod(tensors[name]) for name in node.outputs) * (1.0 - BITS[dtype] / BITS[base])
    all_bytes = stream_cost(values * BITS[base] / 8.0, 0.0, hardware)
    fewer = stream_cost((values - saved) * BITS[base] / 8.0, 0.0, hardware)
    return Cost(all_bytes.time - fewer.time, all_bytes.energy - fewer.energy)


def total_cost(costs: GraphCosts, training: bool, figure: str) -> Array:
    """Forward, and backward in training."""
    forward, backward = (np.ravel(np.asarray(getattr(side, figure), np.float64)) for side in (costs.forward, costs.backward))
    return forward + backward if training else forward
