"""What commands do with their arguments before the work begins: places that can be written, files that are meant, times, threads."""

import argparse
import os
import sys
from collections.abc import Container
from pathlib import Path
from typing import NoReturn

from crossopt.instances.kinds import question_path

USAGE = 2


def spare_question(path: Path | None, question: Path, what: str = "question") -> None:
    """Refuse to put the answer in the place of the question, which may be named by its name."""
    question = question_path(question)
    if path is not None and path.exists() and question.exists() and path.samefile(question):
        usage(f"--out {path}: this is the {what} itself (name another file)")


def spare_data(path: Path | None, data: Path, option: str) -> None:
    """Refuse to put anything in the place of the measured runs."""
    if path is None:
        return
    if os.path.realpath(path) == os.path.realpath(data) or (path.exists() and data.exists() and path.samefile(data)):
        usage(f"{option} {path}: these are the measured runs themselves (name another file)")


_PLAIN = (
    *("bandwidth", "compatible", "compression", "cpus", "devices", "form", "memory", "microbatches", "pareto", "pieces", "problem"),
    *("straight", "time_unit", "without", "workers", "workload"),
)
FLAGS = {
    **{name: f"--{name.replace('_', '-')}" for name in _PLAIN},
    "communication": "--transfers",
    "contiguous": "--contiguous",
    "transfer_unit": "--edge-unit",
}
"""Options of `solve` that mean something for some questions only, by their names in the code."""


def refuse_options(options: argparse.Namespace, used: Container[str], question: str) -> None:
    """Refuse options that say nothing of a question instead of passing over them."""
    from crossopt.reports.arguments import parser_of_commands  # noqa: PLC0415

    plain = parser_of_commands().parse_args(["solve", "-"])
    for name, flag in FLAGS.items():
        if name not in used and getattr(options, name, getattr(plain, name)) != getattr(plain, name):
            usage(f"{flag}: this says nothing of {question} (leave it out)")


def seconds_of(text: str | None) -> float:
    if text is None:
        return float("inf")
    from crossopt.instances.files.units import parse_quantity  # noqa: PLC0415

    try:
        return parse_quantity(text, "time")
    except ValueError:
        usage(f"--time-limit: {text!r} is no time (write for example 60s, 5min or 2h)")


def count_of(devices: tuple[int, ...] | None) -> int | None:
    """The number of devices, where they are no groups of groups."""
    if devices is not None and len(devices) > 1:
        usage("--devices: here devices are one number, such as 16")
    return devices[0] if devices else None


def bytes_of(text: str | None, option: str) -> float | None:
    """A size in bytes, where one is given."""
    if text is None:
        return None
    from crossopt.instances.files.units import parse_quantity  # noqa: PLC0415

    try:
        return parse_quantity(text, "bytes")
    except ValueError:
        usage(f"{option}: {text!r} is no size (write it with its unit, for example 16GiB or 500B)")


def bandwidth_of(text: str | None, option: str) -> float | None:
    """Bytes a second, where they are given."""
    if text is None:
        return None
    from crossopt.instances.files.units import parse_quantity  # noqa: PLC0415

    try:
        return parse_quantity(text, "bandwidth")
    except ValueError:
        usage(f"{option}: {text!r} is no bandwidth (write for example 25GiB/s)")


def check_target(path: Path | None, option: str = "--out") -> None:
    """Refuse a place that cannot be written before hours of work are lost on it."""
    if path is None or str(path) == "-":
        return
    from crossopt.instances.files.saved import check_writable  # noqa: PLC0415

    try:
        if path.is_dir():
            usage(f"{option} {path}: this is a directory (name a file)")
        if not path.parent.is_dir():
            usage(f"{option} {path}: there is no folder {path.parent} (make it first)")
        check_writable(path)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        usage(f"{option} {path}: this cannot be written, {reason} (name a file in a folder of yours)")


def load_numpy_without_threads() -> None:
    """The threads that numpy starts for products of matrices take longer to start than these commands need for all else."""
    name = "OPENBLAS_NUM_THREADS"
    if "numpy" in sys.modules or name in os.environ:
        return
    os.environ[name] = "1"
    try:
        import numpy  # noqa: F401, PLC0415 - it looks at the variable once, and processes that this one starts shall not
    finally:
        del os.environ[name]


def usage(message: str) -> NoReturn:
    sys.stderr.write(f"crossopt: {message}\n")
    raise SystemExit(USAGE)
