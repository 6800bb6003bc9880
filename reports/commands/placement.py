"""The command line of placements: `solve GRAPH.json`."""

import argparse
import sys

from crossopt.instances.kinds import question_path
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.instances.placement.question import Asked, faults_of, read_placement
from crossopt.instances.placement.split import read_split
from crossopt.reports.commands import asking
from crossopt.reports.commands.console import bytes_of, count_of, refuse_options, seconds_of, usage
from crossopt.reports.commands.families import Ending
from crossopt.reports.commands.progress import progress_on
from crossopt.reports.texts.placement import comparison_text
from crossopt.solvers.answer import Limits
from crossopt.solvers.family import solve as solved
from crossopt.solvers.placement.family import FAMILY

_KNOWN = ("communication", "contiguous", "cpus", "devices", "memory", "pieces", "problem", "transfer_unit")


def solve(options: argparse.Namespace) -> Ending:
    """Answer what the options make of the question."""
    return asking.solve(options, FAMILY.kind, _KNOWN, _question)


_PROOF, _SEARCH = 60.0, 5.0
"""Seconds for the proof, if no limit is given, and for each run of a search."""


def compare(options: argparse.Namespace) -> Ending:
    """The answer beside what lists, partitioners, searches and the splits that are given do."""
    from crossopt.solvers.placement.latency.comparison import compared as of_latency  # noqa: PLC0415
    from crossopt.solvers.placement.throughput.comparison import compared as of_throughput  # noqa: PLC0415

    seconds = seconds_of(options.time_limit) if options.time_limit else _PROOF
    refuse_options(options, _KNOWN, "a graph")
    question = _question(options)
    splits = {path.stem: read_split(path, question) for path in options.split}
    with progress_on(sys.stderr, "ms") as watch:
        result = solved(FAMILY, question, "auto", Limits(seconds), watch)
    compared = of_latency if question.problem == "latency" else of_throughput
    rows = tuple(compared(question, min(seconds, _SEARCH), options.seeds, splits))
    sys.stdout.write(comparison_text(question, result, rows))
    return Ending(result.status, result.proved)


def _question(options: argparse.Namespace) -> PlacementQuestion:
    question = read_placement(question_path(options.file), _asked(options))
    _refuse_strangers(options, question.problem)
    return question


def _asked(options: argparse.Namespace) -> Asked:
    if options.settings and options.file.suffix.lower() == ".json":
        usage(f"--set {options.settings[0]}: settings are for questions in YAML (a graph takes --devices, --cpus, --memory, --contiguous)")
    asked = Asked(
        problem=options.problem,
        contiguity=options.contiguous,
        communication=options.communication,
        accelerators=count_of(options.devices),
        cpus=options.cpus,
        memory=bytes_of(options.memory, "--memory"),
        pieces=options.pieces,
        transfer_unit=options.transfer_unit,
        settings=tuple(options.settings),
    )
    if faults := faults_of(asked):
        usage("; ".join(faults))
    return asked


def _refuse_strangers(options: argparse.Namespace, problem: str) -> None:
    """Options that say nothing about the problem that is asked, all at once."""
    latency = problem == "latency"
    given = (
        ("--pieces", not latency and options.pieces is not None, "a pipeline runs all of a device at a time"),
        ("--contiguous", latency and options.contiguous is not None, "no piece waits for itself, which is all that is asked of its shape"),
        ("--transfers", latency and options.communication is not None, "a piece takes in, computes and hands out, one after another"),
        ("--cpus", latency and options.cpus is not None, "cores are not counted for one sample"),
    )
    strange = [(option, why) for option, meant, why in given if meant]
    if strange:
        usage("; ".join(f"{option} says nothing about {problem}: {why} (leave it out)" for option, why in strange))
