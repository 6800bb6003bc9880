"""Boxes of hardware points: an interval of the options of every choice, and the best device that a box can hold.

Options are taken in ascending order, whatever the order in the question; a place is a position in that order. A box is one row of
lowest and one of highest places, so that many boxes are two matrices.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.crossflow.cost import Made
from crossopt.crossflow.envelope import envelope
from crossopt.crossflow.hardware import Hardware, headroom_of, is_within, take
from crossopt.crossflow.records import dataclass
from crossopt.instances.catalogue.chips import split_of
from crossopt.instances.codesign.chips import device_of, generated, made_of
from crossopt.instances.codesign.instance import FreeHardware, Instance, remembered, under_each
from crossopt.instances.codesign.space import as_arrays, buildable, with_prices

_OUTWARD = 1.0e-12
"""Relative slack of a price, which decreases with the die but not always in the last digit."""


_PARTS = 32
"""Number of parts into which a choice is divided for tightening; longer choices are refined as boxes shrink."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The hardware choices of a question, with options in ascending order."""

    names: tuple[str, ...]
    options: tuple[Array, ...]
    order: tuple[Ints, ...]
    """For each option, its index in the question."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(values) for values in self.options)

    @property
    def points(self) -> int:
        return prod(self.sizes)


@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes as rows of indices with one column per choice; both ends are included."""

    low: Ints
    high: Ints

    def __len__(self) -> int:
        return len(self.low)

    def at(self, row: int) -> "Boxes":
        """A single box."""
        return Boxes(self.low[[row]], self.high[[row]])


@dataclass(frozen=True, slots=True)
class Corners:
    """For each box, a device at least as good as any in it, and whether any in it satisfies the budgets."""

    hardware: Hardware
    """Devices of the boxes: resources at their highest, area, power and price at their lowest."""
    alive: Mask
    """False if no device of the box has cores, memory and links within area and power."""
    others: tuple[tuple[Instance, "Corners"], ...] = ()
    """The boxes under the alternative sets of constants; a design must satisfy every limit under each."""


def grid(instance: Instance) -> Grid:
    """The hardware choices; empty if the hardware is fixed."""
    options = instance.hardware.options if isinstance(instance.hardware, FreeHardware) else ()
    values = [np.array(values, np.float64) for _, values in options]
    order = tuple(np.argsort(column, kind="stable") for column in values)
    return Grid(tuple(name for name, _ in options), tuple(column[index] for column, index in zip(values, order, strict=True)), order)


def full_box(space: Grid) -> Boxes:
    """The box of all points."""
    return Boxes(np.zeros((1, len(space.sizes)), np.int64), np.array([[size - 1 for size in space.sizes]], np.int64).reshape(1, -1))


def point_number(space: Grid, places: Ints) -> int:
    """The number of a hardware point, as counted in `instances.codesign.space`."""
    originals = [int(order[index]) for order, index in zip(space.order, places, strict=True)]
    return int(np.ravel_multi_index(originals, space.sizes)) if originals else 0


def option_indices(space: Grid, point: int) -> Ints:
    """The indices of a hardware point."""
    originals = np.unravel_index(point, space.sizes) if space.sizes else ()
    return np.array([int(np.flatnonzero(order == index)[0]) for order, index in zip(space.order, originals, strict=True)], np.int64)


def corners(instance: Instance, space: Grid, boxes: Boxes) -> Corners:
    """The best device of each box, under each set of constants. For a single point it is the device itself, bit by bit."""
    chips = _corners(instance, space, boxes)
    others = tuple((other, _corners(other, space, boxes)) for _, other in under_each(instance))
    return replace(chips, alive=np.logical_and.reduce([chips.alive, *(other.alive for _, other in others)]), others=others)


def corners_in(chips: Corners, rows: Ints) -> Corners:
    """Some of the devices, under each set of constants."""
    others = tuple((other, corners_in(same, rows)) for other, same in chips.others)
    return Corners(take(chips.hardware, rows), chips.alive[rows], others)


def chips_at(instance: Instance, points: Ints) -> Corners:
    """Devices of some points under one set of constants."""
    if isinstance(instance.hardware, Hardware):
        hardware = as_arrays(with_prices(instance, instance.hardware), len(points))
        return Corners(hardware, np.broadcast_to(within(instance, hardware), points.shape))
    device, made = generated(instance.hardware, points)
    hardware = with_prices(instance, as_arrays(device, len(points)), made)
    return Corners(hardware, np.broadcast_to(buildable(hardware) & within(instance, hardware), points.shape))


def _corners(instance: Instance, space: Grid, boxes: Boxes) -> Corners:
    """The best device of each box under one set of constants."""
    if isinstance(instance.hardware, Hardware):
        hardware = as_arrays(with_prices(instance, instance.hardware), len(boxes))
        return Corners(hardware, np.broadcast_to(within(instance, hardware), (len(boxes),)))
    every = (values.tobytes() for values in (*space.options, boxes.low, boxes.high))
    key = (id(instance), boxes.high is boxes.low, space.names, *every)
    if (known := _LATELY.get(key)) is None:
        if len(_LATELY) == _MOST:
            _LATELY.clear()
        known = _LATELY[key] = instance, _free_corners(instance, instance.hardware, space, boxes)
    return known[1]


