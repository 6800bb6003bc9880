"""Axes of a torus at once, against parts sent stage by stage and against what all links together can carry."""

from itertools import combinations
from math import inf, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.collectives import all_gather, exchange_time, members_on_levels, ring_all_reduce
from crossopt.crossflow.exchanges.axes import fastest
from crossopt.crossflow.exchanges.spread import Spread, each
from crossopt.crossflow.hardware import Link, Shape
from tests.extent import examples


def all_of(sizes: list[int], stride: int = 1) -> Spread:
    """All devices of a torus, or every so many of them."""
    levels = tuple(np.cumprod(sizes).tolist())
    found = members_on_levels(np.array([levels[-1] // stride]), np.array([stride]), levels)
    return each(lambda part: float(part[0]), found)


def link(size: int, shape: Shape = "ring", bandwidth: float = 100.0, wait: float = 0.0) -> Link:
    return Link(bandwidth, wait, 2.0 * wait, shape=shape, size=size)


def test_axes_alike_gather_as_many_times_as_fast() -> None:
    """A cube of four: 63 of 64 parts by three axes at once, 21 each; of which rings alone take 48, 12 and 3."""
    cube = tuple(link(4) for _ in range(3))
    assert exchange_time(all_gather(6400.0, (4.0, 4.0, 4.0)), cube) == pytest.approx(63.0)
    assert exchange_time(all_gather(6400.0, all_of([4, 4, 4])), cube) == pytest.approx(21.0)
    assert exchange_time(ring_all_reduce(6400.0, all_of([4, 4, 4])), cube) == pytest.approx(42.0)


def test_a_switch_outside_takes_what_the_torus_leaves() -> None:
    """4 x 4 and a switch of 2 at a tenth: 15/16 of the bytes by two axes at once, and half of a sixteenth."""
    links = (link(4), link(4), link(1, "switch", 10.0))
    assert exchange_time(all_gather(3200.0, all_of([4, 4, 2])), links) == pytest.approx(3000 / 2 / 100 + 100 / 10)


def test_small_gathers_and_groups_that_do_not_lie_evenly_go_one_axis_after_the_other() -> None:
    """Each of two stages makes all steps of an axis, with half of 16 bytes as 6 and 1.5; six ranks of 4 x 6 are no 2 x 3 of its axes."""
    square = (link(4, wait=1.0), link(4, wait=1.0))
    assert exchange_time(all_gather(16.0, all_of([4, 4])), square) == pytest.approx(2 * (2 + 2) + (6 + 1.5) / 100)
    levels = (4, 24)
    uneven = each(lambda part: float(part[0]), members_on_levels(np.array([6]), np.array([1]), levels))
    assert tuple(uneven) == (2.0, 3.0)
    assert exchange_time(all_gather(6e6, uneven), (link(4), link(6))) == exchange_time(
        all_gather(6e6, Spread(uneven, uneven.reaches, (inf, inf))), (link(4), link(6))
    )


@examples(60)
@given(
    st.lists(st.tuples(st.sampled_from(["ring", "fully_connected"]), st.integers(2, 5), st.integers(1, 9)), min_size=2, max_size=4),
    st.integers(0, 3),
)
def test_no_gather_is_faster_than_its_links_or_slower_than_one_after_the_other(axes: list[tuple[Shape, int, int]], wait: int) -> None:
    """All links together have to carry (N - 1)/N of the bytes; and more bandwidth on any axis never takes longer."""
    sizes = [size for _, size, _ in axes]
    links = tuple(link(size, shape, 10.0 * speed, float(wait)) for shape, size, speed in axes)
    gather = all_gather(1e4, all_of(sizes))
    found, together = float(exchange_time(gather, links)), sum(float(one.bandwidth) for one in links)
    in_turn = float(exchange_time(all_gather(1e4, tuple(map(float, sizes))), links))
    assert (1 - 1 / prod(sizes)) * 1e4 / together <= found * (1 + 1e-12)
    assert found <= in_turn * (1 + 1e-12)
    for place, (shape, size, speed) in enumerate(axes):
        wider = (*links[:place], link(size, shape, 10.0 * speed + 5.0, float(wait)), *links[place + 1 :])
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
