"""Dies in a package, alike, in a row, with links between them, stacks of memory along both sides of the row, and an interposer below.

The interposer is a box around all of it, with what lies free at its rim:

    box = (across + columns x depth + 2 c) (row + 2 c),      row = d along,      across = area / (d along)

with d dies, a side of each along the row, columns of stacks (two, or one of a single stack for each die), each as deep as a stack is, and
clearances c at the rim. A die is at most so slender, and lies with its shorter side along the row, as the two of B200 do, unless its stacks
take more of it, as A100's three a side do:

    longer side = min(33 mm, sqrt(1.5 area)),      along = max(area / longer side, stacks a side x edge)

All dies are alike, so that each has as many stacks as any other. The box grows with dies, area and stacks, as a stack is deeper than c.

By this rule the package of B200 is 2,771 mm^2 large, where 2,739 are told (TrendForce 2026), and that of an H100 1,621 mm^2.
"""

from collections.abc import Iterator
from dataclasses import fields
from typing import Annotated, Protocol

import numpy as np

from crossopt.crossflow.arrays import Mask, Real
from crossopt.crossflow.fields import Doc, EnergyPerBit, Frequency, Length, Needed, NonZero, PerLength, Ratio
from crossopt.crossflow.records import dataclass

LONGEST = 0.033
"""Metres of the longer side of a scanner's field, which no side of a die is above, as long as its area leaves it a choice."""
SLENDER = 1.5
"""The longer side of a die over the shorter one, at the most: an estimate, above the 1.27 of A100 (25.5 mm x 32.4 mm)."""
CLEARANCE = 0.0005
"""Metres between what lies on an interposer and its rim, as between stacks: an estimate."""
SLACK = 1.0 + 1.0e-9
"""A count may exceed what its budget holds by one part in 1e9. Budgets and unit sizes are products of rounded decimals: 10 % of 600 mm^2
in square metres holds 2,400,000 wires of 2.5e-5 mm^2, but the quotient computes to 2399999.9999999995. Without slack the unit of measure
would decide such counts."""
_LOOKED_AT = 32
_EXACT_UP_TO = 2.0**52
"""Up to which whole numbers halves of sums are exact: no chip has so many stacks a side."""


