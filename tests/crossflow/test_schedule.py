"""The passes of a pipeline: each once, after what it waits for, one at a time on a stage, and together as long as the closed form says."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from crossopt.crossflow.schedule import Run, passes_of, schedule
from crossopt.crossflow.stages import microbatches_in_flight

SECONDS = some.floats(0.1, 10.0)


def end(runs: list[Run]) -> float:
    return max(run.end for run in runs)


@given(some.lists(some.tuples(SECONDS, SECONDS), min_size=1, max_size=6), some.integers(1, 4), some.integers(1, 4))
def test_every_pass_runs_once_after_what_it_waits_for(stages: list[tuple[float, float]], groups: int, chunks: int) -> None:
    count, turns = len(stages) * groups, chunks if len(stages) > 1 else 1
    runs = schedule([one for one, _ in stages], [two for _, two in stages], count, turns)
    places = {(run.microbatch, run.chunk * len(stages) + run.stage, run.backward): run for run in runs}
    assert len(runs) == len(places) == 2 * count * turns * len(stages)
    for (microbatch, place, backward), run in places.items():
        before = (microbatch, place + 1, True) if backward else (microbatch, place - 1, False)
        assert before not in places or places[before].end <= run.start
        assert not backward or places[microbatch, place, False].end <= run.start
        assert run.end - run.start == pytest.approx(stages[run.stage][backward] / turns)
    for stage in range(len(stages)):
        own = [run for run in runs if run.stage == stage]
        assert all(one.end <= other.start for one, other in pairwise(own))


@given(SECONDS, SECONDS, some.integers(1, 7), some.integers(1, 5), some.integers(1, 4))
def test_equal_stages_end_as_the_closed_form_says(forward: float, backward: float, stages: int, groups: int, chunks: int) -> None:
    """m s + (p - 1) s / v."""
    turns, count = chunks if stages > 1 else 1, stages * groups
    runs = schedule([forward] * stages, [backward] * stages, count, turns)
    slot = forward + backward
    assert end(runs) == pytest.approx(count * slot + (stages - 1) * slot / turns)


@given(some.lists(SECONDS, min_size=2, max_size=6), SECONDS, some.integers(1, 20))
def test_uneven_stages_whose_last_is_the_fullest_end_as_the_closed_form_says(slots: list[float], ratio: float, count: int) -> None:
    """(m - 1) max s + sum s, where backward takes the same multiple of forward on every stage."""
    slots = sorted(slots)
    ahead = [slot / (1.0 + ratio) for slot in slots]
    runs = schedule(ahead, [slot - one for slot, one in zip(slots, ahead, strict=True)], count, 1)
    assert end(runs) == pytest.approx((count - 1) * slots[-1] + sum(slots))


@given(some.lists(SECONDS, min_size=2, max_size=6), SECONDS, some.integers(1, 20))
def test_uneven_stages_never_take_longer_than_the_closed_form(slots: list[float], ratio: float, count: int) -> None:
    ahead = [slot / (1.0 + ratio) for slot in slots]
    runs = schedule(ahead, [slot - one for slot, one in zip(slots, ahead, strict=True)], count, 1)
    assert end(runs) <= ((count - 1) * max(slots) + sum(slots)) * (1.0 + 1e-12)


@given(some.integers(1, 8), some.integers(1, 5), some.integers(1, 4))
def test_as_many_microbatches_are_under_way_as_memory_is_kept_for(stages: int, groups: int, chunks: int) -> None:
    turns, count = chunks if stages > 1 else 1, stages * groups
    for stage in range(stages):
        under_way, most = 0, 0
        for _, _, backward in passes_of(stage, stages, count, turns):
            under_way += -1 if backward else 1
            most = max(most, under_way)
        kept = microbatches_in_flight(float(stage), float(stages), float(turns), float(count))
        assert most / turns == pytest.approx(float(kept))
