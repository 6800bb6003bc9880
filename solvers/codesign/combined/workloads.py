"""Several workloads on one chip: bounds of boxes, good designs to start from, branch and bound, and the enumeration that checks it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import count
from math import prod
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.records import dataclass
from crossopt.instances.codesign.boxes import Boxes, Corners, Grid, chips_at, corners, corners_in, grid, point_number, tightened, within
from crossopt.instances.codesign.instance import Instance, under_each
from crossopt.instances.codesign.plan_groups import family_blocks, members
from crossopt.instances.codesign.space import AnyPlans, as_arrays, combinations, devices, hardware_points, plan_blocks
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Progress, Watch, unwatched
from crossopt.solvers.codesign.answer import Candidate, candidate
from crossopt.solvers.codesign.boxes.branch import (
    AGAIN,
    DECIDING,
    DIVING,
    Node,
    Rows,
    Search,
    Spend,
    Split,
    best_cuts,
    best_first,
    best_plans,
    chip_moves,
    halves,
    parts_of,
    root_node,
    seldom,
    single,
    split_nodes,
)
from crossopt.solvers.codesign.boxes.search import (
    Cuts,
    Survey,
    Trace,
    cuts_of,
    promising_heads,
    promising_plans,
    refuse_broken_bounds,
    survey_of,
    tree_faults,
)
from crossopt.solvers.codesign.exhaustive import PRICES
from crossopt.solvers.codesign.megatron import until
from crossopt.solvers.codesign.objective import Joint, combined, rows_of, values_of
from crossopt.solvers.proofs import JointSpace

# Several workloads: the plans of each that may still make their figure small.


def in_place(joint: Joint, minima: Sequence[float], index: int, values: Array) -> Array:
    """The figure of the least values with others in the place of one workload's."""
    return combined(joint, [values if number == index else np.float64(least) for number, least in enumerate(minima)])


def chips_of(joint: Joint, space: Grid, boxes: Boxes) -> tuple[Corners, ...]:
    """The best device of each box under each set of constants, as each workload finds it, in the precision in which it computes; equal
    ones are made once."""
    found: list[Corners] = []
    offered = [(part.hardware, part.others) for part in joint.parts]
    for index, part in enumerate(joint.parts):
        same = offered.index(offered[index])
        found.append(corners(part, space, boxes) if same == index else _seen_by(part, found[same]))
    return tuple(found)


def _seen_by(part: Instance, chips: Corners) -> Corners:
    """Devices made for another workload, under the same sets of constants."""
    others = tuple((other, same) for (_, other), (_, same) in zip(under_each(part), chips.others, strict=True))
    return replace(chips, others=others)


def minima_of(lists: Sequence[Rows]) -> list[float]:
    """The least bound of each workload; infinite where none of its plans is left."""
    return [float(rows.bounds[0]) if len(rows) else float("inf") for rows in lists]


def below(joint: Joint, lists: Sequence[Rows], value: float) -> tuple[Rows, ...]:
    """The plans with which the figure may be below a value; none of any workload where it cannot."""
    minima = minima_of(lists)
    counts = [int(np.count_nonzero(in_place(joint, minima, index, rows.bounds) < value)) for index, rows in enumerate(lists)]
    return tuple(rows.part(slice(count if all(counts) else 0)) for rows, count in zip(lists, counts, strict=True))


# Bounds of the plans of all workloads on the parts of boxes, with no more plans priced than may make the figure small.
#
# Plans come with bounds on their box, ascending, below which they cannot fall on a part of it. On every part, and for every workload k,
#
#     m_k = the least bound of its plans there, or on the box while they are not priced,    F(m_1, ...) <= the figure
#
# One workload after the other is priced, that with the fewest plans first, on the parts on which F(m_1, ...) is still below the best value
# known, and of its plans those whose bound on the box in the place of m_k leaves it there. So a part is forgotten by as few prices as may
# be, and what is not forgotten has the least bound of every workload.

_CALL = 1 << 15
"""To begin with a table of prices takes about as long as so many prices."""
_MOST = 1 << 22
"""Prices in one table of several boxes, so that it does not fill the memory."""


