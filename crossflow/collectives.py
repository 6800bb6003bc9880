"""How a group lies on the levels of a network, and how long its collectives take, on one axis of a torus or on several at once."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, reduce
from itertools import combinations
from math import inf
from typing import Final, Literal

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask, Real
from crossopt.crossflow.hardware import Link
from crossopt.crossflow.records import dataclass

# Placement of a group on the levels of a network: ranks along each level, units spanned, and links between neighbours.
#
# Ranks that lie next to each other reach over as many units as there are of them; those with c other ranks between each two over c + 1
# times as many. Where ranks that are one group up to a level do not fill its units evenly nothing is claimed: they reach over all of it.
# Neighbours of which no pair is told apart on a level are no links apart there, and where the whole group does not lie evenly, any number
# (infinity).


class Spread(tuple[Real, ...]):
    """Ranks along each level, innermost first, with the units spanned and the links between neighbours."""

    reaches: tuple[Real, ...]
    gaps: tuple[Real, ...]

    def __new__(cls, counts: Iterable[Real], reaches: Iterable[Real], gaps: Iterable[Real]) -> "Spread":
        """A `Spread` from one tuple of ranks, made as tuples are, with the other two."""
        found = super().__new__(cls, counts)
        found.reaches, found.gaps = tuple(reaches), tuple(gaps)
        return found


def reaches_of(members: tuple[Real, ...]) -> tuple[Real, ...]:
    """Units of each level that a group spans; all units if its placement is unknown."""
    return members.reaches if isinstance(members, Spread) else (inf,) * len(members)


def gaps_of(members: tuple[Real, ...]) -> tuple[Real, ...]:
    """Links between neighbours of a group on each level.
    If only the ranks are given, they are unknown (infinity) where there are several ranks, and 0 elsewhere.
    """
    return members.gaps if isinstance(members, Spread) else tuple(np.where(np.greater(count, 1.0), inf, 0.0) for count in members)


def anywhere(spread: Spread) -> Spread:
    """The spread of the same ranks if any two may be neighbours."""
    return Spread(spread, spread.reaches, (np.where(np.greater(gap, 0.0), inf, 0.0) for gap in spread.gaps))


def each(change: Callable[..., Real], *spreads: Spread) -> Spread:
    """The spread whose ranks, reaches and gaps are `change` of the corresponding entries of the given spreads."""
    return Spread(*(map(change, *parts) for parts in zip(*((spread, spread.reaches, spread.gaps) for spread in spreads), strict=True)))


def together(inner: Spread, outer: Spread) -> Spread:
    """The product of two spreads: the one that spans more is laid around the other."""
    counts = (here * there for here, there in zip(inner, outer, strict=True))
    return Spread(counts, map(np.maximum, inner.reaches, outer.reaches), map(np.maximum, inner.gaps, outer.gaps))


def either(choice: Mask, chosen: Spread, otherwise: Spread) -> Spread:
    return each(lambda here, there: np.asarray(np.where(choice, here, there), np.float64), chosen, otherwise)


# Collectives over several axes of a torus at once: the data are cut into parts, and each part visits the axes in another order.
#
# With D axes there are D parts, and part r begins with axis r, goes on with axis r + 1 and so on around. In each of D stages every axis has
# one part, and the stage ends with the last of them, so that no link has two parts at any time:
#
#     time = sum over stages of max over parts of  (starts setup + steps latency) of the axis + its bytes of the part / bandwidth
#
# With S bytes part r has S / D over the ranks along the axes that it has passed, of which an axis takes (m - 1) / m. So with D axes alike a
# large gather is D times as fast as along one after the other (Austin et al. 2025, How to Scale Your Model, "Sharded matrices": an all-
# gather over several axes has the links of all; Kumar and Jouppi 2020, arXiv:2011.03605). Small ones gain nothing, as every part makes all
# steps. Which axes share is chosen by what is fastest: sums, maxima and a minimum of monotone times are monotone. Only levels of links do
# so, rings and full connections that lie next to each other, and groups that lie evenly on them; switches and rails are gone along as they
# lie.

Axis = tuple[Real, Real, Real]
"""Seconds for start-up and steps of a level, seconds for its bytes if levels run in sequence, and ranks along it."""


def fastest(levels: Sequence[Axis], linked: Sequence[bool], evenly: Real) -> Real:
    """Seconds of an all-gather or all-reduce over all levels, with the fastest choice of axes at once, for evenly placed groups."""
    in_turn: Real = 0.0
    for waits, sends, _ in levels:
        in_turn = in_turn + (waits + sends)
    least = in_turn
    for run in _runs(linked):
        others = [level for level in range(len(levels)) if level not in run]
        beside: Real = 0.0
        for level in others:
            beside = beside + (levels[level][0] + levels[level][1])
        for count in range(2, len(run) + 1):
            for first in combinations(run, count):
                least = np.minimum(least, beside + _at_once(levels, run, first))
    return np.where(np.greater(evenly, 0.5), least, in_turn)


def _runs(linked: Sequence[bool]) -> Iterator[list[int]]:
    """Consecutive levels joined by links, where there are several."""
    run = list[int]()
    for level, is_linked in enumerate((*linked, False)):
        if is_linked:
            run.append(level)
        else:
            if len(run) > 1:
                yield run
            run = []


def _at_once(levels: Sequence[Axis], run: Sequence[int], first: Sequence[int]) -> Real:
    """Some axes of a run at once, then the others in sequence."""
    passed: dict[int, Real] = {}
    ranks: Real = 1.0
    for level in run:
        passed[level], ranks = ranks, ranks * levels[level][2]
    time: Real = 0.0
    for stage in range(len(first)):
        longest: Real = 0.0
        for part in range(len(first)):
            order = [first[(part + step) % len(first)] for step in range(stage + 1)]
            waits, sends, _ = levels[order[-1]]
            share = passed[order[-1]] / len(first)
            for level in order[:-1]:
                share = share / levels[level][2]
            longest = np.maximum(longest, waits + sends * share)
        time = time + longest
    done: Real = 1.0
    for level in first:
        done = done * levels[level][2]
    for level in run:
        if level not in first:
            waits, sends, count = levels[level]
            time, done = time + (waits + sends * (passed[level] / done)), done * count
    return time


# What a level that is no switch makes of an exchange along it.
#
# Of its n units a group has m, whose devices send S bytes in a gather or in an all-to-all, and have B bytes per second to all neighbours
# together: B / 2 to each of two in a ring, B / (n - 1) to each of the others where all are joined (Won et al. 2024, LIBRA,
# arXiv:2109.11762). Bytes are counted on every link that they pass, also through devices of other groups:
#
#     shape             gather: steps     bytes            all-to-all: steps    bytes                   of B    message, of B
#     switch            m - 1             (m - 1)/m S      one for each rank    (m - 1)/m S             1       1
#     rails             m - 1             (m - 1)/m S      m - 1                (m - 1)/m S             1       1
#     ring              h floor(m/2)      h (m - 1)/m S    h floor(m/2)         h floor(m^2/4)/m S      1       1/2, on h links
#     part of a ring    c (m - 1)         c (m - 1)/m S    c (m - 1)            c (m^2 - 1)/(3 m) S     1/2, or what its middle leaves  1/2
#     fully connected   1                 (m - 1)/m S      1                    (m - 1)/m S             (m - 1)/(n - 1)    1/(n - 1)
#
# A gather goes both ways around a ring, half of the bytes each way (Austin et al. 2025, How to Scale Your Model, "Sharded matrices": V / W,
# and a quarter of it for an all-to-all, which is floor(m^2/4)/m of the bytes for large m); where all are joined each sends straight to each
# (the direct algorithm of ASTRA-sim, Won et al. 2023, arXiv:2303.14006). With h = n / m groups around one ring each has its share of it:
# any of them can go around all of it, whichever devices are its own. A group that reaches over at most half of a ring (`exchanges.spread`)
# stays on that part, a line, whose links it shares with the others there, c in all: itself alone where its ranks are neighbours. In a
# gather each link carries (m - 1)/m S of each; of an all-to-all the middle one carries floor(m^2/4)/m S, and a mean one (m + 1)/6 S, so
# that it takes as long as around a ring with 2 c groups. A message from the last rank to the first one goes back over c (m - 1) links: all
# have so many steps. Where each rank sends one to the next, these go one way and that goes the other, so that each link has c S, and a mean
# message passes 2 c (m - 1) / m of them. Of a group of which no more is known than its ranks, a message goes n / 2 links.
#
# On all but switches a device reaches only those with its own place inside. What an all-to-all sends beyond first goes to that place
# inside, so that levels inside carry all of it (rail-only networks: Wang et al. 2024, arXiv:2307.12169; on GPUs NCCL's PXN).

Kind = Literal["gather", "exchange", "handed", "message"]
"""Kind of exchange: gather or scatter; all-to-all; its last hop inside a unit; or one message to a neighbour."""


def steps_along(link: Link, kind: Kind, steps: Real, ranks: Real, reach: Real) -> Real:
    """Steps of an exchange that takes this many over a switch."""
    busy = np.minimum(ranks - 1.0, 1.0)
    if link.shape == "ring":
        around = (steps if kind == "message" else _passes(steps, kind, ranks) * np.floor(ranks / 2.0)) * _groups(link, ranks)
        along = (steps if kind == "message" else _passes(steps, kind, ranks)) * _between(link, ranks, reach) * (ranks - 1.0)
        return np.where(_is_line(link, reach), along, around)
    if kind == "message" or (link.shape == "rails" and kind == "gather"):
        return steps
    return _passes(steps, kind, ranks) * (busy if link.shape == "fully_connected" else ranks - 1.0)


def bytes_along(link: Link, kind: Kind, size: Real, ranks: Real, reach: Real) -> Real:
    """Bytes over all links of a device for an exchange that sends this many over a switch. Where nothing is known of how ranks lie, two
    messages may come to one device, one of them on its way to another place inside."""
    if link.shape != "ring":
        return size * np.where(np.isinf(reach), 2.0, 1.0) if kind == "message" else size
    all_to_all = kind in ("exchange", "handed")
    around = np.floor(ranks * ranks / 4.0) / np.maximum(ranks - 1.0, 1.0) if all_to_all else 1.0
    along = (ranks + 1.0) / 3.0 if all_to_all else 2.0 * _sent_back(ranks) if kind == "message" else 1.0
    return size * np.where(_is_line(link, reach), along * _between(link, ranks, reach), around * _groups(link, ranks))


def width_of(link: Link, kind: Kind, ranks: Real, reach: Real) -> Real:
    """Share of a device's bandwidth on this level that a group of this many units uses."""
    if link.shape == "fully_connected":
        return np.minimum(np.maximum(ranks - 1.0, 1.0) / (link.size - 1.0), 1.0) if kind != "message" else 1.0 / (link.size - 1.0)
    if link.shape != "ring":
        return 1.0
    if kind == "message":
        return np.where(_is_line(link, reach), _sent_back(ranks), 0.5 if link.size > 2 else 1.0)
    along = 0.5 if kind == "gather" else np.maximum(ranks * ranks - 1.0, 3.0) / (6.0 * np.maximum(np.floor(ranks * ranks / 4.0), 1.0))
    return np.where(_is_line(link, reach), along, 1.0)


