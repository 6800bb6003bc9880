"""Exchanges on rings, rails, tori and shared links: by hand, and against bytes and messages counted link by link."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import combinations, pairwise, product
from math import inf, prod

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crossopt.crossflow.arrays import Ints
from crossopt.crossflow.collectives import (
    Members,
    Spread,
    all_gather,
    all_reduce_time,
    all_to_all,
    all_to_all_once,
    both_sides_time,
    broadcasts_time,
    each,
    ends_time,
    exchange_energy,
    exchange_time,
    fastest,
    members_on_levels,
    on_shapes,
    replicas_gather,
    replicas_gather_time,
    ring_all_reduce,
    ring_gather,
    ring_time,
    send,
    together_time,
)
from crossopt.crossflow.evaluate import Design, evaluate
from crossopt.crossflow.hardware import Cluster, Hardware, Link, Shape
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.parameters import embedding_parameters, layer_parameters, parameters
from crossopt.crossflow.pipeline import unheld_time
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.replica_exchange import DataExchange, data_exchange, transfer_energy, transfer_time
from crossopt.crossflow.transformer import parts_of, price, price_directly, sharding, terms
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.registry import build_device, device
from tests.conftest import scaled
from tests.crossflow.strategies import MODELS, plans
from tests.extent import examples

# Exchanges on rings, rails and links between all, against bytes counted link by link.


def link(shape: Shape, size: int, bandwidth: float = 100.0) -> Link:
    """Bytes per second, 2 seconds a step, 5 a start, 3 joules a byte."""
    return Link(bandwidth, 2.0, 5.0, 3.0, shape=shape, size=size)


def lying(counts: tuple[int, ...], apart: int = 1) -> Spread:
    """A group with so many ranks along each level, neighbours so far apart there."""
    gaps = [float(apart) if count > 1 else 0.0 for count in counts]
    return Spread(map(float, counts), (max(count * gap, 1.0) for count, gap in zip(counts, gaps, strict=True)), gaps)


def ring_loads(size: int, at: list[int], each: float) -> Counter[tuple[int, int]]:
    """Bytes on the links of a ring of two-way links where every one of these sends so much to each other, half each way if both are as
    long."""
    load = Counter[tuple[int, int]]()
    for one, other in product(at, repeat=2):
        away = (other - one) % size
        ways = [step for step in (1, -1) if (away if step == 1 else size - away) == min(away, size - away)] if away else []
        for step in ways:
            for hop in range(min(away, size - away)):
                here = (one + step * hop) % size
                load[here, (here + step) % size] += each / len(ways)  # type: ignore[assignment]
    return load


@pytest.mark.parametrize(("size", "members"), [(4, 4), (5, 5), (8, 8), (8, 4), (8, 2), (9, 3), (12, 4)])
def test_an_all_to_all_around_a_ring_takes_as_long_as_its_busiest_link(size: int, members: int) -> None:
    """With all groups of so many devices, evenly around it, at once. Of two links a device has half of the bandwidth each."""
    spaced = size // members
    loads = [max(ring_loads(size, list(range(start, size, spaced)), 60.0 / members).values()) for start in range(spaced)]
    [part] = on_shapes(all_to_all(60.0, (float(members),)), (link("ring", size),))
    assert float(part.bytes) / 100.0 == pytest.approx(sum(loads) / 50.0)


LINES = [(4, 2, 1), (16, 2, 1), (16, 8, 1), (9, 3, 1), (16, 2, 2), (16, 4, 2), (32, 3, 5), (24, 4, 3)]
"""Devices of a ring, members of a group, and how far apart they are: all in one half of the ring."""


@pytest.mark.parametrize(("size", "members", "apart"), LINES)
def test_groups_on_a_part_of_a_ring_share_its_links_alone(size: int, members: int, apart: int) -> None:
    """All groups on that part at once. Each link carries both what it must in time, and no more than the energy says in all."""
    group = lying((members,), apart)
    loads = sum((ring_loads(size, [start + apart * rank for rank in range(members)], 60.0 / members) for start in range(apart)), Counter())
    ring = (replace(link("ring", size), latency=0.0, setup=0.0),)
    assert float(exchange_time(all_to_all(60.0, group), ring)) == pytest.approx(max(loads.values()) / 50.0)
    assert float(exchange_energy(all_to_all(60.0, group), ring)) == pytest.approx(3 * sum(loads.values()) / (members * apart))
    busiest = apart * 60.0 * (members - 1) / members
    assert float(exchange_time(all_gather(60.0, group), ring)) == pytest.approx(busiest / 50.0)
    assert float(exchange_energy(all_gather(60.0, group), ring)) == pytest.approx(3 * busiest)


@pytest.mark.parametrize("size", [4, 8, 16, 64])
def test_neighbours_take_as_long_on_a_ring_of_any_size(size: int) -> None:
    """A step, and half of the bytes over the one of a device's two links that joins the pair; a ring of two has both for it."""
    pair, ring = lying((2,)), (link("ring", size),)
    assert exchange_time(all_gather(400.0, pair), ring) == 5 + 2 + 200 / 50
    assert all_reduce_time(400.0, pair, ring) == 5 + 2 * (2 + 200 / 50)
    assert exchange_time(all_gather(400.0, pair), (link("ring", 2),)) == 5 + 2 + 200 / 100
    assert exchange_time(all_to_all(400.0, pair), ring) == 5 + 2 + 200 / 50


@examples(60)
@given(st.integers(1, 4), st.integers(2, 8), st.integers(1, 8), st.integers(1, 4))
def test_where_a_group_lies_never_makes_it_slower_than_if_that_were_unknown(apart: int, members: int, more: int, closer: int) -> None:
    """Nor does lying closer together."""
    ring, counts = (link("ring", apart * members * more),), (float(members),)
    near, far = (lying((members,), each) for each in (min(apart, closer), apart))
    for exchange in (all_gather, all_to_all, ring_all_reduce):
        times = [float(exchange_time(exchange(1e6, group), ring)) for group in (near, far, counts)]
        assert times == pytest.approx(sorted(times), rel=1e-12)


