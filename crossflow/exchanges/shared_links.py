"""Links that all exchanges of a device share: for how long they are busy in a step, which is never shorter.

Exchanges hide behind work, and so behind the exchanges in it: gathers of weights behind a layer with those of its tensor ranks. Where both
need the same links they take turns, so that on a network of dimensions

    T >= bytes / bandwidth        of all that a device sends over a level in a step, hidden or not, without any latency,

m times that of the fullest stage's layers, with those computed again, gathers of weights, embedding or head, and messages, and once that of
gradients and updated weights. Bytes are those on the links that they pass (`exchanges.shapes`): a group that lies on a part of a ring has
one of the two links of its devices, and groups on parts are taken as if all were busiest on the same link. Of v messages each way a device
sends v - 1/p in the mean over all stages, and over the first level on which stages are apart those of both ways. Axes of a torus that
gather at once are counted each by the order that sends the least along it, so that no step is held to more than it takes.

Where all devices are linked to each other groups of different kinds may have links of their own, and B is that of all links of a device:
less than the step takes where they share some, as gathers of context and data ranks do with the ring of the former. Nodes and pods hold
nothing: their bandwidths are what collectives of measured runs got beside all that got in their way.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from crossopt.crossflow.arrays import Real, Whole
from crossopt.crossflow.edges import embedding_exchange, head_exchange
from crossopt.crossflow.exchanges.replicas import data_exchange, messages_time
from crossopt.crossflow.hardware import Cluster, Hardware, Link
from crossopt.crossflow.layer import exchanged
from crossopt.crossflow.layout import Layout
from crossopt.crossflow.pipeline import Terms, edges, held_layers
from crossopt.crossflow.ranks import Ranks
from crossopt.crossflow.recomputation import Recomputed, mean_again
from crossopt.crossflow.sharding import Sharding
from crossopt.crossflow.stages import is_v
from crossopt.crossflow.workload import Transformer, layer_kinds


@dataclass(frozen=True, slots=True)
class Sent:
    """Seconds for which one level is busy."""

    layer: Real
    """One layer and one microbatch in both directions, with what is computed again."""
    embedding: Real
    head: Real
    gathers: Real
    """Weights of one layer in both directions, and its gradients."""
    once: Real
    """Gradients and updated weights."""
    messages: Real
    """One message down the stages and one up."""


def held_levels(hardware: Hardware, cluster: Cluster) -> Iterator[tuple[int, Hardware]]:
    """Each level over which no more is sent than fits into a step, without latencies and where all others cost nothing."""
    for level, link in enumerate(hardware.links if cluster.are_dimensions else ()):
        links = [free(one) for one in hardware.links]
        size = 2 if link.shape == "fully_connected" else link.size  # of two any group has all links of its devices
        links[level] = replace(links[level], bandwidth=link.bandwidth, shares=(), size=size)
        yield level, replace(hardware, links=tuple(links))


def free(link: Link) -> Link:
    """The link as if it cost nothing."""
    return replace(link, bandwidth=np.inf, latency=0.0, setup=0.0, energy=0.0, ring_latency=0.0)


def sent_over(
    model: Transformer,
    levels: Iterator[tuple[int, Hardware]],
    group: Ranks,
    layers: Callable[[Hardware], Real],
    owned: tuple[Sharding, Layout],
    handed: tuple[Sharding, Layout],
) -> tuple[Sent, ...]:
    """What is sent over each level: in layers, for a group of ranks, among replicas and between stages."""
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


def sent_of_plans(table: Sent, rows: tuple[Whole, Whole, Whole, Whole], recomputed: Recomputed) -> Sent:
    """What plans send, each part from a row of its table: by layers, by groups of ranks, whose layers without recomputation are the first
    of all, by replicas, and by messages."""
    layer, group, exchange, message = rows

    def taken(figure: Real, rows: Whole) -> Real:
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
    """What the mean layer exchanges in one microbatch under each of these modes of recomputation."""
    several = [(count / model.stack, exchanged(kind, group, hardware, modes)) for count, kind in layer_kinds(model)]
    return [sum((share * sum(kind[place], np.float64(0)) for share, kind in several), np.float64(0)) for place in range(len(modes))]


def busy_seconds(sent: Sequence[Sent], terms: Terms) -> Real:
    """For how long the busiest of these levels is busy in a step, on the device on which it is longest."""
    held, each_way = held_layers(terms), messages_each_way(terms)
    busy: list[Real] = []
    for one in sent:
        layer, beside = one.layer + one.gathers, edges(replace(terms, embedding=one.embedding, head=one.head))
        first, last = held[0] * layer + beside[0], held[2] * layer + beside[1]
        fullest = np.maximum(np.maximum(first, held[1] * layer), last)
        busy.append(terms.microbatches * (fullest + each_way * one.messages) + one.once)
    return reduce(np.maximum, busy) if busy else 0.0


def messages_each_way(terms: Terms) -> Real:
    """Messages of a microbatch that a device sends down the stages, and as many up, in the mean: the last chunk sends none down, and of a V
    none goes from the last stage to itself."""
    return terms.interleave - np.where(is_v(terms.schedule), 2.0, 1.0) / terms.split.stages