def _sent_back(ranks: Real) -> Real:
    """Half of the links on a line that a group's messages pass, divided by its ranks; the message from last to first is included."""
    return np.maximum(ranks - 1.0, 1.0) / np.maximum(ranks, 2.0)


def _passes(steps: Real, kind: Kind, ranks: Real) -> Real:
    """Number of gathers per exchange: 2 for an all-reduce."""
    return steps / np.maximum(ranks - 1.0, 1.0) if kind == "gather" else 1.0


def _groups(link: Link, ranks: Real) -> Real:
    """Groups that share a ring; 1 where ranks are counted on more units than there are."""
    return np.maximum(link.size / ranks, 1.0)


def _between(link: Link, ranks: Real, reach: Real) -> Real:
    """Links between neighbours on a line, which is the number of groups that share each link."""
    return np.where(_is_line(link, reach), reach, 1.0) / ranks


def _is_line(link: Link, reach: Real) -> Mask:
    """Whether the group spans so little of a ring that going around it takes no less than going back and forth."""
    return np.less_equal(2.0 * reach, link.size)


# Times of collectives between groups of devices on a network of levels: alpha-beta costs with ring, tree and hierarchical forms.
#
# A collective is first an `Exchange`: on each network level, how many operations it starts, how many steps they take and how many bytes
# each device sends. Its time is linear in these, so that plans and networks can be priced apart and multiplied out:
#
#     time = sum over levels of  starts * setup + steps * latency + bytes / (bandwidth * share of it that so many ranks sustain)
#
# A group that spans levels adds up in the hierarchical form: reduce-scatter inside, the same on the next level with the shard, gather
# inside (Thakur, Rabenseifner, Gropp 2005; Jia et al. 2018 for the two-level form; BlueConnect, Cho et al. 2019, for any number of them).
# What replicas gather or scatter goes around one ring over all ranks, as NCCL has no other form for many ranks a node: see `ring_gather`.
# What levels of other shapes than a switch make of an exchange stands in `collectives`; where devices are linked to each other on some
# level there is no single ring, and replicas gather level by level, too.


