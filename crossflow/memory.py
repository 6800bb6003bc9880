"""Memory per device of each pipeline stage: weights, gradients, optimizer state, activations in flight, working set and buffers.

Activations per layer follow Korthikanti et al. 2022 (equations 1 to 6), component by component so that grouped-query attention, SwiGLU,
experts, latents, fused attention and context parallelism need no formula of their own. Where the first layers are dense, each stage holds
as many of them as come to it, chunks of a stage counted as one."""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import reduce

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.bill import Items
from crossopt.crossflow.parameters import (
    attention_ends,
    attention_parameters,
    copied_parameters,
    expert_parameters,
    feed_forward_ends,
    head_biases,
    head_parameters,
    norm_parameters,
    norm_size,
    prediction_parameters,
    router_parameters,
)
from crossopt.crossflow.recomputation import (
    ATTENTION,
    ATTENTION_NORM,
    DENSE_ACTIVATION,
    DENSE_PART,
    EXPERT_ACTIVATION,
    EXPERTS,
    FEED_FORWARD_NORM,
    LAYER,
    PARTLY,
    SECOND_PRODUCTS,
    SHARED_EXPERTS,
    UP_PROJECTIONS,
    again,
    layers_again,
)
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.sharding import (
    Sharding,
    Weights,
    candidates,
    copies_split,
    expert_split,
    has_head,
    in_flight,
    layers_of,
    mixed,
    offloads,
    on_device,
    owned,
    share_out,
)  # fmt: skip
from crossopt.crossflow.stages import Split, is_both_ways, is_v
from crossopt.crossflow.workload import Transformer, feed_forward_kinds


@dataclass(frozen=True, slots=True)
class StageMemory:
    """Bytes of one device of one stage."""

    weights: Real
    gradients: Real
    optimizer: Real
    activations: Real
    working: Real

    def total(self) -> Real:
        return self.weights + self.gradients + self.optimizer + self.activations + self.working


_OfKind = Callable[[Transformer, Sharding], Weights]
"""A figure of one layer of one kind."""


def layer_weights(model: Transformer, sharding: Sharding) -> Weights:
    """Parameters of one layer on one device; of the mean layer if the first ones are dense."""
    return mixed(_of_kinds(model, sharding, _kind_weights), model.dense_layers / model.stack)


def layer_trained(model: Transformer, sharding: Sharding) -> Weights:
    """Trained parameters of one layer on one device."""
    return mixed(_of_kinds(model, sharding, _kind_trained), model.dense_layers / model.stack)


def _of_kinds(model: Transformer, sharding: Sharding, figure: _OfKind) -> tuple[Weights, ...]:
    """A figure of a layer of each kind."""
    return tuple(figure(kind, sharding) for _, kind in feed_forward_kinds(model))


def _kind_weights(model: Transformer, sharding: Sharding) -> Weights:
    """Parameters of one layer of this kind on one device. Norms, router and projections to latents are copied on every
    tensor-parallel rank.
    """
    copied = copied_parameters(model)
    shared = (attention_parameters(model) - copied) / sharding.tensor + (norm_parameters(model) + router_parameters(model) + copied)
    spread = sharding.expert if model.experts > 1 else 1.0
    experts = model.experts * expert_parameters(model) / (expert_split(model, sharding) * spread)
    if model.lora_rank:
        adapters = _adapters(model, sharding)
        shared, experts = shared + adapters.shared, experts + adapters.routed
    if model.experts == 1:
        return Weights(shared + experts, 0.0 * shared)
    if model.shared_experts:
        shared = shared + model.shared_experts * expert_parameters(model) / sharding.tensor
    return Weights(shared, experts)


def _kind_trained(model: Transformer, sharding: Sharding) -> Weights:
    """Trained parameters of a layer: all, or the adapters alone."""
    if not model.lora_rank:
        return _kind_weights(model, sharding)
    adapters = _adapters(model, sharding)
    return adapters if model.experts > 1 else Weights(adapters.shared + adapters.routed, 0.0 * adapters.shared)


