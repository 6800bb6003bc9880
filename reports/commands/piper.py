"""What of the command line is short for settings of a graph with configurations: `solve GRAPH.json --devices 8`."""

import argparse

from crossopt.instances.stages.piper.question import Asked, faults_of, parts_of, read
from crossopt.reports.commands import asking
from crossopt.reports.commands.console import bandwidth_of, bytes_of, count_of, usage
from crossopt.reports.commands.families import Ending

_OPTIONS = ("bandwidth", "devices", "memory", "microbatches", "time_unit", "without")


def solve(options: argparse.Namespace) -> Ending:
    """Answer, print and write."""
    return asking.solve(options, "piper", _OPTIONS, lambda: read(options.file, tuple(options.settings), _asked(options)))


def _asked(options: argparse.Namespace) -> Asked:
    try:
        without = parts_of(options.without) if options.without else ()
    except ValueError as error:
        usage(f"--without {options.without}: {error} (name some of them, with commas between)")
    asked = Asked(
        devices=count_of(options.devices),
        memory=bytes_of(options.memory, "--memory"),
        bandwidth=bandwidth_of(options.bandwidth, "--bandwidth"),
        microbatches=options.microbatches,
        without=without,
        time_unit=options.time_unit or "s",
    )
    if faults := faults_of(asked):
        usage("; ".join(faults))
    return asked
