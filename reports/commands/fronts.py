"""Fronts on the command line: found within one time limit, written as results, and checked point by point."""

import json
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import Any

from crossopt.instances.errors import InstanceError
from crossopt.instances.files.dataclass_json import INLINE, from_file, to_file
from crossopt.instances.files.saved import read_as
from crossopt.instances.kinds import KINDS, kind_in
from crossopt.instances.question import kind_of_question, read_again
from crossopt.reports.commands import asking
from crossopt.reports.commands.console import Ending, code_of, question_of, usage
from crossopt.reports.commands.keeper import SHARE, Kept, keeper
from crossopt.reports.commands.progress import log_to, progress_on
from crossopt.reports.render.terminal import terminal
from crossopt.reports.render.width import fitted
from crossopt.reports.sheets.amounts import several
from crossopt.reports.sheets.front import front_sheet, without_question
from crossopt.solvers.answer import STOPPED, Limits, Status, Watch, gap_between, plain_result, result_in
from crossopt.solvers.checking import ANEW, Report, differences, solve_and_verify
from crossopt.solvers.checking import check as report_of
from crossopt.solvers.family import described, family_of, simplest_of
from crossopt.solvers.family import solve as solved
from crossopt.solvers.fronts import AnyResult, Family, Front, ask_with, figures_of, front, full_question, limit_after

KIND = "front"
ALWAYS_HEARD = 8
"""Points up to which each front on the way is heard."""


def solve_front(options: Namespace, kind: str, fit: Callable[[Any], Any] = lambda question: question) -> Ending:
    """Find the front of a question that `fit` takes, print and write it."""
    asking.refuse_before(options, kind)
    limits, keep = asking.limits_of(options, family_of(kind).parallel), keeper()
    began = keep.began if keep else monotonic()
    question = fit(question_of(options, KINDS[kind].options))
    limits = replace(limits, seconds=max(limits.seconds - (monotonic() - began), 0.0))
    first, _, second = options.pareto.partition(",")

    def written(found: Front) -> Kept:
        text, status = front_json(question, options, found), _status(found)
        alone = options.json or str(options.out) == "-"
        shown = text if alone else fitted(terminal(without_question(front_sheet(question, (first, second), found))))
        spare = status == "UNKNOWN" and found.stopped == "interrupted"
        return Kept(text, shown, code_of(status, options.strict and not found.proved), spare)

    def hand_over(found: Front) -> None:
        stopped = "time limit" if isfinite(limits.seconds) else found.stopped
        if keep:
            keep.keep(replace(written(replace(found, stopped=stopped)), spare=not found.points))

    found, failed = front_in(question, options, limits, hand_over)
    asking.hand_out(written(found), options.out)
    for error in failed:  # which cost the log, and must not cost the answer
        raise error
    return Ending(_status(found), found.proved)


def _status(found: Front) -> Status:
    """What is known of the whole question."""
    return "FEASIBLE" if found.points else "INFEASIBLE" if found.proved else "UNKNOWN"


def front_in(question: Any, options: Namespace, limits: Limits, hear: Callable[[Front], None]) -> tuple[Front, list[OSError]]:  # noqa: ANN401
    """The front, all its questions together within the time limit; who keeps answers for this process is told what there is on the way.

    A log has the progress of all of them, one after the other; a disk that is full costs the log alone, and is told in the end."""
    failed = list[OSError]()
    with progress_on(sys.stderr, "") as shown, log_to(shown, options.log, failed) as watch:
        found = _walked(question, options, limits, hear, watch)
    return found, failed


def _walked(question: Any, options: Namespace, limits: Limits, hear: Callable[[Front], None], watch: Watch) -> Front:  # noqa: ANN401
    first, _, second = options.pareto.partition(",")
    family = family_of(str(kind_of_question(question)))
    keep, deadline = keeper(), monotonic() + limits.seconds

    def solve(part: Any) -> AnyResult:  # noqa: ANN401 - of the kind
        left = replace(limits, seconds=max(deadline - monotonic(), 0.0))
        return solve_and_verify(family, part, options.engine, left, watch, simplest=simplest_of(family, part))

    try:
        if keep is None:
            return front(family, question, first, second, options.points, solve)
        keep.searching = True
        found = front(family, question, first, second, options.points, solve, _now_and_then(hear))
        keep.finish()
    except ValueError as error:
        usage(f"--pareto {options.pareto}: {error}")
    return found if found.stopped != "interrupted" or monotonic() < deadline else replace(found, stopped="time limit")