@dataclass(frozen=True, slots=True)
class _Ask:
    """Plans of one workload to be priced on some parts of a box."""

    rows: Ints
    columns: Ints
    """The parts, by their numbers among those of all boxes."""
    bounds: Array
    """Plans are rows and parts are columns; what is asked for."""


def bounded(
    joint: Joint,
    space: Grid,
    splits: Sequence[Split],
    plans: Sequence[AnyPlans],
    waiting: Sequence[tuple[Rows, ...]],
    value: float,
    deadline: float = float("inf"),
) -> list[list[tuple[Rows, ...]]]:
    """For each split, and each of its parts, the plans of every workload with which the figure may be below a value there, with bounds.

    No plans of any workload where it cannot. A TimeoutError at the deadline."""
    boxes, slices = parts_of(splits)
    chips, columns, counts = chips_of(joint, space, boxes), np.arange(len(boxes)), [len(split.parts) for split in splits]
    lists = list(zip(*waiting, strict=True))
    least = np.array([np.repeat([rows.bounds[0] for rows in some], counts) for some in lists])
    asks: dict[int, list[_Ask]] = {}
    for index in sorted(range(len(lists)), key=lambda index: sum(map(len, lists[index]))):
        needed = combined(joint, list(least)) < value
        asks[index] = [
            _ask(joint, index, rows, columns[some][needed[some]], least, value) for rows, some in zip(lists[index], slices, strict=True)
        ]
        _price(joint.parts[index], chips[index], plans[index], asks[index], deadline)
        for ask in asks[index]:
            least[index, ask.columns] = ask.bounds.min(axis=0, initial=np.inf)
    minima = np.where(combined(joint, list(least)) < value, least, np.inf)
    return [
        [_left(joint, [asks[index][number] for index in range(len(lists))], minima, column, value) for column in columns[some].tolist()]
        for number, some in enumerate(slices)
    ]


def _ask(joint: Joint, index: int, waiting: Rows, columns: Ints, least: Array, value: float) -> _Ask:
    """The plans that may be in a design below a value on any of some parts."""
    minima = least[:, columns].min(axis=1, initial=np.inf).tolist()
    rows = waiting.rows[: np.count_nonzero(in_place(joint, minima, index, waiting.bounds) < value)]
    return _Ask(rows, columns, np.full((len(rows), len(columns)), np.inf))


def _price(instance: Instance, chips: Corners, plans: AnyPlans, asks: Sequence[_Ask], deadline: float) -> None:
    """Price the plans of each box on its parts."""
    for group in until(deadline, _groups([ask for ask in asks if ask.bounds.size], len(plans))):
        every = np.unique(np.concatenate([ask.rows for ask in group]))
        columns = np.concatenate([ask.columns for ask in group])
        found = values_of(instance, corners_in(chips, columns), rows_of(plans, every))
        starts = np.cumsum([0, *(len(ask.columns) for ask in group)])
        for ask, start, stop in zip(group, starts[:-1], starts[1:], strict=True):
            ask.bounds[:] = found[np.searchsorted(every, ask.rows), start:stop]


def _groups(asks: Sequence[_Ask], plans: int) -> Iterator[list[_Ask]]:
    """Boxes whose plans are priced in one table: as long as the prices that none of them needs take less time than another table."""
    group: list[_Ask] = []
    present, columns, used = np.zeros(plans, bool), 0, 0
    for ask in asks:
        present[ask.rows] = True
        columns, used = columns + len(ask.columns), used + ask.bounds.size
        size = np.count_nonzero(present) * columns
        if group and (size > _MOST or size - used > _CALL * len(group)):
            yield group
            group = []
            present[:] = False
            present[ask.rows] = True
            columns, used = len(ask.columns), ask.bounds.size
        group.append(ask)
    if group:
        yield group


def _left(joint: Joint, asks: Sequence[_Ask], minima: Array, column: int, value: float) -> tuple[Rows, ...]:
    """The plans with which the figure may be below a value on one part, by their bounds."""
    if not np.isfinite(minima[:, column]).all():
        return tuple(Rows(ask.rows[:0], np.zeros(0)) for ask in asks)
    lists = []
    for index, ask in enumerate(asks):
        bounds = ask.bounds[:, np.searchsorted(ask.columns, column)]
        open_rows = np.flatnonzero(in_place(joint, minima[:, column].tolist(), index, bounds) < value)
        open_rows = open_rows[np.argsort(bounds[open_rows], kind="stable")]
        lists.append(Rows(ask.rows[open_rows], bounds[open_rows]))
    return tuple(lists)


