"""What of the command line is short for settings of a profile: `solve graph.txt --devices 4x8`."""

import argparse

from crossopt.instances.files.units import parse_quantity
from crossopt.instances.stages.pipedream.question import BANDWIDTH, DEVICES, Asked, faults_of, read
from crossopt.reports.commands import asking
from crossopt.reports.commands.console import bytes_of, usage
from crossopt.reports.commands.families import Ending

_OPTIONS = ("bandwidth", "compatible", "compression", "devices", "memory", "straight")


def solve(options: argparse.Namespace) -> Ending:
    """Answer, print and write."""
    return asking.solve(options, "pipedream", _OPTIONS, lambda: read(options.file, tuple(options.settings), _asked(options)))


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
