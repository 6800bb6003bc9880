"""The cost breakdown of one plan: seconds of a step and bytes of memory by use, and joules; and tables of costs."""

from collections.abc import Iterable

import numpy as np

from crossopt.crossflow.arrays import Array, Real
from crossopt.crossflow.layer import Layer
from crossopt.crossflow.pipeline import FullestStage, Slots, Terms, bubble, exposed_exchange, full_backward, step_time, unheld_time
from crossopt.crossflow.records import dataclass

Items = tuple[tuple[str, Real], ...]


@dataclass(frozen=True, slots=True)
class Bill:
    """Costs of one plan on one device, or on an array of devices."""

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
    """Bytes in host memory for the device that offloads most."""
    others: tuple[float, ...] = ()
    """Step time in seconds under each further set of constants of the device, where these are computed."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds and joules of a step by plan (row) and device (column)."""

    step_time: Array
    energy: Array
    """Energy of one step in joules, all devices together."""


@dataclass(frozen=True, slots=True)
class PlanCosts(Spent):
    """Seconds and joules of a step, with the memory of each plan."""

    memory: Array
    """Bytes on the fullest device; the same for every hardware, so one column."""


def total(items: Items) -> Real:
    """The sum of a breakdown's items, in their order."""
    amount: Real = 0.0
    for _, value in items:
        amount = amount + value
    return amount


def price_table(bills: Iterable[Bill], devices: int) -> PlanCosts:
    """Costs of plans on `devices` devices, one breakdown each, for workloads with few plans."""
    rows = [(np.broadcast_to(bill.step_time, devices), np.broadcast_to(bill.energy, devices), total(bill.memory)) for bill in bills]
    times, energies = (np.array([row[column] for row in rows], np.float64).reshape(-1, devices) for column in (0, 1))
    return PlanCosts(times, energies, np.array([row[2] for row in rows], np.float64).reshape(-1, 1))


def step_items(needed: Terms, slot: Slots, layer: Layer, stage: FullestStage) -> Items:
    """Step time in seconds by use, as a stage spends it, without slowdown by the power limit; `slot` are the `slots` of these terms."""
    runs = needed.microbatches * stage.layers
    return (
        ("compute", runs * layer.arithmetic),
        ("recompute", runs * layer.recompute),
        ("tensor exchange", runs * layer.tensor),
        ("context exchange", runs * layer.context),
        ("expert exchange", runs * layer.expert),
        ("kernel launch", runs * (layer.launch + (full_backward(needed) - layer.backward))),
        ("weight gathers", runs * stage.gathers),
        ("host traffic", runs * stage.host),
        ("embedding and head", needed.microbatches * stage.edges),
        ("pipeline transfers", needed.microbatches * stage.transfers),
        ("pipeline bubble", bubble(needed, slot)),
        ("gradient exchange", exposed_exchange(needed, slot)),
        ("weight publication", needed.exposed_publication()),
        ("optimizer", needed.optimizer),
        ("overhead", needed.overhead),
        *((("shared links", step_time(needed) - unheld_time(needed)),) if np.ndim(needed.busy) else ()),
    )
