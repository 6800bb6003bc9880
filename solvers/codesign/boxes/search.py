"""A look, before anything is proved by boxes, at whether their bounds hold on this very question.

A box is bounded by the best chip that it could hold, which holds because time never rises when a resource grows. Tests hold every
registered technology to that; a user's technology is untested. Points are drawn at random in boxes drawn at random, and priced as their
boxes are bounded, with a few plans, with and without limits. A value below a bound says that the bounds prove nothing here. That none
is found proves nothing either; but a model that is not monotone in a choice is found by a few points.

Likewise a group of plans is bounded by its head, the plan with the least of each concession: drawn plans are held against the heads of
their groups, on drawn chips and on the best ones of drawn boxes. What is proved in the end, `check` proves anew with all plans.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from time import monotonic
from typing import TypeVar

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.crossflow.hardware import Budget, Hardware
from crossopt.crossflow.plan import CONCESSIONS, Plans, plan_at
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.boxes import Boxes, Corners, Grid, Ranges, corners, grid
from crossopt.instances.codesign.instance import FreeHardware, Instance, remembered
from crossopt.instances.codesign.known_errors import close_call_error
from crossopt.instances.codesign.plan_choices import codes_of, with_settings
from crossopt.instances.codesign.plan_groups import concessions_of, family_blocks, members
from crossopt.instances.codesign.space import AnyPlans, draw_plans, plan_blocks
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Progress, Watch, unwatched
from crossopt.solvers.codesign.answer import Candidate
from crossopt.solvers.codesign.boxes.branch import (
    Incumbent,
    Node,
    PlanSearch,
    Search,
    Spend,
    Split,
    at_row,
    branch,
    candidate_of,
    found_from,
    incumbent_of,
    parts_of,
    root_node,
    split_nodes,
)
from crossopt.solvers.codesign.objective import head_values_of, joined, near_members, rows_of, values_of

_BOXES = 64
_PLANS = 6
_DRAWN = 1024
_MEMBERS = 96
_CHIPS = 4


@remembered
def refuse_broken_bounds(instance: Instance) -> None:
    """A RefusedError that names a choice, where a design is found below the bound of a box or of a group of plans that holds it."""
    sampled = _sampled_plans(instance)
    for name in {instance.objective: None, **dict(instance.ceilings)}:
        _refuse_broken_bounds_of(replace(instance, objective=name), sampled)


def _refuse_broken_bounds_of(instance: Instance, sampled: AnyPlans) -> None:
    """Refuse broken bounds on one of the figures."""
    space, random = grid(instance), np.random.default_rng(0)
    _refuse_faster_members(instance, space, _spread_out(sampled, _MEMBERS), np.random.default_rng(1))
    if isinstance(instance.hardware, Hardware) or not instance.hardware.options:
        return
    ends = [np.sort(random.integers(size, size=(2, _BOXES)), axis=0) for size in space.sizes]
    low, high = (np.stack([pair[end] for pair in ends], axis=1) for end in (0, 1))
    points = random.integers(low, high + 1)
    plans = _spread_out(sampled, _PLANS)
    for question in (instance, _without_limits(instance)):
        below = _below(question, space, plans, low, high, points)
        if below.any():
            box = int(np.argmax(below))
            raise RefusedError(_text(question, _guilty(question, space, plans, low[box], high[box], points[box])))


def _refuse_faster_members(instance: Instance, space: Grid, sampled: AnyPlans, random: np.random.Generator) -> None:
    """Drawn plans beside the heads of their groups, without limits, which may not hide a plan."""
    if not isinstance(sampled, Plans) or not len(sampled):
        return
    names = concessions_of(instance)
    ends = [np.sort(random.integers(size, size=(2, _CHIPS)), axis=0) for size in space.sizes]
    low, high = (np.array([pair[end] for pair in ends], np.int64).reshape(len(ends), _CHIPS).T for end in (0, 1))
    question = _without_limits(instance)
    chips = corners(question, space, Boxes(np.concatenate([low, low]), np.concatenate([low, high])))
    heads = with_settings(sampled, {name: CONCESSIONS[name](codes_of(instance, name)) for name in names})
    bounds, values = np.split(values_of(question, chips, joined([heads, sampled])), 2)
    faster = (bounds > values).any(axis=1)
    if faster.any():
        plan, what = plan_at(sampled, int(np.argmax(faster))), instance.objective.replace("_", " ")
        settings = ", ".join(f"{name} {getattr(plan, name)}" for name in names)
        raise RefusedError(f"no bound can be proved: {settings} has less {what} than the least of each; use --engine exhaustive")


def _sampled_plans(instance: Instance) -> AnyPlans:
    """Plans drawn once for all looks: to draw them takes as long as to price them."""
    if isinstance(instance.workload, Transformer):
        return draw_plans(instance, np.random.default_rng(0), _DRAWN)
    return next((block for block in plan_blocks(instance) if len(block)), ())


def _spread_out(plans: AnyPlans, most: int) -> AnyPlans:
    """So many of them at equal distances, as they are sorted by their settings; all if there are no more."""
    return rows_of(plans, np.arange(most) * len(plans) // most if len(plans) > most else np.arange(len(plans)))


def _without_limits(instance: Instance) -> Instance:
    """The question with room for every plan on every chip and in its host, so that no limit hides a value."""
    host = instance.hardware.host and replace(instance.hardware.host, capacity=float("inf"))
    return replace(instance, budget=Budget(), ceilings=(), hardware=replace(instance.hardware, host=host, reserved_memory=-float("inf")))


def _below(instance: Instance, space: Grid, plans: AnyPlans, low: Ints, high: Ints, points: Ints) -> Array:
    """In which boxes the point is below the bound with some plan."""
    every = Boxes(np.concatenate([low, points]), np.concatenate([high, points]))
    bounds, values = np.split(values_of(instance, corners(instance, space, every), plans), 2, axis=1)
    return np.asarray((values < bounds).any(axis=0))


def _guilty(instance: Instance, space: Grid, plans: AnyPlans, low: Ints, high: Ints, point: Ints) -> tuple[str, ...]:
    """The choices that break the bound alone, the others being at the point; all that are open in the box if it takes several."""
    count = len(space.sizes)
    points, diagonal = np.repeat(point[None], count, axis=0), np.eye(count, dtype=bool)
    alone = _below(instance, space, plans, np.where(diagonal, low, points), np.where(diagonal, high, points), points)
    broken = alone if alone.any() else low < high
    return tuple(name for name, holds in zip(space.names, broken, strict=True) if holds)


def _text(instance: Instance, choices: tuple[str, ...]) -> str:
    free = instance.hardware
    technology = free.technology.name if isinstance(free, FreeHardware) else free.name
    what, where = instance.objective.replace("_", " "), ", ".join(choices)
    return f"no bound can be proved: the model's {what} rises with {where} on the technology {technology}; use --engine exhaustive"


# Co-design proved by branch and bound: all plans against the best chip there could be, a design to start from, and the search.
#
# Groups of plans come in blocks and are priced once, at their heads, on the best chip that the whole space can hold. Groups of which no
# member fits a chip, and those that even there are no better than the design to start from, are gone before anybody looks at their members;
# members that are no better are gone before the search; `boxes.branch` has the rest. What is left of it is the tree of its cuts, and
# `reread` goes down the same tree again, with all plans, to see that no design is below the bound.

_PROMISING = 256
"""Groups among whose members the design to start from is sought."""
CACHED = 1 << 20
"""Groups of which the heads are kept for who looks at their members; of more all are listed again."""
_HEADS, _MOST_HEADS = 1 << 10, 1 << 15
"""Groups whose members are priced together: first few, for the design to start from falls with them, then four times as many each time."""
_REMEMBERED = 1 << 17
"""Groups of the last survey that are remembered, for a question that differs in its reserved memory alone."""
_last: list[tuple[Instance, "Survey"]] = []

Trace = tuple[tuple[float, float | None, float | None], ...]
Cuts = tuple[Ranges | None, ...]
"""The tree from the root, each box before its parts: what the first of them keeps, None for a box that is not cut."""


@dataclass(slots=True)
class Survey:
    """The groups on the best chip there could be."""

    chip: Corners
    bounds: list[Array] = field(default_factory=list)
    """Of every block."""
    plans: int = 0
    pool: AnyPlans = ()
    """Heads with the least bounds."""
    keep: float = float("inf")
    """Largest bound of the groups that are of interest; infinite as long as few fit."""
    fitting: list[AnyPlans] = field(default_factory=list)
    """Heads of the groups of interest of which a member fits, of every block; none where they are too many to keep."""
    fit: int = 0
    """Groups of which a member fits."""
    kept: int = 0
    """Those of them that are of interest."""
    complete: bool = False

    def every(self) -> Array:
        return np.concatenate([np.zeros(0), *self.bounds])

    def of_interest(self, bounds: Array) -> Mask:
        return np.isfinite(bounds) & (bounds <= self.keep)

    def pooled(self, heads: AnyPlans, bounds: Array, pooled: Array) -> Array:
        """The bounds of the pool with those of these heads in it that are among the least."""
        better = np.flatnonzero(bounds < (pooled.max() if len(pooled) == _PROMISING else np.inf))
        if not len(better):
            return pooled
        together = np.concatenate([pooled, bounds[better]])
        best = np.sort(np.argsort(together, kind="stable")[:_PROMISING])
        self.pool = rows_of(joined([self.pool, rows_of(heads, better)]), best)
        return together[best]

    def forget_above(self, keep: float) -> None:
        """Keep the heads bounded up to here alone."""
        bounds = [block[self.of_interest(block)] for block in self.bounds]
        self.keep = keep
        rows = [np.flatnonzero(block <= keep) for block in bounds]
        self.fitting = [rows_of(heads, near) for heads, near in zip(self.fitting, rows, strict=True)]
        self.kept = sum(map(len, rows))


@dataclass(frozen=True, slots=True)
class Found:
    """What the search saw."""

    best: Candidate | None
    value: float | None
    bound: float | None
    """Lower bound on all designs; infinite if there is none, None if the search ended before it gave one."""
    plans: int
    groups: int
    """Groups of plans that differ in their concessions only."""
    promising: int
    """Plans that would be below the bound on that chip."""
    cuts: Cuts
    trace: Trace
    stopped: str
    survey: Survey


@dataclass(frozen=True, slots=True)
class Reread:
    """What a reader of the tree sees."""

    cuts: Cuts
    plans: int
    groups: int
    """Groups of plans that differ in their concessions only."""
    promising: int
    """Plans that would be below the bound on that chip."""
    faults: tuple[str, ...]
    """Why the tree does not prove the bound; nothing if it does."""


@dataclass(frozen=True, slots=True)
class Survivors:
    """The plans that may still be better than a design to start from."""

    space: Grid
    root: Node
    start: Incumbent
    groups: int
    seen: int
    """Plans in the groups that were bounded."""
    least: float
    """No design is below this; infinite where no plan fits any chip."""
    plans: AnyPlans
    """Those bounded below the start, and their bounds; none where the time was too short to look at all."""
    bounds: Array
    complete: bool
    survey: Survey
    surveyed: bool = False
    """Whether all groups were bounded, so that `least` bounds every design, even if there was no time for their members."""


def survivors(
    instance: Instance,
    deadline: float,
    within: float | None = None,
    known: Candidate | None = None,
    *,
    near: bool = False,
    hurried: bool = False,
    counted: bool = True,
) -> Survivors:
    """Price the groups on the best chip there could be, find a design to start from, and keep the plans that may be better.

    With `within` those stay as well that may be up to this share above it. A design that is known already is started from where none better
    is found; alone, where that is `near` the best. Who is `hurried` goes without a design rather than beyond the deadline. Whether designs
    too close to call are `counted` later says which groups are of interest. A RefusedError where bounds prove nothing on this question.
    """
    refuse_broken_bounds(instance)
    space = grid(instance)
    root = root_node(instance)
    before = incumbent_of(instance, space, known)
    chip = corners(instance, space, root.box)

    def started(survey: Survey) -> Incumbent:
        return _start(instance, space, members(instance, survey.pool), before, deadline, near=near, hurried=hurried)

    survey = _narrowed(instance, chip)
    start = started(survey) if survey else before
    if survey is None or not (_interest(instance, start, within) if counted else _search_below(start, within)) <= survey.keep:
        survey = survey_of(instance, chip, deadline, _interest(instance, before, within))
        start = started(survey)
    every = survey.every()
    left = Survivors(space, root, start, len(every), survey.plans, float(every.min(initial=np.inf)), (), np.zeros(0), False, survey)
    return _with_plans(instance, replace(left, surveyed=True), survey, deadline, within) if survey.complete else left


def _with_plans(instance: Instance, left: Survivors, survey: Survey, deadline: float, within: float | None) -> Survivors:
    """The members of the groups bounded below the start that are so themselves, the most promising groups first.

    Where there is but one chip their values are no bounds but designs, and each may be the one to start from."""
    heads = promising_heads(instance, survey, [block < _search_below(left.start, within) for block in survey.bounds])
    bounds = survey.every()
    order = np.argsort(bounds := bounds[bounds < _search_below(left.start, within)], kind="stable")
    parts: list[AnyPlans] = []
    found, start = [np.zeros(0)], left.start
    for rows in growing(order):
        if not bounds[rows[0]] < _search_below(start, within):
            break
        if monotonic() >= deadline:
            return replace(left, start=start)
        plans, values = near_members(instance, survey.chip, rows_of(heads, rows), _search_below(start, within))
        promising = np.flatnonzero(values < _search_below(start, within))
        parts, found = [*parts, rows_of(plans, promising)], [*found, values[promising]]
        least = int(np.argmin(values)) if len(values) else 0
        if left.root.single and len(values) and values[least] < start.value:
            start = at_row(float(values[least]), left.root.box.low[0], plans, least)
    every, values = joined(parts), np.concatenate(found)
    promising = np.flatnonzero(values < _search_below(start, within))
    return replace(left, start=start, plans=rows_of(every, promising), bounds=values[promising], complete=True)


def growing(rows: Ints) -> Iterator[Ints]:
    """The rows of groups in parts whose members are priced together."""
    at, size = 0, _HEADS
    while at < len(rows):
        yield rows[at : at + size]
        at, size = at + size, min(4 * size, _MOST_HEADS)


def _search_below(start: Incumbent, within: float | None) -> float:
    """What a bound must be below for a plan to stay."""
    return start.value if within is None else float(np.nextafter(start.value * (1.0 + within), np.inf))


def _interest(instance: Instance, start: Incumbent, within: float | None) -> float:
    """The largest bound of groups that are of interest beside a design: for the proof, or for designs too close to call."""
    return max(_search_below(start, within), _search_below(start, close_call_error(instance) or 0.0))


def search(
    instance: Instance,
    watch: Watch,
    spend: Spend,
    known: Candidate | None = None,
    *,
    near: bool = False,
    hurried: bool = False,
    counted: bool = True,
) -> Found:
    """The least design, or the best one found in time with a bound on all others; `known` is one that was there before, `near` the best
    where it is that of a question that differs by little. Who is `hurried` goes without a design rather than beyond the deadline."""
    began = monotonic()
    left = survivors(instance, spend.deadline, None, known, near=near, hurried=hurried, counted=counted)
    first = ((monotonic() - began, _finite(left.start.value), _finite(left.least) if left.surveyed else None),)
    if not left.complete:
        bound = min(left.least, left.start.value) if left.surveyed else None
        return _found(left, Search(left.root, left.start, stopped="time limit"), bound, first)
    offset = monotonic() - began
    searched = branch(instance, left.space, left.root, left.plans, left.bounds, left.start, watch, spend)
    trace = (*first, *((seconds + offset, value, bound) for seconds, value, bound in searched.trace))
    return _found(left, searched, searched.bound, trace)


def reread(instance: Instance, cuts: Cuts, bound: float, watch: Watch = unwatched) -> Reread:
    """Whether the tree proves the bound.

    All plans are priced on the best chip of each box, one by one and not by groups; plans below the bound go on to the parts of
    the box, and none may remain in a box that is not cut.
    """
    try:
        refuse_broken_bounds(instance)
    except RefusedError as error:
        return Reread(cuts, 0, 0, 0, (str(error),))
    space = grid(instance)
    root = root_node(instance)
    chip = corners(instance, space, root.box)
    promising_blocks, plans = [], 0
    for block in plan_blocks(instance):
        values = values_of(instance, chip, block)[:, 0]
        plans += len(values)
        promising_blocks.append(rows_of(block, np.flatnonzero(values < bound)))
    groups = sum(len(block) for block in family_blocks(instance))
    promising = joined(promising_blocks)

    def left_over(plans: AnyPlans) -> tuple[str, ...]:
        return (f"{len(plans)} plans are not bounded by {bound!r} in a box that is not cut",) if len(plans) else ()

    def parted(split: Split, plans: AnyPlans) -> list[AnyPlans]:
        table = values_of(instance, corners(instance, space, parts_of([split])[0]), plans)
        return [rows_of(plans, np.flatnonzero(column < bound)) for column in table.T]

    return Reread(cuts, plans, groups, len(promising), tree_faults(instance, space, root, cuts, promising, left_over, parted, watch))


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
    watch: Watch = unwatched,
) -> tuple[str, ...]:
    """Why a tree does not refute what is left at its root: `parted` hands it on to the parts of a box, `left_over` says what a box that
    is not cut leaves open."""
    rest = iter(enumerate(cuts))

    def faults_in(node: Node, left: Left) -> tuple[str, ...]:
        number, ranges = next(rest)
        if number % _REPORT_EVERY == 0:
            watch(Progress(f"{number:,} of {len(cuts):,} boxes bounded anew", None))
        if ranges is None:
            return left_over(left)
        wrong = _wrong_cut(node.box, ranges)
        if wrong:
            return (wrong,)
        [split] = split_nodes(instance, space, [node], [ranges])
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
_REPORT_EVERY = 64
"""Boxes after which a reader of a tree says how far it is."""


def _wrong_cut(box: Boxes, ranges: Ranges) -> str:
    """Why a box cannot be cut so that this is kept; each choice must lose something and keep something."""
    low, high = box.low[0].tolist(), box.high[0].tolist()
    for choice, first, last in ranges:
        if not (0 <= choice < len(low) and low[choice] <= first <= last <= high[choice] and last - first < high[choice] - low[choice]):
            return f"choice {choice} cannot be cut to {first} to {last}"
        low[choice], high[choice] = first, last
    return "" if ranges else "a box is cut into nothing but itself"


def survey_of(instance: Instance, chip: Corners, deadline: float, keep: float = float("inf")) -> Survey:
    """Price all groups on the best chip, until the deadline; where many fit, heads of those bounded above `keep` are forgotten."""
    survey, pooled = Survey(chip), np.zeros(0)
    for block in family_blocks(instance):
        bounds = head_values_of(instance, chip, block.heads)[:, 0]
        survey.bounds.append(bounds)
        survey.plans += int(block.counts.sum())
        survey.fit += int(np.isfinite(bounds).sum())
        pooled = survey.pooled(block.heads, bounds, pooled)
        near = np.flatnonzero(survey.of_interest(bounds))
        survey.kept += len(near)
        survey.fitting = [*survey.fitting, rows_of(block.heads, near)] if survey.kept <= CACHED else []
        if survey.kept > _REMEMBERED and survey.keep > keep:
            survey.forget_above(keep)
        if monotonic() >= deadline:
            return survey
    survey.complete = True
    if survey.kept <= _REMEMBERED:
        _last[:] = [(instance, survey)]
    return survey


def _wider(instance: Instance) -> Survey | None:
    """The last survey, where it was of the same question with less reserved memory: what fits here fits there."""
    for earlier, survey in _last:
        reserved = instance.hardware.reserved_memory
        same = replace(earlier, hardware=replace(earlier.hardware, reserved_memory=reserved)) == instance
        return survey if same and earlier.hardware.reserved_memory < reserved else None
    return None


def _narrowed(instance: Instance, chip: Corners) -> Survey | None:
    """A survey by the last one, where that is wider: groups without a member that fits there have none here, and those that were not of
    interest there have bounds above what this one keeps."""
    if (before := _wider(instance)) is None:
        return None
    heads, bounds = joined(before.fitting), before.every()
    own = np.flatnonzero(before.of_interest(bounds))
    bounds[own] = head_values_of(instance, chip, heads)[:, 0]
    still = np.flatnonzero(np.isfinite(bounds[own]))
    fitting = rows_of(heads, still)
    survey = Survey(chip, [bounds], before.plans, keep=before.keep, fitting=[fitting], fit=len(still), kept=len(still), complete=True)
    survey.pooled(heads, bounds[own], np.zeros(0))
    return survey


def _start(instance: Instance, space: Grid, pool: AnyPlans, before: Incumbent, deadline: float, *, near: bool, hurried: bool) -> Incumbent:
    """The design to start from: down into the best boxes, then steps that lower the value, until the deadline unless there is no other
    design and no hurry; or the one that was there before where that is better, or near the best."""
    if near and before.value < float("inf"):
        return before
    until = deadline if hurried or before.value < float("inf") else float("inf")
    found = found_from(instance, space, root_node(instance).box, pool, deadline=until) if len(pool) else None
    return before if found is None or before.value < found.value else found


def promising_heads(instance: Instance, survey: Survey, masks: Sequence[Mask]) -> AnyPlans:
    """The heads of the groups that are kept, of which a member fits; none where nothing was kept."""
    if not any(block.any() for block in masks):
        return joined([])
    if survey.kept <= CACHED:
        own = [which[survey.of_interest(bounds)] for which, bounds in zip(masks, survey.bounds, strict=True)]
        return joined([rows_of(heads, np.flatnonzero(which)) for heads, which in zip(survey.fitting, own, strict=True)])
    return joined([rows_of(block.heads, np.flatnonzero(which)) for block, which in zip(family_blocks(instance), masks, strict=True)])


def promising_plans(instance: Instance, masks: Sequence[Mask]) -> AnyPlans:
    """The promising plans of all plans, block by block."""
    if not any(block.any() for block in masks):
        return joined([])
    return joined([rows_of(plans, np.flatnonzero(which)) for plans, which in zip(plan_blocks(instance), masks, strict=True)])


def _found(left: Survivors, searched: PlanSearch, bound: float | None, trace: Trace) -> Found:
    best = searched.best
    return Found(
        best=candidate_of(left.space, best),
        value=_finite(best.value),
        bound=bound,
        plans=left.seen,
        groups=left.groups,
        promising=0 if bound is None else int((left.bounds < bound).sum()),
        cuts=tuple(cuts_of(searched.root)),
        trace=trace,
        stopped=searched.stopped,
        survey=left.survey,
    )


def cuts_of(node: Node) -> Iterator[Ranges | None]:
    """The tree from a box down, without the boxes' sizes: they follow from the cuts."""
    yield node.split.ranges if node.split else None
    for part in node.split.parts if node.split else ():
        yield from cuts_of(part)


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None
