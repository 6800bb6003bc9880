"""Times of collectives between groups of devices on a network of levels: alpha-beta costs with ring, tree and hierarchical forms.

A collective is first an `Exchange`: on each network level, how many operations it starts, how many steps they take and how many bytes
each device sends. Its time is linear in these, so that plans and networks can be priced apart and multiplied out:

    time = sum over levels of  starts * setup + steps * latency + bytes / (bandwidth * share of it that so many ranks sustain)

A group that spans levels adds up in the hierarchical form: reduce-scatter inside, the same on the next level with the shard, gather inside
(Thakur, Rabenseifner, Gropp 2005; Jia et al. 2018 for the two-level form; BlueConnect, Cho et al. 2019, for any number of them). What
replicas gather or scatter goes around one ring over all ranks, as NCCL has no other form for many ranks a node: see `ring_gather`. What
levels of other shapes than a switch make of an exchange stands in `exchanges.shapes`; where devices are linked to each other on some level
there is no single ring, and replicas gather level by level, too.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from math import inf
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Mask, Real, Whole
from crossopt.crossflow.exchanges.axes import fastest
from crossopt.crossflow.exchanges.shapes import Kind, bytes_along, steps_along, width_of
from crossopt.crossflow.exchanges.spread import Spread, gaps_of, reaches_of
from crossopt.crossflow.hardware import Link


@dataclass(frozen=True, slots=True)
class Traffic:
    """What an exchange asks of one network level, per device."""

    starts: Real
    steps: Real
    bytes: Real
    ranks: Real
    """Units of this level that the group has."""
    kind: Kind = "gather"
    reach: Real = inf
    """Units of this level that the group reaches over; see `exchanges.spread`."""
    evenly: Real = 0.0
    """1 where it is known that the group lies evenly, the same along other levels wherever it is along this one."""


_OF_LINKS: Final = ("ring", "fully_connected")
"""Shapes without a switch, on which no collective runs as a tree or as one ring over all ranks."""

Exchange = tuple[Traffic, ...]
"""One `Traffic` a network level, innermost first."""

Members = tuple[Real, ...]
"""How many ranks a group has along each network level, innermost first; their product is the size of the group. A `Spread` knows, too, how
they lie there."""


def members_on_levels(size: Whole, stride: Whole, level_sizes: tuple[int, ...]) -> Spread:
    """How a group of `size` ranks, `stride` devices apart, spreads over levels that hold `level_sizes` devices, innermost first.

    A level holds the largest part of the group that divides it evenly. A stride that does not divide the level puts every rank into its
    own unit there, which can only over-state the traffic on the slower links. The outermost level takes all that is left. How far apart
    neighbours are is claimed only where the group lies inside the level, or fills it.
    """
    inside, unit = np.ones_like(size), 1
    members, reaches, gaps = list[Real](), list[Real](), list[Real]()
    for level, level_size in enumerate(level_sizes):
        room = np.where(level_size % stride == 0, level_size // stride, 1)
        reach = size if level == len(level_sizes) - 1 else np.gcd(size, room)
        fits = inside * stride % unit == 0
        units = np.where(fits, reach * stride // unit, level_size // unit)
        evenly, never = fits & ((reach == size) | (reach * stride == level_size)), (inside == size) | (stride % level_size == 0)
        members.append((reach // inside).astype(np.float64))
        reaches.append(np.where(reach == inside, 1, units).astype(np.float64))
        gaps.append(np.where(never, 0.0, np.where(evenly, inside * stride // unit, inf)))
        inside, unit = reach, level_size
    return Spread(members, reaches, gaps)


def all_gather(size: Real, members: Members) -> Exchange:
    """Ring all-gather of `size` bytes in the end: n - 1 steps and (n - 1)/n of the bytes on each level; also ring reduce-scatter."""
    traffic = []
    for count, reach, gap in zip(members, reaches_of(members), gaps_of(members), strict=True):
        busy = np.minimum(count - 1.0, 1.0)
        traffic.append(
            Traffic(busy, count - 1.0, (count - 1.0) / count * size, count, reach=reach, evenly=np.where(np.isfinite(gap), 1.0, 0.0))
        )
        size = size / count
    return tuple(traffic)


def ring_gather(size: Real, members: Members) -> Exchange:
    """All-gather around one ring over all N ranks; also reduce-scatter (NCCL, src/graph/tuning.cc).

    Of its N - 1 steps as many go over a level as there are units of the level inside it, less those that go farther out; each such unit
    sends (N - 1)/N of the bytes, by the links of all its ranks.
    """
    ranks: Real = 1.0
    for count in members:
        ranks = ranks * count
    traffic, units = [], ranks
    for count, reach in zip(members, reaches_of(members), strict=True):
        busy = np.minimum(count - 1.0, 1.0)
        traffic.append(Traffic(busy, units - units / count, busy * ((ranks - 1.0) / ranks * size), count, reach=reach))
        units, size = units / count, size / count
    return tuple(traffic)


def ring_all_reduce(size: Real, members: Members) -> Exchange:
    """Reduce-scatter then all-gather on every level: 2(n - 1) steps and 2(n - 1)/n of the bytes, on each outer level of the shard."""
    return tuple(_with(part, 2.0 * part.steps, 2.0 * part.bytes) for part in all_gather(size, members))


def tree_all_reduce(size: Real, members: Members) -> Exchange:
    """Pipelined tree on the outermost level that the group spans, rings inside: 2 ceil(log2 n) steps and twice the bytes there."""
    return _as_tree(size, members, ring_all_reduce(size, members), _outermost(members))


def _as_tree(size: Real, members: Members, ring: Exchange, outer: tuple[Real, ...]) -> Exchange:
    shard = size
    traffic = []
    for part, count, last in zip(ring, members, outer, strict=True):
        steps = np.where(last, 2.0 * _ceil_log2(count), part.steps)
        traffic.append(_with(part, steps, np.where(last, 2.0 * shard, part.bytes)))
        shard = shard / count
    return tuple(traffic)


def _with(part: Traffic, steps: Real, size: Real) -> Traffic:
    """The same with other steps and bytes: `replace` takes a multiple of the time, and every price is made of many."""
    return Traffic(part.starts, steps, size, part.ranks, part.kind, part.reach, part.evenly)


def all_to_all(size: Real, members: Members) -> Exchange:
    """Every rank sends 1/n of its `size` bytes to each other rank, straight over the level that joins the two."""
    total: Real = 1.0
    for count in members:
        total = total * count
    inside: Real = 1.0
    traffic = []
    for count, reach in zip(members, reaches_of(members), strict=True):
        up_to = inside * count
        traffic.append(Traffic(np.minimum(count - 1.0, 1.0), up_to - inside, (up_to - inside) / total * size, count, "exchange", reach))
        inside = up_to
    return tuple(traffic)


def all_to_all_once(size: Real, members: Members, kept: Callable[[Real], Real]) -> Exchange:
    """All-to-all of copies, of which those for one unit of the innermost level travel there as one and are handed on inside, as those for
    one rank do (DeepEP, DeepSeek-AI 2025): of the bytes `kept(n)` are left where a token's copies for each of n units are one."""
    total: Real = 1.0
    for count in members:
        total = total * count
    inside, reaches = members[0], reaches_of(members)
    handed = (inside - 1.0) / inside * size * kept(total)
    traffic = [Traffic(np.minimum(inside - 1.0, 1.0), inside - 1.0, handed, inside, "handed", reaches[0])]
    left = size * kept(total / members[0])
    for count, reach in zip(members[1:], reaches[1:], strict=True):
        up_to = inside * count
        traffic.append(Traffic(np.minimum(count - 1.0, 1.0), up_to - inside, (up_to - inside) / total * left, count, "exchange", reach))
        inside = up_to
    return tuple(traffic)


