"""The best rates of copies of workers on any number of devices, by dynamic programs in whole numbers.

    f(g) = max( f(g - 1) , max over kinds i of f(g - g_i) + r_i )          copies of one part on at most g devices
    R(g) = max over x of min( f_P(x) , f_D(g - x) )                        prefill and decode workers together on g

Both f rise with their devices, so that the best x is where they cross. Without a dynamic program, with the greatest rates for a device
d_P and d_D:

    R <= f_P(x) <= x d_P   and   R <= f_D(g - x) <= (g - x) d_D   so that   R <= g d_P d_D / (d_P + d_D)

Where queues lower the rate of few copies more than that of many, f is the best rate of copies of one kind, of which r_i(n) is a function
of their number n with r_i(n) <= n r_i: the bound by d holds for these, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Ints

Kinds = Sequence[tuple[int, int]]
"""Devices and rate of each kind of worker."""


def rates_on(kinds: Kinds, devices: int) -> tuple[list[int], list[int]]:
    """Best rates on 0 to `devices` devices, and the kind of a last worker of each; -1 where a device is left idle."""
    of_size: dict[int, int] = {}
    for index, (size, rate) in enumerate(kinds):
        if size not in of_size or rate > kinds[of_size[size]][1]:
            of_size[size] = index
    steps = [(size, kinds[index][1], index) for size, index in sorted(of_size.items())]
    best, last = [0] * (devices + 1), [-1] * (devices + 1)
    for count in range(1, devices + 1):
        top, kind = best[count - 1], -1
        for size, rate, index in steps:
            if size > count:
                break
            reached = best[count - size] + rate
            if reached > top:
                top, kind = reached, index
        best[count], last[count] = top, kind
    return best, last


def counts_on(kinds: Kinds, last: Sequence[int], devices: int) -> dict[int, int]:
    """How many workers of each kind reach the best rate."""
    found: dict[int, int] = {}
    while devices > 0:
        kind = last[devices]
        if kind < 0:
            devices -= 1
            continue
        found[kind] = found.get(kind, 0) + 1
        devices -= kinds[kind][0]
    return found


def crossing(first: Sequence[int], second: Sequence[int], devices: int) -> tuple[int, int]:
    """The best rate of two parts on so many devices together, and the devices of the first part."""
    low, high = 0, devices
    while low < high:  # the least x with f_P(x) >= f_D(devices - x)
        middle = (low + high) // 2
        if first[middle] >= second[devices - middle]:
            high = middle
        else:
            low = middle + 1
    reached = [(min(first[x], second[devices - x]), x) for x in (low - 1, low) if x >= 0]
    return max(reached, key=lambda pair: (pair[0], -pair[1]))


def copies_on(values: Mapping[int, Sequence[tuple[int, int]]], devices: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Best rates on 0 to `devices` devices of copies of one kind alone, and the kind and number of copies of each.

    `values` holds for each size of copies the best rate of 1, 2, ... copies and the kind that has it.
    """
    best, picks = [0] * (devices + 1), [(-1, 0)] * (devices + 1)
    for size, own in sorted(values.items()):
        for count, (rate, index) in enumerate(own, 1):
            if count * size <= devices and rate > best[count * size]:
                best[count * size], picks[count * size] = rate, (index, count)
    for count in range(1, devices + 1):
        if best[count] <= best[count - 1]:
            best[count], picks[count] = best[count - 1], picks[count - 1]
    return best, picks


# Several kinds of devices, each with its own best rates: all ways to divide the devices of all kinds but the last, which is looked up.


@dataclass(frozen=True, slots=True)
class Part:
    """Best rates on 0, 1, ... devices of one kind, of each part that serves, and units of cost of a device."""

    rates: tuple[Sequence[int], ...]
    cost: int
    most: int


@dataclass(frozen=True, slots=True)
class Division:
    """Devices of each kind for each part, with the rate that all parts reach."""

    rate: int
    cost: int
    devices: tuple[tuple[int, ...], ...]
    """By kind, then by part."""


def divided(parts: Sequence[Part], total: int, needed: int | None) -> Division | None:
    """The greatest rate on so many devices in all, or where a rate is needed the least cost; None where it is not reached.

    Of equal ones that with the greater rate or the lower cost. A ValueError where there are too many ways.
    """
    ways = _ways([_own_ways(part, total) for part in parts[:-1]], total, len(parts[0].rates))
    last, roles = parts[-1], len(parts[0].rates)
    if needed is not None:
        tables = [np.array(list(rates), np.int64) for rates in last.rates]
        counts = [np.searchsorted(table, needed - reached, side="left") for table, reached in zip(tables, ways.rates, strict=True)]
        used = sum(counts, start=np.zeros(len(ways.used), np.int64))
        fits = (used <= last.most) & (ways.used + used <= total)
        for count, table in zip(counts, tables, strict=True):
            fits &= count < len(table)
    else:
        counts = _best_rest(last, ways, total)
        tables = [np.array(list(rates), np.int64) for rates in last.rates]
        used, fits = sum(counts, start=np.zeros(len(ways.used), np.int64)), np.ones(len(ways.used), bool)
    if not fits.any():
        return None
    reached = [own + table[np.minimum(count, len(table) - 1)] for own, table, count in zip(ways.rates, tables, counts, strict=True)]
    rate, cost = np.minimum.reduce(reached), ways.cost + used * last.cost
    keys = (-rate, cost) if needed is not None else (cost, -rate)
    order = np.lexsort((ways.used + used, *keys, ~fits))
    best = int(order[0])
    if not rate[best]:
        return None
    own = tuple(tuple(int(column[best]) for column in kind) for kind in ways.counts)
    return Division(int(rate[best]), int(cost[best]), (*own, tuple(int(counts[part][best]) for part in range(roles))))


