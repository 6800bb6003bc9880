"""How a transformer is spread over devices: the degrees of parallelism and the settings that go with them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import permutations
from math import gcd
from operator import and_, or_
from typing import Literal

import numpy as np

from crossopt.crossflow.arrays import Mask, Whole
from crossopt.crossflow.recomputation import LAYER, PARTLY, again, least_recomputed, number_of, recompute_words, word_of
from crossopt.crossflow.stages import split_layers
from crossopt.crossflow.workload import Transformer

Overlap = Literal["none", "data", "pipeline", "both"]
Schedule = Literal["1f1b", "zero-bubble", "zero-bubble-v", "dualpipe"]
TensorExchange = Literal["exposed", "hidden"]
ExpertExchange = Literal["exposed", "hidden"]
Offload = Literal["none", "weights", "activations", "weights-activations", "optimizer", "weights-optimizer", "activations-optimizer", "all"]

OVERLAP: tuple[Overlap, ...] = ("none", "data", "pipeline", "both")
SCHEDULES: tuple[Schedule, ...] = ("1f1b", "zero-bubble", "zero-bubble-v", "dualpipe")
V = SCHEDULES.index("zero-bubble-v")
BOTH_WAYS = SCHEDULES.index("dualpipe")
TENSOR_EXCHANGES: tuple[TensorExchange, ...] = ("exposed", "hidden")
EXPERT_EXCHANGES: tuple[ExpertExchange, ...] = ("exposed", "hidden")
OFFLOAD: tuple[Offload, ...] = (
    "none",
    "weights",
    "activations",
    "weights-activations",
    "optimizer",
    "weights-optimizer",
    "activations-optimizer",
    "all",
)
"""What is kept in the memory of the host: bit 1 of the place weights, bit 2 activations, bit 4 optimizer state."""
END_STAGES = ("first_stage_layers", "last_stage_layers")
DIMENSIONS = ("tensor", "context", "data", "pipeline")
PLACEMENTS: tuple[str, ...] = tuple("-".join(order) for order in permutations(DIMENSIONS))
"""Orders in which the dimensions are laid on the devices, the first on neighbouring ones."""

_TOGETHER = [place for place, name in enumerate(PLACEMENTS) if name.startswith("pipeline") or name.endswith("pipeline")]
"""Orders in which tensor, context and data ranks are neighbours."""

CONCESSIONS: dict[str, Callable[[Sequence[int]], int]] = {
    "recompute": least_recomputed,
    "overlap": lambda codes: reduce(or_, codes),
    "offload": lambda codes: reduce(and_, codes),
}
"""Settings that only cost time and energy, for less memory or for nothing, while all others are equal; each with the setting that costs no
more than any of some: what all of them compute again, everything overlapped that one of them overlaps, nothing offloaded but what
all of them offload. `costs_only` says of which offloading that is true."""

_WORDS: dict[str, tuple[str, ...]] = {
    "overlap": OVERLAP,
    "offload": OFFLOAD,
    "placement": PLACEMENTS,
    "schedule": SCHEDULES,
    "tensor_exchange": TENSOR_EXCHANGES,
    "expert_exchange": EXPERT_EXCHANGES,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """One parallel plan. The product of tensor, context, pipeline and data is the number of devices."""

    tensor: int = 1
    context: int = 1
    pipeline: int = 1
    data: int = 1
    expert: int = 1
    """Ranks, out of the data-parallel ones, over which the experts are spread; of all in a stage where `expert_tensor` says so."""
    microbatch: int = 1
    interleave: int = 1
    """Model chunks a pipeline stage holds."""
    sequence_parallel: bool = False
    """Norms and dropouts are split over the tensor-parallel ranks."""
    recompute: str = "none"
    """What is computed again, in the words of `crossflow.recomputation`."""
    zero: int = 0
    """ZeRO stage: what data-parallel ranks share: 0 nothing, 1 optimizer state, 2 and gradients, 3 and weights."""
    overlap: Overlap = "none"
    offload: Offload = "none"
    """What of the layers is kept in the memory of the host."""
    placement: str = PLACEMENTS[0]
    shard: int = 0
    """Ranks, out of the data- and context-parallel ones, among which ZeRO shares; 0 is all of them."""
    schedule: Schedule = "1f1b"
    """In which order stages work, see `crossflow.schedule`; interleaved where a stage has several chunks."""
    first_stage_layers: int = 0
    """Layers of the first stage, which also holds the embedding; 0 deals them out as evenly as can be."""
    last_stage_layers: int = 0
    """The same of the last stage, which also holds the head."""
    expert_tensor: int = 0
    """Ranks over which each expert is split, where experts are laid over tensor, context and data ranks together (folding): these are
    expert_tensor x expert x replicas of an expert. 0 splits experts over the tensor ranks and spreads them over the data-parallel ones."""
    tensor_exchange: TensorExchange = "exposed"
    """Whether exchanges of tensor ranks go on in parts behind the products next to them, see `crossflow.hiding`."""
    expert_exchange: ExpertExchange = "exposed"
    """Whether tokens of one microbatch go to their experts behind the work on another, see `crossflow.hiding`."""

    def __post_init__(self) -> None:
        for name in ("tensor", "context", "pipeline", "data", "expert", "microbatch", "interleave"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, at least 1 is needed")
        if self.shard < 0:
            raise ValueError(f"shard is {self.shard}, a number of ranks or 0 for all is needed")
        for name in (*END_STAGES, "expert_tensor"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}, at least 0 is needed (0 means the usual)")
        if self.zero not in range(4):
            raise ValueError(f"zero is {self.zero}, a ZeRO stage from 0 to 3 is needed")
        for name, words in _WORDS.items():
            if getattr(self, name) not in words:
                raise ValueError(f"{name} is {getattr(self, name)!r}, one of {', '.join(words)} is needed")
        if (word := word_of(number_of(self.recompute))) != self.recompute:
            raise ValueError(f"recompute is {self.recompute!r}, {word!r} is needed, which means the same")

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
        parts += [recompute_words(self.recompute)]
        parts += [f"ZeRO-{self.zero}" + (f" in groups of {self.shard}" if self.shard else "")] if self.zero else []
        parts += [f"overlap {self.overlap}"] if self.overlap != "none" else []
        parts += [f"offload {self.offload}"] if self.offload != "none" else []
        parts += [f"placed {self.placement}"] if self.placement != PLACEMENTS[0] else []
        return " · ".join(parts)


@dataclass(frozen=True, slots=True)
class Plans:
    """Many plans as one column a field; words are stored as their place in OVERLAP, PLACEMENTS and so on."""

    tensor: Whole
    context: Whole
    pipeline: Whole
    data: Whole
    expert: Whole
    microbatch: Whole
    interleave: Whole
    sequence_parallel: Whole
    recompute: Whole
    zero: Whole
    overlap: Whole
    offload: Whole
    placement: Whole
    shard: Whole
    schedule: Whole
    first_stage_layers: Whole
    last_stage_layers: Whole
    expert_tensor: Whole
    tensor_exchange: Whole
    expert_exchange: Whole

    def __len__(self) -> int:
        return len(self.tensor)


PLAN_FIELDS = tuple(field.name for field in fields(Plan))


def code(field: str, value: object) -> int:
    """The number that stands for a plan's field in the columns of `Plans`."""
    if field == "recompute":
        return number_of(str(value))
    return _WORDS[field].index(str(value)) if field in _WORDS else int(value)  # type: ignore[call-overload]