@given(st.integers(2, 16), st.integers(2, 16))
def test_links_between_all_carry_what_each_pair_has(size: int, members: int) -> None:
    """One step, over a link of its own: of the group's bytes 1/m on each, with 1/(n - 1) of a device's bandwidth."""
    links = (link("fully_connected", size),)
    members = min(size, members)
    for exchange in (all_to_all(60.0, (float(members),)), all_gather(60.0, (float(members),))):
        assert float(exchange_time(exchange, links)) == pytest.approx(5 + 2 + 60.0 / members / (100.0 / (size - 1)))
        assert float(exchange_energy(exchange, links)) == pytest.approx(3 * 60.0 * (members - 1) / members)
    assert float(all_reduce_time(60.0, (float(members),), links)) == pytest.approx(5 + 2 * (2 + 60.0 / members / (100.0 / (size - 1))))


def test_a_gather_goes_both_ways_around_a_ring() -> None:
    """Eight devices: four steps, 7/8 of the bytes; of two groups of four each has half of the ring, and passes the other's devices."""
    ring = (link("ring", 8),)
    assert exchange_time(all_gather(800.0, (8.0,)), ring) == 5 + 4 * 2 + 700 / 100
    assert exchange_time(all_gather(800.0, (4.0,)), ring) == 5 + 2 * 2 * 2 + 600 / 50
    assert all_reduce_time(800.0, (8.0,), ring) == 5 + 2 * (4 * 2 + 700 / 100)
    assert exchange_time(ring_all_reduce(800.0, (1.0,)), ring) == 0


def test_a_torus_reduces_dimension_by_dimension() -> None:
    """Scatter over rings of four, all-reduce of the quarters over rings of two, gather: 6 x 100 + 2 x 50 bytes of 400."""
    torus = (link("ring", 4), link("ring", 2))
    assert all_reduce_time(400.0, (4.0, 2.0), torus) == (5 + 4 * 2 + 600 / 100) + (5 + 2 * 2 + 100 / 100)
    assert replicas_gather_time(400.0, (4.0, 2.0), torus) == (5 + 2 * 2 + 300 / 100) + (5 + 1 * 2 + 50 / 100)


def test_a_message_has_one_link() -> None:
    """Where it is not known how the ranks lie it may have to go half around a ring; on a line from the last of four to the first."""
    assert exchange_time(send(100.0, lying((4,))), (link("ring", 8),)) == 3 * 2 + 100 / 50
    assert exchange_energy(send(100.0, lying((4,))), (link("ring", 8),)) == 3 * 100 * 6 / 4
    assert exchange_time(send(100.0, lying((4,))), (link("ring", 4),)) == 2 + 100 / 50
    assert exchange_time(send(100.0, (2.0,)), (link("ring", 2),)) == 2 + 100 / 100
    assert exchange_time(send(100.0, (2.0,)), (link("ring", 8),)) == 4 * 2 + 4 * 100 / 50
    assert exchange_time(send(100.0, lying((2,))), (link("fully_connected", 5),)) == 2 + 100 / 25
    torus = (link("ring", 4), link("rails", 2, 10.0))
    assert exchange_time(send(100.0, lying((4, 2))), torus) == (2 + 100 / 10) + (2 + 100 / 50)
    assert exchange_time(send(100.0, lying((1, 2))), torus) == 2 + 100 / 10


SHAPES: tuple[Shape, ...] = ("switch", "rails", "ring", "fully_connected")


@examples(40)
@given(st.lists(st.tuples(st.sampled_from(SHAPES), st.integers(2, 5)), min_size=1, max_size=4))
def test_an_all_to_all_over_dimensions_carries_what_routing_copy_by_copy_does(dimensions: list[tuple[Shape, int]]) -> None:
    """From every device a copy goes to each other one, from the outermost level that is no switch inward: on a level between the ends it
    is sent on at the place inside that it has to reach. A switch takes it to the very device."""
    sizes = [size for _, size in dimensions]
    sent = Counter[int]()
    for target in product(*map(range, sizes)):
        here, there = [0] * len(sizes), list(target)
        while here != there:
            level = max(place for place in range(len(sizes)) if here[place] != there[place])
            if dimensions[level][0] == "switch":
                here[: level + 1] = there[: level + 1]
            else:
                here[level] = there[level]
            sent[level] += 1
    links = tuple(Link(100.0, 2.0, shape="switch" if shape == "switch" else "rails", size=size) for shape, size in dimensions)
    copies = float(prod(sizes))
    found = on_shapes(all_to_all(copies, tuple(map(float, sizes))), links)
    assert [float(part.bytes) for part in found] == pytest.approx([float(sent[level]) for level in range(len(sizes))])


def test_copies_that_travel_once_a_node_are_handed_on_there_whatever_lies_beyond() -> None:
    inner, outer = on_shapes(all_to_all_once(800.0, (4.0, 2.0), lambda units: 1.0 + 0.0 * units), (link("switch", 4), link("rails", 2)))
    assert (float(inner.bytes), float(outer.bytes), float(outer.steps)) == (600, 400, 1)


@examples(60)
@given(st.lists(st.integers(1, 8), min_size=1, max_size=3), st.floats(1.0, 1e9))
def test_levels_of_switches_are_priced_to_the_digit_as_before_they_had_shapes(counts: list[int], size: float) -> None:
    """And rails cost gathers nothing."""
    members: Members = tuple(map(float, counts))
    plain = tuple(Link(100.0 / (level + 1), 2.0, 5.0, shares=(0.5,), ring_latency=7.0) for level in range(len(counts)))
    for shape in ("switch", "rails"):
        named = tuple(Link(one.bandwidth, 2.0, 5.0, shares=(0.5,), ring_latency=7.0, shape=shape, size=8) for one in plain)
        assert replicas_gather_time(size, members, named) == ring_time(ring_gather(size, members), plain)
        assert all_reduce_time(size, members, named) == all_reduce_time(size, members, plain)
        assert broadcasts_time(size, 3.0, members, named) == broadcasts_time(size, 3.0, members, plain)
        if shape == "switch":
            assert exchange_time(send(size, members), named) == exchange_time(send(size, members), plain)
    assert exchange_time(all_to_all(size, members), plain) == sum(
        5.0 * part.starts + 2.0 * part.steps + part.bytes / (one.bandwidth * (0.5 if part.ranks > 1 else 1.0))
        for part, one in zip(all_to_all(size, members), plain, strict=True)
    )


