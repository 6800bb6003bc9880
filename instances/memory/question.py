"""Rematerialisation under a memory budget (`kind: memory`): which outputs stay in memory, and which are computed again.

A schedule is a sequence of nodes. Stage k ends with the first computation of node k, and before that any earlier nodes may be repeated,
each once, in their order. An output is in memory from a computation until its last use before the next computation of the same node. While
a node runs, its inputs, its output, its workspace, and all other outputs in memory must fit into the budget, to the byte.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from pathlib import Path
from typing import Annotated, Any, Literal

from crossopt.crossflow.fields import Bandwidth, Bounds, Bytes, Doc, Duration, NonZero, NotNegative, Prose, Ratio, Throughput
from crossopt.instances.catalogue.registry import UnknownNameError
from crossopt.instances.errors import Fault
from crossopt.instances.files.graphs import FaultList, text_of
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.units import exact, quoted
from crossopt.instances.files.written import Written, short_repr
from crossopt.instances.memory.graph import (
    GREATEST,
    STORAGE_KEYS,
    HostLink,
    MemoryGraph,
    at_batch,
    blocks_of,
    graph_in,
    graph_of,
    memory_graph,
)
from crossopt.instances.operators.graph_file import graph_in as operators_in
from crossopt.instances.operators.graph_file import is_operators

Objective = Literal["extra_time", "time", "peak", "throughput", "batch"]
MOST_REPETITIONS, MOST_BATCHES, LARGEST_BATCH = 1_000, 1_000, 1 << 20


@dataclass(frozen=True, slots=True)
class NodeSection:
    """An operator."""

    time: Annotated[NotNegative, Doc("of one computation, in any unit")]
    bytes: Annotated[Bytes, Doc("of the output")]
    workspace: Annotated[Bytes, Doc("taken while the node runs")] = 0.0
    backward: Annotated[bool, Doc("whether the node belongs to the backward pass")] = False
    after: Annotated[tuple[str, ...], Doc("nodes whose outputs it reads")] = ()
    in_place: Annotated[str | None, Doc("an input that the output overwrites, where that is not used later")] = None
    constant: Annotated[bool, Doc("whether time and bytes are those of every batch")] = False
    view_of: Annotated[str | None, Doc("an input whose storage is that of the output, without bytes of its own")] = None


@dataclass(frozen=True, slots=True)
class HostSection:
    """The link over which outputs are written to the host's memory, and read back."""

    bandwidth: Annotated[Bandwidth, NonZero(), Doc("in each direction")]
    latency: Annotated[Duration, Doc("of a transfer")] = 0.0
    overlapped: Annotated[
        bool, Doc("whether transfers run beside computations, in a queue for each direction; else computations wait for them")
    ] = False


@dataclass(frozen=True, slots=True)
class BatchSection:
    """Batches of which one is chosen."""

    at: Annotated[int, Bounds(1, LARGEST_BATCH), Doc("the batch for which times and bytes are given; they grow with it, rounded up")]
    most: Annotated[int, Bounds(1, LARGEST_BATCH), Doc("the largest batch")]
    least: Annotated[int, Bounds(1, LARGEST_BATCH), Doc("the smallest batch")] = 1
    step: Annotated[int, Bounds(1, LARGEST_BATCH), Doc("between batches, from the smallest one on")] = 1
    overhead: Annotated[NotNegative, Doc("time of a step beside the nodes, whatever its batch, such as the optimizer's")] = 0.0


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """Which outputs are kept, and which are computed again, within a memory budget?"""

    kind: Annotated[Literal["memory"], Doc("problem type")]
    graph: Annotated[
        str | None, Doc("a JSON file with `nodes` and `edges`, or one that `crossopt import` wrote, relative to this file")
    ] = None
    hardware: Annotated[str | None, Doc("a device of `crossopt list hardware`, for a graph of `crossopt import`")] = None
    precision: Annotated[Literal["bf16", "fp16", "fp32"], Doc("of such a graph")] = "bf16"
    training: Annotated[bool, Doc("whether such a graph has a backward pass")] = True
    nodes: Annotated[dict[str, NodeSection] | None, Doc("operators by name, in the order in which they run, where no file is given")] = None
    budget: Annotated[Bytes | None, Doc("memory for outputs and workspaces")] = None
    budget_share: Annotated[Ratio | None, Doc("the budget as a share of the peak without repetitions, rounded down")] = None
    memory: Annotated[Bytes | None, Doc("memory of the device: the budget and the fixed bytes of the graph")] = None
    fixed: Annotated[Bytes | None, Doc("bytes of parameters, gradients and optimizer; default: those of the graph's file")] = None
    host: Annotated[HostSection | None, Doc("memory to which outputs may be moved")] = None
    repetitions: Annotated[int, Bounds(0, MOST_REPETITIONS), Doc("the most that a node is computed again")] = 1
    objective: Annotated[
        Objective,
        Doc("time of repetitions, time of all computations, least peak; with a batch its throughput, or the largest batch that fits"),
    ] = "extra_time"
    most_extra_time: Annotated[
        NotNegative | None, Doc("the most time of repetitions, in the unit of times, where the least peak is sought")
    ] = None
    batch: Annotated[BatchSection | None, Doc("batches, where that is open")] = None
    checkpoints: Annotated[bool, Doc("only schedules that regions of torch.utils.checkpoint run")] = False
    block: Annotated[Bytes | None, Doc("sizes are rounded up to whole blocks of the allocator, such as 512 B")] = None
    rate: Annotated[Throughput | None, Doc("operations a second, where times are operations; shows seconds")] = None
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None