# Good designs for several workloads: down into the best boxes, then from chip to chip, each with the best plan of every workload there.
#
# The best plans for the best chip there could be are seldom those for the best chip there is. The way down therefore looks at all plans
# again every few boxes, and the search goes down again from a box that it has come to, with the plans that are left there.

_PLANS = 16
"""Plans of each workload for which a chip is sought."""
_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Incumbent:
    """A design by its hardware places and the plan of each workload; the value is infinite, and there are no plans, where there is none."""

    value: float
    places: Ints
    plans: tuple[Plan | KernelPlan, ...]


def no_design(space: Grid) -> Incumbent:
    """None found yet."""
    return Incumbent(float("inf"), np.zeros(len(space.sizes), np.int64), ())


def found_from(joint: Joint, space: Grid, box: Boxes, plans: Sequence[AnyPlans], value: float, deadline: float) -> Incumbent:
    """A design to which the way down from a box leads, with steps that lower its value; none where a box on the way has a bound that is
    not below a value, and none after the deadline."""
    found = _dive(joint, space, box, plans, value, deadline) if all(map(len, plans)) else None
    return no_design(space) if found is None else improved(joint, space, found[1], found[0], deadline)


def _dive(
    joint: Joint, space: Grid, box: Boxes, plans: Sequence[AnyPlans], value: float, deadline: float
) -> tuple[Ints, list[AnyPlans]] | None:
    """A chip that keeps the budgets, with plans that are good near it: the better half of every box, down to one point. None where no
    chip does."""
    pools, bounds = _pools(joint, space, box, plans)
    while all(map(len, pools)) and float(combined(joint, [some[0] for some in bounds])) < value:
        if single(box):
            return box.low[0], pools
        if monotonic() >= deadline:
            break
        for _ in range(AGAIN):
            if not single(box):
                box = tightened(joint.parts[0], space, halves(box, least_of(joint, space, pools))[0])
        pools, bounds = _pools(joint, space, box, plans)
    return None


def _pools(joint: Joint, space: Grid, box: Boxes, plans: Sequence[AnyPlans]) -> tuple[list[AnyPlans], list[Array]]:
    """The plans with the least bounds on a box, and these, ascending."""
    bounds = [table[:, 0] for table in _tables(joint, space, box, plans)]
    rows = [np.argsort(some, kind="stable")[: min(DIVING, int(np.isfinite(some).sum()))] for some in bounds]
    pools = [rows_of(table, some) for table, some in zip(plans, rows, strict=True)]
    return pools, [bounds_of_part[some] for bounds_of_part, some in zip(bounds, rows, strict=True)]


def _tables(joint: Joint, space: Grid, boxes: Boxes, plans: Sequence[AnyPlans]) -> list[Array]:
    """The bounds of the plans of each workload (rows) on some boxes (columns)."""
    chips = chips_of(joint, space, boxes)
    return [values_of(part, *pair) for part, pair in zip(joint.parts, zip(chips, plans, strict=True), strict=True)]


def least_of(joint: Joint, space: Grid, plans: Sequence[AnyPlans]) -> Callable[[Boxes], Array]:
    """The figure of the least bounds of these plans on each of some boxes."""

    return lambda boxes: combined(joint, [table.min(axis=0) for table in _tables(joint, space, boxes, plans)])


def improved(joint: Joint, space: Grid, pools: Sequence[AnyPlans], places: Ints, deadline: float) -> Incumbent:
    """The design to which steps from chip to chip lead, each with the best plans there; no step that does not lower the value."""
    best, few = _on_chip(joint, space, pools, places)
    for _ in range(_ROUNDS):
        moves = chip_moves(space, best.places)
        if not len(moves) or monotonic() >= deadline:
            break
        values = least_of(joint, space, few)(Boxes(moves, moves))
        if not values.min() < best.value:
            break
        best, few = _on_chip(joint, space, pools, moves[int(np.argmin(values))])
    return best


