"""The question about a benchmark as the user writes it in YAML."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

from crossopt.crossflow.fields import Bounds, Choice, Doc, Prose, Unit

DeviceKind = Literal["kernel", "copy", "collective"]
Total = Literal["time", "kernel time", "copy time", "collective time", "runs", "bytes", "flops"]
Objective = Literal["kernels", "runs"]
Share = Annotated[Fraction, Unit("ratio"), Bounds(0, 1)]


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """Which few kernels, each repeated how often, stand for a trace?"""

    kind: Annotated[Literal["benchmark"], Doc("the kind of question")]
    trace: Annotated[str, Doc("path of the graph of a trace, which `crossopt import` makes; it begins at the question")]
    share: Annotated[Share, Doc("of the trace that the benchmark stands for")] = Fraction(1, 20)
    deviation: Annotated[Share, Doc("of each total from that share of it, at the most")] = Fraction(1, 50)
    coverage: Annotated[Share, Doc("of the time of the trace that all runs of the chosen kernels make up, at the least")] = Fraction(4, 5)
    mix: Annotated[Share | None, Doc("of its time that the benchmark gives to other kernels than the trace, at the most")] = None
    totals: Annotated[tuple[Total, ...], Choice(), Doc("that are met; all that the trace has where nothing is said")] = ()
    kinds: Annotated[tuple[DeviceKind, ...], Choice(), Doc("of operations that are looked at")] = ("kernel", "copy", "collective")
    objective: Annotated[Objective, Doc("the fewest different kernels, or the fewest runs of all of them")] = "kernels"
    kernels: Annotated[int | None, Bounds(1), Doc("different ones, at the most")] = None
    runs: Annotated[int | None, Bounds(1), Doc("of all kernels together, at the most")] = None
    name: Annotated[str | None, Doc("of the question; the file's where nothing is said")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
