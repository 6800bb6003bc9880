"""The time of one training step from the times of its parts: pipeline schedule, overlap, gradient exchange, optimizer.

With stage times s_i = forward + backward of all a stage's layers, m microbatches, p stages and v chunks a stage (1F1B for v = 1):

    T = (m - 1/v) max s_i + (sum s_i) / v + exposed gradient exchange + optimizer + overhead

For equal stages this is m s + (p - 1) s / v (Narayanan et al. 2021). Where chunks do not divide the layers of the fullest stage, they
differ, and stages wait for each other for at most (p - 1) / p of a layer more in each microbatch (`stages.waited_for_chunks`). For uneven
stages under 1F1B the formula is exact where the last stage is the fullest, and never too short where backward takes the same multiple of
forward on every stage.

Where the gradients of weights are put off (`zero-bubble`: ZB-H1 of Qi et al. 2023, arXiv:2401.10241, section 2.2, interleaved for v > 1),
a stage takes F forward, B for the gradients of its inputs and W for those of its weights. Its passes are in a fixed order, so that the
step is the longest of the ways through them; with n = m v passes of chunks in each direction it is one of three:

    v T = (n + p - 1) (F + B) + (max(n - p, 0) + 1) W       down the stages, the last one's work but what it puts off, and up again
    v T = (n + p - 1) F + max(n, p) B + n W                 down the stages, and all that the last one does
    v T = max(n, p) F + (n + p - 1) B + n W                 all that the first one does, which waits for its first gradients

Where W is at most F and B the first is the longest, and its bubble is the published (p - 1) (F + B - W). That is a difference, but of
counts: each way is a sum, so that T falls when any of F, B and W does. For uneven stages the sums take each stage once and all further
passes from the stage that makes the way longest.

With two chunks a stage in a V (`zero-bubble-v`: section 6 there, in the order of PyTorch's ZBVZeroBubble) the first stage holds the first
and the last chunk, embedding and head. With at least 2 p - 1 microbatches the longest of eight ways, n + a forward passes of chunks, n + b
gradients of inputs and n + c of weights, is that of the simulated passes; where F = B = W its bubble is (p - 1) F / v.

With microbatches both ways (`dualpipe`: DeepSeek-AI 2024, arXiv:2412.19437, section 3.2.1, in the order of DualPipe's dualpipe.py) a device
holds two stages, one as far from the beginning as the other from the end. P seconds of a forward pass together with a whole backward pass
of the other way (`crossflow.hiding`), h = p / 2 and at least 2 p microbatches make the longest way through the passes

    T = (m - h - 2) P + 2 h F + (h + 2) B + 3 W + (h - 1) max(B, W) + max(h F, (h - 1) B)

Where F = B and W is at most that, the devices in the middle wait the published (h - 1) (P + (B + W) - 3 W). Where stages differ, pairs take
as long as the fullest device's two stages, and passes alone as long as the fullest stage.

Communication that hides behind computation is a window, max(total + its price, unhidable + communication), never a difference, so that T
falls when any part does, operation by operation.
"""

from dataclasses import replace
from functools import reduce

import numpy as np

from crossopt.crossflow.arrays import Mask, Real
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.stages import Split, is_both_ways, is_v, paired_layers, waited_for_chunks