@dataclass(frozen=True)
class MemoryQuestion:
    """A graph and a budget in bytes."""

    name: str
    file: MemoryFile
    document: dict[str, Any]
    graph: MemoryGraph
    """With sizes in whole blocks."""
    budget: int
    unblocked: MemoryGraph | None = None
    """With sizes to the byte, where blocks round them up."""

    __repr__ = short_repr

    @property
    def repetitions(self) -> int:
        return self.file.repetitions

    @cached_property
    def base(self) -> int:
        """Units of time that the objective counts beside repetitions."""
        return self.graph.total_time if self.file.objective == "time" else 0

    @cached_property
    def most_extra(self) -> int | None:
        """The most units of time of repetitions; None where the file does not limit them."""
        given = self.file.most_extra_time
        if given is None:
            return None
        units: int = floor(Fraction(given) * 10**self.graph.places) + 1  # of which the nearest float may be the one that is given
        return units if self.stated_time(units) <= given else units - 1

    @property
    def unit(self) -> str:
        """Unit of times: seconds where a device prices them, else that of the file."""
        return "s" if self.file.hardware is not None else ""

    @cached_property
    def batches(self) -> tuple[int, ...]:
        """Batches of which one is chosen; none where it is not open."""
        section = self.file.batch
        return () if section is None else tuple(range(section.least, section.most + 1, section.step))

    def at(self, batch: int) -> "MemoryQuestion":
        """The question with one of its batches, for the least time of repetitions."""
        section = self.file.batch
        if section is None:
            raise ValueError("the batch is not open")
        graph = at_batch(self.unblocked or self.graph, batch, section.at)
        graph = graph if self.file.block is None else blocks_of(graph, int(self.file.block))
        graph = with_host(graph, self.file, self.budget)
        return replace(self, file=replace(self.file, batch=None, objective="extra_time"), graph=graph, unblocked=None)

    def within(self, budget: int) -> "MemoryQuestion":
        """The question with a budget, for the least time of repetitions."""
        return replace(self, file=replace(self.file, objective="extra_time", most_extra_time=None), budget=budget)

    def time_of_a_sample(self, batch: int, units: int | Fraction) -> Fraction:
        """Time of a step for each sample, in the unit of the file, where the nodes of the step take these units."""
        overhead = exact(self.file.batch.overhead) if self.file.batch else Fraction(0)
        time: Fraction = (Fraction(units) / 10**self.graph.places + overhead) / batch
        return time

    def value(self, extra: int) -> int | float:
        """The objective of a schedule whose repetitions take these units of time."""
        return self.stated_time(self.base + extra)

    def stated_time(self, units: int) -> int | float:
        """Units of time in the unit of the file."""
        return float(Fraction(units, 10**self.graph.places)) if self.graph.places else units


def size_of(question: MemoryQuestion) -> str:
    """How large the question is, in words."""
    graph = question.graph
    return f"{len(graph.names):,} nodes, a budget of {question.budget / max(graph.plain_peak, 1):.1%} of the peak without repetitions"


