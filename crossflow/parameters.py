"""Number of weights of a transformer, and FLOPs of a step, independent of the hardware.

What is said of a layer is said of a network whose layers are all of one kind; `parameters` and `step_flops` add the kinds up.
"""

from crossopt.crossflow.recomputation import ATTENTION, DENSE_PART, EXPERTS, LAYER, SECOND_PRODUCTS, SHARED_EXPERTS, UP_PROJECTIONS
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Transformer, feed_forward_kinds, layer_kinds


def attention_parameters(model: Transformer) -> int:
    """Query, key, value and output projections: h d (2 a + 2 a_kv), with biases, norms of queries and keys, and sinks.

    Latent attention (DeepSeek-AI 2024, arXiv:2405.04434, section 2.1), with d without positions and r with them, v of values:
    h q + q a (d + r) for the queries (h a (d + r) without a latent), h (c + r) + c a (d + v) for keys and values, a v h for the output.
    """
    inner = model.heads * model.value_width
    output = inner * model.hidden + (model.hidden if model.biased("projection") else 0) + (model.heads if model.sinks else 0)
    if model.latent:
        queries = (model.query_rank or model.hidden) * model.heads * model.score_width
        return output + queries + model.kv_rank * model.heads * (model.head_width + model.value_width) + copied_parameters(model)
    width = (model.heads + 2 * model.attention_groups) * model.head_width
    return output + model.hidden * width + (width if model.biased("queries-keys-values") else 0) + copied_parameters(model)


def copied_parameters(model: Transformer) -> int:
    """Attention parameters that every tensor-parallel rank holds: projections to latents with their norms, and norms of queries and
    keys."""
    if model.latent:
        return (model.hidden + 1) * (model.query_rank + model.kv_rank) + model.hidden * model.rope_size
    return 2 * model.head_width if model.qk_norm else 0


def norm_parameters(model: Transformer) -> int:
    """Parameters of the norms of a layer."""
    return model.norms * norm_size(model)


def norm_size(model: Transformer) -> int:
    """Parameters of one norm: a scale and, if norms have biases, a shift."""
    return model.hidden * (2 if model.biased("norms") else 1)


def expert_parameters(model: Transformer) -> int:
    """Parameters of one feed-forward network (one expert): 2 h f, or 3 h f with SwiGLU."""
    biases = (model.projections - 1) * model.expert_width + model.hidden if model.biased("feed-forward") else 0
    return model.projections * model.hidden * model.expert_width + biases


def router_parameters(model: Transformer) -> int:
    if model.experts == 1:
        return 0
    return (model.hidden + (1 if model.biased("router") else 0)) * model.experts


def layer_parameters(model: Transformer) -> int:
    """Parameters of one layer, with every expert."""
    outside = attention_parameters(model) + norm_parameters(model) + router_parameters(model)
    return outside + (model.experts + model.shared_experts) * expert_parameters(model)


def embedding_parameters(model: Transformer) -> int:
    """Parameters of the token embedding and, if positions are learned, one row per position."""
    return model.vocabulary * model.hidden + (model.sequence * model.hidden if model.learned_positions else 0)


def head_parameters(model: Transformer) -> int:
    """Parameters of the output projection; a tied one counts with the embedding."""
    return (0 if model.tied else model.vocabulary * model.hidden) + head_biases(model)


def head_biases(model: Transformer) -> int:
    return model.vocabulary if model.biased("head") else 0


def prediction_parameters(model: Transformer) -> int:
    """Parameters of a layer that predicts a further token, beyond those of a layer: 2 h^2 to join two inputs, and three norms. Embedding
    and head are the network's own (DeepSeek-AI 2024, arXiv:2412.19437, section 2.2)."""
    return 2 * model.hidden * model.hidden + 3 * norm_size(model)


@dataclass(frozen=True, slots=True)
class Ends:
    """Sums of the input and output widths of some matrices, and the number of matrices.

    A matrix from n to m has an adapter of rank r with r (n + m) weights; what tensor parallelism splits is split in the adapter too.
    """

    replicated: int
    split: int
    matrices: int


