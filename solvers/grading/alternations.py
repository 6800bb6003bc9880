"""The alternation between plans and chips, where it may rest, and how far both depend on each other, by looking at every design."""

from itertools import combinations, pairwise
from math import inf

Table = list[list[float | None]]
"""Seconds or other times, a row for each plan and a column for each chip; None where a limit is broken."""
Designs = list[list[int]]


def time_of(table: Table, plan: int, chip: int) -> float:
    """Infinite where a limit is broken."""
    time = table[plan][chip]
    return inf if time is None else time


def alternation(table: Table, chip: int, last: bool = False) -> Designs:
    """The designs one after the other; a plan or a chip is changed for a quicker one alone, of several for the first, or for the last."""
    plans, chips = (range(count)[:: -1 if last else 1] for count in (len(table), len(table[0])))
    plan = min(plans, key=lambda p: time_of(table, p, chip))
    if time_of(table, plan, chip) == inf:
        return []
    way = [[plan, chip]]
    while True:
        before = [plan, chip]
        best = min(chips, key=lambda c: time_of(table, plan, c))
        chip = best if time_of(table, plan, best) < time_of(table, plan, chip) else chip
        way += [[plan, chip]] if chip != way[-1][1] else []
        best = min(plans, key=lambda p: time_of(table, p, chip))
        plan = best if time_of(table, best, chip) < time_of(table, plan, chip) else plan
        way += [[plan, chip]] if plan != way[-1][0] else []
        if [plan, chip] == before:
            return way


def least(table: Table) -> float:
    """The best time of all designs."""
    return min(time_of(table, p, c) for p in range(len(table)) for c in range(len(table[0])))


def rests(table: Table) -> Designs:
    """Designs that are the quickest of their plan and of their chip."""
    rows = [min(inf if time is None else time for time in row) for row in table]
    columns = [min(time_of(table, p, c) for p in range(len(table))) for c in range(len(table[0]))]
    found = ((p, c) for p in range(len(table)) for c in range(len(table[0])) if time_of(table, p, c) < inf)
    return [[p, c] for p, c in found if time_of(table, p, c) == rows[p] == columns[c]]


def end(table: Table, chip: int) -> float:
    """Where an alternation from a chip ends; infinite where it cannot begin."""
    way = alternation(table, chip)
    return time_of(table, *way[-1]) if way else inf


def failing(table: Table) -> list[int]:
    """Chips from which it ends above the best, or cannot begin."""
    best = least(table)
    return [chip for chip in range(len(table[0])) if end(table, chip) > best]


def interaction(table: Table) -> float:
    """The largest over all pairs of plans and of chips; every entry is a time."""
    return max(map(abs, interactions(table)))


def interactions(table: Table) -> list[float]:
    """Those of all pairs, each plan before the other and each chip too, with their signs."""
    rows, chips = [[time or 0 for time in row] for row in table], range(len(table[0]))
    return [one[c] + other[d] - one[d] - other[c] for one, other in combinations(rows, 2) for c, d in combinations(chips, 2)]


def of_some(table: Table) -> dict[str, float]:
    """The largest of some pairs alone, or with its sign, by what was left out."""
    turned: Table = [list(column) for column in zip(*table, strict=True)]
    first, first_chip = (max(interaction([lines[0], line]) for line in lines[1:]) for lines in (table, turned))
    beside, beside_chip = (max(interaction(list(pair)) for pair in pairwise(lines)) for lines in (table, turned))
    corner = max(abs(interaction([[row[0], row[c]] for row in (table[0], other)])) for other in table[1:] for c in range(1, len(turned)))
    return {
        "neighbours alone are compared": _of_neighbours(table),
        "all are compared with the first plan and the first chip alone": corner,
        "neighbouring plans alone are compared": beside,
        "neighbouring chips alone are compared": beside_chip,
        "plans are compared with the first one alone": first,
        "chips are compared with the first one alone": first_chip,
        "the sign is kept: what is below 0 counts, too": max(interactions(table)),
    }


def _of_neighbours(table: Table) -> float:
    """The largest of neighbouring plans and neighbouring chips alone."""
    squares = ([row[c : c + 2] for row in pair] for pair in pairwise(table) for c in range(len(table[0]) - 1))
    return max(interaction(square) for square in squares)


def is_alone(table: Table, plan: int, chip: int) -> bool:
    """Whether no other design of its plan or of its chip is as quick."""
    time = table[plan][chip]
    return table[plan].count(time) == [row[chip] for row in table].count(time) == 1


def broken_ties(table: Table) -> Table:
    """Of times that are equal the first is a little shorter: so the first of the quickest is taken, and what it has is not kept."""
    width = len(table[0])
    return [[None if time is None else time + 1e-9 * (p * width + c) for c, time in enumerate(row)] for p, row in enumerate(table)]
