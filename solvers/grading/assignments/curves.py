"""Assignment 5: a curve as straight pieces, their worst error, and what pieces prove about the best area; judged in closed form."""

from functools import partial
from itertools import pairwise
from math import isfinite, log, sinh, sqrt, tanh
from random import Random

import numpy as np

from crossopt.formulation.piecewise import RECIPROCAL, chord_pieces, tangent_pieces
from crossopt.solvers.grading.handouts import public
from crossopt.solvers.grading.marks import FULL, SAME, Assignment, Case, Task, Verdict, apart, by_gap, figure, number, numbers, shown
from crossopt.solvers.grading.walls.running import Call

Ends = tuple[float, float, float]
"""The lowest and the highest area, and the error."""

_MOST = 10_000
_HALF = 0.5
"""The share of points that many breakpoints lose: twice as many as needed are worth half."""
_VALUE_NEAR = 0.1


def tasks(seed: str) -> tuple[Task, ...]:
    """Ranges of one to three decades, errors of a few per cent and below."""
    random, handed = Random(f"{seed}/05"), public("05-straight-pieces")
    given = handed["range"]["low"], handed["range"]["high"], handed["range"]["error"]
    ranges = [(_low(random), random.choice((8.0, 30.0, 500.0)), error) for error in (0.1, 0.02, 0.005)]
    drawn: list[Ends] = [(low, low * ratio, error * random.uniform(0.8, 1.2)) for low, ratio, error in ranges]
    several = [_points(random, count) for count in (2, 5, 12)]
    inside = [(one, random.uniform(one[0], one[-1])) for one in several]
    best = [(*_costs(random), *one) for one in drawn]
    inside.insert(0, (handed["points"], handed["area"]))
    best.insert(0, (handed["cost"]["work"], handed["cost"]["slope"], *given))
    return (
        Task("the worst error of chords: worst_error", 15, tuple(_error_case(one) for one in (handed["points"], *several))),
        Task("the fewest chords: chord_points", 25, tuple(_chord_case(one) for one in (given, *drawn))),
        Task("the fewest tangents: tangent_points", 25, tuple(_tangent_case(one) for one in (given, *drawn))),
        Task("weights of neighbours: weights", 15, tuple(_weights_case(*one) for one in inside)),
        Task("the best area with a bound: best_area", 20, tuple(_best_case(one) for one in best)),
    )


def worst_chord(points: list[float]) -> float:
    """The chord of 1/x between p and q is relatively worst at (p + q) / 2, by sinh(log(q / p) / 2)^2."""
    return max(sinh(log(q / p) / 2.0) ** 2 for p, q in pairwise(points))


def worst_tangent(points: list[float], low: float, high: float) -> float:
    """The tangent at p is off by (1 - x / p)^2 at x; two of them cross at 2 p q / (p + q), by tanh(log(q / p) / 2)^2."""
    between = [tanh(log(q / p) / 2.0) ** 2 for p, q in pairwise(points)]
    return max((1.0 - low / points[0]) ** 2, (1.0 - high / points[-1]) ** 2, *between)


def judge_chords(handed: object, ends: Ends) -> Verdict:
    """Whether the chords keep the error, and how many points they need for it."""
    low, high, error = ends
    points = _rising(handed)
    if points is None or len(points) < 2 or not (_same(points[0], low) and _same(points[-1], high)):
        return Verdict(0.0, f"rising points from {low:.6g} to {high:.6g} are meant, not {shown(handed)}")
    return _counted(worst_chord(points), error, len(points), len(chord_pieces(RECIPROCAL, low, high, error).points))


def judge_tangents(handed: object, ends: Ends) -> Verdict:
    """Whether the largest of the tangents keeps the error, and how many it needs for it."""
    low, high, error = ends
    points = _rising(handed)
    if not points or points[0] < low * (1.0 - SAME) or points[-1] > high * (1.0 + SAME):
        return Verdict(0.0, f"rising points between {low:.6g} and {high:.6g} are meant, not {shown(handed)}")
    return _counted(worst_tangent(points, low, high), error, len(points), len(tangent_pieces(RECIPROCAL, low, high, error).points))


