"""Monotone branch and bound over boxes of hardware points and lists of plans: exact, without a solver.

A step on the best device that a box can hold is at least as fast as on any device in it, so the objective there bounds the box from
below, plan by plan. The plan with the least bound is looked at first:

    take the box and the plans with the least bound; cut the box in two; price the plans on the best device of either part;
    forget plans that do not fit or are bounded by the best value known; on a box of one point the bound is the value itself

until nothing is bounded below the best value. Where a box is cut is decided once, when it is first looked at, so that the cuts form one
tree for all plans. The tree is the certificate: whoever prices all plans down the same tree must forget every one of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from time import monotonic
from typing import Generic, Protocol, TypeVar

import numpy as np

from crossflow.arrays import Array, Index
from instances.boxes import Boxes, Corners, Grid, corners, halves, tightened, whole
from instances.instance import Instance
from instances.space import AnyPlans
from solvers.incumbent import Incumbent, at_row
from solvers.pricing import rows_of, values_of
from solvers.watching import Progress, Watch

_PLANS = 4096
"""Plans of a box that are looked at together; the others wait with their bounds."""
DIVING = 16
"""Plans that decide the way of a dive."""
DECIDING = 4
"""Plans by which is decided where a box is cut."""
_CUTS = 32
"""Cuts of one choice that are tried."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A box in two: places of one choice up to `place`, and above it."""

    choice: int
    place: int


@dataclass(slots=True)
class Node:
    """A box in the tree of cuts."""

    box: Boxes
    split: "Split | None" = None

    @property
    def single(self) -> bool:
        return bool((self.box.low == self.box.high).all())


@dataclass(frozen=True, slots=True)
class Split:
    """Where a box is cut, and its two parts with the best device of either."""

    cut: Cut
    parts: tuple[Node, Node]
    corners: Corners


class Valued(Protocol):
    """A design by its value, which is infinite where there is none."""

    @property
    def value(self) -> float: ...


Best = TypeVar("Best", bound=Valued)
Waiting = TypeVar("Waiting")


@dataclass(slots=True)
class Search(Generic[Best, Waiting]):
    """Where a search stands: boxes with what waits in each to be looked at."""

    root: Node
    best: Best
    heap: list[tuple[float, int, Node, Waiting]] = field(default_factory=list)
    looking: float = float("inf")
    """The least bound of what is being looked at; an interrupt leaves it neither in the heap nor refuted."""
    order: "count[int]" = field(default_factory=count)
    boxes: int = 1
    bounds: int = 0
    """Plans bounded, all boxes together."""
    trace: list[tuple[float, float | None, float | None]] = field(default_factory=list)
    stopped: str = "complete"

    @property
    def bound(self) -> float:
        """No design is below this."""
        return min(self.best.value, self.looking, self.heap[0][0] if self.heap else float("inf"))

    def wait(self, bound: float, node: Node, waiting: Waiting) -> None:
        """Look at this later."""
        heappush(self.heap, (bound, next(self.order), node, waiting))


@dataclass(frozen=True, slots=True)
class Rows:
    """Plans by their rows, and their bounds, ascending."""

    rows: Index
    bounds: Array

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, which: slice) -> "Rows":
        """Some of them."""
        return Rows(self.rows[which], self.bounds[which])


PlanSearch = Search[Incumbent, Rows]


@dataclass(frozen=True, slots=True)
class Spend:
    """How long to search, and how close."""

    deadline: float = float("inf")
    """Of the monotonic clock."""
    gap: float = 0.0
    """(value - bound) / value that is close enough."""
    target: float = -float("inf")
    """A design of at most this value is good enough."""


def branch(
    instance: Instance, space: Grid, root: Node, plans: AnyPlans, bounds: Array, start: Incumbent, watch: Watch, spend: Spend
) -> PlanSearch:
    """Search until no plan on any box is bounded below the best value, or until gap or deadline; `bounds` are those on the root."""
    search: PlanSearch = Search(root, start)

    def look(node: Node, waiting: Rows) -> None:
        if len(waiting) > _PLANS:
            search.wait(float(waiting.bounds[_PLANS]), node, waiting.part(slice(_PLANS, None)))
        _look(instance, space, search, node, waiting.part(slice(_PLANS)), plans)

    _keep(search, root, plans, Rows(np.arange(len(plans)), bounds))
    best_first(search, look, watch, spend)
    return search


def best_first(search: Search[Best, Waiting], look: Callable[[Node, Waiting], None], watch: Watch, spend: Spend) -> None:
    """Look at the box with the least bound until none is below the best value, or until gap, deadline or an interrupt."""
    began = monotonic()
    try:
        while search.heap and not _closed(search, spend):
            if monotonic() >= spend.deadline:
                search.stopped = "time limit"
                break
            search.looking = search.heap[0][0]
            _, _, node, waiting = heappop(search.heap)
            look(node, waiting)
            search.looking = float("inf")
            _tell(search, began, watch)
    except KeyboardInterrupt:
        search.stopped = "interrupted"


def root_node(instance: Instance, space: Grid) -> Node:
    """The box of all points."""
    return Node(tightened(instance, space, whole(space)))


