"""Bounds on the busiest device: of the device that holds a certain block, and by dynamic programming along the blocks."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heapreplace
from math import ceil, inf
from time import monotonic
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crossopt.crossflow.arrays import Ints, Mask
from crossopt.formulation.model import floored, real
from crossopt.formulation.placement.blocks import Blocks, Edge, Figures, Network, Pins, figures_of, least_cut, network_of
from crossopt.formulation.placement.throughput import Machine, contract
from crossopt.instances.placement.question import PlacementQuestion

# What a device must do that holds a certain block: a bound on the busiest device that needs no solver.
#
# An accelerator with block b has some set S of blocks with b in it, does their work and pays for the nets that S cuts:
#
#     T >= least over S with b in S of  sum of p over S + sum of c over the nets with a pin in S and a pin outside
#
# which is a minimum cut between b and a sink that every block b' leads to with capacity p_b'; a net becomes two nodes joined by its cost,
# into which all its pins lead and out of which all its pins are reached (Lawler 1973). On a CPU it is q_b at least. All capacities are
# whole quanta, rounded down, so that the cut is exact and no placement is below it. One block and the limit are all that shows a bound
# again.

PROOF_BY_BLOCK = "the least that a device with one of the blocks must do, by minimum cuts"
_BLOCK_STEPS, _CUTS = 1 << 40, 40


class BusiestBlock(NamedTuple):
    """A bound in milliseconds, and the block whose holder is that busy."""

    bound: float
    block: int


def least_busiest(question: PlacementQuestion, blocks: Blocks, greatest: float, deadline: float = float("inf")) -> BusiestBlock:
    """The greatest of these bounds for placements no busier than `greatest`, and never above that.

    Blocks whose own work and nets are less than it are not looked at, nor more than some blocks, nor any after the deadline. Where
    transfers run behind the work, they count for nothing here.
    """
    figures, cpus = _figures(question, blocks, greatest), question.cpus
    most = alone(blocks, figures)
    own = [_either(work, cpu, cpus) if runs else 0 for work, cpu, runs in _rows(figures)]
    block = max(range(len(blocks)), key=lambda number: own[number])
    best, network, solved = own[block], None, 0
    for other in sorted(range(len(blocks)), key=lambda number: -most[number]):
        if solved == _CUTS or monotonic() >= deadline:
            break
        if min(most[other], figures.cpu[other] if cpus and figures.supported[other] else most[other]) <= best:
            continue
        if figures.supported[other] and most[other] > figures.accelerator[other]:
            network = network_of(_edges(blocks, figures)) if network is None else network
            solved += 1
        found = _least_load(blocks, figures, other, cpus, network)
        if found > best:
            best, block = found, other
    return BusiestBlock(min(greatest, real(best, figures.quantum)), block)


def least_with(question: PlacementQuestion, blocks: Blocks, greatest: float, block: int) -> float:
    """The bound that one block gives, in milliseconds, for placements no busier than `greatest`."""
    figures = _figures(question, blocks, greatest)
    return min(greatest, real(_least_load(blocks, figures, block, question.cpus, network_of(_edges(blocks, figures))), figures.quantum))


def _least_load(blocks: Blocks, figures: Figures, block: int, cpus: int, network: "Network | None") -> int:
    """The least load of a device that holds this block, in quanta; the block's own work where there is no network."""
    if not figures.supported[block]:
        return figures.cpu[block] if cpus else 0
    on_accelerator = figures.accelerator[block] if network is None else least_cut(network, block, len(blocks))
    return _either(on_accelerator, figures.cpu[block], cpus)


def _either(on_accelerator: int, on_cpu: int, cpus: int) -> int:
    return min(on_accelerator, on_cpu) if cpus else on_accelerator


def _rows(figures: Figures) -> Iterator[tuple[int, int, bool]]:
    return zip(figures.accelerator, figures.cpu, figures.supported, strict=True)