@dataclass(frozen=True, slots=True)
class Traffic:
    """Traffic of an exchange on one network level, per device."""

    starts: Real
    steps: Real
    bytes: Real
    ranks: Real
    """Units of this level with ranks of the group."""
    kind: Kind = "gather"
    reach: Real = inf
    """Units of this level that the group spans; see `exchanges.spread`."""
    evenly: Real = 0.0
    """1 if the group is known to be placed evenly: the same on other levels wherever it is on this one."""


_OF_LINKS: Final = ("ring", "fully_connected")
"""Shapes without a switch, on which no collective runs as a tree or as one ring over all ranks."""

Exchange = tuple[Traffic, ...]
"""One `Traffic` per network level, innermost first."""

Members = tuple[Real, ...]
"""Ranks of a group along each network level, innermost first; their product is the size of the group. A `Spread` also records their
placement."""


def members_on_levels(size: Ints, stride: Ints, level_sizes: tuple[int, ...]) -> Spread:
    """Spread of a group of `size` ranks, `stride` devices apart, over levels of `level_sizes` devices, innermost first.

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
    """Ring all-gather of `size` bytes in total: n - 1 steps and (n - 1)/n of the bytes on each level; also ring reduce-scatter."""
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


def through_own_ports(exchange: Exchange, members: Members) -> Exchange:
    """The exchange where each device receives all that comes over a level by itself, and devices inside pass nothing on to each other."""
    inside: Real = 1.0
    traffic = []
    for part, count in zip(exchange, members, strict=True):
        traffic.append(_with(part, part.steps, part.bytes * inside))
        inside = inside * count
    return tuple(traffic)


def ring_all_reduce(size: Real, members: Members) -> Exchange:
    """Reduce-scatter, then all-gather, on every level: 2(n - 1) steps and 2(n - 1)/n of the bytes, for the shard on outer levels."""
    return tuple(_with(part, 2.0 * part.steps, 2.0 * part.bytes) for part in all_gather(size, members))


def _as_tree(size: Real, members: Members, ring: Exchange, outer: tuple[Real, ...]) -> Exchange:
    shard = size
    traffic = []
    for part, count, last in zip(ring, members, outer, strict=True):
        steps = np.where(last, 2.0 * _ceil_log2(count), part.steps)
        traffic.append(_with(part, steps, np.where(last, 2.0 * shard, part.bytes)))
        shard = shard / count
    return tuple(traffic)


def _in_switch(size: Real, members: Members, ring: Exchange, outer: tuple[Real, ...]) -> Exchange:
    """Sum in the switches of the outermost level that the group spans, rings inside: two steps, up and down, and its bytes once each way
    (SHARP: Graham et al. 2016). On switches inside, a scatter takes the time of a ring's: each device sends all but its own part."""
    shard = size
    traffic = []
    for part, count, last in zip(ring, members, outer, strict=True):
        traffic.append(_with(part, np.where(last, 2.0, part.steps), np.where(last, shard, part.bytes)))
        shard = shard / count
    return tuple(traffic)


