"""The part of a plan that determines memory and communication: layers of stages, offloading, and shares of experts."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Mask, Real
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.stages import Split, is_both_ways, is_v, microbatches_in_flight, split_layers
from crossopt.crossflow.workload import Transformer

RESIDENT_LAYERS: Final = 3.0
"""Layers whose offloaded data stay on the device: one in use, one arriving and one leaving."""
_BITS: Final = {"weights": 1.0, "activations": 2.0, "optimizer": 4.0}


@dataclass(frozen=True, slots=True)
class Sharding:
    """The part of a plan that determines memory; numbers, or columns over many plans, names as indices."""

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
    """Size of a sharding group; 0 is all."""
    schedule: Real = 0.0
    """Index into SCHEDULES."""
    expert_tensor: Real = 0.0
    """As in a plan: 0 if experts are not folded."""
    first_stage_layers: Real = 0.0
    last_stage_layers: Real = 0.0
    expert_exchange: Real = 0.0
    """1 if expert communication is hidden behind another microbatch."""

    def sharing(self) -> Real:
        """Ranks over which ZeRO shards; includes both copies of a stage if microbatches go both ways."""
        every = self.data * self.context
        if np.any(is_both_ways(self.schedule)):
            every = every * np.where(is_both_ways(self.schedule), 2.0, 1.0)
        return np.where(self.shard > 0.5, self.shard, every)


def in_flight(sharding: Sharding, stage: Real) -> Real:
    """Number of microbatches whose activations a stage stores, on each of its devices."""
    counts = (sharding.pipeline, sharding.interleave, sharding.microbatches, sharding.schedule, sharding.expert_exchange)
    return microbatches_in_flight(stage, *counts)


def layers_of(model: Transformer, sharding: Sharding) -> Split:
    """Number of layers of each stage."""
    return split_layers(model.stack, sharding.pipeline, sharding.first_stage_layers, sharding.last_stage_layers)


def has_head(sharding: Sharding, stage: Real) -> Mask:
    """Whether this stage has the head: the last one, or the first if chunks come back to it."""
    return np.where(is_v(sharding.schedule), np.less(stage, 0.5), np.greater(stage, sharding.pipeline - 1.5))


def offloads(sharding: Sharding, what: str) -> Mask:
    """Whether `weights`, `activations` or `optimizer` state of the layers are in host memory."""
    return np.greater(np.floor(sharding.offload / _BITS[what]) % 2.0, 0.5)


def copies_split(sharding: Sharding, norm_split: Real) -> Real:
    """Ranks over which copies of dispatched tokens are split; the ranks of a split expert gather them."""
    folded = np.greater(sharding.expert_tensor, 0.5)
    return np.where(folded, sharding.tensor / np.maximum(sharding.expert_tensor, 1.0), norm_split)


def expert_split(model: Transformer, sharding: Sharding) -> Real:
    """Ranks over which the feed-forward part, or each expert, is split."""
    return np.where(np.greater(sharding.expert_tensor, 0.5) & (model.experts > 1), sharding.expert_tensor, sharding.tensor)


def expert_shares(sharding: Sharding) -> Real:
    """Data- and context-parallel ranks per replica of an expert."""
    split = np.where(np.greater(sharding.expert_tensor, 0.5), sharding.expert_tensor, sharding.tensor)
    return sharding.expert * (split / sharding.tensor)


def candidates(model: Transformer, sharding: Sharding) -> list[Real]:
    """Stages among which the fullest one is. The first may hold the embedding alone, each dense layer may have a stage of its
    own, and the next stage has none. Of devices with two stages also the one with those in the middle.
    """
    last = sharding.pipeline - 1.0
    found = [*(np.minimum(float(stage), last) for stage in range(model.dense_layers + 2)), last]
    both = is_both_ways(sharding.schedule)
    return [*found, np.where(both, np.floor(last / 2.0), last)] if np.any(both) else found


@dataclass(frozen=True, slots=True)
class Weights:
    """Parameters of one device: `shared` on every data-parallel rank, `routed` only on ranks with the same experts."""

    shared: Real
    routed: Real


def mixed(kinds: Sequence[Weights], dense: Real) -> Weights:
    """Mean parameters of layers of one kind, or of two kinds with this share of the first."""
    first, *rest = ((kind.shared, kind.routed) for kind in kinds)
    if not rest:
        return kinds[0]
    return Weights(*(dense * first_part + (1.0 - dense) * second_part for first_part, second_part in zip(first, rest[0], strict=True)))


def owned(layer: Weights, layers: Real, beside: Real | None = None) -> Weights:
    """Parameters of this many layers and of the parts outside the layers."""
    shared = layers * layer.shared
    return Weights(shared if beside is None else shared + beside, layers * layer.routed)


def share_out(sharding: Sharding, owned: Weights, zero: int) -> Real:
    """Number of parameters of which one device stores a value, if replicas shard them from this ZeRO stage on."""
    ranks = sharding.sharing()
    share = owned.shared / ranks + owned.routed * expert_shares(sharding) / ranks
    return np.where(sharding.zero > zero - 0.5, share, owned.shared + owned.routed)


def on_device(sharding: Sharding, what: str, layers: Real) -> Real:
    """Number of layers whose data are on the device."""
    if not np.any(sharding.offload):
        return layers
    return np.where(offloads(sharding, what), np.minimum(layers, RESIDENT_LAYERS), layers)
