"""The question about a benchmark as the user writes it in YAML."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from crossopt.crossflow.fields import Bounds, Choice, Doc, Prose, Unit
from crossopt.crossflow.traces import KINDS, Graph, of_kinds
from crossopt.instances.files.units import quoted
from crossopt.instances.files.written import Written, short_repr
from crossopt.instances.traces.graph_file import Trace, trace_of

DeviceKind = Literal["kernel", "copy", "collective"]
Total = Literal["time", "kernel time", "copy time", "collective time", "runs", "bytes", "flops"]
Objective = Literal["kernels", "runs"]
Share = Annotated[Fraction, Unit("ratio"), Bounds(0, 1)]


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """Which few kernels, each repeated how often, stand for a trace?"""

    kind: Annotated[Literal["benchmark"], Doc("problem type")]
    trace: Annotated[str, Doc("path of the graph of a trace, written by `crossopt import`, relative to this file")]
    share: Annotated[Share, Doc("share of the trace that the benchmark represents")] = Fraction(1, 20)
    deviation: Annotated[Share, Doc("largest deviation of each total from that share")] = Fraction(1, 50)
    coverage: Annotated[Share, Doc("smallest share of the trace's time that all runs of the chosen kernels cover")] = Fraction(4, 5)
    mix: Annotated[Share | None, Doc("largest share of the benchmark's time spent in other kernels than the trace")] = None
    totals: Annotated[tuple[Total, ...], Choice(), Doc("totals to match; default: all that the trace has")] = ()
    kinds: Annotated[tuple[DeviceKind, ...], Choice(), Doc("kinds of operations considered")] = ("kernel", "copy", "collective")
    objective: Annotated[Objective, Doc("minimise the number of different kernels, or of all runs")] = "kernels"
    kernels: Annotated[int | None, Bounds(1), Doc("largest number of different kernels")] = None
    runs: Annotated[int | None, Bounds(1), Doc("largest number of runs of all kernels")] = None
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None


# From what is written to a question about a benchmark: classes of operations that are alike, and totals that are to be met.
#
# Operations of one name, kind, group, and of the same bytes and FLOPs are one class, a kernel: it runs n times in the trace, and each of
# its runs counts for the mean of all n. A benchmark of x_k runs of each class meets a total A within d for a share s of the trace where
#
#     (1 - d) s A  <=  sum over classes of x_k A_k / n_k  <=  (1 + d) s A        A_k of the n_k runs of class k together
#
# and its mix of kernels is off by  1/2 sum over classes of |x_k T_k / n_k - s T_k| / (s T)  of the time T: half the distance between both,
# as what one class has too much others lack; a class that is left out lacks all of its share.

MOST_CLASSES = 5_000


@dataclass(frozen=True, slots=True)
class Kernel:
    """Operations that are alike."""

    name: str
    kind: str
    operations: tuple[int, ...]
    """By their places in the trace."""
    sums: tuple[int, ...]
    """Of the totals of the question, all its operations together."""
    time: int
    """ns of all of them."""

    @property
    def runs(self) -> int:
        return len(self.operations)


@dataclass(frozen=True, slots=True)
class BenchmarkQuestion:
    """Which few kernels, each repeated how often, stand for a trace?"""

    name: str
    file: BenchmarkFile
    trace: Trace
    kernels: tuple[Kernel, ...]
    """Those with most time first."""
    totals: tuple[Total, ...]
    sums: tuple[int, ...]
    """Of the trace."""
    time: int
    """ns of all operations that count."""
    document: dict[str, Any]

    __repr__ = short_repr


def mix_of(question: BenchmarkQuestion, runs: Sequence[int]) -> Fraction:
    """The share of the time by which the mix of kernels is off."""
    share = question.file.share
    away = (abs(Fraction(kernel.time * run, kernel.runs) - share * kernel.time) for kernel, run in zip(question.kernels, runs, strict=True))
    return sum(away, start=Fraction(0)) / (2 * share * question.time)


def size_of(question: BenchmarkQuestion) -> str:
    """How large the question is, in words."""
    runs = sum(kernel.runs for kernel in question.kernels)
    return f"{len(question.kernels):,} different kernels of {runs:,} runs, {len(question.totals)} totals"


def read(written: Written) -> BenchmarkQuestion:
    """The question; an InstanceError with every fault."""
    file = written.read_as(BenchmarkFile)
    written.refuse(_faults(file))
    trace = trace_of(written, "trace", file.trace)
    places = of_kinds(trace.graph, file.kinds)
    columns = _columns(trace.graph)
    there = [total for total in columns if int(columns[total][places].sum())]
    written.refuse(_absent(file, trace.graph, places, there))
    totals = tuple(total for total in there if (total in file.totals if file.totals else total != "runs" or file.objective == "kernels"))
    kernels = _kernels(trace.graph, places, [columns[total] for total in totals])
    if len(kernels) > MOST_CLASSES:
        text = f"{len(kernels):,} different kernels are more than {MOST_CLASSES:,} (look at fewer kinds)"
        raise written.refused([written.fault("trace", text)])
    sums = tuple(int(columns[total][places].sum()) for total in totals)
    time = int(trace.graph.durations[places].sum())
    return BenchmarkQuestion(file.name or Path(written.source).stem, file, trace, kernels, totals, sums, time, written.document)


def _columns(graph: Graph) -> Mapping[Total, Any]:
    """What each operation adds to each total."""
    durations = graph.durations
    of_kind = {kind: np.where(graph.kinds == KINDS.index(kind), durations, 0) for kind in ("kernel", "copy", "collective")}
    return {
        "time": durations,
        "kernel time": of_kind["kernel"],
        "copy time": of_kind["copy"],
        "collective time": of_kind["collective"],
        "runs": np.ones(len(graph), np.int64),
        "bytes": graph.bytes,
        "flops": graph.flops,
    }


def _kernels(graph: Graph, places: list[int], columns: list[Any]) -> tuple[Kernel, ...]:
    groups = dict[tuple[Any, ...], list[int]]()
    for index in places:
        key = graph.names[index], int(graph.kinds[index]), graph.groups[index], int(graph.bytes[index]), int(graph.flops[index])
        groups.setdefault(key, []).append(index)
    found = [
        Kernel(key[0], KINDS[key[1]], tuple(own), tuple(int(column[own].sum()) for column in columns), int(graph.durations[own].sum()))
        for key, own in groups.items()
    ]
    return tuple(sorted(found, key=lambda kernel: -kernel.time))


def _faults(file: BenchmarkFile) -> Iterator[tuple[str, str]]:
    if not file.share:
        yield "share", "a benchmark that stands for nothing is none (give more than 0)"
    for key in ("kernels", "runs"):
        if key == file.objective and getattr(file, key) is not None:
            yield key, f"the fewest {key} are asked for already (take this away, or ask for the other objective)"


def _absent(file: BenchmarkFile, graph: Graph, places: list[int], there: list[Total]) -> Iterator[tuple[str, str]]:
    """Totals and kinds that the trace lacks."""
    if not places:
        kinds = ", ".join(sorted({KINDS[kind] for kind in graph.kinds.tolist()}))
        yield "trace", f"it holds no operation of the kinds {', '.join(file.kinds)} (it holds {kinds})"
        return
    if not int(graph.durations[places].sum()):
        yield "trace", "its operations take no time (import a trace with times)"
    for index, total in enumerate(file.totals):
        if total not in there:
            yield f"totals[{index}]", f"the trace says nothing of {quoted(total)} (it has {', '.join(there) or 'none'})"
