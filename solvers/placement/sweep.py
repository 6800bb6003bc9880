"""A bound on the busiest device by dynamic programming along the blocks, for graphs that are long rather than wide.

States are those of `formulation.placement.sweep`: what each device does, and which open nets it has pins of. From a limit T on, a state is
left out that cannot become a placement no busier than T:

    load     an accelerator does more than T already, or the CPUs do more than l T together
    energy   65536 (loads of accelerators + p of all blocks to come) + a (load of CPUs) + h > 65536 k T + a l T
             with h the least of 65536 (transfers - p on CPUs) + a (q on CPUs) over all ways to place what is to come, whatever the loads:
             the same program without loads, backward; for some whole a >= 0 (a Lagrange multiplier of the CPUs, in 65536ths)

States of the same nets whose loads lie in one cell become one state with the least load of them on each device, which no placement of
theirs is below; and a state is left out that does no less on any device than one next to it. Nothing left: no placement is within T.
Otherwise none is below the least that the busiest device does in what is left in the end. Each round has cells half as wide as the one
before. Memory is not looked at, and CPUs are one device of l times the speed, both of which can only lower the bound. All figures are
whole quanta, rounded down. States are many where accelerators are: more than four are left to others.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from time import monotonic

import numpy as np

from crossflow.arrays import Index, Mask
from formulation.placement.assignment import Machine
from formulation.placement.blocks import Blocks
from formulation.placement.reductions import contracted
from formulation.placement.rows import Figures, figures_of
from formulation.placement.sweep import Step, Sweep, devices_for, put, swept
from formulation.rounding import floored, real

PROOF = "a dynamic program along the blocks"
_STEPS, _LOAD = 1 << 30, 31
"""Quanta of the limit, and binary digits of a load."""
_DIGITS = 62
_WHOLE = 1 << 61
"""What sums of whole numbers must stay below."""
_SCALE = 1 << 16
_MULTIPLIERS, _KEPT = (0.125, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0), 2
"""Multipliers of the CPUs that are tried, in what a millisecond of theirs takes off an accelerator at the most, and how many are kept."""
_SIGNATURES = 1 << 18
"""States without loads at one step, above which a graph is too wide."""
_MOST = 1 << 21
"""States at one step."""
_COARSEST, _FINEST, _COARSER_CPU = 5, 10, 4
"""Binary digits by which a cell is finer than the limit, at first and at last; digits fewer for CPUs, which take off little."""
_THREADS = 2
_LONGER = 2.0
"""So many times longer takes the next round, at least."""
_NEIGHBOURS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Of one step: all signatures in rising order, and the least energy h to come from each."""

    signature: Index
    to_come: tuple[Index, ...]
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


def bounds(blocks: Blocks, machine: Machine, limit: float, least: float, deadline: float) -> Iterator[float]:
    """Better and better bounds up to the limit, in milliseconds, as long as they become better fast enough."""
    if machine.overlapped or not machine.accelerators or limit <= 0.0 or not len(blocks):
        return
    blocks = contracted(blocks, machine, limit)
    figures = figures_of(blocks, machine.memory, limit, _STEPS)
    most = int(floored([limit], figures.quantum)[0]) + 1
    if any(not runs and (cpu > most or not machine.cpus) for runs, cpu in zip(figures.supported, figures.cpu, strict=True)):
        yield limit
        return
    course = _course(blocks, figures, machine, most, deadline)
    if course is None:
        return
    quantum, began, best, digits = course.figures.quantum, monotonic(), least, _COARSEST
    found: int | None = max(_least_limits(course))
    while found is not None:
        bound = min(limit, real(found, quantum))
        if bound > best:
            yield bound
        best = max(best, bound)
        if best >= limit or digits > _FINEST or monotonic() + _LONGER * (monotonic() - began) > deadline:
            return
        began, found, digits = monotonic(), _round(course, digits, deadline), digits + 1