@examples(60)
@given(st.lists(st.tuples(st.sampled_from(SHAPES), st.integers(2, 8), st.integers(1, 8)), min_size=1, max_size=3), st.floats(1.1, 10.0))
def test_more_bandwidth_never_takes_longer(levels: list[tuple[Shape, int, int]], wider: float) -> None:
    members: Members = tuple(float(min(size, count)) for _, size, count in levels)
    exchanges = (all_gather(1e6, members), ring_all_reduce(1e6, members), all_to_all(1e6, members), send(1e6, members))
    links = tuple(link(shape, size) for shape, size, _ in levels)
    for place, one in enumerate(links):
        more = (*links[:place], link(one.shape, one.size, 100.0 * wider), *links[place + 1 :])
        for time in (exchange_time, together_time):
            assert all(time(exchange, more) <= time(exchange, links) for exchange in exchanges)
        assert replicas_gather_time(1e6, members, more) <= replicas_gather_time(1e6, members, links)


def test_groups_that_lie_on_more_units_than_there_are_have_no_more_than_the_ring() -> None:
    """A group may be counted on a slower level than it lies on; that never makes it faster than all of it."""
    for shape in ("ring", "fully_connected"):
        assert exchange_time(all_gather(60.0, (6.0,)), (link(shape, 3),)) >= exchange_time(all_gather(60.0, (6.0,)), (link(shape, 6),))


def test_replicas_gather_in_the_same_form_that_their_energy_is_counted_in() -> None:
    torus = (link("ring", 4), link("ring", 2))
    assert exchange_energy(replicas_gather(400.0, (4.0, 2.0), torus), torus) == 3 * (300 + 50)
    assert np.isfinite(float(broadcasts_time(400.0, 2.0, (1.0, 2.0), torus)))


# Axes of a torus at once, against parts sent stage by stage and against what all links together can carry.


def all_of(sizes: list[int], stride: int = 1) -> Spread:
    """All devices of a torus, or every so many of them."""
    levels = tuple(np.cumprod(sizes).tolist())
    found = members_on_levels(np.array([levels[-1] // stride]), np.array([stride]), levels)
    return each(lambda part: float(part[0]), found)


def axes_link(size: int, shape: Shape = "ring", bandwidth: float = 100.0, wait: float = 0.0) -> Link:
    return Link(bandwidth, wait, 2.0 * wait, shape=shape, size=size)


def test_axes_alike_gather_as_many_times_as_fast() -> None:
    """A cube of four: 63 of 64 parts by three axes at once, 21 each; of which rings alone take 48, 12 and 3."""
    cube = tuple(axes_link(4) for _ in range(3))
    assert exchange_time(all_gather(6400.0, (4.0, 4.0, 4.0)), cube) == pytest.approx(63.0)
    assert exchange_time(all_gather(6400.0, all_of([4, 4, 4])), cube) == pytest.approx(21.0)
    assert exchange_time(ring_all_reduce(6400.0, all_of([4, 4, 4])), cube) == pytest.approx(42.0)


def test_a_switch_outside_takes_what_the_torus_leaves() -> None:
    """4 x 4 and a switch of 2 at a tenth: 15/16 of the bytes by two axes at once, and half of a sixteenth."""
    links = (axes_link(4), axes_link(4), axes_link(1, "switch", 10.0))
    assert exchange_time(all_gather(3200.0, all_of([4, 4, 2])), links) == pytest.approx(3000 / 2 / 100 + 100 / 10)


def test_small_gathers_and_groups_that_do_not_lie_evenly_go_one_axis_after_the_other() -> None:
    """Each of two stages makes all steps of an axis, with half of 16 bytes as 6 and 1.5; six ranks of 4 x 6 are no 2 x 3 of its axes."""
    square = (axes_link(4, wait=1.0), axes_link(4, wait=1.0))
    assert exchange_time(all_gather(16.0, all_of([4, 4])), square) == pytest.approx(2 * (2 + 2) + (6 + 1.5) / 100)
    levels = (4, 24)
    uneven = each(lambda part: float(part[0]), members_on_levels(np.array([6]), np.array([1]), levels))
    assert tuple(uneven) == (2.0, 3.0)
    assert exchange_time(all_gather(6e6, uneven), (axes_link(4), axes_link(6))) == exchange_time(
        all_gather(6e6, Spread(uneven, uneven.reaches, (inf, inf))), (axes_link(4), axes_link(6))
    )


@examples(60)
@given(
    st.lists(st.tuples(st.sampled_from(["ring", "fully_connected"]), st.integers(2, 5), st.integers(1, 9)), min_size=2, max_size=4),
    st.integers(0, 3),
)
def test_no_gather_is_faster_than_its_links_or_slower_than_one_after_the_other(axes: list[tuple[Shape, int, int]], wait: int) -> None:
    """All links together have to carry (N - 1)/N of the bytes; and more bandwidth on any axis never takes longer."""
    sizes = [size for _, size, _ in axes]
    links = tuple(axes_link(size, shape, 10.0 * speed, float(wait)) for shape, size, speed in axes)
    gather = all_gather(1e4, all_of(sizes))
    found, together = float(exchange_time(gather, links)), sum(float(one.bandwidth) for one in links)
    in_turn = float(exchange_time(all_gather(1e4, tuple(map(float, sizes))), links))
    assert (1 - 1 / prod(sizes)) * 1e4 / together <= found * (1 + 1e-12)
    assert found <= in_turn * (1 + 1e-12)
    for place, (shape, size, speed) in enumerate(axes):
        wider = (*links[:place], axes_link(size, shape, 10.0 * speed + 5.0, float(wait)), *links[place + 1 :])
        assert float(exchange_time(gather, wider)) <= found


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 99), st.integers(2, 5)), min_size=2, max_size=3))
def test_stages_are_those_of_parts_followed_one_by_one(levels: list[tuple[int, int, int]]) -> None:
    """All axes in turn, all at once, or two at once before the third."""
    count = len(levels)
    whole = [sends * prod(ranks for _, _, ranks in levels[:place]) for place, (_, sends, _) in enumerate(levels)]
    ways = [float(sum(waits + sends for waits, sends, _ in levels))]
    for first in (chosen for size in range(2, count + 1) for chosen in combinations(range(count), size)):
        parts = [first[start:] + first[:start] for start in range(len(first))]
        left, time = [1 / len(first)] * len(first), 0.0
        for stage in range(len(first)):
            time += max(levels[part[stage]][0] + whole[part[stage]] * share for part, share in zip(parts, left, strict=True))
            left = [share / levels[part[stage]][2] for part, share in zip(parts, left, strict=True)]
        time += sum(levels[place][0] + whole[place] * sum(left) for place in range(count) if place not in first)
        ways.append(time)
    axes = [(float(waits), float(sends), float(ranks)) for waits, sends, ranks in levels]
    assert float(fastest(axes, [True] * count, 1.0)) == pytest.approx(min(ways))
    assert float(fastest(axes, [True] * count, 0.0)) == ways[0]