def read(written: Written) -> MemoryQuestion:
    """The question; an InstanceError with every fault."""
    faults: list[Fault] = []
    file = read_as(MemoryFile, written.root, faults)
    if file is None:
        raise written.refused(faults)
    if found := _faults_of(file):
        raise written.refused(written.fault(path, message) for path, message in found)
    name = file.name or Path(written.source).stem
    unblocked = _graph(file, written)
    graph = unblocked if file.block is None else blocks_of(unblocked, int(file.block))
    fixed = graph.fixed if file.fixed is None else ceil(file.fixed)
    if file.budget is not None:
        budget = int(file.budget)
    elif file.memory is not None:
        budget = int(file.memory) - fixed
        if budget <= 0:
            state = f"parameters, gradients and optimizer take {fixed:,} bytes"
            raise written.refused([written.fault("memory", f"{state}, and there are {int(file.memory):,} (give more memory)")])
    elif file.budget_share is not None:
        budget = floor(exact(file.budget_share) * graph.plain_peak)
    else:
        budget = graph.plain_peak
    try:
        graph = with_host(graph, file, budget)
    except ValueError as error:
        raise written.refused([written.fault("host.bandwidth", str(error))]) from error
    question = MemoryQuestion(name, file, written.document, graph, budget, None if file.block is None else unblocked)
    if question.batches:
        largest = question.at(question.batches[-1]).graph
        if max(sum(largest.times), sum(largest.sizes), sum(largest.workspaces)) >= GREATEST:
            raise written.refused([written.fault("batch.most", "times or bytes of that batch add up to 2^53 or more")])
    return question


def with_host(graph: MemoryGraph, file: MemoryFile, budget: int) -> MemoryGraph:
    """The graph with times of transfers, rounded up to a unit of its times. Times are seconds, or operations at a rate."""
    if file.host is None:
        return graph
    rate = exact(file.rate or 1.0) * 10**graph.places
    latency, bandwidth = exact(file.host.latency), exact(file.host.bandwidth)
    times = tuple(ceil((latency + size / bandwidth) * rate) for size in graph.sizes)
    if sum(times) >= GREATEST:
        raise ValueError("the times of transfers add up to 2^53 or more (give times in a larger unit)")
    return replace(graph, host=HostLink(times, file.host.overlapped, budget))


def _faults_of(file: MemoryFile) -> list[tuple[str, str]]:
    """Faults of the question beside its graph."""
    found = list[tuple[str, str]]()
    if (file.graph is None) == (file.nodes is None):
        found.append(("graph", "a graph is needed once: a file under graph, or its operators under nodes"))
    budgets = sum(limit is not None for limit in (file.budget, file.budget_share, file.memory))
    if budgets > 1 or (not budgets and file.objective != "peak"):
        found.append(("budget", "one budget is needed: budget, memory or budget_share"))
    found += [*_batch_faults(file), *_schedule_faults(file)]
    if file.host is not None and file.host.overlapped and file.objective == "peak":
        found.append(
            ("host.overlapped", "how long computations wait for memory depends on a budget (leave out overlapped, or ask for time)")
        )
    for key, least in (("budget", 1.0), ("memory", 1.0), ("budget_share", 5e-324)):
        value = getattr(file, key)
        if value is not None and value < least:
            found.append((key, "nothing fits into a budget of 0 (give bytes, such as 24 GB)"))
    for key in ("budget", "memory", "fixed", "block"):
        value = getattr(file, key)
        if value is not None and value >= GREATEST:
            found.append((key, f"{value:g} bytes are 2^53 or more, where numbers are no longer exact"))
    if file.hardware is not None and file.rate is not None:
        found.append(("rate", "a device prices operators, whose times are no operations (leave out rate)"))
    if file.hardware is not None and file.nodes is not None:
        found.append(("hardware", "nodes have times of their own (leave out hardware)"))
    if file.block is not None and (file.block < 1.0 or file.block != int(file.block)):
        found.append(("block", "a block is a whole number of bytes from 1 on"))
    return found


