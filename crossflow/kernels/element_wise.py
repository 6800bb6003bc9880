"""What a layer does beside its products: norms, residual additions, activations, the routing of tokens and casts, each a stream."""

from dataclasses import dataclass
from functools import reduce
from operator import add

from crossopt.crossflow.exchanges.routing import permutations
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.casts import casts
from crossopt.crossflow.ranks import Ranks, expert_split, local_groups, routed_tokens
from crossopt.crossflow.roofline import NOTHING, Cost, stream_cost
from crossopt.crossflow.workload import Transformer

PASSES = ((2.0, 2.0, 3.0), (3.0, 3.0, 5.0))
"""Passes over its values of a norm, of GELU and of SwiGLU, forward and backward."""


@dataclass(frozen=True, slots=True)
class ElementWise:
    """What a layer does beside its products: the norms, the two residual additions, the activation, routing, and casts to fewer bits."""

    norms: Cost
    residuals: Cost
    activation: Cost
    routing: Cost
    casts: Cost

    def total(self) -> Cost:
        return self.norms + self.residuals + self.activation + self.routing + self.casts


def element_wise(model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> ElementWise:
    """Norms, two residual additions (with dropout), the activation, and for experts the sorting of tokens and back."""
    size, mask = model.activation_bytes, 1.0 if model.dropout else 0.0
    elements = ranks.tokens(model) / ranks.norm_split() * model.hidden
    return ElementWise(
        norms=_norms(model, ranks, hardware, PASSES[backward][0]),
        residuals=stream_cost(2.0 * (3.0 * size + mask) * elements, 4.0 * elements, hardware, 2.0),
        activation=reduce(add, activations(model, ranks, hardware, PASSES[backward][1 + model.gated])[::-1]),
        routing=permutations(model, ranks, hardware),
        casts=casts(model, ranks, hardware, backward),
    )


def _norms(model: Transformer, ranks: Ranks, hardware: Hardware, passes: float) -> Cost:
    """Those of width hidden, and of queries and keys or of the latents."""
    wide = wide_norms(model, ranks, hardware, passes, float(model.norms))
    return wide + narrow_norms(model, ranks, hardware, passes) if model.latent or model.qk_norm else wide


def narrow_norms(model: Transformer, ranks: Ranks, hardware: Hardware, passes: float) -> Cost:
    size = model.activation_bytes
    if model.latent:
        narrow = ranks.tokens(model) / ranks.norm_split() * float(model.query_rank + model.kv_rank)
        return stream_cost(passes * size * narrow, 8.0 * narrow, hardware, 2.0 if model.query_rank else 1.0)
    if model.qk_norm:
        narrow = ranks.tokens(model) * (model.heads / ranks.tensor + local_groups(model, ranks)) * float(model.head_width)
        return stream_cost(passes * size * narrow, 8.0 * narrow, hardware, 2.0)
    return NOTHING


def wide_norms(model: Transformer, ranks: Ranks, hardware: Hardware, passes: float, count: float) -> Cost:
    elements = ranks.tokens(model) / ranks.norm_split() * model.hidden
    return stream_cost(count * passes * model.activation_bytes * elements, 8.0 * count * elements, hardware, count)


def activations(model: Transformer, ranks: Ranks, hardware: Hardware, passes: float) -> tuple[Cost, Cost]:
    """Over the width of a dense part or of shared experts, and of the rank's experts."""
    size, inner = model.activation_bytes, routed_tokens(model, ranks) * model.expert_width / expert_split(model, ranks)
    cost = stream_cost(passes * size * inner, 8.0 * inner, hardware)
    if model.experts == 1:
        return cost, NOTHING
    if not model.shared_experts:
        return NOTHING, cost
    inner = ranks.tokens(model) * (model.shared_experts * model.expert_width) / ranks.tensor
    return stream_cost(passes * size * inner, 8.0 * inner, hardware), cost