# Messages between neighbours of a group, against every pair of every group routed link by link.

Place = tuple[int, ...]
Hop = tuple[int, Place, Place]
"""A link: its level and its two ends."""
LATENCY, ENERGY, SIZE = 2.0, 3.0, 60.0


def messages_link(shape: Shape, size: int, bandwidth: float) -> Link:
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
    joined: Ints = np.cumprod(sizes)
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
    links, sizes = tuple(messages_link(*level) for level in levels), [size for _, size, _ in levels]
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
    over_rails, over_switch = ((messages_link("switch", 4, 30.0), messages_link(shape, 2, 10.0)) for shape in ("rails", "switch"))
    group = spread(4, 2, [4, 2])
    assert exchange_time(send(SIZE, group), over_rails) == (LATENCY + SIZE / 10) + (LATENCY + SIZE / 30)
    assert exchange_time(send(SIZE, group), over_switch) == LATENCY + SIZE / 10
    assert exchange_time(send(SIZE, group), (messages_link("switch", 4, 5.0), messages_link("switch", 2, 10.0))) == LATENCY + SIZE / 5


def test_ends_and_both_sides_by_hand() -> None:
    """Four ranks on two nodes: the ends are on different ones, and each rank in the middle has a neighbour inside and one beyond.
    Three ranks on nodes of four do not lie evenly."""
    inside, beyond = messages_link("switch", 2, 5.0), messages_link("switch", 2, 100.0)
    group = send(SIZE, spread(4, 1, [2, 2]))
    assert exchange_time(group, (inside, beyond)) == LATENCY + SIZE / 5
    assert ends_time(group, (inside, beyond)) == LATENCY + SIZE / 100
    assert ends_time(group, (inside, messages_link("rails", 2, 100.0))) == (LATENCY + SIZE / 100) + (LATENCY + SIZE / 5)
    assert (
        both_sides_time(group, (messages_link("switch", 2, 100.0), messages_link("switch", 2, 5.0)))
        == LATENCY + (SIZE / 5 + SIZE / 100) / 2
    )
    assert both_sides_time(group, (inside, beyond)) == LATENCY + SIZE / 5
    uneven = send(SIZE, spread(3, 1, [4, 3]))
    assert both_sides_time(uneven, (messages_link("switch", 4, 100.0), messages_link("switch", 3, 5.0))) == LATENCY + SIZE / 5


# What data-parallel ranks and pipeline stages exchange, by hand on links of round figures.

CLUSTER = Cluster(64, (8, 64))
GPT = Transformer("gpt", 8, 1024, 16, 4096, 32000, 2048, 64, biases=False, learned_positions=False)
LAYER, TABLE, NORM = layer_parameters(GPT), embedding_parameters(GPT), GPT.hidden
EXPERTS = replace(GPT, experts=8)
DATA = Plan(data=4)


def exchanged(plan: Plan, hardware: Hardware, model: Transformer = GPT) -> dict[str, float]:
    columns = table([plan])
    priced = data_exchange(model, sharding(model, columns), lay_out(columns, CLUSTER), hardware)
    return {field.name: float(np.asarray(getattr(priced, field.name)).item()) for field in fields(DataExchange)}


def test_a_switch_that_adds_up_passes_every_byte_once_up_and_once_down() -> None:
    """On the outermost level of a group, which has the part that the ring inside scatters; others may not gain by it."""
    inner, outer = Link(100e9, 2e-6, 5e-6), Link(10e9, 7e-6, 11e-6, trees=False)
    adding = replace(outer, reduces=True)
    sizes, ranks = np.array([1e3, 1e6, 1e9]), (np.float64(8.0), np.float64(16.0))
    inside = 2 * 5e-6 + 14 * 2e-6 + 2 * 7 / 8 * sizes / 100e9 - 5e-6
    found = all_reduce_time(sizes, ranks, (inner, adding))
    assert found == pytest.approx(inside + 11e-6 + 2 * 7e-6 + sizes / 8 / 10e9)
    assert (found < all_reduce_time(sizes, ranks, (inner, outer))).all()
    assert (found < all_reduce_time(sizes, ranks, (inner, replace(outer, trees=True)))).all()
    assert (all_reduce_time(sizes, ranks, (replace(inner, reduces=True), outer)) == all_reduce_time(sizes, ranks, (inner, outer))).all()
    alone = (np.float64(8.0), np.float64(1.0))
    assert all_reduce_time(1e6, alone, (replace(inner, reduces=True), outer)) == pytest.approx(5e-6 + 2 * 2e-6 + 1e6 / 100e9)
    assert exchange_time(all_gather(1e6, ranks), (inner, adding)) == exchange_time(all_gather(1e6, ranks), (inner, outer))


