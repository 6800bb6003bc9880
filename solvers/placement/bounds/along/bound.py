"""A bound on the busiest device by dynamic programming along the blocks, for graphs that are long rather than wide.

States are those of `bounds.order`: what each device does, and which open nets it has pins of. From a limit T on, a state is
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

Rounds learn from each other. Each state knows one of the round before that does no more on any device. Where that one leads nowhere, this
one is left out; and only states that know the same one are made one, so that what a round kept apart stays apart. What is left in the end
is replayed block by block, and is a placement: the best one, once cells are fine. Nothing in a round depends on a clock, so that whoever
repeats the rounds from the same limit comes to the same bounds, and keeps as many states.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.model import floored, real
from crossopt.formulation.placement.blocks import Blocks, figures_of
from crossopt.formulation.placement.throughput import Machine, contract
from crossopt.solvers.placement.bounds.along.decode import replayed
from crossopt.solvers.placement.bounds.along.round import Column, Round, next_round, unguided
from crossopt.solvers.placement.bounds.along.tables import Course, course_for

PROOF = "a dynamic program along the blocks"
_STEPS = 1 << 30
"""Quanta of the limit."""
_COARSEST = 5
"""Binary digits by which a cell is finer than the limit at first."""
_LONGER = 2.0
"""So many times longer takes the next round, at least."""


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """A better bound in milliseconds, and the placements that the program came by, by rows of the graph."""

    bound: float
    placements: tuple[Whole, ...]
    states: int
    """Kept in all rounds so far, and those that are possible without loads."""


MOST_REPEATED = 1 << 23
"""States in all rounds together, up to which a check repeats them."""


def along(blocks: Blocks, machine: Machine, limit: float, least: float, deadline: float = inf, states: int = 1 << 60) -> Iterator[Along]:
    """Better and better bounds up to the limit, and placements, as long as that goes fast enough and keeps no more than so many states."""
    if machine.overlapped or not machine.accelerators or limit <= 0.0 or not len(blocks):
        return
    blocks = contract(blocks, machine, limit)
    figures = figures_of(blocks, machine.memory, limit, _STEPS)
    most = int(floored([limit], figures.quantum)[0]) + 1
    if any(not runs and (cpu > most or not machine.cpus) for runs, cpu in zip(figures.supported, figures.cpu, strict=True)):
        yield Along(limit, (), 0)
        return
    course = course_for(blocks, figures, machine, most, deadline, states)
    if course is None:
        return
    quantum, began, best, digits, kept = course.figures.quantum, monotonic(), least, _COARSEST, course.states
    found: Round | None = unguided(course)
    while found is not None:
        best = max(best, min(limit, real(found.bound, quantum)))
        kept += found.kept
        yield Along(best, tuple(_placements(course, found, machine)[:, blocks.block_of]), kept)
        if best >= limit or digits > course.finest or monotonic() + _LONGER * (monotonic() - began) > deadline:
            return
        began, found, digits = monotonic(), next_round(course, found, digits, deadline, states - kept), digits + 1


def _placements(course: Course, found: Round, machine: Machine) -> Whole:
    """The device of each block, a row for each end."""
    placements = np.zeros((len(found.ends), len(course.figures.accelerator)), np.int64)
    for row, end in zip(placements, found.ends.tolist(), strict=True):
        row[:] = replayed(course.sweep, course.figures, (course.accelerators, course.cpus), _way(found.ways, end, course.devices))
    return placements


def _way(ways: tuple[Column, ...], end: int, devices: int) -> list[int]:
    """The device on which each step put its block, by the names that devices had then."""
    names, column = list[int](), end
    for whence in reversed(ways):
        column, name = divmod(int(whence[column]), devices)
        names.append(name)
    return names[::-1]