def _adapters(model: Transformer, sharding: Sharding) -> Weights:
    """Adapters outside the experts (attention, shared experts), and adapters of the rank's experts."""
    several = (attention_ends(model), feed_forward_ends(model, model.shared_experts), feed_forward_ends(model, 1))
    splits = (sharding.tensor, sharding.tensor, expert_split(model, sharding))
    attention, shared, each = (
        model.lora_rank * (ends.replicated + ends.split / split) for ends, split in zip(several, splits, strict=True)
    )
    return Weights(attention + shared, model.experts * each / (sharding.expert if model.experts > 1 else 1.0))


def stage_weights(model: Transformer, sharding: Sharding, stage: Real) -> Weights:
    """Parameters of one device of a stage; a tied head is a second copy of the embedding on the last stage of a pipeline."""
    layer = mixed(_of_kinds(model, sharding, _kind_weights), dense_share(model, sharding, stage))
    return owned(layer, layers_of(model, sharding).on(stage), edge_weights(model, sharding, stage))


def stage_trained(model: Transformer, sharding: Sharding, stage: Real) -> Weights:
    """Trained parameters of a stage: all; with LoRA the adapters alone; with frozen first layers all except these and the
    embedding.
    """
    if model.frozen_layers is not None:
        layers = np.maximum(layers_of(model, sharding).on(stage) - model.frozen_layers, 0.0)
        return owned(_kind_weights(model, sharding), layers, edge_trained(model, sharding, stage))
    if not model.lora_rank:
        return stage_weights(model, sharding, stage)
    layer = mixed(_of_kinds(model, sharding, _kind_trained), dense_share(model, sharding, stage))
    return owned(layer, layers_of(model, sharding).on(stage))


def device_trained(model: Transformer, sharding: Sharding, stage: Real) -> Weights:
    """Trained parameters of a device with this stage, and with the mirrored one if microbatches go both ways."""
    own, both = stage_trained(model, sharding, stage), is_both_ways(sharding.schedule)
    if not np.any(both):
        return own
    mirrored = stage_trained(model, sharding, sharding.pipeline - 1.0 - stage)
    return Weights(own.shared + np.where(both, mirrored.shared, 0.0), own.routed + np.where(both, mirrored.routed, 0.0))


def dense_share(model: Transformer, sharding: Sharding, stage: Real) -> Real:
    """Which share of the layers of a stage is among the first, dense ones; none where it holds the embedding or the head alone."""
    return _dense_share(model, layers_of(model, sharding), stage)


def _dense_share(model: Transformer, split: Split, stage: Real) -> Real:
    if not model.dense_layers:
        return 0.0
    layers = split.on(stage)
    return np.minimum(np.maximum(model.dense_layers - split.before(stage), 0.0), layers) / np.maximum(layers, 1.0)


def edge_weights(model: Transformer, sharding: Sharding, stage: Real) -> Real:
    """Parameters of one device outside its layers: embedding on the first stage, head and final norm on the stage of the head.
    Layers that predict further tokens add their own there, with a copy of the embedding unless that stage has one.
    """
    positions = model.sequence * model.hidden if model.learned_positions else 0
    inputs = model.vocabulary * model.hidden / sharding.tensor + positions
    return np.where(stage < 0.5, inputs, 0.0) + _output_weights(model, sharding, stage)


def edge_trained(model: Transformer, sharding: Sharding, stage: Real) -> Real:
    """Trained parameters of one device outside its layers, without LoRA. With frozen first layers the embedding is not trained."""
    return (edge_weights if model.frozen_layers is None else _output_weights)(model, sharding, stage)


