"""Collectives by hand on small groups, and how groups spread over network levels, against the devices themselves."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.collectives import (
    Exchange,
    Members,
    all_gather,
    all_reduce_time,
    all_to_all,
    exchange_energy,
    exchange_time,
    members_on_levels,
    ring_all_reduce,
    ring_gather,
    ring_time,
    send,
    tree_all_reduce,
)
from crossopt.crossflow.hardware import Link
from tests.extent import examples

LINKS = (Link(100.0, 2.0, 5.0, 3.0), Link(10.0, 7.0, 11.0, 30.0))
"""Bytes per second, seconds a step, seconds a start, joules a byte."""

EVERY: tuple[Callable[[float, Members], Exchange], ...] = (all_gather, ring_gather, ring_all_reduce, tree_all_reduce, all_to_all, send)


def figures(exchange: Exchange) -> list[tuple[float, float, float]]:
    """Starts, steps and bytes on each level."""
    return [(float(part.starts), float(part.steps), float(part.bytes)) for part in exchange]


def test_a_gather_passes_all_but_its_own_share_around_the_ring() -> None:
    assert figures(all_gather(800.0, (4.0,))) == [(1, 3, 600)]


def test_a_gather_over_nodes_first_shares_the_shards_between_them() -> None:
    """Four ranks a node, two nodes: 400 of 800 bytes are a node's; half of a rank's 200 comes from the other node."""
    assert figures(all_gather(800.0, (4.0, 2.0))) == [(1, 3, 600), (1, 1, 100)]


def test_one_ring_passes_all_ranks_and_enters_each_node_once() -> None:
    """Of seven steps one goes between the nodes; a rank hands on 7/8 of 800 bytes, a node as many by the links of its four ranks."""
    assert figures(ring_gather(800.0, (4.0, 2.0))) == [(1, 6, 700), (1, 1, 175)]
    assert figures(ring_gather(800.0, (2.0, 3.0, 4.0))) == [
        (1, 12, pytest.approx(800 * 23 / 24)),
        (1, 8, pytest.approx(400 * 23 / 24)),
        (1, 3, pytest.approx(800 / 6 * 23 / 24)),
    ]
    assert ring_time(ring_gather(800.0, (4.0, 2.0)), LINKS) == 11 + (6 * 2 + 7) + 175 / 10
    slow = (LINKS[0], replace(LINKS[1], ring_latency=9.0))
    assert ring_time(ring_gather(800.0, (4.0, 2.0)), slow) == 11 + (6 * 2 + 9) + 175 / 10


@examples(50)
@given(st.integers(1, 64), st.floats(1.0, 1e12))
def test_one_ring_on_one_level_is_the_usual_gather(ranks: int, size: float) -> None:
    members: Members = (float(ranks), 1.0)
    assert ring_time(ring_gather(size, members), LINKS) == exchange_time(all_gather(size, members), LINKS)


def test_a_hierarchical_all_reduce_is_scatter_all_reduce_of_the_shard_and_gather() -> None:
    inside, outside = figures(ring_all_reduce(800.0, (4.0, 2.0)))
    ((_, gather_steps, gather_bytes),) = figures(all_gather(800.0, (4.0,)))
    ((_, steps, size),) = figures(ring_all_reduce(200.0, (2.0,)))
    assert inside == (1, 2 * gather_steps, 2 * gather_bytes)
    assert outside == (1, steps, size)


def test_a_tree_takes_two_steps_a_doubling_on_the_outermost_level() -> None:
    """Inside the node rings; between six nodes 2 ceil(log2 6) steps and twice the shard of 200 bytes."""
    assert figures(tree_all_reduce(800.0, (4.0, 6.0))) == [(1, 6, 1200), (1, 6, 400)]
    assert figures(tree_all_reduce(800.0, (6.0, 1.0))) == [(1, 6, 1600), (0, 0, 0)]


@pytest.mark.parametrize(("ranks", "doublings"), [(2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (1024, 10), (1025, 11)])
def test_doublings_are_exact_at_powers_of_two(ranks: int, doublings: int) -> None:
    assert figures(tree_all_reduce(1.0, (float(ranks),)))[0][1] == 2 * doublings


def test_in_an_all_to_all_each_pair_uses_the_level_that_joins_it() -> None:
    """Of eight ranks, three share the sender's node and four are beyond."""
    assert figures(all_to_all(800.0, (4.0, 2.0))) == [(1, 3, 300), (1, 4, 400)]


def test_a_message_may_take_every_level_that_the_group_spans() -> None:
    assert figures(send(800.0, (4.0, 1.0))) == [(0, 1, 800), (0, 0, 0)]
    assert figures(send(800.0, (4.0, 2.0))) == [(0, 1, 800), (0, 1, 800)]


@pytest.mark.parametrize("exchange", EVERY, ids=lambda exchange: exchange.__name__)
def test_a_group_of_one_exchanges_nothing(exchange: Callable[[float, Members], Exchange]) -> None:
    assert figures(exchange(800.0, (1.0, 1.0))) == [(0, 0, 0), (0, 0, 0)]


