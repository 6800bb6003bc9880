"""Fronts of two figures of which less is better, and what they are worth.

hypervolume of points      the area that at least one of them is no worse than, up to a corner
the best few               best[k][i] = max over j < i of best[k-1][j] + the strip that point i adds to point j, points in order
                           (hypervolume subset selection in two dimensions; Auger, Bader, Brockhoff and Zitzler 2009)
sums of parts              the front of the first parts, joined with every option of the next, thinned to its front again
"""

from collections.abc import Sequence
from itertools import pairwise

Point = tuple[float, float]
Parts = list[list[list[int]]]
"""For each part its options, each with two figures that add up over the parts."""


def unbeaten(points: Sequence[Point]) -> list[Point]:
    """The points that none is as good as in both figures and better in one, each once, by rising first figure."""
    found: list[Point] = []
    for point in sorted(set(points)):
        if not found or point[1] < found[-1][1]:
            found.append(point)
    return found


def hypervolume(points: Sequence[Point], corner: Point) -> float:
    """Strip by strip from the least first figure on."""
    inside = [point for point in unbeaten(points) if point[0] < corner[0] and point[1] < corner[1]]
    return float(sum((after[0] - x) * (corner[1] - y) for (x, y), after in pairwise([*inside, corner])))


def most_of_few(points: Sequence[Point], corner: Point, count: int) -> float:
    """The most that so many of the points are worth."""
    order = [point for point in unbeaten(points) if point[0] < corner[0] and point[1] < corner[1]]
    best = [(corner[0] - x) * (corner[1] - y) for x, y in order]
    worth = best
    for _ in range(min(count, len(order)) - 1):
        worth = [max([best[i], *(worth[j] + _added(order[j], order[i], corner) for j in range(i))]) for i in range(len(order))]
    return max(worth, default=0.0)


def _added(before: Point, point: Point, corner: Point) -> float:
    """What a point adds to a front that ends with the one before."""
    return (corner[0] - point[0]) * (before[1] - point[1])


def one_by_one(points: Sequence[Point], corner: Point, count: int) -> list[Point]:
    """Each time the point that adds most, which need not be the best few together."""
    chosen: list[Point] = []
    for _ in range(min(count, len(points))):
        chosen.append(max(points, key=lambda point: hypervolume([*chosen, point], corner)))
    return chosen


def supported(front: Sequence[Point]) -> list[Point]:
    """The points of a front, by rising first figure, that some weighted sum of both figures finds: its lower hull."""
    hull: list[Point] = []
    for point in front:
        while len(hull) > 1 and _turn(hull[-2], hull[-1], point) <= 0.0:
            hull.pop()
        hull.append(point)
    return hull


def _turn(first: Point, second: Point, third: Point) -> float:
    """Above 0 where the way from the first over the second to the third turns left."""
    return (second[0] - first[0]) * (third[1] - first[1]) - (second[1] - first[1]) * (third[0] - first[0])


def split_front(parts: Parts) -> list[Point]:
    """The front of the sums, part after part."""
    found: list[Point] = [(0, 0)]
    for options in parts:
        found = unbeaten([(x + area, y + time) for x, y in found for area, time in options])
    return found
