"""Reference solution of assignment 9."""

from itertools import combinations
from math import inf

Table = list[list[float | None]]


def seconds(time: float | None) -> float:
    """Infinite where a limit is broken."""
    return inf if time is None else time


def alternate(times: Table, chip: int) -> list[list[int]]:
    """A plan or a chip is changed for a quicker one alone, so that every step gains and it ends."""
    columns = list(zip(*times, strict=True))
    plan = first(columns[chip])
    if times[plan][chip] is None:
        return []
    way = [[plan, chip]]
    changed = True
    while changed:
        changed = False
        if seconds(times[plan][first(times[plan])]) < seconds(times[plan][chip]):
            chip, changed = first(times[plan]), True
            way.append([plan, chip])
        if seconds(columns[chip][first(columns[chip])]) < seconds(times[plan][chip]):
            plan, changed = first(columns[chip]), True
            way.append([plan, chip])
    return way


def first(line: list[float | None] | tuple[float | None, ...]) -> int:
    """The place of the quickest, of several the first."""
    return min(range(len(line)), key=lambda place: seconds(line[place]))


def best(times: Table) -> float:
    """Of all designs."""
    return min(seconds(time) for row in times for time in row)


def sticks(times: Table) -> list[list[int]]:
    """The quickest of its plan and of its chip, and not the best."""
    columns = list(zip(*times, strict=True))
    return [
        [plan, chip]
        for plan, row in enumerate(times)
        for chip, time in enumerate(row)
        if time is not None and best(times) < time == min(map(seconds, row)) == min(map(seconds, columns[chip]))
    ]


def failing(times: Table) -> list[int]:
    """Also where it cannot begin."""
    return [chip for chip in range(len(times[0])) if end(times, chip) > best(times)]


def end(times: Table, chip: int) -> float:
    """The time at which it ends."""
    way = alternate(times, chip)
    return seconds(times[way[-1][0]][way[-1][1]]) if way else inf


def lost(times: Table, chip: int) -> float:
    """The end beside the best."""
    return end(times, chip) / best(times)


def trap(plans: int, chips: int, ratio: int) -> list[list[int]]:
    """The first plan is good on the first chip alone, and every other plan on every other chip."""
    return [[1 if p == c == 0 else ratio if p and c else 1000 for c in range(chips)] for p in range(plans)]


def interaction(times: list[list[float]]) -> float:
    """All pairs of plans and of chips."""
    pairs = list(combinations(range(len(times[0])), 2))
    return max(abs(one[c] + other[d] - one[d] - other[c]) for one, other in combinations(times, 2) for c, d in pairs)