def test_time_and_energy_are_linear_in_starts_steps_and_bytes() -> None:
    exchange = all_gather(800.0, (4.0, 2.0))
    assert exchange_time(exchange, LINKS) == (5 + 3 * 2 + 600 / 100) + (11 + 7 + 100 / 10)
    assert exchange_energy(exchange, LINKS) == 600 * 3 + 100 * 30


def test_large_groups_reduce_small_messages_by_tree_and_large_ones_by_ring() -> None:
    """With 64 ranks the ring costs 126 steps and 126/64 of the bytes, the tree 12 steps and all bytes twice."""
    link = (Link(100.0, 2.0, 5.0),)
    crossover = (126 - 12) * 2.0 * 100.0 / (2 - 126 / 64)
    for size, expected in ((crossover / 2, 5 + 12 * 2 + crossover / 100), (2 * crossover, 5 + 126 * 2 + 2 * crossover * 126 / 64 / 100)):
        assert all_reduce_time(size, (64.0,), link) == pytest.approx(expected)
    ring, tree = (exchange_time(form(crossover, (64.0,)), link) for form in (ring_all_reduce, tree_all_reduce))
    assert ring == pytest.approx(tree)


@pytest.mark.parametrize("exchange", EVERY, ids=lambda exchange: exchange.__name__)
def test_many_groups_at_once_give_the_digits_of_each_alone(exchange: Callable[[float, Members], Exchange]) -> None:
    counts = [(1.0, 1.0), (3.0, 1.0), (1.0, 5.0), (8.0, 7.0)]
    members: Members = tuple(np.array(counts).T)
    together = np.broadcast_to(exchange_time(exchange(1e9 / 3, members), LINKS), (4,))
    assert together.tolist() == [float(exchange_time(exchange(1e9 / 3, alone), LINKS)) for alone in counts]


@st.composite
def groups(draw: st.DrawFn) -> tuple[int, int, tuple[int, ...]]:
    """A group's size and stride, and levels each of which holds whole ones of the level inside it; together they fill the devices."""
    sizes = np.cumprod([draw(st.integers(1, 8)) for _ in range(draw(st.integers(1, 4)))])
    devices = int(sizes[-1])
    stride = draw(st.sampled_from([part for part in range(1, devices + 1) if devices % part == 0]))
    size = draw(st.sampled_from([part for part in range(1, devices // stride + 1) if devices // stride % part == 0]))
    return size, stride, tuple(int(level) for level in sizes)


def spread(size: int, stride: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(np.ravel(part)[0]) for part in members_on_levels(np.array([size]), np.array([stride]), sizes))


@examples(200)
@given(groups())
def test_the_spread_multiplies_to_the_group_and_never_understates_the_outer_levels(group: tuple[int, int, tuple[int, ...]]) -> None:
    """Beyond each level a group has as many members as units that its devices lie in, if all are filled alike; else not fewer."""
    size, stride, sizes = group
    members = spread(size, stride, sizes)
    assert prod(members) == size
    for level, unit in enumerate(sizes):
        beyond, found = prod(members[level + 1 :]), ranks_by_unit(size, stride, unit, sizes[-1])
        assert beyond >= max(len(units) for units in found)
        if len({ranks for units in found for ranks in units.values()}) == 1:
            assert beyond == len(found[0])


@examples(200)
@given(groups())
def test_ranks_stay_on_the_part_of_a_level_that_they_are_said_to_reach_over(group: tuple[int, int, tuple[int, ...]]) -> None:
    """Parts of so many units follow each other from the first unit on: no ranks that are one group up to a level lie on two of them."""
    size, stride, sizes = group
    laid, inside = members_on_levels(np.array([size]), np.array([stride]), sizes), 1
    starts = [block + place for block in range(0, sizes[-1], size * stride) for place in range(stride)]
    for count, reach, unit, level in zip(spread(*group), laid.reaches, (1, *sizes), sizes, strict=False):
        inside *= count
        for first in range(0, size if count > 1 else 0, inside):
            for start in starts:
                places = (start + stride * rank for rank in range(first, first + inside))
                assert len({(at // level, at % level // unit // int(np.ravel(reach)[0])) for at in places}) == 1


def ranks_by_unit(size: int, stride: int, unit: int, devices: int) -> list[Counter[int]]:
    """For every group of this size and stride how many of its ranks lie in each unit of a level."""
    starts = (block + place for block in range(0, devices, size * stride) for place in range(stride))
    return [Counter((start + rank * stride) // unit for rank in range(size)) for start in starts]


@pytest.mark.parametrize(
    ("size", "stride", "members"),
    [
        (8, 1, (4, 1, 2)),
        (16, 1, (4, 1, 4)),
        (12, 1, (4, 3, 1)),
        (2, 2, (2, 1, 1)),
        (6, 2, (2, 3, 1)),
        (4, 12, (1, 1, 4)),
        (6, 8, (1, 1, 6)),
    ],
)
def test_spreads_over_nodes_of_four_in_pods_of_twelve(size: int, stride: int, members: tuple[int, ...]) -> None:
    """Groups of 8 and 16 do not divide pods of 12 evenly; of strides that do not divide a pod each rank is taken to be in its own."""
    assert spread(size, stride, (4, 12, 48)) == members
