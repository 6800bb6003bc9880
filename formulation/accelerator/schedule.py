"""The shortest schedule of a graph of operators on the cores of a chip, exact and in whole cycles, and bounds for many chips at once.

An operator runs on one core of its type, or on all cores of both types with nothing beside it (arXiv 2407.13143). The graph falls apart at
operators that are comparable to all others: these run alone, so that the shortest schedules of the parts between them add up. A part is
solved by a best-first search over states: time, operators started, and ends of those that run. Some shortest schedule starts every operator
at the start or at an end, so that time steps from end to end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import Final

import numpy as np

from crossopt.crossflow.accelerator import OperatorGraph
from crossopt.crossflow.arrays import Array, Ints, Mask

MOST_STATES: Final = 60_000
"""States of a part, after which a search ends with a bound and the best schedule so far."""
_SHARES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Weights of tensor cores in bounds by work; the rest is that of vector cores."""
_LOWERED: Final = 1.0 - 1e-12
_UNIT: Final = 1 << 40
_MOST_SETS: Final = 4_000
"""Sets of operators that are looked at for the heaviest one; beyond, all of them count together."""
_BEAM: Final = 8
_USUAL: Final = 20
"""Operators of a part up to which a search has all states that are allowed; larger parts have fewer."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Cycles that no schedule is below, and the best schedule found: by operator whether it runs on all cores, and its start."""

    least: int
    cycles: int
    on_all: tuple[bool, ...]
    starts: tuple[int, ...]


def least_cycles(graph: OperatorGraph, one: Array, every: Array, tensor_cores: Ints, vector_cores: Ints) -> Array:
    """Cycles that no schedule is below, for many chips: of each part the longest path and the work of its cores, added up.

    `one` and `every` have a row for each operator and a column for each chip. Work is bounded by any weights of the core types: in a
    cycle a chip offers one unit in all, of which an operator on one core takes the weights over the counts of its types, and one on all
    cores takes everything.
    """
    runs = np.isfinite(one).all(axis=0)
    if not runs.all():
        found = np.full(one.shape[1], inf)
        found[runs] = least_cycles(graph, one[:, runs], every[:, runs], tensor_cores[runs], vector_cores[runs])
        return found
    least, total = np.minimum(one, every), np.zeros(one.shape[1])
    if not len(total):
        return total
    tensor_cores, vector_cores = np.maximum(tensor_cores, 1), np.maximum(vector_cores, 1)
    most = max(map(len, graph.parts), default=1)
    counts = np.minimum(tensor_cores, most) * (most + 1) + np.minimum(vector_cores, most)
    groups = [(divmod(int(count), most + 1), np.flatnonzero(counts == count)) for count in np.unique(counts)]
    for part in graph.parts:
        if len(part) == 1:
            total += least[part[0]]
            continue
        bound = np.zeros(one.shape[1])
        for cores, chips in groups:
            own = one[:, chips], every[:, chips]
            whole, rates = rates_of(graph, part, *own, cores)
            serial, work = least[list(part)][:, chips].sum(axis=0), _cycles(part, *own, whole, rates).sum(axis=0)
            bound[chips] = np.minimum(np.maximum(work * _LOWERED, _longest(graph, part, *own, whole)), serial)
        for share in _SHARES:
            work = np.zeros(one.shape[1])
            for operator in part:
                uses = graph.uses[operator]
                work += np.minimum(
                    one[operator] * (share * uses[0] / tensor_cores + (1.0 - share) * uses[1] / vector_cores), every[operator]
                )
            bound = np.maximum(bound, work * _LOWERED)
        total += np.ceil(bound * _LOWERED)
    return total


def _longest(graph: OperatorGraph, part: Sequence[int], one: Array, every: Array, whole: Mask) -> Array:
    """Cycles along the longest path of a part."""
    inside, tails = set(part), dict[int, Array]()
    for row, operator in reversed(list(enumerate(part))):
        behind = [tails[later] for later in graph.after[operator] if later in inside]
        own = np.where(whole[row], every[operator], np.minimum(one[operator], every[operator]))
        tails[operator] = own + (np.max(behind, axis=0) if behind else 0.0)
    return np.asarray(np.max(list(tails.values()), axis=0))


def _cycles(part: Sequence[int], one: Array, every: Array, whole: Mask, rates: Array) -> Array:
    """What each operator of a part adds to a bound."""
    rows = list(part)
    return np.where(whole, every[rows], rates * one[rows])


