"""Published planners of activation checkpoints, as baselines. Most choose a set of forward outputs that are computed again once:

    Griewank          revolve (Griewank and Walther 2000): forward nodes as a chain, with a number of checkpoints that are used again
    greedy knapsack   outputs with the most time for a byte are kept (torch/_functorch/_activation_checkpointing/knapsack.py, 2.13)
    knapsack          outputs with the most time together, by its dynamic program over ten thousandths of all bytes
    sac-milp          a share of each block's bytes, the cheapest first, by the MILP of torch/distributed/_tools/sac_ilp.py
    blocks            each block keeps all, its last output, or what is dear for a byte, by one price of bytes (after Rockmate, 2023)
    selective         attention from its scores on (Megatron-LM, Korthikanti et al. 2022), where there is one

and one rounds a linear program:

    rounding          Checkmate's approximation (Jain et al. 2020): its relaxation, retained outputs rounded, then the fewest computations

A block lies between two forward outputs that alone lead from what comes before to what comes behind. PyTorch's planners do not see that
an input of a repeated node may be gone, nor the peak. So each planner is asked for several sizes; its cheapest schedule that fits counts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb, isqrt
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from crossopt.crossflow.arrays import Ints
from crossopt.formulation.model import Program, Rows
from crossopt.instances.errors import FailedError, RefusedError
from crossopt.instances.memory.graph import MemoryGraph
from crossopt.instances.memory.question import MemoryQuestion
from crossopt.solvers.answer import Limits, SearchOutcome, Watch
from crossopt.solvers.backends.arrays import Session, SolveMonitor
from crossopt.solvers.memory.judge import Schedule, cuts_of, is_open
from crossopt.solvers.memory.rules import Gaps, cheapest, dropping, longest_gaps, peak_of

_SIZES = 24
"""Sizes that are tried."""
_GRAIN = 10_000
"""Parts of all bytes in the dynamic program."""
_MOST_KNAPSACK = 4_000
"""Outputs of the dynamic program."""
_BLOCKS = (2, 3, 4, 6, 8, 12, 16, 24, 48)
"""Numbers of blocks that are tried."""
_MARGINS = (1.0, 0.97, 0.93, 0.88, 0.8, 0.7, 0.55, 0.4)
"""Shares of the budget that are asked of models that do not count every byte."""
MOST_OF_ROUNDING = 80
"""Nodes of Checkmate's linear program."""
_PATIENCE = 60.0
"""Seconds of a planner without a limit."""
_DRAWN = 8
"""Roundings by chance."""
_SCORES = ("attention", "softmax", "scores")


def blocks_of(graph: MemoryGraph, most: int) -> list[list[int]]:
    """Forward nodes in up to so many blocks, each from behind one cut to another, of about equal bytes."""
    forward = [node for node, backward in enumerate(graph.backward) if not backward]
    cuts, total = set(cuts_of(graph)), sum(graph.sizes[node] for node in forward)
    found, block, bytes_ = list[list[int]](), list[int](), 0
    for node in forward:
        block.append(node)
        bytes_ += graph.sizes[node]
        if node in cuts and (bytes_ * most >= total * (len(found) + 1) or node == forward[-1]):
            found.append(block)
            block = []
    return found


# Griewank's revolve.


def evaluations(length: int, slots: int) -> int:
    """Forward steps of revolve for a chain whose beginning is there: r l - C(c + r, r - 1), with the least r for which C(c + r, r) >= l;
    c is one more than the number of checkpoints behind the beginning."""
    rounds = _rounds(length, slots + 1)
    return rounds * length - comb(slots + 1 + rounds, rounds - 1) if rounds else 0


def _rounds(length: int, slots: int) -> int:
    """How often a step runs at most."""
    rounds = 0
    while comb(slots + rounds, rounds) < length:
        rounds += 1
    return rounds


@cache
def split_at(length: int, slots: int) -> int:
    """Where the next checkpoint of a chain is, of so many behind its beginning."""
    rounds = _rounds(length, slots + 1)
    least = comb(slots - 1 + rounds, slots + 1) if rounds > 1 else 1
    return min(max(length - comb(slots + rounds, rounds), least, 1), length - 1)


