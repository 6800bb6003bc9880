"""The Pareto front of two figures, point by point, each proved: no design is better in one of them without being worse in the other.

    least A of all;  then least B among the designs with that A;  then least A with B below that;  and so on until there is none

(epsilon-constraint; Haimes, Lasdon and Wismer 1971). A long front is thinned: the limit on B falls by at least an equal share of its range.
Every question on the way is the first one with settings, so that each answer can be checked on its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

import numpy as np

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.errors import RefusedError
from crossopt.instances.files.units import nearest, quoted
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.objective import DIMENSIONS, OBJECTIVES, figure_in

FIGURES = tuple(OBJECTIVES)
"""Objectives, each of which is a limit of the budget too."""
_WRITTEN = {"time": "s", "area": "m^2", "power": "W", "energy": "J", "money": "USD"}
"""Units in which limits of each dimension are written."""

Solve = Callable[[Instance], DesignResult]
_INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Point:
    """A design of the front."""

    first: float
    second: float
    result: DesignResult
    """The least second figure at this first one."""


@dataclass(frozen=True, slots=True)
class Front:
    """Points from the least first figure to the least second one."""

    points: tuple[Point, ...]
    stopped: str
    """`complete`, or why an answer on the way was not: the front then ends early, perhaps with a point that is none of the whole one."""
    proved: bool
    """Whether every answer on the way was proved, that of the last question included, which has no design."""


class _EndedError(Exception):
    """An answer on the way did not come to its end."""


def unheard(front: Front) -> None:
    """Nobody wants to know what there is on the way."""
    del front


@dataclass(slots=True)
class _Way:
    """The questions on the way."""

    instance: Instance
    figures: tuple[str, str]
    solve: Solve
    proved: bool = True
    points: list[Point] = field(default_factory=list)
    last: Point | None = None
    """The last design with little of the second figure, whatever became of its proof."""

    def answer(self, objective: str, limits: dict[str, float]) -> DesignResult:
        """The answer to the question with another objective and lower limits."""
        result = self.solve(ask_with(self.instance, objective, limits))
        self.proved = self.proved and result.proved
        if objective == self.figures[1]:
            self.last = _point(self.instance, result, self.figures[0]) or self.last
        if result.stopped != "complete":
            raise _EndedError(result.stopped)
        return result

    def so_far(self, stopped: str) -> Front:
        """The points there are, and the last design where it may be one of them."""
        end, last = self.points[-1] if self.points else None, self.last
        more = last is not None and (end is None or (last.first > end.first and last.second < end.second))
        return Front((*self.points, *([last] if more and last else [])), stopped, False)


def front(instance: Instance, first: str, second: str, points: int, solve: Solve, report: Callable[[Front], None] = unheard) -> Front:
    """The Pareto front of two figures, with at most about this many points; `report` gets the front so far, as if it ended there."""
    if not first or not second or first == second:
        raise ValueError(f"two different figures are needed, such as step_time,power (of {', '.join(FIGURES)})")
    if unknown := [name for name in (first, second) if name not in FIGURES]:
        guess = nearest(unknown[0], FIGURES)
        meant = f"did you mean {guess[0]}? " if guess else ""
        raise ValueError(f"{quoted(unknown[0])} is no figure of a front ({meant}there are {', '.join(FIGURES)})")
    if instance.others:
        raise RefusedError(
            "a front is not drawn over several sets of constants (`sets`): its points ask for other figures than the worst step time "
            "(add `--set sets=null` for a front by the first set, or leave --pareto out for the best design by the worst set)"
        )
    for name in (first, second):
        ask_with(instance, name, {})  # an InstanceError where this cannot be asked, before there is anything to hand on
    way = _Way(instance, (first, second), solve)
    try:
        _walk(way, points, report)
    except _EndedError as end:
        return way.so_far(str(end))
    except KeyboardInterrupt:
        return way.so_far(_INTERRUPTED)
    return Front(tuple(way.points), "complete", way.proved)


def _walk(way: _Way, points: int, report: Callable[[Front], None]) -> None:
    report(way.so_far(_INTERRUPTED))
    least, limit, most = way.answer(way.figures[1], {}).value, inf, None
    report(way.so_far(_INTERRUPTED))
    while (point := _next(way, limit)) is not None:
        way.points.append(point)
        report(way.so_far(_INTERRUPTED))
        most = point.second if most is None else most
        limit = limit_after(point.second, most, least, points)


def limit_after(second: float, most: float, least: float | None, points: int) -> float:
    """What the next point may have of the second figure, after one with so much, on a front of so many points between these figures."""
    step = 0.0 if least is None else (most - least) / max(points - 1, 1)
    limit = min(float(np.nextafter(second, 0.0)), second - step)
    if least is not None and limit < least:
        limit = least if second > least else float(np.nextafter(least, 0.0))
    return limit


def _next(way: _Way, limit: float) -> Point | None:
    """The design of the front with the least first figure among those with the second within the limit; None if there is none."""
    first, second = way.figures
    best = way.answer(first, {second: limit})
    if best.value is None:
        return None
    thrifty = way.answer(second, {second: limit, first: best.value})
    if thrifty.value is None and way.proved:
        raise ArithmeticError(f"no design has {first} {best.value!r} once that is a limit")
    return _point(way.instance, thrifty, first)


def _point(instance: Instance, thrifty: DesignResult, first: str) -> Point | None:
    """The design with the least second figure; within a gap its first figure may be less than that of the best one."""
    if thrifty.value is None or thrifty.details is None:
        return None
    return Point(figure_in(instance, thrifty.details.evaluation, first), thrifty.value, thrifty)


def ask_with(instance: Instance, objective: str, limits: dict[str, float]) -> Instance:
    """The question with this objective and limits no looser than these, read anew with settings that say so."""
    known = dict(instance.ceilings)
    lower = {name: min(limit, known.get(name, inf), getattr(instance.budget, name, inf)) for name, limit in limits.items()}
    added = [f"budget.{name}={limit!r} {_WRITTEN[DIMENSIONS[name]]}" for name, limit in lower.items() if limit < inf]
    settings = (*instance.document["settings"], *added, f"objective={objective}")
    return read_question({**instance.document, "settings": settings})
