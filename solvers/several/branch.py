"""Branch and bound for several workloads: one tree of boxes of chips, and in every box a list of plans for each workload.

For a chip h and the figure F the value is F(min_p v_1(h, p), ..., min_p v_K(h, p)). F never falls when an argument grows, so that F of
the least bounds on the best chip of a box bounds the box, and F with one plan's bound in the place of the least one bounds all designs
of the box that give the workload this plan. A plan is forgotten in a box once that is no better than the best value known.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from crossflow.arrays import Array, Index
from crossflow.kernel_plan import KernelPlan
from crossflow.plan import Plan
from instances.boxes import Boxes, Grid
from instances.space import AnyPlans
from solvers.branch import (
    DECIDING,
    DIVING,
    Node,
    Rows,
    Search,
    Spend,
    Split,
    best_cuts,
    best_first,
    last_least,
    parts_of,
    root_node,
    split_nodes,
)
from solvers.designs import candidate
from solvers.incumbent import best_plans, chip_moves
from solvers.pricing import rows_of, values_of
from solvers.several.combined import FIRST, Joint, below, bounded_rows, chips_of, combined, minima_of
from solvers.watching import Watch

_PLANS = 16
"""Plans of each workload for which a chip is sought."""
_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Incumbent:
    """A design by its hardware places and the plan of each workload; the value is infinite, and there are no plans, where there is none."""

    value: float
    places: Index
    plans: tuple[Plan | KernelPlan, ...]


JointSearch = Search[Incumbent, tuple[Rows, ...]]


def branch(
    asked: Joint, space: Grid, root: Node, plans: Sequence[AnyPlans], lists: Sequence[Rows], start: Incumbent, watch: Watch, spend: Spend
) -> JointSearch:
    """Search until no box is bounded below the best value, or gap or deadline end it; `lists` are the plans by their bounds on the root."""
    search: JointSearch = Search(root, start)

    def look(looked: Sequence[tuple[Node, tuple[Rows, ...]]]) -> None:
        first = [(node, below(asked, waiting, search.best.value)) for node, waiting in looked]
        going = [(node, waiting) for node, waiting in first if all(map(len, waiting))]
        if going:
            _look(asked, space, search, going, plans)

    _keep(asked, search, root, plans, lists)
    best_first(search, look, _waiting, watch, spend)
    return search


def _waiting(lists: tuple[Rows, ...]) -> int:
    """The plans of all workloads that are priced at once."""
    return sum(min(len(rows), FIRST) for rows in lists)


def _look(
    asked: Joint, space: Grid, search: JointSearch, looked: Sequence[tuple[Node, tuple[Rows, ...]]], plans: Sequence[AnyPlans]
) -> None:
    """Bound the plans on the parts of the boxes, none of which was cut before."""
    nodes, lists = [node for node, _ in looked], [waiting for _, waiting in looked]
    deciding = [np.unique(np.concatenate([rows.rows[:DECIDING] for rows in column])) for column in zip(*lists, strict=True)]
    few = [rows_of(table, rows) for table, rows in zip(plans, deciding, strict=True)]
    kept = best_cuts([node.box for node in nodes], least_of(asked, space, few), search.best.value)
    splits = split_nodes(asked.parts[0], space, nodes, kept)
    search.boxes += sum(len(split.parts) for split in splits)
    for split, found in zip(splits, bounded(asked, space, splits, plans, lists), strict=True):
        for inner, some in zip(split.parts, found, strict=True):
            _keep(asked, search, inner, plans, some)


def bounded(
    asked: Joint, space: Grid, splits: Sequence[Split], plans: Sequence[AnyPlans], waiting: Sequence[tuple[Rows, ...]]
) -> list[list[tuple[Rows, ...]]]:
    """For each split, and each of its parts, the plans of every workload with their bounds there."""
    boxes, slices = parts_of(splits)
    chips = chips_of(asked, space, boxes)
    found = [
        bounded_rows(part, chip, slices, table, [lists[place] for lists in waiting])
        for place, (part, chip, table) in enumerate(zip(asked.parts, chips, plans, strict=True))
    ]
    return [list(zip(*(one[number] for one in found), strict=True)) for number in range(len(splits))]


def _keep(asked: Joint, search: JointSearch, node: Node, plans: Sequence[AnyPlans], lists: Sequence[Rows]) -> None:
    """Keep the plans with which the box may be better than the best; on a single point the least of each are the new best."""
    least = float(combined(asked, [np.float64(value) for value in minima_of(lists)]))
    if not least < search.best.value:
        return
    if node.single:
        chosen = tuple(candidate(table, int(rows.rows[0]), 0).plan for table, rows in zip(plans, lists, strict=True))
        search.best = Incumbent(least, node.box.low[0], chosen)
        return
    search.wait(least, node, below(asked, lists, search.best.value))


def least_of(asked: Joint, space: Grid, plans: Sequence[AnyPlans]) -> Callable[[Boxes], Array]:
    """The figure of the least bounds of these plans on each of some boxes."""

    def least(boxes: Boxes) -> Array:
        chips = chips_of(asked, space, boxes)
        found = [values_of(part, *pair).min(axis=0) for part, pair in zip(asked.parts, zip(chips, plans, strict=True), strict=True)]
        return combined(asked, found)

    return least


def started(asked: Joint, space: Grid, pools: Sequence[AnyPlans]) -> Incumbent:
    """The design to start from: down into the best boxes, then alternating steps that lower the value."""
    places = _dive(asked, space, pools) if all(map(len, pools)) else None
    if places is None:
        return Incumbent(float("inf"), np.zeros(len(space.sizes), np.int64), ())
    return improved(asked, space, pools, places)


def _dive(asked: Joint, space: Grid, pools: Sequence[AnyPlans]) -> Index | None:
    """A chip that keeps the budgets: the better part of every box, down to one point. None where no chip does."""
    node, chosen = root_node(asked.parts[0], space), list(pools)
    chips = chips_of(asked, space, node.box)
    bounds = [values_of(part, *pair)[:, 0] for part, pair in zip(asked.parts, zip(chips, chosen, strict=True), strict=True)]
    while not node.single:
        if not all(np.isfinite(one).any() for one in bounds):
            return None
        chosen = [rows_of(some, np.argsort(one, kind="stable")[:DIVING]) for some, one in zip(chosen, bounds, strict=True)]
        [split] = split_nodes(asked.parts[0], space, [node], best_cuts([node.box], least_of(asked, space, chosen), np.inf))
        chips = chips_of(asked, space, parts_of([split])[0])
        tables = [values_of(part, *pair) for part, pair in zip(asked.parts, zip(chips, chosen, strict=True), strict=True)]
        better = last_least(combined(asked, [table.min(axis=0) for table in tables]))
        node, bounds = split.parts[better], [table[:, better] for table in tables]
    return node.box.low[0] if all(np.isfinite(one).any() for one in bounds) else None


def improved(asked: Joint, space: Grid, pools: Sequence[AnyPlans], places: Index) -> Incumbent:
    """The design to which steps from chip to chip lead, each with the best plans there; no step that does not lower the value."""
    best, few = _on_chip(asked, space, pools, places)
    for _ in range(_ROUNDS):
        moves = chip_moves(space, best.places)
        if not len(moves):
            break
        values = least_of(asked, space, few)(Boxes(moves, moves))
        if not values.min() < best.value:
            break
        best, few = _on_chip(asked, space, pools, moves[int(np.argmin(values))])
    return best


def _on_chip(asked: Joint, space: Grid, pools: Sequence[AnyPlans], places: Index) -> tuple[Incumbent, list[AnyPlans]]:
    """The best plans on one chip, and for each workload the few best ones."""
    found = [best_plans(part, space, pool, places, _PLANS) for part, pool in zip(asked.parts, pools, strict=True)]
    value = float(combined(asked, [values[0] for _, values in found]))
    chosen = tuple(candidate(pool, int(rows[0]), 0).plan for pool, (rows, _) in zip(pools, found, strict=True))
    few = [rows_of(pool, rows) for pool, (rows, _) in zip(pools, found, strict=True)]
    return Incumbent(value, places, chosen if value < float("inf") else ()), few