def _output_weights(model: Transformer, sharding: Sharding, stage: Real) -> Real:
    table = model.vocabulary * model.hidden / sharding.tensor
    single = (sharding.pipeline < 1.5) | is_v(sharding.schedule) | is_both_ways(sharding.schedule)
    alone, last = head_parameters(model) / sharding.tensor, table + head_biases(model) / sharding.tensor
    head = np.where(single, alone, last) + norm_size(model)
    if model.prediction_layers:
        head = head + model.prediction_layers * prediction_parameters(model)
        head = head + np.where(single | model.tied, 0.0, table)
    return np.where(has_head(sharding, stage), head, 0.0)


def layer_activations(model: Transformer, sharding: Sharding, recompute: Real) -> Real:
    """Bytes that one layer (the one that stores most) stores of one microbatch under these modes of RECOMPUTE."""
    most, *rest = (_kind_activations(kind, sharding, recompute) for _, kind in feed_forward_kinds(model))
    return np.maximum(most, rest[0]) if rest else most


def _kind_activations(model: Transformer, sharding: Sharding, recompute: Real) -> Real:
    """Bytes that one layer of this kind stores of one microbatch. Multi-head attention, GELU, dropout, unfused:
    s b h (10 + 24/t + 5 a s/(h t)), all over t with sequence parallelism. Full recomputation keeps the layer's input,
    2 s b h.

    Recomputed modules (`crossflow.recomputation`) drop their results. Attention's core drops the term 5 a s / h. Norms drop
    2 s b h for each input of products. Activations drop one width of the feed-forward part (E / t of a token's experts).
    Up-projections drop what `_attention_bytes` states. Whole parts drop all except their inputs.

    Each norm keeps its input, and so do the products after the first and the last norm; blocks in parallel have one input for
    all norms. In 8 and 4 bits products keep the casts, beside the results of attention, which it needs itself
    (TransformerEngine, `kernels.casts`).
    """
    size, tokens = model.activation_bytes, sharding.microbatch * model.sequence / sharding.context
    norm_split = np.where(sharding.sequence_parallel > 0.5, sharding.tensor, 1.0)
    masks, before, narrow = 2.0 if model.dropout else 0.0, 2.0 if model.gated else 1.0, model.kept_share if model.keeps_casts else 1.0
    first, second = model.normed_parts
    part = FEED_FORWARD_NORM | (DENSE_PART if model.experts == 1 else 0)
    inputs = first * (1.0 - again(recompute, ATTENTION_NORM)) + second * (1.0 - again(recompute, part))
    inputs = inputs * narrow + (1.0 if model.parallel_blocks else float(model.norms))
    split_by_norms = tokens * model.hidden * (inputs * size + masks)
    routed = tokens * model.experts_per_token * model.fullest(sharding.expert)
    dense, experts = (narrow * (1.0 - again(recompute, module)) + before for module in (DENSE_ACTIVATION, EXPERT_ACTIVATION))
    dense = dense - (before - 1.0) * again(recompute, SECOND_PRODUCTS) * (model.experts == 1 and not model.latent)
    left = 1.0 - again(recompute, EXPERTS if model.experts > 1 else DENSE_PART)
    feed_forward = size * routed * model.expert_width * (experts if model.experts > 1 else dense) / sharding.tensor * left
    if model.shared_experts:
        wide = model.shared_experts * model.expert_width * (1.0 - again(recompute, SHARED_EXPERTS))
        feed_forward = feed_forward + size * tokens * wide * dense / sharding.tensor
    sorted_tokens = (1.0 + narrow) * size * routed * model.hidden / copies_split(sharding, norm_split) * left if model.experts > 1 else 0.0
    attention = _attention_bytes(model, sharding, tokens, norm_split, recompute)
    attention = attention + (narrow < 1.0) * model.value_bytes * tokens * (model.value_width * model.heads / sharding.tensor)
    if model.lora_rank:
        always = attention_ends(model).matrices + feed_forward_ends(model, model.shared_experts).matrices
        attention = attention + size * model.lora_rank * (tokens * always + routed * model.projections)
    scores = _score_bytes(model, sharding, tokens, recompute)
    stored = split_by_norms / norm_split + attention + feed_forward + sorted_tokens + scores
    return np.where(again(recompute, LAYER), size * tokens * model.hidden / norm_split, stored)


