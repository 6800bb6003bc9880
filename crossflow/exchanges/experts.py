"""Communication of experts: dispatch of tokens, combination of results, and the kernels that sort tokens."""

from functools import cache, partial
from math import prod

import numpy as np

from crossopt.crossflow.arrays import Mask, Real
from crossopt.crossflow.collectives import Exchange, all_gather, all_to_all, all_to_all_once, exchange_energy, exchange_time, together_time
from crossopt.crossflow.hardware import Hardware, Link
from crossopt.crossflow.ranks import Ranks, are_folded, expert_ranks, expert_split, routed_tokens
from crossopt.crossflow.roofline import NOTHING, Cost, stream_cost
from crossopt.crossflow.workload import Transformer

# How tokens go to their experts: each copy by itself, or one for all experts of a node.
#
# By itself a token sends one copy for each of its k experts to the rank that holds it (all-to-all, Lepikhin et al. 2020). DeepEP sends one
# a node, where it is handed on to those ranks that have experts of it, and adds results up in the node before they go back (DeepSeek-AI
# 2024, arXiv:2412.19437, section 3.2.2; deepseek-ai/DeepEP 2025; Megatron-Core's flex dispatcher). With n nodes and experts that are as
# likely to be any of all E, a token has experts in n (1 - C(E - E/n, k) / C(E, k)) of them: Qwen3 235B (8 of 128) on four nodes in 3.6, so
# that 2.7 copies leave the node where 6 did. On 256 H100 NVIDIA measured 19.7 s with 32 expert ranks, and 17.6 s with the exchange hidden
# (yanring/Megatron-MoE-ModelZoo, best_practice/Qwen3, c1ad0b5); so priced they are 21.1 and 20.0 s, copy by copy 31.8 and 29.3 s. Where
# experts are in groups, of which a token takes some (DeepSeek-V3: four of eight), so many fewer units that hold a group or a part of one
# come into question. One kernel sends to other nodes, receives from them and hands on inside, part after part (csrc/kernels/internode.cu of
# DeepEP: senders, forwarders and receivers are warps of one launch), so that the slowest level alone counts: DeepEP's README has 58 GB/s
# for 32 ranks on ports of 50 GB/s, with what stays in the node.


def to_experts(model: Transformer, ranks: Ranks, hardware: Hardware) -> tuple[Real, Real]:
    """Seconds and joules of the dispatch of tokens to their experts; combining the results costs as much again. Where experts are folded
    each rank sends     the copies of its own tokens, and the ranks of a split expert gather them (Megatron-Core's all-to-all
    dispatcher)."""
    if model.experts == 1:
        return 0.0, 0.0
    links, width = hardware.links, model.hidden * model.activation_bytes
    received = routed_tokens(model, ranks)
    if not np.any(ranks.expert_tensor):
        routed = _routed(received / ranks.norm_split() * width, model, ranks)
        return _sent(routed, model, links), exchange_energy(routed, links)
    share = np.where(are_folded(model, ranks), expert_split(model, ranks), ranks.norm_split())
    routed = _routed(received / share * width, model, ranks)
    gathered = all_gather(np.where(are_folded(model, ranks), received * width, 0.0), ranks.expert_tensor_members)
    seconds = np.where(are_folded(model, ranks), exchange_time(gathered, links), 0.0)
    return _sent(routed, model, links) + seconds, exchange_energy(routed, links) + exchange_energy(gathered, links)


def _sent(routed: Exchange, model: Transformer, links: tuple[Link, ...]) -> Real:
    return together_time(routed, links) if model.once_a_node else exchange_time(routed, links)


def _routed(size: Real, model: Transformer, ranks: Ranks) -> Exchange:
    if not model.once_a_node:
        return all_to_all(size, ranks.expert_members)
    return all_to_all_once(size, ranks.expert_members, partial(different, model))


