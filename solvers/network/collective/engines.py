"""Engines that order chunks: a search that ends at its bound or its time limit, and the rules of the simulator."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import heapify, heappop, heappush
from math import inf
from random import Random
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.crossflow.astra.collective import Operation, Order
from crossopt.formulation.model import Shop
from crossopt.formulation.network import ChunkLoads, Program, beginnings, chunk_loads, compositions, least_time, of_beginning, times_of
from crossopt.instances.network.collective import CollectiveQuestion
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.backends.cpsat import scheduled
from crossopt.solvers.network.barrier import minimise
from crossopt.solvers.network.collective.family import Chunks, best, reason_of, rules_of_collective
from crossopt.solvers.proofs import UnverifiedBound, Weighed

# Sequences of chunks by a rule: whenever a dimension is free, the waiting chunk with the least key is next.

Key = Callable[[int, int], float]
"""Of a chunk and the place of its phase."""
Jobs = Sequence[Sequence[Operation]]


def dispatched(jobs: Jobs, dimensions: int, key: Key, most: float = inf) -> tuple[float, tuple[tuple[int, ...], ...]]:
    """When all is done, and who follows whom on each dimension; infinite where that is not below the most."""
    waiting: list[list[tuple[float, int]]] = [[] for _ in range(dimensions)]
    busy, phase_of = [False] * dimensions, [0] * len(jobs)
    found: list[list[int]] = [[] for _ in range(dimensions)]
    events, end = list[tuple[int, int]](), 0

    def join(chunk: int) -> None:
        heappush(waiting[jobs[chunk][phase_of[chunk]].phase.dimension], (key(chunk, phase_of[chunk]), chunk))

    def start(dimension: int, now: int) -> None:
        if not busy[dimension] and waiting[dimension]:
            _, chunk = heappop(waiting[dimension])
            busy[dimension] = True
            found[dimension].append(chunk)
            heappush(events, (now + jobs[chunk][phase_of[chunk]].duration, chunk))

    for chunk in range(len(jobs)):
        join(chunk)
    for dimension in range(dimensions):
        heapify(waiting[dimension])
        start(dimension, 0)
    while events:
        end = events[0][0]
        if end >= most:
            return inf, ()
        while events and events[0][0] == end:
            _, chunk = heappop(events)
            busy[jobs[chunk][phase_of[chunk]].phase.dimension] = False
            phase_of[chunk] += 1
            if phase_of[chunk] < len(jobs[chunk]):
                join(chunk)
        for dimension in range(dimensions):
            start(dimension, end)
    return end, tuple(map(tuple, found))


def finished(jobs: Jobs, sequences: Sequence[Sequence[int]]) -> int:
    """When all is done in given sequences, each operation as early as may be."""
    phase_of, came = [0] * len(jobs), [0] * len(jobs)
    free, served = [0] * len(sequences), [0] * len(sequences)
    left = sum(map(len, sequences))
    while left:
        for dimension, sequence in enumerate(sequences):
            while served[dimension] < len(sequence):
                chunk = sequence[served[dimension]]
                operation = jobs[chunk][phase_of[chunk]]
                if operation.phase.dimension != dimension:
                    break
                came[chunk] = free[dimension] = max(free[dimension], came[chunk]) + operation.duration
                phase_of[chunk] += 1
                served[dimension] += 1
                left -= 1
    return max(free)


def rules_of(jobs: Jobs) -> list[Key]:
    """Simple rules: by what is left of a chunk, how long a phase is, how far out it is, and the first come."""
    tails = [[sum(operation.duration for operation in job[phase:]) for phase in range(len(job) + 1)] for job in jobs]
    middle = (len(jobs[0]) - 1) / 2.0
    return [
        lambda chunk, phase: -float(phase),
        lambda chunk, phase: float(phase),
        lambda chunk, phase: float(tails[chunk][phase]),
        lambda chunk, phase: -float(tails[chunk][phase]),
        lambda chunk, phase: -float(tails[chunk][phase + 1]),
        lambda chunk, phase: float(jobs[chunk][phase].duration),
        lambda chunk, phase: -float(jobs[chunk][phase].duration),
        lambda chunk, phase: abs(phase - middle),
        lambda chunk, phase: -abs(phase - middle),
        lambda chunk, phase: float(chunk),
        lambda chunk, phase: phase + (len(jobs[0]) if phase in (0, len(jobs[0]) - 1) else 0.0),
    ]


# A search for chunks: numbers of chunks by order with the least bounds, sequences by simple rules, and keys changed at random.

_SCALE, _FEW = 1 << 30, 12


def weights_of(problem: ChunkLoads) -> tuple[tuple[int, ...], ...]:
    """For each set of dimensions to begin with the weights that bound best; none if choices are few enough to be enumerated."""
    if problem.few:
        return ()
    return tuple(_weights(problem, tuple(of_beginning(problem, begun)))[0] for begun in beginnings(problem))


@lru_cache(maxsize=256)
def _weights(problem: ChunkLoads, rows: tuple[int, ...]) -> tuple[tuple[int, ...], list[float]]:
    """Weights of dimensions, and shares of orders: the least time T with  sum of shares * loads + around <= T,  and its prices."""
    loads = problem.loads[list(rows)].astype(float) * problem.chunks
    around = (problem.heads[list(rows)].min(axis=0) + problem.tails[list(rows)].min(axis=0)).astype(float)
    count, size = len(rows), float(loads.max() + around.max())
    program = Program(
        (),
        (*([0.0] * count), 1.0),
        (*((*(float(load) for load in column / size), -1.0) for column in loads.T), (*([-1.0] * count), 0.0)),
        (*(float(-time / size) for time in around), -1.0),
        (0.0,) * (count + 1),
        (2.0,) * count + (10.0,),
    )
    solved = minimise(program, (*([1.2 / count] * count), 4.0), (False,) * (count + 1))
    weights = tuple(int(price * _SCALE) for price in solved.multipliers.prices[:-1])
    total = sum(solved.point[:count])
    return (weights if any(weights) else (1,) * len(around)), [share / total for share in solved.point[:count]]


def promising(problem: ChunkLoads) -> Ints:
    """Numbers of chunks by order with the least bounds, the least first."""
    if problem.few:
        every = compositions(problem.chunks, len(problem.orders))
        times = times_of(problem, every)
        return every[np.argsort(times, kind="stable")[:_FEW]]
    found = [_rounded(problem, rows) for begun in beginnings(problem) if (rows := of_beginning(problem, begun))]
    every = np.unique(np.array(found), axis=0)
    return every[np.argsort(times_of(problem, every), kind="stable")[:_FEW]]


def _rounded(problem: ChunkLoads, rows: list[int]) -> list[int]:
    """Whole numbers near the shares that bound best, bettered by moving a chunk from one order to another."""
    shares = np.zeros(len(problem.orders))
    shares[rows] = _weights(problem, tuple(rows))[1]
    counts = np.floor(shares * problem.chunks).astype(np.int64)
    for row in np.argsort(counts - shares * problem.chunks, kind="stable")[: problem.chunks - int(counts.sum())]:
        counts[row] += 1
    while True:
        moves = [counts]
        for less in np.flatnonzero(counts):
            for more in range(len(counts)):
                if more != less:
                    moves.append(counts.copy())
                    moves[-1][less] -= 1
                    moves[-1][more] += 1
        best = moves[int(times_of(problem, np.array(moves)).argmin())]
        if best is counts:
            return [int(count) for count in counts]
        counts = best


@dataclass(slots=True)
class Walk:
    """The best chunks of one number so far."""

    problem: ChunkLoads
    option: int
    random: Random
    value: float = inf
    best: Chunks | None = None
    order: tuple[int, ...] = ()
    keys: dict[tuple[int, int], float] = field(default_factory=dict)

    def rules(self, bound: int, deadline: float) -> None:
        """Every promising number of chunks by order, spread evenly and in blocks, by every rule, until one meets the bound."""
        for counts in promising(self.problem):
            for rows in _arranged(counts):
                if self.value <= bound or (self.best is not None and monotonic() > deadline):
                    return
                for number in range(len(rules_of([self.problem.operations[0]]))):
                    self.tried(rows, number)

    def take_schedule(self, rows: tuple[int, ...], sequences: tuple[tuple[int, ...], ...]) -> None:
        """Take in a schedule from another engine, run as early as its sequences allow."""
        jobs = [self.problem.operations[row] for row in rows]
        value = finished(jobs, sequences)
        if value < self.value:
            orders = tuple(self.problem.orders[row] for row in rows)
            self.value, self.best, self.order = value, Chunks(self.option, orders, sequences), rows

    def tried(self, rows: tuple[int, ...], rule: int) -> None:
        jobs = [self.problem.operations[row] for row in rows]
        key = rules_of(jobs)[rule]
        if self._take(rows, key):
            places = range(len(jobs[0]))
            self.keys = {(chunk, phase): key(chunk, phase) for chunk in range(len(jobs)) for phase in places}

    def step(self) -> None:
        """The keys of the best with a few of them exchanged, or two chunks of different orders exchanged."""
        keys, rows = dict(self.keys), list(self.order)
        some = self.random.sample(sorted(keys), min(len(keys), self.random.choice((1, 2, 4, 8))))
        values = sorted(keys.values())
        for key in some:
            keys[key] = self.random.choice(values) + self.random.uniform(-0.01, 0.01) * (values[-1] - values[0] + 1.0)
        if self.random.random() < 0.3:
            rows[self.random.randrange(len(rows))] = self.random.randrange(len(self.problem.orders))
        if self._take(tuple(rows), lambda chunk, phase: keys[chunk, phase]):
            self.keys = keys

    def _take(self, rows: tuple[int, ...], key: Key) -> bool:
        """Whether these chunks are better than all before."""
        jobs = [self.problem.operations[row] for row in rows]
        value, sequences = dispatched(jobs, self.problem.loads.shape[1], key, self.value)
        if value >= self.value:
            return False
        orders: tuple[Order, ...] = tuple(self.problem.orders[row] for row in rows)
        self.value, self.best, self.order = value, Chunks(self.option, orders, sequences), rows
        return True


def _arranged(counts: Ints) -> Iterator[tuple[int, ...]]:
    """Chunks by the places of their orders: spread evenly, in blocks, and in blocks the other way round."""
    places = [(row, number) for row, count in enumerate(counts.tolist()) for number in range(count)]
    yield tuple(row for row, _ in sorted(places, key=lambda pair: (pair[1] + 0.5) / counts[pair[0]]))
    if np.count_nonzero(counts) > 1:
        yield tuple(row for row, _ in places)
        yield tuple(row for row, _ in reversed(places))


# Who orders chunks: a search that ends at its bound or when its time is over, and the rules of the simulator.

_PATIENCE = {"auto": 120.0, "search": 4.0}
"""Default time limits in seconds of solvers, and of random exchanges."""
_MOST_SCHEDULED, _WORKERS, _FIRST_TURN = 48, 4, 15.0
"""Chunks of which CP-SAT is asked, its threads, fewer of which find no good schedule, and seconds for each number at first."""


def auto(question: CollectiveQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Chunks]:
    """Rules, then CP-SAT where its package is here and a number of chunks is still open, then exchanges at random."""
    return _search(question, limits, watch, "auto")


def search(question: CollectiveQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Chunks]:
    """The search without a solver."""
    return _search(question, limits, watch, "search")


def _search(question: CollectiveQuestion, limits: Limits, watch: Watch, engine: str) -> SearchOutcome[Chunks]:
    """The best chunks of every number; proved where they meet the bound."""
    if not limits.seconds:
        return SearchOutcome(None, engine="search", stopped="time limit")
    deadline = monotonic() + (limits.seconds if limits.seconds < inf else _PATIENCE[engine])
    run = _begun(question, limits, watch)
    if question.deadline is not None and run.bound > question.deadline:
        return SearchOutcome(None, inf, run.proof, "search", reasons=(reason_of(run.bound),))
    run.rules(deadline)
    solved = engine == "auto" and run.value > run.bound and run.schedules(deadline)
    if engine == "search":
        run.exchanges(deadline)
    reported = run.reported_bound if solved else run.bound
    proof = UnverifiedBound("cpsat") if reported > run.bound and reported == run.value else run.proof
    bound = reported if isinstance(proof, UnverifiedBound) else run.bound
    stopped = "time limit" if run.value > bound and monotonic() >= deadline else "complete"
    late = question.deadline is not None and run.value > question.deadline
    return SearchOutcome(
        None if late else run.best, bound, proof, "cpsat" if solved else "search", stopped, baselines=rules_of_collective(question)
    )


@dataclass(slots=True)
class _Run:
    """Every number of chunks: what it asks, its bound, the bound that a solver tells, and the best chunks so far."""

    walks: list[Walk]
    bounds: list[int]
    proof: Weighed
    limits: Limits
    watch: Watch
    tells: list[int] = field(default_factory=list)

    @property
    def bound(self) -> int:
        return min(self.bounds)

    @property
    def reported_bound(self) -> float:
        """The bound with a solver's word."""
        return min(max(pair) for pair in zip(self.bounds, self.tells, strict=True))

    @property
    def value(self) -> float:
        return min(walk.value for walk in self.walks)

    @property
    def best(self) -> Chunks | None:
        return min(self.walks, key=lambda walk: walk.value).best

    def open(self) -> list[int]:
        """Numbers of chunks that may hold something better, the least bound first."""
        places = sorted(range(len(self.walks)), key=lambda number: self.bounds[number])
        return [number for number in places if max(self.bounds[number], self.tells[number]) < self.value]

    def tell(self, message: str) -> None:
        answer = self.best
        self.watch(Progress(message, None if self.value == inf else self.value, self.bound, lambda: answer))

    def rules(self, deadline: float) -> None:
        for number in self.open():
            if self.bounds[number] < self.value and (self.best is None or monotonic() < deadline):
                self.walks[number].rules(self.bounds[number], deadline)
                self.tell(f"{self.walks[number].option} chunks")

    def schedules(self, deadline: float) -> bool:
        """Whether CP-SAT was asked about any: about each in turn, each time for twice as long and with another seed, until time is over.

        What threads come by differs from run to run, so that one long run may miss what a second one finds at once."""
        was_called, turn = False, 0
        while monotonic() < deadline and (left := [walk for walk in self.open() if self.walks[walk].problem.chunks <= _MOST_SCHEDULED]):
            for walk in left:
                seconds = min(deadline - monotonic(), _FIRST_TURN * 2.0**turn)
                if seconds > 0.0 and walk in self.open():
                    was_called = True
                    self.schedule(walk, seconds, self.limits.seed + turn)
            turn += 1
        return was_called

    def schedule(self, number: int, seconds: float, seed: int) -> None:
        """CP-SAT on one number of chunks."""
        walk = self.walks[number]
        ways = tuple(tuple((operation.phase.dimension, operation.duration) for operation in job) for job in walk.problem.operations)
        shop = Shop(walk.problem.chunks, ways, self.bounds[number], int(min(walk.value, self.value)))
        found = scheduled(shop, seconds, max(self.limits.workers, _WORKERS), seed)
        self.tells[number] = max(self.tells[number], found.bound)
        if found.ways:
            walk.take_schedule(found.ways, found.sequences(shop))
        self.tell(f"schedules of {walk.option} chunks")

    def exchanges(self, deadline: float) -> None:
        while (left := self.open()) and monotonic() < deadline:
            for number in left:
                self.walks[number].step()
            self.tell("exchanges")


def _begun(question: CollectiveQuestion, limits: Limits, watch: Watch) -> _Run:
    """The bounds of every number of chunks."""
    options = question.options
    problems = [chunk_loads(question, option) for option in options]
    weights = tuple(weights_of(problem) for problem in problems)
    bounds = [least_time(problem, own) for problem, own in zip(problems, weights, strict=True)]
    walks = [Walk(problem, option, Random(limits.seed)) for problem, option in zip(problems, options, strict=True)]
    return _Run(walks, bounds, Weighed("loads of dimensions", weights), limits, watch, [0] * len(options))


def by_rule(name: str, engine: str, question: CollectiveQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Chunks]:
    """A rule of the simulator; no proof."""
    del limits, watch
    found = best(question, name)
    from crossopt.solvers.network.collective.family import judge  # noqa: PLC0415 - a rule may miss the deadline

    return SearchOutcome(None if judge(question, found).violations else found, engine=engine)
