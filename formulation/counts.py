"""Counts of shapes on a server: the dynamic program over threads and requests, its feasibility form on bits, and integer models.

    opt[c, b, i]  =  the best of combine(opt[c - t, b - r, i - 1], shape (t, r)) over all measured shapes,   opt[0, 0, 0] = nothing

with c the threads used of a socket, b the requests placed and i the instances. To combine is the greater latency, or the sum of rates. The
next socket starts from the states of all c, or of c = all threads where none may stay idle. Requests are left out where their number is
open, and instances where nothing depends on their number. Latencies need not be monotone in anything.

The feasibility form asks whether shapes up to a latency can be put together at all: a set of b is one Python integer, bit b for b requests.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.formulation.model import Linear, Model, Terms, Variable
from crossopt.instances.counts.shapes import InstancesQuestion, Shape

MOST_STATES, MOST_WORK = 20_000_000, 4_000_000_000
"""States of the dynamic program, and states times shapes."""
_FAR = np.iinfo(np.int64).max // 4
Placed = tuple[tuple[int, int], ...]
"""Instances: the socket of each, and the place of its shape."""
Tick = Callable[[], None]
"""Called again and again during a long computation; it may raise."""


class LargeError(ValueError):
    """A dynamic program of too many states."""


@dataclass(frozen=True, slots=True)
class Part:
    """Numbers of instances with one factor, and the shapes that keep the service level there, by their places in the question."""

    low: int
    high: int
    factor: Fraction
    shapes: tuple[int, ...]


def parts_of(question: InstancesQuestion) -> tuple[Part, ...]:
    """The parts of a question, in ascending order of instances."""
    if not question.most_instances:
        return ()
    starts = [count for count, _ in question.factors if count <= question.most_instances]
    found = list[Part]()
    for low, high in zip(starts, [*(count - 1 for count in starts[1:]), question.most_instances], strict=True):
        factor = question.factor(low)
        allowed = [
            index
            for index, shape in enumerate(question.shapes)
            if shape.threads <= question.per_socket
            and shape.batch <= (question.file.batch or shape.batch)
            and (question.limit is None or factor * shape.latency <= question.limit)
        ]
        found += [Part(low, high, factor, tuple(allowed))] if allowed else []
    return tuple(found)


def counts_instances(question: InstancesQuestion) -> bool:
    """Whether the number of instances matters."""
    return question.memory_instances is not None or len(question.factors) > 1


@dataclass(frozen=True, slots=True)
class Best:
    """The best answer: its cost in exact units, infinite where there is none, and its instances."""

    cost: Fraction | float
    placed: Placed = ()


def best_of(question: InstancesQuestion, tick: Tick) -> Best:
    """The least latency, or the least time per request, in units, by the dynamic program."""
    best = Best(inf)
    by_shapes = dict[tuple[int, ...], list[Part]]()
    for part in parts_of(question):
        by_shapes.setdefault(part.shapes, []).append(part)
    for shapes, parts in by_shapes.items():
        table = _Table(question, shapes, max(part.high for part in parts), tick)
        for part in parts:
            found = table.best(part)
            best = found if found.cost < best.cost else best
    return best


class _Table:
    """The states of all sockets and threads."""

    def __init__(self, question: InstancesQuestion, shapes: Sequence[int], most: int, tick: Tick) -> None:
        self.question, self.shapes = question, shapes
        self.sums = question.file.objective == "throughput"
        self.counted, self.placed = counts_instances(question), question.file.batch is not None
        size = (most if self.counted else 0) + 1, (question.file.batch or 0) + 1
        levels = question.file.sockets * (question.per_socket + 1)
        if levels * size[0] * size[1] > MOST_STATES or levels * size[0] * size[1] * len(shapes) > MOST_WORK:
            raise LargeError(f"{levels * size[0] * size[1]:,} states times {len(shapes):,} shapes are too many for the dynamic program")
        start = np.full(size, self.none)
        start[0, 0] = 0
        self.sockets = list[list[Ints]]()
        for _ in range(question.file.sockets):
            self.sockets.append(self._filled(start, tick))
            start = self._after(self.sockets[-1])
        self.last = start

    @property
    def none(self) -> int:
        """The state that is not reached."""
        return -_FAR if self.sums else _FAR

    def _filled(self, start: Ints, tick: Tick) -> list[Ints]:
        """States by threads used of a socket."""
        levels = [start]
        for used in range(1, self.question.per_socket + 1):
            tick()
            level = np.full_like(start, self.none)
            for index in self.shapes:
                shape = self.question.shapes[index]
                if shape.threads <= used:
                    self._add(level, levels[used - shape.threads], shape)
            levels.append(level)
        return levels

    def _add(self, level: Ints, before: Ints, shape: Shape) -> None:
        """The best of a level and of one more instance on an earlier one."""
        rows, columns = int(self.counted), shape.batch if self.placed else 0
        source, target = before[: len(before) - rows, : before.shape[1] - columns], level[rows:, columns:]
        if self.sums:
            np.maximum(target, source + shape.rate, out=target)
        else:
            np.minimum(target, np.maximum(source, shape.latency), out=target)

    def _after(self, levels: list[Ints]) -> Ints:
        """Where the next socket starts from."""
        if not self.question.file.idle_threads:
            return levels[-1]
        merged: Ints = np.max(levels, axis=0) if self.sums else np.min(levels, axis=0)
        return merged

    def best(self, part: Part) -> Best:
        """The best answer with a number of instances of this part."""
        batch = self.question.file.batch or 0
        rows = range(part.low, min(part.high, len(self.last) - 1) + 1) if self.counted else range(1)
        reached = [(int(self.last[row, batch]), row) for row in rows if self._is_reached(int(self.last[row, batch]))]
        if not reached:
            return Best(inf)
        if self.sums:
            units, row = max(reached)
            return Best(part.factor / units, self._traced(row, batch)) if units else Best(inf)
        units, row = min(reached)
        return Best(part.factor * units, self._traced(row, batch))

    def _is_reached(self, units: int) -> bool:
        return units >= 0 if self.sums else units < _FAR

    def _traced(self, row: int, column: int) -> Placed:
        """Instances of a state, from the last socket back to the first."""
        found, wanted = list[tuple[int, int]](), int(self.last[row, column])
        for socket in reversed(range(len(self.sockets))):
            levels = self.sockets[socket]
            used = next(used for used in reversed(range(len(levels))) if int(levels[used][row, column]) == wanted)
            while used:
                index, wanted = self._last_added(levels, used, row, column, wanted)
                shape = self.question.shapes[index]
                found.append((socket, index))
                used, row, column = used - shape.threads, row - self.counted, column - (shape.batch if self.placed else 0)
        return tuple(reversed(found))

    def _last_added(self, levels: list[Ints], used: int, row: int, column: int, wanted: int) -> tuple[int, int]:
        """A shape that leads to a state, and the value of the state before it."""
        for index in self.shapes:
            shape = self.question.shapes[index]
            before, left = row - self.counted, column - (shape.batch if self.placed else 0)
            if shape.threads > used or before < 0 or left < 0:
                continue
            units = int(levels[used - shape.threads][before, left])
            if self._is_reached(units) and (units + shape.rate if self.sums else max(units, shape.latency)) == wanted:
                return index, units
        raise AssertionError("a state of the dynamic program has nothing before it")


# Whether shapes can be put together at all, on bits.


def reached_sets(question: InstancesQuestion, shapes: Sequence[int], most: int | None, tick: Tick) -> list[list[list[int]]]:
    """By socket, threads used and instances: the numbers of requests that some of the shapes add up to, as bits.

    With `most` None the number of instances is left out, and there is one set for each number of threads."""
    batch = question.file.batch
    mask, counted = (1 << (batch or 0) + 1) - 1, most is not None
    start, sockets = [1, *[0] * (most or 0)], list[list[list[int]]]()
    distinct = {(question.shapes[index].threads, question.shapes[index].batch if batch is not None else 0) for index in shapes}
    for _ in range(question.file.sockets):
        levels = [start]
        for used in range(1, question.per_socket + 1):
            tick()
            level = [0] * len(start)
            for threads, requests in distinct:
                before = levels[used - threads] if threads <= used else []
                for row, bits in enumerate(before[: len(start) - counted]):
                    level[row + counted] |= bits << requests & mask
            levels.append(level)
        sockets.append(levels)
        start = after_socket(question, levels)
    return sockets


def after_socket(question: InstancesQuestion, levels: list[list[int]]) -> list[int]:
    """The sets with which a next socket would start."""
    if not question.file.idle_threads:
        return levels[-1]
    found = list(levels[0])
    for level in levels[1:]:
        found = [one | other for one, other in zip(found, level, strict=True)]
    return found


def traced_bits(question: InstancesQuestion, sockets: list[list[list[int]]], shapes: Sequence[int], row: int) -> Placed:
    """Instances that add up to all requests, from sets that say that there are some."""
    placed, counted = question.file.batch is not None, len(sockets[0][0]) > 1
    found, column = list[tuple[int, int]](), question.file.batch or 0
    for socket in reversed(range(len(sockets))):
        levels = sockets[socket]
        ends = range(len(levels)) if question.file.idle_threads else [len(levels) - 1]
        used = next(used for used in ends if levels[used][row] >> column & 1)
        while used:
            for index in shapes:
                shape = question.shapes[index]
                before, left = row - counted, column - (shape.batch if placed else 0)
                if shape.threads <= used and before >= 0 and left >= 0 and levels[used - shape.threads][before] >> left & 1:
                    found.append((socket, index))
                    used, row, column = used - shape.threads, before, left
                    break
    return tuple(reversed(found))


# The integer model of a part: how many instances of each shape run on each socket.


@dataclass(frozen=True, slots=True)
class ShapeModel:
    """A model, with the variable of each shape on each socket."""

    model: Model
    counts: dict[tuple[int, int], Variable]


def shape_model(question: InstancesQuestion, part: Part) -> ShapeModel:
    """Counts of shapes with the rank of the greatest latency minimised, or the sum of rates maximised."""
    file, shapes = question.file, question.shapes
    most = {index: min(question.per_socket // shapes[index].threads, part.high) for index in part.shapes}
    if file.batch is not None:
        most = {index: min(count, file.batch // shapes[index].batch) for index, count in most.items()}
    counts = {
        (socket, index): Variable(f"instances {shapes[index].threads}x{shapes[index].batch} on socket {socket}", 0, most[index])
        for socket in range(file.sockets)
        for index in part.shapes
    }
    rows = [
        Linear(
            f"threads of socket {socket}",
            tuple((shapes[index].threads, counts[socket, index]) for index in part.shapes),
            None if file.idle_threads else question.per_socket,
            question.per_socket,
        )
        for socket in range(file.sockets)
    ]
    rows.append(Linear("instances", tuple((1, variable) for variable in counts.values()), part.low, part.high))
    if file.batch is not None:
        rows.append(Linear("requests", tuple((shapes[index].batch, item) for (_, index), item in counts.items()), file.batch, file.batch))
    if file.objective == "throughput":
        terms = tuple((shapes[index].rate, variable) for (_, index), variable in counts.items())
        return ShapeModel(Model(tuple(counts.values()), tuple(rows), terms, minimise=False), counts)
    ranks = latency_ranks(question, part)
    greatest = Variable("rank of the greatest latency", 0, len(ranks) - 1)
    used = {key: Variable(f"uses {variable.name}", 0, 1) for key, variable in counts.items()}
    rows += list(_ranked(question, ranks, greatest, counts, used))
    return ShapeModel(Model((*counts.values(), *used.values(), greatest), tuple(rows), ((1, greatest),)), counts)


def latency_ranks(question: InstancesQuestion, part: Part) -> list[int]:
    """Different latencies of the shapes of a part, ascending."""
    return sorted({question.shapes[index].latency for index in part.shapes})


def _ranked(
    question: InstancesQuestion,
    ranks: Sequence[int],
    greatest: Variable,
    counts: dict[tuple[int, int], Variable],
    used: dict[tuple[int, int], Variable],
) -> Iterator[Linear]:
    """A shape that is used has a latency of at most the greatest rank."""
    places = {latency: rank for rank, latency in enumerate(ranks)}
    for key, variable in counts.items():
        rank = places[question.shapes[key[1]].latency]
        terms: Terms = ((1, variable), (-variable.high, used[key]))
        yield Linear(f"{used[key].name}, count", terms, None, 0)
        if rank:
            yield Linear(f"{used[key].name}, rank", ((rank, used[key]), (-1, greatest)), None, 0)
