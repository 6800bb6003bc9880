"""What a report shows of the network: bytes and seconds of every kind of exchange on every level, for one device and one step.

A level's seconds are those that the exchange takes where all other levels cost nothing, and its bytes what of them its bandwidth takes.
Levels that work at once, as in one ring over all ranks, are busy together, so that these may add up to more than the exchange takes.
Exchanges that hide behind computation count in full: this is how long links are busy, not how long a step waits for them. Of embedding and
head the longer counts where no device has both. Messages between
stages count as `exchanges.shared_links` has them: both ways on the first switch that joins stages, one way on others and over other links.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.edges import embedding_exchange, head_exchange
from crossopt.crossflow.hardware import Cluster, Hardware, Link, side_by_side
from crossopt.crossflow.layer import exchanged
from crossopt.crossflow.layout import Layout, in_turn, lay_out
from crossopt.crossflow.pipeline import edges, fullest_slot
from crossopt.crossflow.plan import Plan, Plans, table
from crossopt.crossflow.recomputation import LAYER, PARTLY
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.replica_exchange import free, messages_each_way, messages_time
from crossopt.crossflow.transformer import bill, mean_over_kinds, parts_of, ranks, sharding, share_again, terms
from crossopt.crossflow.workload import Transformer, layer_kinds
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.files.units import rounded_quantity
from crossopt.reports.facts.chip import shape_text
from crossopt.solvers.codesign.answer import ChosenDesign, candidate_in, design_of

_IN_ORDER = (
    "shown as if dimensions were passed in this order, one after the other; gathers and sums pass axes of a torus at once where that is "
    "quicker, each part of the data in another order"
)
_CROWDED = (
    "the step is too short: exchanges that hide behind work hide behind others on the same links, too, and what a device sends there "
    "takes longer than the step"
)
_LINKED = "links are shown as if all kinds of groups shared those of each device; the step is held to what it sends over all of them"
_SHARED = "for others on the same links, until a dimension has carried all that the step sends (`shared links`)"


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
    shared: float | None
    """Seconds of it in which exchanges wait for others on the same links; None on networks on which no step is held to that."""

    @property
    def named(self) -> tuple[str, ...]:
        """The shape of each level in words, where all are switches, too."""
        units = (outer // inner for inner, outer in pairwise((1, *self.sizes)))
        return self.shapes or tuple(f"switch of {count:,}" for count in units)

    @property
    def crowded(self) -> str:
        """That exchanges wait for others on the same links, or where none does that what a device sends takes longer than the step."""
        if self.shared is not None:
            return f"exchanges that hide behind work wait {rounded_quantity(self.shared, 'time', 4)} {_SHARED}" if self.shared > 0.0 else ""
        levels = []
        for level, bandwidth in enumerate(self.bandwidths):
            seconds = sum(exchange.bytes[level] for exchange in self.exchanges) / bandwidth
            if seconds > self.step:
                levels.append(f"{level + 1} for {rounded_quantity(seconds, 'time', 4)}")
        return f"{_CROWDED} ({', '.join(levels)})" if levels else ""

    @property
    def latencies(self) -> str:
        """Which levels wait how long, which need not be as the question names them."""
        levels: dict[str, list[str]] = {}
        for level, ((step, start), pair) in enumerate(zip(self.waits, self.pairs, strict=True)):
            text = f"{rounded_quantity(step, 'time', 3)} a step and {rounded_quantity(start, 'time', 3)} a start"
            text += "" if pair == 1.0 else f", and {pair:.0%} of the bandwidth between two ranks,"
            levels.setdefault(text, []).append(str(level + 1))
        return "waits: " + "; ".join(f"{text} on {', '.join(places)}" for text, places in levels.items())

    @property
    def linked(self) -> str:
        """What the figures of a dimension assume whose devices are linked one by one."""
        return _LINKED if any(shape.startswith("links") for shape in self.named) else ""

    @property
    def in_order(self) -> str:
        """In which order dimensions are gone along, where there are several whose devices are linked."""
        several = sum(not shape.startswith(("switch", "rails")) for shape in self.shapes) > 1
        return _IN_ORDER if several else ""


def network_of(instance: Instance, design: ChosenDesign) -> Network | None:
    """That of a checked design; None for other workloads than a transformer."""
    chosen = candidate_in(instance, design)
    if not isinstance(instance.workload, Transformer) or not isinstance(chosen.plan, Plan):
        return None
    return network_on(instance.workload, design_of(instance, chosen).hardware, instance.cluster, chosen.plan)


def network_on(model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan) -> Network:
    """That of a plan on a device."""
    links, levels = hardware.links, list(range(len(hardware.links)))
    plain = [_alone(tuple(replace(link, shares=()) for link in links), level) for level in levels]
    endless = [tuple(replace(link, bandwidth=np.inf) for link in each) for each in plain]
    alone = busy_under(model, hardware, cluster, plan, [_alone(links, level) for level in levels], levels)
    both = busy_under(model, hardware, cluster, plan, [*plain, *endless], levels * 2)
    sent, still = both[: len(links)], both[len(links) :]
    exchanges = tuple(
        Exchanged(
            name,
            tuple(seconds[name] for seconds in alone),
            tuple((sent[level][name] - still[level][name]) * float(link.bandwidth) for level, link in enumerate(links)),
        )
        for name in alone[0]
        if any(seconds[name] > 0.0 for seconds in alone)
    )
    shapes = shape_text(tuple(link.shape for link in links), cluster.level_sizes)
    costs = bill(model, hardware, cluster, plan)
    return Network(
        cluster.level_sizes,
        tuple(float(link.bandwidth) for link in links),
        shapes,
        exchanges,
        tuple((float(link.latency), float(link.setup)) for link in links),
        tuple(link.shares[0] if link.shares and link.shape in ("switch", "rails") else 1.0 for link in links),
        float(costs.step_time),
        float(dict(costs.time).get("shared links", 0.0)) if cluster.are_dimensions else None,
    )


def busy_under(
    model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan, ways: Sequence[tuple[Link, ...]], levels: Sequence[int] = ()
) -> list[dict[str, float]]:
    """Seconds of a step for which each exchange keeps links of a device of the fullest stage busy, on each of several networks, one
    dimension after the other; or on each of them the one level that costs anything."""
    plans, links = table([plan]), tuple(side_by_side(level) for level in zip(*ways, strict=True))
    hardware = replace(hardware, links=links)
    layout = in_turn(lay_out(plans, cluster))
    parts = parts_of(model, hardware, cluster, plans, layout)
    needed = terms(model, hardware, plans, parts)
    group = ranks(plans, layout)
    mode = int(plans.recompute[0] % PARTLY)
    full = share_again(model, plans) if mode & LAYER else 1.0
    passes = needed.microbatches * fullest_slot(needed).layers
    beside = replace(needed, embedding=embedding_exchange(model, group, hardware), head=head_exchange(model, group, hardware))
    layers = {kind: exchanged(kind, group, hardware, (0, mode)) for _, kind in layer_kinds(model)}

    def layer(mode: int) -> Real:
        return mean_over_kinds(model, lambda kind: (1.0 - full) * layers[kind][0][mode] + full * layers[kind][1][mode])

    found = {
        "tensor parallelism": passes * layer(0),
        "context parallelism": passes * layer(1),
        "experts": passes * layer(2),
        "embedding and head": needed.microbatches * np.maximum(*edges(beside)),
        "pipeline": needed.microbatches * messages_each_way(needed) * _messages(model, plans, layout, ways, levels, needed.transfer),
        "weight gathers": passes * (needed.gather_forward + needed.gather_backward),
        "gradients": needed.synchronize,
        "updated weights": needed.publish,
    }
    columns = {name: np.broadcast_to(np.ravel(seconds), len(ways)).tolist() for name, seconds in found.items()}
    return [{name: seconds[way] for name, seconds in columns.items()} for way in range(len(ways))]


def _messages(
    model: Transformer, plans: Plans, layout: Layout, ways: Sequence[tuple[Link, ...]], levels: Sequence[int], send: Real
) -> Real:
    """One message down the stages and one up: on each network on its level, or on the whole of it."""
    split = sharding(model, plans)
    each = [np.ravel(messages_time(model, split, layout, links, level)) for links, level in zip(ways, levels, strict=False)]
    return np.concatenate(each) if each else 2.0 * send


def _alone(links: tuple[Link, ...], level: int) -> tuple[Link, ...]:
    """One level as it is, and all others without any cost."""
    return tuple(link if index == level else free(link) for index, link in enumerate(links))