def revolve(graph: MemoryGraph, slots: int) -> tuple[int, ...]:
    """The schedule with so many checkpoints, forward nodes taken as a chain."""
    forward = [node for node, backward in enumerate(graph.backward) if not backward]
    position = {node: index for index, node in enumerate(forward)}
    stored = {forward[index] for index in _placed(-1, len(forward) - 1, slots)}
    order, recent = list(forward), set[int]()
    for stage in range(len(forward), len(graph.names)):
        needed = {source for source in graph.inputs[stage] if source in position}
        again = _missing(graph, needed, stored | recent, position)
        order += [*sorted(again), stage]
        if needed:
            last = max(position[node] for node in needed)
            below = {node for node in stored if position[node] < last}
            first = max((position[node] for node in below), default=-1)
            free = slots - len(below)
            stored = below | {forward[index] for index in _placed(first, last, free) if forward[index] in again}
            recent = needed
    return tuple(order)


def _placed(first: int, last: int, slots: int) -> Iterator[int]:
    """Checkpoints from behind a place up to the last one, by binomial splits."""
    while slots > 0 and last - first > 1:
        first += split_at(last - first, slots)
        slots -= 1
        yield first


def _missing(graph: MemoryGraph, needed: Iterable[int], there: set[int], forward: dict[int, int]) -> set[int]:
    """Forward nodes that are computed again so that these are there."""
    found, left = set[int](), [node for node in needed if node not in there]
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += [source for source in graph.inputs[node] if source in forward and source not in there]
    return found


