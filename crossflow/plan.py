"""How a transformer is spread over devices: degrees of parallelism, settings, the rules of a plan, and what one rank has of a layer."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cache, reduce
from itertools import permutations
from math import gcd
from operator import and_, or_
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

import numpy as np

from crossopt.crossflow.arrays import Ints, Mask, Real
from crossopt.crossflow.collectives import Members
from crossopt.crossflow.fields import Bounds, Doc, Setting
from crossopt.crossflow.recomputation import (
    EXPERTS,
    LAYER,
    PARTLY,
    RECOMPUTE,
    SHARED_EXPERTS,
    again,
    least_recomputed,
    mode_name,
    number_of,
    recompute_text,
)
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.stages import split_layers
from crossopt.crossflow.workload import Transformer

# Parallel training plans: the degrees of parallelism and the settings that go with them.

Overlap = Literal["none", "data", "pipeline", "both"]
Schedule = Literal["1f1b", "zero-bubble", "zero-bubble-v", "dualpipe"]
TensorExchange = Literal["exposed", "hidden"]
ExpertExchange = Literal["exposed", "hidden"]
Offload = Literal["none", "weights", "activations", "weights-activations", "optimizer", "weights-optimizer", "activations-optimizer", "all"]

OVERLAP: tuple[Overlap, ...] = get_args(Overlap)
SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)
V = SCHEDULES.index("zero-bubble-v")
BOTH_WAYS = SCHEDULES.index("dualpipe")
TENSOR_EXCHANGES: tuple[TensorExchange, ...] = get_args(TensorExchange)
EXPERT_EXCHANGES: tuple[ExpertExchange, ...] = get_args(ExpertExchange)
OFFLOAD: tuple[Offload, ...] = get_args(Offload)
"""Data kept in host memory, as bits of the index: 1 weights, 2 activations, 4 optimizer state."""
END_STAGES = ("first_stage_layers", "last_stage_layers")
DIMENSIONS = ("tensor", "context", "data", "pipeline")
PLACEMENTS: tuple[str, ...] = tuple("-".join(order) for order in permutations(DIMENSIONS))
"""Orders in which dimensions are placed on devices; ranks of the first are neighbours."""

CONCESSIONS: dict[str, Callable[[Sequence[int]], int]] = {
    "recompute": least_recomputed,
    "overlap": lambda codes: reduce(or_, codes),
    "offload": lambda codes: reduce(and_, codes),
}
"""Settings that only cost time and energy, in exchange for memory or nothing, with the least costly common setting of several. `costs_only`
says of which offloading that is true."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One parallel plan. The product of tensor, context, pipeline and data is the number of devices."""

    tensor: Annotated[int, Bounds(1), Setting(keyword="divisors"), Doc("ranks that share each layer's weights (TP)")] = 1
    context: Annotated[int, Bounds(1), Setting(keyword="divisors"), Doc("ranks that share the tokens of a sequence (CP)")] = 1
    pipeline: Annotated[int, Bounds(1), Setting(keyword="divisors"), Doc("stages that share the layers (PP)")] = 1
    data: Annotated[
        int,
        Bounds(1),
        Setting(keyword="divisors", usual="divisors"),
        Doc("replicas (DP); `divisors` takes what the other degrees leave of the devices"),
    ] = 1
    expert: Annotated[int, Bounds(1), Setting(keyword="divisors"), Doc("ranks, of the replicas, over which experts are spread (EP)")] = 1
    """With `expert_tensor`, of all ranks of a stage."""
    microbatch: Annotated[int, Bounds(1), Setting(keyword="divisors"), Doc("sequences per replica and microbatch")] = 1
    interleave: Annotated[
        int,
        Bounds(1),
        Setting(keyword="divisors"),
        Doc("chunks of layers per stage (virtual stages); `divisors` are those of the layers, also with embedding and head"),
    ] = 1
    sequence_parallel: Annotated[bool, Setting(), Doc("also split norms and dropouts over the tensor ranks")] = False
    recompute: Annotated[
        str,
        Setting(open=RECOMPUTE),
        Doc(
            "what the backward pass recomputes: `none`, `full` layers, or modules: `norms`, `activations`, `elements` "
            "(both), `selective` (attention), `selective-elements`, `expert-activation`, `up-projections` of latents, "
            "whole parts (`dense-part`, `shared-experts`, `experts`), or a set such as `norms+up-projections`; among choices, "
            "`best` is all sets that save memory"
        ),
    ] = "none"
    """Named as in `crossflow.recomputation`."""
    zero: Annotated[
        int,
        Bounds(0, 3),
        Setting(open=(0, 1, 2, 3)),
        Doc("ZeRO stage, what replicas shard: 0 nothing, 1 optimizer state, 2 and gradients, 3 and weights"),
    ] = 0
    overlap: Annotated[
        Overlap, Setting(), Doc("communication overlapped with computation: gradient reduction (data), transfers between stages (pipeline)")
    ] = "none"
    offload: Annotated[Offload, Setting(), Doc("data of the layers kept in host memory; needs `cluster.host`")] = "none"
    placement: Annotated[
        str,
        Setting(open=("tensor-context-data-pipeline", "tensor-context-pipeline-data")),
        Doc("order in which tensor, context, data and pipeline are placed on devices, the first on neighbours"),
    ] = PLACEMENTS[0]
    shard: Annotated[
        int,
        Bounds(0, 2**31),
        Setting(keyword="nodes"),
        Doc(
            "ranks, of data times context parallel, that form a ZeRO sharding group (HSDP); 0 is all, `nodes` also as many "
            "as 1, 2 and 4 nodes"
        ),
    ] = 0
    schedule: Annotated[
        Schedule,
        Setting(after="offload"),
        Doc(
            "pipeline schedule: 1F1B, zero-bubble with deferred weight gradients (ZB-H1, ZB-V), or bidirectional with two "
            "copies of each stage (DualPipe)"
        ),
    ] = "1f1b"
    """See `crossflow.schedule`; interleaved if a stage has several chunks."""
    first_stage_layers: Annotated[
        int,
        Bounds(-64),
        Setting(open=(0, -1), after="schedule"),
        Doc("layers of the first stage, beside the embedding; 0 distributes them evenly, -2 is two fewer than the even share"),
    ] = 0
    """In plans at least 0; negative numbers occur in questions only."""
    last_stage_layers: Annotated[
        int,
        Bounds(-64),
        Setting(open=(0, -1, -2, -3), after="first_stage_layers"),
        Doc("layers of the last stage, beside the head; 0 distributes them evenly, -2 is two fewer than the even share"),
    ] = 0
    expert_tensor: Annotated[
        int,
        Bounds(0),
        Setting(open=(0, 1), after="expert"),
        Doc(
            "ranks that split each expert, with experts over tensor, context and data ranks together (folding); 0: as `tensor` and `expert`"
        ),
    ] = 0
    """Experts are placed over expert_tensor x expert x replicas of an expert."""
    tensor_exchange: Annotated[
        TensorExchange,
        Setting(after="sequence_parallel"),
        Doc("tensor-parallel communication: one by one with the products, or in parts behind them (needs `sequence_parallel`)"),
    ] = "exposed"
    """See `crossflow.hiding`."""
    expert_exchange: Annotated[
        ExpertExchange,
        Setting(after="tensor_exchange"),
        Doc("expert-parallel communication: in sequence with a layer's work, or behind another microbatch's (1F1B overlap)"),
    ] = "exposed"
    """See `crossflow.hiding`."""

    def __post_init__(self) -> None:
        for name in ("tensor", "context", "pipeline", "data", "expert", "microbatch", "interleave"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, at least 1 is needed")
        if self.shard < 0:
            raise ValueError(f"shard is {self.shard}, a number of ranks or 0 for all is needed")
        for name in (*END_STAGES, "expert_tensor"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}, at least 0 is needed (0 is the default)")
        if self.zero not in range(4):
            raise ValueError(f"zero is {self.zero}, a ZeRO stage from 0 to 3 is needed")
        for name, options in NAMED_OPTIONS.items():
            if getattr(self, name) not in options:
                raise ValueError(f"{name} is {getattr(self, name)!r}, one of {', '.join(options)} is needed")
        if (canonical := mode_name(number_of(self.recompute))) != self.recompute:
            raise ValueError(f"recompute is {self.recompute!r}, {canonical!r} is needed, which means the same")

    @property
    def devices(self) -> int:
        return self.tensor * self.context * self.pipeline * self.data

    def __str__(self) -> str:
        parts = [f"{name} {getattr(self, name)}" for name in ("tensor", "context", "pipeline", "data", "expert") if getattr(self, name) > 1]
        parts += [f"expert tensor {self.expert_tensor}"] if self.expert_tensor else []
        parts.append(f"microbatch {self.microbatch}")
        parts += [f"interleave {self.interleave}"] if self.interleave > 1 else []
        parts += [f"{name.replace('_', ' ')} {getattr(self, name)}" for name in END_STAGES if getattr(self, name)]
        parts += [self.schedule] if self.schedule != SCHEDULES[0] else []
        parts += ["sequence parallel"] if self.sequence_parallel else []
        parts += [f"tensor exchange {self.tensor_exchange}"] if self.tensor_exchange != TENSOR_EXCHANGES[0] else []
        parts += [f"expert exchange {self.expert_exchange}"] if self.expert_exchange != EXPERT_EXCHANGES[0] else []
        parts += [recompute_text(self.recompute)]
        parts += [f"ZeRO-{self.zero}" + (f" in groups of {self.shard}" if self.shard else "")] if self.zero else []
        parts += [f"overlap {self.overlap}"] if self.overlap != "none" else []
        parts += [f"offload {self.offload}"] if self.offload != "none" else []
        parts += [f"placed {self.placement}"] if self.placement != PLACEMENTS[0] else []
        return " · ".join(parts)


NAMED_OPTIONS: dict[str, tuple[str, ...]] = {
    **{name: get_args(kind) for name, kind in get_type_hints(Plan).items() if get_origin(kind) is Literal},
    "placement": PLACEMENTS,
}
"""Options of settings that take one of a few names."""


@dataclass(frozen=True, slots=True)
class Plans:
    """Many plans as one column per field; names are stored as indices into OVERLAP, PLACEMENTS and so on."""

    tensor: Ints
    context: Ints
    pipeline: Ints
    data: Ints
    expert: Ints
    microbatch: Ints
    interleave: Ints
    sequence_parallel: Ints
    recompute: Ints
    zero: Ints
    overlap: Ints
    offload: Ints
    placement: Ints
    shard: Ints
    schedule: Ints
    first_stage_layers: Ints
    last_stage_layers: Ints
    expert_tensor: Ints
    tensor_exchange: Ints
    expert_exchange: Ints

    def __len__(self) -> int:
        return len(self.tensor)


PLAN_FIELDS = tuple(field.name for field in fields(Plan))


def code(field: str, value: object) -> int:
    """The number that encodes a plan's field in the columns of `Plans`."""
    if field == "recompute":
        return number_of(str(value))
    return NAMED_OPTIONS[field].index(str(value)) if field in NAMED_OPTIONS else int(value)  # type: ignore[call-overload]


def table(plans: Sequence[Plan]) -> Plans:
    """Plans as columns."""
    return Plans(*np.array([[code(name, getattr(plan, name)) for plan in plans] for name in PLAN_FIELDS], np.int64))


def option(field: str, number: int) -> object:
    """The value of a plan's field that the number encodes."""
    if field == "recompute":
        return mode_name(number)
    return NAMED_OPTIONS[field][number] if field in NAMED_OPTIONS else bool(number) if field == "sequence_parallel" else number


def plan_at(plans: Plans, row: int) -> Plan:
    """The plan in one row."""
    return Plan(**{name: option(name, int(getattr(plans, name)[row])) for name in PLAN_FIELDS})  # type: ignore[arg-type]


def costs_only(name: str, offload: int) -> bool:
    """Whether more of a concession gains nothing with this offloading.

    Recomputation may gain where activations are: what is not kept is not moved, and the host's link may be slower than the device."""
    return name != "recompute" or not offload & code("offload", "activations")


def rows_of(plans: Plans, rows: Ints | slice) -> Plans:
    """Some of the plans."""
    if isinstance(rows, slice):
        return Plans(*(getattr(plans, name)[rows] for name in PLAN_FIELDS))
    return Plans(*(getattr(plans, name).take(rows) for name in PLAN_FIELDS))


def joined(parts: Sequence[Plans]) -> Plans:
    """The plans of several tables in one, in their order."""
    if len(parts) == 1:
        return parts[0]
    return Plans(*(np.concatenate([np.zeros(0, np.int64), *(getattr(part, name) for part in parts)]) for name in PLAN_FIELDS))


def _staged(name: str) -> Callable[[Transformer, Plans], Ints]:
    """The setting if there is more than one stage, else its neutral value."""
    return lambda _, plans: np.where(plans.pipeline > 1, getattr(plans, name), 0)


def _where_tensor_is_split(name: str) -> Callable[[Transformer, Plans], Ints]:
    return lambda _, plans: np.where(plans.tensor > 1, getattr(plans, name), 0)


def _exchanged(plans: Plans) -> Mask:
    """Whether there are replicas, or ranks with parts of samples, that communicate."""
    several: Mask = np.greater(plans.data * plans.context, 1)
    return several


def _expert_tensor(model: Transformer, plans: Plans) -> Ints:
    usual = (plans.expert_tensor == plans.tensor) & (plans.context == 1) | (model.experts == 1)
    return np.where(usual, 0, plans.expert_tensor)


CANONICAL_SETTINGS: dict[str, Callable[[Transformer, Plans], Ints]] = {
    "expert": lambda model, plans: plans.expert if model.experts > 1 else np.ones_like(plans.expert),
    "expert_tensor": _expert_tensor,
    "interleave": lambda _, plans: np.where(plans.pipeline > 1, plans.interleave, 1),
    "sequence_parallel": _where_tensor_is_split("sequence_parallel"),
    "zero": lambda _, plans: np.where(_exchanged(plans), plans.zero, 0),
    "shard": lambda _, plans: np.where((plans.zero > 0) & (plans.shard < plans.data * plans.context), plans.shard, 0),
    "overlap": lambda _, plans: plans.overlap & (1 * _exchanged(plans) | 2 * (plans.pipeline > 1)),
    "schedule": _staged("schedule"),
    "tensor_exchange": _where_tensor_is_split("tensor_exchange"),
    "expert_exchange": lambda model, plans: np.where((plans.expert > 1) & (model.experts > 1), plans.expert_exchange, 0),
    **{name: _staged(name) for name in END_STAGES},
}
"""Settings without meaning in some plans, and their canonical value there."""


def canonical(model: Transformer, plan: Plan) -> Plan:
    """The plan with the canonical value of each setting that has no meaning in it."""
    plans, changes = table([plan]), dict[str, Any]()
    for name, value in CANONICAL_SETTINGS.items():
        number = int(value(model, plans)[0])
        if number != getattr(plans, name)[0]:
            plans = replace(plans, **{name: np.array([number])})
            changes[name] = option(name, number)
    return replace(plan, **changes) if changes else plan


# The part of a plan that determines a layer's time, and a rank's share of the layer: tokens, heads, experts.


@dataclass(frozen=True, slots=True)
class Ranks:
    """The part of a plan that determines a layer's time; numbers, or columns over many plans."""

    tensor: Real
    context: Real
    expert: Real
    microbatch: Real
    sequence_parallel: Real
    tensor_members: Members
    context_members: Members
    expert_members: Members
    expert_tensor: Real = 0.0
    """Ranks over which each expert is split if experts are folded over tensor, context and data ranks; else 0."""
    expert_tensor_members: Members = ()
    hides: Real = 0.0
    """1 if tensor-parallel communication overlaps with the products next to it."""

    def tokens(self, model: Transformer) -> Real:
        return self.microbatch * model.sequence / self.context

    def norm_split(self) -> Real:
        """Ranks over which norms, dropouts and residuals are split."""
        return np.where(self.sequence_parallel > 0.5, self.tensor, 1.0)


def expert_ranks(model: Transformer, ranks: Ranks) -> Real:
    """Ranks over which experts are spread; 1 for layers without experts."""
    return ranks.expert if model.experts > 1 else np.float64(1.0)


def are_folded(model: Transformer, ranks: Ranks) -> Mask:
    """Whether experts have groups of their own (Liu et al. 2025, arXiv:2504.14960)."""
    return np.greater(ranks.expert_tensor, 0.5) & (model.experts > 1)


def expert_split(model: Transformer, ranks: Ranks) -> Real:
    """Ranks over which the feed-forward part, or each expert, is split."""
    return np.where(are_folded(model, ranks), ranks.expert_tensor, ranks.tensor)


def routed_tokens(model: Transformer, ranks: Ranks) -> Real:
    """Tokens processed by the rank's experts: each token goes to top-k experts, and the fullest rank sets the pace. Of folded experts those
    of as many ranks as an expert is split over, each with its part of the sequence."""
    copies = ranks.tokens(model) * (model.experts_per_token * model.fullest(expert_ranks(model, ranks)))
    return copies * (expert_split(model, ranks) / ranks.tensor)


def local_groups(model: Transformer, ranks: Ranks) -> Real:
    """Key-value heads per tensor rank; with more ranks than groups each rank holds a copy of one."""
    return np.maximum(model.attention_groups / ranks.tensor, 1.0)


# Validity rules of plans, each with a column that is true where it holds.

_TOGETHER = [index for index, name in enumerate(PLACEMENTS) if name.startswith("pipeline") or name.endswith("pipeline")]
"""Orders in which tensor, context and data ranks are neighbours."""

Rule = tuple[str, Mask]
_Condition = tuple[str, str, Callable[[], Mask]]
"""A rule, the settings that it depends on, and its column, computed on demand."""


def rules(model: Transformer, plans: Plans, devices: int) -> tuple[Rule, ...]:
    """Validity rules of plans, each with a column that is true where it holds."""
    return _evaluated(conditions(model, plans, devices))


def keeps_rules_on(model: Transformer, plans: Plans, devices: int, name: str, known: frozenset[str]) -> Mask:
    """Whether partial plans satisfy the rules that depend on this setting and on no unknown one."""
    holds = np.ones(len(plans), bool)
    for _, settings, column in conditions(model, plans, devices):
        if name in (needed := settings.split()) and known.issuperset(needed):
            holds &= column()
    return holds


def _evaluated(conditions: tuple[_Condition, ...]) -> tuple[Rule, ...]:
    return tuple((sentence, column()) for sentence, _, column in conditions)


def conditions(model: Transformer, plans: Plans, devices: int) -> tuple[_Condition, ...]:
    """The rules, not yet evaluated."""

    @cache
    def count() -> Ints:
        return np.asarray(model.global_batch // np.maximum(plans.data * plans.microbatch, 1))

    batch = model.global_batch
    data, transfers, layers, moved, *others = _concession_conditions(model, plans)
    return (
        *_degree_conditions(model, plans, devices),
        (
            f"context x tensor (with sequence parallel) divides the sequence {model.sequence}",
            "context tensor sequence_parallel",
            lambda: _divides_sequence(model, plans),
        ),
        (
            f"pipeline x interleave is at most the {model.stack} layers with embedding and head",
            "pipeline interleave",
            lambda: _fills_chunks(model, plans),
        ),
        ("interleave needs a pipeline", "interleave pipeline", lambda: (plans.interleave == 1) | (plans.pipeline > 1)),
        (
            f"data x microbatch divides the global batch {batch}",
            "data microbatch",
            lambda: batch % np.maximum(plans.data * plans.microbatch, 1) == 0,
        ),
        (
            "with interleave the pipeline divides the number of microbatches",
            "interleave schedule data microbatch pipeline",
            lambda: (plans.interleave == 1) | (plans.schedule == V) | (count() % plans.pipeline == 0),
        ),
        (
            "sequence parallel needs tensor parallel",
            "sequence_parallel tensor",
            lambda: (plans.sequence_parallel == 0) | (plans.tensor > 1),
        ),
        ("ZeRO needs data or context parallel", "zero data context", lambda: (plans.zero == 0) | (plans.data * plans.context > 1)),
        data,
        transfers,
        *_group_conditions(plans),
        (
            "overlapped tensor-parallel communication needs sequence parallel",
            "tensor_exchange sequence_parallel",
            lambda: (plans.tensor_exchange == 0) | (plans.sequence_parallel == 1),
        ),
        *_schedule_conditions(plans, count, (layers, moved)),
        *_end_conditions(model, plans),
        *_expert_conditions(model, plans),
        *(_frozen_conditions(plans) if model.frozen_layers else ()),
        *others,
    )


def _degree_conditions(model: Transformer, plans: Plans, devices: int) -> tuple[_Condition, ...]:
    groups = model.attention_groups
    return (
        (
            f"tensor x context x pipeline x data is the {devices} devices",
            "tensor context pipeline data",
            lambda: plans.tensor * plans.context * plans.pipeline * plans.data == devices,
        ),
        (f"tensor divides the {model.heads} heads", "tensor", lambda: model.heads % plans.tensor == 0),
        (
            f"tensor divides the {groups} key-value heads, or is a multiple of them",
            "tensor",
            lambda: (groups % plans.tensor == 0) | (plans.tensor % groups == 0),
        ),
        (f"tensor divides the hidden size {model.hidden}", "tensor", lambda: model.hidden % plans.tensor == 0),
        (
            f"tensor divides the feed-forward width {' and '.join(map(str, model.widths))}",
            "tensor",
            lambda: gcd(*model.widths) % plans.tensor == 0,
        ),
    )


def _frozen_conditions(plans: Plans) -> tuple[_Condition, ...]:
    """Rules for frozen first layers: all layers are on one stage."""
    return (
        ("frozen layers exclude pipeline parallelism", "pipeline", lambda: plans.pipeline == 1),
        ("frozen layers exclude overlapped expert communication", "expert_exchange", lambda: plans.expert_exchange == 0),
    )


CONCESSION_RULES_ON: Final = ("context", "pipeline", "data", "overlap", "recompute", "offload", "schedule", "expert_exchange")
"""Settings that rules about concessions mention, and those that say what a concession comes to."""


def concession_rules(model: Transformer, plans: Plans) -> tuple[Rule, ...]:
    """The rules about concessions, one each. Where the first layers have no backward pass, layers of a stage differ in nothing
    else."""
    return _evaluated(_concession_conditions(model, plans))


def _concession_conditions(model: Transformer, plans: Plans) -> tuple[_Condition, ...]:
    def recomputed(what: int) -> Mask:
        return np.asarray(again(plans.recompute, what))

    found: tuple[_Condition, ...] = (
        (
            "overlap of data exchange needs data or context parallel",
            "overlap data context",
            lambda: ((plans.overlap & 1) == 0) | (plans.data * plans.context > 1),
        ),
        (
            "overlap of pipeline transfers needs a pipeline",
            "overlap pipeline",
            lambda: ((plans.overlap & 2) == 0) | (plans.pipeline > 1),
        ),
        ("split backward passes recompute no whole layers", "schedule recompute", lambda: (plans.schedule == 0) | ~recomputed(LAYER)),
        ("split backward passes offload nothing", "schedule offload", lambda: (plans.schedule == 0) | (plans.offload == 0)),
        (
            "overlapped expert communication recomputes no whole layers nor experts",
            "expert_exchange recompute",
            lambda: (plans.expert_exchange == 0) | ~(recomputed(LAYER) | recomputed(EXPERTS | SHARED_EXPERTS)),
        ),
    )
    if not model.frozen_layers:
        return found
    return (
        *found,
        ("frozen layers offload nothing", "offload", lambda: plans.offload == 0),
        ("frozen layers exclude recomputation of parts of a layer", "recompute", lambda: plans.recompute < PARTLY),
    )


def _expert_conditions(model: Transformer, plans: Plans) -> tuple[_Condition, ...]:
    """Rules for experts over the data-parallel ranks, or folded over all ranks of a stage."""
    usual, exposed = plans.expert_tensor == 0, plans.expert_exchange == 0

    def split() -> Ints:
        return np.maximum(plans.expert_tensor, 1)

    def divides() -> Mask:
        return np.asarray((model.experts % plans.expert == 0) & (~usual | (plans.data % plans.expert == 0)))

    def divides_block() -> Mask:
        return np.asarray(usual | (plans.tensor * plans.context * plans.data % (split() * plans.expert) == 0))

    return (
        (f"expert divides the {model.experts} experts and data", "expert expert_tensor data", divides),
        (
            "expert_tensor x expert divides tensor x context x data",
            "expert_tensor expert tensor context data",
            divides_block,
        ),
        (
            f"expert_tensor divides the width {model.expert_width} of an expert",
            "expert_tensor",
            lambda: usual | (model.expert_width % split() == 0),
        ),
        (
            "folded experts of several tensor ranks need sequence parallel",
            "expert_tensor tensor sequence_parallel",
            lambda: usual | (plans.tensor == 1) | (plans.sequence_parallel == 1),
        ),
        (
            "folded experts need pipeline as the first or the last dimension of the placement",
            "expert_tensor placement",
            lambda: usual | np.isin(plans.placement, _TOGETHER),
        ),
        (
            "expert_tensor as large as tensor needs expert parallel above 1",
            "expert_tensor tensor expert",
            lambda: usual | (split() != plans.tensor) | (plans.expert > 1),
        ),
        ("groups of ranks that share (shard) exclude folded experts", "expert_tensor shard", lambda: usual | (plans.shard == 0)),
        (
            "overlapped expert communication needs expert parallel above 1",
            "expert_exchange expert",
            lambda: exposed | (plans.expert > 1),
        ),
        (
            "overlapped expert communication on several stages needs interleave above 1, or dualpipe",
            "expert_exchange pipeline interleave schedule",
            lambda: exposed | (plans.pipeline == 1) | (plans.interleave > 1) | (plans.schedule == BOTH_WAYS),
        ),
        (
            "overlapped expert communication excludes split backward passes, except those of dualpipe",
            "expert_exchange schedule",
            lambda: exposed | (plans.schedule == 0) | (plans.schedule == BOTH_WAYS),
        ),
    )


def _schedule_conditions(plans: Plans, count: Callable[[], Ints], concessions: tuple[_Condition, ...]) -> tuple[_Condition, ...]:
    """Rules for split backward passes, as far as they are modelled: inputs of the second part are kept until then."""
    unsplit, other = plans.schedule == 0, plans.schedule != V
    return (
        (
            "split backward passes (zero-bubble, dualpipe) need a pipeline",
            "schedule pipeline",
            lambda: unsplit | (plans.pipeline > 1),
        ),
        (
            "split backward passes keep weights and gradients whole through the step (ZeRO-0, ZeRO-1)",
            "schedule zero",
            lambda: unsplit | (plans.zero < 2),
        ),
        *concessions,
        (
            "split backward passes need an even distribution of layers",
            "schedule first_stage_layers last_stage_layers",
            lambda: unsplit | ((plans.first_stage_layers == 0) & (plans.last_stage_layers == 0)),
        ),
        ("zero-bubble-v has two chunks a stage (interleave 2)", "schedule interleave", lambda: other | (plans.interleave == 2)),
        (
            "zero-bubble-v has at least 2 x pipeline - 1 microbatches",
            "schedule pipeline data microbatch",
            lambda: other | (count() >= 2 * plans.pipeline - 1),
        ),
        (
            "zero-bubble-v needs an even distribution of layers",
            "schedule first_stage_layers last_stage_layers",
            lambda: other | (plans.first_stage_layers + plans.last_stage_layers == 0),
        ),
        *_both_ways_conditions(plans, count),
    )


def _both_ways_conditions(plans: Plans, count: Callable[[], Ints]) -> tuple[_Condition, ...]:
    """Rules of DeepSeek-AI's DualPipe schedule (`step` of dualpipe.py); copies of a stage shard as all replicas do."""
    other = plans.schedule != BOTH_WAYS
    return (
        ("dualpipe has an even number of stages", "schedule pipeline", lambda: other | (plans.pipeline % 2 == 0)),
        (
            "dualpipe has an even number of microbatches, at least 2 x pipeline",
            "schedule pipeline data microbatch",
            lambda: other | ((count() % 2 == 0) & (count() >= 2 * plans.pipeline)),
        ),
        ("dualpipe has one chunk a stage (interleave 1)", "schedule interleave", lambda: other | (plans.interleave == 1)),
        ("dualpipe shares among all replicas (shard 0)", "schedule shard", lambda: other | (plans.shard == 0)),
    )


def _end_conditions(model: Transformer, plans: Plans) -> tuple[_Condition, ...]:
    """Rules for given numbers of layers on the first or the last stage; a chunk beside embedding or head may have no layer."""
    even = (plans.first_stage_layers == 0) & (plans.last_stage_layers == 0)
    return (
        (
            "layers of the first and the last stage need a pipeline",
            "first_stage_layers last_stage_layers pipeline",
            lambda: even | (plans.pipeline > 1),
        ),
        (
            f"first and last stage leave at least one layer of the {model.stack} for each chunk between them, and no remainder",
            "first_stage_layers last_stage_layers pipeline interleave",
            lambda: even if even.all() else even | _leave_chunks(model, plans),  # most questions open neither end
        ),
    )


def _leave_chunks(model: Transformer, plans: Plans) -> Mask:
    """Whether stages between the ends have a layer for each chunk, and end stages for each chunk but one. Two stages must hold
    all layers.
    """
    split = split_layers(model.stack, *(getattr(plans, name).astype(np.float64) for name in ("pipeline", *END_STAGES)))
    ends = np.minimum(split.first(), split.last()) >= np.maximum(plans.interleave - 1, 0)
    between = np.where(plans.pipeline > 2, split.between >= plans.interleave, split.first() + split.last() == model.stack)
    return np.asarray(ends & between)


def _group_conditions(plans: Plans) -> tuple[_Condition, ...]:
    """Rules for sharding groups: they contain whole groups of context ranks and of experts."""
    ungrouped = plans.shard == 0
    return (
        ("groups of ranks that share (shard) need ZeRO", "shard zero", lambda: ungrouped | (plans.zero > 0)),
        (
            "context divides the ranks that share (shard), which divide data x context",
            "shard context data",
            lambda: ungrouped | _divide(plans, plans.shard // plans.context),
        ),
        (
            "expert divides the replicas that share (shard)",
            "shard context expert",
            lambda: ungrouped | (plans.shard // plans.context % plans.expert == 0),
        ),
    )


def _divide(plans: Plans, replicas: Ints) -> Mask:
    found: Mask = (plans.shard % plans.context == 0) & (replicas > 0) & (plans.data % np.maximum(replicas, 1) == 0)
    return found


def broken_rules(model: Transformer, plan: Plan, devices: int) -> tuple[str, ...]:
    """The rules that this plan breaks, as sentences."""
    return tuple(sentence for sentence, holds in rules(model, table([plan]), devices) if not holds[0])


def _fills_chunks(model: Transformer, plans: Plans) -> Mask:
    """Every chunk holds a layer, the embedding or the head; the first and the last may hold these alone (Llama team 2024)."""
    filled: Mask = np.less_equal(plans.pipeline * plans.interleave, model.stack + 2 * (plans.pipeline > 1))
    return filled


def _divides_sequence(model: Transformer, plans: Plans) -> Mask:
    split = plans.context * np.where(plans.sequence_parallel == 1, plans.tensor, 1)
    return np.equal(model.sequence % split, 0)
