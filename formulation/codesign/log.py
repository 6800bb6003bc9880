"""The log-space form: products become sums, a maximum is free, and a sum is bounded by tangents of exp. For teaching and comparison.

The time of a plan is a sum of times of parts, and each is work over a rate: a product of what the plan asks and what the chip offers.
In logarithms, y_j for part j,

    time >= sum over parts of exp(y_j),      y_j = sum over plans q of log S[q, j] y[q]  +  sum over literals k of log B[j, k] z[j, k]

choices meet in sums alone, without any product of a plan and a literal and without any M; a maximum would only be y_j >= each. What is
left is exp, which is convex, and so above its tangents, at whatever e > 0 they touch:

    exp(y)  >=  e (1 + y - log e)                                                                                              (1)

Data      tangents of the step time as `codesign_tangent` has them,  T_p >= c + sum over parts of a[j, k]
          B[j, k] = a[j, k] + lift_j     the table of part j of plan p, lifted where it is not above zero (and c lowered by as much)
          a'[j, k] >= d + S B[j, k]      for all k: of another plan's tangent (c', a') a multiple of it, for two S > 0, of which the
                                         better one is taken:  S = 1, and the largest S where d is as low as a' needs its own lift
          e_j = B[j, h_j]                where (1) touches: at the chip h at which the loop saw plan p
Choices   those of `codesign_rows`; no y_j is left, as it is a sum of choices
Row       t >= sum over plans q of y[q] C_q + sum over parts of sum over k of e_j (1 + log(B[j, k] / e_j)) z[j, k]
          C_q = the most over q's tangents (c', a') of   c' + sum over parts of (d + e_j log S)

At the plan and the chip where it touches, S = B / e = 1, and a row loses nothing. At r = B / e the part loses 1 - (1 + log r) / r of
itself (`loss`): 15 % at twice the time and 39 % at half of it, until the loop sees a chip there and adds a row. Between two rows whose e
differ by a factor x it is at most 1 - m exp(1 - m) with m = log x / (x - 1): 0.1 % for x = 1.09.

Figures are floored to quanta; before, logarithms and sums are lowered by a trillionth of the largest, thousands of times what they round.
Since parts are tables here and not formulas of continuous rates, logarithms buy nothing that a table does not say without them: rows of
`codesign_tangent` have B itself where these have its tangent. Where two parts do multiply, the tangent of exp is used in `separable`.
"""

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.codesign.parts import Chip, Point
from crossopt.formulation.codesign.rows import Codesign, Tangents
from crossopt.formulation.codesign.tangent import lift_row, starts_of
from crossopt.formulation.model import Linear

_LEAST = 1.0e-3
"""What a lifted table is at least, as a share of the most that it is."""
_GUARD = 1.0e-12
"""The share of the largest figures by which sums and logarithms are lowered."""


def with_log_rows(problem: Codesign, which: Whole, point: Point) -> Codesign:
    """The question with these of its tangents as rows in logarithms that touch at a chip."""
    touched = np.array(
        [start + point[part.name] for part, start in zip(problem.chip.parts, starts_of(problem.chip), strict=True)], np.int64
    )
    return problem.also(*(_log_row(problem, int(row), touched) for row in which))


def loss(ratio: Array) -> Array:
    """The share of B that the tangent at e loses, by B / e."""
    return 1.0 - (1.0 + np.log(ratio)) / ratio


def _log_row(problem: Codesign, row: int, touched: Whole) -> Linear:
    """The row of one tangent."""
    chip, tangents = problem.chip, problem.tangents
    table = tangents.slopes[row] + _spread(chip, _lifts(chip, tangents.slopes[[row]]))[0]
    here = _spread(chip, table[None, touched])[0]
    said = here * (1.0 + np.log(table / here))
    said -= _GUARD * (np.abs(said) + table + here)
    shares = np.maximum(_at_one(chip, tangents, table), _multiples(chip, tangents, table, table[touched]))
    every = tangents.constants + shares.sum(axis=1)
    every -= _GUARD * (np.abs(tangents.constants) + np.abs(shares).sum(axis=1))
    return lift_row(problem, f"logarithms of tangent {row}, plan {tangents.plans[row]}", said, every)


def _at_one(chip: Chip, tangents: Tangents, table: Array) -> Array:
    """d of each tangent and part for S = 1: min over k of a' - B."""
    return _least(chip, tangents.slopes - table)


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
