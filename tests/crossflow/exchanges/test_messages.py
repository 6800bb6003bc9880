"""Messages between neighbours of a group, against every pair of every group routed link by link."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import prod

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from crossopt.crossflow.arrays import Whole
from crossopt.crossflow.collectives import both_sides_time, ends_time, exchange_energy, exchange_time, members_on_levels, send
from crossopt.crossflow.exchanges.spread import Spread, each
from crossopt.crossflow.hardware import Link, Shape
from tests.extent import examples

Place = tuple[int, ...]
Hop = tuple[int, Place, Place]
"""A link: its level and its two ends."""
LATENCY, ENERGY, SIZE = 2.0, 3.0, 60.0


def link(shape: Shape, size: int, bandwidth: float) -> Link:
    return Link(bandwidth, LATENCY, 5.0, ENERGY, shape=shape, size=size)


def one_link(level: Link) -> float:
    """The bandwidth of one of the links that a device has along a level."""
    ways = {"ring": min(2, level.size - 1), "fully_connected": level.size - 1}
    return float(level.bandwidth) / ways.get(level.shape, 1)


def route(source: Place, target: Place, links: tuple[Link, ...]) -> Iterator[Hop]:
    """From the outermost level on which the two differ inward: by a switch to the very device, by other links to its place along it."""
    here = source
    while here != target:
        level = max(place for place in range(len(links)) if here[place] != target[place])
        size = links[level].size
        if links[level].shape == "switch":
            there = (*target[: level + 1], *here[level + 1 :])
        elif links[level].shape == "ring":
            step = 1 if (target[level] - here[level]) % size <= size // 2 else -1
            there = (*here[:level], (here[level] + step) % size, *here[level + 1 :])
        else:
            there = (*here[:level], target[level], *here[level + 1 :])
        yield level, here, there
        here = there


def ports(hop: Hop, links: tuple[Link, ...]) -> tuple[Hop, ...]:
    """What a message over a link keeps busy: the link of the two, or the ports of both to a switch."""
    level, here, there = hop
    return (hop,) if links[level].shape in ("ring", "fully_connected") else ((level, here, ()), (level, (), there))


def places(degree: int, stride: int, sizes: list[int]) -> Iterator[list[Place]]:
    """The devices of every group in the order of its ranks."""
    total = prod(sizes)
    for first in range(total):
        if first // stride % degree == 0:
            yield [tuple(int(part) for part in np.unravel_index(first + rank * stride, sizes, order="F")) for rank in range(degree)]


def spread(degree: int, stride: int, sizes: list[int]) -> Spread:
    joined: Whole = np.cumprod(sizes)
    found = members_on_levels(np.array([degree]), np.array([stride]), tuple(joined.tolist()))
    return each(lambda part: float(part[0]), found)


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[tuple[Shape, int, float]], int, int]:
    """Levels of up to 200 devices, a number of ranks, and how far apart they are."""
    shapes = st.sampled_from(["switch", "rails", "ring", "fully_connected"])
    levels = draw(st.lists(st.tuples(shapes, st.integers(2, 9), st.sampled_from([10.0, 30.0, 100.0])), min_size=1, max_size=3))
    total = prod(size for _, size, _ in levels)
    degree = draw(st.sampled_from([part for part in range(2, total + 1) if total % part == 0]))
    return levels, degree, draw(st.sampled_from([part for part in range(1, total + 1) if total // degree % part == 0]))  # type: ignore[return-value]


@examples(60)
@example(([("switch", 4, 10.0), ("ring", 4, 100.0)], 8, 2))
@example(([("ring", 8, 10.0), ("switch", 6, 100.0)], 3, 4))
@given(groups())
def test_no_message_takes_longer_than_it_is_priced(group: tuple[list[tuple[Shape, int, float]], int, int]) -> None:
    """All groups send from every rank to the next, and from the last to the first, at once: on each level a message waits for all that go
    over the busiest of its links and ports. Two messages of a rank in the middle take no longer than the two to either side, and what the
    ends send each other no longer than between these."""
    levels, degree, stride = group
    links, sizes = tuple(link(*level) for level in levels), [size for _, size, _ in levels]
    rings = [list(pairwise((*ranks, ranks[0]))) for ranks in places(degree, stride, sizes)]
    routes = [list(route(one, other, links)) for pairs in rings for one, other in pairs]
    message = send(SIZE, spread(degree, stride, sizes))
    priced, energy = float(exchange_time(message, links)), float(exchange_energy(message, links))
    seconds = sent_at_once(routes, links)
    assert max(seconds) <= priced * (1 + 1e-12)
    assert sum(map(len, routes)) / len(routes) * SIZE * ENERGY <= energy * (1 + 1e-12)
    both = 2.0 * float(both_sides_time(message, links))
    for first in range(0, len(seconds), degree):
        assert all(one + other <= both * (1 + 1e-12) for one, other in pairwise(seconds[first : first + degree - 1]))
    back = sent_at_once([list(route(*pairs[-1], links)) for pairs in rings], links)
    assert max(back) <= float(ends_time(message, links)) * (1 + 1e-12)


def sent_at_once(routes: list[list[Hop]], links: tuple[Link, ...]) -> list[float]:
    """Seconds of each of some messages."""
    loads, found = Counter(port for path in routes for hop in path for port in ports(hop, links)), list[float]()
    for path in routes:
        busiest = {level: max(loads[port] for hop in path if hop[0] == level for port in ports(hop, links)) for level, _, _ in path}
        found.append(len(path) * LATENCY + sum(SIZE * load / one_link(links[level]) for level, load in busiest.items()))
    return found


def test_a_message_goes_on_to_its_place_inside() -> None:
    """Two nodes of four, two ranks each: over rails, then over the node, where a switch takes it at once; or over a slower node alone."""
    over_rails, over_switch = ((link("switch", 4, 30.0), link(shape, 2, 10.0)) for shape in ("rails", "switch"))
    group = spread(4, 2, [4, 2])
    assert exchange_time(send(SIZE, group), over_rails) == (LATENCY + SIZE / 10) + (LATENCY + SIZE / 30)
    assert exchange_time(send(SIZE, group), over_switch) == LATENCY + SIZE / 10
    assert exchange_time(send(SIZE, group), (link("switch", 4, 5.0), link("switch", 2, 10.0))) == LATENCY + SIZE / 5


def test_ends_and_both_sides_by_hand() -> None:
    """Four ranks on two nodes: the ends are on different ones, and each rank in the middle has a neighbour inside and one beyond.
    Three ranks on nodes of four do not lie evenly."""
    inside, beyond = link("switch", 2, 5.0), link("switch", 2, 100.0)
    group = send(SIZE, spread(4, 1, [2, 2]))
    assert exchange_time(group, (inside, beyond)) == LATENCY + SIZE / 5
    assert ends_time(group, (inside, beyond)) == LATENCY + SIZE / 100
    assert ends_time(group, (inside, link("rails", 2, 100.0))) == (LATENCY + SIZE / 100) + (LATENCY + SIZE / 5)
    assert both_sides_time(group, (link("switch", 2, 100.0), link("switch", 2, 5.0))) == LATENCY + (SIZE / 5 + SIZE / 100) / 2
    assert both_sides_time(group, (inside, beyond)) == LATENCY + SIZE / 5
    uneven = send(SIZE, spread(3, 1, [4, 3]))
    assert both_sides_time(uneven, (link("switch", 4, 100.0), link("switch", 3, 5.0))) == LATENCY + SIZE / 5