@dataclass(frozen=True, slots=True)
class Terms:
    """The parts of a step in seconds, per microbatch unless stated otherwise; numbers, or arrays over plans and devices."""

    split: Split
    interleave: Real
    microbatches: Real
    forward: Real
    """One layer."""
    backward: Real
    """One layer backward, recomputation included."""
    embedding: Real
    head: Real
    transfer: Real
    """One message to a neighbouring stage."""
    gather_forward: Real
    """Gather of one layer's sharded weights, forward."""
    gather_backward: Real
    """Gather of the weights and scatter of the gradients of one layer, backward."""
    synchronize: Real
    """Gradient reduction of the step."""
    publish: Real
    """All-gather of updated parameters after the optimizer."""
    optimizer: Real
    overhead: Real
    hidden_gather: Real
    """Share of a layer that can hide its weight gathers."""
    hidden_transfer: Real
    """Share of a stage that can hide its messages."""
    hidden_exchange: Real
    """Share of the last backward pass that can hide the gradient reduction."""
    lost: Real = 0.0
    """Slowdown of computation by concurrent communication."""
    host_forward: Real = 0.0
    """Host link time for one layer, concurrent with its work."""
    host_backward: Real = 0.0
    inputs: Real = 0.0
    """Backward seconds of one layer before the gradients of its weights, if these are deferred."""
    weights: Real = 0.0
    """Those."""
    ahead: Real = 0.0
    """Forward seconds of one layer in a single pass, if `forward` is the mean over single and paired passes."""
    together: Real = 0.0
    """Seconds of one layer forward and backward as a pair of passes of different microbatches."""
    schedule: Real = 0.0
    """Index into SCHEDULES."""
    hidden_publish: Real | None = None
    """Share of the first forward pass that can hide the parameter all-gather under 1F1B; None if the training stack never does so. The
    formula follows from None alone, so that no plan's price depends on the plans beside it."""

    busy: Real = 0.0
    """Busy seconds of shared links in the step, if the step waits for them (`exchanges.shared_links`)."""

    def exposed_publication(self) -> Real:
        """Exposed seconds of the parameter all-gather."""
        if self.hidden_publish is None:
            return self.publish
        forward = _shared(self, passes(self)[0])
        hidden = window(forward, self.hidden_publish, self.publish, self.lost) - forward
        return np.where(_in_turn(self), hidden, self.publish)


@dataclass(frozen=True, slots=True)
class Slots:
    """One microbatch on the stages: `backward` of the layers that every stage has, and the rest of the first, middle and last stage."""

    backward: Real
    forward: Real
    """Backward part of the rest, of the layers that every stage has."""
    first: Real
    middle: Real
    last: Real
    total: Real
    """Sum of the rest over all stages."""
    beyond: Real
    """The rest on the fullest stage."""

    def fullest(self) -> Real:
        return np.maximum(np.maximum(self.first, self.middle), self.last)


def window(computation: Real, hidden: Real, communication: Real, lost: Real = 0.0) -> Real:
    """Seconds of `computation` and `communication` together, if the latter can overlap with a `hidden` share of the former.
    Meanwhile the device computes at `1 - lost` of its speed.

    max(C + lost X, (1 - hidden) C + X): the first where computing goes on longest, the second where the exchange does; where
    nothing hides, their sum.
    """
    return np.maximum(computation + lost * communication, (1.0 - hidden) * computation + communication)


def slots(terms: Terms) -> Slots:
    """Times of the stages; backward work common to all stages is separate because it hides the gradient reduction."""
    split = terms.split
    forward, backward = passes(terms)
    both = forward + backward
    common, returned = _shared(terms, forward), _shared(terms, backward)
    (first, last), stage_layers = edges(terms), layers_by_stage(terms)
    if np.any(terms.schedule):
        returned = np.where(_in_parts(terms), _shared(terms, terms.inputs) + _weights(terms), returned)
    beside = tuple((layers - split.least) * both for layers in stage_layers)
    return Slots(
        backward=returned,
        forward=common,
        first=common + beside[0] + first,
        middle=common + beside[1],
        last=common + beside[2] + last,
        total=split.stages * common + split.extra * both + (terms.embedding + terms.head),
        beyond=np.maximum(np.maximum(beside[0] + first, beside[1]), beside[2] + last),
    )


def edges(terms: Terms) -> tuple[Real, Real]:
    """Work outside the layers on the first and last stage; on devices with both, half of it per microbatch."""
    together = np.less(terms.split.stages, 1.5) | is_v(terms.schedule)
    first, last = terms.embedding + np.where(together, 1.0, 0.0) * terms.head, np.where(is_v(terms.schedule), 0.0, 1.0) * terms.head
    if not np.any(is_both_ways(terms.schedule)):
        return first, last
    half = 0.5 * (terms.embedding + terms.head)
    return np.where(is_both_ways(terms.schedule), half, first), np.where(is_both_ways(terms.schedule), half, last)


