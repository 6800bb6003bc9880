"""Rules that choose which outputs to drop, as baselines and as starts: each is a set of nodes that are computed again once.

    keep all          nothing is repeated
    square root       every k-th forward output of n is kept, k near the square root of n (Chen et al. 2016)
    segments          forward outputs are kept whenever those since the last one exceed a number of bytes; the best of several numbers
                      (Chen's greedy rule)
    cheapest a byte   outputs with the least time of repetition for a byte are dropped until everything fits
    at the peak       at the event with the most bytes, the output is dropped whose repetition, with what it needs again, costs least for a
                      byte; until everything fits (after DTR, Kirisame et al. 2021)

A dropped output leaves memory for the longest time between two of its uses, and is computed again as late as its next reader allows, with
whatever inputs are gone by then. Where a rule repeats more than it needs, outputs are kept again in the order of their times.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from math import exp, inf, isqrt
from random import Random
from time import monotonic

from crossopt.instances.memory.graph import MemoryGraph
from crossopt.solvers.memory.judge import extra_units, forward_nodes, regions_of, replay, run_in_regions, stages_of

Windows = Mapping[int, Sequence[tuple[int, int]]]
"""Of each node, pairs of stages between which it may be repeated."""
Gaps = Mapping[int, tuple[int, int]]
"""Nodes that are dropped, with the two uses between which they are."""
_DISTANCES = (128, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
"""Computations by which an output is read back earlier."""
_TRIED = 8
"""Outputs that are tried at a peak."""
_THRESHOLDS = 24
"""Numbers of bytes that are tried for segments."""
_WEIGHT, _HEAT, _STAYING, _KEPT = 5.0, 0.01, 0.2, 0.3
"""Of annealing: what a budget of bytes above the budget counts beside all time, the first temperature, and shares of kinds of steps."""


def peak_of(graph: MemoryGraph, order: tuple[int, ...]) -> int:
    """Bytes in memory at most."""
    return max(replay(graph, order).bytes_)


def late_schedule(
    graph: MemoryGraph,
    windows: Windows,
    entered: Mapping[tuple[int, int, int], int],
    staying: set[tuple[int, int, int]],
    loaded: Collection[tuple[int, int, int]] = (),
) -> tuple[int, ...]:
    """Repeat each node in its windows as late as its readers allow; inputs in `staying` stay until a reader is repeated instead. In windows
    of `loaded`, it is read back from the host."""
    count = len(graph.names)
    starts = {(node, a, b): entered.get((node, a, b), b) for node, listed in windows.items() for a, b in listed}
    for node in sorted(windows, reverse=True):
        for a, b in windows[node]:
            stage = starts[node, a, b]
            if stage == count or (node, a, b) in loaded:  # of use for nothing, or without inputs
                continue
            for source in graph.inputs[node]:
                for c, d in windows.get(source, ()):
                    if c < stage <= d and not ((source, c, node) in staying and starts[source, c, d] > stage):
                        starts[source, c, d] = min(starts[source, c, d], stage)
    repeated: list[set[int]] = [set() for _ in range(count + 1)]
    read: list[set[int]] = [set() for _ in range(count + 1)]
    for (node, a, b), stage in starts.items():
        (read if (node, a, b) in loaded else repeated)[stage].add(node)
    found = list[int]()
    for stage in range(count):
        found += with_readings(graph, (*sorted(repeated[stage] - {stage}), stage), read[stage])
    return tuple(found)


def with_readings(graph: MemoryGraph, nodes: Sequence[int], read: Collection[int]) -> list[int]:
    """Nodes of a stage, each output that is read back before the first of them that reads it."""
    found, left = list[int](), set(read)
    for node in nodes:
        wanted = sorted(left & set(graph.inputs[node])) if node != nodes[-1] else sorted(left)
        found += [*(-1 - other for other in wanted), node]
        left -= set(wanted)
    return found


def longest_gaps(graph: MemoryGraph) -> dict[int, tuple[int, int]]:
    """The longest time between two uses of each node, if there is anything between them."""
    found = dict[int, tuple[int, int]]()
    for node, users in enumerate(graph.users):
        gap = max(pairwise((node, *users)), key=lambda ends: ends[1] - ends[0], default=(node, node))
        if gap[1] - gap[0] > 1:
            found[node] = gap
    return found


def dropping(graph: MemoryGraph, dropped: Gaps, staying: Collection[int] = ()) -> tuple[int, ...]:
    """The schedule that drops these nodes between the ends of their gaps, and repeats whatever else that needs, or lets it stay."""
    count = len(graph.names)
    windows = {node: [dropped.get(node, (graph.last_uses[node], count))] for node in range(count) if node in dropped or node not in staying}
    return late_schedule(graph, windows, {}, set())


def _forward(graph: MemoryGraph, gaps: Gaps) -> list[int]:
    return [node for node in sorted(gaps) if not graph.backward[node] and graph.sizes[node]]


def _square_root(graph: MemoryGraph, gaps: Gaps) -> set[int]:
    nodes = _forward(graph, gaps)
    step = max(isqrt(len(nodes)), 2)
    return {node for index, node in enumerate(nodes) if (index + 1) % step}


def _segments(graph: MemoryGraph, gaps: Gaps) -> Iterator[set[int]]:
    nodes = _forward(graph, gaps)
    total = sum(graph.sizes[node] for node in nodes)
    for part in range(1, _THRESHOLDS + 1):
        kept, bytes_ = set[int](), 0
        for node in nodes:
            bytes_ += graph.sizes[node]
            if bytes_ * 2 * part > total:
                kept.add(node)
                bytes_ = 0
        yield set(nodes) - kept


def _cheapest(graph: MemoryGraph, gaps: Gaps) -> Iterator[set[int]]:
    nodes = sorted((node for node in gaps if graph.sizes[node]), key=lambda node: graph.times[node] / graph.sizes[node])
    for share in range(1, _THRESHOLDS + 1):
        yield set(nodes[: len(nodes) * share // _THRESHOLDS])


def _at_the_peak(graph: MemoryGraph, start: Gaps, budget: int, deadline: float) -> tuple[dict[int, tuple[int, int]], set[int]]:
    """Drops the cheapest output at the peak until everything fits, beside those that are dropped already; and inputs that stay for that."""
    dropped, refused, staying = dict(start), set[int](), set[int]()
    order = dropping(graph, dropped)
    over = _excess(graph, order, budget)
    while over and monotonic() < deadline:
        found = replay(graph, order)
        stage = stages_of(order)[found.bytes_.index(max(found.bytes_))]
        live = {node: gap for node in range(stage) if node not in dropped and (gap := _gap_around(graph, node, stage))}
        ranked = sorted(live.keys() - refused, key=lambda node: (_again(graph, node, dropped.keys()), node))
        for node in ranked[:_TRIED]:
            tried = {**dropped, node: live[node]}
            ways = [staying, staying.union(graph.inputs[node])]
            orders = [dropping(graph, tried, stay) for stay in ways]
            less, way = min((_excess(graph, reached, budget), index) for index, reached in enumerate(orders))
            if less < over:
                dropped, order, over, staying = tried, orders[way], less, ways[way]
                break
            refused.add(node)
        else:
            if not ranked[_TRIED:]:
                break
    return dropped, staying


def annealed(
    graph: MemoryGraph, sets: Iterable[set[int]], budget: int, steps: int, deadline: float, first: bool = False, seed: int = 0
) -> tuple[int, ...] | None:
    """The cheapest schedule that fits among those that annealing sees (Kirkpatrick et al. 1983), or the first one; None without any.

    It begins with the set of dropped outputs that exceeds the budget least. A step drops an output in a gap, keeps one, or changes whether
    one stays. The score is the time of repetitions as a share of all time, and what is above the budget in budgets, which counts more."""
    plain, longest, random = graph.plain_bytes, longest_gaps(graph), Random(seed)
    gaps = [(node, a, b) for node, uses in enumerate(graph.users) if graph.sizes[node] for a, b in pairwise((node, *uses)) if b - a > 1]
    gaps = [(node, a, b) for node, a, b in gaps if max(plain[a + 1 : b]) > budget]
    starts = ({node: longest[node] for node in nodes} for nodes in sets)
    dropped = min(starts, key=lambda start: _excess(graph, dropping(graph, start), budget), default={})
    staying, best, least = frozenset[int](), None, inf
    score, began = inf, monotonic()
    for step in range(steps if gaps else 1):
        tried, stay = dict(dropped), staying
        if step and random.random() < _STAYING:
            stay = staying ^ {random.randrange(len(graph.names))}
        elif step:
            for _ in range(random.choice((1, 1, 1, 2, 2))):
                _changed(tried, gaps, random)
        order = dropping(graph, tried, stay)
        over, extra = _excess(graph, order, budget), extra_units(graph, order)
        found = _WEIGHT * over / budget + extra / max(graph.total_time, 1)
        heat = _HEAT * (1.0 - max(step / steps, (monotonic() - began) / (deadline - began))) ** 2
        if found <= score or (heat > 0.0 and random.random() < exp((score - found) / heat)):
            dropped, staying, score = tried, stay, found
            if not over and extra < least:
                best, least = order, extra
        if (first and best is not None) or monotonic() > deadline:
            break
    return best


def _changed(dropped: dict[int, tuple[int, int]], gaps: Sequence[tuple[int, int, int]], random: Random) -> None:
    """Keep an output that is dropped, or drop one in a gap, instead of its other gaps."""
    if dropped and random.random() < _KEPT:
        del dropped[random.choice(list(dropped))]
        return
    node, a, b = random.choice(gaps)
    if dropped.get(node) == (a, b):
        del dropped[node]
    else:
        dropped[node] = a, b


def sets_of_rules(graph: MemoryGraph) -> Iterator[set[int]]:
    """Sets of dropped outputs with which annealing may begin."""
    gaps = longest_gaps(graph)
    yield set()
    yield _square_root(graph, gaps)
    yield from _segments(graph, gaps)


def _excess(graph: MemoryGraph, order: tuple[int, ...], budget: int) -> int:
    """Bytes above the budget, over all computations."""
    return sum(bytes_ - budget for bytes_ in replay(graph, order).bytes_ if bytes_ > budget)


def _gap_around(graph: MemoryGraph, node: int, stage: int) -> tuple[int, int] | None:
    """The uses of a node before and behind a stage, if both are there and the stage is none itself."""
    uses = (node, *graph.users[node])
    index = bisect_left(uses, stage)
    return (uses[index - 1], uses[index]) if graph.sizes[node] and 0 < index < len(uses) and uses[index] != stage else None


def _again(graph: MemoryGraph, node: int, dropped: Collection[int]) -> float:
    """Time for a byte of repeating a node, with inputs that are dropped, or read by nothing later."""
    total, left, seen = 0, [node], {node}
    while left:
        current = left.pop()
        total += graph.times[current]
        for source in graph.inputs[current]:
            if source not in seen and (source in dropped or graph.last_uses[source] <= current):
                seen.add(source)
                left.append(source)
    return total / graph.sizes[node]


def kept_again(graph: MemoryGraph, start: Gaps, staying: Collection[int], budget: int, deadline: float) -> tuple[int, ...]:
    """The schedule after keeping dropped outputs again, the longest to repeat first, as far as the budget allows."""
    dropped, best = dict(start), dropping(graph, start, staying)
    for node in sorted(dropped, key=lambda place: -graph.times[place]):
        if monotonic() > deadline:
            break
        fewer = {other: gap for other, gap in dropped.items() if other != node}
        order = dropping(graph, fewer, staying)
        if peak_of(graph, order) <= budget and extra_units(graph, order) <= extra_units(graph, best):
            dropped, best = fewer, order
    return best


def single_schedules(graph: MemoryGraph) -> dict[str, tuple[int, ...]]:
    """Schedules of rules with a single set, whatever the budget and the time: a check carries them out again."""
    gaps = longest_gaps(graph)
    return {
        "keep all": dropping(graph, {}),
        "square root": dropping(graph, {node: gaps[node] for node in _square_root(graph, gaps)}),
    }


def schedules_of_rules(graph: MemoryGraph, budget: int, deadline: float) -> dict[str, tuple[int, ...]]:
    """A schedule of each rule: the cheapest of its sets that fits, else the one with the least peak."""
    gaps, found = longest_gaps(graph), single_schedules(graph)
    rules: dict[str, Callable[[], Iterable[Iterable[int]]]] = {
        "segments": lambda: _segments(graph, gaps),
        "cheapest a byte": lambda: _cheapest(graph, gaps),
    }
    for name, sets in rules.items():
        orders = (dropping(graph, {node: gaps[node] for node in nodes}) for nodes in sets())
        if (order := cheapest(graph, orders, budget, 1, deadline)) is not None:
            found[name] = order
    found["at the peak"] = repaired(graph, {}, budget, deadline)
    return found


def moved_to_the_host(graph: MemoryGraph, budget: int, deadline: float) -> tuple[int, ...]:
    """The schedule that moves outputs at the peak to the host, those first that are read last (Belady 1966), until everything fits."""
    gaps = set[tuple[int, int, int]]()
    order = tuple(range(len(graph.names)))
    while monotonic() < deadline:
        found = replay(graph, order)
        at = max(range(len(order)), key=lambda event: found.bytes_[event])
        stage = stages_of(order)[at]
        moved = {node for node, a, b in gaps if a < stage <= b}
        near = {node: gap for node in range(stage) if node not in moved and (gap := _gap_around(graph, node, stage))}
        if found.bytes_[at] <= budget or not near:
            break
        node = max(near, key=lambda other: (near[other][1], graph.sizes[other]))
        gaps.add((node, *near[node]))
        order = _with_moved(graph, gaps)
    for moved_gap in sorted(gaps, key=lambda one: -graph.sizes[one[0]]):
        fewer = _with_moved(graph, gaps - {moved_gap})
        if peak_of(graph, fewer) <= max(budget, peak_of(graph, order)) and monotonic() < deadline:
            order = fewer
            gaps.remove(moved_gap)
    return order


def _with_moved(graph: MemoryGraph, gaps: set[tuple[int, int, int]]) -> tuple[int, ...]:
    windows: dict[int, list[tuple[int, int]]] = {}
    for node, a, b in sorted(gaps):
        windows.setdefault(node, []).append((a, b))
    return late_schedule(graph, windows, {}, set(), gaps)


def fetched_earlier(graph: MemoryGraph, order: tuple[int, ...], budget: int, deadline: float) -> tuple[int, ...]:
    """The schedule with outputs read back earlier, beside computations, as far as memory allows and no time is lost."""
    best, time = order, extra_units(graph, order)
    for index, item in enumerate(order):  # what moves comes before this place, and nothing behind it moves
        node = -1 - item
        if item >= 0 or not time or monotonic() > deadline:
            continue
        for distance in _DISTANCES:
            first = index - distance
            if first < 1 or any(other in (node, item) for other in best[first:index]):
                continue
            tried = (*best[:first], item, *best[first:index], *best[index + 1 :])
            if peak_of(graph, tried) <= budget and (less := extra_units(graph, tried)) <= time:
                best, time = tried, less
                break
    return best


def read_instead(graph: MemoryGraph, order: tuple[int, ...], budget: int, deadline: float) -> tuple[int, ...]:
    """The schedule with outputs read back instead of computed again, the longest first, where that takes less time."""
    best, time = order, extra_units(graph, order)
    stages = stages_of(order)
    repeated = {node for node, stage in zip(order, stages, strict=True) if 0 <= node < stage and graph.sizes[node]}
    for node in sorted(repeated, key=lambda one: -graph.times[one]):
        if not time or monotonic() > deadline:
            break
        changed = [-1 - item if item == node and stage > node else item for item, stage in zip(best, stages_of(best), strict=True)]
        tried = fetched_earlier(graph, _used(graph, tuple(changed)), budget, deadline)
        if peak_of(graph, tried) <= budget and (less := extra_units(graph, tried)) < time:
            best, time = tried, less
    return best


def _used(graph: MemoryGraph, order: tuple[int, ...]) -> tuple[int, ...]:
    """The schedule without repetitions and readings of which nothing is used."""
    while True:
        ends, stages = replay(graph, order).ends, stages_of(order)
        found = tuple(
            item
            for event, (item, stage, end) in enumerate(zip(order, stages, ends, strict=True))
            if end > event or item == stage or (item >= 0 and not graph.sizes[item])
        )
        if len(found) == len(order):
            return order
        order = found


def cheapest(graph: MemoryGraph, orders: Iterable[tuple[int, ...]], budget: int, most: int, deadline: float) -> tuple[int, ...] | None:
    """The cheapest of these schedules that fits with at most so many repetitions of a node, else the one with the least peak."""
    best, rank = None, (True, inf)
    for order in orders:
        peak = peak_of(graph, order)
        over = peak > budget or (len(order) > len(graph.names) and max(Counter(order).values()) > most + 1)
        if (own := (over, peak if over else extra_units(graph, order))) < rank:
            best, rank = order, own
        if monotonic() > deadline:
            break
    return best


def best_start(graph: MemoryGraph, orders: Mapping[str, tuple[int, ...]], budget: int) -> tuple[int, ...] | None:
    """The cheapest of these schedules that fits; None where none fits."""
    fitting = [order for order in orders.values() if peak_of(graph, order) <= budget]
    return min(fitting, key=lambda order: extra_units(graph, order), default=None)


def repaired(graph: MemoryGraph, dropped: Gaps, budget: int, deadline: float) -> tuple[int, ...]:
    """The schedule that drops these nodes, and more at the peak until it fits, with outputs kept again where the budget allows."""
    return kept_again(graph, *_at_the_peak(graph, dropped, budget, deadline), budget, deadline)


def toggled(graph: MemoryGraph, order: tuple[int, ...], budget: int, deadline: float) -> tuple[int, ...]:
    """Regions of torch.utils.checkpoint that are better than those of a schedule: one output after the other is kept or dropped, or two at
    once, as long as fewer bytes are above the budget, or as many and less time is taken."""
    nodes, kept = forward_nodes(graph), regions_of(graph, order).kept

    def score(kept: tuple[bool, ...]) -> tuple[int, int, tuple[int, ...]]:
        made = run_in_regions(graph, nodes, kept)
        return max(peak_of(graph, made) - budget, 0), extra_units(graph, made), made

    best, better = score(kept), True
    while better:
        better = False
        single = [(index,) for index in range(len(nodes) - 1)]
        for changed in (*single, *combinations(range(len(nodes) - 1), 2)):
            if monotonic() > deadline:
                return best[2]
            other = tuple(flag != (index in changed) for index, flag in enumerate(kept))
            if (found := score(other))[:2] < best[:2]:
                best, kept, better = found, other, True
                break
    return best[2]
