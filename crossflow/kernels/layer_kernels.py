"""Kernels of a transformer layer: products with its weights, attention, norms, activations, routing, casts, and tokens to experts."""

from dataclasses import replace
from functools import cache, partial, reduce
from math import prod
from operator import add

import numpy as np

from crossopt.crossflow.arrays import Mask, Real
from crossopt.crossflow.collectives import Exchange, all_gather, all_to_all, all_to_all_once, exchange_energy, exchange_time, together_time
from crossopt.crossflow.hardware import Hardware, Link
from crossopt.crossflow.plan import Ranks, are_folded, expert_ranks, expert_split, local_groups, routed_tokens
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.roofline import LINE, NOTHING, Cost, Product, backward_costs, fused_attention_cost, product_costs, stream_cost
from crossopt.crossflow.workload import NARROW, Transformer

# Matrix products of a layer with its weights: attention's projections, the router, experts, and adapters.

QUERIES, OUTPUT = "queries, keys, values", "projection"
"""Products of attention whose inputs are not latents."""
UP_PRODUCTS = ("queries", "queries up", "keys, values up")
"""Products of latent attention that compute queries, keys and values."""
FEED_FORWARD_PRODUCTS = ("inner product", "outer product")
"""Products of the feed-forward part, or of the routed experts."""
SHARED_PRODUCTS = ("shared inner product", "shared outer product")
ROUTER = "router"
WIDE = (ROUTER, "")
"""Products that stay at 16 bits: the router's, and those of adapters, which have no name."""


def adapters(model: Transformer, ranks: Ranks) -> tuple[Product, ...]:
    """Adapter products: beside each product except the router's, one into the rank and one out of it. Joint matrices have one
    product into the ranks of all.
    """
    joint = {QUERIES: 3.0, FEED_FORWARD_PRODUCTS[0]: model.projections - 1.0, SHARED_PRODUCTS[0]: model.projections - 1.0}
    inner, found = float(model.lora_rank), list[Product]()
    for name, product in named_projections(model, ranks) if model.lora_rank else ():
        if name != ROUTER:
            found += [replace(product, columns=joint.get(name, 1.0) * inner), replace(product, depth=inner)]
    return tuple(found)


def projections(model: Transformer, ranks: Ranks) -> tuple[Product, ...]:
    """Weight products; of the feed-forward part, those of the rank's experts."""
    return tuple(product for _, product in named_projections(model, ranks))


def named_projections(model: Transformer, ranks: Ranks) -> tuple[tuple[str, Product], ...]:
    """Weight products by name: of attention, of the router, of shared experts, and last of the feed-forward part.

    Experts are products of their own, each launched on one of several streams by one call (Transformer Engine's grouped linear layers,
    transformer_engine/common/gemm/cublaslt_gemm.cu, multi_stream_cublas_gemm): the device loses nothing between them, but the call takes
    as long as its launches (`Efficiency.launch`). Each expert has as many tokens as come to it by chance.
    """
    tokens, split, hidden = ranks.tokens(model), ranks.tensor, float(model.hidden)
    attention = _latent_products(model, ranks) if model.latent else _attention_products(model, ranks)
    width, local, parts = model.expert_width, model.experts / expert_ranks(model, ranks), expert_split(model, ranks)
    of_one, apart = _tokens_of_one(model, ranks), (local, 1.0) if model.experts > 1 else (1.0, 0.0)
    feed_forward = (
        (FEED_FORWARD_PRODUCTS[0], Product(of_one, hidden, (model.projections - 1) * width / parts, local, *apart)),
        (FEED_FORWARD_PRODUCTS[1], Product(of_one, width / parts, hidden, local, *apart)),
    )
    router = ((ROUTER, Product(tokens, hidden, float(model.experts))),) if model.experts > 1 else ()
    width = model.shared_experts * width
    shared = (
        (SHARED_PRODUCTS[0], Product(tokens, hidden, (model.projections - 1) * width / split)),
        (SHARED_PRODUCTS[1], Product(tokens, width / split, hidden)),
    )
    return attention + router + (shared if model.shared_experts else ()) + feed_forward


