"""Several dies in a package: square, alike, in a row, with links along the whole sides that face each other."""

from dataclasses import dataclass, fields

import numpy as np

from crossopt.crossflow.arrays import Real

LONGEST = 33.0 / 26.0
"""The longer side of a die over the shorter one, at the most: those of the field of an EUV scanner."""


@dataclass(frozen=True, slots=True)
class DieLinks:
    """The wires between the dies of a package, which stand in a row: as many as the sides hold that face each other."""

    links_per_metre: float = 0.0
    """Wires through a metre of such a side; none where a package holds one die only."""
    nominal_frequency: float = 0.0
    """Bits per second on one wire, both ways together."""
    energy_per_bit: float = 0.0
    depth: float = 0.0
    """Metres of each die that the circuits take behind such a side."""

    def __post_init__(self) -> None:
        if any(not 0.0 <= getattr(self, field.name) < float("inf") for field in fields(self)):
            raise ValueError(f"finite figures not below 0 are needed, not {self}")

    @property
    def bandwidth_per_metre(self) -> float:
        """Bytes per second, both ways together."""
        return self.links_per_metre * self.nominal_frequency / 8.0


NO_LINKS = DieLinks()


@dataclass(frozen=True, slots=True)
class UpperDies:
    """Dies of cores, registers and L1 that are stacked on those of all other parts, with which they share the package's room."""

    area_share: float = 0.0
    """Of these dies that is no part."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.area_share < 1.0:
            raise ValueError(f"a share of the dies below 1 is needed, not {self.area_share}")


def perimeter_of(die_area: Real, dies: Real = 1.0) -> Real:
    """Edge around square dies in a row, 2 (d + 1) sqrt(area / d): what is left of theirs beside the joints."""
    return 2.0 * (np.sqrt(dies) + 1.0 / np.sqrt(dies)) * np.sqrt(die_area)


def long_side_of(die_area: Real, dies: Real = 1.0) -> Real:
    """Metres of the longer side of a row of dies as long as the field of a scanner lets them be, 33 mm to 26 mm, one beside the other."""
    return np.sqrt(LONGEST * die_area * dies)


def joints_of(dies: Real) -> Real:
    """Length of the joints in a row of dies, (d - 1) sqrt(area / d), over the root of the area."""
    return np.sqrt(dies) - 1.0 / np.sqrt(dies)


def die_with_links(links: DieLinks, area: Real, dies: Real) -> Real:
    """Square metres of all dies that hold so much beside their links, which lie on both sides of each joint.

    The area A with A = area + 2 depth (d - 1) sqrt(A / d).
    """
    half = links.depth * joints_of(dies)
    return area + 2.0 * half * (half + np.sqrt(half * half + area))


def die_links_area(links: DieLinks, die_area: Real, dies: Real) -> Real:
    """Square metres of the dies that their links take."""
    return 2.0 * links.depth * joints_of(dies) * np.sqrt(die_area)


def die_links_power(links: DieLinks, die_area: Real, dies: Real) -> Real:
    """Watts of the links through all joints, at full activity."""
    return 8.0 * links.energy_per_bit * links.bandwidth_per_metre * joints_of(dies) * np.sqrt(die_area)


def crossings_of(dies: Real) -> Real:
    """Joints between two dies of a row, each taken by chance, (d - 1 / d) / 3: cores take bytes from the L2 of any die."""
    return (dies - 1.0 / dies) / 3.0


def through_joints(links: DieLinks, die_area: Real, dies: Real) -> Real:
    """Bytes per second of the L2 of all dies: cores take them from any, so that half pass the middle joint, twice what it lets through."""
    return np.where(np.greater(dies, 1.0), 2.0 * links.bandwidth_per_metre * np.sqrt(die_area / dies), np.inf)[()]
