"""What is answered about several workloads: the chip, the plan and the share of each, and the certificate; as JSON both ways."""

from dataclasses import dataclass, field
from typing import Any

from crossopt.instances.files.saved import FORMAT
from crossopt.solvers.answer import Status, record
from crossopt.solvers.codesign.result import Result, from_json


@dataclass(frozen=True, slots=True)
class JointSpace:
    """How many designs the question allows and how they fare."""

    designs: int
    """Plans of the workloads, one of each, times hardware points."""
    hardware_points: int
    unbuilt: int
    """Hardware points that lack cores, memory or links."""
    plans: tuple[int, ...]
    served: tuple[int, ...]
    """Hardware points on which each workload has a plan that keeps every limit."""
    serving: int
    """Those on which all workloads have one."""


@dataclass(frozen=True, slots=True)
class JointTree:
    """How boxes of hardware points were cut until no plans in any made a figure below the bound."""

    designs: int
    """Plans of the workloads, one of each, times hardware points."""
    hardware_points: int
    plans: tuple[int, ...]
    families: tuple[int, ...]
    """Groups of plans that differ in their concessions only."""
    promising: tuple[int, ...]
    """Plans with which the figure would be below the bound on that chip."""
    boxes: int
    cuts: tuple[tuple[tuple[int, int, int], ...] | None, ...]
    """As in a `Tree`."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one workload has of the answer."""

    name: str
    weight: float
    value: float
    regret: float | None
    """value / optimum - 1, where the optimum of the workload alone is known."""
    design: dict[str, Any]
    evaluation: dict[str, Any]


@dataclass(frozen=True, slots=True)
class JointResult:
    """An answer about several workloads with its proof."""

    instance: dict[str, Any]
    """Name, objective, how values are combined, and the text of the question."""
    engine: str
    status: Status
    stopped: str
    value: float | None
    """The figure of all workloads, as the full model prices them."""
    bound: float | None
    """No design of the question can be below this."""
    gap: float | None
    proved: bool
    proved_by: str
    checks: tuple[str, ...]
    shares: tuple[Share, ...]
    """One for each workload in the order of the question; none where there is no design."""
    alone: tuple[Result, ...]
    """The optimum of each workload on a chip of its own, where regrets are asked for."""
    space: JointSpace | None = None
    tree: JointTree | None = None
    gap_asked: float = 0.0
    trace: tuple[tuple[float, float | None, float | None], ...] = ()
    seconds: float = 0.0
    seed: int = 0
    versions: dict[str, str] = field(default_factory=dict)


def any_from_json(data: object) -> Result | JointResult:
    """The result in plain data, about one workload or several; a ValueError in words if it is none."""
    if not isinstance(data, dict) or data.get("format") != FORMAT or "shares" not in data:
        return from_json(data)
    found: JointResult = record(JointResult, {key: value for key, value in data.items() if key != "format"}, "")
    return found