def rates_of(graph: OperatorGraph, part: Sequence[int], one: Array, every: Array, cores: tuple[int, int]) -> tuple[Mask, Array]:
    """Operators of a part that run on all cores in each schedule that is shorter than one after another, and rates of the rest.

    On one core an operator adds all its cycles to those of the operators that cannot run beside it; where that is no less than the
    cycles of one after another, it runs on all.
    """
    index = {operator: row for row, operator in enumerate(part)}
    ordered = np.array([[float(graph.comparable[row] >> other & 1) for other in part] for row in part])
    rows, shape = list(part), (len(index), one.shape[1])
    serial, whole = np.minimum(one, every)[rows].sum(axis=0), np.zeros(shape, bool)
    while True:
        rates = antichain_rates(graph, part, one, every, cores, whole)
        outside = ordered @ _cycles(part, one, every, whole, rates) * _LOWERED
        more = whole | ((one[rows] + outside >= serial) & (every[rows] < one[rows]))
        if (more == whole).all():
            return whole, rates
        whole = more


def antichain_rates(graph: OperatorGraph, part: Sequence[int], one: Array, every: Array, cores: tuple[int, int], whole: Mask) -> Array:
    """For each operator of a part a share of a cycle, such that operators that can run beside each other have one together at the most.

    While operators run beside each other, each is on one core. So the cycles of a part are no fewer than the sum of the rates times the
    cycles on one core, if no rate is above `every / one`. Long operators take their rates first; those of `whole` have none.
    """
    index, shape = {operator: row for row, operator in enumerate(part)}, (len(part), one.shape[1])
    beside = [sum(1 << index[other] for other in part if other != row and not graph.comparable[row] >> other & 1) for row in part]
    rates, assigned, nothing = np.zeros(shape), 0, np.zeros(one.shape[1])
    known: dict[tuple[int, int, int], Array] = {}

    def heaviest(rows: int, tensor: int, vector: int) -> Array:
        """The most that any of these rows that can run beside each other on so many cores have together."""
        if not rows:
            return nothing
        if len(known) > _MOST_SETS:
            return np.asarray(rates[[row for row in range(len(part)) if rows >> row & 1]].sum(axis=0))
        if (rows, tensor, vector) not in known:
            first = (rows & -rows).bit_length() - 1
            rest, uses = rows & (rows - 1), graph.uses[part[first]]
            best = heaviest(rest, tensor, vector)
            if tensor >= uses[0] and vector >= uses[1]:
                best = np.maximum(best, rates[first] + heaviest(rest & beside[first], tensor - uses[0], vector - uses[1]))
            known[rows, tensor, vector] = best
        return known[rows, tensor, vector]

    for row in sorted(range(len(part)), key=lambda row: (-float(every[part[row]].mean()), row)):
        operator = part[row]
        uses = graph.uses[operator]
        limit = np.maximum(1.0 - heaviest(beside[row] & assigned, max(cores[0] - uses[0], 0), max(cores[1] - uses[1], 0)), 0.0)
        rate = np.minimum(every[operator] / np.maximum(one[operator], 1.0), limit) * _LOWERED
        rates[row] = np.where(whole[row], 0.0, rate)
        assigned |= 1 << row
    return rates


def best_schedule(
    graph: OperatorGraph, one: Sequence[int], every: Sequence[int], cores: tuple[int, int], most: int = MOST_STATES
) -> Schedule:
    """The shortest schedule, or a bound and the best schedule after so many states of a part."""
    starts, on_all, least, now = [0] * len(graph), [False] * len(graph), 0, 0
    for part in graph.parts:
        if len(part) == 1:
            operator = part[0]
            starts[operator], on_all[operator] = now, every[operator] < one[operator]
            cycles = bound = min(one[operator], every[operator])
        else:
            bound, cycles, chosen = _Part(graph, part, one, every, cores).solved(most)
            for operator, start, whole in chosen:
                starts[operator], on_all[operator] = now + start, whole
        now, least = now + cycles, least + bound
    return Schedule(least, now, tuple(on_all), tuple(starts))


def all_on_all(graph: OperatorGraph, every: Sequence[int]) -> Schedule:
    """One operator after another, each on all cores."""
    starts = [0]
    for cycles in every:
        starts.append(starts[-1] + cycles)
    cycles = starts.pop()
    return Schedule(cycles, cycles, (True,) * len(graph), tuple(starts))


