"""How tokens go to their experts: by hand, against all choices that a token has, and never more than copy by copy."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as draw

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.collectives import all_to_all, all_to_all_once
from crossopt.crossflow.exchanges.experts import _one_different, to_experts
from crossopt.crossflow.hardware import Cluster, Hardware
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.transformer import ranks
from crossopt.crossflow.workload import Transformer

MODEL = Transformer("m", 4, 1024, 16, 4096, 32000, 2048, 64, experts=16, experts_per_token=2, once_a_node=True)
SIZE = 2048 * 1024 * 2
"""Bytes of the tokens of a microbatch."""


def seconds(model: Transformer, plan: Plan, hardware: Hardware) -> float:
    columns = table([plan])
    return np.asarray(to_experts(model, ranks(columns, lay_out(columns, Cluster(64, (8, 64)))), hardware)[0]).item()


def test_copies_for_a_node_leave_it_as_one(plain: Hardware) -> None:
    """Sixteen experts on two nodes: both of a token are in one node in 56 of 120 cases, so that it goes to 2 - 56/120 nodes, half of them
    the other one; inside, each of its two copies goes to another rank, while others are under way between nodes."""
    once = max(2 * 7 / 8 * SIZE / 100e9, (2 - 56 / 120) / 2 * SIZE / 10e9)
    assert seconds(MODEL, Plan(data=16, expert=16), plain) == pytest.approx(once)
    each = 2 * 7 / 16 * SIZE / 100e9 + 2 / 2 * SIZE / 10e9
    assert seconds(replace(MODEL, once_a_node=False), Plan(data=16, expert=16), plain) == pytest.approx(each)


def test_copies_for_a_rank_are_one_too(plain: Hardware) -> None:
    """Two ranks of a node with eight experts each: the same nodes as ranks."""
    assert seconds(MODEL, Plan(data=2, expert=2), plain) == pytest.approx((2 - 56 / 120) / 2 * SIZE / 100e9)


def choices(model: Transformer) -> Iterator[tuple[int, ...]]:
    """All sets of experts that a token may take, each as often as there are ways to it."""
    size = model.experts // model.expert_groups
    for taken in combinations(range(model.expert_groups), model.groups_per_token):
        yield from combinations(chain.from_iterable(range(group * size, (group + 1) * size) for group in taken), model.experts_per_token)


@pytest.mark.parametrize(
    ("experts", "chosen", "groups", "taken", "units"),
    [(8, 1, 1, 1, 4), (8, 3, 1, 1, 2), (8, 3, 1, 1, 8), (8, 8, 1, 1, 4), (12, 4, 4, 2, 4), (12, 4, 4, 2, 12), (12, 3, 2, 1, 4)],
)
def test_the_mean_number_of_units_is_that_over_all_choices(experts: int, chosen: int, groups: int, taken: int, units: int) -> None:
    model = replace(MODEL, experts=experts, experts_per_token=chosen, expert_groups=groups, groups_per_token=taken)
    found = [len({expert * units // experts for expert in some}) for some in choices(model)]
    assert _one_different(model, float(units)) == pytest.approx(float(Fraction(sum(found), len(found) * chosen)))


def test_units_of_several_groups_are_overstated_if_anything() -> None:
    model = replace(MODEL, experts=12, experts_per_token=4, expert_groups=4, groups_per_token=2)
    found = [len({expert * 2 // 12 for expert in some}) for some in choices(model)]
    assert sum(found) / len(found) < 4 * _one_different(model, 2.0) <= 2


@given(draw.integers(1, 6), draw.lists(draw.sampled_from([1.0, 2.0, 4.0]), min_size=2, max_size=3))
def test_no_outer_level_carries_more_than_copy_by_copy(chosen: int, members: list[float]) -> None:
    model = replace(MODEL, experts=64, experts_per_token=chosen)

    def kept(units: Real) -> Real:
        return _one_different(model, float(units))

    once, each = all_to_all_once(800.0, tuple(members), kept), all_to_all(800.0, tuple(members))
    assert [(part.starts, part.steps) for part in once] == [(part.starts, part.steps) for part in each]
    assert all(one.bytes <= other.bytes for one, other in zip(once[1:], each[1:], strict=True))


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ({"expert_groups": 3}, "expert_groups 3 does not divide experts 16"),
        ({"expert_groups": 4, "groups_per_token": 5}, "groups_per_token 5 exceeds expert_groups 4"),
        ({"expert_groups": 16, "groups_per_token": 1}, "groups_per_token 1 is too few: 1 experts each are fewer than experts_per_token"),
    ],
)
def test_groups_that_hold_no_choice_are_refused(shape: dict[str, int], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        replace(MODEL, **shape)
