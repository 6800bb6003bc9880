"""Public tests of assignment 5: `pytest .` tries solution.py or the notebook on instance.yaml; `crossopt grade 5 .` asks for more."""

import sys
from itertools import pairwise
from math import isclose
from pathlib import Path

import yaml

HERE = Path(__file__).parent
GIVEN = yaml.safe_load((HERE / "instance.yaml").read_text(encoding="utf-8"))
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a solution may import files beside it; handed_in.py lies here, or above in a checkout

from handed_in import functions  # noqa: E402

MINE = functions(HERE)
RANGE, COST = GIVEN["range"], GIVEN["cost"]
LOW, HIGH, ERROR = RANGE["low"], RANGE["high"], RANGE["error"]
AREAS = [LOW * (HIGH / LOW) ** (place / 5000) for place in range(5001)]


def rising(points: list[float]) -> None:
    assert all(p < q for p, q in pairwise(points))
    assert LOW * (1 - 1e-9) <= points[0] <= points[-1] <= HIGH * (1 + 1e-9)


def test_the_worst_error_is_halfway() -> None:
    assert isclose(MINE["worst_error"](GIVEN["points"]), 0.125, rel_tol=1e-9)


def test_eighteen_points_make_chords_that_are_near_everywhere() -> None:
    points = MINE["chord_points"](**RANGE)
    rising(points)
    assert isclose(points[0], LOW) and isclose(points[-1], HIGH)
    assert len(points) == 18
    assert all((p + q) ** 2 / (4 * p * q) - 1 <= ERROR * (1 + 1e-9) for p, q in pairwise(points))


def test_seventeen_tangents_are_near_everywhere() -> None:
    points = MINE["tangent_points"](**RANGE)
    rising(points)
    assert len(points) == 17
    assert all(min((1 - x / p) ** 2 for p in points) <= ERROR * (1 + 1e-9) for x in AREAS)


def test_weights_lie_on_two_neighbours() -> None:
    points, area = GIVEN["points"], GIVEN["area"]
    found = MINE["weights"](points, area)
    assert min(found) >= 0
    assert isclose(sum(found), 1.0, rel_tol=1e-9)
    assert isclose(sum(w * p for w, p in zip(found, points, strict=True)), area, rel_tol=1e-9)
    used = [place for place, weight in enumerate(found) if weight > 0]
    assert used[-1] - used[0] <= 1


def test_the_best_area_costs_little_more_than_any_other_and_its_bound_is_below_all() -> None:
    answer = MINE["best_area"](**COST, **RANGE)
    least = min(COST["work"] / x + COST["slope"] * x for x in AREAS)
    assert LOW <= answer["area"] <= HIGH
    assert COST["work"] / answer["area"] + COST["slope"] * answer["area"] <= least * (1 + ERROR)
    assert least * (1 - ERROR) <= answer["bound"] <= least
