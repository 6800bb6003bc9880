"""The command line of placements: `solve GRAPH.json`."""

import argparse
import sys
from pathlib import Path

from crossopt.instances.files.saved import read_as
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.instances.placement.split import read_split
from crossopt.reports.commands.console import check_target, question_of, refuse_options, seconds_of, spare_question, usage
from crossopt.reports.commands.families import Ending
from crossopt.reports.commands.files import hand_out
from crossopt.reports.commands.progress import logged, progress_on
from crossopt.reports.texts.placement import comparison_text, placement_text, size_text
from crossopt.solvers.answer import Limits, text_of
from crossopt.solvers.checking import Report
from crossopt.solvers.placement.answer import from_json
from crossopt.solvers.placement.check import check as report_of

_KEYS = {name: name for name in ("contiguous", "cpus", "devices", "edge_unit", "memory", "pieces", "problem", "transfers")}
"""Settings that options are short for."""


def solve(options: argparse.Namespace) -> Ending:
    """Answer, print and write."""
    from crossopt.solvers.placement.engines import ENGINES, answered  # noqa: PLC0415 - a check loads no models

    if options.engine not in {"auto", *ENGINES}:
        usage(f"the engine {options.engine!r} places no operators (one of auto, {', '.join(ENGINES)})")
    refuse_options(options, _KEYS, "a graph")
    check_target(options.log, "--log")
    check_target(options.out)
    spare_question(options.out, options.file)
    limits = Limits(seconds_of(options.time_limit), options.seed, options.gap)
    question: PlacementQuestion = question_of(options, _KEYS)
    with progress_on(sys.stderr, "ms") as shown, logged(shown, options.log) as watch:
        result = answered(question, options.engine, limits, watch)
    hand_out(options, lambda: text_of(result), lambda: placement_text(result))
    return Ending(result.status, result.proved)


def validate(options: argparse.Namespace) -> Ending:
    """Read the question and say how large it is."""
    question: PlacementQuestion = question_of(options, {})
    sys.stdout.write(f"{options.file}: a sound question: {size_text(question)}\n")
    return Ending("FEASIBLE", proved=False)


_PROOF, _SEARCH = 60.0, 5.0
"""Seconds for the proof, if no limit is given, and for each run of a search."""


def compare(options: argparse.Namespace) -> Ending:
    """The answer beside what lists, partitioners, searches and the splits that are given do."""
    from crossopt.solvers.placement.comparison import compared as of_throughput  # noqa: PLC0415
    from crossopt.solvers.placement.engines import answered  # noqa: PLC0415
    from crossopt.solvers.placement.latency.comparison import compared as of_latency  # noqa: PLC0415

    seconds = seconds_of(options.time_limit) if options.time_limit else _PROOF
    refuse_options(options, _KEYS, "a graph")
    question: PlacementQuestion = question_of(options, _KEYS)
    splits = {path.stem: read_split(path, question) for path in options.split}
    with progress_on(sys.stderr, "ms") as watch:
        result = answered(question, "auto", Limits(seconds), watch)
    compared = of_latency if question.problem == "latency" else of_throughput
    rows = tuple(compared(question, min(seconds, _SEARCH), options.seeds, splits))
    sys.stdout.write(comparison_text(result, rows))
    return Ending(result.status, result.proved)


def check(path: Path) -> Report:
    """What can be said of a saved placement from the graph alone."""
    return report_of(read_as(path, from_json))
