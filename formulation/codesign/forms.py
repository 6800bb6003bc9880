"""Tables of the step time over plans and parts of the chip: the form without any mathematics, for small questions.

Data      for each plan p and each combination (k, l, ...) of literals of some parts the time on the best chip that has them, all other
          choices free; where no such chip keeps the budgets or holds the plan, there is no row
Choices   those of `codesign_rows`; plan = sum of p y[p], and for each part in a table literal = sum of k z[k]; m integer for each table
Rows      those of `codesign_rows`, and for each table    (plan, literal, literal, ..., m) is one of its rows,    t >= m
Objective least t

A table of one part is that part's marginal: what the plan costs at least with that choice. A table of two says what they cost together. A
table of all parts is the question itself, and its optimum the best design, to a quantum. There is no linearization, so no error but that of
rounding down: what a table does not say is what its parts cost together with those that are not in it.

Size is the price: plans times the product of the parts' literals. In a MILP each row becomes a 0/1 variable (`linearize`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import log, prod, sinh

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.crossflow.hardware import take
from crossopt.crossflow.transformer import price
from crossopt.crossflow.workload import Transformer
from crossopt.formulation.codesign.choices import Chip, Codesign, Part, Point, Tangents, offered
from crossopt.formulation.codesign.tangent import lift_row, starts_of, with_strong_rows, with_weak_rows
from crossopt.formulation.model import Linear, Table, Terms, Variable, ceiled, floored, quantum_for
from crossopt.formulation.piecewise import by_bits, integer_pieces
from crossopt.instances.codesign.boxes import Boxes, Grid, corners
from crossopt.instances.codesign.instance import Instance

_MOST = 200_000
"""Rows of a table."""
_USUAL = 20_000
"""Rows of all tables of a question that is not told which to take."""
_PLAN = "plan"


def with_tables(problem: Codesign, instance: Instance, space: Grid) -> Codesign:
    """The question with one table of all its parts if that is small, else with tables of one part and of two, smallest first.

    Parts whose tables would be larger than `_USUAL` rows together are left without: their cost is left at its best. Of hardware that is
    given the bound on the best chip is the price, and where a part has no choice there is no chip: neither has a table.
    """
    sizes = {part.name: len(part) for part in problem.chip.parts}
    if not sizes or not all(sizes.values()):
        return problem
    if len(problem.plans) * prod(sizes.values()) <= _USUAL:
        return with_table(problem, instance, space, tuple(sizes))
    room = _USUAL
    for names in sorted([*combinations(sizes, 1), *combinations(sizes, 2)], key=lambda names: (len(names), prod(sizes[n] for n in names))):
        rows = len(problem.plans) * prod(sizes[name] for name in names)
        if rows <= room:
            problem, room = with_table(problem, instance, space, names), room - rows
    return problem


def with_table(problem: Codesign, instance: Instance, space: Grid, names: Sequence[str]) -> Codesign:
    """The question with a table over its plans and the literals of some parts."""
    parts = [part for part in problem.chip.parts if part.name in names]
    combined = np.array(list(product(*(range(len(part)) for part in parts))), np.int64)
    if len(problem.plans) * len(combined) > _MOST:
        raise ValueError(f"a table of {len(problem.plans) * len(combined):,} rows; at most {_MOST:,}: take fewer parts")
    names_of_parts = " and ".join(part.name for part in parts)
    least = Variable(f"time by {names_of_parts}", problem.time.low, problem.time.high)
    times = floored(np.minimum(_times(problem, instance, space, parts, combined), problem.quantum * (least.high + 1)), problem.quantum)
    rows = tuple(
        (plan, *chosen, max(int(times[plan, row]), least.low))
        for row, chosen in enumerate(combined.tolist())
        for plan in range(len(problem.plans))
        if times[plan, row] <= least.high
    )
    problem = _numbered(problem, _PLAN, problem.choices)
    for part in parts:
        problem = _numbered(problem, part.name, part.literals)
    columns = (_number(_PLAN, problem.choices), *(_number(part.name, part.literals) for part in parts), least)
    problem = replace(problem, added=(*problem.added, least))
    return problem.also(
        Table(f"table of {names_of_parts}", columns, rows), Linear(f"{least.name} is reached", ((1, least), (-1, problem.time)), high=0)
    )


def _times(problem: Codesign, instance: Instance, space: Grid, parts: Sequence[Part], combined: Ints) -> Array:
    """Every plan on the best chip of each combination; infinite where there is none or the plan does not fit it."""
    if not isinstance(instance.workload, Transformer):
        raise TypeError("only plans of transformers have tables")
    low, high = (np.repeat(ends, len(combined), axis=0) for ends in (problem.chip.root.low, problem.chip.root.high))
    for column, part in enumerate(parts):
        low[:, list(part.choices)] = high[:, list(part.choices)] = part.places[combined[:, column]]
    found = corners(instance, space, Boxes(low, high))
    times, alive = np.full((len(problem.plans), len(combined)), np.inf), np.flatnonzero(found.alive)
    if len(alive):
        times[:, alive] = price(instance.workload, take(found.hardware, alive), instance.cluster, problem.plans).step_time
    return np.where(problem.needs[:, None] <= np.asarray(found.hardware.dram.capacity), times, np.inf)


def _numbered(problem: Codesign, name: str, choices: Sequence[Variable]) -> Codesign:
    """The question with the number of what is chosen as a variable, once."""
    number = _number(name, choices)
    if number in problem.added:
        return problem
    row = Linear(f"{number.name} is chosen", (*_weighted(choices), (-1, number)), 0, 0)
    return replace(problem, added=(*problem.added, number)).also(row)


def _weighted(choices: Sequence[Variable]) -> Terms:
    return tuple((index, choice) for index, choice in enumerate(choices) if index)


def _number(name: str, choices: Sequence[Variable]) -> Variable:
    return Variable(f"number of {name}", 0, max(len(choices) - 1, 0))


# The log-space form: products become sums, a maximum is free, and a sum is bounded by tangents of exp. For teaching and comparison.
#
# The time of a plan is a sum of times of parts, and each is work over a rate: a product of what the plan asks and what the chip offers.
# In logarithms, y_j for part j,
#
#     time >= sum over parts of exp(y_j),      y_j = sum over plans q of log S[q, j] y[q]  +  sum over literals k of log B[j, k] z[j, k]
#
# choices meet in sums alone, without any product of a plan and a literal and without any M; a maximum would only be y_j >= each. What is
# left is exp, which is convex, and so above its tangents, at whatever e > 0 they touch:
#
#     exp(y)  >=  e (1 + y - log e)                                                                                              (1)
#
# Data      tangents of the step time as `codesign_tangent` has them,  T_p >= c + sum over parts of a[j, k]
#           B[j, k] = a[j, k] + lift_j     the table of part j of plan p, lifted where it is not above zero (and c lowered by as much)
#           a'[j, k] >= d + S B[j, k]      for all k: of another plan's tangent (c', a') a multiple of it, for two S > 0, of which the
#                                          better one is taken:  S = 1, and the largest S where d is as low as a' needs its own lift
#           e_j = B[j, h_j]                where (1) touches: at the chip h at which the loop saw plan p
# Choices   those of `codesign_rows`; no y_j is left, as it is a sum of choices
# Row       t >= sum over plans q of y[q] C_q + sum over parts of sum over k of e_j (1 + log(B[j, k] / e_j)) z[j, k]
#           C_q = the most over q's tangents (c', a') of   c' + sum over parts of (d + e_j log S)
#
# At the plan and the chip where it touches, S = B / e = 1, and a row loses nothing. At r = B / e the part loses 1 - (1 + log r) / r of
# itself (`loss`): 15 % at twice the time and 39 % at half of it, until the loop sees a chip there and adds a row. Between two rows whose e
# differ by a factor x it is at most 1 - m exp(1 - m) with m = log x / (x - 1): 0.1 % for x = 1.09.
#
# Figures are floored to quanta; before, logarithms and sums are lowered by a trillionth of the largest, thousands of times what they round.
# Since parts are tables here and not formulas of continuous rates, logarithms buy nothing that a table does not say without them: rows of
# `codesign_tangent` have B itself where these have its tangent. Where two parts do multiply, the tangent of exp is used in `separable`.

_LEAST = 1.0e-3
"""What a lifted table is at least, as a share of the most that it is."""
_GUARD = 1.0e-12
"""The share of the largest figures by which sums and logarithms are lowered."""


def with_log_rows(problem: Codesign, which: Ints, point: Point) -> Codesign:
    """The question with these of its tangents as rows in logarithms that touch at a chip."""
    touched = np.array(
        [start + point[part.name] for part, start in zip(problem.chip.parts, starts_of(problem.chip), strict=True)], np.int64
    )
    return problem.also(*(_log_row(problem, int(row), touched) for row in which))


def loss(ratio: Array) -> Array:
    """The share of B that the tangent at e loses, by B / e."""
    return 1.0 - (1.0 + np.log(ratio)) / ratio


def _log_row(problem: Codesign, row: int, touched: Ints) -> Linear:
    """The row of one tangent."""
    chip, tangents = problem.chip, problem.tangents
    table = tangents.slopes[row] + _spread(chip, _lifts(chip, tangents.slopes[[row]]))[0]
    here = _spread(chip, table[None, touched])[0]
    linear = here * (1.0 + np.log(table / here))
    linear -= _GUARD * (np.abs(linear) + table + here)
    shares = np.maximum(_least(chip, tangents.slopes - table), _multiples(chip, tangents, table, table[touched]))
    every = tangents.constants + shares.sum(axis=1)
    every -= _GUARD * (np.abs(tangents.constants) + np.abs(shares).sum(axis=1))
    return lift_row(problem, f"logarithms of tangent {row}, plan {tangents.plans[row]}", linear, every)


def _multiples(chip: Chip, tangents: Tangents, table: Array, touched: Array) -> Array:
    """d + e log S for S = min over k of (a' + lift') / B, and d = -lift'."""
    lifts = _lifts(chip, tangents.slopes)
    factors = _least(chip, (tangents.slopes + _spread(chip, lifts)) / table) * (1.0 - _GUARD)
    return touched * np.log(factors) - lifts