def _schedule_faults(file: MemoryFile) -> list[tuple[str, str]]:
    """Faults of what limits schedules."""
    found = list[tuple[str, str]]()
    if file.checkpoints and (file.host is not None or not file.repetitions):
        key = "repetitions" if file.host is None else "host"
        found.append((key, "torch.utils.checkpoint repeats nodes, and moves nothing to the host (leave it out, or leave out checkpoints)"))
    if file.most_extra_time is not None and file.objective != "peak":
        found.append(("most_extra_time", f"this limits the time of the least peak (leave it out for the objective {file.objective})"))
    return found


def _batch_faults(file: MemoryFile) -> list[tuple[str, str]]:
    section, open_ = file.batch, file.objective in {"throughput", "batch"}
    if section is None:
        return [("objective", f"the objective {file.objective} is about an open batch (give batch: {{at: 8, most: 64}})")] if open_ else []
    rules = (
        ("batch", open_, "an open batch has the objective throughput or batch"),
        ("batch.most", section.least <= section.most, f"{section.most} is below the smallest batch, {section.least}"),
        ("batch.step", (section.most - section.least) // section.step < MOST_BATCHES, f"these are more than {MOST_BATCHES:,} batches"),
        ("budget_share", file.budget_share is None, "a share of the peak grows with the batch (give budget or memory)"),
    )
    return [(path, message) for path, holds, message in rules if not holds]


def _graph(file: MemoryFile, written: Written) -> MemoryGraph:
    """The graph of the file, or the one that is written in the question."""
    if file.graph is not None:
        return _graph_of_file(file, file.graph, written)
    nodes = file.nodes or {}
    faults = FaultList(written.source, placed=written.fault)
    arcs, storage = _links_of(nodes, faults)
    faults.end()
    times = [int(node.time) if node.time == int(node.time) else node.time for node in nodes.values()]
    sizes, workspaces = [int(node.bytes) for node in nodes.values()], [int(node.workspace) for node in nodes.values()]
    found = graph_of(list(nodes), times, sizes, workspaces, [node.backward for node in nodes.values()], arcs, 0, faults, storage)
    faults.end()
    if found is None:
        raise AssertionError
    return replace(found, constant=tuple(index for index, node in enumerate(nodes.values()) if node.constant))


def _links_of(nodes: Mapping[str, NodeSection], faults: FaultList) -> tuple[list[tuple[int, int]], list[tuple[str, str, int, int]]]:
    """Arcs between nodes, and what shares storage; figures of the nodes are checked."""
    rows = {name: row for row, name in enumerate(nodes)}
    arcs, storage = list[tuple[int, int]](), list[tuple[str, str, int, int]]()
    for name, node in nodes.items():
        for key in ("bytes", "workspace"):
            value = getattr(node, key)
            if value != int(value) or value >= GREATEST:
                faults.add(f"nodes.{name}.{key}", f"{value} is no whole number of bytes below 2^53")
        if node.time >= GREATEST:
            faults.add(f"nodes.{name}.time", f"{node.time} is 2^53 or more, where numbers are no longer exact (give it in a larger unit)")
        named = [(f"after[{index}]", source) for index, source in enumerate(node.after)]
        named += [(key, source) for key in STORAGE_KEYS if (source := getattr(node, key)) is not None]
        for key, source in named:
            if source not in rows:
                faults.add(f"nodes.{name}.{key}", f"there is no node {quoted(source)} (name a node of the graph)")
            elif key in STORAGE_KEYS:
                storage.append((f"nodes.{name}", key, rows[name], rows[source]))
            else:
                arcs.append((rows[source], rows[name]))
    return arcs, storage


def _graph_of_file(file: MemoryFile, name: str, written: Written) -> MemoryGraph:
    """The graph of a file: with nodes and times, or of operators that a device prices."""
    with written.reading("graph"):
        text = written.files.text(name, text_of)
    if not is_operators(text):
        return graph_in(text, name)
    if file.hardware is None:
        raise written.refused([written.fault("graph", "operators take time on a device (add hardware: h100-sxm, for example)")])
    try:
        graph = memory_graph(operators_in(text, name), file.hardware, file.precision, file.training)
    except (UnknownNameError, ValueError) as error:
        raise written.refused([written.fault("hardware", str(error))]) from error
    if sum(graph.sizes) >= GREATEST:
        raise written.refused([written.fault("graph", "its outputs add up to 2^53 bytes or more")])
    return graph
