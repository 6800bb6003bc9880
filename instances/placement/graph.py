"""A network as a graph of operators, and the question on which device each of them runs.

The problem is that of Tarnawski et al. (NeurIPS 2020). All data between devices pass through the memory of the host: an accelerator pays
the transfer time of a node's output once if it takes it in from outside, and once if it hands it out; CPUs pay nothing.
"""

from dataclasses import dataclass
from typing import Any, Literal

from crossopt.crossflow.arrays import Array, Mask, Whole

Problem = Literal["throughput", "latency"]
Contiguity = Literal["stages", "convex", "no"]
Communication = Literal["calls", "overlapped"]


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Operators as columns, in the order of the file, and the edges between them by their rows."""

    ids: tuple[int | str, ...]
    names: tuple[str, ...]
    accelerator_time: Array
    """Milliseconds for one sample; infinite where no accelerator supports the node."""
    cpu_time: Array
    size: Array
    """Bytes on an accelerator."""
    transfer: Array
    """Milliseconds to move the output of the node between an accelerator and the host's memory."""
    backward: Mask
    colour: Whole
    """Nodes of equal number run on one device."""
    source: Whole
    target: Whole

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class PlacementQuestion:
    """On which device does each operator run, so that the busiest device is least busy, or one sample is through soonest?"""

    name: str
    graph: Graph
    accelerators: int
    cpus: int
    memory: float
    """Bytes of one accelerator; the host's are not counted."""
    problem: Problem
    contiguity: Contiguity
    communication: Communication
    pieces: int
    """Subgraphs that one accelerator may run after each other, for latency."""
    notes: tuple[str, ...]
    """What a reader of the file should know, such as units that cannot be right."""
    document: dict[str, Any]

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices: accelerators first. For latency all CPU cores are one device, and never too few."""
        cpus = ("cpu",) if self.problem == "latency" else tuple(f"cpu {number + 1}" for number in range(self.cpus))
        return (*(f"accelerator {number + 1}" for number in range(self.accelerators)), *cpus)
