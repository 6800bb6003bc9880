"""A bound on latency from one path of the data, by dynamic programming: exact for chains, and quick for every graph.

Let P_1 -> ... -> P_L be a path. Whatever is done about the rest of the graph, its nodes are done one after another, on CPUs or in
pieces. No data leave a piece and come back to it (it would wait for itself), so that a piece has an interval P_i ... P_j of the path, and

    in it         every node that comes after P_i (or is it) and before P_j (or is it)
    outside it    every node that comes before P_(i-1) and every node that comes after P_(j+1), with these themselves

It takes at least the times of the nodes in it, and the transfer of each node whose output joins a node in it with one outside. With

    lo(v) = the largest i with P_i before v or v itself,  hi(v) = the least j with P_j after v or v itself

v is in it if i <= lo(v) and hi(v) <= j, and outside if hi(v) < i or lo(v) > j. So all of these are sums over rectangles of (i, j), added
as corners. An interval whose nodes exceed the memory is no piece. Where each accelerator runs one piece, nodes of one colour are in it
together: those of the colour of P_h are in it if i <= h <= j, and an interval with some but not all nodes of a colour is no piece. Then

    least[a, j] = min(least[a, j - 1] + cpu(P_j), min over i of least[a - 1, i - 1] + piece(i, j))

is what the first j nodes take at least in a pieces. Times and sizes are whole quanta, rounded down (`formulation.rounding`), in floats that
hold whole numbers up to 2^53 exactly: the bound is no more than any placement's true value, to the last bit.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import floor, log2
from typing import Literal

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.formulation.model import ceiled, floored, quantum_for, real
from crossopt.instances.placement.question import Graph, PlacementQuestion

_STEPS = 1 << 50
"""Quanta of all corners together, whose sums then stay below 2^53."""
LARGEST = 4000
"""Nodes in a row of which tables over all intervals take too much memory."""
_MOST_PIECES = 64
"""Pieces from which they are not counted any more, which can only lower a bound."""


@dataclass(frozen=True, slots=True, eq=False)
class ScaledQuestion:
    """A question in whole quanta, as lists over the rows of its graph."""

    accelerator: list[float]
    """Infinite where no accelerator can run the node."""
    cpu: list[float]
    transfer: list[float]
    size: list[float]
    memory: float
    memories: float
    """Of all accelerators together."""
    accelerators: int
    slots: int
    """Pieces of all accelerators."""
    before: list[list[int]]
    after: list[list[int]]
    colour: list[int]
    """Of each row; all differ where nodes of one colour need not be in one piece."""
    along: list[int]
    """The rows in an order in which all data flow forward."""
    quantum: float
    """Milliseconds."""


def scaled_question(question: PlacementQuestion) -> ScaledQuestion:
    """The figures of a question, rounded so that bounds hold."""
    graph = question.graph
    finite = np.isfinite(graph.accelerator_time)
    times = np.where(finite, graph.accelerator_time, 0.0)
    before, after = _neighbours(graph)
    takers = np.array([len(rows) for rows in after])
    every = float((4.0 * times + graph.cpu_time + 4.0 * (1.0 + takers) * graph.transfer).sum())
    quantum = quantum_for(max(every, np.finfo(float).tiny), _STEPS)
    bytes_in_all = max(4.0 * float(graph.size.sum()), 1.0)
    grain = quantum_for(bytes_in_all, _STEPS)
    return ScaledQuestion(
        accelerator=np.where(finite, floored(times, quantum), np.inf).tolist(),
        cpu=floored(graph.cpu_time, quantum).astype(float).tolist(),
        transfer=floored(graph.transfer, quantum).astype(float).tolist(),
        size=floored(graph.size, grain).astype(float).tolist(),
        memory=float(ceiled([min(question.memory, bytes_in_all)], grain)[0]),
        memories=float(ceiled([min(min(question.memory, bytes_in_all) * question.accelerators, bytes_in_all)], grain)[0]) + 1.0,
        accelerators=question.accelerators,
        slots=min(question.accelerators * question.pieces, len(graph)),
        colour=graph.colour.tolist() if question.pieces == 1 else list(range(len(graph))),
        before=before,
        after=after,
        along=_along(before, after),
        quantum=quantum,
    )


def _neighbours(graph: Graph) -> tuple[list[list[int]], list[list[int]]]:
    before, after = [set[int]() for _ in range(len(graph))], [set[int]() for _ in range(len(graph))]
    for start, end in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        after[start].add(end)
        before[end].add(start)
    return [sorted(rows) for rows in before], [sorted(rows) for rows in after]


def _along(before: list[list[int]], after: list[list[int]]) -> list[int]:
    waiting = [len(rows) for rows in before]
    order = [row for row, count in enumerate(waiting) if not count]
    for row in order:  # grows while it is walked along
        for other in after[row]:
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)
    return order


Figure = Literal["cpu", "size", "transfer"]
FIGURES: tuple[Figure, ...] = ("cpu", "size", "transfer")
"""Paths that are longest by one of these say the most."""


def weighed(scaled: ScaledQuestion) -> dict[Figure, list[int]]:
    """Paths that say the most: the longest in CPU times, in transfers and in sizes; each once."""
    found = {figure: path_by(scaled, figure) for figure in FIGURES}
    return {figure: path for index, (figure, path) in enumerate(found.items()) if path not in list(found.values())[:index]}


def path_by(scaled: ScaledQuestion, figure: Figure) -> list[int]:
    """The path that is longest by one kind of figure."""
    return longest(scaled, {"cpu": scaled.cpu, "size": scaled.size, "transfer": scaled.transfer}[figure])


def longest(scaled: ScaledQuestion, weights: list[float]) -> list[int]:
    """The path of the largest sum of weights."""
    sums, origin = [0.0] * len(weights), [-1] * len(weights)
    for row in scaled.along:
        origin[row] = max(scaled.before[row], key=lambda number: sums[number], default=-1)
        sums[row] = weights[row] + (sums[origin[row]] if origin[row] >= 0 else 0.0)
    row, path = max(range(len(sums)), key=lambda number: sums[number]), list[int]()
    while row >= 0:
        path.append(row)
        row = origin[row]
    return path[::-1]


def critical_path(scaled: ScaledQuestion) -> float:
    """Milliseconds of the longest path where every node takes the lesser of its times: a bound that any graph has at once."""
    weights = [min(times) for times in zip(scaled.accelerator, scaled.cpu, strict=True)]
    return real(int(sum(weights[row] for row in longest(scaled, weights))), scaled.quantum)


def least_time(scaled: ScaledQuestion, path: list[int], pieces: Array, size: Array) -> float:
    """Milliseconds that the nodes of a path take at least, where a piece with its nodes i to j takes `pieces[i, j]` and has `size[i, j]`.

    Where accelerators run several pieces, these fill one memory: all sizes together are no more than the memories. For any price of a byte

        time >= min (time + price * sizes) - price * memories

    which is concave in the price, so that prices are doubled, and then refined, for as long as that helps.
    """
    least = _quanta(scaled, path, pieces)
    if scaled.slots > scaled.accelerators and scaled.memories < float(np.max(size, initial=0.0)):
        whole_size = np.where(np.isfinite(pieces), size, 0.0)
        least = max(least, _best_over_prices(scaled, path, pieces, whole_size, least))
    return real(int(least), scaled.quantum)


def _best_over_prices(scaled: ScaledQuestion, path: list[int], pieces: Array, size: Array, least: float) -> float:
    """The best over some prices. A price is few bits times a power of two: its products with sizes are exact, and so are their floors."""

    def at(price: float) -> float:
        return _quanta(scaled, path, pieces + np.floor(price * size)) - float(np.ceil(price * scaled.memories))

    middle = floor(log2(max(least, 1.0) / scaled.memories)) if scaled.memories else 0
    prices = [2.0**power for power in range(middle - 6, middle + 7)]
    best = max(prices, key=at)
    return max(at(best * share) for share in (0.625, 0.75, 0.875, 1.0, 1.25, 1.5, 1.75))


def _quanta(scaled: ScaledQuestion, path: list[int], pieces: Array) -> float:
    """What the path takes at least; pieces are not counted where there may be one for each node, or very many."""
    if scaled.slots >= min(len(path), _MOST_PIECES):
        ahead = np.zeros(len(path) + 1)
        for j, row in enumerate(path):
            ahead[j + 1] = min(ahead[j] + scaled.cpu[row], float((ahead[: j + 1] + pieces[: j + 1, j]).min()))
        return float(ahead[-1])
    slots = scaled.slots
    least = np.full((slots + 1, len(path) + 1), np.inf)
    least[0, 0] = 0.0
    for j, row in enumerate(path):
        least[:, j + 1] = least[:, j] + scaled.cpu[row]
        if slots:
            ended = (least[:-1, : j + 1] + pieces[: j + 1, j]).min(axis=1)
            least[1:, j + 1] = np.minimum(least[1:, j + 1], ended)
    return float(least[:, -1].min())


@dataclass(frozen=True, slots=True, eq=False)
class Between:
    """Where the rows of a graph are beside a path: lo and hi of each."""

    low: list[int]
    """-1 where no node of the path comes before."""
    high: list[int]
    """The path's length where none comes after."""
    tied: dict[int, int]
    """For rows beside the path that have the colour of a node of it, that node's place."""
    torn: list[tuple[int, int]]
    """Places of nodes of one colour that follow each other on the path."""