def layers_by_stage(terms: Terms) -> tuple[Real, Real, Real]:
    """Layers of the first, the fullest middle and the last stage; on devices with two stages, half of them."""
    split = terms.split
    if not np.any(is_both_ways(terms.schedule)):
        return split.first(), split.middle(), split.last()
    (ends, between), both = paired_layers(split), is_both_ways(terms.schedule)
    pairs = ((ends, split.first()), (between, split.middle()), (ends, split.last()))
    first, middle, last = (np.where(both, paired, single) for paired, single in pairs)
    return first, middle, last


def _in_parts(terms: Terms) -> Mask:
    """Whether all backward passes are split."""
    return np.greater(terms.schedule, 0.5) & ~is_both_ways(terms.schedule)


def _shared(terms: Terms, duration: Real) -> Real:
    """Layers that every stage has, each of this duration, with a microbatch's messages in this direction."""
    return window(terms.split.least * duration, terms.hidden_transfer, terms.interleave * terms.transfer, terms.lost)


def passes(terms: Terms) -> tuple[Real, Real]:
    """One layer forward and backward with its weight gathers, at least the host link's time."""
    forward, backward = alone(terms)
    return np.maximum(forward, terms.host_forward), np.maximum(backward, terms.host_backward)


def alone(terms: Terms) -> tuple[Real, Real]:
    """One layer forward and backward with its weight gathers, without the host link."""
    forward = window(terms.forward, terms.hidden_gather, terms.gather_forward, terms.lost)
    return forward, window(full_backward(terms), terms.hidden_gather, terms.gather_backward, terms.lost)


def full_backward(terms: Terms) -> Real:
    """One layer backward, in one part or in two."""
    if not np.any(terms.schedule):
        return terms.backward
    return np.where(_in_parts(terms), terms.inputs + terms.weights, terms.backward)


def step_time(terms: Terms) -> Real:
    """Seconds of one training step."""
    unheld = unheld_time(terms)
    return unheld if isinstance(terms.busy, float) and not terms.busy else np.maximum(unheld, terms.busy)


def unheld_time(terms: Terms) -> Real:
    """Seconds of one training step if hidden communication never waited for other traffic on the same links."""
    hides = terms.hidden_publish is not None
    pipeline = _one_in_turn(terms) if terms.hidden_publish is None else _behind_publication(terms, terms.hidden_publish)
    if np.any(terms.schedule):
        pipeline = np.where(_in_turn(terms), pipeline, _split_passes(terms))
    publish = np.where(_in_turn(terms), 0.0, terms.publish) if hides else terms.publish
    return pipeline + _waits(terms) + (publish + terms.optimizer + terms.overhead)


def _in_turn(terms: Terms) -> Mask:
    """Whether the schedule is 1F1B with whole backward passes."""
    return np.less(terms.schedule, 0.5)


def _waits(terms: Terms) -> Real:
    """Seconds of the step in which stages wait for each other because chunks differ."""
    share = waited_for_chunks(terms.split, terms.interleave)
    if not np.any(share):
        return 0.0
    forward, backward = passes(terms)
    return terms.microbatches * share * (forward + backward)


def _one_in_turn(terms: Terms) -> Real:
    """The pipeline under 1F1B, with the gradient reduction."""
    slot = slots(terms)
    fullest, turn = slot.fullest(), 1.0 / terms.interleave
    steady = (terms.microbatches - 1.0) * (slot.backward + fullest) + (1.0 - turn) * fullest
    filling = (slot.total + (terms.split.stages - 1.0) * slot.backward) * turn
    finish = window(slot.backward, terms.hidden_exchange, terms.synchronize, terms.lost)
    return steady + filling + finish


def _behind_publication(terms: Terms, hidden: Real) -> Real:
    """The pipeline under 1F1B with updated parameters gathered behind the first forward pass through the layers that every stage
    has. The other sums have one such pass less. With it, the longest stage has
    (1 - 1/v) (forward + beyond) + (p forward + ...) / v, forward at least once.
    """
    slot, split, (forward, backward) = slots(terms), terms.split, passes(terms)
    turn, both = 1.0 / terms.interleave, forward + backward
    steady = (terms.microbatches - 1.0) * (slot.backward + slot.fullest()) + (1.0 - turn) * slot.beyond
    filling = (split.stages - 1.0) * (slot.forward + slot.backward) + (split.extra * both + (terms.embedding + terms.head))
    begin = window(slot.forward, hidden, terms.publish, terms.lost)
    finish = window(slot.backward, terms.hidden_exchange, terms.synchronize, terms.lost)
    return steady + filling * turn + begin + finish