def _lifts(chip: Chip, slopes: Array) -> Array:
    """By how much each part of each table is lifted to be above zero; a table of nothing but zeros becomes one of ones."""
    least, most = _least(chip, slopes), -_least(chip, -slopes)
    size = np.maximum(np.abs(least), np.abs(most))
    wanted = np.where(size > 0.0, _LEAST * size, 1.0)
    return np.maximum(wanted - least, 0.0)


def _spread(chip: Chip, figures: Array) -> Array:
    """A figure of each part for each of its literals."""
    return np.repeat(figures, [len(part) for part in chip.parts], axis=-1)


def _least(chip: Chip, slopes: Array) -> Array:
    return np.minimum.reduceat(slopes, starts_of(chip), axis=-1)


# The classic form: one rate for each part as an integer, and its reciprocal by straight pieces. For teaching and comparison.
#
# Data      for each part the rate R_k of its literals (FLOP/s or bytes a second), and tangents (c, a) of plans p as in `codesign_tangent`
# Choices   those of `codesign_rows`; for each part an integer x, its rate in quanta, and an integer s, the time of a unit of work
# Rows      those of `codesign_rows`, and
#           rate          x = sum of ceil(R_k / quantum) z[k]
#           reciprocal    s = floor(g(x)): g runs straight between points of  S x_least / x / (1 + error),  encoded by bits (`segments`)
#           line of p     if y[p] = 1:   t >= c + sum over the parts of ( w s + min over k of (a[k] - w s_k) ),   w >= 0
# Objective least t
#
# A chord of 1/x lies above it, by sinh(log(q / p) / 2)^2 of it at the most on a piece from p to q (`piecewise`). Pieces are as long as
# ERROR allows, and all points are lowered by it: so s is never above the true reciprocal, and below it by twice ERROR and a unit at the
# most. The line of a part is the best one through its table in the least squares, lowered until it is nowhere above it: that is what is
# lost against the table, beside the second figure of a part (the size of a memory), which is left at its best.