def _on_chip(joint: Joint, space: Grid, pools: Sequence[AnyPlans], places: Ints) -> tuple[Incumbent, list[AnyPlans]]:
    """The best plans on one chip, and for each workload the few best ones."""
    found = [best_plans(part, space, pool, places, _PLANS) for part, pool in zip(joint.parts, pools, strict=True)]
    value = float(combined(joint, [values[0] for _, values in found]))
    chosen = tuple(candidate(pool, int(rows[0]), 0).plan for pool, (rows, _) in zip(pools, found, strict=True))
    few = [rows_of(pool, rows) for pool, (rows, _) in zip(pools, found, strict=True)]
    return Incumbent(value, places, chosen if value < float("inf") else ()), few


# Branch and bound for several workloads: one tree of boxes of chips, and in every box a list of plans for each workload.
#
# For a chip h and the figure F the value is F(min_p v_1(h, p), ..., min_p v_K(h, p)). F never falls when an argument grows, so that F of
# the least bounds on the best chip of a box bounds the box, and F with one plan's bound in the place of the least one bounds all designs
# of the box that give the workload this plan. A plan is forgotten in a box once that is no better than the best value known.

TOGETHER = 64
"""Boxes that are bounded together, however many plans wait in them."""
_DOWN = 1 << 14
"""Plans of each workload with which the search goes down for a design, those with the least bounds in a box."""

JointSearch = Search[Incumbent, tuple[Rows, ...]]


def branch(
    joint: Joint, space: Grid, root: Node, plans: Sequence[AnyPlans], lists: tuple[Rows, ...], start: Incumbent, watch: Watch, spend: Spend
) -> JointSearch:
    """Search until no box is bounded below the best value, or gap or deadline end it; `lists` are the plans by their bounds on the root."""
    search: JointSearch = Search(root, start)
    looks = count(1)

    def look(picked: Sequence[tuple[Node, tuple[Rows, ...]]]) -> None:
        first = [(node, below(joint, waiting, search.best.value)) for node, waiting in picked]
        going = [(node, waiting) for node, waiting in first if all(map(len, waiting))]
        if going:
            _look(joint, space, search, going, plans, spend.deadline)
        if seldom(next(looks), 2):
            _go_down(joint, space, search, plans, spend.deadline)

    _keep(joint, search, root, plans, lists)
    best_first(search, look, lambda _: 0, watch, spend, TOGETHER)
    return search


def _go_down(joint: Joint, space: Grid, search: JointSearch, plans: Sequence[AnyPlans], deadline: float) -> None:
    """Look for a better design in the box with the least bound."""
    if not search.heap:
        return
    _, _, node, lists = search.heap[0]
    pools = [rows_of(table, rows.rows[:_DOWN]) for table, rows in zip(plans, lists, strict=True)]
    found = found_from(joint, space, node.box, pools, search.best.value, deadline)
    if found.value < search.best.value:
        search.best = found


def _look(
    joint: Joint,
    space: Grid,
    search: JointSearch,
    picked: Sequence[tuple[Node, tuple[Rows, ...]]],
    plans: Sequence[AnyPlans],
    deadline: float,
) -> None:
    """Bound the plans on the parts of the boxes, none of which was cut before."""
    nodes, lists = [node for node, _ in picked], [waiting for _, waiting in picked]
    deciding = [np.unique(np.concatenate([rows.rows[:DECIDING] for rows in column])) for column in zip(*lists, strict=True)]
    few = [rows_of(table, rows) for table, rows in zip(plans, deciding, strict=True)]
    ranges = best_cuts([node.box for node in nodes], least_of(joint, space, few), search.best.value)
    splits = split_nodes(joint.parts[0], space, nodes, ranges)
    search.boxes += sum(len(split.parts) for split in splits)
    for split, found in zip(splits, bounded(joint, space, splits, plans, lists, search.best.value, deadline), strict=True):
        for inner, some in zip(split.parts, found, strict=True):
            _keep(joint, search, inner, plans, some)