def send(size: Real, members: Members) -> Exchange:
    """One message between neighbours of the group, or from its last rank to its first: on every level what one takes that goes over it.

    Which of them it is, and so how long it takes, says `_over_levels`. Where nothing is known of how ranks lie, a message goes as far as on
    a ring any can, half around it.
    """
    traffic = []
    for count, gap in zip(members, gaps_of(members), strict=True):
        here, ranks = np.where(np.greater(gap, 0.0), 1.0, 0.0), np.where(np.isinf(gap), 2.0, count)
        traffic.append(Traffic(0.0 * here, here, here * size, ranks, "message", gap * ranks))
    return tuple(traffic)


def on_shapes(exchange: Exchange, links: tuple[Link, ...]) -> Exchange:
    """What the shapes of the levels make of an exchange as it is over switches. Of an all-to-all a level carries once more whatever goes
    on over levels beyond that are no switches."""
    if all(link.shape == "switch" for link in links):
        return exchange
    found: list[Traffic] = []
    beyond: Real = 1.0
    for part, link in zip(reversed(exchange), reversed(links), strict=True):
        size = part.bytes * beyond if part.kind == "exchange" else part.bytes
        along = replace(part, bytes=bytes_along(link, part.kind, size, part.ranks, part.reach))
        if link.shape != "switch":
            along = replace(along, steps=steps_along(link, part.kind, part.steps, part.ranks, part.reach))
            beyond = beyond * part.ranks
        found.append(along)
    return tuple(reversed(found))


