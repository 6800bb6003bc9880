"""The voltage-frequency law: hand-computed points, the clamps, and monotone and reproducible to the last bit."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.voltage import efficient_power, nominal_frequency_power, operating_point


@dataclass(frozen=True)
class Circuit:
    nominal_frequency: float = 1.0e9
    nominal_voltage: float = 1.0
    threshold_voltage: float = 0.25
    margin_voltage: float = 0.25
    maximum_voltage: float = 1000.0


PLAIN = Circuit()
CAPPED = Circuit(maximum_voltage=1.25)
CIRCUITS = [
    PLAIN,
    CAPPED,
    Circuit(1.33e9, 0.8, 0.2, 0.35),
    Circuit(1.33e9, 0.42515280000000016, 0.2, 0.35),
    Circuit(4.0e9, 0.9774, 0.4, 0.6, 1.8),
    Circuit(2.0e10, 1.2, 0.35, 0.5),
    Circuit(1.0e9, 0.9, 0.3, 1e-6, 1.5),
]


def test_nominal_power_gives_the_nominal_point() -> None:
    point = operating_point(PLAIN, 3.0, 3.0)
    assert point.voltage == pytest.approx(1.0, rel=1e-15)
    assert point.frequency == pytest.approx(1.0e9, rel=1e-15)


def test_a_point_above_nominal_by_hand() -> None:
    """At 1.25 V: power 1.25 * 1^2 / (1 * 0.75^2) = 20/9 and frequency (1^2 / 1.25) / (0.75^2 / 1) = 64/45 of nominal."""
    point = operating_point(PLAIN, 20 / 9 * 7.0, 7.0)
    assert point.voltage == pytest.approx(1.25, rel=1e-14)
    assert point.frequency == pytest.approx(64 / 45 * 1.0e9, rel=1e-14)


def test_below_the_lowest_voltage_the_clock_is_throttled_in_proportion_to_power() -> None:
    """At 0.5 V: power 0.5 * 0.25^2 / 0.75^2 = 1/18 and frequency (0.25^2 / 0.5) / 0.75^2 = 2/9 of nominal."""
    for share in (1.0, 0.5, 0.125, 0.0):
        point = operating_point(PLAIN, share / 18, 1.0)
        assert point.voltage == pytest.approx(0.5)
        assert point.frequency == pytest.approx(share * 2 / 9 * 1.0e9, rel=1e-12)


def test_what_leaks_is_drawn_in_proportion_to_the_voltage_and_the_clock_has_what_it_leaves() -> None:
    """At 1.25 V the points above; 0.4 W that leak at 1 V are 0.5 W there, and 0.2 W at the lowest voltage, which leave no clock alone."""
    point = operating_point(PLAIN, 20 / 9 * 7.0 + 0.5, 7.0, 0.4)
    assert (point.voltage, point.frequency) == (pytest.approx(1.25, rel=1e-14), pytest.approx(64 / 45 * 1.0e9, rel=1e-14))
    for share, power in ((1.0, 1 / 18 + 0.2), (0.5, 0.5 / 18 + 0.2), (0.0, 0.2), (0.0, 0.1)):
        point = operating_point(PLAIN, power, 1.0, 0.4)
        assert point.voltage == pytest.approx(0.5)
        assert point.frequency == pytest.approx(share * 2 / 9 * 1.0e9, rel=1e-12, abs=1e-3)


def test_throttling_is_the_rule_that_deepflow_states_for_links() -> None:
    """f(V) (V / lowest V)^2 with the unclamped V: at 0.375 V the power is 0.375 * 0.125^2 / 0.75^2 of nominal."""
    voltage = 0.375
    power = voltage * (voltage - 0.25) ** 2 / 0.75**2
    stated = 1.0e9 * ((voltage - 0.25) ** 2 / voltage) / 0.75**2 * (voltage / 0.5) ** 2
    assert operating_point(PLAIN, power, 1.0).frequency == pytest.approx(stated, rel=1e-12)


def test_power_beyond_the_maximum_voltage_is_left_unused() -> None:
    for power in (20 / 9, 3.0, 1e12, 1e300):
        point = operating_point(CAPPED, power, 1.0)
        assert point.power == pytest.approx(20 / 9)
        assert point.voltage == pytest.approx(1.25)
        assert point.frequency == pytest.approx(64 / 45 * 1.0e9)


def test_power_beyond_the_fastest_clock_is_left_unused() -> None:
    """64/45 of the nominal clock take 1.25 V, as above; where the lowest voltage is too fast already, that is what runs."""
    for power in (20 / 9, 3.0, 1e300):
        point = operating_point(PLAIN, power, 1.0, fastest=64 / 45 * 1.0e9)
        assert (point.voltage, point.power) == (pytest.approx(1.25), pytest.approx(20 / 9))
        assert point.frequency == pytest.approx(64 / 45 * 1.0e9)
    assert operating_point(PLAIN, 3.0, 1.0, fastest=1.0e8).frequency == pytest.approx(2 / 9 * 1.0e9)
    assert efficient_power(PLAIN, 1.0, 10.0, 1.0e9) == pytest.approx(1.0 + 10.0)


@given(st.sampled_from(CIRCUITS), st.floats(0.0, 1e6), st.floats(1e-3, 1e3), st.sampled_from([0.0, 0.2, 2.0]))
def test_the_power_drawn_at_the_point_is_the_power_used(circuit: Circuit, power: float, nominal_power: float, leaks: float) -> None:
    """Power is frequency times voltage squared and leakage times voltage, in every regime but where leakage alone is more."""
    point = operating_point(circuit, power, nominal_power, nominal_power * leaks)
    volts = point.voltage / circuit.nominal_voltage
    drawn = nominal_power * ((point.frequency / circuit.nominal_frequency) * volts**2 + leaks * volts)
    assert drawn == pytest.approx(point.power, rel=1e-11) if point.frequency > 0.0 else drawn >= point.power * (1 - 1e-11)
    assert point.power <= power


@pytest.mark.parametrize("circuit", CIRCUITS)
def test_nominal_frequency_costs_nominal_power_or_more(circuit: Circuit) -> None:
    point = operating_point(circuit, nominal_frequency_power(circuit, 5.0), 5.0)
    assert point.frequency == pytest.approx(circuit.nominal_frequency, rel=1e-12)


def neighbours(random: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Powers over fourteen decades, each with one that is larger by between one unit in the last place and a factor of ten."""
    powers = 10.0 ** random.uniform(-8.0, 6.0, count)
    steps = 10.0 ** random.uniform(-16.0, 0.95, count)
    return powers, np.maximum(np.nextafter(powers, np.inf), powers * (1.0 + steps))


