"""The Pareto front of two figures, point by point, each proved: no design is better in one of them without being worse in the other.

    least A of all;  then least B among the designs with that A;  then least A with B below that;  and so on until there is none

(epsilon-constraint; Haimes, Lasdon and Wismer 1971). A long front is thinned: the limit on B falls by at least an equal share of its range.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from instances.instance import Instance
from solvers.result import Result

FIGURES = ("step_time", "power", "die_area")
"""Objectives that are budgets too."""

Solve = Callable[[Instance], Result]


@dataclass(frozen=True, slots=True)
class Point:
    """A design of the front."""

    first: float
    second: float
    result: Result
    """The least second figure at this first one."""


def front(instance: Instance, first: str, second: str, points: int, solve: Solve) -> Iterator[Point]:
    """Points from the least first figure to the least second one; at most about so many. Ends early where an answer is not proved."""
    for name in (first, second):
        if name not in FIGURES or first == second:
            raise ValueError(f"a front needs two different figures of {', '.join(FIGURES)}, not {first} and {second}")
    least = solve(replace(instance, objective=second)).value
    limit, most = float("inf"), None
    while (point := _next(instance, first, second, limit, solve)) is not None:
        yield point
        most = point.second if most is None else most
        step = 0.0 if least is None else (most - least) / max(points - 1, 1)
        limit = min(float(np.nextafter(point.second, 0.0)), point.second - step)
        if least is not None and limit < least:
            limit = least if point.second > least else float(np.nextafter(least, 0.0))


def _next(instance: Instance, first: str, second: str, limit: float, solve: Solve) -> Point | None:
    """The design of the front with the least first figure among those with the second within the limit; None if there is none."""
    best = solve(_limited(replace(instance, objective=first), second, limit))
    if best.value is None:
        return None
    thrifty = solve(_limited(_limited(replace(instance, objective=second), second, limit), first, best.value))
    if thrifty.value is None:
        raise ArithmeticError(f"no design has {first} {best.value!r} once that is a limit")
    return Point(best.value, thrifty.value, thrifty)


def _limited(instance: Instance, name: str, limit: float) -> Instance:
    budget = replace(instance.budget, **{name: min(limit, getattr(instance.budget, name))})
    return replace(instance, budget=budget)