def exchange_time(exchange: Exchange, links: tuple[Link, ...]) -> Real:
    """Seconds that the exchange takes; levels work one after the other, or axes of a torus at once (`exchanges.axes`)."""
    linked = [link.shape in _OF_LINKS for link in links]
    if sum(linked) < 2 or exchange[0].kind != "gather":
        return _over_levels(_seconds, exchange, links)
    parts = zip(on_shapes(exchange, links), links, strict=True)
    axes = [(part.starts * link.setup + part.steps * link.latency, _sending(part, link), part.ranks) for part, link in parts]
    return fastest(axes, linked, reduce(np.multiply, (part.evenly for part in exchange)))


def both_sides_time(exchange: Exchange, links: tuple[Link, ...]) -> Real:
    """Seconds of a message in the mean of the two that a rank in a chain sends, one to either side: of its neighbours at least one is apart
    from it on the innermost level alone that the chain spans, the other at most at the end of the dearest way. Where ranks do not lie
    evenly both may be."""
    near: Real = 0.0
    far: Real = 0.0
    inside: Mask = np.array(True)
    even: Mask = np.array(True)
    for part, link in zip(on_shapes(exchange, links), links, strict=True):
        here = _seconds(part, link)
        far = np.maximum(far, here) if link.shape == "switch" else far + here
        near = np.where(inside, far, near)
        inside, even = inside & np.equal(part.reach, 0.0), even & np.isfinite(part.reach)
    return 0.5 * (np.where(even, near, far) + far)


def ends_time(exchange: Exchange, links: tuple[Link, ...]) -> Real:
    """Seconds of a message between the first and the last of a chain of ranks, both ways at once: they differ on each level that the chain
    spans evenly, so that they go over the outermost alone where that is a switch. Where it does not lie evenly any level may join them."""
    total: Real = 0.0
    for part, link in zip(on_shapes(exchange, links), links, strict=True):
        here = _seconds(part, link)
        differ = np.greater(part.reach, 0.0) & np.isfinite(part.reach)
        total = np.where(differ, here, np.maximum(total, here)) if link.shape == "switch" else total + here
    return total


def together_time(exchange: Exchange, links: tuple[Link, ...]) -> Real:
    """Seconds where all levels work at once, on one part of what is sent after the other: those of the slowest one."""
    time: Real = 0.0
    for part, link in zip(on_shapes(exchange, links), links, strict=True):
        time = np.maximum(time, _seconds(part, link))
    return time


def ring_time(exchange: Exchange, links: tuple[Link, ...]) -> Real:
    """Seconds around one ring over several levels: one start, all steps one after the other, bytes at the pace of the slowest level."""
    start: Real = 0.0
    steps: Real = 0.0
    sent: Real = 0.0
    for part, link in zip(exchange, links, strict=True):
        start = np.maximum(start, part.starts * link.setup)
        steps = steps + part.steps * np.maximum(link.latency, link.ring_latency)
        sent = np.maximum(sent, _sending(part, link))
    return start + steps + sent


def replicas_gather(size: Real, members: Members, links: tuple[Link, ...]) -> Exchange:
    """What replicas gather or scatter: around one ring over all ranks, where levels have switches, and else level by level."""
    return all_gather(size, members) if _is_of_links(links) else ring_gather(size, members)