def _attention_bytes(model: Transformer, sharding: Sharding, tokens: Real, norm_split: Real, recompute: Real) -> Real:
    """Bytes of queries, keys, values and results, and of what they are computed from. Where up-projections are computed again results,
    latents before their norms and the turned part of the keys are left."""
    size, groups = model.activation_bytes, np.maximum(model.attention_groups / sharding.tensor, 1.0)
    stored = size * tokens * (model.score_width + model.value_width) * (model.heads / sharding.tensor + groups)
    if model.latent:
        latents = model.query_rank + model.kv_rank
        results = size * tokens * float(model.value_width) * (model.heads / sharding.tensor)
        fewer = results + size * tokens * float(latents + model.rope_size) / norm_split
        return np.where(again(recompute, UP_PROJECTIONS), fewer, stored + size * tokens * float(2 * latents) / norm_split)
    if model.qk_norm:
        return stored + size * tokens * model.head_width * (model.heads / sharding.tensor + groups)
    return stored


def _score_bytes(model: Transformer, sharding: Sharding, tokens: Real, recompute: Real) -> Real:
    heads = model.heads / sharding.tensor
    if model.attention == "flash":
        return 4.0 * tokens * heads
    per_score = 2.0 * model.activation_bytes + 1.0 if model.dropout else model.activation_bytes
    per_score = per_score + model.activation_bytes if model.attention_cap else per_score
    return np.where(again(recompute, ATTENTION), 0.0, per_score * tokens * model.sequence * heads)


def kept_activations(model: Transformer, sharding: Sharding, layers: Real = 1.0) -> Real:
    """Mean bytes per layer and microbatch under the plan's recompute mode, over this many layers of a stage."""
    stored = layer_activations(model, sharding, sharding.recompute)
    if not np.any(np.greater_equal(sharding.recompute, PARTLY)):
        return stored
    return _mean_kept(sharding, stored, layer_activations(model, sharding, 0), layers)


def _mean_kept(sharding: Sharding, stored: Real, in_full: Real, layers: Real) -> Real:
    """Mean bytes over the layers of a stage, of which some may store everything."""
    count = np.maximum(layers, 1.0)
    redone = layers_again(sharding.recompute, sharding.interleave, count)
    return np.where(redone < count, (redone * stored + (count - redone) * in_full) / count, stored)


def stage_memory(model: Transformer, sharding: Sharding, stage: Real) -> StageMemory:
    """Bytes of one device of a stage, by use; with the mirrored stage if microbatches go both ways.

    ZeRO shares over the data- and context-parallel ranks or groups of them (over those with the same experts for expert weights):
    optimizer state from stage 1, gradients from 2, weights from 3 (Rajbhandari et al. 2020). The working set is that of a layer's backward
    pass or that of the head's, whichever is larger (`_working`).
    """
    return _device_memory(model, sharding, stage, _common(model, sharding))


@dataclass(frozen=True, slots=True)
class _Common:
    """Figures shared by all stages: parameters and trained parameters per layer of each kind, and of the largest layer; stored
    bytes per layer and microbatch with and without recomputation; and the split of layers over stages.
    """

    weights: tuple[Weights, ...]
    trained: tuple[Weights, ...]
    saved: Real
    saved_in_full: Real
    largest: Real
    largest_trained: Real
    split: Split


def _common(model: Transformer, sharding: Sharding) -> _Common:
    weights = _of_kinds(model, sharding, _kind_weights)
    trained = _of_kinds(model, sharding, _kind_trained) if model.lora_rank else weights
    stored = layer_activations(model, sharding, sharding.recompute)
    in_full = layer_activations(model, sharding, 0) if np.any(sharding.recompute) else stored
    largest, most = (reduce(np.maximum, (part.shared + part.routed for part in kinds)) for kinds in (weights, trained))
    return _Common(weights, trained, stored, in_full, largest, most, layers_of(model, sharding))


