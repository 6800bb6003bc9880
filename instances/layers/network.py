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
from dataclasses import dataclass, replace
from math import prod
from typing import Final, Literal

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.hardware import Hardware, Memory
from crossopt.crossflow.operator_costs import OPERATORS, GraphCosts, columns_of, graph_costs, kept_tensors
from crossopt.crossflow.operator_graph import Node, OperatorGraph, group_of, values_in
from crossopt.crossflow.roofline import Cost, stream_cost
from crossopt.crossflow.workload import Precision
from crossopt.instances.catalogue.registry import build_device, device
from crossopt.instances.layers.problem import Figures, Pairs, Written, ties_by

Format = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int16", "int8", "int4", "fp4"]
BITS: Final[Mapping[str, float]] = {
    "fp32": 32.0,
    "tf32": 32.0,
    "bf16": 16.0,
    "fp16": 16.0,
    "int16": 16.0,
    "fp8": 8.0,
    "int8": 8.0,
    "fp4": 4.5,
    "int4": 4.0,
}
"""Bits of a value in memory. In fp4, 16 values share an 8-bit scale (NVFP4); tf32 is stored as fp32."""
Tying = Literal["none", "blocks", "operators"]
_WITH_OPERANDS = frozenset(("product", "convolution", "transposed convolution", "recurrent"))
_FUSING = frozenset(("norm", "activation", "pooling", "move", "gate", "local norm"))
"""Operators that write their output in the format that is taken next."""
_FULL = 32.0
_NAMED = 3
"""Layers that a sentence names."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device in every format that is asked for."""

    name: str
    base: Format
    formats: dict[str, Hardware]
    known: tuple[str, ...] = ()
    """Formats of which a peak is known, offered or not."""


_NO_MEMORY = Memory(0.0, 0.0)
NO_DEVICE = Hardware("", 0.0, 0.0, 0.0, _NO_MEMORY, _NO_MEMORY, _NO_MEMORY, _NO_MEMORY, ())
"""In place of a device that is not known yet."""