def between(scaled: ScaledQuestion, path: list[int]) -> Between:
    """For every row the last path node before it and the first after it; colours tie rows, or stretches of the path, to one device."""
    index_of = {row: number for number, row in enumerate(path)}
    low, high = [index_of.get(row, -1) for row in range(len(scaled.cpu))], [index_of.get(row, len(path)) for row in range(len(scaled.cpu))]
    for row in scaled.along:
        low[row] = max([low[row], *(low[neighbour] for neighbour in scaled.before[row])])
    for row in reversed(scaled.along):
        high[row] = min([high[row], *(high[neighbour] for neighbour in scaled.after[row])])
    last: dict[int, int] = {}
    torn = []
    for number, row in enumerate(path):
        if scaled.colour[row] in last:
            torn.append((last[scaled.colour[row]], number))
        last[scaled.colour[row]] = number
    tied = {row: last[colour] for row, colour in enumerate(scaled.colour) if colour in last and row not in index_of}
    return Between(low, high, tied, torn)


def least_pieces(scaled: ScaledQuestion, path: list[int], beside: Between) -> tuple[Array, Array]:
    """What a piece with the nodes i to j of the path takes at least, infinite where it does not fit or is none; and the size it has."""
    count = len(path)
    work, size, barred = (np.zeros((count + 1, count + 1)) for _ in range(3))
    for row in range(len(scaled.cpu)):
        low, high = (beside.tied[row],) * 2 if row in beside.tied else (beside.low[row], beside.high[row])
        if low >= 0 and high < count:
            endless = scaled.accelerator[row] == float("inf")
            _add(work, (0, low), (high, count - 1), 0.0 if endless else scaled.accelerator[row])
            _add(size, (0, low), (high, count - 1), scaled.size[row])
            _add(barred, (0, low), (high, count - 1), float(endless))
        if scaled.transfer[row] and scaled.after[row]:
            _add_transfer(work, scaled, beside, row, count)
    for first, second in beside.torn:
        _add(barred, (0, first), (first, second - 1), 1.0)
        _add(barred, (first + 1, second), (second, count - 1), 1.0)
    work, size, barred = (corners.cumsum(axis=0).cumsum(axis=1)[:count, :count] for corners in (work, size, barred))
    none = np.tri(count, k=-1, dtype=bool)
    return np.where(none | (size > scaled.memory) | (barred > 0.0), np.inf, work), size