ERROR = 0.002
"""Worst relative error of a chord."""
_RATES = 1 << 12
"""Quanta in the highest rate."""
_UNITS = 1 << 14
"""Units of s at the lowest rate."""


@dataclass(frozen=True, slots=True)
class Reciprocal:
    """A part's rate and its reciprocal, as variables and as figures of its literals."""

    rate: Variable
    time: Variable
    rates: Ints
    """x of each literal."""
    times: Array
    """s of each literal, at the most: the true reciprocal in units."""
    points: tuple[tuple[int, int], ...]


def with_pieces(problem: Codesign) -> Codesign:
    """The question with pieces of 1/x for each part that has a rate."""
    for part in problem.chip.parts:
        if len(part) and _rates(problem.chip, part) is not None:
            problem = _with_pieces(problem, part, reciprocal(problem.chip, part))
    return problem


def with_lines(problem: Codesign, which: Ints) -> Codesign:
    """The question with these of its tangents as lines in the reciprocals of the rates."""
    found = {part.name: reciprocal(problem.chip, part) for part in problem.chip.parts if _rates(problem.chip, part) is not None}
    return problem.also(*(_line(problem, found, int(row)) for row in which))


def reciprocal(chip: Chip, part: Part) -> Reciprocal:
    """The rate of a part in quanta, and points of its reciprocal that are nowhere above it."""
    rates = np.asarray(_rates(chip, part))
    rates_in_quanta = ceiled(rates, quantum_for(float(rates.max()), _RATES))
    low, high = int(rates_in_quanta.min()), int(rates_in_quanta.max())

    def lowered(x: int) -> int:
        return int(_UNITS * low / x / (1.0 + ERROR))

    points = integer_pieces(lowered, low, max(high, low + 1), lambda p, q: sinh(log(q / p) / 2.0) ** 2 <= ERROR)
    rate = Variable(f"rate of {part.name}", low, max(high, low + 1))
    return Reciprocal(rate, Variable(f"unit time of {part.name}", 0, _UNITS), rates_in_quanta, _UNITS * low / rates_in_quanta, points)


