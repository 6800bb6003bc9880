"""Exact branch and bound for integer models: it proves bounds by a tree in integer arithmetic, and runs in the solver process.

HiGHS only proposes multipliers: for each node the duals of its linear relaxation, or a dual ray if that is infeasible, in floating point.
Rows with large coefficients are scaled, as HiGHS rejects coefficients beyond 1e15. Multipliers are rounded to integers over a common
scale, and the bound that they imply is computed exactly (`formulation.certificate`); a node is pruned if that bound suffices, whatever
HiGHS reports. Other nodes are branched on, the one with the lowest bound first, at the most fractional variable, until no node is below
the bound to be proved, or until the deadline or the node limit. The tree at that point is the certificate. A crash or a timeout costs only
the tree; every use of a tree verifies it again.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import product
from math import floor, inf, isfinite
from time import monotonic
from typing import Any, Literal, Protocol

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.formulation.certificate import (
    Branch,
    Certificate,
    Cut,
    Leaf,
    Split,
    Step,
    Whole,
    asks_for_one,
    excess,
    integer_form,
    leaf_bound,
    parts_of,
)
from crossopt.formulation.model import EXACT, Model
from crossopt.solvers.backends.answer import allowed
from crossopt.solvers.backends.wall import KEYS, LateError, Line, SolverProcess, version

Foreign = Any

_BITS = 40
"""Bits of the largest coefficient of a row as HiGHS gets it."""


@dataclass(frozen=True, slots=True)
class Solved:
    """The multipliers and values that HiGHS proposes for a node; None if it has none."""

    figures: Array | None = None
    duals: Array | None = None
    ray: Array | None = None


def _unit_of(factors: Iterable[int]) -> float:
    """The unit by which a row is scaled for HiGHS, which rejects coefficients beyond 1e15."""
    return float(1 << max(max((abs(factor) for factor in factors), default=0).bit_length() - _BITS, 0))


class Relaxation:
    """The linear relaxation, loaded in HiGHS."""

    __slots__ = ("_solver", "_unit", "_units")

    def __init__(self, form: Whole) -> None:
        import highspy

        self._solver: Foreign = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("presolve", "off"), ("solver", "simplex")):
            self._solver.setOptionValue(option, value)
        self._unit, self._units = _unit_of(form.costs), np.zeros(0)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(form.costs), 0
        lp.col_cost_ = np.array(form.costs, float) / self._unit
        lp.col_lower_, lp.col_upper_ = (np.array(ends, float) for ends in (form.lows, form.highs))
        self._solver.passModel(lp)
        self.add(form, 0)

    def add(self, form: Whole, first: int) -> None:
        """Add the rows of a model from index `first` on."""
        rows = form.rows[first:]
        units = np.array([_unit_of(factor for _, factor in row) for row in rows], float)
        lows = np.array([-np.inf if side is None else side for side in form.least[first:]], float) / units
        highs = np.array([np.inf if side is None else side for side in form.most[first:]], float) / units
        entries = [entry for row in rows for entry in row]
        starts = np.cumsum([0, *map(len, rows)])[:-1].astype(np.int32)
        places = np.array([column for column, _ in entries], np.int32)
        factors = np.array([factor for _, factor in entries], float) / np.repeat(units, [len(row) for row in rows])
        self._solver.addRows(len(rows), lows, highs, len(entries), starts, places, factors)
        self._units = np.concatenate([self._units, self._unit / units])

    def solved(self, lows: Sequence[float], highs: Sequence[float], deadline: float) -> Solved:
        """Solve the relaxation of a node, given the bounds of the first columns; a TimeoutError at the deadline."""
        from highspy import HighsModelStatus as Status

        left = deadline - monotonic()
        if left <= 0.0:
            raise TimeoutError
        count = len(lows)
        if not count:
            return Solved()
        ends = [np.array(side, float) for side in (lows, highs)]
        self._solver.changeColsBounds(count, np.arange(count, dtype=np.int32), *ends)
        if isfinite(left):
            self._solver.setOptionValue("time_limit", self._solver.getRunTime() + left)
        self._solver.run()
        status = self._solver.getModelStatus()
        if status == Status.kTimeLimit:
            raise TimeoutError
        if status == Status.kOptimal:
            solution = self._solver.getSolution()
            figures = np.array(solution.col_value)
            usable = bool(np.isfinite(figures).all()) and float(np.abs(figures).max(initial=0.0)) < EXACT
            return Solved(figures if usable else None, np.array(solution.row_dual) * self._units)
        if status in {Status.kInfeasible, Status.kUnboundedOrInfeasible}:
            _, there, ray = self._solver.getDualRay()
            return Solved(ray=np.array(ray) * self._units if there else None)
        return Solved()


Ended = Literal["complete", "refuted", "time limit", "box limit"]

_LARGEST = 62
"""Most bits of a scale."""
_DIGITS = (2.0**20, 2.0**40, 2.0**60)
"""Scales that are tried for a ray, for which any scale is valid; one with few digits is preferred."""
_TRIED, _SELDOM = 3, 4
"""Splits of rows that are tried at a node, and how often a row is tried before its average gain counts."""
_FINE = 64
"""Rounding of multipliers moves a bound by at most about one part in this many of a unit, unless the scale is the largest."""
_NEAR = 1e-6
"""Tolerance within which a value counts as an integer; it affects only the order of the search."""


@dataclass(frozen=True, slots=True)
class Traced:
    """A branch-and-bound tree, the bound that it proves, and the incumbent."""

    certificate: Certificate
    bound: int | None
    """In the model's own sense; None if the tree proves infeasibility."""
    values: tuple[int, ...] | None
    """Values of the model's variables."""
    value: int | None
    boxes: int
    stopped: Ended
    """`refuted` if a solution is better than the bound to be proved."""
    root: tuple[float, ...] | None = None
    """The model's variables in the relaxation of the root."""

    @property
    def proved(self) -> bool:
        """Whether the claimed bound is proved, or without a claim the incumbent's optimality."""
        return self.stopped == "complete"