def split_node(instance: Instance, space: Grid, node: Node, cut: Cut) -> Split:
    """Cut a box in two."""
    box = tightened(instance, space, halves(node.box, cut.choice, cut.place))
    split = Split(cut, (Node(box.at(0)), Node(box.at(1))), corners(instance, space, box))
    node.split = split
    return split


def _tell(search: Search[Best, Waiting], began: float, watch: Watch) -> None:
    """Note a new best value or bound, and show where the search stands."""
    best, bound = (value if value < float("inf") else None for value in (search.best.value, search.bound))
    if not search.trace or search.trace[-1][1:] != (best, bound):
        search.trace.append((monotonic() - began, best, bound))
    watch(Progress(f"{search.boxes:,} boxes, {len(search.heap):,} open", best, bound))


def _closed(search: Search[Best, Waiting], spend: Spend) -> bool:
    """Whether the bound is within the gap of the best value, or that value good enough."""
    bound, value = search.heap[0][0], search.best.value
    return bound >= value or value <= spend.target or (value < float("inf") and value - bound <= spend.gap * value)


def _look(instance: Instance, space: Grid, search: PlanSearch, node: Node, waiting: Rows, plans: AnyPlans) -> None:
    """Bound the plans on the parts of the box."""
    chosen, split = rows_of(plans, waiting.rows), node.split
    if split is None:
        few = rows_of(plans, waiting.rows[:DECIDING])
        split = split_node(instance, space, node, best_cut(space, node, _least(instance, space, few), search.best.value))
        search.boxes += 2
    bounds = values_of(instance, split.corners, chosen)
    for column, part in enumerate(split.parts):
        search.bounds += len(waiting)
        _keep(search, part, plans, Rows(waiting.rows, bounds[:, column]))


def _least(instance: Instance, space: Grid, plans: AnyPlans) -> Callable[[Boxes], Array]:
    """The least bound of the plans on each of some boxes."""
    return lambda boxes: values_of(instance, corners(instance, space, boxes), plans).min(axis=0)


def _keep(search: PlanSearch, node: Node, plans: AnyPlans, found: Rows) -> None:
    """Keep the plans that may be better than the best; on a single point the least is the new best."""
    bounds = found.bounds
    if node.single:
        least = int(np.argmin(bounds)) if len(bounds) else 0
        if len(bounds) and bounds[least] < search.best.value:
            search.best = at_row(float(bounds[least]), node.box.low[0], plans, int(found.rows[least]))
        return
    kept = np.flatnonzero(bounds < search.best.value)
    if len(kept):
        kept = kept[np.argsort(bounds[kept], kind="stable")]
        search.wait(float(bounds[kept[0]]), node, Rows(found.rows[kept], bounds[kept]))


def best_cut(space: Grid, node: Node, least: Callable[[Boxes], Array], value: float) -> Cut:
    """Where to cut: the largest part that can be forgotten at once; if there is none, in the middle of the choice that tells most.

    Cuts of every choice are tried by their least bounds. The upper part keeps the best device, but not its price and power; a choice
    tells the more, the higher the bounds of both parts together.
    """
    cuts = [Cut(choice, place) for choice in range(len(space.sizes)) for place in _places(node.box, choice)]
    choices, places = (np.array([getattr(cut, name) for cut in cuts]) for name in ("choice", "place"))
    low, high = np.repeat(node.box.low, 2 * len(cuts), axis=0), np.repeat(node.box.high, 2 * len(cuts), axis=0)
    every = np.arange(len(cuts))
    high[every, choices], low[every + len(cuts), choices] = places, places + 1
    lower, upper = least(Boxes(low, high)).reshape(2, -1)
    first, last = node.box.low[0, choices], node.box.high[0, choices]
    share = (places - first + 1) / (last - first + 1)
    forgotten = np.where(lower >= value, share, 0.0) + np.where(upper >= value, 1.0 - share, 0.0)
    if forgotten.any():
        return cuts[int(np.argmax(forgotten))]
    return cuts[int(np.argmax(np.where(places == (first + last) // 2, lower + upper, -np.inf)))]


def _places(box: Boxes, choice: int) -> list[int]:
    """Where a choice may be cut: after every option, or after some thirty of them and the middle one."""
    low, high = int(box.low[0, choice]), int(box.high[0, choice])
    step = max(1, (high - low) // _CUTS)
    return sorted({*range(low, high, step), (low + high) // 2}) if low < high else []


def dive(instance: Instance, space: Grid, node: Node, plans: AnyPlans) -> Index | None:
    """A chip that keeps the budgets: the better part of every box, from this one down to one point. None where no chip does."""
    chosen = plans
    bounds = values_of(instance, corners(instance, space, node.box), chosen).min(axis=1)
    while not node.single:
        if not np.isfinite(bounds).any():
            return None
        chosen = rows_of(chosen, np.argsort(bounds, kind="stable")[:DIVING])
        split = split_node(instance, space, node, best_cut(space, node, _least(instance, space, chosen), np.inf))
        table = values_of(instance, split.corners, chosen)
        better = int(table[:, 1].min() <= table[:, 0].min())
        node, bounds = split.parts[better], table[:, better]
    return node.box.low[0] if np.isfinite(bounds).any() else None
