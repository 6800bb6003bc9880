"""The proved placement beside what lists, partitioners, searches and experts do, each in the same judge's eyes."""

from collections.abc import Callable, Iterator
from random import Random
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.placement.assignment import machine_of
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.answer import Rival
from crossopt.solvers.placement.answer import Placement, judged, middle, rival
from crossopt.solvers.placement.judge import judge
from crossopt.solvers.placement.search.anneal import HEAT, annealed
from crossopt.solvers.placement.search.lists import by_rank, by_work
from crossopt.solvers.placement.search.minimum_cut import equal_shares
from crossopt.solvers.placement.throughput.rivals import RULES

_RESTARTS, _MOVES, _MOVES_A_BLOCK = 10, 200_000, 2_000

Search = Callable[[PlacementQuestion, int, float], Whole | None]


def list_by_work(question: PlacementQuestion, seed: int, deadline: float) -> Whole | None:
    """The most work first, to the device with least."""
    del seed, deadline
    blocks = blocks_of(question.graph, staged=False)
    return _on_nodes(blocks, by_work(blocks, machine_of(question)))


def list_by_rank(question: PlacementQuestion, seed: int, deadline: float) -> Whole | None:
    """The longest way to the end first, to the device that is done first with one sample."""
    del seed, deadline
    blocks = blocks_of(question.graph, staged=True)
    return _on_nodes(blocks, by_rank(blocks, machine_of(question)))


def minimum_cut(question: PlacementQuestion, seed: int, deadline: float) -> Whole | None:
    """Equal shares of the work on the accelerators, with the cheapest nets between them."""
    del deadline
    blocks = blocks_of(question.graph, staged=False)
    if not question.accelerators or not np.isfinite(blocks.accelerator_time).all():
        return None
    return _on_nodes(blocks, equal_shares(blocks, question.accelerators, seed))


def local_search(question: PlacementQuestion, seed: int, deadline: float) -> Whole | None:
    """From ten random placements downhill, one block at a time."""
    blocks, machine = blocks_of(question.graph, staged=False), machine_of(question)
    random = Random(seed)
    moves = min(_MOVES, _MOVES_A_BLOCK * len(blocks)) // _RESTARTS
    found = []
    for _ in range(_RESTARTS):
        start = _at_random(question, blocks, random)
        if start is not None:
            found.append(annealed(blocks, machine, start, moves, random.getrandbits(32), deadline, heat=0.0))
    return _best(question, blocks, found)


def annealing(question: PlacementQuestion, seed: int, deadline: float) -> Whole | None:
    """From one random placement by moves that may be uphill."""
    blocks, machine = blocks_of(question.graph, staged=False), machine_of(question)
    start = _at_random(question, blocks, Random(seed))
    if start is None:
        return None
    return _on_nodes(blocks, annealed(blocks, machine, start, min(_MOVES, _MOVES_A_BLOCK * len(blocks)), seed, deadline, HEAT))


SEARCHES: dict[str, Search] = {
    "list by work": list_by_work,
    "list by rank": list_by_rank,
    "minimum cut": minimum_cut,
    "local search": local_search,
    "annealing": annealing,
}
SEEDED = ("minimum cut", "local search", "annealing")


def compared(question: PlacementQuestion, seconds: float, seeds: int, splits: dict[str, Whole]) -> Iterator[Rival[Placement]]:
    """Every rule, every search with its seeds (the middle one by value is shown), and the splits that are given."""
    blocks = blocks_of(question.graph, staged=True)
    for name, rule in RULES.items():
        began = monotonic()
        device_of = rule(question, blocks)
        yield judged(question, rival(question, name, device_of), monotonic() - began)
    for name, search in SEARCHES.items():
        yield middle([_searched(question, name, search, seed, seconds) for seed in range(seeds if name in SEEDED else 1)])
    for name, device_of in splits.items():
        yield judged(question, rival(question, name, device_of))


def _searched(question: PlacementQuestion, name: str, search: Search, seed: int, seconds: float) -> Rival[Placement]:
    began = monotonic()
    device_of = search(question, seed, began + seconds)
    return judged(question, rival(question, name, device_of), monotonic() - began)


def _at_random(question: PlacementQuestion, blocks: Blocks, random: Random) -> list[int] | None:
    """Blocks in random order, each on a random device that has room; None where one fits nowhere."""
    left = [question.memory] * question.accelerators + [float("inf")] * question.cpus
    device = [0] * len(blocks)
    for block in random.sample(range(len(blocks)), len(blocks)):
        size, runs = float(blocks.size[block]), np.isfinite(blocks.accelerator_time[block])
        fitting = [place for place, room in enumerate(left) if size <= room and (runs or place >= question.accelerators)]
        if not fitting:
            return None
        device[block] = random.choice(fitting)
        left[device[block]] -= size
    return device


def _best(question: PlacementQuestion, blocks: Blocks, found: list[list[int]]) -> Whole | None:
    """The least busy one."""
    placed = [np.array(device, np.int64)[blocks.block_of] for device in found]
    return min(placed, key=lambda device_of: judge(question, device_of).value, default=None)


def _on_nodes(blocks: Blocks, device: list[int] | None) -> Whole | None:
    return None if device is None else np.array(device, np.int64)[blocks.block_of]
