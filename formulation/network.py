"""Models of networks: bandwidths as a convex program, orders of chunks, and sends over links in whole steps; with their bounds."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, permutations
from math import comb, fsum, inf, nextafter, sqrt
from operator import mul

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.crossflow.astra.collective import Chunk, Operation, Order, chunk_sizes, jobs_of
from crossopt.formulation.model import ExactlyOne, Linear, Model, Variable
from crossopt.instances.network.collective import CollectiveQuestion
from crossopt.instances.network.question import NetworkQuestion
from crossopt.instances.network.synthesis import Link, SynthesisQuestion

# Bandwidths of dimensions as a convex program, and the bound that multipliers give.
#
#     minimise    sum over collectives c of  max over dimensions i of  m_ci / B_i    +  sum of q_i B_i
#     subject to  a_k B <= r_k,  low <= B <= high
#
# For shares y_ci >= 0 that add up to 1 over i, and prices p_k >= 0 of the rows, with M_i = sum over c of y_ci m_ci,
#
#     value  >=  sum over i of  the least over low_i <= B <= high_i of  M_i / B + (q_i + sum over k of p_k a_ki) B    -  sum over k of p_k
# r_k
#
# since a maximum is no less than any mean, and a row that is kept costs nothing (weak duality). With P_i the factor in brackets, the least
# is at B = sqrt(M_i / P_i), 2 sqrt(M_i P_i), unless that lies outside. The origin of the multipliers does not matter: whatever they
# are, this is a bound. It is lowered by more than its sums may be off.

_OFF = 2.0**-42
"""The share of all terms by which a bound is lowered: 2,000 times what roundings lose."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is minimised, and within what."""

    sent: tuple[tuple[float, ...], ...]
    """Weighted bytes of each collective on each dimension."""
    linear: tuple[float, ...]
    factors: tuple[tuple[float, ...], ...]
    """Of the rows, by dimension."""
    most: tuple[float, ...]
    """Of each row."""
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    descending: tuple[tuple[int, int], ...] = ()
    """Pairs of dimensions, the first of which has no less than the second; they are rows behind the others."""

    @property
    def rows(self) -> list[tuple[tuple[float, ...], float]]:
        """All rows, orders as the differences that are at most 0."""
        orders = [_difference(len(self.lows), more, less) for more, less in self.descending]
        return [*zip(self.factors, self.most, strict=True), *((row, 0.0) for row in orders)]


@dataclass(frozen=True, slots=True)
class Multipliers:
    """Shares of each collective's dimensions, and a price of each row."""

    shares: tuple[tuple[float, ...], ...]
    prices: tuple[float, ...]


def _difference(count: int, more: int, less: int) -> tuple[float, ...]:
    return tuple(float((index == less) - (index == more)) for index in range(count))


def bound_of(program: Program, multipliers: Multipliers) -> float:
    """The bound that multipliers give; a ValueError where they are none of this program."""
    count, rows = len(program.lows), program.rows
    numbers = [*multipliers.prices, *(share for shares in multipliers.shares for share in shares)]
    if len(multipliers.prices) != len(rows) or len(multipliers.shares) != len(program.sent):
        raise ValueError(f"{len(rows)} prices and shares of {len(program.sent)} collectives are needed")
    if any(len(shares) != count for shares in multipliers.shares) or not all(0.0 <= number < 1e200 for number in numbers):
        raise ValueError(f"multipliers are numbers of zero and more, and a collective has one for each of {count} dimensions")
    terms = [-price * most for price, (_, most) in zip(multipliers.prices, rows, strict=True)]
    wholes = [max(fsum(shares), 1.0) for shares in multipliers.shares]
    for dimension in range(count):
        moved = fsum(
            shares[dimension] / total * sent[dimension]
            for shares, total, sent in zip(multipliers.shares, wholes, program.sent, strict=True)
        )
        factors = (1.0, *(row[dimension] for row, _ in rows))
        prices = (program.linear[dimension], *multipliers.prices)
        if program.highs[dimension] == inf and sum(map(_times, factors, map(Fraction, prices))) < 0:
            return -inf  # counted exactly, as rounding may bring what is below zero to zero
        terms += _least(moved, [*map(mul, prices, factors)], program.lows[dimension], program.highs[dimension])
    return fsum(terms) - _OFF * fsum(map(abs, terms)) if all(abs(term) < inf for term in terms) else -inf