def table(plans: Sequence[Plan]) -> Plans:
    """Plans as columns."""
    return Plans(*(np.array([code(name, getattr(plan, name)) for plan in plans], np.int64) for name in PLAN_FIELDS))


def option(field: str, number: int) -> object:
    """The value of a plan's field for which the number stands."""
    if field == "recompute":
        return word_of(number)
    return _WORDS[field][number] if field in _WORDS else bool(number) if field == "sequence_parallel" else number


def plan_at(plans: Plans, row: int) -> Plan:
    """The plan in one row."""
    return Plan(**{name: option(name, int(getattr(plans, name)[row])) for name in PLAN_FIELDS})  # type: ignore[arg-type]


def costs_only(name: str, offload: int) -> bool:
    """Whether more of a concession gains nothing where this is offloaded.

    Recomputation may gain where activations are: what is not kept is not moved, and the host's link may be slower than the device."""
    return name != "recompute" or not offload & code("offload", "activations")


def rows_of(plans: Plans, rows: Whole | slice) -> Plans:
    """Some of the plans."""
    return Plans(*(getattr(plans, name)[rows] for name in PLAN_FIELDS))


def joined(parts: Sequence[Plans]) -> Plans:
    """The plans of several tables in one, in their order."""
    return Plans(*(np.concatenate([np.zeros(0, np.int64), *(getattr(part, name) for part in parts)]) for name in PLAN_FIELDS))


CONDITIONAL = (
    *("expert", "interleave", "sequence_parallel", "zero", "overlap", "shard", "schedule"),
    *(*END_STAGES, "expert_tensor", "tensor_exchange", "expert_exchange"),
)
"""Settings that mean nothing to plans which lack what they are about."""


