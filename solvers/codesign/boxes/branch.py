"""Monotone branch and bound over boxes of hardware points and lists of plans: where boxes are cut, designs to start from, the tree."""

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from heapq import heappop, heappush
from itertools import count, pairwise, permutations, product
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.records import dataclass
from crossopt.instances.codesign.boxes import (
    Boxes,
    Grid,
    Ranges,
    corners,
    full_box,
    option_indices,
    parted,
    point_number,
    root_box,
    stacked,
    tightened,
)
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import AnyPlans
from crossopt.solvers.answer import Progress, Watch
from crossopt.solvers.codesign.answer import Candidate, answer_of, candidate
from crossopt.solvers.codesign.objective import rows_of, values_of

# Where a box is cut: off what can be forgotten at the ends of choices, or in the middle of the choice that tells most.

_CUTS = 32
"""Cuts of one choice that are tried."""
_ROUNDS = 3
"""How often the ends of all choices are tried before the plans are filtered again."""
_LEAST_GAIN = 1.0e-6
"""Share of its bound that a part is taken to gain at the least, so that the other part's gain counts where it gains nothing."""


def single(box: Boxes) -> bool:
    """Whether a box is one point."""
    return bool((box.low == box.high).all())


def best_cuts(boxes: Sequence[Boxes], least: Callable[[Boxes], Array], value: float) -> list[Ranges]:
    """Where to cut each box: off what can be forgotten at once at the ends of all choices, until there is no such thing; then in the
    middle of the choice that tells most.

    Cuts of every choice are tried by their least bounds, those of all boxes together. The upper part keeps the best device, but not its
    price and power; a choice tells the more, the greater the product of what the bounds of both parts gain (Achterberg 2007).
    """
    left, ranges = list(boxes), [Ranges()] * len(boxes)
    going = list(range(len(boxes)))
    for _ in range(_ROUNDS):
        cuts = {number: _cuts(left[number]) for number in going}
        going = [number for number, (choices, _) in cuts.items() if len(choices)]
        if not going:
            break
        found = iter(np.split(*_bounds_of([(left[number], *cuts[number]) for number in going], least)))
        for number in tuple(going):
            keeps, cut_off = _cut(left[number], *cuts[number], next(found), value)
            ranges[number] = (*ranges[number], *keeps)
            if cut_off:
                left[number] = parted(left[number], keeps).at(0)
            else:
                going.remove(number)
    return ranges


def _bounds_of(cuts: Sequence[tuple[Boxes, Ints, Ints]], least: Callable[[Boxes], Array]) -> tuple[Array, list[int]]:
    """The least bounds of all sides of all cuts, and where those of the next box begin."""
    sides = [sides_of(*cut) for cut in cuts]
    return least(stacked(sides)), np.cumsum([len(some) for some in sides])[:-1].tolist()


def _cut(box: Boxes, choices: Ints, places: Ints, bounds: Array, value: float) -> tuple[Ranges, bool]:
    """What to keep of one box, and whether that is because the rest can be forgotten."""
    lower, upper = bounds.reshape(2, -1)
    ends = _forgotten(box, choices, places, lower >= value, upper >= value)
    if ends:
        return ends, True
    halves = places == (box.low[0, choices] + box.high[0, choices]) // 2
    middle = np.where(halves, cut_scores(bounds.reshape(2, -1)), -np.inf)
    best = int(np.argmax(middle))
    return ((int(choices[best]), int(box.low[0, choices[best]]), int(places[best])),), False


def cut_scores(bounds: Array) -> Array:
    """How much cuts tell, by the bounds of their lower parts and of their upper ones: most where there is nothing in a part."""
    gains = bounds - bounds.min() * (1.0 - _LEAST_GAIN)
    return np.where(np.isinf(bounds).any(axis=0), np.inf, np.multiply(*np.where(np.isinf(bounds), 0.0, gains)))


def _cuts(box: Boxes) -> tuple[Ints, Ints]:
    """Where a box may be cut: choices, and places up to which the lower parts go."""
    places = [_cut_points(box, choice) for choice in range(box.low.shape[1])]
    choices = np.repeat(np.arange(len(places)), [len(some) for some in places])
    return choices, np.array([index for some in places for index in some], np.int64)


