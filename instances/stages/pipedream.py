"""Reader of profiles in the format of PipeDream (Narayanan et al., SOSP 2019); every fault at once, with its line.

    node7 -- LSTM(9, 9) -- forward_compute_time=3.1, backward_compute_time=5.3, activation_size=[629.0; 131.0], parameter_size=503.0
    <tab>node6 -- node7

Times are milliseconds of one minibatch, sizes bytes. Several activations in brackets are summed, fractions of a byte rounded up. What the
authors' tools append, ` -- stage_id=3`, is read over. Nodes that are called Input and take nothing in cost nothing and are left out; then
so are `__getitem__` nodes whose output is unused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, isfinite, prod
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.fields import Bandwidth, Bounds, Bytes, Doc, Prose
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import Node, Scalar
from crossopt.instances.files.graphs import cycle_of, text_of
from crossopt.instances.files.units import quoted
from crossopt.instances.files.written import Written, short_repr

_MOST_NODES = 100_000
_LONGEST = 1e15
"""Milliseconds; beyond it no figure is a time."""
_MOST_BYTES = float(1 << 52)
"""Sums of whole bytes up to twice this are exact."""
_NODE = re.compile(r"(\S+) -- (.*) -- (forward_compute_time=.*?)(?: -- stage_id=\d+)?")
_FIGURES = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Operators as columns, in an order in which all data flow forward, and the edges between them by their rows."""

    ids: tuple[str, ...]
    names: tuple[str, ...]
    forward: Array
    """Seconds of one minibatch on one device."""
    backward: Array
    seconds: Array
    """Both."""
    activation: Array
    """Bytes that a node hands on."""
    parameters: Array
    """Bytes."""
    edges: tuple[tuple[int, int], ...]
    left_out: tuple[str, ...]
    """Ids of inputs, and of nodes with unused outputs."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class _Node:
    line: int
    name: str
    forward: float
    backward: float
    activation: float
    parameters: float


def profile_of(text: str, source: str) -> Profile:
    """The profile that a text says; an InstanceError with every fault."""
    nodes, arcs, faults = dict[str, _Node](), dict[tuple[str, str], int](), list[Fault]()
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("\t"):
            _read_edge(line, number, arcs, faults)
        elif line.strip():
            _read_node(line, number, nodes, faults)
    if not faults and not 0 < len(nodes) <= _MOST_NODES:
        faults.append(Fault(1, 1, "", f"{len(nodes)} nodes are given, 1 to {_MOST_NODES:,} are needed"))
    known = {line.partition(" -- ")[0].strip() for line in text.splitlines() if line.strip() and not line.startswith("\t")}
    for (start, end), number in arcs.items():
        for name in dict.fromkeys((start, end)):
            if name not in known:
                faults.append(Fault(number, 1, "", f"there is no node {quoted(name)} (add its line, or remove the edge)"))
    faults += _too_much(nodes) if not faults else []
    faults += _cycles(list(nodes), arcs) if not faults else []
    if faults:
        raise InstanceError(source, faults)
    return _profile(nodes, list(arcs), source)


def _read_edge(line: str, number: int, arcs: dict[tuple[str, str], int], faults: list[Fault]) -> None:
    start, between, end = line.strip().partition(" -- ")
    if not between or not start.strip() or not end.strip() or " -- " in end:
        faults.append(Fault(number, 1, "", f"{quoted(line.strip())} is no edge (write a tab, then 'node1 -- node2')"))
        return
    arcs.setdefault((start.strip(), end.strip()), number)


def _read_node(line: str, number: int, nodes: dict[str, _Node], faults: list[Fault]) -> None:
    match = _NODE.fullmatch(line.rstrip())
    if match is None:
        remedy = "write 'node1 -- name -- forward_compute_time=ms, backward_compute_time=ms, activation_size=bytes, parameter_size=bytes'"
        faults.append(Fault(number, 1, "", f"{quoted(line)} is neither a node nor an edge ({remedy}; an edge begins with a tab)"))
        return
    name, described, figures = match[1], match[2], match[3].split(", ")
    if name in nodes:
        faults.append(Fault(number, 1, name, f"line {nodes[name].line} is about this node already (give each its own id)"))
        return
    if tuple(figure.partition("=")[0] for figure in figures) != _FIGURES:
        faults.append(Fault(number, 1, name, f"the figures {', '.join(_FIGURES)} are needed, in this order"))
        return
    values = [_figure(figure, number, name, faults) for figure in figures]
    nodes[name] = _Node(number, described, *values)


def _figure(figure: str, number: int, name: str, faults: list[Fault]) -> float:
    """The value of `key=value`, where a list of sizes is summed."""
    key, _, text = figure.partition("=")
    several = key == "activation_size" and text.startswith("[") and text.endswith("]")
    total, size = 0.0, key.endswith("_size")
    for part in text[1:-1].split(";") if several else [text]:
        try:
            value = float(part)
        except ValueError:
            value = float("nan")
        if not isfinite(value) or value > (_MOST_BYTES if size else _LONGEST):
            faults.append(Fault(number, 1, f"{name}.{key}", f"{quoted(part.strip())} is no number that can be worked with"))
        elif value < 0:
            faults.append(Fault(number, 1, f"{name}.{key}", f"{part.strip()} is below 0 (give 0 or more)"))
        else:
            total += ceil(value) if size else value
    return total


def _too_much(nodes: dict[str, _Node]) -> list[Fault]:
    sizes = sum(node.activation + node.parameters for node in nodes.values())
    return [Fault(1, 1, "", f"{sizes:.3g} bytes in all are more than can be counted (give sizes in bytes)")] if sizes > _MOST_BYTES else []


def _cycles(names: list[str], arcs: dict[tuple[str, str], int]) -> list[Fault]:
    rows = {name: row for row, name in enumerate(names)}
    cycle = [names[row] for row in cycle_of([(rows[start], rows[end]) for start, end in arcs], len(names))]
    if not cycle:
        return []
    named = [*cycle, cycle[0]]
    shown = " -> ".join(named if len(named) <= 8 else [*named[:6], "...", named[-1]])
    last = cycle[1] if len(cycle) > 1 else cycle[0]
    return [Fault(arcs[cycle[0], last], 1, "", f"the nodes {shown} form a cycle (a profile without cycles is needed)")]


def _profile(nodes: dict[str, _Node], arcs: list[tuple[str, str]], source: str) -> Profile:
    """What counts of the nodes, in topological order."""
    taking, handing = {end for _, end in arcs}, {start for start, _ in arcs}
    out = {name for name, node in nodes.items() if name not in taking and node.name.startswith("Input")}
    out |= {name for name, node in nodes.items() if name not in handing | out and node.name.startswith("__getitem__")}
    inner = [(start, end) for start, end in arcs if start not in out and end not in out]
    order = _ordered([name for name in nodes if name not in out], inner)
    if not order:
        raise InstanceError(source, [Fault(1, 1, "", "there are only inputs here (add the nodes that compute)")])
    rows = {name: row for row, name in enumerate(order)}
    return Profile(
        ids=tuple(order),
        names=tuple(nodes[name].name for name in order),
        forward=np.array([nodes[name].forward / 1e3 for name in order]),
        backward=np.array([nodes[name].backward / 1e3 for name in order]),
        seconds=np.array([(nodes[name].forward + nodes[name].backward) / 1e3 for name in order]),
        activation=np.array([nodes[name].activation for name in order]),
        parameters=np.array([nodes[name].parameters for name in order]),
        edges=tuple(sorted((rows[start], rows[end]) for start, end in inner)),
        left_out=tuple(name for name in nodes if name in out),
    )


def _ordered(names: list[str], arcs: list[tuple[str, str]]) -> list[str]:
    """The nodes in an order in which all data flow forward, as near to depth first as that allows."""
    after: dict[str, list[str]] = {name: [] for name in names}
    waiting = dict.fromkeys(names, 0)
    for start, end in arcs:
        after[start].append(end)
        waiting[end] += 1
    ready, order = [name for name in reversed(names) if not waiting[name]], list[str]()
    while ready:
        name = ready.pop()
        order.append(name)
        for end in reversed(after[name]):
            waiting[end] -= 1
            if not waiting[end]:
                ready.append(end)
    return order


# The form of a question about a profile (`kind: pipedream`): which layers form a stage, and how often is each stage replicated?

MOST_DEVICES, MOST_LEVELS = 1024, 3


@dataclass(frozen=True, slots=True)
class PipedreamFile:
    """Which layers of a profile form a stage, and how often is each stage replicated?"""

    file: Annotated[str, Doc("path of a profile in PipeDream's format, relative to this file")]
    kind: Annotated[Literal["pipedream"], Doc("problem type")] = "pipedream"
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
    devices: Annotated[tuple[int, ...], Bounds(1), Doc("number of devices: 4, or [4, 8] or 4x8 for eight groups of four")] = (4,)
    bandwidth: Annotated[tuple[Bandwidth, ...], Doc("bandwidth of one member of each level, innermost first, or one for all")] = (1e9,)
    straight: Annotated[bool, Doc("whether stages have no replicas")] = False
    compression: Annotated[float | None, Doc("compression of transferred activations: 2 halves their bytes")] = None
    memory: Annotated[Bytes | None, Doc("memory of one device; default: no limit")] = None
    compatible: Annotated[bool, Doc("whether to use the cuts and costs of the public optimizer")] = False


@dataclass(frozen=True, slots=True)
class Level:
    """Members that are joined by one kind of link."""

    members: int
    bandwidth: float


@dataclass(frozen=True, slots=True)
class PipelineQuestion:
    """Which stages keep the slowest one as short as possible?"""

    name: str
    profile: Profile
    levels: tuple[Level, ...]
    """Innermost first."""
    straight: bool
    compression: float | None
    """None where transfers are not counted."""
    memory: float
    compatible: bool
    document: dict[str, Any]

    __repr__ = short_repr

    @property
    def devices(self) -> int:
        return prod(level.members for level in self.levels)


def read(written: Written) -> PipelineQuestion:
    """The question; an InstanceError with every fault."""
    file = written.read_as(PipedreamFile, _levelled(written.root))
    written.refuse(_faults(file))
    with written.reading("file"):
        profile = profile_of(written.files.text(file.file, text_of), str(written.files.path(file.file)))
    bandwidth = file.bandwidth * len(file.devices) if len(file.bandwidth) == 1 else file.bandwidth
    return PipelineQuestion(
        name=file.name or _name(written.source),
        profile=profile,
        levels=tuple(Level(*pair) for pair in zip(file.devices, bandwidth, strict=True)),
        straight=file.straight,
        compression=file.compression if file.compression is not None or file.compatible else 1.0,
        memory=float("inf") if file.memory is None else file.memory,
        compatible=file.compatible,
        document=written.document,
    )


def _levelled(root: Node) -> Node:
    """The tree with `devices: 4x8` as the list that this is short for."""
    entries = root.value
    entry = entries.get("devices") if isinstance(entries, dict) else None
    if not isinstance(entries, dict) or entry is None or not isinstance(entry.node.value, Scalar) or "x" not in entry.node.value.text:
        return root
    parts = tuple(replace(entry.node, value=Scalar(part.strip(), quoted=False)) for part in entry.node.value.text.split("x"))
    return replace(root, value={**entries, "devices": replace(entry, node=replace(entry.node, value=parts))})


def _name(source: str) -> str:
    """The folder's name where the file has the usual one of profiles."""
    path = Path(source)
    return path.parent.name or path.stem if path.stem == "graph" else path.stem