def _least(moved: float, prices: list[float], low: float, high: float) -> tuple[float, ...]:
    """The least of moved / B + price B between the ends, and what the sum of prices may be off at that place as a loss."""
    price, size = fsum(prices), fsum(map(abs, prices))
    where = high if price <= 0.0 else sqrt(moved / price)
    at = min(max(where, low), high)
    if at == where and price > 0.0:
        return 2.0 * sqrt(moved * price), -_OFF * size * at
    return (moved / at if at < inf else 0.0), (price * at if price else 0.0), (-_OFF * size * at if at < inf else 0.0)


def least_point(program: Program, options: Sequence[tuple[float, ...] | None]) -> tuple[float, ...] | None:
    """The least bandwidths that keep ends and orders, which every other such point is above; None where an end is in the way.

    Options are what a dimension of a catalogue may have."""
    point = list(program.lows)
    for more, less in reversed(program.descending):
        point[more] = max(point[more], point[less])
        allowed = options[more]
        if allowed is not None:
            point[more] = min((option for option in allowed if option >= point[more]), default=inf)
    return tuple(point) if all(bandwidth <= high for bandwidth, high in zip(point, program.highs, strict=True)) else None


def narrowed(program: Program, least: Sequence[float]) -> Program:
    """With the least point for its low ends, and the high ends that rows and orders leave; then low ends that rows ask for where all
    others are at their highest. Counted exactly and rounded away from the other end."""
    highs = list(program.highs)
    for factors, most in zip(program.factors, program.most, strict=True):
        if min(factors) < 0.0:
            continue  # a row that asks for more takes no high end down
        left = max(Fraction(most) - sum(map(_times, factors, map(Fraction, least))), Fraction(0))
        for dimension, factor in enumerate(factors):
            if factor > 0.0:
                highs[dimension] = min(highs[dimension], nextafter(float(Fraction(least[dimension]) + left / Fraction(factor)), inf))
    for more, less in program.descending:
        highs[less] = min(highs[less], highs[more])
    highs = [*map(max, least, highs)]
    return replace(program, lows=tuple(_raised(program, least, highs)), highs=tuple(highs))


def _raised(program: Program, least: Sequence[float], highs: Sequence[float]) -> list[float]:
    """Low ends with what rows that ask for more leave to each dimension where all others are at their highest."""
    lows = list(least)
    for factors, most in zip(program.factors, program.most, strict=True):
        if max(factors) > 0.0 or any(factor and high == inf for factor, high in zip(factors, highs, strict=True)):
            continue
        spare = Fraction(most) - sum(_times(factor, Fraction(high)) for factor, high in zip(factors, highs, strict=True) if factor)
        for dimension, factor in enumerate(factors):
            if factor < 0.0 and spare >= 0:
                exact = Fraction(highs[dimension]) + spare / Fraction(factor)
                low = float(exact)
                lows[dimension] = max(lows[dimension], low if Fraction(low) <= exact else nextafter(low, -inf))
    return lows


def broken_rows(program: Program, point: Sequence[float]) -> list[int]:
    """The places of the rows that a point breaks, counted exactly."""
    exact = [Fraction(bandwidth) for bandwidth in point]
    rows = enumerate(program.rows)
    return [row_index for row_index, (row, most) in rows if sum(map(_times, row, exact)) > Fraction(most)]


def _times(factor: float, amount: Fraction) -> Fraction:
    return Fraction(factor) * amount


# The programs that a question about bandwidths asks: its time within its limits, at a cost, and its least cost.

Options = tuple[tuple[float, ...] | None, ...]


def program_of(question: NetworkQuestion) -> Program:
    """The weighted time of all collectives."""
    return Program(
        tuple(tuple(sent.weight * size for size in sent.bytes) for sent in question.sent),
        (0.0,) * len(question.lows),
        tuple(row.factors for row in question.rows),
        tuple(row.most for row in question.rows),
        question.lows,
        question.highs,
        question.descending,
    )


def options_of(question: NetworkQuestion) -> Options:
    """What each dimension of a catalogue may have; None of one that may have anything."""
    return tuple(dimension.options for dimension in question.file.dimensions)


def cheapest(question: NetworkQuestion) -> Program:
    """The cost alone, between the ends that orders leave."""
    program = replace(program_of(question), sent=(), linear=question.costs or ())
    return part_of(program, options_of(question)) or program


def at_cost(question: NetworkQuestion, cost: float) -> Program:
    """The time of networks that cost no more, between ends that hold at every cost; the row of the cost is the last but for orders."""
    program, costs = cheapest(question), question.costs or ()
    factors, most = (*program.factors, costs), (*program.most, cost)
    return replace(program, sent=program_of(question).sent, linear=(0.0,) * len(costs), factors=factors, most=most)


