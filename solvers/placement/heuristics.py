"""Heuristics for throughput: stages along orders, lists, minimum cuts, and annealing with restarts."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count, pairwise
from math import inf
from random import Random
from threading import Event
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.formulation.model import ExactlyOne, Linear, Model, Variable, total, violations
from crossopt.formulation.placement.blocks import Blocks, blocks_of, figures_of
from crossopt.formulation.placement.throughput import Machine, contract, joined, machine_of, renumbered
from crossopt.instances.errors import SolverError
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.solvers.backends import backend
from crossopt.solvers.backends.answer import Spend
from crossopt.solvers.placement.annealing import annealed
from crossopt.solvers.placement.answer import COARSE_GAP, LEAST_GAP
from crossopt.solvers.placement.judge import judge

# The best stages along one order of the blocks, by dynamic programming: exact for chains, and for other graphs a placement to start from.
#
# In an order b_1, ..., b_n in which all data flow forward a stage is an interval. An accelerator pays for the nets with a pin in it (all
# but those whose pins avoid it) less the nets with all pins in it. Both are sums over corners of a table, O(n^2) for all intervals:
#
#     inside[i, j]    nets whose first pin is at i or later and whose last pin is before j
#     avoid[i, j]     nets with two pins that follow each other, one before i and the next at j or later, or no pin before or none after
#     least[a, c, j]  = min over i of  max(least[a - 1, c, i], accelerator(i, j)),  max(least[a, c - 1, i], cpu(i, j))

LARGE = 3000
"""Blocks from which tables over all intervals take too much time and memory."""
_INTERVALS, _INTERVALS_A_DEVICE, _FINER = 1000, 4, 8
"""Intervals that such blocks become, also for each device, and how much finer they are in the next round."""


@dataclass(frozen=True, slots=True, eq=False)
class Staged:
    """Stages along an order."""

    value: float
    stage: list[int]
    """Of each block."""
    cpu: list[bool]
    """Of each stage."""


def best_stages(
    blocks: Blocks, order: Ints, accelerators: int, cpus: int, memory: float, overlapped: bool, deadline: float = float("inf")
) -> Staged:
    """The least busiest time of stages along an order; infinite where no stages keep the limits, or where the time was too short.

    Of many blocks some intervals are first made one, all of them with about the same work, and then fewer where the stages were cut.
    """
    if len(blocks) > LARGE:
        return _of_intervals(blocks, order, (accelerators, cpus), memory, overlapped, deadline)
    return _by_table(blocks, order, accelerators, cpus, memory, overlapped)


def _by_table(blocks: Blocks, order: Ints, accelerators: int, cpus: int, memory: float, overlapped: bool) -> Staged:
    """The least over all intervals."""
    on_accelerator, on_cpu = (np.ascontiguousarray(costs.T) for costs in interval_costs(blocks, order, memory, overlapped))
    count, table = len(blocks), np.empty_like(on_accelerator)
    """Of each pair the row is the end of the interval, and the column its start."""
    least = np.full((accelerators + 1, cpus + 1, count + 1), np.inf)
    least[0, 0, 0] = 0.0
    origin = np.zeros((accelerators + 1, cpus + 1, count + 1, 2), np.int64)
    for a in range(accelerators + 1):
        for c in range(cpus + 1):
            for kind, before, costs in ((0, (a - 1, c), on_accelerator), (1, (a, c - 1), on_cpu)):
                if min(before) < 0:
                    continue
                np.maximum(least[before], costs, out=table)
                start = table.argmin(axis=1)
                found = table[np.arange(count + 1), start]
                better = found < least[a, c]
                least[a, c, better] = found[better]
                origin[a, c, better, 0], origin[a, c, better, 1] = start[better], kind
    return _traced(least, origin, order, accelerators, cpus)


def _of_intervals(blocks: Blocks, order: Ints, devices: tuple[int, int], memory: float, overlapped: bool, deadline: float) -> Staged:
    """Stages of intervals along the order: coarse ones first, then ever finer ones near the cuts of the best stages so far."""
    count, most = len(blocks), max(_INTERVALS, _INTERVALS_A_DEVICE * sum(devices))
    finer = max(min(_FINER, most // (2 * sum(devices)) - 1), 2)
    work = np.where(np.isfinite(blocks.accelerator_time), blocks.accelerator_time, 0.0)[order]
    shares = np.cumsum(work + float(work.sum()) / count + 1e-300)
    starts = np.unique(np.searchsorted(shares, np.arange(most) * float(shares[-1]) / most))
    best, step = Staged(inf, [0] * count, []), count
    while step and monotonic() < deadline:
        number_of = np.empty(count, np.int64)
        number_of[order] = np.searchsorted(starts, np.arange(count), side="right") - 1
        found = _by_table(renumbered(blocks, number_of), np.arange(len(starts)), *devices, memory, overlapped)
        if found.value == inf:
            break
        stage = [found.stage[number] for number in number_of.tolist()]
        best = min(best, Staged(found.value, stage, found.cpu), key=lambda staged: staged.value)
        step = 0 if step == 1 else max((int(np.diff(starts).max(initial=1)) if step == count else step) // finer, 1)
        cuts = np.flatnonzero(np.diff(np.array(best.stage)[order])) + 1
        near = cuts[:, None] + max(step, 1) * np.arange(-finer, finer + 1)
        starts = np.unique(np.concatenate([[0], near[(near > 0) & (near < count)]]))
    return best


def _running(column: Array) -> tuple[Array, Ints]:
    """Sums from the first on, of what is finite, and how much is not."""
    endless = np.isinf(column)
    return np.concatenate([[0.0], np.cumsum(np.where(endless, 0.0, column))]), np.concatenate([[0], np.cumsum(endless)])


def interval_costs(blocks: Blocks, order: Ints, memory: float, overlapped: bool) -> tuple[Array, Array]:
    """Milliseconds of the blocks from place i up to j on an accelerator and on a CPU; infinite for j < i and where they do not fit."""
    count = len(blocks)
    position = np.empty(count, np.int64)
    position[order] = np.arange(count)
    compute, on_cpu, size = (_between(column[order]) for column in (blocks.accelerator_time, blocks.cpu_time, blocks.size))
    transfer = _crossing(blocks, position)
    total = np.maximum(compute, transfer) if overlapped else compute + transfer
    empty = np.tri(count + 1, k=-1, dtype=bool)
    return np.where(empty | (size > memory), np.inf, total), np.where(empty, np.inf, on_cpu)


def _between(column: Array) -> Array:
    """Sums over all intervals; infinite where a figure in it is."""
    sums, count = _running(column)
    return np.where(count[None, :] > count[:, None], np.inf, np.maximum(sums[None, :] - sums[:, None], 0.0))


def _crossing(blocks: Blocks, position: Ints) -> Array:
    """Transfer time of every interval: all nets, less those that avoid it and those inside it."""
    count = len(position)
    inside, avoid = np.zeros((count + 2, count + 2)), np.zeros((count + 2, count + 2))
    for pins, cost in zip(blocks.nets, blocks.transfer.tolist(), strict=True):
        places = sorted(int(position[pin]) for pin in pins)
        inside[places[0], places[-1] + 1] += cost
        for left, right in zip((-1, *places), (*places, count), strict=True):
            avoid[left + 1, right] += cost
    kept_inside = inside[::-1].cumsum(axis=0)[::-1].cumsum(axis=1)
    kept_avoid = avoid.cumsum(axis=0)[:, ::-1].cumsum(axis=1)[:, ::-1]
    crossing = float(blocks.transfer.sum()) - kept_avoid - kept_inside
    return np.asarray(np.maximum(crossing[: count + 1, : count + 1], 0.0))


def _traced(least: Array, origin: Ints, order: Ints, accelerators: int, cpus: int) -> Staged:
    count = len(order)
    a, c = np.unravel_index(int(least[:, :, count].argmin()), (accelerators + 1, cpus + 1))
    value, end = float(least[a, c, count]), count
    stage, cpu = [0] * count, []
    if value == float("inf"):
        return Staged(value, stage, [])
    parts = []
    while end:
        start, kind = (int(figure) for figure in origin[a, c, end])
        parts.append((start, end, bool(kind)))
        end, a, c = start, a - (not kind), c - kind
    for number, (start, stop, kind) in enumerate(reversed(parts)):
        cpu.append(kind)
        for block in order[start:stop]:
            stage[int(block)] = number
    return Staged(value, stage, cpu)


# Heuristics for throughput without contiguity: lists, minimum cuts, annealing with restarts, and stages along many orders.

# Placements to start from: stages along many orders of the blocks.

_ORDERS = 24


def staged_start(question: PlacementQuestion, blocks: Blocks, deadline: float = float("inf")) -> Staged:
    """The best stages along some orders in which all data flow forward; along one at the least."""
    found = Staged(float("inf"), [0] * len(blocks), [])
    for order in orders(blocks, _ORDERS):
        overlapped = question.communication == "overlapped"
        staged = best_stages(blocks, order, question.accelerators, question.cpus, question.memory, overlapped, deadline)
        found = staged if staged.value < found.value else found
        if monotonic() >= deadline:
            break
    return found


def orders(blocks: Blocks, count: int, seed: int = 0) -> Iterator[Ints]:
    """Orders of the blocks along the arcs: as they are numbered, depth first and breadth first, then with random choices."""
    before = np.zeros(len(blocks), np.int64)
    after: list[list[int]] = [[] for _ in range(len(blocks))]
    for source, target in blocks.arcs:
        before[target] += 1
        after[source].append(target)
    yield np.arange(len(blocks))
    for number in range(count - 1):
        yield _order(before.tolist(), after, np.random.default_rng(number + (seed << 32)), depth=number % 3)


def _order(before: list[int], after: list[list[int]], random: np.random.Generator, depth: int) -> Ints:
    """The newest block that is free next (0), the oldest (1), or any (2); blocks that become free together in a random order."""
    free, order = [block for block, count in enumerate(before) if not count], []
    random.shuffle(free)
    while free:
        block = free.pop({0: -1, 1: 0, 2: int(random.integers(len(free)))}[depth])
        order.append(block)
        ready = []
        for other in after[block]:
            before[other] -= 1
            if not before[other]:
                ready.append(other)
        random.shuffle(ready)
        free += ready
    return np.array(order, np.int64)


# Lists: blocks one after another, each to the device that looks best at that moment.
#
# by work    the most work first, each where the device's work is then least (Graham 1969)
# by rank    the longest way to the end first, each where one sample of it is done first (in the manner of HEFT, Topcuoglu et al. 2002):
#            rank(b) = time(b) + greatest of transfer(b) + rank(c) over all c that follow


def by_work(blocks: Blocks, machine: Machine) -> list[int] | None:
    """The device of each block; None where one fits nowhere."""
    times = (blocks.accelerator_time.tolist(), blocks.cpu_time.tolist())
    order = sorted(range(len(blocks)), key=lambda block: -min(times[0][block], times[1][block]))
    busy, device = _Busy(blocks, machine), [0] * len(blocks)
    for block in order:
        chosen = min(busy.fitting(block), key=lambda candidate: busy.work[candidate] + busy.time(block, candidate), default=None)
        if chosen is None:
            return None
        busy.put(block, chosen)
        device[block] = chosen
    return device


def by_rank(blocks: Blocks, machine: Machine) -> list[int] | None:
    """The device of each block by earliest finish, highest rank first; None where a block fits nowhere. Blocks are numbered along their
    arcs."""
    after: list[list[int]] = [[] for _ in range(len(blocks))]
    before: list[list[int]] = [[] for _ in range(len(blocks))]
    for source, target in blocks.arcs:
        after[source].append(target)
        before[target].append(source)
    costs = _costs(blocks)
    busy, device, finish = _Busy(blocks, machine), [0] * len(blocks), [0.0] * len(blocks)
    ready = [0.0] * (machine.accelerators + machine.cpus)
    for block in sorted(range(len(blocks)), key=_ranks(blocks, after, costs).__getitem__, reverse=True):
        ends: dict[int, float] = {}
        for chosen in busy.fitting(block):
            inputs = (finish[source] + (2.0 * costs[source] if device[source] != chosen else 0.0) for source in before[block])
            ends[chosen] = max(ready[chosen], *inputs, 0.0) + busy.time(block, chosen)
        if not ends:
            return None
        chosen = min(ends, key=lambda candidate: ends[candidate])
        busy.put(block, chosen)
        device[block], finish[block], ready[chosen] = chosen, ends[chosen], ends[chosen]
    return device


class _Busy:
    """Work and bytes of each device so far."""

    def __init__(self, blocks: Blocks, machine: Machine) -> None:
        self.machine = machine
        self.times = (blocks.accelerator_time.tolist(), blocks.cpu_time.tolist())
        self.sizes = blocks.size.tolist()
        self.work = [0.0] * (machine.accelerators + machine.cpus)
        self.bytes = [0.0] * machine.accelerators

    def time(self, block: int, on: int) -> float:
        return float(self.times[on >= self.machine.accelerators][block])

    def fitting(self, block: int) -> list[int]:
        """Devices that can run the block and have room for it."""
        accelerators, memory = self.machine.accelerators, self.machine.memory
        room = [number >= accelerators or self.bytes[number] + self.sizes[block] <= memory for number in range(len(self.work))]
        return [number for number, fits in enumerate(room) if fits and self.time(block, number) != float("inf")]

    def put(self, block: int, on: int) -> None:
        self.work[on] += self.time(block, on)
        if on < self.machine.accelerators:
            self.bytes[on] += self.sizes[block]


def _costs(blocks: Blocks) -> list[float]:
    """What it costs to send the output of a block: its dearest net that starts there, the numbers being along the arcs."""
    costs = [0.0] * len(blocks)
    for pins, cost in zip(blocks.nets, blocks.transfer.tolist(), strict=True):
        costs[pins[0]] = max(costs[pins[0]], cost)
    return costs


def _ranks(blocks: Blocks, after: list[list[int]], costs: list[float]) -> list[tuple[float, int]]:
    """Ranks, with a tie broken by the number, so that no block comes before those that it waits for."""
    rank = [0.0] * len(blocks)
    for block in reversed(range(len(blocks))):
        time = min(float(blocks.accelerator_time[block]), float(blocks.cpu_time[block]))
        rank[block] = time + max((costs[block] + rank[follower] for follower in after[block]), default=0.0)
    return [(rank[block], -block) for block in range(len(blocks))]


# Equal shares of the work with the cheapest nets between them: what graph partitioners do, who know nothing of the busiest device.
#
# The blocks are cut in two again and again, in the shares of the devices that each side will have, and each cut is improved by the passes
# of Fiduccia and Mattheyses (1982): the move of most gain that keeps the shares, each block once, until the pass is over; then back to the
# best moment of it; until a pass gains nothing.

_SLACK = 0.02
"""How far the work of a side may be from its share, of all the work that is cut."""
_STARTS = 4
_PASSES = 20


@dataclass(frozen=True, slots=True)
class _Net:
    pins: tuple[int, ...]
    cost: float


def equal_shares(blocks: Blocks, devices: int, seed: int) -> list[int]:
    """The device of each block, all devices with about the same work."""
    nets = [_Net(pins, cost) for pins, cost in zip(blocks.nets, blocks.transfer.tolist(), strict=True)]
    device, random = [0] * len(blocks), Random(seed)
    _share(list(range(len(blocks))), (0, devices), nets, blocks.accelerator_time.tolist(), random, device)
    return device


def _share(
    members: list[int], devices: tuple[int, int], nets: Sequence[_Net], work: list[float], random: Random, device: list[int]
) -> None:
    """Give these blocks to the devices from the first up to the last."""
    first, last = devices
    if last - first == 1 or not members:
        for block in members:
            device[block] = first
        return
    middle = (first + last) // 2
    inside = set(members)
    within = [_Net(pins, net.cost) for net in nets if len(pins := tuple(pin for pin in net.pins if pin in inside)) > 1]
    share = (middle - first) / (last - first)
    tries = [_bisected(members, within, work, share, random) for _ in range(_STARTS)]
    left = min(tries, key=lambda side: sum(net.cost for net in within if 0 < sum(pin in side for pin in net.pins) < len(net.pins)))
    _share([block for block in members if block in left], (first, middle), within, work, random, device)
    _share([block for block in members if block not in left], (middle, last), within, work, random, device)


def _bisected(members: list[int], nets: Sequence[_Net], work: list[float], share: float, random: Random) -> set[int]:
    """The blocks of the one side, which has this share of the work."""
    nets_of: dict[int, list[_Net]] = {block: [] for block in members}
    for net in nets:
        for pin in net.pins:
            nets_of[pin].append(net)
    total = sum(work[block] for block in members)
    side = _grown(members, nets_of, work, share * total, random)
    for _ in range(_PASSES):
        if not _improved(side, members, nets_of, work, (share * total, _SLACK * total)):
            break
    return side


def _grown(members: list[int], nets_of: dict[int, list[_Net]], work: list[float], share: float, random: Random) -> set[int]:
    """A side that grows from a random block along its nets until it has its share."""
    side, weight = set[int](), 0.0
    edge, seen = [random.choice(members)], set[int]()
    rest = random.sample(members, len(members))
    while weight < share and len(side) < len(members):
        while not edge:
            edge.append(rest.pop())
        block = edge.pop(0)
        if block in seen:
            continue
        seen.add(block)
        side.add(block)
        weight += work[block]
        edge += [pin for net in nets_of[block] for pin in net.pins if pin not in seen]
    return side


def _improved(side: set[int], members: list[int], nets_of: dict[int, list[_Net]], work: list[float], goal: tuple[float, float]) -> bool:
    """One pass, towards this work of the side or at most so far from it; whether the cut has become cheaper, or the shares truer."""
    weight = sum(work[block] for block in side)
    heap = [(-_gain(block, side, nets_of), block) for block in members]
    heapify(heap)
    locked: list[int] = []
    done = set[int]()
    target, slack = goal
    window = slack + max(work[block] for block in members)
    gained, prefix = 0.0, 0
    best = (max(abs(weight - target) - slack, 0.0), 0.0)
    while heap:
        gain, block = heappop(heap)
        if block in done:
            continue
        true = _gain(block, side, nets_of)
        if -gain != true:
            heappush(heap, (-true, block))
            continue
        done.add(block)
        after = weight + (-work[block] if block in side else work[block])
        if abs(after - target) > max(window, abs(weight - target)):
            continue
        weight, gained = after, gained + true
        side.symmetric_difference_update((block,))
        locked.append(block)
        for other in {pin for net in nets_of[block] for pin in net.pins} - done:
            heappush(heap, (-_gain(other, side, nets_of), other))
        now = (max(abs(weight - target) - slack, 0.0), -gained)
        if now < best:
            best, prefix = now, len(locked)
    side.symmetric_difference_update(locked[prefix:])
    return prefix > 0


def _gain(block: int, side: set[int], nets_of: dict[int, list[_Net]]) -> float:
    """What the cut costs less once the block changes sides."""
    gain = 0.0
    for net in nets_of[block]:
        same = sum((pin in side) == (block in side) for pin in net.pins)
        gain += net.cost * ((same == 1) - (same == len(net.pins)))
    return gain


# Annealing again and again on several levels: blocks that dear nets join become one, step by step, down to a few (multilevel partitioning,
# Hendrickson and Leland 1995). The coarsest level is annealed first, then the finer ones with less heat, where single blocks still move.
#
#     afresh      blocks are joined as they come, and the coarsest level starts from equal shares of the work
#     known       only blocks that some good placement has on one device are joined, so that it is a placement of every level
#     combined    only blocks that two good placements both have on one device: what they agree on stays (Sanders and Schulz 2012)
#
# Blocks that no better placement parts are made one before each round (`formulation.placement.reductions`), so that moves are fewer and
# larger the better the placement that is known.

_ROUNDS, _FEWEST, _BLOCKS_A_ROUND = 40, 2, 8
"""So many rounds without a better placement are the end: the fewest, and one more for so many blocks, as small graphs are soon solved."""
_DOUBLED = 16
"""After so many rounds without a better placement the next ones are twice as long."""
_HEATS, _COOLER = (0.03, 0.1, 0.3, 1.0), 0.1
"""Heats of the coarsest level, and what is left of them on finer ones."""
_MOVES_A_BLOCK = (1_000, 3_000, 10_000)
_COARSEST, _STEP, _STUCK = (16, 32, 64, 128), 3, 0.95
"""Blocks of the coarsest level, how many become one from level to level, and the share that is left where hardly any can be joined."""
_SHARES = (0.15, 0.3, 0.6)
"""Of the busiest time, the most work of joined blocks."""
_NOISE = 0.7
_ELITE = 6

Found = tuple[float, int, Ints]
"""The value of a placement, the number of its round, and the devices."""


def improved(question: PlacementQuestion, known: Ints, seed: int, deadline: float, least: float = 0.0, workers: int = 1) -> Iterator[Ints]:
    """Less and less busy placements; no round is begun once one is as near to `least`, below which none is, as models can tell.

    So many rounds run at a time, in threads, as moves are compiled.
    """
    base, machine = blocks_of(question.graph, staged=False), machine_of(question)
    elite: list[Found] = [(judge(question, known).value, -1, known)]
    since, rounds = 0, min(_ROUNDS, _FEWEST + len(base) // _BLOCKS_A_ROUND)
    for first in count(0, workers):
        value = elite[0][0]
        if since >= rounds or monotonic() >= deadline or value - least <= LEAST_GAP * value:
            return
        blocks = contract(base, machine, value * (1.0 + COARSE_GAP))
        begun = partial(_numbered_round, blocks, machine, tuple(elite), seed, since - first, deadline)
        for number, found in enumerate(_rounds(begun, first, workers), first):
            verdict, since = judge(question, found), since + 1
            if not verdict.accepted or any(verdict.value == other for other, _, _ in elite):
                continue
            value = elite[0][0]
            elite = sorted([*elite, (verdict.value, number, found)], key=lambda each: each[:2])[:_ELITE]
            if verdict.value < value:
                since = 0
                yield found


def _rounds(begun: Callable[[int], Ints], first: int, workers: int) -> list[Ints]:
    if workers == 1:
        return [begun(first)]
    with ThreadPoolExecutor(workers) as threads:
        return list(threads.map(begun, range(first, first + workers)))


def _numbered_round(
    blocks: Blocks, machine: Machine, elite: tuple[Found, ...], seed: int, since: int, deadline: float, number: int
) -> Ints:
    """A round with random choices of its own; `since` counts rounds without success up to round 0."""
    return _round(blocks, machine, list(elite), Random((seed << 32) + number), (since + number, number), deadline)


def _round(blocks: Blocks, machine: Machine, elite: list[Found], random: Random, numbers: tuple[int, int], deadline: float) -> Ints:
    """What annealing makes of a start, level by level."""
    since, number = numbers
    labels = ([], [elite[0]], [random.choice(elite)], [random.choice(elite), random.choice(elite)])[number % 4]
    together = [each[2] for each in labels]
    most, heat, moves = elite[0][0] * random.choice(_SHARES), random.choice(_HEATS), random.choice(_MOVES_A_BLOCK) << since // _DOUBLED
    levels = _levels(blocks, together, most, machine.memory, random)
    shares = None if labels else _fitting_shares(levels[-1], machine, number)
    if shares is None and not labels:
        labels = [elite[0]]
        levels = _levels(blocks, [labels[0][2]], most, machine.memory, random)
    device_of = shares[levels[-1].block_of] if shares is not None else min(labels, key=lambda each: each[:2])[2]
    for level in reversed(levels):
        start = _on_blocks(level, device_of)
        device = annealed(level, machine, start, moves * len(level), random.getrandbits(32), deadline, heat)
        device_of, heat = np.array(device, np.int64)[level.block_of], heat * (_COOLER if level is levels[-1] else 1.0)
    return device_of


def _levels(blocks: Blocks, together: list[Ints], most: float, memory: float, random: Random) -> list[Blocks]:
    """From the finest level to the coarsest; only blocks that all these placements have on one device are joined."""
    levels, coarsest = [blocks], random.choice(_COARSEST)
    while len(levels[-1]) > coarsest:
        count = max(coarsest, len(levels[-1]) // _STEP)
        following = joined(levels[-1], _matched(levels[-1], count, together, most, memory, random))
        if len(following) > _STUCK * len(levels[-1]):
            break
        levels.append(following)
    return levels


def _matched(blocks: Blocks, target: int, together: list[Ints], most: float, memory: float, random: Random) -> list[tuple[int, int]]:
    """Pairs of blocks to join down to so many, along the dearest nets by chance."""
    labels = list(zip(*(_on_blocks(blocks, device_of) for device_of in together), strict=True)) or [()] * len(blocks)
    work, size, parent, left = blocks.accelerator_time.tolist(), blocks.size.tolist(), list(range(len(blocks))), len(blocks)

    def root(block: int) -> int:
        while parent[block] != block:
            parent[block] = parent[parent[block]]
            block = parent[block]
        return block

    keys = [-cost / (len(pins) - 1) * random.lognormvariate(0.0, _NOISE) for pins, cost in zip(blocks.nets, blocks.transfer, strict=True)]
    pairs = []
    for net in sorted(range(len(keys)), key=keys.__getitem__):
        pins = random.sample(blocks.nets[net], len(blocks.nets[net]))
        for first, second in pairwise(pins):
            into, other = root(first), root(second)
            fits = work[into] + work[other] <= most and size[into] + size[other] <= memory
            if into == other or not fits or labels[first] != labels[second]:
                continue
            parent[other], left = into, left - 1
            work[into], size[into] = work[into] + work[other], size[into] + size[other]
            pairs.append((first, second))
            if left <= target:
                return pairs
    return pairs


def _fitting_shares(blocks: Blocks, machine: Machine, seed: int) -> Ints | None:
    """Equal shares of the work where they keep the memory."""
    if not machine.accelerators or not np.isfinite(blocks.accelerator_time).all():
        return None
    shares = equal_shares(blocks, machine.accelerators, seed)
    return np.array(shares, np.int64) if np.bincount(shares, blocks.size, machine.accelerators).max() <= machine.memory else None


def _on_blocks(blocks: Blocks, device_of: Ints) -> list[int]:
    device = np.zeros(len(blocks), np.int64)
    device[blocks.block_of] = device_of
    return [int(number) for number in device]


# Large-neighbourhood search for placements on any devices, whose neighbourhoods CP-SAT solves (Shaw, 1998).
#
# A neighbourhood is what two or three devices run, the busiest one among them: its blocks may change places between these devices, and all
# others stay. A net with a pin elsewhere takes its time on each of these accelerators that has one of its pins.
#
# Where the busiest device is as busy as before, another placement of the same value is kept, so that later neighbourhoods begin elsewhere.
# The search ends where some neighbourhoods one after the other bring nothing better.

_MOST_FREE = 2_000
"""Blocks times devices of a neighbourhood, beyond which its model takes longer than it brings."""
_PAIRS_FIRST, _MOST_IDLE = 6, 12
"""Neighbourhoods without anything better after which a third device joins, and after which the search ends."""
_SECONDS_EACH, _LEAST_SECONDS = 4.0, 0.5
"""For each of them at the most, and below which no more is begun."""
_DOUBLINGS = 3
"""How often these seconds are doubled where they are over without an answer: on a busy machine the solver takes some to start."""
_QUANTA = 1 << 24
"""Quanta of the busiest time."""
_RAISED = 1.0 + 1e-9
"""By how much sums in another order may be larger."""


@contextmanager
def searching(question: PlacementQuestion, known: Ints, seed: int, deadline: float) -> Iterator[tuple[list[Ints], Future[None]]]:
    """The placements found so far, the best last, while a thread searches until the deadline, or until this is left."""
    over, found = Event(), list[Ints]()

    def search() -> None:
        for better in rearranged(question, known, seed, deadline, over):
            found.append(better)

    with ThreadPoolExecutor(1) as threads:
        try:
            yield found, threads.submit(search)
        finally:
            over.set()


def rearranged(question: PlacementQuestion, known: Ints, seed: int, deadline: float, over: Event | None = None) -> Iterator[Ints]:
    """Less and less busy placements, each from that before by what two or three devices exchange; ends where `over` is set."""
    over = over or Event()
    blocks, machine, random, idle = blocks_of(question.graph, staged=False), machine_of(question), Random(seed), 0
    late = 0
    for number in count():
        began = monotonic()
        seconds = min(_SECONDS_EACH * 2**late, deadline - began)
        if over.is_set() or idle >= _MOST_IDLE or seconds < _LEAST_SECONDS or len(question.devices) < 2:
            return
        now = judge(question, known)
        loads = [load.total for load in now.details.loads]
        busiest = int(np.argmax(loads))
        others = random.sample([device for device in range(len(loads)) if device != busiest], min(1 + idle // _PAIRS_FIRST, len(loads) - 1))
        devices = sorted([busiest, *others])
        spend = Spend(seconds, seed=(seed + number) % 2**31, watch=lambda _: over.is_set())
        try:
            found = _exchanged(blocks, machine, known, devices, now.value, spend)
        except SolverError:  # it is a search: what is known stays
            return
        verdict = None if found is None else judge(question, found)
        late = min(late + 1, _DOUBLINGS) if monotonic() >= began + seconds else 0
        idle += 1
        if found is None or verdict is None or not verdict.accepted or verdict.value > now.value:
            continue
        known = found
        if verdict.value < now.value:
            idle = 0
            yield found


def _exchanged(blocks: Blocks, machine: Machine, known: Ints, devices: list[int], greatest: float, spend: Spend) -> Ints | None:
    """The least busy placement in which only the blocks of these devices change places; None where it is too large, or none is found."""
    device = np.zeros(len(blocks), np.int64)
    device[blocks.block_of] = known
    free = np.flatnonzero(np.isin(device, devices))
    if len(free) * len(devices) > _MOST_FREE:
        return None
    model, on = _exchange_model(blocks, machine, free.tolist(), devices, greatest * _RAISED)
    inside = dict(zip(free.tolist(), on, strict=True))
    hint = {x: int(device[block] == i) for block, line in inside.items() for i, x in zip(devices, line, strict=True)}
    for row in model.constraints:
        if isinstance(row, Linear) and row.terms and row.terms[-1][0] < 0:  # a cut or the busiest is at least the sum of the other terms
            least = row.terms[-1][1]
            hint[least] = max(hint.get(least, 0), total(row.terms[:-1], hint))
    answer = backend("cpsat")(model, replace(spend, hint=None if violations(model, hint) else hint))
    if answer.values is None:
        return None
    for block, line in inside.items():
        device[block] = next(i for i, x in zip(devices, line, strict=True) if answer.values[x])
    return device[blocks.block_of]


def _exchange_model(
    blocks: Blocks, machine: Machine, free: list[int], devices: list[int], greatest: float
) -> tuple[Model, list[list[Variable]]]:
    """The model, and where each block may be."""
    figures, busiest = figures_of(blocks, machine.memory, greatest, _QUANTA), Variable("busiest", 0, _QUANTA << 1)
    cpu, supported = machine.accelerators, figures.supported
    on = [[Variable(f"block {b} on {i}", high=int(i >= cpu or supported[b])) for i in devices] for b in free]
    rows: list[Linear | ExactlyOne] = [ExactlyOne(f"block {block}", tuple(line)) for block, line in zip(free, on, strict=True)]
    of, cuts = dict(zip(free, on, strict=True)), [list[tuple[int, Variable]]() for _ in devices]
    for net, pins in enumerate(blocks.nets):
        inside = [of[pin] for pin in pins if pin in of]
        for index, i in enumerate(devices) if inside and figures.transfer[net] else ():
            if i < machine.accelerators:
                cut = Variable(f"net {net} cut at {i}")
                cuts[index].append((figures.transfer[net], cut))
                rows += _cut_by_pins(net, [line[index] for line in inside], cut, len(inside) < len(pins))
    for index, i in enumerate(devices):
        own = [line[index] for line in on]
        work = figures.accelerator if i < machine.accelerators else figures.cpu
        sums = [tuple((work[block], x) for block, x in zip(free, own, strict=True) if work[block]), tuple(cuts[index])]
        for terms in sums if machine.overlapped else [(*sums[0], *sums[1])]:
            rows.append(Linear(f"load {len(rows)} of {i}", (*terms, (-1, busiest)), high=0))
        if i < machine.accelerators:
            size = tuple((figures.size[block], x) for block, x in zip(free, own, strict=True) if figures.size[block])
            rows.append(Linear(f"memory of {i}", size, high=figures.memory))
    variables = (*(x for line in on for x in line), *(cut for own in cuts for _, cut in own), busiest)
    return Model(variables, tuple(rows), ((1, busiest),)), on


def _cut_by_pins(net: int, on: list[Variable], cut: Variable, leaves: bool) -> list[Linear]:
    """A net is cut at a device that has some of its pins without others: in a ring of its pins, one of them stands before one elsewhere."""
    if leaves:
        return [Linear(f"{cut.name} by {x.name}", ((1, x), (-1, cut)), high=0) for x in on]
    pairs = zip(on, (*on[1:], on[0]), strict=True)
    return [Linear(f"{cut.name} by {x.name}", ((1, x), (-1, y), (-1, cut)), high=0) for x, y in pairs if x is not y]
