"""Bandwidths of dimensions as a convex program, and the bound that multipliers give.

    minimise    sum over collectives c of  max over dimensions i of  m_ci / B_i    +  sum of q_i B_i
    subject to  a_k B <= r_k,  low <= B <= high

For shares y_ci >= 0 that add up to 1 over i, and prices p_k >= 0 of the rows, with M_i = sum over c of y_ci m_ci,

    value  >=  sum over i of  the least over low_i <= B <= high_i of  M_i / B + (q_i + sum over k of p_k a_ki) B    -  sum over k of p_k r_k

since a maximum is no less than any mean, and a row that is kept costs nothing (weak duality). With P_i the factor in brackets, the least
is at B = sqrt(M_i / P_i), 2 sqrt(M_i P_i), unless that lies outside. Whoever made the multipliers need not be believed: whatever they are,
this is a bound. It is lowered by more than its sums may be off.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import fsum, inf, nextafter, sqrt
from operator import mul

from crossopt.instances.network.question import NetworkQuestion

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
    return tuple(float((place == less) - (place == more)) for place in range(count))


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
    for place in range(count):
        moved = fsum(
            shares[place] / whole * sent[place] for shares, whole, sent in zip(multipliers.shares, wholes, program.sent, strict=True)
        )
        factors = (1.0, *(row[place] for row, _ in rows))
        prices = (program.linear[place], *multipliers.prices)
        if program.highs[place] == inf and sum(map(_times, factors, map(Fraction, prices))) < 0:
            return -inf  # counted exactly, as rounding may bring what is below zero to zero
        terms += _least(moved, [*map(mul, prices, factors)], program.lows[place], program.highs[place])
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
            point[more] = min((one for one in allowed if one >= point[more]), default=inf)
    return tuple(point) if all(one <= high for one, high in zip(point, program.highs, strict=True)) else None


def narrowed(program: Program, least: Sequence[float]) -> Program:
    """With the least point for its low ends, and the high ends that rows and orders leave; counted exactly and rounded up."""
    highs = list(program.highs)
    for factors, most in zip(program.factors, program.most, strict=True):
        if min(factors) < 0.0:
            continue  # a row that asks for more takes no high end down
        left = max(Fraction(most) - sum(map(_times, factors, map(Fraction, least))), Fraction(0))
        for place, factor in enumerate(factors):
            if factor > 0.0:
                highs[place] = min(highs[place], nextafter(float(Fraction(least[place]) + left / Fraction(factor)), inf))
    for more, less in program.descending:
        highs[less] = min(highs[less], highs[more])
    return replace(program, lows=tuple(least), highs=tuple(map(max, least, highs)))


def broken_rows(program: Program, point: Sequence[float]) -> list[int]:
    """The places of the rows that a point breaks, counted exactly."""
    exact = [Fraction(one) for one in point]
    rows = enumerate(program.rows)
    return [place for place, (row, most) in rows if sum(map(_times, row, exact)) > Fraction(most)]


def _times(factor: float, amount: Fraction) -> Fraction:
    return Fraction(factor) * amount


# The programs that a question about bandwidths asks: its time within its limits, at a cost, and its least cost.

Branches = Sequence[tuple[int, int] | None]
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
    ends = [(low, high) if one is None else (one[0], one[-1]) for low, high, one in zip(program.lows, program.highs, options, strict=True)]
    own = replace(program, lows=tuple(low for low, _ in ends), highs=tuple(high for _, high in ends))
    least = least_point(own, options)
    if least is None:
        return None
    broken = [place for place in broken_rows(own, least) if min(own.rows[place][0]) >= 0.0]  # more bandwidth mends the others
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
    least cost on. Between two corners of the maximum a piece of that is concave, so that corners and the least cost are all to see.
    """
    place, begin = len(question.rows), max(bound_of(cheapest(question), least), 0.0)
    free = at_cost(question, 0.0)
    lines = [(bound_of(free, one), one.prices[place]) for one in tangents]
    lines = [(question.compute, 0.0), *((question.compute + height, price) for height, price in lines if height > -inf)]
    corners = [begin]
    for one in range(len(lines)):
        for other in range(one):
            (high, steep), (low, flat) = lines[one], lines[other]
            if steep != flat and (where := (high - low) / (steep - flat)) > begin:
                corners.append(where)
    found = [(at * max(height - price * at for height, price in lines), at) for at in corners]
    value, at = min(found)
    return value * (1.0 - 2.0**-36), at


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
