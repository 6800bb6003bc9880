"""What a device and a training step cost in money. Every price is given; none has a hidden default."""

from dataclasses import dataclass
from math import pi

import numpy as np

from crossopt.crossflow.arrays import Real


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a system. A device's price is given, or follows from its die, its stacks and its package."""

    electricity: float
    """Dollars per joule."""
    lifetime: float
    """Seconds over which the capital is written off."""
    device: float | None = None
    """Dollars of a whole device with its share of hosts and network."""
    wafer: float | None = None
    wafer_diameter: float = 0.3
    defect_density: float = 0.0
    """Defects per square metre."""
    clustering: float = 3.0
    """How defects cluster: the alpha of the negative binomial yield."""
    stack: float = 0.0
    package: float = 0.0
    """Dollars of package, board, host and network per device."""


def dies_per_wafer(area: Real, diameter: float) -> Real:
    """pi D^2 / (4 A) - pi D / sqrt(2 A): gross dies less those lost at the rim; at least one."""
    return np.maximum(pi * diameter**2 / (4.0 * area) - pi * diameter / np.sqrt(2.0 * area), 1.0)


def die_yield(area: Real, defect_density: float, clustering: float) -> Real:
    """(1 + A D0 / alpha)^-alpha, the negative binomial yield (Stapper 1983)."""
    return (1.0 + area * defect_density / clustering) ** -clustering


def device_price(prices: Prices, die_area: Real, stacks: Real, dies: Real = 1.0) -> Real:
    """Dollars of one device, whose area is spread over so many dies, each with a yield of its own."""
    if prices.device is not None:
        return prices.device
    if prices.wafer is None:
        raise ValueError("prices need a price of the device or of the wafer")
    each = die_area / dies
    good = dies_per_wafer(each, prices.wafer_diameter) * die_yield(each, prices.defect_density, prices.clustering)
    return dies * prices.wafer / good + stacks * prices.stack + prices.package


def step_cost(prices: Prices, capital: Real, devices: int, step_time: Real, energy: Real) -> Real:
    """Dollars of one step: write-off of all devices over the time it takes, and the electricity."""
    return capital * devices / prices.lifetime * step_time + energy * prices.electricity
