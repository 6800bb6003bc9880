"""The quickest stages, exactly: a dynamic program over cuts answers whether stages within a time exist, and the time is searched.

With a time limit T the last stage is laid first. What counts of the stages laid is where they begin, their replicas s and their devices:

    least[cut, s]       fewest devices of stages from the cut to the end with s replicas in all
    least[I', s + d]  = min over stages I' to I with t, d  of  least[I, s] + d t,    where s + d <= d * reach
    reach               the most microbatches under way with which some choice of configurations fits the memory and takes at most T

A state that another one beats in replicas and devices is dropped, and one from which even stages with one microbatch under way need too
many devices to the front. The optimum is the time of some point: where T fails, the next time of any point is a bound.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.solvers.stages.piper.cuts.tables import Tables
from crossopt.solvers.stages.piper.plan import Stage

_NONE = 1 << 30
_SURE = 1.0 - 1e-11
"""Sums of times are lowered by more than rounding can have raised them (10,000 of them) before anything is called impossible."""


@dataclass(frozen=True, slots=True)
class Span:
    """One stage: the cuts around it, its degrees and the microbatches under way."""

    lower: int
    upper: int
    data: int
    tensor: int
    under_way: int


@dataclass(frozen=True, slots=True, eq=False)
class _Moves:
    """Stages that may be of use within a limit, by the cut at their end, the last cut first."""

    lower: Whole
    upper: Whole
    data: Whole
    cost: Whole
    reach: Whole
    before: Whole
    """The fewest devices from the front to each cut."""


def within(tables: Tables, limit: float, clock: Callable[[], None]) -> tuple[Span, ...] | None:
    """Stages, first to last, that take no longer than the limit on the fewest devices; None where there are none."""
    moves = _moves(tables, limit)
    if moves is None:
        return None
    least = np.full((len(tables.cuts), tables.replicas + 1), _NONE, np.int64)
    least[-1, 0] = 0
    current = -1
    for number, upper in enumerate(moves.upper.tolist()):
        if upper != current:
            clock()
            current, row = upper, least[upper]
            _drop_beaten(row, tables.devices - moves.before[upper])
            ends = np.flatnonzero(row < _NONE)
            first, last = (int(ends[0]), int(ends[-1])) if len(ends) else (1, 0)
        data = int(moves.data[number])
        stop = min(last, data * (int(moves.reach[number]) - 1), tables.replicas - data) + 1
        if first < stop:
            target = least[moves.lower[number], first + data : stop + data]
            np.minimum(target, row[first:stop] + moves.cost[number], out=target)
    _drop_beaten(least[0], float(tables.devices))
    return None if least[0].min() >= _NONE else _traced(tables, moves, least)


def _drop_beaten(row: Whole, most: float) -> None:
    """Keep what needs fewer devices than anything with fewer replicas, and no more than there are."""
    better = np.minimum.accumulate(row)[:-1]
    row[1:][row[1:] >= better] = _NONE
    row[row > most] = _NONE


def _moves(tables: Tables, limit: float) -> _Moves | None:
    """Stages that fit between the fewest devices before and after them; None where the devices do not suffice."""
    reach = tables.reach(limit)
    cost = tables.tensor[:, None] * tables.degrees
    usable = (reach > 0) & (cost <= tables.devices)
    cheapest = np.where(usable, cost, _NONE).min(axis=1, initial=_NONE)
    before, after = _fewest(tables, cheapest)
    if before[-1] > tables.devices:
        return None
    usable &= before[tables.lower][:, None] + cost + after[tables.upper][:, None] <= tables.devices
    same = np.ones(len(tables.lower), bool)
    for back in range(1, len(np.unique(tables.tensor))):  # fewer devices a replica do as well where they reach as far
        same = same[1:] & (tables.lower[back:] == tables.lower[:-back]) & (tables.upper[back:] == tables.upper[:-back])
        usable[back:] &= ~(same[:, None] & (reach[:-back] >= reach[back:]))
    stage, degree = np.nonzero(usable)
    order = np.argsort(-tables.upper[stage], kind="stable")
    stage, degree = stage[order], degree[order]
    return _Moves(tables.lower[stage], tables.upper[stage], tables.degrees[degree], cost[stage, degree], reach[stage, degree], before)


def _fewest(tables: Tables, cheapest: Whole) -> tuple[Whole, Whole]:
    """The fewest devices from the front to each cut, and from each cut to the end, with one microbatch under way everywhere."""
    count = len(tables.cuts)
    before, after = np.full(count, _NONE), np.full(count, _NONE)
    before[0] = after[-1] = 0
    by_upper = np.argsort(tables.upper, kind="stable")
    ends = np.searchsorted(tables.upper[by_upper], np.arange(count + 1))
    for cut in range(1, count):
        rows = by_upper[ends[cut] : ends[cut + 1]]
        before[cut] = (before[tables.lower[rows]] + cheapest[rows]).min(initial=_NONE)
    begins = np.searchsorted(tables.lower, np.arange(count + 1))
    for cut in range(count - 2, -1, -1):
        begin, stop = begins[cut], begins[cut + 1]
        after[cut] = (after[tables.upper[begin:stop]] + cheapest[begin:stop]).min(initial=_NONE)
    return before, after


def _traced(tables: Tables, moves: _Moves, least: Whole) -> tuple[Span, ...]:
    """The stages behind the fewest devices, from the front on."""
    cut, spans = 0, list[Span]()
    replicas = int(least[0].argmin())
    while cut != len(tables.cuts) - 1:
        rows = np.flatnonzero(moves.lower == cut)
        left = replicas - moves.data[rows]
        fits = (left >= 0) & (left <= moves.data[rows] * (moves.reach[rows] - 1))
        rows, left = rows[fits], left[fits]
        chosen = int(np.flatnonzero(least[moves.upper[rows], left] + moves.cost[rows] == least[cut, replicas])[0])
        row, data = int(rows[chosen]), int(moves.data[rows[chosen]])
        spans.append(Span(cut, int(moves.upper[row]), data, int(moves.cost[row]) // data, -(-replicas // data)))
        cut, replicas = int(moves.upper[row]), int(left[chosen])
    return tuple(spans)


@dataclass(slots=True)
class Known:
    """What is known so far; it stays right when a search is stopped."""

    stages: tuple[Stage, ...] | None = None
    value: float = float("inf")
    bound: float = 0.0
    """No stages are quicker; infinite where there are none."""


Price = Callable[[tuple[Span, ...]], tuple[float, tuple[Stage, ...] | None]]
"""How long stages truly take, and the stages layer by layer."""


def search(known: Known, tables: Tables, gap: float, price: Price, clock: Callable[[], None]) -> None:
    """Find the quickest stages between the cuts, or as near to the bound as the gap says, from what is known.

    It ends early where bundled fronts promise the tables more than can be had.
    """
    bound = max(known.bound, tables.following(-1.0))
    while known.value == float("inf") or bound < known.value * min(1.0 - gap, _SURE):
        limit = _middle(bound, known.value)
        found = within(tables, limit, clock)
        if found is None and limit == float("inf"):
            known.bound = float("inf")
            return
        if found is None:
            bound = max(bound, tables.following(limit))
            known.bound = bound * _SURE
            continue
        value, stages = price(found)
        if value >= known.value:
            return
        known.value, known.stages = value, stages
    known.bound = max(known.bound, min(bound, known.value) * _SURE)


def seconds_of(tables: Tables, spans: tuple[Span, ...]) -> float:
    """The time of stages by the tables alone."""
    times = []
    for span in spans:
        row = int(((tables.lower == span.lower) & (tables.upper == span.upper) & (tables.tensor == span.tensor)).argmax())
        stop = int(tables.start[row + 1]) if row + 1 < len(tables.start) else len(tables.work)
        points = slice(int(tables.start[row]), stop)
        times.append(float(tables.seconds(span.data)[points][tables.under_way[points] >= span.under_way].min()))
    return max(times)


def _middle(bound: float, value: float) -> float:
    """Between bound and value, nearer to the bound while they are far apart."""
    if value > 2.0 * bound > 0.0 and value != float("inf"):
        return float((bound * value) ** 0.5)
    return (bound + value) / 2.0
