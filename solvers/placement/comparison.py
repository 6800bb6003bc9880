"""Placements without a proof, each priced by the same judge: rules, lists, orders, and searches with restarts."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import chain, count, cycle
from random import Random
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.formulation.placement.throughput import Machine, machine_of
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.solvers.answer import Baseline
from crossopt.solvers.placement.annealing import HEAT, annealed
from crossopt.solvers.placement.answer import Placement, baseline_of, judged, middle
from crossopt.solvers.placement.heuristics import Staged, best_stages, by_rank, by_work, equal_shares, orders
from crossopt.solvers.placement.judge import judge
from crossopt.solvers.placement.latency.flow import CPU, Flow, equal_stages, flow_of, greedy, placed, replayed
from crossopt.solvers.placement.latency.flow import all_on_cpus as every_on_cpus
from crossopt.solvers.placement.latency.search import along, first_pieces
from crossopt.solvers.placement.latency.search import annealed as annealed_pieces
from crossopt.solvers.placement.run import RULES, on_devices, one_order

# What is done for one sample without a proof, each in the same judge's eyes: everything in one place, shares, lists, orders, searches.
#
# all on cpus     no accelerator runs anything
# one device      one accelerator runs everything, as one piece
# greedy          one accelerator filled after the other along the data, the rest on CPUs
# equal pieces    along the order of the graph one piece after another, with equal shares of the work
# list by rank    the longest way to the end first: each block on CPUs, in the piece that was begun last or in a new one, wherever what is
#                 placed so far is through soonest (in the manner of HEFT, Topcuoglu et al. 2002, for pieces that run as a whole)
# one order       the best pieces along one order
# many orders     the same along some two dozen
# annealing       from greedy by moves that may be uphill

_MOVES, _MOVES_A_BLOCK = 30_000, 300

Rule = Callable[[PlacementQuestion, Flow, int, float], list[int] | None]
"""The slot of each block from the question, a seed and a deadline; None where there is no placement."""


def all_on_cpus(question: PlacementQuestion, flow: Flow, seed: int, deadline: float) -> list[int] | None:
    """No accelerator runs anything."""
    del seed, deadline
    return every_on_cpus(question, flow)


def one_device(question: PlacementQuestion, flow: Flow, seed: int, deadline: float) -> list[int] | None:
    """Everything as one piece, as far as it runs on an accelerator."""
    del question, seed, deadline
    return [0] * len(flow.blocks) if flow.slots and np.isfinite(flow.blocks.accelerator_time).all() else None


def filled(question: PlacementQuestion, flow: Flow, seed: int, deadline: float) -> list[int] | None:
    """One accelerator after the other."""
    del seed, deadline
    return greedy(question, flow)


def equal_pieces(question: PlacementQuestion, flow: Flow, seed: int, deadline: float) -> list[int] | None:
    """Along the order of the graph as many blocks to an accelerator as make its work an equal share."""
    del question, seed, deadline
    times = flow.blocks.accelerator_time
    if not flow.slots or not np.isfinite(times).all():
        return None
    middles = np.cumsum(times) - times / 2.0
    share = np.minimum(middles / max(float(times.sum()), 1e-300) * flow.accelerators, flow.accelerators - 1).astype(np.int64)
    return [int(number) * flow.pieces for number in share]


def pieces_by_rank(question: PlacementQuestion, flow: Flow, seed: int, deadline: float) -> list[int] | None:
    """Block after block, wherever what is placed is through soonest; None where time runs out."""
    del question, seed
    slot_of, begun, used = [CPU] * len(flow.blocks), 0, [0.0] * max(flow.accelerators, 1)
    seconds = [0.0] * len(flow.cpu)
    partly = replace(flow, cpu=seconds)
    for block in _by_rank(flow):
        if monotonic() >= deadline:
            return None
        for row in flow.rows[block]:
            seconds[row] = flow.cpu[row]
        size, runs = float(flow.blocks.size[block]), np.isfinite(flow.blocks.accelerator_time[block])
        pieces = [slot for slot in (begun - 1, begun) if 0 <= slot < flow.slots]
        choices = [CPU, *(slot for slot in pieces if runs and used[slot // flow.pieces] + size <= flow.memory)]
        ends = []
        for slot in choices:
            slot_of[block] = slot
            ends.append(replayed(partly, slot_of))
        slot_of[block] = choices[int(np.argmin(ends))]
        if slot_of[block] != CPU:
            used[slot_of[block] // flow.pieces] += size
            begun = max(begun, slot_of[block] + 1)
    return slot_of


def pieces_of_one_order(question: PlacementQuestion, flow: Flow, seed: int, deadline: float) -> list[int] | None:
    """The best pieces along the order in which the graph comes."""
    del question, seed, deadline
    return _of(along(flow, np.arange(len(flow.blocks)))) if flow.slots else None


def pieces_of_many_orders(question: PlacementQuestion, flow: Flow, seed: int, deadline: float) -> list[int] | None:
    """The best pieces along some orders."""
    del question, seed
    return _of(first_pieces(flow, lambda: monotonic() >= deadline)) if flow.slots else None


def anneal_pieces(question: PlacementQuestion, flow: Flow, seed: int, deadline: float) -> list[int] | None:
    """From greedy by moves that may be uphill."""
    moves = min(_MOVES, _MOVES_A_BLOCK * len(flow.blocks))
    return _of(annealed_pieces(flow, greedy(question, flow), moves, seed, lambda: monotonic() >= deadline)) if flow.slots else None


LATENCY_RULES: dict[str, Rule] = {
    "all on cpus": all_on_cpus,
    "one device": one_device,
    "greedy": filled,
    "equal pieces": equal_pieces,
    "list by rank": pieces_by_rank,
    "one order": pieces_of_one_order,
    "many orders": pieces_of_many_orders,
    "annealing": anneal_pieces,
}
_SEEDED_LATENCY = ("annealing",)


def compared_latency(question: PlacementQuestion, seconds: float, seeds: int, splits: dict[str, Ints]) -> Iterator[Baseline[Placement]]:
    """Every rule (of a search with seeds the run in the middle by value) and the splits that are given, each device as one piece."""
    flow = flow_of(question)
    for name, rule in LATENCY_RULES.items():
        yield middle([_ruled(question, flow, name, rule, seed, seconds) for seed in range(seeds if name in _SEEDED_LATENCY else 1)])
    for name, device_of in splits.items():
        yield judged(question, baseline_of(question, f"split {name}", device_of, np.zeros(len(device_of), np.int64)))


def _ruled(question: PlacementQuestion, flow: Flow, name: str, rule: Rule, seed: int, seconds: float) -> Baseline[Placement]:
    began = monotonic()
    slot_of = rule(question, flow, seed, began + seconds)
    found = baseline_of(question, name, *((None,) if slot_of is None else placed(flow, slot_of)))
    return judged(question, found, monotonic() - began)


def _by_rank(flow: Flow) -> list[int]:
    """Blocks by the longest way to the end, in the faster of both times; none before what it waits for."""
    blocks, ranks = flow.blocks, np.minimum(flow.blocks.accelerator_time, flow.blocks.cpu_time).tolist()
    for source, target in sorted(blocks.arcs, reverse=True):
        ranks[source] = max(ranks[source], min(float(blocks.accelerator_time[source]), float(blocks.cpu_time[source])) + ranks[target])
    return sorted(range(len(blocks)), key=lambda block: (-ranks[block], block))


def _of(found: tuple[float, list[int]]) -> list[int] | None:
    """The slots, where some order gives any."""
    return found[1] if np.isfinite(found[0]) else None


# Searches without a proof, begun again and again until time is over, or until many beginnings in a row brought nothing better.
#
# many orders     the best stages along one order of the data after another local search    downhill, one move at a time: from equal stages,
# from the best stages along one order, from the list by work, then at random annealing       moves that may be uphill: at random, then with
# little heat from those starts; each time with twice as many moves

_STILL = 20
"""Beginnings in a row that brought nothing better, behind which a search ends."""
_DOWNHILL, _UPHILL = 200, 500
"""Moves for each block of the first run."""
_WARM = 0.005
"""The heat of what begins at a good placement, which more would spoil."""
_MOST_ORDERS = 1 << 30


def many_orders(question: PlacementQuestion, seed: int, deadline: float) -> Ints | None:
    """The best stages along each order, and of all orders."""
    blocks, still = blocks_of(question.graph, staged=True), 0
    found, overlapped = Staged(float("inf"), [0] * len(blocks), []), question.communication == "overlapped"
    for order in orders(blocks, _MOST_ORDERS, seed):
        staged = best_stages(blocks, order, question.accelerators, question.cpus, question.memory, overlapped, deadline)
        found, still = (staged, 0) if staged.value < found.value else (found, still + 1)
        if still >= _STILL or monotonic() >= deadline:
            break
    return None if found.value == float("inf") else on_devices(question, blocks, found)


def local_search(question: PlacementQuestion, seed: int, deadline: float) -> Ints | None:
    """The least busy of all descents."""
    blocks, machine, random = blocks_of(question.graph, staged=False), machine_of(question), Random(seed)
    starts = chain(good_starts(question, blocks, machine), (at_random(question, blocks, random) for _ in count()))
    moves = _DOWNHILL * len(blocks)
    return _least_busy(
        question,
        blocks,
        deadline,
        (
            None if start is None else annealed(blocks, machine, start, moves, random.getrandbits(32), deadline, heat=0.0)
            for start in starts
        ),
    )


def annealing(question: PlacementQuestion, seed: int, deadline: float) -> Ints | None:
    """The least busy of all runs."""
    blocks, machine, random = blocks_of(question.graph, staged=False), machine_of(question), Random(seed)
    good = cycle(good_starts(question, blocks, machine))

    def runs() -> Iterator[list[int] | None]:
        for doubled in count():
            for start, heat in ((at_random(question, blocks, random), HEAT), (next(good, None), _WARM)):
                moves, number = (_UPHILL << doubled) * len(blocks), random.getrandbits(32)
                yield None if start is None else annealed(blocks, machine, start, moves, number, deadline, heat)

    return _least_busy(question, blocks, deadline, runs())


def _least_busy(question: PlacementQuestion, blocks: Blocks, deadline: float, runs: Iterator[list[int] | None]) -> Ints | None:
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
        bytes_on = np.bincount(device, blocks.size, len(question.devices))
        if (bytes_on[: question.accelerators] <= question.memory).all():
            found.append(device.tolist())
    return found


def at_random(question: PlacementQuestion, blocks: Blocks, random: Random) -> list[int] | None:
    """Blocks in random order, each on a random device that has room; None where one fits nowhere."""
    left = [question.memory] * question.accelerators + [float("inf")] * question.cpus
    device = [0] * len(blocks)
    for block in random.sample(range(len(blocks)), len(blocks)):
        size, runs = float(blocks.size[block]), np.isfinite(blocks.accelerator_time[block])
        fitting = [number for number, room in enumerate(left) if size <= room and (runs or number >= question.accelerators)]
        if not fitting:
            return None
        device[block] = random.choice(fitting)
        left[device[block]] -= size
    return device


def on_nodes(blocks: Blocks, device: list[int] | None) -> Ints | None:
    """The device of each row of the graph."""
    return None if device is None else np.array(device, np.int64)[blocks.block_of]


# The proved placement beside what lists, partitioners, searches and experts do, each in the same judge's eyes.

Search = Callable[[PlacementQuestion, int, float], Ints | None]


def list_by_work(question: PlacementQuestion, seed: int, deadline: float) -> Ints | None:
    """The most work first, to the device with least."""
    del seed, deadline
    blocks = blocks_of(question.graph, staged=False)
    return on_nodes(blocks, by_work(blocks, machine_of(question)))


def list_by_rank(question: PlacementQuestion, seed: int, deadline: float) -> Ints | None:
    """The longest way to the end first, to the device that is done first with one sample."""
    del seed, deadline
    blocks = blocks_of(question.graph, staged=True)
    return on_nodes(blocks, by_rank(blocks, machine_of(question)))


def minimum_cut(question: PlacementQuestion, seed: int, deadline: float) -> Ints | None:
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
_SEEDED_THROUGHPUT = ("minimum cut", "many orders", "local search", "annealing")


def compared_throughput(
    question: PlacementQuestion, seconds: float, seeds: int, splits: dict[str, Ints], searches: Collection[str] = tuple(SEARCHES)
) -> Iterator[Baseline[Placement]]:
    """Every rule, searches with their seeds (the middle one by value is shown), and the splits that are given."""
    blocks = blocks_of(question.graph, staged=True)
    for name, rule in RULES.items():
        began = monotonic()
        device_of = rule(question, blocks)
        yield judged(question, baseline_of(question, name, device_of), monotonic() - began)
    for name, search in ((name, SEARCHES[name]) for name in searches):
        yield middle([_searched(question, name, search, seed, seconds) for seed in range(seeds if name in _SEEDED_THROUGHPUT else 1)])
    for name, device_of in splits.items():
        yield judged(question, baseline_of(question, f"split {name}", device_of))


def _searched(question: PlacementQuestion, name: str, search: Search, seed: int, seconds: float) -> Baseline[Placement]:
    began = monotonic()
    device_of = search(question, seed, began + seconds)
    return judged(question, baseline_of(question, name, device_of), monotonic() - began)
