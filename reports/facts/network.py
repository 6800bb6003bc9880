"""What a report shows of the network: bytes and seconds of every kind of exchange on every level, for one device and one step.

A level's seconds are those that the exchange takes where all other levels cost nothing, and its bytes what of them its bandwidth takes.
Levels that work at once, as in one ring over all ranks, are busy together, so that these may add up to more than the exchange takes.
Exchanges that hide behind computation count in full: this is how long links are busy, not how long a step waits for them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.edges import embedding, head
from crossopt.crossflow.hardware import Cluster, Hardware, Link, side_by_side
from crossopt.crossflow.layer import Pass, backward_pass, forward_pass
from crossopt.crossflow.layout import in_turn, lay_out
from crossopt.crossflow.pipeline import fullest_slot
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.ranks import Ranks
from crossopt.crossflow.transformer import bill, mean_over_kinds, parts_of, ranks, share_again, terms
from crossopt.crossflow.workload import Transformer, layer_kinds
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.files.units import rounded_quantity
from crossopt.reports.facts.chip.words import shape_words, shapes_of
from crossopt.solvers.codesign.answer import design_of, from_words

_IN_ORDER = (
    "shown as if dimensions were passed in this order, one after the other; gathers and sums pass axes of a torus at once where that is "
    "quicker, each part of the data in another order"
)
_CROWDED = (
    "the step is too short: exchanges that hide behind work hide behind others on the same links, too, and what a device sends there "
    "takes longer than the step"
)


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
    waits: tuple[tuple[float, float], ...]
    """Seconds of a step and of a start on each level."""
    pairs: tuple[float, ...]
    """Of its bandwidth what two ranks sustain."""
    step: float
    """Seconds of a step of the plan."""

    @property
    def crowded(self) -> str:
        """Where what a device sends on a level takes longer than the step; not of links between all, which groups do not share, nor of the
        axes of a torus, which share what is sent."""
        told = []
        for level, bandwidth in enumerate(self.bandwidths):
            seconds, shape = sum(one.bytes[level] for one in self.exchanges) / bandwidth, self.shapes[level] if self.shapes else ""
            if seconds > self.step and not shape.startswith("links") and not (self.in_order and shape.startswith("ring")):
                told.append(f"{level + 1} for {rounded_quantity(seconds, 'time', 4)}")
        return f"{_CROWDED} ({', '.join(told)})" if told else ""

    @property
    def latencies(self) -> str:
        """Which levels wait how long, which need not be as the question names them."""
        levels: dict[str, list[str]] = {}
        for level, ((step, start), pair) in enumerate(zip(self.waits, self.pairs, strict=True)):
            words = f"{rounded_quantity(step, 'time', 3)} a step and {rounded_quantity(start, 'time', 3)} a start"
            words += "" if pair == 1.0 else f", and {pair:.0%} of the bandwidth between two ranks,"
            levels.setdefault(words, []).append(str(level + 1))
        return "waits: " + "; ".join(f"{words} on {', '.join(places)}" for words, places in levels.items())

    @property
    def in_order(self) -> str:
        """In which order dimensions are gone along, where there are several whose devices are linked."""
        several = sum(not shape.startswith(("switch", "rails")) for shape in self.shapes) > 1
        return _IN_ORDER if several else ""


def network_of(instance: Instance, design: dict[str, object]) -> Network | None:
    """That of a checked design; None for other workloads than a transformer."""
    chosen = from_words(instance, design)
    if not isinstance(instance.workload, Transformer) or not isinstance(chosen.plan, Plan):
        return None
    return network_on(instance.workload, design_of(instance, chosen).hardware, instance.cluster, chosen.plan)


def network_on(model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan) -> Network:
    """That of a plan on a device."""
    links, levels = hardware.links, range(len(hardware.links))
    plain = [_alone(tuple(replace(link, shares=()) for link in links), level) for level in levels]
    endless = [tuple(replace(link, bandwidth=np.inf) for link in each) for each in plain]
    whole, *alone = busy_under(model, hardware, cluster, plan, [links, *(_alone(links, level) for level in levels)])
    both = busy_under(model, hardware, cluster, plan, [*plain, *endless])
    sent, still = both[: len(links)], both[len(links) :]
    exchanges = tuple(
        Exchanged(
            name,
            tuple(seconds[name] for seconds in alone),
            tuple((sent[level][name] - still[level][name]) * float(link.bandwidth) for level, link in enumerate(links)),
        )
        for name, seconds in whole.items()
        if seconds > 0.0
    )
    shapes = shape_words(tuple(link.shape for link in links), cluster.level_sizes)
    return Network(
        cluster.level_sizes,
        tuple(float(link.bandwidth) for link in links),
        shapes,
        exchanges,
        tuple((float(link.latency), float(link.setup)) for link in links),
        tuple(link.shares[0] if link.shares and link.shape in ("switch", "rails") else 1.0 for link in links),
        float(bill(model, hardware, cluster, plan).step_time),
    )


def network_lines(instance: Instance, design: dict[str, object]) -> list[str]:
    """For the terminal, within 80 columns: which exchange lies on which dimension, and the busiest one; where all are switches nothing, but
    that what is sent over one of them takes longer than the step."""
    network = network_of(instance, design)
    if network is None:
        return []
    crowded = [f"  {line}" for line in wrap(network.crowded, 78)]
    if not shapes_of(instance):
        return ["", *crowded] if crowded else []
    lines, busy = list[str](), list[float]()
    for level, shape in enumerate(network.shapes):
        found = ((one.seconds[level], one.bytes[level], one.name) for one in network.exchanges if one.bytes[level] >= 1.0)
        here = sorted(found, reverse=True)
        busy.append(sum(seconds for seconds, _, _ in here))
        label = f"{level + 1}  {shape}"
        for place, (seconds, sent, name) in enumerate(here):
            amounts = f"{rounded_quantity(seconds, 'time', 4):>9}  {rounded_quantity(sent, 'bytes', 4):>11}"
            lines.append(f"    {'' if place else label:<23} {name:<20}{amounts}")
        lines += [] if here else [f"    {label:<23} nothing"]
    most = max(range(len(busy)), key=busy.__getitem__)
    if not busy[most]:
        return []
    told = f"    busiest: {most + 1}, {network.shapes[most]}, for {rounded_quantity(busy[most], 'time', 4)}, hidden or not"
    words = [f"    {line}" for text in (network.latencies, network.in_order) for line in wrap(text, 76)]
    return ["", "  dimensions of the network: busy in a step, bytes of bandwidth taken", *lines, told, *words, *crowded]


def busy_under(
    model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan, ways: Sequence[tuple[Link, ...]]
) -> list[dict[str, float]]:
    """Seconds of a step for which each exchange keeps links of a device of the fullest stage busy, on each of several networks, one
    dimension after the other."""
    plans, links = table([plan]), tuple(side_by_side(level) for level in zip(*ways, strict=True))
    hardware = replace(hardware, links=links)
    layout = in_turn(lay_out(plans, cluster))
    parts = parts_of(model, hardware, cluster, plans, layout)
    needed = terms(model, hardware, plans, parts)
    group = ranks(plans, layout)
    again = 1.0 + share_again(model, plans)
    passes = needed.microbatches * fullest_slot(needed).layers

    def both(part: Callable[[Pass], Real]) -> Real:
        return mean_over_kinds(model, lambda kind: again * part(forward[kind]) + part(backward[kind]))

    forward, backward = ({kind: one(kind, group, hardware) for _, kind in layer_kinds(model)} for one in (forward_pass, backward_pass))
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
    columns = {name: np.broadcast_to(np.ravel(seconds), len(ways)).tolist() for name, seconds in found.items()}
    return [{name: seconds[way] for name, seconds in columns.items()} for way in range(len(ways))]


def _edges(model: Transformer, group: Ranks, hardware: Hardware) -> Real:
    """Exchanges of the embedding and the head for one microbatch, whichever stages they are on."""
    still = replace(hardware, links=tuple(map(_free, hardware.links)))
    both = [embedding(model, group, device).time + head(model, group, device).time for device in (hardware, still)]
    return both[0] - both[1]


def _alone(links: tuple[Link, ...], level: int) -> tuple[Link, ...]:
    """One level as it is, and all others without any cost."""
    return tuple(link if place == level else _free(link) for place, link in enumerate(links))


def _free(link: Link) -> Link:
    return replace(link, bandwidth=np.inf, latency=0.0, setup=0.0, energy=0.0, ring_latency=0.0)
