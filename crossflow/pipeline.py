"""The time of one training step from the times of its parts: pipeline schedule, overlap, gradient exchange, optimizer.

With stage times s_i = forward + backward of all a stage's layers, m microbatches, p stages and v chunks a stage (1F1B for v = 1):

    T = (m - 1/v) max s_i + (sum s_i) / v + exposed gradient exchange + optimizer + overhead

For equal stages this is m s + (p - 1) s / v (Narayanan et al. 2021). For uneven ones under 1F1B it is exact where the last stage is the
fullest, and never too short where backward takes the same multiple of forward on every stage.

Communication that hides behind computation is a window, max(total + its price, unhidable + communication), never a difference, so that T
falls when any part does, operation by operation.
"""

from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.stages import Split


@dataclass(frozen=True, slots=True)
class Terms:
    """What the step is made of, in seconds, for one microbatch where not said otherwise; numbers, or arrays over plans and devices."""

    split: Split
    interleave: Real
    microbatches: Real
    forward: Real
    """One layer."""
    backward: Real
    """One layer, recomputation included."""
    embedding: Real
    head: Real
    transfer: Real
    """One message to a neighbouring stage."""
    gather_forward: Real
    """Sharded weights of one layer."""
    gather_backward: Real
    """The same, and the scatter of its gradients."""
    synchronize: Real
    """Gradient exchange of the step."""
    publish: Real
    """Gather of updated weights after the optimizer."""
    optimizer: Real
    overhead: Real
    hidden_gather: Real
    """Share of a layer behind which its gathers hide."""
    hidden_transfer: Real
    """Share of a stage behind which its messages hide."""
    hidden_exchange: Real
    """Share of the last backward pass behind which the gradient exchange hides."""
    lost: Real = 0.0
    """Share of the device's speed that an exchange takes while work hides it."""
    host_forward: Real = 0.0
    """The host's link for one layer, which works beside it."""
    host_backward: Real = 0.0


@dataclass(frozen=True, slots=True)
class Slots:
    """One microbatch on the stages: `backward` of the layers every stage has, and all the rest of the first, middle and last stage."""

    backward: Real
    first: Real
    middle: Real
    last: Real
    total: Real
    """The rest, over all stages."""

    def fullest(self) -> Real:
        return np.maximum(np.maximum(self.first, self.middle), self.last)


def window(computation: Real, hidden: Real, communication: Real, lost: Real = 0.0) -> Real:
    """Seconds in which `communication` hides behind a `hidden` share of `computation`, at `1 - lost` of the device's speed meanwhile.

    max(C + lost X, (1 - hidden) C + X): the first where computing goes on longest, the second where the exchange does; where nothing
    hides, their sum."""
    return np.maximum(computation + lost * communication, (1.0 - hidden) * computation + communication)


def slots(terms: Terms) -> Slots:
    """Times of the stages; backward work that all stages share is kept apart, because gradients are exchanged behind it."""
    split = terms.split
    forward, backward = passes(terms)
    one = forward + backward
    messages = terms.interleave * terms.transfer
    common = window(split.least * forward, terms.hidden_transfer, messages, terms.lost)
    alone = np.where(split.stages > 1.5, 0.0, 1.0)
    return Slots(
        backward=window(split.least * backward, terms.hidden_transfer, messages, terms.lost),
        first=common + (split.first() - split.least) * one + (terms.embedding + alone * terms.head),
        middle=common + (split.middle() - split.least) * one,
        last=common + terms.head,
        total=split.stages * common + split.extra * one + (terms.embedding + terms.head),
    )


def passes(terms: Terms) -> tuple[Real, Real]:
    """One layer forward and backward, with the gathers of its weights, or as long as the host's link needs."""
    forward = window(terms.forward, terms.hidden_gather, terms.gather_forward, terms.lost)
    backward = window(terms.backward, terms.hidden_gather, terms.gather_backward, terms.lost)
    return np.maximum(forward, terms.host_forward), np.maximum(backward, terms.host_backward)


def step_time(terms: Terms) -> Real:
    """Seconds of one training step."""
    slot = slots(terms)
    fullest, turn = slot.fullest(), 1.0 / terms.interleave
    steady = (terms.microbatches - 1.0) * (slot.backward + fullest) + (1.0 - turn) * fullest
    filling = (slot.total + (terms.split.stages - 1.0) * slot.backward) * turn
    finish = window(slot.backward, terms.hidden_exchange, terms.synchronize, terms.lost)
    return (steady + filling + finish) + (terms.publish + terms.optimizer + terms.overhead)


def bubble(terms: Terms) -> Real:
    """Seconds in which the fullest stage waits for the pipeline to fill and drain."""
    slot = slots(terms)
    return (slot.total - slot.fullest() + (terms.split.stages - 1.0) * slot.backward) / terms.interleave


@dataclass(frozen=True, slots=True)
class FullestStage:
    """What the stage that sets the pace does for one microbatch, beside its layers' own time."""

    layers: Real
    gathers: Real
    """Exposed seconds a layer."""
    host: Real
    """The same for the host's link."""
    edges: Real
    """Embedding and head."""
    transfers: Real
    """Exposed seconds."""


def fullest_slot(terms: Terms) -> FullestStage:
    """The stage whose slot is the longest; of several the first."""
    slot, split = slots(terms), terms.split
    alone_forward = window(terms.forward, terms.hidden_gather, terms.gather_forward, terms.lost)
    alone_backward = window(terms.backward, terms.hidden_gather, terms.gather_backward, terms.lost)
    forward, backward = passes(terms)
    messages = terms.interleave * terms.transfer
    common = window(split.least * forward, terms.hidden_transfer, messages, terms.lost)
    is_first, is_middle = slot.first >= slot.fullest(), slot.middle >= slot.fullest()
    alone = np.where(split.stages > 1.5, 0.0, 1.0)
    first_edges = terms.embedding + alone * terms.head
    return FullestStage(
        layers=np.where(is_first, split.first(), np.where(is_middle, split.middle(), split.last())),
        gathers=(alone_forward - terms.forward) + (alone_backward - terms.backward),
        host=(forward - alone_forward) + (backward - alone_backward),
        edges=np.where(is_first, first_edges, np.where(is_middle, 0.0, terms.head)),
        transfers=(common - split.least * forward) + (slot.backward - split.least * backward),
    )
