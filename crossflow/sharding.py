"""The part of a plan on which memory and exchanges depend, and what of it follows at once: the layers of stages, what is offloaded, the
shares of experts."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Mask, Real
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.stages import Split, is_both_ways, is_v, microbatches_in_flight, split_layers
from crossopt.crossflow.workload import Transformer

RESIDENT_LAYERS: Final = 3.0
"""Layers of which what is offloaded stays on the device: one in use, one coming and one going."""
_BITS: Final = {"weights": 1.0, "activations": 2.0, "optimizer": 4.0}


@dataclass(frozen=True, slots=True)
class Sharding:
    """The part of a plan on which memory depends; numbers, or columns over many plans, words by their places."""

    tensor: Real
    context: Real
    pipeline: Real
    data: Real
    expert: Real
    microbatch: Real
    interleave: Real
    sequence_parallel: Real
    recompute: Real
    zero: Real
    offload: Real
    """1 weights, 2 activations, 4 optimizer state, added up."""
    microbatches: Real
    shard: Real = 0.0
    """Ranks that share among them; 0 is all."""
    schedule: Real = 0.0
    """The place in SCHEDULES."""
    expert_tensor: Real = 0.0
    """As in a plan: 0 where experts are not folded."""
    first_stage_layers: Real = 0.0
    last_stage_layers: Real = 0.0
    expert_exchange: Real = 0.0
    """1 where experts' exchanges hide behind the work on another microbatch."""

    def sharing(self) -> Real:
        """Over how many ranks ZeRO shares: both copies of a stage where microbatches go both ways."""
        every = self.data * self.context
        if np.any(is_both_ways(self.schedule)):
            every = every * np.where(is_both_ways(self.schedule), 2.0, 1.0)
        return np.where(self.shard > 0.5, self.shard, every)


def in_flight(sharding: Sharding, stage: Real) -> Real:
    """For how many microbatches a stage keeps activations, on each of its devices."""
    counts = (sharding.pipeline, sharding.interleave, sharding.microbatches, sharding.schedule, sharding.expert_exchange)
    return microbatches_in_flight(stage, *counts)


def layers_of(model: Transformer, sharding: Sharding) -> Split:
    """How many layers each stage holds."""
    return split_layers(model.stack, sharding.pipeline, sharding.first_stage_layers, sharding.last_stage_layers)


def has_head(sharding: Sharding, stage: Real) -> Mask:
    """Where the head is: on the last stage, or the first one where chunks come back to it."""
    return np.where(is_v(sharding.schedule), np.less(stage, 0.5), np.greater(stage, sharding.pipeline - 1.5))


def offloads(sharding: Sharding, what: str) -> Mask:
    """Whether `weights`, `activations` or `optimizer` state of the layers are kept in the host's memory."""
    return np.greater(np.floor(sharding.offload / _BITS[what]) % 2.0, 0.5)


def copies_split(sharding: Sharding, norm_split: Real) -> Real:
    """Over how many ranks the copies of tokens are split that go to experts: those of a split expert gather them."""
    folded = np.greater(sharding.expert_tensor, 0.5)
    return np.where(folded, sharding.tensor / np.maximum(sharding.expert_tensor, 1.0), norm_split)


def expert_split(model: Transformer, sharding: Sharding) -> Real:
    """Over how many ranks the feed-forward part is split, of experts each expert."""
    return np.where(np.greater(sharding.expert_tensor, 0.5) & (model.experts > 1), sharding.expert_tensor, sharding.tensor)


def expert_shares(sharding: Sharding) -> Real:
    """Data- and context-parallel ranks for each replica of an expert."""
    split = np.where(np.greater(sharding.expert_tensor, 0.5), sharding.expert_tensor, sharding.tensor)
    return sharding.expert * (split / sharding.tensor)


def candidates(model: Transformer, sharding: Sharding) -> list[Real]:
    """Stages of which one is the fullest: the first may hold the embedding alone, each dense layer may have a stage of its own, and the
    next stage has none. Of devices with two stages also the one with those in the middle."""
    last = sharding.pipeline - 1.0
    found = [*(np.minimum(float(stage), last) for stage in range(model.dense_layers + 2)), last]
    both = is_both_ways(sharding.schedule)
    return [*found, np.where(both, np.floor(last / 2.0), last)] if np.any(both) else found


@dataclass(frozen=True, slots=True)
class Weights:
    """Parameters of one device: `shared` ones every data-parallel rank holds, `routed` ones only the ranks with the same experts."""

    shared: Real
    routed: Real


def mixed(kinds: Sequence[Weights], dense: Real) -> Weights:
    """Of layers of one kind, or of two kinds of which the first has this share."""
    first, *rest = ((kind.shared, kind.routed) for kind in kinds)
    if not rest:
        return kinds[0]
    return Weights(*(dense * one + (1.0 - dense) * other for one, other in zip(first, rest[0], strict=True)))


def owned(one: Weights, layers: Real, beside: Real | None = None) -> Weights:
    """Those of so many layers and of what lies beside them."""
    shared = layers * one.shared
    return Weights(shared if beside is None else shared + beside, layers * one.routed)


def share_out(sharding: Sharding, owned: Weights, zero: int) -> Real:
    """How many of the parameters one device holds a value of, if replicas share them out from this ZeRO stage on."""
    ranks = sharding.sharing()
    share = owned.shared / ranks + owned.routed * expert_shares(sharding) / ranks
    return np.where(sharding.zero > zero - 0.5, share, owned.shared + owned.routed)


def on_device(sharding: Sharding, what: str, layers: Real) -> Real:
    """For how many layers this lies on the device."""
    if not np.any(sharding.offload):
        return layers
    return np.where(offloads(sharding, what), np.minimum(layers, RESIDENT_LAYERS), layers)
