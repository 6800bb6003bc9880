"""Money: dies, yield, devices and steps by hand."""

from math import pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.cost import Prices, device_price, die_yield, dies_per_wafer, step_cost

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
    assert device_price(WAFER, 800 * MM2, 6.0) == pytest.approx(10_000 / good + 6 * 100 + 500, rel=1e-3)


def test_a_price_of_the_whole_device_needs_no_wafer() -> None:
    assert device_price(Prices(electricity=0.0, lifetime=1.0, device=30_000.0), 800 * MM2, 6.0) == 30_000.0


def test_without_any_price_there_is_no_cost() -> None:
    with pytest.raises(ValueError, match="price of the device or of the wafer"):
        device_price(Prices(electricity=0.0, lifetime=1.0), 800 * MM2, 6.0)


@given(st.floats(1.0, 70_000.0), st.floats(1.0, 2.0))
def test_a_larger_die_is_never_cheaper(area: float, factor: float) -> None:
    small, large = (device_price(WAFER, side * MM2, 6.0) for side in (area, area * factor))
    assert large >= small * (1.0 - 1e-12)


def test_a_step_costs_its_share_of_the_lifetime_and_its_electricity() -> None:
    """1,000 devices of 30,000 dollars over 4 years, a step of 10 s and 5 MJ at 10 cents a kWh."""
    prices = Prices(electricity=0.1 / 3.6e6, lifetime=4 * 365.25 * 86400, device=30_000.0)
    assert step_cost(prices, 30_000.0, 1000, 10.0, 5e6) == pytest.approx(30e6 * 10 / 126_230_400 + 5 / 3.6 * 0.1)


def test_many_devices_at_once_give_the_digits_of_each_alone() -> None:
    areas = np.array([100.0, 450.0, 815.0]) * MM2
    together = np.asarray(dies_per_wafer(areas, 0.3))
    assert together.tolist() == [dies_per_wafer(float(area), 0.3) for area in areas]