def _stage_memory(model: Transformer, sharding: Sharding, stage: Real, common: _Common) -> StageMemory:
    layers, dense = common.split.on(stage), _dense_share(model, common.split, stage)
    flight = in_flight(sharding, stage)
    frozen = model.frozen_layers or 0
    activations = _layer_activations(sharding, np.maximum(layers - frozen, 0.0), flight, common)
    layer, edge = mixed(common.weights, dense), edge_weights(model, sharding, stage)
    trained, beside = (mixed(common.trained, dense), None) if model.lora_rank else (layer, edge_trained(model, sharding, stage))
    with_gradients, with_states = (np.maximum(layers - frozen, 0.0) for layers in (layers, on_device(sharding, "optimizer", layers)))
    return StageMemory(
        weights=model.weight_bytes * share_out(sharding, owned(layer, on_device(sharding, "weights", layers), edge), 3),
        gradients=model.gradient_bytes * share_out(sharding, owned(trained, with_gradients, beside), 2),
        optimizer=model.optimizer_bytes * share_out(sharding, owned(trained, with_states, beside), 1),
        activations=activations + _edge_activations(model, sharding, stage, flight),
        working=_working(model, sharding, stage, layers, common),
    )


def _working(model: Transformer, sharding: Sharding, stage: Real, layers: Real, common: _Common) -> Real:
    """Working set: what the backward pass of a layer needs beyond stored activations, or the head's if its stage needs more for that.

    Of a layer what recomputation brings back; under ZeRO-3 the weights gathered of it and of the next one; from ZeRO-2 on its gradients as
    products give them, w L, and in the precision in which they are added, g L, those of what came before, which may be the head. Of the
    head under ZeRO-3 its gathered weights and those of a layer; and w H + g H, or what the loss takes at its peak beyond what is kept of
    the logits of the microbatch at hand. The embedding's gradients come last, in the place of all activations of their microbatch.

    As PyTorch's FSDP2 works: pre_backward gathers the next group, and what is scattered lives until the next group is (_fsdp_param_group.py
    002a76fb, _fsdp_collectives.py 010ae4a8 of torch/distributed/fsdp/_fully_shard). Megatron-FSDP has both in g, and waits for them from
    1e9 weights on (suggested_RS_queue_capacity); DeepSpeed has two buckets of 5e8 (reduce_bucket_size).
    """
    size, added, sharded = model.weight_bytes, model.gradient_bytes, sharding.zero > 1.5
    table = np.where(has_head(sharding, stage), model.vocabulary * model.hidden / sharding.tensor, 0.0)
    head = 0.0 if model.lora_rank else table
    gathered = [np.where(sharding.zero > 2.5, size * (size_of_other + common.largest), 0.0) for size_of_other in (common.largest, table)]
    scattered = size * common.largest_trained + added * np.maximum(common.largest_trained, head)
    layer = gathered[0] + np.where(sharded, scattered, 0.0) + (common.saved_in_full - common.saved)
    logits = sharding.microbatch * model.sequence / sharding.context * (model.vocabulary / sharding.tensor)
    loss = max(model.logit_peak_bytes - model.logit_bytes, 0.0) * logits
    at_head = gathered[1] + np.maximum(loss, np.where(sharded, (size + added) * head, 0.0))
    return np.maximum(np.where(layers > 0.5, layer, 0.0), np.where(has_head(sharding, stage), at_head, 0.0))


def _layer_activations(sharding: Sharding, layers: Real, flight: Real, common: _Common) -> Real:
    """Stored activations that stay on the device; where others are offloaded, the remaining layers may be those that store everything."""
    resident = on_device(sharding, "activations", layers * flight)
    if not np.any(np.greater_equal(sharding.recompute, PARTLY)):
        return resident * common.saved
    full = np.minimum(resident, (layers - layers_again(sharding.recompute, sharding.interleave, layers)) * flight)
    mixed = full * common.saved_in_full + (resident - full) * common.saved
    part = offloads(sharding, "activations") & np.greater_equal(sharding.recompute, PARTLY)
    return np.where(part, mixed, resident * _mean_kept(sharding, common.saved, common.saved_in_full, layers))


