"""How tensors lie on a mesh of devices, and the time it takes to lay them otherwise.

A mesh has one or more axes; along each axis a tensor is whole on every rank, or split along one of its own axes, or partial: every rank has
a summand of it. Axes change in the order that leaves less to move for those that follow, those that change alike together:

    slice       whole   -> split          nothing moves
    scatter     partial -> split          a reduce-scatter
    exchange    split   -> another split  an all-to-all, axis by axis
    sum         partial -> whole          an all-reduce
    gather      split   -> whole          an all-gather
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Literal

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.collectives import Members, all_gather, all_reduce_time, all_to_all, exchange_time, members_on_levels
from crossopt.crossflow.exchanges.spread import Spread, each, together
from crossopt.crossflow.hardware import Link

Piece = Literal["whole", "batch", "sequence", "feature", "partial"]
Change = Literal["none", "slice", "scatter", "exchange", "sum", "gather"]
Lay = tuple[Piece, ...]
"""For each axis of the mesh."""


@dataclass(frozen=True, slots=True)
class MeshAxis:
    """A number of ranks and their spread over the levels of the network."""

    ranks: int
    members: Spread


def mesh_axes(sizes: Sequence[int], level_sizes: tuple[int, ...]) -> tuple[MeshAxis, ...]:
    """The axes of a mesh; ranks of the last axis are neighbours."""
    strides = [prod(sizes[place + 1 :]) for place in range(len(sizes))]
    spreads = (members_on_levels(np.array([size]), np.array([stride]), level_sizes) for size, stride in zip(sizes, strides, strict=True))
    return tuple(MeshAxis(size, each(_first, spread)) for size, spread in zip(sizes, spreads, strict=True))


def _first(part: Real) -> float:
    return float(np.ravel(part)[0])


def share(lay: Lay, axes: Sequence[MeshAxis]) -> float:
    """Share of a tensor that one device holds."""
    return 1.0 / prod(axis.ranks for piece, axis in zip(lay, axes, strict=True) if piece not in {"whole", "partial"})


def reshard_time(size: float, before: Lay, after: Lay, axes: Sequence[MeshAxis], links: tuple[Link, ...]) -> float:
    """Seconds to convert a tensor of this size from one layout to another; 0 if nothing moves."""
    time, now = 0.0, list(before)
    for change in ("slice", "scatter", "exchange", "sum", "gather"):
        places = [place for place in range(len(axes)) if _change(before[place], after[place]) == change]
        for group in [[place] for place in places] if change == "exchange" else [places] if places else []:
            kept = [(piece, axis) for place, (piece, axis) in enumerate(zip(now, axes, strict=True)) if place not in group]
            mine = size * share(tuple(piece for piece, _ in kept), [axis for _, axis in kept])
            time += _change_time(change, mine, _members([axes[place] for place in group]), links)
        for place in places:
            now[place] = after[place]
    return time


def _change(before: Piece, after: Piece) -> Change:
    if before == after:
        return "none"
    if before == "whole":
        return "slice"
    if before == "partial":
        return "sum" if after == "whole" else "scatter"
    return "gather" if after == "whole" else "exchange"


def _members(group: Sequence[MeshAxis]) -> Spread:
    """Spread of all ranks of some axes together, so that collectives run level by level."""
    return reduce(together, (axis.members for axis in group))


def _change_time(change: Change, size: float, members: Members, links: tuple[Link, ...]) -> float:
    """Seconds of a collective on a tensor of this size over all these ranks."""
    if change == "slice":
        return 0.0
    if change == "exchange":
        return float(exchange_time(all_to_all(size / prod(members), members), links))
    if change == "sum":
        return float(all_reduce_time(size, members, links))
    return float(exchange_time(all_gather(size, members), links))
