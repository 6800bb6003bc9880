"""Bounds of the plans of all workloads on the parts of boxes, with no more plans priced than may make the figure small.

Plans come with bounds on their box, ascending, below which they cannot fall on a part of it. On every part, and for every workload k,

    m_k = the least bound of its plans there, or on the box while they are not priced,    F(m_1, ...) <= the figure

One workload after the other is priced, that with the fewest plans first, on the parts on which F(m_1, ...) is still below the best value
known, and of its plans those whose bound on the box in the place of m_k leaves it there. So a part is forgotten by as few prices as may
be, and what is not forgotten has the least bound of every workload.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.instances.codesign.boxes import Corners, Grid, corners_in
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import AnyPlans
from crossopt.solvers.codesign.boxes.branch import Rows, Split, parts_of
from crossopt.solvers.codesign.combined.workloads.combined import chips_of, in_place
from crossopt.solvers.codesign.objective import Joint, combined
from crossopt.solvers.codesign.pricing import rows_of, values_of
from crossopt.solvers.codesign.rivals.megatron import until

_CALL = 1 << 15
"""To begin with a table of prices takes about as long as so many prices."""
_MOST = 1 << 22
"""Prices in one table of several boxes, so that it does not fill the memory."""


@dataclass(frozen=True, slots=True)
class _Ask:
    """Plans of one workload to be priced on some parts of a box."""

    rows: Whole
    columns: Whole
    """The parts, by their numbers among those of all boxes."""
    bounds: Array
    """Plans are rows and parts are columns; what is asked for."""


def bounded(
    asked: Joint,
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
    chips, columns, counts = chips_of(asked, space, boxes), np.arange(len(boxes)), [len(split.parts) for split in splits]
    lists = list(zip(*waiting, strict=True))
    least = np.array([np.repeat([rows.bounds[0] for rows in some], counts) for some in lists])
    asks: dict[int, list[_Ask]] = {}
    for place in sorted(range(len(lists)), key=lambda place: sum(map(len, lists[place]))):
        needed = combined(asked, list(least)) < value
        asks[place] = [
            _ask(asked, place, rows, columns[some][needed[some]], least, value) for rows, some in zip(lists[place], slices, strict=True)
        ]
        _price(asked.parts[place], chips[place], plans[place], asks[place], deadline)
        for ask in asks[place]:
            least[place, ask.columns] = ask.bounds.min(axis=0, initial=np.inf)
    minima = np.where(combined(asked, list(least)) < value, least, np.inf)
    return [
        [_left(asked, [asks[place][number] for place in range(len(lists))], minima, column, value) for column in columns[some].tolist()]
        for number, some in enumerate(slices)
    ]


def _ask(asked: Joint, place: int, waiting: Rows, columns: Whole, least: Array, value: float) -> _Ask:
    """The plans that may be in a design below a value on any of some parts."""
    minima = least[:, columns].min(axis=1, initial=np.inf).tolist()
    rows = waiting.rows[: np.count_nonzero(in_place(asked, minima, place, waiting.bounds) < value)]
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


def _left(asked: Joint, asks: Sequence[_Ask], minima: Array, column: int, value: float) -> tuple[Rows, ...]:
    """The plans with which the figure may be below a value on one part, by their bounds."""
    if not np.isfinite(minima[:, column]).all():
        return tuple(Rows(ask.rows[:0], np.zeros(0)) for ask in asks)
    lists = []
    for place, ask in enumerate(asks):
        bounds = ask.bounds[:, np.searchsorted(ask.columns, column)]
        kept = np.flatnonzero(in_place(asked, minima[:, column].tolist(), place, bounds) < value)
        kept = kept[np.argsort(bounds[kept], kind="stable")]
        lists.append(Rows(ask.rows[kept], bounds[kept]))
    return tuple(lists)