def griewank(graph: MemoryGraph) -> Iterator[tuple[int, ...]]:
    """Schedules of revolve by the number of checkpoints, from few on; none where forward and backward nodes mix."""
    forward = graph.backward.count(False)
    if any(graph.backward[:forward]) or forward == len(graph.backward):
        return
    most = forward - 1
    for slots in sorted(
        {max(1, round(isqrt(2 * forward) ** (share / 8))) for share in range(9)} | {most * share // 16 for share in range(1, 17)}
    ):
        yield revolve(graph, max(slots, 1))


# Sets of forward outputs.


def greedy_knapsack(memory: Sequence[float], times: Sequence[float], most: float) -> list[int]:
    """What is kept: the most time for a byte first, as long as it fits."""
    found, used = list[int](), 0.0
    for item in sorted(range(len(times)), key=lambda item: times[item] / memory[item], reverse=True):
        if used + memory[item] <= most:
            used += memory[item]
            found.append(item)
    return found


@dataclass(frozen=True, slots=True)
class Knapsack:
    """PyTorch's dynamic program over rounded shares of memory, for all capacities at once. Rounded shares may add up to more than fits."""

    weights: Ints
    table: NDArray[np.float32]
    """Time by the number of items and the capacity."""

    def kept(self, most: float) -> list[int]:
        """What is kept with a capacity as a share of all memory."""
        found, left = list[int](), min(round(most * _GRAIN), self.table.shape[1] - 1)
        for item in range(len(self.weights), 0, -1):
            if self.table[item, left] != self.table[item - 1, left]:
                found.append(item - 1)
                left -= int(self.weights[item - 1])
        return found[::-1]


def knapsack_of(shares: Sequence[float], times: Sequence[float], most: float = 1.0) -> Knapsack:
    """The table for capacities up to one."""
    weights = np.array([round(share * _GRAIN) for share in shares], np.int64)
    table = np.zeros((len(times) + 1, round(most * _GRAIN) + 1), np.float32)
    for item, (weight, time) in enumerate(zip(weights.tolist(), times, strict=True), 1):
        table[item] = table[item - 1]
        if weight == 0:
            table[item] += np.float32(time)
        elif weight < table.shape[1]:
            table[item, weight:] = np.maximum(table[item - 1, weight:], table[item - 1, :-weight] + np.float32(time))
    return Knapsack(weights, table)


def candidates(graph: MemoryGraph, gaps: Gaps) -> list[int]:
    """Forward outputs that the backward pass reads."""
    return [node for node in sorted(gaps) if not graph.backward[node] and graph.sizes[node] and graph.backward[graph.last_uses[node]]]


def by_knapsack(graph: MemoryGraph, gaps: Gaps, greedy: bool) -> Iterator[set[int]]:
    """Sets of dropped outputs for capacities of all, down to nothing."""
    nodes = candidates(graph, gaps)
    total = float(sum(graph.sizes[node] for node in nodes))
    shares, times = [graph.sizes[node] / total for node in nodes], [float(graph.times[node]) for node in nodes]
    if len(nodes) > _MOST_KNAPSACK and not greedy:
        return
    table = None if greedy else knapsack_of(shares, times)
    for part in range(_SIZES):
        most = 1.0 - part / _SIZES
        kept = greedy_knapsack(shares, times, most) if table is None else table.kept(most)
        yield set(nodes) - {nodes[item] for item in kept}


def by_blocks(graph: MemoryGraph, gaps: Gaps) -> Iterator[set[int]]:
    """Each block by itself at one price of bytes: all that it keeps, its last output alone, or the dearest for a byte."""
    inner = set(candidates(graph, gaps))
    for most in _BLOCKS:
        blocks = [[node for node in block[:-1] if node in inner] for block in blocks_of(graph, most)]
        blocks = [sorted(block, key=lambda node: graph.times[node] / graph.sizes[node]) for block in blocks if block]
        rates = sorted({graph.times[node] / graph.sizes[node] for block in blocks for node in block})
        for part in range(_SIZES // 3):
            price = rates[len(rates) * part * 3 // _SIZES] if rates else 0.0
            yield {node for block in blocks for node in block[: _cheapest_prefix(graph, block, price)]}
        yield {node for block in blocks for node in block}


def _cheapest_prefix(graph: MemoryGraph, block: list[int], price: float) -> int:
    """How many of a block are dropped, so that time and priced bytes are least."""
    costs = [0.0]
    for node in block:
        costs.append(costs[-1] + graph.times[node] - price * graph.sizes[node])
    return min(range(len(costs)), key=lambda count: (costs[count], count))


def attention_of(graph: MemoryGraph, gaps: Gaps) -> set[int]:
    """Outputs of attention from its scores on, by the names of nodes: products that a softmax reads or that read one, and all between."""
    found = {node for node in candidates(graph, gaps) if any(word in graph.names[node].lower() for word in _SCORES)}
    scores = {node for node in found if "softmax" in graph.names[node].lower()}
    return found | {source for node in scores for source in graph.inputs[node] if source in gaps and not graph.backward[source]}


# The MILP of PyTorch.


@dataclass(frozen=True, slots=True)
class Unit:
    """A module for `sac_milp`."""

    kept: float
    """Bytes of outputs that are kept without checkpoints."""
    inside: float
    """Bytes of all outputs."""
    gradient: float
    """Bytes of gradients in its backward pass."""
    total: float
    """Bytes of activations when its backward pass begins."""
    time: float
    """Of its forward pass."""
    lines: tuple[tuple[float, float], ...]
    """Slope and intercept of pieces below the share of time by the share of bytes that is dropped."""


def sac_milp(units: Sequence[Unit], budget: float, fixed: float = 0.0, seconds: float = 10.0, gap: float = 0.05) -> list[float] | None:
    """The share of each unit's bytes that is dropped, as sac_milp of PyTorch decides for units beside each other; None where nothing fits.

    Columns of a unit: y whether it is checkpointed, r the share, and its time. Units are in the order of their forward passes."""
    count, top = len(units), max([2.0 * unit.time for unit in units] + [100.0])
    size = max([unit.total + unit.gradient for unit in units] + [1.0])
    terms, highs = list[dict[int, float]](), list[float]()

    def at_most(row: dict[int, float], high: float) -> None:
        terms.append(row)
        highs.append(high)

    for index, unit in enumerate(units):
        y, share, time = 3 * index, 3 * index + 1, 3 * index + 2
        at_most({share: 1.0, y: -1.0}, 0.0)
        at_most({y: (unit.inside - unit.kept) / unit.inside if unit.inside else 0.0, share: -1.0}, 0.0)
        freed = dict[int, float]()
        for earlier, other in enumerate(units[:index]):
            freed |= {3 * earlier + 1: -other.inside / size, 3 * earlier: (other.inside - other.kept) / size}
        at_most(freed, (budget - fixed - unit.total - unit.gradient) / size)
        for slope, intercept in unit.lines:  # time >= unit.time (slope r + intercept) / top where y is 1
            at_most({share: unit.time * slope / top, y: 1.0, time: -1.0}, 1.0 - unit.time * intercept / top)
    columns = np.array([column for row in terms for column in row], np.int64)
    factors = np.array([factor for row in terms for factor in row.values()], float)
    starts = np.cumsum([0, *(len(row) for row in terms)])
    rows = Rows(np.full(len(highs), -np.inf), np.array(highs), starts, columns, factors)
    costs, upper, whole = np.tile([0.0, 0.0, 1.0], count), np.ones(3 * count), np.tile([True, False, False], count)
    try:
        solved = Session(Program(top, costs, upper, whole, rows), 1, 0).solved(seconds, (0.0, gap), SolveMonitor(lambda: False))
    except FailedError:  # a solver that did not end in time: the schedules before this one hold
        return None
    return None if solved.columns is None else [float(share) for share in solved.columns[1::3]]


def units_of(graph: MemoryGraph, gaps: Gaps, most: int) -> list[tuple[Unit, list[int]]]:
    """The blocks of a graph as units, each with its outputs in the order in which they are dropped."""
    inner, found, total = set(candidates(graph, gaps)), list[tuple[Unit, list[int]]](), 0
    gradients = {node: max([graph.sizes[user] for user in graph.users[node] if graph.backward[user]], default=0) for node in inner}
    for block in blocks_of(graph, most):
        outputs = sorted((node for node in block if node in inner), key=lambda node: graph.times[node] / graph.sizes[node])
        kept, time = sum(graph.sizes[node] for node in outputs), sum(graph.times[node] for node in block)
        total += kept
        lines, bytes_, spent = list[tuple[float, float]](), 0, 0
        for node in outputs:
            slope = graph.times[node] / max(time, 1) / (graph.sizes[node] / kept)
            lines.append((slope, spent / max(time, 1) - slope * bytes_ / kept))
            bytes_, spent = bytes_ + graph.sizes[node], spent + graph.times[node]
        gradient = max((gradients[node] for node in outputs), default=0)
        found.append((Unit(float(kept), float(kept), float(gradient), float(total), float(time), tuple(lines)), outputs))
    return found


def by_sac_milp(graph: MemoryGraph, gaps: Gaps, budget: int, deadline: float) -> Iterator[set[int]]:
    """Sets of dropped outputs for shares of the budget, as its peak is an estimate."""
    for most in _BLOCKS[2::2]:
        units = units_of(graph, gaps, most)
        for margin in _MARGINS:
            left = deadline - monotonic()
            shares = sac_milp([unit for unit, _ in units], budget * margin, seconds=min(left, 5.0)) if left > 0.0 else None
            if shares is None:
                break
            yield {
                node
                for (unit, nodes), share in zip(units, shares, strict=True)
                for node in dropped_outputs(graph, nodes, share * unit.inside)
            }


def dropped_outputs(graph: MemoryGraph, outputs: Sequence[int], bytes_: float) -> Iterator[int]:
    """The first outputs whose bytes reach a number."""
    for node in outputs:
        if bytes_ <= 0.5:
            return
        bytes_ -= graph.sizes[node]
        yield node


# Checkmate's approximation.


@dataclass(slots=True)
class _Relaxation:
    """Columns from 0 to 1, or to the budget for bytes, and rows, of Checkmate's linear program with bytes by events."""

    highs: list[float]
    costs: list[float]
    rows: list[tuple[dict[int, float], float]]
    again: dict[tuple[int, int], int]
    """Columns R by stage and node."""
    carried: dict[tuple[int, int], int]
    """Columns S."""

    def column(self, high: float = 1.0, cost: float = 0.0) -> int:
        self.highs.append(high)
        self.costs.append(cost)
        return len(self.highs) - 1

    def program(self) -> Program:
        lengths = np.cumsum([0, *(len(row) for row, _ in self.rows)])
        columns = np.array([column for row, _ in self.rows for column in row], np.int64)
        factors = np.array([factor for row, _ in self.rows for factor in row.values()], float)
        highs = np.array([high for _, high in self.rows])
        rows = Rows(np.full(len(highs), -np.inf), highs, lengths, columns, factors)
        return Program(1.0, np.array(self.costs), np.array(self.highs), np.zeros(len(self.costs), bool), rows)


def checkmate_relaxation(graph: MemoryGraph, budget: float) -> _Relaxation:
    """Its rows (1b) to (1e), and (2) to (8) for bytes, with sizes as shares of the budget."""
    count, unit = len(graph.names), max(graph.times) or 1
    found = _Relaxation([], [], [], {}, {})
    for stage in range(count):
        for node in range(stage + 1):
            found.again[stage, node] = found.column(1.0, 0.0 if node == stage else graph.times[node] / unit)
            if node < stage:
                found.carried[stage, node] = found.column()
    for stage in range(count):
        found.rows.append(({found.again[stage, stage]: -1.0}, -1.0))
        for node in range(stage + 1):
            for source in graph.inputs[node]:
                row = {found.again[stage, node]: 1.0, found.again[stage, source]: -1.0, found.carried[stage, source]: -1.0}
                found.rows.append((row, 0.0))
            if node < stage:
                before = [columns[stage - 1, node] for columns in (found.again, found.carried) if (stage - 1, node) in columns]
                found.rows.append(({found.carried[stage, node]: 1.0} | dict.fromkeys(before, -1.0), 0.0))
        _stage_bytes(graph, budget, stage, found)
    return found


def _stage_bytes(graph: MemoryGraph, budget: float, stage: int, found: _Relaxation) -> None:
    """Bytes after each event of a stage: those before, what is computed, less what is freed after the event before."""
    before, freed = {found.carried[stage, node]: graph.sizes[node] / budget for node in range(stage)}, dict[int, float]()
    for node in range(stage + 1):
        here, runs = found.column(), found.again[stage, node]
        row = {here: -1.0, runs: graph.sizes[node] / budget}
        for column, factor in (*before.items(), *freed.items()):
            row[column] = row.get(column, 0.0) + factor
        found.rows.append((row, 0.0))
        found.rows.append(({here: 1.0, runs: graph.workspaces[node] / budget}, 1.0))
        before, freed = {here: 1.0}, {}
        for source in (*graph.inputs[node], node):
            free = found.column()
            freed[free] = -graph.sizes[source] / budget
            hazards = {found.again[stage, user]: 1.0 for user in graph.users[source] if node < user <= stage}
            hazards |= {found.carried[stage + 1, source]: 1.0} if (stage + 1, source) in found.carried else {}
            most = len(hazards) + 1.0
            found.rows.append(({free: -1.0, runs: 1.0} | dict.fromkeys(hazards, -1.0), 0.0))
            found.rows.append(({free: most, runs: -1.0} | hazards, most - 1.0))


def rounded_schedule(graph: MemoryGraph, carried: set[tuple[int, int]]) -> tuple[int, ...]:
    """The schedule with the fewest computations that carries these outputs into these stages."""
    count = len(graph.names)
    runs: list[set[int]] = [{stage} for stage in range(count)]
    for stage in range(count - 1, -1, -1):
        for node in range(stage, -1, -1):
            if node < stage and (stage + 1, node) in carried and (stage, node) not in carried:
                runs[stage].add(node)
            if node in runs[stage]:
                runs[stage] |= {source for source in graph.inputs[node] if (stage, source) not in carried}
    return tuple(node for repeated in runs for node in sorted(repeated))


def by_rounding(graph: MemoryGraph, budget: int, deadline: float, workers: int = 1, seed: int = 0) -> Iterator[tuple[int, ...]]:
    """Schedules of the relaxation for shares of the budget: what is retained by more than half, and by chance."""
    random = np.random.default_rng(seed)
    for margin in _MARGINS:
        left = deadline - monotonic()
        if left <= 0.0:
            return
        relaxation = checkmate_relaxation(graph, budget * margin)
        solved = Session(relaxation.program(), workers, seed).relaxed(left, SolveMonitor(lambda: False))
        if solved.ending != "solved":
            return
        for drawn in (None, *range(_DRAWN)):
            limits = np.full(len(solved.columns), 0.5) if drawn is None else random.random(len(solved.columns))
            yield rounded_schedule(graph, {pair for pair, column in relaxation.carried.items() if solved.columns[column] > limits[column]})


# What is asked of planners.


def schedules_of_planners(graph: MemoryGraph, budget: int, repetitions: int, deadline: float) -> dict[str, tuple[int, ...]]:
    """A schedule of each planner that is quick: the cheapest that fits, else the one with the least peak."""
    gaps, found = longest_gaps(graph), dict[str, tuple[int, ...]]()
    scores = attention_of(graph, gaps)
    planners: dict[str, Iterable[tuple[int, ...]]] = {
        "Griewank": griewank(graph),
        "greedy knapsack": _dropping(graph, gaps, by_knapsack(graph, gaps, greedy=True)),
        "knapsack": _dropping(graph, gaps, by_knapsack(graph, gaps, greedy=False)),
        "blocks": _dropping(graph, gaps, by_blocks(graph, gaps)),
        "selective": _dropping(graph, gaps, [scores] if scores else []),
    }
    for name, orders in planners.items():
        if monotonic() < deadline and (order := cheapest(graph, orders, budget, repetitions, deadline)) is not None:
            found[name] = order
    return found


def _dropping(graph: MemoryGraph, gaps: Gaps, sets: Iterable[set[int]]) -> Iterator[tuple[int, ...]]:
    return (dropping(graph, {node: gaps[node] for node in nodes}) for nodes in sets)


def sac(question: MemoryQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Schedule]:
    """The cheapest schedule of the MILP of PyTorch."""
    del watch
    graph, deadline = question.graph, _deadline(question, limits)
    gaps = longest_gaps(graph)
    return _outcome(question, _dropping(graph, gaps, by_sac_milp(graph, gaps, question.budget, deadline)), "sac-milp", deadline)


def rounding(question: MemoryQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Schedule]:
    """The cheapest schedule of Checkmate's approximation."""
    del watch
    deadline = _deadline(question, limits)
    if len(question.graph.names) > MOST_OF_ROUNDING:
        raise RefusedError(f"Checkmate's relaxation takes graphs of up to {MOST_OF_ROUNDING} nodes (take the engine auto)")
    return _outcome(question, by_rounding(question.graph, question.budget, deadline, limits.workers, limits.seed), "rounding", deadline)


def _deadline(question: MemoryQuestion, limits: Limits) -> float:
    if is_open(question):
        raise RefusedError("this engine takes a budget and a batch that are given (take the engine auto)")
    return monotonic() + min(limits.seconds, _PATIENCE)


def _outcome(question: MemoryQuestion, orders: Iterable[tuple[int, ...]], name: str, deadline: float) -> SearchOutcome[Schedule]:
    graph = question.graph
    order = cheapest(graph, orders, question.budget, question.repetitions, deadline) if monotonic() < deadline else None
    late = "time limit" if monotonic() >= deadline else "complete"
    fits = order is not None and peak_of(graph, order) <= question.budget and max(map(order.count, set(order))) <= question.repetitions + 1
    return SearchOutcome(Schedule(order) if fits and order is not None else None, engine=name, stopped=late)
