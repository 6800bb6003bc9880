"""Several workloads: the plans of each that may still make their figure small."""

from collections.abc import Sequence

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.instances.codesign.boxes import Boxes, Corners, Grid, corners
from crossopt.instances.codesign.instance import FreeHardware
from crossopt.solvers.codesign.boxes.branch import Rows
from crossopt.solvers.codesign.objective import Joint, combined


def in_place(asked: Joint, minima: Sequence[float], place: int, values: Array) -> Array:
    """The figure of the least values with others in the place of one workload's."""
    return combined(asked, [values if number == place else np.float64(least) for number, least in enumerate(minima)])


def chips_of(asked: Joint, space: Grid, boxes: Boxes) -> tuple[Corners, ...]:
    """The best device of each box, as each workload finds it, in the precision in which it computes; equal ones are made once."""
    found: dict[int, Corners] = {}
    chips = [part.hardware.technology if isinstance(part.hardware, FreeHardware) else part.hardware for part in asked.parts]
    for place, chip in enumerate(chips):
        same = chips.index(chip)
        found[place] = found[same] if same < place else corners(asked.parts[place], space, boxes)
    return tuple(found.values())


def minima_of(lists: Sequence[Rows]) -> list[float]:
    """The least bound of each workload; infinite where none of its plans is left."""
    return [float(rows.bounds[0]) if len(rows) else float("inf") for rows in lists]


def below(asked: Joint, lists: Sequence[Rows], value: float) -> tuple[Rows, ...]:
    """The plans with which the figure may be below a value; none of any workload where it cannot."""
    minima = minima_of(lists)
    counts = [int(np.count_nonzero(in_place(asked, minima, place, rows.bounds) < value)) for place, rows in enumerate(lists)]
    return tuple(rows.part(slice(count if all(counts) else 0)) for rows, count in zip(lists, counts, strict=True))
