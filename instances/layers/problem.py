"""One strategy for each layer, with additive figures of layers and of pairs of neighbours, budgets, and layers that are tied.

With x_v the strategy of layer v and f a figure (time, energy, size, memory, bit operations, quality):

    minimise    total of the objective
    such that   total_f = sum use_vf(x_v) + sum use_uvf(x_u, x_v)  is at most the budget of f, for every budget
                x_u = x_v by name for layers that are tied

All figures are whole numbers of a unit 10^-k of their own, the finest in which whatever is chosen adds up to less than 2^52, so that every
total is exact as an integer and as a float. Decimals that fit are exact. Others are rounded up to that unit, 16 digits of the total, and
limits down: whatever the budget is, as objective or not, so that the total of an answer is a limit that the answer keeps.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import inf
from sys import float_info

import numpy as np

from crossopt.crossflow.arrays import Ints

FIGURES = ("time", "energy", "size", "memory", "bops", "quality")
GREATEST_TOTAL = 1 << 52
_DIGITS = Context(prec=60)
_FINEST = 30
"""Decimals that are looked at: 10^-30 of anything is nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """Figures of two neighbours by the strategies of both: [strategies of the first, strategies of the second, figures]."""

    first: int
    second: int
    uses: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Layers with their strategies in whole numbers; the objective is the first figure."""

    layers: tuple[str, ...]
    strategies: tuple[tuple[str, ...], ...]
    figures: tuple[str, ...]
    decimals: tuple[int, ...]
    """Decimal places k of each figure, whose unit is 10^-k; negative for tens and more."""
    uses: tuple[Ints, ...]
    """Of each layer: [strategies, figures]."""
    links: tuple[Link, ...]
    limits: tuple[int | None, ...]
    """Budgets by figure; None for none."""
    ties: tuple[tuple[int, ...], ...] = ()

    def __len__(self) -> int:
        return len(self.layers)

    def amount(self, figure: int, units: int) -> float:
        """A total in the unit of files, correctly rounded."""
        return float(Fraction(units) / Fraction(10) ** self.decimals[figure])

    def units_from(self, value: float) -> int | None:
        """The least total of the objective that is no less than a value; None for infinity."""
        if value == inf:
            return None
        exact = Fraction(value) * Fraction(10) ** self.decimals[0]
        near = round(exact)
        return near if self.amount(0, near) == value else -int(-exact // 1)


Figures = Mapping[str, float]
Pairs = Mapping[tuple[str, str], Figures]


@dataclass(frozen=True, slots=True)
class Written:
    """A problem with figures as they were written or priced."""

    layers: Mapping[str, Mapping[str, Figures]]
    """Strategies of each layer with their figures; figures that are left out are 0."""
    links: Sequence[tuple[str, str, Pairs]]
    """Figures of pairs of strategies of neighbours; pairs that are left out have none."""
    objective: str
    budgets: Figures
    ties: Sequence[Sequence[str]] = ()


def problem_of(written: Written) -> Problem:
    """The problem in whole numbers."""
    figures = (written.objective, *(name for name in FIGURES if name != written.objective and _says(written, name)))
    names = tuple(written.layers)
    rows = {name: row for row, name in enumerate(names)}
    tables = [_table(list(strategies.values()), figures) for strategies in written.layers.values()]
    kinds = dict[object, tuple[int, Table]]()
    """Tables of links, of which many are alike: each is converted once."""
    link_kinds = list[int]()
    for start, end, found in written.links:
        first, second = tuple(written.layers[start]), tuple(written.layers[end])
        key = id(found), first, second
        if key not in kinds:
            kinds[key] = len(kinds), _pair_table(found, first, second, figures)
        link_kinds.append(kinds[key][0])
    pair_tables, counts = [table for _, table in kinds.values()], Counter(link_kinds)
    decimals, columns = list[int](), list[tuple[list[Ints], list[Ints]]]()
    for number, name in enumerate(figures):
        own, between = [table[..., number] for table in tables], [table[..., number] for table in pair_tables]
        repeated = [(table, counts[kind]) for kind, table in enumerate(between)]
        digits = _decimals(name, [*((table, 1) for table in own), *repeated])
        decimals.append(digits)
        columns.append(([_units(table, digits) for table in own], [_units(table, digits) for table in between]))
    stacked = [np.stack([between[kind] for _, between in columns], axis=-1) for kind in range(len(pair_tables))]
    return Problem(
        layers=names,
        strategies=tuple(tuple(strategies) for strategies in written.layers.values()),
        figures=figures,
        decimals=tuple(decimals),
        uses=tuple(np.stack([own[row] for own, _ in columns], axis=-1) for row in range(len(names))),
        links=tuple(Link(rows[start], rows[end], stacked[kind]) for kind, (start, end, _) in zip(link_kinds, written.links, strict=True)),
        limits=tuple(_limit(written.budgets.get(name), digits) for name, digits in zip(figures, decimals, strict=True)),
        ties=tuple(tuple(rows[name] for name in tied) for tied in written.ties),
    )


def _says(written: Written, name: str) -> bool:
    """Whether a figure is stated at all."""
    every = (stated for strategies in written.layers.values() for stated in strategies.values())
    return (
        name in written.budgets
        or any(name in stated for stated in every)
        or any(name in stated for _, _, found in written.links for stated in found.values())
    )


Table = np.ndarray
"""Of decimals."""


def _table(rows: Sequence[Figures], figures: Sequence[str]) -> Table:
    found = np.empty((len(rows), len(figures)), object)
    for row, stated in enumerate(rows):
        found[row] = [_decimal(stated.get(name, 0.0)) for name in figures]
    return found


def _pair_table(pairs: Pairs, first: Sequence[str], second: Sequence[str], figures: Sequence[str]) -> Table:
    found = np.full((len(first), len(second), len(figures)), Decimal(0), object)
    for (first_strategy, second_strategy), amounts in pairs.items():
        found[first.index(first_strategy), second.index(second_strategy)] = [_decimal(amounts.get(name, 0.0)) for name in figures]
    return found


def _decimal(value: float) -> Decimal:
    """The shortest decimal that is this float, as files write it."""
    return Decimal(repr(float(value)))


def _decimals(name: str, tables: Sequence[tuple[Table, int]]) -> int:
    """Decimal places that all figures need, or as many as leave totals below the greatest; of tables and how often each occurs. A
    ValueError where totals may be greater than any float, or a figure is less than their last digit.
    """
    entries = {entry for table, _ in tables for entry in table.ravel()}
    needed = max((-int(entry.normalize(_DIGITS).as_tuple().exponent) for entry in entries if entry), default=0)
    most = sum((max(table.ravel()) * count for table, count in tables if table.size), Decimal(0))
    if most > Decimal(float_info.max):
        raise ValueError(f"the greatest figures of {name} add up to {most:.1e}, more than a number can be (take another unit or scale)")
    size = sum(table.size * count for table, count in tables)
    fits = next(room for room in range(_FINEST, -_FINEST * 10, -1) if most * Decimal(10) ** room + size < GREATEST_TOTAL)
    least = min((entry for entry in entries if entry), default=most)
    if needed > fits and least * Decimal(10) ** fits < 1:
        span = f"from {float(least):.1e} to totals of {float(most):.1e}"
        raise ValueError(f"figures of {name} {span} are more than 15 digits apart, and no total has both (give 0 for what is so small)")
    return min(max(needed, 0), fits)


def _units(table: Table, digits: int) -> Ints:
    scale = Decimal(10) ** digits
    found = [int((entry * scale).to_integral_value(ROUND_CEILING, _DIGITS)) for entry in table.ravel()]
    return np.array(found, np.int64).reshape(table.shape)


def _limit(limit: float | None, digits: int) -> int | None:
    if limit is None:
        return None
    return int((_decimal(limit) * Decimal(10) ** digits).to_integral_value(ROUND_FLOOR, _DIGITS))


def chosen(problem: Problem, strategies: Sequence[str]) -> tuple[int, ...]:
    """Places of the strategies of all layers; a ValueError where they are none of the problem."""
    if len(strategies) != len(problem):
        raise ValueError(f"{len(strategies):,} strategies are given, and there are {len(problem):,} layers")
    found = list[int]()
    for name, known, strategy in zip(problem.layers, problem.strategies, strategies, strict=True):
        if strategy not in known:
            raise ValueError(f"the layer {name} has no strategy {strategy!r} (one of {', '.join(known)})")
        found.append(known.index(strategy))
    return tuple(found)


def ties_by(groups: Mapping[str, object]) -> Iterator[tuple[str, ...]]:
    """Layers of equal group, as ties; layers of the group None are free."""
    found = dict[object, list[str]]()
    for name, group in groups.items():
        if group is not None:
            found.setdefault(group, []).append(name)
    return (tuple(names) for names in found.values() if len(names) > 1)
