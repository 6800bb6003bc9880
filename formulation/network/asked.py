"""The programs that a question about bandwidths asks: its time within its limits, at a cost, and its least cost."""

from collections.abc import Sequence
from dataclasses import replace
from math import fsum, inf

from crossopt.formulation.network.program import Multipliers, Program, bound_of, broken_rows, least_point, narrowed
from crossopt.instances.network.question import NetworkQuestion

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
    return fsum(map(_times, question.costs or (), bandwidths))


def _times(price: float, rate: float) -> float:
    return price * rate


def _over(size: float, rate: float) -> float:
    return size / rate
