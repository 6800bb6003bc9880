"""Reference solution of assignment 12."""

from heapq import heappop, heappush
from math import inf

State = tuple[int, int, frozenset[int]]
"""The node that comes next for the first time, the last repetition before it, and what is in memory."""


def peak(inputs: list[list[int]], sizes: list[int], order: list[int]) -> int:
    """The last use of what each computation gives, before its node runs again; then bytes event by event."""
    latest: dict[int, int] = {}
    ends: list[int] = []
    for event, node in enumerate(order):
        for source in inputs[node]:
            ends[latest[source]] = event
        latest[node] = event
        ends.append(event)
    most = 0
    for event in range(len(order)):
        live = sum(sizes[order[one]] for one in range(event + 1) if ends[one] >= event)
        most = max(most, live)
    return most


def floor(inputs: list[list[int]], sizes: list[int]) -> list[int]:
    """A node needs its inputs and its output at once."""
    needs = [sizes[node] + sum(sizes[source] for source in taken) for node, taken in enumerate(inputs)]
    return [needs.index(max(needs)), max(needs)]


def steps(length: int, slots: int) -> int:
    """A table: where the first checkpoint is; behind it one slot less, and before it all of them again."""
    table = [[one * (one - 1) // 2 for one in range(length + 1)]]
    for more in range(1, slots + 1):
        row = [0, 0]
        for one in range(2, length + 1):
            row.append(min(split + table[more - 1][one - split] + row[split] for split in range(1, one)))
        table.append(row)
    return table[slots][length]


def chain(times: list[int], sizes: list[int], budget: int) -> list[int]:
    """For each limit on the bytes of a segment: a table over the last kept output and the bytes of those that are kept."""
    count, best, found = len(times), inf, []
    limits = {sum(sizes[a:b]) for a in range(count + 1) for b in range(a, count + 1)}
    for limit in sorted(limits):
        tables: list[dict[int, tuple[int, list[int]]]] = [{0: (0, [])}]
        for place in range(count + 1):
            size = sizes[place] if place < count else 0
            table: dict[int, tuple[int, list[int]]] = {}
            for before in range(place, -1, -1):
                if sum(sizes[before:place]) > limit:
                    break
                lost = sum(times[before:place])
                for used, (time, kept) in tables[before].items():
                    more = used + size
                    if more + limit <= budget and time + lost < table.get(more, (inf, []))[0]:
                        table[more] = time + lost, [*kept, place]
            tables.append(table)
        for time, kept in tables[-1].values():
            if time < best:
                best, found = time, kept[:-1]
    return found


def schedule(inputs: list[list[int]], times: list[int], sizes: list[int], budget: int) -> list[int]:
    """The shortest path over states."""
    count = len(inputs)
    start: State = (0, -1, frozenset())
    costs = {start: 0}
    came: dict[State, tuple[State, int]] = {}
    heap = [(0, 0, start)]
    number = 0
    while heap:
        cost, _, state = heappop(heap)
        following, last, live = state
        if cost > costs[state]:
            continue
        if following == count:
            order = []
            while state in came:
                state, node = came[state]
                order.append(node)
            return order[::-1]
        for node in range(last + 1, following + 1):
            if not live.issuperset(inputs[node]):
                continue
            needed = frozenset(inputs[node]) | {node}
            if sum(sizes[one] for one in needed) > budget:
                continue
            for left in subsets(live - needed, sizes, budget - sum(sizes[one] for one in needed)):
                first = node == following
                reached = (following + first, -1 if first else node, left | needed)
                spent = cost + (0 if first else times[node])
                if spent < costs.get(reached, inf):
                    costs[reached], came[reached] = spent, (state, node)
                    number += 1
                    heappush(heap, (spent, number, reached))
    return []


def subsets(live: frozenset[int], sizes: list[int], room: int) -> list[frozenset[int]]:
    """All that may stay in memory: sets that fit and to which nothing of the others can be added."""
    found: list[frozenset[int]] = [frozenset()]
    for one in live:
        found += [some | {one} for some in found if sum(sizes[other] for other in some) + sizes[one] <= room]
    return [some for some in found if not any(some < other for other in found)]
