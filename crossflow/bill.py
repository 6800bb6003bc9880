"""The itemised price of one plan: where the seconds of a step go, what fills the memory, and the energy; and tables of such prices."""

from collections.abc import Iterable

import numpy as np

from crossopt.crossflow.arrays import Array, Real
from crossopt.crossflow.layer import Layer
from crossopt.crossflow.pipeline import FullestStage, Terms, bubble, exposed_exchange, step_time, unheld_time, whole_backward
from crossopt.crossflow.records import dataclass

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
    others: tuple[float, ...] = ()
    """Seconds of the step under each of the device's other sets of constants, where those are priced beside its own."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a step takes by plans (rows) on devices (columns)."""

    step_time: Array
    energy: Array
    """Joules of one step, all devices together."""


@dataclass(frozen=True, slots=True)
class Prices(Spent):
    """The same with what the plans keep."""

    memory: Array
    """Bytes of the fullest device; the same on every hardware, so one column."""


def total(items: Items) -> Real:
    """The sum of a bill's items, in their order."""
    amount: Real = 0.0
    for _, value in items:
        amount = amount + value
    return amount


def price_table(bills: Iterable[Bill], devices: int) -> Prices:
    """Prices of plans on `devices` devices, one bill each, for workloads whose plans are few enough to be priced one by one."""
    rows = [(np.broadcast_to(bill.step_time, devices), np.broadcast_to(bill.energy, devices), total(bill.memory)) for bill in bills]
    times, energies = (np.array([row[column] for row in rows], np.float64).reshape(-1, devices) for column in (0, 1))
    return Prices(times, energies, np.array([row[2] for row in rows], np.float64).reshape(-1, 1))


def step_items(needed: Terms, one: Layer, stage: FullestStage) -> Items:
    """Seconds of the step by use, as a stage spends them, without what its power takes longer."""
    runs = needed.microbatches * stage.layers
    return (
        ("compute", runs * one.arithmetic),
        ("recompute", runs * one.recompute),
        ("tensor exchange", runs * one.tensor),
        ("context exchange", runs * one.context),
        ("expert exchange", runs * one.expert),
        ("kernel launch", runs * (one.launch + (whole_backward(needed) - one.backward))),
        ("weight gathers", runs * stage.gathers),
        ("host traffic", runs * stage.host),
        ("embedding and head", needed.microbatches * stage.edges),
        ("pipeline transfers", needed.microbatches * stage.transfers),
        ("pipeline bubble", bubble(needed)),
        ("gradient exchange", exposed_exchange(needed)),
        ("weight publication", needed.exposed_publication()),
        ("optimizer", needed.optimizer),
        ("overhead", needed.overhead),
        *((("shared links", step_time(needed) - unheld_time(needed)),) if np.ndim(needed.busy) else ()),
    )
