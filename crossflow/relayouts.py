"""How a tensor lies on the devices of a cluster, and what it costs to bring it from one layout to another, forward and backward.

The batch is cut into as many parts as there are groups of g neighbouring devices (MLSL's node groups, Sridharan et al. 2018, arXiv
1801.08030). Inside a group each device has the whole part (copies), or an equal share of its features or of its height. A group of one
splits the batch alone; a group of all devices splits no batch.

Where a device has what it needs already, nothing is sent. Else the cheaper of two ways is taken, with L the least common multiple of both
groups, inside which every group lies whole:

    gather      all-gather of the parts of L devices, of which each device takes what it needs
    exchange    all-to-all in L, of as much as the device gets that misses most; for copies an all-gather in the new group follows

Backward the gradient goes the other way. Where each device of a group has a partial sum of it, a reduce-scatter comes first, and where the
old group holds copies an all-gather in that follows: together an all-reduce. Nothing hides these exchanges.
"""

from collections.abc import Callable
from functools import cache
from math import lcm
from typing import Literal

import numpy as np

from crossopt.crossflow import collectives
from crossopt.crossflow.arrays import Array, Ints
from crossopt.crossflow.hardware import Link
from crossopt.crossflow.records import dataclass

Inside = Literal["copies", "features", "space"]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tensor lies on all devices."""

    group: int = 1
    """Neighbouring devices that share one part of the batch."""
    inside: Inside = "copies"

    def share(self, devices: int) -> float:
        """Share of the tensor that one device has."""
        return (self.group if self.inside == "copies" else 1) / devices

    def has(self, needed: "Layout") -> bool:
        """Whether each device has all that it needs."""
        return self == needed or ((self.inside == "copies" or self.group == 1) and self.group % needed.group == 0)

    @property
    def split(self) -> "Layout":
        """The layout without copies: each group split by features."""
        return self if self.inside != "copies" or self.group == 1 else Layout(self.group, "features")


Spent = tuple[float, float]
"""Seconds, and joules of all devices."""
NOTHING: Spent = (0.0, 0.0)


def together(*parts: Spent) -> Spent:
    """One after the other."""
    return sum(part[0] for part in parts), sum(part[1] for part in parts)


class Network:
    """Collectives of groups of equal size on all devices at once, each priced once."""

    def __init__(self, devices: int, level_sizes: tuple[int, ...], links: tuple[Link, ...]) -> None:
        self.devices, self.levels, self.links = devices, level_sizes, links
        self.gather = cache(self._gather)
        self.exchange = cache(self._exchange)
        self.reduce = cache(self._reduce)
        self.border = cache(self._border)

    def _members(self, ranks: int, stride: int) -> collectives.Members:
        return collectives.members_on_levels(np.array([[ranks]]), np.array([[stride]]), self.levels)

    def _spent(self, ranks: int, time: Callable[[], object], exchange: Callable[[], collectives.Exchange]) -> Spent:
        if ranks == 1:
            return NOTHING
        joules = collectives.exchange_energy(exchange(), self.links)
        return _number(time()), _number(joules) * self.devices

    def _gather(self, size: float, ranks: int, stride: int = 1) -> Spent:
        """All-gather of `size` bytes in total, or a reduce-scatter of them."""
        sent = collectives.all_gather(size, self._members(ranks, stride))
        return self._spent(ranks, lambda: collectives.exchange_time(sent, self.links), lambda: sent)

    def _exchange(self, size: float, ranks: int) -> Spent:
        """All-to-all of `size` bytes of each device."""
        sent = collectives.all_to_all(size, self._members(ranks, 1))
        return self._spent(ranks, lambda: collectives.exchange_time(sent, self.links), lambda: sent)

    def _reduce(self, size: float, ranks: int, stride: int = 1) -> Spent:
        """All-reduce of `size` bytes that each device has."""
        members = self._members(ranks, stride)
        return self._spent(
            ranks, lambda: collectives.all_reduce_time(size, members, self.links), lambda: collectives.ring_all_reduce(size, members)
        )

    def _border(self, size: float, ranks: int) -> Spent:
        """Messages of `size` bytes in total to both neighbours."""
        sent = collectives.send(size, self._members(ranks, 1))
        return self._spent(ranks, lambda: collectives.exchange_time(sent, self.links), lambda: sent)


def _number(value: object) -> float:
    return float(np.asarray(value).item())


def forward(size: float, old: Layout, needed: Layout, network: Network) -> Spent:
    """A tensor of `size` bytes from one layout to another."""
    if old.has(needed):
        return NOTHING
    devices, union = network.devices, lcm(old.group, needed.group)
    first, stride = (union // old.group, old.group) if old.inside == "copies" else (union, 1)
    gathered = network.gather(size * union / devices, first, stride)
    exchanged = network.exchange(size * _missing(old, needed.split, devices) * union / (union - 1), union)
    if needed.inside == "copies":
        exchanged = together(exchanged, network.gather(size * needed.group / devices, needed.group))
    return min(gathered, exchanged)


@cache
def _missing(old: Layout, needed: Layout, devices: int) -> float:
    """The largest share of a tensor that any device needs and does not have."""
    numbers = np.arange(lcm(old.group, needed.group))
    overlap = np.ones(len(numbers))
    for axis in ("batch", "features", "space"):
        (low, high), (start, end) = (_interval(layout, axis, numbers, devices) for layout in (old, needed))
        overlap = overlap * np.maximum(np.minimum(high, end) - np.maximum(low, start), 0.0)
    return float(max(needed.share(devices) - overlap.min(), 0.0))


def _interval(layout: Layout, axis: str, numbers: Ints, devices: int) -> tuple[Array, Array]:
    """Where the part of each device begins and ends along an axis, as a share of its extent."""
    parts, index = (1, 0 * numbers)
    if axis == "batch":
        parts, index = devices // layout.group, numbers // layout.group
    elif axis == layout.inside:
        parts, index = layout.group, numbers % layout.group
    return index / parts, (index + 1) / parts


def backward(size: float, old: Layout, needed: Layout, network: Network, partial: bool) -> Spent:
    """The gradient of that tensor from where it was needed to where it was made; `partial` where devices of a group have to add it up."""
    if not partial or needed.group == 1:
        return forward(size, needed, old, network)
    devices = network.devices
    scattered = network.gather(size * needed.group / devices, needed.group)
    if needed.group % old.group:
        return together(scattered, forward(size, needed.split, old, network))
    copied = network.gather(size * old.group / devices, old.group) if old.inside == "copies" else NOTHING
    return together(scattered, copied)