def _keep(joint: Joint, search: JointSearch, node: Node, plans: Sequence[AnyPlans], lists: tuple[Rows, ...]) -> None:
    """Keep the plans with which the box may be better than the best; on a single point the least of each are the new best."""
    least = float(combined(joint, [np.float64(value) for value in minima_of(lists)]))
    if not least < search.best.value:
        return
    if node.single:
        chosen = tuple(candidate(table, int(rows.rows[0]), 0).plan for table, rows in zip(plans, lists, strict=True))
        search.best = Incumbent(least, node.box.low[0], chosen)
        return
    search.wait(least, node, lists)


# Several workloads proved by branch and bound: all plans on the best chip there could be, a design to start from, and the search.
#
# What is left of it is one tree of cuts for all workloads; `reread` goes down the same tree to see that no design is below the bound.


@dataclass(frozen=True, slots=True)
class SearchCounts:
    """What is seen on the best chip there could be, workload by workload."""

    plans: tuple[int, ...]
    groups: tuple[int, ...]
    """Groups of plans that differ in their concessions only."""
    promising: tuple[int, ...]
    """Plans with which the figure would be below the bound there."""


@dataclass(frozen=True, slots=True)
class BoxesOutcome:
    """What the search saw."""

    best: tuple[Candidate, ...]
    """A design for each workload, all on one chip; none where there is none."""
    value: float | None
    bound: float | None
    """Lower bound on all designs; infinite if there is none, None if the search ended before it gave one."""
    counts: SearchCounts
    cuts: Cuts
    trace: Trace
    stopped: str


@dataclass(frozen=True, slots=True)
class Reread:
    """What a reader of the tree sees."""

    counts: SearchCounts
    cuts: Cuts
    faults: tuple[str, ...]
    """Why the tree does not prove the bound; nothing if it does."""


def search(joint: Joint, watch: Watch, spend: Spend) -> BoxesOutcome:
    """The least design, or the best one found in time with a bound on all others."""
    began = monotonic()
    for part in joint.parts:
        refuse_broken_bounds(part)
    space = grid(joint.parts[0])
    root = root_node(joint.parts[0])
    chips = chips_of(joint, space, root.box)
    surveys = [survey_of(part, chip, spend.deadline) for part, chip in zip(joint.parts, chips, strict=True)]
    pools = [members(part, survey.pool) for part, survey in zip(joint.parts, surveys, strict=True)]
    start = found_from(joint, space, root.box, pools, float("inf"), spend.deadline)
    minima = [float(survey.every().min(initial=np.inf)) for survey in surveys]
    least = float(combined(joint, [np.float64(value) for value in minima]))
    complete = all(survey.complete for survey in surveys)
    first = ((monotonic() - began, _finite(start.value), _finite(least) if complete else None),)
    if not complete:
        return _found(joint, space, surveys, (), Search(root, start, stopped="time limit"), None, first)
    masks = [[in_place(joint, minima, index, block) < start.value for block in survey.bounds] for index, survey in enumerate(surveys)]
    plans = [members(part, promising_heads(part, survey, which)) for part, survey, which in zip(joint.parts, surveys, masks, strict=True)]
    every = [values_of(part, chip, some)[:, 0] for part, chip, some in zip(joint.parts, chips, plans, strict=True)]
    lists = [_sorted(bounds, bounds < np.inf) for bounds in every]
    plans = [rows_of(some, np.flatnonzero(bounds < np.inf)) for some, bounds in zip(plans, every, strict=True)]
    offset = monotonic() - began
    searched = branch(joint, space, root, plans, below(joint, lists, start.value), start, watch, spend)
    trace = (*first, *((seconds + offset, value, bound) for seconds, value, bound in searched.trace))
    return _found(joint, space, surveys, every, searched, searched.bound, trace)


