"""The question about strategies as the user writes it in YAML: a file of the contest's form, nodes and edges, or a network on a mesh."""

from dataclasses import dataclass
from typing import Annotated, Literal

from crossopt.crossflow.fields import Bytes, Doc, Positive, Prose
from crossopt.instances.catalogue.workload import WorkloadSection


@dataclass(frozen=True, slots=True)
class NodeSection:
    """One operator and its strategies."""

    costs: Annotated[tuple[int, ...], Doc("of each strategy; 1000000000000000000 and more: forbidden")]
    usages: Annotated[tuple[int, ...] | None, Doc("bytes of each strategy while the node is alive; none where nothing is said")] = None
    alive: Annotated[tuple[int, int] | None, Doc("[start, end]; the end does not count")] = None


@dataclass(frozen=True, slots=True)
class EdgeSection:
    """Costs of pairs of strategies of two nodes."""

    between: Annotated[tuple[str, str], Doc("the names of the two nodes")]
    costs: Annotated[tuple[tuple[int, ...], ...], Doc("a row for each strategy of the first node")]


@dataclass(frozen=True, slots=True)
class ShardingFile:
    """Which strategy does each operator take?"""

    kind: Annotated[Literal["sharding"], Doc("the kind of question")] = "sharding"
    name: Annotated[str | None, Doc("of the question; the file's where nothing is said")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
    file: Annotated[str | None, Doc("a problem in JSON, plain or gzipped, relative to this file")] = None
    nodes: Annotated[dict[str, NodeSection] | None, Doc("operators by name, where no file is given")] = None
    edges: Annotated[tuple[EdgeSection, ...], Doc("between nodes")] = ()
    workload: Annotated[WorkloadSection | None, Doc("a transformer, of whose training step the cost model prices every operator")] = None
    hardware: Annotated[str | None, Doc("a device of `crossopt list hardware`, for a workload")] = None
    mesh: Annotated[tuple[Positive, ...] | None, Doc("devices along each axis, such as [4, 8]; the last axis joins neighbours")] = None
    devices_per_node: Annotated[Positive | None, Doc("the device's usual number where nothing is said")] = None
    limit: Annotated[Bytes | None, Doc("of memory at every time; the file's or the device's own where nothing is said")] = None
