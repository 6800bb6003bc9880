"""Work outside the layers for one microbatch: the embedding on the first stage, head and loss on the last."""

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.collectives import all_reduce_time
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.hiding import tensor_exchange
from crossopt.crossflow.kernels.layer_kernels import PASSES
from crossopt.crossflow.layer import both_ways_costs
from crossopt.crossflow.plan import Ranks
from crossopt.crossflow.roofline import Cost, Product, stream_cost
from crossopt.crossflow.workload import Transformer

_VOCABULARY_ALIGNMENT = 128.0
"""The vocabulary is padded to a multiple of this number of tokens per tensor-parallel rank."""
_FUSED_PASSES, _FUSED_KERNELS = 5.0, 3.0
"""Of Transformer Engine's parallel cross entropy over logits as they are: one kernel reads them for the softmax, one reads them and writes
their gradients in their place, one reads and scales these (online_softmax_kernel, cross_entropy_kernel, element_mul_kernel of
common/triton/cross_entropy.py; others, 02965d2e, keep logits until the backward pass and make 3 passes). Unfused there are 13 over single
precision (Megatron-Core, tensor_parallel/cross_entropy.py, with casts from 16 bits and back: 1.5 + 1 + 2 + 2 + 1 + 2 and 2 + 1.5), and
`Efficiency.loss_passes` says how many it seems to be."""


def embedding(model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    """Gather forward and scatter-add backward of one microbatch on the first stage, with the all-reduce over the split vocabulary."""
    size = ranks.tokens(model) * model.hidden * model.activation_bytes
    cost = stream_cost(2.0 * size, 0.0, hardware)
    cost = cost if not model.all_trained else cost + stream_cost(3.0 * size, 0.0, hardware)
    return cost + Cost(embedding_exchange(model, ranks, hardware), 0.0, 0.0)


def embedding_exchange(model: Transformer, ranks: Ranks, hardware: Hardware) -> Real:
    """Seconds of that all-reduce, and of any other all-reduce of activations outside the layers."""
    return tensor_exchange(ranks.tokens(model) * model.hidden * model.activation_bytes, ranks, hardware)


def head(model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    """Cost of the network's own head, and of one head for each layer that predicts a further token, whose two inputs are joined first."""
    cost = _one_head(model, ranks, hardware)
    if not model.prediction_layers:
        return cost
    tokens, hidden, size = ranks.tokens(model), float(model.hidden), model.activation_bytes
    joined = Product(tokens, 2.0 * hidden, hidden / ranks.tensor)
    forward, backward = both_ways_costs(joined, model, model.value_bytes, hardware)
    more = forward + backward
    elements = tokens / ranks.norm_split() * hidden
    for side in PASSES:
        more = more + stream_cost(3.0 * side[0] * size * elements, 24.0 * elements, hardware, 3.0)
    more = more + Cost(embedding_exchange(model, ranks, hardware), 0.0, 0.0)
    return cost + (cost + more).times(float(model.prediction_layers))


def head_exchange(model: Transformer, ranks: Ranks, hardware: Hardware) -> Real:
    """Seconds of all communication of the head for one microbatch."""
    own, joined, further = _one_head_exchange(model, ranks, hardware), embedding_exchange(model, ranks, hardware), model.prediction_layers
    return own + float(further) * (own + joined) if further else own


def _one_head_exchange(model: Transformer, ranks: Ranks, hardware: Hardware) -> Real:
    """All-reduces of the loss over the split vocabulary, and of the gradients of the head's input."""
    sums = 2.0 * all_reduce_time(4.0 * ranks.tokens(model), ranks.tensor_members, hardware.links)
    return sums + embedding_exchange(model, ranks, hardware)


def _one_head(model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    """Logits, softmax and cross entropy of one microbatch on the last stage, forward and backward, vocabulary split over tensor ranks.

    A cap is one kernel more in each direction, of two and of three passes over the single-precision logits.
    """
    tokens = ranks.tokens(model)
    vocabulary = np.ceil(model.vocabulary / (_VOCABULARY_ALIGNMENT * ranks.tensor)) * _VOCABULARY_ALIGNMENT
    product = Product(tokens, float(model.hidden), vocabulary)
    forward, backward = both_ways_costs(product, model, model.activation_bytes, hardware)
    cost = (forward + backward) + _loss(tokens * vocabulary, model, hardware)
    if model.logit_cap:
        cost = cost + stream_cost(4.0 * 5.0 * tokens * vocabulary, 8.0 * tokens * vocabulary, hardware, 2.0)
    return cost + Cost(_one_head_exchange(model, ranks, hardware), 0.0, 0.0)


def _loss(logits: Real, model: Transformer, hardware: Hardware) -> Cost:
    """Softmax and cross entropy, forward and backward; fused if logits keep fewer than four bytes."""
    passes = hardware.efficiency.loss_passes
    if model.logit_bytes < 4.0:
        return stream_cost(_FUSED_PASSES * model.logit_bytes * logits, 8.0 * logits, hardware, _FUSED_KERNELS)
    return stream_cost(4.0 * passes * logits, 8.0 * logits, hardware, passes / 2.0)
