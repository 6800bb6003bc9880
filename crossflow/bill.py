"""The itemised price of one plan: where the seconds of a step go, what fills the memory, and the energy."""

from dataclasses import dataclass

from crossopt.crossflow.arrays import Array, Real

Items = tuple[tuple[str, Real], ...]


@dataclass(frozen=True, slots=True)
class Bill:
    """One plan on one device, or on an array of devices."""

    step_time: Real
    time: Items
    """Seconds by use; they add up to the step time."""
    memory: Items
    """Bytes by use on the fullest device."""
    energy: Real
    """Joules of one step, all devices together."""
    flops: float
    """Model FLOPs of one step, all devices together: useful arithmetic only."""
    host_memory: Real = 0.0
    """Bytes in the host's memory for the device that offloads most."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of plans (rows) on devices (columns)."""

    step_time: Array
    energy: Array
    """Joules of one step, all devices together."""
    memory: Array
    """Bytes of the fullest device; the same on every hardware, so one column."""