def different(model: Transformer, units: Real) -> Real:
    """Mean number of units that hold an expert of a token, over its number of experts."""
    found, places = np.unique(units, return_inverse=True)
    shares = np.array([_one_different(model, float(count)) for count in found])
    return shares[places].reshape(np.shape(units))[()]


@cache
def _one_different(model: Transformer, units: float) -> float:
    """(1 - C(E - E/n, k) / C(E, k)) n / k. Units hold whole groups, or parts of one group, of the groups chosen for the token; units with
    several groups are treated as if there were no groups, which can only overstate the number of units a token goes to."""
    taken = model.groups_per_token / model.expert_groups if units >= model.expert_groups else 1.0
    experts, units, chosen = model.experts * taken, units * taken, model.experts_per_token
    none = prod(max(experts - experts / units - place, 0.0) / (experts - place) for place in range(chosen))
    return min((1.0 - none) * units / chosen, 1.0)


# What it takes to sort tokens by their experts and back: bytes that are moved on the device, and small kernels that wait for the host.
#
# A rank has T tokens before they are sent and R copies of tokens after that, with k experts a token. Permutations are those of Transformer
# Engine (`--moe-permute-fusion`; common/triton/permutation.py, 0448187: each token is read once and written k times, and on the way back k
# copies are read and their sum is written). Which there are says the dispatcher (Megatron-Core, megatron/core/transformer/moe/
# token_dispatcher.py, 0014f137), in tokens that are read and written in one direction; backward the same ones go the other way:
#
#     copy by copy    permute T + k T, sort by local expert 2 R, and back 2 R, unpermute k T + T    (MoEAlltoAllTokenDispatcher)
#     once a node     permute M + R, unpermute R + M; a rank is sent each of M tokens once          (flex dispatcher with DeepEP)
#
# Nothing is sorted on a rank with one expert. Probabilities go along, 4 bytes a copy beside 2 h, and are not counted, nor is what 8-bit
# runs pad (8 tokens an expert in the mean); they are applied within the activation.
#
# The router and the counting of tokens are many kernels that are each shorter than their launch: 72 of them, 31 with
# `--moe-router-fusion`, and 17 with DeepEP (NVIDIA, "Optimizing DeepSeek-V3 Training Performance on NVIDIA GB200 NVL72", sections 2.1.4 and
# 2.2.1: Megatron-LM docs/discussions, 1d9edcf8). The fused ones are priced. Maps of rows come on top: three kernels for a permutation, one
# for a sort. Then the host waits for the counts, which are sizes of what it launches next (`_maybe_dtoh_and_synchronize`), so that the
# queue is empty and the device waits for a launch. These kernels are in the open: they take as long as it takes to launch them
# (`Efficiency.routing`), whatever the device does. Runs that drop and pad have no such wait (`efficiency: {routing: 0}`).

_ROUTER_BY_COPY, _ROUTER_ONCE = 31.0, 17.0
_ROW_MAP, _SORT_MAP = 3.0, 1.0
_WAIT = 1.0
"""The kernel launch for which the device waits after counts have reached the host."""


def permutations(model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    """Sorting of tokens by expert in one direction; each copy is scaled or added once."""
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
    """Seconds of the small kernels of router and dispatcher, forward and backward together."""
    if model.experts == 1:
        return 0.0
    by_copy = _ROUTER_BY_COPY + _ROW_MAP + np.where(_sorts(model, ranks), 2.0 * _SORT_MAP, 0.0)
    kernels = np.where(_goes_once(model, ranks), _ROUTER_ONCE + _ROW_MAP, by_copy) + _WAIT
    return kernels * hardware.efficiency.routing


def _goes_once(model: Transformer, ranks: Ranks) -> Mask:
    """Whether DeepEP dispatches the tokens, which it does if there are other ranks."""
    return np.greater(ranks.expert, 1.5) & model.once_a_node


def _sorts(model: Transformer, ranks: Ranks) -> Mask:
    """Whether a rank holds several experts."""
    return np.greater(model.experts / expert_ranks(model, ranks), 1.5)
