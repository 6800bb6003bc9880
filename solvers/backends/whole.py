"""The bound of an integer model that whole numbers prove, by a branch and bound of our own.

HiGHS only proposes: of each box the duals of its linear relaxation, or why it has no solution. They are rounded to whole numbers over a
scale, and what they prove is counted exactly (`formulation.certificate`); a box is closed where that is enough, whatever HiGHS says. Else
it is cut, the box with the least bound first, at the variable that is furthest from an integer, until nothing is below the bound asked, or
until the deadline or a number of boxes. The tree that is there then proves what it proves.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import floor, isfinite
from time import monotonic
from typing import Any, Literal

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.formulation.certificate import Branch, Certificate, Leaf, Step, Whole, excess, leaf_bound, parts_of, whole
from crossopt.formulation.model import EXACT, Model
from crossopt.instances.errors import SolverError

Foreign = Any
Ended = Literal["complete", "refuted", "time limit", "box limit"]

_LARGEST = 62
"""Bits of a scale at most."""
_BITS = 40
"""Of the largest factor in a row that HiGHS is shown."""
_FINE = 64
"""Rounding of multipliers moves a bound by about this part of a unit at the most, where the scale is not the largest."""
_NEAR = 1e-6
"""How near to an integer a figure counts as one; nothing rests on it but what is looked at."""


@dataclass(frozen=True, slots=True)
class Traced:
    """A tree, the bound that it proves, and the best solution that was seen on the way."""

    certificate: Certificate
    bound: int | None
    """In the model's own sense; None where there is no solution."""
    values: tuple[int, ...] | None
    """Of the variables of the model."""
    value: int | None
    boxes: int
    stopped: Ended
    """`refuted` by a solution better than the bound asked."""

    @property
    def proved(self) -> bool:
        """Whether the bound is the one asked, or without one the value of the best solution."""
        return self.stopped == "complete"


@dataclass(slots=True)
class _Box:
    """A part of the model: its leaf, the bound that this proves, and where it was cut."""

    lows: tuple[int, ...]
    highs: tuple[int, ...]
    leaf: Leaf
    bound: int | None
    figures: Array | None
    branch: Branch | None = None
    parts: tuple[int, int] | None = None


@dataclass(slots=True)
class _Walk:
    """Where the search stands."""

    asked: Whole
    linear: "_Linear"
    scale: int
    goal: int | None
    """No box needs a better bound."""
    claimed: bool
    deadline: float
    boxes: list[_Box] = field(default_factory=list)
    heap: list[tuple[int, int]] = field(default_factory=list)
    best: tuple[int, ...] | None = None
    value: int | None = None

    @property
    def refuted(self) -> bool:
        return self.claimed and self.value is not None and self.goal is not None and self.value < self.goal


def trace(model: Model, claim: int | None = None, seconds: float = float("inf"), most: int = 10_000) -> Traced:
    """A tree that proves that no solution is better than the claim; without a claim, the best solution and its proof.

    A claim that a solution is better than is refuted by it."""
    asked, deadline = whole(model), monotonic() + seconds
    goal = None if claim is None else model.sign * claim
    walk = _Walk(asked, _Linear(asked), _scale_for(asked), goal, goal is not None, deadline)
    stopped = _walked(walk, most)
    bounds = [box.bound for box in walk.boxes if box.parts is None and box.bound is not None]
    bound = min(bounds, default=None)
    values = None if walk.best is None else walk.best[: len(model.variables)]
    tree = Certificate(walk.scale, tuple(_steps(walk.boxes)))
    signed = [None if figure is None else model.sign * figure for figure in (bound, walk.value)]
    return Traced(tree, signed[0], values, signed[1], len(walk.boxes), stopped)


def _walked(walk: _Walk, most: int) -> Ended:
    try:
        _add(walk, walk.asked.lows, walk.asked.highs, Leaf())
        while walk.heap and (walk.goal is None or walk.heap[0][0] < walk.goal):
            if walk.refuted:
                return "refuted"
            if len(walk.boxes) >= most:
                return "box limit"
            _cut(walk, heappop(walk.heap)[1])
    except TimeoutError:
        return "time limit"
    return "refuted" if walk.refuted else "complete"


