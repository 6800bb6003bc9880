"""Communication of data-parallel ranks (ZeRO, Rajbhandari et al. 2020) and of pipeline stages."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from crossopt.crossflow.arrays import Ints, Mask, Real
from crossopt.crossflow.collectives import (
    Exchange,
    all_gather,
    all_reduce_time,
    anywhere,
    both_sides_time,
    broadcasts_time,
    ends_time,
    exchange_energy,
    exchange_time,
    replicas_gather,
    replicas_gather_time,
    ring_all_reduce,
    send,
)
from crossopt.crossflow.edges import embedding_exchange, head_exchange
from crossopt.crossflow.hardware import Cluster, Hardware, Link
from crossopt.crossflow.layer import exchanged
from crossopt.crossflow.layout import Layout
from crossopt.crossflow.memory import device_trained, edge_trained, layer_trained, layer_weights
from crossopt.crossflow.pipeline import Terms, edges, layers_by_stage
from crossopt.crossflow.plan import Ranks
from crossopt.crossflow.recomputation import Recomputed, mean_again
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.roofline import Cost, stream_cost
from crossopt.crossflow.sharding import Sharding, Weights, candidates, expert_shares
from crossopt.crossflow.stages import is_both_ways, is_v
from crossopt.crossflow.workload import Transformer, layer_kinds

_ATTENTION_MATRICES = 2.0
"""Matrices of attention that ranks own whole: queries, keys and values in one, and the projection."""


@dataclass(frozen=True, slots=True)
class DataExchange:
    """Seconds and joules per device of the communication of one step; gathers are those of one layer and one microbatch."""

    synchronize: Real
    publish: Real
    gather_forward: Real
    gather_backward: Real
    optimizer: Real
    energy: Real
    gather_energy: Real


def data_exchange(model: Transformer, sharding: Sharding, layout: Layout, hardware: Hardware) -> DataExchange:
    """Communication of the fullest stage, by ZeRO stage.

    stage 0: all-reduce of the gradients; 1: reduce-scatter of gradients (or an all-reduce, see `Transformer.scattered_gradients`), and a
    gather of weights after the update; 2: the gradients of each layer are scattered in every microbatch, since no device keeps them whole;
    3: weights are gathered a layer at a time forward and backward as well. What lies beside the layers is exchanged once. Copies of a stage
    on two devices (DualPipe) are added up and shared like others. Where ranks share in groups, each scatter is followed by an all-reduce of
    the parts across the groups (FSDP's hybrid sharding, `HSDP`).
    """
    links, layer, peak = hardware.links, layer_weights(model, sharding), _fullest(model, sharding)
    trained, back = layer_trained(model, sharding), model.trained_share
    sliced, scattered, sharded = (np.greater(sharding.zero, stage) for stage in (0.5, 1.5, 2.5))
    summed, published = _left(model, sharding, peak, scattered), _left(model, sharding, peak, sharded)
    again = model.weight_gathers - 1.0
    gather = _gather_time(layer, model.weight_bytes, layout, links, model.own_ports) if np.any(sharded) else 0.0
    scatter: Real = 0.0
    layer_sent: Real = 0.0
    if np.any(scattered):
        scatter = _gather_time(trained, model.gradient_bytes, layout, links, model.own_ports) + _across_time(
            trained, sharding, model, layout, links
        )
        parts = _across_energy(trained, sharding, model, layout, links)
        layer_sent = np.where(scattered, back * (_sent_energy(trained, model.gradient_bytes, layout, links, model.own_ports) + parts), 0.0)
    if np.any(sharded):
        layer_sent = layer_sent + np.where(
            sharded, (1.0 + again * back) * _sent_energy(layer, model.weight_bytes, layout, links, model.own_ports), 0.0
        )
    split = np.greater(sharding.zero, 0.5 if model.scattered_gradients else 1.5)
    gradients = np.where(split, _gather_time(summed, model.gradient_bytes, layout, links), _reduce_time(summed, model, layout, links))
    gradients = gradients + _across_time(summed, sharding, model, layout, links)
    sent = _sent_energy(summed, model.gradient_bytes, layout, links) * np.where(split, 1.0, 2.0)
    sent = sent + _across_energy(summed, sharding, model, layout, links)
    sent = sent + np.where(sliced, _sent_energy(published, model.weight_bytes, layout, links), 0.0)
    added, handed = (
        _copies(summed, model.gradient_bytes, sharding, layout, ~split),
        _copies(published, model.weight_bytes, sharding, layout),
    )
    publish = _publication_time(published, sharding, model, layout, links)
    if added and handed:
        both = is_both_ways(sharding.schedule)  # others send nothing, which would take a message all the same
        gradients = gradients + np.where(both, exchange_time(added, links), 0.0)
        publish = publish + np.where(both, exchange_time(handed, links), 0.0)
        sent = sent + exchange_energy(added, links) + np.where(sliced, exchange_energy(handed, links), 0.0)
    optimizer = _optimizer(model, sharding, peak, hardware)
    return DataExchange(
        synchronize=gradients + _tied_time(model, sharding, layout, links),
        publish=np.where(sliced, publish, 0.0),
        gather_forward=np.where(sharded, gather, 0.0),
        gather_backward=back * (np.where(sharded, again * gather, 0.0) + np.where(scattered, scatter, 0.0)),
        optimizer=optimizer.time,
        energy=sent + optimizer.energy,
        gather_energy=layer_sent,
    )


def _left(model: Transformer, sharding: Sharding, peak: Weights, by_layer: Mask) -> Weights:
    """Trained parameters exchanged once per step: of the whole fullest stage, or outside the layers if these are exchanged one by one."""
    return Weights(np.where(by_layer, _edges(model, sharding), peak.shared), np.where(by_layer, 0.0, peak.routed))


def transfer_time(model: Transformer, sharding: Sharding, layout: Layout, links: tuple[Link, ...]) -> Real:
    """Seconds to send one microbatch's activations to the farthest next stage; 0 without a pipeline."""
    sent, gathered = _message(model, sharding, layout)
    return exchange_time(sent, links) + np.where(_is_gathered(model, sharding), exchange_time(gathered, links), 0.0)


def transfer_either_side(model: Transformer, sharding: Sharding, layout: Layout, links: tuple[Link, ...]) -> Real:
    """Mean seconds of the messages to both neighbours of a stage, of which at most one is farther than the nearest of all.

    A pass ends with its message, so that under 1F1B of one chunk a stage takes s + x + y for a microbatch, with those down and up. A way
    through the passes from the first to the last has m + p - 1 forward and as many backward passes, as many of one kind as of the other on
    each stage, but for some at its beginning and its end of which each is shorter than all that a stage takes. So no step takes longer
    than m + p - 1 times the most that any stage does, s + near + far: each message counts as (near + far) / 2.
    """
    sent, gathered = _message(model, sharding, layout)
    return both_sides_time(sent, links) + np.where(_is_gathered(model, sharding), exchange_time(gathered, links), 0.0)


def transfer_energy(model: Transformer, sharding: Sharding, layout: Layout, links: tuple[Link, ...]) -> Real:
    sent, gathered = _message(model, sharding, layout)
    return exchange_energy(sent, links) + np.where(_is_gathered(model, sharding), exchange_energy(gathered, links), 0.0)


def messages_time(model: Transformer, sharding: Sharding, layout: Layout, links: tuple[Link, ...], level: int) -> Real:
    """Seconds for which a level is busy with one message to the next stage and one to the previous stage. Over a switch a device sends
    both, unless one of them stays inside; a ring, or a level over which neighbours are joined here and there alone, has other links for
    each way."""
    inside: Real = 1.0
    for count in layout.pipeline[:level]:
        inside = inside * count
    sent, gathered = _message(model, sharding, layout)
    ways = np.where(np.less(inside, 1.5), 2.0, 1.0) if links[level].shape in ("switch", "rails") else 1.0
    return ways * exchange_time(sent, links) + np.where(_is_gathered(model, sharding), 2.0 * exchange_time(gathered, links), 0.0)


def _message(model: Transformer, sharding: Sharding, layout: Layout) -> tuple[Exchange, Exchange]:
    """Bytes that a rank sends of b s h values, and bytes that the next stage's tensor ranks gather. Of Megatron-Core each sends all of it,
    but for ranks that hold parts of the sequence (`get_tensor_shapes` of megatron/core/pipeline_parallel/schedules.py divides by them
    alone, and p2p_communication.py beside it sends what it is given)."""
    full = _whole_message(model, sharding)
    return send(handed_on(model, sharding)[0], layout.pipeline), all_gather(full, layout.tensor)


def handed_on(model: Transformer, sharding: Sharding) -> tuple[Real, Mask]:
    """Bytes of one microbatch that a rank sends to the next stage, and whether ranks there must gather the message."""
    parts = np.where(np.greater(sharding.sequence_parallel, 0.5), sharding.tensor, 1.0) if model.whole_messages else sharding.tensor
    return _whole_message(model, sharding) / parts, _is_gathered(model, sharding)


def _whole_message(model: Transformer, sharding: Sharding) -> Real:
    return sharding.microbatch * model.sequence / sharding.context * model.hidden * model.activation_bytes


def _is_gathered(model: Transformer, sharding: Sharding) -> Mask:
    """Whether the next stage gathers a message: not if its ranks hold parts of the sequence or received all of it."""
    return np.greater(sharding.pipeline, 1.5) & np.less(sharding.sequence_parallel, 0.5) & (not model.whole_messages)


def _edges(model: Transformer, sharding: Sharding) -> Real:
    """The largest number of trained parameters outside the layers on any one stage, the first or the last."""
    if model.lora_rank:
        return 0.0 * sharding.pipeline
    last = sharding.pipeline - 1.0
    return np.maximum(edge_trained(model, sharding, 0.0 * last), edge_trained(model, sharding, last))


def _fullest(model: Transformer, sharding: Sharding) -> Weights:
    """The largest number of trained parameters of each kind on any one device."""
    stages = device_trained(model, sharding, np.stack(candidates(model, sharding)))
    return Weights(*(reduce(np.maximum, np.asarray(each)) for each in (stages.shared, stages.routed)))


def _gather_time(weights: Weights, size: float, layout: Layout, links: tuple[Link, ...], own_ports: bool = False) -> Real:
    shared = replicas_gather_time(size * weights.shared, layout.shared, links, own_ports)
    if not np.any(weights.routed):
        return shared
    return shared + np.where(weights.routed > 0.0, replicas_gather_time(size * weights.routed, layout.routed, links, own_ports), 0.0)


def _publication_time(weights: Weights, sharding: Sharding, model: Transformer, layout: Layout, links: tuple[Link, ...]) -> Real:
    """Seconds of an all-gather; if `model.broadcasts`, of broadcasts in sequence, one from each rank that owns whole matrices.
    InternLM/InternEvo (hybrid_zero_optim.py) broadcasts so: the largest matrices go first, to the rank that has least.
    """
    if not model.broadcasts:
        return _gather_time(weights, model.weight_bytes, layout, links)
    matrices = (_ATTENTION_MATRICES + model.projections) * model.stack / sharding.pipeline
    return broadcasts_time(model.weight_bytes * weights.shared, np.minimum(sharding.sharing(), matrices), layout.shared, links)


def _reduce_time(weights: Weights, model: Transformer, layout: Layout, links: tuple[Link, ...]) -> Real:
    shared = all_reduce_time(model.gradient_bytes * weights.shared, layout.shared, links)
    if not np.any(weights.routed):
        return shared
    routed = all_reduce_time(model.gradient_bytes * weights.routed, layout.routed, links)
    return shared + np.where(weights.routed > 0.0, routed, 0.0)


def _sent_energy(weights: Weights, size: float, layout: Layout, links: tuple[Link, ...], own_ports: bool = False) -> Real:
    shared = exchange_energy(replicas_gather(size * weights.shared, layout.shared, links, own_ports), links)
    if not np.any(weights.routed):
        return shared
    return shared + exchange_energy(replicas_gather(size * weights.routed, layout.routed, links, own_ports), links)


def _across_time(weights: Weights, sharding: Sharding, model: Transformer, layout: Layout, links: tuple[Link, ...]) -> Real:
    """All-reduce of a rank's shard across sharding groups; none if all ranks form one group."""
    if not np.any(sharding.shard):
        return 0.0
    return all_reduce_time(model.gradient_bytes * _part(weights, sharding), layout.across, links)


def _across_energy(weights: Weights, sharding: Sharding, model: Transformer, layout: Layout, links: tuple[Link, ...]) -> Real:
    if not np.any(sharding.shard):
        return 0.0
    return exchange_energy(ring_all_reduce(model.gradient_bytes * _part(weights, sharding), layout.across), links)


def _part(weights: Weights, sharding: Sharding) -> Real:
    """Parameters whose gradient sum one rank holds."""
    ranks = sharding.sharing()
    return weights.shared / ranks + weights.routed * expert_shares(sharding) / ranks


def _tied_time(model: Transformer, sharding: Sharding, layout: Layout, links: tuple[Link, ...]) -> Real:
    """All-reduce of the gradients of the shared embedding between first and last stage; layers that predict further tokens use it too."""
    if model.lora_rank or not (model.tied or model.prediction_layers):
        return 0.0
    size = model.gradient_bytes * model.vocabulary * model.hidden / sharding.tensor
    on_one = is_v(sharding.schedule) | is_both_ways(sharding.schedule)
    return np.where(on_one, 0.0, ends_time(send(size, layout.pipeline), links))


def _copies(owned: Weights, size: float, sharding: Sharding, layout: Layout, in_full: Mask | bool = False) -> Exchange | None:
    """Exchange between the two devices with the same stages (bidirectional pipelines), after the scatter and before the gather.
    Each sends half of each rank's part; where `in_full`, all of it, for both to have the sum. None if no plan has such devices.
    Each pair may be as far apart as any two ranks.
    """
    both = is_both_ways(sharding.schedule)
    if not np.any(both):
        return None
    half = size * _part(owned, sharding)
    return send(np.where(both, half * np.where(in_full, 2.0, 1.0), 0.0), anywhere(layout.pipeline))


def _optimizer(model: Transformer, sharding: Sharding, peak: Weights, hardware: Hardware) -> Cost:
    """Optimizer step: Adam reads gradients twice (norm, update), reads and writes its state and writes the weights, at 11 FLOPs per weight.
    Before that gradients are added up over the microbatches, apart from products, behind each backward pass: as the pipeline drains, each
    stage waits for those behind it to add up theirs before they send theirs on (DeepSpeed, `_exec_backward_pass` of pipe/engine.py)."""
    owned = np.where(sharding.zero > 0.5, _part(peak, sharding), peak.shared + peak.routed)
    size = owned * (2.0 * model.gradient_bytes + model.weight_bytes + 2.0 * model.optimizer_bytes)
    if model.gradient_traffic:
        passes = sharding.microbatches + (sharding.pipeline - 1.0) / sharding.interleave
        size = size + model.gradient_traffic * passes * (peak.shared + peak.routed)
    return stream_cost(size, 11.0 * owned, hardware)


# Links that all exchanges of a device share: for how long they are busy in a step, which is never shorter.
#
# Exchanges hide behind work, and so behind the exchanges in it: gathers of weights behind a layer with those of its tensor ranks. Where
# both need the same links they take turns, so that on a network of dimensions
#
#     T >= bytes / bandwidth        of all that a device sends over a level in a step, hidden or not, without any latency,
#
# m times that of the fullest stage's layers, with those computed again, gathers of weights, embedding or head, and messages, and once that
# of gradients and updated weights. Bytes are those on the links that they pass (`collectives`): a group that lies on a part of a ring
# has one of the two links of its devices, and groups on parts are taken as if all were busiest on the same link. Of v messages each way a
# device sends v - 1/p in the mean over all stages, and over the first level on which stages are apart those of both ways. Axes of a torus
# that gather at once are counted each by the order that sends the least along it, so that no step is held to more than it takes.
#
# Where all devices are linked to each other groups of different kinds may have links of their own, and B is that of all links of a device:
# less than the step takes where they share some, as gathers of context and data ranks do with the ring of the former. Nodes and pods hold
# nothing: their bandwidths are what collectives of measured runs got beside all that got in their way.


@dataclass(frozen=True, slots=True)
class Sent:
    """Seconds for which one level is busy."""

    layer: Real
    """One layer and one microbatch in both directions, recomputation included."""
    embedding: Real
    head: Real
    gathers: Real
    """Seconds for the weights of one layer in both directions, and its gradients."""
    once: Real
    """Seconds for gradients and updated weights."""
    messages: Real
    """Seconds for one message to the next stage and one to the previous stage."""


def limiting_levels(hardware: Hardware, cluster: Cluster) -> Iterator[tuple[int, Hardware]]:
    """Each level that can limit a step, with the device where only its bandwidth costs time.
    Latencies are left out and all other levels are free. There are no such levels unless `cluster.are_dimensions`.
    """
    for level, link in enumerate(hardware.links if cluster.are_dimensions else ()):
        links = [free(other) for other in hardware.links]
        size = 2 if link.shape == "fully_connected" else link.size  # of two any group has all links of its devices
        links[level] = replace(links[level], bandwidth=link.bandwidth, shares=(), size=size)
        yield level, replace(hardware, links=tuple(links))


def free(link: Link) -> Link:
    """The link with zero cost."""
    return replace(link, bandwidth=np.inf, latency=0.0, setup=0.0, energy=0.0, ring_latency=0.0)


def sent_over(
    model: Transformer,
    levels: Iterator[tuple[int, Hardware]],
    group: Ranks,
    layers: Callable[[Hardware], Real],
    owned: tuple[Sharding, Layout],
    handed: tuple[Sharding, Layout],
) -> tuple[Sent, ...]:
    """Busy seconds of each level: in layers (a group of ranks), among replicas and between stages."""
    found = []
    for level, hardware in levels:
        shared = data_exchange(model, *owned, hardware)
        found.append(
            Sent(
                layer=layers(hardware),
                embedding=embedding_exchange(model, group, hardware),
                head=head_exchange(model, group, hardware),
                gathers=shared.gather_forward + shared.gather_backward,
                once=shared.synchronize + shared.publish,
                messages=messages_time(model, *handed, hardware.links, level),
            )
        )
    return tuple(found)


def sent_of_plans(table: Sent, rows: tuple[Ints, Ints, Ints, Ints], recomputed: Recomputed) -> Sent:
    """Communication of plans, each part from a row of its table: by layers, groups of ranks, replicas and messages.
    The first rows of the table of layers are those of the groups without recomputation.
    """
    layer, group, exchange, message = rows

    def taken(figure: Real, rows: Ints) -> Real:
        return figure[rows] if isinstance(figure, np.ndarray) and figure.ndim == 2 else figure

    full = taken(table.layer, layer)
    return Sent(
        layer=full if recomputed is None else mean_again(full, taken(table.layer, group), recomputed),
        embedding=taken(table.embedding, group),
        head=taken(table.head, group),
        gathers=taken(table.gathers, exchange),
        once=taken(table.once, exchange),
        messages=taken(table.messages, message),
    )


def layers_sent(model: Transformer, group: Ranks, hardware: Hardware, modes: Sequence[int]) -> list[Real]:
    """Communication of the mean layer for one microbatch under each of these recompute modes."""
    several = [(count / model.stack, exchanged(kind, group, hardware, modes)) for count, kind in layer_kinds(model)]
    return [sum((share * sum(kind[index], np.float64(0)) for share, kind in several), np.float64(0)) for index in range(len(modes))]


def busy_seconds(sent: Sequence[Sent], terms: Terms) -> Real:
    """Busy seconds of the busiest level in a step, on the device on which it is longest."""
    counts, each_way = layers_by_stage(terms), messages_each_way(terms)
    busy: list[Real] = []
    for level in sent:
        layer, beside = level.layer + level.gathers, edges(replace(terms, embedding=level.embedding, head=level.head))
        first, last = counts[0] * layer + beside[0], counts[2] * layer + beside[1]
        fullest = np.maximum(np.maximum(first, counts[1] * layer), last)
        busy.append(terms.microbatches * (fullest + each_way * level.messages) + level.once)
    return reduce(np.maximum, busy) if busy else 0.0


def messages_each_way(terms: Terms) -> Real:
    """Mean number of messages per microbatch that a device sends down the stages, which equals the number up.
    The last chunk sends none down, and in a V the last stage sends none to itself.
    """
    return terms.interleave - np.where(is_v(terms.schedule), 2.0, 1.0) / terms.split.stages
