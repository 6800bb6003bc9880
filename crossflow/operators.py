"""A transformer as a graph of operators on one device each, with the full model's cost of each operator.

A layer is norm -> queries, keys, values -> attention -> projection -> addition -> norm -> (router ->) inner product -> activation -> outer
product -> addition; each addition also takes what came into its norm. Parallel blocks both begin at the layer's input. Projections to
latents and from them are one operator, and so are shared experts with those that tokens choose; layers that attend to all tokens come
evenly among those with a window. Before the layers comes the embedding, after them the head with the loss. The operators of a layer take
together as long as `crossflow.layer` says of a layer that is not split, without the launching of kernels and the exchanges of tensor,
context and expert parallelism.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from crossopt.crossflow import parameters
from crossopt.crossflow.edges import embedding, head
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels import layer_kernels
from crossopt.crossflow.plan import Ranks
from crossopt.crossflow.roofline import Cost, backward_costs, product_cost
from crossopt.crossflow.workload import Transformer, kind_of_layer

EMBEDDING_FORWARD, HEAD_FORWARD = 2.0 / 5.0, 1.0 / 3.0
"""Two of the embedding's five passes and one of the head's three products are forward."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One node of the graph, for one microbatch."""

    name: str
    forward: float
    """Seconds."""
    backward: float
    weights: float
    """How many."""
    output: float
    """Bytes of activations passed to its successors."""
    after: tuple[str, ...]
    """Operators whose outputs it takes."""


def operators(model: Transformer, hardware: Hardware, microbatch: int) -> tuple[Operator, ...]:
    """All operators of the network in topological order."""
    alone = _alone(microbatch, len(hardware.links))
    width = alone.tokens(model) * model.hidden * model.activation_bytes
    first = embedding(model, alone, hardware)
    nodes = [Operator("embedding", *_halves(first, EMBEDDING_FORWARD), float(parameters.embedding_parameters(model)), _number(width), ())]
    for number in range(1, model.stack + 1):
        nodes += _layer(kind_of_layer(model, number), alone, hardware, f"layer {number}", nodes[-1].name)
    last = head(model, alone, hardware)
    weights = model.vocabulary * model.hidden + parameters.norm_size(model)  # a tied head may be elsewhere and has a copy of its own
    weights += parameters.head_biases(model) + model.prediction_layers * parameters.prediction_parameters(model)
    nodes.append(Operator("head", *_halves(last, HEAD_FORWARD), float(weights), 0.0, (nodes[-1].name,)))
    return tuple(nodes)


def blocks(nodes: tuple[Operator, ...]) -> tuple[Operator, ...]:
    """The graph with one node per layer."""
    groups: dict[str, list[Operator]] = {}
    for node in nodes:
        groups.setdefault(_layer_of(node.name), []).append(node)
    return tuple(
        Operator(
            name=name,
            forward=sum(node.forward for node in group),
            backward=sum(node.backward for node in group),
            weights=sum(node.weights for node in group),
            output=group[-1].output,
            after=tuple(dict.fromkeys(_layer_of(source) for node in group for source in node.after if _layer_of(source) != name)),
        )
        for name, group in groups.items()
    )


def _layer_of(name: str) -> str:
    return name.partition(":")[0]


def _layer(model: Transformer, alone: Ranks, hardware: Hardware, name: str, source: str) -> Iterator[Operator]:
    """The operators of one layer, after the given operator."""
    sides = tuple(layer_kernels.element_wise(model, alone, hardware, backward) for backward in (False, True))
    products = _products(model, alone, hardware)
    norms, residuals, activation, routing = (
        [_of(side, part) for side in sides] for part in ("norms", "residuals", "activation", "routing")
    )
    core = [layer_kernels.attention_core(model, alone, hardware), layer_kernels.attention_core_backward(model, alone, hardware)]
    half_norms, half_residuals = ([cost.times(0.5) for cost in pair] for pair in (norms, residuals))
    routed = [("router", [cost + added for cost, added in zip(products["router"], routing, strict=True)])] if model.experts > 1 else []
    steps = [
        ("norm 1", half_norms),
        (layer_kernels.QUERIES, products[layer_kernels.QUERIES]),
        ("attention", core),
        (layer_kernels.OUTPUT, products[layer_kernels.OUTPUT]),
        ("addition 1", half_residuals),
        ("norm 2", half_norms),
        *routed,
        ("inner product", products["inner product"]),
        ("activation", activation),
        ("outer product", products["outer product"]),
        ("addition 2", half_residuals),
    ]
    weights, outputs = _weights(model), _outputs(model, alone)
    before = source
    taken = {"addition 1": source, "addition 2": f"{name}: addition 1"}
    for step, costs in steps:
        before = source if model.parallel_blocks and step == "norm 2" else before
        also = (taken[step],) if step in taken else ()
        forward, backward = (_number(cost.time) for cost in costs)
        yield Operator(f"{name}: {step}", forward, backward, weights.get(step, 0.0), outputs[step], (before, *also))
        before = f"{name}: {step}"


