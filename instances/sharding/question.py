"""The question about strategies as the user writes it in YAML: a file of the contest's form, nodes and edges, or a network on a mesh."""

import hashlib
import json
import re
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from math import floor, prod
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from crossopt.crossflow.fields import Doc, Positive, Prose, Unit
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.registry import UnknownNameError, build_device, device
from crossopt.instances.catalogue.workload import Report, WorkloadSection, build_workload
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import Node, fault_at, fault_at_key
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.units import format_quantity
from crossopt.instances.files.written import Files, Written, short_repr
from crossopt.instances.sharding.network import Network, network_problem
from crossopt.instances.sharding.problem import GREATEST_SUM, Problem
from crossopt.instances.sharding.reading import problem_in, read_problem


@dataclass(frozen=True, slots=True)
class NodeSection:
    """One operator and its strategies."""

    costs: Annotated[tuple[int, ...], Doc("cost of each strategy; 10^18 or more forbids it")]
    usages: Annotated[tuple[int, ...] | None, Doc("bytes of each strategy while the node is alive; default: none")] = None
    alive: Annotated[tuple[int, int] | None, Doc("lifetime [start, end), without the end")] = None


@dataclass(frozen=True, slots=True)
class EdgeSection:
    """Costs of pairs of strategies of two nodes."""

    between: Annotated[tuple[str, str], Doc("names of the two nodes")]
    costs: Annotated[tuple[tuple[int, ...], ...], Doc("cost matrix: a row for each strategy of the first node; 10^18 or more forbids it")]


@dataclass(frozen=True, slots=True)
class ShardingFile:
    """Which strategy does each operator take?"""

    kind: Annotated[Literal["sharding"], Doc("problem type")] = "sharding"
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
    file: Annotated[str | None, Doc("path of a problem in JSON, plain or gzipped, relative to this file")] = None
    nodes: Annotated[dict[str, NodeSection] | None, Doc("operators by name, without `file`")] = None
    edges: Annotated[tuple[EdgeSection, ...], Doc("edges between nodes")] = ()
    workload: Annotated[WorkloadSection | None, Doc("a transformer; the cost model prices every operator of its training step")] = None
    hardware: Annotated[str | None, Doc("a device of `crossopt list hardware`, for `workload`")] = None
    mesh: Annotated[
        tuple[Positive, ...] | None, Doc("number of devices along each axis, such as [4, 8]; the last axis joins neighbours")
    ] = None
    devices_per_node: Annotated[Positive | None, Doc("devices per node; default: the device's usual number")] = None
    limit: Annotated[Fraction | None, Unit("bytes"), Doc("memory limit at all times; default: the file's or the device's own")] = None


# From what is written, JSON of the contest with settings or a question in YAML, to a problem of strategies.

# --- workloads on a mesh --------------------------------------------------------------------------------------------------------------


_MOST_AXES, _MOST_DEVICES = 3, 1 << 16


def generated(file: ShardingFile, written: Written) -> Network:
    """The problem and what its numbers mean; an InstanceError with every fault."""
    faults: list[Fault] = []

    def report(path: str, message: str) -> None:
        faults.append(written.fault(path, message))

    model = _model(file, written.files, report)
    mesh = file.mesh or ()
    if not 1 <= len(mesh) <= _MOST_AXES or not 1 <= prod(mesh) <= _MOST_DEVICES:
        report("mesh", f"a mesh of 1 to {_MOST_AXES} axes and at most {_MOST_DEVICES:,} devices is needed (such as mesh: [4, 8])")
    if file.hardware is None:
        report("hardware", "a device is needed (such as hardware: a100-80g; `crossopt list hardware` names them)")
    if faults or model is None or file.hardware is None:
        raise written.refused(faults)
    try:
        entry = device(file.hardware)
        hardware = build_device(entry, file.hardware, model.precision, 2)
        devices = prod(mesh)
        node = min(file.devices_per_node or entry.devices_per_node, devices)
        if devices % node:
            raise ValueError(f"{devices} devices are no whole number of nodes of {node} (give devices_per_node)")
        room = float(np.asarray(hardware.dram.capacity).item()) - hardware.reserved_memory
        found = network_problem(model, hardware, mesh, (node, devices), int(room))
        return replace(found, given=_given(model, file.hardware, mesh, node))
    except (UnknownNameError, ValueError) as error:
        raise written.refused([written.fault("hardware", str(error))]) from error


