"""What stands and moves, and the search, against every choice of tiny problems."""

from functools import partial
from itertools import count

import numpy as np
import pytest

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.sharding.core import Core, cost_of, in_use
from crossopt.formulation.sharding.dual import bound_of
from crossopt.solvers.sharding import search
from crossopt.solvers.sharding.messages import ascent_of
from crossopt.solvers.sharding.regions import layout_of, least_slack, moved, standing_of
from crossopt.solvers.sharding.search import Clock, searched
from tests.every import every
from tests.instances.sharding.cores import cores
from tests.instances.sharding.tiny import choices_of, peak


def _turns(most: int) -> Clock:
    """A clock that goes on whenever it is looked at, so that a search is the same each time."""
    looks = count()
    return lambda: next(looks) / most


@every("core", lambda: cores()[:30])
def test_what_stands_stays_right_as_it_moves(core: Core) -> None:
    random = np.random.default_rng(3)
    layout = layout_of(core)
    labels = random.integers(0, core.counts)
    standing = standing_of(core, layout, labels)
    before = in_use(core, layout.timeline, labels)
    for _ in range(6):
        node = int(random.integers(len(core)))
        moved(layout, standing, node, int(random.integers(core.counts[node])))
    fresh = standing_of(core, layout, standing.labels)
    assert np.array_equal(fresh.sums, standing.sums)
    used = in_use(core, layout.timeline, standing.labels)
    first = standing_of(core, layout, labels).slack
    assert np.array_equal(standing.slack, first + before - used)
    if len(used) > 1:
        low, high = sorted(random.integers(0, len(used) + 1, 2).tolist())
        if low < high:
            assert least_slack(standing, low, high) == standing.slack[low:high].min()


@every("core", cores)
def test_the_search_finds_the_optimum_of_tiny_problems(core: Core) -> None:
    choices = choices_of(core)
    told: list[int] = []

    def report(labels: Whole | None, cost: int | None, bound: float) -> None:
        if labels is not None and cost is not None:
            assert cost_of(core, labels) == cost
            told.append(cost)

    found = searched(core, _turns(60), 1, report, lambda dual: bound_of(core, dual), threads=False)
    assert (found.labels is None) == (not choices)
    if found.labels is not None and found.cost is not None:
        best = min(cost for _, cost in choices)
        assert told[-1] == found.cost == best >= found.bound == bound_of(core, found.dual)
        assert core.limit is None or peak(core, found.labels) <= core.limit


def test_the_same_seed_finds_the_same_choice() -> None:
    for core in cores()[:20:2]:
        one, other = (searched(core, _turns(40), 1, lambda *_: None, partial(bound_of, core), threads=False) for _ in range(2))
        assert (one.labels is None) == (other.labels is None)
        assert one.labels is None or np.array_equal(one.labels, other.labels)


def test_a_search_in_two_threads_ends_in_time_and_keeps_what_it_was_given() -> None:
    core = next(core for core in cores() if core.limit is not None and choices_of(core))
    given = min(choices_of(core), key=lambda choice: choice[1])
    found = searched(core, _turns(300), 5, lambda *_: None, lambda dual: bound_of(core, dual), start=given[0])
    assert found.cost == given[1] >= found.bound


def test_what_is_decoded_late_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The climb may find something during the last walk."""
    core = next(core for core in cores() if len({cost for _, cost in choices_of(core)}) > 1)
    worst, best = (by(choices_of(core), key=lambda choice: choice[1]) for by in (max, min))
    ascent, looks = ascent_of(core), count()

    def clock() -> float:
        return next(looks) / 100

    def climbed(*_: object) -> None:
        ascent.rounds += 1

    def walked(*_: object) -> None:
        if clock() > 0.7:
            ascent.feasible = best[0]

    for name, instead in (
        ("ascent_of", lambda _: ascent),
        ("climb", climbed),
        ("cool", climbed),
        ("walked", walked),
        ("fitted", lambda *_: None),
    ):
        monkeypatch.setattr(search, name, instead)
    found = search.searched(core, clock, 1, lambda *_: None, lambda dual: bound_of(core, dual), worst[0], threads=False)
    assert found.cost == best[1]
