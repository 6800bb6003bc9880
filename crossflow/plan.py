"""How a transformer is spread over devices: the degrees of parallelism and the settings that go with them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from itertools import permutations
from operator import and_, or_
from typing import Literal

import numpy as np

from crossopt.crossflow.arrays import Mask, Whole
from crossopt.crossflow.recomputation import least_recomputed, number_of, recompute_words, word_of
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
    """Whether exchanges of tensor ranks go on in parts behind the products next to them, see `crossflow.exchanges.hiding`."""
    expert_exchange: ExpertExchange = "exposed"
    """Whether tokens of one microbatch go to their experts behind the work on another, see `crossflow.exchanges.hiding`."""

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


def _staged(name: str) -> Callable[[Transformer, Plans], Whole]:
    """The setting, where there is more than one stage."""
    return lambda _, plans: np.where(plans.pipeline > 1, getattr(plans, name), 0)


def _where_tensor_is_split(name: str) -> Callable[[Transformer, Plans], Whole]:
    return lambda _, plans: np.where(plans.tensor > 1, getattr(plans, name), 0)


def _exchanged(plans: Plans) -> Mask:
    """Whether there are replicas, or ranks that hold parts of samples, among which something is exchanged."""
    several: Mask = np.greater(plans.data * plans.context, 1)
    return several


def _expert_tensor(model: Transformer, plans: Plans) -> Whole:
    usual = (plans.expert_tensor == plans.tensor) & (plans.context == 1) | (model.experts == 1)
    return np.where(usual, 0, plans.expert_tensor)


COMES_TO: dict[str, Callable[[Transformer, Plans], Whole]] = {
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
"""Settings that mean nothing to plans which lack what they are about, and what they come to at each plan: no chunks, layers of ends,
transfers nor schedule where there is one stage, no sharing where there is one replica, no sequence parallelism nor hidden exchange on one
tensor rank, no ranks for experts where there are none, and no hidden exchange of those that are not spread."""
