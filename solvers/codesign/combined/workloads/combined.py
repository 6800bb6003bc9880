"""Several workloads: the plans of each that may still make their figure small."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.instances.codesign.boxes import Boxes, Corners, Grid, corners
from crossopt.instances.codesign.instance import Instance, under_each
from crossopt.solvers.codesign.boxes.branch import Rows
from crossopt.solvers.codesign.objective import Joint, combined


def in_place(asked: Joint, minima: Sequence[float], place: int, values: Array) -> Array:
    """The figure of the least values with others in the place of one workload's."""
    return combined(asked, [values if number == place else np.float64(least) for number, least in enumerate(minima)])


def chips_of(asked: Joint, space: Grid, boxes: Boxes) -> tuple[Corners, ...]:
    """The best device of each box under each set of constants, as each workload finds it, in the precision in which it computes; equal
    ones are made once."""
    found: list[Corners] = []
    offered = [(part.hardware, part.others) for part in asked.parts]
    for place, part in enumerate(asked.parts):
        same = offered.index(offered[place])
        found.append(corners(part, space, boxes) if same == place else _seen_by(part, found[same]))
    return tuple(found)


def _seen_by(part: Instance, chips: Corners) -> Corners:
    """Devices made for another workload, under the same sets of constants."""
    others = tuple((other, same) for (_, other), (_, same) in zip(under_each(part), chips.others, strict=True))
    return replace(chips, others=others)


def minima_of(lists: Sequence[Rows]) -> list[float]:
    """The least bound of each workload; infinite where none of its plans is left."""
    return [float(rows.bounds[0]) if len(rows) else float("inf") for rows in lists]


def below(asked: Joint, lists: Sequence[Rows], value: float) -> tuple[Rows, ...]:
    """The plans with which the figure may be below a value; none of any workload where it cannot."""
    minima = minima_of(lists)
    counts = [int(np.count_nonzero(in_place(asked, minima, place, rows.bounds) < value)) for place, rows in enumerate(lists)]
    return tuple(rows.part(slice(count if all(counts) else 0)) for rows, count in zip(lists, counts, strict=True))
