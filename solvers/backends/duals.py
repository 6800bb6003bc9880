"""What HiGHS proposes about a part of an integer model: the figures and duals of its relaxation, or a ray where it has no solution.

Proposals only, in floating point: whoever takes them counts what they prove in whole numbers. Rows of large factors are shown in larger
units, since HiGHS minds factors beyond 1e15; a model that it does not take has no proposals.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from time import monotonic
from typing import Any
from weakref import finalize

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.formulation.certificate import Whole
from crossopt.formulation.model import EXACT
from crossopt.solvers.backends.line import Line, left_until
from crossopt.solvers.backends.wall import KEYS, LateError, Place

Foreign = Any
Proposal = tuple[Array | None, Array | None, Array | None]

_NOTHING: Proposal = (None, None, None)

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
    """The relaxation that HiGHS holds, behind the wall."""

    __slots__ = ("__weakref__", "_columns", "_key", "_place", "_rows")

    def __init__(self, asked: Whole) -> None:
        self._place, self._key = Place("highs"), next(KEYS)
        self._columns, self._rows = len(asked.costs), 0
        self._place.ask(_hold, self._key, asked)
        finalize(self, self._place.forget, self._key)
        self.add(asked, 0)

    def add(self, asked: Whole, first: int) -> None:
        """The rows of a model from one on."""
        self._place.ask(_add, self._key, replace(asked, rows=asked.rows[first:], least=asked.least[first:], most=asked.most[first:]))
        self._rows = len(asked.rows)

    def solved(self, lows: Sequence[int], highs: Sequence[int], deadline: float) -> Solved:
        """Its proposal about a box; a TimeoutError where time is up, a KeyboardInterrupt where it was told to stop."""
        if deadline <= monotonic():
            raise TimeoutError
        if not lows:
            return Solved()
        try:
            told, stopped = self._place.ask(_solve, self._key, lows, highs, deadline, until=deadline)
        except LateError as error:
            raise TimeoutError from error
        if stopped:
            raise KeyboardInterrupt
        if told is None:
            raise TimeoutError
        return Solved(*map(self._held_to, told, (self._columns, self._rows, self._rows)))

    def _held_to(self, figures: Array | None, number: int) -> Array | None:
        return figures if figures is not None and figures.shape == (number,) else None


@dataclass(slots=True)
class _Held:
    """Behind the wall: the relaxation, and what its costs and each of its rows are counted in."""

    solver: Foreign
    unit: float
    units: Array


def _hold(line: Line, key: int, asked: Whole) -> None:
    import highspy

    solver: Foreign = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("presolve", "off"), ("solver", "simplex")):
        solver.setOptionValue(option, value)
    unit = _unit_of(asked.costs)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(asked.costs), 0
    lp.col_cost_ = np.array(asked.costs, float) / unit
    lp.col_lower_, lp.col_upper_ = (np.array(ends, float) for ends in (asked.lows, asked.highs))
    solver.passModel(lp)
    line.kept[key] = _Held(solver, unit, np.zeros(0))


def _add(line: Line, key: int, more: Whole) -> None:
    """All rows of a model after those that are there."""
    held: _Held = line.kept[key]
    units = np.array([_unit_of(factor for _, factor in row) for row in more.rows], float)
    lows = np.array([-np.inf if one is None else one for one in more.least], float) / units
    highs = np.array([np.inf if one is None else one for one in more.most], float) / units
    entries = [entry for row in more.rows for entry in row]
    starts = np.cumsum([0, *map(len, more.rows)])[:-1].astype(np.int32)
    places = np.array([place for place, _ in entries], np.int32)
    factors = np.array([factor for _, factor in entries], float) / np.repeat(units, [len(row) for row in more.rows])
    held.solver.addRows(len(more.rows), lows, highs, len(entries), starts, places, factors)
    held.units = np.concatenate([held.units, held.unit / units])


def _solve(line: Line, key: int, lows: Sequence[int], highs: Sequence[int], deadline: float) -> tuple[Proposal | None, bool]:
    """Figures, duals and a ray, as far as there are any; None where time is up. And whether it was told to stop meanwhile."""
    from highspy import HighsModelStatus as Told

    held: _Held = line.kept[key]
    solver, columns = held.solver, len(lows)
    ends = [np.array(one, float) for one in (lows, highs)]
    solver.changeColsBounds(columns, np.arange(columns, dtype=np.int32), *ends)
    if isfinite(deadline):
        solver.setOptionValue("time_limit", solver.getRunTime() + left_until(deadline))
    solver.run()
    status, told = solver.getModelStatus(), _NOTHING
    if status == Told.kOptimal:
        solution = solver.getSolution()
        figures = np.array(solution.col_value)
        usable = bool(np.isfinite(figures).all()) and float(np.abs(figures).max(initial=0.0)) < EXACT
        told = figures if usable else None, np.array(solution.row_dual) * held.units, None
    elif status in {Told.kInfeasible, Told.kUnboundedOrInfeasible}:
        _, there, ray = solver.getDualRay()
        told = None, None, np.array(ray) * held.units if there else None
    return (None if status == Told.kTimeLimit else told), line.stopping
