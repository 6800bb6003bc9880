"""What `export` takes."""

from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

STACKS, MODELS, PLACEMENTS = ("megatron", "torchtitan", "deepspeed", "fsdp"), ("lp", "mps", "cpsat"), ("devices", "split")
CERTIFICATE, TRACE, CHAKRA, GRAPH = "certificate", "perfetto", "chakra", "graph"


def add_export(parser: ArgumentParser, share: Callable[[str], float], settings: str) -> None:
    """All of it; `share` reads one, and `settings` say what `--set` is, as for all commands."""
    parser.add_argument("file", type=Path, help="a result that `solve --out` wrote; for a model, a question will do")
    parser.add_argument(
        "--as",
        dest="stack",
        choices=(*STACKS, *MODELS, *PLACEMENTS, CERTIFICATE, TRACE, CHAKRA, GRAPH),
        help="settings of a training stack for the plan (default: that of the question, else megatron), or the integer model as a file for "
        "other solvers; a placement as the device of each node, or as a split that the programs of its inputs judge; strategies, or joint "
        "designs of one transformer, as a certificate that solvers/standalone.py checks without this package; or what is done when, as a "
        "trace for ui.perfetto.dev; or a Chakra trace of each device of a plan, which ASTRA-sim runs; or the graph of what a benchmark "
        "runs, or of a trace with its changes",
    )
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help=f"of a model: {settings}")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PATH",
        help="of a model: the file, or a folder for it (default: this folder); of Chakra: a new folder or a .tar; of a certificate: the "
        "file, packed where it ends in .gz, and of a trace (default: print it)",
    )
    parser.add_argument(
        "--within",
        type=share,
        metavar="SHARE",
        help="of a model: keep plans that may be up to so much slower than the best design (default: 0, those that may be as fast)",
    )
    parser.add_argument("--time-limit", metavar="TIME", help="of a model: refine it for so long at most, for example 60s")
    parser.add_argument("--workload", metavar="NAME", help="which of several workloads to launch, or to model")
    parser.set_defaults(command="export")