def _add(corners: Array, rows: tuple[int, int], columns: tuple[int, int], figure: float) -> None:
    """Add a figure to all (i, j) from rows[0] to rows[1] and from columns[0] to columns[1]."""
    if rows[0] <= rows[1] and columns[0] <= columns[1]:
        corners[rows[0], columns[0]] += figure
        corners[rows[1] + 1, columns[0]] -= figure
        corners[rows[0], columns[1] + 1] -= figure
        corners[rows[1] + 1, columns[1] + 1] += figure


def _add_transfer(corners: Array, scaled: ScaledQuestion, beside: Between, row: int, count: int) -> None:
    """The transfer of a node's output to all (i, j) where some node of it is surely in and some surely outside."""
    low, high, cost = beside.low[row], beside.high[row], scaled.transfer[row]
    if low >= 0:  # the node is in and a taker outside
        _add(corners, (0, low), (high, min(max(beside.low[taker] for taker in scaled.after[row]) - 1, count - 1)), cost)
    edge = count  # the node is outside and the takers with the largest lo are in, from the least of their hi on
    takers = sorted(((beside.low[taker], beside.high[taker]) for taker in scaled.after[row]), key=lambda pair: (-pair[0], pair[1]))
    steps = list[tuple[int, int]]()
    for pair in takers:
        if pair[1] < edge:
            steps.append(pair)
            edge = pair[1]
    for (start, column), following in zip(steps, [*(step[0] for step in steps[1:]), high], strict=False):
        _add(corners, (max(following, high) + 1, start), (column, count - 1), cost)


