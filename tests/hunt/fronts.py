"""Fronts, and what all designs near an optimum have in common, against every design priced by the formulas alone.

Nothing here asks a judge or an objective of the engines: figures are taken from evaluations, under every set of constants.
"""

import json
from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_again
from crossopt.reports.commands.fronts import check_front, front_json
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.checking import solve_and_verify
from crossopt.solvers.codesign.explain.near_optimal import near_optimum
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.fronts import front
from tests.hunt.drawn import DRAWS, TooLargeError
from tests.hunt.held import SECONDS, FindingError
from tests.solvers.codesign.plain_prices import designs_of

FIGURES = ("step_time", "time_per_sample", "worst_step_time", "energy_per_token", "rated_energy_per_token", "die_area", "power")
SETS = ("sets=ranges", "sets=[{efficiency: {matrix: 0.5}}]", "sets=[{efficiency: {overlap_loss: 0.3}}, {efficiency: {matrix: 0.9}}]")
"""Other sets of constants, for bought chips and free ones."""
LOOSE = ("budget.power=5000 W", "budget.die_area=5000 mm^2", "budget.package_area=20000 mm^2", "budget.step_time=1000 s")
MOST_POINTS = 1_000_000


def question_of(seed: int, random: Random, sets: float) -> Instance:
    """A question about one workload with loose limits; of these questions this share has other sets of constants."""
    draw = DRAWS[random.choice(("design", "any design", "other design"))]
    question = draw.question(seed)
    if not isinstance(question, Instance):
        raise TooLargeError
    # of several groups only the mean step is asked for
    alone = ["sites=null", "budget.mean_step_time=null", "objective=step_time"] if question.sites else []
    more = [random.choice(SETS), "objective=worst_step_time"] if random.random() < sets and not question.others else []
    found: Instance = read_again({**question.document, "settings": [*question.document["settings"], *alone, *LOOSE, *more]}, "codesign")
    return found


def hunt_front(seed: int, random: Random, edits: int) -> tuple[Instance, Counter[str]]:
    """A front with all its points, its check, and edits of it."""
    question = question_of(seed, random, 0.0)
    if question.others:  # these are asked for the worst step time alone
        raise TooLargeError
    rented = question.goal is not None and question.goal.rent is not None
    names = (*FIGURES, *(("cost_per_token",) if question.prices else ()), *(("run_cost",) if rented else ()))
    first, second = random.sample(names, 2)
    true = front_of([(one.figures[first], one.figures[second]) for one in designs_of(question)])
    step = (true[0][1] - true[-1][1]) / (MOST_POINTS - 1) if true else 0.0
    if any(one[1] - other[1] < 2.0 * step for one, other in pairwise(true)):  # so near to each other that some are left out
        raise TooLargeError

    def solve(asked: Instance) -> Any:  # noqa: ANN401
        return solve_and_verify(FAMILY, asked, random.choice(("auto", "boxes", "exhaustive")), Limits(SECONDS), unwatched)

    try:
        found = front(FAMILY, question, first, second, MOST_POINTS, solve)
    except InstanceError as refused:  # the worst time of constants of its own
        raise TooLargeError from refused
    text = front_json(question, Namespace(pareto=f"{first},{second}", points=MOST_POINTS), found)
    points = [(point.first, point.second) for point in found.points]
    if (found.proved and points != true) or set(points) - set(true):
        raise FindingError(f"the front of {first} and {second} is {true}, and it says {points}", json.loads(text))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "front.json"
        for place, data in enumerate((json.loads(text), *(_forged(json.loads(text), random) for _ in range(edits)))):
            path.write_text(json.dumps(data), encoding="utf-8")
            try:
                report = check_front(path, cross_check=False)
            except (ValueError, OSError):
                continue
            if not place and (not report.accepted or (report.unverified and found.proved)):
                raise FindingError(f"an honest front is refused: {report.refused}", data)
            same = [[point[first], point[second]] for point in data["points"]] == [list(pair) for pair in true]
            if report.accepted and not report.unverified and data["proved"] and not same:
                raise FindingError(f"a forged front is accepted, the true one is {true}", data)
    return question, Counter(answered=1, compared=int(found.proved), points=len(points), forged=edits)


def front_of(pairs: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Those than which no other has less of one figure and no more of the other, from the least first one on."""
    found = list[tuple[float, float]]()
    for pair in sorted(set(pairs)):
        if not found or pair[1] < found[-1][1]:
            found.append(pair)
    return found


def _forged(data: dict[str, Any], random: Random) -> dict[str, Any]:
    """A front with a point less, twice, elsewhere or with another figure, or without any."""
    data = deepcopy(data)
    points, place = data["points"], random.randrange(max(len(data["points"]), 1))
    match random.randrange(6):
        case 0:
            del points[place : place + random.choice((1, 2))]
        case 1 if points:
            points[place], points[-1] = points[-1], points[place]
        case 2 if points:
            name = random.choice(data["figures"])
            points[place][name] *= random.choice((0.5, 1.0 - 1e-12, 1.0 + 1e-12))
        case 3:
            data["points"] = points[: len(points) // 2]
        case 4:
            data["figures"] = data["figures"][::-1]
        case _:
            data |= {"points": [], "proved": True, "stopped": "complete"}
    return data


def hunt_near(seed: int, random: Random, edits: int) -> tuple[Instance, Counter[str]]:
    """Which options occur among all designs near the optimum."""
    del edits
    question = question_of(seed, random, 0.5)
    result = solve_and_verify(FAMILY, question, "auto", Limits(SECONDS), unwatched)
    gap = random.choice((0.0, 0.01, 0.1, 0.5, 3.0))
    near = near_optimum(question, result, gap, unwatched, inf)
    designs = [*designs_of(question)]
    least = min((one.figures[question.objective] for one in designs), default=inf)
    if result.proved and result.value != (least if least < inf else None):
        raise FindingError(f"the optimum is {result.value!r}, and {least!r} is the least", json.loads(json.dumps(question.document)))
    if near is None:
        return question, Counter(answered=1, compared=int(least == inf))
    within = [one.choices for one in designs if one.figures[question.objective] <= near.limit]
    for known in near.choices:
        seen = {choices[known.name] for choices in within}
        for option, occurs, never in zip(known.options, known.occur, known.never, strict=True):
            if (occurs and option not in seen) or (never and option in seen) or (known.asked_between and not occurs and not never):
                raise FindingError(
                    f"{known.name} {option!r} within {near.limit!r}: said {occurs}, {never}, and it is {option in seen}",
                    dict(question.document),
                )
    return question, Counter(answered=1, compared=1, options=sum(len(known.options) for known in near.choices))


SEARCHES: dict[str, Callable[..., tuple[Instance, Counter[str]]]] = {"fronts": hunt_front, "near the optimum": hunt_near}
