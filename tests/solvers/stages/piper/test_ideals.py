"""Cuts of networks: all of them where they are few, and ideals always."""

from itertools import pairwise

import numpy as np
import pytest

from crossopt.solvers.stages.piper import cuts
from crossopt.solvers.stages.piper.cuts import cuts_near, ideals_of


def arcs_of(seed: int, count: int) -> list[tuple[int, int]]:
    random = np.random.default_rng(seed)
    return [(one, other) for one in range(count) for other in range(one + 1, count) if random.random() < 0.3]


def is_ideal(mask: int, arcs: list[tuple[int, int]]) -> bool:
    return all(mask >> start & 1 for start, end in arcs if mask >> end & 1)


@pytest.mark.parametrize("seed", range(8))
def test_all_cuts_are_found(seed: int) -> None:
    arcs = arcs_of(seed, 7)
    found, every = ideals_of(7, arcs)
    assert every
    assert sorted(found) == [mask for mask in range(1 << 7) if is_ideal(mask, arcs)]
    assert all(one.bit_count() <= other.bit_count() for one, other in pairwise(found))


@pytest.mark.parametrize("seed", range(8))
def test_some_of_many_cuts_are_cuts_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    arcs = arcs_of(seed, 9)
    monkeypatch.setattr(cuts, "MOST_IDEALS", 8)
    found, every = ideals_of(9, arcs)
    assert not every
    assert (found[0], found[-1]) == (0, (1 << 9) - 1)
    assert all(is_ideal(mask, arcs) for mask in found)
    stage_of = [0, 0, 0, 1, 1, 1, 2, 2, 2]
    near = cuts_near(arcs, stage_of, seed)
    assert all(is_ideal(mask, arcs) for mask in near)
    assert {0, 0b111, 0b111111, (1 << 9) - 1} <= set(near)


def test_a_chain_too_long_for_all_cuts_keeps_some() -> None:
    count = 2000
    found, every = ideals_of(count, [(place, place + 1) for place in range(count - 1)])
    assert not every
    assert len(found) <= 600
    assert found[-1].bit_count() == count
