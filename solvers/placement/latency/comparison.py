"""What is done for one sample without a proof, each in the same judge's eyes: everything in one place, shares, lists, orders, searches.

all on cpus     no accelerator runs anything
one device      one accelerator runs everything, as one piece
greedy          one accelerator filled after the other along the data, the rest on CPUs
equal pieces    along the order of the graph one piece after another, with equal shares of the work
list by rank    the longest way to the end first: each block on CPUs, in the piece that was begun last or in a new one, wherever what is
                placed so far is through soonest (in the manner of HEFT, Topcuoglu et al. 2002, for pieces that run as a whole)
one order       the best pieces along one order
many orders     the same along some two dozen
annealing       from greedy by moves that may be uphill
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.answer import Baseline
from crossopt.solvers.placement.answer import Placement, baseline_of, judged, middle
from crossopt.solvers.placement.latency.flow import CPU, Flow, flow_of, greedy, placed, replayed
from crossopt.solvers.placement.latency.search import along, annealed, first_pieces

_MOVES, _MOVES_A_BLOCK = 30_000, 300

Rule = Callable[[PlacementQuestion, Flow, int, float], list[int] | None]
"""The slot of each block from the question, a seed and a deadline; None where there is no placement."""


def all_on_cpus(question: PlacementQuestion, flow: Flow, seed: int, deadline: float) -> list[int] | None:
    """No accelerator runs anything."""
    del question, seed, deadline
    return [CPU] * len(flow.blocks)


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


def list_by_rank(question: PlacementQuestion, flow: Flow, seed: int, deadline: float) -> list[int] | None:
    """Block after block, wherever what is placed is through soonest; None where time runs out."""
    del question, seed
    slot_of, begun, used = [CPU] * len(flow.blocks), 0, [0.0] * max(flow.accelerators, 1)
    counted = [0.0] * len(flow.cpu)
    partly = replace(flow, cpu=counted)
    for block in _by_rank(flow):
        if monotonic() >= deadline:
            return None
        for row in flow.rows[block]:
            counted[row] = flow.cpu[row]
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


def one_order(question: PlacementQuestion, flow: Flow, seed: int, deadline: float) -> list[int] | None:
    """The best pieces along the order in which the graph comes."""
    del question, seed, deadline
    return _of(along(flow, np.arange(len(flow.blocks)))) if flow.slots else None


def many_orders(question: PlacementQuestion, flow: Flow, seed: int, deadline: float) -> list[int] | None:
    """The best pieces along some orders."""
    del question, seed
    return _of(first_pieces(flow, lambda: monotonic() >= deadline)) if flow.slots else None


def annealing(question: PlacementQuestion, flow: Flow, seed: int, deadline: float) -> list[int] | None:
    """From greedy by moves that may be uphill."""
    moves = min(_MOVES, _MOVES_A_BLOCK * len(flow.blocks))
    return _of(annealed(flow, greedy(question, flow), moves, seed, lambda: monotonic() >= deadline)) if flow.slots else None


RULES: dict[str, Rule] = {
    "all on cpus": all_on_cpus,
    "one device": one_device,
    "greedy": filled,
    "equal pieces": equal_pieces,
    "list by rank": list_by_rank,
    "one order": one_order,
    "many orders": many_orders,
    "annealing": annealing,
}
SEEDED = ("annealing",)


def compared(question: PlacementQuestion, seconds: float, seeds: int, splits: dict[str, Whole]) -> Iterator[Baseline[Placement]]:
    """Every rule (of a search with seeds the run in the middle by value) and the splits that are given, each device as one piece."""
    flow = flow_of(question)
    for name, rule in RULES.items():
        yield middle([_ruled(question, flow, name, rule, seed, seconds) for seed in range(seeds if name in SEEDED else 1)])
    for name, device_of in splits.items():
        yield judged(question, baseline_of(question, name, device_of, np.zeros(len(device_of), np.int64)))


def _ruled(question: PlacementQuestion, flow: Flow, name: str, rule: Rule, seed: int, seconds: float) -> Baseline[Placement]:
    began = monotonic()
    slot_of = rule(question, flow, seed, began + seconds)
    found = baseline_of(question, name, *((None,) if slot_of is None else placed(flow, slot_of)))
    return judged(question, found, monotonic() - began)


def _by_rank(flow: Flow) -> list[int]:
    """Blocks by the longest way to the end, in the faster of both times; none before what it waits for."""
    blocks, ranks = flow.blocks, np.minimum(flow.blocks.accelerator_time, flow.blocks.cpu_time).tolist()
    for one, other in sorted(blocks.arcs, reverse=True):
        ranks[one] = max(ranks[one], min(float(blocks.accelerator_time[one]), float(blocks.cpu_time[one])) + ranks[other])
    return sorted(range(len(blocks)), key=lambda block: (-ranks[block], block))


def _of(found: tuple[float, list[int]]) -> list[int] | None:
    """The slots, where some order gives any."""
    return found[1] if np.isfinite(found[0]) else None