@dataclass(slots=True)
class _Box:
    """A node: its multipliers as a leaf, the bound that they prove, and its branching."""

    lows: tuple[int, ...]
    highs: tuple[int, ...]
    leaf: Leaf
    bound: int | None
    figures: Array | None
    rows: int
    """Number of rows of the model when it was bounded."""
    cut: Cut | None = None
    parts: tuple[int, int] | None = None


@dataclass(slots=True)
class _Search:
    """State of the search."""

    form: Whole
    linear: Relaxation
    scale: int
    goal: int | None
    """Nodes with at least this bound are pruned."""
    claimed: bool
    deadline: float
    choosing: tuple[int, ...]
    """Rows that select exactly one of several variables."""
    model: Model
    """The original model, without rows that were added later."""
    most: int
    """Node limit."""
    leading: int
    """Number of variables, from the first on, that are branched on before the others."""
    gains: dict[int, list[int]] = field(default_factory=dict)
    """Bound gains of each row's splits so far."""
    boxes: list[_Box] = field(default_factory=list)
    heap: list[tuple[int, int]] = field(default_factory=list)
    best: tuple[int, ...] | None = None
    value: int | None = None

    @property
    def going(self) -> bool:
        return bool(self.heap) and (self.goal is None or self.heap[0][0] < self.goal)

    @property
    def refuted(self) -> bool:
        return self.claimed and self.value is not None and self.goal is not None and self.value < self.goal


def begin(line: Line, key: int, model: Model, claim: int | None, deadline: float, most: int, leading: int) -> Traced:
    """Search for a tree, and store the search under a key, so that it can go on with more rows if a solution refutes the claim."""
    form = integer_form(model)
    goal = None if claim is None else model.sign * claim
    choosing = tuple(row for row in range(len(form.rows)) if asks_for_one(form, row))
    walk = _Search(form, Relaxation(form), _scale_for(form), goal, goal is not None, deadline, choosing, model, most, leading)
    line.cache[key] = walk
    return _outcome(walk, _walked(walk, line))


def go_on(line: Line, key: int, model: Model) -> Traced:
    """Continue the search with additional rows, which cut off the solution that refuted the claim."""
    walk: _Search = line.cache[key]
    form = integer_form(model)
    if form.rows[: len(walk.form.rows)] != walk.form.rows or form.lows != walk.form.lows or form.highs != walk.form.highs:
        raise ValueError("a model may only be tightened by rows after its own")
    walk.linear.add(form, len(walk.form.rows))
    walk.form, walk.best, walk.value = form, None, None
    return _outcome(walk, _walked(walk, line))