def replicas_gather_time(size: Real, members: Members, links: tuple[Link, ...]) -> Real:
    """Seconds of that."""
    gathered = replicas_gather(size, members, links)
    return exchange_time(gathered, links) if _is_of_links(links) else ring_time(gathered, links)


def _is_of_links(links: tuple[Link, ...]) -> bool:
    return any(link.shape in _OF_LINKS for link in links)


def broadcasts_time(size: Real, count: Real, members: Members, links: tuple[Link, ...]) -> Real:
    """Seconds of so many broadcasts of parts of `size` bytes around one ring over all N ranks, one after the other.

    Each goes by all ranks before the next: a start, and N steps that are all as long as one over the outermost level that the group spans
    (NCCL, src/graph/tuning.cc, `nsteps * lat` of Reduce and Broadcast); bytes go at the pace of the slowest level.
    """
    ranks: Real = 1.0
    for members_here in members:
        ranks = ranks * members_here
    start: Real = 0.0
    step: Real = 0.0
    sent: Real = 0.0
    for part, link in zip(on_shapes(ring_gather(size, members), links), links, strict=True):
        start = np.maximum(start, part.starts * link.setup)
        step = np.maximum(step, part.starts * np.maximum(link.latency, link.ring_latency))
        sent = np.maximum(sent, _sending(part, link))
    return count * (start + ranks * step) + sent


def _over_levels(cost: Callable[[Traffic, Link], Real], exchange: Exchange, links: tuple[Link, ...]) -> Real:
    """What an exchange costs on all levels together, or a message on the dearest way that one of the group may take.

    A pair that some level joins goes over that, by a switch to the very device. Over other links it comes to the same place inside, from
    where it goes on to its own over levels inside.
    """
    total: Real = 0.0
    for part, link in zip(on_shapes(exchange, links), links, strict=True):
        here = cost(part, link)
        straight = part.kind == "message" and link.shape == "switch"
        total = np.maximum(total, here) if straight else total + here
    return total


def _seconds(part: Traffic, link: Link) -> Real:
    return part.starts * link.setup + part.steps * link.latency + _sending(part, link)


def _sending(part: Traffic, link: Link) -> Real:
    return part.bytes / (link.bandwidth * _share(link, part))


def _share(link: Link, part: Traffic) -> Real:
    """The share of the bandwidth that a group of so many ranks sustains; the last of the table stands for larger groups."""
    if link.shape in _OF_LINKS:
        return width_of(link, part.kind, part.ranks, part.reach)
    if part.kind == "message":
        return 1.0
    table = np.array((1.0, 1.0, *link.shares))
    return table[np.minimum(part.ranks, len(table) - 1.0).astype(np.int64)] if link.shares else 1.0


def all_reduce_time(size: Real, members: Members, links: tuple[Link, ...]) -> Real:
    """Seconds of the faster of ring and tree, where the links of the outermost level that the group spans allow trees.

    A minimum of monotone times is monotone.
    """
    around, outer = ring_all_reduce(size, members), _outermost(members)
    ring = exchange_time(around, links)
    if not any(_has_trees(link) for link in links):
        return ring
    tree = exchange_time(_as_tree(size, members, around, outer), links)
    allowed: Real = 0.0
    for last, link in zip(outer, links, strict=True):
        allowed = allowed + last * float(_has_trees(link))
    return np.where(np.greater(allowed, 0.5), np.minimum(ring, tree), ring)


def _has_trees(link: Link) -> bool:
    return link.trees and link.shape not in _OF_LINKS


def exchange_energy(exchange: Exchange, links: tuple[Link, ...]) -> Real:
    """Joules that one device spends on sending."""
    return _over_levels(lambda part, link: part.bytes * link.energy, exchange, links)


def _outermost(members: Members) -> tuple[Real, ...]:
    """For each level whether it is the last one along which the group has more than one rank."""
    flags: list[Real] = []
    beyond: Real = 1.0
    for count in reversed(members):
        flags.append(np.where((count > np.float64(1)) & (beyond == np.float64(1)), 1.0, 0.0))
        beyond = beyond * count
    return tuple(reversed(flags))


def _ceil_log2(count: Real) -> Real:
    """The smallest k with 2^k >= count, exactly."""
    mantissa, exponent = np.frexp(np.asarray(count, np.float64))
    return exponent - 1.0 + (mantissa > 0.5)