def part_of(program: Program, options: Options) -> Program | None:
    """The program where dimensions have these options, between its least point and what rows leave; None where nothing keeps the rows."""
    ends = [(low, high) if few is None else (few[0], few[-1]) for low, high, few in zip(program.lows, program.highs, options, strict=True)]
    own = replace(program, lows=tuple(low for low, _ in ends), highs=tuple(high for _, high in ends))
    least = least_point(own, options)
    if least is None:
        return None
    broken = [row for row in broken_rows(own, least) if min(own.rows[row][0]) >= 0.0]  # more bandwidth mends the others
    return None if broken else narrowed(own, least)


def cut(options: Options, dimension: int, last: int) -> tuple[Options, Options]:
    """Options up to one of a dimension, and those above it; a ValueError where one of the parts is empty."""
    own = options[dimension] if 0 <= dimension < len(options) else None
    if own is None or not 0 <= last < len(own) - 1:
        raise ValueError("a part of a catalogue is empty")
    parts = own[: last + 1], own[last + 1 :]
    first, second = ((*options[:dimension], part, *options[dimension + 1 :]) for part in parts)
    return first, second


def weighed_bound(question: NetworkQuestion, least: Multipliers, tangents: Sequence[Multipliers]) -> tuple[float, float]:
    """A bound of time times cost, and the cost at which it is least.

    Multipliers of a program at a cost bound the time at any other by a line, b - p C with p the price of the cost, as a cost enters the
    bound nowhere else. So time times cost is at least the least of  C * max(compute, compute + b - p C over all lines)  over C from the
    least cost on. Between two corners of the maximum a piece of that is concave, so that corners and the least cost are all to see. They
    are counted exactly: where a line is steep, rounding would move it by more than all that is bounded.
    """
    cost_row, begin = len(question.rows), max(bound_of(cheapest(question), least), 0.0)
    free, compute = at_cost(question, 0.0), Fraction(question.compute)
    heights = [(bound_of(free, multipliers), multipliers) for multipliers in tangents]  # a ValueError where prices are missing
    own = [(Fraction(found.prices[cost_row]), compute + Fraction(height)) for height, found in heights if height > -inf]
    lines = [(Fraction(0), compute), *own]
    at, found = Fraction(begin), list[tuple[Fraction, Fraction]]()
    price, height = max(lines, key=lambda line: (line[1] - line[0] * at, -line[0]))
    while True:
        found.append((at * (height - price * at), at))
        flatter = [((height - low) / (price - flat), flat, low) for flat, low in lines if flat < price]
        if not flatter:
            value, at = min(found)
            return float(value) * (1.0 - 2.0**-36), float(at)
        at, price, height = min(flatter)


def total_time(question: NetworkQuestion, bandwidths: Sequence[float]) -> float:
    """Weighted seconds of work and collectives."""
    return question.compute + fsum(sent.weight * max(map(_over, sent.bytes, bandwidths)) for sent in question.sent)


def cost_of(question: NetworkQuestion, bandwidths: Sequence[float]) -> float:
    """USD of a network; nothing where dimensions have no prices."""
    return fsum(map(_rounded_product, question.costs or (), bandwidths))


def _rounded_product(price: float, rate: float) -> float:
    return price * rate


def _over(size: float, rate: float) -> float:
    return size / rate


# Orders in which chunks pass the dimensions, and how long a collective takes at the least.
#
# All chunks are alike, so that a choice is how many take each order. Dimension i is busy for the sum over chunks of what they ask of it,
# and before it begins no less passes than the shortest way of any chunk to it, and after it ends no less than the shortest way out:
#
#     time  >=  max over i of  ( sum over orders p of n_p d_pi  +  least head_pi  +  least tail_pi,  over orders p with n_p > 0 )
#
# The least of that over all n is counted where these are few. Else the sets of dimensions with which chunks begin are looked at one by one:
# for weights w >= 0 the maximum is no less than the mean  sum of w_i (...) / sum of w_i,  of which the sum over chunks is at least as many
# times the least of one order. All is counted in whole ns, so whatever the weights are, this is a bound.

MOST_LOOKS = 1_000_000
"""Most numbers of chunks by order that are enumerated, a tenth of a second's work."""


@dataclass(frozen=True, slots=True, eq=False)
class ChunkLoads:
    """What a chunk in each order asks of each dimension, ns."""

    chunks: int
    orders: tuple[Order, ...]
    operations: tuple[tuple[Operation, ...], ...]
    """Of a chunk in each order, one after another."""
    loads: Ints
    heads: Ints
    """Before it first comes to a dimension."""
    tails: Ints
    """After it last left a dimension."""

    @property
    def few(self) -> bool:
        """Whether chunks have so few possible orders that all are enumerated."""
        orders = len(self.orders)
        return comb(self.chunks + orders - 1, orders - 1) * orders <= MOST_LOOKS

    @property
    def least_chunk(self) -> int:
        """ns of a chunk that never waits."""
        return int(self.loads.sum(axis=1).min())