def reread(joint: Joint, cuts: Cuts, bound: float, watch: Watch = unwatched) -> Reread:
    """Whether the tree proves the bound: whatever plans may be below it go on into the parts of a box, and none may be left in a box
    that is not cut."""
    try:
        for part in joint.parts:
            refuse_broken_bounds(part)
    except RefusedError as error:
        none = (0,) * len(joint.parts)
        return Reread(SearchCounts(none, none, none), cuts, (str(error),))
    space = grid(joint.parts[0])
    root = root_node(joint.parts[0])
    chips = chips_of(joint, space, root.box)
    blocks = [[values_of(part, chip, block)[:, 0] for block in plan_blocks(part)] for part, chip in zip(joint.parts, chips, strict=True)]
    every = [np.concatenate([np.zeros(0), *part]) for part in blocks]
    minima = [float(bounds.min(initial=np.inf)) for bounds in every]
    masks = [[in_place(joint, minima, index, block) < bound for block in part] for index, part in enumerate(blocks)]
    plans = [promising_plans(part, which) for part, which in zip(joint.parts, masks, strict=True)]
    lists = tuple(_sorted(bounds, np.concatenate([np.zeros(0, bool), *which])) for bounds, which in zip(every, masks, strict=True))

    def left_over(left: tuple[Rows, ...]) -> tuple[str, ...]:
        counts = " x ".join(str(len(rows)) for rows in left)
        return (f"{counts} plans are not bounded by {bound!r} in a box that is not cut",) if all(map(len, left)) else ()

    def parted(split: Split, left: tuple[Rows, ...]) -> list[tuple[Rows, ...]]:
        if not all(map(len, left)):
            return [left] * len(split.parts)
        [found] = bounded(joint, space, [split], plans, [left], bound)
        return found

    faults = tree_faults(joint.parts[0], space, root, cuts, lists, left_over, parted, watch)
    groups = tuple(sum(len(block) for block in family_blocks(part)) for part in joint.parts)
    return Reread(SearchCounts(tuple(map(len, every)), groups, _promising(joint, every, bound)), cuts, faults)


def _sorted(bounds: Array, mask: Mask) -> Rows:
    """The plans that are kept, by their rows among those kept, in ascending order of their bounds."""
    bounds = bounds[mask]
    order = np.argsort(bounds, kind="stable")
    return Rows(order, bounds[order])


def _promising(joint: Joint, every: Sequence[Array], bound: float) -> tuple[int, ...]:
    """Number of plans of each workload that may bring the objective below the bound, the other workloads at their least.

    `every` holds the lower bounds of the plans; plans of groups that cannot get below the bound may be absent.
    """
    minima = [float(bounds.min(initial=np.inf)) for bounds in every]
    return tuple(int(np.count_nonzero(in_place(joint, minima, index, bounds) < bound)) for index, bounds in enumerate(every))


def _found(
    joint: Joint, space: Grid, surveys: Sequence[Survey], every: Sequence[Array], searched: JointSearch, bound: float | None, trace: Trace
) -> BoxesOutcome:
    promising = (0,) * len(surveys) if bound is None else _promising(joint, every, bound)
    counts = SearchCounts(tuple(survey.plans for survey in surveys), tuple(len(survey.every()) for survey in surveys), promising)
    best = searched.best
    point = point_number(space, best.places) if best.plans else 0
    return BoxesOutcome(
        best=tuple(Candidate(point, plan) for plan in best.plans),
        value=_finite(best.value),
        bound=bound,
        counts=counts,
        cuts=tuple(cuts_of(searched.root)),
        trace=trace,
        stopped=searched.stopped,
    )


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None


# The oracle for several workloads: on every chip the least value of each, then the least figure of them all.
#
# Memory stays flat: chips come in blocks, and for each block of chips the plans of each workload in blocks. Of equal chips the first one
# wins, and on it of equal plans the first one.

_POINTS = 1 << 14
"""Chips whose least values are kept together."""
_CACHED = 1 << 18
"""Combinations of plan choices of which the plans are kept for the next block of chips; those of more are made again."""


@dataclass(frozen=True, slots=True)
class EnumerationOutcome:
    """What the enumeration saw."""

    best: tuple[Candidate, ...]
    """A design for each workload, all on one chip; none where there is none."""
    value: float | None
    space: JointSpace
    trace: Trace
    stopped: str


@dataclass(slots=True)
class _Tally:
    """Counts so far."""

    served: list[int]
    """Chips on which each workload has a plan."""
    found: tuple[int, float] = 0, float("inf")
    """The best chip with its value, which an interrupt cannot part."""
    unbuilt: int = 0
    serving: int = 0
    trace: list[tuple[float, float | None, float | None]] = field(default_factory=list)

    @property
    def point(self) -> int:
        return self.found[0]

    @property
    def value(self) -> float:
        return self.found[1]


