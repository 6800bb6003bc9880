"""Results as files: read with care, written whole or not at all."""

import json
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from crossopt.instances.files.saved import _unreadable, read_as, write_whole
from crossopt.solvers.codesign.combined.devices.result import CountsResult, counts_from_json
from crossopt.solvers.codesign.combined.workloads.result import JointResult, any_from_json
from crossopt.solvers.codesign.result import Result, to_json


def text_of(result: Result | JointResult | CountsResult) -> str:
    """The result as JSON text, in signs that every terminal and pipe can carry."""
    return json.dumps(to_json(result), indent=2, allow_nan=False) + "\n"


def deliver(options: Namespace, result: Result | JointResult | CountsResult, words: Callable[[], str]) -> None:
    """Print an answer, in words or as JSON, and write it to the file that the options name."""
    hand_out(options, lambda: text_of(result), words)


def hand_out(options: Namespace, text: Callable[[], str], words: Callable[[], str]) -> None:
    """The same of an answer whose JSON is this text."""
    said = text() if options.json or options.out else ""
    try:
        if options.out and str(options.out) != "-":
            write_whole(options.out, said)
    finally:  # a full disk must not cost the answer
        sys.stdout.write(said if options.json or str(options.out) == "-" else words())


def read_result(path: Path) -> Result | JointResult:
    """The result in a file, about one workload or several; an InstanceError in one sentence if there is none."""
    result = read_any(path)
    if isinstance(result, CountsResult):
        remedy = "solve one of them on its own: --set cluster.devices=NUMBER --set objective=step_time, or another objective"
        raise _unreadable(path, f"here are answers for several numbers of devices, and one is needed ({remedy})")
    return result


def read_any(path: Path) -> Result | JointResult | CountsResult:
    """The same, or the result about several numbers of devices."""
    return read_as(path, lambda data: counts_from_json(data) if isinstance(data, dict) and "answers" in data else any_from_json(data))
