"""Co-design proved by branch and bound: all plans against the best chip there could be, a design to start from, and the search.

Plans come in blocks and are priced once on the best chip that the whole space can hold. Those that fit no chip, and those that even
there are no better than the design to start from, are gone before the search; `solvers.branch` has the rest. What is left of it is
the tree of its cuts, and `reread` goes down the same tree again to see that no design is below the bound.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic

import numpy as np

from crossflow.arrays import Array, Index
from instances.boxes import Grid, corners, grid, point_number, whole
from instances.instance import Instance
from instances.space import AnyPlans, plan_blocks
from solvers.branch import Cut, Node, Search, Spend, branch, dive, root_node, split_node
from solvers.designs import Candidate
from solvers.incumbent import Incumbent, improved
from solvers.pricing import joined, rows_of, values_of
from solvers.watching import Watch

_PROMISING = 4096
"""Plans among which the design to start from is sought."""

Trace = tuple[tuple[float, float | None, float | None], ...]
Cuts = tuple[tuple[int, int] | None, ...]
"""The tree from the root, each box before its parts: choice and place of its cut, None for a box that is not cut."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the search saw."""

    best: Candidate | None
    value: float | None
    bound: float | None
    """No design is below this; infinite where there is none, None where too little was looked at to say."""
    plans: int
    fitting: int
    """Plans that fit the best chip there could be."""
    promising: int
    """Plans that would be below the bound on that chip."""
    cuts: Cuts
    trace: Trace
    stopped: str


@dataclass(frozen=True, slots=True)
class Reread:
    """What a reader of the tree sees."""

    cuts: Cuts
    plans: int
    fitting: int
    """Plans that fit the best chip there could be."""
    promising: int
    """Plans that would be below the bound on that chip."""
    faults: tuple[str, ...]
    """Why the tree does not prove the bound; nothing if it does."""


@dataclass(slots=True)
class _Survey:
    """The plans on the best chip there could be."""

    bounds: list[Array]
    """Of every block."""
    pool: AnyPlans
    """The plans with the least bounds."""
    complete: bool = False

    def every(self) -> Array:
        return np.concatenate([np.zeros(0), *self.bounds])


@dataclass(frozen=True, slots=True)
class Survivors:
    """The plans that may still be better than a design to start from."""

    space: Grid
    root: Node
    start: Incumbent
    every: Array
    """The bound of every plan on the best chip there could be."""
    plans: AnyPlans
    """Those bounded below the start, and their bounds; none where the time was too short to look at all."""
    bounds: Array
    complete: bool


def survivors(instance: Instance, deadline: float, within: float | None = None) -> Survivors:
    """Price every plan on the best chip there could be, find a design to start from, and keep the plans that may be better.

    With `within` those stay as well that may be up to this share above it.
    """
    space = grid(instance)
    root = root_node(instance, space)
    survey = _survey(instance, space, root, deadline)
    start, every = _start(instance, space, survey.pool), survey.every()
    below = start.value if within is None else float(np.nextafter(start.value * (1.0 + within), np.inf))
    blocks = _rows_of_blocks(instance, survey.bounds, below) if survey.complete else iter(())
    plans = joined([rows_of(block, rows) for block, rows in blocks])
    return Survivors(space, root, start, every, plans, every[every < below] if survey.complete else np.zeros(0), survey.complete)


def search(instance: Instance, watch: Watch, spend: Spend) -> Found:
    """The least design, or the best one found in time with a bound on all others."""
    began = monotonic()
    left = survivors(instance, spend.deadline)
    space, root, start, every = left.space, left.root, left.start, left.every
    least = float(every.min(initial=np.inf))
    first = ((monotonic() - began, _finite(start.value), _finite(least) if left.complete else None),)
    if not left.complete:
        return _found(space, every, Search(root, start, stopped="time limit"), None, first)
    searched = branch(instance, space, root, left.plans, left.bounds, start, watch, spend)
    offset = monotonic() - began
    trace = (*first, *((seconds + offset, value, bound) for seconds, value, bound in searched.trace))
    return _found(space, every, searched, searched.bound, trace)


