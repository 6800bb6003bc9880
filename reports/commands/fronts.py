"""Fronts on the command line: found within one time limit, written as results, and checked point by point."""

import json
import sys
from argparse import Namespace
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.files.saved import read_as
from crossopt.reports.commands.console import usage
from crossopt.reports.commands.progress import progress_on
from crossopt.solvers.answer import Limits, Watch, gap_between, result_in, to_text
from crossopt.solvers.checking import ANEW, Report
from crossopt.solvers.checking import check as report_of
from crossopt.solvers.codesign.answer import DesignResult, Designs, Priced, evaluation_in
from crossopt.solvers.codesign.combined.pareto import FIGURES, Front, ask_with, front
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.objective import UNITS
from crossopt.solvers.family import solve as solved

KIND = "front"


def front_in(instance: Instance, options: Namespace, limits: Limits) -> Front:
    """The front, all its questions together within the time limit."""
    first, _, second = options.pareto.partition(",")
    deadline = monotonic() + limits.seconds
    with progress_on(sys.stderr, "") as watch:

        def solve(asked: Instance) -> DesignResult:
            left = replace(limits, seconds=max(deadline - monotonic(), 0.0))
            return solved(FAMILY, asked, options.engine, left, watch)

        try:
            return front(instance, first, second, options.points, solve)
        except ValueError as error:
            usage(f"--pareto {options.pareto}: {error}")


def front_json(first: str, second: str, found: Front) -> str:
    """The front as JSON text."""
    points = [{first: point.first, second: point.second, "result": json.loads(to_text(point.result))} for point in found.points]
    data = {"kind": KIND, "figures": [first, second], "stopped": found.stopped, "proved": found.proved, "points": points}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def check_front(path: Path, cross_check: bool) -> Report:
    """Every point checked as a result of its own, and, where the front says that it is proved, that its points are a front and its ends.

    Designs between the points are not looked for, as a thinned front leaves some out.
    """
    (figures, points), proved = read_as(path, points_in), read_as(path, says_proved)
    checked, refused, told = [f"{len(points)} points, each as a result of its own"], front_faults(figures, points), False
    with progress_on(sys.stderr, "") as watch:
        for place, (_, result) in enumerate(points):
            report = report_of(FAMILY, result, path.parent, watch, cross_check)
            refused += [f"points[{place}]: {line}" for line in report.refused]
            told = told or report.told
        if proved and not refused:
            facts, refused = _ends_anew(figures, points, watch)
            checked.append(facts)
    between = "; there may be others between them" if proved else "; the front says that there may be others, beside them and beyond them"
    return Report((*checked, f"the points are checked{between}"), tuple(refused), told)


def _ends_anew(figures: list[str], points: list[tuple[list[float], DesignResult]], watch: Watch) -> tuple[str, list[str]]:
    """No design has less of the first figure than the first point or less of the second than the last, nor, at any point's second figure
    or less, less of the first: each asked again of the whole question."""
    instance, (first, second) = read_question(whole_question(figures, points[0][1])), figures
    asks = [(0, 0, first, dict[str, float]()), (len(points) - 1, 1, second, {})]
    asks += [(place, 0, first, {second: said[1]}) for place, (said, _) in enumerate(points) if place]
    faults = list[str]()
    for place, which, objective, limits in asks:
        (said, result), anew = points[place], solved(FAMILY, ask_with(instance, objective, limits), "auto", Limits(), watch)
        if anew.stopped != "complete":
            faults.append(f"the proof of the front was not carried to its end: {anew.stopped}")
            break
        if anew.value is None or gap_between(said[which], anew.value) > result.gap_asked:
            within = "".join(f" with {name.replace('_', ' ')} {limit!r} or less" for name, limit in limits.items())
            least = f"the least {objective.replace('_', ' ')}{within}"
            faults.append(f"points[{place}]: {least} is {anew.value!r} {UNITS[objective]}, the front says {said[which]!r}")
    names = [name.replace("_", " ") for name in figures]
    near = max(result.gap_asked for _, result in points)
    within = f", by more than {near:.2%}" if near else ""
    facts = f"no design has less {names[0]} than the first point, less {names[1]} than the last, or less of both than any{within}"
    return f"{ANEW}{facts}", faults


def says_proved(data: Any) -> bool:  # noqa: ANN401
    """Whether the front claims to be one."""
    return isinstance(data, dict) and data.get("proved") is True


def whole_question(figures: list[str], result: DesignResult) -> dict[str, Any]:
    """The question of all points: settings that limit single points come last in theirs."""
    settings = list(result.question["settings"])
    for added in (f"objective={figures[1]}", f"budget.{figures[0]}=", f"budget.{figures[1]}="):
        if settings and str(settings[-1]).startswith(added):
            settings.pop()
    return {**result.question, "settings": settings}


def front_faults(figures: list[str], points: list[tuple[list[float], DesignResult]]) -> list[str]:
    """Points whose figures are not those of their results, points of other questions, and points that are no front."""
    if not points:
        return ["there is no point in this front, and so no question that could be checked"]
    if not set(figures) <= set(FIGURES) or figures[0] == figures[1]:
        return [f"there is no front of {' and '.join(figures)}"]
    refused = [f"points[{place}]: its question is another one than that of the first" for place in _strangers(figures, points)]
    for place, (said, result) in enumerate(points):
        true = [(evaluation_in(result) or {}).get(name) for name in figures]
        if None in true:
            refused.append(f"points[{place}]: there is no design")
        elif said != true:
            refused.append(f"points[{place}]: {figures[0]} and {figures[1]} are {true}, the front says {said}")
    pairs = [said for said, _ in points] if not refused else []
    if any(one[0] >= other[0] or one[1] <= other[1] for one, other in pairwise(pairs)):
        refused.append("the points do not go from the least first figure to the least second one")
    return refused


def _strangers(figures: list[str], points: list[tuple[list[float], DesignResult]]) -> list[int]:
    """Points whose question, without the limits of its own, is not that of the first."""
    asked = [whole_question(figures, result) for _, result in points]
    shared = [{name: value for name, value in one.items() if name not in ("objective", "unit")} for one in asked]
    return [place for place, one in enumerate(shared) if one != shared[0] or asked[place]["objective"] != figures[1]]


def points_in(data: Any) -> tuple[list[str], list[tuple[list[float], DesignResult]]]:  # noqa: ANN401
    """Figures and results; a ValueError where there are none."""
    if not isinstance(data, dict) or not isinstance(data.get("points"), list) or not isinstance(data.get("figures"), list):
        raise ValueError("a front needs its figures and its points (write one with `crossopt solve FILE --pareto A,B --out FRONT.json`)")
    figures = [str(name) for name in data["figures"]]
    if len(figures) != 2 or not all(isinstance(point, dict) and set(point) == {*figures, "result"} for point in data["points"]):
        raise ValueError("every point of a front needs its two figures and its result")
    points = [([point[name] for name in figures], result_in(point["result"], Designs, Priced)) for point in data["points"]]
    for said, result in points:
        if not all(isinstance(figure, int | float) and not isinstance(figure, bool) for figure in said):
            raise ValueError("the figures of a point are numbers")
        if not isinstance(result.question.get("settings"), list) or not isinstance(result.question.get("objective"), str):
            raise ValueError("the result of every point needs its question, with settings and objective")
    return figures, points
