"""The command line of stages: `solve GRAPH.json` for a graph with configurations of its layers."""

import argparse
import sys
from pathlib import Path

from crossopt.instances.files.saved import read_as
from crossopt.instances.stages.piper.graph import PiperQuestion
from crossopt.reports.commands.console import check_target, question_of, refuse_options, seconds_of, spare_question, usage
from crossopt.reports.commands.families import Ending
from crossopt.reports.commands.files import hand_out
from crossopt.reports.commands.progress import logged, notes_on, progress_on
from crossopt.reports.texts.piper import piper_text
from crossopt.solvers.answer import Limits, text_of
from crossopt.solvers.checking import Report
from crossopt.solvers.stages.piper.answer import ENGINE, from_json
from crossopt.solvers.stages.piper.check import check as report_of

_KEYS = {name: name for name in ("bandwidth", "devices", "memory", "microbatches", "time_unit", "without")}
"""Settings that options are short for."""


def solve(options: argparse.Namespace) -> Ending:
    """Answer, print and write."""
    from crossopt.solvers.stages.piper.engine import answered  # noqa: PLC0415 - a check needs no engine

    _refuse_foreign(options)
    check_target(options.log, "--log")
    check_target(options.out)
    spare_question(options.out, options.file)
    limits = Limits(seconds_of(options.time_limit), options.seed, options.gap)
    question: PiperQuestion = question_of(options, _KEYS)
    with progress_on(sys.stderr, "s") as shown, logged(shown, options.log) as watch:
        result = answered(question, limits, watch)
    hand_out(options, lambda: text_of(result), lambda: piper_text(result))
    return Ending(result.status, result.proved)


def validate(options: argparse.Namespace) -> Ending:
    """Read the question and say what it holds."""
    question: PiperQuestion = question_of(options, {})
    words = f"{len(question.graph):,} layers for {question.devices:,} devices and {question.microbatches:,} microbatches"
    sys.stdout.write(f"{options.file}: a sound question: {words}\n")
    sys.stdout.writelines(f"  note: {note}\n" for note in question.notes)
    return Ending("FEASIBLE", proved=False)


def check(path: Path) -> Report:
    """What can be said of saved stages from the graph alone."""
    with notes_on(sys.stderr) as note:
        return report_of(read_as(path, from_json), lambda: note("proving the bound anew"))


def _refuse_foreign(options: argparse.Namespace) -> None:
    """Options that mean nothing for stages."""
    if options.engine not in {"auto", ENGINE}:
        usage(f"the engine {options.engine!r} finds no stages with replicas (one of auto, {ENGINE})")
    refuse_options(options, _KEYS, "a graph with configurations")