def _course(blocks: Blocks, figures: Figures, machine: Machine, most: int, deadline: float) -> Course | None:
    """The question made ready; None where too many nets are open at a time."""
    sweeps, devices = swept(blocks, figures), machine.accelerators + (machine.cpus > 0)
    width = max(sweep.width for sweep in sweeps)
    if width * devices > _DIGITS or width + _LOAD > _DIGITS or (_FINEST + 1) * devices > _DIGITS:
        return None
    rate = max((work / cpu for work, cpu in zip(figures.accelerator, figures.cpu, strict=True) if cpu), default=0.0)
    course = Course(figures, sweeps[0], machine.accelerators, machine.cpus, most, (), ())
    tried = dict.fromkeys(ceil(_SCALE * share * rate) for share in _MULTIPLIERS) if machine.cpus else (0,)
    course = replace(course, multipliers=tuple(one for one in tried if _most_energy(course, one) < _WHOLE))
    if not course.multipliers:
        return None
    found = [_with_tables(replace(course, sweep=sweep), deadline) for sweep in sweeps]
    ready = [one for one in found if one is not None]
    return min(ready, key=lambda one: max(len(table.signature) for table in one.tables), default=None)


def _most_energy(course: Course, multiplier: int) -> int:
    """Energies of all states, and what they are held against, are no further from zero."""
    figures = course.figures
    work = sum(figures.accelerator) + course.accelerators * (sum(figures.transfer) + course.limit)
    return _SCALE * work + multiplier * (sum(figures.cpu) + course.cpus * course.limit)


def _with_tables(course: Course, deadline: float) -> Course | None:
    """With the best multipliers, and the tables for them."""
    tables = _tables(course, deadline)
    if tables is None:
        return None
    course = replace(course, tables=tables)
    tops = _least_limits(course)
    kept = sorted(range(len(tops)), key=lambda number: -tops[number])[:_KEPT]
    tables = tuple(Table(table.signature, tuple(table.to_come[number] for number in kept)) for table in tables)
    return replace(course, multipliers=tuple(course.multipliers[number] for number in kept), tables=tables)


def _tables(course: Course, deadline: float) -> tuple[Table, ...] | None:
    """All states without loads, forward, and the least energies to come, backward; None where they are too many."""
    held = np.zeros((course.devices, 1), np.int64)
    signatures, ways = [_signature(held, course)], list[list[tuple[Index, Index, tuple[Index, ...]]]]()
    for step in course.sweep.steps:
        found = [(device, *put(held, device, step, course.accelerators)) for device in _devices(course, step)]
        signs = [_signature(_renamed(after, course), course) for _, _, after in found]
        every, first = np.unique(np.concatenate(signs), return_index=True)
        if len(every) > _SIGNATURES or monotonic() >= deadline:
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


def _energy(course: Course, step: Step, device: int, paid: Index, multiplier: int) -> Index:
    own = 0 if device < course.accelerators else multiplier * course.figures.cpu[step.block] - _SCALE * _work(course, step.block)
    return np.asarray(_SCALE * paid.sum(axis=0) + own)


def _work(course: Course, block: int) -> int:
    return course.figures.accelerator[block] if course.figures.supported[block] else 0


