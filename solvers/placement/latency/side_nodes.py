"""What a piece takes beside its path: nodes at its ends that are in it or not, and cost either way. Makes the bound of `paths` sharper.

A piece with the nodes i to j of a path surely holds some nodes and surely not others. Of those left, nodes with i <= lo <= j < hi are at
its end and nodes with lo < i <= hi <= j at its start:

    end      the nodes of them that are in the piece are closed under predecessors: who comes after a node in it and before one is in it
    start    they are closed under successors

Each such set asks for its times and sizes, and for the transfer of every node whose output joins one in the piece with one outside. So a
side gives choices of (size, time), of which those are kept that none beats in both. A node's output counts for the end if lo >= i and for
the start if lo < i, and not at all where `paths` counts it already: never twice. The piece takes at least the cheapest pair of choices that
fits the memory beside what it surely holds. If none fits, it is none.

Nodes that hang together, by order or by a transfer, are chosen together; others apart, and their choices are added. Where too many sets
would have to be looked at, transfers are shared out among the parts they join (who is cut pays no more than the whole), then parts are left
out: both can only lower the bound. For the end, nodes are looked at down to some lo, which serves all i up to it; for the start up to
some hi.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.solvers.placement.latency.paths import Between, Whole

Front = tuple[Array, Array]
"""Sizes, in rising order, and times of the choices of a side."""
NOTHING: Front = (np.zeros(1), np.zeros(1))
MOST_REPEATED = 500_000
"""Pieces of which what lies beside the path is looked at again by a check, some seconds of work."""
_MOST_SETS, _MOST_NODES, _MOST_CHOICES = 400, 32, 48


@dataclass(frozen=True, slots=True)
class Net:
    """The output of one node, as far as it is known where its ends are."""

    cost: float
    pins: tuple[int, ...]
    """Rows that may be in the piece or not."""
    inside: bool
    """Whether some end surely is in it."""
    outside: bool


def ends(whole: Whole, beside: Between, j: int) -> list[tuple[int, Front]]:
    """Choices at the end of pieces that end at P_j: those of the last pair with its first figure not below i serve a start at i."""
    free = {row for row, low in enumerate(beside.low) if 0 <= low <= j < beside.high[row] and row not in beside.held}

    def net(row: int, nodes: set[int]) -> Net:
        takers = whole.after[row]
        pins = tuple(one for one in (row, *takers) if one in nodes)
        return Net(whole.transfer[row], pins, beside.high[row] <= j, any(beside.low[one] > j for one in takers))

    def owners(nodes: set[int], start: int) -> Iterable[int]:
        rows = {*nodes, *(one for row in nodes for one in whole.before[row])}
        return sorted(row for row in rows if beside.low[row] >= start)

    found = list[tuple[int, Front]]()
    for start in sorted({beside.low[row] for row in free}, reverse=True):
        nodes = {row for row in free if beside.low[row] >= start}
        if len(nodes) > _MOST_NODES:
            break
        found.append((start, choices(whole, nodes, [net(row, nodes) for row in owners(nodes, start)], whole.before, whole.along)))
    return found


def starts(whole: Whole, beside: Between, i: int, count: int) -> list[tuple[int, Front]]:
    """Choices at the start of pieces that start at P_i: those of the last pair with its first figure not above j serve an end at j."""
    free = {row for row, low in enumerate(beside.low) if low < i <= beside.high[row] < count and row not in beside.held}

    def net(row: int, nodes: set[int], end: int) -> Net:
        takers = whole.after[row]
        inside = any(beside.low[one] >= i and beside.high[one] <= end for one in takers)
        return Net(whole.transfer[row], tuple(one for one in (row, *takers) if one in nodes), inside, beside.high[row] < i)

    def owners(nodes: set[int]) -> Iterable[int]:
        rows = {*nodes, *(one for row in nodes for one in whole.before[row])}
        counted = {row for row in rows if beside.high[row] < i and any(beside.low[one] >= i for one in whole.after[row])}
        return sorted(row for row in rows - counted if beside.low[row] < i)

    found = list[tuple[int, Front]]()
    for end in sorted({beside.high[row] for row in free}):
        nodes = {row for row in free if beside.high[row] <= end}
        if len(nodes) > _MOST_NODES:
            break
        found.append((end, choices(whole, nodes, [net(row, nodes, end) for row in owners(nodes)], whole.after, whole.along[::-1])))
    return found


def choices(whole: Whole, nodes: set[int], nets: list[Net], needs: list[list[int]], order: list[int]) -> Front:
    """What the nodes may add to a piece, where a node is in it only with all it needs among them."""
    nets = [net for net in nets if net.cost and net.pins and not (net.inside and net.outside)]
    together = _choices(whole, nodes, nets, needs, order)
    if together is not None:
        return together
    part = _parts(nodes, needs, [])
    shared = [
        Net(net.cost // len(groups), tuple(pins), net.inside, net.outside)
        for net in nets
        for groups in [_by_part(net.pins, part)]
        for pins in groups
    ]
    found = NOTHING
    for group in _groups(nodes, part):
        own = _choices(whole, group, [net for net in shared if net.pins[0] in group], needs, order)
        found = _both(found, NOTHING if own is None else own)
    return found


def _choices(whole: Whole, nodes: set[int], nets: list[Net], needs: list[list[int]], order: list[int]) -> Front | None:
    """The same, part by part; None where a part has too many sets."""
    part, found = _parts(nodes, needs, [net.pins for net in nets]), NOTHING
    for group in _groups(nodes, part):
        rows = [row for row in order if row in group] if len(group) > 1 else sorted(group)
        sets = _closed(rows, needs, whole)
        if sets is None:
            return None
        found = _both(found, _front(whole, rows, sets, [net for net in nets if net.pins[0] in group]))
    return found


def _closed(rows: list[int], needs: list[list[int]], whole: Whole) -> "np.ndarray[tuple[int, int], np.dtype[np.bool_]] | None":
    """All sets of these rows that hold what their rows need, as rows of a table; None for too many."""
    place = {row: number for number, row in enumerate(rows)}
    found = [0]
    for number, row in enumerate(rows):
        if whole.accelerator[row] == float("inf"):
            continue
        needed = sum(1 << place[one] for one in needs[row] if one in place)
        found += [one | 1 << number for one in found if one & needed == needed]
        if len(found) > _MOST_SETS:
            return None
    return np.array([[one >> number & 1 for number in range(len(rows))] for one in found], bool)


def _front(whole: Whole, rows: list[int], sets: "np.ndarray[tuple[int, int], np.dtype[np.bool_]]", nets: list[Net]) -> Front:
    work = np.array([0.0 if whole.accelerator[row] == float("inf") else whole.accelerator[row] for row in rows])
    time, size = sets @ work, sets @ np.array([whole.size[row] for row in rows])
    place = {row: number for number, row in enumerate(rows)}
    for net in nets:
        pins = sets[:, [place[pin] for pin in net.pins]]
        time = time + net.cost * ((pins.any(axis=1) | net.inside) & (~pins.all(axis=1) | net.outside))
    return _kept(size, time)


def _kept(size: Array, time: Array) -> Front:
    """The choices that none beats in both; where there are many, pairs of them become one that is no worse than either."""
    order = np.lexsort((time, size))
    size, time = size[order], time[order]
    least = np.minimum.accumulate(time)
    kept = np.concatenate([[True], time[1:] < least[:-1]])
    size, time = size[kept], time[kept]
    while len(size) > _MOST_CHOICES:
        last = np.minimum(np.arange(1, len(size) + 1, 2), len(size) - 1)
        size, time = size[::2], time[last]
    return size, time


def _both(one: Front, other: Front) -> Front:
    return _kept((one[0][:, None] + other[0]).ravel(), (one[1][:, None] + other[1]).ravel())


def _parts(nodes: set[int], needs: list[list[int]], pins: Iterable[Sequence[int]]) -> dict[int, int]:
    """A row that stands for all that hang together with a row, for each row."""
    head = {row: row for row in nodes}

    def top(row: int) -> int:
        while head[row] != row:
            head[row] = head[head[row]]
            row = head[row]
        return row

    for row in nodes:
        for other in needs[row]:
            if other in head:
                head[top(row)] = top(other)
    for joined in pins:
        for other in joined[1:]:
            head[top(joined[0])] = top(other)
    return {row: top(row) for row in nodes}


def _groups(nodes: set[int], part: dict[int, int]) -> list[set[int]]:
    groups = defaultdict[int, set[int]](set)
    for row in sorted(nodes):
        groups[part[row]].add(row)
    return list(groups.values())


def _by_part(pins: Sequence[int], part: dict[int, int]) -> list[list[int]]:
    groups = defaultdict[int, list[int]](list)
    for pin in pins:
        groups[part[pin]].append(pin)
    return list(groups.values())


def looked_at(pieces: Array, ends: int) -> int:
    """Of how many pieces one looks beside the path, up to some end."""
    return int(np.isfinite(pieces[:, :ends]).sum())


def sharper(whole: Whole, beside: Between, pieces: Array, size: Array, late: Callable[[], bool]) -> tuple[Array, int]:
    """The least times of pieces with what they take beside the path, as they were where time ran out; and up to which end they are."""
    count, found = len(pieces), pieces.copy()
    at_start = list[list[tuple[int, Front]]]()
    for j in range(count):
        if late():
            return found, j
        at_start.append(starts(whole, beside, j, count))
        at_end = ends(whole, beside, j)
        for i in np.flatnonzero(np.isfinite(pieces[:, j])).tolist():
            end = next((front for start, front in reversed(at_end) if start >= i), NOTHING)
            first = next((front for last, front in reversed(at_start[i]) if last <= j), NOTHING)
            if end is NOTHING and first is NOTHING:
                continue
            fits = end[0][:, None] + first[0] <= whole.memory - size[i, j]
            found[i, j] += np.where(fits, end[1][:, None] + first[1], np.inf).min()
    return found, count
