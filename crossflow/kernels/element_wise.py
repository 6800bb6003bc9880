"""What a layer does beside its products: norms, residual additions, activations, the routing of tokens and casts, each a stream."""

from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from crossopt.crossflow.exchanges.routing import permutations
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.casts import casts
from crossopt.crossflow.ranks import Ranks, expert_split, local_groups, routed_tokens
from crossopt.crossflow.roofline import NOTHING, Cost, stream_cost
from crossopt.crossflow.workload import Transformer

PASSES = ((2.0, 2.0, 3.0), (3.0, 3.0, 5.0))
"""Passes over its values of a norm, of GELU and of SwiGLU, forward and backward."""
_EAGER = ((18.0, 2.0, 5.0), (36.0, 3.0, 9.0))
"""The same in 16 bits where each step is a kernel and norms go by single precision (RMSNorm of torchtitan's and Meta's Llama): to it 3,
square 4, mean 2, times the root 4, back 3, times the scale 2; backward 6 for the scale, 3, 12 for both factors, 12 for the square and the
sum of both ways, 3. A gate is bent (2) and multiplied (3); backward two products (6) and the bend (3)."""
_EAGER_KERNELS = ((6.0, 1.0, 2.0), (13.0, 1.0, 3.0))
_ROTATION, _ROTATION_KERNELS = 10.0, 3.0
"""Of queries and keys, one way: to single precision 3, turned 4, back 3."""


def passes_of(model: Transformer, backward: bool) -> tuple[float, float, float]:
    """Of a norm, of GELU and of SwiGLU."""
    return (_EAGER if model.eager else PASSES)[backward]


def _kernels(model: Transformer, backward: bool) -> tuple[float, float, float]:
    return _EAGER_KERNELS[backward] if model.eager else (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class ElementWise:
    """What a layer does beside its products: the norms, the two residual additions, the activation, routing, and casts to fewer bits."""

    norms: Cost
    residuals: Cost
    activation: Cost
    routing: Cost
    casts: Cost
    sums: Cost = NOTHING
    """Of gradients of one input, by the products that take it."""

    def total(self) -> Cost:
        return self.norms + self.residuals + self.activation + self.routing + self.casts + self.sums


def element_wise(model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> ElementWise:
    """Norms, two residual additions (with dropout), the activation, and for experts the sorting of tokens and back."""
    size, mask = model.activation_bytes, 1.0 if model.dropout else 0.0
    elements = ranks.tokens(model) / ranks.norm_split() * model.hidden
    return ElementWise(
        norms=_norms(model, ranks, hardware, backward),
        residuals=stream_cost(2.0 * (3.0 * size + mask) * elements, 4.0 * elements, hardware, 2.0),
        activation=reduce(add, activations(model, ranks, hardware, backward)[::-1]),
        routing=permutations(model, ranks, hardware),
        casts=casts(model, ranks, hardware, backward),
        sums=_sums(model, ranks, hardware) if backward and model.apart else NOTHING,
    )


def _sums(model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    """Three gradients and two, each read, and the sums written. What tensor ranks scatter is summed whole and by kernels of its own; else
    the norm before does it, which reads one of them anyway and writes nothing more (wq, wk, wv, w1 and w3 are linear layers of their own
    in torchtitan/models/llama3/model/model.py, 018740b7, and PyTorch's compiler fuses sums with what follows)."""
    taken, made = (5.0, 2.0) if model.gated else (3.0, 1.0)
    whole = ranks.tokens(model) * model.hidden * model.activation_bytes
    alone = np.greater(ranks.tensor, 1.5)
    passes = np.where(alone, taken + made, taken - made)
    return stream_cost(passes * whole, (taken - made) * whole / model.activation_bytes, hardware, np.where(alone, made, 0.0))


def _norms(model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> Cost:
    """Those of width hidden, and of queries and keys or of the latents."""
    wide = wide_norms(model, ranks, hardware, backward, float(model.norms))
    wide = wide + narrow_norms(model, ranks, hardware, backward) if model.latent or model.qk_norm else wide
    return wide + _rotations(model, ranks, hardware) if model.eager and not model.learned_positions else wide


def _rotations(model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    turned = ranks.tokens(model) * (model.heads / ranks.tensor + local_groups(model, ranks)) * float(model.head_width)
    return stream_cost(_ROTATION * model.activation_bytes * turned, 6.0 * turned, hardware, 2.0 * _ROTATION_KERNELS)


def narrow_norms(model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> Cost:
    size, passes = model.activation_bytes, passes_of(model, backward)[0]
    if model.latent:
        narrow = ranks.tokens(model) / ranks.norm_split() * float(model.query_rank + model.kv_rank)
        return stream_cost(passes * size * narrow, 8.0 * narrow, hardware, 2.0 if model.query_rank else 1.0)
    if model.qk_norm:
        narrow = ranks.tokens(model) * (model.heads / ranks.tensor + local_groups(model, ranks)) * float(model.head_width)
        return stream_cost(passes * size * narrow, 8.0 * narrow, hardware, 2.0)
    return NOTHING


def wide_norms(model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool, count: float) -> Cost:
    elements, passes = ranks.tokens(model) / ranks.norm_split() * model.hidden, passes_of(model, backward)[0]
    kernels = count * _kernels(model, backward)[0]
    return stream_cost(count * passes * model.activation_bytes * elements, 8.0 * count * elements, hardware, kernels)


def activations(model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> tuple[Cost, Cost]:
    """Over the width of a dense part or of shared experts, and of the rank's experts."""
    size, inner = model.activation_bytes, routed_tokens(model, ranks) * model.expert_width / expert_split(model, ranks)
    passes, kernels = (of(model, backward)[1 + model.gated] for of in (passes_of, _kernels))
    cost = stream_cost(passes * size * inner, 8.0 * inner, hardware, kernels)
    if model.experts == 1:
        return cost, NOTHING
    if not model.shared_experts:
        return NOTHING, cost
    inner = ranks.tokens(model) * (model.shared_experts * model.expert_width) / ranks.tensor
    return stream_cost(passes * size * inner, 8.0 * inner, hardware, kernels), cost
