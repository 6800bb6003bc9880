"""From what is written, JSON of the contest with settings or a question in YAML, to a problem of strategies."""

import hashlib
import json
import re
from dataclasses import dataclass, replace
from functools import partial
from math import floor
from pathlib import Path
from typing import Any

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import Node, fault_at, fault_at_key
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.units import format_quantity
from crossopt.instances.files.written import Written
from crossopt.instances.sharding.generated import digest_of, generated
from crossopt.instances.sharding.network import Network
from crossopt.instances.sharding.problem import GREATEST_SUM, Problem
from crossopt.instances.sharding.reading import problem_in, read_problem
from crossopt.instances.sharding.section import ShardingFile

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

    @property
    def name(self) -> str:
        return self.problem.name

    @property
    def document(self) -> dict[str, Any]:
        return {"source": self.source, "digest": self.digest, "settings": list(self.settings)}


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
            faults += _strangers(file, written.root, given[0])
        if file.limit is not None and not 0 <= file.limit < GREATEST_SUM:
            faults.append(written.fault("limit", f"{file.limit:.3g} bytes are no limit (give 0 to 2^60)"))
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


def _strangers(file: ShardingFile, root: Node, way: str) -> list[Fault]:
    """Keys that say nothing where a problem is said in this way."""
    return [
        fault_at_key(root, key, f"{key} belongs to {other} and says nothing beside {way} (take one of them away)")
        for other, keys in _WAYS.items()
        for key in keys
        if other != way and getattr(file, key) not in (None, ())
    ]


def _placed(file: ShardingFile, root: Node, path: str, message: str) -> Fault:
    """A fault of the contest's form where the question in YAML says that."""
    found = _ROW.fullmatch(path)
    if not found:
        return fault_at(root, path.partition(".")[0], message)
    what, key, place = found[1], _KEYS.get(found[2], found[2]), int(found[3])
    row = f"nodes.{list(file.nodes or {})[place]}" if what == "nodes" else f"edges[{place}]"
    return fault_at(root, f"{row}.{key}", message)


def _as_json(file: ShardingFile, root: Node, source: str) -> str:
    """The nodes and edges of a question in the contest's form."""
    nodes = file.nodes or {}
    numbers = {name: number for number, name in enumerate(nodes)}
    faults = [
        fault_at(root, f"edges[{place}].between[{side}]", f"there is no node {name!r} (one of {', '.join(list(nodes)[:8])})")
        for place, edge in enumerate(file.edges)
        for side, name in enumerate(edge.between)
        if name not in numbers
    ]
    faults += [
        fault_at(root, f"edges[{place}].costs", f"{said} rows and columns are given where the strategies of its nodes need {needed}")
        for place, edge in enumerate(file.edges)
        if all(name in numbers for name in edge.between)
        and (said := _shape(edge.costs)) != (needed := " x ".join(str(len(nodes[name].costs)) for name in edge.between))
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
