"""Exchanges on rings, rails and links between all, against bytes counted link by link."""

from collections import Counter
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.collectives import (
    Members,
    all_gather,
    all_reduce_time,
    all_to_all,
    all_to_all_once,
    broadcasts_time,
    exchange_energy,
    exchange_time,
    on_shapes,
    replicas_gather,
    replicas_gather_time,
    ring_all_reduce,
    ring_gather,
    ring_time,
    send,
    together_time,
)
from crossopt.crossflow.exchanges.spread import Spread
from crossopt.crossflow.hardware import Link, Shape
from tests.extent import examples


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
