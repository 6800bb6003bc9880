"""`explain` of a memory question: which node sets the floor, what more memory is worth, and the front of budget against time."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import Any

from crossopt.instances.files.units import rounded_quantity
from crossopt.instances.kinds import KINDS
from crossopt.instances.memory.question import MemoryQuestion, with_host
from crossopt.reports.commands import asking
from crossopt.reports.commands.console import Ending, question_of, seconds_of, usage
from crossopt.reports.commands.progress import progress_on
from crossopt.reports.render.width import fitted
from crossopt.reports.shown import text_of
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.checking import solve_and_verify
from crossopt.solvers.family import family_of
from crossopt.solvers.memory.judge import judge

KIND = "memory"
_GIB, _POINTS, _SECONDS = 1 << 30, 8, 20.0
"""Budgets of the front, and seconds of each question where no limit is given."""


def solve(options: Namespace) -> Ending:
    """The best schedule, or the front of budget against time where that is asked for."""
    if not options.pareto:
        return asking.solve(options, KIND)
    from crossopt.reports.commands.fronts import solve_front  # noqa: PLC0415 - most commands answer one question

    return solve_front(options, KIND)


def explain(options: Namespace) -> Ending:
    """Print the answer, the floor, and the proved optimum of each changed question."""
    for option in ("near", "relaxation", "constants", "out", "svg"):
        if getattr(options, option):
            usage(f"--{option}: this does not apply to memory (budgets and choices are changed one by one)")
    if options.force:
        usage("--force: this does not apply to memory (`solve --set repetitions=0` answers with a choice)")
    question: MemoryQuestion = question_of(options, KINDS[KIND].options)
    family = family_of(KIND)
    limits = Limits(seconds_of(options.time_limit) if options.time_limit else _SECONDS)
    with progress_on(sys.stderr, "") as watch:
        result = solve_and_verify(family, question, "auto", limits, watch)
    changed = [(name, solve_and_verify(family, other, "auto", limits, unwatched)) for name, other in changes(question)]
    points = front(question, limits)
    if options.json:
        document = {
            "value": result.value,
            "bound": result.bound,
            "objective": question.file.objective,
            "floor": {"node": question.graph.names[_floor(question)], "bytes": max(question.graph.floors)},
            "changes": [{"change": name, "value": other.value, "bound": other.bound} for name, other in changed],
            "front": points,
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        lines = [*_lines_of_changes(question, result.value, changed), *_lines_of_front(points)]
        sys.stdout.write(fitted(text_of(KIND, question, result, verbose=False)) + "\n".join(lines) + "\n")
    return Ending(result.status, result.proved)


def _floor(question: MemoryQuestion) -> int:
    graph = question.graph
    return max(range(len(graph.names)), key=lambda node: graph.floors[node])


def with_budget(question: MemoryQuestion, budget: int) -> MemoryQuestion:
    """The question with another budget."""
    graph = replace(question.graph, host=None)
    return replace(question, graph=with_host(graph, question.file, budget), budget=budget)


def changes(question: MemoryQuestion) -> Iterator[tuple[str, MemoryQuestion]]:
    """Questions that differ in one thing."""
    file, step = question.file, _GIB if question.budget >= 4 * _GIB else max(question.budget // 10, 1)
    label = "1 GiB" if step == _GIB else rounded_quantity(step, "bytes", 3)
    yield f"{label} more", with_budget(question, question.budget + step)
    yield f"{label} less", with_budget(question, question.budget - step)
    yield f"{file.repetitions + 1} repetitions of a node", replace(question, file=replace(file, repetitions=file.repetitions + 1))
    if file.repetitions:
        yield "no repetitions", replace(question, file=replace(file, repetitions=0))
    if file.host is not None:
        alone = replace(file, host=None)
        yield "nothing to the host", replace(question, file=alone, graph=replace(question.graph, host=None))


def front(question: MemoryQuestion, limits: Limits) -> list[dict[str, Any]]:
    """Values and bounds at budgets from the floor to the peak without repetitions; none where the batch or the peak is open.

    What fits into a budget fits into greater ones, and what is proved for a budget holds for smaller ones: so values never rise with the
    budget, nor do bounds."""
    if question.file.objective not in {"extra_time", "time"}:
        return []
    floor, peak = max(question.graph.floors), question.graph.plain_peak
    budgets = sorted({floor + (peak - floor) * index // (_POINTS - 1) for index in range(_POINTS)})
    found, best = list[dict[str, Any]](), None
    for budget in budgets:
        other = with_budget(question, budget)
        result = solve_and_verify(family_of(KIND), other, "auto", limits, unwatched)
        if result.answer is not None and result.value is not None and (best is None or result.value <= judge(other, best).value):
            best = result.answer
        value = None if best is None else judge(other, best).value
        bound = result.bound if result.value is not None else inf if result.status == "INFEASIBLE" else None
        found.append({"budget": budget, "share": budget / peak if peak else 1.0, "value": value, "bound": bound})
    least: float | None = None
    for point in reversed(found):
        bounds = [bound for bound in (least, point["bound"]) if bound is not None]
        least = max(bounds, default=None)
        point["bound"] = None if least == inf else least
        point["proved"] = (point["value"] is None and least == inf) or (point["value"] is not None and point["value"] == least)
    return found


def _lines_of_changes(question: MemoryQuestion, base: float | None, changed: list[tuple[str, Any]]) -> list[str]:
    """The floor, and values beside that of the question."""
    node, graph = _floor(question), question.graph
    lines = ["", f"  floor  {graph.label(node)} needs {rounded_quantity(graph.floors[node], 'bytes', 5)} with its inputs"]
    width = max(len(name) for name, _ in changed)
    lines += ["", "  with one change"]
    for name, result in changed:
        near = "" if result.proved else " (not proved)"
        if result.value is None:
            text = "no schedule" if result.status == "INFEASIBLE" else "none found"
        else:
            text = f"{result.value:,.5g}{near}"
            if base:
                text += f"  {result.value / base - 1.0:+.1%}"
        lines.append(f"    {name:<{width}}  {text}")
    return lines


def _lines_of_front(points: list[dict[str, Any]]) -> list[str]:
    """Budgets with their values."""
    if not points:
        return []
    lines = ["", "  budget against time"]
    for point in points:
        value = "no schedule" if point["proved"] else "none found"
        if point["value"] is not None:
            value = f"{point['value']:,.5g}"
            if not point["proved"]:
                value += f" (lower bound {point['bound'] or 0:,.5g})"
        lines.append(f"    {rounded_quantity(point['budget'], 'bytes', 4):>10}  {point['share']:6.1%}  {value}")
    return lines