def unproved(model: Model) -> Traced:
    """A tree of one leaf, for a search without a result: the bound that follows from the variables' ranges."""
    form = integer_form(model)
    return Traced(Certificate(1, (Leaf(),)), model.sign * leaf_bound(form, form.lows, form.highs, 1, Leaf()), None, None, 0, "time limit")


def _outcome(walk: _Search, stopped: Ended) -> Traced:
    if not walk.boxes:
        return unproved(walk.model)
    bounds = [box.bound for box in walk.boxes if box.parts is None and box.bound is not None]
    steps, own = tuple(tree_steps(walk.boxes)), len(walk.model.variables)
    divided = any(isinstance(step, Leaf) and not step.empty for step in steps)
    tree = Certificate(walk.scale if divided else 1, steps)
    bound, value = (None if figure is None else walk.model.sign * figure for figure in (min(bounds, default=None), walk.value))
    root = walk.boxes[0].figures
    shares = None if root is None else tuple(root[:own].tolist())
    return Traced(tree, bound, None if walk.best is None else walk.best[:own], value, len(walk.boxes), stopped, shares)


def _walked(walk: _Search, line: Line) -> Ended:
    try:
        if not walk.boxes:
            _keep(walk, _box(walk, walk.form.lows, walk.form.highs, None))
        while walk.going or walk.refuted:
            if walk.refuted:
                return "refuted"
            if line.stopping:
                return "time limit"
            if len(walk.boxes) >= walk.most:
                return "box limit"
            number = heappop(walk.heap)[1]
            if walk.boxes[number].rows < len(walk.form.rows):
                _bound_again(walk, number)
            else:
                _cut(walk, number)
    except TimeoutError:
        return "time limit"
    return "complete"


def _bound_again(walk: _Search, number: int) -> None:
    """Bound a node again after rows were added."""
    box = walk.boxes[number]
    walk.boxes[number] = _box(walk, box.lows, box.highs, box)
    if (bound := walk.boxes[number].bound) is not None:
        heappush(walk.heap, (bound, number))


def _box(walk: _Search, lows: tuple[int, ...], highs: tuple[int, ...], around: _Box | None) -> _Box:
    """A node with the best leaf that is known for it."""
    solved = walk.linear.solved(lows, highs, walk.deadline)
    leaf, bound = _closed(walk, lows, highs, solved, around)
    proposed = None if bound is None else _integer_point(lows, highs, solved)
    if proposed is not None:
        _take(walk, proposed, lows, highs)
    return _Box(lows, highs, leaf, bound, solved.figures, len(walk.form.rows))


def _integer_point(lows: tuple[int, ...], highs: tuple[int, ...], solved: Solved) -> tuple[int, ...] | None:
    """The only point of a node, or the solution of its relaxation if that is integral."""
    if lows == highs:
        return lows
    figures = solved.figures
    if figures is None or float(np.abs(figures - np.round(figures)).max(initial=0.0)) > _NEAR:
        return None
    return tuple(round(figure) for figure in figures.tolist())


def _keep(walk: _Search, box: _Box) -> None:
    """Add a node to the queue, unless it is infeasible."""
    walk.boxes.append(box)
    if box.bound is not None:
        heappush(walk.heap, (box.bound, len(walk.boxes) - 1))


def _closed(walk: _Search, lows: tuple[int, ...], highs: tuple[int, ...], solved: Solved, around: _Box | None) -> tuple[Leaf, int | None]:
    """The leaf with the best bound of a node: from its own duals, or from its parent if these prove less."""
    for leaf in _emptying(walk, lows, highs, solved):
        if excess(walk.form, lows, highs, leaf) > 0:
            return leaf, None
    own = Leaf() if solved.duals is None or lows == highs else rounded(walk.form, solved.duals * float(walk.scale))
    bound = leaf_bound(walk.form, lows, highs, walk.scale, own)
    if around is None or around.bound is None or bound >= around.bound:
        return own, bound
    return around.leaf, leaf_bound(walk.form, lows, highs, walk.scale, around.leaf)


