"""Co-design proved by branch and bound: all plans against the best chip there could be, a design to start from, and the search.

Plans come in blocks and are priced once on the best chip that the whole space can hold. Those that fit no chip, and those that even
there are no better than the design to start from, are gone before the search; `solvers.branch` has the rest. What is left of it is
the tree of its cuts, and `reread` goes down the same tree again to see that no design is below the bound.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar

import numpy as np

from crossflow.arrays import Array, Mask
from instances.boxes import Grid, corners, grid, point_number, whole
from instances.instance import Instance
from instances.space import AnyPlans, plan_blocks
from solvers.branch import Cut, Node, PlanSearch, Search, Spend, Split, branch, dive, root_node, split_node
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
class Survey:
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


def survivors(instance: Instance, deadline: float) -> Survivors:
    """Price every plan on the best chip there could be, find a design to start from, and keep the plans that may be better."""
    space = grid(instance)
    root = root_node(instance, space)
    survey = survey_of(instance, space, root, deadline)
    start, every = _start(instance, space, survey.pool), survey.every()
    plans = kept_plans(instance, [block < start.value for block in survey.bounds] if survey.complete else [])
    return Survivors(space, root, start, every, plans, every[every < start.value] if survey.complete else np.zeros(0), survey.complete)


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
    root = root_node(instance, space)
    chip = corners(instance, space, root.box)
    kept, plans, fitting = [], 0, 0
    for block in plan_blocks(instance):
        values = values_of(instance, chip, block)[:, 0]
        plans, fitting = plans + len(values), fitting + int(np.isfinite(values).sum())
        kept.append(rows_of(block, np.flatnonzero(values < bound)))
    promising = joined(kept)

    def left_over(plans: AnyPlans) -> tuple[str, ...]:
        return (f"{len(plans)} plans are not bounded by {bound!r} in a box that is not cut",) if len(plans) else ()

    def parted(split: Split, plans: AnyPlans) -> list[AnyPlans]:
        table = values_of(instance, split.corners, plans)
        return [rows_of(plans, np.flatnonzero(column < bound)) for column in table.T]

    return Reread(cuts, plans, fitting, len(promising), tree_faults(instance, space, root, cuts, promising, left_over, parted))


Left = TypeVar("Left")
"""What is left of the plans in a box."""


def tree_faults(
    instance: Instance,
    space: Grid,
    root: Node,
    cuts: Cuts,
    left: Left,
    left_over: Callable[[Left], tuple[str, ...]],
    parted: Callable[[Split, Left], Sequence[Left]],
) -> tuple[str, ...]:
    """Why a tree does not refute what is left at its root: `parted` hands it on to the parts of a box, `left_over` says what a box that
    is not cut leaves open."""
    rest = iter(cuts)

    def faults_in(node: Node, left: Left) -> tuple[str, ...]:
        cut = next(rest)
        if cut is None:
            return left_over(left)
        choice, place = cut
        if not (0 <= choice < len(space.sizes) and node.box.low[0, choice] <= place < node.box.high[0, choice]):
            return (f"choice {choice} cannot be cut at {place}",)
        split = split_node(instance, space, node, Cut(choice, place))
        faults: tuple[str, ...] = ()
        for part, some in zip(split.parts, parted(split, left), strict=True):
            faults += faults_in(part, some)
        return faults

    try:
        faults = faults_in(root, left)
    except StopIteration:
        return ("the tree of cuts ends too early",)
    except RecursionError:  # a search cuts some tens of times from the root down; only a made-up tree is deeper
        return ("the tree of cuts is too deep to follow",)
    return faults or (("the tree of cuts is longer than its boxes",) if next(rest, _END) is not _END else ())


_END = object()


def survey_of(instance: Instance, space: Grid, root: Node, deadline: float) -> Survey:
    """Price all plans on the best chip, until the deadline."""
    chip = corners(instance, space, root.box)
    survey, pooled = Survey([], ()), np.zeros(0)
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


def kept_plans(instance: Instance, kept: Sequence[Mask]) -> AnyPlans:
    """The blocks of plans again, of each the plans that are kept; none where nothing was kept."""
    if not any(block.any() for block in kept):
        return joined([])
    blocks = zip(plan_blocks(instance), kept, strict=True)
    return joined([rows_of(plans, np.flatnonzero(which)) for plans, which in blocks if which.any()])


def _found(space: Grid, every: Array, searched: PlanSearch, bound: float | None, trace: Trace) -> Found:
    best = searched.best
    return Found(
        best=Candidate(point_number(space, best.places), best.plan) if best.plan else None,
        value=_finite(best.value),
        bound=bound,
        plans=len(every),
        fitting=int(np.isfinite(every).sum()),
        promising=0 if bound is None else int((every < bound).sum()),
        cuts=tuple(cuts_of(searched.root)),
        trace=trace,
        stopped=searched.stopped,
    )


def cuts_of(node: Node) -> Iterator[tuple[int, int] | None]:
    """The tree from a box down, without the boxes' sizes: they follow from the cuts."""
    yield (node.split.cut.choice, node.split.cut.place) if node.split else None
    for part in node.split.parts if node.split else ():
        yield from cuts_of(part)


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None