def attention_ends(model: Transformer) -> Ends:
    """Widths of attention: queries, keys, values and output, or the projections to and from latents."""
    heads, inner = model.heads * model.score_width, model.heads * model.value_width
    if not model.latent:
        return Ends(4 * model.hidden, heads + model.attention_groups * (model.score_width + model.value_width) + inner, 4)
    down = model.hidden + model.kv_rank + model.rope_size + model.kv_rank
    queries = model.hidden + 2 * model.query_rank if model.query_rank else model.hidden
    up = model.heads * (model.head_width + model.value_width)
    return Ends(down + queries + model.hidden, heads + up + inner, 5 if model.query_rank else 4)


def feed_forward_ends(model: Transformer, experts: int) -> Ends:
    """Widths of one feed-forward network as wide as this many experts; zero for no expert."""
    many = model.projections if experts else 0
    return Ends(many * model.hidden, many * experts * model.expert_width, many)


def adapter_parameters(model: Transformer) -> int:
    """Adapter parameters of one layer; shared experts count as one network."""
    return _adapted(model, model.experts)


def _adapted(model: Transformer, experts: int) -> int:
    """Adapter parameters of attention, of shared experts and of this many further experts."""
    fixed = (attention_ends(model), feed_forward_ends(model, model.shared_experts))
    expert = feed_forward_ends(model, 1)
    return model.lora_rank * (sum(ends.replicated + ends.split for ends in fixed) + experts * (expert.replicated + expert.split))


def trained_parameters(model: Transformer) -> int:
    """Parameters with gradients and optimizer state."""
    if model.frozen_layers is not None:
        return parameters(model) - embedding_parameters(model) - model.frozen_layers * layer_parameters(model)
    if not model.lora_rank:
        return parameters(model) + model.prediction_layers * (
            layer_parameters(_layers_by_kind(model)[-1][1]) + prediction_parameters(model)
        )
    return sum(count * adapter_parameters(kind) for count, kind in feed_forward_kinds(model))


def parameters(model: Transformer) -> int:
    """All parameters, with the final norm; layers that predict further tokens are not counted, as in published sizes."""
    layers = sum(count * layer_parameters(kind) for count, kind in _layers_by_kind(model))
    return layers + embedding_parameters(model) + head_parameters(model) + norm_size(model)


def active_parameters(model: Transformer) -> int:
    """Active parameters: those used by one token, with only the experts it takes."""
    left = sum(count * (kind.experts - kind.experts_per_token) * expert_parameters(kind) for count, kind in _layers_by_kind(model))
    return parameters(model) - left


def _layers_by_kind(model: Transformer) -> list[tuple[int, Transformer]]:
    """Numbers and kinds of layers by feed-forward part, without layers that predict further tokens. Attention windows do not
    change the weights.
    """
    *first, (count, rest) = feed_forward_kinds(model)
    return [*first, (count - model.prediction_layers, rest)]


def step_flops(model: Transformer) -> float:
    """Model FLOPs of one optimizer step, forward and backward, without recomputation, padding or causal skipping.

    6 B s [ L (h d (2a + 2 a_kv) + 2 s a d + top_k p h f + h E) + h V ], p = 2 or 3 feed-forward matrices. For f = 4h, a d = h it is
    72 B s L h^2 (1 + s / (6h) + V / (12 L h)) (Narayanan et al. 2021, eq. 3, which counts a recomputed forward pass as well: 96).
    In a window s is the reach, W (2 - W / s): twice what the causal mask leaves, as s is. Each layer that predicts a further token counts
    as a layer, 2 h^2 and a head. Layers that have no backward pass do a third.
    """
    if model.lora_rank:
        return _lora_flops(model)
    layers = sum(count * (_products(kind) + attention_width(kind)) for count, kind in _whole_counts(model))
    further = model.prediction_layers * (2 * model.hidden * model.hidden + model.hidden * model.vocabulary)
    forward_alone = (model.frozen_layers or 0) / model.stack * layers
    return 6.0 * model.tokens * (layers + further + model.hidden * model.vocabulary) - 4.0 * model.tokens * forward_alone


def _lora_flops(model: Transformer) -> float:
    """Model FLOPs of LoRA training: frozen weights have no gradients, so 4 FLOPs for each, 6 for each adapter weight and attention pair."""
    frozen = sum(count * _products(kind) for count, kind in _whole_counts(model))
    frozen += model.prediction_layers * (2 * model.hidden * model.hidden + model.hidden * model.vocabulary)
    return model.tokens * (4.0 * (frozen + model.hidden * model.vocabulary) + 6.0 * adapter_products(model)) + score_flops(model)


