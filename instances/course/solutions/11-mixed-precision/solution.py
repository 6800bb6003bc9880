"""Reference solution of assignment 11."""

from itertools import pairwise
from math import inf

Table = list[list[int]]


def bound(losses: Table, uses: Table, budget: int, price: float) -> float:
    """With a price on the budget each layer chooses for itself."""
    found = 0.0
    for loss, use in zip(losses, uses, strict=True):
        found += min(one + price * used for one, used in zip(loss, use, strict=True))
    return found - price * budget


def best_bound(losses: Table, uses: Table, budget: int) -> float:
    """Steps along the lower hull of each layer, those that spare most for their use first, the last one in part."""
    total, steps = 0.0, []
    left = float(budget)
    for loss, use in zip(losses, uses, strict=True):
        corners = hull(loss, use)
        total, left = total + corners[0][1], left - corners[0][0]
        steps += [(v - u, b - a) for (u, a), (v, b) in pairwise(corners)]
    for use_more, loss_more in sorted(steps, key=lambda step: step[1] / step[0]):
        part = min(use_more, left)
        total += loss_more * part / use_more
        left -= part
    return total


def hull(loss: list[int], use: list[int]) -> list[tuple[int, int]]:
    """Corners (use, loss) from the least use to the least loss; what lies on or above the line of two others is left out."""
    corners: list[tuple[int, int]] = []
    for point in sorted(zip(use, loss, strict=True)):
        if corners and point[1] >= corners[-1][1]:
            continue
        while len(corners) > 1 and above(corners[-2], corners[-1], point):
            corners.pop()
        corners.append(point)
    return corners


def above(first: tuple[int, int], middle: tuple[int, int], last: tuple[int, int]) -> bool:
    """Whether the middle one lies on or above the line between the others."""
    return (middle[1] - first[1]) * (last[0] - first[0]) >= (last[1] - first[1]) * (middle[0] - first[0])


def best(losses: Table, uses: Table, budget: int, tied: list[list[int]]) -> list[int]:
    """Tied layers are one; then a table over uses, a layer after the other."""
    owner = {second: first for first, second in tied}
    groups = [[layer, *(second for first, second in tied if first == layer)] for layer in range(len(losses)) if layer not in owner]
    rows: list[dict[int, tuple[int, list[int]]]] = [{0: (0, [])}]
    for group in groups:
        row: dict[int, tuple[int, list[int]]] = {}
        for used, (lost, chosen) in rows[-1].items():
            for choice in range(len(losses[group[0]])):
                more = used + sum(uses[layer][choice] for layer in group)
                loss = lost + sum(losses[layer][choice] for layer in group)
                if more <= budget and loss < row.get(more, (inf, []))[0]:
                    row[more] = loss, [*chosen, choice]
        rows.append(row)
    _, chosen = min(rows[-1].values())
    found = [0] * len(losses)
    for group, choice in zip(groups, chosen, strict=True):
        for layer in group:
            found[layer] = choice
    return found


def front(losses: Table, uses: Table) -> list[list[int]]:
    """A layer after the other; what another point equals or betters in both is dropped at once."""
    points = [(0, 0)]
    for loss, use in zip(losses, uses, strict=True):
        grown = sorted((u + used, a + lost) for u, a in points for used, lost in zip(use, loss, strict=True))
        points = []
        for point in grown:
            if not points or point[1] < points[-1][1]:
                points.append(point)
    return [list(point) for point in points]


def chain(losses: Table, uses: Table, changes: list[int], budget: int) -> list[int]:
    """A table over the choice of the last layer and the use so far."""
    table = {(choice, use): (loss, [choice]) for choice, (use, loss) in enumerate(zip(uses[0], losses[0], strict=True)) if use <= budget}
    for layer in range(1, len(losses)):
        grown: dict[tuple[int, int], tuple[int, list[int]]] = {}
        for (before, used), (lost, chosen) in table.items():
            for choice in range(len(losses[layer])):
                more = used + uses[layer][choice] + (changes[layer - 1] if choice != before else 0)
                loss = lost + losses[layer][choice]
                if more <= budget and loss < grown.get((choice, more), (inf, []))[0]:
                    grown[choice, more] = loss, [*chosen, choice]
        table = grown
    return min(table.values())[1]