def _figures(question: PlacementQuestion, blocks: Blocks, greatest: float) -> Figures:
    figures = figures_of(blocks, question.memory, greatest, _BLOCK_STEPS)
    overlapped = question.communication == "overlapped"
    return replace(figures, transfer=[0] * len(figures.transfer)) if overlapped else figures


def alone(blocks: Blocks, figures: Figures) -> list[int]:
    """What a device does that holds this block and no other; what it does at the most, where no accelerator can."""
    found = [work if runs else max(work, cpu) for work, cpu, runs in zip(figures.accelerator, figures.cpu, figures.supported, strict=True)]
    for pins, cost in zip(blocks.nets, figures.transfer, strict=True):
        for pin in pins:
            found[pin] += cost
    return found


def _edges(blocks: Blocks, figures: Figures) -> Iterator[Edge]:
    """Blocks as they are numbered, then the sink, then two nodes for each net."""
    sink = len(blocks)
    for block, work in enumerate(figures.accelerator):
        yield block, sink, work
    for number, (pins, cost) in enumerate(zip(blocks.nets, figures.transfer, strict=True)):
        entry = sink + 1 + 2 * number
        yield entry, entry + 1, cost
        for pin in pins:
            yield pin, entry, None
            yield entry + 1, pin, None


# A bound on the busiest device by dynamic programming along the blocks, for graphs that are long rather than wide.

# Blocks one after another, so that few nets are open at a time: what a dynamic program over placements needs to know.
#
# A net is open from its first block up to its last. What is placed so far matters to the rest only by the loads and by which devices have a
# pin of which open net: one word of bits for each accelerator, and one for all CPUs together, as they pay for nothing. A device pays for a
# net once it has a pin of it and another device has one:
#
#     put b on i    for each net e of b, open on some devices and not on i:  i pays c_e, and so does who was alone with it till now
#                   i does p_b (an accelerator) or q_b (a CPU)
#
# Accelerators are equal, so that a state is the same whatever they are called.

_STARTS, _IN_ALL = 48, 60_000
"""Blocks that an order is begun with, the narrowest order being taken; fewer where all orders together would be longer."""
_BASE = 3.0
"""By how much an open net multiplies the states, about."""


@dataclass(frozen=True, slots=True)
class Step:
    """One block that is placed next, its nets by cost and bit, and the bits of nets that it is the last of."""

    block: int
    nets: tuple[tuple[int, int], ...]
    closed: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """All steps, and how many bits there are."""

    steps: tuple[Step, ...]
    width: int


