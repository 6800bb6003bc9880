"""The question about strategies as the user writes it in YAML: a file of the contest's form, or nodes and edges."""

from dataclasses import dataclass
from typing import Annotated, Literal

from instances.quantities import Bytes
from instances.schema import Doc


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

    kind: Literal["sharding"] = "sharding"
    name: str | None = None
    description: str | None = None
    file: Annotated[str | None, Doc("a problem in JSON, plain or gzipped, relative to this file")] = None
    nodes: Annotated[dict[str, NodeSection] | None, Doc("operators by name, where no file is given")] = None
    edges: Annotated[tuple[EdgeSection, ...], Doc("between nodes")] = ()
    limit: Annotated[Bytes | None, Doc("of memory at every time; the file's own where nothing is said")] = None