def _emptying(walk: _Search, lows: tuple[int, ...], highs: tuple[int, ...], solved: Solved) -> list[Leaf]:
    """Leaves that may prove infeasibility of a node: a row that its only point violates, and the dual ray in both directions."""
    found = list[Leaf]()
    if lows == highs:
        for index, row in enumerate(walk.form.rows):
            total = sum(factor * lows[column] for column, factor in row)
            least, most = walk.form.least[index], walk.form.most[index]
            if least is not None and total < least:
                return [Leaf((index,), (1,), empty=True)]
            if most is not None and total > most:
                return [Leaf((index,), (-1,), empty=True)]
    if solved.ray is not None:
        largest = float(np.abs(solved.ray).max(initial=0.0))
        for digits, sign in product(_DIGITS, (1.0, -1.0) if largest > 0.0 else ()):
            leaf = rounded(walk.form, sign * solved.ray / largest * digits)
            found.append(Leaf(leaf.rows, leaf.times, empty=True))
    return found


def rounded(form: Whole, times: Array) -> Leaf:
    """The nearest integer multipliers, without those on a side of a row that is unbounded."""
    rows, whole_times = list[int](), list[int]()
    for row in np.flatnonzero(np.isfinite(times) & (np.abs(times) >= 0.5)).tolist():
        factor = round(float(times[row]))
        if factor and (form.least[row] if factor > 0 else form.most[row]) is not None:
            rows.append(row)
            whole_times.append(factor)
    return Leaf(tuple(rows), tuple(whole_times))


def _take(walk: _Search, values: tuple[int, ...], lows: tuple[int, ...], highs: tuple[int, ...]) -> None:
    """Make values the incumbent if they are feasible and better than it."""
    form = walk.form
    if not all(low <= value <= high for low, value, high in zip(lows, values, highs, strict=True)):
        return
    for row, least, most in zip(form.rows, form.least, form.most, strict=True):
        total = sum(factor * values[column] for column, factor in row)
        if (least is not None and total < least) or (most is not None and total > most):
            return
    value = form.constant + sum(cost * chosen for cost, chosen in zip(form.costs, values, strict=True))
    if walk.value is None or value < walk.value:
        walk.best, walk.value = values, value
        if not walk.claimed:
            walk.goal = value


def _cut(walk: _Search, number: int) -> None:
    """Branch where the children prove most. Both children are bounded before the branching is stored, so a timeout leaves the node open."""
    box, tried = walk.boxes[number], list[tuple[tuple[int, int], Cut, list[_Box]]]()
    for cut in _cuts(walk, box):  # a feasible single point has no branching: its bound is its value
        parts = [_box(walk, *ends, box) for ends in parts_of(walk.form, box.lows, box.highs, cut)]
        gain = _gain(walk, parts)
        tried.append((gain, cut, parts))
        if isinstance(cut, Split) and box.bound is not None:
            walk.gains.setdefault(cut.row, []).append(gain[0] - box.bound)
    if not tried:
        return
    _, box.cut, parts = max(tried, key=lambda score_and_cut: score_and_cut[0])
    box.parts = len(walk.boxes), len(walk.boxes) + 1
    for part in parts:
        _keep(walk, part)


def _gain(walk: _Search, parts: Sequence[_Box]) -> tuple[int, int]:
    """The least and the greatest bound of the children, capped at the goal."""
    bounds = [box.bound for box in parts if box.bound is not None]
    goals = [*bounds, *([] if walk.goal is None else [walk.goal])]
    top = max(goals, default=0)
    reached = sorted([min(bound, top if walk.goal is None else walk.goal) for bound in bounds] + [top + 1] * (len(parts) - len(bounds)))
    return reached[0], reached[-1]