def _products(model: Transformer, alone: Ranks, hardware: Hardware) -> dict[str, list[Cost]]:
    """Products forward and backward, by operator."""
    found: dict[str, list[Cost]] = {}
    for name, product in layer_kernels.named_projections(model, alone):
        own = name.removeprefix("shared ")
        own = own if own in {layer_kernels.OUTPUT, "router", "inner product", "outer product"} else layer_kernels.QUERIES
        size = model.activation_bytes if name in layer_kernels.WIDE else model.value_bytes
        both = [product_cost(product, size, hardware), *backward_costs((product,), size, hardware)]
        both = [
            cost + layer_kernels.cast(name, product, model, alone, hardware, back) for back, cost in zip((False, True), both, strict=True)
        ]
        found[own] = [cost + added for cost, added in zip(found[own], both, strict=True)] if own in found else both
    return found


def _of(side: layer_kernels.ElementWise, part: str) -> Cost:
    found: Cost = getattr(side, part)
    return found


def _weights(model: Transformer) -> dict[str, float]:
    """Number of weights of a layer, by operator."""
    attention, output = parameters.attention_parameters(model), model.hidden * model.heads * model.value_width
    output += model.hidden if model.biased("projection") else 0
    inner, experts = (model.projections - 1) * model.expert_width, model.experts + model.shared_experts
    inner = inner * (model.hidden + (1 if model.biased("feed-forward") else 0))
    return {
        "norm 1": parameters.norm_parameters(model) / 2,
        "norm 2": parameters.norm_parameters(model) / 2,
        layer_kernels.QUERIES: float(attention - output),
        layer_kernels.OUTPUT: float(output),
        "router": float(parameters.router_parameters(model)),
        "inner product": float(experts * inner),
        "outer product": float(experts * (parameters.expert_parameters(model) - inner)),
    }


def _outputs(model: Transformer, alone: Ranks) -> dict[str, float]:
    """Output bytes of each operator of a layer."""
    tokens, size = _number(alone.tokens(model)), model.activation_bytes
    routed = tokens * model.experts_per_token
    heads, keys = model.heads * model.value_width, model.heads * model.score_width
    keys_and_values = model.attention_groups * (model.score_width + model.value_width)
    inner = routed + tokens * model.shared_experts
    wide = {
        layer_kernels.QUERIES: tokens * (keys + keys_and_values) * size,
        "attention": tokens * heads * size,
        "router": routed * model.hidden * size,
        "inner product": inner * (model.projections - 1) * model.expert_width * size,
        "activation": inner * model.expert_width * size,
    }
    narrow = ("norm 1", layer_kernels.OUTPUT, "addition 1", "norm 2", "outer product", "addition 2")
    return {**wide, **dict.fromkeys(narrow, tokens * model.hidden * size)}


def _halves(cost: Cost, forward: float) -> tuple[float, float]:
    """Seconds forward and backward."""
    return _number(cost.time) * forward, _number(cost.time) * (1.0 - forward)


def _alone(microbatch: int, levels: int) -> Ranks:
    """Ranks of a device that computes its layers alone."""
    single, members = np.float64(1.0), (np.float64(1.0),) * levels
    return Ranks(single, single, single, np.float64(microbatch), np.float64(0.0), members, members, members)


def _number(value: object) -> float:
    return float(np.asarray(value).item())
