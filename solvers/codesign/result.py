"""What an engine answers: a design, its evaluation, the certificate, and how it was found; as JSON both ways."""

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from crossopt.crossflow.evaluate import Evaluation
from crossopt.instances.files.saved import FORMAT
from crossopt.solvers.answer import Status, record

if TYPE_CHECKING:
    from crossopt.solvers.codesign.combined.devices.result import CountsResult
    from crossopt.solvers.codesign.combined.workloads.result import JointResult


BY_SOLVER = ("milp", "cpsat")
"""Engines whose proof is a solver's word."""


@dataclass(frozen=True, slots=True)
class Occurring:
    """The options of a choice that occur among the designs within 5 % of the best one."""

    name: str
    of: int
    """How many options the choice has."""
    options: list[Any]
    """Those that occur, in the order of the question."""
    least: tuple[float, ...]
    """For each of them the least value of a design that has it: the option occurs as near to the best one as this."""

    def within(self, limit: float) -> list[Any]:
        """The options that occur among designs of at most this value."""
        return [option for option, least in zip(self.options, self.least, strict=True) if least <= limit]


@dataclass(frozen=True, slots=True)
class Space:
    """How many designs the question allows and how they fare."""

    designs: int
    """Plans that are plans, times hardware points."""
    feasible: int
    """Designs that keep every limit."""
    ties: int
    """Designs with the very value of the best one, itself included."""
    within_1_percent: int
    within_5_percent: int
    unbuilt: int
    """Hardware points that lack cores, memory or links; their designs count as infeasible."""
    hardware_points: int
    plans: int
    error: float | None = None
    """The model's mean error on measured runs of this device; None where nothing was measured, and for energies and costs."""
    within_error: int | None = None
    """Designs whose values are that near to the best one, itself included: the model cannot tell them apart."""
    near: tuple[Occurring, ...] = ()
    """What the designs within 5 % of the best one have in common: every choice with more than one option; none without a design."""


@dataclass(frozen=True, slots=True)
class Tree:
    """How boxes of hardware points were cut until no plan in any was below the bound."""

    designs: int
    """Plans that are plans, times hardware points."""
    hardware_points: int
    plans: int
    families: int
    """Groups of plans that differ in overlap and offloading only, and in recomputation unless every option offloads activations; they are
    bounded together by the plan with the least of each."""
    promising: int
    """Plans that would be below the bound on that chip."""
    boxes: int
    cuts: tuple[tuple[tuple[int, int, int], ...] | None, ...]
    """From the root down, each box before its parts: choices with the first and the last place that the first part keeps, counted from 0 in
    ascending order of the options, of which each takes off what is below and above; None for a box that is not cut."""


@dataclass(frozen=True, slots=True)
class Relaxation:
    """An integer model that under-estimates every design, solved and tightened again and again."""

    solver: str
    """Its name and version; empty where no solver was needed."""
    rounds: int
    """How often it was solved."""
    tangents: int
    """Tangents of the step time of a plan at a chip."""
    form: str
    """How it is written, by its name in `formulation.codesign.forms`."""
    plans: int
    """Plans that it chooses among; all others are no better on the best chip there could be, or at prices on the budgets."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A limit that designs break: how many keep it, and the least that any design needs of it over what there is."""

    limit: str
    kept_by: int
    least_share: float | None
    """1 or less if some design keeps it; None where there is nothing to measure."""


@dataclass(frozen=True, slots=True)
class Rival:
    """What a rule without proof would have chosen."""

    name: str
    value: float | None
    """None where the rule finds no design that keeps the limits."""
    design: dict[str, Any] | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """An answer with its proof."""

    instance: dict[str, Any]
    """Name, objective and the text of the question."""
    engine: str
    status: Status
    stopped: str
    """Why the engine stopped: `complete`, `interrupted` or `time limit`."""
    value: float | None
    """Objective of the design, as the full model prices it."""
    bound: float | None
    """No design of the question can be below this; an answer that is not proved may have one, but not near enough."""
    gap: float | None
    """(value - bound) / value."""
    proved: bool
    proved_by: str
    checks: tuple[str, ...]
    """What was verified, in words."""
    design: dict[str, Any] | None
    evaluation: dict[str, Any] | None
    space: Space | None
    tree: Tree | None = None
    relaxation: Relaxation | None = None
    gap_asked: float = 0.0
    """Gap that was near enough to stop."""
    conflicts: tuple[Conflict, ...] = ()
    rivals: tuple[Rival, ...] = ()
    trace: tuple[tuple[float, float | None, float | None], ...] = ()
    """Seconds, best value and bound, whenever one of them changed."""
    seconds: float = 0.0
    seed: int = 0
    versions: dict[str, str] = field(default_factory=dict)


def to_json(result: "Result | JointResult | CountsResult") -> dict[str, Any]:
    """The result as plain data."""
    return {"format": FORMAT, **asdict(result)}


def from_json(data: object) -> Result:
    """The result in plain data; a ValueError in words if it is none."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f"this is no result of format {FORMAT} (write one with `crossopt solve FILE --out RESULT.json`)")
    result: Result = record(Result, {key: value for key, value in data.items() if key != "format"}, "")
    return result


def evaluation_json(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation as plain data, with what follows from it."""
    limits = [{**asdict(limit), "kept": limit.kept} for limit in evaluation.limits]
    plain = {name: getattr(evaluation, name) for name in _PLAIN}
    return {
        **plain,
        "likely": list(evaluation.likely),
        "tokens_per_second": evaluation.tokens_per_second,
        "breakdown": dict(evaluation.breakdown),
        "memory": dict(evaluation.memory),
        "device": [asdict(resource) for resource in evaluation.device],
        "limits": limits,
        "feasible": evaluation.feasible,
        "binding": list(evaluation.binding),
    }


_PLAIN = ("step_time", "energy", "average_power", "power", "die_area", "cost", "flops", "tokens", "utilisation")