def applied(model: Transformer, plans: Plans) -> Plans:
    """The plans without settings that mean nothing to them, which leaves plans that do the same: no chunks, layers of ends, transfers nor
    schedule where there is one stage, no sharing where there is one replica, no sequence parallelism nor hidden exchange on one tensor
    rank, no ranks for experts where there are none, and no hidden exchange of those that are not spread."""
    exchanged, staged = plans.data * plans.context > 1, plans.pipeline > 1
    return replace(
        plans,
        expert=plans.expert if model.experts > 1 else np.ones_like(plans.expert),
        expert_tensor=np.where((plans.expert_tensor == plans.tensor) & (plans.context == 1) | (model.experts == 1), 0, plans.expert_tensor),
        interleave=np.where(staged, plans.interleave, 1),
        sequence_parallel=np.where(plans.tensor > 1, plans.sequence_parallel, 0),
        zero=np.where(exchanged, plans.zero, 0),
        shard=np.where((plans.zero > 0) & (plans.shard < plans.data * plans.context), plans.shard, 0),
        overlap=plans.overlap & (1 * exchanged | 2 * staged),
        schedule=np.where(staged, plans.schedule, 0),
        tensor_exchange=np.where(plans.tensor > 1, plans.tensor_exchange, 0),
        expert_exchange=np.where((plans.expert > 1) & (model.experts > 1), plans.expert_exchange, 0),
        **{name: np.where(staged, getattr(plans, name), 0) for name in END_STAGES},
    )


Rule = tuple[str, Mask]


def rules(model: Transformer, plans: Plans, devices: int) -> tuple[Rule, ...]:
    """What a plan must satisfy to be a plan at all, in words, each with a column that is true where it holds."""
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
        ("hidden tensor exchange needs sequence parallel", (plans.tensor_exchange == 0) | (plans.sequence_parallel == 1)),
        *_schedule_rules(plans, count, (layers, moved)),
        *_end_rules(model, plans),
        *_expert_rules(model, plans),
        *(_frozen_rules(plans) if model.frozen_layers else ()),
        *others,
    )


def _frozen_rules(plans: Plans) -> tuple[Rule, ...]:
    """Where the first layers have no backward pass, all layers are on one stage."""
    return (
        ("frozen layers go without a pipeline", plans.pipeline == 1),
        ("frozen layers go without hidden expert exchange", plans.expert_exchange == 0),
    )


def concession_rules(model: Transformer, plans: Plans) -> tuple[Rule, ...]:
    """The rules that speak of concessions, each of one. Where the first layers have no backward pass, layers of a stage differ in nothing
    else."""
    layers = again(plans.recompute, LAYER)
    found = (
        ("overlap of data exchange needs data or context parallel", ((plans.overlap & 1) == 0) | (plans.data * plans.context > 1)),
        ("overlap of pipeline transfers needs a pipeline", ((plans.overlap & 2) == 0) | (plans.pipeline > 1)),
        ("split backward passes compute no whole layers again", (plans.schedule == 0) | ~layers),
        ("split backward passes offload nothing", (plans.schedule == 0) | (plans.offload == 0)),
        ("hidden expert exchange computes no whole layers again", (plans.expert_exchange == 0) | ~layers),
    )
    if not model.frozen_layers:
        return found
    return (
        *found,
        ("frozen layers offload nothing", plans.offload == 0),
        ("frozen layers go without layers of which a part is computed again", plans.recompute < PARTLY),
    )


def _expert_rules(model: Transformer, plans: Plans) -> tuple[Rule, ...]:
    """Experts over the data-parallel ranks, or folded over all ranks of a stage."""
    usual, split, exposed = plans.expert_tensor == 0, np.maximum(plans.expert_tensor, 1), plans.expert_exchange == 0
    divides, block = model.experts % plans.expert == 0, plans.tensor * plans.context * plans.data
    together = np.isin(plans.placement, _TOGETHER)
    return (
        (f"expert divides the {model.experts} experts and data", divides & (~usual | (plans.data % plans.expert == 0))),
        ("expert_tensor x expert divides tensor x context x data", usual | (block % (split * plans.expert) == 0)),
        (f"expert_tensor divides the width {model.expert_width} of an expert", usual | (model.expert_width % split == 0)),
        ("folded experts of several tensor ranks need sequence parallel", usual | (plans.tensor == 1) | (plans.sequence_parallel == 1)),
        ("folded experts need pipeline as the first or the last dimension of the placement", usual | together),
        ("expert_tensor as large as tensor needs experts that are spread", usual | (split != plans.tensor) | (plans.expert > 1)),
        ("groups of ranks that share go without folded experts", usual | (plans.shard == 0)),
        ("hidden expert exchange needs experts that are spread", exposed | (plans.expert > 1)),
        (
            "hidden expert exchange on several stages needs interleave above 1, or dualpipe",
            exposed | (plans.pipeline == 1) | (plans.interleave > 1) | (plans.schedule == BOTH_WAYS),
        ),
        (
            "hidden expert exchange goes without split backward passes, but for those of dualpipe",
            exposed | (plans.schedule == 0) | (plans.schedule == BOTH_WAYS),
        ),
    )


