"""The command line of pipelines: `solve graph.txt`."""

import argparse
import sys
from pathlib import Path

from crossopt.instances.files.saved import read_as
from crossopt.instances.files.units import parse_quantity
from crossopt.instances.stages.pipedream.question import BANDWIDTH, DEVICES, Asked, faults_of, read_pipeline
from crossopt.reports.commands.console import bytes_of, check_target, refuse_options, seconds_of, spare_question, usage
from crossopt.reports.commands.families import Ending
from crossopt.reports.commands.files import hand_out
from crossopt.reports.commands.progress import logged, progress_on
from crossopt.reports.texts.pipedream import pipeline_text
from crossopt.solvers.answer import Limits, text_of
from crossopt.solvers.checking import Report
from crossopt.solvers.stages.pipedream.answer import from_json
from crossopt.solvers.stages.pipedream.check import check as report_of


def solve(options: argparse.Namespace) -> Ending:
    """Answer, print and write."""
    from crossopt.solvers.stages.pipedream.engine import answered  # noqa: PLC0415 - a check loads no search

    if options.settings:
        usage(f"--set {options.settings[0]}: settings are for questions in YAML (a profile takes --devices, --bandwidth, --memory)")
    if options.engine not in {"auto", "cuts"}:
        usage(f"the engine {options.engine!r} pipelines no profile (auto or cuts)")
    refuse_options(options, ("bandwidth", "compatible", "compression", "devices", "memory", "straight"), "a profile")
    check_target(options.log, "--log")
    check_target(options.out)
    spare_question(options.out, options.file)
    limits = Limits(seconds_of(options.time_limit), options.seed, options.gap)
    question = read_pipeline(options.file, _asked(options))
    with progress_on(sys.stderr, "s") as shown, logged(shown, options.log) as watch:
        result = answered(question, limits, watch)
    hand_out(options, lambda: text_of(result), lambda: pipeline_text(result))
    return Ending(result.status, result.proved)


def check(path: Path) -> Report:
    """What can be said of a saved pipeline from the profile alone."""
    return report_of(read_as(path, from_json))


def _asked(options: argparse.Namespace) -> Asked:
    asked = Asked(
        devices=options.devices or DEVICES,
        bandwidth=_bandwidths(options.bandwidth),
        straight=options.straight,
        compression=options.compression,
        memory=bytes_of(options.memory, "--memory"),
        compatible=options.compatible,
    )
    if faults := faults_of(asked):
        usage("; ".join(faults))
    return asked


def _bandwidths(text: str | None) -> tuple[float, ...]:
    """Bytes a second of each level; numbers without a unit are those already."""
    if text is None:
        return (BANDWIDTH,)
    try:
        return tuple(_bandwidth(part.strip()) for part in text.split(","))
    except ValueError:
        usage(f"--bandwidth: {text!r} is no list of bandwidths (write for example 1GB/s, or 6e9,1e9 for two levels)")


def _bandwidth(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return parse_quantity(text, "bandwidth")