def _with(part: Traffic, steps: Real, size: Real) -> Traffic:
    """A copy with other steps and bytes. (`replace` is several times slower, and every cost is made of many.)"""
    return Traffic(part.starts, steps, size, part.ranks, part.kind, part.reach, part.evenly)


def all_to_all(size: Real, members: Members) -> Exchange:
    """All-to-all: every rank sends 1/n of its `size` bytes to each other rank, over the level that joins the two."""
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


def all_to_all_once(size: Real, members: Members, remaining: Callable[[Real], Real]) -> Exchange:
    """All-to-all that sends copies for one unit of the innermost level once and distributes them inside (DeepEP, DeepSeek-AI 2025).

    Inside, the copies for one rank travel as one, too. `kept(n)` is the share of the bytes that remains if a token's copies for each
    of n units are one.
    """
    total: Real = 1.0
    for count in members:
        total = total * count
    inside, reaches = members[0], reaches_of(members)
    handed = (inside - 1.0) / inside * size * remaining(total)
    traffic = [Traffic(np.minimum(inside - 1.0, 1.0), inside - 1.0, handed, inside, "handed", reaches[0])]
    left = size * remaining(total / members[0])
    for count, reach in zip(members[1:], reaches[1:], strict=True):
        up_to = inside * count
        traffic.append(Traffic(np.minimum(count - 1.0, 1.0), up_to - inside, (up_to - inside) / total * left, count, "exchange", reach))
        inside = up_to
    return tuple(traffic)


