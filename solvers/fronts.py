"""Fronts on the command line: found within one time limit, written as results, and checked point by point."""

import json
import sys
from argparse import Namespace
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any

from instances.instance import Instance
from solvers.certify import Limits
from solvers.check import Report
from solvers.console import usage
from solvers.engines import ENGINES
from solvers.files import read_as
from solvers.pareto import Front, front
from solvers.progress import progress_on
from solvers.result import Result, from_json, to_json
from solvers.several.check import check_any

KIND = "front"


def front_in(instance: Instance, options: Namespace, limits: Limits) -> Front:
    """The front, all its questions together within the time limit."""
    first, _, second = options.pareto.partition(",")
    deadline = monotonic() + limits.seconds
    with progress_on(sys.stderr, "") as watch:

        def solve(asked: Instance) -> Result:
            left = replace(limits, seconds=max(deadline - monotonic(), 0.0))
            return ENGINES[options.engine](asked, left, watch)

        try:
            return front(instance, first, second, options.points, solve)
        except ValueError as error:
            usage(f"--pareto {options.pareto}: {error}")


def front_json(first: str, second: str, found: Front) -> str:
    """The front as JSON text."""
    points = [{first: point.first, second: point.second, "result": to_json(point.result)} for point in found.points]
    data = {"kind": KIND, "figures": [first, second], "stopped": found.stopped, "proved": found.proved, "points": points}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def check_front(path: Path, cross_check: bool) -> Report:
    """Every point checked as a result of its own, and that no point is better than another in both figures.

    That nothing lies between the points, or beyond them, is not proved anew.
    """
    figures, points = read_as(path, points_in)
    checked, refused = [f"{len(points)} points, each as a result of its own"], []
    with progress_on(sys.stderr, "") as watch:
        for place, (_, result) in enumerate(points):
            refused += [f"points[{place}]: {line}" for line in check_any(result, watch, cross_check).refused]
    refused += front_faults(figures, points)
    return Report((*checked, "that nothing lies between and beyond them is not proved anew"), tuple(refused))


def front_faults(figures: list[str], points: list[tuple[list[float], Result]]) -> list[str]:
    """Points whose figures are not those of their results, and points that are no front."""
    refused = []
    for place, (said, result) in enumerate(points):
        true = [(result.evaluation or {}).get(name) for name in figures]
        if None in true:
            refused.append(f"points[{place}]: there is no design")
        elif said != true:
            refused.append(f"points[{place}]: {figures[0]} and {figures[1]} are {true}, the front says {said}")
    pairs = [said for said, _ in points] if not refused else []
    if any(one[0] >= other[0] or one[1] <= other[1] for one, other in pairwise(pairs)):
        refused.append("the points do not go from the least first figure to the least second one")
    return refused


def points_in(data: Any) -> tuple[list[str], list[tuple[list[float], Result]]]:  # noqa: ANN401
    """Figures and results; a ValueError where there are none."""
    if not isinstance(data, dict) or not isinstance(data.get("points"), list) or not isinstance(data.get("figures"), list):
        raise ValueError("a front needs its figures and its points (write one with `crossopt solve FILE --pareto A,B --out FRONT.json`)")
    figures = [str(name) for name in data["figures"]]
    if len(figures) != 2 or not all(isinstance(point, dict) and set(point) == {*figures, "result"} for point in data["points"]):
        raise ValueError("every point of a front needs its two figures and its result")
    return figures, [([point[name] for name in figures], from_json(point["result"])) for point in data["points"]]