@given(
    st.lists(st.sampled_from((1.0, 2.0, 4.0, 6.0)), min_size=2, max_size=2),
    st.floats(1.0, 1e10),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_adding_up_in_switches_never_makes_a_sum_longer(ranks: list[float], size: float, near: bool, far: bool, trees: bool) -> None:
    members = tuple(map(np.float64, ranks))
    links = (Link(100e9, 2e-6, 5e-6, trees=trees), Link(10e9, 7e-6, 11e-6, trees=trees))
    adding = tuple(replace(link, reduces=adds) for link, adds in zip(links, (near, far), strict=True))
    assert all_reduce_time(size, members, adding) <= all_reduce_time(size, members, links)
    faster = tuple(replace(link, bandwidth=2.0 * link.bandwidth) for link in adding)
    assert all_reduce_time(size, members, faster) <= all_reduce_time(size, members, adding)
    assert all_reduce_time(2.0 * size, members, adding) >= all_reduce_time(size, members, adding)


def test_without_sharing_the_gradients_are_all_reduced(plain: Hardware) -> None:
    """Four bytes a weight, 2 x 3/4 of them at 100 GB/s."""
    found = exchanged(DATA, plain)
    assert found["synchronize"] == pytest.approx(2 * 3 / 4 * 4 * parameters(GPT) / 100e9)
    assert (found["publish"], found["gather_forward"], found["gather_backward"], found["gather_energy"]) == (0, 0, 0, 0)


def test_devices_with_ports_of_their_own_receive_every_layer_over_the_slowest_level(plain: Hardware) -> None:
    """On two nodes of 8: all bytes but a device's own part over its port, where else each of the 8 ports of a node brings an eighth."""
    slow = replace(plain, links=(plain.links[0], replace(plain.links[1], bandwidth=10e9, energy=1e-12)))
    plan, own = Plan(data=16, zero=3), replace(GPT, own_ports=True)
    shared, alone = exchanged(plan, slow), exchanged(plan, slow, own)
    assert alone["gather_forward"] == pytest.approx(15 / 16 * 2 * LAYER / 10e9)
    assert shared["gather_forward"] == pytest.approx(max(15 / 16 * 2 * LAYER / 8 / 10e9, 15 / 16 * 2 * LAYER / plain.links[0].bandwidth))
    thrice = exchanged(plan, slow, replace(own, weight_gathers=3.0))
    assert thrice["gather_backward"] - alone["gather_backward"] == pytest.approx(alone["gather_forward"])
    assert thrice["gather_energy"] > alone["gather_energy"] > shared["gather_energy"]


def test_shared_optimizer_state_means_scattered_gradients_and_gathered_weights(plain: Hardware) -> None:
    """Half the gradient exchange, and two bytes a weight after the update."""
    found = exchanged(replace(DATA, zero=1), plain)
    assert found["synchronize"] == pytest.approx(3 / 4 * 4 * parameters(GPT) / 100e9)
    assert found["publish"] == pytest.approx(3 / 4 * 2 * parameters(GPT) / 100e9)
    assert (found["gather_forward"], found["gather_backward"]) == (0, 0)


def test_shared_gradients_are_scattered_a_layer_at_a_time(plain: Hardware) -> None:
    """No device keeps them whole, so every microbatch scatters four bytes a weight of each layer; weights are gathered once a step."""
    found = exchanged(replace(DATA, zero=2), plain)
    assert (found["gather_forward"], found["gather_backward"]) == (0, pytest.approx(3 / 4 * 4 * LAYER / 100e9))
    assert found["synchronize"] == pytest.approx(3 / 4 * 4 * (TABLE + NORM) / 100e9)
    assert found["publish"] == pytest.approx(3 / 4 * 2 * parameters(GPT) / 100e9)


def test_shared_weights_are_gathered_a_layer_at_a_time(plain: Hardware) -> None:
    """Two bytes a weight forward; again backward, with four bytes of gradients scattered; embedding and norm once a step."""
    found = exchanged(replace(DATA, zero=3), plain)
    assert found["gather_forward"] == pytest.approx(3 / 4 * 2 * LAYER / 100e9)
    assert found["gather_backward"] == pytest.approx(3 / 4 * (2 + 4) * LAYER / 100e9)
    assert found["synchronize"] == pytest.approx(3 / 4 * 4 * (TABLE + NORM) / 100e9)
    assert found["publish"] == pytest.approx(3 / 4 * 2 * (TABLE + NORM) / 100e9)


def test_groups_that_share_add_up_their_parts(plain: Hardware) -> None:
    """Four of eight replicas share, of which each node of four has one group; ring inside at 100 GB/s, two nodes at 10 GB/s."""
    two = Cluster(8, (4, 8))
    for zero, summed, weights in (
        (1, parameters(GPT), parameters(GPT)),
        (2, TABLE + NORM, parameters(GPT)),
        (3, TABLE + NORM, TABLE + NORM),
    ):
        plans = table([Plan(data=8, zero=zero, shard=4)])
        found = data_exchange(GPT, sharding(GPT, plans), lay_out(plans, two), plain)
        inside, across = 3 / 4 / 100e9, 2 * 1 / 2 / 4 / 10e9
        assert float(np.asarray(found.synchronize).item()) == pytest.approx(4 * summed * (inside + across))
        assert float(np.asarray(found.publish).item()) == pytest.approx(2 * weights * inside)
        scattered = 4 * LAYER * (inside + across) if zero > 1 else 0.0
        gathered = 2 * LAYER * inside if zero > 2 else 0.0
        assert float(np.asarray(found.gather_backward).item()) == pytest.approx(scattered + gathered)
        assert float(np.asarray(found.gather_forward).item()) == pytest.approx(gathered)


@pytest.mark.parametrize("pipeline", [2, 3, 5])
def test_under_shared_weights_the_table_is_exchanged_whole_however_uneven_the_stages(plain: Hardware, pipeline: int) -> None:
    """The stage with the most weights need not be the one with the head."""
    untied = replace(GPT, tied=False)
    found = exchanged(Plan(data=4, pipeline=pipeline, zero=3), plain, untied)
    assert found["publish"] == pytest.approx(3 / 4 * 2 * (TABLE + NORM) / 100e9)


def test_the_fullest_stage_sets_the_pace(plain: Hardware) -> None:
    """Eight layers on three stages are 2, 3 and 3 with a table in front and behind it: the last but one has 3 layers alone."""
    untied = replace(GPT, tied=False)
    found = exchanged(Plan(data=4, pipeline=3, zero=1), plain, untied)
    most = max(3 * LAYER + TABLE, 3 * LAYER, 2 * LAYER + TABLE + NORM)
    assert found["publish"] == pytest.approx(3 / 4 * 2 * most / 100e9)


def test_first_and_last_stage_add_up_the_gradients_of_a_tied_table(plain: Hardware) -> None:
    """Four bytes for each of V h / t weights over the slow link, as the stages of this placement are on different nodes."""
    plan = Plan(tensor=2, data=4, pipeline=8)
    tied, untied = (exchanged(plan, plain, model)["synchronize"] for model in (GPT, replace(GPT, tied=False)))
    assert tied - untied == pytest.approx(4 * TABLE / 2 / 10e9)
    assert exchanged(DATA, plain)["synchronize"] == exchanged(DATA, plain, replace(GPT, tied=True))["synchronize"]


def test_a_tied_table_and_messages_of_stages_go_over_their_own_levels(plain: Hardware) -> None:
    """16 stages on two nodes: the ends are on different ones, each stage in the middle has a neighbour on its own."""
    columns, size = table([Plan(pipeline=16), Plan(pipeline=16, interleave=2)]), 2048 * 1024 * 2
    split, laid = sharding(GPT, columns), lay_out(columns, CLUSTER)
    for inside, beyond in ((5e9, 100e9), (100e9, 5e9)):
        wired = replace(plain, links=(Link(inside, 0.0), Link(beyond, 0.0)))
        tied, untied = (data_exchange(one, split, laid, wired).synchronize for one in (GPT, replace(GPT, tied=False)))
        assert np.ravel(tied - untied) == pytest.approx(4 * TABLE / beyond)
        parts = parts_of(GPT, wired, CLUSTER, columns, laid)
        handed = terms(GPT, wired, columns, parts).transfer
        assert np.ravel(handed) == pytest.approx([size / 2 * (1 / inside + 1 / 5e9), size / 5e9])


@pytest.mark.parametrize(("zero", "summed", "handed"), [(0, 2, 0), (1, 1, 1)])
def test_both_copies_of_a_stage_are_added_up_and_shared(plain: Hardware, zero: int, summed: int, handed: int) -> None:
    """Twice the weights over four replicas; the copies then send each other the quarter that each rank has, or half of it, and where state
    is shared half of the new weights. The optimizer of a rank has an eighth."""
    model = replace(GPT, tied=False)
    found = exchanged(Plan(data=4, pipeline=2, zero=zero, schedule="dualpipe"), plain, model)
    whole, turns = parameters(model), 2 - zero
    assert found["synchronize"] == pytest.approx((turns * 3 / 4 * 4 + summed * 4 / 8) * whole / 100e9)
    assert found["publish"] == pytest.approx(zero * (3 / 4 * 2 + handed * 2 / 8) * whole / 100e9)
    alone = exchanged(Plan(data=8, zero=zero), plain, model)
    assert found["optimizer"] == pytest.approx(alone["optimizer"])


def test_expert_weights_are_exchanged_only_among_those_who_hold_the_same(plain: Hardware) -> None:
    """Eight data ranks, experts over four: pairs of ranks all-reduce two experts a layer, all eight the rest; the pairs are on one node."""
    expert = 2 * 1024 * 4096
    shared = parameters(EXPERTS) - 8 * 8 * expert
    found = exchanged(Plan(data=8, expert=4), plain, EXPERTS)
    assert found["synchronize"] == pytest.approx((2 * 7 / 8 * 4 * shared + 2 * 1 / 2 * 4 * 8 * 2 * expert) / 100e9)


def test_shared_expert_weights_are_gathered_with_their_layer_only(plain: Hardware) -> None:
    """Two experts of a layer between the two ranks that hold them; beside the layers only embedding and norm are left for the end."""
    expert = 2 * 1024 * 4096
    found = exchanged(Plan(data=8, expert=4, zero=3), plain, EXPERTS)
    layer = layer_parameters(EXPERTS) - 8 * expert
    assert found["gather_forward"] == pytest.approx((7 / 8 * 2 * layer + 1 / 2 * 2 * 2 * expert) / 100e9)
    assert found["synchronize"] == pytest.approx(7 / 8 * 4 * (TABLE + NORM) / 100e9)


def test_context_ranks_reduce_gradients_with_the_data_ranks(plain: Hardware) -> None:
    assert exchanged(Plan(context=2, data=4), plain)["synchronize"] == pytest.approx(exchanged(Plan(data=8), plain)["synchronize"])


def test_the_optimizer_streams_its_state_of_the_weights_it_owns(plain: Hardware) -> None:
    """Gradients twice (2 x 4), state read and written (2 x 12), weights written (2): 34 bytes a weight at 1 TB/s."""
    whole = 34 * parameters(GPT) / 1e12
    assert exchanged(DATA, plain)["optimizer"] == pytest.approx(whole)
    assert exchanged(replace(DATA, zero=1), plain)["optimizer"] == pytest.approx(whole / 4)


@pytest.mark.parametrize(("zero", "times"), [(0, 1.0), (1, 2.0), (2, 1.0), (3, 1.0)])
def test_a_shared_optimizer_may_take_gradients_that_were_summed_everywhere(plain: Hardware, zero: int, times: float) -> None:
    """Under ZeRO-1 an all-reduce takes and sends twice what a reduce-scatter does; weights are published as before."""
    wired = replace(plain, links=(Link(100e9, 0.0, energy=2.0), plain.links[1]))
    plan = replace(DATA, zero=zero)
    scattered, whole = (exchanged(plan, wired, replace(GPT, scattered_gradients=flag)) for flag in (True, False))
    assert whole["synchronize"] == pytest.approx(times * scattered["synchronize"])
    assert whole["energy"] - scattered["energy"] == pytest.approx((times - 1.0) * 2 * 3 / 4 * 4 * parameters(GPT))
    assert {name for name in whole if whole[name] != scattered[name]} == ({"synchronize", "energy"} if zero == 1 else set())


@pytest.mark.parametrize(("ranks", "turns"), [(8, 8), (64, 32)])
def test_whole_matrices_are_published_by_one_rank_after_the_other(plain: Hardware, ranks: int, turns: int) -> None:
    """Of four matrices in each of eight layers 32 ranks have one at the most; a turn goes by all ranks, at the slower links' pace."""
    links = (Link(100e9, 1e-6, setup=1e-5), Link(10e9, 2e-6, setup=2e-5, ring_latency=5e-6))
    wired, plan, model = replace(plain, links=links), Plan(data=ranks, zero=1), replace(GPT, broadcasts=True, global_batch=64)
    start, step, pace = (1e-5, 1e-6, 100e9) if ranks == 8 else (2e-5, 5e-6, 8 * 10e9)
    sent = (ranks - 1) / ranks * 2 * parameters(GPT) / pace
    found = exchanged(plan, wired, model)
    assert found["publish"] == pytest.approx(turns * (start + ranks * step) + sent)
    assert {name for name, value in exchanged(plan, wired).items() if value != found[name]} == {"publish"}


def test_energy_of_the_exchanges_counts_what_each_rank_sends(plain: Hardware) -> None:
    wired = replace(plain, links=(Link(100e9, 0.0, energy=2.0), plain.links[1]))
    assert exchanged(DATA, wired)["energy"] == pytest.approx(2 * 2 * 3 / 4 * 4 * parameters(GPT))
    assert exchanged(replace(DATA, zero=1), wired)["energy"] == pytest.approx(2 * 3 / 4 * (4 + 2) * parameters(GPT))
    assert exchanged(replace(DATA, zero=2), wired)["gather_energy"] == pytest.approx(2 * 3 / 4 * 4 * LAYER)
    assert exchanged(replace(DATA, zero=3), wired)["gather_energy"] == pytest.approx(2 * 3 / 4 * (2 + 2 + 4) * LAYER)


def test_gradients_that_are_added_apart_move_bytes_in_every_microbatch(plain: Hardware) -> None:
    """18 bytes a weight of the rank for each of eight microbatches, by the bandwidth of the memory alone."""
    plan, model = Plan(data=2, zero=1), replace(GPT, global_batch=16)
    apart, together = (exchanged(plan, plain, one)["optimizer"] for one in (replace(model, gradient_traffic=18.0), model))
    assert apart - together == pytest.approx(8 * 18.0 * parameters(GPT) / float(plain.dram.bandwidth), rel=0.01)


@pytest.mark.parametrize(
    ("plan", "size"),
    [
        (Plan(pipeline=2, microbatch=3), 3 * 2048 * 1024 * 2),
        (Plan(pipeline=2, context=4), 2048 / 4 * 1024 * 2),
        (Plan(pipeline=2, tensor=4), 2048 * 1024 * 2 / 4 + 2048 * 1024 * 2 * 3 / 4),
        (Plan(pipeline=2, tensor=4, sequence_parallel=True), 2048 * 1024 * 2 / 4),
        (Plan(tensor=2), 0),
    ],
)
def test_stages_hand_on_what_a_rank_holds_of_the_activations(plain: Hardware, plan: Plan, size: float) -> None:
    """Tensor ranks send a part each, and gather it again unless they hold parts of the sequence; nothing in a pipeline of one."""
    wired = replace(plain, links=(Link(100e9, 0.0, energy=2.0), plain.links[1]))
    columns = table([plan])
    split, laid = sharding(GPT, columns), lay_out(columns, CLUSTER)
    assert float(np.asarray(transfer_time(GPT, split, laid, wired.links)).item()) == pytest.approx(size / 100e9)
    assert float(np.asarray(transfer_energy(GPT, split, laid, wired.links)).item()) == pytest.approx(2 * size)


@pytest.mark.parametrize(
    ("plan", "parts"), [(Plan(pipeline=2, tensor=4), 1), (Plan(pipeline=2, tensor=4, sequence_parallel=True), 4), (Plan(tensor=2), 0)]
)
def test_whole_messages_are_sent_by_each_tensor_rank_and_never_gathered(plain: Hardware, plan: Plan, parts: int) -> None:
    """But for ranks that hold parts of the sequence, which have nothing else to send."""
    size, model = (2048 * 1024 * 2 / parts if parts else 0.0), replace(GPT, whole_messages=True)
    wired = replace(plain, links=(Link(100e9, 0.0, energy=2.0), plain.links[1]))
    columns = table([plan])
    split, laid = sharding(model, columns), lay_out(columns, CLUSTER)
    assert float(np.asarray(transfer_time(model, split, laid, wired.links)).item()) == pytest.approx(size / 100e9)
    assert float(np.asarray(transfer_energy(model, split, laid, wired.links)).item()) == pytest.approx(2 * size)


# Links that exchanges share: what is sent over them by hand, and steps that are never shorter, nor longer than where nothing hides.

GPU = build_device(device("a100-80g"), "a100-80g", "bf16", 2)
MODEL = Transformer("plain", layers=8, hidden=1024, heads=16, ffn=4096, vocabulary=32000, sequence=1024, global_batch=64, tied=False)
SHARED_LINKS_SIZE = 1024 * 1024 * 2.0
"""Bytes of the activations of one sample."""
SHARED_LINKS_LAYER, TABLES = (12 * 1024**2 + 13 * 1024) / 4, (2 * 32000 / 4 + 1024) * 1024
"""Parameters of a layer and beside the layers, on one of four tensor ranks; positions are not split."""


def on(levels: list[tuple[Shape, int, float]]) -> tuple[Hardware, Cluster]:
    """The device on dimensions of such shapes, sizes and bandwidths."""
    links = tuple(Link(speed, 2.0e-6, 5.0e-6, shares=(0.8, 0.9), shape=shape, size=size) for shape, size, speed in levels)
    joined = np.cumprod([size for _, size, _ in levels]).tolist()
    return replace(GPU, links=links), Cluster(joined[-1], tuple(joined), are_dimensions=True)


def busy(model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan) -> float:
    """What the model counts for the busiest dimension."""
    one = table([plan])
    return float(np.max(terms(model, hardware, one, parts_of(model, hardware, cluster, one)).busy))


def without(model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan) -> float:
    """Seconds of the step as if exchanges never waited for others."""
    one = table([plan])
    return float(np.max(unheld_time(terms(model, hardware, one, parts_of(model, hardware, cluster, one)))))


SHARED = Plan(tensor=4, data=4, microbatch=1, sequence_parallel=True, recompute="full", zero=3, overlap="data")


@pytest.mark.parametrize(("shape", "line", "groups"), [("switch", 1.0, 1.0), ("ring", 2.0, 4.0)])
def test_gathers_wait_for_the_exchanges_of_the_layers_that_hide_them(shape: Shape, line: float, groups: float) -> None:
    """Twelve gathers and scatters a layer of 3/4 of the activations, on a line of four by one link of two, two gathers more for the
    gradients of weights, and four beside the layers. Of weights 2 bytes twice and of gradients 4, around all of a ring that four groups
    share; of those beside the layers 2 and 4 once."""
    hardware, cluster = on([(shape, 16, 1e9)])
    activations, parameters = 3 / 4 * SHARED_LINKS_SIZE * line, 3 / 4 * groups
    wanted = 16 * ((8 * 14 + 4) * activations + 8 * SHARED_LINKS_LAYER * 8 * parameters) + TABLES * 6 * parameters
    found, took = busy(MODEL, hardware, cluster, SHARED), without(MODEL, hardware, cluster, SHARED)
    assert found == pytest.approx(wanted / 1e9, rel=1e-3)
    priced = evaluate(MODEL, Design(hardware, cluster, SHARED))
    assert (priced.step_time, dict(priced.breakdown)["shared links"]) == (found, found - took)
    assert sum(seconds for _, seconds in priced.breakdown) == pytest.approx(found, rel=1e-12)
    assert evaluate(MODEL, Design(hardware, replace(cluster, are_dimensions=False), SHARED)).step_time == took < found


def test_messages_hidden_exchanges_and_experts_are_counted() -> None:
    """Of a stage in the middle a device sends v - 1/p messages each way in the mean; exchanges in parts are sent in full."""
    hardware, cluster = on([("switch", 4, 1e9), ("ring", 4, 1e9)])
    plan = Plan(tensor=4, pipeline=4, microbatch=1, interleave=2, sequence_parallel=True, tensor_exchange="hidden", overlap="pipeline")
    one = table([plan])
    inside, ring = parts_of(MODEL, hardware, cluster, one).sent
    assert (inside.layer, inside.messages) == (10 * 3 / 4 * SHARED_LINKS_SIZE / 1e9, 0.0)
    assert (ring.layer, ring.messages) == (0.0, SHARED_LINKS_SIZE / 4 / 0.5e9)
    over_switch = parts_of(
        MODEL, *on([("switch", 16, 1e9)]), table([replace(plan, tensor=1, data=4, placement="pipeline-tensor-context-data")])
    )
    assert over_switch.sent[0].messages == 2 * SHARED_LINKS_SIZE / 1e9


def test_inputs_are_gathered_for_the_gradients_of_weights_where_these_are_trained_and_nobody_kept_them() -> None:
    """Two gathers of ten gathers and scatters; one where only attention is split by columns, before experts that ranks share."""
    hardware, cluster = on([("switch", 4, 1e9)])
    plan = Plan(tensor=4, microbatch=1, sequence_parallel=True)

    def layers(model: Transformer, plan: Plan) -> float:
        [sent] = parts_of(model, hardware, cluster, table([plan])).sent
        return float(np.max(sent.layer)) / (3 / 4 * SHARED_LINKS_SIZE / 1e9)

    assert layers(MODEL, plan) == pytest.approx(10)
    assert layers(MODEL, replace(plan, sequence_parallel=False)) == pytest.approx(8)
    assert layers(replace(MODEL, stops_early=True), plan) == pytest.approx(8)
    assert layers(replace(MODEL, lora_rank=8), plan) == pytest.approx(8)
    assert layers(replace(MODEL, experts=4), plan) == pytest.approx(9)


def test_links_between_all_are_held_to_what_ports_of_as_much_carry_and_nodes_to_nothing() -> None:
    """A ring of context ranks and the gathers behind it, on the same devices; two devices have one link however it is called."""
    plan = Plan(context=4, microbatch=1, zero=3, overlap="data")
    ports, links = (busy(MODEL, *on([(shape, 4, 1e9)]), plan) for shape in ("switch", "fully_connected"))
    assert links == pytest.approx(ports, rel=1e-12)
    hardware, cluster = on([("fully_connected", 4, 1e9)])
    step = evaluate(MODEL, Design(hardware, cluster, plan))
    assert step.step_time == links > without(MODEL, hardware, cluster, plan)
    plain = evaluate(MODEL, Design(hardware, replace(cluster, are_dimensions=False), plan))
    assert "shared links" not in dict(plain.breakdown)
    pair = {
        shape: busy(MODEL, *on([(shape, 2, 1e9)]), replace(plan, context=2)) for shape in ("switch", "rails", "ring", "fully_connected")
    }
    assert len({round(seconds, 9) for seconds in pair.values()}) == 1


@st.composite
def dimensions(draw: st.DrawFn) -> list[tuple[Shape, int, float]]:
    """Sizes that multiply to 48, of any shapes, with slow links and fast ones."""
    sizes = draw(st.sampled_from([(48,), (8, 6), (4, 12), (2, 4, 6), (4, 4, 3)]))
    shapes = st.sampled_from(["switch", "rails", "ring", "fully_connected"])
    return [(draw(shapes), size, draw(st.sampled_from([1e9, 5e9, 40e9, 400e9]))) for size in sizes]


@settings(max_examples=1)
@given(levels=dimensions(), data=st.data())
def test_steps_are_held_by_tables_as_by_formulas(levels: list[tuple[Shape, int, float]], data: st.DataObject) -> None:
    assert_held(levels, data, MODELS[:4])


@pytest.mark.slow
@settings(max_examples=30)
@given(levels=dimensions(), data=st.data())
def test_steps_of_every_network_are_held(levels: list[tuple[Shape, int, float]], data: st.DataObject) -> None:
    assert_held(levels, data, MODELS)


def assert_held(levels: list[tuple[Shape, int, float]], data: st.DataObject, models: tuple[Transformer, ...]) -> None:
    """To the last bit, and by slower links no less. What is counted is no more than a step takes in which nothing hides; of
    gathers and scatters a quarter more, as inputs are gathered once more behind products whatever the plan says."""
    hardware, cluster = on(levels)
    both = scaled(hardware, "links.bandwidth", np.array([1.0, 0.7]))
    model = data.draw(st.sampled_from(models))
    drawn = data.draw(st.lists(plans(model, 48), min_size=3, max_size=5))
    times = price(model, both, cluster, table(drawn)).step_time
    assert np.array_equal(times, price_directly(model, both, cluster, table(drawn)).step_time)
    assert (times[:, 0] <= times[:, 1]).all()
    for plan, time in zip(drawn, times[:, 0], strict=True):
        held = busy(model, hardware, cluster, plan)
        assert time >= max(held, without(model, hardware, cluster, plan))
        open_ = replace(plan, overlap="none", tensor_exchange="exposed", expert_exchange="exposed")
        assert held <= without(model, hardware, cluster, open_) * (1.25 if plan.sequence_parallel else 1.0) * (1.0 + 1e-12)
