"""Several workloads proved by branch and bound: all plans on the best chip there could be, a design to start from, and the search.

What is left of it is one tree of cuts for all workloads; `reread` goes down the same tree to see that no design is below the bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Mask
from crossopt.instances.codesign.boxes import Grid, grid, point_number
from crossopt.instances.codesign.plans.groups import family_blocks, members
from crossopt.instances.codesign.space import plan_blocks
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Watch, unwatched
from crossopt.solvers.codesign.answer import Candidate
from crossopt.solvers.codesign.boxes.branch import Rows, Search, Spend, Split, root_node
from crossopt.solvers.codesign.boxes.monotonicity import refuse_broken_bounds
from crossopt.solvers.codesign.boxes.search import Cuts, Survey, Trace, cuts_of, kept_heads, kept_plans, survey_of, tree_faults
from crossopt.solvers.codesign.combined.workloads.bounding import bounded
from crossopt.solvers.codesign.combined.workloads.branch import JointSearch, branch
from crossopt.solvers.codesign.combined.workloads.combined import below, chips_of, in_place
from crossopt.solvers.codesign.combined.workloads.incumbent import found_from
from crossopt.solvers.codesign.objective import Joint, combined
from crossopt.solvers.codesign.pricing import rows_of, values_of


@dataclass(frozen=True, slots=True)
class Looked:
    """What is seen on the best chip there could be, workload by workload."""

    plans: tuple[int, ...]
    groups: tuple[int, ...]
    """Groups of plans that differ in their concessions only."""
    promising: tuple[int, ...]
    """Plans with which the figure would be below the bound there."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the search saw."""

    best: tuple[Candidate, ...]
    """A design for each workload, all on one chip; none where there is none."""
    value: float | None
    bound: float | None
    """No design is below this; infinite where there is none, None where too little was looked at to say."""
    looked: Looked
    cuts: Cuts
    trace: Trace
    stopped: str


@dataclass(frozen=True, slots=True)
class Reread:
    """What a reader of the tree sees."""

    looked: Looked
    cuts: Cuts
    faults: tuple[str, ...]
    """Why the tree does not prove the bound; nothing if it does."""


def search(asked: Joint, watch: Watch, spend: Spend) -> Found:
    """The least design, or the best one found in time with a bound on all others."""
    began = monotonic()
    for part in asked.parts:
        refuse_broken_bounds(part)
    space = grid(asked.parts[0])
    root = root_node(asked.parts[0])
    chips = chips_of(asked, space, root.box)
    surveys = [survey_of(part, chip, spend.deadline) for part, chip in zip(asked.parts, chips, strict=True)]
    pools = [members(part, one.pool) for part, one in zip(asked.parts, surveys, strict=True)]
    start = found_from(asked, space, root.box, pools, float("inf"), spend.deadline)
    minima = [float(one.every().min(initial=np.inf)) for one in surveys]
    least = float(combined(asked, [np.float64(value) for value in minima]))
    complete = all(survey.complete for survey in surveys)
    first = ((monotonic() - began, _finite(start.value), _finite(least) if complete else None),)
    if not complete:
        return _found(asked, space, surveys, (), Search(root, start, stopped="time limit"), None, first)
    kept = [[in_place(asked, minima, place, block) < start.value for block in one.bounds] for place, one in enumerate(surveys)]
    plans = [members(part, kept_heads(part, one, which)) for part, one, which in zip(asked.parts, surveys, kept, strict=True)]
    every = [values_of(part, chip, some)[:, 0] for part, chip, some in zip(asked.parts, chips, plans, strict=True)]
    lists = [_sorted(bounds, bounds < np.inf) for bounds in every]
    plans = [rows_of(some, np.flatnonzero(bounds < np.inf)) for some, bounds in zip(plans, every, strict=True)]
    offset = monotonic() - began
    searched = branch(asked, space, root, plans, below(asked, lists, start.value), start, watch, spend)
    trace = (*first, *((seconds + offset, value, bound) for seconds, value, bound in searched.trace))
    return _found(asked, space, surveys, every, searched, searched.bound, trace)


def reread(asked: Joint, cuts: Cuts, bound: float, watch: Watch = unwatched) -> Reread:
    """Whether the tree proves the bound: whatever plans may be below it go on into the parts of a box, and none may be left in a box
    that is not cut."""
    try:
        for part in asked.parts:
            refuse_broken_bounds(part)
    except RefusedError as error:
        none = (0,) * len(asked.parts)
        return Reread(Looked(none, none, none), cuts, (str(error),))
    space = grid(asked.parts[0])
    root = root_node(asked.parts[0])
    chips = chips_of(asked, space, root.box)
    blocks = [[values_of(part, chip, block)[:, 0] for block in plan_blocks(part)] for part, chip in zip(asked.parts, chips, strict=True)]
    every = [np.concatenate([np.zeros(0), *part]) for part in blocks]
    minima = [float(bounds.min(initial=np.inf)) for bounds in every]
    kept = [[in_place(asked, minima, place, block) < bound for block in part] for place, part in enumerate(blocks)]
    plans = [kept_plans(part, which) for part, which in zip(asked.parts, kept, strict=True)]
    lists = tuple(_sorted(bounds, np.concatenate([np.zeros(0, bool), *which])) for bounds, which in zip(every, kept, strict=True))

    def left_over(left: tuple[Rows, ...]) -> tuple[str, ...]:
        counts = " x ".join(str(len(rows)) for rows in left)
        return (f"{counts} plans are not bounded by {bound!r} in a box that is not cut",) if all(map(len, left)) else ()

    def parted(split: Split, left: tuple[Rows, ...]) -> list[tuple[Rows, ...]]:
        if not all(map(len, left)):
            return [left] * len(split.parts)
        [found] = bounded(asked, space, [split], plans, [left], bound)
        return found

    faults = tree_faults(asked.parts[0], space, root, cuts, lists, left_over, parted, watch)
    groups = tuple(sum(len(block) for block in family_blocks(part)) for part in asked.parts)
    return Reread(Looked(tuple(map(len, every)), groups, _promising(asked, every, bound)), cuts, faults)


def _sorted(bounds: Array, kept: Mask) -> Rows:
    """The plans that are kept, by their rows among those kept, in ascending order of their bounds."""
    bounds = bounds[kept]
    order = np.argsort(bounds, kind="stable")
    return Rows(order, bounds[order])


def _promising(asked: Joint, every: Sequence[Array], bound: float) -> tuple[int, ...]:
    """With how many plans of each workload the figure may be below the bound. Those of groups that cannot may be missing."""
    minima = [float(bounds.min(initial=np.inf)) for bounds in every]
    return tuple(int(np.count_nonzero(in_place(asked, minima, place, bounds) < bound)) for place, bounds in enumerate(every))


def _found(
    asked: Joint,
    space: Grid,
    surveys: Sequence[Survey],
    every: Sequence[Array],
    searched: JointSearch,
    bound: float | None,
    trace: Trace,
) -> Found:
    promising = (0,) * len(surveys) if bound is None else _promising(asked, every, bound)
    looked = Looked(tuple(one.plans for one in surveys), tuple(len(one.every()) for one in surveys), promising)
    best = searched.best
    point = point_number(space, best.places) if best.plans else 0
    return Found(
        best=tuple(Candidate(point, plan) for plan in best.plans),
        value=_finite(best.value),
        bound=bound,
        looked=looked,
        cuts=tuple(cuts_of(searched.root)),
        trace=trace,
        stopped=searched.stopped,
    )


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None
