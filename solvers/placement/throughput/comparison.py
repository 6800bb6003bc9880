"""Searches without a proof, begun again and again until time is over, or until many beginnings in a row brought nothing better.

many orders     the best stages along one order of the data after another
local search    downhill, one move at a time: from equal stages, from the best stages along one order, from the list by work, then at random
annealing       moves that may be uphill: at random, then with little heat from those starts; each time with twice as many moves
"""

from collections.abc import Callable, Collection, Iterator
from itertools import chain, count, cycle
from random import Random
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.formulation.placement.throughput import Machine, machine_of
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.answer import Baseline
from crossopt.solvers.placement.answer import Placement, baseline_of, judged, middle
from crossopt.solvers.placement.heuristics import HEAT, annealed, by_rank, by_work, equal_shares, orders
from crossopt.solvers.placement.intervals import Staged, best_stages
from crossopt.solvers.placement.judge import judge
from crossopt.solvers.placement.throughput.run import RULES, equal_stages, on_devices, one_order

_STILL = 20
"""Beginnings in a row that brought nothing better, behind which a search ends."""
_DOWNHILL, _UPHILL = 200, 500
"""Moves for each block of the first run."""
_WARM = 0.005
"""The heat of what begins at a good placement, which more would spoil."""
_MOST_ORDERS = 1 << 30


def many_orders(question: PlacementQuestion, seed: int, deadline: float) -> Whole | None:
    """The best stages along each order, and of all orders."""
    blocks, still = blocks_of(question.graph, staged=True), 0
    found, overlapped = Staged(float("inf"), [0] * len(blocks), []), question.communication == "overlapped"
    for order in orders(blocks, _MOST_ORDERS, seed):
        one = best_stages(blocks, order, question.accelerators, question.cpus, question.memory, overlapped, deadline)
        found, still = (one, 0) if one.value < found.value else (found, still + 1)
        if still >= _STILL or monotonic() >= deadline:
            break
    return None if found.value == float("inf") else on_devices(question, blocks, found)


def local_search(question: PlacementQuestion, seed: int, deadline: float) -> Whole | None:
    """The least busy of all descents."""
    blocks, machine, random = blocks_of(question.graph, staged=False), machine_of(question), Random(seed)
    starts = chain(good_starts(question, blocks, machine), (at_random(question, blocks, random) for _ in count()))
    moves = _DOWNHILL * len(blocks)
    return _least_busy(
        question,
        blocks,
        deadline,
        (None if one is None else annealed(blocks, machine, one, moves, random.getrandbits(32), deadline, heat=0.0) for one in starts),
    )


def annealing(question: PlacementQuestion, seed: int, deadline: float) -> Whole | None:
    """The least busy of all runs."""
    blocks, machine, random = blocks_of(question.graph, staged=False), machine_of(question), Random(seed)
    good = cycle(good_starts(question, blocks, machine))

    def runs() -> Iterator[list[int] | None]:
        for doubled in count():
            for one, heat in ((at_random(question, blocks, random), HEAT), (next(good, None), _WARM)):
                moves, drawn = (_UPHILL << doubled) * len(blocks), random.getrandbits(32)
                yield None if one is None else annealed(blocks, machine, one, moves, drawn, deadline, heat)

    return _least_busy(question, blocks, deadline, runs())


def _least_busy(question: PlacementQuestion, blocks: Blocks, deadline: float, runs: Iterator[list[int] | None]) -> Whole | None:
    best, value, still = None, float("inf"), 0
    for device in runs:
        placed = on_nodes(blocks, device)
        busy = float("inf") if placed is None else judge(question, placed).value
        best, value, still = (placed, busy, 0) if busy < value else (best, value, still + 1)
        if still >= _STILL or monotonic() >= deadline:
            break
    return best


def good_starts(question: PlacementQuestion, blocks: Blocks, machine: Machine) -> list[list[int]]:
    """What rules place within the memory."""
    staged, found = blocks_of(question.graph, staged=True), list[list[int]]()
    listed = on_nodes(blocks, by_work(blocks, machine))
    for device_of in (equal_stages(question, staged), one_order(question, staged), listed):
        if device_of is None:
            continue
        device = np.zeros(len(blocks), np.int64)
        device[blocks.block_of] = device_of
        held = np.bincount(device, blocks.size, len(question.devices))
        if (held[: question.accelerators] <= question.memory).all():
            found.append(device.tolist())
    return found


def at_random(question: PlacementQuestion, blocks: Blocks, random: Random) -> list[int] | None:
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


def on_nodes(blocks: Blocks, device: list[int] | None) -> Whole | None:
    """The device of each row of the graph."""
    return None if device is None else np.array(device, np.int64)[blocks.block_of]


# The proved placement beside what lists, partitioners, searches and experts do, each in the same judge's eyes.

Search = Callable[[PlacementQuestion, int, float], Whole | None]


def list_by_work(question: PlacementQuestion, seed: int, deadline: float) -> Whole | None:
    """The most work first, to the device with least."""
    del seed, deadline
    blocks = blocks_of(question.graph, staged=False)
    return on_nodes(blocks, by_work(blocks, machine_of(question)))


def list_by_rank(question: PlacementQuestion, seed: int, deadline: float) -> Whole | None:
    """The longest way to the end first, to the device that is done first with one sample."""
    del seed, deadline
    blocks = blocks_of(question.graph, staged=True)
    return on_nodes(blocks, by_rank(blocks, machine_of(question)))


def minimum_cut(question: PlacementQuestion, seed: int, deadline: float) -> Whole | None:
    """Equal shares of the work on the accelerators, with the cheapest nets between them."""
    del deadline
    blocks = blocks_of(question.graph, staged=False)
    if not question.accelerators or not np.isfinite(blocks.accelerator_time).all():
        return None
    return on_nodes(blocks, equal_shares(blocks, question.accelerators, seed))


SEARCHES: dict[str, Search] = {
    "list by work": list_by_work,
    "list by rank": list_by_rank,
    "minimum cut": minimum_cut,
    "many orders": many_orders,
    "local search": local_search,
    "annealing": annealing,
}
SEEDED = ("minimum cut", "many orders", "local search", "annealing")


def compared(
    question: PlacementQuestion, seconds: float, seeds: int, splits: dict[str, Whole], searches: Collection[str] = tuple(SEARCHES)
) -> Iterator[Baseline[Placement]]:
    """Every rule, searches with their seeds (the middle one by value is shown), and the splits that are given."""
    blocks = blocks_of(question.graph, staged=True)
    for name, rule in RULES.items():
        began = monotonic()
        device_of = rule(question, blocks)
        yield judged(question, baseline_of(question, name, device_of), monotonic() - began)
    for name, search in ((name, SEARCHES[name]) for name in searches):
        yield middle([_searched(question, name, search, seed, seconds) for seed in range(seeds if name in SEEDED else 1)])
    for name, device_of in splits.items():
        yield judged(question, baseline_of(question, name, device_of))


def _searched(question: PlacementQuestion, name: str, search: Search, seed: int, seconds: float) -> Baseline[Placement]:
    began = monotonic()
    device_of = search(question, seed, began + seconds)
    return judged(question, baseline_of(question, name, device_of), monotonic() - began)
