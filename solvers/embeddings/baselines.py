"""Baselines for embedding tables: TorchRec's proposers with its greedy partitioner, written anew, and greedy rules by a key.

    greedy      each table at its fastest option; then, proposal after proposal, the table that stores most takes its next one
    by sum      as greedy, with options by the sum of the times of their shards
    uniform     one sharding for all tables
    grid        all combinations of options, of few
    dynamic     the least sum of times within each amount of memory of all devices together, in bins
    memory      as greedy, with a partitioner that lowers the fullest device where that costs 2 % or less
    by a key    whole tables, or the smallest pieces where whole ones do not fit, by falling key on the least loaded device with room

Each proposal is partitioned: options on all devices first, then by falling storage, each piece on the least loaded device that has room,
rows over a node on the least loaded node. TorchRec's planner takes the best of the first four.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import product
from math import inf, log10
from random import Random
from time import monotonic

import numpy as np

from crossopt.formulation.embeddings import Held
from crossopt.instances.embeddings.options import PricedOption, devices_of
from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.instances.embeddings.systems import System, fixed_at
from crossopt.solvers.answer import Baseline
from crossopt.solvers.embeddings.judge import KEYS, NO_PROPOSAL, NO_ROOM, EmbeddingPlan, TablePlan, key_name

_MOST_PROPOSALS, _BINS, _MOST_CELLS = 10_000, 100, 20_000_000
_SEARCHES, _CLOSE, _TOLERANCE = 10, 10 << 20, 0.02
"""Bisections of the memory-balanced partitioner, bytes at which they end, and the share by which a plan may be slower."""


def baselines(question: EmbeddingsQuestion, seconds: float) -> tuple[Baseline[EmbeddingPlan], ...]:
    """All of them; proposals end after their share of some seconds."""
    found = list[Baseline[EmbeddingPlan]]()
    proposers: tuple[tuple[str, Callable[[EmbeddingsQuestion], Iterator[Sequence[int]]]], ...] = (
        ("TorchRec greedy", greedy_proposals),
        ("TorchRec greedy by sum", lambda question: greedy_proposals(question, by_sum=True)),
        ("TorchRec uniform", uniform_proposals),
        ("TorchRec grid", grid_proposals),
        ("TorchRec dynamic programming", dynamic_proposals),
    )
    share = seconds / (len(proposers) + 1)
    for name, proposals in proposers:
        began = monotonic()
        plan, count, ended = best_proposal(question, proposals(question), began + share)
        if count:
            note = "" if ended else f"stopped after {count:,} proposals"
            found.append(Baseline(name, None, plan, note if plan else NO_PROPOSAL, monotonic() - began))
    began = monotonic()
    plan, count, ended = best_proposal(question, greedy_proposals(question), began + share, balanced)
    note = "" if ended else f"stopped after {count:,} proposals"
    found.append(Baseline("TorchRec memory-balanced", None, plan, note if plan else NO_PROPOSAL, monotonic() - began))
    return (*found, *rules_by_key(question))


def rules_by_key(question: EmbeddingsQuestion, system: System | None = None) -> tuple[Baseline[EmbeddingPlan], ...]:
    """Whole tables by each key, where there is a choice of systems at one of them; a check carries these out again."""
    fixed = question if system is None else fixed_at(question, system)
    plans = [(key, by_key(fixed, key)) for key in KEYS]
    return tuple(
        Baseline(key_name(key), None, replace(plan, system=system) if plan else None, "" if plan else NO_ROOM) for key, plan in plans
    )


Parted = tuple[float, tuple[Held, ...]]
"""Time of the slowest device, and places of all pieces."""


def best_proposal(
    question: EmbeddingsQuestion,
    proposals: Iterator[Sequence[int]],
    deadline: float,
    partitioner: Callable[[EmbeddingsQuestion, Sequence[int]], Parted | None] | None = None,
) -> tuple[EmbeddingPlan | None, int, bool]:
    """The proposal with the fastest slowest device among those that can be partitioned, their number, and whether all were tried."""
    best: tuple[float, tuple[Held, ...] | None] = (inf, None)
    count, late = 0, False
    for proposal in proposals:
        count += 1
        parted = (partitioner or partition)(question, proposal)
        if parted is not None and parted[0] < best[0]:
            best = parted
        if late := monotonic() > deadline:
            break
    return None if best[1] is None else plan_of(question, best[1]), count, not late


def plan_of(question: EmbeddingsQuestion, held: Sequence[Held]) -> EmbeddingPlan:
    """What tables take, in the terms of the question."""
    options = question.options
    return EmbeddingPlan(
        tuple(TablePlan(options[kind][own.index].option, tuple(sorted(own.places))) for kind, own in zip(question.types, held, strict=True))
    )


def _shards(question: EmbeddingsQuestion, option: PricedOption) -> int:
    """Shards of all devices."""
    group = question.group
    return option.pieces * {"device": 1, "neighbours": 1, "node": group.per_node, "all": group.devices}[option.spread]


def _stored(question: EmbeddingsQuestion, option: PricedOption) -> tuple[int, int, int, int]:
    """Memory by which proposals are ranked: of a shard and of all shards, in HBM and in host memory."""
    shards, (hbm, ddr, _) = _shards(question, option), option.memory
    return hbm, hbm * shards, ddr, ddr * shards


@dataclass(slots=True)
class _Devices:
    """Time and memory of devices that are filled."""

    per_node: int
    capacity: tuple[int, ...]
    loads: list[float]
    memory: list[list[int]]
    heap: list[tuple[float, int, int]] | None = None
    """Devices by load and by their places in nodes, from the first piece on that goes to any one."""

    def put(self, devices: Sequence[int], option: PricedOption) -> bool:
        """A piece on each of some devices, if all have room."""
        for device in devices:
            if any(used + more > most for used, more, most in zip(self.memory[device], option.memory, self.capacity, strict=True)):
                return False
        for device in devices:
            self.loads[device] += option.time
            for tier, amount in enumerate(option.memory):
                self.memory[device][tier] += amount
        return True

    def on_devices(self, option: PricedOption) -> list[int] | None:
        """Each piece on the least loaded device with room; None if one finds none."""
        if self.heap is None:
            self.heap = [(load, device % self.per_node, device) for device, load in enumerate(self.loads)]
            heapify(self.heap)
        own = list[int]()
        for _ in range(option.pieces):
            full = list[tuple[float, int, int]]()
            while self.heap:
                least = heappop(self.heap)
                if not (option.distinct and least[2] in own) and self.put([least[2]], option):
                    own.append(least[2])
                    heappush(self.heap, (self.loads[least[2]], *least[1:]))
                    break
                full.append(least)
            else:
                return None
            for least in full:
                heappush(self.heap, least)
        return own

    def nodes(self) -> list[range]:
        """Nodes, the least loaded first."""
        nodes = [range(start, start + self.per_node) for start in range(0, len(self.loads), self.per_node)]
        return sorted(nodes, key=lambda devices: sum(self.loads[device] for device in devices))

    def in_nodes(self, option: PricedOption) -> list[int] | None:
        """Pieces on devices of the first node with room, or each on all devices of one of the first nodes in a row that have; None
        without any."""
        self.heap, nodes, count = None, self.nodes(), option.pieces
        if option.spread == "neighbours":
            return next((own for devices in nodes if (own := self._beside(devices, option)) is not None), None)
        rows = [nodes[first : first + count] for first in range(len(nodes) - count + 1)]
        for row in rows or [[nodes[index % len(nodes)] for index in range(count)]]:
            before = [(device, self.loads[device], list(self.memory[device])) for devices in row for device in devices]
            if all(self.put(devices, option) for devices in row):
                return [devices[0] // self.per_node for devices in row]
            for device, load, memory in before:
                self.loads[device], self.memory[device] = load, memory
        return None

    def _beside(self, devices: range, option: PricedOption) -> list[int] | None:
        """Each piece on the least loaded device of a node with room; None if one finds none."""
        before, own = [(device, self.loads[device], list(self.memory[device])) for device in devices], list[int]()
        for _ in range(option.pieces):
            free = [device for device in devices if not (option.distinct and device in own)]
            order = sorted(free, key=lambda device: (self.loads[device], device))
            device = next((device for device in order if self.put([device], option)), None)
            if device is None:
                for index, load, memory in before:
                    self.loads[index], self.memory[index] = load, memory
                return None
            own.append(device)
        return own


def partition(question: EmbeddingsQuestion, proposal: Sequence[int], hbm: int | None = None, by_time: bool = False) -> Parted | None:
    """Time of the slowest device and places of all pieces; None where some piece finds no room."""
    group, capacity = question.group, question.capacity if hbm is None else (hbm, *question.capacity[1:])
    devices = _Devices(group.per_node, capacity, [0.0] * group.devices, [[0, 0, 0] for _ in range(group.devices)])
    chosen = [question.options[kind][index] for kind, index in zip(question.types, proposal, strict=True)]
    places: list[tuple[int, ...]] = [()] * len(chosen)

    def rank(table: int) -> tuple[float, ...]:
        option = chosen[table]
        shards = _shards(question, option)
        if option.spread == "all":
            return (0.0,)
        return (1.0, -shards * option.time) if by_time else (1.0, *(-float(shards * amount) for amount in option.memory))

    for table in sorted(range(len(chosen)), key=rank):
        option = chosen[table]
        if option.spread == "all":
            own: list[int] | None = [] if devices.put(range(group.devices), option) else None
        else:
            own = devices.on_devices(option) if option.spread == "device" else devices.in_nodes(option)
        if own is None:
            return None
        places[table] = tuple(own)
    return max(devices.loads), tuple(Held(index, position) for index, position in zip(proposal, places, strict=True))


def greedy_proposals(question: EmbeddingsQuestion, by_sum: bool = False) -> Iterator[Sequence[int]]:
    """Each table at its fastest option, by a shard or by the sum of all, then one table after another at its next."""

    def ranked(options: Sequence[PricedOption]) -> list[int]:
        return sorted(range(len(options)), key=lambda index: options[index].time * (_shards(question, options[index]) if by_sum else 1))

    order = [ranked(options) for options in question.options]
    sizes = [[_stored(question, options[index]) for index in ranks] for options, ranks in zip(question.options, order, strict=True)]
    at = [0] * len(question.types)
    heap = list[tuple[tuple[int, ...], int]]()
    for table, kind in enumerate(question.types):
        if len(order[kind]) > 1:
            heap.append((tuple(-amount for amount in sizes[kind][0]), table))
    heapify(heap)
    while True:
        yield [order[kind][index] for kind, index in zip(question.types, at, strict=True)]
        if not heap:
            return
        _, table = heappop(heap)
        kind = question.types[table]
        at[table] += 1
        if at[table] + 1 < len(order[kind]):
            heappush(heap, (tuple(-amount for amount in sizes[kind][at[table]]), table))


def uniform_proposals(question: EmbeddingsQuestion) -> Iterator[Sequence[int]]:
    """The fastest options of one sharding; tables whose columns are not cut lie whole."""
    for sharding in question.file.choices.sharding:
        best = list[int | None]()
        for options in question.options:
            own = [index for index, option in enumerate(options) if option.option.sharding == sharding]
            if not own and sharding in {"column", "table-column"}:
                own = [index for index, option in enumerate(options) if option.option.sharding == "table"]
            best.append(min(own, key=lambda index, options=options: options[index].time) if own else None)  # type: ignore[misc]
        chosen = [best[kind] for kind in question.types]
        if None not in chosen:
            yield [index for index in chosen if index is not None]


def grid_proposals(question: EmbeddingsQuestion) -> Iterator[Sequence[int]]:
    """All combinations, if they are few."""
    count = 1
    for kind in question.types:
        count *= len(question.options[kind])
        if count > _MOST_PROPOSALS:
            return
    yield from product(*(range(len(question.options[kind])) for kind in question.types))


def dynamic_proposals(question: EmbeddingsQuestion) -> Iterator[Sequence[int]]:
    """Options of least memory, then those of the least sum of times for each amount of HBM of all devices, in bins; the fastest first."""
    group, tables = question.group, len(question.types)
    totals = [[_stored(question, option)[1] for option in options] for options in question.options]
    order = [sorted(range(len(own)), key=own.__getitem__) for own in totals]
    yield [order[kind][0] for kind in question.types]
    by_size = sorted(range(tables), key=lambda table: min(totals[question.types[table]]))
    bins = min(_BINS * group.devices, max(_MOST_CELLS // tables, 1))
    width = max(question.capacity[0] * group.devices / bins, 1.0)
    times, used = np.full(bins, inf), np.zeros(bins)
    times[0] = 0.0
    back, before = np.zeros((tables, bins), np.int16), np.zeros((tables, bins), np.int32)
    for table in by_size:
        kind = question.types[table]
        after, size = np.full(bins, inf), np.zeros(bins)
        known = np.flatnonzero(times < inf)
        for index in order[kind]:
            option = question.options[kind][index]
            hbm = used[known] + totals[kind][index] / width
            inside = hbm < bins
            own, target = times[known] + option.time * _shards(question, option), hbm.astype(np.int64)
            ranks = np.flatnonzero(inside)[np.lexsort((own[inside], target[inside]))]
            first = ranks[np.unique(target[ranks], return_index=True)[1]]
            first = first[own[first] < after[target[first]]]
            after[target[first]], size[target[first]] = own[first], hbm[first]
            back[table, target[first]], before[table, target[first]] = index, known[first]
        times, used = after, size
    for end in sorted(np.flatnonzero(times < inf).tolist(), key=times.__getitem__):
        proposal, position = dict[int, int](), end
        for table in reversed(by_size):
            proposal[table] = int(back[table, position])
            position = int(before[table, position])
        yield [proposal[table] for table in range(tables)]


def balanced(question: EmbeddingsQuestion, proposal: Sequence[int]) -> Parted | None:
    """Pieces by falling time, with the least memory of the fullest device, by bisection, at which the plan is 2 % slower at most."""
    best = partition(question, proposal, by_time=True)
    if best is None:
        return None
    first, options = best[0], [question.options[kind][index] for kind, index in zip(question.types, proposal, strict=True)]
    group, used = question.group, [0] * question.group.devices
    for option, held in zip(options, best[1], strict=True):
        for device in devices_of(option.spread, held.places, group.per_node, group.devices):
            used[device] += option.memory[0]
    low, high = max(sum(used) // group.devices, *(option.memory[0] for option in options)), max(used)
    for _ in range(_SEARCHES):
        if low + _CLOSE >= high:
            break
        middle = (low + high) // 2
        found = partition(question, proposal, middle, by_time=True)
        if found is None or found[0] > first * (1.0 + _TOLERANCE):
            low = middle
        else:
            best, high = found, middle
    return best


def by_key(question: EmbeddingsQuestion, key: str) -> EmbeddingPlan | None:
    """Tables by falling key, each at the first option of its fewest pieces, on the least loaded device with room."""
    group, random = question.group, Random(0)
    options = [min(own, key=lambda option: (option.spread != "device", option.pieces, option.time)) for own in question.options]
    indices = [own.index(option) for own, option in zip(question.options, options, strict=True)]

    def rank(table: int) -> float:
        own = question.tables[table]
        size, lookups = _stored(question, options[question.types[table]])[1], own.dimension * own.pooling * own.fraction
        keys = {"size": float(size), "dimension": own.dimension, "lookups": lookups, "size-lookup": lookups * log10(max(own.rows, 10))}
        return keys.get(key, options[question.types[table]].time if key == "cost" else random.random())

    devices = _Devices(group.per_node, question.capacity, [0.0] * group.devices, [[0, 0, 0] for _ in range(group.devices)])
    places: list[tuple[int, ...]] = [()] * len(question.tables)
    ranks = [rank(table) for table in range(len(question.tables))]
    for table in sorted(range(len(question.tables)), key=lambda one: (-ranks[one], one)):
        option = options[question.types[table]]
        if option.spread == "all":
            own: list[int] | None = [] if devices.put(range(group.devices), option) else None
            devices.heap = None
        else:
            own = devices.on_devices(option) if option.spread == "device" else devices.in_nodes(option)
        if own is None:
            return None
        places[table] = tuple(own)
    return plan_of(question, [Held(indices[kind], index) for kind, index in zip(question.types, places, strict=True)])
