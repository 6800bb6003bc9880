"""What it takes to sort tokens by their experts and back: bytes that are moved on the device, and small kernels that wait for the host.

A rank has T tokens before they are sent and R copies of tokens after that, with k experts a token. Permutations are those of Transformer
Engine (`--moe-permute-fusion`; common/triton/permutation.py, 0448187: each token is read once and written k times, and on the way back k
copies are read and their sum is written). Which there are says the dispatcher (Megatron-Core, megatron/core/transformer/moe/
token_dispatcher.py, 0014f137), in tokens that are read and written in one direction; backward the same ones go the other way:

    copy by copy    permute T + k T, sort by local expert 2 R, and back 2 R, unpermute k T + T    (MoEAlltoAllTokenDispatcher)
    once a node     permute M + R, unpermute R + M; a rank is sent each of M tokens once          (flex dispatcher with DeepEP)

Nothing is sorted on a rank with one expert. Probabilities go along, 4 bytes a copy beside 2 h, and are not counted, nor is what 8-bit runs
pad (8 tokens an expert in the mean); they are applied within the activation.

The router and the counting of tokens are many kernels that are each shorter than their launch: 72 of them, 31 with
`--moe-router-fusion`, and 17 with DeepEP (NVIDIA, "Optimizing DeepSeek-V3 Training Performance on NVIDIA GB200 NVL72", sections 2.1.4 and
2.2.1: Megatron-LM docs/discussions, 1d9edcf8). The fused ones are priced. Maps of rows come on top: three kernels for a permutation, one
for a sort. Then the host waits for the counts, which are sizes of what it launches next (`_maybe_dtoh_and_synchronize`), so that the
queue is empty and the device waits for a launch. These kernels are in the open: they take as long as it takes to launch them
(`Efficiency.routing`), whatever the device does. Runs that drop and pad have no such wait (`efficiency: {routing: 0}`).
"""

import numpy as np

from crossopt.crossflow.arrays import Mask, Real
from crossopt.crossflow.exchanges.dispatch import different
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.ranks import Ranks, expert_ranks, routed_tokens
from crossopt.crossflow.roofline import NOTHING, Cost, stream_cost
from crossopt.crossflow.workload import Transformer

_ROUTER_BY_COPY, _ROUTER_ONCE = 31.0, 17.0
_ROW_MAP, _SORT_MAP = 3.0, 1.0
_WAIT = 1.0
"""The launch for which the device waits after the counts have come to the host."""


def permutations(model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    """Sorting tokens by expert and back in one direction; each copy is scaled or added once."""
    if model.experts == 1:
        return NOTHING
    received, own = routed_tokens(model, ranks), ranks.tokens(model) / ranks.norm_split()
    sorted_again = np.where(_sorts(model, ranks), 4.0 * received, 0.0)
    by_copy = 2.0 * own * (1.0 + model.experts_per_token) + sorted_again
    once = _goes_once(model, ranks)
    moved = np.where(once, 2.0 * received * (1.0 + different(model, expert_ranks(model, ranks))), by_copy)
    kernels = np.where(once | ~_sorts(model, ranks), 2.0, 4.0)
    return stream_cost(moved * (model.hidden * model.activation_bytes), 2.0 * received * model.hidden, hardware, kernels)


def launched_in_the_open(model: Transformer, ranks: Ranks, hardware: Hardware) -> Real:
    """Seconds of the router's and the dispatcher's small kernels, forward and backward together."""
    if model.experts == 1:
        return 0.0
    by_copy = _ROUTER_BY_COPY + _ROW_MAP + np.where(_sorts(model, ranks), 2.0 * _SORT_MAP, 0.0)
    kernels = np.where(_goes_once(model, ranks), _ROUTER_ONCE + _ROW_MAP, by_copy) + _WAIT
    return kernels * hardware.efficiency.routing


def _goes_once(model: Transformer, ranks: Ranks) -> Mask:
    """Whether DeepEP sends the tokens, which it does where there are ranks to send them to."""
    return np.greater(ranks.expert, 1.5) & model.once_a_node


def _sorts(model: Transformer, ranks: Ranks) -> Mask:
    """Whether a rank has several experts."""
    return np.greater(model.experts / expert_ranks(model, ranks), 1.5)