def adapter_products(model: Transformer) -> float:
    """Multiply-adds of one token with the adapters of all layers."""
    return sum(count * _adapted(kind, kind.experts_per_token) for count, kind in _whole_counts(model))


def score_flops(model: Transformer) -> float:
    """Model FLOPs of a step in attention scores and weighted values, 12 s a d per token and trained layer."""
    every = 6.0 * model.tokens * sum(count * attention_width(kind) for count, kind in _whole_counts(model))
    return every if not model.frozen_layers else (1.0 + 2.0 * model.trained_share) / 3.0 * every


def frozen_products(model: Transformer) -> float:
    """Multiply-adds of one token with the weights of layers without a backward pass."""
    return (model.frozen_layers or 0) / model.stack * sum(count * _products(kind) for count, kind in _whole_counts(model))


def attention_width(model: Transformer) -> float:
    """Multiply-adds of one token with keys and values: s a (d_k + d_v), or 2 s a d if the widths are equal."""
    return model.reach * model.heads * (model.score_width + model.value_width)


def _products(model: Transformer) -> int:
    """Multiply-adds of one token with the weights of a layer."""
    if model.latent:
        down = model.hidden * (model.query_rank + model.kv_rank + model.rope_size)
        queries = (model.query_rank or model.hidden) * model.heads * model.score_width
        attention = down + queries + model.kv_rank * model.heads * (model.head_width + model.value_width)
    else:
        attention = model.hidden * model.head_width * (model.heads + 2 * model.attention_groups)
    attention += model.hidden * model.heads * model.value_width
    return attention + _expert_products(model, model.experts_per_token + model.shared_experts) + _router_products(model)


def _expert_products(model: Transformer, experts: int) -> int:
    """Multiply-adds of one token with the weights of this many feed-forward parts, dense or experts."""
    return experts * model.projections * model.hidden * model.expert_width


def _router_products(model: Transformer) -> int:
    return model.hidden * model.experts if model.experts > 1 else 0


def repeated_flops(model: Transformer, recompute: int, share: float = 1.0) -> float:
    """FLOPs of a step added by recomputation of this share of the layers; model FLOPs plus these are hardware FLOPs.

    Products alone count, as in model FLOPs: of `full` a forward pass of the layers, so that together they are 96 B s L h^2 (1 + s / (6h) +
    V / (16 L h)) where f = 4h (Narayanan et al. 2021, eq. 3); nothing of norms and activations, nor of what fused attention always repeats.
    """
    layers = sum(count * _repeated(kind, recompute) for count, kind in _whole_counts(model))
    adapters = adapter_products(model) if model.lora_rank and recompute & LAYER else 0.0
    return 2.0 * model.tokens * share * model.trained_share * (layers + adapters)


def _repeated(model: Transformer, recompute: int) -> float:
    """Multiply-adds of one token in a layer that the recompute mode repeats."""
    spared = model.hidden * model.expert_width if model.spares_last else 0
    if recompute & LAYER:
        return _products(model) + attention_width(model) - spared
    found = attention_width(model) if recompute & ATTENTION else 0.0
    if recompute & UP_PROJECTIONS and model.latent:
        found += model.query_rank * model.heads * model.score_width + model.kv_rank * model.heads * (model.head_width + model.value_width)
    if recompute & DENSE_PART and model.experts == 1:
        found += _expert_products(model, 1) - spared
    if recompute & SECOND_PRODUCTS and model.experts == 1 and not model.latent:
        found += model.hidden * (model.head_width * (model.attention_groups + model.heads) + (model.projections - 2) * model.ffn)
    if recompute & EXPERTS and model.experts > 1:
        found += _expert_products(model, model.experts_per_token) + _router_products(model)
    return found + (_expert_products(model, model.shared_experts) if recompute & SHARED_EXPERTS else 0.0)


def _whole_counts(model: Transformer) -> tuple[tuple[float, Transformer], ...]:
    """The kinds of layers with their numbers; an integer for networks of one kind, whose figures stay integers."""
    kinds = layer_kinds(model)
    return ((model.stack, model),) if len(kinds) == 1 else kinds