def _attention_products(model: Transformer, ranks: Ranks) -> tuple[tuple[str, Product], ...]:
    tokens, split, width = ranks.tokens(model), ranks.tensor, float(model.head_width)
    return (
        (QUERIES, Product(tokens, float(model.hidden), width * (model.heads / split + 2.0 * local_groups(model, ranks)))),
        (OUTPUT, Product(tokens, width * model.heads / split, float(model.hidden))),
    )


def _latent_products(model: Transformer, ranks: Ranks) -> tuple[tuple[str, Product], ...]:
    """Projections to latents on every tensor rank (of its own tokens with sequence parallelism), and up to the rank's heads (DeepSeek-AI
    2024, arXiv:2405.04434, section 2.1); nothing is absorbed in training."""
    tokens, hidden, heads = ranks.tokens(model), float(model.hidden), model.heads / ranks.tensor
    own, ranked = tokens / ranks.norm_split(), float(model.query_rank)
    up = heads * float(model.score_width)
    queries = (("queries down", Product(own, hidden, ranked)), ("queries up", Product(tokens, ranked, up)))
    return (
        *(queries if model.query_rank else (("queries", Product(tokens, hidden, up)),)),
        ("keys, values down", Product(own, hidden, float(model.kv_rank + model.rope_size))),
        ("keys, values up", Product(tokens, float(model.kv_rank), heads * float(model.head_width + model.value_width))),
        (OUTPUT, Product(tokens, float(model.value_width) * model.heads / ranks.tensor, hidden)),
    )


def _tokens_of_one(model: Transformer, ranks: Ranks) -> Real:
    """Tokens of one expert of the fullest rank, a random number. How many there are is by chance, and they are no rows that lie in lines of
    the cache: where experts are not equally full they are filled up to whole lines, so that a product of more tokens is not the faster
    one."""
    spread = expert_ranks(model, ranks)
    tokens = routed_tokens(model, ranks) / (model.experts / spread)
    return np.where(model.fullest(spread) > 1.0, np.ceil(tokens / LINE) * LINE, tokens)