def device_in(name: str, base: Format, formats: Sequence[Format], peaks: Mapping[str, float]) -> Device:
    """The device with its peak in each format: its own, or the one that is stated; a ValueError where there is none."""
    entry = device(name)
    peaks = {**entry.integer_peak, **peaks}
    known: dict[Format, Precision] = {"fp32": "fp32", "bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "fp4": "fp4"}
    usual = _first(entry.peak, base)
    found = dict[str, Hardware]()
    for one in dict.fromkeys((base, *formats)):
        if one in known and one in entry.peak and one not in peaks:
            found[one] = build_device(entry, name, known[one], 2)
        elif one in peaks:
            own = build_device(entry, name, usual, 2)
            share = own.throughput / peaks[one]
            wide = entry.peak["bf16"] / peaks[one] if BITS[one] <= 8 and "bf16" in entry.peak else 1.0
            found[one] = replace(own, throughput=peaks[one], energy_per_flop=own.energy_per_flop * share, wide_share=wide)
        else:
            has = ", ".join([*entry.peak, *entry.integer_peak])
            raise ValueError(f"{name} has no peak in {one} (it has {has}; state one: `peaks: {{{one}: 500 TFLOP/s}}`)")
    return Device(name, base, found, (*entry.peak, *peaks))


def _first(peaks: Mapping[str, float], base: str) -> Precision:
    """A precision that the device has, the base where it is one."""
    for one in ("bf16", "fp16", "fp32"):
        if base == one and one in peaks:
            return one
    return next(one for one in ("bf16", "fp16", "fp32") if one in peaks)


@dataclass(frozen=True, slots=True)
class Asked:
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


def format_problem(asked: Asked, objective: str, budgets: Figures) -> Written:
    """Layers and links of all operators that move anything."""
    pricing = Pricing(asked)
    nodes = [node for node in asked.graph.nodes if not is_view(node)]
    offered = offered_formats(asked, pricing)
    layers = {node.name: {one: pricing.figures(node, one) for one in offered[node.name]} for node in nodes}
    links = list[tuple[str, str, Pairs]]()
    for node in nodes:
        for tensor in dict.fromkeys(pricing.origin.get(name, name) for name in node.inputs):
            maker = pricing.maker.get(tensor)
            if maker is None:
                entering = {one: pricing.conversion(tensor, asked.device.base, pricing.taken(node, one)) for one in offered[node.name]}
                layers[node.name] = {one: added(own, entering[one]) for one, own in layers[node.name].items()}
                continue
            pairs = {
                (one, other): pricing.conversion(tensor, pricing.written(maker, one), pricing.taken(node, other))
                for one in offered[maker.name]
                for other in offered[node.name]
            }
            if any(any(figures.values()) for figures in pairs.values()):
                links.append((maker.name, node.name, pairs))
    return Written(layers, links, objective, budgets, (*pricing.sharing, *_ties(asked, offered)))


def is_view(node: Node) -> bool:
    return OPERATORS.get(node.operator, OPERATORS["other"]).priced == "view"


def has_operands(node: Node) -> bool:
    return node.operator in _WITH_OPERANDS and node.product is not None


def offered_formats(asked: Asked, pricing: "Pricing") -> dict[str, tuple[str, ...]]:
    """Formats of every operator, the base first."""
    base, formats = asked.device.base, tuple(asked.device.formats)
    found = operand_formats(asked)
    for node in asked.graph.nodes:
        if node.name in found or is_view(node):
            continue
        after = [taker for tensor in node.outputs for taker in pricing.takers.get(tensor, ()) if has_operands(taker)]
        wanted = {one for taker in after for one in found[taker.name] if BITS[one] < BITS[base]}
        fuses = node.operator in _FUSING and len(node.outputs) == 1
        found[node.name] = (base, *(one for one in formats if one in wanted)) if fuses else (base,)
    return found


def operand_formats(asked: Asked) -> dict[str, tuple[str, ...]]:
    """Formats of operators with operands; of those that share weights what all have, and a ValueError where that is nothing."""
    base, formats = asked.device.base, tuple(asked.device.formats)
    found, changed = dict[str, tuple[str, ...]](), True
    for node in (node for node in asked.graph.nodes if has_operands(node)):
        known = (
            formats if asked.quality is None else tuple(one for one in formats if one == base or one in asked.quality.get(node.name, {}))
        )
        found[node.name] = (asked.fixed[node.name],) if node.name in asked.fixed else known
    while changed:
        changed = False
        for names in sharing_operators(asked.graph):
            common = tuple(one for one in found[names[0]] if all(one in found[name] for name in names))
            if not common:
                raise ValueError(f"{names[0]} and {names[-1]} share weights and have no format in common (offer or fix the same)")
            changed = changed or any(len(found[name]) > len(common) for name in names)
            found |= dict.fromkeys(names, common)
    return found


def unused_losses(asked: Asked) -> Iterator[str]:
    """Sentences on losses of quality that no choice can have: each reason with the layers and formats that it concerns."""
    offered, device_name = operand_formats(asked), asked.device.name
    has, nodes = asked.device.known, {node.name: node for node in asked.graph.nodes}
    found = dict[str, list[str]]()
    for layer, losses in (asked.quality or {}).items():
        for one in losses:
            if layer in offered and one in offered[layer]:
                continue
            if not has_operands(nodes[layer]):
                reason = f"{nodes[layer].operator} stays in {asked.device.base}"
            elif one not in asked.device.formats:
                reason = f"{one} is not among formats" if one in has else f"{device_name} has no peak in {one}"
            else:
                reason = "the layer is fixed" if layer in asked.fixed else "layers that share its weights do not have the format"
            found.setdefault(reason, []).append(f"{layer} in {one}")
    for reason, places in found.items():
        more = f" and {len(places) - _NAMED:,} more" if len(places) > _NAMED else ""
        yield f"losses that are not used, as {reason}: {', '.join(places[:_NAMED])}{more}"


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


def _ties(asked: Asked, offered: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Operators that are alike: of the same place in repeated blocks, or of the same type."""
    places = group_of(asked.graph)
    groups = dict[str, object]()
    for number, node in enumerate(asked.graph.nodes):
        if asked.tie == "none" or len(offered.get(node.name, ())) < 2 or node.name in asked.fixed:
            continue
        if asked.tie == "operators":
            groups[node.name] = node.operator, tuple(offered[node.name])
        elif number in places:
            block, _, place = places[number]
            groups[node.name] = block, place, tuple(offered[node.name])
    return ties_by(groups)


def added(one: Figures, other: Figures) -> Figures:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in dict.fromkeys((*one, *other))}


class Pricing:
    """Figures of operators and conversions, each priced once."""

    def __init__(self, asked: Asked) -> None:
        graph = asked.graph
        self.asked, self.base = asked, asked.device.base
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
        for one, hardware in asked.device.formats.items():
            costs = graph_costs(columns, BITS[one] / 8.0, hardware)
            self.times[one], self.energies[one] = (total_cost(costs, asked.training, figure) for figure in ("time", "energy"))
        self.kept = set(kept_tensors(graph)) if asked.training else set[str]()
        self.casts = dict[tuple[str, float], tuple[float, float]]()
        self.weights = {name: weights.shape for name, weights in graph.weights.items()}
        self.holders, self.sharing = _holders(graph), sharing_operators(graph)
        self.owner = {name: nodes[0] for (name, _), nodes in reversed(self.holders.items())}
        """The operator that counts gradient and optimizer of weights."""

    def figures(self, node: Node, one: str) -> Figures:
        """Of an operator whose operands, or whose output, are in a format."""
        row, base = self.rows[node.name], self.base
        operands = has_operands(node)
        priced = one if operands else base
        time, energy = float(self.times[priced][row]), float(self.energies[priced][row])
        if not operands and one != base:  # what it writes is narrower, of all that it reads and writes
            time, energy = self.narrower(node, one, time, energy)
        size = values_in(self._counted(node, priced), self.weights) * BITS[priced] / 8.0
        kept = sum(prod(self.asked.graph.tensors[name]) for name in node.outputs if name in self.kept)
        found = {
            "time": time,
            "energy": energy,
            "size": size,
            "memory": size + kept * BITS[base if operands else one] / 8.0 + self._state(node),
            "bops": node.macs * (BITS[one] ** 2 if operands else BITS[base] ** 2),
        }
        if self.asked.quality is not None:
            found["quality"] = self.asked.quality.get(node.name, {}).get(one, 0.0) if operands else 0.0
        return found

    def _state(self, node: Node) -> float:
        """Bytes of gradients and optimizer of the weights that count here."""
        weights = self.asked.graph.weights
        own = [name for name in dict.fromkeys(node.weights) if weights[name].trained and self.owner.get(name) == node.name]
        return values_in(own, self.weights) * self.asked.state_bytes if self.asked.training else 0.0

    def _counted(self, node: Node, one: str) -> list[str]:
        """Weights of an operator in a format, except those that an operator before it stores in the same one."""
        operands = has_operands(node)
        in_base = one == self.base or {one, self.base} <= {"fp32", "tf32"}
        first = (name for name in dict.fromkeys(node.weights) if self.holders[name, operands][0] == node.name)
        return [name for name in first if not (operands and in_base and (name, False) in self.holders)]

    def narrower(self, node: Node, one: str, time: float, energy: float, share: float = 1.0) -> tuple[float, float]:
        """An operator that moves a share of its bytes, with the output in a narrower format: by the share of bytes that it saves."""
        less = narrow_saving(self.asked, node, one, self.asked.device.formats[self.base], share)
        return max(time - float(np.asarray(less.time).item()), 0.0), max(energy - float(np.asarray(less.energy).item()), 0.0)

    def written(self, node: Node, one: str) -> str:
        """The format in which the output of an operator lies in memory."""
        return self.base if has_operands(node) else one

    def taken(self, node: Node, one: str) -> str:
        """The format in which an operator needs its input."""
        return one if has_operands(node) else self.base

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
            size = prod(self.asked.graph.tensors[tensor]) * bits / 8.0 * (2.0 if self.asked.training else 1.0)
            cost = stream_cost(size, 0.0, self.asked.device.formats[self.base])
            self.casts[tensor, bits] = float(np.asarray(cost.time).item()), float(np.asarray(cost.energy).item())
        return dict(zip(("time", "energy"), self.casts[tensor, bits], strict=True))


def narrow_saving(asked: Asked, node: Node, one: str, hardware: Hardware, share: float = 1.0) -> Cost:
    """What an operator saves that writes a share of its output in a narrower format than the base."""
    tensors, base = asked.graph.tensors, asked.device.base
    values = share * sum(prod(tensors[name]) for name in (*node.inputs, *node.outputs))
    saved = share * sum(prod(tensors[name]) for name in node.outputs) * (1.0 - BITS[one] / BITS[base])
    all_bytes = stream_cost(values * BITS[base] / 8.0, 0.0, hardware)
    fewer = stream_cost((values - saved) * BITS[base] / 8.0, 0.0, hardware)
    return Cost(all_bytes.time - fewer.time, all_bytes.energy - fewer.energy)


def total_cost(costs: GraphCosts, training: bool, figure: str) -> Array:
    """Forward, and backward in training."""
    forward, backward = (np.ravel(np.asarray(getattr(side, figure), np.float64)) for side in (costs.forward, costs.backward))
    return forward + backward if training else forward
