"""What `import` takes."""

from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path


def add_import(parser: ArgumentParser, whole: Callable[[str], int]) -> None:
    """All of it; `whole` reads a count."""
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="TRACE",
        help="traces of ranks of one job, plain or in .gz: Kineto JSON of PyTorch's profiler, Chakra (.et, JSON), host traces of PyTorch",
    )
    parser.add_argument("--rank", type=whole, metavar="N", help="of several traces the rank that is kept (default: that of the first file)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the graph of the trace as JSON to this file; - is standard output")
    parser.set_defaults(command="import")
