"""The command line of pipelines: `solve graph.txt`."""

import argparse
import sys
from pathlib import Path

from crossopt.instances.files.saved import read_as
from crossopt.instances.stages.pipedream.question import PipelineQuestion
from crossopt.reports.commands.console import check_target, question_of, refuse_options, seconds_of, spare_question, usage
from crossopt.reports.commands.families import Ending
from crossopt.reports.commands.files import hand_out
from crossopt.reports.commands.progress import logged, progress_on
from crossopt.reports.texts.pipedream import pipeline_text
from crossopt.solvers.answer import Limits, text_of
from crossopt.solvers.checking import Report
from crossopt.solvers.stages.pipedream.answer import from_json
from crossopt.solvers.stages.pipedream.check import check as report_of

_KEYS = {name: name for name in ("bandwidth", "compatible", "compression", "devices", "memory", "straight")}
"""Settings that options are short for."""


def solve(options: argparse.Namespace) -> Ending:
    """Answer, print and write."""
    from crossopt.solvers.stages.pipedream.engine import answered  # noqa: PLC0415 - a check loads no search

    if options.engine not in {"auto", "cuts"}:
        usage(f"the engine {options.engine!r} pipelines no profile (auto or cuts)")
    refuse_options(options, _KEYS, "a profile")
    check_target(options.log, "--log")
    check_target(options.out)
    spare_question(options.out, options.file)
    limits = Limits(seconds_of(options.time_limit), options.seed, options.gap)
    question: PipelineQuestion = question_of(options, _KEYS)
    with progress_on(sys.stderr, "s") as shown, logged(shown, options.log) as watch:
        result = answered(question, limits, watch)
    hand_out(options, lambda: text_of(result), lambda: pipeline_text(result))
    return Ending(result.status, result.proved)


def check(path: Path) -> Report:
    """What can be said of a saved pipeline from the profile alone."""
    return report_of(read_as(path, from_json))
