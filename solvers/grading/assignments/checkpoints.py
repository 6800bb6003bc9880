"""Assignment 12: which outputs of a training step are kept, first of a chain, then of a graph.

peak      a schedule is replayed event by event
floor     a node with its inputs, below which no schedule is
steps     Griewank's table: the fewest forward steps with so many checkpoints
chain     outputs that are kept between segments which are computed again at once
schedule  the search over states of memory
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from heapq import heappop, heappush
from itertools import pairwise
from math import inf
from random import Random

import numpy as np

from crossopt.solvers.grading.marks import (
    FULL,
    Assignment,
    Case,
    Slip,
    Task,
    Verdict,
    figure,
    given_first,
    integers_in,
    nearly,
    public,
    shown,
    wrong,
)
from crossopt.solvers.grading.running import Call

Chain = tuple[list[int], list[int]]
"""Times and sizes of outputs."""
Inputs = list[list[int]]

BELOW = "a schedule that needs the whole budget is left out"
BELOW_CHAIN = "outputs that need the whole budget are left out"
EVERY = "every k-th output is kept, whatever its size and time"
SEGMENT = "the bytes of the segment that is computed again are left out"
WITHOUT_OUTPUT = "its own output is left out"
LARGEST = "this is the node with the largest output"


@dataclass(frozen=True)
class Graph:
    """Nodes with what they read, bytes of their outputs, and times."""

    inputs: Inputs
    sizes: list[int]
    times: list[int]

    def __len__(self) -> int:
        return len(self.inputs)

    def extra(self, order: Sequence[int]) -> int:
        """Time of repetitions."""
        return sum(self.times[node] for node in order) - sum(self.times)


def ends_of(graph: Graph, order: Sequence[int]) -> list[int]:
    """The event of the last use of what each event computes."""
    latest, ends = dict[int, int](), list[int]()
    for event, node in enumerate(order):
        for source in graph.inputs[node]:
            ends[latest[source]] = event
        latest[node] = event
        ends.append(event)
    return ends


def peak_of(graph: Graph, order: Sequence[int]) -> int:
    """Bytes in memory at most."""
    ends = ends_of(graph, order)
    events = range(len(order))
    return max(sum(graph.sizes[order[index]] for index in range(event + 1) if ends[index] >= event) for event in events)


def order_fault(order: Sequence[int]) -> str:
    """Why an order is no schedule; empty if it is one."""
    following, last = 0, -1
    for node in order:
        if not 0 <= node <= following:
            return f"first computations come in rising order, and {node} comes where {following} is next"
        if node <= last:
            return f"before a first computation nodes are repeated once each in rising order, and {node} comes after {last}"
        following, last = (following + 1, -1) if node == following else (following, node)
    return ""


# What is right.


def floor_of(inputs: Inputs, sizes: Sequence[int]) -> list[int]:
    """The first node that needs most with its inputs, and its bytes."""
    needs = [sizes[node] + sum(sizes[source] for source in taken) for node, taken in enumerate(inputs)]
    return [needs.index(max(needs)), max(needs)]


@cache
def steps(length: int, slots: int) -> int:
    """The fewest forward steps of a chain whose beginning is kept."""
    if length == 1:
        return 0
    if slots == 0:
        return length * (length - 1) // 2
    return min(split + steps(length - split, slots - 1) + steps(split, slots) for split in range(1, length))


def chain_time(chain: Chain, budget: int, segments: bool = True) -> float:
    """The least time of what is computed again: for each limit on segments, a table over the bytes of kept outputs."""
    times, sizes = (np.array(row) for row in chain)
    count, best = len(times), inf
    bytes_before, time_before = (np.concatenate([[0], np.cumsum(row)]) for row in (sizes, times))
    limits = {int(bytes_before[b] - bytes_before[a]) for a in range(count + 1) for b in range(a, count + 1)} if segments else {0}
    for limit in sorted(limits):
        room = budget - limit
        if room < 0:
            continue
        tables = [np.zeros(room + 1)]  # with all before the first output kept
        for index in range(1, count + 2):
            size = int(sizes[index - 1]) if index <= count else 0
            table = np.full(room + 1, inf)
            for before in range(index):
                dropped = bytes_before[index - 1] - bytes_before[before]
                if size <= room and (dropped <= limit or not segments):
                    time = time_before[index - 1] - time_before[before]
                    table[size:] = np.minimum(table[size:], tables[before][: room + 1 - size] + time)
            tables.append(table)
        best = min(best, float(tables[-1][room]))
    return best


def chain_use(chain: Chain, kept: Sequence[int]) -> tuple[int, int]:
    """Bytes of kept outputs with the largest segment, and the time of all others."""
    times, sizes = chain
    ends = [-1, *sorted(kept), len(sizes)]
    segment = max(sum(sizes[a + 1 : b]) for a, b in pairwise(ends))
    return sum(sizes[index] for index in kept) + segment, sum(times) - sum(times[index] for index in kept)


def every_kth(chain: Chain, budget: int) -> float:
    """The best of keeping every k-th output."""
    uses = [chain_use(chain, range(step - 1, len(chain[0]), step)) for step in range(1, len(chain[0]) + 2)]
    return min((time for bytes_, time in uses if bytes_ <= budget), default=inf)


def least_time(graph: Graph, budget: int) -> float:
    """The least time of repetitions, by the shortest path over states; infinite where nothing fits."""
    count = len(graph)
    needed = [sum(1 << item for item in {*taken, node}) for node, taken in enumerate(graph.inputs)]
    costs: dict[tuple[int, int, int], int] = {(0, -1, 0): 0}
    heap = [(0, (0, -1, 0))]
    while heap:
        cost, state = heappop(heap)
        following, last, live = state
        if following == count:
            return cost
        if cost > costs[state]:
            continue
        for node in range(last + 1, following + 1):
            own = needed[node]
            if own & ~(live | 1 << node):
                continue
            for left in _largest(graph, live & ~own, budget - _bytes(graph, own)):
                first = node == following
                reached, spent = (following + first, -1 if first else node, left | own), cost + (0 if first else graph.times[node])
                if spent < costs.get(reached, inf):
                    costs[reached] = spent
                    heappush(heap, (spent, reached))
    return inf


def _bytes(graph: Graph, nodes: int) -> int:
    return sum(size for node, size in enumerate(graph.sizes) if nodes >> node & 1)


def _largest(graph: Graph, live: int, room: int) -> list[int]:
    """Sets of these nodes that fit, and to which none of the others can be added."""
    if room < 0:
        return []
    found = [0]
    for node in (node for node in range(len(graph)) if live >> node & 1):
        found += [some | 1 << node for some in found if _bytes(graph, some) + graph.sizes[node] <= room]
    return [some for some in found if not any(some != other and not some & ~other for other in found)]


# Judges.


def judge_floor(handed: object, inputs: Inputs, sizes: Sequence[int]) -> Verdict:
    """The node and its bytes."""
    right, given = floor_of(inputs, sizes), integers_in(handed, 2)
    if given is None or len(given) != 2:
        return wrong(f"{shown(handed)} is returned where [node, bytes] is meant")
    if given == right:
        return FULL
    alone = [sum(sizes[source] for source in taken) for taken in inputs]
    if given == [alone.index(max(alone)), max(alone)]:
        return nearly(WITHOUT_OUTPUT, f"{given[1]} bytes are returned, and {right[1]} are right")
    largest = list(sizes).index(max(sizes))
    return wrong(f"{given} is returned, and {right} is right", LARGEST if given[0] == largest and given[1] == sizes[largest] else "")


def judge_chain(handed: object, chain: Chain, budget: int, right: float, mistakes: dict[str, float]) -> Verdict:
    """Kept outputs are weighed anew."""
    kept = integers_in(handed, len(chain[0]))
    if kept is None or len(set(kept)) != len(kept) or any(not 0 <= index < len(chain[0]) for index in kept):
        return wrong(f"{shown(handed)} is returned where the places of kept outputs are meant, each once")
    bytes_, time = chain_use(chain, kept)
    if bytes_ > budget:
        why = f"{bytes_} bytes are needed of {budget}"
        return nearly(SEGMENT, why) if time == mistakes[SEGMENT] else wrong(why)
    why = f"{time} is computed again, and {right:.0f} is possible"
    if time == right:
        return FULL
    named = [name for name, found in mistakes.items() if found == time]
    return nearly(BELOW_CHAIN, why) if BELOW_CHAIN in named else wrong(why, named[0] if named else "")


def judge_schedule(handed: object, graph: Graph, budget: int, right: float, mistakes: dict[str, float]) -> Verdict:
    """A schedule is replayed."""
    count, order = len(graph), integers_in(handed, 10 * len(graph) ** 2)
    if order is None or set(order) != set(range(count)) or order[-1] != count - 1:
        return wrong(
            f"{shown(handed)} is returned where all {count} nodes are meant in the order in which they run, the last one at the end"
        )
    if fault := order_fault(order):
        return wrong(fault)
    peak, extra = peak_of(graph, order), graph.extra(order)
    if peak > budget:
        return wrong(f"{peak} bytes are in memory of {budget}")
    why = f"repetitions take {extra}, and {right:.0f} is possible"
    if extra == right:
        return FULL
    named = [name for name, found in mistakes.items() if found == extra]
    return nearly(BELOW, why) if BELOW in named else wrong(why, named[0] if named else "")


# Cases.


def tasks(seed: str) -> tuple[Task, ...]:
    """Chains and graphs drawn anew."""
    random, handed = Random(f"{seed}/12"), public("12-checkpoints")
    inputs, times, sizes, order = (handed[key] for key in ("inputs", "times", "sizes", "order"))
    own = Graph(inputs, sizes, times)
    orders = [(own, tuple(order)), *(_replayed(random) for _ in range(4))]
    floors = [(inputs, sizes), *(_floored(random) for _ in range(3))]
    lengths = [(handed["length"], handed["slots"]), *((random.randrange(20, 60), random.randrange(2, 6)) for _ in range(3))]
    chains = [((handed["chain_times"], handed["chain_sizes"]), handed["chain_budget"]), *(_chain(random) for _ in range(4))]
    graphs = [(own, handed["budget"]), *(_graph(random) for _ in range(4))]
    return (
        Task("a schedule event by event: peak", 12, given_first(_peak_case(*order) for order in orders)),
        Task("below which nothing fits: floor", 6, given_first(_floor_case(*floor) for floor in floors)),
        Task("the fewest forward steps: steps", 9, given_first(_steps_case(*length) for length in lengths)),
        Task("outputs of a chain that are kept: chain", 15, given_first(_chain_case(*chain) for chain in chains)),
        Task("a schedule of a graph: schedule", 18, given_first(_schedule_case(*graph) for graph in graphs)),
    )


def _random_graph(random: Random, layers: int) -> Graph:
    """A forward pass with skips, and a backward pass that reads outputs of it."""
    inputs: Inputs = [[]]
    for node in range(1, layers):
        inputs.append(sorted({node - 1, random.randrange(node)}))
    for node in range(layers - 1, -1, -1):
        inputs.append(sorted({len(inputs) - 1, node, *random.sample(inputs[node], min(len(inputs[node]), 1))}))
    sizes = [random.randrange(1, 10) for _ in inputs]
    return Graph(inputs, sizes, [random.randrange(1, 20) for _ in inputs])


def _replayed(random: Random) -> tuple[Graph, tuple[int, ...]]:
    """A schedule with repetitions in which likely mistakes show."""
    while True:
        graph = _random_graph(random, 4)
        count = len(graph)
        order = tuple(node for stage in range(count) for node in (*(index for index in range(stage) if random.random() < 0.12), stage))
        peaks = [peak_of(graph, order), *_peaks(graph, order).values()]
        if len(set(peaks)) == len(peaks):
            return graph, order


def _peaks(graph: Graph, order: tuple[int, ...]) -> dict[str, int]:
    """What likely mistakes count."""
    ends = ends_of(graph, order)
    last = {source: event for event, node in enumerate(order) for source in graph.inputs[node]}
    first: dict[int, int] = {}
    for event, node in enumerate(order):
        first.setdefault(node, event)
    early, long, always = list[int](), list[int](), list[int]()
    for event, node in enumerate(order):
        live = {order[before] for before in range(event) if ends[before] > event}
        early.append(sum(graph.sizes[item] for item in live | {node}))
        there = {item for item, begin in first.items() if begin <= event}
        long.append(sum(graph.sizes[item] for item in there if item == node or last.get(item, -1) >= event))
        always.append(sum(graph.sizes[item] for item in there))
    return {
        "inputs that are used for the last time are dropped before the node has run": max(early),
        "an output that is computed again stays in memory all the time between": max(long),
        "nothing is ever dropped": max(always),
    }


def _floored(random: Random) -> tuple[Inputs, list[int]]:
    while True:
        graph = _random_graph(random, 6)
        inputs, sizes = graph.inputs, graph.sizes
        node, bytes_ = floor_of(inputs, sizes)
        alone = [sum(sizes[source] for source in taken) for taken in inputs]
        if sizes[node] < max(sizes) < bytes_ and max(alone) < bytes_:
            return inputs, sizes


def _chain(random: Random) -> tuple[Chain, int]:
    """A chain whose likely mistakes have other times than the best choice, and whose best choice needs the whole budget."""
    while True:
        count = random.randrange(10, 15)
        chain = [random.randrange(1, 30) for _ in range(count)], [random.randrange(1, 13) for _ in range(count)]
        budget = round(sum(chain[1]) * random.uniform(0.4, 0.65))
        right = chain_time(chain, budget)
        while right < inf and chain_time(chain, budget - 1) == right:
            budget -= 1
        found = [right, *_chain_mistakes(chain, budget).values()]
        if 0 < right < inf and len(set(found)) == len(found):
            return chain, budget


def _chain_mistakes(chain: Chain, budget: int) -> dict[str, float]:
    return {BELOW_CHAIN: chain_time(chain, budget - 1), EVERY: every_kth(chain, budget), SEGMENT: chain_time(chain, budget, segments=False)}


def _graph(random: Random) -> tuple[Graph, int]:
    """A graph whose best schedule needs the whole budget."""
    while True:
        graph = _random_graph(random, 5)
        low = floor_of(graph.inputs, graph.sizes)[1]
        budget = low + round((peak_of(graph, range(len(graph))) - low) * random.uniform(0.1, 0.6))
        right = least_time(graph, budget)
        while budget > low and least_time(graph, budget - 1) == right:
            budget -= 1
        found = [right, *_graph_mistakes(graph, budget).values()]
        if 0 < right < inf and len(set(found)) == len(found):
            return graph, budget


def _graph_mistakes(graph: Graph, budget: int) -> dict[str, float]:
    return {BELOW: least_time(graph, budget - 1)}


def _peak_case(graph: Graph, order: tuple[int, ...]) -> Case:
    slips = [Slip(name, float(wrongly)) for name, wrongly in _peaks(graph, order).items()]
    judge = partial(figure, right=float(peak_of(graph, order)), slips=slips)
    call = Call("peak", (graph.inputs, graph.sizes, list(order)))
    return Case(f"{len(graph)} nodes, {len(order)} computations", call, judge)


def _floor_case(inputs: Inputs, sizes: Sequence[int]) -> Case:
    return Case(f"{len(inputs)} nodes", Call("floor", (inputs, list(sizes))), partial(judge_floor, inputs=inputs, sizes=sizes))


def _steps_case(length: int, slots: int) -> Case:
    slips = [
        Slip("the beginning counts as a checkpoint", float(steps(length, slots - 1))),
        Slip("there is a checkpoint too many", float(steps(length, slots + 1))),
        Slip("the step that ends in the last state is counted, too", float(steps(length, slots) + length)),
        Slip("nothing is kept but the beginning", float(steps(length, 0)), share=0.0),
    ]
    judge = partial(figure, right=float(steps(length, slots)), slips=slips)
    return Case(f"{length} steps, {slots} checkpoints", Call("steps", (length, slots)), judge)


def _chain_case(chain: Chain, budget: int) -> Case:
    judge = partial(judge_chain, chain=chain, budget=budget, right=chain_time(chain, budget), mistakes=_chain_mistakes(chain, budget))
    return Case(f"{len(chain[0])} outputs, a budget of {budget}", Call("chain", (*chain, budget)), judge)


def _schedule_case(graph: Graph, budget: int) -> Case:
    judge = partial(judge_schedule, graph=graph, budget=budget, right=least_time(graph, budget), mistakes=_graph_mistakes(graph, budget))
    call = Call("schedule", (graph.inputs, graph.times, graph.sizes, budget))
    return Case(f"{len(graph)} nodes, a budget of {budget}", call, judge)


CHECKPOINTS = Assignment("12-checkpoints", "Checkpoints of a training step: a chain, then a graph", tasks)
