"""Monotone branch and bound over boxes of hardware points and lists of plans: exact, without a solver.

A step on the best device that a box can hold is at least as fast as on any device in it, so the objective there bounds the box from
below, plan by plan. The plan with the least bound is looked at first:

    take the box and the plans with the least bound; cut the box in parts; price the plans on the best device of each part;
    forget plans that do not fit or are bounded by the best value known; on a box of one point the bound is the value itself

until nothing is bounded below the best value. Where a box is cut is decided once, when it is first looked at, so that the cuts form one
tree for all plans. The tree is the certificate: whoever prices all plans down the same tree must forget every one of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count, pairwise
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.instances.codesign.boxes import Boxes, Grid, Kept, corners, parted, root_box, stacked, tightened
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import AnyPlans
from crossopt.solvers.answer import Progress, Watch
from crossopt.solvers.codesign.answer import answer_of
from crossopt.solvers.codesign.boxes.cuts import best_cuts, single
from crossopt.solvers.codesign.boxes.descent import found_from, least_of
from crossopt.solvers.codesign.boxes.incumbent import Incumbent, at_row, candidate_of
from crossopt.solvers.codesign.pricing import rows_of, values_of

_PLANS = 4096
"""Plans of a box that are looked at together; the others wait with their bounds."""
DECIDING = 4
"""Plans by which is decided where a box is cut."""
_TOGETHER = 16
"""Boxes that are looked at together: pricing a few designs takes as long as pricing thousands of them."""
_FEW = 512
"""Plans that wait in the boxes that are looked at together, if there is more than one."""


@dataclass(slots=True)
class Node:
    """A box in the tree of cuts."""

    box: Boxes
    split: "Split | None" = None

    @property
    def single(self) -> bool:
        return single(self.box)


@dataclass(frozen=True, slots=True)
class Split:
    """What a box keeps, and the box that does so with the parts that it loses."""

    kept: Kept
    parts: tuple[Node, ...]


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
    answered: Callable[[Best], Any] | None = None
    """The best one as an answer, for who keeps answers on the way."""

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

    rows: Whole
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
    search: PlanSearch = Search(root, start, answered=lambda best: answer_of(instance, candidate_of(space, best)))
    looks = count(1)

    def look(looked: Sequence[tuple[Node, Rows]]) -> None:
        first: list[tuple[Node, Rows]] = []
        for node, waiting in looked:
            if len(waiting) > _PLANS:
                search.wait(float(waiting.bounds[_PLANS]), node, waiting.part(slice(_PLANS, None)))
            first.append((node, waiting.part(slice(_PLANS))))
        _look(instance, space, search, first, plans)
        if seldom(next(looks), 4):
            _go_down(instance, space, search, plans, spend.deadline)

    _keep(search, root, plans, Rows(np.arange(len(plans)), bounds))
    best_first(search, look, len, watch, spend)
    return search


def seldom(look: int, factor: int) -> bool:
    """Whether to look for a better design after so many looks: after the second, and then after so many times as many as before."""
    at = 2
    while at < look:
        at *= factor
    return at == look


def _go_down(instance: Instance, space: Grid, search: PlanSearch, plans: AnyPlans, deadline: float) -> None:
    """Look for a better design in the box with the least bound."""
    if not search.heap or monotonic() >= deadline:
        return
    _, _, node, waiting = search.heap[0]
    found = found_from(instance, space, node.box, rows_of(plans, waiting.rows[:_PLANS]), search.best.value, deadline)
    if found is not None and found.value < search.best.value:
        search.best = found


def best_first(
    search: Search[Best, Waiting],
    look: Callable[[Sequence[tuple[Node, Waiting]]], None],
    size: Callable[[Waiting], int],
    watch: Watch,
    spend: Spend,
    together: int = _TOGETHER,
) -> None:
    """Look at the boxes with the least bounds until none is below the best value, or until gap, deadline or an interrupt.

    A look may end with a TimeoutError; what it looked at is then neither in the heap nor refuted."""
    began = monotonic()
    try:
        _show(search, watch)
        while search.heap and not _closed(search, spend):
            if monotonic() >= spend.deadline:
                search.stopped = "time limit"
                break
            search.looking = search.heap[0][0]
            look(_next(search, size, together))
            search.looking = float("inf")
            _tell(search, began, watch)
    except KeyboardInterrupt:
        search.stopped = "interrupted"
    except TimeoutError:
        search.stopped = "time limit"


def _next(search: Search[Best, Waiting], size: Callable[[Waiting], int], together: int) -> list[tuple[Node, Waiting]]:
    """Different boxes with the least bounds: one, or more if few plans wait in them."""
    looked: list[tuple[Node, Waiting]] = []
    count = 0
    while search.heap and len(looked) < together:
        bound, _, node, waiting = search.heap[0]
        count += size(waiting)
        if looked and (count > _FEW or not bound < search.best.value or any(node is other for other, _ in looked)):
            break
        heappop(search.heap)
        looked.append((node, waiting))
    return looked


def root_node(instance: Instance) -> Node:
    """The box of all points."""
    return Node(root_box(instance))


def split_nodes(instance: Instance, space: Grid, nodes: Sequence[Node], kept: Sequence[Kept]) -> list[Split]:
    """Cut boxes into what they keep and the parts that they lose."""
    parts = [parted(node.box, keeps) for node, keeps in zip(nodes, kept, strict=True)]
    boxes, at, splits = tightened(instance, space, stacked(parts)), 0, []
    for node, keeps, some in zip(nodes, kept, parts, strict=True):
        node.split = Split(keeps, tuple(Node(boxes.at(row)) for row in range(at, at + len(some))))
        splits.append(node.split)
        at += len(some)
    return splits


def parts_of(splits: Sequence[Split]) -> tuple[Boxes, list[slice]]:
    """The parts of all splits, and which are those of each."""
    ends = np.cumsum([0, *(len(split.parts) for split in splits)]).tolist()
    return stacked([part.box for split in splits for part in split.parts]), [slice(*pair) for pair in pairwise(ends)]


def _tell(search: Search[Best, Waiting], began: float, watch: Watch) -> None:
    """Note a new best value or bound, and show where the search stands."""
    best, bound = (value if value < float("inf") else None for value in (search.best.value, search.bound))
    if not search.trace or search.trace[-1][1:] != (best, bound):
        search.trace.append((monotonic() - began, best, bound))
    _show(search, watch)


def _show(search: Search[Best, Waiting], watch: Watch) -> None:
    """Tell where the search stands, with its best design."""
    best, bound = (value if value < float("inf") else None for value in (search.best.value, search.bound))
    answer = None if best is None or search.answered is None else partial(search.answered, search.best)
    boxes = f"{search.boxes:,} box{'es' * (search.boxes != 1)}"
    watch(Progress(f"{boxes}, {len(search.heap):,} open", best, bound, answer))


def _closed(search: Search[Best, Waiting], spend: Spend) -> bool:
    """Whether the bound is within the gap of the best value, or that value good enough."""
    bound, value = search.heap[0][0], search.best.value
    return bound >= value or value <= spend.target or (value < float("inf") and value - bound <= spend.gap * value)


def _look(instance: Instance, space: Grid, search: PlanSearch, looked: Sequence[tuple[Node, Rows]], plans: AnyPlans) -> None:
    """Bound the plans on the parts of the boxes."""
    new = [(node, waiting) for node, waiting in looked if node.split is None]
    if new:
        few = rows_of(plans, np.unique(np.concatenate([waiting.rows[:DECIDING] for _, waiting in new])))
        nodes = [node for node, _ in new]
        kept = best_cuts([node.box for node in nodes], least_of(instance, space, few), search.best.value)
        search.boxes += sum(len(split.parts) for split in split_nodes(instance, space, nodes, kept))
    splits = [node.split for node, _ in looked if node.split is not None]
    boxes, slices = parts_of(splits)
    every = np.unique(np.concatenate([waiting.rows for _, waiting in looked]))
    table = values_of(instance, corners(instance, space, boxes), rows_of(plans, every))
    for split, columns, (_, waiting) in zip(splits, slices, looked, strict=True):
        search.bounds += len(waiting) * len(split.parts)
        bounds = table[np.searchsorted(every, waiting.rows), columns]
        for part, column in zip(split.parts, bounds.T, strict=True):
            _keep(search, part, plans, Rows(waiting.rows, column))


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