def reread(instance: Instance, cuts: Cuts, bound: float) -> Reread:
    """Whether the tree proves the bound.

    All plans are priced on the best chip of each box; whoever is below the bound goes on into the parts of the box, and nobody may be left
    in a box that is not cut.
    """
    space = grid(instance)
    root, left = root_node(instance, space), iter(cuts)
    chip = corners(instance, space, root.box)
    kept, plans, fitting = [], 0, 0
    for block in plan_blocks(instance):
        values = values_of(instance, chip, block)[:, 0]
        plans, fitting = plans + len(values), fitting + int(np.isfinite(values).sum())
        kept.append(rows_of(block, np.flatnonzero(values < bound)))
    promising = joined(kept)
    try:
        faults = _refuted(instance, space, root, promising, bound, left)
    except StopIteration:
        faults = ("the tree of cuts ends too early",)
    except RecursionError:  # a search cuts some tens of times from the root down; only a made-up tree is deeper
        return Reread(cuts, plans, fitting, len(promising), ("the tree of cuts is too deep to follow",))
    if next(left, _END) is not _END and not faults:
        faults = ("the tree of cuts is longer than its boxes",)
    return Reread(cuts, plans, fitting, len(promising), faults)


_END = object()


def _refuted(
    instance: Instance, space: Grid, node: Node, plans: AnyPlans, bound: float, left: Iterator[tuple[int, int] | None]
) -> tuple[str, ...]:
    """The same for one box, whose cut is next."""
    cut = next(left)
    if cut is None:
        return (f"{len(plans)} plans are not bounded by {bound!r} in a box that is not cut",) if len(plans) else ()
    choice, place = cut
    if not (0 <= choice < len(space.sizes) and node.box.low[0, choice] <= place < node.box.high[0, choice]):
        return (f"choice {choice} cannot be cut at {place}",)
    split = split_node(instance, space, node, Cut(choice, place))
    table = values_of(instance, split.corners, plans)
    faults: tuple[str, ...] = ()
    for column, part in enumerate(split.parts):
        faults += _refuted(instance, space, part, rows_of(plans, np.flatnonzero(table[:, column] < bound)), bound, left)
    return faults


def _survey(instance: Instance, space: Grid, root: Node, deadline: float) -> _Survey:
    """Price all plans on the best chip, until the deadline."""
    chip = corners(instance, space, root.box)
    survey, pooled = _Survey([], ()), np.zeros(0)
    for block in plan_blocks(instance):
        bounds = values_of(instance, chip, block)[:, 0]
        survey.bounds.append(bounds)
        finite = np.flatnonzero(np.isfinite(bounds))
        together = np.concatenate([pooled, bounds[finite]])
        best = np.sort(np.argsort(together, kind="stable")[:_PROMISING])
        survey.pool, pooled = rows_of(joined([survey.pool, rows_of(block, finite)]), best), together[best]
        if monotonic() >= deadline:
            return survey
    survey.complete = True
    return survey


def _start(instance: Instance, space: Grid, pool: AnyPlans) -> Incumbent:
    """The design to start from: down into the best boxes, then steps that lower the value."""
    places = dive(instance, space, pool) if len(pool) else None
    if places is None:
        return Incumbent(float("inf"), whole(space).low[0], None)
    return improved(instance, space, pool, places)


def _rows_of_blocks(instance: Instance, bounds: list[Array], value: float) -> Iterator[tuple[AnyPlans, Index]]:
    """The blocks again, with the rows of plans bounded below the value; nothing where there is none."""
    if not any((block < value).any() for block in bounds):
        return
    for block, values in zip(plan_blocks(instance), bounds, strict=True):
        rows = np.flatnonzero(values < value)
        if len(rows):
            yield block, rows


def _found(space: Grid, every: Array, searched: Search, bound: float | None, trace: Trace) -> Found:
    best = searched.best
    return Found(
        best=Candidate(point_number(space, best.places), best.plan) if best.plan else None,
        value=_finite(best.value),
        bound=bound,
        plans=len(every),
        fitting=int(np.isfinite(every).sum()),
        promising=0 if bound is None else int((every < bound).sum()),
        cuts=tuple(_cuts(searched.root)),
        trace=trace,
        stopped=searched.stopped,
    )


def _cuts(node: Node) -> Iterator[tuple[int, int] | None]:
    """The tree from a box down, without the boxes' sizes: they follow from the cuts."""
    yield (node.split.cut.choice, node.split.cut.place) if node.split else None
    for part in node.split.parts if node.split else ():
        yield from _cuts(part)


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None