def send(size: Real, members: Members) -> Exchange:
    """One message between neighbours of the group, or from its last rank to its first: the cost on every level that it may cross.

    Which of them it is, and so how long it takes, says `_over_levels`. Where nothing is known of how ranks lie, a message goes as far as on
    a ring any can, half around it.
    """
    traffic = []
    for count, gap in zip(members, gaps_of(members), strict=True):
        here, ranks = np.where(np.greater(gap, 0.0), 1.0, 0.0), np.where(np.isinf(gap), 2.0, count)
        traffic.append(Traffic(0.0 * here, here, here * size, ranks, "message", gap * ranks))
    return tuple(traffic)


def on_shapes(exchange: Exchange, links: tuple[Link, ...]) -> Exchange:
    """Traffic of an exchange on the shapes of the levels, from its traffic over switches. Of an all-to-all a level carries once more
    whatever goes on over levels beyond that are no switches."""
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
    """Seconds of the exchange; levels run in sequence, or the axes of a torus at once (`exchanges.axes`)."""
    linked = [link.shape in _OF_LINKS for link in links]
    if sum(linked) < 2 or exchange[0].kind != "gather":
        return _over_levels(_seconds, exchange, links)
    parts = zip(on_shapes(exchange, links), links, strict=True)
    axes = [(part.starts * link.setup + part.steps * link.latency, _sending(part, link), part.ranks) for part, link in parts]
    return fastest(axes, linked, reduce(np.multiply, (part.evenly for part in exchange)))


def both_sides_time(exchange: Exchange, links: tuple[Link, ...]) -> Real:
    """Mean seconds of the two messages that a rank in a chain sends, one to either side.

    At least one neighbour is apart only on the innermost level that the chain spans. The other is at most at the end of the most
    expensive path. Where ranks do not lie evenly, both may be there.
    """
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
    """Seconds of a message between the first and the last rank of a chain, both directions at once.

    The two differ on each level that the chain spans evenly. If the outermost of these is a switch, the message crosses it alone.
    Where the chain does not lie evenly, any level may join them.
    """
    total: Real = 0.0
    for part, link in zip(on_shapes(exchange, links), links, strict=True):
        here = _seconds(part, link)
        differ = np.greater(part.reach, 0.0) & np.isfinite(part.reach)
        total = np.where(differ, here, np.maximum(total, here)) if link.shape == "switch" else total + here
    return total


