"""Bounds of the plans of all workloads on the parts of boxes, with no more plans priced than tell the figure of each part.

Plans come with bounds on their box, ascending, below which they cannot fall on a part of it. On every part, and for every workload k,

    m_k = the least of the plans priced there,    n_k = the bound of the first plan that is not,    F(min(m_1, n_1), ...) <= the figure

More plans of workload k are priced there while that is below the best value known and n_k < m_k. What is left is either a part that can
be forgotten or one with the least bound of every workload; plans that were not priced keep the bounds that they have.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from crossflow.arrays import Array, Index, Mask
from crossflow.hardware import take
from instances.boxes import Corners, Grid
from instances.instance import Instance
from instances.space import AnyPlans
from solvers.branch import Rows, Split, parts_of
from solvers.expert import until
from solvers.pricing import rows_of, values_of
from solvers.several.combined import Joint, chips_of, combined, in_place

_FIRST = 256
"""Plans of a box that are priced at once; then as many again, and so on."""
_CALL = 1 << 15
"""To begin with a table of prices takes about as long as so many prices."""


@dataclass(slots=True)
class _Table:
    """The plans of one workload that wait in a box, and their bounds on its parts."""

    waiting: Rows
    columns: Index
    """The chips of the parts."""
    bounds: Array
    """Plans are rows and parts are columns; of plans that are not priced those on the box."""
    done: int = 0

    def following(self) -> float:
        """The bound of the first plan that is not priced."""
        return float(self.waiting.bounds[self.done]) if self.done < len(self.waiting) else float("inf")


@dataclass(frozen=True, slots=True)
class _Ask:
    """Plans to be priced on some parts of a box."""

    table: _Table
    end: int
    """Up to which of the plans that wait."""
    needed: Mask
    """Of the parts."""

    @property
    def rows(self) -> Index:
        return self.table.waiting.rows[self.table.done : self.end]

    @property
    def columns(self) -> Index:
        return self.table.columns[self.needed]


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
    chips, columns = chips_of(asked, space, boxes), np.arange(len(boxes))
    tables = [
        [_table(lists[place], columns[some]) for lists, some in zip(waiting, slices, strict=True)] for place in range(len(asked.parts))
    ]
    least = np.full((len(tables), len(boxes)), np.inf)
    while True:
        following = np.array([np.concatenate([np.full(len(one.columns), one.following()) for one in row]) for row in tables])
        figures = combined(asked, list(np.minimum(least, following)))
        needed = (figures < value) & (following < least)
        if not needed.any():
            break
        for place, part in enumerate(asked.parts):
            _price(part, chips[place], plans[place], tables[place], needed[place], least[place], deadline)
    minima = np.where(figures < value, least, np.inf)
    return [
        [_left(asked, [row[number] for row in tables], minima, column, value) for column in range(some.start, some.stop)]
        for number, some in enumerate(slices)
    ]


def _table(waiting: Rows, columns: Index) -> _Table:
    return _Table(waiting, columns, np.repeat(waiting.bounds[:, None], len(columns), axis=1))


def _price(
    instance: Instance, chips: Corners, plans: AnyPlans, tables: Sequence[_Table], needed: Mask, least: Array, deadline: float
) -> None:
    """Price the next plans of each box on those of its parts that need it, and lower the least bounds of these."""
    asks = [_ask(table, needed[table.columns], least) for table in tables if needed[table.columns].any()]
    for group in until(deadline, _groups(asks, len(plans))):
        every = np.unique(np.concatenate([ask.rows for ask in group]))
        columns = np.concatenate([ask.columns for ask in group])
        some = Corners(take(chips.hardware, columns), chips.alive[columns])
        found = values_of(instance, some, rows_of(plans, every))
        starts = np.cumsum([0, *(len(ask.columns) for ask in group)])
        for ask, start, stop in zip(group, starts[:-1], starts[1:], strict=True):
            table, bounds = ask.table, found[np.searchsorted(every, ask.rows), start:stop]
            table.bounds[table.done : ask.end, ask.needed] = bounds
            table.done = ask.end
            least[ask.columns] = np.minimum(least[ask.columns], bounds.min(axis=0))


def _ask(table: _Table, needed: Mask, least: Array) -> _Ask:
    """The next plans, some of them at a time, of those that may have the least bound on a part."""
    most = int(np.searchsorted(table.waiting.bounds, least[table.columns[needed]].max(), side="left"))
    return _Ask(table, min(table.done + max(_FIRST, table.done), most), needed)


def _groups(asks: Sequence[_Ask], plans: int) -> Iterator[list[_Ask]]:
    """Boxes whose plans are priced in one table: as long as the prices that none of them needs take less time than another table."""
    group: list[_Ask] = []
    present, columns, used = np.zeros(plans, bool), 0, 0
    for ask in asks:
        present[ask.rows] = True
        columns, used = columns + len(ask.columns), used + len(ask.rows) * len(ask.columns)
        if group and np.count_nonzero(present) * columns - used > _CALL * len(group):
            yield group
            group = []
            present[:] = False
            present[ask.rows] = True
            columns, used = len(ask.columns), len(ask.rows) * len(ask.columns)
        group.append(ask)
    if group:
        yield group


def _left(asked: Joint, tables: Sequence[_Table], minima: Array, column: int, value: float) -> tuple[Rows, ...]:
    """The plans with which the figure may be below a value on one part, by their bounds."""
    if not np.isfinite(minima[:, column]).all():
        return tuple(table.waiting.part(slice(0)) for table in tables)
    lists = []
    for place, table in enumerate(tables):
        bounds = table.bounds[:, column - table.columns[0]]
        kept = np.flatnonzero(in_place(asked, minima[:, column].tolist(), place, bounds) < value)
        kept = kept[np.argsort(bounds[kept], kind="stable")]
        lists.append(Rows(table.waiting.rows[kept], bounds[kept]))
    return tuple(lists)