def _schedule_rules(plans: Plans, count: Whole, concessions: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """What backward passes in two parts go without, as far as they are priced here: what the second part needs is kept until then."""
    whole = plans.schedule == 0
    return (
        ("split backward passes (zero-bubble, dualpipe) need a pipeline", whole | (plans.pipeline > 1)),
        ("split backward passes keep weights and gradients whole through the step (ZeRO-0, ZeRO-1)", whole | (plans.zero < 2)),
        *concessions,
        ("split backward passes have layers dealt out evenly", whole | ((plans.first_stage_layers == 0) & (plans.last_stage_layers == 0))),
        ("zero-bubble-v has two chunks a stage (interleave 2)", (plans.schedule != V) | (plans.interleave == 2)),
        ("zero-bubble-v has at least 2 x pipeline - 1 microbatches", (plans.schedule != V) | (count >= 2 * plans.pipeline - 1)),
        ("zero-bubble-v deals layers out evenly", (plans.schedule != V) | (plans.first_stage_layers + plans.last_stage_layers == 0)),
        *_both_ways_rules(plans, count),
    )


def _both_ways_rules(plans: Plans, count: Whole) -> tuple[Rule, ...]:
    """What the schedule of DeepSeek-AI's DualPipe asks for (`step` of its dualpipe.py); copies of a stage share as all replicas do."""
    other = plans.schedule != BOTH_WAYS
    return (
        ("dualpipe has an even number of stages", other | (plans.pipeline % 2 == 0)),
        ("dualpipe has an even number of microbatches, at least 2 x pipeline", other | ((count % 2 == 0) & (count >= 2 * plans.pipeline))),
        ("dualpipe has one chunk a stage (interleave 1)", other | (plans.interleave == 1)),
        ("dualpipe shares among all replicas (shard 0)", other | (plans.shard == 0)),
    )


def _end_rules(model: Transformer, plans: Plans) -> tuple[Rule, ...]:
    """What is left where the first or the last stage has a number of layers of its own; a chunk beside embedding or head may have none."""
    even = (plans.first_stage_layers == 0) & (plans.last_stage_layers == 0)
    split = split_layers(model.stack, *(getattr(plans, name).astype(np.float64) for name in ("pipeline", *END_STAGES)))
    ends = np.minimum(split.first(), split.last()) >= np.maximum(plans.interleave - 1, 0)
    between = np.where(plans.pipeline > 2, split.between >= plans.interleave, split.first() + split.last() == model.stack)
    return (
        ("layers of the first and the last stage need a pipeline", even | (plans.pipeline > 1)),
        (f"first and last stage leave a layer of the {model.stack} for each chunk between them, and none over", even | (ends & between)),
    )


def _group_rules(plans: Plans) -> tuple[Rule, ...]:
    """A group of ranks that share has whole groups of context ranks in it, and those of experts."""
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
    """The rules that this plan breaks, in words."""
    return tuple(sentence for sentence, holds in rules(model, table([plan]), devices) if not holds[0])


def _fills_chunks(model: Transformer, plans: Plans) -> Mask:
    """Every chunk holds a layer, the embedding or the head: the first and the last one may hold these alone (Llama team 2024)."""
    filled: Mask = np.less_equal(plans.pipeline * plans.interleave, model.stack + 2 * (plans.pipeline > 1))
    return filled


def _in_groups(plans: Plans, count: Whole) -> Mask:
    """Microbatches go through interleaved chunks in groups of as many as there are stages, but in a V."""
    return np.asarray((plans.interleave == 1) | (plans.schedule == V) | (count % plans.pipeline == 0))


def _divides_sequence(model: Transformer, plans: Plans) -> Mask:
    split = plans.context * np.where(plans.sequence_parallel == 1, plans.tensor, 1)
    return np.equal(model.sequence % split, 0)
