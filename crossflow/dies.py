"""Identical dies in a row in one package: links between them, memory stacks along both sides or on the dies, and the interposer below.

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
from math import sqrt
from typing import Annotated, Protocol

import numpy as np

from crossopt.crossflow.arrays import Mask, Real
from crossopt.crossflow.fields import Doc, EnergyPerBit, Frequency, Length, Needed, NonZero, PerLength, Ratio
from crossopt.crossflow.records import dataclass

LONGEST = 0.033
"""Longer side of a lithography field in metres. No side of a die exceeds it as long as its area allows."""
SLENDER = 1.5
"""Largest aspect ratio of a die: an estimate, above the 1.27 of A100 (25.5 mm x 32.4 mm)."""
CLEARANCE = 0.0005
"""Clearance in metres on an interposer, at its rim and between stacks: an estimate."""
SLACK = 1.0 + 1.0e-9
"""A count may exceed what its budget holds by one part in 1e9. Budgets and unit sizes are products of rounded decimals: 10 % of 600 mm^2
in square metres holds 2,400,000 wires of 2.5e-5 mm^2, but the quotient computes to 2399999.9999999995. Without slack the unit of measure
would decide such counts."""
_LOOKED_AT = 32
_EXACT_UP_TO = 2.0**52
"""Largest integer up to which halves of sums are exact; no chip has as many stacks."""


class Stack(Protocol):
    """A memory stack beside a die, or on it."""

    @property
    def stack_area(self) -> float: ...
    @property
    def stack_edge(self) -> float: ...
    @property
    def on_dies(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Row:
    """Dies in a row: their total area and their number."""

    die_area: Real
    dies: Real = 1.0

    def longer(self) -> Real:
        """Longer side of one die in metres, at the largest aspect ratio."""
        area = self.die_area / self.dies
        return np.maximum(np.sqrt(area), np.minimum(LONGEST, np.sqrt(SLENDER * area)))

    def shorter(self) -> Real:
        """Shorter side of one die in metres. Neither side shrinks as computed when the die grows."""
        area = self.die_area / self.dies
        return np.minimum(np.sqrt(area), np.maximum(area / LONGEST, np.sqrt(area / SLENDER)))


def count(budget: Real, unit: Real) -> Real:
    """Units that a budget holds: floor(budget / unit), forgiving a shortfall of one part in 1e9."""
    return np.floor(budget / unit * SLACK)


def equal_per_die(stacks: Real, dies: Real) -> Real:
    """The largest number of stacks, up to this one, of which every die has equally many."""
    return dies * np.floor(stacks / dies)


def places_of(stack: Stack, row: Row) -> Real:
    """Places of stacks: side by side along both sides of a row of dies, longer sides along the row, each beside its own die; or in rows
    and columns on each die, of which the best over its slenderest shape and its square counts. Larger dies have no fewer."""
    if not stack.on_dies:
        return 2.0 * row.dies * count(row.longer(), stack.stack_edge) if stack.stack_edge else np.inf
    root = np.sqrt(row.die_area / row.dies)
    return row.dies * np.maximum(_places_on(stack, row.longer(), row.shorter()), _places_on(stack, root, root))


def _places_on(stack: Stack, longer: Real, shorter: Real) -> Real:
    """Stacks in rows and columns on a die with these sides, all of them turned alike."""
    edge, depth = sides_of_stack(stack)
    return np.maximum(count(longer, edge) * count(shorter, depth), count(longer, depth) * count(shorter, edge))


def sides_of_stack(stack: Stack) -> tuple[float, float]:
    """Metres of a stack along the edge of the die and away from it; both equal where the edge limits none."""
    edge = stack.stack_edge or sqrt(stack.stack_area)
    return edge, stack.stack_area / edge


def ends_along(stack: Stack, least: Row, most: Row) -> tuple[Real, Real]:
    """The smallest and the largest number of stacks that fit along any row between two. More dies of the same area need not hold more, so
    that each number of them is looked at, unless they are very many."""
    few, many = places_of(stack, least), places_of(stack, most)
    if not (stack.stack_edge or stack.on_dies):
        return few, many
    for dies, inside in _counts_between(least, most):
        few = np.where(inside, np.minimum(few, places_of(stack, Row(least.die_area, dies))), few)
        many = np.where(inside, np.maximum(many, places_of(stack, Row(most.die_area, dies))), many)
    several = np.greater(most.dies - least.dies, _LOOKED_AT)
    return np.where(several, 0.0, few), np.where(several, np.inf, many)


def _counts_between(least: Row, most: Row) -> Iterator[tuple[Real, Mask]]:
    """Numbers of dies between two rows, and the condition that selects each; it selects none if there are very many."""
    apart = most.dies - least.dies
    for step in range(int(np.max(np.minimum(apart, _LOOKED_AT))) + 1):
        yield least.dies + step, np.less_equal(step, apart) & np.less_equal(apart, _LOOKED_AT)


def package_area_of(stack: Stack, stacks: Real, least: Row, most: Row) -> Real:
    """Lower bound of package area in square metres over all rows between two with at least this many stacks. Exact if the two are equal.

    Each number of dies is looked at, unless they are very many. Without stacks beside the dies there is no interposer, and where a
    technology does not say how long a stack is, dies and stacks are counted alone."""
    if stack.on_dies:
        return least.die_area + 0.0 * stacks
    if not stack.stack_edge:
        return least.die_area + stacks * stack.stack_area
    box: Real = np.inf
    for dies, inside in _counts_between(least, most):
        box = np.where(inside, np.minimum(box, _box(stack, stacks, Row(least.die_area, dies))), box)
    some = np.greater(stacks, 0.0) & np.isfinite(box)
    return np.where(some, np.maximum(box, least.die_area), least.die_area)[()]


def sides_of(stack: Stack, stacks: Real, row: Row) -> tuple[Real, Real]:
    """Depth and length of one die in metres: across the row, and along it with room for its stacks on each side, or on it."""
    if stack.on_dies:
        root = np.sqrt(row.die_area / row.dies)
        slender = np.greater_equal(_places_on(stack, row.longer(), row.shorter()), stacks / row.dies)
        return np.where(slender, row.longer(), root)[()], np.where(slender, row.shorter(), root)[()]
    needed = np.maximum(np.ceil(stacks / row.dies / 2.0), 1.0) * stack.stack_edge
    across = row.die_area / row.dies / needed if stack.stack_edge else np.inf
    return np.minimum(row.longer(), across), np.maximum(row.shorter(), needed)


def room_for(stack: Stack, package_area: Real, small: Row, large: Row) -> Real:
    """The most stacks that a package of this area holds beside dies of the second size, if there is room beside either size. Where their
    numbers differ, a package with a limit may hold any number. Stacks on dies need no room."""
    if stack.on_dies:
        return np.inf
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
    stacks = np.where(low > 0.0, 2.0 * low, np.where(fits(1.0), 1.0, 0.0))
    open_dies = np.not_equal(small.dies, large.dies) & np.isfinite(package_area)
    unknown = np.where(np.less(small.dies, large.dies), 0.0, np.inf)
    return np.where(open_dies, unknown, stacks * small.dies)[()]


def _box(stack: Stack, stacks: Real, row: Row) -> Real:
    """The package box around dies with this many stacks."""
    across, along = sides_of(stack, stacks, row)
    depth = np.maximum(stack.stack_area / stack.stack_edge, CLEARANCE)
    wide: Real = across + np.minimum(np.ceil(stacks / row.dies), 2.0) * depth + 2.0 * CLEARANCE
    return wide * (row.dies * along + 2.0 * CLEARANCE)


# --- links between dies, and the edge around them, of square ones ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DieLinks:
    """Wires between neighbouring dies of a package: as many as the facing sides hold."""

    links_per_metre: Annotated[PerLength, Needed(), NonZero(), Doc("wires per length of the facing sides")] = 0.0
    """None for packages of one die."""
    nominal_frequency: Annotated[Frequency, Needed(), NonZero(), Doc("rate of one wire, both directions together")] = 0.0
    energy_per_bit: Annotated[EnergyPerBit, Needed(), Doc("sent across one joint")] = 0.0
    depth: Annotated[Length, Needed(), Doc("of each die, taken by the circuits behind such a side")] = 0.0

    def __post_init__(self) -> None:
        if any(not 0.0 <= getattr(self, field.name) < float("inf") for field in fields(self)):
            raise ValueError(f"finite figures not below 0 are needed, not {self}")

    @property
    def bandwidth_per_metre(self) -> float:
        """Bytes per second, both directions together."""
        return self.links_per_metre * self.nominal_frequency / 8.0


NO_LINKS = DieLinks()


@dataclass(frozen=True, slots=True)
class UpperDies:
    """Dies of cores, registers and L1, stacked on the dies of all other parts.

    `die_area` is then the area of the lower dies, those of all other parts. Both share the package's room.
    """

    area_share: Annotated[Ratio, Doc("of the core dies, taken by the uncore")] = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.area_share < 1.0:
            raise ValueError(f"a share of the dies below 1 is needed, not {self.area_share}")


def perimeter_of(die_area: Real, dies: Real = 1.0) -> Real:
    """Outer edge of square dies in a row, 2 (d + 1) sqrt(area / d), without the joints."""
    return 2.0 * (np.sqrt(dies) + 1.0 / np.sqrt(dies)) * np.sqrt(die_area)


def joints_of(dies: Real) -> Real:
    """Length of the joints in a row of dies, (d - 1) sqrt(area / d), over the root of the area."""
    return np.sqrt(dies) - 1.0 / np.sqrt(dies)


def die_with_links(links: DieLinks, area: Real, dies: Real) -> Real:
    """Square metres of all dies that hold this area beside their links, which take both sides of each joint.

    The area A with A = area + 2 depth (d - 1) sqrt(A / d).
    """
    half = links.depth * joints_of(dies)
    return area + 2.0 * half * (half + np.sqrt(half * half + area))


def die_links_area(links: DieLinks, die_area: Real, dies: Real) -> Real:
    """Square metres of the dies that their links take."""
    return 2.0 * links.depth * joints_of(dies) * np.sqrt(die_area)


def die_links_power(links: DieLinks, die_area: Real, dies: Real) -> Real:
    """Watts of the links across all joints at full activity."""
    return 8.0 * links.energy_per_bit * links.bandwidth_per_metre * joints_of(dies) * np.sqrt(die_area)


def crossings_of(dies: Real) -> Real:
    """Mean number of joints between two random dies of a row, (d - 1 / d) / 3: cores read the L2 of any die."""
    return (dies - 1.0 / dies) / 3.0


def through_joints(links: DieLinks, die_area: Real, dies: Real) -> Real:
    """Bytes per second of the L2 of all dies. Cores read any die, so that half the bytes cross the middle joint: twice its bandwidth."""
    return np.where(np.greater(dies, 1.0), 2.0 * links.bandwidth_per_metre * np.sqrt(die_area / dies), np.inf)[()]
