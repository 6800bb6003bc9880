"""Cost of a device and of a training step in money. Every price is an input; none has a hidden default. Every price is given; none has a
hidden default.

A die with spare bundles of cores is good if all beside the bundles is without a defect, and so many of the bundles as it needs:

    yield = (1 + R D / a)^-a  sum over j = 0 .. s of  C(k + s, j) (1 - p)^j p^(k + s - j),      p = (1 + b D / a)^-a

with R square metres beside the bundles and what is repaired (cells of memories, by spare rows and columns), D defects a square metre that
cluster by a, k bundles in use and s spare ones of b square metres each (bundles fail one by one; binomial). It falls when R, b or k grows
and rises with s, each alone, so that the least of the former with the most spares bounds it from above; from chip to chip it need not: one
that is large enough for one more spare may yield better.
"""

from math import pi
from typing import Annotated

import numpy as np

from crossopt.crossflow.arrays import Real, power
from crossopt.crossflow.fields import Bounds, Doc, Duration, Length, Money, PricePerArea, PricePerEnergy
from crossopt.crossflow.records import dataclass

_LEAST = 1.0e-30


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a system. The price of a device is given, or follows from its die, stacks and package."""

    electricity: Annotated[PricePerEnergy, Doc("of all electricity used; US industry paid 0.0806 USD/kWh in 2023 (EIA)")]
    lifetime: Annotated[Duration, Doc("over which a device is written off; 4 years (an estimate) by default")]
    """Seconds over which the capital is written off."""
    device: Annotated[Money | None, Doc("of one device with its share of the system; alternatively give wafer, stack and package")] = None
    wafer: Annotated[Money | None, Doc("of a processed wafer; the price of a die follows from its area and yield")] = None
    wafer_diameter: Annotated[Length, Doc("of the wafer")] = 0.3
    defect_density: float = 0.0
    """Defects per square metre."""
    clustering: Annotated[
        float, Bounds(0.1), Doc("of defects, in the negative binomial yield (1 + area x defects / clustering)^-clustering")
    ] = 3.0
    stack: Annotated[Money, Doc("of one memory stack; needed with wafer")] = 0.0
    package: Annotated[Money, Doc("of substrate, board, host and network for one device; needed with wafer")] = 0.0
    interposer: Annotated[PricePerArea, Doc("of the package and its assembly")] = 0.0
    bonding_loss: Annotated[
        float, Bounds(0.0, 0.5), Doc("share of dies and stacks lost in assembly, each with everything in its package")
    ] = 0.0
    lane: Annotated[Money, Doc("of port, optics and switches per wire between nodes")] = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.bonding_loss < 1.0:
            raise ValueError(f"bonding_loss is {self.bonding_loss}, a share below 1 is needed")


@dataclass(frozen=True, slots=True)
class Made:
    """The parts of a device that are paid for."""

    die_area: Real
    stacks: Real = 0.0
    rest: Real = 0.0
    """Square metres of the die that must be free of defects, where there are spare bundles."""
    bundle: Real = 0.0
    """Square metres of a bundle of cores with the memories that hold its tiles."""
    needed: Real = 0.0
    """Bundles in use; without this the whole die must be free of defects."""
    spare: Real = 0.0
    """Spare bundles."""
    wires: Real = 0.0
    """Wires of the links between nodes."""
    dies: Real = 1.0
    """Dies in the package, each with an equal share of the above."""
    package_area: Real = 0.0
    """Square metres of the interposer."""


def dies_per_wafer(area: Real, diameter: float) -> Real:
    """Gross dies per wafer, pi D^2 / (4 A) - pi D / sqrt(2 A), without those lost at the rim; at least one."""
    return np.maximum(pi * (diameter * diameter) / (4.0 * area) - pi * diameter / np.sqrt(2.0 * area), 1.0)


def die_yield(area: Real, defect_density: float, clustering: float) -> Real:
    """(1 + A D0 / alpha)^-alpha, the negative binomial yield (Stapper 1983)."""
    return power(1.0 + area * defect_density / clustering, -clustering)


def enough_of(needed: Real, spare: Real, works: Real) -> Real:
    """Probability that at most `spare` of needed + spare bundles fail, each of which works with this probability."""
    made = needed + spare
    term = power(works, made)
    total = term
    for failed in range(1, int(np.max(spare)) + 1):
        term = term * ((made - (failed - 1)) / failed * ((1.0 - works) / works))
        total = total + np.where(failed <= spare, term, 0.0)
    return np.minimum(total, 1.0)


def good_share(prices: Prices, made: Made) -> Real:
    """Share of good dies with equal shares of all areas; bounded from below so that prices stay finite."""
    density, clustering, dies = prices.defect_density, prices.clustering, made.dies
    flawless = die_yield(made.die_area / dies, density, clustering)
    if not np.any(made.needed):
        return flawless
    works = die_yield(made.bundle, density, clustering)
    spared = die_yield(made.rest / dies, density, clustering) * enough_of(made.needed / dies, np.floor(made.spare / dies), works)
    return np.where(np.greater(made.needed, 0.0), np.maximum(spared, _LEAST), flawless)[()]


def device_price(prices: Prices, made: Made) -> Real:
    """Dollars of one device whose area is divided over this many dies, each with its own yield."""
    if prices.device is not None:
        return prices.device
    if prices.wafer is None:
        raise ValueError("prices need a price of the device or of the wafer")
    good = dies_per_wafer(made.die_area / made.dies, prices.wafer_diameter) * good_share(prices, made)
    joined = made.dies * prices.wafer / good + made.stacks * prices.stack + made.package_area * prices.interposer
    return joined / joined_well(prices, made) + prices.package + made.wires * prices.lane


def joined_well(prices: Prices, made: Made) -> Real:
    """(1 - loss)^(dies + stacks): share of packages assembled without loss (Feng and Ma 2022, Chiplet Actuary, arXiv 2203.12268)."""
    return power(1.0 - prices.bonding_loss, made.dies + made.stacks)


def step_cost(prices: Prices, capital: Real, devices: int, step_time: Real, energy: Real) -> Real:
    """Dollars of one step: write-off of all devices over its duration, and electricity."""
    return capital * devices / prices.lifetime * step_time + energy * prices.electricity
