"""Bounds that whole numbers prove, against every choice of tiny problems."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.sharding.core import Core, unreduced
from crossopt.formulation.sharding.dual import Dual, bound_of, message_offsets, no_dual
from crossopt.instances.sharding.problem import FORBIDDEN
from tests.every import every
from tests.instances.sharding.tiny import choices_of, least, tiny


def _random_dual(core: Core, seed: int) -> Dual:
    random = np.random.default_rng(seed)
    first, second = (int(offsets[-1]) for offsets in message_offsets(core))
    times = np.unique(random.integers(0, 11, 4))
    prices = random.integers(0, 5, len(times)) * (core.limit is not None)
    return Dual(int(random.integers(1, 9)), times, prices, random.integers(-30, 30, first), random.integers(-30, 30, second))


@every("seed", range(60))
def test_any_prices_and_messages_bound_every_choice(seed: int) -> None:
    problem = tiny(seed)
    core, best = unreduced(problem), least(problem)
    bounds = [bound_of(core, _random_dual(core, 7 * seed + part)) for part in range(5)]
    assert best is None or max(bounds) <= best


def test_the_bound_is_that_of_the_formula_for_some() -> None:
    """Choice by choice the formula's sum, without any minimum, is the cost and what the memory in use leaves of the limit."""
    seen = 0
    for seed in range(80):
        core = unreduced(tiny(seed, nodes=2, most=3))
        dual = _random_dual(core, seed)
        for chosen, cost in choices_of(core):
            alone = _only(core, chosen)
            taken = sum(
                price * sum(use for start, end, use in _lives(core, chosen) if start <= time < end)
                for time, price in zip(dual.times.tolist(), dual.prices.tolist(), strict=True)
            )
            paid = (core.limit or 0) * int(dual.prices.sum())
            assert bound_of(alone, dual) == -((-cost * dual.scale - taken + paid) // dual.scale)
            seen += 1
    assert seen > 100


def _only(core: Core, chosen: Whole) -> Core:
    """The core where everything but one choice is forbidden."""
    costs = np.full_like(core.costs, FORBIDDEN)
    places = core.offsets[:-1] + chosen
    costs[places] = core.costs[places]
    entries = np.full_like(core.entries, FORBIDDEN)
    pairs = core.entry_offsets[:-1] + chosen[core.firsts] * core.counts[core.seconds] + chosen[core.seconds]
    entries[pairs] = core.entries[pairs]
    return replace(core, costs=costs, entries=entries)


def _lives(core: Core, chosen: Whole) -> list[tuple[int, int, int]]:
    taken = core.usages[core.usage_offsets[:-1] + chosen[core.member_nodes]]
    return list(zip(core.member_starts.tolist(), core.member_ends.tolist(), taken.tolist(), strict=True))


def test_a_node_that_allows_nothing_is_told() -> None:
    core = unreduced(tiny(0))
    assert bound_of(replace(core, costs=np.full_like(core.costs, FORBIDDEN)), no_dual(core)) == FORBIDDEN


def test_what_is_no_dual_is_refused() -> None:
    core = unreduced(next(problem for seed in range(40) if len((problem := tiny(seed)).firsts) > 3 and problem.limit is not None))
    none = no_dual(core)
    one = np.ones(1, np.int64)
    broken = [
        (replace(none, scale=0), "a scale of 0"),
        (replace(none, times=one), "each price needs its time"),
        (replace(none, times=one, prices=-one), "below 0"),
        (replace(none, to_firsts=one[:0]), "none of this core"),
        (replace(none, scale=1 << 60), "smaller scale"),
        (replace(none, times=one, prices=one << 62), "smaller scale"),
    ]
    for dual, said in broken:
        with pytest.raises(ValueError, match=said):
            bound_of(core, dual)
    with pytest.raises(ValueError, match="no limit"):
        bound_of(replace(core, limit=None), replace(none, times=one, prices=one))