def _cuts(walk: _Search, box: _Box) -> list[Cut]:
    """Candidate branchings: splits of selection rows with fractional variables, and the most fractional variable.

    If no variable is fractional, the middle of the widest range."""
    widths = [high - low for low, high in zip(box.lows, box.highs, strict=True)]
    if not any(widths):
        return []
    cuts = list[Cut]()
    if box.figures is not None:
        away = np.where(np.array(widths, dtype=object) > 0, np.abs(box.figures - np.round(box.figures)), 0.0).astype(float)
        splits = [split for row in walk.choosing if (split := _split_of(walk.form, box, away, row))]
        cuts += sorted(splits, key=partial(_promise, walk))[:_TRIED]
        for variable in _leading(walk, away) or [int(np.argmax(away))]:
            if away[variable] > _NEAR:
                value = min(max(floor(float(box.figures[variable])), box.lows[variable]), box.highs[variable] - 1)
                cuts.append(Branch(variable, value))
    if not cuts:
        variable = max(range(len(widths)), key=lambda column: widths[column])
        cuts.append(Branch(variable, box.lows[variable] + (widths[variable] - 1) // 2))
    return cuts


def _leading(walk: _Search, away: Array) -> list[int]:
    """The fractional variables among the leading ones that cost most, as far as they are fractional."""
    costs = walk.form.costs
    fractional = [variable for variable in range(walk.leading) if away[variable] > _NEAR]
    return sorted(fractional, key=lambda variable: (-away[variable] * costs[variable], -away[variable]))[:_TRIED]


def _promise(walk: _Search, split: Split) -> float:
    """Sort key: rarely split rows first, then the highest average gain (pseudo-costs, Benichou et al. 1971)."""
    gains = walk.gains.get(split.row, [])
    return -inf if len(gains) < _SELDOM else -sum(gains) / len(gains)


def _split_of(form: Whole, box: _Box, away: Array, row: int) -> Split | None:
    """The split of a selection row with about half of the relaxation's weight on each side; None if no variable is fractional."""
    places = [variable for variable, _ in form.rows[row]]
    if box.figures is None or len(places) < 3 or not (away[places] > _NEAR).any() or any(box.lows[variable] for variable in places):
        return None
    before = np.cumsum(box.figures[places])[:-1]
    return Split(row, int(np.argmin(np.abs(before - 0.5))) + 1)


class TreeBox(Protocol):
    """A node of a branch-and-bound tree: what proves it as a leaf, or its branching and the places of both parts."""

    leaf: Leaf
    parts: tuple[int, int] | None

    @property
    def cut(self) -> Cut | None: ...


def tree_steps(boxes: Sequence[TreeBox]) -> list[Step]:
    """The tree in preorder, each branching before its children."""
    steps, left = list[Step](), [0] if boxes else []
    while left:
        box = boxes[left.pop()]
        if box.cut is None or box.parts is None:
            steps.append(box.leaf)
        else:
            steps.append(box.cut)
            left += [box.parts[1], box.parts[0]]
    return steps or [Leaf()]


def _scale_for(form: Whole) -> int:
    """A power of two at which rounding the multipliers hardly moves a bound."""
    widths = [max(abs(low), abs(high)) for low, high in zip(form.lows, form.highs, strict=True)]
    moved = sum(abs(factor) * widths[variable] for row in form.rows for variable, factor in row)
    return 1 << min((_FINE * max(moved, 1)).bit_length(), _LARGEST)


Tighten = Callable[[tuple[int, ...]], Model | None]
"""The model with additional rows that cut off a solution; None if the solution is valid."""


def as_it_is(values: tuple[int, ...]) -> None:
    """No additional rows."""
    del values


def trace(
    model: Model, claim: int | None = None, seconds: float = inf, most: int = 10_000, tighten: Tighten = as_it_is, leading: int = 0
) -> Traced:
    """A tree that proves that no solution is better than the claim; without a claim, an optimum with its proof.

    A better solution refutes the claim, unless `tighten` returns a model with additional rows that cut it off. The tree is about the last
    model. The first `leading` variables are branched on before the others, a few of them on trial."""
    process, key, deadline = SolverProcess("highs", f"highs {version('highspy')}"), next(KEYS), monotonic() + allowed(seconds, model)
    try:
        found: Traced = process.ask(begin, key, model, claim, deadline, most, leading, until=deadline)
        while found.stopped == "refuted" and found.values is not None:
            tightened = tighten(found.values)
            if tightened is None:
                break
            model = tightened
            found = process.ask(go_on, key, model, until=deadline)
    except LateError:
        return unproved(model)
    else:
        return found
    finally:
        process.forget(key)
        process.close()