def chunk_loads(question: CollectiveQuestion, chunks: int) -> ChunkLoads:
    """What is asked where the data are cut into so many; what does not divide becomes a chunk more."""
    count, sizes = len(question.network.dimensions), chunk_sizes(question.size, chunks)
    orders = tuple(permutations(range(count)))
    jobs = jobs_of([Chunk(sizes[0], order) for order in orders], question.collective, question.network, "two_way")
    loads, heads, tails = (np.zeros((len(orders), count), np.int64) for _ in range(3))
    for row, job in enumerate(jobs):
        passed, seen = 0, set[int]()
        for operation in job:
            dimension = operation.phase.dimension
            heads[row, dimension] = heads[row, dimension] if dimension in seen else passed
            seen.add(dimension)
            loads[row, dimension] += operation.duration
            passed += operation.duration
            tails[row, dimension] = passed
        tails[row] = passed - tails[row]
    return ChunkLoads(len(sizes), orders, tuple(map(tuple, jobs)), loads, heads, tails)


def least_time(question: ChunkLoads, weights: Sequence[Sequence[int]]) -> int:
    """ns below which no chunks in any orders end; a ValueError where weights are none."""
    if question.few:
        return max(int(times_of(question, compositions(question.chunks, len(question.orders))).min()), question.least_chunk)
    sets = list(beginnings(question))
    if len(weights) != len(sets):
        raise ValueError(f"weights of {len(sets)} sets of dimensions are needed, {len(weights)} are given")
    return max(min(_weighed(question, begun, row) for begun, row in zip(sets, weights, strict=True)), question.least_chunk)


def beginnings(question: ChunkLoads) -> Iterator[tuple[int, ...]]:
    """All sets of dimensions with which chunks may begin."""
    count = question.loads.shape[1]
    for size in range(1, count + 1):
        yield from combinations(range(count), size)


def of_beginning(question: ChunkLoads, begun: tuple[int, ...]) -> list[int]:
    """The places of the orders that begin with one of them."""
    return [row for row, order in enumerate(question.orders) if order[0] in begun]


def _weighed(question: ChunkLoads, begun: tuple[int, ...], weights: Sequence[int]) -> int:
    """The bound by the mean of dimensions."""
    if len(weights) != question.loads.shape[1] or not all(0 <= weight <= 1 << 40 for weight in weights) or not any(weights):
        raise ValueError("weights are whole numbers, one for each dimension, and not all are 0")
    rows = of_beginning(question, begun)
    cheapest = min(sum(weight * int(load) for weight, load in zip(weights, question.loads[row], strict=True)) for row in rows)
    around = question.heads[rows].min(axis=0) + question.tails[rows].min(axis=0)
    beside = sum(weight * int(time) for weight, time in zip(weights, around, strict=True))
    return -(-(question.chunks * cheapest + beside) // sum(weights))


def times_of(question: ChunkLoads, counts: Ints) -> Ints:
    """The bound of each row of numbers of chunks by order."""
    far = int(question.loads.sum()) * (question.chunks + 1)
    used = counts[:, :, None] > 0
    heads = np.where(used, question.heads, far).min(axis=1)
    tails = np.where(used, question.tails, far).min(axis=1)
    found: Ints = (counts @ question.loads + heads + tails).max(axis=1)
    return found


def compositions(total: int, parts: int) -> Ints:
    """All ways to write a number as a sum of so many, zeros too, a row each: bars among stars."""
    if parts == 1:
        return np.array([[total]])
    places = total + parts - 1
    bars = np.array(list(combinations(range(places), parts - 1)), np.int64).reshape(-1, parts - 1)
    ends = np.hstack([np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), places)])
    found: Ints = np.diff(ends, axis=1) - 1
    return found


