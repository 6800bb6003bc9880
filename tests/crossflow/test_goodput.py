"""Checkpoints of a run that fails now and then: the best interval, held against all others and against runs that are drawn."""

from math import sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.goodput import Failures, best_interval, goodput, lasting_share, young_interval

HOUR = 3600.0
LLAMA = Failures(mean_time=50_677 * HOUR, checkpoint=60.0, restart=600.0)
"""419 unexpected interruptions of 16,384 devices in 54 days (Llama team 2024, section 3.3.4)."""


def test_sixteen_thousand_devices_fail_every_three_hours() -> None:
    """sqrt(2 x 60 s x 11,135 s) = 1,156 s; the best is a little less. Of the time 0.85 are left."""
    found = goodput(LLAMA, 16_384)
    assert found.between == pytest.approx(3.093 * HOUR, rel=1e-3)
    assert found.interval == pytest.approx(young_interval(60.0, found.between), rel=0.05)
    assert found.interval < young_interval(60.0, found.between)
    assert 0.84 < found.share < 0.86


@given(st.floats(1.0, 1e4), st.floats(10.0, 1e7), st.floats(0.0, 1e4), st.floats(1e-3, 1e3))
def test_no_other_interval_is_better(checkpoint: float, between: float, restart: float, factor: float) -> None:
    failures = Failures(between, checkpoint, restart)
    best = best_interval(checkpoint, between)
    assert lasting_share(failures, between, best * factor) <= lasting_share(failures, between, best) * (1 + 1e-12)


def test_a_drawn_run_gets_on_as_the_formula_says() -> None:
    """Stretch after stretch, with failures by chance; 20,000 stretches settle the mean to about one in a hundred."""
    random, failures, between, work = Random(7), Failures(1000.0, 50.0, 30.0), 1000.0, 300.0
    clock = 0.0
    for _ in range(20_000):
        left = work + failures.checkpoint
        while (until := random.expovariate(1.0 / between)) < left:
            clock += until + repaired(random, between, failures.restart)
        clock += left
    assert 20_000 * work / clock == pytest.approx(lasting_share(failures, between, work), rel=0.02)


def repaired(random: Random, between: float, restart: float) -> float:
    """Seconds of a restart, which begins anew where it fails too."""
    clock = 0.0
    while (until := random.expovariate(1.0 / between)) < restart:
        clock += until
    return clock + restart


def test_young_is_near_where_checkpoints_are_short() -> None:
    assert best_interval(1.0, 1e6) == pytest.approx(sqrt(2e6), rel=1e-3)


def test_a_checkpoint_that_no_run_survives_leaves_nothing() -> None:
    """A thousand failures in one checkpoint: whatever is tried, nothing lasts."""
    assert goodput(Failures(3600.0, 3600.0, 60.0), 1000).share == 0.0


def test_figures_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        Failures(0.0, 1.0, 1.0)
