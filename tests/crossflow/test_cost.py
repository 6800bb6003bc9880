"""Money by hand, and checkpoints of a run that fails now and then against runs that are drawn."""

from dataclasses import astuple, replace
from math import pi, sqrt
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.cost import Made, Prices, device_price, die_yield, dies_per_wafer, enough_of, good_share, step_cost
from crossopt.crossflow.goodput import Failures, best_interval, goodput, lasting_share, young_interval

# Money: dies, yield, devices and steps by hand.

MM2 = 1e-6
WAFER = Prices(electricity=0.0, lifetime=1.0, wafer=10_000.0, defect_density=1e3, stack=100.0, package=500.0)
"""A thousand defects a square metre: a tenth of one a square centimetre."""


def test_dies_of_a_wafer_are_its_area_less_the_rim() -> None:
    """300 mm and 800 mm^2: 88.4 dies by area, 23.6 lost at the rim."""
    assert dies_per_wafer(800 * MM2, 0.3) == pytest.approx(pi * 300**2 / (4 * 800) - pi * 300 / sqrt(2 * 800))
    assert dies_per_wafer(800 * MM2, 0.3) == pytest.approx(64.8, abs=0.05)


def test_a_wafer_scale_die_is_one_die() -> None:
    assert dies_per_wafer(0.046225, 0.3) == 1.0


def test_yield_falls_with_area_and_is_whole_without_defects() -> None:
    """(1 + 8 cm^2 x 0.1 / 3)^-3 is 49.2 %."""
    assert die_yield(800 * MM2, 1e3, 3.0) == pytest.approx((1 + 0.8 / 3) ** -3)
    assert die_yield(800 * MM2, 1e3, 3.0) == pytest.approx(0.492, abs=5e-4)
    assert die_yield(800 * MM2, 0.0, 3.0) == 1.0


def test_a_device_costs_its_good_die_its_stacks_and_its_package() -> None:
    good = 64.80 * 0.49205
    assert device_price(WAFER, Made(800 * MM2, 6.0)) == pytest.approx(10_000 / good + 6 * 100 + 500, rel=1e-3)


def test_a_price_of_the_whole_device_needs_no_wafer() -> None:
    assert device_price(Prices(electricity=0.0, lifetime=1.0, device=30_000.0), Made(800 * MM2, 6.0)) == 30_000.0


def test_without_any_price_there_is_no_cost() -> None:
    with pytest.raises(ValueError, match="price of the device or of the wafer"):
        device_price(Prices(electricity=0.0, lifetime=1.0), Made(800 * MM2, 6.0))


@given(st.floats(1.0, 70_000.0), st.floats(1.0, 2.0))
def test_a_larger_die_is_never_cheaper(area: float, factor: float) -> None:
    small, large = (device_price(WAFER, Made(side * MM2, 6.0)) for side in (area, area * factor))
    assert large >= small * (1.0 - 1e-12)


def test_a_step_costs_its_share_of_the_lifetime_and_its_electricity() -> None:
    """1,000 devices of 30,000 dollars over 4 years, a step of 10 s and 5 MJ at 10 cents a kWh."""
    prices = Prices(electricity=0.1 / 3.6e6, lifetime=4 * 365.25 * 86400, device=30_000.0)
    assert step_cost(prices, 30_000.0, 1000, 10.0, 5e6) == pytest.approx(30e6 * 10 / 126_230_400 + 5 / 3.6 * 0.1)


def test_many_devices_at_once_give_the_digits_of_each_alone() -> None:
    areas = np.array([100.0, 450.0, 815.0]) * MM2
    together = np.asarray(dies_per_wafer(areas, 0.3))
    assert together.tolist() == [dies_per_wafer(float(area), 0.3) for area in areas]


# --- spare bundles -------------------------------------------------------------------------------------------------------------------

SPARED = Made(die_area=800 * MM2, stacks=5.0, rest=250 * MM2, bundle=1000 * MM2 / 9, needed=2.0, spare=1.0, wires=4.0)
"""With a thousand defects a square metre that do not cluster at all but by one: 1 / (1 + 0.25) beside the bundles, 0.9 of each of three."""
DEARER = ("die_area", "stacks", "rest", "bundle", "needed", "wires", "package_area")


def test_a_die_is_good_if_the_rest_is_and_enough_of_its_bundles_are() -> None:
    """Two of three: 0.9^3 + 3 x 0.9^2 x 0.1 = 0.972, of the 0.8 whose rest is good."""
    prices = replace(WAFER, clustering=1.0, lane=25.0)
    assert enough_of(2.0, 1.0, 0.9) == pytest.approx(0.972)
    assert good_share(prices, SPARED) == pytest.approx(0.8 * 0.972)
    assert device_price(prices, SPARED) == pytest.approx(10_000 / (64.80 * 0.7776) + 5 * 100 + 500 + 4 * 25, rel=1e-4)