# What a piece takes beside its path: nodes at its ends that are in it or not, and cost either way. Makes the bound of `paths` sharper.
#
# A piece with the nodes i to j of a path surely holds some nodes and surely not others. Of those left, nodes with i <= lo <= j < hi are at
# its end and nodes with lo < i <= hi <= j at its start:
#
#     end      the nodes of them that are in the piece are closed under predecessors: who comes after a node in it and before one is in it
#     start    they are closed under successors
#
# Each such set asks for its times and sizes, and for the transfer of every node whose output joins one in the piece with one outside. So a
# side gives choices of (size, time), of which those are kept that none beats in both. A node's output counts for the end if lo >= i and for
# the start if lo < i, and not at all where `paths` counts it already: never twice. The piece takes at least the cheapest pair of choices
# that fits the memory beside what it surely holds. If none fits, it is none.
#
# Nodes that hang together, by order or by a transfer, are chosen together; others apart, and their choices are added. Where too many sets
# would have to be looked at, transfers are shared out among the parts they join (who is cut pays no more than the whole), then parts are
# left out: both can only lower the bound. For the end, nodes are looked at down to some lo, which serves all i up to it; for the start up
# to some hi.

Front = tuple[Array, Array]
"""Sizes, in rising order, and times of the choices of a side."""
NOTHING: Front = (np.zeros(1), np.zeros(1))
MOST_REPEATED = 500_000
"""Most pieces for which a check repeats the bound beside the path, some seconds of work."""
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


def ends(scaled: ScaledQuestion, beside: Between, j: int) -> list[tuple[int, Front]]:
    """Choices at the end of pieces that end at P_j: those of the last pair with its first figure not below i serve a start at i."""
    free = {row for row, low in enumerate(beside.low) if 0 <= low <= j < beside.high[row] and row not in beside.tied}

    def net(row: int, nodes: set[int]) -> Net:
        takers = scaled.after[row]
        pins = tuple(neighbour for neighbour in (row, *takers) if neighbour in nodes)
        return Net(scaled.transfer[row], pins, beside.high[row] <= j, any(beside.low[neighbour] > j for neighbour in takers))

    def owners(nodes: set[int], start: int) -> Iterable[int]:
        rows = {*nodes, *(neighbour for row in nodes for neighbour in scaled.before[row])}
        return sorted(row for row in rows if beside.low[row] >= start)

    found = list[tuple[int, Front]]()
    for start in sorted({beside.low[row] for row in free}, reverse=True):
        nodes = {row for row in free if beside.low[row] >= start}
        if len(nodes) > _MOST_NODES:
            break
        found.append((start, choices(scaled, nodes, [net(row, nodes) for row in owners(nodes, start)], scaled.before, scaled.along)))
    return found


def starts(scaled: ScaledQuestion, beside: Between, i: int, count: int) -> list[tuple[int, Front]]:
    """Choices at the start of pieces that start at P_i: those of the last pair with its first figure not above j serve an end at j."""
    free = {row for row, low in enumerate(beside.low) if low < i <= beside.high[row] < count and row not in beside.tied}

    def net(row: int, nodes: set[int], end: int) -> Net:
        takers = scaled.after[row]
        inside = any(beside.low[near] >= i and beside.high[near] <= end for near in takers)
        return Net(scaled.transfer[row], tuple(near for near in (row, *takers) if near in nodes), inside, beside.high[row] < i)

    def owners(nodes: set[int]) -> Iterable[int]:
        rows = {*nodes, *(near for row in nodes for near in scaled.before[row])}
        settled = {row for row in rows if beside.high[row] < i and any(beside.low[near] >= i for near in scaled.after[row])}
        return sorted(row for row in rows - settled if beside.low[row] < i)

    found = list[tuple[int, Front]]()
    for end in sorted({beside.high[row] for row in free}):
        nodes = {row for row in free if beside.high[row] <= end}
        if len(nodes) > _MOST_NODES:
            break
        found.append((end, choices(scaled, nodes, [net(row, nodes, end) for row in owners(nodes)], scaled.after, scaled.along[::-1])))
    return found