_LATELY: dict[tuple[object, ...], tuple[Instance, Corners]] = {}
"""Best devices by question and boxes: engines, rules and checks of a question look at the same boxes. It is emptied when full."""
_MOST = 512


def _free_corners(instance: Instance, free: FreeHardware, space: Grid, boxes: Boxes) -> Corners:
    """The best device of each box under one set of constants, where the chip is free."""
    least = split_of(free, _values(space, boxes.low))
    most = least if boxes.high is boxes.low else split_of(free, _values(space, boxes.high))
    best = envelope(free.technology, least, most)
    fewest = _values(space, boxes.low).get("hbm_stacks", best.least_stacks)
    device = device_of(free, best.best, least, most, fewest)
    device = replace(device, open_bundles=best.open_bundles, headroom=headroom_of(best.headroom, 0.0))
    # Arrays first, as `devices` has them: a power of one number and of many may differ in the last place.
    made = made_of(free, least, most, best.least_stacks)
    hardware = _cheapest(instance, space, boxes, as_arrays(device, len(boxes)), made)
    differ = (boxes.low < boxes.high).any(axis=1)
    hardware = replace(hardware, price=hardware.price * np.where(differ, 1.0 - _OUTWARD, np.ones(len(boxes))))
    return Corners(hardware, np.broadcast_to(buildable(hardware) & within(instance, hardware), (len(boxes),)))


def _cheapest(instance: Instance, space: Grid, boxes: Boxes, device: Hardware, made: Made) -> Hardware:
    """The devices with the least price over all numbers of dies in their boxes."""
    with_price = with_prices(instance, device, made)
    if instance.prices is None or "dies" not in space.names:
        return with_price
    choice, price = space.names.index("dies"), with_price.price
    for index, dies in enumerate(space.options[choice].tolist()):
        inside = (boxes.low[:, choice] <= index) & (index <= boxes.high[:, choice])
        price = np.where(inside, np.minimum(price, with_prices(instance, device, replace(made, dies=dies)).price), price)
    return replace(with_price, price=price)


def stacked(parts: Sequence[Boxes]) -> Boxes:
    """Concatenation of boxes."""
    return Boxes(np.concatenate([part.low for part in parts]), np.concatenate([part.high for part in parts]))


Ranges = tuple[tuple[int, int, int], ...]
"""Choices, each with the first and the last index that a box keeps."""


def parted(box: Boxes, ranges: Ranges) -> Boxes:
    """One box reduced to the kept ranges, choice by choice, and the parts removed."""
    low, high, parts = box.low[0].copy(), box.high[0].copy(), []
    for choice, first, last in ranges:
        for start, end in ((low[choice], first - 1), (last + 1, high[choice])):
            if start <= end:
                part = low.copy(), high.copy()
                part[0][choice], part[1][choice] = start, end
                parts.append(part)
        low[choice], high[choice] = first, last
    rows = ((low, high), *parts)
    return Boxes(np.stack([row[0] for row in rows]), np.stack([row[1] for row in rows]))


def tightened(instance: Instance, space: Grid, boxes: Boxes) -> Boxes:
    """The boxes without the lowest and highest options that allow no buildable device within the budgets.

    Options are out for a box if the slice of the box at these options holds no such device. A box without any is left as it is.
    """
    low, high = boxes.low.copy(), boxes.high.copy()
    rows, choices, first, last = _slices(boxes)
    if isinstance(instance.hardware, Hardware) or not len(rows):
        return boxes
    slices, every = Boxes(low[rows], high[rows]), np.arange(len(rows))
    slices.low[every, choices], slices.high[every, choices] = first, last
    alive = corners(instance, space, slices).alive
    low[rows, choices], high[rows, choices] = high[rows, choices], low[rows, choices]
    np.minimum.at(low, (rows[alive], choices[alive]), first[alive])
    np.maximum.at(high, (rows[alive], choices[alive]), last[alive])
    dead = (low > high).any(axis=1)
    low[dead], high[dead] = boxes.low[dead], boxes.high[dead]
    return Boxes(low, high)


@remembered
def root_box(instance: Instance) -> Boxes:
    """The box of all points, tightened."""
    space = grid(instance)
    return tightened(instance, space, full_box(space))


def _slices(boxes: Boxes) -> tuple[Ints, Ints, Ints, Ints]:
    """Parts of every open choice of every box, at most `_PARTS` of about equal size: box, choice, first and last index."""
    widths = np.where(boxes.high > boxes.low, boxes.high - boxes.low + 1, 0)
    rows, choices = np.nonzero(widths)
    width = widths[rows, choices]
    parts = np.minimum(width, _PARTS)
    number = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    rows, choices, width, parts = (np.repeat(column, parts) for column in (rows, choices, width, parts))
    start = boxes.low[rows, choices]
    return rows, choices, start + number * width // parts, start + (number + 1) * width // parts - 1


def _values(space: Grid, places: Ints) -> dict[str, Array]:
    return {name: values[places[:, column]] for column, (name, values) in enumerate(zip(space.names, space.options, strict=True))}


def within(instance: Instance, hardware: Hardware) -> Mask:
    """Devices within the budgets of area, power and heat, and within the reticle."""
    limits = ("die_area", "package_area", "power", "power_density", "one_die")
    return np.asarray(np.logical_and.reduce([is_within(getattr(hardware, name), getattr(instance.budget, name)) for name in limits]))