def test_dies_and_stacks_are_joined_on_an_interposer_and_all_are_lost_with_one() -> None:
    """1,400 mm^2 at half a dollar, and 0.99 for each of two dies and five stacks."""
    prices, made = replace(WAFER, defect_density=0.0), Made(800 * MM2, 5.0, dies=2.0, package_area=1400 * MM2)
    plain = device_price(prices, made)
    joined = replace(prices, interposer=5e5, bonding_loss=0.01)
    assert device_price(joined, made) == pytest.approx((plain - 500 + 700) / 0.99**7 + 500)


def test_bundles_that_are_told_without_spares_must_all_work_and_untold_ones_are_part_of_the_die() -> None:
    prices = replace(WAFER, clustering=1.0)
    assert good_share(prices, replace(SPARED, spare=0.0)) == pytest.approx(0.8 * 0.81)
    assert good_share(prices, Made(800 * MM2)) == die_yield(800 * MM2, 1e3, 1.0)


@given(
    st.sampled_from(DEARER),
    st.floats(1.0, 2.0),
    st.integers(1, 150),
    st.integers(0, 30),
    st.sampled_from([0.0, 900.0, 20_000.0]),
    st.sampled_from([0.5, 3.0]),
)
def test_more_of_anything_but_spares_is_never_cheaper(
    name: str, factor: float, needed: int, spare: int, density: float, clustering: float
) -> None:
    """Nor are fewer spares."""
    prices = replace(WAFER, defect_density=density, clustering=clustering, lane=10.0, interposer=5e5, bonding_loss=0.02)
    made = Made(800 * MM2, 5.0, 150 * MM2, 5 * MM2, float(needed), float(spare), 4.0, package_area=1400 * MM2)
    value = getattr(made, name) + 1.0 if name == "needed" else getattr(made, name) * factor
    usual, more = (device_price(prices, one) for one in (made, replace(made, **{name: value})))
    assert more >= usual * (1.0 - 1e-12)
    assert device_price(prices, replace(made, spare=spare + 1.0)) <= usual * (1.0 + 1e-12)


def test_one_number_of_bundles_among_many_has_the_digits_that_it_has_alone() -> None:
    """Where others of the block have more spares, which are counted up to the most of all."""
    many = Made(
        *(np.array([value, value]) for value in (800 * MM2, 5.0, 150 * MM2, 5 * MM2)), np.array([60.0, 108.0]), np.array([11.0, 20.0])
    )
    alone = [
        Made(*(np.array([getattr(many, name)[place]]) for name in ("die_area", "stacks", "rest", "bundle", "needed", "spare")))
        for place in (0, 1)
    ]
    assert device_price(WAFER, many).tolist() == [device_price(WAFER, one)[0] for one in alone]  # type: ignore[union-attr,index]


def test_a_yield_does_not_depend_on_the_dies_that_it_is_computed_with() -> None:
    """Nor does that of a die without spares, far too large to have any good ones, beside a die with them."""
    prices = Prices(0.0, 1.0, wafer=1.0, defect_density=1e30, clustering=2.0)
    both = Made(np.full(2, 800 * MM2), rest=np.array([0.0, 1e-40]), bundle=np.full(2, 1e-40), needed=np.array([0.0, 4.0]))
    alone = [good_share(prices, Made(*(part[[row]] if np.ndim(part) else part for part in astuple(both)))) for row in range(2)]
    assert np.array_equal(good_share(prices, both), np.concatenate(alone))
    assert alone[0] == die_yield(800 * MM2, 1e30, 2.0) < 1e-30


# Checkpoints of a run that fails now and then: the best interval, held against all others and against runs that are drawn.

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


@pytest.mark.parametrize("loss", [0.005, 0.01, 0.03])
@pytest.mark.parametrize("defects", [500.0, 900.0, 2000.0])
def test_two_dies_become_cheaper_where_the_closed_form_says(loss: float, defects: float) -> None:
    """On a wafer without a rim: of A square metres ((1 + A D / a) / (1 + A D / 2a))^a is what the second die loses when it is joined."""
    prices = replace(WAFER, package=0.0, defect_density=defects, bonding_loss=loss, wafer=1e22, wafer_diameter=1e9)
    ratio = (1.0 / (1.0 - loss)) ** (1.0 / prices.clustering)
    closed = 2.0 * prices.clustering / defects * (ratio - 1.0) / (2.0 - ratio)
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        one, two = (float(device_price(prices, Made(middle, dies=dies))) for dies in (1.0, 2.0))
        low, high = (middle, high) if one < two else (low, middle)
    assert low == pytest.approx(closed, rel=1e-9)
