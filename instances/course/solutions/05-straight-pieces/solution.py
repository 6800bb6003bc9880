"""Reference solution of assignment 5."""

from itertools import pairwise
from math import asinh, atanh, ceil, exp, log, log1p, sinh, sqrt, tanh

ROUNDING = 1e-12


def worst_error(points: list[float]) -> float:
    """Halfway the chord of p and q is (p + q)^2 / (4 p q) times the curve, which is 1 + sinh(s / 2)^2 for s = log(q / p)."""
    return max(sinh(log(q / p) / 2) ** 2 for p, q in pairwise(points))


def chord_points(low: float, high: float, error: float) -> list[float]:
    """Equal ratios; the number that the error allows, rounded up."""
    longest = 2 * asinh(sqrt(error))
    pieces = max(1, ceil(log(high / low) / longest - ROUNDING))
    inner = [low * (high / low) ** (place / pieces) for place in range(1, pieces)]
    return [low, *inner, high]


def tangent_points(low: float, high: float, error: float) -> list[float]:
    """Each tangent is off by (1 - x / p)^2, near enough from p (1 - r) to p (1 + r), r = sqrt(error); as many stretches as it takes."""
    longest = 2 * atanh(sqrt(error))
    count = max(1, ceil(log(high / low) / longest - ROUNDING))
    step = log(high / low) / count
    before = step - log1p(tanh(step / 2))
    return [low * exp(before + step * place) for place in range(count)]


def weights(points: list[float], area: float) -> list[float]:
    """Those of the two neighbours around the area."""
    found = [0.0] * len(points)
    place = max(place for place in range(len(points) - 1) if points[place] <= area)
    found[place + 1] = (area - points[place]) / (points[place + 1] - points[place])
    found[place] = 1 - found[place + 1]
    return found


def best_area(work: float, slope: float, low: float, high: float, error: float) -> dict[str, float]:
    """The largest of work * tangent + slope * area is convex and straight between crossings: its least is at a crossing or an end."""
    points = tangent_points(low, high, error)
    crossings = [2 * p * q / (p + q) for p, q in pairwise(points)]
    places = [low, *crossings, high]
    lower = [work * max((2 - x / p) / p for p in points) + slope * x for x in places]
    costs = [work / x + slope * x for x in [*places, *points]]
    area = min(zip(costs, [*places, *points], strict=True))[1]
    return {"area": area, "bound": min(lower)}
