"""The clock that a power budget allows, by the alpha-power law of a transistor with alpha = 2.

    frequency ~ (V - Vt)^2 / V,      power ~ frequency V^2 ~ V (V - Vt)^2

with supply V and threshold Vt (Sakurai and Newton 1990; the form used by DeepFlow, arXiv 2211.03309). The supply is not lowered below
threshold + margin: with less power the clock is throttled at that voltage, where power is linear in frequency. What leaks is drawn beside,
as long as there is a supply, in proportion to it (AccelWattch, Kandiah et al. 2021: a current that does not depend on the clock).
Neither supply nor clock go beyond the highest ones that a circuit is made for: more power is left unused.
"""

from typing import NamedTuple, Protocol

import numpy as np

from crossopt.crossflow.arrays import Array, Real
from crossopt.crossflow.records import dataclass

UNLIMITED_FREQUENCY = 1.0e30
"""Upper limit in hertz: far above any clock, far below overflow of its square."""
_SETTLED = 1.0 - 1e-8
"""Relative size of the last Newton step; smaller steps are rounding."""


class Clocked(Protocol):
    """A circuit whose clock follows its supply voltage."""

    @property
    def nominal_frequency(self) -> float: ...
    @property
    def nominal_voltage(self) -> float: ...
    @property
    def threshold_voltage(self) -> float: ...
    @property
    def margin_voltage(self) -> float: ...
    @property
    def maximum_voltage(self) -> float: ...


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """Operating point of a circuit under a power budget."""

    voltage: Real
    frequency: Real
    power: Real
    """Watts used: the budget, or what the circuit draws at its highest voltage if that is less."""


def operating_point(
    circuit: Clocked, power: Real, nominal_power: Real, leakage: Real = 0.0, fastest: float = UNLIMITED_FREQUENCY
) -> OperatingPoint:
    """Voltage and frequency at which a circuit that draws `nominal_power` (> 0) at nominal voltage and frequency, and leaks `leakage`
    beside that at nominal voltage, draws `power` (>= 0), with no faster a clock than `fastest`.

    V solves V (V - Vt)^2 + k V = power / nominal_power * Vn (Vn - Vt)^2, k = leakage / nominal_power * (Vn - Vt)^2, between threshold +
    margin and the highest voltage; then f = fn [(V - Vt)^2 / V] / [(Vn - Vt)^2 / Vn]. Below, f falls from f(lowest V) in proportion to what
    leakage leaves of the power, to zero where it leaves nothing. (Without leakage that equals f(V) (V / lowest V)^2 with the unclamped
    root V, DeepFlow's rule for links: f(V) V^2 is the power.)

    Non-decreasing in `power` as computed, not only in theory, and the same bits for floats and arrays.
    """
    threshold, nominal_drive = circuit.threshold_voltage, circuit.nominal_voltage - circuit.threshold_voltage
    nominal, leak = (
        _power_factor(nominal_drive, threshold),
        Leak(leakage / nominal_power * (nominal_drive * nominal_drive), circuit.margin_voltage),
    )
    lowest, always = _power_factor(circuit.margin_voltage, threshold), _always(circuit, leakage)
    highest = _power_factor(_highest_drive(circuit, fastest), threshold, leak)
    used = np.minimum(power, always + nominal_power * (highest / nominal))
    dynamic = np.maximum(used - always, 0.0) / nominal_power * nominal
    drive = _drive(np.minimum(np.maximum(dynamic, lowest), highest), threshold, leak)
    throttle = np.minimum(dynamic / lowest, 1.0)
    frequency = circuit.nominal_frequency * (_speed(drive, threshold) / _speed(nominal_drive, threshold)) * throttle
    return OperatingPoint(drive + threshold, frequency, used)


def efficient_power(circuit: Clocked, nominal_power: float, leakage: float, fastest: float = UNLIMITED_FREQUENCY) -> float:
    """Watts at which a circuit runs most cycles per joule; with less or more its frequency over its power f / P only falls.

    Below the lowest voltage f / P rises with P, as leakage weighs less. Above, with V = d + Vt and k as in `operating_point`, the joules
    of a cycle are as V^2 (1 + k / d^2), whose slope has the sign of 1 - k Vt / d^3: they fall until d^3 = k Vt, if above the margin.
    """
    nominal_drive = circuit.nominal_voltage - circuit.threshold_voltage
    leak = leakage / nominal_power * (nominal_drive * nominal_drive)
    drive = max(circuit.margin_voltage, (leak * circuit.threshold_voltage) ** (1.0 / 3.0))
    drive = min(drive, _highest_drive(circuit, fastest))
    dynamic = _power_factor(drive, circuit.threshold_voltage, Leak(leak, circuit.margin_voltage))
    return float(_always(circuit, leakage) + nominal_power * (dynamic / _power_factor(nominal_drive, circuit.threshold_voltage)))


