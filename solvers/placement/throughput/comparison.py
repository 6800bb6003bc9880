"""The proved placement beside what lists, partitioners, searches and experts do, each in the same judge's eyes."""

from collections.abc import Callable, Collection, Iterator
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.placement.blocks import blocks_of
from crossopt.formulation.placement.throughput import machine_of
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.answer import Rival
from crossopt.solvers.placement.answer import Placement, judged, middle, rival
from crossopt.solvers.placement.search.lists import by_rank, by_work
from crossopt.solvers.placement.search.minimum_cut import equal_shares
from crossopt.solvers.placement.throughput.rivals import RULES
from crossopt.solvers.placement.throughput.searches import annealing, local_search, many_orders, on_nodes

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
) -> Iterator[Rival[Placement]]:
    """Every rule, searches with their seeds (the middle one by value is shown), and the splits that are given."""
    blocks = blocks_of(question.graph, staged=True)
    for name, rule in RULES.items():
        began = monotonic()
        device_of = rule(question, blocks)
        yield judged(question, rival(question, name, device_of), monotonic() - began)
    for name, search in ((name, SEARCHES[name]) for name in searches):
        yield middle([_searched(question, name, search, seed, seconds) for seed in range(seeds if name in SEEDED else 1)])
    for name, device_of in splits.items():
        yield judged(question, rival(question, name, device_of))


def _searched(question: PlacementQuestion, name: str, search: Search, seed: int, seconds: float) -> Rival[Placement]:
    began = monotonic()
    device_of = search(question, seed, began + seconds)
    return judged(question, rival(question, name, device_of), monotonic() - began)