def _given(model: Transformer, hardware: str, mesh: tuple[int, ...], node: int) -> tuple[tuple[str, str], ...]:
    """What the numbers are made of."""
    shape = f"{model.layers} layers, hidden size {model.hidden:,}, {model.heads} heads"
    batch = f"{model.global_batch:,} samples of {model.sequence:,} tokens in {model.precision}, as one microbatch"
    devices = f"{' x '.join(map(str, mesh))} devices, {node:,} in a node"
    return ("model", f"{model.name}: {shape}"), ("batch", batch), ("hardware", hardware), ("mesh", devices)


def _model(file: ShardingFile, files: Files, report: Report) -> Transformer | None:
    if file.workload is None:
        return None
    model = build_workload(file.workload, files, lambda path, message: report(f"workload.{path}".strip("."), message))
    if model is None:
        return None
    if not isinstance(model, Transformer) or model.experts > 1 or model.latent or model.parallel_blocks or not model.all_trained:
        without = "without latents, parallel blocks, adapters or frozen layers"
        report("workload", f"problems are generated from dense transformers only, {without} (give model or transformer)")
        return None
    return model


def digest_of(problem: Problem) -> str:
    """SHA-256 of all figures: a cost model that has changed makes another problem."""
    found = hashlib.sha256()
    for field in fields(problem):
        value = getattr(problem, field.name)
        found.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    return found.hexdigest()


_WAYS: dict[str, tuple[str, ...]] = {"file": (), "nodes": ("edges",), "workload": ("hardware", "mesh", "devices_per_node")}
"""Ways to say a problem, and what else is said with each."""
_KEYS = {"intervals": "alive", "nodes": "between"}
"""Of a node and of an edge in YAML, where they have other names in the contest's form."""
_ROW = re.compile(r"(nodes|edges)\.(\w+)\[(\d+)\]")


@dataclass(frozen=True, slots=True, eq=False)
class ShardingQuestion:
    """A problem and where it came from: a result names the file and the digest of its text instead of holding all of it."""

    problem: Problem
    source: str
    """The file, as it was named."""
    digest: str
    settings: tuple[str, ...] = ()
    """Laid over the file."""
    network: Network | None = None
    """What the numbers mean, where the cost model made them."""
    text: str = ""
    """What was given, where no file has it."""

    __repr__ = short_repr

    @property
    def name(self) -> str:
        return self.problem.name

    @property
    def document(self) -> dict[str, Any]:
        document = {"source": self.source, "digest": self.digest, "settings": list(self.settings)}
        return {**document, "text": self.text} if self.text else document


def size_of(question: ShardingQuestion) -> str:
    """How large a question is, in words."""
    problem = question.problem
    limit = "no limit of memory" if problem.limit is None else f"a limit of {format_quantity(float(problem.limit), 'bytes')}"
    nodes = f"{len(problem):,} nodes with {len(problem.costs):,} strategies"
    return f"{nodes}, {len(problem.firsts):,} edges with {len(problem.entries):,} pairs, {limit}"


def read(written: Written) -> ShardingQuestion:
    """The question; an InstanceError with every fault."""
    faults: list[Fault] = []
    file = read_as(ShardingFile, written.root, faults)
    if file is not None:
        given = [way for way in _WAYS if getattr(file, way) is not None]
        if len(given) != 1:
            problem = f"{' and '.join(given)} are given at once" if given else "no problem is given"
            faults.append(written.fault(given[1] if given else "", f"{problem} (give exactly one of {', '.join(_WAYS)})"))
        else:
            faults += _irrelevant_keys(file, written.root, given[0])
        if file.limit is not None and not 0 <= file.limit < GREATEST_SUM:
            faults.append(written.fault("limit", f"{float(file.limit):.3g} bytes are no limit (give 0 to 2^60)"))
    if faults or file is None:
        raise written.refused(faults)
    found = _question(file, written)
    return found if file.limit is None else replace(found, problem=replace(found.problem, limit=floor(file.limit)))


