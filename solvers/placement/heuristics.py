"""Heuristics for throughput: stages along orders, lists, minimum cuts, and annealing with restarts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import exp, inf, log
from random import Random
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.formulation.placement.throughput import Machine, contract, machine_of
from crossopt.instances.placement.question import PlacementQuestion
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


@dataclass(frozen=True, slots=True, eq=False)
class Staged:
    """Stages along an order."""

    value: float
    stage: list[int]
    """Of each block."""
    cpu: list[bool]
    """Of each stage."""


def best_stages(
    blocks: Blocks, order: Whole, accelerators: int, cpus: int, memory: float, overlapped: bool, deadline: float = float("inf")
) -> Staged:
    """The least busiest time of stages along an order; infinite where no stages keep the limits, or where the time was too short.

    Of many blocks the costs of intervals are made end by end, as a table of all would not fit into memory.
    """
    if len(blocks) > LARGE:
        return _best_of_many(blocks, order, (accelerators, cpus), memory, overlapped, deadline)
    on_accelerator, on_cpu = interval_costs(blocks, order, memory, overlapped)
    count = len(blocks)
    least = np.full((accelerators + 1, cpus + 1, count + 1), np.inf)
    least[0, 0, 0] = 0.0
    origin = np.zeros((accelerators + 1, cpus + 1, count + 1, 2), np.int64)
    for a in range(accelerators + 1):
        for c in range(cpus + 1):
            for kind, before, costs in ((0, (a - 1, c), on_accelerator), (1, (a, c - 1), on_cpu)):
                if min(before) < 0:
                    continue
                table = np.maximum(least[before][:, None], costs)
                start = table.argmin(axis=0)
                found = table[start, np.arange(count + 1)]
                better = found < least[a, c]
                least[a, c, better] = found[better]
                origin[a, c, better, 0], origin[a, c, better, 1] = start[better], kind
    return _traced(least, origin, order, accelerators, cpus)


def _best_of_many(blocks: Blocks, order: Whole, devices: tuple[int, int], memory: float, overlapped: bool, deadline: float) -> Staged:
    count, (accelerators, cpus) = len(blocks), devices
    least = np.full((accelerators + 1, cpus + 1, count + 1), np.inf)
    least[0, 0, 0] = 0.0
    origin = np.zeros((accelerators + 1, cpus + 1, count + 1, 2), np.int64)
    for end, costs in enumerate(_by_end(blocks, order, memory, overlapped)):
        if monotonic() >= deadline:
            return Staged(inf, [0] * count, [])
        for kind, cost in enumerate(costs):
            before = least[: accelerators + 1 - (not kind), : cpus + 1 - kind, : end + 1]
            table = np.maximum(before, cost)
            start = table.argmin(axis=2)
            found = np.take_along_axis(table, start[:, :, None], 2)[:, :, 0]
            here, came = least[1 - kind :, kind:, end], origin[1 - kind :, kind:, end]
            better = found < here
            here[better] = found[better]
            came[better, 0], came[better, 1] = start[better], kind
    return _traced(least, origin, order, accelerators, cpus)


def _by_end(blocks: Blocks, order: Whole, memory: float, overlapped: bool) -> Iterator[tuple[Array, Array]]:
    """For every place from 0 on, what the intervals from all places up to that one cost on an accelerator and on a CPU."""
    count, position = len(blocks), np.empty(len(blocks), np.int64)
    position[order] = np.arange(count)
    at: list[list[tuple[int, int, bool, float]]] = [[] for _ in range(count)]
    for pins, cost in zip(blocks.nets, blocks.transfer.tolist(), strict=True):
        places = sorted(int(position[pin]) for pin in pins)
        for before, here in zip((-1, *places), places, strict=False):
            at[here].append((before, places[0], here == places[-1], cost))
    sums = [_running(column[order]) for column in (blocks.accelerator_time, blocks.cpu_time, blocks.size)]
    transfer = np.zeros(count + 1)
    for end in range(count + 1):
        for before, first, last, cost in at[end - 1] if end else ():
            transfer[before + 1 : end] += cost
            if last:
                transfer[: first + 1] -= cost
        compute, on_cpu, size = (_up_to(running, end) for running in sums)
        crossing = np.maximum(transfer[: end + 1], 0.0)
        total = np.maximum(compute, crossing) if overlapped else compute + crossing
        yield np.where(size > memory, np.inf, total), on_cpu


def _running(column: Array) -> tuple[Array, Whole]:
    """Sums from the first on, of what is finite, and how much is not."""
    endless = np.isinf(column)
    return np.concatenate([[0.0], np.cumsum(np.where(endless, 0.0, column))]), np.concatenate([[0], np.cumsum(endless)])


def _up_to(running: tuple[Array, Whole], end: int) -> Array:
    """Sums of the intervals from every place up to this one; infinite where a figure in it is."""
    sums, count = running[0][: end + 1], running[1][: end + 1]
    return np.where(count[-1] > count, np.inf, np.maximum(sums[-1] - sums, 0.0))


def interval_costs(blocks: Blocks, order: Whole, memory: float, overlapped: bool) -> tuple[Array, Array]:
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


def _crossing(blocks: Blocks, position: Whole) -> Array:
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


def _traced(least: Array, origin: Whole, order: Whole, accelerators: int, cpus: int) -> Staged:
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
    """The best stages along some orders in which all data flow forward; along one at the least, unless there are many blocks."""
    found = Staged(float("inf"), [0] * len(blocks), [])
    for order in orders(blocks, 1 if len(blocks) > LARGE else _ORDERS):
        overlapped = question.communication == "overlapped"
        staged = best_stages(blocks, order, question.accelerators, question.cpus, question.memory, overlapped, deadline)
        found = staged if staged.value < found.value else found
        if monotonic() >= deadline:
            break
    return found


def orders(blocks: Blocks, count: int, seed: int = 0) -> Iterator[Whole]:
    """Orders of the blocks along the arcs: as they are numbered, depth first and breadth first, then with random choices."""
    before = np.zeros(len(blocks), np.int64)
    after: list[list[int]] = [[] for _ in range(len(blocks))]
    for source, target in blocks.arcs:
        before[target] += 1
        after[source].append(target)
    yield np.arange(len(blocks))
    for number in range(count - 1):
        yield _order(before.tolist(), after, np.random.default_rng(number + (seed << 32)), depth=number % 3)


def _order(before: list[int], after: list[list[int]], random: np.random.Generator, depth: int) -> Whole:
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


# Annealing of placements without contiguity: blocks go elsewhere, and loads follow without being added up anew.
#
# The busiest device alone says too little of a move, so that the sum of (load / best)^16 over the devices is lowered instead, which is
# ruled by the busiest ones. What is tried:
#
#     along a net    a block goes to the device of another block of one of its nets
#     a cluster      with it those that hang together with it on its device, some two to ten blocks
#     anywhere       a block goes to any device
#     a swap         two blocks change places
#
# A move changes the loads of two devices: by the blocks' own times, and for each of their nets by whether either device still has, or has
# now, some of the pins but not all.

_POWER = 16
HEAT = 0.1
"""The rise of the sum that is accepted one time in e at first."""
_COOLED = 1.0 / 3000.0
"""What is left of the heat in the end."""
_LOOK = 256
_ALONG, _CLUSTER, _ANYWHERE = 0.4, 0.8, 0.9
"""Up to which random figure each kind of move is tried; the rest are swaps."""
_CLUSTERED = 4.0

Move = tuple[int, int, int]
"""A block, its device, and where it goes."""


@dataclass(slots=True)
class _State:
    """A placement with what follows from it, and the figures that do not change."""

    device: list[int]
    count: list[list[int]]
    """Pins of each net on each device."""
    compute: list[float]
    transfer: list[float]
    size: list[float]
    times: tuple[list[float], list[float]]
    sizes: list[float]
    nets: tuple[tuple[int, ...], ...]
    nets_of: list[list[int]]
    costs: list[float]
    machine: Machine

    def load(self, device: int) -> float:
        work, traffic = self.compute[device], self.transfer[device]
        return max(work, traffic) if self.machine.overlapped else work + traffic


def annealed(blocks: Blocks, machine: Machine, start: list[int], moves: int, seed: int, deadline: float, heat: float = HEAT) -> list[int]:
    """The least busy placement that so many moves come by; the start, if none is better. Without heat no rise is accepted."""
    random, state = Random(seed), _state(blocks, machine, start)
    devices = range(machine.accelerators + machine.cpus)
    loads = [state.load(device) for device in devices]
    best, found = max(loads), list(start)
    scale, warmth = best or 1.0, heat
    powers = [(load / scale) ** _POWER for load in loads]
    for number in range(moves if len(devices) > 1 else 0):
        if not number % _LOOK:
            if monotonic() >= deadline:
                break
            scale, warmth = best or 1.0, heat * _COOLED ** (number / moves)
            powers = [(load / scale) ** _POWER for load in loads]
        group = _proposed(random, state)
        if not group:
            continue
        _, source, target = group[0]
        before = (state.compute[source], state.transfer[source], state.compute[target], state.transfer[target])
        _apply(state, group)
        after = (state.load(source), state.load(target))
        fresh = ((after[0] / scale) ** _POWER, (after[1] / scale) ** _POWER)
        rise = fresh[0] + fresh[1] - powers[source] - powers[target]
        if not _fits(state, source, target) or (rise > 0.0 and (not warmth or random.random() >= exp(-rise / warmth))):
            _apply(state, [(block, to, origin) for block, origin, to in reversed(group)])
            state.compute[source], state.transfer[source], state.compute[target], state.transfer[target] = before
            continue
        loads[source], loads[target] = after
        powers[source], powers[target] = fresh
        if max(after) < best and max(loads) < best:
            best, found = max(loads), list(state.device)
    return found


def _fits(state: _State, source: int, target: int) -> bool:
    accelerators, memory = state.machine.accelerators, state.machine.memory
    return (source >= accelerators or state.size[source] <= memory) and (target >= accelerators or state.size[target] <= memory)


def _proposed(random: Random, state: _State) -> Sequence[Move]:
    """Some move between two devices; nothing where none came out, or an accelerator cannot run a block."""
    kind, nets, device = random.random(), state.nets, state.device
    if kind < _CLUSTER and nets:
        pins = nets[int(random.random() * len(nets))]
        block, near = (pins[int(random.random() * len(pins))] for _ in range(2))
        to = device[near]
        if to == device[block]:
            return ()
        group = [block] if kind < _ALONG else _cluster(random, state, block)
        moves = [(member, device[member], to) for member in group]
    else:
        block, other = (int(random.random() * len(device)) for _ in range(2))
        to = int(random.random() * len(state.compute)) if kind < _ANYWHERE else device[other]
        if to == device[block]:
            return ()
        moves = [(block, device[block], to)] + ([] if kind < _ANYWHERE else [(other, to, device[block])])
    accelerators, times = state.machine.accelerators, state.times[0]
    return () if any(to < accelerators and times[moving] == float("inf") for moving, _, to in moves) else moves


def _cluster(random: Random, state: _State, block: int) -> list[int]:
    """The block and some of those that hang together with it on its device, the nearest first."""
    most = 2 + int(-log(random.random() + 1e-12) * _CLUSTERED)
    device, group, seen, index = state.device, [block], {block}, 0
    while index < len(group) < most:
        for net in state.nets_of[group[index]]:
            for pin in state.nets[net]:
                if pin not in seen and device[pin] == device[block]:
                    seen.add(pin)
                    group.append(pin)
        index += 1
    return group[:most]


def _apply(state: _State, group: Sequence[Move]) -> None:
    """Move the blocks one after another."""
    accelerators, costs, nets = state.machine.accelerators, state.costs, state.nets
    for block, origin, to in group:
        left = gained = 0.0
        for net in state.nets_of[block]:
            count, cost, pins = state.count[net], costs[net], len(nets[net])
            here, there = count[origin], count[to]
            if here == 1:
                left -= cost
            elif here == pins:
                left += cost
            if not there:
                gained += cost
            elif there + 1 == pins:
                gained -= cost
            count[origin], count[to] = here - 1, there + 1
        if origin < accelerators:
            state.transfer[origin] += left
        if to < accelerators:
            state.transfer[to] += gained
        state.compute[origin] -= state.times[origin >= accelerators][block]
        state.compute[to] += state.times[to >= accelerators][block]
        state.size[origin] -= state.sizes[block]
        state.size[to] += state.sizes[block]
        state.device[block] = to


def _state(blocks: Blocks, machine: Machine, device: list[int]) -> _State:
    devices = machine.accelerators + machine.cpus
    count = [[0] * devices for _ in blocks.nets]
    nets_of: list[list[int]] = [[] for _ in range(len(blocks))]
    for net, pins in enumerate(blocks.nets):
        for pin in pins:
            count[net][device[pin]] += 1
            nets_of[pin].append(net)
    compute, transfer, size = [0.0] * devices, [0.0] * devices, [0.0] * devices
    for block, number in enumerate(device):
        compute[number] += float((blocks.accelerator_time if number < machine.accelerators else blocks.cpu_time)[block])
        size[number] += float(blocks.size[block])
    for net, pins in enumerate(blocks.nets):
        for number in range(machine.accelerators):
            transfer[number] += float(blocks.transfer[net]) * (0 < count[net][number] < len(pins))
    times, sizes = (blocks.accelerator_time.tolist(), blocks.cpu_time.tolist()), blocks.size.tolist()
    costs = blocks.transfer.tolist()
    return _State(list(device), count, compute, transfer, size, times, sizes, blocks.nets, nets_of, costs, machine)


# Annealing again and again: from the placement that is known, and from equal shares of the work with ever other seeds.
#
# Blocks that no better placement parts are made one before each round (`formulation.placement.reductions`), so that moves are fewer and
# larger the better the placement that is known.

_MOVES, _MOVES_A_BLOCK = 600_000, 3_000
_ROUNDS, _FEWEST, _BLOCKS_A_ROUND = 12, 2, 16
"""So many rounds without a better placement are the end: the fewest, and one more for so many blocks, as small graphs are soon solved."""
_DOUBLED = 4
"""After so many rounds without a better placement the next ones are twice as long."""
_HEATS = (0.01, 0.03, 0.1)


def improved(question: PlacementQuestion, known: Whole, seed: int, deadline: float, least: float = 0.0) -> Iterator[Whole]:
    """Less and less busy placements; no round is begun once one is as near to `least`, below which none is, as models can tell."""
    value, since, number = judge(question, known).value, 0, 0
    base, machine = blocks_of(question.graph, staged=False), machine_of(question)
    rounds = min(_ROUNDS, _FEWEST + len(base) // _BLOCKS_A_ROUND)
    while since < rounds and monotonic() < deadline and value - least > LEAST_GAP * value:
        blocks = contract(base, machine, value * (1.0 + COARSE_GAP))
        start = _start(question, blocks, known, seed + number) if number % 2 else _on_blocks(blocks, known)
        moves, heat = min(_MOVES, _MOVES_A_BLOCK * len(blocks)) << since // _DOUBLED, _HEATS[number % len(_HEATS)]
        found = np.array(annealed(blocks, machine, start, moves, seed + number, deadline, heat), np.int64)[blocks.block_of]
        verdict = judge(question, found)
        since, number = since + 1, number + 1
        if verdict.accepted and verdict.value < value:
            known, value, since = found, verdict.value, 0
            yield known


def _start(question: PlacementQuestion, blocks: Blocks, known: Whole, seed: int) -> list[int]:
    """Equal shares of the work where they keep the memory, and else the placement that is known."""
    if question.accelerators and np.isfinite(blocks.accelerator_time).all():
        shares = equal_shares(blocks, question.accelerators, seed)
        if np.bincount(shares, blocks.size, question.accelerators).max() <= question.memory:
            return shares
    return _on_blocks(blocks, known)


def _on_blocks(blocks: Blocks, device_of: Whole) -> list[int]:
    device = np.zeros(len(blocks), np.int64)
    device[blocks.block_of] = device_of
    return [int(number) for number in device]
