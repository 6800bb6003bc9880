"""What HiGHS proposes about a part of an integer model: the figures and duals of its relaxation, or a ray where it has no solution.

Proposals only, in floating point: whoever takes them counts what they prove in whole numbers. Rows of large factors are shown in larger
units, since HiGHS minds factors beyond 1e15; a model that it does not take has no proposals.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from time import monotonic
from typing import Any

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.formulation.certificate import Whole
from crossopt.formulation.model import EXACT

Foreign = Any

_BITS = 40
"""Of the largest factor in a row that HiGHS is shown."""


@dataclass(frozen=True, slots=True)
class Solved:
    """What HiGHS proposes about a box; None where it has nothing to say."""

    figures: Array | None = None
    duals: Array | None = None
    ray: Array | None = None


def _unit_of(factors: Iterable[int]) -> float:
    """What a row is counted in before HiGHS, which minds factors beyond 1e15, sees it."""
    return float(1 << max(max((abs(factor) for factor in factors), default=0).bit_length() - _BITS, 0))


class Relaxation:
    """The relaxation that HiGHS holds."""

    __slots__ = ("_solver", "_unit", "_units")

    def __init__(self, asked: Whole) -> None:
        import highspy

        self._solver: Foreign = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("presolve", "off"), ("solver", "simplex")):
            self._solver.setOptionValue(option, value)
        self._unit, self._units = _unit_of(asked.costs), np.zeros(0)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(asked.costs), 0
        lp.col_cost_ = np.array(asked.costs, float) / self._unit
        lp.col_lower_, lp.col_upper_ = (np.array(ends, float) for ends in (asked.lows, asked.highs))
        self._solver.passModel(lp)
        self.add(asked, 0)

    def add(self, asked: Whole, first: int) -> None:
        """The rows of a model from one on."""
        rows = asked.rows[first:]
        units = np.array([_unit_of(factor for _, factor in row) for row in rows], float)
        lows = np.array([-np.inf if one is None else one for one in asked.least[first:]], float) / units
        highs = np.array([np.inf if one is None else one for one in asked.most[first:]], float) / units
        entries = [entry for row in rows for entry in row]
        starts = np.cumsum([0, *map(len, rows)])[:-1].astype(np.int32)
        places = np.array([place for place, _ in entries], np.int32)
        factors = np.array([factor for _, factor in entries], float) / np.repeat(units, [len(row) for row in rows])
        self._solver.addRows(len(rows), lows, highs, len(entries), starts, places, factors)
        self._units = np.concatenate([self._units, self._unit / units])

    def solved(self, lows: Sequence[int], highs: Sequence[int], deadline: float) -> Solved:
        """Its proposal about a box; a TimeoutError where time is up."""
        from highspy import HighsModelStatus as Told

        left = deadline - monotonic()
        if left <= 0.0:
            raise TimeoutError
        count = len(lows)
        if not count:
            return Solved()
        ends = [np.array(one, float) for one in (lows, highs)]
        self._solver.changeColsBounds(count, np.arange(count, dtype=np.int32), *ends)
        if isfinite(left):
            self._solver.setOptionValue("time_limit", self._solver.getRunTime() + left)
        self._solver.run()
        status = self._solver.getModelStatus()
        if status == Told.kTimeLimit:
            raise TimeoutError
        if status == Told.kOptimal:
            solution = self._solver.getSolution()
            figures = np.array(solution.col_value)
            usable = bool(np.isfinite(figures).all()) and float(np.abs(figures).max(initial=0.0)) < EXACT
            return Solved(figures if usable else None, np.array(solution.row_dual) * self._units)
        if status in {Told.kInfeasible, Told.kUnboundedOrInfeasible}:
            _, there, ray = self._solver.getDualRay()
            return Solved(ray=np.array(ray) * self._units if there else None)
        return Solved()