def _edge_activations(model: Transformer, sharding: Sharding, stage: Real, flight: Real) -> Real:
    """Bytes of the embedding's dropout mask on the first stage; of input of head and norm, and logits, on the stage of the head.
    The latter count for each predicted token; with a cap, logits before it count as well.
    """
    tokens = sharding.microbatch * model.sequence / sharding.context
    norm_split = np.where(sharding.sequence_parallel > 0.5, sharding.tensor, 1.0)
    first = flight * tokens * model.hidden / norm_split if model.dropout and model.frozen_layers is None else 0.0 * tokens
    logits = model.vocabulary / sharding.tensor * (model.logit_bytes / 4.0 * (2.0 if model.logit_cap else 1.0))
    last = 4.0 * tokens * (model.hidden / norm_split + logits) * (1.0 + model.prediction_layers)
    return np.where(stage < 0.5, first, 0.0) + np.where(has_head(sharding, stage), last, 0.0)


def peak_memory(model: Transformer, sharding: Sharding) -> Real:
    """Bytes on the fullest device.

    In-flight microbatches fall along the pipeline and the fuller stages come first, so that the first, the second and the last stage
    bound all others; where the first layers are dense, those with dense layers, and the next one.
    """
    most: Real = reduce(np.maximum, np.asarray(_candidate_stages(model, sharding).total()))
    return most


def memory_without_layers(model: Transformer, sharding: Sharding, stages: int | None = None) -> Real:
    """A lower bound on `peak_memory`, whatever is computed again: as if layers stored nothing; by so many of the last candidates alone."""
    kept = replace(sharding, recompute=0.0)
    common = replace(_common(model, kept), saved=0.0, saved_in_full=0.0)
    looked_at = np.stack(candidates(model, kept)[-(stages or 0) :])
    most: Real = reduce(np.maximum, np.asarray(_device_memory(model, kept, looked_at, common).total()))
    return most


def host_memory(model: Transformer, sharding: Sharding) -> Real:
    """Bytes in host memory of the stage that offloads most."""
    if not np.any(sharding.offload):
        return 0.0 * sharding.pipeline
    total, left = (_candidate_stages(model, variant).total() for variant in (replace(sharding, offload=0.0), sharding))
    most: Real = reduce(np.maximum, np.asarray(total - left))
    return most


def fullest_stage(model: Transformer, sharding: Sharding) -> Items:
    """Bytes by use on the fullest device of a single plan."""
    stages = _candidate_stages(model, sharding)
    total = np.asarray(stages.total())
    fullest = int(np.argmax(total))
    return tuple(
        (field.name, np.ravel(np.broadcast_to(getattr(stages, field.name), total.shape))[fullest]) for field in fields(StageMemory)
    )


def _candidate_stages(model: Transformer, sharding: Sharding) -> StageMemory:
    """The candidates along a leading axis."""
    return _device_memory(model, sharding, np.stack(candidates(model, sharding)), _common(model, sharding))


def _device_memory(model: Transformer, sharding: Sharding, stage: Real, common: _Common) -> StageMemory:
    """A device with this stage, and with the mirrored one if microbatches go both ways; it works on one at a time."""
    own, both = _stage_memory(model, sharding, stage, common), is_both_ways(sharding.schedule)
    if not np.any(both):
        return own
    mirrored = _stage_memory(model, sharding, sharding.pipeline - 1.0 - stage, common)
    sums = {field.name: getattr(own, field.name) + np.where(both, getattr(mirrored, field.name), 0.0) for field in fields(StageMemory)}
    return StageMemory(**sums | {"working": np.where(both, np.maximum(own.working, mirrored.working), own.working)})