def _put_off(terms: Terms) -> Real:
    """The pipeline with deferred weight gradients, without those of the last microbatch."""
    chunks, stages = terms.interleave, terms.split.stages
    count = terms.microbatches * chunks
    further, longer, left = count - 1.0, np.maximum(count, stages), np.maximum(count - stages, 0.0) + 1.0
    once_forward, once_backward = _over_stages(terms)
    ways = (
        once_forward + once_backward + _longest(terms, (further, further, left), further),
        once_forward + _longest(terms, (further, longer, count), longer - 1.0),
        once_backward + _longest(terms, (longer, further, count), longer - 1.0),
    )
    longest = np.maximum(np.maximum(ways[0], ways[1]), ways[2])
    return (longest + (terms.embedding + terms.head)) / chunks


def _in_v(terms: Terms) -> Real:
    """The zero-bubble pipeline with chunks in a V, without the weight gradients of the last microbatch."""
    more, count = terms.split.stages - 1.0, terms.microbatches * terms.interleave
    ways = (
        (0.0, 1.0, more - 1.0),
        (1.0, 0.0, more - 1.0),
        (0.0, more, 0.0),
        (0.0, 2.0 * more, -2.0 * more),
        (2.0 * more - 1.0, 1.0 - more, 0.0),
        (2.0 * more - 1.0, 1.0, -2.0 * more),
        (2.0 * more, -more, -1.0),
        (2.0 * more, 0.0, -2.0 * more - 1.0),
    )
    found = [_longest(terms, (*(np.maximum(count + part, 0.0) for part in way),), count) for way in ways]  # type: ignore[arg-type]
    return reduce(np.maximum, found) / terms.interleave


def _both_ways(terms: Terms) -> Real:
    """The bidirectional pipeline (DualPipe), where half of the microbatches go up the stages. The weight gradients of the last
    microbatch in the layers that every stage has are left out.
    """
    split, half = terms.split, terms.split.stages / 2.0
    many, fill = np.maximum(terms.microbatches - half - 2.0, 0.0), np.maximum(half - 1.0, 0.0)
    ends, between = paired_layers(split)
    beside = terms.embedding + terms.head
    first = many * ((ends - split.least) * terms.together) + (0.5 * terms.microbatches) * beside
    pairs = many * (_shared(terms, terms.together / 3.0) + _shared(terms, terms.together * (2.0 / 3.0)))
    pairs = pairs + np.maximum(first, many * ((between - split.least) * terms.together) + beside)
    further = np.maximum(np.maximum(split.first(), split.middle()), split.last()) - split.least
    ahead, back = (_shared(terms, duration) + further * duration for duration in (terms.ahead, terms.inputs))
    late = _weights(terms) + further * terms.weights
    alone = 2.0 * half * ahead + (half + 2.0) * back + (2.0 * late + further * terms.weights)
    waits: Real = fill * np.maximum(back, late) + np.maximum(half * ahead, fill * back)
    return pairs + alone + waits


def _split_passes(terms: Terms) -> Real:
    """The pipeline with split backward passes; gradients are reduced behind the last microbatch's weight gradients."""
    pipeline = _put_off(terms)
    if np.any(is_v(terms.schedule)):
        pipeline = np.where(is_v(terms.schedule), _in_v(terms), pipeline)
    if np.any(is_both_ways(terms.schedule)):
        pipeline = np.where(is_both_ways(terms.schedule), _both_ways(terms), pipeline)
    return pipeline + window(_weights(terms), terms.hidden_exchange, terms.synchronize, terms.lost)


