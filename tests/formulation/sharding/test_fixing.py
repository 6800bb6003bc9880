"""Reduced costs keep every choice that is better than the value, and bounds prove a value where none is left."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.formulation.sharding.core import NothingAllowedError, cost_of, unreduced
from crossopt.formulation.sharding.dual import Dual, bound_of, fixed, message_offsets
from crossopt.instances.sharding.problem import FORBIDDEN
from tests.instances.sharding.tiny import choices_of, tiny


@pytest.mark.parametrize("below_best", [0, 1, 5])
def test_every_better_choice_stays(below_best: int) -> None:
    """Whatever the dual; its prices and messages are drawn."""
    dropped = kept = 0
    for seed in range(80):
        core, random = unreduced(tiny(seed)), np.random.default_rng(seed)
        choices = choices_of(core)
        if not choices:
            continue
        first, second = (int(offsets[-1]) for offsets in message_offsets(core))
        times = np.arange(0, 10, 3)
        prices = random.integers(0, 2, 4) * (core.limit is not None)
        dual = Dual(int(random.integers(1, 4)), times, prices, random.integers(-3, 3, first), random.integers(-3, 3, second))
        below = sorted(cost for _, cost in choices)[len(choices) // 3] + below_best
        better = sorted(cost for _, cost in choices if cost < below)
        try:
            done = fixed(core, dual, below)
        except NothingAllowedError:
            assert not better
            continue
        left = [(done.back(chosen), cost) for chosen, cost in choices_of(done.core)]
        assert all(cost_of(core, chosen) == cost for chosen, cost in left)
        assert sorted(cost for _, cost in left if cost < below) == better
        dropped += len(core.costs) - len(done.core.costs) + int((done.core.entries >= FORBIDDEN).sum())
        kept += len(better)
    assert dropped > 100
    assert kept > 100


def test_what_is_as_dear_as_the_value_goes() -> None:
    core = next(core for seed in range(40) if choices_of(core := replace(unreduced(tiny(seed)), limit=None)))
    best = min(cost for _, cost in choices_of(core))
    first, second = (int(offsets[-1]) for offsets in message_offsets(core))
    dual = Dual(1, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(first, np.int64), np.zeros(second, np.int64))
    assert bound_of(core, dual) <= best
    with pytest.raises(NothingAllowedError):
        fixed(core, dual, bound_of(core, dual))
