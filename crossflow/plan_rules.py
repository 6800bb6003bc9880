"""Validity rules of plans, each with a column that is true where it holds."""

from math import gcd

import numpy as np

from crossopt.crossflow.arrays import Mask, Whole
from crossopt.crossflow.plan import BOTH_WAYS, END_STAGES, PLACEMENTS, Plan, Plans, V, table
from crossopt.crossflow.recomputation import EXPERTS, LAYER, PARTLY, SHARED_EXPERTS, again
from crossopt.crossflow.stages import split_layers
from crossopt.crossflow.workload import Transformer

_TOGETHER = [place for place, name in enumerate(PLACEMENTS) if name.startswith("pipeline") or name.endswith("pipeline")]
"""Orders in which tensor, context and data ranks are neighbours."""

Rule = tuple[str, Mask]


def rules(model: Transformer, plans: Plans, devices: int) -> tuple[Rule, ...]:
    """Validity rules of plans, each with a column that is true where it holds."""
    batch = plans.data * plans.microbatch
    count = model.global_batch // np.maximum(batch, 1)
    groups, product = model.attention_groups, plans.tensor * plans.context * plans.pipeline * plans.data
    data, transfers, layers, moved, *others = concession_rules(model, plans)
    shares_groups = (groups % plans.tensor == 0) | (plans.tensor % groups == 0)
    return (
        (f"tensor x context x pipeline x data is the {devices} devices", product == devices),
        (f"tensor divides the {model.heads} heads", model.heads % plans.tensor == 0),
        (f"tensor divides the {groups} key-value heads, or is a multiple of them", shares_groups),
        (f"tensor divides the hidden size {model.hidden}", model.hidden % plans.tensor == 0),
        (f"tensor divides the feed-forward width {' and '.join(map(str, model.widths))}", gcd(*model.widths) % plans.tensor == 0),
        (f"context x tensor (with sequence parallel) divides the sequence {model.sequence}", _divides_sequence(model, plans)),
        (f"pipeline x interleave is at most the {model.stack} layers with embedding and head", _fills_chunks(model, plans)),
        ("interleave needs a pipeline", (plans.interleave == 1) | (plans.pipeline > 1)),
        (f"data x microbatch divides the global batch {model.global_batch}", model.global_batch % np.maximum(batch, 1) == 0),
        (
            "with interleave the pipeline divides the number of microbatches",
            (plans.interleave == 1) | (plans.schedule == V) | (count % plans.pipeline == 0),
        ),
        ("sequence parallel needs tensor parallel", (plans.sequence_parallel == 0) | (plans.tensor > 1)),
        ("ZeRO needs data or context parallel", (plans.zero == 0) | (plans.data * plans.context > 1)),
        data,
        transfers,
        *_group_rules(plans),
        ("overlapped tensor-parallel communication needs sequence parallel", (plans.tensor_exchange == 0) | (plans.sequence_parallel == 1)),
        *_schedule_rules(plans, count, (layers, moved)),
        *_end_rules(model, plans),
        *_expert_rules(model, plans),
        *(_frozen_rules(plans) if model.frozen_layers else ()),
        *others,
    )


def _frozen_rules(plans: Plans) -> tuple[Rule, ...]:
    """Rules for frozen first layers: all layers are on one stage."""
    return (
        ("frozen layers exclude pipeline parallelism", plans.pipeline == 1),
        ("frozen layers exclude overlapped expert communication", plans.expert_exchange == 0),
    )


def concession_rules(model: Transformer, plans: Plans) -> tuple[Rule, ...]:
    """The rules about concessions, one each. Where the first layers have no backward pass, layers of a stage differ in nothing
    else."""
    layers, experts = (again(plans.recompute, what) for what in (LAYER, EXPERTS | SHARED_EXPERTS))
    found = (
        ("overlap of data exchange needs data or context parallel", ((plans.overlap & 1) == 0) | (plans.data * plans.context > 1)),
        ("overlap of pipeline transfers needs a pipeline", ((plans.overlap & 2) == 0) | (plans.pipeline > 1)),
        ("split backward passes recompute no whole layers", (plans.schedule == 0) | ~layers),
        ("split backward passes offload nothing", (plans.schedule == 0) | (plans.offload == 0)),
        ("overlapped expert communication recomputes no whole layers nor experts", (plans.expert_exchange == 0) | ~(layers | experts)),
    )
    if not model.frozen_layers:
        return found
    return (
        *found,
        ("frozen layers offload nothing", plans.offload == 0),
        ("frozen layers exclude recomputation of parts of a layer", plans.recompute < PARTLY),
    )


def _expert_rules(model: Transformer, plans: Plans) -> tuple[Rule, ...]:
    """Rules for experts over the data-parallel ranks, or folded over all ranks of a stage."""
    usual, split, exposed = plans.expert_tensor == 0, np.maximum(plans.expert_tensor, 1), plans.expert_exchange == 0
    divides, block = model.experts % plans.expert == 0, plans.tensor * plans.context * plans.data
    together = np.isin(plans.placement, _TOGETHER)
    return (
        (f"expert divides the {model.experts} experts and data", divides & (~usual | (plans.data % plans.expert == 0))),
        ("expert_tensor x expert divides tensor x context x data", usual | (block % (split * plans.expert) == 0)),
        (f"expert_tensor divides the width {model.expert_width} of an expert", usual | (model.expert_width % split == 0)),
        ("folded experts of several tensor ranks need sequence parallel", usual | (plans.tensor == 1) | (plans.sequence_parallel == 1)),
        ("folded experts need pipeline as the first or the last dimension of the placement", usual | together),
        ("expert_tensor as large as tensor needs expert parallel above 1", usual | (split != plans.tensor) | (plans.expert > 1)),
        ("groups of ranks that share (shard) exclude folded experts", usual | (plans.shard == 0)),
        ("overlapped expert communication needs expert parallel above 1", exposed | (plans.expert > 1)),
        (
            "overlapped expert communication on several stages needs interleave above 1, or dualpipe",
            exposed | (plans.pipeline == 1) | (plans.interleave > 1) | (plans.schedule == BOTH_WAYS),
        ),
        (
            "overlapped expert communication excludes split backward passes, except those of dualpipe",
            exposed | (plans.schedule == 0) | (plans.schedule == BOTH_WAYS),
        ),
    )


