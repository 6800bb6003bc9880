"""Assignment 5: a curve as straight pieces, their worst error, and what pieces prove about the best area; judged in closed form."""

from functools import partial
from itertools import pairwise
from math import asinh, atanh, ceil, exp, isfinite, log, sinh, sqrt, tanh
from random import Random

import numpy as np

from crossopt.formulation.piecewise import chord_pieces, tangent_pieces
from crossopt.solvers.grading.marks import (
    FULL,
    SAME,
    Assignment,
    Case,
    Slip,
    Task,
    Verdict,
    apart,
    figure,
    given_first,
    nearly,
    number,
    numbers,
    public,
    shown,
    wrong,
)
from crossopt.solvers.grading.running import Call

Ends = tuple[float, float, float]
"""The lowest and the highest area, and the error."""

_MOST = 10_000


def tasks(seed: str) -> tuple[Task, ...]:
    """Ranges of one to three decades, errors of a few per cent and below."""
    random, handed = Random(f"{seed}/05"), public("05-straight-pieces")
    given = handed["range"]["low"], handed["range"]["high"], handed["range"]["error"]
    ranges = [_ends(random, error) for error in (0.3, 0.02, 0.005)]
    several = [_points(random, count) for count in (2, 5, 12)]
    inside = [(ends, random.uniform(ends[0], ends[-1])) for ends in several]
    inside += [(several[1], several[1][index]) for index in (0, 2, -1)]  # at a point: the first, one between, the last
    best = [(*costs(random, *ends[:2]), *ends) for costs, ends in zip((_costs, _costs_inside, _costs_inside), ranges, strict=True)]
    inside.insert(0, (handed["points"], handed["area"]))
    best.insert(0, (handed["cost"]["work"], handed["cost"]["slope"], *given))
    return (
        Task("the worst error of chords: worst_error", 9, given_first(_error_case(ends) for ends in (handed["points"], *several))),
        Task("the fewest chords: chord_points", 15, given_first(_chord_case(ends) for ends in (given, *ranges))),
        Task("the fewest tangents: tangent_points", 15, given_first(_tangent_case(ends) for ends in (given, *ranges))),
        Task("weights of neighbours: weights", 9, given_first(_weights_case(*ends) for ends in inside)),
        Task("the best area with a bound: best_area", 12, given_first(_best_case(ends) for ends in best)),
    )


def worst_chord(points: list[float]) -> float:
    """The chord of 1/x between p and q is relatively worst at (p + q) / 2, by sinh(log(q / p) / 2)^2."""
    return max(sinh(log(q / p) / 2.0) ** 2 for p, q in pairwise(points))


def worst_tangent(points: list[float], low: float, high: float) -> float:
    """The tangent at p is off by (1 - x / p)^2 at x; two of them cross at 2 p q / (p + q), by tanh(log(q / p) / 2)^2."""
    between = [tanh(log(q / p) / 2.0) ** 2 for p, q in pairwise(points)]
    return max((1.0 - low / points[0]) ** 2, (1.0 - high / points[-1]) ** 2, *between)


EQUAL = "points at equal distances, where equal ratios need fewer"
ONE_MORE = "one point too many: an end is counted twice, or a number is rounded up twice"
AT_ENDS = "the outermost tangents touch at the ends of the range, where they are worth half a stretch"
OTHER_STEP = "the step of the other kind of pieces is taken: chords are off by sinh(s / 2)^2, tangents by tanh(s / 2)^2"
SWAPPED = "the two weights are swapped"
FAR = "points that are no neighbours have weights: that is above the chords"
ABOVE = "the bound is above the cost of a design that there is: chords lie above the curve, tangents below"
NO_BOUND = "the area is good, but the bound is far below its cost"
NO_AREA = "the bound is good, but the area is far from the best"
DESIGN = "the bound is the cost of the area, which is no bound"


def judge_chords(handed: object, ends: Ends) -> Verdict:
    """Whether the chords keep the error, and how many points they need for it."""
    low, high, error = ends
    points = _rising(handed)
    if points is None or len(points) < 2 or not (_same(points[0], low) and _same(points[-1], high)):
        return wrong(f"rising points from {low:.6g} to {high:.6g} are meant, not {shown(handed)}")
    fewest = chord_pieces(low, high, error).points
    return _judge_count(points, worst_chord(points), error, len(fewest), _steps(low, high, 2.0 * atanh(sqrt(error))) + 1)