def _least_limits(course: Course) -> list[int]:
    """The least T for which the energy of nothing placed is within what T allows, for each multiplier."""
    total = _SCALE * sum(_work(course, block) for block in range(len(course.figures.accelerator)))
    return [
        -(-(total + int(energy[0])) // (_SCALE * course.accelerators + one * course.cpus))
        for one, energy in zip(course.multipliers, course.tables[0].to_come, strict=True)
    ]


def _round(course: Course, digits: int, deadline: float) -> int | None:
    """A bound in quanta, the limit where nothing is left; None where time ran out or states are too many."""
    held, load = np.zeros((course.devices, 1), np.int64), np.zeros((course.devices, 1), np.int64)
    left = sum(_work(course, step.block) for step in course.sweep.steps)
    with ThreadPoolExecutor(_THREADS) as threads:
        for step, table in zip(course.sweep.steps, course.tables[1:], strict=True):
            if held.shape[1] > _MOST or monotonic() >= deadline:
                return None
            left -= _work(course, step.block)
            place = partial(_placed, course, step, held=held, load=load, table=table, left=left)
            held, load = (np.concatenate(parts, axis=1) for parts in zip(*threads.map(place, _devices(course, step)), strict=True))
            if not held.shape[1]:
                return course.limit
            held, load = _in_cells(course, held, load, digits)
    if course.cpus:
        load[-1] //= course.cpus
    return int(load.max(axis=0).min())


def _placed(course: Course, step: Step, device: int, held: Index, load: Index, table: Table, left: int) -> tuple[Index, Index]:
    """The states with the block on this device that may become placements within the limit."""
    accelerators = course.accelerators
    paid, held = put(held, device, step, accelerators)
    load = load.copy()
    load[:accelerators] += paid
    load[device] += (course.figures.accelerator if device < accelerators else course.figures.cpu)[step.block]
    keep: Mask = np.asarray((load[:accelerators] <= course.limit).all(axis=0))
    if course.cpus:
        keep &= load[-1] <= course.cpus * course.limit
    rows = np.flatnonzero(keep)
    held, load = _renamed_with(held[:, rows], load[:, rows], course)
    place = np.searchsorted(table.signature, _signature(held, course))
    work = _SCALE * (load[:accelerators].sum(axis=0) + left)
    keep = np.ones(len(place), bool)
    for one, to_come in zip(course.multipliers, table.to_come, strict=True):
        allowed = (_SCALE * accelerators + one * course.cpus) * course.limit
        keep &= work + (one * load[-1] if course.cpus else 0) + to_come[place] <= allowed
    rows = np.flatnonzero(keep)
    return held[:, rows], load[:, rows]


def _in_cells(course: Course, held: Index, load: Index, digits: int) -> tuple[Index, Index]:
    """States of one cell made one, without those that one near it beats: accelerators take turns in being the last that is looked at."""
    order, signature, cell = _sorted(course, held, load, digits, 0)
    first = np.flatnonzero(np.concatenate([[True], (signature[1:] != signature[:-1]) | (cell[1:] != cell[:-1])]))
    held, load = held[:, order[first]], np.minimum.reduceat(load[:, order], first, axis=1)
    for turn in range(course.accelerators):
        order, signature, _ = _sorted(course, held, load, digits, turn)
        load, keep = load[:, order], np.ones(len(order), bool)
        for step in range(1, min(_NEIGHBOURS + 1, len(order))):
            keep[step:] &= (signature[step:] != signature[:-step]) | (load[:, step:] < load[:, :-step]).any(axis=0)
        rows = np.flatnonzero(keep)
        held, load = held[:, order[rows]], load[:, rows]
    return held, load


def _sorted(course: Course, held: Index, load: Index, digits: int, turn: int) -> tuple[Index, Index, Index]:
    """The order of states by the nets they hold and then by their cells, and both in this order."""
    signature, shift = _signature(held, course), _LOAD - 1 - digits
    cell = np.zeros(len(signature), np.int64)
    for own in np.roll(load[: course.accelerators], turn, axis=0):
        cell = (cell << (digits + 1)) | (own >> shift)
    if course.cpus:
        cores = load[-1] >> (shift + _COARSER_CPU)
        cell = cell * (int(cores.max()) + 1) + cores
    order = np.lexsort([cell, signature])
    return order, signature[order], cell[order]


def _devices(course: Course, step: Step) -> list[int]:
    return list(devices_for(step.block, course.figures, course.accelerators, course.cpus, course.limit))


def _renamed(held: Index, course: Course) -> Index:
    """Accelerators in the order of the nets they hold."""
    return _in_order(held, course.accelerators)


def _renamed_with(held: Index, load: Index, course: Course) -> tuple[Index, Index]:
    """The same, and of those that hold equal nets in the order of their loads."""
    held, load, own = held.copy(), load.copy(), slice(course.accelerators)
    both = _in_order((held[own] << _LOAD) | load[own], course.accelerators)
    held[own], load[own] = both >> _LOAD, both & ((1 << _LOAD) - 1)
    return held, load


def _in_order(rows: Index, count: int) -> Index:
    """Each column's first figures in rising order, by comparing neighbours: they are few, and columns are many."""
    rows = rows.copy()
    for start in (turn % 2 for turn in range(count)):
        for one in range(start, count - 1, 2):
            rows[one], rows[one + 1] = np.minimum(rows[one], rows[one + 1]), np.maximum(rows[one], rows[one + 1])
    return rows


def _signature(held: Index, course: Course) -> Index:
    """One number for the nets that all devices hold."""
    found = np.zeros(held.shape[1], np.int64)
    for row in held:
        found = (found << course.sweep.width) | row
    return found
