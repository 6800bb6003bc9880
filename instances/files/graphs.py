"""Shared parts of readers of JSON graphs: text, numbers of a mapping, ids of nodes, and a list of faults."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from crossopt.crossflow.records import dataclass
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import UNSEEN, JsonError, bytes_of, read_strictly, refusal
from crossopt.instances.files.units import quoted


def cycle_of(arcs: Sequence[tuple[int, int]], count: int) -> tuple[int, ...]:
    """A cycle of a graph with this many nodes, in order; empty if there is none."""
    after: list[list[int]] = [[] for _ in range(count)]
    for source, target in arcs:
        after[source].append(target)
    state, way = [0] * count, list[int]()
    for start in range(count):
        stack = [(start, iter(after[start]))] if not state[start] else []
        if stack:
            state[start] = 1
            way.append(start)
        while stack:
            node, left = stack[-1]
            following = next(left, None)
            if following is None:
                state[node] = 2
                way.pop()
                stack.pop()
            elif state[following] == 1:
                return tuple(way[way.index(following) :])
            elif not state[following]:
                state[following] = 1
                way.append(following)
                stack.append((following, iter(after[following])))
    return ()


_LARGEST = 64 << 20
GREATEST = 1e18
"""Upper limit of times and sizes, so that their sums stay finite."""


def _anywhere(path: str, message: str) -> Fault:
    return Fault(1, 1, path, message)


@dataclass(slots=True)
class FaultList:
    """Faults of a file as they are found."""

    source: str
    found: list[Fault] = field(default_factory=list)
    placed: Callable[[str, str], Fault] = _anywhere
    """Add a fault by its path and message; the reader knows the lines."""

    def add(self, path: str, message: str) -> None:
        self.found.append(self.placed(path, message))

    def end(self) -> None:
        if self.found:
            raise InstanceError(self.source, self.found)


def text_of(path: Path, what: str = "a graph") -> str:
    """The text of a graph, or what else a file is; an InstanceError if it is too large or not text, an OSError if it cannot be read."""
    data = bytes_of(path, _LARGEST, f"name {what}")
    if data is None:
        raise _refused(str(path), f"the file has more than {_LARGEST >> 20} MiB (name {what} that is smaller)")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = refusal(path.name, data, what, f"name {what}") or f"this is not text in UTF-8 (name {what})"
        raise _refused(str(path), message) from error
    if unseen := UNSEEN.search(text):
        line = text.count("\n", 0, unseen.start()) + 1
        raise _refused(str(path), f"character U+{ord(unseen[0]):04X} is not text (remove it)", line)
    return text


def read_json(text: str, source: str) -> Any:  # noqa: ANN401 - whatever a file may hold
    """The data of a text; an InstanceError if it is not JSON."""
    try:
        return read_strictly(text)
    except JsonError as error:
        remedy = (
            " (name a graph in JSON, or a model of ONNX)"
            if not text.lstrip().startswith(("{", "["))
            else " (write it again)"
            if error.is_cut
            else ""
        )
        raise InstanceError(source, [Fault(error.line, error.column, error.path, error.message + remedy)]) from error


def _refused(source: str, message: str, line: int = 1) -> InstanceError:
    return InstanceError(source, [Fault(line, 1, "", message)])


def rows_of(nodes: list[Any], faults: FaultList) -> dict[str, int]:
    """The row of each id; ids are compared as strings, as results name nodes by strings."""
    rows: dict[str, int] = {}
    for index, node in enumerate(nodes):
        name = node.get("id") if isinstance(node, dict) else None
        if isinstance(name, bool) or not isinstance(name, int | str):
            faults.add(f"nodes[{index}].id", "an id is needed, a whole number or a word")
            rows[f"?{index}"] = index
        elif str(name) in rows:
            faults.add(f"nodes[{index}].id", f"{name!r} is the id of nodes[{rows[str(name)]}] already (give each node its own)")
            rows[f"?{index}"] = index
        else:
            rows[str(name)] = index
    return rows


def figure(
    given: Mapping[str, Any],
    key: str,
    at: str,
    faults: FaultList,
    integral: bool = False,
    default: float | None = None,
    greatest: float = GREATEST,
) -> float:
    """A non-negative number."""
    value, path = given.get(key, default), f"{at}.{key}" if at else key
    kinds: Any = int if integral else (int, float)
    if value is None:
        faults.add(path, f"{key} is missing")
    elif isinstance(value, bool) or not isinstance(value, kinds) or not abs(value) <= greatest:
        faults.add(path, f"{quoted(str(value))} is no {'whole number' if integral else 'number'} that can be worked with")
    elif value < 0:
        faults.add(path, f"{value} is below 0 (give 0 or more)")
    else:
        return float(value)
    return 0.0
