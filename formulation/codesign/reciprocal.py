"""The classic form: one rate for each part as an integer, and its reciprocal by straight pieces. For teaching and comparison.

Data      for each part the rate R_k of its literals (FLOP/s or bytes a second), and tangents (c, a) of plans p as in `codesign_tangent`
Choices   those of `codesign_rows`; for each part an integer x, its rate in quanta, and an integer s, the time of a unit of work
Rows      those of `codesign_rows`, and
          rate          x = sum of ceil(R_k / quantum) z[k]
          reciprocal    s = floor(g(x)): g runs straight between points of  S x_least / x / (1 + error),  encoded by bits (`segments`)
          line of p     if y[p] = 1:   t >= c + sum over the parts of ( w s + min over k of (a[k] - w s_k) ),   w >= 0
Objective least t

A chord of 1/x lies above it, by sinh(log(q / p) / 2)^2 of it at the most on a piece from p to q (`piecewise`). Pieces are as long as ERROR
allows, and all points are lowered by it: so s is never above the true reciprocal, and below it by twice ERROR and a unit at the most. The
line of a part is the best one through its table in the least squares, lowered until it is nowhere above it: that is what is lost against
the table, beside the second figure of a part (the size of a memory), which is left at its best.
"""

from dataclasses import dataclass, replace
from math import log, sinh

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.codesign.parts import Chip, Part, offered
from crossopt.formulation.codesign.rows import Codesign
from crossopt.formulation.model import Linear, Variable
from crossopt.formulation.rounding import ceiled, floored, quantum_for
from crossopt.formulation.segments import by_bits, whole_pieces

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
    rates: Whole
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


def with_lines(problem: Codesign, which: Whole) -> Codesign:
    """The same with these of its tangents as lines in the reciprocals."""
    found = {part.name: reciprocal(problem.chip, part) for part in problem.chip.parts if _rates(problem.chip, part) is not None}
    return problem.also(*(_line(problem, found, int(row)) for row in which))


def reciprocal(chip: Chip, part: Part) -> Reciprocal:
    """The rate of a part in quanta, and points of its reciprocal that are nowhere above it."""
    rates = np.asarray(_rates(chip, part))
    whole = ceiled(rates, quantum_for(float(rates.max()), _RATES))
    low, high = int(whole.min()), int(whole.max())

    def lowered(x: int) -> int:
        return int(_UNITS * low / x / (1.0 + ERROR))

    points = whole_pieces(lowered, low, max(high, low + 1), lambda p, q: sinh(log(q / p) / 2.0) ** 2 <= ERROR)
    rate = Variable(f"rate of {part.name}", low, max(high, low + 1))
    return Reciprocal(rate, Variable(f"unit time of {part.name}", 0, _UNITS), whole, _UNITS * low / whole, points)


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
