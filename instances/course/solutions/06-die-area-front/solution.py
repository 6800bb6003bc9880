"""Reference solution of assignment 6."""

from itertools import pairwise
from typing import Any

Point = list[float]


def front(points: list[Point]) -> list[int]:
    """By rising first figure, those whose second figure is below all before."""
    found: list[int] = []
    for place in sorted(range(len(points)), key=lambda place: points[place]):
        if not found or points[place][1] < points[found[-1]][1]:
            found.append(place)
    return found


def hypervolume(points: list[Point], corner: Point) -> float:
    """Strip by strip: each point of the front down to the corner, from its first figure to that of the next."""
    order = [points[place] for place in front(points) if points[place][0] < corner[0] and points[place][1] < corner[1]]
    return float(sum((after[0] - x) * (corner[1] - y) for (x, y), after in pairwise([*order, corner])))


def few(points: list[Point], corner: Point, count: int) -> list[int]:
    """The best with each number of points that ends with each point of the front, and which point comes before it."""
    order = [place for place in front(points) if points[place][0] < corner[0] and points[place][1] < corner[1]]
    best = [[((corner[0] - points[i][0]) * (corner[1] - points[i][1]), -1) for i in order]]
    for _ in range(min(count, len(order)) - 1):
        last, row = best[-1], []
        for at, i in enumerate(order):
            more = ((last[j][0] + (corner[0] - points[i][0]) * (points[order[j]][1] - points[i][1]), j) for j in range(at))
            row.append(max([(0.0, -1), *more]))
        best.append(row)
    if not order:
        return []
    at, used = max(range(len(order)), key=lambda at: best[-1][at][0]), len(best) - 1
    chosen = []
    while at >= 0:
        chosen.append(order[at])
        at, used = best[used][at][1], used - 1
    return chosen[::-1]


def splits(parts: list[list[list[int]]]) -> list[list[int]]:
    """The front of the parts so far, with every option of the next part, thinned again."""
    found: list[tuple[int, int, list[int]]] = [(0, 0, [])]
    for options in parts:
        more = [(x + area, y + time, [*chosen, place]) for x, y, chosen in found for place, (area, time) in enumerate(options)]
        found = [more[place] for place in front([[x, y] for x, y, _ in more])]
    return [chosen for _, _, chosen in found]


def designs(question: dict[str, Any], count: int) -> list[dict[str, float]]:
    """All designs as points, and the best few of them."""
    chips, times = question["chips"], question["step_time"]
    corner = [question["corner"]["step_time"], question["corner"]["die_area"]]
    every = [(plan, chip) for plan, row in enumerate(times) for chip, time in enumerate(row) if time is not None]
    points = [[times[plan][chip], chips[chip]["die_area"]] for plan, chip in every]
    return [
        {"plan": every[place][0], "chip": every[place][1], "step_time": points[place][0], "die_area": points[place][1]}
        for place in few(points, corner, count)
    ]