def judge_tangents(handed: object, ends: Ends) -> Verdict:
    """Whether the largest of the tangents keeps the error, and how many it needs for it."""
    low, high, error = ends
    points = _rising(handed)
    if not points or points[0] < low * (1.0 - SAME) or points[-1] > high * (1.0 + SAME):
        return wrong(f"rising points between {low:.6g} and {high:.6g} are meant, not {shown(handed)}")
    fewest = tangent_pieces(low, high, error).points
    return _judge_count(points, worst_tangent(points, low, high), error, len(fewest), _steps(low, high, 2.0 * asinh(sqrt(error))), low)


def _judge_count(points: list[float], worst: float, error: float, fewest: int, other: int, low: float | None = None) -> Verdict:
    """Few enough, and near enough; `other` is how many the step of the other kind takes, `low` the end where a tangent is wasted."""
    gaps = [q - p for p, q in pairwise(points)]
    even = len(points) > 2 and max(gaps) - min(gaps) <= SAME * points[-1]
    if not isfinite(worst) or worst > error * (1.0 + SAME):
        why = f"the pieces are off by {worst:.4%} at worst, where {error:.4%} is allowed"
        return wrong(why, EQUAL if even else OTHER_STEP if len(points) == other else "")
    why = f"{len(points)} points where {fewest} do"
    if len(points) <= fewest:
        return FULL
    if low is not None and _same(points[0], low):
        return nearly(AT_ENDS, why)
    if len(points) == other:
        return nearly(OTHER_STEP, why)
    return nearly(ONE_MORE, why) if len(points) == fewest + 1 else wrong(why, EQUAL if even else "")


def _steps(low: float, high: float, longest: float) -> int:
    """How many stretches of this length, as a logarithm, a range takes."""
    return max(1, ceil(log(high / low) / longest - SAME))


def judge_weights(handed: object, points: list[float], area: float) -> Verdict:
    """Weights that add up to 1 and to the area, on two neighbours at most."""
    weights = numbers(handed, len(points))
    if weights is None or len(weights) != len(points) or min(weights) < 0.0:
        return wrong(f"{len(points)} weights, none below 0, are meant, not {shown(handed)}")
    if not _same(sum(weights), 1.0):
        return wrong(f"the weights add up to {apart(sum(weights), 1.0)[0]}, not to 1")
    places = [index for index, weight in enumerate(weights) if weight > 0.0]
    reached = float(np.dot(weights, points))
    if abs(reached - area) > SAME * area:
        first, last = places[0], places[-1]
        turned = last == first + 1 and abs(weights[first] * points[last] + weights[last] * points[first] - area) <= SAME * area
        why = f"the weighted points add up to {' where the area is '.join(apart(reached, area))}"
        return nearly(SWAPPED, why) if turned else wrong(why)
    if places[-1] - places[0] > 1:
        return wrong(f"points {places[0]} and {places[-1]} have weights, which are no neighbours", FAR)
    return FULL


def judge_best(handed: object, work: float, slope: float, ends: Ends) -> Verdict:
    """An area, priced by the curve itself, and a bound that holds and is near; nearly right where one of them is."""
    low, high, error = ends
    if not isinstance(handed, dict) or (area := number(handed.get("area"))) is None or (bound := number(handed.get("bound"))) is None:
        return wrong(f"a dictionary with `area` and `bound` is meant, not {shown(handed)}")
    if not low * (1.0 - SAME) <= area <= high * (1.0 + SAME):
        return wrong(f"the area {area:.6g} is not from {low:.6g} to {high:.6g}")
    least = _cost(min(max(sqrt(work / slope), low), high), work, slope)
    value = _cost(area, work, slope)
    good, text = value <= least * (1.0 + error + SAME), f"the area costs {value:.6g}, the least cost is {least:.6g}, the bound {bound:.6g}"
    if bound > least * (1.0 + SAME):
        named = DESIGN if _same(bound, value) else ABOVE
        return nearly(named, text) if good else wrong(text, named)
    tight = bound >= least * (1.0 - error - SAME)
    if good and tight:
        return FULL
    return nearly(NO_BOUND if good else NO_AREA, text) if good or tight else wrong(text)


def _rising(handed: object) -> list[float] | None:
    points = numbers(handed, _MOST)
    return points if points and points[0] > 0.0 and all(p < q for p, q in pairwise(points)) else None


