"""One round of the program along the blocks: step by step all states that may become placements within the limit.

`solvers.placement.bounds.along.bound` says which do, and what states of one cell become.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crossopt.crossflow.arrays import Mask, Whole
from crossopt.solvers.placement.bounds.along.tables import (
    LOAD,
    SCALE,
    Course,
    Table,
    devices,
    least_limits,
    rename_with,
    signature_of,
    work_of,
)
from crossopt.solvers.placement.bounds.order import Step, put

Column: TypeAlias = NDArray[np.int32]
_MOST = 1 << 21
"""States at one step."""
_MOST_KEPT = 1 << 24
"""States of a round."""
_COARSER_CPU = 4
"""Binary digits by which cells are wider for CPUs, which take off little."""
_THREADS = 2
_NEIGHBOURS = 12
"""So many states before one may beat it."""
_ENDS = 32
"""States in the end that are made placements."""


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """Columns: what each device holds and does, where the state came from, and a state of the round before that does no more."""

    held: Whole
    load: Whole
    whence: Column
    """The column of the state before, times the devices, plus the device of the block."""
    guide: Column

    def __len__(self) -> int:
        return len(self.whence)

    def at(self, columns: Whole) -> "States":
        return States(self.held[:, columns], self.load[:, columns], self.whence[columns], self.guide[columns])


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """A bound in quanta, the columns in the end with the least busy devices first, and for each step where its states came from and go."""

    bound: int
    ends: Whole
    ways: tuple[Column, ...] = ()
    kept: int = 0
    """States of all steps together."""
    goes: tuple[Column, ...] = ()
    """A row for each state before the step and a column for each device: the state after it, or -1 if that leads to no end."""


def unguided(course: Course) -> Round:
    """What is known before the first round: each block may go anywhere."""
    anywhere = np.zeros((1, course.devices), np.int32)
    return Round(max(least_limits(course)), np.zeros(0, np.int64), goes=(anywhere,) * len(course.sweep.steps))


def next_round(course: Course, before: Round, digits: int, deadline: float, most: int) -> Round | None:
    """With the limit for a bound where nothing is left; None where time ran out or states are too many, or more than so many."""
    nothing, none = np.zeros((course.devices, 1), np.int64), np.zeros(1, np.int32)
    states, ways, goes = States(nothing, nothing, none, none), list[Column](), list[Column]()
    left, kept = sum(work_of(course, step.block) for step in course.sweep.steps), 0
    with ThreadPoolExecutor(_THREADS) as threads:
        for step, table, guide in zip(course.sweep.steps, course.tables[1:], before.goes, strict=True):
            if len(states) > _MOST or kept > min(_MOST_KEPT, most) or monotonic() >= deadline:
                return None
            left -= work_of(course, step.block)
            place = partial(_placed, course, step, states=states, table=table, left=left, guide=guide)
            found = _together(list(threads.map(place, devices(course, step))))
            if not len(found):
                return Round(course.limit, np.zeros(0, np.int64), kept=kept)
            after, place_of = _in_cells(course, found, digits)
            goes.append(np.full((len(states), course.devices), -1, np.int32))
            goes[-1].ravel()[found.whence] = place_of
            ways.append(after.whence)
            states, kept = after, kept + len(after)
    if kept > most:
        return None
    load = states.load.copy()
    if course.cpus:
        load[-1] //= course.cpus
    busiest = load.max(axis=0)
    return Round(int(busiest.min()), np.argsort(busiest, kind="stable")[:_ENDS], tuple(ways), kept, _leading_on(goes))


def _leading_on(goes: list[Column]) -> tuple[Column, ...]:
    """Without what leads to states from which nothing goes on."""
    for step in range(len(goes) - 1, 0, -1):
        dead: Mask = np.logical_and.reduce(goes[step] < 0, axis=1)
        goes[step - 1][(goes[step - 1] >= 0) & dead[goes[step - 1]]] = -1
    return tuple(goes)


def _together(parts: Sequence[States]) -> States:
    held, load, whence, guide = zip(*((part.held, part.load, part.whence, part.guide) for part in parts), strict=True)
    return States(np.concatenate(held, axis=1), np.concatenate(load, axis=1), np.concatenate(whence), np.concatenate(guide))


def _placed(course: Course, step: Step, device: int, states: States, table: Table, left: int, guide: Column) -> States:
    """The states with the block on this device that may become placements within the limit."""
    accelerators, leads = course.accelerators, guide[states.guide, device]
    origin = np.flatnonzero(leads >= 0)
    paid, held = put(states.held[:, origin], device, step, accelerators)
    load = states.load[:, origin]
    load[:accelerators] += paid
    load[device] += (course.figures.accelerator if device < accelerators else course.figures.cpu)[step.block]
    keep: Mask = np.logical_and.reduce(load[:accelerators] <= course.limit)
    if course.cpus:
        keep &= load[-1] <= course.cpus * course.limit
    held, load = rename_with(held[:, keep], load[:, keep], course)
    origin = origin[keep]
    found = States(held, load, (origin * course.devices + device).astype(np.int32), leads[origin])
    place = np.searchsorted(table.signature, signature_of(held, course))
    work = SCALE * (load[:accelerators].sum(axis=0) + left)
    within = np.ones(len(place), bool)
    for one, to_come in zip(course.multipliers, table.to_come, strict=True):
        allowed = (SCALE * accelerators + one * course.cpus) * course.limit
        within &= work + (one * load[-1] if course.cpus else 0) + to_come[place] <= allowed
    return found.at(np.flatnonzero(within))


def _in_cells(course: Course, states: States, digits: int) -> tuple[States, Whole]:
    """States of one cell and guide made one, without those that one near it beats, and the state that each has become or is beaten by.

    Accelerators take turns in being the last that is looked at.
    """
    order, signature, cell = _sorted(course, states, digits, 0, guided=True)
    guide = states.guide[order]
    fresh = (signature[1:] != signature[:-1]) | (cell[1:] != cell[:-1]) | (guide[1:] != guide[:-1])
    first = np.flatnonzero(np.concatenate([[True], fresh]))
    place_of = np.empty(len(order), np.int64)
    place_of[order] = np.concatenate([[0], np.cumsum(fresh)])
    lead = states.at(order[first])
    states = replace(lead, load=np.minimum.reduceat(states.load[:, order], first, axis=1))
    for turn in range(course.accelerators):
        order, signature, _ = _sorted(course, states, digits, turn)
        load, better = states.load[:, order], np.arange(len(order))
        for step in range(1, min(_NEIGHBOURS + 1, len(order))):
            beaten = (signature[step:] == signature[:-step]) & (load[:, step:] >= load[:, :-step]).all(axis=0)
            better[step:][beaten] = np.flatnonzero(beaten)
        better, kept = _last(better), np.flatnonzero(better == np.arange(len(order)))
        place = np.empty(len(order), np.int64)
        place[order] = np.searchsorted(kept, better)
        place_of, states = place[place_of], states.at(order[kept])
    return states, place_of


def _last(better: Whole) -> Whole:
    """Whom nobody beats, of those who are beaten by one before them, who may be beaten too."""
    while (beyond := better[better]).tobytes() != better.tobytes():
        better = beyond
    return better


def _sorted(course: Course, states: States, digits: int, turn: int, guided: bool = False) -> tuple[Whole, Whole, Whole]:
    """The order of states by the nets they hold and then by their cells, and both in this order."""
    signature, shift, load = signature_of(states.held, course), LOAD - 1 - digits, states.load
    cell = np.zeros(len(signature), np.int64)
    for own in np.roll(load[: course.accelerators], turn, axis=0):
        cell = (cell << (digits + 1)) | (own >> shift)
    if course.cpus:
        cores = load[-1] >> (shift + _COARSER_CPU)
        cell = cell * (int(cores.max()) + 1) + cores
    order = np.lexsort((states.guide, cell, signature) if guided else (cell, signature))
    return order, signature[order], cell[order]
