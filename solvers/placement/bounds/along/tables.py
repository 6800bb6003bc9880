"""A question made ready for rounds of the program along the blocks: all states without loads, and the least energy to come from each.

`solvers.placement.bounds.along.bound` says what energies are.
"""

from dataclasses import dataclass, replace
from math import ceil
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.placement.blocks import Blocks, Figures
from crossopt.formulation.placement.throughput import Machine
from crossopt.solvers.placement.bounds.order import Step, Sweep, devices_for, put, swept

LOAD = 31
"""Binary digits of a load."""
_DIGITS = 62
_WHOLE = 1 << 61
"""What sums of whole numbers must stay below."""
SCALE = 1 << 16
_MULTIPLIERS, _KEPT = (0.125, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0), 2
"""Multipliers of the CPUs that are tried, in what a millisecond of theirs takes off an accelerator at the most, and how many are kept."""
_SIGNATURES = 1 << 18
"""States without loads at one step, above which a graph is too wide."""
_FINE = 10
"""Binary digits by which cells must be able to be finer than the limit."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Of one step: all signatures in rising order, and the least energy h to come from each."""

    signature: Whole
    to_come: tuple[Whole, ...]
    """For each multiplier."""


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """A question in whole quanta, ready for rounds of the program."""

    figures: Figures
    sweep: Sweep
    accelerators: int
    cpus: int
    limit: int
    multipliers: tuple[int, ...]
    tables: tuple[Table, ...]
    """After each step, the first before any."""

    @property
    def devices(self) -> int:
        return self.accelerators + (self.cpus > 0)

    @property
    def states(self) -> int:
        """Without loads, after all steps."""
        return sum(len(table.signature) for table in self.tables[1:])

    @property
    def finest(self) -> int:
        """Binary digits of the finest cells, so many that one number holds the cell of all devices."""
        return min(_DIGITS // self.devices, LOAD) - 1


def course_for(blocks: Blocks, figures: Figures, machine: Machine, most: int, deadline: float, states: int) -> Course | None:
    """The question made ready; None where too many nets are open at a time, or more than so many states are possible without loads."""
    sweeps, devices = swept(blocks, figures), machine.accelerators + (machine.cpus > 0)
    width = max(sweep.width for sweep in sweeps)
    if width * devices > _DIGITS or width + LOAD > _DIGITS or (_FINE + 1) * devices > _DIGITS:
        return None
    rate = max((work / cpu for work, cpu in zip(figures.accelerator, figures.cpu, strict=True) if cpu), default=0.0)
    course = Course(figures, sweeps[0], machine.accelerators, machine.cpus, most, (), ())
    tried = dict.fromkeys(ceil(SCALE * share * rate) for share in _MULTIPLIERS) if machine.cpus else (0,)
    course = replace(course, multipliers=tuple(one for one in tried if _most_energy(course, one) < _WHOLE))
    if not course.multipliers:
        return None
    found = [_with_tables(replace(course, sweep=sweep), deadline, states) for sweep in sweeps]
    ready = [one for one in found if one is not None and monotonic() < deadline]  # not one where there was no time for both
    return min(ready, key=lambda one: max(len(table.signature) for table in one.tables), default=None)


def _most_energy(course: Course, multiplier: int) -> int:
    """Energies of all states, and what they are held against, are no further from zero."""
    figures = course.figures
    work = sum(figures.accelerator) + course.accelerators * (sum(figures.transfer) + course.limit)
    return SCALE * work + multiplier * (sum(figures.cpu) + course.cpus * course.limit)


def _with_tables(course: Course, deadline: float, states: int) -> Course | None:
    """With the best multipliers, and the tables for them."""
    tables = _tables(course, deadline, states)
    if tables is None:
        return None
    course = replace(course, tables=tables)
    tops = least_limits(course)
    kept = sorted(range(len(tops)), key=lambda number: -tops[number])[:_KEPT]
    tables = tuple(Table(table.signature, tuple(table.to_come[number] for number in kept)) for table in tables)
    return replace(course, multipliers=tuple(course.multipliers[number] for number in kept), tables=tables)


def _tables(course: Course, deadline: float, states: int) -> tuple[Table, ...] | None:
    """All states without loads, forward, and the least energies to come, backward; None where they are too many."""
    held = np.zeros((course.devices, 1), np.int64)
    signatures, ways = [signature_of(held, course)], list[list[tuple[Whole, Whole, tuple[Whole, ...]]]]()
    for step in course.sweep.steps:
        found = [(device, *put(held, device, step, course.accelerators)) for device in devices(course, step)]
        signs = [signature_of(_renamed(after, course), course) for _, _, after in found]
        every, first = np.unique(np.concatenate(signs), return_index=True)
        states -= len(every)
        if len(every) > _SIGNATURES or states < 0 or monotonic() >= deadline:
            return None
        held = np.concatenate([_renamed(after, course) for _, _, after in found], axis=1)[:, first]
        costs = [tuple(_energy(course, step, device, paid, one) for one in course.multipliers) for device, paid, _ in found]
        rows = np.arange(len(signatures[-1]))
        ways.append([(rows, np.searchsorted(every, sign), cost) for sign, cost in zip(signs, costs, strict=True)])
        signatures.append(every)
    to_come = tuple(np.zeros(1, np.int64) for _ in course.multipliers)
    tables = [Table(signatures[-1], to_come)]
    for signature, way in zip(signatures[-2::-1], ways[::-1], strict=True):
        last = tables[-1].to_come
        best = tuple(
            np.minimum.reduce([cost[number] + last[number][goal] for _, goal, cost in way]) for number in range(len(course.multipliers))
        )
        tables.append(Table(signature, best))
    return tuple(tables[::-1])


def _energy(course: Course, step: Step, device: int, paid: Whole, multiplier: int) -> Whole:
    own = 0 if device < course.accelerators else multiplier * course.figures.cpu[step.block] - SCALE * work_of(course, step.block)
    return np.asarray(SCALE * paid.sum(axis=0) + own)


def work_of(course: Course, block: int) -> int:
    return course.figures.accelerator[block] if course.figures.supported[block] else 0


def least_limits(course: Course) -> list[int]:
    """The least T for which the energy of nothing placed is within what T allows, for each multiplier."""
    total = SCALE * sum(work_of(course, block) for block in range(len(course.figures.accelerator)))
    return [
        -(-(total + int(energy[0])) // (SCALE * course.accelerators + one * course.cpus))
        for one, energy in zip(course.multipliers, course.tables[0].to_come, strict=True)
    ]


def devices(course: Course, step: Step) -> list[int]:
    return list(devices_for(step.block, course.figures, course.accelerators, course.cpus, course.limit))


def _renamed(held: Whole, course: Course) -> Whole:
    """Accelerators in the order of the nets they hold."""
    return _in_order(held, course.accelerators)


def rename_with(held: Whole, load: Whole, course: Course) -> tuple[Whole, Whole]:
    """The same, and of those that hold equal nets in the order of their loads."""
    held, load, own = held.copy(), load.copy(), slice(course.accelerators)
    both = _in_order((held[own] << LOAD) | load[own], course.accelerators)
    held[own], load[own] = both >> LOAD, both & ((1 << LOAD) - 1)
    return held, load


def _in_order(rows: Whole, count: int) -> Whole:
    """Each column's first figures in rising order, by comparing neighbours: they are few, and columns are many."""
    rows = rows.copy()
    for start in (turn % 2 for turn in range(count)):
        for one in range(start, count - 1, 2):
            rows[one], rows[one + 1] = np.minimum(rows[one], rows[one + 1]), np.maximum(rows[one], rows[one + 1])
    return rows


def signature_of(held: Whole, course: Course) -> Whole:
    """One number for the nets that all devices hold."""
    found = np.zeros(held.shape[1], np.int64)
    for row in held:
        found = (found << course.sweep.width) | row
    return found
