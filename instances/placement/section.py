"""The question about a placement as the user writes it in YAML: a graph, the devices, and what is asked."""

from dataclasses import dataclass
from typing import Annotated, Literal

from crossopt.crossflow.fields import Bandwidth, Bounds, Bytes, Doc, Duration, Positive, Prose
from crossopt.instances.catalogue.workload import WorkloadSection
from crossopt.instances.placement.graph import Communication, Contiguity, Problem


@dataclass(frozen=True, slots=True)
class NodeSection:
    """One operator."""

    time: Annotated[Duration | None, Doc("on an accelerator, for one sample; left out where no accelerator runs it")] = None
    cpu_time: Annotated[Duration | None, Doc("on a CPU; ten times the accelerator's where nothing is said")] = None
    size: Annotated[Bytes, Doc("on an accelerator")] = 0.0
    transfer: Annotated[Duration, Doc("to move its output between an accelerator and the host's memory")] = 0.0
    after: Annotated[tuple[str, ...], Doc("the operators whose outputs it takes")] = ()
    colour: Annotated[str | None, Doc("operators of equal colour run on one device")] = None
    backward: Annotated[bool, Doc("part of the backward pass")] = False


@dataclass(frozen=True, slots=True)
class GraphSection:
    """The operators: one of `file`, `nodes`, and `workload` with `hardware`."""

    file: Annotated[str | None, Doc("a graph in JSON, relative to this file")] = None
    nodes: Annotated[dict[str, NodeSection] | None, Doc("operators by name")] = None
    workload: Annotated[WorkloadSection | None, Doc("a transformer, whose operators the cost model prices")] = None
    hardware: Annotated[str | None, Doc("a device of `crossopt list hardware`")] = None
    granularity: Annotated[Literal["operator", "layer"], Doc("what is one node of a generated graph")] = "operator"
    training: Annotated[bool, Doc("forward and backward pass, or forward only")] = True
    microbatch: Annotated[Positive, Doc("samples that go through together")] = 1
    bandwidth: Annotated[Bandwidth | None, Doc("between an accelerator and the host; the device's own link where nothing is said")] = None
    cpu_slowdown: Annotated[float, Bounds(1.0), Doc("how many times longer an operator takes on a CPU")] = 10.0


@dataclass(frozen=True, slots=True)
class PlacementFile:
    """On which device does each operator of a network run?"""

    graph: Annotated[GraphSection, Doc("the operators")]
    kind: Annotated[Literal["placement"], Doc("the kind of question")] = "placement"
    name: Annotated[str | None, Doc("of the question; the file's where nothing is said")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
    devices: Annotated[int | None, Bounds(0), Doc("accelerators; needed where the graph's own file does not say")] = None
    cpus: Annotated[int | None, Bounds(0), Doc("beside the accelerators; the file's, or none")] = None
    memory: Annotated[Bytes | None, Doc("of one accelerator; the hardware's own, or no limit, where nothing is said")] = None
    problem: Annotated[Problem, Doc("the busiest device, or the time of one sample on CPU cores without number and pieces")] = "throughput"
    contiguous: Annotated[Contiguity | None, Doc("stages that all data follow, parts that none leave and come back to, or anything")] = None
    transfers: Annotated[Communication | None, Doc("calls: they take a device's time; overlapped: they run behind the work")] = None
    pieces: Annotated[Positive | None, Doc("subgraphs that one accelerator runs after each other, for latency")] = None
    edge_unit: Annotated[Literal["ms", "s"] | None, Doc("of the costs of edges in a file in JSON; ms where nothing is said")] = None