def sides_of(box: Boxes, choices: Ints, places: Ints) -> Boxes:
    """The lower parts of all cuts, and then the upper ones."""
    count, every = len(choices), np.arange(len(choices))
    low, high = np.repeat(box.low, 2 * count, axis=0), np.repeat(box.high, 2 * count, axis=0)
    high[every, choices], low[every + count, choices] = places, places + 1
    return Boxes(low, high)


def _forgotten(box: Boxes, choices: Ints, places: Ints, lower: Mask, upper: Mask) -> Ranges:
    """What is left of the choices when the largest parts that can be forgotten are cut off at both ends."""
    low, high = box.low[0], box.high[0]
    first, last = low.copy(), high.copy()
    np.maximum.at(first, choices[lower], places[lower] + 1)
    np.minimum.at(last, choices[upper], places[upper])
    # Where the two parts meet, nothing of the box is left: one of them is cut off, and the other is what is kept.
    last = np.where(first > last, high, last)
    return tuple((choice, int(first[choice]), int(last[choice])) for choice in np.flatnonzero((first > low) | (last < high)).tolist())


def _cut_points(box: Boxes, choice: int) -> list[int]:
    """Where a choice may be cut: after every option, or after some thirty of them and the middle one."""
    low, high = int(box.low[0, choice]), int(box.high[0, choice])
    step = max(1, (high - low) // _CUTS)
    return sorted({*range(low, high, step), (low + high) // 2}) if low < high else []


# A good design to start from: alternating between the best plan for a chip and the best chip for a few plans.

_PLANS = 16
"""Plans for which a chip is sought."""
_INCUMBENT_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Incumbent:
    """A design by its hardware places and its plan; the value is infinite, and the plan None, where there is none."""

    value: float
    places: Ints
    plan: Plan | KernelPlan | None


def candidate_of(space: Grid, best: Incumbent) -> Candidate | None:
    """The design by the number of its hardware point."""
    return None if best.plan is None else Candidate(point_number(space, best.places), best.plan)


def incumbent_of(instance: Instance, space: Grid, known: Candidate | None) -> Incumbent:
    """A design that is known already, by its value; none where it keeps not every limit."""
    if known is None:
        return Incumbent(float("inf"), full_box(space).low[0], None)
    places = option_indices(space, known.point)
    plans: AnyPlans = table([known.plan]) if isinstance(known.plan, Plan) else (known.plan,)
    return at_row(float(best_plans(instance, space, plans, places, 1)[1][0]), places, plans, 0)


def at_row(value: float, places: Ints, plans: AnyPlans, row: int) -> Incumbent:
    """The design with the plan in one row."""
    return Incumbent(value, places, candidate(plans, row, 0).plan if value < float("inf") else None)


def best_plans(instance: Instance, space: Grid, plans: AnyPlans, places: Ints, count: int) -> tuple[Ints, Array]:
    """The rows of the plans with the least values on one chip, and those values, ascending; infinite where a plan does not fit."""
    found = values_of(instance, corners(instance, space, Boxes(places[None], places[None])), plans)[:, 0]
    rows = np.argsort(found, kind="stable")[:count]
    return rows, found[rows]


def improved(instance: Instance, space: Grid, plans: AnyPlans, start: Ints, deadline: float = float("inf")) -> Incumbent:
    """The design to which alternating steps lead from a chip before the deadline; no step is taken that does not lower the value."""
    places = start
    rows, found = best_plans(instance, space, plans, places, _PLANS)
    best = at_row(float(found[0]), places, plans, int(rows[0]))
    for _ in range(_INCUMBENT_ROUNDS):
        moves = chip_moves(space, best.places)
        if not len(moves) or monotonic() >= deadline:
            return best
        chosen = rows_of(plans, rows)
        table = values_of(instance, corners(instance, space, Boxes(moves, moves)), chosen)
        row, column = np.unravel_index(int(np.argmin(table)), table.shape)
        if not table[row, column] < best.value:
            return best
        best = at_row(float(table[row, column]), moves[column], plans, int(rows[row]))
        rows, found = best_plans(instance, space, plans, best.places, _PLANS)
        if found[0] < best.value:
            best = at_row(float(found[0]), best.places, plans, int(rows[0]))
    return best


def chip_moves(space: Grid, places: Ints) -> Ints:
    """The chips around one: one choice at another option, or one choice up with another one down."""
    ways = [_ways(size, int(index)) for size, index in zip(space.sizes, places, strict=True)]
    single = [((choice, to),) for choice, (down, up) in enumerate(ways) for to in (*down, *up)]
    pairs = (
        ((raised, higher), (lowered, lower))
        for raised, lowered in permutations(range(len(ways)), 2)
        for higher, lower in product(ways[raised][1], ways[lowered][0])
    )
    found = np.repeat(places[None], len(moves := [*single, *pairs]), axis=0)
    for row, move in zip(found, moves, strict=True):
        for choice, to in move:
            row[choice] = to
    return found


def _ways(size: int, index: int) -> tuple[list[int], list[int]]:
    """Options 1, 2, 4, 8, ... places below and above."""
    steps = [1 << power for power in range(size.bit_length())]
    return [index - step for step in steps if index >= step], [index + step for step in steps if index + step < size]


# The way down from a box of hardware points to one of them, by the better half of every box, and the design to which it leads.
#
# The best plans for the best chip there could be are seldom those for the best chip there is, so that the plans that decide the way are
# chosen again every few boxes.

DIVING = 1024
"""Plans that decide the way, those with the least bounds in a box."""
AGAIN = 3
"""After so many boxes they are chosen again."""
BACK = 8
"""Times that a way which leads nowhere is left for the other half of the last box that was cut."""


def found_from(
    instance: Instance, space: Grid, box: Boxes, plans: AnyPlans, value: float = float("inf"), deadline: float = float("inf")
) -> Incumbent | None:
    """The design to which the way down from a box leads, with steps that lower its value; None where there is no way to one below a
    value, or no time for it."""
    places = dive(instance, space, box, plans, value, deadline)
    return None if places is None else improved(instance, space, plans, places, deadline)


def dive(
    instance: Instance, space: Grid, box: Boxes, plans: AnyPlans, value: float = float("inf"), deadline: float = float("inf")
) -> Ints | None:
    """A chip that keeps the budgets: the better half of every box, from this one down to one point. None where no chip does, where
    the bounds of the boxes on the way are not below a value, or where the time is over before."""
    level, others, back = count(), list[Boxes](), 0
    while monotonic() < deadline:
        if next(level) % AGAIN == 0 or single(box):
            bounds = values_of(instance, corners(instance, space, box), plans)[:, 0]
            if not bounds.min() < value:
                if back == BACK or not others:
                    return None
                box, level, back = tightened(instance, space, others.pop()), count(), back + 1
                continue
            chosen: AnyPlans = rows_of(plans, np.argsort(bounds, kind="stable")[:DIVING])
        if single(box):
            return np.asarray(box.low[0])
        better, other = halves(box, least_of(instance, space, chosen))
        others.append(other)
        box = tightened(instance, space, better)
    return None


def halves(box: Boxes, least: Callable[[Boxes], Array]) -> tuple[Boxes, Boxes]:
    """The halves of a box that is cut in the middle of the choice that tells most, the one with the lesser bound first; the upper one if
    both are equal."""
    choices = np.flatnonzero(box.low[0] < box.high[0])
    sides = sides_of(box, choices, (box.low[0, choices] + box.high[0, choices]) // 2)
    bounds = least(sides).reshape(2, -1)
    if not np.isfinite(bounds).any():
        return sides.at(len(choices)), sides.at(0)
    best = int(np.argmax(cut_scores(bounds)))
    upper = last_least(bounds[:, best])
    return sides.at(best + len(choices) * upper), sides.at(best + len(choices) * (1 - upper))


def least_of(instance: Instance, space: Grid, plans: AnyPlans) -> Callable[[Boxes], Array]:
    """The least bound of the plans on each of some boxes."""
    return lambda boxes: values_of(instance, corners(instance, space, boxes), plans).min(axis=0)


def last_least(values: Array) -> int:
    """The last of the least."""
    return len(values) - 1 - int(np.argmin(values[::-1]))


# Monotone branch and bound over boxes of hardware points and lists of plans: exact, without a solver.
#
# A step on the best device that a box can hold is at least as fast as on any device in it, so the objective there bounds the box from
# below, plan by plan. The plan with the least bound comes first:
#
#     take the box and the plans with the least bound; cut the box in parts; price the plans on the best device of each part;
#     forget plans that do not fit or are bounded by the best value known; on a box of one point the bound is the value itself
#
# until nothing is bounded below the best value. Where a box is cut is decided once, when it is first looked at, so that the cuts form one
# tree for all plans. The tree is the certificate: a check bounds all plans along the same tree and must prune every one.

_BRANCH_PLANS = 4096
"""Plans of a box that are bounded together; the others wait with their bounds."""
DECIDING = 4
"""Plans by which is decided where a box is cut."""
_TOGETHER = 16
"""Boxes that are bounded together: pricing a few designs takes as long as pricing thousands of them."""
_FEW = 512
"""Most waiting plans in boxes that are bounded together, if there is more than one box."""


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

    ranges: Ranges
    parts: tuple[Node, ...]


class Valued(Protocol):
    """A design by its value, which is infinite where there is none."""

    @property
    def value(self) -> float: ...


Best = TypeVar("Best", bound=Valued)
Waiting = TypeVar("Waiting")


@dataclass(slots=True)
class Search(Generic[Best, Waiting]):
    """State of a search: boxes with the plans that wait in each."""

    root: Node
    best: Best
    heap: list[tuple[float, int, Node, Waiting]] = field(default_factory=list)
    looking: float = float("inf")
    """The least bound of the boxes in progress, which after an interrupt are neither in the heap nor pruned."""
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

    rows: Ints
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

    def look(picked: Sequence[tuple[Node, Rows]]) -> None:
        first: list[tuple[Node, Rows]] = []
        for node, waiting in picked:
            if len(waiting) > _BRANCH_PLANS:
                search.wait(float(waiting.bounds[_BRANCH_PLANS]), node, waiting.part(slice(_BRANCH_PLANS, None)))
            first.append((node, waiting.part(slice(_BRANCH_PLANS))))
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
    found = found_from(instance, space, node.box, rows_of(plans, waiting.rows[:_BRANCH_PLANS]), search.best.value, deadline)
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
    picked: list[tuple[Node, Waiting]] = []
    count = 0
    while search.heap and len(picked) < together:
        bound, _, node, waiting = search.heap[0]
        count += size(waiting)
        if picked and (count > _FEW or not bound < search.best.value or any(node is other for other, _ in picked)):
            break
        heappop(search.heap)
        picked.append((node, waiting))
    return picked


def root_node(instance: Instance) -> Node:
    """The box of all points."""
    return Node(root_box(instance))


def split_nodes(instance: Instance, space: Grid, nodes: Sequence[Node], ranges: Sequence[Ranges]) -> list[Split]:
    """Cut boxes into what they keep and the parts that they lose."""
    parts = [parted(node.box, keeps) for node, keeps in zip(nodes, ranges, strict=True)]
    boxes, at, splits = tightened(instance, space, stacked(parts)), 0, []
    for node, keeps, some in zip(nodes, ranges, parts, strict=True):
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
    watch(Progress(f"{boxes} explored, {len(search.heap):,} open", best, bound, answer))


def _closed(search: Search[Best, Waiting], spend: Spend) -> bool:
    """Whether the bound is within the gap of the best value, or that value good enough."""
    bound, value = search.heap[0][0], search.best.value
    return bound >= value or value <= spend.target or (value < float("inf") and value - bound <= spend.gap * value)


def _look(instance: Instance, space: Grid, search: PlanSearch, picked: Sequence[tuple[Node, Rows]], plans: AnyPlans) -> None:
    """Bound the plans on the parts of the boxes."""
    new = [(node, waiting) for node, waiting in picked if node.split is None]
    if new:
        few = rows_of(plans, np.unique(np.concatenate([waiting.rows[:DECIDING] for _, waiting in new])))
        nodes = [node for node, _ in new]
        ranges = best_cuts([node.box for node in nodes], least_of(instance, space, few), search.best.value)
        search.boxes += sum(len(split.parts) for split in split_nodes(instance, space, nodes, ranges))
    splits = [node.split for node, _ in picked if node.split is not None]
    boxes, slices = parts_of(splits)
    every = np.unique(np.concatenate([waiting.rows for _, waiting in picked]))
    table = values_of(instance, corners(instance, space, boxes), rows_of(plans, every))
    for split, columns, (_, waiting) in zip(splits, slices, picked, strict=True):
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
    open_rows = np.flatnonzero(bounds < search.best.value)
    if len(open_rows):
        open_rows = open_rows[np.argsort(bounds[open_rows], kind="stable")]
        search.wait(float(bounds[open_rows[0]]), node, Rows(found.rows[open_rows], bounds[open_rows]))
