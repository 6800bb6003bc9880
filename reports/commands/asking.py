"""Commands about questions whose kind has a family: read, solve, judge, show; written once for all of them."""

import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from crossopt.instances.files.saved import read_as
from crossopt.instances.kinds import KINDS, question_path
from crossopt.reports.commands.console import check_target, refuse_options, seconds_of, spare_question, usage
from crossopt.reports.commands.families import Ending
from crossopt.reports.commands.files import hand_out
from crossopt.reports.commands.limits import limits_of
from crossopt.reports.commands.progress import logged, progress_on
from crossopt.reports.shown import compared_text, shown_of
from crossopt.solvers.answer import Limits, Result, result_in, to_text
from crossopt.solvers.checking import Report
from crossopt.solvers.checking import check as report_of
from crossopt.solvers.family import Family, engine_of, family_of
from crossopt.solvers.family import solve as solved

if TYPE_CHECKING:
    from types import ModuleType

_SECONDS = 60.0
"""Of each engine that is compared, if no limit is given."""


def solve(options: Namespace, kind: str) -> Ending:
    """Answer, print and write."""
    return solve_as_read(options, kind, lambda: _read(options, kind))


def solve_as_read(options: Namespace, kind: str, read: Callable[[], Any], known: tuple[str, ...] = ()) -> Ending:
    """The same of a question that is read in its kind's own way, from options that only this kind knows."""
    family, name = family_of(kind), options.engine
    refuse_options(options, known, f"a question about {KINDS[kind].about}")
    engine_of(family, name)
    check_target(options.log, "--log")
    check_target(options.out)
    spare_question(options.out, options.file)
    limits, began = _limits(options), monotonic()
    question = read()
    limits = replace(limits, seconds=max(limits.seconds - (monotonic() - began), 0.0))  # large files take seconds to be read
    with progress_on(sys.stderr, family.unit or "value") as shown, logged(shown, options.log) as watch:
        result = solved(family, question, name, limits, watch)
    hand_out(options, lambda: to_text(result), lambda: shown_of(kind).text_of(question, result))
    return Ending(result.status, result.proved)


def _limits(options: Namespace) -> Limits:
    try:
        return limits_of(options, seconds_of(options.time_limit))
    except ValueError as error:
        usage(str(error))


def validate(options: Namespace, kind: str) -> Ending:
    """Say how large the question is."""
    size = _module(kind).size_of(_read(options, kind))
    sys.stdout.write(f"{options.file}: a sound question: {size}\n")
    return Ending("FEASIBLE", proved=True)


def compare(options: Namespace, kind: str) -> Ending:
    """Every engine that is asked, and the rivals of the first, beside the best bound."""
    family = family_of(kind)
    refuse_options(options, (), f"a question about {KINDS[kind].about}")
    if options.split:
        usage(f"--split: this says nothing of {KINDS[kind].about} (leave it out)")
    names = options.engines.split(",") if options.engines else [next(iter(family.engines))]
    for name in names:
        engine_of(family, name)
    question, limits = _read(options, kind), Limits(seconds_of(options.time_limit) if options.time_limit else _SECONDS)
    with progress_on(sys.stderr, family.unit or "value") as watch:
        results = [solved(family, question, name, limits, watch) for name in names]
    sys.stdout.write(compared_text(names, results))
    return Ending(results[0].status, results[0].proved)


def check(path: Path, kind: str) -> Report:
    """What can be said of a saved result from its question alone."""
    family, result = saved_in(path, kind)
    return report_of(family, result, path.parent)


def saved_in(path: Path, kind: str) -> tuple[Family[Any, Any, Any], Result[Any, Any]]:
    """The result in a file, with its family."""
    family = family_of(kind)
    return family, read_as(path, lambda data: result_in(data, family.answer, family.details))


def _read(options: Namespace, kind: str) -> Any:  # noqa: ANN401 - the question of any kind
    settings = tuple(options.settings)
    return _module(kind).read(question_path(Path(options.files[0] if "files" in options else options.file)), settings)


def _module(kind: str) -> "ModuleType":
    return import_module(KINDS[kind].question)