def nominal_frequency_power(circuit: Clocked, nominal_power: Real) -> Real:
    """Power that runs a circuit at its nominal frequency: nominal, times (lowest V / nominal V)^2 if that voltage is out of reach."""
    raised = max(1.0, (circuit.threshold_voltage + circuit.margin_voltage) / circuit.nominal_voltage)
    return nominal_power * (raised * raised)


def highest_frequency(circuit: Clocked, fastest: float = UNLIMITED_FREQUENCY) -> float:
    """Upper limit of a circuit's clock at any power."""
    threshold, nominal_drive = circuit.threshold_voltage, circuit.nominal_voltage - circuit.threshold_voltage
    return float(circuit.nominal_frequency * (_speed(_highest_drive(circuit, fastest), threshold) / _speed(nominal_drive, threshold)))


def _highest_drive(circuit: Clocked, fastest: float) -> float:
    """The overdrive at the maximum voltage, or at the fastest clock, whichever is lower, and at least the margin."""
    drive = max(circuit.margin_voltage, float(_drive_at(circuit, fastest)))
    return min(circuit.maximum_voltage - circuit.threshold_voltage, drive)


def voltage_at(circuit: Clocked, frequency: Real) -> Real:
    """The lowest supply at which a circuit reaches this clock."""
    return circuit.threshold_voltage + np.maximum(circuit.margin_voltage, _drive_at(circuit, frequency))


def _drive_at(circuit: Clocked, frequency: Real) -> Real:
    """With s = frequency / fn (Vn - Vt)^2 / Vn the overdrive d solves d^2 / (d + Vt) = s."""
    threshold = circuit.threshold_voltage
    speed = frequency / circuit.nominal_frequency * _speed(circuit.nominal_voltage - threshold, threshold)
    return (speed + np.sqrt(speed * (speed + 4.0 * threshold))) / 2.0


class Leak(NamedTuple):
    """The constant k of `operating_point`, and the margin. Leakage at the lowest voltage is always drawn and separate."""

    factor: Real
    margin: float


_NONE = Leak(0.0, 0.0)


def _always(circuit: Clocked, leakage: Real) -> Real:
    """Watts of leakage at the lowest voltage."""
    return leakage * ((circuit.threshold_voltage + circuit.margin_voltage) / circuit.nominal_voltage)


def _power_factor(drive: Real, threshold: float, leak: Leak = _NONE) -> Real:
    """V (V - Vt)^2 + k (V - lowest V) of the overdrive V - Vt; monotone as computed.

    With k V in place of the difference, close overdrives would hardly differ where the margin is small, and many share one figure."""
    return (drive + threshold) * drive * drive + (drive - leak.margin) * leak.factor


def _speed(drive: Real, threshold: float) -> Real:
    """(V - Vt)^2 / V of the overdrive, written so that rounding keeps it monotone."""
    return drive / (1.0 + threshold / drive)


def _drive(dynamic: Real, threshold: float, leak: Leak) -> Array:
    """The largest floating-point overdrive with `_power_factor(overdrive) <= dynamic`, for `dynamic` > 0.

    A root that Newton merely approaches may land a bit high for one budget and a bit low for a larger one. The largest float that the
    computed, monotone `_power_factor` admits is one definite number: the same however it is found, and never smaller for a larger budget.
    """
    drive = _newton(dynamic, threshold, leak)
    while (above := np.greater(_power_factor(drive, threshold, leak), dynamic)).any():
        drive = np.where(above, np.nextafter(drive, 0.0), drive)
    while (below := np.less_equal(_power_factor(np.nextafter(drive, np.inf), threshold, leak), dynamic)).any():
        drive = np.where(below, np.nextafter(drive, np.inf), drive)
    return drive[()]


def _newton(dynamic: Real, threshold: float, leak: Leak) -> Array:
    """The overdrive within a few units in the last place. Its cube and Vt times its square are at most `dynamic`: the smaller root of both
    starts above that of a convex function, from where steps only fall, and the error of one is about the square of the last one's."""
    drive = np.minimum(np.sqrt(dynamic / threshold), np.cbrt(dynamic))
    while True:
        slope = drive * (3.0 * drive + 2.0 * threshold) + leak.factor
        step = (drive * drive * (2.0 * drive + threshold) + (dynamic + leak.margin * leak.factor)) / slope
        if not (step < drive * _SETTLED).any():
            return np.asarray(np.minimum(step, drive))
        drive = np.minimum(step, drive)