def _question(file: ShardingFile, written: Written) -> ShardingQuestion:
    """The question with the limit that its problem has; usages are whole, so that one between two of them is the lower one."""
    if file.file is not None:
        path = written.files.path(file.file)
        with written.reading("file"):
            found = read_problem(path)
        if not written.text:
            return ShardingQuestion(found.problem, written.source, found.digest, written.settings)
        limit = () if file.limit is None else (f"limit={floor(file.limit)} B",)  # YAML is kept as the author's file with its limit
        return ShardingQuestion(found.problem, str(path), found.digest, limit)
    if file.workload is not None:
        network = generated(file, written)
        return ShardingQuestion(network.problem, written.source, digest_of(network.problem), written.settings, network)
    problem = problem_in(_as_json(file, written.root, written.source), Path(written.source), partial(_placed, file, written.root))
    return ShardingQuestion(problem, written.source, hashlib.sha256(written.text.encode()).hexdigest(), written.settings)


def _irrelevant_keys(file: ShardingFile, root: Node, way: str) -> list[Fault]:
    """Keys that say nothing where a problem is said in this way."""
    return [
        fault_at_key(root, key, f"{key} belongs to {other} and does not apply with {way} (take one of them away)")
        for other, keys in _WAYS.items()
        for key in keys
        if other != way and getattr(file, key) not in (None, ())
    ]


def _placed(file: ShardingFile, root: Node, path: str, message: str) -> Fault:
    """A fault of the contest's form where the question in YAML says that."""
    found = _ROW.fullmatch(path)
    if not found:
        return fault_at(root, path.partition(".")[0], message)
    what, key, index = found[1], _KEYS.get(found[2], found[2]), int(found[3])
    row = f"nodes.{list(file.nodes or {})[index]}" if what == "nodes" else f"edges[{index}]"
    return fault_at(root, f"{row}.{key}", message)


def _as_json(file: ShardingFile, root: Node, source: str) -> str:
    """The nodes and edges of a question in the contest's form."""
    nodes = file.nodes or {}
    numbers = {name: number for number, name in enumerate(nodes)}
    faults = [
        fault_at(root, f"edges[{index}].between[{side}]", f"there is no node {name!r} (one of {', '.join(list(nodes)[:8])})")
        for index, edge in enumerate(file.edges)
        for side, name in enumerate(edge.between)
        if name not in numbers
    ]
    faults += [
        fault_at(root, f"edges[{index}].costs", f"{shape} rows and columns are given where the strategies of its nodes need {needed}")
        for index, edge in enumerate(file.edges)
        if all(name in numbers for name in edge.between)
        and (shape := _shape(edge.costs)) != (needed := " x ".join(str(len(nodes[name].costs)) for name in edge.between))
    ]
    if faults:
        raise InstanceError(source, faults)
    document = {
        "name": file.name or Path(source).stem,
        "nodes": {
            "intervals": [list(node.alive or (0, 0)) for node in nodes.values()],
            "costs": [list(node.costs) for node in nodes.values()],
            "usages": [list(node.usages or (0,) * len(node.costs)) for node in nodes.values()],
        },
        "edges": {
            "nodes": [[numbers[name] for name in edge.between] for edge in file.edges],
            "costs": [[cost for row in edge.costs for cost in row] for edge in file.edges],
        },
    }
    return json.dumps({"problem": document})


def _shape(costs: tuple[tuple[int, ...], ...]) -> str:
    widths = sorted({len(row) for row in costs})
    return f"{len(costs)} x {' or '.join(map(str, widths))}"