def _add(walk: _Walk, lows: tuple[int, ...], highs: tuple[int, ...], inherited: Leaf) -> None:
    """A new box, with the best leaf that is known of it."""
    solved = walk.linear.solved(lows, highs, walk.deadline)
    leaf, bound = _closed(walk, lows, highs, solved, inherited)
    box = _Box(lows, highs, leaf, bound, solved.figures)
    walk.boxes.append(box)
    if bound is None:
        return
    if solved.figures is not None:
        _take(walk, tuple(round(figure) for figure in solved.figures.tolist()), lows, highs)
    heappush(walk.heap, (bound, len(walk.boxes) - 1))


def _closed(walk: _Walk, lows: tuple[int, ...], highs: tuple[int, ...], solved: "_Solved", inherited: Leaf) -> tuple[Leaf, int | None]:
    """The leaf that proves most of a box: from its own duals, from those that it has of the box around it, or from none."""
    for leaf in _emptying(walk, lows, highs, solved):
        if excess(walk.asked, lows, highs, leaf) > 0:
            return leaf, None
    leaves = [inherited, Leaf(), *([] if solved.duals is None else [rounded(walk.asked, solved.duals * float(walk.scale))])]
    bounds = [leaf_bound(walk.asked, lows, highs, walk.scale, leaf) for leaf in leaves]
    best = max(range(len(leaves)), key=lambda place: bounds[place])
    return leaves[best], bounds[best]


def _emptying(walk: _Walk, lows: tuple[int, ...], highs: tuple[int, ...], solved: "_Solved") -> list[Leaf]:
    """Leaves that may show that no solution is in a box: a row that it cannot keep, and what HiGHS proposes, either way round."""
    found = list[Leaf]()
    if lows == highs:
        for place, row in enumerate(walk.asked.rows):
            total = sum(factor * lows[column] for column, factor in row)
            least, most = walk.asked.least[place], walk.asked.most[place]
            if least is not None and total < least:
                return [Leaf((place,), (1,), empty=True)]
            if most is not None and total > most:
                return [Leaf((place,), (-1,), empty=True)]
    if solved.ray is not None:
        largest = float(np.abs(solved.ray).max(initial=0.0))
        for sign in (1.0, -1.0) if largest > 0.0 else ():
            leaf = rounded(walk.asked, sign * solved.ray / largest * float(walk.scale))
            found.append(Leaf(leaf.rows, leaf.times, empty=True))
    return found


def rounded(asked: Whole, times: Array) -> Leaf:
    """The nearest whole multipliers, without those that ask a row for a side that is open."""
    rows, whole_times = list[int](), list[int]()
    for row in np.flatnonzero(np.isfinite(times) & (np.abs(times) >= 0.5)).tolist():
        factor = round(float(times[row]))
        if factor and (asked.least[row] if factor > 0 else asked.most[row]) is not None:
            rows.append(row)
            whole_times.append(factor)
    return Leaf(tuple(rows), tuple(whole_times))


def _take(walk: _Walk, values: tuple[int, ...], lows: tuple[int, ...], highs: tuple[int, ...]) -> None:
    """Keep values that are a solution, and better than the best one known."""
    asked = walk.asked
    if not all(low <= value <= high for low, value, high in zip(lows, values, highs, strict=True)):
        return
    for row, least, most in zip(asked.rows, asked.least, asked.most, strict=True):
        total = sum(factor * values[column] for column, factor in row)
        if (least is not None and total < least) or (most is not None and total > most):
            return
    value = asked.constant + sum(cost * chosen for cost, chosen in zip(asked.costs, values, strict=True))
    if walk.value is None or value < walk.value:
        walk.best, walk.value = values, value
        if not walk.claimed:
            walk.goal = value


def _cut(walk: _Walk, number: int) -> None:
    """Cut a box in two. Both parts are there before the box is cut, so that a deadline leaves it whole."""
    box = walk.boxes[number]
    branch = _branch(box)
    if branch is None:  # one point that keeps every row: its bound is its value
        return
    first = len(walk.boxes)
    try:
        for lows, highs in parts_of(box.lows, box.highs, branch):
            _add(walk, lows, highs, box.leaf)
    except TimeoutError:
        del walk.boxes[first:]
        raise
    box.branch, box.parts = branch, (first, first + 1)