def swept(blocks: Blocks, figures: Figures) -> tuple[Sweep, Sweep]:
    """The steps along the narrowest of some orders, there and back: as many nets are open, but not as many states are possible."""
    nets_of: list[list[int]] = [[] for _ in range(len(blocks))]
    for net, pins in enumerate(blocks.nets):
        for pin in pins:
            nets_of[pin].append(net)
    starts = np.unique(np.linspace(0, len(blocks) - 1, min(_STARTS, len(blocks), max(_IN_ALL // len(blocks), 2))).astype(int)).tolist()
    order = min((_order(blocks.nets, nets_of, start) for start in starts), key=lambda found: found[0])[1]
    return _sweep(blocks.nets, nets_of, order, figures), _sweep(blocks.nets, nets_of, order[::-1], figures)


def _order(nets: Sequence[Pins], nets_of: list[list[int]], start: int) -> tuple[float, list[int]]:
    """From a block on always the one that leaves fewest nets open, with what the order may cost."""
    left, done, order = [len(pins) for pins in nets], [False] * len(nets_of), list[int]()
    near, following, opened, cost = {start}, iter(range(len(nets_of))), 0, 0.0

    def score(block: int) -> tuple[int, int, int]:
        fresh = sum(left[net] == len(nets[net]) for net in nets_of[block])
        return fresh - sum(left[net] == 1 for net in nets_of[block]), fresh - len(nets_of[block]), block

    while len(order) < len(nets_of):
        block = min(near, key=score) if near else next(other for other in following if not done[other])
        opened += score(block)[0]
        order.append(block)
        done[block] = True
        near.discard(block)
        for net in nets_of[block]:
            left[net] -= 1
            near |= {pin for pin in nets[net] if not done[pin]}
        cost += _BASE ** min(opened, 60)
    return cost, order


def _sweep(nets: Sequence[Pins], nets_of: list[list[int]], order: list[int], figures: Figures) -> Sweep:
    left, bit, free, width = [len(pins) for pins in nets], dict[int, int](), list[int](), 0
    steps = []
    for block in order:
        closed = 0
        for net in nets_of[block]:
            if net not in bit:
                width += not free
                bit[net] = free.pop() if free else width - 1
            left[net] -= 1
        for net in nets_of[block]:
            if not left[net]:
                closed |= 1 << bit[net]
                free.append(bit[net])
        steps.append(Step(block, tuple((figures.transfer[net], bit[net]) for net in nets_of[block]), closed))
    return Sweep(tuple(steps), width)


def put(nets: Ints, device: int, step: Step, accelerators: int) -> tuple[Ints, Ints]:
    """What each accelerator pays once the block is on the device, and which nets devices hold then. A row for each device."""
    paid, bits = np.zeros((accelerators, nets.shape[1]), np.int64), 0
    for cost, bit in step.nets:
        here = (nets >> bit) & 1
        count = here.sum(axis=0)
        fresh = (here[device] == 0) & (count > 0)
        if device < accelerators:
            paid[device] += cost * fresh
        paid += here[:accelerators] * (cost * (fresh & (count == 1)))
        bits |= 1 << bit
    after = nets & ~step.closed
    after[device] |= bits & ~step.closed
    return paid, after


def devices_for(block: int, figures: Figures, accelerators: int, cpus: int, most: int) -> Iterator[int]:
    """Accelerators, and CPUs as one, that may take the block."""
    if figures.supported[block]:
        yield from range(accelerators)
    if cpus and figures.cpu[block] <= most:
        yield accelerators


# A question made ready for rounds of the program along the blocks: all states without loads, and the least energy to come from each.
#
# `solvers.placement.bounds.along.bound` says what energies are.

LOAD = 31
"""Binary digits of a load."""
_DIGITS = 62
_OVERFLOW = 1 << 61
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

    signature: Ints
    to_come: tuple[Ints, ...]
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
    course = replace(course, multipliers=tuple(multiplier for multiplier in tried if _most_energy(course, multiplier) < _OVERFLOW))
    if not course.multipliers:
        return None
    found = [_with_tables(replace(course, sweep=sweep), deadline, states) for sweep in sweeps]
    ready = [course for course in found if course is not None and monotonic() < deadline]  # not one where there was no time for both
    return min(ready, key=lambda course: max(len(table.signature) for table in course.tables), default=None)


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
    best = sorted(range(len(tops)), key=lambda number: -tops[number])[:_KEPT]
    tables = tuple(Table(table.signature, tuple(table.to_come[number] for number in best)) for table in tables)
    return replace(course, multipliers=tuple(course.multipliers[number] for number in best), tables=tables)


def _tables(course: Course, deadline: float, states: int) -> tuple[Table, ...] | None:
    """All states without loads, forward, and the least energies to come, backward; None where they are too many."""
    nets = np.zeros((course.devices, 1), np.int64)
    signatures, ways = [signature_of(nets, course)], list[list[tuple[Ints, Ints, tuple[Ints, ...]]]]()
    for step in course.sweep.steps:
        found = [(device, *put(nets, device, step, course.accelerators)) for device in devices(course, step)]
        signs = [signature_of(_renamed(after, course), course) for _, _, after in found]
        every, first = np.unique(np.concatenate(signs), return_index=True)
        states -= len(every)
        if len(every) > _SIGNATURES or states < 0 or monotonic() >= deadline:
            return None
        nets = np.concatenate([_renamed(after, course) for _, _, after in found], axis=1)[:, first]
        costs = [tuple(_energy(course, step, device, paid, multiplier) for multiplier in course.multipliers) for device, paid, _ in found]
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


def _energy(course: Course, step: Step, device: int, paid: Ints, multiplier: int) -> Ints:
    own = 0 if device < course.accelerators else multiplier * course.figures.cpu[step.block] - SCALE * work_of(course, step.block)
    return np.asarray(SCALE * paid.sum(axis=0) + own)


def work_of(course: Course, block: int) -> int:
    return course.figures.accelerator[block] if course.figures.supported[block] else 0


def least_limits(course: Course) -> list[int]:
    """The least T for which the energy of nothing placed is within what T allows, for each multiplier."""
    total = SCALE * sum(work_of(course, block) for block in range(len(course.figures.accelerator)))
    return [
        -(-(total + int(energy[0])) // (SCALE * course.accelerators + multiplier * course.cpus))
        for multiplier, energy in zip(course.multipliers, course.tables[0].to_come, strict=True)
    ]


def devices(course: Course, step: Step) -> list[int]:
    return list(devices_for(step.block, course.figures, course.accelerators, course.cpus, course.limit))


def _renamed(nets: Ints, course: Course) -> Ints:
    """Accelerators in the order of the nets they hold."""
    return _in_order(nets, course.accelerators)


def rename_with(nets: Ints, load: Ints, course: Course) -> tuple[Ints, Ints]:
    """Renamed nets and loads; accelerators with equal nets are ordered by their loads."""
    nets, load, own = nets.copy(), load.copy(), slice(course.accelerators)
    both = _in_order((nets[own] << LOAD) | load[own], course.accelerators)
    nets[own], load[own] = both >> LOAD, both & ((1 << LOAD) - 1)
    return nets, load


def _in_order(rows: Ints, count: int) -> Ints:
    """Each column's first figures in rising order, by comparing neighbours: they are few, and columns are many."""
    rows = rows.copy()
    for start in (turn % 2 for turn in range(count)):
        for row in range(start, count - 1, 2):
            rows[row], rows[row + 1] = np.minimum(rows[row], rows[row + 1]), np.maximum(rows[row], rows[row + 1])
    return rows


def signature_of(nets: Ints, course: Course) -> Ints:
    """One number for the nets that all devices hold."""
    found = np.zeros(nets.shape[1], np.int64)
    for row in nets:
        found = (found << course.sweep.width) | row
    return found


# One round of the program along the blocks: step by step all states that may become placements within the limit.
#
# `solvers.placement.bounds.along.bound` says which do, and what states of one cell become.

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

    nets: Ints
    load: Ints
    whence: Column
    """The column of the state before, times the devices, plus the device of the block."""
    guide: Column

    def __len__(self) -> int:
        return len(self.whence)

    def at(self, columns: Ints) -> "States":
        return States(self.nets[:, columns], self.load[:, columns], self.whence[columns], self.guide[columns])


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """A bound in quanta, the columns in the end with the least busy devices first, and for each step where its states came from and go."""

    bound: int
    ends: Ints
    ways: tuple[Column, ...] = ()
    states: int = 0
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
    left, count = sum(work_of(course, step.block) for step in course.sweep.steps), 0
    with ThreadPoolExecutor(_THREADS) as threads:
        for step, table, guide in zip(course.sweep.steps, course.tables[1:], before.goes, strict=True):
            if len(states) > _MOST or count > min(_MOST_KEPT, most) or monotonic() >= deadline:
                return None
            left -= work_of(course, step.block)
            place_on = partial(_placed, course, step, states=states, table=table, left=left, guide=guide)
            found = _together(list(threads.map(place_on, devices(course, step))))
            if not len(found):
                return Round(course.limit, np.zeros(0, np.int64), states=count)
            after, place_of = _in_cells(course, found, digits)
            goes.append(np.full((len(states), course.devices), -1, np.int32))
            goes[-1].ravel()[found.whence] = place_of
            ways.append(after.whence)
            states, count = after, count + len(after)
    if count > most:
        return None
    load = states.load.copy()
    if course.cpus:
        load[-1] //= course.cpus
    busiest = load.max(axis=0)
    return Round(int(busiest.min()), np.argsort(busiest, kind="stable")[:_ENDS], tuple(ways), count, _leading_on(goes))


def _leading_on(goes: list[Column]) -> tuple[Column, ...]:
    """Without what leads to states from which nothing goes on."""
    for step in range(len(goes) - 1, 0, -1):
        dead: Mask = np.logical_and.reduce(goes[step] < 0, axis=1)
        goes[step - 1][(goes[step - 1] >= 0) & dead[goes[step - 1]]] = -1
    return tuple(goes)


def _together(parts: Sequence[States]) -> States:
    nets, load, whence, guide = zip(*((part.nets, part.load, part.whence, part.guide) for part in parts), strict=True)
    return States(np.concatenate(nets, axis=1), np.concatenate(load, axis=1), np.concatenate(whence), np.concatenate(guide))


def _placed(course: Course, step: Step, device: int, states: States, table: Table, left: int, guide: Column) -> States:
    """The states with the block on this device that may become placements within the limit."""
    accelerators, leads = course.accelerators, guide[states.guide, device]
    origin = np.flatnonzero(leads >= 0)
    paid, nets = put(states.nets[:, origin], device, step, accelerators)
    load = states.load[:, origin]
    load[:accelerators] += paid
    load[device] += (course.figures.accelerator if device < accelerators else course.figures.cpu)[step.block]
    keep: Mask = np.logical_and.reduce(load[:accelerators] <= course.limit)
    if course.cpus:
        keep &= load[-1] <= course.cpus * course.limit
    nets, load = rename_with(nets[:, keep], load[:, keep], course)
    origin = origin[keep]
    found = States(nets, load, (origin * course.devices + device).astype(np.int32), leads[origin])
    index = np.searchsorted(table.signature, signature_of(nets, course))
    work = SCALE * (load[:accelerators].sum(axis=0) + left)
    within = np.ones(len(index), bool)
    for multiplier, to_come in zip(course.multipliers, table.to_come, strict=True):
        allowed = (SCALE * accelerators + multiplier * course.cpus) * course.limit
        within &= work + (multiplier * load[-1] if course.cpus else 0) + to_come[index] <= allowed
    return found.at(np.flatnonzero(within))


def _in_cells(course: Course, states: States, digits: int) -> tuple[States, Ints]:
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
        better, representatives = _last(better), np.flatnonzero(better == np.arange(len(order)))
        place_in_order = np.empty(len(order), np.int64)
        place_in_order[order] = np.searchsorted(representatives, better)
        place_of, states = place_in_order[place_of], states.at(order[representatives])
    return states, place_of


def _last(better: Ints) -> Ints:
    """For each state the end of its chain of better ones: a state that none beats."""
    while (beyond := better[better]).tobytes() != better.tobytes():
        better = beyond
    return better


def _sorted(course: Course, states: States, digits: int, turn: int, guided: bool = False) -> tuple[Ints, Ints, Ints]:
    """The order of states by the nets they hold and then by their cells, and both in this order."""
    signature, shift, load = signature_of(states.nets, course), LOAD - 1 - digits, states.load
    cell = np.zeros(len(signature), np.int64)
    for own in np.roll(load[: course.accelerators], turn, axis=0):
        cell = (cell << (digits + 1)) | (own >> shift)
    if course.cpus:
        cores = load[-1] >> (shift + _COARSER_CPU)
        cell = cell * (int(cores.max()) + 1) + cores
    order = np.lexsort((states.guide, cell, signature) if guided else (cell, signature))
    return order, signature[order], cell[order]


# A placement from the names of the devices that the program along the blocks chose.
#
# The program calls accelerators by their places in the order of the nets they hold, and of their loads where they hold the same. Its loads
# are the least of states that were made one, so that the true ones may be in another order: the placement is then another than the program
# saw, and a placement still.

_LOAD = 32
"""More binary digits than a load has."""


def replayed(sweep: Sweep, figures: Figures, machine: tuple[int, int], names: Sequence[int]) -> Ints:
    """The device of each block, of so many accelerators and CPUs, from the name that its device had when it was placed."""
    accelerators, cpus = machine
    called = np.arange(accelerators + (cpus > 0))
    nets, load = np.zeros((len(called), 1), np.int64), np.zeros((len(called), 1), np.int64)
    device = np.zeros(len(names), np.int64)
    for step, name in zip(sweep.steps, names, strict=True):
        device[step.block] = called[name]
        paid, nets = put(nets, name, step, accelerators)
        load[:accelerators] += paid
        load[name] += (figures.accelerator if name < accelerators else figures.cpu)[step.block]
        order = np.arange(len(called))
        order[:accelerators] = np.argsort((nets[:accelerators, 0] << _LOAD) | load[:accelerators, 0], kind="stable")
        called, nets, load = called[order], nets[order], load[order]
    return _shared(device, accelerators, cpus, figures.cpu)


def _shared(device: Ints, accelerators: int, cpus: int, work: Sequence[int]) -> Ints:
    """The blocks of the one device that stands for all CPUs, the longest first, each on the CPU that has least to do."""
    idle = [(0, accelerators + number) for number in range(cpus)]
    heapify(idle)
    for block in sorted(np.flatnonzero(device == accelerators).tolist(), key=lambda other: -work[other]) if cpus else ():
        done, cpu = idle[0]
        device[block] = cpu
        heapreplace(idle, (done + work[block], cpu))
    return device


# A bound on the busiest device by dynamic programming along the blocks, for graphs that are long rather than wide.
#
# States are those of `bounds.order`: what each device does, and which open nets it has pins of. From a limit T on, a state is
# left out that cannot become a placement no busier than T:
#
#     load     an accelerator does more than T already, or the CPUs do more than l T together
#     energy   65536 (loads of accelerators + p of all blocks to come) + a (load of CPUs) + h > 65536 k T + a l T
#              with h the least of 65536 (transfers - p on CPUs) + a (q on CPUs) over all ways to place what is to come, whatever the loads:
#              the same program without loads, backward; for some whole a >= 0 (a Lagrange multiplier of the CPUs, in 65536ths)
#
# States of the same nets whose loads lie in one cell become one state with the least load of them on each device, which no placement of
# theirs is below; and a state is left out that does no less on any device than one next to it. Nothing left: no placement is within T.
# Otherwise none is below the least that the busiest device does in what is left in the end. Each round has cells half as wide as the one
# before. Memory is ignored, and CPUs are one device of l times the speed, both of which can only lower the bound. All figures are
# whole quanta, rounded down. States are many where accelerators are: more than four are left to others.
#
# Rounds learn from each other. Each state knows one of the round before that does no more on any device. Where that one leads nowhere, this
# one is left out; and only states that know the same one are made one, so that what a round kept apart stays apart. What is left in the end
# is replayed block by block, and is a placement: the best one, once cells are fine. Nothing in a round depends on a clock, so that whoever
# repeats the rounds from the same limit comes to the same bounds, and keeps as many states.

PROOF_ALONG = "a dynamic program along the blocks"
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
    placements: tuple[Ints, ...]
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
    quantum, began, best, digits, states_so_far = course.figures.quantum, monotonic(), least, _COARSEST, course.states
    found: Round | None = unguided(course)
    while found is not None:
        best = max(best, min(limit, real(found.bound, quantum)))
        states_so_far += found.states
        yield Along(best, tuple(_placements(course, found)[:, blocks.block_of]), states_so_far)
        if best >= limit or digits > course.finest or monotonic() + _LONGER * (monotonic() - began) > deadline:
            return
        began, found, digits = monotonic(), next_round(course, found, digits, deadline, states - states_so_far), digits + 1


def _placements(course: Course, found: Round) -> Ints:
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
