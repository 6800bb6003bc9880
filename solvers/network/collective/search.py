"""A search for chunks: numbers of chunks by order with the least bounds, sequences by simple rules, and keys changed at random."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from random import Random
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.crossflow.astra.chunks import Order
from crossopt.formulation.network.orders import Asked, beginnings, compositions, of_beginning, times_of
from crossopt.formulation.network.program import Program
from crossopt.solvers.network.barrier import minimise
from crossopt.solvers.network.collective.answer import Chunks
from crossopt.solvers.network.collective.dispatch import Key, dispatched, finished, rules_of

_SCALE, _FEW = 1 << 30, 12


def weights_of(asked: Asked) -> tuple[tuple[int, ...], ...]:
    """For each set of dimensions to begin with the weights that bound best; none where choices are few enough to be looked at."""
    if asked.few:
        return ()
    return tuple(_weights(asked, tuple(of_beginning(asked, begun)))[0] for begun in beginnings(asked))


@lru_cache(maxsize=256)
def _weights(asked: Asked, rows: tuple[int, ...]) -> tuple[tuple[int, ...], list[float]]:
    """Weights of dimensions, and shares of orders: the least time T with  sum of shares * loads + around <= T,  and its prices."""
    loads = asked.loads[list(rows)].astype(float) * asked.chunks
    around = (asked.heads[list(rows)].min(axis=0) + asked.tails[list(rows)].min(axis=0)).astype(float)
    count, size = len(rows), float(loads.max() + around.max())
    program = Program(
        (),
        (*([0.0] * count), 1.0),
        (*((*(float(one) for one in column / size), -1.0) for column in loads.T), (*([-1.0] * count), 0.0)),
        (*(float(-one / size) for one in around), -1.0),
        (0.0,) * (count + 1),
        (2.0,) * count + (10.0,),
    )
    solved = minimise(program, (*([1.2 / count] * count), 4.0), (False,) * (count + 1))
    weights = tuple(int(price * _SCALE) for price in solved.multipliers.prices[:-1])
    total = sum(solved.point[:count])
    return (weights if any(weights) else (1,) * len(around)), [share / total for share in solved.point[:count]]


def promising(asked: Asked) -> Whole:
    """Numbers of chunks by order with the least bounds, the least first."""
    if asked.few:
        every = compositions(asked.chunks, len(asked.orders))
        times = times_of(asked, every)
        return every[np.argsort(times, kind="stable")[:_FEW]]
    found = [_rounded(asked, rows) for begun in beginnings(asked) if (rows := of_beginning(asked, begun))]
    every = np.unique(np.array(found), axis=0)
    return every[np.argsort(times_of(asked, every), kind="stable")[:_FEW]]


def _rounded(asked: Asked, rows: list[int]) -> list[int]:
    """Whole numbers near the shares that bound best, bettered by moving a chunk from one order to another."""
    shares = np.zeros(len(asked.orders))
    shares[rows] = _weights(asked, tuple(rows))[1]
    counts = np.floor(shares * asked.chunks).astype(np.int64)
    for row in np.argsort(counts - shares * asked.chunks, kind="stable")[: asked.chunks - int(counts.sum())]:
        counts[row] += 1
    while True:
        moves = [counts]
        for less in np.flatnonzero(counts):
            for more in range(len(counts)):
                if more != less:
                    moves.append(counts.copy())
                    moves[-1][less] -= 1
                    moves[-1][more] += 1
        best = moves[int(times_of(asked, np.array(moves)).argmin())]
        if best is counts:
            return [int(one) for one in counts]
        counts = best


@dataclass(slots=True)
class Walk:
    """The best chunks of one number so far."""

    asked: Asked
    option: int
    random: Random
    value: float = inf
    best: Chunks | None = None
    order: tuple[int, ...] = ()
    keys: dict[tuple[int, int], float] = field(default_factory=dict)

    def rules(self, bound: int, deadline: float) -> None:
        """Every promising number of chunks by order, spread evenly and in blocks, by every rule, until one meets the bound."""
        for counts in promising(self.asked):
            for rows in _arranged(counts):
                if self.value <= bound or (self.best is not None and monotonic() > deadline):
                    return
                for number in range(len(rules_of([self.asked.operations[0]]))):
                    self.tried(rows, number)

    def take_schedule(self, rows: tuple[int, ...], sequences: tuple[tuple[int, ...], ...]) -> None:
        """A schedule of somebody else, run as early as its sequences let it."""
        jobs = [self.asked.operations[row] for row in rows]
        value = finished(jobs, sequences)
        if value < self.value:
            orders = tuple(self.asked.orders[row] for row in rows)
            self.value, self.best, self.order = value, Chunks(self.option, orders, sequences), rows

    def tried(self, rows: tuple[int, ...], rule: int) -> None:
        jobs = [self.asked.operations[row] for row in rows]
        key = rules_of(jobs)[rule]
        if self._take(rows, key):
            places = range(len(jobs[0]))
            self.keys = {(chunk, place): key(chunk, place) for chunk in range(len(jobs)) for place in places}

    def step(self) -> None:
        """The keys of the best with a few of them exchanged, or two chunks of different orders exchanged."""
        keys, rows = dict(self.keys), list(self.order)
        some = self.random.sample(sorted(keys), min(len(keys), self.random.choice((1, 2, 4, 8))))
        values = sorted(keys.values())
        for one in some:
            keys[one] = self.random.choice(values) + self.random.uniform(-0.01, 0.01) * (values[-1] - values[0] + 1.0)
        if self.random.random() < 0.3:
            rows[self.random.randrange(len(rows))] = self.random.randrange(len(self.asked.orders))
        if self._take(tuple(rows), lambda chunk, place: keys[chunk, place]):
            self.keys = keys

    def _take(self, rows: tuple[int, ...], key: Key) -> bool:
        """Whether these chunks are better than all before."""
        jobs = [self.asked.operations[row] for row in rows]
        value, sequences = dispatched(jobs, self.asked.loads.shape[1], key, self.value)
        if value >= self.value:
            return False
        orders: tuple[Order, ...] = tuple(self.asked.orders[row] for row in rows)
        self.value, self.best, self.order = value, Chunks(self.option, orders, sequences), rows
        return True


def _arranged(counts: Whole) -> Iterator[tuple[int, ...]]:
    """Chunks by the places of their orders: spread evenly, in blocks, and in blocks the other way round."""
    places = [(row, number) for row, count in enumerate(counts.tolist()) for number in range(count)]
    yield tuple(row for row, _ in sorted(places, key=lambda one: (one[1] + 0.5) / counts[one[0]]))
    if np.count_nonzero(counts) > 1:
        yield tuple(row for row, _ in places)
        yield tuple(row for row, _ in reversed(places))
