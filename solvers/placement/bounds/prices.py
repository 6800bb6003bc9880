"""What one accelerator must do that holds blocks of a certain price, and the bound that prices give: a dynamic program along the blocks.

Each block has a whole price u_b >= 0. Of the blocks so far, a device has some and others have the rest; what is to come asks only which
open nets (`solvers.placement.bounds.order`) have pins on the device, and which elsewhere:

    least[s, x]   the least load of a set of price x that leaves the open nets in state s; a net is paid once it has pins on both sides

There are few states where few nets are open, and loads are exact: prices are what is counted one by one. Where too many are open, the
cheapest of these are left out until there are few enough, which can only lower a load. Whichever prices are given, the bound holds
(`bounds.set_partitioning` says why, and finds good ones), so that their origin does not matter.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crossopt.crossflow.arrays import Ints, Mask
from crossopt.formulation.compiled import COMPILES, compiled
from crossopt.formulation.model import floored, real
from crossopt.formulation.placement.blocks import Blocks, Figures, figures_of
from crossopt.formulation.placement.throughput import Machine, contract
from crossopt.solvers.placement.bounds.along import Step, Sweep, swept

BEYOND = 1 << 60
"""The load of a set that is not there."""
_STATES, _IN_ALL = 1 << 13, 1 << 16
"""States at one step and at all steps, above which a graph is too wide; twice the former must fit in 16 bits."""

_OPEN = (14, 13, 12, 11, 10, 9, 8, 7, 6, 5)
"""Open nets to which a graph is narrowed that is too wide, the first number that leaves few enough states."""

_STEPS = 1 << 29
"""Quanta of the limit: the load of no set and the limit together fit in 32 bits."""
_NONE = np.int32(1 << 30)
"""The load of a set that is not there, in the dynamic program."""
_ENTRIES, _MOST, _FEWEST = 1 << 26, 1 << 16, 1 << 10
"""Entries of the table of all states and prices that are used, and the sum of all prices at the most and at the least."""
_SHARES = 4
"""Accelerators up to which the table is as many times as long, as each can hold one of so many shares of all prices."""

Choices: TypeAlias = NDArray[np.int16]
"""Twice the state before, plus 1 if the block is on the device; a row for each state, a column for each price."""
Loads: TypeAlias = NDArray[np.int32]
State = tuple[int, int]
"""Bits of the open nets that have a pin on the device, and of those that have one elsewhere."""


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """All ways from states to states."""

    block: Ints
    """Of each step."""
    states: Ints
    """How many there are up to each step."""
    starts: Ints
    """Where the ways of each step begin."""
    ways: Ints
    """State before, state after, 1 if the block is on the device, and what that costs."""


@dataclass(frozen=True, slots=True, eq=False)
class Priceable:
    """Blocks that may be given prices: those that placements no busier than a limit leave, in whole quanta."""

    walk: Walk
    cpu: Walk
    figures: Figures
    machine: Machine
    greatest: float
    """The limit in milliseconds, and in quanta."""
    limit: int
    total: int
    """Of all prices, but for rounding."""


def priceable(blocks: Blocks, machine: Machine, greatest: float) -> Priceable | None:
    """What prices are given to; None where transfers run behind the work, or the graph is too wide."""
    if machine.overlapped or not machine.accelerators or greatest <= 0.0 or not len(blocks):
        return None
    blocks = contract(blocks, machine, greatest)
    figures = figures_of(blocks, machine.memory, greatest, _STEPS)
    walk = next(_walks(blocks, machine, greatest), None)
    if walk is None:
        return None
    total = min(_ENTRIES * min(machine.accelerators, _SHARES) // int(walk.states[-1]), _MOST)
    if total < max(_FEWEST, len(blocks)):
        return None
    return Priceable(walk, walk_of_cpu(figures), figures, machine, greatest, int(floored([greatest], figures.quantum)[0]) + 1, total)


def _walks(blocks: Blocks, machine: Machine, greatest: float) -> Iterator[Walk]:
    """The walk with the fewest states along the whole graph if there is one, then along narrower and narrower graphs."""
    order = list[int]()
    for most in (len(blocks.nets), *_OPEN):
        narrow = narrowed(blocks, order, most) if order else blocks
        figures = figures_of(narrow, machine.memory, greatest, _STEPS)
        sweeps = swept(narrow, figures)
        order = order or [step.block for step in sweeps[0].steps]
        walks = [walk for sweep in sweeps if sweep.width < 62 and (walk := walk_along(sweep, figures)) is not None]
        if walks:
            yield min(walks, key=lambda walk: int(walk.states[-1]))


def narrowed(blocks: Blocks, order: list[int], most: int) -> Blocks:
    """The blocks without the nets that cost least for each step at which they are open, so that no more are open along the order."""
    number_of = {block: number for number, block in enumerate(order)}
    first = [min(number_of[pin] for pin in pins) for pins in blocks.nets]
    last = [max(number_of[pin] for pin in pins) for pins in blocks.nets]
    worth = [cost / (end - start + 1) for cost, start, end in zip(blocks.transfer.tolist(), first, last, strict=True)]
    opening: list[list[int]] = [[] for _ in order]
    for net, start in enumerate(first):
        opening[start].append(net)
    kept, here = set(range(len(first))), set[int]()
    for number, nets in enumerate(opening):
        here = {net for net in here if last[net] >= number} | set(nets)
        beyond = sorted(here, key=lambda net: (worth[net], net))[: max(len(here) - most, 0)]
        here -= set(beyond)
        kept -= set(beyond)
    left = sorted(kept)
    return replace(blocks, nets=tuple(blocks.nets[net] for net in left), transfer=blocks.transfer[left])


def bound_by(ready: Priceable, prices: Ints) -> float | None:
    """The bound of some prices in milliseconds, which is never above the limit; None where they are none, or more than can be counted."""
    count = len(ready.figures.accelerator)
    if len(prices) != count or prices.min() < 0 or prices.max() > ready.total + count or prices.sum() > ready.total + count:
        return None
    loads, _ = least_loads(ready.walk, prices, ready.limit)
    work, _ = least_loads(ready.cpu, prices, ready.limit)
    return in_time(ready, least_busiest_of(loads, work, ready.machine.accelerators, ready.machine.cpus))


def in_time(ready: Priceable, busiest: int) -> float:
    """Milliseconds of a bound in quanta, up to the limit."""
    return min(ready.greatest, real(min(busiest, ready.limit), ready.figures.quantum))


def walk_along(sweep: Sweep, figures: Figures) -> Walk | None:
    """All states of a device along the blocks; None where they are too many."""
    states: dict[State, int] = {(0, 0): 0}
    counts, starts, ways = [0], [0], list[tuple[int, int, int, int]]()
    for step in sweep.steps:
        after: dict[State, int] = {}
        for state, number in states.items():
            for inside in (True, False) if figures.supported[step.block] else (False,):
                reached, paid = _after(state, step, inside)
                cost = paid + (figures.accelerator[step.block] if inside else 0)
                ways.append((number, after.setdefault(reached, len(after)), int(inside), cost))
        if len(after) > _STATES or counts[-1] > _IN_ALL:
            return None
        states = after
        counts.append(counts[-1] + len(states))
        starts.append(len(ways))
    block = np.array([step.block for step in sweep.steps], np.int64)
    return Walk(block, np.array(counts, np.int64), np.array(starts, np.int64), np.array(ways, np.int64))


def walk_of_cpu(figures: Figures) -> Walk:
    """The one state of a CPU, which pays for no nets."""
    count = len(figures.cpu)
    ways = [way for work in figures.cpu for way in ((0, 0, 1, work), (0, 0, 0, 0))]
    return Walk(np.arange(count), np.arange(count + 1), 2 * np.arange(count + 1), np.array(ways, np.int64))


def _after(state: State, step: Step, inside: bool) -> tuple[State, int]:
    here, elsewhere = state if inside else state[::-1]
    paid = sum(cost for cost, bit in step.nets if (elsewhere >> bit) & 1 and not (here >> bit) & 1)
    for _, bit in step.nets:
        here |= 1 << bit
    here, elsewhere = here & ~step.closed, elsewhere & ~step.closed
    return ((here, elsewhere) if inside else (elsewhere, here)), paid


def choices_for(walk: Walk, total: int) -> Choices:
    """Room for how sets of prices up to this came about; what no set has is never read, and takes no memory."""
    return np.empty((int(walk.states[-1]), total + 1), np.int16)


def least_loads(walk: Walk, prices: Ints, limit: int, room: Choices | None = None) -> tuple[Ints, Choices]:
    """The least load of a set of each price, where it is within the limit, and how it came about; `room` is written over."""
    total = int(prices.sum())
    chosen = choices_for(walk, total) if room is None else room[:, : total + 1]
    sweep = _least_in_loops if COMPILES else _least_in_rows
    least = sweep(prices, walk.block, walk.states, walk.starts, walk.ways, limit, chosen)
    return np.where(least <= limit, least.astype(np.int64), BEYOND), chosen


@compiled
def _least_in_loops(prices: Ints, block: Ints, states: Ints, starts: Ints, ways: Ints, limit: int, chosen: Choices) -> Loads:
    """Prices up to `reached` alone are looked at: no state holds more within the limit."""
    least, reached = np.zeros((1, 1), np.int32), 0
    for step in range(len(block)):
        price = prices[block[step]]
        after = np.full((states[step + 1] - states[step], reached + price + 1), _NONE)
        for way in range(starts[step], starts[step + 1]):
            before, to, inside = ways[way, 0], ways[way, 1], ways[way, 2]
            moved = price if inside else 0
            columns = slice(moved, moved + reached + 1)
            cost = np.int32(min(ways[way, 3], limit + 1))
            row = chosen[states[step] + to, columns]
            _relax(least[before, : reached + 1], cost, after[to, columns], row, np.int16(2 * before + inside))
        least, last = after, 0
        for state in range(len(after)):
            last = max(last, _within(after[state], limit))
        reached = last
    found = np.full(chosen.shape[1], _NONE)
    for at in range(reached + 1):
        found[at] = least[0, at]
    return found


@compiled
def _relax(before: Loads, cost: np.int32, after: Loads, chosen: NDArray[np.int16], choice: np.int16) -> None:
    """Takes the loads that are less than those after the step; without branches, so that the machine does many at a time."""
    for at in range(len(before)):
        load = before[at] + cost
        better = load < after[at]
        after[at] = load if better else after[at]
        chosen[at] = choice if better else chosen[at]


@compiled
def _within(loads: Loads, limit: int) -> int:
    """Makes loads beyond the limit none; the last column that is within it."""
    last = 0
    for at in range(len(loads)):
        if loads[at] <= limit:
            last = at
        else:
            loads[at] = _NONE
    return last


def _least_in_rows(prices: Ints, block: Ints, states: Ints, starts: Ints, ways: Ints, limit: int, chosen: Choices) -> Loads:
    """The dynamic program with all prices of a state at once, for use without a compiler."""
    total, reached = chosen.shape[1] - 1, 0
    least = np.full((1, total + 1), _NONE)
    least[0, 0] = 0
    for step, price in enumerate(prices[block].tolist()):
        after = np.full((int(states[step + 1] - states[step]), total + 1), _NONE)
        for before, to, inside, cost in ways[starts[step] : starts[step + 1]].tolist():
            moved = slice(price * inside, price * inside + reached + 1)
            load = least[before, : reached + 1] + np.int32(min(cost, limit + 1))
            better = (load <= limit) & (load < after[to, moved])
            np.copyto(after[to, moved], load, where=better)
            np.copyto(chosen[states[step] + to, moved], np.int16(2 * before + inside), where=better)
        least, reached = after, reached + price
    return np.asarray(least[0])


def set_of(walk: Walk, prices: Ints, chosen: Choices, price: int) -> Mask:
    """The blocks of the set of this price with the least load."""
    inside, state = np.zeros(len(prices), bool), 0
    for step in range(len(walk.block) - 1, -1, -1):
        block = walk.block[step]
        state, here = divmod(int(chosen[walk.states[step] + state, price]), 2)
        inside[block] = bool(here)
        price -= int(prices[block]) * here
    return inside


def least_busiest_of(loads: Ints, work: Ints, accelerators: int, cpus: int) -> int:
    """No busiest device does less, if there are so many: the least over x of what one must do that holds a price of x or more.

    Where no accelerator holds more than x of all u, some CPU holds (u - k x) / l at the least.
    """
    total = len(loads) - 1
    loads, work = (np.minimum.accumulate(each[::-1])[::-1] for each in (loads, work))
    left = np.maximum(total - accelerators * np.arange(total + 1), 0)
    on_cpus = work[-(-left // cpus)] if cpus else np.where(left > 0, BEYOND, 0)
    return int(np.maximum(loads, on_cpus).min())