_Chosen = tuple[tuple[int, int, bool], ...]
_Running = tuple[tuple[int, int], ...]
_State = tuple[int, int, int, _Running, tuple[int, ...]]
"""Cycles so far, operators started as bits, the first that may start next at this moment, ends of those that run, and work that is left."""


class _Part:
    """The search for the shortest schedule of a part."""

    def __init__(
        self, graph: OperatorGraph, part: tuple[int, ...], one: Sequence[int], every: Sequence[int], cores: tuple[int, int]
    ) -> None:
        index = {operator: row for row, operator in enumerate(part)}
        self.part, self.cores, self.count = part, cores, len(part)
        self.one, self.every = [one[operator] for operator in part], [every[operator] for operator in part]
        self.uses = [graph.uses[operator] for operator in part]
        self.before = [sum(1 << index[other] for other in graph.before[operator] if other in index) for operator in part]
        least = [min(one[operator], every[operator]) for operator in range(len(graph))]
        tails = graph.longest(part, least)
        self.tails = [tails[operator] for operator in part]
        self.behind = [tails[operator] - least[operator] for operator in part]
        tensor, vector = max(cores[0], 1), max(cores[1], 1)
        shares = [[share * vector * uses[0] + (4 - share) * tensor * uses[1] for uses in self.uses] for share in range(5)]
        columns = [np.array(cycles, np.float64)[:, None] for cycles in (one, every)]
        whole, rates = rates_of(graph, part, columns[0], columns[1], cores)
        self.whole = whole[:, 0].tolist()
        self.rates = [*shares, [int(rate * _UNIT) for rate in rates[:, 0]]]
        self.units = [4 * tensor * vector] * 5 + [_UNIT]
        self.work = [
            [
                unit * self.every[row] if self.whole[row] else min(self.one[row] * rate, unit * self.every[row])
                for row, rate in enumerate(own)
            ]
            for own, unit in zip(self.rates, self.units, strict=True)
        ]

    def solved(self, most: int) -> tuple[int, int, _Chosen]:
        """The least cycles proved, those of the best schedule, and the schedule."""
        full, (best, chosen) = (1 << self.count) - 1, min(self._serial(), self._listed(), key=lambda found: found[0])
        left = tuple(sum(work) for work in self.work)
        start = (0, 0, 0, (), left)
        root = self._bound(0, 0, (), left)
        if root >= best:
            return best, best, chosen
        best, chosen = min((best, chosen), self._beam(left), key=lambda found: found[0])
        most = most * _USUAL // max(self.count, _USUAL)
        heap: list[tuple[int, int, int, _State]] = [(root, 0, 0, start)]
        parents: list[tuple[int, tuple[int, int, bool] | None]] = [(-1, None)]
        seen = dict[tuple[int, int, tuple[int, ...]], list[tuple[int, ...]]]()
        while heap:
            bound, _, node, (now, started, last, running, work) = heappop(heap)
            if bound >= best:
                break
            if len(parents) > most:
                return min(bound, best), best, chosen
            if started == full:
                end = max((end for end, _ in running), default=now)
                return end, end, self._traced(parents, node)
            for step, state in self._moves(now, started, last, running, work):
                low = self._bound(state[0], state[1], state[3], state[4])
                if low >= best or self._dominated(seen, state):
                    continue
                parents.append((node, step))
                heappush(heap, (low, -state[1].bit_count(), len(parents) - 1, state))
        return best, best, chosen

    def _moves(
        self, now: int, started: int, last: int, running: _Running, work: tuple[int, ...]
    ) -> list[tuple[tuple[int, int, bool] | None, _State]]:
        """What can happen next: an operator starts on one core, in ascending order; one runs on all; or time goes on to the next end."""
        found: list[tuple[tuple[int, int, bool] | None, _State]] = []
        finished, tensor, vector = started, *self.cores
        for _, row in running:
            finished &= ~(1 << row)
            tensor, vector = tensor - self.uses[row][0], vector - self.uses[row][1]
        for row in range(self.count):
            if started >> row & 1 or self.before[row] & ~finished:
                continue
            rest = tuple(left - own[row] for left, own in zip(work, self.work, strict=True))
            if not running and self.every[row] < self.one[row]:
                found.append(((row, now, True), (now + self.every[row], started | 1 << row, 0, (), rest)))
            if row >= last and not self.whole[row] and self.uses[row][0] <= tensor and self.uses[row][1] <= vector:
                active = tuple(sorted((*running, (now + self.one[row], row))))
                found.append(((row, now, False), (now, started | 1 << row, row + 1, active, rest)))
        if running:
            end = running[0][0]
            found.append((None, (end, started, 0, tuple(item for item in running if item[0] > end), work)))
        return found

    def _bound(self, now: int, started: int, running: _Running, work: tuple[int, ...]) -> int:
        """Cycles that no schedule behind a state is below: paths, and work that is left with what runs, by each weight."""
        least = max((end + self.behind[row] for end, row in running), default=now)
        for row in range(self.count):
            if not started >> row & 1 and now + self.tails[row] > least:
                least = now + self.tails[row]
        for rates, unit, unstarted in zip(self.rates, self.units, work, strict=True):
            left = unstarted
            for end, row in running:
                left += (end - now) * rates[row]
            needed = now - (-left // unit)
            least = needed if needed > least else least
        return least

    def _beam(self, left: tuple[int, ...]) -> tuple[int, _Chosen]:
        """The best schedule that a few states for each number of started operators lead to, those of the least bounds."""
        front: list[tuple[_State, _Chosen]] = [((0, 0, 0, (), left), ())]
        for _ in range(self.count):
            found = dict[tuple[int, tuple[int, ...]], tuple[int, int, _State, _Chosen]]()
            for first, chosen in front:
                state: _State | None = first
                while state is not None:
                    after: _State | None = None
                    for step, new in self._moves(*state):
                        if step is None:
                            after = new
                            continue
                        low, key = self._bound(new[0], new[1], new[3], new[4]), (new[1], tuple(sorted(row for _, row in new[3])))
                        if key not in found or (low, new[0]) < found[key][:2]:
                            found[key] = low, new[0], new, (*chosen, (self.part[step[0]], step[1], step[2]))
                    state = after
            front = [(state, chosen) for _, _, state, chosen in sorted(found.values(), key=lambda one: one[:2])[:_BEAM]]
        ends = [(max((end for end, _ in state[3]), default=state[0]), chosen) for state, chosen in front]
        return min(ends, key=lambda one: one[0])

    @staticmethod
    def _dominated(seen: dict[tuple[int, int, tuple[int, ...]], list[tuple[int, ...]]], state: _State) -> bool:
        """Whether a state with the same operators started and running was no later in anything; notes the state."""
        now, started, last, running, _ = state
        rows = sorted((row, end) for end, row in running)
        times = (now, *(end for _, end in rows))
        known = seen.setdefault((started, last, tuple(row for row, _ in rows)), [])
        if any(all(earlier <= later for earlier, later in zip(other, times, strict=True)) for other in known):
            return True
        known[:] = [other for other in known if not all(later <= earlier for later, earlier in zip(times, other, strict=True))]
        known.append(times)
        return False

    def _traced(self, parents: list[tuple[int, tuple[int, int, bool] | None]], node: int) -> _Chosen:
        steps = list[tuple[int, int, bool]]()
        while node >= 0:
            node, step = parents[node]
            if step is not None:
                steps.append((self.part[step[0]], step[1], step[2]))
        return tuple(reversed(steps))

    def _serial(self) -> tuple[int, _Chosen]:
        """One after another, each the quicker way."""
        now, found = 0, list[tuple[int, int, bool]]()
        for row, operator in enumerate(self.part):
            found.append((operator, now, self.every[row] < self.one[row]))
            now += min(self.one[row], self.every[row])
        return now, tuple(found)

    def _listed(self) -> tuple[int, _Chosen]:
        """Each on one core as early as can be, those with the longest path behind them first."""
        now, started, running, found = 0, 0, list[tuple[int, int]](), list[tuple[int, int, bool]]()
        if any(uses[0] > self.cores[0] or uses[1] > self.cores[1] for uses in self.uses):
            return self._serial()
        while len(found) < self.count or running:
            finished, free = started & ~sum(1 << row for _, row in running), list(self.cores)
            for _, row in running:
                free = [left - use for left, use in zip(free, self.uses[row], strict=True)]
            for row in sorted(range(self.count), key=lambda row: -self.tails[row]):
                fits = all(use <= left for use, left in zip(self.uses[row], free, strict=True))
                if not started >> row & 1 and not self.before[row] & ~finished and fits:
                    free = [left - use for left, use in zip(free, self.uses[row], strict=True)]
                    started |= 1 << row
                    running.append((now + self.one[row], row))
                    found.append((self.part[row], now, False))
            now = min(end for end, _ in running)
            running = [item for item in running if item[0] > now]
        return now, tuple(found)