def _now_and_then(hear: Callable[[Front], None]) -> Callable[[Front], None]:
    """The same for the first points, and then where it takes a small share of the time.

    A pause of the machine during the first would otherwise keep the next from being heard before the search is ended."""
    due = 0.0

    def tell(found: Front) -> None:
        nonlocal due
        if (began := monotonic()) >= due or len(found.points) <= ALWAYS_HEARD:
            hear(found)
            due = monotonic() + (monotonic() - began) / SHARE

    return tell


@dataclass(frozen=True, slots=True)
class SavedFront:
    """What a file says of a front."""

    question: dict[str, Any]
    """The one of all points, without the limits of single ones."""
    figures: tuple[str, str]
    points_asked: int
    """About so many points."""
    stopped: str
    proved: bool
    points: tuple[tuple[tuple[float, float], AnyResult], ...]
    """Their figures, and their results."""

    @property
    def family(self) -> Family:
        """The problem type that the text of the question states."""
        return family_of(_kind_of(self.question))


@dataclass(frozen=True, slots=True)
class _SavedPoint:
    """A point as the file holds it, with its two figures by their names."""

    figures: dict[str, float] = field(metadata=INLINE)
    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _FrontFile:
    """A front as its file holds it."""

    figures: tuple[str, str]
    question: dict[str, Any]
    asked: int
    stopped: str
    proved: bool
    points: tuple[_SavedPoint, ...]


def _kind_of(question: dict[str, Any]) -> str:
    return kind_in(str(question.get("text", "")))


def front_json(question: Any, options: Namespace, found: Front) -> str:  # noqa: ANN401 - of a kind with fronts
    """The front as JSON text."""
    first, _, second = options.pareto.partition(",")
    points = tuple(_SavedPoint({first: point.first, second: point.second}, plain_result(point.result)) for point in found.points)
    family = family_of(str(kind_of_question(question)))
    saved = _FrontFile((first, second), described(family, question), options.points, found.stopped, found.proved, points)
    return json.dumps(to_file({"kind": KIND}, saved), indent=2, ensure_ascii=False) + "\n"


def check_front(path: Path, cross_check: bool) -> Report:
    """Every point checked as a result of its own, and, where the front says that it is proved, that its points are a front and its ends,
    and that none is missing between them. That there is no point is asked anew."""
    front, unverified = read_as(path, front_in_file), False
    family = front.family
    count = f"{several(len(front.points), 'point')}, of about {front.points_asked} requested"
    checked, refused = [f"the front has {count}; each was checked as a separate result"], front_faults(front)
    with progress_on(sys.stderr, "") as watch:
        for index, (_, result) in enumerate(front.points):
            report = report_of(family, result, path.parent, watch, cross_check)
            refused += [f"points[{index}]: {line}" for line in report.refused]
            unverified = unverified or report.unverified
        if front.proved and not refused:
            facts, refused = _front_anew(front, watch) if front.points else _none_anew(front, watch)
            checked.append(facts)
    between = "" if front.proved else "; there may be other points, between them and beyond them"
    return Report((*checked, f"the points are checked{between}"), tuple(refused), unverified)


def _none_anew(front: SavedFront, watch: Watch) -> tuple[str, list[str]]:
    """That no design keeps the limits, asked again."""
    family = front.family
    anew = solved(family, read_again(front.question, family.kind), "auto", Limits(), watch)
    sure = anew.stopped == "complete" and anew.value is None and anew.proved
    fault = f"there is a {family.what} of {anew.value!r} {anew.question['unit']}, the front says that there is none"
    return f"{ANEW}no {family.what} keeps every limit", [] if sure else [fault]


def _front_anew(front: SavedFront, watch: Watch) -> tuple[str, list[str]]:
    """No design has less of the first figure than the first point or less of the second than the last, nor, within what each point leaves
    to the next, less of the first than that one: each asked again of the whole question."""
    family, figures, points, (first, second) = front.family, front.figures, front.points, front.figures
    question, units = read_again(front.question, family.kind), figures_of(family).units
    exact = all(result.gap_asked == 0.0 for _, result in points)
    most, floor = points[0][0][1], figures_of(family).floor(question, second)
    least = points[-1][0][1] if floor is None else floor
    asks = [(0, 0, first, dict[str, float]()), (len(points) - 1, 1, second, {})]
    for index, (saved, _) in enumerate(points[1:], 1):
        limit = limit_after(points[index - 1][0][1], most, least, front.points_asked) if exact else saved[1]
        asks.append((index, 0, first, {second: limit}))
    faults = list[str]()
    for index, which, objective, limits in asks:
        (saved, result), anew = points[index], solved(family, ask_with(family, question, objective, limits), "auto", Limits(), watch)
        if anew.stopped != "complete":
            faults.append(f"the proof of the front was not completed: {anew.stopped}")
            break
        if anew.value is None or gap_between(saved[which], anew.value) > result.gap_asked:
            within = "".join(f" with {name.replace('_', ' ')} {limit!r} or less" for name, limit in limits.items())
            claim = f"the least {objective.replace('_', ' ')}{within}"
            faults.append(f"points[{index}]: {claim} is {anew.value!r} {units(question)[objective]}, the front says {saved[which]!r}")
    names = [name.replace("_", " ") for name in figures]
    near = max(result.gap_asked for _, result in points)
    within = f", by more than {near:.2%}" if near else ""
    facts = f"no {family.what} has less {names[0]} than the first point, less {names[1]} than the last, or less of both than any{within}"
    return f"{ANEW}{facts}{'; no point is missing between them but those that --points thins out' if exact else ''}", faults


