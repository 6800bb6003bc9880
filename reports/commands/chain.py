"""The command line of chains: `solve CHAIN.yaml` and `validate CHAIN.yaml`, for files of `kind: chain`."""

import argparse
import sys
from pathlib import Path

from crossopt.instances.files.saved import read_as
from crossopt.instances.stages.chain import ChainQuestion
from crossopt.reports.commands.console import check_target, question_of, refuse_options, seconds_of, spare_question, usage
from crossopt.reports.commands.families import Ending
from crossopt.reports.commands.files import hand_out
from crossopt.reports.commands.progress import logged, progress_on
from crossopt.reports.texts.chain import chain_text
from crossopt.solvers.answer import Limits, text_of
from crossopt.solvers.checking import Report
from crossopt.solvers.stages.chain.answer import from_json
from crossopt.solvers.stages.chain.check import check as report_of


def solve(options: argparse.Namespace) -> Ending:
    """Answer, print and write."""
    from crossopt.solvers.stages.chain.engine import answered  # noqa: PLC0415 - a check loads no search

    refuse_options(options, (), "a chain, whose file says all")
    if options.engine not in {"auto", "cuts"}:
        usage(f"the engine {options.engine!r} answers no chain (auto or cuts)")
    check_target(options.log, "--log")
    check_target(options.out)
    spare_question(options.out, options.file)
    limits = Limits(seconds_of(options.time_limit), options.seed, options.gap)
    question: ChainQuestion = question_of(options, {})
    with progress_on(sys.stderr, "s") as shown, logged(shown, options.log) as watch:
        result = answered(question, limits, watch)
    hand_out(options, lambda: text_of(result), lambda: chain_text(question, result))
    return Ending(result.status, result.proved)


def validate(options: argparse.Namespace) -> Ending:
    """Say how large the question is."""
    question: ChainQuestion = question_of(options, {})
    words = f"{len(question.layers):,} layers of {len(question.widths)} width{'s' * (len(question.widths) != 1)}"
    sys.stdout.write(f"{options.file}: a sound question: {words} on {question.file.devices:,} devices\n")
    return Ending("FEASIBLE", proved=True)


def check(path: Path) -> Report:
    """What can be said of a saved plan from the question alone."""
    return report_of(read_as(path, from_json))
