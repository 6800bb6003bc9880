"""Branch and bound for several workloads: one tree of boxes of chips, and in every box a list of plans for each workload.

For a chip h and the figure F the value is F(min_p v_1(h, p), ..., min_p v_K(h, p)). F never falls when an argument grows, so that F of
the least bounds on the best chip of a box bounds the box, and F with one plan's bound in the place of the least one bounds all designs
of the box that give the workload this plan. A plan is forgotten in a box once that is no better than the best value known.
"""

from collections.abc import Sequence
from itertools import count

import numpy as np

from crossopt.instances.codesign.boxes import Grid
from crossopt.instances.codesign.space import AnyPlans
from crossopt.solvers.answer import Watch
from crossopt.solvers.codesign.answer import candidate
from crossopt.solvers.codesign.boxes.branch import DECIDING, Node, Rows, Search, Spend, best_first, seldom, split_nodes
from crossopt.solvers.codesign.boxes.cuts import best_cuts
from crossopt.solvers.codesign.combined.workloads.bounding import bounded
from crossopt.solvers.codesign.combined.workloads.combined import below, minima_of
from crossopt.solvers.codesign.combined.workloads.incumbent import Incumbent, found_from, least_of
from crossopt.solvers.codesign.objective import Joint, combined
from crossopt.solvers.codesign.pricing import rows_of

TOGETHER = 64
"""Boxes that are looked at together, however many plans wait in them: no more of these are priced than need be."""
_DOWN = 1 << 14
"""Plans of each workload with which the search goes down for a design, those with the least bounds in a box."""

JointSearch = Search[Incumbent, tuple[Rows, ...]]


def branch(
    asked: Joint, space: Grid, root: Node, plans: Sequence[AnyPlans], lists: tuple[Rows, ...], start: Incumbent, watch: Watch, spend: Spend
) -> JointSearch:
    """Search until no box is bounded below the best value, or gap or deadline end it; `lists` are the plans by their bounds on the root."""
    search: JointSearch = Search(root, start)
    looks = count(1)

    def look(looked: Sequence[tuple[Node, tuple[Rows, ...]]]) -> None:
        first = [(node, below(asked, waiting, search.best.value)) for node, waiting in looked]
        going = [(node, waiting) for node, waiting in first if all(map(len, waiting))]
        if going:
            _look(asked, space, search, going, plans, spend.deadline)
        if seldom(next(looks), 2):
            _go_down(asked, space, search, plans, spend.deadline)

    _keep(asked, search, root, plans, lists)
    best_first(search, look, lambda _: 0, watch, spend, TOGETHER)
    return search


def _go_down(asked: Joint, space: Grid, search: JointSearch, plans: Sequence[AnyPlans], deadline: float) -> None:
    """Look for a better design in the box with the least bound."""
    if not search.heap:
        return
    _, _, node, lists = search.heap[0]
    pools = [rows_of(table, rows.rows[:_DOWN]) for table, rows in zip(plans, lists, strict=True)]
    found = found_from(asked, space, node.box, pools, search.best.value, deadline)
    if found.value < search.best.value:
        search.best = found


def _look(
    asked: Joint,
    space: Grid,
    search: JointSearch,
    looked: Sequence[tuple[Node, tuple[Rows, ...]]],
    plans: Sequence[AnyPlans],
    deadline: float,
) -> None:
    """Bound the plans on the parts of the boxes, none of which was cut before."""
    nodes, lists = [node for node, _ in looked], [waiting for _, waiting in looked]
    deciding = [np.unique(np.concatenate([rows.rows[:DECIDING] for rows in column])) for column in zip(*lists, strict=True)]
    few = [rows_of(table, rows) for table, rows in zip(plans, deciding, strict=True)]
    kept = best_cuts([node.box for node in nodes], least_of(asked, space, few), search.best.value)
    splits = split_nodes(asked.parts[0], space, nodes, kept)
    search.boxes += sum(len(split.parts) for split in splits)
    for split, found in zip(splits, bounded(asked, space, splits, plans, lists, search.best.value, deadline), strict=True):
        for inner, some in zip(split.parts, found, strict=True):
            _keep(asked, search, inner, plans, some)


def _keep(asked: Joint, search: JointSearch, node: Node, plans: Sequence[AnyPlans], lists: tuple[Rows, ...]) -> None:
    """Keep the plans with which the box may be better than the best; on a single point the least of each are the new best."""
    least = float(combined(asked, [np.float64(value) for value in minima_of(lists)]))
    if not least < search.best.value:
        return
    if node.single:
        chosen = tuple(candidate(table, int(rows.rows[0]), 0).plan for table, rows in zip(plans, lists, strict=True))
        search.best = Incumbent(least, node.box.low[0], chosen)
        return
    search.wait(least, node, lists)
