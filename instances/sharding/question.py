"""From a file to a problem of strategies, as JSON of the contest or as YAML, and the same again from what a saved result says of it."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import floor
from pathlib import Path
from typing import Any

from crossopt.instances.errors import Fault, InstanceError, RefusedError
from crossopt.instances.files.document import Node, fault_at, fault_at_key, read_file
from crossopt.instances.files.graphs import FaultList
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.settings import laid_over
from crossopt.instances.files.units import format_quantity
from crossopt.instances.sharding.generated import digest_of, generated
from crossopt.instances.sharding.network import Network
from crossopt.instances.sharding.problem import GREATEST_SUM, Problem
from crossopt.instances.sharding.reading import problem_in, read_problem
from crossopt.instances.sharding.section import ShardingFile

_YAML = (".yaml", ".yml")
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
    limit: int | None
    """Asked for instead of the file's own."""
    settings: tuple[str, ...] = ()
    """Laid over a question in YAML."""
    network: Network | None = None
    """What the numbers mean, where the cost model made them."""

    @property
    def name(self) -> str:
        return self.problem.name

    @property
    def document(self) -> dict[str, Any]:
        return {"source": self.source, "digest": self.digest, "limit_asked": self.limit, "settings": list(self.settings)}


def read(path: Path, settings: tuple[str, ...] = (), limit: float | None = None) -> ShardingQuestion:
    """The question in a file; a RefusedError for settings of what is no YAML."""
    if settings and path.suffix.lower() not in _YAML:
        raise RefusedError(f"--set {settings[0]}: settings are for questions in YAML (a problem in JSON takes --memory)")
    return read_sharding(path, limit, settings)


def size_of(question: ShardingQuestion) -> str:
    """How large a question is, in words."""
    problem = question.problem
    limit = "no limit of memory" if problem.limit is None else f"a limit of {format_quantity(float(problem.limit), 'bytes')}"
    nodes = f"{len(problem):,} nodes with {len(problem.costs):,} strategies"
    return f"{nodes}, {len(problem.firsts):,} edges with {len(problem.entries):,} pairs, {limit}"


def read_sharding(path: Path, limit: float | None = None, settings: tuple[str, ...] = ()) -> ShardingQuestion:
    """The question in a file, with a limit of memory instead of its own; an InstanceError with every fault."""
    found = _written(path, settings) if path.suffix.lower() in _YAML else _plain(path)
    if limit is not None:
        found = replace(found, limit=_whole(limit, str(path), FaultList(str(path)).placed))
    return found if found.limit is None else replace(found, problem=replace(found.problem, limit=found.limit))


def read_again(document: Mapping[str, Any], folder: Path) -> ShardingQuestion:
    """The question that a result in this folder names; an InstanceError where its file is gone, or is another one now."""
    source, digest, limit, settings = (document.get(key) for key in ("source", "digest", "limit_asked", "settings"))
    sound = isinstance(settings, list | tuple) and all(isinstance(setting, str) for setting in settings)
    sound = sound and (limit is None or (type(limit) is int and 0 <= limit < GREATEST_SUM))
    if not isinstance(source, str) or not isinstance(digest, str) or not sound:
        raise InstanceError("result", [Fault(1, 1, "question", "the file of the question and its digest are missing")])
    places = (Path(source), folder / source, folder / Path(source).name)
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        words = f"there is no {source} (put the file of the question there, or beside the result)"
        raise InstanceError("result", [Fault(1, 1, "question.source", words)])
    found = read_sharding(path, limit, tuple(settings or ()))
    if found.digest != digest:
        words = f"{path} is another file now: its digest is {found.digest[:12]}..., the result says {digest[:12]}... (solve it again)"
        raise InstanceError("result", [Fault(1, 1, "question.digest", words)])
    return replace(found, source=source)


def _plain(path: Path) -> ShardingQuestion:
    found = read_problem(path)
    return ShardingQuestion(found.problem, str(path), found.digest, None)


def _written(path: Path, settings: tuple[str, ...]) -> ShardingQuestion:
    root = read_file(path)
    for setting in settings:
        root = laid_over(root, setting, str(path))
    faults: list[Fault] = []
    file = read_as(ShardingFile, root, faults)
    if file is not None:
        given = [way for way in _WAYS if getattr(file, way) is not None]
        if len(given) != 1:
            problem = f"{' and '.join(given)} are given at once" if given else "no problem is given"
            faults.append(fault_at(root, given[1] if given else "", f"{problem} (give exactly one of {', '.join(_WAYS)})"))
        else:
            faults += _strangers(file, root, given[0])
    if faults or file is None:
        raise InstanceError(str(path), faults)
    limit = None if file.limit is None else _whole(file.limit, str(path), partial(fault_at, root))
    if file.file is not None:
        return replace(_plain(path.parent / file.file), limit=limit)
    if file.workload is not None:
        network = generated(file, root, path)
        return ShardingQuestion(network.problem, str(path), digest_of(network.problem), limit, settings, network)
    found = problem_in(_as_json(file, root, str(path)), path, partial(_placed, file, root))
    return ShardingQuestion(found, str(path), hashlib.sha256(path.read_bytes()).hexdigest(), limit, settings)


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


def _whole(limit: float, source: str, placed: Callable[[str, str], Fault]) -> int:
    """Usages are whole: a limit between two of them is the lower one."""
    if not 0 <= limit < GREATEST_SUM:
        raise InstanceError(source, [placed("limit", f"{limit:.3g} bytes are no limit (give 0 to 2^60)")])
    return floor(limit)