def choices(scaled: ScaledQuestion, nodes: set[int], nets: list[Net], needs: list[list[int]], order: list[int]) -> Front:
    """What the nodes may add to a piece, where a node is in it only with all it needs among them."""
    nets = [net for net in nets if net.cost and net.pins and not (net.inside and net.outside)]
    together = _choices(scaled, nodes, nets, needs, order)
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
        own = _choices(scaled, group, [net for net in shared if net.pins[0] in group], needs, order)
        found = _both(found, NOTHING if own is None else own)
    return found


def _choices(scaled: ScaledQuestion, nodes: set[int], nets: list[Net], needs: list[list[int]], order: list[int]) -> Front | None:
    """The sets, part by part; None if a part has too many."""
    part, found = _parts(nodes, needs, [net.pins for net in nets]), NOTHING
    for group in _groups(nodes, part):
        rows = [row for row in order if row in group] if len(group) > 1 else sorted(group)
        sets = _closed(rows, needs, scaled)
        if sets is None:
            return None
        found = _both(found, _front(scaled, rows, sets, [net for net in nets if net.pins[0] in group]))
    return found


def _closed(rows: list[int], needs: list[list[int]], scaled: ScaledQuestion) -> "np.ndarray[tuple[int, int], np.dtype[np.bool_]] | None":
    """All sets of these rows that hold what their rows need, as rows of a table; None for too many."""
    index_of = {row: number for number, row in enumerate(rows)}
    found = [0]
    for number, row in enumerate(rows):
        if scaled.accelerator[row] == float("inf"):
            continue
        needed = sum(1 << index_of[need] for need in needs[row] if need in index_of)
        found += [subset | 1 << number for subset in found if subset & needed == needed]
        if len(found) > _MOST_SETS:
            return None
    return np.array([[subset >> number & 1 for number in range(len(rows))] for subset in found], bool)


def _front(scaled: ScaledQuestion, rows: list[int], sets: "np.ndarray[tuple[int, int], np.dtype[np.bool_]]", nets: list[Net]) -> Front:
    work = np.array([0.0 if scaled.accelerator[row] == float("inf") else scaled.accelerator[row] for row in rows])
    time, size = sets @ work, sets @ np.array([scaled.size[row] for row in rows])
    index_of = {row: number for number, row in enumerate(rows)}
    for net in nets:
        pins = sets[:, [index_of[pin] for pin in net.pins]]
        time = time + net.cost * ((pins.any(axis=1) | net.inside) & (~pins.all(axis=1) | net.outside))
    return _undominated(size, time)


def _undominated(size: Array, time: Array) -> Front:
    """The choices that none beats in both; where there are many, pairs of them become one that is no worse than either."""
    order = np.lexsort((time, size))
    size, time = size[order], time[order]
    least = np.minimum.accumulate(time)
    efficient = np.concatenate([[True], time[1:] < least[:-1]])
    size, time = size[efficient], time[efficient]
    while len(size) > _MOST_CHOICES:
        last = np.minimum(np.arange(1, len(size) + 1, 2), len(size) - 1)
        size, time = size[::2], time[last]
    return size, time


def _both(first: Front, second: Front) -> Front:
    return _undominated((first[0][:, None] + second[0]).ravel(), (first[1][:, None] + second[1]).ravel())


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


def pieces_examined(pieces: Array, ends: int) -> int:
    """Of how many pieces one looks beside the path, up to some end."""
    return int(np.isfinite(pieces[:, :ends]).sum())


def sharper(scaled: ScaledQuestion, beside: Between, pieces: Array, size: Array, late: Callable[[], bool]) -> tuple[Array, int]:
    """The least times of pieces with what they take beside the path, as they were where time ran out; and up to which end they are."""
    count, found = len(pieces), pieces.copy()
    at_start = list[list[tuple[int, Front]]]()
    for j in range(count):
        if late():
            return found, j
        at_start.append(starts(scaled, beside, j, count))
        at_end = ends(scaled, beside, j)
        for i in np.flatnonzero(np.isfinite(pieces[:, j])).tolist():
            end = next((front for start, front in reversed(at_end) if start >= i), NOTHING)
            first = next((front for last, front in reversed(at_start[i]) if last <= j), NOTHING)
            if end is NOTHING and first is NOTHING:
                continue
            fits = end[0][:, None] + first[0] <= scaled.memory - size[i, j]
            found[i, j] += np.where(fits, end[1][:, None] + first[1], np.inf).min()
    return found, count