def _schedule_rules(plans: Plans, count: Whole, concessions: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Rules for split backward passes, as far as they are modelled: inputs of the second part are kept until then."""
    whole = plans.schedule == 0
    return (
        ("split backward passes (zero-bubble, dualpipe) need a pipeline", whole | (plans.pipeline > 1)),
        ("split backward passes keep weights and gradients whole through the step (ZeRO-0, ZeRO-1)", whole | (plans.zero < 2)),
        *concessions,
        (
            "split backward passes need an even distribution of layers",
            whole | ((plans.first_stage_layers == 0) & (plans.last_stage_layers == 0)),
        ),
        ("zero-bubble-v has two chunks a stage (interleave 2)", (plans.schedule != V) | (plans.interleave == 2)),
        ("zero-bubble-v has at least 2 x pipeline - 1 microbatches", (plans.schedule != V) | (count >= 2 * plans.pipeline - 1)),
        (
            "zero-bubble-v needs an even distribution of layers",
            (plans.schedule != V) | (plans.first_stage_layers + plans.last_stage_layers == 0),
        ),
        *_both_ways_rules(plans, count),
    )


def _both_ways_rules(plans: Plans, count: Whole) -> tuple[Rule, ...]:
    """Rules of DeepSeek-AI's DualPipe schedule (`step` of dualpipe.py); copies of a stage shard as all replicas do."""
    other = plans.schedule != BOTH_WAYS
    return (
        ("dualpipe has an even number of stages", other | (plans.pipeline % 2 == 0)),
        ("dualpipe has an even number of microbatches, at least 2 x pipeline", other | ((count % 2 == 0) & (count >= 2 * plans.pipeline))),
        ("dualpipe has one chunk a stage (interleave 1)", other | (plans.interleave == 1)),
        ("dualpipe shares among all replicas (shard 0)", other | (plans.shard == 0)),
    )


def _end_rules(model: Transformer, plans: Plans) -> tuple[Rule, ...]:
    """Rules for explicit first and last stages; a chunk beside embedding or head may have no layer."""
    even = (plans.first_stage_layers == 0) & (plans.last_stage_layers == 0)
    left = even if even.all() else even | _leave_chunks(model, plans)  # most questions open neither end
    return (
        ("layers of the first and the last stage need a pipeline", even | (plans.pipeline > 1)),
        (f"first and last stage leave at least one layer of the {model.stack} for each chunk between them, and no remainder", left),
    )


def _leave_chunks(model: Transformer, plans: Plans) -> Mask:
    """Whether the end stages, and those between, have a layer for each chunk."""
    split = split_layers(model.stack, *(getattr(plans, name).astype(np.float64) for name in ("pipeline", *END_STAGES)))
    ends = np.minimum(split.first(), split.last()) >= np.maximum(plans.interleave - 1, 0)
    between = np.where(plans.pipeline > 2, split.between >= plans.interleave, split.first() + split.last() == model.stack)
    return np.asarray(ends & between)


def _group_rules(plans: Plans) -> tuple[Rule, ...]:
    """Rules for sharding groups: they contain whole groups of context ranks and of experts."""
    whole, replicas = plans.shard == 0, plans.shard // plans.context
    return (
        ("groups of ranks that share (shard) need ZeRO", whole | (plans.zero > 0)),
        ("context divides the ranks that share (shard), which divide data x context", whole | _divide(plans, replicas)),
        ("expert divides the replicas that share (shard)", whole | (replicas % plans.expert == 0)),
    )


def _divide(plans: Plans, replicas: Whole) -> Mask:
    found: Mask = (plans.shard % plans.context == 0) & (replicas > 0) & (plans.data % np.maximum(replicas, 1) == 0)
    return found


def broken_rules(model: Transformer, plan: Plan, devices: int) -> tuple[str, ...]:
    """Names of the rules that this plan breaks."""
    return tuple(sentence for sentence, holds in rules(model, table([plan]), devices) if not holds[0])


def _fills_chunks(model: Transformer, plans: Plans) -> Mask:
    """Every chunk holds a layer, the embedding or the head; the first and the last may hold these alone (Llama team 2024)."""
    filled: Mask = np.less_equal(plans.pipeline * plans.interleave, model.stack + 2 * (plans.pipeline > 1))
    return filled


def _in_groups(plans: Plans, count: Whole) -> Mask:
    """Microbatches pass interleaved chunks in groups of as many as there are stages, except in a V."""
    return np.asarray((plans.interleave == 1) | (plans.schedule == V) | (count % plans.pipeline == 0))


def _divides_sequence(model: Transformer, plans: Plans) -> Mask:
    split = plans.context * np.where(plans.sequence_parallel == 1, plans.tensor, 1)
    return np.equal(model.sequence % split, 0)