def _same(value: float, reference: float) -> bool:
    return abs(value - reference) <= SAME * reference


def _cost(area: float, work: float, slope: float) -> float:
    """Seconds of the work on the area, and what an area costs: work / area + slope area."""
    return work / area + slope * area


def _ends(random: Random, error: float) -> Ends:
    """A range of one to three decades; of a large error the first draw in which chords and tangents take different steps."""

    def draw() -> Ends:
        low = _low(random)
        return low, low * random.choice((8.0, 30.0, 500.0)), error * random.uniform(0.8, 1.2)

    return next(found for found in iter(draw, None) if error < 0.1 or _differ(*found))


def _differ(low: float, high: float, error: float) -> bool:
    return _steps(low, high, 2.0 * asinh(sqrt(error))) != _steps(low, high, 2.0 * atanh(sqrt(error)))


def _low(random: Random) -> float:
    return float(random.randrange(5, 60))


def _points(random: Random, count: int) -> list[float]:
    """Of many the first draw in which neither the first chord is worst nor the last."""

    def draw() -> list[float]:
        points = [_low(random)]
        while len(points) < count:
            points.append(round(points[-1] * random.uniform(1.1, 2.0), 3))
        return points

    return next(found for found in iter(draw, None) if count < 5 or worst_chord(found) > max(map(worst_chord, (found[:2], found[-2:]))))


def _costs(random: Random, low: float, high: float) -> tuple[float, float]:
    """With a best area anywhere, often at an end."""
    return random.uniform(0.1, 10.0) * low * high * (slope := random.choice((0.0005, 0.02, 0.5))), slope


def _costs_inside(random: Random, low: float, high: float) -> tuple[float, float]:
    """With a best area that is worse by more than the error at both ends and in the middle of the range."""
    near, far = 0.3, log(high / low) / 2.0 - log(2.0)
    best, slope = sqrt(low * high) * exp(random.choice((-1, 1)) * random.uniform(near, far)), random.choice((0.0005, 0.02, 0.5))
    return slope * best**2, slope


def _error_case(points: list[float]) -> Case:
    pairs = list(pairwise(points))
    errors = [worst_chord(list(pair)) for pair in pairs]
    places = [(sqrt(p * q), p, q) for p, q in pairs]
    slips = [
        Slip(
            "errors are measured at the geometric mean of two points, the chord is worst halfway", max(_off(x, p, q) for x, p, q in places)
        ),
        Slip("errors are absolute (relative ones are meant)", max(_off((p + q) / 2, p, q) * 2 / (p + q) for p, q in pairs)),
        Slip("the first chord alone is looked at", errors[0]),
        Slip("the last chord alone is looked at", errors[-1]),
        Slip("the mean of the chords is taken, not the worst", sum(errors) / len(errors)),
        Slip("the errors of the chords are added up", sum(errors)),
        Slip("the best of the chords is taken, not the worst", min(errors)),
        Slip("this is the error of tangents", max(tanh(log(q / p) / 2.0) ** 2 for p, q in pairs)),
    ]
    return Case(f"{len(points)} points", Call("worst_error", (points,)), partial(figure, right=max(errors), slips=slips))


def _off(area: float, p: float, q: float) -> float:
    """How far the chord of p and q is off the curve at an area, relatively."""
    return area * (1.0 / p + (1.0 / q - 1.0 / p) * (area - p) / (q - p)) - 1.0


def _chord_case(ends: Ends) -> Case:
    return Case(_text(ends), Call("chord_points", ends), partial(judge_chords, ends=ends))


def _tangent_case(ends: Ends) -> Case:
    return Case(_text(ends), Call("tangent_points", ends), partial(judge_tangents, ends=ends))


def _weights_case(points: list[float], area: float) -> Case:
    return Case(f"{len(points)} points", Call("weights", (points, area)), partial(judge_weights, points=points, area=area))


def _best_case(given: tuple[float, float, float, float, float]) -> Case:
    work, slope, low, high, error = given
    ends = low, high, error
    return Case(_text(ends), Call("best_area", given), partial(judge_best, work=work, slope=slope, ends=ends))


def _text(ends: Ends) -> str:
    low, high, error = ends
    return f"{low:.6g} to {high:.6g} mm^2 within {error:.2%}"


CURVES = Assignment("05-straight-pieces", "A curve in straight pieces", tasks)