def judge_weights(handed: object, points: list[float], area: float) -> Verdict:
    """Weights that add up to 1 and to the area, on two neighbours at most."""
    weights = numbers(handed, len(points))
    if weights is None or len(weights) != len(points) or min(weights) < 0.0:
        return Verdict(0.0, f"{len(points)} weights, none below 0, are meant, not {shown(handed)}")
    if not _same(sum(weights), 1.0):
        return Verdict(0.0, f"the weights add up to {apart(sum(weights), 1.0)[0]}, not to 1")
    reached = float(np.dot(weights, points))
    if abs(reached - area) > SAME * area:
        return Verdict(0.0, f"the weighted points add up to {' where the area is '.join(apart(reached, area))}")
    places = [place for place, weight in enumerate(weights) if weight > 0.0]
    if places[-1] - places[0] > 1:
        return Verdict(0.0, f"points {places[0]} and {places[-1]} have weights, which are no neighbours: that is above the chords")
    return FULL


def judge_best(handed: object, work: float, slope: float, ends: Ends) -> Verdict:
    """Half for an area, priced by the curve itself, and half for a bound that holds and is near."""
    low, high, error = ends
    if not isinstance(handed, dict) or (area := number(handed.get("area"))) is None or (bound := number(handed.get("bound"))) is None:
        return Verdict(0.0, f"a dictionary with `area` and `bound` is meant, not {shown(handed)}")
    if not low * (1.0 - SAME) <= area <= high * (1.0 + SAME):
        return Verdict(0.0, f"the area {area:.6g} is not from {low:.6g} to {high:.6g}")
    least = _cost(min(max(sqrt(work / slope), low), high), work, slope)
    value = _cost(area, work, slope)
    near = by_gap(
        max(0.0, value / least - 1.0 - error), _VALUE_NEAR, f"the area costs {value:.6g}, more than {error:.2%} above the least cost"
    )
    if bound > least * (1.0 + SAME):
        return Verdict(near.share * _HALF, f"the bound {bound:.6g} is above the cost of a design that there is, so it is no bound")
    gap = max(0.0, 1.0 - bound / least - error)
    tight = by_gap(gap, _VALUE_NEAR, f"the bound {bound:.6g} is more than {error:.2%} below the least cost")
    return Verdict((near.share + tight.share) * _HALF, "; ".join(why for why in (near.why, tight.why) if why))


def _counted(worst: float, error: float, count: int, fewest: int) -> Verdict:
    if not isfinite(worst) or worst > error * (1.0 + SAME):
        return Verdict(0.0, f"the pieces are off by {worst:.4%} at worst, where {error:.4%} is allowed")
    return FULL if count <= fewest else by_gap((count - fewest) / fewest * _HALF, 1.0, f"{count} points where {fewest} do")


def _rising(handed: object) -> list[float] | None:
    points = numbers(handed, _MOST)
    return points if points and points[0] > 0.0 and all(p < q for p, q in pairwise(points)) else None


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= SAME * other


def _cost(area: float, work: float, slope: float) -> float:
    """Seconds of the work on the area, and what an area costs: work / area + slope area."""
    return work / area + slope * area


def _low(random: Random) -> float:
    return float(random.randrange(5, 60))


def _points(random: Random, count: int) -> list[float]:
    points = [_low(random)]
    while len(points) < count:
        points.append(round(points[-1] * random.uniform(1.1, 2.0), 3))
    return points


def _costs(random: Random) -> tuple[float, float]:
    """So that the best area is inside the range for some and at an end for others."""
    return random.uniform(50.0, 5000.0), random.choice((0.0005, 0.02, 0.5))


def _error_case(points: list[float]) -> Case:
    return Case(f"{len(points)} points", Call("worst_error", (points,)), partial(figure, right=worst_chord(points)))


def _chord_case(ends: Ends) -> Case:
    return Case(_words(ends), Call("chord_points", ends), partial(judge_chords, ends=ends))


def _tangent_case(ends: Ends) -> Case:
    return Case(_words(ends), Call("tangent_points", ends), partial(judge_tangents, ends=ends))


def _weights_case(points: list[float], area: float) -> Case:
    return Case(f"{len(points)} points", Call("weights", (points, area)), partial(judge_weights, points=points, area=area))


def _best_case(given: tuple[float, float, float, float, float]) -> Case:
    work, slope, low, high, error = given
    ends = low, high, error
    return Case(_words(ends), Call("best_area", given), partial(judge_best, work=work, slope=slope, ends=ends))


def _words(ends: Ends) -> str:
    low, high, error = ends
    return f"{low:.6g} to {high:.6g} mm^2 within {error:.2%}"


CURVES = Assignment("05-straight-pieces", "A curve in straight pieces", tasks)
