"""The command `report`: a saved result as one page of HTML."""

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from instances.placement.question import placement_again
from instances.reading import read_question
from reports.pages.design import design_page
from reports.pages.placement import placement_page
from solvers.certify import VerificationError
from solvers.check import false_rivals, faults_but_proof
from solvers.console import check_target, spare_question
from solvers.files import kind_of, read_as, read_result, write_whole
from solvers.placement.answer import from_json
from solvers.placement.check import check as check_placement
from solvers.reporting.facts import Asked, asked_of, facts_of
from solvers.reporting.placement import placed
from solvers.result import Result


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
    raise ValueError(f"a result of the kind {kind!r} has no page (one about a chip and a plan has)")


def _design(path: Path) -> str:
    result, data = read_result(path), read_as(path, _plain)
    if not isinstance(result, Result):
        return read_as(path, lambda _: _stranger("several workloads"))
    instance = read_question(result.instance)
    asked = asked_of(instance)
    hold(path, [*faults_but_proof(result, instance), *_near_faults(result, asked)] or false_rivals(result, instance))
    facts = None if result.design is None else facts_of(instance, result.design)
    return design_page(result, asked, facts, data)


def _plain(data: Any) -> Any:  # noqa: ANN401 - JSON as it is
    return data


def hold(path: Path, faults: list[str]) -> None:
    """Refuse a result with faults: a VerificationError with the first of them."""
    if faults:
        more = f" (and {len(faults) - 1} more: `crossopt check` tells all)" if len(faults) > 1 else ""
        raise VerificationError(f"{path}: {faults[0]}{more}")


def _near_faults(result: Result, asked: Asked) -> list[str]:
    """Choices that are told to occur near the optimum, and are none of the question."""
    options = dict(asked.open)
    near = result.space.near if result.space else ()
    wrong = [
        one for one in near if len(one.options) != len(one.least) or any(option not in options.get(one.name, ()) for option in one.options)
    ]
    return [f"space.near: {one.name} has other options in the question" for one in wrong]


def _placement(path: Path) -> str:
    result, data = read_as(path, from_json), read_as(path, _plain)
    hold(path, list(check_placement(result).refused))
    return placement_page(result, placed(placement_again(result.instance), result), data)


PAGES: dict[str | None, Callable[[Path], str]] = {None: _design, "placement": _placement}
"""By the kind that a result says it is; those about chips and plans say nothing."""