def _faults(file: PipedreamFile) -> Iterator[tuple[str, str]]:
    """What no single value shows, by its path."""
    shape, levels, given = "x".join(map(str, file.devices)), len(file.devices), len(file.bandwidth)
    if not 0 < levels <= MOST_LEVELS:
        yield "devices", f"{levels} levels of devices are given, 1 to {MOST_LEVELS} are needed (4 or 4x8)"
    if prod(file.devices) > MOST_DEVICES:
        yield "devices", f"{shape} devices are more than {MOST_DEVICES:,}, for which profiles are answered"
    if given not in {1, levels}:
        yield "bandwidth", f"{given} bandwidths are given for {levels} levels (one for all, or one for each: 6GB/s,1GB/s)"
    if not all(0.0 < speed < 1e18 for speed in file.bandwidth):
        yield "bandwidth", "a bandwidth must be above zero and below 1e18 bytes a second"
    if file.compression is not None and not 1e-9 < file.compression < 1e9:
        yield "compression", f"a compression of '{file.compression}' is none (1 leaves activations as they are, 2 halves them)"
    if file.memory is not None and not file.compatible and levels > 1:
        yield "memory", "the memory of groups of devices is not modelled (give devices as one number, or `compatible`)"


def size_of(question: PipelineQuestion) -> str:
    """How large the question is, in words."""
    return f"{len(question.profile):,} nodes on {question.devices:,} devices"
