"""The command `report`: a saved result as one page of HTML."""

import sys
from argparse import Namespace
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

from instances.instance import Portfolio
from instances.pipeline.chain import chain_again
from instances.pipeline.question import pipeline_again
from instances.placement.question import placement_again
from instances.reading import asked_in, read_question
from reports.pages.design import design_page
from reports.pages.front import front_page
from reports.pages.placement import placement_page
from reports.pages.several import several_page
from reports.pages.stages import stages_page
from reports.pages.study import study_page
from solvers.certify import VerificationError
from solvers.chain.answer import from_json as chain_from_json
from solvers.chain.check import check as check_chain
from solvers.check import false_rivals, faults_but_proof
from solvers.console import check_target, spare_question
from solvers.files import kind_of, read_as, read_result, write_whole
from solvers.fronts import front_faults, points_in
from solvers.pareto import FIGURES, Front, Point
from solvers.pipeline.answer import from_json as pipeline_from_json
from solvers.pipeline.check import check as check_pipeline
from solvers.placement.answer import from_json
from solvers.placement.check import check as check_placement
from solvers.reporting.facts import Asked, asked_of, facts_of
from solvers.reporting.placement import placed
from solvers.reporting.stages import staged_chain, staged_pipeline
from solvers.result import Result
from solvers.several.check import faults_but_proof as several_faults
from solvers.several.result import JointResult
from solvers.study.check import check as check_study
from solvers.study.records import from_json as study_from_json

_MOST = 10**300
"""Designs of a question are fewer."""


def report(options: Namespace) -> None:
    """Write the page, or print it; a result that does not hold, as far as that is seen without its proof, is refused."""
    target = options.out or Path(options.file.name).with_suffix(".html")
    check_target(target)
    spare_question(target, options.file)
    text = page_of(options.file)
    if str(target) == "-":
        sys.stdout.write(text)
        return
    write_whole(target, text)
    sys.stdout.write(f"{target}: the report on {options.file}\n")


def page_of(path: Path) -> str:
    """The page about a saved result."""
    kind = kind_of(path)
    return PAGES[kind](path) if kind in PAGES else read_as(path, lambda _: _stranger(kind))


def _stranger(kind: object) -> str:
    raise ValueError(
        f"a result of the kind {kind!r} has no page (those about designs, fronts, placements, profiles, chains and studies have one)"
    )


def _design(path: Path) -> str:
    result, data = read_result(path), read_as(path, _plain)
    if not isinstance(result, Result):
        return _several(path, result, data)
    instance = read_question(result.instance)
    asked = asked_of(instance)
    hold(path, [*faults_but_proof(result, instance), *_near_faults(result, asked)] or false_rivals(result, instance))
    facts = None if result.design is None else facts_of(instance, result.design)
    return design_page(result, asked, facts, data)


def _several(path: Path, result: JointResult, data: object) -> str:
    portfolio = asked_in(result.instance)
    if not isinstance(portfolio, Portfolio):
        raise VerificationError(f"{path}: the question has one workload and the answer several")
    hold(path, several_faults(result, portfolio))
    facts = tuple(facts_of(part, share.design) for part, share in zip(portfolio.parts, result.shares, strict=False))
    return several_page(result, tuple(map(asked_of, portfolio.parts)), facts, data)


def _plain(data: Any) -> Any:  # noqa: ANN401 - JSON as it is
    return data


def hold(path: Path, faults: list[str]) -> None:
    """Refuse a result with faults: a VerificationError with the first of them."""
    if faults:
        more = f" (and {len(faults) - 1} more: `crossopt check` tells all)" if len(faults) > 1 else ""
        raise VerificationError(f"{path}: {faults[0]}{more}")


def _near_faults(result: Result, asked: Asked) -> list[str]:
    """Counts of designs that cannot be, and choices that are told to occur near the optimum and are none of the question."""
    space, options = result.space, dict(asked.open)
    if space is None:
        return []
    counts = (space.feasible, space.ties, space.within_1_percent, space.within_5_percent)
    faults = [] if all(0 <= count <= space.designs < _MOST for count in counts) else ["space: such numbers of designs cannot be"]
    strange = [one for one in space.near if len(one.options) != len(one.least) or not _among(one.options, options.get(one.name, ()))]
    return [*faults, *(f"space.near: {one.name} has other options in the question" for one in strange)]


def _among(told: list[Any], options: tuple[Any, ...]) -> bool:
    return all(option in options for option in told)


def _placement(path: Path) -> str:
    result, data = read_as(path, from_json), read_as(path, _plain)
    hold(path, list(check_placement(result).refused))
    return placement_page(result, placed(placement_again(result.instance), result), data)


def _front(path: Path) -> str:
    (figures, said), data = read_as(path, points_in), read_as(path, _plain)
    faults = front_faults(figures, said) if set(figures) <= set(FIGURES) else [f"there is no front of {' and '.join(figures)}"]
    questions = [read_question(result.instance) for _, result in said]
    for place, ((_, result), instance) in enumerate(zip(said, questions, strict=True)):
        found = faults_but_proof(result, instance) or false_rivals(result, instance)
        faults += [f"points[{place}]: {fault}" for fault in found]
    if not said:
        faults.append("there is no point in this front")
    hold(path, faults)
    points = tuple(Point(pair[0], pair[1], result) for pair, result in said)
    front = Front(points, str(data.get("stopped")), data.get("proved") is True and all(result.proved for _, result in said))
    shared = _shared([result for _, result in said])
    return front_page((figures[0], figures[1]), front, (shared, asked_of(read_question(shared))), data)


def _shared(results: list[Result]) -> dict[str, Any]:
    """The question of all points: settings that limit single points come last in theirs."""
    columns = zip(*(result.instance["settings"] for result in results), strict=False)
    shared = [column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns)]
    return {**results[0].instance, "settings": shared}


def _pipeline(path: Path) -> str:
    result, data = read_as(path, pipeline_from_json), read_as(path, _plain)
    hold(path, list(check_pipeline(result).refused))
    return stages_page(result, staged_pipeline(pipeline_again(result.instance), result), data)


def _chain(path: Path) -> str:
    result, data = read_as(path, chain_from_json), read_as(path, _plain)
    hold(path, list(check_chain(result).refused))
    return stages_page(result, staged_chain(chain_again(result.instance), result), data)


def _study(path: Path) -> str:
    study = read_as(path, study_from_json)
    hold(path, list(check_study(study).refused))
    return study_page(study)


PAGES: dict[str | None, Callable[[Path], str]] = {
    None: _design,
    "placement": _placement,
    "front": _front,
    "pipeline": _pipeline,
    "chain": _chain,
    "study": _study,
}
"""By the kind that a result says it is; those about chips and plans say nothing."""
