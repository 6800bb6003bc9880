"""What a report shows of the network: bytes and seconds of every kind of exchange on every level, for one device and one step.

A level's seconds are those that the exchange takes where all other levels cost nothing, and its bytes what of them its bandwidth takes.
Levels that work at once, as in one ring over all ranks, are busy together, so that these may add up to more than the exchange takes.
Exchanges that hide behind computation count in full: this is how long links are busy, not how long a step waits for them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.edges import embedding, head
from crossopt.crossflow.hardware import Cluster, Hardware, Link
from crossopt.crossflow.layer import Pass, backward_pass, forward_pass
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.pipeline import fullest_slot
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.ranks import Ranks
from crossopt.crossflow.transformer import mean_over_kinds, parts_of, ranks, share_again, terms
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance
from crossopt.reports.facts.chip.words import shape_words
from crossopt.solvers.codesign.answer import design_of, from_words


@dataclass(frozen=True, slots=True)
class Exchanged:
    """One kind of exchange."""

    name: str
    seconds: tuple[float, ...]
    """On each level, innermost first."""
    bytes: tuple[float, ...]
    """That a device sends on each level."""


@dataclass(frozen=True, slots=True)
class Network:
    """All exchanges of a step."""

    sizes: tuple[int, ...]
    """Devices that each level joins."""
    bandwidths: tuple[float, ...]
    shapes: tuple[str, ...]
    """Of each level in words; none where all are switches."""
    exchanges: tuple[Exchanged, ...]


def network_of(instance: Instance, design: dict[str, object]) -> Network | None:
    """That of a checked design; None for other workloads than a transformer."""
    chosen = from_words(instance, design)
    if not isinstance(instance.workload, Transformer) or not isinstance(chosen.plan, Plan):
        return None
    return network_on(instance.workload, design_of(instance, chosen).hardware, instance.cluster, chosen.plan)


def network_on(model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan) -> Network:
    """That of a plan on a device."""

    def busy(links: tuple[Link, ...]) -> dict[str, float]:
        return busy_seconds(model, replace(hardware, links=links), cluster, plan)

    links = hardware.links
    whole = busy(links)
    levels = [busy(_alone(links, level)) for level in range(len(links))]
    plain = [_alone(tuple(replace(link, shares=()) for link in links), level) for level in range(len(links))]
    sending = [(busy(each), busy(tuple(replace(link, bandwidth=np.inf) for link in each))) for each in plain]
    exchanges = tuple(
        Exchanged(
            name,
            tuple(seconds[name] for seconds in levels),
            tuple((sent[name] - still[name]) * float(link.bandwidth) for (sent, still), link in zip(sending, links, strict=True)),
        )
        for name, seconds in whole.items()
        if seconds > 0.0
    )
    shapes = shape_words(tuple(link.shape for link in links), cluster.level_sizes)
    return Network(cluster.level_sizes, tuple(float(link.bandwidth) for link in links), shapes, exchanges)


def busy_seconds(model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan) -> dict[str, float]:
    """Seconds of a step for which each kind of exchange keeps the links of a device of the fullest stage busy."""
    plans = table([plan])
    parts = parts_of(model, hardware, cluster, plans)
    needed = terms(model, hardware, plans, parts)
    group = ranks(plans, lay_out(plans, cluster))
    again = 1.0 + share_again(model, plans)
    passes = needed.microbatches * fullest_slot(needed).layers

    def both(part: Callable[[Pass], Real]) -> Real:
        return mean_over_kinds(
            model,
            lambda kind: again * part(forward_pass(kind, group, hardware)) + part(backward_pass(kind, group, hardware)),
        )

    found = {
        "tensor parallelism": passes * both(lambda one: one.tensor),
        "context parallelism": passes * both(lambda one: one.context.hidden + one.context.exposed),
        "experts": passes * both(lambda one: one.expert),
        "embedding and head": needed.microbatches * _edges(model, group, hardware),
        "pipeline": needed.microbatches * (2.0 * needed.interleave) * needed.transfer,
        "weight gathers": passes * (needed.gather_forward + needed.gather_backward),
        "gradients": needed.synchronize,
        "updated weights": needed.publish,
    }
    return {name: float(np.asarray(seconds).reshape(-1)[0]) for name, seconds in found.items()}


def _edges(model: Transformer, group: Ranks, hardware: Hardware) -> Real:
    """Exchanges of the embedding and the head for one microbatch, whichever stages they are on."""
    still = replace(hardware, links=tuple(map(_free, hardware.links)))
    both = [embedding(model, group, device).time + head(model, group, device).time for device in (hardware, still)]
    return both[0] - both[1]


def _alone(links: tuple[Link, ...], level: int) -> tuple[Link, ...]:
    return tuple(link if place == level else _free(link) for place, link in enumerate(links))


def _free(link: Link) -> Link:
    """The same level where it costs nothing, whose shape still says what goes over others."""
    return Link(np.inf, 0.0, shape=link.shape, size=link.size)