@pytest.mark.parametrize("fastest", [1.1, 1e21])
@pytest.mark.parametrize("leaks", [0.0, 0.3])
@pytest.mark.parametrize("circuit", CIRCUITS)
def test_more_power_never_lowers_voltage_or_frequency_in_the_last_bit(circuit: Circuit, leaks: float, fastest: float) -> None:
    fastest *= circuit.nominal_frequency
    low, high = (operating_point(circuit, powers, 1.0, leaks, fastest) for powers in neighbours(np.random.default_rng(1), 100_000))
    assert np.all(high.frequency >= low.frequency)
    assert np.all(high.voltage >= low.voltage)


@pytest.mark.parametrize("leaks", [0.0, 0.3])
@pytest.mark.parametrize("circuit", CIRCUITS)
def test_frequency_is_monotone_across_the_clamps(circuit: Circuit, leaks: float) -> None:
    """The law changes its form at the lowest and at the highest voltage: walk over each seam float by float."""
    nominal = (circuit.nominal_voltage - circuit.threshold_voltage) ** 2 * circuit.nominal_voltage
    for voltage in (circuit.threshold_voltage + circuit.margin_voltage, circuit.maximum_voltage):
        seam = voltage * (voltage - circuit.threshold_voltage) ** 2 / nominal + leaks * voltage / circuit.nominal_voltage
        powers = seam + np.arange(-5000, 5000) * np.spacing(seam)
        assert np.all(np.diff(operating_point(circuit, powers, 1.0, leaks).frequency) >= 0.0)


@given(st.sampled_from(CIRCUITS), st.lists(st.floats(0.0, 1e9), min_size=1, max_size=9))
def test_floats_and_arrays_give_the_same_bits(circuit: Circuit, powers: list[float]) -> None:
    together = operating_point(circuit, np.array(powers), 2.5, 0.5)
    for index, power in enumerate(powers):
        alone = operating_point(circuit, power, 2.5, 0.5)
        for name in ("voltage", "frequency", "power"):
            assert getattr(alone, name) == getattr(together, name)[index]
