"""What `import` takes."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crossopt.instances.files.units import exact_quantity

_LONGEST = 10**18


def add_import(parser: ArgumentParser, whole: Callable[[str], int]) -> None:
    """All of it; `whole` reads a count."""
    of_time: dict[str, Any] = {"type": nanoseconds_of, "metavar": "TIME"}
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="TRACE",
        help="traces of ranks of one job, plain or in .gz: Kineto JSON of PyTorch's profiler, Chakra (.et, JSON), host traces of PyTorch",
    )
    parser.add_argument("--rank", type=whole, metavar="N", help="of several traces the rank that is kept (default: that of the first file)")
    parser.add_argument("--step", type=_number, metavar="N", help="the step alone that the profiler marked with ProfilerStep#N")
    parser.add_argument("--from", dest="begin", **of_time, help="what is launched from this time on, such as 12.5ms from the first event")
    parser.add_argument("--to", dest="end", **of_time, help="what is launched before this time")
    parser.add_argument("--kernels", action="store_true", help="list all work on devices by name, not only the longest")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the graph of the trace as JSON to this file; - is standard output")
    parser.set_defaults(command="import")


def nanoseconds_of(text: str) -> int:
    """A time such as `12.5ms`, to the nanosecond."""
    try:
        exact = exact_quantity(text, "time") * 10**9
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    if not 0 <= exact <= _LONGEST or exact != int(exact):
        raise ArgumentTypeError(f"{text!r} is no whole number of ns from the first event on")
    return int(exact)


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > len(str(_LONGEST)):
        raise ArgumentTypeError(f"{text[:40]!r} is no number of a step (a whole number from 0 is needed)")
    return int(text)