def _rates(chip: Chip, part: Part) -> Array | None:
    """What the part does a second; nothing for a larger die."""
    figures = offered(chip, part)
    return next((figure for name, figure in figures.items() if name in {"throughput", "bandwidth"} or name.startswith("link")), None)


def _with_pieces(problem: Codesign, part: Part, found: Reciprocal) -> Codesign:
    pieces = by_bits(f"1/x of {part.name}", found.rate, found.time, found.points)
    terms = tuple((x, literal) for x, literal in zip(found.rates.tolist(), part.literals, strict=True))
    chosen = Linear(f"rate of {part.name} is chosen", (*terms, (-1, found.rate)), 0, 0)
    problem = replace(problem, added=(*problem.added, found.rate, found.time, *pieces.variables))
    return problem.also(chosen, *pieces.constraints)


def _line(problem: Codesign, found: dict[str, Reciprocal], row: int) -> Linear:
    """The tangent as a line in the reciprocals, asked where its plan is chosen."""
    plan, constant, start = int(problem.tangents.plans[row]), float(problem.tangents.constants[row]), 0
    terms = []
    for part in problem.chip.parts:
        table = problem.tangents.slopes[row, start : start + len(part)]
        start += len(part)
        if part.name not in found:
            constant += float(table.min())
            continue
        times = found[part.name].times
        spread = times - times.mean()
        slope = int(floored([max(float(spread @ table / max(float(spread @ spread), 1.0)), 0.0)], problem.quantum)[0])
        constant += float((table - slope * problem.quantum * times).min())
        if slope:
            terms.append((-slope, found[part.name].time))
    least = int(floored([constant], problem.quantum)[0])
    return Linear(f"line {row}, plan {plan}", (*terms, (1, problem.time)), low=least, given=problem.choices[plan])


# The forms in which the co-design question can be written: one set of choices, five ways to say what they cost at least.
#
#     strong      a row per tangent that says something of every plan (`codesign_tangent`); the engines' usual form
#     weak        a row per tangent that speaks of its plan alone, behind a big M: the foil
#     table       tables of the time over plans and parts of the chip (`codesign_table`); rows for single chips refine it
#     classic     1/x of each part's rate by straight pieces, and lines over them (`codesign_reciprocal`)
#     log         products as sums of logarithms, exp by its tangents (`codesign_log`)
#
# Each is a relaxation: its optimum is a lower bound. A form begins with what it needs from the start and is tightened, round by round, at a
# plan and a chip that the relaxation likes too much. What its rows lose there the loop makes up by rows for that chip.


@dataclass(frozen=True, slots=True)
class Form:
    """How the question begins, and how some of its tangents become rows that touch at a chip."""

    begin: Callable[[Codesign, Instance, Grid], Codesign]
    tighten: Callable[[Codesign, Ints, Point], Codesign]


def _as_it_is(problem: Codesign, instance: Instance, space: Grid) -> Codesign:
    del instance, space
    return problem


def _without_tangents(problem: Codesign, which: Ints, point: Point) -> Codesign:
    del which, point
    return problem


FORMS: dict[str, Form] = {
    "strong": Form(_as_it_is, lambda problem, which, point: with_strong_rows(problem, which)),
    "weak": Form(_as_it_is, lambda problem, which, point: with_weak_rows(problem, which)),
    "table": Form(with_tables, _without_tangents),
    "classic": Form(lambda problem, instance, space: with_pieces(problem), lambda problem, which, point: with_lines(problem, which)),
    "log": Form(_as_it_is, with_log_rows),
}