class Stack(Protocol):
    """A stack of memory that lies beside a die."""

    @property
    def stack_area(self) -> float: ...
    @property
    def stack_edge(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Row:
    """Dies in a row: the area of all of them together, and how many there are."""

    die_area: Real
    dies: Real = 1.0

    def longer(self) -> Real:
        """Metres of the longer side of one die, as slender as it may be."""
        one = self.die_area / self.dies
        return np.maximum(np.sqrt(one), np.minimum(LONGEST, np.sqrt(SLENDER * one)))

    def shorter(self) -> Real:
        """Metres of its shorter side. Neither falls when the die grows, as computed, too."""
        one = self.die_area / self.dies
        return np.minimum(np.sqrt(one), np.maximum(one / LONGEST, np.sqrt(one / SLENDER)))


def count(budget: Real, unit: Real) -> Real:
    """Units that a budget holds: floor(budget / unit), forgiving a shortfall of one part in 1e9."""
    return np.floor(budget / unit * SLACK)


def equal_per_die(stacks: Real, dies: Real) -> Real:
    """The most stacks, no more than these, of which every die has as many."""
    return dies * np.floor(stacks / dies)


def places_along(stack: Stack, row: Row) -> Real:
    """Stacks that lie side by side along both sides of a row of dies with their longer sides along it, each beside its own die."""
    return 2.0 * row.dies * count(row.longer(), stack.stack_edge) if stack.stack_edge else np.inf


def ends_along(stack: Stack, least: Row, most: Row) -> tuple[Real, Real]:
    """The fewest and the most that lie along any row between two. More dies of the same area need not hold more, so that each number of
    them is looked at, unless they are very many."""
    few, many = places_along(stack, least), places_along(stack, most)
    if not stack.stack_edge:
        return few, many
    for dies, inside in _counts_between(least, most):
        few = np.where(inside, np.minimum(few, places_along(stack, Row(least.die_area, dies))), few)
        many = np.where(inside, np.maximum(many, places_along(stack, Row(most.die_area, dies))), many)
    several = np.greater(most.dies - least.dies, _LOOKED_AT)
    return np.where(several, 0.0, few), np.where(several, np.inf, many)


def _counts_between(least: Row, most: Row) -> Iterator[tuple[Real, Mask]]:
    """The numbers of dies of the rows between two, one after the other, and where each is one of them: none where they are very many."""
    apart = most.dies - least.dies
    for step in range(int(np.max(np.minimum(apart, _LOOKED_AT))) + 1):
        yield least.dies + step, np.less_equal(step, apart) & np.less_equal(apart, _LOOKED_AT)


def package_area_of(stack: Stack, stacks: Real, least: Row, most: Row) -> Real:
    """Square metres of the package that no row of dies between two with as many stacks or more goes below; of equal ones its own.

    Each number of dies is looked at, unless they are very many. Without stacks there is no interposer, and where a technology does not say
    how long a stack is, dies and stacks are counted alone."""
    if not stack.stack_edge:
        return least.die_area + stacks * stack.stack_area
    box: Real = np.inf
    for dies, inside in _counts_between(least, most):
        box = np.where(inside, np.minimum(box, _box(stack, stacks, Row(least.die_area, dies))), box)
    some = np.greater(stacks, 0.0) & np.isfinite(box)
    return np.where(some, np.maximum(box, least.die_area), least.die_area)[()]


def sides_of(stack: Stack, stacks: Real, row: Row) -> tuple[Real, Real]:
    """Metres of one die across the row and along it, of which its stacks take as much as they need on each side."""
    needed = np.maximum(np.ceil(stacks / row.dies / 2.0), 1.0) * stack.stack_edge
    across = row.die_area / row.dies / needed if stack.stack_edge else np.inf
    return np.minimum(row.longer(), across), np.maximum(row.shorter(), needed)


def room_for(stack: Stack, package_area: Real, small: Row, large: Row) -> Real:
    """The most stacks that a package of this area holds beside dies of the second size, as far as there is place for them beside either, so
    that no dies between hold fewer where `small` is the smaller one, and none more where it is the larger one. Where their numbers differ,
    a package with a limit may hold any number."""
    if not stack.stack_edge:
        return count(np.maximum(package_area - large.die_area, 0.0), stack.stack_area)

    def fits(each: Real) -> Mask:
        return np.less_equal(_box(stack, each * large.dies, large), package_area * SLACK)

    low = np.zeros_like(np.asarray(package_area + large.die_area + small.die_area))
    high = low + np.minimum(count(np.maximum(small.longer(), large.longer()), stack.stack_edge), _EXACT_UP_TO)
    while np.any(low < high):  # by halving, as the box grows with them
        middle = np.minimum(np.floor((low + high) / 2.0) + 1.0, high)
        holds = fits(2.0 * middle)
        low, high = np.where(holds, middle, low), np.where(holds, high, middle - 1.0)
    held = np.where(low > 0.0, 2.0 * low, np.where(fits(1.0), 1.0, 0.0))
    open_dies = np.not_equal(small.dies, large.dies) & np.isfinite(package_area)
    unknown = np.where(np.less(small.dies, large.dies), 0.0, np.inf)
    return np.where(open_dies, unknown, held * small.dies)[()]


def _box(stack: Stack, stacks: Real, row: Row) -> Real:
    """Around dies with so many stacks."""
    across, along = sides_of(stack, stacks, row)
    depth = np.maximum(stack.stack_area / stack.stack_edge, CLEARANCE)
    wide: Real = across + np.minimum(np.ceil(stacks / row.dies), 2.0) * depth + 2.0 * CLEARANCE
    return wide * (row.dies * along + 2.0 * CLEARANCE)


# --- links between dies, and the edge around them, of square ones ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DieLinks:
    """The wires between the dies of a package, which stand in a row: as many as the sides hold that face each other."""

    links_per_metre: Annotated[PerLength, Needed(), NonZero(), Doc("wires through a length of the sides that face each other")] = 0.0
    """None where a package holds one die only."""
    nominal_frequency: Annotated[Frequency, Needed(), NonZero(), Doc("bits a second on one wire, both ways together")] = 0.0
    energy_per_bit: Annotated[EnergyPerBit, Needed(), Doc("sent over one joint")] = 0.0
    depth: Annotated[Length, Needed(), Doc("of each die that the circuits take behind such a side")] = 0.0

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
    """Dies of cores, registers and L1 on those of all other parts, whose area `die_area` then is; both share the package's room."""

    area_share: Annotated[Ratio, Doc("of the upper dies that is no part")] = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.area_share < 1.0:
            raise ValueError(f"a share of the dies below 1 is needed, not {self.area_share}")


def perimeter_of(die_area: Real, dies: Real = 1.0) -> Real:
    """Edge around square dies in a row, 2 (d + 1) sqrt(area / d): what is left of theirs beside the joints."""
    return 2.0 * (np.sqrt(dies) + 1.0 / np.sqrt(dies)) * np.sqrt(die_area)


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
