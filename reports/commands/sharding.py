"""The command line of strategies: `solve PROBLEM.json.gz`."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from time import monotonic

from crossopt.instances.files.saved import read_as
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.reports.commands.console import check_target, question_of, refuse_options, seconds_of, spare_question, usage
from crossopt.reports.commands.families import Ending
from crossopt.reports.commands.files import hand_out
from crossopt.reports.commands.limits import limits_of
from crossopt.reports.commands.progress import logged, progress_on
from crossopt.reports.texts.sharding import comparison_text, sharding_text, size_text
from crossopt.solvers.answer import Limits, text_of
from crossopt.solvers.checking import Report
from crossopt.solvers.sharding.answer import ENGINES, from_json
from crossopt.solvers.sharding.check import check as report_of
from crossopt.solvers.sharding.comparison import compared, known_best

_KEYS = {"memory": "limit"}
"""Settings that options are short for."""


def solve(options: argparse.Namespace) -> Ending:
    """Answer, print and write."""
    from crossopt.solvers.sharding.engines import answered  # noqa: PLC0415 - a check loads no models

    if options.engine not in ENGINES:
        usage(f"the engine {options.engine!r} chooses no strategies (one of {', '.join(ENGINES)})")
    refuse_options(options, (*_KEYS, "workers"), "a problem of strategies")
    check_target(options.log, "--log")
    check_target(options.out)
    spare_question(options.out, options.file)
    try:
        limits = limits_of(options, seconds_of(options.time_limit))
    except ValueError as error:
        usage(str(error))
    began = monotonic()
    question: ShardingQuestion = question_of(options, _KEYS)
    limits = replace(limits, seconds=max(limits.seconds - (monotonic() - began), 0.0))  # large files take seconds to be read
    with progress_on(sys.stderr, "cost") as shown, logged(shown, options.log) as watch:
        result = answered(question, options.engine, limits, watch)
    hand_out(options, lambda: text_of(result), lambda: sharding_text(result))
    return Ending(result.status, result.proved)


def validate(options: argparse.Namespace) -> Ending:
    """Read the question and say how large it is."""
    question: ShardingQuestion = question_of(options, {})
    sys.stdout.write(f"{options.file}: a sound question: {size_text(question)}\n")
    return Ending("FEASIBLE", proved=False)


_PROOF, _SEARCH = 60.0, 10.0
"""Seconds for the proof, if no limit is given, and for each rival."""


def compare(options: argparse.Namespace) -> Ending:
    """The answer beside rules, local search, the weak model, and what others reached."""
    from crossopt.solvers.sharding.engines import answered  # noqa: PLC0415

    seconds = seconds_of(options.time_limit) if options.time_limit else _PROOF
    refuse_options(options, (*_KEYS, "workers"), "a problem of strategies")
    if options.split:
        usage("--split: this says nothing of a problem of strategies (leave it out)")
    question: ShardingQuestion = question_of(options, _KEYS)
    known = known_best(options.known, question.problem.name) if options.known else None
    with progress_on(sys.stderr, "cost") as watch:
        result = answered(question, "auto", Limits(seconds), watch)
        rows = list(compared(question, min(seconds, _SEARCH), options.seeds, watch))
    sys.stdout.write(comparison_text(result, [*rows, *([known] if known else [])]))
    return Ending(result.status, result.proved)


def check(path: Path) -> Report:
    """What can be said of saved strategies from the file of the problem alone."""
    return report_of(read_as(path, from_json), path.parent)