def front_faults(front: SavedFront) -> list[str]:
    """Points whose figures are not those of their results, points of other questions, and points that are no front."""
    family, figures, points = front.family, front.figures, front.points
    if family.front is None or not set(figures) <= set(family.front.keys) or figures[0] == figures[1]:
        return [f"there is no front of {' and '.join(figures)}"]
    try:
        question = read_again(front.question, family.kind)
        true = described(family, question)
    except InstanceError as error:
        return [f"the question of the front cannot be read: {error}"]
    refused = [*differences("question", true, front.question), *_summary_faults(front)]
    refused += [f"points[{index}]: its question is another one than that of the front" for index in _foreign_points(front)]
    refused += ["points: they have one gap that was asked for"] if len({result.gap_asked for _, result in points}) > 1 else []
    for index, (saved, result) in enumerate(points):
        computed = tuple(family.front.figure(question, result.details, name) for name in figures) if result.details else ()
        if not computed:
            refused.append(f"points[{index}]: there is no {family.what}")
        elif saved != computed:
            refused.append(f"points[{index}]: {figures[0]} and {figures[1]} are {list(computed)}, the front says {list(saved)}")
    pairs = [saved for saved, _ in points] if not refused else []
    if any(pair[0] >= other[0] or pair[1] <= other[1] for pair, other in pairwise(pairs)):
        refused.append("the points do not go from the least first figure to the least second one")
    return refused


def _summary_faults(front: SavedFront) -> list[str]:
    """Words about the whole that do not follow from the points."""
    rules = (
        (f"asked: {front.points_asked!r} is no number of points", 1 <= front.points_asked <= _MOST),
        (f"stopped: {front.stopped[:40]!r} is no reason to stop", front.stopped in STOPPED),
        ("a front that was stopped is not proved", not front.proved or front.stopped == "complete"),
        (
            "a front is proved if each of its points is",
            not front.proved or all(result.proved and not result.unverified for _, result in front.points),
        ),
    )
    return [fault for fault, holds in rules if not holds]


def _foreign_points(front: SavedFront) -> list[int]:
    """Points whose question, without the limits of its own, is not that of the front."""
    questions = [full_question(front.family, front.figures, result) for _, result in front.points]
    shared = [{name: value for name, value in own.items() if name not in ("objective", "unit")} for own in (front.question, *questions)]
    objective = f"objective={front.figures[1]}"
    asked = [list(result.question["settings"])[-1:] == [objective] for _, result in front.points]
    return [index for index, right in enumerate(asked) if shared[index + 1] != shared[0] or not right]


def front_in_file(data: Any) -> SavedFront:  # noqa: ANN401
    """The front; a ValueError where there is none."""
    remedy = "write one with `crossopt solve FILE --pareto A,B --out FRONT.json`"
    try:
        saved = from_file(_FrontFile, data, {"kind": KIND}, "this is no front")
    except ValueError as error:
        raise ValueError(f"{error} ({remedy})") from error
    if any(point.figures.keys() != set(saved.figures) for point in saved.points):
        raise ValueError("every point of a front needs its two figures and its result")
    family = family_of(_kind_of(saved.question))
    points = tuple(
        ((point.figures[saved.figures[0]], point.figures[saved.figures[1]]), _result_in(family, point.result, index))
        for index, point in enumerate(saved.points)
    )
    return SavedFront(saved.question, saved.figures, saved.asked, saved.stopped, saved.proved, points)


def _result_in(family: Family, data: object, index: int) -> AnyResult:
    result = result_in(data, family.answer, family.details, f"points[{index}].result.")
    if not isinstance(result.question.get("settings"), list) or not isinstance(result.question.get("text"), str):
        raise ValueError("the result of every point needs its question, with text and settings")
    return result


_MOST = 1_000_000