def _longest(terms: Terms, passes: tuple[Real, Real, Real], times: Real) -> Real:
    """Seconds of given numbers of forward passes, input gradients and weight gradients on the slowest stage, with `times` times
    its work outside the layers. The last work of all is left out: weight gradients of one microbatch in the layers that every
    stage has.
    """
    split, (ahead, back, late) = terms.split, passes
    layer = ahead * terms.forward + back * terms.inputs + late * terms.weights
    beside = edges(terms)
    first, last = ((count - split.least) * layer + times * edge for count, edge in zip((split.first(), split.last()), beside, strict=True))
    middle = (split.middle() - split.least) * layer
    shared = ahead * _shared(terms, terms.forward) + back * _shared(terms, terms.inputs)
    return shared + np.maximum(late - terms.interleave, 0.0) * _weights(terms) + np.maximum(np.maximum(first, middle), last)


def _over_stages(terms: Terms) -> tuple[Real, Real]:
    """Forward passes of a microbatch on all stages, and its input gradients, without work outside the layers."""
    stages, extra = terms.split.stages, terms.split.extra
    forward, backward = (stages * _shared(terms, duration) + extra * duration for duration in (terms.forward, terms.inputs))
    return forward, backward


def _weights(terms: Terms) -> Real:
    """Weight gradients of the layers that every stage has, for one microbatch."""
    return terms.split.least * terms.weights


def exposed_exchange(terms: Terms, slot: Slots | None = None) -> Real:
    """Exposed seconds of the gradient reduction. `slot` are the `slots` of the terms, here and below, where they are known."""
    behind = (slot or slots(terms)).backward
    if np.any(terms.schedule):
        behind = np.where(np.greater(terms.schedule, 0.5), _weights(terms), behind)
    return window(behind, terms.hidden_exchange, terms.synchronize, terms.lost) - behind


def bubble(terms: Terms, slot: Slots | None = None) -> Real:
    """Seconds in which the fullest stage waits for the pipeline to fill and drain, and for larger chunks of other stages."""
    slot = slot or slots(terms)
    waits = (slot.total - slot.fullest() + (terms.split.stages - 1.0) * slot.backward) / terms.interleave
    if np.any(terms.schedule):
        busy = terms.microbatches * (slot.backward + slot.fullest()) + exposed_exchange(terms, slot)
        waits = np.where(np.greater(terms.schedule, 0.5), _split_passes(terms) - busy, waits)
    return waits + _waits(terms)


@dataclass(frozen=True, slots=True)
class FullestStage:
    """Work of the slowest stage for one microbatch beyond its layers' own time."""

    layers: Real
    gathers: Real
    """Exposed communication in seconds per layer."""
    host: Real
    """Exposed seconds of the host link per layer."""
    edges: Real
    """Embedding and head."""
    transfers: Real
    """Exposed seconds."""


def fullest_slot(terms: Terms, slot: Slots | None = None) -> FullestStage:
    """The slowest stage; the first of several."""
    slot, split, stage_layers = slot or slots(terms), terms.split, layers_by_stage(terms)
    (alone_forward, alone_backward), (forward, backward) = alone(terms), passes(terms)
    common = _shared(terms, forward)
    is_first, is_middle = slot.first >= slot.fullest(), slot.middle >= slot.fullest()
    first_edges, last_edges = edges(terms)
    return FullestStage(
        layers=np.where(is_first, stage_layers[0], np.where(is_middle, stage_layers[1], stage_layers[2])),
        gathers=(alone_forward - terms.forward) + (alone_backward - full_backward(terms)),
        host=(forward - alone_forward) + (backward - alone_backward),
        edges=np.where(is_first, first_edges, np.where(is_middle, 0.0, last_edges)),
        transfers=(common - split.least * forward) + (slot.backward - split.least * backward),
    )


def mean_slot(terms: Terms, slot: Slots | None = None) -> tuple[FullestStage, Real]:
    """Mean work of a stage for one microbatch, and the seconds that the fullest stage takes beyond it."""
    fullest, split = fullest_slot(terms, slot), terms.split
    forward, backward = passes(terms)
    layers = (split.least * split.stages + split.extra) / split.stages
    edges = (terms.embedding + terms.head) / split.stages
    beyond = (fullest.layers - layers) * (forward + backward) + (fullest.edges - edges)
    return replace(fullest, layers=layers, edges=edges), np.maximum(beyond, 0.0)
