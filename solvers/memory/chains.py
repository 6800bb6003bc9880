"""The dynamic program of chains with a backward pass, over segments and bytes (Griewank and Walther 2000; Beaumont et al. 2019, Rotor).

A forward chain computes f 0, f 1, ... f l, each from the one before. Backward nodes follow, each of which reads the one before, and of the
forward outputs no other than f k and f k - 1, where k falls from node to node. A segment (i, j] has f i in memory, and perhaps f j. Either
all outputs between are computed and stay until their backward nodes have run; or f s is computed, and only that stays while the segment
(s, j] is answered, and then (i, s]. The first time, computing is free.

The program is exact among schedules that keep what they store until its backward nodes have run. Sizes of what is stored are rounded up to
parts of the budget, so a schedule counts only after its replay.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from time import monotonic

from crossopt.instances.memory.graph import MemoryGraph

_SLOTS, _SHORT, _LONGEST = 32, 12, 200
"""Parts of the budget, and forward nodes of chains that are counted to the byte, or at all."""
_LATER = -2
"""Of a segment whose last backward nodes run before anything is computed."""
Way = tuple[float, int]
"""Least time of repetitions, and the node that is stored; -1 where all are, or where nothing fits."""


@dataclass(slots=True)
class _Chain:
    """Levels of the backward nodes, and what is known of segments."""

    graph: MemoryGraph
    budget: int
    length: int
    levels: list[list[int]]
    """Backward nodes by the last forward output that they read."""
    deadline: float
    ways: dict[tuple[int, int, int, int, bool, bool], Way] = field(default_factory=dict)
    peaks: dict[tuple[int, int, bool, bool], int] = field(default_factory=dict)
    forward: dict[tuple[int, int], int] = field(default_factory=dict)

    def stored(self, node: int) -> int:
        """Bytes of a stored output, rounded up for long chains."""
        slot = -(-self.budget // _SLOTS) if self.length > _SHORT else 1
        return -(-self.graph.sizes[node] // slot) * slot


def chain_of(graph: MemoryGraph) -> list[list[int]] | None:
    """Backward nodes of each forward node; None where the graph is no chain with a backward pass."""
    count = len(graph.names)
    length = next((node for node in range(1, count) if graph.inputs[node] != (node - 1,) or graph.backward[node]), count)
    if length == count or length > _LONGEST or graph.inputs[0] or graph.in_place:
        return None
    levels: list[list[int]] = [[] for _ in range(length)]
    level = length - 1
    for node in range(length, count):
        reads = [source for source in graph.inputs[node] if source < length]
        if [source for source in graph.inputs[node] if source >= length] not in ([], [node - 1]):
            return None
        if reads and (max(reads) > level or min(reads) < max(reads) - 1):
            return None
        level = max(reads, default=level)
        levels[level].append(node)
    return levels


def chain_schedule(graph: MemoryGraph, budget: int, repetitions: int, deadline: float) -> tuple[int, ...] | None:
    """The best schedule of the program; None where there is none, or the graph is no chain."""
    levels = chain_of(graph)
    if levels is None:
        return None
    chain = _Chain(graph, budget, len(levels), levels, deadline)
    last = chain.length - 1
    if _way(chain, -1, last, budget, repetitions, False, True)[0] == inf:
        return None
    order = list[int]()
    _emit(chain, -1, last, budget, repetitions, False, True, order.append)
    return tuple(order)


def _trimmed(chain: _Chain, i: int, j: int, held: bool) -> tuple[int, bool]:
    """The last level of a segment that has backward nodes, and whether its output is in memory."""
    last = j
    while last > i and not chain.levels[last]:
        last -= 1
    return last, held and last == j


def _way(chain: _Chain, i: int, j: int, room: int, left: int, held: bool, first: bool) -> Way:
    """The least time of a segment in some bytes, where each node may be repeated so often; the first time, computing is free."""
    if not first:
        j, held = _trimmed(chain, i, j, held)
    if j <= i:
        return 0.0, -1
    key = i, j, room, left, held, first
    if key in chain.ways:
        return chain.ways[key]
    if monotonic() > chain.deadline:
        return inf, -1
    if held and not first and _alone(chain, j):
        running = max(_running(chain, j))
        time = _way(chain, i, j - 1, room, left, False, False)[0] if running <= room else inf
        chain.ways[key] = time, _LATER
        return time, _LATER
    again = 0 if first else sum(chain.graph.times[i + 1 : j + (not held)])
    computed = j - held > i
    best: Way = (inf, -1)
    if (first or not computed or left > 0) and _peak(chain, i, j, held, first) <= room:
        best = float(again), -1
    for s in range(i + 1, j + (not held)) if first or left > 0 else ():
        spent = 0 if first else sum(chain.graph.times[i + 1 : s + 1])
        if spent >= best[0] or _forward(chain, i, s) + _beside(chain, j, held, first) > room:
            continue
        until_s = spent + _way(chain, s, j, room - chain.stored(s), left, held, first)[0]
        if until_s < best[0]:
            total = until_s + _way(chain, i, s, room, left - (not first), True, False)[0]
            best = min(best, (total, s))
    chain.ways[key] = best
    return best


def _alone(chain: _Chain, j: int) -> bool:
    """Whether the backward nodes of a level read no other forward output."""
    return all(source >= j for node in chain.levels[j] for source in chain.graph.inputs[node])


def _running(chain: _Chain, j: int) -> list[int]:
    """Bytes while the backward nodes of a level run beside its output."""
    live, found = chain.graph.sizes[j] + _carried(chain, j), list[int]()
    for node in chain.levels[j]:
        found.append(live + chain.graph.sizes[node] + chain.graph.workspaces[node])
        live = chain.graph.sizes[j] + chain.graph.sizes[node]
    return found


def _beside(chain: _Chain, j: int, held: bool, first: bool) -> int:
    """Bytes beside what is computed: the gradient so far, and the last output of the segment if it is in memory."""
    carried = 0 if first else _carried(chain, j)
    return carried + (chain.graph.sizes[j] if held else 0)


def _carried(chain: _Chain, j: int) -> int:
    """Bytes of the backward node before those of a level."""
    node = next((level[0] for level in reversed(chain.levels[: j + 1]) if level), len(chain.graph.names))
    before = node - 1
    return chain.graph.sizes[before] if before >= chain.length and chain.graph.last_uses[before] >= node else 0


def _forward(chain: _Chain, i: int, s: int) -> int:
    """Bytes at most while f i + 1 to f s are computed, and only the last is kept, beside f i."""
    if (i, s) not in chain.forward:
        sizes, works = chain.graph.sizes, chain.graph.workspaces
        chain.forward[i, s] = max(sizes[node] + works[node] + (sizes[node - 1] if node - 1 > i else 0) for node in range(i + 1, s + 1))
    return chain.forward[i, s]


def _peak(chain: _Chain, i: int, j: int, held: bool, first: bool) -> int:
    """Bytes at most beside f i, where all of a segment is computed and stays until its backward nodes have run."""
    key = i, j, held, first
    if key not in chain.peaks:
        graph = chain.graph
        backward = [node for level in reversed(chain.levels[i + 1 : j + 1]) for node in level]
        order = [*range(i + 1, j + (not held)), *backward]
        last = {source: event for event, node in enumerate(order) for source in graph.inputs[node]}
        carried = _carried(chain, j) if not first and backward else 0
        live, peak = carried + (graph.sizes[j] if held else 0), 0
        dropped = {event: [source for source, end in last.items() if end == event and source > i] for event in range(len(order))}
        for event, node in enumerate(order):
            live += graph.sizes[node]
            peak = max(peak, live + graph.workspaces[node])
            # the last node of a segment stays for the next one, if that reads it
            live -= sum(graph.sizes[source] for source in dropped[event] if graph.last_uses[source] <= node or source < chain.length)
            live -= graph.sizes[node] if node not in last and graph.last_uses[node] == node else 0
        chain.peaks[key] = peak
    return chain.peaks[key]


def _emit(chain: _Chain, i: int, j: int, room: int, left: int, held: bool, first: bool, put: Callable[[int], None]) -> None:
    """The schedule of a segment."""
    s = _way(chain, i, j, room, left, held, first)[1]
    if not first:
        j, held = _trimmed(chain, i, j, held)
    if j <= i:
        return
    if s == _LATER:
        for node in chain.levels[j]:
            put(node)
        _emit(chain, i, j - 1, room, left, False, False, put)
        return
    if s < 0:
        for node in (*range(i + 1, j + (not held)), *(node for level in reversed(chain.levels[i + 1 : j + 1]) for node in level)):
            put(node)
        return
    for node in range(i + 1, s + 1):
        put(node)
    _emit(chain, s, j, room - chain.stored(s), left, held, first, put)
    _emit(chain, i, s, room, left - (not first), True, False, put)