# Sends over links in whole steps: as a model with time laid out, and the bound of cuts.
#
#     x_clt = 1         chunk c sets out over link l at step t, and arrives at t + w_l
#     sum over links into v, t of x_clt = 1                      each NPU but its origin receives each chunk once
#     x_clt <= sum of the x_ck u that arrive at its sender by t  no NPU sends a chunk before it has it
#     sum over c, t - w_l < u <= t of x_clu <= 1                 a link holds one chunk at a time
#
# (Cai et al. 2021, "Synthesizing optimal collective algorithms", PPoPP; time laid out as in TACOS, Won et al. 2024, arXiv:2304.05301.)
#
# The bound: let D_c be the least steps in which chunk c can come to any NPU of a set S that needs it. The chunks with D_c >= d enter S over
# the links of the cut, link l not before d - w_l and each for w_l steps, so that until T no more of them are in than
#
#     sum over l of floor((T - max(d - w_l, 0)) / w_l)
#
# Call that B(T). A chunk that enters only once, over link l, has to go on to the farthest NPU of S, e_l steps away, so that no more than
# A(T) = sum over l of floor((T - e_l - max(d - w_l, 0)) / w_l) chunks enter once; others enter twice and more. So n chunks need
#
#     2 n - min(A(T), n)  <=  B(T)
#
# The least T of that, over all S and d, is a bound; there are 2^9 sets at the most.

Send = tuple[int, int, int]
"""A chunk, a link by its place, and the step at which it sets out."""


def least_steps(question: SynthesisQuestion) -> int:
    """What the cut around some set of NPUs asks at the least."""
    return max(_cut_steps(question, inside) for inside in _sets(question.npus))


def _sets(npus: int) -> Iterator[frozenset[int]]:
    for number in range(1, 2**npus):
        yield frozenset(npu for npu in range(npus) if number >> npu & 1)


def _cut_steps(question: SynthesisQuestion, inside: frozenset[int]) -> int:
    """Steps until everybody inside has all chunks that begin outside."""
    cut = [link for link in question.links if link.receiver in inside and link.sender not in inside]
    further = [max(question.distances[link.receiver][npu] for npu in inside) for link in cut]
    outside = [origin for origin in question.origins if origin not in inside]
    waiting = Counter(min(question.distances[origin][npu] for npu in inside) for origin in outside)
    least, later = 0, 0
    for first in sorted(waiting, reverse=True):
        later += waiting[first]
        while not _enter(cut, further, later, first, least):
            least += 1
    return least


def _enter(cut: list[Link], further: list[int], chunks: int, first: int, step: int) -> bool:
    """Whether so many chunks, none of which comes to the cut's end before the given step, may have come over it and gone further."""
    starts = [max(first - link.steps, 0) for link in cut]
    all_in = sum(max(step - start, 0) // link.steps for link, start in zip(cut, starts, strict=True))
    in_once = sum(max(step - start - more, 0) // link.steps for link, start, more in zip(cut, starts, further, strict=True))
    return 2 * chunks - min(in_once, chunks) <= all_in


def sends_model(question: SynthesisQuestion, most: int) -> tuple[Model, dict[Send, Variable]]:
    """The model whose solutions are all that is done within so many steps, and the sends that it may choose."""
    sends = dict(_sends(question, most))
    into, over = defaultdict[tuple[int, int], list[Send]](list), defaultdict[int, list[Send]](list)
    for send in sends:
        chunk, link, _ = send
        into[chunk, question.links[link].receiver].append(send)
        over[link].append(send)
    once = (
        ExactlyOne(f"chunk {chunk} comes to {npu}", tuple(sends[send] for send in into[chunk, npu]))
        for chunk, origin in enumerate(question.origins)
        for npu in range(question.npus)
        if npu != origin
    )
    had = (
        Linear(f"{sends[send].name} has it", _has(question, sends, into, send), 0)
        for send in sends
        if question.links[send[1]].sender != question.origins[send[0]]
    )
    alone = (
        Linear(f"link {link} at {step}", tuple((1, sends[send]) for send in occupying), None, 1)
        for link in over
        for step in range(most)
        if len(occupying := [send for send in over[link] if step - question.links[link].steps < send[2] <= step]) > 1
    )
    return Model(tuple(sends.values()), (*once, *had, *alone)), sends


def _sends(question: SynthesisQuestion, most: int) -> Iterator[tuple[Send, Variable]]:
    """Every send that can begin so soon and end in time."""
    for chunk, origin in enumerate(question.origins):
        for number, link in enumerate(question.links):
            if link.receiver != origin:
                for step in range(question.distances[origin][link.sender], most - link.steps + 1):
                    yield (chunk, number, step), Variable(f"chunk {chunk} over {number} at {step}")


def _has(
    question: SynthesisQuestion, sends: dict[Send, Variable], into: dict[tuple[int, int], list[Send]], send: Send
) -> tuple[tuple[int, Variable], ...]:
    """What came to the sender in time, less the send itself."""
    chunk, link, step = send
    came = into[chunk, question.links[link].sender]
    return (*((1, sends[earlier]) for earlier in came if earlier[2] + question.links[earlier[1]].steps <= step), (-1, sends[send]))
