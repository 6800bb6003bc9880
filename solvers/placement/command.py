"""The command line of placements: `solve GRAPH.json`."""

import argparse
import sys
from pathlib import Path

from instances.placement.question import Asked, read_placement
from reports.placement import placement_text
from solvers.certify import Limits
from solvers.check import Report
from solvers.console import bytes_of, check_target, seconds_of, spare_question, usage
from solvers.files import read_as, write_whole
from solvers.kinds import Ending
from solvers.placement.answer import from_json, text_of
from solvers.placement.check import check as report_of
from solvers.progress import logged, progress_on


def solve(options: argparse.Namespace) -> Ending:
    """Answer, print and write."""
    from solvers.placement.engines import ENGINES, answered  # noqa: PLC0415 - a check loads no models

    if options.settings:
        usage(f"--set {options.settings[0]}: settings are for questions in YAML (a graph takes --devices, --cpus, --memory, --contiguous)")
    if options.engine not in {"auto", *ENGINES}:
        usage(f"the engine {options.engine!r} places no operators (one of auto, {', '.join(ENGINES)})")
    _refuse_strangers(options)
    check_target(options.log, "--log")
    check_target(options.out)
    spare_question(options.out, options.file)
    limits = Limits(seconds_of(options.time_limit), options.seed, options.gap)
    question = read_placement(options.file, _asked(options))
    with progress_on(sys.stderr, "ms") as shown, logged(shown, options.log) as watch:
        result = answered(question, options.engine, limits, watch)
    text = text_of(result)
    try:
        if options.out and str(options.out) != "-":
            write_whole(options.out, text)
    finally:  # a full disk must not cost the answer
        sys.stdout.write(text if options.json or str(options.out) == "-" else placement_text(result))
    return Ending(result.status, result.proved)


def check(path: Path) -> Report:
    """What can be said of a saved placement from the graph alone."""
    return report_of(read_as(path, from_json))


def _asked(options: argparse.Namespace) -> Asked:
    return Asked(
        problem=options.problem,
        contiguity=options.contiguous,
        communication=options.communication,
        accelerators=options.devices,
        cpus=options.cpus,
        memory=bytes_of(options.memory, "--memory"),
        pieces=1 if options.pieces is None else options.pieces,
        transfer_unit=options.transfer_unit,
    )


def _refuse_strangers(options: argparse.Namespace) -> None:
    """Options that say nothing about the problem that is asked, all at once."""
    latency = options.problem == "latency"
    given = (
        ("--pieces", not latency and options.pieces is not None, "a pipeline runs all of a device at a time"),
        ("--contiguous", latency and options.contiguous != "stages", "no piece waits for itself, which is all that is asked of its shape"),
        ("--transfers", latency and options.communication != "calls", "a piece takes in, computes and hands out, one after another"),
        ("--cpus", latency and options.cpus is not None, "cores are not counted for one sample"),
    )
    strange = [(option, why) for option, meant, why in given if meant]
    if strange:
        words = "; ".join(f"{option} says nothing about {options.problem}: {why} (leave it out)" for option, why in strange)
        usage(words)
