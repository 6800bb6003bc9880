"""Where a box is cut: off what can be forgotten at the ends of choices, or in the middle of the choice that tells most."""

from collections.abc import Callable, Sequence

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.instances.codesign.boxes import Boxes, Kept, parted, stacked

_CUTS = 32
"""Cuts of one choice that are tried."""
_ROUNDS = 3
"""How often the ends of all choices are tried before the plans are looked at again."""
_LEAST_GAIN = 1.0e-6
"""Share of its bound that a part is taken to gain at the least, so that the other part's gain counts where it gains nothing."""


def single(box: Boxes) -> bool:
    """Whether a box is one point."""
    return bool((box.low == box.high).all())


def best_cuts(boxes: Sequence[Boxes], least: Callable[[Boxes], Array], value: float) -> list[Kept]:
    """Where to cut each box: off what can be forgotten at once at the ends of all choices, until there is no such thing; then in the
    middle of the choice that tells most.

    Cuts of every choice are tried by their least bounds, those of all boxes together. The upper part keeps the best device, but not its
    price and power; a choice tells the more, the greater the product of what the bounds of both parts gain (Achterberg 2007).
    """
    left, kept = list(boxes), [Kept()] * len(boxes)
    going = list(range(len(boxes)))
    for _ in range(_ROUNDS):
        cuts = {number: _cuts(left[number]) for number in going}
        going = [number for number, (choices, _) in cuts.items() if len(choices)]
        if not going:
            break
        found = iter(np.split(*_bounds_of([(left[number], *cuts[number]) for number in going], least)))
        for number in tuple(going):
            keeps, cut_off = _cut(left[number], *cuts[number], next(found), value)
            kept[number] = (*kept[number], *keeps)
            if cut_off:
                left[number] = parted(left[number], keeps).at(0)
            else:
                going.remove(number)
    return kept


def _bounds_of(cuts: Sequence[tuple[Boxes, Whole, Whole]], least: Callable[[Boxes], Array]) -> tuple[Array, list[int]]:
    """The least bounds of all sides of all cuts, and where those of the next box begin."""
    sides = [sides_of(*cut) for cut in cuts]
    return least(stacked(sides)), np.cumsum([len(some) for some in sides])[:-1].tolist()


def _cut(box: Boxes, choices: Whole, places: Whole, bounds: Array, value: float) -> tuple[Kept, bool]:
    """What to keep of one box, and whether that is because the rest can be forgotten."""
    lower, upper = bounds.reshape(2, -1)
    ends = _forgotten(box, choices, places, lower >= value, upper >= value)
    if ends:
        return ends, True
    halves = places == (box.low[0, choices] + box.high[0, choices]) // 2
    middle = np.where(halves, told(bounds.reshape(2, -1)), -np.inf)
    best = int(np.argmax(middle))
    return ((int(choices[best]), int(box.low[0, choices[best]]), int(places[best])),), False


def told(bounds: Array) -> Array:
    """How much cuts tell, by the bounds of their lower parts and of their upper ones: most where there is nothing in a part."""
    gains = bounds - bounds.min() * (1.0 - _LEAST_GAIN)
    return np.where(np.isinf(bounds).any(axis=0), np.inf, np.multiply(*np.where(np.isinf(bounds), 0.0, gains)))


def _cuts(box: Boxes) -> tuple[Whole, Whole]:
    """Where a box may be cut: choices, and places up to which the lower parts go."""
    places = [_places(box, choice) for choice in range(box.low.shape[1])]
    choices = np.repeat(np.arange(len(places)), [len(some) for some in places])
    return choices, np.array([place for some in places for place in some], np.int64)


def sides_of(box: Boxes, choices: Whole, places: Whole) -> Boxes:
    """The lower parts of all cuts, and then the upper ones."""
    count, every = len(choices), np.arange(len(choices))
    low, high = np.repeat(box.low, 2 * count, axis=0), np.repeat(box.high, 2 * count, axis=0)
    high[every, choices], low[every + count, choices] = places, places + 1
    return Boxes(low, high)


def _forgotten(box: Boxes, choices: Whole, places: Whole, lower: Mask, upper: Mask) -> Kept:
    """What is left of the choices when the largest parts that can be forgotten are cut off at both ends."""
    low, high = box.low[0], box.high[0]
    first, last = low.copy(), high.copy()
    np.maximum.at(first, choices[lower], places[lower] + 1)
    np.minimum.at(last, choices[upper], places[upper])
    # Where the two parts meet, nothing of the box is left: one of them is cut off, and the other is what is kept.
    last = np.where(first > last, high, last)
    return tuple((choice, int(first[choice]), int(last[choice])) for choice in np.flatnonzero((first > low) | (last < high)).tolist())


def _places(box: Boxes, choice: int) -> list[int]:
    """Where a choice may be cut: after every option, or after some thirty of them and the middle one."""
    low, high = int(box.low[0, choice]), int(box.high[0, choice])
    step = max(1, (high - low) // _CUTS)
    return sorted({*range(low, high, step), (low + high) // 2}) if low < high else []
