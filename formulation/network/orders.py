"""Orders in which chunks pass the dimensions, and how long a collective takes at the least.

All chunks are alike, so that a choice is how many take each order. Dimension i is busy for the sum over chunks of what they ask of it, and
before it begins no less passes than the shortest way of any chunk to it, and after it ends no less than the shortest way out:

    time  >=  max over i of  ( sum over orders p of n_p d_pi  +  least head_pi  +  least tail_pi,  over orders p with n_p > 0 )

The least of that over all n is counted where these are few. Else the sets of dimensions with which chunks begin are looked at one by one:
for weights w >= 0 the maximum is no less than the mean  sum of w_i (...) / sum of w_i,  of which the sum over chunks is at least as many
times the least of one order. All is counted in whole ns, so whatever the weights are, this is a bound.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import comb

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.crossflow.astra.collective import Chunk, Operation, Order, chunk_sizes, jobs_of
from crossopt.instances.network.collective import CollectiveQuestion

MOST_LOOKS = 1_000_000
"""Orders in numbers of chunks by order that are looked at one by one, a tenth of a second's work."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What a chunk in each order asks of each dimension, ns."""

    chunks: int
    orders: tuple[Order, ...]
    operations: tuple[tuple[Operation, ...], ...]
    """Of a chunk in each order, one after another."""
    loads: Whole
    heads: Whole
    """Before it first comes to a dimension."""
    tails: Whole
    """After it last left a dimension."""

    @property
    def few(self) -> bool:
        """Whether chunks may take orders in so few ways that all are looked at."""
        orders = len(self.orders)
        return comb(self.chunks + orders - 1, orders - 1) * orders <= MOST_LOOKS

    @property
    def least_chunk(self) -> int:
        """ns of a chunk that never waits."""
        return int(self.loads.sum(axis=1).min())


def asked_of(question: CollectiveQuestion, chunks: int) -> Asked:
    """What is asked where the data are cut into so many; what does not divide becomes a chunk more."""
    count, sizes = len(question.network.dimensions), chunk_sizes(question.size, chunks)
    orders = tuple(permutations(range(count)))
    whole = jobs_of([Chunk(sizes[0], order) for order in orders], question.collective, question.network, "two_way")
    loads, heads, tails = (np.zeros((len(orders), count), np.int64) for _ in range(3))
    for row, job in enumerate(whole):
        passed, seen = 0, set[int]()
        for operation in job:
            place = operation.phase.dimension
            heads[row, place] = heads[row, place] if place in seen else passed
            seen.add(place)
            loads[row, place] += operation.duration
            passed += operation.duration
            tails[row, place] = passed
        tails[row] = passed - tails[row]
    return Asked(len(sizes), orders, tuple(map(tuple, whole)), loads, heads, tails)


def least_time(asked: Asked, weights: Sequence[Sequence[int]]) -> int:
    """ns below which no chunks in any orders end; a ValueError where weights are none."""
    if asked.few:
        return max(_looked_at(asked), asked.least_chunk)
    sets = list(beginnings(asked))
    if len(weights) != len(sets):
        raise ValueError(f"weights of {len(sets)} sets of dimensions are needed, {len(weights)} are given")
    return max(min(_weighed(asked, begun, one) for begun, one in zip(sets, weights, strict=True)), asked.least_chunk)


def beginnings(asked: Asked) -> Iterator[tuple[int, ...]]:
    """All sets of dimensions with which chunks may begin."""
    count = asked.loads.shape[1]
    for size in range(1, count + 1):
        yield from combinations(range(count), size)


def of_beginning(asked: Asked, begun: tuple[int, ...]) -> list[int]:
    """The places of the orders that begin with one of them."""
    return [row for row, order in enumerate(asked.orders) if order[0] in begun]


def _weighed(asked: Asked, begun: tuple[int, ...], weights: Sequence[int]) -> int:
    """The bound by the mean of dimensions."""
    if len(weights) != asked.loads.shape[1] or not all(0 <= weight <= 1 << 40 for weight in weights) or not any(weights):
        raise ValueError("weights are whole numbers, one for each dimension, and not all are 0")
    rows = of_beginning(asked, begun)
    cheapest = min(sum(weight * int(load) for weight, load in zip(weights, asked.loads[row], strict=True)) for row in rows)
    around = asked.heads[rows].min(axis=0) + asked.tails[rows].min(axis=0)
    beside = sum(weight * int(one) for weight, one in zip(weights, around, strict=True))
    return -(-(asked.chunks * cheapest + beside) // sum(weights))


def _looked_at(asked: Asked) -> int:
    """The least over all numbers of chunks by order."""
    return int(times_of(asked, compositions(asked.chunks, len(asked.orders))).min())


def times_of(asked: Asked, counts: Whole) -> Whole:
    """The bound of each row of numbers of chunks by order."""
    far = int(asked.loads.sum()) * (asked.chunks + 1)
    used = counts[:, :, None] > 0
    heads = np.where(used, asked.heads, far).min(axis=1)
    tails = np.where(used, asked.tails, far).min(axis=1)
    found: Whole = (counts @ asked.loads + heads + tails).max(axis=1)
    return found


def compositions(total: int, parts: int) -> Whole:
    """All ways to write a number as a sum of so many, zeros too, a row each: bars among stars."""
    if parts == 1:
        return np.array([[total]])
    places = total + parts - 1
    bars = np.array(list(combinations(range(places), parts - 1)), np.int64).reshape(-1, parts - 1)
    ends = np.hstack([np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), places)])
    found: Whole = np.diff(ends, axis=1) - 1
    return found
