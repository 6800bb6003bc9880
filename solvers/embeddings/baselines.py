"""Baselines for embedding tables: TorchRec's proposers with its greedy partitioner, written anew, and greedy rules by a key.

    greedy      each table at its fastest option; then, proposal after proposal, the table that stores most takes its next one
    uniform     one sharding for all tables
    grid        all combinations of options, of few
    dynamic     the least sum of times within each amount of memory of all devices together, in bins
    memory      as greedy, with the fewest bytes on the fullest device that the partitioner can have
    by a key    whole tables, or the smallest pieces where whole ones do not fit, by falling key on the least loaded device with room

Each proposal is partitioned: options on all devices first, then by falling storage, each piece on the least loaded device that has room.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import product
from math import inf, log10
from random import Random
from time import monotonic
from typing import Final

import numpy as np

from crossopt.formulation.embeddings import Held
from crossopt.instances.embeddings.options import PricedOption
from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.solvers.answer import Baseline
from crossopt.solvers.embeddings.judge import EmbeddingPlan, TablePlan

_MOST_PROPOSALS, _BINS, _MOST_CELLS = 10_000, 100, 20_000_000
_KEYS: Final = ("size", "dimension", "lookups", "size-lookup", "cost", "random")


def baselines(question: EmbeddingsQuestion, seconds: float) -> tuple[Baseline[EmbeddingPlan], ...]:
    """All of them; proposals end after their share of some seconds."""
    found = list[Baseline[EmbeddingPlan]]()
    proposers: tuple[tuple[str, Callable[[EmbeddingsQuestion], Iterator[Sequence[int]]]], ...] = (
        ("TorchRec greedy", greedy_proposals),
        ("TorchRec uniform", uniform_proposals),
        ("TorchRec grid", grid_proposals),
        ("TorchRec dynamic programming", dynamic_proposals),
    )
    for name, proposals in proposers:
        began, share = monotonic(), seconds / (len(proposers) + 1)
        plan, count, ended = best_proposal(question, proposals(question), began + share)
        if count:
            note = "" if ended else f"stopped after {count:,} proposals"
            found.append(Baseline(name, None, plan, note if plan else "no proposal fits", monotonic() - began))
    began = monotonic()
    found.append(Baseline("TorchRec memory-balanced", None, balanced(question), "", monotonic() - began))
    for key in _KEYS:
        plan = by_key(question, key)
        found.append(Baseline(f"greedy by {key}" if key != "random" else "random", None, plan, "" if plan else "no room for some table"))
    return tuple(found)


def best_proposal(
    question: EmbeddingsQuestion, proposals: Iterator[Sequence[int]], deadline: float
) -> tuple[EmbeddingPlan | None, int, bool]:
    """The proposal with the fastest slowest device among those that can be partitioned, their number, and whether all were tried."""
    best: tuple[float, tuple[Held, ...] | None] = (inf, None)
    count = 0
    for proposal in proposals:
        count += 1
        parted = partition(question, proposal, question.capacity[0])
        if parted is not None and parted[0] < best[0]:
            best = parted
        if monotonic() > deadline:
            return _plan(question, best[1]), count, False
    return _plan(question, best[1]), count, True


def _plan(question: EmbeddingsQuestion, held: Sequence[Held] | None) -> EmbeddingPlan | None:
    if held is None:
        return None
    options = question.options
    return EmbeddingPlan(
        tuple(TablePlan(options[kind][one.index].option, tuple(sorted(one.places))) for kind, one in zip(question.types, held, strict=True))
    )


def _score(option: PricedOption) -> float:
    return option.time


def _stored(question: EmbeddingsQuestion, option: PricedOption) -> tuple[int, int, int, int]:
    """Memory by which proposals and tables are ranked: of a shard and of all shards, in HBM and in host memory."""
    group = question.group
    shards = option.pieces * {"device": 1, "neighbours": 1, "node": group.per_node, "all": group.devices}[option.spread]
    hbm, ddr, _ = option.memory
    return hbm, hbm * shards, ddr, ddr * shards


@dataclass(slots=True)
class _Devices:
    """Time and memory of devices that are filled."""

    per_node: int
    capacity: tuple[int, ...]
    loads: list[float]
    memory: list[list[int]]
    heap: list[tuple[float, int]] | None = None
    """Devices by load, from the first piece on that goes to any one."""

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
            self.heap = [(load, device) for device, load in enumerate(self.loads)]
            heapify(self.heap)
        own = list[int]()
        for _ in range(option.pieces):
            full = list[tuple[float, int]]()
            while self.heap:
                pair = heappop(self.heap)
                if not (option.distinct and pair[1] in own) and self.put([pair[1]], option):
                    own.append(pair[1])
                    heappush(self.heap, (self.loads[pair[1]], pair[1]))
                    break
                full.append(pair)
            else:
                return None
            for pair in full:
                heappush(self.heap, pair)
        return own

    def in_nodes(self, option: PricedOption) -> list[int] | None:
        """Each piece on all devices of the least loaded node with room, or all pieces on devices of one node; None without room."""
        own = list[int]()
        for _ in range(option.pieces if option.spread == "node" else 1):
            nodes = [range(start, start + self.per_node) for start in range(0, len(self.loads), self.per_node)]
            for devices in sorted(nodes, key=lambda devices: max(self.loads[device] for device in devices)):
                if option.distinct and devices[0] // self.per_node in own:
                    continue
                chosen = list(devices)
                if option.spread == "neighbours":
                    chosen = sorted(devices, key=lambda device: self.loads[device])[: option.pieces]
                if len(chosen) >= (option.pieces if option.spread == "neighbours" else 1) and self.put(chosen, option):
                    own += chosen if option.spread == "neighbours" else [devices[0] // self.per_node]
                    break
            else:
                return None
        return own


def partition(question: EmbeddingsQuestion, proposal: Sequence[int], hbm: int) -> tuple[float, tuple[Held, ...]] | None:
    """Time of the slowest device and places of all pieces; None where some piece finds no room."""
    group, rank = question.group, {"all": 0, "node": 1, "neighbours": 2, "device": 3}
    devices = _Devices(group.per_node, (hbm, *question.capacity[1:]), [0.0] * group.devices, [[0, 0, 0] for _ in range(group.devices)])
    chosen = [question.options[kind][index] for kind, index in zip(question.types, proposal, strict=True)]
    places: list[tuple[int, ...]] = [()] * len(chosen)
    stored = [_stored(question, option) for option in chosen]
    for table in sorted(range(len(chosen)), key=lambda one: (rank[chosen[one].spread], *(-amount for amount in stored[one]))):
        option = chosen[table]
        if option.spread == "all":
            own: list[int] | None = [] if devices.put(range(group.devices), option) else None
        else:
            own = devices.on_devices(option) if option.spread == "device" else devices.in_nodes(option)
        if own is None:
            return None
        places[table] = tuple(own)
    return max(devices.loads), tuple(Held(index, place) for index, place in zip(proposal, places, strict=True))


def greedy_proposals(question: EmbeddingsQuestion) -> Iterator[Sequence[int]]:
    """Each table at its fastest option, then one table after another at its next."""
    order = [sorted(range(len(options)), key=lambda index, options=options: _score(options[index])) for options in question.options]  # type: ignore[misc]
    sizes = [[_stored(question, options[index]) for index in ranks] for options, ranks in zip(question.options, order, strict=True)]
    at = [0] * len(question.types)
    heap = list[tuple[tuple[int, ...], int]]()
    for table, kind in enumerate(question.types):
        if len(order[kind]) > 1:
            heap.append((tuple(-amount for amount in sizes[kind][0]), table))
    heapify(heap)
    while True:
        yield [order[kind][place] for kind, place in zip(question.types, at, strict=True)]
        if not heap:
            return
        _, table = heappop(heap)
        kind = question.types[table]
        at[table] += 1
        if at[table] + 1 < len(order[kind]):
            heappush(heap, (tuple(-amount for amount in sizes[kind][at[table]]), table))


def uniform_proposals(question: EmbeddingsQuestion) -> Iterator[Sequence[int]]:
    """The fastest options of one sharding."""
    for sharding in question.file.choices.sharding:
        best = list[int | None]()
        for options in question.options:
            own = [index for index, option in enumerate(options) if option.option.sharding == sharding]
            best.append(min(own, key=lambda index, options=options: _score(options[index])) if own else None)  # type: ignore[misc]
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
    """Options of the least sum of times for each amount of HBM of all devices, in bins."""
    group, tables = question.group, len(question.types)
    bins = min(_BINS * group.devices, max(_MOST_CELLS // tables, 1))
    width = max(question.capacity[0] * group.devices / bins, 1.0)
    least, back = np.full(bins, inf), np.zeros((tables, bins), np.int16)
    least[0] = 0.0
    sizes = [[min(int(_stored(question, option)[1] / width), bins) for option in options] for options in question.options]
    for table, kind in enumerate(question.types):
        after, taken = np.full(bins, inf), np.zeros(bins, np.int16)
        for index, (option, size) in enumerate(zip(question.options[kind], sizes[kind], strict=True)):
            if size < bins:
                shards = _stored(question, option)[1] // max(option.memory[0], 1)
                cost = least[: bins - size] + option.time * max(shards, 1)
                better = cost < after[size:]
                after[size:][better], taken[size:][better] = cost[better], index
        least, back[table] = after, taken
    ends, lowest = list[int](), inf
    for end in np.flatnonzero(least < inf).tolist():
        if least[end] < lowest:
            lowest = float(least[end])
            ends.append(end)
    for end in reversed(ends):
        proposal, place = list[int](), end
        for table in range(tables - 1, -1, -1):
            proposal.append(int(back[table, place]))
            place -= sizes[question.types[table]][proposal[-1]]
        yield proposal[::-1]


def balanced(question: EmbeddingsQuestion) -> EmbeddingPlan | None:
    """The first greedy proposal, on devices that have as little memory as it needs, by bisection."""
    proposal = next(greedy_proposals(question))
    best = partition(question, proposal, question.capacity[0])
    low, high = 0, question.capacity[0]
    while best is not None and high - low > max(question.capacity[0] // 200, 1):
        middle = (low + high) // 2
        found = partition(question, proposal, middle)
        low, high = (middle, high) if found is None else (low, middle)
        best = best if found is None else found
    return None if best is None else _plan(question, best[1])


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
    return _plan(question, [Held(indices[kind], place) for kind, place in zip(question.types, places, strict=True)])
