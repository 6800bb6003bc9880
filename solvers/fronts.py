"""The Pareto front of two figures, point by point, each proved: no answer is better in one of them without being worse in the other.

    least A of all;  then least B among the answers with that A;  then least A with B below that;  and so on until there is none

(epsilon-constraint; Haimes, Lasdon and Wismer 1971). A long front is thinned: the limit on B falls by at least an equal share of its range.
Every question on the way is the first one with settings, so that each answer can be checked on its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, isnan, nextafter
from typing import Any

from crossopt.instances.errors import RefusedError
from crossopt.instances.files.units import nearest, quoted
from crossopt.instances.question import read_again
from crossopt.solvers.answer import Result
from crossopt.solvers.family import FrontFigures, ProblemType

AnyResult = Result[Any, Any]
Family = ProblemType[Any, Any, Any]
Solve = Callable[[Any], AnyResult]
_INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Point:
    """An answer of the front."""

    first: float
    second: float
    result: AnyResult
    """The least second figure at this first one."""


@dataclass(frozen=True, slots=True)
class Front:
    """Points from the least first figure to the least second one."""

    points: tuple[Point, ...]
    stopped: str
    """`complete`, or why an answer on the way was not: the front then ends early, perhaps with a point that is none of the whole one."""
    proved: bool
    """Whether every answer on the way was proved, that of the last question included, which has no answer."""


class _EndedError(Exception):
    """An answer on the way did not come to its end."""


def unheard(front: Front) -> None:
    """Nobody wants to know what there is on the way."""
    del front


@dataclass(slots=True)
class _Way:
    """The questions on the way."""

    family: Family
    question: Any
    figures: tuple[str, str]
    solve: Solve
    proved: bool = True
    points: list[Point] = field(default_factory=list)
    last: Point | None = None
    """The last answer with little of the second figure, whatever became of its proof."""

    def answer(self, objective: str, limits: dict[str, float]) -> AnyResult:
        """The answer to the question with another objective and lower limits."""
        result = self.solve(ask_with(self.family, self.question, objective, limits))
        self.proved = self.proved and result.proved
        if objective == self.figures[1]:
            self.last = _point(self, result) or self.last
        if result.stopped != "complete":
            raise _EndedError(result.stopped)
        return result

    def so_far(self, stopped: str) -> Front:
        """The points there are, and the last answer where it may be one of them."""
        end, last = self.points[-1] if self.points else None, self.last
        more = last is not None and (end is None or (last.first > end.first and last.second < end.second))
        return Front((*self.points, *([last] if more and last else [])), stopped, False)


def front(
    family: Family,
    question: Any,  # noqa: ANN401 - of the problem type
    first: str,
    second: str,
    points: int,
    solve: Solve,
    report: Callable[[Front], None] = unheard,
) -> Front:
    """The Pareto front of two figures, with at most about this many points; `report` gets the front so far, as if it ended there."""
    figures = figures_of(family)
    if not first or not second or first == second:
        raise ValueError(f"two different figures are needed, such as {figures.example} (of {', '.join(figures.keys)})")
    if unknown := [name for name in (first, second) if name not in figures.keys]:
        guess = nearest(unknown[0], figures.keys)
        meant = f"did you mean {guess[0]}? " if guess else ""
        raise ValueError(f"{quoted(unknown[0])} is no figure of a front ({meant}there are {', '.join(figures.keys)})")
    if refusal := figures.refusal(question):
        raise RefusedError(refusal)
    for name in (first, second):
        ask_with(family, question, name, {})  # an InstanceError where this cannot be asked, before there is anything to hand on
    way = _Way(family, question, (first, second), solve)
    try:
        _walk(way, points, report)
    except _EndedError as end:
        return way.so_far(str(end))
    except KeyboardInterrupt:
        return way.so_far(_INTERRUPTED)
    return Front(tuple(way.points), "complete", way.proved)


def figures_of(family: Family) -> FrontFigures[Any, Any]:
    """Figures of fronts of a problem type that has them."""
    if family.front is None:
        raise RefusedError(f"there is no front of a {family.what}")
    return family.front


def _walk(way: _Way, points: int, report: Callable[[Front], None]) -> None:
    report(way.so_far(_INTERRUPTED))
    floor, limit, most = figures_of(way.family).floor(way.question, way.figures[1]), inf, None
    least = way.answer(way.figures[1], {}).value if floor is None else floor
    report(way.so_far(_INTERRUPTED))
    while not (floor is not None and limit < floor) and (point := _next(way, limit)) is not None:
        way.points.append(point)
        report(way.so_far(_INTERRUPTED))
        most = point.second if most is None else most
        limit = limit_after(point.second, most, least, points)


def limit_after(second: float, most: float, least: float | None, points: int) -> float:
    """What the next point may have of the second figure, after one with so much, on a front of so many points between these figures."""
    step = 0.0 if least is None else (most - least) / max(points - 1, 1)
    limit = min(_below(second), second - step)
    if least is not None and limit < least:
        limit = least if _below(second) > least else _below(least)
    return limit


def _below(figure: float) -> float:
    """Below a figure, by more than areas and watts, as computed, may be above their limit (`crossflow.hardware.is_within`)."""
    return min(figure * (1.0 - 2.0**-48), nextafter(figure, -inf))


def _next(way: _Way, limit: float) -> Point | None:
    """The answer of the front with the least first figure among those with the second within the limit; None if there is none."""
    first, second = way.figures
    best = way.answer(first, {second: limit})
    if best.value is None:
        return None
    thrifty = way.answer(second, {second: limit, first: best.value})
    if thrifty.value is None and way.proved:
        raise ArithmeticError(f"no design has {first} {best.value!r} once that is a limit")
    return _point(way, thrifty)


def _point(way: _Way, thrifty: AnyResult) -> Point | None:
    """The answer with the least second figure; within a gap its first figure may be less than that of the best one."""
    if thrifty.value is None or thrifty.details is None:
        return None
    first = figures_of(way.family).figure(way.question, thrifty.details, way.figures[0])
    return None if isnan(first) else Point(first, thrifty.value, thrifty)


def ask_with(family: Family, question: Any, objective: str, limits: dict[str, float]) -> Any:  # noqa: ANN401 - of the problem type
    """The question with this objective and limits no looser than these, read anew with settings that say so."""
    asked = figures_of(family).limits
    added = [setting for name, limit in limits.items() for setting in asked(question, objective, name, limit)]
    settings = (*question.document["settings"], *added, f"objective={objective}")
    return read_again({**question.document, "settings": settings}, family.kind)


def full_question(family: Family, figures: tuple[str, str], result: AnyResult) -> dict[str, Any]:
    """The question of all points: settings that limit single points come last in theirs."""
    settings, keys = list(result.question["settings"]), figures_of(family).keys
    for added in reversed((*keys[figures[1]], *keys[figures[0]], f"objective={figures[1]}")):
        if settings and str(settings[-1]).startswith(added):
            settings.pop()
    return {**result.question, "settings": settings}