def exhaustive_search(joint: Joint, watch: Watch, deadline: float = float("inf")) -> EnumerationOutcome:
    """Price every plan of every workload on every chip; the deadline or an interrupt ends it early, which `stopped` states."""
    began, points, stopped = monotonic(), hardware_points(joint.parts[0]), "complete"
    tally = _Tally([0] * len(joint.parts))
    plans = [_plans(part) for part in joint.parts]
    try:
        for start in range(0, points, _POINTS):
            stop = min(start + _POINTS, points)
            if _exhaustive_look(joint, plans, start, stop, tally, deadline):
                tally.trace.append((monotonic() - began, tally.value, None))
            watch(Progress(f"{stop / points:.0%}  {stop:,} chips", tally.value if tally.value < float("inf") else None))
    except KeyboardInterrupt:
        stopped = "interrupted"
    except TimeoutError:
        stopped = "time limit"
    best = tuple(map(_best_plan, joint.parts, plans, [tally.point] * len(plans))) if tally.value < float("inf") else ()
    counts = tuple(sum(len(block) for block in _blocks(part, blocks)) for part, blocks in zip(joint.parts, plans, strict=True))
    space = JointSpace(prod(counts) * points, points, tally.unbuilt, counts, tuple(tally.served), tally.serving)
    return EnumerationOutcome(best, tally.value if best else None, space, tuple(tally.trace), stopped)


def _plans(instance: Instance) -> list[AnyPlans] | None:
    """The blocks of plans if they are few, which are then made once."""
    return list(plan_blocks(instance)) if combinations(instance) <= _CACHED else None


def _blocks(instance: Instance, blocks: list[AnyPlans] | None) -> Iterable[AnyPlans]:
    return plan_blocks(instance) if blocks is None else blocks


def _chips(instance: Instance, start: int, stop: int) -> tuple[Corners, Ints]:
    """The chips of these points that can be built, whether they keep the budgets, under each set of constants, and their numbers."""
    block = devices(instance, start, stop)
    hardware = as_arrays(block.hardware, len(block.points))
    others = tuple((other, chips_at(other, block.points)) for _, other in under_each(instance))
    return Corners(hardware, np.broadcast_to(within(instance, hardware), block.points.shape), others), block.points


def _exhaustive_look(joint: Joint, plans: list[list[AnyPlans] | None], start: int, stop: int, tally: _Tally, deadline: float) -> bool:
    """Take a block of chips into the tally; whether one of them is better than all before."""
    minima = []
    for part, blocks in zip(joint.parts, plans, strict=True):
        chips, points = _chips(part, start, stop)
        least = np.full(len(points), np.inf)
        for block in until(deadline, _blocks(part, blocks)):
            least = np.minimum(least, _least(part, chips, block, deadline))
        minima.append(least)
    found = combined(joint, minima)
    tally.unbuilt += stop - start - len(points)
    tally.served = [count + int(np.isfinite(least).sum()) for count, least in zip(tally.served, minima, strict=True)]
    tally.serving += int(np.isfinite(found).sum())
    if not len(points) or not found.min() < tally.value:
        return False
    column = int(np.argmin(found))
    tally.found = int(points[column]), float(found[column])
    return True


def _least(instance: Instance, chips: Corners, plans: AnyPlans, deadline: float) -> Array:
    """The least value that any of the plans has on each chip."""
    count = len(chips.alive)
    step = max(1, PRICES // max(len(plans), 1))
    least = np.full(count, np.inf)
    for start in until(deadline, range(0, count if len(plans) else 0, step)):
        some = np.arange(start, min(start + step, count))
        least[some] = values_of(instance, corners_in(chips, some), plans).min(axis=0)
    return least


def _best_plan(instance: Instance, blocks: list[AnyPlans] | None, point: int) -> Candidate:
    """The first plan with the least value on one chip."""
    chips, _ = _chips(instance, point, point + 1)
    best: tuple[float, Candidate] | None = None
    for block in _blocks(instance, blocks):
        values = values_of(instance, chips, block)[:, 0]
        row = int(np.argmin(values)) if len(values) else 0
        if len(values) and (best is None or values[row] < best[0]):
            best = float(values[row]), candidate(block, row, point)
    if best is None:
        raise ArithmeticError("a chip that serves every workload serves one of them with no plan")
    return best[1]