def _branch(box: _Box) -> Branch | None:
    """At the figure that is furthest from an integer, else in the middle of the widest range."""
    widths = [high - low for low, high in zip(box.lows, box.highs, strict=True)]
    if not any(widths):
        return None
    if box.figures is not None:
        away = np.where(np.array(widths, dtype=object) > 0, np.abs(box.figures - np.round(box.figures)), 0.0).astype(float)
        place = int(np.argmax(away))
        if away[place] > _NEAR:
            value = min(max(floor(float(box.figures[place])), box.lows[place]), box.highs[place] - 1)
            return Branch(place, value)
    place = max(range(len(widths)), key=lambda one: widths[one])
    return Branch(place, box.lows[place] + (widths[place] - 1) // 2)


def _steps(boxes: Sequence[_Box]) -> list[Step]:
    """The tree from its root down, each branch before its parts."""
    steps, left = list[Step](), [0] if boxes else []
    while left:
        box = boxes[left.pop()]
        if box.branch is None or box.parts is None:
            steps.append(box.leaf)
        else:
            steps.append(box.branch)
            left += [box.parts[1], box.parts[0]]
    return steps or [Leaf()]


def _scale_for(asked: Whole) -> int:
    """A power of two at which rounding each multiplier by a half moves a bound by little."""
    widths = [max(abs(low), abs(high)) for low, high in zip(asked.lows, asked.highs, strict=True)]
    moved = sum(abs(factor) * widths[place] for row in asked.rows for place, factor in row)
    return 1 << min((_FINE * max(moved, 1)).bit_length(), _LARGEST)


@dataclass(frozen=True, slots=True)
class _Solved:
    """What HiGHS proposes about a box; None where it has nothing to say."""

    figures: Array | None = None
    duals: Array | None = None
    ray: Array | None = None


def _unit_of(factors: Iterable[int]) -> float:
    """What a row is counted in before HiGHS, which minds factors beyond 1e15, sees it."""
    return float(1 << max(max((abs(factor) for factor in factors), default=0).bit_length() - _BITS, 0))


class _Linear:
    """The relaxation that HiGHS holds."""

    __slots__ = ("_solver", "_units")

    def __init__(self, asked: Whole) -> None:
        import highspy

        self._solver: Foreign = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("presolve", "off"), ("solver", "simplex")):
            self._solver.setOptionValue(option, value)
        units, unit = np.array([_unit_of(factor for _, factor in row) for row in asked.rows], float), _unit_of(asked.costs)
        self._units = unit / units
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(asked.costs), len(asked.rows)
        lp.col_cost_ = np.array(asked.costs, float) / unit
        lp.col_lower_, lp.col_upper_ = (np.array(ends, float) for ends in (asked.lows, asked.highs))
        lp.row_lower_ = np.array([-np.inf if one is None else one for one in asked.least], float) / units
        lp.row_upper_ = np.array([np.inf if one is None else one for one in asked.most], float) / units
        entries = [entry for row in asked.rows for entry in row]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.cumsum([0, *map(len, asked.rows)]).astype(np.int32)
        lp.a_matrix_.index_ = np.array([place for place, _ in entries], np.int32)
        lp.a_matrix_.value_ = np.array([factor for _, factor in entries], float) / np.repeat(units, [len(row) for row in asked.rows])
        if self._solver.passModel(lp) == highspy.HighsStatus.kError:
            raise SolverError("highs does not take the model")

    def solved(self, lows: Sequence[int], highs: Sequence[int], deadline: float) -> _Solved:
        """Its proposal about a box; a TimeoutError where time is up."""
        from highspy import HighsModelStatus as Told

        left = deadline - monotonic()
        if left <= 0.0:
            raise TimeoutError
        count = len(lows)
        if not count:
            return _Solved()
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
            return _Solved(figures if usable else None, np.array(solution.row_dual) * self._units)
        if status in {Told.kInfeasible, Told.kUnboundedOrInfeasible}:
            _, there, ray = self._solver.getDualRay()
            return _Solved(ray=np.array(ray) * self._units if there else None)
        return _Solved()
