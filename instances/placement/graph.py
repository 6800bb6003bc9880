"""A network as a graph of operators, and the question on which device each of them runs.

The problem is that of Tarnawski et al. (NeurIPS 2020). All data between devices pass through the memory of the host: an accelerator pays
the transfer time of a node's output once if it takes it in from outside, and once if it hands it out; CPUs pay nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.graphs import read_json, text_of
from crossopt.instances.files.units import quoted

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


# A placement that comes with a graph, such as an expert's: which nodes each device holds.
#
# fpgas, cpus   lists of {nodes: [ids]}, in the format of the solutions of Tarnawski et al. (NeurIPS 2020); or
# {id: device}  the name of the device of every node, as `crossopt export --as devices` writes it
#
# A node that is not named goes where others of its colour are, so that a split of the forward pass serves for training.

_UNPLACED = -1


def read_split(path: Path, question: PlacementQuestion) -> Whole:
    """The device of every node; an InstanceError with every fault."""
    document = read_json(text_of(path), str(path))
    faults: list[Fault] = []
    rows = {str(name): row for row, name in enumerate(question.graph.ids)}
    device_of = np.full(len(rows), _UNPLACED, np.int64)
    for at, name, device in _places(document, question, faults):
        row = rows.get(name)
        if row is None:
            faults.append(Fault(1, 1, at, f"there is no node {quoted(name)} in the graph (a split of another graph?)"))
        elif device_of[row] not in {_UNPLACED, device}:
            faults.append(Fault(1, 1, at, f"node {name} is on {question.devices[device_of[row]]} already (name it once)"))
        else:
            device_of[row] = device
    _follow(question, device_of)
    left = np.flatnonzero(device_of == _UNPLACED).tolist()
    if left and not faults:
        words = (
            f"node {question.graph.ids[left[0]]} and {len(left) - 1} others have"
            if len(left) > 1
            else f"node {question.graph.ids[left[0]]} has"
        )
        faults.append(Fault(1, 1, "", f"{words} no device (name every node, or one of its colour)"))
    if faults:
        raise InstanceError(str(path), faults)
    return device_of


def _places(document: Any, question: PlacementQuestion, faults: list[Fault]) -> Iterator[tuple[str, str, int]]:  # noqa: ANN401
    """Where it stands, the node, and the device."""
    if isinstance(document, dict) and {"fpgas", "cpus"} & set(document):
        yield from _listed(document, "fpgas", 0, question.accelerators, faults)
        yield from _listed(document, "cpus", question.accelerators, question.cpus, faults)
    elif isinstance(document, dict):
        numbers = {name: number for number, name in enumerate(question.devices)}
        for name, device in document.items():
            if device in numbers:
                yield name, name, numbers[device]
            else:
                faults.append(
                    Fault(1, 1, name, f"there is no device {quoted(str(device))} (one of {', '.join(question.devices[:4])}, ...)")
                )
    else:
        faults.append(Fault(1, 1, "", "a split is a mapping, of ids to devices or with the lists `fpgas` and `cpus`"))


def _listed(document: dict[str, Any], key: str, first: int, count: int, faults: list[Fault]) -> Iterator[tuple[str, str, int]]:
    devices = document.get(key, [])
    if not isinstance(devices, list) or not all(isinstance(one, dict) and isinstance(one.get("nodes"), list) for one in devices):
        faults.append(Fault(1, 1, key, "a list of devices is needed, each with its list `nodes`"))
        return
    used = [place for place, one in enumerate(devices) if one["nodes"]]
    if used and used[-1] >= count:
        faults.append(Fault(1, 1, key, f"{used[-1] + 1} are used, the question has {count} (--devices, --cpus)"))
        return
    for place in used:
        for node in devices[place]["nodes"]:
            yield f"{key}[{place}].nodes", str(node), first + place


def _follow(question: PlacementQuestion, device_of: Whole) -> None:
    """Put nodes without a device where their colour is."""
    colour = question.graph.colour
    where = {int(one): int(device) for one, device in zip(colour, device_of, strict=True) if device != _UNPLACED}
    for row in np.flatnonzero(device_of == _UNPLACED).tolist():
        device_of[row] = where.get(int(colour[row]), _UNPLACED)
