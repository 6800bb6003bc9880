"""From itemised prices of single plans to one table, for workloads whose plans are few enough to be priced one by one."""

from collections.abc import Iterable

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.bill import Bill, Items, Prices


def total(items: Items) -> Real:
    """The sum of a bill's items, in their order."""
    amount: Real = 0.0
    for _, value in items:
        amount = amount + value
    return amount


def price_table(bills: Iterable[Bill], devices: int) -> Prices:
    """Prices of plans, one bill each, on `devices` devices."""
    rows = [(np.broadcast_to(bill.step_time, devices), np.broadcast_to(bill.energy, devices), total(bill.memory)) for bill in bills]
    times, energies = (np.array([row[column] for row in rows], np.float64).reshape(-1, devices) for column in (0, 1))
    return Prices(times, energies, np.array([row[2] for row in rows], np.float64).reshape(-1, 1))