@dataclass(frozen=True, slots=True)
class _Ways:
    """Ways to divide some kinds of devices, a column each."""

    rates: list[Ints]
    used: Ints
    cost: Ints
    counts: tuple[tuple[Ints, ...], ...]


_MOST_WAYS: Final = 8_000_000


def _own_ways(part: Part, total: int) -> _Ways:
    """Devices of one kind for each part, only those numbers with which a rate rises."""
    steps = [np.flatnonzero(np.diff(np.array(list(rates), np.int64), prepend=-1)) for rates in part.rates]
    if prod(len(own) for own in steps) > _MOST_WAYS:
        raise ValueError(f"there are more than {_MOST_WAYS:,} ways to divide the devices (ask for fewer devices or kinds)")
    counts = [column.ravel() for column in np.meshgrid(*steps, indexing="ij")]
    used = sum(counts, start=np.zeros(len(counts[0]), np.int64))
    within = used <= min(part.most, total)
    counts = [column[within] for column in counts]
    rates = [np.array(list(own), np.int64)[column] for own, column in zip(part.rates, counts, strict=True)]
    return _Ways(rates, used[within], used[within] * part.cost, (tuple(counts),))


def _ways(kinds: Sequence[_Ways], total: int, parts: int) -> _Ways:
    """All of them together."""
    zero = np.zeros(1, np.int64)
    found = _Ways([zero] * parts, zero, zero, ())
    for own in kinds:
        first, second = len(found.used), len(own.used)
        if first * second > _MOST_WAYS:
            raise ValueError(f"there are more than {_MOST_WAYS:,} ways to divide the devices (ask for fewer devices or kinds)")
        old, new = np.repeat(np.arange(first), second), np.tile(np.arange(second), first)
        within = found.used[old] + own.used[new] <= total
        old, new = old[within], new[within]
        found = _Ways(
            [one[old] + other[new] for one, other in zip(found.rates, own.rates, strict=True)],
            found.used[old] + own.used[new],
            found.cost[old] + own.cost[new],
            (*(tuple(column[old] for column in kind) for kind in found.counts), tuple(column[new] for column in own.counts[0])),
        )
    return found


def _best_rest(last: Part, ways: _Ways, total: int) -> list[Ints]:
    """Devices of the last kind for each part, for the greatest rate beside what the others reach."""
    left = np.minimum(last.most, total - ways.used)
    tables = [np.array(list(rates), np.int64) for rates in last.rates]
    if len(tables) == 1:
        return [np.minimum(left, len(tables[0]) - 1)]
    low, high = np.zeros(len(left), np.int64), left.copy()
    while (low < high).any():  # the least x with which the first part reaches the second
        middle = (low + high) // 2
        enough = (ways.rates[0] + tables[0][middle] >= ways.rates[1] + tables[1][left - middle]) | (low == high)
        high, low = np.where(enough, middle, high), np.where(enough, low, middle + 1)
    before = np.maximum(low - 1, 0)
    reached = [np.minimum(ways.rates[0] + tables[0][x], ways.rates[1] + tables[1][left - x]) for x in (before, low)]
    first = np.where(reached[0] >= reached[1], before, low)
    return [first, left - first]


def density(kinds: Kinds) -> Fraction:
    """The greatest rate for a device."""
    return max((Fraction(rate, size) for size, rate in kinds), default=Fraction(0))


def together_bound(parts: Sequence[tuple[Kinds, int]], devices: int) -> Fraction:
    """No copies of these kinds reach more, on so many devices of each kind and in all."""
    dense = [density(kinds) for kinds, _ in parts]
    each = sum((rate * min(most, devices) for rate, (_, most) in zip(dense, parts, strict=True)), start=Fraction(0))
    return min(each, devices * max(dense, default=Fraction(0)))


def apart_bound(parts: Sequence[tuple[Kinds, Kinds, int]], devices: int) -> Fraction:
    """No prefill and decode workers reach more, by the best multipliers of both parts.

    For any mu from 0 to 1,  R <= mu P + (1 - mu) D <= sum over kinds of n max(mu d_P, (1 - mu) d_D),  least where two of these are equal.
    """
    dense = [(density(prefill), density(decode), min(most, devices)) for prefill, decode, most in parts]
    found = list[Fraction]()
    for first, second, _ in [*dense, (Fraction(1), Fraction(0), 0), (Fraction(0), Fraction(1), 0)]:
        if first + second:
            mu = second / (first + second)
            worth = [(max(mu * own, (1 - mu) * other), most) for own, other, most in dense]
            found.append(min(sum(each * most for each, most in worth), devices * max(each for each, _ in worth)) + Fraction(0))
    return min(found, default=Fraction(0))
