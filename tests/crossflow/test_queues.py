"""Waits of random arrivals: beside exact figures of queues, in a request's own time, and monotone in all that makes them."""

from dataclasses import replace
from math import exp, factorial

import numpy as np
import pytest

from crossopt.crossflow.serving.workers import (
    Pool,
    first_token_beyond,
    token_seconds,
    unevenness,
    waiting,
    waiting_share,
)

POOL = Pool(*(np.float64(value) for value in (32.0, 0.2, 0.24, 0.15, 0.14, 499.0, 0.011, 0.15, 0.15, 0.14, 1.0, 0.0, 0.0)))
GROUPS = replace(POOL, single=np.float64(0.06), groups=np.float64(4.0))
"""Four groups that step together; a prompt in one of them takes a step less long than one in each."""


def erlang(servers: int, load: float) -> float:
    """Share of requests that wait where services take exponential times (Erlang C)."""
    work = servers * load
    last = work**servers / factorial(servers) / (1.0 - load)
    return last / (sum(work**k / factorial(k) for k in range(servers)) + last)


@pytest.mark.parametrize("servers", [1, 4, 16, 64])
def test_the_share_that_waits_is_near_that_of_erlang(servers: int) -> None:
    for load in (0.2, 0.5, 0.8, 0.95):
        exact, found = erlang(servers, load), float(waiting_share(np.float64(servers), np.float64(load)))
        assert 0.93 * exact <= found <= 1.25 * exact + 0.06


def test_waits_end_where_few_wait_and_are_endless_without_rest() -> None:
    assert waiting(np.float64(64), np.float64(0.5), np.float64(1.0), 0.05) == 0.0
    assert waiting(np.float64(64), np.float64(1.0), np.float64(1.0), 0.05) == np.inf
    one = waiting(np.float64(1), np.float64(0.8), np.float64(1.0), 0.05)
    assert one == pytest.approx(2.5 * np.log(0.77 / 0.05), rel=0.01)


def test_prompts_of_others_lengthen_the_time_of_a_request() -> None:
    """A fixed point: T = 499 steps of 11 ms, and 0.139 s more for each of the l T prompts that come."""
    for rate in (0.0, 0.5, 2.0):
        time = float(token_seconds(POOL, np.float64(rate)))
        assert time == pytest.approx(499 * 0.011 + rate * time * (0.15 - 0.011))
    many = replace(
        POOL, steps=np.float64(9.0), decode=np.float64(0.1), single=np.float64(0.5), every=np.float64(0.5), piece=np.float64(0.45)
    )
    time = float(token_seconds(many, np.float64(2.1)))
    assert 2.1 * time > 9.0
    assert time == pytest.approx(9 * 0.5 + (2.1 * time - 9) * 0.45)


@pytest.mark.parametrize("pool", [POOL, GROUPS])
def test_latencies_rise_with_the_rate_and_fall_with_copies(pool: Pool) -> None:
    rates = np.linspace(0.0, 8.0, 100)
    first, whole = np.asarray(first_token_beyond(pool, 2.0, rates, 0.05)), np.asarray(token_seconds(pool, rates))
    assert (np.diff(np.nan_to_num(first, posinf=1e9)) >= 0.0).all()
    assert (np.diff(whole) >= 0.0).all()
    assert whole[0] == pool.steps * pool.decode
    assert first[0] == pool.first
    assert (np.asarray(first_token_beyond(pool, 8.0, rates, 0.05)) <= first).all()
    for name in ("decode", "single", "every", "piece", "busy", "prefill", "crowd"):
        longer = replace(pool, **{name: getattr(pool, name) * 1.05})
        assert (np.asarray(first_token_beyond(longer, 2.0, rates, 0.05)) >= first).all()
        assert (np.asarray(token_seconds(longer, rates)) >= whole).all()


def test_prompts_of_other_groups_lengthen_steps_up_to_those_with_one_in_each() -> None:
    """With l prompts a second in each of 4 groups, T = 499 steps of 11 ms and 49 ms more for each of 4 l T, while a step in 4 has one."""
    for rate in (0.5, 2.0):
        time = float(token_seconds(GROUPS, np.float64(rate)))
        assert time == pytest.approx(499 * 0.011 + 4 * rate * time * (0.06 - 0.011))
    assert float(token_seconds(GROUPS, np.float64(5.0))) == pytest.approx(499 * 0.15)


def test_the_share_that_waits_alone_is_the_load() -> None:
    assert waiting_share(np.float64(1), np.float64(1.0)) == 1.0
    assert waiting_share(np.float64(400), np.float64(0.8)) < exp(-8.0)


def test_unequal_requests_wait_longer_by_the_square_of_their_variation() -> None:
    uneven = unevenness([(0.5, np.float64(1.0)), (0.5, np.float64(3.0))])
    assert uneven == pytest.approx(0.25)
    assert unevenness([(1.0, np.float64(3.0))]) == 0.0
    rates = np.linspace(0.5, 2.0, 9)
    crowded = replace(POOL, crowd=np.float64(0.0))
    extra = first_token_beyond(replace(crowded, uneven=uneven, uneven_busy=uneven), 2.0, rates, 0.05) - POOL.first
    assert extra == pytest.approx(1.25 * np.asarray(first_token_beyond(crowded, 2.0, rates, 0.05) - POOL.first))