def together_time(exchange: Exchange, links: tuple[Link, ...]) -> Real:
    """Seconds if all levels work at once on consecutive parts of the data: those of the slowest level."""
    time: Real = 0.0
    for part, link in zip(on_shapes(exchange, links), links, strict=True):
        time = np.maximum(time, _seconds(part, link))
    return time


def ring_time(exchange: Exchange, links: tuple[Link, ...]) -> Real:
    """Seconds around one ring over several levels: one start, all steps in sequence, bytes at the rate of the slowest level."""
    start: Real = 0.0
    steps: Real = 0.0
    sent: Real = 0.0
    for part, link in zip(exchange, links, strict=True):
        start = np.maximum(start, part.starts * link.setup)
        steps = steps + part.steps * np.maximum(link.latency, link.ring_latency)
        sent = np.maximum(sent, _sending(part, link))
    return start + steps + sent


def replicas_gather(size: Real, members: Members, links: tuple[Link, ...], own_ports: bool = False) -> Exchange:
    """Traffic of a gather or scatter among replicas: one ring over all ranks if every level has switches, else level by level."""
    gathered = all_gather(size, members) if _is_of_links(links) else ring_gather(size, members)
    return through_own_ports(gathered, members) if own_ports else gathered


def replicas_gather_time(size: Real, members: Members, links: tuple[Link, ...], own_ports: bool = False) -> Real:
    """Seconds of a gather or scatter among replicas."""
    gathered = replicas_gather(size, members, links, own_ports)
    return exchange_time(gathered, links) if _is_of_links(links) else ring_time(gathered, links)


def _is_of_links(links: tuple[Link, ...]) -> bool:
    return any(link.shape in _OF_LINKS for link in links)


def broadcasts_time(size: Real, count: Real, members: Members, links: tuple[Link, ...]) -> Real:
    """Seconds of this many broadcasts of `size` bytes around one ring over all N ranks, in sequence.

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
    """Cost of an exchange on all levels together, or of a message on the most expensive path that one of the group may take.

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
    """Share of the bandwidth that a group of this many ranks sustains; the last entry applies to larger groups."""
    if link.shape in _OF_LINKS:
        return width_of(link, part.kind, part.ranks, part.reach)
    if part.kind == "message":
        return 1.0
    if not link.shares:
        return 1.0
    table = _table_of(link.shares)
    return table[np.minimum(part.ranks, len(table) - 1.0).astype(np.int64)]


@cache
def _table_of(shares: tuple[float, ...]) -> Array:
    """Shares by numbers of ranks from 0."""
    return np.array((1.0, 1.0, *shares))


def all_reduce_time(size: Real, members: Members, links: tuple[Link, ...]) -> Real:
    """Seconds of the fastest of a ring, and of a tree or a sum in the switch where the outermost level that the group spans allows them.

    A minimum of monotone times is monotone.
    """
    around, outer = ring_all_reduce(size, members), _outermost(members)
    least = exchange_time(around, links)
    for form, allows in ((_as_tree, _has_trees), (_in_switch, _adds_up)):
        if not any(map(allows, links)):
            continue
        other = exchange_time(form(size, members, around, outer), links)
        allowed: Real = 0.0
        for last, link in zip(outer, links, strict=True):
            allowed = allowed + last * float(allows(link))
        least = np.where(np.greater(allowed, 0.5), np.minimum(least, other), least)
    return least


def _adds_up(link: Link) -> bool:
    return link.reduces


def _has_trees(link: Link) -> bool:
    return link.trees and link.shape not in _OF_LINKS


def exchange_energy(exchange: Exchange, links: tuple[Link, ...]) -> Real:
    """Joules that one device spends on sending."""
    return _over_levels(lambda part, link: part.bytes * link.energy, exchange, links)


def _outermost(members: Members) -> tuple[Real, ...]:
    """For each level, whether it is the last along which the group has more than one rank."""
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