# Communication of experts: dispatch of tokens, combination of results, and the kernels that sort tokens.

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
    each rank sends the copies of its own tokens, and the ranks of a split expert gather them (Megatron-Core's all-to-all dispatcher)."""
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
    """(1 - C(E - E/n, k) / C(E, k)) n / k. Where each unit holds one expert group or a part of one, E and n count the token's groups
    alone. Units with several groups are treated as if there were no groups, which can only overstate the number of units a token
    goes to.
    """
    taken = model.groups_per_token / model.expert_groups if units >= model.expert_groups else 1.0
    experts, units, chosen = model.experts * taken, units * taken, model.experts_per_token
    none = prod(max(experts - experts / units - index, 0.0) / (experts - index) for index in range(chosen))
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
    """Whether DeepEP dispatches the tokens: the model uses it, and there are other expert ranks."""
    return np.greater(ranks.expert, 1.5) & model.once_a_node


def _sorts(model: Transformer, ranks: Ranks) -> Mask:
    """Whether a rank holds several experts."""
    return np.greater(model.experts / expert_ranks(model, ranks), 1.5)


# Kernels of a transformer layer other than weight products: attention core, norms, activations, routing and casts.

# What it takes to bring operands of products into 8 or 4 bits, as Transformer Engine does in training.
#
# Of each product with weights the input is cast on the way forward and the gradient of the result on the way back, once each: kernels that
# read 16 bits and write v bytes a value (`Transformer.value_bytes`), and v once more for the product that gives the weights' gradients,
# which reads its operands in the other direction: a transposed copy on Hopper, whose products of 8 bits take one layout alone, and a second
# set of blocks where scales are of blocks. Bytes a value, by what the scales are taken from (`Transformer.scaling`):
#
#     delayed       2 + 2 v     scales of earlier steps. A norm right before a product writes v in place of 2, and 2 v to transpose follow
#     tensorwise    4 + 2 v     scales of this tensor: one pass more for its largest value ("requires reading the tensor twice")
#     blocks        2 + 2 v     scales of blocks, within one pass
#     rows          6 + 2 v     scales of rows, which differ in the other direction: what was not cast is transposed and cast once more
#
# With sequence parallelism what ranks hand each other (inputs of the products that are split by columns, gradients of those split by rows)
# is cast before it is gathered, each rank its part, and transposed after it, whole: read v and write v. With scales of rows it is gathered
# as it was, and each rank casts the whole ("For rowwise recipes ... all-gather happens in high precision", pytorch/torchtitan,
# models/llama3/infra/parallelize.py, 018740b7; bytes by pytorch/ao, torchao/testing/training/roofline_utils.py, 05980129), and the backward
# product that gives the input's gradient is scaled by a kernel of its own, 4 bytes a value, since the library's has no scales of rows
# (`post_inverse_scale` of torchao/float8, addmm_float8_unwrapped, pull request 1325). Other sources: NVIDIA/TransformerEngine,
# docs/features/low_precision_training (fp8_current_scaling.rst 41f6cbf1; performance_considerations.rst 0bd7f52c, tables 1 and 2 and
# "Quantization fusions": on Hopper columnwise tensors are transposed in memory). On Blackwell a tensor with one scale serves both
# directions, so that tensorwise casts are priced v too long there. Frozen weights have no gradients, and their products need one direction.
#
# What is not cast: attention's core, the router, adapters, the head and the embedding. Weights are cast once a step (`is_first_microbatch`,
# or 8-bit weights that the optimizer writes), which with 6 bytes a weight is a few milliseconds; that is not priced. With scales of rows
# they are cast for each of their products, 4 bytes a weight more than values in all, since nothing keeps them; that is.

_BY_COLUMNS = (QUERIES, "queries", "queries up", "keys, values up", "shared inner product")
_BY_ROWS = (OUTPUT, "shared outer product")
"""How tensor parallelism splits products whose tokens it gathers and scatters; the feed-forward part joins them where there are no experts,
to which tokens come already gathered."""


def gathered_share(model: Transformer) -> float:
    """Share of an activation's bytes that tensor ranks gather of an input: that of cast values, or 1 with scales of rows."""
    return 1.0 if model.scaling == "rows" else model.kept_share


def casts(model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> Cost:
    """Cost of all casts of a layer in one direction; zero from 16 bits on."""
    if model.precision not in NARROW:
        return NOTHING
    return reduce(add, (cast(name, product, model, ranks, hardware, backward) for name, product in named_projections(model, ranks)))


def cast(name: str, product: Product, model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> Cost:
    """Cost of the cast for one product: of its input, or in the backward pass of its result's gradient."""
    if model.precision not in NARROW or name in WIDE:
        return NOTHING
    values = product.rows * (product.columns if backward else product.depth) * product.count
    if model.scaling == "rows":
        return _by_rows(model, product, values, hardware, backward)
    parts = ranks.norm_split() if _is_gathered(name, model, backward) else 1.0
    size, kernels = _fused_with_norm(model, parts) if _is_normed(name, model, backward) else _alone(model, parts)
    return stream_cost(size * values, 2.0 * values, hardware, kernels)


def _by_rows(model: Transformer, product: Product, values: Real, hardware: Hardware, backward: bool) -> Cost:
    """Cost of the casts in one pass, along rows and along columns, with the casts of weights, repeated for each product.
    Backward it includes the scaling of the input's gradient. With adapters it is one cast, without weights.
    """
    wide, narrow = model.activation_bytes, model.value_bytes
    if model.lora_rank:
        return stream_cost((wide + narrow) * values, 2.0 * values, hardware)
    weights, inputs = product.depth * product.columns * product.count, product.rows * product.depth * product.count
    cast = stream_cost((3.0 * wide + 2.0 * narrow) * values, 2.0 * values, hardware, 2.0)
    again = stream_cost(((3.0 if backward else 1.0) * wide + narrow) * weights, 2.0 * weights, hardware, 2.0 if backward else 1.0)
    return cast + again + (stream_cost(2.0 * wide * inputs, inputs, hardware) if backward else NOTHING)


def _alone(model: Transformer, parts: Real) -> tuple[Real, Real]:
    """Bytes per value of the whole tensor, and kernels, if each rank casts one of this many parts."""
    passes, narrow = (2.0 if model.scaling == "tensorwise" else 1.0), model.value_bytes
    read = passes * model.activation_bytes
    if model.lora_rank:
        return (read + narrow) / parts, passes
    split = np.greater(parts, 1.5)
    size = np.where(split, (read + narrow) / parts + 2.0 * narrow, read + 2.0 * narrow)
    return size, np.where(split, passes + 1.0, passes)


def _fused_with_norm(model: Transformer, parts: Real) -> tuple[Real, Real]:
    """Transposition of the norm's cast output, less what the norm no longer writes."""
    narrow = model.value_bytes
    if model.lora_rank:
        return 0.0, 0.0
    return np.maximum(2.0 * narrow - (model.activation_bytes - narrow) / parts, 0.0), 1.0


def _is_gathered(name: str, model: Transformer, backward: bool) -> bool:
    """Whether tensor and sequence parallel ranks each hold a part of the cast tensor."""
    dense = ("outer product" if backward else "inner product") if model.experts == 1 else ""
    return name == dense or name in (_BY_ROWS if backward else _BY_COLUMNS)


def _is_normed(name: str, model: Transformer, backward: bool) -> bool:
    """Whether the norm before the product casts its output, for which scales must be known beforehand."""
    normed = name == QUERIES or (name == "inner product" and model.experts == 1)
    return model.scaling == "delayed" and normed and not backward


# What a layer does beside its products: norms, residual additions, activations, the routing of tokens and casts, each a stream.

PASSES = ((2.0, 2.0, 3.0), (3.0, 3.0, 5.0))
"""Passes over the values by a norm, GELU and SwiGLU, forward and backward."""
_EAGER = ((18.0, 2.0, 5.0), (36.0, 3.0, 9.0))
"""The same in 16 bits where each step is a kernel and norms go by single precision (RMSNorm of torchtitan's and Meta's Llama): to it 3,
square 4, mean 2, times the root 4, back 3, times the scale 2; backward 6 for the scale, 3, 12 for both factors, 12 for the square and the
sum of both ways, 3. A gate is bent (2) and multiplied (3); backward two products (6) and the bend (3)."""
_EAGER_KERNELS = ((6.0, 1.0, 2.0), (13.0, 1.0, 3.0))
_ROTATION, _ROTATION_KERNELS = 10.0, 3.0
"""Passes over queries and keys in one direction: to single precision 3, rotation 4, back 3."""


def passes_of(model: Transformer, backward: bool) -> tuple[float, float, float]:
    """Passes over the values by a norm, GELU and SwiGLU, in one direction."""
    return (_EAGER if model.eager else PASSES)[backward]


def _kernels(model: Transformer, backward: bool) -> tuple[float, float, float]:
    return _EAGER_KERNELS[backward] if model.eager else (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class ElementWise:
    """Cost of a layer beside its products: norms, two residual additions, activation, routing, and casts."""

    norms: Cost
    residuals: Cost
    activation: Cost
    routing: Cost
    casts: Cost
    sums: Cost = NOTHING
    """Cost of summing the gradients of one input over the products that take it."""

    def total(self) -> Cost:
        return self.norms + self.residuals + self.activation + self.routing + self.casts + self.sums


def element_wise(model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> ElementWise:
    """Cost of norms, two residual additions (with dropout), the activation, and for experts the sorting of tokens and back."""
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
    """Cost of summing three gradients (attention) and two (gated feed-forward): each is read and the sum is written. What tensor ranks
    scatter is summed whole and by kernels of its own; else the norm before does it, which reads one of them anyway and writes nothing more
    (wq, wk, wv, w1 and w3 are linear layers of their own in torchtitan/models/llama3/model/model.py, 018740b7, and PyTorch's compiler fuses
    sums with what follows)."""
    taken, made = (5.0, 2.0) if model.gated else (3.0, 1.0)
    size = ranks.tokens(model) * model.hidden * model.activation_bytes
    alone = np.greater(ranks.tensor, 1.5)
    passes = np.where(alone, taken + made, taken - made)
    return stream_cost(passes * size, (taken - made) * size / model.activation_bytes, hardware, np.where(alone, made, 0.0))


def _norms(model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> Cost:
    """Cost of the norms: of width hidden, and of queries and keys or of the latents."""
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
    """Cost of the activation over dense parts or shared experts, and over the rank's experts."""
    size, inner = model.activation_bytes, routed_tokens(model, ranks) * model.expert_width / expert_split(model, ranks)
    passes, kernels = (of(model, backward)[1 + model.gated] for of in (passes_of, _kernels))
    cost = stream_cost(passes * size * inner, 8.0 * inner, hardware, kernels)
    if model.experts == 1:
        return cost, NOTHING
    if not model.shared_experts:
        return NOTHING, cost
    inner = ranks.tokens(model) * (model.shared_experts * model.expert_width) / ranks.tensor
    return stream_cost(passes * size * inner, 8.0 * inner, hardware, kernels), cost


# The core of attention on one device: scores, softmax and their product with the values, fused in one kernel or each by itself.

_HEAD_ALIGNMENT = 64.0
"""Fused attention pads the head width to this many elements."""
_FUSED_SOFTMAX = 4.0
"""Number of score matrices of a rank must be a multiple of this for the fused scale, mask and softmax kernel."""
_UNFUSED_KERNELS, _UNFUSEDPASSES = 5.0, 10.0
"""Additional kernels and passes over the scores without that kernel: two casts, scale, mask and copy."""


def attention_core(model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    """Scores, softmax, and the product of the scores with the values."""
    if model.attention == "flash":
        return fused_attention_cost(_core_flops(model, ranks), _operand_bytes(model, ranks), hardware, model.attention_rate)
    scores, values = _score_products(model, ranks)
    size = model.activation_bytes
    first, second = product_costs((scores, values), size, hardware)
    return first + second + _softmax_cost(model, ranks, hardware, passes=2.0, flops=5.0)


def attention_core_backward(model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    """Gradients of attention's core; fused attention recomputes the scores, at 2.5 times the forward FLOPs (Dao 2023)."""
    if model.attention == "flash":
        flops, size = 2.5 * _core_flops(model, ranks), 2.0 * _operand_bytes(model, ranks)
        return fused_attention_cost(flops, size, hardware, model.attention_rate)
    scores, values = _score_products(model, ranks)
    size = model.activation_bytes
    first, second = backward_costs((scores, values), size, hardware)
    return first + second + _softmax_cost(model, ranks, hardware, passes=3.0, flops=8.0)


def _core_flops(model: Transformer, ranks: Ranks) -> Real:
    """FLOPs 4 b s^2 a d / (t c), halved by the causal mask, with padded head width; in a window its mean reach replaces s."""
    padded = (np.ceil(width / _HEAD_ALIGNMENT) * _HEAD_ALIGNMENT for width in (model.score_width, model.value_width))
    return ranks.tokens(model) * (model.reach * model.heads * float(sum(padded))) / ranks.tensor


def _operand_bytes(model: Transformer, ranks: Ranks) -> Real:
    """Bytes of queries and results of the rank's tokens, keys and values."""
    heads = model.heads / ranks.tensor + local_groups(model, ranks)
    return ranks.tokens(model) * heads * (model.score_width + model.value_width) * model.activation_bytes


def _score_products(model: Transformer, ranks: Ranks) -> tuple[Product, Product]:
    """One product per head and sample: scores = Q K^T over the whole sequence regardless of the mask, and scores times V."""
    rows, count = model.sequence / ranks.context, ranks.microbatch * model.heads / ranks.tensor
    length = float(model.sequence)
    return Product(rows, float(model.score_width), length, count), Product(rows, length, float(model.value_width), count)


def _softmax_cost(model: Transformer, ranks: Ranks, hardware: Hardware, passes: float, flops: float) -> Cost:
    """Scale, mask, softmax and dropout of all scores in one direction.

    One kernel does the first three where it can: Megatron-LM's takes score matrices in fours. Otherwise each is a kernel of its own. A
    cap, c tanh(x / c), is three kernels more, of six passes forward and seven back. Fused attention caps its scores on the way.
    """
    capped = 1.0 if model.attention_cap else 0.0
    alone = np.where(np.mod(ranks.microbatch * model.heads / ranks.tensor, _FUSED_SOFTMAX) > 0.5, 1.0, 0.0)
    size = _softmax_bytes(model, passes) + (alone * _UNFUSEDPASSES + capped * (4.0 + passes)) * model.activation_bytes
    count = ranks.tokens(model) * model.sequence * model.heads / ranks.tensor
    return stream_cost(count * size, flops * count, hardware, 2.0 + alone * _UNFUSED_KERNELS + 3.0 * capped)


def _softmax_bytes(model: Transformer, passes: float) -> float:
    """Bytes per score: the passes of the softmax, and two passes and a one-byte mask for dropout."""
    return model.activation_bytes * (passes + 2.0) + 1.0 if model.dropout else model.activation_bytes * passes
